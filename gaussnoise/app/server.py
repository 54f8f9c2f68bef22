"""The server of ``gaussnoise app``: it listens on this machine only, and requires a token."""

import contextlib
import functools
import logging
import secrets
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from ..errors import OutputError, ParameterError
from .ask_page import ask_page
from .budget_page import budget_page
from .files import add_files
from .guard import Guard
from .ledger_page import ledger_page
from .project import Project
from .questions_page import questions_page
from .release_page import release_page
from .state import State
from .streams_page import streams_page
from .table_page import table_page

# a page that waits for a plan is built in 3 seconds, the framework's limit, on no busy machine
_PAGE: dict[str, Any] = {"title": "gaussnoise", "response_timeout": 120.0}


def _own_host() -> str:
    """Return a random loopback address, or 127.0.0.1 if the machine has no other."""
    # a browser sends a cookie to all ports of an address: with its own address, the server's cookie
    # does not go to other servers of the machine
    parts = [str(1 + secrets.randbelow(254)) for _ in range(3)]
    return ".".join(["127", *parts]) if sys.platform == "linux" else "127.0.0.1"


@contextlib.contextmanager
def _redirection(address: str) -> Iterator[str]:
    """Yield a file's address that redirects a browser to ``address``, which has the token."""
    # so the token is in no command line, which other users can see in the list of processes
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        refresh = f'<meta http-equiv="refresh" content="0;url={address}">'
        file.write(f"<!DOCTYPE html><title>gaussnoise</title>{refresh}")
        file.flush()
        yield Path(file.name).as_uri()


def application(state: State, token: str, port: int, host: str) -> Guard:
    """Return the ASGI application: all pages and files, behind the access control ``Guard``."""
    for name in ("nicegui", "uvicorn", "asyncio"):  # tracebacks and messages may hold data
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    server = FastAPI(openapi_url=None)
    add_files(server, state)
    pages = {"/": table_page, "/questions": questions_page, "/budget": budget_page}
    pages |= {"/release": release_page, "/ledger": ledger_page}
    for address, page in pages.items():
        ui.page(address, **_PAGE)(functools.partial(page, state))

    @ui.page("/ask", **_PAGE)
    def ask(folder: str = "") -> None:
        ask_page(state, folder)

    @ui.page("/streams", **_PAGE)
    async def streams(stream: str = "", at: str = "") -> None:
        await streams_page(state, stream, at)

    ui.run_with(server, title="gaussnoise", language="en-US", dark=None, show_welcome_message=False)
    return Guard(server, token, port, host)


def serve(folder: Path, port: int | None, *, opens: bool) -> None:
    """Serve a project folder until Ctrl-C.

    Raises:
        OutputError: there is no such folder, or the port is in use.
        ParameterError: ``port`` is not a valid port.
    """
    place = folder.resolve()
    if not place.is_dir():
        raise OutputError(f"app: there is no folder {folder}; hint: mkdir {folder}")
    if port is not None and not 0 < port < 2**16:
        raise ParameterError(f"app: expected a port from 1 to 65535, got {port}")
    host, listening = _own_host(), socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port or 0))
        listening.listen()  # so that a browser that connects before the server starts waits
    except OSError as error:
        raise OutputError(
            f"app: cannot listen on port {port} ({type(error).__name__}); hint: --port of another, "
            "or leave it out"
        ) from None
    own = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    address = f"http://{host}:{own}/?token={token}"
    print(
        f"gaussnoise app: {place}\n{address}\nFor this machine alone. Ctrl-C ends it.", flush=True
    )
    state = State(Project(place))
    config = uvicorn.Config(
        application(state, token, own, host),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,  # seconds; open pages would keep the server running
    )
    try:
        with _redirection(address) if opens else contextlib.nullcontext() as first:
            if first is not None:
                webbrowser.open(first)
            uvicorn.Server(config).run(sockets=[listening])
    finally:  # Ctrl-C ends the server
        if state.jobs.is_busy and (job := state.jobs.last) is not None:
            print(f"{job.name} goes on; the next gaussnoise app here shows its end.", flush=True)
