"""Proven bounds on one person's influence: the largest quadratic form over a pattern's ticks."""

import numpy as np

from ..floats import Array
from .maxcut import MaxCut, largest_forms
from .patterns import AbstractPatterns, Apart, Indices

_ROUNDING = 2.0**-44
_BATCH = 2**22  # largest number of entries in the matrices of one batch
_CELLS = 256  # chords of a square: they add at most the 2^-18th part of it
_FITS = 60


def form_bound(who: AbstractPatterns, X: Array) -> float:
    """Return a proven upper bound on ``Σ_{i,j ∈ π} X_ij`` over all allowed sets π of ticks.

    X, shape (n, n), is symmetric and not negative.

    The bound is exact if patterns are few, or if X is zero between different ticks of one person.
    """
    # otherwise the bound comes from two dynamic programmes. The first gives each tick i the largest
    # sum of X_ij over k − 1 other ticks j: over any j, or twice over j < i, or twice over j > i.
    # The second finds the pattern with the largest total of X_ii and these sums. The least of the
    # three bounds is returned; for Apart, _path_bound and _total_bound give two more
    between = np.where(who.meet(), X, 0.0)
    if who.lists_few:
        largest = set_sums(between + np.diag(X.diagonal()), who.maximal()).max()
    else:
        # each pair counts once at each tick, or twice at the later, or twice at the earlier one
        shares = [between, 2 * np.tril(between), 2 * np.triu(between)]
        own = [
            X.diagonal() + (who.totals(part, who.most - 1) if part.any() else 0.0)
            for part in shares
        ]
        largest = min(float(who.totals(each[None])[0]) for each in own)
        if isinstance(who, Apart):
            for proven in (_path_bound, _total_bound):
                largest = min(largest, proven(who, X.diagonal(), between))
    return float(largest) * (1 + who.most**2 * _ROUNDING)


def _path_bound(who: Apart, own: Array, between: Array) -> float:
    """Return a bound on ``Σ_i own_i + Σ_{i≠j} between_ij`` over sets of ticks, from paths."""
    # A dynamic programme chooses the ticks in turn; pairs of successive ticks are exact. Ticks that
    # are m >= 2 steps apart are at least m b apart: such a pair counts once, at either, with the
    # largest value of its row or column from that distance on.
    n, k, b = who.n, who.most, who.b
    between = np.triu(np.maximum(between, between.T), b)
    far = np.triu(between, 2 * b)
    rows = np.maximum.accumulate(far[:, ::-1], axis=1)[:, ::-1]
    columns = np.maximum.accumulate(far, axis=0)
    gains = np.tile(own, (k, 1))
    for m in range(2, min(k, -(-n // b))):
        gains[: k - m, : n - m * b] += rows.diagonal(m * b)
        gains[m:, m * b :] += columns.diagonal(m * b)
    ticks = np.arange(n)
    steps = np.where(ticks - ticks[:, None] >= b, 2 * between, -np.inf)
    reached = gains[0]
    largest = float(reached.max())
    for gain in gains[1:]:
        reached = gain + (reached[:, None] + steps).max(axis=0)
        largest = max(largest, float(reached.max()))
    return largest


def _total_bound(who: Apart, own: Array, between: Array) -> float:
    """Return a bound on ``Σ_i own_i + Σ_{i≠j} between_ij`` over sets of ticks, from totals."""
    # With any v >= 0 the sum is that of own_i − v_i² and of between_ij − v_i v_j, plus (Σ v_i)².
    # Between α and β a square s² is at most its chord (α + β) s − α β, which is linear in the set.
    # What v v' leaves of ``between`` counts k − 1 times at each tick, as the largest of its row.
    v = _common_factor(who, between)
    most = float(who.totals(v[None])[0])
    ends = most * np.arange(_CELLS + 1)[:, None] / _CELLS
    left = np.where(who.meet(), between - np.outer(v, v), 0.0).max(axis=1)
    rest = np.maximum(own - v**2, 0.0) + (who.most - 1) * np.maximum(left, 0.0)
    sums = who.totals(rest + (ends[1:] + ends[:-1]) * v)
    return float((sums - (ends[1:] * ends[:-1])[:, 0]).max())


def _common_factor(who: Apart, between: Array) -> Array:
    """Return v >= 0 with v_i v_j near ``between`` at pairs (i, j) that one person may occupy."""
    meet = 1.0 * who.meet()
    v = np.full(len(between), np.sqrt((between * meet).sum() / max(meet.sum(), 1.0)))
    for _ in range(_FITS):  # least squares, one row at a time, with the others as they were
        weights = meet @ np.square(v)
        fitted = np.divide(between @ v, weights, out=np.zeros_like(v), where=weights > 0)
        v = np.sqrt(np.maximum(fitted, 0.0) * v)
    return v


def set_sums(X: Array, sets: Indices) -> Array:
    """Return ``Σ_{i,j ∈ π} X_ij`` for every listed set π of ticks, shape (P,)."""
    parts = max(1, len(sets) * sets.shape[1] ** 2 // _BATCH)
    return np.concatenate(
        [blocks(X, part).sum(axis=(1, 2)) for part in np.array_split(sets, parts)]
    )


def blocks(X: Array, sets: Indices) -> Array:
    """Return the submatrix of X with the rows and columns in π, for every listed set π of ticks.

    Shape (P, k, k); rows and columns are zero where a set has fewer than k ticks.
    """
    n = len(X)
    padded = np.zeros((n + 1, n + 1))
    padded[:n, :n] = X
    return padded[sets[:, :, None], sets[:, None, :]]


def vector_bound(who: AbstractPatterns, X: Array) -> float:
    """Return an upper bound on ``max_π max {⟨X_ππ, Z⟩ : Z ⪰ 0, diag Z = 1}`` over sets π of ticks.

    X is positive semidefinite, and X_ππ has its rows and columns in π.

    The maximum is the largest effect of vectors of length one. Z is the Gram matrix of these
    vectors, and every such Z is the Gram matrix of vectors of dimension |π|, so the semidefinite
    programme is no relaxation. The bound is exact, up to rounding, if patterns are few; else it is
    :func:`form_bound` of |X_ij|, since |Z_ij| <= 1.
    """
    rough = form_bound(who, np.abs(X))
    if not who.lists_few:
        return rough
    sets, forms = hardest_sets(who, X)
    return (
        min(rough, float(forms.upper.max()) * (1 + who.most**2 * _ROUNDING)) if len(sets) else rough
    )


def hardest_sets(who: AbstractPatterns, X: Array) -> tuple[Indices, MaxCut]:
    """Return the sets that may attain the maximum in :func:`vector_bound`, with their bounds."""
    sets = who.maximal()
    # Z = I attains a set's sum of X_ii; since |Z_ij| <= 1, no value exceeds its sum of |X_ij|
    least = float(np.append(X.diagonal(), 0.0)[sets].sum(axis=1).max())
    sets = sets[set_sums(np.abs(X), sets) >= least * (1 - _ROUNDING * who.most**2)]
    parts = max(1, len(sets) * sets.shape[1] ** 2 // _BATCH)
    forms = [largest_forms(blocks(X, part)) for part in np.array_split(sets, parts)]
    joined = (
        np.concatenate([getattr(f, name) for f in forms])
        for name in ("value", "upper", "matrices", "multipliers")
    )
    return sets, MaxCut(*joined)
