import importlib.metadata
import itertools
import os
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import numpy as np
import opendp.measurements
import pytest

import gaussnoise as gn
from gaussnoise.errors import NotAvailableError
from gaussnoise.privacy import sampler as _sampler
from gaussnoise.privacy.sampler import _CHUNK, OLDEST_OPENDP, IntegerQuery, noise_stream


def counter():
    """A draw that returns 0, 1, 2, … and records how many integers each call asked for."""
    numbers, lock, asked = itertools.count(), threading.Lock(), []

    def draw(count):
        with lock:
            asked.append(count)
            return list(itertools.islice(numbers, count))

    return draw, asked


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "sizes", [[1], [_CHUNK], [3, 0, _CHUNK - 1, 5 * _CHUNK + 1, 1, 1], [7] * 100]
)
def test_every_noise_is_handed_out_once_and_no_other_is_drawn(threads, sizes):
    draw, asked = counter()
    with noise_stream(draw, sum(sizes), threads) as noise:
        taken = [noise.take(size) for size in sizes]
    assert [len(part) for part in taken] == sizes
    assert sorted(np.concatenate(taken).tolist()) == list(range(sum(sizes)))
    assert sum(asked) == sum(sizes)
    assert max(asked) <= _CHUNK


def test_one_thread_keeps_the_order():
    draw, _ = counter()
    with noise_stream(draw, 3 * _CHUNK, 1) as noise:
        assert noise.take(3 * _CHUNK).tolist() == list(range(3 * _CHUNK))


def test_more_than_was_announced_is_not_to_be_had():
    draw, _ = counter()
    with noise_stream(draw, 10, 2) as noise:
        noise.take(10)
        with pytest.raises(IndexError):
            noise.take(1)


def test_a_failing_draw_fails_the_taker():
    def draw(count):
        raise MemoryError("injected")

    with pytest.raises(MemoryError, match="injected"), noise_stream(draw, 10, 2) as noise:
        noise.take(10)


def test_leaving_early_leaves_no_thread_and_draws_no_more():
    before = threading.active_count()
    draw, asked = counter()
    with noise_stream(draw, 1000 * _CHUNK, 2) as noise:
        noise.take(1)
    time.sleep(0)
    assert threading.active_count() == before
    assert len(asked) < 200


def test_threads_draw_different_noise():
    query = IntegerQuery(2**80, 0.5)
    with noise_stream(query.draw, 4 * _CHUNK, 4) as noise:
        drawn = noise.take(4 * _CHUNK)
    # threads that draw the same repeat thousands; among 32,768 draws at this scale, three repeat at
    # odds of 1e-12
    assert len(np.unique(drawn)) > 4 * _CHUNK - 3
    assert drawn.std() == pytest.approx(
        query.scale, rel=0.025
    )  # 6.4 of its own standard deviations


_FORKED = """
import json, os
import numpy as np
from gaussnoise.privacy.sampler import IntegerQuery

def ours():
    return IntegerQuery(2**80, 0.5).draw(4)

copied = np.random.default_rng()

def planted():
    return copied.integers(2**60, size=4).tolist()

for draw in (ours, planted):
    draw()  # the generator has begun before the processes part
    found = []
    for _ in range(3):
        reading, writing = os.pipe()
        if not (child := os.fork()):
            os.write(writing, json.dumps(draw()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        found.append(tuple(json.loads(os.read(reading, 10**4))))
    print(len({*found, tuple(draw())}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_forked_processes_draw_different_noise():
    """Spark forks the processes that draw, and other programs fork to use several cores."""
    done = subprocess.run(
        [sys.executable, "-c", _FORKED], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["4", "1"]


# OpenDP as it is installed


@pytest.fixture
def unseen():
    """Let OpenDP be checked again, now and after the test."""
    _sampler._opendp.cache_clear()
    yield
    _sampler._opendp.cache_clear()


def releases():
    """All functions that draw noise, or know a noise scale; each of them must refuse."""
    return [
        lambda: gn.GaussianMechanism(gn.optimal_noise(gn.FiniteSet(np.eye(2))), gn.zCDP(0.1), n=2),
        lambda: (
            gn.plan(gn.Schema([gn.Attribute("sex", ["F", "M"])]), 1, gn.zCDP(0.1)).query.query.scale
        ),
        lambda: IntegerQuery(1, 0.5).draw(3),
    ]


@pytest.mark.parametrize(
    "version", ["0.14.1", "0.14.2a20251201001", "0.9.0", "0.0.0+development", "0", "", "unknown"]
)
def test_an_old_opendp_draws_nothing(unseen, monkeypatch, version):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    for ask in releases():
        with pytest.raises(
            NotAvailableError,
            match=r'noise: expected OpenDP 0\.15 or later.*hint: pip install "opendp',
        ):
            ask()


@pytest.mark.parametrize("version", ["0.15.0", "0.15", "0.16.1", "1.0.0", "0.16.0a20260101001"])
def test_a_newer_opendp_draws(unseen, monkeypatch, version):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    assert len(IntegerQuery(1, 0.5).draw(3)) == 3


def test_no_opendp_is_said_so(unseen, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.measurements", None)
    with pytest.raises(
        NotAvailableError, match="expected OpenDP, which draws it, got ModuleNotFoundError; hint"
    ):
        IntegerQuery(1, 0.5).draw(3)


BROKEN = """
import gaussnoise as gn
from gaussnoise.privacy.laplace import LaplaceQuery, NoisyMaximum
from gaussnoise.privacy.sampler import IntegerQuery
from gaussnoise.privacy.threshold import Change, ThresholdQuery

