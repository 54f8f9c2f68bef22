"""Reading a release from disk, if all of it agrees with its plan."""

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np

from domains.tables.bases import Base

from ...errors import GaussNoiseError, OutputError, another_format
from ...files.agree import first_difference, text_difference
from ...files.disk import MALFORMED, folder_fault, opened, read_json
from ...privacy.ledger_results import OLD_TABLES
from ...solvers.tables.residuals import Subset
from ...text import printable
from ..schema.schema import OnOutside
from .files import BRIEF, answer_files, answered, document_of, placed, rows_of, whole_record
from .formats import FileFormat, format_name, format_of
from .formats.format import AbstractBook
from .noisy import AbstractRelease
from .record import ASSUMED, CONTRASTS, FORMAT, contrasts_of, most_bytes
from .store import (
    MOST_CHECKED,
    MOST_OF_AN_ENTRY,
    MOST_READ,
    Place,
    StoredTables,
    different_column,
    is_part,
    planned_places,
    read_index,
    read_numbers,
)
from .tidy import NUMBERS

if TYPE_CHECKING:
    from ..planning.plan import Plan

R = TypeVar("R", bound=AbstractRelease)

_VERSION = re.compile(r"\d+(\.\d+)*[\w.+-]{0,40}", re.ASCII)
_RUN = re.compile(r"[0-9a-f]{16}")


def is_versions(value: Any) -> bool:
    """Return whether a value from a record has the form {library: version}."""
    return type(value) is dict and all(
        type(own) is str and _VERSION.fullmatch(own) for own in value.values()
    )


def is_witness(value: Any) -> bool:
    """Return whether a value from a record has the form of a lower bound's proof.

    The proof is a measure: a list of sets of attributes in which two rows differ, with weights.
    """
    return type(value) is list and all(
        own.keys() == {"differing", "weight"}
        and all(type(name) is str for name in own["differing"])
        and type(own["weight"]) is float
        and 0 <= own["weight"] <= 1
        for own in value
    )


# The fields of a record that the plan does not determine, and their forms. In addition, private,
# on_outside and without_time_zone must agree with the rest of the record and with the texts, and
# the locations of tables with their files.
FREE: Mapping[str, Callable[[Any], bool]] = {
    "private": lambda value: type(value) is bool,
    "on_outside": lambda value: value in get_args(OnOutside),
    "without_time_zone": lambda value: all(type(name) is str for name in value),
    "libraries": is_versions,
    "executors": lambda value: _RUN.fullmatch(value.get("run", "0" * 16)) is not None,
}
# fields that are compared even if another version wrote the record
_NUMBERS = (
    *("neighbors", "rows_per_person", "person", "rho", "marginals", "measurements"),
    *("rows_per_person_and_tick", "rho_of_all_ticks", "cumulative", "period"),  # fields of a tick
)
# fields inside ``noise``: about the integers that are drawn, and the budget they spend
_DRAWN = ("sigma", *CONTRASTS, "integer_sensitivity_squared", "rho_of_one_row")
_SIMULATED = "NOT PRIVATE:"  # begins a line in the summary of simulations only
_MOST_BYTES = 4  # most bytes of a character


def read_release(blank: R, directory: str | os.PathLike[str]) -> R:
    """Return a release with the tables in a folder, if the folder agrees with its plan.

    All files are compared with their sha256 in the record. The texts, and the record except its
    :data:`FREE` fields, are compared with those that this plan makes. Deviations and intervals in
    the files are compared with the plan and the estimates.

    Args:
        blank: a release of the plan, with any tables.
        directory: the folder.
    """
    plan, folder = blank.plan, Path(directory)
    try:
        record = read_json(folder / "release.json", most_bytes(plan))
        if record["format"] not in (FORMAT, OLD_TABLES):
            raise another_format("load", FORMAT, folder)
        if record["request_sha256"] != plan.request_sha256:
            raise OutputError(
                f"load: {folder} holds the release of another plan; hint: the same arguments of "
                "plan()"
            )
        fault = folder_fault(folder, record["files"], every=record["format"] != OLD_TABLES)
        if fault is not None:
            raise faulty(folder, fault)
        stated = {name: record[name] for name in FREE if name in record}
        tables = StoredTables(folder, table_places(plan, folder, record))
        if not (
            all(FREE[name](value) for name, value in stated.items())
            and {*tables.places} == {*plan.tables.subsets}
            and {place.file for place in tables.places.values()} <= {*record["files"]}
        ):
            raise ValueError
        private, rho = record["private"], record["rho"] or 0.0
        charged = plan.rho_charged if private else 0.0
        drawn = record["noise"]
        calibrated = drawn["sigma"], {key: drawn[key] for key in CONTRASTS if key in drawn}
        query = plan.query.query
        scale = 0.0 if query is None else query.scale
        if rho != charged or calibrated != (scale, contrasts_of(plan)):
            raise OutputError(
                f"load: {folder} was calibrated by another version or machine; hint: its files are "
                "intact, read them as they are"
            )
        release = replace(
            blank,
            private=private,
            rho_charged=plan.rho_charged,
            tables=tables,
            on_outside=record.get("on_outside", "refuse"),
            without_zone=tuple(record.get("without_time_zone", ())),
        )
        if (fault := _disagreement(release, tables, record)) is not None:
            raise faulty(folder, fault)
    except OutputError:
        raise
    except (OSError, GaussNoiseError, *MALFORMED) as error:
        raise OutputError(
            f"load: {folder} is not a complete release ({type(error).__name__})"
        ) from None
    return release


