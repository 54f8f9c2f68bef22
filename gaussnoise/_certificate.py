"""Dual witnesses: what proves that no covariance can be better."""

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from domains import Marginals

from ._residuals import Subset, rank, residual_subsets, subsets_of

Array = NDArray[np.float64]

# Relative margin put on both ends of a bracket computed in double precision: thousands of times the rounding error
# of the sums behind it, a millionth of the usual tolerance.
ROUNDING_MARGIN = 2.0**-40


class Certificate(abc.ABC):
    """A probability measure on the set, and coordinate weights, whose fidelity bounds γ from below.

    Source: Nikolov & Tang (2023), Theorem 26 and Lemma 27.
    """

    @abc.abstractmethod
    def lower_bound(self) -> float:
        """``tr((W^{1/2} C W^{1/2})^{1/2})``, C the covariance (or second moment) of the measure; a lower bound on γ."""


@final
@dataclass(frozen=True, eq=False)
class PointCertificate(Certificate):
    """A measure on listed points.

    Attributes:
        points: shape (k, d), members of the sensitivity set (one of each ± pair), or of K itself when ``centered``.
        weights: shape (k,), positive, summing to one.
        coordinate_weights: w, shape (d,), with ``‖w‖_{s*} <= 1``, s* = p/(p−2): ones at p = 2.
        rows: shape (k, 1) or (k, 2), which of the domain's listed points each one is, or is the difference of; None
            where the domain is known through oracles.
        centered: whether C is the covariance (γ_p(K)) rather than the second moment (γ°_p).
    """

    points: Array
    weights: Array
    coordinate_weights: Array
    rows: NDArray[np.intp] | None
    centered: bool

    def lower_bound(self) -> float:
        # a member as the origin: what the points have in common cancels before anything is rounded
        points = self.points - self.points[0] if self.centered else self.points
        size = np.abs(points).max(initial=0.0)
        if size == 0:
            return 0.0
        mass = self.weights / math.fsum(self.weights)
        unit = points / size
        moved = unit - mass @ unit if self.centered else unit
        scaled = np.sqrt(mass)[:, None] * moved * np.sqrt(self.coordinate_weights)
        # a triangular factor has the same nuclear norm and, usually, a tenth of the entries
        triangle = np.linalg.qr(scaled, mode="r") if len(scaled) > 1.5 * scaled.shape[1] else scaled
        singular = np.linalg.svd(triangle, compute_uv=False)
        rounding = 8 * len(singular) * np.finfo(np.float64).eps * singular[0]
        return float(size * max(singular.sum() - rounding, 0.0) * (1 - ROUNDING_MARGIN))


@final
@dataclass(frozen=True, eq=False)
class UniformCertificate(Certificate):
    """The uniform measure on all records of a marginal domain, with a random sign when sums are protected.

    Its second moment has one eigenvalue β_T on the zero-sum tensors of every attribute subset T, so the bound at
    p = 2 is ``Σ_T r_T √β_T``; computed here in integers, rounded down.
    """

    domain: Marginals
    signed: bool

    def lower_bound(self) -> float:
        total = Fraction(0)
        for T, beta in residual_weights(self.domain).items():
            if T or self.signed:
                total += rank(T, self.domain.sizes) * _root_below(beta)
        return math.nextafter(float(total), 0.0)


def residual_weights(domain: Marginals) -> dict[Subset, Fraction]:
    """``β_T = Σ_{S ⊇ T} ω_S² / N_S`` for every T with a residual, exactly."""
    beta = dict.fromkeys(residual_subsets(domain.subsets, domain.sizes), Fraction(0))
    for S, weight in zip(domain.subsets, domain.weights, strict=True):
        share = Fraction(weight) ** 2 / domain.cells(S)
        for T in subsets_of(S):
            if T in beta:
                beta[T] += share
    return beta


def _root_below(value: Fraction) -> Fraction:
    """A rational just below √value, relative error under 2⁻¹⁰⁰."""
    shift = max(0, 210 - value.numerator.bit_length() + value.denominator.bit_length())
    shift += shift % 2
    return Fraction(math.isqrt((value.numerator << shift) // value.denominator), 1 << (shift // 2))
