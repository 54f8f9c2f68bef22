"""Tables whose cells were made non-negative or integers, like counts, which makes them biased.

Intervals do not account for this bias.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...layout import on_screen
from ..schema.schema import Category
from .show import first, table_text
from .tidy import arrow_columns, as_pandas, framed

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from narwhals.typing import EagerAllowed

Numbers = NDArray[Any]  # float64, or int64 once rounded


class AbstractTable:
    """A table of noisy counts, with methods that make them non-negative or integers.

    The resulting tables are easier to use, but biased. The methods cost no privacy.
    """

    attributes: tuple[str, ...]
    labels: tuple[tuple[Category, ...], ...]
    estimate: Numbers
    private: bool
    backend: "EagerAllowed"

    def nonnegative(self) -> "BiasedTable":
        """Return the table with its negative cells set to 0.

        This biases cells upwards, and sums of many cells strongly.
        """
        return _processed(self, nonnegative, "negative cells set to 0")

    def projected(self) -> "BiasedTable":
        """Return the nearest table without negative cells and with the same total.

        Nearest means least squares; the table is all zeros if the total is <= 0.

        Small cells are biased upwards and large ones downwards; margins other than the total
        change.
        """
        return _processed(self, projected, "nearest non-negative table of the same total")

    def integer(self) -> "BiasedTable":
        """Return the table of integers that is nearest in least squares and has the rounded total.

        Cells with equal remainders are rounded up in C order, so the first ones are favoured.

        Raises:
            ParameterError: a cell too large for int64.
        """
        return _processed(self, integer, "nearest integers with the rounded total")


@final
@dataclass(frozen=True, eq=False)
class BiasedTable(AbstractTable):
    """One released table whose cells were made non-negative or integers, which biases them.

    The table has no standard deviation: part of the error is now bias, and the bias of a cell
    depends on the true counts, which are private. The biases of cells add up in sums of many cells;
    take sums, contrasts and intervals from the unbiased table instead.

    Attributes:
        attributes: names, one per axis.
        labels: cell names along every axis.
        estimate: biased counts, shape (sizes…); int64 after :meth:`integer`.
        method: the steps that were applied, in words.
        private: False for simulations, whose numbers must not be published.
        noun: the plural noun for the counted things.

    >>> table = BiasedTable(
    ...     ("age",),
    ...     (("young", "middle", "old"),),
    ...     np.array([5.2, -2, 3]),
    ...     "as released",
    ...     True,
    ...     None,
    ... )
    >>> table.projected().integer().columns()
    {'age': ['young', 'middle', 'old'], 'biased_estimate': [4, 0, 2]}
    >>> table.nonnegative()
    BiasedTable(age, 3 cells, biased: as released, then negative cells set to 0)
    """

    attributes: tuple[str, ...]
    labels: tuple[tuple[Category, ...], ...]
    estimate: Numbers
    method: str
    private: bool
    backend: "EagerAllowed" = field(repr=False)
    noun: str = field(default="rows", repr=False)

    def columns(self) -> dict[str, list]:
        """Return tidy columns, one row per cell in C order: attributes and ``biased_estimate``."""
        return self._arrow().to_pydict()

    def to_frame(self) -> Any:
        """Return the table as a dataframe of the library that the records came in.

        The columns are those of :meth:`columns`. For records in files and remote engines, the
        result is a pyarrow table.
        """
        return framed(self._arrow(), self.backend)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table as a pandas frame, with the columns of :meth:`columns`.

        Raises:
            NotAvailableError: pandas is not installed.
        """
        return as_pandas(self._arrow())

    def _arrow(self) -> "pa.Table":
        cells = slice(0, self.estimate.size)
        return arrow_columns(
            self.attributes, self.labels, cells, {"biased_estimate": self.estimate}
        )

    @property
    def headings(self) -> tuple[str, ...]:
        """The names of attributes in pictures."""
        return self.attributes

    def __str__(self) -> str:
        numbers = [first(self.estimate, 8)]
        closing = "biased, so that no standard deviation can be stated"
        said = table_text(
            repr(self),
            self.attributes,
            self.labels,
            ["biased estimate"],
            numbers,
            closing,
            private=self.private,
        )
        return on_screen(said)

    def __repr__(self) -> str:
        name = " × ".join(self.attributes) or "total"
        return f"BiasedTable({name}, {self.estimate.size} cells, biased: {self.method})"


def _processed(table: AbstractTable, step: Callable[[Numbers], Numbers], words: str) -> BiasedTable:
    """Return the table after ``step`` has changed its estimates; ``words`` describe the step."""
    estimate = step(table.estimate)
    estimate.flags.writeable = False
    method = f"{table.method}, then {words}" if isinstance(table, BiasedTable) else words
    noun: str = getattr(table, "noun", "rows")
    return BiasedTable(
        table.attributes, table.labels, estimate, method, table.private, table.backend, noun
    )


def nonnegative(estimate: Numbers) -> Numbers:
    """Return ``max(estimate, 0)``, without negative zeros."""
    return np.where(estimate > 0, estimate, 0)


def projected(estimate: Numbers) -> Numbers:
    """Return the nearest non-negative array with the same total, in least squares.

    The result is zero if the total is not positive. Otherwise it is ``max(estimate − θ, 0)`` with a
    shift θ (Held, Wolfe & Crowder 1974; Duchi et al. 2008). Let k be the number of cells that stay
    positive, which are the largest. Then ``θ = −(sum of the other cells)/k``. This formula
    subtracts no large sums, and returns a table without negative cells unchanged.

    >>> projected(np.array([5.0, -2.0, 3.0])).tolist()
    [4.0, 0.0, 2.0]
    """
    values = np.sort(np.asarray(estimate, dtype=np.float64).ravel())
    others = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    count = np.arange(values.size, 0, -1)
    first = int(np.argmax(values * count + others > 0))
    if not values[first] * count[first] + others[first] > 0:
        return np.zeros(estimate.shape)
    return nonnegative(estimate + others[first] / count[first])


def integer(estimate: Numbers) -> NDArray[np.int64]:
    """Return the nearest array of integers, in least squares, that has the rounded total.

    The method is that of largest remainders.

    >>> integer(np.array([0.4, 0.4, 0.4, 1.8])).tolist()
    [1, 0, 0, 2]
    """
    values = np.asarray(estimate, dtype=np.float64).ravel()
    if (np.abs(values) >= 2.0**63).any():
        raise ParameterError(
            "integer: expected cells below 2**63, got larger ones; hint: use the estimates "
            "themselves"
        )
    whole = np.floor(values).astype(np.int64)
    raised = round(math.fsum(values)) - sum(whole.tolist())
    # totals beyond 2**53 are themselves rounded, perhaps below the sum of the floors
    raised = min(max(raised, 0), values.size)
    whole[np.argsort(whole - values, kind="stable")[:raised]] += 1
    return whole.reshape(estimate.shape)
