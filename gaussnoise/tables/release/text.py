"""Texts about releases."""

from ... import text as _text
from ..planning.facts import facts_of
from ..planning.text import (
    accuracy_text,
    draft_text,
    for_readers,
    head_of,
    impossible_rules,
    work_text,
)
from ..schema.dates import ZONELESS
from ..schema.numbers import capped_text, interval_text, values_text
from .noisy import AbstractRelease
from .tidy import LEVEL, level_text

UNBIASED = (
    "Estimates are right on average (unbiased), and no count was cut or rounded: by noise they may "
    "be negative or fractional."
)
NOT_SAFE = "NOT PRIVATE: a simulation, do not publish these files."
FOR_SPECIALISTS = "For specialists:"
INTERVALS = (
    f"In files, low and high are the ends of {level_text(LEVEL)} intervals: in 95 of 100 cases the "
    "number without noise is between them, for every number by itself."
)


def release_text(release: AbstractRelease) -> str:
    """Return the summary of a release as text: in plain words, and at last for specialists."""
    plan, facts = release.plan, facts_of(release.plan)
    charged = f"rho = {release.rho_charged:.10g}" if release.private else "nothing"
    plain, others = for_readers(head_of(plan, facts, facts.relation))
    tables, cells = (len(release), "table"), (plan.tables.dim, "cell")
    return "\n".join(
        [
            opening(f"{_text.number_of(*tables)}, {_text.number_of(*cells)}", release.private),
            *plain,
            *draft_text(plan.schema),
            *facts.exact,
            "",
            f"{UNBIASED} Tables agree on the totals that they share.",
            INTERVALS,
            *numbers_text(release),
            *dropped_text(release),
            *(f"{name}: {ZONELESS}." for name in release.without_zone),
            *disclaimers(release),
            "",
            FOR_SPECIALISTS,
            f"charged      {charged}",
            *others,
            work_text(plan),
            "",
            *(line for line in accuracy_text(plan, facts)[1:] if line not in facts.exact),
        ]
    )


def opening(what: str, private: bool) -> str:
    """Return the first line of a summary: whether its files may be published, and what they are."""
    safe = "These files are safe to publish." if private else NOT_SAFE
    return f"{safe} {what}."


def numbers_text(release: AbstractRelease) -> list[str]:
    """Return sentences for readers on how sums are clipped and rounded, and on weights."""
    plan = release.plan
    used = {name for marginal in release for name in marginal}
    clipped = [a for a in plan.schema.attributes if a.is_summed and a.name in used]
    lines = []
    for a in clipped:
        capped = "" if a.clip is None else f" ({capped_text(*a.clip)})"
        lines.append(
            f"Sums and means of {a.heading} are of {values_text(a.interval)}{capped}, rounded to "
            f"steps of {(a.ends[1] - a.ends[0]) / plan.unit:.3g}; sums are unbiased for those."
        )
    if clipped:
        lines.append(
            "Tables hold such a number as weights of two values or three; its sums and counts are "
            "in answers."
        )
    if plan.weight is not None:
        lines.append(
            f"Every row counts as its {plan.weight.column!r}, clipped to "
            f"{interval_text(0, plan.weight.most)}: all counts and sums are weighted."
        )
    return lines


def dropped_text(release: AbstractRelease) -> list[str]:
    """Return sentences for readers about the rows that no table counts."""
    used = {name for marginal in release for name in marginal}
    strict = [a.name for a in release.plan.schema.attributes if a.name in used and a.other is None]
    clipped = [a.name for a in release.plan.schema.attributes if a.name in strict and a.is_summed]
    strict = [name for name in strict if name not in clipped]
    strict += [] if release.plan.person is None else [release.plan.person]
    rules = impossible_rules(release.plan)
    if release.on_outside == "refuse" or not (strict or clipped or rules):
        return []
    outside = f"no value, or one that is not listed, in {', '.join(strict)}" if strict else ""
    unknown = f"no number in {', '.join(clipped)}" if clipped else ""
    outside += "," if outside and unknown else ""
    headings = map(release.plan.schema.heading, clipped)
    never = "a combination that was stated to be impossible" if rules else ""
    what = " or ".join(filter(None, (outside, unknown, never)))
    return [
        f"Rows with {what} are in no table; how many is private.",
        *(f"Values of {own} outside its interval count as its nearer end." for own in headings),
    ]


def disclaimers(release: AbstractRelease) -> list[str]:
    """Return sentences about what the privacy guarantee covers."""
    rows, person = release.plan.rows_per_person, release.plan.person
    whom = (
        "each row"
        if rows == 1
        else f"each person of at most {rows} rows (a promise of the publisher's, not checked)"
    )
    if person is not None:
        whom = (
            f"each person, with any number of rows, as far as column {person!r} tells persons apart"
        )
    if scales := release.plan.scales:
        whom += f", LARGE ONES LESS: budgets grow with {' and '.join(scales)}"
    return _text.disclaimers(
        f"{whom}, against anyone who sees only this release. Categories and bins are assumed "
        "public.",
        release.private,
    )
