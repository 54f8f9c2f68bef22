"""The dual objective of more columns than one product takes."""

import math

import numpy as np
import pytest

from gaussnoise.numerics.span import span
from gaussnoise.solvers.points.fidelity import Fidelity


def gradient(fidelity, x, count):
    """Return derivatives of F by weights and, for p = ∞, by coordinate weights."""
    now = fidelity.at(x[:count], x[count:])
    return np.concatenate([now.lengths, now.variances]) / 2


@pytest.mark.parametrize("dim", [128, 300])
@pytest.mark.parametrize("p", [2, math.inf])
def test_second_derivatives_are_differences_of_first_ones(dim, p):
    rng = np.random.default_rng(dim)
    count = dim + 20
    fidelity = Fidelity(rng.normal(size=(count, dim)), p, False, None)
    x = rng.uniform(0.5, 1.5, count + dim) / count
    free = count if p == 2 else len(x)
    now = fidelity.at(x[:count], x[count:])
    curvature = fidelity.curvature(now, x[:free])
    directions = rng.normal(size=(3, free))
    for v in directions:
        step = np.zeros(len(x))
        step[:free] = 1e-4 * v
        ahead, behind = (gradient(fidelity, x * (1 + t * step), count) for t in (1, -1))
        expected = -(x * (ahead - behind))[:free] / 2e-4
        np.testing.assert_allclose(curvature @ v, expected, atol=1e-5 * np.abs(expected).max())
    unit = np.zeros(free)
    for i in (0, count - 1, free - 1):
        unit[:] = 0
        unit[i] = 1
        assert curvature.diagonal()[i] == pytest.approx((curvature @ unit)[i], rel=1e-4)


def test_points_that_span_all_are_told_from_those_that_hardly_do():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 30))
    assert span(points) is None
    points[:, 0] *= 1e-6  # smaller than squares resolve, and a dimension all the same
    assert span(points) is None
    points[:, 0] = points[:, 1] + 1e-16 * points[:, 0]
    assert span(points).shape == (30, 29)
    assert span(np.zeros((40, 30))).shape == (30, 0)
