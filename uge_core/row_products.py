"""Products with a small matrix and sums over the rows of a large one, whose bits do not depend on threads.

Libraries cut a matrix among as many threads as there are, and a sum over rows with it. With another number of threads
a gradient's last bits changed, and after some epochs its first digits. Here rows are cut into blocks of one size, a
thread computes a block by itself, and the blocks' results are added in their order. The bits are still those of one
processor and one build of torch.

On other devices torch does it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier, Lock
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from uge_core.autograd import apply
from uge_core.machine import cores
from uge_core.ranks import ALONE, Ranks

BLOCK = 1024
"""Rows of a block."""
_WORTH = 1 << 17  # numbers whose products take longer than handing blocks to several threads
_EPS = 1e-5  # torch's of a batch normalisation


def times(x: Tensor, w: Tensor, ranks: Ranks = ALONE) -> Tensor:
    """(..., N, h) x w.

    Args:
        x: (..., N, f) large, or (N, f) for all; of several ranks each has rows of its own, whole blocks.
        w: (..., f, h) small.
        ranks: who adds up the gradient of w.
    """
    if x.device.type != "cpu":
        return x @ w
    if w.dim() == 2:
        return apply(_Times, x, w, ranks)
    if len(w) == 1:
        return apply(_Times, x.squeeze(0) if x.dim() == 3 else x, w.squeeze(0), ranks).unsqueeze(0)  # nothing is copied
    each = x.unbind(0) if x.dim() == 3 else [x] * len(w)
    return torch.stack([apply(_Times, xk, wk, ranks) for xk, wk in zip(each, w.unbind(0), strict=True)])


def plus(x: Tensor, b: Tensor, ranks: Ranks = ALONE) -> Tensor:
    """(..., N, h) x + b, b (..., h) being added to each row; `ranks` as in `times`."""
    return x + b.unsqueeze(-2) if x.device.type != "cpu" else apply(_Plus, x, b, ranks)


def elu(x: Tensor) -> Tensor:
    """(N, h) x where it is positive, else exp(x) - 1. Torch takes another exponential for the last few numbers of a thread's share."""
    return torch.nn.functional.elu(x) if x.device.type != "cpu" else apply(_Elu, x)


def normalised(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """(N, h) scale (x - mean) / deviation + shift over the N rows, as torch's batch_norm in training."""
    if x.device.type != "cpu":
        return torch.nn.functional.batch_norm(x, None, None, scale, shift, training=True)
    return apply(_Normalised, x, scale, shift)


def row_sums(x: Tensor, ranks: Ranks = ALONE) -> Tensor:
    """(..., h) the sum of the rows of x (..., N, h), which carries no gradient; `ranks` as in `times`."""
    x = x.detach()
    parts: list[Tensor] = [x] * _blocks(x)

    def work(j: int, rows: slice) -> None:
        parts[j] = x[..., rows, :].sum(-2)

    _each(work, x)
    return _added(parts, x, x.new_empty(*x.shape[:-2], x.shape[-1]), ranks)


def in_one_thread(work: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """What `work`, which carries no gradient, gives on the CPU in a thread in which torch uses no other."""

    def alone() -> tuple[Tensor, ...]:
        with torch.no_grad():
            return work()

    return _pool().submit(alone).result()


def _blocks(x: Tensor) -> int:
    return max(1, -(-x.shape[-2] // BLOCK))


def _each(work: Callable[[int, slice], None], x: Tensor) -> None:
    """Calls `work` with the number and the rows of each block of x (..., N, h), each in one thread of `_pool`."""
    blocks, pool = _blocks(x), _pool()
    workers = min(torch.get_num_threads(), cores(), blocks) if x.numel() >= _WORTH else 1

    def share(first: int) -> None:
        with torch.no_grad():
            for j in range(first, blocks, workers):
                work(j, slice(j * BLOCK, (j + 1) * BLOCK))

    for done in [pool.submit(share, first) for first in range(workers)]:
        done.result()


def _pool() -> ThreadPoolExecutor:
    """Threads in each of which torch uses no other, begun by whoever asks first."""
    with _beginning:
        return _begun()


@cache
def _begun() -> ThreadPoolExecutor:
    threads, num = torch.get_num_threads(), cores()
    ready = Barrier(num)

    def begin() -> None:
        torch.get_num_threads()  # a thread's first call gives it the default, over what was set before
        torch.set_num_threads(1)
        ready.wait()

    pool = ThreadPoolExecutor(num)
    for started in [pool.submit(begin) for _ in range(num)]:
        started.result()
    # torch gives threads to come what was set last, wherever
    torch.set_num_threads(threads)
    return pool


_beginning = Lock()


def _forget() -> None:
    """A process that was forked has none of its parent's threads."""
    global _beginning
    _begun.cache_clear()
    _beginning = Lock()


os.register_at_fork(after_in_child=_forget)


def _added(parts: list[Tensor], x: Tensor, like: Tensor, ranks: Ranks) -> Tensor:
    """The sum of all blocks' parts; a rank without rows has none, as adding its zeros would make +0 of -0."""
    return ranks.added(parts if x.shape[-2] or ranks.rank == 0 else [], like)


class _Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, ranks: Ranks) -> Tensor:
        ctx.save_for_backward(x, w)
        ctx.ranks = ranks
        out = x.new_empty(len(x), w.shape[1])

        def work(j: int, rows: slice) -> None:
            torch.mm(x[rows], w, out=out[rows])

        _each(work, x)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, w = ctx.saved_tensors
        (slope,) = grads
        across = w.T
        of_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        parts = [w] * _blocks(x)

        def work(j: int, rows: slice) -> None:
            if of_x is not None:
                torch.mm(slope[rows], across, out=of_x[rows])
            parts[j] = x[rows].T @ slope[rows]

        _each(work, x)
        return of_x, _added(parts, x, w, ctx.ranks), None


class _Plus(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, b: Tensor, ranks: Ranks) -> Tensor:
        ctx.ranks = ranks
        return x + b.unsqueeze(-2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0], row_sums(grads[0], ctx.ranks), None


class _Elu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        out = torch.empty_like(x)

        def work(j: int, rows: slice) -> None:
            out[rows] = torch.nn.functional.elu(x[rows])

        _each(work, x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (out,) = ctx.saved_tensors
        return grads[0] * torch.where(out > 0, 1.0, out + 1.0)


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        centred = x - row_sums(x) / len(x)
        centred = centred - row_sums(centred) / len(x)  # what rounding left of a large mean
        inverse = (row_sums(centred.square()) / len(x) + _EPS).rsqrt()
        unit = centred * inverse
        ctx.save_for_backward(unit, inverse, scale)
        return unit * scale + shift

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        unit, inverse, scale = ctx.saved_tensors
        (slope,) = grads
        total, along = row_sums(slope), row_sums(slope * unit)
        back = (slope - total / len(unit) - unit * (along / len(unit))) * (scale * inverse)
        return back, along, total
