"""Drafts of columns as they occur in practice; no release is possible with a draft."""

import datetime
import decimal
import json
import math

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import DataError, SchemaError, SchemaWarning
from gaussnoise.tables.drafts.draft import draft
from gaussnoise.tables.drafts.roles import may_be_person
from gaussnoise.tables.drafts.seen import Seen
from gaussnoise.tables.reading.frames import open_table
from gaussnoise.tables.reading.pieces import pieces
from gaussnoise.tables.reading.sniff import sniffed
from gaussnoise.tables.reading.values import Form

# warnings of dask and ibis about their own dependencies
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}:{module}")
    for kind in ("DeprecationWarning", "FutureWarning", "UserWarning")
    for module in (r"dask(\..*)?", r"ibis(\..*)?")
]
pytestmark.append(
    pytest.mark.filterwarnings("ignore:Dask support is moving out of Narwhals:FutureWarning")
)


def as_file(lines, folder):
    path = folder / "t.csv"
    path.write_text("\n".join(["v,x", *(f"{line},0" for line in lines)]) + "\n", encoding="utf-8")
    return path


def as_objects(lines, _):
    return pd.DataFrame({"v": pd.Series(lines, dtype=object), "x": 0})


def as_read_by_pandas(lines, folder):
    return pd.read_csv(as_file(lines, folder), keep_default_na=False)


UNTYPED = {"csv": as_file, "objects": as_objects, "read_csv": as_read_by_pandas}


@pytest.fixture(params=UNTYPED)
def untyped(request, tmp_path):
    """A column of text, in forms in which no type is declared."""
    return lambda lines: UNTYPED[request.param](lines, tmp_path)


def of(table):
    """The attribute and the reason of column v."""
    found = draft(table)
    assert found.attributes[0].name == "v"
    return found.attributes[0], found.reasons["v"]


# Numbers and dates with a few texts among them.


def test_integers_with_words_for_nothing_stay_integers(untyped):
    attribute, reason = of(untyped(["1", "2", "N/A", "3", "unknown", "N/A"]))
    assert attribute == gn.Attribute("v", [1, 2, 3], other="other")
    assert "3 different whole numbers" in reason
    assert 'Texts that are no numbers count in the catch-all: "N/A", "unknown".' in reason


def test_numbers_and_dates_with_a_rare_text_are_still_what_they_are(untyped):
    numbers = [f"{k / 4}" for k in range(40)]
    attribute, reason = of(untyped([*numbers, "broken", "broken"]))
    assert attribute.edges is not None
    assert attribute.other == "other"
    assert 'no numbers count in the catch-all: "broken".' in reason
    days = [f"2024-{month:02}-07" for month in range(1, 13)]
    attribute, reason = of(untyped([*days, "soon"]))
    assert attribute.edges[0] == datetime.date(2024, 1, 1)
    assert 'no dates count in the catch-all: "soon".' in reason


@pytest.mark.parametrize(
    "lines",
    [
        ["S", "M", "38", "40", "42"] * 4,  # four in ten are no numbers
        [*"123456789", "a", "b"],  # two in eleven: a tenth is not exceeded by one alone
        [*map(str, range(90)), *"abcdef"],  # more than five
        ["1", "2", "false"],
        ["2020-01-01", "2020-01-02", "7"],
    ],
)
def test_columns_with_more_than_a_few_texts_are_text(untyped, lines):
    attribute, _ = of(untyped(lines))
    assert set(map(str, attribute.categories)) == set(lines)
    assert all(isinstance(category, str) for category in attribute.categories)


@pytest.mark.parametrize("form", ["csv", "objects"])  # pandas reads 007 as seven
def test_codes_with_leading_zeros_stay_text_and_blanks_do_not_matter(tmp_path, form):
    attribute, reason = of(UNTYPED[form](["007", "12", "13"], tmp_path))
    assert attribute.categories == ("007", "12", "13")
    assert "numbers written like 007" in reason
    assert of(UNTYPED[form]([" 7", "12 ", "13"], tmp_path))[0].categories == (7, 12, 13)


def test_declared_text_stays_text():
    for table in (pa.table({"v": ["1", "2", "N/A"]}), pl.DataFrame({"v": ["1", "2", "N/A"]})):
        assert of(table)[0] == gn.Attribute(
            "v", ["1", "2"], missing=["N/A"], other="other or not stated"
        )


def test_what_a_catch_all_is_drafted_for_is_counted_there(tmp_path):
    path = as_file(["1", "2", "N/A", "3", "unknown", "N/A", ""], tmp_path)
    schema = gn.Schema.draft(path).confirmed()
    estimate = gn.plan(schema, ["v"], gn.zCDP(1e6)).release(path)["v"].estimate
    assert estimate.round().tolist() == [1, 1, 1, 4]


def test_many_distinct_texts_and_numbers_are_read_in_one_go(tmp_path):
    """If a piece has more than a thousand, arrow reads the numbers; other texts go one by one."""
    lines = [*(f"{k}.5" for k in range(-700, 700)), *["1e9", "unknown"] * 20]
    attribute, reason = of(as_file(lines, tmp_path))
    assert attribute.edges[1:-1] == (0, 2e8, 4e8, 6e8, 8e8, 1e9)
    assert attribute.other == "other"
    assert 'no numbers count in the catch-all: "unknown".' in reason
    few = of(as_file(lines[:900:7], tmp_path))[0]
    assert few.edges is not None


