"""Tools of an auditor: lower bounds on ε, tests of fit, mutants of the mechanism, and nets for
leaked values.
"""

import contextlib
import functools
import io
import itertools
import math
import os
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import optimize, stats

import gaussnoise as gn
from gaussnoise.privacy import sampler as _sampler
from gaussnoise.tables.planning import measure as _measure
from gaussnoise.tables.release import stream as _stream

# Probability that one correct mechanism is accused, or a test of fit fails by chance.
ALARM = 1e-6
# Where some ten thousand draws see most of what a Gaussian spends: ε = 2.9 in truth, about 2.2
# proven.
RHO = 2.0
DELTA = 0.2


# ε, from below.


def gaussian_epsilon(rho, delta):
    """The least ε of a Gaussian that spends ρ exactly (Balle & Wang 2018, Theorem 8, with μ²
    = 2ρ).
    """
    mu = math.sqrt(2 * rho)

    def excess(epsilon):
        left, right = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return stats.norm.cdf(left) - math.exp(epsilon + stats.norm.logcdf(right)) - delta

    return optimize.brentq(excess, 0, 100) if excess(0) > 0 else 0.0


@functools.cache
def _least_share(hits, draws, error):
    return stats.beta.ppf(error, hits, draws - hits + 1) if hits else 0.0


@functools.cache
def _largest_share(hits, draws, error):
    return stats.beta.isf(error, hits + 1, draws - hits) if hits < draws else 1.0


def bound_from_hits(left_hits, right_hits, draws, delta, alarm=ALARM):
    """Clopper–Pearson lower bound on ε: ``P(S) <= e^ε Q(S) + δ``, given how often S happened among
    ``draws`` each.
    """
    p = _least_share(int(left_hits), draws, alarm / 2)
    q = _largest_share(int(right_hits), draws, alarm / 2)
    return math.log((p - delta) / q) if p > delta else -math.inf


Score = Callable[[np.ndarray], np.ndarray]


def epsilon_bound(
    left, right, fit: Callable[[np.ndarray, np.ndarray], Score], delta=DELTA, alarm=ALARM
):
    """A lower bound on ε that holds with probability ``1 - alarm``, from outputs on two neighbours,
    one a row.

    The first half teaches the attacker a score and a threshold, the second half is counted. The
    rows of one side must be independent; left and right may share their noise, as each has a bound
    of its own, at half the alarm.
    """
    half = len(left) // 2
    score = fit(left[:half], right[:half])
    seen_left, seen_right = score(left[:half]), score(right[:half])
    thresholds = np.unique(
        np.quantile(np.concatenate([seen_left, seen_right]), np.linspace(0.01, 0.999, 120))
    )
    found = [
        bound_from_hits((seen_left > t).sum(), (seen_right > t).sum(), half, delta, alarm)
        for t in thresholds
    ]
    best = thresholds[int(np.argmax(found))]
    new_left, new_right = score(left[half:]), score(right[half:])
    return bound_from_hits(
        (new_left > best).sum(), (new_right > best).sum(), len(new_left), delta, alarm
    )


def likelihood_ratio(difference) -> Callable[[np.ndarray, np.ndarray], Score]:
    """Of two Gaussians a known ``difference`` apart, whose covariance the attacker estimates."""
    difference = np.asarray(difference, dtype=np.float64)

    def fit(left, right):
        pooled = np.vstack([left - left.mean(axis=0), right - right.mean(axis=0)])
        size = np.sqrt(np.square(pooled).mean(axis=0)) + np.abs(difference)
        size[size == 0] = 1.0
        scaled = pooled / size
        # the ridge keeps directions without noise finite; where the truths differ along one it is a
        # separation of 1e4
        covariance = scaled.T @ scaled / len(scaled) + 1e-9 * np.eye(len(difference))
        weights = np.linalg.solve(covariance, difference / size) / size
        middle = right.mean(axis=0)
        return lambda outputs: (outputs - middle) @ weights

    return fit


def low_bits(values):
    """The largest k ≤ 80 such that the first number of each row is a multiple of 2^-80 2^k: what
    rounding leaves.
    """
    numerators, denominators = zip(
        *(float(v).as_integer_ratio() for v in np.asarray(values)[:, 0]), strict=True
    )
    odd = [(n & -n).bit_length() if n else 200 for n in map(int, numerators)]
    return np.array(
        [min(80 + o - d.bit_length(), 80) for o, d in zip(odd, denominators, strict=True)]
    )


