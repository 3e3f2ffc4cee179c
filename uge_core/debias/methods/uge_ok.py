"""UGE-OK (ours, beside the paper's): UGE-O's offset and a kernel gap between each group and all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.methods.uge_o import UGEO
from uge_core.debias.penalties.base import Penalty
from uge_core.debias.penalties.kernel_gap import SCALES, KernelGap
from uge_core.plugin import PAPER, Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class UGEOK(UGEO):
    r"""Offset of UGE-O + lambda * sum over sensitive attributes of sum_g (n_g / N) MMD^2(z | g, z).

    MMD by random Fourier features of Gaussian kernels, drawn anew in each step (`moments=2`: first and second moments).

    Cannot: tell apart distributions that agree at its four bandwidths, 0.1 to 3 times the median squared distance;
    groups of a few people weigh little in the sum. Attributes are treated one by one, their combinations are not.
    """

    label: ClassVar[str] = "UGE-OK (ours)"
    citation: ClassVar[str] = "this package; features: Rahimi and Recht, NIPS 2007"
    references: ClassVar[tuple[Reference, ...]] = (
        PAPER,
        Reference("A. Rahimi, B. Recht", "Random Features for Large-Scale Kernel Machines", "NIPS", 2007),
    )
    formula: ClassVar[str] = (
        r"\text{logit}_{uv} = z_u \cdot z_v + \log \frac{R(a_u, a_v)}{\tilde R(A_u, A_v)}, \quad \ell + \lambda \sum_k \sum_g \frac{n_g}{N}\, \text{MMD}^2\!\left( z \mid a^k = g,\ z \right)"
    )
    color: ClassVar[str] = "#4949F2"
    symbol: ClassVar[str] = "hexagram"
    position: ClassVar[int] = 5
    uses_lambda: ClassVar[bool] = True
    default_lam: ClassVar[float] = 0.3

    num_features: int = option(128, "random Fourier features per step", low=16, high=4096)
    moments: int = option(0, "0: Gaussian kernels; 2: first and second moments, cheaper", choices=(0, 2))

    @property
    def scales(self) -> tuple[float, ...]:
        """Bandwidths of the kernels, in median squared distances."""
        return SCALES

    def unread(self, bipartite: bool) -> set[str]:
        """Moments need no random features."""
        return super().unread(bipartite) | ({"num_features"} if self.moments else set())

    def penalty(self, inputs: MethodInputs) -> Penalty:
        """The kernel gap of each sensitive attribute."""
        return KernelGap(tuple(v.codes for v in inputs.sensitive), self.num_features, self.moments, self.scales)
