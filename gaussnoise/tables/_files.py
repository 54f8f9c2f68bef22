"""A release on disk: all of it, or nothing."""

import contextlib
import json
import math
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from domains import Marginals

from .._ledger import aside, file_digest
from .._progress import Counted
from .._strategies import SolvedStrategy
from .._text import SHOWN_DELTA, versions
from ..errors import OutputError, ParameterError
from ..privacy import gaussian_epsilon, zCDP
from ._bases import base_value
from ._measure import LEAST_STEPS
from ._store import MOST_FILES, FileFormat, Place, StoredTables, file_names, table_writer
from ._text import disclaimers, relation_text, release_text

if TYPE_CHECKING:
    from ._plan import Plan
    from ._release import TableRelease

Array = NDArray[np.float64]

_FORMAT = "gaussnoise.tables/2"
_MOST_ANSWERS = 10**7  # of one entry that are written: more are read off the tables
_LIBRARIES = ("gaussnoise", "opendp", "numpy", "narwhals", "pyarrow", "duckdb")


def check_format(format: str, marginals: int) -> None:
    """Refuse a format that is unknown, or unfit for so many tables."""
    if format not in get_args(FileFormat):
        raise ParameterError(f'save: expected format "csv" or "parquet", got {format!r}')
    if format == "csv" and marginals > MOST_FILES:
        raise ParameterError(
            f"save: expected at most {MOST_FILES} marginals in CSV files, got {marginals}; "
            'hint: format="parquet" writes one dataset'
        )


def check_target(directory: str | os.PathLike[str]) -> None:
    """Refuse a directory that exists, or a parent that cannot be written."""
    target = Path(directory)
    if os.path.lexists(target):
        raise OutputError(f"save: {target} exists already; hint: name a new directory")
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise OutputError(f"save: cannot write to {target.parent}; hint: name a directory inside an existing one")


@contextlib.contextmanager
def staged(directory: str | os.PathLike[str]) -> Iterator[Path]:
    """A scratch directory that becomes ``directory`` at the end, and vanishes on failure."""
    target = Path(directory)
    try:
        with aside(target) as scratch:
            scratch.mkdir()
            yield scratch
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"save: could not complete {target} ({type(error).__name__}); nothing was kept") from None


class _CallbackError(BaseException):
    """Carries an error past whoever would take it for one of writing, or for a refusal."""


@contextlib.contextmanager
def as_itself(progress: bool | Counted | None) -> Iterator[bool | Counted | None]:
    """``progress``; what the caller's own callback raises leaves the block as it is."""

    def call(done: int, total: int) -> None:
        try:
            progress(done, total)  # pyright: ignore[reportCallIssue, reportOptionalCall] (only if callable)
        except Exception as error:  # noqa: BLE001 (whatever it is, it goes back where it came from)
            raise _CallbackError(error) from None

    try:
        yield call if callable(progress) else progress
    except _CallbackError as carrier:
        (error,) = carrier.args
    else:
        return
    raise error from error.__cause__  # and nothing of its carrier


def save_release(release: "TableRelease", directory: str | os.PathLike[str], format: FileFormat) -> None:
    """All files of a release, in a new directory."""
    check_format(format, len(release))
    check_target(directory)
    with staged(directory) as folder:
        plan = release.plan
        with table_writer(folder, plan.schema, plan.tables.subsets, release.deviation, format) as writer:
            for S in plan.tables.subsets:
                writer.write(S, release.tables[S])
        write_record(replace(release, tables=writer.tables), folder)


def write_record(release: "TableRelease", folder: Path) -> None:
    """What goes with the tables: ``answers/``, ``release.json``, ``summary.txt``, ``release.png``."""
    from ..plots import plot_release

    _write_answers(release, folder)
    record = json.dumps(release_record(release, folder), indent=2, ensure_ascii=False)
    (folder / "release.json").write_text(record + "\n", encoding="utf-8")
    (folder / "summary.txt").write_text(release_text(release) + "\n", encoding="utf-8")
    with contextlib.suppress(Exception), warnings.catch_warnings():  # a label it cannot draw must not undo a release
        warnings.simplefilter("ignore", UserWarning)
        plot_release(release).savefig(folder / "release.png", dpi=150)


