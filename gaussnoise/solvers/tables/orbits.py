"""Classes of equivalent attributes in a workload, and the types of attribute subsets."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from .residuals import Subset, check_count

# A subset of attributes, up to permuting equivalent ones: the index of the class of each attribute,
# sorted, with repeats.
Type = tuple[int, ...]
Rows = NDArray[np.intp]


def padded(subsets: Collection[Sequence[int]], fill: int) -> Rows:
    """Return the subsets as rows of one array; shorter subsets are filled up with ``fill``."""
    lengths = np.fromiter(map(len, subsets), dtype=np.intp, count=len(subsets))
    rows = np.full((len(subsets), max(1, lengths.max(initial=0))), fill)
    flat = np.fromiter(itertools.chain.from_iterable(subsets), dtype=np.intp)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = flat
    return rows


def row_keys(rows: Rows) -> Rows:
    """Return an integer key for every row of integers >= 0; keys are ordered as the rows are."""
    keys = np.zeros(len(rows), dtype=np.intp)
    for column in rows.T:
        keys = keys * (column.max(initial=0) + 1) + column
        if keys.max(initial=0) >> 31:  # the next product must fit into 64 bits
            keys = np.unique(keys, return_inverse=True)[1]
    return keys


def alike(
    values: Mapping[Subset, Hashable], kinds: Sequence[Hashable]
) -> tuple[tuple[int, ...], ...]:
    """Return the classes of equivalent attributes, each a sorted tuple of attribute indices.

    Attributes are equivalent if they have the same entry of ``kinds``, and if permuting them leaves
    ``values``, a mapping from attribute subsets to values, unchanged. Subsets are sorted. Only
    swaps (i j) of two attributes are checked, since they generate all permutations within a class.
    Swappable attributes form classes, since (i k) = (i j)(j k)(i j).
    """
    numbers: dict[Hashable, int] = {}
    marks = [numbers.setdefault(value, len(numbers)) for value in values.values()]
    rows = padded(values, len(kinds))
    order = np.argsort(row_keys(rows))
    rows = np.column_stack([rows, len(kinds) + 1 + np.array(marks, dtype=np.intp)])[order]
    places = np.argsort(rows[:, :-1], axis=None, kind="stable") // (rows.shape[1] - 1)
    ends = np.cumsum(np.bincount(rows[:, :-1].ravel(), minlength=len(kinds) + 1))

    def rest(i: int) -> Rows:
        """Return, for each subset with attribute i, its other attributes and value, sorted."""
        having = rows[places[ends[i - 1] if i else 0 : ends[i]]]
        return having[having != i].reshape(len(having), rows.shape[1] - 1)

    def exchangeable(i: int, mine: Rows, j: int, other: Rows) -> bool:
        """Return whether an exchange of i and j leaves the values of all subsets unchanged."""
        without_j, without_i = (mine != j).all(axis=1), (other != i).all(axis=1)
        return np.array_equal(mine[without_j], other[without_i])

    classes: dict[Hashable, list[tuple[list[int], Rows]]] = defaultdict(list)
    for i, kind in enumerate(kinds):
        own = rest(i)
        similar = classes[kind, len(own)]
        for group, first in similar:
            if exchangeable(i, own, group[0], first):
                group.append(i)
                break
        else:
            similar.append(([i], own))
    return tuple(sorted(tuple(group) for groups in classes.values() for group, _ in groups))


@dataclass(frozen=True)
class Orbits:
    """Classes of equivalent attributes, and the types of subsets of attributes.

    Two subsets have the same type if they have equally many attributes of each class.

    Attributes:
        classes: disjoint tuples of attribute indices.
    """

    classes: tuple[tuple[int, ...], ...]

    @cached_property
    def _class_of(self) -> dict[int, int]:
        return {i: k for k, members in enumerate(self.classes) for i in members}

    def class_of(self, i: int) -> int:
        """Return the index of the class that attribute i belongs to."""
        return self._class_of[i]

    def __contains__(self, i: int) -> bool:
        return i in self._class_of

    def type_of(self, S: Subset) -> Type:
        """Return the type of the subset S: the class of each of its attributes, sorted."""
        return tuple(sorted([self._class_of[i] for i in S]))

    def size(self, kind: Type) -> int:
        """Return the number of subsets of attributes that have the type ``kind``."""
        return math.prod(
            math.comb(len(self.classes[k]), count) for k, count in Counter(kind).items()
        )

    def inside(self, kind: Type) -> dict[Type, int]:
        """Return how many subsets of each type are inside one subset of the type ``kind``."""
        counts = Counter(kind)
        parts: dict[Type, int] = {}
        for chosen in itertools.product(*(range(count + 1) for count in counts.values())):
            part = tuple(k for k, m in zip(counts, chosen, strict=True) for _ in range(m))
            parts[part] = math.prod(
                math.comb(n, m) for n, m in zip(counts.values(), chosen, strict=True)
            )
        return parts

    def below(self, kinds: Sequence[Type]) -> list[Type]:
        """Return the types of all subsets inside subsets of the types ``kinds``, smallest first."""
        check_count(sum(math.prod(c + 1 for c in Counter(kind).values()) for kind in kinds))
        return sorted(
            {part for kind in kinds for part in self.inside(kind)}, key=lambda t: (len(t), t)
        )

    def members(self, kind: Type) -> Iterator[Subset]:
        """Yield all subsets of attributes that have the type ``kind``; each subset is sorted."""
        counts = Counter(kind)
        for parts in itertools.product(
            *(itertools.combinations(self.classes[k], m) for k, m in counts.items())
        ):
            yield tuple(sorted(itertools.chain.from_iterable(parts)))


@final
@dataclass(frozen=True, eq=False)
class ByType(Mapping[Subset, float]):
    """A mapping from subsets to numbers; all subsets of one type have the same number."""

    orbits: Orbits
    values_by_type: Mapping[Type, float]

    def __getitem__(self, T: Subset) -> float:
        if [*T] != sorted({*T}):
            raise KeyError(T)
        return self.values_by_type[self.orbits.type_of(T)]

    def __iter__(self) -> Iterator[Subset]:
        for kind in self.values_by_type:
            yield from self.orbits.members(kind)

    def __len__(self) -> int:
        return sum(self.orbits.size(kind) for kind in self.values_by_type)
