"""Fuzzing: schemas, tables, files and command lines that nobody would write, with a value planted
in them.
"""

import contextlib
import csv
import datetime
import decimal
import io
import itertools
import math
import os
import tempfile
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import audit_kit as kit
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import strategies as st

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import DataError
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.reading.values import Form, confused, finder


@dataclass(frozen=True)
class Outcome:
    """What became of one input."""

    answer: str  # "released", "unbuildable", or the name of the exception
    typed: bool
    valid: bool
    leaks: tuple[str, ...]


def check(outcome):
    assert outcome.typed, outcome
    assert outcome.valid, outcome
    assert not outcome.leaks, outcome


# Inputs.

NAMES = ["a", "b", "größe", "a b", "x.y", "[red]", 'sel"ect', "'", "c0", "n", "😀"]
WORDS = [
    "x",
    "y",
    "X",
    " x",
    "",
    "NA",
    "null",
    "nan",
    "1",
    "1.0",
    "true",
    "ü",
    "a,b",
    'say "hi"',
    "l\n",
    "\t",
    "'",
]
ODD_WORDS = ["\x00", "\x1b[31m", "\ud800", "\u202e", "\ufeff", "x" * 3000, "\r", "=1+1", "\\N"]
INTEGERS = [0, 1, -1, 2, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 10**30]
NUMBERS = [0.0, -0.0, 0.5, 1.0, 2.0, 1e12, -1e12, 1e308, 5e-324, 1e12 + 0.5]
STRANGE = [math.nan, math.inf, -math.inf, None]
PLANTED = [kit.CANARY, kit.NUMBER, float(kit.NUMBER), f"{kit.CANARY}\n{kit.CANARY}", -kit.NUMBER]
OBJECTS = [
    decimal.Decimal(kit.NUMBER),
    decimal.Decimal("NaN"),
    datetime.date(2020, 1, 2),
    datetime.datetime(2020, 1, 2, 3),
    datetime.timedelta(days=kit.NUMBER // 10**6),
    kit.CANARY.encode(),
    [1, [kit.CANARY]],
    [kit.CANARY],
    {kit.CANARY: kit.NUMBER},
    (1, kit.CANARY),
    complex(1, kit.NUMBER),
]


@st.composite
def attributes(draw, name):
    kind = draw(st.sampled_from(["text", "int", "bool", "edges"]))
    other = draw(st.sampled_from([None, "rest"]))
    if kind == "edges":
        edges = draw(
            st.lists(
                st.sampled_from([-math.inf, -1e12, -1, 0, 0.5, 1, 2, 1e12, math.inf]),
                min_size=2,
                unique=True,
            )
        )
        return gn.Attribute(name, edges=sorted(edges), other=other)
    pool = {"text": WORDS, "int": INTEGERS, "bool": [True, False]}[kind]
    return gn.Attribute(
        name,
        draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4, unique=True)),
        other=other,
    )


@st.composite
def columns(draw, attribute, rows):
    """Mostly good values, or a column of another kind, or anything at all."""
    if attribute.categories is not None:
        good = list(attribute.categories)
    else:
        ends = [e for e in attribute.edges if math.isfinite(e)] or [0.0]
        good = [float(e) for e in ends] + [(a + b) / 2 for a, b in itertools.pairwise(ends)]
    pools = {
        "good": good,
        "good and strange": [*good, *STRANGE],
        "good and planted": [*good, *PLANTED],
        "text": [*WORDS, *ODD_WORDS, kit.CANARY, None],
        "integers": [*INTEGERS, kit.NUMBER, None],
        "numbers": [*NUMBERS, *STRANGE, float(kit.NUMBER)],
        "booleans": [True, False, None],
        "objects": OBJECTS,
        "mixed": [*good, *WORDS, *INTEGERS, *NUMBERS, *STRANGE, *PLANTED, *OBJECTS],
    }
    pool = pools[draw(st.sampled_from(["good"] * 6 + list(pools)))]
    if draw(st.integers(0, 3)) == 0:
        pool = [draw(st.sampled_from(pool))]
    return draw(st.lists(st.sampled_from(pool), min_size=rows, max_size=rows))


