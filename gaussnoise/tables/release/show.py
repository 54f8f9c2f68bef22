"""The text of a table for ``print``: its first cells."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...layout import WIDTH
from ...text import LARGEST, NO_LIMIT, NO_NUMBER, has_interval, number_of, significant
from ..schema.schema import Category

_SHOWN = 20  # most cells in the text
_MOST_DECIMALS = 12
_NOTHING = "—"  # replaces each bound if there is no interval
_MISSING = "no number, or no end of its interval: a denominator may be zero"
_SMALL = 0.0001  # smaller p-values are printed as below it


def table_text(
    title: str,
    attributes: Sequence[str],
    labels: Sequence[Sequence[Category]],
    columns: Sequence[str],
    numbers: Sequence[Sequence[str]],
    closing: str,
    *,
    private: bool,
    headings: Sequence[str] = (),
) -> str:
    """Return the text of a table, with one line for each of its first cells in C order.

    Args:
        title: the first line.
        attributes: names of attributes.
        labels: labels of cells, along every axis.
        columns: names of the columns of numbers.
        numbers: for each column, the texts of its first cells, see :func:`first`.
        closing: the last line.
        private: whether the numbers may be published.
        headings: the names of attributes that readers see; used if they fit.
    """
    shape = tuple(map(len, labels))
    cells = int(np.prod(shape))
    shown = min(cells, _SHOWN)
    where = np.unravel_index(np.arange(shown), shape) if shape else ()
    own = [[str(names[k]) for k in axis] for names, axis in zip(labels, where, strict=True)]
    rows = [[*cell] for cell in zip(*own, *numbers, strict=True)]
    more = f"… and {cells - shown} more" if cells > shown else ""
    return rows_text(
        title, attributes, columns, rows, [more, closing], private=private, headings=headings
    )


def rows_text(
    title: str,
    attributes: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    closing: Sequence[str],
    *,
    private: bool,
    headings: Sequence[str] = (),
) -> str:
    """Return the text of a table: title, column names, rows, and closing lines that are not empty.

    ``headings`` replace the names of attributes if that fits a terminal.
    """
    lines = [title if private else f"NOT PRIVATE, a simulation: {title}"]
    names = headings or attributes
    every = [[*names, *columns], *rows]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    if headings and sum(widths) + 2 * len(widths) - 2 > WIDTH:
        every[0] = [*attributes, *columns]
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    pads = (str.ljust,) * len(attributes) + (str.rjust,) * len(columns)
    for row in every:
        padded = zip(row, widths, pads, strict=True)
        lines.append("  ".join(pad(text, width) for text, width, pad in padded).rstrip())
    return "\n".join([*lines, *filter(None, closing)])


def chi_squared_text(statistic: float, degrees: int, p: float) -> str:
    """Return a text of a χ² statistic with its degrees of freedom and p-value.

    >>> chi_squared_text(3.84, 1, 0.05)
    'chi-squared = 3.84, 1 degree of freedom, p = 0.05'
    """
    said = number_of(degrees, "degree of freedom", "degrees of freedom")
    return f"chi-squared = {significant(statistic, 4)}, {said}, p = {significant(p, 3)}"


def pvalue_text(p: float) -> str:
    """Return a p-value with "=" or "<".

    >>> pvalue_text(0.0312), pvalue_text(1e-9)
    ('= 0.031', '< 0.0001')
    """
    return f"< {_SMALL:.4f}" if p < _SMALL else f"= {p:.2g}"


def first(values: np.ndarray, digits: int, most: int = _SHOWN) -> list[str]:
    """Return the first ``most`` values as text: numbers have ``digits`` significant digits.

    Dates are written as dates, and missing numbers as words.

    Thousands are separated by commas, as on pages and in workbooks.
    """
    shown = np.ravel(values)[:most]
    if shown.dtype.kind == "M":
        return [NO_NUMBER if date is None else date.isoformat() for date in shown.tolist()]
    return [_words(value) or significant(value, digits) for value in shown.tolist()]


def deviations(values: np.ndarray, digits: int = 4, most: int = _SHOWN) -> list[str]:
    """Return the first standard deviations as text, like "± 3.5"; a dash stands for NaN."""
    texts = first(values, digits, most)
    return [_NOTHING if text == NO_NUMBER else f"± {text}" for text in texts]


def _words(value: float) -> str:
    """Return a word for a number that is infinite or NaN; "" for other numbers."""
    return NO_NUMBER if math.isnan(value) else NO_LIMIT if math.isinf(value) else ""


def ends_text(
    estimate: np.ndarray, ends: Sequence[np.ndarray], write: Callable[[np.ndarray], list[str]]
) -> list[list[str]]:
    """Return [low bounds, high bounds] of the cells that ``write`` shows; dashes if unknown."""
    low, high = (write(end) for end in ends)
    known = np.ravel(has_interval(estimate, *ends))[: len(low)].tolist()

    def said(text: str, has_any: bool) -> str:
        return _NOTHING if not has_any else NO_LIMIT if text == NO_NUMBER else text

    return [list(map(said, low, known)), list(map(said, high, known))]


def missing_text(estimate: np.ndarray, ends: Sequence[np.ndarray]) -> list[str]:
    """Return a list with one line that explains missing numbers and bounds; [] if all are there."""
    missing = any(not np.isfinite(values).all() for values in (estimate, *ends))
    return [_MISSING] * missing


def rounded(values: np.ndarray, deviations: np.ndarray) -> list[str]:
    """Return the first numbers as text, rounded to decimals that suit their noise.

    With these decimals, the smallest standard deviation has three digits.

    Numbers that would have fewer than four digits get four.

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
        f"{x:,.{places}f}"
        if 10 ** (3 - places) <= abs(x) < LARGEST
        else _words(x) or significant(x, 4)
        for x in shown
    ]
