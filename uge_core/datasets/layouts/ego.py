"""SNAP's ego networks: ``ID.edges``, ``ID.feat``, ``ID.featnames``, and ``ID.egofeat`` (Facebook, Google+, Twitter).

A row of ``ID.feat`` is a person and a 0 or 1 per feature; ``ID.featnames`` names them, such as ``77 gender;anonymized
feature 77`` or ``3 gender:1``. Features that share what stands before the last part are one attribute, whose value is
that of the one that is set; several or none set is unknown. Names without such a part (#word, @name) are features.
With ``ID.egofeat`` the ego is a person as well, joined to all others, which is how SNAP describes these files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from uge_core.datasets.assemble import edge_columns, finish
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.ids import by_id, node_index, refuse_unknown
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.tables import MOST_COLUMNS, Table, counted, read_lines, read_table
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Column, Message

_ID = "(node)"
_MANY = 0.1  # share of people with several values above which a group is a list and no attribute
_NAME = re.compile(r"(\d+) (\S.*)")
_SHOWN = 5


@dataclass(frozen=True)
class _Names:
    """What the features of one file mean.

    Attributes:
        file: the file.
        names: of the features, in order.
        groups: the places of each group's features.
        values: the value that each feature stands for, by place.
    """

    file: str
    names: tuple[str, ...]
    groups: dict[str, list[int]]
    values: dict[int, str]


def _read(found: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    path = found.files["feat"]
    names = _names(found.files["featnames"])
    ids, flags = _flags(path, names, with_id=True)
    people = len(ids)
    ego = path.name.removesuffix(".gz")[: -len(".feat")]
    about: list[NodeColumns] = []
    if "egofeat" in found.files:
        own = found.files["egofeat"]
        _, of_ego = _flags(own, names, with_id=False)
        if ego in ids:
            raise GraphError(
                f"{own.name}: describes {ego!r}, who has a row in {path.name} as well; which of the two counts cannot be "
                "told: take one of them away"
            )
        ids, flags = [*ids, ego], [*flags, *of_ego]
        about.append(_about_ego(own.name, ego, people))
    nodes, features, held = _table(path.name, ids, flags, names)
    index = node_index(nodes, _ID)
    edges = read_table(found.files["edges"], sep=" ", header=False)
    if len(edges.names) != 2:
        raise GraphError(
            f"{edges.file}: found {len(edges.names)} fields a line; expected two, the ids of an edge's ends"
        )
    edges = Table(edges.file, edges.frame.set_axis(["source", "target"], axis=1), edges.messages, headless=True)
    ends = ("source", "target")
    source, target = (by_id(edges, end, index) for end in ends)
    refuse_unknown(edges, ends, (source, target), f"the ids that begin the lines of {path.name}", index)
    if len(ids) > people:
        source = np.concatenate([source, np.full(people, people)])
        target = np.concatenate([target, np.arange(people)])
    described = edge_columns(edges, ends)
    if "circles" in found.files:
        text = "lists that the ego made, which describe no one alone"
        about.append(NodeColumns(columns=(Column(found.files["circles"].name, "circles", "ignored", text),)))
    columns = NodeColumns.join([_groups(nodes, held, asked), features, *about, described])
    return finish(found.name, "ego", source, target, len(ids), columns, node_ids=index)


def _about_ego(file: str, ego: str, people: int) -> NodeColumns:
    """The note on the ego's edges, which stand in no file."""
    text = f"{file}: the ego {ego} is a person of this graph, joined to all {people:,} others, as SNAP describes it"
    remedy = f"take {file} away to leave the ego out"
    return NodeColumns(messages=(Message("note", "ego", text, people, (ego,), remedy),))


def _names(path: Path) -> _Names:
    """The features and their groups."""
    names: list[str] = []
    for number, line in enumerate(read_lines(path, "utf-8-sig"), start=1):
        parts = _NAME.fullmatch(line.strip())
        if parts is None or int(parts[1]) != len(names):
            raise GraphError(
                f"{path.name}: line {number} is {line[:60]!r}; expected {len(names)}, a blank, and the name of feature "
                f"{len(names)}, as each line names the next feature, counted from 0"
            )
        names.append(parts[2])
    if not names:
        raise GraphError(f"{path.name}: names no feature; expected lines such as 0 gender;anonymized feature 0")
    if len(names) > MOST_COLUMNS:
        raise GraphError(f"{path.name}: names {len(names):,} features; allowed: {MOST_COLUMNS:,}, keep those you need")
    nested = all(";" in name for name in names)
    groups: dict[str, list[int]] = {}
    values: dict[int, str] = {}
    for place, name in enumerate(names):
        group, _, value = name.rpartition(";") if nested else name.partition(":")
        if group and value and not name.startswith(("#", "@")):
            groups.setdefault(group.strip(), []).append(place)
            values[place] = value.strip()
    return _Names(path.name, tuple(names), groups, values)


