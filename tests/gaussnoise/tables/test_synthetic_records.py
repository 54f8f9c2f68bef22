"""Tests of synthetic records with labels: quiet, of the right shape, and like the tables."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from pyarrow import csv

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import NotAvailableError, ParameterError
from gaussnoise.tables.release.report.pages import release_page

pytestmark = pytest.mark.integration  # with mbi, and what it compiles

SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", edges=[0, 18, 65, 120]),
        gn.Attribute("smoker", [True, False]),
        gn.Attribute("never asked for", ["x", "y"]),
    ]
)
WORKLOAD = [("sex", "age"), ("age", "smoker")]


@pytest.fixture(scope="module")
def release():
    pytest.importorskip("mbi", exc_type=ImportError)
    rng, n = np.random.default_rng(0), 3000
    people = {
        "sex": rng.choice(["F", "M"], n, p=[0.7, 0.3]),
        "age": rng.uniform(0, 120, n),
        "smoker": rng.random(n) < 0.2,
        "never asked for": ["x"] * n,
    }
    return gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.5)).release(pd.DataFrame(people))


@pytest.fixture(scope="module")
def folder(release, tmp_path_factory, quick_pictures):
    path = tmp_path_factory.mktemp("synthetic") / "out"
    release.save(path)
    return path


def test_records_are_like_the_tables_and_carry_labels(release):
    records = release.synthetic(3000)
    assert isinstance(records, pd.DataFrame)
    assert list(records.columns) == ["sex", "age", "smoker"]
    assert len(records) == 3000
    counts = records.groupby(["sex", "age"]).size()
    table = release["sex", "age"]
    for i, sex in enumerate(table.labels[0]):
        for j, age in enumerate(table.labels[1]):
            assert abs(counts[sex, age] - table.estimate[i, j]) < 40
    assert set(records["smoker"]) == {True, False}


def paid(degrees, pay, rho=0.5, sex=None, n=200_000):
    """Return the release of pay by sex, and records drawn from it."""
    pytest.importorskip("mbi", exc_type=ImportError)
    sex = np.resize(["F", "M"], len(pay)) if sex is None else sex
    base = {"kind": "moments", "degrees": degrees}
    number = gn.Attribute("pay", clip=[-10, 110], base=base, other="unknown")
    planned = gn.plan(
        gn.Schema([SCHEMA.attributes[0], number]), [("sex", "pay"), "pay"], gn.zCDP(rho)
    )
    release = planned.release(pd.DataFrame({"sex": sex, "pay": pay}))
    return release, release.synthetic(n)


def margin(numbers):
    """Return how far the mean of so many numbers within 120 is from the one of their shape.

    Proven: see test_shapes.py; twice, as they begin anywhere. 0.1 for rounding, and for the fit.
    """
    return 120 * 2 * (3 + 4 * np.log(numbers)) / numbers + 0.1


@pytest.mark.parametrize("degrees", [[0, 1], [0, 1, 2]])
def test_clipped_numbers_of_records_have_the_released_means_in_every_group(degrees):
    rng, n = np.random.default_rng(0), 3000
    sex, pay = rng.choice(["F", "M"], n), rng.uniform(0, 100, n)
    pay = np.where(sex == "F", pay, pay / 2)
    pay[:300] = np.nan
    release, records = paid(degrees, pay, sex=sex)
    numbers = records["pay"].dropna()
    assert numbers.between(-10, 110).all()
    assert numbers.nunique() > 1000
    assert np.allclose(numbers, numbers.round(2), atol=1e-9)  # in steps of 0.01
    assert records["pay"].isna().mean() == pytest.approx(0.1, abs=0.02)
    groups = records.groupby("sex")["pay"]
    off = groups.mean().to_numpy() - release.means("pay", "sex").estimate
    assert (abs(off) < margin(groups.count().to_numpy())).all()
    assert groups.mean()["F"] > groups.mean()["M"] + 15
    if 2 in degrees:  # uniform: a twelfth of the squared length; by the mean alone 34 and 29
        assert groups.std().to_numpy() == pytest.approx([100 / 12**0.5, 50 / 12**0.5], abs=2)


@pytest.mark.parametrize("degrees", [[0, 1], [0, 1, 2]])
def test_means_that_noise_moves_to_an_end_give_numbers_close_to_that_end(degrees):
    pay = np.where(np.arange(3000) % 2, 500.0, -500.0)  # all women at one end, all men at the other
    _, records = paid(degrees, pay)
    groups = records.groupby("sex")["pay"].mean()
    assert groups.to_numpy() == pytest.approx([-10, 110], abs=2)
    assert records["pay"].dropna().between(-10, 110).all()
    nothing, records = paid(degrees, pay[:10], rho=1e-4, n=1000)  # noise alone, and negative counts
    assert records["pay"].dropna().between(-10, 110).all()
    assert len(nothing.likeness(records)) == 5


def test_records_are_compared_with_the_release(release):
    pay = np.random.default_rng(0).uniform(0, 100, 3000)
    known, records = paid([0, 1, 2], pay)
    mean, deviation, *quartiles = known.likeness(records)
    assert mean[:2] == ("pay", "mean")
    assert mean.low < mean.release < mean.high
    assert mean.synthetic == pytest.approx(records["pay"].mean())
    assert deviation.synthetic == pytest.approx(records["pay"].std(ddof=0))
    assert deviation.release == pytest.approx(100 / 12**0.5, abs=2)
    assert [row.release for row in quartiles] == [None] * 3
    assert quartiles[1].synthetic == pytest.approx(records["pay"].median())
    alone, records = paid([0, 1], pay)
    assert alone.likeness(records)[1].release is None
    # the terminal and the page say which numbers are the shape's alone
    assert [row.assumed for row in known.likeness(records)] == [False] * 2 + [True] * 3
    found = alone.likeness(records)
    assert [row.assumed for row in found] == [False] + [True] * 4
    lines = str(found).splitlines()
    assert [line.split()[-3] for line in lines[3:7]] == ["assumed"] * 4
    assert lines[-1].startswith("assumed: the release does not know this")
    page = release_page(alone, synthetic=records)
    assert len(re.findall(r">\s*assumed\s*<", page)) == 4
    assert "Assumed: the release does not know this; the synthetic number is an" in page
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["assumed"]) == [row.assumed for row in found]
    assert frame["synthetic"].to_numpy() == pytest.approx([row.synthetic for row in found])
    # bins: the quartiles of counts, inside the bins as the release places them
    records = release.synthetic(3000)
    rows = release.likeness(records)
    assert not any(row.assumed for row in rows)
    assert "assumed" not in str(rows)
    assert [row.column for row in rows] == ["age"] * 3
    for row, told in zip(rows, release.quantiles("age", [0.25, 0.5, 0.75]).estimate, strict=True):
        assert row.release == told
        assert row.synthetic == pytest.approx(told, abs=2)
    with pytest.raises(ParameterError, match="a column 'strange'"):
        release.likeness(records.assign(strange=1))


def test_dates_are_compared_as_texts():
    pytest.importorskip("mbi", exc_type=ImportError)
    born = gn.Attribute("born", edges=["2000-01-01", "2010-01-01", "2020-01-01"])
    days = pd.to_datetime(np.resize(["2003-01-01"] * 3 + ["2015-01-01"] * 2, 2000))
    release = gn.plan(gn.Schema([born]), 1, gn.zCDP(0.5)).release(pd.DataFrame({"born": days}))
    rows = release.likeness(release.synthetic())
    assert [row.synthetic[:3] for row in rows] == ["200", "200", "201"]  # 2004, 2008, 2013
    assert all(row.low < row.release < row.high for row in rows)
    assert list(rows.to_frame()["release"]) == [row.release for row in rows]


def test_numbers_of_records_that_are_none_are_refused(release):
    for n in (0, -1, 2.5, True, 10**9):
        with pytest.raises(ParameterError, match="number of records"):
            release.synthetic(n)


def test_without_mbi_the_error_says_what_to_install(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "mbi", None)
    with pytest.raises(NotAvailableError, match=r'pip install "gaussnoise\[synth\]"'):
        release.synthetic(10)


def test_the_shell_writes_records_and_is_quiet(folder, tmp_path, capfd):
    out = tmp_path / "people.csv"
    page = tmp_path / "page.html"
    words = ["synthetic", str(folder), "-n", "50", "-o", str(out), "--report", str(page)]
    assert run(words) == 0
    said, noise = capfd.readouterr()
    assert noise == ""
    assert "biased" in said
    assert len(said.splitlines()) == 9  # three lines, and the three quartiles of age
    assert "A model drew 50 synthetic records" in page.read_text(encoding="utf-8")
    assert max(len(line) for line in said.splitlines() if str(tmp_path) not in line) <= 80
    records = csv.read_csv(out)
    assert records.num_rows == 50
    assert set(records["age"].to_pylist()) <= set(SCHEMA.attributes[1].labels)
    assert run(words) == 1
    assert "exists already" in capfd.readouterr().err
    assert run(["synthetic", str(folder), "-o", str(tmp_path / "people.txt")]) == 1
