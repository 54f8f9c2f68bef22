"""Estimators at the limits of floats, of budgets and of assumptions: rounding is within the stated
bounds, nothing fails because of values once a budget is charged, and files are read exactly as
written or refused.
"""

import copy
import json
import math
import sys
import warnings
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from cases import one_test_of, pairwise

import gaussnoise as gn
from gaussnoise.errors import (
    CertificateError,
    DataError,
    LedgerError,
    ParameterError,
    PrivacyWarning,
    SchemaError,
)
from gaussnoise.estimators import column_plan, publishing
from gaussnoise.tables.planning.ranges import FoundRange

E = gn.estimators

# Rounding. Records and their means are exact fractions; ends are integers, which floats represent.

LARGE = gn.zCDP(1e60)  # noise of 10⁻³⁰ times the range, so that rounding is the only error
SHIFTS = [0.0, 1e6, 1e15]  # at the last, floats are 1/8 apart


def exact_mean(x, low=-math.inf, high=math.inf):
    """Return the exact mean of every column, of numbers moved to the nearest end."""
    return [
        sum(Fraction(min(max(value, low), high)) for value in column) / len(column)
        for column in x.T.tolist()
    ]


def wild(n=300, d=1, shift=0.0):
    return 10 * np.random.default_rng(0).standard_t(3, size=(n, d)) + shift


def tame(n=3000, d=1, shift=0.0):
    """Return records that are at most three from the shift."""
    return np.clip(np.random.default_rng(0).normal(size=(n, d)), -3, 3) + shift


def means(shift):
    """Yield estimates, and the exact mean of the same records: clipped, or with none to clip."""
    x, y, z = wild(shift=shift), tame(shift=shift), tame(d=3, shift=shift)
    yield E.clipped_mean(x, LARGE, bounds=(shift - 5, shift + 7)), (x, shift - 5, shift + 7)
    yield E.clipped_mean(x, LARGE, center=shift, radius=5), (x, shift - 5, shift + 5)
    yield E.clipped_mean(z, LARGE, domain=gn.LpBall(3, 2, radius=6) + np.full(3, shift)), (z,)
    yield E.clipped_mean(z, LARGE, bounds=(shift - 3, np.array([3, 30, 300]) + shift)), (z,)
    yield E.truncated_mean(z, LARGE, moment=2 * shift + 10, order=math.inf), (z,)
    y, radius = y[:, 0], 2 * shift + 10
    pure = gn.PureDP(700)
    for privacy in (LARGE, pure):
        # ten thousand times the rounding of a record in so large a range
        sigma = max(1.0, 1e-10 * shift)
        yield E.gaussian_mean(y, privacy, sigma=sigma, radius=radius, beta=1e-9), (y[:, None],)
    yield E.heavy_tailed_mean(y, LARGE, order=8, radius=radius), (y[:, None],)
    person = np.arange(len(y))
    yield (
        E.person_level_mean(y, LARGE, person=person, samples=1, order=8, radius=radius),
        (y[:, None],),
    )
    turned = np.array([[2, 1, 0.3], [1, 3, 0.1], [0.3, 0.1, 1]])
    for covariance in (None, turned):
        found = E.coinpress_mean(z, LARGE, center=shift, radius=9, covariance=covariance, beta=1e-9)
        yield found, (z,)


def missed(found, exact):
    """Return how far coordinates are off beyond eight deviations of noise, in stated bounds."""
    estimate, noise = found.estimate.ravel().tolist(), found.noise_deviation.ravel()
    wrong = [abs(float(Fraction(a) - b)) for a, b in zip(estimate, exact, strict=True)]
    return (np.array(wrong) - 8 * noise) / found.bias_bound.ravel()


@pytest.mark.parametrize("shift", SHIFTS)
def test_rounding_is_within_the_stated_bounds(shift):
    """The bounds are needed: in most cases noise alone does not explain the error."""
    shares = [missed(found, exact_mean(*given)).max() for found, given in means(shift)]
    assert max(shares) <= 1
    assert sum(share > 0 for share in shares) > len(shares) / 2


