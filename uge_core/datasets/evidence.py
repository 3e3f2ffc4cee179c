"""What the columns of two tables are, by what the tables share: ids are the values that the other table uses.

A name is a hint. A column called id that no edge refers to is not the id, ends of edges are the columns whose values
are node ids, and a first column without a name that counts 0, 1, 2 is the index of whoever wrote the file. Where two
readings fit about as well the choice is the user's, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

import numpy as np
import pandas as pd

from uge_core.datasets.assemble import WEIGHTS
from uge_core.datasets.edge_columns import no_edges
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
        "value",
        "values",
        "sign",
        "distance",
        "similarity",
        "closeness",
        "amount",
        "price",
        "duration",
        "times",
        "time",
        "timestamp",
        "date",
        "year",
        "month",
        "week",
        "weekday",
        "day",
        "hour",
        "minute",
        "since",
        "until",
        "wave",
        "round",
        "nr",
        "num",
        "number",
        "rank",
        "order",
        "position",
        "layer",
    ]
)
_COUNTS = frozenset(["nr", "num", "number"])
_WHO = frozenset(["id", "ids", "user", "person", "member", "people", "node", "source", "target", "from", "to"])
_PEOPLE = re.compile(
    r"user|person|people|friend|member|follow|contact|alter|ego|peer|neighbo|mate|colleague|partner|sibling|parent|child|"
    r"spouse|node|source|target|from|to$|dst|src|sender|receiver|recipient|other|student|pupil|employee|who|nomin|trust|"
    r"actor|author|subject|[uv]id$|advis|invite|refer|mentor|reply|boss|manager|\d|^[a-z]$|(?:er|or|ee)s?(?:_?id)?$",
    re.IGNORECASE,
)
_ITEMS = re.compile(
    r"item|movie|film|book|isbn|artist|product|track|song|album|club|course|group|event|page|business|restaurant|place|"
    r"venue|post|article|show|game|recipe|hotel|job|company|school|channel|community|project|city|shop|store|brand|"
    r"category|beer|anime|video|order|paper|poster|software",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SMALLEST_MATRIX = 4
_LOOKED_AT = 60  # columns of the nodes among which the id is sought
_SAMPLE = 200  # different values of an end by which a column of the nodes is tried first
MOST = 0.5  # share of an end's different values that are ids, above which a column fits
_FLAWED = 0.75  # the same for an id column with empty or repeated cells, and its share of different cells
_MOST_ALTERS = 100  # a person names at most, where a list counts them anew for each
_FEWEST_EGOS = 3
_SPARSE = 10
_FEWER = 3.0  # a pair of columns that names so many times fewer nodes is no rival


@dataclass(frozen=True)
class Reading:
    """Which columns join two tables.

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
class Fits:
    """How many different values of each column of the edges are ids, by column of the nodes.

    Attributes:
        nodes: one row per node.
        edges: one row per edge.
        ids: the columns of the nodes that may be the id.
        ends: the columns of the edges that may be ends.
        different: how many different values each of `ends` has.
        shared: how many of them are values of an id column.
        flawed: those of `ids` with empty or repeated cells.
    """

    nodes: Table
    edges: Table
    ids: tuple[str, ...]
    ends: tuple[str, ...]
    different: dict[str, int]
    shared: dict[tuple[str, str], int] = field(repr=False)
    flawed: frozenset[str] = frozenset()

    def share(self, ident: str, end: str) -> float:
        """The share of an end's different values that are ids; 0 for a column that was not tried."""
        return self.shared.get((ident, end), 0) / max(self.different.get(end, 0), 1)

    def joins(self, ident: str, ends: Sequence[str]) -> str:
        """How many different values of each end are ids, in words."""
        return ", ".join(f"{e} {self.shared[ident, e]:,} of {self.different[e]:,}" for e in dict.fromkeys(ends))

    def fits(self, ident: str, ends: Sequence[str]) -> bool:
        """Whether most values of each end are ids."""
        return all(self.share(ident, e) > (_FLAWED if ident in self.flawed else MOST) for e in ends)


