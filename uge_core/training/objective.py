"""The loss a backbone is trained on: that of its edges, of its walks, or of vectors and contexts.

All are the edge loss of `edge_loss` over other rows: pairs that meet on walks are rows of their own each
epoch, and a node's context vector is one more node, so that cells, factors and negatives work as they do there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from uge_core.arrays import DirectionArray, FloatArray, IntArray
from uge_core.backbones.base import Backbone
from uge_core.debias.bias_free import CellTable
from uge_core.debias.edge_factors import EdgeFactors, FixedFactors
from uge_core.graph.scores import DOT, Scorer
from uge_core.graph.walks import Nodes, StepRule, Transitions, Walker, WalkPlan
from uge_core.machine import cores
from uge_core.ranks import ALONE, Ranks
from uge_core.training.edge_loss import loss as edge_loss
from uge_core.training.edge_loss.negatives import strangers
from uge_core.training.edge_loss.pairs import Cells, EdgeLoss, Pairs, Passes


class Objective(Protocol):
    """What is minimised, but for penalties."""

    def __call__(self, z: Tensor, context: Tensor | None, epoch: int, want_loss: bool) -> Tensor:
        """(K,) losses of all members at an epoch with their gradients attached; numbers are zeros unless wanted.

        Args:
            z: (K, N, d) what the loss sees.
            context: (K, N, h) a backbone's contexts, which the last h columns of `z` meet; None without.
            epoch: which.
            want_loss: whether the numbers are wanted.
        """

    def stage(self) -> Callable[[int], None] | None:
        """See `EdgeLoss.stage`."""


def build(
    backbone: Backbone,
    pairs: Pairs,
    tables: list[CellTable],
    device: torch.device,
    *,
    factors: Sequence[EdgeFactors],
    rules: Sequence[StepRule | None],
    dim: int,
    directions: DirectionArray | None,
    negatives: str,
    block_size: int,
    num_negatives: int,
    scorer: Scorer = DOT,
    ranks: Ranks = ALONE,
) -> Objective:
    """The loss of members with `tables`, `factors` and, where the backbone walks, step rules.

    All score pairs by `scorer`, vectors and contexts too. `dim` is the embeddings' d, `directions` are those of the
    training edges, where walks follow them. `ranks` share out the rows of a loss of z alone, without walks.
    """
    options: dict[str, Any] = {
        "negatives": negatives,
        "block_size": block_size,
        "num_negatives": num_negatives,
        "scorer": scorer,
    }
    plan = backbone.plan()
    if plan is not None:
        return _Plain(SkipGram(pairs, tables, device, plan, factors, rules, directions, **options), scorer)
    first = edge_loss.build(backbone.loss, pairs, tables, device, factors=factors, ranks=ranks, **options)
    if not backbone.has_context:
        return _Plain(first, scorer, ranks)
    both = {id(t): _doubled_table(t) for t in tables}
    second = edge_loss.build(
        backbone.loss,
        doubled(pairs),
        [both[id(t)] for t in tables],
        device,
        factors=[_DoubledFactors(f) for f in factors],
        **options,
    )
    return _WithContext(first, second, dim, scorer)


@dataclass(frozen=True, eq=False)
class _Plain:
    """A loss of z alone."""

    inner: EdgeLoss
    scorer: Scorer
    ranks: Ranks = ALONE

    def __call__(self, z: Tensor, context: Tensor | None, epoch: int, want_loss: bool) -> Tensor:
        """See `Objective`."""
        return edge_loss.evaluate(self.inner, z, epoch, want_loss, self.scorer, self.ranks)

    def stage(self) -> Callable[[int], None] | None:
        """See `Objective.stage`."""
        return self.inner.stage()


# Walks


@dataclass(frozen=True, eq=False, kw_only=True)
class WalkedPairs(Pairs):
    """An epoch's pairs in place of the edges: each as often as it was met.

    Attributes:
        start: (N + 1,) where each node's pairs begin.
        context: (P,) their other ends.
    """

    start: IntArray
    context: Nodes

    @cached_property
    def rows(self) -> tuple[IntArray, Nodes]:  # type: ignore[override]
        """As `Pairs.rows`; in the order of the walks."""
        return self.start, self.context

    @cached_property
    def each_once(self) -> IntArray:
        """As `Pairs.each_once`."""
        once = self.sources < self.context
        return np.stack([self.sources[once], self.context[once].astype(np.int64)])


class SkipGram:
    """The edge loss over the pairs of each epoch's walks; members with one rule and equal weights share their walks.

    What a method weighs edges by, in cells or one by one, weighs steps: UGE-W's walks are those of the bias-free
    graph.
    """

    def __init__(
        self,
        pairs: Pairs,
        tables: list[CellTable],
        device: torch.device,
        plan: WalkPlan,
        factors: Sequence[EdgeFactors],
        rules: Sequence[StepRule | None],
        directions: DirectionArray | None,
        *,
        negatives: str,
        block_size: int,
        num_negatives: int,
        scorer: Scorer = DOT,
    ) -> None:
        unweighted = {
            id(t): replace(Cells.of(t, device), weight=torch.ones(t.weight.shape, device=device)) for t in tables
        }
        weights = {id(t): t.edge_weight(pairs.train_edges) if (t.weight != 1).any() else None for t in tables}
        self.pairs, self.device, self.factors, self.scorer = pairs, device, factors, scorer
        self.cells, self.weights = [unweighted[id(t)] for t in tables], [weights[id(t)] for t in tables]
        self.products: dict[int, tuple[FloatArray, FloatArray]] = {}
        self.pool = ThreadPoolExecutor(cores())
        walkers = {
            id(rule): Walker(
                pairs.train_edges,
                pairs.num_nodes,
                plan,
                pairs.seed,
                pairs.weights,
                directions,
                pairs.num_users,
                rule or StepRule(),
                self.pool,
            )
            for rule in rules
        }
        self.rules, self.walkers = rules, [walkers[id(rule)] for rule in rules]
        self.negatives = strangers(negatives, pairs, self._passes(pairs), block_size, num_negatives)
        self.transitions: dict[tuple[int, int], tuple[FloatArray | None, Transitions]] = {}

    def __call__(self, z: Tensor, epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `EdgeLoss`."""
        z, blocks = z.contiguous(), self.negatives.blocks(epoch)
        loss, gradient = z.new_zeros(len(z)), torch.zeros_like(z)
        for walked, members in self._walked(epoch):
            chosen = torch.tensor(members, device=self.device)
            few = z if len(members) == len(z) else z.index_select(0, chosen)
            cells = [self.cells[k] for k in members]
            results = self._passes(walked).contrast(few, cells, [None] * len(members), blocks, want_loss)
            loss[chosen], gradient[chosen] = results
        self.negatives.add(z, self.cells, want_loss, loss, gradient)
        return loss, gradient

    def stage(self) -> None:
        """See `EdgeLoss.stage`: epochs differ in size."""

    def _walked(self, epoch: int) -> Iterator[tuple[WalkedPairs, list[int]]]:
        """The pairs of an epoch with the members that train on them."""
        alike: dict[tuple[int, int], list[int]] = {}
        factors = [self._factor(k, epoch) for k in range(len(self.cells))]
        for k, (walker, factor) in enumerate(zip(self.walkers, factors, strict=True)):
            alike.setdefault((id(walker), id(factor)), []).append(k)
        self.transitions = {key: walks for key, walks in self.transitions.items() if key in alike}
        p = self.pairs
        for key, members in alike.items():
            walker, factor = self.walkers[members[0]], factors[members[0]]
            if key not in self.transitions:
                self.transitions[key] = (factor, walker.transitions(factor))
            transitions = self.transitions[key][1]
            if not transitions.strength.any():
                continue  # a graph drawn by chance may lack every edge, and then nobody meets
            start, context = walker.pairs(walker.walks(transitions, epoch))
            yield WalkedPairs(p.train_edges, p.num_nodes, p.num_users, p.seed, start=start, context=context), members

    def _factor(self, k: int, epoch: int) -> FloatArray | None:
        """What multiplies member k's weights of steps; the same object while nothing changes."""
        drawn = None if self.rules[k] is not None else self.factors[k].in_loss(epoch)
        weight = self.weights[k]
        if drawn is None or weight is None:
            return weight if drawn is None else drawn
        if k not in self.products or self.products[k][0] is not drawn:
            self.products[k] = (drawn, drawn * weight)
        return self.products[k][1]

    def _passes(self, pairs: Pairs) -> Passes:
        return edge_loss.passes_of(pairs, self.device, self.scorer, self.pool)


