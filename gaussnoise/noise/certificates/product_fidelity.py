"""The lower bound that a product measure proves for products of queries, without listed records."""

import copy
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import EPS, Array
from domains.tables.bases import AbstractBase

from ...numerics.norms import dual_power
from ...numerics.rounding import CANCELLATION
from ...solvers.tables.alone import differences
from ...solvers.tables.orbits import Type
from ...solvers.tables.strategies import is_exchangeable
from ...solvers.tables.workload import Table, Workload
from .pair_weights import pair_trace

if TYPE_CHECKING:
    from .products import ProductCertificate

Subset = tuple[int, ...]
Places = NDArray[np.intp]
Choice = tuple[tuple[int, int], ...]  # pairs of a class and the index of one of its bases
# pairs: an attribute, and whether the direction between its two parts is meant, or all others
Parts = tuple[tuple[int, bool], ...]

# Numbers of directions per attribute that stay coupled, tried in this order.
_KEPT = (10**9, 64, 48, 32, 24, 16, 8, 4, 2, 1, 0)
_DENSE = 700  # largest number of rows of a matrix whose eigenvalues are computed
# largest number of rows of a dense matrix that is left after the largest tables are eliminated
_MOST_LEFT = 2500
_MOST_CHOICES = 16  # if all choices of bases together are too large, up to this many are tried
_MOST_CELLS = 2**24  # largest number of cells of a table that is eliminated
# The part of couplings that removed rows hold, relative to a symmetric root: 0.3 to 0.5 are best
# for three- and two-way tables of prefixes, by 5·10⁻⁴ of the bound; 1 is best for one table.
_TILT = 0.4
_THIN = 1e-13  # eigenvalues below this fraction of the largest one may be rounding
SLACK = 1e-9  # far more than rounding can add to the sums below

# √k = (1/2π) ∫ e^{s/2} log(1 + k e^{−s}) ds. The trapezoidal rule with this step has a relative
# error of at most 4/(e^a − 1), a = 2π²/step, by Poisson summation: in units of √k, the transform of
# the integrand is 2π at 0, and below π/cosh πω at the multiples ω of 2π/step. The integrand beyond
# the range is positive, and omitted. So the rule divided by 1 + 4/(e^a − 1) is below √k.
_STEP = 1.25
_EXCESS = 4 / math.expm1(2 * math.pi**2 / _STEP)
_ENDS = (-42.0, 22.0)  # range of s, relative to the logarithm of the trace


