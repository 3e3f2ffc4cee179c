"""What the columns of two unknown tables are: guessed from names and values, and written as a ``dataset.yaml``.

Ids are found by what the tables share: the column of the nodes whose cells stand in most columns of the
edges. Whoever knows the data confirms or changes the guess; `join_counts` says
what would fit.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import yaml

from uge_core.datasets.assemble import LIKE_WEIGHTS, WEIGHTS
from uge_core.datasets.bounded import refuse_link_out
from uge_core.datasets.card import FILE, read_card
from uge_core.datasets.columns import MANY_NUMBERS, MAX_TEXTS, Role, assign
from uge_core.datasets.evidence import IDS, MOST, called_ends, is_index, is_measure, is_numeric, uneven, weigh
from uge_core.datasets.findings import decimal_numbers, probable_codes, words_not_given
from uge_core.datasets.ids import by_id, written_alike
from uge_core.datasets.layouts.base import Folder
from uge_core.datasets.layouts.tables import read_any
from uge_core.datasets.roots import check_root
from uge_core.datasets.tables import Table, as_numbers, refuse_numbers_as_header
from uge_core.errors import DatasetMissing, GraphError, escaped

Sides = Literal["one", "items", "column"]
USES = ("attribute", "feature", "ignored")
READABLE = (
    ".csv",
    ".tsv",
    ".txt",
    ".dat",
    ".parquet",
    ".xlsx",
    ".csv.gz",
    ".tsv.gz",
    ".txt.gz",
    ".dat.gz",
    ".edges",
    ".edgelist",
    ".node_labels",
)
"""Endings of the files that a mapping may name."""

LIKE_EDGES = re.compile(
    r"edge|link|friend|follow|relation|pair|contact|rating|interact|network|tie|order|purchase|transaction|play|visit|click",
    re.IGNORECASE,
)
_LIKE_NODES = re.compile(r"node|people|person|user|member|attribute|profile|target", re.IGNORECASE)
_NO_DATA = re.compile(r"readme|licen[cs]e|requirements", re.IGNORECASE)
LIKE_SENSITIVE = re.compile(
    r"(?:^|[\W_\d])(?:gender|sex|age|race|birth\w*|ethnic\w*|religio\w*|nation\w*|country|region|origin|disab\w*|marital\w*|"
    r"orientation|citizen\w*|migra\w*|language)(?:$|[\W_\d])",
    re.IGNORECASE,
)
_LOOKED_AT = 60  # columns of the nodes among which the one that tells the sides is sought
_OWN = 0.9
_FEW_OF = 10  # rows for each different value, from which on values are groups rather than ids
_SAMPLE = 200
_FEWEST_ITEMS = 3
_MOST_TEXTS = 1_000
_FIRST = 3
_BINS = "quantile:5"
"""What makes groups of a number until somebody says otherwise."""


@dataclass(frozen=True)
class Use:
    """How one column of the nodes is used.

    Attributes:
        column: its name.
        use: attribute, feature or ignored.
        sensitive: an audit should begin with it.
        missing: cells that mean "not given", besides the empty one.
        bins: "quantile:5", "width:10", or rising numbers with commas; empty: every value is a group.
    """

    column: str
    use: str = "attribute"
    sensitive: bool = False
    missing: tuple[str, ...] = ()
    bins: str = ""


@dataclass(frozen=True)
class TableMap:
    """What is what in a file of edges and a file of nodes.

    Attributes:
        edges: name of the file with one row per edge.
        nodes: name of the file with one row per node.
        source: the column with one end.
        target: the column with the other.
        id: the column of the nodes that the ends refer to.
        columns: the other columns of the nodes.
        sides: "one" kind of node; "items": the target is an item that no file describes; "column": a column of the
            nodes tells.
        side_column: that column.
        users: its value for people.
        weight: the column with edge weights, or None.
        directed: each row runs from source to target.
        unknown_nodes: "refuse", "drop" or "add": what is done about edges that name a node without a row.
        separator: one character, or empty for the first line's.
        encoding: of both files, or empty for UTF-8.
        edges_header: whether the first line of the edges names the columns; None: unless it is like the lines below.
        nodes_header: the same of the nodes.
        name: what the graph is called, or empty.
        licence: repeated where the data are shown.
        origin: where they are from, repeated too.
        doubt: the other reading that fits about as well, in words, or empty.
    """

    edges: str
    nodes: str
    source: str
    target: str
    id: str
    columns: tuple[Use, ...] = ()
    sides: Sides = "one"
    side_column: str = ""
    users: str = ""
    weight: str | None = None
    directed: bool = False
    unknown_nodes: str = "refuse"
    separator: str = ""
    encoding: str = ""
    edges_header: bool | None = None
    nodes_header: bool | None = None
    name: str = ""
    licence: str = ""
    origin: str = ""
    doubt: str = ""


@dataclass(frozen=True, eq=False)
class TablePair:
    """Two tables that were read for a mapping."""

    edges: Table
    nodes: Table


@dataclass(frozen=True)
class ColumnValues:
    """What stands in a column of the nodes.

    Attributes:
        different: how many different values it has.
        commonest: the most frequent few.
        bins: what makes groups of its numbers where they are decimal or many, else empty.
        decimal: its numbers are decimal, which makes no groups as they are.
    """

    different: int
    commonest: str
    bins: str = ""
    decimal: bool = False


@dataclass(frozen=True)
class Join:
    """How the ends of the edges meet the ids of the nodes.

    Attributes:
        ids: different ids among the ends that should be nodes.
        joined: how many of them are nodes.
        orphans: the others.
        first: a few of those.
        lonely: nodes without an edge.
        repeated: rows of the nodes that repeat an id or have none.
    """

    ids: int
    joined: int
    orphans: int
    first: tuple[str, ...]
    lonely: int
    repeated: int


def readable_files(folder: str | Path) -> tuple[str, ...]:
    """The files of a folder that a mapping may name: what looks most like edges first, then what looks like nodes.

    Raises:
        DatasetMissing: the folder cannot be listed.
    """
    check_root(Path(folder))
    files = Folder.open(Path(folder)).files
    names = [f for f in files if f.lower().endswith(READABLE) and not _NO_DATA.search(f)]
    names.sort(key=lambda n: (not LIKE_EDGES.search(n), not _LIKE_NODES.search(n), n))
    rest = sorted(names[1:], key=lambda n: (not _LIKE_NODES.search(n), LIKE_EDGES.search(n) is not None, n))
    return (*names[:1], *rest)


def mapping_folder(spec: str) -> Path | None:
    """The folder whose files a mapping for `spec` would name, or None where there is none with two tables."""
    try:
        path = Path(spec).expanduser()
        folder = path if path.is_dir() else path.parent if path.is_file() else None
        return folder.resolve() if folder is not None and len(readable_files(folder)) > 1 else None
    except (OSError, RuntimeError, ValueError, GraphError):
        return None


def read_pair(
    folder: str | Path,
    edges: str,
    nodes: str,
    separator: str = "",
    encoding: str = "",
    *,
    edges_header: bool | None = None,
    nodes_header: bool | None = None,
) -> TablePair:
    """Both files as tables; what they are read by as in `TableMap`.

    Raises:
        DatasetMissing: a file is not there.
        GraphError: a file cannot be read, or begins with a row instead of a header.
    """
    made = []
    for name, header, said in ((edges, "source,target", edges_header), (nodes, "id,attribute", nodes_header)):
        path = Path(folder) / name
        check_root(path)
        if not path.is_file():
            raise DatasetMissing(f"{path}: no such file; choose one that is there")
        refuse_link_out(path)
        table = read_any(path, separator or None, encoding or "utf-8-sig", header=_header(name, said))
        if not said:
            refuse_numbers_as_header(table, header)
        made.append(table)
    if len(made[0].names) < 2:
        raise GraphError(
            f"{edges}: has one column ({made[0].names[0]}), two are needed; choose another separator or file"
            f"{uneven(made[0].names[0])}"
        )
    return TablePair(*made)


def table_roles(folder: str | Path, edges: str, nodes: str, separator: str = "", encoding: str = "") -> tuple[str, str]:
    """The file of edges and that of nodes, by what is in the two; as given where that fits, or none is read.

    Edges have one or two columns of ends, nodes an id of their own in each row that these ends name, and something said
    of each node. Files that fit so as they were given stay so, even where they would fit the other way round too.
    """
    try:
        pair = read_pair(folder, edges, nodes, separator, encoding)
    except GraphError:
        try:
            read_pair(folder, nodes, edges, separator, encoding)
        except GraphError:
            return edges, nodes
        return nodes, edges
    as_given, exchanged = _fit(pair), _fit(TablePair(pair.nodes, pair.edges))
    return (nodes, edges) if exchanged.joins and exchanged > as_given and not as_given.possible else (edges, nodes)


class _Fit(NamedTuple):
    """How well two tables fit as edges and nodes; larger is better, what is said first counts most.

    Attributes:
        joins: some ends are ids.
        own: share of the rows of the nodes with an id of their own, to a tenth: ids in a table of edges repeat, while a
            row too much is a slip.
        tells: a column of the nodes says something of them; a table of nothing but ids is one of edges.
        most: most ends are ids.
        sure: no other reading of the columns fits about as well.
        both: both ends are nodes. Items that no file describes are as good a graph, so this counts late.
        share: of the different ends those that are ids.
    """

    joins: bool = False
    own: float = 0.0
    tells: bool = False
    most: bool = False
    sure: bool = False
    both: bool = False
    share: float = 0.0

    @property
    def possible(self) -> bool:
        """Nothing says that the two tables are exchanged."""
        return self.joins and self.own >= _OWN and self.tells and self.most


def _fit(pair: TablePair) -> _Fit:
    if len(pair.edges.names) < 2:
        return _Fit()
    try:
        made = guess_mapping(pair)
        counts = join_counts(pair, made)
    except GraphError:
        return _Fit()
    share = counts.joined / max(counts.ids, 1)
    return _Fit(
        joins=counts.joined > 0,
        own=round(1 - counts.repeated / max(len(pair.nodes), 1), 1),
        tells=_tells(pair.nodes, made.id),
        most=share > MOST,
        sure=not made.doubt,
        both=made.sides != "items",
        share=share,
    )


def _tells(nodes: Table, ident: str) -> bool:
    """Whether a column besides the id says something of the nodes: it is no measure and does not name other nodes."""
    ids = set(nodes.frame[ident].dropna())
    for column in nodes.names:
        if column == ident or column.lower() in (*WEIGHTS, *LIKE_WEIGHTS) or is_measure(column):
            continue
        different = pd.Series(nodes.frame[column].dropna().unique(), dtype=object)
        # Few numbers may be ids by chance, as 0 and 1 are.
        few = len(different) * _FEW_OF <= len(nodes)
        if len(different) and (few or LIKE_SENSITIVE.search(column) or different.isin(ids).mean() <= MOST):
            return True
    return False


def guess_mapping(pair: TablePair) -> TableMap:
    """What the columns probably are; where two readings fit about as well, the first, with a doubt that names both.

    Raises:
        GraphError: the edges are a matrix, or have one column.
    """
    edges, nodes = pair.edges, pair.nodes
    reading, counts, doubt = weigh(nodes, edges)
    source, target = reading.ends
    sides: Sides = "one"
    likely = [c for c in counts.ends if counts.share(reading.id, c) > MOST]
    # movieId of the ratings is movieId of the movies, and userId beside it counts other people
    twin = edges.column(reading.id) if reading.id.lower() not in IDS and not edges.headless else None
    # by chance only where ids are numbers
    others = [c for c in likely if c != twin and is_numeric(edges, c)]
    if twin in likely and others and not called_ends(edges):
        source, target, sides = str(twin), others[0], "items"
    elif len({source, target} & set(likely)) < 2:
        end, ident = max(((e, i) for e in counts.ends for i in counts.ids), key=lambda p: counts.share(p[1], p[0]))
        if counts.share(ident, end) > MOST:
            sides, source = "items", end
            target = target if target != source and called_ends(edges) else _items(edges, source)
            reading, _, doubt = weigh(nodes, edges, ends=(source, source))
            doubt = doubt or _no_items(pair, reading.id, target)
    weight = edges.column(*WEIGHTS, *LIKE_WEIGHTS)
    if weight in (source, target) or (weight and not (as_numbers(edges.frame[weight]) >= 0).all()):
        weight = None
    made = TableMap(edges.file, nodes.file, source, target, reading.id, weight=weight, sides=sides, doubt=doubt)
    if sides == "one":
        made = _with_sides(pair, made)
    return with_columns(pair, made)


def _items(edges: Table, source: str) -> str:
    """The column of the items, which are named again and again: a number of its own in nearly every row is a measure."""
    rest = [c for c in edges.names if c != source and not is_index(edges, c)] or [c for c in edges.names if c != source]
    rest = [c for c in rest if c.lower() not in (*WEIGHTS, *LIKE_WEIGHTS) and not is_measure(c)] or rest
    different = {c: edges.frame[c].nunique() for c in rest}
    again = [c for c in rest if different[c] <= _OWN * len(edges) or not is_numeric(edges, c)]
    return max(again or rest, key=lambda c: different[c])


def _no_items(pair: TablePair, ident: str, target: str) -> str:
    """Why a column holds no items, or nothing."""
    cells, ids = pair.edges.frame[target], pair.nodes.frame[ident].dropna()
    lists = cells.dropna().head(_SAMPLE).str.split(r"[;,|\s]+", regex=True).explode()
    if cells.str.contains(r"[;,|]", na=False).any() and lists.isin(ids).mean() > MOST:
        return (
            f"{pair.edges.file}: column {target!r} holds lists of ids of {pair.nodes.file} in single cells; write a row for "
            "each edge, with two ends"
        )
    different = pd.Series(cells.dropna().unique(), dtype="str")
    alike, how, remedy = written_alike(different, pd.Index(ids.unique()))
    if alike.mean() > MOST:
        return (
            f"{pair.edges.file}: column {target!r} would hold items that no file describes, but {int(alike.sum()):,} of its "
            f"{len(different):,} different values would be ids {how} ({different[alike].iloc[0]!r}); {remedy}"
        )
    if cells.nunique() < _FEWEST_ITEMS:
        return (
            f"{pair.edges.file}: no second column holds ids of {pair.nodes.file} or items ({target!r} has "
            f"{cells.nunique()} different values); add the column with the other end of each edge"
        )
    return ""


def with_columns(pair: TablePair, made: TableMap) -> TableMap:
    """The same with a use for every column besides the id and the sides: what it says, else what is probable."""
    said = {u.column: u for u in made.columns}
    uses = _uses(pair.nodes, {made.id, made.side_column if made.sides == "column" else ""})
    return replace(made, columns=tuple(said.get(u.column, u) for u in uses))


def written_mapping(folder: str | Path) -> TableMap | None:
    """The mapping that a folder's dataset.yaml holds, or None where there is none that this form could have written."""
    try:
        check_root(path := Path(folder) / FILE)
        card = read_card(path)
    except GraphError:
        return None
    nodes = card.get("users.file") or card.get("nodes.file")
    source, target = (str(card.get(k) or "") for k in ("edges.source", "edges.target"))
    ident = card.get("users.id") or card.get("nodes.id")
    unasked = [f"{part}.columns" for part in ("edges", "nodes", "users")]
    if card.get("items.file") or not (source and target and ident) or any(card.get(k) is not None for k in unasked):
        return None
    sensitive = card.names("sensitive")
    uses = [
        Use(n, "attribute", n in sensitive, r.missing, r.bins or ", ".join(f"{b:.15g}" for b in r.bands))
        for n, r in (card.attributes or {}).items()
    ]
    uses += [Use(n, "feature") for n in card.names("features")] + [Use(n, "ignored") for n in card.names("ignore")]
    column = str(card.get("sides.column") or "")
    people = "users" if card.get("users.file") else "nodes"
    encoding = str(card.get("encoding") or "")
    return TableMap(
        str(card.get("edges.file")),
        str(nodes),
        source,
        target,
        str(ident),
        tuple(uses),
        sides="items" if people == "users" else "column" if column else "one",
        side_column=column,
        users=str(card.get("sides.users") or ""),
        weight=card.get("edges.weight"),
        directed=bool(card.get("directed")),
        unknown_nodes=str(card.get("unknown_nodes") or "refuse"),
        separator=str(card.get("separator") or ""),
        encoding="" if encoding == "utf-8-sig" else encoding,
        edges_header=card.get("edges.header"),
        nodes_header=card.get(f"{people}.header"),
        name=str(card.get("name") or ""),
        licence=str(card.get("licence") or ""),
        origin=str(card.get("source") or ""),
    )


