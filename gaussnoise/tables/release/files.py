"""Releases on disk: a folder is complete, or it does not exist."""

import contextlib
import dataclasses
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from ...errors import GaussNoiseError, OutputError, ParameterError
from ...files.disk import (
    MALFORMED,
    MOST_RECORD,
    aside,
    check_parent,
    digests_in,
    folder_fault,
    read_json,
)
from ...privacy.definitions import gaussian_epsilon, zCDP
from ...privacy.lattice_bound import TABLE_STEPS
from ...privacy.ledger_results import OLD_TABLES
from ...solvers.progress import Counted
from ...solvers.tables.boxes import boxes
from ...solvers.tables.residuals import Subset
from ...solvers.tables.strategies import SolvedStrategy
from ...text import SHOWN_DELTA, printable, versions
from ..planning.text import counted_text, public_text, relation_text
from ..schema.bases import base_value
from ..schema.groups import group_record, group_texts
from ..schema.schema import OnOutside
from .store import (
    MOST_FILES,
    MOST_READ,
    FileFormat,
    Place,
    StoredTables,
    file_names,
    read_index,
    table_writer,
)
from .sums import with_means
from .text import disclaimers, release_text
from .tidy import interval_record

if TYPE_CHECKING:
    from ..planning.plan import Plan
    from .release import TableRelease
    from .table import AbstractEstimates

Array = NDArray[np.float64]

_FORMAT = "gaussnoise.tables/3"
_MOST_ANSWERS = 10**7  # of one entry that is written; larger ones are not
_BYTES_OF_PIECES = 2**9  # of a record, for every 2^20 cells: file names and their sha256
_CELLS_AT_ONCE = 2**22  # whose deviations are computed at once
_LIBRARIES = ("gaussnoise", "opendp", "numpy", "narwhals", "pyarrow", "duckdb")


def check_format(format: str, marginals: int) -> None:
    """Refuse a format that is unknown, or that cannot hold so many tables."""
    if format not in get_args(FileFormat):
        raise ParameterError(f'save: expected format "csv" or "parquet", got {format!r}')
    if format == "csv" and marginals > MOST_FILES:
        raise ParameterError(
            f"save: expected at most {MOST_FILES} marginals in CSV files, got {marginals}; "
            'hint: format="parquet" writes one dataset'
        )


def check_target(directory: str | os.PathLike[str]) -> None:
    """Refuse a directory that exists, or a parent that cannot be written."""
    check_parent(Path(directory), "save")


