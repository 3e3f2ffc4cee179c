"""Files with several arrays by name, NumPy's or torch's: which one is the embedding, and which holds the ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.datasets.embeddings.base import Vectors
from uge_core.datasets.embeddings.whose import called_ids, column_of_ids, counts, may_tell_apart
from uge_core.errors import EmbeddingError
from uge_core.graph.graph import AttributedGraph

EMBEDDING, IDS = "embedding", "ids"
_NAMES = (EMBEDDING, "embeddings", "emb")
_SHOWN = 5
Arrays = dict[str, npt.NDArray[Any]]


def vectors_of(path: Path, members: Mapping[str, Any], graph: AttributedGraph, noun: str) -> Vectors:
    """The embedding among the members of a file, and whose its rows are.

    Args:
        path: the file, for messages.
        members: arrays, lists and what else the file holds, by name.
        graph: the graph.
        noun: what an array is called there.

    Raises:
        EmbeddingError: there is none, or several may be it, or a member may be ids and is not understood.
    """
    arrays = {n: v for n, v in members.items() if isinstance(v, np.ndarray)}
    keyed = _by_key(arrays, graph)
    if keyed is not None:
        return keyed
    name = _embedding(path, members, arrays, graph, noun)
    values = arrays[name]
    rows = len(values) if values.ndim else 0
    ids = _ids(path, {n: v for n, v in members.items() if n != name}, rows, graph)
    return Vectors(values, ids)


def _by_key(arrays: Arrays, graph: AttributedGraph) -> Vectors | None:
    """Vectors that stand one by one under the id of their node."""
    shapes = {a.shape for a in arrays.values()}
    known = sum(n in arrays for n in graph.ids(slice(None)))
    if len(shapes) != 1 or len(next(iter(shapes))) != 1 or known <= len(arrays) / 2 or len(arrays) < 2:
        return None
    return Vectors(np.stack(list(arrays.values())), pd.Series(list(arrays), dtype=object))


def _embedding(path: Path, members: Mapping[str, Any], arrays: Arrays, graph: AttributedGraph, noun: str) -> str:
    """The name of the embedding."""
    wide = [n for n, a in arrays.items() if a.ndim > 1 and not called_ids(n, graph)]
    lengths = {graph.num_nodes, *(_length(v) for n, v in members.items() if called_ids(n, graph))}
    choices = [n for n in wide if n.lower() in _NAMES] or wide
    choices = choices if len(choices) == 1 else [n for n in choices if len(arrays[n]) in lengths] or choices
    rest = [n for n in arrays if not called_ids(n, graph)]
    choices = choices or (rest if len(rest) == 1 else [])
    if len(choices) != 1:
        raise EmbeddingError(
            f"{path.name}: {_found(members, arrays, noun)}; save the embedding alone, or call it {EMBEDDING!r}, with its ids "
            f"as {IDS!r} beside it on request"
        )
    (name,) = choices
    layers = [n for n in wide if n.lower().endswith(".weight") and "emb" not in n.lower()]
    linear = name == "weight" and "bias" in arrays
    if layers or linear:
        raise EmbeddingError(
            f"{path.name}: holds the weights of a module ({', '.join(wide[:_SHOWN])}), and what its layers give is not among "
            "them; save the module's output, a row per node, with torch.save"
        )
    return name


def _found(members: Mapping[str, Any], arrays: Arrays, noun: str) -> str:
    """What there is in place of one embedding."""
    nested = [n for n, v in members.items() if isinstance(v, Mapping)]
    if nested and not arrays:
        return f"found no {noun}, but {nested[0]!r} is a dict of its own"
    names = ", ".join(sorted(arrays)[:_SHOWN]) or "none"
    return f"found {len(arrays)} {noun}s ({names}), one is needed"


def _length(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return len(value) if value.ndim else -1
    return len(value) if isinstance(value, Sequence | Mapping) and not isinstance(value, str | bytes) else -1


def _ids(path: Path, others: Mapping[str, Any], rows: int, graph: AttributedGraph) -> pd.Series | None:
    """The ids among the other members, None where no member has any."""
    columns: dict[str, pd.Series] = {}
    unclear = []
    for name, value in others.items():
        length, called = _length(value), called_ids(name, graph)
        if length != rows and not (called and length > 1) and name != IDS:
            continue
        cells = _texts(value)
        if length == rows and cells is not None:
            if not called and counts(cells):
                # Ranks and orders count as well; row numbers in order say nothing.
                unclear += [] if _in_order(cells) else [name]
            else:
                columns[name] = cells
        elif called:
            what = (
                f"{value.dtype} of shape {value.shape}"
                if isinstance(value, np.ndarray)
                else f"a {type(value).__name__}"
            )
            raise EmbeddingError(
                f"{path.name}: {name!r} is {what}; a list of one text or whole number for each of the {rows:,} rows, in "
                "their order, is needed"
            )
        elif not isinstance(value, np.ndarray):
            unclear.append(name)
    called_so = [n for n in columns if called_ids(n, graph)]
    column, _ = column_of_ids(path, columns, graph, called_so, "members")
    if column is not None:
        return columns[column].astype(object)
    unclear += [n for n, cells in columns.items() if may_tell_apart(cells)]
    if unclear:
        raise EmbeddingError(
            f"{path.name}: {unclear[0]!r} has something for each of the {rows:,} rows and may say whose they are; call it "
            f"{IDS!r} if it holds the ids, a list in the rows' order, else leave it out"
        )
    return None


def _texts(value: Any) -> pd.Series | None:
    """A list of texts or whole numbers as text, None for anything else."""
    if isinstance(value, list | tuple):
        if not all(isinstance(v, str | bytes | int) and not isinstance(v, bool) for v in value):
            return None
        value = np.array([v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in value])
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "USiu":
        return None
    if value.dtype.kind == "S":
        value = np.char.decode(value, "utf-8", "replace")
    return pd.Series(value.astype(str), dtype="str")


def _in_order(cells: pd.Series) -> bool:
    return any(cells.tolist() == [str(i) for i in range(first, first + len(cells))] for first in (0, 1))
