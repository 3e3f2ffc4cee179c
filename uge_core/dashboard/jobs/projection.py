"""The people of a run's pictures, and pictures that take long as a job of the queue: made once, kept with their runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import ceil, floor
from typing import Any

from uge_core.dashboard.jobs.like import data_of
from uge_core.dashboard.jobs.queue import Queue
from uge_core.errors import StoreError
from uge_core.explore.projection.job import project
from uge_core.explore.projection.pace import expected
from uge_core.explore.whatif.source import load_source, source_of
from uge_core.graph.graph import AttributedGraph
from uge_core.progress import OnProgress
from uge_core.runs.data import check_data
from uge_core.runs.store import RunStore
from uge_core.runs.timing import Timing, between

KIND = "projection"
"""What `Job.settings["kind"]` says of such a job; one without a kind trains."""


def projection_graph(store: RunStore, run_id: str) -> AttributedGraph:
    """Loads the graph of a run, for its people's values and ids.

    Args:
        store: the run store.
        run_id: any run of the graph.

    Raises:
        StoreError: nobody knows where the data lie, or other data lie there now.
        GraphError: the data cannot be read.
    """
    run = store.load(run_id)
    graph = load_source(source_of(run), store, tensors=store.tensors)
    check_data(run, graph)
    return graph


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
    return Queue(store).ask(
        data_of(store.load(path[0]))
        | {"kind": KIND, "path": list(path), "methods": list(methods), "size": size, "seed": 0, "device": "cpu"}
    )


def carry_out(store: RunStore, graph: AttributedGraph, settings: dict[str, Any], on_progress: OnProgress) -> None:
    """Does such a job.

    Raises:
        RunNotFound: a run was deleted meanwhile.
        StoreError, ConfigError: each says what to do.
    """
    runs = [store.load(run_id) for run_id in settings["path"]]
    for run in runs:
        check_data(run, graph)

    def note(timing: Timing) -> None:
        # What is not kept is estimated by rule the next time.
        with suppress(StoreError):
            store.note_timing(timing)

    project(
        graph,
        [runs],
        settings["methods"],
        size=settings["size"],
        seed=settings["seed"],
        on_progress=on_progress,
        on_timing=note,
    )


def projection_estimate(
    store: RunStore, graph: AttributedGraph, method: str, num_pictures: int, num_people: int
) -> str:
    """How long a job takes that makes pictures by one method, as a range in words with what it is known from.

    Args:
        store: whose measured times count.
        graph: whose people are drawn.
        method: a name from `slow_projections`.
        num_pictures: how many are missing.
        num_people: how many are drawn.
    """
    span = expected(store.timings(), method, num_pictures, num_people, max(1, len(graph.audited)))
    return f"{_ends(span.low, span.high)}, by {span.source}"


def _ends(low: float, high: float) -> str:
    """A range of seconds; under ten minutes as exact as to ten seconds, as 80 s are not "1 min"."""
    if high >= 600:
        return between(low, high)
    first, last = 10 * floor(low / 10) or 5 * floor(low / 5), 10 * ceil(high / 10)
    return f"{first} to {last} s" if 0 < first < last else f"up to {last} s"
