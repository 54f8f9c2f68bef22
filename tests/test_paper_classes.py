"""Nikolov & Tang (2023), Lemma 31 and Theorem 32: quadratic oracles, and the classes of bodies that
have good ones.

Two classes have no domain of their own here: unit balls of norms symmetric under permutations, and
of unitarily invariant matrix norms, whose duals have bounded cotype 2. Sums of balls, ``TwoConvex``
and a class of one's own express them (Bhattiprolu, Lee & Naor 2021). References: closed forms, and
listed members.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

import gaussnoise as gn
from domains import AbstractDomain, QuadraticMax
from gaussnoise import FiniteSet

# Lemma 31

BODIES = {
    "finite": FiniteSet([[1.0, 0.0, 0.3], [-2.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, -1.0, -1.0]]),
    "ball": gn.LpBall(3, 3),
    "zonotope": gn.Zonotope([[1.0, 0.0, 0.0], [1.0, 2.0, 0.5], [0.0, 1.0, -1.0]]) + np.ones(3),
    "matrices": gn.SchattenBall((1, 3), 2),
}


@pytest.mark.paper("Lemma 31", by="listed members, and pairs of them")
@pytest.mark.parametrize("name", BODIES)
def test_oracles_for_squares_lengths_and_pairs_are_one(name):
    K, rng = BODIES[name], np.random.default_rng(0)
    members = np.unique([K.support_point(t) for t in rng.normal(size=(400, 3))], axis=0)
    for _ in range(4):
        A, v = rng.normal(size=(2, 3)), rng.normal(size=3)
        H, moved = A.T @ A, members - v
        found = K.max_quadratic(H, v)
        assert (found.maximizer - v) @ H @ (found.maximizer - v) == pytest.approx(found.value)
        assert np.linalg.norm(A @ (found.maximizer - v)) == pytest.approx(math.sqrt(found.value))
        assert np.square(moved @ A.T).sum(axis=1).max() <= found.upper_bound * (1 + 1e-9)
        # two points do no better than one, and the better of two is as good
        pairs = moved @ H @ moved.T
        assert pairs.max() <= found.upper_bound * (1 + 1e-9)
        assert np.diag(pairs).max() >= pairs.max() * (1 - 1e-9)
        # a linear image: pull the form back, and the center to any point that is mapped to it
        B, center = rng.normal(size=(2, 3)), rng.normal(size=2)
        form = (lambda G: G @ G.T)(rng.normal(size=(2, 2)))
        image, source = (B @ K).max_quadratic(form, center), np.linalg.pinv(B) @ center
        assert B @ source == pytest.approx(center)
        pulled = K.max_quadratic(B.T @ form @ B, source)
        assert image.value <= pulled.upper_bound * (1 + 1e-9)
        assert pulled.value <= image.upper_bound * (1 + 1e-9)


# The classes of Theorem 32 with cotype


def averages(weights):
    """Squares of the body {x : Σ w_i (x²)_i^* <= 1}, w decreasing: the largest k add up to W_k =
    w_1 + … + w_k.
    """
    d, sums = len(weights), np.cumsum(weights)
    chosen = itertools.chain.from_iterable(
        itertools.combinations(range(d), k) for k in range(1, d + 1)
    )
    return gn.domains.TwoConvex(
        np.array([np.isin(np.arange(d), S) / sums[len(S) - 1] for S in chosen])
    )


class Lorentz:
    """√(Σ w_i (x_i²)^*), w decreasing, a 2-convex norm; with weights one and zero the length of the
    k largest.
    """

    distortion = 1.0

    def __init__(self, *weights):
        self.weights = weights
        self.ball = averages(weights)

    def __call__(self, x):
        return math.sqrt(np.dot(self.weights, np.sort(np.square(x))[::-1]))

    def point(self, s):
        return self.ball.support_point(s)


class Orlicz:
    """The norm whose unit ball is Σ x²/(1 + |x|) <= 1, which is not 2-convex: within the golden
    ratio of a length.
    """

    golden = (1 + math.sqrt(5)) / 2
    distortion = golden**2

    def __init__(self, size):
        self.weights = (self.golden**-2,) * size

    def __call__(self, x):
        size = np.linalg.norm(x)
        return brentq(lambda t: self.total(x / t) - 1, size / self.golden * 0.99, size * 1.01)

    @staticmethod
    def total(x):
        return np.sum(np.square(x) / (1 + np.abs(x)))

    def point(self, s):
        s = s / s.max()
        x = lambda price: 1 / np.sqrt(1 - price * s) - 1  # noqa: E731
        found = x(brentq(lambda price: self.total(x(price)) - 1, 1e-9, 1 - 1e-9))
        return found / self(found)


class Symmetric(AbstractDomain):
    """Unit ball of a norm of the coordinates' sizes, or of the singular values of matrices.

    It lies in the body of a Lorentz norm, which lies in ``distortion**(1/2)`` times it. Upper ends
    are the best diagonal form above H, or sum ``Y_1 ⊗ I + I ⊗ Y_2``, at its largest over that body:
    by Grothendieck's inequalities within π/2, or 2√2, of the maximum.
    """

    is_symmetric = True

    def __init__(self, norm, *shape):
        self.norm, self.shape = norm, shape

    @property
    def dim(self):
        return math.prod(self.shape)

    def _support_point(self, theta):
        if len(self.shape) == 1:
            return np.where(theta < 0, -1, 1) * self.norm.point(np.abs(theta))
        left, values, right = np.linalg.svd(theta.reshape(self.shape), full_matrices=False)
        return ((left * self.norm.point(values)) @ right).ravel()

    def bound(self, H):
        if len(self.shape) == 1:
            return averages(self.norm.weights).max_quadratic(H).upper_bound
        (m, n), sums = self.shape, np.cumsum(self.norm.weights)
        below = [np.tril_indices(size) for size in self.shape]

        def value(flat):
            """Of any pair, once it is scaled to be above H."""
            roots = [np.zeros((m, m)), np.zeros((n, n))]
            roots[0][below[0]], roots[1][below[1]] = (
                flat[: len(below[0][0])],
                flat[len(below[0][0]) :],
            )
            forms = [L @ L.T + 1e-9 * np.eye(len(L)) for L in roots]
            values, axes = np.linalg.eigh(
                np.kron(forms[0], np.eye(n)) + np.kron(np.eye(m), forms[1])
            )
            whitened = axes / np.sqrt(values)
            scale = np.linalg.eigvalsh(whitened.T @ H @ whitened)[-1]
            spectra = [np.linalg.eigvalsh(Y)[::-1][: len(sums)] for Y in forms]
            return scale * sum(max(np.cumsum(spectrum) / sums) for spectrum in spectra) * (1 + 1e-9)

        start = np.concatenate(
            [np.eye(size)[where] for size, where in zip(self.shape, below, strict=True)]
        )
        return minimize(
            value, start, method="Nelder-Mead", options={"maxfev": 300, "adaptive": True}
        ).fun

    def _max_quadratic(self, form, center):
        x, best = np.zeros(self.dim), 0.0
        for start in np.linalg.eigh(form)[1][:, -2:].T:
            for _ in range(15):
                start = self._support_point(form @ start)
            if start @ form @ start > best:
                x, best = start, start @ form @ start
        x = x if x @ form @ center <= 0 else -x
        upper = (math.sqrt(self.bound(form)) + math.sqrt(center @ form @ center)) ** 2
        return QuadraticMax(x, (x - center) @ form @ (x - center), upper)


# domain, its longest member, and the factor that theory allows between the ends of an oracle's
# answer
PERMUTED, UNITARY = math.pi / 2, 2 * math.sqrt(2)
BALLS = {
    "Lorentz": (averages((1, 0.5, 0)), math.sqrt(2), PERMUTED),
    "Orlicz": (Symmetric(Orlicz(3), 3), Orlicz.golden, PERMUTED * Orlicz.distortion),
    "dual of a sum": (gn.LpBall(3, 2) + gn.LpBall(3, math.inf), 1 + math.sqrt(3), 2 * PERMUTED),
    "matrices, Lorentz": (Symmetric(Lorentz(1, 0.5), 2, 2), math.sqrt(2 / 1.5), UNITARY),
    "matrices, Orlicz": (Symmetric(Orlicz(2), 2, 2), Orlicz.golden, UNITARY * Orlicz.distortion),
    "matrices, dual of a sum": (
        gn.SchattenBall((2, 2), 2) + gn.SchattenBall((2, 2), math.inf),
        1 + math.sqrt(2),
        2 * UNITARY,
    ),
}
balls = pytest.mark.parametrize("name", BALLS)


@pytest.mark.paper("Theorem 32", by="closed forms: the longest member, by symmetry")
@balls
def test_balls_of_symmetric_norms_have_round_noise(name):
    K, longest, most = BALLS[name]
    found = K.max_quadratic(np.eye(K.dim))
    assert found.value <= longest**2 * (1 + 1e-9)
    assert longest**2 * (1 - 1e-9) <= found.upper_bound <= most * found.value
    if "matrices" not in name:  # general steps in four dimensions take seconds
        noise, value = gn.gamma(K, math.inf, tol=2e-2), longest
        assert noise.gamma_lower <= value * (1 + 1e-6)
        assert value * (1 - 1e-6) <= noise.gamma <= math.sqrt(most) * value


@pytest.mark.paper("Theorem 32", by="listed members of images, whose γ is solved for")
@pytest.mark.filterwarnings(
    "ignore::gaussnoise.errors.ConvergenceWarning"
)  # brackets as wide as the oracle's
@balls
def test_images_of_balls_of_symmetric_norms_are_bracketed(name):
    K, _, most = BALLS[name]
    image = np.random.default_rng(2).normal(size=(2, K.dim)) @ K
    found, angles = gn.gamma(image, tol=0.1), np.linspace(0, math.pi, 60)
    members = np.array(
        [image.support_point(t) for t in np.stack([np.cos(angles), np.sin(angles)], axis=1)]
    )
    lengths = np.sum(members * np.linalg.solve(found.covariance.toarray(), members.T).T, axis=1)
    assert lengths.max() <= 1 + 1e-9
    listed = gn.gamma(FiniteSet(np.vstack([members, -members])))
    assert found.gamma_lower * (1 - 1e-2) <= listed.gamma
    assert listed.gamma_lower <= found.gamma <= math.sqrt(most) * listed.gamma


@pytest.mark.parametrize("norm", [Lorentz(1, 0.5, 0), Orlicz(3)])
def test_support_points_of_these_norms_are_theirs_and_one_norm_is_not_2_convex(norm):
    rng = np.random.default_rng(3)
    listed = np.array(
        [
            x / norm(x)
            for x in np.vstack([np.eye(3), np.ones((1, 3)), rng.exponential(size=(60, 3)) ** 2])
        ]
    )
    for s in rng.exponential(size=(20, 3)):
        assert norm(norm.point(s)) == pytest.approx(1, rel=1e-6)
        assert (listed @ s).max() <= s @ norm.point(s) * (1 + 1e-6)
    most = max(norm(np.sqrt((x**2 + y**2) / 2)) for x, y in itertools.combinations(listed, 2))
    assert most <= math.sqrt(norm.distortion) + 1e-9
    assert (most > 1 + 1e-3) == isinstance(norm, Orlicz)


@pytest.mark.paper(
    "Theorem 32",
    by="the relaxation of a norm without such a dual, which loses more with the dimension",
)
def test_without_cotype_the_relaxation_loses_more_and_more():
    def lost(d, q):
        """(upper end of the relaxation over the maximum of (Σx)²) over the ball of ℓ_q."""
        return gn.LpBall(d, max(q, 2)).max_quadratic(np.ones((d, d))).upper_bound / d ** (2 - 2 / q)

    assert [lost(d, 1) for d in (4, 16, 64)] == pytest.approx(
        [4, 16, 64]
    )  # ‖·‖₂ is the 2-convex norm below ‖·‖₁
    assert max(lost(d, q) for d in (4, 16, 64) for q in (2, 3, math.inf)) <= math.pi / 2