def faulty(folder: Path, fault: str) -> OutputError:
    """Return the error to raise for a release's folder that has this fault."""
    return OutputError(f"load: in {folder}, {fault}; hint: the folder as it was written")


def _disagreement(
    release: AbstractRelease, tables: StoredTables, record: Mapping[str, Any]
) -> str | None:
    """Return in words the first disagreement of a release with its plan; None if none."""
    files = record["files"]
    answers = answer_files(release, format_of_tables(tables), MOST_READ)
    if "executors" in record:  # these write no answers from huge tables
        answers = {k: name for k, name in answers.items() if name in files}
    document = document_of(release, answers)
    free = executors_in(record)
    expected = whole_record(document, release, files, free)
    if "plan" not in record:  # releases of earlier versions have none
        del expected["plan"]
    texts = {"summary.txt": printable(document.summary) + "\n", **document.texts}
    lists = {"measurements": document.measurements}
    lists["marginals"] = placed(document.marginals, release)
    as_matrix = any(type(base) is Base for term in release.plan.domain.terms for _, base in term)
    return (
        difference(tables.folder, expected, record, texts, as_matrix=as_matrix)
        or list_difference(release.plan, tables.folder, record, **lists)
        or tables.fault(release.deviation)
        or answers_fault(release, tables.folder, answers)
    )


def executors_in(record: Mapping[str, Any]) -> dict[str, object]:
    """Return the entry that the record must have if Spark's executors made the tables; else {}."""
    if "executors" not in record:
        return {}
    run = {"run": record["executors"]["run"]} if "run" in record["executors"] else {}
    return {"executors": {**run, "how": ASSUMED}}


def difference(
    folder: Path,
    expected: dict[str, Any],
    record: Mapping[str, Any],
    texts: Mapping[str, str],
    file: str = "release.json",
    as_matrix: bool = False,
) -> str | None:
    """Return the first difference between a record or a text in a folder and the expected ones.

    None is returned if nothing differs.

    If another version wrote the record, only the :data:`_NUMBERS` are compared, and whether the
    summary is that of a simulation. If a base is stored as its matrix, all is compared except texts
    and names of queries, which may come from the base's class.
    """
    expected = json.loads(json.dumps(expected))
    witness = record.get("optimality", {}).get("witness")
    if "witness" in expected.get("optimality", {}) and is_witness(witness):
        expected["optimality"]["witness"] = witness
    versions, others = expected["libraries"], record["libraries"]
    if not is_versions(others):
        raise ValueError
    ours = record["format"] == expected["format"]
    ours = ours and others["gaussnoise"] == versions["gaussnoise"]
    if ours:
        expected["libraries"] = {name: others.get(name, "a version") for name in versions}
        if as_matrix:
            expected, record = _nameless(expected), _nameless(record)
    else:
        both = {*_NUMBERS} & {*expected} & {*record}
        expected, record = (
            {name: one[name] for name in both}
            | {name: one["noise"][name] for name in _DRAWN if name in one.get("noise", ())}
            for one in (expected, record)
        )
    if (found := first_difference(expected, record)) is not None:
        return _other_plan(file, found)
    stored = {name: _text_in(folder / name, len(text)) for name, text in texts.items()}
    for name, text in texts.items() if ours and not as_matrix else ():
        if (found := text_difference(text, stored[name])) is not None:
            return _other_plan(name, found)
    said = (texts.get("summary.txt", ""), stored.get("summary.txt", ""))
    if len({_SIMULATED in own for own in said}) > 1:
        return f"'summary.txt' and {file!r} disagree whether this is a simulation"
    return None


