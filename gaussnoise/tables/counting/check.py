"""The values of a table that a release would leave out, or count as another value.

The results are computed from the data without noise: they are for the owner of the data alone, need
an explicit call, and are labelled as not private.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import or_

from ...errors import DataError
from ..reading.codes import Batches, check_column, open_for, values_outside
from ..reading.codes_lazy import balanced
from ..reading.csv import FORM
from ..reading.declared import TASK
from ..reading.files import is_csv, state_of
from ..reading.frames import guarded
from ..reading.opened import Opened
from ..reading.persons import PERSON
from ..reading.values import reason_of
from ..schema.dates import open_bins
from ..schema.numbers import Weight
from ..schema.schema import Attribute
from .check_result import CheckResult, FailureCase
from .count import CHANGED, number_of_rows
from .impossible import Excluded
from .numbers import weight_column
from .persons import PersonLimit
from .records import AnyRows, coded_rows, misfits

_EXAMPLES = 3
_KEPT = 1000  # most distinct values whose rows are counted
_LONGEST = 40  # most characters of a value in messages


def check_rows(
    table: object,
    attributes: Sequence[Attribute],
    rules: Sequence[Excluded] = (),
    limit: PersonLimit | None = None,
    weight: Weight | None = None,
) -> CheckResult:
    """Return which rows a release would leave out, and which values it would change.

    Rows are read and judged by the functions that releases use. The table is read once for all
    rows, once more if a column names persons, and once for each column with values that do not fit.

    Raises:
        DataError: a column is missing, or of a type that cannot hold the attribute, as for a
            release with ``on_outside="drop"``; or the table changed meanwhile.
        ParameterError: ``limit`` is given, and the table's engine has no window functions.
    """
    before = state_of(table)
    read = [*attributes, *([] if weight is None else [weight_column(weight)])]
    person = None if limit is None else limit.column
    source = open_for(table, read, person, True)
    intervals = [Attribute(a.name, edges=a.clip, missing=a.missing) for a in read if a.clip]

    def counted() -> tuple[Counter[str], list[FailureCase], Mapping[str, tuple[FailureCase, ...]]]:
        if not (read or person):
            return Counter(rows=number_of_rows(table, None, "drop")), [], defaultdict(tuple)
        rows = _totals(coded_rows(source, [*read, *intervals], person), read, rules, len(intervals))
        clipped = [
            replace(case, reason="outside the interval")
            for k, interval in enumerate(intervals, len(read))
            for case in _by_reason(source, interval, rows[f"c{k}"])
            if case.reason == "outside the edges"
        ]
        caught = [
            case
            for k, attribute in enumerate(read)
            if attribute.other is not None
            for case in _by_reason(source, attribute, rows[f"c{k}"])
        ]
        others = {"clipped": clipped, "caught": caught, "boundless": _in_open_bins(read, rows)}
        cases = list(_cases(source, read, rules, rows, person))
        return rows, cases, {name: tuple(own) for name, own in others.items()}

    hint = FORM if is_csv(table) else ""
    rows, cases, others = guarded(TASK, counted, hint, engine=source.engine)
    fit = rows["rows"] - rows["left"]
    kept = fit if limit is None else number_of_rows(table, limit, "drop", read, rules)
    if kept > fit or state_of(table) != before:
        raise DataError(CHANGED)
    refused = tuple(_refusals(source, read))
    return CheckResult(
        rows["rows"],
        rows["left"],
        kept,
        tuple(cases),
        clipped=others["clipped"],
        caught=others["caught"],
        boundless=others["boundless"],
        refused=refused,
    )


def _totals(
    rows: Batches[AnyRows], read: Sequence[Attribute], rules: Sequence[Excluded], intervals: int
) -> Counter[str]:
    """Return {reason: rows}, with "rows" for all rows, and "left" for those that do not fit."""
    totals: Counter[str] = Counter()
    boundless = [(k, cell) for k, a in enumerate(read) for cell in open_bins(a.edges)]
    for own in rows:
        marks = misfits(own, read, rules)
        left = {"left": balanced(or_, list(marks.values()))} if marks else {}
        columns = range(len(read) + intervals)
        # c0, c1, …: rows without a cell in a column of read, then rows outside each interval
        without = {f"c{k}": own.code(k) == 0 for k in columns}
        # c0:1, …: rows in a bin of dates with an infinite edge
        ends = {f"c{k}:{cell}": own.code(k) == 1 + cell for k, cell in boundless}
        totals.update(own.totals({**marks, **left, **without, **ends}))
    return totals


def _in_open_bins(read: Sequence[Attribute], rows: Counter[str]) -> Iterator[FailureCase]:
    """Yield the number of rows in each bin of dates that has an infinite edge."""
    for k, attribute in enumerate(read):
        for cell, name in open_bins(attribute.edges).items():
            if n := rows[f"c{k}:{cell}"]:
                yield FailureCase(attribute.name, f"in {name}", n)


def _cases(
    source: Opened,
    read: Sequence[Attribute],
    rules: Sequence[Excluded],
    rows: Counter[str],
    person: str | None,
) -> Iterator[FailureCase]:
    """Yield the reasons for which rows are left out, each with its column and number of rows."""
    for k, attribute in enumerate(read):
        if attribute.other is None:
            yield from _by_reason(source, attribute, rows[f"c{k}"])
    if rows[PERSON]:
        yield FailureCase(str(person), "no person", rows[PERSON])
    for j, rule in enumerate(rules):
        if rows[f"rule{j}"]:
            columns = ", ".join(read[k].name for k, _ in rule.codes)
            yield FailureCase(columns, "impossible combination", rows[f"rule{j}"], (rule.text,))


def _by_reason(source: Opened, attribute: Attribute, rows: int) -> Iterator[FailureCase]:
    """Yield the reasons why values fit no category or bin of a column, most frequent first."""
    found = 0
    counts: Counter[str] = Counter()
    values: dict[str, Counter[str]] = {}
    for value, n in values_outside(source, attribute) if rows else ():
        found += n
        written = source.as_written(attribute.name, value)
        # the catch-all category is meant to count its own label
        if isinstance(written, str) and str.__str__(written) == attribute.other:
            continue
        reason = reason_of(value, attribute, source.form(attribute.name))
        counts[reason] += n
        shown, text = values.setdefault(reason, Counter()), _shown(written)
        if reason != "missing" and (len(shown) < _KEPT or text in shown):
            shown[text] += n
    if found != rows:
        raise DataError(CHANGED)
    for reason, n in counts.most_common():
        examples = tuple([text for text, _ in values[reason].most_common(_EXAMPLES)])
        yield FailureCase(attribute.name, reason, n, examples)


def _shown(value: object) -> str:
    """Return a value as a short text, in quotes if it is text, or the name of its type."""
    try:
        text = repr(str.__str__(value)) if isinstance(value, str) else str(value)
    except Exception:  # noqa: BLE001 (objects of any kind may raise any error)
        return type(value).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _refusals(source: Opened, read: Sequence[Attribute]) -> Iterator[str]:
    """Yield the messages of errors about column types that ``on_outside="refuse"`` would raise."""
    for attribute in read:
        try:
            check_column(source, attribute, False)
        except DataError as error:
            yield str(error)
