"""The projection mechanism, against quadratic programmes solved by Clarabel and against closed
forms.
"""

import cvxpy as cp
import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.errors import NotAvailableError, ParameterError
from gaussnoise.mechanisms.projection import nearest, nearest_sum

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("count", [3, 9, 40])
def test_nearest_points_of_hulls_and_cones_are_those_of_a_quadratic_programme(count):
    points = RNG.normal(size=(count, 5)) + 3 * np.eye(5)[0]
    K = gn.FiniteSet(points)
    for y in RNG.normal(size=(8, 5)) * 4:
        for find, constraint in ((nearest, True), (nearest_sum, False)):
            w = cp.Variable(count, nonneg=True)
            squares = cp.sum_squares(points.T @ w - y)
            problem = cp.Problem(cp.Minimize(squares), [cp.sum(w) == 1] if constraint else [])
            problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12)
            found, gap = find(K, y)
            assert np.linalg.norm(found - points.T @ w.value) <= gap + 1e-5
            assert np.linalg.norm(found - y) == pytest.approx(problem.value**0.5, abs=1e-6)
            assert gap <= 1e-4


def test_balls_have_closed_forms():
    y = RNG.normal(size=6) * 3
    assert nearest(gn.LpBall(6, 2), y)[0] == pytest.approx(y / np.linalg.norm(y), abs=1e-6)
    assert nearest(gn.LpBall(6, np.inf), y)[0] == pytest.approx(np.clip(y, -1, 1), abs=1e-6)
    inside = y / (3 * np.linalg.norm(y))
    assert nearest(gn.LpBall(6, 2), inside)[0] == pytest.approx(inside, abs=1e-5)


@pytest.mark.parametrize(
    "domain", [gn.LpBall(4, 3), gn.Zonotope(RNG.normal(size=(6, 4))), gn.TensorPower(2, 2)]
)
def test_the_gap_is_true_of_convex_bodies(domain):
    """Obtuse angles at the answer prove the gap: no member lies further along y − x than it
    says.
    """
    for y in RNG.normal(size=(5, 4)) * 5:
        x, gap = nearest(domain, y)
        assert domain.support(y - x) - (y - x) @ x <= gap**2 + 1e-12
        assert gap < 1e-4


def test_projecting_wins_where_records_are_few_and_loses_unbiasedness():
    """On the cross-polytope of 200 dimensions the noise is much longer than the set is wide."""
    K, n = gn.LpBall(200, 1), 20
    mechanism = gn.GaussianMechanism(gn.optimal_noise(K), gn.zCDP(0.1), n=n)
    data = np.zeros((n, 200))
    data[:, 0] = 1
    truth = data.mean(axis=0)
    raw, biased = [], []
    for seed in range(10):
        release = mechanism.simulate(data, np.random.default_rng(seed))
        answer = release.projected(K)
        assert not answer.private
        assert answer.distance == pytest.approx(np.linalg.norm(answer.estimate - release.estimate))
        raw.append(np.linalg.norm(release.estimate - truth))
        biased.append(answer.estimate - truth)
    assert np.linalg.norm(biased, axis=1).mean() < 0.5 * np.mean(raw)
    assert np.mean(biased, axis=0)[0] < -0.3  # the truth is a vertex: all answers lie on one side
    assert (
        np.linalg.norm(biased, axis=1).mean() < mechanism.bound.error
    )  # below what unbiased ones can do


def test_sums_go_to_the_cone_and_refuse_where_it_is_everything():
    cells = gn.FiniteSet(np.eye(4))
    sums = gn.GaussianMechanism(gn.optimal_noise(cells, neighbors="add-remove"), gn.zCDP(0.01))
    release = sums.release(counts=[50, 0, 0, 0])
    answer = release.projected(cells)
    assert answer.private
    assert answer.estimate == pytest.approx(np.maximum(release.estimate, 0), abs=1e-5)
    ball = gn.GaussianMechanism(
        gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove"), gn.zCDP(1)
    )
    with pytest.raises(NotAvailableError, match="cancel"):
        ball.release(np.zeros((3, 2))).projected(gn.LpBall(2, 2))


