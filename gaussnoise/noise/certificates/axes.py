"""The dual certificate for even tensor powers at p = ∞: a measure on powers of the axes."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array
from domains.sets.tensor import TensorPower

from ...errors import CertificateError
from ...numerics.rounding import ROUNDING_MARGIN, rounded_up
from ...solvers.bodies.axes import axes_entries, axes_factor, axes_spectrum, axes_trace, longest
from ..covariance import AbstractCovariance, FactorCovariance
from ..problem import Problem
from .certificate import Certificate, Stored, Verification
from .tensors import stripped

_LEAST = 2.0**-200  # avoids a division by zero; any positive number is valid


@final
@dataclass(frozen=True, eq=False)
class AxesCertificate(Certificate):
    """A probability measure on the powers x^⊗k of the unit vectors x along the axes.

    It is also on 0, or on the differences of these powers. Points of one kind have equal
    probabilities. Coordinate weights are 1/d on the d coordinates in which powers of unit vectors
    are not zero, and 0 elsewhere.

    Attributes:
        domain: the tensor power, of base d and even order.
        kind: the bound uses the covariance of the measure (``gamma``), or its second moment
            (``replace``).
        share: the probability of 0 (``gamma``), or of the powers themselves (``replace``).
        scale: the factor by which the set is larger than the tensor power.
    """

    domain: TensorPower
    kind: Literal["gamma", "replace"]
    share: float
    scale: float = 1.0

    def lower_bound(self) -> float:
        """Return the lower bound: the sum of all eigenvalues, minus a margin far above rounding."""
        trace = axes_trace(self.domain.base, self.kind, self.share)
        return self.scale * trace * (1 - ROUNDING_MARGIN)

    def spectrum(self) -> tuple[Array, Array]:
        values = np.array(axes_spectrum(self.domain.base, self.kind, self.share))
        counts = np.array([self.domain.base - 1.0, 1.0])
        return self.scale * values * (1 - ROUNDING_MARGIN), counts

    @property
    def coordinate_weights(self) -> Array:
        """The weights w of coordinates, shape (dim,)."""
        w = np.zeros(self.domain.dim)
        w[axes_entries(self.domain)] = 1 / self.domain.base
        return w

    @property
    def caption(self) -> str:
        return "powers of the axes alone, or their differences"

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Check the largest ``z' M⁺ z`` over the set for the covariance M, by rational numbers."""
        power, scale, _ = stripped(problem.domain)
        if (
            power is None
            or not isinstance(covariance, FactorCovariance)
            or (self.domain.base, self.domain.order) != (power.base, power.order)
            or power.order % 2
            or problem.protected != self.kind
            or not 0 <= self.share <= 1
            or self.scale != abs(scale)
            or problem.p != math.inf
        ):
            raise CertificateError(
                "verify: the closed form of powers of axes belongs to another problem"
            )
        enclosed = moved = rounded_up(enclosure(problem, covariance, center))
        if problem.shifted:
            replaced = Problem(problem.domain, problem.p, "replace")
            moved = min(4 * enclosed, rounded_up(enclosure(replaced, covariance, center)))
        return [Verification(covariance.error(problem.p), self.lower_bound(), enclosed, moved)]

    def encode(self) -> Stored:
        return {"axes_share": self.share, "axes_scale": self.scale}, {}

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        power, kind = stripped(problem.domain)[0], problem.protected
        share, scale = header["axes_share"], header["axes_scale"]
        if (
            power is None
            or kind not in ("gamma", "replace")
            or not type(share) is type(scale) is float
        ):
            raise CertificateError("load: expected a tensor power with the certificate of one")
        return cls(power, kind, share, scale)


def enclosure(problem: Problem, covariance: FactorCovariance, center: Array) -> Fraction:
    """Return a proven upper bound on ``z' M⁺ z`` over all z in the set that noise must cover.

    M is the covariance, computed exactly from the stored numbers.

    Raises:
        CertificateError: the factor or the center is not of the form that :func:`axes_factor`
            makes.
    """
    power, scale, shift = stripped(problem.domain)
    if power is None:
        raise CertificateError("verify: expected a tensor power")
    d, k, L = power.base, power.order, covariance.unit_factor
    own, other, mixed = 0.0, 0.0, 1.0
    if L.shape == (power.dim, math.comb(d + k - 1, k)):
        own = float(L[0, 0])
        if d > 1:  # the second row is that of coordinate (0, …, 0, 1)
            other, mixed = float(L[0, 1]), float(L[1, d])
    if not (own and np.array_equal(L, axes_factor(power, own, other, mixed))):
        raise CertificateError("verify: the factor is not that of powers of axes")
    a, b = Fraction(own), Fraction(other)
    size = Fraction(scale) / Fraction(covariance.scale)
    rows = axes_entries(power)
    middle, beside = Fraction(0), Fraction(0)
    if problem.shifted:
        if (np.delete(center, rows) != np.delete(shift, rows)).any():
            raise CertificateError("verify: the center has mixed coordinates")
        moved = zip(center[rows].tolist(), shift[rows].tolist(), strict=True)
        centers = [(Fraction(c) - Fraction(v)) / Fraction(scale) for c, v in moved]
        middle = centers[0]
        # on powers of the axes, the factor is (a − b) I + b 11', with singular values |a − b| and
        # |a + (d − 1) b|
        least = min((a - b) ** 2, (a + (d - 1) * b) ** 2)
        beside = sum(((c - middle) ** 2 for c in centers), Fraction(0)) / least
    kind = "gamma" if problem.shifted else "replace"
    whole = longest(power, kind, a, b, Fraction(mixed), middle)
    if beside:  # rounding moves the center by v: |u + v|² <= (1 + t)|u|² + (1 + 1/t)|v|²
        t = Fraction(max(math.sqrt(beside / whole), _LEAST))
        whole = (1 + t) * whole + (1 + 1 / t) * beside
    return whole * size**2
