"""The words of questions: a grammar, with the names and labels of a schema.

Names and labels may contain blanks and commas. If several of the schema match at a place, the
longest is taken.
"""

import operator
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, NoReturn

from lark import Lark, Token

from ...text import nearest, one_of
from ..schema.dates import Edge, edge_position, edge_text, is_open
from ..schema.schema import Attribute, Category, Schema
from .dropped import is_typo
from .nouns import Noun
from .periods import PERIOD, Period, Times, kind_of, period_of, times_of
from .question import ENDPOINT, INTERVAL, NUMBER, Cells, Level, RefusedError, quoted

# words that stand before names have priority 2 over names of the same spelling; _NO_GROUP is the
# text after "in" if no groups follow
_NO_GROUP = r"\s*[\[(]|\s+(each|ticks?\s|(the\s+)?la(te)?st\s+tick)"
_IN = rf"in\s+each|in(\s+the\b)?(?!{_NO_GROUP})"
_GRAMMAR = rf"""
    start: _ASK? (form | compared | top | change | trend | model) _SO_FAR? _MARK?
    ?model: regression | independence
    form: (plain | cdf | quantile | indicator | variance | association) [_AND conditions]
    compared: (RATIO | DIFFERENCE) _OF operand (_AND | _TO) (plain | bracketed given*)
        | (RATIO | DIFFERENCE) (_OF | _OVER) plain _AMID conditions _AND conditions given* -> gap
        | (RATIO | DIFFERENCE) _AMID conditions _AND conditions given* -> gap_of_counts
    top: (TOP INT | BOTTOM INT | LARGEST | SMALLEST) _OF? operand [_AND conditions]
       | _WHICH conditions _HAS (LARGEST | SMALLEST) _OF? operand [_AND conditions]
       | (TOP INT | BOTTOM INT) _OF? conditions _BY (share | sum | mean) [_AND conditions]
    change: _CHANGE (_OF | _OVER) operand (_FROM _TICK INT _TO | _AMID _TICK INT _AND) _TICK INT
        | DIFFERENCE (_OF | _OVER) plain _AMID _TICK INT _AND _TICK INT
        | (DIFFERENCE | _CHANGE) _AMID _TICK INT _AND _TICK INT -> change_of_count
        | _CHANGE (_OF | _OVER) operand -> change_in_time
    trend: _TREND (_OF | _OVER)? operand [_AND conditions]
    cdf: _CDF _OF NAME ("," conditions)? given*
    quantile: _QUANTILE PROBABILITY ("," PROBABILITY)* _OF NAME ("," conditions)? given*
        | _MEDIAN _OF? NAME ("," conditions)? given*

    indicator: (ENTROPY | CONCENTRATION | ODDS_RATIO) _OF conditions (_AND conditions)? given*
    variance: _VARIANCE _OF? NAME ("," conditions)? whose? given*
    association: COVARIANCE (_OF | _AMID) NAME _AND NAME ("," conditions)? whose? given*
        | CORRELATION (_OF | _AMID) NAME _AND NAME ("," conditions)? whose? given*
    regression: _REGRESSION _OF NAME _ON terms
        | _LOGISTIC? _REGRESSION _OF (NAME ("=" | _IS) VALUE | LABEL) _ON terms -> logistic
    independence: _INDEPENDENCE _OF NAME _AND NAME given*
        | _ARE NAME _AND NAME (_INDEPENDENT | _DEPENDENT) given*
        | _IS NAME (_INDEPENDENT _OF | _DEPENDENT (_ON | _TO)) NAME given*
        | _DOES NAME _DEPEND _ON NAME given*
    terms: term (("," | _AND) term)*
    term: NAME (":" NAME)*

    ?operand: plain | bracketed
    bracketed: "(" plain [_AND conditions] ")"
    ?plain: count | total | share | sum | mean | bare
    count: (_COUNT | _HOW_MANY) (_OF? noun)? _ARE? (_OF group | ","? conditions)? given*
        | noun given* -> noun_alone
        | _HOW_MANY (_OF? noun | conditions)? _HAS conditions given* -> held
        | _BY conditions given* -> grouped
    total: _TOTAL (_OF? group whose? | "," conditions)? given*
    share: (_SHARE | _FRACTION | PER_CENT) (_OF | _BY) group given*
        | (_SHARE | _FRACTION | PER_CENT) _of_all group given* -> had_by_all
        | (_SHARE | _FRACTION | PER_CENT) _OF group _HAS conditions given* -> had
        | NAME _DISTRIBUTION given* -> spread
    sum: _SUM _OF? NAME (_TIMES NAME)* ("," conditions)? whose? given*
    mean: (_MEAN | _AVERAGE) _OF? NAME ("," conditions)? whose? given*
    bare: conditions whose? given*

    _of_all: _OF noun (_FOR | WITH | _HAS) | _HAS
    noun: NOUN
    ?group: conditions | "(" conditions (_AND conditions)? ")" -> merged
    whose: _OF (conditions | noun)
    given: (_GIVEN | _BY | _FOR | WITH) (conditions | TICK (("," | _AND) conditions)?)
        | (BEFORE | SINCE_TIME | AFTER) PERIOD -> beyond_time
        | _FROM_TIME PERIOD _TO PERIOD -> times
        | _BETWEEN_TIME PERIOD _AND PERIOD -> times
        | OVER_TIME | _AT_TICK INT | _AT_TICK INT _TO INT | SINCE INT | LAST_TICK
    conditions: condition ("," condition)*
    condition: NAME -> named
        | NAME ("=" | _IS) VALUE ("|" VALUE)* -> labels
        | NAME _IN "(" VALUE (("," | "|") VALUE)* ")" -> labels
        | NAME (LESS_THAN | AT_LEAST | MORE_THAN) EDGE -> beyond
        | NAME _BETWEEN EDGE _AND EDGE -> between
        | LABEL -> label
        | PERIOD -> times
        | LABEL (LESS_THAN | AT_LEAST | MORE_THAN) EDGE -> label_beyond
        | (LESS_THAN | AT_LEAST | MORE_THAN) EDGE -> beyond_alone
        | _BETWEEN EDGE _AND EDGE -> between_alone

    _COUNT.2: /count/i
    _SHARE.2: /share/i
    RATIO.2: /ratio/i
    DIFFERENCE.2: /difference/i
    _CDF.2: /cdf/i
    _QUANTILE.2: /quantiles?/i
    _MEDIAN.2: /median/i
    _SUM.2: /sum/i
    _MEAN.2: /mean/i
    _TIMES: /times/i
    _HOW_MANY: /how\s+many|(total\s+)?number/i
    ENTROPY: /entropy/i
    CONCENTRATION: /concentration/i
    ODDS_RATIO: /odds[\s_]+ratio/i
    _VARIANCE: /variance/i
    COVARIANCE: /covariance/i
    CORRELATION: /correlation/i
    _REGRESSION: /regression/i
    _LOGISTIC: /logistic/i
    _ON: /on/i
    _INDEPENDENCE: /independence/i
    _INDEPENDENT: /independent/i
    _DEPENDENT: /dependent|related/i
    _DOES: /does/i
    _DEPEND: /depend/i
    _ARE: /(are|were)(\s+there)?/i
    _FRACTION: /fraction|proportion|distribution/i
    _DISTRIBUTION: /distribution/i
    _OVER: /in/i
    OVER_TIME: /over\s+time/i
    _AT_TICK: /(in|at)\s+ticks?/i
    SINCE: /since\s+tick/i
    SINCE_TIME: /since(?!\s+tick)/i
    BEFORE: /before/i
    AFTER: /after/i
    _FROM_TIME.2: /from(?!\s+tick)(?=\s+{PERIOD})/i
    LAST_TICK: /(in|at)(\s+the)?\s+(last|latest)\s+tick/i
    _SO_FAR: /so\s+far/i
    _TOTAL: /total/i
    _AVERAGE: /average/i
    PER_CENT: /per\s*cent(age)?/i
    TOP: /top/i
    BOTTOM: /bottom/i
    LARGEST: /largest|highest|most(\s+common)?/i
    SMALLEST: /smallest|lowest|least(\s+common)?/i
    _CHANGE: /change/i
    _TREND: /trend/i
    _WHICH: /which/i
    _HAS: /(has|have|had)(\s+(the|an?)\b)?/i
    _OF.2: /of/i
    _TO.2: /to/i
    _AND.2: /and/i
    _GIVEN.2: /given/i
    _BY.2: /by/i
    _FOR: /for(\s+each)?|{_IN}|among|where|if|per|during|on(?=\s+\d)/i
    WITH: /with/i
    _IN.2: /in(?=\s*[\[(])/i
    _IS: /is/i
    LESS_THAN: /<(?!=)|(less|younger|fewer|lower)\s+than|under|below/i
    AT_LEAST: />=|at\s+least/i
    MORE_THAN: />(?!=)|(more|older|higher|greater)\s+than|over(?!\s+time)|above/i
    _BETWEEN: /between(?=\s+[-+.]?(\d|inf\b))/i
    _AMID: /between(?!\s+[-+.]?(\d|inf\b))/i
    _BETWEEN_TIME: /between(?=\s+{PERIOD})/i
    _FROM: /from/i
    _TICK: /tick/i
    TICK: /tick/i
    _ASK: /(what(\s+(is|are|was|were))?|show(\s+me)?|list|compare)(\s+the)?|the/i
    _MARK: "?"
    INT: /[0-9]{{1,9}}/
    PROBABILITY: /{NUMBER}/
    EDGE: /{ENDPOINT}/
    %declare NAME VALUE LABEL NOUN PERIOD
"""
PROBABILITIES = "expected probabilities between 0 and 1, like 0.5, 0.9"
_SIGNS = {"COMMA": "a comma", "$END": "the end of the question", "INT": "a whole number"}
_SIGNS |= {
    "COLON": '":"',
    "_AMID": '"between"',
    "LPAR": '"("',
    "RPAR": '")"',
    "EQUAL": '"="',
    "VBAR": '"|"',
}
_QUIET = {
    "_ASK",
    "_MARK",
    "_IS",
    "NOUN",
    "PERIOD",
    "BEFORE",
    "SINCE_TIME",
    "AFTER",
    "_FROM_TIME",
    "_BETWEEN_TIME",
    "_ARE",
    "_DOES",
    "_FRACTION",
    "_OVER",
    "OVER_TIME",
    "_DISTRIBUTION",
    "_SO_FAR",
    "_TIMES",
    "LAST_TICK",
    "NAME",
    "LABEL",
}  # not suggested in messages
TICKS = -1  # stands for the ticks of a stream where an attribute's index does for its cells
_TICKS = {"_AT_TICK", "SINCE", "LAST_TICK", "_TICK", "TICK"}  # which a stream calls by its own word
COMPARED = {"LESS_THAN": operator.lt, "AT_LEAST": operator.ge, "MORE_THAN": operator.gt}
_PERIOD = re.compile(PERIOD, re.IGNORECASE)
_SEPARATOR = re.compile(r"[\s,|()=<>?:]|$")


