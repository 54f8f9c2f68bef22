"""The codes of the counted rows: rows that fit the schema, at most k of each person."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import and_
from typing import Any, Protocol, Self, TypeAlias, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..reading.codes import Batches, Coded, Codes, code_rows, each, open_for
from ..reading.codes_lazy import balanced
from ..reading.csv import FORM
from ..reading.declared import TASK
from ..reading.files import is_csv
from ..reading.frames import Lazy, guarded
from ..reading.opened import Opened
from ..reading.persons import PERSON, People, kind_of_persons, no_person
from ..schema.dates import is_dated
from ..schema.schema import Attribute, OnOutside
from .impossible import Excluded, Vector, impossible_error, matches
from .persons import PersonLimit, limited_arrays, limited_dask, limited_spark


class Rows(Protocol[Vector]):
    """Coded rows, and the person of each row."""

    def code(self, k: int) -> Vector:
        """Return the codes of a column."""
        ...

    @property
    def without_person(self) -> Vector | None:
        """One truth value per row: whether it has no person; None without a column of persons."""
        ...

    def but(self, marks: Sequence[Vector]) -> Self:
        """Return the rows that have no mark."""
        ...

    def totals(self, marks: Mapping[str, Vector]) -> Counter[str]:
        """Return the number of rows, and for each mark the number of rows that have it."""
        ...

    def limited(self, limit: PersonLimit) -> Self:
        """Return the rows, with at most as many of each person as the limit allows."""
        ...


AnyRows: TypeAlias = Rows[Any]  # arrays, or expressions of another engine


@final
@dataclass(frozen=True, eq=False)
class Here:
    """Rows in the memory of this process, as arrays of codes."""

    columns: list[Codes]
    people: People | None

    def code(self, k: int) -> NDArray:
        return self.columns[k]

    @property
    def without_person(self) -> NDArray | None:
        return None if self.people is None else self.people.index < 0

    def but(self, marks: Sequence[NDArray]) -> "Here":
        inside = ~np.any(marks, axis=0)
        people = self.people and People(self.people.index[inside], self.people.names)
        return Here([codes[inside] for codes in self.columns], people)

    def totals(self, marks: Mapping[str, NDArray]) -> Counter[str]:
        rows = len(self.columns[0] if self.people is None else self.people.index)
        return Counter(rows=rows, **{name: int(mark.sum()) for name, mark in marks.items()})

    def limited(self, limit: PersonLimit) -> "Here":
        people: Any = self.people  # not None, since a limit names a column of persons
        return Here(limited_arrays(self.columns, people, limit), None)


@final
@dataclass(frozen=True, eq=False)
class There:
    """Rows in another engine, as a frame with columns of codes."""

    frame: Lazy
    has_person: bool

    def code(self, k: int) -> nw.Expr:
        return nw.col(f"c{k}")

    @property
    def without_person(self) -> nw.Expr | None:
        return nw.col(PERSON).is_null() if self.has_person else None

    def but(self, marks: Sequence[nw.Expr]) -> "There":
        inside = balanced(and_, [~mark for mark in marks])
        return There(self.frame.filter(inside), self.has_person)

    def totals(self, marks: Mapping[str, nw.Expr]) -> Counter[str]:
        sums = (mark.cast(nw.Int64).sum().alias(name) for name, mark in marks.items())
        found = self.frame.select(nw.len().alias("rows"), *sums).collect("pyarrow").to_native()
        return Counter({name: int(n or 0) for name, n in found.to_pylist()[0].items()})

    def limited(self, limit: PersonLimit) -> "There":
        dask = self.frame.implementation == nw.Implementation.DASK
        own = (limited_dask if dask else limited_spark)(self.frame.to_native(), limit)
        return There(nw.from_native(own), False)


def coded_rows(
    source: Opened, attributes: Sequence[Attribute], person: str | None
) -> Batches[AnyRows]:
    """Return the codes of all rows, and the person of each row, as :func:`code_rows` does.

    A code is 1 + the index of a value's category or bin, or 0.
    """
    found = code_rows(source, attributes, person)
    if isinstance(found, nw.LazyFrame):
        return [There(found, person is not None)]
    batches, people = found
    return each(lambda columns: Here(columns, people), batches)


def misfits(
    rows: AnyRows, attributes: Sequence[Attribute], impossible: Sequence[Excluded]
) -> dict[str, Any]:
    """Return {reason: mask} for the rows that do not fit the schema.

    Reasons are named "person" (no person), "c0", … (a value outside the schema in that column), and
    "rule0", … (an impossible combination). Whether a row fits depends on that row alone.
    """
    strict = [k for k, a in enumerate(attributes) if a.other is None]
    without_person = rows.without_person
    return {
        **({} if without_person is None else {PERSON: without_person}),
        **{f"c{k}": rows.code(k) == 0 for k in strict},
        **{f"rule{j}": matches(rows.code, rule) for j, rule in enumerate(impossible)},
    }


def outside_error(attribute: Attribute) -> DataError:
    """Return the error for a row with a null, or with a value outside the attribute's values."""
    if attribute.unit is not None:
        return DataError(
            f"column {attribute.name!r}: expected only numbers from 0 up to 2^52 units of "
            f"{attribute.unit:g}, got a null, NaN or another value; hint: correct the table"
        )
    if attribute.clip is not None or attribute.has_infinite:
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
) -> Coded | Lazy:
    """Return the codes of the counted rows: 1 + the cell of each value, or 0 for no cell.

    For a clipped number the code is 1 + its steps. The result has batches with an array for each
    column, or columns c0, c1, … if another engine counts.

    Args:
        table: as for :func:`gaussnoise.tables.counting.count.count_marginals`.
        attributes: at least one.
        on_outside: "refuse" expects columns of a type that fits the attribute, and a cell for every
            row. "drop" leaves out rows without a cell. It accepts every type of a column of pandas
            or dask, where types depend on rows, and integer categories as floats elsewhere.
        limit: the limit on the rows of each person, among rows that are not left out. With
            "refuse", all rows are checked first.
        impossible: combinations that cannot occur in a row: such rows are treated like rows
            without a cell, and are never among the counted rows of a person.

    Raises:
        DataError: a missing column or wrong type; an impossible row; with a limit, rows that have
            no cell or no person.
        ParameterError: ``limit`` is given, and the engine has no window functions.
    """
    drop = on_outside == "drop"
    person = None if limit is None else limit.column
    source = open_for(table, attributes, person, drop)
    if limit is not None and limit.admission is not None:
        limit.admission.check_kind(kind_of_persons(source, limit.column))

    def kept(own: AnyRows) -> AnyRows:
        """Return the rows that fit the schema, without those beyond a person's limit."""
        if drop and (marks := list(misfits(own, attributes, impossible).values())):
            own = own.but(marks)
        # a person's rows are chosen by themselves alone, so that no person affects others' rows
        return own if limit is None else own.limited(limit)

    def coded() -> Coded | Lazy:
        rows = coded_rows(source, attributes, person)
        # check before any row is left out, so that a refusal does not depend on chance
        if not drop:
            _check(rows, attributes, limit, impossible)
        counted: Batches[Any] = each(kept, rows)
        if isinstance(counted, list) and isinstance(counted[0], There):
            return counted[0].frame
        return each(lambda own: own.columns, counted)

    hint = FORM if is_csv(table) else ""
    return guarded(TASK, coded, hint, engine=source.engine)


def _check(
    rows: Batches[AnyRows],
    attributes: Sequence[Attribute],
    limit: PersonLimit | None,
    impossible: Sequence[Excluded],
) -> None:
    """Raise DataError for impossible combinations and, with a limit, for rows that do not fit."""
    if limit is None and not impossible:
        return
    # without a limit, the counting itself refuses rows that do not fit
    checked = [] if limit is None else attributes
    found: Counter[str] = Counter()
    for own in rows:
        found.update(own.totals(misfits(own, checked, impossible)))
    if limit is not None and found[PERSON]:
        raise no_person(limit.column)
    for k, attribute in enumerate(attributes):
        if found[f"c{k}"]:
            raise outside_error(attribute)
    for j, rule in enumerate(impossible):
        if found[f"rule{j}"]:
            raise impossible_error(rule)
