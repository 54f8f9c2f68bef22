"""γ_p(K + v) is γ_p(K) however far away v is: both ends, the answers that ``verify()`` accepts, and
the files.
"""

import dataclasses
import functools
import math
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.errors import CertificateError, ConvergenceWarning, CovarianceError
from gaussnoise.noise.certificates.points import PointCertificate

DISC = gn.LpBall(2, 2)
BODIES = {
    "disc": DISC,
    "cube": gn.LpBall(2, math.inf),
    "zonotope": gn.Zonotope([[1.0, 0.3], [0.0, 0.5], [0.2, -0.4]]),
    "ellipsoid": gn.Ellipsoid([[1.0, 0.2], [0.2, 0.5]]),
    "image": [[1.0, 2.0], [0.3, 0.4]] @ gn.LpBall(2, 3),
    "product": gn.product(gn.LpBall(1, 2), gn.Zonotope([[2.0]])),
    "hull": gn.hull(DISC, gn.FiniteSet([[3.0, 0.0]])),
    "polytope": gn.Polytope([[0.0, 0.0], [1.0, 0.25], [0.25, 0.75]]),
    "matrices": gn.SchattenBall((2, 2), 1),
    "squares": gn.TensorPower(2, 2),
}
FAR = [1e8, 1e12]


def shift(dim, size):
    return size * np.array([1.0, -0.7, 0.3, 0.6])[:dim]


