"""Privacy guarantees, exact integer sensitivities, and releases whose noise is tested with
power.
"""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import networkx
import numpy as np
import pytest
from cases import one_test_of
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import l2_distance
from opendp.mod import enable_features
from scipy import stats

import gaussnoise as gn
from gaussnoise import FiniteSet, Marginals
from gaussnoise.errors import (
    BudgetError,
    CovarianceError,
    DataError,
    LedgerError,
    NotAvailableError,
    OutputError,
    ParameterError,
)
from gaussnoise.noise.covariance import FactorCovariance
from gaussnoise.privacy.sampler import MAX_SCALE, IntegerQuery

# Privacy guarantees


@pytest.mark.parametrize("rho", [0, -1, math.nan, math.inf])
def test_zcdp_is_validated(rho):
    with pytest.raises(ParameterError, match="rho > 0"):
        gn.zCDP(rho)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf])
def test_epsilon_is_validated(epsilon):
    with pytest.raises(ParameterError, match="epsilon > 0"):
        gn.ApproxDP(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0, 1, -1, 2, math.nan])
def test_delta_is_validated(delta):
    with pytest.raises(ParameterError, match="0 < delta < 1"):
        gn.ApproxDP(1, delta)
    with pytest.raises(ParameterError, match="0 < delta < 1"):
        gn.zCDP(1).epsilon(delta)


def epsilon_by_renyi(rho, delta):
    """Return ε by Canonne, Kamath & Steinke (2020), Proposition 12, over a grid of Rényi orders."""
    a = 1 + np.logspace(-6, 9, 200_001)
    return np.min(rho * a + (np.log1p(-1 / a) * (a - 1) - np.log(delta) - np.log(a)) / (a - 1))


@pytest.mark.parametrize(("rho", "delta"), [(0.1, 1e-6), (1, 1e-9), (0.003, 1e-5), (20, 1e-3)])
def test_conversion_agrees_with_renyi_orders(rho, delta):
    assert gn.zCDP(rho).epsilon(delta) == pytest.approx(epsilon_by_renyi(rho, delta), rel=1e-7)


# Integer queries


def opendp_map(scale, distance):
    enable_features("contrib")
    return make_gaussian(
        vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale
    ).map(distance)


@pytest.mark.parametrize(
    "squared", [1, 2, 3, 10**6 + 1, 2**53 + 1, 2**96 + 1, 3 * 2**95 + 7, 10**29]
)
def test_distance_is_rounded_up(squared):
    distance = IntegerQuery(squared, 1.0).distance
    assert Fraction(distance) ** 2 >= squared
    assert Fraction(math.nextafter(distance, 0)) ** 2 < squared


@one_test_of("squared", [1, 7, 2**60 + 3])
@one_test_of("budget", [1e-6, 0.3, 0.5, 17.0])
def test_an_integer_query_spends_its_budget_and_no_more(squared, budget):
    query = IntegerQuery(squared, budget)
    assert budget * (1 - 1e-9) <= query.rho <= budget
    assert query.rho == opendp_map(query.scale, query.distance)
    # the exact divergence of the discrete Gaussian
    assert Fraction(squared) / (2 * Fraction(query.scale) ** 2) <= Fraction(budget)


def test_scales_the_sampler_cannot_draw_are_refused():
    with pytest.raises(ParameterError, match="lattice steps"):
        IntegerQuery(2**110, 0.5).scale  # noqa: B018
    assert IntegerQuery(2**107, 0.5).scale <= MAX_SCALE


# Building a mechanism

RNG = np.random.default_rng(0)
SIMPLEX = FiniteSet(np.eye(3))
RANDOM = FiniteSet(RNG.normal(size=(6, 2)))
DEFICIENT = FiniteSet(
    RNG.integers(-3, 4, size=(7, 2)) @ np.array([[1.0, 2.0, 0.1, 0.0], [0.0, 1.0, 0.3, -5.0]])
)
DUPLICATES = FiniteSet([[1.0, 0.5], [0.0, 0.1], [1.0, 0.5], [-0.3, 2.0]])
WIDE = FiniteSet(RNG.normal(size=(4, 9)))

NOISES = {
    "simplex, replace": gn.optimal_noise(SIMPLEX),
    "simplex, gamma": gn.gamma(SIMPLEX),
    "simplex, add-remove": gn.optimal_noise(SIMPLEX, neighbors="add-remove"),
    "random, replace": gn.optimal_noise(RANDOM),
    "random, gamma": gn.gamma(RANDOM),
    "random, add-remove": gn.optimal_noise(RANDOM, neighbors="add-remove"),
    "rank-deficient, replace": gn.optimal_noise(DEFICIENT),
    "rank-deficient, add-remove": gn.optimal_noise(DEFICIENT, neighbors="add-remove"),
    "duplicates, replace": gn.optimal_noise(DUPLICATES),
    "duplicates, add-remove": gn.optimal_noise(DUPLICATES, neighbors="add-remove"),
    "wide, gamma": gn.gamma(WIDE),
    "marginals, replace": gn.optimal_noise(Marginals.all_kway((2, 3), 1).to_finite_set()),
    "huge, replace": gn.optimal_noise(FiniteSet(1e120 * RANDOM.points)),
    "tiny, add-remove": gn.optimal_noise(FiniteSet(1e-120 * RANDOM.points), neighbors="add-remove"),
    "constant coordinate, replace": gn.optimal_noise(
        FiniteSet([[0.1, 0.0], [0.1, 1.0], [0.1, 5.0]])
    ),
}
every = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES.keys())
chosen = pytest.mark.parametrize(
    "noise",
    [NOISES[k] for k in ("random, gamma", "rank-deficient, replace", "duplicates, add-remove")],
)