@dataclass(frozen=True)
class Problem:
    schema: gn.Schema
    columns: list[tuple[str, list]]
    neighbors: str
    rows_per_person: int
    way: int


@st.composite
def problems(draw):
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    schema = gn.Schema([draw(attributes(name)) for name in names])
    rows = draw(st.sampled_from([0, 1, 2, 5, 30]))
    found = [(a.name, draw(columns(a, rows))) for a in schema.attributes]
    # a column that nobody asked for, twice the same, or one too few
    change = draw(st.sampled_from(["none"] * 6 + ["extra", "twice", "missing", "ragged"]))
    if change == "extra":
        found.append((kit.CANARY, [kit.CANARY] * rows))
    elif change == "twice":
        found.append((found[0][0], [kit.CANARY] * rows))
    elif change == "missing":
        found[0] = ("other", found[0][1])
    elif change == "ragged":
        found[0] = (found[0][0], [*found[0][1], kit.CANARY])
    return Problem(
        schema,
        found,
        draw(st.sampled_from(["add-remove", "replace"])),
        draw(st.sampled_from([1, 1, 3])),
        draw(st.integers(0, len(names))),
    )


def _objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def as_pandas(problem, _):
    frame = pd.concat([pd.Series(values, dtype=object) for _, values in problem.columns], axis=1)
    frame.columns = [name for name, _ in problem.columns]
    return frame


def as_inferred_pandas(problem, _):
    return as_pandas(problem, _).infer_objects()


def as_polars(problem, _):
    return pl.DataFrame([pl.Series(name, values, strict=False) for name, values in problem.columns])


def as_lazy_polars(problem, _):
    return as_polars(problem, _).lazy()


def as_pyarrow(problem, _):
    return pa.table(
        [pa.array(values) for _, values in problem.columns],
        names=[name for name, _ in problem.columns],
    )


def as_duckdb(problem, folder):
    import duckdb

    return duckdb.from_arrow(as_pyarrow(problem, folder))


def as_ibis(problem, folder):
    import ibis

    return ibis.memtable(as_pyarrow(problem, folder))


def as_dask(problem, folder):
    import dask.dataframe

    return dask.dataframe.from_pandas(as_inferred_pandas(problem, folder), npartitions=2)


def as_parquet(problem, folder):
    pyarrow.parquet.write_table(as_pyarrow(problem, folder), folder / "t.parquet")
    return folder / "t.parquet"


def as_csv(problem, folder):
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([name for name, _ in problem.columns])
    longest = max(len(values) for _, values in problem.columns)
    for k in range(longest):
        writer.writerow([values[k] for _, values in problem.columns if k < len(values)])
    (folder / "t.csv").write_bytes(text.getvalue().encode(errors="surrogatepass"))
    return folder / "t.csv"


BUILDERS = {
    "pandas objects": as_pandas,
    "pandas": as_inferred_pandas,
    "polars": as_polars,
    "lazy polars": as_lazy_polars,
    "pyarrow": as_pyarrow,
    "duckdb": as_duckdb,
    "ibis": as_ibis,
    "dask": as_dask,
    "csv": as_csv,
    "parquet": as_parquet,
}


@st.composite
def raw_files(draw):
    """Bytes that look like CSV now and then."""
    schema = gn.Schema(
        [
            gn.Attribute("a", ["x", "y"], other=draw(st.sampled_from([None, "o"]))),
            gn.Attribute("b", [1, 2]),
        ]
    )
    pieces = [
        "a,b\n",
        "x,1\n",
        "y,2\n",
        "x",
        ",",
        "\n",
        "\r\n",
        '"',
        kit.CANARY,
        "\ufeff",
        "#",
        "a\tb\n",
        "\0",
        ";",
        " ",
    ]
    middle = draw(st.lists(st.sampled_from(pieces), max_size=12))
    start = draw(st.sampled_from(["a,b\n", "a,b\r\n", '"a","b"\n', ""]))
    content = (start + "".join(middle)).encode()
    return schema, content + draw(st.sampled_from([b"", b"", b"\xff", b"\xed\xa0\x80", b"x,1"]))


