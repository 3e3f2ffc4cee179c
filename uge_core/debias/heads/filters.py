r"""CFC's filters: a small network per sensitive attribute, of which each step draws some.

    z_S = (1 / |S|) sum_{k in S} f_k(z),   f_k(z) = BN(lrelu(lrelu(z W1 + b1) W2 + b2)),  d -> 2d -> d

S is drawn in each step, every attribute with probability `chance`; without any the loss sees z
itself. Exported is z_S of all attributes. On a bipartite graph only the side whose nodes have the
attribute is filtered. A step sees every node, so the batch of the batch normalisation is all nodes,
in training and for what is exported alike, and it has no running means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from uge_core.debias.penalties.adversary import Adversary


@dataclass(frozen=True, eq=False)
class Filters:
    """One filter per attribute.

    Attributes:
        side: per attribute 0 or 1, the side whose nodes have it.
        num_users: nodes of side 0 of a bipartite graph; None: all nodes are of side 0.
        chance: of each attribute to be in S.
        adversary: is told S.
    """

    side: tuple[int, ...]
    num_users: int | None
    chance: float
    adversary: Adversary

    def start(self, dim: int, generator: Generator) -> dict[str, Tensor]:
        """Per filter two layers, uniform in +-1 / sqrt(inputs), and the scale and shift of the normalisation."""
        import torch

        made = {}
        for k in range(len(self.side)):
            for layer, (rows, columns) in enumerate(((dim, 2 * dim), (2 * dim, dim))):
                for name, shape in (("weight", (rows, columns)), ("bias", (columns,))):
                    drawn = torch.rand(shape, generator=generator) * 2 - 1
                    made[f"filter{k}.{name}{layer}"] = drawn / math.sqrt(rows)
            made[f"filter{k}.scale"], made[f"filter{k}.shift"] = torch.ones(dim), torch.zeros(dim)
        return made

    def seen(self, z: Tensor, parameters: dict[str, Tensor], generator: Generator) -> Tensor:
        """z_S of a drawn S, which the adversary is told."""
        import torch

        drawn = torch.rand(len(self.side), generator=generator)
        self.adversary.on = tuple(k for k, x in enumerate(drawn.tolist()) if x < self.chance)
        return self._filtered(z, parameters, self.adversary.on)

    def exported(self, z: Tensor, parameters: dict[str, Tensor]) -> Tensor:
        """z_S of all attributes."""
        return self._filtered(z, parameters, tuple(range(len(self.side))))

    def _filtered(self, z: Tensor, parameters: dict[str, Tensor], on: tuple[int, ...]) -> Tensor:
        import torch

        split = len(z) if self.num_users is None else self.num_users
        parts = []
        for side, part in enumerate((z[:split], z[split:])):
            mine = [_filter(part, parameters, f"filter{k}.") for k in on if self.side[k] == side]
            parts.append(torch.stack(mine).mean(0) if mine else part)
        return torch.cat(parts)


def _filter(x: Tensor, parameters: dict[str, Tensor], name: str) -> Tensor:
    from torch.nn.functional import leaky_relu

    from uge_core.row_products import normalised, plus, times

    for layer in (0, 1):
        x = leaky_relu(plus(times(x, parameters[f"{name}weight{layer}"]), parameters[f"{name}bias{layer}"]))
    return normalised(x, parameters[f"{name}scale"], parameters[f"{name}shift"])
