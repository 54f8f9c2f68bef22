"""Cells of tables as functions of linear forms of released cells, with their covariance."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import AbstractBase

from ...errors import NotAvailableError, ParameterError
from ...numerics.intervals import Contrasts
from ...solvers.tables.residuals import Subset
from ..planning.noun import noun_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


Array = NDArray[np.float64]
Place = tuple[int, ...]

_MOST_CELLS = 2000  # most cells whose joint covariance is computed
_MOST_WORK = 10**8  # most cells times the cells of the tables from which they are computed


class KeptTables(Mapping[Subset, Array]):
    """Tables of a release in memory: each is read from its file at first use, and then kept."""

    def __init__(self, tables: Mapping[Subset, Array]) -> None:
        self._tables, self._kept = tables, dict[Subset, Array]()

    def __getitem__(self, S: Subset) -> Array:
        if S not in self._kept:
            self._kept[S] = self._tables[S]
        return self._kept[S]

    def __contains__(self, S: object) -> bool:
        return S in self._tables

    def __iter__(self) -> Any:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


class Rows(NamedTuple):
    """The queries about one attribute: one for each label along an axis, or one for all cells.

    Attributes:
        base: the queries; each is a row of weights of the attribute's categories.
        axis: the axis along which each label has its query; None if one query is for all cells.
        query: the index in ``base`` of the query for all cells, if there is one.
    """

    base: AbstractBase
    axis: int | None
    query: int = 0

    def row(self, place: Place) -> Array:
        """Return the weights with which a cell of the table counts the categories of the attribute.

        ``place`` has the index of the cell along each axis.
        """
        k = self.query if self.axis is None else place[self.axis]
        if self.base.is_identity:
            return np.eye(1, self.base.size, k)[0]
        return self.base.toarray()[k]


class Function(NamedTuple):
    """Numbers computed by a function from linear forms: weighted sums of released cells.

    Attributes:
        forms: p pairs: a release or stream, and the weights of a linear form of its cells.
        values: a function from the values of the forms, shape (p,), to the k numbers, shape (k,),
            and their gradient, shape (k, p).
    """

    forms: Sequence[tuple[Any, Mapping]]
    values: Callable[[Array], tuple[Array, Array]]

    def joint(self) -> Contrasts:
        """Return the numbers and their covariance, which is exact if the function is linear."""
        count = len(self.forms)
        x, covariance = np.zeros(count), np.zeros((count, count))
        for source in {id(source): source for source, _ in self.forms}.values():
            own = [k for k, (other, _) in enumerate(self.forms) if other is source]
            found = source.kept().contrasts([self.forms[k][1] for k in own])
            x[own], covariance[np.ix_(own, own)] = found.estimate, found.covariance
        values, gradient = self.values(x)
        return Contrasts(values, gradient @ covariance @ gradient.T)

    def then(self, further: Callable[[Array], tuple[Array, Array]]) -> "Function":
        """Return the function followed by ``further``; the gradient follows by the chain rule.

        ``further`` returns values and their gradient with respect to the numbers of this function.
        """

        def values(x: Array) -> tuple[Array, Array]:
            inner, slopes = self.values(x)
            outer, gradient = further(inner)
            return outer, gradient @ slopes

        return Function(self.forms, values)


def side_by_side(*functions: Function) -> Function:
    """Return one function that gives the numbers of all functions, one after the other."""
    ends = np.cumsum([len(function.forms) for function in functions])

    def values(x: Array) -> tuple[Array, Array]:
        parts = np.split(x, ends[:-1])
        found = [own.values(part) for own, part in zip(functions, parts, strict=True)]
        numbers = np.concatenate([own for own, _ in found])
        gradient, row = np.zeros((len(numbers), len(x))), 0
        for end, part, (own, slopes) in zip(ends, parts, found, strict=True):
            gradient[row : row + len(own), end - len(part) : end] = slopes
            row += len(own)
        return numbers, gradient

    return Function([form for function in functions for form in function.forms], values)


def quotients(values: Array) -> tuple[Array, Array]:
    """Return the first half of the values divided by the second half, and the gradient.

    A quotient is NaN where the divisor is not positive.
    """
    x, y = np.split(values, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(y > 0, x / y, np.nan)
        return ratio, np.hstack([np.diag(1 / y), np.diag(-ratio / y)])


def differences(values: Array) -> tuple[Array, Array]:
    """Return the first half of the values minus the second half, and the gradient of the result."""
    x, y = np.split(values, 2)
    one = np.eye(len(x))
    return x - y, np.hstack([one, -one])


@final
@dataclass(frozen=True, eq=False)
class CellForms:
    """The cells of a table: linear forms (weighted sums of released cells) or ratios of two.

    Attributes:
        release: the release, or the stream, whose forms these are; None after unpickling, so that
            the pickle of one table holds neither other tables nor the path of their files.
        top: {attribute: queries}, for the form, or for the dividend of a ratio.
        bottom: {attribute: queries} for the divisor of a ratio; None if there is no divisor.
        shift: the number that is added to scaled ratios.
        scale: the factor of forms or ratios.
        ticks: for a stream, the ticks (its releases) whose tables are added up.
    """

    release: Any
    top: Mapping[str, Rows]
    bottom: Mapping[str, Rows] | None = None
    shift: float = 0.0
    scale: float = 1.0
    ticks: tuple[int, ...] = ()

    @property
    def noun(self) -> str:
        """The plural noun for the counted things; rows if the release is unknown."""
        if self.release is None:
            return "rows"
        plan = self.release.plan
        if not self.ticks:
            return self.release.noun
        return noun_of(plan, once=len(self.ticks) == 1 or plan.over.most_reports == 1)

    def at(self, places: Sequence[Place]) -> Function:
        """Return some cells as a function of linear forms (weighted sums of released cells).

        Raises:
            NotAvailableError: there is no release to ask.
            ParameterError: too many cells, or too large a table for their number.
        """
        release = self.release
        if release is None:
            raise NotAvailableError(
                "contrast: expected a table of a release at hand, got one from a pickle, which "
                "holds no release; hint: ask the release for the table again"
            )
        size = max(
            math.prod(own.base.size for own in rows.values())
            for rows in (self.top, self.bottom or {})
        )
        if len(places) > _MOST_CELLS or len(places) * size > _MOST_WORK:
            raise ParameterError(
                f"contrast: expected at most {_MOST_CELLS} cells of small tables, got "
                f"{len(places)} cells, each from {size}; hint: fewer cells at a time"
            )
        tops = [(release, self._form(self.top, place)) for place in places]
        if self.bottom is None:
            return Function(tops, lambda x: (self.scale * x, self.scale * np.eye(len(x))))
        bottoms = [(release, self._form(self.bottom, place)) for place in places]

        def values(x: Array) -> tuple[Array, Array]:
            ratio, gradient = quotients(x)
            return self.shift + self.scale * ratio, self.scale * gradient

        return Function([*tops, *bottoms], values)

    def __deepcopy__(self, memo: object) -> "CellForms":
        return self  # immutable, so it may be shared

    def __reduce__(self) -> tuple[Any, ...]:
        return CellForms, (None, self.top, self.bottom, self.shift, self.scale, self.ticks)

    def _form(self, rows: Mapping[str, Rows], place: Place) -> Mapping:
        """Return the weights of released cells whose sum is one cell; for a stream, per tick."""
        own = (queries.row(place) for queries in rows.values())
        weights = {tuple(rows): reduce(np.multiply.outer, own, np.ones(()))}
        return dict.fromkeys(self.ticks, weights) if self.ticks else weights

    def part(self, axis: int, k: int) -> "CellForms":
        """Return the cells of the label with index ``k`` along ``axis``, without this axis."""

        def part(rows: Mapping[str, Rows]) -> dict[str, Rows]:
            return {name: _without_axis(own, axis, k) for name, own in rows.items()}

        bottom = None if self.bottom is None else part(self.bottom)
        return replace(self, top=part(self.top), bottom=bottom)


def places_of(cells: "ArrayLike", shape: Sequence[int]) -> list[Place]:
    """Return, for each cell, its indices along the axes of a table with this shape.

    ``cells`` are indices in the flattened table (C order).
    """
    listed = np.atleast_1d(np.asarray(cells, dtype=np.intp))
    if not shape:
        return [()] * len(listed)
    return list(zip(*(a.tolist() for a in np.unravel_index(listed, tuple(shape))), strict=True))


def _without_axis(rows: Rows, axis: int, k: int) -> Rows:
    """Return the queries about an attribute that remain after index ``k`` of ``axis`` is chosen."""
    if rows.axis is None or rows.axis < axis:
        return rows
    if rows.axis > axis:
        return Rows(rows.base, rows.axis - 1)
    return Rows(rows.base, None, k)
