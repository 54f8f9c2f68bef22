"""The public function for bounds, against Gaussian and local mechanisms, semidefinite programmes,
and enumerated resampling.
"""

import itertools
import json
import math
import traceback
import warnings

import networkx
import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from domains.participation.participations import VectorParticipations
from gaussnoise.bounds import HardCodedMechanism, bound_of
from gaussnoise.bounds.bound import resampled
from gaussnoise.bounds.local_design import local_proof
from gaussnoise.bounds.one_record import one_record
from gaussnoise.errors import DataError, ParameterError
from gaussnoise.noise.certificates.points import PointCertificate

SEGMENT, MIDDLE = [[-1.0], [1.0]], [[-1.0], [0.0], [1.0]]
CROSS = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
SLOW = {
    "Kronecker product",
    "image of a moved Schatten ball",
    "squares of vectors in space",
    "squares below a segment",
}
PRIVACIES = [gn.zCDP(0.1), gn.ApproxDP(1.0, 1e-6), gn.GDP(0.7), gn.privacy.TV(0.2), gn.KL(0.3)]


def test_gaussian_noise_never_beats_the_bound_and_nearly_attains_it_under_add_remove(case):
    if case.name in SLOW:
        pytest.skip("seconds to solve, and no other formula of bounds")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noises = [
            gn.optimal_noise(case.domain, p, neighbors="add-remove", tol=1e-2) for p in (2, 4)
        ]
        if not isinstance(
            case.domain, VectorParticipations
        ):  # records are added and removed, never replaced
            noises += [
                gn.optimal_noise(case.domain, 2, neighbors="replace", tol=1e-2),
                gn.gamma(case.domain, 2, tol=1e-2),
            ]
    for noise, privacy in itertools.product(noises, PRIVACIES):
        n = 1 if noise.neighbors == "replace" else None
        bound = bound_of(noise, privacy, n)
        error = noise.gamma * math.sqrt(noise.sensitivity_squared / (2 * privacy.to_zcdp().rho))
        assert 0 <= bound.error <= error
        if not math.isnan(bound.gap):  # bounds for single records of tables
            assert bound.gamma_lower * (1 + bound.gap) <= 4 * noise.gamma
        if error == 0:
            assert bound.error == 0
            assert bound.factor(error) == 1
        elif privacy == PRIVACIES[0]:
            best = math.sqrt(math.expm1(0.2) / 0.2)  # √((e^2ρ − 1)/2ρ)
            relaxed = (
                math.sqrt(2) if noise.shifted else 1.0 if noise.neighbors == "add-remove" else 2.0
            )
            if noise.shifted:
                relaxed *= math.sqrt(noise.sensitivity_squared)
            stated = best * relaxed * (1 + noise.gap)
            if "any one record" in bound.reachable:  # more than half of K − K
                assert best * (1 - 1e-9) <= bound.factor(error) <= stated
            else:
                assert bound.factor(error) == pytest.approx(stated, rel=1e-9)


@pytest.mark.parametrize(
    "points", [CROSS, MIDDLE, np.eye(4), np.random.default_rng(1).normal(size=(7, 3))]
)
@pytest.mark.parametrize("p", [2, math.inf])
def test_what_holds_for_all_data_is_the_least_over_data_that_are_all_one_point(points, p):
    K, privacy = gn.FiniteSet(points), gn.zCDP(0.1)
    n = len(points)
    mechanism = gn.GaussianMechanism(gn.optimal_noise(K, p), privacy, n=n)
    bound = gn.lower_bound(K, privacy, data=np.arange(n), p=p)
    assert bound.private
    assert not mechanism.bound.private
    alone = [gn.lower_bound(K, privacy, data=[i] * n, p=p).error for i in range(n)]
    assert mechanism.bound.error == pytest.approx(max(min(alone), bound.error / 2), rel=2e-5)
    assert bound.factor(mechanism.error) == pytest.approx(
        math.sqrt(math.expm1(0.2) / 0.2), rel=3e-6
    )
    some = gn.lower_bound(
        K, privacy, data=K.points[[0] * n], p=p
    )  # rows instead of indices; fewer moves
    assert some.error == pytest.approx(alone[0])
    assert mechanism.bound.error * (1 - 2e-5) <= some.error <= bound.error * (1 + 2e-6)


