"""How the edges fall on pairs of groups, beside what chance alone would give.

Chance keeps the group sizes and the number of edges and draws the ends of every edge among all
pairs of nodes alike: a pair of groups expects the share of the edges that it has of the node pairs.
Only nodes whose value is known count. On a bipartite graph an attribute describes one side, so
that its groups are set against the other side as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uge_core.arrays import IntArray
from uge_core.graph.graph import Attribute

_BLOCK = 2**20  # edges counted at once
Counts = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Mixing:
    """The mixing table of one attribute.

    Attributes:
        rows: the groups.
        columns: the groups again, or the other side of a bipartite graph.
        observed: (rows, columns) the edges; symmetric where both are groups.
        expected: (rows, columns) the edges that chance would give.
        pairs: (rows, columns) the pairs of nodes.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    observed: IntArray
    expected: Counts
    pairs: Counts

    @property
    def cells(self) -> tuple[IntArray, IntArray]:
        """Row and column of every cell, a pair of groups once."""
        if self.rows is not self.columns:
            index = np.indices(self.observed.shape).reshape(2, -1)
        else:
            index = np.stack(np.triu_indices(len(self.rows)))
        return index[0].astype(np.int64), index[1].astype(np.int64)

    @property
    def empty(self) -> list[tuple[str, str]]:
        """The pairs of groups that have pairs of nodes but no edge, those where most edges were expected first."""
        i, j = self.cells
        bare = np.flatnonzero((self.observed[i, j] == 0) & (self.pairs[i, j] > 0))
        bare = bare[np.argsort(-self.expected[i[bare], j[bare]], kind="stable")]
        return [(self.rows[a], self.columns[b]) for a, b in zip(i[bare], j[bare], strict=True)]

    def records(self) -> Iterator[dict[str, str | int | float | None]]:
        """One record per cell: a, b, observed, expected and their ratio, null where nothing is expected."""
        for i, j in zip(*self.cells, strict=True):
            observed, expected = int(self.observed[i, j]), float(self.expected[i, j])
            ratio = observed / expected if expected else None
            yield {
                "a": self.rows[i],
                "b": self.columns[j],
                "observed": observed,
                "expected": round(expected, 3),
                "ratio": None if ratio is None else round(ratio, 4),
            }


def edges_between(edges: IntArray, attribute: Attribute) -> IntArray:
    """(G, G) edges between groups, each above or on the diagonal; those with an end whose value is not known left out.

    Args:
        edges: (2, E) each undirected edge once.
        attribute: of all nodes.
    """
    side = attribute.num_values + 1
    small = _small(attribute)
    counts = np.zeros(side * side, dtype=np.int64)
    for first in range(0, edges.shape[1], max(_BLOCK, side * side)):
        a, b = small[edges[:, first : first + max(_BLOCK, side * side)]]
        counts += np.bincount(a * np.int64(side) + b, minlength=side * side)
    both = counts.reshape(side, side)[:-1, :-1]
    return np.asarray(np.triu(both) + np.tril(both, -1).T)


def _small(attribute: Attribute) -> IntArray:
    """(N,) the codes in the smallest numbers that hold them, a missing value as the last."""
    codes = np.where(attribute.known, attribute.codes, attribute.num_values)
    return codes.astype(np.min_scalar_type(attribute.num_values))


def mixing(edges: IntArray, num_users: int | None, attribute: Attribute) -> Mixing:
    """The mixing table of an attribute.

    Args:
        edges: (2, E) each undirected edge once, smaller end first.
        num_users: size of the first side of a bipartite graph, else None.
        attribute: the attribute.
    """
    columns: tuple[str, ...]
    groups, sizes = attribute.num_values, attribute.sizes.astype(np.float64)
    if num_users is not None:
        end, other = (0, "users") if attribute.side == "items" else (1, "items")
        counts = np.zeros(groups + 1, dtype=np.int64)
        small = _small(attribute)
        for first in range(0, edges.shape[1], _BLOCK):
            counts += np.bincount(small[edges[1 - end, first : first + _BLOCK]], minlength=groups + 1)
        observed = counts[:groups, None]
        others = num_users if attribute.side == "items" else len(attribute.codes) - num_users
        pairs, columns = (sizes * others)[:, None], (f"all {other}",)
    else:
        upper = edges_between(edges, attribute)
        observed = upper + np.triu(upper, 1).T
        pairs, columns = np.outer(sizes, sizes), attribute.labels
        np.fill_diagonal(pairs, sizes * (sizes - 1) / 2)
    counted = np.triu(np.ones_like(pairs)) if num_users is None else np.ones_like(pairs)
    total = (pairs * counted).sum()
    edges_known = (observed * counted).sum()
    expected = pairs * (edges_known / total) if total else np.zeros_like(pairs)
    return Mixing(attribute.labels, columns, observed.astype(np.int64), expected, pairs)
