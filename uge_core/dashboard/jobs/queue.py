"""The queue of jobs: a row each in the store, one worker process a device, the rest wait.

A job is one sweep, or the pictures of stored runs. It is queued, running, then finished, failed, cancelled or
interrupted. Its worker leaves a sign of life twice a second; a job without one for 30 s whose process is gone is
interrupted, and may be resumed from its checkpoints. These times are counted from the machine's start, as its clock may be
set. A process is known by its number and its time of birth, as numbers are used again. Nothing here imports torch, so the
dashboard may use all of it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uge_core.errors import ConfigError, StoreError
from uge_core.machine import alive, birth
from uge_core.processes import Background, boot, last_lines, since_boot
from uge_core.runs.database import SEALED, fits
from uge_core.runs.store import RunStore

QUIET = 30.0
"""Seconds without a sign of life after which a job whose process is gone is interrupted."""
GRACE = 10.0
"""Seconds after which a job that does not heed its cancelling is terminated."""
_PAUSE = 10.0  # seconds between two starts of a worker that does not come up
_LOG_LINES = 12
WAITING, ACTIVE = "queued", "running"
DAMAGED = "damaged"
"""What `Job.settings["kind"]` says of a job of which nobody knows what it was to do."""
OVER = ("finished", "failed", "cancelled", "interrupted")


@dataclass(frozen=True)
class Job:
    """One sweep, or pictures of its runs, asked for by a page.

    Attributes:
        id: counts up.
        status: queued, running, finished, failed, cancelled or interrupted.
        lane: what it runs on, cpu or gpu; one job a lane at a time.
        settings: `data`, `attributes`, `grid` (arguments of `runs.plan`) and those of `runs.sweep`; with a `kind`
            what that needs (`jobs.projection`).
        created: when it was asked for, seconds since 1970.
        started: when it began last, or None.
        ended: when it ended, or None.
        beat: its worker's last sign of life, seconds since the machine started, or None.
        cancel: when its cancelling was asked for, seconds since the machine started, or None.
        progress: stage, done, total, text, loss and seconds_left, as in `progress.Step`; empty before it begins.
        runs: ids of its runs, once known.
        reason: why it failed or ended early.
        remedy: what to do about it.
        pid: its worker's process, while it runs.
        born: that process's birth.
        boot: which start of the machine `beat` counts from.
    """

    id: int
    status: str
    lane: str
    settings: dict[str, Any]
    created: float
    started: float | None
    ended: float | None
    beat: float | None
    cancel: float | None
    progress: dict[str, Any]
    runs: tuple[str, ...]
    reason: str | None
    remedy: str | None
    pid: int | None
    born: str | None
    boot: str | None

    @property
    def quiet(self) -> float:
        """Seconds since its worker's last sign of life; endless where that was before the machine started again."""
        if self.beat is None or self.boot != boot():
            return float("inf")
        return since_boot() - self.beat

    @property
    def resumable(self) -> bool:
        """It ended early; what it finished is kept."""
        return self.status in ("failed", "cancelled", "interrupted")