def toml(value):
    """A TOML value, numbers that are not finite and dates included."""
    if isinstance(value, bool | float):
        return str(value).lower()
    if isinstance(value, int | datetime.date):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items()) + "}"
    escaped = "".join(
        c if c not in '"\\' and c.isprintable() and c.isascii() else f"\\U{ord(c):08x}"
        for c in value
    )
    return f'"{escaped}"'


TEXTS = st.sampled_from(
    [*NAMES, *WORDS, "\x00", "\u202e", "\ufeff", "estimate", "low", "x" * 3000, "[0, 1)"]
)
ENDS = [
    -math.inf,
    -1e308,
    -0.0,
    0,
    0.0,
    5e-324,
    0.1,
    1,
    2,
    2**53 + 1,
    2**63,
    10**400,
    1e308,
    math.inf,
    math.nan,
]
DAY = datetime.date(2020, 1, 2)
SCALARS = st.one_of(
    TEXTS, st.sampled_from([*INTEGERS, *ENDS, True, False, DAY]), st.integers(), st.floats()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=6
)
POOLS = (TEXTS, st.sampled_from(INTEGERS), st.booleans())
LISTS = {
    "categories": st.one_of(*(st.lists(pool, max_size=5) for pool in POOLS)),
    "edges": st.lists(st.sampled_from(ENDS), max_size=5) | st.just([-math.inf, 0, 1.5, 10**18]),
    "other": TEXTS,
}
ENTRIES = st.one_of(
    st.sampled_from(["categories", "edges"]).flatmap(
        lambda key: st.fixed_dictionaries({key: LISTS[key]})
    ),
    st.fixed_dictionaries({}, optional=LISTS),
    st.dictionaries(st.sampled_from([*LISTS, "label"]), VALUES, max_size=3),
)


@st.composite
def schema_texts(draw):
    """TOML of a schema, of anything else, torn, or no TOML at all."""
    kind = draw(st.sampled_from(["valid", "entries", "entries", "torn", "anything", "text"]))
    if kind == "text":
        return draw(st.text(max_size=80)) + draw(
            st.text("[]{}.=,#\"'\\\n\r\t 019aexn-+_:TZ", max_size=40)
        )
    if kind == "anything":
        return "\n".join(
            f"{toml(key)} = {toml(value)}"
            for key, value in draw(st.dictionaries(TEXTS, VALUES)).items()
        )
    if kind == "entries":
        entries = draw(st.lists(st.tuples(TEXTS, ENTRIES), max_size=3))
        root = draw(st.sampled_from(["attributes"] * 6 + ["attribute", "attributes.a"]))
        return "\n".join(
            f"[{root}.{toml(name)}]\n"
            + "".join(f"{key} = {toml(value)}\n" for key, value in entry.items())
            for name, entry in entries
        )
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    text = gn.Schema([draw(attributes(name)) for name in names]).to_toml()
    for _ in range(draw(st.integers(1, 3)) if kind == "torn" else 0):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        piece = draw(
            st.sampled_from(["", text[start:end], *'[]"=\n#.', "nan", "1e999", "\ufeff", "\0"])
        )
        text = text[:start] + piece + text[draw(st.sampled_from([start, end])) :]
    return text


# Asking.


def _valid(release, folder):
    """Finite estimates with their standard deviations, within the budget; complete on disk."""
    for marginal in release:
        table = release[marginal]
        if not (np.isfinite(table.estimate).all() and (table.standard_deviation >= 0).all()):
            return False
    complete = folder is None or (folder / "release.json").exists()
    return complete and release.private and release.rho_charged <= release.plan.rho


def _ask(call, secret_free, folder=None):
    """The outcome of a call: its result or error, what was said, and what lies in ``folder``."""
    answer, typed, valid, texts = "released", True, True, []
    with kit.listening() as heard:
        try:
            valid = call()
        except gn.GaussNoiseError as error:
            answer = type(error).__name__
            texts.append(kit.said(error))
        except BaseException as error:  # panics of Rust libraries are no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            answer, typed = type(error).__name__, False
            texts.append(kit.said(error))
    texts.append(heard.text)
    if folder is not None and folder.exists():
        texts.append(kit.written(folder))
    return Outcome(answer, typed, valid, tuple(kit.leaks(*texts)) if secret_free else ())


