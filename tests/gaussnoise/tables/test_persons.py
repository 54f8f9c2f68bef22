"""At most k rows of each person are counted, chosen by that person's rows alone."""

import datetime
import decimal
import itertools
import math
from collections import Counter

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import gaussnoise as gn
from gaussnoise.cli import app
from gaussnoise.errors import DataError, ParameterError
from gaussnoise.solvers.tables.residuals import part_of
from gaussnoise.tables.counting import persons as _persons
from gaussnoise.tables.counting import records as _records
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.impossible import excluded
from gaussnoise.tables.counting.persons import PersonLimit
from gaussnoise.tables.reading.persons import People, people_of
from gaussnoise.tables.reading.values import Form
from gaussnoise.tables.release.text import release_text

KEY = bytes(range(16))


PANDAS = {
    "pandas objects": lambda table, _: table.to_pandas().astype({"who": object}),
    "pandas categorical": lambda table, _: table.to_pandas().astype({"who": "category"}),
}
ENGINES = "dask", "pandas", *PANDAS, "polars", "polars lazy", "pyarrow", "duckdb", "csv", "parquet"


# warnings of dask itself
DASK = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


@pytest.fixture(
    params=[pytest.param(name, marks=DASK if name == "dask" else ()) for name in ENGINES]
)
def build(request, engines, tmp_path):
    return lambda columns: (engines | PANDAS)[request.param](pa.table(columns), tmp_path)


def x_of(size):
    return gn.Attribute("x", range(size))


def records_table(records):
    who, x = zip(*records, strict=True) if records else ((), ())
    return pa.table({"who": pa.array(who, pa.string()), "x": pa.array(x, pa.int64())})


def counted(table, size, limit, on_outside="refuse"):
    ((_, counts),) = count_marginals(table, [x_of(size)], [(0,)], on_outside, limit)
    return counts


# What one person can change.


def in_arrays(records, rows):
    who, x = np.array([("abc".index(w), x) for w, x in records], dtype=np.int64).reshape(-1, 2).T
    people = People(who, lambda wanted: [b"abc"[k : k + 1] for k in wanted])
    (kept,) = _persons.limited_arrays([x], people, PersonLimit("who", rows, KEY))
    return np.bincount(kept, minlength=3)


def in_duckdb(records, rows):
    table = duckdb.from_arrow(records_table(records))
    return counted(table, 3, PersonLimit("who", rows, KEY))


def histories(most):
    """All rows that a person may have, up to their order."""
    return [
        rows
        for number in range(most + 1)
        for rows in itertools.combinations_with_replacement(range(3), number)
    ]


def largest_changes(count, sets, rows):
    """The most rows that change when one person is added anywhere to the rows of two others."""
    rng = np.random.default_rng(0)
    for first, second, added in sets:
        others = [("a", x) for x in first] + [("b", x) for x in second]
        more = others + [("c", x) for x in added]
        before = count([others[i] for i in rng.permutation(len(others))], rows)
        after = count([more[i] for i in rng.permutation(len(more))], rows)
        yield int(np.abs(after - before).sum()), (after - before).min(), len(added)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_for_every_small_table_one_person_adds_rows_and_moves_none(rows):
    """This is exactly what the sensitivity is based on, for a fixed key and any order of rows."""
    sets = itertools.product(histories(3), histories(2), histories(4)[:: 4 - rows])
    for change, least, number in largest_changes(in_arrays, sets, rows):
        assert change == min(number, rows)
        assert least >= 0


@pytest.mark.parametrize("rows", [1, 2])
def test_so_does_sql(rows):
    everything = list(itertools.product(histories(3), histories(2), histories(4)))
    rng = np.random.default_rng(rows)
    sets = [everything[k] for k in rng.integers(len(everything), size=25)]
    for change, least, number in largest_changes(in_duckdb, sets, rows):
        assert change == min(number, rows)
        assert least >= 0


def test_a_rule_that_looks_at_others_is_told_apart(monkeypatch):
    """Places by position in the file are the negative control."""
    monkeypatch.setattr(
        _persons, "_mixed", lambda words: np.arange(len(words), dtype=np.uint64)[::-1]
    )
    sets = itertools.product(histories(3), histories(2), histories(2))
    changes = list(largest_changes(in_arrays, sets, 1))
    assert any(change > min(number, 1) for change, _, number in changes)


# What is counted.


