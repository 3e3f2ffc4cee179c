"""What a store holds that is older than a given age, and its removal: people's data are not kept for longer than they are needed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from uge_core.errors import ConfigError
from uge_core.jobs.queue import OVER, Job, Queue
from uge_core.store import RunStore
from uge_core.uploads import list_uploads, remove_upload
from uge_core.whatif.scenario import Scenarios, StoredScenario

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class Old:
    """Something that may go.

    Attributes:
        what: its kind and name.
        age: seconds since it was made.
        remove: removes it, and says what was removed.
    """

    what: str
    age: float
    remove: Callable[[], Sequence[str]]


def age(text: str) -> timedelta:
    """An age as people write it: "30d", "12h", "4w", or "0d" for everything.

    Raises:
        ConfigError: it is none.
    """
    found = re.fullmatch(r"(\d{1,5})([hdw])", text.strip().lower())
    if found is None:
        raise ConfigError(f"{text[:40]!r} is no age; give a number with h, d or w, such as 12h, 30d or 4w")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def older_than(limit: timedelta, store: RunStore) -> tuple[Old, ...]:
    """Runs, uploads, scenarios, finished jobs and checkpoints older than `limit`, each with its removal.

    A run goes with its embeddings, audit, pictures and checkpoints. Runs and jobs that are at work stay,
    and files that were read from where they lie are never touched.

    Args:
        limit: the least age; a run's counts from the end of its training.
        store: the store.
    """
    now = time.time()
    return tuple(old for old in _all(store, now) if old.age >= limit.total_seconds())


def _all(store: RunStore, now: float) -> Iterator[Old]:
    for run in store.list(audits=False, archived=True):
        if run.status != "running":
            words = f"run {run.id} ({run.dataset.get('name', 'damaged')})"
            yield Old(words, now - (run.finished or run.created), partial(store.delete, run.id))
    for upload in list_uploads(store):
        yield Old(f"upload {upload.name}", now - upload.created, partial(remove_upload, upload.name, store))
    for kept in Scenarios(store).list():
        yield Old(f"scenario {kept.scenario.name}", now - kept.created, partial(_drop_scenario, kept, store))
    for job in Queue(store).list():
        if job.status in OVER:
            yield Old(f"job {job.id} ({job.status})", now - (job.ended or job.created), partial(_drop_job, job, store))
    for path in sorted(store.tensors.glob("*.npz")) if store.tensors.is_dir() else ():
        yield Old(f"copy of a .pt file {path.name}", now - path.stat().st_mtime, partial(_drop_file, path))
    for path in sorted(store.checkpoints.glob("*.npz")) if store.checkpoints.is_dir() else ():
        yield Old(f"checkpoint {path.name}", now - path.stat().st_mtime, partial(_drop_file, path))


def _drop_scenario(kept: StoredScenario, store: RunStore) -> list[str]:
    Scenarios(store).delete(kept.scenario.id)
    return [f"scenario {kept.scenario.name}, with what runs gave"]


def _drop_job(job: Job, store: RunStore) -> list[str]:
    Queue(store).remove(job.id)
    return [f"job {job.id}, with its log"]


def _drop_file(path: Path) -> list[str]:
    path.unlink(missing_ok=True)
    return [str(path)]
