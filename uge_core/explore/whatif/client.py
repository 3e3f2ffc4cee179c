"""How a page asks the what-if process, and sees to it that there is one. Neither torch nor graphs are loaded here."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from typing import Any

from uge_core.errors import StoreError, UgeError
from uge_core.explore.whatif.channel import address, process, read_line
from uge_core.machine import birth
from uge_core.processes import last_lines
from uge_core.runs.store import RunStore

_COMES_UP = 60.0  # seconds that a process may take until it listens
_STARTS = 2  # of a process that ends at once, before it is said
_PATIENCE = 300.0  # seconds for an answer: a first look at a large graph loads it


class WhatifEnded(StoreError):
    """The what-if process ended before it answered.

    The next question starts another one, so the same may be asked again.
    """


def warm(store: RunStore) -> None:
    """Starts the process where there is none, and does not wait for it."""
    with suppress(OSError), _connect(store):
        return
    _start(store)


def ask(store: RunStore, what: str, **arguments: Any) -> dict[str, Any]:
    """The answer of the what-if process, which is started where it is missing.

    Args:
        store: the run store.
        what: the name of a request; see `answers.Answers`.
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
        raise WhatifEnded(
            "the what-if process ended while it worked on this (it was killed, or memory ran out); "
            "ask again, and another one is started"
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
        if starts == _STARTS and process(store.root).pid is None:
            raise StoreError(f"the what-if process does not start: {_last_words(store)}")
        starts += _start(store)
        if time.monotonic() > until:
            raise StoreError(f"the what-if process does not start within {_COMES_UP:.0f} s: {_last_words(store)}")
        time.sleep(0.05)


def _start(store: RunStore) -> bool:
    """Starts the process, which ends when this one does, unless there is one; says whether it did."""
    parent = f"{os.getpid()}:{birth(os.getpid())}"
    command = ["whatif-worker", "--store", str(store.root.resolve()), "--parent", parent]
    background = process(store.root)
    try:
        return background.start(command, OMP_WAIT_POLICY="passive")
    except OSError as error:
        raise StoreError(
            f"{background.folder} cannot be written: {error.strerror}; name another store with $UGE_STORE"
        ) from None


def _last_words(store: RunStore) -> str:
    return " ".join(last_lines(process(store.root).log, 1)) or "it said nothing"
