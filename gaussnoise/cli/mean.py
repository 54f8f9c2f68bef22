"""The command that releases means of columns."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ParameterError
from ..estimators import column_means
from ..tables import Dialect, Schema
from ..text import near
from .asked import dialect_of, parts_of, privacy_of, table_of
from .console import ERR, check_new, say, show
from .documents import means_document
from .options import (
    Decimal,
    Delimiter,
    Delta,
    Encoding,
    Epsilon,
    Json,
    Neighbors,
    OnOutside,
    Quote,
    Rho,
    Tables,
)
from .patience import patience


def release_means(
    table: Tables,
    columns: Annotated[
        str,
        typer.Option("--columns", "-c", help='Numeric columns: income,age; in "…" with commas.'),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="Grouping column and its categories, public: --by sex=f,m (repeatable); or --by "
            "sex, with -s.",
        ),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", help="TOML schema with categories for --by.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option("--person", help="Column that says whose row it is: persons are protected."),
    ] = None,
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    neighbors: Neighbors = "add-remove",
    spread: Annotated[
        float,
        typer.Option(
            "--spread",
            help="Assumed root of the moment, in distances between the first and last decile.",
        ),
    ] = 1.0,
    order: Annotated[
        float, typer.Option("--order", help="Order of that moment: more for lighter tails.")
    ] = 2.0,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    on_outside: OnOutside = "drop",
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    quote: Quote = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="New JSON file for the results.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Charge this budget first.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Name in the ledger.")] = None,
    as_json: Json = False,
) -> None:
    """Release means of numeric columns, with intervals, where no bounds are known."""
    if (ledger is None) != (id is None):
        raise ParameterError(
            "mean: expected --ledger and --id together: a ledger knows releases by their id"
        )
    check_new("mean", out)
    relation: Any = neighbors
    listed = [_grouping(entry, schema) for entry in by or []]
    if len(groups := dict(listed)) < len(listed):
        raise ParameterError("mean: expected every column of --by once, with all its categories")
    names = parts_of(columns)
    options: dict[str, Any] = {"by": groups, "person": person, "neighbors": relation}
    options |= {"spread": spread, "order": order, "level": level, "ledger": ledger, "id": id}
    options |= {"on_outside": on_outside}
    base = Dialect() if schema is None else Schema.load(schema).file
    read = dialect_of(base, delimiter, decimal, encoding, quote).table(table_of(table))
    with patience(ERR, "averaging"):
        means = column_means(read, names, privacy_of(rho, epsilon, delta), **options)
    if out is not None:
        means.save(out)
    if as_json:
        return show(means_document(means, out))
    say(str(means))
    if out is not None:
        say(f"wrote {out}")


def _grouping(entry: str, schema: Path | None) -> tuple[str, list[Any]]:
    """Return a grouping column and its categories, from the option or from a schema."""
    name, equals, listed = entry.partition("=")
    if equals:
        return name.strip(), parts_of(listed)
    if schema is None:
        raise ParameterError(
            f"mean: expected --by {name}=a,b with all categories, or --schema FILE that lists them"
        )
    attributes = {attribute.name: attribute for attribute in Schema.load(schema).attributes}
    attribute = attributes.get(name)
    if attribute is None or attribute.categories is None:
        raise ParameterError(
            f"mean: expected --by a column with categories in {schema}, got "
            f"{name!r}{near(name, attributes)}"
        )
    return name, [category for category in attribute.categories if category != attribute.other]
