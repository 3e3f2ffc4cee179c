r"""The edge loss of all members with its gradient: the one fused seam of training.

Cross-entropy, Eq. (1) and (6), with s_uv = z_u . z_v (or another of `scores`) + offset of the pair's cell:

    1/2 (1/|E|) sum_e w_e softplus(-s_e) + 1/2 E[softplus(s_uv)]

The weight multiplies the observed edge's term only. The score has no direction, and neither has the loss.
Where edges have weights of their own, scaled to mean 1, w_e is multiplied by them and a degree is their
sum, so that an edge of weight 2 counts as two edges. A method may multiply w_e by a factor of each edge,
see `edge_factors`.

The expectation is over sources in proportion to their degree and over nodes they have no training edge
to. By default one block of random nodes a step stands for those, shared by all sources and members: a
dense product, from which connected pairs and self-pairs are taken out exactly. ``listed`` is the paper's
recipe instead: 20 fixed strangers per observed pair.

BPR: mean over observed pairs of w_ui softplus(-(s_ui - s_uj)), j a fresh stranger per pair and epoch;
the weights multiply the whole pair. On a bipartite graph u is a user, else both ends take a turn.

Negatives are keyed by the split seed and the epoch, so members share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from uge_core.autograd import apply
from uge_core.debias.bias_free import CellTable
from uge_core.debias.edge_factors import EdgeFactors, NoFactors
from uge_core.graph.scores import DOT, Scorer
from uge_core.ranks import ALONE, Ranks
from uge_core.training.edge_loss.compiled import CompiledPasses
from uge_core.training.edge_loss.negatives import strangers
from uge_core.training.edge_loss.pairs import Cells, EdgeLoss, Negatives, Pairs, Passes, to_device
from uge_core.training.edge_loss.plain import TorchPasses


def evaluate(
    loss: EdgeLoss, z: Tensor, epoch: int, want_loss: bool, scorer: Scorer = DOT, ranks: Ranks = ALONE
) -> Tensor:
    """(K,) losses with the closed-form gradient attached; `scorer` and `ranks` are those of the loss."""
    return apply(_Apply, scorer.left(z), loss, epoch, want_loss, ranks)


class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, loss: EdgeLoss, epoch: int, want_loss: bool, ranks: Ranks) -> Tensor:
        ctx.ranks = ranks
        value, gradient = loss(z.detach(), epoch, want_loss)
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (gradient,) = ctx.saved_tensors
        return ctx.ranks.scaled(gradient, grads[0][:, None, None]), None, None, None, None


def build(
    kind: str,
    pairs: Pairs,
    tables: list[CellTable],
    device: torch.device,
    *,
    factors: Sequence[EdgeFactors] = (),
    negatives: str,
    block_size: int,
    num_negatives: int,
    scorer: Scorer = DOT,
    ranks: Ranks = ALONE,
) -> EdgeLoss:
    """The loss `kind` ("cross-entropy" or "bpr") over `pairs`, of what `scorer.left` makes of embeddings.

    `tables` are the members'; so are `factors`, none of which means 1 for every edge. Of `ranks` each computes the
    gradient of its own rows.
    """
    factors = factors or [NoFactors()] * len(tables)
    known = {id(t): t for t in tables}
    by_table = {i: Cells.of(t, device) for i, t in known.items()}
    cells = [by_table[id(t)] for t in tables]
    passes = passes_of(pairs, device, scorer, ranks=ranks)
    if kind == "bpr":
        return Bpr(cells, factors, passes)
    return CrossEntropy(cells, factors, passes, strangers(negatives, pairs, passes, block_size, num_negatives))


def passes_of(
    pairs: Pairs, device: torch.device, scorer: Scorer, pool: ThreadPoolExecutor | None = None, ranks: Ranks = ALONE
) -> Passes:
    """Those of the device; `pool` and `ranks` are for the compiled ones, which take a new pool unless given one."""
    return CompiledPasses(pairs, pool, scorer, ranks) if device.type == "cpu" else TorchPasses(pairs, device, scorer)


class Bpr:
    """Pairwise logistic loss."""

    fixed: tuple[Tensor, Tensor, Tensor] | None = None

    def __init__(self, cells: list[Cells], factors: Sequence[EdgeFactors], passes: Passes) -> None:
        self.cells, self.factors, self.passes = cells, factors, passes

    def __call__(self, z: Tensor, epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `EdgeLoss`."""
        factors = [f.in_loss(epoch) for f in self.factors]
        return self.passes.rank(
            z.contiguous(), self.cells, factors, self.fixed or self.passes.triples(epoch), want_loss
        )

    def stage(self) -> Callable[[int], None]:
        """See `EdgeLoss.stage`; who is liked stays, the strangers change."""
        device = self.passes.device
        u, i, j = (torch.as_tensor(t, device=device) for t in self.passes.triples(1))
        self.fixed = (u, i, j)

        def load(epoch: int) -> None:
            j.copy_(to_device(torch.as_tensor(self.passes.triples(epoch)[2]), device), non_blocking=True)

        return load


class CrossEntropy:
    """Observed pairs attract, strangers repel."""

    def __init__(
        self, cells: list[Cells], factors: Sequence[EdgeFactors], passes: Passes, negatives: Negatives
    ) -> None:
        self.cells, self.factors, self.passes, self.negatives = cells, factors, passes, negatives

    def __call__(self, z: Tensor, epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `EdgeLoss`."""
        z = z.contiguous()
        factors = [f.in_loss(epoch) for f in self.factors]
        loss, gradient = self.passes.contrast(z, self.cells, factors, self.negatives.blocks(epoch), want_loss)
        self.negatives.add(z, self.cells, want_loss, loss, gradient)
        return loss, gradient

    def stage(self) -> Callable[[int], None]:
        """See `EdgeLoss.stage`."""
        return self.negatives.stage(self.passes.device)
