"""Local mechanisms, against independent references.

ε: audited from real messages (Clopper–Pearson); its proof is tested in test_randomizers.py. Means
and covariances: simulation, closed forms, and the bound that no unbiased mechanism beats.
"""

import dataclasses
import math
import pickle
import secrets

import numpy as np
import pytest
from cases import one_test_of
from scipy import stats

import gaussnoise as gn
from gaussnoise.errors import DataError, DomainTooLargeError, NotAvailableError, ParameterError
from gaussnoise.solvers.points.fidelity import Fidelity

ALARM = 1e-6
BALL = gn.LpBall(3, 2)
TRIANGLE = gn.Polytope([[0.0, 0.0], [4.0, 1.0], [1.0, 2.0]])
SEGMENT = gn.LpBall(1, 2)
RANDOMIZERS = ["privunitg", "privunit", "point-release"]


def mechanism(domain=BALL, epsilon=2.0, p=2, randomizer="privunitg"):
    return gn.LocalMechanism(domain, gn.LocalDP(epsilon), p=p, randomizer=randomizer)


def decoded(local, records, rng):
    """Return every message of the simulated users, each decoded by itself, shape (n, d)."""
    code = local._codebook
    read = [
        code.read(local._unlabelled(message))
        for message in local._messages(records, "refuse", rng.bytes)
    ]
    M = local.noise.covariance
    return local.noise.center + code.decoded(read) @ M.factor().T


