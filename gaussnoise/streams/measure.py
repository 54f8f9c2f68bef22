"""Noisy measurements of the counts of all ticks so far, and estimates of the last tick's counts.

A measurement at tick t is ``Σ_i C_ti q_i`` plus noise: C is the time strategy, and q_i are the
residual answers on the rows of tick i.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, GaussNoiseError
from ..numerics.integers import exact_type
from ..privacy.sampler import NoiseStream
from ..solvers.tables.residuals import Subset, part_of
from ..tables.counting.admission import AbstractAdmission
from ..tables.counting.count import count_marginals
from ..tables.counting.impossible import excluded
from ..tables.planning.measure import ResidualQuery
from ..tables.planning.plan import Plan
from ..tables.reading.files import written_in
from ..tables.release.publish import limit_of
from ..tables.release.stream import measured_parts, table_of
from ..tables.schema.schema import OnOutside
from .plan import StreamPlan
from .ticks import Ticks

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Tables = Mapping[Subset, Counts]  # exact counts of every planned marginal
Integers = NDArray[Any]  # int64 where every sum provably fits, Python integers otherwise
Noisy = Mapping[Subset, Sequence[int]]  # the noisy answer of every residual

_AT_ONCE = 2**16  # most Python integers in memory at once; each takes about a hundred bytes


def counted(
    plan: Plan,
    over: Ticks,
    tick: int,
    table: object,
    on_outside: OnOutside,
    turn: AbstractAdmission | None = None,
) -> dict[Subset, Counts]:
    """Return {marginal: exact counts} of one tick's rows, for every planned marginal.

    If the plan has a ``person`` column, at most the planned number of each person's rows is counted
    in the tick. They are chosen by hashes under a random key, which is new at each tick and not
    kept. For fixed keys, the rows of a person that a tick counts depend only on this person's rows
    in the tick. So the guarantee for all ticks holds for every choice of keys, and thus for random
    keys that do not depend on data. ``turn``, if given, first leaves out the rows of persons whom
    it does not admit.

    If the ticks have a column of corrections, rows with -1 are subtracted: counts may be negative.
    Such a row changes all measured integers by as much as a row with +1, with the opposite sign.

    Raises:
        DataError: rows break the schema, or are of another tick and must not be carried.
    """
    table = written_in(table, plan.schema.file)
    used = plan.asked.used
    planned = {tuple(used.index(i) for i in S): S for S in plan.tables.subsets}
    attributes, wanted, when = (
        [plan.schema.attributes[i] for i in used],
        list(planned),
        (len(used),),
    )
    attributes += over.columns
    sign = () if over.corrections is None else (len(attributes) - 1,)
    wanted = [(*S, *sign) for S in wanted]
    if over.period is not None:
        wanted.append(when)
    rules, limit = excluded(plan.schema, used), limit_of(plan, turn)
    if over.period is not None and limit is not None:  # check before rows are chosen at random
        every = count_marginals(table, attributes, [when], on_outside, impossible=rules)
        check_period(over, tick, dict(every)[when])
    found = dict(count_marginals(table, attributes, wanted, on_outside, limit, impossible=rules))
    if over.period is not None:
        check_period(over, tick, found.pop(when))
    if sign:
        return {planned[S[:-1]]: own[..., 0] - own[..., 1] for S, own in found.items()}
    return {planned[S]: np.asarray(counts) for S, counts in found.items()}


def check_period(over: Ticks, tick: int, rows: Counts) -> None:
    """Raise DataError if a table has rows of ticks that may not be counted now.

    ``rows[t - 1]`` is the number of rows whose column names tick t.
    """
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


def check_ticks(plan: Plan, over: Ticks, tick: int, table: object) -> None:
    """Raise DataError if a table's column of tick numbers shows rows of a wrong tick.

    Rows that the schema leaves out are not checked. Without such a column, no row is checked.
    """
    used = plan.asked.used
    attributes = [*(plan.schema.attributes[i] for i in used), *over.columns]
    table, when = written_in(table, plan.schema.file), (len(used),)
    rules = excluded(plan.schema, used)
    if over.period is not None:
        rows = dict(count_marginals(table, attributes, [when], "drop", impossible=rules))
        check_period(over, tick, rows[when])


def parts_of(plan: StreamPlan) -> dict[Subset, Subset]:
    """Return {T: S}, where the residual of table T is computed from the counts of marginal S.

    A residual is the part of table T that no smaller table determines. S is the first planned
    marginal that contains T.
    """
    parts: dict[Subset, Subset] = {}
    for S in plan.tables.subsets:
        for T in measured_parts(S, plan.query):
            parts.setdefault(T, S)
    return parts


def measured(
    plan: StreamPlan, ticks: Sequence[Tables], noise: NoiseStream
) -> dict[Subset, list[int]]:
    """Return {attribute set: noisy integers of its residual}, measured at the last tick.

    A residual is the part of table T that no smaller table determines. ``ticks`` has the exact
    counts of all ticks so far; ``noise`` gives fresh noise.
    """
    rows = max(int(np.abs(counts).sum()) for tables in ticks for counts in tables.values())
    noisy: dict[Subset, list[int]] = {}
    for T, S in parts_of(plan).items():
        weighted = weighted_counts(plan, [part_of(tables[S], S, T) for tables in ticks], rows)
        answer = plan.query.noisy(T, weighted, noise.take(plan.query.rows(T)))
        noisy[T] = [int(x) for x in answer]
    return noisy


def weighted_counts(plan: StreamPlan, ticks: Collection[Counts], rows: int) -> Integers:
    """Return ``Σ_i C_ti · counts_i`` over the ticks i so far, in exact integers.

    C is the time strategy, the lower triangular matrix of weights, and t is the last tick. ``rows``
    is an upper bound on the sum of the absolute values of one tick's counts.
    """
    row: list[int] = plan.strategy.matrix[len(ticks) - 1, : len(ticks)].tolist()
    exact = exact_type(sum(map(abs, row)) * max(rows, 1))
    weighted: Any = 0
    for weight, counts in zip(row, ticks, strict=True):
        weighted = weighted + weight * np.asarray(counts).astype(exact)
    return np.asarray(weighted, dtype=exact)


def estimated(plan: StreamPlan, ticks: Sequence[Noisy], rows: int) -> dict[Subset, Array]:
    """Return {S: unbiased estimate of table S for the rows of the last tick alone}.

    ``ticks`` has the noisy measurements of all ticks so far. ``rows`` is the number of the last
    tick's rows; it is used only where that number is public.
    """
    inverse = plan.strategy.row_of_inverse(len(ticks) - 1)
    residuals = {
        T: own_residual(plan.query, T, inverse, [noisy[T] for noisy in ticks])
        for T in parts_of(plan)
    }
    return {S: own_table(plan.query, S, residuals, rows) for S in plan.tables.subsets}


def own_residual(
    query: ResidualQuery,
    T: Subset,
    inverse: tuple[list[int], int],
    ticks: Sequence[Sequence[int] | Integers],
) -> Array:
    """Return the estimated residual of table T for the rows of the last tick alone.

    A residual is the part of table T that no smaller table determines. ``ticks`` has its noisy
    measurements at all ticks so far. ``inverse`` is the last tick's row of C⁻¹, where C is the time
    strategy: integers, and their common denominator.
    """
    weights, unit = inverse
    count = query.rows(T)
    if any(len(noisy) != count for noisy in ticks):
        raise GaussNoiseError("stream: measurements of another plan")
    values = np.zeros(count)
    for start in range(0, count, _AT_ONCE):
        block = slice(start, start + _AT_ONCE)
        own: Any = np.zeros(len(values[block]), dtype=object)
        for weight, noisy in zip(weights, ticks, strict=True):
            own = own + weight * np.array(noisy[block], dtype=object)
        values[block] = query.divided(T, own, unit)
    return query.decoded(T, values)


def own_table(
    query: ResidualQuery, S: Subset, residuals: Mapping[Subset, Array], rows: int
) -> Array:
    """Return table S for the rows of the last tick alone: the sum of its residuals.

    A residual is the part of a table that no smaller table determines. ``rows`` is the number of
    these rows; it is used only where that number is public.
    """
    exact = np.array(0.0 if () in query.multipliers else float(rows))
    return table_of(S, exact, {T: residuals[T] for T in measured_parts(S, query)}, query)
