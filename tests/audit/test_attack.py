"""Floating-point noise tells neighbours apart at one look (Mironov 2012); what is released must
not.

Outputs are images of noisy integers, and every integer is reachable from every data set. Sources:
Mironov (2012), "On significance of the least significant bits for differential privacy"; Jin et al.
(2022), "Are we there yet? Timing and floating-point attacks on differential privacy systems";
Casacuberta et al. (2022), "Widespread underestimation of sensitivity in differentially private
libraries".
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import audit_kit as kit
import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.privacy import sampler as _sampler
from gaussnoise.tables.release import stream as _stream

RELATIONS = pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
RHO = 0.5  # a standard deviation of one, as in the first attacks
DELTA = 0.05
CLAIM = kit.gaussian_epsilon(RHO, DELTA)


def low_bits_bound(left, right):
    return kit.epsilon_bound(left, right, kit.low_bits_ratio, DELTA)


# One look at the low bits.


def test_low_bits_are_those_of_the_number():
    values = [1.0, 0.5, 3 * 2.0**-20, 2.0**-80, 6.0, 0.0]
    assert kit.low_bits(np.reshape(values, (-1, 1))).tolist() == [80, 79, 60, 0, 80, 80]


def test_numpy_noise_is_separated_by_its_low_bits():
    rng = np.random.default_rng(0)
    zero, one = rng.normal(size=(4000, 1)), 1 + rng.normal(size=(4000, 1))
    assert low_bits_bound(zero, one) > CLAIM
    fine = np.ldexp(np.concatenate([zero, one]), 53) % 1 != 0
    assert 0.15 < fine[:4000].mean() < 0.35  # "a quarter"
    assert not fine[4000:].any()


@RELATIONS
def test_released_sums_and_means_hide_behind_their_low_bits(neighbors):
    mechanism = kit.line_mechanism(neighbors, RHO)
    right, left = (
        kit.released(mechanism, counts, 1600) for counts in kit.line_neighbours(mechanism)
    )
    assert low_bits_bound(left, right) < CLAIM
    assert low_bits_bound(right, left) < CLAIM


@RELATIONS
def test_released_tables_hide_behind_their_low_bits(neighbors):
    plan = kit.planned((2, 3), [(0, 1)], RHO, neighbors=neighbors)
    sides = [
        kit.streamed(plan, kit.tables_of(side, plan), 1400)
        for side in kit.worst_neighbours(plan, [(0, 0)])
    ]
    assert low_bits_bound(*sides) < CLAIM
    assert low_bits_bound(*sides[::-1]) < CLAIM


# The lattice, recovered from what is published.


def decoded(mechanism, integers):
    """What noisy integers of a finite mechanism are published as, from the fields of the mechanism
    alone.
    """
    lattice, n = mechanism._lattice, mechanism.n or 1
    coordinates = np.array([float(Fraction(m) / 2**lattice.bits / n) for m in integers])
    return lattice.size * (lattice.unit_factor @ coordinates) + lattice.origins[0]


def recovered(mechanism, estimate):
    """The noisy integers behind an estimate in one dimension, or None if there are none."""
    lattice, n = mechanism._lattice, mechanism.n or 1
    step = Fraction(lattice.size * float(lattice.unit_factor[0, 0])) / n / 2**lattice.bits
    near = round((Fraction(float(estimate)) - Fraction(float(lattice.origins[0, 0]))) / step)
    hits = (
        m for k in range(12) for m in (near - k, near + k) if decoded(mechanism, [m])[0] == estimate
    )
    return next(hits, None)


LINES = [((0.0, 1.0), 1), ((0.1, 0.7, -0.3), 7), ((1e6, 1e6 + 1), 3)]


@RELATIONS
@pytest.mark.parametrize(("points", "n"), LINES)
def test_every_estimate_is_the_image_of_an_integer_that_both_neighbours_reach(neighbors, points, n):
    mechanism = kit.line_mechanism(neighbors, RHO, points, n)
    sides = kit.line_neighbours(mechanism)
    exact = [mechanism._lattice.sums([int(c) for c in side])[0] for side in sides]
    for counts in sides:
        for estimate in kit.released(mechanism, counts, 60)[:, 0]:
            integer = recovered(mechanism, estimate)
            assert integer is not None
            assert isinstance(integer, int)
            # the sampler draws any integer that its 64 bits hold
            assert all(abs(integer - own) < 2**63 for own in exact)


def test_float_noise_is_off_the_lattice():
    mechanism = kit.line_mechanism("add-remove", RHO)
    rng = np.random.default_rng(1)
    estimates = 1 + rng.normal(size=200) * mechanism.standard_deviation[0]
    assert sum(recovered(mechanism, estimate) is None for estimate in estimates) > 100


def lattice_coordinates(release):
    """What tables say about the noisy integers of every measured set: numbers that are integers if
    they are images.

    C determines its argument up to constants along each axis, so differences along the axes are all
    there is.
    """
    query, found = release.query, {}
    for measured in release.measurements():
        T = tuple(release.plan.schema.names.index(name) for name in measured.attributes)
        if T not in query.multipliers:
            continue
        values = np.asarray(measured.estimate, dtype=np.float64) * float(query.multipliers[T])
        for axis, i in enumerate(T):
            n = release.plan.schema.sizes[i]
            first, rest = np.take(values, [0], axis), np.take(values, range(1, n), axis)
            values = 2 * first if n == 2 else n * (rest - first)
        found[T] = values
    return found


SIZES, SUBSETS = (2, 3, 4), [(0, 1), (1, 2), (0,)]


def fractional_parts(release):
    every = np.concatenate([np.ravel(v) for v in lattice_coordinates(release).values()])
    return np.abs(every - np.rint(every))


@RELATIONS
@pytest.mark.parametrize("scale", [1, 1000])
def test_tables_are_images_of_integers(neighbors, scale):
    plan = kit.planned(SIZES, SUBSETS, RHO, neighbors=neighbors)
    release = plan.release(kit.table_of([(0, 1, 2), (1, 2, 3), (1, 0, 0)] * scale, 3))
    assert fractional_parts(release).max() < 2.0**-14 * scale  # 2^32 lattice steps, of 53 bits
    # one row less: another integer vector, from which the same images are as reachable
    before, after = (
        kit.answers(plan, kit.tables_of(records, plan))
        for records in ([(0, 1, 2), (1, 2, 3)], [(0, 1, 2)])
    )
    assert all(np.issubdtype((a - b).dtype, np.integer) for a, b in zip(before, after, strict=True))


@RELATIONS
def test_float_noise_on_tables_is_off_the_lattice(neighbors):
    plan = kit.planned(SIZES, SUBSETS, RHO, neighbors=neighbors)
    release = plan.release(kit.table_of([(0, 1, 2), (1, 2, 3), (1, 0, 0)], 3))
    rng = np.random.default_rng(2)
    cells = rng.normal(size=SIZES)
    naive = {
        S: table + cells.sum(axis=tuple(i for i in range(3) if i not in S))
        for S, table in release.tables.items()
    }
    parts = fractional_parts(replace(release, tables=naive))
    assert (parts > 0.05).mean() > 0.7


# The published numbers are a function of the noisy integers: no trace of what was exact, not one
# bit of rounding.


def with_noise(patch, numbers):
    """Draws hand out these numbers, in order, whatever was asked."""
    left = list(numbers)

    def draw(query, count):
        taken, left[:] = left[:count], left[count:]
        return [*taken, *[0] * (count - len(taken))]

    patch.setattr(_sampler.IntegerQuery, "draw", draw)


def published_alike(monkeypatch, plan, total):
    """Compare the bits of two neighbours' tables for equal noisy integers; the types that held the
    exact answers.
    """
    full = np.array([[total - total // 2, 0, 0], [0, total // 2, 0]])
    more = full.copy()
    more[0, 2] += 1
    more[0, 0] -= plan.neighbors == "replace"
    sides = [{(0, 1): side, (1,): side.sum(axis=0)} for side in (full, more)]
    answers = [kit.answers(plan, side) for side in sides]
    exact = [np.concatenate([a.astype(object) for a in side]) for side in answers]
    draws = np.random.default_rng(3).normal(scale=plan.query.query.scale, size=plan.query.count)
    noise = np.array([int(x) for x in draws], dtype=object)
    outputs = []
    for side, drawn in zip(sides, (noise, noise + exact[0] - exact[1]), strict=True):
        assert max(map(abs, drawn)) < 2**63
        with monkeypatch.context() as patch:
            with_noise(patch, drawn)
            outputs.append(kit.streamed(plan, side, 1))
    assert outputs[0].tobytes() == outputs[1].tobytes()
    return [[a.dtype for a in side] for side in answers]


@RELATIONS
@pytest.mark.parametrize("rho", [1e-6, 0.5, 1e9, 1e13])
@pytest.mark.parametrize("rows", [1, 7, 2**31, 10**12])
def test_equal_noisy_integers_are_published_alike(monkeypatch, neighbors, rho, rows):
    published_alike(
        monkeypatch, kit.planned((2, 3), [(0, 1), (1,)], rho, neighbors=neighbors), rows
    )


@pytest.mark.parametrize("rho", [1e-6, 0.5, 1e9, 1e12, 1e13])
@pytest.mark.parametrize("T", [(0,), (1,), (0, 1)])
def test_equal_noisy_integers_are_published_alike_on_either_side_of_64_bits(monkeypatch, rho, T):
    """Where one row more makes exact answers too long for 64 bits: no trace of the other integer
    type.
    """
    plan = kit.planned((2, 3), [(0, 1), (1,)], rho)
    most = (2**62 - 1) // (
        int(plan.query.multipliers[T]) * math.prod(2 * plan.schema.sizes[i] for i in T)
    )
    before, after = published_alike(monkeypatch, plan, most)
    assert before != after


def test_rounding_that_depends_on_the_type_is_caught(monkeypatch):
    """64-bit integers are rounded twice when divided, Python's once: the type, hence the exact
    answer, would show.
    """

    def decode(query, T, noisy):
        values = np.array(noisy / int(query.multipliers[T]), dtype=np.float64)
        values = values.reshape([query.strategies[i].rows for i in T])
        for axis, i in enumerate(T):
            values = query.strategies[i].decode(values, axis)
        return values

    monkeypatch.setattr("gaussnoise.tables.planning.measure.ResidualQuery.decode", decode)
    caught = 0
    for rho, T in itertools.product([1e-6, 0.5, 1e9, 1e12, 1e13], [(0,), (1,), (0, 1)]):
        plan = kit.planned((2, 3), [(0, 1), (1,)], rho)
        most = (2**62 - 1) // (
            int(plan.query.multipliers[T]) * math.prod(2 * plan.schema.sizes[i] for i in T)
        )
        try:
            published_alike(monkeypatch, plan, most)
        except AssertionError:
            caught += 1
    assert caught


@pytest.mark.parametrize(("neighbors", "format"), [("add-remove", "csv"), ("replace", "parquet")])
def test_equal_noisy_integers_make_equal_files(monkeypatch, tmp_path, neighbors, format):
    plan = kit.planned((2, 3), [(0, 1), (1,)], RHO, neighbors=neighbors)
    sides = kit.worst_neighbours(plan, [(0, 0), (1, 2)])
    exact = [np.concatenate(kit.answers(plan, kit.tables_of(side, plan))) for side in sides]
    noise = np.arange(plan.query.count) * 2**30
    files = []
    for k, (side, drawn) in enumerate(
        zip(sides, (noise, noise + exact[0] - exact[1]), strict=True)
    ):
        with monkeypatch.context() as patch:
            with_noise(patch, drawn.tolist())
            release = plan.release(kit.table_of(side, 2), out=tmp_path / str(k), format=format)
        assert kit.flat(release.tables, plan).any()
        paths = sorted(path for path in (tmp_path / str(k)).rglob("*") if path.is_file())
        files.append({path.relative_to(tmp_path / str(k)): path.read_bytes() for path in paths})
    assert files[0] == files[1]
    assert len(files[0]) >= 4


@RELATIONS
def test_equal_noisy_integers_of_points_are_published_alike(monkeypatch, neighbors):
    points = np.random.default_rng(4).normal(size=(6, 3))
    n = None if neighbors == "add-remove" else 9
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(gn.FiniteSet(points), neighbors=neighbors), gn.zCDP(RHO), n=n
    )
    left, right = [4, 0, 3, 1, 1, 0], [4, 0, 3, 1, 0, 1 if n else 0]
    exact = [mechanism._lattice.sums(counts) for counts in (left, right)]
    noise = [2**47 + 12345, -(2**48) + 1, 77]
    shifted = [z + a - b for z, a, b in zip(noise, *exact, strict=True)]
    outputs = []
    for counts, drawn in ((left, noise), (right, shifted)):
        with monkeypatch.context() as patch:
            with_noise(patch, drawn)
            outputs.append(mechanism.release(counts=counts))
    assert outputs[0].estimate.tobytes() == outputs[1].estimate.tobytes()
    assert outputs[0].privacy == outputs[1].privacy
    assert repr(outputs[0]) == repr(outputs[1])


# Simulations are not private: whoever guesses the seed reads the data. Releases have no seed.


def guessed_counts(mechanism, estimate, seeds):
    """Counts that some seed's noise leaves, if they are whole."""
    for seed in seeds:
        noise = mechanism.simulate(
            None, np.random.default_rng(seed), counts=np.zeros(4, dtype=int)
        ).estimate
        counts = estimate - noise
        if np.abs(counts - np.rint(counts)).max() < 1e-6 and counts.min() > -0.5:
            return np.rint(counts).astype(int).tolist()
    return None


