"""UGE-G (ours, beside the paper's): graphs drawn from the bias-free model are embedded in turn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from uge_core.bias_free import CellTable, Evidence
from uge_core.debias.uge_w import UGEW
from uge_core.edge_factors import EdgeFactors
from uge_core.graph import FloatArray
from uge_core.registry import option, register

_PURPOSE = 57  # tells the stream of draws from others of the same seed


class DrawnGraphs:
    """Edges of graphs drawn one after another, each used for some epochs.

    Attributes:
        mean: (E,) how many copies of each training edge a graph has on average.
        every: epochs per graph.
        seed: keys the draws, with the number of the graph.
    """

    def __init__(self, mean: FloatArray, every: int, seed: int) -> None:
        self.mean, self.every, self.seed = mean, every, seed
        self._drawn = lru_cache(maxsize=1)(self._draw)

    def _draw(self, number: int) -> FloatArray:
        return np.random.default_rng([self.seed, _PURPOSE, number]).poisson(self.mean).astype(np.float32)

    def in_loss(self, epoch: int) -> FloatArray:
        """(E,) copies of each edge in the graph of this epoch."""
        return self._drawn((epoch - 1) // self.every)

    def in_messages(self, epoch: int) -> FloatArray:
        """The same copies: messages run along the drawn graph."""
        return self.in_loss(epoch)

    def in_kept(self) -> FloatArray:
        """What they are on average, so that no single draw decides what is kept."""
        return self.mean


@register
@dataclass(frozen=True)
class UGEG(UGEW):
    r"""Drawn graphs: each has Poisson(R~ / R) copies of every observed edge, in the loss and in messages.

    A draw from the bias-free model among the pairs that are observed: cells hold on average the edges
    the bias-free graph has there, and every node its part of them. What no observed edge can stand for
    (`uncovered_mass`) no draw can bring. In expectation the loss is UGE-W's. Encoders aggregate over the
    drawn graph too (GAT attends to all edges), and over all edges at their mean for the embedding that is
    kept. `every` as large as the epochs embeds one graph. Draws are keyed by `draw_seed` alone: members and
    twins share them.
    """

    label: ClassVar[str] = "UGE-G (ours)"
    citation: ClassVar[str] = "this package, from Eq. (6); an idea of the paper's conclusion"
    color: ClassVar[str] = "#D55E00"
    symbol: ClassVar[str] = "star-diamond"
    position: ClassVar[int] = 8

    every: int = option(10, "epochs that one drawn graph is embedded for", low=1)
    draw_seed: int = option(0, "keys the draws", low=0)

    def cells(self, evidence: Evidence) -> CellTable:
        """Weight 1, offset 0: what an edge counts is drawn."""
        return CellTable.neutral(evidence.graph.num_nodes)

    def edges(self, evidence: Evidence) -> EdgeFactors:
        """The drawn graphs."""
        weight = super().cells(evidence).edge_weight(evidence.train_edges)
        return DrawnGraphs(weight, self.every, self.draw_seed)
