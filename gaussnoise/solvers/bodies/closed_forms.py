"""Bodies with an optimal covariance in closed form, and the measures that prove it optimal."""

import math

import numpy as np
import scipy

from domains.algebra.images import Scaled
from domains.floats import EPS, Array
from domains.sets.lp_ball import LpBall
from domains.sets.schatten import SchattenBall
from domains.sets.tensor import TensorPower, symmetric_coordinates

from ...numerics.norms import dual_ball_norm, dual_power, even_weights, norm
from ..design import Design
from .body import Body

_MOST_NUMBERS = 2**25  # largest number of coordinates in a certificate's points: 256 MB
_FEW = 2**8  # number of points whose lengths are computed together
_CHUNK = 2**13  # number of points whose second moments are summed together
_EXACT = 1e-10  # relative tolerance of lengths: above rounding, far below any solver's tolerance
_ALIKE = 1e-6  # relative tolerance of squared distances: far above rounding
_THIN = 1e-9  # eigenvalues below this fraction of the largest may be rounding, and are dropped


def closed_form(body: Body, p: float) -> tuple[Design, Array] | None:
    """Return the optimal covariance of a body in closed form, and the points of its proof.

    The proof is a measure on these points. The result is None for bodies without a closed form. The
    ellipsoid has its center at the origin.
    """
    domain = body.domain
    if isinstance(domain, LpBall | SchattenBall):
        points = _ball_points(domain)
        if points.size <= _MOST_NUMBERS:
            note = (
                "closed form: the signed permutations that map the ball to itself act "
                "irreducibly, so M = c·1"
            )
            return _uniform(points, p, note), points
    powers, scale = (domain.body, domain.factor) if isinstance(domain, Scaled) else (domain, 1.0)
    if isinstance(powers, TensorPower) and p == np.inf:
        return _tensor_powers(powers, scale)
    image = domain._image()
    if (
        image is not None
        and len(image.offsets) == 1
        and not image.offsets.any()
        and len(image.blocks) == 1
    ):
        block = image.blocks[0]
        if block.is_ball and image.matrix.any():
            return _ellipsoid(image.matrix * block.widths[0], p)
    return None


def _tensor_powers(domain: TensorPower, scale: float) -> tuple[Design, Array]:
    """Return the optimal covariance of x^⊗k at p = ∞, and the one point of its dual measure."""
    # The unit ball of symmetric tensors covers all powers; as a projection of a unit ball, it has
    # standard deviations of at most one. e_1 ⊗ … ⊗ e_1 alone needs a standard deviation of one.
    factor = symmetric_coordinates(domain.base, domain.order).basis().toarray()
    first = np.eye(1, domain.dim)
    note = "closed form: one power of an axis needs as much as all symmetric tensors of its norm"
    return Design.closed(np.ones(1), first[0], scale * factor, note), scale * first


def uniform_measure(points: Array, p: float, *, centered: bool) -> Design | None:
    """Return the design with equal dual weights on the points (N, d); None if it is not optimal.

    Let C be the second moment of the points (the covariance if centered), w equal coordinate
    weights, and W = diag(w). The covariance is ``M = W^{-1/2} (W^{1/2} C W^{1/2})^{1/2} W^{-1/2}``.
    Equal weights are optimal if and only if no point has an ``x' M⁺ x`` above the mean over all
    points, and ``‖sd(M)‖_p`` equals ``tr((W^{1/2} C W^{1/2})^{1/2})``.
    """
    count, dim = points.shape
    center = points.mean(axis=0) if centered else np.zeros(dim)
    if not _are_equally_far(points, center):
        return None
    if count < dim:
        sigma, axes = _principal_axes((points - center) / math.sqrt(count))
    else:
        values, axes = np.linalg.eigh(_second_moment(points, center))
        kept = values > _THIN * values[-1]
        sigma, axes = np.sqrt(values[kept]), axes[:, kept]
    trace = sigma.sum()
    # equal weights only change the scale: M is taken as C^{1/2}
    factor = axes * np.sqrt(sigma)
    error = norm(np.square(factor).sum(axis=1), p / 2) * dim ** dual_power(p)
    if error > trace * (1 + _EXACT):
        return None
    for start in range(0, count, _FEW):  # usually the first few points decide
        lengths = np.square((points[start : start + _FEW] - center) @ axes) @ (1 / sigma)
        if lengths.max() > trace * (1 + _EXACT):
            return None
    w = even_weights(dim, p)
    note = "closed form: the uniform measure is optimal, as symmetry makes it"
    return Design.closed(np.full(count, 1 / count), w, factor, note, center)


