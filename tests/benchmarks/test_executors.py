"""Releases by Spark's executors, beside one machine: ``pytest -m benchmark -s -n 0``."""

import os
import sys
import time

import numpy as np
import pandas as pd
import pytest

import gaussnoise as gn
from gaussnoise.tables.spark import layout as layouts

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.filterwarnings(r"ignore::FutureWarning:pyspark(\..*)?"),
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
]

NAMES = [f"a{i}" for i in range(6)]
ROWS = 10**5


@pytest.fixture(scope="module")
def spark():
    pyspark = pytest.importorskip("pyspark")
    os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = pyspark.sql.SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "16",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def test_time_of_executors_follows_the_integers(spark, tmp_path):
    """A thousandth of 10¹⁰ integers, and what is on the way there."""
    taken = {}
    for size in (26, 82, 258, 816):
        plan = gn.plan(
            gn.Schema([gn.Attribute(name, range(size)) for name in NAMES]), 2, gn.zCDP(1.0)
        )
        codes = np.random.default_rng(0).integers(0, size, (ROWS, len(NAMES)))
        table = pd.DataFrame(codes, columns=NAMES)
        table.to_parquet(tmp_path / f"{size}.parquet")
        frame = spark.read.parquet(str(tmp_path / f"{size}.parquet"))
        start = time.perf_counter()
        plan.release(frame, out=tmp_path / f"{size}", format="parquet", executors=True)
        taken[plan.integers] = time.perf_counter() - start
        start = time.perf_counter()
        plan.release(table, out=tmp_path / f"{size} here", format="parquet")
        here = time.perf_counter() - start
        priced = 3600 * sum(plan.core_hours.values()) / 2  # two tasks at once
        print(
            f"\n{plan.integers} integers: {taken[plan.integers]:.1f} s with executors, "
            f"{here:.1f} s on one machine, priced at {priced:.1f} s"
        )
    (_, before), (integers, last) = list(taken.items())[-2:]
    assert last < 20 * before  # ten times as many integers
    assert last < 60e-6 * integers


def test_a_table_in_pieces_takes_about_as_long_as_one_that_a_task_holds(
    spark, tmp_path, monkeypatch
):
    """Two million integers: what is on the way through rows and columns is small beside draws."""
    size = 126
    plan = gn.plan(gn.Schema([gn.Attribute(name, range(size)) for name in "abc"]), 3, gn.zCDP(1.0))
    codes = np.random.default_rng(0).integers(0, size, (ROWS, 3))
    pd.DataFrame(codes, columns=list("abc")).to_parquet(tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    taken = {}
    for most in (2**24, 2**20):
        monkeypatch.setattr(layouts, "MOST_CELLS", most)
        monkeypatch.setattr(layouts, "_PIECE_CELLS", 2**17)
        start = time.perf_counter()
        plan.release(frame, out=tmp_path / f"{most}", format="parquet", executors=True)
        taken[most] = time.perf_counter() - start
    print(f"\n{plan.integers} integers: whole {taken[2**24]:.1f} s, pieces {taken[2**20]:.1f} s")
    assert taken[2**20] < 2 * taken[2**24]


def test_time_of_ticks_follows_the_integers_and_the_ticks_before(spark, tmp_path):
    """A thousandth of 10¹⁰ integers in ten ticks."""
    size, n = 258, 10
    schema = gn.Schema([gn.Attribute(name, range(size)) for name in NAMES])
    plan = gn.plan(schema, 2, gn.zCDP(1.0), over=gn.streams.Ticks(n))
    stream = plan.start(tmp_path / "stream", format="parquet", executors=True)
    taken = []
    for tick in range(1, n + 1):
        codes = np.random.default_rng(tick).integers(0, size, (ROWS, len(NAMES)))
        pd.DataFrame(codes, columns=NAMES).to_parquet(tmp_path / f"{tick}.parquet")
        start = time.perf_counter()
        stream.tick(spark.read.parquet(str(tmp_path / f"{tick}.parquet")), number=tick)
        taken.append(time.perf_counter() - start)
    priced = 3600 * sum(plan.core_hours.values()) / 2  # two tasks at once
    shown = ", ".join(f"{seconds:.1f}" for seconds in taken)
    print(f"\n{plan.integers} integers: {shown} s; {sum(taken):.0f} s, priced at {priced:.0f} s")
    assert taken[-1] < 3 * taken[1]  # five times as many ticks to read
    assert sum(taken) < 3 * priced