def test_seeds_give_simulations_away_and_not_releases():
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(4)), neighbors="add-remove")
    mechanism, secret = gn.GaussianMechanism(noise, gn.zCDP(RHO)), [12, 0, 5, 7]
    simulated = mechanism.simulate(None, np.random.default_rng(123), counts=secret).estimate
    assert guessed_counts(mechanism, simulated, range(200)) == secret
    assert guessed_counts(mechanism, mechanism.release(counts=secret).estimate, range(200)) is None


def test_seeds_give_simulated_tables_away_and_not_releases():
    plan = kit.planned((2, 3), [(0, 1)], RHO)
    table, empty = kit.table_of([(0, 1), (1, 2), (1, 2)], 2), kit.table_of([], 2)

    def whole(release):
        noises = (
            plan.simulate(empty, np.random.default_rng(seed)).tables[0, 1] for seed in range(40)
        )
        return [
            np.rint(release.tables[0, 1] - z).tolist()
            for z in noises
            if _is_whole(release.tables[0, 1] - z)
        ]

    assert whole(plan.simulate(table, np.random.default_rng(31))) == [[[0, 1, 0], [0, 0, 2]]]
    assert whole(plan.release(table)) == []


def _is_whole(values):
    return np.abs(values - np.rint(values)).max() < 1e-6


