"""Some cells of a table, or all of them in another order."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...layout import on_screen
from ...numerics.intervals import ConfidenceInterval
from ..schema.schema import Category
from .report.render import Cell, rendered
from .show import deviations, ends_text, first, missing_text, rows_text
from .tidy import LEVEL, NUMBERS, as_pandas, framed, level_text, with_level

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure

    from .table import AbstractEstimates

Array = NDArray[np.float64]
Places = NDArray[np.intp]

_MOST_SHOWN = 40  # most cells in printed text
_FIRST = 20  # cells of a table that a notebook shows


def in_order(estimate: Array, *, descending: bool) -> Places:
    """Return flat indices of cells, sorted by estimate; ties keep their order, NaN is last."""
    values = np.ravel(estimate)
    return np.argsort(-values if descending else values, kind="stable")


def first_of(order: Places, count: int, function: str) -> Places:
    """Return the first ``count`` indices; raise ParameterError unless it is a positive integer.

    ``function`` is the name with which the error message begins.
    """
    if type(count) is not int or count < 1:
        raise ParameterError(f"{function}: expected a positive number of cells, got {count!r:.50}")
    return order[:count]


@final
@dataclass(frozen=True, eq=False, repr=False)
class CellList:
    """All cells of a released table in sorted order, or some of them: see ``sorted`` and ``top``.

    Attributes:
        table: the table that the cells are from.
        places: the indices of the cells in the flattened table (C order).

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> largest = release["sex",].sorted()
    >>> largest.labels
    (('F',), ('M',))
    """

    table: "AbstractEstimates"
    places: Places

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the table's attributes."""
        return self.table.attributes

    @property
    def private(self) -> bool:
        """False for simulations, whose numbers must not be published."""
        return self.table.private

    @property
    def labels(self) -> tuple[tuple[Category, ...], ...]:
        """The labels of every cell, one for each attribute."""
        return tuple(tuple(names[k] for names, k in zip(self.table.labels, cell, strict=True))
                     for cell in self._cells())  # fmt: skip

    @property
    def estimate(self) -> Array:
        """The estimate of every cell, shape (cells,)."""
        return np.ravel(self.table.estimate)[self.places]

    @property
    def standard_deviation(self) -> Array:
        """The standard deviation of every cell, shape (cells,)."""
        return np.ravel(self.table.standard_deviation)[self.places]

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals for each cell alone, or for all cells of the *table* together.

        Cells that were selected by their estimates were selected by their noise too. For such
        cells, intervals for each cell alone miss the truth more often than their level says;
        simultaneous intervals do not.

        Returns:
            ``(low, high)``, arrays of shape (cells,).
        """
        low, high = self.table.confidence_interval(level, simultaneous)
        return ConfidenceInterval(np.ravel(low)[self.places], np.ravel(high)[self.places])

    def columns(self, level: float = LEVEL) -> dict[str, list]:
        """Return the cells as tidy columns, {name: values}, in the order of this list.

        The columns are those of the table; low and high are bounds of intervals for each cell
        alone.
        """
        return self.to_arrow(level).to_pydict()

    def to_arrow(self, level: float = LEVEL) -> "pa.Table":
        """Return the cells as a pyarrow table, with the columns of :meth:`columns`.

        The metadata of the table hold the level of the intervals.
        """
        import pyarrow as pa

        cells = zip(*self._cells(), strict=True)
        own = {
            name: pa.array(names).take(pa.array(list(where), type=pa.int64()))
            for name, names, where in zip(self.attributes, self.table.labels, cells, strict=True)
        }
        ends = self.confidence_interval(level)
        numbers = (self.estimate, self.standard_deviation, *ends)
        rows = pa.table(own | dict(zip(NUMBERS, numbers, strict=True)))
        return with_level(rows, level, self.private)

    def to_frame(self, level: float = LEVEL) -> Any:
        """Return the cells as a dataframe of the library that the records came in.

        The columns are those of :meth:`columns`.
        """
        return framed(self.to_arrow(level), self.table.backend)

    def to_pandas(self, level: float = LEVEL) -> "pd.DataFrame":
        """Return the cells as a pandas frame; ``frame.attrs`` holds the level of the intervals.

        Raises:
            NotAvailableError: pandas is not installed.
        """
        return as_pandas(self.to_arrow(level))

    def plot(self, level: float = LEVEL) -> "Figure":
        """Return a picture: a dot and its interval for every cell, in order from top to bottom.

        Returns:
            A matplotlib Figure; save it with ``.savefig(path)``.
        """
        from .default_plot import plot_cells  # imported here: the picture also needs cells

        return plot_cells(self, level)

    def _cells(self) -> list[tuple[int, ...]]:
        """Return, for each cell, its indices along the axes of the table."""
        shape = self.table.estimate.shape
        if not shape:
            return [() for _ in self.places]
        return list(zip(*(a.tolist() for a in np.unravel_index(self.places, shape)), strict=True))

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return f"{len(self)} cells of {self.table!r}"

    def __str__(self) -> str:
        shown = CellList(self.table, self.places[:_MOST_SHOWN])
        write = partial(first, digits=8, most=_MOST_SHOWN)
        sd = deviations(shown.standard_deviation, most=_MOST_SHOWN)
        interval = shown.confidence_interval()
        ends = ends_text(shown.estimate, interval, write)
        numbers = zip(write(shown.estimate), sd, *ends, strict=True)
        rows = [[*map(str, names), *own] for names, own in zip(shown.labels, numbers, strict=True)]
        more = f"… and {len(self) - len(shown)} more" if len(self) > len(shown) else ""
        columns = ["estimate", "± sd", "low", "high"]
        closing = [more, self.table.closing, *missing_text(shown.estimate, interval)]
        said = rows_text(
            repr(self),
            self.attributes,
            columns,
            rows,
            closing,
            private=self.private,
            headings=self.table.headings,
        )
        return on_screen(said)

    def _repr_html_(self) -> str:
        return _html(CellList(self.table, self.places[:_MOST_SHOWN]), repr(self), len(self))


CLOSING = (
    f"± one standard deviation of the noise; low and high: {level_text(LEVEL)} intervals for the "
    "numbers without noise, each by itself"
)


def cells_html(table: "AbstractEstimates", title: str) -> str:
    """Return the first cells of a table as HTML, for notebooks."""
    size = table.estimate.size
    return _html(CellList(table, np.arange(min(size, _FIRST))), title, size)


def _html(cells: CellList, title: str, count: int) -> str:
    """Return cells as an HTML table with a note on how many cells, of ``count``, are not shown."""
    low, high = cells.confidence_interval()
    numbers = (cells.estimate, low, high, cells.standard_deviation)
    return rendered(
        "cells.html",
        cells=cells,
        numbers=map(Cell, cells.labels, *(part.tolist() for part in numbers)),
        title=title,
        more=max(count - len(cells), 0),
        closing=cells.table.closing,
    )