def mechanism_for(noise, privacy=None, n=12):
    return gn.GaussianMechanism(
        noise, privacy or gn.zCDP(0.5), n=n if noise.neighbors == "replace" else None
    )


def some_counts(noise, n=12):
    return np.random.default_rng(1).multinomial(
        n, np.full(noise.domain.cardinality, 1 / noise.domain.cardinality)
    )


def truth(mechanism, counts):
    return counts @ mechanism.noise.domain.to_finite_set().points / (mechanism.n or 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((NOISES["simplex, add-remove"], gn.zCDP(1), 10), "n is private"),
        ((NOISES["simplex, replace"], gn.zCDP(1)), "expected integer n >= 1"),
        ((NOISES["simplex, gamma"], gn.zCDP(1)), "expected integer n >= 1"),
        ((NOISES["simplex, replace"], gn.zCDP(1), 0), "expected integer n >= 1"),
        ((NOISES["simplex, replace"], gn.zCDP(1), -5), "expected integer n >= 1"),
        ((NOISES["simplex, replace"], gn.zCDP(1), 10.0), "expected integer n >= 1"),
        ((NOISES["simplex, replace"], 0.5, 10), "expected a privacy guarantee"),
        ((NOISES["simplex, replace"], None, 10), "expected a privacy guarantee"),
        ((SIMPLEX, gn.zCDP(1), 10), "expected noise"),
        ((gn.gamma(Marginals((2, 2), [(0, 1)])), gn.zCDP(1), 10), "plan"),
        (
            (gn.optimal_noise(Marginals((2, 2), [(0, 1)]), neighbors="add-remove"), gn.zCDP(1)),
            "plan",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    noise, privacy, *n = arguments
    with pytest.raises(ParameterError, match=message):
        gn.GaussianMechanism(noise, privacy, n=n[0] if n else None)


def test_a_covariance_with_a_bare_direction_is_refused():
    noise = NOISES["random, replace"]
    flat = FactorCovariance(10 * noise.covariance.unit_factor[:, :1], noise.covariance.scale)
    with pytest.raises(CovarianceError, match="without noise"):
        mechanism_for(dataclasses.replace(noise, covariance=flat))


def test_noise_without_any_covariance_is_refused():
    noise = dataclasses.replace(
        NOISES["random, replace"], covariance=FactorCovariance(np.zeros((2, 0)), 1.0)
    )
    with pytest.raises(CovarianceError):
        mechanism_for(noise)


def test_gamma_noise_of_means_is_not_noise_for_sums():
    # the span of K has one dimension more than its affine hull: the number of records
    with pytest.raises(CovarianceError):
        mechanism_for(dataclasses.replace(NOISES["simplex, gamma"], neighbors="add-remove"))


# Its guarantees


@every
@pytest.mark.parametrize(
    "privacy", [gn.zCDP(0.5), gn.zCDP(1e-4), gn.zCDP(1e3), gn.ApproxDP(1, 1e-6)]
)
def test_stated_covariance(noise, privacy):
    mechanism = mechanism_for(noise, privacy)
    rho = privacy.to_zcdp().rho
    expected = noise.covariance.standard_deviation() * math.sqrt(
        noise.sensitivity_squared / (2 * rho)
    )
    expected /= mechanism.n or 1
    np.testing.assert_allclose(mechanism.standard_deviation, expected, rtol=1e-9)
    assert mechanism.error == pytest.approx(
        np.linalg.norm(expected / expected.max()) * expected.max(), rel=1e-9
    )
    np.testing.assert_allclose(
        mechanism.covariance.toarray() / expected.max() ** 2,
        noise.covariance.toarray() / noise.covariance.standard_deviation().max() ** 2,
        atol=1e-9,
    )


def largest_integer_change(mechanism):
    """Return the largest change over every pair of neighbours, in Python integers."""
    rows = mechanism._lattice.strategy
    if mechanism.noise.neighbors == "add-remove":
        return max(sum(x * x for x in row) for row in rows)
    return max(
        sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
        for a, b in itertools.combinations(rows, 2)
    )


@every
def test_integer_sensitivity_is_exact(noise):
    mechanism = mechanism_for(noise)
    assert mechanism._lattice.query.sensitivity_squared == largest_integer_change(mechanism)


def test_integer_sensitivity_of_many_points_is_an_upper_bound():
    domain = FiniteSet(np.random.default_rng(2).normal(size=(1100, 2)))
    mechanism = gn.GaussianMechanism(gn.gamma(domain), gn.zCDP(0.5), n=10)
    rows = np.array(mechanism._lattice.strategy, dtype=object)
    exact = max(int(np.square(rows - row).sum(axis=1).max()) for row in rows)
    stated = mechanism._lattice.query.sensitivity_squared
    assert exact <= stated <= exact + exact // 10**9


@every
@pytest.mark.parametrize("privacy", [gn.zCDP(0.5), gn.zCDP(1e-4), gn.ApproxDP(2, 1e-9)])
def test_the_charge_is_what_opendp_maps_and_within_budget(noise, privacy):
    mechanism = mechanism_for(noise, privacy)
    record = mechanism.release(counts=some_counts(noise)).privacy
    distance = IntegerQuery(record["integer_sensitivity_squared"], 1.0).distance
    assert record["integer_sensitivity_squared"] == largest_integer_change(mechanism)
    assert record["rho_charged"] == mechanism.rho_charged == opendp_map(record["scale"], distance)
    rho = privacy.to_zcdp(max(mechanism._lattice.rank, 1), 2.0**40).rho
    assert rho * (1 - 1e-9) <= record["rho_charged"] <= rho


@every
def test_one_record_moves_the_integers_no_further_than_stated(noise):
    mechanism = mechanism_for(noise)
    counts = [int(c) for c in some_counts(noise)]
    before = mechanism._lattice.sums(counts)
    stated = mechanism._lattice.query.sensitivity_squared
    for i in range(len(counts)):
        for j in range(len(counts)):
            after = counts.copy()
            after[i] += 1
            if noise.neighbors == "replace":
                if not after[j]:
                    continue
                after[j] -= 1
            assert (
                sum(
                    (a - b) ** 2
                    for a, b in zip(mechanism._lattice.sums(after), before, strict=True)
                )
                <= stated
            )


@every
def test_decoding_without_noise_is_the_truth(noise):
    mechanism = mechanism_for(noise)
    counts = some_counts(noise)
    listed = [int(c) for c in counts]
    sums = mechanism._lattice.sums(listed)
    decoded = mechanism._decoded(sums, mechanism._offset(listed))
    exact = truth(mechanism, counts)
    records = 1 if mechanism.n else counts.sum()
    slack = (
        records * mechanism.rounding_bias
        + 1e-11 * np.abs(noise.domain.to_finite_set().points).max() * records
    )
    assert (np.abs(decoded - exact) <= slack).all()
    assert (mechanism.rounding_bias <= 1e-9 * mechanism.standard_deviation.max()).all()


def test_large_counts_are_summed_exactly():
    mechanism = gn.GaussianMechanism(NOISES["random, add-remove"], gn.zCDP(0.5))
    counts = [2**62 + 1, 0, 3, 2**61 + 7, 1, 0]
    sums = mechanism._lattice.sums(mechanism._counts(None, np.array(counts)))
    rows = mechanism._lattice.strategy
    assert sums == [
        sum(c * row[k] for c, row in zip(counts, rows, strict=True)) for k in range(len(rows[0]))
    ]


def test_one_point_costs_nothing_under_replacement():
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(FiniteSet([[3.0, 4.0]] * 2)), gn.zCDP(0.5), n=3
    )
    release = mechanism.release(indices=[0, 1, 1])
    np.testing.assert_array_equal(release.estimate, [3, 4])
    assert mechanism.rho_charged == release.privacy["rho_charged"] == 0
    assert not release.standard_deviation.any()


def test_one_point_is_noised_under_add_remove():
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(FiniteSet([[3.0, 4.0]]), neighbors="add-remove"), gn.zCDP(0.5)
    )
    np.testing.assert_allclose(mechanism.standard_deviation, [3, 4], rtol=1e-9)
    assert mechanism.rho_charged == pytest.approx(0.5)


