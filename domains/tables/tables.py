"""The base class of marginals and products: what one record adds to queries about tables."""

import abc
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..domain import AbstractFiniteDomain
from ..errors import DomainTooLargeError, InvalidDomainError
from ..floats import MOST_NUMBERS, Array
from ..records import checked_codes, codes_between
from ..sets.finite import FiniteSet
from ..stored import is_ours
from .bases import AbstractBase

if TYPE_CHECKING:
    from .marginals import Marginals


Term = tuple[tuple[int, AbstractBase], ...]


def is_known(base: AbstractBase) -> bool:
    """Return whether a base, and every base that it is made of, is of a class of this package."""
    return is_ours(type(base)) and all(
        is_known(part) for part in vars(base).values() if isinstance(part, AbstractBase)
    )


class AbstractTables(AbstractFiniteDomain):
    """The points that records add to answers about tables: one block of coordinates per term.

    A term is a list of attributes, each with a base W_i of queries. The block of a record x with
    the categories x_i is ``w_S ⊗_{i∈S} W_i e_{x_i}``, where w_S is the weight of the term.

    Attributes:
        sizes: number of categories of every attribute.
        terms: for every table, sorted pairs of an attribute i and its base W_i.
        subsets: the attributes S of every term.
        weights: the error priority w_S of every term.
    """

    sizes: tuple[int, ...]
    terms: tuple[Term, ...]
    subsets: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]

    @property
    @abc.abstractmethod
    def tables(self) -> "Marginals":
        """The marginal tables from which all queries can be answered, each table once.

        They are in the order of the terms.
        """

    @property
    def is_cells(self) -> bool:
        """Whether every query counts one cell of a table.

        Queries about one table are then interchangeable.
        """
        return all(base.is_identity for term in self.terms for _, base in term)

    @property
    def dim(self) -> int:
        return sum(map(self.queries, self.terms))

    @property
    def cardinality(self) -> int:
        return math.prod(self.sizes)

    @property
    def content(self) -> tuple[object, ...] | None:
        """The values that decide whether two tables are equal; None if they are unknown.

        The values are unknown if a base is of a user's own class. Such a class may define equality
        by itself.
        """
        known = all(is_known(base) for term in self.terms for _, base in term)
        return (type(self), self.sizes, self.terms, self.weights) if known else None

    def queries(self, term: Term) -> int:
        """Return the number of queries, and so of coordinates, of one term.

        >>> K = Products([Ranges(4), Identity(2)], [(0, 1)])
        >>> K.queries(K.terms[0])
        20
        """
        return math.prod([base.queries for _, base in term])

    def cells(self, subset: Iterable[int]) -> int:
        """Return the number of cells of the table of some attributes.

        >>> Marginals((3, 2, 4), [()]).cells((0, 2))
        12
        """
        return math.prod([self.sizes[i] for i in subset])

    def embed(self, codes: "ArrayLike") -> Array:
        """Return the points of records that are given as integer codes, as rows.

        Args:
            codes: shape (n, attributes), ``0 <= codes[:, i] < sizes[i]``.

        Returns:
            shape (n, dim).

        Raises:
            DimensionError: wrong shape.
            InvalidDomainError: a code that is not an integer in range (its value is not shown).
            DomainTooLargeError: more than a gigabyte of numbers.
        """
        records = checked_codes(codes, self.sizes)
        if len(records) * self.dim > MOST_NUMBERS:
            raise DomainTooLargeError(
                f"embed: expected at most {MOST_NUMBERS // self.dim} records of {self.dim} "
                "coordinates at once, which need 1 GB, got more; hint: embed in chunks, or count "
                "cells instead of records"
            )
        return self._embed(records)

    def to_finite_set(self) -> FiniteSet:
        """Return the points of all possible records, in C order of the full table.

        Raises:
            DomainTooLargeError: more than a gigabyte of numbers.

        >>> Marginals((3, 2, 4), [(0, 1)]).to_finite_set()
        FiniteSet(24 points in R^6)
        """
        hint = "embed the records you need; gamma and optimal_noise need no list of marginals"
        self._check_entries("to_finite_set", MOST_NUMBERS, hint)
        return FiniteSet(self._embed(codes_between(0, self.cardinality, self.sizes)))

    def _check_entries(self, function: str, most: int, hint: str) -> None:
        """Raise DomainTooLargeError if a list of all points has more than ``most`` numbers."""
        if self.cardinality * self.dim > most:
            records, dim = (
                f"{x:.3g}" if x < 1e300 else "over 1e300" for x in (self.cardinality, self.dim)
            )
            raise DomainTooLargeError(
                f"{function}: {records} records × {dim} coordinates are more than {most} numbers; "
                f"hint: {hint}"
            )

    def blocks(self) -> Iterator[tuple[Term, float, slice]]:
        """Yield each term with its weight, and with the range of its coordinates as a slice."""
        start = 0
        for term, weight in zip(self.terms, self.weights, strict=True):
            stop = start + self.queries(term)
            yield term, weight, slice(start, stop)
            start = stop

    def _embed(self, records: NDArray[np.int64]) -> Array:
        points = np.empty((len(records), self.dim))
        for term, weight, block in self.blocks():
            columns = [base._columns(records[:, i]) for i, base in term]
            points[:, block] = reduce(_rowwise_kron, columns, np.full((len(records), 1), weight))
        return points


def checked_weights(who: str, weights: Sequence[float] | None, count: int) -> tuple[float, ...]:
    """Return one positive weight per subset (ones if None); raise for other weights."""
    try:
        scale: tuple[Any, ...] = (
            tuple(float(w) for w in weights) if weights is not None else (1.0,) * count
        )
    except (TypeError, ValueError, OverflowError):
        scale = ()
    if len(scale) != count or not all(math.isfinite(w) and w > 0 for w in scale):
        raise InvalidDomainError(
            f"{who}: expected {count} positive finite weights, one weight for each distinct subset"
        )
    if max(scale) / min(scale) > 1e100:
        raise InvalidDomainError(f"{who}: expected weights within a factor 1e100 of each other")
    return scale


def _rowwise_kron(a: Array, b: Array) -> Array:
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), a.shape[1] * b.shape[1])
