"""The published files of a project, over HTTP: no other files of its folder are served."""

import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse, Response

from ..errors import GaussNoiseError, OutputError
from ..tables import TableRelease
from ..tables.release.formats import FileFormat
from .project import RELEASES, SCRIPTS, STREAMS
from .state import State
from .streaming import opened

README = "README.txt"  # in a zip: what a reader can open
_ALL = "all numbers, with their intervals"
_COUNTS = "counts, with their intervals; in place of a number, weights for programs"
_ANSWERS = "means, sums and other answers, with their intervals"
_TICK = re.compile(r"[0-9]{4,}")

# A published page has a script that checks the page. The header isolates it from the application.
_APART = {"content-security-policy": "sandbox allow-scripts allow-downloads allow-popups"}


def add_files(server: FastAPI, state: State) -> None:
    """Add the addresses of published files to the server."""
    project = state.project

    def release(name: str) -> Path:
        if name not in project.published():
            raise HTTPException(404)
        return project.folder / RELEASES / name

    def within(folder: Path, name: str) -> Path:
        place = folder.resolve()
        path = place / name
        try:
            is_own = path.resolve() == path  # by no link, also not one of a folder on its way
        except ValueError:  # a name with a null byte
            raise HTTPException(404) from None
        if not (is_own and path.is_relative_to(place) and path.is_file()):
            raise HTTPException(404)
        return path

    @server.get("/files/{name}/{path:path}")
    def file(name: str, path: str) -> FileResponse:
        found = within(release(name), path)
        return FileResponse(found, filename=found.name, headers=_APART)

    @server.get("/keep/{name}")
    def kept(name: str) -> FileResponse:
        return FileResponse(within(project.folder / SCRIPTS, name), filename=name)

    def page_of(name: str) -> Path:
        folder = release(name)
        path = folder.with_name(f"{name}.html")
        with _refused():
            _write(path, lambda: TableRelease.load(folder).report(path))
        return within(path.parent, path.name)

    @server.get("/page/{name}")
    def page(name: str) -> FileResponse:
        return FileResponse(page_of(name), media_type="text/html", headers=_APART)

    @server.get("/zip/{name}")
    def packed(name: str) -> Response:
        folder = release(name)
        return _zip(folder, folder.rglob("*"), page_of(name))

    @server.get("/zip/{name}/{format}")
    def converted(name: str, format: FileFormat) -> Response:
        folder = release(name)
        with tempfile.TemporaryDirectory() as place, _refused():
            other = Path(place) / f"{name}-{format}"
            TableRelease.load(folder).save(other, format)
            page = Path(place) / f"{name}-{format}.html"
            TableRelease.load(other).report(page)
            return _zip(other, other.rglob("*"), page)

    def stream(name: str) -> Path:
        if name not in project.streams():
            raise HTTPException(404)
        return project.folder / STREAMS / name

    @server.get("/stream/{name}/ticks/{tick}/{path:path}")
    def of_tick(name: str, tick: str, path: str) -> FileResponse:
        folder = stream(name)
        if not _TICK.fullmatch(tick):  # the folder of an unfinished tick has another name
            raise HTTPException(404)
        found = within(folder, f"ticks/{tick}/{path}")
        return FileResponse(found, filename=found.name, headers=_APART)

    def page_of_stream(name: str) -> Path:
        folder = stream(name)
        with _refused():
            own = opened(project, name)
            path = folder.with_name(f"{name}-{len(own):04d}.html")  # each tick has a new page
            _write(path, lambda: own.tables.report(path))
        return within(path.parent, path.name)

    @server.get("/stream/{name}/page")
    def stream_page(name: str) -> FileResponse:
        return FileResponse(page_of_stream(name), media_type="text/html", headers=_APART)

    @server.get("/stream/{name}/zip")
    def stream_packed(name: str) -> Response:
        folder = stream(name)  # its folder ``private`` is not served
        ticks = [t for t in folder.glob("ticks/*") if _TICK.fullmatch(t.name)]
        own = (folder / "stream.json", folder / "signature.json")
        published = [path for tick in ticks for path in tick.rglob("*")]
        return _zip(folder, [*own, *published], page_of_stream(name) if ticks else None)


@contextmanager
def _refused() -> Iterator[None]:
    """Turn a GaussNoiseError within the block into an HTTP answer 409 with the error's message."""
    try:
        yield
    except GaussNoiseError as error:
        raise HTTPException(409, str(error)) from None


def _write(path: Path, write: Callable[[], object]) -> None:
    """Call ``write``, which writes the file ``path``, unless the file exists."""
    if not path.exists():
        try:
            write()
        except OutputError:
            if not path.exists():  # else another tab wrote it
                raise


def _to_open(folder: Path, page: Path) -> str:
    """Return a line for each part of a zip that readers may open; the page comes first."""
    answers = {"answers": _ANSWERS} if (folder / "answers").is_dir() else {}
    said = answers | {path.name: _COUNTS if answers else _ALL for path in folder.glob("tables*")}
    lines = [f"{folder.name}/{name}: {what}" for name, what in said.items()]
    return "\n".join([f"{page.name}: open this page first, in a browser", *lines, ""])


def _zip(folder: Path, paths: Iterable[Path], page: Path | None) -> Response:
    """Return an HTTP response with a folder's files in a zip file, beside ``page`` for readers."""
    # the folder's record lists all files in it, so the page is not inside; links that lead out of
    # the folder are left out
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(paths):
            if path.is_file() and path.resolve() == folder.resolve() / path.relative_to(folder):
                archive.write(path, f"{folder.name}/{path.relative_to(folder).as_posix()}")
        if page is not None:
            archive.write(page, page.name)
            archive.writestr(README, _to_open(folder, page))
    name = quote(f"{folder.name}.zip")  # a header has no letters beyond Latin-1
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(content.getvalue(), media_type="application/zip", headers=headers)
