"""Small Pokec as numpy files: ``NAME_edges.npy`` (2, E), ``NAME_sens.npy`` (N,) and ``NAME_labels.npy`` (N,).

The sensitive array of these files is the region. Files that need unpickling are refused.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from uge_core.datasets.assemble import finish
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.ids import refuse_numbers
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.tables import Table, read_array
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Column


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """One graph."""
    path = dataset.files["edges"]
    edges = read_array(path, "an array of shape (2, E), the node numbers of each edge")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise GraphError(f"{path.name}: found shape {edges.shape}, expected (2, E): one row per end; transpose it")
    region = _column(dataset.files["sens"], "region")
    num_nodes = len(region)
    refuse_numbers(path.name, edges, num_nodes, "column", f", the positions in {region.file}")
    parts = [assign(region, {}, Role("attribute"), asked)]
    if "labels" in dataset.files:
        labels = _column(dataset.files["labels"], "label")
        if len(labels) != num_nodes:
            raise GraphError(
                f"{labels.file}: {len(labels):,} values, but {region.file} has {num_nodes:,}; both need one per node"
            )
        parts.append(assign(labels, {}, Role("label"), asked))
    ends = tuple(Column(path.name, name, name) for name in ("source", "target"))
    nodes = NodeColumns.join([*parts, NodeColumns(columns=ends)])
    return finish(dataset.name, "numpy-pairs", edges[0], edges[1], num_nodes, nodes)


def _column(path: Path, name: str) -> Table:
    """A vector as a table of one text column."""
    values = read_array(path, "an array of shape (N,), one value per node")
    if values.ndim != 1:
        raise GraphError(f"{path.name}: found shape {values.shape}, expected (N,): one value per node")
    return Table(path.name, pd.DataFrame({name: values.astype(str)}, dtype="str"))


POSITION = 80
LAYOUTS = (
    Layout(
        "numpy-pairs",
        "small Pokec's",
        (
            Part("edges", ("{}_edges.npy",), "an integer array of shape (2, E), the node numbers of each edge"),
            Part("sens", ("{}_sens.npy",), "an integer array of shape (N,), the region of each node"),
            Part("labels", ("{}_labels.npy",), optional=True),
        ),
        _read,
    ),
)
