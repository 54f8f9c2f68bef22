"""Statistics of synthetic records compared with the release: means, deviations, quartiles."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...files.pickling import PickledByArguments
from ...layout import on_screen
from ..schema.schema import Attribute
from .noisy import AbstractRelease
from .quantiles import interpolated, quantiles, support
from .show import first, rows_text
from .sums import means
from .tidy import framed

if TYPE_CHECKING:
    import pyarrow as pa
    from narwhals.typing import EagerAllowed

Array = NDArray[np.float64]

_QUARTILES = (0.25, 0.5, 0.75)
_KNOWN = "low and high: the release's 95 % intervals; –: the release does not know"
ASSUMED = (
    "assumed: the release does not know this; the synthetic number is an assumption of the shape "
    "that the numbers were drawn from"
)


class Likeness(NamedTuple):
    """One statistic, of synthetic records and of the release from which they were drawn.

    Attributes:
        column: the attribute.
        statistic: "mean", "standard deviation", "quantile 0.25", "quantile 0.5" or "quantile 0.75".
        synthetic: the statistic of the synthetic records; None if no record has a value.
        release: the estimate of the same statistic from the release; None if it has none.
        low: lower bound of the release's 95 % interval; None if it has none.
        high: upper bound of this interval; None if it has none.
        assumed: whether the release cannot estimate the statistic. The number in ``synthetic`` then
            follows from the shape that :meth:`synthetic` assumes for clipped numbers.

    Numbers are floats. Dates are texts in ISO 8601.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [7, 33, 61] * 400})
    >>> schema = gn.Schema([gn.Attribute("age", edges=[0, 18, 40, 65])])
    >>> release = gn.plan(schema, 1, gn.zCDP(0.5)).release(people)
    >>> drawn = pa.table({"age": ["[0, 18)", "[18, 40)", "[40, 65]"] * 10})  # or synthetic(30)
    >>> found = release.likeness(drawn)[1]
    >>> print(found.column, found.statistic, found.synthetic, found.low <= 33 <= found.high)
    age quantile 0.5 29.0 True
    """

    column: str
    statistic: str
    synthetic: float | str | None
    release: float | str | None
    low: float | str | None
    high: float | str | None
    assumed: bool = False

    @property
    def is_inside(self) -> bool | None:
        """Whether the synthetic number is in the release's interval; None if either is missing."""
        value: Any = self.synthetic  # dates are texts, also in low and high
        ends: Any = self.low, self.high
        return None if None in (value, *ends) else ends[0] <= value <= ends[1]


@final
@dataclass(frozen=True, eq=False)
class LikenessTable(PickledByArguments, Sequence[Likeness]):
    """Statistics of synthetic records and of the release: a sequence of rows.

    Attributes:
        rows: one :class:`Likeness` for each statistic.
        backend: the library of :meth:`to_frame`.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [7, 33, 61] * 400})
    >>> schema = gn.Schema([gn.Attribute("age", edges=[0, 18, 40, 65])])
    >>> release = gn.plan(schema, 1, gn.zCDP(0.5)).release(people)
    >>> drawn = pa.table({"age": ["[0, 18)", "[18, 40)", "[40, 65]"] * 10})  # or synthetic(30)
    >>> found = release.likeness(drawn)
    >>> print(len(found), found.to_frame().column_names[:4])
    3 ['column', 'statistic', 'synthetic', 'release']
    """

    rows: tuple[Likeness, ...]
    backend: "EagerAllowed"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def to_frame(self) -> Any:
        """Return the rows as a dataframe of the library that the released records came in.

        If an attribute has dates, all numbers are texts, since a column has one type.
        """
        import pyarrow as pa

        values = [value for row in self.rows for value in row[2:6]]
        kind = pa.string() if any(isinstance(value, str) for value in values) else pa.float64()
        kinds = [pa.string(), pa.string(), *(kind,) * 4, pa.bool_()]
        columns = list(zip(*self.rows, strict=True)) or [()] * len(kinds)
        if kind == pa.string():
            texts = [[None if x is None else str(x) for x in column] for column in columns[2:6]]
            columns[2:6] = map(tuple, texts)
        arrays = [pa.array(list(own), kind) for own, kind in zip(columns, kinds, strict=True)]
        return framed(pa.table(arrays, names=list(Likeness._fields)), self.backend)

    def __str__(self) -> str:
        rows = [[row.column, row.statistic, *_texts(row)] for row in self.rows]
        title = "Synthetic records beside the release:"
        columns = ["synthetic", "release", "low", "high"]
        closing = [_KNOWN, ASSUMED if any(row.assumed for row in self.rows) else ""]
        said = rows_text(title, ["column", "statistic"], columns, rows, closing, private=True)
        return on_screen(said)