UNBUILDABLE = Outcome("unbuildable", True, True, ())


def _build(build, problem, folder):
    """The table, or None where the library that is to hold it does not take such values."""
    try:
        with kit.listening():
            return build(problem, folder)
    except BaseException as error:  # panics of Rust libraries are no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def ask_python(problem, kind):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = _build(BUILDERS[kind], problem, folder)
        if table is None:
            return UNBUILDABLE
        plan = gn.plan(
            problem.schema,
            problem.way,
            gn.zCDP(0.5),
            neighbors=problem.neighbors,
            rows_per_person=problem.rows_per_person,
        )
        return _ask(lambda: _valid(plan.release(table), None), True)


def ask_shell(problem, kind):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = _build(BUILDERS[kind], problem, folder)
        if table is None:
            return UNBUILDABLE
        (folder / "schema.toml").write_text(problem.schema.to_toml(), encoding="utf-8", newline="")
        words = [
            "release",
            str(table),
            "-s",
            str(folder / "schema.toml"),
            "-m",
            str(problem.way),
            "--rho",
            "0.5",
        ]
        words += [
            "--neighbors",
            problem.neighbors,
            "--rows-per-person",
            str(problem.rows_per_person),
        ]
        status = []
        with kit.listening() as heard, pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "gaussnoise.tables.release.release_plot.plot_release", None
            )  # half a second each, and it sees no records
            status.append(run([*words, "--out", str(folder / "out")]))
        complete = (folder / "out" / "release.json").exists()
        left = [p.name for p in folder.iterdir()]
        valid = (status == [0] and complete) or (
            status == [1] and sorted(left) == sorted(["schema.toml", table.name])
        )
        leaks = kit.leaks(heard.text, kit.written(folder / "out"))
        told = "wrote " in heard.text if status == [0] else heard.text.strip().startswith("error: ")
        typed = (
            status[0] in (0, 1)
            and told
            and "Traceback" not in heard.text
            and "internal error" not in heard.text
        )
        return Outcome("released" if status == [0] else "refused", typed, valid, tuple(leaks))


def ask_schema(text):
    """Whether a schema text loads or is refused by type, at once; what loads is written and read
    the same.
    """

    def call():
        schema = gn.Schema.loads(text)
        again = gn.Schema.loads(schema.to_toml())
        return (
            again == schema and again.sizes == schema.sizes and again.to_toml() == schema.to_toml()
        )

    begun = time.process_time()
    outcome = _ask(call, False)
    at_once = time.process_time() - begun < 1.0
    return replace(
        outcome,
        typed=outcome.answer in ("released", "SchemaError"),
        valid=outcome.valid and at_once,
    )