@dataclass(frozen=True, eq=False)
class _Side:
    """The matrix ``Λ^½ G Λ^½`` of one attribute, in a basis whose first vector is √λ.

    λ are the weights of the attribute's categories, Λ is their diagonal matrix, and G is the Gram
    matrix of one base: of one set of queries on this attribute.

    Attributes:
        own: the (√λ, √λ) entry of this matrix.
        cross: the rest of its first column, shape (k,).
        inner: the matrix without its first row and column, shape (k, k).
        lead: 1 if the first of the k directions separates two parts of the categories, else 0.
        apart: the trace of the square root of the block that :meth:`split` removed.
        is_scalar: whether ``cross`` is exactly zero, and ``inner`` exactly a multiple of the
            identity; ``inner`` is then stored as a matrix of one entry.
    """

    own: float
    cross: Array
    inner: Array
    apart: float = 0.0
    is_scalar: bool = False
    lead: int = 0

    @cached_property
    def whole_root(self) -> float:
        """A lower bound on the trace of the square root of the attribute's matrix."""
        if self.is_scalar:
            return math.sqrt(self.own) + len(self.cross) * math.sqrt(self.inner[0, 0])
        return _root_trace(
            np.block(
                [[np.array([[self.own]]), self.cross[None, :]], [self.cross[:, None], self.inner]]
            )
        )

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """The eigenvalues, tiny ones set to zero, and eigenvectors of ``inner[lead:, lead:]``."""
        values, axes = np.linalg.eigh(self.inner[self.lead :, self.lead :])
        # directions that may be rounding are set to zero, which only lowers the bound
        return np.where(values > _THIN * values.max(initial=0.0), values, 0.0), axes

    @cached_property
    def rotated(self) -> "_Side":
        """The matrix with ``inner`` diagonal beyond ``lead``, and strongest couplings first."""
        lead, (values, axes) = self.lead, self.spectrum
        couplings = np.column_stack([self.cross[lead:], self.inner[lead:, :lead]])
        couplings = np.where(values[:, None] > 0, axes.T @ couplings, 0.0)
        strength = np.square(couplings).sum(axis=1)
        order = np.argsort(
            -np.divide(strength, values, out=np.zeros_like(strength), where=values > 0),
            kind="stable",
        )
        inner = np.diag(np.concatenate([np.diag(self.inner)[:lead], values[order]]))
        inner[lead:, :lead] = couplings[order, 1:]
        inner[:lead, lead:] = couplings[order, 1:].T
        cross = np.concatenate([self.cross[:lead], couplings[order, 0]])
        return _Side(self.own, cross, inner, lead=lead)

    @property
    def uncoupled(self) -> "_Side":
        """The attribute's matrix with zeros in ``cross``, and no larger trace of its root."""
        # ``own`` is replaced by its Schur complement, so that the trace of the square root can only
        # become smaller. The other directions stay as they are, so that the matrices of several
        # bases can be added.
        values, axes = self.spectrum
        inner = (axes * values) @ axes.T
        squares = np.square(axes.T @ self.cross)
        explained = float((squares / np.where(values > 0, values, math.inf)).sum())
        own = self.own - explained * (1 + SLACK) - SLACK * self.own
        return _Side(max(own, 0.0), np.zeros_like(self.cross), (inner + inner.T) / 2)

    def split(self, kept: int) -> "_Side":
        """Return the matrix with ``kept`` directions beyond ``lead``; ``apart`` counts the rest."""
        # Write the matrix M as Y Y'. The blocks of Y that couple the removed directions to √λ and
        # to the other directions are dropped: this pinching can only lower the nuclear norm of Y.
        # With the symmetric root of M as Y, one table alone would lose nothing. But other tables
        # add to the entry of √λ; couplings then matter less, and less is lost if the removed rows
        # of Y hold a smaller part of them. Y = D⁻¹ (D M D)^½ has such rows, for a diagonal D with
        # small entries for the directions that are kept.
        end = 1 + self.lead + kept
        if end > len(self.cross):
            return self
        M = np.block(
            [[np.array([[self.own]]), self.cross[None, :]], [self.cross[:, None], self.inner]]
        )
        D = np.where(np.arange(len(M)) < end, _TILT, 1.0)
        values, axes = np.linalg.eigh(D[:, None] * M * D)
        blur = 4 * len(values) * EPS * max(values[-1], 0.0)
        root = (axes * np.sqrt(np.maximum(values - blur, 0.0))) @ axes.T
        left = np.square(1 / _TILT) * (1 - SLACK) * root[:end, :end] @ root[:end, :end]
        apart = float(np.trace(root[end:, end:])) * (1 - SLACK)
        side = _Side(
            float(left[0, 0]), left[1:, 0], (left[1:, 1:] + left[1:, 1:].T) / 2, lead=self.lead
        )
        return replace(side.rotated, apart=apart)


