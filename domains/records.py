"""Records, and workloads, as arrays.

Error messages never show a value, the number of records, or the length of a text.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import DimensionError, DomainTooLargeError, GaussNoiseError, InvalidDomainError
from .floats import MOST_NUMBERS, Array

_DEEPEST = 64  # numpy's own limit on the number of dimensions
_FLAT = (bytes, range, str)  # sequences that hold no arrays
_KINDS = {"b": "booleans", "i": "integers", "u": "integers", "f": "floats", "c": "complex numbers"}


def is_masked(values: object) -> bool:
    """Return whether nested sequences contain a masked array, whose mask numpy would ignore."""
    level, seen = [values], dict[int, object]()
    for _ in range(_DEEPEST):
        kinds = set(map(type, level))  # types first: there may be millions of numbers
        if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):
            return True
        nested = tuple(
            kind for kind in kinds if issubclass(kind, Sequence | np.ndarray) and kind not in _FLAT
        )
        new = {id(x): x for x in level if isinstance(x, nested) and id(x) not in seen}
        if not new:
            return False
        seen |= new
        level = list(itertools.chain.from_iterable(map(_entries, new.values())))
    return False


def _entries(values: Any) -> Iterable[object]:
    if isinstance(values, np.ndarray):
        return values.flat if values.dtype == object else ()
    return values


def array_of(values: object) -> NDArray | str:
    """Return ``values`` as an array, or a text that says why this fails, without any value."""
    if is_masked(values):
        return "a masked array, whose mask would be ignored; hint: .compressed(), or .filled(value)"
    try:
        array = np.asanyarray(values)  # some objects show their mask only after this conversion
    except (ValueError, TypeError, OverflowError):
        return "ragged or mixed values"
    return array_of(array) if isinstance(array, np.ma.MaskedArray) else np.asarray(array)


def regular_array(
    function: str, values: object, error: type[GaussNoiseError] = InvalidDomainError
) -> NDArray:
    """Return ``values`` as an array, or raise an ``error`` that shows no value."""
    array = array_of(values)
    if isinstance(array, str):
        raise error(f"{function}: expected a regular array of numbers, got {array}")
    return array


def kind(array: NDArray) -> str:
    """Return a word for the kind of an array's entries.

    The name of a text dtype would reveal the length of the longest text.
    """
    return _KINDS.get(array.dtype.kind, "something else")


def doubles(values: "ArrayLike") -> Array | str:
    """Return a float64 copy of the values, or a text with their kind if they are not real."""
    given = array_of(values)
    if isinstance(given, str):
        return given
    if np.iscomplexobj(given):  # numpy would silently drop imaginary parts
        return "complex numbers"
    try:
        return np.array(given, dtype=np.float64)
    except OverflowError:
        return "integers beyond the largest double"
    except (TypeError, ValueError):
        hint = "; hint: .toarray()" if hasattr(values, "toarray") else ""
        return kind(given) if given.ndim else type(values).__name__ + hint


def real_numbers(name: str, values: "ArrayLike", what: str = "") -> Array:
    """Return a read-only float64 copy, or raise an InvalidDomainError that shows no value."""
    array = doubles(values)
    if isinstance(array, str):
        raise InvalidDomainError(
            f"{name}: expected {what}a regular array of real numbers, got {array}"
        )
    array.flags.writeable = False
    return array


def own_array(values: "ArrayLike") -> Array:
    """Return a read-only float64 copy of real numbers."""
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def real_array(
    function: str, expected: str, shape: Sequence[int | None], values: object
) -> NDArray:
    """Return ``values`` as an array of real numbers of this shape, or raise an error.

    None in ``shape`` allows any length of that axis.
    """
    array = regular_array(function, values)
    if array.ndim != len(shape) or any(
        n not in (None, size) for n, size in zip(shape, array.shape, strict=True)
    ):
        another = " and another length" if array.ndim == len(shape) else ""
        raise DimensionError(
            f"{function}: expected {expected}, got {kind(array)} with {array.ndim} "
            f"dimensions{another}"
        )
    if array.size and array.dtype.kind not in "biuf":
        raise InvalidDomainError(
            f"{function}: expected {expected}, of real numbers, got {kind(array)}"
        )
    return array


def checked_codes(codes: "ArrayLike", sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return codes as int64, shape (n, attributes), or raise unless each is in range.

    Errors show no value. ``sizes`` has the number of categories of each attribute.
    """
    raw = real_array("embed", f"codes of shape (n, {len(sizes)})", (None, len(sizes)), codes)
    if raw.size and not np.issubdtype(raw.dtype, np.integer):
        raise InvalidDomainError(f"embed: expected integer codes, got {kind(raw)}")
    if (raw < 0).any() or (raw >= np.asarray(sizes)).any():
        raise InvalidDomainError(
            "embed: expected 0 <= codes[:, i] < sizes[i], got a code out of range"
        )
    return raw.astype(np.int64)


def codes_between(start: int, stop: int, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return the integer codes of the records with the numbers ``start``, …, ``stop`` − 1.

    Records are the cells of the full table, in C order. Shape (stop − start, attributes).
    """
    codes = np.empty((stop - start, len(sizes)), dtype=np.int64)
    rest = np.arange(start, stop)
    for i, size in reversed(list(enumerate(sizes))):
        rest, codes[:, i] = np.divmod(rest, size)
    return codes


def dense(values: Any) -> Any:
    """Return a scipy.sparse matrix as a dense array; return other values unchanged.

    Duplicate entries of the sparse matrix are added.

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