def test_every_engine_counts_at_most_k_rows_of_each_person(build):
    rng = np.random.default_rng(0)
    who = [None if k == 0 else f"p{k}" for k in rng.integers(0, 30, size=400)]
    x = rng.integers(0, 4, size=400)  # 3 is outside
    table = build({"who": pa.array(who, pa.string()), "x": x})
    fitting = Counter(w for w, cell in zip(who, x, strict=True) if w is not None and cell < 3)
    attributes = [x_of(3), gn.Attribute("who", sorted(set(fitting)))]
    found = dict(
        count_marginals(table, attributes, [(0,), (1,), (0, 1)], "drop", PersonLimit("who", 5))
    )
    assert found[1,].tolist() == [min(fitting[w], 5) for w in sorted(set(fitting))]
    assert np.array_equal(found[0, 1].sum(axis=0), found[1,])
    assert np.array_equal(found[0, 1].sum(axis=1), found[0,])
    cells = Counter(zip(x, who, strict=True))
    assert all(
        found[0, 1][i, j] <= cells[i, w]
        for i in range(3)
        for j, w in enumerate(sorted(set(fitting)))
    )


def test_rows_alone_are_limited_too(build):
    table = build({"who": ["a", "b", "a", "a", "c", None], "x": [0] * 6})
    ((_, rows),) = count_marginals(table, [], [()], "drop", PersonLimit("who", 2))
    assert rows == 4


def test_an_empty_table_can_be_limited(build):
    table = build({"who": pa.array([], pa.string()), "x": pa.array([], pa.int64())})
    assert counted(table, 2, PersonLimit("who", 2), "drop").tolist() == [0, 0]


def test_passes_over_the_rows_agree(monkeypatch, engines, tmp_path):
    """Files are read once for each batch of tables; one key makes the same choice every time."""
    from gaussnoise.tables.counting import count as _count

    monkeypatch.setattr(_count, "PASS_CELLS", 1)
    monkeypatch.setattr(_count, "_GROUP_CELLS", 1)
    rng = np.random.default_rng(0)
    columns = {"who": rng.integers(0, 9, 300)} | {c: rng.integers(0, 2, 300) for c in "abc"}
    path = engines["parquet"](pa.table(columns), tmp_path)
    attributes = [gn.Attribute(c, [0, 1]) for c in "abc"]
    tables = dict(
        count_marginals(path, attributes, [(0, 1), (1, 2), (0, 2)], "drop", PersonLimit("who", 7))
    )
    assert all(t.sum() == 63 for t in tables.values())
    assert np.array_equal(tables[0, 1].sum(axis=0), tables[1, 2].sum(axis=1))
    assert np.array_equal(tables[0, 1].sum(axis=1), tables[0, 2].sum(axis=1))


@pytest.mark.parametrize("sql", [False, True])
def test_every_choice_of_rows_is_equally_likely(sql):
    """Of four rows, two of them equal, two are kept: six pairs, of which some look the same."""
    people, rows = 3000, [0, 0, 1, 2]
    who = np.repeat(np.arange(people), 4)
    table = pa.table({"who": who, "x": rows * people})
    chances = Counter(tuple(sorted(pair)) for pair in itertools.combinations(rows, 2))

    def p_value(limit):
        data = duckdb.from_arrow(table) if sql else table
        attributes = [gn.Attribute("who", range(people)), x_of(3)]
        ((_, kept),) = count_marginals(data, attributes, [(0, 1)], "refuse", limit)
        found = Counter(tuple(np.repeat(np.arange(3), row)) for row in kept)
        return stats.chisquare(
            [found[pair] for pair in chances], [n * people / 6 for n in chances.values()]
        ).pvalue

    assert p_value(PersonLimit("who", 2)) > 1e-6


def test_a_biased_choice_is_told_apart(monkeypatch):
    monkeypatch.setattr(_persons, "_mixed", lambda words: words % np.uint64(1000))
    with pytest.raises(AssertionError):
        test_every_choice_of_rows_is_equally_likely(False)


def test_every_release_chooses_anew():
    table = pa.table({"who": ["a"] * 20, "x": list(range(20))})
    picks = {int(np.argmax(counted(table, 20, PersonLimit("who", 1)))) for _ in range(40)}
    assert len(picks) > 5  # less than 1e-12 of chances
    assert PersonLimit("who", 1).key != PersonLimit("who", 1).key
    assert PersonLimit("who", 1).key.hex() not in repr(PersonLimit("who", 1))


# What is a person.


PEOPLE = {
    "integers": [1, 1, 2, 2, 2, 3],
    "text": ["1", "1", "01", "01", "01", " 1"],
    "letters": ["a", "a", "A", "A", "A", "ä"],
    "days": [datetime.date(2024, 1, d) for d in (1, 1, 2, 2, 2, 3)],
    "decimals": [decimal.Decimal(d) for d in (1, 1, 2, 2, 2, 3)],
    "floats": [1.0, 1.0, 2.0, 2.0, 2.0, -0.5],
    "bytes": [b"a", b"a", b"\\", b"\\", b"\\", b"\xff"],
    "booleans": [True, True, False, False, False, False],
}


