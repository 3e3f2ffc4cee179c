"""Tables, text or Parquet: an id and d numbers a row, in any order.

The ids are the column whose cells are the nodes' ids, wherever it stands; see `whose`. A first column without a name
that counts is pandas' or R's index and no number of the embedding: where no other column holds ids, rows are known by
their number, and where it does not count all nodes, the file is refused.

The first line of a text is a row where it starts with a node's id and holds a number, or where all but its first cell
are numbers that do not just count (pandas heads unnamed columns 0, 1, 2 and on).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.datasets.bounded import open_bytes
from uge_core.datasets.embeddings.base import MOST_DIMENSIONS, Format, Vectors
from uge_core.datasets.embeddings.whose import APART, called_ids, column_of_ids, counts, may_tell_apart
from uge_core.datasets.evidence import MOST, is_index
from uge_core.datasets.parquet import read_columns
from uge_core.datasets.tables import Table, as_numbers, counted, first_rows, is_number, read_table
from uge_core.errors import EmbeddingError
from uge_core.graph.graph import AttributedGraph

_FEW = 50
_LONGEST = 2**20
_INDEX = ("index", "level_0")
"""What pandas' reset_index calls row numbers."""
_MARKS = ("#", "%", "//")
"""What begins a comment."""
_HEADS = ("id", "node", "node_id", "user_id")
_DECIMAL = r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?"
_THOUSANDS = r"[+-]?\d{1,3}(?:,\d{3})+"


def _read_text(path: Path, graph: AttributedGraph) -> Vectors:
    known = frozenset(graph.ids(slice(None)))
    _refuse_word2vec(path)
    comments = not _starts_with_id(path, known)
    sep, rows = first_rows(path, comments=comments)
    cells = rows[0]
    _check_width(path, len(cells) - 1)
    headless = _is_row(cells, known)
    below = rows if headless else rows[1:]
    names = [f"{i + 1}" for i in range(len(cells))] if headless else cells
    columns = {
        n: pd.Series([row[i] if i < len(row) else "" for row in below], dtype="str") for i, n in enumerate(names)
    }
    _refuse_decimal_commas(path, columns)
    numbers = frozenset(as_numbers(pd.Series(list(known), dtype="str")).tolist())
    called = [] if headless else [n for n in names if called_ids(n, graph)]
    tried = [n for i, n in enumerate(names) if i == 0 or n in called or _may_be_ids(columns[n], known, numbers)]
    table = read_table(
        path,
        sep=sep,
        names=names if headless else None,
        text=tried,
        quoted=True if headless else None,
        comments=comments,
    )
    frame = table.frame
    names = [str(n) for n in frame.columns]
    texts = {n: frame[n].astype("str") for n in names if n in tried}
    ids, out = _ids(path, graph, texts, called, _index(table, graph, named=not headless), names)
    if ids is not None and not headless and _count_up(cells) and cells[0] in known - set(ids):
        raise EmbeddingError(
            f"{path.name}: line 1 ({', '.join(cells[:4])}) may be a header as pandas writes it, or the row of node "
            f"{cells[0]!r}; write a header with names above it or in its place, such as id, d0, d1"
        )
    kept = {n: frame[n] for n in names if n not in out}
    lines = frame.index
    return Vectors(_matrix(path, kept, lambda row: f"line {lines[row]}"), ids, tuple(kept))


def _read_parquet(path: Path, graph: AttributedGraph) -> Vectors:
    called = [c.name for c in graph.columns if c.role == "id"]
    columns = read_columns(path, text=["id", "node", "node_id", "user_id", *map(str.lower, called)])
    known = frozenset(graph.ids(slice(None)))
    numbers = frozenset(as_numbers(pd.Series(list(known), dtype="str")).tolist())
    called = [n for n in columns if called_ids(n, graph)]
    _check_width(path, len(columns) - 1)
    texts = {
        n: cells
        for i, (n, cells) in enumerate((n, _as_text(c)) for n, c in columns.items())
        if cells is not None and (i == 0 or n in called or _may_be_ids(cells.head(_FEW), known, numbers))
    }
    first = next(iter(columns))
    frame = pd.DataFrame({first: texts[first]} if first in texts else {first: columns[first]})
    ids, out = _ids(path, graph, texts, called, _index(Table(path.name, frame), graph), list(columns))
    kept = {n: cells for n, cells in columns.items() if n not in out}
    return Vectors(_matrix(path, kept, lambda row: f"row {row + 1}"), ids, tuple(kept))


