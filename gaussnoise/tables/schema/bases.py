"""Bases of attributes as schemas and workloads write them: names, mappings, matrices."""

import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from domains import (
    AbstractBase,
    Base,
    Bins,
    Clipped,
    DomainError,
    Groups,
    Identity,
    Leading,
    Moments,
    Prefix,
    Ranges,
    Total,
    Windows,
)

from ...errors import SchemaError
from ...text import near
from .dates import AS_NUMBERS, edge_text, is_dated, is_open, place
from .groups import level_base, level_labels, level_names, level_of
from .numbers import clipped_base, clipped_name

if TYPE_CHECKING:
    from .schema import Attribute

_NAMED: dict[str, Callable[[int], AbstractBase]] = {
    "identity": Identity,
    "prefix": Prefix,
    "ranges": Ranges,
}
_KEYS = {
    "groups": {"members"},
    "bins": {"widths"},
    "windows": {"width"},
    "moments": {"degrees", "values"},
}
_ORDERED = Prefix | Ranges | Bins | Windows | Moments  # a catch-all has no place in these
MIDDLES = "bin middles"
EXPECTED_BASE = (
    'expected "identity", "prefix", "ranges", {kind = "bins", widths = [...]}, {kind = '
    '"windows", width = ...}, '
    '{kind = "moments", degrees = [...]} or a matrix, one row per query'
)


def as_base(value: Any, attribute: "Attribute") -> AbstractBase:
    """The base that ``value`` means for an attribute, or a SchemaError.

    Queries that take cells in order are about the cells before the catch-all.
    """
    if attribute.clip is not None:
        return clipped_base(value, attribute)
    try:
        base = _resolved(value, attribute)
        ordered = _numeric(attribute)
        if isinstance(base, _ORDERED) and base.size == ordered < attribute.size:
            base = Leading(base, attribute.size)
    except (DomainError, TypeError) as error:
        known = (*_NAMED, *_KEYS, *level_names(attribute))
        name = value.get("kind") if isinstance(value, Mapping) else value
        hint = near(name, known) if isinstance(name, str) and name not in known else ""
        why = (
            str(error)
            if isinstance(error, DomainError)
            else f"{EXPECTED_BASE}; got {value!r:.80}{hint}"
        )
        raise SchemaError(f"attribute {attribute.name!r}: base: {why}") from None
    if base.size != attribute.size:
        cells = f"{attribute.size} cells" + (
            "" if attribute.other is None else ", the catch-all included"
        )
        raise SchemaError(
            f"attribute {attribute.name!r}: base: expected queries over {cells}, got {base.size}"
        )
    if isinstance(base, Prefix | Ranges | Bins | Windows) and attribute.other is not None:
        name = type(base).__name__
        raise SchemaError(
            f"attribute {attribute.name!r}: base: expected {name} of the {ordered} cells before "
            "the catch-all "
            f"{attribute.other!r}, which has no place in their order, got {base.size}; "
            f"hint: {name}({ordered}{'' if isinstance(base, Prefix | Ranges) else ', ...'}), or a "
            "matrix"
        )
    return base


def _numeric(attribute: "Attribute") -> int:
    """How many cells there are before the catch-all."""
    return attribute.size - (attribute.other is not None)


def _resolved(value: Any, attribute: "Attribute") -> AbstractBase:
    if value is None:
        return Identity(attribute.size)
    if isinstance(value, AbstractBase):
        return value
    if isinstance(value, Mapping):
        kind, options = (
            value.get("kind"),
            {key: option for key, option in value.items() if key != "kind"},
        )
        if kind in _NAMED and not options:
            return _named(kind, attribute)
        if kind not in _KEYS or not set(options) <= _KEYS[kind]:
            raise TypeError
        if kind == "groups":
            return Groups(attribute.size, **options)
        if kind == "bins":
            return Bins(_numeric(attribute), **options)
        if kind == "windows":
            return Windows(_numeric(attribute), **options)
        return Moments(
            **{"values": _numbers(attribute) if "values" not in options else (), **options}
        )
    if isinstance(value, str):
        if value in level_names(attribute):
            return level_base(attribute, value)
        if value not in _NAMED:
            raise TypeError
        return _named(value, attribute)
    return Base(value)


def _named(name: str, attribute: "Attribute") -> AbstractBase:
    return Identity(attribute.size) if name == "identity" else _NAMED[name](_numeric(attribute))