def begin_mapping(pair: TablePair, written: TableMap | None) -> TableMap:
    """What was written where it is of these tables, else the guess."""
    if written is None or (written.edges, written.nodes) != (pair.edges.file, pair.nodes.file):
        return guess_mapping(pair)
    ends = {written.source, written.target, *([written.weight] if written.weight else [])}
    fits = ends <= set(pair.edges.names) and {written.id, written.side_column or written.id} <= set(pair.nodes.names)
    return with_columns(pair, written) if fits else guess_mapping(pair)


def _with_sides(pair: TablePair, made: TableMap) -> TableMap:
    """The same, with the column of two values that every edge goes across, if there is one."""
    frame = pair.nodes.frame
    if not frame[made.id].is_unique:
        return made
    ids = pd.Index(frame[made.id])
    ends = [by_id(pair.edges, c, ids) for c in (made.source, made.target) if not pair.edges.frame[c].isna().any()]
    if len(ends) < 2:
        return made
    both = (ends[0] >= 0) & (ends[1] >= 0)
    for column in pair.nodes.names[:_LOOKED_AT]:
        cells = frame[column]
        if column == made.id or cells.nunique() != 2 or cells.isna().any() or not both.any():
            continue
        first, second = (cells.to_numpy()[e[both]] for e in ends)
        if (first != second).all():
            return replace(made, sides="column", side_column=column, users=str(first[0]))
    return made


