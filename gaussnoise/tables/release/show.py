"""The text that ``print`` shows of a table: its first cells."""

import math
from collections.abc import Sequence

import numpy as np

from ...text import LARGEST, significant
from ..schema.schema import Category

_SHOWN = 20  # cells that are shown
_MOST_DECIMALS = 12
_SMALL = 0.0001  # p-values below it are printed as such


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


def pvalue_text(p: float) -> str:
    """Return a p-value with its sign.

    >>> pvalue_text(0.0312), pvalue_text(1e-9)
    ('= 0.031', '< 0.0001')
    """
    return f"< {_SMALL:.4f}" if p < _SMALL else f"= {p:.2g}"


def first(values: np.ndarray, digits: int) -> list[str]:
    """Return the first numbers with ``digits`` digits; dates unchanged, "none" for missing ones.

    Thousands are separated by commas, as on pages and in workbooks.
    """
    shown = np.ravel(values)[:_SHOWN]
    if shown.dtype.kind == "M":
        return ["none" if date is None else date.isoformat() for date in shown.tolist()]
    return [significant(value, digits) for value in shown.tolist()]


def rounded(values: np.ndarray, deviations: np.ndarray) -> list[str]:
    """Return the first numbers, to three digits of the least standard deviation among them.

    Numbers that are left with fewer than four digits of their own have four.

    >>> rounded(np.array([5394.697481, -1.2768302]), np.array([3.470459, 3.470459]))
    ['5,394.70', '-1.277']
    """
    known = np.ravel(deviations)[:_SHOWN]
    known = known[(known > 0) & np.isfinite(known)]
    if not len(known):
        return first(values, 8)
    places = min(max(2 - math.floor(math.log10(known.min())), 0), _MOST_DECIMALS)
    shown = np.ravel(values)[:_SHOWN].tolist()
    return [
        f"{x:,.{places}f}" if 10 ** (3 - places) <= abs(x) < LARGEST else significant(x, 4)
        for x in shown
    ]
