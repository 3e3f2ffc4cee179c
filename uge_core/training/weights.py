"""What training makes of each edge, for exports and for the bias-free NDCG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray, IntArray
from uge_core.audit.ndcg import BiasFree
from uge_core.errors import TooManyGroups
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.graph.walks import Walker
from uge_core.training.config import RunConfig
from uge_core.training.members import build_backbone, lone_member
from uge_core.training.method_inputs import own_weights


def edge_weights(config: RunConfig, graph: AttributedGraph, split: LinkSplit, edges: IntArray) -> FloatArray:
    """(E,) the weight that the config's method gives `edges` by their cells; ones where it weighs nothing."""
    return lone_member(config, graph, split).cells.edge_weight(edges)


@dataclass(frozen=True, eq=False)
class EdgesInTraining:
    """What a method made of the training edges.

    Attributes:
        weight: (E_train,) what it weighs them by, in their cells and one by one; of a method that draws anew, in the
            first epoch. None where a method chooses the steps of walks, as no edge has one weight then.
        chance: (2, E_train) there the chances that a walk's first step takes an edge, from its smaller end and from its
            larger; 0 where it does not run that way.
    """

    weight: FloatArray | None
    chance: npt.NDArray[np.float64] | None = None


def edges_in_training(config: RunConfig, graph: AttributedGraph, split: LinkSplit) -> EdgesInTraining:
    """What the config's method made of the training edges."""
    member, plan = lone_member(config, graph, split), build_backbone(config).plan()
    weight, factor = member.cells.edge_weight(split.train), member.edges.in_loss(1)
    if plan is None or member.rule is None:
        return EdgesInTraining(weight if factor is None else weight * factor)
    directions = split.directions if config.direction == "follow" else None
    walker = Walker(
        split.train,
        graph.num_nodes,
        plan,
        config.split_seed,
        own_weights(config, split),
        directions,
        graph.num_users,
        member.rule,
    )
    return EdgesInTraining(None, walker.chances(weight if (member.cells.weight != 1).any() else None))


def bias_free_gains(graph: AttributedGraph, split: LinkSplit, sensitive: Sequence[str], *, unknown: str) -> BiasFree:
    """R~/R of each held-out edge: how much it counts in `ndcg_at_10_bias_free`.

    The same for every method under one policy for unknown values, so that runs compare: with two
    pseudo-edges a cell, as a held-out edge may fall into a cell that training never saw, and
    popularity deciles as item cells. An edge counts once, whatever its weight, as in NDCG. Where all
    attributes form more groups than a table can hold, the independence form of Sec. 5.1 is taken, and
    the note says so.
    """
    options = {"shrinkage": 2.0, "item_cells": "popularity" if graph.bipartite else "none"}

    def weights(independence: bool) -> FloatArray:
        config = RunConfig.resolve(
            graph,
            sensitive=list(sensitive),
            method="uge-w",
            unknown=unknown,
            exposure="seen",
            options={**options, "independence": independence, "edge_weights": "ignore"},
        )
        return edge_weights(config, graph, split, split.test)

    try:
        return BiasFree(weights(False))
    except TooManyGroups as error:
        return BiasFree(
            weights(True), f"attributes taken as independent, as together they form {error.num_groups} groups"
        )
