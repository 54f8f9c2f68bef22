"""Noisy integer queries of counts: exact integers until noise is added, floats afterwards."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import CovarianceError, GaussNoiseError, ParameterError
from ...files.pickling import PickledByArguments
from ...noise.agreement import public_of
from ...noise.problem import Relation
from ...noise.proportion import AddInProportion
from ...numerics.integers import MOST_SUM, exact_type
from ...privacy.lattice_bound import MOST_STEPS, TABLE_SCALE
from ...privacy.sampler import MAX_BITS, IntegerQuery
from ...solvers.tables.boxes import Box, shape_of
from ...solvers.tables.orbits import ByType, Orbits, Type, alike
from ...solvers.tables.patterns import MOST_PATTERNS, pattern_shape, pattern_sums
from ...solvers.tables.residuals import Subset, part_of
from ...solvers.tables.strategies import AbstractStrategy, IdentityStrategy, SolvedStrategy, is_sum
from ...solvers.tables.workload import check_records
from ...solvers.tables.worst_pattern import least_sum

Counts = NDArray[np.int64]
Integers = NDArray[Any]  # int64 where every intermediate provably fits, Python integers otherwise
Array = NDArray[np.float64]
# "replace-persons": a person with at most a fixed number of rows exchanged for another one
Moves = Relation | Literal["replace-persons"]
Number = TypeVar("Number", float, Fraction)

# Multipliers of at least 2²⁰ give the wanted standard deviations with relative error 10⁻⁶.
_LEAST_MULTIPLIER = 2.0**20
_COARSEST_MULTIPLIER = 2**6
# Where rows count in parts, the unit of a row takes some of these bits: as many as leave
# multipliers of 2¹⁰, but at least 10 bits (a part is at most 2⁻¹⁰ of a row).
_FINE, _COARSEST_UNIT = 2.0**10, 2**10
_FINE_OFF = 2.0**7  # where squares are summed: units that are off the curves need more noise

# most patterns of differing attributes that are summed exactly, in Python integers
_EXACT_PATTERNS = 2**14
# bound on the rounding of float sums over more patterns, relative to the sum of all terms
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class ResidualQuery(PickledByArguments):
    """The integer query ``s_T ⊗_{i∈T} C_i`` on every marginal T, stacked.

    It asks for the residual of each T: the part of T that its own margins do not determine.

    Attributes:
        strategies: each attribute's strategy, with integer contrasts C_i and the covariance E_i of
            unit noise after decoding. Where sets T have other contrasts, see
            :attr:`.AbstractStrategy.others`. It is centred if the number of rows is known and no
            other attribute is measured with this one: see :attr:`.AbstractStrategy.centred`.
        multipliers: s_T, positive integers.
        query: the sensitivity of all answers together to one row, and ρ; None if nothing is
            measured.
        unit: how much one row adds to the integer counts, over all its cells together: more than
            one where rows count in parts.
        most: the released count that ``unit`` stands for: 1, or the largest weight.
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
        """Return the query with noise of these variances, scaled to spend ``rho``.

        The variances are at unit sensitivity. The answers on counts are multiplied by ``unit``, and
        so is their sensitivity: a row adds a convex combination of cells, ``unit`` in all, and a
        norm is convex, so that a whole row in one cell is the worst case. Where the noise is large,
        a coarser unit is chosen. If budgets grow with numbers, the sensitivity is that of a row
        whose numbers are zero; other rows have larger budgets: :func:`squared_sensitivity`.

        Raises:
            CovarianceError: the noise does not fit these neighbours.
            ParameterError: noise of this size cannot be drawn.
        """
        grows = isinstance(neighbors, AddInProportion)
        moves_number = grows or neighbors in ("add-remove", "replace-persons")
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
        # the sensitivity is computed for one attribute of a class and holds for all of its class
        if any(
            strategies[i] != own for own, c in zip(of_class, orbits.classes, strict=True) for i in c
        ):
            raise CovarianceError("release: expected alike attributes to be measured alike")
        for own in of_class:
            alike_sets = Counter((orbits.type_of(T), id(other)) for T, other in own.others.items())
            if any(count != orbits.size(kind) for (kind, _), count in alike_sets.items()):
                raise CovarianceError("release: expected alike sets to be measured alike")
        if public and unit > 1:
            raise CovarianceError("release: expected counts of rows where attributes are public")
        if any(set(T) <= set(public) for T in by_type if T):
            raise CovarianceError("release: expected no noise on tables of public attributes")
        wanted = {
            kind: math.sqrt(variance / 2)
            / math.sqrt(rho)
            * math.sqrt(math.prod(own.stretch for own in measuring(kind, orbits, of_class)))
            for kind, variance in by_type.values_by_type.items()
            if kind or moves_number  # replacing rows does not change the total
        }
        if not wanted:
            return cls(strategies, ByType(orbits, {}), None, unit, most, public)
        least_unit = unit if grows else _COARSEST_UNIT
        fine = _FINE_OFF if units_off(of_class) else _FINE
        while unit > least_unit and MOST_STEPS / unit < fine * max(wanted.values()):
            unit //= 2  # with this much noise, rounding to a coarser unit adds little
        scale = min(max(_LEAST_MULTIPLIER * max(wanted.values()), TABLE_SCALE), MOST_STEPS / unit)
        multipliers = {kind: round(scale / deviation) for kind, deviation in wanted.items()}
        if (
            max(multipliers.values()) >> MAX_BITS
            or min(multipliers.values()) < _COARSEST_MULTIPLIER
        ):
            size, would_do = "large", "rho between 1e-12 and 1e100"
            if not max(multipliers.values()) >> MAX_BITS:
                # deviations are proportional to 1/√ρ; rounding may take half of a step
                ratio = ((_COARSEST_MULTIPLIER + 1) * max(wanted.values()) / scale) ** 2
                size, would_do = "small", f"rho = {ratio * rho:.3g}, {ratio:.3g} times as much"
            raise ParameterError(
                f"rho = {rho:.3g} for a row is too {size}: noise from {min(wanted.values()):.3g} "
                f"to {max(wanted.values()):.3g} lattice steps cannot be drawn; hint: {would_do}, "
                "queries of like size, or fewer attributes with bases of their own in one table"
            )
        squares = {kind: s**2 for kind, s in multipliers.items()}
        query = IntegerQuery(sensitivity_in_units(orbits, of_class, squares, neighbors, unit), rho)
        if not moves_number:
            strategies = _centred(strategies, by_type)
        return cls(strategies, ByType(orbits, multipliers), query, unit, most, public)

    def with_multipliers(self, known: Mapping[Type, int], neighbors: Moves) -> "ResidualQuery":
        """Return this query with stored multipliers; the sensitivity is computed again from them.

        Raises:
            ParameterError: ``known`` has other residuals, or values that are not positive integers.
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
        squares = {kind: s**2 for kind, s in values.items()}
        moved = sensitivity_in_units(orbits, of_class, squares, neighbors, self.unit)
        query = IntegerQuery(moved, self.query.budget)
        return ResidualQuery(
            self.strategies, ByType(orbits, values), query, self.unit, self.most, self.public
        )

    @property
    def count(self) -> int:
        """The number of integers that are measured."""
        return measured_integers(self.strategies, self.multipliers)

    def rows(self, T: Subset) -> int:
        """Return the number of integers that are measured on marginal T."""
        return math.prod(own.rows for own in self.strategies_of(T))

    def strategies_of(self, T: Subset) -> list[AbstractStrategy]:
        """Return the strategies of the attributes of T in the measurement of T."""
        return [self.strategies[i].in_set(T) for i in T]

    @cached_property
    def variances(self) -> ByType:
        """The drawn variances σ_T²: decoded noise on T has covariance ``σ_T² ⊗_{i∈T} E_i``."""
        orbits = self.multipliers.orbits
        scale = self.query.scale / self.unit * self.most if self.query is not None else 0.0
        of_class = [self.strategies[members[0]] for members in orbits.classes]
        return ByType(
            orbits,
            {
                kind: (scale / s) ** 2
                / math.prod(own.stretch for own in measuring(kind, orbits, of_class))
                for kind, s in self.multipliers.values_by_type.items()
            },
        )

    def answer(self, T: Subset, marginal: Counts) -> Integers:
        """Return the exact, flat answer on T's counts, or on integer combinations of them."""
        bound = max(int(np.sum(np.abs(marginal))), 1)
        return self.multiplied(T, *self.contrasted(self.strategies_of(T), marginal, bound))

    @staticmethod
    def contrasted(
        strategies: Sequence[AbstractStrategy], values: Integers, bound: int, first: int = 0
    ) -> tuple[Integers, int]:
        """Return ``values`` times C_i along each axis from ``first`` on, and a bound on that.

        ``bound``: a bound on the sum of ``|values|`` along those axes.
        """
        for axis, own in enumerate(strategies, first):
            # a bound on every intermediate sum, so that 64 bits are used only where they suffice
            bound *= own.growth
            values = own.contrast(values.astype(exact_type(bound)), axis)
        return values, bound

    def multiplied(self, T: Subset, values: Integers, bound: int) -> Integers:
        """Return ``s_T`` times integers of at most ``bound``, as a flat array."""
        s = int(self.multipliers[T])
        # Flatten before multiplying: numpy turns 0-d arrays of Python integers into scalars, and
        # those into 64 bits, which could overflow.
        return values.astype(exact_type(bound * s)).reshape(-1) * s

    def noisy(self, T: Subset, marginal: Counts, noise: Counts) -> Integers:
        """Return the exact answer on T's counts plus noise, in exact integers."""
        return self.added(self.answer(T, marginal), noise)

    def added(self, answer: Integers, noise: Counts) -> Integers:
        """Return an answer, or a part of it, plus noise, in exact integers."""
        if answer.dtype not in (np.int64, object) or noise.dtype != np.int64:
            raise GaussNoiseError(
                f"release: expected exact integers, got {answer.dtype} and {noise.dtype}"
            )
        if answer.dtype == np.int64 and max(int(noise.max()), -int(noise.min())) < MOST_SUM:
            return answer + noise
        return answer.astype(object) + noise.astype(object)

    def decode(self, T: Subset, noisy: Integers, unit: int = 1) -> Array:
        """Return the residual of T, which its own margins do not determine, from its noisy answer.

        The shape is that of T's table; the sum along every axis is zero.

        ``unit``: a factor of the answer in addition to the query's own unit.
        """
        return self.decoded(T, self.divided(T, noisy, unit))

    def divided(self, T: Subset, noisy: Integers, unit: int = 1) -> Array:
        """Return a noisy answer, or a part of it, divided by multiplier and units, as floats."""
        s = int(self.multipliers[T]) * self.unit * unit
        # the dtype depends on private counts, so both dtypes must round in the same way
        if s >= 2**53:
            noisy = noisy.astype(object)
        # Quotient and remainder are rounded apart, so that large integers lose no more than floats
        # must.
        values = (noisy // s).astype(np.float64) + (noisy % s / s).astype(np.float64)
        return values * self.most if self.most != 1 else values

    def decoded(self, T: Subset, values: Array) -> Array:
        """Return the residual of T from the answers that :meth:`divided` returns."""
        own = self.strategies_of(T)
        return self.decoded_along(own, values.reshape([strategy.rows for strategy in own]))

    @staticmethod
    def decoded_along(
        strategies: Sequence[AbstractStrategy], values: Array, first: int = 0
    ) -> Array:
        """Return ``values`` decoded (multiplied by C_i⁺) along each axis from ``first`` on."""
        for axis, own in enumerate(strategies, first):
            values = own.decode(values, axis)
        return values

    def spread(self, values: Array, T: Subset, S: Subset, box: Box | None = None) -> Array:
        """Return ``values ⊗_{i∈S∖T} v_i``: the residual of T spread over the cells of S ⊇ T.

        v_i: strategy i's profile. With a box of S, only its cells are returned, from T's box.
        """
        rest = [i for i in S if i not in T]
        box = box or tuple([slice(0, self.strategies[i].size) for i in S])
        shape = shape_of(box)
        table = values.reshape([n if i in T else 1 for i, n in zip(S, shape, strict=True)])
        # Divide once for all attributes that are spread evenly: a single rounding. A public total
        # is divided instead of multiplied by a reciprocal, which keeps it exact.
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
        """Return weights on S's cells as weights on T's residual: transpose of :meth:`spread`."""
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
        """Return the number of cells over which these attributes spread a total evenly."""
        return float(math.prod(self.strategies[i].size for i in attributes if self._is_even(i)))


def measuring(
    kind: Type, orbits: Orbits, strategies: Sequence[AbstractStrategy]
) -> list[AbstractStrategy]:
    """Return the strategies in the sets of attributes of a type, from those of all classes."""
    T = next(orbits.members(kind))
    return [strategies[orbits.class_of(i)].in_set(T) for i in T]


def longest_row(
    orbits: Orbits, strategies: Sequence[AbstractStrategy], squares: Mapping[Type, int]
) -> int:
    """Return the largest squared length of the answers on one row.

    Attributes with the same contrasts in all sets count with their longest column. All categories
    of the others are compared.
    """
    free = sorted({k for kind in squares for k in kind if strategies[k].others})
    check_records(orbits, free, strategies)
    lengths = np.zeros([strategies[k].size for k in free], dtype=object)
    for kind, s in squares.items():
        part, T = np.array(s * orbits.size(kind), dtype=object), next(orbits.members(kind))
        for i in T:
            k = orbits.class_of(i)
            own = strategies[k].in_set(T)
            axes = [-1 if at == k else 1 for at in free]
            part = part * (own.lengths.astype(object).reshape(axes) if k in free else own.square)
        lengths = lengths + part
    return int(np.max(lengths))


def measured_integers(
    strategies: Sequence[AbstractStrategy], values: Mapping[Subset, float]
) -> int:
    """Return the number of integers measured on all subsets that have a value."""
    by_type = by_type_of(strategies, values)
    rows = [strategies[members[0]].rows for members in by_type.orbits.classes]
    return sum(
        by_type.orbits.size(kind) * math.prod(rows[k] for k in kind)
        for kind in by_type.values_by_type
    )


def by_type_of(
    strategies: Sequence[AbstractStrategy], values: Mapping[Subset, float], public: Subset = ()
) -> ByType:
    """Return the values by type, where subsets that can be exchanged share one type and value."""
    if isinstance(values, ByType):
        return values
    # a number without an upper end has a scale of its own
    kinds = [(own, i in public, i if is_sum(own) else -1) for i, own in enumerate(strategies)]
    special = {i: own for i, own in enumerate(strategies) if own.others}
    marks = {
        T: (value, *[id(special[i].in_set(T)) for i in T if i in special])
        for T, value in values.items()
    }
    orbits = Orbits(alike(marks if special else values, kinds))
    return ByType(orbits, {orbits.type_of(T): value for T, value in values.items()})


def _centred(
    strategies: Sequence[AbstractStrategy], measured: ByType
) -> tuple[AbstractStrategy, ...]:
    """Return the strategies, centred for each attribute that is not measured with another one."""
    # Contrasts of several attributes would lack a multiple of counts, which are not known.
    joint = {k for kind in measured.values_by_type if len(kind) > 1 for k in kind}
    alone = {i for k, c in enumerate(measured.orbits.classes) if k not in joint for i in c}
    return tuple(own.centred if i in alone else own for i, own in enumerate(strategies))


def sensitivity_in_units(
    orbits: Orbits,
    strategies: Sequence[AbstractStrategy],
    squares: Mapping[Type, int],
    neighbors: Moves,
    unit: int,
) -> int:
    """Return a bound on the squared change of all answers, if a row counts as ``unit`` parts.

    ``squares`` are the squared multipliers. If squares of numbers are summed, some units of a row
    are in cells of no row (:func:`moved_with_units_off`). If budgets grow with numbers, only
    answers without such a number are rounded.
    """
    moved = squared_sensitivity(orbits, strategies, squares, neighbors)
    off = units_off(strategies)
    if not off:
        return math.ceil(unit**2 * moved)
    apart = {*neighbors.numbers} if isinstance(neighbors, AddInProportion) else set[int]()
    farthest = sum(
        s
        * orbits.size(kind)
        * math.prod(own.farthest for own in measuring(kind, orbits, strategies))
        for kind, s in squares.items()
        if not any(apart.intersection(orbits.classes[k]) for k in kind)
    )
    return math.ceil(moved_with_units_off(Fraction(moved), Fraction(farthest), off, unit))


def moved_with_units_off(moved: Number, farthest: Number, off: int, unit: int) -> Number:
    """Return a bound on the squared change by rows of ``unit`` parts, some in cells of no row.

    Rows whose numbers are squared are products of curves (:class:`.SolvedStrategy`), except h =
    ``off`` units of two rows, which are in other cells. Let u = ``unit``, M = ``moved`` be the
    squared sensitivity without these, and V = ``farthest`` the squared length of a row in the cells
    with the longest columns. Then two rows differ by ``u √M + h √V`` at most, and one row is no
    longer; the square is at most ``u² M + h u (M + V) + h² V``.
    """
    return unit**2 * moved + off * unit * (moved + farthest) + off**2 * farthest


def units_off(strategies: Sequence[AbstractStrategy]) -> int:
    """Return how many units of two rows may lie off their curves; 0 if no squares are summed."""
    return max((own.off for own in strategies if isinstance(own, SolvedStrategy)), default=0)


def squared_sensitivity(
    orbits: Orbits,
    strategies: Sequence[AbstractStrategy],
    squares: Mapping[Type, int],
    neighbors: Moves,
) -> int | Fraction:
    """Return the largest squared change of all answers between neighbouring data sets.

    Neighbours differ by one row more or less, or by one row exchanged for another; for
    "replace-persons", by either.

    A row adds at most ``s_T² Π c_i`` to the squared length of answer T: s_T² is in ``squares``, and
    c_i is the squared length of the longest column of C_i. If C_i depends on T, the sum over T is
    computed for each category: :func:`longest_row`. That is so only if rows are added or removed.
    If they are exchanged, the answers on two rows have inner product ``s_T² Π_{i∈T} m_i``, where
    each m_i is between ℓ_i, the least inner product of two columns, and c_i. The sum over T is
    affine in every m_i, so that it is least at ends of the intervals: ℓ_i on some set D of
    attributes, c_i on the others. If there are too many sets D, a search proves a bound.

    Columns of a number with squares are those of numbers, see :class:`.SolvedStrategy`. The value
    is attained if all columns of an attribute have the same length and all pairs of
    them the same angle; otherwise it is an upper bound. Rows that are exchanged agree on public
    attributes, where m_i = c_i. This is an upper bound too if columns differ in length, since the
    rest of the answer is a squared length, times at most the longest of these columns.

    If budgets grow with numbers u_j without an upper end, the squared length of a row's answer is
    at most ``a + Σ_j b_j u_j²``, where a sums over the T without such a number. It is at most
    ``m (1 + Σ_j (u_j/t_j)²)`` for all u_j, with m the largest of a and b_j t_j²: coefficients are
    compared. Noise is calibrated to m, exactly.
    """
    if isinstance(neighbors, AddInProportion):
        return _in_proportion(orbits, strategies, squares, neighbors)
    public = set(public_of(neighbors))
    if any(0 < len(public.intersection(members)) < len(members) for members in orbits.classes):
        raise CovarianceError("release: expected no public attribute to be like a private one")
    used = sorted({k for kind in squares for k in kind})
    if neighbors != "add-remove" and any(strategies[k].others for k in used):
        raise CovarianceError(
            "release: expected one strategy for all sets of attributes where rows are exchanged"
        )
    orbits, strategies = (
        Orbits(tuple(orbits.classes[k] for k in used)),
        [strategies[k] for k in used],
    )
    squares = {tuple(used.index(k) for k in kind): s for kind, s in squares.items()}
    total = longest_row(orbits, strategies, squares)
    if neighbors == "add-remove":
        return total
    lengths = {
        kind: s * math.prod(strategies[k].square for k in kind) for kind, s in squares.items()
    }
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


def _in_proportion(
    orbits: Orbits,
    strategies: Sequence[AbstractStrategy],
    squares: Mapping[Type, int],
    relation: AddInProportion,
) -> Fraction:
    """Return the least s for squared lengths of rows ≤ ``s (1 + Σ (number / scale)²)``."""
    scales, numbers = dict(relation.scales), dict[int, int]()
    for k, members in enumerate(orbits.classes):
        if own := scales.keys() & set(members):
            if len(members) > 1 or not is_sum(strategies[k]):
                raise CovarianceError("release: expected sums that are measured apart from counts")
            numbers[k] = own.pop()
    parts: dict[int | None, dict[Type, int]] = {number: {} for number in (None, *numbers)}
    for kind, s in squares.items():
        within = [k for k in kind if k in numbers]
        if len(within) > 1:
            raise CovarianceError("release: expected no products of numbers without an upper end")
        parts[within[0] if within else None][kind] = s
    longest = {k: Fraction(longest_row(orbits, strategies, part)) for k, part in parts.items()}
    return max(
        value if k is None else value * scales[numbers[k]] ** 2 for k, value in longest.items()
    )
