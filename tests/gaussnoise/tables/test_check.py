"""What ``Plan.check`` says about a table, in every engine: the numbers are those of releases."""

import json
import math

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import DataError, ParameterError
from gaussnoise.streams.measure import counted as counts_of_tick
from gaussnoise.tables import CheckResult
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.impossible import excluded
from gaussnoise.tables.counting.numbers import weight_column
from gaussnoise.tables.counting.persons import PersonLimit

# warnings of dask itself
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", edges=[0, 18, 65]),
        gn.Attribute("since", edges=["2020-01-01", "2021-01-01"]),
        gn.Attribute("job", ["nurse", "none"], other="other"),
        gn.Attribute("unasked", ["x"]),
    ],
    impossible=[{"age": "[0, 18)", "job": "nurse"}],
)
WEIGHT = gn.Weight("w", most=2.0)
ASKED = {"workload": [("sex", "age"), ("age", "job"), ("since",)], "privacy": gn.zCDP(1.0)}
# who, sex, age, since, job, w
ROWS = [
    *[("a", "F", 20.0, "2020-02-01", "nurse", 1.0)] * 4,
    ("b", "M", 20.0, "2020-12-31", "x", 5.0),
    ("b", "m", 20.0, "2020-02-01", None, 1.0),
    ("b", "m", -1.0, "2020-02-01", "nurse", -1.0),
    ("c", None, 20.0, "2020-02-01", "nurse", 1.0),
    ("c", "F", 70.5, "2022-01-01", "nurse", 1.0),
    ("c", "F", 70.5, "yesterday", "none", None),
    ("c", "F", 17.0, "2020-02-01", "nurse", 1.0),
    (None, "F", 20.0, "2020-02-01", "nurse", 1.0),
    ("d", "F", None, None, "none", None),
]
NAMES = ("who", "sex", "age", "since", "job", "w")
KINDS = dict.fromkeys(NAMES, pa.string()) | {"age": pa.float64(), "w": pa.float64()}


def table_of(rows):
    columns = zip(*rows, strict=True) if rows else ([] for _ in NAMES)
    return pa.table({n: pa.array(c, KINDS[n]) for n, c in zip(NAMES, columns, strict=True)})


ENGINES = ["pyarrow", "pandas", "pandas on arrow", "polars", "polars lazy", "duckdb", "csv"]
ENGINES += ["parquet"]


@pytest.fixture
def build(request, engines):
    def built(engine, rows, folder):
        if engine == "spark":
            path = str(engines["parquet"](table_of(rows), folder))
            return request.getfixturevalue("spark").read.parquet(path)
        return engines[engine](table_of(rows), folder)

    return built


def counted(table, weight, person):
    """How many rows a release counts, by the counts of its tables."""
    used = range(4)
    attributes = [SCHEMA.attributes[i] for i in used]
    attributes += [] if weight is None else [weight_column(weight)]
    limit = None if person is None else PersonLimit(person, 2)
    subsets = [(k,) for k in range(len(attributes))]
    counts = dict(
        count_marginals(
            table, attributes, subsets, "drop", limit, impossible=excluded(SCHEMA, used)
        )
    )
    return counts[(0,)].sum() // (1 if weight is None else 2**20)


def fails(row, weight, person):
    who, sex, age, since, job, w = row
    inside = since is not None and "2020-01-01" <= since <= "2021-01-01"
    return (
        sex not in ("F", "M")
        or not inside
        or age is None
        or not 0 <= age <= 65
        or (age < 18 and job == "nurse")
        or (weight is not None and w is None)
        or (person is not None and who is None)
    )


