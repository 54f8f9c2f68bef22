"""The application that holds all commands of ``gaussnoise``."""

import functools
import importlib.metadata
import signal

import typer
from typer.core import TyperGroup

from ..errors import GaussNoiseError
from .ask import ask
from .categories import show_categories
from .certify import certify_strategy
from .check import check_table
from .combine import combine_releases
from .console import ERR, flowing, say
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
from .serve import serve_app
from .stream import (
    check_tick,
    forget_persons,
    plan_stream,
    run_tick,
    show_series,
    show_stream,
    start_stream,
)
from .synthetic import synthetic
from .verify import sign_folder, verify_folder
from .wording import in_shell, options_of

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

_COMMANDS = {
    app: {
        "schema": draft_schema,
        "categories": show_categories,
        "check": check_table,
        "plan": show_plan,
        "bound": show_bound,
        "release": make_release,
        "report": write_report,
        "convert": convert,
        "ask": ask,
        "combine": combine_releases,
        "difference": show_changes,
        "synthetic": synthetic,
        "mean": release_means,
        "optimize": show_noise,
        "certify": certify_strategy,
        "inspect": inspect_release,
        "verify": verify_folder,
        "sign": sign_folder,
        "app": serve_app,
        "demo": demo,
    },
    stream_app: {
        "plan": plan_stream,
        "start": start_stream,
        "check": check_tick,
        "tick": run_tick,
        "show": show_stream,
        "series": show_series,
        "forget": forget_persons,
    },
    ledger_app: {"create": create_ledger, "show": show_ledger},
}
for _app, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        _app.command(_name, help=flowing(_command.__doc__ or ""))(_command)

_INTERRUPTED = 128 + signal.SIGINT


@functools.cache
def _group() -> TyperGroup:
    """Return the application with its parsers: a program that runs many lines builds them once."""
    return typer.main.get_group(app)


def run(arguments: list[str]) -> int:
    """Run one command line, and return its exit status."""
    if arguments == ["--version"]:
        say(importlib.metadata.version("gaussnoise"))
        return 0
    debug = "--debug" in arguments
    try:
        _group()([a for a in arguments if a != "--debug"], prog_name="gaussnoise")
    except SystemExit as finished:
        if finished.code == _INTERRUPTED:
            ERR.print("interrupted")
        return finished.code if isinstance(finished.code, int) else int(finished.code is not None)
    except GaussNoiseError as error:
        if debug:
            raise
        options = options_of(_group(), arguments)
        say(in_shell(f"error: {type(error).__name__}: {error}", options), ERR, "red")
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
