"""A plan, and what can be done with it."""

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

SECONDS_PER_INTEGER = 12e-6  # of one thread: OpenDP's draw and its conversion
MOST_HERE = 2 * 10**8  # integers, or cells, that one machine releases
_SECONDS_PER_CELL = 2e-6  # exact integers, reconstruction, writing


@final
@dataclass(frozen=True, eq=False)
class Plan(Accuracy):
    """What a release will look like: a public document, computed without data.

    Attributes:
        schema: the public attributes.
        domain: the :class:`Marginals` of the workload, or the :class:`Products` where more than
            cells is asked for.
        noise: the certified optimal covariance at unit sensitivity. Where persons are exchanged,
            it is for their rows; :attr:`bracket` is about all noise.
        privacy: the budget of the whole release, for one person.
        rows_per_person: the most rows that one person is taken to have.
        targets: what was asked of every entry of the workload (None where nothing was), or None.
        weight: the column of sample weights, or None where every row counts as one.
        person: the column that says whose row it is, where at most ``rows_per_person`` rows of each
            person are counted; None where nobody counts them, and their number is a promise.
    """

    @cached_property
    def _cells(self) -> Array:
        """Cells of every released table."""
        return np.array([float(self.tables.cells(S)) for S in self.tables.subsets])

    @property
    def seconds(self) -> float:
        """Roughly what a release takes, besides counting."""
        return (
            self.integers * SECONDS_PER_INTEGER / sampling_threads()
            + float(self._cells.sum()) * _SECONDS_PER_CELL
        )

    @property
    def needs_executors(self) -> bool:
        """Whether a release is more than one machine can do: ``release(…, executors=True)``."""
        return max(self.integers, self.tables.dim) > MOST_HERE

    @property
    def core_hours(self) -> dict[tuple[str, ...], float]:
        """Roughly how long each table takes one core of an executor, besides counting.

        By names of attributes.

        Noise that several tables share is with the first of them.
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
        """Roughly the memory of a release that is not written to files, besides the records'."""
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
        """Count, add noise, reconstruct: spends the whole budget once.

        Formal guarantees:
            * ρ-zCDP for rows added, removed or replaced (see ``neighbors``), ρ at most :attr:`rho`,
              as charged by OpenDP's map for one integer query of exactly known sensitivity; for a
              person's rows together, as long as nobody has more than ``rows_per_person``; planned
              with ``person``, however many they are (:mod:`gaussnoise.tables.counting.persons`),
              where a person is whoever has one value in that column. Refusals
              depend on the data and are not covered, unless ``on_outside`` is "drop": then a row
              that does not fit is as one that is not there. Timing is not covered. Under
              replacement the number of rows is public and comes out exactly.
            * Every table is unbiased with the stated standard deviation, and tables agree on shared
              margins. Planned with ``person``, they are so for the rows that are counted: where
              persons have more, counts of all rows are larger, by how much is private.
            * All that a release says about itself is computed before its budget is charged: after
              that, it only counts, draws, decodes and writes.

        Args:
            table: a dataframe (anything narwhals reads); or the path of a CSV or Parquet file, a
                list of such paths, a pattern like ``data/*.csv``, all with the same columns; or a
                folder of Parquet, in which names of folders like ``year=2024`` are columns too. CSV
                is read in the schema's dialect, or in that of :meth:`Dialect.table`.
            out: a new directory for the files of :meth:`TableRelease.save`; checked before noise is
                drawn. Tables are written one at a time and read back when asked for, so memory
                follows the largest of them.
            format: of those files, "csv" or "parquet".
            on_outside: what becomes of a row that has a null, or a value outside the schema, in an
                attribute without a catch-all, or an impossible combination: "refuse" the whole
                release, or "drop" the row, so that it counts in no table. Whether a release is
                refused tells something about its rows, and a schema can be made to ask for it; with
                "drop" no value decides. A table that is malformed as a whole is refused all the
                same, whatever the schema asks: CSV with fields missing, quotes out of place or
                bytes that are no text, and a column whose declared type cannot hold the attribute
                (in pandas and dask, where types depend on rows, values have no cell instead); and
                persons that pandas holds as floats from 2^53 on, which may be several.
                How many rows are dropped is private: give attributes a catch-all to count them with
                noise. Under replacement every attribute needs one, and nothing may be impossible,
                unless planned with ``person``: rows of nobody are dropped then too, and no dropped
                row takes a place among a person's.
            progress: True for a bar of released cells, or a callable that is given their number and
                the total; False for silence. By default a bar is drawn after two seconds, on a
                terminal.
            ledger: a :class:`Ledger` or its path: the release is charged to its budget first, drawn
                once, and written to ``out``; run again with the same arguments, it is read from
                there, whatever interrupted the first.
            id: what the ledger is to call this release.
            executors: for a Spark dataframe, whether its executors draw, decode and write as well,
                so that neither driver nor executor holds all tables. They need this package, and
                ``out`` on a file system that all of them share and that has hard links: a local
                disk for Spark on one machine, NFS or the like for several; object stores have
                none. The dataframe must have the same rows whenever Spark computes it again. Every
                residual, or piece of a large one, is drawn once: whoever is first commits it, and
                tables are made of what was committed, whichever tasks are tried again, run twice or
                are killed. Under a ledger, run it again after the driver was killed: it goes on,
                and is charged once. The format is "parquet": a dataset in ``out/tables``, a folder
                for each number of attributes.

        Returns:
            A :class:`TableRelease`.

        Raises:
            DomainTooLargeError: more than one machine can do, without ``executors``; with it, a
                table that cannot be cut into pieces of 2^26 numbers.
            DataError: the table breaks the schema; names column and rule, never a value.
            OutputError: ``out`` exists or cannot be written.
            ParameterError: more than 1000 marginals as CSV; a budget that cannot be drawn; ledger,
                id and out not together; "drop" under replacement without catch-alls.
            BudgetError: the ledger's budget does not allow it; nothing was drawn.
            LedgerError: another release under this id, or an unusable ledger.
            SchemaError: the schema is a draft, which no person has confirmed.
        """
        from ..release.publish import published  # a plan and what is done with it meet here

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
        """What a release costs, for ``dp-accounting``; see :func:`gaussnoise.privacy.dp_event`."""
        return dp_event(self.rho_charged)

    def simulate(
        self,
        table: object,
        rng: np.random.Generator,
        *,
        on_outside: OnOutside = "refuse",
        progress: bool | Counted | None = None,
    ) -> "TableRelease":
        """The same tables with floating-point noise from ``rng``: for studies, NOT private.

        Args:
            table: as in :meth:`release`.
            rng: a numpy Generator.
            on_outside: as in :meth:`release`.
            progress: as in :meth:`release`.

        Raises:
            ParameterError: not a Generator.
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
        """Write one HTML page that says what would be released.

        What is asked for, how accurate it is, what it costs in privacy, how close to
        optimal it is. It needs no data, no other file and no network.

        Args:
            path: a new file, like ``plan.html``.
            title: the heading of the page.

        Raises:
            OutputError: the file exists, or cannot be written.
            ParameterError: the title is no text.
            SchemaError: a draft, whose categories the page would show.
        """
        from ..release.report.pages import save_report  # a plan and its page meet here

        self.schema.check_confirmed("report")
        save_report(self, path, title)

    def __str__(self) -> str:
        from .text import plan_text

        return plan_text(self)
