"""Named groups of the cells of an attribute, in one or several levels: counties, states, nation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from domains.stored import named_classes
from domains.tables.bases import AbstractBase, Groups

from ...errors import SchemaError
from ...text import near
from .dates import Edge, Plain, edge_position, is_dated, plain

if TYPE_CHECKING:
    from .schema import Attribute, Category

HIERARCHY = "hierarchy"
EXPECTED_GROUPS = (
    'expected groups = {region = {North = ["a", "b"], South = ["c"]}}: levels of named groups '
    "of categories, or of [low, high] edges"
)

# the name of a level, and its groups: name and members
Level: TypeAlias = tuple[str, tuple[tuple[str, tuple[Plain, ...]], ...]]


def settled(value: object) -> tuple[Level, ...]:
    """Return levels of named groups as nested tuples; SchemaError for other values.

    ``value`` is {level: {group: members}}, or such tuples.
    """
    levels = _pairs(value)
    listed = tuple((name, tuple((own, _members(m)) for own, m in _pairs(g))) for name, g in levels)
    if not listed or not all(groups for _, groups in listed):
        raise SchemaError(EXPECTED_GROUPS)
    return listed


def _pairs(value: object) -> list[tuple[str, Any]]:
    pairs: Any = list(value.items()) if isinstance(value, Mapping) else value
    if (
        not isinstance(pairs, list | tuple)
        or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)
        or not all(isinstance(name, str) and name.strip() for name, _ in pairs)
        or len({name for name, _ in pairs}) < len(pairs)
    ):
        raise SchemaError(EXPECTED_GROUPS)
    return list(pairs)


def _members(value: object) -> tuple[Plain, ...]:
    if isinstance(value, str | set | frozenset | Mapping) or not isinstance(value, Iterable):
        raise SchemaError(EXPECTED_GROUPS)
    return tuple(map(plain, value))


def checked(attribute: "Attribute") -> None:
    """Raise SchemaError unless all groups of all levels consist of the attribute's own cells."""
    for level, groups in attribute.groups or ():
        if level in (*named_classes(AbstractBase), "total", HIERARCHY):
            raise SchemaError(f"groups: expected a level of another name than {level!r}")
        seen: dict[int, str] = {}
        for (name, _), members in zip(groups, _level(attribute, level), strict=True):
            for cell in members:
                if cell in seen:
                    raise SchemaError(
                        f"groups: {level!r}: expected every category in one group, got "
                        f"{attribute.labels[cell]!r} in {seen[cell]!r} and in {name!r}"
                    )
                seen[cell] = name
    own = [set(_level(attribute, level)) for level, _ in attribute.groups or ()]
    if any(a in own[:k] for k, a in enumerate(own)):
        raise SchemaError("groups: expected levels that differ, got the same groups twice")
    labels = hierarchy_labels(attribute) if attribute.groups else ()
    if len(set(labels)) < len(labels):
        raise SchemaError("groups: expected names of levels and groups that can be told apart")


def _level(attribute: "Attribute", level: str) -> tuple[tuple[int, ...], ...]:
    """Return, for each group of a level, the indices of its cells, in increasing order."""
    groups = dict(attribute.groups or ())[level]
    return tuple(_cells(attribute, level, name, members) for name, members in groups)


def _cells(
    attribute: "Attribute", level: str, name: str, members: tuple[Plain, ...]
) -> tuple[int, ...]:
    where = f"groups: {level!r}, {name!r}"
    if attribute.edges is not None:
        low, high = _ends(attribute.edges, members)
        if low is None or high is None:
            raise SchemaError(f"{where}: expected [low, high], two of the attribute's edges")
        if low >= high:
            raise SchemaError(f"{where}: expected low < high")
        return tuple(range(low, high))
    # the type is compared too, since true == 1 in Python
    places: dict[tuple[type, Plain], int] = {
        (type(c), c): k for k, c in enumerate(attribute.categories or ())
    }
    if attribute.other is not None:
        places[str, attribute.other] = attribute.size - 1
    unknown = [m for m in members if (type(m), m) not in places]
    if unknown:
        known = [str(c) for c in attribute.categories or ()]
        hint = near(unknown[0], known)
        if unknown[0] in {own for _, groups in attribute.groups or () for own, _ in groups}:
            hint = "; hint: that is a group: list its categories, also at the levels above"
        raise SchemaError(f"{where}: no category {unknown[0]!r:.80}{hint}")
    cells = sorted({places[type(m), m] for m in members})
    if len(cells) < len(members) or not cells:
        raise SchemaError(f"{where}: expected distinct categories, one at least")
    return tuple(cells)


def _ends(edges: Sequence[Edge], members: tuple[Plain, ...]) -> tuple[int | None, int | None]:
    """Return the indices of a group's two ends among ``edges``; None for an end that is no edge."""
    if len(members) != 2 or (any(isinstance(m, str) for m in members) and not is_dated(edges)):
        return None, None
    return edge_position(members[0], edges), edge_position(members[1], edges)


def level_base(attribute: "Attribute", level: str) -> Groups:
    """Return the queries that count the groups of a level.

    The level "hierarchy" has the total, the groups of all levels, and the cells.
    """
    if level != HIERARCHY:
        return Groups(attribute.size, _level(attribute, level))
    cells = range(attribute.size)
    every = [m for own, _ in attribute.groups or () for m in _level(attribute, own)]
    return Groups(attribute.size, [cells, *every, *([k] for k in cells)])


def level_names(attribute: "Attribute") -> list[str]:
    """Return the names of the attribute's levels of groups, and "hierarchy" if there are any."""
    return [*(level for level, _ in attribute.groups), HIERARCHY] if attribute.groups else []


def level_of(base: AbstractBase, attribute: "Attribute") -> str | None:
    """Return the name of the level whose groups these queries count, or None."""
    if not isinstance(base, Groups):
        return None
    return next((x for x in level_names(attribute) if level_base(attribute, x) == base), None)


def level_labels(attribute: "Attribute", level: str) -> tuple[str, ...]:
    """Return the labels of a level's groups, in the order of the queries of :func:`level_base`."""
    if level == HIERARCHY:
        return hierarchy_labels(attribute)
    return tuple(name for name, _ in dict(attribute.groups or ())[level])


def hierarchy_labels(attribute: "Attribute") -> tuple[str, ...]:
    """Return the labels of the total, of the groups ("level: group"), and of the cells."""
    cells = tuple(map(str, attribute.labels))
    every = [f"{level}: {name}" for level, groups in attribute.groups or () for name, _ in groups]
    free = ("all" + "_" * k for k in range(len(cells) + len(every) + 1))
    return (next(x for x in free if x not in (*every, *cells)), *every, *cells)


def group_record(attribute: "Attribute") -> dict[str, dict[str, list["Category"]]]:
    """Return the attribute's groups as plain data, {level: {group: labels of its cells}}."""
    return {
        level: {
            name: [attribute.labels[k] for k in cells]
            for (name, _), cells in zip(groups, _level(attribute, level), strict=True)
        }
        for level, groups in attribute.groups or ()
    }


def group_texts(attribute: "Attribute") -> list[str]:
    """Return all texts in :func:`group_record`: levels, groups and labels, perhaps repeated."""
    return [
        str(text)
        for level, groups in group_record(attribute).items()
        for text in (level, *groups, *(label for cells in groups.values() for label in cells))
    ]