def test_bounds_of_rounding_are_next_to_nothing_for_budgets_in_use():
    """Rounding is a millionth of the noise, which is at most a thousandth of the range."""
    x = wild(1000)
    for privacy in (gn.zCDP(0.5), gn.PureDP(1)):
        for found in (
            E.clipped_mean(x, privacy, bounds=(-5, 7)),
            E.clipped_mean(x, privacy, center=0, radius=5),
            E.truncated_mean(x, privacy, moment=30, order=math.inf),
        ):
            assert 0 < found.bias_bound[0] < 1e-6 * found.noise_deviation[0]


@pytest.mark.parametrize(("rho", "counts"), [(1e10, True), (1e5, True), (1.0, False)])
def test_rounding_of_second_moments_is_within_the_stated_bound(rho, counts):
    """The grid of rows is 2⁻²⁰; at ρ = 1 noise is much larger, at 10¹⁰ much smaller."""
    x = tame(20_000, 2) @ np.array([[1.0, 0.4], [0.0, 0.7]])
    found = E.coinpress_covariance(x, gn.zCDP(rho), largest=4, smallest=0.25, beta=1e-9)
    exact = [
        sum(Fraction(a) * Fraction(b) for a, b in zip(x[:, i], x[:, j], strict=True)) / len(x)
        for i in range(2)
        for j in range(2)
    ]
    assert missed(found, exact).max() <= 1
    bound, noise = found.bias_bound.max(), found.noise_deviation.max()
    assert (bound > noise) == counts


def test_rounding_of_means_of_columns_is_within_the_stated_bound():
    """Bounds are wider than all numbers: without noise, the mean is that of the rows."""
    for shift in SHIFTS:
        x = tame(shift=shift)
        bounds = {"x": (x.min() - 1, x.max() + 1)}
        frame = pl.DataFrame({"x": x[:, 0]})
        (found,) = E.column_means(frame, "x", gn.zCDP(1e30), between=bounds).means
        wrong = abs(float(Fraction(found.mean) - exact_mean(x)[0]))
        assert wrong - 4 * found.noise < found.bias


# All kinds of data, with all kinds of assumptions.

TINY, HUGE = 5e-324, sys.float_info.max  # the ends of floats
DATA = {
    "ordinary": np.random.default_rng(0).normal(size=400),
    "zeros": np.zeros(400),
    "1e308": np.full(400, 1e308),
    "both ends": np.tile([HUGE, -HUGE], 200),
    "denormal": np.tile([TINY, -TINY], 200),
    "not finite": np.tile([np.inf, -np.inf, np.nan, 1e308], 100),
    "nothing but nan": np.full(400, np.nan),
    "one row": np.array([3.0]),
    "no row": np.zeros(0),
    "unsigned": np.full(400, 2**64 - 1, dtype=np.uint64),
    "beyond 64 bits": [10**400] * 400,
    "text": ["a"] * 400,
}
# ρ of a table that carries no information, of tables in use, and beyond all of them.
GUARANTEES = [
    *(gn.zCDP(rho) for rho in (TINY, 1e-12, 1.0, 1e25, 1e100, 1e300)),
    *(gn.PureDP(epsilon) for epsilon in (TINY, 1e-12, 2.0)),
    gn.ApproxDP(1, 1e-6),
    gn.GDP(1e150),
]
# The limits of what estimators accept, and of floats.
SIZES = [TINY, 1e-100, 1.0, 1e100, HUGE]
CENTERS = [0.0, 1.0, -1e100, 1e308]
PAIRS = pairwise(list(DATA), GUARANTEES, SIZES, CENTERS)
EACH = {  # estimators by size and place
    "box": lambda x, p, s, c: E.clipped_mean(x, p, bounds=(c - s, c + s), **CLIP),
    "ball": lambda x, p, s, c: E.clipped_mean(x, p, center=c, radius=s, **CLIP),
    "set": lambda x, p, s, c: E.clipped_mean(
        np.reshape(x, (-1, 1)), p, domain=gn.LpBall(1, 2, radius=s), **CLIP
    ),
    "truncated": lambda x, p, s, c: E.truncated_mean(x, p, moment=s, **CLIP),
    "location": lambda x, p, s, c: E.coarse_location(x, p, sigma=s, radius=1e3, center=c, **CLIP),
    "anywhere": lambda x, p, s, c: E.gaussian_mean(x, p, sigma=s, center=c, **CLIP),
    "normal": lambda x, p, s, c: E.gaussian_mean(x, p, sigma=1, radius=s, center=c, **CLIP),
    "heavy": lambda x, p, s, c: E.heavy_tailed_mean(x, p, moment=s, order=100, radius=s, **CLIP),
    "people": lambda x, p, s, c: E.person_level_mean(
        [[v, v] for v in x], p, samples=2, moment=s, radius=s, center=c, **CLIP
    ),
    "pure people": lambda x, p, s, c: E.pure_person_level_mean(
        [[v, v] for v in x], p, samples=2, moment=s, order=100, radius=s, center=c, **CLIP
    ),
    "density": lambda x, p, s, c: E.histogram_density(x, p, lipschitz=s, **CLIP),
    "coinpress": lambda x, p, s, c: E.coinpress_mean(
        x, p, radius=s, covariance=s, center=c, steps=1, **CLIP
    ),
    "covariance": lambda x, p, s, c: E.coinpress_covariance(
        np.reshape(x, (-1, 1)), p, largest=s, smallest=1e-3 * s, steps=2, **CLIP
    ),
    "columns": lambda x, p, s, c: E.column_means(table_of(x), "x", p, spread=s),
    "groups": lambda x, p, s, c: E.column_means(
        table_of(x), ["x"], p, by={"g": ["a", "b"]}, neighbors="replace", order=100
    ),
    "one at random": lambda x, p, s, c: at_random(x),
}
CLIP = {"on_nonfinite": "clip"}


