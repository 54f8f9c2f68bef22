"""Proven bounds on what one person does: the largest quadratic form over a pattern's ticks."""

import numpy as np

from ..domain import Array
from .maxcut import MaxCut, largest_forms
from .patterns import AbstractPatterns, Indices

_ROUNDING = 2.0**-44
_BATCH = 2**22  # entries of matrices looked at together


def form_bound(who: AbstractPatterns, X: Array) -> float:
    """A proven upper bound on ``max_π Σ_{i,j ∈ π} X_ij``, X (n, n) symmetric and nonnegative.

    Exact where patterns are few, or where X is zero between ticks that meet. Otherwise in two
    dynamic programmes: each tick takes the most that k − 1 others can add to it, all of them or,
    twice, only the earlier or only the later ones; then the best pattern of these totals is taken.
    The least of the three bounds is returned.
    """
    between = np.where(who.meet(), X, 0.0)
    if who.lists_few:
        largest = set_sums(between + np.diag(X.diagonal()), who.maximal()).max()
    else:
        shares = [between, 2 * np.tril(between), 2 * np.triu(between)]
        own = [
            X.diagonal() + (who.totals(part, who.most - 1) if part.any() else 0.0)
            for part in shares
        ]
        largest = min(float(who.totals(each[None])[0]) for each in own)
    return float(largest) * (1 + who.most**2 * _ROUNDING)


def set_sums(X: Array, sets: Indices) -> Array:
    """``Σ_{i,j ∈ π} X_ij`` for every set, shape (P,)."""
    parts = max(1, len(sets) * sets.shape[1] ** 2 // _BATCH)
    return np.concatenate(
        [blocks(X, part).sum(axis=(1, 2)) for part in np.array_split(sets, parts)]
    )


def blocks(X: Array, sets: Indices) -> Array:
    """X_ππ for every set, zero where it is filled up, shape (P, k, k)."""
    n = len(X)
    padded = np.zeros((n + 1, n + 1))
    padded[:n, :n] = X
    return padded[sets[:, :, None], sets[:, None, :]]


def vector_bound(who: AbstractPatterns, X: Array) -> float:
    """An upper bound on ``max_π max {⟨X_ππ, Z⟩ : Z ⪰ 0, diag Z = 1}``, X (n, n) semidefinite.

    That is what vectors of length one do: Z is their Gram matrix, and any Z is one of vectors of
    dimension |π|, so the semidefinite programme is no relaxation. Exact, up to rounding, where
    patterns are few; otherwise ``Σ_{ij} |X_ij|``, as Z_ij <= 1, by :func:`form_bound`.
    """
    rough = form_bound(who, np.abs(X))
    if not who.lists_few:
        return rough
    sets, forms = hardest_sets(who, X)
    return (
        min(rough, float(forms.upper.max()) * (1 + who.most**2 * _ROUNDING)) if len(sets) else rough
    )


def hardest_sets(who: AbstractPatterns, X: Array) -> tuple[Indices, MaxCut]:
    """The listed sets that may attain the maximum, with brackets; others are proven smaller."""
    sets = who.maximal()
    # Z = 1 for ticks that do not meet, and Z_ij <= 1
    least = float(np.append(X.diagonal(), 0.0)[sets].sum(axis=1).max())
    sets = sets[set_sums(np.abs(X), sets) >= least * (1 - _ROUNDING * who.most**2)]
    parts = max(1, len(sets) * sets.shape[1] ** 2 // _BATCH)
    forms = [largest_forms(blocks(X, part)) for part in np.array_split(sets, parts)]
    joined = (
        np.concatenate([getattr(f, name) for f in forms])
        for name in ("value", "upper", "matrices", "multipliers")
    )
    return sets, MaxCut(*joined)
