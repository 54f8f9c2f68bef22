"""Files of a combined release: its tables, and the releases that it combines."""

import json
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import GaussNoiseError, OutputError
from ...files.disk import MALFORMED, check_parent, digests_in, file_digest, folder_fault, read_json
from ...numerics.intervals import quantile
from ...privacy.per_record import holds_text
from ...text import number_of, printable, versions
from ..planning.facts import Facts, counted_text, marginal_name, relation_text, unit_text
from ..schema.about import About
from .combine import combine
from .files import (
    answer_files,
    check_format,
    copied,
    draw_picture,
    listed,
    placed,
    save_release,
    staged,
    write_answers,
    write_listed,
    write_texts,
    writer_of,
)
from .formats.format import Notes
from .merged import Agreement, MergedPlan
from .method import attributes_of, statement, texts_of
from .noisy import AbstractRelease
from .record import marginal_records
from .release import TableRelease
from .store import MOST_READ, FileFormat, StoredTables
from .stored import (
    answers_fault,
    difference,
    faulty,
    format_of_tables,
    list_difference,
    read_release,
    table_places,
)
from .text import (
    AGREE,
    FOR_SPECIALISTS,
    INTERVALS,
    UNBIASED,
    disclaimers,
    dropped_text,
    numbers_text,
    opening,
)
from .tidy import LEVEL, interval_record

if TYPE_CHECKING:
    from ..planning.plan import Plan

FORMAT = "gaussnoise.combined/1"

_FOLDER = re.compile(r"releases/\d+(-[\w.-]+)?")
_MOST_NAME = 60  # most characters in the name of a folder
_MOST_LINES = 1000  # most tables whose accuracy the summary states


def save_combined(
    release: TableRelease,
    directory: str | os.PathLike[str],
    format: FileFormat,
    verifier: bool = False,
) -> None:
    """Write a combined release to a new folder, together with the releases that it combines."""
    plan: Any = release.plan
    check_format(format, plan.schema, plan.tables.subsets)
    check_parent(Path(directory), "save")
    with staged(directory) as folder:
        places = _write_sources(plan, folder, format)
        said = plan.about
        notes = _statement(release, places, said)
        answers = answer_files(release, format, MOST_READ)
        with writer_of(release, folder, format, notes, answers) as writer:
            for S in plan.tables.subsets:
                writer.write(S, release.tables[S])
        write_answers(release, answers, folder, notes)
        draw_picture(release, folder / "release.png")
        write_texts(folder, _texts(release, places, notes) | copied(verifier))
        stored = replace(release, tables=writer.tables)
        write_listed(folder, "marginals", placed(marginal_records(stored), stored))
        record = _record(stored, folder, places, answers, digests_in(folder))
        text = json.dumps(record, indent=2, ensure_ascii=False)
        (folder / "release.json").write_text(text + "\n", encoding="utf-8")


def _write_sources(plan: MergedPlan, folder: Path, format: FileFormat) -> list[str]:
    """Write or copy the combined releases to ``releases/``, and return their folders' names."""
    (folder / "releases").mkdir()
    places = []
    for k, source in enumerate(plan.releases, 1):
        tables = source.tables
        name = tables.folder.resolve().name if isinstance(tables, StoredTables) else ""
        slug = re.sub(r"[^\w.-]+", "_", re.sub(r"^\d+-", "", name))[:_MOST_NAME]
        places.append(f"releases/{k}" + (f"-{slug}" if slug else ""))
        if isinstance(tables, StoredTables):
            shutil.copytree(tables.folder, folder / places[-1])
            read_release(source, folder / places[-1])
        else:
            save_release(source, folder / places[-1], format)
    return places


def _texts(release: TableRelease, places: Sequence[str], notes: Notes) -> dict[str, str]:
    """Return {name: content} of the text files of a combined release."""
    plan: Any = release.plan
    summary = printable(combined_text(release, places)) + "\n"
    return {"summary.txt": summary, **texts_of(attributes_of(plan), notes, plan.about)}