# What pandas has of its own.


def test_intervals_periods_and_mixed_categories_are_drafted_as_their_text():
    frame = pd.DataFrame(
        {
            "cut": pd.cut([1, 5, 9, 30], [0, 5, 10]),
            "interval": pd.arrays.IntervalArray.from_breaks([0, 1, 2, 3, 4]),
            "period": pd.period_range("2020-01", periods=4, freq="M"),
            "year": pd.PeriodIndex(["2020", "2021", "2020", "2021"], freq="Y"),
            "mixed": pd.Categorical([1, "refused", 2, 1], categories=[2, 1, "refused", 3]),
            "codes": pd.Categorical([1, 2, 1, None]),
            "flags": pd.Series([True, False, None, True], dtype=object),
            "anything": pd.Series([1, 2.0, "2", [3]], dtype=object),
            "days": pd.Series([datetime.date(2020, 2, 1)] * 4, dtype=object),
        }
    )
    found = {a.name: a for a in draft(frame).attributes}
    assert found["cut"] == gn.Attribute("cut", ["(0, 5]", "(5, 10]"], other="other or not stated")
    assert found["interval"].categories == ("(0, 1]", "(1, 2]", "(2, 3]", "(3, 4]")
    assert found["period"].categories == ("2020-01", "2020-02", "2020-03", "2020-04")
    assert found["year"].categories == ("2020", "2021")
    assert found["mixed"] == gn.Attribute("mixed", ["1", "2", "refused"])
    assert found["codes"] == gn.Attribute("codes", [1, 2], other="other or not stated")
    assert found["flags"] == gn.Attribute("flags", [False, True], other="other or not stated")
    assert found["anything"] == gn.Attribute("anything", [1, 2], other="other or not stated")
    assert found["days"].edges == (datetime.date(2020, 2, 1), datetime.date(2020, 2, 29))
    assert list(found) == list(frame.columns)


def test_text_that_is_none_in_utf_8_is_no_category():
    frame = pd.DataFrame({"v": pd.Series(["a", "\ud800", "é"], dtype=object)})
    assert of(frame)[0] == gn.Attribute("v", ["a", "é"], other="other or not stated")


def test_values_that_pandas_compares_as_one_are_one_category():
    frame = pd.DataFrame(
        {"v": pd.Series([1, "1", "01", 1.0, "a", "b", True, "true"], dtype=object)}
    )
    assert of(frame)[0].categories == ("1", "a", "b")
    for kind in ("int64", "Int64"):  # floats would make one value of them
        long = pd.DataFrame({"v": pd.Series([2**60, 2**60 + 1, 2**60], dtype=kind)})
        assert of(long)[0].categories is None


def test_objects_that_pandas_cannot_tell_from_nulls_are_nulls():
    odd = [decimal.Decimal("sNaN"), decimal.Decimal("NaN"), pd.NaT, pd.NA, None, math.nan]
    odd += [np.datetime64("NaT")]
    for value in odd:
        held = pd.Series(["a", "b", value, "a"], dtype=object)
        attribute, _ = of(pd.DataFrame({"v": held}))
        assert attribute.categories == ("a", "b")
        assert attribute.other is not None


# Values that are nearly the same.


def test_values_that_differ_in_case_blanks_or_unicode_form_are_joined(untyped):
    """The most frequent spelling is the category; of equally frequent ones, the first."""
    attribute, reason = of(untyped(["Yes", "yes", "ye s", "no", "yes", "\u00e9", "e\u0301"]))
    assert attribute.categories == ("e\u0301", "no", "yes")
    assert dict(attribute.spellings) == {"yes": ("Yes", "ye s"), "e\u0301": ("\u00e9",)}
    assert "3 different values." in reason
    assert (
        "joined, since they differ in capitals, blanks or the code of a letter only: "
        '"e\u0301"/"\u00e9", '
        '"yes"/"Yes"/"ye s"'
    ) in reason
    assert "joined" not in of(untyped(["yes", "no", "maybe"]))[1]


def test_texts_that_mean_no_answer_are_codes_and_others_stay_categories(untyped):
    """What may be an answer, like none or unknown, is left for a person to decide."""
    lines = ["F", "f", "k.A.", "M", "N/A", "none", "unknown", "-", "F", "keine Angabe"]
    table = untyped(lines)
    attribute, reason = of(table)
    assert attribute.categories == ("-", "F", "M", "none", "unknown")
    assert attribute.missing == ("N/A", "k.A.", "keine Angabe")
    assert (attribute.other, attribute.spellings) == ("other or not stated", (("F", ("f",)),))
    assert '"N/A", "k.A.", "keine Angabe" mean no answer: they count in the catch-all.' in reason
    schema = gn.Schema.loads(draft(table).to_toml()).confirmed()
    assert schema.attributes[0] == attribute
    found = gn.plan(schema, ["v"], gn.zCDP(1.0)).check(table)
    assert found.passed
    assert sum(case.rows for case in found.caught) == 3


