"""A server of the page, and the browser of its user."""

import re

import pytest
from browser import Server, program


@pytest.fixture
def started(tmp_path):
    """A function that starts a server on a folder; all end with the test."""
    servers = []

    def start():
        servers.append(Server(tmp_path / "project", tmp_path / "log"))
        return servers[-1]

    (tmp_path / "project").mkdir()
    yield start
    for server in servers:
        server.kill()


@pytest.fixture(scope="package")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        path = program("chromium", "chromium-browser", "google-chrome")
        browser = tool.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium):
    """A tab, in which no script may fail."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: faults.extend(other_places(request.url)))
    yield page
    context.close()
    assert not faults


def other_places(address):
    """The address, unless it is this machine's: the page needs no network."""
    if not re.match(r"(ws|http)://127\.[0-9.]+:|data:|blob:|about:|chrome-error:", address):
        yield address
