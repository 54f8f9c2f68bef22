"""Exact integers from counts to noisy answers; from then on floats: nothing private is left."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import CovarianceError, GaussNoiseError, ParameterError
from ...files.pickling import PickledByArguments
from ...noise.agreement import public_of
from ...noise.problem import Relation
from ...numerics.integers import MOST_SUM, exact_type
from ...privacy.lattice_bound import MOST_STEPS, TABLE_SCALE
from ...privacy.sampler import MAX_BITS, IntegerQuery
from ...solvers.tables.boxes import Box, shape_of
from ...solvers.tables.orbits import ByType, Orbits, Type, alike
from ...solvers.tables.patterns import MOST_PATTERNS, pattern_shape, pattern_sums
from ...solvers.tables.residuals import Subset, part_of
from ...solvers.tables.strategies import AbstractStrategy, IdentityStrategy
from ...solvers.tables.worst_pattern import least_sum

Counts = NDArray[np.int64]
Integers = NDArray[Any]  # int64 where every intermediate provably fits, Python integers otherwise
Array = NDArray[np.float64]
# "replace-persons": one person of any number of rows, at most so many, exchanged for another
Moves = Relation | Literal["replace-persons"]

# Multipliers of at least 2²⁰ follow the wanted standard deviations to one in a million.
_LEAST_MULTIPLIER = 2.0**20
_COARSEST_MULTIPLIER = 2**6
# Where rows count in parts, their units take their share of these bits: as fine as leaves
# multipliers of 2¹⁰, but no coarser than 2⁻¹⁰ of a row.
_FINE, _COARSEST_UNIT = 2.0**10, 2**10

_EXACT_PATTERNS = 2**14  # of differing attributes, summed in Python integers
_ROUNDING = 1e-9  # what sums of floats over more patterns may lack, relative to all they add up


@dataclass(frozen=True, eq=False)
class ResidualQuery(PickledByArguments):
    """The integer query ``s_T ⊗_{i∈T} C_i`` on every marginal T, stacked.

    It asks what each T adds to its own margins.

    Attributes:
        strategies: of all attributes.
        multipliers: s_T, positive integers.
        query: what one row can change in all answers together; None when there is nothing to
            measure.
        unit: how much one row adds to the integer counts that are answered about, all its cells
            together: more than one where rows count in parts.
        most: what that much stands for, in counts that are released: 1, or the largest weight.
        public: attributes whose joint counts are released exactly.
    """

    strategies: tuple[AbstractStrategy, ...]
    multipliers: ByType
    query: IntegerQuery | None
    unit: int = 1
    most: float = 1.0
    public: Subset = ()

    @classmethod
    def calibrated(
        cls,
        strategies: Sequence[AbstractStrategy],
        variances: Mapping[Subset, float],
        neighbors: Moves,
        rho: float,
        unit: int = 1,
        most: float = 1.0,
    ) -> "ResidualQuery":
        """For noises ``N(0, variances[T] ⊗ E_i)`` at unit sensitivity, scaled to spend ``rho``.

        The answer on counts is multiplied by ``unit``, and so is what a row can change in it: a row
        adds a convex combination of cells, ``unit`` in all, and lengths are convex. Where noise is
        large, a coarser unit is chosen.
        """
        moves_number = neighbors in ("add-remove", "replace-persons")
        if moves_number and () not in variances:
            raise CovarianceError(
                "release: expected noise on the total, which one row more or less changes"
            )
        public = public_of(neighbors)
        strategies, by_type = tuple(strategies), by_type_of(strategies, variances, public)
        orbits, of_class = (
            by_type.orbits,
            [strategies[members[0]] for members in by_type.orbits.classes],
        )
        # what is charged for one of a class is charged for all
        if any(
            strategies[i] != own for own, c in zip(of_class, orbits.classes, strict=True) for i in c
        ):
            raise CovarianceError("release: expected alike attributes to be measured alike")
        if public and unit > 1:
            raise CovarianceError("release: expected counts of rows where attributes are public")
        if any(set(T) <= set(public) for T in by_type if T):
            raise CovarianceError("release: expected no noise on tables of public attributes")
        wanted = {
            kind: math.sqrt(variance / 2)
            / math.sqrt(rho)
            * math.sqrt(math.prod(of_class[k].stretch for k in kind))
            for kind, variance in by_type.values_by_type.items()
            if kind or moves_number  # replacing rows leaves the total alone
        }
        if not wanted:
            return cls(strategies, ByType(orbits, {}), None, unit, most, public)
        while unit > _COARSEST_UNIT and MOST_STEPS / unit < _FINE * max(wanted.values()):
            unit //= 2  # beside so much noise, what rounding to a coarser unit moves is little
        scale = min(max(_LEAST_MULTIPLIER * max(wanted.values()), TABLE_SCALE), MOST_STEPS / unit)
        multipliers = {kind: round(scale / deviation) for kind, deviation in wanted.items()}
        if (
            max(multipliers.values()) >> MAX_BITS
            or min(multipliers.values()) < _COARSEST_MULTIPLIER
        ):
            size = "large" if max(multipliers.values()) >> MAX_BITS else "small"
            raise ParameterError(
                f"rho = {rho:.3g} is too {size}: noise from {min(wanted.values()):.3g} to "
                f"{max(wanted.values()):.3g} lattice steps cannot be drawn; hint: rho between "
                "1e-12 and 1e100, queries of like size, and few attributes with bases of their own "
                "in one table"
            )
        squares = {kind: s**2 for kind, s in multipliers.items()}
        moved = squared_sensitivity(orbits, of_class, squares, neighbors)
        query = IntegerQuery(moved * unit**2, rho)
        return cls(strategies, ByType(orbits, multipliers), query, unit, most, public)

    def with_multipliers(self, known: Mapping[Type, int], neighbors: Moves) -> "ResidualQuery":
        """The same with multipliers that were fixed before, whose sensitivity is computed anew.

        Raises:
            ParameterError: other residuals, or not positive integers.
        """
        orbits, values = self.multipliers.orbits, dict(known)
        if (
            self.query is None
            or values.keys() != self.multipliers.values_by_type.keys()
            or not all(type(s) is int and 0 < s < 2**MAX_BITS for s in values.values())
        ):
            raise ParameterError(
                "release: expected a positive multiplier for every measured residual"
            )
        of_class = [self.strategies[members[0]] for members in orbits.classes]
        moved = squared_sensitivity(
            orbits, of_class, {kind: s**2 for kind, s in values.items()}, neighbors
        )
        query = IntegerQuery(moved * self.unit**2, self.query.budget)
        return ResidualQuery(
            self.strategies, ByType(orbits, values), query, self.unit, self.most, self.public
        )

    @property
    def count(self) -> int:
        """How many integers are measured."""
        return measured_integers(self.strategies, self.multipliers)

    def rows(self, T: Subset) -> int:
        """How many integers are measured on marginal T."""
        return math.prod(self.strategies[i].rows for i in T)

    @cached_property
    def variances(self) -> ByType:
        """σ_T², as really drawn: the decoded noise has covariance ``σ_T² ⊗_{i∈T} E_i``."""
        orbits = self.multipliers.orbits
        scale = self.query.scale / self.unit * self.most if self.query is not None else 0.0
        stretch = [self.strategies[members[0]].stretch for members in orbits.classes]
        return ByType(
            orbits,
            {
                kind: (scale / s) ** 2 / math.prod(stretch[k] for k in kind)
                for kind, s in self.multipliers.values_by_type.items()
            },
        )

    def answer(self, T: Subset, marginal: Counts) -> Integers:
        """The exact answer on marginal T's counts, or on integer combinations of them, flat."""
        bound = max(int(np.sum(np.abs(marginal))), 1)
        return self.multiplied(T, *self.contrasted(T, marginal, bound))

    def contrasted(
        self, attributes: Subset, values: Integers, bound: int, first: int = 0
    ) -> tuple[Integers, int]:
        """``⊗ C_i`` along axes from ``first`` on, exactly, and what bounds its numbers.

        ``bound``: of the sums of sizes of ``values`` along those axes.
        """
        for axis, i in enumerate(attributes, first):
            bound *= self.strategies[i].growth  # of all intermediates
            values = self.strategies[i].contrast(values.astype(exact_type(bound)), axis)
        return values, bound

    def multiplied(self, T: Subset, values: Integers, bound: int) -> Integers:
        """``s_T`` times integers of at most ``bound``, flat."""
        s = int(self.multipliers[T])
        # flat before it is multiplied: numpy turns 0-d arrays of Python integers into bare ones,
        # and those into 64 bits
        return values.astype(exact_type(bound * s)).reshape(-1) * s

    def noisy(self, T: Subset, marginal: Counts, noise: Counts) -> Integers:
        """The answer plus noise, exactly."""
        return self.added(self.answer(T, marginal), noise)

    def added(self, answer: Integers, noise: Counts) -> Integers:
        """An answer, or a part of it, plus noise, exactly."""
        if answer.dtype not in (np.int64, object) or noise.dtype != np.int64:
            raise GaussNoiseError(
                f"release: expected exact integers, got {answer.dtype} and {noise.dtype}"
            )
        if answer.dtype == np.int64 and max(int(noise.max()), -int(noise.min())) < MOST_SUM:
            return answer + noise
        return answer.astype(object) + noise.astype(object)

    def decode(self, T: Subset, noisy: Integers, unit: int = 1) -> Array:
        """What T alone adds to marginal T, from its noisy answer.

        Shape (sizes of T...); it sums to zero along every axis.

        ``unit``: what the answer was multiplied by, beside the query's own.
        """
        return self.decoded(T, self.divided(T, noisy, unit))

    def divided(self, T: Subset, noisy: Integers, unit: int = 1) -> Array:
        """A noisy answer, or a part of it, less what it was multiplied by."""
        s = int(self.multipliers[T]) * self.unit * unit
        if s >= 2**53:  # the same rounding whatever the type, which depends on the exact answer
            noisy = noisy.astype(object)
        values = (noisy // s).astype(np.float64) + (noisy % s / s).astype(np.float64)
        return values * self.most if self.most != 1 else values

    def decoded(self, T: Subset, values: Array) -> Array:
        """What T alone adds to marginal T, from all that :meth:`divided` makes of its answer."""
        return self.decoded_along(T, values.reshape([self.strategies[i].rows for i in T]))

    def decoded_along(self, attributes: Subset, values: Array, first: int = 0) -> Array:
        """``⊗ C_i⁺`` along axes from ``first`` on."""
        for axis, i in enumerate(attributes, first):
            values = self.strategies[i].decode(values, axis)
        return values

    def spread(self, values: Array, T: Subset, S: Subset, box: Box | None = None) -> Array:
        """``values ⊗_{i∈S∖T} v_i``: what is known of T, laid over the cells of S ⊇ T.

        Over those in a box alone, if there is one, from values in that of T.
        """
        rest = [i for i in S if i not in T]
        box = box or tuple([slice(0, self.strategies[i].size) for i in S])
        shape = shape_of(box)
        table = values.reshape([n if i in T else 1 for i, n in zip(S, shape, strict=True)])
        # over all even attributes at once, which rounds once; a public total by dividing, which
        # keeps it exact
        table = (
            table * (1 / self._even(rest))
            if () in self.multipliers or T
            else table / self._even(rest)
        )
        for axis, i in enumerate(S):
            if i in rest and not self._is_even(i):
                table = table * self.strategies[i].profile[box[axis]].reshape(
                    [-1 if k == axis else 1 for k in range(len(S))]
                )
        return np.broadcast_to(table, shape)

    def gather(self, weights: Array, S: Subset, T: Subset) -> Array:
        """Weights on S's cells as weights on what is known of T ⊆ S: transposes :meth:`spread`."""
        rest = [i for i in S if i not in T]
        kept = list(S)
        for i in rest:
            if not self._is_even(i):
                weights = np.tensordot(weights, self.strategies[i].profile, axes=(kept.index(i), 0))
                kept.remove(i)
        return part_of(weights, tuple(kept), T) * (1 / self._even(rest))

    def _is_even(self, i: int) -> bool:
        return isinstance(self.strategies[i], IdentityStrategy)

    def _even(self, attributes: Sequence[int]) -> float:
        """Over how many cells the attributes spread evenly: dividing once rounds once."""
        return float(math.prod(self.strategies[i].size for i in attributes if self._is_even(i)))


def measured_integers(
    strategies: Sequence[AbstractStrategy], values: Mapping[Subset, float]
) -> int:
    """How many integers are measured on the subsets that have a value, together."""
    by_type = by_type_of(strategies, values)
    rows = [strategies[members[0]].rows for members in by_type.orbits.classes]
    return sum(
        by_type.orbits.size(kind) * math.prod(rows[k] for k in kind)
        for kind in by_type.values_by_type
    )


def by_type_of(
    strategies: Sequence[AbstractStrategy], values: Mapping[Subset, float], public: Subset = ()
) -> ByType:
    """The values, the same for subsets that can be exchanged."""
    if isinstance(values, ByType):
        return values
    kinds = [(own, i in public) for i, own in enumerate(strategies)]
    orbits = Orbits(alike(values, kinds))
    return ByType(orbits, {orbits.type_of(T): value for T, value in values.items()})


def squared_sensitivity(
    orbits: Orbits,
    strategies: Sequence[AbstractStrategy],
    squares: Mapping[Type, int],
    neighbors: Moves,
) -> int:
    """Largest squared change of all answers.

    One row more or less, or one exchanged for another; of "replace-persons", either.

    A row adds at most ``s_T² Π c_i`` to the squared length of answer T, c_i the longest column's.
    The answers on two rows have inner product ``s_T² Π_{i∈T} m_i``, each m_i between ℓ_i, the least
    of all, and c_i; the sum over T is affine in every m_i, so that it is least at ends: ℓ_i on some
    set D of attributes, c_i on the others. Of more sets D than can be looked at, a search proves a
    bound. Attained where all columns of an attribute are of one
    length, and all pairs of them at one angle; a bound otherwise. Rows that are exchanged agree on
    public attributes: there m_i = c_i, which is a bound too where columns differ in length, since
    what is left of an answer is a squared length, times at most the longest of these.
    """
    public = set(public_of(neighbors))
    if any(0 < len(public.intersection(members)) < len(members) for members in orbits.classes):
        raise CovarianceError("release: expected no public attribute to be like a private one")
    used = sorted({k for kind in squares for k in kind})
    orbits, strategies = (
        Orbits(tuple(orbits.classes[k] for k in used)),
        [strategies[k] for k in used],
    )
    squares = {tuple(used.index(k) for k in kind): s for kind, s in squares.items()}
    lengths = {
        kind: s * math.prod(strategies[k].square for k in kind) for kind, s in squares.items()
    }
    total = sum(length * orbits.size(kind) for kind, length in lengths.items())
    if neighbors == "add-remove":
        return total
    alone = total if neighbors == "replace-persons" else 0
    fixed = [bool(public.intersection(members)) for members in orbits.classes]
    patterns = math.prod(pattern_shape(orbits))
    if patterns <= _EXACT_PATTERNS:
        longest = [own.square for own in strategies]
        least = [
            own.square if known else own.least for own, known in zip(strategies, fixed, strict=True)
        ]
        products = pattern_sums(orbits, squares, longest, least, dtype=object)
        return max(2 * (total - min(products.reshape(-1))), alone)
    shares = {kind: length / total for kind, length in lengths.items()}
    correlations = [
        1.0 if known else own.correlation for own, known in zip(strategies, fixed, strict=True)
    ]
    if patterns <= MOST_PATTERNS:
        least_share = float(pattern_sums(orbits, shares, [1.0] * len(fixed), correlations).min())
    else:
        least_share = least_sum(orbits, shares, correlations).lower
    return max(math.ceil(2 * total * Fraction(1 - least_share + _ROUNDING)), alone)
