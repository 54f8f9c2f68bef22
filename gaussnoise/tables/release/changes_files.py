"""Changes between two releases on disk: tidy tables, their record, and a page."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...files.disk import check_parent, digests_in
from ..schema.entries import Entry
from .changes import (
    CLOSING,
    TOGETHER,
    ShownChanges,
    changes_record,
    cost_text,
    notes_text,
    shown_changes,
)
from .comparison import ComparisonTable
from .files import check_format, staged
from .formats import FORMATS
from .formats.format import Notes
from .report.changes import changes_page
from .store import FileFormat, file_names

if TYPE_CHECKING:
    from .difference import Changes


def save_changes(
    changes: "Changes",
    directory: str | os.PathLike[str],
    format: FileFormat,
    of: Sequence[Entry],
    title: str | None,
) -> None:
    """Write the files of :meth:`Changes.save`; ``changes.json`` last."""
    found = shown_changes(changes, of)
    plan = changes.before.plan
    check_format(format, plan.schema, [plan.subset(one.table.attributes) for one in found])
    check_parent(Path(directory), "save")
    said = {
        "Privacy": cost_text(changes),
        "Accuracy": [CLOSING, TOGETHER, *notes_text(changes)],
        "Findings": [f"{one.name}: {one.finding}" for one in found],
    }
    notes = Notes(title or "What changed", said)
    with staged(directory) as folder:
        files = [_write(folder, kind, found, format, notes) for kind in ("changes", "relative")]
        (folder / "report.html").write_text(changes_page(changes, title, of), encoding="utf-8")
        record: dict[str, Any] = changes_record(changes, found, rows=False)
        for table, own, relative in zip(record["tables"], *files, strict=True):
            table["files"] = {"changes": own, "relative": relative}
        record["files"] = digests_in(folder)
        text = json.dumps(record, indent=2, ensure_ascii=False)
        (folder / "changes.json").write_text(text + "\n", encoding="utf-8")


def _write(
    folder: Path, kind: str, found: Sequence[ShownChanges], format: FileFormat, notes: Notes
) -> list[str]:
    """Write one tidy file for each table, and return their names."""
    names = file_names([one.title for one in found], format, kind)
    (folder / kind).mkdir()
    for name, one in zip(names, found, strict=True):
        table: ComparisonTable = one.table if kind == "changes" else one.relative
        rows = table.to_arrow()
        with FORMATS[format].writer(folder / name, rows.schema, notes) as file:
            file.write_table(rows)
    return names
