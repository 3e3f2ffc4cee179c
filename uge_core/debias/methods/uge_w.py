"""UGE-W: each observed edge weighs as often as a graph without the sensitive attributes would have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.debias.base import Method
from uge_core.debias.bias_free import CellTable, MethodInputs, weight_cells
from uge_core.plugin import PAPER, Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class UGEW(Method):
    r"""Weighting, Eq. (6): sum_e l(e) * R~ / R, the loss of the bias-free graph in expectation.

    The weight multiplies the observed edge's term only under cross-entropy, the whole pair under
    BPR. On a bipartite graph without item cells it is one constant per group of users.

    Departures: R and R~ are estimated on the training edges alone; strangers weigh 1, which is right up to
    the graph's density. Weights are rescaled to mean 1 over the training edges, with `independence` too, as cells
    without an edge and products of ratios lose mass, and links would count less than strangers.

    Cannot: weigh what was never observed: the bias-free edges of a cell without an edge (`uncovered_mass`). The longer
    a model trains the less the weights matter, as it then fits every edge.
    """

    label: ClassVar[str] = "UGE-W"
    summary: ClassVar[str] = "Links that the attribute made likelier count less in training, the others more."
    citation: ClassVar[str] = "Wang et al., WWW 2022, Eq. (6)"
    references: ClassVar[tuple[Reference, ...]] = (PAPER,)
    formula: ClassVar[str] = r"\sum_{(u,v) \in E} \frac{\tilde R(A_u, A_v)}{R(a_u, a_v)}\, \ell(z_u, z_v)"
    color: ClassVar[str] = "#0072B2"
    symbol: ClassVar[str] = "diamond"
    position: ClassVar[int] = 1

    shrinkage: float = option(
        0.0,
        "pseudo-edges that pull a cell's ratio towards its bias-free rate; the paper has none",
        low=0.0,
        label="Pull towards the bias-free rate",
    )
    independence: bool = option(
        False, "product of one-attribute ratios (Sec. 5.1); advised when cells are thin", label="One-attribute ratios"
    )
    item_cells: str = option(
        "none", "bipartite: none (the paper), popularity, or an attribute of items", label="Groups of items"
    )

    @property
    def reads_others(self) -> bool:
        """See `Method.reads_others`."""
        return not self.independence

    def cells(self, inputs: MethodInputs) -> CellTable:
        """Weights R~/R, offset 0."""
        return weight_cells(
            inputs, shrinkage=self.shrinkage, independence=self.independence, item_cells=self.item_cells
        )
