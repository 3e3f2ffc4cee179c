"""Two runs measured in pairs, as a job of the queue: made once, kept until one of them is deleted or trained again."""

from __future__ import annotations

import time
from typing import Any

from uge_core.dashboard.jobs.like import data_of
from uge_core.dashboard.jobs.queue import ACTIVE, WAITING, Job, Queue
from uge_core.errors import StoreError
from uge_core.explore.comparison import edited_of, paired_path, paired_record, why_no_pairs
from uge_core.explore.whatif.source import with_scenario
from uge_core.files import make_folder, sealed, write_atomically
from uge_core.graph.graph import AttributedGraph
from uge_core.progress import OnProgress, Progress
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun

KIND = "comparison"
"""What `Job.settings["kind"]` says of such a job."""


def enqueue_comparison(store: RunStore, before: str, after: str) -> int:
    """Puts the paired comparison of two runs into the queue and returns the job's number at once.

    A job that asks for the same and is not over yet is not asked for again.

    Raises:
        RunNotFound: no such run.
        StoreError: they cannot be measured in pairs, or the store cannot be written.
    """
    a, b = store.load(before), store.load(after)
    if refusal := why_no_pairs(a, b):
        raise StoreError(refusal)
    plain = data_of(a) | {"scenario": None}
    open_job = comparing(store, before, after)
    return Queue(store).ask(
        open_job.settings if open_job else plain | {"kind": KIND, "path": [before, after], "device": "cpu"}
    )


def comparing(store: RunStore, before: str, after: str) -> Job | None:
    """The job that measures these two, while it waits or runs."""
    for job in Queue(store).list():
        same_pair = job.settings.get("kind") == KIND and set(job.settings["path"]) == {before, after}
        if same_pair and job.status in (ACTIVE, WAITING):
            return job
    return None


def carry_out(store: RunStore, graph: AttributedGraph, settings: dict[str, Any], on_progress: OnProgress) -> None:
    """Does such a job; what was measured already stays.

    Args:
        store: where the runs are.
        graph: the runs' graph, without a scenario.
        settings: the job's.
        on_progress: told before each attack.

    Raises:
        RunNotFound: a run was deleted meanwhile.
        ConfigError, StoreError: each says what to do.
    """
    from uge_core.explore.comparison import compare, compare_record
    from uge_core.explore.whatif.paired import compare_runs, edited_attributes
    from uge_core.runs.audits import DEFAULT_ATTACKERS

    a, b = (store.load(run_id) for run_id in settings["path"])
    if paired_record(store, a, b):
        return
    edited = edited_of(a, b)
    other = with_scenario(graph, (edited or a).dataset["source"])
    changed = edited_attributes(graph, other) if edited else set()
    began, total, done = time.monotonic(), _steps(a, b, graph, changed, len(DEFAULT_ATTACKERS)), 0

    def tell(text: str) -> None:
        nonlocal done
        spent = time.monotonic() - began
        left = spent / done * (total - done) if done else None
        on_progress(Progress("comparing", min(done, total), total, text, left))
        done += 1

    if edited is None:
        comparison = compare(a, b, other, attackers=DEFAULT_ATTACKERS, store=store, progress=tell)
        record = compare_record(comparison, a.dataset, {a.id: a.config}, {b.id: b.config})
    else:
        plain = b if edited is a else a
        record = compare_runs(plain, edited, graph, other, DEFAULT_ATTACKERS, store=store, progress=tell)
        a, b = plain, edited
    path = paired_path(store, a.id, b.id)
    text = sealed(record | {"finished": [a.finished, b.finished]})
    # Nobody can delete a run meanwhile; one that was deleted has taken its comparisons with it.
    with store.writing():
        for run in (a, b):
            store.load(run.id)
        make_folder(path.parent)
        write_atomically(path, lambda file: file.write(text))


def _steps(a: StoredRun, b: StoredRun, graph: AttributedGraph, changed: set[str], attackers: int) -> int:
    """How many attacks and rankings there are, to the number of rankings; `changed` are attributes that were edited."""
    treated = [run.config.get("sensitive", ()) for run in (a, b)]
    twins = [
        (run.twin is not None and not changed & set(names), names) for run, names in zip((a, b), treated, strict=True)
    ]
    attacks = sum(1 + (twin and x.name in names) for x in graph.audited for twin, names in twins)
    return attackers * attacks + 1 + any(twin for twin, _ in twins)
