"""The words in plots of an answer: the problem, the bounds, and the names of drawn sets."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING

import numpy as np

from domains.domain import AbstractDomain, AbstractFiniteDomain
from domains.tables.marginals import Marginals

from ..drawing import label_text
from .certificates.certificate import Certificate
from .certificates.points import PointCertificate
from .policy import PolicyGraph

if TYPE_CHECKING:
    from .optimal_noise import OptimalNoise


_MOST_WEIGHT = 0.999


def problem_text(noise: "OptimalNoise") -> str:
    """Return the problem in words: the neighbouring relation and the order of the error's norm."""
    relation = {"replace": "one record replaced", "add-remove": "one record added or removed"}
    asked = relation[noise.neighbors] if isinstance(noise.neighbors, str) else str(noise.neighbors)
    return f"{'least ellipsoid around K' if noise.shifted else asked}, p = {_order(noise.p)}"


def _order(p: float) -> str:
    return "∞" if p == math.inf else f"{p:g}"


def bracket_text(noise: "OptimalNoise") -> str:
    """Return the lower and the upper bound in words, rounded outwards.

    The number of digits depends on the gap between the bounds.
    """
    if noise.gamma == 0:
        return "γ = 0"
    digits = (
        4 if noise.gap >= 1 else min(max(2 - math.floor(math.log10(max(noise.gap, 1e-300))), 4), 10)
    )
    low = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal_from_float(noise.gamma_lower)
    high = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(noise.gamma)
    return f"{low:g} ≤ γ ≤ {high:g}, gap {noise.gap:.1e}"


def set_name(noise: "OptimalNoise") -> str:
    """Return the name of the covered set, for the legend."""
    if noise.shifted:
        name = "K"
    elif isinstance(noise.neighbors, PolicyGraph):
        name = "±(x − y) along the policy's edges"
    else:
        name = "K − K" if noise.neighbors == "replace" else "K ∪ −K"
    convex = not isinstance(noise.domain, AbstractFiniteDomain) and name != "K ∪ −K"
    return name if convex else f"convex hull of {name}"


def ball_name(noise: "OptimalNoise", radii: tuple[float, float] | None) -> str:
    """Return the legend of the least ball around the set, with its error relative to the optimum.

    ``radii`` are a lower and an upper bound on its radius, or None if no bound is known.
    """
    if radii is None:
        return "plain spherical noise: no bound at this size"
    name = f"plain spherical noise: ball of radius {radii[1]:.3g}"
    if noise.gamma == 0:
        return name
    sides = 1.0 if noise.p == math.inf else noise.domain.dim ** (1 / noise.p)
    low, high = (radius / noise.gamma * sides for radius in radii)
    return (
        f"{name}, {_times(high) if high <= 1.005 * low else f'{_times(low)} to {_times(high)}'} "
        "times the error"
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.3g}"


def certificate_name(certificate: Certificate) -> str:
    """Return the legend of the certificate, or the reason why it has no points to draw."""
    if isinstance(certificate, PointCertificate):
        shares = np.cumsum(np.sort(certificate.weights)[::-1]) / certificate.weights.sum()
        count = 1 + int(np.count_nonzero(shares < _MOST_WEIGHT))
        sign, plural = "" if certificate.centered else "±", "" if count == 1 else "s"
        return (
            f"certificate: area ∝ weight, {100 * _MOST_WEIGHT:g} % of it on {sign}{count} "
            f"point{plural}"
        )
    return f"certificate: {certificate.caption}"


def coordinate_name(domain: AbstractDomain, coordinate: int) -> str:
    """Return the name of a coordinate, for an axis of the plot."""
    if not isinstance(domain, Marginals):
        return f"coordinate {coordinate}"
    S, cell = cell_of(domain, coordinate)
    return label_text(
        f"coordinate {coordinate}: " + (f"cell {cell} of table {S}" if S else "the total"), 56
    )


def cell_of(domain: Marginals, coordinate: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the attributes of the table with this coordinate, and the codes of its cell."""
    starts = np.cumsum([0, *map(domain.cells, domain.subsets)])
    k = int(np.searchsorted(starts, coordinate, side="right")) - 1
    S = domain.subsets[k]
    cell = np.unravel_index(coordinate - starts[k], [domain.sizes[i] for i in S]) if S else ()
    return S, tuple(map(int, cell))
