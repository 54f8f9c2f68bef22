"""Optimal noise for repeated participation: semidefinite programmes, known values,
damaged answers.
"""

import dataclasses
import itertools
import math

import cvxpy
import numpy as np
import pytest

import gaussnoise as gn
from domains.participation.participations import VectorParticipations
from gaussnoise.errors import CertificateError, ConvergenceWarning, CovarianceError, ParameterError
from gaussnoise.noise import participations
from gaussnoise.noise.covariance import FactorCovariance

AnyOf, Apart, Epochs, Window = (
    gn.streams.AnyOf,
    gn.streams.Apart,
    gn.streams.Epochs,
    gn.streams.Window,
)


def prefix_sums(n):
    return np.tril(np.ones((n, n)))


def solved(who, p=2.0, A=None):
    K = gn.streams.participations(prefix_sums(who.n) if A is None else A, who)
    return gn.optimal_noise(K, p, neighbors="add-remove")


def reference(A, sets, p):
    """Return the least ‖sd(M)‖_p with X_ππ ⪯ diag(y_π), Σ y_π = 1, X = A'M⁻¹A, by a solver."""
    n = len(A)
    M, X = cvxpy.Variable((n, n), symmetric=True), cvxpy.Variable((n, n), symmetric=True)
    constraints = [cvxpy.bmat([[M, A], [A.T, X]]) >> 0]
    for ticks in sets:
        y = cvxpy.Variable(len(ticks))
        picked = np.eye(n)[list(ticks)]
        constraints += [cvxpy.diag(y) - picked @ X @ picked.T >> 0, cvxpy.sum(y) == 1]
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(cvxpy.diag(M), p / 2)), constraints)
    problem.solve(solver="CLARABEL")
    return math.sqrt(problem.value)


def full_sets(who):
    return [tuple(i for i in row if i < who.n) for row in who.maximal().tolist()]


@pytest.mark.parametrize(
    ("who", "p"),
    [
        (Epochs(6, 3), 2),
        (Epochs(7, 3), np.inf),
        (Epochs(6, 2), 3),
        (Epochs(6, 2, b=2), np.inf),
        (Apart(7, 3, 2), 2),
        (Apart(6, 2, 2), np.inf),
        (Apart(5, 3, 1), 4),
        (Window(6, 3), 2),
        (AnyOf(4, 4), np.inf),
        (Epochs(5, 1), 5),
    ],
    ids=repr,
)
def test_vectors_agree_with_a_semidefinite_programme(who, p):
    A = np.tril(np.random.default_rng(who.n).uniform(0.2, 1.5, size=(who.n, who.n))) + np.eye(who.n)
    noise = solved(who, p, A)
    expected = reference(A, full_sets(who), p)
    assert noise.gap <= 1e-6
    assert noise.gamma_lower <= expected * (1 + 1e-6)
    assert noise.gamma >= expected * (1 - 1e-6)
    checked = noise.verify()
    assert checked.enclosure <= 1


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        (Epochs(64, 4), 4.40785338),
        (Epochs(64, 8), 7.00854815),
        (Apart(16, 4, 4), 3.69734),
        (Apart(16, 2, 4), 2.63556),
    ],
    ids=repr,
)
def test_prefix_sums_of_vectors_have_known_errors(who, expected):
    noise = solved(who)
    rounded = 10.0 ** -len(f"{expected}".split(".")[1])
    assert noise.gap <= 1e-6
    assert (
        noise.gamma_lower / who.n**0.5 - rounded <= expected <= noise.gamma / who.n**0.5 + rounded
    )


def test_a_person_of_every_tick_has_a_closed_form():
    assert solved(Epochs(20, 20)).gamma == pytest.approx(
        sum(math.sqrt(i) for i in range(1, 21)), rel=1e-6
    )


def test_counts_have_known_errors():
    any_two = solved(AnyOf(32, 2, kind="counts"))
    assert any_two.gamma / 32**0.5 == pytest.approx(3.365043, abs=3e-6)
    assert solved(AnyOf(32, 2, kind="counts"), np.inf).gamma == pytest.approx(3.42288, abs=1e-5)
    # numbers in [0, 1] are vectors no longer than one
    assert solved(AnyOf(8, 2, kind="counts")).gamma_lower <= solved(AnyOf(8, 2)).gamma


def test_two_epochs_of_signed_numbers_need_what_vectors_need():
    A = prefix_sums(6)
    zonotopes = [gn.Zonotope(A[:, [i, i + 3]].T) for i in range(3)]
    signed = gn.optimal_noise(gn.hull(*zonotopes), neighbors="add-remove")
    assert signed.gamma == pytest.approx(solved(Epochs(6, 2)).gamma, rel=3e-6)


def test_vectors_can_need_more_than_signed_numbers():
    A = np.tril(np.random.default_rng(4).normal(size=(6, 6))) + np.eye(6)
    signed = gn.optimal_noise(gn.Zonotope(A.T), neighbors="add-remove")
    assert solved(Epochs(6, 6), A=A).gamma_lower > 1.005 * signed.gamma


@pytest.mark.parametrize("who", [Epochs(6, 3), Epochs(6, 6), Apart(6, 2, 2)], ids=repr)
def test_degenerate_largest_errors_are_solved(who):
    A = np.tril(np.random.default_rng(5).normal(size=(6, 6))) + np.eye(6)
    assert solved(who, np.inf, A).gap <= 1e-6


