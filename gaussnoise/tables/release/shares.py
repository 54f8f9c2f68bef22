"""Shares: counts divided by the counts of their groups; both may be sums of several cells."""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import AbstractBase, Base, Groups, Identity
from domains.tables.tables import Term

from ...errors import ParameterError
from ...solvers.tables.residuals import Subset, subsets_of
from ..schema.bases import as_base, query_labels
from ..schema.entries import Asked, Entry, entry_term
from ..schema.schema import Category
from .contrasts import ROUNDED
from .forms import CellForms, Rows
from .noisy import AbstractRelease, Names, estimate_of, ordered, read_only
from .quantiles import steps_of
from .sums import check_no_number
from .table import ProportionTable

_CANCELLED = 1e-12  # smaller differences, relative to a variance, are rounding errors
Array = NDArray[np.float64]


def proportions(release: AbstractRelease, names: Entry, given: Entry = ()) -> ProportionTable:
    """Return shares: counts divided by the counts of their groups.

    Args:
        release: the release that is asked.
        names: attributes of the table. If the schema has groups, a level can replace its attribute:
            ``("region", "sex")`` if counties have regions. A mapping like ``{"county": "region",
            "sex": None}`` means the same, and may also have :class:`Groups`.
        given: those attributes or levels that define the groups; none for shares of the total.
            ``proportions("county", given="region")`` is the share of each county in its region.

    Returns:
        A :class:`ProportionTable`, axes in the order of ``names``.

    Raises:
        ParameterError: unknown attributes, a table that was not released, groups by attributes that
            the table lacks, or a part that is in no group or in several groups.
    """
    if isinstance(names, Mapping) or isinstance(given, Mapping):
        return _grouped(release, names, given)
    if _has_levels(release, names) or _has_levels(release, given):
        return _grouped(release, names, given)
    check_no_number(release, "proportions", names)
    asked, S, counts = estimate_of(release, names)
    group, G, _ = estimate_of(release, given)
    if not set(G) <= set(S):
        table = tuple(
            release.plan.schema.names[i] for i in (*(i for i in group if i not in asked), *asked)
        )
        raise _other_groups(repr(names), given, f"proportions({table!r}, given={given!r})")
    labels = tuple(release.plan.schema.attributes[i].labels for i in asked)
    groups = _groups(release, counts, tuple(axis for axis, i in enumerate(S) if i not in G))
    share = release.query.spread(np.ones([release.query.strategies[i].size for i in G]), G, S)
    variance = np.asarray(release.covariance.table_variance(S))
    own = {i: Identity(release.plan.schema.sizes[i]) for i in asked}
    forms = _forms_of(release, own, {i: own[i] for i in group})
    return _shares(release, asked, S, group, labels, (counts, groups, variance, share), forms)


def _grouped(release: AbstractRelease, names: Entry, given: Entry) -> ProportionTable:
    """Return shares like :func:`proportions`, if parts or groups consist of several cells."""
    found = _within(release, names, given)
    plain = release.plan.schema.names
    counts = estimate_of(release, tuple([plain[i] for i in found.subset]))[2]
    groups = estimate_of(release, tuple([plain[i] for i in sorted(found.given)]))[2]
    for axis, (_, base) in enumerate(found.parts):
        counts = np.asarray(base.answer(counts, axis))
    for axis, (_, base) in enumerate(found.wholes):
        groups = np.asarray(base.answer(groups, axis))
    variance = release.covariance.term_variance(found.parts)
    group_variance = found.spread(np.asarray(release.covariance.term_variance(found.wholes)))
    zeros = np.zeros(group_variance.shape)
    share = np.divide(
        _covariances(release, found), group_variance, out=zeros, where=group_variance > 0
    )
    asked = tuple(found.asked)
    attributes = [release.plan.schema.attributes[i] for i in asked]
    labels = tuple(query_labels(found.asked[i], a) for i, a in zip(asked, attributes, strict=True))
    said = [given] if isinstance(given, str) else given
    parts = counts, found.spread(groups), variance, share, group_variance
    places = {i: Base(found.given[i].toarray()[found.groups[i]]) for i in found.given}
    forms = _forms_of(release, found.asked, places)
    return _ratio_table(release, asked, found.subset, tuple(said), labels, parts, forms)


