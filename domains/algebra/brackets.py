"""Bounds on the maximum of a quadratic form over a set."""

import math
from collections.abc import Callable

import numpy as np

from ..domain import AbstractDomain, QuadraticMax
from ..floats import Array

ASCENTS = 100
STARTS = 12


def value_at(x: Array, form: Array, center: Array) -> float:
    """Return ``(x − center)' form (x − center)``."""
    return float((x - center) @ form @ (x - center))


def _ascend(support_point: Callable[[Array], Array], form: Array, center: Array, x: Array) -> Array:
    """Return a local maximizer of ``(x − center)' form (x − center)`` over a set, found from x."""
    value = value_at(x, form, center)
    for _ in range(ASCENTS):
        # a convex function lies above its tangent: the tangent's maximizer over K does not lower it
        nearby = support_point(form @ (x - center))
        if not value_at(nearby, form, center) > value * (1 + 1e-12):
            break
        x, value = nearby, value_at(nearby, form, center)
    return x


def bracket(
    support_point: Callable[[Array], Array],
    form: Array,
    center: Array,
    upper: float,
    starts: list[Array],
) -> QuadraticMax:
    """Return bounds on the largest ``(x − center)' form (x − center)``, with the given ``upper``.

    The lower bound is the best local maximum found from ``starts`` and from the support points
    along the eigenvectors of the form.
    """
    _, axes = np.linalg.eigh(form)
    starts = starts + [
        support_point(sign * axis) for axis in axes.T[::-1][:STARTS] for sign in (1.0, -1.0)
    ]
    tops = [_ascend(support_point, form, center, x) for x in starts]
    values = [value_at(x, form, center) for x in tops]
    best = int(np.argmax(values))
    return QuadraticMax(tops[best], values[best], max(upper, values[best]))


def seminorm(x: Array, form: Array) -> float:
    """Return ``√(x' form x)``."""
    return math.sqrt(max(float(x @ form @ x), 0.0))


def middle_of(K: AbstractDomain) -> Array:
    """Return the center of symmetry of K, or if none is known, the center of its bounding box."""
    center = K._center()
    if center is not None:
        return center
    axes = np.eye(K.dim)
    ends = np.array(
        [[K._support_point(axis)[i], K._support_point(-axis)[i]] for i, axis in enumerate(axes)]
    )
    return ends.mean(axis=1)
