"""The graph a run was trained on, loaded again, with the scenario where it was trained on one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from uge_core.datasets import load
from uge_core.errors import StoreError
from uge_core.explore.whatif.edits import Places, apply_edits
from uge_core.explore.whatif.scenario import Scenario
from uge_core.graph.graph import AttributedGraph
from uge_core.progress import OnProgress
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun


def scenario_graph(graph: AttributedGraph, scenario: Scenario, places: Places | None = None) -> AttributedGraph:
    """The graph that a scenario makes, called "GRAPH + scenario NAME".

    Raises:
        StoreError: the scenario was made for other data.
        ConfigError: an edit does not fit the graph.
    """
    if scenario.data != graph.fingerprint:
        raise StoreError(
            f"scenario {scenario.name!r} was made for other data than {graph.name} holds now (fingerprint "
            f"{scenario.data[:12]}, found {graph.fingerprint[:12]}); make it anew"
        )
    edited = apply_edits(graph, scenario.edits, places)
    return replace(edited, name=f"{graph.name} + scenario {scenario.name}") if scenario.name else edited


def load_source(
    source: Mapping[str, Any],
    store: RunStore,
    *,
    may_fetch: bool = False,
    tensors: Path | None = None,
    on_progress: OnProgress | None = None,
) -> AttributedGraph:
    """The graph of a run's record of where its data lie: `spec`, `attributes`, and `scenario` where there is one.

    The other arguments are those of `datasets.load`.

    Raises:
        GraphError, StoreError: it cannot be read, or has changed.
    """
    graph = load(
        source["spec"],
        attributes=source.get("attributes"),
        store=store.root,
        may_fetch=may_fetch,
        tensors=tensors,
        on_progress=on_progress,
        keep=True,
    )
    return with_scenario(graph, source)


def with_scenario(graph: AttributedGraph, source: Mapping[str, Any]) -> AttributedGraph:
    """The graph with the scenario of a run's record; itself where it has none."""
    record = source.get("scenario")
    return scenario_graph(graph, Scenario.from_json(record)) if record else graph


def source_of(run: StoredRun) -> Mapping[str, Any]:
    """Where a run's data lie.

    Raises:
        StoreError: it does not say.
    """
    source: Mapping[str, Any] = run.dataset.get("source") or {}
    if not source.get("spec"):
        raise StoreError(
            f"run {run.id} was trained in Python on a graph without a place on disk; train it from a folder, or "
            "with the source argument"
        )
    return source
