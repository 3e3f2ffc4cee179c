"""What encoders see: features or degree bins, and the training edges ready for message passing."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from uge_core.autograd import apply
from uge_core.graph import FloatArray, IntArray

TABLE_WIDTH = 64


@dataclass(frozen=True, eq=False)
class Inputs:
    """One graph's inputs on one device, shared by all members.

    Attributes:
        num_nodes: N.
        train_edges: (2, E_train), each once; held-out edges carry no message.
        features: (N, F) float32 or None; standardised here.
        device: where tensors live.
    """

    num_nodes: int
    train_edges: IntArray
    features: FloatArray | None
    device: torch.device

    @cached_property
    def directed(self) -> IntArray:
        """(2, 2 E_train + N) both directions and a self-loop on each node, sorted by target."""
        u, v = self.train_edges
        loop = np.arange(self.num_nodes)
        both = np.stack([np.concatenate([u, v, loop]), np.concatenate([v, u, loop])])
        return both[:, np.lexsort(both)]

    @cached_property
    def adjacency(self) -> Tensor:
        """(N, N) sparse D^-1/2 (A + I) D^-1/2, symmetric. Source: Kipf and Welling, ICLR 2017."""
        source, target = self.directed
        degree = np.bincount(target, minlength=self.num_nodes).astype(np.float64)
        value = 1.0 / np.sqrt(degree[source] * degree[target])
        return sparse_rows(target, source, value, self.num_nodes, self.num_nodes, self.device)

    @cached_property
    def messages(self) -> tuple[Gather, Gather]:
        """Gathers of rows by the source and by the target of each directed edge."""
        return Gather.build(self.directed[0], self.num_nodes, self.device), Gather.build(
            self.directed[1], self.num_nodes, self.device
        )

    @cached_property
    def standardised(self) -> Tensor | None:
        """(N, F) features with mean 0 and deviation 1; constant columns become 0."""
        if self.features is None:
            return None
        x = torch.as_tensor(self.features, device=self.device)
        return (x - x.mean(0)) / x.std(0).clamp_min(1e-6)

    @cached_property
    def degree_bins(self) -> Tensor:
        """(N, B) one-hot of floor(log2(training degree + 1))."""
        degree = np.bincount(self.train_edges.ravel(), minlength=self.num_nodes)
        bins = np.floor(np.log2(degree + 1)).astype(np.int64)
        return torch.nn.functional.one_hot(torch.as_tensor(bins, device=self.device)).float()

    def start(self, tables: dict[str, Tensor], kind: str) -> Tensor:
        """(K, N, F) learned or (N, F) fixed input of an encoder."""
        fixed = self.first(kind)
        return tables["input"] if fixed is None else fixed

    def first(self, kind: str) -> Tensor | None:
        """(N, F) fixed input of an encoder, or None where it learns a table."""
        if kind == "degree":
            return self.degree_bins
        return self.standardised if kind == "auto" else None


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


def sparse_rows(
    row: IntArray, column: IntArray, value: np.ndarray[Any, Any], height: int, width: int, device: torch.device
) -> Tensor:
    """A sparse float32 matrix in CSR form."""
    order = np.lexsort((column, row))
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


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: Tensor) -> Tensor:
        ctx.adjacency = adjacency
        return _columns(adjacency, x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _columns(ctx.adjacency, grads[0]), None


def _columns(adjacency: Tensor, x: Tensor) -> Tensor:
    """One sparse product for all members: (K, N, w) laid out as (N, K w)."""
    k, n, w = x.shape
    product: Tensor = adjacency @ x.transpose(0, 1).reshape(n, k * w)
    return product.view(n, k, w).transpose(0, 1)


def propagate(x: Tensor, adjacency: Tensor) -> Tensor:
    """(K, N, w) A x for a symmetric sparse A, whose gradient is A again."""
    return apply(_Propagate, x, adjacency)


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