@RELATIONS
def test_noise_does_not_repeat(neighbors):
    """No two of all integers of many releases are equal: at 2³² steps a repetition among 4000 has
    odds of 1 in 1000.
    """
    plan = kit.planned((2, 3), [(0, 1), (1,)], RHO, neighbors=neighbors)
    exact = np.concatenate(kit.answers(plan, kit.tables_of([(0, 0)], plan)))
    drawn = np.array(plan.query.query.draw(200 * len(exact)))
    assert len(np.unique(drawn)) >= len(drawn) - 3
    assert math.isfinite(np.abs(drawn).max() / plan.query.query.scale)


def test_the_order_of_noise_is_that_of_the_answers():
    """The kit's own list of answers, against the program's: all that the tests above rely on."""
    plan = kit.planned(SIZES, SUBSETS, RHO)
    tables = kit.tables_of([(0, 1, 2), (1, 2, 3)], plan)
    asked = []

    class Recorder:
        def take(self, count):
            asked.append(count)
            return np.zeros(count, dtype=np.int64)

    list(_stream.noisy_tables(iter(tables.items()), plan.domain.subsets, plan.query, Recorder()))
    assert asked == [len(a) for a in kit.answers(plan, tables)]
    assert list(itertools.accumulate(asked))[-1] == plan.query.count
