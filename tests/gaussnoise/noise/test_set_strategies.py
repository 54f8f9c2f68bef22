"""Strategies that depend on the attributes measured together, where rows are added or removed.

References: the optimum of the listed records, one strategy for all sets, and exact integers.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussnoise as gn
from gaussnoise.errors import CertificateError, CovarianceError
from gaussnoise.noise.product_covariance import ProductCovariance
from gaussnoise.solvers.progress import Watch
from gaussnoise.solvers.tables.marginals import scaled_error
from gaussnoise.solvers.tables.products import product_noise
from gaussnoise.solvers.tables.set_strategies import rounded_shares, strategy_with_shares
from gaussnoise.solvers.tables.strategies import SolvedStrategy
from gaussnoise.solvers.tables.workload import Workload
from gaussnoise.tables.planning.measure import ResidualQuery

pytestmark = pytest.mark.filterwarnings("ignore::gaussnoise.errors.ConvergenceWarning")


def groups(*sizes):
    ends = np.cumsum([0, *sizes])
    return gn.Groups(
        int(ends[-1]), list(itertools.starmap(range, itertools.pairwise(ends.tolist())))
    )


def counties(sizes, *, cells, regions, others=(2, 3)):
    """Counties in regions: tables of counties and of regions, with some other attributes."""
    parts = groups(*sizes)
    bases = [gn.Identity(parts.size), *map(gn.Identity, others)]
    tables = [{0: bases[0], **{i: bases[i] for i in T}} for T in cells]
    return gn.Products(bases, tables + [{0: parts, **{i: bases[i] for i in T}} for T in regions])


EQUAL = counties([2, 2, 2], cells=[(), (1,)], regions=[(1, 2), (2,)])
UNEQUAL = counties([1, 2, 5], cells=[()], regions=[(2,)])
AGES = gn.Products(
    [gn.Identity(8), gn.Identity(3)],
    [{0: gn.Prefix(8)}, {0: gn.Bins(8, [4]), 1: gn.Identity(3)}, {0: gn.Identity(8)}],
)
CASES = [EQUAL, UNEQUAL, AGES]


def in_one_way(domain, p):
    """The least error of one strategy for each attribute in all sets."""
    workload = Workload.of(domain, total=True)
    best = product_noise(workload, p, replaced=False, tol=1e-4, watch=Watch(None))
    return scaled_error(best.workload, p, best.noise, replaced=False)


def of_sets(noise):
    return [own for own in noise.covariance.strategies if own.others]


@pytest.mark.parametrize(("domain", "excess"), [(EQUAL, 0.002), (UNEQUAL, 0.01), (AGES, 0.01)])
def test_little_more_noise_is_needed_than_in_the_dense_optimum(domain, excess):
    noise = gn.optimal_noise(domain, neighbors="add-remove")
    dense = gn.optimal_noise(domain.to_finite_set(), neighbors="add-remove")
    assert dense.gamma_lower <= noise.gamma <= dense.gamma * (1 + excess)
    assert noise.gamma_lower <= dense.gamma * (1 + 1e-9)
    assert in_one_way(domain, 2) > dense.gamma * (1.03 + excess)  # what one way for all sets costs


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize("domain", CASES)
def test_the_error_is_less_than_in_one_way_and_is_verified(domain, p):
    noise = gn.optimal_noise(domain, p=p, neighbors="add-remove")
    assert noise.gamma < in_one_way(domain, p) * 0.99
    assert of_sets(noise)
    checked = noise.verify()
    assert checked.gamma <= noise.gamma
    assert checked.enclosure <= 1


@pytest.mark.parametrize("domain", CASES)
def test_every_record_is_covered(domain):
    noise = gn.optimal_noise(domain, neighbors="add-remove")
    covariance = noise.covariance.toarray()
    points = domain.to_finite_set().points
    lengths = np.einsum("kd,kd->k", points @ np.linalg.pinv(covariance, hermitian=True), points)
    assert lengths.max() <= 1 + 1e-6  # pinv of a matrix with a wide spectrum
    assert lengths.max() > 0.98


@pytest.mark.parametrize("domain", CASES)
def test_all_contrasts_of_an_attribute_spread_totals_alike(domain):
    for own in of_sets(gn.optimal_noise(domain, neighbors="add-remove")):
        stacked = np.vstack([own.contrasts, *(other.contrasts for other in own.others.values())])
        # one null vector of all of them: exactly, by elimination in fractions
        assert rank(stacked) == own.size - 1


def rank(matrix):
    """The rank of an integer matrix, by elimination without fractions."""
    rows = [list(map(int, row)) for row in matrix]
    found = 0
    for column in range(matrix.shape[1]):
        pivot = next((k for k in range(found, len(rows)) if rows[k][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        first = rows[found]
        for k in range(found + 1, len(rows)):
            if factor := rows[k][column]:
                rows[k] = [
                    x * first[column] - y * factor for x, y in zip(rows[k], first, strict=True)
                ]
                divisor = math.gcd(*rows[k]) or 1
                rows[k] = [x // divisor for x in rows[k]]
        found += 1
    return found


@settings(deadline=None)
@given(st.integers(2, 9), st.integers(8, 20), st.integers(0, 2**32))
def test_integer_contrasts_have_the_shares_exactly(n, bits, seed):
    rng = np.random.default_rng(seed)
    profile = rng.normal(1 / n, 1 / n, n)
    profile += (1 - profile.sum()) / n
    shares = rounded_shares(profile, bits)
    if shares is None:  # shares that cancel, or too few bits
        assert np.abs(profile).sum() > 2 or bits < 20 or profile.max() > 0.5
        return
    size = np.abs(profile / profile.max()).sum()
    assert np.abs(shares / shares.max() - profile / profile.max()).sum() <= size / 32
    W = rng.normal(size=(n, n))
    strategy = strategy_with_shares(W.T @ W, shares, bits)
    assert not (strategy.contrasts @ shares).any()
    np.testing.assert_allclose(strategy.profile, shares / shares.sum(), atol=1e-9)


def test_sets_with_like_weights_share_their_contrasts():
    noise = gn.optimal_noise(
        counties([2, 2, 2], cells=[()], regions=[(i,) for i in range(1, 7)], others=[2] * 6),
        neighbors="add-remove",
    )
    (own,) = of_sets(noise)
    assert sorted(own.others) == [(0, i) for i in range(1, 7)]
    assert len({*own.others.values()}) == 1


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_rows_that_are_exchanged_have_one_strategy_for_all_sets(neighbors):
    noise = gn.optimal_noise(EQUAL, neighbors=neighbors)
    assert bool(of_sets(noise)) == (neighbors == "add-remove")


def test_noise_of_sets_is_refused_where_rows_are_exchanged():
    added = gn.optimal_noise(EQUAL, neighbors="add-remove")
    exchanged = gn.optimal_noise(EQUAL, neighbors="replace")
    variances = {T: 1e6 * v for T, v in added.covariance.variances.items() if T}  # more than enough
    covariance = ProductCovariance(EQUAL, added.covariance.strategies, variances)
    with pytest.raises(CertificateError, match="CovarianceError"):
        replace(exchanged, covariance=covariance, gamma=1e9).verify()
    for neighbors in ("replace", "replace-persons"):
        known = variances if neighbors == "replace" else added.covariance.variances
        with pytest.raises(CovarianceError, match="one strategy for all sets"):
            ResidualQuery.calibrated(added.covariance.strategies, known, neighbors, 0.5)


def test_saved_noise_has_the_same_contrasts_in_the_same_sets(tmp_path):
    noise = gn.optimal_noise(UNEQUAL, neighbors="add-remove")
    noise.save(tmp_path / "noise.npz")
    again = gn.OptimalNoise.load(tmp_path / "noise.npz")
    for one, other in zip(noise.covariance.strategies, again.covariance.strategies, strict=True):
        assert one.others.keys() == other.others.keys()
        for T, own in one.others.items():
            np.testing.assert_array_equal(own.contrasts, other.others[T].contrasts)
    np.testing.assert_array_equal(noise.covariance.toarray(), again.covariance.toarray())


def test_contrasts_that_spread_totals_otherwise_are_refused():
    one = SolvedStrategy(np.array([[1, -1, 0], [0, 1, -1]]))
    other = SolvedStrategy(np.array([[1, -1, 0], [0, 1, -2]]))
    with pytest.raises(CovarianceError, match="spread totals in the same way"):
        SolvedStrategy(one.contrasts, by_set={(0, 1): other})


def test_sets_that_are_alike_must_be_measured_alike():
    noise = gn.optimal_noise(
        counties([2, 2, 2], cells=[()], regions=[(1,), (2,)], others=(2, 2)),
        neighbors="add-remove",
    )
    own = noise.covariance.strategies[0]
    half = SolvedStrategy(own.contrasts, by_set={(0, 1): own.others[0, 1]})
    strategies = half, *noise.covariance.strategies[1:]
    with pytest.raises(CovarianceError, match="alike sets"):
        ResidualQuery.calibrated(strategies, noise.covariance.variances, "add-remove", 0.5)
    # variances that are not known to be alike are compared together with the contrasts
    query = ResidualQuery.calibrated(
        strategies, dict(noise.covariance.variances), "add-remove", 0.5
    )
    assert query.multipliers.orbits.class_of(1) != query.multipliers.orbits.class_of(2)


def test_alike_attributes_have_no_contrasts_of_sets():
    """The categories of two attributes would be taken for one."""
    own = gn.optimal_noise(EQUAL, neighbors="add-remove").covariance.strategies[0]
    both = SolvedStrategy(own.contrasts, by_set={(0, 1): own.others[0, 2]})
    with pytest.raises(CovarianceError, match="no alike attributes"):
        ResidualQuery.calibrated(
            (both, both), {(): 1.0, (0,): 1.0, (1,): 1.0, (0, 1): 1.0}, "add-remove", 0.5
        )
