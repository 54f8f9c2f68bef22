"""Tables over time: their first axis is the tick, and covariances between ticks are exact."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ..errors import NotAvailableError, OutputError, ParameterError, exists_already
from ..files.disk import aside
from ..numerics.intervals import ConfidenceInterval, quantile
from ..tables.release.comparison import ComparisonTable, compared, paired_covariance
from ..tables.release.formats import FORMATS, format_of
from ..tables.release.forms import CellForms, Function, Place, places_of, side_by_side
from ..tables.release.noisy import Names, read_only
from ..tables.release.release import TableRelease
from ..tables.release.show import deviations, ends_text, missing_text, rounded, table_text
from ..tables.release.table import AbstractEstimates, MarginalTable, QueryTable
from ..tables.release.tidy import LEVEL, free_name, with_times
from ..tables.schema.schema import Category
from ..text import near, one_of
from .files import series_statement
from .ticks import Ticks
from .trend import TrendTable, trend_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .tables import StreamTables

Array = NDArray[np.float64]
Window = tuple[int, int]  # first and last tick whose rows are counted

_MOST_NUMBERS = 10**6  # most numbers of a series
_MOST_TOGETHER = 2000  # most numbers whose joint covariance is computed
_SHOWN = 20  # most numbers that are printed
_SPAN, _PERIOD, _CUMULATIVE = "span", "period", "cumulative"


@final
@dataclass(frozen=True, eq=False)
class _Source:
    """The stream and the question from which a series was made; both None after unpickling."""

    tables: "StreamTables | None"
    asked: Callable[[TableRelease], AbstractEstimates] | None
    over: Ticks

    def __deepcopy__(self, memo: object) -> "_Source":
        return self  # immutable

    def __reduce__(self) -> tuple[Any, ...]:
        return _Source, (None, None, self.over)


@final
@dataclass(frozen=True, eq=False, repr=False)
class SeriesTable(AbstractEstimates):
    """The tables of all ticks of a stream as one table with the tick as first attribute.

    All methods of tables also compare ticks, with the exact covariance of the noise: ``contrast``,
    ``difference("tick", 7, 3)``, ``ratio``, ``to_frame``, ``top``, ``plot``.

    Formal guarantees:
        * All numbers are functions of what the stream has published: a series costs no privacy.
        * Estimates of counts, sums and answers are unbiased. Their standard deviations and the
          covariances between ticks and between cells are exact.
        * All intervals and tests are about the rows that were counted: they hold for the noise
          alone, for any rows. They do not cover the variation between samples of a population.

    Attributes:
        attributes: "tick", then the names of the table's attributes.
        labels: the numbers of ticks, then the labels of cells along every axis.
        estimate: shape (ticks, sizes…).
        standard_deviation: same shape.
        private: False for simulations, whose numbers must not be published.
        windows: for each table, the first and last tick of the rows that it counts.
        parts: the tables, one for each window.

    >>> import numpy as np, pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(12))
    >>> days = [pa.table({"sex": ["F", "M", "F"] * (400 + 20 * t)}) for t in range(6)]
    >>> so_far = plan.simulate(days, np.random.default_rng(0))
    >>> series = so_far.series("sex")
    >>> print(series.attributes, series.estimate.shape, series.cumsum().estimate.shape)
    ('tick', 'sex') (6, 2) (6, 2)
    >>> rise = series.trend()  # 40 women more from day to day, 20 men
    >>> low, high = rise.confidence_interval(0.999999)
    >>> ((low < [40, 20]) & ([40, 20] < high)).tolist()
    [True, True]
    >>> series.difference("tick", 6, 1).names
    ('6', '1')
    """

    windows: tuple[Window, ...]
    parts: tuple[AbstractEstimates, ...] = field(repr=False)
    _source: _Source = field(repr=False)

    @property
    def headings(self) -> tuple[str, ...]:
        return (self.attributes[0], *self.parts[0].headings)

    @property
    def limits(self) -> tuple[float, float]:
        return self.parts[0].limits

    @property
    def closing(self) -> str:
        return self.parts[0].closing

    @property
    def is_linear(self) -> bool:
        return self.parts[0].is_linear

    @property
    def counted(self) -> str:
        """Text on the rows or persons that each table counts, like "rows of each tick"."""
        lengths, noun = {last - first + 1 for first, last in self.windows}, self.noun
        if lengths == {1}:
            return f"{noun} of each {self.word}"
        if len(lengths) == 1:
            return f"{noun} of each {lengths.pop()} {self.word}s"
        start = self.windows[0][0]
        since = self._source.over.said(start)
        return f"all {noun} so far" if start == 1 else f"all {noun} from {since} on"

    @property
    def noun(self) -> str:
        return self.parts[-1].noun

    @property
    def which(self) -> str:
        """The first and last tick of the series as text, such as "ticks 1 to 6"."""
        return self._source.over.said(self.windows[0][1], self.windows[-1][1])

    @property
    def word(self) -> str:
        """The word for a tick: "tick", or its kind of period, like "month"."""
        return self._source.over.word

    @property
    def times(self) -> tuple[str, ...]:
        """The time of each tick, like "March 2026"; empty if the stream states none."""
        over = self._source.over
        return tuple(over.time(last) for _, last in self.windows) if over.times else ()

    def unlimited(self, squared: float) -> ConfidenceInterval:
        low, high = zip(*(part.unlimited(squared) for part in self.parts), strict=True)
        return ConfidenceInterval(np.stack(low), np.stack(high))

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return a confidence interval for every number of the series.

        Each interval holds at this level alone; if ``simultaneous``, all intervals together, for
        all ticks and cells, hold at this level (Šidák). Intervals of shares and means are cut to
        the possible values. Each contains the possible value that is nearest to the estimate.

        Returns:
            ``(low, high)``, arrays shaped like ``estimate``.
        """
        z = quantile(level, self.estimate.size if simultaneous else 1)
        low, high = self.unlimited(z**2)
        if not self.is_linear:
            least, most = self.limits
            low = np.where(np.isnan(low), least, np.clip(low, least, most))
            high = np.where(np.isnan(high), most, np.clip(high, least, most))
            nearest = np.clip(self.estimate, least, most)
            low, high = np.fmin(low, nearest), np.fmax(high, nearest)
        return ConfidenceInterval(low, high)

    def at(self, places: Sequence[Place]) -> Function:
        if len(places) > _MOST_TOGETHER:
            raise ParameterError(
                f"series: expected at most {_MOST_TOGETHER} numbers together, got {len(places)}; "
                "hint: fewer ticks or cells"
            )
        order = sorted(range(len(places)), key=lambda n: places[n][0])
        by_tick: dict[int, list[Place]] = {}
        for n in order:
            by_tick.setdefault(places[n][0], []).append(places[n][1:])
        found = side_by_side(*(self.parts[k].at(own) for k, own in by_tick.items()))
        back = np.argsort(order)
        return found.then(lambda x: (x[back], np.eye(len(x))[back]))

    def part(self, axis: int, k: int) -> Any:
        if axis == 0:
            return self.parts[k]
        asked = self._source.asked
        own = None if asked is None else lambda release: asked(release).part(axis - 1, k)
        source = replace(self._source, asked=own)
        return _stacked([part.part(axis - 1, k) for part in self.parts], self.windows, source)

    def cumsum(self) -> "SeriesTable":
        """Return the series of running totals: the table at a tick counts all rows up to this tick.

        Counts and sums add up; means and shares are those of all rows so far.
        """
        start = self.windows[0][0]
        return self._with_windows([(start, last) for _, last in self.windows])

    def rolling(self, window: int) -> "SeriesTable":
        """Return the series of all windows of ``window`` successive ticks.

        The table of a window counts the rows of all its ticks, and is labelled by its last tick.

        Raises:
            ParameterError: ``window`` is no integer from 1 to the number of ticks of the series.
        """
        ends = [last for _, last in self.windows]
        if type(window) is not int or not 1 <= window <= len(ends):
            raise ParameterError(
                f"rolling: expected a window of 1 to {len(ends)} ticks, got {window!r:.50}"
            )
        return self._with_windows([(last - window + 1, last) for last in ends[window - 1 :]])

    def between(self, first: int, last: int) -> "SeriesTable":
        """Return the series of the ticks from first to last.

        Raises:
            ParameterError: there are no such ticks.
        """
        known = self.labels[0]
        if first not in known or last not in known or not first <= last:
            raise ParameterError(
                f"between: expected ticks {known[0]} <= first <= last <= {known[-1]}, got "
                f"{first!r:.50}, {last!r:.50}"
            )
        own = slice(known.index(first), known.index(last) + 1)
        return _stacked(self.parts[own], self.windows[own], self._source)

    def covariance(self, **labels: Category) -> Array:
        """Return the covariance of all numbers that have these labels, over ticks and cells.

        ``series.covariance(sex="F")`` has the covariances of women's counts between all pairs of
        ticks; without labels, also those between cells. It is exact for counts, sums and answers,
        otherwise a first-order approximation.

        Returns:
            Shape (k, k), for the k numbers in C order; the tick is the first axis.

        Raises:
            ParameterError: an unknown attribute or label, or more than 2000 numbers.
        """
        chosen = np.ones(self.estimate.shape, dtype=bool)
        for name, label in labels.items():
            known = self.labels[self.attributes.index(name)] if name in self.attributes else None
            if known is None or label not in known:
                names = self.attributes if known is None else known
                got = name if known is None else label
                raise ParameterError(
                    f"covariance: expected {one_of(map(repr, names))}, got {got!r:.80}"
                    + near(got, names)
                )
            axis = self.attributes.index(name)
            own = np.arange(len(known)) == known.index(label)
            chosen &= own.reshape([-1 if k == axis else 1 for k in range(chosen.ndim)])
        return self.at(places_of(np.flatnonzero(chosen), chosen.shape)).joint().covariance

    def trend(self) -> TrendTable:
        """Return the slope per tick of every cell, and a test whether the cell is constant.

        A straight line is fitted to the numbers of single ticks by generalised least squares, with
        the exact covariance of the noise. The χ² test has the hypothesis that the true number is
        the same in all ticks.

        Raises:
            ParameterError: there are fewer than three ticks, or it is a series of totals or
                windows.
        """
        self._check_periods("trend")
        ticks = len(self.windows)
        if ticks < 3:
            raise ParameterError(f"trend: expected at least 3 ticks, got {ticks}; hint: step")
        return trend_of(self, self._between_ticks() if self.is_linear else None)

    def step(self, at: int) -> ComparisonTable:
        """Return the average per tick from tick ``at`` on, minus the average of the ticks before.

        Means and shares are those of all rows from ``at`` on, and of all rows before. ``pvalue``
        tests that there is no difference. If you chose ``at`` from the series itself, intervals
        miss more often than their level says: use ``confidence_interval(1 - 0.05 / ticks)``.

        Args:
            at: a tick after the first one of the series.

        Returns:
            A table of differences; its ``as_ratio()`` and ``relative()`` return ratios.

        Raises:
            ParameterError: there is no such tick, or it is a series of totals or windows.
        """
        self._check_periods("step")
        known = [last for _, last in self.windows]
        if type(at) is not int or at not in known[1:]:
            raise ParameterError(
                f"step: expected a tick after {known[0]}, up to {known[-1]}, got {at!r:.50}; hint: "
                "the first tick after the step"
            )
        spans = [(at, known[-1]), (known[0], at - 1)]
        parts = self._with_windows(spans).parts
        after, before = (
            _per_tick(part, last - first + 1)
            for part, (first, last) in zip(parts, spans, strict=True)
        )
        names = tuple(self._source.over.said(*span) for span in spans)
        covariance = paired_covariance(after, before)
        return compared("difference", (names[0], names[1]), after, before, covariance)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a tidy table with the numbers of each tick's rows, and of all rows up to the tick.

        The column ``span`` is "period" or "cumulative"; the others are those of :meth:`to_frame`.
        If the stream states the time of its first tick, a column ``time`` follows the column of the
        tick. In +sdmx.csv and .json, which have no column ``time``, times are the names of ticks.

        Args:
            path: a new file; the end of its name gives the format: .csv, .parquet, .jsonl, .xlsx,
                +sdmx.csv or .json.

        Raises:
            ParameterError: no format has this ending, or the format cannot hold this number of
                rows; or it is a series of totals or windows.
            OutputError: the file exists or cannot be written.
        """
        self._check_periods("save")
        file = Path(os.path.abspath(os.fspath(path)))
        try:
            format = format_of(file.name)
        except LookupError:
            known = " or ".join(own.ending for own in FORMATS.values())
            raise ParameterError(f"save: expected a name in {known}, got {file.name!r}") from None
        ends = self.windows[0][0], self.windows[-1][1]
        notes = series_statement(self._tables("save").plan, *ends, private=self.private)
        if not isinstance(self.parts[0], MarginalTable | QueryTable):
            notes = replace(notes, unit="", units={})  # shares and means have no unit
        if self.times:
            named = dict(zip(map(str, self.labels[0]), self.times, strict=True))
            notes = replace(notes, labels={self.attributes[0]: named})
        rows = self._tidy(has_times=format.holds_columns)
        if rows.num_rows > format.most_rows:
            raise ParameterError(
                f"save: expected at most {format.most_rows} rows for {format.ending}, got "
                f"{rows.num_rows}; hint: .csv or .parquet"
            )
        if os.path.lexists(file):
            raise exists_already("save", file)
        try:
            with aside(file) as scratch, scratch.open("xb") as written:
                with format.writer(written, rows.schema, notes) as writer:
                    writer.write_table(rows)
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(f"save: cannot write {file} ({type(error).__name__})") from None

    def _tidy(self, *, has_times: bool) -> Any:
        """Return the rows that :meth:`save` writes: those of single ticks, then of all so far."""
        import pyarrow as pa

        both = []
        for span, own in ((_PERIOD, self), (_CUMULATIVE, self.cumsum())):
            rows = own.to_arrow()
            rows = with_times(rows, 1, self.attributes, own.times if has_times else ())
            name = free_name(_SPAN, self.attributes)
            both.append(rows.add_column(0, name, [pa.array([span] * rows.num_rows)]))
        return pa.concat_tables(both)

    def plot(self, level: float = LEVEL, simultaneous: bool = False) -> "Figure":
        """Draw a line for every cell, with a band that shows its intervals.

        If there are more than five cells, each has its own panel; of more than 12 cells, those with
        the largest means are shown.

        Args:
            level: the level of the intervals.
            simultaneous: whether all intervals hold together, or each alone.

        Returns:
            A matplotlib Figure; save it with ``.savefig(path)``.

        Raises:
            ParameterError: the level is outside (0, 1).
        """
        from .series_plot import plot_series

        return plot_series(self, level, simultaneous)

    def _between_ticks(self) -> Array:
        """Return the covariance of a cell between ticks, up to a factor, shape (ticks, ticks)."""
        ticks = [last - 1 for _, last in self.windows]
        return self._tables("trend").plan.time_covariance[np.ix_(ticks, ticks)]

    def _with_windows(self, windows: Sequence[Window]) -> "SeriesTable":
        """Return the series of the same table for other windows, pairs (first tick, last tick)."""
        tables = self._tables("series")
        parts = [_table_of_window(tables, self._source.asked, window) for window in windows]
        return _stacked(parts, windows, self._source)

    def _tables(self, function: str) -> "StreamTables":
        if self._source.tables is None:
            raise NotAvailableError(
                f"{function}: expected a series of a stream at hand, got one from a pickle, which "
                "holds no stream; hint: ask the stream for the series again"
            )
        return self._source.tables

    def _check_periods(self, function: str) -> None:
        if any(first < last for first, last in self.windows):
            raise ParameterError(
                f"{function}: expected a series of single ticks, got one of totals or windows, "
                f"which share rows; hint: stream.series(…).{function}(…)"
            )

    def __repr__(self) -> str:
        return f"SeriesTable({self.counted}, {self.which}, of {self.parts[-1]!r})"

    def text(self, level: float = LEVEL, title: str | None = None) -> str:
        rows = max(_SHOWN // max(self.parts[0].estimate.size, 1), 1)
        shown = _stacked(self.parts[-rows:], self.windows[-rows:], self._source)
        every, kept = len(self.windows), len(shown.windows)
        last = f"the last {f'{kept} ' * (kept > 1)}of " * (kept < every)
        deviation, ends = shown.standard_deviation, shown.confidence_interval(level)
        estimate = rounded(shown.estimate, deviation)
        low, high = ends_text(shown.estimate, ends, lambda x: rounded(x, deviation))
        sd = deviations(deviation)
        ticks = shown.labels[0]
        if shown.times:
            ticks = [f"{tick} ({time})" for tick, time in zip(ticks, shown.times, strict=True)]
        return table_text(
            f"{title or repr(self.parts[-1])}, {last}{self.which}: {self.counted}",
            self.attributes,
            (ticks, *shown.labels[1:]),
            ["estimate", "± sd", "low", "high"],
            [estimate, sd, low, high],
            "\n".join([self.closing_at(level), *missing_text(shown.estimate, ends)]),
            private=self.private,
            headings=self.headings,
        )


def series_of(
    tables: "StreamTables", asked: Names | Callable[[TableRelease], AbstractEstimates]
) -> SeriesTable:
    """Return the series of a table, or a function of tables, over the rows of single ticks.

    The arguments are those of :meth:`StreamTables.series`.
    """
    if not len(tables):
        raise ParameterError("series: expected a stream with ticks, got none so far")
    kept = tables.kept()
    names: Any = asked
    function = asked if callable(asked) else lambda release: release[names]
    source = _Source(kept, function, tables.plan.over)
    windows = [(tick, tick) for tick in range(1, len(tables) + 1)]
    one = _table_of_window(kept, source.asked, windows[0])
    if one.estimate.size * len(windows) > _MOST_NUMBERS:
        raise ParameterError(
            f"series: expected at most {_MOST_NUMBERS} numbers, got {one.estimate.size} cells in "
            f"{len(windows)} ticks; hint: fewer attributes"
        )
    rest = [_table_of_window(kept, source.asked, window) for window in windows[1:]]
    return _stacked([one, *rest], windows, source)


def _table_of_window(
    tables: "StreamTables",
    asked: Callable[[TableRelease], AbstractEstimates] | None,
    window: Window,
) -> AbstractEstimates:
    """Return the asked table for a window, that is a pair (first tick, last tick)."""
    found: object = asked(tables.read(*window)) if asked is not None else None
    known = isinstance(found, ComparisonTable) or getattr(found, "forms", None) is not None
    if not isinstance(found, AbstractEstimates) or not known:
        raise ParameterError(
            "series: expected names of attributes, or a function from a release to one of its "
            f"tables with standard deviations, got a {type(found).__name__}; hint: "
            'lambda tables: tables.proportions("age", given="sex")'
        )
    return _over_stream(found, tables, tuple(range(window[0], window[1] + 1)))


def _over_stream(
    table: AbstractEstimates, source: "StreamTables", ticks: tuple[int, ...]
) -> AbstractEstimates:
    """Return a table of the rows in ``ticks`` whose cells are linear in the stream's tables."""
    own: dict[str, Any] = {}
    for one in fields(table):
        value = getattr(table, one.name)
        if isinstance(value, AbstractEstimates):
            own[one.name] = _over_stream(value, source, ticks)
        elif isinstance(value, CellForms):
            own[one.name] = replace(value, release=source, ticks=ticks)
    return replace(table, **own)