def test_reports_use_the_system_randomness_only(monkeypatch):
    local, asked = mechanism(), []
    real = secrets.token_bytes
    monkeypatch.setattr(secrets, "token_bytes", lambda count: asked.append(count) or real(count))
    first, second = local.reports([[0.0, 0.6, 0.8]] * 2)
    assert sum(asked) >= 2 * (16 + 8 + local._codebook.bits // 8)
    assert first[:16] != second[:16]
    assert len(first) == local.message_bytes == 4 + 17


# Auditing real messages.


def epsilon_proven(local, left, right, draws):
    """Return a Clopper–Pearson lower bound on ε, from how often messages of two records lie in the
    cap of the first.
    """
    code, y = local._codebook, local._coordinates([left], "refuse")[0]

    def hits(record):
        count = 0
        for message in local.reports([record] * draws):
            token, index = code.read(local._unlabelled(message))
            sizes = code.candidates(token) @ y
            cap = np.argsort(-np.abs(sizes))[: code.closest]
            count += index in set(2 * cap + (sizes[cap] < 0))
        return count

    a, b = hits(left), hits(right)
    p = stats.beta.ppf(ALARM / 2, a, draws - a + 1)
    return math.log(p / stats.beta.isf(ALARM / 2, b + 1, draws - b))


@pytest.mark.parametrize(
    ("domain", "randomizer", "left", "right"),
    [
        (BALL, "privunitg", [1.0, 0, 0], [-1.0, 0, 0]),
        (BALL, "privunit", [0, 0.6, 0.8], [0, -0.6, -0.8]),
        (BALL, "point-release", [0, 1.0, 0], [0, -1.0, 0]),
        (SEGMENT, "randomized-response", [1.0], [-1.0]),
    ],
)
def test_messages_spend_what_they_claim_and_a_mutant_more(domain, randomizer, left, right):
    local = mechanism(domain, 1.5, randomizer=randomizer)
    assert 0.5 * 1.5 < epsilon_proven(local, left, right, 2000) <= 1.5
    code = local._codebook
    odds = code.chance / (1 - code.chance) * 3
    local.__dict__["_codebook"] = dataclasses.replace(
        code, hits=int(2**code.bits * odds / (1 + odds))
    )
    assert epsilon_proven(local, left, right, 2000) > 1.5


# Means and covariances.


@pytest.mark.paper("Theorem 17", by="simulated messages")
@pytest.mark.parametrize("randomizer", RANDOMIZERS)
@pytest.mark.parametrize(
    ("domain", "record"),
    [
        (TRIANGLE, [4.0, 1.0]),
        (TRIANGLE, [1.0, 0.5]),
        (BALL, [0.0, 0.0, 0.0]),
        (BALL, [0.3, 0.0, -0.2]),
        (gn.FiniteSet(np.eye(4)), [0.0, 0.0, 1.0, 0.0]),
        (
            gn.Marginals((2, 3), [(0,), (0, 1)]),
            gn.Marginals((2, 3), [(0,), (0, 1)]).embed([[1, 2]])[0],
        ),
    ],
    ids=["vertex", "inner", "zero", "short", "flat", "marginals"],
)
def test_messages_have_the_mean_and_covariance_stated(domain, record, randomizer):
    local, n = mechanism(domain, 2.0, randomizer=randomizer), 1500
    errors = decoded(local, [record] * n, np.random.default_rng(3)) - record
    values, vectors = np.linalg.eigh(local.covariance(record).toarray())
    there = values > 1e-9 * values.max()
    assert there.sum() == local.dim
    np.testing.assert_allclose(errors @ vectors[:, ~there], 0, atol=1e-6)
    z = errors @ vectors[:, there] / np.sqrt(values[there])

    def mean_fits(z):
        return n * np.square(z.mean(axis=0)).sum() <= stats.chi2.isf(ALARM, z.shape[1])

    def covariance_fits(z):
        products = np.einsum("ij,ik->ijk", z, z) - np.eye(z.shape[1])
        t = products.mean(axis=0) / (products.std(axis=0) / math.sqrt(n) + 1e-12)
        # two-sided, one for each entry; constant squares (randomised response) do not vary
        return np.abs(np.where(np.abs(products.mean(axis=0)) < 1e-6, 0, t)).max() <= stats.norm.isf(
            ALARM / z.shape[1] ** 2
        )

    assert mean_fits(z)
    assert covariance_fits(z)
    assert not mean_fits(z + 0.2)
    assert not covariance_fits(1.2 * z)


def test_means_of_different_records_and_of_row_indices():
    local = mechanism(gn.FiniteSet([[0.0, 0.0], [1.0, 0.0], [3.0, 2.0]]), 6.0)
    rows = np.array([0, 1, 2, 2, 1] * 300)
    found = local.simulate(rows, np.random.default_rng(4))
    truth = local.domain.points[rows].mean(axis=0)
    assert found.n == 1500
    assert not found.private
    assert "NOT PRIVATE" in repr(found)
    assert (np.abs(found.estimate - truth) < 5.5 * found.standard_deviation).all()
    again = local.simulate(local.domain.points[rows], np.random.default_rng(4))
    np.testing.assert_array_equal(again.estimate, found.estimate)


def test_the_server_sees_what_users_sent():
    local = mechanism(TRIANGLE, 4.0, math.inf)
    messages = [local.report([1.0, 1.0]) for _ in range(500)]
    answer = local.aggregate(iter(messages))
    assert answer.private
    assert "LocalEstimate(2 coordinates from 500 messages" in repr(answer)
    assert answer.privacy["epsilon"] == 4.0
    assert (np.abs(answer.estimate - 1.0) < 5.5 * answer.standard_deviation).all()
    assert answer.standard_deviation.max() == pytest.approx(
        local.error(500), rel=1e-9
    )  # p = ∞: both are √β largest sd


@pytest.mark.parametrize("p", [2, 3, math.inf])
@pytest.mark.parametrize("randomizer", RANDOMIZERS)
@pytest.mark.parametrize(
    "domain", [TRIANGLE, BALL, gn.FiniteSet(np.eye(3))], ids=["triangle", "ball", "simplex"]
)
def test_no_record_has_more_error_than_the_bound_or_less_than_any_mechanism(domain, randomizer, p):
    epsilon, rng = 1.5, np.random.default_rng(5)
    local = mechanism(domain, epsilon, p, randomizer)
    listed = (
        domain.points
        if isinstance(domain, gn.FiniteSet)
        else [domain.support_point(x) for x in rng.normal(size=(9, domain.dim))]
    )
    if not isinstance(domain, gn.FiniteSet):
        listed = [
            *listed,
            np.mean(listed, axis=0),
            0.5 * listed[0] + 0.5 * listed[1],
            local.noise.center,
        ]
    most = local.covariance_bound.toarray()
    least = gn.optimal_noise(domain, p).gamma_lower / (4 * math.sinh(epsilon / 2))
    for record in listed:
        covariance = local.covariance(record)
        assert np.linalg.eigvalsh(most - covariance.toarray()).min() >= -1e-9 * most.max()
        assert least <= covariance.error(p) <= local.error(1) * (1 + 1e-12)
    assert local.error(100) == pytest.approx(local.error(1) / 10)
    assert (
        local.covariance_bound.standard_deviation() <= np.sqrt(np.diag(most)) * (1 + 1e-12)
    ).all()
    if randomizer == "point-release" and not isinstance(
        domain, gn.FiniteSet
    ):  # attained at the center
        assert covariance.error(p) == pytest.approx(local.error(1), rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 6.0])
