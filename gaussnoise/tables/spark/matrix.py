"""A residual too large for one task, as a matrix: the operations on its rows and columns.

The matrix has a row for each cell of the first ``lead`` attributes, and a column for each contrast
of the last attributes. Contrasts of the last attributes need whole rows, and contrasts of the first
ones need whole columns. So rows are counted, and contrasted along the last attributes. Then columns
are contrasted along the first attributes, get their noise, and are decoded along the first
attributes. At last, rows are decoded along the last attributes. :class:`ResidualQuery` does the
same with whole arrays, in the same order.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from domains.errors import DomainTooLargeError

from ...solvers.tables.boxes import Box, boxes, evenly, shape_of
from ...solvers.tables.residuals import Subset
from ...solvers.tables.strategies import AbstractStrategy
from ..planning.measure import ResidualQuery

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Integers = NDArray[Any]

MOST_HELD = 2**26  # most numbers that one task holds
# most pieces of rows, and most pieces of columns; the number of blocks is their product
_MOST_PIECES = 2**11
_LEAST_COLUMNS = 3  # fewest columns at once, if possible: numpy sums one alone in another order


def piece_cells(cells: int, least: int) -> int:
    """Return the number of cells in one piece of a table of ``cells`` cells, too many for one task.

    A piece has at least ``least`` cells, and more if there would be too many pieces.
    """
    return max(least, cells // _MOST_PIECES)


@final
@dataclass(frozen=True)
class Matrix:
    """The matrix in which one residual is measured, cut into pieces of rows and pieces of columns.

    Attributes:
        T: the attributes of the residual.
        query: the query that is answered with noise.
        lead: the number of first attributes of T; each cell of these is a row of the matrix.
        boxes: for each piece of rows, a range of codes for every attribute of T.
        columns: for each piece of columns, the range of their indices.
    """

    T: Subset
    query: ResidualQuery
    lead: int
    boxes: list[Box]
    columns: list[slice]

    @classmethod
    def of(cls, T: Subset, query: ResidualQuery, least: int) -> "Matrix":
        """Return the matrix of T, in pieces of about ``least`` numbers, or more if T is huge.

        Raises:
            DomainTooLargeError: a task cannot hold a whole row or a whole column.
        """
        sizes = [query.strategies[i].size for i in T]
        cells = math.prod(sizes)
        for most in (piece_cells(cells, least), MOST_HELD):
            lead = 1 + next(k for k in range(len(T)) if math.prod(sizes[k + 1 :]) <= most)
            height, width = math.prod(sizes[:lead]), query.rows(T[lead:])
            if height * min(width, _LEAST_COLUMNS) <= MOST_HELD:
                columns = evenly(width, max(most // height, _LEAST_COLUMNS))
                return cls(T, query, lead, boxes(sizes, most), columns)
        raise DomainTooLargeError(
            f"release: {cells:.3g} cells of {' × '.join(map(str, sizes))} categories cannot be cut "
            "into pieces that a task of an executor holds, of 2^26 numbers; hint: fewer "
            "categories in the largest attribute"
        )

    def name(self, piece: int) -> str:
        """Return the name of the file with the piece of this index, of rows or of columns."""
        return f"{'-'.join(map(str, self.T))}.{piece:06d}.npy"

    @cached_property
    def heights(self) -> list[int]:
        """The number of matrix rows in each piece of rows."""
        return [math.prod(shape_of(box[: self.lead])) for box in self.boxes]

    @property
    def first_cells(self) -> Counts:
        """The index of the first cell of each piece of rows, in the flat table of attributes T."""
        inner = math.prod(self.query.strategies[i].size for i in self.T[self.lead :])
        return np.cumsum([0, *self.heights[:-1]], dtype=np.int64) * inner

    def bound(self, most: int) -> int:
        """Return a bound on the absolute values of :meth:`answered_rows`.

        ``most``: a bound on the sum of the absolute counts in the table of T.
        """
        return max(most, 1) * math.prod(own.growth for own in self._last)

    @property
    def _last(self) -> list[AbstractStrategy]:
        """The strategies of the attributes whose cells each piece of rows has all of."""
        return self.query.strategies_of(self.T)[self.lead :]

    @property
    def _first(self) -> list[AbstractStrategy]:
        """The strategies of the other attributes, which number the matrix rows."""
        return self.query.strategies_of(self.T)[: self.lead]

    def answered_rows(self, piece: int, counts: Counts, most: int) -> Integers:
        """Return the contrasts of the attributes ``T[lead:]`` for one piece of rows, as integers.

        The result is exact, of shape (matrix rows of the piece, matrix columns). ``counts``: the
        flat cells of the piece. ``most``: a bound on the sum of the absolute counts in the table
        over the attributes T.
        """
        rows = counts.reshape(-1, *(own.size for own in self._last))
        answers, _ = self.query.contrasted(self._last, rows, max(most, 1), 1)
        return answers.reshape(self.heights[piece], -1)

    def noisy_columns(self, answers: Integers, most: int, draw: Callable[[int], Counts]) -> Array:
        """Return some whole columns of the matrix with noise, decoded along the first attributes.

        ``answers``: the same columns of the results of :meth:`answered_rows`, shape (all matrix
        rows, some columns); the result has the same shape. ``most``: as for that method. ``draw``:
        a function that draws as many integers of noise as its argument says.
        """
        first, query = self._first, self.query
        columns = answers.reshape(*(own.size for own in first), -1)
        exact, bound = query.contrasted(first, columns, self.bound(most))
        answer = query.multiplied(self.T, exact, bound)
        values = query.divided(self.T, query.added(answer, draw(answer.size)))
        shape = *(own.rows for own in first), answers.shape[1]
        return query.decoded_along(first, values.reshape(shape)).reshape(answers.shape)

    def decoded_rows(self, values: Array) -> Array:
        """Return the cells of the noisy residual in one piece of rows, flat.

        ``values``: the same matrix rows of all results of :meth:`noisy_columns`, side by side.
        """
        rows = values.reshape(-1, *(own.rows for own in self._last))
        return self.query.decoded_along(self._last, rows, 1).reshape(-1)
