"""Strategies compared with the best possible noise."""

import itertools
import math
from fractions import Fraction

import mpmath
import networkx
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
        found = gn.certify(column, prefix_sums(30), participation=who)
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
        found = gn.certify(column, gn.streams.prefix_sums(256))
        assert found.factor == pytest.approx(expected, abs=1e-4)


def test_the_best_strategy_is_certified_to_be_the_best():
    for who, p in ((None, 2), (None, np.inf), (Epochs(8, 2), 2), (Apart(8, 2, 3), np.inf)):
        A = prefix_sums(8)
        domain = gn.FiniteSet(A.T) if who is None else gn.streams.participations(A, who)
        M = gn.optimal_noise(domain, p, neighbors="add-remove").covariance.toarray()
        C = np.linalg.solve(np.linalg.cholesky(M), A)
        found = gn.certify(np.tril(C), A, participation=who, p=p)
        assert 1 <= found.factor < 1 + 3e-6
        assert found.sensitivity == pytest.approx(1, rel=1e-5)


def test_once_each_is_what_one_tick_each_is():
    A = prefix_sums(9)
    once = gn.certify(square_root(9), A)
    for kind in ("counts", "vectors"):
        again = gn.certify(square_root(9), A, participation=Epochs(9, 1, kind=kind))
        assert again.error == pytest.approx(once.error, rel=1e-9)
        assert again.lower == pytest.approx(once.lower, rel=1e-5)
    assert once.sensitivity == pytest.approx(np.linalg.norm(square_root(9)), rel=1e-12)


def test_the_scale_of_a_strategy_does_not_matter():
    A, who = prefix_sums(9), Epochs(9, 3)
    found = [
        gn.certify(c * square_root(9), A, participation=who) for c in (1.0, 1e-100, 7.0, 1e100)
    ]
    for other in found[1:]:
        assert other.error == pytest.approx(found[0].error, rel=1e-9)
    assert found[2].sensitivity == pytest.approx(7 * found[0].sensitivity, rel=1e-9)


@pytest.mark.parametrize("who", [None, Epochs(5, 2)])
def test_extreme_scales_lose_nothing(who):
    plain = gn.certify(np.eye(5), prefix_sums(5), participation=who)
    for c in (1e-300, 1e-160, 1e160, 1e200, 1e300):
        found = gn.certify(c * np.eye(5), prefix_sums(5), participation=who)
        assert found.error == pytest.approx(plain.error, rel=1e-12)
        assert found.sensitivity == pytest.approx(c * plain.sensitivity, rel=1e-12)
        small = gn.certify(np.eye(5), c * prefix_sums(5), participation=who)
        assert small.error == pytest.approx(c * plain.error, rel=1e-12)
        assert small.lower == pytest.approx(c * plain.lower, rel=1e-9)
    # one answer of the strategy is nearly lost, and the error shows it
    uneven = gn.certify(np.diag([1e-160, 1, 1, 1, 1]), prefix_sums(5), participation=who)
    assert uneven.error == pytest.approx(math.sqrt(5) * 1e160 * uneven.sensitivity, rel=1e-9)
    with pytest.raises(ParameterError, match=r"singular|largest double"):
        gn.certify(np.diag([1e-320, 1, 1, 1, 1]), prefix_sums(5), participation=who)


def test_noise_that_believes_in_half_the_sensitivity_is_refused():
    A, who = prefix_sums(6), Epochs(6, 2)
    C = np.tril(np.random.default_rng(0).uniform(0.1, 1, size=(6, 6))) + np.eye(6)
    found = gn.certify(C, A, participation=who)
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
    expected = gn.certify(C, A).error
    for strategy in (
        column,
        column.tolist(),
        csr_array(C),
        Streaming(C, True),
        Streaming(C, False),
        C.tolist(),
    ):
        assert gn.certify(strategy, A).error == expected
    assert gn.certify(C, csr_array(A)).error == expected
    banded = np.where(np.subtract.outer(range(5), range(5)) < 2, C, 0)
    assert gn.certify(column[:2], A).error == gn.certify(banded, A).error


