"""MONET: the attributes get dimensions of their own, to which the embedding is kept orthogonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from uge_core.debias.base import Method
from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.heads.base import Head
from uge_core.debias.heads.orthogonal import Orthogonal
from uge_core.debias.penalties.base import Penalty
from uge_core.plugin import Reference
from uge_core.registry import option, register

_WIDEST = 32


@register
@dataclass(frozen=True)
class MONET(Method):
    r"""Adapted to link prediction: logit = z_perp_u . z_perp_v + m_u . m_v, z_perp = z - M (M^T M)^+ M^T z.

    The metadata embeddings m = onehot(a) W take up what the attributes say of the links; z_perp is
    orthogonal to them in every step and is what is exported. Metadata that is wider
    than the number of values gains nothing; narrower, it takes out so many directions alone. With contexts (LINE's
    second order) the logit is z_perp_u . c_v + m_u . m_v: contexts are never exported, and are left as they are.

    Departures: Palowitch and Perozzi train GloVe on walks, with two embeddings of each kind; here there is
    one of each and the loss of the other methods.

    Cannot: speak for attackers that are not linear, or for nodes whose value was hidden: what M's columns span is out
    of reach of a linear attacker on the nodes that training saw.
    """

    label: ClassVar[str] = "MONET (links)"
    summary: ClassVar[str] = (
        "Learns the attribute's part of links beside the embedding, which is kept at right angles to it."
    )
    citation: ClassVar[str] = "Palowitch and Perozzi, ASONAM 2020, adapted to links"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "J. Palowitch, B. Perozzi",
            "MONET: Debiasing Graph Embeddings via the Metadata-Orthogonal Training Unit",
            "ASONAM",
            2020,
            "arXiv:1909.11793",
        ),
    )
    formula: ClassVar[str] = (
        r"\text{logit}_{uv} = z^\perp_u \cdot z^\perp_v + m_u \cdot m_v, \quad Z^\perp = Z - M (M^\top M)^+ M^\top Z, \quad M = \text{onehot}(a)\, W"
    )
    color: ClassVar[str] = "#0072B2"
    symbol: ClassVar[str] = "triangle-right"
    position: ClassVar[int] = 24
    widens: ClassVar[bool] = True

    metadata_dim: int = option(
        0, "width of m; 0: the number of values, at most 32", low=0, high=1024, label="Width of the attributes' part"
    )

    def head(self, inputs: MethodInputs, penalty: Penalty) -> Head:
        """The metadata embeddings and the projection."""
        graph = inputs.graph
        sizes = tuple(len(v.labels) for v in inputs.sensitive)
        sides = {int(graph.attribute(v.name).side == "items") for v in inputs.sensitive}
        # across sides m_u . m_v is nothing where one side has no m
        bare = [s for s in (0, 1) if graph.bipartite and s not in sides]
        free = np.nonzero(np.isin(inputs.side, bare))[0]
        width = self.metadata_dim or min(sum(sizes), _WIDEST)
        return Orthogonal(tuple(v.codes for v in inputs.sensitive), sizes, free, width)
