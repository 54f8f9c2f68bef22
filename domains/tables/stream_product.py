"""Kronecker products of finite sets, one or more of them over time, without their matrix."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import final

import numpy as np

from ..domain import AbstractDomain, AbstractFiniteDomain, QuadraticMax
from ..errors import DomainTooLargeError, InvalidDomainError
from ..floats import Array
from ..sets.finite import FiniteSet
from ..sets.stream import StreamWorkload
from .marginals import Marginals
from .products import Products

_MOST_LISTED = 2**24  # largest number of numbers in a list of points: 128 MB
_MOST_LISTED_QUERIES = 2**18  # the same for queries about several attributes: some seconds of work


@final
@dataclass(frozen=True, eq=False)
class StreamProduct(AbstractFiniteDomain):
    """The Kronecker product ``{x_1 ⊗ … ⊗ x_m : x_k in K_k}`` of two or more finite sets.

    At least one of them is a workload over time.

    One person contributes a record of the other sets at one tick. The workload over time combines
    the answers to each linear query about such records. ``kron`` makes such products.

    Args:
        parts: K_1, …, K_m, each a ``StreamWorkload``, a ``FiniteSet``, ``Marginals`` or
            ``Products``.

    Raises:
        InvalidDomainError: other parts, fewer than two, or no workload over time.

    >>> weekly = StreamProduct(
    ...     (StreamWorkload([[1.0, 1.0], [0.0, -1.0]]), FiniteSet([[1.0, 0.0], [0.0, 1.0]]))
    ... )
    >>> weekly.to_finite_set().points
    array([[1., 0., 1., 0.],
           [0., 1., 0., 1.],
           [0., 0., 1., 0.],
           [0., 0., 0., 1.]])
    """

    parts: tuple[AbstractFiniteDomain, ...]

    def __post_init__(self) -> None:
        if (
            len(self.parts) < 2
            or not all(map(is_part, self.parts))
            or not any(isinstance(part, StreamWorkload) for part in self.parts)
        ):
            raise InvalidDomainError(
                "StreamProduct: expected two or more of StreamWorkload, FiniteSet, Marginals and "
                "Products, one of them over time; hint: kron takes any domains"
            )

    @property
    def dim(self) -> int:
        return math.prod(part.dim for part in self.parts)

    @property
    def cardinality(self) -> int:
        return math.prod(part.cardinality for part in self.parts)

    @property
    def is_symmetric(self) -> bool:
        return any(part.is_symmetric for part in self.parts)

    def to_finite_set(self) -> FiniteSet:
        numbers = self.cardinality * self.dim
        if numbers > _MOST_LISTED:
            raise DomainTooLargeError(
                f"StreamProduct: {numbers:.3g} numbers, more than the {_MOST_LISTED} that are "
                'listed; hint: optimal_noise(…, neighbors="add-remove") needs no list'
            )
        return FiniteSet(reduce(np.kron, (part.to_finite_set().points for part in self.parts)))

    def _support_point(self, theta: Array) -> Array:
        scores = theta.reshape([part.dim for part in self.parts])
        for axis, part in enumerate(self.parts):
            matrix = np.moveaxis(scores, axis, 0)
            found = _scores(part, matrix.reshape(part.dim, -1))
            scores = np.moveaxis(found.reshape(-1, *matrix.shape[1:]), 0, axis)
        best = np.unravel_index(int(scores.argmax()), scores.shape)
        found = reduce(np.kron, map(_member, self.parts, map(int, best)))
        return np.asarray(found, dtype=np.float64)

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        return self.to_finite_set()._max_quadratic(form, center)

    def _contains(self, x: Array) -> bool:
        return self.to_finite_set()._contains(x)

    def __repr__(self) -> str:
        return f"kron({', '.join(map(repr, self.parts))})"


def is_part(domain: AbstractDomain) -> bool:
    """Return whether a domain can be a factor of a :class:`StreamProduct`."""
    return isinstance(domain, StreamWorkload | FiniteSet | Marginals | Products)


def stream_product(domains: Iterable[AbstractDomain]) -> StreamProduct | None:
    """Return the Kronecker product of the domains if these are finite and one is over time.

    Otherwise, return None. A :class:`Products` with few queries becomes a finite set, which gives
    narrower bounds.
    """
    parts: list[AbstractFiniteDomain] = []
    for domain in domains:
        if isinstance(domain, StreamProduct):
            parts.extend(domain.parts)
        elif isinstance(domain, Products):
            few = domain.cardinality * domain.dim <= _MOST_LISTED_QUERIES
            parts.append(domain.to_finite_set() if few else domain)
        elif isinstance(domain, StreamWorkload | FiniteSet | Marginals):
            parts.append(domain)
        else:
            return None
    over_time = any(isinstance(part, StreamWorkload) for part in parts)
    return StreamProduct(tuple(parts)) if over_time and len(parts) > 1 else None


def _scores(part: AbstractFiniteDomain, x: Array) -> Array:
    """Return the inner product of each member of the part with each column of x."""
    if isinstance(part, StreamWorkload):
        return part.transpose_apply(x)
    return part.to_finite_set().points @ x


def _member(part: AbstractFiniteDomain, i: int) -> Array:
    return part._column(i) if isinstance(part, StreamWorkload) else part.to_finite_set().points[i]
