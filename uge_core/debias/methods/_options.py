"""Pieces that several methods share: building the mean gap from a member's inputs."""

from __future__ import annotations

import numpy as np

from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.penalties.mean_gap import MeanGap
from uge_core.errors import ConfigError
from uge_core.graph.values import OUT

PAIR_WEIGHTING = ("pairs", "cells")
NORM = ("squared", "absolute")
ESTIMATOR = ("exact", "sampled")
SCORES = ("raw", "sigmoid")


def mean_gap(
    inputs: MethodInputs,
    *,
    item_cells: str,
    pair_weighting: str,
    norm: str,
    estimator: str,
    num_group_pairs: int,
    scores: str,
) -> MeanGap:
    """UGE-R's penalty on the joint groups of all attributes."""
    part, coarse, _ = inputs.groups(item_cells)
    side = np.zeros(part.num_groups, np.int64)
    inside = part.group != OUT
    side[part.group[inside]] = inputs.side[inside]
    return MeanGap(part.group, coarse, side, pair_weighting, norm, estimator, num_group_pairs, scores)


def check_scores(scores: str, estimator: str) -> None:
    """Sigmoid scores have no closed form, so they need the sampled estimator."""
    if scores == "sigmoid" and estimator != "sampled":
        raise ConfigError("scores = 'sigmoid' has no exact form; use --set estimator=sampled with it, or scores=raw")


def check_offset(item_cells: str, inputs: MethodInputs, loss: str) -> None:
    """Under BPR an offset that depends on the user alone cancels."""
    if loss == "bpr" and inputs.graph.bipartite and item_cells == "none":
        raise ConfigError(
            "without item cells the offset depends on the user alone and cancels between the two items of a BPR pair; "
            "use --set item_cells=popularity or an attribute of items"
        )
