"""What the tables of a folder probably are: a ``dataset.yaml`` with the evidence for each of its lines, and doubts.

The guess is the Data page's (`mapping`). Where two readings fit about as well there is no proposal but an error that
names both, how they join, and the key that decides.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from uge_core.datasets import REWRITE, locate, why_refused
from uge_core.datasets.beginnings import SEPARATOR_NAMES, begin, separator_of
from uge_core.datasets.card import FILE, parse_card
from uge_core.datasets.edge_columns import no_edges
from uge_core.datasets.evidence import MOST
from uge_core.datasets.excel import ENDING
from uge_core.datasets.layouts.base import Folder
from uge_core.datasets.layouts.described import read_described
from uge_core.datasets.layouts.tables import check_headers
from uge_core.datasets.mapping import (
    LIKE_EDGES,
    LIKE_SENSITIVE,
    Join,
    TableMap,
    TablePair,
    card_text,
    column_values,
    guess_mapping,
    join_counts,
    read_pair,
    readable_files,
    write_card,
)
from uge_core.datasets.tables import Table, as_numbers, counted
from uge_core.errors import GraphError, NotRecognised, escaped, shell_word

_DESCRIBABLE = ("tables", "dataset-yaml", "edges-target")
"""Layouts of two tables with ids, which a dataset.yaml could describe as well."""
_WIDTH = 100
_SHOWN = 5
_MOST_PAIRS = 12  # of tables that are read to see which join

Keys = tuple[str, ...]


@dataclass(frozen=True)
class Proposal:
    """A dataset.yaml for a folder, or why it needs none.

    Attributes:
        folder: the folder.
        layout: how the folder is read already, in words, or empty.
        made: the mapping; None: the layout needs no dataset.yaml.
        because: the evidence by the keys of a line, such as ("edges", "source").
        doubts: what whoever knows the data should look at.
    """

    folder: Path
    layout: str
    made: TableMap | None
    because: Mapping[Keys, str]
    doubts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The file, with the evidence as comments."""
        lines = []
        if self.layout:
            lines += _comment(f"{self.folder} {self.layout}", "")
            lines += [f"# what is read: {_inspect(self.folder)}"]
        if self.made is not None:
            plain = card_text(self.made)
            body = list(_with_evidence(plain, self.because))
            lines += body if _same(plain, body) else [*plain.rstrip("\n").split("\n"), *_flat(self.because)]
        if self.doubts:
            lines += ["# Doubts"]
            for doubt in self.doubts:
                first, *rest = textwrap.wrap(_printable(doubt), _WIDTH - 4, break_on_hyphens=False)
                lines += [f"# - {first}", *(f"#   {line}" for line in rest)]
        return "\n".join(lines)

    def write(self) -> Path:
        """Writes the file, without the comments.

        Raises:
            GraphError: there is one already, or nothing to write.
        """
        if self.made is None:
            raise GraphError(
                f"{self.folder}: {self.layout}, so that none was written; look at it with: {_inspect(self.folder)}"
            )
        if (self.folder / FILE).exists():
            raise GraphError(
                f"{self.folder / FILE}: is there already and stays as it is; change it by hand, or rename it and write anew"
            )
        return write_card(self.folder, self.made)


