"""LINE: a node's vector says whom it knows, and whom those who are like it know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from uge_core.backbones.base import Parameters
from uge_core.backbones.node2vec import Node2Vec
from uge_core.errors import ConfigError
from uge_core.plugin import Reference
from uge_core.registry import option, register

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from uge_core.backbones._inputs import Inputs


@register
@dataclass(frozen=True)
class LINE(Node2Vec):
    r"""First order: a pair scores z_u . z_v. Second order: z_u . c_v and z_v . c_u, with a context vector c of each node.

    Nodes with the same neighbours become alike under the second order, linked or not. `both` gives each half of
    the columns: the first d - d // 2 are the first order's, the rest the second's; the two losses are added. Kept and
    exported is the table of z, and penalties see it.

    Departures: strangers come from the shared block (uniform, no edge to the source) and repel both ways, where LINE
    draws contexts alone, by degree^(3/4); the orders are trained at once; an edge is gone both ways whatever its
    direction.

    Cannot: say how likely a link is with the second order: scores z_u . z_v are no chances there, nor are directions
    followed.

    Shapes: table (N, d), contexts (N, d), of `both` (N, d // 2); embeddings (K, N, d). Features are not used.
    """

    label: ClassVar[str] = "LINE"
    summary: ClassVar[str] = "A vector for each person, trained on links and on shared neighbours."
    citation: ClassVar[str] = "Tang et al., WWW 2015"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "J. Tang, M. Qu, M. Wang, M. Zhang, J. Yan, Q. Mei",
            "LINE: Large-scale Information Network Embedding",
            "WWW",
            2015,
            "doi:10.1145/2736277.2741093",
        ),
    )
    formula: ClassVar[str] = (
        r"\text{first order: } z_u \cdot z_v, \quad \text{second order: } z_u \cdot c_v\ \text{ and }\ z_v \cdot c_u"
    )

    order: str = option(
        "both",
        "1: neighbours; 2: neighbours of neighbours; both: half the columns each",
        choices=("1", "2", "both"),
        label="Who becomes alike",
        words=("neighbours", "people with the same neighbours", "both, half the numbers each"),
    )

    @property
    def calibrated(self) -> bool:
        """Only of the first order alone."""
        return self.order == "1"

    @property
    def has_context(self) -> bool:
        """All but the first order alone."""
        return self.order != "1"

    def step_floats(self, num_nodes: int, num_messages: int, dim: int) -> int:
        """As `Backbone.step_floats`, with the contexts."""
        return super().step_floats(num_nodes, num_messages, 2 * dim)

    def init(self, inputs: Inputs, dim: int, generator: Generator) -> Parameters:
        """Normal rows."""
        import torch

        if dim < 2 and self.order == "both":
            raise ConfigError("order = both gives each half of the columns, of which there is one; use dim 2 or more")
        tables = super().init(inputs, dim, generator).tables
        width = {"1": 0, "2": dim, "both": dim // 2}[self.order]
        if width:
            tables["context"] = torch.randn(inputs.num_nodes, width, generator=generator) * self.init_std
        return Parameters(tables)

    def context(self, parameters: Parameters) -> Tensor | None:
        """The contexts' table; None of the first order."""
        return parameters.tables.get("context")
