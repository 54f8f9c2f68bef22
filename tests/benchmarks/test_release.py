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
