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

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from uge_core.autograd import apply
from uge_core.debias.bias_free import CellTable
from uge_core.debias.edge_factors import EdgeFactors, NoFactors
from uge_core.errors import ConfigError
from uge_core.graph.graph import FloatArray, IntArray
from uge_core.graph.scores import DOT, Scorer
from uge_core.machine import cores

_CHUNK = 1 << 18
_ROW = 32  # a row's work besides its entries, in entries
_WORTH = 2000  # entries whose pass, some 10 us, takes as long as handing a task to another thread


@dataclass(frozen=True, eq=False)
class Pairs:
    """The training edges in the forms the losses want.

    Attributes:
        train_edges: (2, E) each once.
        num_nodes: N.
        num_users: first side's size of a bipartite graph, else None.
        seed: keys the negatives.
        weights: (E,) the edges' own weights, 1 on average, or None.
    """

    train_edges: IntArray
    num_nodes: int
    num_users: int | None
    seed: int
    weights: FloatArray | None = None

    @cached_property
    def _both(self) -> tuple[IntArray, IntArray]:
        """(2, 2 E) the edges in both directions, and (2 E,) their order by row, then neighbour."""
        both = np.concatenate([self.train_edges, self.train_edges[::-1]], axis=1)
        return both, np.lexsort((both[1], both[0]))

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray]:
        """CSR of both directions: (N + 1,) starts and (2 E,) neighbours, ascending in each row."""
        both, order = self._both
        start = np.concatenate([[0], np.cumsum(np.bincount(both[0], minlength=self.num_nodes))])
        return start.astype(np.int64), both[1][order]

    @property
    def each_once(self) -> IntArray:
        """(2, E) every pair once."""
        return self.train_edges

    @cached_property
    def entry_edges(self) -> IntArray:
        """(2 E,) the training edge of each CSR entry."""
        return np.asarray(self._both[1] % self.train_edges.shape[1])

    @cached_property
    def entry_weights(self) -> FloatArray | None:
        """(2 E,) the weight of each CSR entry, or None."""
        return None if self.weights is None else self.weights[self.entry_edges]

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

    @cached_property
    def share(self) -> FloatArray:
        """(N,) half of each node's part in the expectation over sources."""
        start, _ = self.rows
        degree = np.diff(start).astype(np.float64)
        if self.entry_weights is not None:
            degree = np.bincount(self.sources, self.entry_weights, self.num_nodes).astype(np.float64)
        return np.asarray(0.5 * degree / degree.sum(), dtype=np.float32)

    def rng(self, epoch: int) -> np.random.Generator:
        """The stream of negatives of one epoch."""
        return np.random.default_rng([self.seed, 4, epoch])


@dataclass(frozen=True, eq=False)
class Cells:
    """One member's cell table on a device."""

    group: Tensor
    weight: Tensor
    offset: Tensor
    reach: Tensor | None
    neutral: bool

    @classmethod
    def of(cls, table: CellTable, device: torch.device) -> Cells:
        """The table's tensors; equal tables stay one object, see `EdgeLoss`."""
        return cls(
            torch.as_tensor(table.group, device=device),
            torch.as_tensor(table.weight, device=device),
            torch.as_tensor(table.offset, device=device),
            None if table.reach is None else torch.as_tensor(table.reach, device=device),
            table.reach is None and not table.offset.any(),
        )

    def offsets(self, u: Tensor, v: Tensor) -> Tensor:
        """(n,) offset of each pair of nodes."""
        gu, gv = self.group.index_select(0, u), self.group.index_select(0, v)
        found = self.offset[gu, gv]
        return found if self.reach is None else found + self.reach[u, gv] + self.reach[v, gu]


