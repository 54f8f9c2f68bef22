"""Nothing answers a program without the token, another host, or a page of another origin."""

import asyncio

import pytest

from gaussnoise.app.guard import Guard

TOKEN, PORT = "t0ken-of-this-server", 8123
HOST = f"127.0.0.1:{PORT}"
COOKIE = f"gaussnoise-{PORT}={TOKEN}"


def asked(kind="http", path="/budget", query="", method="GET", **headers):
    """What is sent back, and whether the application behind was reached."""
    reached, sent = [], []

    async def behind(scope, receive, send):
        reached.append(scope["path"])
        await send({"type": f"{kind}.response.start", "status": 200, "headers": []})

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "websocket.connect"}

    given = {"host": HOST} | {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": kind,
        "path": path,
        "method": method,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items() if value],
    }
    asyncio.run(Guard(behind, TOKEN, PORT)(scope, receive, send))
    return sent, bool(reached)


def test_the_address_that_is_printed_sets_a_cookie_that_no_script_or_other_site_can_use():
    sent, reached = asked(path="/", query=f"token={TOKEN}")
    assert not reached
    assert sent[0]["status"] == 200
    cookie = dict(sent[0]["headers"])[b"set-cookie"].decode()
    assert cookie == f"{COOKIE}; Path=/; HttpOnly; SameSite=Strict"
    assert TOKEN.encode() not in sent[1]["body"]


def test_with_the_cookie_pages_are_served_and_kept_nowhere():
    sent, reached = asked(cookie=f"other=1; {COOKIE}")
    assert reached
    assert (b"cache-control", b"no-store") in sent[0]["headers"]
    assert asked("websocket", "/_nicegui_ws/", cookie=COOKIE, origin=f"http://{HOST}")[1]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"cookie": COOKIE + "x"},
        {"cookie": f"gaussnoise-{PORT}="},
        {"cookie": COOKIE, "host": "evil.example"},  # a name that points to this machine
        {"cookie": COOKIE, "host": f"evil.example:{PORT}"},
        {"cookie": COOKIE, "host": ""},
        {"cookie": COOKIE, "origin": "http://evil.example"},
        {"cookie": COOKIE, "origin": "null"},
        {"cookie": COOKIE, "origin": "http://127.0.0.1:9999"},  # another port of this machine
        {"cookie": COOKIE, "sec_fetch_site": "cross-site"},
        {"cookie": COOKIE, "sec_fetch_site": "same-site"},
        {"path": "/", "query": "token=wrong"},
        {"path": "/", "query": f"token={TOKEN}", "host": "evil.example"},
        {"path": "/", "query": f"token={TOKEN}", "method": "POST"},
        {"path": "/files/release-1/release.json", "query": f"token={TOKEN}"},
        {"path": "/_nicegui/any.js"},
        {"cookie": 'gaussnoise-8123="\\'},
    ],
)
def test_all_else_gets_nothing(given):
    sent, reached = asked(**given)
    assert not reached
    assert sent[0]["status"] == 403
    assert TOKEN.encode() not in sent[1]["body"]


@pytest.mark.parametrize(
    "given",
    [
        {"origin": f"http://{HOST}"},
        {"cookie": COOKIE},  # no browser leaves out the origin
        {"cookie": COOKIE, "origin": "http://evil.example"},
        {"cookie": COOKIE, "origin": f"http://{HOST}", "host": "evil.example"},
    ],
)
def test_sockets_are_closed_before_they_open(given):
    sent, reached = asked("websocket", "/_nicegui_ws/", **given)
    assert not reached
    assert [message["type"] for message in sent] == ["websocket.close"]
