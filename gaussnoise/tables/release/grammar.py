"""The grammar of questions, and how their names and labels are read by a schema.

Lark's LALR(1) parser reads a question from left to right in linear time, without recursion, and
knows at every place which words may follow. Names and labels may hold blanks and commas: at places
where they may stand, the longest one of the schema is taken.
"""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple, NoReturn

from lark import Lark, Token, Transformer, UnexpectedToken, v_args
from lark.exceptions import VisitError
from lark.tree import Meta

from domains.tables.clipped import Clipped

from ...errors import ParameterError
from ...text import near, one_of
from ..schema.dates import Edge, edge_position, edge_text, is_open
from ..schema.numbers import sum_weights
from ..schema.schema import Attribute, Category, Schema
from .question import (
    ENDPOINT,
    INTERVAL,
    NUMBER,
    Amount,
    AtOnce,
    ByTick,
    Cdf,
    Cells,
    Change,
    Condition,
    Conditions,
    Count,
    Difference,
    Level,
    Mean,
    Quantile,
    Question,
    Ratio,
    Share,
    Summed,
    Top,
    Wholes,
)

# words that stand before names of the same spelling have priority 2
_GRAMMAR = rf"""
    start: _ASK? (form | compared | top | change) _MARK?
    form: (plain | cdf | quantile) [_AND conditions]
    compared: (RATIO | DIFFERENCE) _OF operand (_AND | _TO) (plain | bracketed given*)
        | (RATIO | DIFFERENCE) (_OF | _OVER) plain _BETWEEN conditions _AND conditions given* -> gap
    top: (TOP INT | BOTTOM INT | LARGEST | SMALLEST) _OF? operand [_AND conditions]
       | _WHICH conditions _HAS (LARGEST | SMALLEST) _OF? operand [_AND conditions]
    change: _CHANGE _OF operand _FROM _TICK INT _TO _TICK INT
        | DIFFERENCE (_OF | _OVER) plain _BETWEEN _TICK INT _AND _TICK INT
    cdf: _CDF _OF NAME ("," conditions)? given*
    quantile: _QUANTILE PROBABILITY ("," PROBABILITY)* _OF NAME ("," conditions)? given*
        | _MEDIAN _OF? NAME ("," conditions)? given*

    ?operand: plain | bracketed
    bracketed: "(" plain [_AND conditions] ")"
    ?plain: count | total | share | sum | mean | bare
    count: (_COUNT | _HOW_MANY (_OF? _PEOPLE)? _ARE?) (_OF group | ","? conditions)? given*
    total: _TOTAL (_OF? group | "," conditions)? given*
    share: (_SHARE | _FRACTION | PER_CENT) _OF group given*
        | (_SHARE | _FRACTION | PER_CENT) _OF group _HAS conditions given* -> had
    sum: _SUM _OF? NAME ("," conditions)? given*
    mean: (_MEAN | _AVERAGE) _OF? NAME ("," conditions)? given*
    bare: conditions given*

    ?group: conditions | "(" conditions (_AND conditions)? ")" -> merged
    given: (_GIVEN | _BY | _FOR) (conditions | TICK ("," conditions)?) | OVER_TIME | _AT_TICK INT
    conditions: condition ("," condition)*
    condition: NAME -> named
        | NAME ("=" | _IS) VALUE ("|" VALUE)* -> labels
        | NAME _IN "(" VALUE (("," | "|") VALUE)* ")" -> labels
        | NAME (LESS_THAN | AT_LEAST | MORE_THAN) EDGE -> beyond
        | NAME _BETWEEN EDGE _AND EDGE -> between

    _COUNT.2: /count/i
    _SHARE.2: /share/i
    RATIO.2: /ratio/i
    DIFFERENCE.2: /difference/i
    _CDF.2: /cdf/i
    _QUANTILE.2: /quantiles?/i
    _MEDIAN.2: /median/i
    _SUM.2: /sum/i
    _MEAN.2: /mean/i
    _HOW_MANY: /how\s+many(\s+(rows|records))?|number/i
    _PEOPLE: /people|persons|rows|records/i
    _ARE: /(are|were)(\s+there)?|have|has|had/i
    _FRACTION: /fraction|proportion|distribution/i
    _OVER: /in/i
    OVER_TIME: /over\s+time/i
    _AT_TICK: /(in|at)\s+tick/i
    _TOTAL: /total/i
    _AVERAGE: /average/i
    PER_CENT: /per\s*cent(age)?/i
    TOP: /top/i
    BOTTOM: /bottom/i
    LARGEST: /largest|highest|most(\s+common)?/i
    SMALLEST: /smallest|lowest|least(\s+common)?/i
    _CHANGE: /change/i
    _WHICH: /which/i
    _HAS: /(has|have|had)(\s+the)?/i
    _OF.2: /of/i
    _TO.2: /to/i
    _AND.2: /and/i
    _GIVEN.2: /given/i
    _BY.2: /by/i
    _FOR: /for(\s+each)?|in\s+each|among|where|with|if|per/i
    _IN.2: /in(?!\s+(each|tick))/i
    _IS: /is/i
    LESS_THAN: /<(?!=)|(less|younger|fewer|lower)\s+than|under|below/i
    AT_LEAST: />=|at\s+least/i
    MORE_THAN: />(?!=)|(more|older|higher|greater)\s+than|over(?!\s+time)|above/i
    _BETWEEN: /between/i
    _FROM: /from/i
    _TICK: /tick/i
    TICK: /tick/i
    _ASK: /what(\s+(is|are|was|were))?(\s+the)?|the/i
    _MARK: "?"
    INT: /[0-9]{{1,9}}/
    PROBABILITY: /{NUMBER}/
    EDGE: /{ENDPOINT}/
    %declare NAME VALUE
"""
_SIGNS = {"COMMA": "a comma", "$END": "the end of the question", "INT": "a whole number"}
_SIGNS |= {"LPAR": '"("', "RPAR": '")"', "EQUAL": '"="', "VBAR": '"|"'}
_QUIET = {
    "_ASK",
    "_MARK",
    "_IS",
    "_PEOPLE",
    "_ARE",
    "_FRACTION",
    "_OVER",
    "OVER_TIME",
}  # words that no message offers
_COMPARED = {"LESS_THAN": operator.lt, "AT_LEAST": operator.ge, "MORE_THAN": operator.gt}
_SOLID = re.compile(r"\S")
_SEPARATOR = re.compile(r"[\s,|()=<>?]|$")


