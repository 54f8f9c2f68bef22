"""The set that noise must cover: the changes of the answer by one record, for each relation."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domains.domain import AbstractDomain, AbstractFiniteDomain
from domains.errors import DomainTooLargeError
from domains.floats import EPS, Array
from domains.sets.finite import FiniteSet
from domains.tables.tables import AbstractTables

from ..errors import ParameterError
from ..numerics.feasibility import Whitened
from ..numerics.pairs import far_pairs
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.tables.orbits import Orbits, alike
from ..solvers.tables.patterns import is_enumerable, pattern_sums
from ..solvers.tables.residuals import Subset, rank
from ..solvers.tables.workload import Workload
from ..solvers.tables.worst_pattern import searched_move
from .agreement import public_of
from .policy import PolicyGraph
from .problem import Problem, Relation

Rows = NDArray[np.intp]

# If all differences together have more numbers than this, they are computed only when needed.
_LISTED_ENTRIES = 2**14
_LARGEST_LIST = 2**25  # numbers in a list of differences: 256 MB


def check_relation(function: str, neighbors: Any, domain: AbstractDomain) -> Relation:
    """Return ``neighbors`` as a relation on the domain's points, or raise ParameterError."""
    if isinstance(neighbors, str) and neighbors == "replace":
        return "replace"
    if isinstance(neighbors, str) and neighbors == "add-remove":
        return "add-remove"
    if not isinstance(domain, AbstractFiniteDomain):
        got = repr(neighbors) if isinstance(neighbors, str) else type(neighbors).__name__
        raise ParameterError(
            f'{function}: expected neighbors="replace" or "add-remove", got {got}; hint: policy '
            f"graphs join the listed points of a FiniteSet, which {type(domain).__name__} has not"
        )
    if isinstance(neighbors, PolicyGraph) and len(neighbors.components) == domain.cardinality:
        rebuilt = PolicyGraph.from_edges(neighbors.edges, domain.to_finite_set().points)
        if not np.array_equal(rebuilt.components, neighbors.components):
            raise ParameterError(f"{function}: the policy graph belongs to another domain")
        return rebuilt
    networkx = sys.modules.get("networkx")  # a caller who has a graph has imported networkx
    if networkx is not None and isinstance(neighbors, networkx.Graph):
        return PolicyGraph.from_networkx(neighbors, domain.to_finite_set().points, function)
    got = repr(neighbors) if isinstance(neighbors, str) else type(neighbors).__name__
    raise ParameterError(
        f'{function}: expected neighbors="replace", "add-remove" or a networkx graph on the row '
        f"indices 0..{domain.cardinality - 1} of the points, got {got}"
    )


def members(points: Array, rows: Rows) -> Array:
    """Return the points that ``rows`` names: one point, or the difference of two, for each row.

    ``rows`` has shape (k, 1) or (k, 2), and the result has shape (k, d).
    """
    first = points[rows[:, 0]]
    return first - points[rows[:, 1]] if rows.shape[1] == 2 else first


@dataclass(frozen=True, eq=False)
class Covered:
    """The set that an ellipsoid must cover: listed points, or all differences of points.

    Attributes:
        points: shape (k, d). Only one of each pair ±x is listed.
        rows: for each point its index in the domain's list, shape (k, 1), or the two indices whose
            difference it is, shape (k, 2). None if ``points`` are all points of the domain, up to a
            common shift, and all their differences must be covered.
    """

    points: Array
    rows: Rows | None

    def longest(self, whitened: Whitened) -> float:
        """Return a proven bound on the lengths of covered points, in the factor's coordinates."""
        if self.rows is not None:
            return float(whitened.lengths.max())
        return math.sqrt(largest_pair(whitened))

    def outside(self, whitened: Whitened) -> Array:
        """Return how far the covered set goes beyond the factor's range, for each axis (d,)."""
        return whitened.outside if self.rows is not None else 2 * whitened.outside


def covered(domain: FiniteSet, problem: Problem, *, listed: bool = False) -> Covered:
    """Return the set that noise must cover: differences of neighbours, or K minus a point.

    For γ_p(K), the set is K minus a point. A long list of differences is computed only if
    ``listed``. If this list does not fit in memory, DomainTooLargeError is raised.
    """
    points = domain.points
    count = len(points)
    if problem.shifted:
        # subtract one of the points: coordinates on which all points agree become exact zeros
        return Covered(points - points[0], np.arange(count)[:, None])
    if problem.neighbors == "add-remove":
        return _distinct(points, np.arange(count)[:, None])
    if isinstance(problem.neighbors, PolicyGraph):
        return _distinct(points, problem.neighbors.edges)
    pairs = count * (count - 1) // 2
    if pairs * domain.dim > (_LARGEST_LIST if listed else _LISTED_ENTRIES):
        if not listed:
            return Covered(points - points[0], None)
        raise DomainTooLargeError(
            f'neighbors="replace": {count} points have {pairs} differences in R^{domain.dim}, '
            f'{pairs * domain.dim * 8 / 1e9:.3g} GB; hint: method="auto" does not list them'
        )
    return _distinct(points, np.column_stack(np.triu_indices(count, 1)))


