"""Tests of categories without a public list: counts in every engine, selection, the ledger."""

import contextlib
import decimal
import json
import shlex
import tomllib
from collections import Counter

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import (
    BudgetError,
    CertificateError,
    DataError,
    LedgerError,
    ParameterError,
    SchemaError,
)
from gaussnoise.tables.counting.frequencies import count_values
from gaussnoise.tables.counting.persons import PersonLimit

pytestmark = [
    pytest.mark.filterwarnings("ignore:Dask support is moving out of Narwhals:FutureWarning"),
    *(
        pytest.mark.filterwarnings(rf"ignore::{kind}:{module}(\..*)?")
        for kind in ("DeprecationWarning", "FutureWarning", "UserWarning")
        for module in ("dask", "ibis")
    ),
]

BUDGET = gn.ApproxDP(1.0, 1e-6)
WORDS = ["nurse"] * 300 + ["Nurse"] * 5 + ["é"] * 3 + ["e\u0301"] * 2 + ["", "NA", "a,b"] + [None]
NUMBERS = [7] * 300 + [-3] * 200 + [2**53 - 1, 0, None]
SECRET = "only-one-person"
UNTYPED = ("pandas", "pandas objects", "dask")  # where rows decide whether "NA" is a null


def engines(tmp_path, values, kind, **others):
    """Return one column, and others, in every table type that can hold it."""
    table = pa.table({"v": pa.array(values, type=kind), **others})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    connection = duckdb.connect()
    yield "pyarrow", table
    yield "polars", pl.from_arrow(table)
    yield "polars lazy", pl.from_arrow(table).lazy()
    yield "duckdb", connection.from_arrow(table)
    yield "parquet", tmp_path / "t.parquet"
    yield "pandas", table.to_pandas(types_mapper=pd.ArrowDtype)
    yield "pandas objects", pd.DataFrame({"v": pd.Series(values, dtype=object), **others})
    yield "dask", dask.dataframe.from_pandas(table.to_pandas(), npartitions=3)


@pytest.mark.parametrize(("values", "kind"), [(WORDS, pa.string()), (NUMBERS, pa.int64())])
def test_engines_count_the_same(tmp_path, values, kind):
    expected = {v: n for v, n in Counter(values).items() if v is not None}
    for name, table in engines(tmp_path, values, kind):
        found = count_values(table, "v", 100)
        known = expected.keys() - ({"", "NA"} if name in UNTYPED else ())
        assert found == {value: expected[value] for value in known}, name
        assert {type(v) for v in found} == {type(values[0])}, name


@pytest.mark.parametrize(("values", "kind"), [(WORDS, pa.string()), (NUMBERS, pa.int64())])
def test_engines_count_some_rows_of_each_person(tmp_path, values, kind):
    """All engines choose the same rows with the same key, in any order."""
    key, people = bytes(16), [k % 97 for k in range(len(values))]
    order = np.random.default_rng(0).permutation(len(values))
    by_person = Counter(p for p, v in zip(people, values, strict=True) if v is not None)
    known = {}
    for number, moved in enumerate((range(len(values)), order)):
        own = [values[k] for k in moved]
        (folder := tmp_path / str(number)).mkdir()
        for name, table in engines(folder, own, kind, who=[people[k] for k in moved]):
            for rows in (1, 2, 10**6):
                found = count_values(table, "v", 100, PersonLimit("who", rows, key))
                assert known.setdefault((rows, name in UNTYPED), found) == found, name
    assert known[10**6, False] == {v: n for v, n in Counter(values).items() if v is not None}
    for rows in (1, 2):
        assert sum(known[rows, False].values()) == sum(min(n, rows) for n in by_person.values())


def test_one_person_changes_no_row_of_others():
    """This holds also where values vanish that no other person has."""
    rng = np.random.default_rng(1)
    everyone = pd.DataFrame(
        {"who": rng.integers(40, size=400), "v": rng.choice([f"w{k}" for k in range(600)], 400)}
    )
    for key in range(20):
        limit = PersonLimit("who", 3, key.to_bytes(16, "big"))
        counts = [
            Counter(count_values(table, "v", 1000, limit))
            for table in (everyone, everyone[everyone["who"] != 7])
        ]
        assert not counts[1] - counts[0]
        assert 1 <= (counts[0] - counts[1]).total() <= 3
    free = [
        Counter(count_values(table, "v", 1000))
        for table in (everyone, everyone[everyone["who"] != 7])
    ]
    assert (free[0] - free[1]).total() > 3  # without the limit, one person would change more


