"""Texts about releases."""

from typing import TYPE_CHECKING

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
from ..schema.numbers import interval_text, values_text
from ..schema.schema import Attribute
from .noisy import AbstractRelease
from .tidy import LEVEL, level_text

if TYPE_CHECKING:
    from ..planning.plan import Plan
    from .merged import MergedPlan

UNBIASED = (
    "Estimates are right on average (unbiased), and no count was cut or rounded: by noise they may "
    "be negative or fractional."
)
AGREE = "Tables agree on the totals that they share."
EXACT = "Every number is exact: none has noise."
NOT_SAFE = "NOT PRIVATE: a simulation, do not publish these files."
FOR_SPECIALISTS = "For specialists:"
INTERVALS = (
    f"In files, low and high are the ends of {level_text(LEVEL)} intervals: in 95 of 100 cases the "
    "number without noise is between them, for every number by itself."
)


def release_text(release: AbstractRelease) -> str:
    """Return the summary of a release as text, first in plain words and last for specialists."""
    plan, facts = release.plan, facts_of(release.plan)
    is_exact = plan.noise.gamma == 0
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
            *([EXACT] if is_exact else [f"{UNBIASED} {AGREE}", INTERVALS]),
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
        lines.append(
            f"Sums and means of {a.heading} are of {values_text(a.interval)}, rounded to steps of "
            f"{(a.ends[1] - a.ends[0]) / plan.unit:.3g}; sums are unbiased for those."
        )
        lines += beyond_text(plan, a)
    if clipped:
        lines.append(
            "For such a number, open answers: its means, sums and counts are there. Tables hold it "
            "as weights of two values or three."
        )
    return [*lines, *weight_text(plan)]


def weight_text(plan: "Plan | MergedPlan", weighted: str = "counts and sums") -> list[str]:
    """Return a list with the sentence on the weights of rows; [] if rows have no weights."""
    if plan.weight is None:
        return []
    return [
        f"Every row counts as its {plan.weight.column!r}, clipped to "
        f"{interval_text(0, plan.weight.most)}: all {weighted} are weighted."
    ]


def codes_text(attribute: Attribute) -> str:
    """Return a clause on the numbers that stand for no answer; "" if there are none."""
    codes = [f"{code:,.15g}" for code in attribute.missing if not isinstance(code, str)]
    if attribute.categories is not None or not codes:
        return ""
    return f"{' and '.join(codes)} count{'s' * (len(codes) == 1)} as no answer"


def beyond_text(plan: "Plan", number: Attribute) -> list[str]:
    """Return the sentence on numbers outside their interval and on codes for no answer, if any."""
    codes, name = codes_text(number), number.heading
    if number.clip is None:
        return [f"In {name}, {codes}."] * bool(codes)
    low, high = (f"{end:,.15g}" for end in number.clip)
    what = {
        "sum": f"A value of {name}, or the sum of a person's values,",
        "count": f"A person's number of rows with a number in {name}",
    }.get(plan.per_person.get(number.name, ""), f"A value of {name}")
    said = f"{what} below {low} counts as {low}, and one above {high} as {high}"
    return [f"{said}, but {codes}." if codes else f"{said}."]


def unknown_text(number: Attribute) -> str:
    """Return words for a row's lack of a number, like "no number or no answer in income"."""
    lower = "" if number.unit is None else " from 0 on"
    return f"no number{lower}{' or no answer' * bool(codes_text(number))} in {number.heading}"


def dropped_text(release: AbstractRelease) -> list[str]:
    """Return sentences for readers about the rows that no table counts."""
    used = {name for marginal in release for name in marginal}
    own = [a for a in release.plan.schema.attributes if a.name in used and a.other is None]
    strict = [a.heading for a in own if not a.is_summed]
    strict += [] if release.plan.person is None else [release.plan.person]
    outside = [f"no value, or one that is not listed, in {', '.join(strict)}"] if strict else []
    unknown = [unknown_text(a) for a in own if a.is_summed]
    never = ["a combination that was stated to be impossible"] * bool(
        impossible_rules(release.plan)
    )
    if release.on_outside == "refuse" or not (outside or unknown or never):
        return []
    outside = [f"{outside[0]},"] if outside and unknown else outside
    what = " or ".join([*outside, *unknown, *never])
    return [f"Rows with {what} are in no table; how many is private."]


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
