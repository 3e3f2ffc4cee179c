"""Matrix factorisation with the pairwise logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.backbones.node2vec import Node2Vec
from uge_core.plugin import Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class MatrixFactorisation(Node2Vec):
    r"""z_u is a row of a table, trained by BPR: mean of -log sigmoid(z_u . z_i - z_u . z_j).

    i is an observed neighbour of u, j a fresh random stranger per pair and epoch (bipartite: u is a
    user, i and j are items). Paper: Sec. 6.1. Shapes: table (N, d); embeddings (K, N, d).

    Cannot: say how likely a link is: scores are compared for one source, so probabilities in DP and EO have no
    calibration. A node that training did not see has no row.
    """

    label: ClassVar[str] = "MF (BPR)"
    summary: ClassVar[str] = "Ranks each person's links above strangers; made for people and items."
    citation: ClassVar[str] = "Rendle et al., UAI 2009"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "S. Rendle, C. Freudenthaler, Z. Gantner, L. Schmidt-Thieme",
            "BPR: Bayesian Personalized Ranking from Implicit Feedback",
            "UAI",
            2009,
            "arXiv:1205.2618",
        ),
    )
    formula: ClassVar[str] = r"-\,\text{mean}_{(u,i) \in E,\ j} \log \sigma(z_u \cdot z_i - z_u \cdot z_j)"
    loss: ClassVar[str] = "bpr"

    init_std: float = option(
        0.1, "deviation of the first vectors", low=1e-6, high=10, label="Spread of the first vectors"
    )
