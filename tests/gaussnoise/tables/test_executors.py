"""Tests of releases and ticks by Spark's executors: they equal those of one machine.

Faults kill executors and drivers on the way.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest

import gaussnoise as gn
from gaussnoise.errors import (
    DataError,
    DomainTooLargeError,
    LedgerError,
    OutputError,
    ParameterError,
    StreamError,
)
from gaussnoise.files import disk
from gaussnoise.files.commits import Commits
from gaussnoise.files.disk import remove_at_once
from gaussnoise.privacy.sampler import IntegerQuery
from gaussnoise.streams.measure import estimated
from gaussnoise.streams.spark import tasks as stream_tasks
from gaussnoise.streams.spark import ticks
from gaussnoise.streams.spark.tasks import Drawing
from gaussnoise.streams.spark.ticks import layout_of
from gaussnoise.streams.state import State
from gaussnoise.tables.release.stream import measured_parts, table_of
from gaussnoise.tables.spark import layout as layouts
from gaussnoise.tables.spark import records as spark
from gaussnoise.tables.spark import releases
from gaussnoise.tables.spark.layout import Layout
from gaussnoise.tables.spark.work import Work

FOLDERS = "exact-counts", "measured"
FAULTS = Path(__file__).with_name("faults")
pytestmark = [
    pytest.mark.filterwarnings(rf"ignore::{kind}:{module}")
    for kind in ("DeprecationWarning", "FutureWarning", "UserWarning", "ResourceWarning")
    for module in (r"pyspark(\..*)?", r"py4j(\..*)?")
]
pytestmark += [pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"), pytest.mark.integration]

SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", edges=[0, 18, 30, 65, 120]),
        gn.Attribute("region", list("abcde"), other="elsewhere"),
        gn.Attribute("pay", clip=[0, 1000]),
    ]
)
FIRMS = gn.Schema([*SCHEMA.attributes[:3], gn.Attribute("worth", unit=0.01)])
NUMBERS = gn.Schema([*SCHEMA.attributes, gn.Attribute("hours", clip=[0, 60], other="none")])


def people(n=300):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "who": rng.integers(60, size=n),
            "sex": rng.choice(["F", "M"], n),
            "age": rng.integers(0, 121, n),
            "region": rng.choice([*"abcdx"], n),
            "pay": rng.integers(0, 1500, n).astype(float),
            "stands_for": rng.uniform(0, 5, n),
            "hours": rng.uniform(-10, 70, n),
        }
    )


def companies(n=8000):
    """Return rows with numbers of which 64 bits do not hold the sum, which is in one cell."""
    rng, largest = np.random.default_rng(1), 2.0**52 / 100 - 1
    worth = rng.choice([0.0, 0.29, 1e6, largest], n, p=[0.1, 0.1, 0.1, 0.7])
    rows = people(n).assign(worth=worth, who=np.arange(n) // 2)
    rows.loc[rows["worth"] == largest, ["sex", "region"]] = "F", "a"
    return rows


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def cluster(faults):
    """Return two executors, each a process of its own, whose workers have faults."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Java is missing: Spark is not tested")
    people().to_parquet(faults / "people.parquet")
    first = [sys.executable, __file__, str(faults), str(faults), "first"]
    subprocess.run(first, check=True, capture_output=True, timeout=300)
    assert (faults / "out" / "release.png").stat().st_size > 10_000  # later ones are empty
    session = spark_session("local-cluster[2,1,512]", faults)
    yield session
    session.stop()


def spark_session(master, faults):
    pyspark = pytest.importorskip("pyspark", reason="pyspark is missing: Spark is not tested")
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    path = os.pathsep.join([str(FAULTS), os.environ.get("PYTHONPATH", "")])
    light = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+IgnoreUnrecognizedVMOptions"
    # half of what a virtual machine costs is to load its classes: the first one keeps them for all
    kept = faults / "classes.jsa"
    light += f" -XX:{'SharedArchiveFile' if kept.exists() else 'ArchiveClassesAtExit'}={kept}"
    builder = SparkSession.builder.master(master)
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": path,
        "spark.executorEnv.FAULTS": str(faults),
        "spark.local.dir": str(faults),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": light,
        "spark.executor.extraJavaOptions": light,
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.25",
        "spark.speculation.minTaskRuntime": "1s",
        "spark.task.maxFailures": "8",  # a test has up to four faults, which may all hit one task
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def in_cluster(session, table):
    """Return a table in Spark, which reads it without a Python worker of its own."""
    return session.createDataFrame(pyarrow.Table.from_pandas(table, preserve_index=False))


@dataclass(frozen=True)
class Silent(IntegerQuery):
    """A query that draws zeros, so that the released numbers are the counts."""

    def draw(self, count):
        return [0] * count


def silenced(plan):
    query = plan.query
    plan.__dict__["query"] = replace(
        query, query=Silent(query.query.sensitivity_squared, query.query.budget)
    )
    return plan


def cells_of_pairs():
    return gn.plan(SCHEMA, [("sex", "age"), ("age", "region"), ("sex", "region")], gn.zCDP(0.5))


def under_a_ledger(folder):
    out, ledger = folder / "out", folder / "survey.ledger"
    return {"out": out, "format": "parquet", "ledger": ledger, "id": "first", "executors": True}


PREFIXES = {"sex": None, "age": "prefix"}
LARGE = ("sex", "age", "region"), ("age", "region"), ("sex", "region"), PREFIXES


def few_cells(most=16, piece=7):
    """Return limits under which small tables are large."""
    return {"MOST_CELLS": most, "_PIECE_CELLS": piece, "_GROUP_CELLS": (12, 12)}


def firms(*marginals, **options):
    privacy = gn.PerRecord(gn.zCDP(1.0), scale={"worth": 1e6})
    return gn.plan(FIRMS, [*marginals], privacy, **options)


