import datetime
import math
import tomllib
import traceback
from itertools import cycle, islice

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import one_test_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

import gaussnoise as gn
from gaussnoise.errors import DataError, SchemaError, SchemaWarning
from gaussnoise.tables.drafts.draft import draft
from gaussnoise.tables.schema.schema import RESERVED_NAMES

CANARY = "CANARY-7391"


@st.composite
def attributes(draw, name):
    own = draw(
        st.one_of(
            st.fixed_dictionaries(
                {
                    "categories": st.one_of(
                        st.lists(st.text(), min_size=1, max_size=4, unique=True),
                        st.lists(st.integers(), min_size=1, max_size=4, unique=True),
                        st.lists(st.booleans(), min_size=1, max_size=2, unique=True),
                    )
                }
            ),
            st.fixed_dictionaries(
                {
                    "edges": st.lists(
                        st.floats(allow_nan=False).map(lambda e: e + 0.0),
                        min_size=2,
                        max_size=5,
                        unique=True,
                    ).map(sorted)
                }
            ),
        )
    )
    labels = set(map(str, gn.Attribute(name, **own).labels))
    other = draw(st.none() | st.text().filter(lambda text: text not in labels))
    return gn.Attribute(name, **own, other=other)


NAMES = st.lists(
    st.one_of(
        st.text(min_size=1),
        st.sampled_from(["a b", 'a"b', "a'b", "a.b", "größe", "年", "\\", "categories"]),
    ),
    min_size=1,
    max_size=4,
    unique=True,
).filter(lambda names: not set(names) & set(RESERVED_NAMES))


@settings(derandomize=True, deadline=None, database=None, max_examples=70)
@given(st.data())
def test_toml_round_trip(data):
    schema = gn.Schema([data.draw(attributes(name)) for name in data.draw(NAMES)])
    # repr tells True from 1, equality does not
    assert repr(gn.Schema.loads(schema.to_toml())) == repr(schema)


def test_load_reads_what_to_toml_wrote(tmp_path):
    schema = gn.Schema(
        [
            gn.Attribute("größe", edges=[-math.inf, 1.5, math.inf]),
            gn.Attribute("sex", ["F", "M"], edges=None),
        ]
    )
    path = tmp_path / "schema.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    assert gn.Schema.load(path) == gn.Schema.load(str(path)) == schema


@pytest.mark.parametrize(
    "text",
    [
        "[attributes.a]\ncategories = ['x', 'y']\n[attributes.b]\nedges = [0, 1.5, inf]\nother = "
        "'o'",
        "attributes.a.categories = ['x', 'y']\nattributes.b = {edges = [0, 1.5, inf], other = 'o'}",
        "attributes = {a = {categories = ['x', 'y']}, b = {edges = [0, 1.5, inf], other = 'o'}}",
    ],
)
def test_all_toml_styles_mean_the_same(text):
    expected = [
        gn.Attribute("a", ["x", "y"]),
        gn.Attribute("b", edges=[0, 1.5, math.inf], other="o"),
    ]
    assert gn.Schema.loads(text) == gn.Schema(expected)


A = "[attributes.a]\ncategories = ['x']\n"