def cdf(release: AbstractRelease, name: str, given: Names = ()) -> ProportionTable:
    """Return cumulative shares of an attribute, in the order of the schema, within groups.

    The shares are of all records of a group. Records in the catch-all of the attribute are counted
    in the group, but are not part of the cumulative counts.

    Args:
        release: the release that is asked.
        name: the attribute.
        given: attributes that define the groups; none for all records.

    Returns:
        A :class:`ProportionTable`, axes of ``given`` first. Its simultaneous intervals are
        bands around the CDFs.

    Raises:
        ParameterError: unknown attributes, or a table that was not released.

    >>> import pyarrow as pa
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
    ... )
    >>> people = pa.table({"sex": ["F", "M", "F"] * 4000, "age": [7, 33, 61] * 4000})
    >>> release = gn.plan(schema, [{"sex": "identity", "age": "prefix"}], gn.zCDP(0.1)).release(
    ...     people
    ... )
    >>> bool(abs(release.cdf("age", given="sex").estimate - [[0.5, 1, 1], [0, 1, 1]]).max() < 0.02)
    True
    """
    for asked in ((name,), given):
        check_no_number(release, "cdf", asked)
    group = release.plan.subset((given,) if isinstance(given, str) else given)
    if release.plan.subset((name,))[0] in group:
        raise ParameterError(
            f"cdf: expected groups by other attributes than {name!r}, got given={given!r}"
        )
    names = release.plan.schema.names
    asked, S, counts = estimate_of(release, (*(names[i] for i in group), name))
    i = asked[-1]
    axis, attribute = S.index(i), release.plan.schema.attributes[i]
    prefix = as_base("prefix", attribute)
    term = tuple((k, prefix if k == i else Identity(release.plan.schema.sizes[k])) for k in S)
    G = tuple(sorted(group))
    share = release.query.spread(np.ones([release.query.strategies[k].size for k in G]), G, S)
    groups = _groups(release, counts, (axis,))
    sums, share = (np.array(prefix.answer(values, axis)) for values in (counts, share))
    if attribute.other is None:
        last = (*[slice(None)] * axis, slice(-1, None))
        sums[last], share[last] = groups, 1.0  # the exact values, without rounding errors
    variance = release.covariance.term_variance(term)
    labels = [release.plan.schema.attributes[k].labels for k in group]
    labels.append(query_labels(prefix, attribute))
    own = {k: prefix if k == i else Identity(release.plan.schema.sizes[k]) for k in asked}
    forms = _forms_of(release, own, {k: own[k] for k in group})
    parts = sums, groups, variance, share
    shares = _shares(release, asked, S, group, tuple(labels), parts, forms)
    return replace(shares, steps=steps_of(attribute))


def _groups(release: AbstractRelease, counts: Array, axes: tuple[int, ...]) -> Array:
    """Return counts summed along axes, which keep length 1; round a public number of rows."""
    groups = counts.sum(axis=axes, keepdims=True)
    return np.rint(groups) if groups.size == 1 and release.public_rows is not None else groups


def _shares(
    release: AbstractRelease,
    asked: Subset,
    S: Subset,
    group: Subset,
    labels: tuple[tuple[Category, ...], ...],
    parts: tuple[Array, Array, Array, Array],
    forms: CellForms,
) -> ProportionTable:
    """Return the table of shares: counts of parts divided by the counts of their groups."""
    # parts: sums, group counts, variances and shares, with axes in the order of S
    names, G = release.plan.schema.names, tuple(sorted(group))
    group_variance = np.asarray(release.covariance.table_variance(G))
    if group_variance.ndim:
        group_variance = group_variance.reshape(
            [release.plan.schema.sizes[i] if i in G else 1 for i in S]
        )
    given = tuple(names[i] for i in group)
    return _ratio_table(release, asked, S, given, labels, (*parts, group_variance), forms)


def _forms_of(
    release: AbstractRelease, asked: Mapping[int, AbstractBase], groups: Mapping[int, AbstractBase]
) -> CellForms:
    """Return each share as the ratio of two linear combinations of released cells."""
    axes, names = {i: axis for axis, i in enumerate(asked)}, release.plan.schema.names
    top, bottom = (
        {names[i]: Rows(base, axes[i]) for i, base in term.items()} for term in (asked, groups)
    )
    return CellForms(release, top, bottom)


