"""Files of the changes between two releases: tidy tables, a record, and a page."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...files.disk import check_parent, digests_in
from ...text import printable
from ..schema.about import About
from ..schema.entries import Entry
from ..schema.schema import Attribute
from .changes import (
    CLOSING,
    LEFT_OUT,
    TOGETHER,
    ShownChanges,
    about_both,
    changes_record,
    changes_text,
    cost_text,
    left_out,
    notes_text,
    release_name,
    shown_changes,
    title_of,
)
from .files import check_format, save_figure, staged, write_texts
from .formats import FORMATS
from .formats.format import AbstractBook, Notes
from .method import (
    ACCURACY,
    CLASSES,
    COMPILED,
    DESCRIPTION,
    GUARANTEE,
    UNIT,
    class_text,
    stated,
    texts_of,
)
from .report.changes import changes_page
from .store import FileFormat, file_names
from .table import AbstractEstimates

if TYPE_CHECKING:
    from .difference import Changes


_BYTES_OF_A_ROW = 2**20  # most bytes of a row in a sheet


def save_changes(
    changes: "Changes",
    directory: str | os.PathLike[str],
    format: FileFormat,
    of: Sequence[Entry],
    title: str | None,
) -> None:
    """Write the tables, texts, page and picture of changes to a new folder.

    ``changes.json``, the record with the checksums of all other files, is written last.
    """
    found = shown_changes(changes, of)
    plan = changes.before.plan
    check_format(format, plan.schema, [plan.subset(one.table.attributes) for one in found])
    check_parent(Path(directory), "save")
    used = {name for one in found for name in one.table.attributes}
    attributes = [a for a in plan.schema.attributes if a.name in used]
    said = about_both(changes)
    notes = _statement(changes, found, title or title_of(changes), attributes, said, of)
    with staged(directory) as folder:
        files = _write(folder, found, format, notes)
        (folder / "report.html").write_text(changes_page(changes, title, of), encoding="utf-8")
        summary = printable(changes_text(changes, found, of))
        write_texts(folder, {"summary.txt": summary + "\n", **texts_of(attributes, notes, said)})
        save_figure(found[-1].table.plot, folder / "changes.png")
        record: dict[str, Any] = changes_record(changes, found, of, rows=False)
        for table, own in zip(record["tables"], files, strict=True):
            table["files"] = own
        record["files"] = digests_in(folder)
        text = json.dumps(record, indent=2, ensure_ascii=False)
        (folder / "changes.json").write_text(text + "\n", encoding="utf-8")


def _statement(
    changes: "Changes",
    found: Sequence[ShownChanges],
    title: str,
    attributes: Sequence[Attribute],
    said: About,
    of: Sequence[Entry],
) -> Notes:
    """Return the method statement of changes: sentences under its standard headings."""
    names = [release_name(one) or "a release" for one in (changes.before, changes.after)]
    missing = {} if of else left_out(changes)
    filled = {
        DESCRIPTION: [
            f"Changes from {names[0]} to {names[1]}: later less earlier, and in relation to the "
            "earlier number.",
            *(f"{one.name}: {one.finding}" for one in found),
            *(f"{LEFT_OUT}: {name} ({why})." for name, why in missing.items()),
        ],
        CLASSES: [class_text(attribute) for attribute in attributes],
        UNIT: notes_text(changes, found),
        GUARANTEE: cost_text(changes),
        ACCURACY: [CLOSING, TOGETHER],
        COMPILED: ["The noise of both releases is independent, so that variances add up."],
    }
    return stated(title, said, filled, attributes)


def _write(
    folder: Path, found: Sequence[ShownChanges], format: FileFormat, notes: Notes
) -> list[dict[str, str]]:
    """Write the numbers of all tables; return {kind of numbers: file name} for each table."""
    own = FORMATS[format]
    if not own.holds_columns:
        return _write_cubes(folder, found, format, notes)
    if isinstance(own, AbstractBook):
        path = folder / f"changes{own.ending}"
        with own.book(path, [one.name for one in found], notes) as book:
            for k, one in enumerate(found):
                rows = one.to_arrow()
                with book.sheet(k, rows.schema, _BYTES_OF_A_ROW * rows.num_rows) as sheet:
                    sheet.write_table(rows)
        return [{"changes": path.name} for _ in found]
    files = file_names([one.title for one in found], format, "changes")
    (folder / "changes").mkdir()
    for name, one in zip(files, found, strict=True):
        rows = one.to_arrow()
        with own.writer(folder / name, rows.schema, notes) as file:
            file.write_table(rows)
    return [{"changes": name} for name in files]


def _write_cubes(
    folder: Path, found: Sequence[ShownChanges], format: FileFormat, notes: Notes
) -> list[dict[str, str]]:
    """Write a file for each table and kind of numbers; return {kind: file name} of each table."""
    # for formats that hold one estimate per cell
    tables: dict[str, list[AbstractEstimates]] = {
        "before": [one.table.second for one in found],
        "after": [one.table.first for one in found],
        "changes": [one.table for one in found],
        "relative": [one.relative for one in found],
    }
    files = {kind: file_names([one.title for one in found], format, kind) for kind in tables}
    for kind, listed in tables.items():
        (folder / kind).mkdir()
        for name, table in zip(files[kind], listed, strict=True):
            rows = table.to_arrow()
            with FORMATS[format].writer(folder / name, rows.schema, notes) as file:
                file.write_table(rows)
    return [dict(zip(files, names, strict=True)) for names in zip(*files.values(), strict=True)]
