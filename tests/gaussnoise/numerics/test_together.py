"""Functions at many places at once have the values that they have at each."""

import math

import numpy as np
import pytest
from cases import one_test_of

from gaussnoise.numerics.together import at_all

PLACES = np.random.default_rng(0).uniform(1, 2, (4, 30))


def _entropy(n):
    return -(n / n.sum() * np.log(n / n.sum())).sum()


@one_test_of(
    ("f", "calls"),
    [
        (_entropy, 3),
        (lambda n: n @ np.arange(4.0), 3),
        (lambda n: (1 - n[0]) ** 2 / abs(n[1]) - 2 / np.sqrt(n[2]) + 2 ** n[3], 3),
        (lambda n: np.exp(-n).sum(keepdims=True), 3),
        (lambda n: n[0] if n[0] > 1.5 else n[1], 31),  # choices differ from place to place
        (lambda n: n.max(), 31),
        (lambda n: float(np.sort(n)[1]), 31),
        (lambda n: 3.0, 31),
        (lambda n: math.log(n[0]), 31),
    ],
)
def test_values_are_those_of_each_place(f, calls):
    called = []

    def counted(n):
        called.append(n)
        return f(n)

    found = at_all(counted, PLACES, lambda value: float(np.ravel(value)[0]))
    assert found == pytest.approx([float(np.ravel(f(place))[0]) for place in PLACES.T])
    assert len(called) == calls  # once for all, and at both ends to compare; or for every place


def test_functions_that_have_other_values_of_objects_are_called_for_each_place():
    found = at_all(lambda n: n[0] * (2.0 if n.dtype == object else 3.0), PLACES, float)
    assert found == pytest.approx(3 * PLACES[0])


def test_undefined_values_stay_undefined():
    with np.errstate(invalid="ignore"):
        found = at_all(lambda n: np.log(n[0] - 1.5), PLACES, float)
    assert (np.isnan(found) == (PLACES[0] < 1.5)).all()
    assert np.isnan(found).any()
