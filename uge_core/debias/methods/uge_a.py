"""UGE-A (ours, beside the paper's): encoders aggregate over the bias-free graph, which the offset fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.edge_factors import EdgeFactors, FixedFactors
from uge_core.debias.methods.uge_o import UGEO
from uge_core.plugin import PAPER, Reference
from uge_core.registry import register


@register
@dataclass(frozen=True)
class UGEA(UGEO):
    r"""Messages along each edge weigh R~ / R (1 on average), beside UGE-O's offset log(R / R~).

    A neighbour that the attributes brought counts less in the mean a node is made from, one in spite of
    them more.

    Cannot: change encoders that do not weigh messages: with GAT's attention and with tables it is UGE-O.
    """

    label: ClassVar[str] = "UGE-A (ours)"
    summary: ClassVar[str] = (
        "As UGE-O, and neighbours whom the attribute brought count less where an encoder averages over neighbours."
    )
    citation: ClassVar[str] = "this package, from Eq. (3)-(4); an idea of the paper's conclusion"
    references: ClassVar[tuple[Reference, ...]] = (PAPER,)
    formula: ClassVar[str] = (
        r"\text{logit}_{uv} = z_u \cdot z_v + \log \frac{R(a_u, a_v)}{\tilde R(A_u, A_v)}, \quad A'_{uv} \propto A_{uv}\, \frac{\tilde R(A_u, A_v)}{R(a_u, a_v)}\ \text{ in messages}"
    )
    color: ClassVar[str] = "#3F6A73"
    symbol: ClassVar[str] = "star-square"
    position: ClassVar[int] = 10

    def edges(self, inputs: MethodInputs) -> EdgeFactors:
        """R~/R of each training edge, in messages alone."""
        weight = np.exp(-self.cells(inputs).edge_offset(inputs.train_edges))
        mean = weight.mean() if inputs.weights is None else np.average(weight, weights=inputs.weights)
        return FixedFactors(messages=(weight / mean).astype(np.float32))
