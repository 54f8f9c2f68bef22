"""One noise for all lengths: its price, from both sides."""

import math

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise import streams
from gaussnoise.errors import ParameterError


@pytest.fixture(scope="module")
def any_length():
    return streams.unknown_length(48)


def test_the_noise_covers_every_contribution_to_the_totals(any_length):
    deviations = any_length.targets[:, None] * any_length.noise.covariance.factor()
    whitened = np.linalg.solve(deviations, np.tri(48))
    assert np.linalg.norm(whitened, axis=0).max() <= 1 + 1e-9
    np.testing.assert_allclose(
        any_length.standard_deviation, np.linalg.norm(deviations, axis=1), rtol=1e-9
    )


def test_known_lengths_are_certified(any_length):
    for length, known in zip(any_length.lengths, any_length.known, strict=True):
        best = gn.optimal_noise(gn.FiniteSet(np.tri(length).T), math.inf, neighbors="add-remove")
        assert known <= best.gamma * (1 + 1e-12)
        assert known >= best.gamma_lower * (1 - 2e-6)


def test_the_price_is_between_its_bounds(any_length):
    assert any_length.noise.gamma_lower <= any_length.price * (1 + 1e-6)
    assert any_length.price == pytest.approx(any_length.noise.gamma, rel=1e-5)
    assert 1.2 < any_length.price < 1.22


def test_it_beats_starting_anew_and_streams_without_end(any_length):
    rows = [line.split() for line in str(any_length).splitlines()[3:]]
    assert [int(row[0]) for row in rows] == any_length.lengths.tolist()
    last = [float(x) for x in rows[-1][1:]]
    known, ours, doubling, forever = last
    assert known < ours < min(doubling, forever)


def test_doubling_adds_up_its_parts(any_length):
    """Ticks 1, 2–3, 4–7, 8–15, 16–31, 32–63: the sixteenth total is four whole parts and one tick
    of a part of sixteen.
    """
    column = {
        int(line.split()[0]): float(line.split()[3]) for line in str(any_length).splitlines()[3:]
    }
    known = dict(zip(any_length.lengths.tolist(), any_length.known, strict=True))
    assert column[16] == pytest.approx(
        math.sqrt(sum(known[n] ** 2 for n in (1, 2, 4, 8, 16))), rel=1e-4
    )


def test_tables_of_a_stream_can_have_this_noise():
    """At every tick it is within the price of the best total of that length."""
    any_length = streams.unknown_length(12)
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    over = streams.Ticks(12, workload=any_length.workload)
    plan = gn.plan(schema, 1, gn.zCDP(0.5), p=math.inf, over=over)
    alone = gn.plan(schema, 1, gn.zCDP(0.5), p=math.inf).standard_deviation("sex")
    for length, known in zip(any_length.lengths.tolist(), any_length.known, strict=True):
        deviation = plan.standard_deviation("sex", ticks=(1, length))
        assert deviation <= 1.0001 * any_length.price * known * alone


@pytest.mark.parametrize("ticks", [1, 0, 2.5, True])
def test_other_lengths_are_refused(ticks):
    with pytest.raises(ParameterError, match="at least 2 ticks"):
        streams.unknown_length(ticks)
