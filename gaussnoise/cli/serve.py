"""The command of the page in a browser."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import NotAvailableError


def serve_app(
    folder: Annotated[
        Path,
        typer.Argument(help="Project folder, with tables of rows, schema, ledger and releases."),
    ] = Path("."),
    port: Annotated[
        int | None, typer.Option("--port", help="Port of this machine; any free one if left out.")
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address, and open no browser.")
    ] = False,
) -> None:
    """Draft, plan and release in a browser, without typing. Only this machine can open the page.

    It works in one folder, with the files that the other commands use. It needs no network.
    """
    try:
        from ..app.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("gaussnoise"):
            raise
        raise NotAvailableError(
            f"app: needs {error.name}; hint: pip install 'gaussnoise[app]'"
        ) from None
    serve(folder, port, opens=not no_open)
