"""Who is drawn: the same people for every run of a graph."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uge_core.arrays import IntArray
from uge_core.graph.graph import AttributedGraph

MOST = 20_000
"""People that are drawn where nothing is said."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Some people of a graph.

    Attributes:
        nodes: (n,) int64 node numbers, rising.
        total: how many people the graph has.
        strata: the attributes by which they were stratified; none where everybody is in.
        seed: what keyed the draw.
    """

    nodes: IntArray
    total: int
    strata: tuple[str, ...]
    seed: int

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the node numbers."""
        return hashlib.sha256(np.ascontiguousarray(self.nodes).tobytes()).hexdigest()

    @property
    def words(self) -> str:
        """As in "20,000 of 66,569 people, stratified by gender, region, seed 0"."""
        if len(self.nodes) == self.total:
            return f"all {self.total:,} people"
        by = f"stratified by {', '.join(self.strata)}, " if self.strata else ""
        return f"{len(self.nodes):,} of {self.total:,} people, {by}seed {self.seed}"


def draw_sample(graph: AttributedGraph, size: int = MOST, *, seed: int = 0) -> Sample:
    """A stratified sample of the people (bipartite: of the users), without regard to any run.

    Systematic: people in the order of their values, the first attribute first, at random within equal
    values, and then every (total / size)-th of them from a random start. So each value of the first
    attribute has its share to within one person, and so has each combination of it with the second, and on.

    Args:
        graph: the graph.
        size: how many; everybody where there are no more.
        seed: keys the draw.
    """
    everybody = np.arange(graph.num_nodes)[graph.people]
    total = len(everybody)
    if size >= total:
        return Sample(everybody, total, (), seed)
    rng = np.random.default_rng([seed, 41])
    keys = [a.codes[everybody] for a in graph.audited]
    order = np.lexsort((rng.random(total), *reversed(keys)))
    places = np.floor((np.arange(size) + rng.random()) * (total / size)).astype(np.int64)
    return Sample(np.sort(everybody[order[places]]), total, tuple(a.name for a in graph.audited), seed)