def test_every_row_of_a_person_is_drawn_equally_often():
    table = pd.DataFrame({"who": ["a"] * 5 + ["b"], "v": ["p", "q", "r", "s", "s", "t"]})
    drawn = Counter()
    for _ in range(500):
        drawn.update(count_values(table, "v", 10, PersonLimit("who", 2)))
    assert drawn["t"] == 500
    for value, rows in {"p": 1, "q": 1, "r": 1, "s": 2}.items():
        assert abs(drawn[value] - 200 * rows) < 8 * 11 * rows  # eight standard deviations


def test_rows_without_a_value_or_a_person_are_passed_over():
    table = pd.DataFrame({"who": ["a", None, "", "b", "a"], "v": ["p", "p", "p", None, "p"]})
    assert count_values(table, "v", 10, PersonLimit("who", 1)) == {"p": 1}
    assert count_values(table[:0], "v", 10, PersonLimit("who", 1)) == {}
    with pytest.raises(DataError, match="expected ones is missing: 'whom'"):
        count_values(table, "v", 10, PersonLimit("whom", 1))


def test_persons_share_a_ledger_with_their_tables(tmp_path):
    table = pa.table({"who": range(900), "v": ["nurse"] * 899 + [SECRET]})
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(1), delta=1e-5)
    options = {"person": "who", "rows_per_person": 2}
    found = gn.discover_categories(
        table, "v", gn.ApproxDP(2, 1e-5), ledger=ledger, id="names", **options
    )
    assert found.categories == ("nurse",)
    schema = gn.Schema([found.attribute()])
    gn.plan(schema, 1, gn.zCDP(0.1), **options).release(
        table, ledger=ledger, id="t", out=tmp_path / "o"
    )
    assert len(ledger.entries()) == 2
    with pytest.raises(LedgerError):
        gn.discover_categories(
            table, "v", gn.ApproxDP(1, 1e-6), ledger=ledger, id="rows", rows_per_person=2
        )