class EdgeLoss(Protocol):
    """Loss and gradient of all members at an epoch."""

    def __call__(self, z: Tensor, epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """(K,) losses (zeros unless wanted) and the gradient (K, N, d)."""

    def stage(self) -> Callable[[int], None] | None:
        """Keeps an epoch's draws in fixed places on the device from now on, for a step that was recorded to run again.

        Returns:
            What puts an epoch's draws there, without waiting for the device; None, and nothing is kept, where epochs
            differ in size, so that no step can be recorded.
        """


def evaluate(loss: EdgeLoss, z: Tensor, epoch: int, want_loss: bool, scorer: Scorer = DOT) -> Tensor:
    """(K,) losses with the closed-form gradient attached; `scorer` is that of the loss."""
    return apply(_Apply, scorer.left(z), loss, epoch, want_loss)


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
    factors: Sequence[EdgeFactors] = (),
    negatives: str,
    block_size: int,
    num_negatives: int,
    scorer: Scorer = DOT,
) -> EdgeLoss:
    """The loss `kind` ("cross-entropy" or "bpr") over `pairs`, of what `scorer.left` makes of embeddings.

    `tables` are the members'; so are `factors`, none of which means 1 for every edge.
    """
    factors = factors or [NoFactors()] * len(tables)
    known = {id(t): t for t in tables}
    made = {i: Cells.of(t, device) for i, t in known.items()}
    cells = [made[id(t)] for t in tables]
    passes = passes_of(pairs, device, scorer)
    if kind == "bpr":
        return Bpr(cells, factors, passes)
    return CrossEntropy(cells, factors, passes, strangers(negatives, pairs, passes, block_size, num_negatives))


def passes_of(pairs: Pairs, device: torch.device, scorer: Scorer, pool: ThreadPoolExecutor | None = None) -> Passes:
    """Those of the device; `pool` is for the compiled ones, a new one unless given."""
    return CompiledPasses(pairs, pool, scorer) if device.type == "cpu" else TorchPasses(pairs, device, scorer)


def strangers(kind: str, pairs: Pairs, passes: Passes, block_size: int, num_negatives: int) -> Negatives:
    """The second half of the cross-entropy, "shared" or "listed"."""
    return Listed(pairs, num_negatives, passes) if kind == "listed" else SharedBlock(pairs, block_size)


@dataclass(frozen=True, eq=False)
class Block:
    """One step's random nodes, which stand for the strangers of all sources of a side.

    Attributes:
        nodes: (B,) the block, ascending; none where negatives are listed.
        linked: (L,) sources with an edge to a node of the block, or in it themselves.
        column: (L,) which node of the block; such pairs do not count.
    """

    nodes: IntArray
    linked: IntArray
    column: IntArray


@dataclass(frozen=True, eq=False)
class Placed:
    """A block on a device, filled up to a size that is the same at every step.

    Attributes:
        nodes: (B,) as in `Block`.
        linked: (M,) as in `Block`, then the side's first source.
        column: (M,) as in `Block`, then B.
        counted: (M,) float32 1 for pairs, 0 for what fills up.
    """

    nodes: Tensor
    linked: Tensor
    column: Tensor
    counted: Tensor

    @classmethod
    def of(cls, block: Block, first: int, most: int) -> Placed:
        """On the host; `first` source of its side, `most` pairs a block can have."""
        fill = most - len(block.linked)
        return cls(
            torch.as_tensor(block.nodes),
            torch.as_tensor(np.concatenate([block.linked, np.full(fill, first)])),
            torch.as_tensor(np.concatenate([block.column, np.full(fill, len(block.nodes))])),
            (torch.arange(most) < len(block.linked)).float(),
        )

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """Its tensors."""
        return self.nodes, self.linked, self.column, self.counted

    def to(self, device: torch.device) -> Placed:
        """Its copy on `device`, which the device fetches when it comes to it."""
        return Placed(*(_send(t, device) for t in self.parts))


def _send(tensor: Tensor, device: torch.device) -> Tensor:
    pinned = tensor.pin_memory() if device.type == "cuda" else tensor
    return pinned.to(device, non_blocking=True)


_NOBODY = np.zeros(0, np.int64)
_EMPTY = Block(_NOBODY, _NOBODY, _NOBODY)


Factors = list[FloatArray | None]
"""Per member what each training edge's weight is multiplied by, or None."""
Triples = tuple[IntArray, IntArray, IntArray] | tuple[Tensor, Tensor, Tensor]
"""(P,) each: a source, who it is linked to, and a stranger of it, or -1."""


class Passes(Protocol):
    """The passes over pairs; compiled on the CPU, plain torch elsewhere. `z` are left factors of the scores."""

    device: torch.device

    def contrast(
        self, z: Tensor, cells: list[Cells], factors: Factors, blocks: Sequence[Block | Placed], want_loss: bool
    ) -> tuple[Tensor, Tensor]:
        """1/(2 * 2E) sum over both directions of w softplus(-s) + 1/2 E[softplus(s)] over a block per side.

        Returns (K,) losses and the gradient (K, N, d).
        """

    def repel(
        self, z: Tensor, cells: list[Cells], listed: Listed, want_loss: bool, loss: Tensor, gradient: Tensor
    ) -> None:
        """Adds 1/2 mean softplus(s) over listed pairs to `loss`, and its gradient to `gradient`."""

    def rank(
        self, z: Tensor, cells: list[Cells], factors: Factors, triples: Triples, want_loss: bool
    ) -> tuple[Tensor, Tensor]:
        """Mean BPR loss over observed pairs with their strangers: (K,) losses, (K, N, d) gradient."""

    def triples(self, epoch: int) -> tuple[IntArray, IntArray, IntArray]:
        """Observed pairs (u, i) and a fresh stranger j of each, -1 where none was found; the same on every device."""


