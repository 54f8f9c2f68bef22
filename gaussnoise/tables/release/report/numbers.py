"""Released numbers on a page: tables, pictures of tables, largest and smallest cells."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import AbstractBase
from domains.tables.clipped import Clipped

from ....numerics.intervals import ConfidenceInterval
from ....text import capital
from ...planning.facts import marginal_name, persons_text
from ...schema.numbers import capped_text, interval_text
from ...schema.schema import Attribute, Category, Schema
from ..comparison import ComparisonTable
from ..files import answer_files
from ..formats import format_name
from ..marks import LOW_RELIABILITY, marks_of
from ..noisy import AbstractRelease
from ..shares import proportions
from ..store import MOST_READ, StoredTables
from ..sums import MeanTable, means, summed_in, summed_numbers, sums
from ..table import AbstractEstimates, ProportionTable
from ..text import beyond_text, unknown_text
from ..tidy import LEVEL, level_text
from .charts import Picture, Row, heat_chart, interval_chart, profile_chart
from .order import reading_axes, reading_places
from .render import Cell, category_text, digits_of, number, shown

if TYPE_CHECKING:
    from ...planning.plan import Plan

MOST_ROWS = 60  # most rows of a table that is written completely
_MOST_FOLDED = 500  # most rows of a table that is written completely, but folded
_ENDS = 10  # rows of largest and of smallest numbers, for a longer table
MOST_LINES = 30  # most lines with names in a picture
_MOST_COLOURED = 1500  # most cells of a picture in colours
_MOST_PANELS = 12  # most pictures for one table
MOST_COLUMNS = 8  # most columns of a table with one attribute in columns
_MOST_CROSSED = 150  # most cells of such a table of three or more attributes, or of totals by two
_MOST_BESIDE, _MOST_BESIDE_ROWS = 4, 16  # most columns and numbers beside a picture
_MOST_COMPARED = 300  # most tables whose largest and smallest cells are listed
_MOST_CELLS = 2 * 10**6  # most cells of these tables in all
MOST_ANSWERS = 10**5  # most answers of an entry
Margin = Callable[[tuple[str, ...]], AbstractEstimates]

_HIDDEN = "the whole range: the noise hides this mean"
_BEYOND = " (groups of the rest may lie beyond, in the colour of the nearer end)"
_MOST_NAME = 60
_MOST_HEAD = 40


class Crossed(NamedTuple):
    """A table with one attribute in columns and all others in rows, and with totals."""

    down: tuple[str, ...]
    across: str
    headings: list[str]
    columns: list[str]
    rows: list[tuple[tuple[Category, ...], list[Cell]]]
    totals: list[Cell] | None


class Extreme(NamedTuple):
    """The largest and the smallest cell of a table, as estimated.

    It also says how many other cells could be as large, or as small, within their intervals.
    """

    name: str
    attributes: tuple[str, ...]
    largest: Cell
    as_large: int
    smallest: Cell
    as_small: int
    empty: int
    size: int


class Extremes(NamedTuple):
    """The largest and smallest cells of several tables, and the number of tables left out."""

    rows: list[Extreme]
    left: int


@final
@dataclass(frozen=True)
class Numbers:
    """Numbers of one kind, such as counts or means, for one section of the page.

    Attributes:
        table: the numbers.
        title: a title that says what the numbers are.
        anchor: the name of their picture.
        heading: whether the title is written above the numbers; if not, the section has this title.
        kind: "cells" for counts of disjoint groups; "mean"; "share"; "changes"; "behind" for sums
            and counts from which means are computed; or "answers".
        file: the file with all of the numbers, or None.
        margin: a function from attributes to the table of counts, or of means, over these
            attributes.
        beside: a further column: shares of all rows for counts, or counts of rows for means.
        noun: the plural noun for the counted things.
        others: {attribute: its catch-all}, where it has one.
        schema: the schema, from which the order of categories for readers is known.
    """

    table: AbstractEstimates
    title: str
    anchor: str
    heading: bool = False
    kind: Literal["cells", "mean", "share", "changes", "behind", "answers"] = "answers"
    file: str | None = None
    margin: Margin | None = None
    beside: AbstractEstimates | None = None
    noun: str = "rows"
    others: Mapping[str, str] = field(default_factory=dict[str, str])
    schema: Schema | None = None

    @property
    def note(self) -> str:
        """A sentence if all numbers are exact, or if noise hides some or all of them; else ""."""
        table, (least, most) = self.table, self.table.limits
        low, high = table.confidence_interval()
        known = np.isfinite(table.estimate) & ~((low <= least) & (high >= most))
        if not known.any():
            return "No estimate: the noise hides all of these numbers."
        if not table.standard_deviation[known].any():
            return "Exact: without noise."
        hidden = int((~known).sum())
        if not hidden:
            return ""
        return f"The noise leaves no estimate of {hidden} of these {known.size:,} numbers."

    @cached_property
    def pictures(self) -> list[Picture]:
        """The pictures of the numbers, as suits their size.

        A picture shows intervals with names, or colours (for two or three attributes), or the
        largest and smallest cells.
        """
        table = self.table
        if not np.isfinite(table.estimate).any():
            return []
        shape, size = table.estimate.shape, table.estimate.size
        groups = size // shape[-1] if len(shape) > 1 else 0
        if size + groups <= MOST_LINES:
            words = "One line for each number, in the order of the table below, which has them all."
            return [self._intervals(cells_of(table, self.order), words)]
        if self.kind != "changes":  # since changes have two signs
            if len(shape) in (2, 3) and size <= _MOST_COLOURED and min(shape) <= _MOST_PANELS:
                return self._colours()
        low, high = (np.ravel(end) for end in table.confidence_interval())
        if len(shape) == 1 and self.kind in ("answers", "changes"):
            words = f"All {size:,} numbers side by side, in their order, in a band of intervals."
            names = list(map(str, table.labels[0]))
            estimate = np.ravel(table.estimate)
            return [profile_chart(estimate, low, high, names, self.anchor, self._headline, words)]
        order = _order(table.estimate).tolist()
        ends = cells_of(table, [*order[:_ENDS], *order[-_ENDS:]])
        words = f"The {_ENDS} largest and the {_ENDS} smallest of {size:,} numbers."
        picture = self._intervals(ends, words, hidden=size - 2 * _ENDS)
        return [picture._replace(caption=f"{words} {picture.caption}".rstrip())]

    @property
    def _headline(self) -> str:
        what = "changes" if self.kind == "changes" else "estimates"
        return f"{self.title}: {what} with {level_text(LEVEL)} intervals"

    @cached_property
    def order(self) -> list[int]:
        """The indices of all cells (in C order), sorted for readers."""
        return reading_places(self.table, self.schema)

    def _intervals(self, cells: Sequence[Cell], words: str, hidden: int = 0) -> Picture:
        """Return a picture with a line for each cell; only its description mentions ``hidden``."""
        others = self.table.others if isinstance(self.table, ComparisonTable) else {}
        pairs = others.items()
        aside = [
            not pairs.isdisjoint(zip(self.table.attributes, c.names, strict=True)) for c in cells
        ]
        if hidden:
            cells = [one._replace(names=(" · ".join(map(str, one.names)),)) for one in cells]
        least, most = self.table.limits
        if isinstance(self.table, ProportionTable):
            least, most = 100 * least, 100 * most
        rows = [
            row._replace(estimate=math.nan) if row.low <= least and row.high >= most else row
            for row in lines_of(cells, aside)  # an interval that is the whole range is not drawn
        ]
        if hidden:
            rows.insert(_ENDS, Row(f"… {hidden:,} more …"))
        from_zero = self.kind != "mean"
        return interval_chart(rows, self.anchor, self._headline, words, from_zero=from_zero)

    def _colours(self) -> list[Picture]:
        """Return a picture in colours by two attributes, or one for each category of a third."""
        # of three attributes, the one with the fewest categories has a picture for each
        table = self.table
        shape = table.estimate.shape
        panel = int(np.argmin(shape)) if len(shape) == 3 else None
        low, high = table.confidence_interval()
        chance, digits, beyond = round(2 / (1 - LEVEL)), 0, ""
        grey = f"where the number may be 0 (about 1 in {chance} of true zeros is coloured)"
        may_be_zero = (low <= 0) & ((high >= 0) | (table.limits[0] >= 0))
        hidden = may_be_zero | np.isnan(table.estimate)
        if self.kind == "mean":
            marks = marks_of(table.estimate, table.standard_deviation)
            hidden, grey = np.isin(marks, LOW_RELIABILITY), "where noise leaves a mean unreliable"
            seen = table.standard_deviation[~hidden]
            digits = digits_of(float(np.median(seen))) if seen.size else 0
        axes = reading_axes(table, self.schema)
        cells = np.where(hidden, np.nan, table.estimate)
        names = [[str(own[k]) for k in axis] for own, axis in zip(table.labels, axes, strict=True)]
        scale = 0.0, float(np.nanmax(cells, initial=0.0)) or 1.0
        if self.kind == "mean" and np.isfinite(cells).any():  # near each other, far from 0
            own = np.where(listed_in(table, self.others), cells, np.nan)
            own = own if np.isfinite(own).any() else cells
            scale = float(np.nanmin(own)), float(np.nanmax(own))
            beyond = _BEYOND * bool(((cells < scale[0]) | (cells > scale[1])).any())
        cells, titles = cells[np.ix_(*axes)], [""]
        if panel is None:
            cells = cells[None]
        else:
            cells, own = np.moveaxis(cells, panel, 0), names.pop(panel)
            titles = [f"{shown(table.headings[panel])}: {shown(one)}" for one in own]
        if cells.shape[1] < cells.shape[2]:  # the attribute with fewer values in columns
            cells, names = cells.swapaxes(1, 2), names[::-1]
        least, most = (number(end, digits) for end in scale)
        words = f"Colours from {least} to {most}{beyond}; grey {grey}."
        return [
            heat_chart(
                own,
                (names[0], names[1]),
                scale,
                f"{self.anchor}-{k}",
                f"{self._headline}{'; ' * bool(title)}{title}",
                words,
                digits,
            )._replace(caption=f"{title}. {words}" if title else words)
            for k, (own, title) in enumerate(zip(cells, titles, strict=True))
        ]

    @property
    def is_crossed(self) -> bool:
        """Whether the numbers are written with one attribute in columns and all others in rows."""
        shape = self.table.estimate.shape
        if len(shape) > 2:
            return MOST_ROWS < math.prod(shape) <= _MOST_CROSSED and min(shape) <= MOST_COLUMNS
        return len(shape) == 2 and min(shape) <= MOST_COLUMNS and max(shape) <= MOST_ROWS

    @property
    def is_short(self) -> bool:
        """Whether a picture and its table fit side by side on a page of paper."""
        shape = self.table.estimate.shape
        columns = min(shape) + 2 if self.is_crossed else len(shape) + 2
        return columns <= _MOST_BESIDE and math.prod(shape) <= _MOST_BESIDE_ROWS

    @property
    def hidden(self) -> int:
        """The number of cells that are left out in the middle of a long table."""
        size = self.table.estimate.size
        return 0 if size <= MOST_ROWS or self.is_crossed else size - 2 * _ENDS

    @property
    def caption(self) -> str:
        """The caption of the table of these numbers."""
        caption = f"{self.title}: estimates and {level_text(LEVEL)} intervals"
        shares = self.table if self.kind == "share" else self.beside
        own = shares.estimate if isinstance(shares, ProportionTable) else np.zeros(0)
        if ((own < 0) | (own > 1)).any():
            caption += "; noise has carried some estimates outside 0 to 100 %"
        if isinstance(self.table, MeanTable) and self.table.cut.any():
            caption += (
                f"; noise has carried some outside {interval_text(*self.table.clip)}, which stand "
                "at its nearer end"
            )
        if not self.hidden:
            return caption
        places = (["under this table"] if self.is_folded else []) + [
            f"in the file {file}" for file in [self.file] if file
        ]
        where = f" All are {' and '.join(places)}." if places else ""
        return (
            f"{caption}: the {_ENDS} largest and the {_ENDS} smallest of "
            f"{self.table.estimate.size:,}.{where}"
        )

    @property
    def is_folded(self) -> bool:
        """Whether all cells of a long table follow it, folded, in their order."""
        return bool(self.hidden) and self.table.estimate.size <= _MOST_FOLDED

    @property
    def all_cells(self) -> list[Cell]:
        """All cells of the table, in the order for readers."""
        return self._written(cells_of(self.table, self.order))

    @property
    def cells(self) -> list[Cell]:
        """All cells of the table, or only the largest and the smallest cells if it is long."""
        return self._written(cells_of(self.table, self._places))

    def _written(self, cells: list[Cell]) -> list[Cell]:
        """Return the cells as a page writes them: marked as catch-alls, and as hidden by noise.

        Marks compare a number with its noise. Changes have no marks, since a change can be near
        zero and still be reliable. A mean is hidden by noise if its interval is the whole range of
        the number.
        """
        cells = self.named(cells)
        if self.kind == "changes":
            return [one._replace(mark="") for one in cells]
        if not isinstance(self.table, MeanTable):
            return cells
        least, most = self.table.limits
        return [
            one._replace(hidden=_HIDDEN * (one.low <= least and one.high >= most)) for one in cells
        ]

    def named(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells with the names of their categories as a table has them."""
        pairs = [(one, zip(self.table.attributes, one.names, strict=True)) for one in cells]
        return [one._replace(names=tuple(self.said(*own) for own in names)) for one, names in pairs]

    def said(self, attribute: str, label: Category) -> Category:
        """Return the label of an attribute's category for a table; a catch-all is named as one."""
        return category_text(label, self.others.get(attribute) == str(label))

    @property
    def beside_title(self) -> str:
        """The heading of the second column of numbers, those of the table ``beside``."""
        is_share = isinstance(self.beside, ProportionTable)
        return "Per cent of all" if is_share else capital(self.noun)

    @property
    def cells_beside(self) -> list[Cell]:
        """The cells of the second column of numbers, from the table ``beside``; empty if None."""
        return [] if self.beside is None else cells_of(self.beside, self._places)

    @property
    def total(self) -> Cell | None:
        """The number of all rows, for the last line of a table of one attribute."""
        return self.whole if self.table.estimate.ndim == 1 else None

    @property
    def whole(self) -> Cell | None:
        """The number of all rows, or their mean; None if it is unknown."""
        return None if self.margin is None else self._over(self.margin, ()).all_cells[0]

    @property
    def all_name(self) -> str:
        """The name of the row, and of the column, of all groups together."""
        return "All" if self.kind == "mean" else "Total"

    @property
    def margins(self) -> "list[Numbers]":
        """The numbers by each attribute, unless the table itself has them all.

        For three attributes or more, small tables by each two attributes follow.
        """
        axes = self.table.estimate.ndim
        if self.margin is None or axes < 2 or (axes == 2 and self.is_crossed):
            return []
        own = self.table.attributes
        found = [self._over(self.margin, (name,)) for name in own]
        sizes = dict(zip(own, self.table.estimate.shape, strict=True))
        pairs = combinations(own, 2) if axes > 2 else ()
        few = [pair for pair in pairs if math.prod(map(sizes.__getitem__, pair)) <= _MOST_CROSSED]
        return found + [self._over(self.margin, pair) for pair in few]

    @property
    def by_first(self) -> "Numbers | None":
        """The means by the first of several attributes; None for other tables."""
        if self.kind != "mean" or self.margin is None or self.table.estimate.ndim < 2:
            return None
        return self._over(self.margin, self.table.attributes[:1])

    def _over(self, margin: Margin, attributes: tuple[str, ...]) -> "Numbers":
        """Return the numbers of the table that ``margin`` gives for these fewer attributes."""
        table = margin(attributes)
        return replace(self, table=table, title=_title(table), file=None, heading=True)

    @property
    def _places(self) -> Sequence[int]:
        if not self.hidden:
            return self.order
        order = _order(self.table.estimate).tolist()
        return [*order[:_ENDS], *order[-_ENDS:]]

    @cached_property
    def crossed(self) -> Crossed:
        """The table with one attribute in columns, with totals if known.

        This attribute is the last one that is narrow enough. Of two attributes, it is the one with
        fewer categories.
        """
        table = self.table
        shape = table.estimate.shape
        axis = max(k for k, size in enumerate(shape) if size <= MOST_COLUMNS)
        if len(shape) == 2:
            axis = 0 if shape[0] < shape[1] else 1
        own = table.attributes
        across, down = own[axis], (*own[:axis], *own[axis + 1 :])
        cells = np.moveaxis(np.arange(table.estimate.size).reshape(shape), axis, -1)
        all_cells, rows = self.all_cells, list[tuple[tuple[Category, ...], list[Cell]]]()
        for places in cells.reshape(-1, shape[axis]).tolist():
            one = [all_cells[k] for k in places]
            rows.append(((*one[0].names[:axis], *one[0].names[axis + 1 :]), one))
        columns = [shown(cell.names[axis], _MOST_HEAD) for cell in rows[0][1]]
        last = None
        if self.margin is not None:
            ends = (self._over(self.margin, own) for own in (down, (across,), ()))
            beside, below, corner = (own.all_cells for own in ends)
            rows = [(name, [*row, more]) for (name, row), more in zip(rows, beside, strict=True)]
            last = [*below, *corner]
        headings = [*table.headings[:axis], *table.headings[axis + 1 :], table.headings[axis]]
        return Crossed(down, across, headings, columns, rows, last)