@pytest.mark.parametrize("p", [2, 3.5, np.inf])
def test_zeros_between_the_ticks_of_one_person_lose_nothing_where_patterns_are_disjoint(p):
    noise = solved(Epochs(12, 3), p)
    X = np.linalg.inv(noise.covariance.factor()) @ prefix_sums(12)
    X = X.T @ X
    for ticks in full_sets(Epochs(12, 3)):
        block = X[np.ix_(ticks, ticks)]
        assert np.abs(block - np.diag(np.diag(block))).max() < 1e-4 * np.abs(block).max()


def test_wider_participation_needs_more_noise():
    chain = [Epochs(8, 2), Apart(8, 2, 4), Apart(8, 2, 2), AnyOf(8, 2), AnyOf(8, 3)]
    errors = [solved(who).gamma for who in chain]
    assert all(first <= second * (1 + 1e-6) for first, second in itertools.pairwise(errors))


def test_workloads_are_scaled_without_loss():
    for scale in (1e-120, 1e120):
        assert solved(Epochs(6, 2), 2, scale * prefix_sums(6)).gamma == pytest.approx(
            scale * solved(Epochs(6, 2)).gamma, rel=1e-6
        )


@pytest.mark.parametrize(
    "who", [Epochs(6, 2), Apart(6, 2, 2), AnyOf(5, 2, kind="counts")], ids=repr
)
def test_answers_are_stored_bit_for_bit(who, tmp_path):
    noise = solved(who, np.inf)
    noise.save(tmp_path / "noise.npz")
    again = gn.OptimalNoise.load(tmp_path / "noise.npz")
    assert (again.gamma, again.gamma_lower) == (noise.gamma, noise.gamma_lower)
    assert repr(again.domain) == repr(noise.domain)
    np.testing.assert_array_equal(again.covariance.factor(), noise.covariance.factor())
    assert again.certificate.lower_bound() == noise.certificate.lower_bound()
    np.testing.assert_allclose(again.certificate.spectrum()[0].sum(), noise.gamma_lower, rtol=1e-6)


def damaged(noise, **changes):
    return dataclasses.replace(noise, certificate=dataclasses.replace(noise.certificate, **changes))


def test_damaged_certificates_are_refused():
    noise = solved(Apart(6, 2, 2))
    witness = noise.certificate
    wrong_pattern = witness.patterns.copy()
    wrong_pattern[0] = [0, 1]
    repeated = witness.patterns.copy()
    repeated[0] = [0, 0]
    for changes in (
        {"patterns": wrong_pattern},
        {"patterns": repeated},
        {"patterns": witness.patterns - 7},
        {"vectors": 1.01 * witness.vectors},
        {"weights": -witness.weights},
        {"coordinate_weights": 1.1 * witness.coordinate_weights},
        {"vectors": np.full_like(witness.vectors, np.nan)},
        {"domain": VectorParticipations(prefix_sums(6), Apart(6, 3, 2))},
    ):
        with pytest.raises(CertificateError):
            damaged(noise, **changes).verify()
    # weaker measures prove less than what is claimed
    with pytest.raises(CertificateError, match="gamma_lower"):
        damaged(noise, vectors=0.9 * witness.vectors).verify()


def test_too_little_noise_is_refused():
    for who in (Epochs(6, 2), Apart(6, 2, 2)):
        noise = solved(who)
        M = noise.covariance
        for share in (0.5, 1 - 1e-7):
            less = FactorCovariance(M.unit_factor, share * M.scale)
            with pytest.raises(CertificateError, match="too little noise"):
                dataclasses.replace(noise, covariance=less).verify()
        once = gn.optimal_noise(gn.FiniteSet(prefix_sums(6).T), neighbors="add-remove")
        with pytest.raises(CertificateError, match="too little noise"):
            dataclasses.replace(noise, covariance=once.covariance).verify()
        bare = FactorCovariance(M.unit_factor[:, :-1], M.scale)
        with pytest.raises(CovarianceError, match="without noise"):
            dataclasses.replace(noise, covariance=bare).verify()


@pytest.mark.parametrize(
    ("who", "p"), [(Apart(7, 3, 2), 2), (Apart(6, 2, 2), np.inf), (Window(8, 3), 3)], ids=repr
)
def test_column_generation_agrees_with_the_barrier_method(who, p, monkeypatch):
    direct = solved(who, p)
    monkeypatch.setattr(participations, "affordable", lambda *sizes: False)
    generated = solved(who, p)
    assert "barrier" in direct.method
    assert "column generation" in generated.method
    assert max(direct.gap, generated.gap) <= 1e-6
    assert generated.gamma == pytest.approx(direct.gamma, rel=1e-6)
    assert generated.verify().enclosure <= 1


def test_patterns_that_cannot_be_listed_get_a_bracket(monkeypatch):
    who = Apart(12, 4, 3)
    listed = solved(who)
    monkeypatch.setattr(Apart, "lists_few", False)
    with pytest.warns(
        ConvergenceWarning, match="The search over what one person may do was stopped"
    ):
        bracket = solved(who)
    assert bracket.status is gn.results.Status.PARTICIPATIONS
    assert bracket.gamma_lower <= listed.gamma
    assert listed.gamma_lower <= bracket.gamma < 1.1 * listed.gamma
    assert bracket.verify().enclosure <= 1


def test_what_vectors_cannot_do_is_refused_with_a_hint():
    K = gn.streams.participations(prefix_sums(4), Epochs(4, 2))
    with pytest.raises(ParameterError, match='neighbors="add-remove"'):
        gn.optimal_noise(K)
    with pytest.raises(ParameterError, match='method="auto"'):
        gn.optimal_noise(K, neighbors="add-remove", method="sdp")
    with pytest.raises(ParameterError, match="expected a pattern of participation"):
        gn.streams.participations(prefix_sums(4), (4, 2))
    with pytest.raises(ParameterError):
        gn.gamma(K)
