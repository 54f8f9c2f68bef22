"""Bases of attributes as schemas and workloads write them: names, mappings, matrices."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from domains import AbstractBase, Base, Bins, DomainError, Identity, Moments, Prefix, Ranges, Total, Windows

from ..errors import SchemaError

if TYPE_CHECKING:
    from ._schema import Attribute

_NAMED: dict[str, Callable[[int], AbstractBase]] = {"identity": Identity, "prefix": Prefix, "ranges": Ranges}
_KEYS = {"bins": {"widths"}, "windows": {"width"}, "moments": {"degrees", "values"}}
EXPECTED_BASE = (
    'expected "identity", "prefix", "ranges", {kind = "bins", widths = [...]}, {kind = "windows", width = ...}, '
    '{kind = "moments", degrees = [...]} or a matrix, one row per query'
)


def as_base(value: Any, attribute: "Attribute") -> AbstractBase:
    """The base that ``value`` means for an attribute, or a SchemaError."""
    try:
        base = _resolved(value, attribute)
    except (DomainError, TypeError) as error:
        why = str(error) if isinstance(error, DomainError) else f"{EXPECTED_BASE}; got {value!r:.80}"
        raise SchemaError(f"attribute {attribute.name!r}: base: {why}") from None
    if base.size != attribute.size:
        raise SchemaError(
            f"attribute {attribute.name!r}: base: expected queries over {attribute.size} cells, the catch-all "
            f"included, got {base.size}"
        )
    return base


def _resolved(value: Any, attribute: "Attribute") -> AbstractBase:
    if value is None:
        return Identity(attribute.size)
    if isinstance(value, AbstractBase):
        return value
    if isinstance(value, Mapping):
        kind, options = value.get("kind"), {key: option for key, option in value.items() if key != "kind"}
        if kind in _NAMED and not options:
            return _NAMED[kind](attribute.size)
        if kind not in _KEYS or not set(options) <= _KEYS[kind]:
            raise TypeError
        if kind == "bins":
            return Bins(attribute.size, **options)
        if attribute.other is not None and (kind == "windows" or (kind == "moments" and "values" not in options)):
            raise SchemaError(
                f"attribute {attribute.name!r}: base: expected "
                + (
                    "no catch-all, which has no place on a circle"
                    if kind == "windows"
                    else f"values = [...], {attribute.size} of them, since the catch-all stands for no number"
                )
                + f"; hint: leave out other={attribute.other!r}, or write the matrix"
            )
        if kind == "windows":
            return Windows(attribute.size, **options)
        return Moments(**{"values": _midpoints(attribute) if "values" not in options else (), **options})
    if isinstance(value, str):
        if value not in _NAMED:
            raise TypeError
        return _NAMED[value](attribute.size)
    return Base(value)


def _midpoints(attribute: "Attribute") -> Sequence[float]:
    """The number each cell stands for."""
    if attribute.edges is not None and np.isfinite(attribute.edges).all():
        values = [(low + high) / 2 for low, high in zip(attribute.edges, attribute.edges[1:], strict=False)]
    elif attribute.categories is not None and all(isinstance(c, int) for c in attribute.categories):
        values = [c for c in attribute.categories if isinstance(c, int)]  # of any size: checked where they are used
    else:
        raise SchemaError(
            f"attribute {attribute.name!r}: base: expected values, one number per cell, where edges are infinite or "
            "categories are not integers"
        )
    return values


def base_value(base: AbstractBase) -> Any:
    """What :func:`as_base` reads back, of strings, numbers, lists and dicts; a matrix if it has no name."""
    for name, kind in _NAMED.items():
        if type(base) is kind:
            return name
    if isinstance(base, Bins):
        return {"kind": "bins", "widths": list(base.widths)}
    if isinstance(base, Windows):
        return {"kind": "windows", "width": base.width}
    if isinstance(base, Moments):
        return {"kind": "moments", "degrees": list(base.degrees), "values": list(base.values)}
    return base.toarray().tolist()


def query_labels(base: AbstractBase, attribute: "Attribute") -> tuple[str, ...]:
    """What each query is called; cumulative counts of bins by their upper ends."""
    if isinstance(base, Prefix) and attribute.edges is not None:
        ends = [f"{e:.15g}" for e in attribute.edges[1:]]
        last = "all" if ends[-1] == "inf" else f"up to {ends[-1]}"
        return (*(f"below {e}" for e in ends[:-1]), last, *("all" for _ in range(attribute.size - len(ends))))
    if isinstance(base, Ranges | Bins) and attribute.edges is not None and attribute.other is None:
        opening, closing = (str(label) for label in (attribute.labels[0], attribute.labels[-1]))
        e = [f"{edge:.15g}" for edge in attribute.edges]
        first = [opening[0], *("[" for _ in e[2:])]
        last = [*(")" for _ in e[2:]), closing[-1]]
        return tuple(f"{first[i]}{e[i]}, {e[j + 1]}{last[j]}" for i, j in zip(*base.ends(), strict=True))
    return base.labels(attribute.labels)


def base_name(base: AbstractBase) -> str:
    """A base in a word or two."""
    if isinstance(base, Bins):
        return f"bins of {', '.join(map(str, base.widths))}"
    if isinstance(base, Windows):
        return f"windows of {base.width}"
    if isinstance(base, Moments):
        return f"moments {', '.join(map(str, base.degrees))}"
    if isinstance(base, Total):
        return "total"
    value = base_value(base)
    return value if isinstance(value, str) else f"{base.queries} queries"
