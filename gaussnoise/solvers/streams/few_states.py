"""A recursion with few states and nearly the least error, for people who take part once."""

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import Array
from domains.sets.stream import StreamWorkload

from ...numerics.norms import norm
from .covariances import covariances
from .descent import descended, mean_power
from .recursions import Recursion, fading_root, later_products, steps_of

_KNOTS = 16  # number of knots in each half of the ticks
_STEPS, _MEMORY = 200, 40
_POWERS = 8, 64, 512, 4096, 32768  # means of these powers replace the maximum, in turn
_AGAIN = 2  # number of last powers that are used again without knots


def few_states(workload: StreamWorkload, p: float, states: int) -> Recursion:
    """Return a :class:`Recursion` with few states and nearly the least error ``‖sd‖_p``.

    The columns of the recursion's strategy matrix C have norm one.

    Args:
        workload: the matrix A of the answers over time.
        p: norm of the error, 2 or ∞.
        states: q, the number of states.
    """
    # the columns of the best strategy have norm one, too: a shorter column could be lengthened
    # without more noise. The search is over u, v / d and θ, the coefficients of the recursion; d_s
    # and v_s are then scaled so that column s has norm one. At p = ∞, means of growing powers
    # replace the maximum. Quasi-Newton steps first change the coefficients at some ticks, which are
    # linear between these, and then those at all ticks
    n, powers = workload.ticks, _POWERS if np.isinf(p) else (1,)
    sizes, fading = fading_root(n, states, np.inf)
    logits = scipy.special.logit(fading)
    pairs = np.tile(np.concatenate([sizes, np.ones(states)]), (n, 1))
    made = []
    for knots, stages in ((_knots(n), powers), (np.arange(n), powers[-_AGAIN:])):
        between = _interpolation(knots, n)
        x = np.concatenate([pairs[knots].ravel(), logits])
        for power in stages:
            given = workload.bands, between, states, power
            x = descended(lambda y, given=given: _value(y, *given), x, steps=_STEPS, memory=_MEMORY)
            pairs, logits = _unpacked(x, between, states)
            u, fading = pairs[:, :states], scipy.special.expit(logits)
            d, v = _of_norm_one(pairs[:, states:], later_products(u, fading))
            made.append(Recursion(workload, d, u, v, fading))
    return min(made, key=lambda one: norm(np.sqrt(one.variances()), p))


def _knots(n: int) -> NDArray[np.intp]:
    first = np.geomspace(1, n / 2, _KNOTS).astype(np.intp) - 1
    return np.unique([first, n - 1 - first])


def _interpolation(knots: NDArray[np.intp], n: int) -> "scipy.sparse.csr_array":
    """Return the matrix (n, number of knots) that interpolates between knots linearly."""
    ticks = np.arange(n)
    left = np.clip(np.searchsorted(knots, ticks, side="right") - 1, 0, len(knots) - 2)
    share = (ticks - knots[left]) / (knots[left + 1] - knots[left])
    places = np.tile(ticks, 2), np.concatenate([left, left + 1])
    return scipy.sparse.csr_array(
        (np.concatenate([1 - share, share]), places), shape=(n, len(knots))
    )


def _unpacked(x: Array, between: "scipy.sparse.csr_array", q: int) -> tuple[Array, Array]:
    """Return the recursion's coefficients at all ticks, (n, 2q), and its decays' logits, from x."""
    return between @ x[:-q].reshape(-1, 2 * q), x[-q:]


def _of_norm_one(ratios: Array, later: Array) -> tuple[Array, Array]:
    """Return d and v = d · ``ratios`` for which the strategy's columns have norm one."""
    d = 1 / np.sqrt(1 + np.einsum("tj,tjk,tk->t", ratios, later, ratios))
    return d, ratios * d[:, None]


def _value(
    x: Array, bands: Array, between: "scipy.sparse.csr_array", q: int, power: int
) -> tuple[float, Array]:
    """Return the log of the mean (power 1) or power-norm of variances, and its derivatives."""
    pairs, logits = _unpacked(x, between, q)
    fading = scipy.special.expit(logits)
    u, ratios = pairs[:, :q], pairs[:, q:]
    later = later_products(u, fading)
    d, v = _of_norm_one(ratios, later)
    moves, draws = steps_of(bands, d, u, v, fading)
    before = covariances(moves, draws)
    value, by_variance = mean_power(before[1:, q, q], power, len(u) if power == 1 else 1.0)

    # derivatives by these covariances obey the same recursion, backwards in time
    seen = moves[:, q] * np.sqrt(by_variance)[:, None]
    after = covariances(moves[::-1].swapaxes(1, 2), seen[::-1])[-2::-1]
    after[:, q, q] += by_variance
    by_moves = 2 * after @ moves @ before[:-1]
    by_draws = 2 * np.einsum("tij,tj->ti", after, draws)
    states, answer = by_moves[:, :q, :q], by_moves[:, q, :q] / (d * bands[0])[:, None]
    by_fading = np.einsum("tjj->j", states)
    by_u = -np.einsum("tjk,tj->tk", states, ratios) - answer
    by_ratios = -np.einsum("tjk,tk->tj", states, u) + by_draws[:, :q]
    by_d = (np.einsum("tj,tj->t", answer, u) - by_draws[:, q] / (d * bands[0])) / d

    # d² is one over the squared norm of a column with diagonal one
    by_squares = -0.5 * d**3 * by_d
    by_ratios += 2 * by_squares[:, None] * np.einsum("tjk,tk->tj", later, ratios)
    by_later = by_squares[:, None, None] * ratios[:, :, None] * ratios[:, None, :]
    for j in range(q):
        for k in range(q):
            steps = [1.0, -fading[j] * fading[k]]
            earlier = scipy.signal.lfilter([1.0], steps, by_later[:-1, j, k])
            by_u[1:, j] += 2 * earlier * u[1:, k]
            by_fading[j] += 2 * fading[k] * (earlier @ later[1:, j, k])
    by_pairs = between.T @ np.concatenate([by_u, by_ratios], axis=1)
    gradient = np.concatenate([by_pairs.ravel(), by_fading * fading * (1 - fading)])
    return value, gradient
