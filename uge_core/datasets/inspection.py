"""What a graph holds, before anything is trained: as a record for machines and as text for people."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from uge_core.datasets.mixing import edges_between, mixing
from uge_core.errors import escaped
from uge_core.graph.graph import Attribute, AttributedGraph

_WIDTH = 88
_MOST_CELLS = 12
_LONG = re.compile(r"\S{201,}")
_SHOWN = 60
_NOT_SHOWN = "not shown"


def inspect(graph: AttributedGraph) -> dict[str, Any]:
    """Counts, roles, attributes and messages as one JSON object (``uge data inspect --json --exact``).

    It is for whoever holds the files: sizes and edges of groups under twelve people are told as they are, where pages,
    reports and `uge data inspect` leave them out.

    Args:
        graph: any graph.

    Returns:
        num_nodes, num_edges, num_users, num_items, num_features, layout, bipartite, directed, weighted,
        fingerprint, `columns` with roles, `attributes` with sizes, `messages`, and `defaults`. An
        attribute of all nodes also has `same_group_share`, the share of edges within a group among
        edges whose two ends are known, and `chance`, sum_a (n_a / n)^2: that share in a graph whose
        edges ignore the attribute. Both are null on a bipartite graph. `mixing` lists every pair of
        groups, a pair once, with the edges `observed`, those `expected` by chance and their `ratio`.
    """
    return {
        "name": graph.name,
        "layout": graph.layout,
        "fingerprint": graph.fingerprint,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "bipartite": graph.bipartite,
        "directed": graph.directed,
        "weighted": graph.weighted,
        "num_users": graph.num_users,
        "num_items": graph.num_items,
        "num_features": len(graph.feature_names),
        "columns": [asdict(c) for c in graph.columns],
        "attributes": [_attribute(graph, a) for a in graph.attributes],
        "messages": [asdict(m) for m in graph.messages],
        "defaults": asdict(graph.defaults),
    }


def describe(graph: AttributedGraph, record: Mapping[str, Any] | None = None) -> str:
    """The same for a terminal, at most 88 columns wide.

    Args:
        graph: the graph.
        record: what `inspect` says of it, with None for numbers that are not to be told; None counts all.
    """
    if record is None:
        record = inspect(graph)
    hidden = any(
        None in (a["unknown"], *a["sizes"].values(), *(c["observed"] for c in a["mixing"]))
        for a in record["attributes"]
    )
    users = f" ({graph.num_users:,} users and {graph.num_items:,} items)" if graph.num_users is not None else ""
    kind = ("weighted " if graph.weighted else "") + ("directed" if graph.directed else "undirected")
    lines = [
        f"{graph.name}: {graph.num_nodes:,} nodes{users}, {graph.num_edges:,} {kind} edges",
        f"layout {graph.layout}, mean degree {2 * graph.num_edges / graph.num_nodes:.1f}, "
        f"{record['num_features']:,} features",
        "",
        *_attribute_lines(record["attributes"]),
        *_mixing_lines(record["attributes"]),
        "",
        *_column_lines(graph),
    ]
    if hidden:
        lines += [
            "",
            *_wrapped(
                f"{_NOT_SHOWN}: the size of a small group, of the groups that would tell it, and their edges; --exact "
                "shows all numbers, which are not to be passed on",
                0,
            ),
        ]
    messages = record["messages"]
    if messages:
        lines += ["", "Messages"]
    for m in messages:
        text = f"{m['level']}: {m['text']}" + (f" ({'; '.join(m['examples'])})" if m["examples"] else "")
        lines += _wrapped(text + (f". {m['remedy']}" if m["remedy"] else ""))
    d = graph.defaults
    settings = [f"{name} with {k}={v}" for name, own in d.backbone_options.items() for k, v in own.items()]
    options = f", {', '.join(settings)}" if settings else ""
    script = f", the authors' script probes the first {d.as_coded_rows:,} rows" if d.as_coded_rows else ""
    lines += [
        "",
        *_wrapped(
            f"Defaults: missing values {d.unknown}, {d.test_share:.0%} of the edges held out{script}{options}", 0
        ),
    ]
    return "\n".join(map(escaped, lines))


def _attribute(graph: AttributedGraph, a: Attribute) -> dict[str, Any]:
    """One attribute's record."""
    same = chance = None
    if not graph.bipartite:
        between = edges_between(graph.edges, a)
        same = int(np.trace(between)) / int(between.sum()) if between.any() else None
        chance = float(np.square(a.sizes / a.sizes.sum()).sum())
    return {
        "name": a.name,
        "aliases": list(a.aliases),
        "side": a.side,
        "ordered": a.ordered,
        "num_values": a.num_values,
        "sizes": dict(zip(a.labels, a.sizes.tolist(), strict=True)),
        "unknown": int(a.unknown.sum()),
        "unknown_label": a.unknown_label,
        "same_group_share": same,
        "chance": chance,
        "mixing": list(mixing(graph.edges, graph.num_users, a).records()),
    }


