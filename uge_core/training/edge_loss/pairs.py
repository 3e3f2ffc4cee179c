"""Pairs of nodes to be scored, with their weights and offsets, and what the passes over them must give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from uge_core.arrays import FloatArray, IntArray
from uge_core.debias.bias_free import CellTable

_CHUNK = 1 << 18


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
        return both, np.argsort(both[0] * self.num_nodes + both[1])

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray]:
        """CSR of both directions: (N + 1,) starts and (2 E,) neighbours, ascending in each row."""
        u, v = self.train_edges
        degree = np.bincount(u, minlength=self.num_nodes) + np.bincount(v, minlength=self.num_nodes)
        key = np.concatenate([u * self.num_nodes + v, v * self.num_nodes + u])
        key.sort()  # numbers alone: several times as quick as their order
        key %= self.num_nodes
        return np.concatenate([[0], np.cumsum(degree)]).astype(np.int64), key

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
    node_offset: Tensor | None
    neutral: bool

    @classmethod
    def of(cls, table: CellTable, device: torch.device) -> Cells:
        """The table's tensors; equal tables stay one object, see `EdgeLoss`."""
        return cls(
            torch.as_tensor(table.group, device=device),
            torch.as_tensor(table.weight, device=device),
            torch.as_tensor(table.offset, device=device),
            None if table.node_offset is None else torch.as_tensor(table.node_offset, device=device),
            table.node_offset is None and not table.offset.any(),
        )

    def offsets(self, u: Tensor, v: Tensor) -> Tensor:
        """(n,) offset of each pair of nodes."""
        gu, gv = self.group.index_select(0, u), self.group.index_select(0, v)
        offset = self.offset[gu, gv]
        return offset if self.node_offset is None else offset + self.node_offset[u, gv] + self.node_offset[v, gu]


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
        return Placed(*(to_device(t, device) for t in self.parts))


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """Pairs of strangers that stay the same at every epoch.

    Attributes:
        source: (P,) their first nodes, on the device.
        target: (P,) the other nodes.
        weight: (P,) what each counts, 1 on average, or None.
        num_nodes: N.
    """

    source: Tensor
    target: Tensor
    weight: Tensor | None
    num_nodes: int

    @cached_property
    def rows(self) -> tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.int32], FloatArray]:
        """CSR of both directions: (N + 1,) starts, each entry's row, its other end, its weight or (0,) for 1 throughout."""
        source, target = torch.cat([self.source, self.target]).numpy(), torch.cat([self.target, self.source]).numpy()
        order = np.argsort(source, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=self.num_nodes))])
        weight = np.zeros(0, np.float32) if self.weight is None else self.weight.repeat(2).numpy()[order]
        return start, source[order].astype(np.int32), target[order].astype(np.int32), weight


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; on the way to a GPU nobody waits for it."""
    pinned = tensor.pin_memory() if device.type == "cuda" else tensor
    return pinned.to(device, non_blocking=True)


NOBODY = np.zeros(0, np.int64)
EMPTY_BLOCK = Block(NOBODY, NOBODY, NOBODY)
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
        self, z: Tensor, cells: list[Cells], listed: ListedPairs, want_loss: bool, loss: Tensor, gradient: Tensor
    ) -> None:
        """Adds 1/2 mean softplus(s) over listed pairs to `loss`, and its gradient to `gradient`."""

    def rank(
        self, z: Tensor, cells: list[Cells], factors: Factors, triples: Triples, want_loss: bool
    ) -> tuple[Tensor, Tensor]:
        """Mean BPR loss over observed pairs with their strangers: (K,) losses, (K, N, d) gradient."""

    def triples(self, epoch: int) -> tuple[IntArray, IntArray, IntArray]:
        """Observed pairs (u, i) and a fresh stranger j of each, -1 where none was found; the same on every device."""


def chunks(length: int) -> Iterator[slice]:
    """Pieces of a pair list small enough for their rows to stay in memory."""
    for first in range(0, length, _CHUNK):
        yield slice(first, first + _CHUNK)


def observed_pairs(pairs: Pairs) -> tuple[IntArray, IntArray]:
    """Observed pairs in CSR order: from users to items, or both directions."""
    _, neighbour = pairs.rows
    count = pairs.train_edges.shape[1] if pairs.num_users is not None else len(neighbour)
    return pairs.sources[:count], neighbour[:count]


def node_range(pairs: Pairs) -> tuple[int, int]:
    """The nodes that negatives are drawn from, first and last + 1: items alone in a bipartite graph."""
    return (0 if pairs.num_users is None else pairs.num_users), pairs.num_nodes


class Negatives(Protocol):
    """The second half of the cross-entropy."""

    def blocks(self, epoch: int) -> Sequence[Block | Placed]:
        """A step's random nodes by side."""

    def stage(self, device: torch.device) -> Callable[[int], None]:
        """See `EdgeLoss.stage`."""

    def add(self, z: Tensor, cells: list[Cells], want_loss: bool, loss: Tensor, gradient: Tensor) -> None:
        """Adds what no block stands for: 1/2 E[softplus(s)] to `loss`, and its gradient to `gradient`."""
