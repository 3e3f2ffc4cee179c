r"""The edge loss of all members with its gradient: the one fused seam of training.

Cross-entropy, Eq. (1) and (6), with s_uv = z_u . z_v + offset of the pair's cell:

    1/2 (1/|E|) sum_e w_e softplus(-s_e) + 1/2 E[softplus(s_uv)]

The weight multiplies the observed edge's term only. The expectation is over sources in proportion to
their degree and over nodes they have no training edge to. By default one block of random nodes a
step stands for those, shared by all sources and members: a dense product, from which connected pairs
and self-pairs are taken out exactly. ``listed`` is the paper's recipe instead: 20 fixed strangers
per observed pair.

BPR: mean over observed pairs of w_ui softplus(-(s_ui - s_uj)), j a fresh stranger per pair and epoch;
the weight multiplies the whole pair. On a bipartite graph u is a user, else both ends take a turn.

Negatives are keyed by the split seed and the epoch, so members share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from uge_core.autograd import apply
from uge_core.bias_free import CellTable
from uge_core.environment import cores
from uge_core.errors import ConfigError
from uge_core.graph import FloatArray, IntArray

_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class Pairs:
    """The training edges in the forms the losses want.

    Attributes:
        train_edges: (2, E) each once.
        num_nodes: N.
        num_users: first side's size of a bipartite graph, else None.
        seed: keys the negatives.
    """

    train_edges: IntArray
    num_nodes: int
    num_users: int | None
    seed: int

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray]:
        """CSR of both directions: (N + 1,) starts and (2 E,) neighbours, ascending in each row."""
        both = np.concatenate([self.train_edges, self.train_edges[::-1]], axis=1)
        order = np.lexsort((both[1], both[0]))
        start = np.concatenate([[0], np.cumsum(np.bincount(both[0], minlength=self.num_nodes))])
        return start.astype(np.int64), both[1][order]

    @cached_property
    def sources(self) -> IntArray:
        """(2 E,) the row of each CSR entry."""
        start, _ = self.rows
        return np.repeat(np.arange(self.num_nodes), np.diff(start))

    @property
    def sides(self) -> tuple[tuple[slice, int, int], ...]:
        """Sources with the range their negatives come from, once per side."""
        if self.num_users is None:
            return ((slice(0, self.num_nodes), 0, self.num_nodes),)
        return (
            (slice(0, self.num_users), self.num_users, self.num_nodes),
            (slice(self.num_users, self.num_nodes), 0, self.num_users),
        )

    def rng(self, epoch: int) -> np.random.Generator:
        """The stream of negatives of one epoch."""
        return np.random.default_rng([self.seed, 4, epoch])


@dataclass(frozen=True, eq=False)
class Cells:
    """One member's cell table on a device."""

    group: Tensor
    weight: Tensor
    offset: Tensor
    neutral: bool

    @classmethod
    def of(cls, table: CellTable, device: torch.device) -> Cells:
        """The table's tensors; equal tables stay one object, see `EdgeLoss`."""
        return cls(
            torch.as_tensor(table.group, device=device),
            torch.as_tensor(table.weight, device=device),
            torch.as_tensor(table.offset, device=device),
            not table.offset.any(),
        )


class EdgeLoss(Protocol):
    """Loss and gradient of all members at an epoch."""

    def __call__(self, z: Tensor, epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """(K,) losses (zeros unless wanted) and the gradient (K, N, d)."""


def evaluate(loss: EdgeLoss, z: Tensor, epoch: int, want_loss: bool) -> Tensor:
    """(K,) losses with the closed-form gradient attached."""
    return apply(_Apply, z, loss, epoch, want_loss)


class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, loss: EdgeLoss, epoch: int, want_loss: bool) -> Tensor:
        value, gradient = loss(z.detach(), epoch, want_loss)
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (gradient,) = ctx.saved_tensors
        return gradient * grads[0][:, None, None], None, None, None


def build(
    kind: str,
    pairs: Pairs,
    tables: list[CellTable],
    device: torch.device,
    *,
    negatives: str,
    block_size: int,
    num_negatives: int,
) -> EdgeLoss:
    """The loss `kind` ("cross-entropy" or "bpr") over `pairs` for members with `tables`."""
    known = {id(t): t for t in tables}
    made = {i: Cells.of(t, device) for i, t in known.items()}
    cells = [made[id(t)] for t in tables]
    passes = CompiledPasses(pairs) if device.type == "cpu" else TorchPasses(pairs, device)
    if kind == "bpr":
        return Bpr(pairs, cells, passes)
    if negatives == "listed":
        return CrossEntropy(pairs, cells, passes, Listed(pairs, num_negatives, device))
    return CrossEntropy(pairs, cells, passes, SharedBlock(pairs, block_size, device))