def test_randomized_response_is_optimal_at_the_ends(epsilon):
    local = mechanism(SEGMENT, epsilon, randomizer="randomized-response")
    assert local.message_bytes == 4 + 1
    M = local.noise.covariance.diagonal()[
        0
    ]  # of a segment longer by its margin, whose ends no record reaches
    assert 1 <= M <= 1 + 1e-8
    for x in (-1.0, 1.0):
        variance = M / math.tanh(epsilon / 2) ** 2 - x**2
        assert variance == pytest.approx(1 / math.sinh(epsilon / 2) ** 2, abs=2e-8, rel=1e-7)
        assert local.covariance([x]).diagonal() == pytest.approx(variance, rel=1e-11, abs=1e-13)
        # γ°(K − K) = 2: the instance bound
        assert local.covariance([x]).error(2) >= 2 / (4 * math.sinh(epsilon / 2)) * (2 - 1e-7)
    for x in (0.0, 0.25):
        assert local.covariance([x]).diagonal() == pytest.approx(
            1 / math.tanh(epsilon / 2) ** 2 - x**2, rel=1e-7
        )
    assert local.error(1) == pytest.approx(1 / math.tanh(epsilon / 2), rel=1e-7)


@pytest.mark.parametrize("randomizer", ["randomized-response", "privunit"])
def test_segments_in_space_take_randomized_response(randomizer):
    segment = gn.FiniteSet([[0.0, 2.0, 1.0], [4.0, 0.0, 1.0]])
    local = mechanism(segment, 3.0, randomizer=randomizer)
    messages = set(local.reports([0, 1] * 50))
    assert messages == {local._label + b"\0", local._label + b"\1"}
    points = np.array([local.aggregate([message]).estimate for message in sorted(messages)])
    assert sorted(points[:, 2]) == pytest.approx([1, 1])
    reach = 2 / math.tanh(1.5)
    np.testing.assert_allclose(sorted(points[:, 0]), [2 - reach, 2 + reach], rtol=1e-6)


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize(("dim", "epsilon"), [(1, 6.0), (3, 2.0), (4, 0.5)])
def test_the_bound_is_that_of_all_mechanisms(dim, epsilon, p):
    """γ_p of the unit ball is dim^{1/p}, and its differences are a ball of twice the size."""
    for randomizer in RANDOMIZERS:
        local = mechanism(gn.LpBall(dim, 2), epsilon, p, randomizer)
        bound = local.bound(25)
        assert bound.error == pytest.approx(
            2 * dim ** (1 / p) / (4 * math.sinh(epsilon / 2) * 5), rel=2e-6
        )
        assert bound.factor(local.error(25)) == pytest.approx(local.error(25) / bound.error)
        assert bound.factor(local.error(25)) == pytest.approx(local.bound(9).factor(local.error(9)))
        assert bound.factor(local.error(25)) > 1
    assert (bound.privacy, bound.p, bound.n, bound.private) == (local.privacy, p, 25, False)
    with pytest.raises(ParameterError, match="n"):
        local.bound(0)


