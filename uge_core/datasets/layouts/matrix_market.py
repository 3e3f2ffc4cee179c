"""A graph as a Matrix Market file, ``NAME.mtx``, beside ``nodes.csv``: row i of the matrix is the i-th row of the nodes.

Pattern, integer and real matrices are read, general and symmetric ones. A general matrix of which
some edges stand one way only is directed.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.assemble import finish
from uge_core.datasets.bounded import is_gzip, read_bytes, unpacked_limit
from uge_core.datasets.columns import NodeColumns, Role, assign
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
_LONGEST = 2**16
_SIZE = re.compile(r"[0-9]{1,15}")
_TIMES = 2  # the text, and the numbers in it
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
    refuse_other_order(nodes, path.name, id_column)
    source, target, described = edges_of(path, source, target, data, directed)
    columns = NodeColumns.join([assign(nodes, roles, Role("auto"), asked), described])
    return finish(found.name, "matrix-market", source, target, size, columns, node_ids=ids)


def _entries(path: Path) -> tuple[IntArray, IntArray, npt.NDArray[Any], int, bool | None]:
    """Row, column and value of each entry of a square matrix, its size, and False where it says that it is symmetric.

    A symmetric one has one half.
    """
    data = _bytes(path)
    rows, columns, entries, form, field, symmetry, body = _header(path, data)
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
    # Room is made for what the header claims.
    if entries * _SHORTEST > len(data) + 1 if form == "coordinate" else rows * columns > len(data) + 1:
        raise GraphError(
            f"{path.name}: claims {entries:,} entries, more than its {len(data):,} bytes can hold; it is cut off or "
            "damaged, save it again"
        )
    if form == "array":
        # Column by column; of a symmetric one from the diagonal on.
        target, source = np.indices((rows, rows)).reshape(2, -1)
        if symmetry == "symmetric":
            target, source = target[source >= target], source[source >= target]
        values = _numbers(path, body, len(source), 0)[0]
    else:
        first, second, *more = _numbers(path, body, entries, 2, 3 - (field == "pattern"))
        source, target = first.astype(np.int64) - 1, second.astype(np.int64) - 1
        wrong = (source < 0) | (source >= rows) | (target < 0) | (target >= rows)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise _unreadable(path, f"entry {source[at] + 1} {target[at] + 1} is outside 1 to {rows}")
        values = more[0] if more else np.ones(entries)
    if symmetry == "general":
        return source, target, values, rows, None
    source, target = np.maximum(source, target), np.minimum(source, target)  # whichever half is written
    if form == "coordinate" and field != "pattern":
        _refuse_both_halves(path, source, target, rows)
    return source, target, values, rows, False


def _refuse_both_halves(path: Path, source: IntArray, target: IntArray, size: int) -> None:
    """Refuses a symmetric matrix in which a pair stands twice: its weight would count twice."""
    keys, times = np.unique(source * np.int64(size) + target, return_counts=True)
    twice = keys[times > 1]
    if len(twice):
        first, second = divmod(int(twice[0]), size)
        raise GraphError(
            f"{path.name}: the matrix is called symmetric, but {counted(len(twice), 'pair')} of nodes "
            f"{'stands' if len(twice) == 1 else 'stand'} in it more than once, first: {first + 1} {second + 1}; which weight "
            "counts cannot be told: call it general if both halves are written, or keep one entry of each pair"
        )


def _bytes(path: Path) -> bytes:
    """The file's content, which begins as it should."""
    try:
        if path.suffix == ".gz" and not is_gzip(path):
            raise GraphError(f"{path.name}: is not gzip data although its name ends in .gz; rename it or compress it")
        data = read_bytes(path, unpacked_limit() // _TIMES, settable=True)
    except (OSError, EOFError, zlib.error):
        raise GraphError(f"{path.name}: the file cannot be read, or its gzip data are damaged") from None
    data = data.removeprefix(codecs.BOM_UTF8)
    if data[: len(_BANNER)].lower() != _BANNER.lower():
        raise GraphError(
            f"{path.name}: does not begin with {_BANNER.decode()}, which says how the matrix is written; expected "
            f"{_EXPECTED}, as scipy.io.mmwrite saves it; write a list of edges without such a line as edges.csv"
        )
    return data


def _header(path: Path, data: bytes) -> tuple[int, int, int, str, str, str, bytes]:
    """Rows, columns, entries, form, kind of numbers and symmetry of a matrix, and what stands below the header."""
    file = io.BytesIO(data)
    words = file.readline(_LONGEST).decode("latin-1").lower().split()
    if len(words) != 5 or words[1] != "matrix" or words[2] not in ("coordinate", "array"):
        raise _unreadable(path, "the first line must be %%MatrixMarket matrix, coordinate or array, numbers, symmetry")
    line = file.readline(_LONGEST)
    while line.startswith(b"%") or (line and not line.strip()):
        line = file.readline(_LONGEST)
    sizes = line.decode("latin-1").split()
    if len(sizes) != (3 if words[2] == "coordinate" else 2) or not all(map(_SIZE.fullmatch, sizes)):
        raise _unreadable(
            path, "the first line that is no comment must say how many rows, columns and entries there are"
        )
    rows, columns, *entries = map(int, sizes)
    return rows, columns, entries[0] if entries else rows * columns, words[2], words[3], words[4], file.read()


def _numbers(path: Path, body: bytes, count: int, whole: int, width: int = 1) -> list[npt.NDArray[Any]]:
    """The columns of numbers below the header, the first of them whole; scipy's reader crashes on damaged lines."""
    if _has_long_line(body):  # whose fields pandas would all read
        raise _unreadable(path, f"a line of more than {_LONGEST:,} characters")
    if not body.strip():
        frame = pd.DataFrame({i: np.zeros(0) for i in range(width + 1)})
    else:
        kinds: dict[Any, Any] = {i: np.int64 if i < whole else np.float64 for i in range(width)}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                frame = pd.read_csv(
                    io.BytesIO(body),
                    sep=r"\s+",
                    header=None,
                    names=list(range(width + 1)),
                    index_col=False,
                    dtype=kinds | {width: str},
                    keep_default_na=False,
                    na_values=[""],
                    quoting=csv.QUOTE_NONE,
                    low_memory=False,
                    encoding="latin-1",
                )
        except (ValueError, OverflowError, pd.errors.ParserError, pd.errors.ParserWarning) as e:
            raise _unreadable(path, (str(e).strip().splitlines() or ["no numbers"])[0].rstrip(".")) from None
    if frame[width].notna().any():
        raise _unreadable(
            path, f"line {int(np.argmax(frame[width].notna())) + 1} of the entries has more than {width} fields"
        )
    if len(frame) != count:
        raise _unreadable(path, f"{len(frame):,} entries where the header says {count:,}; it may be cut off")
    if frame[list(range(width))].isna().to_numpy().any():
        raise _unreadable(path, "some values are no numbers")
    return [frame[i].to_numpy() for i in range(width)]


def _has_long_line(body: bytes) -> bool:
    """Whether a line is longer than `_LONGEST`."""
    at = 0
    while len(body) - at > _LONGEST:
        end = body.rfind(b"\n", at, at + _LONGEST + 1)
        if end < 0:
            return True
        at = end + 1
    return False


def _unreadable(path: Path, why: str) -> GraphError:
    """The error about a damaged file."""
    return GraphError(f"{path.name}: cannot be read as Matrix Market ({why}); save it again by scipy.io.mmwrite")


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
