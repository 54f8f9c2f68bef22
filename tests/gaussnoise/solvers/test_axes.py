"""Tensor powers of even order at p = ∞: the inequality, the enclosure and the measure of the closed
form, each against brute force.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

import gaussnoise as gn
from gaussnoise import FiniteSet, TensorPower
from gaussnoise.bounds.proof import Proof
from gaussnoise.errors import CertificateError, CovarianceError
from gaussnoise.noise.certificates.axes import AxesCertificate
from gaussnoise.noise.certificates.points import PointCertificate
from gaussnoise.noise.covariance import FactorCovariance
from gaussnoise.noise.optimal_noise import OptimalNoise
from gaussnoise.solvers.bodies.axes import axes_factor, longest, majorises, mixed_share

SIZES = [(1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (2, 4), (3, 4), (4, 4), (2, 6)]
KINDS = ["gamma", "replace"]


def power(x, k):
    result = x
    for _ in range(k - 1):
        result = np.multiply.outer(result, x)
    return result.ravel()


def best(d, k, kind):
    K = TensorPower(d, k)
    return gn.gamma(K, math.inf) if kind == "gamma" else gn.optimal_noise(K, math.inf)


def farthest(inverse, center, d, k, kind, seed=0):
    """Return the longest ``(z − c)' M⁺ (z − c)`` found by sampling and climbing."""
    rng = np.random.default_rng(seed)

    def ball(x):
        return x / max(np.linalg.norm(x), 1.0)

    def form(both):
        z = power(ball(both[:d]), k) - center
        if kind == "replace":
            z = z - power(ball(both[d:]), k)
        return np.square(inverse @ z).sum()

    axes = np.hstack([np.eye(d), np.roll(np.eye(d), 1, axis=1)])
    spread = np.hstack([np.eye(d), np.full((d, d), d**-0.5)])
    # heavy tails: vectors near axes, near planes of two axes, and in between
    many = rng.normal(size=(400, 2 * d)) * np.exp(rng.normal(size=(400, 2 * d)))
    many[::2] *= 10  # cut to length one in the ball
    alone = np.hstack([many[:50, :d], np.zeros((50, d))])
    starts = np.vstack([axes, spread, np.zeros((1, 2 * d)), many, alone])
    values = np.array([form(start) for start in starts])
    climbed = [
        -minimize(lambda both: -form(both), starts[i], options={"maxiter": 60}).fun
        for i in [*np.argsort(values)[-3:], len(axes) + 2 * d, -60]
    ]
    return max(values.max(), *climbed)


# The inequality R <= τ(s − q)


