"""The data of a run: what is stored of it, and whether it is still the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from uge_core.errors import StoreError
from uge_core.graph.graph import AttributedGraph
from uge_core.progress import OnProgress as OnProgress
from uge_core.progress import Progress as Progress
from uge_core.runs.names import EXTERNAL
from uge_core.runs.stored_run import StoredRun, Subject


def dataset_record(graph: AttributedGraph) -> dict[str, Any]:
    """What a run keeps about its data: name, fingerprint and counts, and the SHA-256 of the node ids.

    The ids are no part of the fingerprint, as no number depends on them; what is exported does.
    """
    ids = json.dumps(graph.ids(slice(None)))
    return {
        "name": graph.name,
        "fingerprint": graph.fingerprint,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "ids": hashlib.sha256(ids.encode("utf-8", "surrogatepass")).hexdigest(),
    }


def scenario_of(dataset: Mapping[str, Any]) -> str | None:
    """SHA-256 of the scenario that a run's data were made by, or None."""
    return ((dataset.get("source") or {}).get("scenario") or {}).get("sha256")


def check_data(run: StoredRun | Subject, graph: AttributedGraph, *, ids: bool = False) -> None:
    """Makes sure that a graph is the one a run was trained on.

    Args:
        run: the run.
        graph: what is loaded now.
        ids: the node ids must be the same too, as they will be written beside the embedding.

    Raises:
        StoreError: it is another one.
    """
    if run.dataset["fingerprint"] != graph.fingerprint:
        if run.config["method"] == EXTERNAL:
            raise StoreError(
                f"run {run.id} embeds other data than {graph.name} holds now (fingerprint "
                f"{run.dataset['fingerprint'][:12]}, found {graph.fingerprint[:12]}); name the data it embeds "
                "with --data DATA, or audit its file again"
            )
        raise StoreError(
            f"run {run.id} was trained on other data than {graph.name} holds now (fingerprint "
            f"{run.dataset['fingerprint'][:12]}, found {graph.fingerprint[:12]}); name the data it was trained "
            "on with --data DATA, or train again"
        )
    if ids and run.dataset.get("ids") not in (None, dataset_record(graph)["ids"]):
        raise StoreError(
            f"run {run.id} was trained on a graph like {graph.name} whose nodes have other ids; name the data it "
            "was trained on with --data DATA, or run uge train on this graph first, which takes over its ids"
        )