@final
@dataclass(frozen=True)
class Entry:
    """The numbers that answer one entry of a workload, for one section of the page.

    Attributes:
        name: its name in words.
        title: the heading of its section.
        anchor: the anchor of its section.
        size: the number of its answers.
        is_cells: whether they are counts of disjoint groups.
        notes: sentences for its readers: on what means are over, and on clipped values.
        read: a function that returns the tables of its numbers. For a clipped number, tables of
            means come first, and the table of sums, counts and sums of squares comes last.
        others: {attribute: its catch-all}, where it has one.
        schema: the schema, from which the order of categories for readers is known.
    """

    name: str
    title: str
    anchor: str
    size: int
    is_cells: bool
    notes: Sequence[str]
    read: Callable[[], list[Numbers]]
    others: Mapping[str, str]
    schema: Schema

    @cached_property
    def every(self) -> list[Numbers]:
        """All tables with numbers of this entry."""
        return [replace(own, others=self.others, schema=self.schema) for own in self.read()]

    @property
    def parts(self) -> list[Numbers]:
        """The tables of this entry that all readers are interested in."""
        return [part for part in self.every if part.kind != "behind"]

    @property
    def behind(self) -> list[Numbers]:
        """The tables of sums and counts from which means are computed, for specialists."""
        return [part for part in self.every if part.kind == "behind"]