def test_the_comparison_is_told_in_sentences():
    found = gn.certify(square_root(6), prefix_sums(6), participation=Epochs(6, 2))
    said = found.explain()
    assert said.startswith(
        "At rho = 1/2, where the standard deviation of the noise is the sensitivity, the root mean "
        "square error of the 6 answers is at most"
    )
    assert "No strategy of any kind, under the same participation, has less than" in said
    assert "Epochs(n=6, k=2, b=3, kind='vectors')" in said
    assert (
        "largest standard deviation"
        in gn.certify(square_root(6), prefix_sums(6), p=np.inf).explain()
    )
    assert (
        "One record is added or removed."
        in gn.certify(square_root(6), prefix_sums(6), p=4).explain()
    )


@pytest.mark.parametrize(("p", "per"), [(2, 6**0.5), (4, 1.0), (np.inf, 1.0)])
def test_a_certificate_prints_as_short_lines_with_both_ends(p, per, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    found = gn.certify(square_root(6), prefix_sums(6), p=p)
    lines = str(found).splitlines()
    assert lines[0].startswith("Strategy for 6 answers: ")
    assert max(map(len, lines)) <= 80
    numbers = {line[:15].strip(): line[15:] for line in lines[1:]}
    assert numbers["this strategy"] == f"at most {found.error / per:.6g}"
    assert numbers["best known"] == f"{found.upper / per:.6g}"
    assert numbers["any strategy"].startswith(f"at least {found.lower / per:.6g}, ")


def test_the_error_at_the_stated_noise_is_told():
    found = gn.certify(prefix_sums(4), prefix_sums(4), standard_deviation=3.0)
    own = found.covariance.standard_deviation()
    assert own == pytest.approx([3] * 4)
    assert found.error / found.sensitivity == pytest.approx(np.linalg.norm(own))
    assert "have rho = 0.222222, and this error is at most 3. One record" in found.explain()
    assert "rho = 0.222222 for all outputs together, error at most 3\n" in str(found)
    # noise of standard deviation 2/√(2ρ), as the sensitivity is 2, is ρ-zCDP
    rho = 0.1
    at = gn.certify(prefix_sums(4), prefix_sums(4), standard_deviation=2 / np.sqrt(2 * rho))
    assert at.rho == pytest.approx(rho)
    assert at.error / at.sensitivity == pytest.approx(found.error / np.sqrt(2 * rho))


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (np.ones((4, 4)), "row space of the strategy, got 3 of 4 queries"),
        (np.tril(np.ones((4, 4)), -1), "row space of the strategy, got 1 of 4 queries"),
        (np.eye(3), r"shape \(outputs, 4\).* got shape \(3, 3\)"),
        (np.ones(5), r"at most 4 numbers; got shape \(5,\)"),
        (np.full((4, 4), np.nan), "finite numbers in the strategy, got nan in row 0, column 0"),
        (np.diag([1, 1, np.inf, 1]), "got inf in row 2, column 2; hint: 0 for a cell"),
        ([1.0, np.nan], r"got nan in place \[1\]"),
        ("square root", "array of numbers"),
        (np.diag([1.0, 1.0, 1.0, 1.0]) - 1e9 * np.eye(4, k=-1), "too nearly singular"),
    ],
)
def test_strategies_are_checked(strategy, message):
    with pytest.raises(ParameterError, match=message):
        gn.certify(strategy, prefix_sums(4))


def test_other_arguments_are_checked():
    with pytest.raises(ParameterError, match="p >= 2"):
        gn.certify(np.eye(4), prefix_sums(4), p=1)
    with pytest.raises(ParameterError, match=r"sizes= with measured tables alone.*hint"):
        gn.certify(np.eye(4), prefix_sums(4), sizes={"a": 4})
    with pytest.raises(InvalidDomainError, match="in the workload, got nan in row 3, column 0"):
        gn.certify(np.eye(4), prefix_sums(4) + np.diag([np.nan], -3))
    with pytest.raises(ParameterError, match="expected a pattern of participation"):
        gn.certify(np.eye(4), prefix_sums(4), participation=2)
    with pytest.raises(InvalidDomainError, match="lower-triangular workload"):
        gn.certify(np.eye(4), np.ones((4, 4)), participation=Epochs(4, 2))
    with pytest.raises(InvalidDomainError, match="patterns over 4 ticks"):
        gn.certify(np.eye(4), prefix_sums(4), participation=Epochs(5, 2))


