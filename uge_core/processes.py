"""Processes of ours beside the one that asked: one for each purpose, with a log, and a note of who it is.

The dashboard neither trains nor loads torch. A worker of its queue does, and outlives it; a what-if process answers,
and ends with it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from uge_core.machine import alive, birth

# Becomes the program that is named after the number of the one who asked, with whom it is to end.
_BOUND = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def since_boot() -> float:
    """Seconds since this machine started, which no setting of its clock changes and all its processes share."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def boot() -> str:
    """Which start of the machine this is; empty where the system does not say."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def run_bound(command: Sequence[str], *, timeout: float) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; it ends with this process, however that ends, and so does all that it started.

    Args:
        command: the program and its arguments.
        timeout: seconds it may take.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was ended.
    """
    # prctl is called by a process of its own: between fork and exec of one with threads almost nothing may be done.
    bound = [sys.executable, "-I", "-S", "-c", _BOUND, str(os.getpid()), *command]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        bound, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, errors="replace", start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(list(command), process.returncode, out, err)


@dataclass(frozen=True)
class Background:
    """The process for one purpose, of which there is one at a time.

    It is noted in `NAME.pid` by its number and birth, as numbers are used again, and by when it was noted. Who changes
    the note locks it, so that two who look at the same moment start one process.

    Attributes:
        folder: where the note and the log lie; made, private, when they are.
        name: what note and log are called.
    """

    folder: Path
    name: str

    @property
    def log(self) -> Path:
        """What the process that was started last wrote."""
        return self.folder / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        """The number of the process that is noted and alive, or None."""
        with suppress(OSError):
            return _living((self.folder / f"{self.name}.pid").read_bytes())
        return None

    def start(self, command: Sequence[str], *, pause: float = 0.0, **environment: str) -> bool:
        """Starts ``python -m uge_core COMMAND``, unless there is one; says whether it did.

        Args:
            command: what follows ``uge`` on a command line.
            pause: seconds to wait after a start before the next, where it did not come up.
            environment: variables it has besides those of this process.

        Raises:
            OSError: the folder cannot be written.
        """
        with self._note() as note:
            text = note.read()
            if _living(text) is not None or 0 <= since_boot() - _noted(text) < pause:
                return False
            with self.log.open("wb") as log:
                _write(note, _spawn(command, log, environment))
            return True

    def enter(self) -> bool:
        """Notes this process; False where another one is at work.

        Raises:
            OSError: the folder cannot be written.
        """
        with self._note() as note:
            if _living(note.read()) not in (None, os.getpid()):
                return False
            _write(note, os.getpid())
            return True

    def leave(self) -> None:
        """Strikes this process out, so that another may be started at once."""
        with self._note() as note:
            if _living(note.read()) == os.getpid():
                note.truncate(0)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends the process, and all it started; this one is left alone."""
        pid = self.pid
        with suppress(OSError):
            if pid is not None and pid != os.getpid():
                (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, how)

    @contextmanager
    def _note(self) -> Iterator[IO[bytes]]:
        """The note, locked and read from its beginning; made where it is missing."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.folder / f"{self.name}.pid").open("ab+") as note:
            fcntl.flock(note, fcntl.LOCK_EX)
            note.seek(0)
            yield note


def last_lines(log: Path, most: int) -> tuple[str, ...]:
    """The last lines of a log that are not empty; none where there is no log."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
        lines = file.read().decode("utf-8", "replace").splitlines()
        return tuple(line for line in lines if line.strip())[-most:]
    return ()


def _living(note: bytes) -> int | None:
    """The process that a note names, where it is alive."""
    pid, born, _ = _parts(note)
    return int(pid) if pid.isdecimal() and alive(int(pid), born) else None


def _noted(note: bytes) -> float:
    """When it was noted, by `since_boot`; endlessly long ago where it does not say."""
    with suppress(ValueError):
        return float(_parts(note)[2])
    return float("-inf")


def _parts(note: bytes) -> Sequence[str]:
    return [*note.decode("ascii", "replace").split(":"), "", ""][:3]


def _write(note: IO[bytes], pid: int) -> None:
    note.truncate(0)
    note.write(f"{pid}:{birth(pid)}:{since_boot():.2f}".encode("ascii"))


def _spawn(command: Sequence[str], log: IO[bytes], environment: dict[str, str]) -> int:
    package = str(Path(__file__).resolve().parents[1])
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    process = subprocess.Popen(
        [sys.executable, "-m", "uge_core", *command],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))} | environment,
    )
    # Somebody has to wait for it, or it stays in the list of processes when it has ended.
    threading.Thread(target=process.wait, daemon=True).start()
    return process.pid
