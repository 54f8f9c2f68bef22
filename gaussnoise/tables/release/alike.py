"""Comparison of two releases: attributes with the same definition, and rows that one leaves out."""

import re
from collections.abc import Iterator
from typing import Any

from ..planning.text import impossible_rules
from ..schema.dates import edge_text, is_dated, is_open, place
from ..schema.impossible import rule_text
from ..schema.numbers import values_text
from ..schema.schema import Attribute
from .merged import MergedPlan
from .noisy import AbstractRelease

_MOST_NAMED = 3  # most categories in a message


def unlike(one: Attribute, other: Attribute) -> dict[str, str]:
    """Return how two attributes of the same name differ, as {name: text}; empty if they do not.

    The names are the attribute's own name and the names of its levels (coarser groupings of its
    categories).
    """
    how = difference_of(one, other)
    levels, others = (dict(own.groups or ()) for own in (one, other))
    if how is not None:
        what = f"is a level of {one.name!r}, which {how}"
        return {one.name: how} | dict.fromkeys([*levels, *others], what)
    shared = [level for level, groups in levels.items() if groups != others.get(level, groups)]
    return dict.fromkeys(shared, f"has other groups of {one.name!r} in each of the releases")


def difference_of(one: Attribute, other: Attribute) -> str | None:
    """Return how the definitions of two attributes of the same name differ, as text.

    The result is None if both attributes count or sum rows in the same way.
    """
    if one.is_summed and other.is_summed and one.interval != other.interval:
        first, second = (values_text(own.interval) for own in (one, other))
        return f"is of {first} in one release and of {second} in the other"
    if one.unit != other.unit and one.is_summed and other.is_summed:
        return f"is in units of {one.unit} in one release and of {other.unit} in the other"
    kinds = [
        "clipped" if a.is_summed else "in bins" if a.edges is not None else "in categories"
        for a in (one, other)
    ]
    if kinds[0] != kinds[1]:
        return f"is {kinds[0]} in one release and {kinds[1]} in the other"
    if one.other != other.other:
        first, second = ("none" if a.other is None else repr(a.other) for a in (one, other))
        return f"has the catch-all {first} in one release and {second} in the other"
    if one.edges != other.edges:
        shifted = _is_shifted(one, other)
        return _OTHER_YEARS if shifted else "has other edges in each of the releases"
    if _missing_numbers(one) != _missing_numbers(other):
        return "has other codes for no answer (missing) in each of the releases"
    ours, theirs = ({t: name for name, own in a.spellings for t in own} for a in (one, other))
    if any(ours[text] != theirs[text] for text in ours.keys() & theirs.keys()):
        return "counts a spelling as another category in each of the releases"
    if one.names != other.names:
        return "has other names of its intervals in each of the releases"
    # labels identify categories; integers can equal booleans, so their types are compared too
    first, second = ([*map(repr, own.labels)] for own in (one, other))
    if first == second:
        return None
    if one.is_summed:
        return "has sums of squares in one release alone"
    missing = sorted(set(first) ^ set(second))
    if not missing:
        return "has its categories in another order in each of the releases"
    if _is_shifted(one, other):
        return _OTHER_YEARS
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    return f"has categories in one release alone: {', '.join(missing[:_MOST_NAMED])}{more}"


_OTHER_YEARS = (
    "has months or other periods of another year in each of the releases (to compare the same "
    "months of two years, give both tables a column of the month alone, like 01, and release "
    "tables by it; of these two releases, subtract estimates one by one, whose variances add up)"
)
_A_YEAR = re.compile(r"(?<![0-9])[0-9]{4}(?![0-9])")


def _is_shifted(one: Attribute, other: Attribute) -> bool:
    """Return whether all labels or dates of two attributes differ by the same number of years."""
    if one.edges is not None and not is_dated(one.edges):
        return False
    texts, others = (
        [*map(edge_text, own.edges)] if own.edges else [*map(str, own.labels)]
        for own in (one, other)
    )
    if [_A_YEAR.sub("", text) for text in texts] != [_A_YEAR.sub("", text) for text in others]:
        return False
    years, later = (_A_YEAR.findall(" ".join(own)) for own in (texts, others))
    shifts = {int(after) - int(before) for before, after in zip(years, later, strict=False)}
    periods = {_A_YEAR.sub("", text) for text in texts if _A_YEAR.search(text)}
    return len(shifts) == 1 and len(periods) > 1  # bare years are no periods within a year


def left_out_unlike(one: AbstractRelease, other: AbstractRelease) -> list[str]:
    """Return the attributes and rules for which only one of two releases leaves out rows.

    A release that refuses rows without a valid value leaves out no rows: it shows that all rows
    have valid values.
    """
    fits, others = (dict(_valid_values(release)) for release in (one, other))
    found = [
        *_left_out_by_one(one, fits, other, others),
        *_left_out_by_one(other, others, one, fits),
    ]
    return list(dict.fromkeys(found))


def _left_out_by_one(
    one: AbstractRelease, fits: dict[str, object], other: AbstractRelease, others: dict[str, object]
) -> Iterator[str]:
    """Yield attributes and rules by which ``one`` omits rows that ``other`` may have counted."""
    # fits and others: {attribute or rule of the release: its valid values}
    for name, fit in fits.items() if one.on_outside == "drop" else ():
        own, known = others.get(name), other.on_outside == "refuse"
        within = isinstance(own, frozenset) and isinstance(fit, frozenset) and own <= fit
        if own != fit and not (known and within):
            yield name


def _valid_values(release: AbstractRelease) -> Iterator[tuple[str, object]]:
    """Yield (attribute or rule, its valid values); a row with any other value is in no table."""
    used = {name for marginal in release for name in marginal}
    for attribute in release.plan.schema.attributes:
        if attribute.name in used and attribute.other is None:
            yield attribute.name, _comparable_values(attribute)
    plan: Any = release.plan
    plans = [own.plan for own in plan.releases] if isinstance(plan, MergedPlan) else [plan]
    for rule in dict.fromkeys(rule for one in plans for rule in impossible_rules(one)):
        yield rule_text(rule), rule


def _comparable_values(attribute: Attribute) -> object:
    """Return the valid values of an attribute in a form that can be compared with ``==``."""
    if attribute.edges is not None:
        kinds = sorted({type(edge).__name__ for edge in attribute.edges if not is_open(edge)})
        ends = place(attribute.edges[0]), place(attribute.edges[-1])
        return (*kinds, *ends, _missing_numbers(attribute))
    if attribute.is_summed:
        return "numbers", _missing_numbers(attribute)
    spelt = (text for _, own in attribute.spellings for text in own)
    return frozenset(map(repr, (*attribute.labels, *spelt)))


def _missing_numbers(attribute: Attribute) -> frozenset[object]:
    """Return the numbers that stand for no answer; empty for an attribute with categories."""
    numbers = (code for code in attribute.missing if not isinstance(code, str))
    # categories have no cell for numbers that mean no answer
    return frozenset(numbers if attribute.categories is None else ())