def _uses(nodes: Table, taken: set[str]) -> tuple[Use, ...]:
    """How the columns of the nodes are probably used."""
    fixed = {name.lower(): Role("id") for name in taken if name}
    columns = assign(nodes, fixed, Role("auto"), None).columns
    uses = [
        _use(nodes, name, column.role) for name, column in zip(nodes.names, columns, strict=True) if name not in taken
    ]
    if not any(u.sensitive for u in uses):
        first = next((i for i, u in enumerate(uses) if u.use == "attribute"), None)
        uses = [replace(u, sensitive=i == first) for i, u in enumerate(uses)]
    return tuple(uses)


def _use(nodes: Table, name: str, role: str) -> Use:
    cells = nodes.frame[name].dropna()
    distinct = pd.Series(cells.unique(), dtype="str")
    numbers = as_numbers(distinct)
    texts = distinct[np.isnan(numbers)]
    codes = words_not_given(name, list(distinct.head(_MOST_TEXTS)))
    numbers = numbers[~np.isnan(numbers)]
    numeric = len(numbers) > 0 and set(texts) <= set(codes)
    sensitive = LIKE_SENSITIVE.search(name) is not None
    use, bins = (role if role in USES else "ignored"), ""
    if numeric:
        codes += tuple(f"{c:.15g}" for c in probable_codes(name, numbers))
        decimal = decimal_numbers(name, cells)
        if (len(numbers) > MANY_NUMBERS or (decimal and len(numbers) > 1)) and sensitive:
            use, bins = "attribute", _BINS
        elif decimal and len(numbers) > 1:
            use = "feature"  # the words among them are codes
    return Use(name, use, sensitive and use == "attribute", codes, bins)