def test_a_column_of_nothing_but_such_texts_keeps_them(untyped):
    attribute, _ = of(untyped(["n/a", "N/A", "n/a"]))
    assert (attribute.categories, attribute.missing) == (("n/a",), ())


def test_rare_categories_are_pointed_out(untyped):
    """A draft takes them in, since only a person knows which values are public."""
    sizes = [*["1"] * 700, *["2"] * 700, *["3"] * 3, "17", "250"]
    attribute, reason = of(untyped(sizes))
    assert attribute.categories == (1, 2, 3, 17, 250)
    assert " In fewer than 1 of 1000 rows: 17, 250. Such values may be errors," in reason
    words = of(untyped([*["yes"] * 700, *["no"] * 700, "maybe"]))[1]
    assert 'rows: "maybe". Such' in words
    assert "fewer than" not in of(untyped(sizes[:-2]))[1]


def test_a_catch_all_of_a_draft_is_no_spelling(tmp_path):
    attribute, _ = of(as_file(["Other", "Other", "other", ""], tmp_path))
    assert attribute.spellings == (("Other", ("other",)),)
    assert attribute.other == "other or not stated"
    taken = ["Other or not stated", "other or not stated", ""]
    assert of(as_file(taken, tmp_path))[0].other == "other or not stated_"


def test_a_drafted_column_with_spellings_counts_all_its_rows(untyped):
    table = untyped(["Yes", "yes", "YES", "no", "No ", "maybe"])
    schema = gn.Schema([of(table)[0]]).confirmed()
    assert gn.Schema.loads(draft(table).to_toml()).attributes[0] == schema.attributes[0]
    found = gn.plan(schema, 1, gn.zCDP(1.0)).check(table)
    assert found.passed
    assert schema.attributes[0].categories == ("No ", "YES", "maybe")


@pytest.mark.parametrize(
    ("values", "spellings"),
    [
        (["F", "M", "f", "Female", "Male"], {"Female": ("F", "f"), "Male": ("M",)}),
        (["FEMALE", "female", "f.", "male"], {"FEMALE": ("f.", "female")}),
        (["empl.", "Employed", "self-empl.", "self-employed", "unemployed"],
         {"Employed": ("empl.",), "self-employed": ("self-empl.",)}),
        (["retired.", "retired", "student"], {"retired": ("retired.",)}),
        (["F", "M", "Female", "Male", "Married"], {"Female": ("F",)}),  # two words begin with M
        (["e.", "employed", "early"], {}),
        (["F", "f", "Female", "M"], {"Female": ("F", "f")}),
        (["A", "B", "C", "Dropped", "D"], {}),  # letters that are codes
        (["A", "B", "AB", "0"], {}),
        (["no", "not known", "yes"], {}),  # whole words
        (["Nord", "Nordend", "See"], {}),
        (["1", "1st.", "1st class", "a1.", "a1bc"], {}),
    ],
)  # fmt: skip
def test_a_short_form_counts_as_the_one_word_that_begins_with_it(untyped, values, spellings):
    """It is a proposal, which the comment names: a person confirms it."""
    attribute, reason = of(untyped(values))
    assert dict(attribute.spellings) == spellings
    assert ("Short forms are proposed to count as the word" in reason) == bool(spellings)
    spelt = {text for own in spellings.values() for text in own}
    assert {*attribute.categories} == {*values} - spelt
    schema = gn.Schema([attribute]).confirmed()
    assert gn.plan(schema, 1, gn.zCDP(1.0)).check(untyped(values)).passed


def test_a_word_whose_short_form_is_frequent_is_not_rare(untyped):
    reason = of(untyped([*["F"] * 1500, *["M"] * 1500, "Female", "Male", "Other"]))[1]
    assert 'rows: "Other". Such' in reason


def test_a_schema_file_shows_few_of_many_such_values(tmp_path):
    lines = [word + end for word in ("oak", "ash", "elm", "fir") for end in ("", " ")]
    text = draft(as_file(lines, tmp_path)).to_toml()
    assert '"ash"/"ash ", "elm"/"elm ", "fir"/"fir ", 1 more' in text
    assert 'spellings = {ash = ["ash "], elm = ["elm "], fir = ["fir "], oak = ["oak "]}' in text


# Persons and weights.