PLANS = {
    "numbers of any size": lambda: firms(("sex", "worth"), ("region", "worth"), PREFIXES),
    "large, numbers of any size, of persons": lambda: firms(
        ("sex", "region", "worth"),
        ("region", "age"),
        PREFIXES,
        person="who",
        rows_per_person=2,
    ),
    "public attributes": lambda: gn.plan(
        SCHEMA,
        [("sex", "age"), ("age", "region"), PREFIXES],
        gn.zCDP(1.0),
        neighbors="replace",
        public="sex",
    ),
    "clipped numbers and weights of persons": lambda: gn.plan(
        NUMBERS,
        [("sex", "pay"), ("pay", "hours"), ("region", "age"), PREFIXES],
        gn.zCDP(1.0),
        person="who",
        rows_per_person=300,
        weight=gn.Weight("stands_for", most=4),
    ),
    "large, public attributes": lambda: gn.plan(
        SCHEMA, list(LARGE), gn.zCDP(1.0), neighbors="replace", public="sex"
    ),
    "large, clipped numbers and weights of persons": lambda: gn.plan(
        NUMBERS,
        [("sex", "pay", "region", "hours"), ("region", "age"), PREFIXES],
        gn.zCDP(1.0),
        person="who",
        rows_per_person=300,
        weight=gn.Weight("stands_for", most=4),
    ),
}


@pytest.mark.parametrize("kind", PLANS)
def test_executors_release_what_one_machine_does(cluster, tmp_path, monkeypatch, kind):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    for name, value in few_cells(16 if "large" in kind else 2**24).items():
        monkeypatch.setattr(layouts, name, value)
    plan, table = silenced(PLANS[kind]()), companies() if "any size" in kind else people()
    cluster.conf.set("spark.sql.adaptive.enabled", kind != "public attributes")
    assert len(Layout.of(plan).groups) > 1
    assert (len(Layout.of(plan).large) == 2) == ("large" in kind)
    out = tmp_path / "out"
    release = plan.release(in_cluster(cluster, table), out=out, format="parquet", executors=True)
    here = plan.release(table)
    for marginal in here:
        assert np.array_equal(release[marginal].estimate, here[marginal].estimate)
    loaded = type(release).load(out)  # every file is what the record says
    assert all(np.array_equal(loaded[m].estimate, release[m].estimate) for m in release)
    (answers,) = (pd.read_parquet(path) for path in (out / "answers").glob("*-sex-by-age.*"))
    assert np.array_equal(answers["estimate"], here.answers(PREFIXES).estimate.reshape(-1))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]  # nothing private is left


def margins_of_sex(release):
    """Return the same counts from two tables: equal only if each residual has one noise."""
    one, two = release["sex", "age"].estimate, release["sex", "region"].estimate
    return one.sum(axis=1), two.sum(axis=1)


def order(faults, *names):
    for name in names:
        (faults / name).touch()
    return [faults / f"{name}.done" for name in names]


def test_no_residual_is_drawn_twice_after_any_kill(cluster, faults, tmp_path, monkeypatch):
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))
    pairs = [("sex", "age"), ("age", "region"), ("sex", "region"), PREFIXES]
    plan = gn.plan(
        SCHEMA,
        pairs,
        gn.zCDP(1.0),
        person="who",
        rows_per_person=3,
        weight=gn.Weight("stands_for", most=4),
    )
    cluster.conf.set("spark.sql.adaptive.enabled", True)
    happened = order(
        faults,
        *("before-measured-kill", "after-measured-executor", "before-measured-wait"),
        *("before-tables-kill", "after-tables-executor"),
        *("before-answers-kill", "after-answers-kill"),
    )
    frame = in_cluster(cluster, people())
    release = plan.release(frame, out=tmp_path / "out", format="parquet", executors=True)
    assert [path.name for path in happened if not path.exists()] == []
    one, two = margins_of_sex(release)
    assert np.allclose(one, two, rtol=0, atol=1e-9)
    drawn_again = margins_of_sex(plan.release(people()))[0]
    assert np.abs(drawn_again - one).max() > 1e-4  # so two draws of one residual would differ
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def large_plan():
    return gn.plan(SCHEMA, list(LARGE), gn.zCDP(1.0), person="who", rows_per_person=3)


