"""Comparison of records and texts on disk with the expected ones."""

import math
import re
from collections.abc import Iterator
from typing import Any

_CLOSE = 1e-9  # relative difference of numbers that machines may compute differently
# Names of numbers that a solver finds up to its tolerance, and how much they may differ between
# machines. A gap may be nothing but rounding, and is compared absolutely.
_SOLVED, _TOLERANCE = re.compile(r"optimality\..*|time_lower|(.*\.)?certified_gap"), 5e-7
# such gaps in texts, and the time that a release takes, which depends on the machine
_UNSURE = re.compile(
    r"(?<=certified gap )\d(\.\d+)?e-(0[7-9]|[1-9]\d)\b|(?<= noisy integers: )[\w .]{1,40}"
    r"|(?<= noisy integer: )[\w .]{1,40}"
)
_MOST_SHOWN = 80  # largest number of characters of a value in a message


def first_difference(expected: object, got: object, place: str = "") -> str | None:
    """Return a text about the first difference between two JSON values; None if they agree.

    ``place`` is the path of the values inside their file, such as ``files.report``.
    """
    return next(_differences(expected, got, place), None)


def text_difference(expected: str, got: str) -> str | None:
    """Return a text about the first line that differs between two texts; None if they agree."""
    lines = expected.split("\n"), got.split("\n")
    longest = max(map(len, lines))
    padded = [own + ["nothing"] * (longest - len(own)) for own in lines]
    for number, (ours, theirs) in enumerate(zip(*padded, strict=True), 1):
        if not _equal_texts(ours, theirs):
            return f"line {number}: expected {_short_text(ours)}, got {_short_text(theirs)}"
    return None


def _differences(expected: Any, got: Any, place: str) -> Iterator[str]:
    """Yield a text on each difference of two JSON values at the path ``place`` in their files."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for name in [*expected, *(name for name in got if name not in expected)]:
            inner = f"{place}.{name}" if place else name
            if name in expected and name in got:
                yield from _differences(expected[name], got[name], inner)
            else:
                ends = (
                    _short_text(own[name]) if name in own else "nothing" for own in (expected, got)
                )
                yield "{}: expected {}, got {}".format(_short_text(inner), *ends)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for k, (ours, theirs) in enumerate(zip(expected, got, strict=True)):
            yield from _differences(ours, theirs, f"{place}.{k}")
    elif not _equal(expected, got, place):
        yield f"{_short_text(place)}: expected {_short_text(expected)}, got {_short_text(got)}"


def _equal(expected: Any, got: Any, place: str) -> bool:
    """Return whether JSON values are equal, up to the rounding that is allowed at ``place``."""
    if type(expected) is not type(got):
        return False
    if isinstance(expected, float):
        both_nan = math.isnan(expected) and math.isnan(got)
        relative = _TOLERANCE if _SOLVED.fullmatch(place) else _CLOSE
        absolute = _TOLERANCE if place.endswith("certified_gap") else 0.0
        return both_nan or math.isclose(expected, got, rel_tol=relative, abs_tol=absolute)
    return _equal_texts(expected, got) if isinstance(expected, str) else expected == got


def _equal_texts(expected: str, got: str) -> bool:
    """Return whether texts are equal, except for numbers that depend on the machine."""
    return expected == got or _UNSURE.sub("…", expected) == _UNSURE.sub("…", got)


def _short_text(value: object) -> str:
    """Return a value as a short text for a message; for a list, its number of entries."""
    return f"{value!r:.{_MOST_SHOWN}}" if not isinstance(value, list) else f"{len(value)} entries"
