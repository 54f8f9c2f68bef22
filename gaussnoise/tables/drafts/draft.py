"""The draft of a first schema, made from the rows of a table.

Every line of it must be checked against public knowledge.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import narwhals as nw

from ...errors import DataError
from ..reading.as_read import columns_as_read
from ..reading.csv import FORM, naming_lines
from ..reading.declared import is_untyped
from ..reading.files import dialect_of, is_csv, written_in
from ..reading.frames import (
    Frame,
    guarded,
    is_zoned,
    open_table,
    text_columns,
    type_name,
    without_zone,
    zone_hint,
)
from ..reading.pieces import pieces
from ..reading.sniff import date_columns, decimal_columns, sniffed
from ..reading.values import Form
from ..schema.dates import ZONELESS, is_dated
from ..schema.dialect import USUAL, Dialect, Files, hint
from ..schema.interval_names import whole_names
from ..schema.schema import RESERVED_NAMES, Attribute, Category, Schema, stated_toml
from ..schema.spellings import Spelt, abbreviated, joined
from .edges import calendar_edges, log_edges, round_edges, round_ends
from .like_dates import like_dates
from .order import in_order
from .roles import may_be_person, role_of
from .seen import MOST_CATEGORIES, NEARLY_ALL, Seen
from .suspects import months_apart, no_answers

INSTEAD = "; if it is something else:"  # ends a comment on a column that is left out
_MOST_INTEGERS = 20
_SKEWED = 20.0  # numbers are skewed if the largest is at least this many times the median
_FEW_OF, _MOST_RARE = 1000, 5  # share of rows of rare categories, and how many a comment names
_MOST_GROUPS = 3  # groups of joined values in a comment, at most
_NOT_STATED = "other or not stated"  # the name of a catch-all that has missing values too


_ONE_COLUMN = (
    "the file has one column only; if it should have more, state what is between them, like "
    f"{hint(delimiter=';')}, or the lines before the column names, like {hint(skip=2)}"
)


class Draft(NamedTuple):
    """The decision about every column of a table: an attribute, or the reason for none.

    Attributes:
        attributes: the attributes of the columns that can be attributes.
        left_out: {name: why the column cannot be an attribute}, for the other columns.
        reasons: {name: why it has these categories or bins}; also for the columns in ``instead``.
        instead: {name: possible attribute of a column that was left out}.
        file: the dialect in which the table was read.
        rows: the number of rows.
    """

    attributes: list[Attribute]
    left_out: dict[str, str]
    reasons: dict[str, str]
    instead: dict[str, Attribute]
    file: Dialect = USUAL
    rows: int = 0

    @property
    def schema(self) -> Schema:
        """The drafted schema; releases refuse it until a person has confirmed it."""
        return Schema(self.attributes, file=self.file, is_draft=True)

    def to_toml(self) -> str:
        """Return the drafted schema as a schema file, with a comment for every column."""
        said = self.file.skipped and f"# {self.file.skipped}\n"
        file = [said + table for table in stated_toml(file=self.file.stated)]
        blocks = ["draft = true\n", *file, *map(self._block, self.attributes)]
        for name, reason in self.left_out.items():
            lines = [f"left out: {reason}"]
            if name in self.instead:
                lines[0] += INSTEAD
                lines += map(_escaped, Schema([self.instead[name]]).to_toml().rstrip().split("\n"))
            blocks.append("".join(f"# {_one_line(line)}\n" for line in lines))
        return "\n".join(blocks)

    def _block(self, attribute: Attribute) -> str:
        return f"# {_one_line(self.reasons[attribute.name])}\n{Schema([attribute]).to_toml()}"


def _one_line(text: str) -> str:
    """Return text with "?" for line ends and control characters, which TOML forbids in comments."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _escaped(line: str) -> str:
    """Return a line of TOML with escapes in place of characters that are not visible."""
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in line)


def draft(table: object) -> Draft:
    """Return a draft: an attribute for each column that can be one, and why others cannot.

    See :meth:`Schema.draft`.
    """
    table = table if isinstance(table, Files) else written_in(table, sniffed(table))
    with naming_lines(table):
        return _draft(table)


