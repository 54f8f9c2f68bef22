"""Products of one-attribute queries: one record's contribution to prefix sums, ranges, bins and counts of tables."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..domain import AbstractFiniteDomain, Array, QuadraticMax
from ..errors import DomainTooLargeError, InvalidDomainError
from ..records import checked_codes, codes_between
from ..sets.finite import FiniteSet
from .bases import AbstractBase, Total

_ORACLE_ENTRIES = 2**30  # numbers an oracle call goes through at most: seconds, in chunks
_MATERIAL_ENTRIES = 2**27  # numbers an explicit embedding holds at most: 1 GB
_CHUNK_ENTRIES = 2**22

Term = tuple[tuple[int, AbstractBase], ...]


@final
@dataclass(frozen=True, eq=False)
class Products(AbstractFiniteDomain):
    """All points ``(w_S ⊗_{i∈S} W_i e_{x_i})_{S in subsets}`` over records x in [n_1] × … × [n_m].

    Coordinates are queries: subsets in the order given, each the product of its attributes' queries in C order.
    ``Marginals(sizes, …)`` are products of identities.

    Args:
        bases: one per attribute: :class:`Identity`, :class:`Prefix`, :class:`Ranges`, :class:`Bins`, :class:`Windows`,
            :class:`Moments`, or any matrix as a :class:`Base`.
        subsets: attribute subsets, each an iterable of attribute indices, or a mapping from indices to other bases
            than the attributes' own; ``()`` is the total. Stored as ``terms``: sorted pairs of an attribute and its
            base, without repeats and totals.
        weights: error priority of every subset, positive and finite; ones if omitted. They scale the coordinates of
            the set, never the answers that are released.

    Raises:
        InvalidDomainError: no attributes, no subsets, one twice, an unknown attribute, bases of different sizes for one
            attribute, bad weights.

    >>> K = Products([Prefix(3), Identity(2)], [(0, 1), {0: Ranges(3)}])
    >>> K.sizes, K.dim, K.cardinality
    ((3, 2), 12, 6)
    >>> K.embed([[1, 0]]).nonzero()[1]
    array([ 2,  4,  7,  8,  9, 10])
    """

    bases: tuple[AbstractBase, ...]
    terms: tuple[Term, ...]
    weights: tuple[float, ...]

    def __init__(
        self,
        bases: Sequence[AbstractBase],
        subsets: Iterable[Iterable[int] | Mapping[int, AbstractBase]],
        weights: Sequence[float] | None = None,
    ) -> None:
        own = tuple(bases) if isinstance(bases, Iterable) else ()
        if not own or not all(isinstance(base, AbstractBase) for base in own):
            raise InvalidDomainError("Products: expected a base for every attribute, like [Prefix(10), Identity(2)]")
        terms = [self._term(own, subset) for subset in subsets] if isinstance(subsets, Iterable) else []
        if not terms:
            raise InvalidDomainError("Products: expected at least one subset; hint: [()] asks for the total alone")
        try:
            distinct = len(set(terms))
        except TypeError:
            raise InvalidDomainError("Products: expected hashable bases; hint: frozen dataclasses are") from None
        if distinct < len(terms):
            raise InvalidDomainError("Products: expected distinct subsets, got one twice")
        try:
            scale = tuple(float(w) for w in weights) if weights is not None else (1.0,) * len(terms)
        except (TypeError, ValueError):
            scale = ()
        if len(scale) != len(terms) or not all(math.isfinite(w) and w > 0 for w in scale):
            raise InvalidDomainError(f"Products: expected {len(terms)} positive finite weights, one per subset")
        if max(scale) / min(scale) > 1e100:
            raise InvalidDomainError("Products: expected weights within a factor 1e100 of each other")
        object.__setattr__(self, "bases", own)
        object.__setattr__(self, "terms", tuple(terms))
        object.__setattr__(self, "weights", scale)

    @staticmethod
    def _term(own: tuple[AbstractBase, ...], subset: Iterable[int] | Mapping[int, AbstractBase]) -> Term:
        """The attributes of a subset with their bases; totals are what is not asked about."""
        if not isinstance(subset, Iterable):
            raise InvalidDomainError(
                f"Products: expected subsets like [(0, 1), {{2: Prefix(5)}}], got {type(subset).__name__} in the list"
            )
        indices = list(subset)
        if not all(isinstance(i, int | np.integer) and not isinstance(i, bool) and 0 <= i < len(own) for i in indices):
            raise InvalidDomainError(f"Products: expected attribute indices in 0..{len(own) - 1}, got another")
        chosen = {int(i): subset[i] if isinstance(subset, Mapping) else own[i] for i in indices}
        for i, base in chosen.items():
            if not isinstance(base, AbstractBase) or base.size != own[i].size:
                raise InvalidDomainError(f"Products: expected a base of {own[i].size} categories for attribute {i}")
        return tuple((i, chosen[i]) for i in sorted(chosen) if not isinstance(chosen[i], Total))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of every attribute."""
        return tuple(base.size for base in self.bases)

    @property
    def subsets(self) -> tuple[tuple[int, ...], ...]:
        """Attributes of every term."""
        return tuple(tuple(i for i, _ in term) for term in self.terms)

    @property
    def dim(self) -> int:
        return sum(map(self.queries, self.terms))

    @property
    def cardinality(self) -> int:
        return math.prod(self.sizes)

    @property
    def is_symmetric(self) -> bool:
        # K = −K takes queries that are never of one sign alone: rare, and nothing that has to be known
        return False

    def queries(self, term: Term) -> int:
        """Number of coordinates of one term.

        >>> K = Products([Ranges(4), Identity(2)], [(0, 1)])
        >>> K.queries(K.terms[0])
        20
        """
        return math.prod(base.queries for _, base in term)

    def embed(self, codes: ArrayLike) -> Array:
        """Rows of K for integer records.

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
        if len(records) * self.dim > _MATERIAL_ENTRIES:
            raise DomainTooLargeError(
                f"embed: expected at most {_MATERIAL_ENTRIES // self.dim} records of {self.dim} coordinates at once, "
                "which need 1 GB, got more; hint: embed in chunks, or count cells instead of records"
            )
        return self._embed(records)

    def to_finite_set(self) -> FiniteSet:
        """Every record's point, in C order of the full table.

        Raises:
            DomainTooLargeError: more than a gigabyte of numbers.

        >>> Products([Prefix(3), Identity(2)], [(0, 1)]).to_finite_set()
        FiniteSet(6 points in R^6)
        """
        self._check("to_finite_set", self.cardinality, _MATERIAL_ENTRIES, "embed the records you need")
        return FiniteSet(self._embed(codes_between(0, self.cardinality, self.sizes)))

    def _check(self, name: str, count: int, most: int, hint: str) -> None:
        if count * self.dim > most:
            records, dim = (f"{x:.3g}" if x < 1e300 else "over 1e300" for x in (count, self.dim))
            raise DomainTooLargeError(
                f"{name}: {records} records × {dim} coordinates are more than {most} numbers; hint: {hint}"
            )

    def _embed(self, records: NDArray[np.int64]) -> Array:
        points = np.empty((len(records), self.dim))
        offset = 0
        for term, weight in zip(self.terms, self.weights, strict=True):
            block = points[:, offset : offset + self.queries(term)]
            columns = [base._columns(records[:, i]) for i, base in term]
            first = np.full((len(records), 1), weight)
            block[:] = reduce(_rowwise_kron, columns, first)
            offset += self.queries(term)
        return points

    def _chunks(self, name: str) -> Iterator[Array]:
        """Every record's point, some at a time."""
        self._check(name, self.cardinality, _ORACLE_ENTRIES, "drop attributes that are not asked about")
        step = max(1, _CHUNK_ENTRIES // self.dim)
        for start in range(0, self.cardinality, step):
            yield self._embed(codes_between(start, min(start + step, self.cardinality), self.sizes))

    def _support_point(self, theta: Array) -> Array:
        best = (points[np.argmax(points @ theta)].copy() for points in self._chunks("support_point"))
        return max(best, key=lambda point: float(point @ theta))

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        best = (FiniteSet(points)._max_quadratic(form, center) for points in self._chunks("max_quadratic"))
        return max(best, key=lambda found: found.value)

    def _contains(self, x: Array) -> bool:
        return any(bool((points == x).all(axis=1).any()) for points in self._chunks("contains"))

    def __repr__(self) -> str:
        return f"Products({len(self.terms)} tables, {self.dim} queries, sizes={self.sizes})"


def _rowwise_kron(a: Array, b: Array) -> Array:
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), a.shape[1] * b.shape[1])
