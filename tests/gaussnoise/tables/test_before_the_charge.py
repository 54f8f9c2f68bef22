"""Tests that all checks without data run before a charge, and that Ctrl-C stops everything."""

import gzip
import math

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gaussnoise as gn
from gaussnoise.errors import ConvergenceWarning, DataError, ParameterError
from gaussnoise.noise.optimal_noise import OptimalNoise
from gaussnoise.privacy import sampler as _sampler
from gaussnoise.solvers.points.fidelity import Fidelity
from gaussnoise.tables.planning import independent as _independent

SCHEMA = gn.Schema(
    [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120], base="prefix")]
)
PEOPLE = pa.table({"sex": ["F", "M", "F"], "age": [7, 33, 61]})


@pytest.fixture
def ledger(tmp_path):
    return gn.Ledger.create(tmp_path / "ledger", gn.zCDP(1.0))


@pytest.fixture
def draws(monkeypatch):
    """Return the number of integers in each draw of noise."""
    drawn, draw = [], _sampler.IntegerQuery.draw
    monkeypatch.setattr(
        _sampler.IntegerQuery, "draw", lambda query, n: drawn.append(n) or draw(query, n)
    )
    return drawn


def injected(*arguments, **options):
    raise RuntimeError("injected")


@pytest.mark.parametrize(
    "part",
    [
        "gaussnoise.tables.release.files.release_record",
        "gaussnoise.tables.release.files.release_text",
        "gaussnoise.tables.planning.facts.gaussian_epsilon",
        "gaussnoise.tables.planning.facts.verdict",
        "gaussnoise.tables.release.record.versions",
        "gaussnoise.tables.release.record.disclaimers",
        "gaussnoise.tables.release.files.file_names",
        "gaussnoise.tables.release.record.base_value",
        "gaussnoise.tables.planning.plan.bound_of",
        "gaussnoise.bounds.Bound.as_dict",
        "gaussnoise.tables.release.noisy.query_labels",
        "gaussnoise.noise.product_covariance.ProductCovariance.term_variance",
        "gaussnoise.tables.release.table.arrow_columns",
        "gaussnoise.tables.release.publish.frame_backend",
    ],
)
def test_what_a_release_says_about_itself_is_ready_before_anything_is_charged_or_drawn(
    monkeypatch, tmp_path, ledger, draws, part
):
    plan = gn.plan(SCHEMA, [("sex", "age")], gn.zCDP(0.1))
    monkeypatch.setattr(part, injected)
    with pytest.raises(RuntimeError, match="injected"):
        plan.release(PEOPLE, out=tmp_path / "out", ledger=ledger, id="x")
    assert ledger.spent == 0
    assert not draws
    monkeypatch.undo()
    plan.release(PEOPLE, out=tmp_path / "out", ledger=ledger, id="x")
    assert ledger.spent == pytest.approx(0.1)


def test_a_bound_that_contradicts_the_plan_costs_nothing(monkeypatch, tmp_path, ledger, draws):
    """Such a bound once cost a charge, and so did every new attempt under the same id."""
    plan = gn.plan(SCHEMA, [("sex", "age")], gn.zCDP(0.1))
    monkeypatch.setattr(gn.results.Bound, "error", property(lambda bound: 2 * plan.error))
    for _ in range(2):
        with pytest.raises(ParameterError, match="as_dict"):
            plan.release(PEOPLE, out=tmp_path / "out", ledger=ledger, id="x")
    assert ledger.spent == 0
    assert not draws


@pytest.mark.parametrize(
    "option",
    [
        {"progress": 3},
        {"on_outside": "x"},
        {"format": "xls"},
        {"out": 3},
        {"out": b"out"},
        {"out": math},
    ],
)
def test_bad_arguments_cost_nothing(tmp_path, ledger, draws, option):
    plan = gn.plan(SCHEMA, [("sex", "age")], gn.zCDP(0.1))
    with pytest.raises(ParameterError):
        plan.release(PEOPLE, **({"out": tmp_path / "out", "ledger": ledger, "id": "x"} | option))
    assert ledger.entries() == ()
    assert not draws


@pytest.mark.parametrize(
    "part",
    [
        "gaussnoise.mechanisms.gaussian.gaussian_epsilon",
        "gaussnoise.mechanisms.gaussian.versions",
        "gaussnoise.mechanisms.gaussian.disclaimers",
        "gaussnoise.mechanisms.gaussian.bound_of",
        "gaussnoise.bounds.Bound.as_dict",
    ],
)
def test_what_a_mechanism_says_about_itself_is_ready_before_anything_is_charged_or_drawn(
    monkeypatch, ledger, draws, part
):
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(gn.FiniteSet(np.eye(3)), neighbors="add-remove"), gn.zCDP(0.1)
    )
    mechanism.standard_deviation  # noqa: B018
    monkeypatch.setattr(part, injected)
    with pytest.raises(RuntimeError, match="injected"):
        mechanism.release(counts=[1, 2, 3], ledger=ledger, id="x")
    assert ledger.spent == 0
    assert not draws


