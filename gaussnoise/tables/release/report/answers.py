"""Answers to questions on a page: each a sentence or a table, with intervals and the method."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ....errors import ParameterError
from ....text import NO_INTERVAL, between_text, capital
from ...schema.schema import Schema
from ..answer import Answer
from .order import reading_places
from .render import shown

_OF_COEFFICIENTS = (
    "The intercept is the expected number where every attribute has its first category; each other "
    "line says how much is added to it, or taken away."
)
_OF_LOG_ODDS = (
    "The intercept is the logarithm of the odds where every attribute has its first category; each "
    "other line is the logarithm of what the odds are multiplied by."
)
_POPULATION = "the population see below", "the population see the tables of this page"


class Answered(NamedTuple):
    """The answer to one question, in words, for a page.

    Attributes:
        question: the question as it was asked.
        meaning: the question in full.
        sentence: the answer if it is one number, or what the rows mean; or "".
        names: the names of the columns of labels.
        rows: for each number, its labels, estimate, interval, and a remark or ""; empty if the
            answer is one number.
        more: the number of rows that are left out.
        notes: the level of the intervals, cautions and the method.
    """

    question: str
    meaning: str
    sentence: str
    names: tuple[str, ...]
    rows: list[tuple[list[str], str, str, str]]
    more: int
    notes: str


def answers_of(source: Any, questions: Sequence[str]) -> list[Answered]:
    """Return the answers that a release, or the tables of a stream, gives to questions.

    Raises:
        ParameterError: no list of questions, or a question without an answer.
    """
    if not isinstance(questions, list | tuple):
        raise ParameterError(
            f'report: expected a list of questions, ask=["count"], got {type(questions).__name__}'
        )
    return [_answered(source.ask(question), source.plan.schema) for question in questions]


def _answered(answer: Answer, schema: Schema) -> Answered:
    meaning = capital(answer.heading)
    written = {name: [_minus(text) for text in own] for name, own in answer.written.items()}
    estimates = written["estimate"]
    intervals = list(map(_ends, written["low"], written["high"]))
    faults = written.get("", [""] * len(estimates))
    labels = [list(map(shown, own)) for own in itertools.islice(_cells(answer), len(estimates))]
    rows = list(zip(labels, estimates, intervals, faults, strict=True))
    more = answer.estimate.size - len(estimates)
    rows = rows if more else [rows[k] for k in reading_places(answer, schema)]
    of_coefficients = _OF_LOG_ODDS if meaning.startswith("Logistic") else _OF_COEFFICIENTS
    sentence = of_coefficients if answer.attributes == ("coefficient",) else ""
    if not answer.attributes:
        fault = f"; {faults[0]}" if faults[0] else ""
        sentence, rows = f"{meaning}: {estimates[0]} ({intervals[0]}{fault}).", []
    if answer.printed:
        first, *lines = answer.printed.splitlines()
        return Answered(answer.question, meaning, f"{first} {'; '.join(lines)}.", (), [], 0, "")
    method = [f"method: {answer.method}"] if answer.method else []
    notes = "; ".join([*answer.cautions, *method]).replace(*_POPULATION)
    names = answer.headings or answer.attributes
    return Answered(answer.question, meaning, sentence, names, rows, more, f"{notes}.")


def _ends(low: str, high: str) -> str:
    """Return an interval in words; both texts are a dash if there is no interval."""
    return NO_INTERVAL if low == high == "—" else between_text(low, high)


def _cells(answer: Answer) -> Any:
    """Return, for each number of an answer, the labels of its categories, in the same order."""
    return itertools.product(*answer.shown_labels)


def _minus(text: str) -> str:
    return text.replace("-", "−") if text[1:2].isdigit() else text
