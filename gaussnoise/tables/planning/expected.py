"""The expected numbers of rows in the cells of tables, compared with the noise of the cells.

A plan has no data. The number of rows is public knowledge, or a guess of the owner.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from domains.tables.bases import AbstractBase, Identity

from ...errors import ParameterError
from ...numerics.intervals import quantile
from ...text import number_of
from .noun import noun_of

if TYPE_CHECKING:
    from .plan import Plan

_LEVEL = 0.95
_MOST_CELLS = 10**5  # most cells of a table whose deviations are computed one by one
_MOST_CATEGORIES = 1000  # most categories of an attribute with questions other than counts
_HINT = "fewer or larger categories, fewer columns in a table, or a larger budget"


@final
@dataclass(frozen=True)
class ExpectedCells:
    """The cells of one requested table, and how many rows are expected in each.

    Attributes:
        name: the requested table, as plans name it.
        cells: the number of its cells; numbers to be summed add none. Groups of categories, such as
            the states of counties, or bins that do not overlap, are cells.
        mean: the expected number of rows of a cell, if all categories are equally frequent.
        half_width: half the length of the 95 % interval of a cell's count; the root mean square if
            cells differ.
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

    A table that asks for more than counts is left out in three cases: it has more than 10⁵ cells,
    an attribute has more than 1000 categories, or the answers do not determine the counts of its
    cells.

    Raises:
        ParameterError: the number of rows is not positive.
    """
    if not 0 < rows < math.inf:
        raise ParameterError(f"expected_rows: expected a positive number of rows, got {rows!r:.80}")
    found = list[ExpectedCells]()
    for name, term, deviation in zip(
        plan.entries, plan.domain.terms, plan.deviations.tolist(), strict=True
    ):
        asked = {plan.schema.attributes[i]: base for i, base in term}
        bases = {a.name: _cells_of(base) for a, base in asked.items() if not a.is_summed}
        known = {name: own for name, own in bases.items() if own is not None}
        cells = math.prod(own.base.queries for own in known.values())
        if not all(base.is_identity for base in asked.values()):
            if len(known) < len(bases) or cells > _MOST_CELLS:
                continue
            counts = plan.answer_deviations({name: own.base for name, own in known.items()})
            deviation = float(np.sqrt(np.square(counts).mean()))
        share = math.prod((own.share for own in known.values()), start=Fraction(1))
        mean = rows * share.numerator / share.denominator
        found.append(ExpectedCells(name, cells, mean, quantile(_LEVEL) * deviation))
    return found


class _Cells(NamedTuple):
    """The queries that count an attribute's cells, and the share of its categories in one cell."""

    base: AbstractBase
    share: Fraction


@lru_cache(maxsize=100)
def _cells_of(base: AbstractBase) -> _Cells | None:
    """Return the cells whose counts a base determines; None if there are none, or too many."""
    n = base.size
    if base.is_identity:
        return _Cells(base, Fraction(1, n))
    if n > _MOST_CATEGORIES:
        return None
    queries = base.toarray()
    if np.isin(queries, (0, 1)).all() and (queries.sum(axis=0) <= 1).all():  # no two overlap
        return _Cells(base, Fraction(int(queries.sum()), queries.size))
    # counts of all categories follow from the answers and the number of rows
    apart = base.gram() - base.gram().mean(axis=0)
    apart -= apart.mean(axis=1, keepdims=True)
    is_known = np.linalg.matrix_rank(apart, hermitian=True) == n - 1
    return _Cells(Identity(n), Fraction(1, n)) if is_known else None


def expected_text(plan: "Plan", rows: float) -> list[str]:
    """Return lines with the expected rows of a cell, and its half-width, for each table."""
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
