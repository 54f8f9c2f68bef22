"""Bounds for products of queries are in the norm of their noise: each query counts with its table's
root mean square.
"""

import math
from functools import cache

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.bounds import bound_of
from gaussnoise.bounds.local_design import local_proof
from gaussnoise.bounds.one_record import one_record
from gaussnoise.bounds.proof import proof_of, tables_of

pytestmark = pytest.mark.filterwarnings("ignore::gaussnoise.errors.ConvergenceWarning")

P, Id, R = gn.Prefix, gn.Identity, gn.Ranges
SMALL = [
    gn.Products([P(2)], [(0,)]),
    gn.Products([P(3), Id(2)], [(0,), (0, 1)]),
    gn.Products([P(3), P(2)], [(0,), (1,), (0, 1)], weights=[1.0, 0.5, 2.0]),
    gn.Products(
        [gn.Base([[1.0, -1.0, 0.3], [2.0, 0.0, 1.0]]), Id(2)],
        [(0,), (1,), {0: P(3)}],
        weights=[1.0, 3.0, 1.0],
    ),
    gn.Products([R(3), Id(2)], [(0,), (1,), ()]),
]
NORMS = [2, 3, math.inf]


@cache
def solved(place, p, neighbors):
    return gn.optimal_noise(SMALL[place], p, neighbors=neighbors)


def least(variables, groups, tables, p):
    """Return ``min ‖Σ_i f_i diag M_i‖`` in the norm of the tables, M_i around the moves of group i,
    by an SDP.
    """
    cp = pytest.importorskip("cvxpy")
    rules, diagonal = [], 0
    for share, moves in zip(variables, groups, strict=True):
        M = cp.Variable((moves.shape[1],) * 2, symmetric=True)
        diagonal += share * cp.diag(M)
        rules += [
            cp.bmat([[M, s[:, None]], [s[None, :], np.ones((1, 1))]]) >> 0 for s in moves if s.any()
        ]
    queries = np.bincount(tables)
    means = cp.hstack(
        [cp.sum(diagonal[np.flatnonzero(tables == k)]) / q for k, q in enumerate(queries)]
    )
    problem = cp.Problem(cp.Minimize(cp.norm(cp.multiply(queries ** (2 / p), means), p / 2)), rules)
    problem.solve(solver="CLARABEL")
    return math.sqrt(problem.value)


def moves_of(points, x):
    return points[x] - np.delete(points, x, axis=0)


# every domain in two of the norms
@pytest.mark.parametrize(("place", "p"), [(k, NORMS[k % 3]) for k in range(len(SMALL))])
def test_moves_of_one_record_are_measured_in_the_norm_of_the_tables(place, p):
    domain = SMALL[place]
    points, tables = np.unique(domain.to_finite_set().points, axis=0), tables_of(domain)
    exact = []
    for x in range(len(points)):
        moves = moves_of(points, x)
        exact.append(least([1.0], [moves], tables, p))
        found = proof_of(domain, gn.FiniteSet(moves), p, 1e-6)
        assert exact[-1] * (1 - 3e-6) <= found.gamma_lower <= exact[-1] * (1 + 1e-7)
        assert found.gamma_lower * (1 + found.gap) >= exact[-1] * (1 - 1e-7)
        assert found.spectrum[0] @ found.spectrum[1] == pytest.approx(found.gamma_lower, rel=1e-9)
    assert one_record(solved(place, p, "replace")).gamma_lower == pytest.approx(
        min(exact), rel=3e-5
    )
    at = gn.lower_bound(domain, gn.zCDP(0.1), p=p, data=domain.to_finite_set().points[[0, 0]])
    assert at.private
    first = np.flatnonzero((points == domain.to_finite_set().points[0]).all(axis=1))[0]
    assert at.gamma_lower == pytest.approx(exact[first], rel=3e-6)


@pytest.mark.parametrize("domain", SMALL)
@pytest.mark.parametrize("p", [4, math.inf])
def test_records_under_local_privacy_share_weights_of_tables(domain, p):
    points, tables = domain.to_finite_set().points, tables_of(domain)
    counts = np.array([2.0, 1.0])
    exact = least(counts / 3, [moves_of(points, 0), moves_of(points, 1)], tables, p)
    assert (
        exact * (1 - 2e-3)
        <= local_proof(domain, points[:2], counts, p).gamma_lower
        <= exact * (1 + 1e-7)
    )


PRIVACIES = [gn.zCDP(0.045), gn.GDP(0.3), gn.ApproxDP(0.5, 1e-6), gn.privacy.TV(0.1)]


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("p", NORMS)
def test_no_bound_exceeds_the_error_of_the_noise_it_is_stated_for(neighbors, p):
    for place, domain in enumerate(SMALL):
        noise = solved(place, p, neighbors)
        n = 1 if neighbors == "replace" else None
        for privacy in PRIVACIES:
            error = noise.gamma / math.sqrt(2 * privacy.to_zcdp().rho)
            assert 0 < bound_of(noise, privacy, n).error <= error
            if n:
                data = domain.to_finite_set().points[:1]
                assert gn.lower_bound(domain, privacy, p=p, data=data).error <= error


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_releases_of_products_state_a_bound_that_they_keep(neighbors):
    schema = gn.Schema([gn.Attribute("a", ["x", "y"]), gn.Attribute("b", ["u", "v", "w"])])
    for workload in ([{"a": "prefix"}], [{"a": "prefix", "b": "prefix"}, {"b": "ranges"}]):
        plans = [gn.plan(schema, workload, gn.zCDP(0.045), neighbors=neighbors, p=4)]
        plans.append(gn.plan(schema, workload, neighbors=neighbors, targets=20.0))
        for survey in plans:
            assert 0 < survey.bound.error <= survey.error
            assert survey.bound.as_dict(survey.error)["factor"] >= 1
    one = gn.plan(schema, [{"a": "prefix"}], gn.zCDP(0.045), neighbors="replace", p=math.inf)
    assert one.bound.factor(one.error) == pytest.approx(
        math.sqrt(math.expm1(0.09) / 0.09), rel=1e-6
    )


def test_where_tables_are_even_the_norm_is_that_of_listed_points():
    """For identities the least error has one deviation for all cells of a table, and both norms
    agree.
    """
    for p in (4, math.inf):
        domain = gn.Products([Id(3), Id(2)], [(0,), (0, 1)])
        listed = gn.FiniteSet(domain.to_finite_set().points)
        ours, theirs = (
            gn.lower_bound(K, gn.zCDP(0.1), data=[0, 1, 2, 3, 4, 5], p=p).error
            for K in (domain, listed)
        )
        assert ours == pytest.approx(theirs, rel=2e-6)
        assert gn.lower_bound(domain, gn.zCDP(0.1), n=6, p=p).error <= ours
