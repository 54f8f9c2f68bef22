"""Conversion between the text that a user types for a column and its attribute."""

import json
import math
import re
from collections.abc import Callable, Collection, Sequence
from datetime import date, timedelta

from ..errors import SchemaError
from ..tables import Attribute
from ..tables.schema.bases import base_value
from ..tables.schema.interval_names import whole_names
from ..tables.schema.spellings import joined

KINDS = {
    "texts": "categories: words",
    "integers": "categories: whole numbers",
    "truths": "categories: true and false",
    "edges": "intervals of numbers or dates",
    "clip": "a number, for sums and means",
    "unit": "the same, without an upper end",
}
NUMBERS = "integers", "edges", "clip", "unit"  # kinds that may have a unit of measurement
HELP = {
    "texts": "one category a line; F = f, Female counts f and Female as F",
    "integers": "one number a line",
    "truths": "true and false, one a line",
    "edges": "the ends in order: 0, 18, 65, inf or 0; 2,5; 10 or 2020-01-01, 2020-07-01",
    "clip": "lowest and highest value: 0, 100000 or 0; 99,5",
    "unit": "the smallest step of the number: 0.01 for cents",
}


def kind_of(attribute: Attribute) -> str:
    """Return the kind of values that an attribute has: a key of :data:`KINDS`."""
    if attribute.categories is not None:
        first = attribute.categories[0]
        return (
            "truths"
            if isinstance(first, bool)
            else "integers"
            if isinstance(first, int)
            else "texts"
        )
    return next(kind for kind in ("edges", "clip", "unit") if getattr(attribute, kind) is not None)


def typed(attribute: Attribute, days: Callable[[str], str] = str) -> str:
    """Return the text of an attribute's values for the form: its categories, edges or numbers.

    Args:
        attribute: the attribute.
        days: how the dates among its edges are written.
    """
    kind = kind_of(attribute)
    if kind == "texts":
        spelt = dict(attribute.spellings)
        own = [(c, spelt.get(c, ())) for c in map(str, attribute.categories or ())]
        return "\n".join(
            as_typed(one) + " = " * bool(others) + ", ".join(map(as_typed, others))
            for one, others in own
        )
    if kind in ("integers", "truths"):
        return "\n".join(json.dumps(value) for value in attribute.categories or ())
    if kind == "unit":
        return f"{attribute.unit:.15g}"
    values = attribute.edges if kind == "edges" else attribute.clip
    return days(", ".join(f"{x:.15g}" if isinstance(x, float) else str(x) for x in values or ()))


def day_first(text: str) -> str:
    """Return a text with its dates written as 31.12.2025, which the form reads as well.

    >>> day_first("-inf, 1961-01-01, 2025-12-31")
    '-inf, 01.01.1961, 31.12.2025'
    """
    return re.sub(r"\b(\d{4})-(\d\d)-(\d\d)\b", r"\3.\2.\1", text)


def clip_help(text: str) -> str:
    """Return the hint below the ends of a number, which says what numbers beyond them count as.

    >>> clip_help("0, 6000")
    'lowest and highest value; a number beyond counts as the nearer end: 7,500 as 6,000'
    """
    try:
        _, high = attribute_of("column", "clip", text).clip or (0.0, 0.0)
    except SchemaError:
        return HELP["clip"]
    beyond = high + abs(high) / 4 or 1.0
    shown = f"{beyond:,.15g} as {high:,.15g}"
    return f"lowest and highest value; a number beyond counts as the nearer end: {shown}"


def as_typed(text: str) -> str:
    r"""Return a category or spelling as a user types it.

    The text is quoted as in JSON if the form, or a person who sees the text in a line, would read
    it as something else without quotes. Characters that are not visible are written as their
    numbers.

    >>> print(as_typed("Rome; Italy"), as_typed("A\u200b"), as_typed("a  b"))
    "Rome; Italy" "A\u200b" "a \u0020b"
    """
    quoted = "".join(map(_seen, json.dumps(text, ensure_ascii=False)))
    quoted = re.sub("(?<= ) ", r"\\u0020", quoted)
    is_seen = text.strip() == text and "  " not in text and "".join(map(_seen, text)) == text
    return text if text and is_seen and not _MARKS.search(text) else quoted


