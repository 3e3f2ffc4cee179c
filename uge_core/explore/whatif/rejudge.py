"""Before and after: the same measures on the graph as it is and as a scenario makes it.

Leakage, DP and EO are rows of `audit.audit_embedding`, so that an answer equals a quick audit of the
edited graph: link quality is left out, and on a large graph DP is measured on a sample of the pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uge_core.arrays import BoolArray, FloatArray, IntArray
from uge_core.audit.base import Audit
from uge_core.audit.run import audit_embedding
from uge_core.audit.sampling import Sampling
from uge_core.explore.whatif.weights import Weights
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit, probe_split
from uge_core.runs.audits import attributes_read
from uge_core.runs.disclosure import Release
from uge_core.training.config import RunConfig

MOST_CELLS = 20
_HALF = 0.5  # the threshold before one is set
_FLOORS = 200  # kept between answers


@dataclass(frozen=True, eq=False)
class Subject:
    """What is judged: vectors on a graph.

    Attributes:
        embedding: (N, d).
        twin: (N, d) that did not see the probe's test nodes' values, or None.
        hidden: per attribute, (N,) whose values it did not see.
        config: of the run, or None for an embedding from elsewhere.
        score: of a pair, a name that `scores.scorer` knows.
    """

    embedding: FloatArray
    twin: FloatArray | None
    hidden: Mapping[str, BoolArray]
    config: RunConfig | None
    score: str = "dot"


def judge(
    subject: Subject,
    graph: AttributedGraph,
    split: LinkSplit | None,
    *,
    attributes: Sequence[str],
    attackers: Sequence[str] = ("linear",),
    parts: Sequence[str] = ("leakage", "parity"),
    threshold: float | None = None,
    floors: MutableMapping[str, Any] | None = None,
) -> Audit:
    """Leakage, DP and EO of some attributes.

    Nobody is left out to hide how many people small groups have: what is asked of a person stays on the page.

    Args:
        subject: the vectors.
        graph: the graph, edited or not.
        split: its split, or None when nobody knows.
        attributes: names.
        attackers: names from ``registry.names("audit.attackers")``.
        parts: of "leakage" and "parity".
        threshold: DP and EO count predicted links.
        floors: random floors by key, kept between answers.
    """
    c = subject.config
    if floors is not None and len(floors) > _FLOORS:
        floors.clear()
    audit = audit_embedding(
        subject.embedding,
        graph,
        split,
        score=subject.score,
        attributes=attributes,
        attackers=tuple(attackers),
        parts=parts,
        threshold=threshold,
        quick=True,
        unknown=c.unknown if c else None,
        split_seed=c.split_seed if c else 0,
        treated=c.sensitive if c else (),
        read=attributes_read(c, graph) if c else (),
        twin=subject.twin,
        calibrated=c is None or c.calibrated,
        disclosure=Release(padded=False),
        floors=floors,
    )
    return Audit(
        tuple(
            row if row.exposure != "unseen" else replace(row, note=_seen(subject, graph, row.attribute, row.note))
            for row in audit
        )
    )


def _seen(subject: Subject, graph: AttributedGraph, name: str | None, note: str | None) -> str | None:
    """The note, with how many tested people's values the twin did see: an edited attribute is split anew."""
    hidden = subject.hidden.get(name or "")
    if hidden is None or subject.config is None or name is None:
        return note
    whole = probe_split(graph.attribute(name), unknown=subject.config.unknown, seed=subject.config.split_seed)
    probe = Sampling().probe(whole, graph.people.stop, subject.config.split_seed)
    seen = int((~hidden[probe.test]).sum())
    if not seen:
        return note
    said = f"the tested people are drawn anew: the twin saw the values of {seen:,} of {len(probe.test):,}"
    return "; ".join(filter(None, (note, said)))


def judge_thresholds(threshold: float | None) -> tuple[float, float] | None:
    """The threshold before and after, or None where the scenario sets none: before, more likely than not."""
    return None if threshold is None else (_HALF, threshold)


@dataclass(frozen=True)
class TouchedCell:
    """Training edges that fell into one cell before and another after.

    Attributes:
        before: the cell's two groups, or "no edge".
        after: the same with the edits.
        edges: how many; None where fewer than twelve people form a group of it.
        weight_before: their R~/R, or None.
        weight_after: the same with the edits.
        ratio_before: R of the cell, or None.
        ratio_after: the same with the edits.
    """

    before: str
    after: str
    edges: int | None
    weight_before: float | None
    weight_after: float | None
    ratio_before: float | None
    ratio_after: float | None


def touched_cells(
    before: Weights | None, after: Weights | None, nodes: IntArray
) -> tuple[tuple[TouchedCell, ...], int]:
    """The cells of training edges that an edited node has, and how many more cells there are than shown.

    Args:
        before: the weights as they are.
        after: with the edits.
        nodes: node numbers that an edit changes or names.
    """
    if before is None or after is None:
        return (), 0
    n = np.int64(before.graph.num_nodes)
    mine = np.zeros(n, dtype=bool)
    mine[nodes] = True
    own = [train[:, mine[train].any(axis=0)] for train in (w.evidence.train_edges for w in (before, after))]
    edges = np.concatenate(own, axis=1)
    key, first = np.unique(edges[0] * n + edges[1], return_index=True)
    edges = edges[:, first]
    sides = []
    for w, train in zip((before, after), own, strict=True):
        there = np.isin(key, train[0] * n + train[1])
        group = w.cells.group[edges]
        sides.append((np.where(there, np.minimum(*group), -1), np.where(there, np.maximum(*group), -1)))
    table, at, count = np.unique(np.stack([*sides[0], *sides[1]]), axis=1, return_index=True, return_counts=True)
    order = np.argsort(-count, kind="stable")
    cells = []
    for k in order[:MOST_CELLS]:
        u, v = (int(x) for x in edges[:, at[k]])
        ways = [
            _side(w, u, v) if table[2 * i, k] >= 0 else ("no edge", None, None, False)
            for i, w in enumerate((before, after))
        ]
        small = any(way[3] for way in ways)
        cells.append(
            TouchedCell(
                ways[0][0], ways[1][0], None if small else int(count[k]), ways[0][1], ways[1][1], ways[0][2], ways[1][2]
            )
        )
    return tuple(cells), max(0, len(order) - MOST_CELLS)


def _side(weights: Weights, u: int, v: int) -> tuple[str, float | None, float | None, bool]:
    """A pair's cell in words, its weight and R, and whether a group of it is too small to be told."""
    reasons = weights.reasons(u, v)
    if not reasons:
        return "a value is missing", 1.0, None, False
    weight = float(weights.of(np.array([[u], [v]]))[0])
    small = any(r.observed is None for r in reasons)
    words = "; ".join(f"{r.a} with {r.b}" for r in reasons)
    return words, None if small else weight, reasons[0].ratio if len(reasons) == 1 else None, small
