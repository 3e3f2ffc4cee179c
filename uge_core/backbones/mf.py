"""Matrix factorisation with the pairwise logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.backbones.node2vec import Node2Vec
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class MatrixFactorisation(Node2Vec):
    r"""z_u is a row of a table, trained by BPR: mean of -log sigmoid(z_u . z_i - z_u . z_j).

    i is an observed neighbour of u, j a fresh random stranger per pair and epoch (bipartite: u is a
    user, i and j are items). Paper: Sec. 6.1. Shapes: table (N, d); embeddings (K, N, d).
    """

    label: ClassVar[str] = "MF (BPR)"
    citation: ClassVar[str] = "Rendle et al., UAI 2009"
    loss: ClassVar[str] = "bpr"

    init_std: float = option(0.1, "deviation of the first vectors", low=1e-6, high=10)