def test_a_mechanism_refuses_an_unknown_rule_before_it_charges(ledger, draws):
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove"), gn.zCDP(0.1)
    )
    with pytest.raises(ParameterError, match="on_outside"):
        mechanism.release(np.zeros((3, 2)), on_outside="ignore", ledger=ledger, id="x")
    assert ledger.entries() == ()
    assert not draws


@pytest.mark.parametrize("given", [{}, {"counts": [1]}, {"indices": [0]}, {"data": 1, "rows": 1}])
def test_records_by_no_name_or_by_two_cost_nothing(ledger, draws, given):
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove"), gn.zCDP(0.1)
    )
    with pytest.raises(ParameterError, match=r"expected|belongs to listed points"):
        mechanism.release(**given, ledger=ledger, id="x")
    assert ledger.entries() == ()
    assert not draws


@pytest.mark.parametrize(
    ("domain", "given"),
    [
        (gn.FiniteSet(np.eye(3)), {"indices": [[0], [0, 1]]}),
        (gn.FiniteSet(np.eye(3)), {"indices": [[0]]}),
        (gn.FiniteSet(np.eye(3)), {"data": [1.0, 2.0]}),
        (gn.FiniteSet(np.eye(3)), {"counts": [1, 2, 2.5]}),
        (gn.LpBall(2, 2), {"data": [[0.0, 1.0], [0.0, "x"]]}),
        (gn.LpBall(2, 2), {"data": [[0.0, 2.0]]}),
    ],
)
def test_every_refusal_of_records_is_in_the_ledger(ledger, draws, domain, given):
    """Records are ragged, of another shape or kind, or outside: checks run inside the charge."""
    mechanism = gn.GaussianMechanism(gn.optimal_noise(domain, neighbors="add-remove"), gn.zCDP(0.1))
    with pytest.raises(DataError, match="not said where"):
        mechanism.release(**given, ledger=ledger, id="x")
    assert [(entry.state, entry.rho) for entry in ledger.entries()] == [("refused", 0.0)]
    assert not draws


# Ctrl-C


def interrupted(monkeypatch, call):
    """Interrupt a call: every solve evaluates Fidelity.at, where Ctrl-C arrives once."""
    calls, at = [], Fidelity.at

    def press(self, *arguments, **options):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return at(self, *arguments, **options)

    monkeypatch.setattr(Fidelity, "at", press)


@pytest.mark.parametrize("call", [2, 5, 12])
def test_an_interrupted_plan_is_no_plan(monkeypatch, call):
    schema = gn.Schema(
        [
            gn.Attribute("age", range(17), base="prefix"),
            gn.Attribute("hour", range(11), base="ranges"),
        ]
    )
    interrupted(monkeypatch, call)
    with pytest.raises(KeyboardInterrupt):
        gn.plan(schema, 2, gn.zCDP(0.1))