@contextlib.contextmanager
def staged(directory: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a scratch directory that becomes ``directory`` at the end, and vanishes on failure."""
    target = Path(directory)
    try:
        with aside(target) as scratch:
            scratch.mkdir()
            yield scratch
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"save: could not complete {target} ({type(error).__name__}); nothing was kept"
        ) from None


class _CallbackError(BaseException):
    """A carrier of an error past handlers that would mistake it for a failed write or a refusal."""


@contextlib.contextmanager
def as_itself(progress: bool | Counted | None) -> Iterator[bool | Counted | None]:
    """Yield ``progress``; an error of the caller's own callback leaves the block unchanged."""

    def call(done: int, total: int) -> None:
        try:
            progress(done, total)  # pyright: ignore[reportCallIssue, reportOptionalCall] (only if callable)
        except Exception as error:  # noqa: BLE001 (any error of the callback is raised again outside)
            raise _CallbackError(error) from None

    try:
        yield call if callable(progress) else progress
    except _CallbackError as carrier:
        (error,) = carrier.args
    else:
        return
    raise error from error.__cause__  # without a trace of its carrier


def save_release(
    release: "TableRelease", directory: str | os.PathLike[str], format: FileFormat
) -> None:
    """Write all files of a release to a new directory."""
    check_format(format, len(release))
    check_target(directory)
    with staged(directory) as folder:
        plan = release.plan
        document = document_of(release, format)
        with table_writer(
            folder, plan.schema, plan.tables.subsets, release.deviation, format
        ) as writer:
            for S in plan.tables.subsets:
                writer.write(S, release.tables[S])
        write_document(document, replace(release, tables=writer.tables), folder)


@dataclass(frozen=True, eq=False)
class Document:
    """All files of a release except its tables, known before any data are read.

    Attributes:
        record: ``release.json`` without the places of the tables and the digests of the files.
        marginals: of every table, its entry in the record, without its place.
        measurements: of every noisy measurement, its entry in the record.
        summary: ``summary.txt``.
        answers: files of the entries of the workload that ask for more than cells.
    """

    record: Mapping[str, object]
    marginals: list[dict[str, object]]
    measurements: list[dict[str, object]]
    summary: str
    answers: Mapping[int, str]


def rehearsed(blank: "TableRelease", format: FileFormat, most_cells: int = MOST_READ) -> Document:
    """Return the document of a release whose tables are still zero.

    All that can fail without data fails here. After this, a charged release has only to count,
    draw, decode, and write. No answers are written for tables of more than ``most_cells`` cells:
    they are computed from the tables.
    """
    import pyarrow as pa

    plan = blank.plan
    for attribute in plan.schema.attributes:
        pa.array(attribute.labels)
    document = document_of(blank, format, most_cells)
    for k in document.answers:
        _answers(blank, k).to_arrow()
    json.dumps([document.record, document.marginals, document.measurements])
    return document


def document_of(
    release: "TableRelease", format: FileFormat, most_cells: int = MOST_READ
) -> Document:
    """Return the document of a release in files of a format, as for :func:`rehearsed`."""
    format = "parquet" if len(release) > MOST_FILES else format
    answers = _answer_files(release, format, most_cells)
    return Document(
        release_record(release, answers),
        _marginals(release),
        _measurements(release),
        release_text(release),
        answers,
    )


def write_document(document: Document, release: "TableRelease", folder: Path) -> None:
    """Write the files that go with the tables: ``release.json`` last.

    The others are ``answers/``, ``summary.txt`` and ``release.png``.
    """
    for k, name in document.answers.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_answers(release, k, name, folder / name)
    draw_picture(release, folder / "release.png")
    write_record(document, release, folder, {})


def write_answers(release: "TableRelease", k: int, name: str, path: Path) -> None:
    """Write the tidy file of a workload entry that asks for more than cells.

    It is computed from the tables, hence at no further privacy cost. Its name ends in its format.
    """
    from pyarrow import csv, parquet

    write = csv.write_csv if name.endswith(".csv") else parquet.write_table
    with open(path, "wb") as file:
        write(_answers(release, k).to_arrow(), file)


def draw_picture(release: "TableRelease", path: Path) -> None:
    """Draw the picture of a release, if it can be drawn."""
    try:
        from .plots import plot_release

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            plot_release(release).savefig(path, dpi=150, format="png")
    except Exception:  # noqa: BLE001 (a label that cannot be drawn must not undo a release)
        path.unlink(missing_ok=True)


def write_record(
    document: Document,
    release: "TableRelease",
    folder: Path,
    digests: Mapping[str, str],
    more: Mapping[str, object] | None = None,
) -> None:
    """Write ``summary.txt``, and last ``release.json`` on all files.

    Args:
        document: of the release.
        release: its tables are files inside the folder.
        folder: of the release.
        digests: sha256 of files that need not be read again.
        more: further entries of the record.
    """
    (folder / "summary.txt").write_text(printable(document.summary) + "\n", encoding="utf-8")
    places = release.tables.places if isinstance(release.tables, StoredTables) else {}
    subsets = zip(document.marginals, release.plan.tables.subsets, strict=True)
    marginals = [
        {"attributes": of["attributes"], "file": places[S].file, "first_row": places[S].first_row}
        | of
        for of, S in subsets
    ]
    record = {**document.record, **(more or {})}
    record["marginals"] = _listed(folder, "marginals", marginals)
    record["measurements"] = _listed(folder, "measurements", document.measurements)
    record["files"] = digests_in(folder, digests)
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / "release.json").write_text(text + "\n", encoding="utf-8")