def _own_numbers(attribute: "Attribute") -> list[float] | None:
    """The middle of every bin, or the integer that every category is; None where there are no such
    numbers.
    """
    edges = attribute.edges
    if edges is not None and not is_dated(edges) and not any(map(is_open, edges)):
        ends = [place(edge) for edge in edges]
        return [(low + high) / 2 for low, high in itertools.pairwise(ends)]
    if attribute.categories is not None and all(isinstance(c, int) for c in attribute.categories):
        return [
            c for c in attribute.categories if isinstance(c, int)
        ]  # of any size: checked where they are used
    return None


def _numbers(attribute: "Attribute") -> list[float]:
    """The number each cell stands for."""
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


def base_value(base: AbstractBase, attribute: "Attribute") -> Any:
    """What :func:`as_base` reads back: strings, numbers, lists and dicts.

    A matrix if it has no name.
    """
    if isinstance(base, Clipped):
        asked = {"kind": "moments", "degrees": list(base.degrees)}
        return "sum" if base.degrees == (0, 1) else asked
    if isinstance(base, Groups):
        members = [list(group) for group in base.members]
        return level_of(base, attribute) or {"kind": "groups", "members": members}
    if isinstance(base, Leading):
        named = isinstance(base.base, _ORDERED) and base.base.size == _numeric(attribute)
        return _value(base.base) if named else base.toarray().tolist()
    if attribute.other is not None and not isinstance(base, Identity | Moments):
        return base.toarray().tolist()
    return _value(base)


def _value(base: AbstractBase) -> Any:
    for name, kind in _NAMED.items():
        if type(base) is kind:
            return name
    if isinstance(base, Bins):
        return {
            "kind": "bins",
            "widths": [w if isinstance(w, int) else list(w) for w in base.widths],
        }
    if isinstance(base, Windows):
        return {"kind": "windows", "width": base.width}
    if isinstance(base, Moments):
        return {"kind": "moments", "degrees": list(base.degrees), "values": list(base.values)}
    return base.toarray().tolist()


def query_labels(base: AbstractBase, attribute: "Attribute") -> tuple[str, ...]:
    """What each query is called; cumulative counts of bins by their upper ends."""
    level = level_of(base, attribute)
    if level is not None:
        return level_labels(attribute, level)
    left_out = isinstance(base, Leading) and attribute.other is not None
    own = base.base if isinstance(base, Leading) else base
    without = f", without {attribute.other!r}" if left_out else ""
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
            opening, closing = (str(attribute.labels[k]) for k in (0, own.size - 1))
            first = [opening[0], *("[" for _ in e[2:])]
            ends = [*(")" for _ in e[2:]), closing[-1]]
            return tuple(
                f"{first[i]}{e[i]}, {e[j + 1]}{ends[j]}" for i, j in zip(*own.ends(), strict=True)
            )
    return own.labels(attribute.labels[: own.size])


def moment_source(base: Moments, attribute: "Attribute") -> str:
    """What is summed: the values themselves only where categories are integers."""
    own = _own_numbers(attribute)
    if own is None or list(base.values) != own:
        return "given values"
    return MIDDLES if attribute.edges is not None else "values"


def _moment(degree: int, source: str, without: str) -> str:
    if degree < 2:
        return (f"sum of {source}" if degree else "count") + without
    return (
        f"sum of squared {source}{without}"
        if degree == 2
        else f"sum of {source} to the power {degree}{without}"
    )


def base_name(base: AbstractBase, attribute: "Attribute") -> str:
    """A base in a few words."""
    if isinstance(base, Clipped):
        return clipped_name(base)
    if isinstance(base, Leading):
        rest = "what follows" if attribute.other is None else repr(attribute.other)
        return f"{base_name(base.base, attribute)}, without {rest}"
    if isinstance(base, Groups):
        return level_of(base, attribute) or f"{base.queries} groups"
    if isinstance(base, Bins):
        return f"bins of {', '.join(map(str, base.widths))}"
    if isinstance(base, Windows):
        return f"windows of {base.width}"
    if isinstance(base, Moments):
        return f"moments {', '.join(map(str, base.degrees))} of {moment_source(base, attribute)}"
    if isinstance(base, Total):
        return "total"
    return next(
        (name for name, kind in _NAMED.items() if type(base) is kind), f"{base.queries} queries"
    )