def sides(w, k):
    """Return R, ``s(1 − s) + ½(s² − q)`` and ``s − q`` at a point of the simplex, in rationals."""
    monomials = itertools.combinations_with_replacement(w, k)
    pure = [x**k for x in w]
    s = sum(x ** (k // 2) for x in w)
    q = sum(pure)
    return sum(map(math.prod, monomials)) - q, s * (1 - s) + (s * s - q) / 2, s - q


def admitted():
    """Yield all even orders with as many coordinates as answers have."""
    return [(d, k) for k in range(2, 13, 2) for d in range(1, 65) if d**k <= 4096]


def test_the_inequality_is_proven_for_all_answers():
    assert len(admitted()) > 80
    for d, k in admitted():
        assert mixed_share(d, k) == (Fraction(1, 2) if k == 2 else Fraction(d, d + 1))


@pytest.mark.parametrize(("d", "k"), [(2, 2), (5, 2), (2, 4), (3, 4), (6, 4), (3, 6), (2, 12)])
def test_the_inequality_by_rational_points(d, k):
    rng, tau = np.random.default_rng(0), mixed_share(d, k)
    points = np.vstack([np.ones((1, d)), np.eye(d), rng.integers(0, 20, (30, d)) ** 3]).astype(int)
    for row in points[points.any(axis=1)].tolist():
        mixed, narrow, wide = sides([Fraction(x, sum(row)) for x in row], k)
        assert mixed <= tau * wide
        assert k == 2 or mixed <= tau * narrow


def test_the_inequality_is_not_claimed_where_it_fails():
    """The counterexample is sixteen equal shares at k = 4."""
    mixed, narrow, _ = sides([Fraction(1, 16)] * 16, 4)
    assert mixed > Fraction(16, 17) * narrow
    assert mixed_share(16, 4) is None
    mixed, narrow, _ = sides([Fraction(1, 15)] * 15, 4)
    assert mixed <= Fraction(15, 16) * narrow
    assert mixed_share(15, 4) == Fraction(15, 16)


def partitions(total, most):
    if total == 0:
        return [()]
    firsts = range(min(total, most), 0, -1)
    return [(a, *rest) for a in firsts for rest in partitions(total - a, a)]


def test_means_of_monomials_are_ordered_where_exponents_majorise():
    """Muirhead (1902): this holds if and only if the inequality holds at all points."""
    rng = np.random.default_rng(0)
    points = np.vstack([np.exp(t * np.tri(4, k=-m)[:, 0]) for m in range(1, 4) for t in (9, 90)])
    points = np.vstack([points, rng.dirichlet(np.full(4, 0.3), 30)])
    points /= points.sum(axis=1, keepdims=True)

    def means(exponents):
        padded = [*exponents, *[0] * (4 - len(exponents))]
        orders = np.array(list(itertools.permutations(padded)))
        return np.prod(points[:, None] ** orders, axis=2).mean(axis=1)

    four = [partition for partition in partitions(8, 8) if len(partition) <= 4]
    seen = {True: 0, False: 0}
    for above, below in itertools.product(four, four):
        ordered = (means(below) <= means(above) * (1 + 1e-9)).all()
        assert ordered == majorises(above, below)
        seen[bool(ordered)] += 1
    assert min(seen.values()) > 50


# The enclosure


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "k"), SIZES)
def test_no_vector_sticks_out(d, k, kind):
    """Some members touch: a covariance that is one percent smaller does not cover them."""
    noise = best(d, k, kind)
    found = farthest(np.linalg.pinv(noise.covariance.factor()), noise.center, d, k, kind)
    assert 1 - 1e-9 <= found <= 1
    smaller = FactorCovariance(noise.covariance.unit_factor, 0.995 * noise.covariance.scale)
    assert farthest(np.linalg.pinv(smaller.factor()), noise.center, d, k, kind) > 1.009
    with pytest.raises(CertificateError, match="too little noise"):
        changed(noise, covariance=smaller).verify()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "k"), [(2, 2), (3, 2), (2, 4), (3, 4)])
def test_every_factor_of_that_shape_is_bounded(d, k, kind):
    """It holds not only for the best factor: a stored one may have too little noise anywhere."""
    for seed, (own, other, mixed, c) in enumerate(
        [(1.5, -0.2, 0.2, 0.3), (1.5, 0.5, 2.0, 0.2), (1.0, -0.45, 2.0, 0.5), (2.0, -0.3, 1.0, 0.0)]
    ):
        factor = axes_factor(TensorPower(d, k), own, other, mixed)
        center = np.zeros(d**k)
        if kind == "gamma":
            center[[int(str(i) * k, d) for i in range(d)]] = c
        numbers = [Fraction(x) for x in (own, other, mixed, c if kind == "gamma" else 0)]
        bound = float(longest(TensorPower(d, k), kind, *numbers))
        assert farthest(np.linalg.pinv(factor), center, d, k, kind, seed) <= bound * (1 + 1e-12)


@pytest.mark.parametrize(("d", "k"), [(2, 2), (3, 2), (3, 4)])
def test_differences_within_an_ellipsoid_around_the_set(d, k):
    """The mechanism uses this squared sensitivity: e_1 and e_2 are that far apart."""
    noise = best(d, k, "gamma")
    inverse = np.linalg.pinv(noise.covariance.factor())
    found = farthest(inverse, np.zeros(d**k), d, k, "replace")
    assert found == pytest.approx(noise.sensitivity_squared, rel=1e-9)
    assert found <= noise.sensitivity_squared * (1 + 1e-13)
    assert noise.sensitivity_squared < 4
    with pytest.raises(CertificateError, match="stored sensitivity"):
        changed(noise, sensitivity_squared=0.99 * noise.sensitivity_squared).verify()


@pytest.mark.parametrize(("own", "other", "mixed"), [(1, 1, 1), (1, -0.5, 1), (1, 0, 0)])
def test_directions_without_noise_are_refused(own, other, mixed):
    numbers = [Fraction(x) for x in (own, other, mixed, 0)]
    with pytest.raises(CovarianceError, match="without noise"):
        longest(TensorPower(3, 2), "replace", *numbers)


# The measure