class Queue:
    """The jobs of a store. Each call is one transaction; reading never creates anything."""

    def __init__(self, store: RunStore) -> None:
        """The queue of `store`."""
        self.store = store

    def add(self, settings: Mapping[str, Any]) -> int:
        """Puts a job at the end and returns its number."""
        with self.store.writing() as db:
            done = db.execute(
                "INSERT INTO jobs (status, lane, settings, created) VALUES ('queued', ?, ?, ?)",
                (lane(settings.get("device", "auto")), json.dumps(dict(settings)), time.time()),
            )
            return int(done.lastrowid or 0)

    def ask(self, settings: Mapping[str, Any]) -> int:
        """Puts a job into the queue, unless one that asks for the same waits or runs, and keeps the queue going.

        Returns:
            The job's number, at once.

        Raises:
            StoreError: the store cannot be written.
        """
        same = (job.id for job in self.list() if job.status in (ACTIVE, WAITING) and job.settings == settings)
        job_id = next(same, None) or self.add(settings)
        self.supervise()
        return job_id

    def list(self) -> Sequence[Job]:
        """All jobs, the newest first."""
        return self._select("SELECT * FROM jobs ORDER BY id DESC")

    def load(self, job_id: int) -> Job:
        """One job.

        Raises:
            StoreError: there is none with this number.
        """
        jobs = self._select("SELECT * FROM jobs WHERE id = ?", job_id)
        if not jobs:
            raise StoreError(f"no job {job_id} in the store {self.store.root}; it may have been removed")
        return jobs[0]

    def claim(self, lane: str) -> Job | None:
        """Takes the first job that waits in `lane` for this process.

        None, and the lane is free, where there is none.
        """
        with self.store.writing() as db:
            rows = db.execute("SELECT * FROM jobs WHERE status = 'queued' AND lane = ? ORDER BY id", (lane,))
            row = next((row for row in rows if fits("jobs", row)), None)
            if row is None:
                # Within the transaction: a job that is added next finds nobody at work, and starts another.
                self.worker(lane).leave()
                return None
            db.execute(
                "UPDATE jobs SET status = 'running', started = ?, ended = NULL, beat = ?, boot = ?, cancel = NULL, pid = ?,"
                " born = ?, reason = NULL, remedy = NULL, progress = NULL WHERE id = ?",
                (time.time(), since_boot(), boot(), os.getpid(), birth(os.getpid()), row["id"]),
            )
        return self.load(row["id"])

    def enter(self, lane: str) -> bool:
        """Makes this process the worker of a lane; False where a living one is at work."""
        with self.store.writing():
            return self.worker(lane).enter()

    def beat(self, job_id: int, progress: Mapping[str, Any], runs: Sequence[str]) -> bool:
        """Leaves a sign of life and where the job stands; says whether it is to be cancelled."""
        with self.store.writing() as db:
            row = db.execute(
                "UPDATE jobs SET beat = ?, progress = ?, runs = ? WHERE id = ? AND status = 'running' AND pid = ? "
                "RETURNING cancel",
                (since_boot(), json.dumps(dict(progress)), json.dumps(list(runs)), job_id, os.getpid()),
            ).fetchone()
        # A job that is no longer this process's has been ended by somebody else.
        return row is None or row["cancel"] is not None

    def end(self, job_id: int, status: str, reason: str | None = None, remedy: str | None = None) -> None:
        """Says how a running job ended; one that has been ended by somebody else stays as it is."""
        with self.store.writing() as db:
            db.execute(
                "UPDATE jobs SET status = ?, ended = ?, reason = ?, remedy = ?, pid = NULL, born = NULL"
                " WHERE id = ? AND status = 'running'",
                (status, time.time(), reason, remedy, job_id),
            )

    def cancel(self, job_id: int) -> None:
        """Ends a job: one that waits at once, one that runs after the epoch it is in."""
        with self.store.writing() as db:
            db.execute(
                "UPDATE jobs SET status = 'cancelled', ended = ? WHERE id = ? AND status = 'queued'",
                (time.time(), job_id),
            )
            db.execute(
                "UPDATE jobs SET cancel = ? WHERE id = ? AND status = 'running' AND cancel IS NULL",
                (since_boot(), job_id),
            )

    def resume(self, job_id: int) -> None:
        """Puts a job that ended early into the queue again.

        Raises:
            StoreError: it did not end early.
        """
        self.supervise()
        job = self.load(job_id)
        if not job.resumable:
            raise StoreError(f"job {job_id} is {job.status}; only one that failed or was cut off can be resumed")
        with self.store.writing() as db:
            # Begun by force, it must not begin anew what it has done since.
            since = {"since": job.created} if job.settings.get("force") and job.started is not None else {}
            db.execute(
                "UPDATE jobs SET status = 'queued', lane = ?, settings = ?, cancel = NULL, reason = NULL, remedy = NULL"
                " WHERE id = ? AND status IN ('failed', 'cancelled', 'interrupted')",
                (lane(job.settings.get("device", "auto")), json.dumps(job.settings | since), job_id),
            )

    def remove(self, job_id: int) -> None:
        """Takes a job that is over off the list, with its log; its runs stay."""
        with self.store.writing() as db:
            row = db.execute("SELECT * FROM jobs WHERE id = ?", (job_id,)).fetchone()
            over = "" if row and not fits("jobs", row) else " AND status NOT IN ('queued', 'running')"
            done = db.execute(f"DELETE FROM jobs WHERE id = ?{over}", (job_id,))
        if done.rowcount:
            self.log(job_id).unlink(missing_ok=True)

    def supervise(self) -> None:
        """Keeps the queue going: ends what died or was cancelled in vain, and starts a worker where one is missing.

        Cheap where there is nothing to do, so that any page may call it; where nothing can be written, nothing is done.
        """
        if not self.store.writable:
            return
        jobs = [job for job in self.list() if job.status in (WAITING, ACTIVE)]
        for job in jobs:
            if job.status != ACTIVE:
                continue
            if job.boot == boot() and alive(job.pid, job.born):
                if job.cancel is not None and since_boot() - job.cancel > GRACE and job.pid != os.getpid():
                    self.worker(job.lane).end()
                    self.end(job.id, "cancelled", "ended by force, as it did not stop within 10 seconds")
            elif job.cancel is not None:
                self.end(job.id, "cancelled", "its process ended while it was being cancelled")
            elif job.quiet > QUIET:
                self.end(
                    job.id,
                    "interrupted",
                    "its process ended without a word",
                    "Resume goes on from the last checkpoint.",
                )
        for name in sorted({job.lane for job in jobs if job.status == WAITING}):
            self._start(name)

    def worker(self, lane: str) -> Background:
        """The process that works off the jobs of a lane."""
        return Background(self.store.root / "jobs", f"worker-{lane}")

    def _start(self, lane: str) -> None:
        """Starts the worker of a lane, which outlives the one who asked."""
        command = ["worker", "--store", str(self.store.root.resolve()), "--lane", lane]
        self.worker(lane).start(command, pause=_PAUSE)

    def log(self, job_id: int) -> Path:
        """The file with what the worker said about a job."""
        return self.store.root / "jobs" / f"{job_id}.log"

    def last_lines(self, job: Job) -> tuple[str, ...]:
        """The last of them; for a job that no worker took, the last of the worker that did not come up."""
        log = self.worker(job.lane).log if job.started is None else self.log(job.id)
        return last_lines(log, _LOG_LINES)

    def _select(self, query: str, *values: Any) -> Sequence[Job]:
        with self.store.reading() as db:
            if db is None:
                return []
            rows = db.execute(query, values).fetchall()
        return [_job(row) for row in rows]


def _job(row: Any) -> Job:
    names = [name for name in SEALED["jobs"] if name not in ("settings", "progress", "runs")]
    plain = {name: row[name] for name in names}
    if not fits("jobs", row):
        gone = {"status": "failed", "reason": "its record in store.sqlite differs from the SHA-256 that is kept of it"}
        gone["remedy"] = "Remove it from the list and ask for it again."
        return Job(**plain | gone, settings={"kind": DAMAGED, "data": "a damaged record"}, progress={}, runs=())
    return Job(
        **plain,
        settings=json.loads(row["settings"]),
        progress=json.loads(row["progress"] or "{}"),
        runs=tuple(json.loads(row["runs"] or "[]")),
    )


def lane(device: str) -> str:
    """What a job takes up: a GPU where there is one and it is not told to stay on the CPU."""
    if device not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device = {device!r} is not allowed; allowed: auto, cpu, cuda")
    # torch would know better, but the web process must not load it.
    return "gpu" if device != "cpu" and gpu() else "cpu"


def gpu() -> bool:
    """Whether this machine seems to have a GPU that torch can use."""
    return any(Path(path).exists() for path in ("/dev/nvidiactl", "/dev/kfd"))
