"""Clipped numbers, which are attributes that are summed, and sample weights of records.

The number of a record is kept as an integer number of steps. The interval has :data:`STEPS` steps,
or fewer if the noise is so large that it hides finer ones. The tables have counts in units of
``1/STEPS`` of a record, which are integers. So each record adds exactly a convex combination of
virtual cells. In a table with several numbers, the virtual cells are products of those of the
numbers.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from domains.domain import AbstractDomain
from domains.tables.bases import AbstractBase, Base, check_apart
from domains.tables.clipped import Clipped
from domains.tables.products import Products

from ...errors import ParameterError, SchemaError
from ...solvers.tables.residuals import Subset
from .dates import check_no_dates

if TYPE_CHECKING:
    from .schema import Attribute, Schema

STEPS = 2**20
_VALUES = 17  # values of a number for which noise is planned: with 33 it changes by 1e-4
MOST_PARTS = 64  # most products of virtual cells, in a table of several numbers
# floats hold all whole numbers up to this one; a number with a unit is below this many units
MOST_UNITS = 2.0**52
_MOST_SCALE = 2**40  # units in a budget's scale, so that noise is coarser than rounding
_SUM = (None, "sum", {"kind": "sum"})  # the ways to ask for count and sum in files and workloads
_MOMENT_KEYS = {"kind", "degrees", "about"}
PerPerson: TypeAlias = Literal["mean", "sum", "max", "count"]
PER_PERSON: Mapping[PerPerson, str] = {
    "mean": "the mean of their own numbers",
    "sum": "the sum of their own numbers",
    "max": "the largest of their own numbers",
    "count": "the number of their own rows with a number",
}
EXPECTED_CLIPPED = (
    'expected "sum" (count and sum, the default of a clipped number), or {kind = "moments", '
    "degrees = [0, 1, 2]}, where about = 50 takes sums of numbers less 50"
)


@final
@dataclass(frozen=True)
class Weight:
    """A column of sample weights: every record counts with its weight.

    Weights are clipped to ``[0, most]``, and rounded to multiples of ``most / plan.unit``, usually
    ``most / 2**20``. Adding or removing one record then changes a weighted count by at most
    ``most``, so standard deviations are larger by this factor.

    Args:
        column: the name of the column.
        most: the largest weight that counts in full; it must be public knowledge.

    Raises:
        ParameterError: not a name of a column, or not a positive, finite number.

    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> survey = gn.plan(schema, ["sex"], gn.zCDP(0.1), weight=gn.Weight("w", most=4))
    >>> print(f"{survey.standard_deviation('sex'):.4f}")
    8.9443
    """

    column: str
    most: float

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise ParameterError("Weight: expected the name of a column")
        number = isinstance(self.most, int | float) and not isinstance(self.most, bool)
        if not number or not 1e-100 <= self.most <= 1e100:
            raise ParameterError(
                f"Weight: expected a largest weight between 1e-100 and 1e100, got {self.most!r:.60}"
            )
        object.__setattr__(self, "most", float(self.most))


def unit_of(attributes: Iterable["Attribute"], weight: Weight | None = None) -> int:
    """Return the most integer units that one record adds to a table of these attributes.

    The number is one for plain counts, and :data:`STEPS` with numbers to sum or with weights.
    """
    return STEPS if weight is not None or any(a.is_summed for a in attributes) else 1


def as_clip(name: str, clip: object) -> tuple[float, float]:
    """Return the bounds (low, high) to which numbers are clipped; SchemaError for other values."""
    listed: list[Any] = []
    if isinstance(clip, Iterable) and not isinstance(clip, str | set | frozenset | Mapping):
        given = list(clip)
        check_no_dates(name, "ends to clip at", given)
        listed = [x.item() if hasattr(x, "item") else x for x in given]
    if len(listed) != 2 or not all(
        isinstance(x, int | float) and not isinstance(x, bool) for x in listed
    ):
        raise SchemaError(
            f"attribute {name!r}: expected clip = [low, high], the ends between which numbers are "
            "clipped"
        )
    try:
        low, high = map(float, listed)
        Clipped(low, high, unit=unit_for(low, high))
    except (ValueError, OverflowError):
        raise SchemaError(
            f"attribute {name!r}: expected clip = [low, high] of finite numbers with low < high "
            "and a finite difference"
        ) from None
    return low + 0.0, high + 0.0


def as_unit(name: str, unit: object) -> float:
    """Return the unit of a number that is not clipped, like 0.01; SchemaError for other values."""
    unit = unit.item() if isinstance(unit, np.generic) else unit
    if not isinstance(unit, int | float) or isinstance(unit, bool) or not 1e-9 <= unit <= 1e9:
        raise SchemaError(
            f"attribute {name!r}: expected a unit between 1e-9 and 1e9, like 0.01 for cents, got "
            f"{unit!r:.60}"
        )
    return float(unit)


def units_in(name: str, scale: float, unit: float) -> int:
    """Return ``scale / unit``: a scale of a budget that grows with a number, in that number's unit.

    ``name`` is the number's name. Raise ParameterError if the result is no integer, or too large.
    """
    count = Fraction(repr(scale)) / Fraction(repr(unit))  # exact decimal values
    if count.denominator > 1 or count > _MOST_SCALE:
        raise ParameterError(
            f"plan: expected a scale of {name!r} that is a multiple of its unit {unit:.15g}, and "
            f"at most 2^40 of it, got {scale:.15g}; hint: a larger unit in the schema"
        )
    return int(count)


def unit_for(low: float, high: float) -> float:
    """Return the unit in which errors of a sum of numbers in [low, high] are measured.

    The unit is the largest change of the sum by one more record; it is 1 if both ends are 0.
    """
    return max(abs(low), abs(high)) or 1.0


def clipped_base(value: object, attribute: "Attribute") -> Clipped:
    """Return the base (count, sum, squares) that ``value`` describes for a clipped number.

    Raise SchemaError if it describes none. The attribute's own base decides whether there are
    virtual cells for squares.
    """
    low, high = attribute.ends
    kind = value.get("kind") if isinstance(value, Mapping) else value
    degrees: Any = (0, 1)
    about: Any = 0.0
    if isinstance(value, Clipped):
        degrees, about = value.degrees, value.about
    elif kind == "moments" and isinstance(value, Mapping) and set(value) <= _MOMENT_KEYS:
        degrees, about = value.get("degrees", (0, 1)), value.get("about", 0.0)
    elif not (isinstance(value, str | Mapping | None) and value in _SUM):
        raise SchemaError(
            f"attribute {attribute.name!r}: base: {EXPECTED_CLIPPED}; got {value!r:.80}"
        )
    if attribute.unit is not None and 2 in _listed(degrees):
        raise SchemaError(
            f"attribute {attribute.name!r}: base: expected no squares of a number without an upper "
            'end, whose budget grows with the square of the number; hint: "sum" (count and sum)'
        )
    own = attribute.base
    squares = own.squares if isinstance(own, Clipped) else 2 in _listed(degrees)
    size = (3 if squares else 2) + (attribute.other is not None)
    try:
        unit = unit_for(low - about, high - about)
        base = Clipped(
            low, high, degrees=degrees, size=size, squares=squares, unit=unit, about=about
        )
    except (ValueError, TypeError):
        hint = (
            "; hint: squares are declared with the attribute: base = "
            '{kind = "moments", degrees = [0, 1, 2]}'
            if 2 in _listed(degrees)
            else ""
        )
        raise SchemaError(
            f"attribute {attribute.name!r}: base: {EXPECTED_CLIPPED}; got {value!r:.80}{hint}"
        ) from None
    if base.about:  # here, as plans that ask for the bounds alone refuse them elsewhere
        try:
            check_apart(base, base.gram())
        except ValueError as error:
            raise SchemaError(f"attribute {attribute.name!r}: base: {error}") from None
    if attribute.unit is not None and isinstance(value, Clipped):
        base = replace(base, unit=value.unit)  # a workload may have the scale of a budget as unit
    if isinstance(value, Clipped) and value not in (base, in_own_unit(base)):
        raise SchemaError(
            f"attribute {attribute.name!r}: base: expected the ends and the unit of the attribute; "
            'hint: "sum", or {kind = "moments", degrees = [...]}'
        )
    return base


def _listed(degrees: object) -> Sequence[object]:
    return list(degrees) if isinstance(degrees, Sequence) else []


def in_own_unit(base: AbstractBase) -> AbstractBase:
    """Return the queries about a clipped number with sums in the number's own unit.

    Other bases (sets of queries) are returned unchanged.
    """
    if not isinstance(base, Clipped):
        return base
    return replace(base, unit=1.0)


def sum_weights(base: Clipped) -> NDArray[np.float64]:
    """Return the weights of a clipped number's virtual cells in its sum.

    The result has the shape (size,). A virtual cell holds units of records at one bound of the
    interval.
    """
    return Clipped(
        base.low, base.high, degrees=(1,), size=base.size, squares=base.squares
    ).toarray()[0]


def clipped_name(base: Clipped, interval: tuple[float, float]) -> str:
    """Return a short name of queries about a clipped number, like "count and sum; values …"."""
    names = {0: "count", 1: "sum", 2: "sum of squares"}
    listed = " and ".join(names[degree] for degree in base.degrees)
    listed += f" about {base.about:.15g}" if base.about else ""
    if interval[1] == math.inf:
        return f"{listed} of {values_text(interval)}"
    return f"{listed}; {capped_text(*interval)}"


def capped_text(low: float, high: float) -> str:
    """Return words on how values outside an interval are counted, for readers of tables.

    An end at 0 is left out, since few numbers can be beyond it. Notes name both ends.

    >>> capped_text(0, 6000), capped_text(-10, 10.5)
    ('values above 6,000 count as 6,000', 'values below -10 count as -10, above 10.5 as 10.5')
    """
    ends = [("below", low)] * (low != 0) + [("above", high)] * (high != 0)
    first, *more = (f"{side} {end:,.15g}{{}} as {end:,.15g}" for side, end in ends)
    return "values " + ", ".join([first.format(" count"), *(one.format("") for one in more)])


def values_text(interval: tuple[float, float]) -> str:
    """Return words for the values that are summed: clipped to an interval, or of any size."""
    if interval[1] == math.inf:
        return "values of any size, without clipping"
    return f"values clipped to {interval_text(*interval)}"


def interval_text(low: float, high: float) -> str:
    """Return an interval as text, like ``[0, 100000]``."""
    return f"[{low:.15g}, {high:.15g}]"


def cell_labels(attribute: "Attribute", squares: bool) -> tuple[str, ...]:
    """Return the labels of the virtual cells of a clipped number.

    A virtual cell holds the units of records that count at a bound of the interval, or, with
    ``squares``, between the bounds.
    """
    low, high = attribute.ends
    middle = ("weight between",) if squares else ()
    return (f"weight at {low:.15g}", *middle, f"weight at {high:.15g}")


def sets_of_numbers(numbers: Collection[int], subsets: Iterable[Subset]) -> list[Subset]:
    """Return the largest sets of clipped numbers that occur together in a table, as indices."""
    found = {tuple(i for i in S if i in numbers) for S in subsets}
    return sorted(J for J in found if J and not any(set(J) < set(K) for K in found))


def joined_numbers(sets: Iterable[Subset]) -> list[Subset]:
    """Return the unions of overlapping sets: numbers that share a set are in one union."""
    joined: list[set[int]] = []
    for J in sets:
        own = [part for part in joined if part & {*J}]
        joined = [part for part in joined if part not in own] + [{*J}.union(*own)]
    return sorted(tuple(sorted(part)) for part in joined)


def check_numbers(schema: "Schema", domain: AbstractDomain) -> None:
    """Refuse a workload that has too many numbers in a table.

    Also refuse tables that have a number with a unit (not clipped) and another number.
    """
    numbers = {i for i, attribute in enumerate(schema.attributes) if attribute.is_summed}
    subsets = getattr(domain, "subsets", ()) if len(numbers) > 1 else ()
    sets = sets_of_numbers(numbers, subsets)
    for J in sets:
        if len(J) > 1 and (units := [i for i in J if schema.attributes[i].unit is not None]):
            first = schema.names[units[0]]
            other = next(schema.names[i] for i in J if i != units[0])
            raise ParameterError(
                "plan: expected no other number in a table with one that has a unit, got "
                f"{first!r} and {other!r}; hint: a table for each of them, like [({first!r}, ...), "
                f"({other!r}, ...)]"
            )
    for joined in joined_numbers(sets):
        parts = math.prod(virtual_cells(schema.attributes[i]) for i in joined)
        if parts > MOST_PARTS:
            names = ", ".join(repr(schema.names[i]) for i in joined)
            raise ParameterError(
                f"plan: expected clipped numbers that tables join to have at most {MOST_PARTS} "
                f"virtual cells together (2 each, 3 with squares), got {parts} for {names}; hint: "
                "tables of fewer numbers, or a release for each group of them"
            )


def virtual_cells(attribute: "Attribute") -> int:
    """Return how many cells a clipped number has in tables: two, or three to sum squares too."""
    return 3 if isinstance(attribute.base, Clipped) and attribute.base.squares else 2


def check_budgets(
    schema: "Schema", used: Iterable[int], scales: Mapping[str, float], neighbors: object
) -> None:
    """Refuse a budget that grows with an attribute other than a number with a unit.

    A number with a unit is a number that is not clipped. Also refuse tables of such a number if the
    budget does not grow with it. If a budget grows, also refuse neighbours other than "add-remove".
    """
    attributes = {a.name: a for a in schema.attributes}
    for name, scale in scales.items():
        if name not in attributes or (unit := attributes[name].unit) is None:
            raise ParameterError(
                f"plan: expected budgets that grow with numbers with a unit in the schema, got "
                f"{name!r}; hint: Attribute({name!r}, unit=...)"
            )
        units_in(name, scale, unit)
    for name in (schema.names[i] for i in used):
        if attributes[name].unit is not None and name not in scales:
            raise ParameterError(
                f"plan: expected a budget that grows with {name!r}, which has no upper end, like "
                f"PerRecord(zCDP(0.1), scale={{{name!r}: ...}}); hint: clip = [low, high] in the "
                "schema for other budgets"
            )
    if scales and neighbors != "add-remove":
        raise ParameterError(
            'plan: expected neighbors="add-remove" where budgets grow with numbers; hint: its '
            "noise protects a row exchanged for another as well, at (√P + √P')² or less, with the "
            "budgets P and P' of both"
        )


def check_weight(schema: "Schema", weight: Weight, neighbors: object) -> None:
    """Raise ParameterError if a plan with sample weights would have no proof of privacy."""
    if neighbors != "add-remove":
        raise ParameterError(
            'plan: expected neighbors="add-remove" with weight=: under replacement the number of '
            "rows is public, but not what they weigh, so that the total would have no noise"
        )
    if weight.column in schema.names:
        raise ParameterError(
            f"plan: expected a column of weights that is no attribute, got {weight.column!r}"
        )
    squares = [a.name for a in schema.attributes if isinstance(a.base, Clipped) and a.base.squares]
    if squares:
        raise ParameterError(
            f"plan: expected no squares with weight=, got {squares[0]!r}; hint: degrees = [0, 1]"
        )


def asks_squares(domain: AbstractDomain) -> bool:
    """Return whether a table asks for sums of squares of a clipped number."""
    terms = domain.terms if isinstance(domain, Products) else ()
    return any(isinstance(b, Clipped) and 2 in b.degrees for term in terms for _, b in term)


def records_of(domain: Products) -> Products:
    """Return the same queries with records in place of the virtual cells for squares.

    A number with squares has one of 17 values, evenly spaced in its interval. Each of them is a
    record, but the middle virtual cell is not. So a lower bound on noise that protects these
    records holds for noise that protects all records.
    """

    def of_values(base: AbstractBase) -> AbstractBase:
        if not (isinstance(base, Clipped) and base.squares):
            return base
        return Base(base.toarray() @ grid_cells(base))

    terms = [{i: of_values(base) for i, base in term} for term in domain.terms]
    return Products([of_values(base) for base in domain.bases], terms, weights=domain.weights)


def grid_cells(base: Clipped) -> NDArray[np.float64]:
    """Return weights on the virtual cells: columns for 17 numbers, and one for a missing number."""
    t = np.linspace(0, 1, _VALUES)
    cells = np.zeros((base.size, _VALUES + base.other))
    cells[:3, :_VALUES] = [(1 - t) ** 2, 2 * t * (1 - t), t**2]
    cells[3:, _VALUES:] = 1.0
    return cells
