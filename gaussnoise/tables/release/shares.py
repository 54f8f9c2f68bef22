"""Counts divided by the counts of their groups, both of which may hold several cells."""

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domains import AbstractBase, Groups, Identity
from domains.tables.tables import Term

from ...errors import ParameterError
from ...solvers.tables.residuals import Subset, subsets_of
from ..schema.entries import Asked, Entry, entry_term
from .sums import check_no_number

if TYPE_CHECKING:
    from .release import Names, TableRelease

Array = NDArray[np.float64]


class Within(NamedTuple):
    """Parts, and the groups they are parts of: axes in the order of sorted attributes.

    Attributes:
        asked: attributes of the table, in the order asked for, and the queries about each.
        given: attributes of the groups, in the order asked for, and the queries about each.
        groups: of every attribute of the groups, the group that each part is in.
    """

    asked: Asked
    given: Asked
    groups: Mapping[int, NDArray[np.intp]]

    @property
    def subset(self) -> Subset:
        """All attributes, sorted."""
        return tuple(sorted(self.asked))

    @property
    def parts(self) -> Term:
        """The queries that count the parts."""
        return tuple((i, self.asked[i]) for i in self.subset)

    @property
    def wholes(self) -> Term:
        """The queries that count the groups."""
        return tuple((i, self.given[i]) for i in sorted(self.given))

    def spread(self, values: Array) -> Array:
        """Return values of groups, repeated for each of their parts."""
        for axis, i in enumerate(sorted(self.given)):
            values = np.take(values, self.groups[i], axis=axis)
        shape = [self.asked[i].queries if i in self.given else 1 for i in self.subset]
        return np.broadcast_to(values.reshape(shape), [b.queries for _, b in self.parts])


def within(release: "TableRelease", names: Entry, given: Entry) -> Within:
    """Return the group that every part is in; raise ParameterError if there is none."""
    asked, group = _term(release, names), _term(release, given)
    if missing := [i for i in group if i not in asked]:
        name = release.plan.schema.names[missing[0]]
        raise ParameterError(
            f"proportions: expected groups by some of {_said(names)}, got given={given!r}; "
            f"hint: add {name!r} to the table"
        )
    places = {i: _places(release, i, asked[i], group[i]) for i in group}
    return Within(asked, group, places)


def has_levels(release: "TableRelease", names: "Names") -> bool:
    """Return whether any of the names is that of a level."""
    return any(name in _levels(release) for name in ((names,) if isinstance(names, str) else names))


def covariances(release: "TableRelease", parts: Within) -> Array:
    """Return the covariance of every part's count with its group's count.

    It is the variance of the noise that both counts share. A group adds up all categories of the
    attributes that it does not fix, and along these all noise but that of totals adds up to zero.
    """
    G, shape = tuple(sorted(parts.given)), [base.queries for _, base in parts.parts]
    total = np.zeros(shape)
    for T in subsets_of(G):
        if T in release.query.multipliers:
            factors = [_factor(release, parts, i, measured=i in T) for i in parts.subset]
            total += release.covariance.variances[T] * reduce(
                np.multiply.outer, factors, np.array(1.0)
            )
    return total


def _factor(release: "TableRelease", parts: Within, i: int, *, measured: bool) -> Array:
    """Return the factor of one attribute in the covariance of each of its parts."""
    strategy = release.query.strategies[i]
    seen = strategy.root if measured else strategy.profile[:, None]
    part = parts.asked[i].toarray() @ seen
    if i not in parts.given:
        return part[:, 0]  # the group adds up all categories, where the profile adds up to one
    return np.einsum("kr,kr->k", part, (parts.given[i].toarray() @ seen)[parts.groups[i]])


def _levels(release: "TableRelease") -> dict[str, str]:
    """Return attributes by the names of their levels; names of several attributes are left out."""
    listed = [(n, a.name) for a in release.plan.schema.attributes for n, _ in a.groups or ()]
    named = [name for name, _ in listed]
    return {name: attribute for name, attribute in listed if named.count(name) == 1}


def _term(release: "TableRelease", entry: Entry) -> Asked:
    """Return attributes with their queries: cells, or groups of cells."""
    schema = release.plan.schema
    if isinstance(entry, Mapping):
        term = entry_term(schema, entry)
    else:
        levels = _levels(release)
        listed = (entry,) if isinstance(entry, str) else tuple(entry)
        attributes = [levels.get(name, name) for name in listed]
        release.plan.subset(attributes)  # refuses unknown attributes and repeated ones
        bases = [name if name in levels else "identity" for name in listed]
        term = entry_term(schema, dict(zip(attributes, bases, strict=True)))
    check_no_number(release, "proportions", tuple([schema.names[i] for i in term]))
    for i, base in term.items():
        if not isinstance(base, Groups) and not base.is_identity:
            raise ParameterError(
                f"proportions: expected cells or groups of {schema.names[i]!r}, got {base!r:.80}; "
                "hint: the name of a level, or Groups(size, members)"
            )
    return term


def _places(
    release: "TableRelease", i: int, parts: AbstractBase, groups: AbstractBase
) -> NDArray[np.intp]:
    """Return the group that holds each part."""
    within = [frozenset(cells) for cells in _cells(groups)]
    places = []
    for cells in _cells(parts):
        inside = [k for k, group in enumerate(within) if group.issuperset(cells)]
        if len(inside) != 1:
            raise ParameterError(
                f"proportions: expected every part of {release.plan.schema.names[i]!r} in one of "
                f"its groups, got one in {len(inside)} of them; hint: disjoint groups that hold "
                "all cells, or parts like Groups(size, [[0], [1]]), which leave some out"
            )
        places.append(inside[0])
    return np.array(places, dtype=np.intp)


def _cells(base: AbstractBase) -> list[tuple[int, ...]]:
    if isinstance(base, Groups):
        return list(base.members)
    return [(k,) for k in range(Identity(base.size).queries)]


def _said(names: Entry) -> str:
    return repr(dict(names) if isinstance(names, Mapping) else names)
