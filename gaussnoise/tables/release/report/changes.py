"""The page of changes from one release to another."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ....text import versions
from ...planning.facts import marginal_name, relation_text
from ...schema.entries import Entry as Asked
from ...schema.schema import Schema
from ..changes import (
    LEFT_OUT,
    TOGETHER,
    Change,
    ShownChanges,
    about_both,
    cost_text,
    left_out,
    notes_text,
    percent,
    percent_ends,
    population_of_changes,
    release_name,
    shown_changes,
    signed,
    title_of,
)
from ..noisy import AbstractRelease
from ..tidy import LEVEL, level_text
from .charts import Picture
from .checked import check_of, folder_of
from .numbers import MOST_ANSWERS, Numbers, cells_of
from .order import reading_places
from .pages import MOST_MEANS, save_page, stored_facts, summed_privacy
from .render import rendered

if TYPE_CHECKING:
    from ..difference import Changes

_MOST_IN_FULL = 12  # most tables with all their numbers
_MOST_LISTED = 100  # most tables that are listed by name
_MOST_ROWS = 60  # most rows of a table that is written completely
_ENDS = 10  # rows of largest and of smallest changes, for a longer table


@final
@dataclass(frozen=True)
class _Section:
    """A section of the page, with one table of changes."""

    one: ShownChanges
    anchor: str
    schema: Schema

    @property
    def size(self) -> int:
        """The number of changes."""
        return self.one.table.estimate.size

    @property
    def picture(self) -> Picture | None:
        """A picture of the changes with their intervals; None if there is a single change."""
        one = self.one
        numbers = Numbers(one.table, one.heading, self.anchor, kind="changes", schema=self.schema)
        return next(iter(numbers.pictures), None) if self.size > 1 else None

    @property
    def hidden(self) -> int:
        """The number of rows that are left out in the middle of a long table."""
        return self.size - 2 * _ENDS if self.size > _MOST_ROWS else 0

    @property
    def rows(self) -> list[tuple[Change, str, int]]:
        """Rows of the table: a change, the same as text, and its number of decimals."""
        order = np.array(reading_places(self.one.table, self.schema))
        if self.hidden:
            order = np.argsort(-np.nan_to_num(self.one.table.estimate.ravel()), kind="stable")
            order = np.concatenate([order[:_ENDS], order[-_ENDS:]])
        return [
            (
                Change(*(cell._replace(mark="") for cell in own)),
                signed(own.change.estimate, digits),
                digits,
            )
            for own in self.one.cells(order.tolist())
            for digits in [self.one.digits(own.change.deviation)]
        ]


def _sections(found: list[ShownChanges], anchor: str, schema: Schema) -> list[_Section]:
    """Return the sections of the first tables of changes."""
    shown = enumerate(found[:_MOST_IN_FULL], 1)
    return [_Section(one, f"{anchor}-{k}", schema) for k, one in shown]


def save_changes_report(
    changes: "Changes", path: str | os.PathLike[str], title: str | None, of: Sequence[Asked]
) -> None:
    """Write a page about the changes from one release to another, to a new HTML file."""
    both = [changes.before, changes.after]
    save_page(lambda: changes_page(changes, title, of), path, title, both)


def changes_page(changes: "Changes", title: str | None = None, of: Sequence[Asked] = ()) -> str:
    """Return a page in HTML about the changes from one release to another.

    The page has findings, tables with intervals, and facts about both releases.

    The page is the same for the same releases. Only its released estimates depend on data.
    """
    found = [one for one in shown_changes(changes, of) if one.table.estimate.size <= MOST_ANSWERS]
    plan = changes.before.plan
    # sums are for specialists if means are shown, unless tables were asked for
    behind = [] if of else [one for one in found if one.statistic == "sum"]
    found = [one for one in found if one not in behind]
    missing = {} if of else left_out(changes)
    means = population_of_changes(changes, of)
    both = {"releases/before/": changes.before, "releases/after/": changes.after}
    folders = {place: folder_of(release) for place, release in both.items()}
    check = check_of(folders) if changes.private else None
    page = rendered(
        "changes.html",
        facts=None,
        check=check,
        plan=plan,
        is_exact=False,
        noun=changes.after.noun,
        marginal_name=marginal_name,
        **summed_privacy(plan, changes.rho_charged if changes.private else None),
        about=about_both(changes).stated,
        title=title or title_of(changes),
        private=changes.private,
        sections=[
            ("changed", "What changed"),
            ("changes_tables", "The tables of changes"),
            ("both", "Both releases"),
            ("privacy", "How persons are protected"),
            ("specialists", "For specialists"),
        ],
        findings=found,
        together=TOGETHER,
        left_out=LEFT_OUT,
        notes=notes_text(changes, found),
        percent=percent,
        percent_ends=percent_ends,
        means=means if means is None or len(means.changes) <= MOST_MEANS else None,
        missing=list(missing.items())[:_MOST_LISTED],
        more_missing=max(0, len(missing) - _MOST_LISTED),
        shown=_sections(found, "table", plan.schema),
        sums=_sections(behind, "sum", plan.schema),
        left=max(0, len(found) - _MOST_IN_FULL),
        both=[
            _release_facts("Before", changes.before),
            _release_facts("After", changes.after),
        ],
        spent="spent_both",
        cost=cost_text(changes),
        level=level_text(LEVEL),
        version=versions("gaussnoise")["gaussnoise"],
    )
    return page if check is None else check.held(page)


def _release_facts(when: str, release: AbstractRelease) -> dict[str, object]:
    """Return the facts about the earlier or later release (``when``), for the page's template."""
    plan, (total,) = release.plan, cells_of(release[()], [0])
    return {
        "when": when,
        "name": release_name(release),
        "about": plan.about.stated,
        "counted": release.noun,
        "total": total._replace(mark=""),  # marks are not explained here
        "rho": f"{release.rho_charged:.6g}" if release.private else "none: a simulation",
        "protected": relation_text(plan),
        "stored": stored_facts(release),
    }