class Blocks:
    """The second moment of a product measure, as blocks over pairs of attribute sets.

    Coordinates are multiplied by the roots of their weights; the largest table weight is one.
    """

    def __init__(self, witness: "ProductCertificate", workload: Workload) -> None:
        self.workload = workload
        shares = witness.shares / (math.fsum(witness.shares) * (1 + CANCELLATION))
        power = dual_power(witness.p)
        weights = (
            workload.weights**2 * (shares / (workload.table_counts * workload.queries)) ** power
        )
        # attributes with weights of pairs of categories are in no block: see `_apart`
        self.paired = {k: pairs for k, pairs in enumerate(witness.pairs) if len(pairs)}
        tables = list(zip(workload.tables, weights.tolist(), strict=True))
        self.tables = [one for one in tables if not any(k in self.paired for k, _ in one[0])]
        self.sides = [
            _class_sides(bases, weights / math.fsum(weights), upper)
            for bases, weights, upper in zip(
                workload.bases, witness.cell_weights, witness.parts, strict=True
            )
        ]
        self.coupled = [
            k
            for k, (sides, members) in enumerate(
                zip(self.sides, workload.orbits.classes, strict=True)
            )
            if members and k not in self.paired and not all(side.is_scalar for side in sides)
        ]
        self.patterns = None
        if witness.protected == "replace":
            weights = witness.pattern_weights
            self.patterns = witness.patterns, weights / (math.fsum(weights) * (1 + CANCELLATION))
        self.laws = [
            _pair_correlations(weights, upper, sides[0].lead)
            for weights, upper, sides in zip(
                witness.cell_weights, witness.parts, self.sides, strict=True
            )
        ]
        self._moved: dict[tuple[Type, Type], float] = {}
        self.apart = math.fsum(self._apart(k, tables) for k in self.paired)

    def _apart(self, k: int, tables: list[tuple[Table, float]]) -> float:
        """Return the trace of the root for class k, whose tables have one attribute each."""
        # In a random pair of records, the values of such an attribute are independent of all
        # others, and so are the changes of its tables' answers. These have mean zero, so they are
        # not correlated with those of other tables, and the trace is a sum. If the pattern has the
        # attribute, the weights of pairs are the distribution of its values; else these are equal.
        if self.patterns is None:
            return 0.0
        patterns, likely = self.patterns
        members = len(self.workload.orbits.classes[k])
        often = float(likely @ patterns[:, k]) / members * (1 - CANCELLATION)
        asked = {b: weight for table, weight in tables for i, b in table if i == k}
        bases = tuple(self.workload.bases[k][b] for b in asked)
        return members * math.sqrt(often) * pair_trace(bases, [*asked.values()], self.paired[k])

    def moved(self, T: Type, between: Type) -> float:
        """Return κ_T, the mean squared change of the measurement of attribute set T.

        The change is that between a random pair of records. It is
        ``κ_T = 2 Σ_D π_D (1 − Π_{i∈T∩D} r_i)``, where the records differ in the attributes D with
        probability π_D, and r_i is the correlation of their values of attribute i. Under
        "add-remove" it is 1. In the classes of ``between``, r_i is the correlation along the
        direction between two parts of the categories; in the rest of T, along all others.
        """
        if self.patterns is None:
            return 1.0
        if (T, between) not in self._moved:
            patterns, weights = self.patterns
            same = np.ones(len(patterns))
            for k, members in enumerate(self.workload.moving.classes):
                lead, other = self.laws[k]
                s, t, m = between.count(k), T.count(k), len(members)
                column = [
                    sum(
                        math.comb(s, i)
                        * math.comb(t - s, j)
                        * math.comb(m - t, d - i - j)
                        * lead**i
                        * other**j
                        for i in range(min(s, d) + 1)
                        for j in range(min(t - s, d - i) + 1)
                    )
                    / math.comb(m, d)
                    for d in range(m + 1)
                ]
                same = same * np.array(column)[patterns[:, k]]
            moves = np.maximum(2 * (1 - same) - CANCELLATION, 0.0)
            self._moved[T, between] = float(weights @ moves)
        return self._moved[T, between]

    def split(self, kept: int) -> Self:
        """Return these blocks without some couplings, for a lower bound.

        At most ``kept`` directions of each attribute stay coupled; a direction is an axis in the
        space of its categories. Attributes with several bases keep all their couplings, or none if
        ``kept`` is zero.
        """
        other = copy.copy(self)
        other.sides = []
        for k, sides in enumerate(self.sides):
            if k not in self.coupled or (kept and len(sides) > 1):
                other.sides.append(sides)
            elif len(sides) == 1:
                other.sides.append([sides[0].rotated.split(kept)])
            else:
                other.sides.append([side.uncoupled for side in sides])
        return other

    def restricted(self, choice: Mapping[int, int]) -> Self:
        """Return the blocks of those tables that use the chosen base, for each class in ``choice``.

        A base is a set of queries on one attribute. ``choice`` maps a class of equivalent
        attributes to the index of one of its bases.
        """
        other = copy.copy(self)
        kept = [
            (table, w) for table, w in self.tables if all(choice.get(k, b) == b for k, b in table)
        ]
        other.tables = [
            (tuple((k, 0 if k in choice else b) for k, b in table), w) for table, w in kept
        ]
        other.sides = [
            [sides[choice[k]]] if k in choice else sides for k, sides in enumerate(self.sides)
        ]
        return other

    def containing(self, R: Type) -> dict[Choice, float]:
        """Return the total weight of the tables with an attribute set of type R, by their bases.

        The type of an attribute set lists the class of each attribute. A base is a set of queries
        on one attribute; keys name the bases of the classes in R. An attribute outside R multiplies
        the weight by its entry ``own``.
        """
        sums: dict[Choice, float] = {}
        for table, weight in self.tables:
            S = tuple(k for k, _ in table)
            if any(S.count(k) < R.count(k) for k in set(R)):
                continue
            bases, value = dict(table), weight
            for k in set(S):
                rest = S.count(k) - R.count(k)
                # number of ways to choose the attributes of S outside R, and the factor of each
                value *= math.comb(len(self.workload.orbits.classes[k]) - R.count(k), rest)
                value *= self.sides[k][bases[k]].own ** rest
            choice = tuple(sorted((k, bases[k]) for k in set(R)))
            sums[choice] = sums.get(choice, 0.0) + value
        return sums

    def groups(self) -> "Iterator[tuple[float, _Group]]":
        """Yield pairs of a factor and a group of blocks that are coupled to no other group.

        The trace of the square root of all blocks is the sum over groups of factor times trace.
        """
        classes = self.workload.orbits.classes
        alone = {part for T in self.workload.residuals for part in self._types_of_uncoupled_sets(T)}
        for Q in sorted(alone):
            copies = math.prod(math.comb(len(classes[k]), Q.count(k)) for k in set(Q))
            sides = (self.sides[k][0] for k in Q)
            copies *= math.prod(
                side.apart if k in self.coupled else len(side.cross)
                for k, side in zip(Q, sides, strict=True)
            )
            if copies > 0:
                yield copies, _Group(self, Q)

    def _types_of_uncoupled_sets(self, T: Type) -> set[Type]:
        """Return the types of subsets of T that may be uncoupled from the other attributes."""
        never = [k for k in T if k not in self.coupled]
        rest = [k for k in T if k in self.coupled]
        chosen = itertools.chain.from_iterable(
            itertools.combinations(rest, j) for j in range(len(rest) + 1)
        )
        return {tuple(sorted((*never, *part))) for part in chosen}

    def fidelity(self) -> tuple[float, bool]:
        """Return a lower bound on the trace of the second moment's square root.

        Return also whether all couplings between blocks were kept.
        """
        traces, tight = self._coupled_fidelity()
        return self.apart + traces, tight

    def _coupled_fidelity(self) -> tuple[float, bool]:
        """Return :meth:`fidelity` without the attributes that have weights of pairs."""
        traces, tight = self._split_trace()
        if tight:
            return traces, True
        bounds = [traces]
        several = [k for k in self.coupled if len(self.sides[k]) > 1]
        choices = itertools.product(*(range(len(self.sides[k])) for k in several))
        for chosen in itertools.islice(
            choices, _MOST_CHOICES if several else 0
        ):  # use only the tables that ask for the chosen bases
            bounds.append(
                self.restricted(dict(zip(several, chosen, strict=True)))._split_trace()[0]
            )
        if self.patterns is None:  # take every table by itself: its second moment is a product
            roots = {
                (k, b): side.whole_root
                for k, sides in enumerate(self.sides)
                for b, side in enumerate(sides)
            }
            bounds.append(
                _root_trace_of_sum(
                    count * w * math.prod(roots[pair] for pair in table) ** 2
                    for (table, w), count in zip(
                        self.tables, self.workload.table_counts.tolist(), strict=True
                    )
                )
            )
        return max(bounds), False

    def _split_trace(self) -> tuple[float, bool]:
        """Return a lower bound on the trace of the root, and whether it keeps all couplings."""
        for kept in _KEPT:
            groups = list(self.split(kept).groups())
            if all(group.is_small for _, group in groups):
                return math.fsum(
                    copies * group.root_trace() for copies, group in groups
                ), kept == _KEPT[0]
        return 0.0, False

    def uncoupled(self) -> Array:
        """Return the trace of the root of one diagonal block, for each type of attribute set.

        The root is the matrix square root. All couplings are dropped, so that the sum over all
        attribute sets is a lower bound.
        """
        blocks = self.split(0)
        traces = dict.fromkeys(self.workload.residuals, 0.0)
        counts = self.workload.residual_counts
        for copies, group in blocks.groups():
            for T, trace in group.traces().items():
                traces[T] += copies * trace
        return np.array(list(traces.values())) / counts


