"""What somebody gets who has not signed in: the page to sign in on, and from every route nothing besides."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from uge_core.dashboard.gate import MOST_STRANGERS
from uge_core.runs.sample_audit import first_start
from uge_core.runs.store import RunStore

ROOT = Path(__file__).resolve().parents[2]
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
SECRETS = """[auth]
redirect_uri = "http://localhost:8501/oauth2callback"
cookie_secret = "a secret of sufficient length for signing"
client_id = "nobody"
client_secret = "nothing"
server_metadata_url = "http://127.0.0.1:9/none"
"""
# What the page to sign in on needs, by GET and HEAD. "" stands for Streamlit's own files.
NEEDED = {"/_stcore/health", "/_stcore/host-config", "/auth/login", "/auth/logout", "/oauth2callback", ""}
_ROUTES = """
import json, app
print(json.dumps([[type(r).__name__, r.path] for r in app.app._build_starlette_app().routes]))
"""


def run(seed: int, quick: bool) -> Iterator[tuple[str, str | None]]:
    """Yields each request with what was told, or None."""
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder) / "store")
        first_start(store)
        with _served(Path(folder), store) as port:
            routes = json.loads(_python("-c", _ROUTES, env=os.environ | {"UGE_STORE": str(store.root)}))
            yield from _requests(port, routes, quick)
            yield from _websockets(port, store, quick)


def _requests(port: int, routes: list[tuple[str, str]], quick: bool) -> Iterator[tuple[str, str | None]]:
    for kind, template in routes:
        if kind == "WebSocketRoute":
            continue
        path = re.sub(r"\{[^}]*\}", "x", template)
        for method in METHODS[:: 2 if quick else 1]:
            status, _ = _ask(port, method, path or "/")
            allowed = template in NEEDED and method in ("GET", "HEAD")
            right = status != 401 if allowed else status == 401
            yield f"{method} {template or 'files'}", None if right else f"answered {status}"


def _websockets(port: int, store: RunStore, quick: bool) -> Iterator[tuple[str, str | None]]:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    address = f"ws://localhost:{port}/_stcore/stream"
    origin: Any = f"http://localhost:{port}"
    with connect(address, origin=origin, max_size=None) as socket_:
        for page in ("",) if quick else ("", "leakage", "runs", "data", "report", "whatif"):
            told, session = b"", ""
            asked = BackMsg()
            asked.rerun_script.page_name = page
            asked.rerun_script.query_string = "data=sample:town"
            socket_.send(asked.SerializeToString())
            message = ForwardMsg()
            while message.WhichOneof("type") != "script_finished":
                data = socket_.recv(60)
                told += data  # type: ignore[operator]
                message.ParseFromString(data)  # type: ignore[arg-type]
                session = message.new_session.initialize.session_id or session
            held = [run.id for run in store.list(audits=False)] + [str(store.root), "region"]
            seen = [word for word in held if word.encode() in told]
            yield f"websocket, page {page or 'overview'}", f"told {seen}" if seen else None
        # With all that Streamlit asks for: a session that is open, and its token twice.
        token = dict(_ask(port, "GET", "/_stcore/health")[1])["set-cookie"].partition(";")[0].partition("=")[2]
        status, _ = _ask(
            port,
            "PUT",
            f"/_stcore/upload_file/{session}/f",
            body=b'--b\r\nContent-Disposition: form-data; name="f"; filename="f.csv"\r\n\r\na,b\r\n--b--\r\n',
            headers={
                "Content-Type": "multipart/form-data; boundary=b",
                "X-Xsrftoken": token,
                "Cookie": f"_streamlit_xsrf={token}",
            },
        )
        yield "upload into a session that is open", None if status == 401 else f"answered {status}"
    opened, refused = 0, None
    with ExitStack() as strangers, suppress(InvalidStatus):
        while opened <= MOST_STRANGERS:
            try:
                strangers.enter_context(connect(address, origin=origin))
            except InvalidStatus as error:
                refused = error.response.status_code
                raise
            opened += 1
    right = refused == 503 and opened <= MOST_STRANGERS
    yield "very many websockets", None if right else f"{opened} were open at a time, then {refused}"
    time.sleep(1)
    try:
        with connect(address, origin=origin):
            yield "a websocket after those are closed", None
    except InvalidStatus as error:
        yield "a websocket after those are closed", f"answered {error.response.status_code}"


def _ask(port: int, method: str, path: str, **options: Any) -> tuple[int, list[tuple[str, str]]]:
    with closing(http.client.HTTPConnection("localhost", port, timeout=30)) as asked:
        asked.request(method, path, **options)
        answer = asked.getresponse()
        return answer.status, [(name.lower(), value) for name, value in answer.getheaders()]


def _python(*words: str, env: Any) -> str:
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=env, check=True, capture_output=True, text=True
    ).stdout


@contextmanager
def _served(folder: Path, store: RunStore) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "secrets.toml").write_text(SECRETS)
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", "--server.headless=true"]
    server = subprocess.Popen(
        [*command, f"--secrets.files={folder / 'secrets.toml'}"],
        cwd=ROOT,
        env=os.environ | {"UGE_STORE": str(store.root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        limit = time.monotonic() + 60
        while True:
            try:
                _ask(port, "GET", "/_stcore/health")
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > limit:
                    raise
                time.sleep(0.2)
        yield port
    finally:
        server.terminate()
        server.wait(20)