def entries_of(release: AbstractRelease) -> list[Entry]:
    """Return the entries of a release's workload that are small enough to be computed."""
    plan, files, found = release.plan, files_of(release), []
    names, sizes = plan.schema.names, plan.schema.sizes
    titles = titles_of(plan)
    others = {a.name: a.other for a in plan.schema.attributes if a.other is not None}
    for k, (name, term) in enumerate(zip(plan.entries, plan.domain.terms, strict=True)):
        size = int(plan.queries[k])
        if size > MOST_ANSWERS or math.prod(sizes[i] for i, _ in term) > MOST_READ:
            continue
        is_cells, summed = all(base.is_identity for _, base in term), summed_in(term)
        title, notes = titles[k], list[str]()
        if summed is not None:
            over = persons_text(plan, names[summed])
            notes += [f"Means{over}."] * bool(over)
        numbers = summed_numbers(term) if summed is None else [summed]
        notes += [text for i in numbers for text in _notes(release, plan.schema.attributes[i])]
        anchor = f"table-{k + 1}"
        read = partial(_tables_of, release, term, anchor, files.get(name))
        found.append(Entry(name, title, anchor, size, is_cells, notes, read, others, plan.schema))
    return found


def titles_of(plan: "Plan") -> list[str]:
    """Return the title of each entry for readers: "Mean of …" where its name says count and sum."""
    named = zip(plan.entries, plan.domain.terms, strict=True)
    return [title_of(plan.schema, term, name) for name, term in named]


