"""The command that drafts a schema."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import DataError, ParameterError
from ..tables import Dialect
from ..tables.drafts.draft import draft
from ..tables.reading.sniff import sniffed
from ..text import number_of
from .asked import DatedFileOptions, table_of, with_options
from .console import ERR, say, say_toml, show
from .documents import draft_document
from .options import Json, Tables


@with_options
def draft_schema(
    table: Tables,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; printed if omitted.")
    ] = None,
    written: DatedFileOptions = DatedFileOptions(),
    as_json: Json = False,
) -> None:
    """Draft a TOML schema from a table, to be checked by hand before any release."""
    paths = table_of(table)
    found = sniffed(paths, written.dialect(Dialect()))
    drafted = draft(written.dialect(found).table(paths))
    if not drafted.attributes:
        reasons = "; ".join(drafted.left_out.values())
        raise DataError(f"schema: no column can be an attribute; {reasons}")
    text = _DRAFT_WARNING + drafted.to_toml()
    if out is not None:
        try:
            with open(out, "x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ParameterError(f"schema: cannot create {out} ({type(error).__name__})") from None
    if as_json:
        show(draft_document(drafted.schema, drafted.left_out, text, out))
    elif out is None:
        # TOML's escapes stay, so that the printed schema is the same
        say_toml(text)
    else:
        columns = len(drafted.attributes) + len(drafted.left_out)
        of = f"of {number_of(columns, 'column')} and {number_of(drafted.rows, 'row')}"
        say(f"wrote {out}: {number_of(len(drafted.attributes), 'attribute')} {of}")
        if drafted.file.skipped:
            say(drafted.file.skipped)
        if drafted.left_out:
            say(f"left out, for reasons that stand there: {', '.join(map(str, drafted.left_out))}")
    say(
        "warning: this draft was read off the data. Categories and edges must "
        "be public knowledge: "
        "check every line, and keep the draft as confidential as the table until you have. "
        "Nothing can be released with it before you delete the line draft = true.",
        ERR,
        "yellow",
    )


_DRAFT_WARNING = """\
# DRAFT, read off the data: as confidential as the table itself.
# Categories and edges must be public knowledge (a questionnaire, a code book),
# never what happens to occur.
# Add the ones that do not occur, remove the ones that no public source lists, then delete this
# comment and the line below, without which nothing can be released.
# A catch-all for nulls and anything else:  other = "other"
# (a draft treats empty fields and NA as null)

"""
