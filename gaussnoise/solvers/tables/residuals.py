"""Residuals: the table of attributes S is a sum over T ⊆ S of tensors with zero sums.

The residual of T is the tensor over the attributes of T that sums to zero along each of them.
"""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.errors import DomainTooLargeError

Subset = tuple[int, ...]

_MOST_SUBSETS = 2**22


def residual_subsets(subsets: Collection[Subset], sizes: Sequence[int]) -> list[Subset]:
    """Return all sets T within any of the attribute ``subsets`` that have a residual, small first.

    The residual of T is a tensor over the attributes of T that sums to zero along each of them. If
    an attribute of T has only one category (``sizes``), the residual is zero, and T is left out.
    """
    count = sum(2 ** sum(sizes[i] > 1 for i in S) for S in subsets)
    check_count(count)
    inside = {T for S in subsets for T in subsets_of(S)}
    return sorted((T for T in inside if all(sizes[i] > 1 for i in T)), key=lambda T: (len(T), T))


def check_count(count: int) -> None:
    """Raise DomainTooLargeError if there are too many subsets of attributes to list."""
    if count > _MOST_SUBSETS:
        raise DomainTooLargeError(
            f"marginals: {count:.3g} attribute subsets inside the workload's, more than "
            f"{_MOST_SUBSETS}; hint: ask for marginals of fewer attributes"
        )


def subsets_of(S: Subset) -> Iterator[Subset]:
    """Yield all subsets of S, small ones first."""
    return itertools.chain.from_iterable(itertools.combinations(S, k) for k in range(len(S) + 1))


def rank(T: Subset, sizes: Sequence[int]) -> int:
    """Return the dimension of the tensors over the attributes T that sum to zero along each."""
    return math.prod(sizes[i] - 1 for i in T)


def project_zero_sum(tensor: NDArray, axes: Iterable[int]) -> NDArray:
    """Return the orthogonal projection onto tensors that sum to zero along each of ``axes``."""
    for axis in axes:
        tensor = tensor - tensor.mean(axis=axis, keepdims=True)
    return tensor


def zero_sum_basis(shape: Sequence[int]) -> NDArray[np.float64]:
    """Return orthonormal columns that span the tensors with zero sums along every axis.

    ``shape`` is that of the tensors; the result has shape (cells, dimension of the span).
    """
    basis = np.ones((1, 1))
    for n in shape:
        # rows of Helmert's matrix are orthonormal and sum to zero
        basis = np.kron(basis, scipy.linalg.helmert(n).T)
    return basis


def part_of(table: NDArray, S: Subset, T: Subset) -> NDArray:
    """Return the marginal table of the attributes T, summed from the table of attributes S.

    T is a subset of S. ``table`` has shape (sizes of S..., k...).
    """
    return np.asarray(table.sum(axis=tuple(axis for axis, i in enumerate(S) if i not in T)))


def extended(values: NDArray, T: Subset, S: Subset, sizes: Sequence[int]) -> NDArray:
    """Repeat a table of attributes T along the other attributes of S.

    ``values`` has shape (cells of T,) or (cells of T, k); the result has the axes of S, and k.
    """
    tail = values.shape[1:]
    seen = [sizes[i] if i in T else 1 for i in S]
    return np.broadcast_to(values.reshape((*seen, *tail)), (*[sizes[i] for i in S], *tail))
