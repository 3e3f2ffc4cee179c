"""The dashboard: `uge app`, `make app` or `streamlit run app.py`."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from streamlit import config
from streamlit.auth_util import get_cookie_with_chunks, get_origin_from_redirect_uri, get_secrets_auth_section
from streamlit.runtime import get_instance
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value

import uge_core.dashboard as ui

PAINTED = 6.0  # seconds after which a browser that opened at once shows its first page
ALLOWED = tuple(config.get_option("server.allowedHosts"))
# The gate goes by this list for all that is asked; Streamlit, which knows of the list alone, for the websocket.
config.set_option("server.allowedHosts", [], "app.py")


def admitted(request: Any) -> bool:
    """Whether who asks has signed in, by the cookie the pages go by.

    All have where no sign-in is set up.
    """
    if not get_secrets_auth_section():
        return True

    def part(name: str) -> bytes | None:
        signed = request.cookies.get(name, "").encode("latin-1")
        return decode_signed_value(get_cookie_secret(), name, signed)

    found = json.loads(get_cookie_with_chunks(part, "_streamlit_user") or "{}")
    return found.get("is_logged_in") is True and found.get("origin") == get_origin_from_redirect_uri()


def hosts() -> tuple[str, ...]:
    """The names that this server was given: its address, the one people sign in under, and those allowed besides."""
    address = config.get_option("server.address")
    named = config.get_option("browser.serverAddress") if config.is_manually_set("browser.serverAddress") else None
    redirect = urlsplit(get_origin_from_redirect_uri() or "").hostname
    return tuple(filter(None, [None if address in ("0.0.0.0", "::") else address, named, redirect, *ALLOWED]))


def bound_sessions() -> None:
    """Puts our own bounds on what Streamlit keeps of sessions whose browser left."""
    runtime: Any = get_instance()
    runtime._session_mgr._session_storage = ui.WaitingSessions(
        lambda session: not (get_secrets_auth_section() and session.matches_user_info({})),
        runtime.media_file_mgr.remove_orphaned_files,
        config.get_option("server.disconnectedSessionTTL"),
    )


@asynccontextmanager
async def warmed(_: Any) -> AsyncIterator[None]:
    """Loads what the first page needs while its browser still loads Streamlit's scripts."""
    ui.answer_at_once()
    ui.limit_roots(signed_in=bool(get_secrets_auth_section()))
    bound_sessions()
    loop = asyncio.get_running_loop()
    loop.run_in_executor(None, ui.warm_up)
    loop.call_later(PAINTED, lambda: loop.run_in_executor(None, partial(ui.warm_up, later=True)))
    yield


gate = ui.gate(
    admitted,
    hosts=hosts,
    origins=partial(config.get_option, "server.corsAllowedOrigins"),
    base=partial(config.get_option, "server.baseUrlPath"),
)
# pages/main.py, not this file, holds the frame: beside a folder called "pages" Streamlit would open a
# deep link without ever running its entry script.
app = st.App(
    "pages/main.py", routes=ui.web_routes(config.get_option("server.baseUrlPath")), middleware=[gate], lifespan=warmed
)
