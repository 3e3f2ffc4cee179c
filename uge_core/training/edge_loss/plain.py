"""The passes over pairs in torch: for a GPU, and for few pairs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from uge_core.arrays import FloatArray, IntArray
from uge_core.graph.scores import DOT, Scorer
from uge_core.training.edge_loss.compiled import CompiledPasses
from uge_core.training.edge_loss.pairs import (
    Block,
    Cells,
    Factors,
    ListedPairs,
    Pairs,
    Placed,
    Triples,
    chunks,
    to_device,
)


class TorchPasses:
    """The same passes in torch operations, on any device."""

    def __init__(self, pairs: Pairs, device: torch.device, scorer: Scorer = DOT) -> None:
        self.pairs, self.device, self.scorer = pairs, device, scorer
        self.edges = torch.as_tensor(pairs.each_once, device=device)
        weights, entries = pairs.weights, pairs.entry_weights
        self.weights = None if weights is None else torch.as_tensor(weights, device=device)
        self.entries = None if entries is None else torch.as_tensor(entries, device=device)
        self.share = torch.as_tensor(pairs.share, device=device)
        self.factored: dict[int, tuple[FloatArray, Tensor]] = {}

    def _factor(self, k: int, factor: FloatArray | None) -> Tensor | None:
        """Member k's factors on the device, copied only where they change."""
        if factor is None:
            return None
        if k not in self.factored or self.factored[k][0] is not factor:
            self.factored[k] = (factor, torch.as_tensor(factor, device=self.device))
        return self.factored[k][1]

    def contrast(
        self, z: Tensor, cells: list[Cells], factors: Factors, blocks: Sequence[Block | Placed], want_loss: bool
    ) -> tuple[Tensor, Tensor]:
        """See `Passes.contrast`; each edge once, as both directions have the same term."""
        gradient = torch.zeros_like(z)
        loss = z.new_zeros(len(cells))
        scale, across = 0.5 / self.edges.shape[1], self.scorer.right(z)
        for k, (c, f) in enumerate(zip(cells, factors, strict=True)):
            factor = self._factor(k, f)
            for part in chunks(self.edges.shape[1]):
                u, v = self.edges[:, part]
                xu, xv = across[k].index_select(0, u), across[k].index_select(0, v)
                s = (z[k].index_select(0, u) * xv).sum(1) + c.offsets(u, v)
                w = c.weight[c.group.index_select(0, u), c.group.index_select(0, v)] * scale
                if self.weights is not None:
                    w = w * self.weights[part]
                if factor is not None:
                    w = w * factor[part]
                if want_loss:
                    loss[k] += (w * torch.nn.functional.softplus(-s)).sum()
                slope = (-w * torch.sigmoid(-s))[:, None]
                gradient[k].index_add_(0, u, slope * xv)
                gradient[k].index_add_(0, v, slope * xu)
        for (sources, _, _), block in zip(self.pairs.sides, blocks, strict=True):
            if len(block.nodes):
                self._repel(z, across, cells, sources, self._placed(block, sources), want_loss, loss, gradient)
        return loss, gradient

    def _placed(self, block: Block | Placed, sources: slice) -> Placed:
        if isinstance(block, Placed):
            return block
        return Placed.of(block, sources.start, len(block.linked)).to(self.device)

    def _repel(
        self,
        z: Tensor,
        across: Tensor,
        cells: list[Cells],
        sources: slice,
        block: Placed,
        want_loss: bool,
        loss: Tensor,
        gradient: Tensor,
    ) -> None:
        nodes, linked, share = block.nodes, block.linked - sources.start, self.share[sources]
        strangers = len(nodes) - torch.zeros_like(share).index_add_(0, linked, block.counted)
        counts = torch.where(strangers > 0, share / strangers.clamp_min(1), 0.0)[:, None].repeat(1, len(nodes) + 1)
        counts.index_put_((linked, block.column), counts.new_zeros(()))
        counts = counts[:, :-1]
        for k, c in enumerate(cells):
            few = across[k].index_select(0, nodes)
            s = z[k, sources] @ few.T
            if not c.neutral:
                others = c.group.index_select(0, nodes)
                s += c.offset.index_select(1, others).index_select(0, c.group[sources])
                if c.node_offset is not None:
                    s += c.node_offset[sources].index_select(1, others)
                    s += c.node_offset.index_select(0, nodes).T.index_select(0, c.group[sources])
            if want_loss:
                loss[k] += (torch.nn.functional.softplus(s) * counts).sum()
            slope = s.sigmoid_().mul_(counts)
            gradient[k, sources].addmm_(slope, few)
            gradient[k].index_add_(0, nodes, slope.T @ across[k, sources])

    def repel(
        self, z: Tensor, cells: list[Cells], listed: ListedPairs, want_loss: bool, loss: Tensor, gradient: Tensor
    ) -> None:
        """See `Passes.repel`."""
        source, target, weight = listed.source, listed.target, listed.weight
        scale, across = 0.5 / len(source), self.scorer.right(z)
        for k, c in enumerate(cells):
            for part in chunks(len(source)):
                u, v = source[part], target[part]
                xu, xv = across[k].index_select(0, u), across[k].index_select(0, v)
                s = (z[k].index_select(0, u) * xv).sum(1)
                if not c.neutral:
                    s = s + c.offsets(u, v)
                if want_loss:
                    term = torch.nn.functional.softplus(s)
                    loss[k] += (term if weight is None else term * weight[part]).sum() * scale
                slope = (torch.sigmoid(s) * scale)[:, None]
                if weight is not None:
                    slope = slope * weight[part, None]
                gradient[k].index_add_(0, u, slope * xv)
                gradient[k].index_add_(0, v, slope * xu)

    def rank(
        self, z: Tensor, cells: list[Cells], factors: Factors, triples: Triples, want_loss: bool
    ) -> tuple[Tensor, Tensor]:
        """See `Passes.rank`."""
        gradient = torch.zeros_like(z)
        loss = z.new_zeros(len(cells))
        u, i, j = (to_device(torch.as_tensor(t), self.device) for t in triples)
        # a pair without a stranger counts nothing; leaving it out would ask the device how many there are
        scale = (j >= 0).float() / len(j)
        j, across = j.clamp_min(0), self.scorer.right(z)
        for k, (c, f) in enumerate(zip(cells, factors, strict=True)):
            factor = self._factor(k, f)
            xu, xi, xj = (across[k].index_select(0, t) for t in (u, i, j))
            s = (z[k].index_select(0, u) * (xi - xj)).sum(1) + c.offsets(u, i) - c.offsets(u, j)
            w = c.weight[c.group.index_select(0, u), c.group.index_select(0, i)] * scale
            if self.entries is not None:
                w = w * self.entries[: len(u)]
            if factor is not None:
                w = w * factor.index_select(0, self.entry_edges[: len(u)])
            if want_loss:
                loss[k] = (w * torch.nn.functional.softplus(-s)).sum()
            slope = (-w * torch.sigmoid(-s))[:, None]
            gradient[k].index_add_(0, u, slope * (xi - xj))
            gradient[k].index_add_(0, i, slope * xu)
            gradient[k].index_add_(0, j, -slope * xu)
        return loss, gradient

    @cached_property
    def entry_edges(self) -> Tensor:
        """(2 E,) see `Pairs.entry_edges`."""
        return torch.as_tensor(self.pairs.entry_edges, device=self.device)

    @cached_property
    def _drawing(self) -> CompiledPasses:
        return CompiledPasses(self.pairs)

    def triples(self, epoch: int) -> tuple[IntArray, IntArray, IntArray]:
        """As `CompiledPasses.triples`: negatives are the same on every device."""
        return self._drawing.triples(epoch)