# The noise that is drawn: fixed thresholds with false alarms near 1e-9, and controls that must fail

ALARM = 1e-9
DRAWS = 400


def whitened(mechanism, errors):
    """Return independent standard normals if the errors have the stated covariance, shape (draws,
    rank).
    """
    L = mechanism.covariance.factor()
    return errors @ np.linalg.pinv(L, rcond=1e-9).T


def scale_is_right(z):
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], z.size)
    return bool(low <= np.square(z).sum() <= high)


def mean_is_right(z):
    return bool(len(z) * np.square(z.mean(axis=0)).sum() <= stats.chi2.isf(ALARM, z.shape[1]))


def draws_are_uncorrelated(z):
    limit = stats.norm.isf(ALARM / z.shape[1] ** 2)
    products = [
        np.mean(z[:, i] * z[:, j]) * math.sqrt(len(z))
        for i, j in itertools.combinations(range(z.shape[1]), 2)
    ]
    return all(abs(product) < limit * 1.1 for product in products)


@chosen
def test_releases_are_unbiased_with_the_stated_covariance(noise):
    mechanism = mechanism_for(noise)
    counts = some_counts(noise)
    errors = np.array([mechanism.release(counts=counts).estimate for _ in range(DRAWS)]) - truth(
        mechanism, counts
    )
    z = whitened(mechanism, errors)
    assert z.shape == (DRAWS, 2)
    assert scale_is_right(z)
    assert mean_is_right(z)
    assert draws_are_uncorrelated(z)
    np.testing.assert_allclose(
        errors, z @ mechanism.covariance.factor().T, atol=1e-9 * np.abs(errors).max()
    )
    assert stats.kstest(z.ravel(), "norm").pvalue > ALARM
    assert len(np.unique(z)) == z.size


