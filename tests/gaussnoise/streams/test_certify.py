"""Strategies compared with the best possible noise."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gaussnoise as gn
from gaussnoise.errors import CertificateError, InvalidDomainError, ParameterError
from gaussnoise.noise.covariance import FactorCovariance

Apart, Epochs = gn.streams.Apart, gn.streams.Epochs


def prefix_sums(n):
    return np.tril(np.ones((n, n)))


def square_root(n):
    return np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, n))])


def test_the_square_root_and_its_bands_have_known_errors():
    who = Apart(30, 4, 7, kind="counts")
    for column, expected in ((square_root(30)[:7], 4.304), (square_root(30), 5.309)):
        found = gn.streams.certify(column, prefix_sums(30), participation=who)
        assert found.error / math.sqrt(30) == pytest.approx(expected, abs=5e-4)
        assert found.lower / math.sqrt(30) == pytest.approx(3.94112, abs=2e-5)
        assert found.factor == found.error / found.lower


def test_matrices_of_jax_privacy_have_the_factors_that_were_seen_where_it_is_installed():
    """It was optimised by its version 2.0.0 for 256 steps: four buffers, and 32 bands."""
    decay = np.array([0.98917451, 0.90248481, 0.63623229, 0.21066513])
    scale = np.array([0.12940546, 0.15058156, 0.15934453, 0.06375412])
    buffered = [1.0, *((scale * decay**k).sum() for k in range(255))]
    banded = [
        1, 0.5394, 0.4261, 0.3696, 0.3343, 0.3093, 0.2903, 0.2751, 0.2626, 0.2519, 0.2426,
        0.2344, 0.227, 0.2203, 0.2141, 0.2084, 0.2031, 0.1981, 0.1933, 0.1888, 0.1844, 0.1803,
        0.1762, 0.1722, 0.1683, 0.1644, 0.1606, 0.1567, 0.1528, 0.1487, 0.1444, 0.1395,
    ]  # fmt: skip
    for column, expected in ((buffered, 1.0367), (banded, 1.2228)):
        found = gn.streams.certify(column, gn.streams.prefix_sums(256))
        assert found.factor == pytest.approx(expected, abs=1e-4)


def test_the_best_strategy_is_certified_to_be_the_best():
    for who, p in ((None, 2), (None, np.inf), (Epochs(8, 2), 2), (Apart(8, 2, 3), np.inf)):
        A = prefix_sums(8)
        domain = gn.FiniteSet(A.T) if who is None else gn.streams.participations(A, who)
        M = gn.optimal_noise(domain, p, neighbors="add-remove").covariance.toarray()
        C = np.linalg.solve(np.linalg.cholesky(M), A)
        found = gn.streams.certify(np.tril(C), A, participation=who, p=p)
        assert 1 <= found.factor < 1 + 3e-6
        assert found.sensitivity == pytest.approx(1, rel=1e-5)


def test_once_each_is_what_one_tick_each_is():
    A = prefix_sums(9)
    once = gn.streams.certify(square_root(9), A)
    for kind in ("counts", "vectors"):
        again = gn.streams.certify(square_root(9), A, participation=Epochs(9, 1, kind=kind))
        assert again.error == pytest.approx(once.error, rel=1e-9)
        assert again.lower == pytest.approx(once.lower, rel=1e-5)
    assert once.sensitivity == pytest.approx(np.linalg.norm(square_root(9)), rel=1e-12)


def test_the_scale_of_a_strategy_does_not_matter():
    A, who = prefix_sums(9), Epochs(9, 3)
    found = [
        gn.streams.certify(c * square_root(9), A, participation=who)
        for c in (1.0, 1e-100, 7.0, 1e100)
    ]
    for other in found[1:]:
        assert other.error == pytest.approx(found[0].error, rel=1e-9)
    assert found[2].sensitivity == pytest.approx(7 * found[0].sensitivity, rel=1e-9)


@pytest.mark.parametrize("who", [None, Epochs(5, 2)])
def test_extreme_scales_lose_nothing(who):
    plain = gn.streams.certify(np.eye(5), prefix_sums(5), participation=who)
    for c in (1e-300, 1e-160, 1e160, 1e200, 1e300):
        found = gn.streams.certify(c * np.eye(5), prefix_sums(5), participation=who)
        assert found.error == pytest.approx(plain.error, rel=1e-12)
        assert found.sensitivity == pytest.approx(c * plain.sensitivity, rel=1e-12)
        small = gn.streams.certify(np.eye(5), c * prefix_sums(5), participation=who)
        assert small.error == pytest.approx(c * plain.error, rel=1e-12)
        assert small.lower == pytest.approx(c * plain.lower, rel=1e-9)
    # one answer of the strategy is nearly lost, and the error shows it
    uneven = gn.streams.certify(np.diag([1e-160, 1, 1, 1, 1]), prefix_sums(5), participation=who)
    assert uneven.error == pytest.approx(math.sqrt(5) * 1e160 * uneven.sensitivity, rel=1e-9)
    with pytest.raises(ParameterError, match=r"singular|largest double"):
        gn.streams.certify(np.diag([1e-320, 1, 1, 1, 1]), prefix_sums(5), participation=who)


def test_noise_that_believes_in_half_the_sensitivity_is_refused():
    A, who = prefix_sums(6), Epochs(6, 2)
    C = np.tril(np.random.default_rng(0).uniform(0.1, 1, size=(6, 6))) + np.eye(6)
    found = gn.streams.certify(C, A, participation=who)
    best = found.optimal
    for share, fits in ((1.0, True), (0.5, False), (1 - 1e-6, False)):
        B = np.linalg.solve(C.T, A.T).T
        covariance = FactorCovariance(B, share * found.sensitivity * (1 + 1e-8))
        claimed = gn.OptimalNoise(
            domain=best.domain, p=2.0, neighbors="add-remove", shifted=False,
            gamma=covariance.error(2) * (1 + 1e-9),
            gamma_lower=found.lower, covariance=covariance, center=np.zeros(6),
            certificate=best.certificate,
            sensitivity_squared=1.0, method="", status=best.status, steps=0,
        )  # fmt: skip
        if fits:
            assert claimed.verify().gamma == pytest.approx(found.error, rel=1e-7)
        else:
            with pytest.raises(CertificateError):
                claimed.verify()


class Streaming:
    """A strategy whose size the caller chooses, as in jax_privacy."""

    def __init__(self, C, sized):
        self.C = C
        if sized:
            self.materialize = lambda: C
        else:
            self.materialize = lambda n: C[:n, :n]


def test_strategies_come_in_many_forms():
    A, column = prefix_sums(5), square_root(5)
    C = np.array([[column[t - i] if t >= i else 0 for i in range(5)] for t in range(5)])
    expected = gn.streams.certify(C, A).error
    for strategy in (
        column,
        column.tolist(),
        csr_array(C),
        Streaming(C, True),
        Streaming(C, False),
        C.tolist(),
    ):
        assert gn.streams.certify(strategy, A).error == expected
    assert gn.streams.certify(C, csr_array(A)).error == expected
    banded = np.where(np.subtract.outer(range(5), range(5)) < 2, C, 0)
    assert gn.streams.certify(column[:2], A).error == gn.streams.certify(banded, A).error


def test_the_comparison_is_told_in_sentences():
    said = str(gn.streams.certify(square_root(6), prefix_sums(6), participation=Epochs(6, 2)))
    assert said.startswith(
        "At unit noise multiplier, the root mean square error of the 6 answers is at most"
    )
    assert "No strategy of any kind, under the same participation, has less than" in said
    assert "Epochs(n=6, k=2, b=3, kind='vectors')" in said
    assert (
        "largest standard deviation"
        in gn.streams.certify(square_root(6), prefix_sums(6), p=np.inf).explain()
    )
    assert (
        "Each person takes part once."
        in gn.streams.certify(square_root(6), prefix_sums(6), p=4).explain()
    )


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (np.ones((4, 4)), "lower-triangular"),
        (np.tril(np.ones((4, 4)), -1), "no zero on the diagonal"),
        (np.eye(3), r"shape \(4, 4\).* got shape \(3, 3\)"),
        (np.ones(5), r"at most 4 numbers; got shape \(5,\)"),
        (np.full((4, 4), np.nan), "finite"),
        ("square root", "array of numbers"),
        (np.diag([1.0, 1.0, 1.0, 1.0]) - 1e9 * np.eye(4, k=-1), "too nearly singular"),
    ],
)
def test_strategies_are_checked(strategy, message):
    with pytest.raises(ParameterError, match=message):
        gn.streams.certify(strategy, prefix_sums(4))


def test_other_arguments_are_checked():
    with pytest.raises(ParameterError, match="p >= 2"):
        gn.streams.certify(np.eye(4), prefix_sums(4), p=1)
    with pytest.raises(ParameterError, match="expected a pattern of participation"):
        gn.streams.certify(np.eye(4), prefix_sums(4), participation=2)
    with pytest.raises(InvalidDomainError, match="lower-triangular workload"):
        gn.streams.certify(np.eye(4), np.ones((4, 4)))
    with pytest.raises(InvalidDomainError, match="patterns over 4 ticks"):
        gn.streams.certify(np.eye(4), prefix_sums(4), participation=Epochs(5, 2))
