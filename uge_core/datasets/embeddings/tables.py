"""Tables, text or Parquet: an id and d numbers a row, in any order.

In text the ids are the first column, under a header or not; the first line is a row where it starts with
a node's id and holds a number, or where all but its first cell are numbers that do not just count
(pandas heads unnamed columns 0, 1, 2 and on). In Parquet, whose columns have names, the ids are the column called id,
node, node_id or user_id, else the first one if it holds text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.datasets.embeddings.base import IDS, MOST_DIMENSIONS, Format, Vectors
from uge_core.datasets.parquet import read_columns
from uge_core.datasets.tables import as_numbers, counted, first_cells, is_number, read_table
from uge_core.errors import EmbeddingError


def _read_text(path: Path, ids: Collection[str]) -> Vectors:
    sep, cells = first_cells(path)
    _check_width(path, len(cells) - 1)
    if _is_row(cells, ids):
        names = ["id", *(str(i) for i in range(1, len(cells)))]
        table = read_table(path, sep=sep, names=names, text=("id",), quoted=True)
    else:
        table = read_table(path, sep=sep, text=cells[:1])
    frame = table.frame
    columns: Mapping[str, pd.Series] = {str(n): frame.iloc[:, i] for i, n in enumerate(frame.columns) if i}
    lines = frame.index
    return Vectors(_matrix(path, columns, lambda row: f"line {lines[row]}"), frame.iloc[:, 0])


def _is_row(cells: list[str], ids: Collection[str]) -> bool:
    """Whether a table's first line is a row, no header."""
    first, rest = cells[0], cells[1:]
    if first in ids and any(map(is_number, rest)):
        return True
    counting = any(rest == [str(i) for i in range(start, start + len(rest))] for start in (0, 1))
    return all(map(is_number, rest)) and not counting and first.lower() not in ("", *IDS)


def _read_parquet(path: Path, ids: Collection[str]) -> Vectors:
    columns = read_columns(path, text=IDS)
    by_lower = {name.lower(): name for name in reversed(columns)}
    first = next(iter(columns))
    column = next((by_lower[n] for n in IDS if n in by_lower), None if columns[first].dtype.kind in "iuf" else first)
    if column is None:
        raise EmbeddingError(
            f"{path.name}: no column of ids; found: {', '.join(list(columns)[:5])}; call it id (an index of pandas "
            "is no column: reset_index)"
        )
    own = columns.pop(column)
    _check_width(path, len(columns))
    return Vectors(_matrix(path, columns, lambda row: f"row {row + 1}"), own)


def _check_width(path: Path, dimensions: int) -> None:
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise EmbeddingError(
            f"{path.name}: found {dimensions:,} columns beside the ids; allowed: 1 to {MOST_DIMENSIONS:,} of numbers"
        )


def _matrix(path: Path, columns: Mapping[str, pd.Series], where: Any) -> npt.NDArray[Any]:
    """(M, d) the numbers of some columns; `where` names a row in a message."""
    rows = len(next(iter(columns.values())))
    out = np.empty((rows, len(columns)))
    for i, (name, cells) in enumerate(columns.items()):
        if cells.dtype.kind in "iuf":
            out[:, i] = cells.to_numpy()
            wrong = cells.isna().to_numpy()
        else:
            out[:, i] = as_numbers(cells)
            wrong = np.isnan(out[:, i]) & ~_endless(cells)
        if wrong.any():
            row = int(np.argmax(wrong))
            cell = "nothing" if pd.isna(cells.iloc[row]) else repr(str(cells.iloc[row]))
            raise EmbeddingError(
                f"{path.name}: {counted(int(wrong.sum()), 'cell')} of column {name!r} without a number, first: "
                f"{cell} in {where(row)}; every row needs {len(columns)} numbers"
            )
    return out


def _endless(cells: pd.Series) -> npt.NDArray[np.bool_]:
    """Where a cell says NaN or infinity, which is refused with the node's id."""
    bare = cells.astype("str").str.strip().str.lower().str.lstrip("+-")
    return np.asarray(bare.isin(["nan", "inf", "infinity"]), dtype=bool)


FORMATS = (
    Format("table", (".csv", ".tsv"), "by id, the first column, with or without a header", _read_text, zipped=True),
    Format(
        "Parquet",
        (".parquet",),
        "by id, the column `id`, `node`, `node_id` or `user_id`, else the first of text",
        _read_parquet,
    ),
)