@chosen
@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_a_wrong_scale_is_noticed(noise, factor):
    mechanism = mechanism_for(noise)
    counts = some_counts(noise)
    rng = np.random.default_rng(3)
    drawn = [mechanism.simulate(None, rng, counts=counts).estimate for _ in range(DRAWS)]
    z = whitened(mechanism, np.array(drawn) - truth(mechanism, counts))
    assert scale_is_right(z)
    assert mean_is_right(z)
    assert draws_are_uncorrelated(z)
    assert not scale_is_right(factor * z)


@chosen
def test_a_bias_or_a_correlation_is_noticed(noise):
    mechanism = mechanism_for(noise)
    counts = some_counts(noise)
    rng = np.random.default_rng(4)
    drawn = [mechanism.simulate(None, rng, counts=counts).estimate for _ in range(DRAWS)]
    z = whitened(mechanism, np.array(drawn) - truth(mechanism, counts))
    assert not mean_is_right(z + 0.3)
    assert not draws_are_uncorrelated(z @ np.array([[1, 0.5], [0, 1]]))


def test_two_releases_differ():
    mechanism = mechanism_for(NOISES["random, replace"])
    counts = some_counts(mechanism.noise)
    assert (
        mechanism.release(counts=counts).estimate != mechanism.release(counts=counts).estimate
    ).all()


def test_simulations_repeat_and_say_what_they_are():
    mechanism = mechanism_for(NOISES["random, replace"])
    counts = some_counts(mechanism.noise)
    first, second = (
        mechanism.simulate(None, np.random.default_rng(5), counts=counts) for _ in range(2)
    )
    np.testing.assert_array_equal(first.estimate, second.estimate)
    assert first.private is False
    released = mechanism.release(counts=counts)
    assert released.private is True
    for say in (repr, str):
        assert "NOT PRIVATE, a simulation" in say(first)
        assert "NOT PRIVATE" not in say(released)


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0), np.random])
def test_simulations_take_a_generator(rng):
    with pytest.raises(
        ParameterError,
        match=r"expected a numpy Generator, like np\.random\.default_rng\(0\), got",
    ):
        mechanism_for(NOISES["random, replace"]).simulate(None, rng, indices=[0] * 10)


@pytest.mark.parametrize(
    ("privacy", "stated"),
    [
        (gn.zCDP(0.1), "zCDP, rho = 0.1"),
        (gn.ApproxDP(1, 1e-6), "approximate DP, epsilon = 1.0, delta = 1e-06"),
        (gn.GDP(0.5), "Gaussian DP, mu = 0.5"),
        (gn.privacy.TV(0.1), "total variation privacy, alpha = 0.1"),
    ],
)
def test_a_printed_release_shows_estimate_and_guarantee(privacy, stated):
    mechanism = gn.GaussianMechanism(gn.optimal_noise(gn.FiniteSet(np.eye(10))), privacy, n=4)
    release = mechanism.release(indices=[0, 1, 2, 3])
    assert repr(release) == f"Release(10 coordinates, {stated})"
    title, guarantee, *coordinates, more, total, certified = str(release).splitlines()
    assert certified == mechanism.bound.sentence(mechanism.error)
    assert certified.startswith("proven: at most ")
    assert title == "Release: 10 coordinates"
    assert guarantee == f"privacy  {stated}, under replace"
    shown = np.array([[float(number) for number in line.split(" ± ")] for line in coordinates])
    np.testing.assert_allclose(shown[:, 0], release.estimate[:8], rtol=1e-7)
    np.testing.assert_allclose(shown[:, 1], release.standard_deviation[:8], rtol=1e-3)
    assert more == "… and 2 more"
    assert float(total.split()[-1]) == pytest.approx(
        math.sqrt(release.covariance.diagonal().sum()), rel=1e-3
    )


@pytest.mark.parametrize(
    ("privacy", "hint"),
    [
        (gn.LocalDP(1), "LocalMechanism"),
        (gn.PureDP(1), r"no Gaussian is purely ε-DP, hint: zCDP\(rho\) or ApproxDP"),
    ],
)
def test_other_definitions_are_told_where_to_go(privacy, hint):
    with pytest.raises(ParameterError, match=hint):
        gn.GaussianMechanism(NOISES["random, replace"], privacy, n=10)
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    with pytest.raises(ParameterError, match=hint) as caught:
        gn.plan(schema, 1, privacy)
    assert "targets" not in str(caught.value)


# Data


@every
def test_all_forms_of_data_give_the_same_integers(noise):
    mechanism = mechanism_for(noise)
    points = noise.domain.to_finite_set().points
    indices = np.repeat(np.arange(len(points)), some_counts(noise))
    forms = [
        (indices, None),
        (indices.astype(np.uint8), None),
        (indices[::-1].tolist(), None),
        (points[indices], None),
        (points[indices].tolist(), None),
        (None, some_counts(noise)),
        (None, some_counts(noise).tolist()),
    ]
    sums = [mechanism._lattice.sums(mechanism._counts(data, counts)) for data, counts in forms]
    assert all(s == sums[0] for s in sums)


