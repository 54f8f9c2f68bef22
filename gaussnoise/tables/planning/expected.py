"""Tables whose cells would be smaller than their noise, for about how many rows are expected.

A plan has no data. The number of rows is public knowledge, or a guess of the owner.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ...errors import ParameterError
from ...numerics.intervals import quantile
from ...text import number_of
from .noun import noun_of

if TYPE_CHECKING:
    from .plan import Plan

_LEVEL = 0.95
_MOST_CELLS = 10**5  # most cells of a table whose deviations are computed one by one
_HINT = "fewer or larger categories, fewer columns in a table, or a larger budget"


@final
@dataclass(frozen=True)
class ExpectedCells:
    """The cells of one requested table, and how many rows are expected in each.

    Attributes:
        name: the requested table, as plans name it.
        cells: the number of its cells, without those of numbers to be summed.
        mean: the expected number of rows divided by the number of cells.
        half_width: of the count of a cell, at 95 %; the root mean square if cells differ.
    """

    name: str
    cells: int
    mean: float
    half_width: float

    @property
    def is_small(self) -> bool:
        """Whether the mean count of a cell is less than its half-width."""
        return self.mean < self.half_width


def expected_cells(plan: "Plan", rows: float) -> list[ExpectedCells]:
    """Return the cells of each requested table, if about ``rows`` rows are counted.

    Tables of more than 10⁵ cells with questions other than counts are left out.

    Raises:
        ParameterError: the number of rows is not positive.
    """
    if not 0 < rows < math.inf:
        raise ParameterError(f"expected_rows: expected a positive number of rows, got {rows!r:.80}")
    found = list[ExpectedCells]()
    for name, term, deviation in zip(
        plan.entries, plan.domain.terms, plan.deviations.tolist(), strict=True
    ):
        own = [plan.schema.attributes[i] for i, _ in term]
        groups = [attribute for attribute in own if not attribute.is_summed]
        cells = math.prod(attribute.size for attribute in groups)
        if not all(base.is_identity for _, base in term):
            if cells > _MOST_CELLS:
                continue
            counts = plan.answer_deviations({a.name: "identity" for a in groups})
            deviation = float(np.sqrt(np.square(counts).mean()))
        found.append(ExpectedCells(name, cells, rows / cells, quantile(_LEVEL) * deviation))
    return found


def expected_text(plan: "Plan", rows: float) -> list[str]:
    """Return lines on the expected rows of a cell of each table, beside its half-width."""
    tables, noun = expected_cells(plan, rows), noun_of(plan)
    width = max(len("table"), *(len(table.name) for table in tables))
    lines = [
        "",
        f"If about {rows:,.15g} {noun} are counted, which the owner states and no data said:",
        f"{'table':<{width}}  {'cells':>7}  {'mean count':>10}  {'95 % ±':>9}",
    ]
    for table in tables:
        small = "  smaller than its noise" * table.is_small
        lines.append(
            f"{table.name:<{width}}  {table.cells:>7}  {table.mean:>10.4g}  "
            f"{table.half_width:>9.4g}{small}"
        )
    return [*lines, *([said] if (said := small_text(tables)) else [])]


def small_text(tables: Sequence[ExpectedCells]) -> str:
    """Return a sentence on tables whose mean cell is smaller than its noise; "" without any."""
    small = sum(table.is_small for table in tables)
    if not small:
        return ""
    return (
        f"In {small} of {number_of(len(tables), 'table')}, the mean count of a cell is less than "
        f"its half-width at 95 %: single numbers there say little. Hint: {_HINT}."
    )