@cache
def _grammar() -> tuple[Lark, dict[str, re.Pattern[str] | None]]:
    """Return the parser, and the pattern of every terminal in the order in which they are tried."""
    lark = Lark(_GRAMMAR, parser="lalr", lexer="basic", propagate_positions=True)
    written = {one.name: re.compile(one.pattern.to_regexp()) for one in lark.terminals}
    early = {one.name: written[one.name] for one in lark.terminals if one.priority}
    return lark, {**early, "NAME": None, "VALUE": None, **written}


def parsed(text: str, schema: Schema) -> Question:
    """Return the meaning of a question.

    Raises:
        ParameterError: it does not follow the grammar, or names what the schema does not have; the
            message puts « and » around the wrong part.
    """
    if not isinstance(text, str):
        raise ParameterError(
            f'ask: expected a question like "count of sex=F", got {type(text).__name__}'
        )
    lark, patterns = _grammar()
    reader = _Reader(text, schema)
    state, at = lark.parse_interactive(), 0
    try:
        while (solid := _SOLID.search(text, at)) is not None:
            at, may_follow = solid.start(), state.choices()
            found = (reader.token(n, p, at) for n, p in patterns.items() if n in may_follow)
            token = next(filter(None, found), None)
            if token is None:
                reader.refuse(at, state.accepts())
            state.feed_token(token)
            at = reader.end
        at = len(text)
        tree = state.feed_eof()
    except UnexpectedToken:
        reader.refuse(at, state.accepts())
    try:
        return _Meaning(reader).transform(tree)
    except VisitError as error:
        raise error.orig_exc from None