def test_signed_zeros_are_the_same_point():
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(FiniteSet([[0.0, 1.0], [1.0, -0.0]])), gn.zCDP(1), n=2
    )
    assert mechanism._counts(np.array([[-0.0, 1.0], [1.0, 0.0]]), None) == [1, 1]


@pytest.mark.parametrize("data", [[], np.zeros(0, dtype=int), np.zeros((0, 2))])
def test_empty_data_have_noisy_zero_sums(data):
    mechanism = mechanism_for(NOISES["random, add-remove"])
    assert mechanism._counts(data, None) == [0] * 6
    estimate = mechanism.release(data).estimate
    assert (estimate != 0).all()
    assert (np.abs(estimate) < 8 * mechanism.standard_deviation).all()


CANARY = 987654
ROW = RANDOM.points[0]
BAD_DATA = {
    "index too large": ([CANARY] * 12, None),
    "index beyond 64 bits": (np.array([2**64 - CANARY] * 12, dtype=np.uint64), None),
    "negative index": ([-CANARY] * 12, None),
    "float indices": ([CANARY + 0.5] * 12, None),
    "not a number": ([math.nan] * 12, None),
    "text": ([f"patient {CANARY}"] * 12, None),
    "objects": (np.array([{CANARY}] * 12), None),
    "truth values": ([True] * 12, None),
    "ragged": ([[CANARY, 1.0], [2.0]], None),
    "row outside": ([[CANARY, 1.0]] * 12, None),
    "row off by a bit": ([[np.nextafter(ROW[0], 9), ROW[1]]] * 12, None),
    "row not a number": ([[math.nan, CANARY]] * 12, None),
    "complex rows": (np.array([ROW] * 12) + CANARY * 1j, None),
    "rows too long": ([[CANARY] * 3] * 12, None),
    "three dimensions": ([[[CANARY]]], None),
    "scalar": (CANARY, None),
    "negative counts": (None, [12 + CANARY, -CANARY, 0, 0, 0, 0]),
    "float counts": (None, [CANARY + 0.5, 0, 0, 0, 0, 0]),
    "too few counts": (None, [CANARY]),
    "counts beyond 64 bits": (None, [10**30 + CANARY, 0, 0, 0, 0, 0]),
    "text counts": (None, [str(CANARY)] * 6),
    "ragged counts": (None, [[CANARY], [1, 2]]),
}


@one_test_of(("data", "counts"), BAD_DATA.values(), ids=BAD_DATA.keys())
@one_test_of("name", ["random, replace", "random, add-remove"])
def test_bad_data_are_refused_without_being_shown(name, data, counts):
    with pytest.raises(DataError) as caught:
        mechanism_for(NOISES[name]).release(data, counts=counts)
    for error in (caught.value, caught.value.__cause__, caught.value.__context__):
        assert str(CANARY) not in str(error)


@one_test_of("data", [data for data, _ in BAD_DATA.values() if data is not None], ids=lambda _: "")
def test_bad_indices_are_refused_without_being_shown(data):
    with pytest.raises(DataError) as caught:
        mechanism_for(NOISES["random, add-remove"]).release(indices=data)
    for error in (caught.value, caught.value.__cause__, caught.value.__context__):
        assert str(CANARY) not in str(error)


@pytest.mark.parametrize(
    "given", [[3, 0, 5, 1, 2, 4], np.array([3, 0, 5, 1, 2, 4]), [0], [0.5] * 6], ids=repr
)
@pytest.mark.parametrize("door", ["release", "simulate"])
def test_a_list_of_numbers_must_say_what_it_is(monkeypatch, given, door):
    """Counts that were taken for row indices gave meaningless answers, and spent budget."""
    mechanism = mechanism_for(NOISES["random, add-remove"])
    monkeypatch.setattr(
        "gaussnoise.privacy.sampler.IntegerQuery.draw",
        lambda *_: pytest.fail("nothing is to be drawn"),
    )
    options = {} if door == "release" else {"rng": np.random.default_rng(0)}
    with pytest.raises(
        DataError, match=r"hint: counts= says .*, indices= which point each record is at"
    ):
        getattr(mechanism, door)(given, **options)


def test_kinds_of_data_by_name_mean_the_same():
    mechanism = mechanism_for(NOISES["random, add-remove"])
    X = mechanism.noise.domain.points
    forms = [
        {"counts": [1, 0, 2, 0, 0, 0]},
        {"indices": [2, 0, 2]},
        {"rows": X[[0, 2, 2]]},
        {"data": X[[2, 2, 0]]},
    ]
    found = [
        mechanism.simulate(**{"data": None, "rng": np.random.default_rng(3)} | form).estimate
        for form in forms
    ]
    for estimate in found:
        np.testing.assert_array_equal(estimate, found[0])
    assert mechanism.release([]).estimate.shape == X.shape[1:]  # an empty list has no records