def stopped(monkeypatch, plan, frame, folder):
    """Return the private folder of a release that is complete except for its record."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(releases, "write_record", stop)
        with pytest.raises(KeyboardInterrupt):
            plan.release(frame, **under_a_ledger(folder))
    (work,) = folder.glob(".out.*.work")
    return work


def committed_residuals(layout, work):
    """Return what one machine computes from committed columns and groups."""
    query, found = layout.query, {}
    files = {path.name: np.load(path) for path in (work / "measured").iterdir()}
    for (T, exact), (part, place) in layout.places.items():
        assert not exact
        found[T] = files[f"{part:06d}.npy"][place].reshape([layout.sizes[i] for i in T])
    for T, matrix in layout.matrices.items():
        columns = []
        for j in range(len(matrix.columns)):
            content = (work / "noisy" / matrix.name(j)).read_bytes()[32 * len(matrix.boxes) :]
            columns.append(np.frombuffer(content).reshape(sum(matrix.heights), -1))
        last = query.strategies_of(T)[matrix.lead :]
        rows = np.concatenate(columns, axis=1)
        shape = (
            [layout.sizes[i] for i in T[: matrix.lead]],
            [own.rows for own in last],
        )
        found[T] = query.decoded_along(last, rows.reshape([*shape[0], *shape[1]]), matrix.lead)
        pieces = [files[matrix.name(k)] for k in range(len(matrix.boxes))]
        assert np.array_equal(np.concatenate(pieces), found[T].reshape(-1))
    return found


def check_as_committed(release, layout, residuals):
    """Check that every table is what one machine computes from the residuals, bit for bit."""
    for S, table in release.tables.items():
        parts = {T: residuals[T] for T in measured_parts(S, layout.query)}
        assert np.array_equal(table, table_of(S, np.zeros(()), parts, layout.query))


def test_no_piece_is_drawn_twice_after_any_kill(cluster, faults, tmp_path, monkeypatch):
    for name, value in few_cells().items():
        monkeypatch.setattr(layouts, name, value)
    ledger = gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    plan, frame = large_plan(), in_cluster(cluster, people())
    layout = Layout.of(plan)
    assert {matrix.lead for matrix in layout.matrices.values()} == {1, 2}
    cluster.conf.set("spark.sql.adaptive.enabled", True)
    happened = order(
        faults,
        *("before-exact-rows-kill", "after-exact-rows-executor", "before-noisy-kill"),
        *("after-noisy-executor", "before-noisy-wait", "after-measured-kill"),
        *("before-tables-kill", "after-tables-executor"),
    )
    work = stopped(monkeypatch, plan, frame, tmp_path)
    assert [path.name for path in happened if not path.exists()] == []
    residuals = committed_residuals(layout, work)
    release = plan.release(frame, **under_a_ledger(tmp_path))
    check_as_committed(release, layout, residuals)
    check_as_committed(gn.TableRelease.load(tmp_path / "out"), layout, residuals)
    assert ledger.spent == plan.rho_charged
    assert not work.exists()  # the exact answers in it are gone, too
    drawn_again = plan.release(people())
    for marginal in release:
        moved = np.abs(drawn_again[marginal].estimate - release[marginal].estimate)
        assert 1e-4 < moved.max() < 12 * release[marginal].standard_deviation.max() + 300


def test_a_killed_driver_goes_on_from_the_pieces_that_were_committed(
    cluster, faults, tmp_path, monkeypatch
):
    for name, value in few_cells().items():
        monkeypatch.setattr(layouts, name, value)
    ledger = gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    people().to_parquet(tmp_path / "people.parquet")
    (happened,) = order(faults, "after-noisy-driver")
    killed_driver(tmp_path, faults, "large")
    assert happened.exists()
    (work,) = tmp_path.glob(".out.*.work")
    committed = {
        path: path.read_bytes()
        for folder in ("exact-rows", "noisy", "measured")
        for path in (work / folder).iterdir()
    }
    assert any("noisy" in path.parts for path in committed)
    plan, frame = large_plan(), in_cluster(cluster, people())
    layout = Layout.of(plan)
    others = in_cluster(cluster, people().assign(sex="F"))
    with pytest.raises(DataError, match="it changed while it was read"):
        plan.release(others, **under_a_ledger(tmp_path))
    assert stopped(monkeypatch, plan, frame, tmp_path) == work
    assert {path: path.read_bytes() for path in committed} == committed
    residuals = committed_residuals(layout, work)
    release = plan.release(frame, **under_a_ledger(tmp_path))
    check_as_committed(release, layout, residuals)
    assert ledger.spent == plan.rho_charged


def test_rows_that_change_while_pieces_are_counted_are_not_measured(cluster, tmp_path, monkeypatch):
    for name, value in few_cells().items():
        monkeypatch.setattr(layouts, name, value)
    gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    plan, frame = large_plan(), in_cluster(cluster, people())
    with monkeypatch.context() as patch:
        patch.setattr(releases.pieces, "rows_counted", lambda *_: 299)  # as if a row were missing
        with pytest.raises(DataError, match="it changed while it was read"):
            plan.release(frame, **under_a_ledger(tmp_path))
    (work,) = tmp_path.glob(".out.*.work")
    assert list((work / "noisy").iterdir()) == []
    assert not (work / "exact-rows").exists()


def killed_driver(folder, faults, what):
    """Run this file as a program that a fault kills."""
    environment = dict(os.environ, FAULTS=str(faults))
    environment["PYTHONPATH"] = os.pathsep.join([str(FAULTS), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, __file__, str(folder), str(faults), what],
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        said = child.communicate(timeout=300)[0]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL, said


def test_a_killed_driver_goes_on_from_what_was_committed(cluster, faults, tmp_path, monkeypatch):
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))
    (happened,) = order(faults, "after-measured-driver")
    ledger = gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    people().to_parquet(tmp_path / "people.parquet")
    killed_driver(tmp_path, faults, "release")
    assert happened.exists()
    (work,) = tmp_path.glob(".out.*.work")
    committed = {path.name: np.load(path) for path in (work / "measured").iterdir()}
    assert committed
    plan = cells_of_pairs()
    release = plan.release(in_cluster(cluster, people()), **under_a_ledger(tmp_path))
    assert ledger.spent == plan.rho_charged  # charged once
    found = []
    for (T, exact), (part, place) in Layout.of(plan).places.items():
        if (name := f"{part:06d}.npy") in committed and not exact:
            of_table = release[tuple(SCHEMA.names[i] for i in T)].estimate
            for axis in range(len(T)):
                of_table = of_table - of_table.mean(axis, keepdims=True)
            found.append(np.abs(of_table.reshape(-1) - committed[name][place]).max())
    assert len(found) > len(committed)
    assert max(found) < 1e-9
    again = plan.release(in_cluster(cluster, people()), **under_a_ledger(tmp_path))
    assert all(np.array_equal(again[m].estimate, release[m].estimate) for m in release)
    assert ledger.spent == plan.rho_charged


def left_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_what_a_killed_driver_left_is_taken_away_unless_it_lives(
    cluster, faults, tmp_path, monkeypatch
):
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))
    people().to_parquet(tmp_path / "people.parquet")
    order(faults, "after-measured-driver")
    killed_driver(tmp_path, faults, "alone")
    (work,) = tmp_path.glob(".out.*.work")
    assert (work / "person.key").exists()
    assert list((work / "measured").iterdir())
    unfinished = tmp_path / f"{work.name}.{16 * 'a'}"  # of a driver that was removing it
    (tmp_path / ".out.other.work").mkdir()
    unfinished.mkdir()
    frame, place = in_cluster(cluster, people()), {"out": tmp_path / "out", "format": "parquet"}
    with Work(work).alone():  # as if the driver lived
        cells_of_pairs().release(frame, executors=True, **place)
    assert left_in(tmp_path) == [work.name, ".out.other.work"]
    with pytest.raises(OutputError, match="exists already"):
        cells_of_pairs().release(frame, executors=True, **place)
    assert left_in(tmp_path) == [".out.other.work"]
    assert (tmp_path / "out" / "release.json").exists()


def test_only_what_is_known_to_be_dead_is_taken_away(tmp_path, monkeypatch):
    out = tmp_path / "out"
    work = Work.beside(out, 16 * "a")
    work.make()
    Work.clear(out)  # its driver may not hold the lock yet
    work.make_key()
    with monkeypatch.context() as patch:
        patch.setattr(disk, "fcntl", None)  # a system without locks
        Work.clear(out)
    Work.clear(tmp_path / "ou")
    work.keep_charge("one")
    Work.clear(out)
    Work.clear(out, "another")
    assert work.key.exists()
    Work.clear(out, "one")
    assert list(tmp_path.iterdir()) == []


def test_what_a_ledger_charged_stays_until_it_is_complete(cluster, faults, tmp_path, monkeypatch):
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))
    ledger = gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    people().to_parquet(tmp_path / "people.parquet")
    plan, frame = cells_of_pairs(), in_cluster(cluster, people())
    place = {"out": tmp_path / "out", "format": "parquet", "executors": True}
    killed_driver(tmp_path, faults, "uncharged")
    (lost,) = left_in(tmp_path)
    order(faults, "after-measured-driver")
    killed_driver(tmp_path, faults, "release")  # the same id, charged again
    (charged,) = left_in(tmp_path)
    assert charged != lost
    spent = ledger.spent
    assert spent == 2 * plan.rho_charged
    plan.release(frame, **place)
    assert left_in(tmp_path) == [charged]
    shutil.rmtree(tmp_path / "out")
    release = plan.release(frame, **under_a_ledger(tmp_path))
    assert left_in(tmp_path) == []
    assert release["sex", "age"].private
    assert ledger.spent == spent


REFUSED = {
    "not Spark": (people(), {"out": "out", "format": "parquet"}, "expects a Spark dataframe"),
    "no place": (None, {"format": "parquet"}, "expects out="),
    "text": (None, {"out": "out"}, "format=\"parquet\", got format='csv'"),
    "random rows": (None, {"out": "out", "format": "parquet"}, "the same rows whenever Spark"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_executors_cannot_do_is_refused_before_anything_is_charged(
    cluster, tmp_path, monkeypatch, wrong
):
    monkeypatch.chdir(tmp_path)
    table, arguments, message = REFUSED[wrong]
    table = in_cluster(cluster, people(3)) if table is None else table
    table = table.where("rand() < 0.5") if wrong == "random rows" else table
    with pytest.raises(ParameterError, match=message):
        cells_of_pairs().release(table, executors=True, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_data_outside_the_schema_cost_nothing(cluster, tmp_path):
    ledger = gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    table = people(5).assign(age=[1, 2, 3, 4, 500])
    with pytest.raises(DataError, match="under a ledger it is not said where"):
        cells_of_pairs().release(in_cluster(cluster, table), **under_a_ledger(tmp_path))
    assert ledger.spent == 0
    with pytest.raises(DataError, match="column 'age': expected only finite numbers"):
        cells_of_pairs().release(
            in_cluster(cluster, table), out=tmp_path / "o", format="parquet", executors=True
        )
    assert not [path for path in tmp_path.iterdir() if "survey" not in path.name]


def test_a_file_system_without_hard_links_is_refused(cluster, faults, tmp_path):
    ledger = gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    (faults / "no-links").touch()
    try:
        with pytest.raises(OutputError, match="hard links"):
            cells_of_pairs().release(in_cluster(cluster, people(5)), **under_a_ledger(tmp_path))
    finally:
        (faults / "no-links").unlink()
    assert ledger.spent == 0


def test_what_was_drawn_and_is_lost_is_not_drawn_again(cluster, tmp_path, monkeypatch):
    gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    frame = in_cluster(cluster, people(5))

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(releases, "write_record", stop)
    with pytest.raises(KeyboardInterrupt):
        cells_of_pairs().release(frame, **under_a_ledger(tmp_path))
    monkeypatch.undo()
    (work,) = tmp_path.glob(".out.*.work")
    shutil.rmtree(work)
    with pytest.raises(LedgerError, match="which is gone"):
        cells_of_pairs().release(frame, **under_a_ledger(tmp_path))
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match="exists already"):
        cells_of_pairs().release(frame, **under_a_ledger(tmp_path))


def test_files_that_are_lost_are_named_and_not_drawn_again(cluster, tmp_path, monkeypatch):
    for name, value in few_cells().items():
        monkeypatch.setattr(layouts, name, value)
    gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    plan, frame = large_plan(), in_cluster(cluster, people())
    work = stopped(monkeypatch, plan, frame, tmp_path)
    layout = Layout.of(plan)
    residuals = committed_residuals(layout, work)
    matrix = next(iter(layout.matrices.values()))
    decoded, column = (work / kind / matrix.name(0) for kind in ("measured", "noisy"))

    def refused(lost):
        lost.rename(tmp_path / "lost")
        with pytest.raises(LedgerError, match=rf"in {lost.parent}, which lacks 1 .* {lost.name}"):
            plan.release(frame, **under_a_ledger(tmp_path))
        assert not lost.exists()
        (tmp_path / "lost").rename(lost)

    refused(decoded)
    (work / "measured.json").unlink()
    decoded.unlink()  # as if it had not been decoded yet
    refused(column)
    check_as_committed(plan.release(frame, **under_a_ledger(tmp_path)), layout, residuals)


def test_a_foreign_folder_that_appears_last_is_not_taken_for_the_release(
    cluster, tmp_path, monkeypatch
):
    ledger = gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    plan, frame, out = cells_of_pairs(), in_cluster(cluster, people(5)), tmp_path / "out"
    write = releases.write_record

    def write_late(*arguments):
        write(*arguments)
        out.mkdir()
        (out / "release.json").write_text('{"executors": {"run": "another"}}')

    monkeypatch.setattr(releases, "write_record", write_late)
    with pytest.raises(OutputError, match="exists already"):
        plan.release(frame, **under_a_ledger(tmp_path))
    monkeypatch.undo()
    (work,) = tmp_path.glob(".out.*.work")  # the charged work is not lost
    shutil.rmtree(out)
    with Work(work).alone(), pytest.raises(OutputError, match="another program"):
        plan.release(frame, **under_a_ledger(tmp_path))
    assert not out.exists()
    release = plan.release(frame, **under_a_ledger(tmp_path))
    loaded = type(release).load(out)
    assert all(np.array_equal(loaded[m].estimate, release[m].estimate) for m in release)
    assert ledger.spent == plan.rho_charged
    assert not work.exists()


def test_spark_connect_is_refused(monkeypatch):
    class Connected:
        def mapInArrow(self): ...  # noqa: N802 (Spark's name)

    lazy = nw.from_native(pl.LazyFrame())
    monkeypatch.setattr(spark.nw, "from_native", lambda *_, **__: lazy)
    with pytest.raises(ParameterError, match="Spark Connect"):
        spark.check_spark(Connected())


def test_spark_may_hand_on_batches_without_rows():
    def batch(*parts):
        columns = {"part": np.array(parts, dtype=np.int32)}
        names = ("cell", "count", "high")
        columns |= {name: np.ones(len(parts), dtype=np.int64) for name in names}
        return pyarrow.RecordBatch.from_pydict(columns)

    found = spark._by_part([batch(), batch(0, 0), batch(), batch(1, 2)])
    assert [(part, len(cells)) for part, cells, *_ in found] == [(0, 2), (1, 1), (2, 1)]


def test_parts_whose_rows_do_not_all_arrive_are_not_counted():
    """A task that Spark stops sees an ordinary end of its input."""
    sizes = {3: 2, 5: 4, 7: 1}
    rows = [(3, [0, 1, 2], [4, 5, 0]), (5, [1], [9]), (5, [3, 4], [8, 0]), (7, [1], [0])]
    pieces = [
        (part, np.array(cells), np.array(counts), np.zeros(len(cells), dtype=np.int64))
        for part, cells, counts in rows
    ]
    found = {part: counts.tolist() for part, counts in spark._complete_groups(pieces, sizes, None)}
    assert found == {3: [4, 5], 5: [0, 9, 0, 8], 7: [0]}
    for stop, whole in ((1, [3]), (2, [3]), (3, [3, 5])):
        assert [part for part, _ in spark._complete_groups(pieces[:stop], sizes, None)] == whole


def test_a_folder_that_is_written_to_is_gone_at_once(tmp_path):
    folder, late = tmp_path / "work", []
    (folder / "aside").mkdir(parents=True)
    commits = Commits(folder, folder / "aside")

    def write(k):
        try:
            for n in range(10**6):
                commits.commit(f"{k}-{n}", lambda path: path.write_text("x", encoding="utf-8"))
        except FileNotFoundError:
            late.append(k)

    writers = [threading.Thread(target=write, args=(k,)) for k in range(3)]
    for writer in writers:
        writer.start()
    while not list(folder.glob("2-*")):
        pass
    remove_at_once(folder)
    for writer in writers:
        writer.join()
    assert sorted(late) == [0, 1, 2]
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_into_a_folder_while_it_is_taken_away(tmp_path, monkeypatch):
    folder = tmp_path / "work"
    folder.mkdir()
    commits, rmtree = Commits(folder, folder), shutil.rmtree

    def write_late(path, **options):
        with pytest.raises(FileNotFoundError):
            commits.commit("late", lambda own: own.write_text("x", encoding="utf-8"))
        rmtree(path, **options)

    monkeypatch.setattr(shutil, "rmtree", write_late)
    remove_at_once(folder)
    assert list(tmp_path.iterdir()) == []


def test_work_is_not_continued_with_other_rows(cluster, tmp_path, monkeypatch):
    ledger = gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    rows = people(5)
    others = rows.assign(sex=rows["sex"].map({"F": "M", "M": "F"}))

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Work, "keep_digests", stop)
    with pytest.raises(KeyboardInterrupt):
        cells_of_pairs().release(in_cluster(cluster, rows), **under_a_ledger(tmp_path))
    monkeypatch.undo()
    next(tmp_path.glob(".out.*.work/measured/*")).unlink()  # as if it had not been measured yet
    for changed in (others, rows[:4], pd.concat([rows, rows[:1]])):
        with pytest.raises(DataError, match="it changed while it was read"):
            cells_of_pairs().release(in_cluster(cluster, changed), **under_a_ledger(tmp_path))
    spent = ledger.spent
    shuffled = rows.sample(frac=1, random_state=0)
    cells_of_pairs().release(in_cluster(cluster, shuffled), **under_a_ledger(tmp_path))
    assert (tmp_path / "out" / "release.json").exists()
    assert ledger.spent == spent


def test_measurements_that_differ_are_told_apart():
    plan = cells_of_pairs()
    query = plan.query
    noise = query.query
    doubled = {kind: 2 * s for kind, s in query.multipliers.values_by_type.items()}
    multipliers = replace(query.multipliers, values_by_type=doubled)
    layout = Layout.of(plan)
    others = [
        replace(query, multipliers=multipliers),
        replace(query, query=replace(noise, budget=noise.budget / 2)),
        replace(query, query=replace(noise, sensitivity_squared=noise.sensitivity_squared + 1)),
        replace(query, unit=2 * query.unit),
    ]
    found = {layout.sha256, *(replace(layout, query=other).sha256 for other in others)}
    assert len(found) == 1 + len(others)
    assert Layout.of(cells_of_pairs()).sha256 == layout.sha256


def test_a_task_that_comes_too_late_finds_no_folder(tmp_path):
    commits = Commits(tmp_path / "gone", tmp_path)
    with pytest.raises(FileNotFoundError):
        commits.commit("tables/1-way.csv", lambda path: path.write_text("1"))
    assert list(tmp_path.iterdir()) == []


def test_of_many_writers_the_first_one_stays(tmp_path):
    commits = Commits(tmp_path / "here", tmp_path / "aside")
    commits.folder.mkdir()
    commits.aside.mkdir()
    barrier = threading.Barrier(8)

    def write(text):
        def late(path):
            path.write_text(text)
            barrier.wait(timeout=60)  # all files are complete before one is linked

        return commits.commit("x", late)

    with ThreadPoolExecutor(8) as pool:
        digests = set(pool.map(write, [f"text {k}" for k in range(8)]))
    assert digests == {commits.digest("x")}
    assert list(commits.aside.iterdir()) == []
    assert commits.commit("x", lambda path: path.write_text("later")) in digests


def test_large_plans_are_priced_and_refused_on_one_machine(monkeypatch):
    names = [f"a{k}" for k in range(6)]
    small, large = (
        gn.plan(gn.Schema([gn.Attribute(name, range(n)) for name in names]), 2, gn.zCDP(1.0))
        for n in (1000, 6000)
    )
    assert not small.needs_executors
    assert large.needs_executors
    assert sum(small.core_hours.values()) > 12e-6 * small.integers / 3600
    assert len(large.core_hours) == 15
    assert "with Spark's executors alone, about 2.1 core hours" in str(large)
    for refused in (large.release, partial(large.simulate, rng=np.random.default_rng(0))):
        with pytest.raises(DomainTooLargeError, match=r"hours .* executors=True"):
            refused(pd.DataFrame())
    wide = gn.Schema([gn.Attribute("a", range(9000)), gn.Attribute("b", range(9000))])
    whole = gn.plan(wide, 2, gn.zCDP(1.0), neighbors="replace", public=("a", "b"))
    monkeypatch.setattr(releases, "check_spark", lambda _: None)
    with pytest.raises(DomainTooLargeError, match="public attributes"):
        whole.release(None, out="out", format="parquet", executors=True)


# Streams, whose ticks executors count, draw and write


def started(folder, over=None, marginals=(("sex", "age"), ("age", "region"), ("region",)), **more):
    """Return a stream by executors in a folder, under the ledger if there is one."""
    over = over or gn.streams.Ticks(3)
    plan = gn.plan(SCHEMA, list(marginals), gn.zCDP(1.0), over=over, **more)
    ledger = folder / "survey.ledger"
    charged = {"ledger": ledger, "id": "weekly"} if ledger.exists() else {}
    return plan.start(folder / "weekly", format="parquet", executors=True, **charged)


def week(number):
    table = people(200 + number)
    return table.assign(age=(table["age"] + 7 * number) % 121, week=number)


def one_machines(stream):
    """Return what one machine computes from the committed files: tables of each tick and of all."""
    plan, layout = stream.plan, layout_of(stream.plan)
    noisy, total, found = [], {}, []
    for tick in range(1, len(stream) + 1):
        (folder,) = stream.state.private.glob(f"{tick:04d}-*")
        assert sorted(path.name for path in folder.iterdir()) == ["exact-counts", "measured"]
        files = [np.load(folder / "measured" / f"{k:06d}.npy") for k in range(len(layout.groups))]
        places = Drawing(plan, layout).places
        noisy.append({T: [int(x) for x in files[k][where]] for T, (k, where) in places.items()})
        rows = int(np.load(folder / "exact-counts" / "000000.npy").sum())
        own = estimated(plan, noisy, rows)
        total = {S: total[S] + own[S] if total else own[S] for S in own}
        found.append((own, total))
    return found


def check_as_one_machine(stream):
    """Check everything that is published, bit for bit."""
    for tick, (own, total) in enumerate(one_machines(stream), 1):
        for release, tables in ((stream.period(tick), own), (stream.total(tick), total)):
            assert all(np.array_equal(release.tables[S], tables[S]) for S in tables)


WEEKS = {
    "rows": {},
    "replaced rows, late ones carried": {
        "neighbors": "replace",
        "over": gn.streams.Ticks(3, reports=2, period="week", late="carry"),
    },
    "persons, under a ledger": {
        "over": gn.streams.Ticks(3, 1),
        "person": "who",
        "rows_per_person": 2,
    },
}


@pytest.mark.parametrize("kind", WEEKS)
def test_ticks_by_executors_are_those_of_one_machine(cluster, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))
    ledger = None
    if "ledger" in kind:
        ledger = gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    stream = started(tmp_path, **WEEKS[kind])
    assert len(layout_of(stream.plan).groups) > 1
    for number in (1, 2, 3):
        total = stream.tick(in_cluster(cluster, week(number)), number=number)
        stream = gn.streams.Stream.open(stream.path)
    check_as_one_machine(stream)
    truth = sum((week(k)["sex"] == "F").sum() for k in (1, 2, 3))
    if ledger is None:
        assert abs(total["sex"].estimate[0] - truth) < 8 * total["sex"].standard_deviation[0]
    else:
        assert ledger.spent == stream.plan.rho_charged
        assert total["sex"].estimate.sum() < 2 * truth
    again = stream.tick(in_cluster(cluster, week(9)), number=2)
    assert np.array_equal(again["sex"].estimate, stream.total(2)["sex"].estimate)
    one, two = (again[name, "age"].estimate for name in ("sex", "region"))
    assert np.allclose(one.sum(axis=0), two.sum(axis=0), rtol=0, atol=1e-9)


def test_without_noise_executors_count_what_one_machine_does(cluster, tmp_path, monkeypatch):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))
    over = gn.streams.Ticks(2, 1, period="week")
    stream = started(tmp_path, over, person="who", rows_per_person=400)
    here = stream.plan.start(tmp_path / "here", format="parquet")
    for each in (stream, here):
        silenced(each.plan)
    for number in (1, 2):
        total = stream.tick(in_cluster(cluster, week(number)), number=number)
        expected = here.tick(week(number), number=number)
        assert all(np.array_equal(total[m].estimate, expected[m].estimate) for m in expected)
    assert np.abs(total["age"].estimate - np.rint(total["age"].estimate)).max() < 1e-9


def test_executors_leave_out_the_persons_whom_one_machine_does(cluster, tmp_path, monkeypatch):
    """Persons are numbers, or text; one of the ticks of text is counted here, by Spark."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))
    over = gn.streams.Ticks(3, 2, apart=2, enforced=True)
    parts = [week(1)[:200], week(2)[100:], week(3)]
    named = [part.assign(who="é " + part["who"].astype(str)) for part in parts]
    for kind, tables in (("numbers", parts), ("text", named)):
        (tmp_path / kind).mkdir()
        stream = started(tmp_path / kind, over, person="who", rows_per_person=400)
        here = stream.plan.start(tmp_path / kind / "here", format="parquet")
        for each in (stream, here):
            silenced(each.plan)
        for number, rows in enumerate(tables, 1):
            total = stream.tick(in_cluster(cluster, rows), number=number)
            others = rows if kind == "numbers" else pl.from_pandas(rows)
            if kind == "text" and number == 2:  # a dataframe of Spark that one machine counts
                others = in_cluster(cluster, rows)
            expected = here.tick(others, number=number)
            assert all(np.array_equal(total[m].estimate, expected[m].estimate) for m in expected)
        registries = [list(each.state.private.glob("registry*")) for each in (stream, here)]
        assert registries == [[], []]
        persons = [set(part["who"]) for part in parts]
        counted = [persons[0], persons[1] - persons[0], persons[2] - (persons[1] - persons[0])]
        kept = [part[part["who"].isin(own)] for part, own in zip(parts, counted, strict=True)]
        assert total["region"].estimate.sum() == pytest.approx(sum(map(len, kept)))


