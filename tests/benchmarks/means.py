"""Errors of private means at one budget, for the book: each line is a row of its table.

``python tests/benchmarks/means.py gaussnoise`` prints those of this package; ``opendp`` and
``smartnoise`` those of the others, in an environment that has them (SmartNoise SQL needs an older
OpenDP than this package). ``gaussnoise LABEL`` with another version on PYTHONPATH names its rows.

All have ρ = 0.5 for one row more or less. SmartNoise has (ε, δ) = (5.22, 10⁻⁶), which is what
ρ = 0.5 implies, and splits it among the three numbers that it charges for an average.
"""

import functools
import math
import sys
import warnings

import numpy as np

RHO, EPSILON, DELTA = 0.5, 5.22, 1e-6
TRIALS = {"gaussnoise": 100, "opendp": 100, "smartnoise": 25}  # its queries take the longest
LAWS = {  # a function that draws, and the bounds that one would state without looking
    "age": (lambda rng, n: np.clip(np.rint(rng.normal(42, 22, n)), 0, 100), (0.0, 120.0)),
    "income": (
        lambda rng, n: np.where(rng.random(n) < 0.3, 0.0, rng.lognormal(10.2, 0.7, n)),
        (0.0, 1_000_000.0),
    ),
    "days in hospital": (lambda rng, n: np.ceil(rng.lognormal(1.2, 0.9, n)), (0.0, 365.0)),
}
SIZES = 1000, 10_000


def sample_mean(x, bounds):
    return x.mean(), math.nan, math.nan


def gaussnoise_search(x, bounds):
    return gaussnoise_bounds(x, None)


def gaussnoise_bounds(x, bounds):
    import pyarrow as pa

    import gaussnoise as gn

    between = None if bounds is None else {"x": bounds}
    found = gn.estimators.column_means(pa.table({"x": x}), ["x"], gn.zCDP(RHO), between=between)
    [mean] = found.means
    return mean.mean, mean.low, mean.high


@functools.cache
def opendp_parts(bounds, rho):
    """A sum of clamped numbers and a count, each with half of the budget."""
    import opendp.prelude as dp

    space = opendp_space()
    total = space >> dp.t.then_clamp(bounds) >> dp.t.then_sum()
    number = space >> dp.t.then_count()
    return [
        dp.binary_search_chain(lambda scale, own=own: own >> dp.m.then_gaussian(scale), 1, rho / 2)
        for own in (total, number)
    ]


def opendp_space():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()


def opendp_mean(x, bounds, rho):
    sums, count = (part(x.tolist()) for part in opendp_parts(bounds, rho))
    return sums / count, math.nan, math.nan


def opendp_bounds(x, bounds):
    return opendp_mean(x, bounds, RHO)


@functools.cache
def opendp_high():
    """The 99 % quantile among public candidates, found with a quarter of the budget."""
    import opendp.prelude as dp

    space, candidates = opendp_space(), np.geomspace(1.0, 1e7, 500).tolist()

    def found(scale):
        return space >> dp.m.then_private_quantile(
            dp.zero_concentrated_divergence(), candidates, alpha=0.99, scale=scale
        )

    return dp.binary_search_chain(found, 1, RHO / 4)


def opendp_quantile(x, bounds):
    return opendp_mean(x, (0.0, opendp_high()(x.tolist())), RHO * 3 / 4)


def smartnoise_bounds(x, bounds):
    import pandas as pd
    from snsql import Privacy, from_df

    column = {"type": "float", "lower": bounds[0], "upper": bounds[1]}
    described = {"": {"s": {"t": {"rows": len(x), "row_privacy": True, "x": column}}}}
    privacy = Privacy(epsilon=EPSILON / 3, delta=DELTA / 3)
    reader = from_df(pd.DataFrame({"x": x}), privacy=privacy, metadata=described)
    query = "SELECT AVG(x) AS mean FROM s.t"
    assert reader.get_privacy_cost(query)[0] <= EPSILON * (1 + 1e-6)
    return reader.execute(query)[1][0], math.nan, math.nan


METHODS = {
    "gaussnoise": {
        "no privacy": sample_mean,
        "{}, bounds found": gaussnoise_search,
        "{}, public bounds": gaussnoise_bounds,
    },
    "opendp": {
        "OpenDP {}, bounds by a private quantile": opendp_quantile,
        "OpenDP {}, public bounds": opendp_bounds,
    },
    "smartnoise": {"SmartNoise SQL {}, public bounds": smartnoise_bounds},
}


def cell(method, law, n, trials):
    """Root mean square error about the truth; and of intervals half the median width, and coverage.

    Trials without an answer are counted.
    """
    draw, bounds = LAWS[law]
    truth = draw(np.random.default_rng(99), 10**7).mean()
    rng, found = np.random.default_rng(n), []
    for _ in range(trials):
        found.append(method(draw(rng, n), bounds))
    mean, low, high = np.array(found, dtype=float).T
    known = np.isfinite(mean)
    if not known.any():
        return "none"
    text = f"{np.sqrt(np.square(mean[known] - truth).mean()):.3g}"
    if np.isfinite(low[known]).all():
        half = np.median(high[known] - low[known]) / 2
        covered = ((low <= truth) & (truth <= high))[known].mean()
        text += f" (± {half:.3g}, {100 * covered:.0f} %)"
    return text + ("" if known.all() else f" in {100 * known.mean():.0f} %")


if __name__ == "__main__":
    package, *label = sys.argv[1:]
    warnings.simplefilter("ignore")
    for name, method in METHODS[package].items():
        cells = [cell(method, law, n, TRIALS[package]) for law in LAWS for n in SIZES]
        print("|", " | ".join([name.format(*(label or [package])), *cells]), "|", flush=True)
