"""The independent noisy measurements from which released tables are computed."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...solvers.tables.residuals import Subset, part_of, subsets_of
from .noisy import AbstractRelease

Array = NDArray[np.float64]


class Measurement(NamedTuple):
    """The noisy measurement of one set of attributes.

    The measurement is the part of the attributes' table that the margins of the table do not
    determine, plus noise. All measurements of a release are independent of each other.

    Attributes:
        attributes: the names of the attributes.
        estimate: the noisy part of the table, shape (sizes…), with sum zero along every axis.
        standard_deviation: σ of the noise ``N(0, σ² ⊗_i E_i)``, with a matrix E_i for each
            attribute i; 0 for an exact total. For an attribute that is planned for counts of its
            n_i categories, ``E_i = I − 11'/n_i``, the projection onto vectors whose sum is zero.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> [measurement.attributes for measurement in release.measurements()]
    [(), ('sex',), ('age',), ('sex', 'age')]
    """

    attributes: tuple[str, ...]
    estimate: Array
    standard_deviation: float


def measurements(release: AbstractRelease) -> Iterator[Measurement]:
    """Yield the independent noisy measurements from which all tables of a release are computed.

    Other inference engines need these measurements as input.
    """
    names, seen = release.plan.schema.names, set[Subset]()
    variances = release.covariance.variances
    for S in release.plan.tables.subsets:
        missing = [
            T
            for T in subsets_of(S)
            if T not in seen
            and (not T or T in release.query.multipliers or set(T) <= set(release.query.public))
        ]
        table = release.tables[S] if missing else None
        for T in missing:
            residual = (
                part_of(np.asarray(table), S, T)
                if T or release.public_rows is None
                else np.array(release.public_rows)
            )
            for axis, i in enumerate(T):
                residual = release.query.strategies[i].residual(residual, axis)
            deviation = math.sqrt(variances[T]) if T in release.query.multipliers else 0.0
            yield Measurement(tuple(names[i] for i in T), residual, deviation)
        seen.update(missing)