def _distinct(points: Array, rows: Rows) -> Covered:
    """Return the nonzero points or differences at ``rows``, one of each pair ±x, or zero."""
    values = members(points, rows) + 0.0
    # choose the sign that makes the first nonzero coordinate positive
    leading = np.take_along_axis(values, (values != 0).argmax(axis=1)[:, None], axis=1)
    oriented = np.where(leading < 0, -values, values) + 0.0
    seen = {
        row.tobytes(): i for i, row in enumerate(oriented)
    }  # hashing is much faster than sorting rows
    first = np.fromiter(seen.values(), dtype=np.intp, count=len(seen))
    first = first[(values[first] != 0).any(axis=1)]
    if not len(first):
        return Covered(
            np.zeros((1, points.shape[1])),
            rows[:1] if len(rows) else np.zeros((1, 2), dtype=np.intp),
        )
    return Covered(values[first], rows[first])


def largest_pair(whitened: Whitened) -> float:
    """Return a proven bound on ``max_{i,j} ‖b_i − b_j‖²`` for the coordinates b_i of all points.

    If there are too many pairs, the bound is four times the largest squared length.
    """
    b, lengths = whitened.coordinates, whitened.lengths
    cap = 4 * float(lengths.max()) ** 2
    if b.shape[1] == 0:
        return cap
    try:
        largest = far_pairs(b).largest
    except DomainTooLargeError:
        return cap
    # lengths include the coordinates' rounding; the margin covers that of the distances
    slack = float((lengths - np.linalg.norm(b, axis=1)).max())
    rounding = 4 * (b.shape[1] + 8) * EPS * cap
    return min(cap, (math.sqrt(largest + rounding) * (1 + ROUNDING_MARGIN) + 2 * slack) ** 2)


def marginal_sensitivity(
    domain: AbstractTables,
    variances: Mapping[Subset, float],
    neighbors: Relation,
    claimed: float | None = None,
) -> float:
    """Return an upper bound on ``s' M⁺ s`` over differences s of neighbours, for marginals.

    M is the covariance. If there are too many sets of attributes in which a record and its
    replacement may differ, a search proves a bound, at least ``claimed``.
    """
    # let σ_T² be the variance of the noise for attribute set T, N_T its number of cells, and r_T
    # its rank. Add/remove: Σ_T r_T/(N_T σ_T²). Replace, if the attributes in D differ: Σ_T 2
    # r_T/(N_T σ_T²) (1 − Π_{i ∈ T∩D} −1/(n_i−1)), where attribute i has n_i categories. The bound
    # is the largest over D; public attributes are never in D
    public = public_of(neighbors)
    shares = {
        T: rank(T, domain.sizes) / (domain.cells(T) * variance) for T, variance in variances.items()
    }
    if neighbors == "add-remove":
        return math.fsum(shares.values()) * (1 + ROUNDING_MARGIN / 4)
    shares = {T: share for T, share in shares.items() if T}
    total = math.fsum(shares.values())
    kinds = [(n, i in public) for i, n in enumerate(domain.sizes)]
    orbits = Orbits(tuple(c for c in alike(shares, kinds) if any(c[0] in T for T in shares)))
    # correlation of two records along an attribute: 1 if they agree, −1/(n−1) if they differ
    unequal = [
        1.0 if members[0] in public else -1 / (domain.sizes[members[0]] - 1)
        for members in orbits.classes
    ]
    types = {orbits.type_of(T): share for T, share in shares.items()}
    if not is_enumerable(orbits):
        proven = None if claimed is None else claimed * (1 - ROUNDING_MARGIN)
        return searched_move(orbits, types, unequal, proven) * (1 + ROUNDING_MARGIN)
    sums = pattern_sums(orbits, types, [1.0] * len(unequal), unequal)
    # the squared distance of two records in T is 2 share_T (1 − Π_{i ∈ T} correlation_i)
    return 2 * (total - float(sums.min())) * (1 + ROUNDING_MARGIN)


def largest_move(
    workload: Workload, shares: Array, *, replaced: bool, claimed: float | None = None
) -> float:
    """Return the largest sum of squared changes of all measurements by one record, rounded up.

    A change is divided by the standard deviation of the noise of the measurement. ``shares`` are
    the inverse variances of this noise, by type of attribute set. If ``replaced``, a record is
    replaced, otherwise added or removed.
    """
    # to subtract sums from a total of similar size loses digits, and lengths of columns are rounded
    rounded = replaced or workload.free
    margin = 2 * ROUNDING_MARGIN * float(workload.residual_counts @ shares) if rounded else 0.0
    proven = None if claimed is None else claimed - margin
    return workload.largest_move(shares, replaced=replaced, claimed=proven) + margin
