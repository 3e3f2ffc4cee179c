r"""UGE-N's penalty (ours): who is near a person should not depend on that person's group.

Whoever has the vectors and some people's values reads a person's value off those with the closest vectors. For each
sensitive attribute, with pi_g the share of group g:

    mean over people i of KL(pi | s_i) = sum_g pi_g log(pi_g / s_ig),     s_ig = sum_{j != i, a_j = g} p_ij,
    p_ij = exp(cos(x_i, x_j) / t) / sum_{k != i} exp(cos(x_i, x_k) / t),   t = temperature / sqrt(d)

x is the embedding itself in one half of the steps, drawn at random, and in the other the embedding less its mean, in
axes in which it varies alike: what long coordinates hide from cosines can be read there. The divergence, unlike a
squared difference of shares, keeps its slope where a person has neighbours of one group alone. Only neighbours need a
value, so people without one are mixed too. Of a step's people `num_asked` are drawn, and `num_others` as those who may
be their neighbours: the fewer, the farther the closest, and the coarser what is mixed. O(num_asked num_others d).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from uge_core.arrays import Float64, IntArray
from uge_core.debias.penalties.base import Penalty
from uge_core.debias.penalties.kernel_gap import threads
from uge_core.ranks import ALONE, Ranks

if TYPE_CHECKING:
    from torch import Generator, Tensor


@dataclass(frozen=True, eq=False)
class NeighbourGap(Penalty):
    """Divergence of the groups among soft neighbours from the groups' shares, summed over sensitive attributes.

    Attributes:
        groups: per sensitive attribute (N,) its codes, -1 outside.
        people: (P,) nodes whose neighbours are looked at.
        temperature: of the softmax, in 1 / sqrt(d), the spread of a random cosine.
        num_asked: people drawn in a step.
        num_others: people drawn as their possible neighbours.
        ranks: who has a share of the work.
    """

    groups: tuple[IntArray, ...]
    people: IntArray
    temperature: float = 0.2
    num_asked: int = 256
    num_others: int = 32_768
    ranks: Ranks = ALONE
    by_rows: ClassVar[bool] = True

    def shared(self, ranks: Ranks) -> NeighbourGap:
        """See `Penalty.shared`."""
        return replace(self, ranks=ranks)

    @cached_property
    def _known(self) -> list[tuple[IntArray, Float64]]:
        """Per attribute the nodes that have a group, and the groups' shares of them."""
        found = [np.flatnonzero(codes >= 0) for codes in self.groups]
        return [(k, np.bincount(codes[k]) / max(len(k), 1)) for k, codes in zip(found, self.groups, strict=True)]

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """The penalty of `z` (N, d), a scalar of at least 0."""
        import torch

        from uge_core.debias.penalties._neighbour_gap import neighbour_divergence, own_rows, whitened

        def drawn(nodes: IntArray, most: int) -> Tensor:
            return torch.as_tensor(nodes)[torch.randperm(len(nodes), generator=generator)[:most]]

        z = own_rows(z, self.ranks)
        asked = drawn(self.people, self.num_asked)
        spread = bool(torch.randint(2, (), generator=generator))
        total = z.new_zeros(())
        for codes, (known, prior) in zip(self.groups, self._known, strict=True):
            others = drawn(known, self.num_others)
            code, order = torch.as_tensor(codes)[others].sort(stable=True)
            others = others[order]
            place = torch.full((len(z),), -1)
            place[others] = torch.arange(len(others))
            first, second = z.index_select(0, asked.to(z.device)), z.index_select(0, others.to(z.device))
            if spread:
                first, second = whitened(first, second)
            total = total + neighbour_divergence(
                first,
                second,
                place[asked].to(z.device),
                code.to(z.device),
                torch.as_tensor(prior).to(z.device),
                self.temperature / z.shape[1] ** 0.5,
                threads(),
                self.ranks,
            )
        return total
