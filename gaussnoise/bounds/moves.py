"""The differences between records of a data set and records that may replace them."""

import numpy as np
from numpy.typing import ArrayLike

from domains.algebra.members import contains
from domains.domain import AbstractDomain, AbstractFiniteDomain
from domains.errors import DomainTooLargeError
from domains.floats import Array
from domains.sets.finite import FiniteSet

from ..errors import DataError, ParameterError
from ..noise.policy import PolicyGraph
from ..noise.problem import Relation
from ..records import counts_of, real_rows

_MOST_ENTRIES = 2**25
_MOST_RECORDS = 64  # number of records of data in a body that are used: those far apart


def records_of(domain: AbstractDomain, data: "ArrayLike") -> tuple[Array, Array]:
    """Return the distinct records as rows, and the number of times that each occurs.

    Raises:
        DataError: data are not members of the domain, not finite, of the wrong shape, or empty.
    """
    if isinstance(domain, AbstractFiniteDomain):
        points = domain.to_finite_set().points
        counts = np.array(counts_of("lower_bound", points, data, None), dtype=np.float64)
        rows, counts = points[counts > 0], counts[counts > 0]
    else:
        records = real_rows("lower_bound", domain.dim, data).astype(np.float64)
        if not np.isfinite(records).all():
            raise DataError("lower_bound: expected finite records, got NaN or infinity")
        rows, tally = np.unique(records, axis=0, return_counts=True)
        counts = tally.astype(np.float64)
        if not all(contains(domain, row) for row in rows):
            raise DataError("lower_bound: expected records in the domain, got one outside")
    if not len(rows):
        raise DataError("lower_bound: expected at least one record")
    return rows, counts


def moves(domain: AbstractDomain, rows: Array, neighbors: Relation) -> AbstractDomain:
    """Return the differences between records of the data and records that may replace them.

    The set has x − y, y − x or both. If there are too many records, some are left out. A subset
    gives a valid bound, too.
    """
    members = domain._listed()
    if members is None:
        return domain - FiniteSet(_far_apart(rows, _MOST_RECORDS))
    listed = members.points
    if isinstance(neighbors, PolicyGraph):
        present = {row.tobytes() for row in rows + 0.0}
        here = np.array([point.tobytes() in present for point in listed + 0.0])
        edges = neighbors.edges[here[neighbors.edges].any(axis=1)]
        if not len(edges):
            raise ParameterError(
                "lower_bound: no record of the data has a neighbour in the policy graph"
            )
        return FiniteSet(np.unique(listed[edges[:, 0]] - listed[edges[:, 1]], axis=0))
    if len(listed) * domain.dim > _MOST_ENTRIES:
        raise DomainTooLargeError(
            f"lower_bound: {len(listed)} points in R^{domain.dim} are too many to list their "
            "differences; hint: leave data out, for the bound that holds for all data sets"
        )
    chosen = _far_apart(rows, max(1, _MOST_ENTRIES // listed.size))
    differences = (chosen[:, None, :] - listed[None, :, :]).reshape(-1, domain.dim)
    return FiniteSet(
        np.unique(differences[differences.any(axis=1)], axis=0)
        if differences.any()
        else differences[:1]
    )


def _far_apart(rows: Array, most: int) -> Array:
    """Return at most ``most`` rows, each the farthest from the rows chosen before it."""
    if len(rows) <= most:
        return rows
    chosen = [int(np.argmax(((rows - rows.mean(axis=0)) ** 2).sum(axis=1)))]
    distance = np.full(len(rows), np.inf)
    while len(chosen) < most:
        distance = np.minimum(distance, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(distance.argmax()))
    return rows[chosen]