def test_no_residual_of_a_tick_is_drawn_twice_after_any_kill(
    cluster, faults, tmp_path, monkeypatch
):
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))
    stream = started(tmp_path, gn.streams.Ticks(2))
    stream.tick(in_cluster(cluster, week(1)), number=1)
    happened = order(
        faults,
        *("before-exact-counts-kill", "after-exact-counts-executor"),
        *("before-measured-kill", "after-measured-executor", "before-measured-wait"),
        *("before-period-kill", "after-cumulative-executor"),
    )
    stream.tick(in_cluster(cluster, week(2)), number=2)
    assert [path.name for path in happened if not path.exists()] == []
    check_as_one_machine(stream)


@pytest.mark.parametrize("enforced", [False, True], ids=["assured", "enforced"])
def test_a_tick_whose_driver_is_killed_goes_on_from_what_was_committed(
    cluster, faults, tmp_path, monkeypatch, enforced
):
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))
    gn.Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))
    over = gn.streams.Ticks(2, 1, enforced=enforced)
    stream = started(tmp_path, over, person="who", rows_per_person=2)
    week(1).to_parquet(tmp_path / "people.parquet")
    (happened,) = order(faults, "after-measured-driver")
    killed_driver(tmp_path, faults, "tick")
    assert happened.exists()
    (work,) = stream.state.private.glob("0001-*")
    committed = {path: path.read_bytes() for kind in FOLDERS for path in (work / kind).iterdir()}
    assert len(committed) >= 2
    stream.tick(in_cluster(cluster, week(1)), number=1)
    assert {path: path.read_bytes() for path in committed} == committed
    check_as_one_machine(stream)
    registered = [path.name for path in stream.state.private.glob("registry*")]
    assert registered == ["registry-0001"] * enforced


