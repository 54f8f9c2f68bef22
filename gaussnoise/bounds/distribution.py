"""Bounds at one distribution for mechanisms that are unbiased for every distribution."""

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from domains.domain import AbstractDomain
from domains.errors import DomainError
from domains.floats import Array

from ..errors import ParameterError
from .bound import Bound, bound_from, resampled
from .local_design import local_proof
from .proof import Proof

_MARGIN = 1e-12
_MOST_RECORDS, _MOST_ENTRIES = 48, 2**16  # limits for a measure per record: seconds


def at_distribution(
    domain: AbstractDomain, rows: Array, counts: Array, proof: Proof, p: float, free: Bound
) -> Bound:
    """Return the best proven bound at P, the distribution of the records in ``rows``.

    Args:
        domain: K.
        rows: shape (k, d), distinct.
        counts: shape (k,), the number of records equal to each row.
        proof: the proof for all differences x − y of a record x and a y in K, or for
            the differences of some of the records.
        p: error norm.
        free: the bound that holds for all P; at p = 2, it has the same weights.
    """
    # With the shuffled mechanism of proven, ‖sd(Σ_P)‖_p² >= E γ_W(S_X)² / (nχ)² + tr(W cov
    # P)/n for every ‖w‖_{s*} <= 1, W = diag(w), s* = p/(p − 2), where X is n draws from P, and S_X
    # the set of differences x − y over x in X and y in K (γ_W: see local_proof). Let S be
    # the same set for all the records. S_X = S if X has all records, with probability q >= 1 − Σ (1
    # − f_i)^n for frequencies f_i. In any case S ⊆ 2 hull S_X: x − y is the sum of x − x' and x' −
    # y for an x' in X. So E γ_W(S_X)² >= (q + (1 − q)/4) γ_W(S)². It is also at least Σ f_i
    # γ_W(S_i)², from the differences x_i − y of the first draw alone. The bound for all P also
    # holds. Under pure privacy the data may be resampled instead, at a larger ε.
    privacy, n = free.privacy, free.n or 1
    shares = counts / counts.sum()
    all_drawn = max(
        1 - float(np.exp(n * np.log1p(-np.minimum(shares, 1 - 1e-16))).sum()) - _MARGIN, 0.0
    )
    reached = math.sqrt(all_drawn + (1 - all_drawn) / 4) * (1 - _MARGIN)
    ways: list[tuple[Proof, float, str]] = [
        (proof, reached, "{±(x − y)}: x in the data, y in K, as far as draws have x")
    ]
    if len(rows) <= min(_MOST_RECORDS, _MOST_ENTRIES // domain.dim**2):
        alone = "x − y, x the first draw, y in K; root mean square over x"
        with suppress(DomainError):  # squares of sizes may not be finite
            ways.append((local_proof(domain, rows, counts, p), 1.0, alone))
    even = np.ones(domain.dim) if p == 2 else None
    bounds = [replace(free, private=True, deviation=_deviation(rows, shares, even) / math.sqrt(n))]
    for of, share, moved in ways:
        deviation = _deviation(rows, shares, of.weights if even is None else even) / math.sqrt(n)
        bound = bound_from(
            of, p, privacy, n, share, moved, "distributional", private=True, deviation=deviation
        )
        bounds.append(bound)
    if n == counts.sum():
        with suppress(ParameterError):  # no guarantee is known, or it is too weak for any bound
            guarantee, at = resampled(privacy, n), "{±(x − y)}: x in the data, y in K"
            bounds.append(
                bound_from(
                    proof,
                    p,
                    privacy,
                    n,
                    1.0,
                    at,
                    "distributional",
                    private=True,
                    guarantee=guarantee,
                )
            )
    return max(bounds, key=float)


def _deviation(rows: Array, shares: Array, weights: Array | None) -> float:
    """Return ``√(Σ_j w_j Var_j)`` of one draw from the rows, rounded down; 0 without weights w."""
    moved = rows - rows[0]  # subtract a common part before rounding
    size = float(np.abs(moved).max())
    if size == 0 or weights is None:
        return 0.0
    moved = moved / size - shares @ moved / size
    return size * math.sqrt(shares @ moved**2 @ weights) * (1 - _MARGIN)
