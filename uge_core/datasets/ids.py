"""Ids of people and the rows they stand in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.tables import Table, as_numbers, count, counted
from uge_core.errors import GraphError
from uge_core.graph.graph import Message

UNKNOWN_NODES = ("refuse", "drop", "add")
"""What may be done about edges that name a node without a row: ``unknown_nodes`` of a dataset.yaml."""
ASK = (
    "add the nodes, remove these rows, or write unknown_nodes: drop (leaves these edges out) or unknown_nodes: add "
    "(makes nodes whose attributes are unknown) in dataset.yaml"
)
"""The remedy where ids are the user's own."""
ASK_WITHOUT_CARD = ASK + ", which `uge data describe FOLDER --write` begins"
"""The same of a folder that has none yet."""
_FIRST = 3
_UNSEEN = "[\u00ad\u200b-\u200f\u2060\ufeff]"
_QUOTES = "^=?[\"'`\u2018\u201c]+|[\"'`\u2019\u201d]+$"


def node_index(nodes: Table, column: str) -> pd.Index:
    """The ids of the nodes, in row order.

    Raises:
        GraphError: an empty id, or one that stands twice.
    """
    ids = nodes.frame[column]
    empty = ids.isna().to_numpy()
    if empty.any():
        raise GraphError(
            f"{nodes.file}: {count(empty, 'row')} without an id in column {column!r}, first: "
            f"{nodes.first_lines(empty, column)}; every node needs an id"
        )
    twice = ids.duplicated().to_numpy()
    if twice.any():
        raise GraphError(
            f"{nodes.file}: {count(twice, 'row')} repeat{'s' if twice.sum() == 1 else ''} an id of column "
            f"{column!r}, first: "
            f"{nodes.first_lines(twice, column)}; each node must stand once, keep one row of each"
        )
    index: pd.Index = pd.Index(ids)
    return index


def refuse_other_order(nodes: Table, column: str, where: str) -> None:
    """Refuses nodes whose ids count their rows, but in another order: which of the two says who a row is cannot be told.

    Args:
        nodes: one row per node.
        column: the column that may count.
        where: the file in which nodes are positions, for the message.

    Raises:
        GraphError: the numbers are a permutation of 0..N-1 or of 1..N, and not in order.
    """
    numbers = as_numbers(nodes.frame[column])
    in_order = np.arange(len(numbers)) + (1 if numbers.min() == 1 else 0)
    if not (numbers == in_order).all() and (np.sort(numbers) == in_order).all():
        first = int(np.argmax(numbers != in_order))
        raise GraphError(
            f"{nodes.file}: column {column!r} counts the nodes in another order than the rows, first: row {first + 1} is "
            f"{nodes.frame[column].iloc[first]}, but in {where} node i is the i-th row, so that each would get another "
            "one's values; sort the rows by it if it is the position, else take the column out"
        )


def by_id(edges: Table, column: str, ids: pd.Index) -> IntArray:
    """(M,) the node of each cell, -1 where it is no node.

    Raises:
        GraphError: an empty cell.
    """
    cells = edges.frame[column]
    _refuse_empty(edges, column)
    # Ids stand once, so that those of the nodes are the first codes. An index would hash Python objects, which takes
    # long.
    codes = pd.factorize(pd.concat([pd.Series(ids), cells]))[0][len(ids) :]
    return np.where(codes < len(ids), codes, -1).astype(np.int64)


def refuse_numbers(name: str, ends: npt.NDArray[Any], num_nodes: int, unit: str, where: str = "") -> None:
    """Refuses node numbers outside 0 to N - 1.

    Args:
        name: the file's.
        ends: (2, E) whole numbers.
        num_nodes: N.
        unit: what the file calls an edge, such as "row" or "column".
        where: what the numbers are positions in, for the message.

    Raises:
        GraphError: with the count, the first one and what is allowed.
    """
    wrong = ((ends < 0) | (ends >= num_nodes)).any(axis=0)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise GraphError(
            f"{name}: {counted(int(wrong.sum()), 'edge')} with a node that does not exist, first: {unit} {first} "
            f"({ends[0, first]}, {ends[1, first]}); allowed: 0 to {num_nodes - 1}{where}"
        )


def by_row_number(edges: Table, column: str, num_nodes: int) -> IntArray:
    """(M,) the node of each cell that is a row number counted from 0, -1 where it is no such number.

    Raises:
        GraphError: an empty cell.
    """
    _refuse_empty(edges, column)
    numbers = as_numbers(edges.frame[column])
    fits = (numbers >= 0) & (numbers < num_nodes) & (numbers == np.floor(numbers))
    return np.where(fits, numbers, -1).astype(np.int64)