def table_of(x):
    x = np.asarray(x)
    x = x.astype(str) if x.dtype == object else x
    return pl.DataFrame({"x": x, "g": np.resize(["a", "b"], len(x))})


def at_random(x):
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        return E.release_one_at_random(x)


class LateError(AssertionError):
    """A refusal for public reasons that came after data were read."""


@pytest.fixture
def tried(monkeypatch):
    """Run a call; its refusals are typed, and those not about data come before data are read."""
    begun = []
    whole = publishing.check_finite, column_plan.count_marginals

    def watched(number):
        def called(*arguments):
            begun.append(number)
            return whole[number](*arguments)

        return called

    monkeypatch.setattr(publishing, "check_finite", watched(0))
    monkeypatch.setattr(column_plan, "count_marginals", watched(1))

    def call(estimator, *arguments):
        begun.clear()
        try:
            found = estimator(*arguments)
            document = found.as_dict() if isinstance(found, E.ColumnMeans) else found.to_json()
            return str(found), document
        except DataError:
            pass
        except gn.GaussNoiseError as error:
            if begun:
                raise LateError from error
        return None

    return call


@pytest.mark.parametrize("name", EACH)
def test_nothing_fails_by_value_and_nothing_late(name, tried):
    """Every pair of data, guarantee, size and place occurs; warnings are errors here."""
    usual = [("ordinary", privacy, 1.0, 0.0) for privacy in (gn.PureDP(2), gn.ApproxDP(9, 1e-6))]
    given = [*usual, *PAIRS]
    said = []
    for data, privacy, size, center in given:
        try:
            said.append(tried(EACH[name], DATA[data], privacy, size, center))
        except Exception as error:
            error.add_note(f"{data}, {privacy}, {size:g} around {center:g}")
            raise
    assert any(said)
    assert not all(said)


def test_noise_that_cannot_be_drawn_is_noticed_late_without_the_check(tried, monkeypatch):
    monkeypatch.setattr("gaussnoise.estimators.moments.check_ball_mean", lambda *a, **k: None)
    with pytest.raises(LateError):
        tried(EACH["truncated"], DATA["ordinary"], gn.zCDP(1e300), 1.0, 0.0)


