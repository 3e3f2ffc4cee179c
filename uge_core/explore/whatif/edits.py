"""Edits of a graph: each is data, says what it does in words, and makes another graph.

Nodes are named by the user's own ids and values by their labels, so that an edit means the same whenever
the graph is loaded. Lists are sorted and hold each entry once, so that equal edits are equal data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from uge_core.arrays import IntArray
from uge_core.errors import ConfigError
from uge_core.graph.graph import NOT_APPLICABLE, Attribute, AttributedGraph
from uge_core.registry import unknown_name

MOST_NODES = 5_000
MOST_EDGES = 5_000
_NAMED = 5  # nodes or edges named in words


@dataclass(frozen=True)
class Edit(ABC):
    """Base of the edits; a subclass has one field per thing it needs.

    Attributes:
        kind: its name in JSON.
        of_edges: it changes edges, which an encoder passes messages along.
    """

    kind: ClassVar[str] = ""
    of_edges: ClassVar[bool] = False

    @property
    @abstractmethod
    def words(self) -> str:
        """What it does, with names of people's data as they are."""

    @abstractmethod
    def apply(self, graph: AttributedGraph, places: Places) -> AttributedGraph:
        """The graph with this edit.

        Raises:
            ConfigError: it does not fit the graph.
        """

    def to_json(self) -> dict[str, Any]:
        """The edit as a record; `edit_from_json` is its inverse."""
        return {"kind": self.kind} | {k: _listed(v) for k, v in asdict(self).items()}


class Places:
    """Where the user's own ids stand in a graph's node table."""

    def __init__(self, graph: AttributedGraph) -> None:
        """Of the graph and of all that edits make of it, which have the same nodes."""
        self._name = graph.name
        self._place = {name: i for i, name in enumerate(graph.ids(slice(None)))}

    def nodes(self, ids: Iterable[str]) -> IntArray:
        """(n,) node numbers.

        Raises:
            ConfigError: there is no such node.
        """
        missing = [i for i in ids if i not in self._place]
        if missing:
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            raise ConfigError(
                f"{self._name}: no node is called {', '.join(map(repr, missing[:_NAMED]))}{more}; ids are those of "
                "the node table"
            )
        return np.array([self._place[i] for i in ids], dtype=np.int64)

    def __contains__(self, node: str) -> bool:
        """Whether a node is called so."""
        return node in self._place


@dataclass(frozen=True)
class FlipValue(Edit):
    """Gives some nodes another value of one attribute."""

    kind: ClassVar[str] = "flip"

    attribute: str
    nodes: tuple[str, ...]
    value: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", _names(self.nodes, "nodes", MOST_NODES))

    @property
    def words(self) -> str:
        """As for `Edit`."""
        return f"{self.attribute} of {_few(self.nodes, 'node')} becomes {self.value}"

    def apply(self, graph: AttributedGraph, places: Places) -> AttributedGraph:
        """As for `Edit`."""
        attribute = graph.attribute(self.attribute)
        nodes = places.nodes(self.nodes)
        outside = nodes[attribute.codes[nodes] == NOT_APPLICABLE] if attribute.side != "nodes" else nodes[:0]
        if len(outside):
            raise ConfigError(
                f"{attribute.name} is of the {attribute.side} alone; {graph.ids(outside)[0]!r} is not one"
            )
        codes = attribute.codes.copy()
        codes[nodes] = _value(attribute, self.value)
        return _with(graph, replace(attribute, codes=codes))


@dataclass(frozen=True)
class MergeValues(Edit):
    """Makes one group of several."""

    kind: ClassVar[str] = "merge"

    attribute: str
    values: tuple[str, ...]
    value: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _names(self.values, "values", MOST_NODES))
        if len(self.values) < 2:
            raise ConfigError("merge needs two groups or more; choose them")
        if not self.value.strip():
            raise ConfigError("the merged group needs a name; type one")

    @property
    def words(self) -> str:
        """As for `Edit`."""
        return f"{self.attribute}: {', '.join(self.values)} become one group, {self.value}"

    def apply(self, graph: AttributedGraph, places: Places) -> AttributedGraph:
        """As for `Edit`."""
        attribute = graph.attribute(self.attribute)
        merged = [_value(attribute, v) for v in self.values]
        kept = [i for i in range(attribute.num_values) if i not in merged]
        if self.value in {attribute.labels[i] for i in kept}:
            raise ConfigError(
                f"{attribute.name} has another group called {self.value!r}; merge it too, or name it otherwise"
            )
        order = sorted([*kept, min(merged)])
        labels = tuple(self.value if i == min(merged) else attribute.labels[i] for i in order)
        into = np.array([order.index(min(merged) if i in merged else i) for i in range(attribute.num_values)])
        return _with(graph, _relabelled(attribute, into, labels))