# Vectors and contexts


@dataclass(frozen=True, eq=False)
class _WithContext:
    """Of z's last d columns the first meet each other, the last meet the contexts; the two losses are added.

    Columns that a head puts before those d are part of both scores, as they explain links of either kind.
    """

    first: EdgeLoss
    second: EdgeLoss
    dim: int
    scorer: Scorer

    def __call__(self, z: Tensor, context: Tensor | None, epoch: int, want_loss: bool) -> Tensor:
        """See `Objective`."""
        assert context is not None
        width, more = z.shape[2] - context.shape[2], z.shape[2] - self.dim
        across = torch.cat([z[:, :, width:], context], dim=1)
        if more:
            ahead = z[:, :, :more]
            across = torch.cat([torch.cat([ahead, ahead], dim=1), across], dim=2)
        loss = edge_loss.evaluate(self.second, across, epoch, want_loss, self.scorer)
        if width > more:
            loss = loss + edge_loss.evaluate(self.first, z[:, :, :width], epoch, want_loss, self.scorer)
        return loss

    def stage(self) -> Callable[[int], None] | None:
        """See `Objective.stage`."""
        first, second = self.first.stage(), self.second.stage()
        if first is None or second is None:
            return None

        def load(epoch: int) -> None:
            first(epoch)
            second(epoch)

        return load