@cache
def grammar() -> tuple[Lark, dict[str, re.Pattern[str] | None]]:
    """Return (parser of questions, {terminal: pattern} in the order of trying terminals).

    Terminals are the smallest parts of a question in the grammar.
    """
    lark = Lark(_GRAMMAR, parser="lalr", lexer="basic", propagate_positions=True)
    written = {one.name: re.compile(one.pattern.to_regexp()) for one in lark.terminals}
    early = {one.name: written[one.name] for one in lark.terminals if one.priority}
    own = dict.fromkeys(("LABEL", "NOUN", "PERIOD"))
    return lark, {**early, "NAME": None, "VALUE": None, **written, **own}


@cache
def patterns(tick: str, kind: str = "tick") -> dict[str, re.Pattern[str] | None]:
    """Return {terminal: pattern}, where ``tick`` is another word for a tick of a stream.

    ``kind`` is the kind of period of the ticks, like "month": "by month" then asks for each tick.
    Before a number, ``kind`` does not mean a tick: "week 5" is a week of the year.
    """
    either = f"(?:tick|{re.escape(tick)})"
    found = {
        name: re.compile(pattern.pattern.replace("tick", either))
        if pattern is not None and name in {*_TICKS, "_FOR", "SINCE_TIME", "_FROM_TIME"}
        else pattern
        for name, pattern in grammar()[1].items()
    }
    return found | {"TICK": re.compile(rf"(?i:{either}|{kind}(?!\s+\d))")}


