"""From counts to released tables, one marginal at a time."""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ...privacy.sampler import NoiseStream
from ...solvers.tables.residuals import Subset, part_of, subsets_of
from ..planning.measure import Array, ResidualQuery


def noisy_tables(
    counted: Iterable[tuple[Subset, NDArray[np.int64]]],
    planned: Iterable[Subset],
    query: ResidualQuery,
    noise: NoiseStream,
) -> Iterator[tuple[Subset, Array]]:
    """Every planned marginal, as soon as it is counted: ``Σ_{T ⊆ S} residual_T ⊗_{i∈S∖T} v_i``.

    What is public, the number of rows and tables of public attributes, goes in as it is.

    Each residual is measured once, from the first marginal that has it, and kept until the last:
    memory follows the largest table and what tables share.
    """
    uses = Counter(T for S in planned for T in measured_parts(S, query))
    residuals: dict[Subset, Array] = {}
    for S, counts in counted:
        # nothing moves the number of rows where it is not measured: it is public
        known = tuple(i for i in S if i in query.public)
        exact = part_of(counts, S, known) / query.unit
        exact = np.zeros_like(exact) if () in query.multipliers else exact
        table = query.spread(exact, known, S).copy()
        for T in measured_parts(S, query):
            if T not in residuals:
                noisy = query.noisy(T, part_of(counts, S, T), noise.take(query.rows(T)))
                residuals[T] = query.decode(T, noisy)
            table += query.spread(residuals[T], T, S)
            uses[T] -= 1
            if not uses[T]:
                del residuals[T], uses[T]
        table.flags.writeable = False
        yield S, table


def measured_parts(S: Subset, query: ResidualQuery) -> Iterator[Subset]:
    """The T ⊆ S that are measured."""
    return (T for T in subsets_of(S) if T in query.multipliers)
