"""Answers to questions in words, computed from released tables alone."""

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.tables.bases import AbstractBase, Base, Groups, Identity
from domains.tables.clipped import Clipped

from ... import indicators
from ...errors import ParameterError
from ...numerics.intervals import quantile
from ...text import NO_LIMIT, between_text, significant
from ..planning.facts import counted_text, persons_text
from ..schema.bases import as_base, query_labels
from ..schema.numbers import values_text
from ..schema.schema import Category
from .answer import COUNTED, Answer
from .contrasts import Weights, contrasts
from .functions import (
    FunctionEstimate,
    correlation_within,
    covariance_within,
    function,
    variance_within,
)
from .independence import independence
from .logistic import logistic
from .merged import MergedPlan
from .noisy import AbstractRelease, read_only
from .nouns import nouns_of
from .population import Population, asked_population
from .quantiles import quantiles_of, support
from .question import (
    ENDPOINT,
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
    RefusedError,
    Regressed,
    Share,
    Summed,
    Top,
    Trend,
    Variance,
    Wholes,
    conditions_text,
    quoted,
)
from .ratios import Ratios, difference_of_ratios, fieller
from .regression import regress
from .show import pvalue_text
from .suggestion import answer_or_hint
from .sums import MeanTable, check_no_number, means, sums
from .tidy import LEVEL

Array = NDArray[np.float64]
# (noise covariance, ticks, numbers) -> (weight of each tick in the slope, χ² statistics)
Fitted = Callable[[Array, Array, Array], tuple[Array, Array]]

MOST_NUMBERS = 10**4  # most numbers in one answer
_MOST_WORK = 10**8  # most products: numbers of an answer times cells of their tables
_FEW = 3  # most groups that a note names
_MOST_FUNCTIONS = 100  # most groups in an answer of a function, which takes longer than counts
_AT_ONCE = 256  # numbers whose covariances are computed together
_ASSUMED = "assumed, not tested: releases of the same rows; "
_COUNTS = "unbiased, so may be negative or fractional"
_CLIPPED = "of the values as they were clipped"
_RATIOS = "ratios are biased, intervals exact (Fieller 1954)"
_OF_NOISE = "of noise alone (for a population: gaussnoise report)"
_AND_BELOW = "of noise alone; for the population see below"
_CAPPED = " (too few rows, if some have more)"
_OVER = re.compile(
    rf"(?:>(?!=)|\b(?:over|above|(?:more|older|higher|greater)\s+than))\s*({ENDPOINT})"
)
_LEAST_SQUARES = "least squares by the law of the moments' noise (Anderson & Rubin 1949)"
_LIKELIHOOD = "likelihood equations by the law of their noise (Cox 1958; Anderson & Rubin 1949)"
_FIRST_ORDER = "biased, intervals to first order (Zou & Donner 2008)"


