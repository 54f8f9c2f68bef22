"""Sums of clipped numbers, of their products and of weights, in exact integers.

A record adds m integer units in all to each table. The interval of a clipped number has m steps,
and the number is stored as ``a``, the steps above its lower bound
(:mod:`gaussnoise.tables.reading.steps`). A record adds ``m − a`` to the first virtual cell and
``a`` to the last. With squares, let q = ⌊a²/m⌋: a record adds ``m − 2a + q``, ``2(a − q)`` and
``q`` to the three virtual cells. None of these is negative: q is at most a, and q is at least 2a −
m, which is an integer and at most a²/m. With a weight of ``w <= m`` units, a record adds ``w − ⌊(w
a)/m + ½⌋`` and ``⌊(w a)/m + ½⌋``.

If tables have several numbers, let M be the units of a record: m, or its weight. The units are put
in a row, sorted by their cells of the earlier numbers. If W of all M units belong in the last cell
of the next number, then ⌊C W/M + ½⌋ of the first C units get that cell. So every unit is in one
cell of each number. A record adds a convex combination of products of virtual cells, the same in
all tables, and its amounts for one number alone are unchanged. The product of two numbers has an
error of half a unit if one of them is the first number. Otherwise, the error is one unit for each
product of cells of the numbers before both; with squares, up to two units. No integer is larger
than m².

A number with a unit is an integer v >= 0 of any size below 2⁵². A record adds ``m − v`` to the
first virtual cell and v to the last; the first amount may be negative. Low and high binary digits
of v are summed separately, so that no sum exceeds 64 bits below 2³⁶ rows.
"""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...numerics.integers import exact_type
from ...solvers.tables.residuals import Subset
from ..reading.frames import Lazy
from ..schema.numbers import STEPS, Weight, joined_numbers, sets_of_numbers, virtual_cells
from ..schema.schema import Attribute
from .impossible import Vector

Integers = NDArray[np.int64]
LOW = 2**26  # a number with a unit is split into 26 low binary digits, and the 26 above them
WEIGHT, WITHOUT = "w", "z"  # names of columns: the weight, and 1 for a row without a weight


def weight_column(weight: Weight) -> Attribute:
    """Return an attribute that reads the column of weights, clipped to [0, largest weight]."""
    return Attribute(weight.column, clip=(0.0, weight.most))


def sum_names(attributes: Sequence[Attribute], weight: Weight | None) -> list[str]:
    """Return the names of the columns whose amounts are summed over records.

    For the attribute i: a{i} are steps of a number, q{i} squares, h{i} high digits of a number with
    a unit. With weights, there are two more columns.
    """
    names = [f"a{i}" for i, a in enumerate(attributes) if a.is_summed]
    names += [f"q{i}" for i, a in enumerate(attributes) if has_squares(a)]
    names += [f"h{i}" for i, a in enumerate(attributes) if a.unit is not None]
    return names + ([] if weight is None else [WEIGHT, WITHOUT])


def has_squares(attribute: Attribute) -> bool:
    """Return whether the attribute is a clipped number whose squares are summed."""
    return virtual_cells(attribute) > 2


