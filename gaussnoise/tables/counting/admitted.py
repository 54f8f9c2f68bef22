"""Selection of the rows of those persons whom an admission rule accepts, in any engine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..reading.persons import PERSON, People
from .admission import DIGEST, AbstractAdmission, digests_of

if TYPE_CHECKING:
    import dask.dataframe
    from pyspark.sql import DataFrame

_COLUMN = "digest"
_NAMED = b"text "  # prefix of names that are text, as in :mod:`..reading.persons`


def admitted_arrays(
    columns: Sequence[NDArray], people: People, admission: AbstractAdmission
) -> tuple[list[NDArray], People]:
    """Return the rows of persons who may be counted, as columns, and the person of each row.

    All given rows must have a person.
    """
    present = np.unique(people.index)
    mask = np.zeros(int(present.max(initial=-1)) + 1, dtype=bool)
    mask[present] = admission.admitted(digests_of(people.names(present), admission.key))
    kept = mask[people.index]
    return [column[kept] for column in columns], People(people.index[kept], people.names)


def admitted_dask(
    frame: "dask.dataframe.DataFrame", admission: AbstractAdmission
) -> "dask.dataframe.DataFrame":
    """Return the rows of a dask dataframe whose persons may be counted."""
    names = [str(name) for name in frame[PERSON].unique().compute()]
    admitted = admission.admitted(digests_of([*map(bytes.fromhex, names)], admission.key))
    return frame[frame[PERSON].isin([n for n, own in zip(names, admitted, strict=True) if own])]


def admitted_spark(frame: "DataFrame", admission: AbstractAdmission) -> "DataFrame":
    """Return the rows of a Spark dataframe whose persons may be counted.

    Only hashes of persons leave Spark.
    """
    from pyspark.sql import functions

    begin = functions.lit(admission.key + _NAMED)
    hashed = functions.unhex(functions.sha2(functions.concat(begin, functions.col(PERSON)), 256))
    marked = frame.withColumn(_COLUMN, functions.substring(hashed, 1, DIGEST.itemsize))
    found = nw.from_native(marked.select(_COLUMN).distinct()).collect("pyarrow").to_native()
    digests = np.array(found[_COLUMN].to_pylist(), dtype=DIGEST)
    admitted = digests[admission.admitted(digests)].tolist()  # numpy drops zeros at the ends
    rows = [(bytearray(own.ljust(DIGEST.itemsize, b"\0")),) for own in admitted]
    known = frame.sparkSession.createDataFrame(rows, f"{_COLUMN} binary")
    return marked.join(known, _COLUMN, "left_semi").drop(_COLUMN)