@pytest.mark.parametrize("values", [[1e308, -1e308], [HUGE], [TINY, -TINY, 0.0], [1e308, 1.7e308]])
def test_deciles_at_the_ends_of_floats(values):
    """A mean that cannot be known is NaN, with an infinite interval."""
    x = np.resize(values, 3000)
    (found,) = E.column_means(pl.DataFrame({"x": x}), "x", gn.zCDP(1)).means
    assert math.isnan(found.mean) or found.low <= float(exact_mean(x[:, None])[0]) <= found.high


# Arguments, before a table is opened.


class Unopened:
    """A table that fails if any attribute is read."""

    def __getattr__(self, name):
        raise AssertionError(name)


ODD = [True, b"x", 1j, object(), math.nan, 10**5000, np.array([1, 2]), [[1.0]], float]


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("columns", [*ODD, None, 5, [5], {"x": 1}, ["x", "x"], []]),
        (
            "by",
            [
                *ODD,
                *("g", [("g", ["a"])], {"g": "ab"}, {5: ["a"]}, {"g": {"a"}}, {"g": 5}),
                *({"g": categories} for categories in ([], ["a", "a"], ["a", 1], [None], [1.5])),
                *({"g": categories} for categories in ([10**5000], [["a"]], [object()])),
                {"g": list(range(101)), "h": list(range(101))},
            ],
        ),
        ("person", [*ODD, 5, ["who"]]),
        ("neighbors", [*ODD, None, "swap"]),
        ("spread", [*ODD[1:], None, "1", 0, -1, 1e101, 1e-101]),
        ("order", [*ODD[1:], "2", 1, 101, math.inf]),
        (
            "between",
            [
                *ODD,
                *((0, 1), {"y": (0, 1)}, {"x": 0}, {"x": (0,)}, {"x": (1, 0)}, {"x": (0, 0)}),
                *({"x": (0, end)} for end in (math.nan, math.inf, "1", True, 10**5000)),
                *({"x": ends} for ends in ((-HUGE, HUGE), (0, TINY), (-1e308, 7e307))),
            ],
        ),
        ("per_person", [*ODD, "median", ["mean"]]),
        ("rows_per_person", [*ODD, None, 0, 2, 10**12]),
        ("level", [*ODD, None, "0.95", 0, 1]),
        ("privacy", [*ODD, None, 0.1, gn.PureDP(1), gn.zCDP(1e101), gn.zCDP(TINY)]),
    ],
)
def test_arguments_of_column_means_are_refused_before_a_table_is_opened(argument, values):
    for value in values:
        given = {"columns": ["x"], "privacy": gn.zCDP(1), argument: value}
        with pytest.raises((ParameterError, SchemaError)):
            E.column_means(Unopened(), given.pop("columns"), given.pop("privacy"), **given)


@one_test_of("value", [*ODD, None, "a", (1,), ("a", "b"), (0, 10**5000), {0: 1, 1: 2}])
def test_odd_bounds_norms_and_orders_are_refused(value):
    x = DATA["ordinary"]
    with pytest.raises(ParameterError):
        E.clipped_mean(x, gn.zCDP(1), bounds=value)
    for argument in ("p", "on_nonfinite"):
        if value is not True or argument == "on_nonfinite":
            with pytest.raises(ParameterError):
                E.clipped_mean(x, gn.zCDP(1), bounds=(0, 1), **{argument: value})
    for argument in ("setting", "n", "d", "epsilon", "delta", "order", "samples", "radius"):
        with pytest.raises(ParameterError):
            E.rates(**{"setting": "moments", "n": 10, argument: value})


@pytest.mark.parametrize(
    "setting", ["bounded", "moments", "normal", "person", "density", "support"]
)
def test_rates_at_the_ends_of_their_arguments(setting):
    for n, d, eps, k, radius in pairwise(
        [1, 2**53], [1, 2**53], [1e-100, 1e100], [2.0, 100.0, math.inf], [1e-100, 1e100]
    ):
        for rate in E.rates(setting, n, d=d, epsilon=eps, order=k, radius=radius).values():
            assert 0 <= rate.lower
            assert math.isnan(rate.upper) or rate.upper >= rate.lower


# The unit that a budget protects.