# Refusals.


SECRET = 739173917391.25


@one_test_of(
    ("domain", "record"),
    [
        (BALL, [SECRET, 0.0, 0.0]),
        (BALL, [1.001, 0.0, 0.0]),
        (BALL, [math.nan, 0.0, 0.0]),
        (BALL, [0.0, math.inf, 0.0]),
        (BALL, [1e308, 1e308, 0.0]),
        (BALL, [0.5, 0.5]),
        (BALL, 1.0),
        (BALL, "canary"),
        (BALL, ["739173917391", "a", "b"]),
        (BALL, [[0.0], [1.0, 2.0]]),
        (BALL, None),
        (gn.FiniteSet(np.eye(3)), 3),
        (gn.FiniteSet(np.eye(3)), -1),
        (gn.FiniteSet(np.eye(3)), [0.5, 0.5, 0.0]),
        (TRIANGLE, [4.0, 2.0]),
    ],
)
def test_bad_records_are_refused_without_their_values(domain, record):
    local = mechanism(domain)
    for ask in (local.report, local.covariance):
        with pytest.raises(DataError) as caught:
            ask(record)
        assert "73917" not in str(caught.value)
        assert "canary" not in str(caught.value)


def test_records_outside_can_be_projected():
    local = mechanism(BALL, 5.0)
    assert len(local.report([SECRET, 0.0, 0.0], on_outside="project")) == local.message_bytes
    found = local.simulate([[3.0, 0.0, 0.0]] * 400, np.random.default_rng(6), on_outside="project")
    assert (np.abs(found.estimate - [1.0, 0.0, 0.0]) < 5.5 * found.standard_deviation).all()
    with pytest.raises(ParameterError, match=r"expected on_outside=\"refuse\""):
        local.report([0.0, 0.0, 0.0], on_outside="clip")
    with pytest.raises(NotAvailableError):
        mechanism(TRIANGLE).report([4.0, 2.0], on_outside="project")