def test_one_record_can_always_be_replaced_by_all_others():
    """Among one-hot cells, all data sets of two records show it: no data set has a bound below the
    one stated.
    """
    K, privacy = (
        gn.FiniteSet(np.eye(4)[:, :3]),
        gn.zCDP(0.1),
    )  # no symmetry between the last point and the others
    free = gn.lower_bound(K, privacy, n=2).error
    pairs = itertools.combinations_with_replacement(range(4), 2)
    least = min(gn.lower_bound(K, privacy, data=list(pair)).error for pair in pairs)
    assert free == pytest.approx(least, rel=2e-5)
    assert (
        free > 1.3 * gn.lower_bound(gn.Polytope(K.points), privacy, n=2).error
    )  # whose records may lie inside


TABLES = [((2, 3, 2), 2), ((4,), 1), ((3, 3), 2), ((3, 4, 2), 1), ((2, 2, 2, 2), 2), ((1, 3, 2), 2)]


@pytest.mark.parametrize(("sizes", "k"), TABLES)
@pytest.mark.parametrize("p", [2, 3, math.inf])
def test_moves_of_one_record_of_a_table_are_those_of_its_listed_points(sizes, k, p):
    """Symmetry keeps a block for every set of attributes; the solver for listed points does not use
    it.
    """
    tables = gn.Marginals.all_kway(sizes, k)
    points = tables.to_finite_set().points
    differences = points[0] - points
    moves = gn.FiniteSet(differences[differences.any(axis=1)])
    reference = gn.optimal_noise(moves, p, neighbors="add-remove")
    proof = one_record(gn.optimal_noise(tables, p))
    # steps end at a gain of 1e-5; at p > 2 coordinate weights are those of K − K, which give a
    # bound but not the best
    assert (0.85 if p > 2 else 1 - 1e-4) * reference.gamma <= proof.gamma_lower <= reference.gamma
    assert proof.spectrum[0] @ proof.spectrum[1] == pytest.approx(proof.gamma_lower, rel=1e-9)
    if p == 2:
        singular = np.linalg.svd(_second_moment_root(moves.points, reference), compute_uv=False)
        ours = np.repeat(proof.spectrum[0], proof.spectrum[1].astype(int))
        ours = np.sort(ours[ours > 1e-3])[::-1]
        assert ours == pytest.approx(singular[: len(ours)], rel=2e-2)


def _second_moment_root(points, noise):
    """Return the solver's own measure, which is unique as a second moment at p = 2."""
    certificate = noise.certificate
    mass = certificate.weights / certificate.weights.sum()
    return np.sqrt(mass)[:, None] * certificate.points


def test_weighted_tables_of_mixed_orders_move_as_listed_points_do():
    tables = gn.Marginals((3, 2, 4), [(0,), (0, 1), (1, 2)], weights=[1.0, 0.5, 2.0])
    points = tables.to_finite_set().points
    differences = points[5] - points
    reference = gn.optimal_noise(
        gn.FiniteSet(differences[differences.any(axis=1)]), neighbors="add-remove"
    )
    proof = one_record(gn.optimal_noise(tables))
    assert (1 - 1e-4) * reference.gamma <= proof.gamma_lower <= reference.gamma


def test_histograms_have_a_closed_form():
    for m in (2, 3, 10, 40):
        noise = gn.optimal_noise(gn.Marginals([m], [(0,)]))
        assert noise.gamma / one_record(noise).gamma_lower == pytest.approx(
            math.sqrt(2) * (m - 1) / (m - 2 + math.sqrt(m)), rel=2e-5
        )


def test_symmetric_tables_try_one_record_and_large_sets_none():
    tables = gn.Marginals.all_kway((2, 3, 2), 2)
    listed = tables.to_finite_set()
    for privacy in (gn.zCDP(0.1), gn.LocalDP(1.0)):
        ours, reference = gn.lower_bound(tables, privacy, n=5), gn.lower_bound(listed, privacy, n=5)
        assert ours.error == pytest.approx(reference.error, rel=1e-4)
        assert "any one record" in ours.reachable
    many = gn.FiniteSet(np.random.default_rng(0).normal(size=(60, 2)))
    assert "half the sum" in gn.lower_bound(many, gn.zCDP(0.1), n=5).reachable
    assert "half the sum" in gn.lower_bound(listed, gn.ApproxDP(1, 1e-6), n=5).reachable
    assert "half the sum" in gn.lower_bound(listed, gn.LocalDP(1), n=5, p=4).reachable