@one_test_of(
    ("text", "line", "part"),
    [
        ("[attributes.a]\ncategories = ['x'\nother = 'y'\n", 3, "TOML"),
        (A + "[attributes.a]\n", 3, "TOML"),
        ("[attributes.a]\ncategories == 1\n", 2, "TOML"),
        ("", 1, "attributes"),
        ("# only a comment\n", 1, "attributes"),
        ("[attributes]\n", 1, "at least one attribute"),
        ("attributes = 5\n", 1, "attributes"),
        ("attributes = []\n", 1, "attributes"),
        ("attributes = 'age'\n", 1, "attributes"),
        ("[attributes]\na = 5\n", 2, "attributes.a"),
        (A + "\nversion = 1\n", 4, "unknown key"),
        ("version = 1\n" + A, 1, "unknown key"),
        (A + "typo = 1\n", 3, "unknown key"),
        (A + "missing_values = [999]\n", 3, "add the line missing = [999] to the column"),
        (A + "na_values = [999]\n", 3, "hint: where a code like 999"),
        (A + "missing = 999\n", 3, "a list of codes that mean no answer, numbers or text"),
        (A + "missing = ['x']\n", 1, "codes that are no categories"),
        (A + "aliases = {x = ['y']}\n", 3, 'hint: spellings = {F = ["f", "Female"]} counts'),
        (A + "spelling = {x = ['y']}\n", 3, "hint: spellings ="),
        (A + "spellings = ['y']\n", 3, "categories and lists of their other spellings"),
        (A + "spellings = {x = 'y'}\n", 3, "categories and lists of their other spellings"),
        (A + "spellings = {x = [1]}\n", 3, "categories and lists of their other spellings"),
        (A + "spellings = {x = []}\n", 1, "one spelling at least"),
        (A + "spellings = {y = ['z']}\n", 1, "names of categories, got 'y', which is none"),
        (A + "spellings = {x = ['x']}\n", 1, "neither a category nor the catch-all, got 'x'"),
        (A + "other = 'o'\nspellings = {x = ['o']}\n", 1, "nor the catch-all, got 'o'"),
        (A + "spellings = {x = ['y', 'y']}\n", 1, "each spelling once, got 'y' twice"),
        (A + "spellings = {x = ['9']}\nmissing = [9]\n", 1, "no categories or spellings, got"),
        ("[attributes.a]\ncategories = [1]\nspellings = {1 = ['one']}\n", 1, "that are text"),
        ("[attributes.a]\nclip = [0, 9]\nspellings = {1 = ['one']}\n", 1, "that are text"),
        (A + "missing = [true]\n", 1, "a list of codes that mean no answer"),
        (A + f"missing = {[*range(21)]}\n", 1, "at most 20 codes, got 21"),
        ("[attributes.a]\nclip = [0, 9]\nmissing = [nan]\n", 1, "numbers below 2**53"),
        ("[attributes.a]\nclip = [0, 9]\nmissing = [9007199254740992]\n", 1, "below 2**53"),
        ("[attributes.a]\nclip = [0, 9]\nmissing = [0.1, 0.1]\n", 1, "got one twice"),
        ("[attributes.a]\nclip = [0, 9]\nmissing = ['9.0']\n", 1, "numbers without quotes"),
        (
            "[attributes.a]\nedges = [2000-01-01, 2020-01-01]\nmissing = ['2001-01-01']\n",
            1,
            "no dates",
        ),
        ((A + "typo = 1\n").replace("\n", "\r\n"), 3, "unknown key"),
        (A + "other = 5\n", 3, "other"),
        ("[attributes.a]\n\ncategories = 1\n", 3, "categories"),
        ("[attributes.a]\ncategories = [1.5, 2.5]\n", 2, "categories"),
        ("[attributes.a]\ncategories = [2020-01-01]\n", 2, "categories"),
        ("[attributes.a]\ncategories = [\n  'x',\n  1.5,\n]\n", 2, "categories"),
        ("[attributes.a]\nedges = ['1', 2]\n", 2, "edges"),
        ("[attributes.a]\nedges = [1, true]\n", 2, "edges"),
        ("[attributes.str]\ncategories = 1\n", 2, "str.categories"),
        (A + "[attributes.b]\n", 3, "either categories or edges"),
        (A + "edges = [0, 1]\n", 1, "either categories or edges"),
        ("[attributes.a]\nedges = [3, 1]\n", 1, "increasing"),
        ("[attributes.a]\nedges = [1, 1]\n", 1, "increasing"),
        ("[attributes.a]\nedges = [1]\n", 1, "two increasing"),
        ("[attributes.a]\nedges = [nan, 1]\n", 1, "increasing"),
        ("[attributes.a]\ncategories = []\n", 1, "at least one category"),
        ("[attributes.a]\ncategories = ['x', 'y', 'x']\n", 1, "twice"),
        ("[attributes.a]\ncategories = ['x', 1]\n", 1, "all strings"),
        ("[attributes.a]\ncategories = [true, 1]\n", 1, "all strings"),
        (A + "other = 'x'\n", 1, "other"),
        ("[attributes.a]\ncategories = [4, 5]\nother = '5'\n", 1, "other"),
        ("[attributes.a]\nedges = [0, 1]\nother = '[0, 1]'\n", 1, "other"),
        ('[attributes.""]\ncategories = ["x"]\n', 1, "name"),
        (A + "\n# a comment\n\n[attributes.b]\nedges = [3, 1]\n", 6, "increasing"),
        (A + "\n# a comment\n\n[attributes.b]\nedges = 'x'\n", 7, "edges"),
        ("# one\u2028line\n[attributes.b]\nedges = [3, 1]\n", 2, "increasing"),
        (A + "[attributes.b]\ncategories = [\n 'y',\n]\ntypo = 1\n", 7, "unknown key"),
        (
            "attributes.a.categories = ['x']\nattributes.b = {categories = []}\n",
            2,
            "at least one category",
        ),
        ("attributes.a.categories = ['x']\nattributes.b = {typo = 1}\n", 2, "unknown key"),
        ("attributes = {a = {categories = ['x']}, b = {typo = 1}}\n", 1, "unknown key"),
        *[(A + f"[attributes.{name}]\ncategories = ['x']\n", 3, "name") for name in RESERVED_NAMES],
    ],
)
def test_errors_point_at_the_line(text, line, part):
    with pytest.raises(SchemaError) as caught:
        gn.Schema.loads(text, "survey.toml")
    assert str(caught.value).startswith(f"survey.toml:{line}: ")
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_errors_in_long_files_are_found_by_few_parses(monkeypatch):
    text = "".join(f"[attributes.a{k}]\ncategories = ['x']\n" for k in range(1000)) + "typo = 1\n"
    parses, parse = [], tomllib.loads
    monkeypatch.setattr("tomllib.loads", lambda text: parses.append(1) or parse(text))
    with pytest.raises(SchemaError, match=r"^schema:2001: "):
        gn.Schema.loads(text)
    assert len(parses) < 40


