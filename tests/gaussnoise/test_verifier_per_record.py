"""The verifier's two programs on folders whose budgets grow with numbers of a row."""

import base64
import hashlib
import json

import numpy as np
import pyarrow as pa
import pytest
from browser import node_lines

import gaussnoise as gn
from gaussnoise import verifier

SCHEMA = gn.Schema(
    [
        gn.Attribute("region", ["N", "S", "E"]),
        gn.Attribute("pay", unit=0.01),
        gn.Attribute("staff", unit=1),
    ]
)
PRIVACY = gn.PerRecord(gn.zCDP(0.3), {"pay": 1234.56, "staff": 20})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return _released(tmp_path_factory.mktemp("folder"))


@pytest.fixture(scope="module")
def persons(tmp_path_factory):
    """A folder about persons of at most three rows."""
    return _released(tmp_path_factory.mktemp("persons"), person="firm", rows_per_person=3)


def _released(folder, **options):
    rng, n = np.random.default_rng(0), 200
    rows = {
        "region": rng.choice(["N", "S", "E"], n),
        "pay": np.round(np.exp(rng.normal(5, 2, n)), 2),
        "staff": rng.integers(0, 50, n),
        "firm": rng.integers(0, 90, n),
    }
    entries = [("region", "pay"), ("region", "staff"), ("region",)]
    gn.plan(SCHEMA, entries, PRIVACY, **options).release(pa.table(rows), out=folder / "out")
    return folder / "out"


def _lines(folder, change=None):
    """What both programs say of a folder, after a change of its record."""
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    if change:
        change(record)
    files["release.json"] = json.dumps(record).encode()
    saved = folder / "release.json"
    before = saved.read_bytes()
    saved.write_bytes(files["release.json"])
    try:
        own = verifier.verified(folder)
    finally:
        saved.write_bytes(before)
    [other] = node_lines([{k: base64.b64encode(x).decode() for k, x in files.items()}])
    return own, other


@pytest.mark.parametrize(("fixture", "rows"), [("folder", 1), ("persons", 3)])
def test_both_check_the_inequality_and_sigma(fixture, rows, request):
    for said in _lines(request.getfixturevalue(fixture)):
        text = "\n".join(said)
        assert "FAILED" not in text
        assert "UNKNOWN" not in text
        assert f"any numbers in {rows} row(s)" in text
        assert "PerRecord" in text
        assert "sensitivity" in text


def _less_noise(record):
    record["noise"]["sigma"] *= 0.99


def _larger_multiplier(record):
    entry = next(m for m in record["measurements"] if m["attributes"] == ["region", "staff"])
    entry["multiplier"] = str(int(entry["multiplier"]) * 2)


def _another_scale(record):
    record["privacy"]["scales"]["pay"] = record["plan"]["privacy"]["scale"]["pay"] = 2000.0


def _another_matrix(record):
    record["noise"]["contrasts"]["pay"] = ["1 0"]


def _another_unit(record):
    record["domain"][1]["unit"] = 0.001


def _no_budget(record):
    del record["privacy"]["scales"]["staff"], record["plan"]["privacy"]["scale"]["staff"]


def _another_guarantee(record):
    own = {"epsilon": 1.0, "delta": 1e-9, "scale": record["plan"]["privacy"]["scale"]}
    record["plan"]["privacy"] = {"definition": "ApproxDP"} | own
    record["privacy"] |= own


def _more_rows(record):
    record["rows_per_person"] = record["plan"]["rows_per_person"] = 2


def _fewer_rows(record):
    record["rows_per_person"] = record["plan"]["rows_per_person"] = 1
    record["noise"]["rho_of_one_row"] *= 9


@pytest.mark.parametrize(
    "change",
    [
        _less_noise,
        _larger_multiplier,
        _another_scale,
        _another_matrix,
        _another_unit,
        _no_budget,
        _another_guarantee,
        _more_rows,
    ],
)
def test_both_notice_less_noise_than_the_budgets_need(folder, change):
    for said in _lines(folder, change):
        assert [line[:6] for line in said] == ["FAILED"], said
        assert "Error" not in said[0]


@pytest.mark.parametrize("change", [_less_noise, _more_rows, _fewer_rows])
def test_both_notice_less_noise_than_persons_need(persons, change):
    for said in _lines(persons, change):
        assert [line[:6] for line in said] == ["FAILED"], said
        assert "Error" not in said[0]


def test_the_text_of_the_folder_says_it_all(folder):
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert record["privacy"]["scales"] == {"pay": 1234.56, "staff": 20.0}
    assert record["epsilon_delta"]["holds"] == "for a record whose numbers are 0"
    summary = (folder / "summary.txt").read_text(encoding="utf-8")
    assert "LARGE RECORDS ARE PROTECTED LESS: pay 1,234.56: rho = 0.6" in summary
    digest = hashlib.sha256(summary.encode()).hexdigest()
    assert record["files"]["summary.txt"] == digest
