"""Graph convolutional network."""

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
class GCN(Backbone):
    r"""z = S relu(S X W1 + b1) W2 + b2 with S = D^-1/2 (A + I) D^-1/2. Paper: App. A, widths 64 and 16.

    Where edges have weights A holds them, scaled to mean 1, beside self-loops of weight 1; on a directed
    graph messages run from source to target, and D counts what comes in (PyG's gcn_norm).
    X are the node features where the graph has them, else a learned table (N, 64) or degree bins.
    Shapes: X (N, F), W1 (F, hidden), W2 (hidden, d); embeddings (K, N, d).

    Departures: no dropout.

    Cannot: train on a part of the graph at a time.
    """

    label: ClassVar[str] = "GCN"
    summary: ClassVar[str] = "Averages people's features over their neighbours, in two layers."
    citation: ClassVar[str] = "Kipf and Welling, ICLR 2017"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "T. N. Kipf, M. Welling",
            "Semi-Supervised Classification with Graph Convolutional Networks",
            "ICLR",
            2017,
            "arXiv:1609.02907",
        ),
    )
    by_rows: ClassVar[bool] = True
    formula: ClassVar[str] = r"Z = S\, \text{relu}(S X W_1 + b_1)\, W_2 + b_2, \quad S = D^{-1/2} (A + I) D^{-1/2}"

    hidden: int = option(64, "width of the first layer", low=1, high=4096, label="Width of the first layer")
    input: str = option(
        "auto",
        "auto: features, else a learned table; table; degree",
        choices=("auto", "table", "degree"),
        label="What the first layer reads",
        words=("features, else a learned table", "a learned table", "numbers of links"),
    )

    def step_floats(self, num_nodes: int, num_messages: int, dim: int) -> int:
        """As `Backbone.step_floats`."""
        return super().step_floats(num_nodes, num_messages, dim) + 20 * num_nodes * self.hidden

    def init(self, inputs: Inputs, dim: int, generator: Generator) -> Parameters:
        """Glorot matrices, zero biases."""
        import torch

        from uge_core.backbones._inputs import glorot, input_table

        tables, width = input_table(inputs, self.input, generator)
        return Parameters(
            tables,
            {
                "w1": glorot(width, self.hidden, generator),
                "b1": torch.zeros(self.hidden),
                "w2": glorot(self.hidden, dim, generator),
                "b2": torch.zeros(dim),
            },
        )

    def encode(self, parameters: Parameters, inputs: Inputs) -> Tensor:
        """Two convolutions."""
        from uge_core.backbones._inputs import propagate
        from uge_core.row_products import plus, times

        p, s, ranks = parameters.layers, inputs.adjacency, inputs.ranks
        x = inputs.start(parameters.tables, self.input)
        hidden = plus(propagate(times(x, p["w1"], ranks), s, ranks), p["b1"], ranks).relu()
        return plus(propagate(times(hidden, p["w2"], ranks), s, ranks), p["b2"], ranks)