def test_what_is_no_message_is_refused():
    local = mechanism()
    message = local.report([0.0, 0.0, 0.0])
    assert local._codebook.size < 256
    for bad in (
        [],
        [b""],
        [message[:-1]],
        [message + b"0"],
        [message[:-1] + b"\xff"],
        ["text"],
        [None],
        7,
    ):
        with pytest.raises(DataError, match="aggregate: expected"):
            local.aggregate(bad)
    with pytest.raises(DataError):  # one bad among good
        local.aggregate(
            [message, mechanism(SEGMENT, randomizer="randomized-response").report([0.0])]
        )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((BALL, gn.zCDP(1.0)), ParameterError, r"expected LocalDP\(epsilon\), got zCDP"),
        ((BALL, 1.0), ParameterError, r"got 1\.0; hint"),
        ((BALL, gn.LocalDP(1e-10)), ParameterError, "nothing but noise"),
        ((BALL, gn.LocalDP(1.0), 2, "laplace"), ParameterError, "got 'laplace'"),
        ((BALL, gn.LocalDP(1.0), 2, ["privunit"]), ParameterError, r"got \['privunit'\]"),
        (
            (BALL, gn.LocalDP(1.0), 2, "randomized-response"),
            ParameterError,
            "this domain has r = 3; hint",
        ),
        ((BALL, gn.LocalDP(1.0), 1), ParameterError, "p >= 2"),
        (([[0.0, 1.0]], gn.LocalDP(1.0)), ParameterError, "expected a domain"),
        ((gn.FiniteSet([[1.0, 2.0]]), gn.LocalDP(1.0)), ParameterError, "single point"),
        (
            (gn.LpBall(5000, 2), gn.LocalDP(1.0)),
            DomainTooLargeError,
            "5e.03 coordinates, more than 4096",
        ),
    ],
)
def test_bad_arguments(arguments, error, message):
    domain, privacy, *options = arguments
    with pytest.raises(error, match=message):
        gn.LocalMechanism(domain, privacy, **dict(zip(("p", "randomizer"), options, strict=False)))


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, 1e4, "much"])
def test_bad_budgets(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        gn.LocalDP(epsilon)


@pytest.mark.parametrize("n", [0, -3, 1.5, None])
def test_errors_are_of_a_number_of_messages(n):
    with pytest.raises(ParameterError, match="n >= 1"):
        mechanism().error(n)


@pytest.mark.parametrize("randomizer", ["privunitg", "privunit"])
def test_huge_budgets_neither_overflow_nor_end_noise(randomizer):
    local = mechanism(BALL, 700.0, randomizer=randomizer)
    assert local._codebook.chance < 1
    assert 0 < local.error(1) < 1.1
    assert len(local.report([0.0, 0.0, 1.0])) == local.message_bytes == 4 + 18


def test_messages_of_another_mechanism_are_refused():
    """Messages of another mechanism have the same length: their mean would be wrong."""
    local = mechanism(gn.LpBall(3, 2), 1.0)
    others = [
        mechanism(gn.LpBall(3, 2), 1.3),
        mechanism(gn.LpBall(3, 2, radius=2.0), 1.0),
        mechanism(gn.LpBall(3, 2) + np.eye(3)[0], 1.0),
        mechanism(gn.LpBall(3, 2), 1.0, randomizer="privunit"),
    ]
    for other in others:
        messages = other.reports([other.noise.center] * 3)
        with pytest.raises(DataError, match="equal mechanism"):
            local.aggregate(messages)
    copies = [pickle.loads(pickle.dumps(local)), mechanism(gn.LpBall(3, 2), 1.0)]
    for copy in copies:
        assert local.aggregate(copy.reports(np.zeros((3, 3)))).n == 3


def test_a_turned_factor_is_another_mechanism():
    """Another machine solved for the same covariance: its coordinates are different."""
    local, other = mechanism(gn.LpBall(3, 2), 1.0), mechanism(gn.LpBall(3, 2), 1.0)
    M = other._factor
    other.__dict__["_factor"] = dataclasses.replace(M, unit_factor=M.unit_factor[:, ::-1])
    assert other._label != local._label


def test_estimates_can_be_read():
    text = str(mechanism(gn.LpBall(9, 2), 1.0).simulate(np.zeros((5, 9)), np.random.default_rng(0)))
    assert "NOT PRIVATE" in text
    assert text.count("±") == 8 + 1
    assert "and 1 more" in text
    with pytest.raises(ParameterError, match="numpy Generator"):
        mechanism(gn.LpBall(9, 2), 1.0).simulate(np.zeros((5, 9)), 0)
    with pytest.raises(DataError, match="one record"):
        mechanism(gn.LpBall(9, 2), 1.0).report(np.zeros((1, 9)))


@pytest.mark.parametrize("state", ["raise", "warn"])
def test_the_callers_way_with_floating_point_errors_tells_nothing_of_a_record(state):
    mechanism = gn.LocalMechanism(gn.LpBall(2, 2), gn.LocalDP(1.0))
    with np.errstate(all=state):
        for record in ([5e-324, 0.1], [1e308, 1e308], [np.nan, 0.0], [0.1, 0.1]):
            assert len(mechanism.report(record, on_outside="drop")) == mechanism.message_bytes


def test_a_mechanism_that_was_stopped_is_none(monkeypatch):
    calls, at = [], Fidelity.at

    def press(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return at(self, *arguments, **options)

    monkeypatch.setattr(Fidelity, "at", press)
    with pytest.raises(KeyboardInterrupt):
        gn.LocalMechanism(
            gn.FiniteSet(np.random.default_rng(0).normal(size=(30, 5))), gn.LocalDP(1.0)
        )