def _draft(table: object, as_text: Collection[str] = ()) -> Draft:
    """Return the draft of a table in a stated dialect; columns in ``as_text`` are read as text."""
    dates = [name for name in date_columns(table) if name not in as_text]
    numbers = [name for name in decimal_columns(table) if name not in as_text]
    frame = open_table(table, numbers, dates)
    types = guarded(
        "read the table's columns",
        lambda: dict(frame.collect_schema()),
        engine=frame.implementation,
    )
    text = text_columns(table, list(types))
    drafted, zoneless = Draft([], {}, {}, {}, dialect_of(table)), without_zone(table)
    columns: dict[str, Seen] = {}
    for name, dtype in types.items():
        form = Form.UNTYPED if is_untyped(frame) else Form.TYPED
        form = Form.TEXT if name in text else form
        problem = _problem(frame, name, dtype, form)
        if problem is None:
            columns[name] = Seen(dtype, form, named=may_be_person(name))
        else:
            drafted.left_out[name] = f"column {name!r}: {problem}"

    def read() -> int:
        rows = 0
        for piece in pieces(frame, list(columns)) if columns else ():
            rows += len(piece)
            for name, column in columns.items():
                column.add(piece[name])
        return rows

    hint = FORM if is_csv(table) else ""
    rows = guarded("read the table's values", read, hint, engine=frame.implementation)
    # the categories of text are what releases compare with: the text as the file has it
    texts = [name for name in (*numbers, *dates) if _is_text(columns.get(name))]
    if texts:
        return _draft(table, [*as_text, *texts])
    for name, column in columns.items():
        role = role_of(name, column)
        try:
            as_written = str
            if name in numbers:
                as_written = columns_as_read(drafted.file, [name], [])[name].written
            attribute, reason = _attribute(name, column, as_written)
            if name in dates and is_dated(attribute.edges):
                reason += f" Dates are read as {drafted.file.date_format}, as most of them are."
            if name in numbers and (mark := drafted.file.thousands) is not None:
                reason += (
                    f" Numbers are read with {mark!r} between thousands and "
                    f"{drafted.file.decimal!r} before decimals, as those with several marks have "
                    "it."
                )
            said = f"{ZONELESS[0].upper()}{ZONELESS[1:]}."
            drafted.reasons[name] = f"{reason} {said}" if name in zoneless else reason
        except DataError as error:
            drafted.left_out[name] = role or str(error)
            continue
        if role is None:
            drafted.attributes.append(attribute)
        else:
            drafted.left_out[name], drafted.instead[name] = role, attribute
    for name, why in drafted.left_out.items() if len(types) == 1 and is_csv(table) else ():
        drafted.left_out[name] = f"{why.partition('; hint: ')[0]}; hint: {_ONE_COLUMN}"
    return drafted._replace(rows=rows)


def _is_text(column: Seen | None) -> bool:
    """Return whether a column can be an attribute whose categories are texts."""
    return column is not None and column.kind == "texts" and not column.words.many


def _problem(frame: Frame, name: str, dtype: nw.dtypes.DType, form: Form) -> str | None:
    """Return why a column can be no attribute because of its name or type; None if it can."""
    if name in RESERVED_NAMES:
        return "released tables use this name themselves; hint: rename it"
    if not (isinstance(name, str) and name):
        return "expected a name that is text of at least one character; hint: rename it"
    words = (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Date)
    if dtype in words or dtype.is_numeric() or (dtype == nw.Datetime and not is_zoned(dtype)):
        return None
    if dtype in (nw.Object, nw.Unknown) and form is Form.UNTYPED:
        return None  # the values decide
    hint = zone_hint(frame.implementation) if is_zoned(dtype) else "drop or cast it"
    wanted = "text, integers, booleans, numbers or dates"
    return f"expected {wanted}, got {type_name(dtype)}; hint: {hint}"


