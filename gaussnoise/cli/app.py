"""The application that holds all commands of ``gaussnoise``."""

import importlib.metadata
import signal

import typer

from ..errors import GaussNoiseError
from .ask import ask
from .categories import show_categories
from .certify import certify_strategy
from .check import check_table
from .combine import combine_releases
from .console import ERR, say
from .convert import convert
from .demo import demo
from .difference import show_changes
from .inspect import inspect_release
from .ledger import create_ledger, show_ledger
from .mean import release_means
from .optimize import show_noise
from .plan import show_bound, show_plan
from .release import make_release
from .report import write_report
from .schema import draft_schema
from .stream import (
    forget_persons,
    plan_stream,
    run_tick,
    show_series,
    show_stream,
    start_stream,
)
from .synthetic import synthetic
from .verify import sign_folder, verify_folder

_HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    no_args_is_help=True,
    context_settings=_HELP,
    add_completion=False,
    pretty_exceptions_enable=False,  # rich tracebacks show local variables, which hold data
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
stream_app = typer.Typer(
    no_args_is_help=True,
    context_settings=_HELP,
    pretty_exceptions_enable=False,
    help="Tables that go on, on one budget: at every tick new rows come in; their tables, and "
    "those of all, go out.",
)
app.add_typer(ledger_app, name="ledger")
app.add_typer(stream_app, name="stream")

app.command("schema")(draft_schema)
app.command("categories")(show_categories)
app.command("check")(check_table)
app.command("plan")(show_plan)
app.command("bound")(show_bound)
app.command("release")(make_release)
app.command("report")(write_report)
app.command("convert")(convert)
app.command("ask")(ask)
app.command("combine")(combine_releases)
app.command("difference")(show_changes)
app.command("synthetic")(synthetic)
app.command("mean")(release_means)
app.command("optimize")(show_noise)
app.command("certify")(certify_strategy)
app.command("inspect")(inspect_release)
app.command("verify")(verify_folder)
app.command("sign")(sign_folder)
app.command("demo")(demo)
stream_app.command("plan")(plan_stream)
stream_app.command("start")(start_stream)
stream_app.command("tick")(run_tick)
stream_app.command("show")(show_stream)
stream_app.command("series")(show_series)
stream_app.command("forget")(forget_persons)
ledger_app.command("create")(create_ledger)
ledger_app.command("show")(show_ledger)

_INTERRUPTED = 128 + signal.SIGINT


def run(arguments: list[str]) -> int:
    """Run one command line, and return its exit status."""
    if arguments == ["--version"]:
        say(importlib.metadata.version("gaussnoise"))
        return 0
    debug = "--debug" in arguments
    try:
        app([a for a in arguments if a != "--debug"], prog_name="gaussnoise")
    except SystemExit as finished:
        if finished.code == _INTERRUPTED:
            ERR.print("interrupted")
        return finished.code if isinstance(finished.code, int) else int(finished.code is not None)
    except GaussNoiseError as error:
        if debug:
            raise
        say(f"error: {type(error).__name__}: {error}", ERR, "red")
        return 1
    except Exception as error:
        if debug:
            raise
        say(
            f"internal error: {type(error).__name__}; --debug shows where, and may show data",
            ERR,
            "red",
        )
        return 70
    return 0
