"""The codes of the rows that are counted: those that fit the schema, at most k of each person."""

import operator
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from ...errors import DataError
from ..reading.codes import Coded, Codes, code_rows, each, open_for
from ..reading.codes_lazy import balanced
from ..reading.frames import guarded
from ..reading.opened import TASK
from ..reading.persons import PERSON, People, no_person
from ..schema.dates import is_dated
from ..schema.schema import Attribute, OnOutside
from .impossible import Column, Excluded, check_possible, columns_of, possible, without
from .persons import PersonLimit, limited_arrays, limited_dask, limited_spark


def misfits(
    column: Column, attributes: Sequence[Attribute], without_person: Any = None
) -> dict[str, Any]:
    """Return where rows have no cell, by column of codes, or no person: arrays or expressions."""
    outside = {f"c{k}": column(f"c{k}") == 0 for k, a in enumerate(attributes) if a.other is None}
    return outside | ({} if without_person is None else {PERSON: without_person})


def outside_error(attribute: Attribute) -> DataError:
    """Return the error for a record without a cell: a null, NaN, unknown or outside the edges."""
    if attribute.clip is not None:
        return DataError(
            f"column {attribute.name!r}: expected only numbers, got a null, NaN or another value; "
            'hint: correct the table, or give the attribute a catch-all: other = "…"'
        )
    rule = "finite numbers inside its declared edges"
    if attribute.edges is None:
        rule = "its declared categories"
    elif is_dated(attribute.edges):
        rule = "dates inside its declared edges, without time zone"
    return DataError(
        f"column {attribute.name!r}: expected only {rule}, got a null or another value; "
        'hint: correct the schema, or give the attribute a catch-all: other = "…"'
    )


def code_table(
    table: object,
    attributes: Sequence[Attribute],
    on_outside: OnOutside = "refuse",
    limit: PersonLimit | None = None,
    impossible: Sequence[Excluded] = (),
) -> Coded | nw.LazyFrame[Any]:
    """Return small integers: 1 + the cell of each value, or 0 if there is no cell.

    They come as batches of arrays, one a column, or as columns c0, c1, … if another engine counts.
    For a clipped number the code is 1 + its steps.

    Args:
        table: as for :func:`gaussnoise.tables.counting.count.count_marginals`.
        attributes: at least one.
        on_outside: "refuse" expects columns of a type that fits the attribute. "drop" takes all
            values of a pandas or dask column, since its type depends on the rows there; from other
            engines, which declare types, it also takes integer categories in columns of floats.
            Rows that have no cell are left out.
        limit: on the rows of each person, among those that are not left out. With "refuse" it looks
            at all rows first.
        impossible: with a limit, what cannot occur in a row: such rows are treated as those without
            a cell, so that they take no place among a person's counted rows.

    Raises:
        DataError: a missing column or wrong type; with a limit, rows that have no cell or no
            person.
        ParameterError: a limit in an engine that has no windows.
    """
    drop = on_outside == "drop"
    person = None if limit is None else limit.column
    source = open_for(table, attributes, person, drop)

    def coded() -> Coded | nw.LazyFrame[Any]:
        records = code_rows(source, attributes, person)
        if isinstance(records, nw.LazyFrame):
            return _kept(records, attributes, drop, limit, impossible)
        rows, people = records
        return each(lambda own: _kept_here(own, people, attributes, drop, limit, impossible), rows)

    return guarded(TASK, coded, engine=source.engine)


def _kept_here(
    columns: list[Codes],
    people: People | None,
    attributes: Sequence[Attribute],
    drop: bool,
    limit: PersonLimit | None,
    impossible: Sequence[Excluded],
) -> list[Codes]:
    """Return the rows that are counted: without those outside, then those beyond the limit.

    Whether a row is outside depends on that row alone. Which rows are beyond the limit depends on
    the remaining rows of the same person. So one person does not change the rows of others.
    """
    strict = [k for k, a in enumerate(attributes) if a.other is None]
    outside = misfits(columns_of(columns), attributes, people and people.index < 0)
    if drop and outside:
        inside = ~np.any(list(outside.values()), axis=0)
        columns = [codes[inside] for codes in columns]
        people = people and People(people.index[inside], people.names)
    if people is None or limit is None:
        return columns
    if drop and impossible:
        inside = possible(columns, impossible)
        columns = [codes[inside] for codes in columns]
        people = People(people.index[inside], people.names)
    if (people.index < 0).any():
        raise no_person(limit.column)
    for k in strict:  # before any row is left out, so that a refusal does not depend on chance
        if not columns[k].all():
            raise outside_error(attributes[k])
    if not drop:
        check_possible([columns], impossible)
    return limited_arrays(columns, people, limit)


def _kept(
    coded: nw.LazyFrame[Any],
    attributes: Sequence[Attribute],
    drop: bool,
    limit: PersonLimit | None,
    impossible: Sequence[Excluded],
) -> nw.LazyFrame[Any]:
    """Return the rows that are counted, as :func:`_kept_here` does, in another engine."""
    outside = misfits(nw.col, attributes, limit and nw.col(PERSON).is_null())
    if drop and outside:
        coded = coded.filter(balanced(operator.and_, [~mark for mark in outside.values()]))
    if limit is None:
        return coded
    if drop:
        coded = without(coded, impossible)
    else:  # before any row is left out, so that a refusal does not depend on chance
        marks = [mark.fill_null(False).any().alias(name) for name, mark in outside.items()]
        row = coded.select(*marks).collect("pyarrow").to_native().to_pylist()[0]
        if row.pop(PERSON):
            raise no_person(limit.column)
        for k in (int(name[1:]) for name, any_outside in row.items() if any_outside):
            raise outside_error(attributes[k])
        check_possible(coded, impossible)
    dask = coded.implementation == nw.Implementation.DASK
    limited = limited_dask if dask else limited_spark
    return nw.from_native(limited(coded.to_native(), limit))