def consistent_uses(
    before: Sequence[Use], typed: Sequence[Use], values: Mapping[str, ColumnValues]
) -> tuple[tuple[Use, ...], tuple[str, ...]]:
    """What was typed, made consistent by what was typed last: a sensitive column is an attribute.

    Args:
        before: the uses before.
        typed: the same columns after something was typed.
        values: what stands in each, by name.

    Returns:
        The uses, and what follows from what was typed, in sentences. A column that becomes sensitive becomes an
        attribute, one that becomes something else is sensitive no more, and numbers that are decimal or many get bins.
    """
    out, said = [], []
    for old, new in zip(before, typed, strict=True):
        made, words = new, []
        if new.sensitive and new.use != "attribute":
            if new.use == old.use:
                made = replace(made, use="attribute")
                words.append(f"{new.column} is an attribute now, as what is sensitive is one.")
            else:
                made = replace(made, sensitive=False)
                words.append(f"{new.column} is no longer sensitive, as only an attribute can be.")
        has = values.get(new.column)
        if has and made.use == "attribute" != old.use:
            if has.bins and not made.bins:
                made = replace(made, bins=has.bins)
                kind = "decimal numbers" if has.decimal else f"{has.different:,} different numbers"
                words.append(f"The bins {has.bins} make groups of the {kind} of {new.column}.")
            elif has.different > MAX_TEXTS:
                words.append(
                    f"{new.column} has {has.different:,} different values; an attribute has at most {MAX_TEXTS}."
                )
        out.append(made)
        said += words
    return tuple(out), tuple(said)


