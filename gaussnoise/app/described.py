"""The values of a column in one line, and whether all of them are in it."""

import itertools
from collections.abc import Callable, Sequence
from datetime import date, timedelta

from ..tables import Attribute
from .columns import ages_in, as_typed, proposed_names, typed, typed_names

_MOST, _LONGEST = 14, 240  # most words and spellings in a line, and its most characters
_FIRST = 5  # as many values of a longer list are shown


def described(attribute: Attribute, days: Callable[[str], str] = str) -> tuple[str, bool]:
    """Return the values of a column in one line, and whether nothing of the column is left out.

    Args:
        attribute: the column.
        days: how the dates in a text are written.

    >>> described(Attribute("pay", clip=[0, 6000], missing=[-1]))
    ('a number from 0 to 6,000; no answer: -1', True)
    """
    said, is_all = _values(attribute, days)
    codes = ", ".join(as_typed(x) if isinstance(x, str) else str(x) for x in attribute.missing)
    if attribute.other is not None:  # where codes for no answer count as well
        said += f"; {codes}{' and ' * bool(codes)}the rest: {as_typed(attribute.other)}"
    elif codes:
        said += f"; no answer: {codes}"
    if attribute.title:
        said += f"; called “{attribute.title}”"
    is_short = len(said) <= _LONGEST and len(attribute.missing) <= _MOST
    return said, is_all and is_short and not attribute.groups


def _values(attribute: Attribute, days: Callable[[str], str]) -> tuple[str, bool]:
    unit = f" {attribute.measured_in}" if attribute.measured_in else ""
    if attribute.clip is not None:
        low, high = attribute.clip
        return f"a number from {low:,.15g} to {high:,.15g}{unit}", True
    if attribute.unit is not None:
        return f"a number in steps of {attribute.unit:,.15g}{unit}", True
    if attribute.edges is None:
        spelt = dict(attribute.spellings)
        own = [_with_spellings(c, spelt.get(str(c), ())) for c in attribute.categories or ()]
        is_all = len(own) + sum(map(len, spelt.values())) <= _MOST
        kind = f"{len(own)} categories: "
    else:
        ends = typed(attribute)
        if attribute.names is None and (years := _years_each(attribute.edges)):
            first, last = (days(str(attribute.edges[k])) for k in (0, -1))
            return f"intervals of {years} year{'s' * (years > 1)} from {first} to {last}", True
        own = [*(attribute.names or (x for x in days(ends).split(", ") if "inf" not in x))]
        own = own[::-1] if ages_in(attribute.names or ()) else own  # the youngest first
        is_all = attribute.names is None or typed_names(attribute.names) == proposed_names(ends)
        kind = "" if attribute.names else f"{len(attribute.edges) - 1} intervals with the ends "
    if is_all and sum(map(len, own)) <= _LONGEST:
        return ("" if attribute.edges is None else kind) + ", ".join(own) + unit, True
    return kind + ", ".join(own[:_FIRST]) + ", …" * (len(own) > _FIRST) + unit, False


def _with_spellings(category: object, spelt: tuple[str, ...]) -> str:
    also = f" (also {', '.join(map(as_typed, spelt))})" if spelt else ""
    return (as_typed(category) if isinstance(category, str) else str(category).lower()) + also


def _years_each(edges: Sequence[object]) -> int:
    """Return the years in each interval of dates if all are alike and whole years; else 0."""
    if not all(isinstance(edge, date) and edge < date.max for edge in edges):
        return 0
    *begins, last = (edge for edge in edges if isinstance(edge, date))
    days = [*begins, last + timedelta(1)]  # the last interval has its upper edge
    years = {after.year - before.year for before, after in itertools.pairwise(days)}
    is_whole = len(years) == 1 and all((day.month, day.day) == (1, 1) for day in days)
    return years.pop() if is_whole else 0
