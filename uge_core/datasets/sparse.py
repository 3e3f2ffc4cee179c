"""Sparse matrices saved by ``scipy.sparse.save_npz``, read without scipy and without pickle."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import IntArray
from uge_core.datasets.bounded import check_archive
from uge_core.datasets.columns import NodeColumns
from uge_core.datasets.edge_columns import ALLOWED, half_stored, usable
from uge_core.datasets.tables import counted
from uge_core.errors import GraphError
from uge_core.graph.graph import Column

_EXPECTED = "a square matrix saved by scipy.sparse.save_npz (csr, csc or coo), row i being the i-th node"
_KEYS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}


def read_sparse(path: Path, directed: bool | None = None) -> tuple[IntArray, IntArray, int, NodeColumns]:
    """The edges of an adjacency matrix, entry (i, j) running from i to j; entries of 0 are none.

    Args:
        path: the file.
        directed: whether edges have a direction; None: where the matrix is not symmetric, nor half of one that is.

    Returns:
        (M,) rows; (M,) columns; the number of nodes; the roles of what the file holds.

    Raises:
        GraphError: no sparse matrix, one that needs pickle, one that contradicts itself, or unusable weights.
    """
    try:
        check_archive(path)
        with np.load(path, allow_pickle=False) as archive:
            arrays = _arrays(path, archive)
    except GraphError:
        raise
    except Exception as e:  # numpy parses headers as Python: damaged ones fail in many ways
        if "allow_pickle" in str(e) and zipfile.is_zipfile(path):
            raise GraphError(
                f"{path.name}: holds Python objects, which are never loaded; expected {_EXPECTED}"
            ) from None
        raise GraphError(f"{path.name}: is not a readable .npz file; expected {_EXPECTED}") from None
    kind, shape, data = arrays["format"], arrays["shape"], arrays["data"]
    source, target = _entries(path, kind, arrays)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise GraphError(f"{path.name}: found shape {tuple(shape.tolist())}; expected {_EXPECTED}")
    n = int(shape[0])
    if data.shape != source.shape or source.shape != target.shape:
        raise GraphError(f"{path.name}: {len(data):,} values for {len(source):,} positions; save the matrix again")
    wrong = (source < 0) | (source >= n) | (target < 0) | (target >= n)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise GraphError(
            f"{path.name}: {int(wrong.sum()):,} entries outside the matrix, first: ({source[first]}, {target[first]}); "
            f"allowed: 0 to {n - 1}"
        )
    source, target, described = edges_of(path, source, target, data, directed)
    return source, target, n, described


def edges_of(
    path: Path, source: IntArray, target: IntArray, data: npt.NDArray[Any], directed: bool | None = None
) -> tuple[IntArray, IntArray, NodeColumns]:
    """The edges of a matrix's entries; those of 0 are none.

    Args:
        path: the file, for messages.
        source: (M,) the row of each entry.
        target: (M,) its column.
        data: (M,) its value.
        directed: as for `read_sparse`.

    Returns:
        (M',) rows; (M',) columns; the roles of what the file holds.

    Raises:
        GraphError: unusable weights.
    """
    source, target, data = source[data != 0], target[data != 0], data[data != 0]
    half = half_stored(path.name, source, target) if directed is None else None
    described = NodeColumns(
        columns=_columns(path, data),
        messages=() if half is None else (half,),
        edge_weights=_weights(path, source, target, data),
        directed=half is None if directed is None else directed,
    )
    return source, target, described


def _arrays(path: Path, archive: Any) -> dict[str, Any]:
    """The members that a sparse matrix has; `format` as text."""
    if "format" not in archive.files:
        raise GraphError(f"{path.name}: holds {', '.join(archive.files[:5]) or 'nothing'}; expected {_EXPECTED}")
    written = archive["format"].item()
    kind = written.decode("ascii", "replace") if isinstance(written, bytes) else str(written)
    if kind not in _KEYS:
        raise GraphError(f"{path.name}: found a matrix in the format {kind!r}; expected {_EXPECTED}")
    needed = ("shape", "data", *_KEYS[kind])
    lacking = [k for k in needed if k not in archive.files]
    if lacking:
        raise GraphError(f"{path.name}: lacks {', '.join(lacking)}; expected {_EXPECTED}")
    arrays = {k: archive[k] for k in needed}
    for key, array in arrays.items():
        kinds = "iufb" if key == "data" else "iu"
        if array.ndim != 1 or array.dtype.kind not in kinds:
            raise GraphError(f"{path.name}: {key} is {array.dtype} of shape {array.shape}; expected {_EXPECTED}")
    return {**arrays, "format": kind}


def _entries(path: Path, kind: str, arrays: dict[str, Any]) -> tuple[IntArray, IntArray]:
    """Row and column of every entry."""
    if kind == "coo":
        return arrays["row"].astype(np.int64), arrays["col"].astype(np.int64)
    starts, inner = arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int64)
    fits = len(starts) == int(arrays["shape"][0]) + 1 and starts[0] == 0 and starts[-1] == len(inner)
    if not fits or (np.diff(starts) < 0).any():
        raise GraphError(f"{path.name}: indptr contradicts the other arrays; save the matrix again")
    outer = np.repeat(np.arange(len(starts) - 1, dtype=np.int64), np.diff(starts))
    return (outer, inner) if kind == "csr" else (inner, outer)


def _columns(path: Path, data: npt.NDArray[Any]) -> tuple[Column, ...]:
    """The roles of rows, columns and values."""
    detail = "the same for every edge" if _same(data) else ""
    ends = (Column(path.name, "row", "source"), Column(path.name, "column", "target"))
    return (*ends, Column(path.name, "data", "weight", detail))


def _weights(path: Path, source: IntArray, target: IntArray, data: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    """The values of the matrix where they differ."""
    values = data.astype(np.float64)
    wrong = ~usable(values)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise GraphError(
            f"{path.name}: {counted(int(wrong.sum()), 'value')} that cannot be a weight, first: {data[first]} at "
            f"({source[first]}, {target[first]}); {ALLOWED}; correct them, or save the matrix with 1 for every edge"
        )
    return None if _same(data) else values


def _same(data: npt.NDArray[Any]) -> bool:
    """Whether all values are the same."""
    return not len(data) or bool(data[0] and (data == data[0]).all())
