"""Domains with independent references: one entry here, and a new domain runs through every conformance law."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from domains import AbstractDomain, FiniteSet, Marginals


@dataclass(frozen=True)
class Case:
    """A domain and members of it, found by other means; exhaustive unless a closed form of the support is given."""

    name: str
    domain: AbstractDomain
    points: np.ndarray
    closed_form: Callable[[np.ndarray], float] | None = None

    def support(self, theta):
        return self.closed_form(theta) if self.closed_form else (self.points @ theta).max()


def one_hot_tables(sizes, subsets, weights=None):
    """Every record's marginal tables, cell by cell, in plain loops."""
    rows = []
    for record in itertools.product(*map(range, sizes)):
        row = []
        for subset, weight in zip(subsets, weights or [1.0] * len(subsets), strict=True):
            cells = itertools.product(*(range(sizes[i]) for i in subset))
            row += [weight * (cell == tuple(record[i] for i in subset)) for cell in cells]
        rows.append(row)
    return np.array(rows, dtype=float)


def _finite(name, points, closed_form=None):
    return Case(name, FiniteSet(points), np.array(points, dtype=float), closed_form)


def _marginals(name, sizes, subsets, weights=None):
    return Case(name, Marginals(sizes, subsets, weights), one_hot_tables(sizes, subsets, weights))


_random = np.random.default_rng(1).normal(size=(7, 3))

CASES = [
    _finite("one point", [[1.0, -2.0]]),
    _finite("origin", [[0.0]]),
    _finite("simplex", np.eye(4), closed_form=np.max),
    _finite("cross-polytope", np.vstack([np.eye(3), -np.eye(3)]), closed_form=lambda theta: np.abs(theta).max()),
    _finite("cube", list(itertools.product([-1, 1], repeat=3)), closed_form=lambda theta: np.abs(theta).sum()),
    _finite("random", _random),
    _finite("random and its mirror image", np.vstack([_random, -_random])),
    _finite("mirrored only up to the last bit", [[1.0], [-np.nextafter(1.0, 2.0)]]),
    _finite("duplicates and signed zeros", [[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0], [0.0, 1.0]]),
    _finite("flat", np.outer([-1.0, 0.5, 2.0], [1.0, 2.0, -1.0])),
    _marginals("total alone", (2, 3), [()]),
    _marginals("two-way", (3, 2, 4), [(0, 1), (0, 2), (1, 2)]),
    _marginals("weighted, of mixed orders", (2, 3, 2), [(0, 1), (1, 2), (0,), ()], [1.0, 0.7, 2.0, 0.3]),
    _marginals("one-category attributes", (1, 3, 1, 2), [(0, 1), (2,), (1, 3)]),
]
