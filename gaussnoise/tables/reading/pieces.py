"""A table in batches of bounded size, in any engine."""

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw

from .frames import Frame, Lazy

if TYPE_CHECKING:
    import pyarrow as pa

_CELLS = 2**20  # most cells in a batch
_FEWEST_ROWS = 64


def pieces(frame: Frame, names: Sequence[str]) -> Iterator[nw.DataFrame[Any]]:
    """Yield these columns of all rows of a frame, in batches of rows, in one pass.

    Spark's rows come to the driver one by one; an engine without batches returns all rows at once.
    """
    rows = max(_FEWEST_ROWS, _CELLS // max(1, len(names)))
    chosen = frame.select(*names)
    for part in [chosen] if isinstance(chosen, nw.DataFrame) else _parts(chosen, rows):
        for start in range(0, len(part), rows):
            yield part[start : start + rows]


def _parts(frame: Lazy, rows: int) -> Iterator[nw.DataFrame[Any]]:
    """Yield the rows of a lazy frame, in the batches in which its engine computes them."""
    engine, native = frame.implementation, frame.to_native()
    parts = None
    if engine == nw.Implementation.DUCKDB:
        # older versions of duckdb have only the second name
        parts = (getattr(native, "to_arrow_reader", None) or native.fetch_arrow_reader)(rows)
    elif engine.is_spark_like() and hasattr(native, "toLocalIterator"):
        parts = _of_rows(native.toLocalIterator(), frame.collect_schema().names(), rows)
    elif engine == nw.Implementation.DASK:
        for part in native.to_delayed():
            yield nw.from_native(part.compute(), eager_only=True)
        return
    if parts is None:
        yield frame.collect("polars" if engine == nw.Implementation.POLARS else "pyarrow")
        return
    import pyarrow as pa

    for part in parts:
        table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
        yield nw.from_native(table, eager_only=True)


def _of_rows(
    found: Iterator[Sequence[object]], names: Sequence[str], rows: int
) -> "Iterator[pa.Table]":
    """Yield arrow tables of at most ``rows`` rows each, from an iterator over rows."""
    import pyarrow as pa

    while some := list(itertools.islice(found, rows)):
        columns = zip(*some, strict=True)
        yield pa.Table.from_arrays([pa.array(values) for values in columns], names=list(names))
