"""The result of :meth:`Plan.check`, as a text and as plain data."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, final

from ...layout import on_screen
from ...text import number_of, printable
from ..schema.date_format import likely_formats
from ..schema.dialect import date_hint

NOT_PRIVATE = "NOT PRIVATE: for you alone, with exact counts and values of your data."


@final
@dataclass(frozen=True)
class FailureCase:
    """Rows that fail for the same reason.

    Attributes:
        column: the column, or the columns of an impossible combination.
        reason: "missing", "code for missing", "not a category", "not a number", "not a date",
            "outside the edges", "unreadable", "outside the interval", "in the first bin", "in the
            last bin", "no person", or an impossible combination.
        rows: the number of rows; a row may fail for several reasons.
        examples: the most frequent of the first 1000 distinct values that failed for this reason.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> found = gn.plan(schema, 1, gn.zCDP(1.0)).check(pa.table({"sex": ["F", "x", "x"]}))
    >>> [(case.column, case.reason, case.rows, case.examples) for case in found.failure_cases]
    [('sex', 'not a category', 2, ("'x'",))]
    """

    column: str
    reason: str
    rows: int
    examples: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class CheckResult:
    """The rows that a release would leave out of a table. NOT private: for the owner alone.

    Attributes:
        rows: the number of rows of the table.
        left_out: the number of rows that do not fit the schema. ``on_outside="drop"`` leaves them
            out of all tables; with "refuse", one such row refuses the release.
        counted: the number of rows that "drop" counts: without those left out, and without the rows
            of persons beyond their limit.
        droppable: whether "drop" can leave such rows out. If the number of rows is public, it
        cannot: every release refuses the table.
        failure_cases: the reasons for which rows are left out, by column.
        clipped: numbers and weights outside their interval, which count as the nearer bound.
        caught: values that the schema does not name, by column, which count in the catch-all. For a
            clipped number, these are the values that are no number.
        boundless: dates in the first or the last of several bins, if that bin has an infinite edge.
            They may be wrong dates.
        refused: errors that "refuse" raises about types of columns; empty if the types fit.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("age", edges=[0, 18, 65])])
    >>> found = gn.plan(schema, 1, gn.zCDP(1.0)).check(pa.table({"age": [20, 17, -1, None]}))
    >>> found.passed, found.left_out, [case.reason for case in found.failure_cases]
    (False, 2, ['missing', 'outside the edges'])
    >>> schema = gn.Schema([gn.Attribute("pay", clip=[0, 5000], other="unknown")])
    >>> found = gn.plan(schema, 1, gn.zCDP(1.0)).check(pa.table({"pay": [3000.0, None]}))
    >>> found.passed, [(case.column, case.reason, case.rows) for case in found.caught]
    (True, [('pay', 'missing', 1)])
    """

    rows: int
    left_out: int
    counted: int
    failure_cases: tuple[FailureCase, ...]
    clipped: tuple[FailureCase, ...] = ()
    caught: tuple[FailureCase, ...] = ()
    boundless: tuple[FailureCase, ...] = ()
    refused: tuple[str, ...] = ()
    droppable: bool = True

    @property
    def passed(self) -> bool:
        """Whether no row is left out: whether ``on_outside="refuse"`` accepts the table."""
        return not (self.left_out or self.refused)

    @property
    def beyond_limit(self) -> int:
        """The number of rows that fit, but are not counted, as their person has too many rows."""
        return self.rows - self.left_out - self.counted

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that the table, the schema or the date format is probably wrong."""
        return (*_wrong_table_warnings(self), *_many_odd_warnings(self), *_unread_dates(self))

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON, with a note that it is not private."""
        own = asdict(self)
        return {
            "format": "gaussnoise.check/1",
            "not_private": NOT_PRIVATE,
            "passed": self.passed,
            "rows": self.rows,
            "left_out": self.left_out,
            "beyond_limit": self.beyond_limit,
            "warnings": self.warnings,
            **{
                name: own[name]
                for name in (
                    "counted",
                    "failure_cases",
                    "clipped",
                    "caught",
                    "boundless",
                    "refused",
                    "droppable",
                )
            },
        }

    def __str__(self) -> str:
        counted = f", {self.counted:,} counted" if self.droppable else ""
        lines = [NOT_PRIVATE, number_of(self.rows, "row", form=",") + counted]
        lines += [f"WARNING: {said}" for said in self.warnings]
        if self.left_out and self.droppable:
            lines += [f'{self.left_out:,} left out, or on_outside="refuse" refuses the table:']
        elif self.left_out:
            lines += [
                f"{self.left_out:,} that do not fit: the number of rows is public, so that no row "
                "can be left out, and a release refuses the table:"
            ]
        lines += _listed(self.failure_cases)
        lines += [f'on_outside="refuse" refuses the table: {said}' for said in self.refused]
        if self.passed:
            lines += ["all rows fit the schema" + ", with its catch-alls" * bool(self.caught)]
        if self.beyond_limit:
            lines += [f"{self.beyond_limit:,} not counted: further rows of persons who are counted"]
        among = " (also in rows that are not counted)" * (self.counted < self.rows)
        if self.clipped:
            lines += [f"counted as the nearer end of their interval{among}:"]
            lines += _listed(self.clipped)
        if self.caught:
            lines += [
                f"counted in the catch-all, which is in no mean or sum of a number{among}:",
                *_listed(self.caught, self.rows),
            ]
        return on_screen("\n".join(lines))


# reasons that mean that values are not what the schema expects, in words
_ODD = {
    "not a category": "are no category of the schema",
    "not a number": "are no number",
    "not a date": "are not read as dates",
    "unreadable": "are unreadable",
    "outside the edges": "are outside the edges",
    "outside the interval": "are outside the interval",
    "in the first bin": "are in the first bin, which has no end",
    "in the last bin": "are in the last bin, which has no end",
}
_NEARLY_ALL = 0.9  # least share of the values of a column
_MANY = 0.1  # least share of all rows: more than a few errors of typing


def _wrong_table_warnings(found: CheckResult) -> Iterator[str]:
    """Yield a warning for each column where nearly all values are not of the expected kind."""
    for column, present, reasons in _unexpected(found):
        rows = sum(reasons.values())
        if rows >= _NEARLY_ALL * present:
            yield (
                f"{rows:,} of {present:,} values of {printable(column)} {_reasons(reasons)}; is "
                "this the table, and this the schema, that you mean?"
            )


def _many_odd_warnings(found: CheckResult) -> Iterator[str]:
    """Yield a warning for each column where many rows (a tenth or more) have unexpected values."""
    caught = {case.column for case in found.caught}
    lost = replace(found, clipped=(), boundless=())
    for column, present, reasons in _unexpected(lost):
        rows = sum(reasons.values())
        if _MANY * found.rows <= rows < _NEARLY_ALL * present:
            end = "count in its catch-all" if column in caught else "are left out"
            yield (
                f"{rows:,} of {present:,} values of {printable(column)} {_reasons(reasons)}: "
                f"their rows {end}; does the schema name every value, as the table writes it, and "
                "every code for missing?"
            )


def _unexpected(found: CheckResult) -> Iterator[tuple[str, int, Counter[str]]]:
    """Yield (column, number of values, {reason: rows}) for columns with unexpected values."""
    cases = [*found.failure_cases, *found.caught, *found.clipped, *found.boundless]
    missing: Counter[str] = Counter()
    odd: dict[str, Counter[str]] = {}
    for case in cases:
        # missing values, and codes for them, are not unexpected
        if case.reason in ("missing", "code for missing"):
            missing[case.column] += case.rows
        elif case.reason in _ODD:
            odd.setdefault(case.column, Counter())[_ODD[case.reason]] += case.rows
    for column, reasons in odd.items():
        yield column, found.rows - missing[column], reasons


def _reasons(reasons: Counter[str]) -> str:
    return " or ".join(reason for reason, _ in reasons.most_common())


def _unread_dates(found: CheckResult) -> Iterator[str]:
    """Yield a hint for each column of dates whose format differs from the expected one."""
    for case in [*found.failure_cases, *found.caught]:
        if case.reason == "not a date":
            texts = {text[1:-1]: 1 for text in case.examples}  # without their quotes
            if formats := likely_formats(texts):
                yield f"most of these values of {printable(case.column)} are {date_hint(formats)}"


def _listed(cases: Sequence[FailureCase], of: int = 0) -> Iterator[str]:
    """Yield a line for each case: column, reason, rows, their share of ``of`` rows, examples."""
    rows = [
        (
            printable(case.column),
            case.reason,
            f"{case.rows:,}",
            f"{100 * case.rows / of:.1f} %  " if of else "",
            printable(", ".join(case.examples)),
        )
        for case in cases
    ]
    name, reason, count, part = (max((len(row[k]) for row in rows), default=0) for k in range(4))
    for row in rows:
        numbers = f"{row[2]:>{count}}  {row[3]:>{part}}"
        yield f"  {row[0]:{name}}  {row[1]:{reason}}  {numbers}{row[4]}".rstrip()
