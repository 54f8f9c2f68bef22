"""The bases of attributes (the queries about an attribute's cells), as files state them."""

import inspect
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from domains.errors import DomainError
from domains.stored import OWN_FIRST, is_ours, named_classes, schema_name
from domains.tables.bases import (
    AbstractBase,
    Base,
    Bins,
    Identity,
    Leading,
    Moments,
    Prefix,
    Ranges,
)
from domains.tables.clipped import Clipped

from ...errors import SchemaError
from ...files.disk import MALFORMED
from ...text import near
from .dates import AS_NUMBERS, Toml, edge_text, is_dated, is_open, place
from .groups import level_base, level_labels, level_names, level_of
from .numbers import clipped_base, clipped_name

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .schema import Attribute

BaseLike: TypeAlias = "AbstractBase | str | Mapping[str, object] | ArrayLike | None"

MIDDLES = "bin middles"
_PLAIN = ", ".join(  # bases that are determined by the number of categories
    f'"{name}"'
    for name, cls in named_classes(AbstractBase).items()
    if is_ours(cls) and list(inspect.signature(cls).parameters) == ["size"]
)
EXPECTED_BASE = (
    f'expected {_PLAIN}, {{kind = "bins", widths = [...]}}, {{kind = "windows", width = ...}}, '
    '{kind = "moments", degrees = [...]} or a matrix, one row per query'
)


def as_base(value: BaseLike, attribute: "Attribute") -> AbstractBase:
    """Return the base (the queries about the attribute's cells) that ``value`` describes.

    Raise SchemaError if it describes none. Bases with ordered cells leave out the catch-all
    category (for all other values), which is the last cell.
    """
    if attribute.is_summed:
        return clipped_base(value, attribute)
    try:
        base = _base_of_all_cells(value, attribute)
    except SchemaError:
        raise
    except (DomainError, *MALFORMED) as error:
        why = str(error) if isinstance(error, DomainError) else _unknown(value, attribute)
    else:
        why = _misfit(base, attribute)
        if why is None:
            return base
    raise SchemaError(f"attribute {attribute.name!r}: base: {why}")


def _unknown(value: object, attribute: "Attribute") -> str:
    """Return the message for an error: ``value`` describes no base (set of queries)."""
    known = (*named_classes(AbstractBase), *level_names(attribute))
    name = value.get("kind") if isinstance(value, Mapping) else value
    hint = ""
    if isinstance(name, str) and name not in known:
        hint = near(name, known) or f"; hint: {OWN_FIRST}"
    return f"{EXPECTED_BASE}; got {value!r:.80}{hint}"


def _misfit(base: AbstractBase, attribute: "Attribute") -> str | None:
    """Return the reason why a base (set of queries) does not fit an attribute; None if it does."""
    name, other = type(base).__name__, attribute.other
    if base.is_ordered is None and other is not None:
        return (
            f"expected {name} to say whether the catch-all {other!r} has a place in it; hint: "
            "is_ordered = True in the class where queries take cells in their order, else False"
        )
    if base.size != attribute.size:
        included = "" if other is None else ", the catch-all included"
        return f"expected queries over {attribute.size} cells{included}, got {base.size}"
    # moments over all cells would need a number that represents the catch-all
    if base.is_ordered and other is not None and not isinstance(base, Moments):
        ordered = _size_without_other(attribute)
        more = ", ..." if len(inspect.signature(type(base)).parameters) > 1 else ""
        return (
            f"expected {name} of the {ordered} cells before the catch-all {other!r}, which has no "
            f"place in their order, got {base.size}; hint: {name}({ordered}{more}), or a matrix"
        )
    own = type(_without_leading(base))
    if schema_name(own) is None or is_ours(own) or _is_same_after_files(base, attribute):
        return None
    return (
        f"expected {own.__name__} to equal what its constructor makes of the arguments that files "
        "hold; hint: a frozen dataclass, whose arguments are size, text, numbers and tuples of "
        "these"
    )


def _is_same_after_files(base: AbstractBase, attribute: "Attribute") -> bool:
    """Return whether a base, written to a file and read again, is equal to itself."""
    try:
        value = base_value(base, attribute)
        options = value.values() if isinstance(value, dict) else [value]
        return all(map(_is_plain, options)) and bool(
            isinstance(value, list) or _base_of_all_cells(value, attribute) == base
        )
    except (DomainError, *MALFORMED):
        return False


