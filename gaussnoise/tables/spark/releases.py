"""Releases by Spark's executors, in steps that can be repeated after any interruption."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, final

from ...errors import DataError, LedgerError, OutputError, ParameterError, exists_already
from ...files.disk import check_parent, held, publish, read_json, remove_at_once, sync
from ...privacy.ledger import Ledger
from ...privacy.protected import Protected
from ..counting.count import CHANGED
from ..planning.plan import Plan
from ..reading.declared import check_columns
from ..release.files import Document, rehearsed, write_record
from ..release.record import ASSUMED
from ..release.release import TableRelease
from ..release.store import StoredTables
from . import pieces, tasks
from .layout import Layout
from .matrix import Matrix
from .records import SparkRecords, check_spark, in_spark
from .run import TASK, Run, complete
from .work import Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FORMAT = "gaussnoise.executors/1"
_MOST_BYTES = 2**30  # most bytes of a record
_MEASURED = "measured"  # the private folder's list of the sha256 of all measurements


def check_executors(plan: Plan, table: object, out: object, format: str) -> "DataFrame":
    """Return the Spark dataframe, after checking that executors can make this release.

    Raises:
        ParameterError: ``table`` is no Spark dataframe, ``out`` is missing, the format is not
            Parquet, or the plan has only the total.
        DomainTooLargeError: a table is too large for a task and cannot be cut into pieces.
    """
    frame = check_spark(table)
    if out is None or format != "parquet":
        got = "no out=" if out is None else f"format={format!r}"
        raise ParameterError(
            f'release: executors=True expects out= and format="parquet", got {got}'
        )
    check_total("release", plan)
    _ = Layout.of(plan).matrices
    return frame


def check_total(function: str, plan: Plan) -> None:
    """Refuse a plan whose only table is the total number of rows.

    Raises:
        ParameterError: the plan has no table but the total.
    """
    if not any(plan.tables.subsets):
        raise ParameterError(
            f"{function}: expected a table of some attribute, got the total alone; hint: without "
            "executors=True"
        )


def released(
    blank: TableRelease,
    table: "DataFrame",
    out: str | os.PathLike[str],
    ledger: Ledger | str | os.PathLike[str] | None,
    id: str | None,
    request: Mapping[str, object],
    protects: Protected,
    *,
    columns: Sequence[str | None],
    verifier: bool,
) -> TableRelease:
    """Return the release of a plan by Spark's executors. First call :func:`check_executors`.

    Args:
        blank: the release with tables of zeros.
        table: a Spark dataframe.
        out: a new directory.
        ledger: the ledger to be charged, with an id; or None.
        id: the name of the release in the ledger.
        request: the plan and options, by which a ledger recognises a repeated call.
        protects: the unit that the budget protects; a ledger accepts only one kind.
        columns: the names of the columns to be read.
        verifier: whether the verifier is copied into the folder.
    """
    new = _Unfinished(blank, table, Path(os.path.abspath(out)), secrets.token_hex(8))
    document = rehearsed(blank, "parquet", new.layout.most, verifier=verifier)
    Work.clear(new.out)
    if ledger is None or id is None:
        check_parent(new.out, "save")
        new.check_file_system()
        with closing(new):
            try:
                new.begin()
                return new.complete(document)
            except BaseException:  # without a ledger it is not continued; no person saw its noise
                remove_at_once(new.work.folder)
                raise
    ledger = Ledger.of(ledger)
    charge = json.dumps([os.path.realpath(ledger.path), id])
    new = replace(new, charge=hashlib.sha256(charge.encode()).hexdigest())
    if not any(entry.id == id and entry.state == "sealed" for entry in ledger.entries()):
        check_parent(new.out, "save")
    new.check_file_system()
    with closing(new):
        token = ledger.once(
            id,
            cost=blank.rho_charged,
            request=request,
            protects=protects,
            target=None,
            write=new.write_start,
            read=new.read_start,
            draws=blank.plan.query.count,
            privacy=blank.plan.privacy,
            ready=lambda: check_columns(table, columns),
        )
        if token == new.token:
            return new.complete(document)
    with closing(replace(new, token=token)) as begun:
        begun.enter()
        return begun.complete(document, id)


@final
@dataclass(frozen=True, eq=False)
class _Unfinished:
    """A release that is not complete; this program or an earlier one may have begun its work."""

    blank: TableRelease  # the release with tables of zeros
    table: "DataFrame"
    out: Path  # the directory of the release
    token: str  # random text that distinguishes this run from others with the same out
    charge: str | None = None  # hash of the ledger's path and the id; None without a ledger
    _alone: ExitStack = field(init=False, repr=False, default_factory=ExitStack)

    @cached_property
    def layout(self) -> Layout:
        """The layout: which task of Spark measures and publishes which tables."""
        return Layout.of(self.blank.plan)

    @property
    def work(self) -> Work:
        """The private folder with the unfinished work of this release."""
        return Work.beside(self.out, self.token)

    @cached_property
    def run(self) -> Run:
        """The rows of the dataframe, with the operations that count them in tasks of Spark."""
        return Run(self.blank.plan, self.layout, self.table, self.blank.on_outside)

    @cached_property
    def records(self) -> SparkRecords:
        """The rows of the dataframe, coded as integers in Spark."""
        return self.run.records(self.work)

    def close(self) -> None:
        """Remove the coded rows from Spark's cache, and release the lock of the work folder."""
        with self._alone:
            if "records" in self.__dict__:
                self.records.close()

    def check_file_system(self) -> None:
        """Refuse a folder that the executors do not share: see :meth:`.Run.check_file_system`."""
        folder = self.out.with_name(f".{self.out.name}.{self.token}.probe")
        self.run.check_file_system(folder, self.token)

    def enter(self) -> None:
        """Hold the work folder's lock until :meth:`close`; OutputError if it is held already."""
        self._alone.enter_context(self.work.alone())

    def begin(self) -> None:
        """Make the private work folder, with the key and the fingerprint of the table's rows."""
        self.work.make()
        try:
            self.enter()
            self.work.make_key()
            self.work.keep_records(self.records.fingerprint)
            if self.charge is not None:
                self.work.keep_charge(self.charge)
        except BaseException:
            # the table may not fit the schema
            remove_at_once(self.work.folder)
            raise

    def write_start(self, path: Path) -> None:
        """Begin the work, and write a record of it, by which a later call finds the charged run."""
        Work.clear(self.out, self.charge)  # no start was recorded: leftovers have no noise
        self.begin()
        start = {"format": _FORMAT, "token": self.token, "layout_sha256": self.layout.sha256}
        path.write_text(json.dumps(start | {"out": str(self.out)}), encoding="utf-8")

    def read_start(self, path: Path) -> str:
        """Return the token of the charged run; LedgerError if its ``out`` or version is another."""
        start = read_json(path)
        if start["out"] != str(self.out):
            raise LedgerError(
                f"ledger: this release goes to {start['out']}, got out={str(self.out)!r}"
            )
        if (start["format"], start["layout_sha256"]) != (_FORMAT, self.layout.sha256):
            raise LedgerError(
                "ledger: this release was begun by another version of the program, or of its "
                "libraries, which measures otherwise; hint: go on with that one"
            )
        return start["token"]

    def complete(self, document: Document, id: str | None = None) -> TableRelease:
        """Return the complete release: make it, or load it if it is published already."""
        release = self._loaded() if os.path.lexists(self.out) else self._finished(document, id)
        remove_at_once(self.work.folder)
        return release

    def _finished(self, document: Document, id: str | None) -> TableRelease:
        """Return the release, after making missing files and renaming their folder to ``out``."""
        if not self.work.result.is_dir():
            raise LedgerError(
                f"ledger: what was drawn for {id!r} was in {self.work.folder}, which is gone; "
                "hint: put back that folder, no copy of it, or take another id for a new release"
            )
        measured = self.work.digests(_MEASURED)
        if measured is None:
            measured = self._measured()
        else:
            _check_present(measured, self.work.measured.folder)
        known = self.blank, self.layout, self.work.measured, measured, self.work.published
        digests = []
        for count, write in (
            (len(self.layout.tables), tasks.write_tables),
            (len(self.layout.large_pieces), tasks.write_pieces),
        ):
            digests += self.run.in_tasks(range(count), partial(write, *known))
        tables = StoredTables(self.work.result, self.layout.table_places)
        release = replace(self.blank, tables=tables)
        answers = partial(tasks.write_answers, release, document.answers, self.work.published)
        digests += self.run.in_tasks([-1, *document.answers], answers)
        drawn = {"executors": {"run": self.token, "how": ASSUMED}}
        write_record(document, release, self.work.result, dict(digests), drawn)
        sync(self.work.result)
        with held(self.out.parent) as parent:
            try:
                publish(self.work.result, parent, self.out, "release")
            except OutputError:
                if not os.path.lexists(self.out):
                    raise
                return self._loaded()
        return replace(release, tables=StoredTables(self.out, self.layout.table_places))

    def _measured(self) -> Mapping[str, str]:
        """Return {file: sha256} of all measurements, after making those that are missing."""
        names = [tasks.measured_name(part) for part in range(len(self.layout.groups))]
        found = {name: self.work.measured.digest(name) for name in names}
        measure = partial(tasks.measure, self.layout, self.work.measured)
        digests = self.run.counted(self.work, self.records, found, tasks.measured_name, measure)
        for matrix in self.layout.matrices.values():
            digests |= self._measured_in_pieces(matrix)
        self.work.keep_digests(_MEASURED, digests)
        return digests

    def _measured_in_pieces(self, matrix: Matrix) -> Mapping[str, str]:
        """Return {file: sha256} of a residual measured in pieces; make the missing files."""
        measured, noisy = self.work.measured, self.work.noisy
        names = [matrix.name(k) for k in range(len(matrix.boxes))]
        found = {name: measured.digest(name) for name in names}
        if None in found.values():
            # once all columns are drawn, a lost one must not be drawn again: rows may use it
            drawn = f"noisy-{'-'.join(map(str, matrix.T))}"
            heads = self.work.digests(drawn)
            if heads is None:
                heads = self._drawn_columns(matrix)
                self.work.keep_digests(drawn, heads)
            else:
                _check_present(heads, noisy.folder)
            decode = partial(pieces.decode_rows, self.layout, matrix.T, noisy, heads, measured)
            found |= dict(self.run.in_tasks(range(len(matrix.boxes)), decode))
        return complete(found)

    def _drawn_columns(self, matrix: Matrix) -> Mapping[str, str]:
        """Return {file: head_digest} of all columns with noise, after drawing the missing ones."""
        exact, noisy, T = self.work.exact, self.work.noisy, matrix.T
        for commits in (exact, noisy):
            commits.folder.mkdir(exist_ok=True)
        columns = pieces.column_heads(matrix, noisy)
        if None in columns.values():
            self.work.check_rows(self.records)
            used = self.run.places(T)
            most = self.records.largest(used)
            rows = pieces.row_heads(matrix, exact)
            if None in rows.values():
                answer = partial(pieces.answer_rows, self.layout, T, most, exact)
                starts = matrix.first_cells.tolist()
                counted = in_spark(
                    TASK, lambda: self.records.counted_in_pieces(used, starts, answer).collect()
                )
                rows |= {row["name"]: row["digest"] for row in counted}
            heads = complete(rows)
            if pieces.rows_counted(matrix, most, exact, heads) != self.records.total:
                remove_at_once(exact.folder)  # no noise was drawn for these counts
                raise DataError(CHANGED)
            draw = partial(pieces.draw_columns, self.layout, T, most, exact, heads, noisy)
            columns |= dict(self.run.in_tasks(range(len(matrix.columns)), draw))
        return complete(columns)

    def _loaded(self) -> TableRelease:
        """Return the release at ``out``; OutputError unless this run published it, unchanged."""
        try:
            run = read_json(self.out / "release.json", _MOST_BYTES)["executors"]["run"]
        except (OSError, ValueError, LookupError, TypeError):
            run = None
        if run != self.token:
            raise exists_already("release", self.out)
        return replace(TableRelease.load(self.out, self.blank.plan), backend=self.blank.backend)


def _check_present(names: Iterable[str], folder: Path) -> None:
    """Raise LedgerError if a folder lacks one of these files, which hold noise drawn earlier."""
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    lost = sorted(set(names) - there)
    if lost:
        raise LedgerError(
            f"ledger: what was drawn for this release was in {folder}, which lacks {len(lost)} of "
            f"its files, such as {lost[0]}; hint: put them back, or take another id for a new "
            "release"
        )
