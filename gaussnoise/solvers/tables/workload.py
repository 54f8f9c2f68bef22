"""A workload of tables over bases, with one entry for all tables, or measurements, of a type.

T stands for a set of attributes, and for its residual measurement. A replaced record and its
replacement differ in a set D of attributes, the pattern. Shares are 1/variance of a measurement.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import Array
from domains.tables.bases import AbstractBase
from domains.tables.tables import AbstractTables

from ...errors import CovarianceError
from ...numerics.norms import dual_power, group_norm
from .orbits import Orbits, Type, alike, padded, row_keys
from .patterns import is_enumerable, pattern_sums, products
from .residuals import Subset, check_count
from .strategies import AbstractStrategy, IdentityStrategy
from .worst_pattern import least_sum, searched_move

if TYPE_CHECKING:
    from scipy.sparse import csr_array


_UNSEEN = 2.0**-24
MOST_RECORDS = 2**14  # most records that differ in the lengths of their columns
# Domains never change; a workload of half a million tables takes seconds to build.
_known: WeakKeyDictionary[AbstractTables, dict[Hashable, Any]] = WeakKeyDictionary()
# A table up to permuting equivalent attributes: for each attribute the index of its class, and the
# index of the requested base among those of the class.
Table = tuple[tuple[int, int], ...]


def check_records(
    orbits: Orbits, free: Sequence[int], strategies: Sequence[AbstractStrategy]
) -> None:
    """Raise CovarianceError unless all categories of the classes ``free`` can be compared."""
    sizes = [strategies[k].size for k in free]
    if math.prod(sizes) > MOST_RECORDS or any(len(orbits.classes[k]) > 1 for k in free):
        raise CovarianceError(
            "contrasts that depend on the set: expected no alike attributes, and at most "
            f"{MOST_RECORDS} combinations of categories, got {' × '.join(map(str, sizes))}"
        )


@dataclass(frozen=True, eq=False)
class Workload:
    """Requested tables and their measurements, with one entry for each type.

    Tables are answered from residual measurements. The measurement of a set T of attributes applies
    ``⊗_{i∈T} B_i ⊗_{i∉T} 1'`` to the counts of all cells, where B_i are the contrasts of attribute
    i, in T if they depend on the set. Sets that differ only by permuting equivalent attributes are
    of one type.

    Attributes:
        strategies: the strategy of each class of attributes, with its matrix B.
        bases: requested bases (query matrices) of each class. An attribute with several bases is
            alone in its class.
        orbits: the classes; those of more than one category come first.
        tables: types of the tables: the class of each attribute, and the index of its base.
        weights: error priority of each type's tables, divided by the largest.
        residuals: types of the attribute sets T that are measured.
        public: classes of attributes in which replaced records never differ.
    """

    strategies: tuple[AbstractStrategy, ...]
    bases: tuple[tuple[AbstractBase, ...], ...]
    orbits: Orbits
    tables: tuple[Table, ...]
    weights: Array
    residuals: tuple[Type, ...]
    public: frozenset[int] = frozenset()

    @classmethod
    def of(cls, domain: AbstractTables, *, total: bool, public: Collection[int] = ()) -> Self:
        """Return the workload of a domain, with each attribute measured by an identity strategy.

        Args:
            domain: the domain that lists the tables.
            total: whether the total count, the measurement of the empty T, is measured.
            public: attributes in which replaced records never differ; T of these alone are not
                measured.
        """
        known = _known.setdefault(domain, {})
        key = total, frozenset(public)
        if key not in known:
            known[key] = cls._of(domain, total=total, public=key[1])
        return known[key]

    @classmethod
    def _of(cls, domain: AbstractTables, *, total: bool, public: Collection[int]) -> Self:
        terms, sizes = domain.terms, domain.sizes
        asked: dict[int, dict[AbstractBase, int]] = defaultdict(dict)
        # tables share pair objects: each is hashed once, not for every table
        pairs = {id(pair): pair for pair in itertools.chain.from_iterable(terms)}
        numbers = {
            key: (i, asked[i].setdefault(base, len(asked[i]))) for key, (i, base) in pairs.items()
        }
        several = {i for i, bases in asked.items() if len(bases) > 1}
        values: dict[Subset, Hashable] = dict(zip(domain.subsets, domain.weights, strict=True))
        if several:
            priorities: dict[Subset, list[Hashable]] = defaultdict(list)
            for term, S, weight in zip(terms, domain.subsets, domain.weights, strict=True):
                chosen = tuple((i, asked[i][base]) for i, base in term if i in several)
                priorities[S].append((chosen, weight))
            values = {S: tuple(sorted(choices, key=repr)) for S, choices in priorities.items()}
        kinds = [
            (i in public, i if i in several else tuple(asked.get(i, (sizes[i],))))
            for i in range(len(sizes))
        ]
        classes = [members for members in alike(values, kinds) if members[0] in asked]
        classes.sort(key=lambda members: sizes[members[0]] == 1)
        orbits = Orbits(tuple(classes))
        width = max(map(len, asked.values()), default=1)
        codes = {key: orbits.class_of(i) * width + b for key, (i, b) in numbers.items()}
        most = len(classes) * width
        rows = padded([[codes[id(pair)] for pair in term] for term in terms], most)
        rows.sort(axis=1)
        first = np.sort(np.unique(row_keys(rows), return_index=True)[1])
        tables = [
            tuple(divmod(code, width) for code in row if code < most)
            for row in rows[first].tolist()
        ]
        moving = sum(sizes[members[0]] > 1 for members in classes)
        types = {tuple(k for k, _ in table) for table in tables}
        known = frozenset(k for k, members in enumerate(classes) if members[0] in public)
        residuals = [
            T
            for T in orbits.below(list(types))
            if (T or total) and all(k < moving for k in T) and not (T and known.issuperset(T))
        ]
        check_count(sum(orbits.size(T) for T in residuals))
        weights = np.array(domain.weights)[first] / max(domain.weights)
        weights.flags.writeable = False
        return cls(
            tuple(IdentityStrategy(sizes[members[0]]) for members in classes),
            tuple(tuple(asked[members[0]]) for members in classes),
            orbits,
            tuple(tables),
            weights,
            tuple(residuals),
            known,
        )

    def measured_by(self, strategies: Iterable[AbstractStrategy]) -> Self:
        """Return the workload with other strategies (measured contrasts) for the classes."""
        return replace(self, strategies=tuple(strategies))

    def measured_as(self, strategies: Sequence[AbstractStrategy]) -> Self:
        """Return the workload with the strategies of all attributes; alike ones share theirs."""
        of_class = [strategies[members[0]] for members in self.orbits.classes]
        return self.measured_by(own.keyed(lambda T: [self.orbits.type_of(T)]) for own in of_class)

    def by_attribute(self, sizes: Sequence[int]) -> tuple[AbstractStrategy, ...]:
        """Return the strategy of each attribute; attributes of no class have identity strategies.

        ``sizes`` are the numbers of categories.
        """
        strategies: list[AbstractStrategy] = [IdentityStrategy(n) for n in sizes]
        for members, strategy in zip(self.orbits.classes, self.strategies, strict=True):
            own = strategy.keyed(self.orbits.members)
            for i in members:
                strategies[i] = own
        return tuple(strategies)

    @cached_property
    def types(self) -> tuple[Type, ...]:
        """The classes of the attributes of every type of table."""
        return tuple(tuple(k for k, _ in table) for table in self.tables)

    @cached_property
    def alone(self) -> frozenset[int]:
        """The classes of attributes whose tables have no other attribute."""
        joined = {k for S in self.types if len(S) > 1 for k in S}
        return frozenset(range(len(self.strategies))) - joined

    @cached_property
    def moving(self) -> Orbits:
        """The classes of attributes with more than one category."""
        classes = zip(self.orbits.classes, self.strategies, strict=True)
        return Orbits(tuple(members for members, strategy in classes if strategy.size > 1))

    @cached_property
    def table_counts(self) -> Array:
        """The number of tables of each type."""
        return np.array([float(self.orbits.size(S)) for S in self.types])

    @cached_property
    def residual_counts(self) -> Array:
        """The number of residual measurements of each type."""
        return np.array([float(self.orbits.size(T)) for T in self.residuals])

    @cached_property
    def queries(self) -> Array:
        """The number of queries of one table of each type."""
        return np.array(
            [float(math.prod(self.bases[k][b].queries for k, b in table)) for table in self.tables]
        )

    @cached_property
    def ranks(self) -> Array:
        """The dimension ``Π_{i∈T} (n_i − 1)`` of every type's measurement, for n_i categories."""
        return np.array(
            [float(math.prod(self.strategies[k].size - 1 for k in T)) for T in self.residuals]
        )

    @cached_property
    def units(self) -> Array:
        """For each type T, the scale a of the covariance of counts decoded from unit noise on T.

        This covariance is ``a ⊗_{i∈T} E_i``, where ``E_i = R_i R_i'`` for the strategy's ``root``
        R_i.
        """
        return np.array([math.prod(self.strategies[k].unit for k in T) for T in self.residuals])

    @cached_property
    def loss(self) -> "csr_array":
        """A sparse matrix: the weighted variance of a table (column) if T (row) has unit noise.

        The variance is summed over the queries of one table of the column's type, and over all
        measurements of the row's type that the table uses.
        """
        place = {T: row for row, T in enumerate(self.residuals)}
        entries: list[tuple[int, int, float]] = []
        for column, (table, S, weight) in enumerate(
            zip(self.tables, self.types, self.weights, strict=True)
        ):
            for T, count in self.orbits.inside(S).items():
                if T in place:
                    entries.append((place[T], column, count * weight**2 * self.variance(T, table)))
        rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        shape = (len(self.residuals), len(self.tables))
        losses = np.array(values, dtype=np.float64)
        return scipy.sparse.csr_array((losses, (rows, columns)), shape=shape)

    def variance(self, T: Type, table: Table) -> float:
        """Return the summed variance of one table's queries from unit noise on one measurement.

        T is the type of this residual measurement.
        """
        left, total = Counter(T), 1.0
        for k, b in table:
            # attributes in T contribute the variance from contrasts, others that from totals
            total *= self.gain(T, k, b) if left[k] > 0 else self.traces[k, b][1]
            left[k] -= 1
        return total

    def gain(self, T: Type, k: int, b: int) -> float:
        """Return the summed variance of base b's queries from unit noise on class k's contrasts.

        These are the contrasts in the measurement of T.
        """
        strategy = self.strategies[k].in_set(T)
        if strategy is self.strategies[k]:
            return self.traces[k, b][0]
        if (strategy, b) not in self._gains:
            self._gains[strategy, b] = strategy.gain(self.bases[k][b])
        return self._gains[strategy, b]

    @cached_property
    def _gains(self) -> dict[tuple[AbstractStrategy, int], float]:
        return {}

    @cached_property
    def traces(self) -> dict[tuple[int, int], tuple[float, float]]:
        """The summed variances of a base's queries from unit noise on contrasts, and on totals.

        Keys are (index of the class, index of the base). A total that no answer needs still gets a
        small variance. So this total is measured, and cells can be released.
        """
        traces = {}
        for k, (strategy, bases) in enumerate(zip(self.strategies, self.bases, strict=True)):
            for b, base in enumerate(bases):
                gain, total = strategy.gain(base), strategy.total_gain(base)
                traces[k, b] = gain, total if strategy.size == 1 else max(total, _UNSEEN * gain)
        return traces

    def dual_loss(self, p: float) -> "csr_array":
        """Return the sparse matrix A for which ``A @ shares^{1−2/p}`` are the losses of all types.

        ``shares`` are dual weights of the types of tables. The loss of a type is the variance of
        the answers if one residual measurement of this type has unit noise. This variance is summed
        over all queries, each with the weight (share of the query)^{1−2/p}.
        """
        power = dual_power(p)
        # a query's weight is (share/(tables · queries))^{1/s*}; the sum over tables of a type is
        # divided equally among the T of a type
        scaled = self.loss * (self.table_counts * (self.table_counts * self.queries) ** -power)
        return scipy.sparse.csr_array(scaled * (1 / self.residual_counts)[:, None])

    def error(self, noise: Array, p: float) -> float:
        """Return the p-norm of the weighted standard deviations of all queries.

        ``noise`` is the variance of each type of measurement. Every query counts with the root mean
        square of its table's standard deviations.
        """
        variances = (self.loss.T @ noise) / self.queries  # variance of a query, by type of table
        return group_norm(np.sqrt(variances), self.table_counts * self.queries, p)

    @cached_property
    def free(self) -> tuple[int, ...]:
        """The classes with other contrasts in some sets, where columns may be of any lengths.

        Their categories are the records that are compared.
        """
        free = tuple([k for k, own in enumerate(self.strategies) if own.others])
        check_records(self.orbits, free, self.strategies)
        return free

    def _lengths(self, T: Type, k: int) -> Array:
        """Return the squared lengths of class k's columns in T, relative to the longest one."""
        own = self.strategies[k].in_set(T)
        return own.lengths / own.square

    def lengths(self, records: NDArray[np.intp], *, without: int | None = None) -> Array:
        """Return squared lengths of one measurement of each type, shape (records, residuals).

        Args:
            records: categories of the classes with more than one category, shape (records, these).
                Only those of classes in :attr:`free` count.
            without: a class whose columns count as the longest one.
        """
        found = np.ones((len(records), len(self.residuals)))
        for column, T in enumerate(self.residuals):
            for k in self.free:
                if k in T and k != without:
                    found[:, column] *= self._lengths(T, k)[records[:, k]]
        return found

    def records_moved(self, shares: Array) -> Array:
        """Return ``Σ_T share_T ℓ_T``, the squared change by adding it, for every record.

        ``ℓ_T`` is the squared length of a record's measurement T. The result has one axis for each
        class with more than one category, of length 1 for classes that are not in :attr:`free`.
        """
        classes = range(len(self.moving.classes))
        moved = np.zeros([self.strategies[k].size if k in self.free else 1 for k in classes])
        together: dict[Hashable, list[float]] = defaultdict(list)  # sets with the same contrasts
        of_type = dict[Hashable, Type]()
        for T, weight in zip(self.residuals, shares * self.residual_counts, strict=True):
            key = tuple([(k, self.strategies[k].in_set(T)) for k in self.free if k in T])
            together[key].append(float(weight))
            of_type[key] = T
        for key, weights in together.items():
            part, T = np.array(math.fsum(weights)), of_type[key]
            for k in self.free:
                if k in T:
                    axes = [-1 if own == k else 1 for own in classes]
                    part = part * self._lengths(T, k).reshape(axes)
            moved = moved + part
        return moved

    def correlation(self, k: int) -> float:
        """Return the least inner product of two columns of class k's contrasts B; 1 if public.

        The longest column of B has length one. Records never differ in public attributes.
        """
        return 1.0 if k in self.public else self.strategies[k].correlation

    def patterns_moved(self, shares: Array) -> Array:
        """Return ``Σ_T share_T 2 (1 − Π_{i∈T∩D} ρ_i)``, the squared change, for every pattern D.

        A pattern D is a set of attributes in which a record and its replacement differ, T runs over
        the measured attribute sets, and ρ_i is the :meth:`correlation` of attribute i. The result
        has one axis for each class with more than one category, of length 1 for public classes.
        """
        rho = self._unequal
        sums = pattern_sums(self.moving, self._by_type(shares), [1.0] * len(rho), rho)
        sums = sums[tuple(slice(1 if k in self.public else None) for k in range(len(rho)))]
        return 2 * (float(shares @ self.residual_counts) - sums)

    def largest_move(self, shares: Array, *, replaced: bool, claimed: float | None = None) -> float:
        """Return the largest squared change of all measurements by one record.

        ``shares`` are 1/variance of each type of measurement. If ``replaced``, the record is
        replaced; otherwise it is added or removed. If there are too many patterns of differing
        attributes to check, the result is a bound that a search proves. If a bound is ``claimed``,
        the search stops once it has proven this bound.
        """
        if not replaced and self.free:
            return float(self.records_moved(shares).max())
        if not replaced or not len(shares):
            return float(self.residual_counts @ shares)
        if not is_enumerable(self.moving):
            return searched_move(self.moving, self._by_type(shares), self._unequal, claimed)
        return float(self.patterns_moved(shares).max())

    def search(
        self, shares: Array, starts: NDArray[np.intp], most: float, effort: float = 1.0
    ) -> tuple[NDArray[np.intp], Array, float]:
        """Search for the patterns of differing attributes that change the measurements most.

        Returns patterns (in how many attributes of each class two records differ), their squared
        changes, and a bound on the squared change of every pattern. The search from the patterns
        ``starts`` ends when it finds a change above ``most``, or proves that there is none.
        """
        total = float(shares @ self.residual_counts)
        enough = total - most / 2
        found = least_sum(
            self.moving,
            self._by_type(shares),
            self._unequal,
            starts=starts,
            enough=enough,
            effort=effort,
        )
        return found.patterns, 2 * (total - found.values), 2 * (total - found.lower)

    def _by_type(self, shares: Array) -> dict[Type, float]:
        return dict(zip(self.residuals, shares.tolist(), strict=True))

    @property
    def _unequal(self) -> list[float]:
        return [self.correlation(k) for k in range(len(self.moving.classes))]

    def moved(self, patterns: NDArray[np.intp]) -> Array:
        """Return squared changes of one measurement of each type, shape (patterns, residuals).

        The change of T is ``κ_T(D) = 2 (1 − Π_{i∈T∩D} ρ_i)`` if a record and its replacement differ
        in the attributes D, where ρ_i is the :meth:`correlation` of attribute i. An entry is the
        mean over all T of the type.

        Args:
            patterns: shape (k, classes of more than one category), how many attributes of each
                class differ.
        """
        kept = np.ones((len(patterns), len(self.residuals)))
        for k, members in enumerate(self.moving.classes):
            counts = np.array([T.count(k) for T in self.residuals])
            most = int(counts.max(initial=0))
            matrix = products(len(members), most, 1.0, self.correlation(k))
            # a sum over all sets of t attributes, divided by their number, is an average
            matrix /= [math.comb(len(members), t) for t in range(most + 1)]
            kept *= matrix[patterns[:, k]][:, counts]
        return 2 * (1 - kept)