def _ratio_table(
    release: AbstractRelease,
    asked: Subset,
    S: Subset,
    given: tuple[str, ...],
    labels: tuple[tuple[Category, ...], ...],
    parts: tuple[Array, Array, Array, Array, Array],
    forms: CellForms,
) -> ProportionTable:
    """Return the table of shares, given the counts and variances of parts and groups."""
    # parts: counts, group counts, variances, shares, variances of groups; axes in the order of S
    names, shape = release.plan.schema.names, parts[0].shape
    counts, groups, variance, share, group_variance = (
        ordered(np.broadcast_to(part, shape), S, asked) for part in parts
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.where(groups > 0, counts / groups, np.nan)
        squared = variance - 2 * estimate * share * group_variance + estimate**2 * group_variance
        # a group divided by itself has variance 0, apart from rounding errors
        deviation = np.sqrt(np.where(squared > _CANCELLED * variance, squared, 0)) / groups
        # a share of exactly 0 or 1 has no noise; nor has any share of exact tables
        whole = (deviation == 0) & (
            not release.query.public or np.abs(estimate - np.rint(estimate)) < ROUNDED
        )
        estimate = np.where(whole, np.rint(estimate), estimate)
        deviation = np.where(np.isnan(estimate), np.nan, deviation)
    return ProportionTable(
        attributes=tuple(names[i] for i in asked),
        labels=labels,
        estimate=read_only(estimate),
        standard_deviation=read_only(deviation),
        private=release.private,
        backend=release.backend,
        given=given,
        counts=counts,
        groups=groups,
        variance=variance,
        group_variance=group_variance,
        share=share,
        forms=forms,
    )


class _Within(NamedTuple):
    """The parts whose shares are asked, and the groups that contain them."""

    asked: Asked  # {attribute of the table: its queries}, in the given order
    given: Asked  # {attribute of the groups: its queries}, in the given order
    groups: Mapping[int, NDArray[np.intp]]  # {attribute of groups: the group of each part}

    @property
    def subset(self) -> Subset:
        """The indices of all attributes of the table, sorted."""
        return tuple(sorted(self.asked))

    @property
    def parts(self) -> Term:
        """The queries that count the parts, as pairs (attribute index, queries)."""
        return tuple((i, self.asked[i]) for i in self.subset)

    @property
    def wholes(self) -> Term:
        """The queries that count the groups, as pairs (attribute index, queries)."""
        return tuple((i, self.given[i]) for i in sorted(self.given))

    def spread(self, values: Array) -> Array:
        """Return an array with a value for each part: the value of the group that contains it."""
        for axis, i in enumerate(sorted(self.given)):
            values = np.take(values, self.groups[i], axis=axis)
        shape = [self.asked[i].queries if i in self.given else 1 for i in self.subset]
        return np.broadcast_to(values.reshape(shape), [b.queries for _, b in self.parts])


def _within(release: AbstractRelease, names: Entry, given: Entry) -> _Within:
    """Return the parts and groups of shares; raise ParameterError if a part is in no group."""
    asked, group = _term(release, names), _term(release, given)
    if missing := [i for i in group if i not in asked]:
        name = release.plan.schema.names[missing[0]]
        raise _other_groups(_names_text(names), given, f"add {name!r} to the table")
    places = {i: _places(release, i, asked[i], group[i]) for i in group}
    return _Within(asked, group, places)


def _other_groups(names: str, given: Entry, hint: str) -> ParameterError:
    """Return the error of groups by attributes that the table ``names`` lacks."""
    return ParameterError(
        f"proportions: expected groups by some of {names}, got given={given!r}; hint: {hint}"
    )


def _has_levels(release: AbstractRelease, names: Names) -> bool:
    """Return whether some of the names are names of levels (named groupings of categories)."""
    listed = (names,) if isinstance(names, str) else names
    return any(name in release.plan.schema.levels for name in listed)


def _covariances(release: AbstractRelease, parts: _Within) -> Array:
    """Return the covariance between the noise of every part's count and of its group's count."""
    G, shape = tuple(sorted(parts.given)), [base.queries for _, base in parts.parts]
    total = np.zeros(shape)
    # the variance of shared noise: a group sums over all categories of attributes not in given,
    # and along these, all noise except that of totals sums to zero
    for T in subsets_of(G):
        if T in release.query.multipliers:
            factors = [_factor(release, parts, i, T) for i in parts.subset]
            total += release.covariance.variances[T] * reduce(
                np.multiply.outer, factors, np.array(1.0)
            )
    return total


def _factor(release: AbstractRelease, parts: _Within, i: int, T: Subset) -> Array:
    """Return the factor of attribute i in the covariance of each part with its group, by T."""
    strategy = release.query.strategies[i].in_set(T)
    seen = strategy.root if i in T else strategy.profile[:, None]
    part = parts.asked[i].toarray() @ seen
    if i not in parts.given:
        return part[:, 0]  # the group sums over all categories, and the profile sums to one
    return np.einsum("kr,kr->k", part, (parts.given[i].toarray() @ seen)[parts.groups[i]])


def _term(release: AbstractRelease, entry: Entry) -> Asked:
    """Return {attribute index: queries} for an entry; queries count cells, or groups of cells."""
    schema = release.plan.schema
    if isinstance(entry, Mapping):
        term = entry_term(schema, entry)
    else:
        levels = release.plan.schema.levels
        listed = (entry,) if isinstance(entry, str) else tuple(entry)
        attributes = [levels.get(name, name) for name in listed]
        release.plan.subset(attributes)  # raises for unknown and repeated attributes
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
    release: AbstractRelease, i: int, parts: AbstractBase, groups: AbstractBase
) -> NDArray[np.intp]:
    """Return for each part of attribute i the index of the group that contains the part."""
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


def _names_text(names: Entry) -> str:
    return repr(dict(names) if isinstance(names, Mapping) else names)