@pytest.mark.parametrize("kind", PEOPLE)
@pytest.mark.parametrize("engine", ["pandas", "polars", "pyarrow", "duckdb", "parquet"])
def test_persons_are_values_of_any_type(kind, engine, engines, tmp_path):
    who = PEOPLE[kind]
    table = engines[engine](pa.table({"who": who, "x": [0] * 6}), tmp_path)
    people = Counter(who)
    if engine == "pandas" and kind == "text":  # one word more, and all of them are 1
        people = Counter(map(int, who))
    expected = sum(min(n, 2) for n in people.values())
    assert counted(table, 1, PersonLimit("who", 2)).tolist() == [expected]


def test_persons_of_csv_are_bytes(tmp_path):
    (tmp_path / "t.csv").write_text('who,x\n1,0\n01,0\n1.0,0\n"1",0\n"",0\n,0\n', "utf-8")
    assert counted(tmp_path / "t.csv", 1, PersonLimit("who", 1), "drop").tolist() == [3]


def test_nulls_make_floats_of_integers_and_are_no_person():
    frame = pd.DataFrame({"who": [1, 1, None, 2], "x": [0, 0, 0, 0]})
    assert counted(frame, 1, PersonLimit("who", 1), "drop").tolist() == [2]


def test_objects_of_pandas_are_told_apart_by_value():
    who = [3, 3.0, decimal.Decimal(3), np.int64(3), "3", True, 1, b"3", None, math.nan, pd.NaT, ""]
    who += [pd.NA, [3], decimal.Decimal("sNaN"), 2**70, float("inf"), datetime.date(2024, 1, 1)]
    frame = pd.DataFrame({"who": pd.Series(who, dtype=object), "x": [0] * len(who)})
    # 3, "3" and Decimal(3); True and 1; b"3"; infinity; a day
    assert counted(frame, 1, PersonLimit("who", 1), "drop").tolist() == [5]


ODD = ["x", 2.5, None, True, b"x", 7, 2**70, decimal.Decimal("0.1"), datetime.date(2020, 1, 1)]
KINDS = {
    "integers": int,
    "halves": lambda k: k / 2,
    "text": str,
    "dates": lambda k: datetime.datetime(2020, 1, 1) + datetime.timedelta(days=k),
    "decimals": lambda k: decimal.Decimal(k) / 10,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_one_odd_person_moves_no_rows_of_others_in_pandas(kind, odd):
    """It holds although pandas then has another type for all of them."""
    rng = np.random.default_rng(0)
    who = [KINDS[kind](k) for k in rng.integers(1000, 1030, size=300).tolist()]
    v = rng.integers(20, size=300).tolist()
    schema = [gn.Attribute("v", list(range(20)))]
    limit = PersonLimit("who", 2, bytes(16))

    def counts(people):
        table = pd.DataFrame({"who": people, "v": [*v, 3][: len(people)]})
        return dict(count_marginals(table, schema, [(0,)], "drop", limit))[(0,)]

    moved = counts([*who, odd]) - counts(who)
    assert moved.sum() == moved[3] == (odd not in (None, 2**70))


ATTRIBUTES = {
    "text": gn.Attribute("text", list("abcde")),
    "integer": gn.Attribute("integer", list(range(6))),
    "number": gn.Attribute("number", edges=[0, 2, 5, 9]),
    "day": gn.Attribute("day", edges=["2020-01-01", "2020-02-01", "2020-04-01"]),
    "pay": gn.Attribute("pay", clip=[0, 10]),
}


@pytest.mark.parametrize("odd", [*ODD, [1], math.inf, "3", 3.0, pd.NaT], ids=repr)
def test_one_odd_value_moves_no_rows_of_others_in_pandas(odd):
    """In any column, the row is counted or not, and all other counted rows stay the same."""
    rng, first = np.random.default_rng(0), datetime.datetime(2020, 1, 1)
    columns = {
        "who": rng.integers(40, size=240).tolist(),
        "text": rng.choice(list("abcdefg"), 240).tolist(),
        "integer": rng.integers(7, size=240).tolist(),
        "number": rng.integers(10, size=240).tolist(),
        "day": [first + datetime.timedelta(days=k) for k in rng.integers(100, size=240).tolist()],
        "pay": rng.uniform(-2, 12, 240).tolist(),
        "weight": rng.uniform(0, 5, 240).tolist(),
    }
    one = {"who": 99, "text": "a", "integer": 1, "number": 3, "day": first, "pay": 5, "weight": 2}
    limit, weight = PersonLimit("who", 3, bytes(16)), gn.Weight("weight", most=4)
    subsets = [(0, 1), (0, 2), (1, 3), (0, 4)]

    def counts(table):
        attributes = list(ATTRIBUTES.values())
        return dict(
            count_marginals(pd.DataFrame(table), attributes, subsets, "drop", limit, weight)
        )

    known = counts(columns)
    for column in ATTRIBUTES | {"weight": None}:
        row = one | {column: odd}
        found = counts({name: [*values, row[name]] for name, values in columns.items()})
        for S in subsets:
            moved = found[S] - known[S]
            assert (moved >= 0).all(), column
            assert np.count_nonzero(moved) <= 2, column  # a number is at both ends of its interval


def test_a_null_in_a_file_that_pandas_writes_draws_no_row_anew(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"who": rng.integers(30, size=300), "v": rng.integers(20, size=300)})
    table.to_parquet(tmp_path / "integers.parquet")
    pd.concat([table, pd.DataFrame({"who": [None], "v": [3]})]).astype({"who": float}).to_parquet(
        tmp_path / "floats.parquet"
    )
    schema, limit = [gn.Attribute("v", list(range(20)))], PersonLimit("who", 2, bytes(16))
    whole, gap = (
        dict(count_marginals(tmp_path / f"{kind}.parquet", schema, [(0,)], "drop", limit))[(0,)]
        for kind in ("integers", "floats")
    )
    assert whole.tolist() == gap.tolist()


