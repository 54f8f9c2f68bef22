"""Means chosen from a cover: scores by brute force, their privacy by search, and the error
bound.
"""

import itertools
import math

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.estimators import cover as covers
from gaussnoise.estimators.cover import Cover, _alignment, _half_of_directions, fewest_changes
from gaussnoise.privacy.laplace import NoisyMaximum

REACH = 3


def loses(values, point, needed):
    return sum(max(-REACH, min(REACH, v - point)) for v in values) > needed


def test_the_fewest_changes_are_those_of_an_exhaustive_search():
    for values in itertools.combinations_with_replacement((-9, -2, 0, 1, 5), 4):
        for point, needed in itertools.product((-2, 0, 3), (-11, -3, 0, 4, 11)):
            found = fewest_changes(np.array(values), np.array([point]), REACH, needed)[0]
            changes = (
                len(places)
                for count in range(5)
                for places in itertools.combinations(range(4), count)
                if loses([100 if i in places else v for i, v in enumerate(values)], point, needed)
            )
            assert found == next(changes)


def largest_move(scores):
    """Return how far any score moves with one person, over all small data sets and all
    replacements.
    """
    everything = range(-5, 6, 2)
    return max(
        abs(int(scores(sorted([*rest, a])) - scores(sorted([*rest, b]))))
        for rest in itertools.combinations_with_replacement(everything, 3)
        for a, b in itertools.combinations(everything, 2)
    )


@pytest.mark.parametrize("needed", [-7, 0, 5, 11])
def test_one_person_moves_the_fewest_changes_by_at_most_one(needed):
    one = np.array([1])
    assert largest_move(lambda values: fewest_changes(np.array(values), one, REACH, needed)[0]) == 1


def test_scores_of_values_that_are_not_clipped_are_caught():
    def unclipped(values):  # in units of what one clipped person adds
        return math.ceil(max(7 - sum(values), 0) / REACH)

    assert largest_move(unclipped) > 1


GRIDS = [
    Cover(1, 2.0, 9, 1.5, 0.6, 1.0),
    Cover(2, 2.0, 5, 1.0, 0.35, 1.0),
    Cover(3, 1.0, 3, 1.0, 0.4, 1.0),
]
STRANGERS = [0.0, 1.0, -0.7, 3.0, 1e300, -1e300, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid.dim} dimensions")
def test_one_person_moves_every_score_by_at_most_one(grid):
    rng, moved = np.random.default_rng(0), 0
    for _ in range(40):
        rows = rng.normal(
            rng.uniform(-1, 1), rng.uniform(0.05, 1), size=(int(rng.integers(1, 25)), grid.dim)
        )
        other = rows.copy()
        other[0] = rng.choice(STRANGERS, size=grid.dim)
        change = np.abs(grid.scores(rows) - grid.scores(other))
        assert change.max() <= 1
        moved += int(change.max())
    assert moved  # the search has power


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid.dim} dimensions")
def test_the_order_of_people_changes_no_score(grid):
    rng = np.random.default_rng(1)
    rows = rng.normal(0, 0.5, size=(30, grid.dim))
    assert (grid.scores(rows) == grid.scores(rng.permutation(rows))).all()


def test_scores_are_those_of_real_numbers_away_from_ties():
    """The definition itself: changed people are as far out as clipping allows, in the best of all
    directions.
    """
    grid = GRIDS[1]
    rows = np.random.default_rng(2).normal(0.3, 0.6, size=(12, 2))
    directions = [sign * u for u in _half_of_directions(2) for sign in (1, -1)]
    for candidate, score in zip(grid.candidates, grid.scores(rows), strict=True):
        sums = []
        for u in directions:
            seen = np.sort(np.clip((rows - candidate) @ u, -grid.radius, grid.radius))
            gains = np.concatenate([[0], np.cumsum(grid.radius - seen)])
            sums.append(
                next(
                    j
                    for j, gain in enumerate(gains)
                    if seen.sum() + gain > len(rows) * grid.threshold
                )
            )
        assert score == min(sums)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_every_vector_is_aligned_with_a_direction_and_the_worst_no_better(dim):
    directions = np.array(_half_of_directions(dim))
    assert len(directions) == (3**dim - 1) // 2
    assert np.linalg.norm(directions, axis=1) == pytest.approx(1)
    vectors = np.random.default_rng(3).normal(size=(2000, dim))
    best = np.abs(vectors @ directions.T).max(axis=1) / np.linalg.norm(vectors, axis=1)
    assert best.min() >= _alignment(dim) - 1e-12
    worst = np.sqrt(np.arange(1, dim + 1)) - np.sqrt(np.arange(dim))
    assert np.abs(directions @ worst).max() / np.linalg.norm(worst) == pytest.approx(
        _alignment(dim)
    )