def ask(release: AbstractRelease, question: str, level: float = LEVEL) -> Answer:
    """Return the answer to a question in words, with intervals, from released tables alone.

    ``given`` or ``by`` precedes the groups. A name alone, like ``sex``, means one number for each
    of its labels; ``a|b`` adds labels up. Names and labels with special characters must be in
    ``"…"``.

    * ``count``, ``how many, sex=F``, ``count of sex=F, age=[18, 65)``, ``count by sex``
    * ``share of employed=yes given sex, age``, ``per cent of employed=yes``
    * ``sum of income given sex``, ``average income by sex``: for a number that the schema clips
    * ``ratio of (sex=F, employed=yes) to (sex=M, employed=yes) given age``
    * ``difference of (mean of income, sex=F) and (mean of income, sex=M)``
    * ``difference of share of employed=yes between sex=F and sex=M``
    * ``top 3 of region``, ``largest share of employed=yes by region``
    * ``cdf of age given sex``, ``quantile 0.5, 0.9 of age given sex``, ``median of age``
    * ``how many women in North``: a label that only one attribute has needs no name
    * ``percentage of people with employed=yes``, ``what share of women has employed=yes``
    * conditions on bins: ``age<65``, ``age at least 18``, ``age between 18 and 65``
    * times, by labels or bins: ``in March 2023``, ``from January to June``, ``since 2022``
    * ``how many stays``: the noun with which the title begins, or ``rows``. If each person has one
      row, also a noun from the name of the column of persons, like ``patients``
    * ``entropy of region by sex``, ``concentration of region``, ``odds ratio of sex and employed``,
      ``variance of income, sex=F``: as :meth:`function` and :meth:`variance` give them
    * ``covariance of income and hours by sex``, ``correlation between income and hours``
    * ``regression of income on sex, age and sex:age``: as :meth:`regress` gives it
    * ``logistic regression of employed=yes on sex``: as :meth:`logistic` gives it
    * ``are sex and employed independent``, ``is employed independent of sex given age``, ``does
      employed depend on sex``: as :meth:`independence` prints it

    Args:
        release: the release that is asked.
        question: a question of one of the forms above, with labels as in the schema.
        level: the level of each interval alone. Intervals of ``top 3 of …`` hold together, for all
            numbers that were compared (Šidák 1967).

    Returns:
        An :class:`Answer`. The coverage of its intervals is at least the level. For counts, the
        coverage is exact. For shares, means and ratios of counts and sums, it is exact if the
        denominator is clearly positive (Fieller 1954). For quantiles, it is exact up to the width
        of bins. For differences and ratios of shares or means, the level holds to first order. For
        functions, see ``method``. Intervals are cut to the possible values, so an estimated share
        outside [0, 1] is outside its interval.

    Raises:
        ParameterError: the text is no question, has unknown names or labels, or asks for ticks or a
            table that was not released. The message marks the wrong part, and suggests questions
            that the tables answer.

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
    from .grammar import parsed  # imported here: only questions need the parser

    quantile(level)  # refuses a level outside (0, 1)
    schema, nouns = release.plan.schema, nouns_of(release.plan)

    def answer(asked: Question, text: str) -> Answer:
        if isinstance(asked, Change | Trend | ByTick):
            raise ParameterError(
                f"ask: {text}: expected a question about one release, got one about ticks; hint: "
                "ask the folder of a stream, without --ticks"
            )
        return answered(release, asked, text, level)

    read = partial(parsed, schema=schema, nouns=nouns)
    return answer_or_hint(question, schema, None, release.plan.marginals, read, answer)


def answered(release: AbstractRelease, asked: AtOnce, text: str, level: float) -> Answer:
    """Return the answer to a parsed question about one release; ``text`` is the question itself."""
    return _Asked(release.kept(), text, level).answer(asked)


def change(stream: Any, asked: Change, text: str, level: float) -> Answer:
    """Return how much an amount (a count, share or mean) changed between two ticks of a stream.

    A tick is one release of the stream; ``asked`` names both. ``text`` is the question itself.
    """
    kept = stream.kept()
    earlier, later = asked.ticks
    return _Asked(kept.read(later, later), text, level, kept, (later, earlier)).change(asked)


def trend(stream: Any, asked: Trend, text: str, level: float, fitted: Fitted) -> Answer:
    """Return the slope of an amount (a count, share or mean) over all ticks (releases) of a stream.

    ``fitted`` is the function that fits the line. From the covariance of the noise, the ticks and
    the numbers, it computes the weight of each tick in the slope, and the χ² of the test of no
    change.
    """
    kept, ticks = stream.kept(), tuple(range(1, len(stream) + 1))
    return _Asked(kept.read(1, 1), text, level, kept, ticks).trend(asked, fitted)


class _Axis(NamedTuple):
    """One axis of an answer: the attribute, its labels, and the table cells that a label counts."""

    name: str
    labels: tuple[Category, ...]
    cells: Sequence[Cells]


class _Numbers(NamedTuple):
    """Estimates, deviations and intervals, as flat arrays or in the shape of the answer."""

    estimate: NDArray[Any]
    deviation: Array | None
    low: NDArray[Any]
    high: NDArray[Any]
    limits: tuple[float, float] = (-math.inf, math.inf)
    cut: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class _Asked:
    """One question, with the tables that answer it: those of one release, or of several ticks."""

    release: AbstractRelease
    text: str
    level: float
    stream: Any = None
    ticks: tuple[int, ...] = ()  # for a change, the later tick first

    @cached_property
    def _z(self) -> float:
        return quantile(self.level)

    @property
    def _assumed(self) -> str:
        """The assumption with which the note of every answer begins; "" if nothing is assumed."""
        plan: Any = self.release.plan
        return _ASSUMED if isinstance(plan, MergedPlan) and plan.agreement is None else ""

    @property
    def _most_groups(self) -> str:
        """A note on how many groups one person can be in; "" if it can be in all of them."""
        plan = self.release.plan
        used = {name for marginal in plan.marginals for name in marginal}
        groups = [a.size for a in plan.schema.attributes if a.name in used and not a.is_summed]
        most = plan.rows_per_person
        return f" ({most} at most)" if most < math.prod(groups) else ""

    def answer(self, asked: AtOnce) -> Answer:
        if isinstance(asked, Ratio):
            return self._ratio(asked)
        if isinstance(asked, Difference):
            first, second = self._said(asked.first), self._said(asked.second)
            if isinstance(asked.second, Mean) and isinstance(asked.first, Mean):
                second = second.replace(self._persons(asked.second.attribute), "")  # said once
            meaning = f"{first} less {second}"
            found = self._difference(meaning, asked.first, asked.second)
            return self._with_population(found, asked.first, asked.second)
        if isinstance(asked, Cdf):
            return self._cdf(asked)
        if isinstance(asked, Quantile):
            return self._quantile(asked)
        if isinstance(asked, Top):
            return self._top(asked)
        if isinstance(asked, Regressed):
            return self._regression(asked)
        if isinstance(asked, Independence):
            return self._independence(asked)
        if isinstance(asked, Indicator):
            return self._indicator(asked)
        if isinstance(asked, Variance):
            return self._variance(asked)
        if isinstance(asked, Between):
            return self._between(asked)
        axes = self._axes_of(asked)
        found = self._answer(
            self._said(asked), axes, *self._numbers(asked, axes), self._unit(asked)
        )
        return self._with_population(found, asked)

    def _with_population(self, answer: Answer, *asked: Amount) -> Answer:
        """Return the answer, with the same mean or difference for the population if it is known."""
        found = self._population(asked)
        if found is None:
            return answer
        return replace(answer, population=found, note=answer.note.replace(_OF_NOISE, _AND_BELOW))

    def _population(self, asked: Sequence[Amount]) -> Population | None:
        """Return the population's mean or difference between groups; None if not released."""
        plan, schema = self.release.plan, self.release.plan.schema
        means = [one for one in asked if isinstance(one, Mean)]
        columns = {schema.names[one.attribute] for one in means}
        wheres = [self._group_labels(one.given) for one in means]
        own = [found for found in plan.ranges if found.column in columns]
        known = len(means) == len(asked) and len(columns) == len(own) == 1 and None not in wheres
        if not known or plan.weight is not None or self.level >= 1 - own[0].wrong:
            return None
        first, *others = [where for where in wheres if where is not None]
        return asked_population(self.release, own[0].column, first, others, self.level)

    def _group_labels(self, given: Conditions) -> dict[str, Category | None] | None:
        """Return {attribute: label, or None for all its labels}; None if a group joins labels."""
        schema, found = self.release.plan.schema, dict[str, Category | None]()
        for i, cells in given.items():
            if cells is not None and not (isinstance(cells, tuple) and len(cells) == 1):
                return None
            attribute = schema.attributes[i]
            found[attribute.name] = None if cells is None else attribute.labels[cells[0]]
        return found

    def change(self, asked: Change) -> Answer:
        earlier, later = asked.ticks
        said = self.stream.plan.over.said
        meaning = f"{self._said(asked.of)}, {said(later)} less {said(earlier)}"
        return self._difference(meaning, asked.of, asked.of)

    def trend(self, asked: Trend, fitted: Fitted) -> Answer:
        """Return each number's slope over ticks, by least squares, with a test of no change."""
        amount, ticks = asked.of, len(self.ticks)
        axes, own = self._axes_of(amount), len(self._forms(amount))
        x, covariance = self._counts(self._forms(amount) * ticks, axes, own)
        spans = [slice(own * k, own * (k + 1)) for k in range(ticks)]
        parts = [
            self._with_interval(amount, x[:, at], covariance[:, at, at], self._z) for at in spans
        ]
        slopes = np.stack([slope for _, slope in parts], 1)  # (numbers, ticks, forms)
        estimate = np.stack([part.estimate for part, _ in parts], 1)
        forms = covariance.reshape(-1, ticks, own, ticks, own)
        between = np.einsum("ksi,ksitj,ktj->kst", slopes, forms, slopes)
        found, times = np.full((3, len(x)), np.nan), np.array(self.ticks, dtype=np.float64)
        for k, (y, own_covariance) in enumerate(zip(estimate, between, strict=True)):
            exact = not own_covariance.any()
            noise = np.eye(ticks) if exact else own_covariance
            if np.isfinite(y).all() and np.isfinite(noise).all():
                weights, statistic = fitted(noise, times, y[:, None])
                variance = 0.0 if exact else weights @ noise @ weights
                found[:, k] = weights @ y, math.sqrt(variance), math.nan if exact else statistic[0]
        slope, deviation, statistic = found
        notes = ["slope per tick"]
        pvalue = scipy.special.chdtrc(ticks - 1, statistic)  # NaN without a statistic
        if pvalue.size == 1 and math.isfinite(pvalue[0]):
            notes += [f"no change: p {pvalue_text(pvalue[0])}"]
        notes += ["of a line by least squares", *([] if own == 1 else ["to first order"])]
        half = self._z * deviation
        ends = _Numbers(slope, deviation, slope - half, slope + half)
        meaning = f"trend of {self._said(amount)} over {self.stream.plan.over.said(1, ticks)}"
        answer = self._answer(meaning, axes, ends, notes, self._unit(amount))
        return replace(answer, pvalue=read_only(pvalue.reshape(answer.estimate.shape)))

    def _numbers(
        self, asked: Amount, axes: Mapping[int, _Axis], count: int = 1
    ) -> tuple[_Numbers, list[str]]:
        """Return an amount's numbers and notes; intervals hold together for ``count`` numbers."""
        if (table := self._whole_table(asked)) is not None:
            low, high = table.confidence_interval(self.level, simultaneous=count > 1)
            cut = table.cut if isinstance(table, MeanTable) and table.cut.any() else None
            found = _Numbers(table.estimate, table.standard_deviation, low, high, cut=cut)
            if isinstance(asked, Count) and len(asked.summed) > 1:
                return found, [_CLIPPED]  # its limits are those of products
            empty = _may_be_empty(found.estimate, table.clip)
            return found, [*empty, f"of {values_text(table.clip)}"]
        x, covariance = self._counts(self._forms(asked), axes)
        ratios, _ = self._with_interval(asked, x, covariance, quantile(self.level, count))
        if isinstance(asked, Count):
            return _Numbers(*ratios), [_CLIPPED if asked.summed else _COUNTS]
        limits, cut, notes = self._limits(asked), None, [_RATIOS]
        if isinstance(asked, Mean):
            notes = [f"of {values_text(limits)}"]
            outside = np.isin(ratios.estimate, limits) & (ratios.standard_deviation > 0)
            cut = outside if outside.any() else None
        notes[:0] = _may_be_empty(ratios.high, limits)
        return self._cut(ratios, limits)._replace(cut=cut), notes

    def _whole_table(self, asked: Amount) -> Any:
        """Return the table of sums or means if the question asks for all its cells; else None."""
        names = self.release.plan.schema.names
        if isinstance(asked, Mean) and not any(c is not None for c in asked.given.values()):
            given = tuple(names[i] for i in asked.given)
            return means(self.release, names[asked.attribute], given)
        if isinstance(asked, Count) and asked.summed:
            given = tuple(names[i] for i in asked.where if i not in asked.summed)
            if all(asked.where[i] is None for i in asked.where if i not in asked.summed):
                return sums(self.release, tuple(names[i] for i in asked.summed), given)
        return None

    def _forms(self, asked: Amount) -> list[Conditions]:
        """Return the sums of cells that make an amount: one sum, or numerator and denominator."""
        if isinstance(asked, Count):
            return [asked.where]
        if isinstance(asked, Share):
            return [{**asked.given, **asked.of}, asked.given]
        schema = self.release.plan.schema
        check_no_number(self.release, "ask: given", tuple(schema.names[i] for i in asked.given))
        base = self._clipped(asked)
        t = np.array([0.0, 0.5, 1.0] if base.squares else [0.0, 1.0])
        above, counted = np.zeros((2, base.size))
        above[: len(t)], counted[: len(t)] = (2 * t - 1, 1)  # ratio in [-1, 1]: the mean, scaled
        rows = (Summed(tuple(row.tolist()), False) for row in (above, counted))
        return [{asked.attribute: row, **asked.given} for row in rows]

    def _clipped(self, asked: Mean) -> Clipped:
        base = self.release.plan.schema.attributes[asked.attribute].base
        if not isinstance(base, Clipped):
            raise TypeError
        return base

    def _limits(self, asked: Amount) -> tuple[float, float]:
        """Return the least and the largest value that an amount can have."""
        if isinstance(asked, Share):
            return 0.0, 100.0 if asked.per_cent else 1.0
        if isinstance(asked, Mean):
            return self.release.plan.schema.attributes[asked.attribute].interval
        least = 0.0 if all(own.is_nonnegative for own in asked.summed.values()) else -math.inf
        return least, math.inf

    def _with_interval(
        self, asked: Amount, x: Array, covariance: Array, z: float
    ) -> tuple[Ratios, Array]:
        """Return an amount with intervals of ± ``z`` deviations, and its gradient in ``x``."""
        # forms are weighted sums of cells; x: (numbers, forms), covariance: (numbers, forms, forms)
        if isinstance(asked, Count):
            deviation = np.sqrt(np.maximum(covariance[:, 0, 0], 0))
            found = x[:, 0], deviation, x[:, 0] - z * deviation, x[:, 0] + z * deviation
            return Ratios(*found), np.ones_like(x)
        ratios = fieller(x[:, 0], x[:, 1], covariance, z)
        slopes = np.stack([1 / x[:, 1], -ratios.estimate / x[:, 1]], -1)
        limits = self._limits(asked)
        shift, scale = 0.0, limits[1]
        if isinstance(asked, Mean):
            low, high = self.release.plan.schema.attributes[asked.attribute].ends
            shift, scale = low / 2 + high / 2, high / 2 - low / 2
        estimate, ends = shift + scale * ratios.estimate, (shift + scale * e for e in ratios[2:])
        if isinstance(asked, Mean):
            estimate = np.clip(estimate, *limits)  # like released means
        return Ratios(estimate, scale * ratios.standard_deviation, *ends), scale * slopes

    def _pair(
        self, first: Amount, second: Amount, axes: Mapping[int, _Axis]
    ) -> tuple[Ratios, Ratios, Array]:
        """Return two amounts with intervals, and the covariance of the two for each number."""
        forms = self._forms(first), self._forms(second)
        x, covariance = self._counts([*forms[0], *forms[1]], axes, len(forms[0]))
        own = slice(len(forms[0])), slice(len(forms[0]), None)
        (one, ones), (two, twos) = (
            self._with_interval(amount, x[:, at], covariance[:, at, at], self._z)
            for amount, at in zip((first, second), own, strict=True)
        )
        return one, two, np.einsum("ki,kij,kj->k", ones, covariance[:, own[0], own[1]], twos)

    def _ratio(self, asked: Ratio) -> Answer:
        first, second = asked.first, asked.second
        axes = self._axes_of(first, second)
        one, two, between = self._pair(first, second, axes)
        s, t = one.standard_deviation, two.standard_deviation
        covariance = np.stack([s**2, between, between, t**2], -1).reshape(-1, 2, 2)
        ratios = fieller(one.estimate, two.estimate, covariance, self._z)
        notes = [_RATIOS if isinstance(first, Count) else _FIRST_ORDER]
        if isinstance(first, Mean) or self._summed(first, second):
            notes.append(_CLIPPED)
        unknown = ~np.isfinite(ratios.high)
        if unknown.any():
            where = "" if unknown.all() else " where high has no limit"
            notes.insert(0, f"no finite interval{where}: the denominator may be zero")
        least = min(self._limits(one)[0] for one in (first, second))
        meaning = f"ratio of ({self._said(first, True)}) to ({self._said(second, True)})"
        found = self._cut(ratios, (0.0 if least >= 0 else -math.inf, math.inf))
        return self._answer(meaning, axes, found, notes)

    def _difference(self, meaning: str, first: Amount, second: Amount) -> Answer:
        axes = self._axes_of(first, second)
        one, two, between = self._pair(first, second, axes)
        if isinstance(first, Count):
            estimate = one.estimate - two.estimate
            s, t = one.standard_deviation, two.standard_deviation
            deviation = np.sqrt(np.maximum(s**2 + t**2 - 2 * between, 0))
            half = self._z * deviation
            found = _Numbers(estimate, deviation, estimate - half, estimate + half)
            note = f"unbiased, {_CLIPPED}" if self._summed(first, second) else _COUNTS
            return self._answer(meaning, axes, found, [note], self._unit(first, second))
        (a, b), (c, d) = self._limits(first), self._limits(second)
        found = self._cut(difference_of_ratios(one, two, between), (a - d, b - c))
        empty = _may_be_empty(found.estimate, found.limits, "a group")
        notes = [*empty, _FIRST_ORDER, *([_CLIPPED] if isinstance(first, Mean) else [])]
        return self._answer(meaning, axes, found, notes, self._unit(first, second))

    def _summed(self, *asked: Amount) -> bool:
        return any(isinstance(one, Count) and one.summed for one in asked)

    def _cut(self, ratios: Ratios, limits: tuple[float, float]) -> _Numbers:
        """Return estimates with intervals cut to ``limits``, which also replace NaN bounds."""
        ends = zip((ratios.low, ratios.high), limits, strict=True)
        low, high = (np.where(np.isnan(end), most, np.clip(end, *limits)) for end, most in ends)
        return _Numbers(ratios.estimate, ratios.standard_deviation, low, high, limits)

    def _top(self, asked: Top) -> Answer:
        """Return the largest or the smallest numbers of an amount, in the order of their size."""
        axes = self._axes_of(asked.of)
        names, labels = (
            tuple(getattr(axis, of) for axis in axes.values()) for of in ("name", "labels")
        )
        every = list(itertools.product(*labels))
        # intervals for all compared numbers together, since the noise influences the choice
        found, notes = self._numbers(asked.of, axes, len(every))
        estimate, deviation, low, high = (np.ravel(np.asarray(part)) for part in found[:4])
        sign = -1 if asked.is_largest else 1
        order = np.argsort(sign * estimate, kind="stable")[: asked.many]
        ends = (high, low) if asked.is_largest else (-low, -high)
        ranks = [
            (1 + int((ends[1] > ends[0][k]).sum()), len(every) - int((ends[0] < ends[1][k]).sum()))
            for k in order
        ]
        joined = tuple(one[0] if len(one) == 1 else ", ".join(map(str, one)) for one in every)
        axis = _Axis(" × ".join(names), tuple(joined[k] for k in order), ())
        ours = (part[order] for part in (estimate, deviation, low, high))
        cut = None if found.cut is None else np.ravel(found.cut)[order]
        chosen = _Numbers(*ours, limits=found.limits, cut=cut)
        word = "largest" if asked.is_largest else "smallest"
        many = f"{len(order)} " if len(order) > 1 else ""
        meaning = f"{many}{word} of {len(every)}: {self._said(asked.of)}"
        answer = self._answer(meaning, {0: axis}, chosen, notes, self._unit(asked.of))
        rest = answer.note.removeprefix(self._assumed)
        least, most = (-np.inf, np.inf) if isinstance(asked.of, Count) else self._limits(asked.of)
        unknown = [joined[k] for k in np.flatnonzero((low <= least) & (high >= most))]
        note = f"{self._assumed}{_ranks_text(ranks, unknown)}; {rest}"
        return replace(answer, compared=len(every), note=note)

    def _indicator(self, asked: Indicator) -> Answer:
        """Return an indicator of cell counts, like an entropy or an odds ratio, for each group."""
        bases = {i: self._queries_of(i, cells) for i, cells in asked.of.items()}
        shape = tuple(base.queries for base in bases.values() if base.queries > 1)
        if asked.name == "odds_ratio" and shape != (2, 2):
            raise ParameterError(
                f"ask: {self.text}: expected two attributes of two categories each, got "
                f"{' × '.join(map(str, shape))} categories"
            )
        names, f = self.release.plan.schema.names, getattr(indicators, asked.name)

        def of_group(group: Mapping[int, Cells]) -> FunctionEstimate:
            within = {i: self._queries_of(i, cells) for i, cells in group.items()}
            entry = {names[i]: base for i, base in (bases | within).items()}
            table = self.release.answers(entry)
            return function(self.release, lambda n: f(n.reshape(shape)), table)

        notes = [self._odds(asked)] if asked.name == "odds_ratio" else []
        what = f"{asked.name.replace('_', ' ')} of {self._named(asked.of)}"
        return self._of_groups(what, asked.given, of_group, notes)

    def _variance(self, asked: Variance) -> Answer:
        """Return the variance of a number over the records of each group, as an answer."""
        names = self.release.plan.schema.names

        def of_group(group: Mapping[int, Cells]) -> FunctionEstimate:
            within = self._weights(group, {}, {})
            return variance_within(self.release, names[asked.attribute], within)

        what = f"variance of {self._named({asked.attribute: None})}"
        return self._of_groups(what, asked.given, of_group, [_CLIPPED])

    def _between(self, asked: Between) -> Answer:
        """Return the covariance or correlation of two numbers in the records of each group."""
        names, pair = self.release.plan.schema.names, (asked.first, asked.second)
        of_pair = covariance_within if asked.name == "covariance" else correlation_within

        def of_group(group: Mapping[int, Cells]) -> FunctionEstimate:
            within = self._weights(group, {}, {})
            return of_pair(self.release, names[asked.first], names[asked.second], within)

        what = " and ".join(self._named({i: None}) for i in pair)
        return self._of_groups(f"{asked.name} of {what}", asked.given, of_group, [_CLIPPED])

    def _of_groups(
        self,
        what: str,
        given: Conditions,
        of_group: Callable[[Mapping[int, Cells]], FunctionEstimate],
        notes: Sequence[str],
    ) -> Answer:
        """Return an answer with one number for each group, computed by ``of_group``."""
        axes = self._axes(given)
        places = list(itertools.product(*(range(len(axis.labels)) for axis in axes.values())))
        if len(places) > _MOST_FUNCTIONS:
            raise ParameterError(
                f"ask: {self.text}: expected at most {_MOST_FUNCTIONS} groups, got {len(places)}"
            )
        fixed = {i: cells for i, cells in given.items() if isinstance(cells, tuple)}
        listed = [
            of_group(fixed | {i: axes[i].cells[k] for i, k in zip(axes, place, strict=True)})
            for place in places
        ]
        low, high = np.array([one.confidence_interval(self.level) for one in listed]).T
        estimate, deviation = (
            np.array([getattr(one, name) for one in listed])
            for name in ("estimate", "standard_deviation")
        )
        numbers = _Numbers(estimate, deviation, low, high)
        answer = self._answer(f"{what}{self._groups(given)}", axes, numbers, notes)
        return replace(answer, method="; ".join(dict.fromkeys(one.method for one in listed)))

    def _queries_of(self, i: int, cells: Condition) -> AbstractBase:
        """Return the queries about attribute ``i`` for a condition; each query adds up cells."""
        size = self.release.plan.schema.attributes[i].size
        if isinstance(cells, tuple):
            return Base([[float(k in cells) for k in range(size)]])
        return Groups(size, cells.cells) if isinstance(cells, Level) else Identity(size)

    def _odds(self, asked: Indicator) -> str:
        """Return a text that names the odds in the numerator and denominator of an odds ratio."""
        axes = self._axes(asked.of)
        (one, (first, second)), (other, (yes, no)) = (
            (axis.name, axis.labels) for axis in axes.values()
        )
        return f"odds of {other}={yes} against {no} for {one}={first}, over those for {second}"

    def _regression(self, asked: Regressed) -> Answer:
        """Return the coefficients of a linear or logistic regression, as an answer."""
        names = self.release.plan.schema.names
        on = [":".join(names[i] for i in term) for term in asked.on]
        name = names[asked.attribute]
        terms = ", ".join(":".join(self._named({i: None}) for i in term) for term in asked.on)
        if asked.category is None:
            found, method = regress(self.release, name, on), _LEAST_SQUARES
            meaning = f"regression of {self._named({asked.attribute: None})} on {terms}"
        else:
            label = self.release.plan.schema.attributes[asked.attribute].labels[asked.category]
            found, method = logistic(self.release, name, label, on), _LIKELIHOOD
            said = self._named({asked.attribute: (asked.category,)})
            meaning = f"logistic regression of {said} on {terms}"
        axes = {0: _Axis("coefficient", found.columns, ())}
        low, high = found.confidence_interval(self.level)
        numbers = _Numbers(found.estimate, found.standard_deviation, low, high)
        notes = [
            "each category against the first of its attribute",
            "of the rows, not a population",
        ]
        return replace(self._answer(meaning, axes, numbers, notes), method=method)

    def _independence(self, asked: Independence) -> Answer:
        """Return the answer to a test of independence: χ², p-value and a text, without interval."""
        names = self.release.plan.schema.names
        given = [names[i] for i in asked.given]
        found = independence(self.release, names[asked.first], names[asked.second], given=given)
        pair = " and ".join(self._named({i: None}) for i in (asked.first, asked.second))
        none = np.full(1, np.nan)
        numbers = _Numbers(np.array([found.statistic]), None, none, none)
        answer = self._answer(f"independence of {pair}{self._groups(asked.given)}", {}, numbers, [])
        said = str(found)
        return replace(
            answer, note=said.replace("\n", "; "), pvalue=np.array(found.p_value), printed=said
        )

    def _check_in_bins(self, i: int) -> None:
        """Raise RefusedError if attribute ``i`` is a number clipped to an interval, not in bins."""
        attribute = self.release.plan.schema.attributes[i]
        if attribute.is_summed:
            raise RefusedError(
                f"ask: {self.text}: expected an attribute in bins, {attribute.name!r} is a number "
                "that the schema clips",
                [f"mean of {quoted(attribute.name)}"],
            )

    def _cdf(self, asked: Cdf) -> Answer:
        attribute = self.release.plan.schema.attributes[asked.attribute]
        self._check_in_bins(asked.attribute)
        prefix = as_base("prefix", attribute)
        cells = [tuple(range(k + 1)) for k in range(prefix.queries)]
        axes = self._axes(asked.given)
        axes[asked.attribute] = _Axis(attribute.name, query_labels(prefix, attribute), cells)
        meaning = f"cdf of {self._named({asked.attribute: None})}{self._groups(asked.given)}"
        found, notes = self._numbers(Share({asked.attribute: None}, asked.given), axes)
        if attribute.other is not None:
            noun = self.release.noun
            notes.insert(0, f"of all {noun}, those in {attribute.other!r} too, which are in no bin")
        return self._answer(meaning, axes, found, notes)

    def _quantile(self, asked: Quantile) -> Answer:
        attributes = self.release.plan.schema.attributes
        attribute = attributes[asked.attribute]
        self._check_in_bins(asked.attribute)
        support(attribute)  # refuses an attribute without numbers
        axes, groups = self._axes(asked.given), dict[str, AbstractBase]()
        for i, cells in asked.given.items():
            groups[attributes[i].name] = self._queries_of(i, cells)
        quantiles = quantiles_of(self.release, attribute, asked.probabilities, groups)
        axes[asked.attribute] = _Axis(quantiles.attributes[-1], quantiles.labels[-1], ())
        low, high = quantiles.confidence_interval(self.level)
        which = ", ".join(f"{p:g}" for p in asked.probabilities)
        name = self._named({asked.attribute: None})
        notes = ["biased, but intervals cover at least that often", quantiles.method]
        if attribute.other is not None:
            noun = self.release.noun
            notes.insert(0, f"of the {noun} in bins, without those in {attribute.other!r}")
        meaning = f"quantile {which} of {name}{self._groups(asked.given)}"
        found = _Numbers(quantiles.estimate, None, low, high)
        return self._answer(meaning, axes, found, notes, attribute.measured_in or "")

    def _unit(self, *asked: Amount) -> str:
        """Return the unit of an amount, or the common unit of two amounts; "" if there is none."""
        attributes, units = self.release.plan.schema.attributes, set[str]()
        for one in asked:
            if isinstance(one, Share):
                units.add("per cent" if one.per_cent else "")
                continue
            own = [one.attribute] if isinstance(one, Mean) else list(one.summed)
            units.add((attributes[own[0]].measured_in or "") if own else self.release.noun)
            units |= {""} if len(own) > 1 else set()  # a product has no unit of its own
        return units.pop() if len(units) == 1 else ""

    def _intervals_named_in(self, text: str) -> list[str]:
        """Return the intervals, like "[18, 65)", whose names occur in the text of an answer."""
        return [
            interval
            for a in self.release.plan.schema.attributes
            for name, interval in zip(a.names or (), a.interval_texts, strict=False)
            if quoted(name) in text
        ]

    def _answer(
        self,
        meaning: str,
        axes: Mapping[int, _Axis],
        found: _Numbers,
        notes: Sequence[str],
        unit: str = "",
    ) -> Answer:
        shape = tuple(len(axis.labels) for axis in axes.values())
        estimate, deviation, low, high = (
            None if x is None else read_only(np.asarray(x).reshape(shape)) for x in found[:4]
        )
        if estimate is None or low is None or high is None:
            raise TypeError
        edges = [said[1] for said in _OVER.finditer(self.text.lower())]
        said = [meaning, *self._intervals_named_in(meaning)]
        notes = [
            *(f"{x} and more" for x in edges if any(f"[{x}, " in one.lower() for one in said)),
            *notes,
        ]
        if self.release.plan.person is not None:
            most = counted_text(self.release.plan).partition(",")[0]
            capped = _CAPPED * (self.release.plan.rows_per_person > 1)
            if self.release.plan.per_person:
                capped = self._most_groups
            notes = [f"{COUNTED}{most}{capped}", *notes]
        if self.release.plan.weight is not None:
            notes = [f"weighted by {self.release.plan.weight.column}", *notes]
        elif self.release.plan.ranges and _COUNTS not in notes:  # means have two kinds of interval
            notes = [_OF_NOISE, *notes]
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
            self._assumed + "; ".join(notes),
            self.release.private,
            self.release.backend,
            found.limits,
            cut=found.cut,
            headings=tuple(self.release.plan.schema.heading(axis.name) for axis in axes.values()),
            unit=unit,
        )

    def _axes_of(self, *asked: Amount) -> dict[int, _Axis]:
        parts: list[Conditions] = []
        for one in asked:
            parts += [one.where] if isinstance(one, Count) else [one.given]
            parts += [one.of] if isinstance(one, Share) else []
        return self._axes(*parts)

    def _axes(self, *parts: Conditions) -> dict[int, _Axis]:
        """Return {attribute index: axis} of attributes and levels that are named without labels."""
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
        self, forms: Sequence[Conditions], axes: Mapping[int, _Axis], own: int = 1
    ) -> tuple[Array, Array]:
        """Return values and covariances of weighted sums of cells, for each number of an answer."""
        places = list(itertools.product(*(range(len(axis.labels)) for axis in axes.values())))
        sizes = self.release.plan.schema.sizes
        cells = max(int(np.prod([float(sizes[i]) for i in form])) for form in forms)
        if len(places) > MOST_NUMBERS or len(places) * cells > _MOST_WORK:
            raise ParameterError(
                f"ask: {self.text}: expected at most {MOST_NUMBERS} numbers, got {len(places)} "
                f"from tables of {cells} cells; hint: whole tables are in the folder, and in "
                "release[names], proportions() and cdf()"
            )
        count = len(forms)
        estimate = np.zeros((len(places), count))
        covariance = np.zeros((len(places), count, count))
        at_once = max(1, _AT_ONCE // count)
        for start in range(0, len(places), at_once):
            rows = [
                dict(zip(axes, place, strict=True)) for place in places[start : start + at_once]
            ]
            weights = [self._weights(form, axes, row) for row in rows for form in forms]
            if self.stream is None:
                found = contrasts(self.release, weights)
            else:
                # the first own forms are of the first tick, the next ones of the second, and so on
                ticks = [self.ticks[k // own] for k in range(count)] * len(rows)
                both = zip(ticks, weights, strict=True)
                found = self.stream.contrasts([{tick: of} for tick, of in both])
            for k in range(len(rows)):
                at = slice(k * count, (k + 1) * count)
                estimate[start + k] = found.estimate[at]
                covariance[start + k] = found.covariance[at, at]
        return estimate, covariance

    def _weights(
        self, form: Conditions, axes: Mapping[int, _Axis], row: Mapping[int, int]
    ) -> Weights:
        """Return {attribute names: weights of cells} for the number with these indices ``row``."""
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
        return conditions_text(self.release.plan.schema, where, titled=True) or "count"

    def _groups(self, given: Conditions) -> str:
        return f" given {self._named(given)}" if given else ""

    def _said(self, asked: Amount, brief: bool = False) -> str:
        if isinstance(asked, Share):
            what = "per cent" if asked.per_cent else "share"
            return f"{what} of {self._named(asked.of)}{self._groups(asked.given)}"
        if isinstance(asked, Mean):
            number = self._named({asked.attribute: None})
            return f"mean of {number}{self._persons(asked.attribute)}{self._groups(asked.given)}"
        if brief or not asked.where:
            return self._named(asked.where)
        if not asked.summed:
            return f"count of {self._named(asked.where)}"
        rest = {i: cells for i, cells in asked.where.items() if i not in asked.summed}
        over = self._persons(next(iter(asked.summed)))
        return self._named(asked.summed) + over + self._groups(rest)

    def _persons(self, attribute: int) -> str:
        plan = self.release.plan
        return persons_text(plan, plan.schema.names[attribute])


def _may_be_empty(known: Array, limits: tuple[float, float], whose: str = "the group") -> list[str]:
    """Return a list with a note if groups of some numbers may be empty; otherwise an empty list."""
    if np.isfinite(known).all():
        return []
    least, most = (significant(end, 6) if math.isfinite(end) else NO_LIMIT for end in limits)
    return [f"{between_text(least, most)} where {whose} may be empty: nothing known"]


def _ranks_text(ranks: Sequence[tuple[int, int]], unknown: Sequence[object]) -> str:
    """Return in words the ranks that noise leaves uncertain; ``ranks`` are (best, worst) pairs."""
    blocks: list[list[int]] = []
    for best, worst in sorted(ranks):
        if blocks and best <= blocks[-1][1]:
            blocks[-1][1] = max(worst, blocks[-1][1])
        else:
            blocks.append([best, worst])
    mixed = [f"{best} to {worst}" for best, worst in blocks if best < worst]
    if not mixed:
        return "these ranks are clear of the noise"
    listed = ", ".join(map(str, unknown[:_FEW])) + ", …" * (len(unknown) > _FEW)
    why = f", since groups may be empty: {listed}" if unknown else ""
    return f"the noise cannot tell ranks {', '.join(mixed)} apart{why}"