def title_of(schema: Schema, term: Sequence[tuple[int, AbstractBase]], name: str) -> str:
    """Return the title of an entry for readers; ``name`` is that of an entry without one."""
    said = [shown(attribute.heading) for attribute in schema.attributes]
    numbers = summed_numbers(term) if (own := summed_in(term)) is None else [own]
    groups = [said[i] for i, _ in term if i not in numbers]
    if all(base.is_identity for _, base in term):
        return marginal_name(tuple(groups))
    if own is not None:
        return mean_title(schema.attributes[own], groups)
    if numbers:
        by = f" by {marginal_name(tuple(groups))}" if groups else ""
        return f"Means of {' and '.join(said[i] for i in numbers)}{by}"
    return name


def _notes(release: AbstractRelease, number: Attribute) -> list[str]:
    """Return sentences on values moved into the interval, and on rows left out of the means."""
    notes = beyond_text(release.plan, number)
    if number.clip is not None:
        # what counts as the lower end counts as more than it is, and hides the way of the change
        way = "; if no value is below 0, it is higher" * (number.clip[0] == 0)
        notes.append(
            "Where values are changed so, the mean of the values as they are is another one, which "
            f"these tables do not tell{way}."
        )
    if number.other is not None or release.on_outside == "drop":
        rows = capital(release.noun.removeprefix("weighted "))
        notes.append(f"{rows} with {unknown_text(number)} are in no mean of it.")
    return notes


