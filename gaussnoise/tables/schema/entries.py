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

# names of attributes, each with its own base; or {name: base}, where None means the own base
Entry: TypeAlias = str | tuple[str, ...] | Mapping[str, BaseLike]
Asked: TypeAlias = dict[int, AbstractBase]  # bases by attribute index, in the order of the entry


def attribute_positions(positions: Mapping[str, int], names: Sequence[str]) -> Subset:
    """Return the indices of distinct attributes in the given order, or raise ParameterError."""
    try:
        S = tuple(map(positions.__getitem__, names))
    except (KeyError, TypeError):
        unknown = next(name for name in names if name not in list(positions))
        known = one_of(map(repr, positions))
        raise ParameterError(
            f"no attribute {unknown!r:.80}: expected {known}{near(unknown, positions)}"
        ) from None
    if len(set(S)) < len(S):
        raise ParameterError(f"expected distinct attributes, got {tuple(names)!r}")
    return S


def entry_term(schema: Schema, entry: Entry) -> Asked:
    """Return {attribute index: base} for an entry."""
    if not isinstance(entry, str | tuple | list | Mapping):
        raise ParameterError(
            f'expected attribute names, or bases like {{"age": "prefix"}}, got {entry!r}'
        )
    own, positions = _own(schema), {name: i for i, name in enumerate(schema.names)}
    return {i: own[i] for i in _positions(positions, entry)} | _asked(schema, positions, entry)


def _own(schema: Schema) -> list[AbstractBase]:
    return [attribute.base or Identity(attribute.size) for attribute in schema.attributes]


def _positions(positions: Mapping[str, int], entry: Entry) -> Subset:
    return attribute_positions(positions, (entry,) if isinstance(entry, str) else tuple(entry))


def _asked(schema: Schema, positions: Mapping[str, int], entry: Entry) -> Asked:
    """Return the bases that an entry states; they replace the attributes' own bases."""
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
    """Return the queries of a workload; :class:`Marginals` in entry order if all are cell counts.

    ``scales``: for numbers with a unit, the scale in which errors of their sums are measured.
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
    positions = {name: i for i, name in enumerate(schema.names)}
    subsets = [_positions(positions, entry) for entry in workload]
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
    """Return an entry as text, its attributes with their bases, like ``age (prefix) × sex``."""
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
