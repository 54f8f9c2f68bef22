"""Changes from one release to another: differences and ratios with intervals."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from ...errors import ParameterError
from ...files.pickling import PickledByArguments
from ...numerics.intervals import Contrast, Contrasts
from ...numerics.rounding import rounded_up
from ...text import number_of
from ..schema.entries import Entry
from .changes import check_shown
from .changes_files import save_changes
from .combine import check_together, differing
from .comparison import ComparisonTable, compared
from .contrasts import Weights
from .noisy import Names
from .release import TableRelease
from .report.changes import save_changes_report
from .store import FileFormat
from .table import AbstractEstimates

# what a budget protects: where it differs, costs do not add up, but numbers can be compared
_PROTECTED = (
    "neighbouring relation",
    "number of rows per person",
    "column of persons",
    "set of public attributes",
)


def difference(before: TableRelease, after: TableRelease) -> "Changes":
    """Return what changed from one release to another, such as January's and June's.

    Formal guarantees:
        * Differences of counts and sums are unbiased, and their standard deviations exact, whether
          the rows of both releases are the same or not: the noises are independent. So variances
          add up.
        * Comparing them costs no further privacy. A person whose rows are in both releases has
          spent the sum of both budgets (``rho_charged``), if both protect the same thing.

    Args:
        before: the earlier release.
        after: the later one. Attributes of one name must have the same categories, edges or
            interval, and rows the same weight and record of a person; all else may differ: the
            planned tables, the order of attributes, the budget, the neighbouring relation.

    Returns:
        :class:`Changes`: ``changes["sex", "age"]`` is a table of differences, later less earlier,
        with intervals; so are ``proportions``, ``means``, ``sums``, ``answers`` and ``cdf``.

    Raises:
        ParameterError: the same release twice, tables of a stream, or attributes, weights, or
            records of persons (``per_person``) that differ.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("smoker", [True, False])])
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "smoker": [True, False, False] * 400})
    >>> plan = gn.plan(schema, 2, gn.zCDP(0.1))
    >>> january, june = plan.release(people), plan.release(people.slice(300))
    >>> changes = gn.difference(january, june)
    >>> print(changes)
    Changes(2 attributes, rho charged 0.2)
    >>> low, high = changes["sex"].confidence_interval(0.999999)
    >>> ((low < [-200, -100]) & ([-200, -100] < high)).tolist()
    [True, True]
    >>> fewer = changes["sex"].relative()  # about -0.25: a quarter less
    """
    both = before, after
    for release in both:
        if not isinstance(release, TableRelease):
            raise ParameterError(
                f"difference: expected two releases, got {type(release).__name__}; hint: "
                "difference(january, june)"
            )
    check_together("difference", both, _PROTECTED)
    if not set(before.plan.schema.names) & set(after.plan.schema.names):
        raise ParameterError("difference: expected an attribute that both releases have, got none")
    return Changes(before, after)


@final
@dataclass(frozen=True, eq=False)
class Changes(PickledByArguments):
    """Changes from one release to another. All of it is safe to publish if both are.

    ``changes["sex", "age"]`` is a :class:`ComparisonTable` of differences: later less earlier. Its
    ``as_ratio()`` is later over earlier, its ``relative()`` the relative change; its
    ``difference``, ``ratio`` and ``contrast`` compare changes of several groups. Iteration yields
    the tables that both releases have.

    Attributes:
        before: the earlier release.
        after: the later release.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 5000])])
    >>> january = pa.table({"sex": ["F", "M"] * 5000, "pay": [2000.0, 3000.0] * 5000})
    >>> june = pa.table({"sex": ["F", "M"] * 5000, "pay": [2500.0, 3000.0] * 5000})
    >>> plan = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.5))
    >>> changes = gn.difference(plan.release(january), plan.release(june))
    >>> risen = changes.means("pay", given="sex")
    >>> low, high = risen.confidence_interval(0.999999)
    >>> ((low < [500, 0]) & ([500, 0] < high)).tolist()
    [True, True]
    >>> gap = risen.difference("sex", "M", "F")  # of M's and F's changes: about -500
    """

    before: TableRelease
    after: TableRelease

    @property
    def private(self) -> bool:
        """False if one of the releases is a simulation, whose numbers must not be published."""
        return self.before.private and self.after.private

    @property
    def rho_charged(self) -> float | None:
        """The cost of both releases together, for a person whose rows are in both.

        None if they protect different things, so that their costs do not add up.
        """
        if differing([self.before, self.after]):
            return None
        costs = self.before.rho_charged, self.after.rho_charged
        return rounded_up(sum(map(Fraction, costs), Fraction(0)))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        later = [set(names) for names in self.after]
        return (names for names in self.before if any(set(names) <= other for other in later))

    def __getitem__(self, names: Names) -> ComparisonTable:
        return _change(self.before[names], self.after[names])

    def answers(self, entry: Entry) -> ComparisonTable:
        """Return changes of answers, as :meth:`TableRelease.answers` gives them."""
        return _change(self.before.answers(entry), self.after.answers(entry))

    def sums(self, name: str, given: Names = ()) -> ComparisonTable:
        """Return changes of sums of a clipped number within groups."""
        return _change(self.before.sums(name, given), self.after.sums(name, given))

    def means(self, name: str, given: Names = ()) -> ComparisonTable:
        """Return changes of means of a clipped number within groups."""
        return _change(self.before.means(name, given), self.after.means(name, given))

    def proportions(self, names: Entry, given: Entry = ()) -> ComparisonTable:
        """Return changes of shares: counts divided by the counts of their groups."""
        return _change(self.before.proportions(names, given), self.after.proportions(names, given))

    def cdf(self, name: str, given: Names = ()) -> ComparisonTable:
        """Return changes of cumulative shares of an attribute within groups."""
        return _change(self.before.cdf(name, given), self.after.cdf(name, given))

    def contrast(self, weights: "Weights") -> Contrast:
        """Return the change of a linear combination of cells, with its exact deviation.

        Args:
            weights: as for :meth:`TableRelease.contrast`.
        """
        earlier, later = self.before.contrast(weights), self.after.contrast(weights)
        return Contrast(
            later.estimate - earlier.estimate,
            float(np.hypot(later.standard_deviation, earlier.standard_deviation)),
        )

    def contrasts(self, combinations: "Sequence[Weights]") -> Contrasts:
        """Return changes of several linear combinations of cells, with their exact covariance."""
        earlier = self.before.contrasts(combinations)
        later = self.after.contrasts(combinations)
        return Contrasts(later.estimate - earlier.estimate, later.covariance + earlier.covariance)

    def save(
        self,
        directory: str | os.PathLike[str],
        format: FileFormat = "csv",
        *,
        of: Sequence[Entry] = (),
        title: str | None = None,
    ) -> None:
        """Write tables of changes, and a page, to a new directory.

        ``changes/`` holds one tidy file for each table, later less earlier, ``relative/`` one with
        the changes divided by the earlier numbers, both with intervals, or one workbook has all.
        ``report.html`` is the page of :meth:`report`; ``summary.txt``, ``method.txt``, ``ddi.xml``
        and ``changes.png`` describe them, and ``changes.json`` lists the files.

        Args:
            directory: a new directory, which appears only when it is complete.
            format: of the files, as in :meth:`TableRelease.save`.
            of: the tables, like ``[("sex", "age")]``; if left out, the number of rows and all that
                one of the releases was asked for and both can answer. A table with a clipped number
                has its means and sums.
            title: the heading of the page.

        Raises:
            OutputError: the directory exists, or its parent cannot be written.
            ParameterError: unknown attributes, a table that a release does not have, or a format
                that cannot hold the tables.
        """
        check_shown(of)
        save_changes(self, directory, format, of, title)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        of: Sequence[Entry] = (),
    ) -> None:
        """Write one HTML page about the changes: findings, tables and pictures with intervals.

        Args:
            path: a new file, like ``changes.html``; not in the folder of a release.
            title: the heading of the page.
            of: the tables, as in :meth:`save`.

        Raises:
            OutputError: the file exists, cannot be written, or would be among released files.
            ParameterError: the title is not a text, or as :meth:`save`.
        """
        check_shown(of)
        save_changes_report(self, path, title, of)

    def __repr__(self) -> str:
        warning = "" if self.private else "NOT PRIVATE, a simulation: "
        names = set(self.before.plan.schema.names) & set(self.after.plan.schema.names)
        cost = self.rho_charged
        charged = "costs that do not add up" if cost is None else f"rho charged {cost:.6g}"
        return f"Changes({warning}{number_of(len(names), 'attribute')}, {charged})"


def _change(before: AbstractEstimates, after: AbstractEstimates) -> ComparisonTable:
    """Return later cells less earlier ones, whose noises are independent."""
    zeros = np.broadcast_to(0.0, after.estimate.shape)
    return compared("difference", ("after", "before"), after, before, zeros)
