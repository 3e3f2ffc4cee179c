"""What the gate says to headers that are no addresses."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from uge_core.dashboard.gate import Gate


def said(origin: str) -> list[MutableMapping[str, Any]]:
    """What is sent to who opens the websocket from a page."""
    sent: list[MutableMapping[str, Any]] = []

    async def app(*_: Any) -> None:
        sent.append({"type": "let in"})

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    headers = [(b"host", b"localhost:8501"), (b"origin", origin.encode("latin-1"))]
    scope = {"type": "websocket", "path": "/x", "headers": headers, "extensions": {"websocket.http.response": {}}}
    asyncio.run(Gate(app, admitted=lambda _: True)(scope, receive, send))
    return sent


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "http://a]b", "http://\u00b5[", "", "null"])
def test_an_origin_that_is_no_address_is_refused(origin: str) -> None:
    assert said(origin)[0]["status"] == 403


def test_the_dashboards_own_page_is_let_in() -> None:
    assert [message["type"] for message in said("http://localhost:8501")] == ["let in"]
