"""Formats of dates in CSV files, named as in the standard CSVW, and their conversion to ISO 8601.

A format has four digits for the year. ``dd`` and ``MM`` have two digits, ``d`` and ``M`` one or
two. A time of day may follow the date, as in ISO 8601.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ...errors import ParameterError
from .dates import ISO

ISO_FORMAT = "yyyy-MM-dd"
EXPECTED_FORMAT = (
    'date_format like "dd.MM.yyyy", "MM/dd/yyyy" or "yyyyMMdd": dd and MM have two digits, d and M '
    "one or two; one of . / - stands between them, or nothing if all have two digits"
)
_DIGITS = {
    "yyyy": "[0-9]{4}",
    "MM": "0[1-9]|1[0-2]",
    "M": "1[0-2]|0?[1-9]",
    "dd": "0[1-9]|[12][0-9]|3[01]",
    "d": "[12][0-9]|3[01]|0?[1-9]",
}
# after a year, the next digits are always the month: all readers understand 2023-03-04 so
_FORMAT = re.compile(
    r"(?:dd(?P<a>[./-]?)MM(?P=a)|MM(?P<b>[./-]?)dd(?P=b)|"
    r"dd?(?P<c>[./-])MM?(?P=c)|MM?(?P<d>[./-])dd?(?P=d))yyyy|"
    r"yyyyMMdd|yyyy(?P<e>[./-])MM?(?P=e)dd?"
)


def check_date_format(format: str) -> None:
    """Raise ParameterError for a text that is no format of dates like "dd.MM.yyyy"."""
    if _FORMAT.fullmatch(format) is None:
        raise ParameterError(f"dialect: expected {EXPECTED_FORMAT}; got {format!r:.50}")


class _Pattern(NamedTuple):
    """A regular expression for dates, for Python and duckdb, and its groups."""

    text: str
    groups: dict[str, int]  # {y, M, d or time (of day, may be empty): number of its group}


def _pattern(format: str) -> _Pattern:
    tokens = _tokens(format)
    # a format that allows one digit for day or month allows one for the hour too
    hour = "[0-9]{2}" if {"dd", "MM"} <= set(tokens) else "[0-9]{1,2}"
    days = "".join(f"({_DIGITS[x]})" if x in _DIGITS else f"[{x}]" for x in tokens)
    groups = {x[0]: k for k, x in enumerate(filter(_DIGITS.get, tokens), 1)}
    return _Pattern(f"{days}((?:[T ]{hour}:[0-9:.]*)?)", groups | {"time": 4})


def _tokens(format: str) -> list[str]:
    """Return the parts of a format in their order: "dd", ".", "MM", ".", "yyyy"."""
    return re.findall("d+|M+|y+|[./-]", format)


def as_iso(text: str, format: str) -> str:
    """Return a date, written in this format, in ISO 8601; return other text unchanged."""
    pattern, groups = _pattern(format)
    if (found := re.fullmatch(pattern, text)) is None:
        return text
    year, month, day, time = (found[groups[part]] for part in ("y", "M", "d", "time"))
    return f"{year}-{month:0>2}-{day:0>2}" + re.sub("^([T ])([0-9]):", r"\g<1>0\2:", time)


def as_iso_in_sql(column: str, format: str) -> str:
    """Return the SQL expression that converts a column of text as :func:`as_iso` does."""
    pattern, groups = _pattern(format)

    def part(name: str) -> str:
        return f"regexp_extract({column}, '^(?:{pattern})$', {groups[name]})"

    day = f"lpad({part('M')}, 2, '0') || '-' || lpad({part('d')}, 2, '0')"
    time = rf"regexp_replace({part('time')}, '^([T ])([0-9]):', '\10\2:')"
    date = f"{part('y')} || '-' || {day} || {time}"
    return f"CASE WHEN regexp_full_match({column}, '{pattern}') THEN {date} ELSE {column} END"


def in_format(text: str, format: str) -> str:
    """Return a date, written in ISO 8601, in this format; return other text unchanged."""
    if re.match("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        return text
    digits = {"y": text[:4], "M": text[5:7], "d": text[8:10]}
    return "".join(digits.get(x[0], x) for x in _tokens(format)) + text[10:]


# The probable format of texts, for drafts and hints.

# dates with four or two digits for the year, and dates with the name of a month
LIKE_DATES = (
    r"^\s*(?:[0-9]{4}[./-][0-9]{1,2}[./-][0-9]{1,2}|[0-9]{1,2}[./-][0-9]{1,2}[./-](?:[0-9]{2}){1,2}"
    r"|[0-9]{1,2}[. /-]{1,2}[^0-9\s./,-]{3,10}[. /,-]{1,2}(?:[0-9]{2}){1,2}"
    r"|[^0-9\s./,-]{3,10}[.]? [0-9]{1,2},? [0-9]{4})(?:[T ,].*)?$"
)


def likely_formats(texts: Mapping[str, int]) -> list[str]:
    """Return the date formats that fit the most rows not in ISO 8601; [] if none fits any row.

    There are two formats if no number is above 12, since the day or the month may then come first.
    With dots, the day comes first.

    Args:
        texts: {text: number of rows with it}.
    """
    iso = re.compile(_pattern(ISO_FORMAT).text)
    others = {text: rows for text, rows in texts.items() if not iso.fullmatch(text)}
    rows_by_format: dict[str, int] = {}
    for mark in "./-":
        for order in ("d M yyyy", "M d yyyy", "yyyy M d"):
            loose = order.replace(" ", mark)
            fits = re.compile(_pattern(loose).text).fullmatch
            own = {
                text: rows
                for text, rows in others.items()
                if fits(text) and re.fullmatch(ISO, as_iso(text, loose)[:10])
            }
            wide = loose.replace("d", "dd").replace("M", "MM")
            strict = re.compile(_pattern(wide).text).fullmatch
            rows_by_format[wide if all(map(strict, own)) else loose] = sum(own.values())
    most = max(rows_by_format.values())
    best = [format for format, rows in rows_by_format.items() if rows == most > 0]
    return [format for format in best if format.startswith("d") and "." in format] or best