def test_an_unfinished_file_is_an_error_at_its_end():
    with pytest.raises(SchemaError, match=r"^survey\.toml:[23]: .*TOML"):
        gn.Schema.loads("[attributes.a]\ncategories = ['x'\n", "survey.toml")


def test_unreadable_files_are_schema_errors(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b"[attributes.\xe9]\n")
    faults = {"latin.toml": "cannot be read", "missing.toml": "no such file", ".": "cannot be read"}
    for name, fault in faults.items():
        with pytest.raises(SchemaError, match=fault) as caught:
            gn.Schema.load(tmp_path / name)
        assert str(caught.value).startswith(str(tmp_path))


def test_load_names_the_file(tmp_path):
    (tmp_path / "survey.toml").write_text(A + "typo = 1\n", encoding="utf-8")
    with pytest.raises(SchemaError) as caught:
        gn.Schema.load(tmp_path / "survey.toml")
    assert str(caught.value).startswith(f"{tmp_path}/survey.toml:3: ")


@pytest.mark.parametrize(
    ("arguments", "labels"),
    [
        ({"categories": ["x", "y"]}, ("x", "y")),
        ({"categories": [3, 1]}, (3, 1)),
        ({"categories": [3, 1], "other": "rest"}, ("3", "1", "rest")),
        ({"categories": [True, False], "other": "unknown"}, ("true", "false", "unknown")),
        ({"edges": [0, 18, 65.5]}, ("[0, 18)", "[18, 65.5]")),
        ({"edges": [-math.inf, 0, math.inf]}, ("(-inf, 0)", "[0, inf)")),
        ({"edges": [0, 1], "other": "rest"}, ("[0, 1]", "rest")),
        ({"edges": [-1e300, 0.1, 1e15]}, ("[-1e+300, 0.1)", "[0.1, 1000000000000000.0]")),
    ],
)
def test_labels(arguments, labels):
    attribute = gn.Attribute("a", **arguments)
    assert attribute.labels == labels
    assert attribute.size == len(labels)


