"""Codes of the columns of a duckdb relation, in SQL: its own tables, and files."""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from ..schema.schema import Attribute
from .csv import text_number, with_integers
from .frames import sql
from .persons import PERSON, duckdb_person
from .steps import duckdb_number, duckdb_steps
from .types import category_type, edges_in, width_of

_FEW = 16  # categories up to which comparisons are quicker than a join, of which many take long


def coded_duckdb(
    relation: Any,
    attributes: Sequence[Attribute],
    types: Mapping[str, nw.dtypes.DType],
    text: Sequence[str],
    person: str | None = None,
) -> nw.LazyFrame[Any]:
    """A left join with the codes of each attribute of more than few categories.

    Keys are bytes: text may compare in other ways there.
    """
    keys = [f"{_duckdb_key(a, types[a.name], text)} AS r{k}" for k, a in enumerate(attributes)]
    whose = []
    if person is not None:
        whose = [PERSON]
        keys.append(f"{duckdb_person(person, types[person])} AS {PERSON}")
    joined = relation.project(", ".join(keys))
    if text:
        joined = with_integers(
            joined,
            [
                f"r{k}"
                for k, a in enumerate(attributes)
                if category_type(a) is int and a.name in text
            ],
        )
    joined = _duckdb_bins(joined, attributes, types, text)
    nothing = relation.limit(0).aggregate(
        "count(*) AS n"
    )  # one row, on the connection of the relation
    codes = []
    for k, attribute in enumerate(attributes):
        if attribute.edges is not None:
            codes.append(f"r{k}")
            continue
        if attribute.clip is not None:
            codes.append(duckdb_steps(f"r{k}", attribute))
            continue
        words = [
            str(c).lower() if isinstance(c, bool) else str(c) for c in attribute.categories or ()
        ]
        listed = [word.encode().hex() for word in words]
        if len(listed) <= _FEW:
            tests = (f"WHEN unhex('{key}') THEN {cell}" for cell, key in enumerate(listed, 1))
            codes.append(f"CASE encode(r{k}) {' '.join(tests)} ELSE 0 END")
            continue
        cells = nothing.project(
            f"unhex(unnest(string_split('{','.join(listed)}', ','))) AS v{k}, "
            f"CAST(unnest(range(1, {len(words) + 1})) AS INTEGER) AS k{k}"
        )
        joined = joined.set_alias("records").join(
            cells.set_alias("cells"), f"encode(records.r{k}) = cells.v{k}", how="left"
        )
        codes.append(f"coalesce(k{k}, 0)")
    widths = [_WIDTHS[width_of(a)] for a in attributes]
    pairs = enumerate(zip(codes, widths, strict=True))
    return nw.from_native(
        joined.project(
            ", ".join([*(f"CAST({code} AS {width}) AS c{k}" for k, (code, width) in pairs), *whose])
        )
    )


_WIDTHS = {nw.Int8: "TINYINT", nw.Int16: "SMALLINT", nw.Int32: "INTEGER"}


def _duckdb_bins(
    relation: Any,
    attributes: Sequence[Attribute],
    types: Mapping[str, nw.dtypes.DType],
    text: Sequence[str],
) -> Any:
    """The relation with codes for numbers, found by binary search, one step of all columns at a
    time.
    """
    searched: dict[str, tuple[str, str, int]] = {}
    numbers = {f"r{k}" for k, a in enumerate(attributes) if a.edges is not None}
    others = [column for column in relation.columns if column not in numbers]
    starts, finals = [], []
    for k, attribute in enumerate(attributes):
        if attribute.edges is None:
            continue
        dtype = nw.Float64() if attribute.name in text else types[attribute.name]
        begin, last = edges_in(attribute.edges, dtype)
        kind = "UHUGEINT" if dtype == nw.UInt128 else "HUGEINT" if dtype.is_integer() else "DOUBLE"
        listed = (
            f"CAST(string_split('{','.join(map(str, begin))}', ',') AS {kind}[])"
            if begin
            else f"[]::{kind}[]"
        )
        searched[f"r{k}"] = (f"b{k}", listed, len(begin))
        value = f"TRY_CAST(r{k} AS {kind})"
        inside = "true" if dtype.is_integer() else f"isfinite({value})"
        starts += [
            f"CASE WHEN {inside} AND {value} <= CAST('{last}' AS {kind}) THEN {value} END AS r{k}",
            f"0 AS b{k}",
        ]
        finals.append(f"CASE WHEN r{k} IS NULL THEN 0 ELSE b{k} END AS r{k}")
    if not searched:
        return relation
    relation = relation.project(", ".join([*others, *starts]))
    steps = max(count for _, _, count in searched.values()).bit_length()
    for step in reversed(range(steps)):
        bins = [
            f"{value}, {bin} + CASE WHEN {value} >= list_extract({listed}, {bin} + {2**step}) "
            f"THEN {2**step} ELSE 0 END"
            f" AS {bin}"
            for value, (bin, listed, _) in searched.items()
        ]
        relation = relation.project(", ".join([*others, *bins]))
    return relation.project(", ".join([*others, *finals]))


def _duckdb_key(attribute: Attribute, dtype: nw.dtypes.DType, text: Sequence[str]) -> str:
    """SQL of the number that falls into a bin, or of the text of a category."""
    column, kind, written = sql(attribute.name), category_type(attribute), attribute.name in text
    if attribute.clip is not None:
        return duckdb_number(attribute.name, written)
    if attribute.edges is not None:
        return text_number(column) if written else column
    if written:
        # CSV knows text only: integers are read by value (3, 03 and 3.0 are 3), true and false in
        # any case
        return f"lower({column})" if kind is bool else column
    if dtype.is_float():
        return (
            f"CASE WHEN {column} = trunc({column}) THEN CAST(TRY_CAST({column} AS HUGEINT) AS "
            "VARCHAR) END"
        )
    if dtype == nw.Decimal and kind is int:
        return f"regexp_replace(CAST({column} AS VARCHAR), '[.]0+$', '')"
    return f"CAST({column} AS VARCHAR)"
