"""kill -9 in the middle of releases that are charged to a ledger: what is lost is budget, never privacy or a result."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gaussnoise as gn

CHILD = """
import os, signal, sys
import numpy as np
import gaussnoise as gn
from gaussnoise import _ledger, _release
from gaussnoise.tables import _plan, _store

folder, what, stage = sys.argv[1:]

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

def after(original, calls):
    left = [calls]
    def wrapped(*args, **kwargs):
        result = original(*args, **kwargs)
        left[0] -= 1
        if not left[0]:
            die()
        return result
    return wrapped

if stage == "before noise":
    _plan.noise_stream = _release.Release.save = die
if stage == "while writing":
    _store.FilesWriter.write = after(_store.FilesWriter.write, 2)
    _release.Release.save = after(_release.Release.save, 1)
if stage == "before publishing":
    _ledger._publish = die
if stage == "before sealing":
    _ledger._publish = after(_ledger._publish, 1)

if what == "tables":
    schema = gn.Schema([gn.Attribute(f"a{i}", range(3)) for i in range(3)])
    plan = gn.plan(schema, 2, gn.zCDP(0.1))
    import pyarrow as pa
    table = pa.table({f"a{i}": [0, 1, 2] for i in range(3)})
    release = plan.release(table, out=f"{folder}/out", ledger=f"{folder}/ledger", id="x")
    print(float(release["a0", "a1"].estimate[0, 0]))
else:
    mechanism = gn.GaussianMechanism(gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove"), gn.zCDP(0.1))
    print(float(mechanism.release(np.zeros((3, 2)), ledger=f"{folder}/ledger", id="x").estimate[0]))
"""


def run(folder, what, stage):
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(folder), what, stage]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("what", ["tables", "records"])
@pytest.mark.parametrize(
    ("stage", "charges"),
    # what may have been drawn stays charged; what was written whole is published by the next run, not drawn again
    [("before noise", 2), ("while writing", 2), ("before publishing", 1), ("before sealing", 1)],
)
def test_a_killed_release_is_resumed(tmp_path, what, stage, charges):
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(1.0))
    killed = run(tmp_path, what, stage)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout == ""
    assert ledger.spent == pytest.approx(0.1, rel=1e-9)  # on disk before any noise
    first, second = run(tmp_path, what, "no stage"), run(tmp_path, what, "no stage")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    assert np.isfinite(float(first.stdout))
    assert ledger.spent == pytest.approx(0.1 * charges, rel=1e-9)
    assert [entry.state for entry in ledger.entries()] == ["lost", "sealed"][2 - charges :]
    assert not list(tmp_path.rglob("*.partial"))