class _Group:
    """The blocks of attribute sets Q ∪ T, for one set Q of uncoupled attributes and many T."""

    def __init__(self, blocks: Blocks, Q: Type) -> None:
        self.blocks, self.Q = blocks, Q
        classes = blocks.workload.orbits.classes
        self.kinds = {
            i: k
            for k in blocks.coupled
            for i in classes[k][Q.count(k) :]
            if len(blocks.sides[k][0].cross)
        }
        residuals = set(blocks.workload.residuals)
        most = max(map(len, residuals)) - len(Q)
        free = itertools.chain.from_iterable(
            itertools.combinations(sorted(self.kinds), j) for j in range(most + 1)
        )
        self.sets = [
            parts
            for T in free
            if self._type(T) in residuals
            for parts in itertools.product(*map(self._parts, T))
        ]
        self._coefficients: dict[Type, dict[Choice, float]] = {}

    def _type(self, T: Iterable[int]) -> Type:
        return tuple(sorted((*self.Q, *(self.kinds[i] for i in T))))

    def _parts(self, i: int) -> Parts:
        """Return (i, True) for i's direction between parts, (i, False) for its other directions."""
        side = self.blocks.sides[self.kinds[i]][0]
        between = ((i, True),) * side.lead
        return (*between, (i, False)) if len(side.cross) > side.lead else between

    def _dim(self, T: Parts) -> int:
        sides = ((self.blocks.sides[self.kinds[i]][0], between) for i, between in T)
        return math.prod(1 if between else len(side.cross) - side.lead for side, between in sides)

    def _moved(self, T: Parts) -> float:
        """Return the mean squared change of T's measurement between a random pair of records."""
        between = tuple(sorted(self.kinds[i] for i, is_between in T if is_between))
        return self.blocks.moved(self._type(_attributes(T)), between)

    def _coefficient(self, T: Parts, U: Parts) -> dict[Choice, float]:
        """Return the weights, by bases, of the Kronecker products that sum to block (T, U)."""
        R = self._type({*_attributes(T), *_attributes(U)})
        if R not in self._coefficients:
            never = [k for k in self.Q if k not in self.blocks.coupled]
            self._coefficients[R] = {
                choice: value
                * math.prod(self.blocks.sides[k][dict(choice)[k]].inner[0, 0] for k in never)
                for choice, value in self.blocks.containing(R).items()
            }
        scale = math.sqrt(self._moved(T) * self._moved(U))
        return {choice: scale * value for choice, value in self._coefficients[R].items()}

    @cached_property
    def largest(self) -> list[Parts]:
        """The attribute sets that no other set contains, without directions between two parts."""
        known = {frozenset(_attributes(T)) for T in self.sets}
        inside = {T for T in known if any(T < U for U in known)}
        return [
            T
            for T in self.sets
            if frozenset(_attributes(T)) not in inside and not any(between for _, between in T)
        ]

    @cached_property
    def left(self) -> list[Parts]:
        """The attribute sets inside a larger set, and those with a direction between two parts."""
        largest = set(self.largest)
        return [T for T in self.sets if T not in largest]

    @property
    def is_dense(self) -> bool:
        """Whether all blocks of the group together are a small matrix."""
        return sum(map(self._dim, self.sets)) <= _DENSE

    @property
    def is_uncoupled(self) -> bool:
        """Whether all blocks off the diagonal are zero."""
        return not any(
            side.lead or side.cross.any()
            for k in self.kinds.values()
            for side in self.blocks.sides[k]
        )

    @property
    def has_several(self) -> bool:
        """Whether any attribute has several bases, so that there are no common eigenvectors."""
        return any(len(self.blocks.sides[k]) > 1 for k in self.kinds.values())

    @property
    def is_small(self) -> bool:
        """Whether a bound on the trace of the matrix's square root takes seconds at most."""
        if self.is_uncoupled:
            return True
        if len(self.sets) > _MOST_LEFT:
            return False
        left = sum(map(self._dim, self.sets if self.has_several else self.left))
        return self.is_dense or (
            left <= _MOST_LEFT and max(map(self._dim, self.sets)) <= _MOST_CELLS
        )

    def root_trace(self) -> float:
        """Return a lower bound on the trace of the square root of the group's matrix."""
        if self.is_uncoupled:
            return math.fsum(self.traces().values())
        if self.is_dense or self.has_several:
            return _root_trace(self._dense(self.sets))
        return self._by_determinants()

    def traces(self) -> dict[Type, float]:
        """Return a lower bound on the trace of each diagonal block's root, by type of set."""
        traces: dict[Type, float] = {}
        for T in self.sets:
            parts = (
                value * math.prod(_root_trace(self._side(i, dict(choice)).inner) for i, _ in T) ** 2
                for choice, value in self._coefficient(T, T).items()
            )
            kind = self._type(_attributes(T))
            traces[kind] = traces.get(kind, 0.0) + _root_trace_of_sum(parts)
        return traces

    def _side(self, i: int, bases: Mapping[int, int]) -> _Side:
        return self.blocks.sides[self.kinds[i]][bases[self.kinds[i]]]

    def _dense(self, sets: list[Parts]) -> Array:
        rows = []
        for T in sets:
            row = []
            for U in sets:
                block = np.zeros((self._dim(T), self._dim(U)))
                for choice, value in self._coefficient(T, U).items():
                    block += value * self._block(T, U, dict(choice))
                row.append(block)
            rows.append(row)
        return np.block(rows) if rows else np.zeros((0, 0))

    def _block(self, T: Parts, U: Parts, bases: Mapping[int, int]) -> Array:
        """Return block (T, U), a Kronecker product: ``inner`` for T ∩ U, ``cross`` for the rest."""
        tensor, axes, one, other = np.ones(()), [], dict(T), dict(U)
        for i in sorted({*one, *other}):
            side = self._side(i, bases)
            places = {
                between: slice(None, side.lead) if between else slice(side.lead, None)
                for between in (True, False)
            }
            if i in one and i in other:
                block = side.inner[places[one[i]], places[other[i]]]
                tensor = np.multiply.outer(tensor, block)
                axes += [(0, i), (1, i)]
            elif i in one:
                tensor = np.multiply.outer(tensor, side.cross[places[one[i]]])
                axes += [(0, i)]
            else:
                tensor = np.multiply.outer(tensor, side.cross[places[other[i]]])
                axes += [(1, i)]
        order = sorted(range(len(axes)), key=axes.__getitem__)
        return tensor.transpose(order).reshape(self._dim(T), self._dim(U))

    def _couplings(self, U: Parts, i: int) -> Array:
        """Return entries that couple i's directions to its part in U, or to √λ if it has none."""
        side, part = self.blocks.sides[self.kinds[i]][0], dict(U).get(i)
        if part is None:
            return side.cross[side.lead :]
        return side.inner[0, 1:] if part else np.diag(side.inner)[side.lead :]

    def _by_determinants(self) -> float:
        """Return a lower bound on the trace of the root of the group's matrix, by a quadrature."""
        # It is Σ_j w_j log det(1 + K/t_j) for the matrix K and nodes t_j of weights w_j. The blocks
        # of the largest tables are diagonal: the determinant is the product of their entries and of
        # the determinant of their Schur complement.
        K, left = self._dense(self.left), self.left
        values = {
            T: sum(self._coefficient(T, T).values()) * self._eigenvalues(T) for T in self.largest
        }
        trace = float(np.trace(K)) + sum(float(v.sum()) for v in values.values())
        starts = dict(zip(left, np.cumsum([0, *map(self._dim, left)]), strict=False))
        if not trace > 0:
            return 0.0
        total = []
        for s in np.arange(*_ENDS, _STEP):
            t = trace * math.exp(s)
            found = sum(float(np.log1p(v / t).sum()) for v in values.values())
            if left:
                rest = np.eye(len(K)) + K / t
                for T, v in values.items():
                    w = 1 / (v + t) / t
                    inside = [U for U in left if _attributes(U) <= _attributes(T)]
                    for U, V in itertools.product(inside, inside):
                        scale = sum(self._coefficient(T, U).values()) * sum(
                            self._coefficient(T, V).values()
                        )
                        rest[self._places(U, V, starts)] -= scale * self._summed(T, U, V, w)
                found += _log_determinant(rest)
            total.append(math.sqrt(t) * found)
        return _STEP / (2 * math.pi) * math.fsum(total) / (1 + _EXCESS)

    def _eigenvalues(self, T: Parts) -> Array:
        return reduce(np.multiply.outer, (self._couplings(T, i) for i, _ in T), np.ones(()))

    def _summed(self, T: Parts, U: Parts, V: Parts, w: Array) -> Array:
        """Return w times T's couplings to U and to V, summed over T's axes outside U and V."""
        operands: list = [w, list(range(len(T)))]
        for axis, (i, _) in enumerate(T):
            operands += [self._couplings(U, i) * self._couplings(V, i), [axis]]
        return np.einsum(*operands, [axis for axis, part in enumerate(T) if part in {*U, *V}])

    def _places(self, U: Parts, V: Parts, starts: dict[Parts, int]) -> tuple[Places, Places]:
        """Return rows and columns of the nonzero entries of block (U, V), with an axis per part."""
        both = sorted(part for part in {*U, *V} if not part[1])
        sizes = [self._dim((part,)) for part in both]
        grid = np.indices(sizes, sparse=True) if both else ()

        def flat(parts: Parts) -> Places:
            place = np.zeros((), dtype=np.intp)
            for axis, part in enumerate(both):
                if part in parts:
                    place = place * sizes[axis] + grid[axis]
            return place

        rows, columns = np.broadcast_arrays(starts[U] + flat(U), starts[V] + flat(V))
        return rows, columns