def test_numbers_that_floats_round_are_no_persons_in_pandas():
    """It holds with or without a null that makes floats of them, and for any type of column."""
    large = [2**53, 2**53 + 1, 2**60, 7]
    for who in (large, [*large, None], [*large, "x"], list(map(str, large))):
        table = pd.DataFrame({"who": who, "x": [0] * len(who)})
        expected = 2 if "x" in who else 1
        assert counted(table, 1, PersonLimit("who", 1), "drop").tolist() == [expected]
        if None not in who and "x" not in who:
            chosen = table.astype({"who": "string" if isinstance(who[0], str) else "Int64"})
            assert counted(chosen, 1, PersonLimit("who", 1), "drop").tolist() == [expected]
            exact = pa.Table.from_pandas(chosen)
            assert counted(exact, 1, PersonLimit("who", 1), "drop").tolist() == [4]
        with pytest.raises(DataError, match="2\\*\\*53"):
            counted(table, 1, PersonLimit("who", 1))


def test_text_is_compared_as_bytes_where_a_database_would_not():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who VARCHAR COLLATE NOCASE, x INTEGER)")
    connection.execute("INSERT INTO t VALUES ('a', 0), ('A', 0), ('a', 0)")
    assert counted(connection.table("t"), 1, PersonLimit("who", 1)).tolist() == [2]


# What is refused.


@pytest.mark.parametrize("who", [None, ""])
def test_rows_of_no_person_refuse_a_release_that_drops_none(build, who):
    table = build({"who": pa.array(["a", who], pa.string()), "x": [0, 0]})
    with pytest.raises(DataError, match="column 'who': expected a person in every row"):
        counted(table, 1, PersonLimit("who", 1))


def test_a_row_outside_refuses_even_where_it_would_be_left_out(build):
    table = build({"who": ["a"] * 50, "x": [0] * 49 + [7]})
    with pytest.raises(DataError, match="column 'x': expected only its declared categories"):
        counted(table, 1, PersonLimit("who", 1))


def test_a_person_column_must_be_there_and_hold_single_values():
    table = pa.table({"x": [0], "who": [[1]]})
    with pytest.raises(DataError, match="1 of 2 expected ones is missing: 'nobody'"):
        counted(table, 1, PersonLimit("nobody", 1))
    with pytest.raises(DataError, match="expected text, integers or other single values"):
        counted(table, 1, PersonLimit("who", 1))


def test_engines_without_an_order_of_rows_are_refused_before_a_budget_is_charged(tmp_path):
    ibis = pytest.importorskip("ibis", reason="ibis is missing")
    table = ibis.memtable(pa.table({"who": ["a"], "x": [0]}))
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(1))
    with pytest.raises(ParameterError, match="hint: write it to Parquet"):
        plan().release(table, out=tmp_path / "out", ledger=ledger, id="first")
    assert ledger.spent == 0


# Dask, where the rows of a person are in several partitions.


def in_dask(frame, partitions):
    dask = pytest.importorskip("dask", reason="dask is missing")
    frames = pytest.importorskip("dask.dataframe", reason="dask is missing")
    with dask.config.set({"dataframe.convert-string": False}):  # which makes text of objects
        return frames.from_pandas(frame, npartitions=partitions, sort=False)


PERSONS_OF_DASK = {
    "integers": lambda who: who,
    "text": lambda who: who.astype(str),
    "floats with gaps": lambda who: who.where(who > 0).astype(float),
    "categories": lambda who: who.astype(str).astype("category"),
    "days": lambda who: pd.Timestamp("2024-01-01") + pd.to_timedelta(who, "D"),
    "objects": lambda who: pd.Series([3, "3", 3.0, b"3", None, True] * 50, dtype=object),
}


