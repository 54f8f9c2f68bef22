"""Every row of the table of bad input: what is given, who is asked, and the typed answer."""

import math
import sys
import tracemalloc
from dataclasses import replace

import audit_kit as kit
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import (
    CovarianceError,
    DataError,
    DomainError,
    DomainTooLargeError,
    InvalidDomainError,
    ParameterError,
    SchemaError,
)
from gaussnoise.noise.covariance import FactorCovariance
from gaussnoise.noise.solve import _solved_once
from gaussnoise.privacy.sampler import IntegerQuery

SIMPLEX = gn.FiniteSet(np.eye(3))
NOISE = gn.optimal_noise(SIMPLEX)
SUMS = gn.optimal_noise(SIMPLEX, neighbors="add-remove")


def schema(*sizes):
    return gn.Schema([gn.Attribute(f"a{i}", range(n)) for i, n in enumerate(sizes)])


def small(**options):
    return gn.plan(schema(2, 3), 2, gn.zCDP(0.5), **options)


def survey(other=None):
    """One column of each kind."""
    return gn.plan(
        gn.Schema(
            [
                gn.Attribute("word", ["x", "y"], other=other),
                gn.Attribute("code", [1, 2], other=other),
                gn.Attribute("flag", [True, False], other=other),
                gn.Attribute("size", edges=[0, 1, 2], other=other),
            ]
        ),
        1,
        gn.zCDP(0.5),
    )


def row(**changes):
    return pa.table({"word": ["x"], "code": [1], "flag": [True], "size": [0.5]} | changes)


def replaced(covariance):
    return gn.GaussianMechanism(replace(NOISE, covariance=covariance), gn.zCDP(0.5), n=5)


def means(data=None, **options):
    return gn.GaussianMechanism(NOISE, gn.zCDP(0.5), n=2).release(data, **options)


def sums(data=None, **options):
    return gn.GaussianMechanism(SUMS, gn.zCDP(0.5)).release(data, **options)


