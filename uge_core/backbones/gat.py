"""Graph attention network."""

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
class GAT(Backbone):
    r"""z_v = sum_{u in N(v) + v} a_uv W x_u + b, a_uv = softmax_u(leaky_relu(s . W x_u + t . W x_v)), in two layers.

    8 heads of 8, ELU, then one head of d. Paper: App. A, widths 64 and 16; slope 0.2. X as for GCN. On
    a directed graph N(v) are the nodes with an edge into v. Shapes: X (N, F), W1 (F, heads * width), W2 (heads * width,
    d); embeddings (K, N, d).

    Departures: no dropout.

    Cannot: weigh messages by edges: attention takes the place of edge weights, which enter the loss alone, and of what
    a method weighs messages by.
    """

    label: ClassVar[str] = "GAT"
    summary: ClassVar[str] = "As GCN, with learned attention to each neighbour."
    citation: ClassVar[str] = "Velickovic et al., ICLR 2018"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "P. Velickovic, G. Cucurull, A. Casanova, A. Romero, P. Lio, Y. Bengio",
            "Graph Attention Networks",
            "ICLR",
            2018,
            "arXiv:1710.10903",
        ),
    )
    formula: ClassVar[str] = (
        r"z_v = \sum_{u \in N(v) \cup v} \alpha_{uv}\, W x_u + b, \quad \alpha_{uv} = \text{softmax}_u\, \text{lrelu}(s \cdot W x_u + t \cdot W x_v)"
    )
    messages: ClassVar[Literal["weighted", "plain", "none"]] = "plain"

    heads: int = option(8, "attention heads of the first layer", low=1, high=64, label="Attention heads")
    width: int = option(8, "width of a head", low=1, high=1024, label="Width of a head")
    input: str = option(
        "auto",
        "auto: features, else a learned table; table; degree",
        choices=("auto", "table", "degree"),
        label="What the first layer reads",
        words=("features, else a learned table", "a learned table", "numbers of links"),
    )

    def step_floats(self, num_nodes: int, num_messages: int, dim: int) -> int:
        """As `Backbone.step_floats`."""
        return super().step_floats(num_nodes, num_messages, dim) + num_nodes * 24 * 64

    def init(self, inputs: Inputs, dim: int, generator: Generator) -> Parameters:
        """Glorot matrices, zero biases."""
        import torch

        from uge_core.backbones._inputs import glorot, input_table

        tables, fan_in = input_table(inputs, self.input, generator)
        h, w = self.heads, self.width
        return Parameters(
            tables,
            {
                "w1": glorot(fan_in, h * w, generator),
                "source1": glorot(h, w, generator),
                "target1": glorot(h, w, generator),
                "b1": torch.zeros(h * w),
                "w2": glorot(h * w, dim, generator),
                "source2": glorot(1, dim, generator),
                "target2": glorot(1, dim, generator),
                "b2": torch.zeros(dim),
            },
        )

    def encode(self, parameters: Parameters, inputs: Inputs) -> Tensor:
        """Two attention layers, a member at a time: softmax and messages are per edge, head and member."""
        import torch

        from uge_core.backbones._attention import attend
        from uge_core.row_products import elu, plus, times

        def layer(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
            # a block of a row per head: each head meets its own part of x
            parts = [torch.block_diag(*a.unsqueeze(-1)) for a in (source, target)]  # type: ignore[no-untyped-call]
            of_source, of_target = times(x, torch.cat(parts, dim=1)).chunk(2, dim=1)
            return attend(x, of_source, of_target, inputs)

        p = parameters.layers
        start = inputs.start(parameters.tables, self.input)
        out = []
        for k in range(len(p["w1"])):
            x = start[k] if start.dim() == 3 else start
            hidden = plus(layer(times(x, p["w1"][k]), p["source1"][k], p["target1"][k]), p["b1"][k])
            out.append(plus(layer(times(elu(hidden), p["w2"][k]), p["source2"][k], p["target2"][k]), p["b2"][k]))
        return torch.stack(out)
