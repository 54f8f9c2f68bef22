"""The tables of changes that are shown and written, and a sentence on each of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from domains.tables.bases import AbstractBase
from domains.tables.clipped import Clipped

from ...errors import ParameterError
from ...layout import WIDTH, fitted
from ..planning.facts import counted_text, marginal_name, persons_text, unit_of
from ..schema.entries import Entry, entry_term, term_name
from ..schema.numbers import interval_text
from .comparison import ComparisonTable
from .merged import MergedPlan
from .noisy import AbstractRelease
from .report.numbers import cells_of
from .report.render import Cell, digits_of, number, shown
from .show import rows_text
from .store import StoredTables
from .tidy import LEVEL, interval_record, level_text

if TYPE_CHECKING:
    from .difference import Changes

Statistic = Literal["count", "answer", "sum", "mean"]

FORMAT = "gaussnoise.changes/1"
TOGETHER = (
    f"Sentences are right in {level_text(LEVEL)} of cases, each for all numbers of its table "
    "together."
)
CLOSING = (
    f"low and high: {level_text(LEVEL)} intervals of the change, each number by itself; in %: of "
    "the number before, if that cannot be zero."
)
NO_CHANGE = "No change that the noise allows to see."

_SHOWN = 20  # rows of a table that are printed
_MOST_TABLES = 12  # most tables that are printed
_LEAST = 6  # least columns of a label
_NUMBERS = ("before", "after", "change", "low", "high", "in %")


@final
@dataclass(frozen=True, eq=False, repr=False)
class ShownChanges:
    """A table of changes, with its name and with the numbers that it compares.

    Attributes:
        table: later less earlier.
        statistic: the kind of the numbers.
        parts: the names of the table's attributes, with their queries where they have some.
        unit: the noun for everything that is counted, in the plural.
        number: the clipped number that sums and means are of; else None.
        over: what follows the name of a sum or mean over persons.
    """

    table: ComparisonTable
    statistic: Statistic
    parts: tuple[str, ...]
    unit: str = "rows"
    number: str | None = None
    over: str = ""

    @property
    def title(self) -> tuple[str, ...]:
        """The name of the table in parts, for names of files."""
        return self.parts if self.number is None else (self._what, *self.parts)

    @property
    def name(self) -> str:
        """The name of the table in one line."""
        if self.number is None:
            return " × ".join(self.parts) or f"all {self.unit}"
        return self._what + self.over + (f" by {marginal_name(self.parts)}" if self.parts else "")

    @property
    def _what(self) -> str:
        return f"{self.statistic} of {self.number}"

    @cached_property
    def relative(self) -> ComparisonTable:
        """The changes divided by the earlier numbers."""
        return self.table.relative()

    @property
    def finding(self) -> str:
        """One sentence that the intervals support, for all numbers of the table together."""
        table = self.table
        low, high = (np.ravel(end) for end in table.confidence_interval(simultaneous=True))
        certain = (low > 0) | (high < 0)
        if not certain.any():
            return NO_CHANGE if np.any(table.standard_deviation) else "No change: exactly."
        k = int(np.argmax(np.where(certain, np.abs(np.nan_to_num(table.estimate.ravel())), -1.0)))
        (cell,) = cells_of(table, [k], table.confidence_interval(simultaneous=True))
        more, fewer = ("more", "fewer") if self.statistic == "count" else ("higher", "lower")
        said = f"{number(abs(cell.estimate), cell.digits)} {more if cell.low > 0 else fewer}"
        near, far = sorted((abs(cell.low), abs(cell.high)))
        if not cell.deviation:
            said += ", exactly"
        elif math.isfinite(far):
            said += f" ({number(near, cell.digits)} to {number(far, cell.digits)})"
        else:
            said += f" ({number(near, cell.digits)} or more)"
        group = " · ".join(shown(name, 40) for name in cell.names)
        if low.size > 1:
            said += f"; more than noise: {certain.sum():,} of {low.size:,} changes"
        return (f"{group}: {said}" if group else said[0].upper() + said[1:]) + "."

    def cells(self, places: Sequence[int]) -> list[tuple[Cell, Cell, float, float]]:
        """Return changes, relative changes, and the numbers before and after, at positions."""
        changes, relative = (cells_of(t, places) for t in (self.table, self.relative))
        before, after = self.table.second.estimate.ravel(), self.table.first.estimate.ravel()
        where = list(places)
        ends = before[where].tolist(), after[where].tolist()
        return list(zip(changes, relative, *ends, strict=True))

    def __str__(self) -> str:
        size, names = self.table.estimate.size, self.table.attributes
        numbers, labels = [], []
        for change, relative, before, after in self.cells(range(min(size, _SHOWN))):
            values = (before, after, change.estimate, change.low, change.high)
            texts = [number(value, change.digits) for value in values]
            texts[2] = signed(change.estimate, change.digits)
            numbers.append([*texts, percent(relative)])
            labels.append(change.names)
        widths = [max(map(len, column)) for column in zip(_NUMBERS, *numbers, strict=True)]
        left = WIDTH - sum(widths) - 2 * len(widths)
        most = max(left // max(len(names), 1) - 2, _LEAST)
        rows = [
            [*(shown(label, most) for label in own), *texts]
            for own, texts in zip(labels, numbers, strict=True)
        ]
        more = f"… and {size - _SHOWN} more" if size > _SHOWN else ""
        text = rows_text(
            fitted(self.name),
            [shown(name, most) for name in names],
            _NUMBERS,
            rows,
            [more, fitted(self.finding)],
            private=self.table.private,
        )
        return text

    def record(self, *, rows: bool) -> dict[str, object]:
        """Return plain data for JSON, with all numbers if ``rows``."""
        table, found = self.table, dict[str, object]()
        if rows:
            found["rows"] = [
                {
                    "labels": list(change.names),
                    "before": _plain(before),
                    "after": _plain(after),
                    "estimate": _plain(change.estimate),
                    "standard_deviation": _plain(change.deviation),
                    "low": _plain(change.low),
                    "high": _plain(change.high),
                    "relative": {
                        "estimate": _plain(relative.estimate),
                        "low": _plain(relative.low),
                        "high": _plain(relative.high),
                    },
                }
                for change, relative, before, after in self.cells(range(table.estimate.size))
            ]
        return {
            "name": self.name,
            "statistic": self.statistic,
            "attributes": list(table.attributes),
            "finding": self.finding,
            "intervals": table.closing.rpartition("; ")[2],
            **found,
        }


def shown_changes(changes: "Changes", of: Sequence[Entry] = ()) -> list[ShownChanges]:
    """Return tables of changes: of these entries, or of all that both releases were asked for.

    An entry with a clipped number has its means and sums, by the other attributes.

    Raises:
        ParameterError: unknown attributes, or a table that one of the releases does not have.
    """
    schema = changes.before.plan.schema
    if of:
        terms = [entry_term(schema, entry) for entry in of]
        entries = [{schema.names[i]: base for i, base in term.items()} for term in terms]
    else:
        entries = _common(changes)
    return [one for entry in entries for one in _tables(changes, entry)]


def _common(changes: "Changes") -> list[dict[str, AbstractBase]]:
    """Return the total, and the entries that either release was asked for and both can answer."""
    found: dict[object, dict[str, AbstractBase]] = {(): {}}
    for release in (changes.before, changes.after):
        for term in release.plan.domain.terms:
            entry = {release.plan.schema.names[i]: base for i, base in term}
            if all(_has(one, entry) for one in (changes.before, changes.after)):
                found.setdefault(tuple(sorted(entry.items(), key=lambda item: item[0])), entry)
    return list(found.values())


def _has(release: AbstractRelease, names: Mapping[str, object]) -> bool:
    """Return whether a release has a table with these attributes."""
    return any(set(names) <= set(marginal) for marginal in release)


def _tables(changes: "Changes", entry: Mapping[str, AbstractBase]) -> list[ShownChanges]:
    """Return the tables of one entry."""
    names = tuple(entry)
    numbers = [name for name, base in entry.items() if isinstance(base, Clipped)]
    groups = tuple(name for name in names if name not in numbers)
    if numbers and all(entry[name].is_identity for name in groups):
        (own,) = numbers
        found: dict[Statistic, ComparisonTable] = {
            "mean": changes.means(own, groups),
            "sum": changes.sums(own, groups),
        }
        over = persons_text(changes.after.plan, own)
        return [
            ShownChanges(table, kind, groups, number=own, over=over)
            for kind, table in found.items()
        ]
    if all(base.is_identity for base in entry.values()):
        return [ShownChanges(changes[names], "count", names, unit_of(changes.after.plan))]
    schema = changes.before.plan.schema
    parts = [term_name(schema, [(schema.names.index(n), base)]) for n, base in entry.items()]
    return [ShownChanges(changes.answers(entry), "answer", tuple(parts))]


def changes_text(changes: "Changes", found: Sequence[ShownChanges]) -> str:
    """Return the first tables of changes, and a sentence on each other, as text of 80 columns."""
    others = [fitted(f"{one.name}: {one.finding}") for one in found[_MOST_TABLES:]]
    closing = [
        fitted(said)
        for said in (CLOSING, TOGETHER, *notes_text(changes, found), *cost_text(changes))
    ]
    parts = [*map(str, found[:_MOST_TABLES]), "\n".join(others), "\n".join(closing)]
    return "\n\n".join(filter(None, parts))


def notes_text(changes: "Changes", found: Sequence[ShownChanges]) -> list[str]:
    """Return sentences on the rows and values that the numbers are about."""
    plan = changes.after.plan
    names = {one.number for one in found}.union(*(one.table.attributes for one in found))
    used = [a for a in plan.schema.attributes if a.name in names]
    notes = [
        f"Sums and means of {a.name} are of values clipped to {interval_text(*a.clip)}."
        for a in used
        if a.clip is not None
    ]
    if plan.weight is not None:
        most = interval_text(0, plan.weight.most)
        notes.append(
            f"Every row counts as its {plan.weight.column!r}, clipped to {most}: all numbers are "
            "weighted."
        )
    counted = dict.fromkeys(
        counted_text(one.plan) for one in (changes.before, changes.after) if one.plan.person
    )
    return [*notes, *(f"Counted: {said}." for said in counted)]


def cost_text(changes: "Changes") -> list[str]:
    """Return sentences on the cost of both releases together."""
    if not changes.private:
        return ["NOT PRIVATE: one of the releases is a simulation, do not publish."]
    cost = changes.rho_charged
    if cost is None:
        spent = (
            "The releases protect different things, so that their costs do not add up to one number"
        )
    else:
        whom = "row" if changes.before.plan.rows_per_person == 1 else "person"
        whom = "person" if changes.before.plan.person is not None else whom
        spent = f"A {whom} in both has spent ρ = {cost:.6g}, the sum of both budgets"
    return [f"{spent}. To compare them costs no more."]


def changes_record(
    changes: "Changes", found: Sequence[ShownChanges], *, rows: bool
) -> dict[str, object]:
    """Return plain data on changes for JSON, with all numbers if ``rows``."""
    return {
        "format": FORMAT,
        "private": changes.private,
        "before": _release_record(changes.before),
        "after": _release_record(changes.after),
        "rho_of_both": changes.rho_charged,
        "intervals": interval_record(),
        "notes": notes_text(changes, found),
        "tables": [one.record(rows=rows) for one in found],
    }


def _release_record(release: AbstractRelease) -> dict[str, object]:
    return {
        "name": release_name(release),
        "neighbors": release.plan.neighbors,
        "rows_per_person": release.plan.rows_per_person,
        "person": release.plan.person,
        "rho": release.rho_charged if release.private else None,
    }


def release_name(release: AbstractRelease) -> str | None:
    """Return the name of a release's folder, or else its title; None without either."""
    if isinstance(release.tables, StoredTables):
        return release.tables.folder.resolve().name
    plan: Any = release.plan
    return None if isinstance(plan, MergedPlan) else plan.asked.about.title


def signed(value: float, digits: int) -> str:
    """Return a number with its sign, also if it is positive."""
    text = number(value, digits)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def percent(relative: Cell) -> str:
    """Return a relative change in per cent, or a dash where the number before may be zero."""
    if not (math.isfinite(relative.low) and math.isfinite(relative.high)):
        return "—"
    return signed(100 * relative.estimate, digits_of(100 * relative.deviation))


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def check_shown(of: object) -> None:
    """Refuse a request for tables that is not a list of entries."""
    if not isinstance(of, list | tuple):
        raise ParameterError(
            f'difference: expected of to be a list of tables, like [("sex", "age")], got {of!r:.80}'
        )
