"""Products of queries about single attributes: prefix sums, ranges, bins and others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np

from ..domain import QuadraticMax
from ..errors import InvalidDomainError
from ..floats import Array
from ..records import codes_between
from ..sets.finite import FiniteSet
from .bases import AbstractBase, Total
from .marginals import Marginals
from .tables import AbstractTables, Term, checked_weights, is_known

_ORACLE_ENTRIES = 2**30  # numbers that one oracle call may compute, in chunks: seconds
_CHUNK_ENTRIES = 2**22


@final
@dataclass(frozen=True, eq=False)
class Products(AbstractTables):
    """The points that one record can add to the answers of products of queries.

    The points are ``(w_S ⊗_{i∈S} W_i e_{x_i})_{S in subsets}`` over records x in [n_1] × … × [n_m].
    W_i is the base of attribute i, and w_S the weight of a subset. Coordinates are queries: subset
    by subset in the order given, and in C order over the queries of the attributes.
    ``Marginals(sizes, …)`` are products of identities.

    Args:
        bases: one per attribute: :class:`Identity`, :class:`Prefix`, :class:`Ranges`,
            :class:`Bins`, :class:`Windows`, :class:`Moments`, or any matrix as a :class:`Base`.
        subsets: attribute subsets, each an iterable of attribute indices, or a mapping from indices
            to bases that replace those in ``bases``; ``()`` is the total. Stored as ``terms``:
            sorted pairs of an attribute and its base, without attributes whose base is
            :class:`Total`.
        weights: error priority of every subset, positive and finite; ones if omitted. They scale
            the coordinates of the set, never the answers that are released.

    Raises:
        InvalidDomainError: no attributes, no subsets, a subset twice, an unknown attribute, bases
            of different sizes for one attribute, bad weights.

    >>> K = Products([Prefix(3), Identity(2)], [(0, 1), {0: Ranges(3)}])
    >>> K.sizes, K.dim, K.cardinality
    ((3, 2), 12, 6)
    >>> K.embed([[1, 0]]).nonzero()[1]
    array([ 2,  4,  7,  8,  9, 10])
    """

    bases: tuple[AbstractBase, ...]
    terms: tuple[Term, ...]
    weights: tuple[float, ...]
    sizes: tuple[int, ...] = field(init=False)
    subsets: tuple[tuple[int, ...], ...] = field(init=False)

    def __init__(
        self,
        bases: Sequence[AbstractBase],
        subsets: Iterable[Iterable[int] | Mapping[int, AbstractBase]],
        *,
        weights: Sequence[float] | None = None,
    ) -> None:
        own = tuple(bases) if isinstance(bases, Iterable) else ()
        if not own or not all(isinstance(base, AbstractBase) for base in own):
            raise InvalidDomainError(
                "Products: expected a base for every attribute, like [Prefix(10), Identity(2)]"
            )
        terms = (
            [self._term(own, subset) for subset in subsets] if isinstance(subsets, Iterable) else []
        )
        if not terms:
            raise InvalidDomainError(
                "Products: expected at least one subset; hint: [()] asks for the total alone"
            )
        try:
            distinct = len(set(terms))
        except TypeError:
            raise InvalidDomainError(
                "Products: expected hashable bases; hint: frozen dataclasses are"
            ) from None
        if distinct < len(terms):
            raise InvalidDomainError("Products: expected distinct subsets, got one twice")
        object.__setattr__(self, "bases", own)
        object.__setattr__(self, "terms", tuple(terms))
        object.__setattr__(self, "weights", checked_weights("Products", weights, len(terms)))
        object.__setattr__(self, "sizes", tuple(base.size for base in own))
        object.__setattr__(self, "subsets", tuple(tuple(i for i, _ in term) for term in terms))

    @property
    def content(self) -> tuple[object, ...] | None:
        shared = super().content
        if shared is None or not all(map(is_known, self.bases)):
            return None
        return (*shared, self.bases)

    @staticmethod
    def _term(
        own: tuple[AbstractBase, ...], subset: Iterable[int] | Mapping[int, AbstractBase]
    ) -> Term:
        """Return the (attribute, base) pairs of a subset, without attributes of :class:`Total`."""
        if not isinstance(subset, Iterable):
            raise InvalidDomainError(
                f"Products: expected subsets like [(0, 1), {{2: Prefix(5)}}], got "
                f"{type(subset).__name__} in the list"
            )
        indices = list(subset)
        if not all(
            isinstance(i, int | np.integer) and not isinstance(i, bool) and 0 <= i < len(own)
            for i in indices
        ):
            raise InvalidDomainError(
                f"Products: expected attribute indices in 0..{len(own) - 1}, got another"
            )
        chosen = {int(i): subset[i] if isinstance(subset, Mapping) else own[i] for i in indices}
        for i, base in chosen.items():
            if not isinstance(base, AbstractBase) or base.size != own[i].size:
                raise InvalidDomainError(
                    f"Products: expected a base of {own[i].size} categories for attribute {i}"
                )
        return tuple((i, chosen[i]) for i in sorted(chosen) if not isinstance(chosen[i], Total))

    def _stored(self) -> dict[str, Any]:
        # store a base only where it is not the one in ``bases``
        terms = tuple(
            tuple(i if base == self.bases[i] else (i, base) for i, base in term)
            for term in self.terms
        )
        return {"bases": self.bases, "subsets": terms, "weights": self.weights}

    @classmethod
    def _restored(cls, arguments: Mapping[str, Any]) -> Self:
        own, terms = arguments["bases"], arguments["subsets"]
        subsets = [dict((i, own[i]) if isinstance(i, int) else i for i in term) for term in terms]
        return cls(own, subsets, weights=arguments["weights"])

    @property
    def tables(self) -> Marginals:
        return Marginals(self.sizes, self.subsets)

    def _chunks(self, name: str) -> Iterator[Array]:
        """Yield the points of all possible records, as rows, in chunks that fit into memory."""
        self._check_entries(name, _ORACLE_ENTRIES, "drop attributes that are not asked about")
        step = max(1, _CHUNK_ENTRIES // self.dim)
        for start in range(0, self.cardinality, step):
            yield self._embed(codes_between(start, min(start + step, self.cardinality), self.sizes))

    def _support_point(self, theta: Array) -> Array:
        best = (
            points[np.argmax(points @ theta)].copy() for points in self._chunks("support_point")
        )
        return max(best, key=lambda point: float(point @ theta))

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        best = (
            FiniteSet(points)._max_quadratic(form, center)
            for points in self._chunks("max_quadratic")
        )
        return max(best, key=lambda found: found.value)

    def _contains(self, x: Array) -> bool:
        return any(bool((points == x).all(axis=1).any()) for points in self._chunks("contains"))

    def __repr__(self) -> str:
        return f"Products({len(self.terms)} tables, {self.dim} queries, sizes={self.sizes})"