@pytest.mark.parametrize(
    "kinds", [("rows", "indices"), ("counts", "indices"), ("data", "rows"), ("counts", "rows")]
)
def test_only_one_kind_of_data_is_given(kinds):
    forms = {"counts": [1, 0, 0, 0, 0, 0], "indices": [0], "rows": [ROW], "data": [ROW]}
    with pytest.raises(
        ParameterError, match="expected either data or counts=, rows=, indices=; got several"
    ):
        mechanism_for(NOISES["random, add-remove"]).release(**{kind: forms[kind] for kind in kinds})
    disc = gn.GaussianMechanism(BODY, gn.zCDP(0.1))
    with pytest.raises(ParameterError, match="indices= belongs to listed points; hint: rows="):
        disc.release(indices=[0])
    assert disc.release(rows=[[0.5, 0.1]]).estimate.shape == (2,)


def test_counts_that_are_floats_are_called_so():
    mechanism = mechanism_for(NOISES["random, add-remove"])
    with pytest.raises(DataError, match=r"got floats with 1 dimensions; hint: counts.astype.int.$"):
        mechanism.release(counts=np.ones(6))
    with pytest.raises(DataError, match=r"got integers with 1 dimensions and another length$"):
        mechanism.release(counts=[1, 2])


@pytest.mark.parametrize(
    ("short", "long"), [(["a"], ["abcdefghijk"]), ([CANARY], [CANARY] * 3), ([0] * 5, [0] * 99)]
)
def test_refusals_do_not_depend_on_the_values(short, long):
    messages = []
    for data in (short, long):
        with pytest.raises(DataError) as caught:
            mechanism_for(NOISES["random, replace"]).release(data)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("records", [0, 11, 13])
def test_another_number_of_records_is_refused(records):
    with pytest.raises(DataError, match=r"exactly n = 12"):
        mechanism_for(NOISES["random, replace"]).release(indices=[0] * records)


def test_data_and_counts_exclude_each_other():
    mechanism = mechanism_for(NOISES["random, add-remove"])
    for data, counts in ((None, None), ([0], [1, 0, 0, 0, 0, 0])):
        with pytest.raises(ParameterError, match="either data or counts"):
            mechanism.release(data, counts=counts)


@pytest.mark.parametrize("option", ["ledger", "id"])
def test_ledgers_and_ids_go_together(option):
    with pytest.raises(ParameterError, match="ledger= and id= together"):
        mechanism_for(NOISES["random, add-remove"]).release(indices=[0], **{option: "x"})


@pytest.fixture
def ledger(tmp_path):
    return gn.Ledger.create(tmp_path / "ledger", gn.zCDP(1.0))


BODY = gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove")


@pytest.mark.parametrize(
    ("noise", "data"),
    [
        (NOISES["random, add-remove"], NOISES["random, add-remove"].domain.points[:2]),
        (BODY, [[0.5, 0.1], [0.0, 1.0]]),
    ],
)
def test_a_ledger_draws_once(ledger, noise, data):
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.4))
    first = mechanism.release(data, ledger=ledger, id="a")
    again = gn.GaussianMechanism(noise, gn.zCDP(0.4)).release(data, ledger=ledger.path, id="a")
    assert (first.estimate == again.estimate).all()
    assert again.private
    assert (again.standard_deviation == mechanism.standard_deviation).all()
    other = mechanism.release(data, ledger=ledger, id="b")
    assert (first.estimate != other.estimate).any()
    with pytest.raises(BudgetError):
        mechanism.release(data, ledger=ledger, id="c")
    assert ledger.spent == pytest.approx(0.8, rel=1e-9)
    with pytest.raises(LedgerError, match="another rho"):
        gn.GaussianMechanism(noise, gn.zCDP(0.1)).release(data, ledger=ledger, id="a")


def test_a_ledger_holds_one_relation(ledger):
    gn.GaussianMechanism(BODY, gn.zCDP(0.1)).release([[0.0, 0.0]], ledger=ledger, id="a")
    means = gn.GaussianMechanism(gn.optimal_noise(gn.LpBall(2, 2)), gn.zCDP(0.1), n=1)
    with pytest.raises(LedgerError, match="protects"):
        means.release([[0.0, 0.0]], ledger=ledger, id="b")


def test_refused_records_leave_no_charge(ledger):
    with pytest.raises(DataError):
        gn.GaussianMechanism(BODY, gn.zCDP(0.1)).release([[3.0, 0.0]], ledger=ledger, id="a")
    assert [(entry.state, entry.rho) for entry in ledger.entries()] == [("refused", 0.0)]
    assert ledger.spent == 0


def test_the_cost_composes_in_dp_accounting():
    accountant = pytest.importorskip("dp_accounting.rdp").RdpAccountant()
    for rho in (0.1, 0.3):
        accountant.compose(gn.GaussianMechanism(BODY, gn.zCDP(rho)).dp_event())
    # zCDP of order α costs ρ α
    assert accountant.get_epsilon(1e-6) == pytest.approx(gn.zCDP(0.4).epsilon(1e-6), rel=0.02)


