"""CrossWalk: walks are drawn towards and across the boundaries of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from uge_core.debias.base import Method
from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.edge_factors import EdgeFactors, FixedFactors
from uge_core.debias.fair_walks import FairSteps, Numbers
from uge_core.errors import ConfigError
from uge_core.graph.walks import StepRule
from uge_core.plugin import Reference
from uge_core.registry import option, register

_FLOOR = 0.001
_AT_ONCE = 64


def boundary(steps: FairSteps, num_nodes: int, length: int) -> Numbers:
    """(N,) m of each node: 0.001 + the share of other groups' nodes on a plain walk of `length` steps from it.

    (1 / l) sum_t P^t 1[other group], exact, by l sparse products for 64 groups at a time, O(l E G).
    Where edges have directions a walk may end, after which it sees nobody.
    """
    here, groups = np.arange(num_nodes), steps.groups
    strength = np.bincount(steps.source, steps.own, num_nodes)
    each = steps.own / strength[steps.source]
    chance = sparse.csr_array((each, (steps.source, steps.target)), shape=(num_nodes, num_nodes))
    other = np.zeros(num_nodes)
    for first in range(0, int(groups.max()) + 1, _AT_ONCE):
        mine = (groups >= first) & (groups < first + _AT_ONCE)
        column = groups[mine] - first
        in_group = np.zeros((num_nodes, int(column.max(initial=0)) + 1))
        in_group[here[mine], column] = 1.0
        going = np.ones(num_nodes)  # the chance that a walk has not ended
        for _ in range(length):
            in_group = np.asarray(chance @ in_group)
            going = going if steps.directions is None else np.asarray(chance @ going)
            other[mine] += going[mine] - in_group[here[mine], column]
    return _FLOOR + np.where(strength > 0, other / length, 0.0)


def crossing_shares(steps: FairSteps, alpha: float) -> Numbers:
    """(B,) the part of a node's steps to each block: 1 - alpha to its own group, alpha to the others, each alike."""
    node = steps.block_node
    own = steps.block_group == steps.groups[node]
    others, has_own = (np.bincount(node, kind) for kind in (~own, own))
    inside = np.where(others[node] > 0, 1.0 - alpha, 1.0)
    outside = np.where(has_own[node] > 0, alpha, 1.0) / np.maximum(others[node], 1)
    return np.asarray(np.where(own, inside, outside))


@register
@dataclass(frozen=True)
class CrossWalk(Method):
    r"""w'_uv ~ w_uv m_v^p, 1 - alpha of a node's steps to its own group, alpha to others: to the boundary of groups, and over it.

        w'_uv = w_uv m_v^p (1 - alpha) / sum over u's neighbours v' of its own group of w_uv' m_v'^p    same group
        w'_uv = w_uv m_v^p (alpha / C_u) / sum over those of v's group of w_uv' m_v'^p                  another

    m_v = 0.001 + the share of other groups' nodes on a walk of l = `boundary_length` steps from v; C_u is the number
    of other groups among u's neighbours. Where u has neighbours of its own group alone, or of others alone, they get
    the whole. m is exact (l sparse products).

    With real walks (backbone deepwalk) steps are drawn by w'. For every other backbone walks of one step in closed
    form: the edge's term counts the mean of both directions' w'_uv S_u / w_uv, S_u the sum of u's w, whose mean over
    the training edges, weighed by w, is 1 where none is directed.

    On a directed graph a node's neighbours are those it has an edge to, walks that end see nobody after it, and an edge
    that runs one way counts that way alone.

    Groups are the combinations of the sensitive attributes; people without a value are a group of their own.

    Departures: m is exact where the authors count on 1,000 walks; in closed form walks of more than one step are not
    considered.

    Cannot: serve bipartite graphs, where every edge leads to the other side: there is no boundary between groups of
    people. Its settings can also raise what can be read: look at both sides of alpha.
    """

    label: ClassVar[str] = "CrossWalk"
    summary: ClassVar[str] = "Random walks are led towards people near other groups, and across to them."
    citation: ClassVar[str] = "Khajehnejad et al., AAAI 2022"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "A. Khajehnejad, M. Khajehnejad, M. Babaei, K. P. Gummadi, A. Weller, B. Mirzasoleiman",
            "CrossWalk: Fairness-Enhanced Node Representation Learning",
            "AAAI",
            2022,
            "arXiv:2105.02725",
        ),
    )
    formula: ClassVar[str] = (
        r"w'_{uv} = \frac{w_{uv}\, m_v^p}{\sum_{v' \in N(u),\ g_{v'} = g_v} w_{uv'}\, m_{v'}^p} \cdot \begin{cases} 1 - \alpha & g_v = g_u \\ \alpha / C_u & g_v \ne g_u \end{cases}"
    )
    color: ClassVar[str] = "#E69F00"
    symbol: ClassVar[str] = "cross"
    position: ClassVar[int] = 25
    steps_follow: ClassVar[bool] = True

    alpha: float = option(
        0.5,
        "share of a node's steps that lead to other groups",
        low=0.0,
        high=1.0,
        label="Share of steps to other groups",
    )
    power: float = option(
        2.0,
        "p: how much nodes near a boundary are preferred",
        low=0.0,
        high=20.0,
        label="Preference for people near a boundary",
    )
    boundary_length: int = option(
        5,
        "steps of the walks that find the boundary",
        low=1,
        high=100,
        label="Steps of the walks that find the boundary",
    )

    def unread(self, bipartite: bool) -> set[str]:
        """With power 0 no boundary is looked for."""
        return super().unread(bipartite) | (set() if self.power else {"boundary_length"})

    def check(self, inputs: MethodInputs, loss: str) -> None:
        """Refuses bipartite graphs."""
        if inputs.graph.bipartite:
            raise ConfigError(
                "crosswalk: every edge of a bipartite graph joins a person "
                "and an item, so groups of people have no boundary "
                "for walks to cross; use fairwalk, or a graph of people"
            )

    def edges(self, inputs: MethodInputs) -> EdgeFactors:
        """What a walk of one step by w' counts each edge."""
        steps, ratios = self._ratios(inputs)
        return FixedFactors(loss=steps.counted(ratios))

    def walks(self, inputs: MethodInputs) -> StepRule:
        """FairSteps by w'."""
        steps, ratios = self._ratios(inputs)
        return StepRule(weights=steps.weights_of(ratios))

    def _ratios(self, inputs: MethodInputs) -> tuple[FairSteps, Numbers]:
        steps = FairSteps.of(inputs)
        nodes = inputs.graph.num_nodes
        near: Numbers = boundary(steps, nodes, self.boundary_length) ** self.power if self.power else np.ones(nodes)
        return steps, steps.ratios(crossing_shares(steps, self.alpha), near)
