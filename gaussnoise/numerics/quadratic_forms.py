"""Quadratic functions of a Gaussian's mean: unbiased estimates, deviations and intervals."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from domains.floats import Array

from .polynomials import Quadratic

_ROUNDING = 1e-13  # relative to the largest eigenvalue: smaller ones are rounding
_DOUBLINGS = 60  # number of doublings of a search; an end beyond them is infinite
_AT_ONCE = 2048  # number of points at which a function is computed together
_PLACES = 200  # number of points for comparing a function with a quadratic one
_RARE = 0.02  # share of these points at which the difference may be larger
_DIGITS = 1e-6  # accuracy of the ends of intervals, in standard deviations
_NEAR_MEAN = 1e-4  # in standard deviations: nearer to the mean, the saddle point is ill defined


class Curved(NamedTuple):
    """Eigenvalues and eigenvectors of the square part of a quadratic function, in new coordinates.

    The function's variable is x = root·m. In the new coordinates m, noise is independent.
    """

    eigenvalues: Array
    axes: Array

    @classmethod
    def of(cls, function: Quadratic, root: Array) -> "Curved":
        """Return the eigenvalues and eigenvectors of ``root' Q root``: Q is ``function.square``."""
        form = root.T @ function.square @ root
        eigenvalues, axes = np.linalg.eigh((form + form.T) / 2)
        largest = float(np.abs(eigenvalues).max(initial=0.0))
        return cls(np.where(np.abs(eigenvalues) <= _ROUNDING * largest, 0.0, eigenvalues), axes)


@dataclass(frozen=True)
class Law:
    """A quadratic function of a Gaussian's mean, in coordinates without mixed terms.

    The function is ``Σ_j λ_j m_j² + β_j m_j + constant``, where λ are ``eigenvalues`` and β
    ``slopes``. m is the mean of a Gaussian with unit covariance, and the Gaussian was observed at
    ``u``.
    """

    eigenvalues: Array
    slopes: Array
    constant: float
    u: Array

    @classmethod
    def of(cls, function: Quadratic, y: Array, root: Array, x: Array, curved: "Curved") -> "Law":
        """Return ``function`` in coordinates without mixed terms, for a Gaussian observed at y.

        The mean of the Gaussian is ``y + root·(m − x)``. Here m is the mean of a Gaussian of unit
        covariance that was observed at x. ``curved`` has the eigenvalues of the function of m.
        """
        known = y - root @ x  # the part without noise
        slopes = curved.axes.T @ (root.T @ (function.linear + 2 * function.square @ known))
        return cls(curved.eigenvalues, slopes, function.value(known), curved.axes.T @ x)

    @cached_property
    def estimate(self) -> float:
        """The unbiased estimate of the function's value at the mean."""
        return self._value(self.u) - float(self.eigenvalues.sum())

    @cached_property
    def variance(self) -> float:
        """The unbiased estimate of the variance of :attr:`estimate`, raised to its least value.

        The variance is least if the derivatives of the function at the mean are zero.
        """
        least = 2 * float(self.eigenvalues @ self.eigenvalues)
        return max(float(self._squared_slopes(self.u).sum()) + least, least)

    @property
    def has_zero(self) -> bool:
        """Whether the function is zero for some mean m."""
        curved = self.eigenvalues != 0
        if self.slopes[~curved].any():
            return True
        if not curved.any():
            return self.constant == 0
        signs = np.sign(self.eigenvalues[curved])
        if (signs != signs[0]).any():
            return True
        turn = self.constant - float(
            (self.slopes[curved] ** 2 / (4 * self.eigenvalues[curved])).sum()
        )
        return signs[0] * turn <= 0

    def tail(self) -> float:
        """Return the chance that a new estimate is at most the observed one, if the value is 0.

        The probability depends on m. As m is unknown, it is replaced by the nearest m at which the
        estimate would be 0, with unbiased squares of slopes.
        """
        own = self._squared_slopes(self._nearest(float(self.eigenvalues.sum())))
        total, positive = float(own.sum()), np.maximum(own, 0)
        squared = positive * (total / positive.sum()) if total > 0 else np.zeros_like(own)
        return _cdf(self.eigenvalues, squared, self.estimate)

    def _value(self, m: Array) -> float:
        return float((self.eigenvalues * m * m + self.slopes * m).sum()) + self.constant

    def _squared_slopes(self, m: Array) -> Array:
        """Return unbiased estimates of squared derivatives at the mean, for the observation m."""
        return (2 * self.eigenvalues * m + self.slopes) ** 2 - 4 * self.eigenvalues**2

    def _nearest(self, value: float) -> Array:
        """Return the nearest point to the observed one where the function has the given value."""

        def at(t: float) -> Array:
            return (self.u - t * self.slopes / 2) / (1 + t * self.eigenvalues)

        def excess(t: float) -> float:
            return self._value(at(t)) - value

        if excess(0.0) == 0:
            return self.u
        lowest, highest = _poles(-self.eigenvalues)
        side, limit = (1.0, highest) if excess(0.0) > 0 else (-1.0, -lowest)
        return at(_root(excess, side, limit, 1.0))


