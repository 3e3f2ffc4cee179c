"""From parts to a graph: edges and people joined, what cannot be used dropped and said."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.columns import NodeColumns
from uge_core.datasets.edge_columns import ALLOWED, about_directions, about_weights, no_edges, usable
from uge_core.datasets.findings import about_attributes
from uge_core.datasets.tables import Table, as_numbers, counted
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Column, Defaults, Message, directions_of, simple_edges, weights_of

_FIRST = 3
WEIGHTS = ("weight", "w")
"""What a column of weights is called where nobody names one."""
LIKE_WEIGHTS = ("strength", "count", "times", "frequency")
"""What it may be called; such a column is used only where somebody says so."""


def edge_columns(
    edges: Table, ends: tuple[str, str], weight: str | None = None, *, described: bool = False
) -> NodeColumns:
    """The roles of the columns of an edge file, and the weights in it.

    Args:
        edges: the file.
        ends: the columns with the ends of every edge.
        weight: the column with weights; None: one called weight or w that holds numbers.
        described: whether somebody said which columns are the ends; then rows that are probably no edges are edges,
            with a warning.

    Raises:
        GraphError: some weights are no numbers, or negative, or some rows are probably no edges.
    """
    columns: list[Column] = []
    values = None
    named = weight is not None
    weight = weight or edges.column(*WEIGHTS)
    for name in edges.names:
        if name in ends:
            columns.append(Column(edges.file, name, "source" if name == ends[0] else "target"))
        elif name != weight:
            columns.append(Column(edges.file, name, "ignored", "columns of edges are not used"))
        else:
            column, values = _weight_column(edges, name, ends, named)
            columns.append(column)
    messages = edges.messages
    if text := no_edges(edges, ends, weight):
        if not described:
            raise GraphError(text)
        messages += (Message("warning", "rows-without-edges", text),)
    likely = edges.column(*LIKE_WEIGHTS)
    if weight is None and likely not in (None, *ends):
        text = f"{edges.file}: column {likely!r} may hold weights, and is not used"
        messages += (Message("note", "maybe-weights", text, remedy=f"edges: weight: {likely} in dataset.yaml uses it"),)
    return NodeColumns(columns=tuple(columns), edge_weights=values, messages=messages)


def _weight_column(
    edges: Table, name: str, ends: tuple[str, str], named: bool
) -> tuple[Column, npt.NDArray[np.float64] | None]:
    """The role of a column of weights, and the weights where they differ."""
    _refuse_marks(edges, name, ends)
    numbers = as_numbers(edges.frame[name])
    if np.isnan(numbers).all() and not named:
        return Column(edges.file, name, "ignored", "no numbers, which weights are"), None
    wrong = ~usable(numbers)
    if wrong.any():
        raise GraphError(
            f"{edges.file}: {counted(int(wrong.sum()), 'edge')} without a usable weight in column {name!r}, first: "
            f"{edges.first_lines(wrong, *ends, name)}; {ALLOWED}; correct these cells, or rename the column to "
            "leave weights out"
        )
    if numbers[0] and (numbers == numbers[0]).all():
        return Column(edges.file, name, "weight", "the same for every edge"), None
    return Column(edges.file, name, "weight"), numbers


def _refuse_marks(edges: Table, name: str, ends: tuple[str, str]) -> None:
    """Refuses weights with a decimal comma, or with points that may be decimal or of thousands."""
    cells = edges.frame[name]
    if cells.dtype.kind in "iuf":
        return
    given = pd.Series(cells.dropna().unique(), dtype="str")  # few, as weights go
    commas = given[given.str.contains(",", regex=False)]
    comma = cells.isin(commas[commas.str.fullmatch(r"\s*[+-]?\d[\d.\u202f ]*,\d+\s*")]).to_numpy()
    if comma.any():
        raise GraphError(
            f"{edges.file}: {counted(int(comma.sum()), 'weight')} with a comma in column {name!r}, first: "
            f"{edges.first_lines(comma, *ends, name)}; write decimals with a point and no marks for thousands, or rename "
            "the column to leave weights out"
        )
    point = given[given.str.contains(".", regex=False)]
    if 0 < len(point) < len(given) and point.str.fullmatch(r"[1-9]\d{0,2}\.\d{3}").all():
        wrong = cells.isin(point).to_numpy()
        raise GraphError(
            f"{edges.file}: {counted(int(wrong.sum()), 'weight')} in column {name!r} whose point may be of thousands or of "
            f"decimals, as others have none, first: {edges.first_lines(wrong, *ends, name)}; write 1.000 as 1000 if it is a "
            "thousand, else as 1"
        )


def drop_isolated_items(
    name: str, items: IntArray, num_items: int
) -> tuple[IntArray, npt.NDArray[np.bool_], tuple[Message, ...]]:
    """Items without an edge leave the graph.

    Args:
        name: the graph's name.
        items: (M,) the item of each edge, counted from 0.
        num_items: how many items there are.

    Returns:
        (M,) the items renumbered; (num_items,) which ones stayed; a note when some did not.
    """
    kept = np.bincount(items, minlength=num_items) > 0
    dropped = int((~kept).sum())
    text = f"{name}: {counted(dropped, 'item')} without an edge {'was' if dropped == 1 else 'were'} dropped"
    remedy = "nothing to do; an item that nobody chose describes nobody"
    notes = (Message("note", "items-without-edges", text, dropped, remedy=remedy),) if dropped else ()
    return (np.cumsum(kept) - 1)[items], kept, notes


def finish(
    name: str,
    layout: str,
    source: IntArray,
    target: IntArray,
    num_nodes: int,
    nodes: NodeColumns,
    *,
    node_ids: pd.Index | None = None,
    num_users: int | None = None,
    defaults: Defaults | None = None,
) -> AttributedGraph:
    """The graph, with a note for everything that was dropped on the way.

    Args:
        name: what the user calls it.
        layout: the layout's name.
        source: (M,) one end of each row of the edge file.
        target: (M,) the other end.
        num_nodes: N.
        nodes: what the columns became.
        node_ids: the user's ids, or None where nodes are row numbers.
        num_users: size of the first side of a bipartite graph.
        defaults: what the layout fixes.

    Raises:
        GraphError: no edge joins two different nodes.
    """
    weights = nodes.edge_weights
    nothing = np.zeros(len(source), dtype=bool) if weights is None else weights == 0
    weightless = source[nothing], target[nothing]
    if weights is not None and nothing.any():
        source, target, weights = source[~nothing], target[~nothing], weights[~nothing]
    edges, loops, repeated = simple_edges(source, target, num_nodes)
    if not edges.shape[1]:
        contents = "only self-loops" if loops else "no edge between its nodes"
        contents += ", those of weight 0 left out" * bool(len(weightless[0]))
        raise GraphError(f"{name}: the graph has {contents}; at least one edge between two different nodes is needed")
    messages = list(nodes.messages)

    def shown(ends: tuple[IntArray, IntArray]) -> tuple[str, ...]:
        first = zip(ends[0][:_FIRST], ends[1][:_FIRST], strict=True)
        return tuple(f"{a} - {b}" if node_ids is None else f"{node_ids[a]} - {node_ids[b]}" for a, b in first)

    def named(rows: IntArray) -> tuple[str, ...]:
        return shown((source[rows[:_FIRST]], target[rows[:_FIRST]]))

    if len(weightless[0]):
        count = len(weightless[0])
        text = f"{name}: {counted(count, 'edge')} of weight 0 dropped; an edge that counts for nothing is no edge"
        remedy = "give them a weight, or leave the weights out, if they are edges"
        messages.append(Message("warning", "zero-weights", text, count, shown(weightless), remedy))
    if loops:
        text = f"{name}: {counted(loops, 'self-loop')} dropped; a node's edge to itself is no link to predict"
        remedy = "nothing to do; remove these rows to be rid of this note"
        messages.append(Message("note", "self-loops", text, loops, named(np.flatnonzero(source == target)), remedy))
    if weights is not None and (weights == weights[0]).all():
        weights = None
    if repeated:
        text = f"{name}: {counted(repeated, 'repeated row')} dropped; a pair and its reverse are the same edge"
        remedy = "nothing to do; how often a pair stands is not used"
        if weights is not None:
            text = text.replace("dropped", "merged") + ", and the weights of its rows add up"
            remedy = "nothing to do; of an edge both ways of a directed graph the mean of the two counts"
        rows = _repeated_rows(source, target, num_nodes)
        messages.append(Message("note", "duplicate-edges", text, repeated, named(rows), remedy))
    directions = directions_of(edges, source, target, num_nodes) if nodes.directed and num_users is None else None
    if directions is not None and not directions.any():
        directions = None  # every edge runs both ways
    edge_weights = None
    if weights is not None:
        edge_weights = weights_of(edges, source, target, weights, num_nodes, directed=nodes.directed)
        messages.append(about_weights(name, edge_weights))
    if directions is not None:
        messages.append(about_directions(name, directions))
    lonely = np.flatnonzero(np.bincount(edges.ravel(), minlength=num_nodes) == 0)
    if len(lonely):
        text = f"{name}: {counted(len(lonely), 'node')} without an edge; no link trains their embeddings"
        first = tuple(str(i if node_ids is None else node_ids[i]) for i in lonely[:_FIRST])
        remedy = "remove them, or read their figures with care"
        messages.append(Message("note", "nodes-without-edges", text, len(lonely), first, remedy))
    messages += about_attributes(name, edges, num_users, nodes.attributes, nodes.features, nodes.feature_names)
    if num_users is not None:
        genre = next((a.name for a in nodes.attributes if a.side == "items"), None)
        text = (
            f"{name}: items form no cells by default, so UGE-W is one constant per user group; "
            f"item cells (popularity deciles{f' or {genre}' if genre else ''}) make weights differ within a group"
        )
        options = "popularity" + (f" or item_cells={genre}" if genre else "")
        messages.append(Message("note", "no-item-cells", text, remedy=f"--set item_cells={options}"))
    return AttributedGraph(
        name=name,
        num_nodes=num_nodes,
        edges=edges,
        attributes=nodes.attributes,
        node_ids=None if node_ids is None else np.asarray(node_ids, dtype=object),
        num_users=num_users,
        features=nodes.features,
        feature_names=nodes.feature_names,
        layout=layout,
        columns=nodes.columns,
        messages=tuple(messages),
        defaults=defaults or Defaults(),
        edge_weights=edge_weights,
        directions=directions,
    )


def _repeated_rows(source: IntArray, target: IntArray, num_nodes: int) -> IntArray:
    """The first rows that repeat an edge of an earlier one."""
    for size in (100_000, len(source)):  # they mostly stand early, and all rows take long to look through
        key = np.minimum(source, target)[:size] * np.int64(num_nodes) + np.maximum(source, target)[:size]
        twice = pd.Series(key).duplicated().to_numpy() & (source[:size] != target[:size])
        if twice.any():
            break
    return np.flatnonzero(twice)[:_FIRST]