def ask_schema_file(content):
    """The same of a file of any bytes, in Python and from the shell, which answer alike."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "schema.toml"
        path.write_bytes(content)
        outcome = _ask(lambda: bool(gn.Schema.load(path)), False)
        with kit.listening() as heard:
            status = run(["plan", "-s", str(path), "-m", "1", "--rho", "0.5"])
        said = heard.text.strip()
        told = said.startswith("Plan: " if status == 0 else "error: ") and "Traceback" not in said
        typed = outcome.answer in ("released", "SchemaError") and status in (0, 1) and told
        # one that loads can still be too large to plan
        alike = (outcome.answer == "released") == (
            status == 0 or said.startswith("error: ParameterError")
        )
        return replace(outcome, typed=typed, valid=alike and os.listdir(name) == ["schema.toml"])


def schema_files():
    """Bytes of schema texts, whole, encoded otherwise, or with bytes of any kind among them."""

    def encoded(drawn):
        text, encoding, extra = drawn
        content = text.encode(encoding, errors="replace")
        return content[: len(content) // 2] + extra + content[len(content) // 2 :]

    extra = st.sampled_from([b""] * 6 + [b"\xff", b"\xed\xa0\x80", b"\0", b"\r"]) | st.binary(
        max_size=20
    )
    encoding = st.sampled_from(["utf-8"] * 5 + ["utf-16", "latin-1", "utf-8-sig"])
    return st.tuples(schema_texts(), encoding, extra).map(encoded) | st.binary(max_size=60)


def ask_bytes(schema, content, file="t.csv"):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / file
        path.write_bytes(content)
        plan = gn.plan(schema, 1, gn.zCDP(0.5))
        outcome = _ask(lambda: _valid(plan.release(str(path)), None), True)
        if os.listdir(name) != [file]:
            return Outcome(outcome.answer, outcome.typed, False, outcome.leaks)
        return outcome


# Files as other programs write them.


def _quoted(text, escape='""'):
    return '"' + text.replace('"', escape) + '"'


def _excel(rows):
    """Semicolons where the comma is for decimals, perhaps with a line that says so."""
    lines = [";".join(_quoted(t) if set(t) & set(';"\n\r') else t for t in row) for row in rows]
    return "\r\n".join([*lines, ""])


def _mysql(rows):
    """SELECT … INTO OUTFILE … ENCLOSED BY: backslashes before quotes, and a sign for NULL."""
    return "".join(
        ",".join("\\N" if t == "NA" else _quoted(t, '\\"') for t in row) + "\n" for row in rows
    )


def _postgres(rows):
    """COPY as text: escapes for tabs, line ends and backslashes, in a file of tabs."""
    signs = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
    return "".join(
        "\t".join("".join(signs.get(c, c) for c in t) for t in row) + "\n" for row in rows
    )


def _r(rows):
    """write.csv, with the names of the rows."""
    names = ["", *map(str, range(1, len(rows)))]
    return "".join(
        ",".join(map(_quoted, (name, *row))) + "\n" for name, row in zip(names, rows, strict=True)
    )


def _sas(rows):
    """Blanks beside fields, and quotes where a field has a comma."""
    return "".join(", ".join(_quoted(t) if "," in t else t for t in row) + " \n" for row in rows)


EXPORTERS = {"excel": _excel, "mysql": _mysql, "postgres": _postgres, "r": _r, "sas": _sas}


@st.composite
def exported_files(draw, exporter):
    """A schema, bytes by that program's habits, now and then cut, encoded or begun otherwise, and a
    file name.
    """
    schema = gn.Schema(
        [
            gn.Attribute("a", ["x", "y"], other=draw(st.sampled_from([None, "o"]))),
            gn.Attribute("b", [1, 2], other="o"),
        ]
    )
    word = st.sampled_from(
        [*WORDS, "x", "y", "5' 8\"", '"', kit.CANARY, f'{kit.CANARY} "', f'"{kit.CANARY}"', "a\\"]
    )
    rows = draw(
        st.lists(
            st.tuples(word, st.sampled_from(["1", "2", "1.0", "NA", "", str(kit.NUMBER)])),
            max_size=6,
        )
    )
    text = EXPORTERS[exporter]([("a", "b"), *rows])
    if draw(st.integers(0, 3)) == 0:
        text = draw(st.sampled_from(["sep=;\r\n", "sep=,\n", "\ufeff", "\n", '"'])) + text
    if draw(st.integers(0, 3)) == 0:
        text = text[: draw(st.integers(0, len(text)))]
    encoding = draw(st.sampled_from(["utf-8"] * 5 + ["utf-16", "latin-1"]))
    return (
        schema,
        text.encode(encoding, errors="replace"),
        "t.tsv" if exporter == "postgres" else "t.csv",
    )


# Counting with what does not fit left out.


def cell(attribute, value):
    """The cell of a value in Python's terms; None where it has none."""
    found = None
    real = isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)
    if real and isinstance(value, float | decimal.Decimal) and not math.isfinite(value):
        real = False
    if attribute.edges is not None:
        if real and attribute.edges[0] <= value <= attribute.edges[-1]:
            inner = [edge for edge in attribute.edges[1:-1] if edge <= value]
            found = len(inner)
    else:
        kind = type(attribute.categories[0])
        alike = real if kind is int else isinstance(value, kind)
        found = next((k for k, c in enumerate(attribute.categories) if alike and c == value), None)
    return len(attribute.labels) - 1 if found is None and attribute.other is not None else found


