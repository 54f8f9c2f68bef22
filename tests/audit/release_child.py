"""Whole releases under a ledger, forked and killed:
``python release_child.py FOLDER tables|records KIND POINT...``.

A point is the name of a function of ours, at whose first line the release is killed; or one number,
of points that are spread over all distinct lines. Each release is then run twice more. Prints what
was found, as JSON.
"""

import json
import signal
import sys
from pathlib import Path

import numpy as np
from killed_child import forked, spread

import gaussnoise as gn
from gaussnoise.files import disk as _disk
from gaussnoise.tables.release import release_plot as _plots

COST = 0.1
folder, what, kind, *points = sys.argv[1:]
if what == "tables":  # loaded now, not in every fork
    import narwhals  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet

    table = pa.table({f"a{i}": [0, 1, 2] for i in range(3)})
_plots.plot_release = None  # half a second each, and not missed

plan = gn.plan(gn.Schema([gn.Attribute(f"a{i}", range(3)) for i in range(3)]), 2, gn.zCDP(COST))
mechanism = gn.GaussianMechanism(
    gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove"), gn.zCDP(COST)
)
plan.dp_event(), mechanism.dp_event()  # calibrated, and OpenDP is loaded
once = gn.Ledger.once


def ask(place):
    if what == "tables":
        release = plan.release(table, out=place / "out", ledger=place / "ledger", id="x")
        return float(release["a0", "a1"].estimate[0, 0])
    return float(mechanism.release(np.zeros((3, 2)), ledger=place / "ledger", id="x").estimate[0])


def deducted_afterwards(ledger, id, *, target, write, read, **options):
    """A naive ledger, to see that this harness catches it."""
    place = Path(target or ledger.path.with_name("result"))
    if not place.exists():
        _disk.remove(place.with_name("scratch"))
        write(place.with_name("scratch"))
        place.with_name("scratch").rename(place)
        once(
            ledger, id, target=None, write=lambda path: path.write_text("paid"), read=str, **options
        )
    return read(place)


def released(place, at=None):
    """Exit status of a process that asks, see ``killed_child.py``."""
    return forked(place, lambda: lambda: repr(ask(place)), at=at)


def prepared(place):
    place.mkdir()
    return gn.Ledger.create(place / "ledger", gn.zCDP(2 * COST))


def attempt(name, at):
    ledger = prepared(place := Path(folder) / name)
    killed = released(place, at) == signal.SIGKILL
    left = [entry.state for entry in ledger.entries()]
    ended = [released(place), released(place)]
    drawn, answers = ((place / name).read_text().split() for name in ("draws", "answers"))
    return {
        "killed": killed,
        "left": left,
        "failed": sum(map(bool, ended)),
        "states": [entry.state for entry in ledger.entries()],
        "spent": ledger.spent,
        "budget": ledger.rho,
        "draws": len(drawn),
        "answers": [float(answer) for answer in answers],
        "scratch": [path.name for path in place.rglob("*.partial*")],
    }


if kind == "deducted afterwards":
    gn.Ledger.once = deducted_afterwards
if points[0].isdigit():
    whole = Path(folder) / "whole"
    prepared(whole)
    released(whole)
    lines, count = int((whole / "lines").read_text()), int(points[0])
    points = spread(lines, count)
print(json.dumps([attempt(f"at {point}", point) for point in points]))
