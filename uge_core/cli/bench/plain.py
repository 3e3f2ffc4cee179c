"""What every rival is written with: torch-geometric's layers, lists of pairs, torch's Adam.

Sizes, initial spread, step size and weight decay are those of our run, so that both sides train the
same model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GATConv, GCNConv, SGConv

from uge_core.arrays import FloatArray, IntArray
from uge_core.backbones._inputs import TABLE_WIDTH, Inputs
from uge_core.errors import ConfigError
from uge_core.registry import find
from uge_core.training.config import RunConfig


class Encoder(nn.Module):
    """A backbone as its authors' libraries offer it.

    node2vec and MF are an `nn.Embedding` (N, d). GCN, SGC and GAT are `GCNConv`, `SGConv` and `GATConv` on
    fixed features, or on an `nn.Embedding` (N, 64) where there are none, with what the layers can cache cached.
    """

    def __init__(self, config: RunConfig, inputs: Inputs) -> None:
        """One encoder.

        Args:
            config: whose backbone, sizes and options.
            inputs: the graph's training edges and features.

        Raises:
            ConfigError: a backbone that has no plain counterpart here.
        """
        super().__init__()
        options = config.backbone_options
        self.table: nn.Embedding | None = None
        self.features: Tensor | None = None
        self.edges = torch.as_tensor(np.concatenate([inputs.train_edges, inputs.train_edges[::-1]], axis=1)).to(
            inputs.device
        )
        self.layers = nn.ModuleList()
        if config.backbone in ("node2vec", "mf"):
            self.table = nn.Embedding(inputs.num_nodes, config.dim)
            nn.init.normal_(self.table.weight, std=options["init_std"])
        else:
            self.features = inputs.first(options["input"])
            width = TABLE_WIDTH if self.features is None else self.features.shape[1]
            if self.features is None:
                self.table = nn.Embedding(inputs.num_nodes, width)
            self.layers.extend(_layers(config, width, fixed=self.features is not None))
        self.activation: Callable[[Tensor], Tensor] = functional.elu if config.backbone == "gat" else functional.relu
        self.to(inputs.device)

    def forward(self) -> Tensor:
        """(N, d) embeddings."""
        if self.table is not None:
            z: Tensor = self.table.weight
        else:
            assert self.features is not None
            z = self.features
        for i, layer in enumerate(self.layers):
            z = layer(z if i == 0 else self.activation(z), self.edges)
        return z

    def optimiser(self, config: RunConfig) -> torch.optim.Optimizer:
        """Adam, with weight decay on the layers alone."""
        tables = [] if self.table is None else list(self.table.parameters())
        groups = [
            {"params": tables, "weight_decay": 0.0},
            {"params": list(self.layers.parameters()), "weight_decay": config.weight_decay},
        ]
        return torch.optim.Adam([g for g in groups if g["params"]], lr=config.learning_rate, eps=1e-15)


def _layers(config: RunConfig, width: int, *, fixed: bool) -> list[nn.Module]:
    o, d = config.backbone_options, config.dim
    if config.backbone == "gcn":
        return [GCNConv(width, o["hidden"], cached=True), GCNConv(o["hidden"], d, cached=True)]
    if config.backbone == "sgc":
        # SGConv caches the propagated input, which only a fixed one allows
        return [SGConv(width, d, K=o["hops"], cached=fixed)]
    if config.backbone == "gat":
        return [GATConv(width, o["width"], heads=o["heads"]), GATConv(o["heads"] * o["width"], d)]
    raise ConfigError(f"the bench has no plain {config.backbone}; allowed: gat, gcn, mf, node2vec, sgc")


class Rival(ABC):
    """A full-batch training by autograd: made once, then one call of `epoch` after another.

    Attributes:
        encoder: embeddings from its parameters.
        loss_kind: "cross-entropy" or "bpr".
    """

    def __init__(self, config: RunConfig, inputs: Inputs) -> None:
        self.loss_kind: str = find("backbones", config.backbone).loss
        self.encoder = Encoder(config, inputs)
        self.adam = self.encoder.optimiser(config)

    @abstractmethod
    def loss(self, z: Tensor) -> Tensor:
        """The loss of embeddings z (N, d)."""

    def epoch(self) -> None:
        """One step."""
        self.adam.zero_grad()
        self.loss(self.encoder()).backward()  # type: ignore[no-untyped-call]
        self.adam.step()


def observed_pairs(train_edges: IntArray, num_users: int | None, loss: str) -> IntArray:
    """(2, P) the observed pairs (u, v), both directions; users to items alone for BPR on a bipartite graph."""
    if loss == "bpr" and num_users is not None:
        return train_edges
    return np.concatenate([train_edges, train_edges[::-1]], axis=1)


def per_pair(weight: FloatArray | None, num_pairs: int) -> Tensor:
    """(P,) the weight of each of `observed_pairs` from one per training edge; ones without."""
    if weight is None:
        return torch.ones(num_pairs)
    return torch.as_tensor(weight, dtype=torch.float32).repeat(num_pairs // len(weight))


def stranger_range(source: IntArray, num_nodes: int, num_users: int | None) -> tuple[IntArray, IntArray]:
    """The first node and the one after the last that each source may be given as a stranger: the other side's."""
    if num_users is None:
        return np.zeros_like(source), np.full_like(source, num_nodes)
    user = source < num_users
    return np.where(user, num_users, 0), np.where(user, num_nodes, num_users)
