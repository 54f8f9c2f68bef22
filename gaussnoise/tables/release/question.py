"""Questions in words, as :meth:`TableRelease.ask` takes them, read by a grammar of seven forms.

===============================================  =============================================
question                                         answer
===============================================  =============================================
``count``                                        the number of rows
``count of sex=F, age=[18, 65)``                 the number of rows with all of these labels
``share of employed=yes given sex, age``         the share of every group that has the labels
``ratio of (sex=F) to (sex=M) given age``        one count over another, or one sum: below
``difference of (sex=F) and (sex=M)``            one count less another, one sum or share: below
``cdf of age given sex``                         cumulative shares, in the attribute's order
``quantile 0.5, 0.9 of age given sex``           quantiles of an attribute; ``median of age``
``sum of income given sex``, ``mean of …``       sums or means of a numeric column
===============================================  =============================================

* ``sex=F`` takes one label; ``age=[0, 18)|[18, 65)`` and ``age in ([0, 18), [18, 65))`` add up
  several. An attribute with edges also takes ``age=[0, 65)``, ``age<65`` and ``age>=18``, if the
  ends are edges; dates take ``born<2020-04-01``. A name alone, ``sex``, asks for one answer for
  each of its labels.
* ``given`` (or ``by``) precedes the groups: names, labels, or both, ``given sex=F, age``.
* Where counties have a level ``region`` in the schema, ``region=North`` means its counties, and
  ``region`` alone asks for one answer for each region: ``share of employed=yes given region``.
  Parts are taken within their groups: ``share of county given region`` is the share of every county
  in its region, ``share of county given region=North`` that of the counties of one.
* Two shares: ``difference of share of employed=yes given sex=F and share of employed=yes given
  sex=M``, or in short ``difference of share of employed=yes given sex=F and sex=M``: the
  last group replaces that of the first share.
* For numbers that the schema clips, sums take the place of counts: ``ratio of (sum of income,
  sex=F) to (sum of income, sex=M) given age``, ``difference of (sum of income) and (sum of rent)``.
* Names and labels with commas, bars, brackets or other words in them are in quotes, ``"…"``; a
  quote inside is written twice. Labels are written as in the schema, upper and lower case too.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, final

from domains.tables.clipped import Clipped

from ...errors import ParameterError
from ...text import near
from ..schema.dates import ISO, Edge, edge_position, edge_text, is_open
from ..schema.groups import level_base, level_labels
from ..schema.numbers import sum_weights
from ..schema.schema import Attribute, Category, Schema

Cells = tuple[int, ...]


@final
@dataclass(frozen=True)
class Level:
    """A request for one answer for each group of a level of an attribute."""

    name: str
    labels: tuple[Category, ...]
    cells: tuple[Cells, ...]

    @classmethod
    def of(cls, attribute: Attribute, name: str) -> "Level":
        """Return the level of this name."""
        return cls(name, level_labels(attribute, name), level_base(attribute, name).members)


@final
@dataclass(frozen=True)
class Wholes:
    """The group of a level that holds each part, in the order of the parts."""

    name: str
    cells: tuple[Cells, ...]


@final
@dataclass(frozen=True)
class Summed:
    """A sum of a clipped number: the amount that each of its virtual cells adds."""

    weights: tuple[float, ...]
    is_nonnegative: bool


# by attribute; None asks for one answer for each of its labels
Condition = Cells | Level | Wholes | Summed | None
Conditions = Mapping[int, Condition]

_FORMS = ("count", "share", "ratio", "difference", "cdf", "quantile", "median", "sum", "mean")
_GROUPS = ("given", "by")
_SHOWN = 8  # most labels in a message
_END = r"(?=$|[\s,|()=<>])"
_NUMBER = r"[-+]?(?:inf|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_ENDPOINT = rf"(?:{ISO}|{_NUMBER})"
_INTERVAL = re.compile(rf"([\[(])\s*({_ENDPOINT})\s*,\s*({_ENDPOINT})\s*([\])])")


@final
@dataclass(frozen=True)
class Count:
    """The number of rows that meet the conditions."""

    where: Conditions


@final
@dataclass(frozen=True)
class Share:
    """The share of a group that meets the conditions."""

    of: Conditions
    given: Conditions


@final
@dataclass(frozen=True)
class Ratio:
    """One count, or sum, divided by another."""

    top: Conditions
    bottom: Conditions


@final
@dataclass(frozen=True)
class Difference:
    """One count, sum or share minus another."""

    first: Count | Share
    second: Count | Share


@final
@dataclass(frozen=True)
class Cdf:
    """Cumulative shares of groups."""

    attribute: int
    given: Conditions


@final
@dataclass(frozen=True)
class Quantile:
    """Quantiles within groups."""

    attribute: int
    probabilities: tuple[float, ...]
    given: Conditions


@final
@dataclass(frozen=True)
class Moment:
    """The sum or mean of a numeric column within groups."""

    what: str
    column: str
    given: Conditions


Question = Count | Share | Ratio | Difference | Cdf | Quantile | Moment


def parsed(text: str, schema: Schema) -> Question:
    """Return the parts of a question.

    Raises:
        ParameterError: it does not follow the grammar, or names what the schema does not have; the
            message puts « and » around the wrong part.
    """
    if not isinstance(text, str):
        raise ParameterError(
            f'ask: expected a question like "count of sex=F", got {type(text).__name__}'
        )
    return _Reader(text, schema).question()


def conditions_text(schema: Schema, where: Conditions) -> str:
    """Return conditions in the words of a question."""
    parts = []
    for i, cells in where.items():
        attribute = schema.attributes[i]
        if isinstance(cells, Level | Wholes):
            parts.append(_quoted(cells.name))
            continue
        if isinstance(cells, Summed):
            parts.append(f"sum of {_quoted(attribute.name)}")
            continue
        labels = "|".join(_quoted(str(attribute.labels[k])) for k in cells or ())
        parts.append(_quoted(attribute.name) + ("" if cells is None else f"={labels}"))
    return ", ".join(parts)


def _quoted(text: str) -> str:
    plain = _INTERVAL.fullmatch(text) or not re.search(r'[\s,|()=<>"]', text)
    return text if plain else '"' + text.replace('"', '""') + '"'


class _Reader:
    """A reader of a question, from left to right."""

    def __init__(self, text: str, schema: Schema) -> None:
        self._text, self._schema, self._at = text, schema, 0

    def question(self) -> Question:
        asked = self._form()
        self._space()
        if self._at < len(self._text):
            self._fail('expected a comma, "given" or the end of the question here')
        return asked

    def _form(self) -> Question:
        self._space()
        start = self._at
        if (counted := self._counted()) is not None:
            return counted
        if self._word("ratio"):
            self._need("of")
            top = self._amount()
            self._need("to")
            bottom, given = self._amount(), self._given()
            return Ratio(self._joined(top, given, start), self._joined(bottom, given, start))
        if self._word("difference"):
            return self._difference(start)
        if self._word("cdf"):
            self._need("of")
            i = self._name()
            return Cdf(i, self._others({i: None}))
        if self._word("median"):
            self._need("of")
            i = self._name()
            return Quantile(i, (0.5,), self._others({i: None}))
        if self._word("quantile", "quantiles"):
            probabilities = self._probabilities()
            self._need("of")
            i = self._name()
            return Quantile(i, probabilities, self._others({i: None}))
        for what in ("sum", "mean"):
            if self._word(what):
                self._need("of")
                return Moment(what, self._column(), self._given())
        word = self._token()
        self._fail(f"expected a question that starts with one of {', '.join(_FORMS)}", word, _FORMS)

    def _counted(self) -> Count | Share | None:
        """Read a count or a share, if one begins here."""
        start = self._at
        if self._word("count"):
            where = self._group() if self._word("of") else {}
            return Count(self._joined(where, self._given(), start))
        if self._word("share"):
            self._need("of")
            return self._share(self._group())
        return None

    def _share(self, of: Conditions) -> Share:
        """Read the groups of a share; groups of the same attribute hold its parts."""
        self._space()
        start = self._at
        parts, groups = dict(of), dict(self._given())
        for i in [i for i in groups if i in of]:
            parts[i], groups[i] = self._within(i, parts[i], groups[i], start)
        return Share(parts, groups)

    def _within(
        self, i: int, parts: Condition, groups: Condition, at: int
    ) -> tuple[Condition, Condition]:
        """Return parts of an attribute, and the group that each is a part of."""
        attribute, said = self._schema.attributes[i], self._text[at : self._at].strip()
        if not isinstance(groups, Level | tuple):
            self._fail(f"expected groups by other attributes than {attribute.name!r}", said, at=at)
        wholes = groups.cells if isinstance(groups, Level) else (groups,)
        every = Level(attribute.name, attribute.labels, tuple((k,) for k in range(attribute.size)))
        asked = parts if isinstance(parts, Level) else every
        listed = (parts,) if isinstance(parts, tuple) else asked.cells
        found = [[w for w in wholes if set(w).issuperset(cells)] for cells in listed]
        kept = [k for k, holders in enumerate(found) if len(holders) == 1]
        if not kept or (isinstance(groups, Level) and len(kept) < len(found)):
            self._fail(f"expected groups that hold the parts of {attribute.name!r}", said, at=at)
        if isinstance(parts, tuple):
            return parts, found[0][0]
        labels, cells = (
            tuple([asked.labels[k] for k in kept]),
            tuple([asked.cells[k] for k in kept]),
        )
        inside = Level(asked.name, labels, cells)
        if not isinstance(groups, Level):
            return inside, groups
        return inside, Wholes(groups.name, tuple([found[k][0] for k in kept]))

    def _difference(self, start: int) -> Difference:
        self._need("of")
        self._space()
        first = self._counted() or Count(self._amount())
        self._need("and")
        self._space()
        second = self._counted()
        if second is None:
            place = self._at
            is_share = isinstance(first, Share)
            where, given = self._group() if is_share else self._amount(), self._given()
            if isinstance(first, Share):
                self._apart(first.of, {**where, **given}, place)
                first = Share(first.of, {**first.given, **given})
                second = Share(first.of, {**first.given, **where})
            else:
                first = Count(self._joined(first.where, given, start))
                second = Count(self._joined(where, given, start))
        if type(first) is not type(second):
            self._fail("expected two counts or two shares", self._text[start : self._at], at=start)
        return Difference(first, second)

    def _amount(self) -> Conditions:
        """Read the rows to count, or a sum and its rows, in brackets or not."""
        self._space()
        start = self._at
        bracket = self._symbol("(")
        if not (self._word("sum") and self._word("of")):
            self._at = start
            return self._group()
        place = self._at
        i = self._name()
        attribute = self._schema.attributes[i]
        if not isinstance(attribute.base, Clipped):
            part = self._text[place : self._at].strip()
            self._fail("expected a number that the schema clips", part, at=place)
        weights = tuple(sum_weights(attribute.base).tolist())
        where = {i: Summed(weights, attribute.base.low >= 0)}
        if self._symbol(","):
            where = self._joined(where, self._conditions(), start)
        if bracket and not self._symbol(")"):
            self._fail('expected a comma or ")" here')
        return where

    def _group(self) -> Conditions:
        """Read conditions, in brackets or not; "count" alone means all rows."""
        self._space()
        if self._symbol("("):
            self._word("count")
            self._word("of")
            self._space()
            where = {} if self._text.startswith(")", self._at) else self._conditions()
            if not self._symbol(")"):
                self._fail('expected a comma or ")" here')
            return where
        if self._word("count") and not self._word("of"):
            return {}
        return self._conditions()

    def _given(self) -> Conditions:
        """Read the groups that follow, if any do."""
        given: dict[int, Condition] = {}
        while self._word(*_GROUPS):
            start = self._at
            given = self._joined(given, self._conditions(), start)
        return given

    def _others(self, of: Conditions) -> Conditions:
        """Read the groups that follow; refuse attributes that ``of`` already names."""
        self._space()
        start = self._at
        given = self._given()
        self._apart(of, given, start)
        return given

    def _apart(self, of: Conditions, given: Conditions, at: int) -> None:
        for i in given:
            if i in of:
                name = self._schema.names[i]
                part = self._text[at : self._at].strip()
                self._fail(f"expected groups by other attributes than {name!r}", part, at=at)

    def _joined(self, first: Conditions, more: Conditions, at: int) -> dict[int, Condition]:
        self._apart(first, more, at)
        return {**first, **more}

    def _conditions(self) -> dict[int, Condition]:
        where: dict[int, Condition] = {}
        while True:
            self._space()
            start = self._at
            i, level = self._name_or_level()
            attribute = self._schema.attributes[i]
            cells = self._cells(attribute) if level is None else self._of_level(attribute, level)
            if i in where:
                part = self._text[start : self._at]
                self._fail(
                    "expected every attribute once; hint: sets of labels, a|b", part, at=start
                )
            where[i] = cells
            if not self._symbol(","):
                return where

    def _cells(self, attribute: Attribute) -> Cells | None:
        """Read the labels or the end of bins after a name, if any."""
        for sign in ("<", ">="):
            if self._symbol(sign):
                return self._beyond(attribute, sign)
        return self._chosen(lambda: self._label(attribute))

    def _of_level(self, attribute: Attribute, name: str) -> Cells | Level:
        """Read the groups after the name of a level, if any."""
        level = Level.of(attribute, name)
        return self._chosen(lambda: self._group_of(level)) or level

    def _chosen(self, label: Callable[[], Cells]) -> Cells | None:
        """Read all labels that follow, and return their cells, or None without labels."""
        if self._symbol("="):
            labels = [label()]
            while self._symbol("|"):
                labels.append(label())
        elif self._word("in"):
            if not self._symbol("("):
                self._fail('expected "(" and labels here')
            labels = [label()]
            while self._symbol(",") or self._symbol("|"):
                labels.append(label())
            if not self._symbol(")"):
                self._fail('expected a comma or ")" here')
        else:
            return None
        return tuple(sorted({k for cells in labels for k in cells}))

    def _beyond(self, attribute: Attribute, sign: str) -> Cells:
        """Return the bins below an edge, or from it on."""
        self._space()
        edges = attribute.edges or ()
        match = re.compile(_ENDPOINT + _END).match(self._text, self._at)
        k = None if match is None else edge_position(match[0], edges)
        if match is None or k is None or not 0 < k < len(edges) - 1:
            known = [edge_text(edge) for edge in edges[1:-1]]
            self._fail(f"expected an inner edge of {attribute.name!r}, {_some(known)}")
        self._at = match.end()
        return tuple(range(k) if sign == "<" else range(k, len(edges) - 1))

    def _label(self, attribute: Attribute) -> Cells:
        """Read a label and return its cells: one, or the bins between two edges."""
        self._space()
        texts = [(k, text) for k, label in enumerate(attribute.labels) for text in _written(label)]
        if (quoted := self._quote()) is not None:
            start, text = quoted
            for k, known in texts:
                if known == text:
                    return (k,)
            shown = self._text[start : self._at]
            expected = _expected(attribute, text)
            self._fail(expected, shown, attribute.labels, at=start, named=text)
        matches = [(self._match(text, attribute.edges is not None), k) for k, text in texts]
        end, k = max(matches, default=(0, 0))
        if end:
            self._at = end
            return (k,)
        between = _INTERVAL.match(self._text, self._at)
        if between is not None and attribute.edges is not None:
            if (bins := _bins(attribute.edges, between)) is not None:
                self._at = between.end()
                return bins
            ends = [edge_text(edge) for edge in attribute.edges]
            expected = (
                f"{_expected(attribute, '')}, or bins between two of its edges, {_some(ends)}"
            )
            self._fail(expected, between[0], attribute.labels)
        got = between[0] if between is not None else self._token(",|()")
        self._fail(_expected(attribute, got), got, attribute.labels)

    def _group_of(self, level: Level) -> Cells:
        """Read a group of a level and return its cells."""
        self._space()
        expected = f"expected a group of {level.name!r}, {_some(level.labels)}"
        if (quoted := self._quote()) is not None:
            start, text = quoted
            if text in level.labels:
                return level.cells[level.labels.index(text)]
            shown = self._text[start : self._at]
            self._fail(expected, shown, level.labels, at=start, named=text)
        end, k = max((self._match(str(text)), k) for k, text in enumerate(level.labels))
        if not end:
            self._fail(expected, self._token(",|()"), level.labels)
        self._at = end
        return level.cells[k]

    def _name_or_level(self) -> tuple[int, str | None]:
        """Read a name and return its attribute, or the attribute of the level of this name."""
        self._space()
        start, quoted = self._at, self._quote()
        level = None if quoted is None else quoted[1]
        if quoted is None:
            ends = {name: self._match(name) for name in (*self._levels, *self._schema.names)}
            longest = max(ends, key=ends.__getitem__)
            level = longest if ends[longest] else None
            self._at += max(ends[longest] - self._at, 0) if level in self._levels else 0
        if level in self._levels:
            return self._levels[level], level
        self._at = start
        return self._name(), None

    @cached_property
    def _levels(self) -> dict[str, int]:
        """The attributes by the names of their levels; shared names are left out."""
        listed = [(n, i) for i, a in enumerate(self._schema.attributes) for n, _ in a.groups or ()]
        named = [name for name, _ in listed]
        return {name: i for name, i in listed if named.count(name) == 1}

    def _name(self) -> int:
        """Read the name of an attribute and return its position in the schema."""
        self._space()
        names = self._schema.names
        if (quoted := self._quote()) is not None:
            start, name = quoted
            if name in names:
                return names.index(name)
            shown = self._text[start : self._at]
            self._fail(f"expected an attribute, {_some(names)}", shown, names, at=start, named=name)
        end, i = max((self._match(name), i) for i, name in enumerate(names))
        if not end:
            word = self._token(",|()=<>")
            self._fail(f"expected an attribute, {_some(names)}", word, names)
        self._at = end
        return i

    def _column(self) -> str:
        """Read the name of a column, which need not be an attribute."""
        self._space()
        if (quoted := self._quote()) is not None:
            return quoted[1]
        word = self._token(",|()=<>")
        if not word:
            self._fail("expected the name of a numeric column here")
        self._at += len(word)
        return word

    def _probabilities(self) -> tuple[float, ...]:
        probabilities = []
        while True:
            self._space()
            match = re.compile(_NUMBER + _END).match(self._text, self._at)
            if match is None or not 0 <= float(match[0]) <= 1:
                self._fail(
                    "expected probabilities between 0 and 1, like 0.5, 0.9", self._token(",")
                )
            self._at = match.end()
            probabilities.append(float(match[0]))
            if not self._symbol(","):
                return tuple(probabilities)

    def _match(self, text: str, bins: bool = False) -> int:
        """Return the end of this name or label if it is written here, else 0.

        In bins, spaces do not matter.
        """
        pieces = map(re.escape, re.findall(r"[\[(\])]|,|[^\s\[\](),]+", text) if bins else [text])
        match = re.compile(r"\s*".join(pieces) + _END).match(self._text, self._at)
        return match.end() if match is not None else 0

    def _quote(self) -> tuple[int, str] | None:
        """Read a part in quotes and return it with the place where it begins."""
        start = self._at
        if not self._text.startswith('"', start):
            return None
        match = re.compile(r'"((?:[^"]|"")*)"').match(self._text, start)
        if match is None:
            self._fail("expected another quote that ends this", self._text[start:])
        self._at = match.end()
        return start, match[1].replace('""', '"')

    def _word(self, *words: str) -> bool:
        """Return whether one of these words comes next, in any case; if so, read it."""
        self._space()
        for word in words:
            match = re.compile(word + r"(?=$|[\s,()])", re.IGNORECASE).match(self._text, self._at)
            if match is not None:
                self._at = match.end()
                return True
        return False

    def _need(self, word: str) -> None:
        if not self._word(word):
            self._fail(f'expected "{word}" here')

    def _symbol(self, symbol: str) -> bool:
        self._space()
        follows = self._text.startswith(symbol, self._at)
        self._at += len(symbol) * follows
        return follows

    def _space(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _token(self, ends: str = ",|()=<>") -> str:
        match = re.compile(rf"[^\s{re.escape(ends)}]*").match(self._text, self._at)
        return "" if match is None else match[0]

    def _fail(
        self,
        expected: str,
        part: str | None = None,
        known: Iterable[Category] = (),
        *,
        at: int | None = None,
        named: str | None = None,
    ) -> NoReturn:
        """Raise an error with the expected text, which marks the place."""
        at = self._at if at is None else at
        part = self._token() if part is None else part
        marked = f"{self._text[:at]}«{part}»{self._text[at + len(part) :]}"
        hint = near(part if named is None else named, known) if part else ""
        raise ParameterError(f"ask: {' '.join(marked.split())}: {expected}{hint}")


def _written(label: Category) -> tuple[str, ...]:
    """Return the forms of a label: booleans also as files write them."""
    return (str(label), str(label).lower()) if isinstance(label, bool) else (str(label),)


def _expected(attribute: Attribute, got: str) -> str:
    """Return the expected labels in words, and the form of a group."""
    levels = [level for level, groups in attribute.groups or () if got in dict(groups)]
    hint = f"; hint: that is a group, write {levels[0]}={got}" if levels else ""
    return f"expected a label of {attribute.name!r}, {_some(attribute.labels)}{hint}"


def _some(known: Iterable[Category]) -> str:
    """Return the first of several, in words."""
    texts = [str(one) for one in known]
    more = f", … ({len(texts)})" if len(texts) > _SHOWN else ""
    return ("one of " if len(texts) != 1 else "") + ", ".join(texts[:_SHOWN]) + more


def _bins(edges: Sequence[Edge], written: re.Match[str]) -> Cells | None:
    """Return the bins between two edges, for an interval that is written as a bin is."""
    low, high = (edge_position(written[k], edges) for k in (2, 3))
    if low is None or high is None or not low < high:
        return None
    closed = high == len(edges) - 1 and not is_open(edges[-1])
    opening, closing = ("(" if is_open(edges[low]) else "["), ("]" if closed else ")")
    if (written[1], written[4]) != (opening, closing):
        return None
    return tuple(range(low, high))