def hierarchy(n, branching=2):
    """All sums over the nodes of a tree whose leaves are n cells."""
    rows, width = [], 1
    while width <= n:
        rows += [np.kron(np.eye(n // width), np.ones(width))]
        width *= branching
    return np.vstack([row.reshape(-1, n) for row in rows])


def by_hand(C, A, p, neighbors, edges=None):
    """Error at unit noise multiplier, by the pseudo-inverse and all pairs of cells."""
    moves = C.T
    if neighbors != "add-remove":
        pairs = itertools.combinations(range(C.shape[1]), 2) if edges is None else edges
        moves = np.array([C[:, i] - C[:, j] for i, j in pairs])
        # the number of records is known: only histograms of this sum are possible
        possible = np.linalg.svd(np.ones((1, C.shape[1])))[2][1:].T
        C, A = C @ possible, A @ possible
    sd = np.linalg.norm(A @ np.linalg.pinv(C), axis=1)
    return np.linalg.norm(sd, p) * max(np.linalg.norm(move) for move in moves)


@pytest.mark.parametrize("p", [2, 3, math.inf])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_any_matrix_has_the_error_of_the_pseudo_inverse(p, neighbors):
    rng = np.random.default_rng(1)
    for outputs, cells, queries in ((7, 4, 5), (4, 4, 9), (20, 6, 3)):
        C, A = rng.normal(size=(outputs, cells)), rng.normal(size=(queries, cells))
        found = gn.certify(C, A, neighbors=neighbors, p=p)
        assert found.error == pytest.approx(by_hand(C, A, p, neighbors), rel=1e-6)
        assert found.error >= by_hand(C, A, p, neighbors) * (1 - 1e-6)
        assert found.lower <= found.upper <= found.error * (1 + 1e-6)
        assert found.factor >= 1
        found.optimal.verify()
        assert found.witness is found.optimal.certificate


def test_a_policy_graph_is_respected():
    rng = np.random.default_rng(2)
    C, A, path = rng.normal(size=(6, 4)), rng.normal(size=(3, 4)), networkx.path_graph(4)
    found = gn.certify(C, A, neighbors=path)
    assert found.error == pytest.approx(by_hand(C, A, 2, "policy", path.edges), rel=1e-6)
    assert gn.certify(C, A, neighbors="replace").error > found.error
    assert "policy graph with 3 edges" in found.explain()


def test_a_strategy_of_lower_rank_answers_its_row_space():
    C = np.vstack([np.eye(3), np.eye(3)]) @ np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]])
    A = np.array([[1.0, 1, 0, 0], [1, 1, 1, 1]])
    found = gn.certify(C, A)
    assert found.error == pytest.approx(by_hand(C, A, 2, "add-remove"), rel=1e-9)
    with pytest.raises(ParameterError, match=r"1 of 2 queries .* query 1, the share 0\.707"):
        gn.certify(C, [[1.0, 1, 0, 0], [1, 0, 0, 0]])
    # where the number of records is public, the total needs no output
    contrast = np.array([[1.0, -1]])
    with pytest.raises(ParameterError, match="row space"):
        gn.certify(contrast, np.eye(2))
    found = gn.certify(contrast, np.eye(2), neighbors="replace")
    assert found.factor == pytest.approx(1, abs=1e-5)