def test_files_of_text_are_counted_as_their_bytes_say(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,v\n1,3\n2,03\n3,3\n4,\n5,""\n6,NA\n7,"a\nb"\n8, 3\n', encoding="utf-8")
    expected = {"3": 2, "03": 1, "": 1, "NA": 1, "a\nb": 1, " 3": 1}
    assert count_values(path, "v", 100) == expected


def test_dictionaries_are_text():
    words = ["x", "y", "x", None]
    assert count_values(pl.DataFrame({"v": pl.Series(words, dtype=pl.Categorical)}), "v", 9) == {
        "x": 2,
        "y": 1,
    }
    for table in (
        pa.table({"v": pa.array(words).dictionary_encode()}),
        pd.DataFrame({"v": pd.Categorical(words)}),
    ):
        assert count_values(table, "v", 9) == {"x": 2, "y": 1}


def test_no_collation_brings_values_together():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (v VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO t VALUES ('a'), ('A'), ('A')")
    assert count_values(connection.table("t"), "v", 9) == {"a": 1, "A": 2}


def test_one_object_does_not_rename_those_equal_to_it():
    """Python and pandas use one key for True, 1 and 1.0, named after the first of them."""
    odd = [True, 1, 1.0, np.int8(1), np.float64(2), 2.5, np.nan, None, decimal.Decimal(3), "1"]
    odd += [[1], "\ud800", 2**70, np.timedelta64(1, "s"), complex(1)]
    # True, 1, "1" and complex(1) are one value; from 2**53 on there is none
    expected = {1: 6, 2: 1, 3: 1, "2.5": 1}
    for values in (odd, odd[::-1]):
        table = pd.DataFrame({"v": pd.Series(values, dtype=object), "who": 3})
        assert count_values(table, "v", 99) == expected
        assert count_values(table, "v", 99, PersonLimit("who", 99)) == expected
    assert count_values(pd.DataFrame({"v": [1.0, np.nan, 1.0, 0.5]}), "v", 9) == {1: 2, "0.5": 1}


def messages(error):
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("table", "column", "most", "part"),
    [
        (pa.table({"v": [SECRET]}), "w", 9, "is missing: 'w'"),
        (pa.table({"v": [0.5]}), "v", 9, "text or integers, got Float64"),
        (pl.DataFrame({"v": [True]}), "v", 9, "got Boolean"),
        (pa.table({"v": [SECRET, "b", "c"]}), "v", 2, "at most 2 distinct values"),
        (pl.LazyFrame({"v": [SECRET, "b", "c"]}), "v", 2, "at most 2 distinct values"),
        (3, "v", 9, "expected a dataframe"),
    ],
)
def test_tables_without_such_a_column_are_refused(table, column, most, part):
    with pytest.raises(DataError, match=part) as caught:
        count_values(table, column, most)
    assert not any(SECRET in text for text in messages(caught.value))


def test_engines_that_cannot_compare_bytes_are_refused():
    ibis = pytest.importorskip("ibis")
    backend = ibis.duckdb.connect()
    backend.con.execute("CREATE TABLE t AS SELECT 'a' AS v")
    with pytest.raises(DataError, match="Parquet"):
        count_values(backend.table("t"), "v", 9)


JOBS = {"job": [SECRET, "other"] + ["nurse"] * 500 + ["baker"] * 400 + [None] * 3}


def test_frequent_values_become_an_attribute():
    found = gn.discover_categories(pa.table(JOBS), "job", BUDGET)
    assert found.categories == ("baker", "nurse")
    assert found.counts == pytest.approx((400, 500), abs=7 * found.standard_deviation)
    attribute = found.attribute()
    assert attribute.labels == ("baker", "nurse", "other")
    parsed = gn.Schema.loads(found.to_toml()).attributes[0]
    assert parsed.labels == attribute.labels
    for text in (str(found), repr(found), found.to_toml(), found.to_json()):
        assert SECRET not in text
    assert "biased upwards" in found.note
    assert f"fewer than about {found.threshold:.0f} rows" in str(found)
    plan = gn.plan(gn.Schema([attribute]), 1, gn.zCDP(1))
    counts = plan.release(pa.table(JOBS), on_outside="drop")["job"].estimate
    assert counts[2] == pytest.approx(5, abs=20)  # the count of hidden values and nulls


def test_budgets_are_split_between_noise_and_threshold():
    found = gn.discover_categories(pa.table(JOBS), "job", BUDGET)
    whole = gn.ApproxDP(1.0, 0.5e-6).to_zcdp(10**7).rho
    assert whole * (1 - 1e-9) <= found.rho <= whole
    assert 0.49e-6 <= found.delta <= 0.5e-6
    persons = gn.discover_categories(pa.table(JOBS), "job", BUDGET, rows_per_person=5)
    assert persons.standard_deviation == pytest.approx(5 * found.standard_deviation)
    exchanged = gn.discover_categories(pa.table(JOBS), "job", BUDGET, neighbors="replace")
    assert exchanged.standard_deviation == pytest.approx(2**0.5 * found.standard_deviation)


def test_integers_are_sorted_as_such_and_are_text_beside_text():
    values = [10] * 300 + [9] * 300
    assert gn.discover_categories(pa.table({"v": values}), "v", BUDGET).categories == (9, 10)
    mixed = pd.DataFrame({"v": pd.Series([*values, *(["x"] * 300)], dtype=object)})
    assert gn.discover_categories(mixed, "v", BUDGET).categories == ("10", "9", "x")


FORMULAS = ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1")


def test_what_spreadsheets_would_run_is_left_out_where_that_is_asked_for(tmp_path):
    """Only the first character of a text decides: the number -1 stays."""
    kept = (" =1", "'=1", "1-1", "a@b", "=")
    table = pa.table({"v": [*FORMULAS, *kept] * 300})
    found = gn.discover_categories(table, "v", BUDGET)
    assert found.categories == tuple(sorted([*FORMULAS, *kept]))
    dropped = gn.discover_categories(table, "v", BUDGET, on_formula="drop")
    assert dropped.categories == tuple(sorted(kept[:-1]))
    assert [one.privacy["on_formula"] for one in (found, dropped)] == ["show", "drop"]
    assert [("formulas" in text) for text in (str(found), dropped.to_toml())] == [False, True]
    numbers = pa.table({"v": [-1, 1] * 300})
    assert gn.discover_categories(numbers, "v", BUDGET, on_formula="drop").categories == (-1, 1)
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(1.0), delta=1e-6)
    under = {"ledger": ledger, "id": "v"}
    again = [
        gn.discover_categories(table, "v", BUDGET, on_formula="drop", **under) for _ in range(2)
    ]
    assert again[0].to_json() == again[1].to_json()
    with pytest.raises(LedgerError, match="another on_formula"):
        gn.discover_categories(table, "v", BUDGET, **under)


def test_names_of_the_catch_all_stay_free():
    found = gn.discover_categories(pa.table({"v": ["other"] * 300}), "v", BUDGET)
    assert found.attribute().labels == ("other", "other_")