class CompiledPasses:
    """Kernels over CSR rows, two dimensions of work (members, row blocks) on all cores."""

    device = torch.device("cpu")

    def __init__(self, pairs: Pairs, pool: ThreadPoolExecutor | None = None, scorer: Scorer = DOT) -> None:
        from uge_core.kernels import edges as _kernels

        self.kernels, self.pairs, self.scorer = _kernels, pairs, scorer
        self.threads = cores()
        self.pool = pool or ThreadPoolExecutor(self.threads)
        start, neighbour = pairs.rows
        self.neighbour = neighbour.astype(np.int32, copy=False)
        self.entries: dict[Cells, tuple[FloatArray, FloatArray]] = {}
        self.factored: dict[int, tuple[FloatArray, FloatArray]] = {}
        # (side, first row, last row) of about equal work; eight a side whatever the cores, as sums depend on them
        self.tasks: list[tuple[int, int, int]] = []
        self.effort = 0.0  # of the largest task
        for i, (side, _, _) in enumerate(pairs.sides):
            effort = np.cumsum(np.diff(start)[side] + _ROW)
            cuts = np.searchsorted(effort, np.linspace(0, effort[-1], 8 + 1)) + side.start
            self.tasks += [(i, a, b) for a, b in pairwise([*cuts[:-1].tolist(), side.stop])]
            self.effort = max(self.effort, effort[-1] / 8)

    def contrast(
        self, z: Tensor, cells: list[Cells], factors: Factors, blocks: Sequence[Block | Placed], want_loss: bool
    ) -> tuple[Tensor, Tensor]:
        """See `Passes.contrast`."""
        start, _ = self.pairs.rows
        drawn = [b for b in blocks if isinstance(b, Block)]
        gradient, scale = torch.zeros_like(z), np.float32(0.5 / len(self.neighbour))
        across = self.scorer.right(z)
        nodes = [torch.as_tensor(b.nodes) for b in drawn]
        linked = [_ascending(b, self.pairs.num_nodes) for b in drawn]
        few = [[xk.index_select(0, n).T.contiguous().numpy() for n in nodes] for xk in across]
        push = [[np.zeros_like(few[k][side]) for side, _, _ in self.tasks] for k in range(len(cells))]
        tables = [
            (*self._weighed(k, c, f), c.group.numpy(), [_columns(c, b) for b in drawn])
            for k, (c, f) in enumerate(zip(cells, factors, strict=True))
        ]

        def work(task: tuple[int, int]) -> float:
            k, t = task
            side, first, last = self.tasks[t]
            weight, offset, group, columns = tables[k]
            loss = self.kernels.contrast(
                z[k].numpy(), across[k].numpy(), start, self.neighbour, weight, offset, scale, group, self.pairs.share,
                few[k][side], *columns[side], *linked[side], first, last, want_loss, gradient[k].numpy(), push[k][t],
            )  # fmt: skip
            return float(loss)

        parts = self._map(work, list(product(range(len(cells)), range(len(self.tasks)))), self.effort)
        for k, (t, (side, _, _)) in product(range(len(cells)), enumerate(self.tasks)):
            gradient[k].index_add_(0, nodes[side], torch.as_tensor(push[k][t]).T)
        return torch.tensor(parts).view(len(cells), -1).sum(1).float(), gradient

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
            found = none if cells.neutral else offset[source, target]
            if cells.reach is not None:
                reach = cells.reach.numpy()
                found = found + reach[self.pairs.sources, target] + reach[self.neighbour, source]
            self.entries[cells] = (factor, found)
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
        self, z: Tensor, cells: list[Cells], listed: Listed, want_loss: bool, loss: Tensor, gradient: Tensor
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
                z[k].numpy(), across[k].numpy(), start, neighbour, weight, offsets[cells[k]], scale,
                np.float32(-1.0), first, last, want_loss, gradient[k].numpy(),
            )  # fmt: skip
            return float(part)

        found = self._map(work, tasks, len(neighbour) / 8)
        loss += torch.tensor(found).view(len(cells), -1).sum(1).float()

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
                    none if c.reach is None else c.reach.numpy(),
                    owns[k],
                    scale,
                    want_loss,
                    gradient[k].numpy(),
                )
            )

        found = self._map(work, list(range(len(cells))), len(source))
        return torch.tensor(found, dtype=torch.float32), gradient

    def triples(self, epoch: int) -> tuple[IntArray, IntArray, IntArray]:
        """See `Passes.triples`."""
        start, neighbour = self.pairs.rows
        source, liked = _observed(self.pairs)
        low, high = _range(self.pairs)
        key = self.pairs.rng(epoch).integers(0, 2**63, dtype=np.uint64)
        out = np.empty(len(source), np.int64)
        cuts = np.linspace(0, len(source), self.threads + 1).astype(np.int64).tolist()

        def work(span: tuple[int, int]) -> None:
            self.kernels.draw_strangers(start, neighbour, source, low, high, key, 32, span[0], span[1], out)

        self._map(work, list(pairwise(cuts)), len(source) / self.threads)
        return source, liked, out

    def _map(self, work: Callable[[Any], Any], tasks: Iterable[Any], effort: float) -> list[Any]:
        """What `work` gives for each task, on all cores; in turn where a task of so many entries is done before it is handed over."""
        return list(map(work, tasks) if effort < _WORTH else self.pool.map(work, tasks))


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
            for part in _chunks(self.edges.shape[1]):
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
                if c.reach is not None:
                    s += c.reach[sources].index_select(1, others)
                    s += c.reach.index_select(0, nodes).T.index_select(0, c.group[sources])
            if want_loss:
                loss[k] += (torch.nn.functional.softplus(s) * counts).sum()
            slope = s.sigmoid_().mul_(counts)
            gradient[k, sources].addmm_(slope, few)
            gradient[k].index_add_(0, nodes, slope.T @ across[k, sources])

    def repel(
        self, z: Tensor, cells: list[Cells], listed: Listed, want_loss: bool, loss: Tensor, gradient: Tensor
    ) -> None:
        """See `Passes.repel`."""
        source, target, weight = listed.source, listed.target, listed.weight
        scale, across = 0.5 / len(source), self.scorer.right(z)
        for k, c in enumerate(cells):
            for part in _chunks(len(source)):
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
        u, i, j = (_send(torch.as_tensor(t), self.device) for t in triples)
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


