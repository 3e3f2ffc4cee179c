"""The JSON routes of the dashboard: its runs and audits for other programs.

    GET /api/runs               the stored runs: id, status, config, data, when
    GET /api/runs/RUN_ID        one of them
    GET /api/audits/RUN_ID      its `uge-audit/1` record

Below a base path (`server.baseUrlPath`) they stand below it too, as all else does. A slash at the end is none. What is no
route of ours there is 404 as JSON, as a program that asks for one would read a page's HTML as its answer.

Nothing here trains, changes or exports anything: embeddings leave by `uge runs export` alone.

And how soon its server's answers leave.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uge_core.errors import RunNotFound, UgeError
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


def answer_at_once() -> None:
    """Has this server's connections send each answer as soon as it is there.

    Streamlit opens its socket without naming TCP, so that asyncio leaves Nagle's algorithm on: every small file and
    message then waits 40 ms on Linux until the browser confirms the one before (uvicorn's issue 3149).
    """
    opened = Path("/dev/fd")  # Windows has none
    for entry in list(opened.iterdir()) if opened.exists() else []:
        with suppress(OSError):
            if entry.is_socket():
                with socket.socket(fileno=os.dup(int(entry.name))) as endpoint:
                    if endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what it accepts takes it over


def web_routes(base: str = "") -> list[Route]:
    """The routes; `Gate` is who refuses, in front of them and of the pages alike.

    Args:
        base: the path below which the server answers, "" without one.
    """
    from starlette.routing import Route

    root = below(base)
    # A base path called api has pages below it.
    roots = [root] if root.startswith("/api") else dict.fromkeys([root, ""])
    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return [Route(f"{start}/api{rest}", _respond, methods=methods) for start in roots for rest in ("", "/{asked:path}")]


def below(base: str) -> str:
    """A base path as paths begin with it: "/audit", or "" without one."""
    return f"/{name}" if (name := base.strip("/")) else ""


def _respond(request: Request) -> Response:
    from starlette.responses import JSONResponse

    def said(content: Any, status: int, **headers: str) -> Response:
        return JSONResponse(content, status, _PRIVATE | headers)

    if request.method not in ("GET", "HEAD"):
        return said({"error": f"{request.method} is not allowed; allowed: GET, HEAD"}, 405, Allow="GET, HEAD")
    asked = str(request.path_params.get("asked", "")).strip("/")
    kind, _, run_id = asked.partition("/")
    answer = _ANSWERS.get((kind, bool(run_id)))
    if answer is None or "/" in run_id:
        shown = ascii(f"/api/{asked}"[:80])
        return said({"error": f"there is no {shown}; allowed: /api/runs, /api/runs/RUN_ID, /api/audits/RUN_ID"}, 404)
    try:
        return said(answer(RunStore(), run_id), 200)
    except RunNotFound as error:
        return said({"error": str(error)}, 404)
    except UgeError as error:
        return said({"error": str(error)}, 409)


_PRIVATE = {"Cache-Control": "no-store"}


def _run(run: StoredRun) -> dict[str, Any]:
    data = {key: run.dataset.get(key) for key in ("name", "fingerprint", "num_nodes", "num_edges")}
    return {
        "id": run.id,
        "status": run.status,
        "reason": run.reason,
        "created": run.created,
        "finished": run.finished,
        "device": run.device,
        "config": run.config,
        "dataset": data,
        "audited": run.audited,
    }


def _audit(run: StoredRun) -> dict[str, Any]:
    if run.audit is None:
        raise RunNotFound(f"run {run.id} ({run.status}) has no audit")
    return run.audit


_ANSWERS: dict[tuple[str, bool], Callable[[RunStore, str], Any]] = {
    ("runs", False): lambda store, _: {"runs": list(map(_run, store.list(audits=False)))},
    ("runs", True): lambda store, run_id: _run(store.load(run_id)),
    ("audits", True): lambda store, run_id: _audit(store.load(run_id)),
}