def _attributes(T: Parts) -> set[int]:
    return {i for i, _ in T}


def _pair_correlations(weights: Array, upper: NDArray[np.bool_], lead: int) -> tuple[float, float]:
    """Return the correlations of an attribute's values x, y in a random pair of records."""
    # The first is for the direction between two parts of the categories, the second for all other
    # directions. With λ the weights of the categories and Λ their diagonal matrix, the joint
    # distribution of x and y is λλ' times 1 + r f(x) f(y) if there are parts, where f is constant
    # on each part and has mean 0 and variance 1: it is nonnegative for r = −m/(1 − m), m the
    # smaller part's weight. Without parts it is λλ' + r(Λ − λλ'), and r is as negative as possible
    # without negative probabilities of x = y; for uniform weights, it is −1/(n−1), so x ≠ y always.
    total = math.fsum(weights)
    if lead:
        least = min(math.fsum(weights[upper]), math.fsum(weights[~upper])) / total
    else:
        least = float(weights.min()) / total
    r = -least / (1 - least) * (1 - CANCELLATION) if least < 1 else 0.0
    return (r, 0.0) if lead else (r, r)


def _class_sides(
    bases: tuple[AbstractBase, ...], weights: Array, upper: NDArray[np.bool_]
) -> list[_Side]:
    """Return one matrix per base of a class; exact and uncoupled if all categories are alike."""
    n = len(weights)
    if n == 1 or np.ptp(weights) == 0:
        grams = [None if base.is_identity else base.gram() for base in bases]
        if all(gram is None or is_exchangeable(gram) for gram in grams):
            own = [1 / n if gram is None else float(gram.sum()) / n**2 for gram in grams]
            apart = [
                1 / n if gram is None else float(gram[0, 0] - gram[0, -1]) / n for gram in grams
            ]
            pairs = zip(own, apart, strict=True)
            return [_Side(a, np.zeros(n - 1), np.full((1, 1), b), is_scalar=True) for a, b in pairs]
    root = np.sqrt(weights)
    basis = _reflection(root)  # its first axis is √λ
    masses = math.fsum(weights[upper]), math.fsum(weights[~upper])
    # several bases have no common basis in which all matrices are diagonal beyond one direction
    lead = int(len(bases) == 1 and min(masses) > 0)
    if lead:
        between = root * np.where(upper, masses[1], -masses[0])
        within = basis[:, 1:].T @ (between / np.linalg.norm(between))
        basis[:, 1:] = basis[:, 1:] @ _reflection(within)
    sides = []
    for base in bases:
        own, *cross = basis.T @ (root * (base.gram() @ (root * basis[:, 0])))
        # other directions than √λ see differences only
        inner = basis[:, 1:].T @ (root[:, None] * differences(base) * root) @ basis[:, 1:]
        sides.append(_Side(float(own), np.array(cross), (inner + inner.T) / 2, lead=lead))
    return sides