PEOPLE = {
    "patient": [k // 2 for k in range(60)],
    "record_id": [f"R{k:04}" for k in range(60)],
    "weight": [0.5 + k / 7 for k in range(60)],
    "visit": [k % 2 for k in range(60)],
    "subject": ["maths", "art"] * 30,
    "region_id": [k % 3 for k in range(60)],
    "household_income": [1000 + 17 * k for k in range(60)],
    "birth weight": [2.1 + k / 50 for k in range(60)],
}


def people(folder, kind):
    table = pa.table(PEOPLE)
    if kind == "csv":
        csv.write_csv(table, folder / "people.csv")
        return folder / "people.csv"
    return table.to_pandas() if kind == "pandas" else table


@pytest.mark.parametrize("kind", ["csv", "pandas", "pyarrow"])
def test_persons_and_weights_are_proposed_as_such(tmp_path, kind):
    found = draft(people(tmp_path, kind))
    assert found.schema.names == (
        "visit",
        "subject",
        "region_id",
        "household_income",
        "birth weight",
    )
    text = found.to_toml()
    assert (
        "a row belongs to: several rows have the same value; hint: --person patient --rows" in text
    )
    assert (
        "every row has its own value; hint: as long as that is so, a row is a person; --person "
        "record_id" in text
    )
    assert "looks like sample weights; hint: --weight weight:MOST" in text
    # lines that may be used instead
    assert "# [attributes.patient]\n# edges = [" in text
    plain = text.replace("# [attributes.weight]\n# edges", "[attributes.weight]\nedges")
    assert gn.Schema.loads(plain).names == (*found.schema.names, "weight")


def test_what_is_left_out_is_said_aloud(tmp_path):
    with pytest.warns(SchemaWarning, match="'patient'.*--person patient.*--weight weight:MOST"):
        gn.Schema.draft(people(tmp_path, "csv"))


# The line that prevents a release with a draft.


class Untouchable:
    """Data that must not be read."""

    def __getattribute__(self, name):
        raise AssertionError(name)


def test_nothing_is_released_with_a_draft_before_data_or_a_ledger_are_touched(tmp_path):
    drafted = gn.Schema.draft(pa.table({"v": ["a", "b"]}))
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(1))
    plan = gn.plan(drafted, 1, gn.zCDP(0.1))
    weekly = gn.plan(drafted, 1, gn.zCDP(0.1), over=gn.streams.Ticks(2))
    charged = {"ledger": ledger, "id": "first"}
    for door in (
        lambda: plan.release(Untouchable()),
        lambda: plan.release(Untouchable(), out=tmp_path / "out", **charged),
        lambda: plan.release(Untouchable(), out=tmp_path / "out", executors=True),
        lambda: weekly.start(tmp_path / "stream", **charged),
        lambda: plan.report(tmp_path / "plan.html"),
    ):
        with pytest.raises(SchemaError, match=r"got a draft.*schema\.confirmed\(\)"):
            door()
    assert len(ledger.entries()) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"]
    confirmed = gn.plan(drafted.confirmed(), 1, gn.zCDP(0.1))  # and with it, it is
    confirmed.release(pa.table({"v": ["a", "b"]}), out=tmp_path / "out", **charged)
    assert ledger.spent == pytest.approx(0.1)


def test_plans_say_that_their_schema_is_a_draft():
    drafted = gn.Schema.draft(pa.table({"v": ["a", "b"]}))
    for schema in (drafted, drafted.confirmed()):
        shown = [
            gn.plan(schema, 1, gn.zCDP(0.1)),
            gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(2)),
            gn.budgets(schema, 1),
        ]
        assert ["\nDRAFT " in str(one) for one in shown] == [schema.is_draft] * 3


def test_a_draft_is_one_line_of_a_schema_file():
    drafted = gn.Schema.draft(pa.table({"v": ["a", "b"]}))
    text = drafted.to_toml()
    assert text.startswith("draft = true\n\n[attributes.v]\n")
    assert gn.Schema.loads(text) == drafted != drafted.confirmed()
    plain = text.replace("draft = true\n", "")
    assert (
        gn.Schema.loads(plain) == drafted.confirmed() == gn.Schema.loads("draft = false\n" + plain)
    )
    with pytest.raises(SchemaError, match=r"^schema:1: draft: expected true or false"):
        gn.Schema.loads("draft = 1\n" + plain)
    with pytest.raises(SchemaError, match="is_draft to be true or false, got int"):
        gn.Schema([gn.Attribute("v", ["a"])], is_draft=1)


# One pass, in pieces.


def test_many_columns_are_read_in_one_pass():
    read = []

    def counted(frame):
        read.append(frame.width)
        return frame

    wide = pl.DataFrame({f"c{k}": [k, k + 1, None, 1.5] for k in range(400)}, strict=False)
    schema = wide.schema
    found = draft(wide.lazy().map_batches(counted, schema=schema, streamable=False))
    assert read == [400]
    assert len(found.attributes) == 400


ROWS, COLUMNS = 70_000, 20  # 1.4 million cells: two pieces


def engines(folder):
    table = pa.table({f"c{k}": np.arange(ROWS) + k for k in range(COLUMNS)})
    parquet.write_table(table, folder / "t.parquet")
    yield from (table, table.to_pandas(), pl.from_arrow(table), pl.from_arrow(table).lazy())
    yield from (duckdb.from_arrow(table), folder / "t.parquet")
    yield pytest.importorskip("dask.dataframe").from_pandas(table.to_pandas(), npartitions=3)
    yield pytest.importorskip("ibis").memtable(table)


def test_pieces_are_small_and_are_the_table(tmp_path):
    for table in engines(tmp_path):
        frame = open_table(table)
        found = list(pieces(frame, [f"c{k}" for k in range(COLUMNS)]))
        assert all(len(piece) * len(piece.columns) <= 2**20 for piece in found)
        values = np.concatenate([piece["c3"].to_numpy() for piece in found])
        assert sorted(values.tolist()) == list(range(3, ROWS + 3))


