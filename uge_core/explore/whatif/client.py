"""How a page asks the what-if process, and sees to it that there is one. Neither torch nor graphs are loaded here."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from typing import Any

from uge_core.errors import StoreError, UgeError
from uge_core.explore.whatif.channel import address, read_line
from uge_core.machine import alive, birth, spawn
from uge_core.runs.store import RunStore

_COMES_UP = 60.0  # seconds that a process may take until it listens
_STARTS = 2  # of a process that ends at once, before it is said
_PATIENCE = 300.0  # seconds for an answer: a first look at a large graph loads it


class WhatifEnded(StoreError):
    """The what-if process ended before it answered; another one is there now, so the same question may be asked again."""


def warm(store: RunStore) -> None:
    """Starts the process where there is none, and does not wait for it."""
    with suppress(OSError), _connect(store):
        return
    if not _coming_up(store):
        _spawn(store)


def ask(store: RunStore, what: str, **arguments: Any) -> dict[str, Any]:
    """The answer of the what-if process, which is started where it is missing.

    Args:
        store: the run store.
        what: the name of a request; see `desk.Desk`.
        **arguments: what goes with it, fit for JSON.

    Raises:
        WhatifEnded: it was killed while it worked.
        UgeError: what it found wrong with the request, or that it does not come up.
    """
    connection = _reach(store)
    with connection:
        try:
            connection.settimeout(_PATIENCE)
            connection.sendall(json.dumps({"what": what} | arguments).encode() + b"\n")
            line = read_line(connection)
        except TimeoutError:
            raise StoreError(
                f"the what-if process gave no answer within {_PATIENCE:.0f} s; ask for less, or try again"
            ) from None
        except OSError:
            line = b""
    if not line.endswith(b"\n"):
        _spawn(store)
        raise WhatifEnded(
            "the what-if process ended while it worked on this (it was killed, or memory ran out); "
            "another one has been started: ask again"
        )
    reply = json.loads(line)
    if not reply["ok"]:
        raise UgeError(reply["error"])
    answer: dict[str, Any] = reply["answer"]
    return answer


def _connect(store: RunStore) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(5)
        connection.connect(os.fspath(address(store.root)))
    except OSError:
        connection.close()
        raise
    return connection


def _reach(store: RunStore) -> socket.socket:
    """A connection, to a process that is started for it where none listens or is coming up."""
    until = time.monotonic() + _COMES_UP
    starts = 0
    while True:
        with suppress(OSError):
            return _connect(store)
        if not _coming_up(store):
            if starts == _STARTS:
                raise StoreError(f"the what-if process does not start: {_last_words(store)}")
            _spawn(store)
            starts += 1
        if time.monotonic() > until:
            raise StoreError(f"the what-if process does not start within {_COMES_UP:.0f} s: {_last_words(store)}")
        time.sleep(0.05)


def _coming_up(store: RunStore) -> bool:
    """Whether the process that was started last is there, listening or not yet."""
    try:
        pid, _, born = (store.root / "whatif" / "pid").read_text(encoding="ascii").partition(":")
        return alive(int(pid), born)
    except (OSError, ValueError):
        return False


def _spawn(store: RunStore) -> None:
    """Starts the process, which ends when this one does."""
    folder = store.root / "whatif"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = (folder / "worker.log").open("wb")
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}; name another store with $UGE_STORE") from None
    parent = f"{os.getpid()}:{birth(os.getpid())}"
    with log:
        pid = spawn(
            ["whatif-worker", "--store", str(store.root.resolve()), "--parent", parent], log, OMP_WAIT_POLICY="passive"
        )
    (folder / "pid").write_text(f"{pid}:{birth(pid)}", encoding="ascii")


def _last_words(store: RunStore) -> str:
    with suppress(OSError):
        lines = (store.root / "whatif" / "worker.log").read_text(errors="replace").strip().splitlines()
        if lines:
            return lines[-1]
    return "it said nothing"
