"""Who the dashboard answers: the one check in front of its pages, files, uploads, JSON routes and websocket.

A page from elsewhere cannot read this server's answers, unless its own name is made to point here (DNS rebinding):
so only requests for names that this server goes by are answered. Nor can it open the websocket, which browsers let
any page try. Streamlit would check the websocket alone, and ask an outside host for this server's address first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from uge_core.dashboard.web import below

if TYPE_CHECKING:
    from starlette.middleware import Middleware
    from starlette.requests import HTTPConnection

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MOST_STRANGERS = 64
"""Websockets that may be open at a time to readers who have not signed in."""
# What shows the page on which people sign in, and what signs them in. Streamlit's files are those of its package.
_OPEN = ("/_stcore/health", "/_stcore/host-config", "/auth/login", "/auth/logout", "/oauth2callback")
_FILES = "static-assets"
_NO_PAGE = {"frame-ancestors": "'self'", "object-src": "'none'", "base-uri": "'self'", "form-action": "'self'"}
# A page loads nothing from elsewhere, whatever a name in the data says; no page of another's frames it.
_HEADERS = {
    "content-security-policy": "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; "
    + "; ".join(f"{what} {who}" for what, who in _NO_PAGE.items()),
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}


class _Refusal(NamedTuple):
    status: int
    text: str


def gate(admitted: Callable[[HTTPConnection], bool], **settings: Callable[[], Any]) -> Middleware:
    """`Gate` as a server takes it; what it is told are the arguments of `Gate`."""
    from starlette.middleware import Middleware

    return Middleware(Gate, admitted=admitted, **settings)


class Gate:
    """Middleware that refuses what is not meant for this server or not allowed to who asks.

    Args:
        app: what answers.
        admitted: whether who asks has signed in; True for all where there is no sign-in.
        hosts: names of this server besides those of the loopback and the address that a request came in by;
            ``*.example.org`` stands for all below, ``*`` for any.
        origins: pages of others that may open the websocket.
        base: the path below which the server answers, "" without one.
    """

    def __init__(
        self,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        *,
        admitted: Callable[[HTTPConnection], bool],
        hosts: Callable[[], Iterable[str]] = tuple,
        origins: Callable[[], Iterable[str]] = tuple,
        base: Callable[[], str] = str,
    ) -> None:
        self._app, self._admitted, self._hosts, self._origins, self._base = app, admitted, hosts, origins, base
        self._strangers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or a websocket until it is closed."""
        from starlette.requests import HTTPConnection

        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        asked = HTTPConnection(scope)
        refusal = self._host(asked) or (self._origin(asked) if scope["type"] == "websocket" else None)
        known = refusal is None and self._admitted(asked)
        if refusal is None and not known:
            refusal = self._stranger(scope)
        if refusal is not None:
            await _refuse(scope, receive, send, refusal, api=_among_routes(scope["path"], self._base()))
        elif scope["type"] == "http":
            await self._app(scope, receive, _with_headers(send))
        else:
            # Streamlit takes a page of the name that was asked for without looking further.
            origin = _page(asked.headers.get("origin", ""))
            if origin:
                rest = [(name, value) for name, value in scope["headers"] if name != b"host"]
                scope = {**scope, "headers": [(b"host", origin.encode("latin-1")), *rest]}
            self._strangers += not known
            try:
                await self._app(scope, receive, send)
            finally:
                self._strangers -= not known

    def _host(self, asked: HTTPConnection) -> _Refusal | None:
        """Refuses a name that this server does not go by."""
        given = asked.headers.getlist("host")
        host = _name(given[0]) if len(given) == 1 else None
        names = [*LOOPBACK, *filter(None, self._hosts())]
        local = (asked.scope.get("server") or [None])[0]
        if host is not None and (host == local or _among(host, names)):
            return None
        shown = ascii(given[0][:80]) if given else "none"
        return _Refusal(
            421,
            f"this dashboard does not go by the name {shown}; it answers to {', '.join(dict.fromkeys(names))}; to "
            "allow another, start it with: uge app --allow-host NAME (Streamlit's setting server.allowedHosts)",
        )

    def _origin(self, asked: HTTPConnection) -> _Refusal | None:
        """Refuses a websocket to a page of another server; programs, which are no page, say none."""
        origin = asked.headers.get("origin")
        if origin is None or origin in self._origins():
            return None
        if (page := _page(origin)) and page == asked.headers["host"]:
            return None
        # A proxy may ask for another name than that of the page which it serves. Another port is another server.
        named = [h for h in self._hosts() if h and h not in ("*", *LOOPBACK)]
        name = _name(page)
        if name is not None and name != _name(asked.headers["host"]) and _among(name, named):
            return None
        return _Refusal(
            403,
            f"the page {origin[:80]!a} may not open this dashboard; it opens from its own address alone. To allow "
            "a page of another server, name it in Streamlit's setting server.corsAllowedOrigins",
        )

    def _stranger(self, scope: Scope) -> _Refusal | None:
        """What somebody who has not signed in may ask for: the page to sign in on, and nothing besides."""
        from starlette.routing import Match

        route = next((r for r in scope["app"].routes if r.matches(scope)[0] is not Match.NONE), None)
        if scope["type"] == "websocket":
            # It draws that page.
            if route is not None and route.name != _FILES and self._strangers < MOST_STRANGERS:
                return None
            return _Refusal(503, f"{MOST_STRANGERS} readers are signing in at this moment; try again in a minute")
        path = scope["path"].removeprefix(below(self._base()))
        if scope["method"] in ("GET", "HEAD") and (path in _OPEN or getattr(route, "name", None) == _FILES):
            return None
        return _Refusal(401, "sign in on the dashboard first")


def _page(origin: str) -> str:
    """The name and port in an Origin header; empty where there is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _name(host: str) -> str | None:
    """The name in a Host header, in small letters, without its port; None where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.netloc != host or "@" in host:
        return None
    return parts.hostname.rstrip(".")


def _among(name: str, allowed: Iterable[str]) -> bool:
    for pattern in (a.strip().lower().strip("[]").rstrip(".") for a in allowed):
        if pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:])):
            return True
    return False


def _with_headers(send: Send) -> Send:
    async def out(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            said = {name.lower() for name, _ in message["headers"]}
            added = [(n.encode(), v.encode()) for n, v in _HEADERS.items() if n.encode() not in said]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return out


def _among_routes(path: str, base: str) -> bool:
    """Whether a JSON route is asked for."""
    return any(path == root or path.startswith(f"{root}/") for root in ("/api", f"{below(base)}/api"))


async def _refuse(scope: Scope, receive: Receive, send: Send, refusal: _Refusal, *, api: bool) -> None:
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.websockets import WebSocket

    private = {"Cache-Control": "no-store"}
    answer: Response = PlainTextResponse(f"{refusal.text}\n", refusal.status, private)
    if api:
        answer = JSONResponse({"error": refusal.text}, refusal.status, private)
    if scope["type"] == "http":
        await answer(scope, receive, _with_headers(send))
    elif "websocket.http.response" in scope.get("extensions", {}):
        await WebSocket(scope, receive, send).send_denial_response(answer)
    else:
        await send({"type": "websocket.close", "code": 1008})
