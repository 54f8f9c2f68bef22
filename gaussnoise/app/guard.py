"""Access control of the server: only clients that know its token, and only its own pages."""

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias, final
from urllib.parse import parse_qs

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Server: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

_PRIVATE = [
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
_FRAMEWORK = "/_nicegui/"  # scripts and fonts, which hold no data


@final
@dataclass(frozen=True)
class Guard:
    """A server that requires a token.

    A browser first sends the token in the address that the command prints. Later, the browser sends
    the token in a cookie. Scripts cannot read this cookie, and other sites cannot send it. Requests
    for another host name are refused, because others can point such a name to this machine.
    Requests from other sites are refused too.

    Attributes:
        server: the ASGI application.
        token: a random text.
        port: the port on which the server listens.
        host: the address on which the server listens.
    """

    server: Server
    token: str
    port: int
    host: str = "127.0.0.1"

    @property
    def cookie(self) -> str:
        """The name of the cookie; it has the port, as all ports of a machine share cookies."""
        return f"gaussnoise-{self.port}"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.server(scope, receive, send)
        headers = _headers(scope)
        is_socket = scope["type"] == "websocket"
        own = headers.get("host", "") == f"{self.host}:{self.port}"
        origin = headers.get("origin")
        own &= origin == f"http://{headers.get('host')}" if origin or is_socket else True
        own &= headers.get("sec-fetch-site", "none") in ("none", "same-origin") or (
            self._is_first(scope)
        )
        if own and self._is_first(scope):
            return await self._enter(send)
        if not (own and self._same(_cookie(headers.get("cookie", ""), self.cookie))):
            return await _refused(scope, receive, send)
        is_private = not scope["path"].startswith(_FRAMEWORK)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [*_PRIVATE, *([(b"cache-control", b"no-store")] if is_private else [])]
                named = {name for name, _ in more}
                kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in named]
                message["headers"] = [*kept, *more]
            await send(message)

        return await self.server(scope, receive, answer)

    def _is_first(self, scope: Message) -> bool:
        """Return whether a request is for the address with the token, which the command printed."""
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/":
            return False
        asked = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        return self._same(asked.get("token", [""])[0])

    def _same(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.token.encode())

    async def _enter(self, send: Send) -> None:
        """Answer with a page that sets the cookie and then opens the address "/".

        The address "/" does not contain the token, because browsers store addresses.
        """
        cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        # a page, not a redirection: if another site linked here, browsers would not send the cookie
        page = (
            b'<!DOCTYPE html><title>gaussnoise</title><meta http-equiv="refresh" content="0;url=/">'
        )
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"set-cookie", cookie.encode()),
            (b"cache-control", b"no-store"),
            *_PRIVATE,
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": page})


def _headers(scope: Message) -> dict[str, str]:
    """Return {name in lower case: value} of the headers of an HTTP request."""
    # values of a header that occurs twice are joined by a line break, so that they equal no
    # expected value; those of cookies are joined by semicolons
    found: dict[str, str] = {}
    for name, value in scope.get("headers", ()):
        key = name.decode("latin-1").lower()
        joint = "; " if key == "cookie" else "\n"
        found[key] = (found[key] + joint if key in found else "") + value.decode("latin-1")
    return found


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def _refused(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    text = (
        b"gaussnoise app: this address needs its token. Open the whole address that the command "
        b"printed.\n"
    )
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_PRIVATE]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": text})
