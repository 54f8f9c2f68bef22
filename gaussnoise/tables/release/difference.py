"""Changes from one release to another: differences and ratios with intervals."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from ...errors import ParameterError
from ...files.pickling import PickledByArguments
from ...numerics.intervals import Contrast, Contrasts
from ...numerics.rounding import rounded_up
from ...text import number_of
from ..planning.facts import protected
from ..schema.entries import Entry, entry_term
from .alike import left_out_unlike, unlike
from .changes import check_shown
from .changes_files import save_changes
from .combine import check_together
from .comparison import ComparisonTable, compared
from .contrasts import Weights
from .noisy import Names
from .release import TableRelease
from .report.changes import save_changes_report
from .store import FileFormat
from .table import AbstractEstimates

# properties of the budget's unit: if they differ, costs do not add up, but numbers can be compared
_PROTECTED = (
    "neighbouring relation",
    "number of rows per person",
    "column of persons",
    "set of public attributes",
)


def difference(
    before: TableRelease, after: TableRelease, *, all_rows_fit: bool = False
) -> "Changes":
    """Return the changes from one release to another, such as from January's to June's.

    Formal guarantees:
        * Differences of counts and sums are unbiased, and their standard deviations are exact. This
          holds whether the rows of both releases are the same or not: the noises are independent,
          so their variances add up.
        * Comparing releases costs no further privacy. If both releases protect the same thing, a
          person whose rows are in both has spent the sum of both budgets (``rho_charged``).

    Args:
        before: the earlier release.
        after: the later release. The weight of rows, the record of a person, and the number of rows
            counted per person must be the same as in ``before``. All else may differ: the planned
            tables, the order of attributes, the budget, the neighbouring relation. If the
            categories, edges or interval of an attribute differ, tables without this attribute are
            compared.
        all_rows_fit: whether to assume that every row has valid values. This is needed if only one
            of the releases leaves out the rows without a valid value in some attribute. Their
            tables then count different rows, and are refused without this assumption. With a
            catch-all, ``other``, or with ``on_outside="refuse"``, a release leaves no row out.

    Returns:
        :class:`Changes`: ``changes["sex", "age"]`` is a table of differences, later minus earlier,
        with intervals; so are ``proportions``, ``means``, ``sums``, ``answers`` and ``cdf``.

    Raises:
        ParameterError: the same release twice, tables of a stream, no attribute in common; or
            different weights, records of persons (``per_person``), numbers of counted rows of a
            person, or rules on the rows that are left out.

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
    changes = Changes(before, after)
    if changes.left_out_by and not all_rows_fit:
        names = ", ".join(map(repr, changes.left_out_by))
        raise ParameterError(
            "difference: expected releases whose tables count the same rows, got one that leaves "
            f"out rows by a rule of its own: those without a value of the schema in {names:.400}; "
            "hint: all_rows_fit=True if every row had one; next time a catch-all, "
            "other, in the schema"
        )
    return changes


