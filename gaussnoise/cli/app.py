"""Commands: schema, categories, plan, bound, release, report, ask, synthetic, mean, stream, ledger,
optimize, demo.
"""

import importlib.metadata
import os
import shutil
import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import typer
from rich.console import Console

from domains import DomainError, FiniteSet

from ..errors import DataError, GaussNoiseError, OutputError, ParameterError
from ..estimators import column_means
from ..noise.optimal_noise import OptimalNoise
from ..noise.solve import optimal_noise
from ..privacy.definitions import AbstractPrivacy, ApproxDP, zCDP
from ..privacy.ledger import Ledger
from ..streams import Stream, StreamPlan, Ticks
from ..tables import Budgets, Plan, Schema, TableRelease, Target, Weight, budgets, plan
from ..tables.planning.text import work_text
from ..tables.schema.draft import draft
from ..tables.schema.entries import Entry
from ..tables.schema.workload import as_entry, load_workload
from ..text import near
from .ask import ask
from .categories import show_categories
from .documents import (
    Document,
    bound_document,
    budgets_document,
    ledger_document,
    means_document,
    noise_document,
    plan_document,
    release_document,
    stream_document,
    written,
)
from .patience import patience
from .report import write_report
from .synthetic import synthetic

_HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    no_args_is_help=True,
    context_settings=_HELP,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, which hold data
    help="Unbiased private marginals with the least Gaussian noise, certified. "
    "--version says which; --debug, with any command, shows where an error came from, and may "
    "show data.",
)
ledger_app = typer.Typer(
    no_args_is_help=True,
    context_settings=_HELP,
    pretty_exceptions_enable=False,
    help="A budget on disk that all releases from one data set share. Keep one for each.",
)
app.command("ask")(ask)
app.command("synthetic")(synthetic)
app.add_typer(ledger_app, name="ledger")
app.command("report")(write_report)
app.command("categories")(show_categories)
stream_app = typer.Typer(
    no_args_is_help=True,
    context_settings=_HELP,
    pretty_exceptions_enable=False,
    help="Tables that go on, on one budget: at every tick new rows come in; their tables, and "
    "those of all, go out.",
)
app.add_typer(stream_app, name="stream")
_out = Console(highlight=False, soft_wrap=True, emoji=False)
_err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

