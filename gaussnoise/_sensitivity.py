"""The set that noise must cover: by how much one record can move the answer, for each neighbouring relation."""

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from domains import DomainTooLargeError, FiniteSet, Marginals

from ._certificate import ROUNDING_MARGIN
from ._feasibility import Strategy
from ._residuals import Subset, rank
from .errors import ParameterError

Array = NDArray[np.float64]
Relation = Literal["replace", "add-remove"]

_PAIR_ENTRIES = 2**25  # numbers in an explicit difference body: 256 MB
_PATTERN_ATTRIBUTES = 20
_CHUNK = 1024


def check_relation(function: str, neighbors: object) -> Relation:
    """``neighbors`` as one of the relations, or a ParameterError."""
    if neighbors == "replace":
        return "replace"
    if neighbors == "add-remove":
        return "add-remove"
    raise ParameterError(f'{function}: expected neighbors="replace" or "add-remove", got {neighbors!r}')


def sensitivity_points(domain: FiniteSet, neighbors: Relation) -> Array:
    """Distinct points whose ± hull is the sensitivity set, shape (k, d): one of each ± pair, zeros dropped.

    Raises DomainTooLargeError when the N(N−1)/2 differences of "replace" would not fit.
    """
    points = domain.points
    if neighbors == "replace":
        pairs = len(points) * (len(points) - 1) // 2
        if pairs * domain.dim > _PAIR_ENTRIES:
            raise DomainTooLargeError(
                f'neighbors="replace": {len(points)} points have {pairs} differences in R^{domain.dim}, '
                f"{pairs * domain.dim * 8 / 1e9:.3g} GB; hint: gaussnoise.gamma(domain) covers replacement too, "
                "with at most four times its unit sensitivity"
            )
        first, second = np.triu_indices(len(points), 1)
        points = points[first] - points[second]
    if not len(points):
        return np.zeros((1, domain.dim))
    # one representative of {s, −s}: the first nonzero coordinate positive
    leading = np.take_along_axis(points, (points != 0).argmax(axis=1)[:, None], axis=1)
    points = np.unique(np.where(leading < 0, -points, points) + 0.0, axis=0)
    kept = points[(points != 0).any(axis=1)]
    return kept if len(kept) else np.zeros((1, domain.dim))


def largest_pair(strategy: Strategy) -> float:
    """Proven upper bound on ``max_{i,j} ‖b_i − b_j‖²``; four times the largest length² when pairs are too many."""
    b, lengths = strategy.coordinates, strategy.lengths
    cap = 4 * float(lengths.max()) ** 2
    if b.shape[1] == 0 or len(b) ** 2 * b.shape[1] > 2**34:
        return cap
    squares = np.square(b).sum(axis=1)
    largest = max(
        float((squares[start : start + _CHUNK, None] + squares - 2 * (b[start : start + _CHUNK] @ b.T)).max())
        for start in range(0, len(b), _CHUNK)
    )
    # lengths carry the rounding of the coordinates themselves; the margin, that of the products above
    slack = float((lengths - np.sqrt(squares)).max()) if len(b) else 0.0
    return min(cap, (math.sqrt(largest + ROUNDING_MARGIN * cap) + 2 * slack) ** 2)


def marginal_sensitivity(domain: Marginals, variances: Mapping[Subset, float], neighbors: Relation) -> float:
    """Upper bound on s' M⁺ s over neighbours' differences, M made of zero-sum noises of the given ``variances``.

    Add/remove: ``Σ_T r_T/(N_T σ_T²)``. Replace: the largest over patterns D of differing attributes of
    ``Σ_T 2 r_T/(N_T σ_T²) (1 − Π_{i ∈ T∩D} −1/(n_i−1))``, by one transform over all patterns.
    """
    shares = {T: rank(T, domain.sizes) / (domain.cells(T) * variance) for T, variance in variances.items()}
    if neighbors == "add-remove":
        return math.fsum(shares.values()) * (1 + ROUNDING_MARGIN / 4)
    moving = [i for i, n in enumerate(domain.sizes) if n > 1]
    total = math.fsum(share for T, share in shares.items() if T)
    if len(moving) > _PATTERN_ATTRIBUTES:
        return 4 * total * (1 + ROUNDING_MARGIN)
    table = np.zeros((2,) * len(moving))
    for T, share in shares.items():
        if T:
            table[tuple(int(i in T) for i in moving)] += share
    for axis, i in enumerate(moving):
        absent, present = np.take(table, 0, axis), np.take(table, 1, axis)
        # the same attribute of both records agrees (factor 1) or differs (factor −1/(n−1))
        table = np.stack([absent + present, absent - present / (domain.sizes[i] - 1)], axis)
    return 2 * (total - float(table.min())) * (1 + ROUNDING_MARGIN) if moving else 0.0
