"""Attributes that are equivalent in a workload, and the types of attribute subsets that remain."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

from .residuals import Subset, check_count

# A subset up to exchange of equivalent attributes: the position of the class of each attribute,
# sorted, with repeats.
Type = tuple[int, ...]


def alike(
    values: Mapping[Subset, Hashable], kinds: Sequence[Hashable]
) -> tuple[tuple[int, ...], ...]:
    """Return classes of equivalent attributes, whose exchange does not change ``values``.

    Exchanges of pairs generate all permutations within a class, and exchangeability is an
    equivalence relation: if (i j) and (j k) change nothing, neither does (i k) = (i j)(j k)(i j).
    """
    masks = {sum(1 << i for i in S): value for S, value in values.items()}
    having: dict[int, list[int]] = defaultdict(list)
    for S, mask in zip(values, masks, strict=True):
        for i in S:
            having[i].append(mask)

    def exchangeable(i: int, j: int) -> bool:
        """Return whether i and j may be exchanged. As many subsets have i as have j, so that it
        suffices to check one direction.
        """
        flip = 1 << i | 1 << j
        return all(
            masks.get(mask ^ flip, masks) == masks[mask] for mask in having[i] if not mask >> j & 1
        )

    classes: dict[Hashable, list[list[int]]] = defaultdict(list)
    for i, kind in enumerate(kinds):
        similar = classes[kind, len(having[i])]
        for group in similar:
            if exchangeable(i, group[0]):
                group.append(i)
                break
        else:
            similar.append([i])
    return tuple(sorted(tuple(group) for groups in classes.values() for group in groups))


@dataclass(frozen=True)
class Orbits:
    """Subsets of attributes up to permutations within classes.

    Attributes:
        classes: disjoint tuples of attributes.
    """

    classes: tuple[tuple[int, ...], ...]

    @cached_property
    def _class_of(self) -> dict[int, int]:
        return {i: k for k, members in enumerate(self.classes) for i in members}

    def class_of(self, i: int) -> int:
        """Return the position of an attribute's class."""
        return self._class_of[i]

    def __contains__(self, i: int) -> bool:
        return i in self._class_of

    def type_of(self, S: Subset) -> Type:
        """Return the type of a subset of the attributes in classes."""
        return tuple(sorted(self._class_of[i] for i in S))

    def size(self, kind: Type) -> int:
        """Return the number of subsets of this type."""
        return math.prod(
            math.comb(len(self.classes[k]), count) for k, count in Counter(kind).items()
        )

    def inside(self, kind: Type) -> dict[Type, int]:
        """Return the types of the subsets of one such subset, and how many have each type."""
        counts = Counter(kind)
        parts: dict[Type, int] = {}
        for chosen in itertools.product(*(range(count + 1) for count in counts.values())):
            part = tuple(k for k, m in zip(counts, chosen, strict=True) for _ in range(m))
            parts[part] = math.prod(
                math.comb(n, m) for n, m in zip(counts.values(), chosen, strict=True)
            )
        return parts

    def below(self, kinds: Sequence[Type]) -> list[Type]:
        """Return all types inside some of ``kinds``, small ones first."""
        check_count(sum(math.prod(c + 1 for c in Counter(kind).values()) for kind in kinds))
        return sorted(
            {part for kind in kinds for part in self.inside(kind)}, key=lambda t: (len(t), t)
        )

    def members(self, kind: Type) -> Iterator[Subset]:
        """Yield the subsets of a type, each sorted."""
        counts = Counter(kind)
        for parts in itertools.product(
            *(itertools.combinations(self.classes[k], m) for k, m in counts.items())
        ):
            yield tuple(sorted(itertools.chain.from_iterable(parts)))


@final
@dataclass(frozen=True, eq=False)
class ByType(Mapping[Subset, float]):
    """One number for every subset, the same for all of a type."""

    orbits: Orbits
    values_by_type: Mapping[Type, float]

    def __getitem__(self, T: Subset) -> float:
        if any(i not in self.orbits for i in T) or any(i >= j for i, j in itertools.pairwise(T)):
            raise KeyError(T)
        return self.values_by_type[self.orbits.type_of(T)]

    def __iter__(self) -> Iterator[Subset]:
        for kind in self.values_by_type:
            yield from self.orbits.members(kind)

    def __len__(self) -> int:
        return sum(self.orbits.size(kind) for kind in self.values_by_type)
