"""The layout of the paper's authors: tables whose row number, counted from 0, is the node.

``NAME_node_attribute.csv`` has one attribute per column, ``NAME_edge.csv`` the row numbers of the
two ends of every edge; ``NAME_node_feature.csv`` and ``NAME_node_label.csv`` may stand beside
them. Rows that hold -1 throughout are items (their MovieLens): the graph is then bipartite.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from uge_core.datasets.assemble import drop_isolated_items, edge_columns, finish
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.evidence import guess_ends, named_id
from uge_core.datasets.ids import by_row_number, refuse_from_one, refuse_other_order, refuse_unknown
from uge_core.datasets.layouts._pokec import ROLES, defaults
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.tables import Table, as_numbers, read_table, refuse_numbers_as_header
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Defaults

_AGE = {"age": Role("attribute", ordered=True)}


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """One graph, of people alone or of people and items."""
    attributes = read_table(dataset.files["attributes"], in_place=True)
    refuse_numbers_as_header(attributes, "gender,region,AGE")
    num_nodes = len(attributes)
    tables = [(attributes, Role("attribute"))]
    beside = {"features": Role("feature"), "labels": Role("label")}
    tables += [
        (read_table(dataset.files[key], in_place=True), role) for key, role in beside.items() if key in dataset.files
    ]
    for table, _ in tables[1:]:
        if len(table) != num_nodes:
            raise GraphError(
                f"{table.file}: {len(table):,} rows, but {attributes.file} has {num_nodes:,}; "
                "row i of each describes node i, so they must be equally long"
            )
    edges = read_table(dataset.files["edges"])
    if len(edges.names) < 2:
        raise GraphError(f"{edges.file}: one column ({edges.names[0]}), two are needed: Src,Dst or Src,Dst,Weight")
    ends = guess_ends(edges)
    refuse_other_order(attributes, edges.file, named_id(attributes))
    refuse_numbers_as_header(edges, "Src,Dst", *ends)
    source, target = (by_row_number(edges, e, num_nodes) for e in ends)
    allowed = f"0 to {num_nodes - 1}, the row numbers of {attributes.file} counted from 0"
    refuse_unknown(edges, ends, (source, target), allowed)
    refuse_from_one(attributes, named_id(attributes), (source, target), edges.file)
    described = edge_columns(edges, ends)

    is_item = _items(attributes)
    if not is_item.any():
        nodes = NodeColumns.join([*(assign(t, ROLES, rest, asked) for t, rest in tables), described])
        return finish(dataset.name, "authors", source, target, num_nodes, nodes, defaults=defaults(num_nodes))
    num_users = int((~is_item).sum())
    if is_item[:num_users].any() or (is_item[source] == is_item[target]).any():
        raise GraphError(
            f"{attributes.file}: rows of -1 are items; they must stand after all people, and every edge must join "
            "a person and an item"
        )
    user, item = np.minimum(source, target), np.maximum(source, target) - num_users
    item, kept, notes = drop_isolated_items(dataset.name, item, num_nodes - num_users)
    stays = np.concatenate([np.ones(num_users, dtype=bool), kept])
    people = [replace(t, frame=t.frame.iloc[:num_users]) for t, _ in tables]
    parts = [assign(t, _AGE, rest, asked) for t, (_, rest) in zip(people, tables, strict=True)]
    sided = [p.on_side("users", 0, int(stays.sum())) for p in parts]
    nodes = NodeColumns.join([*sided, described, NodeColumns(messages=notes)])
    return finish(
        dataset.name,
        "authors",
        user,
        num_users + item,
        int(stays.sum()),
        nodes,
        node_ids=attributes.frame.index[stays] - attributes.frame.index[0],
        num_users=num_users,
        defaults=Defaults(test_share=0.2),
    )


def _items(attributes: Table) -> npt.NDArray[np.bool_]:
    """(N,) the rows that hold -1 throughout."""
    is_item: npt.NDArray[np.bool_] = np.all(
        [as_numbers(attributes.frame[name]) == -1 for name in attributes.names], axis=0
    )
    return is_item


POSITION = 50
LAYOUTS = (
    Layout(
        "authors",
        "the UGE authors'",
        (
            Part(
                "edges",
                ("{}_edge.csv",),
                "the header Src,Dst,Weight and one row per edge, "
                "the row numbers of {}_node_attribute.csv counted from 0",
            ),
            Part("attributes", ("{}_node_attribute.csv",), "a header with the attributes' names and one row per node"),
            Part("features", ("{}_node_feature.csv",), optional=True),
            Part("labels", ("{}_node_label.csv",), optional=True),
        ),
        _read,
    ),
)
