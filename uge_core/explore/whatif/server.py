"""The what-if process, `python -m uge_core whatif-worker`: answers over a socket in the store while a page is open.

One request a connection, a line of JSON each way. One process a store. It ends when nobody
asked for ten minutes, or when the process that started it is gone.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from typing import Any

from uge_core.errors import UgeError
from uge_core.explore.whatif.answers import Answers
from uge_core.explore.whatif.channel import address, process, read_line
from uge_core.machine import alive
from uge_core.runs.store import RunStore

IDLE = 600.0
"""Seconds without a request after which it ends."""
_PULSE = 1.0  # seconds between looks at parent and clock


def serve(store: RunStore, *, parent: tuple[int, str] | None = None, idle: float = IDLE) -> bool:
    """Answers until it is idle or its parent is gone; False where another process serves this store.

    Args:
        store: the run store.
        parent: number and birth of the process that it is for, or None.
        idle: seconds without a request.
    """
    background = process(store.root)
    if not background.enter():
        return False
    try:
        path = address(store.root)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if path.parent.stat().st_uid != os.getuid() or path.parent.stat().st_mode & 0o077:
            raise PermissionError(f"{path.parent} is open to others; remove it or choose a shorter store path")
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(os.fspath(path))
            listener.listen(16)
            listener.settimeout(_PULSE)
            try:
                _loop(listener, Answers(store), parent, idle)
            finally:
                path.unlink(missing_ok=True)
    finally:
        background.leave()
    return True


def _loop(listener: socket.socket, answers: Answers, parent: tuple[int, str] | None, idle: float) -> None:
    last = time.monotonic()
    warmed: set[tuple[Any, Any]] = set()
    while time.monotonic() - last < idle:
        if parent is not None and not alive(*parent):
            return
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        with connection:
            request = _one(connection, answers)
        last = time.monotonic()
        asked = (request.get("run"), request.get("attribute"))
        if request.get("what") == "describe" and asked not in warmed:
            warmed.add(asked)
            # While the person reads, so that the first answer waits for less.
            threading.Thread(target=_ready, args=(answers, *asked), daemon=True).start()


def _ready(answers: Answers, run: str, attribute: str | None) -> None:
    with suppress(UgeError):
        answers.ready(run, attribute)


def _one(connection: socket.socket, answers: Answers) -> dict[str, Any]:
    """Answers one connection; returns what it asked."""
    connection.settimeout(30)
    request: dict[str, Any] = {}
    try:
        request = dict(json.loads(read_line(connection)))
    except (OSError, ValueError, TypeError) as error:
        reply: dict[str, Any] = {"ok": False, "error": f"the request could not be read ({error}); reload the page"}
    else:
        reply = _reply(request, answers)
    sys.stderr.flush()
    # Who asked may have left.
    with suppress(OSError):
        connection.settimeout(60)
        connection.sendall(json.dumps(reply).encode() + b"\n")
    return request


def _reply(request: dict[str, Any], answers: Answers) -> dict[str, Any]:
    try:
        return {"ok": True, "answer": answers.answer(request)}
    except UgeError as error:
        return {"ok": False, "error": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"ok": False, "error": f"{type(error).__name__}: {error}; this is a fault of the program"}