@pytest.mark.parametrize("name", ["random, add-remove", "random, replace"])
def test_opendp_charges_for_groups_what_the_square_of_their_size_costs(name):
    mechanism = mechanism_for(NOISES[name])
    measurement = mechanism.to_opendp()
    data = np.zeros(mechanism.n or 3, dtype=int).tolist()
    assert np.shape(measurement(data)) == (mechanism.noise.domain.dim,)
    assert measurement(data) != measurement(data)
    for distance in (1, 2, 7):
        cost = measurement.map(distance)
        assert Fraction(cost) >= Fraction(mechanism.rho_charged) * distance**2
        assert cost == pytest.approx(mechanism.rho_charged * distance**2, rel=1e-15)
        # as OpenDP's own map of the integer query charges
        query = mechanism._lattice.query
        assert cost == pytest.approx(opendp_map(query.scale, query.distance * distance), rel=1e-12)


def test_opendp_takes_records_of_bodies():
    measurement = gn.GaussianMechanism(BODY, gn.zCDP(0.1)).to_opendp()
    estimates = np.array([measurement(np.full((50, 2), 0.5)) for _ in range(300)])
    deviation = gn.GaussianMechanism(BODY, gn.zCDP(0.1)).standard_deviation / math.sqrt(300)
    assert (np.abs(estimates.mean(axis=0) - 25) < 6 * deviation).all()


def test_opendp_knows_no_policy_graphs():
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)), neighbors=networkx.path_graph(3))
    with pytest.raises(NotAvailableError, match="policy graphs"):
        gn.GaussianMechanism(noise, gn.zCDP(0.1), n=1).to_opendp()


@pytest.mark.parametrize(
    "privacy", [gn.ApproxDP(1, 1e-6), gn.GDP(0.5), gn.privacy.TV(0.1), gn.KL(0.1)], ids=repr
)
def test_every_definition_is_recorded(privacy):
    mechanism = gn.GaussianMechanism(BODY, privacy)
    record = mechanism.release([[0.0, 0.0]]).privacy
    assert record["definition"]
    assert mechanism.rho_charged <= privacy.to_zcdp(2, 2.0**40).rho
    assert mechanism.rho_charged == pytest.approx(privacy.to_zcdp().rho, rel=1e-6)


# Releases


def test_intervals_cover():
    noise = NOISES["rank-deficient, replace"]
    mechanism = mechanism_for(noise)
    counts = some_counts(noise)
    exact = truth(mechanism, counts)
    rng = np.random.default_rng(6)
    releases = [mechanism.simulate(None, rng, counts=counts) for _ in range(2000)]
    moving = mechanism.standard_deviation > 0
    for level in (0.5, 0.95):
        inside = [
            (r.confidence_interval(level).low <= exact)
            & (exact <= r.confidence_interval(level).high)
            for r in releases
        ]
        hits = np.sum(inside, axis=0)[moving]
        low, high = stats.binom.ppf([ALARM, 1 - ALARM], len(releases), level)
        assert ((low <= hits) & (hits <= high)).all()
    jointly = [r.confidence_interval(0.9, simultaneous=True) for r in releases]
    together = sum(bool(((i.low <= exact) & (exact <= i.high))[moving].all()) for i in jointly)
    assert together >= stats.binom.ppf(ALARM, len(releases), 0.9)


def test_simultaneous_intervals_are_wider_by_sidaks_rule():
    release = mechanism_for(NOISES["random, add-remove"]).release(indices=[0, 1])
    alone, together = (
        release.confidence_interval(0.95),
        release.confidence_interval(0.95, simultaneous=True),
    )
    sidak = stats.norm.ppf((1 + 0.95 ** (1 / 2)) / 2)
    np.testing.assert_allclose(
        (alone.high - alone.low) / 2, 1.959963984540054 * release.standard_deviation
    )
    np.testing.assert_allclose(
        (together.high - together.low) / 2, sidak * release.standard_deviation
    )


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan])
def test_levels_are_validated(level):
    with pytest.raises(ParameterError, match="0 < level < 1"):
        mechanism_for(NOISES["random, add-remove"]).release(indices=[0]).confidence_interval(level)


@chosen
def test_contrasts_know_correlations(noise):
    mechanism = mechanism_for(noise)
    release = mechanism.release(counts=some_counts(noise))
    w = np.arange(1.0, noise.domain.dim + 1)
    contrast = release.contrast(w)
    M = mechanism.covariance.toarray()
    assert contrast.estimate == pytest.approx(w @ release.estimate)
    assert contrast.standard_deviation == pytest.approx(math.sqrt(w @ M @ w))
    low, high = contrast.confidence_interval(0.95)
    assert high - low == pytest.approx(2 * 1.959963984540054 * contrast.standard_deviation)


def test_contrasts_check_the_shape():
    with pytest.raises(ParameterError, match="weights of shape"):
        mechanism_for(NOISES["random, add-remove"]).release(indices=[0]).contrast([1.0])


def test_a_fixed_total_is_known_without_error():
    release = mechanism_for(NOISES["simplex, replace"]).release(counts=[5, 4, 3])
    total = release.contrast([1, 1, 1])
    assert total.estimate == pytest.approx(1, abs=1e-12)
    assert total.standard_deviation <= 1e-11 * release.standard_deviation.max()


