"""The verification of a page in a reader's browser: a script, and the files that it checks."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ....files.disk import MALFORMED, RECORD, RECORDS, opened, read_json
from ..noisy import AbstractRelease
from ..store import StoredTables

if TYPE_CHECKING:
    from markupsafe import Markup

_MOST_READ = 2**22  # most bytes of files that a page contains
_KNOWN = (
    "zCDP",
    "GDP",
    "KL",
    "ApproxDP",
    "TV",
    "PerRecord",
)  # guarantees in the specification of the checks
_TOO_LONG = (
    "the tables are longer than this page; choose the folder under “For specialists”, or run "
    "gaussnoise verify FOLDER"
)


class Check(NamedTuple):
    """The script and the files with which the browser of a reader can verify a page.

    Attributes:
        script: JavaScript, the content of one element.
        source: the sha256 of the script, in the page's policy. No other script runs.
        files: {name: text} of records and tables, as JSON; or None.
        reason: why a page contains no files, in words.
    """

    script: "Markup"
    source: str
    files: str | None
    reason: str

    def held(self, page: str) -> str:
        """Return a page with the checked files in it, unless this more than doubles its length."""
        if self.files is None or len(self.files) > len(page):
            return page
        own = f'<script type="application/json" id="held">{self.files}</script>\n<script>'
        return page.replace("<script>", own, 1)  # the only script, as labels are escaped


def folder_of(release: AbstractRelease) -> Path | None:
    """Return the folder of a release or a combination; None before it is saved."""
    tables = release.tables
    return tables.folder if isinstance(tables, StoredTables) else None


def check_of(folders: Mapping[str, Path | None]) -> Check:
    """Return what a page about these folders needs to be verified in a reader's browser.

    ``folders``: {path of the folder among the files in the page: folder, or None before it is
    saved}.
    """
    script, source = _script()
    return Check(script, source, *_files(folders))


@cache
def _script() -> "tuple[Markup, str]":
    from markupsafe import Markup

    folder = files(__name__.rpartition(".")[0]) / "templates"
    parts = [(folder / name).read_text(encoding="utf-8") for name in ("verifier.js", "page.js")]
    script = "\n{}\n".format("\n".join(parts))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Markup(script), f"'sha256-{digest}'"


def _files(folders: Mapping[str, Path | None]) -> tuple[str | None, str]:
    """Return (records and tables as JSON, or None; the reason if a page does not hold them)."""
    texts, left = {}, _MOST_READ
    try:
        for place, folder in folders.items():
            if folder is None:
                return None, "this page was written before its tables were saved"
            for name in _names(folder):
                if not (Path(name).name in RECORDS or _is_read(name)):
                    return None, "only tables in CSV and JSON lines can be compared with a page"
                with opened(folder / name) as file:
                    content = file.read(left + 1)
                if (left := left - len(content)) < 0:
                    return None, _TOO_LONG
                texts[place + name] = content.decode()
                plan = json.loads(content).get("plan") if Path(name).name in RECORDS else None
                if plan and plan["privacy"]["definition"] not in _KNOWN:
                    return None, "only guarantees that this library has are checked"
    except (OSError, *MALFORMED):
        return None, "the files could not be read, or are of no kind that is checked"
    # escaped, so that no text can end the element
    return json.dumps(texts).replace("<", "\\u003c").replace(">", "\\u003e"), _TOO_LONG


def _is_read(name: str) -> bool:
    return name.endswith((".csv", ".jsonl")) and not name.endswith("+sdmx.csv")


def _names(folder: Path, place: str = "") -> Iterator[str]:
    """Yield the names of the records and tables in a folder, and in the folders inside it."""
    if not place and (folder / "stream.json").is_file():
        yield "stream.json"
        for tick in sorted((folder / "ticks").iterdir()):
            yield from _names(folder, f"ticks/{tick.name}/")
        return
    record = read_json(folder / place / RECORD)
    yield f"{place}{RECORD}"
    for kind in ("marginals", "period", "cumulative"):
        inside = f"{place}{kind}/" if kind != "marginals" else place
        for name in sorted({entry["file"] for entry in record.get(kind, ())}):
            if ".." in Path(name).parts or Path(name).is_absolute():
                raise ValueError
            yield inside + name
    for source in record.get("combined_from", ()):
        if ".." in Path(source["folder"]).parts or Path(source["folder"]).is_absolute():
            raise ValueError
        yield from _names(folder, f"{source['folder']}/")
