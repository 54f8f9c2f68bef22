"""Tables that compare two tables cell by cell: differences, ratios, relative changes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, final

import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numerics.intervals import ConfidenceInterval, quantile
from ...text import near, one_of
from ..schema.schema import Category
from .cells import CLOSING
from .forms import Function, Place, differences, places_of, quotients, side_by_side
from .noisy import read_only
from .ratios import Ratios, difference_of_ratios, fieller
from .table import AbstractEstimates
from .tidy import LEVEL

Array = NDArray[np.float64]
Kind = Literal["difference", "ratio", "relative"]

_AT_ONCE = 32  # cells whose covariance is computed in one step
_MOST_CELLS = 10**4  # most cells of a comparison within the same release


@final
@dataclass(frozen=True, eq=False, repr=False)
class ComparisonTable(AbstractEstimates):
    """Every cell of one table compared with the same cell of another one.

    For counts, sums and answers, the intervals of differences and of ratios are exact (Fieller
    1954). Means and shares are ratios themselves, so intervals that compare them hold to first
    order. Intervals of their differences combine the exact intervals of both (Zou & Donner 2008).
    Intervals of their ratios use standard deviations.

    Attributes:
        attributes: names, one per axis.
        labels: cell names along every axis.
        estimate: shape (sizes…). Differences of unbiased numbers are unbiased, ratios are not; NaN
            where a divisor is not positive.
        standard_deviation: same shape; exact for differences of counts, sums and answers, otherwise
            to first order.
        private: False for simulations, whose numbers must not be published.
        kind: "difference", "ratio", or "relative" (ratio minus one).
        names: names for the first and the second table.
        first: the table that is compared.
        second: the table that is subtracted, or divided by.
        covariance: the covariance of the two estimates of a cell, to first order; 0 if the tables
            are of two releases.
        others: {attribute: catch-all category}; pictures choose their scale without these cells.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 4000, "age": [7, 33, 61] * 4000})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65])]
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> more = release["sex", "age"].difference("sex", "F", "M")
    >>> print(more.names, more.attributes, abs(more.estimate - [4000, 0]).max() < 50)
    ('F', 'M') ('age',) True
    """

    kind: Kind
    names: tuple[str, str]
    first: AbstractEstimates
    second: AbstractEstimates
    covariance: Array
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def noun(self) -> str:
        """The plural noun for the counted things."""
        return self.first.noun

    @property
    def headings(self) -> tuple[str, ...]:
        known = dict(zip(self.first.attributes, self.first.headings, strict=True))
        return tuple(known.get(name, name) for name in self.attributes)

    @property
    def in_others(self) -> NDArray[np.bool_]:
        """True for cells of a catch-all category (all other values); shaped like ``estimate``."""
        found = np.zeros(self.estimate.shape, dtype=bool)
        for axis, (name, labels) in enumerate(zip(self.attributes, self.labels, strict=True)):
            own = np.array([label == self.others.get(name) for label in labels])
            found |= own.reshape([-1 if k == axis else 1 for k in range(found.ndim)])
        return found

    @property
    def limits(self) -> tuple[float, float]:
        (a, b), (c, d) = self.first.limits, self.second.limits
        if self.kind == "difference":
            return a - d, b - c
        least = 0.0 if a >= 0 and c >= 0 else -math.inf
        return (least - 1 if self.kind == "relative" else least), math.inf

    @property
    def is_linear(self) -> bool:
        return self.kind == "difference" and self.first.is_linear and self.second.is_linear

    @property
    def how(self) -> str:
        """A text that says whether intervals are exact, with the source of their method."""
        linear = self.first.is_linear and self.second.is_linear
        if self.kind == "difference":
            return "intervals exact" if linear else "intervals to first order (Zou & Donner 2008)"
        return f"intervals {'exact' if linear else 'to first order'} (Fieller 1954)"

    @property
    def closing(self) -> str:
        return CLOSING if self.is_linear else f"{CLOSING}; {self.how}"

    @property
    def pvalue(self) -> Array:
        """The p-value of each cell, for the hypothesis that noise alone makes the difference.

        The array has the shape of ``estimate``. Each cell is tested alone. The test is exact where
        the intervals are exact. It is about the rows, not about a population from which the rows
        are sampled.
        """
        change = replace(self, kind="difference")._compared(quantile(LEVEL))
        size = np.abs(change.estimate)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(size == 0, 0.0, size / change.standard_deviation)
        return 2 * scipy.special.ndtr(-np.where(np.isnan(change.estimate), np.nan, z))

    def unlimited(self, squared: float) -> ConfidenceInterval:
        found = self._compared(math.sqrt(squared))
        return ConfidenceInterval(found.low, found.high)

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals for each cell alone, or for all cells together (Šidák 1967).

        Intervals are cut to the values that the true numbers can have, and contain the estimate
        unless noise moved it outside these values. If a divisor may be zero, an interval is
        infinite, or contains all values that the true number can have.

        Returns:
            ``(low, high)``, arrays shaped like ``estimate``.
        """
        z = quantile(level, self.estimate.size if simultaneous else 1)
        low, high = self.unlimited(z**2)
        least, most = self.limits
        low = np.where(np.isnan(low), least, np.clip(low, least, most))
        high = np.where(np.isnan(high), most, np.clip(high, least, most))
        nearest = np.clip(self.estimate, least, most)
        return ConfidenceInterval(np.fmin(low, nearest), np.fmax(high, nearest))

    def as_ratio(self) -> "ComparisonTable":
        """Return the comparison as ratios: the first table's cells divided by the second's."""
        return _computed(replace(self, kind="ratio"))

    def relative(self) -> "ComparisonTable":
        """Return the comparison as relative changes: 0.1 means 10 % more than the second table."""
        return _computed(replace(self, kind="relative"))

    def at(self, places: Sequence[Place]) -> Function:
        both = side_by_side(self.first.at(places), self.second.at(places))
        if self.kind == "difference":
            return both.then(differences)
        shift = 1.0 if self.kind == "relative" else 0.0

        def values(x: Array) -> tuple[Array, Array]:
            ratio, gradient = quotients(x)
            return ratio - shift, gradient

        return both.then(values)

    def _compared(self, z: float) -> Ratios:
        """Return the compared numbers, with intervals of ``z`` standard deviations to each side."""
        one, two = self.first, self.second
        if self.kind == "difference":
            first, second = (
                Ratios(t.estimate, t.standard_deviation, *t.unlimited(z**2)) for t in (one, two)
            )
            return difference_of_ratios(first, second, self.covariance)
        shape = self.estimate.shape
        s, t = np.ravel(one.standard_deviation), np.ravel(two.standard_deviation)
        c = np.ravel(self.covariance)
        covariance = np.stack([s**2, c, c, t**2], -1).reshape(-1, 2, 2)
        found = fieller(np.ravel(one.estimate), np.ravel(two.estimate), covariance, z)
        estimate, deviation, low, high = (np.reshape(part, shape) for part in found)
        shift = 1.0 if self.kind == "relative" else 0.0
        return Ratios(estimate - shift, deviation, low - shift, high - shift)

    def __repr__(self) -> str:
        first, second = self.names
        what = {
            "difference": f"{first} less {second}",
            "ratio": f"{first} over {second}",
            "relative": f"{first} over {second}, less one",
        }
        return f"ComparisonTable({what[self.kind]}, of {self.first!r})"