def test_a_tick_whose_driver_is_killed_when_it_is_published_leaves_nothing(
    cluster, faults, tmp_path, monkeypatch
):
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))
    stream = started(tmp_path, gn.streams.Ticks(2, 1), person="who", rows_per_person=2)
    week(1).to_parquet(tmp_path / "people.parquet")
    killed_driver(tmp_path, faults, "published tick")
    (work,) = stream.state.private.glob("0001-*")
    assert (work / "records.txt").exists()
    taken = work.with_name(f"0002-{16 * 'a'}.{16 * 'b'}")  # of a driver that was removing it
    taken.mkdir()
    (taken / "records.txt").touch()
    stream.tick(in_cluster(cluster, week(1)), number=1)
    check_as_one_machine(stream)
    stream.tick(in_cluster(cluster, week(2)), number=2)
    check_as_one_machine(stream)


def test_a_tick_that_was_begun_with_other_rows_is_begun_again(cluster, tmp_path, monkeypatch):
    stream = started(tmp_path, gn.streams.Ticks(2))

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(State, "commit", stop)
        with pytest.raises(KeyboardInterrupt):
            stream.tick(in_cluster(cluster, week(1)), number=1)
    (begun,) = stream.state.private.glob("0001-*")
    assert list((begun / "measured").iterdir())
    stream.tick(in_cluster(cluster, week(2)), number=1)
    assert not begun.exists()
    check_as_one_machine(stream)
    assert int(np.load(next(stream.state.private.glob("*/exact-counts/*"))).sum()) == 202
    with monkeypatch.context() as patch:
        patch.setattr(ticks, "write_record", stop)
        with pytest.raises(KeyboardInterrupt):
            stream.tick(in_cluster(cluster, week(1)), number=2)
    with pytest.raises(StreamError, match="number=2 reads"):
        stream.tick(in_cluster(cluster, week(2)))
    assert len(stream) == 2
    check_as_one_machine(stream)


