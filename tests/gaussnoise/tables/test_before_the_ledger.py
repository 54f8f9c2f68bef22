"""Tests that no ledger knows of tables that cannot be opened, which is not what data decide."""

import os
from importlib import import_module

import pyarrow as pa
import pyarrow.csv
import pytest

import gaussnoise as gn
from gaussnoise.errors import BudgetError, DataError

SCHEMA = gn.Schema([gn.Attribute("sex", ["F", "M"])])


@pytest.fixture
def plan():
    return gn.plan(SCHEMA, 1, gn.zCDP(0.1))


@pytest.fixture
def ledger(tmp_path):
    return gn.Ledger.create(tmp_path / "year.ledger", gn.zCDP(1.0))


def released(plan, table, ledger, folder):
    return plan.release(table, out=folder / "out", ledger=ledger, id="a", on_outside="drop")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.csv", None, "no such file: .*none.csv"),
        ("none*.csv", None, "no such file: .*none"),
        ("t.ods", "sex", "expected a .csv, .tsv or .parquet file"),
        (".", None, "no Parquet files"),
    ],
)
def test_files_that_cannot_be_opened_are_named_and_not_entered(
    tmp_path, plan, ledger, name, content, said
):
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        released(plan, str(tmp_path / name), ledger, tmp_path)
    assert (ledger.charges, ledger.refusals) == (0, 0)


@pytest.mark.parametrize("table", [5, None, {"sex": ["F"]}])
def test_what_is_no_table_is_not_entered(tmp_path, plan, ledger, table):
    with pytest.raises(DataError, match="expected a dataframe"):
        released(plan, table, ledger, tmp_path)
    assert (ledger.charges, ledger.refusals) == (0, 0)


@pytest.mark.parametrize("name", ["t.xlsx", "t.sav"])
def test_a_file_whose_reader_is_not_installed_is_not_entered(
    tmp_path, plan, ledger, name, monkeypatch
):
    def absent(package):
        if package in ("python_calamine", "pyreadstat"):
            raise ImportError(package)
        return import_module(package)

    (tmp_path / name).write_bytes(b"PK")
    monkeypatch.setattr("importlib.import_module", absent)
    with pytest.raises(DataError, match=r"not installed; hint: pip install .gaussnoise.office"):
        released(plan, tmp_path / name, ledger, tmp_path)
    assert (ledger.charges, ledger.refusals) == (0, 0)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root opens any file")
def test_a_file_without_permission_is_not_entered(tmp_path, plan, ledger):
    (tmp_path / "t.csv").write_text("sex\nF\n", encoding="utf-8")
    (tmp_path / "t.csv").chmod(0)
    with pytest.raises(DataError, match="PermissionError"):
        released(plan, tmp_path / "t.csv", ledger, tmp_path)
    assert (ledger.charges, ledger.refusals) == (0, 0)


def test_what_rows_decide_is_still_entered_and_not_said(tmp_path, plan, ledger):
    (tmp_path / "t.csv").write_text('sex\nF\n"M\n', encoding="utf-8")
    with pytest.raises(DataError, match="it is not said where"):
        released(plan, tmp_path / "t.csv", ledger, tmp_path)
    assert (ledger.charges, ledger.refusals) == (0, 1)


def test_what_the_budget_does_not_allow_is_said_first(tmp_path, ledger):
    """No table is opened for a release that cannot be charged."""
    plan = gn.plan(SCHEMA, 1, gn.zCDP(2.0))
    with pytest.raises(BudgetError):
        released(plan, tmp_path / "none.csv", ledger, tmp_path)


def test_a_result_is_read_again_after_its_table_is_gone(tmp_path, plan, ledger):
    pa.csv.write_csv(pa.table({"sex": ["F", "M", "F"] * 400}), tmp_path / "t.csv")
    first = released(plan, tmp_path / "t.csv", ledger, tmp_path)
    (tmp_path / "t.csv").unlink()
    again = released(plan, tmp_path / "t.csv", ledger, tmp_path)
    assert again["sex"].estimate.tolist() == first["sex"].estimate.tolist()
    assert (ledger.charges, ledger.refusals) == (1, 0)