@pytest.mark.parametrize(("d", "k"), [(1, 2), (2, 2), (3, 2), (2, 4), (5, 2)])
def test_the_measure_by_its_points(d, k):
    """For all shares the trace is the nuclear norm of the points; the best is best."""
    K = TensorPower(d, k)
    powers = np.array([power(axis, k) for axis in np.eye(d)])
    pairs = [one - other for one, other in itertools.combinations(powers, 2)]
    for kind in KINDS:
        known = best(d, k, kind).certificate
        for share in (known.share, 0.3, 0.9):
            if kind == "gamma":
                points = np.vstack([np.zeros((1, d**k)), powers])
                weights = np.array([share, *[(1 - share) / d] * d])
            elif d == 1:
                points, weights = powers, np.ones(1)
            else:
                points = np.vstack([powers, pairs])
                even = [(1 - share) / len(pairs)] * len(pairs)
                weights = np.array([*[share / d] * d, *even])
            mine = AxesCertificate(K, kind, share, 2.0)
            listed = PointCertificate(
                2 * points, weights, mine.coordinate_weights, None, kind == "gamma"
            )
            if kind == "gamma" or d > 1:
                assert mine.lower_bound() == pytest.approx(listed.lower_bound(), rel=1e-9)
            assert mine.lower_bound() <= listed.lower_bound() * (1 + 1e-9)
            values, counts = mine.spectrum()
            assert values @ counts == pytest.approx(mine.lower_bound(), rel=1e-9)
            assert mine.lower_bound() <= 2 * known.lower_bound()


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_know_the_measure_and_its_weights(kind):
    noise = best(3, 2, kind)
    proof = Proof.of(noise)
    values, counts = proof.spectrum
    assert values @ counts == pytest.approx(noise.gamma_lower, rel=1e-11)
    np.testing.assert_allclose(proof.weights, np.eye(3).ravel() / 3)


@pytest.mark.parametrize("kind", KINDS)
def test_mechanisms_add_no_more_noise_than_the_closed_form(kind):
    noise = best(3, 2, kind)
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.5), n=10)
    expected = noise.gamma * math.sqrt(noise.sensitivity_squared)
    assert 10 * mechanism.error == pytest.approx(expected, rel=1e-6)
    released = mechanism.release(TensorPower(3, 2).embed(np.eye(3)[np.arange(10) % 3]))
    assert released.estimate.shape == (9,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "k"), [(2, 2), (3, 2), (2, 4)])
def test_a_semidefinite_program_says_the_same(d, k, kind):
    """A few members, 0 and powers of axes among them, need as much noise, as the proof says."""
    x = np.random.default_rng(0).normal(size=(7, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    members = np.array([np.zeros(d**k), *(power(row, k) for row in [*np.eye(d), *x])])
    listed = FiniteSet(members)
    if kind == "gamma":
        reference = gn.gamma(listed, math.inf, tol=1e-5, method="sdp-clarabel")
    else:
        reference = gn.optimal_noise(listed, math.inf, tol=1e-5, method="sdp-clarabel")
    noise = best(d, k, kind)
    assert noise.gamma_lower <= reference.gamma
    assert reference.gamma_lower <= noise.gamma
    assert reference.gamma == pytest.approx(noise.gamma, rel=2e-5)


# Answers


def changed(noise, **fields):
    """Return the same answer with some of its numbers replaced."""
    names = OptimalNoise.__dataclass_fields__
    return OptimalNoise(**{name: getattr(noise, name) for name in names} | fields)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "k"), [(1, 2), (3, 2), (2, 4)])
def test_answers_come_back_bit_for_bit(d, k, kind, tmp_path):
    domain = -0.3 * TensorPower(d, k) + np.linspace(-1, 1, d**k)
    noise = gn.gamma(domain, math.inf) if kind == "gamma" else gn.optimal_noise(domain, math.inf)
    noise.save(tmp_path / "noise.npz")
    back = OptimalNoise.load(tmp_path / "noise.npz")
    assert (back.gamma, back.gamma_lower) == (noise.gamma, noise.gamma_lower)
    assert back.sensitivity_squared == noise.sensitivity_squared
    assert back.certificate.encode() == noise.certificate.encode()
    np.testing.assert_array_equal(back.center, noise.center)
    np.testing.assert_array_equal(back.covariance.factor(), noise.covariance.factor())


