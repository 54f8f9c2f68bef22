"""Intervals of means of columns cover as often as they say, for many kinds of numbers."""

import functools
import math
import re

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import gaussnoise as gn
from domains.tables.bases import Base
from gaussnoise.estimators.column_plan import UNSPENT, ColumnPlan
from gaussnoise.estimators.ranges import Counts, exact_in
from gaussnoise.tables.release.population import _mean, _unknown

RELEASES = 100
LEVEL = 0.95


def zeros_or(share, spread):
    """Zeros in a share of rows, and lognormal numbers in the others."""
    draw = lambda rng, n: np.where(rng.random(n) < share, 0.0, rng.lognormal(0, spread, n))  # noqa: E731
    return draw, (1 - share) * math.exp(spread**2 / 2)


def ones(share):
    return lambda rng, n: (rng.random(n) < share).astype(float), share


LAWS = {
    **{f"{share:.0%} ones": ones(share) for share in (0.05, 0.1, 0.12, 0.2, 0.3, 0.5, 0.88, 0.95)},
    **{f"{share:.0%} zeros": zeros_or(share, 0.5) for share in (0.3, 0.5, 0.85, 0.9, 0.92)},
    "normal": (lambda rng, n: rng.normal(size=n), 0.0),
    "normal, far away": (lambda rng, n: 1e6 + rng.normal(size=n), 1e6),
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0),
    "lognormal": (lambda rng, n: rng.lognormal(0, 0.5, n), math.exp(0.125)),
    "skewed": (lambda rng, n: rng.lognormal(0, 1, n), math.exp(0.5)),
    "heavy": (lambda rng, n: rng.standard_t(3, n), 0.0),
    "less heavy": (lambda rng, n: rng.standard_t(5, n), 0.0),
    "Pareto": (lambda rng, n: rng.pareto(3, n), 0.5),
    "geometric": (lambda rng, n: rng.geometric(0.3, n).astype(float), 1 / 0.3),
    "Poisson": (lambda rng, n: rng.poisson(0.5, n).astype(float), 0.5),
    "rare Poisson": (lambda rng, n: rng.poisson(0.1, n).astype(float), 0.1),
    "dice": (lambda rng, n: rng.integers(1, 7, n).astype(float), 3.5),
    "mass at both deciles": (lambda rng, n: rng.choice([-1.0, 0, 1], n, p=[0.1, 0.8, 0.1]), 0.0),
    "mass near them": (lambda rng, n: rng.choice([-1.0, 0, 5], n, p=[0.11, 0.8, 0.09]), 0.34),
    "two hills": (lambda rng, n: rng.normal(rng.choice([-10, 10], n), 1), 0.0),
    "beta": (lambda rng, n: rng.beta(0.1, 0.1, n), 0.5),
    "gamma": (lambda rng, n: rng.gamma(0.2, 1, n), 0.2),
}


OPTIONS = {"neighbors": "add-remove", "person": None, "rows_per_person": 1}
ASKED = ColumnPlan(["x"], [], OPTIONS, {}, "drop", LEVEL)
deviation = functools.cache(ASKED.deviation)


@functools.cache
def noise():
    """The covariance of the noise of the count, sum and sum of squares in −1 … 1, at ρ = ½."""
    rows = np.array([[1.0, 1, 1, 0], [-1, 0, 1, 0], [1, -1, 1, 0]])
    root = np.array([[a + b for b in rows] for a in rows]).reshape(9, 4)
    term = ((0, Base(np.vstack([rows, root]))),)
    found = ASKED.in_unit.covariance.term_variance(term)
    both, own = found[3:].reshape(3, 3), found[:3]
    return (both - own[:, None] - own) / 2


def mean_of(x, rho, rng, ends=(None, None)):
    """The mean of a column as :func:`column_means` finds it, without its table and release.

    This takes a thousandth of the time; the search draws its noise as it always does.
    """
    counts = Counts(exact_in(x), "add-remove", rho, ASKED.wrong / 7)
    unit = deviation(UNSPENT * rho)
    own = ASKED.range_of("x", counts, ends, 1.0, None, unit)
    if own.low is None:
        return _unknown("x", {}, own.number, own.reason)
    u = np.clip((2 * x - own.low - own.high) / (own.high - own.low), -1, 1)
    covariance = noise() / (2 * (rho - own.rho))
    sums = rng.multivariate_normal([len(x), u.sum(), (u * u).sum()], covariance)
    rows = [*np.eye(3), [1, 1, 0]]
    variances = np.array([row @ covariance @ row for row in np.array(rows)])
    z = ASKED.quantile
    return _mean(own, {}, np.r_[sums, sums[:2].sum()], variances, z, own.rho / rho, 2**20, 1)


