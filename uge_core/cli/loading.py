"""The graphs and embeddings that a command names."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uge_core.cli.printing import ProgressLine, remark
from uge_core.errors import GraphError, StoreError
from uge_core.runs.stored_run import StoredRun

if TYPE_CHECKING:
    from uge_core.graph.graph import AttributedGraph


def load_graph(
    spec: str, columns: list[str] | None, store: str | None, *, may_fetch: bool = True, keep: bool = True
) -> tuple[AttributedGraph, dict[str, Any]]:
    """The graph, and how to load it again; a large one is kept in the store unless `keep` is False."""
    from uge_core.datasets import lasting, load

    with ProgressLine(sys.stderr) as on_progress:
        graph = load(spec, attributes=columns, store=store, may_fetch=may_fetch, on_progress=on_progress, keep=keep)
    return graph, {"spec": lasting(spec), "attributes": columns}


def load_again(run: StoredRun, data: str | None, store: str | None, *, ids: bool = False) -> AttributedGraph:
    """The graph a run was trained on, which is made sure of; with `ids` that its nodes are called the same too."""
    from uge_core.explore.whatif.source import with_scenario
    from uge_core.runs.data import check_data

    source = run.dataset.get("source") or {}
    spec = data or source.get("spec")
    if spec is None:
        raise StoreError(f"run {run.id} does not say where its data lie; name them with --data DATA")
    try:
        # What a run was trained on is no request to fetch it anew.
        graph, _ = load_graph(spec, source.get("attributes"), store, may_fetch=data is not None)
    except GraphError as error:
        hint = f"run {run.id} was trained on it" + ("" if data else "; name its place now with --data DATA")
        raise type(error)(f"{error} ({hint})") from None
    graph = with_scenario(graph, source)
    check_data(run, graph, ids=ids)
    return graph


def read_file(args: argparse.Namespace, graph: AttributedGraph) -> tuple[Any, dict[str, Any]]:
    """The embedding in a file, in the graph's order, and how its scores and split are to be taken."""
    from uge_core.datasets.embeddings import read_embedding

    z = read_embedding(args.embeddings, graph, unknown_ids=args.unknown_ids or "refuse", rows=args.rows, on_note=remark)
    if (z == z[:1]).all():
        remark("all nodes have the same vector, so that nothing can be read from it and no link told from another")
    return z, {"file": Path(args.embeddings).name, "score": args.score or "dot", "split_seed": args.split_seed}


def say_trust(args: argparse.Namespace) -> None:
    """Says what the figures of --embeddings with --split-seed rest on."""
    if args.split_seed is not None:
        remark(
            f"held-out NDCG@10 is right only if training left out the test edges of split seed {args.split_seed}, "
            "as uge train does"
        )
