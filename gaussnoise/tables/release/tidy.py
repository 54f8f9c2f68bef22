"""Tables as tidy columns: one row per cell, in C order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema.schema import Category

NUMBERS = ("estimate", "standard_deviation", "low", "high")
LEVEL = 0.95  # of the intervals from low to high, where nobody asks for another


def interval_record() -> dict[str, object]:
    """What the columns low and high of files are."""
    return {"columns": ["low", "high"], "level": LEVEL, "simultaneous": False}


def level_text(level: float) -> str:
    """Like ``95 %``."""
    return f"{100 * level:g} %"


def arrow_columns(
    attributes: Sequence[str],
    labels: Sequence[Sequence[Category]],
    cells: slice,
    numbers: Mapping[str, NDArray[Any]],
) -> Any:
    """Some cells of a table as an arrow table; ``numbers`` are theirs alone."""
    import pyarrow as pa

    shape = tuple(map(len, labels))
    where = np.unravel_index(np.arange(cells.start, cells.stop), shape) if shape else ()
    own = [pa.array(names).take(pa.array(axis)) for names, axis in zip(labels, where, strict=True)]
    return pa.table(
        [*own, *(column.reshape(-1) for column in numbers.values())], [*attributes, *numbers]
    )