@DASK
@pytest.mark.parametrize("kind", PERSONS_OF_DASK)
@pytest.mark.parametrize("partitions", [1, 7])
def test_dask_counts_the_rows_that_plain_python_counts(kind, partitions):
    """For one key, this holds for any partitions of the rows."""
    rng = np.random.default_rng(0)
    who = PERSONS_OF_DASK[kind](pd.Series(rng.integers(0, 20, 300)))
    frame = pd.DataFrame({"who": who, "x": rng.integers(0, 4, 300)})  # 3 is outside
    limit = PersonLimit("who", 3, KEY)
    found = counted(in_dask(frame, partitions), 3, limit, "drop")
    objects = pd.Series(who.tolist(), dtype=object)
    people = people_of(nw.from_native(objects, series_only=True), Form.UNTYPED)
    inside = (people.index >= 0) & (frame["x"].to_numpy() < 3)
    rows = frame["x"].to_numpy()[inside] + 1
    mine = People(people.index[inside], people.names)
    (kept,) = _persons.limited_arrays([rows], mine, limit)
    assert found.tolist() == np.bincount(kept - 1, minlength=3).tolist()
    assert found.sum() < inside.sum()


@DASK
def test_dask_without_a_shuffle_is_told_apart(monkeypatch):
    """Every partition limits its own rows: the negative control."""
    import dask.dataframe

    frame = pd.DataFrame({"who": ["a"] * 70, "x": [0] * 70})
    assert counted(in_dask(frame, 7), 1, PersonLimit("who", 3)).tolist() == [3]
    monkeypatch.setattr(dask.dataframe.DataFrame, "shuffle", lambda frame, on: frame)
    assert counted(in_dask(frame, 7), 1, PersonLimit("who", 3)).tolist() == [21]


def in_parts(*parts):
    """A dask table with the given partitions, of the first one's type."""
    dask = pytest.importorskip("dask", reason="dask is missing")
    frames = pytest.importorskip("dask.dataframe", reason="dask is missing")
    made = [pd.DataFrame({"who": who, "x": [0] * len(who)}) for who in parts]
    with dask.config.set({"dataframe.convert-string": False}):  # which makes text of objects
        return frames.from_map(lambda k: made[k], range(len(made)), meta=made[0])


@DASK
@pytest.mark.parametrize(
    "parts",
    [
        (pd.Series([1]), pd.Series(["1"])),
        (pd.Series(["1"]), pd.Series([1])),
        (pd.Series(["1"], dtype=object), pd.Series([1, None])),
        (pd.Series([2**53 + 1, 1]), pd.Series([2.0**53])),
        (pd.Series([2.0**53]), pd.Series([2**53 + 1, 1])),
    ],
)
def test_one_person_is_one_in_partitions_of_several_types(parts):
    assert counted(in_parts(*parts), 1, PersonLimit("who", 1), "drop").tolist() == [1]


@DASK
@pytest.mark.parametrize(
    "parts",
    [
        (pd.Series([1, 1, 2]), pd.Series([1.0, None]), pd.Series([2**53 - 1])),
        (pd.Series([1.0, None, 2.0]), pd.Series([1, 2**53 - 1])),
        (pd.Series([1, 2]), pd.Series([1, None, 2**53 - 1], dtype=object)),
        (pd.Series([1, 2]), pd.Series([1, None, 2**53 - 1], dtype="Int64")),
        (pd.Series(["1", "2", "3"]), pd.Series([None, math.nan]), pd.Series(["1", "1"])),
    ],
)
def test_a_null_in_a_partition_neither_refuses_a_release_nor_makes_two_of_one_person(parts):
    found = counted(in_parts(*parts), 1, PersonLimit("who", 1), "drop")
    assert found.tolist() == [3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"neighbors": "replace", "public": "x"}, "person= cannot be combined with public="),
        ({"over": gn.streams.Ticks(3), "neighbors": "replace"}, "a stream of persons cannot be"),
        ({"person": 3}, "expected person to be the name of a column, got int"),
        ({"person": ""}, "expected person to be the name of a column"),
    ],
)
def test_plans_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        plan(**arguments)


# Plans and releases.


def plan(**arguments):
    schema = gn.Schema([gn.Attribute("x", [0, 1])])
    options = {"rows_per_person": 3, "person": "who"} | arguments
    return gn.plan(schema, [("x",), ()], gn.zCDP(0.5), **options)


def test_the_noise_is_that_of_so_many_rows():
    assert plan().row_rho == pytest.approx(0.5 / 9)
    assert plan().rho_charged <= 0.5


def test_plans_and_releases_say_what_is_counted(tmp_path):
    table = pa.table({"who": ["a"] * 5 + ["b"] * 2, "x": [0, 1, 1, 0, 1, 1, 1]})
    release = plan().release(table, out=tmp_path / "out", on_outside="drop")
    said = "at most 3 rows of each person, drawn at random from that person's own"
    assert said in str(plan())
    assert "their other rows count nowhere" in str(plan())
    assert said in (tmp_path / "out" / "summary.txt").read_text("utf-8")
    assert "in x, who are in no table" in (tmp_path / "out" / "summary.txt").read_text("utf-8")
    record = gn.files.disk.read_json(tmp_path / "out" / "release.json")
    assert said in record["rows_counted"]
    assert (record["person"], record["rows_per_person"]) == ("who", 3)
    assert record["privacy_unit"] == "one person (column 'who'), of whom at most 3 rows are counted"
    assert not any("a promise of the publisher's" in line for line in record["disclaimers"])
    again = gn.TableRelease.load(tmp_path / "out")
    assert again.plan.person == "who"
    assert again.plan.request_sha256 == release.plan.request_sha256


