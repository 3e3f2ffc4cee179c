"""Pictures that take long, as a job of the queue: made once, kept with their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uge_core.errors import StoreError
from uge_core.graph import AttributedGraph
from uge_core.jobs.form import duration
from uge_core.jobs.queue import ACTIVE, WAITING, Queue
from uge_core.progress import OnStep
from uge_core.projection.cache import projections
from uge_core.projection.job import project
from uge_core.runs import check_data
from uge_core.store import RunStore

KIND = "projection"
"""What `Job.settings["kind"]` says of such a job; one without a kind trains."""


def enqueue_projection(store: RunStore, path: Sequence[str], methods: Sequence[str], size: int) -> int:
    """Puts the pictures of some runs of one graph into the queue and returns the job's number at once.

    A job that asks for the same and is not over yet is not asked for again.

    Args:
        store: the run store.
        path: run ids, each picture begins at the one before.
        methods: names from ``projections()``.
        size: how many people.

    Raises:
        RunNotFound: no such run.
        StoreError: nobody knows where the data lie, or the store cannot be written.
    """
    source = store.load(path[0]).dataset.get("source")
    if not source:
        raise StoreError(
            f"run {path[0]} was trained in Python on a graph without a place on disk; train it from a folder, or with the source argument"
        )
    settings: dict[str, Any] = {
        "kind": KIND, "data": source["spec"], "attributes": source["attributes"], "path": list(path), "methods": list(methods),
        "size": size, "seed": 0, "device": "cpu",
    }  # fmt: skip
    queue = Queue(store)
    same = [job.id for job in queue.list() if job.status in (ACTIVE, WAITING) and job.settings == settings]
    job_id = same[0] if same else queue.add(settings)
    queue.supervise()
    return job_id


def carry_out(store: RunStore, graph: AttributedGraph, settings: dict[str, Any], on_step: OnStep) -> None:
    """Does such a job.

    Raises:
        RunNotFound: a run was deleted meanwhile.
        StoreError, ConfigError: each says what to do.
    """
    runs = [store.load(run_id) for run_id in settings["path"]]
    for run in runs:
        check_data(run, graph)
    project(graph, [runs], settings["methods"], size=settings["size"], seed=settings["seed"], on_step=on_step)


def projection_estimate(num_runs: int, num_people: int) -> dict[str, str]:
    """How long each slow projection takes, roughly, by name."""
    return {
        name: duration(num_runs * num_people * method.pace / 1e6)
        for name, method in projections().items()
        if not method.at_once
    }
