"""Kills at random moments of commands, of a worker and of what a page does: no finished run is lost, nothing is half there.

All that is killed are processes of their own, forked from one that has loaded torch, so that a kill costs no start.
"""

from __future__ import annotations

import importlib
import io
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tests.campaigns._harness import ended, fork, leftovers, not_settled, place
from uge_core.cli import main as cli
from uge_core.dashboard.jobs.queue import Queue
from uge_core.runs.sample_audit import first_start
from uge_core.runs.store import RunStore
from uge_core.runs.uploads import list_uploads, remove_upload, save_upload

_GRID = {
    "sensitive": "city",
    "methods": ["none", "uge-w"],
    "backbones": ["node2vec"],
    "lams": [],
    "seeds": [0],
    "split_seeds": [0],
    "epochs": 3,
    "unknown": "level",
    "hidden": "impute",
    "exposure": "both",
    "options": {"dim": 8},
}
_JOB = {"device": "cpu", "force": False, "deterministic": False, "solo": False, "attributes": None, "grid": _GRID}


@dataclass(frozen=True)
class Action:
    """What is killed.

    Attributes:
        name: what it is.
        act: does it, in a folder with a store and a graph.
        loses: it deletes the finished runs.
        again: it trains or audits the finished runs again.
        share: of the kills.
    """

    name: str
    act: Callable[[Path], object]
    loses: bool = False
    again: bool = False
    share: int = 1


def _uge(*words: str) -> Callable[[Path], object]:
    def act(home: Path) -> None:
        filled = [word.replace("DATA", str(home / "town")) for word in words]
        cli.run([*filled, "--store", str(home / "store")])

    return act


_TRAIN = ("--sensitive", "city", "--epochs", "3", "--set", "dim=8", "--device", "cpu")


def _delete_all(home: Path) -> None:
    for run in RunStore(home / "store").list():
        cli.run(["runs", "delete", run.id, "--store", str(home / "store")])


def _audit_all(home: Path) -> None:
    store = RunStore(home / "store")
    for run in store.list():
        assert run.audit is not None
        store.save_audit(run.id, run.audit)


def _work(home: Path) -> None:
    queue = Queue(RunStore(home / "store"))
    queue.add(_JOB | {"data": str(home / "town")})
    cli.run(["worker", "--store", str(home / "store"), "--lane", "cpu"])


def _files(home: Path) -> list[tuple[str, BinaryIO]]:
    return [(name, io.BytesIO((home / "town" / name).read_bytes())) for name in ("edges.csv", "nodes.csv")]


def _page(home: Path) -> None:
    """What the dashboard's process does with files and the queue."""
    store = RunStore(home / "store")
    for _ in range(5):
        save_upload("mine", _files(home), store)
        job_id = Queue(store).add(_JOB | {"data": str(home / "town")})
        Queue(store).cancel(job_id)
        Queue(store).remove(job_id)
        remove_upload(list_uploads(store)[0].name, store)
        save_upload("mine", _files(home), store)


ACTIONS = (
    Action("train", _uge("train", "DATA", *_TRAIN, "--method", "uge-c", "--lam", "0.7"), share=2),
    Action("train again", _uge("train", "DATA", *_TRAIN, "--method", "none", "--force"), again=True, share=2),
    Action("sweep", _uge("sweep", "DATA", *_TRAIN, "--methods", "none,uge-w,uge-c", "--lams", "0.5"), share=2),
    Action("store audits", _audit_all),
    Action("delete", _delete_all, loses=True, share=2),
    Action("purge", _uge("store", "purge", "--older-than", "0d"), loses=True),
    Action("worker", _work, share=3),
    Action("page", _page),
    Action("first start", lambda home: first_start(RunStore(home / "first"))),
)


