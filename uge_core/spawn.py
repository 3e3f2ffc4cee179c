"""Processes of our own that outlive a page: a fresh interpreter in a group of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO


def spawn(command: Sequence[str], log: IO[bytes], **environment: str) -> int:
    """Starts ``python -m uge_core COMMAND`` and returns its process id.

    Args:
        command: what follows ``uge`` on a command line.
        log: where what it writes goes.
        environment: variables it has besides those of this process.
    """
    package = str(Path(__file__).resolve().parents[1])
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    process = subprocess.Popen(
        [sys.executable, "-m", "uge_core", *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))} | environment,
    )  # fmt: skip
    # Somebody has to wait for it, or it stays in the list of processes when it has ended.
    threading.Thread(target=process.wait, daemon=True).start()
    return process.pid
