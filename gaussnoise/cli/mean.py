"""The command that releases means of a table's columns."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ParameterError
from ..estimators import column_means
from ..tables import About, Attribute, Dialect, Schema, Weight
from ..tables.planning.stated import privacy_of
from ..text import near
from .asked import FileOptions, parts_of, per_person_of, table_of, weight_of, with_options
from .console import ERR, check_new, say, show
from .documents import means_document
from .ledger import noted
from .options import (
    Approval,
    Delta,
    Epsilon,
    Format,
    Json,
    Neighbors,
    OnOutside,
    Purpose,
    RequestedBy,
    Rho,
    Source,
    Tables,
    Title,
    WeightColumn,
)
from .patience import patience
from .published import say_aside


@with_options
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
            "sex, an attribute of -s, with its categories or edges.",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            "-s",
            # without the backslash, rich would take the bracket for markup
            help="TOML schema with attributes for --by, codes for no answer of the columns "
            "(missing), \\[about] and \\[file].",
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option("--person", help="Column that says whose row it is: persons are protected."),
    ] = None,
    per_person: Annotated[
        str,
        typer.Option(
            "--per-person",
            help="What a person counts with, in each group: the mean, sum, max or count of their "
            "own numbers; or stay=mean,visits=count for each column; or none, for means over rows.",
        ),
    ] = "mean",
    rows_per_person: Annotated[
        int,
        typer.Option(
            "--rows-per-person",
            help="The most groups in which a person counts, with one record in each, drawn at "
            "random; with --per-person none, the most rows.",
        ),
    ] = 1,
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    neighbors: Neighbors = "add-remove",
    between: Annotated[
        list[str] | None,
        typer.Option(
            "--between",
            help="Public bounds: 0,120; of one of several columns: age=0,120 (repeatable). An "
            "unknown end is left empty: 0, has no upper one. Sums and means of counted rows are "
            "compared only between releases of one range: give the next one the range that this "
            "one prints.",
        ),
    ] = None,
    least: Annotated[
        float | None,
        typer.Option("--least", help="Public lower bound of the columns without --between."),
    ] = None,
    weight: WeightColumn = None,
    spread: Annotated[
        float,
        typer.Option(
            "--spread",
            help="Assumed root of the moment, in lengths of the range that the search finds.",
        ),
    ] = 1.0,
    order: Annotated[
        float | None,
        typer.Option(
            "--order", help="Order of that moment: more for lighter tails; chosen if left out."
        ),
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    on_outside: OnOutside = "drop",
    written: FileOptions = FileOptions(),
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="New folder for the release, which report and ask read."),
    ] = None,
    format: Format = "csv",
    title: Title = None,
    source: Source = None,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Charge this budget first.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Name in the ledger.")] = None,
    purpose: Purpose = None,
    requested_by: RequestedBy = None,
    approval: Approval = None,
    as_json: Json = False,
) -> None:
    """Release means of numeric columns, with intervals. If no range is public, one is found.

    The means are over rows. With --person, they are over persons, where a person's number is the
    mean of the person's rows. With --weight, intervals are for the mean of the counted rows, not of
    a population.
    """
    if (ledger is None) != (id is None) or (ledger is not None and out is None):
        raise ParameterError(
            "mean: expected --ledger, --id and -o together: a ledger knows releases by their id, "
            "and finds them where they were written"
        )
    if ledger is None:
        check_new("mean", out)
    relation: Any = neighbors
    groups = [_grouping(entry, schema) for entry in by or []]
    if len({group.name for group in groups}) < len(groups):
        raise ParameterError("mean: expected every column of --by once, with all its categories")
    names = parts_of(columns)
    is_over_rows = per_person == "none" or (weight and person is None)
    how = None if is_over_rows else per_person_of(per_person)
    options: dict[str, Any] = {"by": groups, "person": person, "neighbors": relation}
    options |= {"per_person": how, "rows_per_person": rows_per_person, "out": out, "format": format}
    options |= {"spread": spread, "order": order, "level": level, "id": id}
    options |= {"ledger": noted("mean", ledger, purpose, requested_by, approval)}
    options |= {"on_outside": on_outside, "between": _bounds(between, least, names)}
    options |= {"weight": None if weight is None else Weight(**weight_of(weight))}
    said = Schema.load(schema) if schema is not None else None
    coded = [] if said is None else [a for a in said.attributes if a.name in names and a.missing]
    options["missing"] = {attribute.name: attribute.missing for attribute in coded}
    about = {"title": title, "source": source}
    options["about"] = replace(
        About() if said is None else said.about,
        **{name: line for name, line in about.items() if line is not None},
    )
    base = Dialect() if said is None else said.file
    read = written.dialect(base).table(table_of(table))
    with patience(ERR, "averaging"):
        means = column_means(read, names, privacy_of(rho, epsilon, delta), **options)
    say_aside(means.release)
    if as_json:
        return show(means_document(means, out))
    say(str(means))
    if out is not None:
        say(f"wrote {out}")


def _grouping(entry: str, schema: Path | None) -> Attribute:
    """Return the grouping attribute for ``--by``: COLUMN=a,b, or a COLUMN of the schema file."""
    name, equals, listed = entry.partition("=")
    if equals:
        return Attribute(name.strip(), parts_of(listed))
    if schema is None:
        raise ParameterError(
            f"mean: expected --by {name}=a,b with all categories, or --schema FILE that lists them"
        )
    attributes = {attribute.name: attribute for attribute in Schema.load(schema).attributes}
    attribute = attributes.get(name)
    if attribute is None or attribute.is_summed:
        several = parts_of(name)
        hint = near(name, attributes)
        if len(several) > 1:
            hint = "; hint: " + " ".join(f"--by {shlex.quote(own)}" for own in several)
        raise ParameterError(
            f"mean: expected --by a column with categories or edges in {schema}, got {name!r}{hint}"
        )
    return attribute


def _bounds(
    between: list[str] | None, least: float | None, columns: list[str]
) -> dict[str, tuple[float | None, float | None]] | None:
    """Return {column: public (lower, upper) bounds} from ``--between`` and ``--least``, or None."""
    found: dict[str, tuple[float | None, float | None]] = {}
    for entry in between or []:
        column, equals, ends = entry.rpartition("=")
        if not equals and len(columns) > 1:
            raise ParameterError(
                f"mean: expected --between to name one of several columns, got {entry!r:.80}; "
                f"hint: --between {columns[0]}={entry:.60}"
            )
        name = column.strip() if equals else columns[0]
        if name in found:
            raise ParameterError(f"mean: expected --between once for {name!r}, got it twice")
        try:
            low, high = (float(end) if end.strip() else None for end in ends.split(","))
        except ValueError:
            raise ParameterError(
                f"mean: expected two numbers in --between, got {ends!r:.80}; hint: 0,120, or 0, "
                "where no upper bound is known"
            ) from None
        found[name] = low, high
    lower = {} if least is None else dict.fromkeys(columns, (least, None))
    return lower | found or None