def test_drafts_do_not_depend_on_pieces(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    columns = {
        "number": rng.lognormal(3, 2, 500),
        "gaps": [None if k % 7 == 0 else float(k % 9) for k in range(500)],
        "text": rng.choice(["a", "b", "c"], 500),
        "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(k)) for k in range(500)],
        "person": [f"p{k // 3}" for k in range(500)],
    }
    table = pa.table(columns)
    csv.write_csv(table, tmp_path / "t.csv")
    tables = [table, table.to_pandas(), pl.from_arrow(table), tmp_path / "t.csv"]
    whole = [draft(one).to_toml() for one in tables]
    assert set(whole) == {whole[0]}
    monkeypatch.setattr("gaussnoise.tables.reading.pieces._CELLS", 5)
    monkeypatch.setattr("gaussnoise.tables.reading.pieces._FEWEST_ROWS", 70)
    assert [draft(one).to_toml() for one in tables] == whole


# Time zones.


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda t: t.to_pandas(), r"dt\.tz_localize\(None\) in pandas"),
        (pl.from_arrow, r"replace_time_zone\(None\) in polars"),
        (lambda t: t, r"local_timestamp\(column\) in pyarrow"),
        (duckdb.from_arrow, r"timezone\('Europe/Paris', column\) in duckdb"),
    ],
)
def test_time_zones_are_refused_with_what_to_do_in_the_engine_at_hand(make, hint):
    zoned = pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))})
    with pytest.raises(DataError, match=f"got Datetime.*local times.*{hint}"):
        gn.Schema.draft(make(zoned))


def test_dates_beyond_the_calendar_of_text_are_not_looked_at():
    far = pa.array([0, 2**62, -(2**62)], pa.timestamp("s"))
    attribute, _ = of(pa.table({"v": far}))
    assert attribute.edges == (datetime.date(1970, 1, 1), datetime.date(1970, 1, 31))
    assert attribute.other == "other or not stated"


def test_a_draft_as_a_document_says_what_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    as_file(["a", "b"], tmp_path)
    assert run(["schema", "t.csv", "-o", "s.toml"]) == 0
    for budget, expected in ((["--rho", "1"], True), ([], True)):
        capsys.readouterr()
        assert run(["plan", "-s", "s.toml", "-m", "1", "--json", *budget]) == 0
        assert json.loads(capsys.readouterr().out)["draft"] is expected


def test_numbers_beyond_every_double_decide_nothing_about_others(tmp_path):
    attribute, reason = of(as_file(["true", "1e400", "false"], tmp_path))
    assert attribute == gn.Attribute("v", [False, True], other="other or not stated")
    assert "Missing values count in the catch-all." in reason
    attribute, _ = of(as_file(["a", "1e400", "nan"], tmp_path))
    assert attribute == gn.Attribute("v", ["1e400", "a", "nan"])


def test_columns_of_pandas_without_names_of_text_are_left_out():
    found = draft(pd.DataFrame({"v": [1, 2], 7: [1, 2]}))
    assert found.schema.names == ("v",)
    assert "name that is text" in found.left_out[7]


def test_bins_of_integers_do_not_begin_below_one():
    days = [0] * 20 + list(range(40)) * 3 + [365, 1000]
    attribute, _ = of(pl.DataFrame({"v": days}))
    assert min(edge for edge in attribute.edges if edge > -math.inf) == 1


def test_numbers_with_another_decimal_mark_are_named_in_the_hint(untyped):
    lines = [f"{k}.5" for k in range(400)] + [f'"{k}.234,50"' for k in range(1, 9)]
    found = draft(untyped(lines))
    assert "expected numbers, got other texts in 8 of 408 rows" in found.left_out["v"]


@pytest.mark.parametrize("few", [True, False])
def test_columns_of_numbers_with_separators_of_thousands_are_named(untyped, few):
    marked = [f"{k % 40 if few else k} 234.50" for k in range(1, 301)]
    lines = [*marked, '"1,234.50"', "k.A.", *["900"] * 20]  # two marks of thousands: in doubt
    found = draft(untyped(lines))
    said = found.reasons["v"] if few else found.left_out["v"]
    assert "with separators of thousands or another decimal mark" in said
    assert "--thousands '.'" in said
    assert "--decimal ','" in said


@pytest.mark.parametrize(
    ("mark", "point"), [(".", ","), (",", "."), (" ", "."), ("'", "."), ("\u202f", ",")]
)
def test_marks_of_thousands_are_proposed_where_no_number_leaves_a_doubt(tmp_path, mark, point):
    """Numbers with both marks settle it; one like 12.34 beside them makes it doubtful again."""
    path = tmp_path / "t.csv"
    sure = [f"{k}{mark}234{point}5" for k in range(1, 300)] + ["7", f"8{mark}000"]
    for more, thousands in ((["9"], mark), ([f"12{mark}34"], None)):
        path.write_text("v;w\n" + "".join(f"{one};a\n" for one in more + sure), encoding="utf-8")
        found = draft(path)
        assert found.file.thousands == thousands
    path.write_text("v;w\n" + "".join(f"{one};a\n" for one in sure), encoding="utf-8")
    found = draft(path)
    assert found.file == gn.Dialect(";", point, thousands=mark)
    assert max(edge for edge in found.schema.attributes[0].edges if edge < math.inf) > 10_000
    assert f"with {mark!r} between thousands" in found.reasons["v"]
    assert gn.Schema.loads(found.to_toml()).file == found.file


