"""Marginals of a contingency table: the contribution of one record to marginal tables."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from ..domain import QuadraticMax
from ..errors import DomainTooLargeError, InvalidDomainError
from ..floats import Array
from ..records import codes_between
from .bases import Identity
from .tables import AbstractTables, Term, checked_weights

_ORACLE_CELLS = 2**24  # largest number of records that an oracle call enumerates: 128 MB of scores
_CHUNK_ENTRIES = 2**22
_SUBSETS = 2**22  # largest number of marginals that are listed


@final
@dataclass(frozen=True, eq=False)
class Marginals(AbstractTables):
    """The points that one record can add to marginal tables: a weight in one cell per table.

    The points are ``(w_S · onehot(x_S))_{S in subsets}`` over records x in [n_1] × … × [n_m].
    Coordinates are the cells of the marginal tables: table by table in the order of ``subsets``,
    and in C order in each.

    Args:
        sizes: number of categories of every attribute, each >= 1.
        subsets: attribute subsets, each an iterable of attribute indices; ``()`` is the total.
            Stored as sorted tuples in the caller's order, without duplicates.
        weights: error priority of every subset, positive and finite; ones if omitted. They scale
            the coordinates of the set, never the tables that are released.

    Raises:
        InvalidDomainError: no attributes, no subsets, a size below one, an unknown attribute, bad
            weights.

    >>> K = Marginals((3, 2, 4), [(0, 1), (2,)])
    >>> K.dim, K.cardinality
    (10, 24)
    >>> K.embed([[2, 0, 3]]).nonzero()[1]
    array([4, 9])
    """

    sizes: tuple[int, ...]
    subsets: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]

    def __init__(
        self,
        sizes: Sequence[int],
        subsets: Iterable[Iterable[int]],
        *,
        weights: Sequence[float] | None = None,
    ) -> None:
        counts = tuple(int(n) for n in sizes)
        if not counts or any(n < 1 or n != given for n, given in zip(counts, sizes, strict=True)):
            raise InvalidDomainError(
                f"Marginals: expected sizes that are integers >= 1, got {tuple(sizes)}"
            )
        try:
            listed = [tuple(sorted({*subset})) for subset in subsets]
        except TypeError:
            raise InvalidDomainError(
                f"Marginals: expected subsets like [(0, 1), (2,)], got {type(subsets).__name__}; "
                "hint: Marginals.all_kway(sizes, k) for all k-way marginals"
            ) from None
        known = range(len(counts))
        for subset in listed:
            if any([i not in known for i in subset]):
                raise InvalidDomainError(
                    f"Marginals: expected attribute indices in 0..{len(counts) - 1}, got subset "
                    f"{subset}"
                )
        listed = [tuple(map(int, subset)) for subset in listed]
        unique = tuple(dict.fromkeys(listed))
        if not unique:
            raise InvalidDomainError(
                "Marginals: expected at least one subset; hint: [()] asks for the total alone"
            )
        if weights is not None and len(unique) < len(listed):
            raise InvalidDomainError(
                "Marginals: expected one weight for each distinct subset, got one subset twice"
            )
        object.__setattr__(self, "sizes", counts)
        object.__setattr__(self, "subsets", unique)
        object.__setattr__(self, "weights", checked_weights("Marginals", weights, len(unique)))

    @classmethod
    def all_kway(cls, sizes: Sequence[int], k: int, *, cumulative: bool = False) -> Self:
        """Return all k-way marginals; ``cumulative`` adds those of fewer attributes and the total.

        >>> Marginals.all_kway((3, 2, 4), 2).subsets
        ((0, 1), (0, 2), (1, 2))
        """
        if not 0 <= k <= len(sizes):
            raise InvalidDomainError(
                f"all_kway: expected 0 <= k <= {len(sizes)} attributes, got k={k}"
            )
        orders = range(k + 1) if cumulative else [k]
        count = sum(math.comb(len(sizes), order) for order in orders)
        if count > _SUBSETS:
            raise DomainTooLargeError(
                f"all_kway: {count:.3g} marginals, more than {_SUBSETS}; hint: list the ones you "
                "need"
            )
        return cls(
            sizes, [s for order in orders for s in itertools.combinations(range(len(sizes)), order)]
        )

    @cached_property
    def terms(self) -> tuple[Term, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The queries of each subset: pairs of an attribute and an :class:`Identity` base."""
        # each pair is built once, since there may be a million subsets
        pairs = [(i, Identity(n)) for i, n in enumerate(self.sizes)]
        return tuple([tuple([pairs[i] for i in subset]) for subset in self.subsets])

    @property
    def tables(self) -> "Marginals":
        return self

    @property
    def is_cells(self) -> bool:
        return True

    @cached_property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        return sum(map(self.cells, self.subsets))

    def _columns(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the coordinate at which a record's point is not zero, by record and subset."""
        columns = np.empty((len(records), len(self.subsets)), dtype=np.int64)
        for j, (subset, (_, _, block)) in enumerate(zip(self.subsets, self.blocks(), strict=True)):
            cell = np.zeros(len(records), dtype=np.int64)
            for i in subset:
                cell = cell * self.sizes[i] + records[:, i]
            columns[:, j] = block.start + cell
        return columns

    def _embed(self, records: NDArray[np.int64]) -> Array:
        points = np.zeros((len(records), self.dim))
        np.put_along_axis(points, self._columns(records), np.asarray(self.weights)[None, :], axis=1)
        return points

    def _check_enumerable(self, oracle: str) -> None:
        if self.cardinality > _ORACLE_CELLS:
            raise DomainTooLargeError(
                f"{oracle}: exact answers enumerate {self.cardinality:.3g} records, more than "
                f"{_ORACLE_CELLS}; hint: drop unused attributes, or use the closed forms of gamma "
                "and add-remove, which need no oracle"
            )

    def _support_point(self, theta: Array) -> Array:
        self._check_enumerable("support_point")
        scores = np.zeros(self.sizes)
        for subset, (_, weight, block) in zip(self.subsets, self.blocks(), strict=True):
            shape = [n if i in subset else 1 for i, n in enumerate(self.sizes)]
            scores += weight * theta[block].reshape(shape)
        best = np.unravel_index(np.argmax(scores), self.sizes)
        return self._embed(np.array([best], dtype=np.int64))[0]

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        self._check_enumerable("max_quadratic")
        constant = float(center @ form @ center)
        linear = form @ center
        weights = np.asarray(self.weights)
        best_value, best_record = -math.inf, 0
        step = max(1, _CHUNK_ENTRIES // len(self.subsets) ** 2)
        for start in range(0, self.cardinality, step):
            columns = self._columns(
                codes_between(start, min(start + step, self.cardinality), self.sizes)
            )
            # a point has one nonzero coordinate per subset: read those entries of the form alone
            blocks = form[columns[:, :, None], columns[:, None, :]]
            values = (
                constant
                + np.einsum("nij,i,j->n", blocks, weights, weights)
                - 2 * linear[columns] @ weights
            )
            top = int(np.argmax(values))
            if values[top] > best_value:
                best_value, best_record = float(values[top]), start + top
        return QuadraticMax(
            self._embed(codes_between(best_record, best_record + 1, self.sizes))[0],
            best_value,
            best_value,
        )

    def _contains(self, x: Array) -> bool:
        record = [0] * len(self.sizes)
        for subset, (_, _, block) in zip(self.subsets, self.blocks(), strict=True):
            cell = (
                np.unravel_index(int(np.argmax(x[block])), [self.sizes[i] for i in subset])
                if subset
                else ()
            )
            for i, code in zip(subset, cell, strict=True):
                record[i] = int(code)
        return bool(np.array_equal(self._embed(np.array([record], dtype=np.int64))[0], x))

    def __repr__(self) -> str:
        listed = ", ".join(map(str, self.subsets[:4])) + (", …" if len(self.subsets) > 4 else "")
        return (
            f"Marginals({len(self.subsets)} tables, {self.dim} cells, sizes={self.sizes}: {listed})"
        )
