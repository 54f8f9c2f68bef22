"""Files of a release. A folder is complete, or does not exist."""

import contextlib
import itertools
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from domains.description import describe
from domains.errors import InvalidDomainError

from ...errors import OutputError, ParameterError
from ...files.disk import aside, check_parent, digests_in, read_json
from ...solvers.progress import Counted
from ...solvers.tables.residuals import Subset
from ...text import printable
from ..planning.again import NOISE
from ..planning.facts import marginal_name, persons_text
from ..schema.schema import Schema
from .formats import FORMATS, format_of
from .formats.format import NUMBER_FORMAT, AbstractBook, Notes
from .marks import marks_of
from .method import attributes_of, statement_of, texts_of
from .noisy import AbstractRelease
from .record import marginal_records, measurement_records, release_record
from .store import (
    MOST_FILES,
    MOST_READ,
    AbstractTableWriter,
    Answers,
    FileFormat,
    StoredTables,
    book_file,
    file_names,
    table_writer,
)
from .sums import means, summed_in, with_means
from .text import release_text

if TYPE_CHECKING:
    from ..planning.plan import Plan

Array = NDArray[np.float64]

_OTHER_FORMAT = 'hint: format="csv" or "parquet"'
_MOST_ANSWERS = 10**7  # most answers of an entry that are written
BRIEF = {"count": "0.0", "mean": "0.00", "low": "0.00", "high": "0.00"}  # number formats of means