@pytest.mark.parametrize(
    "engine", [*ENGINES, "dask", pytest.param("spark", marks=pytest.mark.integration)]
)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weight"])
@pytest.mark.parametrize("person", [None, "who"], ids=["", "person"])
def test_the_numbers_are_those_of_a_release_and_of_a_reference(
    engine, weight, person, build, tmp_path
):
    table = build(engine, ROWS, tmp_path)
    limit = {} if person is None else {"person": person, "rows_per_person": 2}
    plan = gn.plan(SCHEMA, **ASKED, weight=weight, **limit)
    found = plan.check(table)
    assert found.rows == len(ROWS)
    assert found.left_out == sum(fails(row, weight, person) for row in ROWS)
    assert found.counted == counted(table, weight, person)
    assert found.beyond_limit == (0 if person is None else 2)  # of a
    assert not found.passed
    assert not found.refused
    wanted = {
        ("sex", "not a category"): (2, ("'m'",)),
        ("sex", "missing"): (1, ()),
        ("age", "missing"): (1, ()),
        ("age", "outside the edges"): (3, ("70.5", "-1.0")),
        ("since", "missing"): (1, ()),
        ("since", "not a date"): (1, ("'yesterday'",)),
        ("since", "outside the edges"): (1, ("'2022-01-01'",)),
        ("age, job", "impossible combination"): (1, ("age = [0, 18) with job = nurse",)),
    }
    wanted |= {} if weight is None else {("w", "missing"): (2, ())}
    wanted |= {} if person is None else {("who", "no person"): (1, ())}
    said = {(case.column, case.reason): case for case in found.failure_cases}
    assert len(said) == len(found.failure_cases)
    assert {key: case.rows for key, case in said.items()} == {k: n for k, (n, _) in wanted.items()}
    for key, (_, examples) in wanted.items():
        plain = [text.replace("'", "").removesuffix(".0") for text in said[key].examples]
        assert plain == [text.replace("'", "").removesuffix(".0") for text in examples], key
    clipped = [] if weight is None else [("w", "outside the interval", 2)]
    assert [(case.column, case.reason, case.rows) for case in found.clipped] == clipped


@pytest.mark.parametrize("engine", ENGINES)  # without dask, which is slow
@pytest.mark.parametrize("person", [None, "who"], ids=["", "person"])
def test_it_passes_where_a_release_refuses_nothing(engine, person, build, tmp_path):
    """Every row of a table is a table of its own here, and so is none."""
    limit = {} if person is None else {"person": person, "rows_per_person": 2}
    plan = gn.plan(SCHEMA, **ASKED, **limit)
    passed = []
    for k, rows in enumerate([ROWS[:5], *([row] for row in ROWS[5:]), []]):
        (tmp_path / f"{k}").mkdir()
        table = build(engine, rows, tmp_path / f"{k}")
        found = plan.check(table)
        try:
            plan.release(table, on_outside="refuse")
        except DataError:
            passed.append(False)
        else:
            passed.append(True)
        assert found.passed is passed[-1], rows
        assert ("all rows fit the schema" in str(found)) is found.passed
    assert passed == [True, *[False] * 6, person is None, False, True]


def test_it_says_that_a_type_is_refused_for_any_rows():
    """With "drop", integer categories are taken from columns of floats as well."""
    plan = gn.plan(gn.Schema([gn.Attribute("n", [1, 2])]), 1, gn.zCDP(1.0))
    table = pl.DataFrame({"n": [1.0, 2.0]})
    found = plan.check(table)
    assert (found.left_out, found.counted, found.passed) == (0, 2, False)
    (said,) = found.refused
    with pytest.raises(DataError) as refused:
        plan.release(table, on_outside="refuse")
    assert said == str(refused.value)
    assert f'on_outside="refuse" refuses the table: {said}' in str(found)
    assert plan.release(table, on_outside="drop").on_outside == "drop"


