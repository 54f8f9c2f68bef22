"""A release of a million noisy integers, beside the sampler alone: ``pytest -m benchmark -s
-n 0``.
"""

import itertools
import time

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.privacy.sampler import noise_stream, sampling_threads
from gaussnoise.tables.release.biased import integer, projected

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_loading_checks_the_proof_of_36_tables_and_does_not_plan_again(neighbors, tmp_path):
    """Expected: 36 tables with cumulative counts are loaded in less than one eigh(1024), .1 s or
    so; to plan them takes 3 (add-remove) to 20 times as long.
    """
    schema = gn.Schema(
        [
            gn.Attribute(f"a{i}", edges=range(51 + 3 * i), base="prefix")
            if i % 3 == 0
            else gn.Attribute(f"a{i}", range(2 + 2 * i))
            for i in range(9)
        ]
    )
    codes = np.random.default_rng(0).integers(0, 2, (1000, 9))
    table = pa.table({f"a{i}": codes[:, i] for i in range(9)})
    matrix = np.random.default_rng(0).normal(size=(1024, 1024))
    starts = [time.process_time()]
    np.linalg.eigh(matrix + matrix.T)
    starts.append(time.process_time())
    planned = gn.plan(schema, 2, gn.zCDP(0.5), neighbors=neighbors)
    starts.append(time.process_time())
    planned.release(table, out=tmp_path / "out", format="parquet")
    gn.TableRelease.load(tmp_path / "out")
    starts.append(time.process_time())
    loaded = gn.TableRelease.load(tmp_path / "out")
    unit, solved, _, read = np.diff([*starts, time.process_time()])
    print(f"\n36 tables, {neighbors}: loaded in {read:.2f} s, planned in {solved / read:.1f} times")
    assert loaded.plan.bracket == planned.bracket
    assert read < unit
    assert read < solved


SIZES = (10,) * 20
ROWS = 50_000


@pytest.fixture(scope="module")
def plan():
    return gn.plan(
        gn.Schema([gn.Attribute(f"a{i}", range(n)) for i, n in enumerate(SIZES)]), 3, gn.zCDP(0.5)
    )


@pytest.fixture(scope="module")
def table():
    codes = np.random.default_rng(0).integers(SIZES, size=(ROWS, len(SIZES)))
    return pa.table({f"a{i}": codes[:, i] for i in range(len(SIZES))})


def sampling(plan):
    """Seconds to draw a release's noise and nothing else."""
    plan.query.query.draw(1)
    start = time.perf_counter()
    with noise_stream(plan.query.query.draw, plan.integers, sampling_threads()) as noise:
        noise.take(plan.integers)
    return time.perf_counter() - start


@pytest.mark.parametrize("work", [projected, integer])
def test_a_million_cells_are_projected_and_rounded_in_time_that_hardly_grows_faster(work):
    taken = {}
    for cells in (10**5, 10**6):
        table = np.random.default_rng(1).normal(0, 1e6, cells)
        starts = [time.process_time()]
        for _ in range(3):
            work(table)
            starts.append(time.process_time())
        taken[cells] = min(b - a for a, b in itertools.pairwise(starts))
    print(
        f"\n{work.__name__}: {taken[10**6] / taken[10**5]:.1f} times as long for ten times as "
        "many cells"
    )
    assert taken[10**6] < 30 * taken[10**5]


@pytest.mark.parametrize("format", [None, "parquet"])
def test_nearly_all_time_of_a_large_release_is_spent_drawing_noise(plan, table, tmp_path, format):
    before = sampling(plan)
    start = time.perf_counter()
    plan.release(table, out=None if format is None else tmp_path / "out", format=format or "csv")
    whole = time.perf_counter() - start
    alone = min(before, sampling(plan))
    print(
        f"\n{plan.integers} integers to {format or 'memory'}: {whole:.1f} s, {alone:.1f} s of "
        "them the sampler's"
    )
    assert plan.integers > 10**6
    assert whole < 1.35 * alone  # 1.1 on a quiet machine
    assert whole < 3 * plan.seconds
