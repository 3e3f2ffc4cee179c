"""The sample graphs, and folders of planted data: edges, nodes, and the truth beside them.

A folder holds what anyone's data hold (``edges.csv`` and ``nodes.csv``, or ``users.csv`` and ``items.csv``), a
``dataset.yaml`` and a card (``README.md``), and besides what only a generator knows:
``bias_free_edges.csv`` and ``truth.json``. Nobody in it exists. The same command writes the same bytes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from uge_core.arrays import IntArray
from uge_core.datasets.planted.recipe import (
    Effect,
    Planted,
    PowerLaw,
    Recipe,
    StructureName,
    Trait,
    homophily,
    nearness,
    plant,
)
from uge_core.errors import ConfigError
from uge_core.graph.graph import Attribute
from uge_core.registry import unknown_name

SCHEMA = "uge-truth/1"
LICENCE = "CC0-1.0"

_LINES = 2**20  # written at once
_AGES = ("18-29", "30-44", "45-59", "60-74", "75+")
_AGE_SHARES = (0.22, 0.26, 0.24, 0.18, 0.10)

TOWN = Recipe(
    name="town",
    num_people=2000,
    num_edges=20000,
    traits=(
        Trait("region", ("Coast", "Hills", "North"), (0.45, 0.25, 0.30), sensitive=True),
        Trait("gender", ("man", "woman"), (0.48, 0.52), sensitive=True),
        Trait("age", _AGES, _AGE_SHARES, sensitive=True, ordered=True),
        Trait("club", ("chess", "choir", "football", "garden"), (0.15, 0.25, 0.35, 0.25)),
        Trait("work", ("clinic", "port", "school"), (0.30, 0.40, 0.30)),
    ),
    effects=(
        Effect("region", "region", ((3.0, 0.35, 0.45), (0.35, 4.0, 0.4), (0.45, 0.4, 3.5))),
        Effect("gender", "gender", homophily((1.2, 1.3), 0.8)),
        Effect("age", "age", nearness(5, 1.7, 0.68)),
        Effect("club", "club", homophily((5.0, 4.2, 4.0, 4.5), 0.4)),
        Effect("work", "work", homophily((2.4, 2.0, 2.4), 0.6)),
    ),
    # So that who is popular says less of links than who is alike.
    activity=PowerLaw(2.6, 4.0),
)

TITLES = Recipe(
    name="titles",
    num_people=600,
    num_items=400,
    num_edges=20000,
    traits=(
        Trait("gender", ("man", "woman"), (0.48, 0.52), sensitive=True, side="users"),
        Trait("age", _AGES, _AGE_SHARES, sensitive=True, side="users", ordered=True),
        Trait("club", ("harbour", "monday", "student"), (0.40, 0.35, 0.25), side="users"),
        Trait(
            "genre",
            ("comedy", "crime", "documentary", "drama", "romance", "science fiction"),
            (0.22, 0.16, 0.12, 0.24, 0.14, 0.12),
            side="items",
        ),
    ),
    effects=(
        Effect("gender", "genre", ((1.0, 1.25, 1.0, 0.8, 0.55, 1.4), (1.0, 0.8, 1.0, 1.2, 1.5, 0.6))),
        Effect(
            "age",
            "genre",
            (
                (1.4, 0.8, 0.5, 0.9, 1.1, 1.5),
                (1.2, 1.0, 0.8, 1.0, 1.1, 1.2),
                (1.0, 1.1, 1.0, 1.0, 1.0, 0.9),
                (0.8, 1.2, 1.4, 1.1, 0.9, 0.6),
                (0.7, 1.1, 1.6, 1.2, 0.8, 0.4),
            ),
        ),
        Effect(
            "club",
            "genre",
            ((1.3, 0.8, 0.7, 1.0, 1.3, 0.9), (0.8, 1.3, 1.2, 1.2, 0.8, 0.8), (1.0, 0.9, 1.2, 0.8, 0.9, 1.5)),
        ),
    ),
    activity=PowerLaw(3.0, 3.0),
    popularity=PowerLaw(2.6, 3.5),
    initiator=((0.70, 0.62), (0.62, 0.56)),
)

RECIPES: Mapping[str, Recipe] = {r.name: r for r in (TOWN, TITLES)}


@dataclass(frozen=True)
class Written:
    """A folder of planted data.

    Attributes:
        paths: the files.
        planted: what they hold.
        summary: the card's counts, one line each.
    """

    paths: tuple[Path, ...]
    planted: Planted
    summary: tuple[str, ...]


def recipe(
    name: str,
    *,
    nodes: int | None = None,
    items: int | None = None,
    edges: int | None = None,
    structure: StructureName | None = None,
) -> Recipe:
    """A sample's recipe in another size.

    Args:
        name: "town" or "titles".
        nodes: people; the edges grow with them, unless they are given too.
        items: items of a bipartite sample.
        edges: expected edges before clipping.
        structure: "chung-lu" or "kronecker".

    Raises:
        ConfigError: no such sample, or a size that is not possible.
    """
    if name not in RECIPES:
        raise ConfigError(unknown_name("sample", name, tuple(RECIPES)))
    base = RECIPES[name]
    if items is not None and not base.num_items:
        raise ConfigError(f"{name} has no items, as its edges join people; leave --items out, or make titles")
    if nodes == 0 or items == 0:
        raise ConfigError(f"{name} needs at least 2 people{' and 1 item' if base.num_items else ''}; found 0")
    people = base.num_people if nodes is None else nodes
    things = base.num_items if items is None else items
    grown = round(base.num_edges * people / base.num_people) if edges is None else edges
    return replace(base, num_people=people, num_items=things, num_edges=grown, structure=structure or base.structure)


def make_sample(
    name: str,
    out: str | Path,
    *,
    seed: int,
    nodes: int | None = None,
    items: int | None = None,
    edges: int | None = None,
    structure: StructureName | None = None,
) -> Written:
    """Writes a planted graph and its truth into an empty folder.

    Args:
        name: "town" or "titles".
        out: the folder; it must not exist, or be empty.
        seed: keys all draws: the same seed gives the same bytes.
        nodes: people, if not as many as the sample has.
        items: items, the same.
        edges: expected edges, the same.
        structure: "chung-lu" or "kronecker".

    Raises:
        ConfigError: the folder holds files, or a setting is not allowed.
    """
    made = recipe(name, nodes=nodes, items=items, edges=edges, structure=structure)
    folder = Path(out).expanduser()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there and {'not empty' if folder.is_dir() else 'no folder'}; name a new folder")
    planted = plant(made, seed)
    options = {"nodes": nodes, "items": items, "edges": edges, "structure": structure}
    given = "".join(f" --{key} {value}" for key, value in options.items() if value is not None)
    command = f"uge data make-sample {name} {name} --seed {seed}{given}"
    there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = _write(planted, folder, command)
    except BaseException:
        with suppress(OSError):  # half a graph must not be taken for one
            for path in folder.iterdir():
                path.unlink()
            if not there:
                shutil.rmtree(folder)
        raise
    return Written(tuple(paths), planted, tuple(summary(planted)))


def _write(planted: Planted, folder: Path, command: str) -> list[Path]:
    """All files of the folder."""
    graph = planted.observed
    ids = graph.ids(slice(None))
    ends = ["user", "item"] if graph.bipartite else ["source", "target"]
    texts: dict[str, str | Iterable[bytes]] = {"edges.csv": _pairs(ends, graph.edges, ids)}
    if graph.num_users is not None:
        texts["users.csv"] = _nodes(ids, graph.attributes, "users", 0, graph.num_users)
        texts["items.csv"] = _nodes(ids, graph.attributes, "items", graph.num_users, graph.num_nodes)
    else:
        texts["nodes.csv"] = _nodes(ids, graph.attributes, "nodes", 0, graph.num_nodes)
    texts["bias_free_edges.csv"] = _pairs(ends, planted.bias_free, ids)
    texts["truth.json"] = _json(truth_record(planted, command))
    texts["dataset.yaml"] = _description(planted, command)
    texts["README.md"] = card(planted, command)
    for name, text in texts.items():
        with (folder / name).open("wb") as file:
            file.writelines([text.encode()] if isinstance(text, str) else text)
    return [folder / name for name in texts]


def _pairs(ends: list[str], edges: IntArray, ids: list[str]) -> Iterator[bytes]:
    """The lines of a table of edges, some at a time: a row of bytes each, as all ids are equally long."""
    name = np.array(ids, dtype=bytes)
    width = name.dtype.itemsize
    letters = name.view(np.uint8).reshape(-1, width)
    yield f"{','.join(ends)}\n".encode()
    for first in range(0, edges.shape[1], _LINES):
        u, v = edges[:, first : first + _LINES]
        line = np.empty((len(u), 2 * width + 2), dtype=np.uint8)
        line[:, :width], line[:, width] = letters[u], ord(",")
        line[:, width + 1 : -1], line[:, -1] = letters[v], ord("\n")
        yield line.tobytes()


def _nodes(ids: list[str], attributes: Iterable[Attribute], side: str, start: int, stop: int) -> str:
    mine = [a for a in attributes if a.side == side]
    columns = [np.array(a.labels, dtype=object)[a.codes[start:stop]].tolist() for a in mine]
    rows = (",".join(row) for row in zip(ids[start:stop], *columns, strict=True))
    return "\n".join([",".join(["id", *(a.name for a in mine)]), *rows]) + "\n"


def _json(value: Any, indent: str = "") -> str:
    """JSON with an object's entries and a table's rows on lines of their own."""
    deeper = indent + " "
    if isinstance(value, dict) and value:
        inner = (f"{deeper}{json.dumps(k)}: {_json(v, deeper).rstrip()}" for k, v in value.items())
        return "{\n" + ",\n".join(inner) + f"\n{indent}}}\n"
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n" + ",\n".join(deeper + json.dumps(v) for v in value) + f"\n{indent}]\n"
    return json.dumps(value) + "\n"


def truth_record(planted: Planted, command: str) -> dict[str, Any]:
    """What made the graph, as `uge-truth/1`: R is the product of the effects' tables times `scale`.

    R~ is kept by non-sensitive group; `datasets.sample` puts both together again.
    """
    r = planted.recipe
    first = np.unique(planted.coarse, return_index=True)[1]
    open_traits = [i for i, t in enumerate(r.traits) if not t.sensitive]
    free = planted.bias_free_ratio[np.ix_(first, first)]
    return {
        "schema": SCHEMA,
        "name": r.name,
        "command": command,
        "seed": planted.seed,
        "structure": r.structure,
        "people": r.num_people,
        "items": r.num_items,
        "expected_edges": r.num_edges,
        "sensitive": list(r.sensitive),
        "traits": [
            {
                "name": t.name,
                "side": t.side,
                "sensitive": t.sensitive,
                "ordered": t.ordered,
                "labels": list(t.labels),
                "shares": list(t.shares),
            }
            for t in r.traits
        ],
        "effects": [{"first": e.first, "second": e.second, "table": [list(row) for row in e.table]} for e in r.effects],
        "scale": round(planted.scale, 9),
        "bias_free_groups": [[int(c) for c in planted.values[g, open_traits]] for g in first],
        "bias_free_ratio": [[round(float(x), 6) for x in row] for row in free],
        "clipped_pairs": planted.clipped.pairs,
        "clipped_mass": round(planted.clipped.mass, 3),
        "bias_free_clipped_pairs": planted.bias_free_clipped.pairs,
        "bias_free_clipped_mass": round(planted.bias_free_clipped.mass, 3),
    }


def summary(planted: Planted) -> list[str]:
    """The counts of a card, one line each."""
    graph, r = planted.observed, planted.recipe
    degree = graph.degree
    people = (
        f"{graph.num_users:,} people and {graph.num_items:,} titles"
        if graph.bipartite
        else f"{graph.num_nodes:,} people"
    )
    seen, free = (e[0] * graph.num_nodes + e[1] for e in (graph.edges, planted.bias_free))  # both rise
    both = int((seen[np.minimum(np.searchsorted(seen, free), len(seen) - 1)] == free).sum())
    lines = [
        f"{people}, {graph.num_edges:,} edges; degrees {degree.min()} to {degree.max()}, mean {degree.mean():.1f}",
        f"the bias-free graph: {planted.bias_free.shape[1]:,} edges, {both:,} of them observed too",
        "pairs with P_M R above 1, set "
        f"to 1: {planted.clipped.pairs:,} ({planted.clipped.mass:.1f} expected edges lost); "
        f"in the bias-free graph {planted.bias_free_clipped.pairs:,} ({planted.bias_free_clipped.mass:.1f})",
    ]
    for a, t in zip(graph.attributes, r.traits, strict=True):
        sizes = ", ".join(f"{label} {size:,}" for label, size in zip(a.labels, a.sizes, strict=True))
        what = "sensitive" if t.sensitive else "not sensitive"
        lines.append(f"{a.name}{' of ' + a.side if graph.bipartite else ''} ({what}): {sizes}")
    return lines


def card(planted: Planted, command: str) -> str:
    """README.md: where the data come from and what they are not."""
    graph, r = planted.observed, planted.recipe
    what = "people and the titles they watched" if graph.bipartite else "people and who knows whom"
    nodes = [("nodes.csv", "one row per person: id and attributes")]
    if graph.bipartite:
        nodes = [("users.csv", nodes[0][1]), ("items.csv", "one row per title: id and genre")]
    table = [
        ("edges.csv", "the observed graph, one row per edge"),
        *nodes,
        (
            "bias_free_edges.csv",
            "the bias-free graph: same nodes, same structure, drawn without the sensitive attributes",
        ),
        ("truth.json", "what made both: the factors of R, R~ by non-sensitive group, the seed"),
        ("dataset.yaml", "how to read the files"),
    ]
    sensitive = " and ".join(filter(None, (", ".join(r.sensitive[:-1]), r.sensitive[-1])))
    lines = [
        f"# {r.name}: {what}, none of them real",
        "",
        "A graph drawn by the generator of this package, so that the right answer is known. No real person is in "
        "it: every id, "
        "attribute and edge comes from a random number generator, and resemblance of a group to a real one is made up.",
        "",
        "## Origin",
        "",
        "```",
        command,
        "```",
        "",
        f"Structure: {r.structure}. Each edge has the probability P_M R, Eq. (3) of the paper; each edge of the "
        "bias-free graph "
        f"P_M R~, Eq. (4), where R~ is the mean of R in a cell of the attributes that are not sensitive. Sensitive are "
        f"{sensitive}. Attributes are independent of each other and of the structure.",
        "",
        "## Counts",
        "",
        *(f"- {line}" for line in summary(planted)),
        "",
        "## Files",
        "",
        "| file | |",
        "|---|---|",
        *(f"| {name} | {text} |" for name, text in table),
        "",
        "## Licence",
        "",
        f"{LICENCE}: no rights reserved.",
        "",
        "## Known harms and limits",
        "",
        "- The groups keep to themselves, or differ in taste, because the generator was told so; that says nothing "
        "about real people. "
        "Do not quote it as a finding.",
        "- Gender has two values and age five bands for brevity; real data need more.",
        "- It is easier than real data: attributes are independent, nothing is missing, and R depends on attributes "
        "alone. A method "
        "that works here may fail elsewhere.",
        "- Triangles are no more frequent than the degrees and groups make them.",
    ]
    return "\n".join(lines) + "\n"


def _description(planted: Planted, command: str) -> str:
    """dataset.yaml."""
    graph, r = planted.observed, planted.recipe
    sides = ("users", "items") if graph.bipartite else ("nodes",)
    ends = ("user", "item") if graph.bipartite else ("source", "target")
    lines = [
        f"name: {r.name}",
        f"licence: {LICENCE}",
        f'source: "drawn by uge_core, nobody in it is real: {command}"',
        f"edges: {{file: edges.csv, source: {ends[0]}, target: {ends[1]}}}",
        *(f"{side}: {{file: {side}.csv, id: id}}" for side in sides),
        "attributes:",
        *(f"  {a.name}: {'{ordered: true}' if a.ordered else '{}'}" for a in graph.attributes),
        f"sensitive: [{', '.join(r.sensitive)}]",
    ]
    return "\n".join(lines) + "\n"
