"""A graph whose nodes and edges have values by name, as files that hold a whole graph write it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import ne
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.assemble import WEIGHTS, finish
from uge_core.datasets.bounded import is_gzip, read_bytes, unpacked_limit
from uge_core.datasets.columns import FEWEST_IDENTIFIERS, NodeColumns, Role, assign
from uge_core.datasets.drawing import DRAWN, drawn
from uge_core.datasets.edge_columns import ALLOWED, usable
from uge_core.datasets.layouts.base import Asked
from uge_core.datasets.tables import MOST_COLUMNS, Table, as_numbers, counted
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Column, Message

MOST_BYTES = 2**28
_TIMES = 6
"""A graph takes up to some twenty times its file's size in memory, as GraphML does, and a table some six times."""
OF_EDGES = "columns of edges are not used"
_ENDS = ("source", "target")
_SHOWN = 3
_RECORDS = "holds records"
_ROOM = 2**20
"""Cells that a table may have however few of them hold a value."""
_SPARSE = 200  # cells of a larger one for each that does
_EXACT = 2.0**53
_COUNTED = re.compile(r"n\d+")
_WHOLE = re.compile(r"(\d+)\.0+")
_APART = 0.9  # share of the nodes that a column which identifies them tells apart, as some cells may be empty or wrong


@dataclass(frozen=True, eq=False)
class Records:
    """A graph whose nodes and edges have values by name.

    Attributes:
        path: its file.
        ids: (N,) of the nodes.
        nodes: (N,) their values.
        source: (M,) the position of one end of each edge.
        target: (M,) the position of the other.
        edges: (M,) their values.
        directed: edges run from source to target.
        about: what is to be said besides.
    """

    path: Path
    ids: Sequence[str]
    nodes: Sequence[Mapping[str, Any]]
    source: IntArray
    target: IntArray
    edges: Sequence[Mapping[str, Any]]
    directed: bool
    about: NodeColumns

    def graph(self, name: str, layout: str, asked: Asked) -> AttributedGraph:
        """The graph, values that describe nodes having roles as a table's columns have.

        Raises:
            GraphError: an id that stands twice, attributes with one name, too many of them, or weights that are none.
        """
        try:
            "".join(self.ids).encode()
            nodes, nested = _table(self.path, self.nodes)
            "".join(nodes.names).encode()
        except UnicodeEncodeError as e:
            raise GraphError(
                f"{self.path.name}: holds {e.object[e.start]!a}, half of a character that is written in two parts; write "
                "the text again"
            ) from None
        ids = pd.Index(list(self.ids), dtype=object)
        if ids.has_duplicates:
            raise GraphError(
                f"{self.path.name}: the id {ids[ids.duplicated()][0]!r} stands twice; each node needs its own"
            )
        parts = [
            NodeColumns(columns=(Column(self.path.name, "(node)", "id"), *nested)),
            self.about,
            _people(nodes, nested, self.ids, asked),
            self._edges(),
            NodeColumns(directed=self.directed),
        ]
        described = NodeColumns.join(parts)
        return finish(name, layout, self.source, self.target, len(ids), described, node_ids=ids)

    def _edges(self) -> NodeColumns:
        """The weights, and the roles of the edges' own values."""
        names = dict.fromkeys(str(k) for row in self.edges for k in row)
        weight = next((n for w in WEIGHTS for n in names if n.lower() == w), None)
        columns = [Column(self.path.name, end, end) for end in _ENDS]
        numbers = None
        if weight is not None:
            column, numbers = self._weights(weight)
            columns.append(column)
        others = (n for n in names if n != weight and n.lower() not in _ENDS)
        columns += [Column(self.path.name, n, "ignored", OF_EDGES) for n in others]
        return NodeColumns(columns=tuple(columns), edge_weights=numbers)

    def _weights(self, name: str) -> tuple[Column, npt.NDArray[np.float64] | None]:
        """The role of the weights, and the weights where they differ.

        An edge without a weight among others that have one weighs 1, as in GEXF.
        """
        file = self.path.name
        texts = [text_of(row.get(name)) for row in self.edges]
        numbers = as_numbers(pd.Series(texts, dtype="str"))
        if np.isnan(numbers).all():
            return Column(file, name, "ignored", "no numbers, which weights are"), None
        numbers = np.where([t is None for t in texts], 1.0, numbers)
        wrong = np.flatnonzero(~usable(numbers))
        if len(wrong):
            first = ", ".join(
                f"{self.ids[self.source[i]]} - {self.ids[self.target[i]]} ({texts[i]!r})" for i in wrong[:_SHOWN]
            )
            raise GraphError(
                f"{file}: {counted(len(wrong), 'edge')} without a usable weight in {name!r}, first: {first}; {ALLOWED}; "
                f"correct these weights, or rename {name!r} to leave weights out"
            )
        if numbers[0] and (numbers == numbers[0]).all():
            return Column(file, name, "weight", "the same for every edge"), None
        return Column(file, name, "weight"), numbers


