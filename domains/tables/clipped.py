"""Sums of numbers that are clipped to an interval, as queries over virtual categories."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from ..errors import InvalidDomainError
from ..floats import Array
from .bases import AbstractBase


@final
@dataclass(frozen=True)
class Clipped(AbstractBase):
    """Counts and sums of numbers that are clipped to ``[low, high]``.

    The categories are virtual. A number x, with ``t = (x − low) / (high − low)``, has the weight
    ``1 − t`` on the first category and t on the second. If squares are summed, there are three
    categories, with weights ``(1 − t)²``, ``2t(1 − t)`` and ``t²`` of x (Bernstein 1912). A record
    is then a convex combination of categories. So noise that protects every category also protects
    the record. Without squares, every category is a possible record, so the noise is not larger
    than necessary. With squares, the middle category is no possible record, and noise that protects
    this category is larger than necessary. A plan therefore makes noise for records.
    :class:`BoxMoments` has the least noise for numbers alone.

    Args:
        low: the value that replaces smaller numbers.
        high: the value that replaces larger numbers.
        degrees: 0 for the count, 1 for the sum, 2 for the sum of squares.
        size: number of categories: two, or three with squares. One category more is for records
            without a number; the count of that category is then a query too.
        squares: whether there are three categories, which degree 2 requires.
        unit: sums are measured in this unit, squares in its square.
        about: this number is subtracted before summing; the middle of the interval is best for
            means.

    Raises:
        InvalidDomainError: not ``low < high``, both finite; other degrees; another size.

    >>> Clipped(0, 80).toarray()
    array([[ 1.,  1.],
           [ 0., 80.]])
    >>> Clipped(-1, 3, degrees=[0, 1, 2], size=4, squares=True).toarray()
    array([[ 1.,  1.,  1.,  0.],
           [-1.,  1.,  3.,  0.],
           [ 1., -3.,  9.,  0.],
           [ 0.,  0.,  0.,  1.]])
    """

    low: float
    high: float
    degrees: tuple[int, ...] = (0, 1)
    size: int = 2
    squares: bool = False
    unit: float = 1.0
    about: float = 0.0
    other: bool = field(init=False, repr=False)

    is_ordered = False

    def __init__(
        self,
        low: float,
        high: float,
        *,
        degrees: Iterable[int] = (0, 1),
        size: int | None = None,
        squares: bool = False,
        unit: float = 1.0,
        about: float = 0.0,
    ) -> None:
        ends = [_number(x) for x in (low, high, unit, about)]
        if not (ends[0] < ends[1] and 0 < ends[1] - ends[0] < math.inf) or not ends[2] > 0:
            raise InvalidDomainError(
                "Clipped: expected finite low < high whose difference is finite, and a unit > 0"
            )
        asked = () if isinstance(degrees, str | set | frozenset) else tuple(degrees)
        most = 2 if squares else 1
        if (
            not asked
            or len(set(asked)) < len(asked)
            or not all(type(d) is int and 0 <= d <= most for d in asked)
        ):
            raise InvalidDomainError(
                f"Clipped: expected distinct degrees in 0..{most}, got {asked!r:.60}"
                + ("" if squares else "; hint: degree 2 takes squares=True")
            )
        cells = 3 if squares else 2
        size = cells if size is None else size
        if type(size) is not int or size not in (cells, cells + 1):
            raise InvalidDomainError(
                f"Clipped: expected {cells} categories, or {cells + 1} with one for records "
                f"without a number, got {size!r:.60}"
            )
        for name, value in zip(("low", "high", "unit", "about"), ends, strict=True):
            object.__setattr__(self, name, value + 0.0)
        object.__setattr__(self, "degrees", asked)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "squares", bool(squares))
        object.__setattr__(self, "other", size > cells)
        if not 1e-100 <= np.abs(self.toarray()).max() <= 1e100:
            raise InvalidDomainError(
                "Clipped: expected sums between 1e-100 and 1e100; hint: another unit"
            )

    @property
    def queries(self) -> int:
        return len(self.degrees) + self.other

    def toarray(self) -> Array:
        low, high = ((end - self.about) / self.unit for end in (self.low, self.high))
        rows = {
            0: (1.0, 1.0, 1.0) if self.squares else (1.0, 1.0),
            1: (low, low / 2 + high / 2, high) if self.squares else (low, high),
            2: (low * low, low * high, high * high),
        }
        W = np.zeros((self.queries, self.size))
        for k, degree in enumerate(self.degrees):
            W[k, : len(rows[degree])] = rows[degree]
        if self.other:
            W[-1, -1] = 1.0
        return W + 0.0

    def _labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        less = f" about {self.about:.15g}" if self.about else ""
        names = {0: "count", 1: f"sum{less}", 2: f"sum of squares{less}"}
        own = tuple(names[degree] for degree in self.degrees)
        return (*own, f"count of {cells[-1]}") if self.other else own


def _number(value: object) -> float:
    try:
        number = float(value) if isinstance(value, int | float | np.number) else math.nan
    except OverflowError:
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise InvalidDomainError("Clipped: expected finite numbers")
    return number