def _chunks(length: int) -> Iterator[slice]:
    """Pieces of a pair list small enough for their rows to stay in memory."""
    for first in range(0, length, _CHUNK):
        yield slice(first, first + _CHUNK)


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
        return none, none, _NOBODY
    nodes = torch.as_tensor(block.nodes)
    others = cells.group.index_select(0, nodes)
    columns = cells.offset.index_select(1, others)
    if cells.reach is None:
        return np.asarray(columns.numpy()), none, _NOBODY
    return np.asarray((columns + cells.reach.index_select(0, nodes).T).numpy()), cells.reach.numpy(), others.numpy()


def _observed(pairs: Pairs) -> tuple[IntArray, IntArray]:
    """Observed pairs in CSR order: from users to items, or both directions."""
    _, neighbour = pairs.rows
    count = pairs.train_edges.shape[1] if pairs.num_users is not None else len(neighbour)
    return pairs.sources[:count], neighbour[:count]


def _range(pairs: Pairs) -> tuple[int, int]:
    return (0 if pairs.num_users is None else pairs.num_users), pairs.num_nodes


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
            j.copy_(_send(torch.as_tensor(self.passes.triples(epoch)[2]), device), non_blocking=True)

        return load


class Negatives(Protocol):
    """The second half of the cross-entropy."""

    def blocks(self, epoch: int) -> Sequence[Block | Placed]:
        """A step's random nodes by side."""

    def stage(self, device: torch.device) -> Callable[[int], None]:
        """See `EdgeLoss.stage`."""

    def add(self, z: Tensor, cells: list[Cells], want_loss: bool, loss: Tensor, gradient: Tensor) -> None:
        """Adds what no block stands for: 1/2 E[softplus(s)] to `loss`, and its gradient to `gradient`."""


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