def low_bits_ratio(left, right) -> Score:
    """How much likelier each class of low bits is on the left, as seen."""
    seen = [
        np.bincount(np.maximum(low_bits(side), 0), minlength=81) + 0.5 for side in (left, right)
    ]
    table = np.log(seen[0] / seen[1])
    return lambda outputs: table[np.maximum(low_bits(outputs), 0)]


# Neighbouring data and what is drawn on them.


def names(positions):
    return tuple(f"a{i}" for i in positions)


def planned(sizes, subsets, rho=RHO, **options):
    schema = gn.Schema([gn.Attribute(f"a{i}", range(n)) for i, n in enumerate(sizes)])
    return gn.plan(schema, [names(S) for S in subsets], gn.zCDP(rho), **options)


def table_of(records, width):
    columns = np.asarray(records, dtype=np.int64).reshape(-1, width).T
    return pa.table({f"a{i}": column for i, column in enumerate(columns)})


def tables_of(records, plan):
    """Counts of every planned marginal, by brute force, in plan order."""
    tables = {}
    for S in plan.domain.subsets:
        tables[S] = np.zeros([plan.schema.sizes[i] for i in S], dtype=np.int64)
        for record in records:
            tables[S][tuple(record[i] for i in S)] += 1
    return tables


def flat(tables, plan):
    return np.concatenate([np.ravel(tables[S]) for S in plan.domain.subsets]).astype(np.float64)


def worst_neighbours(plan, base=()):
    """Records of two neighbours whose answers differ most; a person's rows move together."""
    rows = list(itertools.product(*map(range, plan.schema.sizes)))
    k = plan.rows_per_person
    if plan.neighbors == "add-remove":
        return [*base, *[rows[0]] * k], list(base)

    def change(row):
        return sum(
            int(np.square((a - b).astype(object)).sum())
            for a, b in zip(ans[rows[0]], ans[row], strict=True)
        )

    ans = {row: answers(plan, tables_of([row], plan)) for row in rows}
    return [*base, *[rows[0]] * k], [*base, *[max(rows, key=change)] * k]


def answers(plan, tables):
    """The exact integers of a release, in the order they get their noise."""
    query, seen, found = plan.query, set(), []
    for S in plan.domain.subsets:
        for T in _stream.measured_parts(S, query):
            if T not in seen:
                seen.add(T)
                found.append(query.answer(T, _stream.part_of(tables[S], S, T)))
    return found


def noisy_integers(plan, sides, draws):
    """What ``draws`` releases of each side's records measure, before any decoding: arrays of shape
    (draws, integers).

    All sides get the same noise: drawing is what takes time here, and no draw knows the data.
    """
    exact = [
        np.concatenate([np.zeros(0), *answers(plan, tables_of(side, plan))]).astype(np.int64)
        for side in sides
    ]
    noise = np.array(plan.query.query.draw(draws * len(exact[0]))).reshape(draws, len(exact[0]))
    return [(answer + noise).astype(np.float64) / plan.query.query.scale for answer in exact]


def exact_integers(plan, records):
    exact = np.concatenate(answers(plan, tables_of(records, plan)))
    return exact.astype(np.float64) / plan.query.query.scale


def streamed(plan, tables, draws):
    """Estimates of ``draws`` releases, all planned tables side by side, without counting records
    anew each time.
    """
    query = plan.query
    draw = query.query.draw if query.query else (lambda count: [0] * count)
    with _sampler.noise_stream(draw, draws * query.count, 1) as noise:
        return np.array(
            [
                flat(
                    dict(
                        _stream.noisy_tables(
                            iter(tables.items()), plan.domain.subsets, query, noise
                        )
                    ),
                    plan,
                )
                for _ in range(draws)
            ]
        )


def released(mechanism, counts, draws):
    return np.array([mechanism.release(counts=counts).estimate for _ in range(draws)])


def line_mechanism(neighbors, rho=RHO, points=(0.0, 1.0), n=1, p=2):
    noise = gn.optimal_noise(gn.FiniteSet(np.reshape(points, (-1, 1))), p, neighbors=neighbors)
    return gn.GaussianMechanism(noise, gn.zCDP(rho), n=None if neighbors == "add-remove" else n)


