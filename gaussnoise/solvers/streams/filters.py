"""Noise of few states: sums of Markov chains in time.

The module also has the recursion that generates them from one fresh draw per tick.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from domains.floats import UNIT, Array


@dataclass(frozen=True, eq=False)
class Filter:
    """Noise ``y = L z`` of the answers to a workload over time, in one pass.

    Here z is independent standard normal.

    With states x (zero at first), ``y_t = Σ_j x_tj0 + r_t z_t`` and
    ``x_{t+1} = F_{t+1} (x_t + k_t z_t)``, where F puts ``Σ_m φ_jm x_tjm`` before the last b − 1
    values of chain j. Its strategy is ``C = L⁻¹ A``.

    Attributes:
        bands: shape (b + 1, n), ``A⁻¹[t, t − m]`` in row m, column t.
        steps: φ, shape (n, q, b).
        gains: k, shape (n, q, b).
        scales: r, shape (n,), positive.
    """

    bands: Array
    steps: Array
    gains: Array
    scales: Array

    @property
    def ticks(self) -> int:
        return self.bands.shape[1]

    @property
    def buffers(self) -> int:
        """The number of states and answers that are kept between ticks."""
        _, q, b = self.steps.shape
        return q * b + b

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays with all numbers of the filter."""
        return self.bands, self.steps, self.gains, self.scales

    def advanced(self, t: int, states: list[Any], normal: Any) -> tuple[Any, list[Any]]:
        """Return the noise of the contribution at tick t, and the values to keep for the next tick.

        The values to keep are the states, then the last b answers.
        """
        _, q, b = self.steps.shape
        kept, answers = states[: q * b], states[q * b :]
        moved = []
        for j, chain in enumerate(self.steps[t].tolist()):
            last = kept[j * b : (j + 1) * b]
            newest = chain[0] * last[0]
            for step, value in zip(chain[1:], last[1:], strict=True):
                newest = newest + step * value
            moved += [newest, *last[:-1]]
        answer = float(self.scales[t]) * normal
        for chain in moved[::b]:
            answer = answer + chain
        noise = float(self.bands[0, t]) * answer
        for m in range(1, b + 1):
            noise = noise + float(self.bands[m, t]) * answers[m - 1]
        gains = self.gains[t].ravel().tolist()
        moved = [state + gain * normal for state, gain in zip(moved, gains, strict=True)]
        return noise, [*moved, answer, *answers[:-1]]

    def scaled(self, factor: float) -> "Filter":
        """Return the same noise, times ``factor``."""
        return replace(self, gains=factor * self.gains, scales=factor * self.scales)

    def strategy(self) -> Array:
        """Return C, shape (n, n), lower triangular.

        It is the inverse of the matrix that maps z to the noise of contributions.
        """
        n, q, b = self.steps.shape
        states, answers, mixing = np.zeros((q * b, n)), np.zeros((b, n)), np.zeros((n, n))
        seen = _seen(q, b)
        for t in range(n):
            if t:
                states = _transition(self.steps[t]) @ states
            answer = seen @ states
            answer[t] += self.scales[t]
            mixing[t] = self.bands[0, t] * answer + self.bands[1:, t] @ answers
            states[:, t] += self.gains[t].ravel()
            answers = np.concatenate([answer[None], answers[:-1]])
        return scipy.linalg.solve_triangular(mixing, np.eye(n), lower=True)

    def variances(self) -> Array:
        """Return the variances of y, shape (n,)."""
        n, q, b = self.steps.shape
        seen = _seen(q, b)
        spread, variances = np.zeros((q * b, q * b)), np.zeros(n)
        for t in range(n):
            if t:
                F = _transition(self.steps[t])
                spread = F @ spread @ F.T
            variances[t] = seen @ spread @ seen + self.scales[t] ** 2
            k = self.gains[t].ravel()
            spread += np.outer(k, k)
        return variances

    def squared_columns(self) -> Array:
        """Return upper bounds on the squared norms of the columns of C, shape (n,).

        They hold for exactly these stored numbers.

        A unit contribution at tick t moves the states and the last b answers. A quadratic form P of
        these, found by a recursion backwards in time, is the squared length of its effect on z.
        Every step adds to P a diagonal that dominates the step's rounding, so that P stays above
        the exact form by induction.
        """
        n, q, b = self.steps.shape
        size, dim = q * b, q * b + b
        seen = _seen(q, b)
        form, columns = np.zeros((dim, dim)), np.zeros(n)
        margin = 8 * (dim + 2) * UNIT
        move, bulk = np.zeros((dim, dim)), np.zeros((dim, dim))
        shown, enters = np.zeros(dim), np.zeros(dim)
        shift = np.arange(b - 1)
        for t in reversed(range(n)):
            first = self.bands[0, t]
            shown[:size], shown[size:] = -seen, -self.bands[1:, t] / first
            shown /= self.scales[t]
            F = _transition(self.steps[t + 1]) if t + 1 < n else np.zeros((size, size))
            k = F @ self.gains[t].ravel()
            # bounds k and its rounding: absolute values do not cancel
            grown = np.abs(F) @ np.abs(self.gains[t]).ravel()
            move[:size] = np.outer(k, shown)
            move[:size, :size] += F
            move[size] = self.scales[t] * shown
            move[size, :size] = 0
            move[size + 1 + shift, size + shift] = 1
            bulk[:] = np.abs(move)
            bulk[:size] = np.outer(grown, np.abs(shown))
            bulk[:size, :size] += np.abs(F)
            entry = 1 / (first * self.scales[t])
            enters[:size], enters[size] = k * entry, 1 / first
            heavy = np.abs(enters)
            heavy[:size] = grown * abs(entry)
            columns[t] = (
                entry**2
                + enters @ form @ enters
                + margin * (entry**2 + heavy @ np.abs(form) @ heavy)
            )
            lost = bulk.T @ np.abs(form) @ bulk + np.outer(np.abs(shown), np.abs(shown))
            form = move.T @ form @ move + np.outer(shown, shown)
            form[np.diag_indices(dim)] += margin * lost.sum(axis=1)
        return columns


