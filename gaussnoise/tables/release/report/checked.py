"""The check that a reader's browser makes of a page: its script, and the files to check."""

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from ....files.disk import MALFORMED, opened
from ..noisy import AbstractRelease
from ..store import StoredTables

if TYPE_CHECKING:
    from markupsafe import Markup

_MOST_READ = 2**22  # bytes of files that are read for a page
_KNOWN = ("zCDP", "GDP", "KL", "ApproxDP", "TV")  # guarantees in the specification of the checks
_TOO_LONG = (
    "the tables are longer than this page; choose the folder under “For specialists”, or run "
    "gaussnoise verify FOLDER"
)


class Check(NamedTuple):
    """The check of a page.

    Attributes:
        script: JavaScript, for one element.
        source: its sha256 in the page's policy: no other script runs.
        files: the record and the tables, as JSON of texts by their names, or None.
        reason: the reason why a page holds no files, in words.
    """

    script: "Markup"
    source: str
    files: str | None
    reason: str

    def held(self, page: str) -> str:
        """Return a page with the files, unless they would make it more than twice as long."""
        if self.files is None or len(self.files) > len(page):
            return page
        own = f'<script type="application/json" id="held">{self.files}</script>\n<script>'
        return page.replace("<script>", own, 1)  # the only one: labels are escaped


def check_of(release: AbstractRelease) -> Check:
    """Return the check of the page of a release."""
    script, source = _script()
    return Check(script, source, *_files(release))


@cache
def _script() -> "tuple[Markup, str]":
    from markupsafe import Markup

    folder = files(__name__.rpartition(".")[0]) / "templates"
    parts = [(folder / name).read_text(encoding="utf-8") for name in ("verifier.js", "page.js")]
    script = "\n{}\n".format("\n".join(parts))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Markup(script), f"'sha256-{digest}'"


def _files(release: AbstractRelease) -> tuple[str | None, str]:
    """Return the record and the tables of a saved release, and why a page may not hold them."""
    tables = release.tables
    if not isinstance(tables, StoredTables):
        return None, "this page was written before its tables were saved"
    names = {place.file for place in tables.places.values()}
    if not all(name.endswith(".csv") and not name.endswith("+sdmx.csv") for name in names):
        return None, "only tables in CSV can be compared with a page"
    texts, left = {}, _MOST_READ
    try:
        for name in ("release.json", *sorted(names)):
            with opened(tables.folder / name) as file:
                content = file.read(left + 1)
            if (left := left - len(content)) < 0:
                return None, _TOO_LONG
            texts[name] = content.decode()
        stated = json.loads(texts["release.json"])["plan"]["privacy"]["definition"]
    except (OSError, *MALFORMED):
        return None, "the files of the release could not be read"
    if stated not in _KNOWN:
        return None, "only guarantees that this library has are checked"
    # no end of an element in it
    return json.dumps(texts).replace("<", "\\u003c").replace(">", "\\u003e"), _TOO_LONG
