"""What the columns of two tables are, by what the tables share: ids are the values that the other table uses.

A name is a hint. A column called id that no edge refers to is not the id, ends of edges are the columns whose values
are node ids, and a first column without a name that counts 0, 1, 2 is the index of whoever wrote the file. Where two
readings fit about as well the choice is the user's, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import pandas as pd

from uge_core.datasets.assemble import WEIGHTS
from uge_core.datasets.tables import Table, as_numbers
from uge_core.errors import GraphError
from uge_core.graph.graph import Message

ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
"""What the two ends of an edge are called."""
IDS = ("id", "node", "node_id", "user_id")
"""What a node's id is called."""
_MEASURES = frozenset(
    [
        "rating",
        "ratings",
        "score",
        "scores",
        "star",
        "stars",
        "weight",
        "strength",
        "count",
        "counts",
        "plays",
        "freq",
        "frequency",
        "time",
        "timestamp",
        "date",
        "year",
        "month",
        "day",
        "since",
        "until",
        "amount",
        "price",
        "duration",
        "times",
    ]
)
_WHO = frozenset(["id", "ids", "user", "person", "member", "people", "node", "source", "target", "from", "to"])
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SMALLEST_MATRIX = 4
_LOOKED_AT = 60  # columns of the nodes among which the id is sought
_ALL = 0.999  # share of an end's different values that are ids, above which a column fits
_FEWER = 3.0  # a pair of columns that names so many times fewer nodes is no rival


@dataclass(frozen=True)
class Columns:
    """Which columns are which.

    Attributes:
        id: of the nodes.
        source: of the edges.
        target: of the edges.
        messages: what was decided by values, against the names.
    """

    id: str
    source: str
    target: str
    messages: tuple[Message, ...] = ()

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends."""
        return self.source, self.target


@dataclass(frozen=True, eq=False)
class _Fits:
    """How many different values of each edge column are ids, by id column."""

    nodes: Table
    edges: Table
    ids: tuple[str, ...]
    ends: tuple[str, ...]
    size: dict[str, int]
    shared: dict[tuple[str, str], int] = field(repr=False)
    enough: float = _ALL

    def joins(self, ident: str, ends: Sequence[str]) -> str:
        """How many different values of each end are ids, in words."""
        return ", ".join(f"{e} {self.shared[ident, e]:,} of {self.size[e]:,}" for e in dict.fromkeys(ends))

    def share(self, ident: str, end: str) -> float:
        return self.shared[ident, end] / max(self.size[end], 1)

    def fits(self, ident: str, ends: Sequence[str]) -> bool:
        return all(self.share(ident, e) >= self.enough for e in ends)


def id_and_ends(
    nodes: Table, edges: Table, *, ident: str | None = None, ends: tuple[str, str] | None = None, enough: float = _ALL
) -> Columns:
    """The id of the nodes and the ends of the edges.

    Args:
        nodes: one row per node.
        edges: one row per edge.
        ident: the id, where the user says it.
        ends: the ends, where the user says them.
        enough: share of an end's different values that must be ids for a column to fit.

    Returns:
        The columns by name, where values do not say otherwise. Nothing is refused because ids are unknown: whoever
        reads the tables counts those.

    Raises:
        GraphError: two readings fit about as well, or the edges have one column.
    """
    refuse_matrix(edges)
    named_id, named_ends = ident or guess_id(nodes), ends or guess_ends(edges)
    if ident is not None and ends is not None:
        return Columns(ident, *ends)
    found = replace(_fits(nodes, edges, ident, named_id, ends, named_ends), enough=enough)
    chosen = named_ends if ends is not None else _ends(found, named_id, named_ends)
    best = named_id if ident is not None else _id(found, named_id, chosen)
    messages = []
    first = nodes.names[0]
    if best not in (named_id, first) and is_index(nodes, first):
        named_id = first
    if best != first and is_index(nodes, first) and (first in found.ids and found.fits(first, chosen)):
        messages.append(_by_values(nodes, best, first, "the ids that edges use"))
    elif best != named_id:
        messages.append(_by_values(nodes, best, named_id, "the ids that edges use"))
    if set(chosen) != set(named_ends):
        messages.append(_by_values(edges, " and ".join(chosen), " and ".join(named_ends), "the ends of edges"))
    return Columns(best, *chosen, tuple(messages))


def is_measure(name: str) -> bool:
    """Whether a column's name says how much or when, and not who."""
    words = {word.lower() for word in _WORDS.findall(name)}
    return bool(words & _MEASURES) and not words & _WHO


