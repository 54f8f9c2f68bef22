"""Tests of the remarks on releases of which nearly all rows are where the schema expects few."""

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.tables.release import aside
from gaussnoise.tables.release.aside import rows_aside

MONTHS = [f"2023-{k:02}" for k in range(1, 13)]
YEAR = [-math.inf, *(datetime.date(2023, k, 1) for k in range(1, 13)), math.inf]
SCHEMA = gn.Schema(
    [
        gn.Attribute("month", MONTHS, other="other"),
        gn.Attribute("day", edges=YEAR),
        gn.Attribute("pay", clip=[0, 10], other="none"),
        gn.Attribute("sex", ["F", "M"]),
    ]
)


def rows(aside, among=1000):
    """Return a table with so many rows of another year, without pay, among all."""
    year = ["2024" if k < aside else "2023" for k in range(among)]
    return pa.table(
        {
            "month": [f"{own}-{k % 12 + 1:02}" for k, own in enumerate(year)],
            "day": [datetime.date(int(own), k % 12 + 1, 5) for k, own in enumerate(year)],
            "pay": [None if own == "2024" else 3.0 for own in year],
            "sex": ["F"] * among,
        }
    )


@pytest.mark.parametrize(
    "asked",
    [
        {"workload": 1},
        {"workload": [("month", "day"), ("sex", "pay")]},
        {"workload": [{"month": "prefix", "day": "ranges"}, ("pay",)]},
        {"workload": [("month", "day", "pay", "sex")], "neighbors": "replace"},
    ],
)
def test_nearly_all_rows_aside_are_named_once_for_each_attribute(asked):
    # noise of less than half a row: 980 of 1000 are 98 % after rounding, too
    plan = gn.plan(SCHEMA, **asked, privacy=gn.zCDP(1000.0))
    assert list(rows_aside(plan.release(rows(980)))) == [
        "about 98 % of all rows are in the catch-all 'other' of 'month'",
        "about 98 % of all rows are in the last bin of 'day'",
        "about 98 % of all rows are in the catch-all 'none' of 'pay'",
    ]
    assert list(rows_aside(plan.release(rows(850)))) == []
    assert list(rows_aside(plan.release(rows(0)))) == []


def test_noise_alone_is_no_reason():
    """All rows are aside, or there are none, and the noise is as large as their number."""
    plan = gn.plan(SCHEMA, [("month",)], gn.zCDP(1e-4))
    blank = rows(40, 40)
    assert not any(list(rows_aside(plan.release(blank))) for _ in range(40))
    # 40 rows are 4 more than the share of 36: fifty deviations here
    assert list(rows_aside(gn.plan(SCHEMA, [("month",)], gn.zCDP(1000.0)).release(blank)))
    # exactly the share at which remarks begin, in simulated releases
    drawn = np.random.default_rng(1)
    share = gn.plan(SCHEMA, [("month",)], gn.zCDP(0.1))
    releases = (share.simulate(rows(180, 200), drawn) for _ in range(50))
    assert not any(list(rows_aside(release)) for release in releases)


def test_large_tables_are_not_read_for_it(monkeypatch):
    release = gn.plan(SCHEMA, [("month", "sex")], gn.zCDP(50.0)).release(rows(1000))
    assert list(rows_aside(release))
    monkeypatch.setattr(aside, "_MOST_CELLS", 2 * 13 - 1)  # one less than the table has
    assert not list(rows_aside(release))


@pytest.mark.usefixtures("quick_pictures")
def test_the_shell_asks_after_a_release_and_says_it_nowhere_in_the_folder(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(gn.Schema(SCHEMA.attributes[:1]).to_toml(), encoding="utf-8")
    for year, json in ((2023, ""), (2024, ""), (2024, " --json")):
        (tmp_path / "t.csv").write_text("month\n" + f"{year}-05\n" * 2000, encoding="utf-8")
        out = f"out{year}{json.strip()}"
        assert run(f"release t.csv -s s.toml -m 1 --rho 0.1 -o {out}{json}".split()) == 0
        said = capsys.readouterr()
        warned = "% of all rows are in the catch-all 'other' of 'month', by the released numbers"
        assert (warned in " ".join(said.err.split())) is (year == 2024)
        assert warned not in said.out


def test_the_shell_asks_after_a_tick_about_its_own_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(gn.Schema(SCHEMA.attributes[:1]).to_toml(), encoding="utf-8")
    assert run("stream start -o s -s s.toml -m 1 --ticks 2 --rho 1".split()) == 0
    for tick, year in ((1, 2023), (2, 2024)):
        rows = 9000 if tick == 1 else 2000  # most rows so far are those of the first tick
        (tmp_path / f"{tick}.csv").write_text("month\n" + f"{year}-05\n" * rows, encoding="utf-8")
        capsys.readouterr()
        assert run(f"stream tick s {tick}.csv --tick {tick}".split()) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert ("of all rows are in the catch-all 'other' of 'month'" in said) is (tick == 2)