def _flags(path: Path, names: _Names, *, with_id: bool) -> tuple[list[str], list[list[int]]]:
    """The ids of the people of a file, and the places of the features that each has."""
    ids: list[str] = []
    flags: list[list[int]] = []
    wide = len(names.names) + with_id
    for number, line in enumerate(read_lines(path, "utf-8-sig"), start=1):
        cells = line.split()
        if not cells:
            raise GraphError(f"{path.name}: line {number} is empty; every line is a person, remove it")
        if len(cells) != wide:
            raise GraphError(
                f"{path.name}: line {number} has {counted(len(cells), 'field')}; expected {wide:,}, "
                f"{'an id and ' if with_id else ''}a 0 or 1 for each of the {len(names.names):,} features of {names.file}"
            )
        own = cells[with_id:]
        odd = {*own} - {"0", "1"}
        if odd:
            raise GraphError(f"{path.name}: line {number} has a feature of {min(odd)!r}; allowed: 0 and 1")
        ids += cells[:with_id]
        flags.append([place for place, cell in enumerate(own) if cell == "1"])
    if not with_id and len(flags) != 1:
        raise GraphError(f"{path.name}: has {counted(len(flags), 'line')}; expected one, the features of the ego")
    return ids, flags


def _table(
    file: str, ids: Sequence[str], flags: Sequence[Sequence[int]], names: _Names
) -> tuple[Table, NodeColumns, dict[str, list[set[str]]]]:
    """People and their values in each group, the best known group first; the features in no group; all values by group."""
    group_of = {place: group for group, places in names.groups.items() for place in places}
    held: dict[str, list[set[str]]] = {group: [set() for _ in ids] for group in names.groups}
    free = [place for place in range(len(names.names)) if place not in group_of]
    position = {place: i for i, place in enumerate(free)}
    matrix = np.zeros((len(ids), len(free)), dtype=np.float32)
    for row, own in enumerate(flags):
        for place in own:
            if place in position:
                matrix[row, position[place]] = 1
            else:
                held[group_of[place]][row].add(names.values[place])
    cells = {group: [next(iter(v)) if len(v) == 1 else None for v in values] for group, values in held.items()}
    ordered = sorted(cells, key=lambda group: cells[group].count(None))
    frame = pd.DataFrame({_ID: ids} | {g: cells[g] for g in ordered}, index=pd.RangeIndex(1, len(ids) + 1), dtype="str")
    used = tuple(names.names[place] for place in free)
    columns = tuple(Column(names.file, name, "feature") for name in used)
    features = NodeColumns(features=matrix if free else None, feature_names=used, columns=columns)
    return Table(file, frame), features, held


def _groups(nodes: Table, held: Mapping[str, Sequence[set[str]]], asked: Asked) -> NodeColumns:
    """The roles of the groups; of one that is a list of many values, none unless the user names it."""
    some = {group: sum(map(bool, values)) for group, values in held.items()}
    several = {group: sum(len(v) > 1 for v in values) for group, values in held.items()}
    lists = {g: n for g, n in several.items() if n > _MANY * some[g]}
    roles = {
        g.lower(): Role("ignored", detail=f"several values for {n:,} of {some[g]:,} people, a list and no group")
        for g, n in lists.items()
    }
    part = assign(nodes, {_ID: Role("id"), **roles}, Role("auto"), asked)
    taken = {c.name for c in part.columns if c.role == "attribute"}
    unsure = [f"{g}: {n:,} of {some[g]:,}" for g, n in several.items() if n and g in taken]
    messages: list[Message] = []
    if unsure:
        text = (
            f"{nodes.file}: of {counted(len(unsure), 'attribute')} some people have several values set; they count as "
            "unknown"
        )
        remedy = "nothing to do, or write one value for each person as nodes.csv"
        messages.append(Message("warning", "several-values", text, len(unsure), tuple(unsure[:_SHOWN]), remedy))
    left = [c.name for c in part.columns if c.role == "ignored" and c.name in lists]
    if left:
        text = (
            f"{nodes.file}: {counted(len(left), 'group')} of features ignored, of which many people have several values"
        )
        remedy = "name one with --attributes; people with several values are then unknown"
        messages.append(Message("note", "lists-of-values", text, len(left), tuple(left[:_SHOWN]), remedy))
    return replace(part, messages=(*part.messages, *messages))


POSITION = 94
LAYOUTS = (
    Layout(
        "ego",
        "SNAP's ego networks",
        (
            Part("edges", ("{}.edges",), "two ids a line", telling=False),
            Part("feat", ("{}.feat",), "a line per person: an id, and a 0 or 1 per feature"),
            Part("featnames", ("{}.featnames",), "a line per feature: its number and its name", telling=False),
            Part("egofeat", ("{}.egofeat",), optional=True),
            Part("circles", ("{}.circles",), optional=True),
        ),
        _read,
    ),
)
