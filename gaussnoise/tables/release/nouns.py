"""The nouns that questions may use for the counted rows: rows, persons, the noun of a title."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..planning.facts import counted_text
from ..planning.noun import noun_in, noun_of, persons_of, plural_of
from .merged import MergedPlan

_PEOPLE = ("people", "persons")
# columns of persons with such names do not say what a person is
_OF_PERSONS = {"", "person", "people", "who", "individual", "user", "pseudonym"}
_END = r"(?=\s*$|\s*[(:–—]|,?\s*\d|,?\s+(?:of|in|by|for|at|from|to|during|since|between|per|on)\b)"
_INSIDE = r"(?:(?!(?:of|in|by|for|at|from|to|and|or|mean|average|median|total|per)\b)[\w'-]+\s+)*?"
_TITLE = re.compile(rf"{_INSIDE}([a-z-]+[a-rt-z]s)\b{_END}", re.IGNORECASE)
# nouns of titles that name the publication, and not its rows
_PUBLISHED = {
    *("statistics", "results", "figures", "tables", "numbers", "series", "rates", "shares"),
    *("counts", "totals", "means", "averages", "census", "data", "indicators", "estimates"),
}
# nouns of titles that are amounts: a question of such a noun alone is refused as ambiguous
_AMOUNTS = {
    *("wages", "earnings", "salaries", "incomes", "costs", "prices", "expenses", "expenditures"),
    *("payments", "revenues", "sales", "turnovers", "profits", "taxes", "rents", "hours", "days"),
    *("emissions", "distances", "ages", "savings", "debts", "assets", "imports", "exports"),
}


class Noun(NamedTuple):
    """A noun for what the tables count.

    Attributes:
        fault: why the tables may count something else than the noun says, such as several records
            of one person; or "".
        groups: attributes that split the records so that this fault cannot happen: for each
            combination of their labels, every person has one record.
        may_be_amount: whether the noun may be the name of an amount, like wages. This is possible
            only for the noun of the title: if the noun is a known amount, if tables have sums, or
            if an attribute has a similar name.
    """

    fault: str = ""
    groups: tuple[str, ...] = ()
    may_be_amount: bool = False


def nouns_of(plan: Any, times: int = 1) -> Mapping[str, Noun]:
    """Return {noun: its properties} for all nouns that questions may use, the best noun first.

    Such a noun names what the tables count, like rows or persons.

    Args:
        plan: the plan of a release, of a stream, or of combined releases.
        times: in how many ticks of a stream one person may have rows.
    """
    counted = f"the tables count {re.split('[:;]', counted_text(plan))[0]}"
    reduced, most = bool(plan.per_person), plan.rows_per_person * times
    title = _of_title(plan)
    found: dict[str, Noun] = {}
    if title is not None:
        names = [name.lower() for a in plan.schema.attributes for name in (a.name, a.title or "")]
        is_amount = title in _AMOUNTS or any(title.removesuffix("s") in name for name in names)
        is_amount = is_amount or any(a.is_summed for a in plan.schema.attributes)
        found[title] = Noun(counted if reduced else "", may_be_amount=is_amount)
    if reduced:
        found |= {"records": Noun(), "rows": Noun(counted)}
    else:
        weighted = "" if plan.weight is None else f"the tables count {noun_of(plan)}"
        found |= dict.fromkeys(("rows", "records"), Noun(weighted))
    several = Noun("" if most == 1 else f"one person may be counted {most} times")
    groups = _groups_of(plan) if reduced else ()
    if groups and most > 1:
        by = " × ".join(groups)
        fault = f"a record is one person in one group of {by}, and one person may have {most}"
        several = Noun(fault, groups)
    unit = plan.about.unit
    own = {} if unit is None else {unit.lower(): Noun()}
    return own | found | _of_persons(plan, several, title) | own


def _of_persons(plan: Any, several: Noun, title: str | None) -> dict[str, Noun]:
    """Return {noun: its properties} for nouns of persons, also the noun in their column's name."""
    unit = plan.about.unit
    if plan.person is None:
        other = f"the tables count {unit}"
        if unit is None:
            other = f"the tables count rows, which are {title} by their title"
        fault = several.fault or ("" if (unit or title) in (None, *_PEOPLE) else other)
        return dict.fromkeys(_PEOPLE, Noun(fault))
    own = noun_in(plan.person)
    if own in _OF_PERSONS:
        return dict.fromkeys(_PEOPLE, several)
    people, plural = several, persons_of(plan.person)
    if plural in _PEOPLE:
        plural = plural_of(own)
    else:
        people = Noun(f"the tables protect {plural}, by the name of their column")
    return dict.fromkeys(_PEOPLE, people) | {plural: several}


def _groups_of(plan: Any) -> tuple[str, ...]:
    """Return the attributes that define groups; a person has one record in each group."""
    used = {name for marginal in plan.marginals for name in marginal}
    attributes = [a for a in plan.schema.attributes if a.name in used]
    return tuple([a.name for a in attributes if not a.is_summed])


def _of_title(plan: Any) -> str | None:
    """Return the plural noun at the start of a title, like "Stays in hospitals"; else None."""
    plans = [one.plan for one in plan.releases] if isinstance(plan, MergedPlan) else [plan]
    titles = {one.about.title for one in plans}
    (title, *others) = titles
    match = _TITLE.match(title or "")
    if match is None or others or match[1].lower() in _PUBLISHED:
        return None
    return match[1].lower()