@dataclass(frozen=True)
class DropValue(Edit):
    """Leaves one group out of an attribute: its nodes stay in the graph and have no such value any more."""

    kind: ClassVar[str] = "drop-group"

    attribute: str
    value: str

    @property
    def words(self) -> str:
        """As for `Edit`."""
        return f"{self.attribute}: group {self.value} is left out"

    def apply(self, graph: AttributedGraph, places: Places) -> AttributedGraph:
        """As for `Edit`."""
        attribute = graph.attribute(self.attribute)
        gone = _value(attribute, self.value)
        into = np.arange(attribute.num_values)
        into[into > gone] -= 1
        into[gone] = NOT_APPLICABLE
        labels = tuple(v for i, v in enumerate(attribute.labels) if i != gone)
        return _with(graph, _relabelled(attribute, into, labels))


@dataclass(frozen=True)
class Threshold(Edit):
    """Pairs with a probability of at least this count as predicted links; the graph stays as it is."""

    kind: ClassVar[str] = "threshold"

    probability: float

    def __post_init__(self) -> None:
        if not 0 < self.probability < 1:
            raise ConfigError(f"threshold = {self.probability:g} is out of range; allowed: between 0 and 1")

    @property
    def words(self) -> str:
        """As for `Edit`."""
        return f"links are predicted from a probability of {self.probability:g} on"

    def apply(self, graph: AttributedGraph, places: Places) -> AttributedGraph:
        """As for `Edit`."""
        return graph


@dataclass(frozen=True)
class DropEdges(Edit):
    """Removes edges."""

    kind: ClassVar[str] = "drop-edges"
    of_edges: ClassVar[bool] = True

    edges: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _pairs(self.edges, directed=False))

    @property
    def words(self) -> str:
        """As for `Edit`."""
        return f"without {_few([' - '.join(e) for e in self.edges], 'edge')}"

    def apply(self, graph: AttributedGraph, places: Places) -> AttributedGraph:
        """As for `Edit`."""
        stays = np.ones(graph.num_edges, dtype=bool)
        stays[_found(graph, places, self.edges)] = False
        if not stays.any():
            raise ConfigError("no edge would be left; drop fewer")
        return replace(
            graph,
            edges=graph.edges[:, stays],
            edge_weights=None if graph.edge_weights is None else graph.edge_weights[stays],
            directions=None if graph.directions is None else graph.directions[stays],
        )


@dataclass(frozen=True)
class AddEdges(Edit):
    """Adds edges of weight 1; on a directed graph they run from the first end to the second."""

    kind: ClassVar[str] = "add-edges"
    of_edges: ClassVar[bool] = True

    edges: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _pairs(self.edges, directed=True))

    @property
    def words(self) -> str:
        """As for `Edit`."""
        return f"with {_few([' - '.join(e) for e in self.edges], 'new edge')}"

    def apply(self, graph: AttributedGraph, places: Places) -> AttributedGraph:
        """As for `Edit`."""
        ends = np.stack([places.nodes([e[i] for e in self.edges]) for i in (0, 1)])
        new, ways = np.sort(ends, axis=0), np.where(ends[0] < ends[1], 1, -1)
        n = np.int64(graph.num_nodes)
        there = np.isin(new[0] * n + new[1], graph.edges[0] * n + graph.edges[1])
        if there.any():
            raise ConfigError(
                f"the edge {' - '.join(self.edges[int(there.argmax())])} is there already; reweight it instead"
            )
        if graph.num_users is not None and not ((new[0] < graph.num_users) & (new[1] >= graph.num_users)).all():
            raise ConfigError("an edge of this graph joins a user and an item; name one of each")
        edges = np.concatenate([graph.edges, new], axis=1)
        order = np.lexsort(edges[::-1])
        weights, directions = graph.edge_weights, graph.directions
        if weights is not None:
            weights = np.concatenate([weights, np.ones(len(ways), np.float32)])[order]
        if directions is not None:
            directions = np.concatenate([directions, ways.astype(np.int8)])[order]
        return replace(graph, edges=edges[:, order], edge_weights=weights, directions=directions)


@dataclass(frozen=True)
class ReweightEdges(Edit):
    """Gives edges another weight; on a graph without weights all others keep 1."""

    kind: ClassVar[str] = "reweight-edges"
    of_edges: ClassVar[bool] = True

    edges: tuple[tuple[str, str], ...]
    weight: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _pairs(self.edges, directed=False))
        if not (math.isfinite(self.weight) and 0 < self.weight <= 1e6):
            raise ConfigError(
                f"weight = {self.weight:g} is out of range; allowed: above 0, at most 1,000,000 (drop an edge "
                "instead of 0)"
            )

    @property
    def words(self) -> str:
        """As for `Edit`."""
        return f"weight {self.weight:g} for {_few([' - '.join(e) for e in self.edges], 'edge')}"

    def apply(self, graph: AttributedGraph, places: Places) -> AttributedGraph:
        """As for `Edit`."""
        weights = np.ones(graph.num_edges, np.float32) if graph.edge_weights is None else graph.edge_weights.copy()
        weights[_found(graph, places, self.edges)] = self.weight
        return replace(graph, edge_weights=weights)


