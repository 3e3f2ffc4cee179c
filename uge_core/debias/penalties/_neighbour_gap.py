"""The neighbour gap's arithmetic: shares of groups among soft neighbours, and the closed-form gradient."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from uge_core.autograd import apply
from uge_core.kernels.soft_neighbours import soft_neighbours
from uge_core.ranks import ALONE, Ranks
from uge_core.row_products import times

_ROWS = 32  # people of a block that a thread takes
_SPREAD = 4096  # people, evenly of all groups, from whom axes are estimated
_ENTRIES = 1 << 22  # similarities held at once where torch computes them
_FLAT = 1e-6  # of the largest variance: a direction with less is left as narrow as that
_LEAST = 1e-9  # a share below it counts as much


def neighbour_divergence(
    asked: Tensor,
    others: Tensor,
    own: Tensor,
    code: Tensor,
    prior: Tensor,
    temperature: float,
    pool: ThreadPoolExecutor | None = None,
    ranks: Ranks = ALONE,
) -> Tensor:
    """The mean over people of KL(prior | groups of their soft neighbours), by cosines.

    On the CPU a compiled pass does it in float32, spread over `pool` and over `ranks`, in any other place torch.

    Args:
        asked: (B, d) vectors of people.
        others: (M, d) those who may be their neighbours.
        own: (B,) which of `others` each is, or -1.
        code: (M,) groups, ascending.
        prior: (G,) float64 shares of the groups.
        temperature: of the softmax of cosines.
        pool: threads.
        ranks: who has a share of the work.
    """
    compiled = asked.device.type == "cpu" and asked.dtype == torch.float32
    x, y = normalize(asked, dim=1), normalize(others, dim=1)
    if compiled:
        return apply(_Compiled, x, y, own, code, prior, temperature, pool, ranks)
    return apply(_Plain, x, y, own, code, prior, temperature)


def whitened(asked: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Both less the mean of `others` (M, d), in axes in which these vary alike; mean and axes carry no gradient."""
    centre, axes = (torch.as_tensor(x, dtype=others.dtype, device=others.device) for x in _axes(others))
    return times(asked - centre, axes), times(others - centre, axes)


def _axes(others: Tensor) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(d,) mean and (d, d) root of the inverse covariance, added up in one order whatever the threads."""
    x = others[:: -(-len(others) // _SPREAD)].detach().cpu().numpy().astype(np.float64)
    centre = np.add.reduce(x, axis=0) / len(x)
    x -= centre
    level, axes = np.linalg.eigh(np.einsum("ni,nj->ij", x, x) / len(x))
    return centre, (axes / np.sqrt(np.maximum(level, max(_FLAT * level[-1], 1e-30)))) @ axes.T


class _Compiled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        asked: Tensor,
        others: Tensor,
        own: Tensor,
        code: Tensor,
        prior: Tensor,
        temperature: float,
        pool: ThreadPoolExecutor | None,
        ranks: Ranks,
    ) -> Tensor:
        dim = asked.shape[1]
        x, y = (pad(t.detach(), (0, -dim % 4)).contiguous().numpy() for t in (asked, others))
        columns, start = np.ascontiguousarray(y.T), np.searchsorted(code.numpy(), np.arange(len(prior) + 1))
        blocks = [(k, min(k + _ROWS, len(x))) for k in range(0, len(x), _ROWS)]
        mine = [blocks[k] for k in ranks.share(len(blocks))]
        # A row for each of the asked and of the others, and one whose first number is the sum.
        parts = torch.zeros(len(mine), len(x) + len(y) + 1, x.shape[1])

        sharpness = np.float32(1 / temperature)

        def work(block: tuple[Tensor, tuple[int, int]]) -> None:
            part, (first, last) = block[0].numpy(), block[1]
            back, forth = part[first:last], part[len(x) : -1]
            part[-1, 0] = soft_neighbours(
                x, own.numpy(), columns, y, start, prior.numpy(), sharpness, first, last, back, forth
            )

        list((map if pool is None else pool.map)(work, zip(parts, mine, strict=True)))
        total = ranks.added(list(parts), parts.new_empty(parts.shape[1:])) / len(x)
        ctx.save_for_backward(total[: len(x), :dim], total[len(x) : -1, :dim])
        return total[-1, 0].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        back, forth = ctx.saved_tensors
        return back * grads[0], forth * grads[0], None, None, None, None, None, None


class _Plain(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, asked: Tensor, others: Tensor, own: Tensor, code: Tensor, prior: Tensor, temperature: float
    ) -> Tensor:
        total, back, forth = prior.new_zeros(()), torch.empty_like(asked), torch.zeros_like(others)
        member = torch.zeros(len(others), len(prior), dtype=asked.dtype, device=asked.device)
        member.scatter_(1, code[:, None], 1.0)
        share_of_prior = prior.to(asked.dtype)
        rows = max(1, _ENTRIES // len(others))
        for begin in range(0, len(asked), rows):
            part = slice(begin, begin + rows)
            score = asked[part] @ others.T / temperature
            score.masked_fill_(own[part, None] == torch.arange(len(others), device=own.device), -torch.inf)
            soft = torch.softmax(score, dim=1)
            share = soft @ member
            least = share.clamp_min(_LEAST)
            total += torch.special.xlogy(share_of_prior, share_of_prior / least).sum()
            pull = -share_of_prior / least
            slope = soft * (pull @ member.T - (share * pull).sum(1, keepdim=True)) / temperature
            back[part] = slope @ others
            forth.addmm_(slope.T, asked[part])
        ctx.save_for_backward(back / len(asked), forth / len(asked))
        return (total / len(asked)).to(asked.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        back, forth = ctx.saved_tensors
        return back * grads[0], forth * grads[0], None, None, None, None


class _OwnRows(torch.autograd.Function):
    """The same numbers; of several ranks each keeps the gradient of the rows whose loss it computes."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, ranks: Ranks) -> Tensor:
        ctx.ranks = ranks
        return z.view_as(z)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (gradient,) = grads
        begin, end = ctx.ranks.slopes(len(gradient))
        if end - begin == len(gradient):
            return gradient, None
        own = torch.zeros_like(gradient)
        own[begin:end] = gradient[begin:end]
        return own, None


def own_rows(z: Tensor, ranks: Ranks) -> Tensor:
    """`z` (N, d), whose gradient is that of this rank's rows alone."""
    return apply(_OwnRows, z, ranks)
