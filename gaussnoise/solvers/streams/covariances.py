"""Covariances of the states of a linear system that changes from tick to tick."""

import math

import numpy as np

from domains.floats import Array


def covariances(moves: Array, draws: Array) -> Array:
    """Return the covariances P of a system's state before every tick and after the last one.

    At tick t, the state is multiplied by M_t, and g_t times a normal draw is added: ``P_0 = 0`` and
    ``P_{t+1} = M_t P_t M_tᵀ + g_t g_tᵀ``. Blocks of about √n ticks are computed at the same time,
    each from P = 0, and then joined. So there are only about 2√n steps.

    Args:
        moves: M, shape (n, r, r).
        draws: g, shape (n, r).

    Returns:
        Shape (n + 1, r, r).
    """
    n, r = draws.shape
    length = max(round(math.sqrt(n / 2)), 1)
    count = -(-n // length)
    more = count * length - n  # number of ticks added at the end, which leave the state unchanged
    moves = np.concatenate([moves, np.broadcast_to(np.eye(r), (more, r, r))])
    moves = moves.reshape(count, length, r, r)
    draws = np.concatenate([draws, np.zeros((more, r))]).reshape(count, length, r)
    whole, fresh = np.empty((2, count, length + 1, r, r))
    whole[:, 0], fresh[:, 0] = np.eye(r), 0
    for i in range(length):
        move, draw = moves[:, i], draws[:, i]
        whole[:, i + 1] = move @ whole[:, i]
        fresh[:, i + 1] = move @ fresh[:, i] @ move.swapaxes(1, 2)
        fresh[:, i + 1] += draw[:, :, None] * draw[:, None, :]
    first = np.zeros((count + 1, 1, r, r))
    for k in range(count):
        first[k + 1] = whole[k, -1] @ first[k] @ whole[k, -1].T + fresh[k, -1]
    inside = whole[:, :-1] @ first[:-1] @ whole[:, :-1].swapaxes(2, 3) + fresh[:, :-1]
    return np.concatenate([inside.reshape(-1, r, r), first[-1]])[: n + 1]