def _answer_files(release: "TableRelease") -> dict[int, str]:
    """Where the answers to each entry of the workload go, where it asks for more than cells."""
    plan = release.plan
    if isinstance(plan.domain, Marginals) or len(plan.domain.terms) > MOST_FILES:
        return {}
    places = release.tables.places.values() if isinstance(release.tables, StoredTables) else ()
    suffix: FileFormat = "parquet" if any(place.file.endswith(".parquet") for place in places) else "csv"
    names = file_names([tuple(plan.schema.names[i] for i, _ in term) for term in plan.domain.terms], suffix, "answers")
    asked = (all(base.is_identity for _, base in term) for term in plan.domain.terms)
    most = (plan.domain.queries(term) <= _MOST_ANSWERS for term in plan.domain.terms)
    return {k: name for k, (name, cells, few) in enumerate(zip(names, asked, most, strict=True)) if few and not cells}


def _write_answers(release: "TableRelease", folder: Path) -> None:
    """One tidy file for every entry that asks for more than cells: read off the tables, hence at no further cost."""
    from pyarrow import csv, parquet

    plan = release.plan
    for k, name in _answer_files(release).items():
        rows = release.answers({plan.schema.names[i]: base for i, base in plan.domain.terms[k]}).to_arrow()
        (folder / name).parent.mkdir(exist_ok=True)
        write = csv.write_csv if name.endswith(".csv") else parquet.write_table
        write(rows, folder / name)


def release_record(release: "TableRelease", folder: Path) -> dict[str, object]:
    """What a machine, or an auditor, needs to know; nothing in it depends on the data but the estimates' files."""
    plan, query = release.plan, release.query
    contrasts = contrasts_of(plan)
    whose = "cells'" if isinstance(plan.domain, Marginals) else "answers' (with their entry's root mean square)"
    objective = f"p-norm of all {whose} weighted standard deviations at unit sensitivity, p = {plan.noise.p:g}"
    implied = {
        "epsilon": gaussian_epsilon(release.rho_charged, SHOWN_DELTA, query.count, LEAST_STEPS),
        "delta": SHOWN_DELTA,
        "method": "analytic Gaussian (Balle & Wang 2018, Theorem 8), corrected for the lattice",
        "epsilon_through_zcdp": zCDP(release.rho_charged).epsilon(SHOWN_DELTA) if release.rho_charged else 0.0,
    }
    return {
        "format": _FORMAT,
        "private": release.private,
        "neighbors": plan.neighbors,
        "neighbors_meaning": relation_text(plan),
        "privacy_unit": plan.privacy_unit,
        "rows_per_person": plan.rows_per_person,
        "privacy": plan.privacy.as_dict(query.count, LEAST_STEPS),
        "rho": release.rho_charged if release.private else None,
        "epsilon_delta": implied if release.private else None,
        "domain": [
            {"name": a.name, "labels": list(a.labels)}
            | ({"edges": [str(e) for e in a.edges]} if a.edges else {})
            | ({"base": base_value(a.base)} if a.base else {})
            for a in plan.schema.attributes
        ],
        "optimality": {
            "objective": objective,
            "gamma": plan.noise.gamma,
            "gamma_lower": plan.noise.gamma_lower,
            "certified_gap": plan.noise.gap,
            "lower_bound": plan.bound.as_dict(plan.error),
            "method": plan.noise.method,
        },
        "noise": {
            "query": (
                "for every measured set T of attributes, multiplier_T * kron(C_i, i in T) on its marginal counts; "
                "C_i = (1, -1) for two categories, n I - 1 1^T for n > 2"
                + (", unless contrasts_i are listed" if contrasts else "")
                + "; discrete Gaussian noise on every integer"
            ),
            **({"contrasts": contrasts} if contrasts else {}),
            "integer_sensitivity_squared": query.query.sensitivity_squared if query.query else 0,
            "sigma": query.query.scale if query.query else 0.0,
            "rho_of_one_row": query.query.rho if query.query else 0.0,
        },
        "request_sha256": plan.request_sha256,
        **({} if isinstance(plan.domain, Marginals) else {"workload": _workload(release)}),
        "marginals": _listed(folder, "marginals", _marginals(release)),
        "measurements": _listed(folder, "measurements", _measurements(release)),
        "files": {file.relative_to(folder).as_posix(): file_digest(file) for file in _data_files(folder)},
        "libraries": dict(versions(*_LIBRARIES)),
        "disclaimers": disclaimers(release),
    }


