"""Why an edge weighs what it does: the cell it falls into, and the counts behind R and R~.

R, R~ and the weight R~/R are those of `bias_free`, by the run's own rules; for a run that treats no
attribute, of the attribute asked for. Edges of a cell are counted once, where `bias_free.Counts` counts
each in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from uge_core.arrays import FloatArray, IntArray
from uge_core.debias.bias_free import CellTable, Counts, MethodInputs, Partition, joint_weights, weight_cells
from uge_core.errors import TooManyGroups
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.graph.suppression import FEWEST
from uge_core.graph.values import Values
from uge_core.training.config import RunConfig
from uge_core.training.method_inputs import method_inputs, own_weights


@dataclass(frozen=True)
class Reason:
    """The counts behind one pair of groups. None where a group has fewer than twelve people, or there is no such ratio.

    Attributes:
        attributes: what forms the groups, the sensitive ones first.
        a: the first group's values, in words.
        b: the second's.
        observed: training edges in the cell, or their weight where edges have some.
        expected: what the rate without the sensitive attributes expects there.
        ratio: R.
        bias_free_ratio: R~.
        weight: R~/R by this table alone, before the factor that makes the mean 1.
    """

    attributes: tuple[str, ...]
    a: str
    b: str
    observed: float | None
    expected: float | None
    ratio: float | None
    bias_free_ratio: float | None
    weight: float


@dataclass(frozen=True, eq=False)
class _Table:
    """One partition with its counts."""

    attributes: tuple[str, ...]
    group: IntArray
    names: tuple[str, ...]
    counts: Counts
    shrinkage: float

    def reason(self, u: int, v: int) -> Reason | None:
        """The cell of a pair of nodes; None where a value is missing."""
        a, b = sorted((int(self.group[u]), int(self.group[v])))
        if a < 0:
            return None
        c = self.counts
        halved = 2.0 if a == b else 1.0
        observed, expected, pairs = float(c.edges[a, b]), float(c.expected[a, b]), float(c.pairs[a, b])
        pseudo = self.shrinkage * halved
        seen, wanted = observed + pseudo, expected + pseudo
        weight = wanted / seen if seen > 0 and wanted > 0 and pairs > 0 else 1.0
        first, second = self.names[a], self.names[b]
        if min(c.nodes[a], c.nodes[b]) < FEWEST:
            return Reason(self.attributes, first, second, None, None, None, None, weight)
        total, everything = float(c.edges.sum()), float(c.pairs.sum())
        rate = total / everything if everything else 0.0
        chance = pairs * rate
        ratio, bias_free = (observed / chance, expected / chance) if chance else (None, None)
        return Reason(self.attributes, first, second, observed / halved, expected / halved, ratio, bias_free, weight)


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of a graph's pairs, and why.

    Attributes:
        sensitive: what R is about.
        note: what was done otherwise than asked, or None.
    """

    graph: AttributedGraph
    evidence: MethodInputs
    shrinkage: float
    independence: bool
    item_cells: str
    note: str | None = None

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The attributes that R is about."""
        return tuple(v.name for v in self.evidence.sensitive)

    @cached_property
    def cells(self) -> CellTable:
        """The table that UGE-W trains with."""
        if not self.independence:
            table = joint_weights(self._joint[0], self._joint[1], self.shrinkage)
            return table.balanced(self.evidence.train_edges, self.evidence.weights)
        return weight_cells(self.evidence, shrinkage=self.shrinkage, independence=True, item_cells=self.item_cells)

    @cached_property
    def _joint(self) -> tuple[Partition, Counts]:
        return self.evidence.joint(self.item_cells)

    def of(self, edges: IntArray) -> FloatArray:
        """(E,) R~/R of each pair, scaled to mean 1 over the training edges."""
        return self.cells.edge_weight(edges)

    @cached_property
    def _tables(self) -> tuple[_Table, ...]:
        if not self.independence:
            parts: list[tuple[MethodInputs, Partition, Counts]] = [(self.evidence, *self._joint)]
        else:
            alone = [replace(self.evidence, sensitive=(v,), other=()) for v in self.evidence.sensitive]
            parts = [(e, *e.joint(self.item_cells)) for e in alone]
        return tuple(
            _Table(
                tuple(v.name for v in (*e.sensitive, *e.other)),
                part.group,
                tuple(_name(row, (*e.sensitive, *e.other)) for row in part.values.tolist()),
                counts,
                self.shrinkage,
            )
            for e, part, counts in parts
        )

    def reasons(self, u: int, v: int) -> tuple[Reason, ...]:
        """Why a pair weighs what it does: one cell, with independence one a sensitive attribute.

        None where a value is missing.
        """
        return tuple(r for t in self._tables if (r := t.reason(u, v)) is not None)

    def diagnostics(self) -> dict[str, float]:
        """Smallest, largest and mean weight of the training edges, and their effective sample size."""
        return self.cells.diagnostics(self.evidence.train_edges)


def _name(codes: Sequence[int], values: Sequence[Values]) -> str:
    """A group in words; an item's cell where it has no attribute of people."""
    known = [v.labels[c] for c, v in zip(codes, values, strict=False) if c >= 0]
    if known:
        return ", ".join(known)
    rest = [c for c in codes[len(values) :] if c >= 0]
    return f"items, cell {rest[0] + 1}" if rest else "items"


def weights_of_run(
    config: RunConfig | None, graph: AttributedGraph, split: LinkSplit, *, attribute: str | None
) -> Weights | None:
    """The weights as a run would use them.

    Args:
        config: the run's, or None for an embedding from elsewhere.
        graph: the graph, edited or not.
        split: its split.
        attribute: what R is about where the run treats none.

    Returns:
        The weights; None where there is no attribute to speak of.
    """
    treated = config is not None and bool(config.sensitive)
    given: dict[str, Any] = {"shrinkage": 0.0, "independence": False, "item_cells": "none"}
    if config is not None and treated:
        given |= {k: config.method_options[k] for k in given if k in config.method_options}
        made = config
    elif attribute is not None:
        unknown = config.unknown if config else graph.defaults.unknown
        seeds: dict[str, Any] = {"seed": config.seed, "split_seed": config.split_seed} if config else {}
        made = RunConfig.resolve(
            graph, sensitive=[attribute], method="uge-w", unknown=unknown, exposure="seen", **seeds
        )
    else:
        return None
    evidence, _ = method_inputs(made, graph, split, own_weights(made, split))
    weights = Weights(graph, evidence, given["shrinkage"], given["independence"], given["item_cells"])
    try:
        _ = weights.cells
    except TooManyGroups as error:
        note = f"attributes taken as independent, as together they form {error.num_groups:,} groups"
        return replace(weights, independence=True, note=note)
    return weights