def _is_plain(value: object) -> bool:
    """Return whether TOML and JSON can hold a value: text, a number, or lists of these."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float)


def _without_leading(base: AbstractBase) -> AbstractBase:
    """Return the base that a :class:`Leading` extends; return other bases unchanged."""
    return base.base if isinstance(base, Leading) else base


def _base_of_all_cells(value: BaseLike, attribute: "Attribute") -> AbstractBase:
    """Return the base that ``value`` describes, extended to the catch-all if stated without it."""
    base = _resolved(value, attribute)
    ahead = base.is_ordered and base.size == _size_without_other(attribute) < attribute.size
    return Leading(base, attribute.size) if ahead else base


def _size_without_other(attribute: "Attribute") -> int:
    """Return the number of cells other than the catch-all category (for all other values)."""
    return attribute.size - (attribute.other is not None)


def _resolved(value: BaseLike, attribute: "Attribute") -> AbstractBase:
    if value is None:
        return Identity(attribute.size)
    if isinstance(value, AbstractBase):
        return value
    if isinstance(value, Mapping):
        options = dict(value)
        return _named(options.pop("kind", None), options, attribute)
    if isinstance(value, str):
        levels = level_names(attribute)
        return level_base(attribute, value) if value in levels else _named(value, {}, attribute)
    return Base(value)


def _named(name: object, options: Mapping[str, object], attribute: "Attribute") -> AbstractBase:
    """Return the base with this name and these options, as in a schema file; TypeError if none."""
    cls = named_classes(AbstractBase).get(name) if isinstance(name, str) else None
    if cls is None:
        raise TypeError
    size = _size_without_other(attribute) if cls.is_ordered else attribute.size
    return cls._of_cells(size, lambda: _numbers(attribute), options)


def _own_numbers(attribute: "Attribute") -> list[float] | None:
    """Return one number for each cell: a bin's middle, or an integer category; None if unknown."""
    edges = attribute.edges
    if edges is not None and not is_dated(edges) and not any(map(is_open, edges)):
        ends = [place(edge) for edge in edges]
        return [(low + high) / 2 for low, high in itertools.pairwise(ends)]
    if attribute.categories is not None and all(isinstance(c, int) for c in attribute.categories):
        # numbers of any size, which are checked where they are used
        return [c for c in attribute.categories if isinstance(c, int)]
    return None


def _numbers(attribute: "Attribute") -> list[float]:
    """Return the number of each cell in sums of powers (moments); SchemaError if there is none."""
    values = _own_numbers(attribute)
    if values is None and is_dated(attribute.edges):
        raise SchemaError(
            f"attribute {attribute.name!r}: base: expected no moments of dates; hint: {AS_NUMBERS}"
        )
    if values is None:
        raise SchemaError(
            f"attribute {attribute.name!r}: base: expected values, one number per cell, where "
            "edges are infinite or "
            "categories are not integers"
        )
    return values


def base_value(base: AbstractBase, attribute: "Attribute") -> "str | list[Toml] | dict[str, Toml]":
    """Return a base (set of queries) as plain data, from which :func:`as_base` makes it again.

    Plain data are text, numbers, lists and dicts. A base that has no name becomes its query matrix.
    """
    if isinstance(base, Clipped):
        if base.degrees == (0, 1) and not base.about:
            return "sum"
        about = {"about": base.about} if base.about else {}
        return {"kind": "moments", "degrees": list(base.degrees)} | about
    level = level_of(base, attribute)
    if level is not None:
        return level
    own = _without_leading(base)
    name = schema_name(type(own))
    meant = own is base or (own.is_ordered and own.size == _size_without_other(attribute))
    if name is None or not meant:
        return base.toarray().tolist()
    options = own.options()
    return {"kind": name, **options} if options else name


def query_labels(base: AbstractBase, attribute: "Attribute") -> tuple[str, ...]:
    """Return one label for each query of a base, to be printed in tables.

    A cumulative count of bins has the label of its upper edge.
    """
    level = level_of(base, attribute)
    if level is not None:
        return level_labels(attribute, level)
    own = _without_leading(base)
    without = "" if own is base or attribute.other is None else f", without {attribute.other!r}"
    if isinstance(own, Moments):
        return tuple(
            _moment(degree, moment_source(own, attribute), without) for degree in own.degrees
        )
    if attribute.edges is not None and own.size == len(attribute.edges) - 1:
        e = [edge_text(edge) for edge in attribute.edges]
        if isinstance(own, Prefix):
            last = f"all{without}" if e[-1] == "inf" else f"up to {e[-1]}"
            return (*(f"below {end}" for end in e[1:-1]), last)
        if isinstance(own, Ranges | Bins):
            opening, closing = (attribute.interval_texts[k] for k in (0, -1))
            first = [opening[0], *("[" for _ in e[2:])]
            ends = [*(")" for _ in e[2:]), closing[-1]]
            return tuple(
                str(attribute.labels[i])  # also the name of a single interval
                if i == j
                else f"{first[i]}{e[i]}, {e[j + 1]}{ends[j]}"
                for i, j in zip(*own.ends(), strict=True)
            )
    return own.labels(attribute.labels[: own.size])


def moment_source(base: Moments, attribute: "Attribute") -> str:
    """Return the name of the numbers that moments sum, like "bin middles" or "given values"."""
    own = _own_numbers(attribute)
    if own is None or list(base.values) != own:
        return "given values"
    return MIDDLES if attribute.edges is not None else "values"


def degrees_of(base: AbstractBase, attribute: "Attribute") -> dict[str, int]:
    """Return {label of a query: k} for the queries that are sums of k-th powers of a number."""
    own = _without_leading(base)
    degrees = own.degrees if isinstance(own, Moments | Clipped) else ()
    labels = query_labels(base, attribute) if degrees else ()
    return dict(zip(labels, degrees, strict=False))  # a further label may be for the catch-all


def _moment(degree: int, source: str, without: str) -> str:
    if degree < 2:
        return (f"sum of {source}" if degree else "count") + without
    return (
        f"sum of squared {source}{without}"
        if degree == 2
        else f"sum of {source} to the power {degree}{without}"
    )


def base_name(base: AbstractBase, attribute: "Attribute") -> str:
    """Return a short name of a base (set of queries) for texts, like "prefix"."""
    if isinstance(base, Clipped):
        return clipped_name(base, attribute.interval)
    if isinstance(base, Leading):
        rest = "what follows" if attribute.other is None else repr(attribute.other)
        return f"{base_name(base.base, attribute)}, without {rest}"
    if isinstance(base, Moments):
        return f"{base.summary()} of {moment_source(base, attribute)}"
    return level_of(base, attribute) or base.summary()
