"""Where page and what-if process meet: one process a store, its socket in it, and a line of JSON each way."""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
from pathlib import Path

from uge_core.processes import Background

MOST_BYTES = 64_000_000
"""The longest line."""
_LONGEST = 100  # bytes of a socket's path: systems allow 104 or 108


def process(root: Path) -> Background:
    """The what-if process of a store."""
    return Background(root / "whatif", "worker")


def address(root: Path) -> Path:
    """Where the socket of a store lies: in it, or where its path is too long for a socket, in a private temporary folder."""
    inside = root.resolve() / "whatif" / "worker.sock"
    if len(os.fsencode(inside)) <= _LONGEST:
        return inside
    key = hashlib.sha256(os.fsencode(inside)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"uge-{os.getuid()}" / f"{key}.sock"


def read_line(connection: socket.socket) -> bytes:
    """All up to the line's end; ValueError where it is longer than `MOST_BYTES`, empty where nobody is there."""
    parts: list[bytes] = []
    size = 0
    while not (parts and parts[-1].endswith(b"\n")):
        part = connection.recv(1 << 16)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES:,} bytes")
    return b"".join(parts)