def _attribute(name: str, column: Seen, as_written: Callable[[str], str]) -> tuple[Attribute, str]:
    """Return a column's drafted attribute, and why it has these categories or bins."""
    if column.kind is None:
        raise DataError(f"column {name!r}: expected values, got none; hint: drop it")
    catch_all, spelt, short, codes = _catch_all(column, as_written), (), {}, []
    if column.kind == "dates":
        return _dates(name, column, catch_all)
    if column.kind == "truths":
        found = {word.lower() for word in column.words.rows}
        values = sorted(word == "true" for word in found & {"true", "false"})
        said = "values, true and false alone"
    elif column.kind == "texts":
        codes = no_answers(column.words.rows)
        words = {text: rows for text, rows in column.words.rows.items() if text not in codes}
        if not words:
            words, codes = column.words.rows, []
        spelt = joined(words)
        short = abbreviated(words.keys() - {text for _, own in spelt for text in own})
        if short:
            spelt = _with_short(dict(spelt), short)
        values = in_order(words.keys() - {text for _, own in spelt for text in own})
        if column.declared and set(values) <= set(column.declared):
            values.sort(key=column.declared.index)
        said = "values" + (", of several kinds" if column.is_mixed else "")
        said += ", some numbers written like 007" if column.coded else ""
    elif column.is_integer and 0 < len(column.numbers) <= _MOST_INTEGERS:
        values = sorted(map(int, column.numbers.rows))
        said = "whole numbers"
    else:
        return _numbers(name, column, catch_all)
    if not values and column.odd_rows:
        raise DataError(
            f"column {name!r}: expected numbers, got other texts in {column.odd_rows} of "
            f"{column.rows} rows; hint: write them like the other numbers, with one decimal mark, "
            "or leave them empty"
        )
    marks = (
        "state their marks, which are the same for all numbers of a file: "
        f"{hint(thousands='.')}; {hint(decimal=',')}"
    )
    if not values and column.is_separated:
        raise DataError(
            f"column {name!r}: expected numbers, got texts like 1.234,50, with separators of "
            f"thousands or another decimal mark; hint: {marks}"
        )
    if not values and (like := like_dates(column)):
        raise DataError(f"column {name!r}: expected dates, got {like}")
    if not values:
        raise DataError(
            f"column {name!r}: expected 1 to {MOST_CATEGORIES} distinct values, got more; hint: "
            "leave out identifiers and free text"
        )
    free = (_other(column, codes) + "_" * k for k in range(len(column.words) + 1))
    other = next(o for o in free if o not in column.words.rows) if catch_all or codes else None
    reason = f"The file has {len(values)} different {said}.{catch_all}"
    if codes:
        means, counts = ("means", "it counts") if len(codes) == 1 else ("mean", "they count")
        reason += f" {_listed(codes)} {means} no answer: {counts} in the catch-all."
    if column.is_separated:
        reason += (
            " Most are like numbers with separators of thousands or another decimal mark; to read "
            f"them as numbers, {marks}."
        )
    if like := like_dates(column):
        reason += f" Most are like dates: {like}."
    reason += _rare(column, values, dict(spelt))
    if alike := tuple(group for group in spelt if group[0] not in short.values()):
        why = "they differ in capitals, blanks or the code of a letter only"
        reason += f" Spellings that were joined, since {why}: {_shown(alike)}."
    if begun := tuple(group for group in spelt if group[0] in short.values()):
        reason += f" Short forms are proposed to count as the word: {_shown(begun)}."
    return Attribute(name, values, other=other, missing=codes, spellings=spelt), reason


def _with_short(spelt: dict[str, tuple[str, ...]], short: Mapping[str, str]) -> tuple[Spelt, ...]:
    """Return categories and spellings, where short forms are spellings of their long forms."""
    for own in sorted(short):
        spelt[short[own]] = (*spelt.get(short[own], ()), own, *spelt.pop(own, ()))
    return tuple(sorted(spelt.items()))


