"""Rows with a combination that the schema calls impossible, found in the codes of any engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..reading.codes import Coded, Codes, each
from ..schema.impossible import rule_text
from ..schema.schema import Schema


@final
@dataclass(frozen=True)
class Excluded:
    """A rule about impossible combinations, in terms of the codes of columns.

    Attributes:
        text: the rule in words.
        codes: for each column, by its position, the codes that cannot occur together.
    """

    text: str
    codes: tuple[tuple[int, tuple[int, ...]], ...]


def excluded(schema: Schema, used: Sequence[int]) -> tuple[Excluded, ...]:
    """Return the rules whose attributes are all ``used``, which gives the order of columns."""
    columns = {schema.attributes[i].name: k for k, i in enumerate(used)}
    return tuple(
        [
            Excluded(
                rule_text(rule),
                tuple([(columns[name], _codes(schema, name, labels)) for name, labels in rule]),
            )
            for rule in schema.impossible
            if all(name in columns for name, _ in rule)
        ]
    )


def _codes(schema: Schema, name: str, labels: Sequence[object]) -> tuple[int, ...]:
    """Return codes: 1 + the cell. The catch-all's, which is the last cell, is also code 0."""
    attribute = schema.attributes[schema.names.index(name)]
    cells = [attribute.labels.index(label) for label in labels]
    rest = [0] if attribute.other is not None and attribute.size - 1 in cells else []
    return (*rest, *(cell + 1 for cell in cells))


def without(coded: Coded | nw.LazyFrame[Any], rules: Sequence[Excluded]) -> Any:
    """Return the records that no rule excludes."""
    if not rules:
        return coded
    if isinstance(coded, nw.LazyFrame):
        return coded.filter(~reduce(or_, [matches(nw.col, rule) for rule in rules]))

    def kept(columns: list[Codes]) -> list[Codes]:
        inside = possible(columns, rules)
        return [codes[inside] for codes in columns]

    return each(kept, coded)


def possible(coded: list[Codes], rules: Sequence[Excluded]) -> NDArray[np.bool_]:
    """Return for every record whether no rule excludes it; expects one rule at least."""
    return ~np.any([matches(columns_of(coded), rule) for rule in rules], axis=0)


def check_possible(coded: Coded | nw.LazyFrame[Any], rules: Sequence[Excluded]) -> None:
    """Raise a DataError that names a rule, if the rule excludes some record."""
    if not rules:
        return
    if isinstance(coded, nw.LazyFrame):
        any_rule = reduce(or_, [matches(nw.col, rule) for rule in rules])
        broken = (
            [rule for rule in rules if _rows(coded, matches(nw.col, rule))]
            if _rows(coded, any_rule)
            else []
        )
    else:
        found = [[matches(columns_of(own), rule).any() for rule in rules] for own in coded]
        broken = [rule for rule, some in zip(rules, np.any(found, axis=0), strict=True) if some]
    if broken:
        raise DataError(
            f"table: some row has {broken[0].text}, which the schema calls impossible; hint: "
            'correct the table or the rule, or on_outside="drop" to leave such rows out'
        )


Column = Callable[[str], Any]  # the codes called c0, c1, …, as an array or an expression


def columns_of(codes: Sequence[Codes]) -> Column:
    """Return a function from the name of a column of codes to its array."""
    return {f"c{k}": own for k, own in enumerate(codes)}.__getitem__


def matches(column: Column, rule: Excluded) -> Any:
    """Return for every record whether the rule excludes it, as an array or an expression."""
    return reduce(and_, [_is_in(column(f"c{k}"), codes) for k, codes in rule.codes])


def _is_in(own: Any, codes: Sequence[int]) -> Any:
    if isinstance(own, np.ndarray):
        return np.isin(own, codes)
    return reduce(or_, [own == code for code in codes])


def _rows(coded: nw.LazyFrame[Any], condition: nw.Expr) -> int:
    counted = coded.filter(condition).select(nw.len().alias("n")).collect("pyarrow")
    return int(counted.to_native()["n"][0].as_py())
