"""The dual witness of tensor powers: a measure that rotations leave alone."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from domains import TensorPower

from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.bodies.harmonics import multiplicity, traces_below
from ..solvers.design import Protected
from .certificate import Certificate

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class TensorCertificate(Certificate):
    """A measure on the sensitivity set of a tensor power that rotations leave alone.

    Attributes:
        domain: the tensor power, of base d and order k.
        atoms: shape (n, 3), rows (a, b, t), see :func:`~gaussnoise.solvers.bodies.harmonics.traces_below`.
        weights: shape (n,), their probabilities.
        kind: ``gamma`` takes the covariance of the measure on K, without the sign; ``add-remove`` and ``replace`` the
            second moment of that on K ∪ −K and K − K.
        scale: by how much the set is larger than the tensor power.
    """

    domain: TensorPower
    atoms: Array
    weights: Array
    kind: Protected
    scale: float = 1.0

    def lower_bound(self) -> float:
        """``scale · Σ_j √(D_j π_j κ_j)``, in rational arithmetic, rounded down."""
        total = sum(self._traces().values())
        return math.nextafter(float(total * Fraction(self.scale)), 0.0)

    def spectrum(self) -> tuple[Array, Array]:
        traces = self._traces()
        counts = np.array([float(multiplicity(self.domain.base, j)) for j in traces])
        values = np.array([float(trace) * self.scale for trace in traces.values()]) / counts
        return values * (1 - ROUNDING_MARGIN), counts

    def _traces(self) -> dict[int, Fraction]:
        return traces_below(self.domain, self.kind, self.atoms, self.weights)
