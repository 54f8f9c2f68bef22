"""The steps from counts to released tables, one marginal at a time."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ...privacy.sampler import NoiseStream
from ...solvers.tables.boxes import Box
from ...solvers.tables.residuals import Subset, part_of, subsets_of
from ..planning.measure import Array, ResidualQuery

Counts = NDArray[np.int64]


def noisy_tables(
    counted: Iterable[tuple[Subset, Counts]],
    planned: Iterable[Subset],
    query: ResidualQuery,
    noise: NoiseStream,
) -> Iterator[tuple[Subset, Array]]:
    """Yield (attribute indices, noisy table) for each planned marginal, as soon as it is counted.

    The residual of a set of attributes is the part of its table that its margins do not determine.

    Each residual is measured once, from the first marginal that contains it, and kept until the
    last marginal that needs it. So memory holds the largest table and the shared residuals.
    """
    uses = Counter(T for S in planned for T in measured_parts(S, query))
    residuals: dict[Subset, Array] = {}
    for S, counts in counted:
        parts = list(measured_parts(S, query))
        for T in parts:
            if T not in residuals:
                residuals[T] = measured(counts, S, T, query, noise.take)
        exact = exact_part(counts, S, known_part(S, query), query)
        table = table_of(S, exact, {T: residuals[T] for T in parts}, query)
        for T in parts:
            uses[T] -= 1
            if not uses[T]:
                del residuals[T], uses[T]
        yield S, table


def measured(
    counts: Counts, S: Subset, T: Subset, query: ResidualQuery, draw: Callable[[int], Counts]
) -> Array:
    """Return the noisy residual of the attributes T, from the counts of S, which contains T.

    ``draw(k)`` returns k integers of noise.
    """
    return query.decode(T, query.noisy(T, part_of(counts, S, T), draw(query.rows(T))))


def known_part(S: Subset, query: ResidualQuery) -> Subset:
    """Return the public attributes of S, whose joint table is known without noise."""
    return tuple(i for i in S if i in query.public)


def exact_part(counts: Counts, S: Subset, known: Subset, query: ResidualQuery) -> Array:
    """Return the exact table of the public attributes ``known`` in S, from the counts of S.

    If ``known`` is empty, the table is the number of rows. If the number of rows is measured with
    noise, the whole table is zero.
    """
    exact = part_of(counts, S, known).astype(np.float64) / query.unit
    return np.zeros_like(exact) if () in query.multipliers else exact


def table_of(
    S: Subset,
    exact: Array,
    residuals: Mapping[Subset, Array],
    query: ResidualQuery,
    box: Box | None = None,
) -> Array:
    """Return the table of the attributes S, computed from its exact part and noisy residuals.

    The profile v_i spreads a total over the cells of attribute i. The table is
    ``exact + Σ_T residual_T ⊗_{i∈S∖T} v_i``, the sum over all measured sets T ⊆ S.

    Terms are added in the order of :func:`measured_parts`. For a box of cells, the result is
    exactly equal to these cells of the whole table.
    """
    table = query.spread(exact, known_part(S, query), S, box).copy()
    for T, values in residuals.items():
        table += query.spread(values, T, S, box)
    table.flags.writeable = False
    return table


def measured_parts(S: Subset, query: ResidualQuery) -> Iterator[Subset]:
    """Yield the subsets T of the attributes S whose residuals are measured."""
    return (T for T in subsets_of(S) if T in query.multipliers)
