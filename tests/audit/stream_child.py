"""Ticks of streams, forked and killed:
``python stream_child.py FOLDER POINTS plain|ledger|forgetful|skipping|enforced|unregistered...``.

POINTS is the number of points for each kind of stream, spread over all distinct lines that a tick
runs. At each, the first tick is killed there; then it is asked for twice more, by its number, and
the second tick once. Prints what was found, as JSON.
"""

import json
import signal
import sys
from pathlib import Path

import narwhals  # noqa: F401 (loaded now, not in every fork)
import pandas  # noqa: F401
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from killed_child import forked, spread

import gaussnoise as gn
from gaussnoise.streams import one_machine as _one_machine
from gaussnoise.streams import state as _state

folder, points, *kinds = sys.argv[1:]
table = pa.table({"a": [0, 1, 1], "who": ["x", "y", "z"]})
schema, budget, Ticks = gn.Schema([gn.Attribute("a", range(2))]), gn.zCDP(0.1), gn.streams.Ticks
PLANS = {
    False: gn.plan(schema, 1, budget, over=Ticks(3)),
    True: gn.plan(schema, 1, budget, over=Ticks(3, 1, enforced=True), person="who"),
}
REGISTRIES = "enforced", "unregistered"  # the kinds whose second tick has persons of the first
assert all(plan.rho_charged <= 0.1 for plan in PLANS.values())


def ticked(place, number, at=None):
    """Exit status of a process that runs a tick, see ``killed_child.py``."""

    with open(place / "asked", "a") as file:
        file.write(f"{number}\n")

    def begin():
        stream = gn.streams.Stream.open(place / "stream")
        return lambda: json.dumps(
            [number, stream.tick(table, number=number)["a"].estimate.tolist()]
        )

    return forked(place, begin, at=at, says=number)


def prepared(place, kind):
    place.mkdir(parents=True)
    options = (
        {"ledger": gn.Ledger.create(place / "ledger", gn.zCDP(0.1)), "id": "x"}
        if kind == "ledger"
        else {}
    )
    PLANS[kind in REGISTRIES].start(place / "stream", **options)


def lines_of(file):
    return file.read_text().splitlines() if file.exists() else []


def attempt(kind, point):
    prepared(place := Path(folder) / kind / f"at-{point}", kind)
    _one_machine.counted = skipping(place) if kind == "skipping" else counted
    _one_machine.written = unregistered if kind == "unregistered" else written
    killed = ticked(place, 1, point) == signal.SIGKILL
    committed = (place / "stream" / "private" / "exact-counts-0001.json").exists()
    published = (place / "stream" / "ticks" / "0001").exists()
    drawn = len(lines_of(place / "draws"))
    failed = sum(map(bool, (ticked(place, number) for number in (1, 1, 2))))
    return {
        "killed": killed,
        "committed": committed,
        "published": published,
        "drawn": drawn,
        "failed": failed,
        "draws": lines_of(place / "draws"),
        "answers": [json.loads(line) for line in lines_of(place / "answers")],
        "scratch": [path.name for path in place.rglob("*.partial*")],
        "ticks": len(gn.streams.Stream.open(place / "stream")),
        "rows": [commit.rows for commit in committed_ticks(place / "stream")],
        "registered": [path.name for path in (place / "stream" / "private").glob("registry*")],
        "spent": gn.Ledger.open(place / "ledger").spent if kind == "ledger" else None,
    }


def committed_ticks(path):
    stream = gn.streams.Stream.open(path)
    return commits(stream.state, stream.plan.over.n, stream._maker(table))


def skipping(place):
    """Of a tick that was asked for before, and is not on disk, no rows are counted, to see that
    this harness catches it.
    """

    def counting(tables, over, tick, given, *others):
        again = lines_of(place / "asked").count(f"{tick}") > 1
        return counted(tables, over, tick, given.slice(0, 0) if again else given, *others)

    return counting


def forgetful(self, most, maker):
    """What was drawn and not published yet is thrown away, to see that this harness catches it."""
    if not (self.path / "ticks" / "0001").exists():
        (self.private / "exact-counts-0001.json").unlink(missing_ok=True)
    return commits(self, most, maker)


def unregistered(private, turn):
    """The registry is kept as it was, to see that this harness catches it."""
    turn.counted = turn.counted[:0]
    return written(private, turn)


def attempts(kind, count):
    _state.State.commits = forgetful if kind == "forgetful" else commits
    whole = Path(folder) / kind / "whole"
    prepared(whole, kind)
    ticked(whole, 1)
    lines = int((whole / "lines").read_text())
    return [attempt(kind, point) for point in spread(lines, count)]


commits, counted = _state.State.commits, _one_machine.counted
written = _one_machine.written
print(json.dumps({kind: attempts(kind, int(points)) for kind in kinds}))
