"""The kernel gap's arithmetic: feature means by group and the closed-form gradient."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from uge_core.autograd import apply
from uge_core.group_means import Groups

_ROWS = 4096  # rows of features held at once: they stay in the cache and memory stays flat


def fourier_gap(z: Tensor, groups: list[Groups], weight: Tensor, phase: Tensor) -> Tensor:
    """Sum over attributes of sum_g (n_g / N) mean_D (mu_g - mu)^2 for features sqrt(2) cos(z W + b)."""
    return apply(_FourierGap, z, weight, phase, [g.index for g in groups], [g.size.to(z.dtype) for g in groups])


class _FourierGap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, weight: Tensor, phase: Tensor, codes: list[Tensor], sizes: list[Tensor]) -> Tensor:
        num_features = weight.shape[1]
        sums = [z.new_zeros(len(s) + 1, num_features) for s in sizes]
        for rows in range(0, len(z), _ROWS):
            f = torch.addmm(phase, z[rows : rows + _ROWS], weight).cos_()
            for total, code in zip(sums, codes, strict=True):
                total.index_add_(0, code[rows : rows + _ROWS], f)
        value = z.new_zeros(())
        slopes = []
        for total, size in zip(sums, sizes, strict=True):
            n = size.sum()
            mean = total[:-1].sum(0) / n
            gap = total[:-1] / size.clamp_min(1)[:, None] - mean
            gap = gap * (size > 0)[:, None]
            # features are sqrt(2) cos, so their squares carry a factor 2
            value = value + 2 * (size[:, None] * gap.square()).sum() / (n * num_features)
            slopes.append(torch.cat([gap * (4 / (n * num_features)), gap.new_zeros(1, num_features)]))
        ctx.save_for_backward(z, weight, phase, *codes, *slopes)
        ctx.num = len(codes)
        return value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        z, weight, phase, *rest = ctx.saved_tensors
        codes, slopes = rest[: ctx.num], rest[ctx.num :]
        out = torch.empty_like(z)
        for rows in range(0, len(z), _ROWS):
            part = slice(rows, rows + _ROWS)
            slope = slopes[0].index_select(0, codes[0][part])
            for s, c in zip(slopes[1:], codes[1:], strict=True):
                slope += s.index_select(0, c[part])
            sine = torch.addmm(phase, z[part], weight).sin_()
            torch.mm(sine.mul_(slope).neg_(), weight.T, out=out[part])
        return out * grads[0], None, None, None, None


def moment_gap(z: Tensor, groups: Groups, median: Tensor) -> Tensor:
    """sum_g (n_g / N) |mean_g phi - mean phi|^2 for phi = (z, vec(z z^T)) in units of the median distance."""
    x = z / median.sqrt()
    i, j = torch.triu_indices(x.shape[1], x.shape[1], device=z.device)
    # an off-diagonal product stands twice in z z^T
    twice = torch.where(i == j, 1.0, math.sqrt(2.0)).to(z.dtype)
    phi = torch.cat([x, x.index_select(1, i) * x.index_select(1, j) * twice], dim=1)
    size = groups.size
    mean = groups.means(phi)
    overall = (mean * size[:, None]).sum(0) / size.sum()
    return (((mean - overall).square().sum(1) * size).sum() / size.sum()).to(z.dtype)