def test_another_space_is_refused():
    release = gn.GaussianMechanism(gn.optimal_noise(gn.LpBall(2, 2)), gn.zCDP(1), n=1).release(
        [[0, 0]]
    )
    with pytest.raises(ParameterError, match=r"expected a domain in R\^2"):
        release.projected(gn.LpBall(3, 2))
    with pytest.raises(ParameterError, match=r"expected a domain in R\^2"):
        release.projected([[0, 1]])


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_tables_become_those_of_some_records(neighbors):
    """Together, projected tables are the marginals of one non-negative table, which a quadratic
    programme finds.
    """
    schema = gn.Schema(
        [
            gn.Attribute("a", list("xyz")),
            gn.Attribute("b", list("uv")),
            gn.Attribute("c", list("pq")),
        ]
    )
    plan = gn.plan(schema, [("b", "a"), ("c", "b"), ("a", "c")], gn.zCDP(0.05), neighbors=neighbors)
    rows = pa.table({"a": ["x", "y"] * 8, "b": ["u"] * 16, "c": ["p"] * 15 + ["q"]})
    release = plan.release(rows)
    tables = release.projected()
    full = cp.Variable((3, 4), nonneg=True)  # a × (b, c)
    wide = cp.reshape(full, (12,), order="C")
    axes = {"a": 0, "b": 1, "c": 2}
    cells = np.indices((3, 2, 2)).reshape(3, -1)
    pieces, targets = [], []
    for names in plan.marginals:
        shape = release[names].estimate.shape
        place = np.ravel_multi_index([cells[axes[name]] for name in names], shape)
        matrix = np.zeros((np.prod(shape), 12))
        matrix[place, np.arange(12)] = 1
        pieces.append(matrix @ wide)
        targets.append(release[names].estimate.ravel())
    rows = (
        16 if neighbors == "replace" else max(float(release["a"].estimate.sum()), 0.0)
    )  # noise may leave no rows
    misfit = cp.sum_squares(cp.hstack(pieces) - np.concatenate(targets))
    cp.Problem(cp.Minimize(misfit), [cp.sum(full) == rows]).solve("CLARABEL")
    for names, piece in zip(plan.marginals, pieces, strict=True):
        table = tables[names]
        assert isinstance(table, gn.results.BiasedTable)
        assert table.private
        assert table.attributes == names
        assert table.estimate.ravel() == pytest.approx(piece.value, abs=2e-3)
        assert table.estimate.min() >= -1e-9
        assert "biased_estimate" in table.columns()
    assert tables["a", "b"].estimate.sum() == pytest.approx(
        tables["a", "c"].estimate.sum(), abs=1e-6
    )


@pytest.mark.parametrize("wrong", [np.full((2, 3), 7777.5), gn.FiniteSet(np.full((2, 2), 7777.5))])
def test_data_taken_for_a_domain_are_not_shown(wrong):
    release = gn.GaussianMechanism(gn.optimal_noise(gn.LpBall(3, 2)), gn.zCDP(1), n=1).release(
        np.zeros((1, 3))
    )
    with pytest.raises(ParameterError, match=r"in R\^3, got (ndarray|one in R\^2)") as caught:
        release.projected(wrong)
    assert "7777" not in str(caught.value)


def test_a_printed_answer_is_called_biased_and_keeps_the_guarantee():
    K = gn.LpBall(9, 1)
    mechanism = gn.GaussianMechanism(gn.optimal_noise(K), gn.ApproxDP(1, 1e-6), n=5)
    data, rng = np.zeros((5, 9)), np.random.default_rng(1)
    for release in (mechanism.release(data), mechanism.simulate(data, rng)):
        answer = release.projected(K)
        title, guarantee, *coordinates, more = str(answer).splitlines()
        assert (
            title
            == "BiasedRelease, biased: nearest point of the records' convex hull: 9 coordinates"
        )
        assert guarantee == str(release).splitlines()[1]
        assert "approximate DP, epsilon = 1.0, delta = 1e-06, under replace" in guarantee
        assert ("NOT PRIVATE, a simulation" in guarantee) is not release.private
        assert [float(x) for x in coordinates] == pytest.approx(answer.estimate[:8], rel=1e-7)
        assert more == "… and 1 more"
        assert "±" not in str(answer)


def test_no_rows_project_to_zeros():
    schema = gn.Schema([gn.Attribute("a", list("xy")), gn.Attribute("b", list("uv"))])
    release = gn.plan(schema, 1, gn.zCDP(1), neighbors="replace").release(_empty())
    assert all((table.estimate == 0).all() for table in release.projected().values())


def _empty():
    return pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.string())})
