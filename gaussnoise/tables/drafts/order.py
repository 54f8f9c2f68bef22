"""The order of categories: months and days by the calendar, and numbers in texts by size."""

import re
from collections.abc import Iterable

from ..schema.dates import MONTHS

_NAMES = (
    " ".join(MONTHS),
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
)
_SHORT = 3  # letters of a short name, like Jan
_NUMBER = re.compile(r"(\d+)")
_THOUSANDS = re.compile(r"(?<![\w.,])[1-9]\d{0,2}([.,'’ \u00a0\u202f]\d{3})+(?!\d)")
_LEAST = re.compile(r"([<≤]|(under|below|less than|up to|unter|bis|weniger als)\b)\W*(?=\d)", re.I)


def in_order(texts: Iterable[str]) -> list[str]:
    """Return month names, or names of weekdays, in calendar order; other texts by their numbers.

    So 50-249 stands before 250+, and "under 18" before "18 to 64".
    """
    found = sorted(sorted(texts), key=_as_numbers_grow)
    for names in _NAMES:
        listed = list(enumerate(names.casefold().split()))
        known = {name: k for k, name in listed} | {name[:_SHORT]: k for k, name in listed}
        places = {text: known.get(text.strip(" .").casefold(), -1) for text in found}
        if -1 not in places.values():
            return sorted(found, key=lambda text: places[text])
    return found


def _as_numbers_grow(text: str) -> list[tuple[bool, float, str]]:
    """Return a key that compares the numbers in texts by size: 2 before 10, and < 5 before 5-9."""
    least = _LEAST.match(text)
    plain = _THOUSANDS.sub(
        lambda number: re.sub(r"\D", "", number[0]), text[least.end() :] if least else text
    )
    return [
        (False, float(part), "") if part.isdecimal() else (True, 0.0, part)
        for part in _NUMBER.split(plain)
        if part
    ]
