"""The words for plans of streams."""

import math
from typing import TYPE_CHECKING

import numpy as np

from ..privacy.lattice_bound import TABLE_STEPS
from ..tables.planning.text import about_text, draft_text, hours_text, marginal_name
from ..tables.release.over_time import Guarantee, OverTime

if TYPE_CHECKING:
    from .plan import StreamPlan

_MOST_LINES = 1000
_CLOSED = 1e-3


def participation_text(plan: "StreamPlan") -> str:
    """Return the words for the unit that is protected over time."""
    k, b, rows = plan.over.most_reports, plan.over.apart, plan.rows_per_person
    person = plan.person
    one = "one row" if rows == 1 else f"one person's at most {rows} rows"
    if person is not None:  # for any number of rows
        one = f"all rows of one value of {person!r}"
    change = "more or less" if plan.neighbors == "add-remove" else "exchanged for another"
    if rows > 1 and plan.neighbors == "replace":
        change = "exchanged for as many others"
    if k == 1:
        return f"{one} {change}, in one tick"
    if person is not None:
        one = "any number of rows"
    apart = f", each two at least {b} ticks apart" if b > 1 else ""
    return f"one person with {one} {change} in each of at most {k} ticks{apart}"


def counted_text(plan: "StreamPlan") -> str:
    """Return the words for the rows that the tables count."""
    k = plan.rows_per_person
    rows = "one row" if k == 1 else f"{k} rows"
    return (
        f"at most {rows} of each person in a tick, drawn at random from that person's own of the "
        "tick: where persons have more, counts of rows are too small, by how much is private"
    )


def head_text(plan: "StreamPlan") -> list[str]:
    """Return lines on what is said, protected, counted and spent, for plans and for every tick."""
    number = "private" if plan.neighbors == "add-remove" else "public and exact"
    return [
        *about_text(plan.one_tick),
        f"neighbours   {plan.neighbors} ({participation_text(plan)}; the number of rows is "
        f"{number})",
        "budget       " + plan.privacy.budget(plan.rho, plan.integers, TABLE_STEPS, "of all ticks"),
        f"noise        {plan.integers} integers in all ticks together, charged once, when the "
        "stream starts",
        *([] if plan.person is None else [f"counted      {counted_text(plan)}"]),
    ]


def plan_text(plan: "StreamPlan") -> str:
    """Return the text of ``print(plan)``."""
    n, over = plan.over.n, plan.over
    shown = plan.marginals[:_MOST_LINES]
    names = [marginal_name(m) for m in shown]
    width = max(len("marginal"), *map(len, names))
    lines = [
        f"Plan: {n} ticks of {len(plan.marginals)} marginals, {plan.tables.dim} cells",
        *head_text(plan),
        *([f"ticks        {hours_text(plan.core_hours)}"] if plan.needs_executors else []),
        *(
            [f"late rows    column {over.period!r} says; {_late_text(over.late)}"]
            if over.period is not None
            else []
        ),
        *draft_text(plan.schema),
        "",
        f"{'marginal':<{width}}  {'cells':>7}  {'sd of tick 1':>12}  {f'sd of tick {n}':>12}  "
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
    return "\n".join([*lines, "", *_verdict(plan)])


def over_time(plan: "StreamPlan", times: str) -> OverTime:
    """Return the facts about the whole stream that its ticks' tables show."""
    guarantee = Guarantee(
        whole="stream",
        unit=plan.privacy_unit,
        neighbors=f"{plan.neighbors} ({participation_text(plan)})",
        privacy=plan.privacy.as_dict(plan.integers, TABLE_STEPS),
        integers=plan.integers,
        noise=f"discrete Gaussian, {plan.integers:,} independent draws in all ticks together",
    )
    return OverTime(times, guarantee, plan.gap, _verdict(plan))


def _late_text(late: str) -> str:
    return (
        "of an earlier tick, they are refused"
        if late == "refuse"
        else "they are counted in the tick they come in"
    )


def _verdict(plan: "StreamPlan") -> list[str]:
    """Return the comparison of the strategy over time with simple ones, and its proof, in words."""
    ours = plan.strategy.error
    matrix = plan.over.matrix
    reports, answers = plan.over.most_reports, np.linalg.norm(matrix, axis=1)
    p = plan.strategy.p
    # noise on every tick's own tables: reports of one person in k ticks move k of them
    fresh = float(np.linalg.norm(answers, ord=p)) * math.sqrt(reports)
    lines = [
        f"error {fresh / ours:.3g} times less than with noise of its own for every tick's rows, "
        "added up"
    ]
    if plan.gap < _CLOSED:
        lines.append(
            "optimal among all Gaussian noises that protect these answers over time: certified "
            f"gap {plan.gap:.1e}"
        )
    else:
        least = 100 / (1 + plan.gap)
        lines.append(
            f"no Gaussian noise that protects these answers over time has less than {least:.4g} % "
            "of this error"
        )
    return lines
