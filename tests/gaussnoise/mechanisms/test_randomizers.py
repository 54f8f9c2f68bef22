"""Randomisers of unit vectors, against independent references.

ε: all random choices are enumerated, in rational arithmetic, and compared with the Taylor series of
e^ε. Scale and second moments: enumeration, spherical designs, densities of order statistics under
adaptive quadrature, closed forms, and the integrals of PrivUnit and PrivUnitG.
"""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import exponential
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from gaussnoise.mechanisms import randomizers as _randomizers
from gaussnoise.mechanisms.randomizers import cap_moments, point_release, privunit, privunitg

ALARM = 1e-6


# Privacy, by enumeration.


def probabilities(code, products):
    """Return every index's probability, exactly, from all outcomes of the coin and the choice."""
    found = [Fraction(0)] * code.size
    for coin, chance in ((0, code.chance), (code.hits, 1 - code.chance)):
        asked = []

        def below(n, outcome, coin=coin, asked=asked):
            asked.append(n)
            return coin if len(asked) % 2 else outcome

        code.choose(products, lambda n: below(n, 0))
        outcomes = asked[1]
        for outcome in range(outcomes):
            found[code.choose(products, lambda n, outcome=outcome: below(n, outcome))] += (
                chance / outcomes
            )
    return found


CODES = [
    pytest.param(make(dim, epsilon), epsilon, id=f"{make.__name__}-{dim}-{epsilon:g}")
    for make, dim, epsilon in [
        (privunitg, 2, 0.5),
        (privunitg, 3, 2.0),
        (privunitg, 1, 5.0),
        (privunitg, 40, 1e-9),
        (privunitg, 5, 30.0),
        (privunit, 2, 0.5),
        (privunit, 3, 2.0),
        (privunit, 1, 5.0),
        (privunit, 4, 30.0),
        (point_release, 1, 1.0),
        (point_release, 4, 0.1),
        (point_release, 4, 40.0),
    ]
]


@pytest.mark.paper("Theorem 17", by="probabilities of all messages, in exact rationals")
@pytest.mark.parametrize(("code", "epsilon"), CODES)
def test_no_message_is_likelier_by_more_than_epsilon(code, epsilon):
    rng = np.random.default_rng(0)
    if code.size > 200:  # the same rule, with fewer candidates to enumerate
        odds = exponential(epsilon) * Fraction(2, 38) / (1 + Fraction(1, 10**50))
        code = dataclasses.replace(
            code, pairs=20, closest=2, hits=math.floor(2**code.bits * odds / (1 + odds))
        )
    candidates = code.candidates(b"\7" * code._token)
    units = rng.normal(size=(6, code.dim))
    units = (
        np.vstack([units, -units[:1], np.eye(code.dim)[:1]])
        / np.linalg.norm(np.vstack([units, units[:2]]), axis=1)[:, None]
    )
    tables = [probabilities(code, candidates @ y) for y in units]
    inside, outside = code.chance / code.closest, (1 - code.chance) / (code.size - code.closest)
    for table in tables:
        assert sum(table) == 1
        assert table.count(inside) == code.closest
        assert table.count(outside) == code.size - code.closest
    worst = max(
        max(a / b for a, b in zip(one, two, strict=True)) for one in tables for two in tables
    )
    assert worst <= exponential(epsilon)
    assert worst >= exponential(epsilon) * (1 - Fraction(1, 10**40))


@given(
    st.lists(
        st.sampled_from([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-300]),
        min_size=5,
        max_size=5,
    )
)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_every_ranking_has_a_cap_of_k_indices(products):
    """Ties, zeros and even NaN are ranked: privacy needs nothing from the numbers."""
    code = dataclasses.replace(privunitg(2, 2.0), pairs=5, closest=2)
    table = probabilities(code, np.array(products))
    assert sorted(table) == [(1 - code.chance) / 8] * 8 + [code.chance / 2] * 2