def _seen(character: str) -> str:
    """Return a character, or its number as in JSON if it is not visible or looks like a blank."""
    if character.isprintable() and not _UNSEEN.match(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return re.sub("....", r"\\u\g<0>", units)


def typed_names(names: Sequence[str] | None) -> str:
    """Return names of intervals as a user types them, one a line; "" without names."""
    return "\n".join(names or ())


def proposed_names(text: str) -> str:
    """Return names of intervals of whole numbers or days, one a line, or "" if there are none.

    ``text`` has the edges of the intervals, as a user types them.

    >>> proposed_names("0, 18, 65, inf").splitlines()
    ['0 to 17', '18 to 64', '65 and over']
    """
    try:
        return typed_names(whole_names(attribute_of("column", "edges", text).edges or ()))
    except SchemaError:
        return ""


def birth_dates(ages: str, day: str) -> str:
    """Return edges of birth dates, as text, for age groups that begin at ``ages`` on ``day``.

    >>> birth_dates("0, 18, 65", "2025-12-31")
    '-inf, 1961-01-01, 2008-01-01, 2025-12-31'
    >>> birth_dates("0, 18, 65", "31.12.2025") == birth_dates("0, 18, 65", "2025-12-31")
    True
    """
    try:
        at, begins = date.fromisoformat(str(_edge(day.strip()))), _ages(ages)[::-1]
        if begins[-1] < 0:
            raise ValueError
        *older, youngest = (_years_before(at, age) for age in begins)
        # the last interval has its upper edge
        born = [*(last + timedelta(days=1) for last in older), youngest]
    except (ValueError, OverflowError):
        raise SchemaError(
            "Ages: expected whole numbers and a day, like 0, 18, 65 and 2025-12-31"
        ) from None
    return ", ".join(["-inf", *map(str, born)])


def age_names(ages: str) -> str:
    """Return names, one a line, of the intervals of :func:`birth_dates` for the same ages.

    >>> age_names("0, 18, 65").splitlines()
    ['aged 65 and over', 'aged 18 to 64', 'under 18']
    """
    begins = [-math.inf if age == 0 else float(age) for age in _ages(ages)]
    names = whole_names([*begins, math.inf]) or ()
    words = [name if name.startswith("under ") else f"aged {name}" for name in names]
    return typed_names(words[::-1])


def ages_in(names: Sequence[str]) -> str:
    """Return the ages for which :func:`age_names` gives these names; "" without such ages.

    >>> ages_in(["aged 65 and over", "aged 18 to 64", "under 18"]), ages_in(["old", "young"])
    ('0, 18, 65', '')
    """
    begins = [re.match(r"aged (\d+)|under \d+$", name) for name in reversed(names)]
    ages = ", ".join((found[1] or "0") for found in begins if found)
    return ages if ages and age_names(ages) == typed_names(names) else ""


def title_and_unit(name: str) -> tuple[str, str]:
    """Return a title and a unit of measurement from a column's name; "" without a unit.

    >>> title_and_unit("net income (EUR/month)"), title_and_unit("rooms")
    (('net income', 'EUR/month'), ('', ''))
    """
    found = _WITH_UNIT.fullmatch(name.strip())
    return (found[1], found[2].strip()) if found else ("", "")


def _ages(text: str) -> list[int]:
    return sorted({int(age) for age in re.split(r"[,;\s]+", text.strip())})


def _years_before(day: date, years: int) -> date:
    """Return the latest birth date of a person who is ``years`` old on ``day``."""
    try:
        return day.replace(year=day.year - years)
    except ValueError:  # 29 February
        return day.replace(year=day.year - years, day=28)


def join(name: str, text: str, like: Attribute | None = None) -> tuple[str, str] | None:
    """Join categories that differ only in case or blanks.

    The first of several such categories stays. The others become spellings of the first.

    Returns:
        The new text of all categories, and a text that lists the joined categories. None if no
        two categories are joined.
    """
    lines = _categories(name, text, like)
    last = len(lines)
    pairs = joined({one: last - k for k, (one, _) in enumerate(lines)})
    more = {one: [x for own in others for x in (own, *dict(lines)[own])] for one, others in pairs}
    gone = {own for _, others in pairs for own in others}
    kept = [(one, [*own, *more.get(one, ())]) for one, own in lines if one not in gone]
    if not pairs:
        return None
    attribute = Attribute(name, [c for c, _ in kept], spellings={c: s for c, s in kept if s})
    return typed(attribute), ", ".join("/".join((one, *own)) for one, own in pairs)


def attribute_of(
    name: str,
    kind: str,
    text: str,
    other: str = "",
    missing: str = "",
    like: Attribute | None = None,
    measured_in: str = "",
    names: str = "",
    title: str = "",
) -> Attribute:
    """Return the attribute that a user describes in the form's fields.

    Args:
        name: the column.
        kind: one of :data:`KINDS`.
        text: see :data:`HELP`.
        other: the label of the category for all other values; empty for none.
        missing: codes for missing values, separated by commas.
        like: the attribute before the change; its questions and groups stay if its kind does.
        measured_in: the unit of a number, like EUR; empty for none.
        names: names of the intervals of ``edges``, one a line; empty for none.
        title: the name of the column for readers; empty if it is that of the file.

    Raises:
        SchemaError: the text describes no attribute of this kind.
    """
    kept = {}
    if like is not None and kind_of(like) == kind:
        # by its name, since the base itself holds the ends or the number of cells before the change
        base = None if like.base is None else base_value(like.base, like)
        kept = {"base": base, "groups": like.groups}
    given = {
        "other": other.strip() or None,
        "missing": [_code(code) for code in re.split(r"\s*,\s*", missing.strip()) if code],
        "title": title.strip() or None,
        "measured_in": measured_in.strip() or None,
        **kept,
    }
    if kind == "texts":
        read = _categories(name, text, like)
        spelt = {one: own for one, own in read if own}
        return Attribute(name, [one for one, _ in read], spellings=spelt, **given)
    if kind in ("integers", "truths"):
        one = {"integers": _integer, "truths": _truth}[kind]
        return Attribute(name, [one(name, x) for x in text.splitlines() if x.strip()], **given)
    parts = _parts(name, text, one=kind == "unit")
    if kind == "edges":
        named = [line.strip() for line in names.splitlines() if line.strip()] or None
        return Attribute(name, edges=[_edge(part) for part in parts], names=named, **given)
    numbers = [_number(name, part) for part in parts]
    if kind == "clip":
        if len(numbers) != 2 or not numbers[0] < numbers[1]:
            raise SchemaError(
                f"attribute {name!r}: expected the lowest and the highest value, like 0, 100000"
            )
        return Attribute(name, clip=numbers, **given)
    if len(numbers) != 1:
        raise SchemaError(f"attribute {name!r}: expected one number, like 0.01")
    return Attribute(name, unit=numbers[0], **given)


# marks of the form, and of the line of a column
_MARKS = re.compile(r'[,=;·]|^["…]|\(also |and the rest:')
# characters without a shape that Unicode lists as letters, marks or symbols
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
_WITH_UNIT = re.compile(r"(.*\S)\s*[(\[]([^()\[\]]{1,20})[)\]]")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}\.\d\d0")  # 6.000: a thousand, or decimals
_COMMA = re.compile(r"[+-]?\d+,\d+")  # a number with a decimal comma, or two numbers


