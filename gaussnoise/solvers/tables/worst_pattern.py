"""The worst pattern, found by branch and bound if patterns are too many to check all.

A pattern D is the set of attributes in which two records differ. T is the set of attributes of a
measurement, with the share 1/variance. Attributes of a class are equivalent.
"""

import heapq
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from .orbits import Orbits, Type
from .patterns import products

Indices = NDArray[np.intp]

_MOST_PARTS = 2**22  # monomials in all terms of the sum; with more, terms are bounded one by one
_MOST_WORK = 5e7  # numbers that a search may read: a few seconds
_MOST_FACTORS = 6  # largest number of factors of a term for which boxes are searched
_MOST_SPLIT = 2.5e8  # numbers that the bound of one box may read
_MOST_ENTRIES = 2**22  # number of entries of second derivatives
_CLOSE = 1e-7  # gap at which the search ends, relative to the sum of all shares
_ROUNDING = 1e-11  # rounding errors, relative to the sum of all absolute terms
_CURVATURE = 1e-12  # rounding errors of eigenvalues, relative to the largest entry
_MOST_PAIRED = 24  # largest number of classes for which two are changed together
_AGAIN = 1e-8  # bounds are enlarged by this fraction, so that other machines can prove them
_MORE = 8.0  # factor on the work allowed to prove a bound that was proven before
_ROUNDS = 20  # number of rounds that fit a product aa' to a matrix


@final
@dataclass(frozen=True, eq=False)
class LeastSum:
    """Upper and lower bounds on ``min_D Σ_T share_T Π_{i∈T∩D} unequal_i``.

    A pattern D is a set of attributes in which two records differ; T is a measured attribute set.

    Attributes:
        patterns: shape (k, classes), the number of attributes of each class that differ, in order
            of increasing sums.
        values: shape (k,), the sums of these patterns.
        lower: a proven lower bound on all sums, rounding included.
    """

    patterns: Indices
    values: Array
    lower: float


def least_sum(
    orbits: Orbits,
    shares: Mapping[Type, float],
    unequal: Sequence[float],
    *,
    starts: Indices | None = None,
    enough: float | None = None,
    effort: float = 1.0,
) -> LeastSum:
    """Return bounds on ``min_D Σ_T share_T Π_{i∈T∩D} unequal_i``, found by branch and bound.

    A pattern D is a set of attributes in which two records differ: only the number of them in each
    class matters. T runs over the measured attribute sets.

    Args:
        orbits: the classes.
        shares: by type, the share of each T of this type, nonnegative.
        unequal: a factor in [−1, 1] of each class; 1 for attributes that never differ.
        starts: further patterns from which descents start, shape (k, classes).
        enough: the search ends when it has proven that no sum is below this number, or has found a
            smaller sum; by default, it ends close to the least sum.
        effort: the allowed work, as a multiple of the usual; with 0, patterns are found by descent
            only, and the lower bound is coarse.
    """
    total = math.fsum(share * orbits.size(T) for T, share in shares.items())
    if not total > 0:
        nothing = np.zeros((1, len(unequal)), dtype=np.intp)
        return LeastSum(nothing, np.zeros(1), 0.0)
    coarse = math.fsum(
        share * orbits.size(T) * _least_product([unequal[k] for k in T])
        for T, share in shares.items()
    )
    coarse -= _ROUNDING * total
    sizes = [
        0 if factor == 1 else len(m) for factor, m in zip(unequal, orbits.classes, strict=True)
    ]
    most = max(map(len, shares))
    terms = _Sum(orbits, {T: share / total for T, share in shares.items()}, unequal)
    wanted = None if enough is None else enough / total
    search = _Search(terms, np.array(sizes, dtype=np.intp), wanted)
    search.descend(starts)
    lower = coarse
    small = most <= _MOST_FACTORS and len(shares) << most <= _MOST_PARTS
    if effort > 0 and small and search.work <= _MOST_SPLIT:
        lower = max(lower, search.bound(effort * _MOST_WORK) * total)
    found = sorted(search.known.items(), key=lambda item: item[1])
    return LeastSum(
        np.array([pattern for pattern, _ in found], dtype=np.intp),
        np.array([value for _, value in found]) * total,
        lower,
    )