def _stacked(
    parts: Sequence[AbstractEstimates], windows: Sequence[Window], source: _Source
) -> SeriesTable:
    """Return a series of the tables of several windows, each labelled by its last tick."""
    one = parts[-1]
    return SeriesTable(
        attributes=(free_name("tick", one.attributes), *one.attributes),
        labels=(tuple(last for _, last in windows), *one.labels),
        estimate=read_only(np.stack([part.estimate for part in parts])),
        standard_deviation=read_only(np.stack([part.standard_deviation for part in parts])),
        private=one.private,
        backend=one.backend,
        windows=tuple(windows),
        parts=tuple(parts),
        _source=source,
    )


def _per_tick(table: AbstractEstimates, ticks: int) -> AbstractEstimates:
    """Return a table of counts, sums or answers divided by ``ticks``, others unchanged."""
    if not table.is_linear:
        return table
    if isinstance(table, ComparisonTable):
        first, second = _per_tick(table.first, ticks), _per_tick(table.second, ticks)
        return compared(table.kind, table.names, first, second, table.covariance / ticks**2)
    return replace(
        table,
        estimate=table.estimate / ticks,
        standard_deviation=table.standard_deviation / ticks,
        forms=None if table.forms is None else replace(table.forms, scale=1 / ticks),
    )
