r"""UGE-R's penalty, Eq. (13)-(14): what group pairs score with and without the sensitive attributes.

    (1 / N^2) sum_{u,v} || Q_{a_u a_v} - Q~_{A_u A_v} ||,   Q_ab the mean score of cell (a, b)

With raw dot products Q_ab = m_a . m_b, the product of two group means, so nothing is sampled: over all
ordered pairs, self-pairs included, the squared form is (||S||_F^2 - ||S~||_F^2) / N^2 with
S = sum_a n_a m_a m_a^T and S~ the same over non-sensitive groups, in O(N d + G d^2); the cross term
collapses as m~_A is the n-weighted mean of its m_a. Sums are in float64 against cancellation.
Departure: the paper sums over node pairs; here the sum is divided by N^2 (bipartite: users x items),
or by the number of cells, so that lambda means the same on every graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from uge_core.arrays import IntArray
from uge_core.debias.penalties.base import Penalty

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor

    from uge_core.debias.penalties.group_means import Groups


@dataclass(frozen=True, eq=False)
class _Prepared:
    fine: Groups
    coarse: Tensor
    total: Tensor
    users: Tensor
    coarse_users: Tensor


@dataclass(frozen=True, eq=False)
class MeanGap(Penalty):
    """The exact penalty over groups, or the paper's sample of group pairs.

    Attributes:
        group: (N,) fine group, -1 for nodes outside (no part of any mean).
        coarse: (G,) non-sensitive group of each fine group.
        group_side: (G,) 0 or 1; on a bipartite graph only pairs across sides count.
        pair_weighting: "pairs" (a cell weighs n_a n_b / N^2, the paper's sum) or "cells" (uniform, as the authors'
            code).
        norm: "squared" or "absolute" (the paper's text).
        estimator: "exact", or "sampled" (group pairs drawn each step).
        num_group_pairs: group pairs per step when sampled; 0 takes a tenth of the groups, as the paper.
        scores: "raw" dot products, or "sigmoid" of them (sampled only: it has no closed form).
        draws: node pairs per group pair for sigmoid scores.
    """

    group: IntArray
    coarse: IntArray
    group_side: IntArray
    pair_weighting: str = "pairs"
    norm: str = "squared"
    estimator: str = "exact"
    num_group_pairs: int = 0
    scores: str = "raw"
    draws: int = 256
    by_rows: ClassVar[bool] = True

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """The penalty of `z` (N, d), a float32 scalar."""
        if self.estimator == "exact":
            return self.measure(z, ())
        mean, merged = self._means(z)
        return self._sampled(z, mean, merged, self._prepared(z.device).fine.size, generator).float()

    def _means(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """(G, d) the mean of each group, and (A, d) of each non-sensitive one."""
        import torch

        g = self._prepared(z.device)
        mean = g.fine.means(z)
        merged = torch.zeros(len(g.total), z.shape[1], dtype=torch.float64, device=z.device)
        return mean, merged.index_add(0, g.coarse, mean * g.fine.size[:, None]) / g.total[:, None]

    def draw(self, generator: Generator, dim: int) -> tuple[Tensor, ...] | None:
        """See `Ahead.draw`: the exact form draws nothing, the sampled one draws by what it finds."""
        return () if self.estimator == "exact" else None

    def measure(self, z: Tensor, drawn: tuple[Tensor, ...]) -> Tensor:
        """See `Ahead.measure`: the exact form."""
        import torch

        g = self._prepared(z.device)
        size, total, coarse = g.fine.size, g.total, g.coarse
        mean, merged = self._means(z)
        if self.pair_weighting == "pairs" and self.norm == "squared":
            left, left_ = _second(mean, size * g.users), _second(merged, total * g.coarse_users)
            if not self.bipartite:
                return ((left.square().sum() - left_.square().sum()) / size.sum().square()).float()
            right, right_ = _second(mean, size * ~g.users), _second(merged, total * ~g.coarse_users)
            pairs = (size * g.users).sum() * (size * ~g.users).sum()
            return (((left * right).sum() - (left_ * right_).sum()) / pairs).float()
        spread = merged.index_select(0, coarse)
        gap = mean @ mean.T - spread @ spread.T
        gap = gap.square() if self.norm == "squared" else gap.abs()
        weight = torch.outer(size, size) if self.pair_weighting == "pairs" else torch.ones_like(gap)
        if self.bipartite:
            weight = weight * (g.users[:, None] != g.users[None, :])
        return ((gap * weight).sum() / weight.sum()).float()

    @property
    def bipartite(self) -> bool:
        """Whether items form groups of their own."""
        return bool((self.group_side == 1).any())

    @cached_property
    def _devices(self) -> dict[str, _Prepared]:
        return {}

    def _prepared(self, device: torch.device) -> _Prepared:
        """Index tensors on a device, made once: a step must not copy them anew."""
        import torch

        from uge_core.debias.penalties.group_means import Groups

        if str(device) not in self._devices:
            fine = Groups.of(self.group, len(self.coarse), device)
            users = self.group_side == 0
            num = int(self.coarse.max()) + 1
            total = np.bincount(self.coarse, fine.size.cpu().numpy(), num)
            coarse_users = np.zeros(num, dtype=bool)
            coarse_users[self.coarse[users]] = True
            self._devices[str(device)] = _Prepared(
                fine, *(torch.as_tensor(x, device=device) for x in (self.coarse, total, users, coarse_users))
            )
        return self._devices[str(device)]

    def _sampled(self, z: Tensor, mean: Tensor, merged: Tensor, size: Tensor, generator: Generator) -> Tensor:
        """Mean over drawn group pairs; "pairs" draws groups by their size, "cells" uniformly."""
        import torch

        m = self.num_group_pairs or max(1, round(0.1 * len(size)))
        side = torch.as_tensor(self.group_side)
        weight = size.cpu() if self.pair_weighting == "pairs" else torch.ones(len(size), dtype=torch.float64)
        a = torch.multinomial(weight * (side == 0), m, replacement=True, generator=generator)
        b = torch.multinomial(
            weight * (side == 1) if self.bipartite else weight, m, replacement=True, generator=generator
        )
        coarse = torch.as_tensor(self.coarse)
        if self.scores == "raw":
            fine = mean.index_select(0, a.to(z.device)) * mean.index_select(0, b.to(z.device))
            rough = merged.index_select(0, coarse[a].to(z.device)) * merged.index_select(0, coarse[b].to(z.device))
            gap = again = (fine - rough).sum(1)
        else:
            merged_group = np.where(self.group >= 0, self.coarse[self.group], -1)
            # the square of one noisy gap is biased upwards; the product of two independent ones is not
            gap, again = (
                self._mean_sigmoid(z, self.group, a, b, generator)
                - self._mean_sigmoid(z, merged_group, coarse[a], coarse[b], generator)
                for _ in range(2)
            )
        return (gap * again).mean() if self.norm == "squared" else gap.abs().mean()

    def _mean_sigmoid(self, z: Tensor, group: IntArray, a: Tensor, b: Tensor, generator: Generator) -> Tensor:
        import torch

        order = np.argsort(group, kind="stable")
        start = np.searchsorted(group[order], np.arange(int(group.max()) + 2))
        nodes, first = torch.as_tensor(order), torch.as_tensor(start)

        def draw(g: Tensor) -> Tensor:
            width = (first[g + 1] - first[g]).double()[:, None]
            at = (torch.rand(len(g), self.draws, generator=generator, dtype=torch.float64) * width).long()
            return z.index_select(0, nodes[first[g][:, None] + at].reshape(-1).to(z.device)).view(
                len(g), self.draws, -1
            )

        return torch.sigmoid((draw(a) * draw(b)).sum(-1)).double().mean(1)


def _second(mean: Tensor, size: Tensor) -> Tensor:
    """(d, d) sum_a n_a m_a m_a^T."""
    return (mean * size[:, None]).T @ mean
