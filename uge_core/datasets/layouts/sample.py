"""Planted data: tables like anyone's, with ``truth.json`` and ``bias_free_edges.csv`` beside them.

``sample:NAME`` is one of the graphs that come with the package; a folder that `uge data make-sample` wrote
is read the same way. The truth becomes `AttributedGraph.truth`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.assemble import edge_columns, finish
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.ids import by_id, node_index, refuse_unknown
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.plain_rows import give_back
from uge_core.datasets.planted.recipe import Effect, Recipe, Trait, product_of_effects
from uge_core.datasets.tables import Table, read_table
from uge_core.errors import ConfigError, DatasetMissing, GraphError
from uge_core.graph.graph import AttributedGraph, PlantedTruth, simple_edges
from uge_core.graph.rows import different_rows
from uge_core.registry import unknown_name

_PACKAGE = Path(__file__).resolve().parents[2]
PLACES = (_PACKAGE.parent / "sample_data", _PACKAGE / "sample_data")
"""Where the samples lie: beside the package in a checkout, inside it once installed."""
_LARGEST = 1 << 24


def names() -> tuple[str, ...]:
    """The samples that are there."""
    return tuple(sorted({path.parent.name for place in PLACES for path in place.glob("*/truth.json")}))


def folder(name: str) -> Path:
    """The folder of a sample.

    Raises:
        DatasetMissing: there is no such sample.
    """
    known = names()
    if name not in known:
        raise DatasetMissing(f"sample:{name}: " + unknown_name("sample", name, known))
    return next(place / name for place in PLACES if (place / name / "truth.json").exists())


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """The graph with its truth."""
    path = dataset.files["truth"]
    with _blamed(path):
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"{path.stat().st_size:,} bytes, allowed: {_LARGEST:,}")
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if record["schema"] != "uge-truth/1":
            raise ValueError(f"schema {record['schema']!r}, allowed: 'uge-truth/1'")
        recipe = _recipe(record)
    tables = [read_table(dataset.files["nodes"])]
    if recipe.num_items:
        if "items" not in dataset.files:
            raise DatasetMissing(
                f"{path.parent}: items.csv is missing; write the folder anew with uge data make-sample"
            )
        tables.append(read_table(dataset.files["items"]))
    expected = (recipe.num_people, recipe.num_items)
    for table, size in zip(tables, expected, strict=False):
        if len(table) != size:
            raise GraphError(f"{table.file}: {len(table):,} rows, {path.name} says {size:,}; write the folder anew")
    indexes = [node_index(table, table.require("id")) for table in tables]
    ids = pd.Index(np.concatenate([i.to_numpy(dtype=object) for i in indexes]))
    if not ids.is_unique:
        raise GraphError(f"{tables[-1].file}: an id of it is one of {tables[0].file} too; give every node its own")

    # One table of edges at a time: of millions each takes as much memory as the graph.
    edges = read_table(dataset.files["edges"])
    source, target = _ends(edges, indexes, len(tables[0]))
    described = edge_columns(edges, (edges.names[0], edges.names[1]))
    del edges
    give_back()
    free = read_table(dataset.files["bias_free"])
    ends = _ends(free, indexes, len(tables[0]))
    del free
    give_back()
    bias_free, _, _ = simple_edges(*ends, len(ids))
    del ends

    ordered = {t.name for t in recipe.traits if t.ordered}
    roles = {"id": Role("id")} | {t.name.lower(): Role("attribute", ordered=t.name in ordered) for t in recipe.traits}
    parts = [assign(tables[0], roles, Role("auto"), asked)]
    num_users = None
    if recipe.num_items:
        num_users = len(tables[0])
        items = assign(tables[1], roles, Role("auto"), asked, replaces=False)
        parts = [parts[0].on_side("users", 0, len(ids)), items.on_side("items", num_users, len(ids))]
    parts.append(described)
    with _blamed(path):
        truth = _truth(record, recipe, tables, bias_free)
    graph = finish(
        dataset.name, "sample", source, target, len(ids), NodeColumns.join(parts), node_ids=ids, num_users=num_users
    )
    return replace(graph, truth=truth)


@contextmanager
def _blamed(path: Path) -> Iterator[None]:
    """Whatever is wrong with the truth's contents becomes one error that names the file."""
    try:
        yield
    except GraphError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, ConfigError) as e:
        what = f"{e} is missing" if isinstance(e, KeyError) else " ".join(str(e).split())
        raise GraphError(f"{path.name}: not a truth that make-sample wrote ({what}); write the folder anew") from None