def _parts(name: str, text: str, *, one: bool) -> list[str]:
    """Split a typed text into its numbers or dates, as texts with decimal points."""
    # a comma is a decimal mark if semicolons or line breaks separate numbers, or one is expected; a
    # comma that could also separate numbers is refused
    text = text.strip().removeprefix("[").removesuffix("]")  # as schema files have it
    if one or re.search(r"[;\n]", text.strip()):
        parts = [part.strip() for part in re.split(r"[;\n]|,\s" if one else r"[;\n]", text)]
        parts = [part.replace(",", ".") if _COMMA.fullmatch(part) else part for part in parts]
    else:
        if _COMMA.search(text) and re.search(r"\s", text.strip()):
            raise SchemaError(
                f"attribute {name!r}: expected a blank behind each comma, or none anywhere; hint: "
                "with decimal commas, semicolons between the numbers: 0; 2,5; 10"
            )
        parts = re.split(r"[,\s]+", text)
    for part in filter(_GROUPED.fullmatch, parts):
        raise SchemaError(
            f"attribute {name!r}: {part} can mean two numbers; hint: write {part.replace('.', '')} "
            f"or {part.rstrip('0').rstrip('.')}"
        )
    return [part for part in parts if part]


_DAY_FIRST = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})")
_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^",=][^,=]*|)\s*([,=]|$)')


