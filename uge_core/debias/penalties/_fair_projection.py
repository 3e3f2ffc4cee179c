"""The fair projection's arithmetic: Newton's steps on the multipliers, the divergence and its slope."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from uge_core.autograd import apply
from uge_core.row_products import in_one_thread

_STEPS = 10  # of Newton's; always as many, so that a step of training can be recorded
_TINY = 1e-30  # of what a logarithm is taken


def divergence(first: Tensor, second: Tensor, left: Tensor, right: Tensor, num_groups: int) -> Tensor:
    """KL(h_F || h), a mean over the pairs across, with its gradient.

    Args:
        first: (n, d) rows of one lot.
        second: (m, d) of the other.
        left: (n,) groups of the one.
        right: (m,) of the other.
        num_groups: G.
    """
    return apply(_Divergence, first, second, left, right, num_groups)


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, left: Tensor, right: Tensor, num_groups: int) -> Tensor:
        def work() -> tuple[Tensor, ...]:
            scores = first @ second.T
            fair = scores + _of_pairs(multipliers(scores, left, right, num_groups), left, right, scores)
            slope = (torch.sigmoid(scores) - torch.sigmoid(fair)) / scores.numel()
            return (softplus(scores) - softplus(fair)).mean(), slope @ second, slope.T @ first

        # a sum over all pairs has other bits with other threads
        value, *slopes = in_one_thread(work) if first.device.type == "cpu" else work()
        ctx.save_for_backward(*slopes)
        return value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        of_first, of_second = ctx.saved_tensors
        return of_first * grads[0], of_second * grads[0], None, None, None


def multipliers(scores: Tensor, left: Tensor, right: Tensor, num_groups: int) -> Tensor:
    """What each block's logits must be shifted by.

    Args:
        scores: (n, m) logits of pairs.
        left: (n,) groups of the rows.
        right: (m,) groups of the columns.
        num_groups: G.

    Returns:
        (G, G) float64, symmetric; 0 for blocks without a pair.
    """

    def sums(x: Tensor) -> Tensor:
        rows = x.new_zeros(num_groups, x.shape[1]).index_add_(0, left, x)
        table = x.new_zeros(num_groups, num_groups).index_add_(0, right, rows.T.contiguous()).double()
        return table + table.T

    number = sums(torch.ones_like(scores))
    there, weight, number = number > 0, number / number.sum(), number.clamp_min(1)
    # each block's mean to 1/2; means of both answers, as 1 less a small chance is 1
    shift = sums(torch.sigmoid(-scores)).clamp_min(_TINY).log() - sums(torch.sigmoid(scores)).clamp_min(_TINY).log()
    shift = (shift - (weight * shift).sum()) * there
    for _ in range(_STEPS):
        chance = torch.sigmoid(scores + _of_pairs(shift, left, right, scores))
        mean = sums(chance) / number
        spread = (sums(chance * (1 - chance)) / number).clamp_min(1e-9)
        common = (weight * mean / spread).sum() / (weight / spread).sum()
        step = (common - mean) / spread * there
        most = step.abs().max().clamp_min(1e-12)
        shift = shift + step * (torch.log1p(most) / most)
    return shift


def _of_pairs(shift: Tensor, left: Tensor, right: Tensor, scores: Tensor) -> Tensor:
    """(n, m) each pair's entry of `shift` (G, G)."""
    return shift.to(scores.dtype).index_select(0, left).index_select(1, right)
