"""Answers to questions in words, computed from released tables alone."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import AbstractBase, Base, Groups, Identity

from ...errors import ParameterError
from ...numerics.intervals import quantile
from ..planning.facts import counted_text
from ..schema.bases import as_base, query_labels
from ..schema.schema import Category
from .answer import Answer
from .contrasts import Weights, contrasts
from .forms import KeptTables
from .noisy import AbstractRelease, read_only
from .quantiles import quantiles_of, support
from .question import (
    Cdf,
    Cells,
    Conditions,
    Count,
    Difference,
    Level,
    Moment,
    Quantile,
    Question,
    Ratio,
    Share,
    Summed,
    Wholes,
    conditions_text,
    parsed,
)
from .ratios import Ratios, difference_of_ratios, fieller
from .sums import means, sums
from .tidy import LEVEL

Array = NDArray[np.float64]

_MOST_NUMBERS = 10**4  # most numbers in one answer
_MOST_WORK = 10**8  # most numbers of an answer, times the cells of their tables
_AT_ONCE = 64  # rows whose covariances are computed together
_RATIO = "a ratio of unbiased counts is not itself unbiased; intervals are exact (Fieller 1954)"
_RATIO_OF_SUMS = f"{_RATIO.replace('counts', 'sums')}; of the values as they were clipped"


def ask(release: AbstractRelease, question: str, level: float = LEVEL) -> Answer:
    """Return the answer to a question in words, with intervals, from released tables alone.

    Questions are of seven forms. ``given``, or ``by``, names groups; a name alone, like
    ``sex``, asks for each of its labels; ``a|b`` adds labels up; names and labels that need it
    stand in ``"…"``:

    * ``count``, ``count of sex=F, age=[18, 65)``, ``count given sex``
    * ``share of employed=yes given sex, age``
    * ``ratio of (sex=F, employed=yes) to (sex=M, employed=yes) given age``
    * ``difference of share of employed=yes given sex=F and sex=M``, or of two counts
    * ``ratio of (sum of income, sex=F) to (sum of income, sex=M)``, or difference
    * ``cdf of age given sex``
    * ``quantile 0.5, 0.9 of age given sex``, ``median of age``
    * ``sum of income given sex``, ``mean of income``: where numeric columns were released

    Args:
        release: the release that is asked.
        question: see above; labels as in the schema.
        level: the level of the intervals, each taken alone.

    Returns:
        An :class:`Answer`. Its intervals cover at least as often as their level says: intervals
        of counts exactly; of shares and ratios exactly where the denominator is clear of zero
        (Fieller 1954); of quantiles up to the width of bins. Intervals of differences of shares
        cover to first order.

    Raises:
        ParameterError: the text is no question, has unknown names or labels, or asks for a
            table that was not released; the message marks the place.
        NotAvailableError: sums or means of a release that has none.

    >>> import pyarrow as pa
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
    ... )
    >>> people = pa.table({"sex": ["F", "M", "F"] * 4000, "age": [7, 33, 61] * 4000})
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> answer = release.ask("share of age=[18, 65) given sex")
    >>> answer.meaning, answer.labels, answer.estimate.round(2).tolist()
    ('share of age=[18, 65) given sex', (('F', 'M'),), [0.5, 1.0])
    """
    quantile(level)  # refuses a level outside (0, 1)
    form = parsed(question, release.plan.schema)
    asked = _Asked(replace(release, tables=KeptTables(release.tables)), question, level)
    return asked.answer(form)


class _Axis(NamedTuple):
    """One axis of an answer: its attribute, and the cells that each label counts."""

    name: str
    labels: tuple[Category, ...]
    cells: Sequence[Cells]


@dataclass(frozen=True)
class _Asked:
    """One question to a release."""

    release: AbstractRelease
    text: str
    level: float

    @cached_property
    def _z(self) -> float:
        return quantile(self.level)

    def answer(self, question: Question) -> Answer:
        if isinstance(question, Count):
            return self._count(question)
        if isinstance(question, Share):
            return self._share(question)
        if isinstance(question, Ratio):
            return self._ratio(question)
        if isinstance(question, Difference):
            return self._difference(question)
        if isinstance(question, Cdf):
            return self._cdf(question)
        if isinstance(question, Quantile):
            return self._quantile(question)
        return self._moment(question)

    def _count(self, asked: Count) -> Answer:
        axes = self._axes(asked.where)
        estimate, covariance = self._counts([asked.where], axes)
        return self._linear(self._said(asked), axes, estimate[:, 0], covariance[:, 0, 0])

    def _linear(
        self,
        meaning: str,
        axes: Mapping[int, _Axis],
        estimate: Array,
        variance: Array,
        note: str = "unbiased, so that counts may be negative or fractional",
    ) -> Answer:
        deviation = np.sqrt(np.maximum(variance, 0))
        ends = estimate - self._z * deviation, estimate + self._z * deviation
        return self._answer(meaning, axes, (estimate, deviation, *ends), note)

    def _share(self, asked: Share) -> Answer:
        axes = self._axes(asked.given, asked.of)
        return self._shares(self._said(asked), {**asked.given, **asked.of}, asked.given, axes)

    def _counted(self, i: int) -> None:
        """Refuse an attribute that has released sums, but no released bins."""
        attribute = self.release.plan.schema.attributes[i]
        if attribute.clip is not None:
            raise ParameterError(
                f"ask: {self.text}: expected an attribute in bins, {attribute.name!r} is a number "
                f"that the schema clips; hint: mean of {attribute.name}"
            )

    def _cdf(self, asked: Cdf) -> Answer:
        attribute = self.release.plan.schema.attributes[asked.attribute]
        self._counted(asked.attribute)
        prefix = as_base("prefix", attribute)
        cells = [tuple(range(k + 1)) for k in range(prefix.queries)]
        axes = self._axes(asked.given)
        axes[asked.attribute] = _Axis(attribute.name, query_labels(prefix, attribute), cells)
        meaning = f"cdf of {self._named({asked.attribute: None})}{self._groups(asked.given)}"
        top = {**asked.given, asked.attribute: None}
        note = _RATIO
        if attribute.other is not None:
            note += f"; of all rows, those in {attribute.other!r} too, which are in no bin"
        return self._shares(meaning, top, asked.given, axes, note)

    def _shares(
        self,
        meaning: str,
        top: Conditions,
        bottom: Conditions,
        axes: Mapping[int, _Axis],
        note: str = _RATIO,
    ) -> Answer:
        ratios = self._ratios(top, bottom, axes)
        unknown = ~np.isfinite(ratios.high)
        low = np.fmin(np.clip(ratios.low, 0, 1), ratios.estimate)
        high = np.fmax(np.clip(ratios.high, 0, 1), ratios.estimate)
        if unknown.any():
            note += "; from 0 to 1 where the group may be empty: nothing is known"
        numbers = ratios.estimate, ratios.standard_deviation, low, high
        return self._answer(meaning, axes, numbers, note)

    def _ratio(self, asked: Ratio) -> Answer:
        axes = self._axes(asked.top, asked.bottom)
        ratios = self._ratios(asked.top, asked.bottom, axes)
        unknown = ~np.isfinite(ratios.high)
        sums = [*_sums(asked.top), *_sums(asked.bottom)]
        least = 0.0 if all(one.is_nonnegative for one in sums) else -np.inf
        low = np.fmin(np.maximum(ratios.low, least), ratios.estimate)
        high = np.fmax(np.maximum(ratios.high, least), ratios.estimate)
        note = _RATIO_OF_SUMS if sums else _RATIO
        if unknown.any():
            where = "" if unknown.all() else " where high is infinite"
            note += f"; no finite interval{where}: the denominator may be zero"
        top, bottom = self._named(asked.top), self._named(asked.bottom)
        meaning = f"ratio of ({top}) to ({bottom})"
        numbers = ratios.estimate, ratios.standard_deviation, low, high
        return self._answer(meaning, axes, numbers, note)

    def _ratios(self, top: Conditions, bottom: Conditions, axes: Mapping[int, _Axis]) -> Ratios:
        estimate, covariance = self._counts([top, bottom], axes)
        return fieller(estimate[:, 0], estimate[:, 1], covariance, self._z)

    def _difference(self, asked: Difference) -> Answer:
        first, second = asked.first, asked.second
        meaning = f"{self._said(first)} less {self._said(second)}"
        if isinstance(first, Count) and isinstance(second, Count):
            axes = self._axes(first.where, second.where)
            estimate, covariance = self._counts([first.where, second.where], axes)
            signs = np.array([1.0, -1.0])
            variance = np.einsum("i,kij,j->k", signs, covariance, signs)
            estimate = estimate @ signs
            if _sums(first.where) or _sums(second.where):
                note = "unbiased, of the values as they were clipped"
                return self._linear(meaning, axes, estimate, variance, note)
            return self._linear(meaning, axes, estimate, variance)
        shares = [share for share in (first, second) if isinstance(share, Share)]
        axes = self._axes(*(where for s in shares for where in (s.given, s.of)))
        forms = [form for s in shares for form in ({**s.given, **s.of}, s.given)]
        x, covariance = self._counts(forms, axes)
        one = fieller(x[:, 0], x[:, 1], covariance[:, :2, :2], self._z)
        two = fieller(x[:, 2], x[:, 3], covariance[:, 2:, 2:], self._z)
        slopes = [
            np.stack([1 / y, -r.estimate / y], -1) for r, y in ((one, x[:, 1]), (two, x[:, 3]))
        ]
        between = np.einsum("ki,kij,kj->k", slopes[0], covariance[:, :2, 2:], slopes[1])
        difference = difference_of_ratios(one, two, between)
        low = np.fmin(np.clip(difference.low, -1, 1), difference.estimate)
        high = np.fmax(np.clip(difference.high, -1, 1), difference.estimate)
        low, high = np.where(np.isnan(low), -1.0, low), np.where(np.isnan(high), 1.0, high)
        note = (
            "ratios of unbiased counts are not themselves unbiased; intervals put the exact ones "
            "of both shares together, to first order (Zou & Donner 2008)"
        )
        return self._answer(
            meaning, axes, (difference.estimate, difference.standard_deviation, low, high), note
        )

    def _quantile(self, asked: Quantile) -> Answer:
        attributes = self.release.plan.schema.attributes
        attribute = attributes[asked.attribute]
        self._counted(asked.attribute)
        support(attribute)  # refuses an attribute without numbers
        axes, groups = self._axes(asked.given), dict[str, AbstractBase]()
        for i, cells in asked.given.items():
            size = attributes[i].size
            if cells is None:
                groups[attributes[i].name] = Identity(size)
            elif isinstance(cells, Level):
                groups[attributes[i].name] = Groups(size, cells.cells)
            elif isinstance(cells, tuple):
                groups[attributes[i].name] = Base([[float(k in cells) for k in range(size)]])
        quantiles = quantiles_of(self.release, attribute, asked.probabilities, groups)
        axes[asked.attribute] = _Axis(quantiles.attributes[-1], quantiles.labels[-1], ())
        low, high = quantiles.confidence_interval(self.level)
        which = ", ".join(f"{p:g}" for p in asked.probabilities)
        name = self._named({asked.attribute: None})
        note = (
            f"biased: {quantiles.method}; intervals cover the quantile of the counted rows at "
            "least that often, and cannot see inside bins"
        )
        if attribute.other is not None:
            note += f"; of the rows in bins, without those in {attribute.other!r}"
        meaning = f"quantile {which} of {name}{self._groups(asked.given)}"
        return self._answer(meaning, axes, (quantiles.estimate, None, low, high), note)

    def _moment(self, asked: Moment) -> Answer:
        schema = self.release.plan.schema
        clips = {attribute.name: attribute.clip for attribute in schema.attributes}
        if clips.get(asked.column) is None:
            raise ParameterError(
                f"ask: {asked.what} of {asked.column}: expected a number that the schema clips"
                + (f"; hint: median of {asked.column}" if asked.column in clips else "")
            )
        if any(cells is not None for cells in asked.given.values()):
            raise ParameterError(
                f"ask: {asked.what} of {asked.column}: expected groups by names alone, like given "
                f"sex; hint: leave the labels out of {self._named(asked.given)!r}"
            )
        axes = self._axes(asked.given)
        given = tuple(schema.names[i] for i in asked.given)
        table = (
            sums(self.release, asked.column, given)
            if asked.what == "sum"
            else means(self.release, asked.column, given)
        )
        low, high = table.confidence_interval(self.level)
        numbers = table.estimate, table.standard_deviation, low, high
        meaning = f"{asked.what} of {asked.column}{self._groups(asked.given)}"
        return self._answer(meaning, axes, numbers, "of the values as they were clipped")

    def _answer(
        self,
        meaning: str,
        axes: Mapping[int, _Axis],
        numbers: tuple[NDArray[Any], Array | None, NDArray[Any], NDArray[Any]],
        note: str,
    ) -> Answer:
        shape = tuple(len(axis.labels) for axis in axes.values())
        estimate, deviation, low, high = (
            None if x is None else read_only(np.asarray(x).reshape(shape)) for x in numbers
        )
        if estimate is None or low is None or high is None:
            raise TypeError
        if self.release.plan.person is not None:
            note += f"; counted: {counted_text(self.release.plan)}"
        return Answer(
            self.text,
            meaning,
            tuple(axis.name for axis in axes.values()),
            tuple(axis.labels for axis in axes.values()),
            estimate,
            deviation,
            low,
            high,
            self.level,
            note,
            self.release.private,
            self.release.backend,
        )

    def _axes(self, *parts: Conditions) -> dict[int, _Axis]:
        """Return one axis for every attribute, or level, that is named without labels."""
        axes: dict[int, _Axis] = {}
        for i, cells in itertools.chain.from_iterable(part.items() for part in parts):
            named = cells.name if isinstance(cells, Level) else self.release.plan.schema.names[i]
            if i in axes and not isinstance(cells, tuple) and axes[i].name != named:
                raise ParameterError(
                    f"ask: {self.text}: expected {axes[i].name!r} or {named!r} throughout, which "
                    "are levels of one attribute, got both"
                )
            if i in axes and isinstance(cells, Level) and axes[i].labels != cells.labels:
                raise ParameterError(
                    f"ask: {self.text}: expected the same labels of {named!r} throughout, got "
                    f"{len(axes[i].labels)} and {len(cells.labels)} of them; hint: one label"
                )
            if cells is None and i not in axes:
                a = self.release.plan.schema.attributes[i]
                axes[i] = _Axis(a.name, a.labels, [(k,) for k in range(a.size)])
            elif isinstance(cells, Level) and i not in axes:
                axes[i] = _Axis(cells.name, cells.labels, cells.cells)
        return axes

    def _counts(
        self, forms: Sequence[Conditions], axes: Mapping[int, _Axis]
    ) -> tuple[Array, Array]:
        """Return counts of the rows that meet conditions, and their covariances.

        Counts have shape (numbers, forms); the covariances of the forms of each number have shape
        (numbers, forms, forms).
        """
        places = list(itertools.product(*(range(len(axis.labels)) for axis in axes.values())))
        sizes = self.release.plan.schema.sizes
        cells = max(int(np.prod([float(sizes[i]) for i in form])) for form in forms)
        if len(places) > _MOST_NUMBERS or len(places) * cells > _MOST_WORK:
            raise ParameterError(
                f"ask: {self.text}: expected at most {_MOST_NUMBERS} numbers, got {len(places)} "
                f"from tables of {cells} cells; hint: whole tables are in the folder, and in "
                "release[names], proportions() and cdf()"
            )
        count = len(forms)
        estimate = np.zeros((len(places), count))
        covariance = np.zeros((len(places), count, count))
        for start in range(0, len(places), _AT_ONCE):
            rows = [
                dict(zip(axes, place, strict=True)) for place in places[start : start + _AT_ONCE]
            ]
            counts = contrasts(
                self.release, [self._weights(form, axes, row) for row in rows for form in forms]
            )
            for k in range(len(rows)):
                own = slice(k * count, (k + 1) * count)
                estimate[start + k] = counts.estimate[own]
                covariance[start + k] = counts.covariance[own, own]
        return estimate, covariance

    def _weights(
        self, form: Conditions, axes: Mapping[int, _Axis], row: Mapping[int, int]
    ) -> Weights:
        """Return the weights of the cells that a form counts in one row of the answer."""
        schema = self.release.plan.schema
        weights = np.ones(())
        for i, cells in form.items():
            if isinstance(cells, Summed):
                own = np.array(cells.weights)
            else:
                counted = cells.cells if isinstance(cells, Wholes) else None
                if not isinstance(cells, tuple):
                    cells = (counted or axes[i].cells)[row[i]]
                own = np.zeros(schema.sizes[i])
                own[list(cells)] = 1
            weights = np.multiply.outer(weights, own)
        return {tuple(schema.names[i] for i in form): weights}

    def _named(self, where: Conditions) -> str:
        return conditions_text(self.release.plan.schema, where) or "count"

    def _groups(self, given: Conditions) -> str:
        return f" given {self._named(given)}" if given else ""

    def _said(self, asked: Count | Share) -> str:
        if isinstance(asked, Share):
            return f"share of {self._named(asked.of)}{self._groups(asked.given)}"
        return f"count of {self._named(asked.where)}" if asked.where else "count"


def _sums(form: Conditions) -> list[Summed]:
    """Return the sum in a form as a list of one, or an empty list."""
    return [cells for cells in form.values() if isinstance(cells, Summed)]