Tables = Annotated[
    list[Path],
    typer.Argument(
        help="CSV or Parquet file, several, a quoted pattern like 'data/*.csv', or a folder of "
        "Parquet."
    ),
]
SchemaFile = Annotated[
    Path, typer.Option("--schema", "-s", help="TOML schema; `gaussnoise schema TABLE` drafts one.")
]
Workload = Annotated[
    list[str],
    typer.Option(
        "--marginals",
        "-m",
        help="k for all k-way marginals, or names: -m age,income -m sex (repeatable), with -m "
        "age:prefix,sex for "
        "cumulative counts; age:ranges for all runs.",
    ),
]
Marginals = Annotated[
    list[str] | None,
    typer.Option(
        "--marginals",
        "-m",
        help="k for all k-way marginals, or names: -m age,income -m sex (repeatable), with -m "
        "age:prefix,sex for cumulative counts; age:ranges for all runs. Left out, the schema's "
        "[[workload]] tables.",
    ),
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
Neighbors = Annotated[
    str,
    typer.Option(
        "--neighbors",
        help="Neighbours: add-remove (one row more or less) or replace (one row exchanged).",
    ),
]
Public = Annotated[
    str | None,
    typer.Option(
        "--public",
        help="Under replace: attributes whose joint table is published exactly, like sex,region; "
        "in these nobody is protected.",
    ),
]
Norm = Annotated[
    float, typer.Option("--p", help="Error norm: 2 for total variance, inf for the largest error.")
]
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
Rows = Annotated[
    int,
    typer.Option("--rows-per-person", help="The most rows of one person: persons are protected."),
]
Person = Annotated[
    str | None,
    typer.Option(
        "--person",
        help="Column that says whose row it is: at most --rows-per-person of each are counted, "
        "drawn at random.",
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        "--weight",
        help="COLUMN:MOST: every row counts as much as this column says, up to MOST.",
    ),
]

Json = Annotated[
    bool,
    typer.Option("--json", help="One JSON document on standard output, in place of text."),
]

LedgerFile = Annotated[Path, typer.Argument(help="Ledger of one data set.")]
StreamFolder = Annotated[Path, typer.Argument(help="Folder of a stream.")]

_FEW = 3  # tables of a stream that are shown
_INTERRUPTED = 128 + signal.SIGINT
_PATIENCE = 10.0  # seconds; a longer release says so first, also where nobody watches


def run(arguments: list[str]) -> int:
    """Exit status of one command line."""
    if arguments == ["--version"]:
        _say(importlib.metadata.version("gaussnoise"))
        return 0
    debug = "--debug" in arguments
    try:
        app([a for a in arguments if a != "--debug"], prog_name="gaussnoise")
    except SystemExit as finished:
        if finished.code == _INTERRUPTED:
            _err.print("interrupted")
        return finished.code if isinstance(finished.code, int) else int(finished.code is not None)
    except (GaussNoiseError, DomainError) as error:
        if debug:
            raise
        _err.print(f"[red]error:[/red] {type(error).__name__}: ", end="")
        _err.print(str(error), markup=False)
        return 1
    except Exception as error:
        if debug:
            raise
        _err.print(
            f"[red]internal error:[/red] {type(error).__name__}; --debug shows where, and may "
            "show data"
        )
        return 70
    return 0


@app.command("schema")
def draft_schema(
    table: Tables,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; printed if omitted.")
    ] = None,
) -> None:
    """Draft a TOML schema from a table, to be checked by hand before any release."""
    found = draft(_table(table))
    if not found.attributes:
        reasons = "; ".join(found.left_out.values())
        raise DataError(f"schema: no column can be an attribute; {reasons}")
    schema = Schema(found.attributes)
    text = _DRAFT_WARNING + found.to_toml()
    if out is None:
        sys.stdout.write(text)
    else:
        try:
            with open(out, "x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ParameterError(f"schema: cannot create {out} ({type(error).__name__})") from None
        _say(f"wrote {out}: {len(schema.names)} attributes")
    _err.print(
        "[yellow]warning:[/yellow] this draft was read off the data. Categories and edges must "
        "be public knowledge: "
        "check every line, and keep the draft as confidential as the table until you have."
    )


_DRAFT_WARNING = """\
# DRAFT, read off the data: as confidential as the table itself.
# Categories and edges must be public knowledge (a questionnaire, a code book),
# never what happens to occur.
# Add the ones that do not occur, remove the ones nobody could know, then delete this warning.
# A catch-all for nulls and anything else:  other = "other"
# (a draft treats empty fields and NA as null)

"""


@app.command("plan")
def show_plan(
    schema: SchemaFile,
    marginals: Marginals = None,
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    neighbors: Neighbors = "add-remove",
    public: Public = None,
    p: Norm = 2,
    within: Within = None,
    target: Targets = None,
    rows_per_person: Rows = 1,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Without a budget: new picture of error against budget."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="New HTML file: the plan as a page.")
    ] = None,
    person: Person = None,
    weight: WeightColumn = None,
    as_json: Json = False,
) -> None:
    """Say what a release would look like; without a budget, what every budget would mean.
    Needs no data.
    """
    asked = _asked(schema, marginals, within, target)
    if rho is None and epsilon is None and asked.targets is None:
        if report is not None:
            raise ParameterError("plan: --report shows one plan; hint: give a budget or a target")
        if weight is not None:
            raise ParameterError("plan: --weight needs a budget or a target; hint: --rho 0.1")
        if public is not None:
            raise ParameterError("plan: --public needs a budget or a target; hint: --rho 0.1")
        found = _budgets(asked, delta, neighbors, p, rows_per_person, plot)
        if as_json:
            return _show(budgets_document(found))
        _say(str(found))
        if plot is not None:
            _say(f"wrote {plot}")
        return None
    if plot is not None:
        raise ParameterError(
            "plan: --plot shows all budgets; hint: leave out the budget and targets"
        )
    budget = rho, epsilon, delta
    planned = _plan(asked, budget, neighbors, p, rows_per_person, person, weight, public)
    if report is not None:
        planned.report(report)
    if as_json:
        return _show(plan_document(planned))
    _say(str(planned))
    if report is not None:
        _say(f"wrote {report}")