def test_requests_differ_by_who_is_a_person():
    trusted, counted_ones, others = (
        plan(person=None),
        plan(),
        plan(person="household"),
    )
    assert len({p.request_sha256 for p in (trusted, counted_ones, others)}) == 3
    assert "person" not in trusted.request  # as in releases of earlier versions


def test_estimates_are_of_the_rows_that_are_counted():
    table = pa.table(
        {"who": ["a"] * 1000 + [f"p{i}" for i in range(500)], "x": [0] * 1000 + [1] * 500}
    )
    found = plan(rows_per_person=2).release(table)["x"]
    assert np.abs(found.estimate - [2, 500]).max() < 8 * found.standard_deviation.max()
    simulated = plan().simulate(table, np.random.default_rng(0))["x"]
    assert np.abs(simulated.estimate - [3, 500]).max() < 8 * simulated.standard_deviation.max()


def test_the_shell_limits_rows(engines, tmp_path, capsys):
    table = pa.table({"who": [1] * 2000 + list(range(2, 302)), "x": [0] * 2000 + [1] * 300})
    path = engines["csv"](table, tmp_path)
    (tmp_path / "s.toml").write_text("[attributes.x]\ncategories = [0, 1]\n", "utf-8")
    base = ["-s", str(tmp_path / "s.toml"), "-m", "x", "--rho", "1"]
    base += ["--person", "who", "--rows-per-person", "2"]
    assert app.run(["plan", *base]) == 0
    assert "at most 2 rows of each person" in capsys.readouterr().out
    assert app.run(["release", str(path), *base, "-o", str(tmp_path / "out")]) == 0
    estimate = gn.TableRelease.load(tmp_path / "out")["x"].estimate
    assert abs(estimate[0] - 2) < 30


# Rows with impossible combinations.


RULES = [{"a": [0], "b": [1]}]


def rules_schema():
    return gn.Schema([gn.Attribute("a", [0, 1]), gn.Attribute("b", [0, 1])], RULES)


def rules_count(table, limit, on_outside="drop"):
    schema = rules_schema()
    rules = excluded(schema, [0, 1])
    arguments = (table, schema.attributes, [(0, 1)], on_outside, limit)
    ((_, counts),) = count_marginals(*arguments, impossible=rules)
    return counts


def test_impossible_rows_take_no_places_among_a_persons(build):
    rows = [("x", 0, 1)] * 50 + [("x", 1, 1)] * 2 + [("y", 0, 0)] * 3
    who, a, b = zip(*rows, strict=True)
    table = build({"who": list(who), "a": list(a), "b": list(b)})
    assert rules_count(table, PersonLimit("who", 2)).tolist() == [[2, 0], [0, 2]]


def test_impossible_rows_refuse_even_where_they_would_be_left_out(build):
    table = build({"who": ["x"] * 50, "a": [1] * 49 + [0], "b": [1] * 50})
    with pytest.raises(DataError, match="which the schema calls impossible"):
        rules_count(table, PersonLimit("who", 1), "refuse")


def rules_changes(rows):
    """The most rows that change when a person is added who may have impossible ones."""
    cells = list(itertools.product([0, 1], [0, 1]))
    own = [h for n in range(4) for h in itertools.combinations_with_replacement(cells, n)]
    limit = PersonLimit("who", rows, KEY)
    for added in own:
        for others in own[::7]:
            sides = []
            for records in ([("p", *c) for c in others], [("q", *c) for c in added]):
                sides.append([*(sides[0] if sides else []), *records])
            before, after = (
                rules_count(
                    pa.table(
                        {
                            name: pa.array([r[k] for r in side], kind)
                            for k, (name, kind) in enumerate(
                                [("who", pa.string()), ("a", pa.int64()), ("b", pa.int64())]
                            )
                        }
                    ),
                    limit,
                )
                for side in sides
            )
            fitting = sum(cell != (0, 1) for cell in added)
            yield after - before, min(fitting, rows)


def test_one_person_moves_no_rows_of_others_for_any_impossible_rows():
    for change, expected in rules_changes(2):
        assert change.min() >= 0
        assert change.sum() == expected


def test_leaving_impossible_rows_out_after_the_limit_is_told_apart(monkeypatch):
    """Places then go to rows that are not counted: the negative control."""
    monkeypatch.setattr(_records, "matches", lambda code, rule: np.zeros(len(code(0)), bool))
    assert any(change.sum() != expected for change, expected in rules_changes(2))