@dataclass(frozen=True, eq=False, kw_only=True)
class DoubledPairs(Pairs):
    """Each node twice, as itself and as a context (N later): an edge joins each end to the other's context.

    Attributes:
        single: the pairs that were doubled.
    """

    single: Pairs

    @property
    def sides(self) -> tuple[tuple[slice, int, int], ...]:
        """As `Pairs.sides`: nodes meet contexts, of a bipartite graph those of the other side."""
        n = self.single.num_nodes
        nodes = [(side, low + n, high + n) for side, low, high in self.single.sides]
        contexts = [(slice(side.start + n, side.stop + n), low, high) for side, low, high in self.single.sides]
        return (*nodes, *contexts)


def doubled(pairs: Pairs) -> DoubledPairs:
    """The pairs of nodes and contexts: 2 E edges among 2 N nodes."""
    (u, v), n = pairs.train_edges, pairs.num_nodes
    edges = np.stack([np.concatenate([u, v]), np.concatenate([v, u]) + n])
    weights = None if pairs.weights is None else np.tile(pairs.weights, 2)
    return DoubledPairs(edges, 2 * n, n, pairs.seed, weights, single=pairs)


def _doubled_table(table: CellTable) -> CellTable:
    """A context is of its node's group."""
    node_offset = None if table.node_offset is None else np.tile(table.node_offset, (2, 1))
    return CellTable(np.tile(table.group, 2), table.weight, table.offset, node_offset=node_offset)


class _DoubledFactors(FixedFactors):
    """The factors of both edges that an edge became."""

    def __init__(self, single: EdgeFactors) -> None:
        super().__init__()
        self.single = single
        self._kept: tuple[FloatArray, FloatArray] | None = None

    def in_loss(self, epoch: int) -> FloatArray | None:
        """See `EdgeFactors.in_loss`."""
        factor = self.single.in_loss(epoch)
        if factor is None:
            return None
        if self._kept is None or self._kept[0] is not factor:
            self._kept = (factor, np.tile(factor, 2))
        return self._kept[1]
