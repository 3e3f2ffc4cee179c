"""UGE-C: the weights of UGE-W beside the penalty of UGE-R."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.debias.bias_free import CellTable, MethodInputs, weight_cells
from uge_core.debias.methods.uge_r import UGER
from uge_core.plugin import PAPER, Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class UGEC(UGER):
    r"""Both, Eq. (15): sum_e l(e) * R~ / R + lambda * gap between Q and Q~. At lambda 0 it is UGE-W to the bit.

    Departures: those of UGE-W and UGE-R.

    Cannot: more than the two: what no observed edge can stand for, and attackers that are not linear.
    """

    label: ClassVar[str] = "UGE-C"
    summary: ClassVar[str] = (
        "UGE-W and UGE-R together: links are weighed, and a penalty draws groups' average scores together."
    )
    citation: ClassVar[str] = "Wang et al., WWW 2022, Eq. (15)"
    references: ClassVar[tuple[Reference, ...]] = (PAPER,)
    formula: ClassVar[str] = (
        r"\sum_{(u,v) \in E} \frac{\tilde R(A_u, A_v)}{R(a_u, a_v)}\, \ell(z_u, z_v) + \lambda\, \frac{1}{N^2} \sum_{u,v} \left( Q_{a_u a_v} - \tilde Q_{A_u A_v} \right)^2"
    )
    color: ClassVar[str] = "#CC79A7"
    symbol: ClassVar[str] = "hexagon"
    position: ClassVar[int] = 3

    shrinkage: float = option(
        0.0,
        "pseudo-edges that pull a cell's ratio towards its bias-free rate; the paper has none",
        low=0.0,
        label="Pull towards the bias-free rate",
    )
    independence: bool = option(
        False, "product of one-attribute ratios (Sec. 5.1); advised when cells are thin", label="One-attribute ratios"
    )

    @property
    def reads_others(self) -> bool:
        """See `Method.reads_others`."""
        return True

    def cells(self, inputs: MethodInputs) -> CellTable:
        """Weights R~/R, offset 0."""
        return weight_cells(
            inputs, shrinkage=self.shrinkage, independence=self.independence, item_cells=self.item_cells
        )
