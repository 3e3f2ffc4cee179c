"""The JSON routes of the dashboard: its runs and audits for other programs.

    GET /api/runs               the stored runs: id, status, config, data, when
    GET /api/runs/RUN_ID        one of them
    GET /api/audits/RUN_ID      its `uge-audit/1` record

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


def web_routes() -> list[Route]:
    """The routes; `Gate` is who refuses, in front of them and of the pages alike."""
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    def guarded(answer: Callable[[Request, RunStore], Any]) -> Callable[[Request], Response]:
        def respond(request: Request) -> Response:
            try:
                return JSONResponse(answer(request, RunStore()), headers=_PRIVATE)
            except RunNotFound as error:
                return JSONResponse({"error": str(error)}, 404, _PRIVATE)
            except UgeError as error:
                return JSONResponse({"error": str(error)}, 409, _PRIVATE)

        return respond

    return [
        Route("/api/runs", guarded(lambda _, store: {"runs": list(map(_run, store.list(audits=False)))})),
        Route("/api/runs/{run_id}", guarded(lambda asked, store: _run(store.load(asked.path_params["run_id"])))),
        Route("/api/audits/{run_id}", guarded(_audit)),
    ]


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


def _audit(asked: Request, store: RunStore) -> dict[str, Any]:
    run = store.load(asked.path_params["run_id"])
    if run.audit is None:
        raise RunNotFound(f"run {run.id} ({run.status}) has no audit")
    return run.audit
