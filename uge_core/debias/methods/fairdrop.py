"""FairDrop: edges within a group are dropped more often than edges between groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray
from uge_core.debias.base import Method
from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.edge_factors import EdgeFactors
from uge_core.debias.fair_walks import sensitive_groups
from uge_core.errors import ConfigError
from uge_core.plugin import Reference
from uge_core.registry import option, register

_PURPOSE = 52  # tells the stream of draws from others of the same seed


class Dropped:
    """Which edges are there, drawn anew every so many epochs.

    Attributes:
        keep: (E,) the chance that each edge stays.
        every: epochs between two draws.
        seed: keys the draws, with the number of the draw: equal for members and twins, whatever their chances.
        weights: (E,) the edges' own weights, or None for 1 each.
    """

    def __init__(self, keep: npt.NDArray[np.float64], every: int, seed: int, weights: FloatArray | None = None) -> None:
        self.keep, self.every, self.seed, self.weights = keep, every, seed, weights
        self._drawn = lru_cache(maxsize=1)(self._draw)

    def _draw(self, number: int) -> tuple[FloatArray, FloatArray]:
        """(E,) 1 for edges that stay, else 0; and the same scaled to mean 1, an edge counting by its own weight."""
        stays = np.random.default_rng([self.seed, _PURPOSE, number]).random(len(self.keep)) < self.keep
        mask = (stays if stays.any() else self.keep > 0).astype(np.float32)
        stay = mask.mean() if self.weights is None else np.average(mask, weights=self.weights)
        return mask, mask / np.float32(stay)

    def in_loss(self, epoch: int) -> FloatArray:
        """The edges that stay, scaled so that the loss is their mean."""
        return self._drawn((epoch - 1) // self.every)[1]

    def in_messages(self, epoch: int) -> FloatArray:
        """The edges that stay."""
        return self._drawn((epoch - 1) // self.every)[0]

    def in_kept(self) -> None:
        """Nothing: the whole graph."""


@register
@dataclass(frozen=True)
class FairDrop(Method):
    r"""An edge stays with chance 1/2 + delta where its ends' groups differ, 1/2 - delta where they are equal.

    Dropped edges are in neither loss nor messages nor walks until the next draw, every `every` epochs (the authors:
    10 for GCN, 1 for node2vec); the loss is the mean over those that stay, by their own weights. The embedding kept is
    the encoder's on the whole graph. Draws are keyed by `draw_seed` alone: members and twins share them.

    Groups are the combinations of the sensitive attributes; people without a value are a group of their own.

    Departures: several sensitive attributes make one partition, where the authors treat one attribute.

    Cannot: serve bipartite graphs, as no edge joins two people. GAT's attention does not weigh messages, so dropped
    edges stay in its messages.
    """

    label: ClassVar[str] = "FairDrop"
    summary: ClassVar[str] = "While training, drops links within groups more often than links between them."
    citation: ClassVar[str] = "Spinelli et al., IEEE TAI 2021"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "I. Spinelli, S. Scardapane, A. Hussain, A. Uncini",
            "FairDrop: Biased Edge Dropout for Enhancing Fairness in Graph Representation Learning",
            "IEEE Transactions on Artificial Intelligence",
            2021,
            "arXiv:2104.14210",
        ),
    )
    formula: ClassVar[str] = (
        r"P(\text{edge } uv \text{ stays}) = \begin{cases} \frac{1}{2} + \delta & g_u \ne g_v \\ \frac{1}{2} - \delta & g_u = g_v \end{cases}"
    )
    color: ClassVar[str] = "#E69F00"
    symbol: ClassVar[str] = "x"
    position: ClassVar[int] = 26

    delta: float = option(
        0.25,
        "0 drops half of all edges alike, 1/2 all edges within a group",
        low=0.0,
        high=0.5,
        label="Preference for edges between groups",
    )
    every: int = option(10, "epochs between two draws", low=1, label="Epochs between two draws")
    draw_seed: int = option(0, "keys the draws", low=0, label="Seed of the draws")

    def check(self, inputs: MethodInputs, loss: str) -> None:
        """Refuses bipartite graphs, and draws that would leave no edge."""
        if inputs.graph.bipartite:
            raise ConfigError(
                "fairdrop: every edge of a bipartite graph joins a person and an item, so none joins equal or "
                "different groups "
                "of people; use fairwalk, or a graph of people"
            )
        if not self._keep(inputs).any():
            raise ConfigError("fairdrop: delta = 0.5 drops every edge, as all join equal groups; use a smaller delta")

    def edges(self, inputs: MethodInputs) -> EdgeFactors:
        """The edges that stay."""
        return Dropped(self._keep(inputs), self.every, self.draw_seed, inputs.weights)

    def _keep(self, inputs: MethodInputs) -> npt.NDArray[np.float64]:
        groups = sensitive_groups(inputs)
        u, v = inputs.train_edges
        return np.where(groups[u] == groups[v], 0.5 - self.delta, 0.5 + self.delta)