def test_moves_from_a_body_are_those_from_its_extreme_points():
    square = gn.LpBall(2, math.inf)
    corners = gn.FiniteSet(list(itertools.product([-1.0, 1.0], repeat=2)))
    for record in ([0.0, 0.0], [1.0, 0.2], [-1.0, 1.0]):
        at = gn.lower_bound(square, gn.GDP(1.0), data=[record, record])
        reference = gn.optimal_noise(
            gn.FiniteSet(corners.points - record), neighbors="add-remove"
        ).gamma
        assert at.error * 2 * math.sqrt(math.expm1(1.0)) == pytest.approx(reference, rel=3e-6)
        listed = gn.lower_bound(gn.Polytope(corners.points), gn.GDP(1.0), data=[record, record])
        assert listed.error == pytest.approx(at.error, rel=3e-6)


@pytest.mark.parametrize("points", [CROSS, np.eye(3), np.random.default_rng(1).normal(size=(7, 3))])
def test_noise_around_a_center_brackets_the_moves_it_was_not_made_for(points, monkeypatch):
    monkeypatch.setattr("gaussnoise.bounds.one_record._MOST_CENTERS", 0)
    shifted = bound_of(gn.gamma(gn.FiniteSet(points)), gn.zCDP(0.1), 10)
    reference = gn.optimal_noise(gn.FiniteSet(points)).gamma / 2
    assert shifted.gamma_lower <= reference <= shifted.gamma_lower * (1 + shifted.gap) * (1 + 1e-9)
    values, counts = shifted.spectrum
    assert values @ counts == pytest.approx(shifted.gamma_lower, rel=1e-9)


def test_policy_graphs_have_bounds_at_data_only_and_for_joined_values_only():
    K, path = gn.FiniteSet([[0.0], [1.0], [3.0]]), networkx.path_graph(3)
    found = [
        gn.lower_bound(K, gn.zCDP(0.2), data=[i], neighbors=path).gamma_lower for i in range(3)
    ]
    assert np.allclose(found, [1.0, 2.0, 2.0], rtol=1e-6)
    noise = gn.optimal_noise(K, neighbors=path)
    assert gn.GaussianMechanism(noise, gn.zCDP(0.2), n=3).bound is None
    island = networkx.Graph([(0, 1)], components="public")
    island.add_node(2)
    with pytest.raises(ParameterError, match="no record of the data has a neighbour"):
        gn.lower_bound(K, gn.zCDP(0.2), data=[2, 2], neighbors=island)
    for refused in (
        lambda: gn.lower_bound(K, gn.zCDP(0.2), n=3, neighbors=path),
        lambda: bound_of(noise, gn.zCDP(0.2), 3),
    ):
        with pytest.raises(ParameterError, match="policy graph"):
            refused()