def test_both_ends_agree_with_closed_forms_and_a_semidefinite_programme():
    """γ_2²/n and γ_∞² of prefix sums, by two implementations outside this package."""
    for n, mean, largest in ((16, 2.854084800749, 2.90525290259), (64, 4.409397203944, None)):
        A, tree = prefix_sums(n), hierarchy(n)
        found = gn.certify(tree, A)
        assert found.lower**2 / n == pytest.approx(mean, rel=1e-5)
        assert found.error == pytest.approx(by_hand(tree, A, 2, "add-remove"), rel=1e-9)
        if largest:
            assert gn.certify(tree, A, p=math.inf).lower ** 2 == pytest.approx(largest, rel=1e-5)
    identity = gn.certify(np.eye(16), prefix_sums(16))
    assert identity.error**2 == pytest.approx(16 * 17 / 2, rel=1e-9)  # Σ t
    itself = gn.certify(prefix_sums(16), prefix_sums(16))
    assert itself.error == pytest.approx(16, rel=1e-9)  # √16 of sensitivity, 16 answers
    A = np.random.default_rng(3).normal(size=(6, 4))
    sdp = gn.optimal_noise(
        gn.FiniteSet.from_workload(A), neighbors="add-remove", method="sdp-clarabel", tol=1e-4
    )
    assert gn.certify(np.eye(4), A).lower == pytest.approx(sdp.gamma, rel=1e-4)


def test_a_strategy_that_is_slightly_changed_is_noticed():
    A = prefix_sums(8)
    M = gn.optimal_noise(gn.FiniteSet.from_workload(A), neighbors="add-remove").covariance
    best = np.linalg.solve(np.linalg.cholesky(M.toarray()), A)
    assert gn.certify(best, A).factor < 1 + 3e-6
    rng = np.random.default_rng(4)
    for change in (1e-2, 1e-1):
        worse = gn.certify(best + change * rng.normal(size=best.shape), A)
        assert worse.factor > 1 + change**2
    # one output with 1 % less noise than stated: more privacy loss than stated
    claimed = gn.certify(best, A, standard_deviation=2.0)
    drawn = gn.certify(best, A, standard_deviation=np.r_[np.full(7, 2.0), 1.98])
    assert claimed.rho == pytest.approx(1 / 8, rel=1e-5)
    assert drawn.rho > claimed.rho * (1 + 1e-4)


def test_records_of_a_given_set():
    C, A = np.array([[2.0, 0], [0, 1], [1, 1]]), np.array([[1.0, 1], [1, -1]])
    ball = gn.LpBall(2, 2)
    for neighbors, times in (("add-remove", 1.0), ("replace", 2.0)):
        found = gn.certify(C, A, domain=ball, neighbors=neighbors)
        assert found.sensitivity == pytest.approx(times * np.linalg.norm(C, 2), rel=1e-9)
        spread = np.sqrt(np.trace(A @ np.linalg.inv(C.T @ C) @ A.T))
        assert found.error == pytest.approx(found.sensitivity * spread, rel=1e-9)
        assert found.lower == pytest.approx(times * np.linalg.norm(A), rel=1e-5)
    corners = gn.FiniteSet(np.array([[1.0, 0], [0, 1], [1, 1]]))
    listed = gn.certify(C, A, domain=corners)
    assert listed.sensitivity == pytest.approx(np.sqrt(4 + 1 + 4), rel=1e-12)
    cells = gn.certify(C @ corners.points.T, A @ corners.points.T)
    assert listed.error == pytest.approx(cells.error, rel=1e-12)
    with pytest.raises(ParameterError, match=r"records in R\^2"):
        gn.certify(C, A, domain=gn.LpBall(3, 2))


@pytest.mark.parametrize(
    ("offset", "neighbors"),
    [(x, relation) for x in (1e3, 1e6, 3e7) for relation in ("add-remove", "replace")]
    + [(2930641957557437.5, "add-remove")],
)
def test_the_loss_is_no_less_than_the_exact_one_where_large_numbers_cancel(offset, neighbors):
    """Against fractions: of records of a given set, and of outputs with a standard deviation."""
    c, ends = 0.3843491908309302, [offset, offset + 0.9567809473164062]
    one = [[x, 0.0] for x in ends] if neighbors == "replace" else [ends]
    strategy = [[c, -c]]
    found = [gn.certify(strategy, strategy, domain=gn.FiniteSet(one), neighbors=neighbors)]
    moves = [Fraction(c) * (Fraction(ends[1]) - Fraction(ends[0]))]
    if neighbors == "replace":
        found.append(gn.certify([ends], [ends], neighbors=neighbors, standard_deviation=3.0))
        moves.append((Fraction(ends[1]) - Fraction(ends[0])) / 3)
    for certificate, move in zip(found, moves, strict=True):
        assert Fraction(certificate.rho) >= move**2 / 2
        assert certificate.rho <= float(move**2 / 2) * (1 + 1e-14 * offset) ** 2