def standard(y: Array, covariance: Array) -> tuple[Array, Array]:
    """Return a matrix R with ``R R' = covariance`` and independent columns, and x with ``R x ≈ y``.

    So x is the observed Gaussian y in coordinates in which its covariance is the identity.
    """
    own = np.sqrt(np.diagonal(covariance))
    own = np.where(own > 0, own, 1.0)  # counts and sums of squares have very different sizes
    values, axes = np.linalg.eigh(covariance / np.multiply.outer(own, own))
    seen = values > _ROUNDING * values.max(initial=0.0)
    scale = np.sqrt(values[seen])
    return own[:, None] * axes[:, seen] * scale, axes[:, seen].T @ (y / own) / scale


def quadratic_near(f: Callable[[Array], Array], root: Array) -> tuple[Quadratic, float]:
    """Return a quadratic function of x near ``f(root x)``, and a bound on most differences.

    The bound is on the differences between the two functions.

    Coefficients are differences of f at unit vectors, at their negatives, and at sums of two. The
    function is compared with f at two units along the steepest direction, and at points that are
    spread like a Gaussian of unit covariance.

    Args:
        f: maps m columns, shape (k, m), to m values, shape (m,).
        root: shape (k, n), for n coordinates.
    """
    count = root.shape[1]
    middle, up, down = np.split(
        f(np.hstack([np.zeros((len(root), 1)), root, -root])), [1, 1 + count]
    )
    curved = up + down - 2 * middle
    square = np.diag(curved) / 2
    first, second = np.tril_indices(count, -1)
    for start in range(0, len(first), _AT_ONCE):
        i, j = first[start : start + _AT_ONCE], second[start : start + _AT_ONCE]
        steps = root[:, i] + root[:, j]
        both = f(steps) + f(-steps)
        square[i, j] = square[j, i] = (both - 2 * middle - curved[i] - curved[j]) / 4
    near = Quadratic(square, (up - down) / 2, float(middle[0]))
    length = float(np.linalg.norm(near.linear))
    steep = 2 * near.linear / length if length else np.zeros(count)
    # multiples of irrational numbers are spread evenly (Weyl 1916)
    turns = np.outer(np.arange(1, _PLACES + 1), np.sqrt(np.arange(count) + 0.5))
    places = np.array([steep, -steep, *scipy.special.ndtri(turns % 1)])
    own = np.array([near.value(x) for x in places])
    far = np.abs(f(root @ places.T) - own)
    far[np.isnan(far)] = math.inf
    return near, max(*far[:2], float(np.quantile(far[2:], 1 - _RARE, method="higher")))


def _poles(eigenvalues: Array) -> tuple[float, float]:
    """Return the ends of the interval of all t with ``1 − λ t > 0`` for every eigenvalue λ."""
    least, most = eigenvalues.min(initial=0.0), eigenvalues.max(initial=0.0)
    return 1 / least if least < 0 else -math.inf, 1 / most if most > 0 else math.inf


def _root(f: Callable[[float], float], side: float, limit: float, step: float) -> float:
    """Return the zero of a monotone f on one side of 0, or the farthest tried t."""
    start, far = f(0.0), min(limit / 2, step)
    for _ in range(_DOUBLINGS):
        if f(side * far) * start <= 0:
            low, high = sorted((0.0, side * far))
            root: float = scipy.optimize.brentq(f, low, high, xtol=_ROUNDING * far)  # pyright: ignore[reportAssignmentType]
            return root
        far = limit - (limit - far) / 2 if math.isfinite(limit) else 2 * far
    return side * far


def _cdf(eigenvalues: Array, squared_slopes: Array, x: float) -> float:
    """Return P(``Σ λ (z² − 1) + b z <= x``), normal z, eigenvalues λ, squared slopes b²."""

    def cumulants(s: float) -> tuple[float, float, float]:
        """Return the cumulant generating function and its first two derivatives."""
        a = 1 - 2 * s * eigenvalues
        zeroth = -np.log(a) / 2 - eigenvalues * s + s * s / 2 * squared_slopes / a
        first = eigenvalues / a - eigenvalues + s * squared_slopes * (1 - s * eigenvalues) / a**2
        second = 2 * eigenvalues**2 / a**2 + squared_slopes / a**3
        return float(zeroth.sum()), float(first.sum()), float(second.sum())

    sd = math.sqrt(cumulants(0.0)[2])
    if sd == 0:
        return float(x >= 0)
    if abs(x) < _NEAR_MEAN * sd:
        third = float((8 * eigenvalues**3 + 6 * eigenvalues * squared_slopes).sum())
        return 0.5 + (third / (6 * sd**3) + x / sd) / math.sqrt(2 * math.pi)
    # a saddle point approximation (Lugannani & Rice 1980)
    lowest, highest = _poles(2 * eigenvalues)
    side, limit = (1.0, highest) if x > 0 else (-1.0, -lowest)
    s = _root(lambda t: cumulants(t)[1] - x, side, limit, 1 / sd)
    zeroth, _, second = cumulants(s)
    w = side * math.sqrt(max(2 * (s * x - zeroth), 0.0))
    v = s * math.sqrt(second)
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return min(max(float(scipy.special.ndtr(w)) + density * (1 / w - 1 / v), 0.0), 1.0)