@app.command("bound")
def show_bound(
    schema: SchemaFile,
    marginals: Marginals = None,
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    neighbors: Neighbors = "add-remove",
    public: Public = None,
    p: Norm = 2,
    rows_per_person: Rows = 1,
    as_json: Json = False,
) -> None:
    """Say what no unbiased mechanism can beat on these tables, and why. Needs no data."""
    asked = _asked(schema, marginals)
    planned = _plan(asked, (rho, epsilon, delta), neighbors, p, rows_per_person, public=public)
    if as_json:
        return _show(bound_document(planned))
    _say(planned.bound.explain())
    _say(f"this plan    {planned.error:.6g}: {planned.bound.sentence(planned.error)}")


@app.command("optimize")
def show_noise(
    workload: Annotated[
        Path,
        typer.Argument(
            help="Matrix of queries by cells: .npy, .npz or .mtx (also sparse), or CSV of "
            "numbers alone."
        ),
    ],
    neighbors: Neighbors = "add-remove",
    p: Norm = 2,
    tol: Annotated[float, typer.Option("--tol", help="Relative gap to certify.")] = 1e-6,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write the noise to, .npz.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what noise is best for a workload of counting queries. Needs no data."""
    if not p >= 2:
        raise ParameterError(
            f"optimize: expected --p 2 or more, got {p:g}; hint: --p inf for the largest error"
        )
    if out is not None and out.suffix != ".npz":
        raise ParameterError(f"optimize: expected --out FILE.npz, got {out}")
    if out is not None and os.path.lexists(out):
        raise OutputError(f"optimize: {out} exists already; hint: choose a new name")
    relation: Any = neighbors
    with patience(_err, "solving") as say:
        noise = optimal_noise(
            FiniteSet.from_workload(_matrix(workload)),
            p,
            relation,
            tol,
            progress=lambda now: say(f"solving, gap {now.gap:.1e}"),
        )
    if out is not None:
        _save_noise(noise, out)
    if as_json:
        return _show(noise_document(noise, neighbors, p, out))
    deviations = noise.covariance.standard_deviation()
    _say(f"{len(deviations)} queries, {neighbors} neighbours, p = {p:g}: {noise.method}")
    _say(
        f"least error at unit sensitivity: {noise.gamma_lower:.8g} <= gamma <= {noise.gamma:.8g}, "
        f"gap {noise.gap:.1e}"
    )
    _say(
        f"standard deviations of the answers from {deviations.min():.6g} to "
        f"{deviations.max():.6g}, over sqrt(2 rho)"
    )
    _say(f'in Python: optimal_noise(..., neighbors="{neighbors}"), whose own default is "replace"')
    if neighbors == "replace":
        _say("of sums; divide by the public number of records for means")
    if out is not None:
        _say(f"wrote {out}: gaussnoise.OptimalNoise.load reads and verifies it")


def _save_noise(noise: OptimalNoise, out: Path) -> None:
    try:
        noise.save(out)
    except OSError as error:
        raise OutputError(f"optimize: cannot create {out} ({type(error).__name__})") from None


@app.command("release")
def make_release(
    table: Tables,
    schema: SchemaFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="New directory for the results.")],
    marginals: Marginals = None,
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    neighbors: Neighbors = "add-remove",
    public: Public = None,
    p: Norm = 2,
    within: Within = None,
    target: Targets = None,
    rows_per_person: Rows = 1,
    person: Person = None,
    weight: WeightColumn = None,
    format: Annotated[str, typer.Option("--format", help="Table files: csv or parquet.")] = "csv",
    on_outside: Annotated[
        str,
        typer.Option(
            "--on-outside",
            help="A row with a null, or a value outside the schema, where no catch-all takes it: "
            "drop (it counts in no "
            "table), or refuse (the whole release; tells something about the rows: for "
            "development).",
        ),
    ] = "drop",
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger", help="Charge this budget first; `gaussnoise ledger create` starts one."
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id", help="Name in the ledger: run again with it, the same result is read again."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Release marginals of a table, spending the budget once."""
    if (ledger is None) != (id is None):
        raise ParameterError(
            "release: expected --ledger and --id together: a ledger knows releases by their id"
        )
    asked = _asked(schema, marginals, within, target)
    budget = rho, epsilon, delta
    planned = _plan(asked, budget, neighbors, p, rows_per_person, person, weight, public)
    _release(planned, _table(table), out, format, on_outside, ledger, id, as_json=as_json)
    if as_json:
        _show(release_document(out))


@app.command("mean")
def release_means(
    table: Tables,
    columns: Annotated[str, typer.Option("--columns", "-c", help="Numeric columns: income,age.")],
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
    k: Annotated[
        float, typer.Option("--k", help="Order of that moment: more for lighter tails.")
    ] = 2.0,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
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
    if out is not None and os.path.lexists(out):
        raise OutputError(f"mean: {out} exists already; hint: choose a new name")
    relation: Any = neighbors
    groups = dict(_grouping(entry, schema) for entry in by or [])
    names = [name.strip() for name in columns.split(",")]
    options: dict[str, Any] = {"by": groups, "person": person, "neighbors": relation}
    options |= {"spread": spread, "k": k, "level": level, "ledger": ledger, "id": id}
    with patience(_err, "averaging"):
        found = column_means(_table(table), names, _privacy(rho, epsilon, delta), **options)
    if out is not None:
        found.save(out)
    if as_json:
        return _show(means_document(found, out))
    _say(str(found))
    if out is not None:
        _say(f"wrote {out}")


def _grouping(entry: str, schema: Path | None) -> tuple[str, list[Any]]:
    """A grouping column and its categories, spelled out or from a schema."""
    name, equals, listed = entry.partition("=")
    if equals:
        return name.strip(), [category.strip() for category in listed.split(",")]
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


@stream_app.command("start")
def start_stream(
    folder: Annotated[Path, typer.Argument(help="New folder for the stream.")],
    schema: SchemaFile,
    marginals: Workload,
    ticks: Annotated[
        int, typer.Option("--ticks", help="How many tables of new rows will come in, at most.")
    ],
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    reports: Annotated[
        int, typer.Option("--reports", help="In how many ticks one person has rows, at most.")
    ] = 1,
    apart: Annotated[
        int, typer.Option("--apart", help="How far these ticks are apart, at least.")
    ] = 1,
    workload: Annotated[
        str,
        typer.Option(
            "--workload", help="What is to have the least error: totals, periods or both."
        ),
    ] = "totals",
    period: Annotated[
        str | None,
        typer.Option("--period", help="Column with the number of each row's tick, from 1 on."),
    ] = None,
    late: Annotated[
        str,
        typer.Option(
            "--late",
            help="Rows of earlier ticks, as --period says: refuse, or carry to the tick at hand.",
        ),
    ] = "refuse",
    neighbors: Neighbors = "add-remove",
    p: Norm = 2,
    rows_per_person: Annotated[
        int, typer.Option("--rows-per-person", help="The most rows of one person in a tick.")
    ] = 1,
    person: Annotated[
        str | None,
        typer.Option(
            "--person",
            help="Column that says whose row it is: at most --rows-per-person of each are counted "
            "in a tick.",
        ),
    ] = None,
    format: Annotated[str, typer.Option("--format", help="Table files: csv or parquet.")] = "csv",
    on_outside: Annotated[
        str,
        typer.Option(
            "--on-outside", help="As for release: drop rows that do not fit the schema, or refuse."
        ),
    ] = "drop",
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Charge this budget, once for all ticks.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Name in the ledger.")] = None,
) -> None:
    """Begin a stream: its whole budget is spent here, once. Needs no data."""
    if (ledger is None) != (id is None):
        raise ParameterError(
            "stream: expected --ledger and --id together: a ledger knows streams by their id"
        )
    wanted: dict[str, Any] = {"late": late, "workload": workload}  # checked there
    over = Ticks(ticks, reports, apart, period=period, **wanted)
    relation: Any = neighbors
    loaded = Schema.load(schema)
    asked, privacy = _workload(marginals, loaded.names), _privacy(rho, epsilon, delta)
    with patience(_err, "planning"):
        planned: StreamPlan = plan(
            loaded,
            asked,
            privacy,
            neighbors=relation,
            p=p,
            rows_per_person=rows_per_person,
            person=person,
            over=over,
        )
    options: dict[str, Any] = {"format": format, "on_outside": on_outside}
    planned.start(folder, ledger=ledger, id=id, **options)
    _say(str(planned))
    _say(f"wrote {folder}/stream.json: public; tables of every tick will be in {folder}/ticks")
    _say(
        f"{folder}/private will hold exact counts, which later ticks need: keep it as "
        "confidential as the rows"
    )


@stream_app.command("tick")
def run_tick(
    folder: StreamFolder,
    table: Tables,
    number: Annotated[
        int | None,
        typer.Option(
            "--tick",
            help="Its number: run again with it after a crash, and no row is counted twice.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Where the stream's ledger is now, if moved.")
    ] = None,
) -> None:
    """Count the new rows of one tick; publish their tables, and those of all rows so far."""
    stream = Stream.open(folder, ledger)
    with patience(_err, "counting"):
        stream.tick(_table(table), number)
    target = stream.state.tick_folder(len(stream) if number is None else number)
    _say((target / "summary.txt").read_text(encoding="utf-8"))
    _say(f"wrote {target}/cumulative, {target}/period and {target}/release.json")


@stream_app.command("show")
def show_stream(
    folder: StreamFolder,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Where the stream's ledger is now, if moved.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what was planned, how many ticks are done, and what the last of them published."""
    stream = Stream.open(folder, ledger)
    if as_json:
        return _show(stream_document(stream, folder))
    _say(str(stream.plan))
    done = len(stream)
    _say(f"\n{done} of {stream.plan.over.n} ticks done")
    if done:
        total = stream.total()
        for names in list(total)[:_FEW]:
            _say(f"\nall rows so far: {total[names]}")


@ledger_app.command("create")
def create_ledger(
    path: LedgerFile,
    rho: Annotated[
        float, typer.Option("--rho", help="Budget of all releases together: rho of zCDP.")
    ],
    delta: Annotated[
        float,
        typer.Option("--delta", help="The most that thresholds may spend: gaussnoise categories."),
    ] = 0.0,
) -> None:
    """Start a ledger with a fixed budget."""
    ledger = Ledger.create(path, zCDP(rho), delta)
    more = f" and delta {delta:g}" if delta else ""
    _say(f"wrote {ledger.path}: rho {rho:g}{more} for all releases together")


@ledger_app.command("show")
def show_ledger(
    path: LedgerFile,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            help="Say also what (epsilon, delta) has been spent: 1e-6, or twice what thresholds "
            "may spend, if omitted.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List all charges and refusals of a ledger. A refusal depends on the data; all else here is
    public.
    """
    ledger = Ledger.open(path)
    entries = ledger.entries()
    delta = max(1e-6, 2 * ledger.delta) if delta is None else delta
    left = delta - ledger.delta  # all thresholds together never spend more
    if not left > 0:
        raise ParameterError(
            f"ledger: expected --delta above {ledger.delta:g}, which thresholds may spend, got "
            f"{delta:g}; hint: --delta {2 * ledger.delta:g}"
        )
    if as_json:
        return _show(ledger_document(ledger, delta))
    spent, budget = ledger.epsilon(delta), zCDP(ledger.rho).epsilon(left)
    refused = sum(entry.state == "refused" for entry in entries)
    _say(
        f"budget rho {ledger.rho:g}, spent {ledger.spent:g}, left {ledger.remaining:g}; "
        f"charges: {len(entries) - refused}, refusals of the data: {refused}"
    )
    if ledger.delta:
        _say(f"delta of thresholds {ledger.delta:g}, spent {ledger.spent_delta:g}")
    _say(f"epsilon at delta {delta:g}: {spent:.4g} for what is spent, {budget:.4g} for the budget")
    for entry in entries:
        thresholds = f"delta {entry.delta:<10.6g}  " if ledger.delta else ""
        digest = "" if entry.sha256 is None else f"  sha256 {entry.sha256[:12]}"
        _say(
            f"  {entry.begun}  {entry.state:<8}  rho {entry.rho:<10.6g}  {thresholds}{entry.id}  "
            f"({entry.protects}){digest}"
        )
        _say(f"    {entry.target}")


@app.command("demo")
def demo() -> None:
    """Release all 2-way marginals of the embedded demo table into a new folder."""
    import pyarrow.csv

    from ..demo import load

    table, schema = load()
    folder = next(
        f
        for k in range(1, 10_000)
        if not (f := Path("gaussnoise-demo" + (f"-{k}" if k > 1 else ""))).exists()
    )
    try:
        folder.mkdir()
    except OSError as error:
        raise OutputError(f"demo: cannot create {folder} here ({type(error).__name__})") from None
    pyarrow.csv.write_csv(table, folder / "survey.csv")
    (folder / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
    planned = plan(schema, 2, zCDP(0.1))
    result = _release(planned, str(folder / "survey.csv"), folder / "release")
    affair = result["marriage", "affair"]
    low, high = affair.confidence_interval()
    _say(
        "For example, people with an affair, by how they rate their marriage (private estimate, "
        "95 % interval):"
    )
    for k, label in enumerate(affair.labels[0]):
        _say(f"  {label!s:<10} {affair.estimate[k, 1]:8.0f}   {low[k, 1]:8.0f} … {high[k, 1]:.0f}")
    _say(
        f"\nwrote {folder}/survey.csv          the sensitive table (6366 answers to a magazine "
        "survey of 1974)"
    )
    _say(f"wrote {folder}/schema.toml         its public schema")
    # a virtual environment that is not activated has the command, but not on the path
    command = "gaussnoise" if shutil.which("gaussnoise") else os.path.relpath(sys.argv[0])
    _say(
        "\nTry next:\n"
        f"  {command} plan --schema {folder}/schema.toml --marginals 3 --rho 0.1\n"
        f"  {command} release {folder}/survey.csv --schema {folder}/schema.toml -m age,affair -m "
        "religious,affair "
        "--rho 0.05 --out mine\n"
        f"  {command} schema YOUR_TABLE.csv --out schema.toml"
    )


class _Asked(NamedTuple):
    """What a command line and a schema file ask for, and how accurate it is to be."""

    schema: Schema
    workload: int | list[Entry]
    targets: Any  # as plan takes them; None where nothing is said


def _asked(
    path: Path,
    marginals: list[str] | None,
    within: float | None = None,
    target: list[str] | None = None,
) -> _Asked:
    schema = Schema.load(path)
    targets: dict[frozenset[str], Target] = dict(map(_target, target or []))
    if len(targets) < len(target or []):
        raise ParameterError("--target: expected one for each marginal, got two for one")
    if within is not None and targets:
        raise ParameterError("expected --within for all marginals, or --target for each, not both")
    if marginals:
        aims = within if within is not None else targets or None
        return _Asked(schema, _workload(marginals, schema.names), aims)
    wanted = load_workload(path)
    if not wanted:
        raise ParameterError(
            f"expected --marginals (-m), or [[workload]] tables in {path} that say what to ask"
        )
    goals = [
        None if one.within is None else Target(one.within, one.level, one.simultaneous)
        for one in wanted
    ]
    entries = [one.entry for one in wanted]
    if within is not None or all(goal is None for goal in goals):
        return _Asked(schema, entries, within if within is not None else targets or None)
    if targets:  # those of the command line come first
        own = {
            frozenset(entry): goal
            for entry, goal in zip(entries, goals, strict=True)
            if goal is not None
        }
        return _Asked(schema, entries, own | targets)
    return _Asked(schema, entries, goals)


def _target(text: str) -> tuple[frozenset[str], Target]:
    """Names and what is asked of them, from ``sex,age=50`` or ``age=80@0.99``."""
    names, equals, numbers = text.rpartition("=")
    rows, at, level = numbers.partition("@")
    try:
        goal = (float(rows), float(level) if at else 0.95)
    except ValueError:
        goal = None
    if not equals or goal is None:
        raise ParameterError(
            f"--target: expected NAMES=ROWS or NAMES=ROWS@LEVEL, like age=80@0.99, got {text!r}"
        )
    return frozenset(n.strip() for n in names.split(",") if n.strip()), Target(*goal)


def _plan(
    asked: _Asked,
    budget: tuple[float | None, float | None, float | None],
    neighbors: str,
    p: float,
    rows_per_person: int,
    person: str | None = None,
    weight: str | None = None,
    public: str | None = None,
) -> Plan:
    free = asked.targets is not None and budget == (None, None, None)
    relation: Any = neighbors
    with patience(_err, "planning"):
        return plan(
            asked.schema,
            asked.workload,
            None if free else _privacy(*budget),
            neighbors=relation,
            p=p,
            targets=asked.targets,
            rows_per_person=rows_per_person,
            person=person,
            weight=None if weight is None else _weight(weight),
            public=[name.strip() for name in (public or "").split(",") if name.strip()],
        )


def _budgets(
    asked: _Asked,
    delta: float | None,
    neighbors: str,
    p: float,
    rows_per_person: int,
    plot: Path | None,
) -> Budgets:
    """What budgets mean before one is chosen, drawn if asked for."""
    if plot is not None and os.path.lexists(plot):
        raise OutputError(f"plan: {plot} exists already; hint: choose a new name")
    options: dict[str, Any] = {"neighbors": neighbors, "p": p, "rows_per_person": rows_per_person}
    if delta is not None:
        options["delta"] = delta
    with patience(_err, "planning"):
        found = budgets(asked.schema, asked.workload, **options)
    if plot is not None:
        try:
            found.plot().savefig(plot)
        except (OSError, ValueError) as error:  # a format that matplotlib does not know
            raise OutputError(
                f"plan: cannot write {plot} ({type(error).__name__}); hint: FILE.png"
            ) from None
    return found


def _weight(text: str) -> Weight:
    column, _, most = text.rpartition(":")
    try:
        return Weight(column, float(most))
    except ValueError:
        raise ParameterError(
            f"--weight: expected COLUMN:MOST, a column and the largest weight that counts in full, "
            f"got {text!r:.80}"
        ) from None


def _table(paths: list[Path]) -> str | list[str]:
    """One table, in one file or several."""
    return str(paths[0]) if len(paths) == 1 else [str(path) for path in paths]


def _matrix(path: Path) -> Any:
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        if path.suffix in (".mtx", ".npz"):
            return _sparse(path)
        with open(path, encoding="utf-8") as file:
            if file.readline().startswith(","):
                raise ParameterError(
                    f"optimize: expected numbers alone in {path}, got a header and an index; "
                    f"{_PLAIN}"
                )
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what it says of an empty file
            numbers = np.loadtxt(path, delimiter=",", ndmin=2)
    except OSError as error:
        reason = (
            "there is no such file"
            if isinstance(error, FileNotFoundError)
            else type(error).__name__
        )
        raise ParameterError(f"optimize: cannot read {path}: {reason}") from None
    except (ValueError, UserWarning) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            f"optimize: expected a matrix of numbers in {path}; "
            "hint: one query a line, a number for every cell, commas between, no header and no "
            "index"
        ) from None
    for line, what in ((numbers[0], "header"), (numbers[:, 0], "index")):
        if min(numbers.shape) > 1 and np.array_equal(line, np.arange(len(line))):
            where = "row" if what == "header" else "column"
            raise ParameterError(
                f"optimize: the first {where} of {path} counts 0, 1, 2, …, as the {what} does "
                "that pandas writes; "
                f"{_PLAIN}, and .npy for a matrix that begins so"
            )
    return numbers


_PLAIN = "hint: frame.to_csv(path, header=False, index=False) writes numbers alone"


# what readers of archives and of Matrix Market files raise
_UNREADABLE = (
    EOFError,
    LookupError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    BadZipFile,
)


def _sparse(path: Path) -> Any:
    """A Matrix Market file, or what scipy.sparse.save_npz or numpy.savez wrote."""
    from scipy import io, sparse

    expected = f"optimize: expected one matrix of real numbers in {path}"
    try:
        if path.suffix == ".mtx":
            return io.mmread(path)
        with np.load(path, allow_pickle=False) as archive:
            names = archive.files
            if len(names) == 1:
                return archive[names[0]]
        if "format" in names:
            return sparse.load_npz(path)
    except OSError:
        raise
    except _UNREADABLE as error:  # whose texts may quote the file
        raise ParameterError(f"{expected} ({type(error).__name__})") from None
    raise ParameterError(f"{expected}; hint: scipy.sparse.save_npz, or numpy.savez of one array")


def _workload(marginals: list[str], known: tuple[str, ...]) -> int | list[Entry]:
    if len(marginals) == 1 and marginals[0].isdigit():
        return int(marginals[0])
    return [
        as_entry([name.strip() for name in listed.split(",") if name.strip()], known)
        for listed in marginals
    ]


def _privacy(rho: float | None, epsilon: float | None, delta: float | None) -> AbstractPrivacy:
    if rho is not None and epsilon is None and delta is None:
        return zCDP(rho)
    if rho is None and epsilon is not None and delta is not None:
        return ApproxDP(epsilon, delta)
    raise ParameterError(
        "budget: expected either --rho, or --epsilon with --delta, or --within, or --target"
    )


def _release(
    planned: Plan,
    table: str | list[str],
    out: Path,
    format: str = "csv",
    on_outside: str = "drop",
    ledger: Path | None = None,
    id: str | None = None,
    *,
    as_json: bool = False,
) -> TableRelease:
    """Say what it takes, do it, show the summary and what was written."""
    if _err.is_terminal or planned.seconds > _PATIENCE:
        _err.print(work_text(planned), markup=False)
    wanted: dict[str, Any] = {"format": format, "on_outside": on_outside}  # checked there
    result = planned.release(
        table, out=out, progress=_err.is_terminal, ledger=ledger, id=id, **wanted
    )
    if as_json:
        return result
    _say((out / "summary.txt").read_text(encoding="utf-8"))
    tables: Any = result.tables
    files = list(dict.fromkeys(place.file for place in tables.places.values()))
    _say(f"wrote {out}/{files[0]}" + (f" … {len(files)} files" if len(files) > 1 else ""))
    _say(f"wrote {out}/release.json        everything an auditor needs")
    _say(
        f"wrote {out}/summary.txt"
        + (f", {out}/release.png" if (out / "release.png").exists() else "")
    )
    return result


def _show(document: Document) -> None:
    """A document alone, without what a console would make of it."""
    sys.stdout.write(written(document) + "\n")


def _say(text: str) -> None:
    _out.print(text, markup=False)
