"""Entries of a workload: each names the attributes of a table, and the queries about them."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from domains.errors import InvalidDomainError
from domains.tables.bases import AbstractBase, Identity
from domains.tables.clipped import Clipped
from domains.tables.marginals import Marginals
from domains.tables.products import Products
from domains.tables.tables import AbstractTables

from ...errors import ParameterError, SchemaError
from ...solvers.tables.residuals import Subset
from ...text import near, one_of
from .bases import BaseLike, as_base, base_name
from .numbers import check_numbers
from .schema import Schema

_MOMENTS = "moments"  # the base of one clipped number, or of several joined by _JOIN
_JOIN = "+"

# names of attributes, each with its own base; or {name: base}, where None means the own base
Entry: TypeAlias = str | tuple[str, ...] | Mapping[str, BaseLike]
Asked: TypeAlias = dict[int, AbstractBase]  # bases by attribute index, in the order of the entry


def attribute_positions(
    positions: Mapping[str, int], names: Sequence[str], levels: Mapping[str, str] | None = None
) -> Subset:
    """Return the indices of the attributes with these names, in the order of the names.

    ``positions`` is {name: index}. ``levels`` is {level of groups: its attribute}, for a hint.
    Raise ParameterError for unknown or repeated names.
    """
    try:
        S = tuple(map(positions.__getitem__, names))
    except (KeyError, TypeError):
        unknown = next(name for name in names if name not in list(positions))
        known, hint = one_of(map(repr, positions)), near(unknown, positions)
        if isinstance(unknown, str) and {*map(str.strip, unknown.split(_JOIN))} <= {*positions}:
            hint = f'; hint: {{{unknown!r}: "moments"}}, in the shell {unknown}:moments'
        if levels and isinstance(unknown, str) and unknown in levels:
            level = f"{{{levels[unknown]!r}: {unknown!r}}}"
            hint = f"; hint: {level} in a workload and in answers(), for these groups"
        raise ParameterError(f"no attribute {unknown!r:.80}: expected {known}{hint}") from None
    if len(set(S)) < len(S):
        raise ParameterError(f"expected distinct attributes, got {tuple(names)!r}")
    return S


def one_by_one(schema: Schema, entries: Sequence[Entry]) -> list[tuple[int, Entry]]:
    """Return pairs (index in ``entries``, entry of one table) that ask for the same as ``entries``.

    An entry for all moments of degree at most two of several numbers becomes several tables. Each
    moment is in only one of them, so that it is measured once. No moment has a higher degree.
    """
    tables = [_tables_of(schema, entry) for entry in entries]

    def term(one: Entry) -> tuple[tuple[int, AbstractBase], ...]:
        return tuple(sorted(entry_term(schema, one).items()))

    several = any(len(own) > 1 for own in tables)
    known = {term(own[0]) for own in tables if len(own) == 1} if several else set()
    found: list[tuple[int, Entry]] = []
    for k, own in enumerate(tables):
        for one in own:
            if len(own) > 1:  # a table that is an entry of its own is not asked for twice
                if (asked := term(one)) in known:
                    continue
                known.add(asked)
            found.append((k, one))
    return found


def _tables_of(schema: Schema, entry: Entry) -> list[Entry]:
    """Return entries of one table each that together ask for the same as ``entry``."""
    # {"income+hours": "moments"} asks for counts, sums, squares and products, in several tables
    joined = _joined(schema, entry)
    if joined is None or not isinstance(entry, Mapping):
        return [entry]
    groups = {name: base for name, base in entry.items() if name != joined}
    numbers = [joined] if joined in schema.names else [*map(str.strip, joined.split(_JOIN))]
    own = dict(zip(schema.names, schema.attributes, strict=True))
    attribute_positions({name: i for i, name in enumerate(own)}, (*groups, *numbers))
    for name in numbers:
        if not own[name].is_summed:
            raise ParameterError(
                f"plan: expected moments of clipped numbers, got {name!r}; hint: clip = [low, high]"
            )
        if own[name].other is not None and len(numbers) > 1:
            raise ParameterError(
                f"plan: expected moments of numbers that every row has, got {name!r} with "
                f"{own[name].other!r} for rows without; hint: one table of all these numbers"
            )

    def table(degrees: Sequence[int], *of: str) -> Entry:
        return groups | {name: {"kind": _MOMENTS, "degrees": [*degrees]} for name in of}

    if len(numbers) == 1:
        return [table([0, 1, 2], *numbers)]
    squares: list[Entry] = [table([1, 2], name) for name in numbers]
    products = [table([1], *pair) for pair in itertools.combinations(numbers, 2)]
    return [groups or (), *squares, *products]


def _joined(schema: Schema, entry: Entry) -> str | None:
    """Return the name in an entry that asks for all moments, like "income+hours", or None."""
    for name, base in entry.items() if isinstance(entry, Mapping) else ():
        if name in schema.names:
            own = schema.attributes[schema.names.index(name)]
            if isinstance(base, str) and base == _MOMENTS and own.is_summed:
                return name
        elif isinstance(name, str) and _JOIN in name:
            if not isinstance(base, str) or base != _MOMENTS:
                raise ParameterError(
                    f'plan: expected {{{name!r}: "moments"}} for several numbers, got {base!r:.80}'
                )
            return name
    return None


def entry_name(schema: Schema, entry: Entry) -> str:
    """Return an entry of a workload as text, like "sex × income+hours (moments)"."""
    joined = _joined(schema, entry)
    if joined is None or not isinstance(entry, Mapping):
        return term_name(schema, list(entry_term(schema, entry).items()))
    groups = {name: base for name, base in entry.items() if name != joined}
    parts = [entry_name(schema, groups)] if groups else []
    return " × ".join([*parts, f"{joined} (moments)"])


def entry_term(schema: Schema, entry: Entry) -> Asked:
    """Return {attribute index: base} for a workload entry that asks for one table.

    A base is the set of queries about the attribute's cells.
    """
    if not isinstance(entry, str | tuple | list | Mapping):
        raise ParameterError(
            f'expected attribute names, or bases like {{"age": "prefix"}}, got {entry!r}'
        )
    tables = _tables_of(schema, entry)
    if len(tables) > 1:
        raise ParameterError(
            f"expected one table, got the moments of {_joined(schema, entry)!r}, which are in "
            f"{len(tables)}; hint: {tables[1]!r}"
        )
    own, positions = _own(schema), {name: i for i, name in enumerate(schema.names)}
    entry = tables[0]
    return {i: own[i] for i in _positions(schema, positions, entry)} | _asked(
        schema, positions, entry
    )


def _own(schema: Schema) -> list[AbstractBase]:
    return [attribute.base or Identity(attribute.size) for attribute in schema.attributes]


def _positions(schema: Schema, positions: Mapping[str, int], entry: Entry) -> Subset:
    names = (entry,) if isinstance(entry, str) else tuple(entry)
    return attribute_positions(positions, names, schema.levels)


def _asked(schema: Schema, positions: Mapping[str, int], entry: Entry) -> Asked:
    """Return {attribute index: base} for bases that the entry states in place of the schema's."""
    asked = {}
    for name, base in entry.items() if isinstance(entry, Mapping) else ():
        if base is not None:
            try:
                asked[positions[name]] = as_base(base, schema.attributes[positions[name]])
            except SchemaError as error:
                raise ParameterError(str(error)) from None
    return asked