def mean_title(number: Attribute, groups: Sequence[str]) -> str:
    """Return the title of a table of a number's means by attributes, given their headings."""
    by = f" by {marginal_name(tuple(groups))}" if groups else ""
    capped = "" if number.clip is None else capped_in(number.clip)
    return f"Mean of {shown(number.heading)}{by}{capped}"


def capped_in(clip: tuple[float, float]) -> str:
    """Return the end of a title of means: what values beyond the ends of ``clip`` count as."""
    return f" ({capped_text(*clip)})"


def files_of(release: AbstractRelease) -> dict[str, str]:
    """Return {name of an entry: file with its numbers in the release's folder}.

    Counts of cells are in a table; sums, means and other answers are in a file of answers.
    """
    tables, plan = release.tables, release.plan
    if not isinstance(tables, StoredTables) or not tables.places:
        return {}
    places = tables.places
    format = format_name(next(iter(places.values())).file)
    answers = answer_files(release, format, MOST_READ)
    files = {k: file for k, file in answers.items() if (tables.folder / file).is_file()}
    for k, term in enumerate(plan.domain.terms):
        S = tuple(sorted({i for i, _ in term}))
        if all(base.is_identity for _, base in term) and S in places:
            files[k] = places[S].file
    return {plan.entries[k]: file for k, file in files.items()}


