"""The process that works off the queue, `python -m uge_core worker`, and ends when nothing waits.

A thread beside the training writes where it stands and asks whether it is to stop, so that no epoch
waits for the disk; the training itself looks at a flag after each epoch. All that is said goes to the
job's log. With the process its memory goes, on the GPU too.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from uge_core.dashboard.jobs.queue import Job, Queue
from uge_core.errors import ConfigError, GraphError, OutOfMemory, StoreError, TrainingDiverged, UgeError, WorkerLost
from uge_core.machine import keep_freed_memory
from uge_core.progress import Progress
from uge_core.runs.store import RunStore

_PULSE = 0.4  # seconds between two signs of life
_CURVE = 120  # points of a loss curve at most


class Cancelled(KeyboardInterrupt):
    """Somebody asked for the job to stop."""


def work(store: RunStore, lane: str) -> bool:
    """Works off the jobs of a lane, one after the other; False where another process does."""
    queue = Queue(store)
    if not queue.enter(lane):
        return False
    keep_freed_memory()
    with suppress(StoreError):
        store.tidy()
    while (job := queue.claim(lane)) is not None:
        _log_to(queue, job)
        _do(queue, job)
    return True


def _log_to(queue: Queue, job: Job) -> None:
    """From here on all that this process says, the system's last words too, goes to the job's log."""
    path = queue.log(job.id)
    with suppress(OSError), path.open("ab") as file:  # a full disk stops no work
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            with suppress(OSError, ValueError):
                os.dup2(file.fileno(), stream.fileno())
    with suppress(OSError, ValueError):
        faulthandler.enable(sys.stderr)


def _say(text: str) -> None:
    with suppress(OSError):  # a full disk stops no work
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {' '.join(text.split())}\n")
        sys.stderr.flush()


def _do(queue: Queue, job: Job) -> None:
    """One job from its first step to how it ended."""
    heartbeat = _Heartbeat(queue, job)
    try:
        with heartbeat:
            _carry_out(queue.store, job, heartbeat)
        queue.end(job.id, "finished")
        _say("finished")
    except Cancelled:
        queue.end(job.id, "cancelled", None, "Resume goes on from where it was stopped.")
        _say("cancelled")
    except (KeyboardInterrupt, SystemExit):
        queue.end(job.id, "interrupted", "stopped by the system", "Resume goes on from the last checkpoint.")
        raise
    except UgeError as error:
        _say(str(error))
        queue.end(job.id, "failed", str(error), remedy(error))
    except BaseException as error:
        traceback.print_exc()
        sys.stderr.flush()
        queue.end(job.id, "failed", f"{type(error).__name__}: {error}", remedy(error))


def _carry_out(store: RunStore, job: Job, heartbeat: _Heartbeat) -> None:
    from uge_core.dashboard.jobs import comparison, measure, projection, reading
    from uge_core.explore.projection.job import project
    from uge_core.explore.projection.path import chains
    from uge_core.explore.projection.sample import MOST
    from uge_core.explore.whatif.source import load_source
    from uge_core.runs.places import HERE
    from uge_core.runs.plan import plan
    from uge_core.runs.sweep import sweep

    settings = job.settings
    _say(f"loading {settings['data']}")
    if settings.get("kind") == reading.KIND:
        reading.carry_out(store, settings["data"], heartbeat)
        return
    source = {"spec": settings["data"], "attributes": settings["attributes"]}
    if settings.get("scenario"):
        source["scenario"] = settings["scenario"]
    graph = load_source(source, store, may_fetch=True, on_progress=heartbeat)
    heartbeat.check()
    if settings.get("kind") == projection.KIND:
        heartbeat.runs = list(settings["path"])
        projection.carry_out(store, graph, settings, heartbeat)
        return
    if settings.get("kind") == comparison.KIND:
        heartbeat.runs = list(settings["path"])
        comparison.carry_out(store, graph, settings, heartbeat)
        return
    if settings.get("kind") == measure.KIND:
        measure.carry_out(store, graph, settings, heartbeat)
        return
    grid: dict[str, Any] = settings["grid"]
    heartbeat.runs = [p.run_id for p in plan(graph, **grid)]
    _say(f"{len(heartbeat.runs)} runs: {json.dumps(grid, ensure_ascii=False)}")
    runs = sweep(
        graph,
        store=store,
        force=settings["force"],
        since=settings.get("since"),
        device=settings["device"],
        deterministic=settings["deterministic"],
        solo=settings["solo"],
        on=settings.get("on", HERE),
        on_progress=heartbeat,
        source=source,
        **grid,
    )
    if settings.get("projections"):
        project(graph, chains(runs), settings["projections"], size=MOST, on_progress=heartbeat)


def remedy(error: BaseException) -> str:
    """What to do about an error, for people."""
    if isinstance(error, TrainingDiverged):
        return "Lower the learning rate or lambda and train again; the runs that did not diverge are stored."
    if isinstance(error, OutOfMemory | MemoryError):
        return "Train fewer runs at once, choose a smaller dim, or node2vec, which holds least."
    if isinstance(error, GraphError):
        return "Put the data right (uge data inspect shows what is read), then resume."
    if isinstance(error, ConfigError):
        return "Change the setting named above and train again; nothing was lost."
    if isinstance(error, WorkerLost):
        return "See to the machines, then resume; what was finished is stored, the rest goes on from its checkpoints."
    if isinstance(error, StoreError):
        return "See to the store as said above, then resume."
    return "This is a fault of the program. Resume tries once more; the lines below say where it happened."


class _Heartbeat:
    """Takes the steps of a job, and tells the store about them from a thread of its own."""

    def __init__(self, queue: Queue, job: Job) -> None:
        self._queue, self._job = queue, job
        self._step = Progress("starting", 0, 1, "loading the data")
        self._stop, self._cancelled = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._said = ""
        self._losses: list[tuple[int, float]] = []
        self.runs: list[str] = []

    def __call__(self, step: Progress) -> None:
        """Called by the work as it goes on; ends it where the job was cancelled."""
        if step.stage == "note":
            _say(step.text)
        else:
            self._step = step
            self._note_loss(step)
            words = step.text.partition(", loss")[0]
            if words != self._said:
                self._said = words
                _say(words)
        self.check()

    def _note_loss(self, step: Progress) -> None:
        """Keeps the curve of this pass, at most `_CURVE` points, so that what is told stays small."""
        if step.stage != "training" or step.loss is None or not math.isfinite(step.loss):
            return
        if self._losses and step.done <= self._losses[-1][0]:
            self._losses = []  # another pass
        if not self._losses or step.loss != self._losses[-1][1]:
            self._losses = [*self._losses, (step.done, step.loss)]
        if len(self._losses) > _CURVE:
            self._losses = [*self._losses[:-1:2], self._losses[-1]]

    def check(self) -> None:
        """Raises Cancelled where somebody asked for it."""
        if self._cancelled.is_set():
            raise Cancelled

    def __enter__(self) -> _Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._tell()

    def _run(self) -> None:
        while not self._stop.wait(_PULSE):
            self._tell()

    def _tell(self) -> None:
        # A store that is busy now is told the next time.
        with suppress(StoreError):
            training = self._step.stage == "training"
            record = asdict(self._step) | {
                "memory": _memory() if training else None,
                "losses": self._losses if training else [],
            }
            if self._queue.beat(self._job.id, record, self.runs):
                self._cancelled.set()


def _memory() -> int | None:
    """Bytes this process holds on the GPU, or None without one; asked only while torch trains and is surely loaded."""
    torch = sys.modules["torch"]
    return int(torch.cuda.memory_reserved()) if torch.cuda.is_available() else None