def id_and_ends(
    nodes: Table, edges: Table, *, ident: str | None = None, ends: tuple[str, str] | None = None, one_kind: bool = True
) -> Reading:
    """The id of the nodes and the ends of the edges.

    Args:
        nodes: one row per node.
        edges: one row per edge.
        ident: the id, where the user says it.
        ends: the ends, where the user says them; twice the same where the other names no node.
        one_kind: whether all nodes are of one kind, so that ends called user and movie are asked for.

    Returns:
        The columns by name, where values do not say otherwise. Ids without a row are no error here: `ids` counts and
        refuses them.

    Raises:
        GraphError: two readings fit about as well, or the edges have one column, or are a matrix.
    """
    if ident is not None and ends is not None:
        refuse_matrix(edges)
        return Reading(ident, *ends)
    reading, _, doubt = weigh(nodes, edges, ident=ident, ends=ends, one_kind=one_kind)
    if doubt:
        raise GraphError(doubt)
    return reading


def weigh(
    nodes: Table, edges: Table, *, ident: str | None = None, ends: tuple[str, str] | None = None, one_kind: bool = True
) -> tuple[Reading, Fits, str]:
    """The same as `id_and_ends`, with the counts that decided, and why it is no answer, or nothing."""
    refuse_matrix(edges)
    named_id, named_ends = ident or guess_id(nodes), ends or guess_ends(edges)
    counts = _fits(nodes, edges, ident, named_id, ends, named_ends)
    chosen, doubt = (named_ends, "") if ends is not None else _ends(counts, named_ends)
    best, alike = (named_id, "") if ident is not None else _id(counts, named_id, chosen)
    messages = []
    first = nodes.names[0]
    if best not in (named_id, first) and is_index(nodes, first):
        named_id = first
    if best != first and is_index(nodes, first) and (first in counts.ids and counts.fits(first, chosen)):
        messages.append(_by_values(nodes, [best], [first], "ids that edges use"))
    elif best != named_id:
        messages.append(_by_values(nodes, [best], [named_id], "ids that edges use"))
    if set(chosen) != set(named_ends):
        messages.append(_by_values(edges, chosen, named_ends, "ends of edges"))
    reading = Reading(best, *chosen, tuple(messages))
    doubt = doubt or alike
    if not doubt and ends is None and counts.fits(best, chosen) and not called_ends(edges):
        doubt = no_edges(edges, reading.ends, edges.column(*WEIGHTS)) or _counts_anew(counts, reading)
        doubt = doubt or (_two_kinds(counts, reading) if one_kind else "")
        doubt = doubt or _more_ends(counts, reading)
    return reading, counts, doubt


def two_sides(users: Table, items: Table | None, edges: Table, ident: str | None) -> tuple[str, str]:
    """The column of the edges that names a user, and the one that names an item.

    Args:
        users: one row per user.
        items: one row per item, or None.
        edges: one row per edge.
        ident: the id of the users, where it is said.

    Raises:
        GraphError: either of two columns may name users.
    """
    refuse_matrix(edges)
    named = guess_ends(edges)

    def holds(nodes: Table | None, own: str | None, end: str) -> bool:
        if nodes is None:
            return True
        counts = _fits(nodes, edges, own, own or guess_id(nodes), (end, end), named)
        return any(counts.fits(i, (end,)) for i in counts.ids)

    fit = [p for p in (named, named[::-1]) if holds(users, ident, p[0]) and holds(items, None, p[1])]
    if len(fit) < 2:
        return next(iter(fit), named)
    own = ident or guess_id(users)
    for user, item in fit:
        likely = edges.column(own) == user or (_ITEMS.search(item) and not _ITEMS.search(user))
        if likely and edges.column(own) != item:
            return user, item
    # A column called like a person's is the user's where the other is not.
    people = [c for c in named if _PEOPLE.search(c)]
    if len(people) == 1 and not edges.headless:
        return named if people == [named[0]] else named[::-1]
    raise GraphError(
        f"{edges.file}: {named[0]!r} and {named[1]!r} both hold ids of {users.file}; say in dataset.yaml which names the "
        "user and which the item (edges: source and target)"
    )


