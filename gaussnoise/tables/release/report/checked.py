"""The check that a reader's browser makes of a page: its script, and the files to check."""

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from ....files.disk import opened
from ..noisy import AbstractRelease
from ..store import StoredTables

if TYPE_CHECKING:
    from markupsafe import Markup

_MOST_HELD = 250_000  # characters of files that a page holds
_TOO_MUCH = (
    f"a page holds up to {_MOST_HELD:,} characters of tables, and these have more; choose the "
    "folder under “For specialists”, or run gaussnoise verify FOLDER"
)


class Check(NamedTuple):
    """The script of a page, its source for the page's policy, and the files to check.

    Attributes:
        script: JavaScript, for one element.
        source: its sha256, which alone may run.
        held: the record and the tables, as JSON of texts by their names, or None.
        reason: the reason why no files are held, in words.
    """

    script: "Markup"
    source: str
    held: "Markup | None"
    reason: str


def check_of(release: AbstractRelease) -> Check:
    """Return the check of a page of a release."""
    script, source = _script()
    held, reason = _held(release)
    return Check(script, source, held, reason)


@cache
def _script() -> "tuple[Markup, str]":
    from markupsafe import Markup

    folder = files(__package__) / "templates"
    parts = [(folder / name).read_text(encoding="utf-8") for name in ("verifier.js", "page.js")]
    script = "\n{}\n".format("\n".join(parts))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Markup(script), f"'sha256-{digest}'"


def _held(release: AbstractRelease) -> "tuple[Markup | None, str]":
    """Return the record and the tables of a saved release, or the reason why they are not held."""
    from markupsafe import Markup

    tables = release.tables
    if not isinstance(tables, StoredTables):
        return None, "this page was written before its tables were saved"
    names = {place.file for place in tables.places.values()}
    if not all(name.endswith(".csv") and not name.endswith("+sdmx.csv") for name in names):
        return None, "only tables in CSV can be compared with a page"
    content, left = {}, _MOST_HELD
    try:
        for name in ("release.json", *sorted(names)):
            with opened(tables.folder / name) as file:
                content[name] = file.read(left + 1)
            if (left := left - len(content[name])) < 0:
                return None, _TOO_MUCH
        text = json.dumps({name: own.decode() for name, own in content.items()})
        text = text.replace("<", "\\u003c").replace(">", "\\u003e")  # no end of an element
    except (OSError, UnicodeDecodeError):
        return None, "the files of the release could not be read"
    if len(text) > _MOST_HELD:
        return None, _TOO_MUCH
    return Markup(text), ""
