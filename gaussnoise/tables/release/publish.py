"""The steps from a plan and a table to a release: count, draw, decode, write.

All checks that need no data come first.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.errors import DomainTooLargeError

from ...errors import ParameterError
from ...files.disk import check_parent
from ...privacy.ledger import Ledger
from ...privacy.sampler import noise_stream, sampling_threads
from ...records import check_on_outside
from ...solvers.progress import Counted, check_progress, counting
from ...solvers.tables.residuals import Subset
from ..counting.admission import AbstractAdmission
from ..counting.check import check_rows
from ..counting.check_result import CheckResult
from ..counting.count import count_marginals
from ..counting.impossible import excluded
from ..counting.per_person import Reduced
from ..counting.persons import PersonLimit
from ..planning.facts import protected
from ..planning.plan import MOST_HERE, Plan
from ..reading.codes import check_categories
from ..reading.declared import check_columns
from ..reading.files import written_in
from ..reading.frames import frame_backend, without_zone
from ..reading.persons import check_table
from ..schema.schema import Attribute, OnOutside
from .files import Document, as_itself, check_format, rehearsed, staged, write_document, writer_of
from .release import TableRelease
from .store import FileFormat, StoredTables, ZeroTables
from .stream import noisy_tables

Array = NDArray[np.float64]


def published(
    plan: Plan,
    table: object,
    *,
    out: str | os.PathLike[str] | None,
    format: FileFormat,
    on_outside: OnOutside,
    progress: bool | Counted | None,
    ledger: Ledger | str | os.PathLike[str] | None,
    id: str | None,
    executors: bool,
    verifier: bool,
) -> TableRelease:
    """Return the release of :meth:`Plan.release`."""
    plan.schema.check_confirmed("release")
    frame = None
    if executors:
        from ..spark.releases import check_executors

        frame = check_executors(plan, table, out, format)
    else:
        check_size("release", plan)
    check_format(format, plan.schema, () if out is None else plan.tables.subsets)
    check_outside("release", plan, on_outside)
    check_progress(progress)
    if out is not None and not isinstance(out, str | os.PathLike):
        raise ParameterError(f"release: expected out to be a path, got {type(out).__name__}")
    if verifier and out is None:
        raise ParameterError("release: expected out= with verifier=True, which is copied there")
    blank = _blank(plan, table, on_outside, private=True)
    if (ledger is None) != (id is None) or (ledger is not None and out is None):
        raise ParameterError(
            "release: expected ledger=, id= and out= together: a ledger knows releases by their "
            "id and finds them "
            "where they were written"
        )
    if frame is not None and out is not None:
        from ..spark.releases import released

        request = asked(plan, on_outside) | {"executors": True}
        return released(
            blank,
            frame,
            out,
            ledger,
            id,
            request,
            protected(plan),
            columns=columns_of(plan),
            verifier=verifier,
        )
    if out is None:
        return replace(blank, tables=dict(_private(plan, table, on_outside, progress)))
    if ledger is None or id is None:
        check_parent(Path(out), "save")
        document = rehearsed(blank, format, verifier=verifier)
        with as_itself(progress) as say, staged(out) as folder:
            written = _write(folder, table, blank, document, format, say)
        return replace(blank, tables=StoredTables(Path(out), written.places))
    document = rehearsed(blank, format, verifier=verifier)
    with as_itself(progress) as say:
        loaded = Ledger.of(ledger).once(
            id,
            cost=blank.rho_charged,
            request=asked(plan, on_outside),
            protects=protected(plan),
            target=out,
            write=lambda folder: _write(folder, table, blank, document, format, say),
            read=lambda folder: TableRelease.load(folder, plan),
            draws=plan.query.count + sum(own.draws for own in plan.ranges),
            privacy=plan.privacy,
            ready=lambda: check_columns(written_in(table, plan.schema.file), columns_of(plan)),
        )
    return replace(loaded, backend=blank.backend)


def simulated(
    plan: Plan,
    table: object,
    draw: "Callable[[int], ArrayLike]",
    *,
    on_outside: OnOutside,
    progress: bool | Counted | None,
) -> TableRelease:
    """Return a release that is NOT private: its noise is drawn by ``draw(count)``."""
    check_size("simulate", plan)
    check_outside("simulate", plan, on_outside)
    blank = _blank(plan, table, on_outside, private=False)
    return replace(blank, tables=dict(_noisy(plan, table, on_outside, draw, 1, progress)))


def checked(plan: Plan, table: object, more: Sequence[Attribute] = ()) -> CheckResult:
    """Return the result of :meth:`Plan.check`; the columns ``more`` are checked, too."""
    used, table = plan.asked.used, written_in(table, plan.schema.file)
    attributes = [*(plan.schema.attributes[i] for i in used), *more]
    rules = excluded(plan.schema, used)
    found = check_rows(table, attributes, rules, limit_of(plan), plan.weight)
    return replace(found, droppable=not (plan.has_public_rows and found.left_out))


def check_size(function: str, plan: Plan) -> None:
    """Refuse a plan that one machine cannot release in a day.

    Raises:
        DomainTooLargeError: the plan needs executors.
    """
    if plan.needs_executors:
        cells = plan.tables.dim
        raise DomainTooLargeError(
            f"{function}: {plan.integers:.3g} noisy integers for {cells:.3g} cells would take "
            f"{plan.seconds / 3600:.3g} hours and {cells * 8 / 1e9:.3g} GB, more than "
            f"{MOST_HERE:.0e} of them; hint: fewer or smaller marginals, or a Spark dataframe and "
            "executors=True"
        )


def columns_of(plan: Plan) -> list[str | None]:
    """Return the columns that a plan reads: attributes, persons, weights.

    The last two are None if the plan has no column of persons, or of weights.
    """
    own = [plan.schema.names[i] for i in plan.asked.used]
    return [*own, plan.person, None if plan.weight is None else plan.weight.column]


def limit_of(plan: Plan, admission: AbstractAdmission | None = None) -> PersonLimit | None:
    """Return the limit on a person's rows, with a new secret key; None if no column has persons."""
    if plan.person is None:
        return None
    used = [plan.schema.attributes[i] for i in plan.asked.used]
    how = plan.per_person
    own: Reduced = {k: (how[a.name], a) for k, a in enumerate(used) if a.name in how}
    return PersonLimit(plan.person, plan.rows_per_person, reduced=own, admission=admission)


