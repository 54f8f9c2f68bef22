"""Codes of the values of columns in Spark, ibis and other lazy engines, as expressions."""

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence

import narwhals as nw

from ..schema.schema import Attribute, Category
from .frames import Lazy
from .persons import PERSON, spark_person
from .steps import narwhals_steps, not_nan, with_finite
from .types import WORDS, cells_in, edges_in, width_of
from .values import bins_of_codes

# more cells are joined as a table in the user's database; fewer are compared one by one
_MOST_COMPARISONS = 100


def coded_lazily(
    frame: Lazy,
    attributes: Sequence[Attribute],
    types: Mapping[str, nw.dtypes.DType],
    person: str | None,
    kept: Sequence[str] = (),
) -> Lazy:
    """Return a frame with the codes of the attributes' values, as columns named c0, c1 and so on.

    This is for Spark, ibis and any other lazy engine of narwhals. A code is 1 + the index of the
    value's category or bin, or 0. Expressions find the codes of few categories or bins, and joins
    with small tables those of many. The columns ``kept`` become x0, x1, … unchanged.
    """
    more = [] if person is None else [nw.col(person).alias(PERSON)]
    more += [nw.col(name).alias(f"x{k}") for k, name in enumerate(kept)]
    frame = frame.select(*(nw.col(a.name).alias(f"r{k}") for k, a in enumerate(attributes)), *more)
    if person is not None:
        frame = nw.from_native(spark_person(frame.to_native(), types[person]))
    frame = _as_bytes(frame, [f"r{k}" for k, a in enumerate(attributes) if types[a.name] in WORDS])
    codes = []
    for k, attribute in enumerate(attributes):
        dtype, column = types[attribute.name], nw.col(f"r{k}")
        if attribute.is_summed:
            frame = with_finite(frame, k)
            code = narwhals_steps(k, attribute)
        elif attribute.edges is not None:
            frame, code = _joined_bins(frame, attribute, dtype, k)
        else:
            cells: Mapping[Category | float, int] = cells_in(attribute, dtype)
            if _in_hex(frame) and dtype in WORDS:
                cells = {str(c).encode().hex().upper(): cell for c, cell in cells.items()}
            elif dtype in (nw.Categorical, nw.Enum, nw.Decimal):
                frame = frame.with_columns(column.cast(nw.String))
            elif dtype.is_float():  # categories rounded to narrow floats would equal other values
                frame = frame.with_columns(column.cast(nw.Float64))
            many = len(cells) > _MOST_COMPARISONS
            keyed = (
                _small_table(frame, {f"v{k}": list(cells), f"k{k}": list(cells.values())})
                if many
                else None
            )
            if keyed is None:
                code = _compare(column, cells, dtype)
            else:
                frame = frame.join(keyed, left_on=f"r{k}", right_on=f"v{k}", how="left")
                code = nw.col(f"k{k}").fill_null(0)
        if (bins := bins_of_codes(attribute)) is not None:
            frame, own = _joined_bins(frame, bins, dtype, k)
            code = nw.when(own % 2 == 1).then(nw.lit(0)).otherwise(code)
        codes.append(code.cast(width_of(attribute)).alias(f"c{k}"))
    also = [*([] if person is None else [PERSON]), *(f"x{k}" for k in range(len(kept)))]
    return frame.select(*codes, *also)


def _in_hex(frame: Lazy) -> bool:
    """Return whether text is compared as hexadecimal digits: ibis needs this for duckdb."""
    native = frame.to_native()
    return frame.implementation == nw.Implementation.IBIS and native.get_backend().name == "duckdb"


def _as_bytes(frame: Lazy, columns: Sequence[str]) -> Lazy:
    """Return the frame with its text columns changed so that equal text means equal bytes."""
    # otherwise a collation could make different texts equal
    native = frame.to_native()
    if _in_hex(frame):
        import ibis

        @ibis.udf.scalar.builtin(signature=(("string",), "string"))
        def hex(x): ...  # pyright: ignore[reportMissingParameterType, reportUnusedParameter]

        return nw.from_native(native.mutate(**{c: hex(native[c].cast("string")) for c in columns}))
    for column in columns if frame.implementation.is_spark_like() else ():
        if "collate" in native.schema[column].dataType.simpleString():
            from pyspark.sql import functions

            native = native.withColumn(column, functions.collate(column, "UTF8_BINARY"))
    return nw.from_native(native)


