"""A table and its edges by row number: ``NAME.csv`` and ``NAME_edges.txt`` (German credit).

The edge file holds two row numbers a line, counted from 0, separated by a space and often written
as floats. German credit has its own list of attributes (Gender, Age in bands, ForeignWorker);
GoodCustomer is its label. In other tables the values decide.
"""

from __future__ import annotations

from uge_core.datasets.assemble import edge_columns, finish
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.evidence import named_id
from uge_core.datasets.ids import by_row_number, refuse_from_one, refuse_other_order, refuse_unknown
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.tables import Table, read_table, refuse_numbers_as_header
from uge_core.graph.graph import AttributedGraph

_GERMAN = {
    "gender": Role("attribute"),
    "age": Role("attribute", bands=(25, 35, 45, 55)),
    "foreignworker": Role("attribute"),
    "goodcustomer": Role("label"),
}


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """One graph."""
    nodes = read_table(dataset.files["nodes"], in_place=True)
    refuse_numbers_as_header(nodes, "the names of its columns")
    refuse_other_order(nodes, dataset.files["edges"].name, named_id(nodes))
    ends = ("source", "target")
    edges = read_table(dataset.files["edges"], sep=" ", names=ends)
    source, target = (by_row_number(edges, e, len(nodes)) for e in ends)
    allowed = f"0 to {len(nodes) - 1}, the rows of {nodes.file} counted from 0"
    refuse_unknown(edges, ends, (source, target), allowed)
    refuse_from_one(nodes, named_id(nodes), (source, target), edges.file)
    columns = NodeColumns.join([_assign(nodes, asked), edge_columns(edges, ends)])
    return finish(dataset.name, "row-numbers", source, target, len(nodes), columns)


def _assign(nodes: Table, asked: Asked) -> NodeColumns:
    """Roles by German credit's own list where the table is German credit, else by the values."""
    if all(nodes.column(name) for name in _GERMAN):
        return assign(nodes, _GERMAN, Role("feature"), asked)
    return assign(nodes, {}, Role("auto"), asked)


POSITION = 70
LAYOUTS = (
    Layout(
        "row-numbers",
        "German credit's",
        (
            Part("nodes", ("{}.csv",), "a header and one row per node", telling=False),
            Part("edges", ("{}_edges.txt",), "two row numbers of {}.csv a line, counted from 0"),
        ),
        _read,
    ),
)
