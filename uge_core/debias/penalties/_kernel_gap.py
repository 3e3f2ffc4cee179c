"""The kernel gap's arithmetic: feature means by group and the closed-form gradient."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uge_core.autograd import apply
from uge_core.debias.penalties.group_means import Groups
from uge_core.kernels.waves import ROWS, wave_back, wave_sums
from uge_core.ranks import ALONE, Ranks

_SUMS = 1 << 24
_ROWS = 4096  # rows of features held at once: they stay in the cache and memory stays flat


def fourier_gap(
    z: Tensor,
    groups: list[Groups],
    weight: Tensor,
    phase: Tensor,
    pool: ThreadPoolExecutor | None = None,
    ranks: Ranks = ALONE,
) -> Tensor:
    """Sum over attributes of sum_g (n_g / N) mean_D (mu_g - mu)^2 for features sqrt(2) cos(z W + b).

    On the CPU compiled passes do it in float32, spread over `pool`, in any other place torch. Of several `ranks` each
    sums up its share of the rows, and has the gradient of its `slopes`.
    """
    compiled = z.device.type == "cpu" and z.dtype == torch.float32
    waves = _Compiled(z, weight, phase, groups, pool, ranks) if compiled else _Plain(z, weight, phase, groups)
    return apply(_FourierGap, z, waves, [g.size.to(z.dtype) for g in groups])


class _Plain:
    """Sums of cosines by group and the gradient through them, in torch."""

    def __init__(self, z: Tensor, weight: Tensor, phase: Tensor, groups: list[Groups]) -> None:
        self.z, self.weight, self.phase = z.detach(), weight, phase
        self.codes, self.rows = [g.index for g in groups], [len(g.size) + 1 for g in groups]

    def sums(self) -> list[Tensor]:
        """Per attribute (G + 1, D), nodes outside every group in the last row."""
        out = [self.z.new_zeros(rows, self.weight.shape[1]) for rows in self.rows]
        for begin in range(0, len(self.z), _ROWS):
            part = slice(begin, begin + _ROWS)
            f = torch.addmm(self.phase, self.z[part], self.weight).cos_()
            for total, code in zip(out, self.codes, strict=True):
                total.index_add_(0, code[part], f)
        return out

    def gradient(self, slopes: list[Tensor]) -> Tensor:
        """(N, d) of sum_i slope_{g_i} . cos(z_i W + b), the slopes as `sums`."""
        out = torch.empty_like(self.z)
        for begin in range(0, len(self.z), _ROWS):
            part = slice(begin, begin + _ROWS)
            slope = slopes[0].index_select(0, self.codes[0][part])
            for s, c in zip(slopes[1:], self.codes[1:], strict=True):
                slope += s.index_select(0, c[part])
            sine = torch.addmm(self.phase, self.z[part], self.weight).sin_()
            torch.mm(sine.mul_(slope).neg_(), self.weight.T, out=out[part])
        return out


class _Compiled:
    """The same in compiled passes; blocks of rows are cut alike whatever the threads."""

    def __init__(
        self,
        z: Tensor,
        weight: Tensor,
        phase: Tensor,
        groups: list[Groups],
        pool: ThreadPoolExecutor | None,
        ranks: Ranks,
    ) -> None:
        self.z = z.detach().contiguous().numpy()
        self.weight, self.phase = (np.ascontiguousarray((t / (2 * math.pi)).numpy()) for t in (weight, phase))
        self.ends = np.cumsum([len(g.size) + 1 for g in groups])
        shifts = [0, *self.ends[:-1]]
        self.code = np.stack([g.index.numpy() + s for g, s in zip(groups, shifts, strict=True)], axis=1)
        # Every block has sums of its own: wider ones where these would be more than `_SUMS` numbers.
        rows = ROWS * max(1, -(-len(self.z) * int(self.ends[-1]) * weight.shape[1] // (ROWS * _SUMS)))
        self.blocks = [(k * rows, min((k + 1) * rows, len(self.z))) for k in range(-(-len(self.z) // rows))]
        self.each, self.ranks = map if pool is None else pool.map, ranks

    def sums(self) -> list[Tensor]:
        """See `_Plain.sums`."""
        mine = [self.blocks[k] for k in self.ranks.share(len(self.blocks))]
        parts = np.zeros((len(mine), self.ends[-1], len(self.phase)), np.float32)

        def work(block: tuple[int, tuple[int, int]]) -> None:
            k, (first, last) = block
            wave_sums(self.z, self.weight, self.phase, self.code, first, last, parts[k])

        list(self.each(work, enumerate(mine)))
        total = self.ranks.added(list(torch.from_numpy(parts)), torch.empty(parts.shape[1:]))
        return list(torch.split(total, np.diff(self.ends, prepend=0).tolist()))

    def gradient(self, slopes: list[Tensor]) -> Tensor:
        """See `_Plain.gradient`; rows that are not this rank's are 0."""
        begin, end = self.ranks.slopes(len(self.z))
        out = np.empty_like(self.z) if end - begin == len(self.z) else np.zeros_like(self.z)
        slope = np.concatenate([s.numpy() for s in slopes]) * np.float32(2 * math.pi)

        def work(block: tuple[int, int]) -> None:
            first, last = max(block[0], begin), min(block[1], end)
            wave_back(self.z, self.weight, self.phase, self.code, slope, first, last, out)

        list(self.each(work, self.blocks))
        return torch.from_numpy(out)


class _FourierGap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, waves: _Plain | _Compiled, sizes: list[Tensor]) -> Tensor:
        value = z.new_zeros(())
        ctx.waves, ctx.slopes = waves, []
        for total, size in zip(waves.sums(), sizes, strict=True):
            n, num_features = size.sum(), total.shape[1]
            mean = total[:-1].sum(0) / n
            gap = total[:-1] / size.clamp_min(1)[:, None] - mean
            gap = gap * (size > 0)[:, None]
            # features are sqrt(2) cos, so their squares carry a factor 2
            value = value + 2 * (size[:, None] * gap.square()).sum() / (n * num_features)
            ctx.slopes.append(torch.cat([gap * (4 / (n * num_features)), gap.new_zeros(1, num_features)]))
        return value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.waves.gradient(ctx.slopes) * grads[0], None, None


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