def test_plans_of_persons_take_impossible_combinations():
    planned = gn.plan(rules_schema(), 2, gn.zCDP(1), person="who", neighbors="replace")
    table = pa.table({"who": ["x"] * 900, "a": [0] * 500 + [1] * 400, "b": [1] * 900})
    released = planned.release(table, on_outside="drop")["a", "b"]
    assert (
        np.abs(released.estimate - [[0, 0], [0, 1]]).max() < 9 * released.standard_deviation.max()
    )


# Persons who are exchanged, each with any number of rows.


def lengths(plan, changes):
    """The squared change of all integers that are measured, for changes of the first counts."""
    (S,) = plan.tables.subsets
    for change in changes:
        yield sum(
            int((plan.query.answer(T, part_of(change, S, T)).astype(object) ** 2).sum())
            for T in plan.query.multipliers
        )


@pytest.mark.parametrize("rows", [1, 2])
def test_exchanged_persons_reach_the_planned_sensitivity_and_never_exceed_it(rows):
    """All rows of two persons in exchange for each other are tried, beside a third, for one key."""
    schema = gn.Schema([x_of(3)])
    asked = {"neighbors": "replace", "rows_per_person": rows, "person": "who"}
    planned = gn.plan(schema, [("x",)], gn.zCDP(0.5), **asked)
    own = histories(3)

    def counts(name, history):
        return in_arrays([("a", 0), ("a", 1), ("a", 1), *((name, x) for x in history)], rows)

    changes = [
        counts("b", first) - counts("c", second) for first, second in itertools.product(own, own)
    ]
    charged = planned.query.query.sensitivity_squared * rows**2
    assert max(lengths(planned, changes)) == charged
    # the negative controls: an exchange that keeps the number of rows, or a person who is added
    alone = [c for c in changes if c.sum() == 0 or c.min() >= 0]
    assert max(lengths(planned, [2 * c for c in alone])) > charged


@pytest.mark.parametrize(
    ("sizes", "base"), [((2, 3), "identity"), ((2, 2), "identity"), ((4, 2), "prefix")]
)
def test_no_two_rows_move_more_than_is_charged_for(sizes, base):
    schema = gn.Schema([gn.Attribute(name, range(n)) for name, n in zip("ab", sizes, strict=True)])
    asked = {"neighbors": "replace", "person": "who"}
    planned = gn.plan(schema, [{"a": base, "b": "identity"}], gn.zCDP(0.5), **asked)
    records = np.eye(math.prod(sizes), dtype=np.int64).reshape(-1, *sizes)
    corners = [*records, np.zeros(sizes, dtype=np.int64)]
    changes = [x - y for x, y in itertools.product(corners, corners)]
    longest, charged = max(lengths(planned, changes)), planned.query.query.sensitivity_squared
    assert longest <= charged
    assert base != "identity" or longest == charged


@pytest.mark.parametrize("p", [2, math.inf])
@pytest.mark.parametrize(("sizes", "ways"), [((4,), 1), ((2, 3), 1), ((2, 2, 2), 2)])
def test_noise_for_exchanged_persons_is_near_the_optimum_of_another_solver(sizes, ways, p):
    """The points are the records and zero, whose differences are covered; within 2.1 % here."""
    schema = gn.Schema(
        [gn.Attribute(name, range(n)) for name, n in zip("abc", sizes, strict=False)]
    )
    planned = gn.plan(schema, ways, gn.zCDP(0.5), neighbors="replace", person="who", p=p)
    points = planned.domain.to_finite_set().points
    with_zero = gn.FiniteSet(np.vstack([points, np.zeros(points.shape[1])]))
    optimum = gn.optimal_noise(with_zero, p=p, neighbors="replace")
    lower, upper = planned.bracket
    assert lower <= optimum.gamma
    assert optimum.gamma_lower <= upper
    assert upper <= 1.025 * optimum.gamma
    assert planned.error == pytest.approx(upper, rel=1e-9)  # 2ρ = 1


@pytest.mark.parametrize(
    ("workload", "share"),
    [
        (["pay"], 0.999),
        ([("sex", "pay")], 0.86),
        ([{"age": "prefix"}], 0.94),
        (["sex", {"age": "ranges"}], 0.9),
    ],
    ids=str,
)
def test_the_bound_for_exchanged_persons_is_below_the_optimum_and_near_it(workload, share):
    """The points are the records and zero, as above. The ends of pay are close to each other, so
    that the optimum for replaced rows, 0.01, is a weak bound alone."""
    schema = gn.Schema(
        [
            gn.Attribute("sex", ["F", "M"]),
            gn.Attribute("age", edges=[0, 18, 40, 65, 80]),
            gn.Attribute("pay", clip=[1000, 1010]),
        ]
    )
    planned = gn.plan(schema, workload, gn.zCDP(0.5), neighbors="replace", person="who")
    points = planned.domain.to_finite_set().points
    with_zero = gn.FiniteSet(np.vstack([points, np.zeros(points.shape[1])]))
    optimum = gn.optimal_noise(with_zero, neighbors="replace", tol=1e-4)
    lower, upper = planned.bracket
    assert share * optimum.gamma_lower <= lower <= optimum.gamma
    assert optimum.gamma_lower <= upper