# (what is given, the call, the type of the answer, part of its message)
REFUSED = [
    # NaN, inf, float category, wrong length, wrong dtype
    ("NaN number", lambda: survey().release(row(size=[math.nan])), DataError, "column 'size'"),
    ("infinite number", lambda: survey().release(row(size=[math.inf])), DataError, "column "
    "'size'"),
    ("float category", lambda: survey().release(row(code=[1.0])), DataError, "column 'code'"),
    ("text for numbers", lambda: survey().release(row(size=["0.5"])), DataError,
     "column 'size'"),
    ("text for codes", lambda: survey().release(row(code=["1"])), DataError, "column 'code'"),
    ("numbers for text", lambda: survey().release(row(word=[1])), DataError, "column 'word'"),
    ("integers for booleans", lambda: survey().release(row(flag=[1])), DataError, "column "
    "'flag'"),
    ("missing column", lambda: survey().release(row().drop_columns("flag")), DataError,
     "'flag'"),
    ("not a table", lambda: survey().release([[1, 2]]), DataError, "expected a dataframe"),
    ("a number for a table", lambda: survey().release(7), DataError, "expected a dataframe"),
    ("NaN row of points", lambda: means([[math.nan, 0, 0], [1, 0, 0]]), DataError, "points"),
    ("infinite row of points", lambda: sums([[math.inf, 0, 0]]), DataError, "points"),
    ("float indices", lambda: sums(indices=[0.0, 1.0]), DataError, "integer row indices"),
    ("booleans for indices", lambda: sums(indices=[True]), DataError, "integer row indices"),
    ("rows too long", lambda: sums([[1, 0, 0, 0]]), DataError, "shape"),
    ("counts of another length", lambda: sums(counts=[1, 2]), DataError, "shape"),
    ("float counts", lambda: sums(counts=[1.0, 2.0, 3.0]), DataError, "integer counts"),
    ("NaN counts", lambda: sums(counts=[math.nan] * 3), DataError, "integer counts"),
    ("negative counts", lambda: sums(counts=[-1, 2, 3]), DataError, "counts >= 0"),
    ("boolean counts", lambda: sums(counts=[True, False, True]), DataError, "integer counts"),
    ("data and counts", lambda: sums(indices=[0], counts=[1, 0, 0]), ParameterError, "either"),
    ("neither data nor counts", sums, ParameterError, "either"),
    # category outside the schema, null
    ("unknown category", lambda: survey().release(row(word=["z"])), DataError, "column 'word'"),
    ("null category", lambda: survey().release(row(word=pa.array([None], pa.string()))),
     DataError, "column 'word'"),
    ("null number", lambda: survey().release(row(size=pa.array([None], pa.float64()))),
     DataError, "column 'size'"),
    ("null boolean", lambda: survey().release(row(flag=pa.array([None], pa.bool_()))),
     DataError, "column 'flag'"),
    ("number outside the edges", lambda: survey().release(row(size=[2.5])), DataError,
     "column 'size'"),
    ("numbers that may be counts", lambda: sums([3, 0, 1]), DataError, "counts= says how many"),
    # record outside the declared body
    ("index outside", lambda: sums(indices=[3]), DataError, "row indices in 0..2"),
    ("negative index", lambda: sums(indices=[-1]), DataError, "row indices in 0..2"),
    ("row outside", lambda: sums([[0.5, 0.5, 0]]), DataError, "one of the domain's points"),
    # empty data: means need their public n
    ("empty data for a mean", lambda: means([]), DataError, "exactly n = 2"),
    ("no counts for a mean", lambda: means(counts=[0, 0, 0]), DataError, "exactly n = 2"),
    ("no n for a mean", lambda: gn.GaussianMechanism(NOISE, gn.zCDP(1)), ParameterError, "n "
    ">= 1"),
    ("n = 0", lambda: gn.GaussianMechanism(NOISE, gn.zCDP(1), n=0), ParameterError, "n >= 1"),
    ("n for sums", lambda: gn.GaussianMechanism(SUMS, gn.zCDP(1), n=3), ParameterError, "n is "
    "private"),
    # covariance
    ("ellipsoid not symmetric", lambda: gn.Ellipsoid([[1, 2], [0, 1]]), InvalidDomainError,
     "symmetric"),
    ("ellipsoid not PSD", lambda: gn.Ellipsoid([[1, 2], [2, 1]]), InvalidDomainError,
     "eigenvalue -1"),
    ("ellipsoid of NaN", lambda: gn.Ellipsoid([[math.nan]]), InvalidDomainError, "Ellipsoid"),
    (
        "singular covariance",
        lambda: replaced(FactorCovariance(NOISE.covariance.unit_factor[:, :1], 9.0)),
        CovarianceError,
        "without noise",
    ),
    ("no covariance", lambda: replaced(FactorCovariance(np.zeros((3, 0)), 1.0)),
     CovarianceError, "without noise"),
    (
        "means' noise for sums",
        lambda: gn.GaussianMechanism(replace(NOISE, neighbors="add-remove"), gn.zCDP(1)),
        CovarianceError,
        "without noise",
    ),
    # one category, none
    ("zero categories", lambda: gn.Attribute("a", []), SchemaError, "at least one category"),
    ("one edge", lambda: gn.Attribute("a", edges=[0]), SchemaError, "increasing"),
    ("zero attributes", lambda: gn.Schema([]), SchemaError, "at least one attribute"),
    ("zero cells", lambda: gn.Marginals((0, 2), [(0,)]), InvalidDomainError, "sizes"),
    ("zero points", lambda: gn.FiniteSet(np.zeros((0, 2))), InvalidDomainError, "N, d >= 1"),
    ("NaN points", lambda: gn.FiniteSet([[math.nan]]), InvalidDomainError, "finite"),
    ("infinite points", lambda: gn.FiniteSet([[math.inf]]), InvalidDomainError, "finite"),
    ("zero marginals", lambda: gn.plan(schema(2), [], gn.zCDP(1)), ParameterError, "at least "
    "one marginal"),
    # σ = 0 or NaN, δ ∉ (0,1), ε ≤ 0, ρ ≤ 0, p < 2
    *[
        (f"rho = {x!r}", lambda x=x: gn.zCDP(x), ParameterError, "rho")
        for x in (0, -1, math.nan, math.inf, "x", None)
    ],
    *[
        (f"epsilon = {x!r}", lambda x=x: gn.ApproxDP(x, 1e-6), ParameterError, "epsilon")
        for x in (0, -1, math.nan, math.inf, "x", None)
    ],
    *[
        (f"delta = {x!r}", lambda x=x: gn.ApproxDP(1, x), ParameterError, "delta")
        for x in (0, 1, -0.1, 1.5, math.nan, math.inf, "x", None)
    ],
    *[
        (f"p = {x!r}, {asked}", lambda x=x, ask=ask: ask(x), ParameterError, "p >= 2")
        for x in (1, 1.999, 0, -2, math.nan, -math.inf, "2", None)
        for asked, ask in {
            "noise": lambda p: gn.optimal_noise(SIMPLEX, p),
            "gamma": lambda p: gn.gamma(SIMPLEX, p),
            "plan": lambda p: small(p=p),
        }.items()
    ],
    ("zero variance", lambda: replaced(FactorCovariance(np.zeros((3, 2)), 1.0)),
     gn.GaussNoiseError, ""),
    ("rho too small to draw", lambda: small_at(1e-300).release(table()), ParameterError, "rho"),
    ("rho too large to draw", lambda: small_at(1e300).release(table()), ParameterError, "rho"),
    ("no noise to speak of", lambda: IntegerQuery(1, math.inf).draw(1), ParameterError, "rho"),
    ("sigma = NaN", lambda: IntegerQuery(1, math.nan).draw(1), ParameterError, "rho"),
    # several rows per person
    *[
        (f"rows_per_person = {x!r}", lambda x=x: small(rows_per_person=x), ParameterError,
         "rows_per_person")
        for x in (0, -3, 2.0, math.nan, True, "3", None, 10**30)
    ],
    ("unknown relation", lambda: small(neighbors="swap"), ParameterError, "neighbors"),
    ("no privacy", lambda: gn.plan(schema(2), 1, None), ParameterError, "zCDP"),
    ("a number for privacy", lambda: gn.plan(schema(2), 1, 0.5), ParameterError, "zCDP"),
]  # fmt: skip