def asked(plan: Plan, on_outside: OnOutside) -> dict[str, object]:
    """Return the request of a release; a ledger compares requests that have the same id."""
    return plan.request | ({} if on_outside == "refuse" else {"on_outside": on_outside})


def check_outside(function: str, plan: Plan, on_outside: object) -> None:
    """Raise ParameterError for an unknown rule on rows outside the schema.

    A rule that would reveal the number of such rows is refused, too.
    """
    check_on_outside(function, on_outside, bodies=False)
    without = [
        plan.schema.names[i] for i in plan.asked.used if plan.schema.attributes[i].other is None
    ]
    if on_outside == "drop" and plan.has_public_rows and without:
        raise ParameterError(
            f"{function}: under replacement the number of rows is public, so none can be dropped: "
            "expected a "
            f"catch-all for every attribute, got none for {', '.join(map(repr, without))}; "
            'hint: other = "other" in the schema, or on_outside="refuse"'
        )
    if on_outside == "drop" and plan.has_public_rows and excluded(plan.schema, plan.asked.used):
        raise ParameterError(
            f"{function}: under replacement the number of rows is public, so none can be dropped, "
            "and no catch-all takes impossible combinations; hint: leave those out of the schema, "
            'or on_outside="refuse"'
        )


def _count(
    plan: Plan, table: object, on_outside: OnOutside
) -> Iterator[tuple[Subset, NDArray[np.int64]]]:
    """Yield (attribute indices, exact counts) for every planned marginal. NOT private."""
    used = plan.asked.used
    planned = {tuple(used.index(i) for i in S): S for S in plan.tables.subsets}
    attributes = [plan.schema.attributes[i] for i in used]
    rules, limit = excluded(plan.schema, used), limit_of(plan)
    table = written_in(table, plan.schema.file)
    counted = count_marginals(
        table, attributes, list(planned), on_outside, limit, plan.weight, plan.unit, rules
    )
    return ((planned[S], counts) for S, counts in counted)


def _noisy(
    plan: Plan,
    table: object,
    on_outside: OnOutside,
    draw: "Callable[[int], ArrayLike]",
    threads: int,
    progress: bool | Counted | None,
) -> Generator[tuple[Subset, Array]]:
    """Yield (attribute indices, noisy table) for each planned marginal once it is counted."""
    done, cells = 0, plan.tables.dim
    with (
        noise_stream(draw, plan.query.count, threads) as noise,
        counting(progress, cells, "cells") as say,
    ):
        for S, estimate in noisy_tables(
            _count(plan, table, on_outside), plan.tables.subsets, plan.query, noise
        ):
            yield S, estimate
            done += estimate.size
            say(done, cells)


def _private(
    plan: Plan, table: object, on_outside: OnOutside, progress: bool | Counted | None
) -> Generator[tuple[Subset, Array]]:
    """Yield (attribute indices, noisy table) for every planned marginal, with the plan's noise."""
    query = plan.query.query
    draw = query.draw if query is not None else _zero_noise
    return _noisy(plan, table, on_outside, draw, sampling_threads(), progress)


def _zero_noise(count: int) -> list[int]:
    """Return zero noise, for plans in which no row can change a count."""
    return [0] * count


def _write(
    folder: Path,
    table: object,
    blank: TableRelease,
    document: Document,
    format: FileFormat,
    progress: bool | Counted | None,
) -> StoredTables:
    """Write a private release's tables, and all files beside them, to an empty or new folder."""
    folder.mkdir(exist_ok=True)
    with (
        closing(_private(blank.plan, table, blank.on_outside, progress)) as noisy,
        writer_of(blank, folder, format, document.notes, document.answers) as writer,
    ):
        for S, estimate in noisy:
            writer.write(S, estimate)
    write_document(document, replace(blank, tables=writer.tables), folder)
    return writer.tables


def _blank(plan: Plan, table: object, on_outside: OnOutside, *, private: bool) -> TableRelease:
    """Return the release with zeros instead of estimates, and without any values of the data."""
    zeros = ZeroTables({S: tuple(plan.schema.sizes[i] for i in S) for S in plan.tables.subsets})
    backend = frame_backend(table)
    if plan.person is not None:
        check_table(table)
    zoneless, names = without_zone(table), [plan.schema.names[i] for i in plan.asked.used]
    check_categories(table, [plan.schema.attributes[i] for i in plan.asked.used], on_outside)
    return TableRelease(
        plan,
        private,
        plan.rho_charged,
        plan.covariance,
        plan.query,
        zeros,
        backend,
        on_outside,
        without_zone=tuple(name for name in names if name in zoneless),
    )