def is_measure(name: str) -> bool:
    """Whether a column's name says how much or when, and not who."""
    words = _words(name)
    return bool(words & _MEASURES) and not words & _WHO


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(name)}


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
    who = [n for n in names if not is_measure(n)]
    names = who if len(who) > 1 else names
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
) -> Fits:
    """What the columns that may be ids and ends have in common."""
    tried = list(dict.fromkeys(ends or ()))
    if not tried:
        tried = [c for c in edges.names if c in named or c.lower() not in WEIGHTS]
        tried = [c for c in tried if c in named or not (is_index(edges, c) or is_measure(c))]
    # Sets of Python's own: pandas' isin takes seconds where it looks for many texts.
    values = {c: _different(edges.frame[c]) for c in tried}
    apart = {} if ident is not None else _identifying(nodes, values)
    ids = [ident] if ident is not None else [first, *(c for c in apart if c != first)]
    shared: dict[tuple[str, str], int] = {}
    for i in ids:
        known = _different(nodes.frame[i])
        shared |= {(i, c): len(own & known) for c, own in values.items()}
    different = {c: len(own) for c, own in values.items()}
    flawed = frozenset(c for c, whole in apart.items() if not whole)
    return Fits(nodes, edges, tuple(ids), tuple(tried), different, shared, flawed)


def _different(cells: pd.Series) -> frozenset[str]:
    """The different cells that are not empty."""
    return frozenset(np.asarray(cells.dropna().unique(), dtype=object))


def _identifying(nodes: Table, values: Mapping[str, frozenset[str]]) -> dict[str, bool]:
    """The columns that tell nodes apart and hold some of the ends' values, and whether they tell all apart."""
    some = [sorted(islice(own, _SAMPLE)) for own in values.values() if own]
    out = {}
    for c in nodes.names[:_LOOKED_AT]:
        cells = nodes.frame[c]
        if not any(_sample_fits(cells, few) for few in some):
            continue
        whole = bool(cells.is_unique and not cells.isna().any())
        if whole or cells.nunique() >= _FLAWED * len(cells):
            out[c] = whole
    return out


def _sample_fits(cells: pd.Series, few: list[str]) -> bool:
    """Whether a quarter of some values are among the cells, which is half of `MOST`, as samples vary."""
    return bool(cells[cells.isin(few)].nunique() * 4 >= len(few))


def _ends(counts: Fits, named: tuple[str, str]) -> tuple[tuple[str, str], str]:
    """The two columns whose values are ids, the named ones unless others fit far better; and why that is no answer."""
    pairs = [
        (min(counts.shared[i, a], counts.shared[i, b]), (a, b), i)
        for a, b in combinations(counts.ends, 2)
        for i in counts.ids
        if counts.fits(i, (a, b))
    ]
    own = next((pair for _, pair, _ in pairs if {*pair} == {*named}), None)
    # Columns that name far fewer nodes than the named ones would are no ends, though the named ones join nothing.
    most = max([n for n, *_ in pairs], default=0) if own else min(counts.different[c] for c in named)
    rivals = list(dict.fromkeys(pair for n, pair, _ in pairs if n * _FEWER > most))
    if not rivals:
        return named, ""
    own = own if own in rivals else None
    if own and called_ends(counts.edges):
        rivals = [named, *(pair for pair in rivals if not {*pair} & {*named})]
    if len(rivals) == 1:
        return (named if own == rivals[0] else rivals[0]), _how_much(counts, rivals[0])
    by = {frozenset(pair): i for _, pair, i in reversed(pairs)}
    listed = ", or ".join(f"{a!r} and {b!r}" for a, b in rivals[:3])
    joins = "; ".join(counts.joins(by[frozenset(pair)], pair) for pair in rivals[:3])
    text = (
        f"{counts.edges.file}: {listed} could be the ends of edges, as their values are ids of "
        f"{counts.nodes.file} ({joins}); name the two in dataset.yaml (edges: source and target), or on the Data page"
    )
    return named if own else rivals[0], text


def _how_much(counts: Fits, ends: tuple[str, str]) -> str:
    """Why ends are none where the name of one says how much or when."""
    measure = next((c for c in ends if is_measure(c)), None)
    if measure is None or called_ends(counts.edges):
        return ""
    return (
        f"{counts.edges.file}: column {measure!r} is called like a number or a time, though its values are ids of "
        f"{counts.nodes.file} as well; if it is an end, name both in dataset.yaml (edges: source and target), else add "
        "the column that holds the other end"
    )