def refuse_unknown(
    edges: Table,
    columns: tuple[str, str],
    ends: tuple[IntArray, IntArray],
    allowed: str,
    ids: pd.Index | None = None,
    remedy: str = "add the nodes or remove these rows",
) -> None:
    """Checks that every edge joins two nodes.

    Args:
        edges: the edges.
        columns: the names of its two ends.
        ends: the node of each cell, -1 where it is none.
        allowed: what the cells may hold, in words.
        ids: the ids of the nodes, to see whether cells are ids that are only written differently.
        remedy: what is to be done where they are not.

    Raises:
        GraphError: an edge names something else; count, first lines, and what is `allowed`.
    """
    wrong = (ends[0] < 0) | (ends[1] < 0)
    if wrong.any():
        verb = "names" if wrong.sum() == 1 else "name"
        near = "" if ids is None else _near_ids(edges, columns, ends, ids)
        raise GraphError(
            f"{edges.file}: {count(wrong, 'edge')} {verb} a node that does not exist, first: "
            f"{edges.first_lines(wrong, *columns)}; allowed: {allowed}; {near or remedy}"
        )


def drop_unknown(
    edges: Table, columns: tuple[str, str], ends: tuple[IntArray, IntArray], where: str, ids: pd.Index | None = None
) -> tuple[Table, npt.NDArray[np.bool_], tuple[Message, ...]]:
    """Leaves edges out that name a node without a row.

    Args:
        edges: the edges.
        columns: the names of its two ends.
        ends: the node of each cell, -1 where it is none.
        where: the files with the nodes, for the message.
        ids: the ids of the nodes, to see whether cells are ids that are only written differently.

    Returns:
        The other edges; (M,) which ones those are; a warning where some were left out.

    Raises:
        GraphError: none is left.
    """
    wrong = (ends[0] < 0) | (ends[1] < 0)
    if not wrong.any():
        return edges, ~wrong, ()
    near = "" if ids is None else _near_ids(edges, columns, ends, ids)
    if wrong.all():
        raise GraphError(
            f"{edges.file}: every edge names a node that has no row in {where}, first: "
            f"{edges.first_lines(wrong, *columns)}, so that unknown_nodes: drop leaves none; "
            f"{near or 'name the columns with the ids in dataset.yaml (edges: source and target, nodes: id)'}"
        )
    verb = "names" if wrong.sum() == 1 else "name"
    text = (
        f"{edges.file}: {count(wrong, 'edge')} of {len(edges):,} left out by unknown_nodes: drop, as they {verb} a node "
        f"that has no row in {where}"
    ).replace("they names", "it names")
    remedy = near or "nothing to do; unknown_nodes: add makes nodes of them whose attributes are unknown"
    shown = (edges.first_lines(wrong, *columns),)
    message = Message("warning", "unknown-nodes", text, int(wrong.sum()), shown, remedy)
    return replace(edges, frame=edges.frame.loc[~wrong]), ~wrong, (message,)


def add_unknown(
    edges: Table, columns: tuple[str, ...], ends: tuple[IntArray, ...], ids: pd.Index, where: str, noun: str = "node"
) -> tuple[pd.Index, tuple[IntArray, ...], tuple[Message, ...]]:
    """Makes a node of every cell that names none.

    Args:
        edges: the edges.
        columns: the names of the ends that name nodes of one kind.
        ends: the node of each cell, -1 where it is none.
        ids: the ids of the nodes.
        where: the file with the nodes, for the message.
        noun: what a node is called in it.

    Returns:
        The ids with the new ones behind them; the node of each cell; a warning where some are new.
    """
    unknown = [edges.frame[c][e < 0] for c, e in zip(columns, ends, strict=True)]
    new = pd.Index(pd.unique(pd.concat(unknown)), dtype=object)
    if not len(new):
        return ids, ends, ()
    known: pd.Index = ids.astype(object).append(new)
    filled = tuple(
        np.where(e < 0, len(ids) + new.get_indexer(pd.Index(edges.frame[c], dtype=object)), e).astype(np.int64)
        for c, e in zip(columns, ends, strict=True)
    )
    touched = np.logical_or.reduce([e < 0 for e in ends])
    text = (
        f"{edges.file}: {counted(len(new), noun)} without a row in {where} added by unknown_nodes: add; "
        f"{'its' if len(new) == 1 else 'their'} attributes are unknown, and {count(touched, 'edge')} "
        f"{'names' if touched.sum() == 1 else 'name'} {'it' if len(new) == 1 else 'them'}"
    )
    near = _near_ids(edges, columns, ends, ids)
    remedy = near or f"nothing to do; write {'its' if len(new) == 1 else 'their'} rows if the attributes are known"
    message = Message("warning", "unknown-nodes", text, len(new), tuple(map(str, new[:_FIRST])), remedy)
    return known, filled, (message,)