@dataclass(frozen=True)
class QuadraticRatio:
    """A ratio of two quadratic functions of a Gaussian's mean, estimated from its observed value.

    Attributes:
        top: the numerator.
        bottom: the denominator; a constant if only the numerator is of interest.
        y: the observed Gaussian, shape (k,).
        covariance: covariance of the Gaussian, shape (k, k), known exactly; it may be singular.
    """

    top: Quadratic
    bottom: Quadratic
    y: Array
    covariance: Array

    @cached_property
    def _standard(self) -> tuple[Array, Array]:
        return standard(self.y, self.covariance)

    @cached_property
    def _of_top(self) -> Curved:
        return Curved.of(self.top, self._standard[0])

    def _law(self, function: Quadratic, curved: Curved | None = None) -> Law:
        curved = Curved.of(function, self._standard[0]) if curved is None else curved
        return Law.of(function, self.y, *self._standard, curved)

    def _less(self, r: float) -> Law:
        """Return the numerator minus r times the denominator as a :class:`Law`."""
        own = None if self.bottom.square.any() else self._of_top  # independent of r
        return self._law(self.top.less(r, self.bottom), own)

    @cached_property
    def _parts(self) -> tuple[float, float]:
        """The unbiased estimates of numerator and denominator."""
        return self._law(self.top, self._of_top).estimate, self._law(self.bottom).estimate

    @property
    def estimate(self) -> float:
        """The estimated numerator over the estimated denominator; NaN if that is zero."""
        top, bottom = self._parts
        return top / bottom if bottom else math.nan

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the estimate, to first order in the denominator."""
        bottom = self._parts[1]
        if not bottom:
            return math.nan
        law = self._less(self.estimate)
        return math.sqrt(law.variance) / abs(bottom)

    def at_most(self, r: float) -> float:
        """Return the chance that a new estimate is at most the observed one, if the ratio is r.

        Return NaN if the ratio cannot be r.
        """
        law = self._less(r)
        if not law.has_zero:
            return math.nan
        return law.tail() if self._parts[1] > 0 else 1 - law.tail()

    def _may_vanish(self, alpha: float) -> bool:
        """Return whether a one-sided test at level ``alpha`` accepts a denominator of zero."""
        law = self._law(self.bottom)
        if not law.has_zero:
            return False
        tail = law.tail()
        return alpha < (1 - tail if self._parts[1] > 0 else tail)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of a confidence interval, of all r that neither of two tests rejects.

        The tests are one-sided, each at level (1 − ``level``)/2. Ends may be infinite.
        """
        step = self.standard_deviation
        if not math.isfinite(step):
            return -math.inf, math.inf
        if not step:
            return self.estimate, self.estimate
        alpha = (1 - level) / 2
        if self._may_vanish(alpha):
            return -math.inf, math.inf
        start, way = self.estimate, 0.0
        if math.isnan(self.at_most(start)):
            # the ratio at y is possible: the nearest possible value is between the two
            way = self.top.value(self.y) / self.bottom.value(self.y) - start
            start += way * _boundary(
                lambda t: not math.isnan(self.at_most(self.estimate + t * way)), 1.0, 0.0
            )
        outward = 2 * _DIGITS * (step + abs(way))  # more than the inaccuracy of the searches

        def end(side: float) -> float:
            def accepted(distance: float) -> bool:
                at_most = self.at_most(start + side * distance)
                return alpha < (at_most if side > 0 else 1 - at_most)  # false for NaN

            far = 0.0
            if accepted(far):
                far = step
                for _ in range(_DOUBLINGS):
                    if not accepted(far):
                        break
                    far *= 2
                else:
                    return side * math.inf
                far = _boundary(accepted, 0.0, far)
            return start + side * (far + outward)

        return end(-1.0), end(1.0)


def _boundary(accepted: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return, by bisection from ``inside``, the accepted number that is nearest to ``outside``."""
    digits = _DIGITS * abs(outside - inside)
    while abs(outside - inside) > digits:
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if accepted(middle) else (inside, middle)
    return inside