def _tables_of(
    release: AbstractRelease,
    term: Sequence[tuple[int, AbstractBase]],
    anchor: str,
    file: str | None,
) -> list[Numbers]:
    """Return an entry's tables: counts and shares, or means and sums of a number, or answers."""
    schema, summed, noun = release.plan.schema, summed_in(term), release.noun
    asked = {schema.names[i]: base for i, base in term}
    if all(base.is_identity for base in asked.values()):
        table = release[tuple(asked)]
        counts = Numbers(table, _title(table), anchor, kind="cells", file=file, noun=noun)
        return _counts(release, counts)
    if summed is None:
        answers = release.answers(asked)
        numbers = Numbers(answers, _title(answers), anchor, file=file, noun=noun)
        several = summed_numbers(term)
        if not several:
            return [numbers]
        # these answers include sums of products, for which most readers have no use
        own = [replace(numbers, heading=True, kind="behind", anchor=f"{anchor}-products")]
        for number in several:
            part = [(i, base) for i, base in term if i == number or i not in several]
            first, *rest = _tables_of(release, part, f"{anchor}-{number}", None)
            own += [replace(first, heading=True), *rest]
        return [*own[1:], own[0]]
    own, groups = schema.names[summed], tuple(schema.names[i] for i, _ in term if i != summed)
    axis, base = [i for i, _ in term].index(summed), asked[own]
    heads = [shown(schema.heading(name)) for name in groups]
    by = f" by {marginal_name(tuple(heads))}" if groups else ""
    head = shown(schema.heading(own))
    named = f"{head}{by}"

    def moment(degree: int, about: float = 0.0) -> AbstractEstimates:
        query = {"kind": "moments", "degrees": [degree], "about": about}
        return release.answers(asked | {own: query})

    counts = moment(0)
    with_number = counts.part(axis, 0)  # the other statistics have no such counts
    if counts.estimate.shape[axis] == 1:
        counts = with_number  # a single statistic, which the title names
    own_means, own_sums = means(release, own, groups), sums(release, own, groups)
    numbers = partial(Numbers, heading=True, noun=noun)
    behind = partial(numbers, kind="behind", file=file)
    squares = []
    if isinstance(base, Clipped) and 2 in base.degrees:
        less = f" less {base.about:.15g}" if base.about else ""
        title = f"Sum of squares of {head}{less}{by}{persons_text(release.plan, own)}"
        squares = [behind(moment(2, base.about).part(axis, 0), title, f"{anchor}-squares")]
    gaps = [
        numbers(table, title, f"{anchor}-gap-{k}", kind=kind)
        for k, (table, title, kind) in enumerate(_gaps(release, own, groups))
    ]
    title, over = mean_title(schema.attributes[summed], heads), persons_text(release.plan, own)
    return [
        Numbers(
            own_means,
            title,
            anchor,
            kind="mean",
            margin=partial(means, release, own),
            beside=with_number,
            noun=noun,
        ),
        *gaps,
        behind(own_sums, f"Sum of {named}{over}", f"{anchor}-sum"),
        behind(counts, f"Counts of {noun} with a number in {named}", f"{anchor}-count"),
        *squares,
    ]


