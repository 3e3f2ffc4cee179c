"""What a run's own encoder gives on an edited graph, and how far each node went. torch is loaded when it is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uge_core.arrays import FloatArray, IntArray
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.registry import find
from uge_core.runs.names import EXTERNAL
from uge_core.runs.stored_run import StoredRun
from uge_core.training.config import RunConfig


def refusal(run: StoredRun) -> str | None:
    """Why a run cannot be re-encoded, or None where it can."""
    if run.config["method"] == EXTERNAL:
        return "This embedding came from elsewhere, so there is no encoder to ask; train a run here to re-encode it."
    backbone = find("backbones", run.config["backbone"])
    if backbone.messages == "none":
        return (
            f"{backbone.label} learns one vector per node and passes no messages along edges, so edited edges change "
            "nothing until it is trained again."
        )
    if not run.parameters:
        return (
            "The parameters of this run were not kept, as it came with the package, is older than this page or kept "
            "another epoch than its last; train it again with --force to re-encode it."
        )
    return None


def reencode(
    run: StoredRun, graph: AttributedGraph, split: LinkSplit, trained_on: LinkSplit | None = None
) -> FloatArray:
    """(N, d) from one pass of the run's encoder over the graph's training edges; `trained_on`: the run's own split."""
    from uge_core.training.encode import encode

    return encode(RunConfig.from_json(run.config), run.parameters, graph, split, trained_on)


@dataclass(frozen=True)
class Moved:
    """How far a set of nodes went: |z' - z| / |z|.

    Attributes:
        who: which nodes.
        nodes: how many.
        median: the middle one's.
        largest: the farthest one's.
        still: how many did not move at all.
    """

    who: str
    nodes: int
    median: float
    largest: float
    still: int


def moved(before: FloatArray, after: FloatArray, edited: IntArray, edges: IntArray) -> tuple[Moved, ...]:
    """How far the edited nodes, their neighbours and all others went.

    Args:
        before: (N, d).
        after: (N, d).
        edited: node numbers.
        edges: (2, E) whose ends are neighbours, of both graphs.
    """
    length = np.linalg.norm(before, axis=1)
    far = np.linalg.norm(after - before, axis=1) / np.where(length > 0, length, 1.0)
    mine = np.zeros(len(far), dtype=bool)
    mine[edited] = True
    near = np.zeros(len(far), dtype=bool)
    near[edges[:, mine[edges].any(axis=0)].ravel()] = True
    sets = (("edited nodes", mine), ("their neighbours", near & ~mine), ("all others", ~near & ~mine))
    return tuple(
        Moved(who, int(s.sum()), float(np.median(far[s])), float(far[s].max()), int((far[s] == 0).sum()))
        for who, s in sets
        if s.any()
    )