# (column, whether its numbers have decimal commas)
DECIMALS = {
    "after many whole numbers": ([*range(100, 600)] + [f"{k},5" for k in range(40)], True),
    "of three digits": ([f"{k % 5},{k:03}" for k in range(500)], True),
    "beside texts": ([f"{k},5" for k in range(500)] + ["k.A."] * 4, True),
    "quoted": ([f'"{k},25"' for k in range(500)], True),
    "beside thousands": ([f"{k},5" for k in range(400)] + ["1.234"] * 3, False),
    "in doubt": ([f"{k},{k:03}" for k in range(100, 600)], False),
}


@pytest.mark.parametrize("which", DECIMALS)
def test_decimal_commas_are_proposed_as_numbers_where_they_are_no_marks_of_thousands(
    tmp_path, which
):
    values, are_numbers = DECIMALS[which]
    mark = "," if which == "quoted" else ";"
    lines = "".join(f"{'FM'[k % 2]}{mark}{value}\n" for k, value in enumerate(values))
    (tmp_path / "t.csv").write_text(f"sex{mark}pay\n{lines}", encoding="utf-8")
    found = draft(tmp_path / "t.csv").schema
    assert run(["schema", str(tmp_path / "t.csv"), "-o", str(tmp_path / "s.toml")]) == 0
    assert gn.Schema.load(tmp_path / "s.toml") == found
    assert ("pay" in found.names) == are_numbers
    if are_numbers:
        assert found.file.decimal == ","
        assert found.attributes[1].edges is not None
    else:
        assert "--decimal ','" in draft(tmp_path / "t.csv").left_out["pay"]


def test_numbers_with_one_mark_alone_propose_no_mark_of_thousands(tmp_path):
    (tmp_path / "t.csv").write_text("v;w\n" + "".join(f"{k}.234;a\n" for k in range(300)))
    assert draft(tmp_path / "t.csv").file == gn.Dialect(";")


@pytest.mark.parametrize(
    ("text", "separated"),
    [
        *((text, True) for text in ("1,5", "1.234,5", "1,234.50", "-1 234", "1\u202f234,5")),
        *((text, True) for text in ("1'234.50", "1.234.567", " 12,345,678 ")),
        *((text, False) for text in ("a,b", "1.2.3", "31.12.2020", "1;5", "12 34", "k.A.")),
    ],
)
def test_texts_are_compared_with_the_same_pattern_in_arrow_and_python(text, separated):
    for table in (pa.table({"v": [text, "x"] * 2}), pd.DataFrame({"v": [text, "x"] * 2})):
        seen = Seen(nw.String(), Form.TYPED, named=False)
        if isinstance(table, pd.DataFrame):
            seen = Seen(nw.Object(), Form.UNTYPED, named=False)
        seen.add(nw.from_native(table, eager_only=True)["v"])
        assert seen._separated == (2 if separated else 0)


@pytest.mark.parametrize("kind", ["csv", "pandas", "pyarrow"])
@pytest.mark.parametrize("values", [range(900, 1100), [f"a{k}" for k in range(200)]])
def test_a_column_without_any_value_twice_is_an_identifier(tmp_path, kind, values):
    table = pa.table({"Pers_Nr": list(values), "Pay": [k / 7 for k in range(200)]})
    if kind == "csv":
        csv.write_csv(table, tmp_path / "t.csv")
    found = draft({"csv": tmp_path / "t.csv", "pandas": table.to_pandas()}.get(kind, table))
    assert found.schema.names == ("Pay",)
    assert "looks like an identifier, or the person" in found.left_out["Pers_Nr"]
    assert "--person Pers_Nr" in found.left_out["Pers_Nr"]
    assert ("Pers_Nr" in found.instead) == isinstance(values, range)
    twice = table.set_column(0, "Pers_Nr", pa.array([*values[:-1], values[0]]))
    assert "looks like" not in draft(twice).to_toml()


def test_nines_are_asked_about():
    _, reason = of(pl.DataFrame({"v": [*range(1000, 1400), 1399, 999_999]}))
    assert "999999 may be a code for no answer." in reason
    assert "If so, add the line missing = [999999]" in reason


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        ("March January February", "January February March"),
        ("Feb Jan. mar February", "Jan. Feb February mar"),
        ("Oktober Mai Dezember März", "März Mai Oktober Dezember"),
        ("Sunday Monday Tuesday", "Monday Tuesday Sunday"),
        ("May April Mayor", "April May Mayor"),  # not all are months
        ("b a c", "a b c"),
    ],
)
def test_names_of_months_and_days_are_in_the_order_of_the_calendar(texts, order):
    attribute, _ = of(pl.DataFrame({"v": texts.split() * 20}))
    assert attribute.categories == tuple(order.split())


@pytest.mark.parametrize("kind", [str, "category"])
def test_the_frequent_spelling_names_a_category_whatever_its_type(kind):
    texts = pd.Series(["male"] * 50 + ["Male "] * 2 + ["female"] * 48).astype(kind)
    attribute, _ = of(pd.DataFrame({"v": texts}))
    assert attribute.categories == ("female", "male")


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(pd.Categorical(["b", "c", "a"] * 20, ["c", "a", "b"], ordered=True)),
        pl.Series(["b", "c", "a"] * 20, dtype=pl.Enum(["c", "a", "b", "unused"])),
    ],
)
def test_an_ordered_type_keeps_its_order(values):
    frame = pl.DataFrame if isinstance(values, pl.Series) else pd.DataFrame
    attribute, _ = of(frame({"v": values}))
    assert attribute.categories == ("c", "a", "b")


