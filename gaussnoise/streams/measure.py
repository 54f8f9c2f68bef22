"""From exact counts of the ticks so far to noisy integers, and to estimates.

Estimates are of the last tick's counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, GaussNoiseError
from ..numerics.integers import exact_type
from ..privacy.sampler import NoiseStream
from ..solvers.tables.residuals import Subset, part_of
from ..tables.counting.codes import OnOutside
from ..tables.counting.count import count_marginals
from ..tables.counting.impossible import excluded
from ..tables.planning.plan import Plan
from ..tables.release.publish import limit_of
from ..tables.release.stream import measured_parts
from ..tables.schema.schema import Attribute
from .plan import StreamPlan
from .ticks import Ticks

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Tables = Mapping[Subset, Counts]  # exact counts of every planned marginal
Noisy = Mapping[Subset, Sequence[int]]  # the noisy answer of every residual


def counted(
    plan: Plan, over: Ticks, tick: int, table: object, on_outside: OnOutside
) -> dict[Subset, Counts]:
    """Exact counts of every planned marginal of one tick's rows.

    Planned with ``person``, at most so many rows of each person in the tick, chosen under a key of
    its own, which is not kept. Whatever the keys of all ticks are, what a tick counts of a person
    is a function of that person's rows in it: so the promise for all ticks holds for every choice
    of keys, and for keys that are drawn without looking at data.

    Raises:
        DataError: rows that break the schema, or are of another tick and not to be carried.
    """
    used = sorted({i for S in plan.tables.subsets for i in S})
    planned = {tuple(used.index(i) for i in S): S for S in plan.tables.subsets}
    attributes, wanted, when = (
        [plan.schema.attributes[i] for i in used],
        list(planned),
        (len(used),),
    )
    if over.period is not None:
        attributes.append(Attribute(over.period, categories=range(1, over.n + 1)))
        wanted.append(when)
    rules, limit = excluded(plan.schema, used), limit_of(plan)
    if over.period is not None and limit is not None:  # chance is not to decide on a refusal
        every = count_marginals(table, attributes, [when], on_outside, impossible=rules)
        _check_period(over, tick, dict(every)[when])
    found = dict(count_marginals(table, attributes, wanted, on_outside, limit, impossible=rules))
    if over.period is not None:
        _check_period(over, tick, found.pop(when))
    return {planned[S]: np.asarray(counts) for S, counts in found.items()}


def _check_period(over: Ticks, tick: int, rows: Counts) -> None:
    if rows[tick:].any():
        raise DataError(
            f"column {over.period!r}: expected rows of tick {tick} or before, got later ones; "
            "hint: ticks come one after another"
        )
    if over.late == "refuse" and rows[: tick - 1].any():
        raise DataError(
            f"column {over.period!r}: expected rows of tick {tick} alone, got earlier ones; "
            'hint: leave them out, or plan with late="carry"'
        )


def parts_of(plan: StreamPlan) -> dict[Subset, Subset]:
    """Every residual that is measured, and the first planned marginal that has it."""
    parts: dict[Subset, Subset] = {}
    for S in plan.tables.tables.subsets:
        for T in measured_parts(S, plan.query):
            parts.setdefault(T, S)
    return parts


def measured(
    plan: StreamPlan, ticks: Sequence[Tables], noise: NoiseStream
) -> dict[Subset, list[int]]:
    """What is measured at the last of these ticks, with fresh noise.

    On every residual it is ``Σ_i C_ti q_i``, exactly.
    """
    row: list[int] = plan.strategy.matrix[len(ticks) - 1, : len(ticks)].tolist()
    rows = max(int(counts.sum()) for tables in ticks for counts in tables.values())
    exact = exact_type(sum(map(abs, row)) * max(rows, 1))
    noisy: dict[Subset, list[int]] = {}
    for T, S in parts_of(plan).items():
        weighted: Any = np.zeros([plan.schema.sizes[i] for i in T], dtype=exact)
        for weight, tables in zip(row, ticks, strict=True):
            weighted = weighted + weight * part_of(tables[S], S, T).astype(exact)
        answer = plan.query.noisy(
            T, np.asarray(weighted, dtype=exact), noise.take(plan.query.rows(T))
        )
        noisy[T] = [int(x) for x in answer]
    return noisy


def estimated(plan: StreamPlan, ticks: Sequence[Noisy], rows: int) -> dict[Subset, Array]:
    """Unbiased tables of the last tick's own rows, from what was measured so far.

    ``rows`` says how many there are, where that is public.
    """
    weights, unit = plan.strategy.row_of_inverse(len(ticks) - 1)
    query = plan.query
    residuals: dict[Subset, Array] = {}
    for T in parts_of(plan):
        own: Any = np.zeros(query.rows(T), dtype=object)
        for weight, noisy in zip(weights, ticks, strict=True):
            if len(noisy[T]) != len(own):
                raise GaussNoiseError("stream: measurements of another plan")
            own = own + weight * np.array(noisy[T], dtype=object)
        residuals[T] = query.decode(T, own, unit)
    return dict(_assembled(plan, residuals, 0.0 if () in query.multipliers else float(rows)))


def _assembled(
    plan: StreamPlan, residuals: Mapping[Subset, Array], rows: float
) -> Iterator[tuple[Subset, Array]]:
    for S in plan.tables.tables.subsets:
        table = plan.query.spread(np.array(rows), (), S).copy()
        for T in measured_parts(S, plan.query):
            table += plan.query.spread(residuals[T], T, S)
        table.flags.writeable = False
        yield S, table
