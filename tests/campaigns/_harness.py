"""What campaigns on a store share: actions in processes that are killed for good, and what must hold afterwards."""

from __future__ import annotations

import io
import os
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np

from uge_core.files import abandoned
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.runs.uploads import list_uploads

CONFIG = {"method": "none", "lambda": None, "sensitive": [], "backbone": "node2vec", "seed": 0, "split_seed": 0}
DATA = {"name": "town", "fingerprint": "f" * 64, "num_nodes": 40, "num_edges": 60, "source": None}
ROWS = {"schema": "uge-audit/1", "rows": [{"metric": "auc", "attribute": "city", "value": 0.5, "cells": []}]}
VECTORS = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@contextmanager
def place() -> Iterator[Path]:
    """A folder for one trial."""
    with tempfile.TemporaryDirectory(prefix="uge-campaign-") as folder:
        yield Path(folder)


def train(store: RunStore, run_id: str, factor: float = 1.0, *, audited: bool = True) -> None:
    """Stores a run as training does, without the training."""
    store.begin(run_id, CONFIG, DATA)
    store.finish(
        run_id,
        embedding=VECTORS * factor,
        twin=VECTORS + 1,
        hidden={"city": np.ones(40, dtype=bool)},
        parameters={"w": VECTORS[:3]},
        history={"epoch": [1, 2], "total": [0.5, 0.4]},
        diagnostics={"factor": factor},
        environment={"python": "3"},
        seconds=1.0,
        device="cpu",
    )
    if audited:
        store.save_audit(run_id, ROWS)


def not_settled(runs: Iterable[StoredRun]) -> str | None:
    """A run that is neither done nor over, in words."""
    states = ("finished", "interrupted", "failed")
    return next((f"run {r.id} is {r.status} ({r.reason})" for r in runs if r.status not in states), None)


def leftovers(root: Path) -> list[Path]:
    """What a killed process left below a folder under temporary names."""
    return [p for p in root.rglob("*") if abandoned(p) or (p.name.startswith(".") and p.suffix in (".new", ".deleted"))]


def fork(act: Callable[[], object]) -> int:
    """Starts what is to be done in a process of its own; what it says is dropped."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            act()
        code = 0
    except BaseException:
        with suppress(OSError, KeyError), Path(os.environ["UGE_CAMPAIGN_LOG"]).open("a") as log:
            traceback.print_exc(file=log)
    finally:
        os._exit(code)


def ended(pid: int, seconds: float = 120.0) -> int:
    """How it ended: its exit code, or minus the signal."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def watch(home: Path, on_operation: Callable[[str, str], None]) -> None:
    """From here on this process calls `on_operation` before each change to files under `home`, and before each COMMIT.

    What SQLite does with its own files is between two COMMITs, and its business.
    """
    root = str(home)

    def inside(path: Any) -> str | None:
        text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        return text if text.startswith(root) else None

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and args[2] is not None and args[2] & _WRITES and (path := inside(args[0])):
            on_operation("write", path)
        elif event == "os.rename" and (path := inside(args[0])):
            on_operation("rename", f"{path}\0{os.fsdecode(args[1])}")
        elif event in ("os.remove", "os.mkdir", "os.rmdir") and len(args) > 1:
            path = inside(args[0]) or _within(args, root)
            if path:
                on_operation(event.partition(".")[2], path)

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        db = real_connect(*args, **options)
        db.set_trace_callback(lambda text: on_operation("commit", "") if text == "COMMIT" else None)
        return db

    real, real_connect = os.fsync, sqlite3.connect
    sqlite3.connect = connect  # type: ignore[assignment]

    def fsync(handle: int) -> None:
        if path := inside(Path(f"/proc/self/fd/{handle}").readlink()):
            on_operation("fsync", path)
        real(handle)

    os.fsync = fsync  # type: ignore[assignment]
    sys.addaudithook(hook)


def _within(args: tuple[Any, ...], root: str) -> str | None:
    """The path of a name in a folder that is open, as `shutil.rmtree` removes it."""
    if isinstance(args[-1], int) and args[-1] >= 0 and isinstance(args[0], str | bytes):
        path = str(Path(f"/proc/self/fd/{args[-1]}").readlink() / os.fsdecode(args[0]))
        return path if path.startswith(root) else None
    return None


def operations(home: Path, act: Callable[[], object], kill_at: int | None = None) -> list[tuple[str, str]] | None:
    """The changes that an action makes, in order; with `kill_at` it is killed before that one, and None comes back."""
    out, into = os.pipe()

    def watched() -> None:
        os.close(out)
        seen = 0

        def on_operation(kind: str, path: str) -> None:
            nonlocal seen
            if seen == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1
            os.write(into, f"{kind}\t{path}\n".encode())

        watch(home, on_operation)
        act()

    pid = fork(watched)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        lines = pipe.read().decode().splitlines()
    code = ended(pid)
    if code == -signal.SIGKILL:
        return None
    if code:
        raise RuntimeError(f"the action failed by itself after {lines[-3:]}")
    return [(kind, path) for kind, _, path in (line.partition("\t") for line in lines)]


def fault(
    root: Path, *, whole: dict[str, list[float]] | None = None, uploads: dict[str, int] | None = None
) -> str | None:
    """What does not hold of a store after a kill, or None.

    Args:
        root: the store.
        whole: of runs that must be finished, the factors that their vectors may have.
        uploads: of uploads that may be listed, how many files they have.
    """
    store = RunStore(root)
    for tidied in (False, True):
        when = "after tidying" if tidied else "at once"
        runs = {run.id: run for run in store.list(archived=True)}
        if unsettled := not_settled(runs.values()):
            return f"{unsettled} {when}"
        for run in runs.values():
            if run.status == "finished" and (faults := list(run.faults())):
                return f"{faults[0]} {when}"
        for run_id, factors in (whole or {}).items():
            if run_id not in runs or runs[run_id].status != "finished":
                return f"run {run_id} is lost {when}"
            if not any(np.array_equal(runs[run_id].embedding, np.float32(f) * VECTORS) for f in factors):
                return f"run {run_id} has other vectors {when}"
            if runs[run_id].audited and runs[run_id].audit is None:
                return f"run {run_id} lost its audit {when}"
        for upload in list_uploads(store):
            if uploads is not None and len(upload.files) != uploads.get(upload.name):
                return f"upload {upload.name} is listed with {upload.files} {when}"
        if faults := list(store.faults()):
            return f"{faults[0]} {when}"
        store.tidy()
    left = leftovers(root)
    folders = {p.name for p in (root / "runs").glob("*")} if (root / "runs").is_dir() else set()
    if left or folders - set(runs):
        return f"left behind: {sorted(map(str, left)) or sorted(folders - set(runs))}"
    return None
