"""A rational approximation of the inverse square root, with a proven error bound on an interval."""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from domains.floats import UNIT, Array

_STEP = 1e-3  # distance in log x between the points at which the error is computed
_PER_DECADE = 2.2  # nodes per factor of ten of the interval: enough for _DIGITS digits
_DIGITS = 12
_BATCH = 2**13
_TERMS = 8  # number of terms of theta functions; enough where the nome is at most e^-π


@dataclass(frozen=True, eq=False)
class InverseRoot:
    """An approximation ``r(x) = Σ_j c_j/(x + s_j)`` of x^-½ on [low, high], with positive c and s.

    Attributes:
        sizes: c, shape (q,).
        shifts: s, shape (q,).
        error: proven upper bound on ``|1 − √x r(x)|`` over the interval.
    """

    sizes: Array
    shifts: Array
    error: float


def inverse_root(low: float, high: float, digits: float = _DIGITS) -> InverseRoot:
    """Return a rational approximation of x^-½ on [low, high], 0 < low, with a proven error.

    The approximation has about ``digits`` correct digits. The error bound holds for the stored,
    rounded numbers.

    Source: Hale, Higham & Trefethen (2008), method 3, by Jacobi's imaginary transformation.
    """
    low = min(low, high / 2)
    ratio = low / high
    q = 2 * math.ceil((4 - _PER_DECADE / 2 * math.log10(ratio)) * digits / _DIGITS)
    u = (
        np.arange(q // 2) + 0.5
    ) / q  # in units of the quarter period; the other half of the nodes follows by reflection
    tangent, weight = _elliptic(u, ratio)
    # since sc(K' − u) = 1/(k sc(u)), and cn dn there is 1/(k sc(u)²) times that at u
    shifts = low * np.concatenate([tangent**2, 1 / (ratio * tangent[::-1] ** 2)])
    weights = np.concatenate([weight, (weight / (math.sqrt(ratio) * tangent**2))[::-1]])
    sizes = 2 * float(scipy.special.ellipkm1(ratio)) * math.sqrt(low) / (math.pi * q) * weights
    return InverseRoot(sizes, shifts, error_on(sizes, shifts, low, high))


def _elliptic(u: Array, ratio: float) -> tuple[Array, Array]:
    """Return Jacobi's elliptic ``sc(u K')`` and ``dc(u K') nc(u K')`` for u < 1/2."""
    # modulus (1 − ratio)^½; library functions take 1 − ratio, which loses small ratios to rounding
    periods = float(scipy.special.ellipkm1(ratio)) / float(scipy.special.ellipk(ratio))
    nome, v = math.exp(-math.pi * periods), math.pi / 2 * periods * u
    n = np.arange(1, _TERMS)[:, None]
    signs, odd, squares = (-1.0) ** n, nome ** (n * (n + 1.0)), nome ** (n**2.0)
    root = 2 * nome**0.25
    theta_2 = root * (1 + odd.sum())
    theta_3, theta_4 = 1 + 2 * squares.sum(), 1 + 2 * (signs * squares).sum()
    theta_1v = root * (np.sinh(v) + (signs * odd * np.sinh((2 * n + 1) * v)).sum(axis=0))
    theta_2v = root * (np.cosh(v) + (odd * np.cosh((2 * n + 1) * v)).sum(axis=0))
    theta_3v = 1 + 2 * (squares * np.cosh(2 * n * v)).sum(axis=0)
    theta_4v = 1 + 2 * (signs * squares * np.cosh(2 * n * v)).sum(axis=0)
    tangent = theta_3 / theta_2 * theta_1v / theta_4v
    return tangent, theta_4**2 / (theta_2 * theta_3) * theta_2v * theta_3v / theta_4v**2


def error_on(sizes: Array, shifts: Array, low: float, high: float) -> float:
    """Return an upper bound on ``|1 − √x r(x)|`` over [low, high].

    ``r(x) = Σ_j c_j/(x + s_j)``, where c are ``sizes``, s are ``shifts``.
    """
    # in y = log x, each term t of √x r(x) is c/(2√s) · sech((y − log s)/2). With ξ = x/(x + s), its
    # first derivative is t (1/2 − ξ), its second t (1/4 − 2ξ + 2ξ²), and its third is at most 0.22
    # t in size. So the third derivative of the sum g is at most 0.22 g, and Taylor's series from
    # the nearest point of a grid bounds g between these points
    count = math.ceil(math.log(high / low) / _STEP) + 1
    logarithms = np.linspace(math.log(low), math.log(high), count)
    worst = 0.0
    for part in np.array_split(logarithms, max(1, count // _BATCH)):
        x = np.exp(part)[:, None]
        shares = x / (x + shifts)
        terms = sizes * shares / np.sqrt(x)
        slope = np.abs((terms * (0.5 - shares)).sum(axis=1))
        bend = np.abs((terms * (0.25 - 2 * shares * (1 - shares))).sum(axis=1))
        # The nearest point is at most half a step away. A whole step is used, since by rounding the
        # first and last point may not be exactly low and high.
        off = np.abs(1 - terms.sum(axis=1)) + slope * _STEP + bend * _STEP**2 / 2
        worst = max(worst, float(off.max()))
    rounding = 64 * (len(sizes) + 64) * UNIT
    return worst + 0.04 * _STEP**3 * (1 + 2 * worst) + rounding
