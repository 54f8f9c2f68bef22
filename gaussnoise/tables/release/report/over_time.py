"""Tables over time on a page: pictures of few cells, and the numbers of the last ticks."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from ...schema.schema import Schema
from ..table import AbstractEstimates
from ..tidy import LEVEL, level_text
from .charts import Picture, series_chart
from .numbers import cells_of
from .order import reading_places
from .render import Cell

_MOST_PANELS = 12  # most cells with a picture
_MOST_TICKS = 8  # most columns of the table
_MOST_ROWS = 60  # most rows of the table


@final
@dataclass(frozen=True)
class OverTime:
    """The numbers of one table at every tick (release of a stream), for a section of a page.

    Attributes:
        series: the numbers for the rows of each tick; the first axis is the tick.
        title: the name of the table in words.
        anchor: the anchor of the picture.
        schema: the schema, from which the order of categories for readers is known.
        word: the word for a tick: "tick", or its kind of period, like "month".
        times: the time of each tick, like "March 2026"; empty if they are not known.
    """

    series: AbstractEstimates
    title: str
    anchor: str
    schema: Schema
    word: str = "tick"
    times: tuple[str, ...] = ()

    @property
    def ticks(self) -> list[str]:
        """The names of all ticks (releases of a stream): their times if known, else numbers."""
        return [*self.times] or [f"tick {tick}" for tick in self.series.labels[0]]

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """The indices of cells (in C order), sorted for readers: a row for each tick."""
        ticks, *_ = self.series.estimate.shape
        return np.reshape(reading_places(self.series, self.schema), (ticks, -1))

    @property
    def _names(self) -> list[str]:
        """The names of the cells of the table, in the order for readers."""
        listed = cells_of(self.series, self._places[0].tolist())
        return [" · ".join(map(str, cell.names[1:])) or "all" for cell in listed]

    @property
    def picture(self) -> Picture | None:
        """A picture with a panel for each cell; None for many cells or a single tick."""
        names, ticks = self._names, self.series.labels[0]
        if len(names) > _MOST_PANELS or len(ticks) < 2:
            return None
        both = (self.series.estimate, *self.series.confidence_interval())
        numbers = (values.ravel()[self._places.T] for values in both)
        return series_chart(
            [int(tick) for tick in ticks],
            list(zip(names, *numbers, strict=True)),
            self.anchor,
            f"{self.title} by {self.word}: estimates with {level_text(LEVEL)} intervals",
            f"One panel for each group, from the first {self.word} to the last; the table below "
            "has the numbers of the last ones.",
            self.times,
        )

    @property
    def columns(self) -> list[str]:
        """The headings of the columns: the last ticks (each tick is one release of a stream)."""
        return self.ticks[-_MOST_TICKS:]

    @property
    def rows(self) -> list[tuple[str, list[Cell]]]:
        """The rows of the table: the name of a cell, and its numbers at the last ticks."""
        ticks = len(self.series.labels[0])
        shown = range(ticks)[-_MOST_TICKS:]
        places = self._places[shown][:, :_MOST_ROWS].T
        cells = iter(cells_of(self.series, places.ravel().tolist()))
        names = self._names[:_MOST_ROWS]
        return [(name, [next(cells) for _ in shown]) for name in names]

    @property
    def left_out(self) -> tuple[int, int]:
        """The numbers of ticks and of cells that are not in the table."""
        ticks = len(self.series.labels[0])
        size = self.series.estimate.size // ticks
        return max(0, ticks - _MOST_TICKS), max(0, size - _MOST_ROWS)
