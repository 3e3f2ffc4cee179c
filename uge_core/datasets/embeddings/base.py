"""What every format of embedding files has in common: rows of numbers, and how they find their nodes.

A file either has an id beside each row, and its rows may then stand in any order, or it has none and
row i is the i-th node of the graph. Nothing is guessed: a row too many or too few is refused with the
first ids on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import FloatArray, IntArray
from uge_core.datasets.embeddings.dimensions import refuse_others
from uge_core.datasets.ids import near_ids
from uge_core.datasets.tables import as_numbers, counted
from uge_core.errors import EmbeddingError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import LARGEST

MOST_DIMENSIONS = 4096
"""As for our own; a wider table is rather a transposed one, or no embedding."""
ROWS = ("order", "id")
"""How rows without ids find their nodes."""
_SHOWN = 3
_FORMULA = "=+-@\t\r"
_PIECE = 2**22


@dataclass(frozen=True, eq=False)
class Vectors:
    """What a file holds.

    Attributes:
        values: (M, d) numbers of any kind.
        ids: (M,) as text, missing where a row has none; None where row i is the i-th node.
        names: of the d columns, None where they have none.
    """

    values: npt.NDArray[Any]
    ids: pd.Series | None = None
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Format:
    """One kind of file.

    Attributes:
        name: as people call it.
        endings: of such files' names, without `.gz`.
        rows: how its rows find their nodes, in words.
        read: reads a file of a graph's embedding.
        zipped: `.gz` may follow.
    """

    name: str
    endings: tuple[str, ...]
    rows: str
    read: Callable[[Path, AttributedGraph], Vectors]
    zipped: bool = False


def place(
    path: Path,
    vectors: Vectors,
    graph: AttributedGraph,
    *,
    drop_unknown: bool,
    rows: str | None,
    on_note: Callable[[str], None] | None,
) -> FloatArray:
    """The embedding in the graph's order.

    Args:
        path: the file, for messages.
        vectors: what it holds.
        graph: the graph.
        drop_unknown: leave out rows whose id the graph does not have, and say so; else they are refused.
        rows: "order" or "id" of a file without ids, or None.
        on_note: told what was left out.

    Returns:
        (N, d) float32.

    Raises:
        EmbeddingError: the rows do not fit the nodes, or a number cannot be used.
    """
    values = vectors.values
    check_shape(path, values.shape, values.dtype)
    if vectors.ids is None:
        if len(values) != graph.num_nodes:
            turned = "; it has a column for each, so transpose it" if values.shape[1] == graph.num_nodes else ""
            sides = f" ({graph.num_users:,} users, then {graph.num_items:,} items)" if graph.bipartite else ""
            raise EmbeddingError(
                f"{path.name}: {counted(len(values), 'row')}, but {graph.name} has {graph.num_nodes:,} "
                f"nodes{sides}{turned}; row i "
                "must be the i-th node, or save the ids beside the numbers (CSV, Parquet, word2vec text or npz)"
            )
        refuse_others(path, values, vectors.names, graph, with_ids=False)
        by_id = _by_id(path, graph, rows)
        numbers = _numbers(path, values, lambda row: str(row) if by_id is not None else graph.ids([row])[0])
        return numbers if by_id is None else np.ascontiguousarray(numbers[by_id])
    if rows is not None:
        raise EmbeddingError(f"{path.name}: its rows have ids, which say whose they are; leave --rows out")
    refuse_others(path, values, vectors.names, graph, with_ids=True)
    ids, known = vectors.ids.reset_index(drop=True), pd.Index(graph.ids(slice(None)), dtype=object)
    _check_ids(path, ids, known, graph)
    at = known.get_indexer(pd.Index(_unquoted(ids, known), dtype=object))
    twice = pd.Series(at[at >= 0]).duplicated()
    if ids.duplicated().any() or twice.any():
        again = ids[ids.duplicated()] if ids.duplicated().any() else ids[at >= 0].reset_index(drop=True)[twice]
        raise EmbeddingError(
            f"{path.name}: {counted(len(again), 'row')} with an id that stands further up, first: {_some(again)}; "
            "keep one row of each"
        )
    missing = np.ones(len(known), dtype=bool)
    missing[at[at >= 0]] = False
    if missing.any() or ((at < 0).any() and not drop_unknown):
        raise EmbeddingError(_mismatch(path, graph, known[missing], ids[at < 0], len(ids)))
    if (at < 0).any():
        if on_note:
            on_note(
                f"{path.name}: {counted(int((at < 0).sum()), 'row')} left out, as {graph.name} has no such node, "
                f"first: {_some(ids[at < 0])}"
            )
        values, ids, at = values[at >= 0], ids[at >= 0].reset_index(drop=True), at[at >= 0]
    numbers = _numbers(path, values, lambda row: str(ids.iloc[row]))
    out = np.empty_like(numbers)
    out[at] = numbers
    return out


def _by_id(path: Path, graph: AttributedGraph, rows: str | None) -> IntArray | None:
    """(N,) the row of each node where row i is the node whose id is the i-th number, None where it is the i-th node.

    Raises:
        EmbeddingError: both may be meant, or ids do not count.
    """
    counts = _counting(graph)
    if rows == "id" and counts is None:
        raise EmbeddingError(
            f"{path.name}: --rows id needs nodes whose ids are 0 to {graph.num_nodes - 1:,} or 1 to {graph.num_nodes:,}, "
            f"and those of {graph.name} are not; save the ids beside the numbers, or say --rows order"
        )
    if counts is None or (counts == np.arange(len(counts))).all():
        return None
    if rows is None:
        first = int(np.argmax(counts != np.arange(len(counts))))
        by_number, by_row = graph.ids([int(np.argmax(counts == first)), first])
        raise EmbeddingError(
            f"{path.name}: has no ids, and those of {graph.name} count its nodes in another order: row {first} of the "
            f"file may be node {by_number!r}, as where a tool numbers nodes by id, or node {by_row!r}, which stands in "
            f"row {first} of the table; say which with --rows id or --rows order"
        )
    return counts if rows == "id" else None


def _counting(graph: AttributedGraph) -> IntArray | None:
    """(N,) the place of each node by the number in its id, None where ids do not count from 0 or 1, side by side."""
    ids = pd.Series(graph.ids(slice(None)), dtype="str")
    sides = [slice(0, graph.num_users), slice(graph.num_users, None)] if graph.bipartite else []
    places = _places(ids)
    if places is None and sides:
        parts = [_places(ids[side]) for side in sides]
        if any(part is not None for part in parts):
            starts = (0, graph.num_users or 0)
            filled = [np.arange(len(ids[s])) if p is None else p for s, p in zip(sides, parts, strict=True)]
            places = np.concatenate([start + part for start, part in zip(starts, filled, strict=True)])
    return places


def _places(ids: pd.Series) -> IntArray | None:
    """The numbers in ids less the first one, None where they do not count from 0 or 1, or differ in more than these."""
    parts = ids.str.extract(r"^(.*?)(\d+)$")
    numbers = as_numbers(parts[1])
    first = numbers.min() if len(numbers) else np.nan
    if (
        (parts[0] != parts[0].iloc[0]).any()
        or first not in (0, 1)
        or not (np.sort(numbers) == first + np.arange(len(ids))).all()
    ):
        return None
    return (numbers - first).astype(np.int64)


def check_shape(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuses what is no table of real numbers, before any of it is read.

    Raises:
        EmbeddingError: another number of axes, no or too many columns, or cells that are no real numbers.
    """
    if dtype.hasobject:
        raise EmbeddingError(
            f"{path.name}: holds Python objects, which are never loaded; save it as an array of numbers"
        )
    if dtype.kind not in "fiu":
        raise EmbeddingError(f"{path.name}: holds {dtype}, real numbers are needed; save it as float32")
    if len(shape) != 2:
        raise EmbeddingError(f"{path.name}: found an array of shape {shape}; two axes are needed, a row per node")
    if not 1 <= shape[1] <= MOST_DIMENSIONS:
        raise EmbeddingError(
            f"{path.name}: found {shape[1]:,} columns of numbers; allowed: 1 to {MOST_DIMENSIONS:,}, a row per node"
        )


