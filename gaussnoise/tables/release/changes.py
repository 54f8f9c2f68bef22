"""The tables of changes that are shown and written, and a sentence about each of them."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import AbstractBase
from domains.tables.clipped import Clipped

from ...errors import ParameterError
from ...files.disk import RECORD, file_digest
from ...layout import WIDTH, fitted
from ..planning.facts import counted_text, marginal_name, persons_text
from ..schema.about import About, is_line
from ..schema.entries import Entry, entry_term, term_name
from ..schema.numbers import values_text
from ..schema.schema import Schema
from .comparison import ComparisonTable
from .formats.csv import MEANINGS
from .formats.format import MEANING, NUMBER_FORMAT
from .mean_changes import MeanChanges, changes_of_means, no_changes
from .merged import MergedPlan, all_fit_text
from .noisy import AbstractRelease
from .report.numbers import cells_of
from .report.render import Cell, digits_of, number, shown
from .show import rows_text
from .store import StoredTables
from .table import AbstractEstimates
from .text import weight_text
from .tidy import LEVEL, arrow_columns, interval_record, level_text

if TYPE_CHECKING:
    import pyarrow as pa

    from .difference import Changes

Statistic = Literal["count", "answer", "sum", "mean"]

FORMAT = "gaussnoise.changes/1"
TOGETHER = (
    f"Sentences are right in {level_text(LEVEL)} of cases, each for all numbers of its table "
    "together: they may see no change where the range of one number, by itself, leaves out zero."
)
LEFT_OUT = "Left out, since it cannot be compared"
CLOSING = (
    f"low and high: {level_text(LEVEL)} intervals of the change for noise alone, each number by "
    "itself; in %: of the number before, if that cannot be zero, and −100 for a fall that noise "
    "made larger."
)
NO_CHANGE = "No change that the noise allows to see."

_ENDS = {
    "_low": f"{MEANINGS['low']} of",
    "_high": f"{MEANINGS['high']} of",
    "_standard_deviation": "the standard deviation of the noise in",
}
_SHOWN = 20  # most rows of a table in text
_MOST_TABLES = 12  # most tables in text
_LEAST = 6  # fewest characters of a label
_NUMBERS = ("before", "after", "change", "low", "high", "in %")


class Change(NamedTuple):
    """A change in one cell, absolute and relative, and the numbers before and after."""

    change: Cell
    relative: Cell
    before: Cell
    after: Cell


@final
@dataclass(frozen=True, eq=False, repr=False)
class ShownChanges:
    """A table of changes, with its name and the numbers that it compares.

    Attributes:
        table: the changes, numbers of the later release minus those of the earlier one.
        statistic: "count", "mean", "sum" or another kind of number.
        parts: the names of the table's attributes, each with its queries if these are not cells.
        noun: the plural noun for the counted things.
        number: the name of the number whose sums or means these are; None for other statistics.
        over: text after the name of a sum or mean over persons.
        schema: the schema of the earlier release.
    """

    table: ComparisonTable
    statistic: Statistic
    parts: tuple[str, ...]
    noun: str = "rows"
    number: str | None = None
    over: str = ""
    schema: Schema | None = None

    @property
    def title(self) -> tuple[str, ...]:
        """The parts of the table's name; the names of its files are made of them."""
        return self.parts if self.number is None else (self._what, *self.parts)

    @property
    def name(self) -> str:
        """The name of the table in one line."""
        if self.number is None:
            return " × ".join(self.parts) or f"all {self.noun}"
        return self._what + self.over + (f" by {marginal_name(self.parts)}" if self.parts else "")

    @property
    def heading(self) -> str:
        """The name of the table, with the headings that readers see in place of attribute names."""
        if self.schema is None:
            return self.name
        parts, own = tuple(map(self.schema.heading, self.parts)), self.number
        said = replace(self, parts=parts, number=own and self.schema.heading(own)).name
        return said if parts and own is None else f"{said[0].upper()}{said[1:]}"

    @property
    def _what(self) -> str:
        return f"{self.statistic} of {self.number}"

    @cached_property
    def relative(self) -> ComparisonTable:
        """The relative changes: the changes divided by the numbers of the earlier release."""
        return self.table.relative()

    def digits(self, deviation: float) -> int:
        """Return the number of decimals for a number, given the standard deviation of its noise.

        Means get one decimal more than counts and sums.
        """
        return digits_of(deviation / 10 if self.statistic == "mean" else deviation)

    @property
    def finding(self) -> str:
        """A sentence that names the largest significant change, or says that there is none.

        The sentence is supported by intervals that hold for all numbers of the table together.
        """
        table = self.table
        low, high = (np.ravel(end) for end in table.confidence_interval(simultaneous=True))
        certain = (low > 0) | (high < 0)
        if not certain.any():
            return NO_CHANGE if np.any(table.standard_deviation) else "No change: exactly."
        k = int(np.argmax(np.where(certain, np.abs(np.nan_to_num(table.estimate.ravel())), -1.0)))
        (cell,) = cells_of(table, [k], table.confidence_interval(simultaneous=True))
        digits = self.digits(cell.deviation)
        more, fewer = "higher", "lower"
        if self.statistic == "count":
            more, fewer = f"more {self.noun}", f"fewer {self.noun}"
        said = f"{number(abs(cell.estimate), digits)} {more if cell.low > 0 else fewer}"
        near, far = sorted((abs(cell.low), abs(cell.high)))
        if not cell.deviation:
            said += ", exactly"
        elif math.isfinite(far):
            said += f" ({number(near, digits)} to {number(far, digits)})"
        else:
            said += f" ({number(near, digits)} or more)"
        group = " · ".join(shown(name, 40) for name in cell.names)
        if low.size > 1:
            are = "is" if certain.sum() == 1 else "are"
            said += f"; {certain.sum():,} of {low.size:,} changes {are} larger than the noise"
        return (f"{group}: {said}" if group else said[0].upper() + said[1:]) + "."

    def cells(self, places: Sequence[int]) -> list[Change]:
        """Return the changes in some cells, each with the two numbers that it compares.

        ``places`` are the indices of the cells in the flattened table (C order).
        """
        table = self.table
        four = table, self.relative, table.second, table.first
        return list(map(Change, *(cells_of(own, places) for own in four)))

    def __str__(self) -> str:
        size, names = self.table.estimate.size, self.table.attributes
        numbers, labels = [], []
        for change, relative, before, after in self.cells(range(min(size, _SHOWN))):
            digits = self.digits(change.deviation)
            ends = [number(end, digits) for end in (change.low, change.high)]
            ends = ends if change.has_interval else ["—", "—"]
            both = (number(x.estimate, x.digits) for x in (before, after))
            numbers.append([*both, signed(change.estimate, digits), *ends, percent(relative)])
            labels.append(change.names)
        widths = [max(map(len, column)) for column in zip(_NUMBERS, *numbers, strict=True)]
        wanted = [
            max(len(str(label)) for label in column) for column in zip(names, *labels, strict=True)
        ]
        left = WIDTH - sum(widths) - 2 * (len(widths) + len(names) - 1)
        most = max(wanted, default=_LEAST)
        while most > _LEAST and sum(min(most, own) for own in wanted) > left:
            most -= 1
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

    def to_arrow(self) -> "pa.Table":
        """Return the table as tidy rows, one for each cell, in pyarrow.

        The numbers are before, after, change, and change in per cent, with their intervals. The
        change in per cent is unknown if the number before may be zero.
        """
        import pyarrow as pa

        table, numbers, about = self.table, {}, {}
        for name, (what, values) in self._columns.items():
            while name in table.attributes:
                name += "_"
            numbers[name], about[name] = values, {NUMBER_FORMAT: b"0.00", MEANING: what.encode()}
        cells = slice(0, table.estimate.size)
        rows = arrow_columns(table.attributes, table.labels, cells, numbers)
        fields = [field.with_metadata(about.get(field.name)) for field in rows.schema]
        columns = [
            pa.array(column.to_numpy(), from_pandas=True) if field.metadata else column
            for field, column in zip(fields, rows.columns, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    @property
    def _columns(self) -> dict[str, tuple[str, NDArray[np.float64]]]:
        """The columns of numbers in files, as {name: (meaning, numbers)}."""
        found: dict[str, tuple[str, NDArray[np.float64]]] = {}
        tables: dict[str, tuple[str, AbstractEstimates, float]] = {
            "before": ("the number before", self.table.second, 1.0),
            "after": ("the number after", self.table.first, 1.0),
            "change": ("the number after less that before", self.table, 1.0),
            "per_cent": ("the change in per cent of the number before", self.relative, 100.0),
        }
        for name, (what, table, unit) in tables.items():
            low, high = table.confidence_interval()
            known = np.isfinite(low) & np.isfinite(high) if unit != 1 else np.full(low.shape, True)
            ends = {"": table.estimate, "_low": low, "_high": high}
            if name == "change":
                ends["_standard_deviation"] = table.standard_deviation
            for end, values in ends.items():
                about = f"{_ENDS[end]} {what}" if end else what
                found[name + end] = about, np.where(known, unit * values, np.nan)
        return found

    def record(self, *, rows: bool) -> dict[str, object]:
        """Return the table as plain data for JSON, with the numbers of all cells if ``rows``."""
        table, found = self.table, dict[str, object]()
        if rows:
            found["rows"] = [
                {
                    "labels": list(change.names),
                    **_interval("before", before),
                    **_interval("after", after),
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
            "number": self.number,
            "attributes": list(table.attributes),
            "finding": self.finding,
            "intervals": table.how,
            **found,
        }


def shown_changes(changes: "Changes", of: Sequence[Entry] = ()) -> list[ShownChanges]:
    """Return the tables of changes for the workload entries ``of``.

    Without ``of``, the tables are those of all planned entries that both releases can answer. If an
    entry has a number that is clipped to an interval, its tables are the means and the sums of this
    number, by the other attributes.

    Raises:
        ParameterError: unknown attributes, or a table that one of the releases does not have.
    """
    schema = changes.before.plan.schema
    if of:
        terms = [entry_term(schema, entry) for entry in of]
        entries = [{schema.names[i]: base for i, base in term.items()} for term in terms]
    else:
        entries = _entries_of_both(changes)
    found: dict[object, ShownChanges] = {}
    for one in (own for entry in entries for own in _tables(changes, entry)):
        # several tables may have the means of the same number
        found.setdefault(len(found) if one.number is None else one.title, one)
    return list(found.values())


def _entries_of_both(changes: "Changes") -> list[dict[str, AbstractBase]]:
    """Return the entries {name: queries} that both releases can answer; {} is the total."""
    found: dict[object, dict[str, AbstractBase]] = {(): {}}
    for schema, term in _planned_entries(changes):
        entry = {schema.names[i]: base for i, base in term}
        if _why_not_compared(changes, entry) is None:
            found.setdefault(tuple(sorted(entry.items(), key=lambda item: item[0])), entry)
    return list(found.values())


def _planned_entries(
    changes: "Changes",
) -> Iterator[tuple[Schema, Sequence[tuple[int, AbstractBase]]]]:
    """Yield (schema, entry) for every planned entry of both releases."""
    for release in (changes.before, changes.after):
        for term in release.plan.domain.terms:
            yield release.plan.schema, term


def left_out(changes: "Changes") -> dict[str, str]:
    """Return {table name: why it cannot be compared} for planned tables that are left out.

    The keys are the names that the tables of changes would have. Each table occurs once.
    """
    found: dict[frozenset[str], tuple[str, str]] = {}
    for schema, term in _planned_entries(changes):
        names = [schema.names[i] for i, _ in term]
        reason = _why_not_compared(changes, names)
        if reason is None:
            continue
        parts = [term_name(schema, [one]) for one in term]
        numbers = [schema.names[i] for i, base in term if isinstance(base, Clipped)]
        name = " × ".join(parts)
        if numbers:
            others = [part for part, own in zip(parts, names, strict=True) if own not in numbers]
            by = f" by {marginal_name(tuple(others))}" if others else ""
            name = f"mean and sum of {' and of '.join(numbers)}{by}"
        both = zip(parts, names, strict=True)  # the name may depend on the release
        key = frozenset(own if own in changes.unlike else part for part, own in both)
        found.setdefault(key, (name, reason))
    return dict(found.values())


def _why_not_compared(changes: "Changes", names: Collection[str]) -> str | None:
    """Return why tables of these attributes cannot be compared, as text; None if they can."""
    said = [f"{name} {changes.unlike[name]}" for name in names if name in changes.unlike]
    if said:
        return "; ".join(said)
    both = {"earlier": changes.before, "later": changes.after}
    for when, release in both.items():
        if not any(set(names) <= set(marginal) for marginal in release):
            return f"the {when} release has no such table"
    return None


def _tables(changes: "Changes", entry: Mapping[str, AbstractBase]) -> list[ShownChanges]:
    """Return an entry's tables of changes: means and sums of clipped numbers, or else one table."""
    names, plan, schema = tuple(entry), changes.after.plan, changes.before.plan.schema
    numbers = [name for name, base in entry.items() if isinstance(base, Clipped)]
    groups = tuple(name for name in names if name not in numbers)
    if numbers and all(entry[name].is_identity for name in groups):
        found: list[tuple[str, Statistic, ComparisonTable]] = []
        for own in numbers:
            found.append((own, "mean", changes.means(own, groups)))
            found.append((own, "sum", changes.sums(own, groups)))
        return [
            ShownChanges(
                table, kind, groups, changes.after.noun, own, persons_text(plan, own), schema
            )
            for own, kind, table in found
        ]
    if all(base.is_identity for base in entry.values()):
        return [ShownChanges(changes[names], "count", names, changes.after.noun, schema=schema)]
    parts = [term_name(schema, [(schema.names.index(n), base)]) for n, base in entry.items()]
    return [ShownChanges(changes.answers(entry), "answer", tuple(parts), schema=schema)]


def changes_text(
    changes: "Changes", found: Sequence[ShownChanges], of: Sequence[Entry] = ()
) -> str:
    """Return the text that is printed for changes, at most 80 characters wide.

    The first tables are shown in full, and each further table as one sentence. If ``of`` is empty,
    the tables that cannot be compared are named, with the reason.
    """
    missing = [f"{name}: {why}" for name, why in ({} if of else left_out(changes)).items()]
    if len(missing) > _MOST_TABLES:
        missing[_MOST_TABLES:] = [f"… and {len(missing) - _MOST_TABLES} more"]
    others = [fitted(f"{one.name}: {one.finding}") for one in found[_MOST_TABLES:]]
    closing = [
        fitted(said)
        for said in (CLOSING, TOGETHER, *notes_text(changes, found), *cost_text(changes))
    ]
    missing = [fitted(line) for line in ([f"{LEFT_OUT}:", *missing] if missing else [])]
    means = population_of_changes(changes, of)
    texts = others, missing, [] if means is None else [fitted(str(means))], closing
    parts = [*map(str, found[:_MOST_TABLES]), *("\n".join(lines) for lines in texts)]
    return "\n\n".join(filter(None, parts))


def population_of_changes(changes: "Changes", of: Sequence[Entry]) -> MeanChanges | None:
    """Return the changes of means of the population, if both releases have such means.

    None is returned if they cannot be computed, or if ``of`` names the tables to show.
    """
    both = changes.before, changes.after, changes.unlike
    return None if of or no_changes(*both) else changes_of_means(*both)


def notes_text(changes: "Changes", found: Sequence[ShownChanges]) -> list[str]:
    """Return sentences that say which rows and values the numbers are about."""
    plan = changes.after.plan
    names = {one.number for one in found}.union(*(one.table.attributes for one in found))
    used = [a for a in plan.schema.attributes if a.name in names]
    notes = [
        f"Sums and means of {a.heading} are of {values_text(a.interval)}."
        for a in used
        if a.is_summed
    ]
    notes += weight_text(plan, "numbers")
    counted = dict.fromkeys(
        counted_text(one.plan) for one in (changes.before, changes.after) if one.plan.person
    )
    if changes.left_out_by:
        notes.append(
            f"{all_fit_text(changes.left_out_by)} Rows without one are in no table of one of the "
            "releases, and in the tables of the other: changes may be of these rows alone."
        )
    plans: list[Any] = [one.plan for one in (changes.before, changes.after)]
    if any(isinstance(plan, MergedPlan) and plan.agreement is None for plan in plans):
        notes.append("Assumed, not tested: releases that were combined are of the same rows.")
    notes += [said for own in plans if isinstance(own, MergedPlan) for said in own.assumed]
    return [*notes, *(f"Counted: {said}." for said in counted)]


def cost_text(changes: "Changes") -> list[str]:
    """Return sentences on the privacy cost of both releases together."""
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
    changes: "Changes", found: Sequence[ShownChanges], of: Sequence[Entry] = (), *, rows: bool
) -> dict[str, object]:
    """Return changes as plain data for JSON; the numbers of the tables are included if ``rows``.

    If ``of`` is empty, the tables that cannot be compared are named, with the reason.
    """
    missing = {} if of else left_out(changes)
    means = population_of_changes(changes, of)
    return {
        "format": FORMAT,
        "private": changes.private,
        "before": _release_record(changes.before),
        "after": _release_record(changes.after),
        "rho_of_both": changes.rho_charged,
        "intervals": interval_record(),
        "notes": notes_text(changes, found),
        "tables": [one.record(rows=rows) for one in found],
        "population_means": None if means is None else _means_record(means),
        "left_out": [{"name": name, "reason": why} for name, why in missing.items()],
    }


def _means_record(means: MeanChanges) -> dict[str, object]:
    """Return changes of population means as plain data; unknown numbers are null."""
    rows = [
        {key: _plain(x) if isinstance(x, float) else x for key, x in asdict(one).items()}
        for one in means.changes
    ]
    return {"mean_of": means.mean_of, "level": means.level, "changes": rows}


def _release_record(release: AbstractRelease) -> dict[str, object]:
    tables = release.tables
    return {
        "name": release_name(release),
        "sha256": file_digest(tables.folder / RECORD) if isinstance(tables, StoredTables) else None,
        "neighbors": release.plan.neighbors,
        "rows_per_person": release.plan.rows_per_person,
        "person": release.plan.person,
        "rho": release.rho_charged if release.private else None,
    }


def release_name(release: AbstractRelease) -> str | None:
    """Return the name of a release's folder, or else its title; None if it has neither."""
    if isinstance(release.tables, StoredTables):
        return release.tables.folder.resolve().name
    plan: Any = release.plan
    return None if isinstance(plan, MergedPlan) else plan.about.title


def about_both(changes: "Changes") -> About:
    """Return the lines that describe both releases to readers, such as title and period.

    A line that is equal in both is kept; otherwise it becomes "from … to …".
    """
    first, second = (one.plan.about.stated for one in (changes.before, changes.after))
    found: dict[str, str] = {}
    for name in {**first, **second}:
        lines = list(dict.fromkeys(own[name] for own in (first, second) if name in own))
        said = lines[0] if len(lines) == 1 else f"from {lines[0]} to {lines[1]}"
        found[name] = said if is_line(said) else lines[-1]
    return About(**found)


def title_of(changes: "Changes") -> str:
    """Return the heading of changes, with the names of both releases if they have names."""
    both = changes.before, changes.after
    titles, periods = (
        [getattr(one.plan.about, name) for one in both] for name in ("title", "period")
    )
    names = titles if all(titles) else list(map(release_name, both))
    if names[0] == names[1] and names[0] is not None:
        when = f" from {periods[0]} to {periods[1]}" if all(periods) else ""
        return f"{names[0]}: what changed{when if periods[0] != periods[1] else ''}"
    return f"What changed from {names[0]} to {names[1]}" if all(names) else "What changed"


def signed(value: float, digits: int) -> str:
    """Return a number as text, with a plus sign if it is positive."""
    text = number(value, digits)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def percent(relative: Cell) -> str:
    """Return a relative change in per cent, as text; a dash if the number before may be zero.

    An impossible estimate, like a fall of more than 100 %, is set to the nearer bound of its
    interval.
    """
    if not (math.isfinite(relative.low) and math.isfinite(relative.high)):
        return "—"
    possible = min(max(relative.estimate, relative.low), relative.high)
    return signed(100 * possible, digits_of(100 * relative.deviation))


def percent_ends(relative: Cell) -> str:
    """Return the interval of a relative change in per cent, as text.

    It is "exact" for a number without noise, and "" if the number before may be zero.
    """
    if percent(relative) == "—":
        return ""
    digits = digits_of(100 * relative.deviation)
    low, high = (number(100 * end, digits) for end in (relative.low, relative.high))
    return f"{low} to {high}" if relative.deviation else "exact"


def _interval(name: str, cell: Cell) -> dict[str, float | None]:
    """Return a number and its bounds for JSON, with the keys name, name_low and name_high."""
    ends = {name: cell.estimate, f"{name}_low": cell.low, f"{name}_high": cell.high}
    return {key: _plain(value) for key, value in ends.items()}


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def check_shown(of: object) -> None:
    """Raise ParameterError unless ``of``, the tables to show, is a list or a tuple."""
    if not isinstance(of, list | tuple):
        raise ParameterError(
            f'difference: expected of to be a list of tables, like [("sex", "age")], got {of!r:.80}'
        )
