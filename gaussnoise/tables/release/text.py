"""Texts about releases."""

from ... import text as _text
from ..planning.text import impossible_rules, plan_text
from ..schema.dates import ZONELESS
from ..schema.numbers import interval_text, values_text
from .noisy import AbstractRelease
from .tidy import LEVEL, level_text

UNBIASED = (
    "Estimates are right on average (unbiased), and no count was cut or rounded: by noise they may "
    "be negative or fractional."
)
INTERVALS = (
    f"In files, low and high are the ends of {level_text(LEVEL)} intervals: in 95 of 100 cases the "
    "number without noise is between them, for every number by itself."
)


def release_text(release: AbstractRelease) -> str:
    """Return the summary of a release as text: size, privacy, plan and accuracy."""
    plan = release.plan
    charged = f"rho = {release.rho_charged:.10g}" if release.private else "nothing"
    status = "safe to publish" if release.private else "NOT PRIVATE: a simulation, do not publish"
    return "\n".join(
        [
            f"Release of {_text.number_of(len(release), 'table')}, "
            f"{_text.number_of(plan.tables.dim, 'cell')}: "
            f"{status}",
            f"charged      {charged}",
            *plan_text(plan).splitlines()[1:],
            "",
            f"{UNBIASED} Tables agree on the totals that they share.",
            INTERVALS,
            *numbers_text(release),
            *dropped_text(release),
            *(f"{name}: {ZONELESS}." for name in release.without_zone),
            *disclaimers(release),
        ]
    )


def numbers_text(release: AbstractRelease) -> list[str]:
    """Return sentences for readers on how sums are clipped and rounded, and on weights."""
    plan = release.plan
    used = {name for marginal in release for name in marginal}
    clipped = [a for a in plan.schema.attributes if a.is_summed and a.name in used]
    lines = [
        f"Sums and means of {a.heading} are of {values_text(a.interval)}, "
        f"rounded to steps of {(a.ends[1] - a.ends[0]) / plan.unit:.3g}; sums are unbiased for "
        "those."
        for a in clipped
    ]
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
