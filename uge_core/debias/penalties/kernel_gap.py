r"""UGE-OK's penalty (ours): the whole distribution of embeddings should not depend on the group.

For each sensitive attribute sum_g (n_g / N) MMD_k^2(z | g, z), where k is the sum of four Gaussian
kernels exp(-|x - y|^2 / (s * median)) with the median squared distance and s in 0.1, 0.3, 1, 3 (`scales`). The
kernel is approximated by random Fourier features sqrt(2) cos(z W + b), drawn anew each step (Rahimi
and Recht, NIPS 2007), in O(N d D). Over the nodes that have a group (bipartite: people alone, N their
number). UGE-R equalises products of group means only; this closes what it leaves open to a nonlinear
attacker. The gradient is closed-form: with mu_g and mu the mean features, every node of group g gets
2 (mu_g - mu) / (D N) times the derivative of its own features, as the part through mu sums to zero.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from uge_core.arrays import IntArray
from uge_core.debias.penalties.base import Penalty
from uge_core.machine import cores
from uge_core.ranks import ALONE, Ranks

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor

    from uge_core.debias.penalties.group_means import Groups

SCALES = (0.1, 0.3, 1.0, 3.0)


@cache
def threads() -> ThreadPoolExecutor:
    """One pool for all members, which are stepped in turn."""
    return ThreadPoolExecutor(cores())


@dataclass(frozen=True, eq=False)
class KernelGap(Penalty):
    """Maximum mean discrepancy between each group and all, summed over sensitive attributes.

    Attributes:
        groups: per sensitive attribute (N,) its codes, -1 outside.
        num_features: D, random features per step.
        moments: 0 for the Gaussian kernels; 2 compares first and second moments instead, which is cheaper.
        scales: s of each kernel.
        ranks: who has a share of the sums and of the gradient.
    """

    groups: tuple[IntArray, ...]
    num_features: int = 128
    moments: int = 0
    scales: tuple[float, ...] = SCALES
    ranks: Ranks = ALONE
    by_rows: ClassVar[bool] = True

    def shared(self, ranks: Ranks) -> KernelGap:
        """See `Penalty.shared`."""
        return replace(self, ranks=ranks)

    @cached_property
    def _people(self) -> IntArray:
        """Nodes that have a group, from which the median distance is taken."""
        return np.nonzero(self.groups[0] >= 0)[0]

    @cached_property
    def _devices(self) -> dict[str, list[Groups]]:
        return {}

    def _prepared(self, device: torch.device) -> list[Groups]:
        """The groups on a device, made once."""
        from uge_core.debias.penalties.group_means import Groups

        if str(device) not in self._devices:
            self._devices[str(device)] = [Groups.of(g, int(g.max()) + 1, device) for g in self.groups]
        return self._devices[str(device)]

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """The penalty of `z` (N, d), a scalar of at least 0."""
        return self.measure(z, tuple(t.to(z.device) for t in self.draw(generator, z.shape[1])))

    def draw(self, generator: Generator, dim: int) -> tuple[Tensor, ...]:
        """See `Ahead.draw`: 2,048 nodes for the median distance; matrix and phase of the features."""
        import torch

        drawn = torch.randint(len(self._people), (2048,), generator=generator)
        some = torch.as_tensor(self._people)[drawn]
        if self.moments:
            return (some,)
        scale = torch.tensor(self.scales)[torch.randint(len(self.scales), (self.num_features,), generator=generator)]
        weight = torch.randn(dim, self.num_features, generator=generator) * (2.0 / scale).sqrt()
        return some, weight, torch.rand(self.num_features, generator=generator) * (2 * torch.pi)

    def measure(self, z: Tensor, drawn: tuple[Tensor, ...]) -> Tensor:
        """See `Ahead.measure`."""
        import torch

        from uge_core.debias.penalties._kernel_gap import fourier_gap, moment_gap

        with torch.no_grad():
            some = z.index_select(0, drawn[0])
            median = (some[:1024] - some[1024:]).square().sum(1).median().clamp_min(1e-12)
        if self.moments:
            return sum((moment_gap(z, g, median) for g in self._prepared(z.device)), z.new_zeros(()))
        groups, weight = self._prepared(z.device), drawn[1] / median.sqrt()
        return fourier_gap(z, groups, weight, drawn[2], threads(), self.ranks) * len(self.scales)