def _rare(column: Seen, values: Sequence[Category], spelt: Mapping[str, Sequence[str]]) -> str:
    """Return a remark that names categories of few rows; "" if there are none."""
    rows = column.words.rows | {str(number): n for number, n in column.numbers.rows.items()}
    rows |= {one: sum(rows[text] for text in (one, *own)) for one, own in spelt.items()}
    rare = [
        _quoted(v) if isinstance(v, str) else str(v)
        for v in values
        if _FEW_OF * rows.get(str(v), column.rows) < column.rows
    ]
    if not rare:
        return ""
    more = [f"{len(rare) - _MOST_RARE} more"] if len(rare) > _MOST_RARE else []
    return (
        f" In fewer than 1 of {_FEW_OF} rows: {', '.join(rare[:_MOST_RARE] + more)}. Such values "
        "may be errors, and a rare value may point to a person."
    )


def _other(column: Seen, codes: Collection[object] = ()) -> str:
    """Return the name of a catch-all, which depends on whether it counts missing answers."""
    return _NOT_STATED if column.missing or codes else "other"


def _catch_all(column: Seen, as_written: Callable[[str], str]) -> str:
    """Return sentences on what the attribute's catch-all counts; "" if it needs none."""
    # as_written returns a text as the file has it
    said = " Missing values count in the catch-all." if column.missing else ""
    if column.kind in ("numbers", "dates") and (texts := sorted(column.texts.rows)):
        shown = _listed(list(map(as_written, texts)))
        said += f" Texts that are no {column.kind} count in the catch-all: {shown}."
    return said


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(map(_quoted, texts))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _shown(spelt: tuple[Spelt, ...]) -> str:
    """Return text that lists the first groups of spellings that were joined into a category."""
    shown = ["/".join(map(_quoted, (name, *own))) for name, own in spelt[:_MOST_GROUPS]]
    more = [f"{len(spelt) - len(shown)} more"] if len(spelt) > len(shown) else []
    return ", ".join(shown + more)


def _numbers(name: str, column: Seen, catch_all: str) -> tuple[Attribute, str]:
    """Return an attribute with bins of numbers, and the reason for these bins."""
    low, high = column.ends
    skewed = low >= 0 and column.mostly_below(high / _SKEWED)
    least = max(low, 1) if column.is_integer else low  # no integers lie between 0 and 1
    inner = log_edges(least, high) if skewed else round_edges(low, high)
    shape = (
        f"most of them below a {_SKEWED:g}th of the largest: the intervals grow, 1-2-5 or tenfold"
        if skewed
        else "in intervals of one width, with round ends"
    )
    kind = f"more than {_MOST_INTEGERS} whole numbers" if column.is_integer else "numbers"
    most = column.nearly_most
    clip = ""
    if ends := round_ends(low, inner, most):
        clip = f" For sums and means, write clip = [{ends[0]:.15g}, {ends[1]:.15g}] in place of "
        clip += "edges and names" if column.is_integer else "edges"
        clip += "." if most is None else f": {NEARLY_ALL:.0%} of the numbers above 0 are below."
    code = ", ".join(map(str, column.suspects))
    if code:
        what = "a code" if len(column.suspects) == 1 else "codes"
        added = f"the line missing = [{code}]" + f', and other = "{_NOT_STATED}"' * (not catch_all)
        code = f" {code} may be {what} for no answer. If so, add {added}."
    edges = [-math.inf, *inner, math.inf]
    names = whole_names(edges) if column.is_integer else None
    return (
        Attribute(name, edges=edges, names=names, other=_other(column) if catch_all else None),
        f"The file has {kind}, {shape}.{catch_all}{code}{clip}",
    )


def _dates(name: str, column: Seen, catch_all: str) -> tuple[Attribute, str]:
    """Return an attribute with bins of dates, and the reason for these bins."""
    apart = months_apart(column.months)
    months = column.months.difference(apart)
    edges, step, most = calendar_edges(min(months), max(months))
    shown = ", ".join(f"{month // 12:04}-{month % 12 + 1:02}" for month in apart)
    code = f" {shown} may stand for no date, and counts in the catch-all." if apart else ""
    return (
        Attribute(name, edges=edges, other=_other(column, apart) if catch_all or apart else None),
        f"The file has dates, in intervals of {step}, which are {most} or so at most. "
        f"The first and the last are read off the data.{catch_all}{code}",
    )
