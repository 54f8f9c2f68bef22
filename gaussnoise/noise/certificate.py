"""Dual witnesses: what proves that no covariance can be better."""

import abc
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from domains import Marginals

from ..numerics.rounding import CANCELLATION, ROUNDING_MARGIN
from ..solvers.design import Protected
from ..solvers.tables.workload import Workload

Array = NDArray[np.float64]


class Certificate(abc.ABC):
    """A probability measure on the set, and coordinate weights, whose fidelity bounds γ from below.

    Source: Nikolov & Tang (2023), Theorem 26.
    """

    @abc.abstractmethod
    def lower_bound(self) -> float:
        """``tr((W^{1/2} C W^{1/2})^{1/2})``, C the covariance (or second moment) of the measure; a lower bound on γ."""

    @abc.abstractmethod
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues of ``(W^{1/2} C W^{1/2})^{1/2}``, bounded from below, and their multiplicities."""


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
        origin: shape (d,), where points are members of K − origin, so that none is rounded by how far away K is; None
            where they are members of K.
    """

    points: Array
    weights: Array
    coordinate_weights: Array
    rows: NDArray[np.intp] | None
    centered: bool
    origin: Array | None = None

    def lower_bound(self) -> float:
        values, _ = self.spectrum()
        return float(values.sum() * (1 - ROUNDING_MARGIN))

    def spectrum(self) -> tuple[Array, Array]:
        # a member as the origin: what the points have in common cancels before anything is rounded
        points = self.points - self.points[0] if self.centered else self.points
        size = np.abs(points).max(initial=0.0)
        if size == 0:
            return np.zeros(1), np.ones(1)
        mass = self.weights / math.fsum(self.weights)
        unit = points / size
        moved = unit - mass @ unit if self.centered else unit
        scaled = np.sqrt(mass)[:, None] * moved * np.sqrt(self.coordinate_weights)
        # a triangular factor has the same nuclear norm and, usually, a tenth of the entries
        triangle = np.linalg.qr(scaled, mode="r") if len(scaled) > 1.5 * scaled.shape[1] else scaled
        singular = np.linalg.svd(triangle, compute_uv=False)
        rounding = 8 * np.finfo(np.float64).eps * singular[0]
        return size * np.maximum(singular - rounding, 0.0), np.ones(len(singular))


@final
@dataclass(frozen=True, eq=False)
class MarginalCertificate(Certificate):
    """A measure on the records, or pairs of records, of a marginal domain, by what symmetry leaves of it.

    The measure is uniform on all records (with a random sign when sums are protected), or on the pairs that differ in
    a pattern D of attributes, with weights π on patterns. Its second moment then has one eigenvalue on every residual,
    and the bound is ``Σ_T r_T √(β_T κ_T)``.

    Attributes:
        domain: the marginals.
        p: error norm.
        protected: "gamma" (K about its center), "add-remove" or "replace".
        shares: dual weights on all tables of a type together, in the order of :attr:`Workload.tables`.
        patterns: shape (k, classes of more than one category), how many attributes of each class differ.
        pattern_weights: shape (k,).
    """

    domain: Marginals
    p: float
    protected: Protected
    shares: Array
    patterns: NDArray[np.intp]
    pattern_weights: Array

    def lower_bound(self) -> float:
        return self.bound_over(self.workload())

    def workload(self) -> Workload:
        """The domain's tables and residuals by type."""
        return Workload.of(self.domain, total=self.protected == "add-remove")

    def bound_over(self, workload: Workload) -> float:
        """:meth:`lower_bound`, given what :meth:`workload` returns, which takes as long to find as to solve."""
        traces = self._traces(workload)
        return max(self.domain.weights) * math.fsum(workload.residual_counts * traces) * (1 - ROUNDING_MARGIN)

    def spectrum(self) -> tuple[Array, Array]:
        workload = self.workload()
        values = max(self.domain.weights) * self._traces(workload) / workload.ranks
        return values * (1 - ROUNDING_MARGIN), workload.residual_counts * workload.ranks

    def losses(self, workload: Workload) -> Array:
        """Of unit noise on one T of each type, coordinates weighted, when the largest table weight is one."""
        shares = self.shares / (math.fsum(self.shares) * (1 + CANCELLATION))
        return workload.dual_loss(self.p) @ shares ** (1 - 2 / self.p)

    def _traces(self, workload: Workload) -> Array:
        """What every T of each type adds to the trace."""
        if not workload.residuals:
            return np.zeros(0)
        weights = self.pattern_weights / (math.fsum(self.pattern_weights) * (1 + CANCELLATION))
        losses = self.losses(workload)
        moved = np.ones(len(losses))
        if self.protected == "replace":
            # 1 − Π rounds where it cancels
            moved = weights @ np.maximum(workload.moved(self.patterns) - CANCELLATION, 0.0)
        return np.sqrt(losses * moved)