def searched_move(
    orbits: Orbits,
    shares: Mapping[Type, float],
    unequal: Sequence[float],
    claimed: float | None = None,
) -> float:
    """Return a proven bound on ``max_D 2 Σ_T share_T (1 − Π_{i∈T∩D} unequal_i)``.

    The maximum is the largest squared change of the measurements by a replaced record. A pattern D
    is a set of attributes in which two records differ, and T runs over the measured attribute sets.

    Args:
        orbits: the classes.
        shares: by type, the share of each T of this type, nonnegative.
        unequal: a factor in [−1, 1] of each class.
        claimed: a bound that was found before. The search then proves this bound, with more work
            allowed. By default, a new bound is returned. It is slightly enlarged, so that other
            machines can prove it too.
    """
    total = math.fsum(share * orbits.size(T) for T, share in shares.items())
    if claimed is None:
        return 2 * (total - least_sum(orbits, shares, unequal).lower) * (1 + _AGAIN)
    enough = total - claimed / 2 * (1 - _ROUNDING)
    return 2 * (total - least_sum(orbits, shares, unequal, enough=enough, effort=_MORE).lower)


def _least_product(factors: Sequence[float]) -> float:
    """Return a lower bound on the product of any subset of the factors, all in [−1, 1]."""
    return min(min(factors, default=1.0), math.prod(factors))


class _Sum:
    """The sum that the search minimises, as a function of how many attributes differ by class."""

    # f(j) = Σ_T share_T Π_{k∈T} p_{k,t}(j_k) over the measured types T, t attributes of class k.
    # p_{k,t}(j), a polynomial in j, is the coefficient of z^t in (1 + ρ_k z)^j (1 + z)^{m_k − j}.
    def __init__(
        self, orbits: Orbits, shares: Mapping[Type, float], unequal: Sequence[float]
    ) -> None:
        self.count = len(orbits.classes)
        self.degree = max(map(len, shares))
        sizes = [len(members) for members in orbits.classes]
        self._values = np.zeros((self.count, max(sizes, default=0) + 1, self.degree + 1))
        self._growth = np.zeros((self.count, self.degree + 1, self.degree + 1))
        powers = np.arange(1, self.degree + 1)
        for k, (size, factor) in enumerate(zip(sizes, unequal, strict=True)):
            self._values[k, : size + 1] = products(size, self.degree, 1.0, factor)
            # the series of log((1 + z)/(1 + ρz)): its powers give p with fewer unequal attributes
            series = np.concatenate([[0.0], (-1.0) ** (powers + 1) * (1 - factor**powers) / powers])
            power = np.eye(1, self.degree + 1)[0]
            for a in range(self.degree + 1):
                self._growth[k, a] = power
                power = np.convolve(power, series)[: self.degree + 1] / (a + 1)
        grouped: dict[tuple[int, ...], list[tuple[tuple[int, ...], float]]] = defaultdict(list)
        for T, share in shares.items():
            counts = Counter(T)
            grouped[tuple(counts.values())].append((tuple(counts), share))
        self.groups = [
            (
                np.array([classes for classes, _ in terms], dtype=np.intp).reshape(len(terms), -1),
                np.array(counts, dtype=np.intp),
                np.array([share for _, share in terms]),
            )
            for counts, terms in grouped.items()
        ]

    def value(self, pattern: Indices) -> float:
        """Return the sum over all measured types at one pattern."""
        at = self._values[np.arange(self.count), pattern]
        return sum(
            float(shares @ at[classes, counts].prod(axis=1))
            for classes, counts, shares in self.groups
        )

    def along(self, pattern: Indices, k: int, size: int) -> Array:
        """Return the sums for 0, …, ``size`` differing attributes of class k."""
        at = self._values[np.arange(self.count), pattern]
        rest = np.zeros(self.degree + 1)
        for classes, counts, shares in self.groups:
            own = classes == k
            factors = np.where(own, 1.0, at[classes, counts])
            rest += np.bincount(
                (own * counts).sum(axis=1), shares * factors.prod(axis=1), self.degree + 1
            )
        return self._values[k, : size + 1] @ rest

    @cached_property
    def monomials(self) -> "_Monomials":
        """All monomials that divide the monomial of any term, in one variable per class."""
        rows = [
            _padded(classes[:, np.repeat(np.arange(len(counts)), powers)], self)
            for classes, counts, _ in self.groups
            for powers in _powers(counts)
        ]
        table, places = _distinct(np.vstack(rows), self.count)
        ends = np.cumsum([len(part) for part in rows])[:-1]
        self._places = np.split(places, ends)
        return _Monomials(table, self.count)

    def around(self, low: Indices, high: Indices) -> tuple[Array, float]:
        """Return the sum's coefficients in y at ``high − (high − low) y``, and their total size."""
        width = (high - low).astype(np.float64)
        at = self._values[np.arange(self.count), high]
        local = np.zeros((self.count, self.degree + 1, self.degree + 1))
        for t in range(self.degree + 1):
            for a in range(t + 1):
                for u in range(a, t + 1):
                    local[:, t, a] += at[:, t - u] * self._growth[:, a, u]
                local[:, t, a] *= width**a
        monomials = self.monomials
        coefficients, size = np.zeros(len(monomials.table)), 0.0
        places = iter(self._places)
        for classes, counts, shares in self.groups:
            for powers in _powers(counts):
                parts = shares * local[classes, counts, powers].prod(axis=1)
                coefficients += np.bincount(next(places), parts, len(coefficients))
                size += float(np.abs(parts).sum())
        # the size is the sum of all absolute terms, to which rounding errors are relative
        return coefficients, size


