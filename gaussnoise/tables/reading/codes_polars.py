"""Codes of the columns of polars, by its expressions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..schema.schema import Attribute
from .dates import with_numbers
from .frames import Frame, Lazy, type_name
from .persons import PERSON, People, people_of
from .steps import polars_steps
from .types import category_type, cells_in, edges_in, width_of
from .values import Form

if TYPE_CHECKING:
    import polars as pl

Codes = NDArray[np.signedinteger]


def coded_polars(
    frame: Frame,
    attributes: Sequence[Attribute],
    types: Mapping[str, nw.dtypes.DType],
    person: str | None,
) -> tuple[list[list[Codes]], People | None] | Lazy:
    """Return the codes and persons of a polars frame.

    With persons, the codes come to this process: windows in polars would hold all rows too.
    """
    import polars as pl

    read, own, types = with_numbers(frame.lazy(), attributes, types)
    codes = [_codes(a, types[a.name]).alias(f"c{k}") for k, a in enumerate(own)]
    persons = [] if person is None else [pl.col(person).alias(PERSON)]
    coded = read.to_native().select(*codes, *persons)
    if isinstance(frame, nw.LazyFrame) and person is None:
        return nw.from_native(coded)
    here = coded.collect()
    people = None
    if person is not None:
        people = people_of(nw.from_native(here[PERSON], series_only=True), Form.TYPED)
    return [[here[f"c{k}"].to_numpy() for k in range(len(codes))]], people


def _codes(attribute: Attribute, dtype: nw.dtypes.DType) -> "pl.Expr":
    import polars as pl

    if attribute.clip is not None:
        return polars_steps(attribute)
    column, width = pl.col(attribute.name), getattr(pl, width_of(attribute).__name__)
    if attribute.edges is not None:
        begin, last = edges_in(attribute.edges, dtype)
        own = getattr(pl, type_name(dtype)) if dtype.is_integer() else pl.Float64
        value = column if dtype.is_integer() else column.cast(pl.Float64)
        present = value.is_not_null()
        if not dtype.is_integer():
            present = value.is_not_nan() if attribute.has_infinite else value.is_finite()
        codes = pl.lit(pl.Series(begin, dtype=own)).search_sorted(value, side="right")
        return (
            pl.when(present & (value <= pl.lit(last, dtype=own)))
            .then(codes)
            .otherwise(0)
            .cast(width)
        )
    cells = cells_in(attribute, dtype)
    if not cells:
        return (column.is_null().cast(width) * 0).fill_null(0)  # one value per row
    if category_type(attribute) is str or dtype == nw.Decimal:  # a third faster than a join
        words = column.cast(pl.String).cast(pl.Enum(list(map(str, cells))), strict=False)
        return (words.to_physical().cast(width) + 1).fill_null(0)
    own = pl.Float64 if dtype.is_float() else getattr(pl, type_name(dtype))
    column = column.cast(own)  # narrow floats as doubles, so that categories are not rounded
    keys, codes = pl.Series(list(cells), dtype=own), pl.Series(list(cells.values()), dtype=width)
    return column.replace_strict(keys, codes, default=0, return_dtype=width)