class SharedBlock:
    """One block of random nodes a step and side, scored against every source."""

    def __init__(self, pairs: Pairs, block_size: int) -> None:
        self.pairs, self.block_size = pairs, block_size
        self.fixed: list[Placed] | None = None

    def blocks(self, epoch: int) -> Sequence[Block | Placed]:
        """See `Negatives.blocks`."""
        return self._drawn(epoch) if self.fixed is None else self.fixed

    def stage(self, device: torch.device) -> Callable[[int], None]:
        """See `EdgeLoss.stage`; a block has no more pairs than its size of the nodes with most edges."""
        start, _ = self.pairs.rows
        most = []
        for _, low, high in self.pairs.sides:
            size = min(self.block_size, high - low)
            own = size if self.pairs.num_users is None else 0
            most.append(int(np.sort(np.diff(start)[low:high])[-size:].sum()) + own)

        def placed(epoch: int) -> list[Placed]:
            sides = zip(self.pairs.sides, self._drawn(epoch), most, strict=True)
            return [Placed.of(block, sources.start, m) for (sources, _, _), block, m in sides]

        fixed = self.fixed = [block.to(device) for block in placed(1)]

        def load(epoch: int) -> None:
            for old, new in zip(fixed, placed(epoch), strict=True):
                for kept, fresh in zip(old.parts, new.parts, strict=True):
                    kept.copy_(_send(fresh, device), non_blocking=True)

        return load

    def _drawn(self, epoch: int) -> list[Block]:
        rng = self.pairs.rng(epoch)
        return [self._block(rng, low, high) for _, low, high in self.pairs.sides]

    def _block(self, rng: np.random.Generator, low: int, high: int) -> Block:
        start, neighbour = self.pairs.rows
        nodes = np.sort(rng.choice(high - low, min(self.block_size, high - low), replace=False)) + low
        linked = np.concatenate([neighbour[start[b] : start[b + 1]] for b in nodes])
        column = np.repeat(np.arange(len(nodes)), start[nodes + 1] - start[nodes])
        if self.pairs.num_users is None:
            linked, column = np.append(linked, nodes), np.append(column, np.arange(len(nodes)))
        return Block(nodes, linked, column)

    def add(self, z: Tensor, cells: list[Cells], want_loss: bool, loss: Tensor, gradient: Tensor) -> None:
        """Nothing: blocks stand for all."""


class Listed:
    """The paper's recipe: strangers drawn once per observed pair and kept for all epochs; they carry its own weight."""

    def __init__(self, pairs: Pairs, num_negatives: int, passes: Passes) -> None:
        self.passes = passes
        rng = np.random.default_rng([pairs.seed, 5])
        start, neighbour = pairs.rows
        keys = pairs.sources * pairs.num_nodes + neighbour
        source, target, weight = [], [], []
        for sources, low, high in pairs.sides:
            span = slice(start[sources.start], start[sources.stop])
            u = np.repeat(pairs.sources[span], num_negatives)
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
            if pairs.entry_weights is not None:
                weight.append(np.delete(np.repeat(pairs.entry_weights[span], num_negatives), bad))
        if not sum(map(len, source)):
            raise ConfigError(
                "negatives = 'listed': every node is linked to every other, so there is no stranger to list"
            )
        self.nobody = [_EMPTY for _ in pairs.sides]
        self.num_nodes = pairs.num_nodes
        self.source = torch.as_tensor(np.concatenate(source), device=passes.device)
        self.target = torch.as_tensor(np.concatenate(target), device=passes.device)
        self.weight = None
        if weight:
            own = np.concatenate(weight)
            self.weight = torch.as_tensor(own / own.mean(), device=passes.device)

    @cached_property
    def rows(self) -> tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.int32], FloatArray]:
        """CSR of both directions: (N + 1,) starts, each entry's row, its other end, its weight or (0,) for 1 throughout."""
        source, target = torch.cat([self.source, self.target]).numpy(), torch.cat([self.target, self.source]).numpy()
        order = np.argsort(source, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=self.num_nodes))])
        weight = np.zeros(0, np.float32) if self.weight is None else self.weight.repeat(2).numpy()[order]
        return start, source[order].astype(np.int32), target[order].astype(np.int32), weight

    def blocks(self, epoch: int) -> Sequence[Block]:
        """None: the list stands for all."""
        return self.nobody

    def stage(self, device: torch.device) -> Callable[[int], None]:
        """See `EdgeLoss.stage`: nothing is drawn."""
        return lambda epoch: None

    def add(self, z: Tensor, cells: list[Cells], want_loss: bool, loss: Tensor, gradient: Tensor) -> None:
        """See `Negatives.add`."""
        self.passes.repel(z, cells, self, want_loss, loss, gradient)