def _recipe(record: Mapping[str, Any]) -> Recipe:
    """The part of the recipe that R rests on."""
    traits = tuple(
        Trait(t["name"], tuple(t["labels"]), tuple(t["shares"]), t["sensitive"], t["side"], t["ordered"])
        for t in record["traits"]
    )
    effects = tuple(Effect(e["first"], e["second"], tuple(map(tuple, e["table"]))) for e in record["effects"])
    return Recipe(
        record["name"],
        record["people"],
        record["expected_edges"],
        traits,
        effects,
        record["items"],
        record["structure"],
    )


def _ends(edges: Table, indexes: list[pd.Index], num_first: int) -> tuple[IntArray, IntArray]:
    """The two ends of each row as node numbers."""
    if len(edges.names) < 2:
        raise GraphError(f"{edges.file}: one column ({edges.names[0]}), two are needed")
    ends = (edges.names[0], edges.names[1])
    source, target = by_id(edges, ends[0], indexes[0]), by_id(edges, ends[1], indexes[-1])
    refuse_unknown(edges, ends, (source, target), "the ids of the node tables")
    return source, target + (num_first if len(indexes) > 1 else 0)


def _truth(record: Mapping[str, Any], recipe: Recipe, tables: list[Table], bias_free: IntArray) -> PlantedTruth:
    """R and R~ by group, from the tables of the factors and the nodes' values."""
    sizes = [len(t) for t in tables]
    columns = [np.repeat(np.arange(len(tables)), sizes)]
    for t in recipe.traits:
        table = tables[1 if t.side == "items" else 0]
        codes = pd.Index(t.labels).get_indexer(pd.Index(table.frame[table.require(t.name)]))
        if (codes < 0).any():
            raise GraphError(
                f"{table.file}: column {t.name} holds values that truth.json does not know; allowed: "
                f"{', '.join(t.labels)}"
            )
        start = sizes[0] if t.side == "items" else 0
        full = np.full(sum(sizes), -1, np.int64)
        full[start : start + len(codes)] = codes
        columns.append(full)
    distinct, group = different_rows(columns)
    across = np.not_equal.outer(distinct[:, 0], distinct[:, 0]) if len(tables) > 1 else np.ones((len(distinct),) * 2)
    ratio = product_of_effects(recipe, distinct[:, 1:]) * record["scale"] * across
    known = [i + 1 for i, t in enumerate(recipe.traits) if not t.sensitive]
    place = {tuple(g): i for i, g in enumerate(record["bias_free_groups"])}
    coarse = [place[tuple(row)] for row in distinct[:, known].tolist()]
    free = np.array(record["bias_free_ratio"], dtype=float)[np.ix_(coarse, coarse)] * across
    return PlantedTruth(bias_free, tuple(record["sensitive"]), group, ratio, free)


POSITION = 10
LAYOUTS = (
    Layout(
        "sample",
        "planted",
        (
            Part("truth", ("truth.json",), "what make-sample wrote"),
            Part("bias_free", ("bias_free_edges.csv",), "the bias-free graph", telling=False),
            Part("edges", ("edges.csv",), "one row per edge", telling=False),
            Part("nodes", ("nodes.csv", "users.csv"), "one row per node", telling=False),
            Part("items", ("items.csv",), "one row per item", optional=True, telling=False),
        ),
        _read,
    ),
)
