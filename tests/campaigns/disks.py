"""Disks that are full, or only read: what failed says so, nothing that was stored is lost, and it can still be read.

The disks are small file systems in memory, mounted for the trial. Who may not mount gets a limit on the size of files
instead, which says less: nothing but "too large".
"""

from __future__ import annotations

import io
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from tests.campaigns._harness import CONFIG, DATA, ROWS, VECTORS, ended, fault, fork, place, train
from uge_core.dashboard.jobs.queue import Queue
from uge_core.errors import StoreError
from uge_core.explore.whatif.edits import MergeValues
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.runs.store import RunStore
from uge_core.runs.uploads import save_upload

_SIZE = 4 * 2**20
SCENARIO = Scenario(DATA["fingerprint"], (MergeValues("city", ("a", "b"), "ab"),), "together")
ACTIONS: dict[str, Callable[[RunStore], object]] = {
    "begin": lambda store: store.begin("b2", CONFIG, DATA),
    "train": lambda store: train(store, "b2"),
    "train again": lambda store: train(store, "a1", 2.0),
    "audit again": lambda store: store.save_audit("a1", ROWS | {"note": "x" * 20_000}),
    "delete": lambda store: store.delete("c3"),
    "archive": lambda store: store.archive(["a1"]),
    "ask for a job": lambda store: Queue(store).add({"device": "cpu", "data": "x" * 5000}),
    "keep a floor": lambda store: store.floors.__setitem__("k", {"value": "x" * 5000}),
    "save a scenario": lambda store: Scenarios(store).save(SCENARIO),
    "upload": lambda store: save_upload(
        "mine", [("edges.csv", io.BytesIO(b"source,target\n" + b"1,2\n" * 20_000))], store
    ),
}


def may_mount() -> bool:
    """Whether this process may mount file systems."""
    with place() as home:
        return _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", home) and _unmount(home)


def _mount(*words: str | Path) -> bool:
    return subprocess.run(["mount", *map(str, words)], capture_output=True, check=False).returncode == 0


def _unmount(path: Path) -> bool:
    return subprocess.run(["umount", "-l", str(path)], capture_output=True, check=False).returncode == 0


@contextmanager
def small_disk() -> Iterator[Path]:
    """A disk of four megabytes."""
    with place() as home:
        if not _mount("-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", home):
            raise PermissionError("mount")
        try:
            yield home
        finally:
            _unmount(home)


def fill(home: Path, left: int) -> None:
    """Takes all room but `left` bytes."""
    disk = os.statvfs(home)
    with (home / "filler").open("wb") as file, suppress(OSError):
        file.write(b"x" * max(0, disk.f_bavail * disk.f_frsize - left))


def said(act: Callable[[RunStore], object], root: Path, limit: int | None = None) -> str:
    """What an action says in a process of its own; empty where it was done."""
    out, into = os.pipe()

    def acting() -> None:
        if limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            act(RunStore(root))
        except StoreError as error:
            os.write(into, str(error).encode())
        except BaseException as error:
            os.write(into, f"{type(error).__name__}: {error}".encode())

    pid = fork(acting)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        text = pipe.read().decode()
    ended(pid)
    return text


def _says_full(text: str) -> bool:
    return "damaged" not in text and ("full" in text or "No space left" in text)


def _full(name: str, left: int) -> str | None:
    """An action with little room left."""
    with small_disk() as home:
        root = home / "store"
        for run_id in ("a1", "c3"):
            train(RunStore(root), run_id)
        fill(home, left)
        text = said(ACTIONS[name], root)
        factors = [1.0, 2.0] if name == "train again" else [1.0]
        if text and not _says_full(text):
            return f"it says: {text}"
        if text and name == "train again":
            factors = [1.0]  # neither, where it failed
        try:  # while the disk is still full
            run = RunStore(root).load("a1")
            if not any(np.array_equal(run.embedding, np.float32(f) * VECTORS) for f in factors):
                return "the run is another while the disk is full"
            if text and run.audited and run.audit is None:
                return "its audit is lost"
        except StoreError as error:
            return f"it cannot be read while the disk is full: {error}"
        (home / "filler").unlink()
        if name == "train again" and not text:
            factors = [2.0]
        return fault(root, whole={"a1": factors}, uploads={"mine": 1})


def _limited(name: str, limit: int) -> str | None:
    """An action where files may not grow over a limit."""
    with place() as home:
        root = home / "store"
        for run_id in ("a1", "c3"):
            train(RunStore(root), run_id)
        text = said(ACTIONS[name], root, limit)
        if text and "damaged" in text:
            return f"it says: {text}"
        return fault(root, whole={"a1": [1.0, 2.0] if name == "train again" else [1.0]}, uploads={"mine": 1})


def _read(store: RunStore) -> None:
    """Reads a run, then says what comes of writing."""
    if os.geteuid() == 0 and store.writable:  # root may write whatever the mode is
        os.setgid(65534)
        os.setuid(65534)
    run = store.load("a1")
    assert run.audit and len(run.embedding) == len(VECTORS)
    runs = len(store.list())
    try:
        store.archive(["a1"])
        raise AssertionError("it was written")
    except StoreError as error:
        raise StoreError(f"{runs} runs are read; {error}") from None


def _read_only(how: str, killed: bool) -> str | None:
    """A store that is only read, of which a killed process may have left a log."""
    with place() as home:
        root = home / "store"
        train(RunStore(root), "a1")

        def write_and_die() -> None:
            store = RunStore(root)
            with store.reading():  # keeps the log from being put away
                train(store, "b2")
                os.kill(os.getpid(), signal.SIGKILL)

        if killed:
            ended(fork(write_and_die))
            if how.endswith("without index"):
                (root / "store.sqlite-shm").unlink(missing_ok=True)
        paths = [root, *root.rglob("*")]
        sizes = {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in paths if path.exists()}
        if how.startswith("mount"):
            if not (_mount("--bind", root, root) and _mount("-o", "remount,ro,bind", root)):
                raise PermissionError("mount")
            text = said(_read, root)
            _unmount(root)
        else:
            home.chmod(0o755)
            for path in paths:
                path.chmod(0o555 if path.is_dir() else 0o444)
            text = said(_read, root)
        if not text.startswith(f"{1 + killed} runs are read; ") or "damaged" in text or "may write" not in text:
            return f"it says: {text}"
        now = {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in paths if path.exists()}
        if now != sizes or set(root.rglob("*")) - set(paths):
            return "reading changed it"
        for path in paths:
            path.chmod(0o700 if path.is_dir() else 0o600)
        shutil.rmtree(root)
    return None


def run(seed: int, quick: bool) -> Iterator[tuple[str, str | None]]:
    """Full at many points, and read-only in all ways."""
    mount = may_mount()
    points = [0, 40_000] if quick else [0, 4096, 12_000, 24_000, 40_000, 60_000, 90_000, 130_000, 400_000]
    names = ["train again", "archive"] if quick else list(ACTIONS)
    for name in names:
        for left in points:
            if mount:
                yield f"{name}: {left} bytes left", _full(name, left)
            elif left >= 12_000:
                yield f"{name}: no file over {left} bytes", _limited(name, left)
    ways = (["mount", "mount without index"] if mount else []) + (["mode", "mode without index"])
    for how in ways:
        for killed in (False, True):
            yield f"only read by {how}{', after a kill' * killed}", _read_only(how, killed)