def graph_bytes(path: Path) -> bytes:
    """All bytes of a file that holds a graph, unpacked where its name ends in .gz.

    Raises:
        GraphError: it is larger than such a file may be, cannot be read, or is packed and not called so.
    """
    most = unpacked_limit() // _TIMES
    try:
        if is_gzip(path) != (path.suffix == ".gz"):
            wrong = "not gzip data although its name ends in .gz; rename it or compress it"
            raise GraphError(
                f"{path.name}: is {wrong if path.suffix == '.gz' else f'gzip data; rename it to {path.name}.gz or unpack it'}"
            )
        return read_bytes(path, min(MOST_BYTES, most), settable=most < MOST_BYTES)
    except (OSError, EOFError, zlib.error):
        raise GraphError(f"{path.name}: the file cannot be read, or its gzip data are damaged") from None


def text_of(value: object) -> str | None:
    """One value as text; an empty one is missing, and 7.0 is the number 7."""
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return str(value)


def labels_as_ids(
    file: str, ids: Sequence[str], labels: Sequence[str | None], what: str = "labels"
) -> tuple[list[str], NodeColumns] | None:
    """What people call the nodes in the place of the ids by which the file's writer numbered them.

    Args:
        file: the file's name.
        ids: of the nodes.
        labels: what else they are called.
        what: the word for that.

    Returns:
        The ids to use and what is to be said about them; None where not each node has a label of its own.
    """
    if None in labels or len(set(labels)) < len(labels):
        return None
    taken = [str(label) for label in labels]
    moved = sum(map(ne, ids, taken))
    if not moved:
        return taken, NodeColumns()
    column = Column(file, "id", "ignored", f"numbers of the file's writer; {what} are the ids")
    messages: tuple[Message, ...] = ()
    if not set(ids).isdisjoint(taken):
        text = (
            f"{file}: ids and {what} are partly the same names, but of {counted(moved, 'node')} they differ; {what} are "
            f"taken, so rows of an embedding must be keyed by {what}"
        )
        remedy = f"if your embedding is keyed by the ids that stand in the file, remove the {what} from it"
        messages = (Message("warning", "labels-and-ids", text, moved, remedy=remedy),)
    return taken, NodeColumns(columns=(column,), messages=messages)


def other_numbering(nodes: Table, ids: Sequence[str]) -> tuple[dict[str, Role], tuple[Message, ...]]:
    """Columns that number the nodes by the values of the ids: no attributes and no features.

    Args:
        nodes: the values of the nodes.
        ids: of the nodes.

    Returns:
        The roles of such columns by lower-case name; a warning for each in which values stand in another order.
    """
    roles: dict[str, Role] = {}
    messages: list[Message] = []
    if len(ids) < FEWEST_IDENTIFIERS:
        return roles, ()
    plain = _plain(pd.Series(ids, dtype="str"))
    for name in nodes.names:
        cells = nodes.frame[name].reset_index(drop=True)
        if cells.nunique() < _APART * len(ids):
            continue
        given = _plain(cells.dropna())
        if 2 * int(given.isin(plain).sum()) < len(ids):
            continue
        moved = len(ids) - int((given == plain[given.index]).sum())
        roles[name.lower()] = Role("ignored", detail="the ids in another order" if moved else "the ids once more")
        if moved:
            text = (
                f"{nodes.file}: {name!r} holds the values of the ids, but of {counted(moved, 'node')} they differ; ids are "
                "taken, so rows of an embedding must be keyed by the id"
            )
            remedy = f"if your embedding is keyed by {name!r}, write its values as the ids"
            messages.append(Message("warning", "labels-and-ids", text, moved, remedy=remedy))
    return roles, tuple(messages)


