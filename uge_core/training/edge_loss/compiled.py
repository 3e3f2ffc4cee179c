"""The passes over pairs, compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uge_core.arrays import FloatArray, IntArray
from uge_core.graph.scores import DOT, Scorer
from uge_core.machine import cores
from uge_core.ranks import ALONE, Ranks
from uge_core.training.edge_loss.pairs import (
    NOBODY,
    Block,
    Cells,
    Factors,
    ListedPairs,
    Pairs,
    Placed,
    Triples,
    node_range,
    observed_pairs,
)

_TASKS = 8  # a side
_ROW = 32  # a row's work besides its entries, in entries
_WORTH = 2000  # entries whose pass, some 10 us, takes as long as handing a task to another thread


def tasks(pairs: Pairs) -> tuple[list[tuple[int, int, int]], float]:
    """Tasks of about equal work, as many a side whatever the cores and processes, as sums depend on them.

    Returns:
        Side, first row and last row of each, in the rows' order, and the work of the largest in entries.
    """
    out: list[tuple[int, int, int]] = []
    largest = 0.0
    for i, (side, _, _) in enumerate(pairs.sides):
        effort = np.cumsum(np.diff(pairs.rows[0])[side] + _ROW)
        cuts = np.searchsorted(effort, np.linspace(0, effort[-1], _TASKS + 1)) + side.start
        out += [(i, a, b) for a, b in pairwise([*cuts[:-1].tolist(), side.stop])]
        largest = max(largest, effort[-1] / _TASKS)
    return out, largest


class CompiledPasses:
    """Kernels over CSR rows, two dimensions of work (members, row blocks) on all cores."""

    device = torch.device("cpu")

    def __init__(
        self, pairs: Pairs, pool: ThreadPoolExecutor | None = None, scorer: Scorer = DOT, ranks: Ranks = ALONE
    ) -> None:
        from uge_core.kernels import edges as _kernels

        self.kernels, self.pairs, self.scorer, self.ranks = _kernels, pairs, scorer, ranks
        self.threads = cores()
        self.pool = pool or ThreadPoolExecutor(self.threads)
        _, neighbour = pairs.rows
        self.neighbour = neighbour.astype(np.int32, copy=False)
        self.entries: dict[Cells, tuple[FloatArray, FloatArray]] = {}
        self.factored: dict[int, tuple[FloatArray, FloatArray]] = {}
        self.tasks, self.effort = tasks(pairs)

    def contrast(
        self, z: Tensor, cells: list[Cells], factors: Factors, blocks: Sequence[Block | Placed], want_loss: bool
    ) -> tuple[Tensor, Tensor]:
        """See `Passes.contrast`."""
        start, _ = self.pairs.rows
        drawn = [b for b in blocks if isinstance(b, Block)]
        gradient, scale = self.ranks.zeros(z), np.float32(0.5 / len(self.neighbour))
        across = self.scorer.right(z)
        nodes = [torch.as_tensor(b.nodes) for b in drawn]
        linked = [_ascending(b, self.pairs.num_nodes) for b in drawn]
        few = [[xk.index_select(0, n).T.contiguous().numpy() for n in nodes] for xk in across]
        push = [np.zeros((len(cells), *few[0][side].shape), np.float32) for side, _, _ in self.tasks]
        tables = [
            (*self._weighed(k, c, f), c.group.numpy(), [_columns(c, b) for b in drawn])
            for k, (c, f) in enumerate(zip(cells, factors, strict=True))
        ]

        def work(task: tuple[int, int]) -> float:
            k, t = task
            side, first, last = self.tasks[t]
            weight, offset, group, columns = tables[k]
            loss = self.kernels.contrast(
                z[k].numpy(),
                across[k].numpy(),
                start,
                self.neighbour,
                weight,
                offset,
                scale,
                group,
                self.pairs.share,
                few[k][side],
                *columns[side],
                *linked[side],
                first,
                last,
                want_loss,
                gradient[k].numpy(),
                push[t][k],
            )
            return float(loss)

        mine = list(product(range(len(cells)), self.ranks.share(len(self.tasks))))
        # (tasks, K): every rank needs all of these, its own rows of the gradient are whole
        losses, pushed = np.zeros((len(self.tasks), len(cells))), list(map(torch.from_numpy, push))
        for (k, t), loss in zip(mine, self._map(work, mine, self.effort), strict=True):
            losses[t, k] = loss
        self.ranks.pooled(pushed)
        if want_loss:
            self.ranks.pooled(list(torch.from_numpy(losses)))
        for k, (t, (side, _, _)) in product(range(len(cells)), enumerate(self.tasks)):
            gradient[k].index_add_(0, nodes[side], pushed[t][k].T)
        return torch.tensor(losses.T.tolist()).sum(1).float(), gradient

    def _entries(self, cells: Cells) -> tuple[FloatArray, FloatArray]:
        """Weight and offset of each entry, looked up once per table: reading in order beats a lookup per pair.

        Empty where they are 1, or 0, throughout.
        """
        if cells not in self.entries:
            weight, offset, group = cells.weight.numpy(), cells.offset.numpy(), cells.group.numpy()
            own, none = self.pairs.entry_weights, np.zeros(0, np.float32)
            if own is None and cells.neutral and (weight == 1).all():
                return self.entries.setdefault(cells, (none, none))
            source, target = group[self.pairs.sources], group[self.neighbour]
            factor = none if own is None and (weight == 1).all() else weight[source, target]
            if own is not None:
                factor = factor * own
            shift = none if cells.neutral else offset[source, target]
            if cells.node_offset is not None:
                node_offset = cells.node_offset.numpy()
                shift = shift + node_offset[self.pairs.sources, target] + node_offset[self.neighbour, source]
            self.entries[cells] = (factor, shift)
        return self.entries[cells]

    def _weighed(self, k: int, cells: Cells, factor: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """`_entries` of member k with its factors, laid out anew only where they change."""
        weight, offset = self._entries(cells)
        if factor is None:
            return weight, offset
        if k not in self.factored or self.factored[k][0] is not factor:
            own = factor[self.pairs.entry_edges]
            self.factored[k] = (factor, own * weight if len(weight) else own)
        return self.factored[k][1], offset

    def repel(
        self, z: Tensor, cells: list[Cells], listed: ListedPairs, want_loss: bool, loss: Tensor, gradient: Tensor
    ) -> None:
        """See `Passes.repel`; the list is laid out by row, in both directions, as the observed pairs are."""
        start, source, neighbour, weight = listed.rows
        none, scale = np.zeros(0, np.float32), np.float32(0.25 / len(listed.source))
        cuts = np.searchsorted(start, np.linspace(0, len(neighbour), 8 + 1)).tolist()
        tasks = list(product(range(len(cells)), pairwise([0, *cuts[1:-1], self.pairs.num_nodes])))
        ends = [torch.as_tensor(a, dtype=torch.int64) for a in (source, neighbour)]
        offsets = {c: none if c.neutral else c.offsets(*ends).numpy() for c in dict.fromkeys(cells)}
        across = self.scorer.right(z)

        def work(task: tuple[int, tuple[int, int]]) -> float:
            k, (first, last) = task
            part = self.kernels.pull(
                z[k].numpy(),
                across[k].numpy(),
                start,
                neighbour,
                weight,
                offsets[cells[k]],
                scale,
                np.float32(-1.0),
                first,
                last,
                want_loss,
                gradient[k].numpy(),
            )
            return float(part)

        parts = self._map(work, tasks, len(neighbour) / 8)
        loss += torch.tensor(parts).view(len(cells), -1).sum(1).float()

    def rank(
        self, z: Tensor, cells: list[Cells], factors: Factors, triples: Triples, want_loss: bool
    ) -> tuple[Tensor, Tensor]:
        """See `Passes.rank`; a member's triples meet in its item rows, so a member is one task."""
        source, liked, other = (np.asarray(t) for t in triples)
        gradient = torch.zeros_like(z)
        scale = np.float32(1.0 / len(source))
        common = self.pairs.entry_weights
        common = np.zeros(0, np.float32) if common is None else common[: len(source)]
        edges, none = self.pairs.entry_edges[: len(source)], np.zeros((0, 0), np.float32)
        across = self.scorer.right(z)
        owns = [common if f is None else f[edges] * (common if len(common) else 1) for f in factors]

        def work(k: int) -> float:
            c = cells[k]
            return float(
                self.kernels.rank_pairs(
                    z[k].numpy(),
                    across[k].numpy(),
                    source,
                    liked,
                    other,
                    c.group.numpy(),
                    c.weight.numpy(),
                    c.offset.numpy(),
                    none if c.node_offset is None else c.node_offset.numpy(),
                    owns[k],
                    scale,
                    want_loss,
                    gradient[k].numpy(),
                )
            )

        losses = self._map(work, list(range(len(cells))), len(source))
        return torch.tensor(losses, dtype=torch.float32), gradient

    def triples(self, epoch: int) -> tuple[IntArray, IntArray, IntArray]:
        """See `Passes.triples`."""
        start, neighbour = self.pairs.rows
        source, liked = observed_pairs(self.pairs)
        low, high = node_range(self.pairs)
        key = self.pairs.rng(epoch).integers(0, 2**63, dtype=np.uint64)
        out = np.empty(len(source), np.int64)
        cuts = np.linspace(0, len(source), self.threads + 1).astype(np.int64).tolist()

        def work(span: tuple[int, int]) -> None:
            self.kernels.draw_strangers(start, neighbour, source, low, high, key, 32, span[0], span[1], out)

        self._map(work, list(pairwise(cuts)), len(source) / self.threads)
        return source, liked, out

    def _map(self, work: Callable[[Any], Any], tasks: Iterable[Any], effort: float) -> list[Any]:
        """What `work` gives for each task, on all cores.

        In turn where a task of so many entries is done before it is handed over.
        """
        return list(map(work, tasks) if effort < _WORTH else self.pool.map(work, tasks))


def _ascending(block: Block, num_nodes: int) -> tuple[IntArray, IntArray]:
    """The pairs of a block that do not count, by source, closed by N."""
    order = np.argsort(block.linked, kind="stable")
    return np.append(block.linked[order], num_nodes), np.append(block.column[order], 0)


def _columns(cells: Cells, block: Block) -> tuple[FloatArray, FloatArray, IntArray]:
    """What a block's pairs have for offsets, (0, 0) where there is nothing.

    Returns:
        (G + 1, B) offsets of its nodes by the source's group, (N, G + 1) the sources' own part, (B,) the groups that
        the own part is read by.
    """
    none = np.zeros((0, 0), np.float32)
    if cells.neutral or not len(block.nodes):
        return none, none, NOBODY
    nodes = torch.as_tensor(block.nodes)
    others = cells.group.index_select(0, nodes)
    columns = cells.offset.index_select(1, others)
    if cells.node_offset is None:
        return np.asarray(columns.numpy()), none, NOBODY
    return (
        np.asarray((columns + cells.node_offset.index_select(0, nodes).T).numpy()),
        cells.node_offset.numpy(),
        others.numpy(),
    )
