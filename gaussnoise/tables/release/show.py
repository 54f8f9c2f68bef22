"""The text that ``print`` shows of a table: its first cells."""

from collections.abc import Sequence

import numpy as np

from ..schema.schema import Category

_SHOWN = 20  # cells that are shown


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
    """Return cells in C order as text, one a line.

    Args:
        title: the first line.
        attributes: names of attributes.
        labels: labels of cells, along every axis.
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
    rows = [[*cell] for cell in zip(*own, *numbers, strict=True)]
    more = f"… and {cells - shown} more" if cells > shown else ""
    return rows_text(title, attributes, columns, rows, [more, closing], private=private)


def rows_text(
    title: str,
    attributes: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    closing: Sequence[str],
    *,
    private: bool,
) -> str:
    """Return rows of labels and numbers in columns, under their names; no empty closing lines."""
    lines = [title if private else f"NOT PRIVATE, a simulation: {title}"]
    every = [[*attributes, *columns], *rows]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    for row in every:
        padded = zip(
            row, widths, (str.ljust,) * len(attributes) + (str.rjust,) * len(columns), strict=True
        )
        lines.append("  ".join(pad(text, width) for text, width, pad in padded).rstrip())
    return "\n".join([*lines, *filter(None, closing)])


def first(values: np.ndarray, digits: int) -> list[str]:
    """Return the first numbers with ``digits`` digits; dates unchanged, "none" for missing ones."""
    shown = np.ravel(values)[:_SHOWN]
    if shown.dtype.kind == "M":
        return ["none" if date is None else date.isoformat() for date in shown.tolist()]
    return [f"{value:.{digits}g}" for value in shown]
