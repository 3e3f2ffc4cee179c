"""Simplified graph convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from uge_core.backbones.base import Backbone, Parameters
from uge_core.plugin import Reference
from uge_core.registry import option, register

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from uge_core.backbones._inputs import Inputs


@register
@dataclass(frozen=True)
class SGC(Backbone):
    r"""z = S^2 X W + b with S = D^-1/2 (A + I) D^-1/2: two hops, one linear map.

    X and S as for GCN. Shapes: X (N, F), W (F, d); embeddings (K, N, d).

    Departures: the UGE paper names two layers of 64 and 16; without a nonlinearity between they are one
    map, as in the authors' code.

    Cannot: train on a part of the graph at a time.
    """

    label: ClassVar[str] = "SGC"
    summary: ClassVar[str] = "As GCN without what lies between the layers: two averages and one linear map."
    citation: ClassVar[str] = "Wu et al., ICML 2019"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "F. Wu, T. Zhang, A. H. de Souza Jr., C. Fifty, T. Yu, K. Q. Weinberger",
            "Simplifying Graph Convolutional Networks",
            "ICML",
            2019,
            "arXiv:1902.07153",
        ),
    )
    by_rows: ClassVar[bool] = True
    formula: ClassVar[str] = r"Z = S^k X W + b, \quad S = D^{-1/2} (A + I) D^{-1/2}"

    hops: int = option(2, "number of propagations", low=1, high=16, label="Steps along edges")
    input: str = option(
        "auto",
        "auto: features, else a learned table; table; degree",
        choices=("auto", "table", "degree"),
        label="What the first layer reads",
        words=("features, else a learned table", "a learned table", "numbers of links"),
    )

    def step_floats(self, num_nodes: int, num_messages: int, dim: int) -> int:
        """As `Backbone.step_floats`."""
        return super().step_floats(num_nodes, num_messages, dim) + (self.hops + 6) * num_nodes * 64

    def init(self, inputs: Inputs, dim: int, generator: Generator) -> Parameters:
        """A Glorot matrix, zero bias."""
        import torch

        from uge_core.backbones._inputs import glorot, input_table

        tables, width = input_table(inputs, self.input, generator)
        return Parameters(tables, {"w": glorot(width, dim, generator), "b": torch.zeros(dim)})

    def encode(self, parameters: Parameters, inputs: Inputs) -> Tensor:
        """Map first, then propagate: the product is the same and d columns are cheaper than F."""
        from uge_core.backbones._inputs import propagate
        from uge_core.row_products import plus, times

        x = times(inputs.start(parameters.tables, self.input), parameters.layers["w"], inputs.ranks)
        for _ in range(self.hops):
            x = propagate(x, inputs.adjacency, inputs.ranks)
        return plus(x, parameters.layers["b"], inputs.ranks)