def test_where_the_number_of_rows_is_public_no_row_can_be_left_out():
    plan = gn.plan(gn.Schema([gn.Attribute("s", ["F"])]), 1, gn.zCDP(1.0), neighbors="replace")
    table = pa.table({"s": ["F", "x", None]})
    found = plan.check(table)
    assert (found.left_out, found.passed, found.droppable) == (2, False, False)
    assert "2 that do not fit" in str(found)
    assert "counted" not in str(found)
    for rule in ("refuse", "drop"):
        with pytest.raises((DataError, ParameterError)):
            plan.release(table, on_outside=rule)
    fitting = plan.check(table.slice(0, 1))
    assert (fitting.passed, fitting.droppable) == (True, True)


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="this polars has none")
@pytest.mark.parametrize("kind", ["clip", "edges"])
def test_integers_of_128_bits_are_numbers(kind):
    """They come to Python as text, since arrow has no such type."""
    attribute = gn.Attribute("n", **{kind: [0, 100]})
    rows = pl.DataFrame({"n": pl.Series([5, 101, -3, 2**100], dtype=pl.Int128)})
    found = gn.plan(gn.Schema([attribute]), 1, gn.zCDP(1.0)).check(rows)
    (case,) = found.failure_cases if kind == "edges" else found.clipped
    assert case.reason == ("outside the edges" if kind == "edges" else "outside the interval")
    assert (case.rows, set(case.examples)) == (3, {"101", "-3", str(2**100)})


def test_its_text_commands_no_terminal():
    schema = gn.Schema([gn.Attribute("\x1b[31m", ["F"])])
    found = gn.plan(schema, 1, gn.zCDP(1.0)).check(pa.table({"\x1b[31m": ["\x1b]0;t\x07"]}))
    assert not {"\x1b", "\x07"} & set(str(found))


def test_it_raises_what_a_release_raises_with_any_rule_and_shows_no_value():
    plan = gn.plan(SCHEMA, **ASKED)
    table = table_of(ROWS)
    for broken in (table.drop_columns(["job"]), table.set_column(2, "age", table["sex"])):
        with pytest.raises(DataError) as refused:
            plan.release(broken, on_outside="drop")
        with pytest.raises(DataError) as raised:
            plan.check(broken)
        assert str(raised.value) == str(refused.value)
        assert "yesterday" not in str(raised.value)


def test_a_clipped_number_with_a_catch_all_leaves_no_row_out():
    schema = gn.Schema([gn.Attribute("pay", clip=[0, 10], other="unknown")])
    found = gn.plan(schema, 1, gn.zCDP(1.0)).check(pa.table({"pay": [1.0, None, 11.0, -5.0]}))
    assert (found.left_out, found.counted, found.failure_cases) == (0, 4, ())
    assert [(case.rows, case.examples) for case in found.clipped] == [(2, ("11.0", "-5.0"))]
    assert [(case.column, case.reason, case.rows) for case in found.caught] == [
        ("pay", "missing", 1)
    ]


CAUGHT = gn.Schema(
    [
        gn.Attribute("job", ["nurse", "none"], other="not stated"),
        gn.Attribute("age", edges=[0, 18, 65], other="not stated"),
        gn.Attribute("pay", clip=[0, 100], other="not stated"),
        gn.Attribute("sex", ["F", "M"]),
    ]
)


@pytest.mark.parametrize(
    "engine", [*ENGINES, "dask", pytest.param("spark", marks=pytest.mark.integration)]
)
def test_values_that_count_in_a_catch_all_are_listed_unless_they_are_its_label(
    engine, request, engines, tmp_path
):
    rows = pa.table(
        {
            "job": ["nurse", "clerk", "not stated", None, "clerk", "cook", "none"],
            "age": pa.array([1, 17, 70, None, 70, 18, 65], pa.float64()),
            "pay": pa.array([1, 200, None, None, 0, None, 2], pa.float64()),
            "sex": ["F", "M", "F", "M", "F", "M", "F"],
        }
    )
    table = (
        request.getfixturevalue("spark").read.parquet(str(engines["parquet"](rows, tmp_path)))
        if engine == "spark"
        else engines[engine](rows, tmp_path)
    )
    found = gn.plan(CAUGHT, 1, gn.zCDP(1.0)).check(table)
    assert (found.passed, found.left_out, found.counted, found.failure_cases) == (True, 0, 7, ())
    said = {(case.column, case.reason): case.rows for case in found.caught}
    assert said == {
        ("job", "not a category"): 3,
        ("job", "missing"): 1,
        ("age", "outside the edges"): 2,
        ("age", "missing"): 1,
        ("pay", "missing"): 3,
    }
    assert found.caught[0].examples == ("'clerk'", "'cook'")
    assert found.as_dict()["caught"][0]["examples"] == ("'clerk'", "'cook'")
    lines = str(found).splitlines()
    assert "all rows fit the schema, with its catch-alls" in lines
    listed = lines[
        lines.index("counted in the catch-all, which is in no mean or sum of a number:") :
    ]
    assert [line.split() for line in listed[1:2]] == [
        ["job", "not", "a", "category", "3", "42.9", "%", "'clerk',", "'cook'"]
    ]


