"""Errors of private regressions at one budget, for the book: each line is a row of its table.

``python tests/benchmarks/regressions.py gaussnoise`` prints the rows of this package; ``opendp``,
``diffprivlib`` and ``smartnoise`` those of the others, in an environment that has them (they need
other versions of scikit-learn and OpenDP than this package).

All have ρ = 0.1 for one row more or less, and the same public bounds. diffprivlib has pure
ε = √(2ρ), the largest that implies ρ; SmartNoise has the (ε, δ) = (2.142, 10⁻⁶) that ρ implies.
"""

import functools
import math
import sys
import warnings

import numpy as np

RHO, EPSILON, DELTA = 0.1, 2.142, 1e-6
TRIALS = {"gaussnoise": 200, "opendp": 200, "diffprivlib": 200, "smartnoise": 10}
BOUNDS = (0.0, 100.0)
SLOPE = 0.5
LAWS = {  # of the number that explains
    "0 to 100": lambda rng, n: rng.uniform(*BOUNDS, n),
    "50 ± 8": lambda rng, n: rng.normal(50, 8, n),
}
SIZES = 1000, 10_000
BINS = 20  # of each number, for synthetic records


def least_squares(x, y):
    return np.polyfit(x, y, 1)[0], math.nan, math.nan


@functools.cache
def plan_of_moments():
    import gaussnoise as gn

    squares = {"kind": "moments", "degrees": [0, 1, 2]}
    schema = gn.Schema([gn.Attribute(name, clip=BOUNDS, base=squares) for name in "xy"])
    return gn.plan(schema, [("x", "y")], gn.zCDP(RHO))


def gaussnoise_regress(x, y):
    import pyarrow as pa

    import gaussnoise as gn

    try:
        found = plan_of_moments().release(pa.table({"x": x, "y": y})).regress("y", on=["x"])
    except gn.errors.ParameterError:
        return math.nan, math.nan, math.nan
    low, high = found.population_interval()
    return found.estimate[1], low[1], high[1]


@functools.cache
def plan_of_bins():
    import gaussnoise as gn

    edges = np.linspace(*BOUNDS, BINS + 1).tolist()
    schema = gn.Schema([gn.Attribute(name, edges=edges) for name in "xy"])
    return gn.plan(schema, [("x", "y")], gn.zCDP(RHO))


def gaussnoise_synthetic(x, y):
    """Return the slope of records that mbi draws from the released table of bins."""
    import pyarrow as pa

    records = plan_of_bins().release(pa.table({"x": x, "y": y})).synthetic(len(x))
    labels = plan_of_bins().schema.attributes[0].labels
    middle = dict(zip(labels, middles(), strict=True))
    return least_squares(*(np.array([middle[own] for own in records[a].to_pylist()]) for a in "xy"))


def middles():
    edges = np.linspace(*BOUNDS, BINS + 1)
    return (edges[1:] + edges[:-1]) / 2


@functools.cache
def theil_sen():
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics", "floating-point")
    from opendp.extras.sklearn.linear_model import _make_private_theil_sen

    def of_scale(scale):
        measure = dp.zero_concentrated_divergence()
        return _make_private_theil_sen(measure, BOUNDS, BOUNDS, scale=scale)

    scale = dp.binary_search(lambda scale: of_scale(scale).map(1) <= RHO, bounds=(1e-3, 1e4))
    return of_scale(scale)


def opendp_theil_sen(x, y):
    return theil_sen()(np.column_stack([x, y]))[0], math.nan, math.nan


def diffprivlib_regression(x, y):
    from diffprivlib.models import LinearRegression

    model = LinearRegression(epsilon=math.sqrt(2 * RHO), bounds_X=BOUNDS, bounds_y=BOUNDS)
    return model.fit(x[:, None], y).coef_[0], math.nan, math.nan


def smartnoise_synthetic(x, y, kind="mst"):
    import pandas as pd
    from snsynth import Synthesizer

    edges = np.linspace(*BOUNDS, BINS + 1)
    bins = {name: np.digitize(own, edges[1:-1]) for name, own in (("x", x), ("y", y))}
    model = Synthesizer.create(kind, epsilon=EPSILON, delta=DELTA)
    records = model.fit_sample(
        pd.DataFrame(bins), preprocessor_eps=0.0, categorical_columns=["x", "y"]
    )
    return least_squares(*(middles()[records[name].astype(int)] for name in "xy"))


ROWS = {
    "gaussnoise": {
        "no privacy": least_squares,
        "gaussnoise, `regress`": gaussnoise_regress,
        "gaussnoise, records of mbi": gaussnoise_synthetic,
    },
    "opendp": {"OpenDP, Theil–Sen": opendp_theil_sen},
    "diffprivlib": {"diffprivlib, `LinearRegression`": diffprivlib_regression},
    "smartnoise": {
        "SmartNoise, records of MST": smartnoise_synthetic,
        "SmartNoise, records of AIM": functools.partial(smartnoise_synthetic, kind="aim"),
    },
}


def measured(method, trials):
    cells = []
    for law in LAWS.values():
        for n in SIZES:
            errors, halves, held = [], [], []
            for trial in range(trials):
                rng = np.random.default_rng(trial)
                x = np.clip(law(rng, n), *BOUNDS)
                y = np.clip(20 + SLOPE * x + rng.normal(0, 8, n), *BOUNDS)
                estimate, low, high = method(x, y)
                errors.append(estimate - SLOPE)
                halves.append((high - low) / 2)
                held.append(low <= SLOPE <= high)
            refused = float(np.mean(np.isnan(errors)))
            text = f"{math.sqrt(np.nanmean(np.square(errors))):.2g}" if refused < 1 else "refused"
            if np.isfinite(halves).any():
                share = np.mean(np.array(held)[np.isfinite(errors)])
                text += f" (± {np.nanmedian(halves):.2g}, {share:.0%})"
            cells.append(text + (f", {refused:.0%} refused" if 0 < refused < 1 else ""))
    return cells


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, method in ROWS[sys.argv[1]].items():
        print(f"| {name} | {' | '.join(measured(method, TRIALS[sys.argv[1]]))} |", flush=True)