def _record(
    release: TableRelease,
    folder: Path,
    places: Sequence[str],
    answers: Mapping[int, str],
    files: Mapping[str, str],
) -> dict[str, object]:
    """Return the content of ``release.json``, the record of a combined release."""
    plan: Any = release.plan
    sources = [
        {
            "folder": place,
            "title": title_of(one),
            "id": source.id,
            "rho": source.rho if release.private else None,
            "marginals": [list(marginal) for marginal in source.marginals],
            "sha256": file_digest(folder / place / "release.json"),
        }
        for place, source, one in zip(places, plan.sources, plan.releases, strict=True)
    ]
    agreement: Agreement | None = plan.agreement
    return {
        "format": FORMAT,
        "private": release.private,
        "neighbors": plan.neighbors,
        "neighbors_meaning": relation_text(plan),
        "rows_per_person": plan.rows_per_person,
        "person": plan.person,
        "on_outside": release.on_outside,
        "rho": release.rho_charged if release.private else None,
        "combined_from": sources,
        "agreement": None if agreement is None else agreement._asdict(),
        **({"all_rows_fit": list(plan.fits)} if plan.fits else {}),
        "intervals": interval_record(),
        "answers": [{"name": plan.entries[k], "file": name} for k, name in answers.items()],
        "marginals": listed("marginals", placed(marginal_records(release), release)),
        "files": files,
        "libraries": dict(versions("gaussnoise", "numpy", "scipy", "pyarrow")),
        "disclaimers": disclaimers(release),
    }


def combined_in(directory: str | os.PathLike[str]) -> TableRelease | None:
    """Return the combined release of a folder, computed again; None if the folder has none.

    Raises:
        OutputError: files are missing, altered or added, or one of the releases cannot be read.
    """
    folder = Path(directory)
    try:
        record = read_json(folder / "release.json")
        if record["format"] != FORMAT:
            return None
    except (OSError, *MALFORMED):
        return None  # loading a release raises the error
    try:
        fault = folder_fault(folder, record["files"], every=True)
        if fault is not None:
            raise faulty(folder, fault)
        places = [source["folder"] for source in record["combined_from"]]
        if not all(_FOLDER.fullmatch(place) for place in places):
            raise ValueError
        releases = [TableRelease.load(folder / place) for place in places]
        both = combine(
            releases,
            same_rows="assumed" if record["agreement"] is None else "tested",
            all_rows_fit="all_rows_fit" in record,
        )
        plan: Any = both.plan
        tables = table_places(plan, folder, record)
        whole = set(tables) == set(plan.tables.subsets)
        if not (whole and all(place.file in record["files"] for place in tables.values())):
            raise ValueError
        stored = replace(both, tables=StoredTables(folder, tables))
        fault = _disagreement(stored, stored.tables, places, record)
        if fault is not None:
            raise faulty(folder, fault)
    except OutputError:
        raise
    except (OSError, GaussNoiseError, *MALFORMED) as error:
        raise OutputError(
            f"load: {folder} is not a complete combination of releases ({type(error).__name__})"
        ) from None
    return stored


def _disagreement(
    release: TableRelease, tables: Any, places: Sequence[str], record: Mapping[str, Any]
) -> str | None:
    """Return in words the first difference between a combination and its releases, or None."""
    plan, folder = release.plan, tables.folder
    if record["agreement"] is not None and len(places) > 2:  # tested pair by pair
        chi_squared, free = (record["agreement"][name] for name in Agreement._fields[:2])
        if not (type(free) is int and free >= 0 and 0 <= chi_squared < math.inf):
            raise ValueError
        plan = replace(plan, agreement=Agreement.of(chi_squared, free))
        release = replace(release, plan=plan)
    answers = answer_files(release, format_of_tables(tables), MOST_READ)
    expected = _record(release, folder, places, answers, record["files"])
    marginals = placed(marginal_records(release), release)
    notes = _statement(release, places, plan.about)
    return (
        difference(folder, expected, record, _texts(release, places, notes))
        or list_difference(plan, folder, record, marginals=marginals)
        or tables.fault(release.deviation)
        or answers_fault(release, folder, answers)
    )


