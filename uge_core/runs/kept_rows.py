"""Figures of many runs in a file of JSON lines.

A row is written as soon as it is measured, so that hours of work survive an end, and a second call goes on where the
first stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def read_rows(path: Path | None, schema: str) -> tuple[list[dict[str, Any]], int]:
    """The rows of this schema in a file, none where there is no file, and how many there are of others."""
    found: list[dict[str, Any]] = []
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            # The last line of a process that was killed may be half a line: its run is measured again.
            with suppress(json.JSONDecodeError):
                found.append(json.loads(line))
    mine = [row for row in found if row.get("schema") == schema]
    return mine, len(found) - len(mine)


def append_row(path: Path | None, row: Mapping[str, Any]) -> None:
    """Adds a line, on a line of its own where the last one was cut; without a path, nothing."""
    if path is None:
        return
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")
