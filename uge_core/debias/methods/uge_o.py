"""UGE-O (ours, beside the paper's): the attributes' part of the graph is an offset, dropped after training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.debias.base import Method
from uge_core.debias.bias_free import CellTable, MethodInputs, offset_cells
from uge_core.debias.methods import _options
from uge_core.plugin import PAPER, Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class UGEO(Method):
    r"""Offset: train on logit = z_u . z_v + log(R / R~) of the pair's cell, use z_u . z_v alone.

    From the generative model of Eq. (3)-(4): the observed graph is the bias-free one times R / R~,
    so the dot product fits the bias-free graph itself. Ours; the paper has no such method.

    Cannot: keep links that exist for the sensitive attributes alone, so link quality on the observed graph falls.
    Ratios of thin cells are mostly chance (`independence`). Pairs that meet on walks are less biased than edges,
    so that it corrects them too much. Under BPR on a bipartite graph without item cells it cancels, and is refused.
    """

    label: ClassVar[str] = "UGE-O (ours)"
    summary: ClassVar[str] = (
        "Explains the attribute's part of each link beside the embedding, and leaves it out of what is kept."
    )
    citation: ClassVar[str] = "this package, from Eq. (3)-(4)"
    references: ClassVar[tuple[Reference, ...]] = (PAPER,)
    formula: ClassVar[str] = (
        r"\text{logit}_{uv} = z_u \cdot z_v + \log \frac{R(a_u, a_v)}{\tilde R(A_u, A_v)}\ \text{ while training}, \quad z_u \cdot z_v\ \text{ afterwards}"
    )
    color: ClassVar[str] = "#D55E00"
    symbol: ClassVar[str] = "pentagon"
    position: ClassVar[int] = 4

    shrinkage: float = option(
        2.0,
        "pseudo-edges at the bias-free rate; an offset cannot be infinite",
        low=0.01,
        label="Pull towards the bias-free rate",
    )
    independence: bool = option(
        False, "sum of one-attribute offsets; advised when cells are thin", label="One-attribute ratios"
    )
    item_cells: str = option(
        "popularity", "bipartite: popularity deciles, none, or an attribute of items", label="Groups of items"
    )

    @property
    def reads_others(self) -> bool:
        """See `Method.reads_others`."""
        return not self.independence

    def check(self, inputs: MethodInputs, loss: str) -> None:
        """Refuses BPR without item cells, where the offset of a user's two items cancels."""
        _options.check_offset(self.item_cells, inputs, loss)

    def cells(self, inputs: MethodInputs) -> CellTable:
        """Weight 1, offset log(R/R~)."""
        return offset_cells(
            inputs, shrinkage=self.shrinkage, independence=self.independence, item_cells=self.item_cells
        )
