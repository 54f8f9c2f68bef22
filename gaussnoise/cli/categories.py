"""The command ``categories``."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..files.disk import save_text
from ..privacy.definitions import ApproxDP
from ..tables import Dialect, discover_categories
from .asked import FileOptions, with_options
from .console import check_new, say, say_toml, show
from .ledger import noted
from .options import Approval, Json, Neighbors, Person, Purpose, RequestedBy, Rows


@with_options
def show_categories(
    table: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file.")],
    column: Annotated[str, typer.Argument(help="Column of text or integers.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="Budget: epsilon, with --delta.")],
    delta: Annotated[float, typer.Option("--delta", help="Budget: delta, half for the threshold.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="New TOML file; printed if omitted.")
    ] = None,
    neighbors: Neighbors = "add-remove",
    rows_per_person: Rows = 1,
    person: Person = None,
    on_formula: Annotated[
        str,
        typer.Option(
            "--on-formula",
            help="Values that spreadsheets take for formulas, like =1+1: show, or drop them.",
        ),
    ] = "show",
    written: FileOptions = FileOptions(),
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Ledger with a delta, which is charged.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="What the ledger calls it.")] = None,
    purpose: Purpose = None,
    requested_by: RequestedBy = None,
    approval: Approval = None,
    as_json: Json = False,
) -> None:
    """Find the frequent values of a column without a public list of values: TOML for a schema."""
    check_new("categories", out)
    # discover_categories checks these values
    wanted: dict[str, Any] = {"neighbors": neighbors, "on_formula": on_formula}
    categories = discover_categories(
        written.dialect(Dialect()).table(table),
        column,
        ApproxDP(epsilon, delta),
        rows_per_person=rows_per_person,
        person=person,
        ledger=noted("categories", ledger, purpose, requested_by, approval),
        id=id,
        **wanted,
    )
    if out is not None:
        save_text(out, categories.to_toml())
    if as_json:
        show(json.loads(categories.to_json()))
    elif out is None:
        say_toml(categories.to_toml())
    else:
        say(f"wrote {out}: {len(categories.categories)} categories")