def _other_plan(file: str, found: str) -> str:
    """Return the fault of a file that differs from what the plan says, as ``found`` says."""
    return f"{file!r} does not follow from its plan: {found}"


def list_difference(
    plan: "Plan", folder: Path, record: Mapping[str, Any], **lists: Sequence[Mapping[str, object]]
) -> str | None:
    """Return in words the first entry of a list, kept in a file, that disagrees with the plan.

    None is returned if all entries agree.

    ``lists`` are {name of a list in the record: its expected entries}.
    """
    for name, entries in lists.items():
        if isinstance(record.get(name), dict):
            file = f"{name}.jsonl"
            got = read_index(folder / file, len(entries), _longest(plan))
            if (found := first_difference(json.loads(json.dumps(entries)), got)) is not None:
                return _other_plan(file, found)
    return None


def _longest(plan: "Plan") -> int:
    """Return an upper bound on the bytes of one entry in a record's lists."""
    return len(json.dumps(plan.schema.names)) + MOST_OF_AN_ENTRY


def _nameless(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a record without the names of the workload's entries."""
    named = record["workload"]
    return {**record, "workload": [{k: x for k, x in of.items() if k != "name"} for of in named]}


def _text_in(path: Path, length: int) -> str:
    """Return the text of a file; a text much longer than ``length`` characters is cut."""
    with opened(path) as file:
        return file.read(_MOST_BYTES * (length + 1)).decode()


def answers_fault(release: AbstractRelease, folder: Path, answers: Mapping[int, str]) -> str | None:
    """Return the first file of answers that disagrees with the tables, in words; or None."""
    kept = release.kept()
    domain, sizes = release.plan.domain, release.plan.schema.sizes
    for number, own in enumerate(answered(release, answers), len(release.plan.tables.subsets)):
        term, name = domain.terms[own.entry], answers[own.entry]
        cells, format = math.prod(sizes[i] for i, _ in term), format_of(name)
        if max(cells, domain.queries(term)) > MOST_CHECKED:
            continue
        rows, columns = rows_of(kept, own), [*BRIEF] if own.is_brief else NUMBERS
        if len({*rows.schema.names}) < len(rows.schema):  # an attribute is named like a column
            continue
        expected = {column: rows[column].to_numpy() for column in columns}
        finite = all(np.isfinite(own).all() for own in expected.values())
        if not finite and not format.holds_infinite:
            continue
        first = format.row_of(number) if isinstance(format, AbstractBook) else format.first_row
        got = read_numbers(folder / name, columns, first, rows.num_rows)
        column = different_column(expected, dict(zip(columns, got, strict=True)))
        if column is not None:
            return f"the column {column!r} of {name!r} does not follow from the tables"
    return None


def format_of_tables(tables: StoredTables) -> FileFormat:
    """Return the name of the format of stored tables."""
    return format_name(next(iter(tables.places.values())).file)


def table_places(plan: "Plan", folder: Path, record: dict[str, Any]) -> dict[Subset, Place]:
    """Return {attribute indices: location of the table}, from the plan or from the record.

    If a file holds many tables, only the record states at which row each table begins.
    """
    entries = record["marginals"]
    if not isinstance(entries, dict) and not all(is_part(entry["file"]) for entry in entries):
        return planned_places(plan.schema, plan.tables.subsets, format_name(entries[0]["file"]))
    if isinstance(entries, dict):
        if entries["file"] not in record["files"]:
            raise ValueError
        count = len(plan.tables.subsets)
        entries = read_index(folder / entries["file"], count, _longest(plan))
    sizes, places = dict(zip(plan.schema.names, plan.schema.sizes, strict=True)), {}
    for entry in entries:
        S = tuple(sorted(plan.subset(tuple(entry["attributes"]))))
        shape = tuple(sizes[plan.schema.names[i]] for i in S)
        file, first_row = entry["file"], entry["first_row"]
        if type(file) is not str or type(first_row) is not int or first_row < 0:
            raise TypeError
        places[S] = Place(file, first_row, shape)
    return places
