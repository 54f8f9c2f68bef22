"""Rows with a combination that the schema calls impossible, found by codes, in any engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TypeVar, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..schema.impossible import rule_text
from ..schema.schema import Schema

# one value per record: an array in this process, or an expression of another engine
Vector = TypeVar("Vector", NDArray, nw.Expr)


@final
@dataclass(frozen=True)
class Excluded:
    """A rule about combinations that cannot occur in a row, in terms of codes.

    Attributes:
        text: the rule in words.
        codes: pairs (index of a column, codes); no row has one of these codes in every column.
    """

    text: str
    codes: tuple[tuple[int, tuple[int, ...]], ...]


def excluded(schema: Schema, used: Sequence[int]) -> tuple[Excluded, ...]:
    """Return the rules on impossible combinations that concern only the attributes ``used``.

    The codes in the rules refer to positions in ``used``.
    """
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
    """Return the codes of labels: 1 + the index of the cell, and also 0 for the catch-all."""
    attribute = schema.attributes[schema.names.index(name)]
    cells = [attribute.labels.index(label) for label in labels]
    rest = [0] if attribute.other is not None and attribute.size - 1 in cells else []
    return (*rest, *(cell + 1 for cell in cells))


def impossible_error(rule: Excluded) -> DataError:
    """Return the error for a table with a row that the rule forbids."""
    return DataError(
        f"table: some row has {rule.text}, which the schema calls impossible; hint: "
        'correct the table or the rule, or on_outside="drop" to leave such rows out'
    )


def matches(code: Callable[[int], Vector], rule: Excluded) -> Vector:
    """Return for each record whether it has a combination that the rule forbids.

    ``code`` is a function from the index of a column to its codes.
    """
    return reduce(and_, [_is_in(code(k), codes) for k, codes in rule.codes])


def _is_in(own: Vector, codes: Sequence[int]) -> Vector:
    if isinstance(own, np.ndarray):
        return np.isin(own, codes)
    return reduce(or_, [own == code for code in codes])