@pytest.mark.parametrize(
    "order",
    [
        ["1-9", "10-49", "50-249", "250+", "none"],
        ["<5", "5-9", "10-14", "65+"],
        ["under 18", "18 to 64", "65 and over"],
        ["bis 499", "500 - 999", "1.000 - 4.999", "10,000 or more", "over 20000"],
        ["Ward 2", "Ward 2b", "Ward 10"],
        ["A00.12", "A00.123", "A01"],
        ["7", "007a", "x"],
    ],
)
def test_numbers_in_texts_are_in_the_order_of_their_size(order):
    attribute, _ = of(pl.DataFrame({"v": sorted(order) * 20}))
    assert attribute.categories == tuple(order)


@pytest.mark.parametrize(
    ("name", "is_person"),
    [
        ("patientid", True),
        ("Kundennr", True),
        ("Betrieb-Nr", True),
        ("company id", True),
        ("Personen-Nr", True),
        ("Nr. of Kinder", False),
        ("Patientennummer", True),
        ("customer_no", True),
        ("Kunden", False),  # perhaps their number
        ("casino", False),
        ("number", False),
        ("Hausnummer", False),
    ],
)
def test_names_of_columns_that_mean_persons(name, is_person):
    assert may_be_person(name) is is_person


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars"])
@pytest.mark.parametrize(
    ("more", "apart"),
    [
        (["9999-12-31"], "9999-12"),
        (["1900-01-01", "0001-01-01"], "0001-01, 1900-01"),
        (["2035-12-31", "1900-02-01"], ""),
    ],
)
def test_edges_are_drafted_without_months_that_often_stand_for_no_date(tmp_path, kind, more, apart):
    days = [f"2023-{month:02}-15" for month in range(1, 13)] * 20

    def drafted(texts):
        dates = [datetime.date.fromisoformat(text) for text in texts]
        (tmp_path / "t.csv").write_text("v\n" + "".join(f"{text}\n" for text in texts))
        frames = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
        return of(frames[kind]({"v": dates}) if kind in frames else tmp_path / "t.csv")

    plain, _ = drafted(days)
    attribute, reason = drafted([*days, *more])
    assert (attribute.edges == plain.edges) is bool(apart)
    assert (f"{apart} may stand for no date, and counts in the catch-all" in reason) is bool(apart)
    assert attribute.other == ("other or not stated" if apart else None)
    assert drafted(["9999-12-31"] * 3)[0].edges[0] == datetime.date(9999, 12, 1)


AGES = [*range(18, 90)] * 3


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "floats"])
@pytest.mark.parametrize(
    ("numbers", "codes"),
    [
        (AGES, ""),
        ([*AGES, 999], "999"),
        ([*AGES, -1, -9, 998, 999], "-9, -1, 998, 999"),
        ([*AGES, *range(90, 100)], ""),  # 97 to 99 are ages here
        ([k / 8 for k in AGES] + [99], "99"),  # of a scale up to 11
        ([*AGES, -1, -12, -20], ""),  # degrees, where -1 is one of many below zero
        ([*AGES, 150], ""),  # far away, but no code
    ],
)
def test_edges_are_drafted_without_suspected_codes(tmp_path, kind, numbers, codes):
    """They are those of the same numbers without these, and the comment has a line for each."""

    def drafted(values):
        if kind == "csv":
            (tmp_path / "t.csv").write_text("v\n" + "".join(f"{value}\n" for value in values))
            return of(tmp_path / "t.csv")
        numpy = np.array(values, dtype=float if kind == "floats" else None)
        return of((pd if kind == "pandas" else pl).DataFrame({"v": numpy}))

    attribute, reason = drafted(numbers)
    suspected = [int(code) for code in codes.split(", ")] if codes else []
    plain, _ = drafted([value for value in numbers if value not in suspected])
    assert attribute.edges == plain.edges
    added = f'add the line missing = [{codes}], and other = "other or not stated"'
    assert (added in reason) is bool(codes)
    assert ("may be" in reason) is bool(codes)


REGISTER = 'Register of residents\n\nno;sex;born;pay\n' + "".join(
    f"{k};{'FM'[k % 2]};{k % 28 + 1:02}.01.19{k % 90 + 10};{k * 7 % 5000},{k % 90 + 10}\n"
    for k in range(400)
) + "400;F;13.01.1980;k.A.\n"  # fmt: skip


def test_a_draft_says_which_lines_are_no_table(tmp_path):
    (tmp_path / "t.csv").write_text(REGISTER, encoding="utf-8")
    found = draft(tmp_path / "t.csv")
    assert found.file == gn.Dialect(";", ",", date_format="dd.MM.yyyy", skip=2)
    text = found.to_toml()
    assert "# The first 2 lines are no table: they are skipped\n[file]\n" in text
    assert "Register" not in text
    assert gn.Schema.loads(text).file == found.file
    assert [*gn.Schema.loads(text).names, *found.left_out] == ["sex", "born", "pay", "no"]
    assert gn.Dialect(skip=1).skipped == "The first line is no table: it is skipped"
    assert gn.Dialect().skipped == ""


