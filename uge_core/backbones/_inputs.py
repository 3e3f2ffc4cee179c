"""What encoders see: features or degree bins, and the training edges ready for message passing."""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor

from uge_core.arrays import DirectionArray, FloatArray, IntArray
from uge_core.autograd import apply
from uge_core.machine import cores
from uge_core.ranks import ALONE, Ranks

TABLE_WIDTH = 64


@dataclass(frozen=True, eq=False)
class Inputs:
    """One graph's inputs on one device, shared by all members.

    Attributes:
        num_nodes: N.
        train_edges: (2, E_train), each once; held-out edges carry no message.
        features: (N, F) float32 or None; standardised here.
        device: where tensors live.
        weights: (E_train,) the edges' weights, 1 on average, or None.
        directions: (E_train,) which way messages run, as in `AttributedGraph`, or None for both ways.
        num_bins: columns of `degree_bins`, the last one for all degrees beyond; None: as many as there are.
        ranks: who has which rows, where several processes encode by `row_products` and `propagate`.
    """

    num_nodes: int
    train_edges: IntArray
    features: FloatArray | None
    device: torch.device
    weights: FloatArray | None = None
    directions: DirectionArray | None = None
    num_bins: int | None = None
    ranks: Ranks = ALONE

    @cached_property
    def message_edges(self) -> tuple[IntArray, npt.NDArray[np.float64] | None]:
        """Where messages run: (2, M) source and target, sorted by target; (M,) their weights, or None.

        An edge carries one both ways, of a directed graph the ways it runs; each node has a self-loop of weight 1,
        M = 2 E_train + N without directions.
        """
        u, v = self.train_edges
        up = down = np.ones(len(u), dtype=bool)
        if self.directions is not None:
            up, down = self.directions >= 0, self.directions <= 0
        loop = np.arange(self.num_nodes)
        ends = np.stack([np.concatenate([u[up], v[down], loop]), np.concatenate([v[up], u[down], loop])])
        order = np.argsort(ends[1] * np.int64(self.num_nodes) + ends[0])  # one key: much quicker than lexsort
        if self.weights is None:
            return ends[:, order], None
        weight = np.concatenate([self.weights[up], self.weights[down], np.ones(self.num_nodes)])
        return ends[:, order], weight[order]

    @cached_property
    def adjacency(self) -> Adjacency:
        """(N, N) sparse D^-1/2 (A + I) D^-1/2, D the sums over incoming messages. Source: Kipf and Welling, ICLR 2017.

        With weights and directions as torch_geometric's gcn_norm, the weights being scaled to mean 1. Of several ranks
        each has its own rows of the matrix and of its transpose.
        """
        (source, target), weight = self.message_edges
        degree = np.bincount(target, weight, minlength=self.num_nodes).astype(np.float64)
        value = (1.0 if weight is None else weight) / np.sqrt(degree[source] * degree[target])
        forward = self._own_rows(target, source, value)
        return Adjacency(forward, forward if self.directions is None else self._own_rows(source, target, value))

    def _own_rows(self, row: IntArray, column: IntArray, value: np.ndarray[Any, Any]) -> Tensor:
        """This rank's rows of a sparse (N, N) matrix."""
        first, last = self.ranks.span(self.num_nodes)
        if last - first < self.num_nodes:
            mine = (first <= row) & (row < last)
            row, column, value = row[mine] - first, column[mine], value[mine]
        return sparse_rows(row, column, value, last - first, self.num_nodes, self.device)

    @cached_property
    def messages(self) -> tuple[Gather, Gather]:
        """Gathers of rows by the source and by the target of each message."""
        (source, target), _ = self.message_edges
        return Gather.build(source, self.num_nodes, self.device), Gather.build(target, self.num_nodes, self.device)

    @cached_property
    def received(self) -> tuple[IntArray, npt.NDArray[np.int32]]:
        """(N + 1,) where each node's incoming messages begin, (M,) their senders."""
        (source, target), _ = self.message_edges
        return _starts(target, self.num_nodes), source.astype(np.int32)

    @cached_property
    def sent(self) -> tuple[IntArray, npt.NDArray[np.int32]]:
        """(N + 1,) where each node's outgoing messages begin, (M,) their receivers."""
        (source, target), _ = self.message_edges
        return _starts(source, self.num_nodes), target[np.argsort(source, kind="stable")].astype(np.int32)

    @cached_property
    def place(self) -> npt.NDArray[np.int32]:
        """(M,) where each message of `received` stands in `sent`."""
        (source, _), _ = self.message_edges
        place = np.empty(len(source), dtype=np.int32)
        place[np.argsort(source, kind="stable")] = np.arange(len(source))
        return place

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """Threads for compiled passes."""
        return ThreadPoolExecutor(cores())

    @cached_property
    def standardised(self) -> Tensor | None:
        """(N, F) features with mean 0 and deviation 1; constant columns become 0. Of several ranks each has its rows."""
        if self.features is None:
            return None
        x = torch.as_tensor(self.features, device=self.device)
        return (self.ranks.own(x) - x.mean(0)) / x.std(0).clamp_min(1e-6)

    @cached_property
    def degree_bins(self) -> Tensor:
        """(N, B) one-hot of floor(log2(training degree + 1)). Of several ranks each has its rows."""
        degree = np.bincount(self.train_edges.ravel(), minlength=self.num_nodes)
        bins = np.floor(np.log2(degree + 1)).astype(np.int64)
        number = self.num_bins or int(bins.max()) + 1
        index = torch.as_tensor(
            np.minimum(bins, number - 1)[slice(*self.ranks.span(self.num_nodes))], device=self.device
        )
        return torch.nn.functional.one_hot(index, number).float()

    def start(self, tables: dict[str, Tensor], kind: str) -> Tensor:
        """(K, N, F) learned or (N, F) fixed input of an encoder."""
        fixed = self.first(kind)
        return tables["input"] if fixed is None else fixed

    def first(self, kind: str) -> Tensor | None:
        """(N, F) fixed input of an encoder, or None where it learns a table."""
        if kind == "degree":
            return self.degree_bins
        return self.standardised if kind == "auto" else None