def _numbers(path: Path, values: npt.NDArray[Any], named: Callable[[int], str]) -> FloatArray:
    """The values as float32, refused with the first node whose numbers cannot be used."""
    out = np.empty(values.shape, dtype=np.float32)
    step = max(1, _PIECE // values.shape[1])
    endless, large = [], []
    for start in range(0, len(values), step):
        part = np.asarray(values[start : start + step])
        fits = np.abs(part.astype(np.float64)) <= LARGEST
        if not fits.all():
            finite = np.isfinite(part).all(axis=1)
            endless += (start + np.flatnonzero(~finite)).tolist()
            large += (start + np.flatnonzero(finite & ~fits.all(axis=1))).tolist()
            continue
        out[start : start + step] = part
    if endless:
        raise EmbeddingError(
            f"{path.name}: {counted(len(endless), 'row')} with NaN or infinite numbers, first: node "
            f"{named(endless[0])}; mend them first"
        )
    if large:
        raise EmbeddingError(
            f"{path.name}: {counted(len(large), 'row')} with numbers beyond {LARGEST:g}, first: node "
            f"{named(large[0])}; scale all rows down first"
        )
    return out


def _check_ids(path: Path, ids: pd.Series, known: pd.Index, graph: AttributedGraph) -> None:
    if not known.is_unique:
        raise EmbeddingError(
            f"{graph.name} has {counted(int(known.duplicated().sum()), 'id')} that stand twice "
            f"({known[known.duplicated()][0]}), so rows of "
            f"{path.name} cannot be matched by id; save it as .npy in the node table's order"
        )
    empty = ids.isna()
    if empty.any():
        row = int(np.argmax(empty.to_numpy()))
        raise EmbeddingError(
            f"{path.name}: {counted(int(empty.sum()), 'row')} without an id, first: row {row + 1} of the rows; "
            "every row needs one"
        )


def _unquoted(ids: pd.Series, known: pd.Index) -> pd.Series:
    """Ids without the leading quote that our exports put before what would start a formula."""
    quoted = ids.str.startswith("'") & ids.str[1:2].isin(list(_FORMULA)) & ~ids.isin(known)
    return ids.where(~quoted, ids.str[1:])


def _mismatch(path: Path, graph: AttributedGraph, missing: pd.Index, unknown: pd.Series, rows: int) -> str:
    """Both sides of a mismatch in one line, and what to do."""
    problems = []
    if len(missing):
        problems.append(
            f"{len(missing):,} of the {graph.num_nodes:,} nodes of {graph.name} have no row, first: {_some(missing)}"
        )
    if len(unknown):
        problems.append(f"{len(unknown):,} of the {rows:,} ids of the file are no node, first: {_some(unknown)}")
    return f"{path.name}: {'; '.join(problems)}; {_advice(graph, missing, unknown)}"


def _advice(graph: AttributedGraph, missing: pd.Index, unknown: pd.Series) -> str:
    """What to do about ids that do not fit: write them alike where that would make them fit, else the plain remedy."""
    if len(missing) and len(unknown):
        sided = pd.Series(missing[missing.str.contains(":")], dtype="str")
        if unknown.str.strip().isin(sided.str.split(":", n=1).str[1]).any():
            return f"ids of users and items carry their side in this graph ({_some(sided, 1)}); write them so"
        for attribute in graph.attributes:
            if unknown.isin(attribute.labels).all():
                return f"the file's ids are values of {attribute.name!r} in this graph; write the nodes' ids instead"
        alike = near_ids(unknown, missing)
        if alike:
            return alike
        numbers, wanted = as_numbers(unknown), as_numbers(pd.Series(missing, dtype="str"))
        if len(unknown) == len(missing) == 1 and abs(numbers[0] - wanted[0]) == graph.num_nodes:
            from_one = numbers[0] > wanted[0]
            return (
                f"the file's ids seem to count from {int(from_one)}, and the graph's from {int(not from_one)}, so that each "
                "row would be another node's; write each id as the graph does"
            )
    if len(missing):
        return "every node needs a vector: add the rows, or take these nodes out of the graph"
    return "take these rows out, or leave them out with --unknown-ids drop"


def _some(names: Sequence[Any] | pd.Index | pd.Series, most: int = _SHOWN) -> str:
    """The first names, as text in quotes."""
    return ", ".join(repr(str(n)) for n in list(names[:most]))
