"""The plan of means of columns: attributes, noisy counts to find ranges, and noise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, final

import scipy

from ..numerics.rounding import rounded_up
from ..privacy.definitions import zCDP
from ..privacy.guarantee import AbstractPrivacy
from ..tables.counting.count import count_marginals
from ..tables.counting.per_person import Reduced
from ..tables.counting.persons import PersonLimit
from ..tables.planning.door import plan
from ..tables.planning.plan import Plan
from ..tables.planning.ranges import FoundRange
from ..tables.schema.about import NOTHING_SAID, About
from ..tables.schema.codes import Code
from ..tables.schema.dialect import USUAL, Dialect
from ..tables.schema.numbers import PerPerson
from ..tables.schema.schema import Attribute, OnOutside, Schema, with_infinite
from .ranges import QUESTIONS, Counts, Ends, Exact, NoRangeError, find_range

_FAILURES = 0.05  # part of 1 − level for the event that a check of a range errs
_EVENTS = 7  # the noise of the count and of two checks of two ends each, and the sample at each end
UNSPENT = 0.4  # part of the budget that no search uses
_WITHOUT = "no number"  # the catch-all of a column: its rows still count in other columns


@final
@dataclass(frozen=True)
class ColumnPlan:
    """The public arguments of means of columns, and the plans of releases that follow from them.

    Attributes:
        columns: the names of the columns.
        groups: the attributes of the groups.
        options: the arguments of :func:`plan` about persons and neighbours.
        per_person: {column: name of the function that reduces a person's numbers to one}; empty for
            means over rows.
        on_outside: the treatment of rows that do not fit.
        level: the level of the intervals for which ranges are checked.
        about: texts for readers of the release, such as title and source.
        missing: {column: codes for no answer}, for some columns.
        file: the dialect of the table's files, for a later inspection of the release.
    """

    columns: Sequence[str]
    groups: Sequence[Attribute]
    options: dict[str, Any]
    per_person: Mapping[str, PerPerson]
    on_outside: OnOutside
    level: float
    about: About = NOTHING_SAID
    missing: Mapping[str, Sequence[Code]] = field(default_factory=dict)
    file: Dialect = USUAL

    @property
    def wrong(self) -> float:
        """The probability, for each column, that the check of its range gives a wrong result."""
        return (1 - self.level) * _FAILURES

    @property
    def quantile(self) -> float:
        """The standard normal quantile for two-sided intervals of noise and sampling.

        The intervals may fail with probability 1 − level − :attr:`wrong`.
        """
        return float(-scipy.special.ndtri((1 - self.level - self.wrong) / 2))

    def counts(self, table: object, column: str, rho: float) -> Counts:
        """Return the object that counts, with noise, the numbers of a column beyond thresholds.

        All answers together cost at most ``rho``. Each person, or each row, has one number.
        """
        return Counts(
            self.exact(table, column), self.options["neighbors"], rho, self.wrong / _EVENTS
        )

    def exact(self, table: object, column: str) -> Exact:
        """Return a function that counts a column's numbers beyond thresholds, without noise.

        The function reads the table as releases do. It counts one row of each person, drawn at
        random. So a person's expected count is the share of the person's rows that are beyond the
        threshold.
        """
        person = self.options["person"]
        limit = None if person is None else PersonLimit(person, 1)

        def counted(thresholds: Sequence[float]) -> tuple[int, Sequence[int], Sequence[int]]:
            after = {t: math.nextafter(t, math.inf) for t in thresholds}
            edges = sorted({-math.inf, *after, *after.values(), math.inf})
            codes = self.missing.get(column, ())
            own = with_infinite(Attribute(column, edges=edges, missing=codes))
            largest: Reduced = {0: ("max", own)} if self.per_person.get(column) == "max" else {}
            once = None if limit is None else replace(limit, reduced=largest)
            read = [own, *self.groups]
            [(_, bins)] = count_marginals(table, read, [(0,)], self.on_outside, once)
            below = dict(zip(edges, [0, *accumulate(bins.tolist())], strict=True))
            number = below[math.inf]
            return (
                number,
                [below[t] for t in thresholds],
                [number - below[after[t]] for t in thresholds],
            )

        return counted

    def range_of(
        self,
        column: str,
        counts: Counts,
        ends: Ends,
        spread: float,
        order: float | None,
        unit: float,
    ) -> FoundRange:
        """Return the range to which a column is clipped, or the reason why no range was found.

        ``ends`` are the column's public bounds. ``spread`` and ``order`` are as in
        :func:`column_means`. ``unit`` is :meth:`deviation` for the least part of the budget that
        remains after a search.

        ``unit`` is :meth:`deviation` for the least part of the budget that remains after a search.
        """

        def noise(count: float, spent: float) -> float:
            """Return the deviation of a group's mean of numbers in [−1, 1] after a search."""
            more = math.sqrt(UNSPENT / max(1 - spent / counts.rho, UNSPENT))
            # Wilson's correction for small groups is included
            return math.hypot(unit * more, self.quantile) * self.number_of_groups / count

        found, reason = None, ""
        try:
            found = find_range(counts, ends, spread, order, noise)
        except NoRangeError as error:
            reason = str(error)
        asked = FoundRange(column, None, None, reason=reason, wrong=self.wrong)
        if counts.spent:
            rho = rounded_up(counts.spent)
            asked = replace(asked, number=counts.number, rho=rho, draws=QUESTIONS)
        return asked if found is None else replace(asked, **vars(found))

    def plan(self, ranges: Sequence[FoundRange], privacy: AbstractPrivacy) -> Plan:
        """Return the plan of counts, sums and sums of squares of the numbers in these ranges.

        The plan of weighted means has no sums of squares.
        """
        other = _WITHOUT if self.on_outside == "drop" else None
        numbers = [
            Attribute(  # an attribute for infinite numbers
                own.column,
                edges=[-math.inf, math.inf],
                other=_WITHOUT,
                missing=self.missing.get(own.column, ()),
            )
            if own.low is None or own.high is None
            else Attribute(
                own.column,
                clip=[own.low, own.high],
                base={
                    "kind": "moments",
                    "degrees": [0, 1] if "weight" in self.options else [0, 1, 2],
                    "about": own.low / 2 + own.high / 2,
                },
                other=other,
                missing=self.missing.get(own.column, ()),
            )
            for own in ranges
        ]
        schema = Schema([*self.groups, *numbers], about=self.about, file=self.file)
        by = [group.name for group in self.groups]
        clipped = {own.name for own in numbers if own.clip is not None}
        how: dict[str, PerPerson] = {
            name: own for name, own in self.per_person.items() if name in clipped
        }
        return plan(
            schema,
            [(*by, own.name) for own in numbers],
            privacy,
            per_person=how or None,
            ranges=ranges,
            **self.options,
        )

    @cached_property
    def in_unit(self) -> Plan:
        """The plan for ranges of length 2 at ρ = ½; the noise of other plans is proportional."""
        ranges = [FoundRange(column, 0.0, 2.0) for column in self.columns]
        return self.plan(ranges, zCDP(0.5))

    def deviation(self, rho: float) -> float:
        """Return the standard deviation of the noise on a sum of numbers in [−1, 1], at this ρ.

        Raises:
            ParameterError: there is no such noise.
        """
        own, by = self.in_unit, [group.name for group in self.groups]
        without = self.plan([FoundRange(column, None, None) for column in self.columns], zCDP(rho))
        for planned in (replace(own, asked=replace(own.asked, privacy=zCDP(rho))), without):
            _ = planned.rho_charged  # refuse both now, before a search spends anything
        sums = [own.answer_deviations((*by, column))[..., 1].max() for column in self.columns]
        return float(max(sums)) / math.sqrt(2 * rho)

    @property
    def number_of_groups(self) -> int:
        """The number of groups, that is of all combinations of the listed categories."""
        return math.prod(group.size - (group.other is not None) for group in self.groups)