def test_names_and_sizes_follow_the_attributes():
    schema = gn.Schema([gn.Attribute("b", ["x"], other="y"), gn.Attribute("a", edges=[0, 1, 2, 3])])
    assert schema.names == ("b", "a")
    assert schema.sizes == (2, 3)


def test_schemas_need_distinct_attributes():
    with pytest.raises(SchemaError, match="distinct attribute names"):
        gn.Schema([gn.Attribute("a", ["x"]), gn.Attribute("a", ["y"])])
    with pytest.raises(SchemaError, match="at least one attribute"):
        gn.Schema([])


def as_csv(columns, folder):
    csv.write_csv(pa.table(columns), folder / "t.csv")
    return folder / "t.csv"


def as_parquet(columns, folder):
    parquet.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


ENGINES = {
    "pandas": lambda columns, _: pa.table(columns).to_pandas(),
    "polars": lambda columns, _: pl.DataFrame(columns, strict=False),
    "polars lazy": lambda columns, _: pl.LazyFrame(columns, strict=False),
    "pyarrow": lambda columns, _: pa.table(columns),
    "duckdb": lambda columns, _: duckdb.from_arrow(pa.table(columns)),
    "csv": as_csv,
    "parquet": as_parquet,
}


@pytest.fixture(params=ENGINES)
def build(request, tmp_path):
    return lambda columns: ENGINES[request.param](columns, tmp_path)


def test_draft(build):
    drafted = gn.Schema.draft(
        build(
            {
                "text": ["b", "a", "b", None],
                "flag": [True, False, True, True],
                "few": [3, 1, 2, 1],
                "number": [0.1, 7.9, 4.0, 2.0],
            }
        )
    )
    text, flag, few, number = drafted.attributes
    assert (text.categories, text.other) == (("a", "b"), "other or not stated")
    assert flag.categories == (False, True)
    assert (few.categories, few.other) == ((1, 2, 3), None)
    assert number.edges == (-math.inf, 1, 2, 3, 4, 5, 6, 7, math.inf)
    assert number.other is None


def test_draft_bins_many_integers(build):
    (attribute,) = gn.Schema.draft(build({"age": list(range(18, 90))})).attributes
    assert attribute.edges == (-math.inf, 20, 30, 40, 50, 60, 70, 80, math.inf)


def test_draft_gives_columns_with_nulls_a_catch_all(build):
    (attribute,) = gn.Schema.draft(build({"income": [0.0, 8.0, None]})).attributes
    assert attribute.other == "other or not stated"


def said(error):
    """Everything an error could show, its hidden ancestors included."""
    parts = []
    while error is not None:
        parts += [str(error), repr(error.args), *traceback.format_exception(error)]
        error = error.__cause__ or error.__context__
    return "\n".join(parts)


def test_drafts_of_files_and_frames_agree_on_integers_with_gaps(tmp_path):
    rooms = pa.table({"rooms": [1.0, 7.0, None, 2.0], "size": [1.0, 2.5, None, 4.0]})
    csv.write_csv(rooms, tmp_path / "t.csv")
    drafts = [draft(table) for table in (rooms, rooms.to_pandas(), str(tmp_path / "t.csv"))]
    assert all(found.to_toml() == drafts[0].to_toml() for found in drafts)
    few, number = drafts[0].attributes
    assert few == gn.Attribute("rooms", [1, 2, 7], other="other or not stated")
    assert number.edges is not None  # a half is no integer
    whole = draft(pa.table({"n": [1.0, 2.0]}))  # without gaps it is a column of numbers
    assert whole.attributes[0].edges is not None
    large = draft(pa.table({"n": [2.0**60, None]}))  # floats may have lost the integer
    assert large.attributes[0].edges is not None


def test_draft_refuses_identifiers_without_showing_any(build):
    table = build({"name": [f"{CANARY}-{k}" for k in range(101)]})
    with pytest.raises(DataError, match="column 'name'") as caught:
        gn.Schema.draft(table)
    assert CANARY not in said(caught.value)


