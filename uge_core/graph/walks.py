"""Random walks over the training edges, and the pairs of nodes that meet within their window.

A step from v to a neighbour x, having come from t, is taken in proportion to w_vx a(t, x) with a = 1/p where
x is t, 1 where x is a neighbour of t, else 1/q (Grover and Leskovec, KDD 2016); p = q = 1 is DeepWalk
(Perozzi et al., KDD 2014). Where a rule names groups, a step first chooses one of the groups found
among v's neighbours, each alike, then a neighbour of that group in the same proportion (Rahman et al.,
IJCAI 2019). On a directed graph walks run as edges do and end where no edge leads on.

Memory is linear in edges and pairs: second-order steps are drawn by rejection, not from tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import DirectionArray, FloatArray, IntArray
from uge_core.errors import ConfigError
from uge_core.machine import cores

_PIECES = 8  # of the work, whatever the cores
_WORTH = 4000  # steps that take as long as handing their pieces to other threads
_PURPOSE = 51  # tells the stream of walks from others of the same seed

Nodes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class StepRule:
    """How a method changes where a walk goes.

    Attributes:
        groups: (N,) a step chooses a group of neighbours first; None: a neighbour at once.
        weights: (2, E) float64, 0 or more: of a step along each training edge from its smaller end, and from its
            larger; None: the edge's own weight both ways.
    """

    groups: IntArray | None = None
    weights: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True)
class WalkPlan:
    """What walks an epoch has.

    Attributes:
        length: steps of a walk.
        window: the most steps between the two nodes of a pair.
        per_node: walks an epoch, as a multiple of the number of nodes.
        p: a step back is taken in proportion to 1/p.
        q: a step to where the node before has no edge to, in proportion to 1/q.
        starts: "degree", as often at a node as it has edges (by their weights), so that each step of an unbiased walk
            takes every edge alike; or "nodes", as often at each node.
    """

    length: int
    window: int
    per_node: float = 1.0
    p: float = 1.0
    q: float = 1.0
    starts: str = "degree"


@dataclass(frozen=True, eq=False)
class Transitions:
    """The steps that can be taken: rows of entries, cut into blocks of one group each.

    Attributes:
        start: (N + 1,) where each node's entries begin.
        neighbour: (M,) the entries by block.
        ascending: (M,) the same, ascending within each row; the same object without groups.
        first_block: (N + 1,) where each node's blocks begin.
        block: (B + 1,) where each block's entries begin.
        total: (M,) running sums of weights within each block, or (0,) for 1 each.
        strength: (N,) sum of each row's weights.
    """

    start: IntArray
    neighbour: Nodes
    ascending: Nodes
    first_block: IntArray
    block: IntArray
    total: npt.NDArray[np.float64]
    strength: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Walker:
    """Walks over one graph by one rule.

    Attributes:
        edges: (2, E) training edges, each once.
        num_nodes: N.
        plan: what walks there are.
        seed: keys the walks, with the epoch.
        weights: (E,) the edges' own weights, or None.
        directions: (E,) which way they run, as in `AttributedGraph`, or None for both ways.
        num_users: the first side's size of a bipartite graph, else None; pairs then go across.
        rule: of a method.
        pool: threads, shared by those who walk in turn.
    """

    edges: IntArray
    num_nodes: int
    plan: WalkPlan
    seed: int
    weights: FloatArray | None = None
    directions: DirectionArray | None = None
    num_users: int | None = None
    rule: StepRule = StepRule()
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(cores()))

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """Source, target and edge (u to v, then v to u) of each step, by row; their order by block; nodes' groups."""
        u, v = self.edges
        forth = back = np.arange(len(u))
        if self.directions is not None:
            forth, back = np.nonzero(self.directions >= 0)[0], np.nonzero(self.directions <= 0)[0]
        source, target = np.concatenate([u[forth], v[back]]), np.concatenate([v[forth], u[back]])
        place = np.concatenate([forth, back + len(u)])
        order = np.argsort(source * np.int64(self.num_nodes) + target)  # one key: much quicker than lexsort
        source, target, place = source[order], target[order], place[order]
        groups = self.rule.groups
        blocks = np.arange(len(source)) if groups is None else np.lexsort((groups[target], source))
        return source, target, place, blocks, np.zeros(0, np.int64) if groups is None else groups

    def transitions(self, factor: FloatArray | None = None) -> Transitions:
        """The steps where each edge's weight is multiplied by a factor (E,); an edge of weight 0 is no road."""
        source, target, place, blocks, groups = self._entries
        weight = self._weight(factor)
        ways = None if weight is None else weight[place]
        if ways is not None and not (ways > 0).all():
            stays = ways > 0
            blocks = (np.cumsum(stays) - 1)[blocks[stays[blocks]]]
            source, target, ways = source[stays], target[stays], ways[stays]
        start = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=self.num_nodes))])
        ascending = neighbour = target.astype(np.int32)
        begins = np.ones(len(source), dtype=bool)
        begins[1:] = source[1:] != source[:-1]
        if len(groups):
            neighbour = ascending[blocks]
            group = groups[neighbour]
            begins[1:] |= group[1:] != group[:-1]
            ways = None if ways is None else ways[blocks]
        first = np.nonzero(begins)[0]
        count = np.bincount(source[first], minlength=self.num_nodes)
        block = np.append(first, len(source))
        total = np.zeros(0)
        if ways is not None:
            from uge_core.kernels import walks as _walk_kernels

            total = _walk_kernels.sums_within(ways, block)
        strength = np.bincount(source, ways, self.num_nodes).astype(np.float64)
        return Transitions(start, neighbour, ascending, np.concatenate([[0], np.cumsum(count)]), block, total, strength)

    def chances(self, factor: FloatArray | None = None) -> npt.NDArray[np.float64]:
        """(2, E) the chance that a first step takes each edge, from its smaller end and from its larger; 0 where it cannot."""
        source, target, place, _, groups = self._entries
        weight = self._weight(factor)
        ways = np.ones(len(source)) if weight is None else weight[place]
        many = np.int64(groups.max() + 1) if len(groups) else np.int64(1)
        key, block = np.unique(source * many + (groups[target] if len(groups) else 0), return_inverse=True)
        inside = np.bincount(block, ways)
        divisor = np.bincount(key // many, inside > 0, self.num_nodes)[source] * inside[block]
        out = np.zeros(2 * self.edges.shape[1])
        out[place] = np.divide(ways, divisor, out=np.zeros(len(source)), where=divisor > 0)
        return out.reshape(2, -1)

    def _weight(self, factor: FloatArray | None) -> npt.NDArray[np.float64] | None:
        """(2 E,) the weight of each edge from its smaller end, then from its larger; None for 1 each."""
        if self.rule.weights is None and self.weights is None and factor is None:
            return None
        weight = np.ones((2, self.edges.shape[1])) if self.rule.weights is None else self.rule.weights
        if self.weights is not None and self.rule.weights is None:
            weight = weight * self.weights
        if factor is not None:
            weight = weight * factor
        return np.asarray(weight.reshape(-1), np.float64)

    def walks(self, transitions: Transitions, epoch: int) -> Nodes:
        """(W, length + 1) nodes of an epoch's walks, -1 after the last.

        Raises:
            ConfigError: no edge can be gone.
        """
        from uge_core.kernels import walks as _walk_kernels

        mass = transitions.strength if self.plan.starts == "degree" else (transitions.strength > 0).astype(np.float64)
        reach = np.cumsum(mass)
        if not reach[-1] > 0:
            raise ConfigError("no edge is left to walk along; a method may have dropped or weighed away all of them")
        number = max(1, round(self.plan.per_node * self.num_nodes))
        rng = np.random.default_rng([self.seed, _PURPOSE, epoch])
        at = (np.arange(number) + rng.random()) * (reach[-1] / number)
        origin = np.minimum(np.searchsorted(reach, at, side="right"), np.nonzero(mass)[0][-1])
        key = rng.integers(0, 2**63, dtype=np.uint64)
        out = np.empty((number, self.plan.length + 1), np.int32)

        def work(span: tuple[int, int]) -> None:
            _walk_kernels.wander(
                transitions.first_block,
                transitions.block,
                transitions.neighbour,
                transitions.total,
                transitions.start,
                transitions.ascending,
                1.0 / self.plan.p,
                1.0 / self.plan.q,
                key,
                origin,
                *span,
                out,
            )

        self._spread(work, pairwise(np.linspace(0, number, _PIECES + 1).astype(np.int64).tolist()), out.size)
        return out

    def pairs(self, walks: Nodes) -> tuple[IntArray, Nodes]:
        """The pairs within the window as rows of both directions: (N + 1,) starts and (P,) other ends.

        A node does not meet itself; on a bipartite graph pairs go across.
        """
        from uge_core.kernels import walks as _walk_kernels

        across = -1 if self.num_users is None else self.num_users
        often = np.cumsum(np.bincount(walks[walks >= 0], minlength=self.num_nodes))
        cuts = np.searchsorted(often, np.linspace(0, often[-1], _PIECES + 1)[1:-1]).tolist()
        spans = list(pairwise([0, *cuts, self.num_nodes]))
        count = np.zeros(self.num_nodes, np.int64)

        def lay_out(at: IntArray, context: Nodes) -> None:
            window = self.plan.window

            def work(span: tuple[int, int]) -> None:
                _walk_kernels.lay_out(walks, window, across, *span, at, context)

            self._spread(work, spans, walks.size)

        lay_out(count, np.empty(0, np.int32))
        start = np.concatenate([[0], np.cumsum(count)])
        context = np.empty(start[-1], np.int32)
        lay_out(start[:-1].copy(), context)
        return start, context

    def _spread(self, work: Callable[[Any], None], pieces: Iterable[Any], steps: int) -> None:
        list(map(work, pieces) if steps < _WORTH else self.pool.map(work, pieces))
