import importlib.util
from pathlib import Path


def test_the_report_counts_what_it_says(capsys, monkeypatch):
    spec = importlib.util.spec_from_file_location(
        "audit_report", Path(__file__).with_name("report.py")
    )
    report = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(report)
    monkeypatch.setattr(report, "sound", lambda: [("as it is", 2.0, 2.9)])
    monkeypatch.setattr(report, "faults", lambda: [("a mutant", 4.0, 2.9)])
    builders = {kind: report.fuzz.BUILDERS[kind] for kind in ("pandas objects", "csv", "parquet")}
    monkeypatch.setattr(report.fuzz, "BUILDERS", builders)
    monkeypatch.setattr(
        report,
        "ledgers",
        lambda folder: [("a fault", report.ledger.Damage(runs=9, published=8, twice=3, beyond=1))],
    )
    monkeypatch.setattr(
        report.attacks, "ATTACKS", {"an attack": lambda folder: [True, False, False]}
    )
    report.main(3)
    out = capsys.readouterr().out
    assert "| as it is | 2.90 | ≥ 2.00 | within |" in out
    assert "| a mutant | 2.90 | ≥ 4.00 | caught |" in out
    assert "| a fault | 9 | 8 | 3 | 0 | 1 |" in out
    assert "| an attack | 3 | 1 |" in out
    fuzzed = out.split("leaked |\n")[1].split("\n\n")[0]
    rows = [[int(x) for x in line.split("|")[2:-1]] for line in fuzzed.splitlines()[1:]]
    assert len(rows) == 15
    assert all(
        inputs == released + refused + untyped for inputs, released, refused, untyped, _, _ in rows
    )
    assert all(row[3:] == [0, 0, 0] for row in rows)
