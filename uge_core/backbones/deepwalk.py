"""DeepWalk and node2vec with real walks: one free vector per node, trained on who meets whom on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.backbones.node2vec import Node2Vec
from uge_core.graph.walks import WalkPlan
from uge_core.plugin import Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class DeepWalk(Node2Vec):
    r"""z_u is a row of a table, trained on the pairs (u, v) that stand at most `window` steps apart on random walks.

        1/2 mean over pairs of softplus(-z_u . z_v) + 1/2 E[softplus(z_u . z_s)],   s a stranger of u

    Walks are drawn anew each epoch, by the edges' weights and along their directions; with p = q = 1 they are
    DeepWalk's, else node2vec's. Strangers weigh as much as pairs; they come from the shared block, and are nodes the
    source has no edge to. With walk length and window 1 this is the backbone node2vec on a sample of the edges.

    What a method weighs edges by weighs steps, so that UGE-W walks along the bias-free graph; Fairwalk and CrossWalk
    choose steps by rules of their own. An offset is that of the pair's cell.

    Departures: one table for both ends, as everywhere here, where skip-gram keeps a second for contexts; strangers
    are uniform rather than by degree^(3/4); every pair within the window counts the same, and a node never meets
    itself; walks begin as often at a node as it has edges (`starts=nodes`: as often at each); on a bipartite graph
    pairs go across.

    Shapes: table (N, d); embeddings (K, N, d). Features are not used. Memory is linear in edges and pairs.

    Cannot: say how likely a link is where pairs stand more than one step apart, so probabilities in DP and EO have no
    calibration; know which pairs of a method's table are links, so that offsets correct pairs further apart too much.
    """

    label: ClassVar[str] = "node2vec (walks)"
    summary: ClassVar[str] = "A vector for each person, trained on who meets whom on random walks."
    citation: ClassVar[str] = "Perozzi et al., KDD 2014; Grover and Leskovec, KDD 2016"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "B. Perozzi, R. Al-Rfou, S. Skiena",
            "DeepWalk: Online Learning of Social Representations",
            "KDD",
            2014,
            "doi:10.1145/2623330.2623732",
        ),
        *Node2Vec.references,
    )
    formula: ClassVar[str] = (
        r"\frac{1}{2}\, \text{mean}_{(u,v)} \log(1 + e^{-z_u \cdot z_v}) + \frac{1}{2}\, \mathbb{E}_{(u,s)} \log(1 + e^{z_u \cdot z_s}), \quad (u, v)\ \text{within a window on a walk}"
    )
    walks_follow: ClassVar[bool] = True

    walk_length: int = option(10, "steps of a walk", low=1, high=1000, label="Steps of a walk")
    window: int = option(
        5, "the most steps between the two nodes of a pair", low=1, high=100, label="Most steps between two of a pair"
    )
    walks: float = option(
        1.0,
        "walks an epoch, as a multiple of the number of nodes",
        low=0.01,
        high=100.0,
        label="Walks per person and epoch",
    )
    p: float = option(
        1.0, "a step back is taken in proportion to 1/p", low=0.01, high=100.0, label="Return parameter p"
    )
    q: float = option(
        1.0, "a step away from the node before, in proportion to 1/q", low=0.01, high=100.0, label="In-out parameter q"
    )
    starts: str = option(
        "degree",
        "degree: walks begin as often at a node as it has edges; nodes: at each alike",
        choices=("degree", "nodes"),
        label="Where walks begin",
        words=("more often at people with many links", "at everybody alike"),
    )

    @property
    def calibrated(self) -> bool:
        """Only where pairs are edges."""
        return self.window == 1

    def step_floats(self, num_nodes: int, num_messages: int, dim: int) -> int:
        """As `Backbone.step_floats`, with walks and pairs."""
        pairs = self.walks * num_nodes * (self.walk_length + 1) * 2 * min(self.window, self.walk_length)
        return super().step_floats(num_nodes, num_messages, dim) + 6 * num_messages + int(3 * pairs)

    def plan(self) -> WalkPlan:
        """The walks of an epoch."""
        return WalkPlan(self.walk_length, self.window, self.walks, self.p, self.q, self.starts)