def _powers(counts: Indices) -> list[Indices]:
    """Return all tuples of powers, from zero up to the entries of ``counts``."""
    return [
        np.array(powers, dtype=np.intp)
        for powers in itertools.product(*(range(t + 1) for t in counts.tolist()))
    ]


def _padded(rows: Indices, terms: _Sum) -> Indices:
    """Return sorted rows of classes, padded to the degree of the sum."""
    full = np.full((len(rows), terms.degree), terms.count, dtype=np.intp)
    full[:, : rows.shape[1]] = rows
    return np.sort(full, axis=1)


def _distinct(rows: Indices, count: int) -> tuple[Indices, Indices]:
    """Return the distinct rows, and for each given row the index of its distinct row."""
    width = rows.shape[1]
    if (count + 1) ** width < 2**63:
        codes = rows @ (count + 1) ** np.arange(width)
        _, first, places = np.unique(codes, return_index=True, return_inverse=True)
        return rows[first], places
    distinct, places = np.unique(rows, axis=0, return_inverse=True)
    return distinct, places.reshape(-1)


class _Monomials:
    """Monomials in one variable y_k per class, and bounds on sums of them for y in a unit box."""

    # table, (n, degree): the classes of each product, sorted, padded with ``count``
    def __init__(self, table: Indices, count: int) -> None:
        self.table, self.count = table, count
        self.degree = table.shape[1]

    @cached_property
    def _second(self) -> tuple[Indices, Indices, Indices, Indices, int]:
        """The second derivatives: monomials, two variables, indices and number of the rests."""
        parts = []
        for a, b in itertools.permutations(range(self.degree), 2):
            rows = np.flatnonzero((self.table[:, [a, b]] < self.count).all(axis=1))
            rest = [c for c in range(self.degree) if c not in (a, b)]
            parts.append(
                (rows, self.table[rows, a], self.table[rows, b], self.table[rows][:, rest])
            )
        rows, first, second, rest = (np.concatenate(part) for part in zip(*parts, strict=True))
        # the rest is the index of the product of the other variables
        left, places = _distinct(rest, self.count)
        return rows, first, second, places, len(left)

    @cached_property
    def _lower(self) -> tuple["_Monomials", Indices, Indices, Indices, Array]:
        """The distinct monomials with one factor removed, and the places where it was removed."""
        parts = []
        sizes = (self.table < self.count).sum(axis=1)
        for a in range(self.degree):
            rows = np.flatnonzero(self.table[:, a] < self.count)
            parts.append((rows, self.table[rows, a], np.delete(self.table[rows], a, axis=1)))
        rows, taken, rest = (np.concatenate(part) for part in zip(*parts, strict=True))
        left, places = _distinct(rest, self.count)
        # monomial, class of the factor, remaining monomial, and 1/degree of the monomial
        return _Monomials(left, self.count), rows, taken, places, 1 / sizes[rows]

    def work(self, free: int) -> float:
        """Return how many numbers a bound for ``free`` classes reads; infinity if too many."""
        if len(self.table) * self.degree * (self.degree - 1) > _MOST_ENTRIES:
            return math.inf
        matrices = self._second[-1] if self.degree > 1 else 0
        return matrices * free**3 + 100.0 * self.table.size

    def split_work(self, free: int) -> float:
        """Return how many numbers the bounds of monomials of lower degree read in total."""
        if self.degree < 3:
            return 0.0
        lower = self._lower[0]
        return free * (lower.work(free) + lower.split_work(free))

    def bound(
        self, coefficients: Array, low: Array, free: Indices, widths: Array, enough: float
    ) -> tuple[float, Array, Array, float]:
        """Return a lower bound for low <= y <= 1, its point, scores for a split, and its work."""
        # y_k is 0 on classes that are not free; a bound of at least ``enough`` needs no improvement
        value, y, doubts = self._convex(coefficients, low, free)
        work = self.work(len(free))
        if value >= enough or not 0 < self.split_work(len(free)) <= _MOST_SPLIT:
            return value, y, doubts, work
        # q(y) = q(0) + Σ y_k R_k(y) with R_k of one degree less. Since y_k is zero or at least
        # 1/width_k, a term is zero or at least y_k times the bound of R_k for y_k >= 1/width_k.
        lower, rows, taken, places, shares = self._lower
        splits = [float(coefficients[(self.table == self.count).all(axis=1)].sum())]
        slopes = np.zeros(self.count)
        for k in free:
            own = taken == k
            parts = coefficients[rows[own]] * shares[own]
            rest = np.bincount(places[own], parts, len(lower.table)).astype(np.float64)
            at_least = low.copy()
            at_least[k] = max(low[k], 1 / widths[k])
            slopes[k], _, _, more = lower.bound(rest, at_least, free, widths, 0.0)
            splits.append(min(float(slopes[k]), float(slopes[k] * low[k])))
            work += more
        if (slopes < 0).any():
            doubts = np.maximum(-slopes, 0.0) + 1e-3 * doubts
        return max(value, math.fsum(splits)), y, doubts, work

    def _convex(self, coefficients: Array, low: Array, free: Indices) -> tuple[float, Array, Array]:
        """Return a lower bound on the sum, a y near its minimum, and the gap at y by class."""
        # q(y) − ½ Σ d_k y_k (1 − y_k) is convex and nowhere above q if d = Σ d_M with
        # M + diag(d_M) ⪰ 0 for all matrices M, the coefficients of the second derivative of q
        bend = np.zeros(self.count)
        if len(free) and self.degree > 1:
            bend[free] = self._bend(coefficients, free)
        kept = coefficients != 0
        table, weights = self.table[kept], coefficients[kept]
        size = float(np.abs(weights).sum()) or 1.0
        others = [np.delete(table, a, axis=1) for a in range(self.degree)]

        def below(y: Array) -> tuple[float, Array]:
            values = np.append(y, 1.0)
            slope = np.zeros(self.count + 1)
            for a, rest in enumerate(others):
                slope += np.bincount(
                    table[:, a], weights * values[rest].prod(axis=1), self.count + 1
                )
            value = float(weights @ values[table].prod(axis=1)) - 0.5 * bend @ (y * (1 - y))
            return float(value / size), (slope[:-1] - 0.5 * bend * (1 - 2 * y)) / size

        high = np.zeros(self.count)
        high[free] = 1.0
        y = np.clip(np.full(self.count, 0.3), low, high)
        if len(free):
            from scipy.optimize import minimize

            y = minimize(
                below,
                y,
                jac=True,
                bounds=np.column_stack([low, high]),
                method="L-BFGS-B",
                options={"maxiter": 300, "ftol": 1e-15, "gtol": 1e-9},
            ).x
            y = np.clip(y, low, high)
        value, slope = below(y)
        # A convex function is above its tangent, whose least value on the box is at a corner. So
        # the bound holds even if y is not the exact minimum.
        tangent = value + float(np.minimum(slope * (low - y), slope * (high - y)).sum())
        return tangent * size, y, bend * y * (1 - y) / 2

    def _bend(self, coefficients: Array, free: Indices) -> Array:
        """Return d >= 0 for the free classes that makes the sum plus ``½ Σ d_k y_k²`` convex."""
        rows, first, second, places, count = self._second
        position = np.full(self.count, -1)
        position[free] = np.arange(len(free))
        own = (position[first] >= 0) & (position[second] >= 0) & (coefficients[rows] != 0)
        matrices = np.zeros((count, len(free), len(free)))
        where = places[own], position[first[own]], position[second[own]]
        np.add.at(matrices, where, coefficients[rows[own]])
        # the sum of vectors d_M with M + diag(d_M) ⪰ 0, for the second derivative's coefficients M
        return _diagonals(matrices[matrices.any(axis=(1, 2))]).sum(axis=0)