def propose(folder: str | Path, edges: str = "", nodes: str = "") -> Proposal:
    """What the tables of a folder probably are.

    Args:
        folder: the folder, or one of its files.
        edges: the file with one row per edge; empty: by name and by what the files share.
        nodes: the file with one row per node; the same.

    Raises:
        DatasetMissing: the folder or a file is not there.
        GraphError: there are no two tables, they share no ids, or two readings fit about as well.
    """
    path = Path(folder).expanduser()
    path = path.parent if path.is_file() else path
    layout, fault = "", None
    try:
        found, _ = locate(path)
        layout = f"is read without a dataset.yaml, by the layout {found.name} ({found.title}: {found.summary})"
        if found.name == "dataset-yaml":
            layout = "is read by the dataset.yaml that it holds; this one is proposed by the tables alone"
        if found.name not in _DESCRIBABLE and not (edges or nodes):
            return Proposal(path, layout, None, {})
    except GraphError as error:
        if not path.is_dir():
            raise
        fault = error
    files = readable_files(path)
    if len(files) < 2 and not (edges and nodes):
        raise fault if fault and not isinstance(fault, NotRecognised) else _no_tables(path, files)
    pair, made = _pair(path, files, edges, nodes)
    joins = join_counts(pair, made)
    if not joins.joined:
        raise GraphError(
            f"{made.edges} and {made.nodes}: no column of the first holds ids of the second (nearest: {made.source}, "
            f"with 0 of {joins.ids:,} in {made.id}, such as {', '.join(joins.first)}); name the two files with --edges "
            "and --nodes, or write ids in the same way in both"
        )
    ends = made.source, made.target
    check_headers(pair.nodes, pair.edges, made.id, ends)
    if doubt := made.doubt or no_edges(pair.edges, ends, made.weight):
        raise GraphError(doubt)
    others = [f for f in files if f not in (made.edges, made.nodes)]
    doubts = list(_doubts(pair, made, joins, others, bool(edges and nodes)))
    if not any("refuses the graph" in doubt for doubt in doubts):
        try:
            read_described(path / FILE, parse_card(path / FILE, card_text(made)), None, path.name)
        except GraphError as error:
            doubts.append(f"as it stands, this dataset.yaml is refused: {error}")
    return Proposal(path, layout, made, _evidence(path, pair, made, joins), tuple(doubts))


def _inspect(folder: Path) -> str:
    """The command that shows what is read."""
    return f"uge data inspect {shell_word(str(folder))}"


def _no_tables(path: Path, files: tuple[str, ...]) -> GraphError:
    """The error about a folder without two tables."""
    there = Folder.open(path).files
    shown = ", ".join(there[:10]) or "no files"
    hint = next((f"; {f} {why}" for f in there if (why := why_refused(f))), "")
    return GraphError(
        f"{path}: {counted(len(files), 'table')} found, two are needed, one of edges and one of nodes, as CSV or other "
        f"text, or Parquet. The folder holds {shown}{hint}; {REWRITE}"
    )


def _pair(folder: Path, files: tuple[str, ...], edges: str, nodes: str) -> tuple[TablePair, TableMap]:
    """The tables and the guess: those that are called so, else those that join best.

    Raises:
        GraphError: no two tables join, or several do alike.
    """
    firsts = (edges,) if edges else _called("edges", [f for f in files if f != nodes and LIKE_EDGES.search(f)] or files)
    seconds = (nodes,) if nodes else _called("nodes", _people(files, firsts))
    best: tuple[tuple[bool, float], TablePair, TableMap] | None = None
    joined: list[tuple[tuple[bool, float], str]] = []
    fault: GraphError | None = None
    for first, second in islice(_orders(firsts, seconds, files), _MOST_PAIRS):
        try:
            pair = read_pair(folder, first, second)
            made = guess_mapping(pair)
        except GraphError as error:
            fault = fault or error
            continue
        joins = join_counts(pair, made)
        fit = made.sides != "items" and not joins.repeated, joins.joined / max(joins.ids, 1)
        joined.append((fit, f"{first} with {second}"))
        if best is None or fit > best[0]:
            best = fit, pair, made
    if best is None:
        raise fault or GraphError(f"{folder}: no two of its tables can be read")
    alike = [names for fit, names in joined if fit[0] == best[0][0] and fit[1] > MOST]
    if len(alike) > 1:
        raise GraphError(
            f"{folder}: several tables join alike: {' or '.join(alike[:_SHOWN])}; name the two with --edges FILE and "
            "--nodes FILE, and put tables of the same kind together in one file"
        )
    return best[1:]


def _people(files: Sequence[str], firsts: Sequence[str]) -> Sequence[str]:
    """The files that may describe nodes, those not called like edges first."""
    others = [f for f in files if f not in firsts]
    return [f for f in others if not LIKE_EDGES.search(f)] or others or files


def _called(name: str, files: Sequence[str]) -> tuple[str, ...]:
    """The file with exactly this name, as layouts have it, else all."""
    return tuple(f for f in files if f.lower().partition(".")[0] == name)[:1] or tuple(files)