def quiet(door, *arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return door(*arguments, **settings)


@functools.cache
def around_the_origin(name):
    return quiet(gn.gamma, BODIES[name], tol=1e-5)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("size", FAR)
def test_translates_have_the_bracket_of_the_body(name, size):
    body = BODIES[name]
    near, far = around_the_origin(name), quiet(gn.gamma, body + shift(body.dim, size), tol=1e-5)
    truth = near
    if name == "polytope":  # its vertices were rounded, and the rounded ones are the set
        truth = gn.gamma(gn.FiniteSet((body + shift(2, size)).vertices - shift(2, size)))
    assert far.gamma_lower <= truth.gamma
    assert far.gamma >= truth.gamma_lower
    assert far.gamma_lower >= near.gamma_lower * (1 - 2e-5 - 1e-16 * size)
    far.verify()


@pytest.mark.parametrize("size", FAR)
def test_the_disc_has_the_root_of_two_in_exact_arithmetic(size):
    """Recompute the lower end from the certificate's points in 50 digits: a measure on the disc
    about its center.
    """
    noise = gn.gamma(DISC + shift(2, size))
    with mpmath.workdps(50):
        points = mpmath.matrix(noise.certificate.points.tolist())
        for i in range(points.rows):  # members up to the last digit
            assert mpmath.hypot(*points[i, :]) <= 1 + mpmath.mpf(10) ** -15
        weights = [mpmath.mpf(w) for w in noise.certificate.weights.tolist()]
        total = mpmath.fsum(weights)
        mean = [
            mpmath.fsum(w * points[i, j] for i, w in enumerate(weights)) / total for j in range(2)
        ]
        cov = mpmath.matrix(2, 2)
        for i, w in enumerate(weights):
            for j in range(2):
                for k in range(2):
                    cov[j, k] += w / total * (points[i, j] - mean[j]) * (points[i, k] - mean[k])
        value = mpmath.fsum(mpmath.sqrt(x) for x in mpmath.eigsy(cov, eigvals_only=True))
        assert noise.gamma_lower <= value <= mpmath.sqrt(2) * (1 + mpmath.mpf(10) ** -15)
    # the upper end too: in rationals, the stored ellipse about the stored center holds far more
    # than the disc
    factor = noise.covariance.factor()
    radius = Fraction(float(np.linalg.svd(factor, compute_uv=False)[-1])) * (
        1 - Fraction(1, 10**14)
    )
    moved = [
        Fraction(c) - Fraction(v)
        for c, v in zip(noise.center.tolist(), shift(2, size).tolist(), strict=True)
    ]
    assert 1 + sum(map(abs, moved)) <= radius
    assert noise.gamma == pytest.approx(math.sqrt(2), rel=2e-9)


@pytest.mark.parametrize("size", [0.0, 1e3, 1e9, 1e12])
def test_an_inflated_certificate_is_refused(size):
    body = DISC + shift(2, size)
    noise = gn.gamma(body)
    noise.verify()
    excess = 1 + 1e-6
    for origin in (noise.certificate.origin, None, 0.5 * shift(2, size)):
        base = noise.certificate.points
        at_home = [
            base * excess,
            base * excess + shift(2, size),
            (base - shift(2, size)) * excess + shift(2, size),
        ]
        for points in at_home:
            witness = dataclasses.replace(noise.certificate, points=points, origin=origin)
            lower = noise.gamma_lower * (1 + 9e-7)
            forged = dataclasses.replace(
                noise, certificate=witness, gamma=max(noise.gamma, lower), gamma_lower=lower
            )
            with pytest.raises((CertificateError, CovarianceError)):
                forged.verify()


def test_what_membership_forgives_is_taken_from_what_verify_tells():
    for body in (DISC, DISC + shift(2, 1e10), gn.Zonotope([[1.0, 0.3], [0.0, 0.5]])):
        noise = gn.gamma(body)
        told = noise.verify().gamma_lower
        assert noise.gamma_lower * (1 - 2e-8) <= told < noise.gamma_lower


class FarDisc(gn.domains.AbstractDomain):
    """A disc that computes its points where they are, and rounds them there."""

    dim = 2

    def __init__(self, center):
        self.center = center

    def _center(self):
        return self.center

    def _support_point(self, theta):
        return self.center + theta / (np.linalg.norm(theta) or 1.0)

    def _max_quadratic(self, form, center):
        values, axes = np.linalg.eigh(form)
        away = self.center - center
        x = self.center + axes[:, -1] * (1.0 if axes[:, -1] @ form @ away >= 0 else -1.0)
        upper = (math.sqrt(values[-1]) + math.sqrt(away @ form @ away)) ** 2
        rounded = 1 + 1e-15 * np.abs(self.center).max()
        return gn.domains.QuadraticMax(
            x, float((x - center) @ form @ (x - center)), upper * rounded
        )


@pytest.mark.parametrize("size", [1e8, 1e10])
def test_sets_that_round_their_own_points_pay_for_it(size):
    noise = quiet(gn.gamma, FarDisc(shift(2, size)))
    assert noise.certificate.origin is None
    assert math.sqrt(2) * (1 - 1e-13 * size) <= noise.gamma_lower <= math.sqrt(2)
    assert noise.gamma >= math.sqrt(2)
    noise.verify()


@pytest.mark.parametrize(
    ("name", "size", "tol"),
    [("disc", 1e8, 1e-5), ("disc", 1e12, 1e-5), ("hull", 1e8, 1e-4), ("product", 1e12, 1e-5)],
)
def test_replaced_records_do_not_depend_on_where_the_body_is(name, size, tol):
    body = BODIES[name]
    near, far = (quiet(gn.optimal_noise, K, tol=tol) for K in (body, body + shift(2, size)))
    assert far.gamma_lower <= near.gamma
    assert near.gamma_lower <= far.gamma <= near.gamma * (1 + 2 * tol)
    far.verify()
    data = np.array([[0.25, 0.5], [-0.5, 0.25]])
    at = [
        gn.lower_bound(K, gn.zCDP(0.1), data=rows, tol=tol).error
        for K, rows in ((body, data), (body + shift(2, size), data + shift(2, size)))
    ]
    assert at[1] == pytest.approx(at[0], rel=2 * tol + 2e-16 * size)


@pytest.mark.parametrize("size", [0.0, 1e3, *FAR])
def test_files_keep_where_points_are(size, tmp_path):
    for body in (DISC, BODIES["product"]):
        noise = gn.gamma(body + shift(2, size))
        noise.save(tmp_path / "noise.npz")
        again = gn.OptimalNoise.load(tmp_path / "noise.npz")
        np.testing.assert_array_equal(again.certificate.points, noise.certificate.points)
        assert (again.gamma, again.gamma_lower) == (noise.gamma, noise.gamma_lower)
        known = noise.certificate.origin
        assert (known is None) == (again.certificate.origin is None) == (size < 1e8)
        # near zero, points are stored as they were before origins existed
        assert known is not None or all(
            (body + shift(2, size)).contains(x) for x in noise.certificate.points
        )


def test_what_is_moved_back_is_the_body_itself():
    v = shift(2, 1e10)
    for body in (
        DISC,
        BODIES["zonotope"],
        BODIES["ellipsoid"],
        BODIES["image"],
        BODIES["product"],
        BODIES["hull"],
    ):
        for moved in (
            body + v,
            3 * (body + v),
            [[1.0, 1.0], [0.0, 2.0]] @ (body + v),
            (body + v) + (DISC - v / 2),
        ):
            still, by = moved._apart()
            unit = np.array([0.6, -0.8])
            assert np.abs(still.support_point(unit)).max() < 100
            assert moved.support_point(unit) == pytest.approx(
                still.support_point(unit) + by, abs=1e-4
            )
    assert np.array_equal(gn.hull(DISC + v, DISC + 2 * v)._apart()[1], v)
    assert isinstance(gn.gamma(DISC).certificate, PointCertificate)
