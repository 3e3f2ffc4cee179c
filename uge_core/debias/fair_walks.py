"""Walks of one step in closed form: what each edge counts where a method chooses the neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uge_core.arrays import DirectionArray, FloatArray, IntArray
from uge_core.debias.bias_free import MethodInputs, partition

Numbers = npt.NDArray[np.float64]


def sensitive_groups(inputs: MethodInputs) -> IntArray:
    """(N,) joint groups of the sensitive attributes; a missing value is one more value, items are one more group."""
    return partition([v.codes for v in inputs.sensitive], inputs.side).group


@dataclass(frozen=True, eq=False)
class FairSteps:
    r"""All single steps along training edges, both ways, by the block of neighbours they lead to.

    A block is the neighbours of one node u, those it has an edge to, that belong to one group c. A rule gives each
    block of u a share m_uc of u's steps, and each neighbour an appeal f within its block. Against a step of a plain
    walk, which goes to v in proportion to w_uv, a step of such a walk goes to v

        m_uc S_u f_v / (sum over the block of w_uv' f_v'),   S_u = sum of w_uv' over all of u's neighbours

    times as often: over u's edges this factor has mean 1, weighed by w.

    Attributes:
        edges: (2, E), each once.
        groups: (N,).
        weights: (E,) the edges' own weights, or None for 1 each.
        directions: (E,) which way they run, as in `AttributedGraph`, or None for both ways.
    """

    edges: IntArray
    groups: IntArray
    weights: FloatArray | None = None
    directions: DirectionArray | None = None

    @classmethod
    def of(cls, inputs: MethodInputs) -> FairSteps:
        """Along a member's training edges, between its sensitive groups."""
        return cls(inputs.train_edges, sensitive_groups(inputs), inputs.weights, inputs.directions)

    @cached_property
    def _there(self) -> IntArray | slice:
        """Which of the 2 E ways, those from smaller ends first, can be gone: M of them."""
        if self.directions is None:
            return slice(None)
        return np.nonzero(np.concatenate([self.directions >= 0, self.directions <= 0]))[0]

    @cached_property
    def source(self) -> IntArray:
        """(M,) where each step begins; steps from smaller ends come first."""
        return np.asarray(self.edges.reshape(-1)[self._there])

    @cached_property
    def target(self) -> IntArray:
        """(M,) where each step leads."""
        return np.asarray(self.edges[::-1].reshape(-1)[self._there])

    @cached_property
    def own(self) -> Numbers:
        """(M,) w of each step."""
        weights = np.ones(self.edges.shape[1]) if self.weights is None else self.weights
        return np.asarray(np.tile(weights.astype(np.float64), 2)[self._there])

    @cached_property
    def _blocks(self) -> tuple[IntArray, IntArray, IntArray]:
        """(B,) node and group of each block; (M,) the block each step leads to."""
        many = np.int64(self.groups.max()) + 1
        key, block = np.unique(self.source * many + self.groups[self.target], return_inverse=True)
        return key // many, key % many, block.reshape(-1)

    @property
    def block_node(self) -> IntArray:
        """(B,) u of each block."""
        return self._blocks[0]

    @property
    def block_group(self) -> IntArray:
        """(B,) c of each block."""
        return self._blocks[1]

    def ratios(self, share: Numbers, appeal: Numbers | None = None) -> Numbers:
        """(2, E) how many times as often each edge is gone from its smaller end, and from its larger; 0 where it cannot be.

        Args:
            share: (B,) m of each block.
            appeal: (N,) f of each node; None: 1 each.
        """
        block = self._blocks[2]
        fitted = np.ones(len(self.source)) if appeal is None else appeal[self.target]
        strength = np.bincount(self.source, self.own)
        inside = np.bincount(block, self.own * fitted)
        ratio = share[block] * strength[self.source] * fitted / inside[block]
        return self._by_edge(ratio)

    def counted(self, ratios: Numbers) -> FloatArray:
        """(E,) the mean of an edge's `ratios` over the ways it can be gone, as a score has no direction."""
        if self.directions is None:
            return np.asarray(ratios.mean(axis=0), np.float32)
        return np.asarray(ratios.sum(axis=0) / np.where(self.directions == 0, 2, 1), np.float32)

    def weights_of(self, ratios: Numbers) -> Numbers:
        """(2, E) what a step along each edge weighs, from its smaller end and from its larger."""
        return ratios * self._by_edge(self.own)

    def _by_edge(self, by_way: Numbers) -> Numbers:
        """(2, E) from (M,), 0 where there is no way."""
        if self.directions is None:
            return np.asarray(by_way.reshape(2, -1))
        every = np.zeros(2 * self.edges.shape[1])
        every[self._there] = by_way
        return every.reshape(2, -1)
