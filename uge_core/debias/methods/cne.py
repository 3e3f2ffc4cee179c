"""CNE: what degrees alone say of the graph is an offset, so that the embedding need not hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.debias.bias_free import CellTable, MethodInputs
from uge_core.debias.methods._scored import Scored
from uge_core.debias.prior_cells import prior_cells
from uge_core.debias.priors import degree_by_group
from uge_core.plugin import Reference
from uge_core.registry import register


@register
@dataclass(frozen=True)
class CNE(Scored):
    r"""Conditional network embedding: train on logit = s_uv + t_u + t_v, use s_uv alone.

    t is the maximum-entropy prior that meets every node's degree, logit P_uv = t_u + t_v. ``score=distance`` is CNE's
    own, s_uv = log s - (1 - 1/s^2) / 2 |z_u - z_v|^2 with s = ``sigma_2``; by default the dot product z_u . z_v stands
    in its place. Under BPR the offset of the compared ends stays, the source's cancels, and so does log s.

    Departures: CNE also scores with its prior; here, as everywhere in this package, s_uv alone is what ranks and what
    is audited. The prior counts every edge once, whatever it weighs. Every backbone can be trained so.

    Cannot: hide an attribute that degrees do not carry: it reads none. What it removes is popularity, which links are
    ranked worse without.
    """

    label: ClassVar[str] = "CNE (degree prior)"
    summary: ClassVar[str] = (
        "Leaves out how many links each person has; reads no attribute, so that it shows what that alone does."
    )
    citation: ClassVar[str] = "Kang, Lijffijt and De Bie, ICLR 2019"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "B. Kang, J. Lijffijt, T. De Bie", "Conditional Network Embeddings", "ICLR", 2019, "arXiv:1805.07544"
        ),
    )
    formula: ClassVar[str] = (
        r"\text{logit}_{uv} = s_{uv} + \text{logit}\, P_{uv}, \quad \text{logit}\, P_{uv} = t_u + t_v, \quad \sum_v P_{uv} = \deg(u), \quad s_{uv} = z_u \cdot z_v \ \text{or}\ \log s - \tfrac{1 - s^{-2}}{2} |z_u - z_v|^2"
    )
    color: ClassVar[str] = "#56B4E9"
    symbol: ClassVar[str] = "octagon"
    position: ClassVar[int] = 20
    reads_attributes: ClassVar[bool] = False

    def cells(self, inputs: MethodInputs) -> CellTable:
        """Weight 1, offset the degree prior's log odds at the rate pairs are drawn."""
        prior = degree_by_group(inputs.side, inputs.side, inputs.train_edges)
        return prior_cells(inputs, prior, sampled=inputs.loss == "cross-entropy")