for ask in (
    lambda: IntegerQuery(1, 0.5).draw(3),
    lambda: gn.zCDP(0.1).epsilon(1e-6),
    lambda: LaplaceQuery(1, 0.5).draw(3),
    lambda: NoisyMaximum(1, 0.5).choose([0, 1]),
    lambda: ThresholdQuery(Change.added(1), 0.1, 1e-7).frequent({0: 5}),
):
    try:
        ask()
    except gn.errors.NotAvailableError as error:
        print(error)
"""


def test_an_opendp_whose_library_does_not_load_is_said_so(tmp_path):
    """The file may be of another machine or truncated: OpenDP raises its most general error."""
    (tmp_path / "opendp.abi3.so").write_bytes(b"no library")
    environment = os.environ | {"OPENDP_LIB_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", BROKEN], env=environment, capture_output=True, text=True, check=True
    )
    said = done.stdout.splitlines()
    assert len(said) == 5
    assert all("got a library that does not load; hint: pip install" in line for line in said)


class Measurement:
    """OpenDP's discrete Gaussian, with a fault."""

    def __init__(self, real, map=None, draw=None):
        self.map = map or real.map
        self._draw = draw or real

    def __call__(self, zeros):
        return self._draw(zeros)


FAULTS = {
    "charges half": lambda real: {"map": lambda distance: real.map(distance) / 2},
    "charges twice": lambda real: {"map": lambda distance: 2 * real.map(distance)},
    "charges a little less": lambda real: {
        "map": lambda distance: real.map(distance) * (1 - 1e-12)
    },
    "no noise": lambda real: {"draw": list},
    "saturates": lambda real: {
        "draw": lambda zeros: [2**63 - 1 if x > 0 else -(2**63) for x in real(zeros)]
    },
    "one noise for all": lambda real: {"draw": lambda zeros: real(zeros[:1]) * len(zeros)},
    "loses some": lambda real: {"draw": lambda zeros: real(zeros)[:-1]},
    "in 32 bits": lambda real: {"draw": lambda zeros: [x & 0 for x in real(zeros)]},
    "floats": lambda real: {"draw": lambda zeros: [float(x) for x in real(zeros)]},
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_an_opendp_that_fails_its_check_draws_nothing(unseen, monkeypatch, fault):
    real = opendp.measurements.make_gaussian

    def make_gaussian(*arguments, **named):
        made = real(*arguments, **named)
        return Measurement(made, **fault(made))

    monkeypatch.setattr(opendp.measurements, "make_gaussian", make_gaussian)
    with pytest.raises(
        NotAvailableError, match="does not charge or draw what it should on this machine; hint"
    ):
        IntegerQuery(1, 0.5).draw(3)


def test_the_check_runs_once(unseen, monkeypatch):
    checks = []
    real = _sampler._check
    monkeypatch.setattr(_sampler, "_check", lambda *arguments: checks.append(real(*arguments)))
    query = IntegerQuery(2, 0.5)
    for _ in range(5):
        query.draw(2)
    assert checks == [None]


def test_the_oldest_opendp_is_the_one_that_is_installed_with_the_package():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    (asked,) = [x for x in tomllib.loads(text)["project"]["dependencies"] if x.startswith("opendp")]
    assert asked.startswith(f"opendp>={'.'.join(map(str, OLDEST_OPENDP))},<")