def _answer_files(release: "TableRelease", format: FileFormat, most_cells: int) -> dict[int, str]:
    """Return the file of each entry of the workload that asks for more than cells."""
    plan = release.plan
    if plan.domain.is_cells or len(plan.domain.terms) > MOST_FILES:
        return {}
    names = file_names(
        [tuple(plan.schema.names[i] for i, _ in term) for term in plan.domain.terms],
        format,
        "answers",
    )
    asked = (all(base.is_identity for _, base in term) for term in plan.domain.terms)
    most = (
        plan.domain.queries(term) <= _MOST_ANSWERS
        and math.prod(plan.schema.sizes[i] for i, _ in term) <= most_cells
        for term in plan.domain.terms
    )
    return {
        k: name
        for k, (name, cells, few) in enumerate(zip(names, asked, most, strict=True))
        if few and not cells
    }


def _answers(release: "TableRelease", k: int) -> "AbstractEstimates":
    """Return the answers to one entry of the workload, with means of numbers."""
    return with_means(release, release.plan.domain.terms[k])


def release_record(release: "TableRelease", answers: Mapping[int, str]) -> dict[str, object]:
    """Return what a machine or an auditor needs to know; nothing in it depends on the data."""
    plan, query = release.plan, release.query
    contrasts = contrasts_of(plan)
    entries = "cells'" if plan.domain.is_cells else "answers' (with their entry's root mean square)"
    objective = (
        f"p-norm of all {entries} weighted standard deviations at unit sensitivity, p = "
        f"{plan.noise.p:g}"
    )
    implied = {
        "epsilon": gaussian_epsilon(
            release.rho_charged, SHOWN_DELTA, draws=query.count, steps=TABLE_STEPS
        ),
        "delta": SHOWN_DELTA,
        "method": "analytic Gaussian (Balle & Wang 2018, Theorem 8), corrected for the lattice",
        "epsilon_through_zcdp": zCDP(release.rho_charged).epsilon(SHOWN_DELTA)
        if release.rho_charged
        else 0.0,
    }
    return {
        "format": _FORMAT,
        "private": release.private,
        "neighbors": plan.neighbors,
        "neighbors_meaning": relation_text(plan),
        **({"published_exactly": public_text(plan)} if plan.public else {}),
        "privacy_unit": plan.privacy_unit,
        "rows_per_person": plan.rows_per_person,
        "person": plan.person,
        "rows_counted": counted_text(plan),
        "on_outside": release.on_outside,
        **({"without_time_zone": release.without_zone} if release.without_zone else {}),
        "privacy": plan.privacy.as_dict(query.count, TABLE_STEPS),
        "rho": release.rho_charged if release.private else None,
        "epsilon_delta": implied if release.private else None,
        "domain": [
            {"name": a.name, "labels": list(a.labels)}
            | ({"edges": [str(e) for e in a.edges]} if a.edges else {})
            | ({"clip": list(a.clip)} if a.clip else {})
            | ({"base": base_value(a.base, a)} if a.base else {})
            | ({"groups": group_record(a)} if a.groups else {})
            for a in plan.schema.attributes
        ],
        "optimality": {
            "objective": objective,
            "gamma": plan.bracket[1],
            "gamma_lower": plan.bracket[0],
            "certified_gap": plan.gap,
            "lower_bound": None if plan.public else plan.bound.as_dict(plan.error),
            "method": plan.noise.method,
        },
        "noise": {
            "query": (
                "for every measured set T of attributes, multiplier_T * kron(C_i, i in T) on its "
                "marginal counts; "
                "C_i = (1, -1) for two categories, n I - 1 1^T for n > 2"
                + (", unless contrasts_i are listed" if contrasts else "")
                + "; discrete Gaussian noise on every integer"
            ),
            **({"contrasts": contrasts} if contrasts else {}),
            **({} if query.unit == 1 else {"unit": _unit(plan)}),
            "integer_sensitivity_squared": query.query.sensitivity_squared if query.query else 0,
            "sigma": query.query.scale if query.query else 0.0,
            "rho_of_one_row": query.query.rho if query.query else 0.0,
        },
        "plan": plan.asked.record(),
        "request_sha256": plan.request_sha256,
        "intervals": interval_record(),
        **({} if plan.domain.is_cells else {"workload": _workload(release, answers)}),
        "marginals": None,  # filled once the tables are written
        "measurements": None,
        "files": None,
        "libraries": dict(versions(*_LIBRARIES)),
        "disclaimers": disclaimers(release),
    }