def _as_text(cells: pd.Series) -> pd.Series | None:
    """Cells as text, None where they are numbers that are not whole."""
    if cells.dtype.kind == "f":
        if not (cells.dropna() == np.rint(cells.dropna())).all():
            return None
        cells = cells.astype("Int64")
    return cells.astype("str").where(cells.notna())


def _ids(
    path: Path,
    graph: AttributedGraph,
    texts: Mapping[str, pd.Series],
    called: Sequence[str],
    index: str | None,
    names: Sequence[str],
) -> tuple[pd.Series | None, list[str]]:
    """The id of each row, None where a row is known by its number, and the columns that are no numbers.

    Args:
        path: the file.
        graph: the graph.
        texts: the columns that may be ids, as text.
        called: those whose names say that they are.
        index: the first column where it counts the rows, as pandas and R write them, else None.
        names: all columns.

    Raises:
        EmbeddingError: no column holds ids, or two may.
    """
    known = set(graph.ids(slice(None)))
    turned = [n for n in names if n in known]
    first = next(n for n in [*names, names[0]] if n != index)
    # Numbers that count are ranks as well; where ids are expected they are ids.
    tried = {n: c for n, c in texts.items() if n != index and (n in called or n == first or not counts(c))}
    column, same = column_of_ids(path, tried, graph, called)
    if column is None:
        column = next((n for n, c in texts.items() if np.isnan(as_numbers(c)).all() and may_tell_apart(c)), None)
    if 2 * len(turned) > max(len(known), 2) and (column is None or not texts[column].isin(known).any()):
        raise EmbeddingError(
            f"{path.name}: the header holds ids of nodes ({', '.join(map(repr, turned[:3]))}), a row per node is needed; "
            "transpose it"
        )
    if column is not None:
        return texts[column], [column, *same, *([] if index is None else [index])]
    if index is not None and set(texts[index]) == known:
        return None, [index]
    cells = texts.get(names[0])
    if index is None and cells is not None and _may_be_unknown_ids(cells, known):
        return cells, [names[0]]
    rows = "the first column numbers the rows, and " if index is not None else ""
    raise EmbeddingError(
        f"{path.name}: {rows}no column holds the ids of the nodes; found: {', '.join(list(names)[:5])}; write the ids in "
        "the first column, called id (an index of pandas: reset_index), or save the numbers alone as .npy with a row per "
        "node in the graph's order"
    )


def _may_be_unknown_ids(cells: pd.Series, known: set[str]) -> bool:
    """Whether a first column may be ids although most are no node: whole numbers, or some that are."""
    numbers = as_numbers(cells)
    return bool(cells.isin(known).mean() > MOST or (~np.isnan(numbers) & (numbers == np.rint(numbers))).all())


def _index(table: Table, graph: AttributedGraph, *, named: bool = True) -> str | None:
    """The first column where it counts the rows and is called as pandas or R do, else None."""
    first = str(table.frame.columns[0])
    if not named or any(c.role == "id" and c.name == first for c in graph.columns):
        return None
    numbers = as_numbers(table.frame.iloc[:, 0]) if first.lower() in _INDEX else np.empty(0)
    counts = any((numbers == np.arange(start, start + len(numbers))).all() for start in (0, 1))
    return first if is_index(table, first) or (len(numbers) and counts) else None


def _may_be_ids(cells: pd.Series, known: frozenset[str], numbers: frozenset[float]) -> bool:
    """Whether the first cells of a column are texts, or mostly ids, as text or as numbers."""
    own = as_numbers(cells)
    if np.isnan(own).all():
        return len(cells) > 0
    hits = [cell in known or number in numbers for cell, number in zip(cells, own.tolist(), strict=True)]
    return bool(np.mean(hits) > MOST and cells.nunique() >= APART * len(cells))


