"""A second count of a table in plain Python, one record at a time, to check a release.

CSV files are parsed by Python's own module, and not by the engine that releases use. For other
tables, the values are taken from the engine. Every value is read by the functions that define
values (:mod:`gaussnoise.tables.reading.values`). Every record is added to its cells in plain
Python.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...solvers.tables.residuals import Subset
from ..reading.batches import batches
from ..reading.codes import open_for
from ..reading.columns import distinct
from ..reading.csv import FORM
from ..reading.declared import TASK
from ..reading.files import dialect_of, is_csv, state_of, table_files
from ..reading.frames import guarded
from ..reading.office import is_office
from ..reading.opened import Opened
from ..reading.plain import Plain
from ..reading.types import is_wide
from ..reading.values import codes_of, finder, person_of, step_of
from ..schema.numbers import STEPS, PerPerson, Weight, joined_numbers, sets_of_numbers
from ..schema.schema import Attribute
from .count import CHANGED, number_of_rows
from .impossible import Excluded
from .numbers import has_squares, weight_column
from .persons import PersonLimit

Array = NDArray[np.float64]
Record = tuple[int, ...]  # for each column, 1 + the cell or the steps; 0 for no value


@final
@dataclass(frozen=True, eq=False)
class Recount:
    """The counts of a table's cells, to be compared with those of a release.

    Attributes:
        counts: {indices of attributes: counts}, in the units in which releases count. For a person
            with too many records, they are the expected counts under a random choice.
        crowded: the number of persons with too many records.
        left_out: the number of rows that do not fit the schema.
    """

    counts: Mapping[Subset, Array]
    crowded: int
    left_out: int


class _Settings(NamedTuple):
    """The settings by which a record is added to the cells of tables."""

    attributes: Sequence[Attribute]
    weight: Weight | None
    unit: int
    joined: Sequence[Subset]  # sets of numbers that occur together in tables


def recount(
    table: object,
    attributes: Sequence[Attribute],
    subsets: Sequence[Subset],
    on_outside: str,
    limit: PersonLimit | None,
    weight: Weight | None,
    unit: int,
    impossible: Sequence[Excluded],
) -> Recount:
    """Return the counts of all tables by plain Python, and the number of rows that do not fit.

    Arguments are as for :func:`~.count.count_marginals`.

    Raises:
        DataError: a column is missing or of a type that does not fit, or a file is malformed.
    """
    before, read = (
        state_of(table),
        [*attributes, *([] if weight is None else [weight_column(weight)])],
    )
    if not read and limit is None:
        rows = np.array(float(number_of_rows(table, None, "drop")))
        return Recount(dict.fromkeys(subsets, rows), 0, 0)
    person = None if limit is None else limit.column
    source = open_for(table, read, person, on_outside == "drop")
    hint = FORM if is_csv(table) else ""

    def own() -> list[tuple[Record, Any]]:
        return list(_rows(table, source, read, person))

    rows = guarded(TASK, own, hint, engine=source.engine)
    fit = [(record, who) for record, who in rows if _fits(record, who, read, person, impossible)]
    summed = {i for i, a in enumerate(attributes) if a.is_summed}
    joined = joined_numbers(sets_of_numbers(summed, subsets))
    way = _Settings(attributes, weight, unit, joined)
    counted, crowded = Counter[tuple[Record, float]](), 0
    if limit is None:
        counted.update((record, 1.0) for record, _ in fit)
    else:
        for records in _by_person(fit, limit).values():
            share = min(1.0, limit.rows / len(records))
            crowded += share < 1
            counted.update((record, share) for record in records)
    sizes = [a.size for a in attributes]
    counts = {S: np.zeros([sizes[i] for i in S]) for S in subsets}
    for S, cells in counts.items():
        for (record, share), number in counted.items():
            for cell, mass in _cells(record, S, way):
                cells[cell] += share * number * mass
    if state_of(table) != before:
        raise DataError(CHANGED)
    return Recount(counts, crowded, len(rows) - len(fit))


def _rows(
    table: object, source: Opened, read: Sequence[Attribute], person: str | None
) -> Iterator[tuple[Record, Any]]:
    """Yield (codes, key of the person) for every row; a code is 1 + the cell, or 0."""
    names = [*(a.name for a in read), *([] if person is None else [person])]
    finds: list[Any] = [finder(a, source.form(a.name)) for a in read]
    if person is not None:
        form = source.form(person)
        finds.append(lambda value: person_of(value, form))
    # Python's module does not distinguish an empty quoted text from an empty field, which is null
    empty = any("" in codes_of(a) for a in read)
    if is_csv(table) and not empty and not any(map(is_office, table_files(table))):
        known: list[dict[str, Any]] = [{} for _ in names]
        for texts in _texts(table, source, names):
            row = []
            for text, find, seen in zip(texts, finds, known, strict=True):
                if text not in seen:
                    seen[text] = find(text or None)
                row.append(seen[text])
            yield tuple(row[: len(read)]), row[-1]
        return
    for columns in batches(source, [], names):
        found = []
        for name, find, column in zip(names, finds, columns, strict=True):
            index, values = distinct(column, source.form(name))
            if is_wide(source.types[name]):  # wide integers come as text
                values = [int(value) for value in values]
            codes = [*map(find, values), find(None)]  # the last code is found at index -1
            found.append([codes[k] for k in index.tolist()])
        for row in zip(*found, strict=True):
            yield tuple(row[: len(read)]), row[-1]


def _texts(table: object, source: Opened, names: Sequence[str]) -> Iterator[list[str]]:
    """Yield the fields of the columns ``names`` for every record of the table's CSV files."""
    for path in table_files(table):
        plain = Plain(path, dialect_of(table))
        quoting = csv.QUOTE_MINIMAL if plain.quote else csv.QUOTE_NONE
        with plain.open() as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
            rows = csv.reader(
                text,
                delimiter=plain.delimiter,
                quotechar=plain.quote or None,
                quoting=quoting,
                strict=True,
            )
            header = next(rows)
            places = [header.index(name) for name in names]
            for row in rows:
                if not row and len(header) > 1:  # a record of one column may be empty
                    continue
                if len(row or [""]) != len(header):
                    raise ValueError
                fields = [(row or [""])[place] for place in places]
                yield [source.as_read(n, x) for n, x in zip(names, fields, strict=True)]


