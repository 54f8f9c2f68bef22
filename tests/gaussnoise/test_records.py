"""Masked arrays: all functions that take records refuse them, in every wrapping."""

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.errors import DataError

POINTS = gn.FiniteSet(np.eye(2))
BALL = gn.LpBall(2, 2)
ROWS = np.ma.array([[1.0, 0.0], [0.0, 1.0]], mask=[[False, True], [False, False]])
CODES = np.ma.array([0, 1], mask=[False, True])


def boxed(x):
    """An array of objects that holds x."""
    box = np.empty(1, dtype=object)
    box[0] = x
    return box


def wrapped(masked):
    """The same numbers, masked at different depths of wrapping."""
    return [
        masked,
        list(masked),
        tuple(masked),
        [list(x) if np.ndim(x) else x for x in masked],
        boxed(masked),
    ]


def ball(neighbors):
    return gn.GaussianMechanism(
        gn.optimal_noise(BALL, neighbors=neighbors),
        gn.zCDP(0.5),
        n=2 if neighbors == "replace" else None,
    )


def listed():
    return gn.GaussianMechanism(gn.optimal_noise(POINTS, neighbors="add-remove"), gn.zCDP(0.5))


def simulated(data):
    return listed().simulate(data, np.random.default_rng(0))


TAKERS = {
    "sums": (ball("add-remove").release, ROWS),
    "means": (ball("replace").release, ROWS),
    "sums with some left out": (
        lambda data: ball("add-remove").release(data, on_outside="drop"),
        ROWS,
    ),
    "rows of points": (listed().release, ROWS),
    "row indices": (lambda codes: listed().release(indices=codes), CODES),
    "counts": (lambda counts: listed().release(counts=counts), CODES),
    "simulations": (simulated, ROWS),
    "reports": (gn.LocalMechanism(BALL, gn.LocalDP(1.0)).reports, ROWS),
    "a report": (gn.LocalMechanism(BALL, gn.LocalDP(1.0)).report, ROWS[0]),
    "reports of indices": (gn.LocalMechanism(POINTS, gn.LocalDP(1.0)).reports, CODES),
    "bounds": (lambda data: gn.lower_bound(POINTS, gn.zCDP(0.5), data=data), CODES),
    "bounds of bodies": (lambda data: gn.lower_bound(BALL, gn.zCDP(0.5), data=data), ROWS),
}


@pytest.mark.parametrize(("take", "masked"), TAKERS.values(), ids=TAKERS.keys())
def test_masked_records_are_refused(take, masked):
    take(masked.filled(0))
    for records in wrapped(masked):
        with pytest.raises(DataError, match="a masked array, whose mask would be ignored; hint"):
            take(records)