def line_neighbours(mechanism):
    """Counts of two neighbours as far apart as can be."""
    points = mechanism.noise.domain.points[:, 0]
    low, high = np.zeros(len(points), dtype=np.int64), np.zeros(len(points), dtype=np.int64)
    if mechanism.noise.neighbors == "add-remove":
        high[np.argmax(np.abs(points))] += 1
    else:
        low[np.argmin(points)] += mechanism.n
        high[np.argmin(points)] += mechanism.n - 1
        high[np.argmax(points)] += 1
    return high, low


def line_integers(mechanism, sides, draws):
    """As :func:`noisy_integers`, of counts of points."""
    lattice = mechanism._lattice
    exact = [np.array(lattice.sums([int(c) for c in counts]), dtype=np.int64) for counts in sides]
    noise = np.array(lattice.query.draw(draws * lattice.rank)).reshape(draws, lattice.rank)
    return [(answer + noise).astype(np.float64) / lattice.scale for answer in exact]


def line_difference(mechanism):
    high, low = line_neighbours(mechanism)
    sums = [
        np.array(mechanism._lattice.sums([int(c) for c in side]), dtype=np.float64)
        for side in (high, low)
    ]
    return (sums[0] - sums[1]) / mechanism._lattice.scale


def audit_tables(plan, draws):
    """Lower bound on ε of a plan, from the integers it measures."""
    high, low = worst_neighbours(plan)
    left, right = noisy_integers(plan, (high, low), draws)
    difference = exact_integers(plan, high) - exact_integers(plan, low)
    return epsilon_bound(left, right, likelihood_ratio(difference))


def audit_streams(plan, draws, base=((0, 0), (1, 1))):
    """The same from the tables themselves."""
    high, low = (tables_of(side, plan) for side in worst_neighbours(plan, base))
    left, right = streamed(plan, high, draws), streamed(plan, low, draws)
    return epsilon_bound(left, right, likelihood_ratio(flat(high, plan) - flat(low, plan)))


def audit_line(mechanism, draws):
    high, low = line_neighbours(mechanism)
    left, right = line_integers(mechanism, (high, low), draws)
    return epsilon_bound(left, right, likelihood_ratio(line_difference(mechanism)))


def lattice_noise(mechanism, draws):
    """Its integers, one draw a row."""
    lattice = mechanism._lattice
    return np.array(lattice.query.draw(draws * lattice.rank), dtype=object).reshape(
        draws, lattice.rank
    )


def audit_records(mechanism, high, low, noise, on_outside="refuse"):
    """The same for records of a convex body, given as two neighbouring data sets, and draws of its
    noise.
    """
    lattice = mechanism._lattice
    exact = [
        np.array(lattice.sums(np.array(X, dtype=float), on_outside), dtype=object)
        for X in (high, low)
    ]
    samples = [((answer + noise) / lattice.scale).astype(np.float64) for answer in exact]
    difference = ((exact[0] - exact[1]) / lattice.scale).astype(np.float64)
    return epsilon_bound(*samples, likelihood_ratio(difference))


# Mutants: mechanisms with one thing wrong.


@dataclass(frozen=True)
class Mutant:
    """A fault to inject, and an audit that must prove more ε than is claimed."""

    name: str
    inject: Callable[[pytest.MonkeyPatch], None]
    audit: Callable[[], float]


def scaled_noise(factor):
    def inject(patch):
        patch.setattr(
            _sampler.IntegerQuery,
            "draw",
            lambda query, count: _sampler.discrete_gaussian(factor * query.scale)([0] * count),
        )

    return inject


def _wrong_relation(patch):
    right = _measure.squared_sensitivity
    patch.setattr(
        _measure,
        "squared_sensitivity",
        lambda orbits, bases, squares, _: right(orbits, bases, squares, "add-remove"),
    )


def _wrong_relation_of_points(patch):
    from gaussnoise.mechanisms import point_lattice as _lattice

    right = _lattice._largest_change
    patch.setattr(
        _lattice, "_largest_change", lambda integers, bits, _: right(integers, bits, "add-remove")
    )


def _persons_as_rows(patch):
    patch.setattr(gn.Plan, "row_rho", property(lambda plan: plan.rho))