def small_at(rho):
    return gn.plan(schema(2, 3), 2, gn.zCDP(rho))


def table(*records):
    return kit.table_of(records, 2)


@pytest.mark.parametrize(
    ("call", "kind", "part"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_bad_input_is_refused_by_type_and_name(call, kind, part):
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert part in message
    assert "\n" not in message
    assert isinstance(caught.value, gn.GaussNoiseError | DomainError)
    assert isinstance(caught.value, ValueError)


def test_names_of_cases_are_distinct():
    assert len({case[0] for case in REFUSED}) == len(REFUSED)


# Valid input that only looks bad.


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_empty_tables_are_released(neighbors):
    release = small(neighbors=neighbors).release(table())
    estimate, sd = release["a0", "a1"].estimate, release["a0", "a1"].standard_deviation
    assert (np.abs(estimate) < 8 * sd).all()
    assert (release[()].estimate == 0) == (
        neighbors == "replace"
    )  # where the number of rows is public


def test_empty_sums_are_released():
    assert (np.abs(sums([]).estimate) < 8 * sums([]).standard_deviation).all()


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_an_attribute_of_one_category_is_its_number_of_rows(neighbors):
    plan = gn.plan(schema(1), 1, gn.zCDP(0.5), neighbors=neighbors)
    release = plan.release(pa.table({"a0": [0] * 9}))
    if neighbors == "replace":
        assert release["a0"].estimate.tolist() == [9]
        assert release["a0"].standard_deviation.tolist() == [0]
        assert release.rho_charged == 0
        return
    assert release["a0"].estimate[0] != 9
    assert release["a0"].standard_deviation[0] == pytest.approx(1, rel=1e-6)
    assert release.rho_charged == pytest.approx(0.5)


@pytest.mark.parametrize("points", [[[3.0, 4.0]], [[3.0, 4.0]] * 3])
def test_a_domain_of_one_point(points):
    constant = gn.GaussianMechanism(gn.optimal_noise(gn.FiniteSet(points)), gn.zCDP(0.5), n=4)
    assert constant.rho_charged == 0
    assert constant.release(indices=[0] * 4).estimate.tolist() == [3, 4]
    noisy = gn.GaussianMechanism(
        gn.optimal_noise(gn.FiniteSet(points), neighbors="add-remove"), gn.zCDP(0.5)
    )
    assert noisy.rho_charged == pytest.approx(0.5)
    assert noisy.standard_deviation == pytest.approx([3, 4])


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("k", [1, 7])
def test_rows_of_a_person_multiply_the_budget_by_their_square_and_are_stated(
    tmp_path, neighbors, k
):
    plan = small(neighbors=neighbors, rows_per_person=k)
    release = plan.release(table((0, 0)), out=tmp_path / "out")
    assert release.query.query.rho * k**2 == pytest.approx(0.5, rel=1e-9)
    assert release.rho_charged == pytest.approx(0.5, rel=1e-9)
    text = kit.written(tmp_path / "out")
    assert f'"rows_per_person": {k}' in text
    assert ('"privacy_unit": "one person' in text) == (k > 1)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_the_catch_all_takes_nulls_and_strangers(kind):
    columns = {
        "word": pa.array(["x", None, "z"]),
        "code": pa.array([1, None, 9]),
        "flag": pa.array([True, None, None]),
        "size": pa.array([0.5, None, math.nan]),
    }
    given = pa.table(columns)
    if kind == "pandas":
        given = given.to_pandas(types_mapper=pd.ArrowDtype)
    elif kind == "polars":
        given = pytest.importorskip("polars").from_arrow(given)
    schema_ = survey("rest").schema
    release = gn.plan(schema_, 1, gn.zCDP(1e12)).release(given)
    for name in columns:
        found = release[name].estimate
        assert np.rint(found).tolist() == [1, *[0] * (len(found) - 2), 2]


# Refused before any work: within a generous ratio of the calls that planning one small table makes,
# and little memory.

HUGE = [
    ("10^12 cells", lambda: gn.plan(schema(*[1000] * 4), 4, gn.zCDP(1))),
    (
        "10^12 cells, replace",
        lambda: gn.plan(schema(*[1000] * 4), 4, gn.zCDP(1), neighbors="replace"),
    ),
    ("2^60 cells", lambda: gn.plan(schema(*[2] * 60), 60, gn.zCDP(1))),
    (
        "2^60 cells, replace",
        lambda: gn.plan(schema(*[2] * 60), 60, gn.zCDP(1), neighbors="replace"),
    ),
    ("10^17 tables", lambda: gn.plan(schema(*[2] * 60), 30, gn.zCDP(1))),
    ("2^60 records", lambda: gn.Marginals((2,) * 60, [(0, 1)]).to_finite_set()),
    (
        "2^60 points, ellipsoid",
        lambda: gn.optimal_noise(gn.Marginals((2,) * 60, [(0, 1)]), method="ellipsoid"),
    ),
    ("2^60 points, sdp", lambda: gn.optimal_noise(gn.Marginals((2,) * 60, [(0, 1)]), method="sdp")),
    (
        "2^60 vertices",
        lambda: gn.Polytope.from_halfspaces(np.vstack([np.eye(60), -np.eye(60)]), np.ones(120)),
    ),
]
_GENEROUS = 50  # a thousandth of it, were all planned, is beyond any memory


def calls(call):
    """How many functions, Python's and C's, are called on the way: unlike seconds, alike on every
    machine.
    """
    made, before = [0], sys.getprofile()

    def count(frame, event, argument):
        made[0] += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(before)
    return made[0]


@pytest.fixture(scope="module")
def reference():
    small()
    _solved_once.cache_clear()  # a plan that is solved again, not one that is known
    return calls(small)


@pytest.mark.parametrize("call", [call for _, call in HUGE], ids=[name for name, _ in HUGE])
def test_huge_problems_are_refused_with_an_estimate_before_any_work(reference, call):
    def refused():
        with pytest.raises(DomainTooLargeError, match=r"\d(e\+|\^)\d|\d GB") as caught:
            call()
        assert isinstance(caught.value, ValueError)

    tracemalloc.start()
    try:
        refused()  # imports, too
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    assert calls(refused) < _GENEROUS * reference


def test_many_huge_tables_take_no_longer_to_refuse_than_as_many_small_ones_to_plan():
    """Listing them is all that is done: solving for them first takes a thousand times as long."""

    def refused():
        with pytest.raises(DomainTooLargeError, match="cells"):
            gn.plan(schema(*[100] * 20), 4, gn.zCDP(1))

    assert calls(refused) < 10 * calls(lambda: gn.plan(schema(*[2] * 20), 4, gn.zCDP(1)))


def test_a_nan_covariance_is_a_typed_error():
    with pytest.raises(gn.GaussNoiseError):
        replaced(FactorCovariance(np.full((3, 2), math.nan), 1.0))


# The same from the shell: one line, exit status 1, no files.

FILES = {"good": row(), "empty": row().slice(0, 0)}
COMMAND_LINES = {
    "NaN": ({"table": row(size=[math.nan])}, "column 'size'"),
    "infinite": ({"table": row(size=[math.inf])}, "column 'size'"),
    "unknown category": ({"table": row(word=["z"])}, "column 'word'"),
    "null": ({"table": row(word=pa.array([None], pa.string()))}, "column 'word'"),
    "float category": ({"table": row(code=[1.5])}, "column 'code'"),
    "wrong type": ({"table": row(flag=["maybe"])}, "column 'flag'"),
    "outside the edges": ({"table": row(size=[2.5])}, "column 'size'"),
    "missing column": ({"table": row().drop_columns("flag")}, "'flag'"),
    "rho = 0": ({"budget": ["--rho", "0"]}, "rho > 0"),
    "rho < 0": ({"budget": ["--rho=-1"]}, "rho > 0"),
    "rho = NaN": ({"budget": ["--rho", "nan"]}, "rho > 0"),
    "rho = inf": ({"budget": ["--rho", "inf"]}, "rho > 0"),
    "epsilon = 0": ({"budget": ["--epsilon", "0", "--delta", "1e-6"]}, "epsilon > 0"),
    "delta = 0": ({"budget": ["--epsilon", "1", "--delta", "0"]}, "0 < delta < 1"),
    "delta = 1": ({"budget": ["--epsilon", "1", "--delta", "1"]}, "0 < delta < 1"),
    "delta = NaN": ({"budget": ["--epsilon", "1", "--delta", "nan"]}, "0 < delta < 1"),
    "no budget": ({"budget": []}, "--rho"),
    "p < 2": ({"more": ["--p", "1"]}, "p >= 2"),
    "p = NaN": ({"more": ["--p", "nan"]}, "p >= 2"),
    "no rows per person": ({"more": ["--rows-per-person", "0"]}, "rows_per_person"),
    "within nothing": ({"budget": [], "more": ["--within", "0"]}, ""),
    "within NaN": ({"budget": [], "more": ["--within", "nan"]}, ""),
    "unknown relation": ({"more": ["--neighbors", "swap"]}, "neighbors"),
    "zero categories": ({"schema": "[attributes.a]\ncategories = []\n"}, "at least one category"),
    "zero attributes": ({"schema": "[attributes]\n"}, "at least one attribute"),
    "10^12 cells": (
        {"schema": "".join(f"[attributes.a{k}]\nedges = {list(range(1001))}\n" for k in range(4)),
        "m": "4"},
        "cells would take",
    ),
    "2^60 cells": (
        {"schema": "".join(f"[attributes.a{k}]\ncategories = [0, 1]\n" for k in range(60)),
        "m": "60"},
        "more than",
    ),
}  # fmt: skip


def command_line(
    folder, table=None, budget=("--rho", "0.5"), more=(), schema=None, m="1", format="csv"
):
    (folder / "schema.toml").write_text(schema or survey().schema.to_toml(), encoding="utf-8")
    write = pyarrow.csv.write_csv if format == "csv" else pyarrow.parquet.write_table
    write(FILES["good"] if table is None else table, folder / f"t.{format}")
    given = [
        "release",
        str(folder / f"t.{format}"),
        "-s",
        str(folder / "schema.toml"),
        "-m",
        m,
        *budget,
        *more,
    ]
    return run([*given, "--out", str(folder / "out")])


ASKED = [
    (name, format)
    for name, (changes, _) in COMMAND_LINES.items()
    for format in (("csv", "parquet") if "table" in changes else ("csv",))
]


@pytest.mark.parametrize(("name", "format"), ASKED)
def test_bad_input_at_the_command_line(tmp_path, capsys, name, format):
    changes, part = COMMAND_LINES[name]
    changes = changes | {"more": [*changes.get("more", ()), "--on-outside", "refuse"]}
    assert command_line(tmp_path, **changes, format=format) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert part in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["schema.toml", f"t.{format}"]


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize(
    "name", ["NaN", "infinite", "unknown category", "null", "float category", "outside the edges"]
)
def test_no_value_decides_at_the_command_line(tmp_path, capsys, name, format):
    changes, _ = COMMAND_LINES[name]
    assert command_line(tmp_path, **changes, format=format) == 0
    assert "are in no table; how many is private" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "neighbors", "k"),
    [("good", "add-remove", "4"), ("empty", "add-remove", "1"), ("empty", "replace", "4")],
)
def test_good_and_empty_tables_at_the_command_line(tmp_path, capsys, name, neighbors, k):
    more = ["--neighbors", neighbors, "--rows-per-person", k, "--on-outside", "refuse"]
    assert command_line(tmp_path, FILES[name], more=more, format="parquet") == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "out" / "release.json").exists()
