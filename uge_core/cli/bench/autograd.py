r"""Less work than the literal recipe, still plain torch: what of our speed is the loss, and what its code.

`OneNegative` gives each observed pair one fresh random node an epoch instead of 20 listed ones:

    cross-entropy: 1/2 mean of w softplus(-s_uv) + 1/2 mean of softplus(s_uj);  BPR: mean of w softplus(-(s_uv - s_uj))

A node that happens to be connected is not drawn again, which makes the rival faster. `SharedBlock` is our own
cross-entropy, see `uge_core.training.edge_loss.loss`: a block of random nodes against all sources by a dense product,
connected pairs and self-pairs taken out.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from uge_core.arrays import FloatArray
from uge_core.backbones._inputs import Inputs
from uge_core.cli.bench.plain import Rival, observed_pairs, per_pair, stranger_range
from uge_core.errors import ConfigError
from uge_core.training.config import RunConfig


class OneNegative(Rival):
    """One fresh negative per observed pair."""

    def __init__(
        self, config: RunConfig, inputs: Inputs, num_users: int | None = None, *, weight: FloatArray | None = None
    ) -> None:
        """Lists the observed pairs and makes the encoder.

        Args:
            config: backbone, sizes and step size; its split seed keys the draws.
            inputs: the graph's training edges and features.
            num_users: the first side's size of a bipartite graph.
            weight: (E,) w of each training edge; None for 1.
        """
        super().__init__(config, inputs)
        pairs = observed_pairs(inputs.train_edges, num_users, self.loss_kind)
        low, high = stranger_range(pairs[0], inputs.num_nodes, num_users)
        device = inputs.device
        self.source, self.liked = (torch.as_tensor(x).to(device) for x in pairs)
        self.low, self.span = torch.as_tensor(low).to(device), torch.as_tensor(high - low).to(device)
        self.weight = per_pair(weight, pairs.shape[1]).to(device)
        self.draws = torch.Generator(device).manual_seed(config.split_seed)

    def loss(self, z: Tensor) -> Tensor:
        """The loss of embeddings z (N, d) with strangers drawn by this call."""
        chance = torch.rand(len(self.source), device=z.device, generator=self.draws)
        stranger = self.low + (chance * self.span).long().clamp(max=self.span - 1)
        seen = (z[self.source] * z[self.liked]).sum(1)
        unseen = (z[self.source] * z[stranger]).sum(1)
        if self.loss_kind == "bpr":
            return (self.weight * softplus(unseen - seen)).mean()
        return 0.5 * (self.weight * softplus(-seen)).mean() + 0.5 * softplus(unseen).mean()


class SharedBlock(Rival):
    """Our cross-entropy, line by line."""

    def __init__(
        self, config: RunConfig, inputs: Inputs, num_users: int | None = None, *, weight: FloatArray | None = None
    ) -> None:
        """Lists the edges and makes the encoder.

        Args:
            config: backbone, sizes, step size and `block_size`; its split seed keys the blocks.
            inputs: the graph's training edges and features.
            num_users: the first side's size of a bipartite graph.
            weight: (E,) w of each training edge; None for 1.

        Raises:
            ConfigError: a backbone that is trained by BPR.
        """
        super().__init__(config, inputs)
        if self.loss_kind == "bpr":
            raise ConfigError(f"{config.backbone} is trained by BPR, which has no shared block; time its one negative")
        n, device = inputs.num_nodes, inputs.device
        self.ends = torch.as_tensor(inputs.train_edges).to(device)
        self.weight = per_pair(weight, inputs.train_edges.shape[1]).to(device)
        self.share = torch.bincount(self.ends.flatten(), minlength=n) / self.ends.numel()
        sides = [(0, n, 0, n)] if num_users is None else [(0, num_users, num_users, n), (num_users, n, 0, num_users)]
        self.sides, self.block_size = sides, config.block_size
        self.draws = np.random.default_rng([config.split_seed, 32])

    def loss(self, z: Tensor) -> Tensor:
        """The loss of embeddings z (N, d) with a block drawn by this call.

        Each edge once: both directions are alike.
        """
        total = 0.5 * (self.weight * softplus(-(z[self.ends[0]] * z[self.ends[1]]).sum(1))).mean()
        for first, last, low, high in self.sides:
            size = min(self.block_size, high - low)
            block = torch.as_tensor(low + self.draws.choice(high - low, size, replace=False)).to(z.device)
            stranger = self._strangers(block)[first:last]
            scale = self.share[first:last] / stranger.sum(1).clamp(min=1)
            total = total + 0.5 * (softplus(z[first:last] @ z[block].T) * stranger * scale[:, None]).sum()
        return total

    def _strangers(self, block: Tensor) -> Tensor:
        """(N, B) where a node is neither linked to the block's node nor it."""
        column = torch.full((len(self.share),), -1, device=block.device)
        column[block] = torch.arange(len(block), device=block.device)
        free = torch.ones(len(self.share), len(block), dtype=torch.bool, device=block.device)
        free[block, column[block]] = False
        for source, target in (self.ends, self.ends.flip(0)):
            there = column[target] >= 0
            free[source[there], column[target[there]]] = False
        return free
