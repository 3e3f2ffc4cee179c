"""UGE-OK (ours, beside the paper's): UGE-O's offset and a kernel gap between each group and all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.bias_free import Evidence
from uge_core.debias.uge_o import UGEO
from uge_core.penalties.base import Penalty
from uge_core.penalties.kernel_gap import KernelGap
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class UGEOK(UGEO):
    r"""Offset of UGE-O + lambda * sum over sensitive attributes of sum_g (n_g / N) MMD^2(z | g, z)."""

    label: ClassVar[str] = "UGE-OK (ours)"
    citation: ClassVar[str] = "this package; features: Rahimi and Recht, NIPS 2007"
    color: ClassVar[str] = "#D55E00"
    symbol: ClassVar[str] = "hexagram"
    position: ClassVar[int] = 5
    uses_lambda: ClassVar[bool] = True
    default_lam: ClassVar[float] = 0.3

    num_features: int = option(128, "random Fourier features per step", low=16, high=4096)
    moments: int = option(0, "0: Gaussian kernels; 2: first and second moments, cheaper", choices=(0, 2))

    def unread(self, bipartite: bool) -> set[str]:
        """Moments need no random features."""
        return super().unread(bipartite) | ({"num_features"} if self.moments else set())

    def penalty(self, evidence: Evidence) -> Penalty:
        """The kernel gap of each sensitive attribute."""
        return KernelGap(tuple(v.codes for v in evidence.sensitive), self.num_features, self.moments)