def join_counts(pair: TablePair, made: TableMap) -> Join:
    """Counts how the tables meet.

    Raises:
        GraphError: a column is not there.
    """
    edges, nodes = pair.edges.frame, pair.nodes.frame
    for table, column in ((pair.edges, made.source), (pair.edges, made.target), (pair.nodes, made.id)):
        table.require(column)
    ids = nodes[made.id]
    ends = [edges[made.source]] if made.sides == "items" else [edges[made.source], edges[made.target]]
    named = pd.Series(pd.concat(ends).dropna().unique(), dtype=object)
    known = named.isin(set(ids.dropna()))
    orphans = named[~known]
    lonely = int((~ids.dropna().isin(set(named))).sum())
    repeated = int(ids.isna().sum() + ids.dropna().duplicated().sum())
    return Join(len(named), int(known.sum()), len(orphans), tuple(map(str, orphans[:_FIRST])), lonely, repeated)


def card_text(made: TableMap) -> str:
    """The dataset.yaml of a mapping."""
    ends = {
        "file": made.edges,
        "header": _header(made.edges, made.edges_header),
        "source": made.source,
        "target": made.target,
        "weight": made.weight,
    }
    people = {"file": made.nodes, "header": _header(made.nodes, made.nodes_header), "id": made.id}
    attributes = {u.column: _settings(u) for u in made.columns if u.use == "attribute"}
    content: dict[str, Any] = {
        "name": made.name,
        "licence": made.licence,
        "source": made.origin,
        "edges": {k: v for k, v in ends.items() if v not in (None, "")},
        "users" if made.sides == "items" else "nodes": {k: v for k, v in people.items() if v is not None},
        "sides": {"column": made.side_column, "users": made.users} if made.sides == "column" else None,
        "separator": {"\t": "tab", " ": "blank"}.get(made.separator, made.separator),
        "encoding": made.encoding,
        "directed": made.directed or None,
        "unknown_nodes": made.unknown_nodes if made.unknown_nodes != "refuse" else None,
    }
    content = {k: v for k, v in content.items() if v}
    content["attributes"] = attributes
    content["sensitive"] = [u.column for u in made.columns if u.sensitive and u.use == "attribute"]
    content["features"] = [u.column for u in made.columns if u.use == "feature"]
    content["ignore"] = [u.column for u in made.columns if u.use == "ignored"]
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
    if any(escaped(line) != line for line in text.splitlines()):  # YAML's own escapes show what turns text round
        text = yaml.safe_dump(content, sort_keys=False, width=120)
    return text


