"""How many members fit into memory at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from uge_core.backbones.base import Backbone
from uge_core.errors import OutOfMemory
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import split_links
from uge_core.registry import build_options, find
from uge_core.training import memory
from uge_core.training.config import RunConfig
from uge_core.training.ensembles import ensembles
from uge_core.training.fit import fit
from uge_core.training.memory import torch_device


def fitting_ensembles(configs: Sequence[RunConfig], graph: AttributedGraph, abreast: int = 1) -> list[list[int]]:
    """The groups of `ensembles`, large ones cut so that `abreast` at once fit half of the free memory."""
    cut = []
    for indices in ensembles(configs):
        most = most_members(configs[indices[0]], graph, len(indices), abreast)
        cut += [indices[i : i + most] for i in range(0, len(indices), most)]
    return sorted(cut)


def most_members(config: RunConfig, graph: AttributedGraph, wanted: int, abreast: int = 1) -> int:
    """How many configs (each with a twin) fit half of the free memory, or a part of that where others train beside them.

    A GPU has one training at a time. By the numbers a step holds where that is a small part of it, else measured: one epoch of one member and of three.
    """
    backbone: Backbone = build_options(find("backbones", config.backbone), config.backbone_options, config.backbone)
    guessed = 4 * backbone.step_floats(graph.num_nodes, 2 * graph.num_edges, config.dim)
    device = torch_device("auto")
    free = memory.free(device) / (abreast if device.type == "cpu" else 1)
    if 2 * guessed * wanted < free / 8:
        return wanted
    each = _member_bytes(config, graph)
    return max(1, int(free / 2 / (2 * (each if each > 0 else guessed))))


def _member_bytes(config: RunConfig, graph: AttributedGraph) -> float:
    """What one more member takes at its peak; not above 0 (or NaN) where it cannot be measured."""
    split = split_links(graph, test_share=config.test_share, seed=config.split_seed)
    device = torch_device("auto")
    short = replace(config, epochs=1, exposure="seen", validation=0.0, warm_from=None, warm_epochs=0)
    peaks = []
    for members in (1, 3):
        memory.peak(device, reset=True)
        try:
            fit([replace(short, seed=seed) for seed in range(members)], graph, split)
        except OutOfMemory:
            return float("inf")
        peaks.append(memory.peak(device))
    return (peaks[1] - peaks[0]) / 2
