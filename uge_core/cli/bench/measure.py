"""One measurement, in a process that does nothing else: time per epoch, time to the first, peak memory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from uge_core.audit import audit_embedding
from uge_core.backbones._inputs import Inputs
from uge_core.cli.bench.autograd import OneNegative, SharedBlock
from uge_core.cli.bench.literal import Literal
from uge_core.cli.bench.pace import Enough, Pace, Stopwatch
from uge_core.cli.bench.plain import Rival
from uge_core.datasets import load
from uge_core.errors import UgeError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit, split_links
from uge_core.machine import keep_freed_memory
from uge_core.registry import find
from uge_core.training import memory
from uge_core.training.capacity import fitting_ensembles
from uge_core.training.config import RunConfig
from uge_core.training.fit import fit

_MEMORY_SHARE = 0.7


def measure(
    graph: AttributedGraph, contestant: str, configs: Sequence[RunConfig], pace: Pace, device: str
) -> dict[str, Any]:
    """Trains as long as `pace` asks for.

    Args:
        graph: the graph.
        contestant: "ours", or a rival: "literal", "one-negative" or "shared-block".
        configs: what trains, in one pass; rivals train the first as method none.
        pace: how long.
        device: "cpu" or "cuda".

    Returns:
        What `Stopwatch.record` says; `start_mb` (libraries and graph, before training) and `peak_mb` (on a GPU:
        what torch allocated there); `pieces`, in how many the literal recipe fitted the memory; `device`. Where
        it is not possible, the reason as `refused` alone.
    """
    where = torch.device(device)
    keep_freed_memory()
    torch.manual_seed(configs[0].seed)
    split = split_links(graph, test_share=configs[0].test_share, seed=configs[0].split_seed)
    # ahead of the clock and the peak, as it may try an epoch to see what a member takes
    if len(configs) > 1 and len(fitting_ensembles(configs, graph)) > 1:
        return {"refused": f"{len(configs)} members at once do not fit half of the free memory"}
    start = _mb(memory.peak(where, reset=True))
    watch = Stopwatch(pace, _wait(where))
    pieces = 1
    try:
        with suppress(Enough):
            if contestant == "ours":
                fit(configs, graph, split, device=device, on_epoch=lambda p: watch(p.epoch))
            else:
                rival = _rival(graph, split, contestant, configs[0], where)
                pieces = getattr(rival, "pieces", 1)
                for epoch in range(1, configs[0].epochs + 1):
                    rival.epoch()
                    watch(epoch)
    except UgeError as error:
        return {"refused": str(error)}
    except (MemoryError, torch.OutOfMemoryError):
        return {"refused": "not enough memory"}
    name = "cpu" if where.type == "cpu" else torch.cuda.get_device_name(where)
    taken = {"start_mb": start, "peak_mb": _mb(memory.peak(where))}
    return {**watch.record(), **taken, "pieces": pieces, "device": name, "refused": None}


def read(folder: Path) -> dict[str, Any]:
    """Reads a graph's files: `seconds`, `start_mb`, `peak_mb` and `refused` as in `measure`."""
    return _timed(lambda: load(folder))


def audited(
    graph: AttributedGraph, config: RunConfig, epochs: int, attackers: Sequence[str], device: str
) -> dict[str, Any]:
    """Trains a few epochs, and times an audit with the floors of random embeddings.

    Args:
        graph: the graph.
        config: what trains.
        epochs: how long.
        attackers: who attacks.
        device: "cpu" or "cuda".

    Returns:
        As `read`.
    """
    split = split_links(graph, test_share=config.test_share, seed=config.split_seed)
    try:
        z = fit([replace(config, epochs=epochs)], graph, split, device=device)[0].embedding
    except UgeError as error:
        return {"refused": str(error)}
    return _timed(lambda: audit_embedding(z, graph, split, attackers=attackers))


def _timed(work: Callable[[], Any]) -> dict[str, Any]:
    here = torch.device("cpu")
    start, began = _mb(memory.peak(here, reset=True)), time.perf_counter()
    try:
        work()
    except (UgeError, MemoryError) as error:
        return {"refused": str(error) or "not enough memory"}
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "start_mb": start, "peak_mb": _mb(memory.peak(here)), "refused": None}


def _wait(device: torch.device) -> Callable[[], None]:
    return (lambda: torch.cuda.synchronize(device)) if device.type == "cuda" else lambda: None


def _rival(graph: AttributedGraph, split: LinkSplit, name: str, config: RunConfig, device: torch.device) -> Rival:
    features = graph.features if find("backbones", config.backbone).uses_features else None
    inputs = Inputs(graph.num_nodes, split.train, features, device)
    if name == "literal":
        left = _MEMORY_SHARE * memory.free(device)
        return Literal(config, inputs, graph.num_users, most_bytes=None if math.isinf(left) else int(left))
    return {"one-negative": OneNegative, "shared-block": SharedBlock}[name](config, inputs, graph.num_users)


def _mb(size: float) -> float | None:
    """MiB, None where nobody says."""
    return None if math.isnan(size) else size / 2**20
