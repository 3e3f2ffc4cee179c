"""node2vec with walk length 1: one free vector per node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from uge_core.backbones.base import Backbone, Parameters
from uge_core.plugin import Reference
from uge_core.registry import option, register

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from uge_core.backbones._inputs import Inputs


@register
@dataclass(frozen=True)
class Node2Vec(Backbone):
    r"""z_u is a row of a table. Paper: Sec. 6.1 and App. A, node2vec of walk length 1, which turns skip-gram into link prediction.

    Shapes: table (N, d); embeddings (K, N, d). Features are not used.

    The first vectors are small: with N(0, 1) the start has not worn off after 800 epochs. NDCG@10 on
    validation links (5 % of the training edges, seed 0) with deviations 0.03, 0.1, 0.3, 1: LastFM Asia
    .664, .657, .639, .425; Deezer .484, .474, .454, .284; Pokec-n (without 0.03) .537, .523, .410.

    Departures: no walks; one table for both ends; strangers are uniform.

    Cannot: embed a node that training did not see.
    """

    label: ClassVar[str] = "node2vec (walk length 1)"
    summary: ClassVar[str] = "A vector for each person, trained on the links alone: the simplest and quickest."
    citation: ClassVar[str] = "Grover and Leskovec, KDD 2016"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "A. Grover, J. Leskovec",
            "node2vec: Scalable Feature Learning for Networks",
            "KDD",
            2016,
            "doi:10.1145/2939672.2939754",
        ),
    )
    by_rows: ClassVar[bool] = True
    formula: ClassVar[str] = r"z_u = T_u, \quad \text{score}_{uv} = z_u \cdot z_v"
    uses_features: ClassVar[bool] = False
    messages: ClassVar[Literal["weighted", "plain", "none"]] = "none"

    init_std: float = option(
        0.1, "deviation of the first vectors", low=1e-6, high=10, label="Spread of the first vectors"
    )

    def init(self, inputs: Inputs, dim: int, generator: Generator) -> Parameters:
        """Normal rows."""
        import torch

        return Parameters(tables={"z": torch.randn(inputs.num_nodes, dim, generator=generator) * self.init_std})

    def encode(self, parameters: Parameters, inputs: Inputs) -> Tensor:
        """The table itself."""
        return parameters.tables["z"]