def test_nothing_frequent_is_said_and_hides_how_many_there_are():
    tables = ({"v": [SECRET]}, {"v": [SECRET, "b", "c"]}, {"v": pa.array([], pa.string())})
    found = [gn.discover_categories(pa.table(table), "v", BUDGET) for table in tables]
    assert len({one.to_json() for one in found}) == 1
    assert tomllib.loads(found[0].to_toml()) == {}
    with pytest.raises(ParameterError, match="larger budget"):
        found[0].attribute()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"privacy": gn.zCDP(1.0)}, "ApproxDP"),
        ({"privacy": gn.PureDP(1.0)}, "ApproxDP"),
        ({"privacy": gn.ApproxDP(1.0, 1e-40)}, "."),
        ({"rows_per_person": 0}, "rows_per_person"),
        ({"rows_per_person": True}, "rows_per_person"),
        ({"neighbors": "both"}, "neighbors"),
        ({"on_formula": True}, "on_formula"),
        ({"column": 3}, "column"),
        ({"id": "x"}, "together"),
    ],
)
def test_bad_requests_are_refused_before_the_table_is_read(monkeypatch, change, part):
    monkeypatch.setattr("gaussnoise.tables.counting.frequencies.count_values", None)
    arguments = {"table": pa.table(JOBS), "column": "job", "privacy": BUDGET} | change
    with pytest.raises(ParameterError, match=part):
        gn.discover_categories(**arguments)
    with pytest.raises(SchemaError, match="name other than"):
        gn.discover_categories(pa.table({"low": ["a"]}), "low", BUDGET)


def test_files_hold_everything(tmp_path):
    found = gn.discover_categories(pa.table(JOBS), "job", BUDGET)
    found.save(tmp_path / "f.json")
    again = gn.results.Categories.load(tmp_path / "f.json")
    assert again.to_json() == found.to_json()
    assert again.categories == found.categories
    record = json.loads(found.to_json())
    for damage in ({"categories": ["a", 1]}, {"counts": []}, {"format": "x"}, {"threshold": None}):
        (tmp_path / "bad.json").write_text(json.dumps(record | damage))
        with pytest.raises(CertificateError):
            gn.results.Categories.load(tmp_path / "bad.json")


def test_a_ledger_is_charged_once(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(1.0), delta=1e-6)

    def ask(id="jobs"):
        return gn.discover_categories(pa.table(JOBS), "job", BUDGET, ledger=ledger, id=id)

    assert ask().to_json() == ask().to_json()
    assert ledger.spent_delta == pytest.approx(0.5e-6)
    assert ledger.spent == pytest.approx(ask().rho)
    plan = gn.plan(gn.Schema([ask().attribute()]), 1, gn.zCDP(0.1))
    plan.release(pa.table(JOBS), out=tmp_path / "out", ledger=ledger, id="table", on_outside="drop")
    ask("again")
    with pytest.raises(BudgetError, match="delta"):
        ask("too much")
    none = gn.Ledger.create(tmp_path / "none", gn.zCDP(1.0))
    with pytest.raises(BudgetError, match="delta="):
        gn.discover_categories(pa.table(JOBS), "job", BUDGET, ledger=none, id="jobs")
    assert not none.entries()


def test_the_command_prints_a_schema(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(FileExistsError):
        pl.DataFrame(JOBS).write_csv("t.csv")

    def call(line):
        status = run(shlex.split(line))
        return status, *capsys.readouterr()

    status, shown, _ = call("categories t.csv job --epsilon 1 --delta 1e-6")
    assert status == 0
    assert gn.Schema.loads(shown).attributes[0].labels == ("baker", "nurse", "other")
    assert call("categories t.csv job --epsilon 1 --delta 1e-6 -o s.toml")[0] == 0
    assert gn.Schema.load("s.toml").names == ("job",)
    found = call("categories t.csv job --epsilon 1 --delta 1e-6 --on-formula drop --json")[1]
    assert json.loads(found)["privacy"]["on_formula"] == "drop"
    status, _, error = call("categories t.csv job --epsilon 1 --delta 1e-6 -o s.toml")
    assert (status, "exists already" in error) == (1, True)
    assert call("ledger create l --rho 1 --delta 1e-6")[0] == 0
    options = "--epsilon 1 --delta 1e-6 --ledger l --id jobs"
    assert call(f"categories t.csv job {options}") == call(f"categories t.csv job {options}")
    shown = call("ledger show l")[1]
    assert "delta of thresholds 1e-06, spent 5e-07, left 5e-07" in shown
    assert "epsilon at delta 2e-06" in shown
    assert call("ledger show l --delta 1e-6")[0] == 1
    assert call("categories t.csv nothing --epsilon 1 --delta 1e-6")[0] == 1
    people = {"who": [k % 400 for k in range(len(JOBS["job"]))]}
    pl.DataFrame(JOBS | people).write_csv("p.csv")
    of_persons = "--person who --rows-per-person 2 --json"
    status, shown, _ = call(f"categories p.csv job --epsilon 2 --delta 1e-6 {of_persons}")
    assert status == 0
    unit = "one person (column 'who'), of whom at most 2 rows are counted"
    assert json.loads(shown)["privacy"]["unit"] == unit