def _orders(firsts: Sequence[str], seconds: Sequence[str], files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a file of edges and one of nodes; both orders where no name tells which is which."""
    pairs = [(a, b) for a in firsts for b in seconds if a != b]
    yield from pairs or ((a, b) for a in files for b in files if a != b)


def _evidence(folder: Path, pair: TablePair, made: TableMap, joins: Join) -> dict[Keys, str]:
    """Why each line says what it says."""
    edges, nodes = pair.edges.frame, pair.nodes.frame
    side = "users" if made.sides == "items" else "nodes"
    out: dict[Keys, str] = {
        ("edges", "file"): _read_as(folder, pair.edges),
        (side, "file"): _read_as(folder, pair.nodes),
    }
    known = set(nodes[made.id].dropna())
    for key, column in (("source", made.source), ("target", made.target)):
        values = pd.Series(edges[column].dropna().unique(), dtype=object)
        there = int(values.isin(known).sum())
        share = there / max(len(values), 1)
        out["edges", key] = (
            f"{there:,} of {len(values):,} different values ({share:.1%}) are ids in {made.id} of {made.nodes}"
        )
        if key == "target" and made.sides == "items":
            out["edges", key] = f"{counted(len(values), 'different value')}, items that no file describes"
    if made.weight:
        numbers = as_numbers(edges[made.weight])
        out["edges", "weight"] = f"called like a weight; numbers from {numbers.min():g} to {numbers.max():g}"
    distinct = int(nodes[made.id].nunique())
    used = distinct - joins.lonely
    out[side, "id"] = f"{distinct:,} different values in {counted(len(nodes), 'row')}; edges name {used:,} of them"
    if made.sides == "column":
        out["sides", "column"] = (
            f"every edge joins a node with {made.side_column} {made.users} and one with the other value"
        )
    seen = column_values(pair, [u.column for u in made.columns])
    for use in made.columns:
        has = seen[use.column]
        number = has.different
        text = f"{counted(number, 'different value')} in {counted(len(nodes), 'row')}"
        if number < len(nodes):
            text += f", commonest: {has.commonest}"
        if number == len(nodes) and use.use == "ignored":
            text += "; every row has its own, which makes no groups"
        if has.decimal and use.use != "attribute":
            text += "; decimal numbers, which make no groups as they are"
        elif use.bins:
            text += f"; {'decimal' if has.decimal else 'many'} numbers, which need bins to be groups"
        kind = {"attribute": "attributes", "feature": "features", "ignored": "ignore"}[use.use]
        out[kind, use.column] = text
        by_name = LIKE_SENSITIVE.search(use.column) is not None
        out["sensitive", use.column] = (
            "by its name" if by_name else "the first attribute, as no name says what is sensitive"
        )
    return out


def _read_as(folder: Path, table: Table) -> str:
    """How a file was read."""
    path = folder / table.file
    rows = counted(len(table), "row")
    if path.suffix == ".parquet":
        return f"{rows} of Parquet"
    if path.suffix.lower() == ENDING:
        return "; ".join(
            [f"{rows} of an Excel sheet", *(m.text.removeprefix(f"{table.file}: ") for m in table.messages)]
        )
    start = begin(path, "utf-8-sig", comments=True)
    sep = start.sep or separator_of(start.lines)
    by = "its first line says so" if start.sep else "by its first lines"
    separated = f"{SEPARATOR_NAMES.get(sep, sep)} separate ({by})"
    if len(table.names) == 1:
        separated = "one column"
    said = [m.text.removeprefix(f"{table.file}: ") for m in table.messages]
    if not table.headless and not any("the last one names the columns" in text for text in said):
        names = ", ".join(table.names[:_SHOWN]) + (" and so on" if len(table.names) > _SHOWN else "")
        said.insert(0, f"line {start.skipped + 1} names the columns: {names}")
    return "; ".join([rows, separated, *said])


def _doubts(pair: TablePair, made: TableMap, joins: Join, others: list[str], named: bool) -> Iterator[str]:
    """What should be looked at, each with the key that decides."""
    if others and not named:
        yield (
            f"{made.edges} was taken for the edges and {made.nodes} for the nodes, by their names and order; other "
            f"tables here: {', '.join(others[:_SHOWN])} (--edges FILE and --nodes FILE take others)"
        )
    if joins.orphans:
        one = joins.orphans == 1
        yield (
            f"{joins.orphans:,} of {counted(joins.ids, 'id')} in the edges {'has' if one else 'have'} no row in "
            f"{made.nodes}, first: {', '.join(joins.first)}. This refuses the graph unless unknown_nodes: drop leaves "
            "their edges out, or unknown_nodes: add makes nodes whose attributes are unknown"
        )
    if joins.repeated:
        yield (
            f"{counted(joins.repeated, 'row')} of {made.nodes} without an id of its own in {made.id}, which refuses the "
            "graph: keep one row of each, or name another column (nodes: id)"
        )
    for column in dict.fromkeys((made.source, made.target)):
        empty = int(pair.edges.frame[column].isna().sum())
        if empty:
            yield (
                f"{counted(empty, 'row')} of {made.edges} with nothing in {column}, which refuses the graph: remove "
                f"{'it' if empty == 1 else 'them'}, or name another column (edges: source and target)"
            )
    if made.sides == "items":
        yield (
            f"rows of {made.nodes} are taken for people and {made.target} for items that no file describes; if "
            f"{made.target} names the people, their attributes are missing (users: file, items: file)"
        )
    for use in made.columns:
        cells = pair.nodes.frame[use.column]
        if use.missing and use.use != "ignored":
            numbers = np.isin(as_numbers(cells), _numbers(use.missing))
            count = int((cells.isin(use.missing).to_numpy() | numbers).sum())
            yield (
                f"{use.column}: {', '.join(use.missing)} probably {'means' if len(use.missing) == 1 else 'mean'} that "
                f"nothing was given ({counted(count, 'cell')}); else take it out of attributes: {use.column}: missing"
            )
    seen = column_values(pair, [u.column for u in made.columns])
    if decimals := [u.column for u in made.columns if seen[u.column].decimal and u.use != "attribute"]:
        yield (
            f"{counted(len(decimals), 'column')} of decimal numbers left out of the attributes, as such numbers make no "
            f"groups until bins do: {', '.join(decimals)}; to compare people by one, move it from features or ignore to "
            f"attributes with bins, as {decimals[0]}: {{bins: quantile:5}}"
        )
    if not any(u.use == "attribute" for u in made.columns):
        yield f"no column of {made.nodes} makes groups, so that nothing can be audited: name one under attributes"


def _numbers(codes: tuple[str, ...]) -> list[float]:
    """Those codes that are numbers, which cells may write in another way."""
    return [float(n) for n in as_numbers(pd.Series(codes, dtype="str")) if not np.isnan(n)]


def _with_evidence(plain: str, because: Mapping[Keys, str]) -> Iterator[str]:
    """The lines of a card, each after what speaks for it."""
    path: Keys = ()
    for line in plain.rstrip("\n").split("\n"):
        indent = line[: len(line) - len(line.lstrip(" "))]
        parsed = _loaded(line)
        where: Keys = ()
        if isinstance(parsed, dict) and len(parsed) == 1:
            path = (*path[: len(indent) // 2], str(next(iter(parsed))))
            where = path
        elif isinstance(parsed, list) and len(parsed) == 1 and not indent and path:
            where = (path[0], str(parsed[0]))
        if where in because:
            yield from _comment(because[where], indent)
        yield line


def _loaded(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _same(plain: str, lines: list[str]) -> bool:
    """Whether comments changed nothing, as they would inside a text of several lines."""
    return bool(_loaded("\n".join(lines)) == _loaded(plain))


def _flat(because: Mapping[Keys, str]) -> Iterator[str]:
    for keys, text in because.items():
        yield from _comment(f"{': '.join(keys)}: {text}", "")


def _comment(text: str, indent: str) -> list[str]:
    lines = textwrap.wrap(_printable(text), _WIDTH - len(indent) - 2, break_on_hyphens=False, break_long_words=False)
    return [f"{indent}# {line}" for line in lines]


def _printable(text: str) -> str:
    return escaped(" ".join(text.split("\n")))
