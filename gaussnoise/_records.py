"""Records of listed points, however they are given: row indices, exact rows, or counts. No message shows a value."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import DataError, ParameterError

Array = NDArray[np.float64]


def counts_of(function: str, points: Array, data: ArrayLike | None, counts: ArrayLike | None) -> list[int]:
    """How many records sit at each listed point, as Python integers."""
    if (data is None) == (counts is None):
        raise ParameterError(f"{function}: expected either data or counts=")
    if counts is None:
        return _counted(function, points, as_array(function, data))
    given = as_array(function, counts)
    if given.shape != (len(points),) or not np.issubdtype(given.dtype, np.integer):
        raise DataError(
            f"{function}: expected integer counts of shape ({len(points)},), "
            f"got {kind(given)} with {given.ndim} dimensions" + (" and another length" if given.ndim == 1 else "")
        )
    if (given < 0).any():
        raise DataError(f"{function}: expected counts >= 0")
    return [int(c) for c in given]


def _counted(function: str, points: Array, data: NDArray) -> list[int]:
    size, dim = points.shape
    if data.ndim == 1 and (data.size == 0 or np.issubdtype(data.dtype, np.integer)):
        indices = data.astype(np.int64)
        if ((indices < 0) | (indices >= size)).any():
            raise DataError(f"{function}: expected row indices in 0..{size - 1}, got one outside")
    elif data.ndim == 2 and data.shape[1] == dim and data.dtype.kind in "biuf":
        rows = {point.tobytes(): i for i, point in reversed(list(enumerate(points + 0.0)))}
        found = [rows.get(row.tobytes(), -1) for row in np.ascontiguousarray(data, dtype=np.float64) + 0.0]
        if -1 in found:
            raise DataError(f"{function}: expected every row to be one of the domain's points exactly, got another")
        indices = np.array(found, dtype=np.int64)
    else:
        raise DataError(
            f"{function}: expected integer row indices of shape (n,) or rows of shape (n, {dim}), "
            f"got {kind(data)} with {data.ndim} dimensions"
        )
    return [int(c) for c in np.bincount(indices, minlength=size)]


def real_rows(function: str, dim: int, data: ArrayLike | None) -> NDArray:
    """Real-valued records as rows, shape (n, dim), not looked at yet."""
    records = as_array(function, data)
    if records.shape == (0,):
        records = np.zeros((0, dim))
    if records.ndim != 2 or records.shape[1] != dim or records.dtype.kind not in "iuf":
        raise DataError(
            f"{function}: expected an array of real numbers of shape (n, {dim}), records as rows, "
            f"got {kind(records)} with {records.ndim} dimensions"
        )
    return records


def as_array(function: str, values: ArrayLike | None) -> NDArray:
    """``values`` as an array; numpy's own complaints may quote them."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        pass
    raise DataError(f"{function}: expected a regular array of numbers, got ragged or mixed values")


def kind(array: NDArray) -> str:
    """The kind of numbers in an array; a text type's own name would tell the length of the longest."""
    return {"b": "booleans", "i": "integers", "u": "integers", "f": "floats", "c": "complex numbers"}.get(
        array.dtype.kind, "something else"
    )
