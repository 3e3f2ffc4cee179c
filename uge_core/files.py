"""Files that are written aside and renamed, so that there is never half of one, and who may have left one behind."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any


def write_aside(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Writes a file as `.NAME.PID`, for its user's eyes alone, and gives it its name.

    Raises:
        OSError: it cannot be written; the one of before stays, and nothing lies aside.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("wb") as file:
            aside.chmod(0o600)
            write(file)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def abandoned(path: Path) -> bool:
    """Whether a file or folder lies aside, by its name, and the process that it names is gone."""
    found = re.fullmatch(r".+\.(\d+)(\.(new|deleted))?", path.name)
    return found is not None and birth(int(found[1])) is None


def birth(pid: int) -> str | None:
    """When a process started, as text that differs when its number is used again; None: no such process."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():
        try:
            # The name in parentheses may hold spaces; state is field 3, the start time field 22.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else fields[19]
    if Path("/proc/self/stat").exists():
        return None
    done = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return re.sub(r"\s+", " ", done.stdout.strip()) or None


def alive(pid: int | None, born: str | None) -> bool:
    """Whether the process that had number `pid` and was `born` then is still there."""
    return pid is not None and (now := birth(pid)) is not None and now == born
