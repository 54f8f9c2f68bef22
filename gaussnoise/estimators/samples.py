"""Samples as arrays of real numbers, one row per record. No message shows a value."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.floats import EPS
from domains.records import kind

from ..errors import DataError, ParameterError
from ..records import as_array
from .knowledge import shown

Array = NDArray[np.float64]
OnNonfinite = Literal["refuse", "clip"]

_CHUNK_ENTRIES = 2**16  # entries of rows that are clipped together: they stay in the cache
_SPARE = 64  # numbers are scaled by 2^-64: sums of fewer than 2⁶⁴ of them do not overflow


def samples(
    function: str,
    data: "ArrayLike",
    on_nonfinite: OnNonfinite = "refuse",
    dims: tuple[int, ...] = (1, 2),
) -> Array:
    """Return records as floats, shape (n,) or (n, d) with n >= 1; infinities and NaN are kept.

    Raises:
        DataError: data are not an array of real numbers, or have no record.
        ParameterError: ``on_nonfinite`` is unknown.
    """
    if not (isinstance(on_nonfinite, str) and on_nonfinite in ("refuse", "clip")):
        raise ParameterError(
            f'{function}: expected on_nonfinite="refuse" or "clip", got {shown(on_nonfinite)}'
        )
    array = as_array(function, data)
    shapes = " or ".join("(n,)" if dim == 1 else "(n, d)" for dim in dims)
    if array.ndim not in dims or 0 in array.shape or array.dtype.kind not in "iuf":
        raise DataError(
            f"{function}: expected real numbers of shape {shapes}, one row a record, "
            f"got {kind(array)} with {array.ndim} dimensions"
            + (" and no record" if 0 in array.shape else "")
        )
    with np.errstate(all="ignore"):  # some numbers overflow as floats
        rows = np.ascontiguousarray(array, dtype=np.float64)
    return rows


def check_finite(function: str, rows: Array, on_nonfinite: object) -> None:
    """Raise DataError for an infinity or NaN if ``on_nonfinite`` is "refuse".

    Otherwise :func:`clipped` maps infinities to the boundary and NaN to the center.

    The result depends on the data. With a ledger, this check runs within a charge, which then
    becomes a recorded refusal.

    Raises:
        DataError: a number is not finite.
    """
    if on_nonfinite == "refuse" and not np.isfinite(rows).all():
        raise DataError(
            f"{function}: expected finite numbers, got NaN or an infinity; hint: "
            'on_nonfinite="clip" sends infinities to the boundary of the clipping set and NaN to '
            "its center"
        )


def by_person(
    function: str, data: object, person: "ArrayLike | None", on_nonfinite: OnNonfinite = "refuse"
) -> Array:
    """Return the mean of each person's records, shape (n,) or (n, d), in any order of persons.

    Args:
        function: the name used in messages.
        data: records, with ``person``; or a list with the records of each person.
        person: the person of each row, shape (rows,), integers or text.
        on_nonfinite: as for :func:`samples`; a person with a NaN has a mean of NaN.

    Raises:
        DataError: as for :func:`samples`; or ``person`` has another length or type, or a person has
            no records.
    """
    if person is None:
        if isinstance(data, np.ndarray) or not isinstance(data, list | tuple):
            raise DataError(
                f"{function}: expected person=, whose record each row is, or a list with the "
                "records of each person"
            )
        each = [samples(function, records, on_nonfinite) for records in data]
        if not each or len({records.shape[1:] for records in each}) > 1:
            raise DataError(
                f"{function}: expected the records of at least one person, all with the same "
                "columns"
            )
        return np.array([exact_mean(records) for records in each])
    rows = samples(function, data, on_nonfinite)  # pyright: ignore[reportArgumentType]
    labels = as_array(function, person)
    if labels.shape != (len(rows),) or labels.dtype.kind not in "iuUS":
        raise DataError(
            f"{function}: expected person= of shape ({len(rows)},), integers or text, "
            f"got {kind(labels)} with {labels.ndim} dimensions"
            + (" and another length" if labels.ndim == 1 and len(labels) != len(rows) else "")
        )
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.r_[True, labels[order][1:] != labels[order][:-1]])
    return np.array([exact_mean(records) for records in np.split(rows[order], starts[1:])])


def exact_mean(records: Array) -> Array:
    """Return the mean of one person's records, shape () or (d,); sums are exact.

    So no other person's rows affect the result.
    """
    if not np.isfinite(records).all():
        with np.errstate(all="ignore"):
            return records.mean(axis=0)
    columns = np.ldexp(np.atleast_2d(records.T), -_SPARE).tolist()
    means = [math.fsum(column) / len(records) for column in columns]
    return np.ldexp(means, _SPARE).reshape(records.shape[1:])


def clipped(rows: Array, center: Array, radius: float) -> Array:
    """Return ``(row − center) / radius`` for every row, shortened to length 1 if it is longer.

    A row with a NaN becomes zero.

    Arithmetic is elementwise or along one row, so no other record affects a row of the result. The
    error of a coordinate is less than :func:`clipping_error`.
    """
    mapped = np.empty(rows.shape)
    step = max(1, _CHUNK_ENTRIES // rows.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        # row by row in memory: sums of a lone row of another layout have another order
        mapped[part] = _clipped(np.ascontiguousarray(rows[part]), center, radius)
    return mapped


def _clipped(rows: Array, center: Array, radius: float) -> Array:
    """Return the result of :func:`clipped` for one chunk of rows."""
    with np.errstate(all="ignore"):
        moved = rows - center
        moved[np.isnan(moved).any(axis=1)] = 0.0
        unbounded = np.isinf(moved).any(axis=1)
        moved[unbounded] = np.where(np.isinf(moved[unbounded]), np.sign(moved[unbounded]), 0.0)
        far = np.maximum(np.abs(moved).max(axis=1, keepdims=True), radius)
        far[unbounded] = math.inf
        moved[~unbounded] /= far[~unbounded]  # entries are at most one: no square overflows
        lengths = np.sqrt(np.square(moved).sum(axis=1, keepdims=True))
        return moved * np.minimum(far / radius, 1 / lengths)


def clipping_error(center: Array, radius: float) -> float:
    """Return an upper bound on the rounding error of a coordinate of :func:`clipped`.

    The bound is relative to the radius. Every coordinate is multiplied by 1 plus a few roundings of
    relative size EPS/2: one for the difference, two for quotients, one for the product, and d/2 + 2
    for the length. The rounding of the difference is scaled down with the row. All other roundings
    are relative to a result of at most one. Before clipping, numbers of other types were converted
    to floats, and a person's records to their mean. These two steps have relative errors up to EPS:
    at most 2 EPS (radius + ‖center‖) after clipping.
    """
    d = len(center)
    return EPS * (d + 18 + 2 * float(np.linalg.norm(center)) / radius)
