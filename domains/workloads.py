"""Sparse workloads, written out where that is small enough."""

from typing import Any

from .errors import DomainTooLargeError
from .floats import MOST_NUMBERS


def dense(values: Any) -> Any:
    """The array of a scipy.sparse matrix, duplicates added up; anything else as it is.

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
