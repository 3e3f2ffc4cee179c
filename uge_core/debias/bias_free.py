r"""R and its bias-free twin: how attributes route edges, estimated from the training edges.

With a the full attribute combination of a node and A its non-sensitive part,

    R(a, b) = (E_ab / |E|) / (n_a n_b / N^2)          Eq. (8)-(9)
    R~(A, B) = (E~_AB / |E|) / (n~_A n~_B / N^2)      Eq. (10)-(12), Ẽ approximated by E

so the weight of UGE-W, Eq. (6), is R~/R = X_ab / E_ab, where X_ab = E~_AB n_a n_b / (n~_A n~_B) is
what the non-sensitive rate expects in cell (a, b). Here: ordered pairs with self-pairs, N^2 in all
(bipartite: users x items); each training edge counted in both directions, by its weight where edges
have weights (E_ab and |E| are then sums of weights); edges held out are never seen. Nodes whose value is missing under
``exclude`` leave n_a and N^2; a pair with such a node has weight 1 and offset 0.

Weights are scaled to mean 1 over the training edges, as strangers weigh 1: their mean decides how links and strangers
balance. Unscaled they lose the mass that the bias-free rate expects in cells without an edge; on thin cells that can
be half of it, and vectors then shrink to 0, as the best dot products would be negative on average, which they cannot.

``shrinkage`` adds pseudo-edges that follow the bias-free rate (a gamma-Poisson estimate), as many to each unordered
pair of groups: 0 for weights, as the paper; 2 for offsets, which an empty cell would make infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uge_core.arrays import BoolArray, DirectionArray, FloatArray, IntArray
from uge_core.errors import ConfigError, TooManyGroups
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.rows import different_rows
from uge_core.graph.values import OUT, ImputationReport, Values

Table = npt.NDArray[np.float64]

MAX_GROUPS = 4096
THIN = 5.0


@dataclass(frozen=True, eq=False)
class Partition:
    """Nodes grouped by the values of chosen attributes; the two sides of a bipartite graph never share a group.

    Attributes:
        group: (N,) int64, `OUT` where a value is missing.
        values: (G, A) the attribute values of each group, -1 where the attribute is not of its side.
    """

    group: IntArray
    values: IntArray

    @property
    def num_groups(self) -> int:
        """G."""
        return len(self.values)


def partition(columns: Sequence[IntArray], side: IntArray) -> Partition:
    """Groups nodes by the combination of `columns`.

    Args:
        columns: codes (N,) each; negative where the value is missing, or the attribute is of the other side.
        side: (N,) 0 or 1; unipartite graphs have one side.
    """
    distinct, group = different_rows([side, *columns])
    return Partition(group, distinct[:, 1:])


@dataclass(frozen=True, eq=False)
class Counts:
    """What a partition and the training edges say: the inputs of R and R~.

    Attributes:
        nodes: (G,) n_a over nodes whose values are really known.
        pairs: (G, G) n_a n_b for ordered pairs that may carry an edge.
        edges: (G, G) E_ab, training edges between known nodes, both directions; sums of weights where they have some.
        coarse: (G,) the non-sensitive group A of each group a.
    """

    nodes: Table
    pairs: Table
    edges: Table
    coarse: IntArray

    @cached_property
    def expected(self) -> Table:
        """(G, G) X_ab: edges the non-sensitive rate expects in each cell."""
        c, k = self.coarse, int(self.coarse.max()) + 1
        cell = (c[:, None] * k + c).ravel()
        edges, pairs = (np.bincount(cell, table.ravel(), k * k).reshape(k, k) for table in (self.edges, self.pairs))
        rate = np.divide(edges, pairs, out=np.zeros_like(edges), where=pairs > 0)
        return self.pairs * rate[np.ix_(c, c)]

    @property
    def entries_per_edge(self) -> Table:
        """(G, G) how often an edge of each cell is counted there: twice within a group, once between two."""
        return 1.0 + np.eye(len(self.nodes))

    def log_ratio(self, shrinkage: float) -> Table:
        """(G, G) log(R / R~), with `shrinkage` pseudo-edges in each unordered pair of groups.

        0 where no edge can be, and without pseudo-edges where none is.
        """
        pseudo = shrinkage * self.entries_per_edge
        seen, expected = self.edges + pseudo, self.expected + pseudo
        out = np.zeros_like(seen)
        usable = (seen > 0) & (expected > 0) & (self.pairs > 0)
        out[usable] = np.log(seen[usable]) - np.log(expected[usable])
        return out

    @property
    def uncovered_mass(self) -> float:
        """Share of the bias-free edges that fall into cells without an observed edge, which no weight can carry."""
        total = self.edges.sum()
        return float(self.expected[self.edges == 0].sum() / total) if total else 0.0

    @property
    def thin_mass(self) -> float:
        """Share of the edges in cells where fewer than `THIN` are expected, too few to tell bias from chance."""
        total = self.edges.sum()
        return float(self.edges[self.expected < THIN * self.entries_per_edge].sum() / total) if total else 0.0


@dataclass(frozen=True, eq=False)
class CellTable:
    """What each pair of groups counts in the edge loss.

    Attributes:
        group: (N,) int64 in 0..G; the last index is "outside every cell" (weight 1, offset 0).
        weight: (G + 1, G + 1) float32 factor on an observed edge's loss.
        offset: (G + 1, G + 1) float32 added to a pair's logit while training, for positives and negatives.
        uncovered_mass: see `Counts.uncovered_mass`.
        thin_mass: see `Counts.thin_mass`.
        node_offset: (N, G + 1) float32 a node's own part of its pairs' offsets, by the other end's group: the offset of
            a pair is offset[g_u, g_v] + node_offset[u, g_v] + node_offset[v, g_u]; None for 0 throughout.
        notes: what its owner should be told.
    """

    group: IntArray
    weight: npt.NDArray[np.float32]
    offset: npt.NDArray[np.float32]
    uncovered_mass: float = 0.0
    thin_mass: float = 0.0
    node_offset: npt.NDArray[np.float32] | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def neutral(cls, num_nodes: int) -> CellTable:
        """One group, weight 1, offset 0: the do-nothing table."""
        return cls(np.zeros(num_nodes, np.int64), np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32))

    def edge_weight(self, edges: IntArray) -> npt.NDArray[np.float32]:
        """(E,) weight of each edge."""
        return np.asarray(self.weight[self.group[edges[0]], self.group[edges[1]]])

    def edge_offset(self, edges: IntArray) -> npt.NDArray[np.float32]:
        """(E,) logit offset of each pair of nodes in `edges` (2, E)."""
        (u, v), g = edges, self.group
        own = 0.0 if self.node_offset is None else self.node_offset[u, g[v]] + self.node_offset[v, g[u]]
        return np.asarray(self.offset[g[u], g[v]] + own, np.float32)

    def balanced(self, edges: IntArray, own: FloatArray | None = None) -> CellTable:
        """This table with its weights times one factor, so that edges between nodes with values weigh 1 on average.

        Args:
            edges: (2, E) the training edges.
            own: (E,) what each counts by itself; None: 1 each.
        """
        (u, v), last = self.group[edges], len(self.weight) - 1
        inside = (u < last) & (v < last)
        if not inside.any():
            return self
        weight = self.weight.astype(np.float64)
        weight /= np.average(weight[u[inside], v[inside]], weights=None if own is None else own[inside])
        weight[last, :] = weight[:, last] = 1.0
        return replace(self, weight=weight.astype(np.float32))

    def diagnostics(self, edges: IntArray) -> dict[str, float]:
        """Health of the weights on the training edges: min, max, mean, effective sample size, uncovered and thin mass.

        The effective sample size (sum w)^2 / sum w^2 is at most the number of edges.
        """
        w = self.edge_weight(edges).astype(np.float64)
        o = self.edge_offset(edges)
        return {
            "weight_min": float(w.min()),
            "weight_max": float(w.max()),
            "weight_mean": float(w.mean()),
            "effective_sample_size": float(w.sum() ** 2 / np.square(w).sum()),
            "offset_min": float(o.min()),
            "offset_max": float(o.max()),
            "num_edges": float(len(w)),
            "uncovered_mass": self.uncovered_mass,
            "thin_mass": self.thin_mass,
        }


@dataclass(frozen=True, eq=False)
class MethodInputs:
    """All a method may know of the attributes: one member's values, grouped and counted.

    Attributes:
        graph: the graph.
        train_edges: (2, E_train).
        sensitive: the sensitive attributes' values.
        other: the non-sensitive attributes' values.
        weights: (E_train,) what each training edge counts, 1 on average; None: 1 each.
        probed: (N,) nodes that attackers of a sensitive attribute are tested on; None: nobody. Only what is fitted to a
            finished embedding must leave them out; that training saw their values is what `exposure` says.
        loss: the backbone's, "cross-entropy" or "bpr".
        pairs: what it learns from: "edges", or "walks" for the pairs that meet on walks.
        directions: (E_train,) which way the training edges run where they are followed, as in `AttributedGraph`; None:
            both ways.
    """

    graph: AttributedGraph
    train_edges: IntArray
    sensitive: tuple[Values, ...]
    other: tuple[Values, ...]
    weights: FloatArray | None = None
    probed: BoolArray | None = None
    loss: str = "cross-entropy"
    pairs: str = "edges"
    directions: DirectionArray | None = None

    @cached_property
    def side(self) -> IntArray:
        """(N,) 0 for users (or all nodes), 1 for items."""
        side = np.zeros(self.graph.num_nodes, np.int64)
        if self.graph.num_users is not None:
            side[self.graph.num_users :] = 1
        return side

    @property
    def reports(self) -> tuple[ImputationReport, ...]:
        """The imputation checks that were made."""
        return tuple(v.report for v in (*self.sensitive, *self.other) if v.report is not None)

    def item_cells(self, kind: str) -> IntArray | None:
        """(N,) cell of each item by popularity decile of its (weighted) training degree, or by an item attribute.

        Args:
            kind: "none", "popularity", or the name of an attribute of items, such as genre.
        """
        start = self.graph.num_users
        if start is None or kind == "none":
            return None
        cells = np.full(self.graph.num_nodes, OUT, np.int64)
        if kind == "popularity":
            degree = np.bincount(self.train_edges[1], self.weights, minlength=self.graph.num_nodes)[start:]
            rank = np.empty(len(degree), np.int64)
            rank[np.argsort(degree, kind="stable")] = np.arange(len(degree))
            cells[start:] = rank * 10 // len(degree)
            return cells
        attribute = self.graph.attribute(kind)
        if attribute.side != "items":
            raise ConfigError(
                f"item_cells = {kind!r} is not an attribute of items; allowed: none, popularity, or an item attribute"
            )
        cells[start:] = np.where(attribute.codes >= 0, attribute.codes, attribute.num_values)[start:]
        return cells

    def groups(self, item_cells: str = "none") -> tuple[Partition, IntArray, BoolArray]:
        """The joint partition, the non-sensitive group of each group, and the nodes ratios are fitted on.

        Raises:
            ConfigError: more than 4,096 groups, whose table would not fit; the text says what to do.
        """
        items = self.item_cells(item_cells)
        columns = [
            *(v.codes for v in self.sensitive),
            *(v.codes for v in self.other),
            *([] if items is None else [items]),
        ]
        part = partition(columns, self.side)
        missing = np.zeros(self.graph.num_nodes, bool)
        fitted = np.ones(self.graph.num_nodes, bool)
        people = self.side == 0
        for v in (*self.sensitive, *self.other):
            missing |= people & (v.codes < 0)
            fitted &= ~people | v.fitted
        keep, group = np.unique(part.group[~missing], return_inverse=True)
        joint = np.full(self.graph.num_nodes, OUT, np.int64)
        joint[~missing] = group
        values = part.values[keep]
        if not len(keep):
            given = {v.name: int((v.codes >= 0).sum()) for v in (*self.sensitive, *self.other)}
            fewest = min(given, key=lambda name: given[name])
            # where an imputation was tried and is not used, asking for it would change nothing
            ways = "level" if self.reports else "level or impute"
            raise ConfigError(
                f"no node has a value of every attribute; {fewest} is given for {given[fewest]} nodes only: "
                f"leave it out with --attributes, or use --unknown {ways}"
            )
        if len(keep) > MAX_GROUPS:
            raise TooManyGroups(
                f"the attributes form {len(keep)} groups, allowed: {MAX_GROUPS}; name fewer with --attributes, "
                "or, for weights and offsets, use --set independence=true",
                len(keep),
            )
        side_of = self.side[~missing]
        group_side = np.zeros(len(keep), np.int64)
        group_side[group] = side_of
        rest = np.concatenate([group_side[:, None], values[:, len(self.sensitive) :]], axis=1)
        coarse = np.unique(rest, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
        return Partition(joint, values), coarse, fitted & ~missing

    def count(self, part: Partition, coarse: IntArray, fitted: BoolArray) -> Counts:
        """Counts nodes, pairs and training edges of a partition, on the nodes ratios are fitted on."""
        g, k = np.where(fitted, part.group, OUT), part.num_groups
        nodes = np.bincount(g[g >= 0], minlength=k).astype(np.float64)
        u, v = self.train_edges
        inside = (g[u] >= 0) & (g[v] >= 0)
        count = None if self.weights is None else self.weights[inside]
        one_way = np.bincount(g[u[inside]] * k + g[v[inside]], count, k * k).reshape(k, k).astype(np.float64)
        pairs = np.outer(nodes, nodes)
        if self.graph.bipartite:
            sides = np.zeros(k)
            sides[part.group[part.group >= 0]] = self.side[part.group >= 0]
            pairs = pairs * (sides[:, None] != sides[None, :])
        return Counts(nodes, pairs, one_way + one_way.T, coarse)

    def joint(self, item_cells: str = "none") -> tuple[Partition, Counts]:
        """Joint groups of all attributes with their counts."""
        part, coarse, fitted = self.groups(item_cells)
        return part, self.count(part, coarse, fitted)

    def alone(self, value: Values, item_cells: str = "none") -> tuple[Partition, Counts]:
        """Groups of one sensitive attribute with their counts, nothing non-sensitive beside it but item cells."""
        return replace(self, sensitive=(value,), other=()).joint(item_cells)


def ratio_table(
    inputs: MethodInputs, *, shrinkage: float, independence: bool, item_cells: str
) -> tuple[IntArray, Table, float, float]:
    r"""log(R / R~) of every pair of groups.

    Args:
        inputs: a member's values.
        shrinkage: pseudo-edges at the bias-free rate; 0 leaves cells without an edge at 0 (no
            training edge between known nodes can fall there).
        independence: the paper's independence form (unnumbered, Sec. 5.1): the sum of the logs of
            one-attribute ratios, R~ = 1.
        item_cells: how items form cells on a bipartite graph.

    Returns:
        (N,) group of each node in 0..G, the last being outside; (G + 1, G + 1) log ratios; uncovered mass; thin mass.
    """
    if not independence:
        part, counts = inputs.joint(item_cells)
        table = _pad(counts.log_ratio(shrinkage))
        return _padded(part.group, part.num_groups), table, counts.uncovered_mass, counts.thin_mass
    part, _, _ = replace(inputs, other=()).groups(item_cells)
    total, uncovered, thin = np.zeros((part.num_groups, part.num_groups)), 0.0, 0.0
    first = np.full(part.num_groups, -1, np.int64)
    inside = part.group >= 0
    first[part.group[inside]] = np.nonzero(inside)[0]
    for value in inputs.sensitive:
        one, counts = inputs.alone(value, item_cells)
        g = one.group[first]
        total += counts.log_ratio(shrinkage)[np.ix_(g, g)]
        uncovered, thin = max(uncovered, counts.uncovered_mass), max(thin, counts.thin_mass)
    return _padded(part.group, part.num_groups), _pad(total), uncovered, thin


def _pad(table: Table) -> Table:
    return np.pad(table, ((0, 1), (0, 1)))


def _padded(group: IntArray, num_groups: int) -> IntArray:
    return np.where(group >= 0, group, num_groups)


def joint_weights(part: Partition, counts: Counts, shrinkage: float) -> CellTable:
    """R~/R from the joint groups of all attributes and their counts, as it is: see `CellTable.balanced`."""
    return _weight_table(
        _padded(part.group, part.num_groups), _pad(counts.log_ratio(shrinkage)), counts.uncovered_mass, counts.thin_mass
    )


def weight_cells(inputs: MethodInputs, *, shrinkage: float, independence: bool, item_cells: str) -> CellTable:
    """UGE-W's table, Eq. (6): weight R~/R times the factor that makes their mean 1, offset 0."""
    table = _weight_table(*ratio_table(inputs, shrinkage=shrinkage, independence=independence, item_cells=item_cells))
    return table.balanced(inputs.train_edges, inputs.weights)


def _weight_table(group: IntArray, log_ratio: Table, uncovered: float, thin: float) -> CellTable:
    weight = np.exp(-log_ratio).astype(np.float32)
    return CellTable(group, weight, np.zeros_like(weight), uncovered, thin)


def offset_cells(inputs: MethodInputs, *, shrinkage: float, independence: bool, item_cells: str) -> CellTable:
    """UGE-O's table: weight 1, offset log(R/R~), so that the dot product fits the bias-free graph itself."""
    group, log_ratio, uncovered, thin = ratio_table(
        inputs, shrinkage=shrinkage, independence=independence, item_cells=item_cells
    )
    return CellTable(group, np.ones(log_ratio.shape, np.float32), log_ratio.astype(np.float32), uncovered, thin)
