"""Does the time of a draw tell how large its noise is? ``python tests/audit/timing.py [DRAWS]``,
some minutes, by hand.

OpenDP draws a discrete Gaussian by rejection from a discrete Laplace, whose size comes from a loop
that runs the longer the larger the noise. Whoever can time single draws exactly learns something
about them. This measures how much: for single draws, and for whole releases, where a report of the
time is all there is. Ranks, so that a busy machine only hides what there is; times are taken less
the median of their neighbours, so that drifting clocks do neither.
"""

import math
import sys
import time

import numpy as np
import pyarrow as pa
from scipy import stats

import gaussnoise as gn
from gaussnoise.privacy.sampler import discrete_gaussian

_DRAWS, _RELEASES = 20_000, 2_000
_SCALES = (3.0, 2.0**20, 2.0**40, 2.0**53)
_NEIGHBOURS = 101
_ALARM = 1e-6


def timed(ask, times):
    """Nanoseconds of every call, and what it returned."""
    spent, answers = np.empty(times), []
    for i in range(times):
        start = time.perf_counter_ns()
        answer = ask()
        spent[i] = time.perf_counter_ns() - start
        answers.append(answer)
    return spent, answers


def verdict(spent, sizes):
    """Rank correlation of times and sizes, its p-value, and median times of the smallest and the
    largest tenth.
    """
    padded = np.pad(spent, _NEIGHBOURS // 2, mode="reflect")
    drift = np.median(np.lib.stride_tricks.sliding_window_view(padded, _NEIGHBOURS), axis=1)
    found = stats.spearmanr(spent - drift, sizes)
    low, high = np.quantile(sizes, [0.1, 0.9])
    small, large = np.median(spent[sizes <= low]), np.median(spent[sizes >= high])
    return found.statistic, found.pvalue, small, large


def line(name, spent, sizes):
    """One row of the table."""
    r, p, small, large = verdict(spent, sizes)
    said = "tells" if p < _ALARM else "not seen"
    bits = -math.log2(1 - r**2) / 2  # of a Gaussian with this correlation
    return (
        f"| {name} | {len(spent)} | {r:+.3f} | {p:.0e} | {bits:.4f} | {small / 1e3:.1f} | "
        f"{large / 1e3:.1f} | {said} |"
    )


def single_draws(draws):
    """One noise at a time, from the sampler itself."""
    for scale in _SCALES:
        measurement = discrete_gaussian(scale)
        timed(lambda m=measurement: m([0]), draws // 10)
        spent, noise = timed(lambda m=measurement: m([0]), draws)
        yield f"one draw, σ = {scale:.3g}", spent, np.abs([float(x) for (x,) in noise]) / scale


def releases(count):
    """All that is drawn in a release, against the length of its noise."""
    for dim in (1, 10):
        points = gn.FiniteSet(np.eye(dim))
        sums = gn.GaussianMechanism(gn.optimal_noise(points, neighbors="add-remove"), gn.zCDP(0.5))
        timed(lambda m=sums, d=dim: m.release(counts=[100] * d), count // 10)
        spent, answers = timed(lambda m=sums, d=dim: m.release(counts=[100] * d), count)
        errors = np.array([a.estimate for a in answers]) - 100
        yield f"release of {dim} sums", spent, np.linalg.norm(errors, axis=1)
    schema = gn.Schema(
        [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
    )
    rows = pa.table({"sex": ["F", "M"] * 60, "age": [7, 33, 70] * 40})
    plan = gn.plan(schema, 2, gn.zCDP(0.5))
    spent, answers = timed(lambda: plan.release(rows)["sex", "age"].estimate, count // 10)
    yield (
        "release of a 2 × 3 table",
        spent,
        np.linalg.norm(np.array(answers).reshape(count // 10, -1) - 20, axis=1),
    )


def control(draws):
    """What the table shows where there is nothing, and where there is: sleepless loops as long as
    the noise.
    """
    sizes = np.abs(np.random.default_rng(0).normal(size=draws))
    spent, _ = timed(lambda: sum(range(300)), draws)
    yield "control: no noise at all", spent, sizes
    loops = iter((300 + 100 * sizes).astype(int).tolist())
    spent, _ = timed(lambda: sum(range(next(loops))), draws)
    yield "control: as long as the noise is large", spent, sizes


def main():
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else _DRAWS
    print(
        "| what | times | rank correlation | p | bits | smallest tenth, µs | largest tenth, µs | "
        "verdict |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for rows in (
        control(draws),
        single_draws(draws),
        releases(max(200, draws * _RELEASES // _DRAWS)),
    ):
        for name, spent, sizes in rows:
            print(line(name, spent, sizes), flush=True)


if __name__ == "__main__":
    main()