def test_spectra_of_symmetric_certificates_are_those_of_the_measure_written_out():
    rng = np.random.default_rng(2)
    sphere = rng.normal(size=(200_000, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    powers = np.einsum("ni,nj->nij", sphere, sphere).reshape(-1, 9)
    sampled = np.sqrt(np.maximum(np.linalg.eigvalsh(powers.T @ powers / len(powers)), 0))
    values, counts = gn.optimal_noise(
        gn.TensorPower(3, 2), neighbors="add-remove"
    ).certificate.spectrum()
    assert np.sort(np.repeat(values, counts.astype(int))) == pytest.approx(
        np.sort(sampled)[-6:], rel=2e-2
    )
    # all records of (3, 2, 4) have equal weights; each residual has one eigenvalue, counted once
    # for all tables that contain it
    K = gn.Marginals((3, 2, 4), [(0, 1), (0, 2), (1, 2)])
    points = K.to_finite_set().points
    flat = PointCertificate(points, np.full(24, 1 / 24), np.ones(K.dim), None, centered=False)
    values, counts = gn.optimal_noise(K, neighbors="add-remove").certificate.spectrum()
    explicit = np.sort(flat.spectrum()[0])[-18:]
    assert np.sort(np.repeat(values, counts.astype(int))) == pytest.approx(explicit, rel=1e-9)


# --- local privacy


def explicit_local(points, rows, shares, p):
    """Return ``min ‖Σ_i f_i diag M_i‖_{p/2}^{1/2}`` over M_i that enclose the moves of record i, by
    an SDP.
    """
    cp = pytest.importorskip("cvxpy")
    d = points.shape[1]
    covariances, rules = [], []
    for row in rows:
        M = cp.Variable((d, d), symmetric=True)
        covariances.append(M)
        for s in points - row:
            if s.any():
                rules.append(cp.bmat([[M, s[:, None]], [s[None, :], np.ones((1, 1))]]) >> 0)
    diagonal = sum(f * cp.diag(M) for f, M in zip(shares, covariances, strict=True))
    problem = cp.Problem(cp.Minimize(cp.norm(diagonal, p / 2)), rules)
    problem.solve(solver="CLARABEL")
    return math.sqrt(problem.value)


@pytest.mark.parametrize("p", [2, 4, math.inf])
def test_local_bound_at_data_is_the_least_that_all_records_covariances_can_add_up_to(p):
    points = np.vstack([np.random.default_rng(7).normal(size=(5, 2)), [[3.0, 0.5]]])
    rows, counts = points[[0, 2, 5]], np.array([1.0, 2.0, 5.0])
    K = gn.FiniteSet(points)
    reference = explicit_local(points, rows, counts / 8, p)
    assert (
        reference * (1 - 1e-3)
        <= local_proof(K, rows, counts, p).gamma_lower
        <= reference * (1 + 1e-7)
    )
    bound = gn.lower_bound(K, gn.LocalDP(1.0), data=[0, 2, 2, 5, 5, 5, 5, 5], p=p)
    assert bound.error * 2 * math.sinh(0.5) * math.sqrt(8) == pytest.approx(
        local_proof(K, rows, counts, p).gamma_lower, rel=1e-9
    )
    assert gn.lower_bound(K, gn.LocalDP(1.0), n=8, p=p).error <= bound.error
    scaled = gn.lower_bound(
        gn.FiniteSet(1e100 * points), gn.LocalDP(1.0), data=[0, 2, 2, 5, 5, 5, 5, 5], p=p
    )
    assert scaled.error == pytest.approx(1e100 * bound.error, rel=1e-6)
    corners = gn.FiniteSet(list(itertools.product([-1.0, 1.0], repeat=2)))  # and as a body, climbed
    listed, body = (
        local_proof(L, np.array([[0.1, 0.7], [1.0, -1.0]]), np.ones(2), p).gamma_lower
        for L in (corners, gn.LpBall(2, math.inf))
    )
    assert body == pytest.approx(listed, rel=1e-3)
    assert (
        local_proof(gn.FiniteSet([[2.0, 1.0]]), np.array([[2.0, 1.0]]), np.ones(1), p).gamma_lower
        == 0
    )


def test_randomised_response_attains_the_local_bound_where_all_records_are_ends():
    K = gn.LpBall(1, 2)
    for epsilon in (0.1, 1.0, 4.0):
        flip = gn.LocalMechanism(K, gn.LocalDP(epsilon), randomizer="randomized-response")
        ends = [[1.0]] * 3 + [[-1.0]] * 4
        error = math.sqrt(sum(flip.covariance(x).diagonal()[0] for x in ends)) / 7
        assert error == pytest.approx(
            gn.lower_bound(K, gn.LocalDP(epsilon), data=ends).error, rel=1e-6
        )
        inner = [[0.3]] * 7
        assert gn.lower_bound(K, gn.LocalDP(epsilon), data=inner).error < error
        assert gn.lower_bound(K, gn.LocalDP(epsilon), n=7).error == pytest.approx(
            error / 2, rel=1e-6
        )
    ball = gn.LpBall(3, 2)
    records = np.random.default_rng(1).uniform(-0.5, 0.5, size=(6, 3))
    for randomizer in ("privunit", "privunitg", "point-release"):
        mechanism = gn.LocalMechanism(ball, gn.LocalDP(2.0), randomizer=randomizer)
        error = math.sqrt(sum(mechanism.covariance(x).diagonal().sum() for x in records)) / 6
        assert (
            gn.lower_bound(ball, gn.LocalDP(2.0), n=6).error
            < gn.lower_bound(ball, gn.LocalDP(2.0), data=records).error
        )
        assert gn.lower_bound(ball, gn.LocalDP(2.0), data=records).error <= error


# --- resampling


def resampling(n):
    """Return the chances that n draws from n bits, k of them ones, have j ones: shape (n + 1, n +
    1), enumerated.
    """
    table = np.zeros((n + 1, n + 1))
    for k in range(n + 1):
        bits = [1] * k + [0] * (n - k)
        for draws in itertools.product(bits, repeat=n):
            table[k, sum(draws)] += n**-n
    return table


@pytest.mark.paper("Lemma 57", by="random private mechanisms, all draws enumerated")
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_resampled_mechanisms_keep_the_amplified_budget_and_one_needs_all_of_it(n):
    rng = np.random.default_rng(8)
    chances = resampling(n)
    for epsilon in (0.1, 1.0, 3.0):
        implied = resampled(gn.PureDP(epsilon), n).epsilon
        assert implied <= math.expm1(epsilon) * (1 + 1e-9)
        # an outcome of chance ∝ e^{ε · ones} keeps ε, and after resampling exactly ε'
        steep = np.exp(epsilon * (np.arange(n + 1) - n)) / 2
        ratio = (chances @ steep)[1:] / (chances @ steep)[:-1]
        assert math.log(ratio.max()) == pytest.approx(implied, rel=1e-9)
        assert math.log(ratio.max()) <= implied
        # random (ε, δ)-private chances: walks that move as far as both sides allow, or less
        for delta in (0.0, 1e-3):
            weak = resampled(gn.ApproxDP(epsilon, delta), n) if delta else None
            assert weak is None or weak.delta <= math.exp(math.expm1(epsilon)) * delta * (1 + 1e-9)
            for _ in range(300):
                chance = [rng.uniform()]
                for _ in range(n):
                    q = chance[-1]
                    high = min(
                        math.exp(epsilon) * q + delta, 1 - (1 - q - delta) * math.exp(-epsilon), 1.0
                    )
                    low = max(
                        (q - delta) * math.exp(-epsilon),
                        1 - math.exp(epsilon) * (1 - q) - delta,
                        0.0,
                    )
                    chance.append(low + (high - low) * rng.choice([0.0, 1.0, rng.uniform()]))
                after = chances @ chance
                for a, b in itertools.permutations((after, 1 - after)):
                    left = a[1:] - math.exp(implied) * a[:-1], a[:-1] - math.exp(implied) * a[1:]
                    assert np.max(left) <= (weak.delta if weak else 0.0) + 1e-14
                    assert b is not a


# --- refusals, and sentences


def test_refusals_say_what_was_expected_and_never_show_data():
    K, privacy, canary = gn.FiniteSet(CROSS), gn.zCDP(0.1), 0.123456789
    wrong = [
        (dict(domain=CROSS), "expected a domain"),
        (dict(privacy=0.1), "expected a privacy guarantee"),
        (dict(p=1.9), "expected p >= 2"),
        (dict(p=math.nan), "expected p >= 2"),
        (dict(p="2"), "expected p >= 2"),
        (dict(n=None), "expected an integer n"),
        (dict(n=0), "expected an integer n"),
        (dict(n=True), "expected an integer n"),
        (dict(n=10**400), "expected an integer n"),
        (dict(neighbors="add-remove"), "leave n and data out"),
        (dict(neighbors="swap"), "expected neighbors"),
        (dict(unbiased="nearly"), "expected unbiased in"),
        (
            dict(unbiased="distributional", privacy=gn.KL(0.1)),
            "have a bound under PureDP, zCDP, GDP, ApproxDP and TV",
        ),
        (dict(unbiased="distributional", privacy=gn.ApproxDP(2.0, 0.5)), "leaves nothing"),
        (dict(unbiased="distributional", privacy=gn.ApproxDP(900.0, 0.5)), "leaves nothing"),
        (
            dict(unbiased="distributional", privacy=gn.PureDP(1), neighbors="add-remove", n=None),
            "replace",
        ),
        (dict(privacy=gn.LocalDP(1), neighbors="add-remove", n=None), "local privacy"),
        (dict(privacy=gn.LocalDP(1), unbiased="distributional"), "local privacy"),
    ]
    for change, message in wrong:
        with pytest.raises(ParameterError, match=message):
            gn.lower_bound(**(dict(domain=K, privacy=privacy, n=5) | change))
    ball = gn.LpBall(2, 2)
    for domain, data in [
        (K, [[canary, 0.0]]), (K, [7]), (K, []), (K, [["x", "y"]]), (K, [[1.0], [canary, 2.0]]),
        (ball, [[canary, 1.0]]), (ball, [[canary, math.nan]]), (ball, [[canary]]), (ball,
        np.zeros((0, 2))),
        (ball, [0]), (ball, [[canary, 0.0], [0.5, 0.5]]),
    ]:  # fmt: skip
        with pytest.raises(DataError) as caught:
            gn.lower_bound(domain, privacy, n=1, data=data)
        assert str(canary)[2:7] not in "".join(traceback.format_exception_only(caught.value))
        assert caught.value.__cause__ is None
        assert str(canary)[2:7] not in str(caught.value.__context__)
    many = np.random.default_rng(1).uniform(-0.5, 0.5, size=(501, 2))
    with pytest.raises(ParameterError, match="at most 500 distinct"):
        gn.lower_bound(ball, gn.LocalDP(1), data=many)
    bound = gn.lower_bound(K, gn.ApproxDP(1, 1e-6), n=5)
    for call in (lambda: bound.neighbor_error(-1), lambda: bound.neighbor_error(math.nan)):
        with pytest.raises(ParameterError, match="finite error >= 0"):
            call()
    with pytest.raises(ParameterError, match="its own bound"):
        gn.lower_bound(K, privacy, n=5).neighbor_error(1.0)


@pytest.mark.paper("Theorem 53", by="simulated answers")
def test_the_hard_coded_mechanism_has_the_moments_it_states_and_takes_records_only():
    rng, hard = np.random.default_rng(5), HardCodedMechanism([[0.0, 0.0], [1.0, 2.0]], 0.2)
    data = [[1.0, 2.0], [3.0, 1.0]]
    answers = hard.simulate(data, rng, 100_000)
    assert np.abs(answers.mean(axis=0) - [2.0, 1.5]).max() < 5 * math.sqrt(
        hard.covariance(data).max() / 1e5
    )
    assert np.cov(answers.T) == pytest.approx(hard.covariance(data), rel=0.03)
    assert hard.error(data, math.inf) == pytest.approx(math.sqrt(0.8 / 0.2) * 1.5)
    for favourite, delta, error in (
        ([[0.0]], 1.0, ParameterError),
        ([0.0], 0.1, DataError),
        ([[math.nan]], 0.1, DataError),
    ):
        with pytest.raises(error, match="HardCodedMechanism: expected"):
            HardCodedMechanism(favourite, delta)
    with pytest.raises(DataError, match="expected records of shape"):
        hard.error([[1.0, 2.0]])


def test_bounds_at_data_say_that_they_are_not_private_and_reach_no_record():
    K = gn.FiniteSet(CROSS)
    for privacy in (
        gn.zCDP(0.1),
        gn.PureDP(1),
        gn.GDP(1),
        gn.privacy.TV(0.1),
        gn.ApproxDP(1, 1e-6),
        gn.KL(0.1),
        gn.LocalDP(1),
    ):
        at, free = gn.lower_bound(K, privacy, data=[0, 1, 1]), gn.lower_bound(K, privacy, n=3)
        assert "NOT PRIVATE" in repr(at)
        assert "do not publish" in at.explain()
        assert "given" in at.where
        assert "PRIVATE" not in repr(free) + free.explain()
        assert "whatever the data" in free.where
        assert f"{float(at):.6g}" in at.explain()
        assert "whatever" not in at.where
        assert at.sentence(1.0).endswith("NOT PRIVATE")
        assert free.sentence(2 * free.error).startswith(
            "proven: at most 2 times the least error of any unbiased"
        )
        with pytest.raises(ParameterError, match="no release may tell"):
            at.as_dict(1.0)
        assert free.as_dict(2 * free.error)["factor"] == pytest.approx(2)
        assert (
            free.at_neighbor
            == ("there or at a neighbour" in free.where)
            == ("Var'" in free.explain())
        )


def test_releases_state_the_bound_that_holds_for_all_data(tmp_path):
    ball = gn.GaussianMechanism(gn.optimal_noise(gn.LpBall(2, 2)), gn.zCDP(0.1), n=3)
    listed = gn.GaussianMechanism(
        gn.optimal_noise(gn.FiniteSet(CROSS), neighbors="add-remove"), gn.ApproxDP(1, 1e-6)
    )
    for mechanism, data in (
        (ball, [[0.1, 0.2]] * 3),
        (listed, gn.FiniteSet(CROSS).points[[0, 1, 1]]),
    ):
        stated = mechanism.release(data).privacy["lower_bound"]
        assert stated == mechanism.bound.as_dict(mechanism.error)
        assert "whatever the data" in stated["holds"]
        assert (
            0
            < stated["error"]
            <= mechanism.error
            == pytest.approx(stated["factor"] * stated["error"])
        )
    schema = gn.Schema([gn.Attribute("a", ["x", "y"]), gn.Attribute("b", ["u", "v", "w"])])
    for neighbors, rows in (("add-remove", 1), ("replace", 4)):
        survey = gn.plan(schema, 1, gn.zCDP(0.5), neighbors=neighbors, rows_per_person=rows)
        folder = tmp_path / neighbors
        survey.release(pa.table({"a": ["x", "y"] * 6, "b": ["u", "v", "w"] * 4}), out=folder)
        stated = json.loads((folder / "release.json").read_text())["optimality"]["lower_bound"]
        share = rows / 2 if neighbors == "replace" else 1.0
        least = gn.optimal_noise(survey.domain, neighbors=neighbors).gamma / math.sqrt(
            math.expm1(1.0)
        )
        assert stated["error"] == pytest.approx(share * least, rel=1e-5)
        assert stated["error"] <= survey.error
        assert ("of at least 4 records" in stated["holds"]) == (rows == 4)


@pytest.mark.parametrize("n", [1, 10**18])
def test_extreme_parameters_give_finite_bounds_that_grow_with_privacy(n):
    K = gn.FiniteSet(SEGMENT)
    families = [
        [gn.PureDP(e) for e in (1e-300, 1e-12, 1.0, 30.0, 699.0)],
        [gn.zCDP(r) for r in (1e-300, 1e-12, 1.0, 100.0, 1e3)],
        [gn.GDP(m) for m in (1e-150, 1e-12, 1.0, 20.0, 1e3)],
        [gn.LocalDP(e) for e in (1e-12, 1.0, 699.0)],
        [gn.ApproxDP(e, 1e-300) for e in (1e-12, 1.0, 699.0)],
        [gn.ApproxDP(1.0, d) for d in (1e-320, 1e-300, 1e-6, 0.999, 1 - 2**-53)],
        [gn.KL(a) for a in (1e-300, 1e-12, 1.0, 30.0, 1e3)],
        [gn.privacy.TV(a) for a in (1e-150, 1e-12, 0.5, 1 - 2**-53)],
    ]
    for family in families:
        errors = [gn.lower_bound(K, privacy, n=n).error for privacy in family]
        assert np.isfinite(errors).all()
        assert min(errors) >= 0
        assert errors[0] > 0
        assert all(a >= b for a, b in itertools.pairwise(errors))
        for privacy in family:
            bound = gn.lower_bound(K, privacy, n=n)
            if bound.at_neighbor:
                beside = [
                    bound.neighbor_error(own) for own in (0.0, bound.error / 2, bound.error, 1e200)
                ]
                assert np.isfinite(beside).all()
                assert beside[-1] == 0
                assert beside == sorted(beside, reverse=True)
    for size in (1e-140, 1e140):
        for privacy in (gn.zCDP(0.1), gn.ApproxDP(1, 1e-6), gn.LocalDP(1)):
            scaled = gn.lower_bound(gn.FiniteSet(np.array(CROSS) * size), privacy, n=1).error
            assert scaled == pytest.approx(
                size * gn.lower_bound(gn.FiniteSet(CROSS), privacy, n=1).error, rel=1e-6
            )
    point = gn.FiniteSet([[1.0, -2.0]])
    for privacy in (gn.zCDP(0.1), gn.ApproxDP(1, 1e-6), gn.LocalDP(1)):
        for bound in (
            gn.lower_bound(point, privacy, n=n),
            gn.lower_bound(point, privacy, data=[0]),
        ):
            assert bound.error == 0
            assert bound.factor(0.0) == 1
            assert not bound.at_neighbor or bound.neighbor_error(0.0) == 0


def test_where_nothing_is_proven_no_factor_is_printed():
    bound = gn.lower_bound(gn.FiniteSet(np.eye(2)), gn.zCDP(1e5), n=3)
    assert bound.error == 0
    assert bound.factor(1.0) == math.inf
    assert bound.sentence(1.0).startswith("nothing is proven of what the best")
    assert "inf" not in bound.sentence(1.0)