def altered(noise, row, column, value):
    factor = noise.covariance.unit_factor.copy()
    factor[row, column] = value
    return changed(noise, covariance=FactorCovariance(factor, noise.covariance.scale))


def moved(noise, place, by):
    center = noise.center.copy()
    center[place] += by
    return changed(noise, center=center)


def witnessed(noise, **fields):
    old = noise.certificate
    names = ("domain", "kind", "share", "scale")
    new = AxesCertificate(**{name: getattr(old, name) for name in names} | fields)
    return changed(noise, certificate=new)


def of_odd_order(noise):
    domain = TensorPower(3, 3)
    forged = FactorCovariance(axes_factor(domain, 1.5, -0.5, 1.5), 1.0)
    numbers = {"covariance": forged, "center": np.zeros(27), "gamma": 2.0}
    return witnessed(changed(noise, domain=domain, **numbers), domain=domain)


def of_another_kind(noise):
    """More noise than is needed, and measures on a wrong set, or not of total one."""
    more = FactorCovariance(noise.covariance.unit_factor, 2 * noise.covariance.scale)
    kind = "gamma" if noise.certificate.kind == "replace" else "replace"
    share = best(3, 2, kind).certificate.share
    certificate = AxesCertificate(noise.certificate.domain, kind, share)
    lower = certificate.lower_bound()
    return changed(
        noise, covariance=more, certificate=certificate, gamma=2 * noise.gamma, gamma_lower=lower
    )


FORGERIES = {
    "an odd order": (of_odd_order, "another problem"),
    "another kind": (of_another_kind, "another problem"),
    "a mixed entry": (lambda noise: altered(noise, 1, 3, 0.5), "factor"),
    "beside the diagonal": (lambda noise: altered(noise, 0, 1, 0.0), "factor"),
    "a column": (
        lambda noise: changed(
            noise,
            covariance=FactorCovariance(
                noise.covariance.unit_factor[:, :-1], noise.covariance.scale
            ),
        ),
        "factor",
    ),
    "no noise": (
        lambda noise: changed(noise, covariance=FactorCovariance(np.zeros((9, 6)), 1.0)),
        "factor",
    ),
    "the share": (lambda noise: witnessed(noise, share=0.9), "gamma_lower"),
    "a share above one": (lambda noise: witnessed(noise, share=1.5), "another problem"),
    "no share": (lambda noise: witnessed(noise, share=math.nan), "another problem"),
    "the scale": (lambda noise: witnessed(noise, scale=2.0), "another problem"),
    "another power": (lambda noise: witnessed(noise, domain=TensorPower(2, 2)), "another problem"),
    "another norm": (lambda noise: changed(noise, p=2.0), "another problem"),
    "another set": (lambda noise: changed(noise, domain=gn.LpBall(9, 2)), "another problem"),
    "a larger set": (
        lambda noise: changed(noise, domain=2 * TensorPower(3, 2)),
        "another problem",
    ),
    "a lower end": (
        lambda noise: changed(noise, gamma_lower=noise.gamma_lower * 1.001, gamma=noise.gamma * 2),
        "gamma_lower",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_caught(name, kind):
    forge, message = FORGERIES[name]
    with pytest.raises(CertificateError, match=message):
        forge(best(3, 2, kind)).verify()


@pytest.mark.parametrize(("place", "by"), [(0, 1e-3), (4, -1e-3), (1, 1e-300)])
def test_other_centers_are_caught(place, by):
    with pytest.raises(CertificateError, match=r"too little noise|mixed coordinates"):
        moved(best(3, 2, "gamma"), place, by).verify()


@pytest.mark.parametrize("far", [1e3, 1e7, 1e10])
def test_far_away_the_rounding_of_the_center_is_covered(far):
    v = far * np.linspace(0.1, 1, 9)
    noise = gn.gamma(TensorPower(3, 2) + v, math.inf, tol=1e-4)
    assert "closed form" in noise.method
    assert noise.gap <= 1e-11 + 8 * far * 2.0**-52
    off = [Fraction(c) - Fraction(s) for c, s in zip(noise.center, v, strict=True)]
    inverse = np.linalg.pinv(noise.covariance.factor())
    for axis in [*np.eye(3), np.zeros(3)]:
        apart = [Fraction(x) - c for x, c in zip(power(axis, 2), off, strict=True)]
        assert np.square(inverse @ np.array([float(x) for x in apart])).sum() <= 1
    noise.verify()