def _are_equally_far(points: Array, center: Array) -> bool:
    """Return whether all points are equally far from the center, as in sets with a symmetry."""
    first = np.square(points[0] - center).sum()
    for start in range(0, len(points), _FEW):  # usually the first few points decide
        squares = np.square(points[start : start + _FEW] - center).sum(axis=1)
        if np.abs(squares - first).max() > _ALIKE * first:
            return False
    return True


def _second_moment(points: Array, center: Array) -> Array:
    """Return the second moment of the points, summed in batches that fit into the cache."""
    moment = np.zeros((points.shape[1], points.shape[1]))
    for start in range(0, len(points), _CHUNK):
        moved = points[start : start + _CHUNK] - center
        moment += moved.T @ moved
    return moment / len(points)


def _principal_axes(points: Array) -> tuple[Array, Array]:
    """Return the roots of the nonzero eigenvalues of ``points' points``, and the eigenvectors."""
    _, sigma, axes = np.linalg.svd(points, full_matrices=False)
    kept = sigma > math.sqrt(_THIN) * sigma[0]
    return sigma[kept], axes[kept].T


def _uniform(points: Array, p: float, note: str) -> Design:
    """Return the design of equal weights on points whose second moment is a multiple of I."""
    count, dim = points.shape
    w = even_weights(dim, p)
    return Design.closed(np.full(count, 1 / count), w, np.eye(dim), note)


def _ball_points(ball: LpBall | SchattenBall) -> Array:
    """Return points of largest ℓ₂ norm in a ball, whose second moment is a multiple of I."""
    # The longest vectors of ℓ_q are on the axes for q < 2. For q >= 2, all their coordinates have
    # one absolute value.
    if isinstance(ball, LpBall):
        if ball.q < 2:
            return ball.radius * np.eye(ball.dim)
        return ball.radius * ball.dim ** (-1 / ball.q) * _signs(ball.dim)
    m, n = ball.shape
    if ball.q < 2:
        return ball.radius * np.eye(m * n)
    # Partial isometries: shifted diagonals of an m × n matrix, with signs. The second moments of
    # all shifts together are a multiple of I.
    short, long = sorted((m, n))
    signs = _signs(short)
    tables = np.zeros((long, len(signs), short, long))
    for shift in range(long):
        columns = (np.arange(short) + shift) % long
        tables[shift, :, np.arange(short), columns] = signs.T
    points = tables if m <= n else tables.transpose(0, 1, 3, 2)
    return ball.radius * short ** (-1 / ball.q) * points.reshape(-1, m * n)


def _signs(dim: int) -> Array:
    """Return a matrix of entries ±1 with orthogonal columns (Hadamard), shape (k, dim)."""
    # any columns of a Hadamard matrix are orthogonal
    order = 1 << max(dim - 1, 0).bit_length()
    return scipy.linalg.hadamard(order)[:, :dim].astype(np.float64)


def _ellipsoid(A: Array, p: float) -> tuple[Design, Array]:
    """Return the design of the ellipsoid {A u : ‖u‖ <= 1}, and the points of its dual measure."""
    dim = len(A)
    left, singular, _ = np.linalg.svd(A, full_matrices=False)
    kept = singular > max(A.shape) * EPS * singular.max(initial=0.0)
    factor = left[:, kept] * singular[kept]
    variances = np.square(factor).sum(axis=1)
    w = np.ones(dim)
    if p > 2:  # at p = ∞ all weight is on the largest variance
        w = (
            (variances == variances.max()).astype(float)
            if p == np.inf
            else (variances / variances.max()) ** (p / 2 - 1)
        )
        w = w / dual_ball_norm(w, p)
    # The measure has C = A (A'WA) A'/tr(A'WA), so that W^½ C W^½ is the square of W^½ M W^½ up to
    # scale: M is optimal.
    weights, axes = np.linalg.eigh(factor.T @ (w[:, None] * factor))
    used = weights > 1e-15 * weights.max(initial=0.0)
    points = (factor @ axes[:, used]).T
    note = "closed form: an ellipsoid is its own best enclosure at every p"
    return Design.closed(weights[used] / weights[used].sum(), w, factor, note), points
