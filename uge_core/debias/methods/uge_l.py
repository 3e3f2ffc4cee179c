"""UGE-L (ours, beside the paper's): R is learned as a smooth function of the attributes, not counted in a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from uge_core.debias.base import Method
from uge_core.debias.bias_free import CellTable, MethodInputs, joint_weights
from uge_core.debias.methods import _options
from uge_core.plugin import PAPER, Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class UGEL(Method):
    r"""UGE-O's offset log(R / R~), or UGE-W's weight R~ / R, from E_ab ~ NB(n_a n_b exp(pairwise effects), s).

    Every value of an attribute on one end has an effect with every value of each attribute on the other;
    a cell strays from what these say as far as its edges are many. For several attributes, whose cells
    are thin: it needs no pseudo-edges and assumes no independence. As with UGE-W weights have mean 1.

    Cannot: see effects of whole combinations where edges are few; more than 4,096 joint groups are refused.
    As an offset it cancels under BPR on a bipartite graph without item cells, and is refused.
    """

    label: ClassVar[str] = "UGE-L (ours)"
    summary: ClassVar[str] = "As UGE-O, for several attributes whose combined groups are small."
    citation: ClassVar[str] = "this package, from Eq. (3)-(4); an idea of the paper's conclusion"
    references: ClassVar[tuple[Reference, ...]] = (PAPER,)
    formula: ClassVar[str] = (
        r"E_{ab} \sim \text{NB}\!\left( \mu_{ab},\ s \right), \quad \log \mu_{ab} = \log n_a n_b + c + \sum_{k \le l} \left( T^{kl}_{a_k b_l} + T^{kl}_{b_k a_l} \right), \quad \text{offset } \log \frac{R}{\tilde R}\ \text{ from } \hat E_{ab} = \mu_{ab}\, \frac{E_{ab} + s}{\mu_{ab} + s}"
    )
    color: ClassVar[str] = "#58A632"
    symbol: ClassVar[str] = "star-triangle-down"
    position: ClassVar[int] = 8

    use: str = option(
        "offset",
        "offset: as UGE-O; weights: as UGE-W",
        choices=("offset", "weights"),
        label="What the ratios become",
        words=("an offset, as in UGE-O", "weights, as in UGE-W"),
    )
    item_cells: str = option(
        "popularity", "bipartite: popularity deciles, none, or an attribute of items", label="Groups of items"
    )

    @property
    def reads_others(self) -> bool:
        """See `Method.reads_others`."""
        return True

    def check(self, inputs: MethodInputs, loss: str) -> None:
        """Refuses an offset that cancels, as UGE-O does."""
        if self.use == "offset":
            _options.check_offset(self.item_cells, inputs, loss)

    def cells(self, inputs: MethodInputs) -> CellTable:
        """The learned table; no cell is thin, as it borrows from others."""
        from uge_core.debias.learned_ratio import smooth

        part, counts = inputs.joint(self.item_cells)
        learned = joint_weights(part, smooth(counts, part.values).counts, 0.0)
        table = replace(learned, uncovered_mass=counts.uncovered_mass, thin_mass=0.0)
        if self.use == "weights":
            return table.balanced(inputs.train_edges, inputs.weights)
        return replace(table, weight=np.ones_like(table.weight), offset=-np.log(table.weight))