def _reused_noise(patch):
    right, last = _measure.ResidualQuery.noisy, {}

    def noisy(query, T, marginal, noise):
        if not T:
            last["noise"] = noise[0]
        return right(query, T, marginal, np.full_like(noise, last["noise"]))

    patch.setattr(_measure.ResidualQuery, "noisy", noisy)


def _exact_total(patch):
    right = _measure.ResidualQuery.noisy
    patch.setattr(
        _measure.ResidualQuery,
        "noisy",
        lambda query, T, marginal, noise: right(
            query, T, marginal, noise if T else np.zeros_like(noise)
        ),
    )


def _one_table_forgotten(patch):
    right = _measure.ResidualQuery.noisy
    patch.setattr(
        _measure.ResidualQuery,
        "noisy",
        lambda query, T, marginal, noise: right(
            query, T, marginal, noise if T != (0,) else np.zeros_like(noise)
        ),
    )


def _rounded_answers(patch):
    right = _measure.ResidualQuery.answer
    patch.setattr(
        _measure.ResidualQuery,
        "answer",
        lambda query, T, marginal: right(
            query, T, np.asarray(marginal.astype(np.float32)).astype(np.int64)
        ),
    )


def _float_preimage_bound(draws=4000):
    """Noise at unit scale on ``round(A⁻¹ counts)`` in float64, where counts are near 2⁵³."""
    A = np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2)
    high, low = (
        np.array([2**55 + 4 + k, 3]) for k in (1, 0)
    )  # half way between two floats: to even, 8 further

    def outputs(counts):
        noise = np.array(_sampler.IntegerQuery(1, RHO).draw(2 * draws)).reshape(draws, 2)
        return (
            np.rint(A @ counts.astype(np.float64)) - np.rint(A @ low.astype(np.float64))
        ) + noise

    step = np.rint(A @ high.astype(np.float64)) - np.rint(A @ low.astype(np.float64))
    return epsilon_bound(outputs(high), outputs(low), likelihood_ratio(step))


def _nothing(patch):
    pass


def _twice_the_budget(draws=14_000):
    """Two marginals, each with noise for the whole budget, claimed to cost it once."""
    plans = [planned((2, 2), [S], RHO) for S in ((0,), (1,))]
    sides = [[], []]
    differences = []
    for plan in plans:
        high, low = worst_neighbours(plan)
        differences.append(exact_integers(plan, high) - exact_integers(plan, low))
        for side, outputs in zip(sides, noisy_integers(plan, (high, low), draws), strict=True):
            side.append(outputs)
    left, right = (np.hstack(side) for side in sides)
    return epsilon_bound(left, right, likelihood_ratio(np.concatenate(differences)))


def two_tables(neighbors="add-remove", **options):
    return planned((2, 3), [(0, 1), (1,)], neighbors=neighbors, **options)


def one_table(categories, neighbors="add-remove"):
    return planned((categories,), [(0,)], neighbors=neighbors)


MUTANTS = [
    Mutant("noise × 0.7 on tables", scaled_noise(0.7), lambda: audit_tables(one_table(3), 14_000)),
    Mutant(
        "noise × 0.7 on tables, replace",
        scaled_noise(0.7),
        lambda: audit_tables(one_table(3, "replace"), 14_000),
    ),
    Mutant(
        "noise × 0.7 on sums",
        scaled_noise(0.7),
        lambda: audit_line(line_mechanism("add-remove"), 20_000),
    ),
    Mutant(
        "noise × 0.7 on means",
        scaled_noise(0.7),
        lambda: audit_line(line_mechanism("replace"), 20_000),
    ),
    Mutant(
        "add-remove sensitivity for replace",
        _wrong_relation,
        lambda: audit_tables(one_table(2, "replace"), 8000),
    ),
    Mutant(
        "add-remove sensitivity for replaced points",
        _wrong_relation_of_points,
        lambda: audit_line(line_mechanism("replace", points=(0.0, -1.0, 1.0)), 4000),
    ),
    Mutant(
        "k² forgotten for k rows",
        _persons_as_rows,
        lambda: audit_tables(two_tables(rows_per_person=3), 2000),
    ),
    Mutant(
        "k² forgotten for k rows, replace",
        _persons_as_rows,
        lambda: audit_tables(two_tables("replace", rows_per_person=3), 2000),
    ),
    Mutant("float preimage", _nothing, _float_preimage_bound),
    Mutant("answers rounded to float32", _rounded_answers, lambda: audit_big_counts(1000)),
    Mutant("noise reused between tables", _reused_noise, lambda: audit_streams(two_tables(), 1000)),
    Mutant("exact total under add-remove", _exact_total, lambda: audit_streams(two_tables(), 1000)),
    Mutant(
        "one table without noise", _one_table_forgotten, lambda: audit_streams(two_tables(), 1000)
    ),
    Mutant("one budget for two marginals", _nothing, _twice_the_budget),
]