def refuse_matrix(edges: Table) -> None:
    """Refuses a table with a row and a column for each node in place of a row for each edge.

    Raises:
        GraphError: it is one.
    """
    names = edges.names
    if min(len(names), len(edges)) < _SMALLEST_MATRIX or abs(len(names) - len(edges)) > 1:
        return
    cells = edges.frame.iloc[:, 1:] if len(names) == len(edges) + 1 else edges.frame
    by_names = len(names) == len(edges) + 1 and set(names[1:]) == set(map(str, edges.frame.iloc[:, 0]))
    numbers = len(names) == len(edges) and not np.isnan(np.array([as_numbers(cells[c]) for c in names[:20]])).any()
    if by_names or (numbers and len(np.unique(cells.to_numpy(dtype=str))) < len(names)):
        raise GraphError(
            f"{edges.file}: is a matrix with a row and a column for each of {len(edges):,} nodes; a row for each edge is "
            "needed, with the ids of its two ends: unpivot it and keep what is not 0, or save the matrix as NAME.mtx "
            "(scipy.io.mmwrite) beside nodes.csv"
        )


def guess_id(nodes: Table) -> str:
    """The column called like an id, else the first that is no index of the file's writer.

    Of several the first that tells the nodes apart, as one called id may be an attribute.
    """
    named = named_id(nodes)
    return named if named is not None else _written(nodes)[0]


def named_id(nodes: Table) -> str | None:
    """The column called like an id, or None."""
    named = [column for name in IDS if (column := nodes.column(name)) is not None]
    apart = (column for column in named if len(named) > 1 and nodes.frame[column].is_unique)
    return next(apart, next(iter(named), None))


def guess_ends(edges: Table) -> tuple[str, str]:
    """The two columns called like the ends of an edge, else the first two that are no index and no weight.

    Raises:
        GraphError: there is one column.
    """
    for pair in ENDS:
        source, target = map(edges.column, pair)
        if source is not None and target is not None:
            return source, target
    names = [n for n in _written(edges) if n.lower() not in WEIGHTS]
    names = names if len(names) > 1 else [n for n in edges.names if n.lower() not in WEIGHTS] or list(edges.names)
    if len(names) < 2:
        raise GraphError(f"{edges.file}: one column ({names[0]}), two are needed: source,target{uneven(names[0])}")
    return names[0], names[1]


def uneven(name: str) -> str:
    """What may be the matter with a file of one column whose name has several words."""
    if len(name.split()) < 2:
        return ""
    return (
        "; if blanks separate, its lines have unequal numbers of cells, as in a list of everybody's neighbours: write a "
        "line for each edge"
    )


def _written(table: Table) -> list[str]:
    """The columns, less an index in the first one; all where there is no other."""
    names = list(table.names)
    return names[1:] if len(names) > 1 and is_index(table, names[0]) else names


def is_index(table: Table, column: str) -> bool:
    """Whether the first column has no name and counts 0, 1, 2, or 1, 2, 3."""
    if column != table.names[0] or (column.strip() and not column.startswith("Unnamed:")):
        return False
    numbers = as_numbers(table.frame[column])
    return bool(len(numbers)) and any((numbers == np.arange(first, first + len(numbers))).all() for first in (0, 1))


