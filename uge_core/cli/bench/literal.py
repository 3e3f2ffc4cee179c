r"""The paper's recipe word for word, in plain torch and torch-geometric: the rival that our speed is told against.

Sec. 6.1 gives each observed pair (both directions) 20 unconnected nodes as negatives. As in the authors'
code they are drawn once and kept, the pair itself is repeated 20 times so that both halves have equal mass,
and an epoch is one full batch: encode, gather the rows of all pairs by z[index], score, loss, backward, Adam.

    cross-entropy: mean over the 2 * 20 P listed pairs of -w log sigmoid(s) where observed, else -log sigmoid(-s)
    BPR: mean over the 20 P lines of -w log sigmoid(s_ui - s_uj)
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from uge_core.arrays import FloatArray, IntArray
from uge_core.backbones._inputs import Inputs
from uge_core.cli.bench.plain import Rival, observed_pairs, per_pair, stranger_range
from uge_core.errors import ConfigError
from uge_core.training.config import RunConfig


class Literal(Rival):
    """The recipe on one graph."""

    def __init__(
        self,
        config: RunConfig,
        inputs: Inputs,
        num_users: int | None = None,
        *,
        weight: FloatArray | None = None,
        most_bytes: int | None = None,
    ) -> None:
        """Lists the pairs and makes the encoder.

        Args:
            config: backbone, sizes, step size, `num_negatives`; its split seed keys the negatives.
            inputs: the graph's training edges and features.
            num_users: the first side's size of a bipartite graph.
            weight: (E,) w of each training edge; None for 1.
            most_bytes: memory that an epoch may take. Where the whole batch needs more, it is gone through in
                `pieces`, whose gradients add up to the same step.
        """
        super().__init__(config, inputs)
        pairs = observed_pairs(inputs.train_edges, num_users, self.loss_kind)
        source, liked, stranger, line = list_negatives(
            pairs,
            inputs.train_edges,
            inputs.num_nodes,
            num_users,
            config.num_negatives,
            np.random.default_rng([config.split_seed, 31]),
        )
        self.lines = [torch.as_tensor(x).to(inputs.device) for x in (source, liked, stranger)]
        self.weight = per_pair(weight, pairs.shape[1])[torch.as_tensor(line)].to(inputs.device)
        need = len(source) * (8 * 4 * config.dim + 64)
        self.pieces = 1 if most_bytes is None else max(1, -(-need // most_bytes))

    def loss(self, z: Tensor) -> Tensor:
        """The loss of embeddings z (N, d)."""
        return self._share(z, slice(None))

    def _share(self, z: Tensor, piece: slice) -> Tensor:
        source, liked, stranger = (x[piece] for x in self.lines)
        weight = self.weight[piece]
        seen = (z[source] * z[liked]).sum(1)
        unseen = (z[source] * z[stranger]).sum(1)
        if self.loss_kind == "bpr":
            return -(weight * functional.logsigmoid(seen - unseen)).sum() / len(self.weight)
        score = torch.cat([seen, unseen])
        label = torch.cat([torch.ones_like(seen), torch.zeros_like(unseen)])
        return functional.binary_cross_entropy_with_logits(
            score, label, torch.cat([weight, torch.ones_like(weight)]), reduction="sum"
        ) / (2 * len(self.weight))

    def epoch(self) -> None:
        """One step on all lines."""
        if self.pieces == 1:
            super().epoch()
            return
        self.adam.zero_grad()
        z = self.encoder()
        leaf = z.detach().requires_grad_()
        width = -(-len(self.weight) // self.pieces)
        for first in range(0, len(self.weight), width):
            self._share(leaf, slice(first, first + width)).backward()  # type: ignore[no-untyped-call]
        z.backward(leaf.grad)
        self.adam.step()


def list_negatives(
    pairs: IntArray,
    train_edges: IntArray,
    num_nodes: int,
    num_users: int | None,
    num_negatives: int,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Each observed pair `num_negatives` times, each time with another unconnected node.

    Args:
        pairs: (2, P) observed pairs.
        train_edges: (2, E) what counts as connected, each once.
        num_nodes: N.
        num_users: the first side's size of a bipartite graph: strangers are then of the other side.
        num_negatives: lines per pair.
        rng: draws.

    Returns:
        Source, observed neighbour, stranger and number of the pair of each line; lines whose source has
        no stranger are left out.

    Raises:
        ConfigError: no node has a stranger.
    """
    line = np.repeat(np.arange(pairs.shape[1]), num_negatives)
    source, liked = pairs[0][line], pairs[1][line]
    low, high = stranger_range(source, num_nodes, num_users)
    keys = np.sort(observed_pairs(train_edges, None, "cross-entropy").T @ np.array([num_nodes, 1]))
    stranger = np.empty_like(source)
    left = np.arange(len(source))
    for _ in range(64):
        stranger[left] = rng.integers(low[left], high[left])
        key = source[left] * num_nodes + stranger[left]
        linked = keys[np.minimum(np.searchsorted(keys, key), len(keys) - 1)] == key
        left = left[linked | (stranger[left] == source[left])]
        if not len(left):
            break
    has_stranger = np.ones(len(source), dtype=bool)
    has_stranger[left] = False
    if not has_stranger.any():
        raise ConfigError("every node is linked to every other, so there is no negative to list; use a sparser graph")
    return source[has_stranger], liked[has_stranger], stranger[has_stranger], line[has_stranger]
