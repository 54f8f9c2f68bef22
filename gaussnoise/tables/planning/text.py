"""The text that describes a plan, as ``print(plan)`` shows it."""

import heapq
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import Moments
from domains.tables.clipped import Clipped

from ...numerics.intervals import quantile
from ...solvers.tables.residuals import subsets_of
from ...text import number_of
from ..schema.bases import MIDDLES, moment_source
from ..schema.impossible import Rule, rule_text
from ..schema.numbers import interval_text, values_text
from ..schema.schema import Schema
from .facts import EVERY_ROW, Facts, facts_of, marginal_name, risk_text
from .noun import noun_of
from .ranges import ranges_text

if TYPE_CHECKING:
    from .plan import Plan

_LEVEL = 0.95
_FOR_SPECIALISTS = ("neighbours", "budget", "noise")
_MOST_LINES = 1000
_MOST_HOURS = 3  # tables whose core hours are listed, at most

_MOST_SUMS = 50  # lines about sums, at most
_MOST_RULES = 20
_MOST_SUMMED = 10**6  # most answers of an entry with a line of deviations, which take long for more


def head_of(plan: "Plan", facts: Facts, relation: str, noise: str | None = None) -> dict[str, str]:
    """Return {topic: words}: subject, neighbours, budget, risk, noise and counted rows."""
    lines = {
        **plan.about.stated,
        "neighbours": relation,
        "budget": facts.budget,
        "in words": risk_text(plan, facts),
        "noise": noise,
        "counted": None if facts.counted == EVERY_ROW else facts.counted,
    }
    return {what: said for what, said in lines.items() if said is not None}


def head_lines(head: Mapping[str, str]) -> list[str]:
    """Return the lines of a text with the topics that :func:`head_of` returns."""
    return [f"{what:<12} {said}" for what, said in head.items()]