def keys_and_sums(
    code: Callable[[int], Vector],
    attributes: Sequence[Attribute],
    weight: Weight | None,
    unit: int = STEPS,
) -> tuple[list[Vector], dict[str, Vector]]:
    """Return the columns by which records are grouped, and {name: column of amounts to sum}.

    All are integers. For a clipped number, the code to group by says whether there is a number.

    Args:
        code: a function from an index to the codes of a column; the last column has the weights.
        attributes: without the weights.
        weight: the weight of rows, or None.
        unit: the number of steps between lower and upper bound.
    """
    keys = [code(i) for i in range(len(attributes))]
    sums: dict[str, Any] = {}
    weights = None if weight is None else _integers(code(len(attributes)), 64)
    w = None if weights is None else _steps_above(weights, unit)
    for i, attribute in enumerate(attributes):
        if not attribute.is_summed:
            continue
        keys[i] = _integers(_when(code(i) > 0, 1, 0), 8)
        if attribute.unit is not None:
            v = _integers(_when(code(i) > 0, code(i) - 1, 0), 64)
            sums |= {f"a{i}": v % LOW, f"h{i}": v // LOW}
            continue
        a = _steps_above(_integers(code(i), 64), unit)
        sums[f"a{i}"] = a if w is None else (w * a + unit // 2) // unit
        if has_squares(attribute):
            sums[f"q{i}"] = (a * a) // unit
    if weights is not None:
        sums |= {WEIGHT: w, WITHOUT: _when(weights < 1, 1, 0)}
    return keys, sums


def _steps_above(code: Any, unit: int) -> Any:
    """Return how many of ``unit`` steps a number with this code is above its lower bound."""
    steps = _when(code > 0, code - 1, 0)
    return steps if unit == STEPS else (steps * unit + STEPS // 2) // STEPS


def _integers(own: Any, bits: int) -> Any:
    if isinstance(own, np.ndarray):
        return own.astype(f"int{bits}")
    return own.cast({8: nw.Int8, 64: nw.Int64}[bits])


def _when(condition: Any, value: Any, otherwise: int) -> Any:
    if isinstance(condition, np.ndarray):
        return np.where(condition, value, otherwise)
    chosen = value if isinstance(value, nw.Expr) else nw.lit(value)
    return nw.when(condition).then(chosen).otherwise(nw.lit(otherwise))


def with_sums(
    frame: Lazy, attributes: Sequence[Attribute], weight: Weight | None, unit: int, joint: "Joint"
) -> Lazy:
    """Return a frame with columns c0, c1, … by which records are grouped, and columns to be summed.

    The columns to group by are codes of attributes. The columns to sum hold the integer amounts
    that a record adds to cells, named as in :func:`sum_names` and :meth:`Joint.names`.
    """
    keys, sums = keys_and_sums(lambda i: nw.col(f"c{i}"), attributes, weight, unit)
    columns = {f"c{i}": key for i, key in enumerate(keys)}
    columns |= {name: _integers(x, 64) for name, x in sums.items()}
    frame = frame.select(*(column.alias(name) for name, column in columns.items()))
    if not joint.sets:
        return frame

    def held(i: int, ends: list[Any]) -> list[Any]:
        """Add expressions to the frame as columns, so that later expressions do not repeat them."""
        nonlocal frame
        own = {f"e{i}_{c}": end for c, end in enumerate(ends) if isinstance(end, nw.Expr)}
        frame = frame.with_columns(*(_integers(end, 64).alias(name) for name, end in own.items()))
        return [nw.col(f"e{i}_{c}") if f"e{i}_{c}" in own else end for c, end in enumerate(ends)]

    parts = joint.sums({name: nw.col(name) for name in sums}, unit, held)
    products = [_integers(part, 64).alias(name) for name, part in parts.items()]
    return frame.select(*map(nw.col, columns), *products)


@final
@dataclass(frozen=True)
class Joint:
    """The sets of clipped numbers that occur together in a table.

    This class divides the units that a record adds among the products of the numbers' virtual
    cells.

    Attributes:
        sizes: {index of a summed number: its number of virtual cells}.
        sets: the largest sets of several numbers in one table. All tables of a release must
            have the same sets, since the sets decide how units are rounded.
    """

    sizes: Mapping[int, int]
    sets: tuple[Subset, ...]

    @classmethod
    def of(cls, attributes: Sequence[Attribute], subsets: Iterable[Subset]) -> "Joint":
        """Return the sets of clipped numbers that occur together in these tables."""
        sizes = {i: virtual_cells(a) for i, a in enumerate(attributes) if a.is_summed}
        return cls(sizes, tuple([J for J in sets_of_numbers(sizes, subsets) if len(J) > 1]))

    def names(self, numbers: Collection[int] | None = None) -> list[str]:
        """Return the names of columns with the units in each product of virtual cells.

        The columns are those of all sets, or of the one set that has all of ``numbers``. The first
        product of a set has no column: it gets the remaining units of a record.
        """
        sets = [
            (j, J) for j, J in enumerate(self.sets) if numbers is None or j == self._of(numbers)
        ]
        return [f"p{j}_{c}" for j, J in sets for c in range(1, math.prod(self._shape(J)))]

    @property
    def most(self) -> int:
        """The largest number of products of cells among which the units of a record are divided."""
        return max((math.prod(self._shape(J)) for J in joined_numbers(self.sets)), default=1)

    def _of(self, numbers: Collection[int]) -> int | None:
        """Return the index of a set that has all of these numbers; None for a single number."""
        found = (j for j, J in enumerate(self.sets) if len(numbers) > 1 and set(numbers) <= set(J))
        return next(found, None)

    def _shape(self, J: Subset) -> tuple[int, ...]:
        return tuple(self.sizes[i] for i in J)

    def sums(
        self,
        sums: Mapping[str, Any],
        unit: int,
        held: Callable[[int, list[Any]], list[Any]] = lambda _, ends: ends,
    ) -> dict[str, Any]:
        """Return {name: column of integer units} for the names that :meth:`names` returns.

        Args:
            sums: the columns of :func:`sum_names`.
            unit: the number of units in a record without weights.
            held: a function that stores intermediate columns of the number with this index.
        """
        mass, found = sums.get(WEIGHT, unit), dict[str, Any]()
        for joined in joined_numbers(self.sets):
            ends = [mass]  # ends[c]: the number of units in cells 0 to c
            for i in joined:
                a, q = sums[f"a{i}"], sums.get(f"q{i}")
                ends = held(i, _divided(ends, [mass, a] if q is None else [mass, 2 * a - q, q]))
            cells = np.arange(len(ends)).reshape(self._shape(joined))
            for j, J in enumerate(self.sets):
                if not set(J) <= set(joined):
                    continue
                own = np.moveaxis(cells, [joined.index(i) for i in J], range(len(J)))
                own = own.reshape(math.prod(self._shape(J)), -1)
                found |= {f"p{j}_{c}": _in_cells(ends, own[c]) for c in range(1, len(own))}
        return found

    def spread(
        self, numbers: Subset, mass: Integers, sums: Mapping[str, Integers]
    ) -> Iterator[tuple[tuple[int, ...], Integers]]:
        """Yield pairs (a virtual cell of each number, units to add there), for all combinations.

        ``numbers``: the numbers of a table. ``mass``: the units of each record or group of records.
        ``sums``: the columns of :func:`sum_names` and :meth:`names`.
        """
        j = self._of(numbers)
        if j is None:
            [i] = numbers
            parts = np.stack(spread_over(mass, sums[f"a{i}"], sums.get(f"q{i}")))
        else:
            J = self.sets[j]
            last = [sums[name] for name in self.names(numbers)]
            parts = np.stack([mass - sum(last), *last]).reshape(*self._shape(J), -1)
            parts = parts.sum(axis=tuple(k for k, i in enumerate(J) if i not in numbers))
        for cell in np.ndindex(self._shape(numbers)):
            yield cell, parts[cell]


def _divided(ends: Sequence[Any], shares: Sequence[Any]) -> list[Any]:
    """Return the running totals of units over cells, after one more number splits each cell."""
    # ends: units in cells 0 to c; shares: units in the number's k-th virtual cell or later
    # for each k: how many units, out of those in cells 0 to c, are in the k-th cell or later ones
    later = [list(ends)]
    for whole, share in itertools.pairwise(shares):
        later.append([_portion(end, share, whole) for end in later[-1]])
    later.append([0] * len(ends))
    found = []
    for c, end in enumerate(ends):
        for beyond in later[1:]:
            found.append(end - (beyond[c] - (beyond[c - 1] if c else 0)))
    return found


def _portion(part: Any, share: Any, whole: Any) -> Any:
    """Return ``part · share / whole`` as the nearest integer; 0 if ``whole`` is 0."""
    # Spark divides doubles, exactly enough: dividends have at most 40 bits, and quotients 20
    divisor = whole if isinstance(whole, int) else _when(whole > 0, whole, 1)
    return (part * share + whole // 2) // divisor


def _in_cells(ends: Sequence[Any], cells: NDArray[np.intp]) -> Any:
    """Return the number of units in these cells; ``ends[c]`` are the units in cells 0 to c."""
    inside = np.zeros(len(ends) + 1, dtype=np.int64)
    inside[cells] = 1
    signs = inside[:-1] - inside[1:]
    return sum(ends[c] if signs[c] > 0 else -ends[c] for c in np.flatnonzero(signs).tolist())


def joined(low: Integers, high: Integers) -> NDArray[Any]:
    """Return ``low + LOW · high``, the integers with these low and high binary digits.

    The result has Python's integers unless 64 bits hold the sum of all.
    """
    if not high.any():
        return low
    largest = sum(np.abs(part).sum(dtype=float) * c for part, c in ((low, 1), (high, LOW)))
    exact = exact_type(math.ceil(largest))
    return low.astype(exact) + LOW * high.astype(exact)


def spread_over(mass: Integers, a: Integers, q: Integers | None) -> list[Integers]:
    """Return the units that records add to each virtual cell of one clipped number.

    ``mass``: all units of each record. ``a``: the units for its steps. ``q``: the units for its
    square, or None.
    """
    if q is None:
        return [mass - a, a]
    return [mass - 2 * a + q, 2 * (a - q), q]
