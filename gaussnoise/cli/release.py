"""The command that releases tables."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from ..errors import ParameterError
from ..privacy.ledger import Ledger
from ..tables import Plan, TableRelease
from ..tables.planning.text import work_text
from ..tables.release.text import dropped_text
from ..tables.schema.planned import load_options
from .asked import DatedFileOptions, Options, asked_for, planned, rows_of, table_of, with_options
from .console import ERR, say, show
from .documents import release_document
from .ledger import noted
from .options import (
    Approval,
    Json,
    OnOutside,
    Purpose,
    RequestedBy,
    Results,
    StatedFormat,
    StatedTables,
    Verifier,
)
from .published import say_aside

_PATIENCE = 10.0  # seconds; a longer release is announced on any output


@dataclass(frozen=True)
class ReleaseOptions(Options):
    """The options of a plan, and those of its release."""

    format: StatedFormat = None
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Name in the ledger: run again with it, the same result is read again. This, "
            "--format, --purpose and --requested-by can stand in the schema's \\[release] table.",
        ),
    ] = None
    purpose: Purpose = None
    requested_by: RequestedBy = None

    def settled(self) -> Self:
        """Return options, from ``[plan]`` and ``[release]`` where they are not given."""
        stated = load_options(self.schema, "release").items()
        own = {name: value for name, value in stated if getattr(self, name) is None}
        return replace(super().settled(), **own)


@with_options
def make_release(
    options: ReleaseOptions,
    out: Results,
    table: StatedTables = None,
    written: DatedFileOptions = DatedFileOptions(),
    on_outside: OnOutside = "drop",
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger", help="Charge this budget first; `gaussnoise ledger create` starts one."
        ),
    ] = None,
    approval: Approval = None,
    verifier: Verifier = False,
    as_json: Json = False,
) -> None:
    """Release marginals of a table; this spends the budget once."""
    id, format = options.id, options.format or "csv"
    if (ledger is None) != (id is None):
        raise ParameterError(
            "release: expected --ledger and --id together: a ledger knows releases by their id, "
            "which id in [release] of the schema can state"
        )
    found = planned(asked_for(options, written))
    book = noted("release", ledger, options.purpose, options.requested_by, approval)
    rows = table_of(rows_of(table, options.schema))
    released(found, rows, out, format, on_outside, book, id, verifier=verifier, as_json=as_json)
    if as_json:
        show(release_document(out))


def released(
    planned: Plan,
    table: str | list[str],
    out: Path,
    format: str = "csv",
    on_outside: str = "drop",
    ledger: Ledger | Path | None = None,
    id: str | None = None,
    *,
    verifier: bool = False,
    as_json: bool = False,
) -> TableRelease:
    """Make a release and return it; unless ``as_json``, also print its summary and its files."""
    if ERR.is_terminal or planned.seconds > _PATIENCE:
        say(work_text(planned), ERR)
    # release() checks these
    wanted: dict[str, Any] = {"format": format, "on_outside": on_outside, "verifier": verifier}
    result = planned.release(
        table, out=out, progress=ERR.is_terminal, ledger=ledger, id=id, **wanted
    )
    if as_json:
        say_aside(result)
        return result
    say((out / "summary.txt").read_text(encoding="utf-8"))
    if ledger is not None:
        left = Ledger.of(ledger).remaining
        say(f"rho = {result.rho_charged:.10g} is charged; the ledger has {left:.10g} left")
    tables: Any = result.tables
    files = list(dict.fromkeys(place.file for place in tables.places.values()))
    say(f"wrote {out}/{files[0]}" + (f" … {len(files)} files" if len(files) > 1 else ""))
    say(f"wrote {out}/release.json        everything an auditor needs")
    say(
        f"wrote {out}/summary.txt"
        + (f", {out}/release.png" if (out / "release.png").exists() else "")
    )
    if dropped_text(result):
        say("gaussnoise check shows the owner of the rows which of them are in no table, and why")
    say_aside(result)
    return result