@final
@dataclass(frozen=True, eq=False)
class Changes(PickledByArguments):
    """Changes from one release to another, safe to publish if both releases are.

    ``changes["sex", "age"]`` is a :class:`ComparisonTable` of differences: later minus earlier. The
    table's ``as_ratio()`` divides later by earlier; ``relative()`` is the relative change. The
    table's methods ``difference``, ``ratio`` and ``contrast`` compare changes of several groups.
    Iteration yields the tables that both releases have.

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
        """The cost ρ of both releases together, for a person whose rows are in both.

        The cost is None if the releases protect different things: their costs then do not add up.
        """
        if protected(self.before.plan) != protected(self.after.plan):
            return None
        costs = self.before.rho_charged, self.after.rho_charged
        return rounded_up(sum(map(Fraction, costs), Fraction(0)))

    @cached_property
    def unlike(self) -> Mapping[str, str]:
        """The attributes that differ between the two releases, as {name: how they differ}.

        A level (a coarser grouping of categories) that differs is named too.
        """
        later = {attribute.name: attribute for attribute in self.after.plan.schema.attributes}
        both = [(a, later[a.name]) for a in self.before.plan.schema.attributes if a.name in later]
        return {name: how for a, b in both for name, how in unlike(a, b).items()}

    @cached_property
    def left_out_by(self) -> Sequence[str]:
        """The attributes and rules for which only one of the two releases leaves out rows.

        If there are any, it was assumed that all rows have valid values: see :func:`difference`.
        """
        return left_out_unlike(self.before, self.after)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        later = [set(names) for names in self.after]
        return (
            names
            for names in self.before
            if any(set(names) <= other for other in later) and not set(names) & set(self.unlike)
        )

    def __getitem__(self, names: Names) -> ComparisonTable:
        self._check(names)
        return self._change(self.before[names], self.after[names])

    def _change(self, before: AbstractEstimates, after: AbstractEstimates) -> ComparisonTable:
        """Return the change of each cell, later minus earlier."""
        # the noises of both releases are independent, so the covariance of both numbers is zero
        zeros = np.broadcast_to(0.0, after.estimate.shape)
        others = {
            a.name: a.other for a in self.before.plan.schema.attributes if a.other is not None
        }
        return compared("difference", ("after", "before"), after, before, zeros, others)

    def _check(self, *asked: object) -> None:
        """Raise ParameterError if a request names an attribute that differs between releases."""
        for name, how in self.unlike.items():
            if any(_mentions(one, name) for one in asked):
                raise ParameterError(
                    f"difference: expected attributes that count the same in both releases, got "
                    f"{name!r}, which {how}; hint: tables without it can be compared"
                )

    def _with_queries(self, entry: Entry) -> Entry:
        """Return {attribute: queries} of an entry, so that both releases answer the same ones."""
        self._check(entry)
        schema = self.before.plan.schema
        return {schema.names[i]: base for i, base in entry_term(schema, entry).items()}

    def answers(self, entry: Entry) -> ComparisonTable:
        """Return a table of changes in the answers to one workload entry."""
        asked = self._with_queries(entry)
        return self._change(self.before.answers(asked), self.after.answers(asked))

    def sums(self, name: str, given: Names = ()) -> ComparisonTable:
        """Return a table of changes in the sums of the number ``name``, in groups ``given``."""
        self._check(name, given)
        return self._change(self.before.sums(name, given), self.after.sums(name, given))

    def means(self, name: str, given: Names = ()) -> ComparisonTable:
        """Return a table of changes in the means of the number ``name``, in groups ``given``."""
        self._check(name, given)
        return self._change(self.before.means(name, given), self.after.means(name, given))

    def proportions(self, names: Entry, given: Entry = ()) -> ComparisonTable:
        """Return a table of changes in shares: counts divided by the counts of their groups."""
        self._check(names, given)
        return self._change(
            self.before.proportions(names, given), self.after.proportions(names, given)
        )

    def cdf(self, name: str, given: Names = ()) -> ComparisonTable:
        """Return a table of changes in the cumulative shares of an attribute, within groups."""
        self._check(name, given)
        return self._change(self.before.cdf(name, given), self.after.cdf(name, given))

    def contrast(self, weights: "Weights") -> Contrast:
        """Return the change of a linear combination of cells, with its exact standard deviation.

        Args:
            weights: {attribute names: array of the weights of all cells of their table}.
        """
        self._check(weights)
        earlier, later = self.before.contrast(weights), self.after.contrast(weights)
        return Contrast(
            later.estimate - earlier.estimate,
            float(np.hypot(later.standard_deviation, earlier.standard_deviation)),
        )

    def contrasts(self, combinations: "Sequence[Weights]") -> Contrasts:
        """Return changes of several linear combinations of cells, with their exact covariance."""
        self._check(combinations)
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

        ``changes/`` holds one tidy file for each table, or one workbook for all. Each row has the
        number before, the number after, the change, and the change in per cent of the number
        before, each with its interval. In a format with one estimate per cell, each of these has a
        file of its own, in ``before/``, ``after/``, ``changes/`` and ``relative/``; the relative
        change is then a fraction.
        ``report.html`` is the page of :meth:`report`; ``summary.txt``, ``method.txt``, ``ddi.xml``
        and ``changes.png`` describe the tables, and ``changes.json`` lists the files.

        Args:
            directory: a new directory, which appears only when it is complete.
            format: the format of the files, as in :meth:`TableRelease.save`.
            of: the tables, like ``[("sex", "age")]``; if left out, the number of rows, and every
                table that was requested for one of the releases and that both can answer. If a
                table has a clipped number, its means and sums are written.
            title: the heading of the page.

        Raises:
            OutputError: the directory exists, or its parent cannot be written.
            ParameterError: unknown attributes, a table that a release does not have, or a format
                that cannot hold the tables.
        """
        check_shown(of)
        save_changes(self, directory, format, of, title)

    def report(
        self, path: str | os.PathLike[str], *, title: str | None = None, of: Sequence[Entry] = ()
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


def _mentions(asked: object, name: str) -> bool:
    """Return whether ``name`` occurs in a request, also inside of lists, tuples and mappings."""
    if isinstance(asked, str):
        return asked == name
    if isinstance(asked, Mapping):
        return any(_mentions(x, name) for x in (*asked, *asked.values()))
    return isinstance(asked, list | tuple) and any(_mentions(x, name) for x in asked)
