"""Whose a row is: which column of a table, or which array of a file, holds the ids of the nodes.

Cells decide, and names are a hint. Where two columns may be the ids and would give people other vectors, the file is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from uge_core.datasets.evidence import MOST
from uge_core.datasets.ids import written_alike
from uge_core.datasets.tables import as_numbers
from uge_core.errors import EmbeddingError
from uge_core.graph.graph import AttributedGraph

APART = 0.75
"""Share of different cells above which a column may tell people apart."""
_CALLED = re.compile(
    r"(?:.*[\W_])?(?:ids?|nodes?|users?|names?|person|people|entity|entities|keys?|words|vocab|index_to_key)"
    r"|(?:node|user|person|member)(?:ids?|names?)",
    re.IGNORECASE,
)


def called_ids(name: str, graph: AttributedGraph) -> bool:
    """Whether a column is called as ids are, or as the ids of the graph."""
    return bool(_CALLED.fullmatch(name)) or name.lower() in {c.name.lower() for c in graph.columns if c.role == "id"}


def column_of_ids(
    path: Path, columns: Mapping[str, pd.Series], graph: AttributedGraph, called: Collection[str], noun: str = "columns"
) -> tuple[str | None, list[str]]:
    """The column that says whose a row is.

    Args:
        path: the file, for messages.
        columns: those that may be it, as text.
        graph: the graph.
        called: those whose names say that they are ids.
        noun: what they are called in messages.

    Returns:
        The column, None where there is none, and those that hold the same.

    Raises:
        EmbeddingError: two may be it, and give people other vectors.
    """
    ids = pd.Index(graph.ids(slice(None)), dtype=object)
    known = set(ids)
    hits = {n: len(known & set(cells)) for n, cells in columns.items()}
    full = [n for n, cells in columns.items() if hits[n] == len(known) and cells.is_unique]
    # Numbers that count are ids by chance as well, where they number the rows.
    sure = len(full) == 1 and (full[0] in called or not counts(columns[full[0]]))
    part = [
        n
        for n, cells in columns.items()
        if n not in full
        and ((n in called and not sure) or (may_tell_apart(cells) and _fits(cells, ids, hits[n], exactly=sure)))
    ]
    likely = [*full, *part]
    if not likely:
        return None, []
    first, *others = likely
    other = next((n for n in others if not columns[n].equals(columns[first])), None)
    if other is not None and other in full:
        raise EmbeddingError(
            f"{path.name}: {noun} {first!r} and {other!r} both hold the ids of all nodes, in different orders, so that "
            "each would give people other vectors; leave out the one that numbers rows"
        )
    if other is not None:
        raise EmbeddingError(
            f"{path.name}: {noun} {first!r} (ids of {hits[first]:,} of {len(ids):,} nodes) and {other!r} (of "
            f"{hits[other]:,}) may each say whose a row is, and would give people other vectors; leave out the one that "
            "does not, and write the other's ids as the graph does"
        )
    return first, others


def _fits(cells: pd.Series, ids: pd.Index, hits: int, *, exactly: bool) -> bool:
    """Whether most different cells are ids, or would be if they were written alike."""
    different = pd.Series(cells.dropna().unique(), dtype="str")
    if not hits and not exactly:
        hits = int(written_alike(different, ids)[0].sum())
    return hits > MOST * len(different)


def counts(cells: pd.Series) -> bool:
    """Whether cells are all whole numbers from 0 or 1 on, in any order."""
    numbers = np.sort(as_numbers(cells))
    return bool(len(numbers)) and numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


def may_tell_apart(cells: pd.Series) -> bool:
    """Whether most cells of a column differ."""
    return len(cells) > 0 and cells.nunique() >= APART * len(cells)