def likeness(release: AbstractRelease, records: Any) -> LikenessTable:
    """Return statistics of synthetic records beside those of the release.

    For a clipped number, the statistics are the mean, the standard deviation and the quartiles. The
    release estimates the standard deviation if the attribute has squares. It cannot estimate these
    quartiles: they follow from the shape that :meth:`synthetic` assumes. For an attribute with
    edges or integer categories, the statistics are the quartiles, computed from counts as by
    :meth:`quantiles`.

    Args:
        release: the release that the records were drawn from.
        records: the result of its :meth:`synthetic`.

    Returns:
        A :class:`LikenessTable`, which prints as a table.

    Raises:
        ParameterError: the records have other columns than this release draws.
    """
    import narwhals as nw

    table = nw.from_native(records, eager_only=True).to_arrow()
    known = {a.name: a for a in release.plan.schema.attributes}
    strange = [name for name in table.column_names if name not in known]
    if strange:
        raise ParameterError(
            f"likeness: expected the records of synthetic(), got a column {strange[0]!r:.80}"
        )
    rows = [
        row for name in table.column_names for row in _of_column(release, known[name], table[name])
    ]
    return LikenessTable(tuple(rows), release.backend)


def _texts(row: Likeness) -> list[str]:
    """Return the numbers of a row as texts: synthetic, released, low and high."""
    synthetic, release, low, high = map(_shown, row[2:6])
    return [synthetic, "assumed" if row.assumed else release, low, high]


def _shown(value: float | str | None) -> str:
    """Return a number or a date as text; "–" for None."""
    if value is None or isinstance(value, str):
        return value or "–"
    return first(np.array(value), 5)[0]


def _of_column(
    release: AbstractRelease, attribute: Attribute, column: "pa.ChunkedArray"
) -> Iterator[Likeness]:
    """Yield the statistics of one column of synthetic records, beside those of the release."""
    name = attribute.name
    marks = [f"quantile {p}" for p in _QUARTILES]
    if attribute.is_summed:
        drawn = column.drop_null().to_numpy()
        own = means(release, name)
        told, low, high = map(_plain, (own.estimate, *own.confidence_interval()))
        yield Likeness(name, "mean", _plain(drawn.mean()) if len(drawn) else None, told, low, high)
        deviation = _plain(drawn.std()) if len(drawn) else None
        told = _deviation(release, attribute)
        assumed = told is None and deviation is not None
        yield Likeness(name, "standard deviation", deviation, told, None, None, assumed)
        found = np.quantile(drawn, _QUARTILES) if len(drawn) else np.full(3, np.nan)
        for mark, value in zip(marks, found, strict=True):
            value = _plain(value)
            yield Likeness(name, mark, value, None, None, None, assumed=value is not None)
        return
    try:
        told = quantiles(release, name, _QUARTILES)
        ends = support(attribute)
    except ParameterError:  # no order, or planned for other queries than counts
        return
    drawn = {one["values"]: one["counts"] for one in column.value_counts().to_pylist()}
    cumulative = np.cumsum([drawn.get(label, 0) for label in attribute.labels[: len(ends.low)]])
    found = ends.shown(interpolated(cumulative.astype(np.float64), ends, _QUARTILES))
    values = (found, told.estimate, told.low, told.high)
    for mark, *row in zip(marks, *values, strict=True):
        drawn_at, told_at, low, high = map(_plain, row)
        yield Likeness(name, mark, drawn_at, told_at, low, high)


def _deviation(release: AbstractRelease, attribute: Attribute) -> float | None:
    """Return the released standard deviation of a clipped number; None if it cannot be computed."""
    low, high = attribute.ends
    if attribute.size - (attribute.other is not None) < 3:
        return None
    between, above = release[attribute.name].estimate[1:3] / means(release, attribute.name).counts
    with np.errstate(invalid="ignore"):  # noise may make the variance negative
        deviation = float((high - low) * np.sqrt(above - (between / 2 + above) ** 2))
    return deviation if math.isfinite(deviation) else None


def _plain(value: Any) -> float | str | None:
    """Return a number of numpy as a float, or a date as text; None for NaN, infinity and NaT."""
    value = np.asarray(value)
    if value.dtype.kind == "M":
        return None if np.isnat(value) else str(value)
    return float(value) if np.isfinite(value) else None
