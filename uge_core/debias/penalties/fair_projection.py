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
        from uge_core.debias.penalties._fair_projection import divergence

        first, second = drawn
        if not len(first):
            return z.new_zeros(())  # one person makes no pair
        group = self._on(z.device)
        return divergence(
            z.index_select(0, first),
            z.index_select(0, second),
            group.index_select(0, first),
            group.index_select(0, second),
            int(self.group.max()) + 1,
        )

    @cached_property
    def _devices(self) -> dict[str, Tensor]:
        return {}

    def _on(self, device: torch.device) -> Tensor:
        """The groups on a device, copied once."""
        import torch

        if str(device) not in self._devices:
            self._devices[str(device)] = torch.as_tensor(self.group, device=device)
        return self._devices[str(device)]
