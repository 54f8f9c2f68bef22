"""Exact integer sums of listed points, on a lattice much finer than the noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS, Array

from ..errors import ParameterError
from ..files.pickling import PickledByArguments
from ..noise.covariance import FactorCovariance
from ..noise.optimal_noise import OptimalNoise
from ..noise.policy import PolicyGraph
from ..noise.problem import Relation
from ..noise.sensitivity import largest_pair
from ..numerics.feasibility import Whitened, check_range, whiten
from ..privacy.lattice import AbstractLattice
from ..privacy.lattice_bound import POINT_BITS
from ..privacy.sampler import MAX_BITS, IntegerQuery

# On coarser lattices, rounding would change the strategy noticeably. Budgets that would need them
# release nothing but noise.
_MIN_BITS = 20
_EXACT_PAIR_ENTRIES = 2**21


@final
@dataclass(frozen=True, eq=False)
class PointLattice(AbstractLattice, PickledByArguments):
    """Integer vectors for listed points.

    Point i is ``origins[i] + size · unit_factor @ b_i``, and ``strategy[i]`` is ``2^bits · b_i``,
    rounded to integers.
    """

    strategy: list[list[int]]
    bits: int
    query: IntegerQuery
    unit_factor: Array
    size: float
    origins: Array

    @classmethod
    def build(
        cls, points: Array, noise: OptimalNoise, covariance: FactorCovariance, rho: float
    ) -> Self:
        """Return the lattice for listed points (rows of ``points``) and optimal noise, at budget ρ.

        The points are written in coordinates along the factor of ``covariance``, that of ``noise``.
        """
        rows = origin_rows(points, noise.neighbors)
        origins = np.zeros_like(points) if rows is None else points[rows]
        size = covariance.scale
        whitened = whiten(covariance.unit_factor, (points - origins) / size)
        check_range(whitened, np.abs(points - origins).max(axis=0) / size)
        if covariance.unit_factor.shape[1] == 0:
            return cls(
                [[] for _ in points], 0, IntegerQuery(1, 1.0), covariance.unit_factor, size, origins
            )
        length = math.sqrt(noise.sensitivity_squared / (2 * rho))
        bits = bits_for(length, rho)
        integers = [[int(x) for x in row] for row in np.rint(np.ldexp(whitened.coordinates, bits))]
        query = IntegerQuery(_largest_change(integers, bits, noise.neighbors), rho)
        return cls(integers, bits, query, covariance.unit_factor, size, origins)

    def bias(self, points: Array) -> Array:
        """Return the largest rounding error of a point in each coordinate, shape (d,)."""
        wide = np.longdouble
        integers = np.array([[math.ldexp(x, -self.bits) for x in row] for row in self.strategy])
        integers = integers.reshape(len(self.strategy), self.rank)
        decoded = (
            self.size * (integers.astype(wide) @ self.unit_factor.T.astype(wide)) + self.origins
        )
        decoding = (
            np.abs(points).max(axis=0)
            + np.abs(self.origins)
            + self.size * np.abs(integers) @ np.abs(self.unit_factor.T)
        )
        rounding = 4 * (self.rank + 2) * EPS * decoding.max(axis=0)
        return (np.abs(decoded - points).max(axis=0) + rounding).astype(np.float64)

    def sums(self, counts: list[int]) -> list[int]:
        """Return the exact integer sum over all records, ``Σ_i counts[i] · strategy[i]``."""
        present = [(count, row) for count, row in zip(counts, self.strategy, strict=True) if count]
        return [sum(count * row[k] for count, row in present) for k in range(self.rank)]


def bits_for(length: float, rho: float) -> int:
    """Return b such that 2^-b is much smaller than ``length``, the noise's standard deviation."""
    bits = POINT_BITS - math.frexp(length)[1]
    if not (length > 0 and _MIN_BITS <= bits <= MAX_BITS):
        raise ParameterError(
            f"GaussianMechanism: rho = {rho:.3g} needs a lattice of 2^{-bits} per unit of noise, "
            f"expected between 2^-{MAX_BITS} and 2^-{_MIN_BITS}; hint: a budget that amounts to a "
            "rho between 1e-12 and 1e100"
        )
    return bits


def origin_rows(points: Array, neighbors: Relation) -> NDArray[np.intp] | None:
    """Return, for each point, the index of the point that is its origin; None if origins are zero.

    If the number of records is public, the origin is a member of K. So coordinates are exact if no
    neighbour can change them. Under a policy graph, it is a member of the same component. The
    origin depends only on the values of the points, so equal points have the same origin.
    """
    if neighbors == "add-remove":
        return None
    if not isinstance(neighbors, PolicyGraph):
        return np.zeros(len(points), dtype=np.intp)
    return PolicyGraph.from_edges(neighbors.edges, points).origins()


def _largest_change(integers: list[list[int]], bits: int, neighbors: Relation) -> int:
    """Return a bound on the squared ℓ₂ norm of the change of the integer sum by one record."""
    if neighbors == "add-remove":
        return max(sum(x * x for x in row) for row in integers)
    count, rank = len(integers), len(integers[0])
    if isinstance(neighbors, PolicyGraph):
        return max(
            (
                sum((x - y) ** 2 for x, y in zip(integers[i], integers[j], strict=True))
                for i, j in neighbors.edges
            ),
            default=0,
        )
    if count * count * rank <= _EXACT_PAIR_ENTRIES:
        rows = np.array(integers, dtype=object)
        changes = (
            int(np.square(rows[i + 1 :] - rows[i]).sum(axis=1).max()) for i in range(count - 1)
        )
        return max(changes, default=0)
    # a float bound for long lists, at most 1e-12 too large in relation
    rounded = np.array([[math.ldexp(x, -bits) for x in row] for row in integers])
    lengths = np.linalg.norm(rounded, axis=1) * (1 + 8 * rank * EPS)
    return math.ceil(
        Fraction(largest_pair(Whitened(rounded, lengths, np.zeros(rank)))) * Fraction(4) ** bits
    )