def _refuse_word2vec(path: Path) -> None:
    """Refuses a table whose first line is the count and length of word2vec's text form."""
    first, second = _first_lines(path, 2)
    counts = re.split(r"[\s,;]+", first)
    if len(counts) == 2 and all(c.isascii() and c.isdigit() for c in counts):
        blank = not set(",;") & set(first)
        if len(re.split(r"\s+" if blank else r"[,;]", second)) == int(counts[1]) + 1 and int(counts[1]) > 1:
            todo = "rename the file so that it ends in .txt or .vec" if blank else "remove line 1"
            raise EmbeddingError(
                f"{path.name}: line 1 ({first}) says how many vectors follow and how long each is, as in word2vec's text "
                f"form; {todo}"
            )
    if not set(",;\t") & set(first + second) and is_number(second.split(" ")[-1]):
        raise EmbeddingError(
            f"{path.name}: blanks separate its cells; separate them by commas, or put a line with the count of vectors and "
            "the length of each above it, such as 2000 16, and rename the file so that it ends in .txt"
        )


def _starts_with_id(path: Path, known: frozenset[str]) -> bool:
    """Whether the first line is no comment, as what it begins with is the id of a node."""
    (line,) = _first_lines(path, 1)
    return line.startswith(_MARKS) and re.split("[,;\t]", line)[0].strip() in known


def _first_lines(path: Path, count: int) -> list[str]:
    """The first lines, as far as they can be read; what is wrong with the file is said when its rows are."""
    try:
        with open_bytes(path) as file:
            lines = [file.readline(_LONGEST) for _ in range(count)]
    except (OSError, EOFError, zlib.error):
        lines = [b""] * count
    return [line.decode("utf-8-sig", "replace").strip() for line in lines]


def _refuse_decimal_commas(path: Path, columns: Mapping[str, pd.Series]) -> None:
    for name, cells in columns.items():
        if len(cells) and cells.str.fullmatch(_DECIMAL).all() and not cells.str.fullmatch(_THOUSANDS).all():
            raise EmbeddingError(
                f"{path.name}: numbers have decimal commas, first: {cells.iloc[0]!r} of column {name!r}; write them with "
                "points (R: write.csv in place of write.csv2)"
            )


def _is_row(cells: Sequence[str], ids: frozenset[str]) -> bool:
    """Whether a table's first line is a row, no header; one that may be either is taken for a header."""
    if _count_up(cells):
        return False
    first, rest = cells[0], cells[1:]
    if first in ids and any(map(is_number, rest)):
        return True
    names = [c for c in cells if not is_number(c)]
    if len(names) == 1 and names[0] in ids and len(cells) > 1:
        return True
    return all(map(is_number, rest)) and not _count_up(rest) and first.lower() not in ("", *_HEADS)


def _count_up(cells: Sequence[str]) -> bool:
    """Whether cells are 0, 1, 2 and on, or 1, 2, 3: what pandas calls columns, or a row."""
    return any(list(cells) == [str(i) for i in range(start, start + len(cells))] for start in (0, 1))


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
            lists = str(cells.iloc[row]).startswith(("[", "("))
            todo = (
                "write a column for each number"
                if lists
                else "take the column out"
                if wrong.all()
                else f"every row needs {counted(len(columns), 'number')}"
            )
            raise EmbeddingError(
                f"{path.name}: {counted(int(wrong.sum()), 'cell')} of column {name!r} without a number, first: "
                f"{cell} in {where(row)}; {todo}"
            )
    return out


def _endless(cells: pd.Series) -> npt.NDArray[np.bool_]:
    """Where a cell says NaN or infinity, which is refused with the node's id."""
    bare = cells.astype("str").str.strip().str.lower().str.lstrip("+-")
    return np.asarray(bare.isin(["nan", "inf", "infinity"]), dtype=bool)


FORMATS = (
    Format(
        "table",
        (".csv", ".tsv"),
        "by id, the column that holds the ids, with or without a header",
        _read_text,
        zipped=True,
    ),
    Format("Parquet", (".parquet",), "by id, the column that holds the ids", _read_parquet),
)