def test_a_saved_release_says_everything_once(tmp_path):
    mechanism = mechanism_for(NOISES["random, replace"], gn.ApproxDP(1, 1e-6))
    release = mechanism.release(counts=some_counts(mechanism.noise))
    release.save(tmp_path / "release.json")
    record = json.loads((tmp_path / "release.json").read_text())
    assert record["private"] is True
    assert record["estimate"] == release.estimate.tolist()
    assert record["standard_deviation"] == release.standard_deviation.tolist()
    stated = {
        "definition",
        "epsilon",
        "delta",
        "rho",
        "neighbors",
        "rho_charged",
        "integer_sensitivity_squared",
        "scale",
    }
    assert stated <= record["privacy"].keys()
    before = (tmp_path / "release.json").read_bytes()
    with pytest.raises(OutputError, match="exists already"):
        release.save(tmp_path / "release.json")
    assert (tmp_path / "release.json").read_bytes() == before


def test_what_a_killed_save_left_behind_never_changes_what_it_published(tmp_path, monkeypatch):
    mechanism = mechanism_for(NOISES["simplex, replace"])
    first, second = (mechanism.release(counts=[5, 4, 3]) for _ in range(2))
    monkeypatch.setattr(
        "gaussnoise.files.disk.remove", lambda scratch: None
    )  # killed after the link
    first.save(tmp_path / "release.json")
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.undo()
    with pytest.raises(OutputError, match="exists already"):
        second.save(tmp_path / "release.json")
    assert (
        json.loads((tmp_path / "release.json").read_text())["estimate"] == first.estimate.tolist()
    )


def test_a_changed_record_is_no_other_releases_record():
    mechanism = mechanism_for(NOISES["simplex, replace"])
    first = mechanism.release(counts=[5, 4, 3])
    first.privacy["disclaimers"].clear()
    first.privacy["libraries"].clear()
    again = mechanism.release(counts=[5, 4, 3])
    assert again.privacy["disclaimers"]
    assert again.privacy["libraries"]


@pytest.mark.parametrize("counts", [np.arange(77777), np.arange(77777)[:, None]])
def test_refused_counts_do_not_tell_how_many_records_there_are(counts):
    """Records given as counts by mistake: under add-remove their number is private."""
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)), neighbors="add-remove")
    with pytest.raises(DataError, match=r"shape \(3,\), got integers with . dim") as caught:
        gn.GaussianMechanism(noise, gn.zCDP(1)).release(counts=counts)
    assert "77777" not in str(caught.value)


def test_releases_and_mechanisms_are_frozen():
    mechanism = mechanism_for(NOISES["random, add-remove"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.n = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.release(indices=[0]).private = True


# Rows that are none of the listed points


def test_any_row_changes_a_sum_with_rows_left_out_by_the_sensitivity_at_most():
    points = np.array([[1.0, 0.0], [0.0, 2.0], [-0.0, 3.0], [1.0, 1.0]])
    noise = gn.optimal_noise(gn.FiniteSet(points), neighbors="add-remove")
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.5))
    values = [0.0, -0.0, 1.0, 2.0, 3.0, np.nextafter(1.0, 2.0), 5e-324, 1e308, math.inf, math.nan]
    rows = np.array([[x, y] for x in values for y in values])
    before = mechanism._exact(rows, None, "drop")[0]
    for row in rows:
        after = mechanism._exact(np.vstack([row, rows]), None, "drop")[0]
        moved = sum((b - a) ** 2 for a, b in zip(before, after, strict=True))
        assert moved <= mechanism._lattice.query.sensitivity_squared
    counts = [sum(np.array_equal(row, point) for row in rows) for point in points]
    assert sum(counts) < len(rows)
    assert before == mechanism._exact(None, counts, "refuse")[0]


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8, np.uint64])
def test_row_indices_out_of_range_are_left_out(kind):
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)), neighbors="add-remove")
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.5))
    ends = np.iinfo(kind)
    rows = np.array([0, 2, 3, 2, 100, ends.min, ends.max], dtype=kind)
    expected = [2 if ends.min == 0 else 1, 0, 2]
    assert mechanism._exact(rows, None, "drop")[0] == mechanism._exact(None, expected, "refuse")[0]
    with pytest.raises(DataError, match="got one outside"):
        mechanism.release(indices=rows)
    assert (
        mechanism.release(indices=rows, on_outside="drop").privacy["records_outside"]
        == "dropped, each by itself"
    )


def test_rows_of_a_mean_are_not_left_out():
    mechanism = gn.GaussianMechanism(gn.optimal_noise(gn.FiniteSet(np.eye(3))), gn.zCDP(0.5), n=2)
    for data in ([0, 1], [0, 7], None):
        with pytest.raises(
            ParameterError,
            match="is for sums: a mean of n public records counts every one; hint",
        ):
            mechanism.release(indices=data, on_outside="drop")
    for wrong in ("clip", ["drop"], None):
        with pytest.raises(ParameterError, match="on_outside"):
            mechanism.release(indices=[0, 1], on_outside=wrong)
