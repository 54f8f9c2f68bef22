"""Suggestions of questions that can be answered, when a question is refused."""

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from ...errors import GaussNoiseError, ParameterError
from ..schema.schema import Schema
from .dropped import is_kept, turns_round
from .question import HELD, ByTick, Change, Question, RefusedError, Trend, quoted
from .shorter import conditions_text, question_text, shorter

T = TypeVar("T")

_TABLES = 2  # most tables in a refusal
_MOST, _LONGEST = 400, 6  # most characters that are read, and most words of a name or label
_WORD = re.compile(r'"(?:[^"]|"")*"|[^\s,|()=<>?;:.]+')
_TIMES = re.compile(r"\b(day|week|month|quarter|year|wave|round)(s?)\b", re.I)
_KINDS = {
    "trend": r"trend|ris(e|es|ing|en)|fall|falls|falling|grow|grows|growing|over time",
    "share": r"shares?|per\s*cent|percentages?|proportions?|fractions?|rates?|probability",
    "mean": r"means?|averages?|earns?|typical",
    "compared": r"differences?|gap|between|more|less|fewer|versus|vs|compared?|than|change[ds]?",
    "top": r"top|most|largest|highest|biggest|best",
}


def answer_or_hint(
    text: object,
    schema: Schema,
    tick: str | None,
    tables: Sequence[Sequence[str]],
    read: Callable[[str], Question],
    answer: Callable[[Question, str], T],
) -> T:
    """Return the answer to a question, or refuse it and suggest questions that have answers.

    Args:
        text: the question.
        schema: the schema, with the names and labels that questions may have.
        tick: the word for a tick of a stream; None for a release.
        tables: the names of the attributes of every table.
        read: a function from a text to its meaning.
        answer: a function from a meaning and its text to the answer.

    Raises:
        ParameterError: no text, or a question that is not understood or has no answer. ``answer``
            accepts every question that the message suggests.
    """
    if not isinstance(text, str):
        raise ParameterError(
            f'ask: expected a question like "count of sex=F", got {type(text).__name__}'
        )
    asked = None
    try:
        asked = read(text)
        return answer(asked, text)
    except ParameterError as error:
        if tick is None and isinstance(asked, Change | Trend | ByTick):
            raise  # these tables have no ticks, but those of another folder answer the question
        refused = error

    def is_answered(other: str) -> bool:
        try:
            answer(read(other), other)
        except GaussNoiseError:
            return False
        return other != text

    fault = str(refused).partition("; hint: ")[0]
    refused = refused if isinstance(refused, RefusedError) else RefusedError(str(refused))
    kept = [*(one for one in refused.asks if is_kept(text, one)), *refused.same]
    if known := list(filter(is_answered, kept)):
        listed = " or ".join(f"ask {one!r}" for one in known)
        raise ParameterError(f"{fault}; hint: {listed}")
    near = list(suggestions(text, schema, tick))
    own = text if tick is None else _TIMES.sub(r"tick\2", text)
    for why, other in near if asked is None else ():
        if is_kept(own, other) and is_answered(other):
            raise ParameterError(f"{fault}; hint: {why}ask {other!r}")
    less = [*refused.others, *(one for one in refused.asks if is_kept(text, one) is False)]
    less += [] if asked is None else [question_text(schema, one) for one in shorter(asked)]
    parts = filter(is_answered, [*less, *_shorter(own, near, schema, read)])
    by_tick = " by tick" * (tick is not None and "tick" in own.lower())
    whole = filter(is_answered, (one + by_tick for one in _by_table(text, schema, tables)))
    known = dict.fromkeys([*itertools.islice(parts, 1), *itertools.islice(whole, _TABLES)])
    if known:
        listed = ", ".join(map(repr, known))
        raise ParameterError(f"{fault}; hint: this folder answers {listed}")
    raise ParameterError(str(refused))


def _shorter(
    text: str, near: Sequence[tuple[str, str]], schema: Schema, read: Callable[[str], Question]
) -> Iterator[str]:
    """Yield suggested questions, each followed by the same question with fewer conditions."""
    for _, other in near:
        try:
            meaning = read(other)
        except ParameterError:
            continue
        named = [other, *(question_text(schema, one) for one in shorter(meaning))]
        yield from (one for one in named if is_kept(text, one) is not None)


