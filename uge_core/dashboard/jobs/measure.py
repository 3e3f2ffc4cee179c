"""How fast this machine would train and audit a choice: measured in seconds by a worker, for the form's estimate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from uge_core.dashboard.jobs.queue import ACTIVE, WAITING, Job, Queue, lane
from uge_core.graph.graph import AttributedGraph
from uge_core.progress import OnProgress, Progress
from uge_core.runs import timing
from uge_core.runs.store import RunStore
from uge_core.training.config import RunConfig

KIND = "measure"
"""What `Job.settings["kind"]` says of such a job."""
_SECONDS = 5.0  # of training that are measured
_FIRST = 2  # epochs that do not count
_MOST = 200  # epochs


class _Enough(Exception):
    """Has been measured for long enough."""


def enqueue_measure(settings: Mapping[str, Any], store: RunStore) -> int:
    """Puts the measurement of a choice into the queue and returns the job's number at once.

    Args:
        settings: a training job's, as the form makes them.
        store: the store.

    Raises:
        StoreError: the store cannot be written.
    """
    return Queue(store).ask({**settings, "kind": KIND})


def measuring(settings: Mapping[str, Any], store: RunStore) -> Job | None:
    """The job that measures a choice, while it waits or runs."""
    wanted = {**settings, "kind": KIND}
    jobs = Queue(store).list()
    return next((j for j in jobs if j.status in (ACTIVE, WAITING) and j.settings == wanted), None)


def carry_out(store: RunStore, graph: AttributedGraph, settings: Mapping[str, Any], on_progress: OnProgress) -> None:
    """Trains one run of each method for a few epochs and attacks one attribute; nothing but the rates is kept.

    Raises:
        UgeError: as training does.
    """
    from uge_core.graph.split import split_links
    from uge_core.runs.plan import plan
    from uge_core.training.fit import fit
    from uge_core.training.loop import EpochProgress

    configs: dict[str, RunConfig] = {}
    for planned in plan(graph, **settings["grid"]):
        c = planned.config
        configs.setdefault(f"{c.backbone} {c.method}", replace(c, warm_from=None, warm_epochs=0))
    backbones = list(dict.fromkeys(c.backbone for c in configs.values()))
    for done, backbone in enumerate(backbones):
        alike = [c for c in configs.values() if c.backbone == backbone]
        split = split_links(
            graph, test_share=alike[0].test_share, validation_share=alike[0].validation, seed=alike[0].split_seed
        )

        ticks: list[tuple[int, float]] = []

        def on_epoch(progress: EpochProgress, done: int = done, backbone: str = backbone, ticks: Any = ticks) -> None:
            # So that a cancelling is heeded.
            on_progress(Progress("measuring", done, len(backbones) + 1, f"training {backbone}", None, progress.loss))
            ticks.append((progress.epoch, time.monotonic()))
            if len(ticks) > _FIRST + 1 and ticks[-1][1] - ticks[_FIRST - 1][1] > _SECONDS:
                raise _Enough

        short = [replace(c, epochs=_MOST) for c in alike]
        device = "cpu" if lane(settings["device"]) == "cpu" else "gpu"
        with suppress(_Enough):
            fit(short, graph, split, device=settings["device"], on_epoch=on_epoch)
        # The first epochs compile kernels and touch memory.
        (first, began), (last, ended) = ticks[_FIRST - 1], ticks[-1]
        work = sum(timing.training_work(c, graph.num_nodes, graph.num_edges) for c in short) * (last - first) / _MOST
        store.note_timing(timing.timed("train", graph.fingerprint, timing.kind(device, short), work, ended - began))
    on_progress(Progress("measuring", len(backbones), len(backbones) + 1, "attacking random embeddings"))
    _measure_attacks(store, graph, next(iter(configs.values())))


def _measure_attacks(store: RunStore, graph: AttributedGraph, config: RunConfig) -> None:
    """Attacks the attribute that costs most, on random embeddings."""
    import numpy as np

    from uge_core.audit.leakage import DEFAULT_ATTACKERS, attack
    from uge_core.graph.split import probe_split

    if not graph.audited:
        return
    attribute = max(graph.audited, key=lambda a: int((a.sizes > 0).sum()))
    probe = probe_split(attribute, unknown=config.unknown, seed=config.split_seed)
    z = np.random.default_rng(0).normal(size=(graph.num_nodes, config.dim)).astype(np.float32)
    few = np.arange(40)
    for attacker in DEFAULT_ATTACKERS:  # loads what they need
        attack(z[:40], few % 2, few, few, attacker=attacker, edges=graph.edges, seed=0)
    work, began = 0.0, time.monotonic()
    for attacker in DEFAULT_ATTACKERS:
        attack(z, probe.classes, probe.train, probe.test, attacker=attacker, edges=graph.edges, seed=0)
        work += timing.attack_work(len(probe.train) + len(probe.test), attribute, attacker)
    took = time.monotonic() - began
    store.note_timing(timing.timed("audit", graph.fingerprint, "attack", work, took))
