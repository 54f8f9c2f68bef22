"""Tests of synthetic records with labels: quiet, of the right shape, and like the tables."""

import sys

import numpy as np
import pandas as pd
import pytest
from pyarrow import csv

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import NotAvailableError, ParameterError

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


@pytest.mark.parametrize("degrees", [[0, 1], [0, 1, 2]])
def test_clipped_numbers_of_records_are_numbers_of_about_the_released_means(degrees):
    pytest.importorskip("mbi", exc_type=ImportError)
    rng, n = np.random.default_rng(0), 3000
    sex, pay = rng.choice(["F", "M"], n), rng.uniform(0, 100, n)
    pay = np.where(sex == "F", pay, pay / 2)
    pay[:300] = np.nan
    base = {"kind": "moments", "degrees": degrees}
    schema = gn.Schema(
        [SCHEMA.attributes[0], gn.Attribute("pay", clip=[-10, 110], base=base, other="unknown")]
    )
    planned = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.5))
    release = planned.release(pd.DataFrame({"sex": sex, "pay": pay}))
    records = release.synthetic(20_000)
    assert set(records["pay"].dropna()) <= {-10, 50, 110}
    assert records["pay"].isna().mean() == pytest.approx(0.1, abs=0.02)
    means = records.groupby("sex")["pay"].mean()
    assert means.to_numpy() == pytest.approx(release.means("pay", "sex").estimate, abs=4)
    assert means["F"] > means["M"] + 15


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
    words = ["synthetic", str(folder), "-n", "50", "-o", str(out)]
    assert run(words) == 0
    said, noise = capfd.readouterr()
    assert noise == ""
    assert "biased" in said
    assert len(said.splitlines()) == 2
    records = csv.read_csv(out)
    assert records.num_rows == 50
    assert set(records["age"].to_pylist()) <= set(SCHEMA.attributes[1].labels)
    assert run(words) == 1
    assert "exists already" in capfd.readouterr().err
    assert run(["synthetic", str(folder), "-o", str(tmp_path / "people.txt")]) == 1