KINDS: Mapping[str, type[Edit]] = {
    cls.kind: cls for cls in (FlipValue, MergeValues, DropValue, Threshold, DropEdges, AddEdges, ReweightEdges)
}


def edit_from_json(record: Mapping[str, Any]) -> Edit:
    """The edit that `Edit.to_json` wrote.

    Raises:
        ConfigError: it is none.
    """
    kind = str(record.get("kind"))
    if kind not in KINDS:
        raise ConfigError(unknown_name("edit", kind, tuple(KINDS)))
    given = {k: v for k, v in record.items() if k != "kind"}
    wanted = {f.name: str(f.type) for f in fields(KINDS[kind])}
    if set(given) != set(wanted):
        raise ConfigError(f"edit {kind} has {', '.join(sorted(given)) or 'nothing'}; needed: {', '.join(wanted)}")
    try:
        return KINDS[kind](**{name: _read(value, wanted[name]) for name, value in given.items()})
    except (TypeError, ValueError):
        raise ConfigError(f"edit {kind}: {given!r:.200} cannot be read") from None


def apply_edits(graph: AttributedGraph, edits: Sequence[Edit], places: Places | None = None) -> AttributedGraph:
    """The graph with the edits, in their order; itself without any.

    Its split is that of `graph` (`AttributedGraph.base`). What a generated graph was drawn from is not known of it.

    Raises:
        ConfigError: an edit does not fit.
        GraphError: the graph has no such attribute.
    """
    if not edits:
        return graph
    places = places or Places(graph)
    edited = reduce(lambda g, edit: edit.apply(g, places), edits, graph)
    return replace(edited, base=graph, truth=None)


def _names(given: Iterable[str], what: str, most: int) -> tuple[str, ...]:
    names = tuple(sorted(set(given)))
    if not 0 < len(names) <= most:
        raise ConfigError(f"{len(names):,} {what}; allowed: 1 to {most:,} in one edit")
    return names


def _pairs(given: Iterable[Sequence[str]], *, directed: bool) -> tuple[tuple[str, str], ...]:
    edges: dict[tuple[str, ...], tuple[str, str]] = {}
    for pair in given:
        if len(pair) != 2 or pair[0] == pair[1]:
            raise ConfigError(f"{' - '.join(pair)!r} is no edge; name two different nodes")
        low, high = sorted(pair)
        edges[low, high] = (pair[0], pair[1]) if directed else (low, high)
    if not 0 < len(edges) <= MOST_EDGES:
        raise ConfigError(f"{len(edges):,} edges; allowed: 1 to {MOST_EDGES:,} in one edit")
    return tuple(sorted(edges.values()))


def _found(graph: AttributedGraph, places: Places, pairs: Sequence[tuple[str, str]]) -> IntArray:
    """(n,) where edges stand in the graph's list."""
    ends = np.sort(np.stack([places.nodes([p[i] for p in pairs]) for i in (0, 1)]), axis=0)
    n = np.int64(graph.num_nodes)
    key, asked = graph.edges[0] * n + graph.edges[1], ends[0] * n + ends[1]
    order = np.argsort(key, kind="stable")
    at = order[np.minimum(np.searchsorted(key[order], asked), len(key) - 1)]
    missing = key[at] != asked
    if missing.any():
        raise ConfigError(
            f"there is no edge {' - '.join(pairs[int(missing.argmax())])}; the ego network shows those there are"
        )
    return np.asarray(at)


def _value(attribute: Attribute, label: str) -> int:
    if label not in attribute.labels:
        raise ConfigError(unknown_name(f"value of {attribute.name}", label, attribute.labels))
    return attribute.labels.index(label)


def _relabelled(attribute: Attribute, into: IntArray, labels: tuple[str, ...]) -> Attribute:
    """The attribute with each value's code replaced."""
    if len(labels) < 2:
        raise ConfigError(
            f"{attribute.name} would have {len(labels)} group; two at least are needed to tell them apart"
        )
    codes = attribute.codes.copy()
    codes[attribute.known] = into[codes[attribute.known]]
    return replace(attribute, codes=codes, labels=labels)


def _with(graph: AttributedGraph, attribute: Attribute) -> AttributedGraph:
    return replace(graph, attributes=tuple(attribute if a.name == attribute.name else a for a in graph.attributes))


def _few(names: Sequence[str], what: str) -> str:
    """The first few, and how many more."""
    more = f" and {len(names) - _NAMED:,} more {what}s" if len(names) > _NAMED else ""
    return f"{what}{'s' * (len(names) > 1)} {', '.join(names[:_NAMED])}{more}"


def _listed(value: Any) -> Any:
    return [_listed(v) for v in value] if isinstance(value, tuple) else value


def _read(value: Any, kind: str) -> Any:
    """A value out of JSON as the field's type."""
    if kind == "float":
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    if kind == "str":
        if not isinstance(value, str):
            raise TypeError
        return value
    if not isinstance(value, list | tuple):
        raise TypeError
    inner = "str" if kind == "tuple[str, ...]" else "tuple[str, ...]"
    return tuple(_read(v, inner) for v in value)
