r"""FIPR's penalty: how far the model is from its fair I-projection, in Kullback and Leibler's divergence.

h_ij = sigmoid(s_ij), s_ij = z_i . z_j, is the chance that the model gives a pair. F are the models by which links are as
frequent in every block, an unordered pair of groups, as in all pairs (demographic parity). The model of F closest to h,

    h_F = argmin_{f in F} KL(f || h),     logit h_F,ij = s_ij + l_b   for pairs in block b,

has one multiplier l_b a block, as F is linear in f. With w_b a block's share of the pairs, they solve the dual

    max_l  mean_ij softplus(s_ij) - softplus(s_ij + l_b)     where   sum_b w_b l_b = 0,

whose maximum is KL(h_F || h) itself and has the slope h - h_F in s: multipliers are solved for without a gradient. A step
of Newton's takes l_b to l_b + (m - q_b) / v_b, q_b and v_b the means of f and of f (1 - f) in the block and m what keeps
the sum; it is shortened by log(1 + e) / e, e its largest part (Bach, Electronic Journal of Statistics 4, 2010).

A step of training draws two lots of people (bipartite: people and items) and takes all pairs across, in O(n^2 d).
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

_STEPS = 10  # of Newton's; always as many, so that a step of training can be recorded
_TINY = 1e-30  # of what a logarithm is taken


@dataclass(frozen=True, eq=False)
class FairProjection(Penalty):
    """Divergence of the fair I-projection from the model, a mean over drawn pairs.

    Attributes:
        group: (N,) group of each node, -1 outside; items are in groups of their own.
        side: (N,) 0 for people, 1 for items; where there are items only pairs across sides count.
        num_nodes: nodes in each of the two lots of a step.
    """

    group: IntArray
    side: IntArray
    num_nodes: int = 512
    by_rows: ClassVar[bool] = True

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """The penalty of `z` (N, d), a scalar of at least 0."""
        return self.measure(z, tuple(t.to(z.device) for t in self.draw(generator, z.shape[1])))

    def draw(self, generator: Generator, dim: int) -> tuple[Tensor, ...]:
        """See `Ahead.draw`: the nodes of each lot, who share nobody."""
        import torch

        def shuffled(nodes: IntArray) -> Tensor:
            return torch.as_tensor(nodes)[torch.randperm(len(nodes), generator=generator)]

        people, items = (np.flatnonzero((self.group >= 0) & (self.side == side)) for side in (0, 1))
        if len(items):
            return shuffled(people)[: self.num_nodes], shuffled(items)[: self.num_nodes]
        half = min(self.num_nodes, len(people) // 2)
        both = shuffled(people)
        return both[:half], both[half : 2 * half]

    def measure(self, z: Tensor, drawn: tuple[Tensor, ...]) -> Tensor:
        """See `Ahead.measure`."""
        from torch.nn.functional import softplus

        first, second = drawn
        if not len(first):
            return z.new_zeros(())  # one person makes no pair
        group = self._on(z.device)
        left, right = group.index_select(0, first), group.index_select(0, second)
        scores = z.index_select(0, first) @ z.index_select(0, second).T
        shift = multipliers(scores.detach(), left, right, int(self.group.max()) + 1)
        return (softplus(scores) - softplus(scores + _of_pairs(shift, left, right, scores))).mean()

    @cached_property
    def _devices(self) -> dict[str, Tensor]:
        return {}

    def _on(self, device: torch.device) -> Tensor:
        """The groups on a device, copied once."""
        import torch

        if str(device) not in self._devices:
            self._devices[str(device)] = torch.as_tensor(self.group, device=device)
        return self._devices[str(device)]


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
    import torch

    def sums(x: Tensor) -> Tensor:
        # row by row, which gives the same bits whatever the threads
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
