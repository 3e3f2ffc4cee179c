"""A graph as a Matrix Market file, ``NAME.mtx``, beside ``nodes.csv``: row i of the matrix is the i-th row of the nodes.

scipy reads it. Pattern, integer and real matrices are read, general and symmetric ones. A general matrix of which
some edges stand one way only is directed.
"""

from __future__ import annotations

import io
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import IntArray
from uge_core.datasets.assemble import finish
from uge_core.datasets.bounded import is_gzip, read_bytes, unpacked_limit
from uge_core.datasets.columns import FEWEST_IDENTIFIERS, NodeColumns, Role, assign
from uge_core.datasets.evidence import named_id
from uge_core.datasets.ids import node_index, refuse_other_order
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.layouts.tables import read_any
from uge_core.datasets.sparse import edges_of
from uge_core.datasets.tables import counted
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph

_EXPECTED = "a square matrix in the Matrix Market form, row i being the i-th row of the nodes"
_BANNER = b"%%MatrixMarket"
_SHORTEST = 4  # bytes that a line with an entry takes at least: 1 1 and a line's end


def _read(found: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    path = found.files["edges"]
    nodes = read_any(found.files["nodes"], in_place=True)
    source, target, data, size, directed = _entries(path)
    if size != len(nodes):
        raise GraphError(
            f"{nodes.file}: {counted(len(nodes), 'row')}, but the matrix in {path.name} has {size:,}; row i of each is "
            "the same node, so they must be equally many"
        )
    id_column = named_id(nodes)
    roles = {} if id_column is None else {id_column.lower(): Role("id")}
    ids = None if id_column is None else node_index(nodes, id_column)
    if id_column is not None or len(nodes) >= FEWEST_IDENTIFIERS:
        refuse_other_order(nodes, id_column or nodes.names[0], path.name)
    source, target, described = edges_of(path, source, target, data, directed)
    columns = NodeColumns.join([assign(nodes, roles, Role("auto"), asked), described])
    return finish(found.name, "matrix-market", source, target, size, columns, node_ids=ids)


def _entries(path: Path) -> tuple[IntArray, IntArray, npt.NDArray[Any], int, bool | None]:
    """Row, column and value of each entry of a square matrix, its size, and False where it says that it is symmetric.

    A symmetric one has one half.
    """
    from scipy.io import mminfo, mmread

    data = _bytes(path)
    try:
        rows, columns, entries, form, field, symmetry = mminfo(io.BytesIO(data))
    except Exception as e:  # whatever a damaged header makes of the reader
        raise _unreadable(path, e) from None
    if rows != columns:
        raise GraphError(
            f"{path.name}: found a matrix of {rows:,} rows and {columns:,} columns; expected {_EXPECTED}; write two kinds "
            "of nodes as edges.csv and tables of users and items, named in dataset.yaml"
        )
    if field not in ("pattern", "integer", "unsigned-integer", "real", "double"):
        raise GraphError(
            f"{path.name}: found {field} numbers; allowed: pattern, integer and real; save it with weights"
        )
    if symmetry not in ("general", "symmetric"):
        raise GraphError(
            f"{path.name}: found a {symmetry} matrix, half of whose values are negative or complex and no weights; "
            "allowed: general and symmetric"
        )
    # The reader makes room for what the header claims before it reads.
    if entries * _SHORTEST > len(data) + 1 if form == "coordinate" else rows * columns > len(data) + 1:
        raise GraphError(
            f"{path.name}: claims {entries:,} entries, more than its {len(data):,} bytes can hold; it is cut off or "
            "damaged, save it again"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matrix: Any = mmread(io.BytesIO(data))
    except Exception as e:  # whatever a damaged file makes of the reader
        raise _unreadable(path, e) from None
    if form == "array":
        source, target = (a.astype(np.int64) for a in np.nonzero(matrix))
        values: npt.NDArray[Any] = np.asarray(matrix)[source, target]
    else:
        source, target = matrix.row.astype(np.int64), matrix.col.astype(np.int64)
        values = np.ones(len(source)) if field == "pattern" else matrix.data
    if symmetry == "general":
        return source, target, values, rows, None
    if form == "coordinate" and field != "pattern":
        _refuse_both_halves(path, source, target, rows)
    half = source >= target
    return source[half], target[half], values[half], rows, False


def _refuse_both_halves(path: Path, source: IntArray, target: IntArray, size: int) -> None:
    """Refuses a symmetric matrix in which a pair stands twice: its weight would count twice."""
    keys, times = np.unique(source * np.int64(size) + target, return_counts=True)
    twice = keys[times > 1]
    if len(twice):
        first, second = divmod(int(twice[0]), size)
        pairs = int((twice // size >= twice % size).sum())
        raise GraphError(
            f"{path.name}: the matrix is called symmetric, but {counted(pairs, 'pair')} of nodes "
            f"{'stands' if pairs == 1 else 'stand'} in it more than once, first: {first + 1} {second + 1}; which weight "
            "counts cannot be told: call it general if both halves are written, or keep one entry of each pair"
        )


def _bytes(path: Path) -> bytes:
    """The file's content, which begins as it should."""
    try:
        if path.suffix == ".gz" and not is_gzip(path):
            raise GraphError(f"{path.name}: is not gzip data although its name ends in .gz; rename it or compress it")
        data = read_bytes(path, unpacked_limit())
    except (OSError, EOFError, zlib.error):
        raise GraphError(f"{path.name}: the file cannot be read, or its gzip data are damaged") from None
    if data[: len(_BANNER)].lower() != _BANNER.lower():
        raise GraphError(
            f"{path.name}: does not begin with {_BANNER.decode()}, which says how the matrix is written; expected "
            f"{_EXPECTED}, as scipy.io.mmwrite saves it; write a list of edges without such a line as edges.csv"
        )
    return data


def _unreadable(path: Path, error: Exception) -> GraphError:
    """The error about a file that scipy does not read."""
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return GraphError(f"{path.name}: cannot be read as Matrix Market ({reason}); save it again by scipy.io.mmwrite")


POSITION = 92
LAYOUTS = (
    Layout(
        "matrix-market",
        "a Matrix Market file's",
        (
            Part("edges", ("{}.mtx",), "the adjacency matrix"),
            Part(
                "nodes",
                ("nodes.csv", "nodes.parquet"),
                "a header and one row per node, in the order of the matrix",
                telling=False,
            ),
        ),
        _read,
    ),
)