def test_texts_among_numbers_are_shown_as_the_file_has_them(tmp_path):
    (tmp_path / "t.csv").write_text(REGISTER, encoding="utf-8")
    assert 'no numbers count in the catch-all: "k.A.".' in draft(tmp_path / "t.csv").reasons["pay"]


@pytest.mark.parametrize("rows", [["a b c"] * 3, [f"line {k}, of one" for k in range(400)]])
def test_a_file_of_one_column_may_be_written_otherwise(tmp_path, rows):
    """It may have a delimiter that is not found, or lines before the names."""
    lines = ["Title", *(f"{row} {k}" for k, row in enumerate(rows)), *map(str, range(400))]
    (tmp_path / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        gn.Schema.draft(gn.Dialect("~").table(tmp_path / "t.csv"))
    said = str(caught.value)
    assert "the file has one column only; if it should have more" in said
    assert "delimiter = " in said
    assert "skip = 2 in the schema's [file], --skip 2, or Dialect(skip=2)" in said
    assert "leave" not in said
    with pytest.raises(DataError, match="leave"):  # a data frame has no delimiter
        gn.Schema.draft(pd.DataFrame({"Title": lines[1:]}))


@pytest.mark.parametrize("stated", [gn.Dialect(";"), gn.Dialect(";", date_format="dd.MM.yyyy")])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (REGISTER, "expected 1 field in every record, as there are column names, got 4 in line 3;"),
        ("a;b\n1;2\n\n1;2;CANARY\n", "expected 2 fields .*, got 3 in line 4; .* skip = 3 in"),
        ('a;b\n"1\n\n";2\nCANARY\n', "expected 2 fields .*, got 1 in line 5; hint: write as many$"),
    ],
)
def test_a_record_of_too_many_fields_is_named_by_its_line(tmp_path, stated, text, told):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    calls = [lambda: gn.Schema.draft(stated.table(tmp_path / "t.csv"))]
    if text is not REGISTER:  # in it, the lines before the names are found
        calls.append(lambda: sniffed(tmp_path / "t.csv", gn.Dialect(";")))
    for call in calls:
        with pytest.raises(DataError, match=told) as caught:
            call()
        assert "withheld" not in str(caught.value)
        assert "CANARY" not in str(caught.value)


def test_records_are_not_counted_by_an_empty_first_line(tmp_path):
    (tmp_path / "t.csv").write_text("\n\n1;CANARY\n", encoding="utf-8")
    with pytest.raises(DataError, match="expected a first line of column names") as caught:
        gn.Schema.draft(gn.Dialect(";").table(tmp_path / "t.csv"))
    assert "CANARY" not in str(caught.value)


def test_categories_of_text_are_as_the_file_has_them(tmp_path):
    """Also in columns in which most texts are numbers or dates: a release compares text."""
    texts = [f"{text};u{k}" for k in range(12) for text in ("o.B.", "n.v.", "1.")]
    numbers = [f"{k % 3},5;{k % 28 + 1:02}.01.2023" for k in range(60)]
    more = "".join(f"{k},5;x\n" for k in range(300))
    (tmp_path / "t.csv").write_text("a;b\n" + "\n".join(numbers + texts), encoding="utf-8")
    stated = gn.Dialect(";", ",", date_format="dd.MM.yyyy")
    found = draft(stated.table(tmp_path / "t.csv"))
    assert set(found.attributes[0].categories) == {"0,5", "1,5", "2,5", "o.B.", "n.v.", "1."}
    assert "01.01.2023" in found.attributes[1].categories
    plan = gn.plan(found.schema.confirmed(), 1, gn.zCDP(1))
    assert plan.check(tmp_path / "t.csv").left_out == 0
    (tmp_path / "t.csv").write_text("a;b\n" + more, encoding="utf-8")
    assert draft(stated.table(tmp_path / "t.csv")).attributes[0].edges is not None


def test_lines_that_are_skipped_are_counted_in_the_number_of_a_line(tmp_path):
    (tmp_path / "t.csv").write_text("sep=;\nT\na;b\n1;2\n1;2;3\n", encoding="utf-8")
    with pytest.raises(DataError, match="got 3 in line 5"):
        gn.Schema.draft(gn.Dialect(";", skip=2).table(tmp_path / "t.csv"))
    (tmp_path / "t.csv").write_text("sep=;\na;b\n1;2\n1;2;3\n", encoding="utf-8")
    with pytest.raises(DataError, match="got 3 in line 4"):
        gn.Schema.draft(gn.Dialect(";").table(tmp_path / "t.csv"))


@pytest.mark.parametrize(
    ("twice", "said"),
    [(0, "every row has its own value;"), (5, "nearly every row has"), (50, "several rows have")],
)
def test_a_draft_says_how_often_a_person_has_several_rows(twice, said):
    persons = [f"p{k}" for k in range(100)]
    reason = draft(pd.DataFrame({"resident no": persons + persons[:twice]})).left_out["resident no"]
    assert f"looks like the person that a row belongs to: {said}" in reason
