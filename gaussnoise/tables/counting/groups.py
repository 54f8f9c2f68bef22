"""Groups of tables that are counted together: few unions of attribute sets contain all tables.

If each table has few attributes, the work grows in proportion to the number of tables.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

from ...solvers.tables.residuals import Subset

_NEXT = 64  # how many tables are tried if no table lacks a single attribute


def group_subsets(
    subsets: Iterable[Subset], sizes: Sequence[int], most_cells: int
) -> dict[Subset, list[Subset]]:
    """Return {union: attribute sets in it}, for few unions that contain all attribute sets.

    A union has at most ``most_cells`` cells, or is equal to one of the subsets.

    The choice is greedy: each union starts from the largest subset that is in no union yet. Then
    attributes of few categories are added, if each of them completes many subsets.
    """
    logs = [math.log(size) for size in sizes]
    alike = [  # the logarithm of each size, and the attributes of this size
        (math.log(size), _bits(i for i, own in enumerate(sizes) if own == size))
        for size in sorted(set(sizes))
    ]
    largest = sorted(subsets, key=lambda S: (-sum(logs[i] for i in S), S))
    left = _Ungrouped(largest)
    groups: dict[Subset, list[Subset]] = {}
    for first in largest:
        if first not in left:
            continue
        group, inside = {*first}, [left.take(first)]
        if () in left:
            inside.append(left.take(()))
        while True:
            near = left.near(sorted(group))
            inside += [left.take(S) for S in _within(near, _bits(group)) if S in left]
            room = max(math.log(most_cells) - sum(logs[i] for i in group), 0) + 1e-9
            if (more := _attribute_to_add(near, group, alike, room)) is not None:
                group.add(more)
                continue
            if not alike or room < alike[0][0]:
                break
            growth = ((S, sum(logs[i] for i in S if i not in group)) for S in left.next())
            joining = next((S for S, grown in growth if grown <= room), None)
            if joining is None:
                break
            group |= {*joining}
            inside.append(left.take(joining))
        groups[tuple(sorted(group))] = inside
    return groups


_Near = list[tuple[Subset, int]]  # some attributes, and bits of the one that subsets have besides


class _Ungrouped:
    """The attribute sets in no group yet, indexed by their parts that lack one attribute."""

    def __init__(self, subsets: Iterable[Subset]) -> None:
        self._left = dict.fromkeys(subsets)
        self._others: dict[int, dict[Subset, int]] = {}  # by the number of attributes
        for S in self._left:
            for i, T in _but_one(S):
                own = self._others.setdefault(len(T), {})
                own[T] = own.get(T, 0) | 1 << i

    def __contains__(self, S: Subset) -> bool:
        return S in self._left

    def take(self, S: Subset) -> Subset:
        """Remove an attribute set, and return it."""
        del self._left[S]
        for i, T in _but_one(S):
            own = self._others[len(T)]
            own[T] ^= 1 << i
            if not own[T]:
                del own[T]
        return S

    def next(self) -> Iterator[Subset]:
        """Yield some of the attribute sets that are in no group yet, the largest first."""
        return itertools.islice(self._left, _NEXT)

    def near(self, group: Subset | list[int]) -> _Near:
        """Return pairs (part T of the group, bits of the i for which T + i is in no group yet)."""
        found: _Near = []
        for size, own in self._others.items():
            if math.comb(len(group), size) <= len(own):
                parts = itertools.combinations(group, size)
                found += [(T, own[T]) for T in parts if T in own]
            else:
                found += [(T, bits) for T, bits in own.items() if {*T} <= {*group}]
        return found


def _but_one(S: Subset) -> Iterator[tuple[int, Subset]]:
    """Yield (attribute, all other attributes of the set) for each attribute of a set."""
    return ((i, S[:k] + S[k + 1 :]) for k, i in enumerate(S))


def _bits(attributes: Iterable[int]) -> int:
    return sum(1 << i for i in attributes)


def _within(near: _Near, group: int) -> dict[Subset, None]:
    """Return the attribute sets in ``near`` whose attributes are all in the bits of ``group``."""
    found: dict[Subset, None] = {}
    for T, bits in near:
        inside = bits & group
        while inside:
            i = inside.bit_length() - 1
            inside ^= 1 << i
            found[tuple(sorted((*T, i)))] = None
    return found


def _attribute_to_add(
    near: _Near, group: Iterable[int], alike: Sequence[tuple[float, int]], room: float
) -> int | None:
    """Return an attribute with which a group contains many more sets; None if there is none."""
    lacked = 0
    for _, bits in near:
        lacked |= bits
    lacked &= ~_bits(group)
    # alike: (log of a number of categories, bits of such attributes), few categories first;
    # room: log of the factor by which the group's cells may grow
    best = next((own & lacked for log, own in alike if log <= room and own & lacked), 0)
    for _, bits in near:
        best = best & bits or best
    return (best & -best).bit_length() - 1 if best else None
