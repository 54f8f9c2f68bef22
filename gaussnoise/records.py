"""Records as arguments: rows, indices of listed points, or counts. Messages show no values."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.algebra.members import projection
from domains.domain import AbstractDomain
from domains.floats import Array
from domains.records import kind, regular_array

from .errors import DataError, NotAvailableError, ParameterError


def check_given(
    function: str,
    data: "ArrayLike | None",
    counts: "ArrayLike | None",
    rows: "ArrayLike | None",
    indices: "ArrayLike | None",
    *,
    listed: bool,
) -> None:
    """Raise ParameterError unless exactly one of the arguments with records is given.

    Args:
        function: the caller's name in messages.
        data: records in any form.
        counts: the number of records at each listed point.
        rows: shape (n, d).
        indices: shape (n,), indices of listed points.
        listed: whether the domain has listed points.
    """
    given = sum(x is not None for x in (data, rows, indices, counts))
    if not listed and indices is not None:
        raise ParameterError(f"{function}: indices= belongs to listed points; hint: rows=")
    if not listed and (counts is not None or not given):
        raise ParameterError(
            f"{function}: expected data, records as rows; counts= belongs to listed points"
        )
    if given != 1:
        raise ParameterError(
            f"{function}: expected either data or counts=, rows=, indices=; got "
            f"{'several of them' if given else 'none of them'}"
        )


def one_kind(
    function: str,
    data: "ArrayLike | None",
    rows: "ArrayLike | None",
    indices: "ArrayLike | None",
    *,
    listed: bool,
) -> ArrayLike | None:
    """Return the given argument: indices of listed points, or records as rows.

    For listed points, ``data`` as a plain list of numbers raises DataError, as it is ambiguous.
    """
    if indices is not None:
        if as_array(function, indices).ndim != 1:
            raise DataError(
                f"{function}: expected indices= of shape (n,), the row of each record; hint: rows="
            )
        return indices
    given = data if rows is None else rows
    if listed and given is not None:
        array = as_array(function, given)
        if array.ndim == 1 and array.size:
            raise DataError(
                f"{function}: expected rows of shape (n, d), got one number for each record or "
                "point; hint: counts= says how many records are at each listed point, indices= "
                "which point each record is at"
            )
    return given


def counts_of(
    function: str,
    points: Array,
    data: "ArrayLike | None",
    counts: "ArrayLike | None",
    *,
    others: bool = False,
) -> list[int]:
    """Return the number of records at each listed point of the domain.

    Args:
        function: the caller's name in messages.
        points: the listed points, shape (n, d).
        data: records as rows, or as indices of points; or None.
        counts: the number of records at each point; or None.
        others: whether records at other points are ignored; if not, they raise an error.
    """
    if (data is None) == (counts is None):
        raise ParameterError(f"{function}: expected either data or counts=")
    if counts is None:
        return _counted(function, points, as_array(function, data), others)
    given = as_array(function, counts)
    if given.shape != (len(points),) or not np.issubdtype(given.dtype, np.integer):
        raise DataError(
            f"{function}: expected integer counts of shape ({len(points)},), "
            f"got {kind(given)} with {given.ndim} dimensions"
            + (" and another length" if given.ndim == 1 and len(given) != len(points) else "")
            + ("; hint: counts.astype(int)" if given.dtype.kind == "f" else "")
        )
    if (given < 0).any():
        raise DataError(f"{function}: expected counts >= 0")
    return [int(c) for c in given]


def _counted(function: str, points: Array, data: NDArray, others: bool) -> list[int]:
    size, dim = points.shape
    if data.ndim == 1 and (data.size == 0 or np.issubdtype(data.dtype, np.integer)):
        indices = indices_in(function, size, data, others=others)
    elif data.ndim == 2 and data.shape[1] == dim and data.dtype.kind in "biuf":
        rows = {point.tobytes(): i for i, point in reversed(list(enumerate(points + 0.0)))}
        with np.errstate(all="ignore"):  # numbers may be too large for floats
            given = np.ascontiguousarray(data, dtype=np.float64) + 0.0
        indices = np.array([rows.get(row.tobytes(), -1) for row in given], dtype=np.int64)
        if -1 in indices and not others:
            raise DataError(
                f"{function}: expected every row to be one of the domain's points exactly, got "
                "another"
            )
    else:
        raise DataError(
            f"{function}: expected integer row indices of shape (n,) or rows of shape (n, {dim}), "
            f"got {kind(data)} with {data.ndim} dimensions"
        )
    return [int(c) for c in np.bincount(indices[indices >= 0], minlength=size)]


def indices_in(function: str, size: int, data: NDArray, *, others: bool) -> NDArray[np.int64]:
    """Return the index of each record's point, −1 if it is outside 0 … ``size`` − 1.

    If ``others`` is false, such an index raises DataError.
    """
    listed = (data >= 0) & (data < size)
    if not (others or listed.all()):
        raise DataError(f"{function}: expected row indices in 0..{size - 1}, got one outside")
    return np.where(listed, np.where(listed, data, 0).astype(np.int64), -1)


def check_on_outside(function: str, on_outside: object, *, bodies: bool = True) -> None:
    """Raise ParameterError unless ``on_outside`` is "refuse", "drop" or, for bodies, "project"."""
    first = '"refuse", "project"' if bodies else '"refuse"'
    if on_outside not in ("refuse", "drop", *(["project"] if bodies else [])):
        raise ParameterError(
            f'{function}: expected on_outside={first} or "drop", got {on_outside!r}'
        )


def check_finite(function: str, rows: Array) -> None:
    """Raise DataError unless all numbers in ``rows`` are finite."""
    if not np.isfinite(rows).all():
        raise DataError(f"{function}: expected finite records, got NaN or infinity")


def real_rows(function: str, dim: int, data: "ArrayLike | None") -> NDArray:
    """Return records as a numeric array, shape (n, dim), which may have NaN or infinite values."""
    records = as_array(function, data)
    if records.shape == (0,):
        records = np.zeros((0, dim))
    if records.ndim != 2 or records.shape[1] != dim or records.dtype.kind not in "iuf":
        raise DataError(
            f"{function}: expected an array of real numbers of shape (n, {dim}), records as rows, "
            f"got {kind(records)} with {records.ndim} dimensions"
        )
    return records


def as_array(function: str, values: "ArrayLike | None") -> NDArray:
    """Return ``values`` as an array, or raise a DataError that quotes no value."""
    return regular_array(function, values, DataError)


def map_into(domain: AbstractDomain) -> Callable[[Array], Array]:
    """Return the function that maps each record into the domain for ``on_outside="project"``.

    Raises:
        NotAvailableError: no such map is known.
    """
    move = projection(domain)
    if move is not None:
        return move
    raise NotAvailableError(
        f'release: on_outside="project" and "drop" know no map into this {type(domain).__name__}; '
        "hint: LpBall, Ellipsoid, boxes (a Zonotope whose generators lie along axes, a TwoConvex "
        "of one row), Frobenius balls, their translates, multiples and products, or project the "
        "records yourself, each by itself, before the "
        "release"
    )