@pytest.mark.parametrize(("code", "epsilon"), CODES)
def test_the_coin_is_as_biased_as_epsilon_allows(code, epsilon):
    def ratio(code):
        return code.chance * (code.size - code.closest) / ((1 - code.chance) * code.closest)

    assert 1 <= ratio(code) <= exponential(epsilon)
    assert ratio(
        dataclasses.replace(code, hits=code.hits + (2**code.bits - code.hits) // 10**40)
    ) > exponential(epsilon)


def test_whole_numbers_are_drawn_uniformly():
    for n in range(1, 257):
        # value by value, followed by one that is always taken
        found = [_randomizers._below(n, iter_bytes([value, 0])) for value in range(256)]
        taken = 256 >> (8 - (n - 1).bit_length()) if n > 1 else 1
        counts = np.bincount(found, minlength=n)
        assert len(set(counts[1:])) <= 1
        assert n == 1 or counts[0] == counts[1] * (
            1 + taken - n
        )  # those refused came back as the 0 that followed


def iter_bytes(values):
    left = iter(values)
    return lambda count: bytes(next(left) for _ in range(count))


# Scale and second moments.


@pytest.mark.parametrize(("dim", "pairs", "closest"), [(2, 7, 3), (3, 12, 1), (1, 4, 4), (5, 1, 1)])
def test_scale_and_second_moment_are_those_of_the_choice(dim, pairs, closest):
    """For any one codebook, by enumeration; it remains to know how the cap's moments vary over
    codebooks.
    """
    code = dataclasses.replace(privunitg(dim, 1.0), pairs=pairs, closest=closest, hits=7, bits=3)
    products = code.candidates(b"1234567890123456")[:, 0]
    products /= math.sqrt(np.square(products).mean())
    sizes = np.sort(np.abs(products))[-closest:]
    code = dataclasses.replace(code, cap_mean=sizes.mean(), cap_square=np.square(sizes).mean())
    signed = np.column_stack([products, -products]).ravel()
    chances = np.array([float(chance) for chance in probabilities(code, products)])
    assert code.scale == pytest.approx(chances @ signed, rel=1e-12)
    assert code.along * code.scale**2 == pytest.approx(chances @ signed**2, rel=1e-12)
    assert code.across * code.scale**2 == 1


HEXAGON = [
    [math.cos(angle), math.sin(angle)] for angle in (0.1, 0.1 + math.pi / 3, 0.1 + 2 * math.pi / 3)
]
GOLDEN = (1 + math.sqrt(5)) / 2
ICOSAHEDRON = np.array(
    [[0, 1, s * GOLDEN] for s in (1, -1)]
    + [[1, s * GOLDEN, 0] for s in (1, -1)]
    + [[s * GOLDEN, 0, 1] for s in (1, -1)]
) / math.hypot(1, GOLDEN)


@pytest.mark.parametrize(
    ("design", "closest"), [(HEXAGON, 1), (HEXAGON, 2), (ICOSAHEDRON, 2), (ICOSAHEDRON, 6)]
)
def test_spherical_second_moments_are_those_of_the_choice(design, closest):
    """Codebooks with the sphere's second moments, rotated by hand: along y and, averaged over
    directions, across.
    """
    design = np.array(design)
    pairs, dim = design.shape
    np.testing.assert_allclose(design.T @ design / pairs, np.eye(dim) / dim, atol=1e-15)
    for y in np.linalg.qr(np.random.default_rng(2).normal(size=(dim, dim)))[0]:
        products = design @ y
        sizes = np.sort(np.abs(products))[-closest:]
        code = dataclasses.replace(privunit(dim, 1.0), pairs=pairs, closest=closest, hits=7, bits=3)
        code = dataclasses.replace(code, cap_mean=sizes.mean(), cap_square=np.square(sizes).mean())
        chances = np.array([float(chance) for chance in probabilities(code, products)])
        signed = np.stack([design, -design], axis=1).reshape(-1, dim)
        moment = (signed.T * chances) @ signed / code.scale**2
        assert code.scale == pytest.approx(chances @ signed @ y, rel=1e-12)
        assert code.along == pytest.approx(y @ moment @ y, rel=1e-12)
        assert code.across == pytest.approx(
            (np.trace(moment) - y @ moment @ y) / (dim - 1), rel=1e-12
        )
        assert code.across <= code.along


@pytest.mark.parametrize(("dim", "epsilon"), [(2, 3.0), (3, 2.0), (10, 4.0)])
def test_spherical_messages_have_the_moments_of_their_codebooks(dim, epsilon):
    """Over many hashed codebooks, with the choice averaged by hand: scale, along, and across in one
    direction.
    """
    code, y, z = privunit(dim, epsilon), *np.eye(dim)[:2]
    tokens = 1000
    found = np.empty((tokens, 3))
    inside = float(code.chance) / code.closest
    outside = float(1 - code.chance) / (code.size - code.closest)
    for i in range(tokens):
        u = code.candidates(i.to_bytes(16, "big"))
        s = u @ y
        cap = np.argsort(np.abs(s))[-code.closest :]
        weight = np.full(
            code.pairs, 2 * outside
        )  # of u and −u together, which have the same square
        weight[cap] = inside + outside
        mean = (inside - outside) * np.abs(s[cap]).sum()
        found[i] = mean, weight @ s**2, weight @ (u @ z) ** 2
    stated = np.array([code.scale, code.along * code.scale**2, code.across * code.scale**2])
    off = math.sqrt(tokens) * (found.mean(axis=0) - stated) / found.std(axis=0)
    assert np.abs(off).max() < 5
    independent = math.sqrt(tokens) * (found[:, 2].mean() - 1 / dim) / found[:, 2].std()
    assert independent < -8  # 1/dim, the value for normal candidates, is far off


def test_candidates_on_the_sphere_are_uniform_and_the_server_makes_the_same():
    code = privunit(4, 6.0)
    made = [code.candidates(bytes([i]) * 16) for i in range(20)]
    everything = np.concatenate(made)
    np.testing.assert_allclose(np.linalg.norm(everything, axis=1), 1, rtol=1e-14)
    for direction in (np.eye(4)[0], np.full(4, 0.5)):
        squares = np.square(everything @ direction)
        assert stats.kstest(squares, stats.beta(0.5, 1.5).cdf).pvalue > ALARM
        assert not stats.kstest(1.1 * squares, stats.beta(0.5, 1.5).cdf).pvalue > ALARM
    for index in (0, 43, code.size - 1):
        sign = 1 - 2 * (index % 2)
        np.testing.assert_array_equal(
            code.decoded([(b"\5" * 16, index)])[0], sign / code.scale * made[5][index // 2]
        )


def test_candidates_are_normal_and_the_server_makes_the_same():
    code = privunitg(3, 6.0)
    made = [code.candidates(bytes([i]) * 16) for i in range(40)]
    everything = np.concatenate(made)
    assert stats.kstest(everything.ravel(), "norm").pvalue > ALARM
    assert not stats.kstest(1.05 * everything.ravel(), "norm").pvalue > ALARM
    correlations = np.corrcoef(np.column_stack([everything[:-1], everything[1:]]).T) - np.eye(6)
    assert np.abs(correlations).max() * math.sqrt(len(everything)) < 6
    for index in (0, 1, 42, 43, code.size - 1):
        sign = 1 - 2 * (index % 2)
        np.testing.assert_array_equal(
            code.decoded([(b"\5" * 16, index)])[0], sign / code.scale * made[5][index // 2]
        )


def test_order_statistics_in_closed_form():
    assert cap_moments(7, 7) == pytest.approx((math.sqrt(2 / math.pi), 1), rel=1e-12)
    # the larger of |a| and |b| is half of |a + b| + |a − b|
    assert cap_moments(2, 1) == pytest.approx((2 / math.sqrt(math.pi), 1 + 2 / math.pi), rel=1e-12)
    # on the circle angles are uniform: cosines of the smaller of two
    assert cap_moments(2, 1, 2) == pytest.approx((8 / math.pi**2, 0.5 + 2 / math.pi**2), rel=1e-12)
    # in space |⟨u, y⟩| is uniform in [0, 1]
    for pairs, closest in [(1, 1), (5, 2), (64, 64), (4096, 1), (4096, 300)]:
        i = np.arange(1, closest + 1)
        mean = np.mean((pairs + 1 - i) / (pairs + 1))
        square = np.mean((pairs + 1 - i) * (pairs + 2 - i) / ((pairs + 1) * (pairs + 2)))
        assert cap_moments(pairs, closest, 3) == pytest.approx((mean, square), rel=1e-12)
    for dim in (2, 3, 50, 67, 68, 69, 4096):  # all of them
        assert cap_moments(7, 7, dim) == pytest.approx(
            (point_release(dim, 1.0).cap_mean, 1 / dim), rel=1e-11
        )


@pytest.mark.parametrize(
    ("pairs", "closest", "dim"),
    [(5, 2, None), (64, 9, None), (1024, 3, None), (5, 2, 2), (64, 4, 10), (1024, 2, 100)],
)
def test_order_statistics_by_their_densities(pairs, closest, dim):
    size = (
        stats.halfnorm() if dim is None else stats.beta(0.5, (dim - 1) / 2)
    )  # |normal|, or ⟨u, y⟩²

    def moment(power, rank):  # for the rank-th largest, a quantile of a beta variable
        power = power if dim is None else power / 2
        among = stats.beta(pairs - rank + 1, rank)
        cuts = among.ppf([0.001, 0.1, 0.5, 0.9, 0.999])
        ends = [0, *cuts, 1]
        return sum(
            integrate.quad(
                lambda x: size.ppf(x) ** power * among.pdf(x), *part, epsabs=1e-12, limit=300
            )[0]
            for part in itertools.pairwise(ends)
        )

    for power, found in zip((1, 2), cap_moments(pairs, closest, dim), strict=True):
        ranks = [moment(power, i) for i in range(1, closest + 1)]
        assert found == pytest.approx(np.mean(ranks), rel=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 300])
def test_hemispheres_have_the_scale_of_the_sphere(dim):
    code = point_release(dim, 1.0)
    if dim == 1:
        mean = 1.0
    else:
        weight = lambda c: (1 - c**2) ** ((dim - 3) / 2)  # noqa: E731
        mean = integrate.quad(
            lambda s: math.sin(s) * weight(math.sin(s)) * math.cos(s), 0, math.pi / 2
        )[0]
        mean /= integrate.quad(lambda s: weight(math.sin(s)) * math.cos(s), 0, math.pi / 2)[0]
    assert code.scale == pytest.approx(mean * math.tanh(0.5), rel=1e-9)
    assert code.across == pytest.approx(code.along, rel=1e-12)
    assert code.along == pytest.approx(1 / (dim * code.scale**2), rel=1e-12)


def ideal(t, epsilon, dim):
    """Return the variance of PrivUnitG with the largest a for t, at unit vectors, and its scale m,
    by quadrature.
    """
    normal = stats.norm.pdf
    b = integrate.quad(normal, -12, t)[0]
    a = (1 - b) * math.exp(epsilon) / ((1 - b) * math.exp(epsilon) + b)
    density = lambda z: normal(z) * (a / (1 - b) if z >= t else (1 - a) / b)  # noqa: E731
    moment = lambda j: sum(  # noqa: E731
        integrate.quad(lambda z: z**j * density(z), *ends)[0]
        for ends in ((-12, t - 1e-12), (t, 12))
    )
    ratio = density(t + 1) / density(t - 1) * normal(t - 1) / normal(t + 1)
    assert ratio == pytest.approx(
        math.exp(epsilon), rel=1e-9
    )  # of densities of opposite directions
    m = moment(1)
    assert m / math.sqrt(dim) == pytest.approx(
        normal(t) / math.sqrt(dim) * (a / (1 - b) - (1 - a) / b), rel=1e-7
    )
    return (dim - 1 + moment(2)) / m**2 - 1, m


@pytest.mark.parametrize(("dim", "epsilon"), [(2, 8.0), (2, 1.0), (10, 4.0), (100, 1.0)])
def test_the_codebook_is_within_a_percent_of_privunitg(dim, epsilon):
    best = optimize.minimize_scalar(
        lambda t: ideal(t, epsilon, dim)[0], bounds=(0, 5), method="bounded"
    )
    code = privunitg(dim, epsilon)
    assert 1 < ((dim - 1) * code.across + code.along - 1) / best.fun <= 1.0101
    assert code.closest / code.size == pytest.approx(stats.norm.sf(best.x), rel=0.3)


@pytest.mark.parametrize(
    ("dim", "epsilon", "least", "normal"),
    [(2, 8.0, 0.0217, 0.203), (3, 2.0, 3.683, 4.77), (10, 4.0, 3.674, 4.33)],
)
def test_the_spherical_codebook_is_within_a_percent_of_privunit(dim, epsilon, least, normal):
    def variance(angle):  # for PrivUnit with a cap of this half-angle and its largest a
        sines = [
            lambda x: math.sin(x) ** (dim - 2),
            lambda x: math.sin(x) ** (dim - 2) * math.cos(x),
        ]
        mass, inner = (integrate.quad(f, 0, angle)[0] for f in sines)
        share = mass / integrate.quad(sines[0], 0, math.pi)[0]
        a = share * math.exp(epsilon) / (share * math.exp(epsilon) + 1 - share)
        assert a / share / ((1 - a) / (1 - share)) == pytest.approx(math.exp(epsilon))
        return (inner / mass * (a - (1 - a) * share / (1 - share))) ** -2 - 1

    best = optimize.minimize_scalar(variance, bounds=(0.01, math.pi / 2), method="bounded")
    assert best.fun == pytest.approx(least, rel=2e-3)
    code = privunit(dim, epsilon)
    assert 1 < ((dim - 1) * code.across + code.along - 1) / best.fun <= 1.0101
    assert _randomizers._ideal(dim, epsilon, True)[0] == pytest.approx(best.fun, rel=1e-4)
    assert _randomizers._ideal(dim, epsilon, False)[0] == pytest.approx(normal, rel=3e-3)


def test_on_the_line_privunit_is_randomised_response():
    for epsilon in (1e-9, 0.7, 5.0, 300.0):
        code = privunit(1, epsilon)
        assert dataclasses.astuple(code) == dataclasses.astuple(point_release(1, epsilon))
        assert code.message_bytes == 1
        assert (
            code.across == code.along == pytest.approx(1 / math.tanh(epsilon / 2) ** 2, rel=1e-12)
        )


def test_privunit_has_the_least_variance():
    for dim, epsilon in itertools.product([1, 2, 5, 40], [1e-6, 0.3, 3.0, 9.0]):
        codes = [make(dim, epsilon) for make in (privunit, privunitg, point_release)]
        totals = [(dim - 1) * code.across + code.along for code in codes]
        assert totals[0] <= min(totals) * (1 + 1e-9)
        code = codes[0]
        assert 0 < code.across <= code.along
        assert totals[0] == pytest.approx(1 / code.scale**2, rel=1e-12)
        assert code.along >= 1


def test_the_largest_scale_is_not_the_least_variance():
    best = optimize.minimize_scalar(lambda t: ideal(t, 8.0, 2)[0], bounds=(0, 5), method="bounded")
    largest = optimize.minimize_scalar(
        lambda t: -ideal(t, 8.0, 2)[1], bounds=(0, 5), method="bounded"
    )
    assert ideal(largest.x, 8.0, 2)[0] / best.fun == pytest.approx(1.31, abs=0.005)


def test_rounding_to_the_sphere_is_unbiased():
    code, y = privunitg(3, 1.0), np.array([0.0, 0.3, -0.4])
    first_negative = math.ceil((1 + 0.5) * 2**52)  # of 2^53 equally likely values
    for value, sign in [(0, 1), (first_negative - 1, 1), (first_negative, -1), (2**53 - 1, -1)]:
        unit = code.unit(y, lambda count, value=value: (value << 11).to_bytes(count, "big"))
        np.testing.assert_allclose(unit, sign * y / 0.5, atol=1e-15)
    assert Fraction(first_negative, 2**53) * 2 - 1 == Fraction(1, 2)