class Reader:
    """A reader of one question, which finds its names and labels.

    Errors mark the part of the question that is refused.
    """

    def __init__(
        self,
        text: str,
        schema: Schema,
        tick: str | None,
        nouns: Mapping[str, Noun],
        ticks: Times | None,
    ) -> None:
        self.text, self.schema, self._tick, self.end = text, schema, tick, 0
        self.nouns, self._ticks = nouns, ticks
        self._named: tuple[int, Level | None] | None = None  # the last name
        self._subject: int | None = None  # index of the attribute named last
        self._last = ""  # the last terminal that is a word
        self._texts: dict[tuple[int, str | None], dict[str, Cells]] = {}

    def token(self, name: str, pattern: re.Pattern[str] | None, at: int) -> Token | None:
        """Return the token for a terminal at index ``at`` of the text; None if it is not there.

        It sets ``self.end`` to the index where the token ends.
        """
        value: Any = None
        if name == "NAME":
            self._named = value = self._name(at)
            self._subject = self._subject if value is None else value[0]
        elif name == "VALUE":
            value = self._value(at)
        elif name == "LABEL":
            label = self._longest(at, self.alone)
            value = None if label is None else self.alone[label]
        elif name == "NOUN":
            value = self._noun(at)
        elif name == "PERIOD":
            value = self._period(at)
        elif pattern is not None and (match := pattern.match(self.text, at)) is not None:
            value, self.end = match[0], match.end()
            if value[-1].isalnum() and not _SEPARATOR.match(self.text, self.end):
                return None
            self._last = self._last if name == "_OF" else name
        if value is None:
            return None
        return Token(name, value, at, end_pos=self.end)

    def in_other_case(self, at: int, may_follow: Collection[str]) -> Token | None:
        """Return the token of a name or label at ``at``, written with other capitals; or None.

        None is also returned if several are possible.

        Call it only if nothing else matches, so that no other meaning is lost.
        """
        i, level = self._named or (0, None)
        known: dict[str, Mapping[str, Any]] = {
            "NAME": self._names,
            "VALUE": self._known(i, level),
            "LABEL": self.alone,
        }
        found: list[tuple[str, str, int]] = []
        for kind in (kind for kind in known if kind in may_follow):
            folded: dict[str, set[str]] = {}
            for text in known[kind]:
                folded.setdefault(text.casefold(), set()).add(text)
            if (written := self._longest(at, folded, folded=True)) is not None:
                found += [(kind, text, self.end) for text in folded[written]]
        if len(found) != 1:
            return None
        [(kind, text, self.end)] = found
        value = known[kind][text]
        if kind == "NAME":
            value = value[0], value[1] and Level.of(self.schema.attributes[value[0]], value[1])
            self._named, self._subject = value, value[0]
        return Token(kind, value, at, end_pos=self.end)

    def check_label(self, token: Token, may_follow: Collection[str]) -> None:
        """Refuse a label that is also a noun for all rows, or a time of another attribute."""
        start, end = token.start_pos or 0, token.end_pos or 0
        noun = self._noun(start) if "NOUN" in may_follow else None
        period = self._period(start) if noun is None and "PERIOD" in may_follow else None
        self.end = end
        i = token.value[0]
        if noun is None and (period is None or period[1] == [i]):
            return
        own = f"{quoted(self.schema.names[i])}={quoted(self.text[start:end].strip(chr(34)))}"
        what = "what the tables count" if period is None else "a time"
        asks = [f"{self.text[:start]}{own}{self.text[end:]}"]
        same = self.with_noun(start, end) if noun is not None else []
        expected = f"expected {own} in full, since it is a label and {what}"
        self.fail(expected, start, end, asks=asks, same=same)

    def _noun(self, at: int) -> str | None:
        """Return the noun for counted things that stands at this index of the text, or None."""
        for noun in self.nouns:
            end = at + len(noun)
            if self.text[at:end].lower() == noun and _SEPARATOR.match(self.text, end):
                self.end = end
                return noun
        return None

    def _period(self, at: int) -> tuple[Period, list[int]] | None:
        """Return (period at this index, attributes that it may belong to); or None."""
        match = _PERIOD.match(self.text, at)
        period = None if match is None or not self.times else period_of(match[0])
        if match is None or period is None:
            return None
        self.end = match.end()
        # the attribute named last before, if its cells are times; else all of times
        return period, [i for i in self.times if i == self._subject] or list(self.times)

    @cached_property
    def times(self) -> Mapping[int, Times]:
        """{attribute index: times of its cells}, for attributes whose cells are times.

        The times of the ticks of a stream, if known, are last, with :data:`TICKS` as their index.
        """
        found = ((i, times_of(attribute)) for i, attribute in enumerate(self.schema.attributes))
        known = {i: times for i, times in found if times is not None}
        return known | ({} if self._ticks is None else {TICKS: self._ticks})

    def _name(self, at: int) -> tuple[int, Level | None] | None:
        """Return (attribute index, level or None) of the name at this index; None if no name."""
        if (name := self._longest(at, self._names)) is None:
            return None
        i, level = self._names[name]
        return i, None if level is None else Level.of(self.schema.attributes[i], level)

    @cached_property
    def _names(self) -> dict[str, tuple[int, str | None]]:
        """{name: (attribute index, level or None)}, without level names that attributes share."""
        listed = [(n, i) for i, a in enumerate(self.schema.attributes) for n, _ in a.groups or ()]
        shared = [name for name, _ in listed]
        named: dict[str, tuple[int, str | None]] = {
            name: (i, name) for name, i in listed if shared.count(name) == 1
        }
        titles = [(a.title, i) for i, a in enumerate(self.schema.attributes) if a.title is not None]
        named = {own: (i, None) for title, i in titles for own in (title.lower(), title)} | named
        named |= {name: (i, None) for i, name in enumerate(self.schema.names)}
        kinds = [(kind_of(self.schema.attributes[i]), i) for i in self.times if i != TICKS]
        only = {kind: i for kind, i in kinds if kind and [k for k, _ in kinds].count(kind) == 1}
        # "by month" where the bins of one attribute are months, and nothing else is called so
        return {kind: (i, None) for kind, i in only.items() if kind != self._tick} | named

    @cached_property
    def alone(self) -> dict[str, tuple[int, Cells]]:
        """{label: (attribute index, cells)} for labels and groups that only one attribute has."""
        found: dict[str, list[tuple[int, Cells]]] = {}
        for i, attribute in enumerate(self.schema.attributes):
            own = attribute.categories or ()
            listed: list[tuple[Category, Cells]] = [(label, (k,)) for k, label in enumerate(own)]
            for name, _ in attribute.groups or ():
                level = Level.of(attribute, name)
                listed += zip(level.labels, level.cells, strict=True)
            for label, cells in listed:
                if isinstance(label, str) and label[:1].isalpha():
                    found.setdefault(label, []).append((i, cells))
        return {
            label: places[0]
            for label, places in found.items()
            if len({*places}) == 1 and label not in self._names
        }

    def _known(self, i: int, level: Level | None) -> Mapping[str, Cells]:
        """Return {text: its cells} for every label of an attribute, or every group of a level."""
        place = i, level and level.name
        if place not in self._texts and level is not None:
            self._texts[place] = dict(zip(map(str, level.labels), level.cells, strict=True))
        elif place not in self._texts:
            attribute = self.schema.attributes[i]
            labels = list(enumerate(attribute.labels))
            # booleans also in lower case, as files have them
            lower = {str(one).lower(): (k,) for k, one in labels if isinstance(one, bool)}
            cells = {str(one): (k,) for k, one in reversed(labels)}
            spelt = {text: cells[name] for name, own in attribute.spellings for text in own}
            self._texts[place] = lower | spelt | cells
        return self._texts[place]

    def _value(self, at: int) -> Cells | None:
        """Return the cells of the label, group or interval that stands at this index; or None."""
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

    def _longest(self, at: int, known: Mapping[str, object], *, folded: bool = False) -> str | None:
        """Return the longest known text at this index, or the text in quotes; or None."""
        if self.text.startswith('"', at):
            match = re.compile(r'"((?:[^"]|"")*)"').match(self.text, at)
            if match is None:
                self.fail("expected another quote that ends this", at, len(self.text))
            self.end, text = match.end(), match[1].replace('""', '"')
            text = text.casefold() if folded else text
            return text if text in known else None
        most = max(map(len, known), default=0)
        ends = _SEPARATOR.finditer(self.text, at, min(at + most + 1, len(self.text)))
        for end in reversed([match.start() for match in ends if match.start() - at <= most]):
            text = self.text[at:end].casefold() if folded else self.text[at:end]
            if text in known:
                self.end = end
                return text
        return None

    def refuse(self, at: int, accepted: Collection[str]) -> NoReturn:
        """Raise an error for the word at this index; it lists the words that could replace it."""
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
            self.fail_at_edge(attribute, at, end)
        if "PROBABILITY" in accepted:
            self.fail(PROBABILITIES, at, end)
        quiet = _QUIET | ({*COMPARED, "_BETWEEN"} if "NAME" in accepted else set())  # after names
        quiet |= _TICKS if self._tick is None else set()
        words = [name for name in grammar()[1] if name in accepted and name not in quiet]
        said = [_SIGNS.get(name, name.strip("_").lower().replace("_", " ")) for name in words]
        said = [word if word in _SIGNS.values() else f'"{word}"' for word in said]
        known = [word.strip('"') for word in said]
        if at == 0 or self._last == "_ASK":
            listed = ", ".join(known[:-1])
            expected = f"expected a question that starts with one of {listed}, or an attribute"
        elif "NAME" in accepted and self._last in ("_SUM", "_TIMES", "_MEAN", "_AVERAGE"):
            clipped = [a.name for a in self.schema.attributes if a.is_summed]
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
        is_noun = "NOUN" in accepted and self._last == "_HOW_MANY"
        others = self.with_noun(at, end) if is_noun else ()
        self.fail(expected, at, end, [*known, *names], others=others)

    def with_noun(self, start: int, end: int) -> list[str]:
        """Return the question with a part replaced by a noun for counted things, as a list; or [].

        The noun replaces the text from ``start`` to ``end``.
        """
        written = self.text[start:end].lower()
        known = [noun for noun, own in self.nouns.items() if not own.fault and noun != written]
        return [f"{self.text[:start]}{noun}{self.text[end:]}" for noun in known[:1]]

    def fail_at_edge(self, attribute: Attribute, start: int, end: int) -> NoReturn:
        """Raise an error that lists the inner edges of an attribute."""
        expected, name = f"expected an inner edge of {attribute.name!r}, ", quoted(attribute.name)
        if attribute.is_summed:
            asks = [f"mean of {name}"]
            self.fail(f"{expected}which is clipped, without bins", start, end, asks=asks)
        if attribute.edges is None:
            some = "|".join(quoted(str(label)) for label in attribute.labels[:3])
            self.fail(f"{expected}which has none", start, end, asks=[f"count of {name}={some}"])
        self.fail(expected + one_of(edge_text(edge) for edge in attribute.edges[1:-1]), start, end)

    def fail(
        self,
        expected: str,
        start: int,
        end: int,
        known: Iterable[Category] = (),
        asks: Iterable[str] = (),
        same: Iterable[str] = (),
        others: Iterable[str] = (),
    ) -> NoReturn:
        """Raise an error that marks this part of the question and states the expected text.

        The error suggests the question with the most similar known word, questions with the same
        meaning, and other questions: see :class:`.RefusedError`.
        """
        part = self.text[start:end].strip()
        end = start + len(part)
        marked = f"{self.text[:start]}«{part}»{self.text[end:]}"
        named = part.strip('"').replace('""', '"')
        close = nearest(named, known) if part else None
        corrected: list[str] = []
        if close is not None and is_typo(named, str(close)):
            corrected = [f"{self.text[:start]}{quoted(str(close))}{self.text[end:]}"]
        raise RefusedError(
            f"ask: {' '.join(marked.split())}: {expected}", corrected or asks, same, others
        )


def _expected(attribute: Attribute, got: str = "") -> str:
    """Return a text for errors: the labels of an attribute, and a hint if ``got`` is a group."""
    levels = [level for level, groups in attribute.groups or () if got in dict(groups)]
    hint = f"; hint: that is a group, write {levels[0]}={got}" if levels else ""
    return f"expected a label of {attribute.name!r}, {one_of(attribute.labels)}{hint}"


def _bins(edges: Sequence[Edge], written: re.Match[str]) -> Cells | None:
    """Return the bins that make up a written interval, like "[0, 65)"; None if there are none."""
    low, high = (edge_position(written[k], edges) for k in (2, 3))
    if low is None or high is None or not low < high:
        return None
    closed = high == len(edges) - 1 and not is_open(edges[-1])
    opening, closing = ("(" if is_open(edges[low]) else "["), ("]" if closed else ")")
    if (written[1], written[4]) != (opening, closing):
        return None
    return tuple(range(low, high))
