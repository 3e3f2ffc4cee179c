"""CNE: what degrees alone say of the graph is an offset, so that the embedding need not hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.bias_free import CellTable, Evidence
from uge_core.debias._prior_cells import prior_cells
from uge_core.debias.base import Method
from uge_core.priors import degree_by_group
from uge_core.registry import register


@register
@dataclass(frozen=True)
class CNE(Method):
    r"""Conditional network embedding: train on logit = z_u . z_v + t_u + t_v, use z_u . z_v alone.

    t is the maximum-entropy prior that meets every node's degree, logit P_uv = t_u + t_v. CNE scores a pair by a
    distance, logit P(edge | z) = logit P_uv + c - k |z_u - z_v|^2; here the dot product stands in its place, for every
    backbone, and as everywhere in this package it alone is what ranks and what is exported, without the prior. It reads
    no attribute: what it removes is popularity. Under BPR the offset of the compared ends stays, the source's cancels.
    """

    label: ClassVar[str] = "CNE (degree prior)"
    citation: ClassVar[str] = "Kang, Lijffijt and De Bie, ICLR 2019"
    color: ClassVar[str] = "#56B4E9"
    symbol: ClassVar[str] = "octagon"
    position: ClassVar[int] = 20
    reads_attributes: ClassVar[bool] = False

    def cells(self, evidence: Evidence) -> CellTable:
        """Weight 1, offset the degree prior's log odds at the rate pairs are drawn."""
        prior = degree_by_group(evidence.side, evidence.side, evidence.train_edges)
        return prior_cells(evidence, prior, sampled=evidence.loss == "cross-entropy")
