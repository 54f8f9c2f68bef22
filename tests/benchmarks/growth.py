"""How time grows with the size of a problem, as a picture and a table for the book:
``python tests/benchmarks/growth.py [NAME ...]`` writes notebooks/growth.json and growth.png.

Times are divided by that of one eigendecomposition of a 1024 × 1024 matrix in the same run, so that
they can be compared between machines.
"""

import itertools
import json
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import gaussnoise as gn
from gaussnoise.drawing import OURS, THEIRS, new_figure

FOLDER = Path(__file__).parents[2] / "notebooks"


def eigendecomposition():
    """Seconds of one, the least of three."""
    A = np.random.default_rng(0).normal(size=(1024, 1024))
    return min(elapsed(lambda: np.linalg.eigh(A + A.T)) for _ in range(3))


def elapsed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def running_totals(n):
    return elapsed(lambda: gn.optimal_noise(gn.streams.prefix_sums(n), 2, neighbors="add-remove"))


def decayed(n):
    sums = gn.streams.decayed_sums(n, 0.99)
    return elapsed(lambda: gn.optimal_noise(sums, np.inf, neighbors="add-remove"))


def momentum(n):
    sums = gn.streams.momentum(n, 0.9)
    return elapsed(lambda: gn.optimal_noise(sums, np.inf, neighbors="add-remove"))


def exchanged(k):
    schema = gn.Schema([gn.Attribute("a", range(k), base="prefix")])
    return elapsed(lambda: gn.plan(schema, 1, gn.zCDP(1.0), neighbors="replace"))


def points(n):
    cloud = gn.FiniteSet(np.random.default_rng(0).normal(size=(n, 50)))
    return elapsed(lambda: gn.optimal_noise(cloud, 2, neighbors="add-remove"))


def differences(n):
    cloud = gn.FiniteSet(np.random.default_rng(0).normal(size=(n, 20)))
    return elapsed(lambda: gn.optimal_noise(cloud, 2, neighbors="replace"))


def plan(d):
    schema = gn.Schema([gn.Attribute(f"a{i}", range(3)) for i in range(d)])
    return elapsed(lambda: gn.plan(schema, 3, gn.zCDP(1.0)))


def _pairs(size):
    return gn.plan(
        gn.Schema([gn.Attribute(f"a{i}", range(size)) for i in range(6)]), 2, gn.zCDP(1.0)
    )


def _rows(size, n=10**5):
    codes = np.random.default_rng(0).integers(0, size, (n, 6))
    return pa.table({f"a{i}": codes[:, i] for i in range(6)})


def release(n):
    size = round((n / 15) ** 0.5)
    planned, table = _pairs(size), _rows(size)
    with tempfile.TemporaryDirectory() as folder:
        return elapsed(lambda: planned.release(table, out=f"{folder}/out", format="parquet"))


def rows(n):
    planned = _pairs(10)
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(_rows(10, n), f"{folder}/t.parquet")
        return elapsed(lambda: planned.release(f"{folder}/t.parquet"))


def width(k):
    planned = gn.plan(gn.Schema([gn.Attribute("a", range(k))]), 1, gn.zCDP(1.0))
    codes = np.random.default_rng(0).integers(0, k, 10**6)
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(pa.table({"a": codes}), f"{folder}/t.parquet")
        return elapsed(lambda: planned.release(f"{folder}/t.parquet"))


LINES = {
    "noise for running totals of n ticks": (running_totals, [10**3, 10**4, 10**5]),
    "largest error of n ticks, decayed sums": (decayed, [10**2, 2 * 10**3, 10**4]),
    "largest error of n ticks, momentum": (momentum, [10**2, 2 * 10**3, 10**4]),
    "noise for n points in 50 dimensions": (points, [10**3, 10**4, 10**5]),
    "noise for differences of n points in 20 dimensions": (differences, [10**2, 10**3, 10**4]),
    "plan of running totals of n categories, rows exchanged": (exchanged, [32, 128, 512]),
    "plan of all 3-way tables of n attributes": (plan, [10, 20, 50, 100]),
    "release of 15 tables of n cells in all": (release, [10**4, 10**5, 10**6]),
    "n rows of Parquet counted for 15 tables": (rows, [10**4, 10**5, 10**6, 10**7]),
    "release of 10⁶ rows of n categories": (width, [10, 100, 1000, 10**4]),
}


def main(names):
    """Measure the lines of these names, or all, and draw all that were ever measured."""
    kept = FOLDER / "growth.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    running_totals(100), points(100), plan(3), release(135), rows(100)  # imports, first calls
    for name in names or LINES:
        measure, sizes = LINES[name]
        unit = eigendecomposition()
        found[name] = {str(n): round(measure(n) / unit, 3) for n in sizes}
        print(name, found[name], flush=True)
    kept.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw(found)


def draw(found):
    """A panel for each line, all on one scale of time, beside growth in proportion to n.

    The exponent is that of growth between the two largest sizes.
    """
    figure = new_figure(12, 5.8)
    panels = figure.subplots(2, 5, sharey=True).ravel()
    for axes, name in itertools.zip_longest(panels, [n for n in LINES if n in found]):
        if name is None:
            axes.set_axis_off()
            continue
        n, times = np.array([(int(n), time) for n, time in found[name].items()]).T
        axes.loglog(n, times[-1] * n / n[-1], ":", color=THEIRS)
        axes.loglog(n, times, "o-", color=OURS)
        axes.set_title("\n".join(textwrap.wrap(name, 26)), fontsize=9)
        exponent = np.log(times[-1] / times[-2]) / np.log(n[-1] / n[-2])
        axes.text(0.05, 0.9, f"$n^{{{exponent:.1f}}}$", transform=axes.transAxes)
        axes.set_xlabel("n")
        axes.xaxis.set_minor_formatter("")
        axes.grid(visible=True, which="major", alpha=0.3)
    for axes in panels[::5]:
        axes.set_ylabel("eigendecompositions")
    figure.savefig(FOLDER / "growth.png", dpi=110)


if __name__ == "__main__":
    main(sys.argv[1:])