def _by_table(text: str, schema: Schema, tables: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a question for every table; tables with the most names of the text come first."""
    names, labels = _named(text[:_MOST], schema)
    said = {*names, *labels}
    clipped = {a.name for a in schema.attributes if a.is_summed}
    for own in sorted(tables, key=lambda own: (-len(said & {*own}), len(own))):
        numbers = [name for name in own if name in clipped]
        groups = ", ".join(quoted(name) for name in own if name not in clipped)
        what = f"mean of {quoted(numbers[0])}" if numbers else "count"
        yield f"{what} by {groups}" if groups else what


def examples(schema: Schema, tables: Sequence[Sequence[str]]) -> list[str]:
    """Return a few questions that these tables answer: a share, a mean, and counts."""
    counts, means = list[str](), list[str]()
    for one in _by_table("", schema, tables):
        (means if one.startswith("mean") else counts).append(one)
    return [*itertools.islice(_shares(schema, tables), 1), *means[-1:], *counts[:2]]


def _shares(schema: Schema, tables: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a question for the share of the first category in every table of two attributes."""
    for own in tables:
        attributes = [schema.names.index(name) for name in own]
        if len(own) == 2 and not any(schema.attributes[i].is_summed for i in attributes):
            yield (
                f"share of {conditions_text(schema, {attributes[0]: (0,)})} given {quoted(own[1])}"
            )


def suggestions(text: str, schema: Schema, tick: str | None) -> Iterator[tuple[str, str]]:
    """Yield (assumption or "", question) for questions that resemble the text, the nearest first.

    The questions are not checked: some may not be understood.

    Args:
        text: the text of the user.
        schema: the schema, with the names and labels that questions may have.
        tick: the word for a tick of a stream; None for a release.
    """
    text = text[:_MOST]
    if tick is not None and (said := _TIMES.search(text)) is not None:
        text = _TIMES.sub(r"tick\2", text)
        yield f"if each tick is a {said[1].lower()}, ", text
    if (asked := _assembled(text, schema, tick)) is not None:
        yield "", asked


def _assembled(text: str, schema: Schema, tick: str | None) -> str | None:
    """Return a question made of a text's names, labels and statistics; None if it has none."""
    kinds = {k for k, words in _KINDS.items() if re.search(rf"\b({words})\b", text, re.I)}
    names, labels = _named(text, schema)
    clipped = [a.name for a in schema.attributes if a.is_summed]
    number = next((name for name in names if name in clipped), None)
    if number is None and clipped and kinds & {"mean", "compared"}:
        number = clipped[0]
    is_compared = "compared" in kinds or re.search(r"\bfrom\b", text, re.I) is not None
    apart = {own: several for own, several in labels.items() if is_compared and len(several) > 1}
    single = {own: several for own, several in labels.items() if own not in apart}
    groups = [name for name in names if name not in clipped and name not in labels]
    held = [own for name in groups if (own := _yes_label(schema, name)) is not None]
    groups = [name for name in groups if name not in dict(held)]
    of = [_condition(own, *several) for own, several in [*held, *single.items()]]
    if number is not None:
        amount, given = f"mean of {quoted(number)}", of
    elif "share" in kinds and (of or groups):
        target, given = (of[0], of[1:]) if of else (quoted(groups.pop(0)), [])
        amount = f"share of {target}"
    else:
        amount, given = "count" + f" of {', '.join(of)}" * bool(of), []
    if not (names or labels or kinds & {"trend", "share"}):
        return None
    groups = list(map(quoted, groups))
    ticks = re.findall(r"ticks? (\d{1,9})", text) if tick is not None else []
    by_tick = tick is not None and re.search(r"\b(by|each|which) tick\b", text) is not None
    if tick is not None and "trend" in kinds and len(ticks) != 2:
        return f"trend of {amount}" + _given(given, groups)
    if len(ticks) == 2 and kinds & {"compared", "trend"}:
        return f"change of {amount}{_given(given, groups)} from tick {ticks[0]} to tick {ticks[1]}"
    if apart:
        own, (first, second, *_) = next(iter(apart.items()))
        both = f"between {_condition(own, first)} and {_condition(own, second)}"
        return f"difference of {amount} {both}" + _given(given, groups)
    if "top" in kinds and groups:
        return f"which {groups[0]} has the largest {amount}" + _given(given, [])
    asked = amount + _given(given, groups) + " by tick" * by_tick
    return f"{asked} in tick {ticks[0]}" if len(ticks) == 1 else asked


def _given(conditions: list[str], groups: list[str]) -> str:
    """Return the end of a question: " by " with conditions and groups; "" if there are none."""
    both = [*conditions, *groups]
    return f" by {', '.join(both)}" if both else ""


def _condition(name: str, *labels: str) -> str:
    return f"{quoted(name)}={'|'.join(map(quoted, labels))}"


def _yes_label(schema: Schema, name: str) -> tuple[str, list[str]] | None:
    """Return (attribute, [its label that means "yes"]); None if it has no such label."""
    labels = schema.attributes[schema.names.index(name)].labels
    return next(((name, [str(own)]) for own in labels if str(own).lower() in HELD), None)


def _named(text: str, schema: Schema) -> tuple[list[str], dict[str, list[str]]]:
    """Return (names of attributes in a text, {attribute: its labels in the text})."""
    names: list[str] = []
    labels: dict[str, list[str]] = {}
    known: dict[str, list[tuple[str, str | None]]] = {}
    for attribute in schema.attributes:
        known.setdefault(attribute.name.lower(), []).append((attribute.name, None))
        for label in attribute.categories or ():
            known.setdefault(str(label).lower(), []).append((attribute.name, str(label)))
    last, found = "", list(_known_texts(text, known))
    for k, part in enumerate(found):
        places = known[part]
        if len(places) > 1:  # a label of several attributes belongs to the one before it
            places = [place for place in places if place[0] == last]
        if turns_round(part):  # a word like "no" is a label only beside its attribute
            beside = {last, *(name for after in found[k + 1 : k + 2] for name, _ in known[after])}
            places = [place for place in places if place[0] in beside]
        for name, label in places:
            last = name
            if label is None:
                names += [name] * (name not in names)
            elif label not in labels.setdefault(name, []):
                labels[name].append(label)
    return names, labels


def _known_texts(text: str, known: Collection[str]) -> Iterator[str]:
    """Yield the ``known`` names and labels in a text; of those at one word, only the longest."""
    words = [match[0].strip('"').lower() for match in _WORD.finditer(text)]
    at = 0
    while at < len(words):
        for end in range(min(at + _LONGEST, len(words)), at, -1):
            part = " ".join(words[at:end])
            forms = (part, part.removesuffix("s"), f"{part}s")
            if (found := next((form for form in forms if form in known), None)) is not None:
                yield found
                at = end - 1
                break
        at += 1
