"""The options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ParameterError
from ..tables.release.formats import FORMATS

Tables = Annotated[
    list[Path],
    typer.Argument(
        help="CSV (.gz, .xz, .zst, .zip), Parquet, .xlsx, .sav, .dta or .sas7bdat file, several, a "
        "quoted pattern like 'data/*.csv', or a folder of Parquet."
    ),
]
StatedTables = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Files of the rows, as for `gaussnoise schema`; left out, those of the schema's "
        "\\[plan] table."
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="Of CSV, between fields: ';' or tab. This and the next six options come before the "
        # without the backslash, rich would take the bracket for markup
        "schema's \\[file] table, where there is one.",
    ),
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", help="Of CSV, the decimal mark of numbers: . or ,")
]
Thousands = Annotated[
    str | None,
    typer.Option("--thousands", help="Of CSV, the mark of thousands in numbers: 1.234 has ."),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Of CSV: utf-8, cp1252, latin-1, cp1250, …")
]
Quote = Annotated[
    str | None, typer.Option("--quote", help="Of CSV, around fields: '\"', \"'\", or '' for none.")
]
DateFormat = Annotated[
    str | None,
    typer.Option("--date-format", help="Of CSV, how dates are written: dd.MM.yyyy, M/d/yyyy, …"),
]
Skip = Annotated[
    int | None,
    typer.Option("--skip", help="Lines before the column names, of every file; rows of a sheet."),
]
SchemaFile = Annotated[
    Path,
    typer.Option(
        "--schema",
        "-s",
        help="TOML schema; `gaussnoise schema TABLE` drafts one. Its \\[plan] table states options "
        "that are not given here.",
    ),
]
Marginals = Annotated[
    list[str] | None,
    typer.Option(
        "--marginals",
        "-m",
        help="k for all k-way marginals, or names: -m age,income -m sex (repeatable), with -m "
        "age:prefix,sex for cumulative counts; age:ranges for all runs; sex,pay+age:moments for "
        'counts, sums, squares and products of clipped numbers; names with commas in "…". '
        "Left out, the schema's "
        "[\\[workload]] tables.",  # without the backslash, rich would take the bracket for markup
    ),
]
Title = Annotated[
    str | None, typer.Option("--title", help="What the tables are about: one public line.")
]
Source = Annotated[
    str | None, typer.Option("--source", help="Where the rows come from: one public line.")
]
Rho = Annotated[
    float | None, typer.Option("--rho", help="Budget of the whole release: rho of zCDP.")
]
Epsilon = Annotated[
    float | None, typer.Option("--epsilon", help="Instead of --rho: epsilon, with --delta.")
]
Delta = Annotated[
    float | None, typer.Option("--delta", help="Instead of --rho: delta, with --epsilon.")
]
PerRecordOption = Annotated[
    list[str] | None,
    typer.Option(
        "--per-record",
        help="With --rho: a number without an upper end, and its scale T: payroll=1000000 "
        "(repeatable). A row may cost rho (1 + (payroll / T)^2): large rows are protected less.",
    ),
]
_RELATIONS = "Neighbours: add-remove (one row more or less) or replace (one row exchanged)."
Neighbors = Annotated[str, typer.Option("--neighbors", help=_RELATIONS)]
StatedNeighbors = Annotated[
    str | None, typer.Option("--neighbors", help=_RELATIONS, show_default="add-remove")
]
Public = Annotated[
    str | None,
    typer.Option(
        "--public",
        help="Under replace: attributes whose joint table is published exactly, like sex,region; "
        "their values have no protection.",
    ),
]
_NORMS = "Error norm: 2 for total variance, inf for the largest error."
Norm = Annotated[float, typer.Option("--p", help=_NORMS)]
StatedNorm = Annotated[float | None, typer.Option("--p", help=_NORMS, show_default="2")]
Within = Annotated[
    float | None,
    typer.Option(
        "--within",
        help="Instead of a budget: every cell within so many rows at 95 %, at the least rho.",
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="One marginal within so many rows at 95 %, or at another level: --target sex,age=50 "
        "--target age=80@0.99 (repeatable). Without a budget, at the least rho; marginals without "
        "a target take what is left.",
    ),
]
_MOST_ROWS = "The most rows of one person: persons are protected."
Rows = Annotated[int, typer.Option("--rows-per-person", help=_MOST_ROWS)]
StatedRows = Annotated[
    int | None, typer.Option("--rows-per-person", help=_MOST_ROWS, show_default="1")
]
ExpectedRows = Annotated[
    int | None,
    typer.Option(
        "--expected-rows",
        help="About how many rows will be counted, as is known or guessed without the data: marks "
        "tables whose mean cell is smaller than its noise.",
    ),
]
Person = Annotated[
    str | None,
    typer.Option(
        "--person",
        help="Column that says whose row it is: at most --rows-per-person of each are counted, "
        "drawn at random.",
    ),
]
PerPersonOption = Annotated[
    str | None,
    typer.Option(
        "--per-person",
        help="For means over persons: mean, sum, max or count of each person's own numbers in a "
        "group makes one record; or stay=mean,visits=count. --rows-per-person is then the most "
        "groups of a person.",
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        "--weight", help="COLUMN:MOST: every row counts as much as this column says, up to MOST."
    ),
]
OnOutside = Annotated[
    str,
    typer.Option(
        "--on-outside",
        help="A row with a null, or a value that does not fit, where no catch-all takes it: "
        "drop (it counts nowhere), or refuse (the whole release; tells something about the "
        "rows: for development).",
    ),
]
AllRowsFit = Annotated[
    bool,
    typer.Option(
        "--all-rows-fit",
        help="Assume that no row was left out for a value that did not fit: needed where one "
        "release alone leaves out such rows.",
    ),
]
Results = Annotated[Path, typer.Option("--out", "-o", help="New directory for the results.")]
_FORMATS = f"Table files: {' or '.join(FORMATS)}."
Format = Annotated[str, typer.Option("--format", help=_FORMATS)]
StatedFormat = Annotated[str | None, typer.Option("--format", help=_FORMATS, show_default="csv")]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on standard output, in place of text.")
]
SomeTicks = Annotated[
    str | None,
    typer.Option(
        "--ticks", help="Of a stream: 12, or 5-8, for the rows of these ticks; left out, of all."
    ),
]
Purpose = Annotated[
    str | None,
    typer.Option("--purpose", help="For the ledger: what the release is for, a public line."),
]
RequestedBy = Annotated[
    str | None, typer.Option("--requested-by", help="For the ledger: who asked for it.")
]
Approval = Annotated[
    str | None, typer.Option("--approval", help="For the ledger: the approval it rests on.")
]
Verifier = Annotated[
    bool,
    typer.Option(
        "--verifier", help="Copy the verifier there: `python verifier/verify.py` checks the folder."
    ),
]
LedgerFile = Annotated[Path, typer.Argument(help="Ledger of one data set.")]
Published = Annotated[Path, typer.Argument(help="Folder of a release, or of a stream.")]
StreamFolder = Annotated[Path, typer.Argument(help="Folder of a stream.")]


def check_norm(command: str, p: float) -> None:
    """Raise ParameterError unless the norm p of the errors is at least 2, as certificates need."""
    if not p >= 2:
        raise ParameterError(
            f"{command}: expected --p 2 or more, got {p:g}; hint: --p inf for the largest error"
        )


def scales_of(per_record: list[str]) -> dict[str, float]:
    """Return {column: scale} from texts like ``payroll=1000000``.

    A record has a number in each of these columns. The record's budget grows with these numbers,
    divided by the scales.
    """
    scales: dict[str, float] = {}
    for said in per_record:
        name, _, scale = said.rpartition("=")
        try:
            scales[name] = float(scale)
        except ValueError:
            name = ""
        if not name:
            raise ParameterError(
                f"--per-record: expected a number and its scale, like payroll=1000000, got "
                f"{said!r:.80}"
            )
    if len(scales) < len(per_record):
        raise ParameterError("--per-record: expected one scale for each number, got two for one")
    return scales