def check_format(format: str, schema: Schema, subsets: Sequence[Subset]) -> None:
    """Raise ParameterError if a format is unknown, or cannot hold the tables.

    ``subsets`` are the tables, each as the indices of its attributes in ``schema``.
    """
    if format not in get_args(FileFormat):
        known = " or ".join(f'"{name}"' for name in FORMATS)
        raise ParameterError(f"save: expected format {known}, got {format!r}")
    wanted, marginals = FORMATS[format], len(subsets)
    if not wanted.holds_many and marginals > MOST_FILES:
        raise ParameterError(
            f"save: expected at most {MOST_FILES} marginals in {format.upper()} files, got "
            f'{marginals}; hint: format="parquet" writes one dataset'
        )
    cells = max((math.prod(schema.sizes[i] for i in S) for S in subsets), default=0)
    if cells > wanted.most_rows:
        raise ParameterError(
            f"save: expected tables of at most {wanted.most_rows} cells for {format.upper()}, got "
            f"one of {cells}; {_OTHER_FORMAT}"
        )
    attributes = [schema.attributes[i] for i in {i for S in subsets for i in S}]
    texts = [str(text) for a in attributes for text in (a.name, *a.labels)]
    # characters beyond the first 2¹⁶ count twice, as in Excel's limits
    lengths = (len(text.encode("utf-16-le", "surrogatepass")) // 2 for text in texts)
    if (longest := max(lengths, default=0)) > wanted.longest_text:
        raise ParameterError(
            f"save: expected names and labels of at most {wanted.longest_text} characters for "
            f"{format.upper()}, got one of {longest}; {_OTHER_FORMAT}"
        )


@contextlib.contextmanager
def staged(directory: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a scratch folder that is renamed to ``directory`` at the end, or deleted on failure."""
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
    """An error of the user's callback, wrapped so that it is not taken for a failure to write."""


@contextlib.contextmanager
def as_itself(progress: bool | Counted | None) -> Iterator[bool | Counted | None]:
    """Yield ``progress``, wrapped so that its own errors pass through unchanged.

    An error of a callback is raised again after the block, and is not taken for a failure to write.
    """

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
    raise error from error.__cause__  # with the traceback of the callback alone


def save_release(
    release: AbstractRelease,
    directory: str | os.PathLike[str],
    format: FileFormat,
    verifier: bool = False,
) -> None:
    """Write all files of a release to a new directory."""
    check_format(format, release.plan.schema, release.plan.tables.subsets)
    check_parent(Path(directory), "save")
    with staged(directory) as folder:
        document = document_of(release, answer_files(release, format, MOST_READ))
        with writer_of(release, folder, format, document.notes, document.answers) as writer:
            for S in release.plan.tables.subsets:
                writer.write(S, release.tables[S])
        document = replace(document, texts={**document.texts, **copied(verifier)})
        write_document(
            document, replace(release, tables=writer.tables), folder, _software_entries(release)
        )


def _software_entries(release: AbstractRelease) -> dict[str, object]:
    """Return the recorded software that drew the noise of a stored release; {} for others."""
    if not isinstance(release.tables, StoredTables):
        return {}
    record = read_json(release.tables.folder / "release.json")
    return {name: record[name] for name in ("executors", "libraries") if name in record}


def copied(verifier: bool) -> dict[str, str]:
    """Return {path: content} of the verifier's programs, to be copied into a folder.

    The result is empty unless ``verifier`` is true.
    """
    own = sorted((Path(__file__).parents[2] / "verifier").glob("[!_]*.py")) if verifier else []
    return {f"verifier/{path.name}": path.read_text(encoding="utf-8") for path in own}


def writer_of(
    release: AbstractRelease,
    folder: Path,
    format: FileFormat,
    notes: Notes,
    answers: Mapping[int, str],
) -> AbstractTableWriter:
    """Return a writer of the tables of a release to files.

    ``answers`` says which workload entries will have their answers written too.
    """
    plan, later = release.plan, answered(release, answers)
    subsets = plan.tables.subsets
    return table_writer(folder, plan.schema, subsets, release.deviation, format, notes, later)


@dataclass(frozen=True, eq=False)
class Document:
    """All files of a release except its tables, known before any data are read.

    Attributes:
        record: ``release.json`` without the locations of tables and the digests of files.
        marginals: the record's entry for every table, without the location of the table.
        measurements: the record's entry for every noisy measurement.
        summary: ``summary.txt``.
        notes: sentences for the method statement, by heading.
        texts: {name: content} of further text files.
        answers: {index of a workload entry: its file}, for entries with queries other than cells.
        proven: whether the optimal noise is stored, so that it need not be solved for again.
    """

    record: Mapping[str, object]
    marginals: list[dict[str, object]]
    measurements: list[dict[str, object]]
    summary: str
    notes: Notes
    texts: Mapping[str, str]
    answers: Mapping[int, str]
    proven: bool


def rehearsed(
    blank: AbstractRelease,
    format: FileFormat,
    most_cells: int = MOST_READ,
    *,
    verifier: bool = False,
) -> Document:
    """Return the document (all files except tables) of a release whose tables are still zero.

    All errors that need no data are raised here. After this, a charged release only counts, draws,
    decodes, and writes. No answers are written for tables of more than ``most_cells`` cells: such
    answers can be computed from the tables.
    """
    import pyarrow as pa

    plan = blank.plan
    for attribute in plan.schema.attributes:
        pa.array(attribute.labels)
    document = document_of(blank, answer_files(blank, format, most_cells))
    for own in answered(blank, document.answers):
        rows_of(blank, own)
    json.dumps([document.record, document.marginals, document.measurements])
    return replace(document, texts={**document.texts, **copied(verifier)})


def document_of(release: AbstractRelease, answers: Mapping[int, str]) -> Document:
    """Return the document of a release (all files except its tables).

    ``answers`` is {index of a workload entry: its file}.
    """
    notes = statement_of(release)
    return Document(
        release_record(release, answers),
        marginal_records(release),
        measurement_records(release),
        release_text(release),
        notes,
        texts_of(attributes_of(release.plan), notes, release.plan.about),
        answers,
        _stores_noise(release.plan),
    )


def _stores_noise(plan: "Plan") -> bool:
    """Return whether to store a plan's noise: if files can hold it, and solving is slow."""
    if plan.domain.is_cells or len(plan.query.multipliers) > MOST_FILES or plan.privacy.scales:
        return False  # with budgets that grow with numbers, solving is fast
    try:
        describe(plan.domain)
    except InvalidDomainError:  # a base of the user's own that has no name in files
        return False
    return True


def write_document(
    document: Document,
    release: AbstractRelease,
    folder: Path,
    more: Mapping[str, object] | None = None,
) -> None:
    """Write the files of a release beside its tables.

    The files are ``answers/``, ``release.png``, ``summary.txt`` and other texts. ``release.json``
    is written last, with the further entries ``more``.
    """
    write_answers(release, document.answers, folder, document.notes)
    draw_picture(release, folder / "release.png")
    write_record(document, release, folder, {}, more)


def write_answers(
    release: AbstractRelease, answers: Mapping[int, str], folder: Path, notes: Notes
) -> None:
    """Write tidy answers for workload entries with queries other than cells.

    The answers are computed from the tables, hence at no further privacy cost. The name of a file
    ends in its format; answers are added to a workbook that has all tables.
    """
    for k, own in enumerate(answered(release, answers), len(release.plan.tables.subsets)):
        name = answers[own.entry]
        format = format_of(name)
        if isinstance(format, AbstractBook):
            format.add(folder / name, k, rows_of(release, own))
        else:
            (folder / name).parent.mkdir(exist_ok=True)
            write_answer(release, own.entry, name, folder / name, notes)


def write_answer(release: AbstractRelease, entry: int, name: str, path: Path, notes: Notes) -> None:
    """Write the answers to one workload entry to a separate file, in the format of ``name``."""
    rows = _answer_rows(release, entry)
    with format_of(name).writer(path, rows.schema, notes) as file:
        file.write_table(rows)


def rows_of(release: AbstractRelease, own: Answers) -> Any:
    """Return the rows of a table of answers; a brief table has only counts and means."""
    return (_mean_rows if own.is_brief else _answer_rows)(release, own.entry)


def _answer_rows(release: AbstractRelease, entry: int) -> Any:
    """Return the answers to one workload entry as a tidy pyarrow table."""
    return with_means(release, release.plan.domain.terms[entry]).to_arrow()


def _mean_rows(release: AbstractRelease, entry: int) -> Any:
    """Return counts and means by group as a pyarrow table; the last row is for all groups."""
    import pyarrow as pa

    plan, term = release.plan, release.plan.domain.terms[entry]
    summed, names = summed_in(term), plan.schema.names
    groups = tuple(names[i] for i, _ in term if i != summed)
    rows = []
    for given in dict.fromkeys([groups, ()]):
        table = means(release, names[summed or 0], given)
        parts = table.counts, table.estimate, *table.confidence_interval()
        marks = marks_of(table.estimate, table.standard_deviation)
        numbers = zip(*(np.ravel(part).tolist() for part in (*parts, marks)), strict=True)
        total = ("Total", *[""] * len(groups))[: len(groups)]
        labels = itertools.product(*table.labels) if given else [total]
        rows += [(*map(str, own), *cell) for own, cell in zip(labels, numbers, strict=True)]
    text = pa.string()
    fields = [pa.field(name, text) for name in groups]
    fields += [
        pa.field(name, pa.float64(), metadata={NUMBER_FORMAT: shown})
        for name, shown in BRIEF.items()
    ]
    schema = pa.schema([*fields, pa.field("mark", text)])
    columns = zip(*rows, strict=True)
    arrays = [pa.array(own, field.type) for own, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def answered(release: AbstractRelease, answers: Mapping[int, str]) -> list[Answers]:
    """Return a description of each table of answers that is written.

    In a workbook, an entry with a summed number has two tables: a brief table of means, and a table
    of all its answers.
    """
    plan, found = release.plan, []
    for k, file in answers.items():
        term, title = plan.domain.terms[k], plan.entries[k]
        subset = tuple(sorted({i for i, _ in term}))
        if (summed := summed_in(term)) is not None:
            name = plan.schema.names[summed]
            groups = tuple(plan.schema.names[i] for i, _ in term if i != summed)
            said, of = plan.schema.heading(name), tuple(map(plan.schema.heading, groups))
            by = f" by {marginal_name(of)}" if groups else ""
            if isinstance(format_of(file), AbstractBook):
                brief = f"Mean of {said}{by}{persons_text(plan, name)}"
                found.append(Answers(k, subset, brief, is_brief=True))
            title = f"{said}{by}: counts, sums, means"
        found.append(Answers(k, subset, title, is_brief=False))
    return found


def draw_picture(release: AbstractRelease, path: Path) -> None:
    """Write the picture of a release to ``path``; write no file if it cannot be drawn."""

    def drawn() -> Any:
        from .release_plot import plot_release

        return plot_release(release)

    save_figure(drawn, path)


def save_figure(drawn: Callable[[], Any], path: Path) -> None:
    """Write the picture that ``drawn`` returns; write no file if it cannot be drawn."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            drawn().savefig(path, dpi=150, format="png")
    except Exception:  # noqa: BLE001 (a label that cannot be drawn must not undo a release)
        path.unlink(missing_ok=True)


def write_record(
    document: Document,
    release: AbstractRelease,
    folder: Path,
    digests: Mapping[str, str],
    more: Mapping[str, object] | None = None,
) -> None:
    """Write ``summary.txt``, the files that describe the tables, and at last ``release.json``.

    Args:
        document: the document of the release.
        release: the release, whose tables are files inside the folder.
        folder: the folder of the release.
        digests: sha256 of files that need not be read again.
        more: further entries of the record.
    """
    (folder / "summary.txt").write_text(printable(document.summary) + "\n", encoding="utf-8")
    write_texts(folder, document.texts)
    if document.proven:
        release.plan.noise.save(folder / NOISE)
    write_listed(folder, "marginals", placed(document.marginals, release))
    write_listed(folder, "measurements", document.measurements)
    record = whole_record(document, release, digests_in(folder, digests), more or {})
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / "release.json").write_text(text + "\n", encoding="utf-8")


def whole_record(
    document: Document,
    release: AbstractRelease,
    files: Mapping[str, str],
    more: Mapping[str, object],
) -> dict[str, object]:
    """Return the whole content of ``release.json``, from the parts that ``document`` has.

    ``files`` is {path: sha256} of the other files, and ``more`` has further entries. The result is
    written to disk, and compared with the record on disk when a release is loaded.
    """
    return {
        **document.record,
        **more,
        "marginals": listed("marginals", placed(document.marginals, release)),
        "measurements": listed("measurements", document.measurements),
        "files": files,
    }


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write text files, given {name: content}."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def answer_files(release: AbstractRelease, format: FileFormat, most_cells: int) -> dict[int, str]:
    """Return {index of a workload entry: its file} for the entries whose answers are written.

    These entries have queries other than cells, and tables of at most ``most_cells`` cells.
    """
    schema, domain = release.plan.schema, release.plan.domain
    if domain.is_cells or len(domain.terms) > MOST_FILES:
        return {}
    format = "parquet" if len(release) > MOST_FILES else format
    named = [[schema.names[i] for i, _ in term] or ["total"] for term in domain.terms]
    own = FORMATS[format]
    # unlike the names of tables, since a reader may put all files in one place
    files = file_names([(f"answers-{first}", *rest) for first, *rest in named], format, "answers")
    if isinstance(own, AbstractBook):
        files = [book_file(own)] * len(files)
    most = min(_MOST_ANSWERS, own.most_rows // 2)  # means need further rows beside those of sums
    return {
        k: file
        for k, (file, term) in enumerate(zip(files, domain.terms, strict=True))
        if not all(base.is_identity for _, base in term)
        and domain.queries(term) <= most
        and math.prod(schema.sizes[i] for i, _ in term) <= most_cells
    }


def placed(marginals: list[dict[str, object]], release: AbstractRelease) -> list[dict[str, object]]:
    """Return the entries of tables in the record, with the file and first row of each table."""
    places = release.tables.places if isinstance(release.tables, StoredTables) else {}
    return [
        {"attributes": of["attributes"], "file": places[S].file, "first_row": places[S].first_row}
        | of
        for of, S in zip(marginals, release.plan.tables.subsets, strict=True)
    ]


def listed(name: str, entries: list[dict[str, object]]) -> object:
    """Return entries of the record, or, if there are many, the name of the file with them."""
    if len(entries) <= MOST_FILES:
        return entries
    return {"file": f"{name}.jsonl", "count": len(entries)}


def write_listed(folder: Path, name: str, entries: list[dict[str, object]]) -> None:
    """Write the entries of a record to a file in JSON lines, but only if there are many."""
    if len(entries) > MOST_FILES:
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(entry)}\n" for entry in entries)
