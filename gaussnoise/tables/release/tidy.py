"""Tables as tidy columns: one row per cell, in C order."""

import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import NotAvailableError
from ..schema.schema import Category

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from narwhals.typing import EagerAllowed

NUMBERS = ("estimate", "standard_deviation", "low", "high")
LEVEL = 0.95  # default level of the intervals from low to high


def interval_record(level: float = LEVEL) -> dict[str, object]:
    """Return the meaning of the columns low and high in files and frames."""
    return {"columns": ["low", "high"], "level": level, "simultaneous": False}


def with_level(rows: "pa.Table", level: float, private: bool) -> "pa.Table":
    """Return an arrow table with the level of its intervals in metadata, which Parquet keeps."""
    record = json.dumps({"intervals": interval_record(level), "private": private})
    return rows.replace_schema_metadata({"gaussnoise": record})


def with_times(
    rows: "pa.Table", place: int, attributes: Sequence[str], times: Sequence[str]
) -> "pa.Table":
    """Return an arrow table with a column of the times of its ticks, if known, at index ``place``.

    The rows of the table are sorted by tick, and each tick has the same number of rows.
    """
    import pyarrow as pa

    if not times:
        return rows
    column = pa.array(times).take(pa.array(np.arange(rows.num_rows) * len(times) // rows.num_rows))
    return rows.add_column(place, free_name("time", attributes), column)


def free_name(wanted: str, taken: Sequence[str]) -> str:
    """Return the wanted column name, with underscores appended until it is not in ``taken``."""
    while wanted in taken:
        wanted += "_"
    return wanted


def framed(rows: "pa.Table", backend: "EagerAllowed") -> Any:
    """Return an arrow table as a dataframe of the library ``backend``, like pandas or polars.

    The level of intervals is in ``attrs``. Polars has no ``attrs``; there, it is in a last column
    ``level``.
    """
    import narwhals as nw

    frame = nw.from_arrow(rows, backend=backend).to_native()
    if isinstance(getattr(frame, "attrs", None), dict):
        frame.attrs.update(_recorded(rows))
    elif not isinstance(frame, type(rows)) and "intervals" in (record := _recorded(rows)):
        name = next(n for k in count() if (n := "level" + "_" * k) not in rows.column_names)
        level = nw.lit(record["intervals"]["level"]).alias(name)
        frame = nw.from_native(frame).with_columns(level).to_native()
    return frame


def as_pandas(rows: "pa.Table") -> "pd.DataFrame":
    """Return an arrow table as a pandas frame; ``attrs`` hold the level of its intervals.

    Raises:
        NotAvailableError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise NotAvailableError(
            "to_pandas: pandas is not installed; hint: pip install pandas, or to_arrow()"
        ) from None
    columns = {name: rows[name].to_pandas() for name in rows.column_names}
    frame = pd.DataFrame(columns)
    frame.attrs.update(_recorded(rows))
    return frame


def _recorded(rows: "pa.Table") -> dict[str, Any]:
    """Return the record of intervals that :func:`with_level` added to an arrow table's metadata."""
    record = (rows.schema.metadata or {}).get(b"gaussnoise")
    return {} if record is None else json.loads(record)


def level_text(level: float) -> str:
    """Return a level in words, like ``95 %``."""
    return f"{100 * level:g} %"


def arrow_columns(
    attributes: Sequence[str],
    labels: Sequence[Sequence[Category]],
    cells: slice,
    numbers: Mapping[str, NDArray[Any]],
) -> "pa.Table":
    """Return some cells of a table, with their labels, as an arrow table.

    ``numbers`` are {column: numbers of these cells}.
    """
    import pyarrow as pa

    shape = tuple(map(len, labels))
    where = np.unravel_index(np.arange(cells.start, cells.stop), shape) if shape else ()
    own = [pa.array(names).take(pa.array(axis)) for names, axis in zip(labels, where, strict=True)]
    return pa.table(
        [*own, *(column.reshape(-1) for column in numbers.values())], [*attributes, *numbers]
    )