def _joined_bins(
    frame: Lazy, attribute: Attribute, dtype: nw.dtypes.DType, k: int
) -> tuple[Lazy, nw.Expr]:
    """Return the frame, perhaps with helper columns, and the expression for the codes of bins."""
    # a code is 1 + the index of the bin of the number in r{k}, or 0 outside all bins
    begin, last = edges_in(attribute.edges or (), dtype)
    value = nw.col(f"r{k}") if dtype.is_integer() else nw.col(f"r{k}").cast(nw.Float64)
    present = ~value.is_null()
    if not dtype.is_integer():
        frame = with_finite(frame, k)
        present = not_nan(k) if attribute.has_infinite else nw.col(f"f{k}")

    def search(bounds: Sequence[float], least: int, most: int) -> nw.Expr:
        """Return an expression for the number of ``bounds`` <= the value, ``least`` to ``most``."""
        if least == most:
            return nw.lit(least)
        middle = (least + most + 1) // 2
        upper, lower = search(bounds, middle, most), search(bounds, least, middle - 1)
        bound = _literal(bounds[middle - 1], dtype)
        return nw.when(value >= bound).then(upper).otherwise(lower)

    # of many bins, a search first finds a block; then the edges of that block are joined
    size = math.isqrt(len(begin)) + 1
    blocks = [begin[start : start + size] for start in range(0, len(begin), size)]
    rows = [[*block, *[None] * (size - len(block))] for block in blocks]
    columns = {f"v{k}": list(range(1, len(rows) + 1))}
    columns |= {f"e{k}_{j}": [row[j] for row in rows] for j in range(1, size)}
    keyed = _small_table(frame, columns) if len(begin) > _MOST_COMPARISONS else None
    if keyed is None:
        code = search(begin, 0, len(begin))
    else:
        firsts = [block[0] for block in blocks]
        frame = frame.with_columns(search(firsts, 0, len(firsts)).cast(nw.Int64).alias(f"b{k}"))
        frame = frame.join(keyed, left_on=f"b{k}", right_on=f"v{k}", how="left")
        reached = [
            (value >= nw.col(f"e{k}_{j}")).fill_null(False).cast(nw.Int32) for j in range(1, size)
        ]
        before = (nw.col(f"b{k}") - 1) * size + 1
        code = nw.when(nw.col(f"b{k}") > 0).then(before + _sum(reached)).otherwise(nw.lit(0))
    return frame, nw.when(present & (value <= _literal(last, dtype))).then(code).otherwise(
        nw.lit(0)
    ).fill_null(0)


def _small_table(
    frame: Lazy, columns: Mapping[str, Sequence[Category | float | None]]
) -> Lazy | None:
    """Return these columns as a frame of the engine; None if it takes no table from Python."""
    if frame.implementation == nw.Implementation.IBIS:
        import ibis
        import pyarrow as pa

        return nw.from_native(ibis.memtable(pa.table(columns)))
    if frame.implementation in (nw.Implementation.PYSPARK, nw.Implementation.PYSPARK_CONNECT):
        from pyspark.sql import functions

        kinds = {int: "long", float: "double", str: "string", bool: "boolean"}
        types = ", ".join(f"{name} {kinds[type(values[0])]}" for name, values in columns.items())
        native = frame.to_native().sparkSession.createDataFrame(
            list(zip(*columns.values(), strict=True)), types
        )
        return nw.from_native(functions.broadcast(native))
    return None


def _literal(value: Category | float, dtype: nw.dtypes.DType) -> Category | float | nw.Expr:
    """Return a value in a form that can be compared with a column of this type."""
    # ibis takes plain integers as signed
    return nw.lit(value, dtype) if dtype == nw.UInt64 else value


def _compare(
    column: nw.Expr, cells: Mapping[Category | float, int], dtype: nw.dtypes.DType
) -> nw.Expr:
    """Return an expression for the codes of categories, with one comparison for each category."""
    # a column of zeros, which has one value per row even if no category is possible
    nothing = column.is_null().cast(nw.Int32) * 0
    return _sum(
        [
            nothing,
            *(
                (column == _literal(c, dtype)).fill_null(False).cast(nw.Int32) * k
                for c, k in cells.items()
            ),
        ]
    )


def _sum(terms: list[nw.Expr]) -> nw.Expr:
    return balanced(operator.add, terms)


def balanced(combine: Callable[[nw.Expr, nw.Expr], nw.Expr], terms: list[nw.Expr]) -> nw.Expr:
    """Return all terms combined by ``combine``, as a balanced tree of operations.

    Engines limit how deep operations are nested.
    """
    while len(terms) > 1:
        terms = [functools.reduce(combine, terms[k : k + 2]) for k in range(0, len(terms), 2)]
    return terms[0]
