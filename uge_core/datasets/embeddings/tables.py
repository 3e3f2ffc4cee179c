"""Tables, text or Parquet: an id and d numbers a row, in any order.

The ids are the column whose cells are the ids of all nodes; a first column without a name that counts is pandas' index
and no number of the embedding. Where no column fits, as ids are missing or unknown, they are the first column of a text,
under a header or not. The first line is a row where it starts with
a node's id and holds a number, or where all but its first cell are numbers that do not just count
(pandas heads unnamed columns 0, 1, 2 and on). In Parquet, whose columns have names, the ids are the column called id,
node, node_id or user_id, else the first one if it holds text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.datasets.embeddings.base import IDS, MOST_DIMENSIONS, Format, Vectors
from uge_core.datasets.evidence import is_index
from uge_core.datasets.parquet import read_columns
from uge_core.datasets.tables import as_numbers, counted, first_rows, is_number, read_table
from uge_core.errors import EmbeddingError

_FEW = 50


def _read_text(path: Path, ids: Collection[str]) -> Vectors:
    sep, rows = first_rows(path)
    cells, known = rows[0], frozenset(ids)
    _check_width(path, len(cells) - 1)
    headless = _is_row(cells, known)
    below = rows if headless else rows[1:]
    fit = [i for i in range(len(cells)) if below and all(i < len(row) and row[i] in known for row in below)]
    if headless:
        names = ["id", *(str(i) for i in range(1, len(cells)))]
        table = read_table(path, sep=sep, names=names, text=[names[i] for i in {0, *fit}], quoted=True, comments=True)
    else:
        table = read_table(path, sep=sep, text=[cells[i] for i in {0, *fit}], comments=True)
    frame = table.frame
    names = [str(n) for n in frame.columns]
    index = not headless and is_index(table, names[0])
    own, out = _whose(path, {names[i]: frame.iloc[:, i] for i in fit}, known, names[0], index)
    columns: Mapping[str, pd.Series] = {n: frame.iloc[:, i] for i, n in enumerate(names) if n not in (own, *out)}
    lines = frame.index
    return Vectors(_matrix(path, columns, lambda row: f"line {lines[row]}"), None if own is None else frame[own])


def _whose(
    path: Path, fit: Mapping[str, pd.Series], ids: Collection[str], first: str, index: bool
) -> tuple[str | None, list[str]]:
    """The column that says whose a row is, and those that are no numbers of the embedding either.

    Args:
        path: the file.
        fit: the columns whose first cells are ids of nodes, as text.
        ids: of the nodes.
        first: the first column, which holds the ids where no column fits.
        index: it has no name and counts, as pandas writes its index.

    Returns:
        The column, None where a row is known by its number alone, and the others.

    Raises:
        EmbeddingError: two columns hold the ids of all nodes, in different orders.
    """
    full = [n for n, cells in fit.items() if cells.is_unique and len(set(cells) & set(ids)) == len(ids)]
    named = [n for n in full if not (index and n == first)]
    other = next((n for n in named[1:] if not (fit[n] == fit[named[0]]).all()), None)
    if other is not None:
        raise EmbeddingError(
            f"{path.name}: columns {named[0]!r} and {other!r} both hold the ids of all nodes, in different orders, so that "
            "each would give people other vectors; leave out the one that numbers rows"
        )
    if named:
        return named[0], [*named[1:], *([first] if index else [])]
    return (None, [first]) if index and full else (first, [])


def _is_row(cells: Sequence[str], ids: Collection[str]) -> bool:
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
    known, out = frozenset(ids), list[str]()
    texts = {n: cells.astype("str") for n, cells in columns.items() if cells.dtype.kind != "f"}
    fit = {n: cells for n, cells in texts.items() if cells.head(_FEW).isin(known).all()}
    if fit:
        column, out = _whose(path, fit, known, column or first, False)
    columns = {n: cells for n, cells in columns.items() if n not in out}
    if column is None:
        raise EmbeddingError(
            f"{path.name}: no column of ids; found: {', '.join(list(columns)[:5])}; call it id (an index of pandas "
            "is no column: reset_index)"
        )
    own = columns.pop(column).astype("str")
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
