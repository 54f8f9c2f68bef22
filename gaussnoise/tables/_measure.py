"""Exact integers from counts to noisy residuals, and from noisy residuals to consistent tables."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domains import Marginals

from .._residuals import Subset, rank, spread, subsets_of
from .._sampler import MAX_BITS, IntegerQuery
from ..errors import ParameterError

Integers = NDArray[Any]  # int64 where every intermediate provably fits, Python integers otherwise

# Lattice steps per standard deviation: the discrete Gaussian is then a continuous one to far below any float.
_SCALE_BITS = 32


@dataclass(frozen=True)
class ResidualQuery:
    """The integer query ``2^bits ⊗_{i∈T}(n_i I − 11ᵀ)`` on marginal T: what one marginal adds to its own margins.

    One record more or less changes it by squared length ``4^bits Π n_i (n_i − 1)`` exactly.
    """

    attributes: Subset
    shape: tuple[int, ...]
    bits: int
    query: IntegerQuery

    @property
    def cells(self) -> int:
        """Number of noisy integers."""
        return math.prod(self.shape)

    @property
    def variance(self) -> float:
        """σ_T², as really drawn: the decoded zero-sum noise has covariance σ_T² Π_T."""
        return (math.ldexp(self.query.scale, -self.bits) / self.cells) ** 2

    def noisy(self, marginal: Integers, noise: list[int]) -> Integers:
        """Noisy answers on exact counts, projected onto zero-sum tensors: the residual times ``cells² 2^bits``."""
        answers = self.exact(marginal).astype(object) + np.array(noise, dtype=object).reshape(self.shape)
        return np.asarray(_contrast_all(np.asarray(answers, dtype=object)), dtype=object)

    def exact(self, marginal: Integers) -> Integers:
        """The query's answer on counts of shape ``self.shape``."""
        bound = 2 * math.prod(2 * n for n in self.shape) * max(int(marginal.sum()), 1) << self.bits
        exact = _contrast_all(marginal.astype(np.int64 if bound < 2**62 else object)) * (1 << self.bits)
        return np.asarray(exact)  # numpy turns sums of 0-d object arrays into bare integers


def _contrast_all(tensor: Integers) -> Integers:
    """``⊗(n_i I − 11ᵀ)``, along every axis."""
    for axis, n in enumerate(tensor.shape):
        tensor = n * tensor - tensor.sum(axis=axis, keepdims=True)
    return tensor


def residual_queries(domain: Marginals, variances: Mapping[Subset, float], rho: float) -> dict[Subset, ResidualQuery]:
    """Calibrated queries for zero-sum noises of ``variances`` at unit sensitivity, scaled to spend ``rho`` together."""
    queries = {}
    for T, unit_variance in variances.items():
        shape = tuple(domain.sizes[i] for i in T)
        cells, dimension = domain.cells(T), rank(T, domain.sizes)
        target = cells * math.sqrt(unit_variance / (2 * rho))
        bits = max(0, _SCALE_BITS - math.frexp(target)[1])
        if bits > MAX_BITS:
            raise ParameterError(
                f"rho = {rho:.3g} is too large: noise of {target:.3g} is no noise; hint: at most 1e100"
            )
        change = math.prod(n * (n - 1) for n in shape) << 2 * bits
        queries[T] = ResidualQuery(T, shape, bits, IntegerQuery(change, rho * dimension / (cells * unit_variance)))
    return queries


def parts_of(marginals: Mapping[Subset, NDArray[np.int64]], wanted: Iterable[Subset]) -> dict[Subset, Integers]:
    """Exact counts of every wanted subset of the counted ones, small ones summed from larger ones."""
    found: dict[Subset, Integers] = dict(marginals)
    for T in sorted(wanted, key=len, reverse=True):
        if T not in found:
            above = next(S for S in found if set(T) <= set(S))
            found[T] = found[above].sum(axis=tuple(axis for axis, i in enumerate(above) if i not in T))
    return {T: np.asarray(found[T]) for T in wanted}


def reconstruct(
    S: Subset, sizes: tuple[int, ...], queries: Mapping[Subset, ResidualQuery], residuals: Mapping[Subset, Integers]
) -> tuple[Integers, int]:
    """The table of S as integer numerators over one denominator: ``Σ_{T ⊆ S} residual_T ⊗ 1/N_{S∖T}``, exactly.

    Any two tables therefore agree on every margin they share, as rational numbers.
    """
    inside = [T for T in subsets_of(S) if T in residuals]
    bits = max(queries[T].bits for T in inside)
    cells = math.prod(sizes[i] for i in S)
    total: Integers = np.zeros(tuple(sizes[i] for i in S), dtype=object)
    for T in inside:
        lifted = spread(residuals[T].reshape(-1), T, S, sizes)
        total = total + lifted * (1 << bits - queries[T].bits) * (cells // queries[T].cells)
    return np.asarray(total, dtype=object), cells**2 << bits