def filter_of(
    bands: Array, weights: Array, coordinate_weights: Array, sizes: Array, shifts: Array
) -> Filter:
    """Return noise of covariance ``Σ_j c_j (A⁻ᵀ Λ⁻¹ A⁻¹ + s_j W)⁻¹``.

    Each term is a Markov chain of order b in time.

    Args:
        bands: shape (b + 1, n), ``A⁻¹[t, t − m]`` in row m.
        weights: λ, shape (n,).
        coordinate_weights: w, shape (n,).
        sizes: c, shape (q,).
        shifts: s, shape (q,).
    """
    steps, fresh = _chains(bands, weights, coordinate_weights, sizes, shifts)
    n, q, b = steps.shape
    seen = _seen(q, b)
    newest = np.arange(0, q * b, b)
    gains, scales = np.zeros((n, q * b)), np.zeros(n)
    spread = np.zeros((q * b, q * b))  # covariance of the states, given past draws (Kalman)
    for t in range(n):
        if t:
            F = _transition(steps[t])
            spread = F @ spread @ F.T
        spread[newest, newest] += fresh[t]
        shared = spread @ seen
        scales[t] = np.sqrt(seen @ shared)
        gains[t] = shared / scales[t]
        spread -= np.outer(gains[t], gains[t])
    return Filter(bands, steps, gains.reshape(n, q, b), scales)


def precision_bands(bands: Array, weights: Array) -> Array:
    """Return the bands of ``A⁻ᵀ Λ⁻¹ A⁻¹``, shape (b + 1, n).

    Entry (t, t − m) is in row m, column t; it is zero where t < m.
    """
    b, n = len(bands) - 1, bands.shape[1]
    precision = np.zeros((b + 1, n))
    for m in range(b + 1):
        for k in range(b + 1 - m):
            precision[m, : n - k] += (bands[k] * bands[k + m] / weights)[k:]
    return precision


def _chains(
    bands: Array, weights: Array, coordinate_weights: Array, sizes: Array, shifts: Array
) -> tuple[Array, Array]:
    """Return steps (n, q, b) of the chains and variances (n, q) of their fresh parts, by
    elimination from the last tick.
    """
    b, n = len(bands) - 1, bands.shape[1]
    precision = precision_bands(bands, weights)
    steps, fresh = np.zeros((n, len(shifts), b)), np.zeros((n, len(shifts)))
    owed = np.zeros(
        (b + 1, b + 1, len(shifts))
    )  # later ticks subtract its [i, m] from entry (t − i, t − i − m)
    for t in reversed(range(n)):
        pivot = precision[0, t] + shifts * coordinate_weights[t] - owed[0, 0]
        below = [
            (precision[m, t] - owed[0, m]) / pivot if m <= t else np.zeros(len(shifts))
            for m in range(1, b + 1)
        ]
        owed = np.concatenate([owed[1:], np.zeros_like(owed[:1])])
        for m, one in enumerate(below):
            steps[t, :, m] = -one
            for further, other in enumerate(below[m:]):
                owed[m, further] += one * other * pivot
        fresh[t] = sizes / pivot
    return steps, fresh


def _transition(steps: Array) -> Array:
    """Return F of one tick, shape (q b, q b), from φ, shape (q, b)."""
    q, b = steps.shape
    F = np.zeros((q, b, q, b))
    chain, last = np.arange(q), np.arange(b - 1)
    F[chain, 0, chain] = steps
    F[chain[:, None], last + 1, chain[:, None], last] = 1
    return F.reshape(q * b, q * b)


def _seen(q: int, b: int) -> Array:
    """Return a vector of ones at the newest value of every chain."""
    return np.tile(np.eye(b)[0], q)


def resolvent_traces(
    bands: Array, weights: Array, coordinate_weights: Array, shifts: Array
) -> Array:
    """Return ``tr (W^-½ A⁻ᵀ Λ⁻¹ A⁻¹ W^-½ + s)⁻¹`` for every shift s, shape (q,)."""
    steps, fresh = _chains(bands, weights, coordinate_weights, np.ones(len(shifts)), shifts)
    n, q, b = steps.shape
    traces, spread = (
        np.zeros(q),
        np.zeros((q, b, b)),
    )  # covariance of the last b values of each chain
    for t in range(n):
        newest = np.einsum("qm,qmk->qk", steps[t], spread)
        variance = np.einsum("qm,qm->q", newest, steps[t]) + fresh[t]
        traces += coordinate_weights[t] * variance
        spread[:, 1:, 1:] = spread[:, :-1, :-1].copy()
        spread[:, 0, 0] = variance
        spread[:, 0, 1:] = spread[:, 1:, 0] = newest[:, :-1]
    return traces
