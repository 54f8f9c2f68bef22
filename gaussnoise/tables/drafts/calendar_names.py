"""The order of categories that are names of months or of days of the week."""

from collections.abc import Iterable

from ..schema.dates import MONTHS

_NAMES = (
    " ".join(MONTHS),
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
)
_SHORT = 3  # letters of a short name, like Jan


def in_order(texts: Iterable[str]) -> list[str]:
    """Return names of months, or of days of the week, in calendar order; other texts sorted."""
    found = sorted(texts)
    for names in _NAMES:
        listed = list(enumerate(names.casefold().split()))
        known = {name: k for k, name in listed} | {name[:_SHORT]: k for k, name in listed}
        places = {text: known.get(text.strip(" .").casefold(), -1) for text in found}
        if -1 not in places.values():
            return sorted(found, key=lambda text: places[text])
    return found
