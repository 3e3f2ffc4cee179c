"""UGE-ORK (ours, beside the paper's): a share of UGE-O's offset, UGE-R's penalty and the kernel gap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from uge_core.debias.bias_free import CellTable, MethodInputs
from uge_core.debias.methods import _options
from uge_core.debias.methods.uge_ok import UGEOK
from uge_core.debias.penalties.base import Penalty
from uge_core.debias.penalties.mixture import Mixture
from uge_core.plugin import PAPER, Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class UGEORK(UGEOK):
    r"""Logit z_u . z_v + s log(R / R~) while training + lambda * (r * gap between Q and Q~ + k * kernel gap).

    The whole offset (s = 1) fits the bias-free graph and pays with links of the observed one; without it
    (s = 0, `--set strength=0`: UGE-R with better moments) penalties alone hide the attribute. Shares in
    between trade one for the other. Of the penalties, R's equalises products of group means, the kernel
    gap whole distributions.

    Cannot: choose s, r and k; one lambda moves both penalties together. What UGE-O and UGE-OK cannot it cannot either.
    """

    label: ClassVar[str] = "UGE-ORK (ours)"
    citation: ClassVar[str] = "this package, from Eq. (3)-(4) and (14)"
    references: ClassVar[tuple[Reference, ...]] = (PAPER,)
    formula: ClassVar[str] = (
        r"\text{logit}_{uv} = z_u \cdot z_v + s \log \frac{R}{\tilde R}, \quad \ell + \lambda \left( r\, \frac{1}{N^2} \sum_{u,v} (Q - \tilde Q)^2 + k \sum_k \sum_g \frac{n_g}{N}\, \text{MMD}^2\!\left( z \mid a^k = g,\ z \right) \right)"
    )
    color: ClassVar[str] = "#A64532"
    symbol: ClassVar[str] = "star-triangle-up"
    position: ClassVar[int] = 6
    default_lam: ClassVar[float] = 1.0

    strength: float = option(0.5, "share s of the offset log(R/R~)", low=0.0, high=1.0)
    mean_weight: float = option(0.5, "r, of UGE-R's penalty", low=0.0)
    kernel_weight: float = option(1.0, "k, of the kernel gap", low=0.0)
    num_features: int = option(
        256, "random Fourier features per step; nearest neighbours read what fewer leave", low=16, high=4096
    )
    finest: float = option(
        0.03,
        "smallest kernel bandwidth, in median squared distances; 3, 10 and 30 times as wide follow",
        low=1e-4,
        high=1.0,
    )

    @property
    def reads_others(self) -> bool:
        """See `Method.reads_others`."""
        return self.mean_weight > 0 or (self.strength > 0 and not self.independence)

    @property
    def scales(self) -> tuple[float, ...]:
        """Finer than UGE-OK's, as nearest neighbours read what wider kernels leave."""
        return tuple(self.finest * times for times in (1.0, 3.0, 10.0, 30.0))

    def unread(self, bipartite: bool) -> set[str]:
        """Without an offset nothing is estimated for it; without the kernel gap no features are drawn."""
        offset = set() if self.strength else {"shrinkage", "independence"}
        kernel = set() if self.kernel_weight else {"num_features", "moments", "finest"}
        kernel |= {"finest"} if self.moments else set()
        cells = set() if self.strength or self.mean_weight else {"item_cells"}
        return super().unread(bipartite) | offset | kernel | cells

    def check(self, inputs: MethodInputs, loss: str) -> None:
        """Refuses an offset that cancels, as UGE-O does."""
        if self.strength:
            super().check(inputs, loss)

    def cells(self, inputs: MethodInputs) -> CellTable:
        """Weight 1, offset s log(R/R~)."""
        if not self.strength:
            return CellTable.neutral(inputs.graph.num_nodes)
        table = super().cells(inputs)
        return replace(table, offset=table.offset * np.float32(self.strength))

    def penalty(self, inputs: MethodInputs) -> Penalty:
        """Both gaps."""
        parts: list[tuple[float, Penalty]] = []
        if self.mean_weight:
            means = _options.mean_gap(
                inputs,
                item_cells=self.item_cells,
                pair_weighting="pairs",
                norm="squared",
                estimator="exact",
                num_group_pairs=0,
                scores="raw",
            )
            parts.append((self.mean_weight, means))
        if self.kernel_weight:
            parts.append((self.kernel_weight, super().penalty(inputs)))
        return Mixture(tuple(parts))