def _categories(name: str, text: str, like: Attribute | None) -> list[tuple[str, list[str]]]:
    """Return (category, other spellings) for each line of a typed text."""
    known = {*map(str, (like and like.categories) or ())}
    known |= {own for _, spelt in (like.spellings if like else ()) for own in spelt}
    return [_category(name, line, known) for line in text.splitlines() if line.strip()]


def _category(name: str, line: str, known: Collection[str]) -> tuple[str, list[str]]:
    """Return (category, other spellings) from one typed line; a line in ``known`` is a category."""
    if line in known:
        return line, []
    items, marks, at = [], [], 0
    while at < len(line):
        found = _ITEM.match(line, at)
        if found is None:
            raise _unended(name)
        items.append(_unquoted(name, found[1].strip()))
        marks.append(found[2])
        at = found.end()
    if marks[0] == "," or "=" in marks[1:]:
        first, *others = (as_typed(item) for item in items)
        raise SchemaError(
            f"attribute {name!r}: expected one category a line, got {line.strip()!r:.80}; "
            f"hint: if these are spellings of one category, {first} = {', '.join(others)}; if "
            "they are several categories, a line for each; if all of it is one category, "
            f"{json.dumps(line.strip(), ensure_ascii=False)}"
        )
    if marks[0] != "=":
        if line != line.strip() and line[0] != '"':
            raise SchemaError(
                f"attribute {name!r}: expected no blanks at the ends of a category; hint: if the "
                f"file has them, write {json.dumps(line, ensure_ascii=False)} with quotes"
            )
        return items[0], []
    one, *spelt = items
    if not one:
        raise SchemaError(f"attribute {name!r}: expected a category before =, like F = f, Female")
    return one, [own for own in spelt if own]


def _unquoted(name: str, text: str) -> str:
    try:
        return json.loads(text) if text.startswith('"') else text
    except ValueError:
        raise _unended(name) from None


def _unended(name: str) -> SchemaError:
    """Return the error of a category that begins with a quotation mark and ends without one."""
    return SchemaError(
        f"attribute {name!r}: expected a category in quotes to end with one, like "
        '"so-called \\"expert\\""'
    )


def _integer(name: str, line: str) -> int:
    try:
        return int(line)
    except ValueError:
        raise SchemaError(
            f"attribute {name!r}: expected one whole number a line; hint: for 7 and more, choose "
            f"“{KINDS['edges']}”: 1, 2, 3, 4, 5, 6, 7, inf"
        ) from None


def _truth(name: str, line: str) -> bool:
    if line.strip().lower() not in ("true", "false"):
        raise SchemaError(f"attribute {name!r}: expected true or false on each line")
    return line.strip().lower() == "true"


def _number(name: str, part: str) -> float:
    try:
        return float(part)
    except ValueError:
        raise SchemaError(f"attribute {name!r}: expected numbers, like 0, 100000") from None


def _edge(part: str) -> float | str:
    try:
        return float(part)
    except ValueError:  # a date; other texts are refused later, as an edge
        found = _DAY_FIRST.fullmatch(part)
        return part if found is None else f"{found[3]}-{found[2]:0>2}-{found[1]:0>2}"


def _code(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