def test_rows_of_another_tick_are_refused_by_executors(cluster, tmp_path):
    stream = started(tmp_path, gn.streams.Ticks(3, 1, period="week"), person="who")
    for number in (2, 4):
        with pytest.raises(DataError, match="'week'"):
            stream.tick(in_cluster(cluster, week(number)), number=1)
    with pytest.raises(ParameterError, match="expects a Spark dataframe"):
        stream.tick(week(1), number=1)
    assert [path.name for path in stream.state.private.iterdir()] == ["lock"]


def one_byte_more(path):
    path.write_bytes(path.read_bytes() + b" ")


DAMAGES = {
    "counts": ("private/0001-*/exact-counts/000000.npy", one_byte_more),
    "measurements": ("private/0001-*/measured/000000.npy", one_byte_more),
    "tables": ("ticks/0001/cumulative/tables/*/part-000000.parquet", one_byte_more),
    "a commit that is missing": ("private/exact-counts-0001.json", Path.unlink),
    "a folder that is missing": ("private/0001-*", shutil.rmtree),
}


def test_a_stream_by_executors_that_was_changed_does_not_go_on(cluster, tmp_path):
    stream = started(tmp_path, gn.streams.Ticks(3))
    stream.tick(in_cluster(cluster, week(1)), number=1)
    shutil.copytree(stream.path, tmp_path / "copy")
    for name, change in DAMAGES.values():
        change(next(stream.path.glob(name)))
        with pytest.raises(gn.GaussNoiseError):
            stream.tick(in_cluster(cluster, week(2)), number=2)
        assert len(stream) == 1
        shutil.rmtree(stream.path)
        shutil.copytree(tmp_path / "copy", stream.path)
    stream.tick(in_cluster(cluster, week(2)), number=2)
    check_as_one_machine(stream)
    for name in ("private/exact-counts-0001.json", "ticks/0001/release.json"):
        path = stream.path / name
        kept = path.read_bytes()
        one_byte_more(path)
        with pytest.raises(StreamError, match="does not follow"):
            stream.tick(in_cluster(cluster, week(3)), number=3)
        path.write_bytes(kept)