class _Reader:
    """The text of a question, the names and labels in it, and refusals that mark its faults."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema, self.end = text, schema, 0
        self._named: tuple[int, Level | None] | None = None  # the last name
        self._last = ""  # the last terminal that is a word
        self._texts: dict[tuple[int, str | None], dict[str, Cells]] = {}

    def token(self, name: str, pattern: re.Pattern[str] | None, at: int) -> Token | None:
        """Return a terminal that is written here, with the end in ``self.end``."""
        value: Any = None
        if name == "NAME":
            self._named = value = self._name(at)
        elif name == "VALUE":
            value = self._value(at)
        elif pattern is not None and (match := pattern.match(self.text, at)) is not None:
            value, self.end = match[0], match.end()
            if value[-1].isalnum() and not _SEPARATOR.match(self.text, self.end):
                return None
            self._last = self._last if name == "_OF" else name
        if value is None:
            return None
        return Token(name, value, at, end_pos=self.end)

    def _name(self, at: int) -> tuple[int, Level | None] | None:
        """Return the position of the attribute named here, or of the level, with that level."""
        if (name := self._longest(at, self._names)) is None:
            return None
        i, level = self._names[name]
        return i, None if level is None else Level.of(self.schema.attributes[i], level)

    @cached_property
    def _names(self) -> dict[str, tuple[int, str | None]]:
        """The attributes by their names, and by those of their levels that are not shared."""
        listed = [(n, i) for i, a in enumerate(self.schema.attributes) for n, _ in a.groups or ()]
        shared = [name for name, _ in listed]
        named: dict[str, tuple[int, str | None]] = {
            name: (i, name) for name, i in listed if shared.count(name) == 1
        }
        return named | {name: (i, None) for i, name in enumerate(self.schema.names)}

    def _known(self, i: int, level: Level | None) -> Mapping[str, Cells]:
        """Return the cells of every label, or group of a level, by its text."""
        place = i, level and level.name
        if place not in self._texts and level is not None:
            self._texts[place] = dict(zip(map(str, level.labels), level.cells, strict=True))
        elif place not in self._texts:
            labels = list(enumerate(self.schema.attributes[i].labels))
            # booleans also as files write them
            lower = {str(one).lower(): (k,) for k, one in labels if isinstance(one, bool)}
            self._texts[place] = lower | {str(one): (k,) for k, one in reversed(labels)}
        return self._texts[place]

    def _value(self, at: int) -> Cells | None:
        """Return the cells of the label, or group of a level, that is written here."""
        i, level = self._named or (0, None)
        attribute, known = self.schema.attributes[i], self._known(i, level)
        if (label := self._longest(at, known)) is not None:
            return known[label]
        between = INTERVAL.match(self.text, at)
        if between is None or attribute.edges is None or level is not None:
            return None
        self.end = between.end()
        if (bins := _bins(attribute.edges, between)) is None:
            ends = [edge_text(edge) for edge in attribute.edges]
            expected = f"{_expected(attribute)}, or bins between two of its edges, {one_of(ends)}"
            self.fail(expected, at, self.end, attribute.labels)
        return bins

    def _longest(self, at: int, known: Mapping[str, object]) -> str | None:
        """Return the longest known text that is written here, or the one in quotes."""
        if self.text.startswith('"', at):
            match = re.compile(r'"((?:[^"]|"")*)"').match(self.text, at)
            if match is None:
                self.fail("expected another quote that ends this", at, len(self.text))
            self.end, text = match.end(), match[1].replace('""', '"')
            return text if text in known else None
        most = max(map(len, known), default=0)
        ends = _SEPARATOR.finditer(self.text, at, min(at + most + 1, len(self.text)))
        for end in reversed([match.start() for match in ends if match.start() - at <= most]):
            if self.text[at:end] in known:
                self.end = end
                return self.text[at:end]
        return None

    def refuse(self, at: int, accepted: Collection[str]) -> NoReturn:
        """Refuse the word here, and say which ones may stand in its place."""
        match = re.compile(r'"(?:[^"]|"")*"|[^\s,|()=<>?]*').match(self.text, at)
        end = at if match is None else match.end()
        i, level = self._named or (0, None)
        attribute = self.schema.attributes[i]
        if "VALUE" in accepted and level is None:
            interval = INTERVAL.match(self.text, at)
            end = end if interval is None else interval.end()
            expected = _expected(attribute, self.text[at:end].strip('"'))
            self.fail(expected, at, end, attribute.labels)
        if "VALUE" in accepted and level is not None:
            expected = f"expected a group of {level.name!r}, {one_of(level.labels)}"
            self.fail(expected, at, end, level.labels)
        if "EDGE" in accepted:
            self.fail(_expected_edge(attribute), at, end)
        if "PROBABILITY" in accepted:
            self.fail("expected probabilities between 0 and 1, like 0.5, 0.9", at, end)
        words = [name for name in _grammar()[1] if name in accepted and name not in _QUIET]
        said = [_SIGNS.get(name, name.strip("_").lower().replace("_", " ")) for name in words]
        said = [word if word in _SIGNS.values() else f'"{word}"' for word in said if word != "name"]
        known = [word.strip('"') for word in said]
        if at == 0 or self._last == "_ASK":
            listed = ", ".join(known[:-1])
            expected = f"expected a question that starts with one of {listed}, or an attribute"
        elif "NAME" in accepted and self._last in ("_SUM", "_MEAN", "_AVERAGE"):
            clipped = [a.name for a in self.schema.attributes if a.clip is not None]
            listed = one_of(clipped) if clipped else "of which it has none"
            expected = f"expected a number that the schema clips, {listed}"
        elif "NAME" in accepted:
            expected = f"expected an attribute, {one_of(self.schema.names)}"
            if len(said) > 2:
                expected += f", or one of {', '.join(said)}"
        else:
            *others, last = said or [_SIGNS["$END"]]
            expected = f"expected {', '.join(others)}{' or ' * bool(others)}{last} here"
        names = self._names if "NAME" in accepted else ()
        self.fail(expected, at, end, [*known, *names])

    def fail(self, expected: str, start: int, end: int, known: Iterable[Category] = ()) -> NoReturn:
        """Raise an error with the expected text, which marks the place."""
        part = self.text[start:end].strip()
        end = start + len(part)
        marked = f"{self.text[:start]}«{part}»{self.text[end:]}"
        named = part.strip('"').replace('""', '"')
        hint = near(named, known) if part else ""
        raise ParameterError(f"ask: {' '.join(marked.split())}: {expected}{hint}")


class _Read(NamedTuple):
    """Conditions, and where they are written."""

    where: dict[int, Condition]
    at: Meta | Token
    are_groups: bool = False


@dataclass(frozen=True)
class _Part:
    """An amount as it is written: "count", "bare" conditions, "share", "per cent" or "mean"."""

    kind: str
    of: dict[int, Condition]  # a mean has its number alone
    given: dict[int, Condition]
    at: Meta | Token

    @property
    def is_count(self) -> bool:
        return self.kind in ("count", "bare")


@v_args(meta=True)
class _Meaning(Transformer):
    """The meaning of every rule of the grammar, from the meanings of its parts."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__()
        self._reader, self._attributes = reader, reader.schema.attributes
        self._by_tick: ByTick | None = None  # without a question

    def start(self, meta: Meta, children: list) -> Question:
        (asked,) = children
        if self._by_tick is None:
            return asked
        if isinstance(asked, Top | Change):
            self._fail("expected no groups by tick in this question", meta)
        return self._by_tick._replace(of=asked)

    def form(self, meta: Meta, children: list) -> AtOnce:
        asked, more = children
        if isinstance(asked, _Part):
            return self._amount(self._extended(asked, more))
        if more is None:
            return asked
        if not asked.given:
            self._fail('expected "by" and groups', more.at)
        self._apart({asked.attribute: None, **asked.given}, more)
        return asked._replace(given={**asked.given, **more.where})

    def compared(self, meta: Meta, children: list) -> Ratio | Difference:
        word, first, second, *groups = children
        given = self._joined({}, *groups)
        if second.kind == "bare" and not first.is_count:
            self._apart(first.of, _Read({**second.of, **second.given, **given}, second.at))
            given = {**second.given, **given}
            first = replace(first, given={**first.given, **given})
            second = replace(first, given={**first.given, **second.of}, at=second.at)
        else:
            if first.is_count and second.is_count and not first.given:
                given |= second.given  # the last groups are those of both
                second = replace(second, given={})
            first, second = (
                replace(part, given=self._joined(part.given, _Read(given, part.at)))
                for part in (first, second)
            )
        if first.kind != second.kind and not (first.is_count and second.is_count):
            self._fail("expected two counts or two sums, shares or means", meta)
        both = self._amount(first), self._amount(second)
        return Ratio(*both) if word.type == "RATIO" else Difference(*both)

    def gap(self, meta: Meta, children: list) -> Ratio | Difference:
        word, part, first, second, *groups = children
        place = "of" if part.is_count else "given"
        both = [
            self._amount(replace(part, **{place: self._joined(getattr(part, place), own, *groups)}))
            for own in (first, second)
        ]
        return Ratio(*both) if word.type == "RATIO" else Difference(*both)

    def top(self, meta: Meta, children: list) -> Top:
        *before, part, more = children
        part = self._extended(part, more)
        words = {token.type: token for token in before if isinstance(token, Token)}
        count = int(words["INT"]) if "INT" in words else 1
        if count < 1:
            self._fail("expected at least 1", words["INT"])
        for which in before:
            if isinstance(which, _Read):
                place = "of" if part.is_count else "given"
                part = replace(part, **{place: self._joined(getattr(part, place), which)})
        asked = [*part.of.values(), *part.given.values()]
        if not any(cells is None or isinstance(cells, Level) for cells in asked):
            hint = " or ".join(f"by {name}" for name in self._reader.schema.names[:2])
            self._fail(f"expected groups to compare; hint: {hint}", part.at)
        return Top(self._amount(part), count, bool({"TOP", "LARGEST"} & set(words)))

    def change(self, meta: Meta, children: list) -> Change:
        *_, part, earlier, later = children
        earlier, later = int(earlier), int(later)
        if not earlier or not later or earlier == later:
            self._fail("expected two ticks, from 1 on", meta)
        return Change(self._amount(part), (earlier, later))

    def cdf(self, meta: Meta, children: list) -> Cdf:
        i, given = self._distribution(*children)
        return Cdf(i, given)

    def quantile(self, meta: Meta, children: list) -> Quantile:
        asked = [child for child in children if getattr(child, "type", "") == "PROBABILITY"]
        for probability in asked:
            if not 0 <= float(probability) <= 1:
                self._fail("expected probabilities between 0 and 1, like 0.5, 0.9", probability)
        i, given = self._distribution(*children[len(asked) :])
        return Quantile(i, tuple(map(float, asked)) or (0.5,), given)

    def bracketed(self, meta: Meta, children: list) -> _Part:
        return replace(self._extended(*children), at=meta)

    def count(self, meta: Meta, children: list) -> _Part:
        part = self._part("count", meta, {}, children)
        for i in self._clipped({**part.of, **part.given}):
            name = self._attributes[i].name
            self._fail(
                f"expected attributes with categories or bins; hint: mean of {name}, as the "
                "schema clips it",
                meta,
            )
        return part

    def bare(self, meta: Meta, children: list) -> _Part:
        part = self._part("bare", meta, {}, children)
        for i in self._clipped(part.of):
            rest = {k: cells for k, cells in part.of.items() if k != i}
            return replace(part, kind="mean", of={i: None}, given={**rest, **part.given})
        return part

    def total(self, meta: Meta, children: list) -> _Part:
        part = self._part("count", meta, {}, children)
        for i, base in self._clipped(part.of).items():
            return replace(part, of={**part.of, i: _summed(base)})
        return part

    def sum(self, meta: Meta, children: list) -> _Part:
        name, *parts = children
        i, summed = self._number(name)
        return self._part("count", meta, {i: summed}, parts)

    def mean(self, meta: Meta, children: list) -> _Part:
        name, *parts = children
        parts = [part._replace(are_groups=True) for part in parts]
        return self._part("mean", meta, {self._number(name)[0]: None}, parts)

    def share(self, meta: Meta, children: list) -> _Part:
        if isinstance(children[0], Token):
            return self._part("per cent", meta, {}, children[1:])
        return self._part("share", meta, {}, children)

    def had(self, meta: Meta, children: list) -> _Part:
        kind = "per cent" if isinstance(children[0], Token) else "share"
        whole, part, *given = [child for child in children if isinstance(child, _Read)]
        return self._part(kind, meta, {}, [part, whole._replace(are_groups=True), *given])

    def _clipped(self, where: Conditions) -> dict[int, Clipped]:
        """Return the bases of the numbers that are named without a condition."""
        bases = {i: self._attributes[i].base for i, cells in where.items() if cells is None}
        return {i: base for i, base in bases.items() if isinstance(base, Clipped)}

    def _part(
        self, kind: str, meta: Meta, of: dict[int, Condition], children: list[_Read]
    ) -> _Part:
        groups = [child for child in children if child.are_groups]
        of = self._joined(of, *(child for child in children if not child.are_groups))
        given = self._joined({}, *groups)
        for group in groups:
            if kind not in ("share", "per cent"):
                self._apart(of, group)
            for i in [i for i in group.where if i in of]:
                of[i], given[i] = self._within(i, of[i], given[i], group)
        return _Part(kind, of, given, meta)

    def _extended(self, part: _Part, more: _Read | None) -> _Part:
        """Return an amount with more conditions after "and": of its groups, if it has some."""
        if more is None:
            return part
        if part.kind == "mean" and not part.given:
            self._fail('expected "by" and groups', more.at)
        self._apart({**part.of, **part.given}, more)
        place = "given" if part.given else "of"
        return replace(part, **{place: {**getattr(part, place), **more.where}})

    def _amount(self, part: _Part) -> Amount:
        if part.is_count:
            return Count(self._joined(part.of, _Read(part.given, part.at)))
        if part.kind == "mean":
            return Mean(next(iter(part.of)), part.given)
        return Share(part.of, part.given, part.kind == "per cent")

    def _within(
        self, i: int, parts: Condition, groups: Condition, said: _Read
    ) -> tuple[Condition, Condition]:
        """Return parts of an attribute, and the group that each is a part of."""
        attribute = self._attributes[i]
        if not isinstance(groups, Level | tuple):
            self._fail(f"expected groups by other attributes than {attribute.name!r}", said.at)
        wholes = groups.cells if isinstance(groups, Level) else (groups,)
        every = Level(attribute.name, attribute.labels, tuple((k,) for k in range(attribute.size)))
        asked = parts if isinstance(parts, Level) else every
        listed = (parts,) if isinstance(parts, tuple) else asked.cells
        found = [[w for w in wholes if set(w).issuperset(cells)] for cells in listed]
        kept = [k for k, holders in enumerate(found) if len(holders) == 1]
        if not kept or (isinstance(groups, Level) and len(kept) < len(found)):
            self._fail(f"expected groups that hold the parts of {attribute.name!r}", said.at)
        if isinstance(parts, tuple):
            return parts, found[0][0]
        labels, cells = [asked.labels[k] for k in kept], [asked.cells[k] for k in kept]
        inside = Level(asked.name, tuple(labels), tuple(cells))
        if not isinstance(groups, Level):
            return inside, groups
        return inside, Wholes(groups.name, tuple([found[k][0] for k in kept]))

    # conditions

    def given(self, meta: Meta, children: list) -> _Read:
        if isinstance(children[0], Token):
            word = children[0]
            only = int(word) if word.type == "INT" else None
            asked = ByTick(Count({}), only)
            if only == 0 or self._by_tick not in (None, asked):
                self._fail("expected one tick, from 1 on, or by tick", meta)
            self._by_tick = asked
        where = children[-1].where if isinstance(children[-1], _Read) else {}
        return _Read(where, meta, are_groups=True)

    def conditions(self, meta: Meta, children: list[_Read]) -> _Read:
        where: dict[int, Condition] = {}
        for one in children:
            if where.keys() & one.where:
                self._fail("expected every attribute once; hint: sets of labels, a|b", one.at)
            where |= one.where
        return _Read(where, meta)

    merged = conditions

    def named(self, meta: Meta, children: list) -> _Read:
        i, level = children[0].value
        return _Read({i: level}, meta)

    def labels(self, meta: Meta, children: list) -> _Read:
        (i, _), *values = (child.value for child in children)
        cells = tuple(sorted({k for cells in values for k in cells}))
        return _Read({i: cells}, meta)

    def beyond(self, meta: Meta, children: list) -> _Read:
        name, sign, edge = children
        i, edges = self._edges(name, edge)
        if edges is None:
            return _Read(
                {i: self._numbered(i, edge, lambda x: _COMPARED[sign.type](x, float(edge)))}, meta
            )
        k = edge_position(edge.value, edges)
        if k is None or not 0 < k < len(edges) - 1:
            self._fail(_expected_edge(self._attributes[i]), edge)
        bins = range(k) if sign.type == "LESS_THAN" else range(k, len(edges) - 1)
        return _Read({i: tuple(bins)}, meta)

    def between(self, meta: Meta, children: list) -> _Read:
        name, low, high = children
        i, edges = self._edges(name, low)
        if edges is None:
            cells = self._numbered(i, high, lambda x: float(low) <= x <= float(high))
            return _Read({i: cells}, meta)
        first = self._edge(i, low, edges, 0)
        last = self._edge(i, high, edges, first + 1)
        return _Read({i: tuple(range(first, last))}, meta)

    def _edges(self, name: Token, edge: Token) -> tuple[int, Sequence[Edge] | None]:
        """Return an attribute with its edges; None for one whose categories are numbers."""
        i, level = name.value
        attribute = self._attributes[i]
        kinds = {type(one) for one in attribute.categories or [""]}
        is_number = kinds <= {int, float} and re.fullmatch(NUMBER, edge) is not None
        if level is not None or (attribute.edges is None and not is_number):
            self._fail(_expected_edge(attribute), edge)
        return i, attribute.edges

    def _edge(self, i: int, edge: Token, edges: Sequence[Edge], first: int) -> int:
        """Return the position of an edge, which is at least the first one that is possible."""
        k = edge_position(edge.value, edges)
        if k is None or k < first:
            known = [edge_text(one) for one in edges[first:]]
            self._fail(f"expected an edge of {self._attributes[i].name!r}, {one_of(known)}", edge)
        return k

    def _numbered(self, i: int, edge: Token, test: Callable[[float], bool]) -> Cells:
        """Return the categories, all of them numbers, that meet a condition."""
        categories: Any = self._attributes[i].categories
        cells = tuple(k for k, number in enumerate(categories) if test(number))
        if not cells:
            self._fail(f"expected {self._attributes[i].name!r} of {one_of(categories)}", edge)
        return cells

    # names

    def _attribute(self, name: Token) -> int:
        i, level = name.value
        if level is not None:
            self._fail(f"expected an attribute, {one_of(self._reader.schema.names)}", name)
        return i

    def _number(self, name: Token) -> tuple[int, Summed]:
        i = self._attribute(name)
        base = self._attributes[i].base
        if not isinstance(base, Clipped):
            hint = f"; hint: median of {self._attributes[i].name}"
            self._fail(f"expected a number that the schema clips{hint}", name)
        return i, _summed(base)

    def _distribution(self, name: Token, *read: _Read) -> tuple[int, dict[int, Condition]]:
        """Return an attribute and the groups of its distribution, which are of others."""
        i = self._attribute(name)
        given = self._joined({i: None}, *read)
        del given[i]
        return i, given

    def _joined(self, first: Conditions, *more: _Read) -> dict[int, Condition]:
        joined = dict(first)
        for one in more:
            self._apart(joined, one)
            joined |= one.where
        return joined

    def _apart(self, of: Conditions, given: _Read) -> None:
        for i in given.where:
            if i in of:
                name = self._attributes[i].name
                self._fail(f"expected groups by other attributes than {name!r}", given.at)

    def _fail(self, expected: str, at: Meta | Token) -> NoReturn:
        self._reader.fail(expected, at.start_pos or 0, at.end_pos or 0)


def _summed(base: Clipped) -> Summed:
    return Summed(tuple(sum_weights(base).tolist()), base.low >= 0)


def _expected(attribute: Attribute, got: str = "") -> str:
    """Return the expected labels in words, and the form of a group."""
    levels = [level for level, groups in attribute.groups or () if got in dict(groups)]
    hint = f"; hint: that is a group, write {levels[0]}={got}" if levels else ""
    return f"expected a label of {attribute.name!r}, {one_of(attribute.labels)}{hint}"


def _expected_edge(attribute: Attribute) -> str:
    """Return the expected edges in words."""
    if attribute.clip is not None:
        hint = f"which is clipped, without bins; hint: mean of {attribute.name}"
    elif attribute.edges is None:
        hint = f"which has none; hint: {attribute.name}=" + "|".join(map(str, attribute.labels[:3]))
    else:
        hint = one_of(edge_text(edge) for edge in attribute.edges[1:-1])
    return f"expected an inner edge of {attribute.name!r}, {hint}"


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