def called_ends(edges: Table) -> bool:
    """Whether two columns are called like the ends of edges."""
    return any(None not in tuple(map(edges.column, pair)) for pair in ENDS)


def _id(counts: Fits, named: str, ends: tuple[str, str]) -> tuple[str, str]:
    """The column whose values the ends use; and why that is no answer."""
    fit = [i for i in counts.ids if counts.fits(i, ends)]
    fit = [i for i in fit if not is_index(counts.nodes, i)] or fit
    if not fit and named.lower() in IDS:
        return named, ""
    if not fit:
        nearest = max(counts.ids, key=lambda i: (sum(counts.share(i, e) for e in ends), i == named))
        if counts.nodes.frame[nearest].is_unique:
            return nearest, ""
        return nearest, (
            f"{counts.nodes.file}: no column holds the ids that edges use, and values of {nearest!r} repeat, so that it is "
            f"no id; add a column id with what {' and '.join(dict.fromkeys(ends))} of {counts.edges.file} refer to"
        )
    if is_measure(named) and len(fit) == 1 and fit[0] == named and not {*_words(named)} & _COUNTS:
        return named, (
            f"{counts.nodes.file}: column {named!r} holds the ends of edges, but is called like a number or a time and no id; "
            "if it is the id, name it in dataset.yaml (nodes: id), else add the column of ids"
        )
    frame = counts.nodes.frame
    whole = [i for i in fit if i not in counts.flawed] or fit
    first = named if named in whole else whole[0]
    rivals = [i for i in fit if i != first and not (frame[i] == frame[first]).all()]
    alike = f"{first!r} and {rivals[0]!r} alike" if rivals else ""
    if rivals and rivals[0] in counts.flawed:
        alike += f", though {rivals[0]!r} has empty or repeated cells"
    if not rivals:
        rivals = [c for c in counts.nodes.names[:_LOOKED_AT] if c != first and _fits_bare(counts, c, first, ends)]
        if not rivals:
            return first, ""
        return first, (
            f"{counts.nodes.file}: the ends of edges are in {first!r}, and their numbers in {rivals[0]!r}, whose cells "
            f"are written otherwise ({frame[rivals[0]].dropna().iloc[0]!r}): each would join other people; write ids in the "
            "same way in both files, or name the id in dataset.yaml (nodes: id)"
        )
    text = (
        f"{counts.nodes.file}: the ends of edges fit {alike} ({first}: "
        f"{counts.joins(first, ends)}; {rivals[0]}: {counts.joins(rivals[0], ends)}), and these two differ, so that "
        "each would join other people; name the one that edges refer to in dataset.yaml (nodes: id) or on the Data "
        "page, or take the other out of the file"
    )
    return first, text


def _fits_bare(counts: Fits, column: str, first: str, ends: tuple[str, str]) -> bool:
    """Whether the ends' values are in another column of the nodes too, but for letters or zeros in front, or .0 behind."""
    cells = counts.nodes.frame[column]
    if not cells.head(_SAMPLE).str.fullmatch(r"0\d+|\d+\.0+|[^\d\s]{1,2}\d+").any():
        return False
    numbers = as_numbers(counts.nodes.frame[first])
    counts_rows = bool((numbers == np.arange(len(numbers)) + numbers[0]).all())  # and so may be a row number
    written = r"0\d+" + r"|\d+\.0+" * (first.lower() not in IDS) + r"|[^\d\s]{1,2}\d+" * counts_rows
    if not cells.head(_SAMPLE).str.fullmatch(written).any() or cells.nunique() < _FLAWED * len(cells):
        return False
    bare = _bare(cells)
    if (bare == _bare(counts.nodes.frame[first])).all():  # the same numbers for the same nodes
        return False
    known = set(bare.dropna())
    return all(
        _bare(pd.Series(counts.edges.frame[e].dropna().unique(), dtype="str")).isin(known).mean() > MOST for e in ends
    )