class Passes(Protocol):
    """The two passes over observed pairs; compiled on the CPU, plain torch elsewhere."""

    def attract(self, z: Tensor, cells: list[Cells], want_loss: bool) -> tuple[Tensor, Tensor]:
        """1/(2 * 2E) sum over both directions of w softplus(-s): (K,) losses, (K, N, d) gradient."""

    def rank(self, z: Tensor, cells: list[Cells], epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """Mean BPR loss over observed pairs with fresh strangers: (K,) losses, (K, N, d) gradient."""


class CompiledPasses:
    """Kernels over CSR rows, two dimensions of work (members, row blocks) on all cores."""

    def __init__(self, pairs: Pairs) -> None:
        from uge_core import _kernels

        self.kernels, self.pairs = _kernels, pairs
        self.threads = cores()
        self.pool = ThreadPoolExecutor(self.threads)
        start, neighbour = pairs.rows
        self.neighbour = neighbour.astype(np.int32)
        self.entries: dict[Cells, tuple[bool, FloatArray, FloatArray]] = {}
        cuts = np.searchsorted(start, np.linspace(0, start[-1], 8 + 1))
        cuts[0], cuts[-1] = 0, pairs.num_nodes
        self.blocks = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))

    def attract(self, z: Tensor, cells: list[Cells], want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `Passes.attract`."""
        start, _ = self.pairs.rows
        gradient = torch.zeros_like(z)
        scale = np.float32(0.5 / len(self.neighbour))
        tables = [self._entries(c) for c in cells]

        def work(task: tuple[int, int, int]) -> float:
            k, first, last = task
            loss = self.kernels.attract(
                z[k].numpy(), start, self.neighbour, *tables[k], first, last, scale, want_loss, gradient[k].numpy()
            )
            return float(loss)

        parts = self._map(work, [(k, a, b) for k in range(len(cells)) for a, b in self.blocks])
        return torch.tensor(parts, dtype=torch.float32).view(len(cells), -1).sum(1), gradient

    def _entries(self, cells: Cells) -> tuple[bool, FloatArray, FloatArray]:
        """Weight and offset of each CSR entry, looked up once per table: reading in order beats a lookup per pair."""
        if cells not in self.entries:
            weight, offset, group = cells.weight.numpy(), cells.offset.numpy(), cells.group.numpy()
            plain = bool((weight == 1).all() and not offset.any())
            u, v = group[self.pairs.sources], group[self.neighbour]
            none = np.zeros(0, np.float32)
            self.entries[cells] = (plain, none, none) if plain else (plain, weight[u, v], offset[u, v])
        return self.entries[cells]

    def rank(self, z: Tensor, cells: list[Cells], epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `Passes.rank`; a member's triples meet in its item rows, so a member is one task."""
        source, liked, other = self.triples(epoch)
        gradient = torch.zeros_like(z)
        scale = np.float32(1.0 / len(source))

        def work(k: int) -> float:
            c = cells[k]
            return float(
                self.kernels.rank_pairs(
                    z[k].numpy(),
                    source,
                    liked,
                    other,
                    c.group.numpy(),
                    c.weight.numpy(),
                    c.offset.numpy(),
                    scale,
                    want_loss,
                    gradient[k].numpy(),
                )
            )

        return torch.tensor(self._map(work, list(range(len(cells)))), dtype=torch.float32), gradient

    def triples(self, epoch: int) -> tuple[IntArray, IntArray, IntArray]:
        """Observed pairs (u, i) and a fresh stranger j of each, -1 where none was found."""
        start, neighbour = self.pairs.rows
        source, liked = _observed(self.pairs)
        low, high = _range(self.pairs)
        key = self.pairs.rng(epoch).integers(0, 2**63, dtype=np.uint64)
        out = np.empty(len(source), np.int64)
        cuts = np.linspace(0, len(source), self.threads + 1).astype(np.int64).tolist()

        def work(span: tuple[int, int]) -> None:
            self.kernels.draw_strangers(start, neighbour, source, low, high, key, 32, span[0], span[1], out)

        self._map(work, list(pairwise(cuts)))
        return source, liked, out

    def _map(self, work: Callable[[Any], Any], tasks: Iterable[Any]) -> list[Any]:
        return list(self.pool.map(work, tasks))


class TorchPasses:
    """The same passes in torch operations, on any device."""

    def __init__(self, pairs: Pairs, device: torch.device) -> None:
        self.pairs, self.device = pairs, device
        self.edges = torch.as_tensor(pairs.train_edges, device=device)

    def attract(self, z: Tensor, cells: list[Cells], want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `Passes.attract`; each edge once, as both directions have the same term."""
        gradient = torch.zeros_like(z)
        loss = z.new_zeros(len(cells))
        scale = 0.5 / self.edges.shape[1]
        for k, c in enumerate(cells):
            for u, v in _chunks(self.edges[0], self.edges[1]):
                zu, zv = z[k].index_select(0, u), z[k].index_select(0, v)
                gu, gv = c.group.index_select(0, u), c.group.index_select(0, v)
                s = (zu * zv).sum(1) + c.offset[gu, gv]
                w = c.weight[gu, gv] * scale
                if want_loss:
                    loss[k] += (w * torch.nn.functional.softplus(-s)).sum()
                slope = (-w * torch.sigmoid(-s))[:, None]
                gradient[k].index_add_(0, u, slope * zv)
                gradient[k].index_add_(0, v, slope * zu)
        return loss, gradient

    def rank(self, z: Tensor, cells: list[Cells], epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `Passes.rank`."""
        gradient = torch.zeros_like(z)
        loss = z.new_zeros(len(cells))
        triples = [torch.as_tensor(t, device=self.device) for t in self.triples(epoch)]
        found = triples[2] >= 0
        u, i, j = (t[found] for t in triples)
        scale = 1.0 / len(triples[0])
        for k, c in enumerate(cells):
            zu, zi, zj = (z[k].index_select(0, t) for t in (u, i, j))
            gu, gi, gj = (c.group.index_select(0, t) for t in (u, i, j))
            s = (zu * (zi - zj)).sum(1) + c.offset[gu, gi] - c.offset[gu, gj]
            w = c.weight[gu, gi] * scale
            if want_loss:
                loss[k] = (w * torch.nn.functional.softplus(-s)).sum()
            slope = (-w * torch.sigmoid(-s))[:, None]
            gradient[k].index_add_(0, u, slope * (zi - zj))
            gradient[k].index_add_(0, i, slope * zu)
            gradient[k].index_add_(0, j, -slope * zu)
        return loss, gradient

    @cached_property
    def _drawing(self) -> CompiledPasses:
        return CompiledPasses(self.pairs)

    def triples(self, epoch: int) -> tuple[IntArray, IntArray, IntArray]:
        """As `CompiledPasses.triples`: negatives are the same on every device."""
        return self._drawing.triples(epoch)


def _chunks(source: Tensor, target: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Pieces of a pair list small enough for their rows to stay in memory."""
    for first in range(0, len(source), _CHUNK):
        yield source[first : first + _CHUNK], target[first : first + _CHUNK]


def _observed(pairs: Pairs) -> tuple[IntArray, IntArray]:
    """Observed pairs in CSR order: from users to items, or both directions."""
    _, neighbour = pairs.rows
    count = pairs.train_edges.shape[1] if pairs.num_users is not None else len(neighbour)
    return pairs.sources[:count], neighbour[:count]


def _range(pairs: Pairs) -> tuple[int, int]:
    return (0 if pairs.num_users is None else pairs.num_users), pairs.num_nodes


class Bpr:
    """Pairwise logistic loss."""

    def __init__(self, pairs: Pairs, cells: list[Cells], passes: Passes) -> None:
        self.cells, self.passes = cells, passes

    def __call__(self, z: Tensor, epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `EdgeLoss`."""
        return self.passes.rank(z.contiguous(), self.cells, epoch, want_loss)


class Negatives(Protocol):
    """The second half of the cross-entropy."""

    def add(self, z: Tensor, cells: list[Cells], epoch: int, want_loss: bool, loss: Tensor, gradient: Tensor) -> None:
        """Adds 1/2 E[softplus(s)] to `loss` and its gradient to `gradient`."""


class CrossEntropy:
    """Observed pairs attract, strangers repel."""

    def __init__(self, pairs: Pairs, cells: list[Cells], passes: Passes, negatives: Negatives) -> None:
        self.cells, self.passes, self.negatives = cells, passes, negatives

    def __call__(self, z: Tensor, epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `EdgeLoss`."""
        z = z.contiguous()
        loss, gradient = self.passes.attract(z, self.cells, want_loss)
        self.negatives.add(z, self.cells, epoch, want_loss, loss, gradient)
        return loss, gradient


class SharedBlock:
    """One block of random nodes a step, scored against every source by a dense product."""

    def __init__(self, pairs: Pairs, block_size: int, device: torch.device) -> None:
        self.pairs, self.block_size, self.device = pairs, block_size, device
        start, _ = pairs.rows
        degree = np.diff(start).astype(np.float64)
        self.share = [degree[s] / degree.sum() for s, _, _ in pairs.sides]

    def add(self, z: Tensor, cells: list[Cells], epoch: int, want_loss: bool, loss: Tensor, gradient: Tensor) -> None:
        """See `Negatives.add`."""
        rng = self.pairs.rng(epoch)
        for (sources, low, high), share in zip(self.pairs.sides, self.share, strict=True):
            block = np.sort(rng.choice(high - low, min(self.block_size, high - low), replace=False)) + low
            scale = torch.as_tensor(self._scale(block, sources, share), device=self.device)
            nodes = torch.as_tensor(block, device=self.device)
            for k, c in enumerate(cells):
                rows, few = z[k, sources], z[k].index_select(0, nodes)
                s = rows @ few.T
                if not c.neutral:
                    columns = c.offset.index_select(1, c.group.index_select(0, nodes))
                    s += columns.index_select(0, c.group[sources])
                if want_loss:
                    loss[k] += (torch.nn.functional.softplus(s) * scale).sum()
                slope = s.sigmoid_().mul_(scale)
                gradient[k, sources].addmm_(slope, few)
                gradient[k].index_add_(0, nodes, slope.T @ rows)

    def _scale(self, block: IntArray, sources: slice, share: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """(sources, B) float32: half the source's share over its strangers in the block, 0 at connected and self-pairs."""
        start, neighbour = self.pairs.rows
        width = start[block + 1] - start[block]
        linked = np.concatenate([neighbour[start[b] : start[b + 1]] for b in block]) - sources.start
        column = np.repeat(np.arange(len(block)), width)
        if self.pairs.num_users is None:
            linked, column = np.append(linked, block), np.append(column, np.arange(len(block)))
        strangers = len(block) - np.bincount(linked, minlength=len(share))
        each = np.divide(0.5 * share, strangers, out=np.zeros_like(share), where=strangers > 0)
        scale = np.repeat(each.astype(np.float32)[:, None], len(block), axis=1)
        scale[linked, column] = 0.0
        return scale


class Listed:
    """The paper's recipe: strangers drawn once per observed pair and kept for all epochs."""

    def __init__(self, pairs: Pairs, num_negatives: int, device: torch.device) -> None:
        rng = np.random.default_rng([pairs.seed, 5])
        start, neighbour = pairs.rows
        keys = pairs.sources * pairs.num_nodes + neighbour
        source, target = [], []
        for sources, low, high in pairs.sides:
            u = np.repeat(pairs.sources[start[sources.start] : start[sources.stop]], num_negatives)
            v = rng.integers(low, high, len(u))
            for _ in range(64):
                key = u * pairs.num_nodes + v
                at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
                bad = np.nonzero((keys[at] == key) | (u == v))[0]
                if not len(bad):
                    break
                v[bad] = rng.integers(low, high, len(bad))
            source.append(np.delete(u, bad))
            target.append(np.delete(v, bad))
        if not sum(map(len, source)):
            raise ConfigError(
                "negatives = 'listed': every node is linked to every other, so there is no stranger to list"
            )
        self.source = torch.as_tensor(np.concatenate(source), device=device)
        self.target = torch.as_tensor(np.concatenate(target), device=device)

    def add(self, z: Tensor, cells: list[Cells], epoch: int, want_loss: bool, loss: Tensor, gradient: Tensor) -> None:
        """See `Negatives.add`."""
        scale = 0.5 / len(self.source)
        for k, c in enumerate(cells):
            for u, v in _chunks(self.source, self.target):
                zu, zv = z[k].index_select(0, u), z[k].index_select(0, v)
                s = (zu * zv).sum(1)
                if not c.neutral:
                    s = s + c.offset[c.group.index_select(0, u), c.group.index_select(0, v)]
                if want_loss:
                    loss[k] += torch.nn.functional.softplus(s).sum() * scale
                slope = (torch.sigmoid(s) * scale)[:, None]
                gradient[k].index_add_(0, u, slope * zv)
                gradient[k].index_add_(0, v, slope * zu)
