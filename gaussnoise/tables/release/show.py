"""What ``print`` shows of a table: its first cells."""

from collections.abc import Sequence

import numpy as np

from ..schema.schema import Category

_SHOWN = 20  # cells


def table_text(
    title: str,
    attributes: Sequence[str],
    labels: Sequence[Sequence[Category]],
    columns: Sequence[str],
    numbers: Sequence[Sequence[str]],
    closing: str,
    *,
    private: bool,
) -> str:
    """Cells in C order, one a line.

    Args:
        title: the first line.
        attributes: names.
        labels: of cells, along every axis.
        columns: names of the columns of numbers.
        numbers: their first cells, see :func:`first`, written out.
        closing: the last line.
        private: whether the numbers may be published.
    """
    shape = tuple(map(len, labels))
    cells = int(np.prod(shape))
    shown = min(cells, _SHOWN)
    where = np.unravel_index(np.arange(shown), shape) if shape else ()
    own = [[str(names[k]) for k in axis] for names, axis in zip(labels, where, strict=True)]
    lines = [title if private else f"NOT PRIVATE, a simulation: {title}"]
    rows = [[*attributes, *columns], *([*cell] for cell in zip(*own, *numbers, strict=True))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = zip(
            row, widths, (str.ljust,) * len(attributes) + (str.rjust,) * len(columns), strict=True
        )
        lines.append("  ".join(pad(text, width) for text, width, pad in padded).rstrip())
    if cells > shown:
        lines.append(f"… and {cells - shown} more")
    return "\n".join([*lines, closing])


def first(values: np.ndarray, digits: int) -> list[str]:
    """The first numbers, to so many digits."""
    return [f"{value:.{digits}g}" for value in np.ravel(values)[:_SHOWN]]
