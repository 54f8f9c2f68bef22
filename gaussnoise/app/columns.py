"""Conversion between the text that a user types for a column and its attribute."""

import json
import re

from ..errors import SchemaError
from ..tables import Attribute
from ..tables.schema.bases import base_value

KINDS = {
    "texts": "categories: words",
    "integers": "categories: whole numbers",
    "truths": "categories: true and false",
    "edges": "intervals of numbers or dates",
    "clip": "a number, for sums and means",
    "unit": "the same, without an upper end",
}
HELP = {
    "texts": "one category a line, as it stands in the file; blanks at its ends count inside "
    'quotes, like "F "',
    "integers": "one number a line",
    "truths": "true and false, one a line",
    "edges": "the ends in order, with commas: 0, 18, 65, 120 or 2020-01-01, 2020-07-01; with "
    "semicolons where numbers have a decimal comma: 0; 2,5; 10; -inf and inf take all below and "
    "above",
    "clip": "the lowest and the highest value that count in full: 0, 100000 or 0; 99,5",
    "unit": "the smallest step of the number: 0.01 for cents",
}


def kind_of(attribute: Attribute) -> str:
    """Return the kind of an attribute, one of :data:`KINDS`."""
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


def typed(attribute: Attribute) -> str:
    """Return the text that a user types for an attribute: its categories, edges or numbers."""
    kind = kind_of(attribute)
    if kind == "texts":
        return "\n".join(map(_line, map(str, attribute.categories or ())))
    if kind in ("integers", "truths"):
        return "\n".join(json.dumps(value) for value in attribute.categories or ())
    if kind == "unit":
        return f"{attribute.unit:.15g}"
    values = attribute.edges if kind == "edges" else attribute.clip
    return ", ".join(f"{x:.15g}" if isinstance(x, float) else str(x) for x in values or ())


def _line(text: str) -> str:
    """Return a category on one line; in JSON if it has line breaks, or would be read otherwise."""
    plain = text.strip() == text and text.isprintable() and text and text[0] != '"'
    return text if plain else json.dumps(text, ensure_ascii=False)


def attribute_of(
    name: str,
    kind: str,
    text: str,
    other: str = "",
    missing: str = "",
    like: Attribute | None = None,
) -> Attribute:
    """Return the attribute of a typed text.

    Args:
        name: the column.
        kind: one of :data:`KINDS`.
        text: see :data:`HELP`.
        other: the label of the category for all other values; empty for none.
        missing: codes for missing values, separated by commas.
        like: the attribute before the change; its questions and groups stay if its kind does.

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
        **kept,
    }
    if kind in ("texts", "integers", "truths"):
        read = {"texts": _category, "integers": _integer, "truths": _truth}[kind]
        lines = [line for line in text.splitlines() if line.strip()]
        return Attribute(name, [read(name, line) for line in lines], **given)
    parts = _parts(name, text, one=kind == "unit")
    if kind == "edges":
        return Attribute(name, edges=[_edge(part) for part in parts], **given)
    numbers = [_number(name, part) for part in parts]
    if kind == "clip":
        return Attribute(name, clip=numbers, **given)
    if len(numbers) != 1:
        raise SchemaError(f"attribute {name!r}: expected one number, like 0.01")
    return Attribute(name, unit=numbers[0], **given)


_COMMA = re.compile(r"[+-]?\d+,\d+")  # a number with a decimal comma, or two numbers


def _parts(name: str, text: str, *, one: bool) -> list[str]:
    """Return the numbers or dates of a text, with decimal points.

    A comma is a decimal mark if semicolons or line breaks separate the numbers, or if one number is
    expected. A comma that could also separate numbers is refused.
    """
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
    return [part for part in parts if part]


def _category(name: str, line: str) -> str:
    if not line.startswith('"'):
        if line != line.strip():
            raise SchemaError(
                f"attribute {name!r}: expected no blanks at the ends of a category; hint: if the "
                f"file has them, write {json.dumps(line, ensure_ascii=False)} with quotes"
            )
        return line
    try:
        return json.loads(line)
    except ValueError:
        raise SchemaError(
            f"attribute {name!r}: expected a category in quotes to end with one, like "
            '"so-called \\"expert\\""'
        ) from None


def _integer(name: str, line: str) -> int:
    try:
        return int(line)
    except ValueError:
        raise SchemaError(f"attribute {name!r}: expected one whole number a line") from None


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
    except ValueError:
        return part  # a date; other texts are refused later, as an edge


def _code(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
