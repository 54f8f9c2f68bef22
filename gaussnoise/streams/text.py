"""The printed texts of the plans of streams."""

import math
from typing import TYPE_CHECKING

import numpy as np

from ..numerics.intervals import quantile
from ..privacy.lattice_bound import TABLE_STEPS
from ..privacy.per_record import holds_text
from ..tables.planning.facts import (
    CLOSED,
    EVERY_ROW,
    Facts,
    drawn_text,
    gap_text,
    marginal_name,
    public_text,
)
from ..tables.planning.noun import noun_of
from ..tables.planning.text import draft_text, head_lines, head_of, hours_text
from ..text import number_of
from .ticks import CHANGED_ROWS

if TYPE_CHECKING:
    from .plan import StreamPlan

_MOST_LINES = 1000
YEARS = 12, 52, 365  # ticks of a year


def participation_text(plan: "StreamPlan") -> str:
    """Return text on the change of the data, over all ticks, that is protected."""
    k, b, rows = plan.over.most_reports, plan.over.apart, plan.rows_per_person
    person = plan.person
    own = "one row" if rows == 1 else f"at most {rows} rows"
    one = own if rows == 1 else f"{own} of one person"
    if person is not None:  # as many rows as the person has
        own, one = "any number of rows", f"all rows of one value of {person!r}"
    change = "more or less" if plan.neighbors == "add-remove" else "exchanged for another"
    if rows > 1 and plan.neighbors == "replace":
        change = "exchanged for as many others"
    apart = f", each two at least {b} ticks apart" if k > 1 < b else ""
    if plan.over.enforced:
        return f"{one} {change}, in any ticks; a registry lets at most {k} count{apart}"
    if k == 1:
        return f"{one} {change}, in one tick"
    return f"one person with {own} {change} in each of at most {k} ticks{apart}"


def stream_head(plan: "StreamPlan") -> dict[str, str]:
    """Return {name: text} on the protection, cost and number of rows of a stream's plan."""
    facts = facts_of_stream(plan)
    number = "private" if plan.neighbors == "add-remove" else "public and exact"
    return head_of(
        plan.one_tick,
        facts,
        f"{facts.relation[:-1]}; the number of rows is {number})",
        f"{plan.integers} integers in all ticks together, charged once, when the stream starts",
    )


def plan_text(plan: "StreamPlan") -> str:
    """Return the text of ``print(plan)``."""
    n, over = plan.over.n, plan.over
    shown = plan.marginals[:_MOST_LINES]
    names = [marginal_name(m) for m in shown]
    width = max(len("table"), *map(len, names))
    lines = [
        f"Plan: {number_of(n, 'tick')} of {number_of(len(plan.marginals), 'table')}, "
        f"{number_of(plan.tables.dim, 'cell')}",
        *head_lines(stream_head(plan)),
        f"one person   {_spent_text(plan)}",
        *([f"ticks        {hours_text(plan.core_hours)}"] if plan.needs_executors else []),
        *(
            [f"each tick    a {over.word}: the first {over.time(1)}, the last {over.time(n)}"]
            if over.times is not None
            else []
        ),
        *(
            [f"late rows    column {over.period!r} says; {_late_text(over.late)}"]
            if over.period is not None
            else []
        ),
        *draft_text(plan.schema),
        "",
        f"{'table':<{width}}  {'cells':>7}  {'sd of tick 1':>12}  {f'sd of tick {n}':>12}  "
        f"{f'sd of all {n}':>12}",
    ]
    for name, marginal in zip(names, shown, strict=True):
        S = tuple(sorted(plan.one_tick.subset(marginal)))
        sds = [
            plan.standard_deviation(*marginal, ticks=ticks) for ticks in ((1, 1), (n, n), (1, n))
        ]
        numbers = "  ".join(f"{sd:>12.4g}" for sd in sds)
        lines.append(f"{name:<{width}}  {plan.tables.cells(S):>7}  {numbers}")
    if len(plan.marginals) > len(shown):
        lines.append(f"… and {len(plan.marginals) - len(shown)} more")
    return "\n".join([*lines, "", errors_text(plan), *facts_of_stream(plan).verdict])


def errors_text(plan: "StreamPlan") -> str:
    """Return a sentence on the columns "sd" and the unit of the numbers of a table of errors."""
    noun = noun_of(plan, once=plan.over.most_reports == 1)
    return (
        f"sd: the standard deviation of the error of a number, in {noun}; 95 of 100 errors are "
        f"less than {quantile(0.95):.3g} times as large."
    )


def facts_of_stream(plan: "StreamPlan") -> Facts:
    """Return the facts about a stream (guarantee, noise, error) for texts and records."""
    return Facts(
        whole="stream",
        relation=f"{plan.neighbors} ({participation_text(plan)})",
        unit=plan.privacy_unit,
        counted=_counted_text(plan),
        privacy=plan.privacy.as_dict(plan.integers, TABLE_STEPS),
        budget=plan.privacy.budget(plan.rho, plan.integers, TABLE_STEPS, "of all ticks"),
        integers=plan.integers,
        noise=f"discrete Gaussian, {plan.integers:,} independent draws in all ticks together",
        exact=public_text(plan.one_tick),
        gap=plan.gap,
        verdict=_verdict(plan),
    )


def _counted_text(plan: "StreamPlan") -> str:
    if plan.over.corrections is not None:
        taken = f"rows with -1 in column {plan.over.corrections!r} are subtracted"
        one = f"; {CHANGED_ROWS}" if plan.rows_per_person == 1 else ""
        return f"{EVERY_ROW}; {taken} in the tick in which they arrive{one}"
    if plan.person is None:
        return EVERY_ROW
    more = "; rows of a person in other ticks than may count are left out: how many is private"
    return drawn_text(plan.rows_per_person, each_tick=True) + more * plan.over.enforced


def _spent_text(plan: "StreamPlan") -> str:
    """Return text on the ρ that one person's rows cost in all ticks, in one tick, and in a year."""
    n, whole = plan.over.n, plan.spent(plan.over.n)
    everything = f"spends rho = {whole:.4g} at most in all {n} ticks together"
    everything += holds_text(plan.privacy.scales)
    if plan.over.enforced:
        return f"{everything}, with any rows in any of them"
    parts = {m: plan.spent(m) for m in (1, *YEARS) if m < n}
    shown = {m: rho for m, rho in parts.items() if rho < whole}
    named = [f"of {'one tick' if m == 1 else f'any {m} in a row'} {shown[m]:.4g}" for m in shown]
    return f"{everything}; by its rows {', '.join(named)}" if named else everything


def _late_text(late: str) -> str:
    return (
        "of an earlier tick, they are refused"
        if late == "refuse"
        else "they are counted in the tick they come in"
    )


def _verdict(plan: "StreamPlan") -> list[str]:
    """Return lines that compare the error with that of independent noise, and the least."""
    ours = plan.strategy.error
    matrix = plan.over.matrix
    reports, answers = plan.over.most_reports, np.linalg.norm(matrix, axis=1)
    p = plan.strategy.p
    # separate noise on the tables of each tick: reports in k ticks change k of these tables
    fresh = float(np.linalg.norm(answers, ord=p)) * math.sqrt(reports)
    ratio = f"{fresh / ours:.3g}"
    lines = [
        "noise of its own for every tick's rows, added up, would have "
        + ("the same error" if ratio == "1" else f"{ratio} times the error")
    ]
    lines.append(gap_text(plan.gap, "answers over time", plan.gap < CLOSED))
    return lines
