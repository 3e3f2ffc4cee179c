"""Fairwalk: a walk chooses the group of its next node first, each group alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from uge_core.debias.base import Method
from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.edge_factors import EdgeFactors, FixedFactors
from uge_core.debias.fair_walks import FairSteps, Numbers, sensitive_groups
from uge_core.graph.walks import StepRule
from uge_core.plugin import Reference
from uge_core.registry import register


def fair_shares(steps: FairSteps) -> Numbers:
    """(B,) 1 / the number of groups among a node's neighbours, for each block."""
    node = steps.block_node
    return np.asarray(1.0 / np.bincount(node)[node])


@register
@dataclass(frozen=True)
class Fairwalk(Method):
    r"""P(u -> v) = 1/G_u * w_uv / S_uc: one of the groups among u's neighbours, each alike, then a neighbour v of that group.

    With real walks (backbone deepwalk) steps are drawn so, p and q acting within the group. For every other backbone
    walks of one step, as the UGE paper extends it (Sec. 6.1), in closed form: the edge's term counts the mean of
    w_{u->v} and w_{v->u},

        w_{u->v} = S_u / (G_u S_uc),   c the group of v, G_u the number of groups among u's neighbours,

    S_u and S_uc the (weights of) edges of u, and those to group c: the chance of the step against a plain walk's. Their
    mean over the training edges, weighed by the edges' own weights, is 1 where none is directed.

    On a directed graph a node's neighbours are those it has an edge to: an edge that runs one way counts w_{u->v}
    alone.

    Groups are the combinations of the sensitive attributes; people without a value are a group of their own. Under
    BPR the factor multiplies the whole pair.

    Departures: in closed form walks of more than one step are not considered.

    Cannot: balance what users choose on a bipartite graph, as they see one group of items; steps to users alone change.
    The UGE paper leaves Fairwalk out there.
    """

    label: ClassVar[str] = "Fairwalk"
    summary: ClassVar[str] = "Random walks go to each group among a person's neighbours equally often."
    citation: ClassVar[str] = "Rahman et al., IJCAI 2019"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "T. Rahman, B. Surma, M. Backes, Y. Zhang",
            "Fairwalk: Towards Fair Graph Embedding",
            "IJCAI",
            2019,
            "doi:10.24963/ijcai.2019/456",
        ),
    )
    formula: ClassVar[str] = (
        r"P(u \to v) = \frac{1}{G_u} \cdot \frac{w_{uv}}{S_{u g_v}}, \quad S_{uc} = \sum_{v' \in N(u),\ g_{v'} = c} w_{uv'}"
    )
    color: ClassVar[str] = "#E69F00"
    symbol: ClassVar[str] = "square"
    position: ClassVar[int] = 11
    steps_follow: ClassVar[bool] = True

    def edges(self, inputs: MethodInputs) -> EdgeFactors:
        """What a fair walk of one step counts each edge."""
        steps = FairSteps.of(inputs)
        return FixedFactors(loss=steps.counted(steps.ratios(fair_shares(steps))))

    def walks(self, inputs: MethodInputs) -> StepRule:
        """The groups a step chooses among."""
        return StepRule(groups=sensitive_groups(inputs))
