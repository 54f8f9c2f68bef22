"""Counting attributes of many categories, against a plain group-by of the same engine.

Run with ``pytest tests/benchmarks/test_counting.py -m benchmark -s -n 0``; every test prints what
it measured.
"""

import math
import time

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import gaussnoise as gn

pytestmark = pytest.mark.benchmark

ROWS = 10**6


def seconds(run, repeat=3):
    """The best of ``repeat`` times."""
    best = math.inf
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


STRINGS = {
    "pandas": lambda t, _: t.groupby("a", observed=True).size(),
    "polars": lambda t, _: t.group_by("a").len(),
    "duckdb": lambda t, _: t.aggregate("a, count(*)", "a").fetchall(),
}
EDGES = {
    "pandas": lambda t, e: pd.cut(t["a"], e, right=False).value_counts(),
    "polars": lambda t, e: (
        t.with_columns(a=pl.lit(pl.Series(e)).search_sorted(pl.col("a"))).group_by("a").len()
    ),
    "duckdb": lambda t, e: (
        t.set_alias("t")
        .query(
            "t",
            f"FROM t ASOF JOIN (SELECT unnest({e}) AS e) ON a >= e SELECT e, count(*) GROUP BY e",
        )
        .fetchall()
    ),
}


@pytest.mark.parametrize("width", [10, 1000, 10**4])
@pytest.mark.parametrize("kind", ["strings", "edges"])
@pytest.mark.parametrize("engine", list(STRINGS))
def test_counting_costs_about_one_group_by_at_any_width(engine, kind, width):
    """Expected: 0.4 to 2 times the engine's own count of groups, or of bins, more only where that
    takes a hundredth of a second.
    """
    codes = np.random.default_rng(0).integers(0, width, ROWS)
    if kind == "strings":
        names = np.array([f"k{i}" for i in range(width)])
        attribute, values = gn.Attribute("a", names.tolist()), pd.Series(names[codes], dtype=str)
    else:
        attribute, values = gn.Attribute("a", edges=range(width + 1)), pd.Series(codes)
    frame = pd.DataFrame({"a": values})
    planned = gn.plan(gn.Schema([attribute]), 1, gn.zCDP(1.0))

    def given(rows):
        if engine == "pandas":
            return rows
        return pl.from_pandas(rows) if engine == "polars" else duckdb.from_df(rows)

    table, nothing = given(frame), given(frame[:0])
    own = (STRINGS if kind == "strings" else EDGES)[engine]
    plain = seconds(lambda: own(table, list(range(width))))
    noise, whole = (seconds(lambda t=t: planned.release(t)) for t in (nothing, table))
    ratio = (whole - noise) / plain
    print(f"\n{engine}, {kind}, {width}: {ratio:.2f} times the engine's {plain:.3f} s")
    assert whole - noise < 2 * plain + 0.1
