"""Ids of people and the rows they stand in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.plain_rows import places
from uge_core.datasets.tables import Table, as_numbers, count, counted, refuse_lost_digits
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
_LOOKED_AT = 60
_FEWEST = 10  # in a smaller table a column may count by chance
_NUMBERS = frozenset(
    ["nr", "no", "num", "number", "index", "idx", "row", "key", "node", "node_id", "node_index", "nodeid"]
)
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
        refuse_lost_digits(nodes, column)
        raise GraphError(
            f"{nodes.file}: {count(twice, 'row')} repeat{'s' if twice.sum() == 1 else ''} an id of column "
            f"{column!r}, first: "
            f"{nodes.first_lines(twice, column)}; each node must stand once, keep one row of each"
        )
    index: pd.Index = pd.Index(ids)
    return index


def refuse_other_order(nodes: Table, where: str, ident: str | None = None) -> None:
    """Refuses nodes that a column counts in another order than the rows: which of the two says who a row is cannot be told.

    Args:
        nodes: one row per node.
        where: the file in which nodes are positions, for the message.
        ident: the column of ids, if there is one; where it counts the rows in order, other columns do not matter.

    Raises:
        GraphError: the numbers of a column are a permutation of 0..N-1 or of 1..N, and not in order.
    """
    if ident is not None and _counts(nodes, ident) == "in order":
        return
    for column in nodes.names[:_LOOKED_AT] if ident is None else [ident, *nodes.names[:_LOOKED_AT]]:
        named = column == ident or column.lower() in _NUMBERS
        if (not named and len(nodes) < _FEWEST) or _counts(nodes, column) != "otherwise":
            continue
        numbers = as_numbers(nodes.frame[column])
        first = int(np.argmax(numbers != np.arange(len(numbers)) + numbers.min()))
        raise GraphError(
            f"{nodes.file}: column {column!r} counts the nodes in another order than the rows, first: row {first + 1} is "
            f"{nodes.frame[column].iloc[first]}, but in {where} node i is the i-th row, so that each would get another "
            "one's values; sort the rows by it if it is the position, else take the column out"
        )


def refuse_from_one(nodes: Table, ident: str | None, ends: Sequence[IntArray], where: str) -> None:
    """Refuses rows by position, counted from 0, where ids count them from 1 and no edge names 0.

    Args:
        nodes: one row per node.
        ident: the column of ids, if there is one.
        ends: the row numbers of the two ends of every edge.
        where: the file of the edges.

    Raises:
        GraphError: they may be ids as well.
    """
    if ident is None or _counts(nodes, ident) != "in order" or as_numbers(nodes.frame[ident]).min() == 0:
        return
    if min(int(e.min()) for e in ends) > 0:
        raise GraphError(
            f"{where}: no edge names row 0, while column {ident!r} of {nodes.file} counts from 1, so that the numbers may be "
            "these ids in place of rows counted from 0; write the edges as edges.csv beside nodes.csv if they are ids, else "
            "take the column out"
        )


def _counts(nodes: Table, column: str) -> Literal["", "in order", "otherwise"]:
    """Whether a column holds 0..N-1 or 1..N, and in order."""
    if not str(nodes.frame[column].iloc[0]).strip().removesuffix(".0").isdigit():
        return ""
    numbers = as_numbers(nodes.frame[column])
    least = numbers.min()  # NaN where one cell is no number
    if least not in (0, 1) or numbers.max() != least + len(numbers) - 1:
        return ""
    counting = np.arange(len(numbers)) + least
    if (numbers == counting).all():
        return "in order"
    return "otherwise" if (np.sort(numbers) == counting).all() else ""


def by_id(edges: Table, column: str, ids: pd.Index) -> IntArray:
    """(M,) the node of each cell, -1 where it is no node.

    Raises:
        GraphError: an empty cell.
    """
    cells = edges.frame[column]
    _refuse_empty(edges, column)
    found = places(ids, cells)
    if found is not None:
        return found
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
        for column in columns if ids is not None and not near else ():
            refuse_lost_digits(edges, column)
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
    if near:
        raise GraphError(f"{edges.file}: {count(wrong, 'edge')} would be left out by unknown_nodes: drop, but {near}")
    if wrong.all():
        raise GraphError(
            f"{edges.file}: every edge names a node that has no row in {where}, first: "
            f"{edges.first_lines(wrong, *columns)}, so that unknown_nodes: drop leaves none; "
            "name the columns with the ids in dataset.yaml (edges: source and target, nodes: id)"
        )
    they = "it names" if wrong.sum() == 1 else "they name"
    text = (
        f"{edges.file}: {count(wrong, 'edge')} of {len(edges):,} left out by unknown_nodes: drop, as {they} a node "
        f"that has no row in {where}"
    )
    remedy = "nothing to do; unknown_nodes: add makes nodes of them whose attributes are unknown"
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
    if near := _near_ids(edges, columns, ends, ids):
        raise GraphError(f"{edges.file}: {counted(len(new), noun)} would be added by unknown_nodes: add, but {near}")
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
    remedy = f"nothing to do; write {'its' if len(new) == 1 else 'their'} rows if the attributes are known"
    message = Message("warning", "unknown-nodes", text, len(new), tuple(map(str, new[:_FIRST])), remedy)
    return known, filled, (message,)


def _near_ids(edges: Table, columns: tuple[str, ...], ends: tuple[IntArray, ...], ids: pd.Index) -> str:
    """What is to be done where cells would be ids if they were written or counted alike, else nothing."""
    if other := _other_base(edges, columns, ids) or _row_numbers(edges, columns, ids):
        return other
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


def _other_base(edges: Table, columns: tuple[str, ...], ids: pd.Index) -> str:
    """What is to be done where nodes count from 1 and edges from 0, or the other way round; else nothing."""
    known = as_numbers(pd.Series(ids))
    if (
        len(known) < _FEWEST
        or np.isnan(known).any()
        or not (np.sort(known) == np.arange(len(known)) + known.min()).all()
    ):
        return ""
    named = np.concatenate([as_numbers(edges.frame[c]) for c in columns])
    if np.isnan(named).any():
        return ""
    # All numbers but one more at one end: a shift explains every edge, a missing row one number only.
    shift = {(0.0, 1.0): "0, but ids from 1", (1.0, 0.0): "1, but ids from 0"}.get((named.min(), known.min()))
    last = known.max() - 1 if known.min() == 1 else known.max() + 1
    if shift is None or named.max() != last:
        return ""
    return (
        f"the ends of edges probably count from {shift} in the nodes, so that each edge would join other people; count "
        "from the same number in both files"
    )


def _row_numbers(edges: Table, columns: tuple[str, ...], ids: pd.Index) -> str:
    """What is to be done where edges name rows by number and ids are no numbers, else nothing."""
    if not np.isnan(as_numbers(pd.Series(ids))).all():
        return ""
    named = np.concatenate([as_numbers(edges.frame[c]) for c in columns])
    if not (named == np.floor(named)).all() or named.min() not in (0, 1) or named.max() - named.min() >= len(ids):
        return ""
    return (
        f"the ends of edges are probably numbers of rows counted from {named.min():g}, as they are {named.min():g} to "
        f"{named.max():g} and ids are no numbers; write the ids, or a column with these numbers into the file of nodes"
    )


def _refuse_empty(edges: Table, column: str) -> None:
    """Raises where an edge lacks an end."""
    empty = edges.frame[column].isna().to_numpy()
    if empty.any():
        line = edges.frame.index[empty][0]
        raise GraphError(
            f"{edges.file}: {count(empty, 'row')} with nothing in column {column!r}, first: line {line}; "
            "every edge needs two ends, remove these rows"
        )
