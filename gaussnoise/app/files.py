"""The published files of a project, over HTTP: nothing else of its folder is served."""

import io
import zipfile
from pathlib import Path

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool

from ..errors import GaussNoiseError
from ..tables import TableRelease
from .project import RELEASES, SCRIPTS
from .state import State

# the page has a script that checks it; it runs apart from the application, and reads nothing of it
_APART = {"content-security-policy": "sandbox allow-scripts allow-downloads allow-popups"}


def add_files(server: FastAPI, state: State) -> None:
    """Add the addresses of published files."""
    project = state.project

    def release(name: str) -> Path:
        if name not in project.published():
            raise HTTPException(404)
        return project.folder / RELEASES / name

    def within(folder: Path, name: str) -> Path:
        try:
            path = (folder / name).resolve()
        except ValueError:  # a name with a null byte
            raise HTTPException(404) from None
        if not (path.is_relative_to(folder.resolve()) and path.is_file()):
            raise HTTPException(404)
        return path

    @server.get("/files/{name}/{path:path}")
    def file(name: str, path: str) -> FileResponse:
        found = within(release(name), path)
        return FileResponse(found, filename=found.name, headers=_APART)

    @server.get("/keep/{name}")
    def kept(name: str) -> FileResponse:
        return FileResponse(within(project.folder / SCRIPTS, name), filename=name)

    @server.get("/page/{name}")
    async def page(name: str) -> FileResponse:
        folder = release(name)
        path = folder.with_name(f"{name}.html")
        if not path.exists():
            try:
                await run_in_threadpool(lambda: TableRelease.load(folder).report(path))
            except GaussNoiseError as error:
                if not path.exists():  # else another tab wrote it
                    raise HTTPException(409, str(error)) from None
        return FileResponse(path, media_type="text/html", headers=_APART)

    @server.get("/zip/{name}")
    def packed(name: str) -> Response:
        folder, content = release(name), io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and path.resolve() == folder.resolve() / path.relative_to(folder):
                    archive.write(path, f"{name}/{path.relative_to(folder).as_posix()}")
        headers = {"content-disposition": f'attachment; filename="{name}.zip"'}
        return Response(content.getvalue(), media_type="application/zip", headers=headers)