def test_an_interrupted_plan_of_counts_is_no_plan(monkeypatch):
    from gaussnoise.solvers.tables.marginals import ResidualFidelity

    calls, at = [], ResidualFidelity.at

    def press(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return at(self, *arguments, **options)

    monkeypatch.setattr(ResidualFidelity, "at", press)
    schema = gn.Schema([gn.Attribute(name, range(n)) for name, n in (("a", 2), ("b", 3), ("c", 4))])
    with pytest.raises(KeyboardInterrupt):
        gn.plan(schema, 2, gn.zCDP(0.1), p=math.inf)


def test_comparing_a_plan_with_others_can_be_stopped(monkeypatch):
    plan = gn.plan(SCHEMA, [{"age": np.tri(3), "sex": "identity"}], gn.zCDP(0.1))
    _independent._least_variance.cache_clear()
    interrupted(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        plan.independent_deviations  # noqa: B018
    monkeypatch.undo()
    before = plan.independent_deviations  # the interrupted solve left nothing behind
    _independent._least_variance.cache_clear()
    again = gn.plan(
        SCHEMA, [{"age": np.tri(3), "sex": "identity"}], gn.zCDP(0.1)
    ).independent_deviations
    assert np.array_equal(before, again)


def test_a_solve_of_its_own_still_returns_its_best_answer(monkeypatch):
    interrupted(monkeypatch, 4)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        noise = gn.optimal_noise(gn.FiniteSet(np.random.default_rng(0).normal(size=(30, 5))))
    assert isinstance(noise, OptimalNoise)
    assert noise.status is gn.results.Status.INTERRUPTED


def in_file(end, write):
    """Return how a table is written to a file of this kind."""

    def written(folder, table):
        path = folder / f"table.{end}"
        write(table, path)
        return str(path)

    return written


def in_workbook(table, path):
    book = pytest.importorskip("openpyxl").Workbook()
    for row in (table.column_names, *zip(*table.to_pydict().values(), strict=True)):
        book.active.append(row)
    book.save(path)


# tables whose columns are known without their rows, each with how it is made
DECLARED = {
    "csv": in_file("csv", lambda t, path: t.to_pandas().to_csv(path, index=False)),
    "csv.gz": in_file("csv.gz", lambda t, path: t.to_pandas().to_csv(path, index=False)),
    "zip": in_file("zip", lambda t, path: t.to_pandas().to_csv(
        path, index=False, compression={"method": "zip", "archive_name": "t.csv"})),
    "parquet": in_file("parquet", pq.write_table),
    "xlsx": in_file("xlsx", in_workbook),
    "dta": in_file("dta", lambda t, path: t.to_pandas().to_stata(path, write_index=False)),
    "pyarrow": lambda _, t: t,
    "pandas": lambda _, t: t.to_pandas(),
    "polars": lambda _, t: pl.from_arrow(t),
    "polars lazy": lambda _, t: pl.from_arrow(t).lazy(),
    "duckdb": lambda _, t: duckdb.connect().from_arrow(t),
}  # fmt: skip
DOORS = {
    "release": lambda table, out, ledger: gn.plan(SCHEMA, 2, gn.zCDP(0.1), person="id").release(
        table, out=out, ledger=ledger, id="x"
    ),
    "tick": lambda table, out, ledger: (
        gn.plan(SCHEMA, 2, gn.zCDP(0.1), person="id", over=gn.streams.Ticks(2, reports=1))
        .start(out, ledger=ledger, id="x")
        .tick(table, number=1)
    ),
    "means": lambda table, out, ledger: gn.estimators.column_means(
        table,
        ["age"],
        gn.zCDP(0.1),
        by={"sex": ["F", "M"]},
        person="id",
        out=out,
        ledger=ledger,
        id="x",
    ),
    "categories": lambda table, out, ledger: gn.discover_categories(
        table, "sex", gn.ApproxDP(1.0, 1e-6), person="id", ledger=ledger, id="x"
    ),
}


CASES = [("release", kind) for kind in DECLARED]
CASES += [(door, kind) for door in DOORS for kind in ("csv", "polars") if door != "release"]


@pytest.mark.parametrize(("door", "kind"), CASES)
def test_a_table_without_a_column_costs_nothing_and_is_no_refusal(tmp_path, kind, door):
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(10.0), delta=1e-3)
    table = DECLARED[kind](tmp_path, PEOPLE)  # no column of it is called id
    with pytest.raises(DataError, match=r"expected ones is missing: 'id'") as caught:
        DOORS[door](table, tmp_path / "out", ledger)
    assert kind not in ("csv", "parquet", "xlsx") or f"in {table}" in str(caught.value)
    assert [entry.id for entry in ledger.entries()] == (["x"] if door == "tick" else [])
    assert ledger.refusals == 0


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_file_without_names_is_told_so_without_a_word_of_its_first_line(tmp_path, ledger, kind):
    canary = "sez"  # near the name of a column
    headless = pa.table({canary: ["M"], "77031": [33]})
    table = DECLARED[kind](tmp_path, headless)
    with pytest.raises(DataError, match="2 of 2 expected ones are missing: 'sex', 'age'") as caught:
        gn.plan(SCHEMA, 2, gn.zCDP(0.1)).release(table, out=tmp_path / "out", ledger=ledger, id="x")
    assert not any(text in str(caught.value) for text in (canary, "77031", "33"))
    twice = tmp_path / "twice.csv"
    twice.write_text("77031,F,77031\n1,M,2\n")
    with pytest.raises(DataError, match="got one twice, in columns 1 and 3") as caught:
        gn.plan(SCHEMA, 2, gn.zCDP(0.1)).release(twice, out=tmp_path / "out", ledger=ledger, id="x")
    assert "77031" not in str(caught.value)
    assert ledger.refusals == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", b'"sex,"age"\nF,33\n'),  # whether the quote closes is in later lines
        ("t.csv.gz", gzip.compress(b"sex,who\nF,1\n", mtime=0)[:12]),  # its end is lost
    ],
)
def test_what_rows_decide_is_refused_as_before(tmp_path, ledger, name, text):
    """A refusal that is not counted must not depend on a row."""
    table = tmp_path / name
    table.write_bytes(text)
    with pytest.raises(DataError, match="break the declared schema"):
        gn.plan(SCHEMA, 2, gn.zCDP(0.1)).release(table, out=tmp_path / "out", ledger=ledger, id="x")
    assert ledger.refusals == 1