def compared(
    kind: Kind,
    names: tuple[str, str],
    first: AbstractEstimates,
    second: AbstractEstimates,
    covariance: Array,
    others: Mapping[str, str] | None = None,
) -> ComparisonTable:
    """Return a table that compares each cell of ``first`` with the same cell of ``second``.

    ``covariance`` has the covariance of the two estimates of each cell; ``names`` are names for the
    two tables.
    """
    return _computed(
        ComparisonTable(
            attributes=first.attributes,
            labels=first.labels,
            estimate=first.estimate,
            standard_deviation=first.standard_deviation,
            private=first.private and second.private,
            backend=first.backend,
            kind=kind,
            names=names,
            first=first,
            second=second,
            covariance=covariance,
            others=others or {},
        )
    )


def _computed(table: ComparisonTable) -> ComparisonTable:
    """Return the comparison with its estimates and standard deviations computed anew."""
    found = table._compared(quantile(LEVEL))
    return replace(
        table,
        estimate=read_only(found.estimate),
        standard_deviation=read_only(found.standard_deviation),
    )


def labels_compared(
    table: AbstractEstimates, kind: Kind, attribute: str, first: Category, second: Category
) -> ComparisonTable:
    """Return the cells of one label of an attribute compared with the cells of another label."""
    if attribute not in table.attributes:
        raise ParameterError(
            f"{kind}: expected an attribute of the table, "
            f"{one_of(map(repr, table.attributes))}, got {attribute!r:.80}"
            + near(attribute, table.attributes)
        )
    axis = table.attributes.index(attribute)
    labels = table.labels[axis]
    for label in (first, second):
        if label not in labels:
            raise ParameterError(
                f"{kind}: expected a label of {attribute!r}, {one_of(map(repr, labels))}, got "
                f"{label!r:.80}" + near(label, labels)
            )
    one, two = (table.part(axis, labels.index(label)) for label in (first, second))
    size = one.estimate.size
    if size > _MOST_CELLS:
        raise ParameterError(
            f"{kind}: expected at most {_MOST_CELLS} cells, got {size}; hint: a table of fewer "
            "attributes"
        )
    return compared(kind, (str(first), str(second)), one, two, paired_covariance(one, two))


def paired_covariance(one: AbstractEstimates, two: AbstractEstimates) -> Array:
    """Return the covariance of each cell of a table with the same cell of another table.

    The result has the shape of the tables.
    """
    size = one.estimate.size
    covariance = np.zeros(size)
    for start in range(0, size, _AT_ONCE):
        places = places_of(np.arange(start, min(size, start + _AT_ONCE)), one.estimate.shape)
        joint = side_by_side(one.at(places), two.at(places)).joint().covariance
        covariance[start : start + len(places)] = np.diagonal(joint, len(places))
    return covariance.reshape(one.estimate.shape)
