"""Any graph as two tables: ``edges.csv`` and ``nodes.csv``, comma, semicolon or tab, ids of any kind.

Either may be called .tsv, be Parquet or a sheet of Excel; ``edges.npz`` is a scipy matrix whose row i is the i-th row of the nodes.

The ends of an edge are the columns source and target (or src and dst, from and to, u and v), and a node's id the
column id (or node, node_id, user_id), as far as what the two tables share agrees (`evidence`). Ids are compared as text. What the other columns are is decided by their values, see `base`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from uge_core.datasets.assemble import WEIGHTS, edge_columns, finish
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.evidence import ENDS, IDS, guess_ends, guess_id, id_and_ends, named_id
from uge_core.datasets.excel import ENDING, read_excel
from uge_core.datasets.ids import ASK_WITHOUT_CARD, by_id, node_index, refuse_other_order, refuse_unknown
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.parquet import read_parquet
from uge_core.datasets.sparse import read_sparse
from uge_core.datasets.stray_rows import refuse_odd_ids
from uge_core.datasets.tables import Table, is_number, read_table, refuse_headless
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    matrix = dataset.files["edges"].suffix == ".npz"
    nodes = read_any(dataset.files["nodes"], in_place=matrix)
    if matrix:
        return _read_matrix(dataset, nodes, asked)
    edges = read_any(dataset.files["edges"])
    return joined(dataset.name, "tables", nodes, edges, asked)


def joined(
    name: str,
    layout: str,
    nodes: Table,
    edges: Table,
    asked: Asked,
    *,
    ends: tuple[str, str] | None = None,
    directed: bool = False,
    roles: Mapping[str, Role] | None = None,
) -> AttributedGraph:
    """The graph of a table of nodes and one of edges.

    Args:
        name: the graph's.
        layout: the layout's name.
        nodes: one row per node.
        edges: one row per edge.
        asked: as a layout's `read` has it.
        ends: the columns with the ends of an edge; None: by what the tables share.
        directed: each row runs from source to target.
        roles: of columns of the nodes, by lower-case name; else their values decide.

    Raises:
        GraphError: the tables do not fit.
    """
    id_column = guess_id(nodes)
    check_headers(nodes, edges, id_column, ends or guess_ends(edges))
    found = id_and_ends(nodes, edges, ends=ends)
    if (found.id, found.ends) != (id_column, ends):
        check_headers(nodes, edges, found.id, found.ends)
    id_column, ends = found.id, found.ends
    refuse_odd_ids(nodes, id_column, pd.concat([edges.frame[end] for end in ends]))
    ids = node_index(nodes, id_column)
    source, target = by_id(edges, ends[0], ids), by_id(edges, ends[1], ids)
    allowed = f"the {len(ids):,} ids in column {id_column!r} of {nodes.file}, compared as text (7 and 7.0 differ)"
    refuse_unknown(edges, ends, (source, target), allowed, ids, ASK_WITHOUT_CARD)
    columns = assign(nodes, {**(roles or {}), id_column.lower(): Role("id")}, Role("auto"), asked)
    parts = [columns, edge_columns(edges, ends), NodeColumns(messages=found.messages, directed=directed)]
    return finish(name, layout, source, target, len(ids), NodeColumns.join(parts), node_ids=ids)


def read_any(
    path: Path,
    sep: str | None = None,
    encoding: str = "utf-8-sig",
    *,
    in_place: bool = False,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
) -> Table:
    """A table, Excel, Parquet or text by the file's name; what it is read by as in `read_table`."""
    if path.suffix.lower() == ENDING:
        return read_excel(path, in_place=in_place, header=header, columns=columns)
    if path.suffix != ".parquet":
        return read_table(path, sep=sep, encoding=encoding, in_place=in_place, header=header, columns=columns)
    if header is not None or columns is not None:
        raise GraphError(f"{path.name}: header and columns are for text tables; Parquet names its columns itself")
    return read_parquet(path)


def _read_matrix(dataset: Found, nodes: Table, asked: Asked) -> AttributedGraph:
    """The graph of a sparse matrix and a table whose rows are its nodes."""
    source, target, size, described = read_sparse(dataset.files["edges"])
    if size != len(nodes):
        raise GraphError(
            f"{nodes.file}: {len(nodes):,} rows, but the matrix in {dataset.files['edges'].name} has {size:,}; "
            "row i of each is the same node, so they must be equally many"
        )
    id_column = named_id(nodes)
    roles = {} if id_column is None else {id_column.lower(): Role("id")}
    ids = None if id_column is None else node_index(nodes, id_column)
    refuse_other_order(nodes, dataset.files["edges"].name, id_column)
    columns = NodeColumns.join([assign(nodes, roles, Role("auto"), asked), described])
    return finish(dataset.name, "tables", source, target, size, columns, node_ids=ids)


def check_headers(nodes: Table, edges: Table, id_column: str, ends: tuple[str, str]) -> None:
    """Refuses a file whose first line is a row: none of its cells is a known name, and it holds ids or numbers."""
    edges_named = edges.headless or edges.column(*(name for pair in ENDS for name in pair), *WEIGHTS) is not None
    nodes_named = nodes.headless or nodes.column(*IDS) is not None
    is_id = [bool((nodes.frame[id_column] == end).any()) for end in ends]
    # Where the first node is in the first line of both files, it is in no row of either.
    known = [known or (not nodes_named and end == id_column) for known, end in zip(is_id, ends, strict=True)]
    edges_headless = not edges_named and (all(map(is_number, ends)) or (all(known) and any(is_id)))
    is_end = any((edges.frame[end] == id_column).any() for end in ends) or (edges_headless and id_column in ends)
    if not nodes_named and (is_number(id_column) or is_end):
        names = [f"attribute{i}" for i in range(1, min(len(nodes.names), 4))]
        refuse_headless(nodes, nodes.names[:4], ",".join(["id", *names]))
    if edges_headless:
        refuse_headless(edges, ends, "source,target")


POSITION = 90
LAYOUTS = (
    Layout(
        "tables",
        "two tables",
        (
            Part(
                "edges",
                ("edges.csv", "edges.tsv", "edges.parquet", "edges.xlsx", "edges.npz"),
                "the header source,target and one row per edge",
            ),
            Part(
                "nodes",
                ("nodes.csv", "nodes.tsv", "nodes.parquet", "nodes.xlsx"),
                "a header with the column id and one row per node, attributes in the others",
            ),
        ),
        _read,
    ),
)
