"""Sparse workloads, converted to dense arrays where these are small enough."""

from typing import Any

from .errors import DomainTooLargeError
from .floats import MOST_NUMBERS


def dense(values: Any) -> Any:
    """Return a scipy.sparse matrix as an array, with duplicates added; other values unchanged.

    Raises:
        DomainTooLargeError: more than a gigabyte of numbers.
    """
    if not (hasattr(values, "toarray") and hasattr(values, "nnz")):
        return values
    entries = 1
    for length in values.shape:
        entries *= int(length)
    if entries > MOST_NUMBERS:
        shape = " × ".join(map(str, values.shape))
        raise DomainTooLargeError(
            f"expected a sparse workload of at most {MOST_NUMBERS} entries, zeros included, as it "
            f"is written out (1 GB); got {shape}; hint: Products or Marginals need no matrix"
        )
    return values.toarray()
