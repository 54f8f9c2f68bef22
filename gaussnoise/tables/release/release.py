"""Released tables: unbiased, consistent with each other, with exact covariances."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from ...errors import ParameterError
from ...text import number_of
from ..planning.again import planned_again
from ..planning.plan import event_of
from . import ask as _ask
from . import contrasts as _contrasts
from . import functions as _functions
from . import independence as _independence
from . import likeness as _likeness
from . import logistic as _logistic
from . import loglinear as _loglinear
from . import measurements as _measurements
from . import nearest as _nearest
from . import quantiles as _quantiles
from . import regression as _regression
from . import shares as _shares
from . import sums as _sums
from . import synthetic as _synthetic
from .files import save_release
from .merged import MergedPlan
from .noisy import AbstractRelease
from .store import FileFormat, StoredTables
from .stored import read_release
from .verdict import Inspection

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

    from ..planning.plan import Plan


@final
@dataclass(frozen=True, eq=False)
class TableRelease(AbstractRelease):
    """All marginals of one release; safe to publish if ``private`` is true.

    ``release["age", "income"]`` is a table with axes in this order. Any part of a released marginal
    can be asked for too, such as ``release["age"]`` or the total ``release[()]``. Iteration yields
    the planned marginals. A release with files reads a table from its file when the table is asked
    for.

    Attributes:
        plan: the plan of the release.
        private: False for simulations, whose numbers must not be published.
        rho_charged: the ρ that OpenDP's privacy map charges for the noise; at most the planned ρ.
        covariance: the covariance of the noise over all cells of the planned marginals, in the
            order of the plan, each marginal in C order.
        query: the integer query that was answered with noise.
        tables: estimates of the planned marginals; keys are sorted tuples of attribute indices.
        backend: the dataframe library of ``to_frame()``.
        on_outside: the rule for rows with values outside the schema, see :meth:`Plan.release`.
        over: for tables of a stream, the ticks that they are about, and the facts of the stream;
            ``rho_charged`` is then the ρ of the whole stream.
        without_zone: attributes whose timestamps in Parquet files have the type INT96, which has no
            time zone. These timestamps are counted as written.

    >>> import pyarrow as pa
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
    ... )
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> table = release["sex", "age"]  # .to_frame(), .confidence_interval(0.95), .projected()
    >>> print(table.estimate.shape, f"{table.standard_deviation[0, 0]:.4f}")
    (2, 3) 2.2361
    >>> more = release.contrast({("sex",): [1, -1]})  # women less men: 400
    >>> print(abs(more.estimate - 400) < 8 * more.standard_deviation)
    True
    """

    # questions to a release are functions in other modules, with their documentation there
    cell = _contrasts.cell
    contrast = _contrasts.contrast
    contrasts = _contrasts.contrasts
    sums = _sums.sums
    means = _sums.means
    proportions = _shares.proportions
    cdf = _shares.cdf
    quantiles = _quantiles.quantiles
    ask = _ask.ask
    measurements = _measurements.measurements
    to_mbi = _synthetic.to_mbi
    synthetic = _synthetic.synthetic
    likeness = _likeness.likeness
    projected = _nearest.projected
    function = _functions.function
    variance = _functions.variance
    covariance_of = _functions.covariance_of
    correlation = _functions.correlation
    regress = _regression.regress
    logistic = _logistic.logistic
    loglinear = _loglinear.loglinear
    independence = _independence.independence

    def inspect(self, table: object, *, level: float = 1e-6) -> Inspection:
        """Return whether the release differs from a recount by no more and no less than its noise.

        NOT private: for the owner of the data alone. The table is counted again, by other code than
        that of releases. The differences are tested by the known distribution of the noise.
        Differences may be too large (a missing file, a swapped column, more noise than stated) or
        too small (less noise than stated). The verdict depends on exact counts: do not publish it.
        Every 100,000 rows take one to five seconds.

        Args:
            table: the table that was released, as in :meth:`Plan.release`; for a tick of a stream,
                such as ``stream.tables.period(3)``, the table with the rows of this tick.
            level: the largest probability of a false alarm.

        Returns:
            An :class:`~gaussnoise.results.Inspection`: whether the release passed, and differences
            that would be noticed with a stated probability.

        Raises:
            ParameterError: a combination of releases, or of ticks, or a level out of range.
            DataError: the table cannot be read.

        >>> import pyarrow as pa
        >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
        >>> people = pa.table({"sex": ["F", "M", "F"] * 400})
        >>> gn.plan(schema, 1, gn.zCDP(0.1)).release(people).inspect(people).passed
        True
        """
        from .inspection import inspect  # imported here, since it imports releases

        return inspect(self, table, level)

    def dp_event(self) -> "DpEvent":
        """Return the privacy cost, like :func:`gaussnoise.privacy.dp_event`.

        ``dp-accounting`` composes it with other events.

        Raises:
            NotAvailableError: rows with larger numbers have larger budgets.
        """
        return event_of(self.plan.scales, self.rho_charged)

    def save(
        self,
        directory: str | os.PathLike[str],
        format: FileFormat = "csv",
        *,
        verifier: bool = False,
    ) -> None:
        """Write the release to a new directory.

        The directory holds the tables, ``release.json``, ``summary.txt``, ``method.txt``,
        ``ddi.xml``, ``release.png`` and, if queries other than counts were planned, ``noise.npz``.
        The tables are one tidy file per marginal, one Parquet dataset for more than 1000 marginals,
        or one workbook. A combination of releases has no ``noise.npz``. It has the folders of the
        combined releases beside its tables.

        Args:
            directory: a new directory, which appears only when it is complete.
            format: "csv", "parquet", "jsonl", "xlsx", "sdmx-csv" or "json-stat".
            verifier: whether to copy the files of ``verifier`` there: see :meth:`Plan.release`.

        Raises:
            OutputError: the directory exists, or its parent cannot be written.
            ParameterError: the release has more than 1000 marginals and the format is not Parquet,
                or a table has more cells or a longer label than a sheet of a workbook can hold, or
                the release is about ticks of a stream.
        """
        if self.times is not None:
            raise ParameterError(
                f"save: these tables are about {self.times} of a stream; hint: its own folder has "
                "the tables of every "
                "tick; to_frame() for others"
            )
        if isinstance(self.plan, MergedPlan):
            from .combined_files import save_combined  # imported here: it combines releases again

            return save_combined(self, directory, format, verifier)
        save_release(self, directory, format, verifier)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        synthetic: Any = None,
        ask: Sequence[str] = (),
    ) -> None:
        """Write one HTML page for all readers of a release: director, auditor, journalist.

        The page has the request, tables and pictures with intervals, the largest and smallest
        groups, the role of noise, privacy in plain words and in full, the distance of the noise
        from the optimum, and how the release was made. It needs no other file and no network. The
        same release gives the same page. The page reveals nothing beyond the release, at no further
        privacy cost. The page of a simulation says that it is not private.

        For a saved release, a script in the page verifies the release in the reader's browser, like
        ``gaussnoise verify``. The script needs the record and the tables. The page contains both,
        with tables as CSV, unless they are longer than the page. Readers can also select the folder
        of the release.

        Args:
            path: a new file, like ``report.html``; not in the folder of the release.
            title: the heading of the page.
            synthetic: the result of :meth:`synthetic`, which the page compares with the release by
                :meth:`likeness`; None for no comparison.
            ask: questions for :meth:`ask` that the page answers.

        Raises:
            OutputError: the file exists, cannot be written, or would be among released files.
            ParameterError: the title is not a text, the synthetic records have wrong columns, or a
                question has no answer.

        >>> import pathlib, tempfile
        >>> import pyarrow as pa
        >>> survey = gn.plan(gn.Schema([gn.Attribute("sex", ["F", "M"])]), 1, gn.zCDP(0.1))
        >>> release = survey.release(pa.table({"sex": ["F", "M", "F"] * 400}))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     release.report(f"{folder}/report.html", title="A survey")
        ...     page = pathlib.Path(folder, "report.html").read_text(encoding="utf-8")
        >>> "<h1>A survey</h1>" in page
        True
        """
        # imported here, since only pages need these
        from .report.answers import answers_of
        from .report.combined import save_combined_report
        from .report.pages import save_report

        save = save_combined_report if isinstance(self.plan, MergedPlan) else save_report
        save(self, path, title, synthetic, answers_of(self, ask))

    @classmethod
    def load(cls, directory: str | os.PathLike[str], plan: "Plan | None" = None) -> "TableRelease":
        """Return a release that :meth:`save` or ``plan.release(out=...)`` wrote.

        The loaded release answers further questions. A combination is computed again from its
        releases.

        Args:
            directory: the folder of the release; its files are checked against the sha256 in
                ``release.json``. The folder may hold no other files, and no links.
            plan: the plan of the release, planned again with the same arguments. If left out, the
                plan is computed from the request in ``release.json``, and from the noise in
                ``noise.npz`` if there is one. The proof of this noise is verified, and compared
                with the record.

        Raises:
            OutputError: files are missing, altered or added, the release is of another plan, or
                another version calibrated its noise.
        """
        if plan is None:
            from .combined_files import combined_in  # imported here: it combines releases again

            if (combined := combined_in(directory)) is not None:
                return combined
            plan = planned_again(directory)
        none = StoredTables(Path(directory), {})
        blank = cls(plan, False, 0.0, plan.covariance, plan.query, none, "pyarrow")
        return read_release(blank, directory)

    def __repr__(self) -> str:
        warning = "" if self.private else "NOT PRIVATE, a simulation: "
        if self.times is None:
            plan: object = self.plan
            combined = isinstance(plan, MergedPlan)
            many = f" combined from {len(plan.sources)} releases" if combined else ""
            return (
                f"TableRelease({warning}{number_of(len(self), 'marginal')}{many}, "
                f"rho charged {self.rho_charged:.6g})"
            )
        whole = f"rho charged for the whole stream {self.rho_charged:.6g}"
        return f"TableRelease({warning}{number_of(len(self), 'marginal')} of {self.times}, {whole})"
