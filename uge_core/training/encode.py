"""Parameters to embeddings, in training and outside it, and what encoders see of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from uge_core.arrays import FloatArray
from uge_core.backbones._inputs import Inputs, num_degree_bins
from uge_core.backbones.base import Backbone, Parameters
from uge_core.debias.edge_factors import EdgeFactors
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.ranks import ALONE, Ranks
from uge_core.registry import build_options, find
from uge_core.training.config import RunConfig
from uge_core.training.method_inputs import own_weights


def encoder_inputs(
    config: RunConfig,
    backbone: Backbone,
    graph: AttributedGraph,
    split: LinkSplit,
    device: torch.device,
    trained_on: LinkSplit | None = None,
    ranks: Ranks = ALONE,
) -> Inputs:
    """What the config's encoder sees of the graph.

    `trained_on`: the split it was trained with, where that is another. Of several `ranks` each sees its own rows.
    """
    features = graph.features if backbone.uses_features else None
    directions = split.directions if config.direction == "follow" else None
    weights = own_weights(config, split, trained_on)
    bins = None if trained_on is None else num_degree_bins(trained_on.train, graph.num_nodes)
    return Inputs(graph.num_nodes, split.train, features, device, weights, directions, bins, ranks)


class EncoderViews:
    """What each member's encoder sees: the graph they share, or its own where the method weighs messages."""

    def __init__(self, shared: Inputs, factors: Sequence[EdgeFactors], messages: str) -> None:
        """Of members with `factors`, which count where the backbone's messages are "weighted"."""
        self.shared, self.factors = shared, factors if messages == "weighted" else ()
        self.alike = [shared] * len(factors)
        self.own: dict[int, tuple[FloatArray, Inputs]] = {}

    def __call__(self, epoch: int | None) -> list[Inputs]:
        """One per member; the same object where they see the same. No epoch: of the embedding that is kept."""
        views = list(self.alike)
        for k, edges in enumerate(self.factors):
            factor = edges.in_kept() if epoch is None else edges.in_messages(epoch)
            if factor is None:
                continue
            if k not in self.own or self.own[k][0] is not factor:
                weights = factor if self.shared.weights is None else factor * self.shared.weights
                self.own[k] = (factor, replace(self.shared, weights=weights))
            views[k] = self.own[k][1]
        return views


def encode(
    config: RunConfig,
    parameters: Mapping[str, FloatArray],
    graph: AttributedGraph,
    split: LinkSplit,
    trained_on: LinkSplit | None = None,
) -> FloatArray:
    """(N, d) float32: one pass of a trained encoder on the CPU, over this graph's training edges.

    On the graph it was trained on, on the CPU, these are the embedding's own bits.

    Args:
        config: of the run.
        parameters: as in `Fitted`.
        graph: the graph to encode, with the nodes and features of the run's.
        split: its split.
        trained_on: the split of the run's training, where `split` is of an edited graph: mean weight and highest degree
            of its edges are those that the encoder knows.
    """
    backbone: Backbone = build_options(find("backbones", config.backbone), config.backbone_options, config.backbone)
    parts = [
        # copied into torch's own memory: matrix products may round otherwise where an array is aligned otherwise
        {name.removeprefix(part): torch.tensor(a)[None] for name, a in parameters.items() if name.startswith(part)}
        for part in ("tables.", "layers.")
    ]
    with torch.no_grad():
        z = encode_members(
            backbone,
            Parameters(*parts),
            [encoder_inputs(config, backbone, graph, split, torch.device("cpu"), trained_on)],
        )
    return np.ascontiguousarray(z[0].numpy().astype(np.float32))


def encode_members(backbone: Backbone, parameters: Parameters, views: Sequence[Inputs]) -> Tensor:
    """(K, N, d) of all members, of several ranks this one's rows; on the CPU encoders take them one by one, whose rows then stay in the cache."""
    inputs = views[0]
    together = inputs.device.type != "cpu" and all(view is inputs for view in views)
    if together or backbone.messages == "none":
        return backbone.encode(parameters, inputs)
    members = len(views)
    apart = [{name: t.unbind(0) for name, t in part.items()} for part in (parameters.tables, parameters.layers)]
    alone = (
        Parameters(*({name: pieces[k][None] for name, pieces in part.items()} for part in apart))
        for k in range(members)
    )
    return torch.cat([backbone.encode(p, view) for p, view in zip(alone, views, strict=True)])