def for_readers(head: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the lines of :func:`head_of` for all readers of files, and those for specialists."""
    plain = {what: said for what, said in head.items() if what not in _FOR_SPECIALISTS}
    others = {what: said for what, said in head.items() if what in _FOR_SPECIALISTS}
    return head_lines(plain), head_lines(others)


def plan_text(plan: "Plan") -> str:
    """Return the text that ``print(plan)`` shows."""
    facts = facts_of(plan)
    first, *accuracy = accuracy_text(plan, facts)
    head = head_lines(head_of(plan, facts, facts.relation))
    return "\n".join([first, *head, work_text(plan), *draft_text(plan.schema), "", *accuracy])


def accuracy_text(plan: "Plan", facts: Facts) -> list[str]:
    """Return a heading, and the lines on the accuracy of every table of a plan."""
    count = len(plan.domain.terms)
    return [
        *(_cells_text(plan) if plan.domain.is_cells else _answers_text(plan)),
        *([f"… and {count - _MOST_LINES} more"] if count > _MOST_LINES else []),
        "",
        _columns_text(plan),
        *_middles_text(plan),
        *numbers_text(plan),
        *ranges_text(plan.ranges, plan.rho),
        *facts.exact,
        *_impossible_text(plan),
        *facts.verdict,
    ]


def draft_text(schema: Schema) -> list[str]:
    """Return a line that warns that the schema is a draft; an empty list if it is none."""
    if not schema.is_draft:
        return []
    return [
        "DRAFT        the schema was read off data: nothing is released with it until a person "
        "confirms it"
    ]


def _cells_text(plan: "Plan") -> list[str]:
    """Return a heading, and one line for each planned table with the accuracy of its cells."""
    marginals = plan.marginals
    names = [marginal_name(m) for m in marginals[:_MOST_LINES]]
    width = max(len("table"), *map(len, names))
    lines = [
        f"Plan: {number_of(len(marginals), 'table')}, {number_of(plan.domain.dim, 'cell')}",
        f"{'table':<{width}}  {'cells':>7}  {'sd':>9}  {'95 % ±':>9}  {'independent sd':>14}",
    ]
    for name, marginal, S in zip(names, marginals, plan.domain.subsets, strict=False):
        lines.append(
            f"{name:<{width}}  {plan.domain.cells(S):>7}  "
            f"{plan.standard_deviation(*marginal):>9.4g}  "
            f"{plan.half_width(*marginal):>9.4g}  "
            f"{plan.independent_standard_deviation(*marginal):>14.4g}"
        )
    return lines


def _answers_text(plan: "Plan") -> list[str]:
    """Return a table of the accuracy of answers, for plans that ask for more than cells."""
    names = plan.entries[:_MOST_LINES]
    width = max(len("entry"), *map(len, names))
    lines = [
        f"Plan: {number_of(len(plan.entries), 'entry', 'entries')}, {plan.domain.dim} answers, "
        f"from {number_of(len(plan.marginals), 'table')} of {plan.tables.dim} cells",
        f"{'entry':<{width}}  {'answers':>7}  {'sd':>9}  {'95 % ±':>9}  {'independent sd':>14}",
    ]
    for name, answers, deviation, independent in zip(
        names, plan.queries, plan.deviations, plan.independent_deviations, strict=False
    ):
        half = quantile(_LEVEL) * deviation
        lines.append(
            f"{name:<{width}}  {answers:>7.0f}  {deviation:>9.4g}  {half:>9.4g}  "
            f"{independent:>14.4g}"
        )
    return lines


def _columns_text(plan: "Plan") -> str:
    """Return a sentence that explains the columns of errors, with their unit."""
    cells = plan.domain.is_cells
    mean = "" if cells else " (root mean square, where the numbers of an entry differ)"
    return (
        f"95 % ±: in 95 of 100 cases, a number is off by less than this{mean}, in "
        f"{noun_of(plan)}. sd: the standard deviation of that error. independent sd: with "
        f"independent noise for each {'table' if cells else 'entry'}."
    )


def _middles_text(plan: "Plan") -> list[str]:
    """Return [a note that sums of middles of bins are not sums of values]; [] without such sums."""
    terms = () if plan.domain.is_cells else plan.domain.terms
    asked = {(i, getattr(base, "base", base)) for term in terms for i, base in term}
    attributes = plan.schema.attributes
    if not any(
        isinstance(base, Moments) and moment_source(base, attributes[i]) == MIDDLES
        for i, base in asked
    ):
        return []
    return [
        f"Sums of {MIDDLES} are not sums of the values in the bins: their intervals are for the "
        "former alone."
    ]


def numbers_text(plan: "Plan") -> list[str]:
    """Return sentences on the accuracy of sums of clipped numbers, and on weights of rows."""
    lines: list[str] = []
    attributes, units = plan.schema.attributes, dict[str, str]()
    if plan.weight is not None:
        lines.append(
            f"Counts and sums are weighted by {plan.weight.column!r}, clipped to "
            f"{interval_text(0, plan.weight.most)}."
        )
    for term in () if plan.domain.is_cells else plan.domain.terms:
        numbers = {i: b for i, b in term if isinstance(b, Clipped) and 1 in b.degrees}
        units |= {attributes[i].name: f"{base.unit:.15g}" for i, base in numbers.items()}
        groups = {attributes[k].name: other for k, other in term if not isinstance(other, Clipped)}
        given = f" given {marginal_name(tuple(groups))}" if groups else ""
        for own in subsets_of(tuple(numbers)):
            if not own or len(lines) >= _MOST_SUMS or plan.domain.queries(term) > _MOST_SUMMED:
                continue
            sums = {attributes[i].name: replace(numbers[i], degrees=(1,)) for i in own}
            deviations = plan.answer_deviations(groups | sums)[(..., *[0] * len(own))]
            intervals = [attributes[i].interval for i in own]
            measured = attributes[own[0]].measured_in if len(own) == 1 else None
            measured = "" if measured is None else f" {measured}"
            more = "".join(f" and {interval_text(*interval)}" for interval in intervals[1:])
            line = (
                f"sum of {' times '.join(sums)}{given}: sd {_range_text(deviations)}, "
                f"95 % ± {_range_text(quantile(_LEVEL) * deviations)}{measured}, of "
                f"{values_text(intervals[0])}{more}"
            )
            lines += [line] * (line not in lines)
    if units and plan.privacy.scales:
        each = ", ".join(f"{most} of {name}" for name, most in units.items())
        lines.append(f"Errors of sums above are divided by the scale of the budget: {each}.")
    elif units:
        unit = "record" if plan.per_person else "row"
        each = ", ".join(f"{most} of {name}" for name, most in units.items())
        each += "; of products, by the product of these" * (len(units) > 1)
        lines.append(
            f"Errors of sums above are divided by the most that one {unit} can add: {each}."
        )
    return lines


def impossible_rules(plan: "Plan") -> list[Rule]:
    """Return the schema's rules on impossible combinations whose attributes are all planned."""
    used = {name for marginal in plan.marginals for name in marginal}
    return [r for r in plan.schema.impossible if all(name in used for name, _ in r)]


def _impossible_text(plan: "Plan") -> list[str]:
    """Return lines that state which combinations are impossible, and what happens to such rows."""
    rules = impossible_rules(plan)
    if not rules:
        return []
    lines = [f"impossible: {rule_text(rule)}" for rule in rules[:_MOST_RULES]]
    if len(rules) > _MOST_RULES:
        lines.append(f"… and {len(rules) - _MOST_RULES} more")
    return [
        *lines,
        "A row that is impossible refuses the release, or is left out of all tables with "
        'on_outside="drop". Cells that must be empty have noise as all others.',
    ]


def _range_text(values: NDArray[np.float64]) -> str:
    """Return the range of some numbers as text: one number, or "least to largest"."""
    ends = values.min(), values.max()
    low, high = (f"{x:,.0f}" if 1e4 <= x < 1e15 else f"{x:.4g}" for x in ends)
    return low if low == high else f"{low} to {high}"


def hours_text(core_hours: Mapping[tuple[str, ...], float]) -> str:
    """Return text on the core hours of executors in all, and for the tables that take the most."""
    hours = heapq.nlargest(_MOST_HOURS, core_hours.items(), key=lambda item: item[1])
    most = ", ".join(f"{marginal_name(m)} {hour:.3g}" for m, hour in hours)
    return (
        f"with Spark's executors alone, about {sum(core_hours.values()):.3g} core hours; of "
        f"tables, the most: {most}"
    )


def work_text(plan: "Plan") -> str:
    """Return a line on the work of a release: noisy integers, time and memory."""
    drawn = number_of(plan.integers, "noisy integer")
    if plan.needs_executors:
        return f"release      {drawn}: {hours_text(plan.core_hours)}"
    seconds, size = plan.seconds, plan.peak_bytes / 1e6
    time = "under a second" if seconds < 1 else f"about {seconds:.0f} s" if seconds < 120 else ""
    time = time or (
        f"about {seconds / 60:.0f} minutes"
        if seconds < 7200
        else f"about {seconds / 3600:.1f} hours"
    )
    memory = "1 MB" if size < 1 else f"{size:.0f} MB" if size < 1000 else f"{size / 1000:.1f} GB"
    return f"release      {drawn}: {time} and {memory} of memory"