def test_a_file_of_unreadable_numbers_does_not_pass_unnoticed(tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text('pay\n1.234,50\n2.000,00\n900,00\nnot stated\n""\n', encoding="utf-8")
    file = gn.Dialect(";", ",")
    schema = gn.Schema([gn.Attribute("pay", clip=[0, 5000], other="not stated")], file=file)
    found = gn.plan(schema, 1, gn.zCDP(1.0)).check(path)
    assert {case.reason: case.rows for case in found.caught} == {"not a number": 2, "missing": 1}


def test_values_are_shown_as_the_file_has_them(tmp_path):
    """Where the decimal mark is a comma, comma and point are exchanged for reading."""
    path = tmp_path / "pay.csv"
    rows = ["k.A.;1;a.b", "2.638,50;2,5;a.b", "16100,09;1;a.b", "1,5;1;c"]
    path.write_text("\n".join(["pay;n;word", *rows]), encoding="utf-8")
    more = [gn.Attribute("n", [1, 2]), gn.Attribute("word", ["c"])]
    for other in (None, "k.A."):
        pay = gn.Attribute("pay", clip=[0, 5000], other=other)
        schema = gn.Schema([pay, *more], file=gn.Dialect(";", ","))
        found = gn.plan(schema, 1, gn.zCDP(1.0)).check(path)
        cases = [*found.failure_cases, *found.clipped, *found.caught]
        said = {(case.column, case.reason): set(case.examples) for case in cases}
        assert said == {
            ("pay", "not a number"): {"'2.638,50'"} | ({"'k.A.'"} if other is None else set()),
            ("n", "not a category"): {"'2,5'"},
            ("word", "not a category"): {"'a.b'"},
            ("pay", "outside the interval"): {"'16100,09'"},
        }


def test_rows_of_a_total_are_counted_too():
    table = table_of(ROWS)
    assert gn.plan(SCHEMA, [()], gn.zCDP(1.0)).check(table) == CheckResult(13, 0, 13, ())
    plan = gn.plan(SCHEMA, [()], gn.zCDP(1.0), person="who", rows_per_person=2)
    found = plan.check(table)
    assert (found.rows, found.left_out, found.counted, found.beyond_limit) == (13, 1, 7, 5)


@pytest.mark.parametrize("person", [None, "who"], ids=["", "person"])
def test_rows_of_a_tick_are_checked_with_the_column_that_says_which(person):
    over = gn.streams.Ticks(3, period="tick", reports=3, late="carry")
    limit = {} if person is None else {"person": person, "rows_per_person": 2}
    plan = gn.plan(SCHEMA, **ASKED, **limit, over=over)
    ticks = pa.array([1] * 3 + [7, None] + [1] * 8)
    found = plan.check(table_of(ROWS).append_column("tick", ticks))
    tables = counts_of_tick(
        plan.one_tick, over, 1, table_of(ROWS).append_column("tick", ticks), "drop"
    )
    assert {int(counts.sum()) for counts in tables.values()} == {found.counted}
    said = {case.reason: case.rows for case in found.failure_cases if case.column == "tick"}
    assert said == {"not a category": 1, "missing": 1}


def test_a_draft_can_be_checked():
    plan = gn.plan(gn.Schema(SCHEMA.attributes, is_draft=True), [("sex",)], gn.zCDP(1.0))
    assert plan.check(table_of(ROWS)).left_out == 3


def test_it_is_labelled_not_private_as_text_and_as_json():
    found = gn.plan(SCHEMA, **ASKED).check(table_of(ROWS))
    assert str(found).startswith("NOT PRIVATE: for you alone")
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["not_private"].startswith("NOT PRIVATE")
    assert plain["failure_cases"][0] == {
        "column": "sex",
        "reason": "not a category",
        "rows": 2,
        "examples": ["'m'"],
    }
    assert (plain["rows"], plain["left_out"], plain["passed"]) == (13, found.left_out, False)


def test_objects_of_any_kind_are_named_by_their_text_or_their_type():
    class Silent:
        def __str__(self):
            raise ValueError

    objects = [Silent(), b"x", {3: 3}, "x" * 100, pd.NA, 10**5000]
    plan = gn.plan(gn.Schema([gn.Attribute("v", ["a"])]), 1, gn.zCDP(1.0))
    found = plan.check(pd.DataFrame({"v": pd.Series(objects, dtype=object)}))
    assert found.left_out == 6
    shown = {text for case in found.failure_cases for text in case.examples}
    assert "Silent" in shown
    assert max(map(len, shown)) <= 41


CODED = [
    gn.Attribute("job", ["nurse"], other="none said", missing=["K", 9]),
    gn.Attribute("age", edges=[0, 18, 120], other="none said", missing=[99, 99.9]),
    gn.Attribute("pay", clip=[0, 100], other="none said", missing=[999, "refused"]),
]
ANSWERS = {
    "job": ["nurse", "K", "9", "cook", None, "nurse"],
    "age": ["17", "99", "99.90", "98", "200", ""],
    "pay": ["50", "999", "999.0", "refused", "998", "much"],
}


@pytest.mark.parametrize("engine", ["csv", "pandas", "polars", "pyarrow"])
def test_codes_for_no_answer_are_counted_apart_from_other_values(engine, engines, tmp_path):
    """In every form of text; typed numbers have no text among them."""
    rows = pa.table(ANSWERS)
    if engine in ("polars", "pyarrow"):
        numbers = {name: [float(x) if x[:1].isdigit() else None for x in ANSWERS[name]]
                   for name in ("age", "pay")}  # fmt: skip
        rows = pa.table({**ANSWERS, **numbers})
    found = gn.plan(gn.Schema(CODED), 1, gn.zCDP(1.0)).check(engines[engine](rows, tmp_path))
    said = {(case.column, case.reason): case.rows for case in found.caught}
    typed = engine in ("polars", "pyarrow")
    text = {"code for missing": 2} if typed else {"code for missing": 3, "not a number": 1}
    assert said == {
        ("job", "code for missing"): 2,
        ("job", "not a category"): 1,
        ("job", "missing"): 1,
        ("age", "code for missing"): 2,
        ("age", "outside the edges"): 1,
        ("age", "missing"): 1,
        **{("pay", reason): n for reason, n in text.items()},
        **({("pay", "missing"): 2} if typed else {}),
    }
    assert [(case.rows, case.examples) for case in found.clipped] == [(1, ("998.0",))] or not typed
    assert sum(case.rows for case in found.clipped) == 1


def test_spellings_count_as_their_category_and_are_saved(tmp_path):
    sex = gn.Attribute("sex", ["F", "M"], spellings={"F": ["f", "Fem, ale"], "M": ["m"]})
    schema = gn.Schema([sex])
    assert (
        gn.Schema.loads(schema.to_toml()) == schema != gn.Schema([gn.Attribute("sex", ["F", "M"])])
    )
    rows = pa.table({"sex": ["F", "f", "Fem, ale"] * 100 + ["m"] * 300})
    plan = gn.plan(schema, 1, gn.zCDP(10))
    assert plan.check(rows).passed
    plan.release(rows, out=tmp_path / "out")
    loaded = gn.TableRelease.load(tmp_path / "out")
    assert loaded.plan.schema == schema
    assert loaded["sex"].estimate == pytest.approx(300, abs=20)
    assert run(["verify", str(tmp_path / "out")]) == 0
    method = (tmp_path / "out" / "method.txt").read_text()
    assert "sex: F; M (counted as one: Fem, ale, f as F; m as M)" in method
    for question in ("count of sex=f", 'count of sex="Fem, ale"'):
        assert loaded.ask(question).estimate == loaded.ask("count of sex=F").estimate
    unlike = pa.table({"sex": ["F ", "m"]})
    (case,) = plan.check(unlike).failure_cases
    assert (case.reason, case.rows) == ("not a category", 1)


def test_spellings_and_codes_in_another_order_make_the_same_request():
    def request(spellings, missing):
        sex = gn.Attribute("sex", ["F", "M", "X"], spellings=spellings, missing=missing)
        return gn.plan(gn.Schema([sex]), 1, gn.zCDP(1)).request_sha256

    one = request({"M": ["m", "Man"], "F": ["f", "Frau"]}, [9, "none", -8.5])
    assert one == request({"F": ["Frau", "f"], "M": ["Man", "m"]}, ["none", -8.5, 9])
    assert one != request({"F": ["Frau", "m"], "M": ["Man", "f"]}, [9, "none", -8.5])


def test_spellings_that_pandas_reads_as_one_value_belong_to_one_category():
    """Otherwise a row would count in one or the other, by the type that pandas gives its column."""
    rows = pd.DataFrame({"v": ["1", "01", "a", "b"]})
    known = gn.Attribute("v", ["a", "b"], spellings={"a": ["1", "01"]})
    assert gn.plan(gn.Schema([known]), 1, gn.zCDP(1.0)).check(rows).passed
    for spellings in ({"a": ["1"], "b": ["01"]}, {"a": ["NA"]}):
        confused = gn.Attribute("v", ["a", "b"], spellings=spellings)
        with pytest.raises(DataError, match="categories that pandas can tell apart"):
            gn.plan(gn.Schema([confused]), 1, gn.zCDP(1.0)).check(rows)


@pytest.mark.parametrize("more", [{"categories": ["F", "09"]}, {"spellings": {"F": ["9.0"]}}])
def test_a_code_that_pandas_reads_as_a_category_is_refused(more):
    """Otherwise a row without an answer would count in a category."""
    known = gn.Attribute("v", **{"categories": ["F", "M"], "missing": [9]} | more)
    plan = gn.plan(gn.Schema([known]), 1, gn.zCDP(1.0))
    with pytest.raises(DataError, match="a category and a code for missing that are one value"):
        plan.check(pd.DataFrame({"v": ["F", "9"]}))
    found = plan.check(pa.table({"v": ["F", "9"]}))
    assert [case.reason for case in found.failure_cases] == ["code for missing"]


def test_codes_for_no_answer_leave_rows_out_or_refuse_them_and_are_saved(tmp_path):
    pay = gn.Attribute("pay", clip=[0, 1000], missing=[999])
    schema = gn.Schema([pay])
    assert gn.Schema.loads(schema.to_toml()) == schema
    assert schema != gn.Schema([gn.Attribute("pay", clip=[0, 1000])])
    rows = pa.table({"pay": [100.0] * 300 + [999.0] * 300})
    plan = gn.plan(schema, 1, gn.zCDP(10))
    with pytest.raises(DataError, match="'pay': expected only numbers"):
        plan.release(rows)
    plan.release(rows, on_outside="drop", out=tmp_path / "out")
    loaded = gn.TableRelease.load(tmp_path / "out")
    assert loaded.plan.schema == schema
    assert loaded.means("pay").estimate == pytest.approx(100, abs=20)  # 549 with the codes
    assert run(["verify", str(tmp_path / "out")]) == 0
    assert "(codes for no answer: 999)" in (tmp_path / "out" / "method.txt").read_text()


MONTHS = {
    "categories": gn.Attribute("m", [f"2023-{k:02}" for k in range(1, 13)], other="?"),
    "closed": gn.Attribute("m", edges=["2023-01-01", "2023-07-01", "2024-01-01"], other="?"),
    "open": gn.Attribute("m", edges=[-math.inf, "2023-01-01", "2023-07-01", math.inf]),
    "left out": gn.Attribute("m", [f"2023-{k:02}" for k in range(1, 13)]),
}


@pytest.mark.parametrize("engine", ["pyarrow", "pandas", "polars lazy", "csv", "dask"])
@pytest.mark.parametrize("kind", MONTHS)
def test_a_file_of_another_year_is_named_loudly(kind, engine, engines, tmp_path):
    attribute = MONTHS[kind]
    written = "{}-{:02}" if attribute.categories else "{}-{:02}-15"
    plan = gn.plan(gn.Schema([attribute]), 1, gn.zCDP(1.0))

    def warned(years):
        months = [written.format(year, k % 12 + 1) for k, year in enumerate(years)]
        rows = pa.table({"m": [*months, None, None]})
        return plan.check(engines[engine](rows, tmp_path)).warnings

    assert warned([2023] * 24) == ()
    less = warned([2023] * 3 + [2025] * 21)  # 7 of 8 values, less than nine in ten
    assert not any("is this the table" in said for said in less)
    (said,) = warned([2023] * 2 + [2025] * 22)
    how = {
        "categories": "are no category of the schema",
        "closed": "are outside the edges",
        "open": "are in the last bin, which has no end",
        "left out": "are no category of the schema",
    }[kind]
    assert said == (
        f"22 of 24 values of m {how}; is this the table, and this the schema, that you mean?"
    )


@pytest.mark.parametrize(
    ("other", "end"), [("?", "count in its catch-all"), (None, "are left out")]
)
def test_a_tenth_of_all_rows_in_no_category_is_a_warning(other, end):
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"], other=other, missing=["-"])])

    def warned(few):
        rows = [*["female"] * few, "-", "-", None, *"F" * (97 - few)]
        return gn.plan(schema, 1, gn.zCDP(1.0)).check(pa.table({"sex": rows})).warnings

    assert warned(9) == ()
    (said,) = warned(10)
    assert said == (
        f"10 of 97 values of sex are no category of the schema: their rows {end}; does the schema "
        "name every value, as the table writes it, and every code for missing?"
    )


def test_a_warning_of_values_at_the_nearer_end_needs_nearly_all_of_them():
    """Ends are chosen so that they cut some values."""
    schema = gn.Schema([gn.Attribute("pay", clip=[0, 9])])
    table = pa.table({"pay": [5.0, 5.0, 50.0, 50.0]})
    assert gn.plan(schema, 1, gn.zCDP(1.0)).check(table).warnings == ()


def test_columns_that_are_mostly_empty_are_no_reason_to_warn():
    schema = gn.Schema([gn.Attribute("died", ["yes"], other="?")])
    table = pa.table({"died": [None] * 30 + ["yes"]})
    assert gn.plan(schema, 1, gn.zCDP(1.0)).check(table).warnings == ()


def test_values_of_rows_that_are_not_counted_are_said_to_be_among_those_listed():
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"], other="x"), gn.Attribute("age", [1, 2])])
    plan = gn.plan(schema, ["sex", "age"], gn.zCDP(1.0))
    among = "which is in no mean or sum of a number (also in rows that are not counted):"
    assert among in str(plan.check(pa.table({"sex": ["F", None], "age": [1, 3]})))
    assert among not in str(plan.check(pa.table({"sex": ["F", None], "age": [1, 2]})))
