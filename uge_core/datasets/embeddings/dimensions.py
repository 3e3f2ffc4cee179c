"""Columns of numbers that are no part of an embedding: ids, row numbers, attributes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.datasets.embeddings.whose import APART
from uge_core.datasets.tables import as_numbers
from uge_core.errors import EmbeddingError
from uge_core.graph.graph import AttributedGraph

_FEW = 1_000  # rows by which columns are tried first
_FEWEST = 5  # rows from which a column that counts hardly does so by chance


def refuse_others(
    path: Path, values: npt.NDArray[Any], names: Sequence[str] | None, graph: AttributedGraph, *, with_ids: bool
) -> None:
    """Refuses a file with a column of numbers that is no part of an embedding.

    Args:
        path: the file, for messages.
        values: (M, d) its numbers.
        names: of the columns, None where they have none.
        graph: the graph.
        with_ids: each row has an id.

    Raises:
        EmbeddingError: a column holds ids, counts the rows, is called like an attribute, or is of another kind than
            the others.
    """
    some = np.asarray(values[:_FEW])
    whole = _whole(some)
    fractional = 2 * int(whole.sum()) <= len(whole) and len(whole) > 1
    tried = [c for c in np.flatnonzero(whole).tolist() if len(np.unique(some[:, c])) >= APART * len(some)]
    ids = as_numbers(pd.Series(graph.ids(slice(None)), dtype="str")) if tried else np.empty(0)
    for column in tried if len(whole) > 1 and len(values) >= _FEWEST else ():
        what = _like_ids(np.asarray(values[:, column]), ids, alone=fractional)
        if what:
            todo = "take it out" if with_ids else f"take it out, and {_SAY_IDS} if it says whose the rows are"
            raise EmbeddingError(
                f"{path.name}: {_named(names, column)} {what}, and is no number of the embedding; {todo}"
            )
    if names is not None:
        _refuse_by_name(path, names, whole & fractional, graph)


_SAY_IDS = "save the ids beside the numbers (CSV, Parquet, word2vec text, npz or a dict of torch.save)"


def _whole(some: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """(d,) which columns hold different whole numbers."""
    if not len(some):
        return np.zeros(some.shape[1], dtype=bool)
    # Beyond these every float is whole.
    most = 2.0 ** np.finfo(some.dtype).nmant if some.dtype.kind == "f" else np.inf
    with np.errstate(invalid="ignore"):
        exact = (some == np.rint(some)) & (np.abs(some) < most)
    return np.asarray(exact.all(axis=0) & (some != some[:1]).any(axis=0))


def _like_ids(cells: npt.NDArray[Any], ids: npt.NDArray[np.float64], *, alone: bool) -> str:
    """What a column of whole numbers is, where it may tell people apart; `alone`: most others are not whole."""
    rows = len(cells)
    if not _whole(cells[:, None])[0]:
        return ""
    different = np.unique(cells)
    if len(different) < APART * rows:
        return ""
    hits = int(np.isin(different, ids).sum())
    if hits == len(ids):
        return "holds the ids of the nodes"
    if len(different) == rows and different[0] in (0, 1) and different[-1] - different[0] == rows - 1:
        return f"holds each number from {int(different[0]):,} to {int(different[-1]):,} once"
    if not alone:
        return ""
    if 2 * hits > len(different):
        return f"holds ids, of {hits:,} of the {len(ids):,} nodes"
    return "holds whole numbers that are nearly all different, as ids are"


def _refuse_by_name(path: Path, names: Sequence[str], whole: npt.NDArray[np.bool_], graph: AttributedGraph) -> None:
    attributes = {n.lower() for a in graph.attributes for n in (a.name, *a.aliases)}
    attributes |= {c.name.lower() for c in graph.columns if c.role == "label"}
    makes = [_make(n) for n in names]
    alike = Counter(makes)
    series = 2 * sum(alike[m] for m in alike if alike[m] > 1 and "0" in m) >= len(names)
    for name, make, is_whole in zip(names, makes, whole, strict=True):
        alone = alike[make] == 1
        if name.lower() in attributes and (alone or is_whole):
            raise EmbeddingError(
                f"{path.name}: column {name!r} is called like an attribute of {graph.name}, and would be a number of the "
                "embedding that gives it away; take it out"
            )
        if alone and len(names) > 1 and (series or is_whole):
            others = ", ".join(repr(n) for n in names if n != name and (not series or "0" in _make(n)))
            raise EmbeddingError(
                f"{path.name}: column {name!r} seems to be no number of the embedding beside {others[:60]}; take it out, or "
                "call it like them if it is one"
            )


def _make(name: str) -> str:
    """How a column is called, all numbers and all single letters taken alike: d0 and d1, x and y."""
    bare = name.strip().lower()
    return "a" if len(bare) == 1 and bare.isalpha() else re.sub(r"\d+", "0", bare)


def _named(names: Sequence[str] | None, column: int) -> str:
    return f"column {column} of the numbers" if names is None else f"column {names[column]!r}"
