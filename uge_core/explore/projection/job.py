"""Making pictures of several runs, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from uge_core.explore.projection.cache import Picture, confidence, find_confidence, find_picture, picture, projections
from uge_core.explore.projection.pace import CONFIDENCE, kind, work
from uge_core.explore.projection.sample import draw_sample
from uge_core.graph.graph import AttributedGraph
from uge_core.progress import OnProgress, Progress
from uge_core.runs.stored_run import StoredRun
from uge_core.runs.timing import Timing, timed


def project(
    graph: AttributedGraph,
    paths: Sequence[Sequence[StoredRun]],
    methods: Sequence[str],
    *,
    size: int,
    seed: int = 0,
    on_progress: OnProgress | None = None,
    on_timing: Callable[[Timing], None] | None = None,
) -> None:
    """Makes and keeps the pictures of each path's runs, each from the one before, and the probe's confidence.

    What is there already is not made again, so a job that was cut off goes on where it was.

    Args:
        graph: the data of all of them.
        paths: runs in the order of their lambdas.
        methods: names from ``projections()``.
        size: how many people.
        seed: keys the sample and the methods.
        on_progress: told before each step.
        on_timing: told how long each step took that made something.

    Raises:
        ConfigError, StoreError: each says what to do.
    """
    sample = draw_sample(graph, size, seed=seed)
    runs = list({run.id: run for path in paths for run in path}.values())
    todo = sum(len(path) for path in paths) * len(methods) + len(runs)
    done = 0

    def tell(what: str, run: StoredRun) -> None:
        nonlocal done
        if on_progress:
            on_progress(Progress("projecting", done, todo, f"{what} of run {run.id}, {sample.words}"))
        done += 1

    def took(name: str, began: float, *, first: bool) -> None:
        if on_timing:
            units = work(name, len(sample.nodes), first=first, num_attributes=max(1, len(graph.audited)))
            seconds = time.monotonic() - began
            on_timing(timed("project", graph.fingerprint, kind(name, first=first), units, seconds))

    for method in methods:
        first = True
        label = projections()[method].label
        for path in paths:
            before: Picture | None = None
            for run in path:
                tell(label, run)
                # The first of a path may stand at the head of another, and has one already.
                kept = find_picture(run, method, sample, seed=seed) if before is None else None
                began, there = time.monotonic(), len(_made(run, method))
                before = kept or picture(run, method, sample, start=before, seed=seed)
                if len(_made(run, method)) > there:
                    took(method, began, first=first)
                    first = False
    for run in runs:
        tell("probe confidence", run)
        began, missing = time.monotonic(), not find_confidence(run, sample, seed=seed)
        confidence(run, graph, sample, seed=seed)
        if missing:
            took(CONFIDENCE, began, first=False)


def _made(run: StoredRun, method: str) -> list[str]:
    """The pictures of a run that are kept."""
    return [path.name for path in run.folder.glob(f"projection-{method}-*.json")]