def _header(file: str, said: bool | None) -> bool | None:
    """What is said of a file's first line; Parquet names its columns itself."""
    return None if file.endswith(".parquet") else said


def _settings(use: Use) -> dict[str, Any]:
    """What the card says of one attribute."""
    out: dict[str, Any] = {}
    if use.missing:
        out["missing"] = list(use.missing)
    bins = use.bins.strip()
    if ":" in bins:
        out["bins"] = bins
    elif bins:
        out["bins"] = _numbers(use.column, bins)
    return out


def _numbers(column: str, text: str) -> list[float | int]:
    parts = [p for p in re.split(r"[,;\s]+", text) if p]
    numbers = as_numbers(pd.Series(parts, dtype="str"))
    if np.isnan(numbers).any():
        raise GraphError(
            f"{column}: bins {text!r}; allowed: quantile:5, width:10, or rising numbers such as 18, 35, 50"
        )
    return [int(n) if n == int(n) else float(n) for n in numbers]


def write_card(folder: str | Path, made: TableMap, *, may_replace: bool = False) -> Path:
    """Writes the dataset.yaml of a mapping beside the files, after reading it as any other.

    Args:
        folder: of the files.
        made: the mapping.
        may_replace: whether one that is there may be replaced.

    Raises:
        GraphError: it would not be a valid card, one is there already, or the folder cannot be written.
    """
    path = Path(folder) / FILE
    check_root(path)
    if path.exists() and not may_replace:
        raise GraphError(f"{path}: is there already and was not written here; change it by hand, or upload the files")
    temporary = path.with_name(f".new-{FILE}")
    try:
        temporary.write_text(card_text(made), encoding="utf-8")
        try:
            read_card(temporary)
        except GraphError as e:
            raise GraphError(str(e).replace(temporary.name, FILE)) from None
        temporary.rename(path)
    except OSError as e:
        raise GraphError(f"{path}: cannot be written ({e.strerror or e}); upload the files instead") from None
    finally:
        temporary.unlink(missing_ok=True)
    return path