def _gaps(
    release: AbstractRelease, own: str, groups: tuple[str, ...]
) -> Iterator[tuple[AbstractEstimates, str, Literal["mean", "changes"]]]:
    """Yield (table, title, kind): means by attributes with two categories, their differences."""
    schema = release.plan.schema
    heading, number = schema.heading, schema.attributes[schema.names.index(own)]
    for name in groups:
        rest = tuple(other for other in groups if other != name)
        pair = means(release, own, (name, *rest))
        if pair.estimate.shape[0] != 2:
            continue
        head, (first, second) = shown(heading(own)), pair.labels[0]
        less = f"Mean of {head}: {shown(first, _MOST_HEAD)} less {shown(second, _MOST_HEAD)}"
        if rest:
            alone = means(release, own, (name,))
            yield alone, mean_title(number, [shown(heading(name))]), "mean"
            yield alone.difference(name, first, second), less, "changes"
            less += f" by {marginal_name(tuple(shown(heading(one)) for one in rest))}"
        yield pair.difference(name, first, second), less, "changes"


def _counts(release: AbstractRelease, counts: Numbers) -> list[Numbers]:
    """Return the tables of counts with totals, and the shares of all rows and of each group."""
    own, shape = counts.table.attributes, counts.table.estimate.shape
    if math.prod(shape) == 1:
        return [counts]
    if len(own) == 1:
        beside = proportions(release, own[0])
        return [replace(counts, margin=release.__getitem__, beside=beside)]
    if len(own) > 2 or not counts.is_crossed:
        return [replace(counts, margin=release.__getitem__)]
    across = int(shape[0] >= shape[1])
    shares: dict[str, ProportionTable] = {}
    for given in (own[1 - across], own[across]):  # groups in rows, then those in columns
        head = shown(release.plan.schema.heading(given), _MOST_NAME)
        shares[f"Per cent of each {head}"] = proportions(release, own, given=given)
    if math.prod(shape) <= MOST_ROWS:  # shares of many cells are small, and of little use
        shares[f"Per cent of all {counts.noun}"] = proportions(release, own)
    return [
        replace(counts, margin=release.__getitem__),
        *(replace(counts, table=t, title=title, kind="share") for title, t in shares.items()),
    ]