def misses(law, n, rho, releases=RELEASES, ends=(None, None)):
    """Return how many intervals miss although their assumption holds, and how many there are."""
    draw, truth = LAWS[law]
    rng, many = np.random.default_rng(1), draw(np.random.default_rng(9), 10**6)
    missed = found = 0
    for _ in range(releases):
        mean = mean_of(draw(rng, n), rho, rng, ends)
        found += not mean.reason
        missed += not mean.low <= truth <= mean.high and holds(mean.assumed, many)
    return missed, found


def holds(assumed, many):
    """Return whether the assumption that is stated in words holds for many numbers of a law."""
    if not assumed:
        return True
    number = r"(-?[\d.]+(?:e[-+]\d+)?)"
    said = re.search(rf"from {number}, .* order {number}, is at most {number}", assumed)
    center, order, size = map(float, said.groups())
    moment = (np.abs(many - center) ** order).mean() ** (1 / order)
    return moment <= size and ("below 0" not in assumed or many.min() >= 0)


@pytest.mark.parametrize("law", LAWS)
def test_intervals_cover_where_their_assumption_holds(law):
    """Neither few numbers nor a small budget give an interval that misses too often."""
    for n, rho in ((2000, 0.5), (1000, 0.1), (150, 2.0)):
        missed, _ = misses(law, n, rho)
        assert missed <= stats.binom.isf(1e-6, RELEASES, 1 - LEVEL)


@pytest.mark.parametrize("law", [law for law in LAWS if "ones" in law])
def test_intervals_within_public_bounds_cover_for_few_numbers(law):
    """Rare ones among few rows need Wilson's correction."""
    for n in (40, 200):
        missed, found = misses(law, n, 5.0, ends=(0.0, 1.0))
        assert found == RELEASES
        assert missed <= stats.binom.isf(1e-6, RELEASES, 1 - LEVEL)


def test_most_laws_have_intervals_and_some_refusals():
    seen = {law: misses(law, 2000, 0.5, 10)[1] for law in LAWS}
    assert seen["5% ones"] < 10  # too few ones to find
    assert sum(found == 10 for found in seen.values()) > 20


def test_a_search_without_a_check_misses(monkeypatch):
    """If ends are believed without a check, ones that the search overlooked are left out."""
    monkeypatch.setattr("gaussnoise.estimators.ranges._search", lambda *_: (0.0, 1e-80))
    assert misses("12% ones", 2000, 0.5, 20) == (0, 0)
    monkeypatch.setattr("gaussnoise.estimators.ranges.Counts.outside", lambda *_: (-1e9, -1e9))
    draw, truth = LAWS["12% ones"]
    frame = pa.table({"x": draw(np.random.default_rng(1), 2000)})
    [mean] = gn.estimators.column_means(frame, ["x"], gn.zCDP(0.5)).means
    assert not mean.low <= truth <= mean.high


def test_the_short_way_has_the_noise_of_releases():
    """The parts of an interval agree with those of a release with the same range."""
    rng = np.random.default_rng(2)
    x = rng.exponential(size=5000)
    table, ends = pa.table({"x": x}), {"x": (0, 8)}
    [released] = gn.estimators.column_means(table, ["x"], gn.zCDP(0.01), between=ends).means
    short = mean_of(x, 0.01, rng, (0.0, 8.0))
    assert short.noise == pytest.approx(released.noise, rel=0.1)  # the count of either has noise
    assert short.sampling == pytest.approx(released.sampling, rel=0.2)
    assert abs(short.mean - released.mean) < 4 * short.noise


def persons(rng, n):
    """Rows of n persons, each with a level of their own and up to five rows in two groups."""
    rows = rng.integers(1, 6, n)
    level = np.repeat(rng.exponential(size=n), rows)
    groups = rng.choice(["a", "b"], rows.sum())
    x = level + 0.3 * rng.normal(size=rows.sum()) + (groups == "b")
    return pa.table({"who": np.repeat(np.arange(n), rows), "g": groups, "x": x})


@pytest.mark.integration
@pytest.mark.parametrize("how", ["mean", None])
def test_means_by_group_with_persons_cover(how):
    """Rows of one person depend on each other; both groups have the truths 1 and 2."""
    rng, missed, trials = np.random.default_rng(3), np.zeros(2), 100
    options = {"by": {"g": ["a", "b"]}, "person": "who", "rows_per_person": 2, "per_person": how}
    for _ in range(trials):
        found = gn.estimators.column_means(persons(rng, 800), ["x"], gn.zCDP(2), **options).means
        missed += [not m.low <= t <= m.high for m, t in zip(found, (1, 2), strict=True)]
    assert (missed <= stats.binom.isf(1e-6, trials, 1 - LEVEL)).all()