def num_degree_bins(edges: IntArray, num_nodes: int) -> int:
    """B, the bins of `Inputs.degree_bins` that edges (2, E) need."""
    return int(np.log2(np.bincount(edges.ravel(), minlength=num_nodes).max() + 1)) + 1


class _Spread(torch.autograd.Function):
    """Rows of a table by index; the backward is a sparse product, so equal runs are equal to the bit."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gather: Gather) -> Tensor:
        ctx.gather = gather
        return x.index_select(0, gather.index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.gather.rows @ grads[0], None


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gather: Gather) -> Tensor:
        ctx.gather = gather
        return gather.rows @ x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0].index_select(0, ctx.gather.index), None


@dataclass(frozen=True, eq=False)
class Gather:
    """Spreads node rows (N, w) to edges (M, w) and sums edge rows back to nodes."""

    index: Tensor
    rows: Tensor

    @classmethod
    def build(cls, index: IntArray, num_nodes: int, device: torch.device) -> Gather:
        """For the node number of each edge."""
        rows = sparse_rows(index, np.arange(len(index)), np.ones(len(index)), num_nodes, len(index), device)
        return cls(torch.as_tensor(index, device=device), rows)

    def spread(self, x: Tensor) -> Tensor:
        """(M, w) the row of each edge's node."""
        return apply(_Spread, x, self)

    def collect(self, x: Tensor) -> Tensor:
        """(N, w) sum over each node's edges."""
        return apply(_Collect, x, self)


def _starts(row: IntArray, num_nodes: int) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=num_nodes))])


def sparse_rows(
    row: IntArray, column: IntArray, value: np.ndarray[Any, Any], height: int, width: int, device: torch.device
) -> Tensor:
    """A sparse float32 matrix in CSR form."""
    order = np.argsort(row * np.int64(width) + column, kind="stable")  # linear where it is sorted already
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=height))])
    with warnings.catch_warnings():
        # torch calls its CSR layout beta once per process; its products are what we test
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
        return torch.sparse_csr_tensor(
            torch.as_tensor(start),
            torch.as_tensor(column[order]),
            torch.as_tensor(value[order], dtype=torch.float32),
            size=(height, width),
            device=device,
        )


@dataclass(frozen=True, eq=False)
class Adjacency:
    """A sparse matrix and its transpose, one object where it is symmetric."""

    forward: Tensor
    backward: Tensor


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: Adjacency, ranks: Ranks) -> Tensor:
        ctx.adjacency, ctx.ranks = adjacency, ranks
        return _columns(adjacency.forward, ranks.complete(x))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _columns(ctx.adjacency.backward, ctx.ranks.complete(grads[0])), None, None


def _columns(adjacency: Tensor, x: Tensor) -> Tensor:
    """One sparse product for all members: (K, N, w) laid out as (N, K w)."""
    k, n, w = x.shape
    product: Tensor = adjacency @ x.transpose(0, 1).reshape(n, k * w)
    return product.view(adjacency.shape[0], k, w).transpose(0, 1)


def propagate(x: Tensor, adjacency: Adjacency, ranks: Ranks = ALONE) -> Tensor:
    """(K, N, w) A x, whose gradient is that of the transpose; of several ranks each gives and gets its rows."""
    return apply(_Propagate, x, adjacency, ranks)


def glorot(fan_in: int, fan_out: int, generator: Generator) -> Tensor:
    """(fan_in, fan_out) uniform in +-sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio, AISTATS 2010."""
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    return (torch.rand(fan_in, fan_out, generator=generator) * 2 - 1) * limit


def input_table(inputs: Inputs, kind: str, generator: Generator) -> tuple[dict[str, Tensor], int]:
    """The learned input table (N, 64), or none where the input is fixed; and the input's width."""
    fixed = inputs.first(kind)
    if fixed is not None:
        return {}, int(fixed.shape[1])
    return {"input": torch.randn(inputs.num_nodes, TABLE_WIDTH, generator=generator)}, TABLE_WIDTH