def _fits(
    record: Record,
    who: Any,
    read: Sequence[Attribute],
    person: str | None,
    impossible: Sequence[Excluded],
) -> bool:
    """Return whether a row is counted: all values fit, it has a person, and no rule forbids it."""
    if person is not None and who is None:
        return False
    if any(code == 0 and a.other is None for code, a in zip(record, read, strict=True)):
        return False
    return not any(all(record[k] in codes for k, codes in rule.codes) for rule in impossible)


def _by_person(fit: Sequence[tuple[Record, Any]], limit: PersonLimit) -> dict[Any, list[Record]]:
    """Return {person: records}: the rows, or one record for each group if ``limit.reduced``."""
    people: dict[Any, list[Record]] = {}
    for record, who in fit:
        people.setdefault(who, []).append(record)
    return {who: _reduced(own, limit) for who, own in people.items()} if limit.reduced else people


def _reduced(records: Sequence[Record], limit: PersonLimit) -> list[Record]:
    """Return one record for each group of a person's rows, as ``limit.reduced`` says."""
    groups: dict[Record, list[Record]] = {}
    for record in records:
        key = tuple(code for k, code in enumerate(record) if k not in limit.reduced)
        groups.setdefault(key, []).append(record)
    return [
        tuple(
            _number([record[k] for record in own], *limit.reduced[k])
            if k in limit.reduced
            else code
            for k, code in enumerate(own[0])
        )
        for own in groups.values()
    ]


def _number(codes: Sequence[int], how: PerPerson, attribute: Attribute) -> int:
    """Return the code of one number of a person (mean, sum, …), from the codes of the rows."""
    present = [code - 1 for code in codes if code]
    if not present:
        return 0
    if how == "max":
        return 1 + max(present)
    if how == "count":
        return step_of(float(len(present)), attribute.clip or (0.0, 1.0))
    if how == "sum":
        return 1 + min(sum(present), STEPS)
    return 1 + (2 * sum(present) + len(present)) // (2 * len(present))


def _cells(record: Record, S: Subset, way: _Settings) -> Iterator[tuple[Record, int]]:
    """Yield (cell, units) for the cells of the table of S to which a record adds units."""
    mass = way.unit if way.weight is None else _parts(record[-1], way.unit)
    numbers = [i for i in S if way.attributes[i].is_summed]
    joined = next((J for J in way.joined if numbers and numbers[0] in J), ())
    totals = Counter[tuple[int, ...]]()
    for cells, part in _divided(record, joined, mass, way):
        totals[tuple(k for i, k in zip(joined, cells, strict=True) if i in S)] += part
    for cells, part in totals.items():
        virtual = dict(zip(numbers, cells, strict=True))
        yield (
            tuple(
                way.attributes[i].size - 1 if not record[i] else virtual.get(i, record[i] - 1)
                for i in S
            ),
            part,
        )


def _divided(
    record: Record, joined: Subset, mass: int, way: _Settings
) -> list[tuple[tuple[int, ...], int]]:
    """Return pairs (virtual cells, units) that divide ``mass`` units among virtual cells."""
    found: list[tuple[tuple[int, ...], int]] = [((), mass)]
    for i in joined:
        a = _parts(record[i], way.unit) if record[i] else 0
        q = a * a // way.unit
        a = a if way.weight is None else (mass * a + way.unit // 2) // way.unit
        # units in the k-th cell or later: of the whole record, and of the cells seen so far
        shares = [mass, 2 * a - q, q] if has_squares(way.attributes[i]) else [mass, a]
        seen, earlier, found = [0] * len(shares), found, []
        for cells, part in earlier:
            own = [part]
            for k in range(1, len(shares)):
                whole, up_to = shares[k - 1], seen[k - 1] + own[k - 1]
                reached = (up_to * shares[k] + whole // 2) // whole if whole else 0
                own.append(reached - seen[k])
            seen = [one + other for one, other in zip(seen, own, strict=True)]
            found += [((*cells, k), own[k] - sum(own[k + 1 : k + 2])) for k in range(len(own))]
    return found


def _parts(code: int, unit: int) -> int:
    """Return how many of ``unit`` steps a number with this code is above its lower bound."""
    return ((code - 1) * unit + STEPS // 2) // STEPS if unit != STEPS else code - 1
