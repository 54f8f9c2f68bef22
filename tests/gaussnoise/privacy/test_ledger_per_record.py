"""Ledgers whose budget grows with numbers of a record."""

import pickle
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import gaussnoise as gn
from gaussnoise.cli.app import app
from gaussnoise.errors import BudgetError, LedgerError, ParameterError

SCHEMA = gn.Schema(
    [
        gn.Attribute("region", ["N", "S"]),
        gn.Attribute("payroll", unit=1),
        gn.Attribute("sales", unit=1),
    ]
)
ROWS = pa.table({"region": ["N", "S"] * 20, "payroll": [7, 10**9] * 20, "sales": [3, 5] * 20})


def _plan(rho, **scale):
    return gn.plan(SCHEMA, [("region", next(iter(scale)))], gn.PerRecord(gn.zCDP(rho), scale))


def _release(plan, ledger, folder, id):
    return plan.release(ROWS, out=folder / id, ledger=ledger, id=id)


def test_budgets_of_one_family_add_up(tmp_path):
    path = tmp_path / "firms.ledger"
    ledger = gn.Ledger.create(path, gn.PerRecord(gn.zCDP(1.0), {"payroll": 1000, "sales": 50}))
    assert gn.Ledger.open(path).scales == {"payroll": 1000.0, "sales": 50.0}
    assert pickle.loads(pickle.dumps(ledger)).scales == ledger.scales
    _release(_plan(0.1, payroll=1000), ledger, tmp_path, "same")
    assert ledger.spent == pytest.approx(0.1, rel=1e-9)
    _release(_plan(0.1, payroll=5000), ledger, tmp_path, "larger scale, smaller budgets")
    assert ledger.spent == pytest.approx(0.2, rel=1e-9)
    _release(_plan(0.1, payroll=500), ledger, tmp_path, "half the scale costs four times")
    assert ledger.spent == pytest.approx(0.6, rel=1e-9)
    counts = gn.plan(SCHEMA, ["region"], gn.zCDP(0.3))
    _release(counts, ledger, tmp_path, "the same for all")
    assert ledger.spent == pytest.approx(0.9, rel=1e-9)
    with pytest.raises(BudgetError, match=r"a cost of at most rho = 0\.1, the rest of 1"):
        _release(_plan(0.05, payroll=500), ledger, tmp_path, "too much")
    again = _release(_plan(0.1, payroll=500), ledger, tmp_path, "half the scale costs four times")
    assert again.plan.privacy.scales == {"payroll": 500.0}
    assert ledger.charges == 4