def missing_codes(text: str) -> tuple[str, ...]:
    """Cells that mean "not given" from what was typed with commas; one that holds a comma stands in quotes."""
    typed = next(csv.reader([text.replace("\n", " ")], skipinitialspace=True), [])
    return tuple(dict.fromkeys(part for p in typed if (part := p.strip())))


def codes_text(codes: Sequence[str]) -> str:
    """Such cells as they are typed: what `missing_codes` reads."""
    quote = '"'
    return ", ".join(f'"{c.replace(quote, quote * 2)}"' if set(c) & {",", quote} else c for c in codes)


def column_values(pair: TablePair, columns: Sequence[str]) -> dict[str, ColumnValues]:
    """What stands in columns of the nodes, by name."""
    out = {}
    for name in columns:
        cells = pair.nodes.frame[name]
        counts = cells.value_counts()
        commonest = ", ".join(str(v)[:20] for v in counts.index[:4])
        distinct = pd.Series(counts.index, dtype="str")
        numbers = as_numbers(distinct)
        texts = set(distinct[np.isnan(numbers)])
        found = int((~np.isnan(numbers)).sum())
        numeric = found > 1 and texts <= set(words_not_given(name, list(distinct.head(_MOST_TEXTS))))
        decimal = len(counts) > 1 and decimal_numbers(name, distinct)
        bins = _BINS if numeric and (decimal or found > MANY_NUMBERS) else ""
        out[name] = ColumnValues(len(counts), commonest, bins, decimal)
    return out
