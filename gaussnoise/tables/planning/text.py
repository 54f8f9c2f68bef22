"""The text of plans."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from domains import Clipped, Moments

from ...numerics.intervals import quantile
from ...privacy.lattice_bound import TABLE_STEPS
from ...text import number_of
from ..schema.bases import MIDDLES, moment_source
from ..schema.impossible import Rule, rule_text
from ..schema.numbers import interval_text, squared_numbers
from ..schema.schema import Schema

if TYPE_CHECKING:
    from .plan import Plan

_MOST_LINES = 1000
_MOST_HOURS = 3  # most tables whose hours are named

_MOST_SUMS = 50  # most lines of sums
_MOST_RULES = 20
_MOST_SUMMED = 10**6  # an entry with more answers gets no line of deviations, which would take long

_CLOSED = 1e-3  # a certified gap below this is said to be closed


def unit_text(rows: int, person: str | None) -> str:
    """Return what a budget protects, in words: one row, or one person of limited rows."""
    if person is not None:
        counted = "1 row is" if rows == 1 else f"{rows} rows are"
        return f"one person (column {person!r}), of whom at most {counted} counted"
    return "one row" if rows == 1 else f"one person of at most {rows} rows"


def relation_text(plan: "Plan") -> str:
    """Return the neighbouring relation in words: what is protected."""
    k = plan.rows_per_person
    if plan.person is not None and plan.neighbors == "replace":
        return (
            f"replace (one person, a value of {plan.person!r}, exchanged for another, each with "
            "any number of rows, also with none that fit; the number of rows is private)"
        )
    if plan.person is not None:
        return (
            f"add-remove (one person, a value of {plan.person!r}, more or less, with any number "
            "of rows; the number of rows is private)"
        )
    if plan.neighbors == "replace":
        exchanged = "one row exchanged for another"
        if k > 1:
            exchanged = f"one person's at most {k} rows exchanged for as many others"
        if plan.public:
            same = f", {'row by row ' if k > 1 else ''}of the same {' × '.join(plan.public)}"
            return f"replace ({exchanged}{same}; tables of these alone are public and exact)"
        return f"replace ({exchanged}; the number of rows is public and exact)"
    one = "row" if k == 1 else f"person with at most {k} rows"
    return f"add-remove (one {one} more or less; the number of rows is private)"


def counted_text(plan: "Plan") -> str:
    """Return in words which rows the tables count."""
    if plan.person is None:
        return "every row"
    rows = "one row" if plan.rows_per_person == 1 else f"{plan.rows_per_person} rows"
    return (
        f"at most {rows} of each person, drawn at random from that person's own: where persons "
        "have more, counts of rows are too small, by how much is private"
    )


def about_text(plan: "Plan") -> list[str]:
    """Return lines on what the tables are about and where their rows come from, if it is said."""
    lines = {"title": plan.asked.title, "source": plan.asked.source}
    return [f"{what:<12} {said}" for what, said in lines.items() if said is not None]


def plan_text(plan: "Plan") -> str:
    """Return the text that ``print(plan)`` shows."""
    table, count = (
        _cells_text(plan) if plan.domain.is_cells else _answers_text(plan),
        len(plan.entries),
    )
    return "\n".join(
        [
            table[0],
            *about_text(plan),
            f"neighbours   {relation_text(plan)}",
            f"budget       {plan.privacy.budget(plan.rho, plan.integers, TABLE_STEPS)}",
            *([f"counted      {counted_text(plan)}"] if plan.person is not None else []),
            work_text(plan),
            *draft_text(plan.schema),
            "",
            *table[1:],
            *([f"… and {count - _MOST_LINES} more"] if count > _MOST_LINES else []),
            "",
            *_middles_text(plan),
            *numbers_text(plan),
            *public_text(plan),
            *_impossible_text(plan),
            *verdict(plan),
        ]
    )


def draft_text(schema: Schema) -> list[str]:
    """Return a line that says that the schema is a draft, or no line."""
    if not schema.is_draft:
        return []
    return [
        "DRAFT        the schema was read off data: nothing is released with it until a person "
        "confirms it"
    ]


def _cells_text(plan: "Plan") -> list[str]:
    """Return lines that say what is planned and how accurate it is, one line per marginal."""
    marginals = plan.marginals
    names = [marginal_name(m) for m in marginals[:_MOST_LINES]]
    width = max(len("marginal"), *map(len, names))
    lines = [
        f"Plan: {number_of(len(marginals), 'marginal')}, {plan.domain.dim} cells",
        f"{'marginal':<{width}}  {'cells':>7}  {'sd':>9}  {'95 % ±':>9}  {'independent sd':>14}",
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
    """Return the lines of :func:`_cells_text` for a plan that asks for more than cells."""
    names = plan.entries[:_MOST_LINES]
    width = max(len("entry"), *map(len, names))
    lines = [
        f"Plan: {number_of(len(plan.entries), 'entry', 'entries')}, {plan.domain.dim} answers, "
        f"from {number_of(len(plan.marginals), 'marginal')} of {plan.tables.dim} cells",
        f"{'entry':<{width}}  {'answers':>7}  {'rms sd':>9}  {'independent rms sd':>18}",
    ]
    for name, answers, deviation, independent in zip(
        names, plan.queries, plan.deviations, plan.independent_deviations, strict=False
    ):
        lines.append(f"{name:<{width}}  {answers:>7.0f}  {deviation:>9.4g}  {independent:>18.4g}")
    return lines


def _middles_text(plan: "Plan") -> list[str]:
    """Return a line that explains moments of bins, if the plan asks for them."""
    asked = {(i, getattr(base, "base", base)) for term in plan.domain.terms for i, base in term}
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
    """Return lines on the accuracy of sums of clipped numbers, and on the meaning of weights."""
    lines: list[str] = []
    attributes, units = plan.schema.attributes, dict[str, str]()
    if plan.weight is not None:
        lines.append(
            f"Counts and sums are weighted by {plan.weight.column!r}, clipped to "
            f"{interval_text(0, plan.weight.most)}."
        )
    for term in plan.domain.terms:
        numbers = [(i, base) for i, base in term if isinstance(base, Clipped)]
        if not numbers or 1 not in numbers[0][1].degrees:
            continue
        i, base = numbers[0]
        units[attributes[i].name] = f"{base.unit:.15g}"
        groups = {attributes[k].name: other for k, other in term if k != i}
        if len(lines) < _MOST_SUMS and plan.domain.queries(term) <= _MOST_SUMMED:
            asked = {**groups, attributes[i].name: base}
            deviations = plan.answer_deviations(asked)[..., base.degrees.index(1)]
            given = f" given {marginal_name(tuple(groups))}" if groups else ""
            lines.append(
                f"sum of {attributes[i].name}{given}: sd {_span(deviations)}, "
                f"95 % ± {_span(quantile(0.95) * deviations)}, of values clipped to "
                f"{interval_text(base.low, base.high)}"
            )
    if units:
        each = ", ".join(f"{unit} of {name}" for name, unit in units.items())
        lines.append(
            f"In errors of entries, sums are counted in what one row can be at most: {each}."
        )
    return lines


def impossible_rules(plan: "Plan") -> list[Rule]:
    """Return the rules of the schema whose attributes are all in some table."""
    used = {name for marginal in plan.marginals for name in marginal}
    return [r for r in plan.schema.impossible if all(name in used for name, _ in r)]


def _impossible_text(plan: "Plan") -> list[str]:
    """Return lines that say what is done with impossible combinations."""
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


def public_text(plan: "Plan") -> list[str]:
    """Return lines that say what exact tables cost in privacy, and what variance they save."""
    if not plan.public:
        return []
    joint = marginal_name(plan.public)
    tables = ", ".join(marginal_name(S) for S in plan.exact)
    lines = [
        f"EXACT, without noise: {tables}. Whoever sees the release knows exactly how many rows "
        f"each combination of these has: which combination of {joint} a person is in has no "
        "protection at all."
    ]
    if plan.noise.gamma == 0:
        return [*lines, "Nothing else is left to protect in these tables: there is no noise."]
    return [
        *lines,
        f"That saves: {plan.public_saving:.3g} times less variance than with these tables "
        f"protected too (γ = {plan.noise.gamma:.7g} instead of "
        f"{plan.noise.gamma * math.sqrt(plan.public_saving):.7g} at unit sensitivity).",
    ]


def _span(values: NDArray[np.float64]) -> str:
    """Return the range of the values as text: one number, or the least and the largest."""
    low, high = f"{values.min():.4g}", f"{values.max():.4g}"
    return low if low == high else f"{low} to {high}"


def hours_text(core_hours: Mapping[tuple[str, ...], float]) -> str:
    """Return the core hours of executors in words, and the tables that take the most."""
    hours = sorted(core_hours.items(), key=lambda item: -item[1])
    most = ", ".join(f"{marginal_name(m)} {hour:.3g}" for m, hour in hours[:_MOST_HOURS])
    return (
        f"with Spark's executors alone, about {sum(hour for _, hour in hours):.3g} core hours; of "
        f"tables, the most: {most}"
    )


def work_text(plan: "Plan") -> str:
    """Return a line on what a release draws, and the time and memory it takes."""
    if plan.needs_executors:
        return f"release      {plan.integers} noisy integers: {hours_text(plan.core_hours)}"
    seconds, size = plan.seconds, plan.peak_bytes / 1e6
    time = "under a second" if seconds < 1 else f"about {seconds:.0f} s" if seconds < 120 else ""
    time = time or (
        f"about {seconds / 60:.0f} minutes"
        if seconds < 7200
        else f"about {seconds / 3600:.1f} hours"
    )
    memory = "1 MB" if size < 1 else f"{size:.0f} MB" if size < 1000 else f"{size / 1000:.1f} GB"
    return f"release      {plan.integers} noisy integers: {time} and {memory}"


def verdict(plan: "Plan") -> list[str]:
    """Return lines that say how good the plan is, and how this is known."""
    kind = {2: "total variance", math.inf: "largest (weighted) variance"}.get(
        plan.noise.p, f"variance (at p = {plan.noise.p:g})"
    )
    lines = [] if plan.targets is None else [_targets_text(plan.target_ratio)]
    if plan.targets is not None and None in plan.targets:
        aimed = sum(target is not None for target in plan.targets)
        lines.append(
            f"targets for {aimed} of {len(plan.targets)}; the others take what is left of the "
            "budget"
        )
    cells = plan.domain.is_cells
    lines.append(
        f"{kind} {plan.improvement:.2f} times less than with independent noise on each "
        f"{'marginal' if cells else 'entry'} (best budget split, no least squares afterwards)"
    )
    if plan.has_public_rows and plan.noise.gamma > 0 and cells and not plan.public:
        lines.append(
            f"{plan.replace_saving:.2f} times less variance than the paper's calibration for "
            "replaced rows (twice the noise of γ_p)"
        )
    if plan.gap < _CLOSED or (cells and plan.person is None):
        what = "tables" if cells else "answers"
        lines.append(
            f"optimal among all Gaussian noises that protect these {what}: certified gap "
            f"{plan.gap:.1e}"
        )
    else:
        least = 100 / (1 + plan.gap)
        lines.append(
            f"no Gaussian noise that protects these answers has less than {least:.4g} % of this "
            "error"
        )
    if squared_numbers(plan.domain):
        lines.append(
            "with squares of numbers, that is of all noises that protect the virtual cells too: "
            "slightly more than records"
        )
    if plan.error > 0 and not plan.public:
        lines.append(plan.bound.sentence(plan.error))
    return lines


def _targets_text(ratio: float) -> str:
    """Return whether targets are met, given the largest ratio of a half-width to its target."""
    if abs(ratio - 1) < 1e-6:
        return "half-widths meet their targets, the closest exactly"
    if ratio < 1:
        return f"half-widths meet their targets: the largest is {ratio:.6g} of its target"
    return f"half-widths MISS their targets: the largest is {ratio:.6g} times its target"


def marginal_name(marginal: tuple[str, ...]) -> str:
    """Return the name of a marginal."""
    return " × ".join(marginal) or "total"