def _unit(plan: "Plan") -> dict[str, object]:
    """Return the unit of the integer counts, where one row adds more than one."""
    meaning = (
        "a row adds so many units to the integer counts of every table, spread over the virtual "
        "cells of a clipped number x: t of them on the last cell and 1 - t on the first, t = (x - "
        "low) / (high - low) in steps of 1 / unit; with three cells, (1 - t)^2, 2 t (1 - t), t^2"
    )
    if plan.weight is not None:
        meaning += "; a row of weight w adds w / most of it"
    weight = {} if plan.weight is None else {"weight": dataclasses.asdict(plan.weight)}
    return {"units_of_a_row": plan.unit, "meaning": meaning, **weight}


def read_release(
    plan: "Plan", directory: str | os.PathLike[str]
) -> tuple[bool, float, OnOutside, tuple[str, ...], StoredTables]:
    """Return what a release of ``plan`` says, and its tables.

    In this order: whether it is private, the ρ charged, how rows outside the schema were treated,
    the attributes that are timestamps of unknown time zone, and the tables. All files are checked
    against the record.
    """
    folder = Path(directory)
    try:
        record = read_json(folder / "release.json", _most_bytes(plan))
        if record["format"] not in (_FORMAT, OLD_TABLES):
            raise OutputError(
                f"load: expected format {_FORMAT!r} in {folder}, got another; hint: the version "
                "that wrote it"
            )
        if record["request_sha256"] != plan.request_sha256:
            raise OutputError(
                f"load: {folder} holds the release of another plan; hint: the same arguments of "
                "plan()"
            )
        fault = folder_fault(folder, record["files"], every=record["format"] != OLD_TABLES)
        if fault is not None:
            raise OutputError(f"load: in {folder}, {fault}; hint: the folder as it was written")
        places = _places(plan, folder, record)
        private, rho = record["private"], record["rho"] or 0.0
        on_outside: OnOutside = record.get("on_outside", "refuse")
        zoneless = record.get("without_time_zone", [])
        whole = (
            type(private) is bool and type(rho) is float and set(places) == set(plan.tables.subsets)
        )
        whole = whole and type(on_outside) is str and on_outside in get_args(OnOutside)
        whole = whole and type(zoneless) is list and set(zoneless) <= set(plan.schema.names)
        if not (whole and all(place.file in record["files"] for place in places.values())):
            raise ValueError
        calibrated = record["noise"]["sigma"], record["noise"].get("contrasts", {})
    except OutputError:
        raise
    except (OSError, GaussNoiseError, *MALFORMED) as error:
        raise OutputError(
            f"load: {folder} is not a complete release ({type(error).__name__})"
        ) from None
    query = plan.query.query
    charged = plan.rho_charged if private else 0.0
    if rho != charged or calibrated != (
        query.scale if query is not None else 0.0,
        contrasts_of(plan),
    ):
        raise OutputError(
            f"load: {folder} was calibrated by another version or machine; hint: its files are "
            "intact, read them as "
            "they are"
        )
    return private, rho, on_outside, tuple(zoneless), StoredTables(folder, places)


def _most_bytes(plan: "Plan") -> int:
    """Return a bound on the length of the record of a release of this plan."""
    texts = [
        str(label)
        for a in plan.schema.attributes
        for label in (a.name, *a.labels, *(a.edges or ()), *group_texts(a))
    ]
    terms, attributes = () if plan.domain.is_cells else plan.domain.terms, plan.schema.attributes
    asked = [(a.base, a) for a in attributes if a.base]
    asked += [(base, attributes[i]) for term in terms for i, base in term]
    texts += [json.dumps(base_value(base, a)) for base, a in asked]
    contrasts = sum(len(row) for rows in contrasts_of(plan).values() for row in rows)
    entries = len(terms) + min(len(plan.tables.subsets), MOST_FILES)
    names = entries * sum(len(a.name) for a in plan.schema.attributes)
    return (
        MOST_RECORD
        + 64 * (sum(map(len, texts)) + len(texts))
        + 2 * contrasts
        + 4096 * entries
        + 8 * names
        + _BYTES_OF_PIECES * plan.tables.dim // 2**20
    )


