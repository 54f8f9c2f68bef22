"""The plan of a release, and what can be done with it."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ...errors import not_a_generator
from ...privacy.definitions import dp_event
from ...privacy.ledger import Ledger
from ...privacy.sampler import sampling_threads
from ...solvers.progress import Counted
from ...solvers.tables.residuals import Subset, subsets_of
from ..schema.schema import OnOutside
from .accuracy import Accuracy
from .measure import Array

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

    from ..release.release import TableRelease
    from ..release.store import FileFormat

SECONDS_PER_INTEGER = 12e-6  # on one thread: a draw by OpenDP and its conversion
MOST_HERE = 2 * 10**8  # most integers, or cells, that one machine releases
_SECONDS_PER_CELL = 2e-6  # for exact integers, reconstruction and writing


@final
@dataclass(frozen=True, eq=False)
class Plan(Accuracy):
    """The plan of a release: a public document, computed without data.

    Attributes:
        schema: the public attributes.
        domain: the :class:`Marginals` of the workload, or the :class:`Products` if the plan asks
            for more than cells.
        noise: the certified optimal covariance at unit sensitivity. If persons are exchanged, it is
            for their rows; :attr:`bracket` is about all noise.
        privacy: the budget of the whole release, for one person.
        rows_per_person: the most rows that one person is assumed to have.
        targets: the target of every entry of the workload (None for an entry without one), or None.
        weight: the column of sample weights, or None if every row counts as one.
        person: the column that says which person a row belongs to, if at most ``rows_per_person``
            rows of each person are counted; None if rows are not limited, and their number per
            person is an assumption.

    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> plan = gn.plan(schema, 2, gn.zCDP(0.1))
    >>> print(f"{plan.standard_deviation('sex', 'age'):.2f} {plan.gap:.1e}")
    2.24 5.5e-12
    """

    @cached_property
    def _cells(self) -> Array:
        """The number of cells of every released table."""
        return np.array([float(self.tables.cells(S)) for S in self.tables.subsets])

    @property
    def seconds(self) -> float:
        """A rough estimate of the seconds that a release takes, besides counting."""
        return (
            self.integers * SECONDS_PER_INTEGER / sampling_threads()
            + float(self._cells.sum()) * _SECONDS_PER_CELL
        )

    @property
    def needs_executors(self) -> bool:
        """Whether a release is too large for one machine: ``release(…, executors=True)``."""
        return max(self.integers, self.tables.dim) > MOST_HERE

    @property
    def core_hours(self) -> dict[tuple[str, ...], float]:
        """A rough estimate of the core hours of executors for each table, besides counting.

        The keys are attribute names. Noise that several tables share is counted for the first of
        them.
        """
        drawn: set[Subset] = set()
        hours = {}
        for marginal, S in zip(self.marginals, self.tables.subsets, strict=True):
            new = {T for T in subsets_of(S) if T in self.query.multipliers} - drawn
            integers = sum(self.query.rows(T) for T in new)
            seconds = integers * SECONDS_PER_INTEGER + self.tables.cells(S) * _SECONDS_PER_CELL
            hours[marginal] = seconds / 3600
            drawn |= new
        return hours

    @property
    def peak_bytes(self) -> float:
        """A rough estimate of a release's memory in bytes, without files and the records."""
        from ..counting.count import PASS_CELLS

        cells = self._cells
        return float(8 * cells.sum() + 64 * cells.max() + 32 * min(cells.sum(), PASS_CELLS))

    def release(
        self,
        table: object,
        *,
        out: str | os.PathLike[str] | None = None,
        format: "FileFormat" = "csv",
        on_outside: OnOutside = "refuse",
        progress: bool | Counted | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        id: str | None = None,
        executors: bool = False,
    ) -> "TableRelease":
        """Count, add noise, reconstruct and return a release; spends the whole budget once.

        Formal guarantees:
            * ρ-zCDP for rows added, removed or replaced (see ``neighbors``), with ρ at most
              :attr:`rho`, as charged by OpenDP's map for one integer query of exactly known
              sensitivity. It holds for all rows of a person together, if no person has more than
              ``rows_per_person``. Planned with ``person``, it holds for any number of rows
              (:mod:`gaussnoise.tables.counting.persons`); a person is then a value of that column.
              Refusals depend on the data and are not covered, unless ``on_outside`` is "drop": then
              a row that does not fit is treated as if it were absent. Timing is not covered. Under
              replacement the number of rows is public and comes out exactly.
            * Every table is unbiased with the stated standard deviation, and tables agree on shared
              margins. Planned with ``person``, this holds for the rows that are counted: if persons
              have more rows, counts of all rows are larger, by an amount that is private.
            * All that a release says about itself is computed before its budget is charged: after
              that, it only counts, draws, decodes and writes.

        Args:
            table: a dataframe (anything narwhals reads); or the path of a CSV or Parquet file, a
                list of such paths, a pattern like ``data/*.csv``, all with the same columns; or a
                folder of Parquet, in which names of folders like ``year=2024`` are columns too. CSV
                is read in the schema's dialect, or in that of :meth:`Dialect.table`.
            out: a new directory for the files of :meth:`TableRelease.save`, which is checked before
                noise is drawn. Tables are written one at a time and read back when asked for, so
                that memory depends on the largest table alone.
            format: the format of those files, "csv" or "parquet".
            on_outside: what is done with a row that has a null, or a value outside the schema, in
                an attribute without a catch-all, or an impossible combination: "refuse" refuses the
                whole release; "drop" leaves out the row, so that it counts in no table. A refusal
                tells something about the rows, and a schema can be written to ask for it; with
                "drop" the outcome does not depend on a value. A table that is malformed as a whole
                is refused in both cases, with any schema: CSV with fields missing, quotes out of
                place or bytes that are no text, and a column whose declared type cannot hold the
                attribute. In pandas and dask, where types depend on rows, such values have no cell
                instead, and numbers from 2^53 on are no person. How many rows are dropped is
                private: give attributes a catch-all to count them with noise. Under replacement
                every attribute needs a catch-all, and no combination may be impossible, unless
                planned with ``person``: rows of no person are dropped then too, and no dropped row
                takes a place among a person's counted rows.
            progress: True for a bar of released cells, or a callable that is given their number and
                the total; False for silence. By default a bar is drawn after two seconds, on a
                terminal.
            ledger: a :class:`Ledger` or its path: the release is first charged to its budget, drawn
                once, and written to ``out``. Called again with the same arguments, the release is
                read from there, even if the first call was interrupted.
            id: the name of this release in the ledger.
            executors: for a Spark dataframe, whether its executors draw, decode and write as well,
                so that neither driver nor executor holds all tables. They need this package, and
                ``out`` on a file system that all of them share and that has hard links: a local
                disk for Spark on one machine, NFS or the like for several; object stores have no
                hard links. The dataframe must have the same rows each time Spark computes it. Every
                residual, or piece of a large one, is drawn once: the first task that finishes
                commits it, and tables are made of what was committed, even if tasks are tried
                again, run twice or are killed. Under a ledger, call it again after the driver was
                killed: it goes on, and is charged once. The format is "parquet": a dataset in
                ``out/tables`` with a folder for each number of attributes.

        Returns:
            A :class:`TableRelease`.

        Raises:
            DomainTooLargeError: too large for one machine, without ``executors``; with it, a
                table that cannot be cut into pieces of 2^26 numbers.
            DataError: the table breaks the schema; names column and rule, never a value.
            OutputError: ``out`` exists or cannot be written.
            ParameterError: more than 1000 marginals as CSV; a budget that cannot be drawn; ledger,
                id and out not together; "drop" under replacement without catch-alls.
            BudgetError: the ledger's budget does not allow it; nothing was drawn.
            LedgerError: another release under this id, or an unusable ledger.
            SchemaError: the schema is a draft, which no person has confirmed.
        """
        from ..release.publish import published  # imported here, since releases import plans

        return published(
            self,
            table,
            out=out,
            format=format,
            on_outside=on_outside,
            progress=progress,
            ledger=ledger,
            id=id,
            executors=executors,
        )

    def dp_event(self) -> "DpEvent":
        """Return the cost for ``dp-accounting``; see :func:`gaussnoise.privacy.dp_event`."""
        return dp_event(self.rho_charged)

    def simulate(
        self,
        table: object,
        rng: np.random.Generator,
        *,
        on_outside: OnOutside = "refuse",
        progress: bool | Counted | None = None,
    ) -> "TableRelease":
        """Return the same tables with floating-point noise from ``rng``: for studies, NOT private.

        Args:
            table: as in :meth:`release`.
            rng: a numpy Generator.
            on_outside: as in :meth:`release`.
            progress: as in :meth:`release`.

        Returns:
            A :class:`TableRelease`, which says that it is a simulation.

        Raises:
            ParameterError: ``rng`` is not a Generator.
            DataError: as :meth:`release`.
        """
        from ..release.publish import simulated

        if not isinstance(rng, np.random.Generator):
            raise not_a_generator(rng)
        scale = 0.0 if self.query.query is None else self.query.query.scale

        def draw(count: int) -> NDArray[np.int64]:
            return np.rint(rng.normal(scale=scale, size=count)).astype(np.int64)

        return simulated(self, table, draw, on_outside=on_outside, progress=progress)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write one HTML page that describes what would be released.

        It says what is asked for, how accurate it is, what it costs in privacy, and how close to
        optimal it is. It needs no data, no other file and no network.

        Args:
            path: a new file, like ``plan.html``.
            title: the heading of the page.

        Raises:
            OutputError: the file exists, or cannot be written.
            ParameterError: the title is no text.
            SchemaError: the schema is a draft, and the page would show its categories.
        """
        # imported here, since the page imports plans
        from ..release.report.pages import save_report

        self.schema.check_confirmed("report")
        save_report(self, path, title)

    def __str__(self) -> str:
        from .text import plan_text

        return plan_text(self)
