"""The dashboard: `uge app`, `make app` or `streamlit run app.py`."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from streamlit.auth_util import get_cookie_with_chunks, get_origin_from_redirect_uri, get_secrets_auth_section
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value

import uge_core.dashboard as ui

PAINTED = 6.0  # seconds after which a browser that opened at once shows its first page


def admitted(request: Any) -> bool:
    """Whether who asks a JSON route has signed in, by the cookie the pages go by.

    All may where no sign-in is set up.
    """
    if not get_secrets_auth_section():
        return True

    def part(name: str) -> bytes | None:
        signed = request.cookies.get(name, "").encode("latin-1")
        return decode_signed_value(get_cookie_secret(), name, signed)

    found = json.loads(get_cookie_with_chunks(part, "_streamlit_user") or "{}")
    return found.get("is_logged_in") is True and found.get("origin") == get_origin_from_redirect_uri()


def hosts() -> tuple[str, ...]:
    """The name people sign in under."""
    return tuple(filter(None, [urlsplit(get_origin_from_redirect_uri() or "").hostname]))


@asynccontextmanager
async def warmed(_: Any) -> AsyncIterator[None]:
    """Loads what the first page needs while its browser still loads Streamlit's scripts."""
    ui.answer_at_once()
    loop = asyncio.get_running_loop()
    loop.run_in_executor(None, ui.warm_up)
    loop.call_later(PAINTED, lambda: loop.run_in_executor(None, partial(ui.warm_up, later=True)))
    yield


# pages/main.py, not this file, holds the frame: beside a folder called "pages" Streamlit would open a
# deep link without ever running its entry script.
app = st.App("pages/main.py", routes=ui.web_routes(admitted, hosts), lifespan=warmed)