def _places(plan: "Plan", folder: Path, record: dict[str, Any]) -> dict[Subset, Place]:
    """Return the place of each table, from the record."""
    entries = record["marginals"]
    if isinstance(entries, dict):
        if entries["file"] not in record["files"]:
            raise ValueError
        entries = read_index(
            folder / entries["file"], len(plan.tables.subsets), len(plan.schema.names)
        )
    sizes, places = dict(zip(plan.schema.names, plan.schema.sizes, strict=True)), {}
    for entry in entries:
        S = tuple(sorted(plan.subset(tuple(entry["attributes"]))))
        shape = tuple(sizes[plan.schema.names[i]] for i in S)
        file, first_row = entry["file"], entry["first_row"]
        if type(file) is not str or type(first_row) is not int or first_row < 0:
            raise TypeError
        places[S] = Place(file, first_row, shape)
    return places


def _listed(folder: Path, name: str, entries: list[dict[str, object]]) -> object:
    """Return the entries themselves, or the name of the file they are written to if many."""
    import pyarrow as pa
    from pyarrow import parquet

    if len(entries) <= MOST_FILES:
        return entries
    parquet.write_table(pa.Table.from_pylist(entries), folder / f"{name}.parquet")
    return {"file": f"{name}.parquet", "count": len(entries)}


def _marginals(release: "TableRelease") -> list[dict[str, object]]:
    plan = release.plan
    return [
        {
            "attributes": list(marginal),
            "cells": plan.tables.cells(S),
            **({"weight": plan.domain.weights[k]} if plan.domain.is_cells else {}),
            **_deviation(release, S),
        }
        for k, (marginal, S) in enumerate(zip(release, plan.tables.subsets, strict=True))
    ]


def _deviation(release: "TableRelease", S: Subset) -> dict[str, object]:
    """Return one deviation for all cells, or the smallest and largest; tables hold them all."""
    pieces = boxes([release.plan.schema.sizes[i] for i in S], _CELLS_AT_ONCE) if S else [()]
    if not (one := release.deviation(S, pieces[0])).ndim:
        return {"standard_deviation": float(one)}
    least, most = math.inf, 0.0
    for box in pieces:
        deviations = release.deviation(S, box)
        least, most = min(least, float(deviations.min())), max(most, float(deviations.max()))
    return {"standard_deviation": [least, most]}


def _workload(release: "TableRelease", answers: Mapping[int, str]) -> list[dict[str, object]]:
    """Return what was asked for, where that is more than cells."""
    plan = release.plan
    entries = zip(plan.domain.terms, plan.domain.weights, plan.deviations, strict=True)
    return [
        {
            "name": plan.entries[k],
            "bases": {
                plan.schema.names[i]: base_value(base, plan.schema.attributes[i])
                for i, base in term
            },
            "answers": math.prod(base.queries for _, base in term),
            "weight": weight,
            "root_mean_square_deviation": float(deviation),
            "file": answers.get(k),
        }
        for k, (term, weight, deviation) in enumerate(entries)
    ]


def contrasts_of(plan: "Plan") -> dict[str, list[str]]:
    """Return the integer matrices measured instead of the usual ones, a string for each row."""
    strategies = zip(plan.schema.names, plan.strategies, strict=True)
    return {
        name: [" ".join(map(str, row)) for row in strategy.contrasts.tolist()]
        for name, strategy in strategies
        if isinstance(strategy, SolvedStrategy)
    }


def _measurements(release: "TableRelease") -> list[dict[str, object]]:
    names = release.plan.schema.names
    return [
        # as text, because they exceed 64 bits where budgets are extreme
        {"attributes": [names[i] for i in T], "multiplier": str(multiplier)}
        for T, multiplier in release.query.multipliers.items()
    ]
