"""What one member of an ensemble knows of the attributes, from its config: needs no torch."""

from __future__ import annotations

import zlib

import numpy as np

from uge_core.arrays import BoolArray, FloatArray
from uge_core.debias.bias_free import MethodInputs
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit, probe_split
from uge_core.graph.values import resolve_values
from uge_core.training.config import RunConfig


def own_weights(config: RunConfig, split: LinkSplit, trained_on: LinkSplit | None = None) -> FloatArray | None:
    """(E_train,) the training edges' own weights as the config uses them, scaled to mean 1, so that lambda keeps its meaning.

    Args:
        config: of the run.
        split: whose training edges.
        trained_on: the split of the run's training, whose mean counts then; edits change no other edge's weight so.
    """
    if split.weights is None or config.edge_weights == "ignore":
        return None
    base = (trained_on or split).weights
    mean = 1.0 if base is None else base.mean(dtype=np.float64)
    return np.asarray(split.weights / mean, dtype=np.float32)


def method_inputs(
    config: RunConfig, graph: AttributedGraph, split: LinkSplit, weights: FloatArray | None, *, twin: bool = False
) -> tuple[MethodInputs, dict[str, BoolArray]]:
    """A member's values with its training edges, and per attribute the (N,) nodes whose value it does not see.

    Args:
        config: of the run.
        graph: the graph.
        split: its split.
        weights: of the training edges, as in `own_weights`.
        twin: the member that does not see the values of the probe's test nodes.
    """
    hidden: dict[str, BoolArray] = {}
    values = {}
    probed = np.zeros(graph.num_nodes, dtype=bool)
    for a in graph.audited if config.sensitive else ():
        if a.name in config.sensitive:
            test = probe_split(a, unknown=config.unknown, seed=config.split_seed).test
            probed[test] = True
            if twin:
                hidden[a.name] = np.zeros(graph.num_nodes, dtype=bool)
                hidden[a.name][test] = True
        values[a.name] = resolve_values(
            a,
            graph,
            split.train,
            unknown=config.unknown,
            hidden=hidden.get(a.name),
            hidden_policy=str(config.hidden),
            rng=np.random.default_rng([config.seed, 6, zlib.crc32(a.name.encode())]),
        )
    sensitive = tuple(values[n] for n in config.sensitive)
    other = tuple(v for n, v in values.items() if n not in config.sensitive)
    directions = split.directions if config.direction == "follow" else None
    return MethodInputs(graph, split.train, sensitive, other, weights, probed, directions=directions), hidden