def _diagonals(matrices: Array) -> Array:
    """Return for each M a vector d >= 0 such that ``M + diag(d)`` is positive semidefinite."""
    count = matrices.shape[1]
    own = np.einsum("nii->ni", matrices)
    squares = np.maximum(own, 0.0)  # squares of the entries of a, fitted to off-diagonal row sums
    sums = matrices.sum(axis=2) - own
    for _ in range(_ROUNDS):
        rows = np.maximum(sums + squares, 0.0)
        totals = rows.sum(axis=1, keepdims=True)
        squares = np.divide(rows**2, totals, out=np.zeros_like(rows), where=totals > 0)
    # d is small if M is nearly a product aa'
    choices = []
    for start in (np.zeros_like(own), np.maximum(squares - own, 0.0)):
        least = np.linalg.eigvalsh(matrices + start[:, :, None] * np.eye(count))[:, 0]
        margin = (
            _CURVATURE * count * (np.abs(matrices).max(axis=(1, 2), initial=0.0) + start.max(1))
        )
        choices.append(start + (np.maximum(-least, 0.0) + margin)[:, None])
    even, fitted = choices
    return np.where((even.sum(axis=1) < fitted.sum(axis=1))[:, None], even, fitted)


class _Search:
    """A branch-and-bound search for the pattern of differing attributes with the least sum."""

    def __init__(self, terms: _Sum, sizes: Indices, enough: float | None) -> None:
        self._terms, self._sizes, self._enough = terms, sizes, enough
        self._moving: list[int] = np.flatnonzero(sizes).tolist()
        self.known: dict[tuple[int, ...], float] = {}

    @property
    def work(self) -> float:
        """The number of numbers that one bound on the box of all patterns reads."""
        return self._terms.monomials.work(len(self._moving))

    @property
    def best(self) -> float:
        """The least sum found so far."""
        return min(self.known.values())

    @property
    def wanted(self) -> float:
        """The bound at which a box is not split further; −∞ once a sum is below ``enough``."""
        if self._enough is None:
            return self.best - _CLOSE
        return -math.inf if self.best < self._enough else self._enough

    def descend(self, starts: Indices | None) -> None:
        """Lower the sum from ``starts``, all attributes and no attributes; record the patterns."""
        first = np.vstack([self._sizes, np.zeros_like(self._sizes)])
        for start in first if starts is None else np.vstack([first, starts]):
            self._descend_from(np.minimum(start, self._sizes))

    def _descend_from(self, pattern: Indices) -> None:
        """Lower the sum while a change of one or two classes helps, and record the patterns."""
        value = self._terms.value(pattern)
        while True:
            pattern, value = self._one_by_one(pattern, value)
            if tuple(pattern.tolist()) in self.known:
                return
            self.known[tuple(pattern.tolist())] = value
            near = [] if len(self._sizes) > _MOST_PAIRED else self._steps(pattern)
            others = [self._one_by_one(other, self._terms.value(other)) for other in near]
            self.known |= {tuple(other.tolist()): low for other, low in others}
            best = min(others, key=lambda pair: pair[1], default=(pattern, math.inf))
            if best[1] >= value - _ROUNDING:
                return
            pattern, value = best

    def _one_by_one(self, pattern: Indices, value: float) -> tuple[Indices, float]:
        """Minimise the sum over one class after another; return the last pattern and its sum."""
        pattern, moving = pattern.copy(), True
        while moving:
            moving = False
            for k in self._moving:
                values = self._terms.along(pattern, k, int(self._sizes[k]))
                place = int(values.argmin())
                if values[place] < value - _ROUNDING:
                    pattern[k], value, moving = place, float(values[place]), True
        return pattern, value

    def _steps(self, pattern: Indices) -> list[Indices]:
        """Return patterns with one class changed by ±1, and a second class changed for the best."""
        steps = []
        for k in self._moving:
            for moved in (pattern[k] - 1, pattern[k] + 1):
                if 0 <= moved <= self._sizes[k]:
                    other = pattern.copy()
                    other[k] = moved
                    # all sums that a change of a second class m can give: the least is taken
                    values = [
                        (self._terms.along(other, m, int(self._sizes[m])), m)
                        for m in self._moving
                        if m != k
                    ]
                    if values:
                        least, m = min(values, key=lambda pair: float(pair[0].min()))
                        other[m] = int(least.argmin())
                    steps.append(other)
        return steps

    def bound(self, most: float) -> float:
        """Return a proven lower bound on all sums, as close as ``most`` work allows."""
        boxes: list[tuple[float, int, Indices, Indices, Array, Array]] = []
        spent, made = 0.0, 0

        def add(low: Indices, high: Indices, parent: float) -> None:
            nonlocal spent, made
            made += 1
            widths = (high - low).astype(np.float64)
            free = np.flatnonzero(high > low)
            coefficients, size = self._terms.around(low, high)
            wanted = self.wanted + _ROUNDING * size
            value, y, doubts, work = self._terms.monomials.bound(
                coefficients, np.zeros(len(low)), free, widths, wanted
            )
            spent += work
            at = high - widths * y
            # the sum may be small at the pattern nearest to the minimum of the convex minorant
            nearest = np.clip(np.rint(at), low, high).astype(np.intp)
            if self._terms.value(nearest) < self.best:
                self._descend_from(nearest)
            # the bound of the box that was split holds for its parts, too
            bound = max(value - _ROUNDING * size, parent)
            doubts = np.where(high > low, doubts + 1e-6 * np.abs(at - nearest), -1.0)
            heapq.heappush(boxes, (bound, made, low, high, at, doubts))

        add(np.zeros_like(self._sizes), self._sizes, -math.inf)
        while True:
            bound, _, low, high, at, doubts = boxes[0]
            if bound >= self.wanted or spent >= most or doubts.max() < 0:
                return min(bound, self.best - _ROUNDING)
            heapq.heappop(boxes)
            k = int(doubts.argmax())
            # split the class for which the minorant is farthest below, at the minorant's minimum
            cut = min(max(math.floor(at[k]), low[k]), high[k] - 1)
            below, above = high.copy(), low.copy()
            below[k], above[k] = cut, cut + 1
            add(low, below, bound)
            add(above, high, bound)