def _fits(
    nodes: Table, edges: Table, ident: str | None, first: str, ends: tuple[str, str] | None, named: tuple[str, str]
) -> _Fits:
    """What the columns that may be ids and ends have in common."""
    ids = [ident] if ident is not None else [first, *(c for c in _identifying(nodes) if c != first)]
    tried = list(ends or ())
    if not tried:
        tried = [c for c in edges.names if c in named or c.lower() not in WEIGHTS]
        tried = [c for c in tried if c in named or not (is_index(edges, c) or is_measure(c))]
    shared: dict[tuple[str, str], int] = {}
    size: dict[str, int] = {}
    known = {i: pd.Index(nodes.frame[i].dropna().astype(object)) for i in ids}
    for c in tried:
        values = pd.Index(pd.unique(edges.frame[c].dropna()), dtype=object)
        size[c] = len(values)
        for i in ids:
            shared[i, c] = int(values.isin(known[i]).sum())
    return _Fits(nodes, edges, tuple(ids), tuple(tried), size, shared)


def _identifying(nodes: Table) -> list[str]:
    """The columns that tell all nodes apart."""
    return [c for c in nodes.names[:_LOOKED_AT] if not nodes.frame[c].isna().any() and nodes.frame[c].is_unique]


def _ends(found: _Fits, ident: str, named: tuple[str, str]) -> tuple[str, str]:
    """The two columns whose values are ids, the named ones unless others fit far better."""
    pairs = [
        (min(found.shared[i, a], found.shared[i, b]), a, b, i)
        for i in found.ids
        for a, b in combinations(found.ends, 2)
        if found.fits(i, (a, b))
    ]
    if not pairs:
        return named
    most = max(n for n, *_ in pairs)
    rivals = list(dict.fromkeys((a, b) for n, a, b, _ in pairs if n * _FEWER > most))
    if named in rivals or named[::-1] in rivals:
        apart = [p for p in rivals if not {*p} & {*named}]
        if _are_called_ends(found.edges, named):
            rivals = [named, *apart]
    if len(rivals) > 1:
        listed = ", or ".join(f"{a!r} and {b!r}" for a, b in rivals[:3])
        by = next(i for _, a, b, i in pairs if (a, b) == rivals[0])
        joins = found.joins(by, [c for pair in rivals[:3] for c in pair])
        raise GraphError(
            f"{found.edges.file}: {listed} could be the ends of edges, as their values are ids of "
            f"{found.nodes.file} ({joins}); name the two in dataset.yaml (edges: source and target), or on the Data page"
        )
    return rivals[0]


def _are_called_ends(edges: Table, ends: tuple[str, str]) -> bool:
    return any(tuple(map(edges.column, pair)) == ends for pair in ENDS)


def _id(found: _Fits, named: str, ends: tuple[str, str]) -> str:
    """The column whose values the ends use."""
    fit = [i for i in found.ids if found.fits(i, ends)]
    own = [i for i in fit if not is_index(found.nodes, i)]
    fit = own or fit
    if not fit:
        return max(found.ids, key=lambda i: (sum(found.shared[i, e] for e in ends), i == named))
    frame = found.nodes.frame
    first = named if named in fit else fit[0]
    rivals = [i for i in fit if i != first and not (frame[i] == frame[first]).all()]
    if rivals:
        raise GraphError(
            f"{found.nodes.file}: the ends of edges fit {first!r} and {rivals[0]!r} alike ({first}: "
            f"{found.joins(first, ends)}; {rivals[0]}: {found.joins(rivals[0], ends)}), and these two differ, so that "
            "each would join other people; name the one that edges refer to in dataset.yaml (nodes: id), or take the "
            "other out of the file"
        )
    return first


def _by_values(table: Table, chosen: str, other: str, what: str) -> Message:
    """The warning that values decided."""
    text = f"{table.file}: {chosen!r} holds {what}, by their values; {other or 'the column without a name'!r} does not"
    if not other.strip() or other.startswith("Unnamed:"):
        text = f"{table.file}: {chosen!r} holds {what}; the first column, which has no name and counts, was taken for row numbers"
    return Message("warning", "columns-by-values", text, remedy="if that is wrong, name the columns in dataset.yaml")