def _near_ids(edges: Table, columns: tuple[str, ...], ends: tuple[IntArray, ...], ids: pd.Index) -> str:
    """What is to be done where cells would be ids if they were written alike, else nothing."""
    odd = pd.unique(pd.concat([edges.frame[c][e < 0] for c, e in zip(columns, ends, strict=True)]))
    return near_ids(pd.Series(odd, dtype="str"), ids)


def near_ids(odd: pd.Series, ids: pd.Index) -> str:
    """What is to be done where texts would be ids if they were written alike, else nothing.

    Args:
        odd: texts that are no ids.
        ids: the ids.
    """
    same, why, remedy = written_alike(odd, ids)
    if not same.any():
        return ""
    one = same.sum() == 1
    why = why.replace("numbers", "a number").replace("them", "it") if one else why
    return f"{counted(int(same.sum()), 'id')} would match {why} ({odd[same].iloc[0]!r}); {remedy}"


def written_alike(odd: pd.Series, ids: pd.Index) -> tuple[npt.NDArray[np.bool_], str, str]:
    """(M,) which texts would be ids if they were written alike, how, and what is to be done.

    Args:
        odd: (M,) texts that are no ids.
        ids: the ids.
    """
    left, right = odd.reset_index(drop=True).astype("str"), pd.Series(ids, dtype="str")
    for change, why, remedy in _SPELLINGS:
        changed = change(right)
        # Where two ids become one, the spelling tells people apart; numbers do so where they are too large for floats.
        if change is not _plain_numbers and changed.nunique() < right.nunique():
            continue
        left, right = change(left), changed
        same = left.isin(right[right != ""]).to_numpy()
        if same.any() and (change is not _without_letters or same.all()):
            return same, why, remedy
    return np.zeros(len(odd), dtype=bool), "", ""


def _plain_numbers(texts: pd.Series) -> pd.Series:
    """Numbers without commas between thousands, zeros in front and a point that says nothing."""
    bare = texts.where(~texts.str.fullmatch(r"\d{1,3}(?:,\d{3})+"), texts.str.replace(",", "", regex=False))
    numbers = as_numbers(bare)
    return texts.where(np.isnan(numbers), pd.Series(numbers, index=texts.index).astype("str"))


def _without_letters(texts: pd.Series) -> pd.Series:
    """Whole numbers without what stands in front of all of them: P22, @22, 22."""
    fronts = texts.str.extract(r"^(\D*)")[0]
    if (fronts != fronts.iloc[:1].squeeze()).any():
        return texts
    return texts.str.replace(r"\.0$", "", regex=True).str.replace(r"^\D+0*(?=\d+$)", "", regex=True)


_ALIKE = "write each id in the same way in both files"
_SPELLINGS: tuple[tuple[Callable[[pd.Series], pd.Series], str, str], ...] = (
    (lambda s: s.str.strip(), "without the blanks around them", "remove the blanks in both files"),
    (
        lambda s: s.str.replace("[\u00a0\u202f]", " ", regex=True).str.replace(_UNSEEN, "", regex=True).str.strip(),
        "without characters that cannot be seen",
        "remove no-break and zero-width spaces in both files",
    ),
    (lambda s: s.str.normalize("NFC"), "if accents were written as one character", f"{_ALIKE} (Unicode NFC)"),
    (lambda s: s.str.replace(_QUOTES, "", regex=True).str.strip(), "without the quotes around them", _ALIKE),
    (_plain_numbers, "as numbers", _ALIKE),
    (lambda s: s.str.casefold(), "if capital and small letters were the same", _ALIKE),
    (lambda s: s.str.replace(r"[\s_-]+", "_", regex=True), "if blanks, _ and - were the same", _ALIKE),
    (_without_letters, "without what stands in front of the number", _ALIKE),
)
"""In which ways ids are written differently, each after those before it."""


def _refuse_empty(edges: Table, column: str) -> None:
    """Raises where an edge lacks an end."""
    empty = edges.frame[column].isna().to_numpy()
    if empty.any():
        line = edges.frame.index[empty][0]
        raise GraphError(
            f"{edges.file}: {count(empty, 'row')} with nothing in column {column!r}, first: line {line}; "
            "every edge needs two ends, remove these rows"
        )