def read_release(plan: "Plan", directory: str | os.PathLike[str]) -> tuple[dict[str, Any], StoredTables]:
    """The record of a release of ``plan``, and its tables; every file is checked against the record."""
    from pyarrow import parquet

    folder = Path(directory)
    try:
        record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
        if record["format"] != _FORMAT:
            raise OutputError(
                f"load: expected format {_FORMAT!r} in {folder}, got another; hint: the version that wrote it"
            )
        if record["request_sha256"] != plan.request_sha256:
            raise OutputError(f"load: {folder} holds the release of another plan; hint: the same arguments of plan()")
        damaged = [name for name, sha256 in record["files"].items() if file_digest(folder / name) != sha256]
        entries = record["marginals"]
        if isinstance(entries, dict):
            entries = parquet.read_table(folder / entries["file"]).to_pylist()
        sizes, places = dict(zip(plan.schema.names, plan.schema.sizes, strict=True)), {}
        for entry in entries:
            S = tuple(sorted(plan.subset(tuple(entry["attributes"]))))
            shape = tuple(sizes[plan.schema.names[i]] for i in S)
            places[S] = Place(entry["file"], entry["first_row"], shape)
    except OutputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"load: {folder} is not a complete release ({type(error).__name__})") from None
    if damaged:
        raise OutputError(f"load: {folder / damaged[0]} is not the file that was released; hint: its sha256 differs")
    return record, StoredTables(folder, places)


def _data_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix in (".csv", ".parquet"))


def _listed(folder: Path, name: str, entries: list[dict[str, object]]) -> object:
    """The entries themselves, or the file they are in when they are many."""
    import pyarrow as pa
    from pyarrow import parquet

    if len(entries) <= MOST_FILES:
        return entries
    parquet.write_table(pa.Table.from_pylist(entries), folder / f"{name}.parquet")
    return {"file": f"{name}.parquet", "count": len(entries)}


def _marginals(release: "TableRelease") -> list[dict[str, object]]:
    plan = release.plan
    places = release.tables.places if isinstance(release.tables, StoredTables) else {}
    return [
        {
            "attributes": list(marginal),
            "file": places[S].file,
            "first_row": places[S].first_row,
            "cells": plan.tables.cells(S),
            **({"weight": plan.domain.weights[k]} if isinstance(plan.domain, Marginals) else {}),
            **_deviation(release.deviation(S)),
        }
        for k, (marginal, S) in enumerate(zip(release, plan.tables.subsets, strict=True))
    ]


def _deviation(deviations: Array) -> dict[str, object]:
    """One for all cells, or between which two they lie: the tables hold them all."""
    if not deviations.ndim:
        return {"standard_deviation": float(deviations)}
    return {"standard_deviation": [float(deviations.min()), float(deviations.max())]}


def _workload(release: "TableRelease") -> list[dict[str, object]]:
    """What was asked for, where that is more than cells."""
    plan = release.plan
    entries = zip(plan.domain.terms, plan.domain.weights, plan.deviations, strict=True)
    files = _answer_files(release)
    return [
        {
            "bases": {plan.schema.names[i]: base_value(base) for i, base in term},
            "answers": math.prod(base.queries for _, base in term),
            "weight": weight,
            "root_mean_square_deviation": float(deviation),
            "file": files.get(k),
        }
        for k, (term, weight, deviation) in enumerate(entries)
    ]


def contrasts_of(plan: "Plan") -> dict[str, list[str]]:
    """The integer matrices that are measured instead of the usual ones, a string for each row."""
    strategies = zip(plan.schema.names, plan.strategies, strict=True)
    return {
        name: [" ".join(map(str, row)) for row in strategy.contrasts.tolist()]
        for name, strategy in strategies
        if isinstance(strategy, SolvedStrategy)
    }


def _measurements(release: "TableRelease") -> list[dict[str, object]]:
    names = release.plan.schema.names
    return [
        # as text: beyond 64 bits where budgets are extreme
        {"attributes": [names[i] for i in T], "multiplier": str(multiplier)}
        for T, multiplier in release.query.multipliers.items()
    ]
