"""Exact integers from counts to noisy answers; from then on floats, since nothing private is left."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._bases import Identity
from .._orbits import ByType, Orbits, Type, alike
from .._patterns import MOST_PATTERNS, pattern_shape, pattern_sums
from .._residuals import Subset
from .._sampler import MAX_BITS, IntegerQuery
from .._sensitivity import Relation
from ..errors import CovarianceError, ParameterError

Counts = NDArray[np.int64]
Integers = NDArray[Any]  # int64 where every intermediate provably fits, Python integers otherwise
Array = NDArray[np.float64]

# Multipliers of at least 2²⁰ follow the wanted standard deviations to one in a million, and at a scale of 2³² lattice
# steps the discrete Gaussian is a continuous one to far below any float. OpenDP's integers end at 2⁶³.
_LEAST_MULTIPLIER = 2.0**20
_LEAST_SCALE = 2.0**32
_MOST_SCALE = 2.0**49
_COARSEST_MULTIPLIER = 2**6
LEAST_STEPS = 2.0**29  # what is left of the least scale once multipliers are rounded, with room to spare

_EXACT_PATTERNS = 2**14  # of differing attributes, summed in Python integers
_ROUNDING = 1e-9  # what sums of floats over more patterns may lack, relative to all they add up


@dataclass(frozen=True, eq=False)
class ResidualQuery:
    """The integer query ``s_T ⊗_{i∈T} C_i`` on every marginal T, stacked: what each T adds to its own margins.

    Attributes:
        bases: of all attributes.
        multipliers: s_T, positive integers.
        query: what one row can change in all answers together; None when there is nothing to measure.
    """

    bases: tuple[Identity, ...]
    multipliers: ByType
    query: IntegerQuery | None

    @classmethod
    def calibrated(
        cls, sizes: tuple[int, ...], variances: Mapping[Subset, float], neighbors: Relation, rho: float
    ) -> "ResidualQuery":
        """For zero-sum noises of ``variances`` at unit sensitivity, scaled to spend ``rho``."""
        if neighbors == "add-remove" and () not in variances:
            raise CovarianceError("release: expected noise on the total, which one row more or less changes")
        bases, by_type = tuple(map(Identity, sizes)), _by_type(sizes, variances)
        orbits, of_class = by_type.orbits, [bases[members[0]] for members in by_type.orbits.classes]
        wanted = {
            kind: math.sqrt(variance / 2) / math.sqrt(rho) * math.sqrt(math.prod(of_class[k].stretch for k in kind))
            for kind, variance in by_type.values_by_type.items()
            if kind or neighbors == "add-remove"  # replacing rows leaves the total alone
        }
        if not wanted:
            return cls(bases, ByType(orbits, {}), None)
        scale = min(max(_LEAST_MULTIPLIER * max(wanted.values()), _LEAST_SCALE), _MOST_SCALE)
        multipliers = {kind: round(scale / deviation) for kind, deviation in wanted.items()}
        if max(multipliers.values()) >> MAX_BITS or min(multipliers.values()) < _COARSEST_MULTIPLIER:
            size = "large" if max(multipliers.values()) >> MAX_BITS else "small"
            raise ParameterError(
                f"rho = {rho:.3g} is too {size}: noise from {min(wanted.values()):.3g} to {max(wanted.values()):.3g} "
                "lattice steps cannot be drawn; hint: rho between 1e-12 and 1e100"
            )
        squares = {kind: s**2 for kind, s in multipliers.items()}
        moved = squared_sensitivity(orbits, of_class, squares, neighbors)
        return cls(bases, ByType(orbits, multipliers), IntegerQuery(moved, rho))

    @property
    def count(self) -> int:
        """How many integers are measured."""
        return measured_integers(tuple(base.size for base in self.bases), self.multipliers)

    def rows(self, T: Subset) -> int:
        """How many integers are measured on marginal T."""
        return math.prod(self.bases[i].rows for i in T)

    @cached_property
    def variances(self) -> ByType:
        """σ_T², as really drawn: the decoded noise has covariance σ_T² Π_T."""
        orbits = self.multipliers.orbits
        scale = self.query.scale if self.query is not None else 0.0
        stretch = [self.bases[members[0]].stretch for members in orbits.classes]
        return ByType(
            orbits,
            {
                kind: (scale / s) ** 2 / math.prod(stretch[k] for k in kind)
                for kind, s in self.multipliers.values_by_type.items()
            },
        )

    def answer(self, T: Subset, marginal: Counts) -> Integers:
        """The exact answer on the counts of marginal T, flat."""
        s = int(self.multipliers[T])
        bound = s * math.prod(2 * self.bases[i].size for i in T) * max(int(marginal.sum()), 1)
        answer: Integers = marginal.astype(np.int64 if bound < 2**62 else object)
        for axis, i in enumerate(T):
            answer = self.bases[i].contrast(answer, axis)
        return np.asarray(answer * s).reshape(-1)  # numpy turns sums of 0-d object arrays into bare integers

    def noisy(self, T: Subset, marginal: Counts, noise: Counts) -> Integers:
        """The answer plus noise, exactly."""
        answer = self.answer(T, marginal)
        if answer.dtype != object and np.abs(noise).max() < 2**62:
            return answer + noise
        return np.asarray(answer.astype(object) + noise.astype(object))

    def decode(self, T: Subset, noisy: Integers) -> Array:
        """The zero-sum part of marginal T, from its noisy answer: shape (sizes of T...)."""
        s = int(self.multipliers[T])
        if s >= 2**53:  # the same rounding whatever the type, which depends on the exact answer
            noisy = noisy.astype(object)
        values = (noisy // s).astype(np.float64) + (noisy % s / s).astype(np.float64)
        values = values.reshape([self.bases[i].rows for i in T])
        for axis, i in enumerate(T):
            values = self.bases[i].decode(values, axis)
        return values


def measured_integers(sizes: tuple[int, ...], values: Mapping[Subset, float]) -> int:
    """How many integers are measured on the subsets that have a value, together."""
    by_type = _by_type(sizes, values)
    rows = [Identity(sizes[members[0]]).rows for members in by_type.orbits.classes]
    return sum(by_type.orbits.size(kind) * math.prod(rows[k] for k in kind) for kind in by_type.values_by_type)


def _by_type(sizes: tuple[int, ...], values: Mapping[Subset, float]) -> ByType:
    if isinstance(values, ByType):
        return values
    orbits = Orbits(alike(values, sizes))
    return ByType(orbits, {orbits.type_of(T): value for T, value in values.items()})


def squared_sensitivity(orbits: Orbits, bases: list[Identity], squares: Mapping[Type, int], neighbors: Relation) -> int:
    """Largest squared change of all answers: one row more or less, or one exchanged for another.

    A row adds ``s_T² Π c_i`` to the squared length of answer T; the answers on two rows that differ in D have inner
    product ``s_T² Π_{T∖D} c_i Π_{T∩D} ℓ_i``, with c and ℓ the least inner product of each base.
    """
    used = sorted({k for kind in squares for k in kind})
    orbits, bases = Orbits(tuple(orbits.classes[k] for k in used)), [bases[k] for k in used]
    squares = {tuple(used.index(k) for k in kind): s for kind, s in squares.items()}
    lengths = {kind: s * math.prod(bases[k].square for k in kind) for kind, s in squares.items()}
    total = sum(length * orbits.size(kind) for kind, length in lengths.items())
    if neighbors == "add-remove":
        return total
    patterns = math.prod(pattern_shape(orbits))
    if patterns <= _EXACT_PATTERNS:
        products = pattern_sums(orbits, squares, [b.square for b in bases], [b.least for b in bases], dtype=object)
        return 2 * (total - min(products.reshape(-1)))
    if patterns <= MOST_PATTERNS:
        shares = {kind: length / total for kind, length in lengths.items()}
        least = float(pattern_sums(orbits, shares, [1.0] * len(bases), [b.correlation for b in bases]).min())
        return math.ceil(2 * total * (1 - least + _ROUNDING))
    # every answer at its own worst pair of rows: they differ in the one attribute of strongest correlation
    return sum(
        2 * orbits.size(kind) * max(length + length // bases[k].square * -bases[k].least for k in kind)
        for kind, length in lengths.items()
    )
