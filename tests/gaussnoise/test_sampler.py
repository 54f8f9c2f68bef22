import itertools
import threading
import time

import numpy as np
import pytest

from gaussnoise._sampler import _CHUNK, IntegerQuery, noise_stream


def counter():
    """A draw that hands out 0, 1, 2, … and remembers how many it was asked for at once."""
    numbers, lock, asked = itertools.count(), threading.Lock(), []

    def draw(count):
        with lock:
            asked.append(count)
            return list(itertools.islice(numbers, count))

    return draw, asked


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("sizes", [[1], [_CHUNK], [3, 0, _CHUNK - 1, 5 * _CHUNK + 1, 1, 1], [7] * 100])
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
    assert len(np.unique(drawn)) == 4 * _CHUNK
    assert drawn.std() == pytest.approx(query.scale, rel=0.02)
