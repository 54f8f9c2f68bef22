"""The result of :meth:`Plan.check`, as a text and as plain data."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

from ...text import number_of, printable

NOT_PRIVATE = "NOT PRIVATE: exact counts of your data, and values of it; do not publish."


@final
@dataclass(frozen=True)
class FailureCase:
    """Rows that fail for one reason.

    Attributes:
        column: the column, or the columns of an impossible combination.
        reason: "missing", "code for missing", "not a category", "not a number", "not a date",
            "outside the edges", "unreadable", "outside the interval", "no person", or an
            impossible combination.
        rows: the number of rows; a row may fail for several reasons.
        examples: the most frequent of the first 1000 different values of this kind, as text.

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
        counted: the number of rows counted with "drop": neither those left out, nor the rows by
            which persons exceed their limit.
        droppable: whether "drop" can leave such rows out. It cannot where the number of rows is
            public: every release refuses the table.
        failure_cases: the reasons for which rows are left out, by column.
        clipped: numbers and weights outside their interval: they count, as the nearer end.
        caught: values that the schema does not name, by column: they count in the catch-all. For a
            clipped number, these are the values that are no number.
        refused: errors of "refuse" about the types of columns; empty if they fit.

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
    refused: tuple[str, ...] = ()
    droppable: bool = True

    @property
    def passed(self) -> bool:
        """Whether no row is left out: whether ``on_outside="refuse"`` accepts the table."""
        return not (self.left_out or self.refused)

    @property
    def beyond_limit(self) -> int:
        """The number of rows that fit, but exceed the limit of their person."""
        return self.rows - self.left_out - self.counted

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with the label that it is not private."""
        own = asdict(self)
        return {
            "format": "gaussnoise.check/1",
            "not_private": NOT_PRIVATE,
            "passed": self.passed,
            "rows": self.rows,
            "left_out": self.left_out,
            "beyond_limit": self.beyond_limit,
            **{
                name: own[name]
                for name in (
                    "counted",
                    "failure_cases",
                    "clipped",
                    "caught",
                    "refused",
                    "droppable",
                )
            },
        }

    def __str__(self) -> str:
        counted = f", {self.counted:,} counted" if self.droppable else ""
        lines = [NOT_PRIVATE, number_of(self.rows, "row", form=",") + counted]
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
            lines += ["all rows fit the schema"]
        if self.beyond_limit:
            lines += [f"{self.beyond_limit:,} not counted: more rows of a person than are counted"]
        if self.clipped:
            lines += ["counted as the nearer end of their interval:", *_listed(self.clipped)]
        if self.caught:
            lines += [
                "counted in a catch-all, although the schema does not name them:",
                *_listed(self.caught),
            ]
        return "\n".join(lines)


def _listed(cases: Sequence[FailureCase]) -> Iterator[str]:
    """Yield a line for each case."""
    rows = [
        (printable(case.column), case.reason, f"{case.rows:,}", printable(", ".join(case.examples)))
        for case in cases
    ]
    name, reason, count = (max((len(row[k]) for row in rows), default=0) for k in range(3))
    for row in rows:
        yield f"  {row[0]:{name}}  {row[1]:{reason}}  {row[2]:>{count}}  {row[3]}".rstrip()