def _attribute_lines(attributes: list[dict[str, Any]]) -> list[str]:
    """The table of attributes, each with its largest groups under it."""
    if not attributes:
        return ["No attributes: nothing to audit. Name columns with --attributes"]
    names = [escaped(a["name"]) for a in attributes]
    width = max(9, *map(len, names))
    lines = [
        f"{'Attribute':{width}}  {'of':5}  {'values':>6}  {'unknown':>9}  {'edges in group':>14}  {'by chance':>9}"
    ]
    for name, a in zip(names, attributes, strict=True):
        same = "" if a["same_group_share"] is None else f"{a['same_group_share']:.1%}"
        chance = "" if a["chance"] is None else f"{a['chance']:.1%}"
        unknown = _number(a["unknown"])
        lines.append(
            f"{name:{width}}  {a['side']:5}  {a['num_values']:6}  {unknown:>9}  {same:>14}  {chance:>9}".rstrip()
        )
        # Groups without a number stand in the order of their names: the place of one would tell its size.
        largest = sorted(a["sizes"].items(), key=lambda item: (item[1] is None, -(item[1] or 0)))[:6]
        rest = a["num_values"] - len(largest)
        text = ", ".join(f"{label}: {_number(n)}" for label, n in largest)
        lines += _wrapped(text + (f", and {rest} more" if rest else ""), 4)
    return lines


def _mixing_lines(attributes: list[dict[str, Any]]) -> list[str]:
    """The edges of each attribute's pairs of groups against chance; of many the largest."""
    lines: list[str] = []
    for a in attributes:
        told = [c for c in a["mixing"] if c["observed"] is not None]
        cells = sorted(told, key=lambda c: -c["observed"])[:_MOST_CELLS]
        if not cells:
            continue
        lines += ["", f"Edges between groups of {escaped(a['name'])}"]
        pairs = [f"{c['a']} - {c['b']}" for c in cells]
        width = min(max(len(escaped(p)) for p in pairs), _WIDTH // 2)
        for pair, c in zip(pairs, cells, strict=True):
            ratio = "none" if c["ratio"] is None else f"{c['ratio']:.2f}"
            lines += _wrapped(
                f"{escaped(pair):{width}}  {c['observed']:12,} edges, {c['expected']:,.1f} by chance, ratio {ratio}", 4
            )
        if len(told) > len(cells):
            lines.append(f"    the {len(cells)} with most edges of {len(told):,} pairs of groups; --json has all")
        if len(told) < len(a["mixing"]):
            lines.append(f"    {_NOT_SHOWN}: {len(a['mixing']) - len(told):,} pairs of groups")
    return lines


def _column_lines(graph: AttributedGraph) -> list[str]:
    """The columns of each file by role; of many with the same role and detail only the first ones."""
    groups: dict[str, dict[tuple[str, str], list[str]]] = {}
    for c in graph.columns:
        groups.setdefault(c.file, {}).setdefault((c.role, c.detail), []).append(c.name)
    lines = ["Columns"]
    for file, roles in groups.items():
        lines.append(f"  {file}")
        for (role, detail), names in roles.items():
            shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
            lines += _wrapped(f"{role:9} {shown}" + (f" ({detail})" if detail else ""), 4)
    return lines


def _number(n: int | None) -> str:
    return _NOT_SHOWN if n is None else f"{n:,}"


def _wrapped(text: str, indent: int = 2) -> list[str]:
    """`text` in lines of the report's width."""
    short = _LONG.sub(lambda m: f"{m[0][:_SHOWN]}...({len(m[0]):,} characters)", escaped(text))
    return textwrap.wrap(
        short, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2), break_on_hyphens=False
    )