def _reflection(unit: Array) -> Array:
    """Return an orthogonal matrix with the first column ``±unit``, a vector of length one."""
    mirror = unit.copy()
    mirror[0] += math.copysign(1.0, unit[0])
    return np.outer(mirror, mirror) * (2 / float(mirror @ mirror)) - np.eye(len(unit))


def _log_determinant(matrix: Array) -> float:
    """Return log det of ``matrix`` ⪰ I, or the lower bound zero if rounding prevents this."""
    try:
        pivots = np.diag(scipy.linalg.cholesky(matrix, check_finite=False))
    except np.linalg.LinAlgError:
        return 0.0
    return max(2 * float(np.log(pivots).sum()), 0.0)


def _root_trace(matrix: Array) -> float:
    """Return the trace of the square root of a positive semidefinite matrix, rounded down."""
    if not len(matrix):
        return 0.0
    values = np.linalg.eigvalsh(matrix)
    blur = 4 * len(values) * EPS * max(values[-1], 0.0)
    return float(np.sqrt(np.maximum(values - blur, 0.0)).sum())


def _root_trace_of_sum(squares: Iterable[float]) -> float:
    """Return a lower bound on the trace of the root of ``Σ A``, from ``squares`` (tr √A)²."""
    # The matrices A are positive semidefinite, and (tr √A)² = min tr(AX) tr(X⁻¹) over positive
    # definite X is concave and homogeneous in A. So its value for a sum is at least the sum of its
    # values, with equality if the A are multiples of one matrix.
    return math.sqrt(math.fsum(squares))
