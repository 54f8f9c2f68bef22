"""Pipes where files are expected: opening one would wait for its writer forever."""

import os
import subprocess
import sys

import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.files.disk import NotAFileError, opened

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")

SCHEMA = gn.Schema([gn.Attribute("sex", ["F", "M"])])
# The file that is a pipe, what loads it, and the error.
DOORS = {
    "noise.npz": ("gn.OptimalNoise.load('noise.npz')", "OutputError"),
    "local.npz": ("gn.LocalMechanism.load('local.npz')", "OutputError"),
    "mean.json": (
        "gn.Release.load('mean.json', gn.optimal_noise(gn.LpBall(2, 2)).covariance)",
        "OutputError",
    ),
    "found.json": ("gn.results.Categories.load('found.json')", "OutputError"),
    "estimate.json": ("gn.estimators.Estimate.load('estimate.json')", "OutputError"),
    "schema.toml": ("gn.Schema.load('schema.toml')", "SchemaError"),
    "rows.csv": ("gn.discover_categories('rows.csv', 'sex', gn.ApproxDP(1, 1e-6))", "DataError"),
    "rows.parquet": ("gn.plan(SCHEMA, 1, gn.zCDP(1)).release('rows.parquet')", "DataError"),
    "w.csv": ("read_matrix(Path('w.csv'), 'optimize')", "ParameterError"),
    "w.npy": ("read_matrix(Path('w.npy'), 'optimize')", "ParameterError"),
    "w.npz": ("read_matrix(Path('w.npz'), 'optimize')", "ParameterError"),
    "w.mtx": ("read_matrix(Path('w.mtx'), 'optimize')", "ParameterError"),
    "a.ledger": ("gn.Ledger.open('a.ledger')", "LedgerError"),
    "b.ledger-journal": ("gn.Ledger.open('b.ledger').entries()", "LedgerError"),
    "out1/release.json": ("gn.TableRelease.load('out1')", "OutputError"),
    "out2/tables/1-sex.csv": ("gn.TableRelease.load('out2')", "OutputError"),
    "out3/tables/1-sex.csv": ("LATER['out3']['sex'].estimate", "OutputError"),
    "out4/tables/1-sex.parquet": ("LATER['out4']['sex'].estimate", "OutputError"),
    "weekly1/stream.json": ("gn.streams.Stream.open('weekly1')", "OutputError"),
    "weekly2/ticks/0001/release.json": (
        "gn.streams.Stream.open('weekly2').total(1)",
        "StreamError",
    ),
}
CHILD = f"""
import os
from pathlib import Path
import gaussnoise as gn
from gaussnoise.cli.matrix import read_matrix

SCHEMA = gn.Schema.loads({SCHEMA.to_toml()!r})
LATER = {{name: gn.TableRelease.load(name) for name in ("out3", "out4")}}
for name, (load, _) in {DOORS!r}.items():
    Path(name).unlink(missing_ok=True)
    os.mkfifo(name)
    try:
        eval(load)
        print(name, "loaded")
    except gn.GaussNoiseError as error:
        print(name, type(error).__name__)
"""


@pytest.mark.usefixtures("quick_pictures")
def test_every_reader_refuses_a_pipe_at_once(tmp_path):
    """It runs in a child with a time limit, since SQLite or arrow cannot be interrupted."""
    rows = pa.table({"sex": ["F", "M"]})
    for name, format in (("out1", "csv"), ("out2", "csv"), ("out3", "csv"), ("out4", "parquet")):
        gn.plan(SCHEMA, 1, gn.zCDP(1)).release(rows, out=tmp_path / name, format=format)
    for name in ("weekly1", "weekly2"):
        plan = gn.plan(SCHEMA, 1, gn.zCDP(1), over=gn.streams.Ticks(2))
        plan.start(tmp_path / name).tick(rows, number=1)
    for name in ("a.ledger", "b.ledger"):
        gn.Ledger.create(tmp_path / name, gn.zCDP(1))
    ran = subprocess.run(
        [sys.executable, "-c", CHILD], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert dict(line.split() for line in ran.stdout.splitlines()) == {
        name: error for name, (_, error) in DOORS.items()
    }, ran.stderr


def test_what_is_no_file_is_told_from_files(tmp_path):
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        with opened(tmp_path / name) as file:
            assert file.read() == b"text"
    os.mkfifo(tmp_path / "pipe")
    kinds = {
        "pipe": NotAFileError,
        os.devnull: NotAFileError,
        ".": IsADirectoryError,
        "missing": FileNotFoundError,
        "null\0": FileNotFoundError,
    }
    for name, kind in kinds.items():
        with pytest.raises(kind):
            opened(tmp_path / name)
    with pytest.raises(TypeError):  # standard input, to `open`
        opened(0)