def test_trees_over_time_for_persons_who_come_again():
    """The sensitivity of a rectangular strategy, by all patterns and signs."""
    tree, A = hierarchy(8), prefix_sums(8)
    for kind in ("counts", "vectors"):
        who = Epochs(8, 2, kind=kind)
        found = gn.certify(tree, A, participation=who)
        X = tree.T @ tree
        most = max(
            sum(X[i, j] for i in ticks for j in ticks)
            for ticks in [row[row < 8] for row in who.maximal()]
        )
        assert found.sensitivity == pytest.approx(math.sqrt(most), rel=1e-9)
        assert found.sensitivity**2 >= most * (1 - 1e-15)
        assert found.factor >= 1
    with pytest.raises(ParameterError, match="singular"):
        gn.certify(tree[8:], A, participation=Epochs(8, 2))
    with pytest.raises(ParameterError, match='expected neighbors="add-remove"'):
        gn.certify(tree, A, participation=Epochs(8, 2), neighbors="replace")


@pytest.mark.parametrize("c", [0.0, 0.25, 0.5, 1.0])
def test_coupled_outputs_are_accounted_together(c):
    """google/differential-privacy, issue 428: outputs (f + Z, c·f + Z') of one record's change Δ.

    Accounted one by one, the loss of the first is Δ²/2σ²; together it is Δ²(1 + c²)/2σ². All
    numbers are compared to 12 digits with arithmetic of 50.
    """
    delta, sigma, epsilon = 1.0, 2.0, 1.0
    found = gn.certify([[delta], [c * delta]], [[1.0]], standard_deviation=sigma)
    alone = gn.certify([[delta]], [[1.0]], standard_deviation=sigma)
    with mpmath.workdps(50):
        mu = mpmath.sqrt(1 + mpmath.mpf(c) ** 2) / 2

        def beyond(mu):  # δ at ε of two Gaussians at distance mu
            mu = mpmath.mpf(mu)
            return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
                -mu / 2 - epsilon / mu
            )

        assert abs(found.sensitivity / mu - 1) < 1e-12
        assert abs(found.rho / (mu**2 / 2) - 1) < 1e-12
        assert abs(beyond(found.sensitivity) / beyond(mu) - 1) < 1e-12
        assert beyond(found.sensitivity) >= beyond(mu)
        assert alone.rho == pytest.approx(1 / 8, rel=1e-12)
        if c:
            assert beyond(alone.sensitivity) < beyond(mu)
    assert found.rho == pytest.approx(alone.rho * (1 + c**2), rel=1e-12)


def test_a_frame_lists_every_answer():
    found = gn.certify(np.eye(4), prefix_sums(4), standard_deviation=3.0)
    frame = found.to_frame("pandas")
    assert list(frame.columns) == ["answer", "standard_deviation", "best_known", "times_best"]
    assert np.allclose(frame.standard_deviation, 3 * np.sqrt(np.arange(1, 5)))
    total = np.linalg.norm(frame.best_known)
    assert total == pytest.approx(found.upper / found.sensitivity, rel=1e-6)
    assert found.rho == pytest.approx(1 / 18, rel=1e-12)


@pytest.mark.parametrize("given", [0.0, -1.0, math.nan, [1.0, 2.0], "two", np.ones((4, 1))])
def test_standard_deviations_are_checked(given):
    with pytest.raises(ParameterError, match="positive standard deviation"):
        gn.certify(np.eye(4), np.eye(4), standard_deviation=given)


def test_a_workload_is_needed():
    with pytest.raises(ParameterError, match="expected a workload"):
        gn.certify(np.eye(4))
    with pytest.raises(ParameterError, match="zero, beyond the largest"):
        gn.certify(np.eye(4), np.zeros((1, 4)))