def count(schema, table, on_outside="drop"):
    """Counts of every cell, by what the counting layer says of the whole table."""
    everything = tuple(range(len(schema.attributes)))
    return dict(count_marginals(table, schema.attributes, [everything, ()], on_outside))


def cell_by_value(attribute, value):
    """The same in pandas and dask, where rows decide on the types of columns."""
    code = finder(attribute, Form.UNTYPED)(value)
    return code - 1 if code else None if attribute.other is None else len(attribute.labels) - 1


def expect(schema, rows, cell=cell):
    """The same by Python, row by row."""
    counts = np.zeros(schema.sizes, dtype=np.int64)
    for row in rows:
        cells = tuple(cell(a, value) for a, value in zip(schema.attributes, row, strict=True))
        if None not in cells:
            counts[cells] += 1
    return {tuple(range(len(schema.sizes))): counts, (): counts.sum()}


HOLDERS = {
    "pandas objects": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype).astype(object),
    "pandas": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, _: pl.DataFrame(table),
    "lazy polars": lambda table, _: pl.DataFrame(table).lazy(),
    "pyarrow": lambda table, _: table,
    "duckdb": lambda table, _: _duckdb(table),
    "ibis": lambda table, _: _ibis(table),
    "dask": lambda table, _: _dask(table),
    "parquet": lambda table, folder: _parquet(table, folder),
}


def _duckdb(table):
    import duckdb

    return duckdb.from_arrow(table)


def _ibis(table):
    import ibis

    return ibis.memtable(table)


def _dask(table):
    import dask.dataframe

    return dask.dataframe.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2)


def _parquet(table, folder):
    pyarrow.parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


@st.composite
def typed_tables(draw):
    """A schema and a table whose columns have a type that can hold its attributes, and anything of
    that type.
    """
    schema = gn.Schema([draw(attributes(name)) for name in ("a", "größe")])
    rows = draw(st.integers(0, 6))
    columns = {}
    for attribute in schema.attributes:
        if attribute.edges is not None:
            kind, pool = draw(
                st.sampled_from([(pa.float64(), [*NUMBERS, *STRANGE]), (pa.int64(), _whole(64))])
            )
        elif isinstance(attribute.categories[0], bool):
            kind, pool = pa.bool_(), [True, False, None]
        elif isinstance(attribute.categories[0], int):
            kind, pool = draw(
                st.sampled_from(
                    [
                        (pa.int64(), _whole(64)),
                        (pa.int32(), _whole(32)),
                        (pa.float64(), [*NUMBERS, *STRANGE]),
                    ]
                )
            )
        else:
            kind, pool = pa.string(), [*WORDS, "x" * 300, "\u202e", kit.CANARY, None]
        ends = [e for e in attribute.edges or () if math.isfinite(e) and kind == pa.float64()]
        pool = [
            *pool,
            *(c for c in attribute.categories or () if kind != pa.float64() and (c in pool)),
            *ends,
        ]
        values = draw(st.lists(st.sampled_from(pool), min_size=rows, max_size=rows))
        columns[attribute.name] = pa.array(values, type=kind)
    return schema, pa.table(columns)


def _whole(bits):
    return [
        n
        for n in [*INTEGERS, kit.NUMBER, None]
        if n is None or -(2 ** (bits - 1)) <= n < 2 ** (bits - 1)
    ]


def count_by_row(schema, table, holder):
    """Whether the table, and every row of it by itself, is counted as Python says."""
    untyped = holder.startswith("pandas") or holder == "dask"
    # categories that are one value there are refused, or warned of, whatever the rows are
    alike = untyped and any(confused(attribute)[0] for attribute in schema.attributes)
    with tempfile.TemporaryDirectory() as name:
        # taken, not sliced: dask takes slices of one arrow table for the same
        for rows in [table, *(table.take([k]) for k in range(table.num_rows))]:
            held = HOLDERS[holder](rows, Path(name))
            values = [tuple(row.values()) for row in rows.to_pylist()]
            expected = expect(schema, values, cell_by_value if untyped else cell)
            try:
                with kit.listening():
                    found = count(schema, held)
            except DataError:
                if alike:
                    continue
                raise
            if any(not np.array_equal(found[S], counts) for S, counts in expected.items()):
                return False
        return True