KNOWN = {"samples": 5, "moment": 1.0, "order": 4, "radius": 10.0}


def mean(data, privacy=None, **known):
    return gn.estimators.pure_person_level_mean(data, privacy or gn.PureDP(6.0), **(KNOWN | known))


def heavy(rng, shape):
    """Student's distribution with five degrees of freedom has a kurtosis of 9."""
    return rng.standard_t(5, size=shape) / math.sqrt(5 / 3) / 9**0.25


@pytest.mark.parametrize("d", [1, 2])
def test_the_chosen_candidate_is_within_the_proven_error(d):
    rng, truth = np.random.default_rng(4), np.arange(1, d + 1)
    for law in (heavy, lambda rng, shape: rng.normal(0, 0.7, size=shape)):
        for _ in range(2):
            found = mean(list(truth + law(rng, (400, 5, d))), accuracy=1.0)
            assert np.linalg.norm(found.estimate - truth) <= found.bias_bound[0] <= 1.0


def test_what_is_printed_is_the_bound_on_the_whole_error():
    found = mean(list(np.ones((400, 5, 2))), accuracy=1.0)
    bound, chance = f"{found.bias_bound[0]:.4g}", f"a chance of {found.beta:g}"
    assert str(found).count(f"± {bound}") == 2
    assert f"± a bound on the whole error, but for {chance}" in str(found)
    assert f"The error is at most {bound} in all, but for {chance}." in found.explain()


def test_a_choice_that_looks_for_the_lowest_score_is_caught(monkeypatch):
    whole = NoisyMaximum.choose
    monkeypatch.setattr(
        NoisyMaximum, "choose", lambda self, scores: whole(self, [-s for s in scores])
    )
    monkeypatch.setattr(covers.Search, "find", lambda self, rows: np.zeros(self.dim))
    found = mean(list(np.zeros((400, 5, 2))), accuracy=1.0)
    assert np.linalg.norm(found.estimate) > found.bias_bound[0]


def test_too_few_people_for_an_accuracy_are_refused_and_the_named_number_is_enough():
    with pytest.raises(ParameterError, match="people for an error") as caught:
        mean(list(np.zeros((400, 5))), accuracy=0.1)
    enough = int(str(caught.value).split("at least ")[1].split()[0])
    assert mean(list(np.zeros((enough, 5))), accuracy=0.1).bias_bound <= 0.1
    with pytest.raises(ParameterError, match="people for an error"):
        mean(list(np.zeros((int(enough * 0.99), 5))), accuracy=0.1)


def test_too_many_candidates_are_refused_with_their_number():
    with pytest.raises(
        ParameterError, match=r"at most 194481 candidates in 4 dimensions, got \d+ "
    ):
        mean(list(np.zeros((20_000, 1, 4))), accuracy=0.2)
    with pytest.raises(ParameterError, match=r"comparisons, got \d+"):
        mean(list(np.zeros((3000, 1, 10))))


def test_people_may_have_strange_records_if_these_are_clipped():
    people = list(np.random.default_rng(5).normal(1, 0.5, size=(400, 5, 2)))
    strange = [np.full((1, 2), np.nan), np.array([[np.inf, -np.inf]]), np.full((9, 2), 1e308)]
    found = mean([*people, *strange], on_nonfinite="clip")
    assert np.linalg.norm(found.estimate - 1) <= found.bias_bound[0]


def test_only_pure_privacy_and_one_charge(tmp_path):
    data = list(np.zeros((400, 5, 1)))
    with pytest.raises(ParameterError, match="expected PureDP"):
        mean(data, gn.zCDP(1.0))
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(50.0))
    first = mean(data, ledger=ledger, id="mean")
    assert mean(data, ledger=ledger, id="mean").estimate == first.estimate
    (entry,) = ledger.entries()
    assert entry.rho == pytest.approx(18.0)
    assert "all rows of one person" in entry.protects
    low, high = first.confidence_interval(0.95)
    assert high[0] - low[0] == pytest.approx(2 * first.bias_bound[0])