def audit_big_counts(draws):
    """Tables of some 2²⁵ rows, half way between two float32."""
    plan = planned((2, 3), [(0, 1)])
    low = {(0, 1): np.array([[2**25 + 2, 0, 0], [0, 1, 2]])}
    high = {(0, 1): low[0, 1] + np.array([[1, 0, 0], [0, 0, 0]])}
    left, right = streamed(plan, high, draws), streamed(plan, low, draws)
    # what the mutant makes of one row more is for the attacker to learn
    return epsilon_bound(
        left, right, likelihood_ratio(left[: draws // 2].mean(0) - right[: draws // 2].mean(0))
    )


# Fit, with power.


def whitened(errors, covariance):
    """Independent standard normals if the errors have the covariance; also what lies where there is
    no noise.
    """
    values, vectors = np.linalg.eigh(covariance)
    there = values > 1e-10 * max(values.max(), 1e-300)
    return errors @ vectors[:, there] / np.sqrt(values[there]), errors @ vectors[:, ~there]


def scale_fits(z):
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], z.size)
    return bool(low <= np.square(z).sum() <= high)


def mean_fits(z):
    return bool(len(z) * np.square(z.mean(axis=0)).sum() <= stats.chi2.isf(ALARM, z.shape[1]))


def shape_fits(z):
    return bool(stats.kstest(z.ravel(), "norm").pvalue > ALARM)


def directions_fit(z):
    """Coordinates have variance one each and no correlation: the scatter matrix against its Wishart
    moments.
    """
    n, d = z.shape
    scatter = (z.T @ z / n - np.eye(d)) * math.sqrt(n)
    deviation = 1 + (math.sqrt(2) - 1) * np.eye(d)
    # Bonferroni over d² entries; chi-square tails beyond the normal's are allowed for by the factor
    return bool((np.abs(scatter) / deviation).max() <= 1.25 * stats.norm.isf(ALARM / d**2))


# Nets for leaked values.


CANARY = "CANARY-7391"
NUMBER = 739173917391
MARKS = ("CANARY", "7391739")


def said(error):
    """Everything an exception could show: message, arguments, notes, traceback and hidden
    ancestors.
    """
    seen, waiting, parts = set(), [error], []
    while waiting:
        error = waiting.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            parts += [str(error), repr(error), repr(error.args), *getattr(error, "__notes__", [])]
            parts += traceback.TracebackException.from_exception(error).format()
            waiting += [error.__cause__, error.__context__]
    # the traceback quotes the source lines of this very test suite
    return "\n".join(
        line for part in parts for line in part.split("\n") if not line.startswith("    ")
    )


class Caught:
    """What was printed and warned, filled in at the end."""

    text = ""


@contextlib.contextmanager
def listening() -> Iterator[Caught]:
    """Standard output and error down to their file descriptors, and every warning."""
    caught, shown = Caught(), io.StringIO()
    with tempfile.TemporaryFile() as file, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        saved = [os.dup(fd) for fd in (1, 2)]
        try:
            for fd in (1, 2):
                os.dup2(file.fileno(), fd)
            # what runs the tests may have put its own objects there
            with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
                yield caught
        finally:
            for fd, old in zip((1, 2), saved, strict=True):
                os.dup2(old, fd)
                os.close(old)
            file.seek(0)
            printed = file.read().decode(errors="replace")
            caught.text = "\n".join([printed, shown.getvalue(), *(str(w.message) for w in warned)])


def written(folder):
    """Names and bytes of all files, as text."""
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return "\n".join(f"{path.name}\n{path.read_bytes().decode(errors='replace')}" for path in files)


def leaks(*texts: str) -> Sequence[str]:
    return [mark for mark in MARKS for text in texts if mark in text]