def town(folder: Path) -> Path:
    """A graph of sixty people in two cities."""
    chance = np.random.default_rng(0)
    folder.mkdir(parents=True)
    pairs = {tuple(sorted(map(int, chance.choice(60, 2, replace=False)))) for _ in range(260)}
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"p{a},p{b}\n" for a, b in sorted(pairs)))
    (folder / "nodes.csv").write_text("id,city\n" + "".join(f"p{i},{'AB'[i % 2]}\n" for i in range(60)))
    return folder


def _fault(home: Path, action: Action, sums: dict[str, dict[str, str]]) -> str | None:
    store = RunStore(home / "store")
    for tidied in (False, True):
        when = "after tidying" if tidied else "at once"
        runs = {run.id: run for run in store.list(archived=True)}
        if unsettled := not_settled(runs.values()):
            return f"{unsettled} {when}"
        for run_id, before in sums.items():
            if run_id not in runs:
                if not action.loses:
                    return f"run {run_id} is lost {when}"
            elif runs[run_id].status != "finished" or (not action.again and dict(runs[run_id].sums) != before):
                return f"run {run_id} is {runs[run_id].status} or another {when}"
        if faults := list(store.faults()):
            return f"{faults[0]} {when}"
        if half := [u.name for u in list_uploads(store) if len(u.files) != 2]:
            return f"upload {half[0]} is half there {when}"
        for job in Queue(store).list():
            if job.status == "running" and job.pid is None:
                return f"job {job.id} runs without a process {when}"
        store.tidy()
    if action.name == "first start":
        first = RunStore(home / "first")
        first_start(first)
        if len(first.list()) < 10 or any(first.faults()):
            return "the first start is not whole"
    left = leftovers(home)
    return f"left behind: {sorted(map(str, left))}" if left else None


def run(seed: int, quick: bool) -> Iterator[tuple[str, str | None]]:
    """Two hundred kills, the moment drawn from the time that the action takes."""
    chance = random.Random(seed)
    actions = [action for action in ACTIONS for _ in range(action.share)]
    with place() as home:
        start = home / "start"
        town(start / "town")
        code = ended(fork(lambda: _list_modules(ACTIONS[2].act, start, home / "modules")), 600)
        for name in (home / "modules").read_text().split() if not code else ():
            with suppress(ImportError):  # some exist within another one's loading alone
                importlib.import_module(name)  # so that what is forked need not load it
        if code or len(RunStore(start / "store").list()) != 3:
            raise RuntimeError(f"three runs cannot be trained: exit code {code}")
        sums = {run.id: dict(run.sums) for run in RunStore(start / "store").list()}
        took: dict[str, float] = {}

        def trial(action: Action, share: float | None) -> str | None:
            now = home / "now"
            shutil.rmtree(now, ignore_errors=True)
            shutil.copytree(start, now)
            if action.name in ("sweep", "worker"):  # which is to train something
                RunStore(now / "store").delete(next(iter(sums)))
            known = {i: s for i, s in sums.items() if action.name not in ("sweep", "worker") or i != next(iter(sums))}
            began = time.monotonic()
            pid = fork(lambda: action.act(now))
            if share is None:
                if code := ended(pid, 600):
                    return f"it fails by itself: exit code {code}"
                took[action.name] = time.monotonic() - began
            else:
                time.sleep(share * took[action.name])
                os.killpg(pid, signal.SIGKILL) if _there(pid) else None
                ended(pid)
            return _fault(now, action, known)

        for action in ACTIONS:
            yield f"{action.name}: to its end", trial(action, None)
        for number in range(4 if quick else 200):
            action = actions[number % len(actions)]
            share = chance.random()
            yield f"{action.name}: kill {number}, after {share:.2f} of its time", trial(action, share)


def _list_modules(act: Callable[[Path], object], start: Path, out: Path) -> None:
    """Does it, and writes which modules that took."""
    act(start)
    out.write_text("\n".join(list(sys.modules)))


def _there(pid: int) -> bool:
    """Whether its process group is there, which is made a moment after it began."""
    for _ in range(50):
        try:
            if os.getpgid(pid) == pid:
                return True
        except ProcessLookupError:
            return False
        time.sleep(0.001)
    return False
