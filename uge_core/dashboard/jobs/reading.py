"""A `.pt` file read by a worker, as a job of the queue: the dashboard, which does not load torch, then shows its graph."""

from __future__ import annotations

from uge_core.dashboard.jobs.queue import Queue
from uge_core.datasets import lasting, load, locate
from uge_core.datasets.layouts.pyg_data import keep_tensors
from uge_core.progress import OnProgress, Progress
from uge_core.runs.store import RunStore

KIND = "reading"
"""What `Job.settings["kind"]` says of such a job."""


def enqueue_reading(spec: str, store: RunStore) -> int:
    """Puts the reading of a file into the queue and returns the job's number at once.

    One that waits already is not asked for again.

    Raises:
        GraphError: there is no such file.
        StoreError: the store cannot be written.
    """
    locate(spec, store=store.root)
    return Queue(store).ask({"kind": KIND, "data": lasting(spec), "attributes": None, "device": "cpu"})


def carry_out(store: RunStore, spec: str, on_progress: OnProgress) -> None:
    """Does such a job.

    Raises:
        GraphError: the file is none of torch, holds objects beside tensors, or no graph.
    """
    _, located = locate(spec, store=store.root)
    path = located.files["data"]
    words = f"{path.name}, {path.stat().st_size / 1e6:.1f} MB"
    on_progress(Progress("reading", 0, 2, f"tensors of {words}"))
    keep_tensors(path, store.tensors)
    on_progress(Progress("reading", 1, 2, f"graph of {words}"))
    # Whatever is wrong with the graph is said now.
    load(spec, store=store.root, may_fetch=False, tensors=store.tensors)
