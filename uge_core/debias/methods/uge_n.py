"""UGE-N (ours, beside the paper's): a person's closest people are of all groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from uge_core.debias.base import Method
from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.methods.fairot import FairOT
from uge_core.debias.methods.uge_ork import UGEORK
from uge_core.debias.penalties.base import Penalty
from uge_core.debias.penalties.mixture import Mixture
from uge_core.debias.penalties.neighbour_gap import NeighbourGap
from uge_core.debias.postprocess.base import Postprocess
from uge_core.plugin import PAPER, Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class UGEN(Method):
    r"""Loss + lambda * (w * mean_i KL(pi | s_i) + r * gap between Q and Q~ + k * kernel gap).

    pi are the groups' shares, s_i those among the people closest to i, weighed by softmax of their cosines with i.
    Readers who score people against people find a person's friends, who are mostly of the person's own group. To
    predict links inside a group only the order of its people matters, so communities of several groups may lie on top
    of one another: the divergence asks for that among the closest. The other two penalties are UGE-ORK's; they close
    what is read from farther away, and cost next to nothing beside it. After training each person is moved a share t of
    the way to where FairOT would move them, which mixes what is closer than the divergence can see.

    Cannot: mix people closer than the temperature and the number of possible neighbours let it see. Where a value is
    imputed wrongly the person is mixed as one of the other group. Encoders follow slowly: train them some hundred epochs.
    The penalties treat attributes one by one, the last step their combinations. At lambda 0 the last
    step is still taken; a share of 0 leaves it out.
    """

    label: ClassVar[str] = "UGE-N (ours)"
    summary: ClassVar[str] = "Mixes the groups among each person's closest people, who give the attribute away."
    citation: ClassVar[str] = "this package; soft neighbours: Goldberger et al., NIPS 2004"
    references: ClassVar[tuple[Reference, ...]] = (
        PAPER,
        Reference(
            "J. Goldberger, S. Roweis, G. Hinton, R. Salakhutdinov", "Neighbourhood Components Analysis", "NIPS", 2004
        ),
        *FairOT.references,
    )
    formula: ClassVar[str] = (
        r"\ell + \lambda \left( w \sum_k \frac{1}{N} \sum_i \text{KL}\!\left( \pi^k \,\middle\|\, s_i^k \right) + r\, \frac{1}{N^2} \sum_{u,v} (Q - \tilde Q)^2 + k \sum_k \sum_g \frac{n_g}{N}\, \text{MMD}^2\!\left( z \mid a^k = g,\ z \right) \right), \quad s_{ig}^k = \sum_{j \neq i,\ a_j^k = g} \text{softmax}_j\, \frac{\cos(z_i, z_j)}{\tau}; \quad z \leftarrow z + t\, (T_g(z) - z)"
    )
    color: ClassVar[str] = "#8A6D00"
    symbol: ClassVar[str] = "triangle-up"
    position: ClassVar[int] = 7
    uses_lambda: ClassVar[bool] = True
    default_lam: ClassVar[float] = 1.0

    neighbour_weight: float = option(0.03, "w, of the divergence", low=0.0, label="Weight of the neighbours' penalty")
    mean_weight: float = option(0.5, "r, of UGE-R's penalty", low=0.0, label="Weight of the mean penalty")
    kernel_weight: float = option(1.0, "k, of the kernel gap", low=0.0, label="Weight of the kernel penalty")
    temperature: float = option(
        0.2,
        "of the softmax, in standard deviations of a random cosine; lower looks at closer people",
        low=0.01,
        high=10.0,
        label="Temperature of soft neighbours",
    )
    num_asked: int = option(
        256, "people of a step whose neighbours are mixed", low=1, high=1_000_000, label="People per step"
    )
    num_others: int = option(
        32_768,
        "people of a step who may be their neighbours; closer ones are seen with more",
        low=2,
        high=10_000_000,
        label="Possible neighbours per step",
    )
    num_features: int = option(
        256, "random Fourier features per step", low=16, high=4096, label="Random features per step"
    )
    share: float = option(
        0.3, "t, how far of FairOT's way each vector goes after training", low=0.0, high=1.0, label="Share of the way"
    )

    @property
    def reads_others(self) -> bool:
        """See `Method.reads_others`."""
        return self.mean_weight > 0

    def unread(self, bipartite: bool) -> set[str]:
        """A part that weighs nothing draws nothing."""
        drawn = set() if self.neighbour_weight else {"temperature", "num_asked", "num_others"}
        return super().unread(bipartite) | drawn | (set() if self.kernel_weight else {"num_features"})

    def penalty(self, inputs: MethodInputs) -> Penalty:
        """All three."""
        rest = UGEORK(
            strength=0.0, mean_weight=self.mean_weight, kernel_weight=self.kernel_weight, num_features=self.num_features
        ).penalty(inputs)
        assert isinstance(rest, Mixture)
        groups, people = tuple(v.codes for v in inputs.sensitive), np.flatnonzero(inputs.side == 0)
        gap = NeighbourGap(groups, people, self.temperature, self.num_asked, self.num_others)
        return Mixture((*rest.parts, (self.neighbour_weight, gap)))

    def postprocess(self, inputs: MethodInputs) -> Postprocess:
        """A part of FairOT's way."""
        return FairOT(share=self.share).postprocess(inputs) if self.share else super().postprocess(inputs)