def workload_domain(
    schema: Schema,
    workload: int | Sequence[Entry],
    weights: Sequence[float] | None = None,
    scales: Mapping[str, float] | None = None,
) -> AbstractTables:
    """Return the queries of a workload, in the order of the entries.

    The queries are :class:`Marginals` if only counts of cells are asked, else :class:`Products`.
    ``weights`` are the weights of the entries' errors. ``scales`` has, for each number with a unit,
    the unit for the errors of its sums.
    """
    domain = _domain(schema, workload, weights)
    own = {
        schema.names.index(name): t for name, t in (scales or {}).items() if name in schema.names
    }
    if own and isinstance(domain, Products):
        terms = [
            {i: replace(b, unit=own[i]) if i in own and isinstance(b, Clipped) else b for i, b in t}
            for t in domain.terms
        ]
        domain = Products(domain.bases, terms, weights=domain.weights)
    check_numbers(schema, domain)
    return domain


def _domain(
    schema: Schema, workload: int | Sequence[Entry], weights: Sequence[float] | None
) -> AbstractTables:
    own = _own(schema)
    if isinstance(workload, int):
        if not 0 <= workload <= len(own):
            raise ParameterError(
                f"plan: expected 0 <= k <= {len(own)} attributes, got {workload}-way marginals"
            )
        subsets = Marginals.all_kway(schema.sizes, workload).subsets
        if all(base.is_identity for base in own):
            return Marginals(schema.sizes, subsets, weights=weights)
        return Products(own, subsets, weights=weights)
    types = set(map(type, workload)) if isinstance(workload, list | tuple) else {object}
    if not all(issubclass(given, str | tuple | list | Mapping) for given in types):
        raise ParameterError(
            f'plan: expected k or a list of marginals like [("age", "sex")], got {workload!r}'
        )
    if (
        isinstance(workload, tuple)
        and len(workload) > 1
        and all(isinstance(name, str) for name in workload)
    ):
        raise ParameterError(
            f"plan: expected a list of marginals, got the names {workload!r}; hint: "
            f"[{workload!r}] for their table "
            f"together, {list(workload)!r} for one table of each"
        )
    if not workload:
        raise ParameterError(
            "plan: expected at least one marginal; hint: [()] asks for the total alone"
        )
    if any(issubclass(given, Mapping) for given in types):
        workload = [entry for _, entry in one_by_one(schema, workload)]
    positions = {name: i for i, name in enumerate(schema.names)}
    subsets = [_positions(schema, positions, entry) for entry in workload]
    terms: Sequence[Subset | Asked] = subsets
    cells = all(own[i].is_identity for i in set(itertools.chain.from_iterable(subsets)))
    if any(issubclass(given, Mapping) for given in types):
        asked = [
            {i: own[i] for i in S} | _asked(schema, positions, entry)
            for S, entry in zip(subsets, workload, strict=True)
        ]
        terms, cells = asked, all(base.is_identity for term in asked for base in term.values())
    if cells:
        domain = Marginals(schema.sizes, terms, weights=weights)
        if len(domain.subsets) < len(terms):
            raise ParameterError("plan: expected distinct marginals, got one twice")
        return domain
    try:
        return Products(own, terms, weights=weights)
    except InvalidDomainError as error:
        raise ParameterError(f"plan: {error}") from None


def term_name(schema: Schema, term: Sequence[tuple[int, AbstractBase]]) -> str:
    """Return an entry as text, where queries other than cells are named: ``age (prefix) × sex``."""
    parts = [
        schema.names[i]
        + (
            ""
            if base.is_identity or base.size == 1
            else f" ({base_name(base, schema.attributes[i])})"
        )
        for i, base in term
    ]
    return " × ".join(parts) or "total"