def lines_of(cells: Sequence[Cell], aside: Sequence[bool] = ()) -> list[Row]:
    """Return the lines of a picture of these cells, one for each cell.

    Headings before them have the labels of all axes but the last.
    """
    rows: list[Row] = []
    last: list[str] = []
    for cell, apart in zip(cells, aside or [False] * len(cells), strict=True):
        *group, name = map(str, cell.names)
        if group and group != last:
            rows.append(Row(" · ".join(group)))
            last = group
        rows.append(Row(name, cell.estimate, cell.low, cell.high, apart))
    return rows


def cells_of(
    table: AbstractEstimates, places: Iterable[int], interval: ConfidenceInterval | None = None
) -> list[Cell]:
    """Return some cells of a table, by their indices in C order, with their intervals.

    If ``interval`` is not given, each interval alone has the level of this library.

    Shares are given in per cent.
    """
    ends = interval or table.confidence_interval()
    unit = 100.0 if isinstance(table, ProportionTable) else 1.0
    parts = [unit * np.ravel(x) for x in (table.estimate, *ends, table.standard_deviation)]
    marks = np.ravel(marks_of(table.estimate, table.standard_deviation))
    found = []
    for k in places:
        where = np.unravel_index(k, table.estimate.shape) if table.estimate.shape else ()
        names = (labels[i] for labels, i in zip(table.labels, where, strict=True))
        estimate, low, high, deviation = (float(part[k]) for part in parts)
        found.append(Cell(tuple(names), estimate, low, high, deviation, str(marks[k])))
    return found


def extremes_of(entries: Sequence[Entry]) -> Extremes:
    """Return the largest and smallest cell of every table of counts.

    Intervals are simultaneous, since these cells are selected by their estimates.
    """
    rows, cells, left = [], 0, 0
    for entry in entries:
        if not entry.is_cells or entry.size < 2:
            continue
        cells += entry.size
        if len(rows) >= _MOST_COMPARED or cells > _MOST_CELLS:
            left += 1
            continue
        rows.append(_extreme(entry.parts[0]))
    return Extremes(rows, left)


def _extreme(numbers: Numbers) -> Extreme:
    table = numbers.table
    interval = table.confidence_interval(simultaneous=True)
    low, high = map(np.ravel, interval)
    order = _order(table.estimate)
    ends = [int(order[0]), int(order[-1])]
    largest, smallest = numbers.named(cells_of(table, ends, interval))
    return Extreme(
        _title(table),
        table.attributes,
        largest,
        int((high >= largest.low).sum()) - 1,
        smallest,
        int((low <= smallest.high).sum()) - 1,
        int(((low <= 0) & (high >= 0)).sum()),
        table.estimate.size,
    )


def _title(table: AbstractEstimates) -> str:
    heads = tuple(shown(name, _MOST_NAME) for name in table.headings)
    if isinstance(table, MeanTable) and table.forms is not None:
        schema = table.forms.release.plan.schema
        return mean_title(schema.attributes[schema.names.index(table.name)], heads)
    return marginal_name(heads)


def listed_in(table: AbstractEstimates, others: Mapping[str, str]) -> NDArray[np.bool_]:
    """Return where groups have no catch-all; True everywhere if only one group or none has none."""
    found = np.ones(table.estimate.shape, bool)
    for axis, (name, labels) in enumerate(zip(table.attributes, table.labels, strict=True)):
        own = np.array([str(label) != others.get(name) for label in labels])
        found &= np.expand_dims(own, [k for k in range(found.ndim) if k != axis])
    return found if found.sum() > 1 else np.ones_like(found)


def _order(estimate: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return flat indices of cells, the largest first; cells of NaN are in the middle."""
    order, known = np.argsort(-estimate.ravel(), kind="stable"), np.isfinite(estimate).sum()
    return np.concatenate([order[: -(-known // 2)], order[known:], order[-(-known // 2) : known]])
