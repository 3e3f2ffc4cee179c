"""Parquet tables as text, like every other table: 7 stays "7", and a null is an empty cell.

Numbers that are whole throughout are written without a point (pandas turns whole numbers with a
gap into floats). pyarrow is loaded here and only when such a file is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from uge_core.datasets.bounded import too_large, unpacked_limit
from uge_core.datasets.evidence import ENDS, IDS
from uge_core.datasets.parquet_pages import Packed, check_pages
from uge_core.datasets.tables import MOST_COLUMNS, Table, as_numbers
from uge_core.errors import GraphError

_OLDEST = 15
"""Before pyarrow 14.0.1 a file could carry a pickle that was loaded."""
_EXACT = 2.0**53
_PART = 8
"""The part of the limit that a piece of a file may take whose cells are counted while it is read."""
_UNNAMED = "__index_level_"
_AS_PANDAS = "Unnamed: 0"


def read_parquet(path: Path) -> Table:
    """A table.

    Raises:
        GraphError: pyarrow is missing or old, the file is no Parquet, or a column is no plain value.
    """
    frame = pd.DataFrame(read_columns(path, index=True), copy=False)
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    return Table(path.name, frame)


def read_columns(path: Path, *, text: Collection[str] | None = None, index: bool = False) -> dict[str, pd.Series]:
    """The columns by name.

    Args:
        path: the file.
        text: columns to read as text (lower case); numbers stay numbers in the others. None: all are text.
        index: whether pandas' index is a first column, called as pandas calls one without a name. It is left out where
            it has no name and counts the rows, some of them where a column is called like an id, or beside ends of edges.

    Raises:
        GraphError: pyarrow is missing or old, the file is no Parquet, or a column is no plain value.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise GraphError(f"{path.name}: reading Parquet needs pyarrow; install it, or write the table as CSV") from None
    if int(pa.__version__.split(".")[0]) < _OLDEST:
        raise GraphError(f"{path.name}: reading Parquet needs pyarrow {_OLDEST} or newer, found {pa.__version__}")
    try:
        with pq.ParquetFile(path) as file:
            meta, schema = file.metadata, file.schema_arrow
            names = [str(n).strip() for n in schema.names]
            if len(names) > MOST_COLUMNS:
                raise GraphError(
                    f"{path.name}: has {len(names):,} columns; a table has at most {MOST_COLUMNS:,}, keep those you need"
                )
            twice = [n for n, count in Counter(names).items() if count > 1]
            if twice:
                raise GraphError(f"{path.name}: column {twice[0]!r} stands twice; rename one of the two")
            nested = [n for n, t in zip(names, schema.types, strict=True) if pa.types.is_nested(t)]
            if nested:
                raise GraphError(
                    f"{path.name}: column {nested[0]!r} holds lists or records; one plain value per cell is needed"
                )
            packed = check_pages(path, meta)
            _count_prefixed(path, file, packed)
        with pq.ParquetFile(path, metadata=meta, read_dictionary=_shared(path, meta, packed)) as file:
            table = file.read()
        sizes = [_size(column) for column in table.columns]
        rows, left = table.num_rows, unpacked_limit() - sum(sizes)
        if left < 0:
            raise too_large(path)
        cells = []
        for name, kind, size in zip(names, schema.types, sizes, strict=True):
            column = table.column(0)
            table = table.remove_column(0)
            as_text = text is None or name.lower() in text or not _is_number(kind)
            if as_text:
                column = _as_text(column)
                left -= max(column.nbytes - size, 0)
                if left < 0:
                    raise too_large(path)
            cells.append(pd.Series(column.to_pandas(), dtype="str") if as_text else column.to_pandas())
    except (OSError, ValueError, NotImplementedError, pa.ArrowException) as e:
        reason = (str(e).strip().splitlines() or ["no reason given"])[0].rstrip(".")
        raise GraphError(f"{path.name}: cannot be read as Parquet ({reason}); write it again, or as CSV") from None
    unnamed = [i for i, n in enumerate(names) if n.startswith(_UNNAMED)]
    kept = {n: cells[i] for i, n in enumerate(names) if i not in unnamed}
    if not kept or not rows:
        raise GraphError(f"{path.name}: there are no rows; one row per node or edge is needed")
    if not index:
        return kept
    if len(unnamed) > 1:
        raise GraphError(
            f"{path.name}: its index has {len(unnamed)} levels without names; call reset_index() before it is written"
        )
    first = _named_range(schema, rows)
    if unnamed and not _is_left_over(cells[unnamed[0]], kept):
        first = {_AS_PANDAS: cells[unnamed[0]]}
    return {n: c for n, c in first.items() if n not in kept} | kept


def _count_prefixed(path: Path, file: Any, packed: Packed) -> None:
    """Reads columns in which a cell may repeat the one above a few rows at a time, and refuses too much of them."""
    left = unpacked_limit()
    for name, size in packed.prefixed.items():
        for batch in file.iter_batches(max(left // (_PART * max(size, 1)), 1), columns=[name]):
            left -= batch.nbytes
            if left < 0:
                raise too_large(path)


def _shared(path: Path, metadata: Any, packed: Packed) -> list[str]:
    """The columns to read as dictionaries, as their cells may be too much: none where the longest text rules that out."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = sorted({name for names in packed.shared.values() for name in names})
    size = packed.size
    with pq.ParquetFile(path, metadata=metadata, read_dictionary=columns) as file:
        for group, cells in packed.shared.items():
            if None in cells.values():
                return columns
            batch = next(file.iter_batches(1, row_groups=[group], columns=list(cells)))
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                size += (pc.max(pc.binary_length(column.dictionary)).as_py() or 0) * (cells[name] or 0)
            if size > unpacked_limit():
                return columns
    return []


def _size(column: Any) -> int:
    """The bytes of a column's cells once each of them stands for itself."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    if not _is_texts(column.type.value_type):
        return len(column) * 8
    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    return 8 * len(column) + sum(pc.sum(pc.cast(length, pa.int64())).as_py() or 0 for length in lengths)


def _is_texts(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _is_left_over(cells: pd.Series, columns: Mapping[str, pd.Series]) -> bool:
    """Whether an index is what is left of row numbers: where rows were filtered, or between edges in any order."""
    lower = {name.lower() for name in columns}
    if any(a in lower and b in lower for a, b in ENDS):
        return True
    return not lower.isdisjoint(IDS) and bool((np.diff(as_numbers(cells)) > 0).all())


def _named_range(schema: Any, rows: int) -> dict[str, pd.Series]:
    """An index that counts and has a name, of which pandas keeps the first number and the step alone."""
    try:
        held = (schema.pandas_metadata or {}).get("index_columns", [])
        ranges = [i for i in held if isinstance(i, dict) and i.get("kind") == "range" and i.get("name")]
        counts = {str(i["name"]).strip(): range(i["start"], i["stop"], i["step"]) for i in ranges}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):  # whatever else stands there
        return {}
    return {n: pd.Series(list(map(str, c)), dtype="str") for n, c in counts.items() if len(c) == rows}


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _as_text(column: Any) -> Any:
    """One column's cells as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), None, column)
        known = column.drop_null()
        whole = pc.and_(pc.equal(known, pc.round(known)), pc.less(pc.abs(known), _EXACT))
        if len(known) and pc.all(whole).as_py():
            column = column.cast(pa.int64())
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        column = column.cast(pa.binary()).cast(pa.string())
    text = column.cast(pa.string())
    return pc.if_else(pc.equal(text, ""), None, text)