def test_no_record_costs_more_than_the_ledger_says():
    """Coefficients of charges add up to at most those of the budget, for random scales."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b, c, d = np.exp(rng.uniform(-5, 5, 4))
        mine, budget = gn.PerRecord(gn.zCDP(0.1), {"x": a, "y": b}), {"x": c, "y": d, "z": 1.0}
        charge = Fraction(0.1) * Fraction(mine.factor_over(budget))
        assert charge >= Fraction(0.1)
        for t, whole in ((a, c), (b, d)):
            assert charge / Fraction(whole) ** 2 >= Fraction(0.1) / Fraction(t) ** 2
        tight = max(Fraction(1), *((Fraction(w) / Fraction(t)) ** 2 for t, w in ((a, c), (b, d))))
        assert charge <= Fraction(0.1) * tight * (1 + Fraction(1, 2**50))


def test_a_budget_for_every_record_refuses_costs_that_grow(tmp_path):
    plain = gn.Ledger.create(tmp_path / "plain", gn.zCDP(100.0))
    with pytest.raises(BudgetError, match="cost of a record is the same, got one that grows with"):
        _release(_plan(0.1, payroll=1000), plain, tmp_path, "one")
    other = gn.Ledger.create(tmp_path / "other", gn.PerRecord(gn.zCDP(100.0), {"sales": 1}))
    with pytest.raises(BudgetError, match="grows with sales alone, got one that grows with pay"):
        _release(_plan(0.1, payroll=1000), other, tmp_path, "one")
    assert plain.charges == other.charges == 0
    assert not (tmp_path / "one").exists()
    with pytest.raises(ParameterError, match=r"expected a budget like zCDP\(1.0\), got KL"):
        gn.Ledger.create(tmp_path / "third", gn.KL(0.1))


def test_older_ledgers_are_read_and_damaged_ones_are_refused(tmp_path):
    import sqlite3

    path = tmp_path / "firms.ledger"
    gn.Ledger.create(path, gn.PerRecord(gn.zCDP(1.0), {"payroll": 1000}), delta=1e-6)
    assert gn.Ledger.open(path).delta == 1e-6
    assert gn.Ledger.create(tmp_path / "plain", gn.zCDP(1)).scales == {}
    for scales in ("{}", '{"payroll": 0}', "[1]", "x"):
        with sqlite3.connect(path) as database:
            database.execute("UPDATE budget SET scales = ?", [scales])
        with pytest.raises(LedgerError, match="its budget is damaged"):
            gn.Ledger.open(path)


def test_the_shell_states_scales(tmp_path):
    def run(*options):
        return CliRunner().invoke(app, [*map(str, options)])

    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    ROWS.to_pandas().to_csv(tmp_path / "rows.csv", index=False)
    asked = ["-s", tmp_path / "schema.toml", "-m", "region,payroll", "--rho", 0.1]
    grown = ["--per-record", "payroll=1000"]
    planned = run("plan", *asked, *grown)
    assert "times 1 + (payroll/1000)²" in planned.output
    bound = run("bound", *asked, *grown)
    assert "records of a whole multiple of one scale" in " ".join(bound.output.split())
    assert "budget that grows with 'payroll'" in str(run("plan", *asked).exception)
    book = tmp_path / "firms.ledger"
    made = run("ledger", "create", book, "--rho", 1, *grown)
    said = " ".join(made.output.split())
    assert "times 1 + (payroll / 1000)^2 for a record: large ones are protected less" in said
    charged = ["--ledger", book, "--id", "one", "-o", tmp_path / "out"]
    done = run("release", tmp_path / "rows.csv", *asked, *grown, *charged)
    assert done.exit_code == 0, done.exception
    shown = run("ledger", "show", book).output
    assert "spent 0.1" in shown
    assert "rho is of a record whose numbers are 0, times 1" in " ".join(shown.split())
    for options, match in (
        ([*asked, "--per-record", "payroll"], "like payroll=1000000, got 'payroll'"),
        ([*asked, *grown, *grown], "one scale for each number, got two for one"),
        ([*asked[:-2], "--epsilon", 1, "--delta", 1e-6, *grown], "like zCDP.0.1., got ApproxDP"),
        ([*asked[:-2], *grown], "expected either rho="),
    ):
        with pytest.raises(ParameterError, match=match):
            raise run("plan", *options).exception


def test_scales_are_those_of_the_file_at_the_time_of_a_charge(tmp_path):
    path = tmp_path / "own.ledger"
    ledger = gn.Ledger.create(path, gn.PerRecord(gn.zCDP(1.0), {"v": 100.0}))
    path.unlink()
    other = gn.Ledger.create(path, gn.zCDP(1.0))
    schema = gn.Schema([gn.Attribute("r", ["a"]), gn.Attribute("v", unit=1)])
    plan = gn.plan(schema, [("r", "v")], gn.PerRecord(gn.zCDP(0.5), {"v": 100.0}))
    with pytest.raises(BudgetError, match="cost of a record is the same"):
        plan.release(pa.table({"r": ["a"], "v": [5]}), ledger=ledger, id="s", out=tmp_path / "out")
    assert other.spent == 0


def test_a_guarantee_of_ones_own_that_grows_states_its_factor():
    @dataclass(frozen=True)
    class Own(gn.privacy.AbstractPrivacy):
        rho: float

        @property
        def scales(self):
            return {"v": 1.0}

        def to_zcdp(self, draws=1, steps=0.0):
            return gn.zCDP(self.rho)

    assert Own(1.0).factor_over({}) is None
    assert gn.zCDP(1.0).factor_over({"v": 1.0}) == 1