def title_of(release: AbstractRelease) -> str | None:
    """Return the title of a release, as its plan states it; None if it has no title."""
    plan: Plan = release.plan
    return plan.about.title


def agreement_text(agreement: Agreement | None, person: str | None) -> str:
    """Return in words the result of the test whether combined releases are of the same rows."""
    if agreement is None:
        said = "Whether the releases are of the same rows was not tested"
        if person is not None:
            said += ": each release draws anew which rows of a person it counts"
        return f"{said}."
    return (
        "The tables of these releases differ by no more than their noise "
        f"(χ² = {agreement.chi_squared:.4g} with {agreement.degrees_of_freedom} degrees of "
        f"freedom, p = {agreement.p_value:.2g}), as those of the same rows do."
    )


def _statement(release: TableRelease, places: Sequence[str], said: About) -> Notes:
    """Return the method statement of a combined release: sentences under its standard headings."""
    plan: Any = release.plan
    facts = Facts(
        whole="combination",
        relation=relation_text(plan),
        unit=unit_text(plan.rows_per_person, plan.person, bool(plan.per_person)),
        counted=counted_text(plan),
        privacy={},
        budget=f"zCDP, ρ = {release.rho_charged:.6g}, the sum of all budgets"
        f"{holds_text(plan.scales)}",
        integers=0,
        noise="that of the combined releases, drawn for each of them by itself",
        exact=[f"Exact, without noise: {marginal_name(plan.public)}."] if plan.public else [],
        gap=math.nan,
        verdict=[],
    )
    return statement(
        plan,
        facts,
        replace(said, title=f"Tables combined from {len(places)} releases"),
        private=release.private,
        noun=release.noun,
        counted=dropped_text(release),
        unit=numbers_text(release),
        policy=disclaimers(release),
        times=[],
        origin=[
            f"Combined from {', '.join(places)}.",
            agreement_text(plan.agreement, plan.person),
            *plan.assumed,
        ],
    )


def combined_text(release: TableRelease, places: Sequence[str]) -> str:
    """Return the summary of a combined release for readers."""
    plan: Any = release.plan
    charged = f"rho = {release.rho_charged:.10g} together{holds_text(plan.scales)}"
    charged = charged if release.private else "nothing"
    tables = number_of(len(release), "table")
    what = f"{tables}, {plan.tables.dim} cells, combined from {len(places)} releases"
    return "\n".join(
        [
            opening(what, release.private),
            "",
            agreement_text(plan.agreement, plan.person),
            *plan.assumed,
            f"If they are: {UNBIASED} {AGREE}",
            INTERVALS,
            *numbers_text(release),
            *dropped_text(release),
            *disclaimers(release),
            "",
            FOR_SPECIALISTS,
            *(
                f"from         {place}: rho = {source.rho:.10g}, "
                f"{number_of(len(source.marginals), 'table')}"
                for place, source in zip(places, plan.sources, strict=True)
            ),
            f"charged      {charged}",
            f"neighbours   {relation_text(plan)}",
            "",
            *_accuracy(release),
        ]
    )


def _accuracy(release: TableRelease) -> Iterator[str]:
    """Yield the lines of a text table with the accuracy of each released table."""
    shown = list(release)[:_MOST_LINES]
    names = [marginal_name(marginal) for marginal in shown]
    width = max(len("table"), *map(len, names))
    yield f"{'table':<{width}}  {'cells':>7}  {'sd':>9}  {'95 % ±':>9}"
    for name, S in zip(names, release.plan.tables.subsets, strict=False):
        sd = float(release.deviation(S).max())
        cells = release.plan.tables.cells(S)
        yield f"{name:<{width}}  {cells:>7}  {sd:>9.4g}  {quantile(LEVEL) * sd:>9.4g}"
    if len(release) > len(shown):
        yield f"… and {len(release) - len(shown)} more"
