"""What is served of published folders: their own files, and nothing that a link leads to."""

import asyncio
import io
import zipfile

import httpx
import pytest
from fastapi import FastAPI

from gaussnoise.app.files import add_files
from gaussnoise.app.project import RELEASES, STREAMS, Project
from gaussnoise.app.state import State


@pytest.fixture
def project(tmp_path):
    """A release and a stream that somebody sent, with links in them that lead elsewhere."""
    folder = (tmp_path / "project").resolve()
    tick, release = folder / STREAMS / "weekly/ticks/0001", folder / RELEASES / "one"
    tick.mkdir(parents=True)
    release.mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    for place in (tick, release):
        (place / "summary.txt").write_text("own")
        (place / "link").symlink_to(tmp_path / "secret")
    (tick.parent / "0002").symlink_to(tmp_path)
    (folder / STREAMS / "weekly/stream.json").write_text("{}")
    (release / "release.json").write_text("{}")
    return folder


@pytest.fixture
def get(project):
    """A function that returns the status and the body of an address, as a server sends it."""
    server = FastAPI()
    add_files(server, State(Project(project)))

    async def sent(path):
        link = httpx.ASGITransport(server)
        async with httpx.AsyncClient(transport=link, base_url="http://page") as client:
            return await client.get(path)

    def answer(path):
        found = asyncio.run(sent(path))
        return found.status_code, found.content

    return answer


def test_own_files_are_served(get):
    for place in ("/stream/weekly/ticks/0001", "/files/one"):
        assert get(f"{place}/summary.txt") == (200, b"own")


@pytest.mark.parametrize(
    "path",
    [
        "/stream/weekly/ticks/0001/link",
        "/stream/weekly/ticks/0002/secret",
        "/stream/weekly/ticks/0001/%2e%2e/%2e%2e/stream.json",
        "/stream/weekly/ticks/0001/%00",
        "/files/one/link",
        "/files/one/%2e%2e/%2e%2e/streams/weekly/stream.json",
        "/files/one//etc/hostname",
        "/stream/weekly/ticks/0001//etc/hostname",
    ],
)
def test_nothing_that_a_link_or_a_path_leads_to_is_served(get, path):
    assert get(path)[0] == 404


def test_a_zip_has_no_links_and_needs_no_ticks(get, project):
    def names():
        _, content = get("/stream/weekly/zip")
        return zipfile.ZipFile(io.BytesIO(content)).namelist()

    assert names() == ["weekly/stream.json", "weekly/ticks/0001/summary.txt"]
    (project / STREAMS / "weekly/ticks").rename(project / "moved")
    assert names() == ["weekly/stream.json"]
