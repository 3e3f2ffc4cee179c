"""Strangers of a kind: for many targets at once, distinct random nodes of one cell without an edge to the target.

A cell is a set of nodes, such as those of one group. Its nodes that are neither the target nor its neighbour have
ranks 0 to n - 1 in the order of the cell. Distinct ranks are drawn by Floyd's method (Bentley and Floyd, CACM 1987),
which takes as many draws as ranks and gives every set of ranks the same chance; each rank then passes over the target's
neighbours before it. So no draw is thrown away, however few strangers there are.
"""

from __future__ import annotations

import numpy as np

from uge_core.arrays import IntArray
from uge_core.graph.graph import AttributedGraph

_LISTS = 4096  # lists drawn at once


class Strangers:
    """Who may be drawn as a stranger of whom."""

    def __init__(self, graph: AttributedGraph, cell: IntArray) -> None:
        """Sorts the nodes by cell, and every node's neighbours too.

        Args:
            graph: with all its edges; a neighbour by any of them is no stranger.
            cell: (N,) cell of each node; below 0 it is never drawn.
        """
        n = self._num_nodes = graph.num_nodes
        self._nodes = np.argsort(cell, kind="stable")
        self._start = np.searchsorted(cell[self._nodes], np.arange(int(cell.max(initial=-1)) + 2))
        place = np.empty(n, dtype=np.int64)
        place[self._nodes] = np.arange(n)
        first, second = graph.edges
        self._barred = np.concatenate([first * n + place[second], second * n + place[first], np.arange(n) * n + place])
        self._barred.sort()  # (2 E + N,) by node: places of its neighbours and its own

    def count(self, targets: IntArray, cells: IntArray) -> IntArray:
        """(L,) how many strangers each target has in a cell.

        Args:
            targets: (L,) nodes.
            cells: (L,) a cell each, at least 0.
        """
        low, high = self._bounds(targets, cells)
        return self._start[cells + 1] - self._start[cells] - (high - low)

    def draw(self, targets: IntArray, cells: IntArray, length: IntArray, rng: np.random.Generator) -> IntArray:
        """Draws strangers; every set of `length` of them is as likely.

        Args:
            targets: (L,) nodes.
            cells: (L,) the cell of each one's strangers.
            length: (L,) how many, at most `count`.
            rng: draws.

        Returns:
            (L, longest) distinct node numbers, -1 pads.
        """
        from uge_core.kernels.strangers import pick

        low, high = self._bounds(targets, cells)
        start = self._start[cells]
        number = self._start[cells + 1] - start - (high - low)
        offset = targets * self._num_nodes + start
        chosen = np.full((len(targets), int(length.max(initial=0))), -1, dtype=np.int64)
        for first in range(0, len(targets), _LISTS):
            part = slice(first, first + _LISTS)
            last = (number - length)[part, None] + np.arange(chosen.shape[1])
            last = np.clip(last, 0, np.maximum(number[part, None] - 1, 0))  # what pads draw is never used
            place = rng.integers(0, last, endpoint=True)
            pick(self._barred, offset[part], low[part], high[part], number[part], length[part], place)
            chosen[part] = np.where(place >= 0, self._nodes[start[part, None] + place], -1)
        return chosen

    def _bounds(self, targets: IntArray, cells: IntArray) -> tuple[IntArray, IntArray]:
        """(L,) and (L,) where a target's neighbours in a cell begin and end in `_barred`."""
        low, high = (
            np.searchsorted(self._barred, targets * self._num_nodes + self._start[c]) for c in (cells, cells + 1)
        )
        return low, high
