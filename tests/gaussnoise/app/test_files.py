"""What is served of published folders: their own files, and nothing that a link leads to."""

import asyncio
import io
import zipfile
from urllib.parse import quote, unquote

import httpx
import pyarrow as pa
import pytest
from fastapi import FastAPI

import gaussnoise as gn
from gaussnoise.app.files import README, add_files
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


def unpacked(answer, folder):
    """Unpack a zip that was served; return the names of its files that are in no folder."""
    status, content = answer
    assert status == 200, content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(folder)
        return sorted(name for name in archive.namelist() if "/" not in name)


def test_a_zip_has_the_page_beside_the_folder_which_is_still_complete(get, project, tmp_path):
    rows, schema = pa.table({"sex": ["F", "M"] * 50}), gn.Schema([gn.Attribute("sex", ["F", "M"])])
    gn.plan(schema, 1, gn.zCDP(1)).release(rows, out=project / RELEASES / "real")
    assert unpacked(get("/zip/real"), tmp_path / "new") == ["README.txt", "real.html"]
    gn.TableRelease.load(tmp_path / "new/real")  # which refuses a file that is not in the record
    assert "sex" in (tmp_path / "new/real.html").read_text(encoding="utf-8")
    assert get("/page/real") == (200, (tmp_path / "new/real.html").read_bytes())

    own = gn.TableRelease.load(project / RELEASES / "real")
    for format in ("xlsx", "json-stat"):
        assert unpacked(get(f"/zip/real/{format}"), tmp_path / format) == [
            "README.txt",
            f"real-{format}.html",
        ]
        other = gn.TableRelease.load(tmp_path / format / f"real-{format}")
        assert (other["sex"].estimate == own["sex"].estimate).all()
    assert {path.name for path in (project / RELEASES).iterdir()} == {"one", "real", "real.html"}

    plan = gn.plan(schema, 1, gn.zCDP(1), over=gn.streams.Ticks(2))
    stream = plan.start(project / STREAMS / "real")
    assert unpacked(get("/stream/real/zip"), tmp_path / "empty") == []  # no page without a tick
    for tick in (1, 2):
        stream.tick(rows, number=tick)
        own = tmp_path / f"stream-{tick}"
        assert unpacked(get("/stream/real/zip"), own) == ["README.txt", f"real-000{tick}.html"]
    assert not (own / "real/private").exists()
    assert gn.streams.Stream.open(own / "real").tables.period(2).tables


def test_a_zip_says_what_its_reader_can_open(get, project, tmp_path):
    rows = pa.table({"sex": ["F", "M"] * 50, "pay": [1.0, 2.0] * 50})
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 5])])
    gn.plan(schema, ["sex", ("sex", "pay")], gn.zCDP(1)).release(
        rows, out=project / RELEASES / "real"
    )
    for format, first in (("", "means, sums"), ("-xlsx", "all numbers")):
        unpacked(get(f"/zip/real{format.replace('-', '/')}"), own := tmp_path / f"own{format}")
        page, *lines = (own / README).read_text(encoding="utf-8").splitlines()
        assert page == f"real{format}.html: open this page first, in a browser"
        assert lines[0].partition(": ")[2].startswith(first)
        assert len(lines) == (1 if format else 2)
        assert all((own / line.partition(": ")[0]).exists() for line in lines)


@pytest.mark.parametrize("name", ["Zürich", "Łódź", 'a "b"; c'])
def test_a_zip_has_the_name_of_its_folder_in_any_letters(project, name):
    place = project / RELEASES / name
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    gn.plan(schema, 1, gn.zCDP(1)).release(pa.table({"sex": ["F"]}), out=place)
    server = FastAPI()
    add_files(server, State(Project(project)))

    async def sent():
        link = httpx.ASGITransport(server)
        async with httpx.AsyncClient(transport=link, base_url="http://page") as client:
            return await client.get(f"/zip/{quote(name)}")

    answer = asyncio.run(sent())
    assert answer.status_code == 200
    _, _, said = answer.headers["content-disposition"].partition("filename*=UTF-8''")
    assert said.isascii()
    assert unquote(said) == f"{name}.zip"


@pytest.mark.parametrize("format", ["doc", "..", "%2e%2e%2fcsv"])
def test_there_is_no_zip_in_an_unknown_format(get, format):
    assert get(f"/zip/one/{format}")[0] in (404, 422)


@pytest.mark.parametrize("place", ["/zip/one", "/zip/one/csv", "/page/one", "/stream/weekly/zip"])
def test_a_folder_that_is_not_complete_has_no_page_and_no_zip(get, place):
    assert get(place)[0] == 409


def test_neither_links_nor_a_page_that_is_one_are_packed(get, project, tmp_path):
    page = project / RELEASES / "one.html"
    page.write_text("own", encoding="utf-8")
    assert unpacked(get("/zip/one"), tmp_path / "new") == ["README.txt", "one.html"]
    assert sorted(path.name for path in (tmp_path / "new/one").iterdir()) == [
        "release.json",
        "summary.txt",
    ]
    page.unlink()
    page.symlink_to(tmp_path / "secret")
    for place in ("/zip/one", "/page/one"):
        assert get(place)[0] == 404