def _plain(values: pd.Series) -> pd.Series:
    """Ids as people count: n7, as igraph writes it, is 7, and so is 7.0."""
    if values.str.fullmatch(_COUNTED).all():
        return values.str[1:]
    return values.str.replace(_WHOLE, r"\1", regex=True)


def _people(nodes: Table, nested: tuple[Column, ...], ids: Sequence[str], asked: Asked) -> NodeColumns:
    """The roles of the nodes' attributes; those of a drawing are none unless the user names them."""
    looks = {n.lower(): Role("ignored", detail=DRAWN) for n in drawn(nodes.names)}
    numbering, said = other_numbering(nodes, ids)
    part = assign(nodes, numbering | looks, Role("auto"), asked)
    records = [c.name for c in nested if c.detail == _RECORDS]
    if records:
        text = (
            f"{nodes.file}: {counted(len(records), 'attribute')} of lists or records ignored: {', '.join(records[:5])}"
            f"{', ...' * (len(records) > 5)}"
        )
        remedy = "write each value that describes people as an attribute of its own"
        said = (*said, Message("note", "nested-values", text, len(records), tuple(records[:5]), remedy))
    ignored = [c.name for c in (*nested, *part.columns) if c.role == "ignored" and c.detail.startswith(DRAWN)]
    if ignored:
        text = (
            f"{nodes.file}: {counted(len(ignored), 'column')} ignored that {'says' if len(ignored) == 1 else 'say'} how a "
            f"drawing looks: {', '.join(ignored[:10])}{', ...' * (len(ignored) > 10)}"
        )
        remedy = "nothing to do; name one with --attributes if it describes people"
        said = (*said, Message("note", "drawing-columns", text, len(ignored), tuple(ignored[:5]), remedy))
    return NodeColumns.join([part, NodeColumns(messages=said)])


def _table(path: Path, rows: Sequence[Mapping[str, Any]]) -> tuple[Table, tuple[Column, ...]]:
    """Attributes as a table of text, one row per node; those that are lists or records are left out."""
    cells: dict[str, list[str | None]] = {}
    nested: set[str] = set()
    for place, row in enumerate(rows):
        for key, value in row.items():
            if key not in cells:
                _check_size(path, len(cells) + 1, len(rows))
                cells[key] = [None] * len(rows)
            if isinstance(value, dict | list | tuple | set):
                nested.add(key)
            else:
                cells[key][place] = value if type(value) is str and value else text_of(value)
    given = sum(map(len, rows))
    if len(cells) * len(rows) > max(_ROOM, _SPARSE * given):
        raise GraphError(
            f"{path.name}: its {counted(len(rows), 'node')} have {len(cells):,} attributes, of which each node has "
            f"{given / len(rows):.1f}; keep those that many nodes have"
        )
    called = {n: re.sub(r"\s+", " ", str(n)).strip() for n in cells}
    first: dict[str, str] = {}
    for written, name in called.items():
        other = first.setdefault(name, written)
        if other != written:
            raise GraphError(
                f"{path.name}: the attributes {other!r} and {written!r} differ in blanks alone, so that which is meant "
                "cannot be told; rename one of the two"
            )
    frame = pd.DataFrame(
        {called[n]: column for n, column in cells.items() if n not in nested},
        index=pd.RangeIndex(1, len(rows) + 1),
        dtype="str",
    )
    looks = set(drawn(list(map(str, cells))))
    return Table(path.name, frame), tuple(
        Column(path.name, str(n), "ignored", DRAWN if n in looks else _RECORDS) for n in sorted(nested)
    )


def _check_size(path: Path, columns: int, rows: int) -> None:
    """Refuses more attributes than a table may have columns, and tables that memory does not hold."""
    if columns > MOST_COLUMNS or columns * rows * 8 > unpacked_limit():
        raise GraphError(
            f"{path.name}: its {counted(rows, 'node')} have more than {columns - 1:,} attributes; allowed: "
            f"{MOST_COLUMNS:,} of a small graph, fewer of a large one; keep those you need"
        )
