"""What a store holds that is older than a given age, and its removal: people's data are not kept for longer than they are needed."""

from __future__ import annotations

import glob
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from uge_core.dashboard.jobs.queue import OVER, Job, Queue
from uge_core.datasets.kept import KeptGraphs
from uge_core.errors import ConfigError, StoreError
from uge_core.explore.whatif.scenario import Scenarios, StoredScenario
from uge_core.files import TEMPORARY, abandoned, remove
from uge_core.runs.store import RunStore
from uge_core.runs.uploads import list_uploads, made_from, remove_upload
from uge_core.training.checkpoint import checkpoints_in

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
    matched = re.fullmatch(r"(\d{1,5})([hdw])", text.strip().lower())
    if matched is None:
        raise ConfigError(f"{text[:40]!r} is no age; give a number with h, d or w, such as 12h, 30d or 4w")
    return timedelta(**{_UNITS[matched[2]]: int(matched[1])})


def older_than(limit: timedelta, store: RunStore) -> tuple[Old, ...]:
    """Runs, uploads, kept graphs, scenarios, finished jobs and checkpoints older than `limit`, each with its removal.

    A run goes with its embeddings, audit, pictures and checkpoints. Runs and jobs that are at work stay with their
    checkpoints, and files that were read from where they lie are never touched. What killed processes left goes too.

    Args:
        limit: the least age; a run's counts from the end of its training.
        store: the store.
    """
    now = time.time()
    # What a clock that was set back says is to come was made just now.
    return tuple(old for old in _all(store, now) if max(0.0, old.age) >= limit.total_seconds())


def _all(store: RunStore, now: float) -> Iterator[Old]:
    runs, jobs = store.list(audits=False, archived=True), Queue(store).list()
    for run in runs:
        if run.status != "running":
            words = f"run {run.id} ({run.dataset.get('name', 'damaged')})"
            yield Old(words, now - (run.finished or run.created), partial(store.delete, run.id))
    at_work = [str(job.settings.get("data", "")) for job in jobs if job.status not in OVER]
    at_work += [str((run.dataset.get("source") or {}).get("spec")) for run in runs if run.status == "running"]
    for upload in list_uploads(store):
        if any(made_from({"spec": spec}, upload.folder) for spec in at_work):
            continue
        yield Old(f"upload {upload.name}", now - upload.created, partial(remove_upload, upload.name, store))
    for stored in Scenarios(store).list():
        yield Old(f"scenario {stored.scenario.name}", now - stored.created, partial(_drop_scenario, stored, store))
    for path in Scenarios(store).damaged():
        with suppress(FileNotFoundError):
            written = path.lstat().st_mtime
            yield Old(f"scenario {path.name} (damaged)", now - written, partial(_drop_damaged, path, store))
    for draft in Scenarios(store).drafts():
        words = f"unsaved edits {draft.token}" + " (damaged)" * (draft.scenario is None)
        yield Old(words, now - draft.changed, partial(Scenarios(store).drop_draft, draft.token))
    for job in jobs:
        if job.status in OVER:
            yield Old(f"job {job.id} ({job.status})", now - (job.ended or job.created), partial(_drop_job, job, store))
    there = {run.id for run in runs}
    busy = {run.id for run in runs if run.status == "running"}
    busy |= {run_id for job in jobs if job.status not in OVER for run_id in job.runs}
    needed = {path for path, record in checkpoints_in(store.checkpoints) if busy.intersection(record["runs"])}
    files = {
        "copy of a .pt file": store.tensors.glob("*.npz"),
        "checkpoint": (path for path in store.checkpoints.glob("*.npz") if path not in needed),
        "comparison": (path for path in store.comparisons.glob("*.json") if not there.issuperset(path.stem.split("-"))),
        "leftover": _dangling_and_beside(store),
    }
    for what, paths in files.items():
        for path in sorted(paths):
            with suppress(FileNotFoundError):
                # Of a link itself: what it names may be gone.
                yield Old(f"{what} {path.name}", now - path.lstat().st_mtime, partial(_drop_file, path))
    for kept in KeptGraphs(store.root).list():
        yield Old(f"kept graph {kept.name}", now - kept.made, partial(_drop_file, kept.folder))
    for path in store.leftovers():
        with suppress(FileNotFoundError):
            yield Old(f"leftover {path.name}", now - path.lstat().st_mtime, partial(_drop_leftover, path, store))


def _dangling_and_beside(store: RunStore) -> Iterator[Path]:
    """Links in the store to what is gone, and what killed processes left beside it and among the machine's temporary files."""
    yield from (path for path in store.root.rglob("*") if path.is_symlink() and not path.exists())
    for folder, prefix in (
        (store.root.absolute().parent, f".{store.root.name}."),
        (Path(tempfile.gettempdir()), TEMPORARY),
    ):
        with suppress(OSError):
            yield from (path for path in folder.iterdir() if path.name.startswith(prefix) and abandoned(path))


def _drop_scenario(stored: StoredScenario, store: RunStore) -> list[str]:
    Scenarios(store).delete(stored.scenario.id)
    return [f"scenario {stored.scenario.name}, with what runs gave"]


def _drop_damaged(scenario: Path, store: RunStore) -> list[str]:
    answers = (store.root / "runs").glob(f"*/whatif/{glob.escape(scenario.name)}")
    return [gone for path in (scenario, *answers) for gone in _drop_file(path)]


def _drop_job(job: Job, store: RunStore) -> list[str]:
    Queue(store).remove(job.id)
    return [f"job {job.id}, with its log"]


def _drop_leftover(path: Path, store: RunStore) -> Sequence[str]:
    gone = store.discard([path])
    if not gone and path.exists():
        raise StoreError(f"{path} cannot be removed; see to who may write there, and try again")
    return gone


def _drop_file(path: Path) -> list[str]:
    try:
        remove(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be removed: {error.strerror or error}") from None
    return [str(path)]