def _bare(cells: pd.Series) -> pd.Series:
    """Cells without letters and zeros in front, and without .0 behind."""
    return cells.str.replace(r"^[^\d]*0*(?=\d)|\.0+$", "", regex=True)


def _counts_anew(counts: Fits, reading: Reading) -> str:
    """Why an end is none where it counts 1, 2, 3 anew for each value of the other."""
    frame = counts.edges.frame
    for one, other in (reading.ends, reading.ends[::-1]):
        few = counts.different.get(other, 0)
        if not 1 < few <= _MOST_ALTERS or not is_numeric(counts.edges, other):
            continue
        numbers = pd.Series(as_numbers(frame[other]), index=frame.index)
        of_each = numbers.groupby(frame[one])
        last = of_each.max()
        anew = (of_each.min() == 1) & (last == of_each.size()) & (last == of_each.nunique())
        if len(last) >= _FEWEST_EGOS and anew.all():
            return (
                f"{counts.edges.file}: column {other!r} counts 1, 2, 3 anew for each {one!r}, so that a number means "
                f"another person each time, though numbers are ids of {counts.nodes.file} too; write ids that are the "
                "same in all rows, or name the ends in dataset.yaml (edges: source and target)"
            )
    return ""


def _two_kinds(counts: Fits, reading: Reading) -> str:
    """Why rows of the nodes may be only one end's, the other end being items, by the names."""
    nodes, edges = counts.nodes, counts.edges
    numbers = as_numbers(nodes.frame[reading.id])
    # Texts, and numbers with wide gaps, are no ids of others by chance.
    if edges.headless or np.isnan(numbers).any() or np.ptp(numbers) >= _SPARSE * len(numbers):
        return ""
    twin = edges.column(reading.id)
    for one, other in (reading.ends, reading.ends[::-1]):
        items = [_ITEMS.search(c) is not None for c in (one, other)]
        apart = items[0] != items[1] or not _PEOPLE.search(other)
        if apart if twin == one else items == [False, True] and twin != other:
            return (
                f"{edges.file} and {nodes.file}: two readings fit about as well, as {counts.share(reading.id, one):.1%} of "
                f"{one} and {counts.share(reading.id, other):.1%} of {other} are ids in {reading.id}: both ends are rows "
                f"of {nodes.file}, or {other} names others that no file describes; say which in dataset.yaml with the "
                "keys edges (file, source, target) and nodes (file, id) for the first, users (file, id) in place of nodes "
                "for the second"
            )
    return ""


def _more_ends(counts: Fits, reading: Reading) -> str:
    """Why two ends are not all: a further column of the edges is called like one, or holds texts that are ids."""
    if counts.edges.headless:
        return ""
    stems = {re.sub(r"[\W_\d]+", "", end).lower() for end in reading.ends}
    for column in counts.ends:
        if column in reading.ends or counts.share(reading.id, column) <= MOST:
            continue
        if re.sub(r"[\W_\d]+", "", column).lower() in stems or not is_numeric(counts.edges, column):
            return (
                f"{counts.edges.file}: column {column!r} holds ids of {counts.nodes.file} too, beside the ends "
                f"{reading.source!r} and {reading.target!r}; write a row for each edge, with two ends, or take the column "
                "out"
            )
    return ""


def is_numeric(table: Table, column: str) -> bool:
    """Whether all cells of a column are numbers, or empty."""
    cells = table.frame[column].dropna()
    return not np.isnan(as_numbers(cells)).any()


def _by_values(table: Table, chosen: Sequence[str], others: Sequence[str], what: str) -> Message:
    """The warning that values decided."""
    if is_index(table, others[0]):
        text = (
            f"the first column, which has no name and counts, was taken for row numbers; {chosen[0]!r} holds the {what}"
        )
    elif len(chosen) > 1:
        text = f"by their values {chosen[0]!r} and {chosen[1]!r} hold the {what}, and {others[0]!r} and {others[1]!r} do not"
    else:
        text = f"by its values {chosen[0]!r} holds the {what}, and {others[0]!r} does not"
    remedy = "if that is wrong, name the columns in dataset.yaml"
    return Message("warning", "columns-by-values", f"{table.file}: {text}", remedy=remedy)