def test_integers_beyond_64_bits_are_kept_as_they_are(tmp_path):
    many = np.array([10**30, -(10**25), 3], dtype=object)
    for name, values in (("many", many), ("few", np.array([1, -2, 3], dtype=object))):
        stream_tasks._save(values, tmp_path / name)
        found = stream_tasks._integers(np.load(tmp_path / name, allow_pickle=False))
        assert [int(x) for x in found] == list(values)


def test_large_streams_are_priced_and_refused_on_one_machine(tmp_path):
    schema = gn.Schema([gn.Attribute(f"a{k}", range(3700)) for k in range(6)])
    plan = gn.plan(schema, 2, gn.zCDP(1.0), over=gn.streams.Ticks(52))
    assert plan.integers > 10**10
    assert "with Spark's executors alone, about" in str(plan)
    assert len(plan.core_hours) == 15
    draws = 12e-6 * plan.integers / 3600
    assert draws < sum(plan.core_hours.values()) < 5 * draws
    for refused in (
        partial(plan.start, tmp_path / "s"),
        partial(plan.simulate, [], np.random.default_rng(0)),
    ):
        with pytest.raises(DomainTooLargeError, match="executors=True"):
            refused()
    with pytest.raises(ParameterError, match='format="parquet"'):
        plan.start(tmp_path / "s", executors=True)
    wide = gn.Schema([gn.Attribute(n, range(9000)) for n in "ab"])
    with pytest.raises(DomainTooLargeError, match="of streams"):
        gn.plan(wide, 2, gn.zCDP(1.0), over=gn.streams.Ticks(2)).start(
            tmp_path / "s", executors=True, format="parquet"
        )
    assert list(tmp_path.iterdir()) == []
    assert len(plan.start(tmp_path / "s", executors=True, format="parquet")) == 0


if __name__ == "__main__":  # the driver that a fault kills, or the first one, which none does
    folder, own_faults = map(Path, sys.argv[1:3])
    (own_faults / "driver.pid").write_text(str(os.getpid()), encoding="ascii")
    layouts._GROUP_CELLS = (12, 12)
    if sys.argv[3] == "large":
        vars(layouts).update(few_cells())
    rows = in_cluster(
        spark_session("local[1]", own_faults), pd.read_parquet(folder / "people.parquet")
    )

    def kill(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    if sys.argv[3] == "published tick":
        tidy = ticks.Executors.tidy
        ticks.Executors.tidy = lambda self, commits: kill() if commits else tidy(self, commits)
    if sys.argv[3] == "uncharged":
        keep = Work.keep_charge
        Work.keep_charge = lambda self, charge: kill(keep(self, charge))
    if "tick" in sys.argv[3]:
        gn.streams.Stream.open(folder / "weekly").tick(rows, number=1)
    else:
        released = large_plan() if sys.argv[3] == "large" else cells_of_pairs()
        options = under_a_ledger(folder)
        if sys.argv[3] in ("alone", "first"):
            options = {k: v for k, v in options.items() if k not in ("ledger", "id")}
        released.release(rows, **options)
