"""One process for each purpose, real ones: whoever asks at once, whatever is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from background import processes_of

from uge_core.explore.whatif.channel import process
from uge_core.machine import birth
from uge_core.processes import Background, last_lines
from uge_core.runs.store import RunStore


@pytest.fixture
def background(tmp_path: Path) -> Iterator[Background]:
    """The what-if process of a store, which runs until it is ended."""
    background = process(tmp_path / "store")
    yield background
    background.end(signal.SIGKILL)


def test_many_who_ask_at_once_start_one_process_and_a_killed_one_is_started_again(background: Background) -> None:
    store = RunStore(background.folder.parent)
    command = ["whatif-worker", "--store", str(store.root.resolve())]
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: background.start(command), range(16))) == 1
    pid = background.pid
    assert processes_of(store, "whatif-worker") == [pid] and pid is not None and os.getpgid(pid) == pid
    assert (background.folder.stat().st_mode & 0o077) == 0
    assert not background.enter(), "it is another one's"
    background.leave()
    assert background.pid == pid, "nobody strikes out another"
    background.end(signal.SIGKILL)
    until = time.monotonic() + 20
    while background.pid is not None:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert not background.start(command, pause=600), "it was started a moment ago"
    assert background.start(command) and background.pid not in (None, pid)


def test_who_leaves_gives_way_at_once_and_never_ends_itself(background: Background) -> None:
    assert background.pid is None and background.enter() and background.enter()
    assert background.pid == os.getpid()
    background.end()
    assert not background.start(["--help"])
    background.leave()
    assert background.pid is None
    assert background.start(["--help"], pause=600)


@pytest.mark.parametrize("note", ["", "x", "1", "OURS:1", "99999999:1", "-1:2", "\x00:\xff"])
def test_a_note_of_nobody_is_nobody(note: str, background: Background) -> None:
    background.folder.mkdir(parents=True)
    (background.folder / "worker.pid").write_text(note.replace("OURS", str(os.getpid())))
    assert background.pid is None and background.enter() and background.pid == os.getpid()


def test_a_folder_that_is_only_read_says_who_is_there(background: Background) -> None:
    assert background.pid is None and not background.folder.exists()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        background.folder.mkdir(parents=True)
        note = background.folder / "worker.pid"
        note.write_text(f"{other.pid}:{birth(other.pid)}")
        note.chmod(0o400)
        background.folder.chmod(0o500)
        try:
            assert background.pid == other.pid
        finally:
            background.folder.chmod(0o700)
        other.kill()


def test_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert last_lines(log, 2) == ()
    log.write_bytes(b"first\n\n" + b"y" * 9000 + b"\nsecond\n  \n\xffthird\n")
    assert last_lines(log, 2) == ("second", "\ufffdthird")