def test_a_ledger_tells_persons_of_different_columns_apart(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(3))
    table = pl.DataFrame({"x": DATA["ordinary"], "who": range(400), "house": [1, 2] * 200})
    bounds = {"x": (-5, 5)}
    given = {"ledger": ledger, "neighbors": "add-remove", "between": bounds}
    out = tmp_path / "means"
    found = E.column_means(table, "x", gn.zCDP(1), person="who", id="a", out=out, **given)
    unit = "one person (column 'who'), of whom at most 1"
    assert found.release.plan.privacy_unit == f"{unit} record is counted"
    assert ledger.entries()[0].protects == f"{unit} row is counted under add-remove"
    given["out"] = tmp_path / "other"
    for other in ({"person": "house"}, {}, {"person": "who", "neighbors": "replace"}):
        with pytest.raises(LedgerError, match="protects"):
            E.column_means(table, "x", gn.zCDP(0.1), id="b", **given | other)
    schema = gn.Schema([gn.Attribute("house", [1, 2])])
    plan = gn.plan(schema, ["house"], gn.zCDP(1), person="who")
    plan.release(table, out=tmp_path / "counts", ledger=ledger, id="counts")
    assert len(ledger.entries()) == 2


# Files.

WRONG = [
    None,
    True,
    -1,
    0.5,
    "x",
    "",
    [],
    [1],
    {},
    {"x": 1},
    math.nan,
    math.inf,
    10**4000,
    -(10**400),
]


def mutants(record):
    """Yield the record with every value replaced by each wrong one, put into a list, or omitted."""

    def places(value, path=()):
        yield path
        inner = value.items() if isinstance(value, dict) else ()
        inner = enumerate(value) if isinstance(value, list) else inner
        for key, part in inner:
            yield from places(part, (*path, key))

    for path in list(places(record)):
        if not path:
            yield from WRONG
            continue
        for wrong in [*WRONG, "left out", "nested"]:
            whole = copy.deepcopy(record)
            holder = whole
            for key in path[:-1]:
                holder = holder[key]
            if isinstance(wrong, str) and wrong == "left out":
                del holder[path[-1]]
            elif isinstance(wrong, str) and wrong == "nested":
                holder[path[-1]] = [holder[path[-1]]]
            else:
                holder[path[-1]] = wrong
            yield whole


def whole_answers():
    yield E.clipped_mean(DATA["ordinary"].reshape(-1, 2), gn.ApproxDP(1, 1e-6), bounds=(-3, 3))
    yield E.gaussian_mean(DATA["ordinary"], gn.PureDP(9), sigma=1, radius=10)


def read_again(path, kind):
    """Return whether a file is read; then it can be printed, and written as it was."""
    try:
        found = kind.load(path)
    except CertificateError:
        return False
    assert str(found)
    assert repr(found)
    if isinstance(found, E.Estimate):
        assert found.explain()
    assert json.loads(found.to_json()).keys() == json.loads(path.read_text("utf-8")).keys()
    return True


def test_stored_answers_with_a_wrong_value_are_refused_or_can_be_printed(tmp_path):
    path, tried, read = tmp_path / "answer.json", 0, 0
    for answer in whole_answers():
        for mutant in mutants(json.loads(answer.to_json())):
            path.write_text(json.dumps(mutant), encoding="utf-8")
            tried += 1
            read += read_again(path, type(answer))
    assert tried > 1000
    assert 0 < read < 0.5 * tried  # a wrong number or text that replaces another is read
    for deep in ("[" * 100_000, '{"a":' * 100_000, "9" * 5000):
        path.write_text(deep, encoding="utf-8")
        assert not read_again(path, E.Estimate)


def test_stored_ranges_with_a_wrong_value_are_refused_by_type():
    record = FoundRange("x", 0.0, 8.0, 2.0, 0.1, "so", "", 300.0, 0.2, 137, 0.0025).record()
    assert FoundRange.read(record).record() == record
    read = 0
    for mutant in mutants(record):
        try:
            FoundRange.read(mutant)
            read += 1
        except (TypeError, ValueError, OverflowError):
            pass
    assert read < 60  # a wrong number or text that replaces another is read
