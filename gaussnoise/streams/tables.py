"""Tables of single ticks, of all ticks so far, and of any linear combination of ticks.

The covariances of these tables between ticks are exact.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ParameterError
from ..files.pickling import PickledByArguments
from ..numerics.intervals import Contrast, Contrasts
from ..solvers.tables.residuals import Subset
from ..tables.planning.facts import OverTime
from ..tables.release.contrasts import Sums, Weights
from ..tables.release.forms import KeptTables
from ..tables.release.noisy import Names
from ..tables.release.release import TableRelease
from ..tables.release.table import AbstractEstimates
from ..tables.schema.schema import OnOutside
from ..text import number_of
from . import ask as _ask
from . import report as _report
from .plan import StreamPlan
from .series import SeriesTable, series_of

if TYPE_CHECKING:
    from narwhals.typing import EagerAllowed

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class StreamTables(PickledByArguments):
    """All tables of a stream up to some tick. They may be published if ``private`` is true.

    Attributes:
        plan: the plan of the stream.
        private: False for simulations, whose numbers must not be published.
        periods: for every tick so far, the unbiased tables of the rows of that tick alone, by the
            sorted positions of their attributes.
        backend: the dataframe library of ``to_frame()``.
        on_outside: the rule for rows with values outside the schema.

    >>> import numpy as np, pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(12))
    >>> days = [pa.table({"sex": ["F", "M", "F"] * 400})] * 3
    >>> so_far = plan.simulate(days, np.random.default_rng(0))
    >>> two = so_far.total(), so_far.window(3, 3)
    >>> print(*(f"{table['sex'].standard_deviation[0]:.3f}" for table in two))
    3.454 3.385
    """

    plan: StreamPlan
    private: bool
    periods: Sequence[Mapping[Subset, Array]] = field(repr=False)
    backend: "EagerAllowed" = field(repr=False, default="pyarrow")
    on_outside: OnOutside = "refuse"

    # these functions take the tables as their first argument; their modules document them
    ask = _ask.ask
    report = _report.report

    def __len__(self) -> int:
        return len(self.periods)

    def period(self, tick: int) -> TableRelease:
        """Return the tables that count the rows of one tick."""
        return self.window(tick, tick)

    def total(self, tick: int | None = None) -> TableRelease:
        """Return the tables that count all rows up to a tick, by default up to the last tick."""
        return self.window(1, len(self) if tick is None else tick)

    def window(self, first: int, last: int) -> TableRelease:
        """Return the tables that count the rows of ticks ``first`` to ``last``.

        These are ``total(last)`` minus ``total(first - 1)``.
        """
        weights = window(self.plan, first, last, len(self))
        return self._combined(weights, self.plan.over.said(first, last))

    def combined(self, weights: "ArrayLike") -> TableRelease:
        """Return ``Σ_t weights[t] · (counts of tick t)``, with exact standard deviations.

        Windows, trends, and all contrasts over time are such combinations.

        Args:
            weights: the weights of ticks 1, 2, …, up to the last published one at most. Under
                replacement they must be integers.

        Raises:
            ParameterError: there are too many weights, or they are not finite.
        """
        checked = self.plan.weights(weights)
        if self.plan.neighbors == "replace" and (checked != np.rint(checked)).any():
            raise ParameterError(
                "combined: expected integer weights under replacement, where numbers of rows are "
                "exact; "
                "hint: multiply them, and divide the result"
            )
        return self._combined(checked, "a combination of ticks")

    def contrast(self, weights: "Mapping[int, Weights]") -> Contrast:
        """Return a linear combination of cells of several ticks, with its exact standard deviation.

        Each cell counts the rows of one tick alone.

        Args:
            weights: {tick: weights of cells, as for :meth:`TableRelease.contrast`}.

        Raises:
            ParameterError: ticks or marginals are unknown, or shapes are wrong.
        """
        both = self.contrasts([weights])
        return Contrast(float(both.estimate[0]), float(both.standard_deviation[0]))

    def contrasts(self, combinations: "Sequence[Mapping[int, Weights]]") -> Contrasts:
        """Return several linear combinations of cells of ticks, with their covariance.

        Args:
            combinations: k mappings like the argument of :meth:`contrast`.

        Returns:
            Their estimates, shape (k,), and their exact covariance, shape (k, k).

        Raises:
            ParameterError: as :meth:`contrast`.
        """
        if not isinstance(combinations, list | tuple) or not all(
            isinstance(weights, Mapping)
            and all(type(t) is int and 1 <= t <= len(self) for t in weights)
            for weights in combinations
        ):
            raise ParameterError(
                f"contrast: expected weights of ticks, {{tick: weights}}, with 1 <= tick <= "
                f"{len(self)}"
            )
        ticks = sorted({t for weights in combinations for t in weights})
        cells, columns = _distinct([own for weights in combinations for own in weights.values()])
        estimate = np.zeros(len(combinations))
        if not ticks:
            return Contrasts(estimate, np.zeros((len(combinations),) * 2))
        # how often each combination uses each tick with each distinct set of cell weights
        share = np.zeros((len(combinations), len(ticks), len(cells)))
        column = iter(columns)
        for k, weights in enumerate(combinations):
            for t in weights:
                share[k, ticks.index(t), next(column)] += 1
        kept = self.kept()
        first = kept.read(1, 1)
        sums = Sums.of(first, cells)
        for k, t in enumerate(ticks):
            estimate += share[:, k] @ sums.estimate(kept.read(t, t))
        between = self.plan.time_covariance[np.ix_(*2 * [[t - 1 for t in ticks]])]
        rows = len(combinations), len(ticks) * len(cells)
        covariance = (between @ share @ sums.covariance(first)).reshape(rows) @ share.reshape(
            rows
        ).T
        return Contrasts(estimate, (covariance + covariance.T) / 2)

    def series(self, asked: Names | Callable[[TableRelease], AbstractEstimates]) -> SeriesTable:
        """Return one table, or a function of tables, over time: the first axis is the tick.

        Args:
            asked: names of attributes, as in ``release["sex", "age"]``; or a function from a
                release to a table: ``lambda tables: tables.proportions("age", given="sex")``.

        Returns:
            A :class:`SeriesTable`, with exact covariances. Its ``cumsum()`` has all rows up to each
            tick; its ``trend()`` and ``step(at)`` test for change.

        Raises:
            ParameterError: there are no ticks; names are unknown; the function returns no table; or
                there are too many numbers.
        """
        return series_of(self, asked)

    def kept(self) -> Self:
        """Return these tables with a cache in memory, so that no file is read twice."""
        return replace(self, periods=[KeptTables(period) for period in self.periods])

    def read(self, first: int, last: int) -> TableRelease:
        """Return the tables for the rows of ticks ``first`` to ``last``, computed at first use."""
        weights = window(self.plan, first, last, len(self))
        return self._release(
            weights, self.plan.over.said(first, last), _Combined(self.plan, weights, self.periods)
        )

    def _combined(self, weights: Array, what: str) -> TableRelease:
        if len(weights) > len(self):
            raise ParameterError(
                f"ticks: expected weights of the {len(self)} ticks so far, got {len(weights)}"
            )
        tables = _Combined(self.plan, weights, self.periods)
        return self._release(weights, what, tables if self.plan.needs_executors else dict(tables))

    def _release(self, weights: Array, what: str, tables: Mapping[Subset, Array]) -> TableRelease:
        return combined(
            self.plan, weights, tables, what, self.backend, self.on_outside, private=self.private
        )

    def __repr__(self) -> str:
        warning = "" if self.private else "NOT PRIVATE, a simulation: "
        return (
            f"StreamTables({warning}{len(self)} of {self.plan.over.n} ticks, "
            f"{number_of(len(self.plan.marginals), 'marginal')})"
        )


@final
@dataclass(frozen=True, eq=False)
class _Combined(Mapping[Subset, Array]):
    """A mapping {attributes: weighted sum of their tables over ticks}, computed at access."""

    plan: StreamPlan
    weights: Array
    periods: Sequence[Mapping[Subset, Array]]

    def __getitem__(self, S: Subset) -> Array:
        table = np.zeros([self.plan.schema.sizes[i] for i in S])
        for weight, period in zip(self.weights, self.periods, strict=False):
            if weight:
                table = np.asarray(table + weight * period[S])
        table.flags.writeable = False
        return table

    def __iter__(self) -> Iterator[Subset]:
        return iter(self.plan.tables.subsets)

    def __len__(self) -> int:
        return len(self.plan.tables.subsets)


def _distinct(listed: Sequence[Weights]) -> tuple[list[Weights], list[int]]:
    """Return the distinct weights of cells in a list, and for each item its index among them."""
    known: dict[object, int] = {}
    found: list[Weights] = []
    seen: dict[int, int] = {}  # by identity: quicker than comparing weights
    for weights in listed:
        if id(weights) not in seen:
            key = (
                tuple(
                    (names, given.shape, given.tobytes())
                    for names, given in ((names, np.asarray(w)) for names, w in weights.items())
                )
                if isinstance(weights, Mapping)
                else id(weights)
            )
            if key not in known:
                known[key] = len(found)
                found.append(weights)
            seen[id(weights)] = known[key]
    return found, [seen[id(weights)] for weights in listed]


def window(plan: StreamPlan, first: int, last: int, done: int) -> Array:
    """Return the weights of a sum over ticks: 1 from ``first`` to ``last``, 0 before.

    Raises:
        ParameterError: there are no such ticks, or not all are published.
    """
    weights = plan.window(first, last)
    if last > done:
        raise ParameterError(f"ticks: expected one of the {done} ticks so far, got {last}")
    return weights


def combined(
    plan: StreamPlan,
    weights: Array,
    tables: Mapping[Subset, Array],
    what: str,
    backend: "EagerAllowed",
    on_outside: OnOutside,
    *,
    private: bool = True,
) -> TableRelease:
    """Return a weighted sum of the tables of ticks as a release.

    ``weights`` are those of ticks; ``tables`` are the sums, whose covariance is computed; ``what``
    names the combination for users.
    """
    taken = np.flatnonzero(weights)
    is_tick = len(taken) == 1 and weights[taken[0]] == 1
    return TableRelease(
        plan=plan.one_tick,
        private=private,
        rho_charged=plan.rho_charged,
        covariance=plan.covariance(weights),
        query=plan.query,
        tables=tables,
        backend=backend,
        on_outside=on_outside,
        over=OverTime(
            what,
            plan.facts,
            int(taken[0]) + 1 if is_tick else None,
            plan.over.columns,
            plan.over.enforced,
            is_tick or plan.over.most_reports == 1,
        ),
    )
