"""The repeatable steps that releases and streams of releases by Spark's executors share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, final

from ...errors import DataError, NotAvailableError, OutputError
from ...files.commits import Commits
from ...files.disk import remove
from ...solvers.tables.residuals import Subset
from ...text import versions
from ..counting.admission import AbstractAdmission
from ..counting.count import CHANGED
from ..counting.impossible import excluded
from ..counting.numbers import Joint
from ..planning.plan import Plan
from ..release.publish import limit_of
from ..schema.schema import Attribute, OnOutside
from . import tasks
from .layout import Layout
from .records import COMMITTED, Finish, SparkRecords, in_spark, shuffled_tasks
from .work import Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

TASK = "release it with Spark"
_PROBES = 16


@final
@dataclass(frozen=True, eq=False)
class Run:
    """The rows of a Spark dataframe, and the operations that count them in tasks of Spark.

    Attributes:
        plan: the plan of the tables.
        layout: the assignment of work to tasks.
        table: a Spark dataframe.
        on_outside: the rule for rows with values outside the schema.
    """

    plan: Plan
    layout: Layout
    table: "DataFrame"
    on_outside: OnOutside

    def records(
        self, work: Work | None, *more: Attribute, admission: AbstractAdmission | None = None
    ) -> SparkRecords:
        """Return the rows of the dataframe, coded as integers by Spark when they are first needed.

        Args:
            work: the folder with the key by which each person's rows are chosen; None for all rows.
            more: columns that are read but are in no table.
            admission: the rule that says which persons are counted; None for all of them.
        """
        plan, used = self.plan, self.plan.asked.used
        attributes = [*(plan.schema.attributes[i] for i in used), *more]
        joined = [tuple(used.index(i) for i in S) for S in plan.tables.subsets]
        return SparkRecords(
            self.table,
            attributes,
            self.on_outside,
            None if work is None else work.again(limit_of(plan, admission)),
            plan.weight,
            plan.unit,
            excluded(plan.schema, used),
            Joint.of(attributes, joined),
        )

    def counted(
        self,
        work: Work,
        records: SparkRecords,
        found: Mapping[str, str | None],
        name: Callable[[int], str],
        measure: Finish,
    ) -> dict[str, str]:
        """Return {file: sha256} of all groups' measurements; count groups whose files are missing.

        Args:
            work: the private folder of work on these rows.
            records: the rows.
            found: {file: its sha256, or None if it is missing}.
            name: a function from a group's number to the file of its measurements.
            measure: as for :meth:`SparkRecords.counted`.

        Raises:
            DataError: the table has other rows now.
        """
        missing = {
            part: self.places(group)
            for part, group in enumerate(self.layout.groups)
            if found[name(part)] is None
        }
        if not missing:
            return complete(found)
        work.check_rows(records)
        rows = in_spark(TASK, lambda: records.counted(missing, measure).collect())
        return complete({**found, **{row["name"]: row["digest"] for row in rows}})

    def places(self, S: Subset) -> Subset:
        """Return the indices of the schema's attributes S among the columns of :meth:`records`."""
        return tuple([self.plan.asked.used.index(i) for i in S])

    def in_tasks(self, numbers: Sequence[int], work: tasks.Step) -> list[tuple[str, str]]:
        """Run ``work`` on these numbers in tasks; return (name, sha256) of each file it makes."""

        def rows() -> "list[Row]":
            count = max(min(len(numbers), shuffled_tasks(self.table)), 1)
            ids = self.table.sparkSession.range(0, len(numbers), 1, count)
            made = ids.mapInArrow(partial(tasks.numbered, tuple(numbers), work), COMMITTED)
            return made.collect()

        return [(row["name"], row["digest"]) for row in in_spark(TASK, rows)]

    def check_file_system(self, folder: Path, token: str) -> None:
        """Refuse a file system that executors do not share, or that lets two tasks commit one file.

        Args:
            folder: a new folder on that file system, which is removed again.
            token: a random text.

        Raises:
            OutputError: some executor cannot write there, or does not see the others' files.
            NotAvailableError: executors have other versions of the libraries.
        """
        try:
            folder.mkdir(mode=0o700)
            (folder / "begun").write_text(token, encoding="utf-8")
            rows = self.in_tasks(range(_PROBES), partial(tasks.probe, Commits(folder, folder)))
        except (DataError, OSError):
            rows = []
        finally:
            remove(folder)
        if len({name for name, _ in rows}) != 1 or not rows[0][0].startswith(token):
            raise OutputError(
                f"release: executors cannot publish to {folder.parent}; expected this package, "
                "with the Python of the driver, on every executor, and a folder that "
                "the driver and all executors see under this name, and write to as one user, on a "
                "file system with hard links, as local disks and NFS have them; hint: object "
                "stores have none"
            )
        ours = str(versions(*tasks.LIBRARIES))
        if any(digest != ours for _, digest in rows):
            raise NotAvailableError(
                f"release: expected {', '.join(tasks.LIBRARIES)} of the driver's versions on every "
                "executor, got others"
            )


def complete(found: Mapping[str, str | None]) -> dict[str, str]:
    """Return ``found``, {file: sha256}, after checking that no sha256 is None (a missing file).

    Raises:
        DataError: a file is missing.
    """
    digests = {name: digest for name, digest in found.items() if digest is not None}
    if len(digests) < len(found):
        raise DataError(CHANGED)
    return digests
