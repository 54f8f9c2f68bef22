"""The projection mechanism, which replaces an estimate by the nearest possible answer."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy

from domains.domain import AbstractDomain
from domains.floats import Array
from domains.oracles.distance import nearest_combination

from ..errors import NotAvailableError
from ..text import estimate_text

_CLOSE = 1e-6  # accuracy, relative to the set's width
_MOST_STEPS = 2000


@final
@dataclass(frozen=True, eq=False)
class BiasedRelease:
    """A released estimate that was replaced by the nearest possible answer, so it is biased.

    It has no standard deviation or interval: part of the error is bias, which depends on the true
    answer.

    Attributes:
        estimate: biased answer, shape (d,).
        distance: ``‖estimate − released‖₂``.
        gap: upper bound on ``‖estimate − nearest point‖₂``.
        method: a description of the set of possible answers.
        private: False for simulations, whose numbers must not be published.
        privacy: the record of the original release.

    >>> votes = gn.FiniteSet(np.eye(3))
    >>> release = gn.GaussianMechanism(gn.optimal_noise(votes), gn.zCDP(0.1), n=5).release(
    ...     counts=[5, 0, 0]
    ... )
    >>> biased = release.projected(votes)
    >>> print(
    ...     f"{biased.estimate.sum():.6f}",
    ...     bool(biased.estimate.min() > -1e-9),
    ...     biased.distance >= 0,
    ... )
    1.000000 True True
    """

    estimate: Array
    distance: float
    gap: float
    method: str
    private: bool
    privacy: dict[str, object]

    def __repr__(self) -> str:
        warning = "" if self.private else "NOT PRIVATE, a simulation: "
        return f"BiasedRelease({warning}{self.estimate.size} coordinates, biased: {self.method})"

    def __str__(self) -> str:
        return estimate_text(
            f"BiasedRelease, biased: {self.method}", self.estimate, self.privacy, self.private
        )


def nearest(domain: AbstractDomain, y: Array) -> tuple[Array, float]:
    """Return a point x near the nearest point to y in the hull of K, and a bound on their distance.

    The hull is the convex hull. The method combines support points in the best way (Wolfe 1976).
    Let ``g = max_{z ∈ K} <y − x, z − x>``. Then the nearest point is within √g of x.
    """
    atoms, weights = np.array([domain.support_point(y)]), np.ones(1)
    best, close = (atoms[0], np.inf), _CLOSE * _size(domain, y)
    for _ in range(_MOST_STEPS):
        x = weights @ atoms
        vertex = domain.support_point(y - x)
        within = math.sqrt(max(float((y - x) @ (vertex - x)), 0.0))
        if within < best[1]:
            best = x, within
        if within <= close or (atoms == vertex).all(axis=1).any():
            break
        moved, weights = nearest_combination(
            np.vstack([atoms, vertex]) - y, np.append(weights, 0.0)
        )
        atoms = moved + y
    return best


def nearest_sum(domain: AbstractDomain, y: Array) -> tuple[Array, float]:
    """Return a point x near x*, the nearest point to y in the cone over K, and a bound on ‖x − x*‖.

    The cone contains all sums of records. The method is that of :func:`nearest`. Let z₀ be the
    point of hull K nearest to zero. Let x* = tz for a z in hull K. Then t is at most
    ``‖y‖ / ‖z₀‖``, and ``‖x − x*‖² <= t max_{z ∈ K} <y − x, z>``.

    Raises:
        NotAvailableError: zero is in hull K, so that almost all answers are possible sums.
    """
    least, within = nearest(domain, np.zeros(domain.dim))
    shortest = float(np.linalg.norm(least)) - within
    if not shortest > _CLOSE * _size(domain, y):
        raise NotAvailableError(
            "projected: sums of unknown numbers of records that can cancel may be anything; hint: "
            'neighbors="replace", where the number of records is public'
        )
    most = float(np.linalg.norm(y)) / shortest
    atoms = least[None, :]
    best, close = (np.zeros(domain.dim), np.inf), _CLOSE * _size(domain, y)
    for _ in range(_MOST_STEPS):
        weights, _ = scipy.optimize.nnls(atoms.T, y)
        x = weights @ atoms
        support = domain.support_point(y - x)
        within = math.sqrt(max(most * float((y - x) @ support), 0.0))
        if within < best[1]:
            best = x, within
        if within <= close or (atoms == support).all(axis=1).any():
            break
        atoms = np.vstack([atoms[weights > 0], support])
    return best


def _size(domain: AbstractDomain, y: Array) -> float:
    ahead, behind = domain.support_point(y), domain.support_point(-y)
    return float(np.linalg.norm(ahead - behind)) or float(np.linalg.norm(ahead)) or 1.0
