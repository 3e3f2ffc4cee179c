"""The attributed graph: what every other part of the package is given.

Conventions. Nodes are 0 to N - 1. The graph is simple: each pair of connected nodes stands once in
`AttributedGraph.edges`, smaller end first, without self-loops or duplicates. Which way an edge runs
and what it weighs stand beside it. A bipartite graph has its users first (0 to num_users - 1) and
its items after them; every edge, pair, negative and candidate then goes across. Attribute values
are small integers; `UNKNOWN` marks a value that is missing and `NOT_APPLICABLE` a node of the side
that has no such attribute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from uge_core.arrays import DirectionArray, FloatArray, IntArray
from uge_core.errors import GraphError, in_a_line
from uge_core.registry import unknown_name

Side = Literal["nodes", "users", "items"]
UnknownPolicy = Literal["level", "exclude", "impute"]
UNKNOWN = -1
NOT_APPLICABLE = -2
_BLOCK = 2**20  # edges looked at at once


@dataclass(frozen=True)
class Message:
    """Something the reader of the data should know.

    Attributes:
        level: "blocking" (the graph cannot be used), "warning" or "note".
        code: stable short name, such as "duplicate-edges".
        text: one sentence with the count and what was done about it.
        count: how many rows, nodes or cells it concerns.
        examples: the first few, in the user's own ids.
        remedy: what the user can do.
    """

    level: Literal["blocking", "warning", "note"]
    code: str
    text: str
    count: int = 0
    examples: tuple[str, ...] = ()
    remedy: str = ""

    def __post_init__(self) -> None:
        for name in ("text", "remedy"):
            object.__setattr__(self, name, in_a_line(getattr(self, name)))
        object.__setattr__(self, "examples", tuple(map(in_a_line, self.examples)))


@dataclass(frozen=True)
class Column:
    """The role one column of a file was given: id, source, target, attribute, feature, label, weight or ignored."""

    file: str
    name: str
    role: str
    detail: str = ""


@dataclass(frozen=True, eq=False)
class Attribute:
    """One categorical attribute of the nodes.

    Attributes:
        name: as the file calls it.
        codes: (N,) int64, the index into `labels`, or `UNKNOWN`, or `NOT_APPLICABLE`.
        labels: the values, each as the file writes it.
        side: which nodes have it: all, or one side of a bipartite graph.
        aliases: further names it answers to.
        unknown_label: how the file writes a missing value ("0.0" for Pokec's AGE), or "unknown".
        ordered: the values have an order (age).
    """

    name: str
    codes: IntArray
    labels: tuple[str, ...]
    side: Side = "nodes"
    aliases: tuple[str, ...] = ()
    unknown_label: str = "unknown"
    ordered: bool = False

    @property
    def num_values(self) -> int:
        """Number of values, the unknown one not counted."""
        return len(self.labels)

    @cached_property
    def known(self) -> npt.NDArray[np.bool_]:
        """(N,) where the value is given."""
        return np.greater_equal(self.codes, 0)

    @cached_property
    def unknown(self) -> npt.NDArray[np.bool_]:
        """(N,) where the node should have a value and it is missing."""
        return np.equal(self.codes, UNKNOWN)

    @cached_property
    def sizes(self) -> IntArray:
        """(num_values,) how many nodes have each value."""
        return np.bincount(self.codes[self.known], minlength=self.num_values)


@dataclass(frozen=True)
class Defaults:
    """What a recognised layout fixes because its paper or its custom does.

    Attributes:
        unknown: the policy for missing values; "level" (a value of its own) in the paper's layouts.
        test_share: held-out share of the edges.
        as_coded_rows: the authors' script trains its probe on this many first rows; None: no such script.
        backbone_options: by backbone, settings the paper's figures on these data rest on.
        sensitive: the attributes that a dataset.yaml declares sensitive, in its order.
    """

    unknown: UnknownPolicy = "exclude"
    test_share: float = 0.1
    as_coded_rows: int | None = None
    backbone_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sensitive: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class PlantedTruth:
    """What is known of a generated graph and of no real one. Training never reads it; an audit does.

    Attributes:
        bias_free: (2, E~) int64 edges of the bias-free graph, smaller end first, over the same nodes.
        sensitive: names of the attributes that had no part in it.
        group: (N,) each node's combination of attribute values.
        ratio: (G, G) R by group, Eq. (3).
        bias_free_ratio: (G, G) R~ by group, Eq. (4).
    """

    bias_free: IntArray
    sensitive: tuple[str, ...]
    group: IntArray
    ratio: npt.NDArray[np.float64]
    bias_free_ratio: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AttributedGraph:
    """A graph of people (or of people and items) with categorical attributes.

    An edge of weight 2 counts as two edges in the loss and in R and R~, and its message counts twice in
    GCN and SGC. Messages follow directions; the score of a pair is a dot product and has none, so that
    loss, R and R~, split, NDCG, DP and EO are over unordered pairs.

    Attributes:
        name: what the user calls it.
        num_nodes: N, both sides counted.
        edges: (2, E) int64, each undirected edge once, ``edges[0] < edges[1]``.
        attributes: the attributes, in the file's order.
        node_ids: (N,) the user's own ids as text.
        num_users: size of the first side, or None when the graph is not bipartite.
        features: (N, F) float32, or None. Attributes are never among them.
        feature_names: the F names.
        layout: how the files were recognised.
        columns: the role each column got.
        messages: what was found in the files.
        defaults: what the layout fixes.
        truth: what a generated graph was drawn from, or None; no part of the fingerprint.
        edge_weights: (E,) float32, finite and above 0, or None where every edge counts the same.
        directions: (E,) int8, 1 where the edge runs from its smaller end to its larger, -1 the other way, 0 both
            ways; None on an undirected graph.
        base: the graph this one was made from by a what-if scenario, or None. Its split is the base's, so that runs of
            the two are about the same links.

    Raises:
        GraphError: the arrays contradict each other, or the graph has no usable edge.
    """

    name: str
    num_nodes: int
    edges: IntArray
    attributes: tuple[Attribute, ...] = ()
    node_ids: npt.NDArray[np.object_] | None = None
    num_users: int | None = None
    features: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    layout: str = "arrays"
    columns: tuple[Column, ...] = ()
    messages: tuple[Message, ...] = ()
    defaults: Defaults = field(default_factory=Defaults)
    truth: PlantedTruth | None = None
    edge_weights: FloatArray | None = None
    directions: DirectionArray | None = None
    base: AttributedGraph | None = None

    def __post_init__(self) -> None:
        edges = self.edges
        if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype != np.int64:
            raise GraphError(
                f"{self.name}: edges must be an int64 array of shape (2, E), found {edges.dtype} {edges.shape}"
            )
        if edges.shape[1] == 0:
            raise GraphError(f"{self.name}: the graph has no edge between two different nodes; at least one is needed")
        if edges.min() < 0 or edges.max() >= self.num_nodes:
            raise GraphError(
                f"{self.name}: edges name nodes {edges.min()} to {edges.max()}, allowed: 0 to {self.num_nodes - 1}"
            )
        if not (edges[0] < edges[1]).all():
            raise GraphError(
                f"{self.name}: each edge must stand once, smaller end first, without self-loops; see simple_edges()"
            )
        if not self._in_order:
            key = _keys(edges, self.num_nodes)
            key.sort()
            if (key[1:] == key[:-1]).any():
                raise GraphError(f"{self.name}: an edge stands twice; see simple_edges()")
        if self.num_users is not None and not (
            (edges[0] < self.num_users).all() and (edges[1] >= self.num_users).all()
        ):
            raise GraphError(
                f"{self.name}: an edge of a bipartite graph stays on one side; every edge must join a user and an item"
            )
        self._check_beside_edges()
        seen: set[str] = set()
        for a in self.attributes:
            if a.codes.shape != (self.num_nodes,) or a.codes.dtype != np.int64:
                raise GraphError(
                    f"{self.name}: attribute {a.name} needs {self.num_nodes} int64 codes, found {a.codes.dtype} "
                    f"{a.codes.shape}"
                )
            if len(a.codes) and a.codes.max() >= a.num_values:
                raise GraphError(
                    f"{self.name}: attribute {a.name} has codes up to {a.codes.max()} but {a.num_values} labels"
                )
            if a.name.lower() in seen:
                raise GraphError(f"{self.name}: two attributes are called {a.name}; rename one")
            seen.add(a.name.lower())

    def _check_beside_edges(self) -> None:
        """Refuses weights and directions that do not fit the edges."""
        weights, directions = self.edge_weights, self.directions
        if weights is not None:
            if weights.shape != (self.num_edges,) or weights.dtype != np.float32:
                raise GraphError(
                    f"{self.name}: edge_weights needs {self.num_edges} float32 numbers, found {weights.dtype} "
                    f"{weights.shape}"
                )
            wrong = ~(np.isfinite(weights) & (weights > 0))
            if wrong.any():
                raise GraphError(
                    f"{self.name}: {int(wrong.sum())} edge weights are not allowed, first: {weights[wrong][0]}; "
                    "allowed: finite numbers above 0"
                )
        if directions is not None:
            if self.bipartite:
                raise GraphError(f"{self.name}: edges of a bipartite graph have no direction; leave directions out")
            if directions.shape != (self.num_edges,) or directions.dtype != np.int8:
                raise GraphError(
                    f"{self.name}: directions needs {self.num_edges} int8 numbers, found {directions.dtype} "
                    f"{directions.shape}"
                )
            if (np.abs(directions) > 1).any():
                raise GraphError(
                    f"{self.name}: directions holds {directions.min()} to "
                    f"{directions.max()}; allowed: 1 (smaller end to "
                    "larger), -1 (larger to smaller), 0 (both ways)"
                )

    @cached_property
    def _in_order(self) -> bool:
        """Whether edges rise by their smaller end, then by the larger, as `simple_edges` leaves them."""
        for first in range(0, self.num_edges, _BLOCK):
            key = _keys(self.edges[:, first : first + _BLOCK + 1], self.num_nodes)
            if not (key[1:] > key[:-1]).all():
                return False
        return True

    @property
    def num_edges(self) -> int:
        """E, each edge once."""
        return int(self.edges.shape[1])

    @property
    def bipartite(self) -> bool:
        """Whether nodes are users and items."""
        return self.num_users is not None

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return self.edge_weights is not None

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self.directions is not None

    @property
    def num_items(self) -> int | None:
        """Size of the second side, or None."""
        return None if self.num_users is None else self.num_nodes - self.num_users

    @cached_property
    def edge_index(self) -> IntArray:
        """(2, 2 E) both directions, as message passing wants it."""
        return np.concatenate([self.edges, self.edges[::-1]], axis=1)

    @cached_property
    def degree(self) -> IntArray:
        """(N,) number of neighbours."""
        return np.bincount(self.edges.ravel(), minlength=self.num_nodes)

    @property
    def people(self) -> slice:
        """The nodes an audit is about: the users of a bipartite graph, else all nodes."""
        return slice(0, self.num_users if self.num_users is not None else self.num_nodes)

    @property
    def audited(self) -> tuple[Attribute, ...]:
        """The attributes of people, which an audit covers (a bipartite graph's item attributes are left out)."""
        return tuple(a for a in self.attributes if a.side != "items")

    def attribute(self, name: str) -> Attribute:
        """The attribute called `name` (upper and lower case and aliases count as the same).

        Raises:
            GraphError: there is no such attribute; the message lists those that exist.
        """
        for a in self.attributes:
            if name.lower() in (a.name.lower(), *(x.lower() for x in a.aliases)):
                return a
        ignored = [c for c in self.columns if c.name.lower() == name.lower()]
        if ignored:
            c = ignored[0]
            why = f" ({c.detail})" if c.detail else ""
            todo = (
                "an attribute needs two values at least"
                if c.detail in ("one value", "no value")
                else f"name it with --attributes {c.name}"
            )
            raise GraphError(
                f"{self.name}: column {c.name!r} of {c.file} was read as {c.role}{why}, not as an attribute; {todo}"
            )
        raise GraphError(f"{self.name}: " + unknown_name("attribute", name, tuple(a.name for a in self.attributes)))

    def ids(self, nodes: IntArray | slice | list[int]) -> list[str]:
        """The user's own ids of `nodes`."""
        if self.node_ids is None:
            return [str(i) for i in np.arange(self.num_nodes)[nodes]]
        return [str(i) for i in self.node_ids[nodes]]

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """What others worked out of this graph alone and keep as long as it is there, each under a key of its own."""
        return {}

    @cached_property
    def fingerprint(self) -> str:
        """What runs on this graph are told by: equal content and an equal split, equal fingerprint.

        The `content`; where a scenario has changed that, the base's with it, as the split is the base's.
        """
        if self.base is None:
            return self.content
        if self.content == self.base.content:
            return self.base.fingerprint
        return hashlib.sha256(f"{self.base.fingerprint} {self.content}".encode()).hexdigest()

    @cached_property
    def content(self) -> str:
        """SHA-256 of edges, weights, directions, sides, attributes and features."""
        h = hashlib.sha256(f"{self.num_nodes} {self.num_users}".encode())
        # Edges stand once, so that any order by their keys is the only one.
        order = slice(None) if self._in_order else np.argsort(_keys(self.edges, self.num_nodes))
        h.update(np.ascontiguousarray(self.edges[:, order]).data)
        for a in self.attributes:
            h.update(repr((a.name, a.labels, a.side)).encode())
            h.update(np.ascontiguousarray(a.codes).data)
        if self.features is not None:
            h.update(repr(self.feature_names).encode())
            h.update(np.ascontiguousarray(self.features).data)
        for name, beside in (("edge_weights", self.edge_weights), ("directions", self.directions)):
            if beside is not None:
                h.update(name.encode())
                h.update(np.ascontiguousarray(beside[order]).data)
        return h.hexdigest()


def simple_edges(source: IntArray, target: IntArray, num_nodes: int) -> tuple[IntArray, int, int]:
    """Undirected simple edges from any list of node pairs.

    Args:
        source: (M,) int64 node numbers.
        target: (M,) int64 node numbers.
        num_nodes: N.

    Returns:
        (2, E) edges sorted, smaller end first; the number of self-loops dropped; the number of
        repeated rows dropped (a pair and its reverse are the same edge).
    """
    key: IntArray = np.minimum(source, target, dtype=np.int64)
    high = np.maximum(source, target, dtype=np.int64)
    apart = key != high
    key *= np.int64(num_nodes)
    key += high
    del high
    loops = len(key) - int(np.count_nonzero(apart))
    if loops:
        key = key[apart]
    rows = len(key)
    if not (key[1:] > key[:-1]).all():
        key.sort()
        key = key[np.append(True, key[1:] != key[:-1])[:rows]]  # numpy.unique hashes first: slower on such keys
    edges = np.empty((2, len(key)), dtype=np.int64)
    np.floor_divide(key, np.int64(num_nodes), out=edges[0])  # far quicker than divmod
    np.subtract(key, edges[0] * np.int64(num_nodes), out=edges[1])
    return edges, loops, rows - len(key)


def _keys(edges: IntArray, num_nodes: int) -> IntArray:
    """(E,) a number for each edge, rising by the smaller end, then by the larger."""
    key: IntArray = edges[0] * np.int64(num_nodes)
    key += edges[1]
    return key


def weights_of(
    edges: IntArray, source: IntArray, target: IntArray, weight: npt.ArrayLike, num_nodes: int, *, directed: bool
) -> FloatArray:
    """The weights of simple edges out of the rows they were made from.

    Args:
        edges: (2, E) from `simple_edges`.
        source: (M,) node numbers of the rows.
        target: (M,) node numbers of the rows.
        weight: (M,) weight of each row.
        num_nodes: N.
        directed: whether a pair and its reverse are two directions of one edge, rather than the same row twice.

    Returns:
        (E,) the sum over each pair's rows; where `directed`, of an edge that runs both ways the mean of its two
        directions' sums, so that weights of 1 both ways count like no weights at all.
    """
    at, kept = _edge_of_row(edges, source, target, num_nodes)
    total = np.bincount(at, np.asarray(weight)[kept], minlength=edges.shape[1]).astype(np.float64)
    if directed:
        total[directions_of(edges, source, target, num_nodes) == 0] /= 2
    return total.astype(np.float32)


def directions_of(edges: IntArray, source: IntArray, target: IntArray, num_nodes: int) -> DirectionArray:
    """(E,) which way simple edges run, 1, -1 or 0 as in `AttributedGraph.directions`, given the rows they were made from.

    Args:
        edges: (2, E) from `simple_edges`.
        source: (M,) where each row starts.
        target: (M,) where it ends.
        num_nodes: N.
    """
    at, kept = _edge_of_row(edges, source, target, num_nodes)
    up = (source < target)[kept]
    ways = np.zeros((2, edges.shape[1]), dtype=np.int8)
    ways[0, at[up]] = ways[1, at[~up]] = 1
    return np.asarray(ways[0] - ways[1])


def _edge_of_row(
    edges: IntArray, source: IntArray, target: IntArray, num_nodes: int
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """The simple edge of each row that is no self-loop, and which rows those are."""
    kept = source != target
    low, high = np.minimum(source, target)[kept], np.maximum(source, target)[kept]
    return np.searchsorted(_keys(edges, num_nodes), low * np.int64(num_nodes) + high), kept
