"""The best noise of few states: nodes for its spectrum, weights for its ticks, in turn."""

from dataclasses import dataclass

import numpy as np
import scipy

from domains.floats import Array

from ...numerics.norms import dual_power
from .anderson import MEMORY, accelerated, probability
from .filters import Filter, filter_of, resolvent_traces

_SAMPLES, _GRID = 48, 400  # shifts at which the trace is sampled; points of the fitted spectrum
_MOST_ROUNDS = 20
_BEYOND = 5.0  # nodes may lie outside the spectrum by this much in the logarithm
_LEVEL = 1e-5  # excess of the largest leverage over the mean at which the search ends


@dataclass(frozen=True, eq=False)
class FewStates:
    """A filter, the squared length of its strategy's longest column, and its error at that."""

    filter: Filter
    squared_sensitivity: float
    error: float


def few_states(bands: Array, weights: Array, shares: Array, p: float, nodes: int) -> FewStates:
    """Return noise ``Σ_j c_j (A⁻ᵀ Λ⁻¹ A⁻¹ + s_j W)⁻¹`` with few nodes.

    Its error at unit sensitivity is about the least.

    For fixed λ and w, the mean leverage times the weighted variance is ``Σ r(μ) Σ 1/(μ r(μ))`` over
    the spectrum μ of ``W^-½ A⁻ᵀ Λ⁻¹ A⁻¹ W^-½``, with ``r(x) = Σ c_j/(x + s_j)``: a smooth function
    of the nodes. Then λ and w follow the leverages and variances of that noise, as in the
    multiplicative algorithm for general noise, accelerated by Anderson's method. The best result is
    kept.

    Args:
        bands: of A⁻¹, shape (b + 1, n).
        weights: λ to start from, shape (n,), positive.
        shares: ω of the ticks, ``w = ω^{1/s*}``, shape (n,), positive; not used at p = 2.
        p: norm of the error, in [2, ∞].
        nodes: q.
    """
    power = dual_power(p)
    kept: list[FewStates] = []
    trail: list[tuple[Array, Array]] = []
    start = None
    point = np.log(np.concatenate([weights, shares] if p > 2 else [weights]))
    for _ in range(_MOST_ROUNDS):
        weights, *others = (probability(part) for part in point.reshape(-1, len(weights)))
        w = others[0] ** power if p > 2 else np.ones(len(weights))
        spectrum, counts = _spectrum(bands, weights, w)
        start = _best_nodes(spectrum, counts, nodes, start)
        sizes, shifts = np.exp(start.reshape(2, -1))
        made = filter_of(bands, weights, w, sizes, shifts)
        columns, variances = made.squared_columns(), made.variances()
        error = float(np.linalg.norm(np.sqrt(variances * columns.max()), p))
        kept.append(FewStates(made, float(columns.max()), error))
        leverage = columns / (weights @ columns)
        if leverage.max() - 1 < _LEVEL:
            break
        moves = [np.log(leverage)]
        if p > 2:
            moves.append(np.log(w * variances / (w @ variances) / others[0]))
        trail = [*trail[1 - MEMORY :], (point, np.concatenate(moves))]
        point = accelerated(trail, np.sqrt(np.concatenate([weights, *others])))
    return min(kept, key=lambda one: one.error)


def _spectrum(bands: Array, weights: Array, coordinate_weights: Array) -> tuple[Array, Array]:
    """Return points and multiplicities of a spectrum with nearly the same traces of resolvents as
    ``T' = W^-½ A⁻ᵀ Λ⁻¹ A⁻¹ W^-½``.
    """
    largest = float(
        (np.abs(bands).sum(axis=0) ** 2 / weights).max() / coordinate_weights.min()
    ) * len(bands)
    smallest = 1 / float(resolvent_traces(bands, weights, coordinate_weights, np.zeros(1))[0])
    shifts = np.geomspace(smallest, largest, _SAMPLES)
    traces = resolvent_traces(bands, weights, coordinate_weights, shifts)
    grid = np.geomspace(smallest, largest, _GRID)
    rows = shifts[:, None] / (grid + shifts[:, None])
    counts, _ = scipy.optimize.nnls(
        rows / (shifts * traces)[:, None], np.ones(_SAMPLES), maxiter=100 * _GRID
    )
    return grid[counts > 0], counts[counts > 0]


def _best_nodes(spectrum: Array, counts: Array, nodes: int, start: Array | None) -> Array:
    """Return logarithms of c and s, shape (2q,), by quasi-Newton steps from ``start``."""

    def value(x: Array) -> tuple[float, Array]:
        sizes, shifts = np.exp(x.reshape(2, -1))
        poles = 1 / (spectrum[:, None] + shifts)
        r = poles @ sizes
        variance, leverage = counts * r, counts / (spectrum * r)
        a, b = variance.sum(), leverage.sum()
        slope = counts / a - leverage / (r * b)  # the derivative by r
        return float(np.log(a) + np.log(b)), np.concatenate(
            [sizes * (slope @ poles), -shifts * sizes * (slope @ poles**2)]
        )

    if start is None:
        shifts = np.geomspace(spectrum[0], spectrum[-1], nodes + 2)[1:-1]
        start = np.log(np.concatenate([np.sqrt(shifts), shifts]))
    # Far beyond the spectrum, all nodes act alike, so that shifts are bounded. The overall size of
    # c does not matter: it is normalised.
    ends = np.log(spectrum[0]) - _BEYOND, np.log(spectrum[-1]) + _BEYOND
    bounds = [(None, None)] * nodes + [ends] * nodes
    start = np.concatenate([start[:nodes] - start[:nodes].mean(), np.clip(start[nodes:], *ends)])
    options = {"gtol": 1e-10, "ftol": 1e-15, "maxiter": 1000}
    return scipy.optimize.minimize(
        value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x