def test_draft_leaves_identifiers_out_aloud(build):
    table = build(
        {"name": [f"{CANARY}-{k}" for k in range(101)], "sex": ["F", "M", "F"] * 33 + ["F"] * 2}
    )
    with pytest.warns(SchemaWarning, match="column 'name'") as said_so:
        drafted = gn.Schema.draft(table)
    assert drafted.names == ("sex",)
    assert CANARY not in str(said_so[0].message)


def test_draft_leaves_out_names_that_released_tables_use(build):
    table = build({"estimate": ["a", "b"], "low": [1, 2], "sex": ["F", "M"]})
    with pytest.warns(SchemaWarning, match="column 'estimate'.*hint: rename it") as said_so:
        drafted = gn.Schema.draft(table)
    assert drafted.names == ("sex",)
    assert any("column 'low'" in str(warning.message) for warning in said_so)
    with pytest.raises(SchemaError, match="at least one character"):
        gn.Attribute("", ["a"])


def test_bins_of_skewed_numbers_grow(build):
    incomes = [1.5, *(20.0 + k for k in range(60)), 345_678.0]
    (attribute,) = gn.Schema.draft(build({"income": incomes})).attributes
    assert attribute.edges == (-math.inf, 1, 10, 100, 1000, 10_000, 100_000, math.inf)
    counts = [*range(1, 61), 34_567]
    (attribute,) = gn.Schema.draft(build({"n": counts})).attributes
    assert attribute.edges == (-math.inf, 1, 10, 100, 1000, 10_000, math.inf)
    (attribute,) = gn.Schema.draft(build({"n": [*range(30, 80), 3456]})).attributes
    assert attribute.edges == (-math.inf, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, math.inf)


def test_edges_of_skewed_numbers_tell_orders_of_magnitude_alone():
    def edges(numbers):
        return gn.Schema.draft(pa.table({"n": numbers})).attributes[0].edges

    bulk = [float(k) for k in range(11, 60)]
    assert edges([10.5, *bulk, 1201.0]) == edges([19.5, *bulk[::-1], 9500.0])
    assert edges([0.0, *bulk, 1201.0])[1:3] == (0.001, 0.01)


@pytest.mark.parametrize(
    ("numbers", "ends"),
    [
        ([*range(18, 90)], "[0, 90]"),
        ([-3.25, -1.5, 12.5], "[-2, 12]"),
        ([1.0, 2.0, 3.0, 4.0, 5000.0], "[0, 5000]"),
        ([2.5, 2.5], "[0, 3]"),
        ([1.0, 1.0, 1.0, 999.9999999999999], "[0, 1000]"),
        # few, like typing errors, are above the upper end, which their size does not move
        ([*range(1, 1001), 499_999], "[0, 1000]"),
        ([*range(1, 1001), *[0] * 9000, 499_999], "[0, 1000]"),
        ([*range(60)] * 9 + [999] * 50, "[0, 60]"),
        ([*range(100), 5e-324], "[0, 100]"),
        ([0.0, 0.0], None),
        ([-1e308, 1e308], None),
    ],
)
def test_a_draft_says_where_numbers_may_be_clipped_for_sums_and_means(numbers, ends):
    reason = draft(pa.table({"n": numbers})).reasons["n"]
    assert ("For sums and means, write clip = " in reason) == (ends is not None)
    if ends is not None:
        assert f" For sums and means, write clip = {ends} in place of edges" in reason
        assert reason.endswith("99% of the numbers above 0 are below.") == (min(numbers) >= 0)
        (attribute,) = gn.Schema.loads(f"[attributes.n]\nclip = {ends}\n").attributes
        assert attribute.base.size == 2


def test_every_column_says_why_it_is_what_it_is(build):
    table = {
        "sex": ["F", "M", None, "F"] * 26,
        "age": [k % 90 for k in range(104)],
        "id\n": [f"x{k}" for k in range(104)],
        "few": [1, 2, 3, 4] * 26,
    }
    found = draft(build(table))
    assert "2 different values. Missing values count in the catch-all." in found.reasons["sex"]
    assert "intervals of one width" in found.reasons["age"]
    assert "4 different whole numbers" in found.reasons["few"]
    assert list(found.left_out) == ["id\n"]
    text = found.to_toml()
    assert gn.Schema.loads(text) == found.schema
    assert text.count("\n# ") + text.startswith("# ") == 4