def test_a_single_table_of_exchanged_persons_has_the_noise_that_is_known_to_be_best():
    """The reference is γ² = 2(N − 1) + 2/(N + 1), by symmetry."""
    schema = gn.Schema([x_of(5)])
    planned = gn.plan(schema, 1, gn.zCDP(0.5), neighbors="replace", person="who")
    assert planned.bracket[1] ** 2 == pytest.approx(8 + 2 / 6, rel=1e-6)
    assert planned.independent_deviations == pytest.approx(planned.deviations, rel=1e-6)


def test_the_number_of_rows_of_exchanged_persons_is_private():
    schema = gn.Schema([gn.Attribute("x", [0, 1])])
    asked = {"neighbors": "replace", "rows_per_person": 2, "person": "who"}
    planned = gn.plan(schema, [("x",), ()], gn.zCDP(0.5), **asked)
    table = pa.table({"who": list(range(100)), "x": [0] * 100})
    totals = {float(planned.release(table, on_outside="drop")[()].estimate) for _ in range(5)}
    assert len(totals) > 1
    assert planned.exact == ()
    assert "exchanged for another, each with any number of rows" in str(planned)
    assert "public and exact" not in str(planned)
    assert planned.bound.factor(planned.error) > 1


def test_plans_for_exchanged_persons_meet_their_targets(tmp_path):
    schema = gn.Schema([gn.Attribute("x", [0, 1]), gn.Attribute("y", [0, 1, 2])])
    asked = {"neighbors": "replace", "rows_per_person": 2, "person": "who"}
    planned = gn.plan(schema, 2, targets=20.0, **asked)
    assert planned.half_width("x", "y") == pytest.approx(20)
    table = pa.table({"who": [1, 1, 2], "x": [0, 1, 1], "y": [0, 1, 2]})
    planned.release(table, out=tmp_path / "out")
    again = gn.TableRelease.load(tmp_path / "out")
    assert (again.plan.neighbors, again.plan.person) == ("replace", "who")
    planned.report(tmp_path / "plan.html")
    assert "public, and comes out exactly" not in (tmp_path / "plan.html").read_text("utf-8")


@pytest.mark.parametrize("kind", [pa.map_(pa.string(), pa.string()), pa.list_(pa.int64())], ids=str)
@pytest.mark.parametrize("build", [pa.table, duckdb.from_arrow], ids=["pyarrow", "duckdb"])
def test_a_column_of_several_values_a_row_cannot_name_persons(build, kind):
    """Two of such values may be written alike."""
    table = pa.table({"who": pa.array([None, None], kind), "a": ["x", "x"]})
    plan = gn.plan(
        gn.Schema([gn.Attribute("a", ["x"])]), 1, gn.zCDP(1), person="who", rows_per_person=1
    )
    with pytest.raises(
        DataError, match=r"other single values that say whose row it is|a type that can be read"
    ):
        plan.release(table if build is pa.table else build(table), on_outside="drop")


def test_a_page_of_combined_releases_with_capped_persons_says_the_cap(tmp_path):
    schema = gn.Schema([gn.Attribute("ward", ["A", "B"]), gn.Attribute("days", clip=[0, 30])])
    table = pa.table({"who": ["x", "y", "z"] * 40, "ward": ["A", "B"] * 60, "days": [3] * 120})
    plan = gn.plan(schema, [("ward", "days")], gn.zCDP(1), person="who", rows_per_person=3)
    both = gn.combine([plan.release(table), plan.release(table)], same_rows="assumed")
    both.report(tmp_path / "page.html")
    assert "at most 3 rows of each person" in (tmp_path / "page.html").read_text("utf-8")
    assert both.means("days").over == "rows, at most 3 of each person"


def test_a_summary_says_that_numbers_outside_their_interval_count_as_its_nearer_end():
    schema = gn.Schema([gn.Attribute("ward", ["A", "B"]), gn.Attribute("days", clip=[0, 30])])
    table = pa.table({"ward": ["A", "B", None], "days": [3, 99, 4]})
    plan = gn.plan(schema, [("ward", "days")], gn.zCDP(1))
    summary = " ".join(release_text(plan.release(table, on_outside="drop")).split())
    assert "not listed, in ward, or no number in days are in no table" in summary
    assert "A value of days below 0 counts as 0, and one above 30 as 30." in summary
    assert "rho = 1 of" not in summary


def test_summaries_and_plans_count_one_cell():
    plan = gn.plan(gn.Schema([gn.Attribute("ward", ["A"])]), 1, gn.zCDP(1))
    summary = release_text(plan.release(pa.table({"ward": ["A"]})))
    assert "1 table, 1 cell." in summary
    assert "1 table, 1 cell\n" in str(plan)
    assert "1 noisy integer:" in str(plan)
