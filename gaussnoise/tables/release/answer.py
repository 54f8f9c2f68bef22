"""Answers to questions about a release."""

import datetime
import math
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ...layout import WIDTH, fitted
from ..schema.schema import Category
from .population import Population
from .show import deviations, ends_text, first, pvalue_text, rounded, table_text
from .tidy import arrow_columns, framed, level_text, with_level, with_times

if TYPE_CHECKING:
    import pyarrow as pa
    from narwhals.typing import EagerAllowed

Array = NDArray[np.float64]

COUNTED = "counted: "  # precedes the note that says which rows or records are counted


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a question: an estimate with its interval for each group.

    Attributes:
        question: the question as it was asked.
        meaning: the same question, spelled out.
        attributes: names, one per axis; none if the answer is one number.
        labels: the labels of the answers along every axis.
        estimate: shape (labels…); NaN if there is no estimate, such as the share of an empty
            group. Quantiles of dates are dates, or NaT.
        standard_deviation: same shape; None for quantiles, for which it is unknown.
        low: lower bounds of the intervals. If ``compared`` is 1, each interval holds with
            probability ``level``; otherwise all intervals hold together with this probability.
        high: upper bounds of intervals; infinite, or NaT for dates, if no finite bound is known.
        level: the level of the intervals.
        note: a caution about the answer, or "".
        private: False for simulations, whose numbers must not be published.
        limits: the least and the largest value that the true numbers can have. Noise can move an
            estimate outside these values; ``print`` then says so beside the estimate. Intervals are
            cut to these values.
        compared: the number of intervals that hold together with probability ``level``: 1, or all
            if the question asks for the largest of several numbers.
        cut: True for a mean that noise moved outside the interval to which its number is clipped:
            the estimate is then the nearer bound. None if there is no such mean.
        method: how the intervals of a function are found, in words; "" for other answers, whose
            methods are in ``note``.
        pvalue: for trends over the ticks (releases) of a stream, the p-value of the χ² test of no
            change, one for each number; NaN if a tick has no estimate. For a test of independence,
            the p-value; the estimate is the χ² of the test. None for other answers.
        population: the same mean, or difference, of the population that the rows were drawn from.
            Its intervals are for noise, sampling and clipping. None if no release of
            :func:`column_means` gives it.
        headings: the names that readers see in place of ``attributes``.
        printed: the text of a test, which ``print`` shows in place of a table; "" for others.
        unit: the unit of the numbers, like "persons" or "per cent"; "" if none is known.
        times: the time of each tick on the first axis, like "March 2026"; empty if there are no
            ticks, or the stream states no times.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> answer = release.ask("share of sex=F")
    >>> print(answer.meaning, answer.low < answer.estimate < answer.high)
    share of sex=F True
    """

    question: str
    meaning: str
    attributes: tuple[str, ...]
    labels: tuple[tuple[Category, ...], ...]
    estimate: NDArray[Any]
    standard_deviation: Array | None
    low: NDArray[Any]
    high: NDArray[Any]
    level: float
    note: str
    private: bool
    backend: "EagerAllowed" = field(repr=False)
    limits: tuple[float, float] = (-math.inf, math.inf)
    compared: int = 1
    cut: NDArray[np.bool_] | None = field(default=None, repr=False)
    method: str = ""
    pvalue: Array | None = field(default=None, repr=False)
    population: Population | None = field(default=None, repr=False)
    headings: tuple[str, ...] = field(default=(), repr=False)
    printed: str = field(default="", repr=False)
    unit: str = ""
    times: tuple[str, ...] = ()

    @property
    def shown_labels(self) -> tuple[tuple[Category, ...], ...]:
        """The labels that readers see; for a tick with a known time, its number and this time."""
        if not self.times:
            return self.labels
        ticks, *others = self.labels
        both = zip(ticks, self.times, strict=True)
        return tuple(f"{tick} ({time})" for tick, time in both), *others

    @property
    def heading(self) -> str:
        """The meaning of the answer, and the unit of its numbers."""
        return f"{self.meaning}, in {self.unit}" if self.unit else self.meaning

    @property
    def remarks(self) -> list[str]:
        """A remark on each estimate as text, or "".

        If a trend has several slopes, the remark is the p-value of its test of no change.
        Otherwise, a remark says that noise moved the estimate outside the values that the true
        number can have.
        """
        least, most = self.limits
        if self.pvalue is not None and self.pvalue.size > 1:
            return [f"no change: p {pvalue_text(p)}" if p >= 0 else "" for p in self.pvalue.flat]
        if self.cut is not None:
            return ["cut: noise made it impossible" if x else "" for x in self.cut.flat]
        if self.limits == (-math.inf, math.inf):
            return [""] * self.estimate.size
        below = [f"estimate below {least:g}" if x < least else "" for x in self.estimate.flat]
        above = [f"estimate above {most:g}" if x > most else "" for x in self.estimate.flat]
        return [a or b for a, b in zip(below, above, strict=True)]

    def _numbers(self) -> dict[str, NDArray[Any]]:
        numbers: dict[str, NDArray[Any]] = {"estimate": self.estimate}
        if self.standard_deviation is not None:
            numbers["standard_deviation"] = self.standard_deviation
        tests = {} if self.pvalue is None else {"pvalue": self.pvalue}
        return numbers | {"low": self.low, "high": self.high} | tests

    def columns(self) -> dict[str, list]:
        """Return tidy columns, one row per number.

        The columns are the attributes, estimate, standard_deviation, low and high; for trends also
        pvalue. The times of ticks, if known, are in a column ``time``.
        """
        return self._arrow().to_pydict()

    def to_frame(self) -> Any:
        """Return the answer as a dataframe of the library that the records came in.

        The columns are those of :meth:`columns`. For records in files and remote engines, the
        result is a pyarrow table. The frame holds the level of the intervals, as frames of tables
        do.
        """
        return framed(with_level(self._arrow(), self.level, self.private), self.backend)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole answer as plain data, ready for JSON.

        Numbers that are not finite become None, and dates become text.
        """
        columns = self.columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        for row, remark in zip(rows, self.remarks, strict=True):
            row |= {"remark": remark} if remark else {}
        return {
            "question": self.question,
            "meaning": self.meaning,
            **({"unit": self.unit} if self.unit else {}),
            "level": self.level,
            "simultaneous": self.compared > 1,
            "note": self.note,
            **({"method": self.method} if self.method else {}),
            "private": self.private,
            "rows": [{name: _plain(value) for name, value in row.items()} for row in rows],
            **({} if self.population is None else {"population": self._of_population()}),
        }

    def _of_population(self) -> list[dict[str, Any]]:
        """Return the means of the population, or their differences, as plain data for JSON."""
        parts = [] if self.population is None else self.population.parts
        return [_plain_part(asdict(part)) for part in parts]

    def _arrow(self) -> "pa.Table":
        cells = slice(0, self.estimate.size)
        rows = arrow_columns(self.attributes, self.labels, cells, self._numbers())
        return with_times(rows, 1, self.attributes, self.times)

    @property
    def written(self) -> dict[str, list[str]]:
        """The first numbers as text, {column: texts}; the column "" has the remarks, if any."""
        sd, ends = self.standard_deviation, (self.low, self.high)
        write = partial(first, digits=6) if sd is None else partial(rounded, deviations=sd)
        found = {"estimate": write(self.estimate)}
        found |= (
            {}
            if sd is None
            else {"standard_deviation": [text.removeprefix("± ") for text in deviations(sd)]}
        )
        found |= dict(zip(("low", "high"), ends_text(self.estimate, ends, write), strict=True))
        return found | ({"": self.remarks[: len(found["estimate"])]} if any(self.remarks) else {})

    @property
    def cautions(self) -> list[str]:
        """The level of the intervals, followed by the notes, the most important note first."""
        alone = f"all {self.compared} at once" if self.compared > 1 else "each alone"
        level = f"{level_text(self.level)} intervals, {alone}"
        return [level, *[note for note in self.note.split("; ") if note]]

    def __str__(self) -> str:
        if self.printed:
            return self.printed
        closing, *own = self.cautions
        counted = [note for note in own if note.startswith(COUNTED)]
        for note in (note for note in own if note not in counted):
            if len(closing) + len(note) + 2 > WIDTH:
                # only the most important note may be longer than a line
                closing += f";\n{fitted(note)}" * (note == own[0])
                break
            closing += f"; {note}"
        method = [fitted(f"method: {self.method}")] if self.method else []
        closing = "\n".join([closing, *counted, *method])
        names = {"standard_deviation": "± sd"}
        columns = self.written
        said = table_text(
            fitted(self.heading),
            self.attributes,
            self.shown_labels,
            [names.get(name, name) for name in columns],
            list(columns.values()),
            closing,
            private=self.private,
            headings=self.headings,
        )
        return said if self.population is None else f"{said}\n\n{fitted(str(self.population))}"

    def __repr__(self) -> str:
        return f"Answer({self.meaning}: {self.estimate.size} numbers)"


def _plain_part(part: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a mean as plain data for JSON; fields with several values are lists."""
    return {
        name: [_plain(end) for end in value] if isinstance(value, tuple) else _plain(value)
        for name, value in part.items()
    }


def _plain(value: Category | float | datetime.date | None) -> Category | float | None:
    if isinstance(value, datetime.date):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value
