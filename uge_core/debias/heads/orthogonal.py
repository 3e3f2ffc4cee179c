r"""MONET's unit: what the attributes explain has dimensions of its own, and the rest is orthogonal to them.

    m_u = sum_k W_k[a_uk]                       metadata embedding, (N, d_m), W trained beside the encoder
    z_perp = z - M (M^T M)^+ M^T z
    logit = z_perp_u . z_perp_v + m_u . m_v

so the loss sees [m, z_perp], and z_perp alone is exported. As in Palowitch and Perozzi's Algorithm 1 the
projection is a constant to the gradient: W learns from the logit alone. With C the one-hot codes and
M = C W, M^T M = W^T (C^T C) W and M^T z = W^T (C^T z): sums over groups, O(N (d + d_m)), in float64.
With d_m at least the number of values the columns of M span those of C, and every group's mean of
z_perp is 0; with fewer, d_m directions are taken out. Nodes without a value have m = 0 and z_perp = z.
Bipartite: the side without the attribute learns m freely, one vector a node, and its z stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from uge_core.arrays import IntArray

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor

    from uge_core.debias.penalties.group_means import Groups


@dataclass(frozen=True, eq=False)
class Orthogonal:
    """Metadata embeddings and the projection.

    Attributes:
        codes: per attribute (N,), negative where a node has no value.
        sizes: per attribute its number of values.
        free: (n,) nodes whose m is learned freely.
        width: d_m.
    """

    codes: tuple[IntArray, ...]
    sizes: tuple[int, ...]
    free: IntArray
    width: int

    def start(self, dim: int, generator: Generator) -> dict[str, Tensor]:
        """W, a row per value, and the free rows, normal of deviation 1 / sqrt(d_m)."""
        import torch

        made = {"metadata": torch.randn(sum(self.sizes), self.width, generator=generator)}
        if len(self.free):
            made["free"] = torch.randn(len(self.free), self.width, generator=generator)
        return {name: t / self.width**0.5 for name, t in made.items()}

    def seen(self, z: Tensor, parameters: dict[str, Tensor], generator: Generator) -> Tensor:
        """(N, d + d_m) [m, z_perp]."""
        import torch

        m = self.metadata(parameters)
        outside = m if not len(self.free) else m.index_add(0, self._prepared(z.device).free, parameters["free"])
        return torch.cat([outside, self._projected(z, m.detach(), parameters)], dim=1)

    def exported(self, z: Tensor, parameters: dict[str, Tensor]) -> Tensor:
        """z_perp."""
        return self._projected(z, self.metadata(parameters), parameters)

    def metadata(self, parameters: dict[str, Tensor]) -> Tensor:
        """(N, d_m) M, rows of 0 where a node has no value."""
        import torch

        w = parameters["metadata"]
        rows = torch.cat([w, w.new_zeros(1, self.width)])
        return torch.stack([rows.index_select(0, index) for index in self._prepared(w.device).rows]).sum(0)

    def _projected(self, z: Tensor, m: Tensor, parameters: dict[str, Tensor]) -> Tensor:
        import torch

        at = self._prepared(z.device)
        w = parameters["metadata"].detach().double()
        sums = torch.cat([g.means(z) * g.size[:, None] for g in at.groups])
        inverse = torch.linalg.pinv(w.T @ at.together @ w, hermitian=True, rtol=1e-9)
        perp: Tensor = z - m @ (inverse @ (w.T @ sums)).to(z.dtype)
        return perp

    @cached_property
    def _devices(self) -> dict[str, _Prepared]:
        return {}

    def _prepared(self, device: torch.device) -> _Prepared:
        """Index tensors on a device, made once."""
        import torch

        from uge_core.debias.penalties.group_means import Groups

        if str(device) not in self._devices:
            starts = np.cumsum([0, *self.sizes])
            columns = [np.where(c >= 0, c + s, starts[-1]) for c, s in zip(self.codes, starts, strict=False)]
            together = np.zeros((starts[-1] + 1, starts[-1] + 1))
            for a in columns:
                for b in columns:
                    np.add.at(together, (a, b), 1.0)
            self._devices[str(device)] = _Prepared(
                [torch.as_tensor(c, device=device) for c in columns],
                [Groups.of(c, size, device) for c, size in zip(self.codes, self.sizes, strict=True)],
                torch.as_tensor(together[:-1, :-1], device=device),
                torch.as_tensor(self.free, device=device),
            )
        return self._devices[str(device)]


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Per attribute each node's row of W (one past the last: none) and its groups; C^T C; the free nodes."""

    rows: list[Tensor]
    groups: list[Groups]
    together: Tensor
    free: Tensor