def ask_dropping(problem, kind):
    """Whether a table is counted, or refused for what its rows do not decide."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = _build(BUILDERS[kind], problem, folder)
        return (
            UNBUILDABLE if table is None else _ask(lambda: bool(count(problem.schema, table)), True)
        )


@cache  # here and below: made where they are asked, not where this is loaded
def finite_mechanism(neighbors):
    noise = gn.optimal_noise(
        gn.FiniteSet([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), neighbors=neighbors
    )
    return gn.GaussianMechanism(noise, gn.zCDP(0.5), n=None if neighbors == "add-remove" else 3)


@st.composite
def point_data(draw):
    values = st.sampled_from(
        [0, 1, 2, -1, 0.0, 1.0, 0.5, *STRANGE, *PLANTED, *OBJECTS, *INTEGERS, True, "0"]
    )
    good = draw(st.sampled_from([[0, 1, 2], [[0.0, 1.0]] * 3, np.array([0, 0, 1], dtype=np.uint8)]))
    bad = draw(
        st.one_of(
            st.lists(values, max_size=4), st.lists(st.lists(values, max_size=3), max_size=4), values
        )
    )
    data = draw(st.sampled_from([good, bad, bad, bad]))
    return (
        draw(st.sampled_from(["add-remove", "replace"])),
        draw(st.sampled_from(["data", "counts", "rows", "indices"])),
        data,
    )


def ask_points(neighbors, keyword, data):
    def call():
        release = finite_mechanism(neighbors).release(**{keyword: data})
        return bool(np.isfinite(release.estimate).all() and release.private)

    return _ask(call, True)


# Whatever reads real-valued records.
@cache
def _disc():
    return gn.GaussianMechanism(
        gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove"), gn.zCDP(0.5)
    )


@cache
def _square():
    noise = gn.optimal_noise(gn.Zonotope([[1.0, 0.0], [0.3, 0.8]]))
    return gn.GaussianMechanism(noise, gn.ApproxDP(1.0, 1e-6), n=3)


@cache
def _local():
    return gn.LocalMechanism(gn.LpBall(2, 2), gn.LocalDP(1.0))


READERS = {
    "sums": lambda data: _disc().release(data).estimate,
    "projected sums": lambda data: _disc().release(data, on_outside="project").estimate,
    "means": lambda data: _square().release(data).projected(gn.LpBall(2, 2)).estimate,
    "messages": lambda data: _local().aggregate(_local().reports(data)).estimate,
    "bounds": lambda data: gn.lower_bound(gn.LpBall(2, 2), gn.zCDP(0.1), data=data).error,
    "local bounds": lambda data: gn.lower_bound(gn.LpBall(2, 2), gn.LocalDP(1.0), data=data).error,
}


@st.composite
def body_data(draw):
    numbers = [
        0,
        1,
        0.5,
        -0.25,
        5e-324,
        1e308,
        2.0,
        True,
        "0.5",
        *STRANGE,
        *PLANTED,
        *OBJECTS,
        10**30,
    ]
    rows = st.lists(st.lists(st.sampled_from(numbers), min_size=1, max_size=3), max_size=4)
    members = st.lists(
        st.sampled_from([[0.1, 0.2], [0, 1], [-0.25, 0.5], [1.0, 0.0]]), min_size=3, max_size=3
    )
    data = draw(
        st.one_of(members, rows, rows, st.sampled_from(numbers), st.lists(st.sampled_from(numbers)))
    )
    if draw(st.booleans()):
        kinds = [np.float32, np.int64, np.float16, complex, str, object]
        with contextlib.suppress(Exception), np.errstate(all="ignore"):
            data = np.array(data, dtype=draw(st.sampled_from(kinds)))
    return draw(st.sampled_from(sorted(READERS))), data


def ask_bodies(reader, data):
    return _ask(lambda: bool(np.isfinite(READERS[reader](data)).all()), True)