@pytest.mark.parametrize("values", [[datetime.time(8)], [[1, 2]], [{"x": 1}]])
def test_draft_refuses_other_types(values):
    with pytest.raises(DataError, match="column 'a'"):
        gn.Schema.draft(pl.DataFrame({"a": values}))


OWN_TABLES = {
    "text": ["a", "b", None],
    "other is taken": ["other", "b", None],
    "booleans": [True, False],
    "integers": [1, 5, 5, 2],
    "many integers": list(range(50)),
    "numbers": [1.5, 2.0, None],
    "one number": [2.5, 2.5],
    "nan": [1.5, 2.0, math.nan],
    "infinite": [1.5, 2.0, math.inf],
    "tiny": [1e-15, 3e-15, 2e-15],
    "close together": [1e16, 1e16 + 8],
    "far apart": [-1e308, 1e308],
    "seven eighths": [0.0, 0.7, 0.56],
    "negative": [-3.25, -1.5, -0.001],
    "dates": [datetime.date(2020, 2, 29), datetime.date(1999, 12, 31), None],
    "timestamps": [datetime.datetime(2020, 2, 29, 23, 59, 59, 999_999)],
}


def test_a_drafted_schema_accepts_its_own_table(build):
    rows = max(map(len, OWN_TABLES.values()))
    table = build({name: list(islice(cycle(column), rows)) for name, column in OWN_TABLES.items()})
    drafted = gn.Schema.draft(table)
    release = gn.plan(drafted.confirmed(), 1, gn.zCDP(1e4)).release(table)
    counted = {name: release[name].estimate.sum() for name in OWN_TABLES}
    assert counted == pytest.approx(dict.fromkeys(OWN_TABLES, rows), abs=1)


@pytest.mark.parametrize(
    "lines",
    ["007,x\n010,y", "t,x\nf,y", "yes,x\nno,y", "TRUE,x\nfalse,y", " 5,x\n6,y", "0x1,x\n2,y"],
)
def test_a_schema_drafted_from_csv_accepts_its_text(tmp_path, lines):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n{lines}\n", encoding="utf-8")
    release = gn.plan(gn.Schema.draft(path).confirmed(), 2, gn.zCDP(1e4)).release(path)
    assert abs(release["a"].estimate - 1).max() < 1


@settings(derandomize=True, deadline=None, database=None, max_examples=200)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1, max_size=4))
def test_drafted_edges_are_increasing_for_any_range(values):
    (attribute,) = gn.Schema.draft(pa.table({"a": values})).attributes
    assert (attribute.edges[0], attribute.edges[-1]) == (-math.inf, math.inf)
    assert 3 <= len(attribute.edges) <= 13


def test_drafts_of_nothing_are_typed_errors(tmp_path):
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    for table in [tmp_path / "empty.csv", tmp_path / "missing.csv", pd.DataFrame(), 5]:
        with pytest.raises((DataError, SchemaError)):
            gn.Schema.draft(table)


@pytest.mark.parametrize("missing", ["", "NA", '""'])
def test_draft_takes_missing_values_of_other_programs_for_nulls(tmp_path, missing):
    path = tmp_path / "t.csv"
    path.write_text(f"n,x\n1.0,a\n{missing},b\n2.0,a\n", encoding="utf-8")
    drafted = gn.Schema.draft(path)
    assert drafted.attributes[0] == gn.Attribute("n", [1, 2], other="other or not stated")
    estimate = gn.plan(drafted.confirmed(), [("n",)], gn.zCDP(1e6)).release(path)["n"].estimate
    assert estimate.round().tolist() == [1, 1, 1]


def test_a_catch_all_cannot_share_the_label_of_a_boolean():
    with pytest.raises(SchemaError, match="differ"):
        gn.Attribute("a", [True, False], other="true")


def test_edges_beyond_every_float_are_refused():
    with pytest.raises(SchemaError, match="edges"):
        gn.Attribute("x", edges=[0, 10**400])
