"""UGE-G (ours, beside the paper's): graphs drawn from the bias-free model are embedded in turn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from uge_core.arrays import FloatArray
from uge_core.debias.base import Method
from uge_core.debias.bias_free import MethodInputs, weight_cells
from uge_core.debias.edge_factors import EdgeFactors
from uge_core.plugin import PAPER, Reference
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
class UGEG(Method):
    r"""Drawn graphs: each has Poisson(R~ / R) copies of every observed edge, in the loss and in messages.

    A draw from the bias-free model among the pairs that are observed: cells hold on average the edges
    the bias-free graph has there, times UGE-W's factor that makes their mean 1, and every node its part of them. In
    expectation the loss is UGE-W's.
    Encoders aggregate over the drawn graph too, and over all edges at their mean for the embedding that is
    kept. `every` as large as the epochs embeds one graph. Draws are keyed by `draw_seed` alone: members whose
    tables are the same share them, a twin, whose table is another, draws its own.

    Cannot: draw an edge where none is observed, so what no observed edge can stand for (`uncovered_mass`) is missing.
    GAT attends to all edges, drawn or not.
    """

    label: ClassVar[str] = "UGE-G (ours)"
    summary: ClassVar[str] = "Trains on graphs that are drawn anew as they would be without the attribute."
    citation: ClassVar[str] = "this package, from Eq. (6); an idea of the paper's conclusion"
    references: ClassVar[tuple[Reference, ...]] = (PAPER,)
    formula: ClassVar[str] = (
        r"c_e \sim \text{Poisson}\!\left( \frac{\tilde R}{R} \right), \quad \sum_e c_e\, \ell(e), \quad \text{messages along } c_e \text{ copies of } e"
    )
    color: ClassVar[str] = "#4981F2"
    symbol: ClassVar[str] = "star-diamond"
    position: ClassVar[int] = 9

    shrinkage: float = option(
        0.0,
        "pseudo-edges that pull a cell's ratio towards its bias-free rate; the paper has none",
        low=0.0,
        label="Pull towards the bias-free rate",
    )
    independence: bool = option(
        False, "product of one-attribute ratios (Sec. 5.1); advised when cells are thin", label="One-attribute ratios"
    )
    item_cells: str = option(
        "none", "bipartite: none (the paper), popularity, or an attribute of items", label="Groups of items"
    )
    every: int = option(10, "epochs that one drawn graph is embedded for", low=1, label="Epochs between two draws")
    draw_seed: int = option(0, "keys the draws", low=0, label="Seed of the draws")

    @property
    def reads_others(self) -> bool:
        """See `Method.reads_others`."""
        return not self.independence

    def edges(self, inputs: MethodInputs) -> EdgeFactors:
        """The drawn graphs."""
        table = weight_cells(
            inputs, shrinkage=self.shrinkage, independence=self.independence, item_cells=self.item_cells
        )
        return DrawnGraphs(table.edge_weight(inputs.train_edges), self.every, self.draw_seed)
