"""The meaning of questions, by the grammar of :mod:`.words`.

Lark's LALR(1) parser reads a question from left to right in linear time, without recursion, and
knows at each point which words may follow.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

from lark import Token, Transformer, UnexpectedToken, v_args
from lark.exceptions import VisitError
from lark.tree import Meta

from domains.tables.clipped import Clipped

from ...text import one_of
from ..schema.dates import Edge, edge_position, edge_text
from ..schema.numbers import sum_weights
from ..schema.schema import Schema
from .nouns import Noun
from .periods import InexactError, Times
from .question import (
    HELD,
    NUMBER,
    Amount,
    AtOnce,
    Between,
    ByTick,
    Cdf,
    Cells,
    Change,
    Condition,
    Conditions,
    Count,
    Difference,
    Independence,
    Indicator,
    Level,
    Mean,
    Quantile,
    Question,
    Ratio,
    Regressed,
    Share,
    Summed,
    Top,
    Trend,
    Variance,
    Wholes,
    conditions_text,
    is_within,
    quoted,
)
from .shorter import question_text
from .tick_times import TickTimes
from .words import COMPARED, PROBABILITIES, TICKS, Reader, grammar, patterns

_BEFORE_TIME = "expected the attribute before this time, "
_ONE_TICK = "expected one tick, from 1 on, or by tick"
# a character that is no space
_SOLID = re.compile(r"\S")


_NOUNS = {noun: Noun() for noun in ("rows", "records", "people", "persons")}


def parsed(
    text: str,
    schema: Schema,
    tick: str | None = None,
    nouns: Mapping[str, Noun] = _NOUNS,
    times: TickTimes | None = None,
) -> Question:
    """Return the meaning of a question in words: a count, share, mean or other statistic.

    Args:
        text: the question.
        schema: the schema, with the names and labels that may occur.
        tick: the word for a tick (one release of a stream); None for a single release.
        nouns: nouns for the counted things, and for things that readers may think are counted.
        times: the times of the ticks, if known; a question may name them in place of numbers.

    Raises:
        RefusedError: the question does not follow the grammar, or names things that the schema does
            not have; in the message, « and » enclose the wrong part.
    """
    word = "tick" if times is None else times.kind
    lark, known = grammar()[0], patterns(tick or "tick", word)
    reader = Reader(text, schema, tick, nouns, None if times is None else times.cells)
    state, at = lark.parse_interactive(), 0
    try:
        while (solid := _SOLID.search(text, at)) is not None:
            at, may_follow = solid.start(), state.choices()
            found = (reader.token(n, p, at) for n, p in known.items() if n in may_follow)
            token = next(filter(None, found), None)
            if token is not None and token.type == "_AMID" and "_AMID" not in state.accepts():
                token = reader.token("_BETWEEN_TIME", known["_BETWEEN_TIME"], at)
            if token is None:
                token = reader.in_other_case(at, may_follow)
            if token is None:
                reader.refuse(at, state.accepts())
            if token.type == "LABEL":
                reader.check_label(token, may_follow)
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


class _Read(NamedTuple):
    """Conditions that were read in a question, and their position in its text."""

    where: dict[int, Condition]
    at: Meta | Token
    are_groups: bool = False
    are_with: bool = False  # whether they follow "with", and may be a group or a part of one
    are_times: bool = False  # whether they are a time; without cells, a noun for all rows


@dataclass(frozen=True)
class _Part:
    """A quantity in a question: its kind, conditions, groups, and position in the text."""

    kind: str  # "count", "bare" (conditions alone), "share", "per cent", "mean", other statistics
    of: dict[int, Condition]  # for a mean, the number only
    given: dict[int, Condition]
    at: Meta | Token

    @property
    def is_count(self) -> bool:
        return self.kind in ("count", "bare")


@v_args(meta=True)
class _Meaning(Transformer):
    """A transformer of a parsed question into its meaning; it has a method per grammar rule."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._reader, self._attributes = reader, reader.schema.attributes
        self._by_tick: ByTick | None = None  # None without ticks
        self._spans: list[tuple[int, Cells, Cells]] = []  # the two times of "from … to …"
        self._persons: tuple[str, Meta] | None = None  # a noun that needs groups

    def start(self, meta: Meta, children: list) -> Question:
        (asked,) = children
        if self._persons is not None:
            noun, at = self._persons
            names = self._reader.schema.names
            if not is_within(asked, [names.index(g) for g in self._reader.nouns[noun].groups]):
                self._fail_at_noun(noun, at)
        if self._by_tick is None:
            return asked
        if isinstance(asked, Top | Change | Trend):
            self._fail("expected no groups by tick in this question", meta)
        return self._by_tick._replace(of=asked)

    def form(self, meta: Meta, children: list) -> AtOnce:
        asked, more = children
        if isinstance(asked, _Part):
            return self._amount(self._with_more(asked, more))
        if more is None:
            return asked
        if not asked.given:
            self._fail('expected "by" and groups', more.at)
        if isinstance(asked, Indicator):
            own = asked.of
        elif isinstance(asked, Between):
            own = {asked.first: None, asked.second: None}
        else:
            own = {asked.attribute: None}
        self._check_other_attributes({**own, **asked.given}, more)
        return asked._replace(given={**asked.given, **more.where})

    def compared(self, meta: Meta, children: list) -> Ratio | Difference:
        word, first, second, *groups = children
        given = self._joined({}, *groups)
        if second.kind == "bare" and not first.is_count:
            self._check_other_attributes(
                first.of, _Read({**second.of, **second.given, **given}, second.at)
            )
            given = {**second.given, **given}
            first = replace(first, given={**first.given, **given})
            second = replace(first, given={**first.given, **second.of}, at=second.at)
        else:
            if first.is_count and second.is_count and not first.given:
                given |= second.given  # the last groups apply to both parts
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

    def gap_of_counts(self, meta: Meta, children: list) -> Ratio | Difference:
        word, *groups = children
        return self.gap(meta, [word, self._count_alone(meta, f"{word.lower()} of {{}}"), *groups])

    def _count_alone(self, meta: Meta, form: str) -> _Part:
        """Return a count for a question without that word; refuse it if it may mean a mean."""
        for attribute in self._attributes:
            if attribute.is_summed:
                whats = "count", f"mean of {quoted(attribute.name)}"
                both = [form.format(what) for what in whats]
                self._fail(f"expected {one_of(map(repr, both))}", meta, self._rewritten(whats))
        return self._part("count", meta, {}, [])

    def _rewritten(self, whats: Iterable[str]) -> list[str]:
        """Return questions with each of the words ``whats`` inserted before "between" or "by"."""
        text = self._reader.text
        places = [at for word in ("between", "by") if (at := text.lower().find(word)) >= 0]
        at = min(places, default=0)
        of = " of " if text[:at].strip() else ""
        return [f"{text[:at].rstrip()}{of}{what} {text[at:]}" for what in whats]

    def top(self, meta: Meta, children: list) -> Top:
        *before, part, more = children
        part = self._with_more(part, more)
        words = {token.type: token for token in before if isinstance(token, Token)}
        count = int(words["INT"]) if "INT" in words else 1
        if count < 1:
            self._fail("expected at least 1", words["INT"])
        for which in before:
            if isinstance(which, _Read):
                place = "of" if part.is_count else "given"
                part = replace(part, **{place: self._joined(getattr(part, place), which)})
        if part.is_count and (numbers := self._clipped_numbers({**part.of, **part.given})):
            (i, *_), whole = numbers, {**part.of, **part.given}
            rest = ", ".join(quoted(self._attributes[k].name) for k in whole if k not in numbers)
            asks = [f"top {count} of mean of {quoted(self._attributes[i].name)} by {rest}"]
            self._fail("expected groups with categories or bins", part.at, asks if rest else ())
        asked = [*(part.of.values() if part.kind != "mean" else ()), *part.given.values()]
        if not any(cells is None or isinstance(cells, Level) for cells in asked):
            asks = [f"{self._reader.text} by {quoted(name)}" for name in self._reader.schema.names]
            self._fail("expected groups to compare", part.at, asks)
        return Top(self._amount(part), count, bool({"TOP", "LARGEST"} & set(words)))

    def change(self, meta: Meta, children: list) -> Change:
        *_, part, earlier, later = children
        earlier, later = int(earlier), int(later)
        if not earlier or not later or earlier == later:
            self._fail("expected two ticks, from 1 on", meta)
        return Change(self._amount(part), (earlier, later))

    def change_of_count(self, meta: Meta, children: list) -> Change:
        *_, earlier, later = children
        return self.change(meta, [self._count_alone(meta, "change of {}"), earlier, later])

    def change_in_time(self, meta: Meta, children: list) -> Difference | Change:
        (part,) = children
        if len(self._spans) != 1:
            self._fail('expected "from" and "to", with two times', meta)
        i, first, last = self._spans[0]
        if i == TICKS:
            self._by_tick = None
            ticks = tuple(k + 1 for k in (*first, *last))
            if len(ticks) != 2:
                self._fail("expected the times of two ticks", meta)
            return Change(self._amount(part), ticks)
        place = "of" if i in part.of else "given"
        earlier, later = (
            replace(part, **{place: {**getattr(part, place), i: cells}}) for cells in (first, last)
        )
        return Difference(self._amount(later), self._amount(earlier))

    def trend(self, meta: Meta, children: list) -> Trend:
        return Trend(self._amount(self._with_more(*children)))

    def cdf(self, meta: Meta, children: list) -> Cdf:
        i, given = self._distribution(*children)
        return Cdf(i, given)

    def quantile(self, meta: Meta, children: list) -> Quantile:
        asked = [child for child in children if getattr(child, "type", "") == "PROBABILITY"]
        for probability in asked:
            if not 0 <= float(probability) <= 1:
                self._fail(PROBABILITIES, probability)
        i, given = self._distribution(*children[len(asked) :])
        return Quantile(i, tuple(map(float, asked)) or (0.5,), given)

    def indicator(self, meta: Meta, children: list) -> Indicator:
        name, *read = children
        part = self._part("indicator", meta, {}, read)
        for i in self._clipped_numbers({**part.of, **part.given}):
            own = self._attributes[i].name
            self._fail(f"expected attributes with categories or bins, not {own!r}", meta)
        if not any(cells is None or isinstance(cells, Level) for cells in part.of.values()):
            self._fail("expected the name of an attribute, for its categories", meta)
        return Indicator(name.type.lower(), part.of, part.given)

    def variance(self, meta: Meta, children: list) -> Variance:
        name, *parts = children
        parts = [part._replace(are_groups=True) for part in parts]
        part = self._part("mean", meta, {self._number(name)[0]: None}, parts)
        return Variance(next(iter(part.of)), part.given)

    def association(self, meta: Meta, children: list) -> Between:
        word, one, other, *parts = children
        first, second = (self._number(name)[0] for name in (one, other))
        parts = [part._replace(are_groups=True) for part in parts]
        part = self._part("mean", meta, {first: None}, parts)
        if first == second or second in part.given:
            self._fail("expected two different numbers, and groups of other attributes", meta)
        return Between(word.lower(), first, second, part.given)

    def regression(self, meta: Meta, children: list) -> Regressed:
        name, on = children
        return Regressed(self._number(name)[0], on)

    def logistic(self, meta: Meta, children: list) -> Regressed:
        name, *value, on = children
        i, cells = name.value
        (category,) = value[0].value if value else cells
        return Regressed(i, on, category)

    def independence(self, meta: Meta, children: list) -> Independence:
        one, other, *groups = children
        first, second = self._attribute(one), self._attribute(other)
        part = self._part("share", meta, {first: None}, groups)
        if first == second or second in part.given or any(part.given.values()):
            self._fail("expected different attributes, with no labels of groups", meta)
        return Independence(first, second, part.given)

    def terms(self, meta: Meta, children: list) -> tuple[tuple[int, ...], ...]:
        return tuple(children)

    def term(self, meta: Meta, children: list) -> tuple[int, ...]:
        return tuple([self._attribute(name) for name in children])

    def bracketed(self, meta: Meta, children: list) -> _Part:
        return replace(self._with_more(*children), at=meta)

    def count(self, meta: Meta, children: list) -> _Part:
        part = self._part("count", meta, {}, children)
        for i in self._clipped_numbers({**part.of, **part.given}):
            asks = [f"mean of {quoted(self._attributes[i].name)}"]
            self._fail("expected attributes with categories or bins", meta, asks)
        return part

    def held(self, meta: Meta, children: list) -> _Part:
        *who, what = [child for child in children if not child.are_groups]
        groups = [child for child in children if child.are_groups]
        return self.count(meta, [*who, self._with_yes(what), *groups])

    def grouped(self, meta: Meta, children: list) -> _Part:
        self._count_alone(meta, "{} by")
        return self.count(meta, children)

    def bare(self, meta: Meta, children: list) -> _Part:
        part = self._part("bare", meta, {}, children)
        for i in self._clipped_numbers(part.of):
            rest = {k: cells for k, cells in part.of.items() if k != i}
            return replace(part, kind="mean", of={i: None}, given={**rest, **part.given})
        return part

    def total(self, meta: Meta, children: list) -> _Part:
        part = self._part("count", meta, {}, children)
        for i, base in self._clipped_numbers(part.of).items():
            return replace(part, of={**part.of, i: _summed(base)})
        return part

    def sum(self, meta: Meta, children: list) -> _Part:
        names = [child for child in children if isinstance(child, Token)]
        numbers = [self._number(name) for name in names]
        if len({i for i, _ in numbers}) < len(numbers):
            self._fail("expected a number that is not yet in the product", names[-1])
        return self._part("count", meta, dict(numbers), children[len(names) :])

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
        groups = whole._replace(are_groups=True)
        return self._part(kind, meta, {}, [self._with_yes(part), groups, *given])

    def had_by_all(self, meta: Meta, children: list) -> _Part:
        kind = "per cent" if getattr(children[0], "type", "") == "PER_CENT" else "share"
        read = [child for child in children if isinstance(child, _Read)]
        part, *given = [child for child in read if child.where or not child.are_times]
        return self._part(kind, meta, {}, [self._with_yes(part), *given])

    def spread(self, meta: Meta, children: list) -> _Part:
        name, *given = children
        i, level = name.value
        return self._part("share", meta, {i: level}, given)

    def _with_yes(self, read: _Read) -> _Read:
        """Return conditions in which "employed" alone means ``employed=yes``."""
        where = dict(read.where)
        for i, cells in read.where.items():
            labels = [str(label).lower() for label in self._attributes[i].labels]
            own = tuple(k for k, label in enumerate(labels) if label in HELD)
            where[i] = own if cells is None and len(own) == 1 else cells
        return read._replace(where=where)

    def _clipped_numbers(self, where: Conditions) -> dict[int, Clipped]:
        """Return {index: queries} of the clipped numbers that are named without a condition."""
        bases = {i: self._attributes[i].base for i, cells in where.items() if cells is None}
        return {i: base for i, base in bases.items() if isinstance(base, Clipped)}

    def _part(
        self, kind: str, meta: Meta, of: dict[int, Condition], children: list[_Read]
    ) -> _Part:
        groups = [child for child in children if child.are_groups]
        of = self._joined(of, *(child for child in children if not child.are_groups))
        if kind in ("count", "bare"):  # "admitted in March" means bins of the attribute "admitted"
            times = [group for group in groups if group.are_times]
            named = [time for time in times if [of.get(i, ()) for i in time.where] == [None]]
            groups = [group for group in groups if group not in named]
            of |= {i: cells for time in named for i, cells in time.where.items()}
        given = self._joined({}, *groups)
        for group in groups:
            if kind not in ("share", "per cent"):
                self._check_other_attributes(of, group)
            elif group.are_with:
                both = of, self._with_yes(group).where
                one, two = (conditions_text(self._reader.schema, own) for own in both)
                asks = [f"share of {two} given {one}", f"share of {one} given {two}"]
                expected = 'expected "given" or "has" in place of "with", which may be either'
                self._fail(expected, group.at, asks)
            for i in [i for i in group.where if i in of]:
                of[i], given[i] = self._parts_in_groups(i, of[i], given[i], group)
        return _Part(kind, of, given, meta)

    def _with_more(self, part: _Part, more: _Read | None) -> _Part:
        """Return a quantity with more conditions: on its groups, or else on the rows it counts."""
        if more is None:
            return part
        if part.kind == "mean" and not part.given:
            self._fail('expected "by" and groups', more.at)
        self._check_other_attributes({**part.of, **part.given}, more)
        place = "given" if part.given else "of"
        return replace(part, **{place: {**getattr(part, place), **more.where}})

    def _amount(self, part: _Part) -> Amount:
        if part.is_count:
            return Count(self._joined(part.of, _Read(part.given, part.at)))
        if part.kind == "mean":
            return Mean(next(iter(part.of)), part.given)
        both = {**part.of, **part.given}
        for i, base in self._clipped_numbers(both).items():
            asks = [question_text(self._reader.schema, Count({**both, i: _summed(base)}))]
            self._fail("expected shares of categories or bins, not of a number", part.at, asks)
        return Share(part.of, part.given, part.kind == "per cent")

    def _parts_in_groups(
        self, i: int, parts: Condition, groups: Condition, said: _Read
    ) -> tuple[Condition, Condition]:
        """Return conditions on parts and groups, where each part is in exactly one group."""
        attribute = self._attributes[i]
        if not isinstance(groups, Level | tuple):
            self._fail_as_groups(i, said.at)
        wholes = groups.cells if isinstance(groups, Level) else (groups,)
        every = Level(attribute.name, attribute.labels, tuple((k,) for k in range(attribute.size)))
        asked = parts if isinstance(parts, Level) else every
        listed = (parts,) if isinstance(parts, tuple) else asked.cells
        found = [[w for w in wholes if set(w).issuperset(cells)] for cells in listed]
        kept = [k for k, holders in enumerate(found) if len(holders) == 1]
        # parts in no group are left out beside one group, and refused beside several
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
        words = {child.type for child in children if isinstance(child, Token)}
        where = children[-1].where if isinstance(children[-1], _Read) else {}
        if words - {"WITH"}:
            ends = [int(child) for child in children if getattr(child, "type", "") == "INT"]
            only: tuple[int | None, int | None] | None = (ends[0], ends[-1]) if ends else None
            if "SINCE" in words:
                only = ends[0], None
            elif "LAST_TICK" in words:
                only = None, None
            if 0 in ends or ends != sorted(ends):
                self._fail(_ONE_TICK, meta)
            self._of_ticks(only, meta)
        times = isinstance(children[-1], _Read) and children[-1].are_times
        return _Read(where, meta, are_groups=True, are_with="WITH" in words, are_times=times)

    def _of_ticks(
        self, only: tuple[int | None, int | None] | None, meta: Meta
    ) -> dict[int, Condition]:
        """Store the ticks that the question is about; return {}, since cells have no condition."""
        asked = ByTick(Count({}), only)
        if self._by_tick not in (None, asked):
            self._fail(_ONE_TICK, meta)
        self._by_tick = asked
        return {}

    def whose(self, meta: Meta, children: list[_Read]) -> _Read:
        return children[0]._replace(at=meta, are_groups=True)

    def noun(self, meta: Meta, children: list) -> _Read:
        (noun,) = children
        if self._reader.nouns[noun].groups:
            self._persons = noun, meta  # checked after all conditions are known
        elif self._reader.nouns[noun].fault:
            self._fail_at_noun(noun, meta)
        return _Read({}, meta, are_times=True)

    def _fail_at_noun(self, noun: str, meta: Meta) -> NoReturn:
        fault, groups, _ = self._reader.nouns[noun]
        start, end = meta.start_pos or 0, meta.end_pos or 0
        others = self._reader.with_noun(start, end)
        if groups:
            others = [f"how many {noun} by {', '.join(map(quoted, groups))}", *others]
        self._reader.fail(f"expected another noun: {fault}", start, end, others=others)

    def noun_alone(self, meta: Meta, children: list[_Read]) -> _Part:
        text, at = self._reader.text, children[0].at
        start, end = at.start_pos or 0, at.end_pos or 0
        noun = text[start:end]
        if self._reader.nouns[noun.lower()].may_be_amount:  # wages are one, stays are not
            asks = [f"{text[:start]}number of {noun}{text[end:]}"]
            self._fail('expected "number of" before it', at, asks)
        return self.count(meta, children)

    def times(self, meta: Meta, children: list) -> _Read:
        i, times = self._times(children[0], meta)
        periods = [child.value[0] for child in children]
        first, last = periods[0], periods[-1]
        try:
            cells = times.cells(first, last)
            if first != last:
                self._spans.append((i, times.cells(first, first), times.cells(last, last)))
        except InexactError as error:
            self._fail(str(error), meta)
        where: dict[int, Condition] = {i: cells}
        if i == TICKS:
            where = self._of_ticks((min(cells) + 1, max(cells) + 1), meta)
        return _Read(where, meta, are_groups=len(periods) > 1, are_times=True)

    def beyond_time(self, meta: Meta, children: list) -> _Read:
        word, period = children
        i, times = self._times(period, meta)
        try:
            cells = times.beyond(period.value[0], word.type.partition("_")[0].lower())
        except InexactError as error:
            self._fail(str(error), meta)
        where: dict[int, Condition] = {i: cells}
        if i == TICKS:  # up to the last tick so far, not to the last that may come
            last = max(cells) + 1 if word.type == "BEFORE" else None
            where = self._of_ticks((min(cells) + 1, last), meta)
        return _Read(where, meta, are_groups=True, are_times=True)

    def _times(self, period: Token, meta: Meta) -> tuple[int, Times]:
        """Return (index, times) of the only attribute with this period; ticks have index TICKS."""
        which, known = period.value[1], self._reader.times
        if len(which) > 1:
            names = [quoted(known[i].name) for i in which]
            before = self._reader.text[: period.start_pos].rstrip().rpartition(" ")[0]
            rest = self._reader.text[len(before) :]
            asks = [f"{before} {name}{rest}".strip() for name in names]
            expected = f"{_BEFORE_TIME}{one_of(names)}"
            if TICKS in which:
                names, asks = names[:-1], asks[:-1]
                tick = "the number of a tick in its place, like tick 1"
                expected = f"{_BEFORE_TIME}{one_of(names)}, or {tick}"
            self._fail(expected, meta, asks)
        return which[0], known[which[0]]

    def conditions(self, meta: Meta, children: list[_Read]) -> _Read:
        where: dict[int, Condition] = {}
        for one in children:
            if where.keys() & one.where:
                self._fail("expected every attribute once; hint: sets of labels, a|b", one.at)
            where |= one.where
        return _Read(where, meta, are_times=all(one.are_times for one in children))

    merged = conditions

    def named(self, meta: Meta, children: list) -> _Read:
        i, level = children[0].value
        return _Read({i: level}, meta)

    def labels(self, meta: Meta, children: list) -> _Read:
        (i, _), *values = (child.value for child in children)
        cells = tuple(sorted({k for cells in values for k in cells}))
        return _Read({i: cells}, meta)

    def label(self, meta: Meta, children: list) -> _Read:
        i, cells = children[0].value
        return _Read({i: cells}, meta)

    def label_beyond(self, meta: Meta, children: list) -> _Read:
        label, *bound = children
        return self.conditions(meta, [self.label(meta, [label]), self.beyond_alone(meta, bound)])

    def beyond_alone(self, meta: Meta, children: list) -> _Read:
        return self.beyond(meta, [self._only_binned(meta), *children])

    def between_alone(self, meta: Meta, children: list) -> _Read:
        return self.between(meta, [self._only_binned(meta), *children])

    def _only_binned(self, meta: Meta) -> Token:
        """Return a token for the only attribute with bins; refuse other questions."""
        inside = [i for i, a in enumerate(self._attributes) if a.edges is not None]
        if len(inside) != 1:
            names = [self._attributes[i].name for i in inside] or self._reader.schema.names
            self._fail(f"expected an attribute before it, {one_of(names)}", meta)
        return Token("NAME", (inside[0], None), meta.start_pos, end_pos=meta.end_pos)  # pyright: ignore[reportArgumentType] (a token of any value)

    def beyond(self, meta: Meta, children: list) -> _Read:
        name, sign, edge = children
        i, edges = self._edges(name, edge)
        if edges is None:
            return _Read(
                {i: self._categories_where(i, edge, lambda x: COMPARED[sign.type](x, float(edge)))},
                meta,
            )
        k = edge_position(edge.value, edges)
        if k is None or not 0 < k < len(edges) - 1:
            self._reader.fail_at_edge(self._attributes[i], edge.start_pos or 0, edge.end_pos or 0)
        bins = range(k) if sign.type == "LESS_THAN" else range(k, len(edges) - 1)
        return _Read({i: tuple(bins)}, meta)

    def between(self, meta: Meta, children: list) -> _Read:
        name, low, high = children
        i, edges = self._edges(name, low)
        if edges is None:
            cells = self._categories_where(i, high, lambda x: float(low) <= x <= float(high))
            return _Read({i: cells}, meta)
        first = self._edge(i, low, edges, 0)
        last = self._edge(i, high, edges, first + 1)
        return _Read({i: tuple(range(first, last))}, meta)

    def _edges(self, name: Token, edge: Token) -> tuple[int, Sequence[Edge] | None]:
        """Return an attribute's index and bin edges; None for edges if categories are numbers."""
        i, level = name.value
        attribute = self._attributes[i]
        kinds = {type(one) for one in attribute.categories or [""]}
        is_number = kinds <= {int, float} and re.fullmatch(NUMBER, edge) is not None
        if level is not None or (attribute.edges is None and not is_number):
            self._reader.fail_at_edge(attribute, edge.start_pos or 0, edge.end_pos or 0)
        return i, attribute.edges

    def _edge(self, i: int, edge: Token, edges: Sequence[Edge], first: int) -> int:
        """Return the position of an edge, at least ``first``, among ``edges``; refuse others."""
        k = edge_position(edge.value, edges)
        if k is None or k < first:
            known = [edge_text(one) for one in edges[first:]]
            self._fail(f"expected an edge of {self._attributes[i].name!r}, {one_of(known)}", edge)
        return k

    def _categories_where(self, i: int, edge: Token, test: Callable[[float], bool]) -> Cells:
        """Return the indices of the numeric categories of attribute ``i`` that satisfy ``test``."""
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
            asks = [f"median of {quoted(self._attributes[i].name)}"]
            self._fail("expected a number that the schema clips", name, asks)
        return i, _summed(base)

    def _distribution(self, name: Token, *read: _Read) -> tuple[int, dict[int, Condition]]:
        """Return the index of the attribute whose distribution is asked for, and the groups."""
        i = self._attribute(name)
        given = self._joined({i: None}, *read)
        del given[i]
        return i, given

    def _joined(self, first: Conditions, *more: _Read) -> dict[int, Condition]:
        joined = dict(first)
        for one in more:
            self._check_other_attributes(joined, one)
            joined |= one.where
        return joined

    def _check_other_attributes(self, of: Conditions, given: _Read) -> None:
        for i in given.where:
            if i in of:
                self._fail_as_groups(i, given.at)

    def _fail_as_groups(self, i: int, at: Meta | Token) -> NoReturn:
        name = self._attributes[i].name
        self._fail(f"expected groups by other attributes than {name!r}", at)

    def _fail(self, expected: str, at: Meta | Token, asks: Iterable[str] = ()) -> NoReturn:
        self._reader.fail(expected, at.start_pos or 0, at.end_pos or 0, asks=asks)


def _summed(base: Clipped) -> Summed:
    return Summed(tuple(sum_weights(base).tolist()), base.low >= 0)
