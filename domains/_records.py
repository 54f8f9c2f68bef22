"""Records of several attributes as rows of integer codes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import DimensionError, InvalidDomainError


def checked_codes(codes: ArrayLike, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Codes of shape (n, attributes), each in range, or an error that shows no value."""
    raw = np.asarray(codes)
    if raw.ndim != 2 or raw.shape[1] != len(sizes):
        raise DimensionError(f"embed: expected codes of shape (n, {len(sizes)}), got {raw.shape}")
    if raw.size and not np.issubdtype(raw.dtype, np.integer):
        raise InvalidDomainError(f"embed: expected integer codes, got {raw.dtype}")
    if (raw < 0).any() or (raw >= np.asarray(sizes)).any():
        raise InvalidDomainError("embed: expected 0 <= codes[:, i] < sizes[i], got a code out of range")
    return raw.astype(np.int64)


def codes_between(start: int, stop: int, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Codes of records start..stop in C order, shape (stop - start, attributes); of any number of attributes."""
    codes = np.empty((stop - start, len(sizes)), dtype=np.int64)
    rest = np.arange(start, stop)
    for i, size in reversed(list(enumerate(sizes))):
        rest, codes[:, i] = np.divmod(rest, size)
    return codes
