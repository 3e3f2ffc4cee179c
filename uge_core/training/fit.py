"""Trains K members in lock-step over one graph: builds them, runs the loop of `loop`, says what became of each.

Members of an ensemble share graph, split, backbone kind, sizes and epochs; they differ in seed,
method, lambda and sensitive attributes. Parameters carry a member axis, negatives are shared, weights
and offsets are lookups in each member's cell table. A method that reads attributes brings a twin when
both exposures are asked for: the same member without the values of the probe's test nodes, which
serves the `unseen` rows of the audit alone.

Adam's eps is 1e-15: under a mean loss a node's gradient is about 1/E, which the usual 1e-8 would damp.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from uge_core.arrays import BoolArray, FloatArray
from uge_core.backbones.base import Backbone
from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.ranks import ALONE, Ranks
from uge_core.registry import build_options, find
from uge_core.training.checkpoint import Checkpoint
from uge_core.training.collapse import collapse_advice
from uge_core.training.config import RunConfig
from uge_core.training.edge_loss.pairs import Pairs
from uge_core.training.encode import encoder_inputs
from uge_core.training.ends import cold_key
from uge_core.training.ensembles import SHARED_SETTINGS, ensembles
from uge_core.training.loop import EpochProgress, TrainingLoop
from uge_core.training.members import MemberBuilder, build_backbone, cell_advice, edge_columns_used
from uge_core.training.memory import memory_errors, torch_device
from uge_core.training.method_inputs import own_weights
from uge_core.training.ranks import check_shared, shared_out
from uge_core.training.stage import Shared


@dataclass(frozen=True, eq=False)
class Fitted:
    """What training one config gave.

    Attributes:
        config: the config.
        embedding: (N, d) float32, trained on all values; the one to export.
        twin: (N, d) float32 that never saw the hidden values, or None; never exported.
        hidden: per sensitive attribute (N,) the nodes whose value the twin did not see.
        history: columns epoch, edge_loss, penalty (before lambda) and total of the exported member.
        diagnostics: weights' health, advice and imputation checks, of the exported member and of the twin; the advice
            says of either that it has collapsed.
        members: the composition of the ensemble it trained in.
        device: where it ran.
        seconds: of the whole ensemble.
        best_epoch: the epoch kept; the last unless a validation share was asked for.
        notes: per attribute, a remark for the audit rows of the exported embedding.
        twin_notes: the same for the twin's.
        parameters: of an encoder, what `encode` takes to make the exported embedding again, as
            ``tables.NAME`` and ``layers.NAME``. Empty without an encoder, where another epoch than the last was
            kept, and where a head, a postprocess or weighed messages stand between encoder and embedding.
    """

    config: RunConfig
    embedding: FloatArray
    twin: FloatArray | None
    hidden: dict[str, BoolArray]
    history: dict[str, list[float]]
    diagnostics: dict[str, Any]
    members: list[str]
    device: str
    seconds: float
    best_epoch: int
    notes: dict[str, str] = field(default_factory=dict)
    twin_notes: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, FloatArray] = field(default_factory=dict)


def fit(
    configs: Sequence[RunConfig],
    graph: AttributedGraph,
    split: LinkSplit,
    *,
    device: str = "auto",
    deterministic: bool = False,
    on_epoch: Callable[[EpochProgress], None] | None = None,
    checkpoint: Checkpoint | None = None,
    ranks: Ranks = ALONE,
) -> list[Fitted]:
    """Trains `configs` together.

    Args:
        configs: resolved on `graph`; all of one group of `ensembles`.
        graph: the graph.
        split: its split by the configs' split seed.
        device: "auto" (a GPU where there is one), "cpu" or "cuda".
        deterministic: torch may only use operations whose result is the same each time; slower on a GPU, and
            what the CPU does anyway.
        on_epoch: called after each epoch; what it raises ends the training.
        checkpoint: where training goes on from if it is there, and what is written now and then, and when
            `on_epoch` ends it. On the CPU the bits are those of a training that was never cut off.
        ranks: the processes that train together, each of which calls this alike; rank 0 alone has `on_epoch` and
            `checkpoint`. The bits are those of one process.

    Returns:
        One result per config, in order; nothing on other ranks than 0.

    Raises:
        ConfigError: configs that cannot train together, or that several processes cannot train, or a method that
            cannot serve this graph.
        ProcessLost: another process that trains this has ended.
        TrainingDiverged: a loss that is not finite, with member and epoch.
        OutOfMemory: they do not fit together; fewer may.
    """
    with memory_errors(len(configs)), _repeatable(deterministic):
        return _fit(configs, graph, split, device, on_epoch, checkpoint, ranks)


def check(
    configs: Sequence[RunConfig],
    graph: AttributedGraph,
    split: LinkSplit,
    *,
    device: str = "auto",
    ranks: Ranks = ALONE,
) -> None:
    """Says of configs that may train in several passes whether each can be trained, before the first pass.

    Args:
        configs: resolved on `graph`, with the split seed of `split`.
        graph: the graph.
        split: its split.
        device: "auto", "cpu" or "cuda".
        ranks: the processes that will train together.

    Raises:
        ConfigError: a method that cannot serve this graph, or what several processes cannot train, as `fit` would say
            when its turn comes.
    """
    seen = set()
    for config in configs:
        key = repr(replace(config, seed=0, lam=None))
        if key not in seen:
            seen.add(key)
            backbone = build_backbone(config)
            build = MemberBuilder(graph, split, backbone, own_weights(config, split))
            build.checked(config, twin=False)
            if ranks.size > 1:
                check_shared(config, backbone, [build.member(config, twin=False)], torch_device(device))


@contextmanager
def _repeatable(asked: bool) -> Iterator[None]:
    """Keeps torch to operations that give the same bits each time, where asked.

    By the debug mode, as `torch.use_deterministic_algorithms` loads torch's compiler, which takes two seconds.
    """
    before = torch.get_deterministic_debug_mode()
    if asked:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it
    torch.set_deterministic_debug_mode(2 if asked else before)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


def _fit(
    configs: Sequence[RunConfig],
    graph: AttributedGraph,
    split: LinkSplit,
    device: str,
    on_epoch: Callable[[EpochProgress], None] | None,
    checkpoint: Checkpoint | None,
    ranks: Ranks,
) -> list[Fitted]:
    asked = configs[0].validation if configs else 0.0
    if asked > 0 and not split.validation.size and not round(asked * split.train.shape[1]):
        raise ConfigError(
            f"validation = {asked}: that is no whole edge of {split.train.shape[1]:,}; use 0, or "
            f"{1 / split.train.shape[1]:.1g} or more"
        )
    if asked > 0 and not split.validation.size:
        raise ConfigError(
            f"validation = {asked}: no edge could be set aside, as each is some node's last; use validation 0"
        )
    if len(ensembles(configs)) != 1:
        raise ConfigError(
            f"these configs cannot train together: they differ in one of {', '.join(SHARED_SETTINGS)} or score"
        )
    where = torch_device(device)
    first = configs[0]
    backbone: Backbone = build_options(find("backbones", first.backbone), first.backbone_options, first.backbone)
    weights = own_weights(first, split)
    build = MemberBuilder(graph, split, backbone, weights)
    exported = [build.member(c, twin=False, position=i) for i, c in enumerate(configs)]
    twins = [build.member(c, twin=True, position=i) for i, c in enumerate(configs) if c.exposure == "both"]
    members = exported + twins
    started = time.monotonic()
    pairs = Pairs(split.train, graph.num_nodes, graph.num_users, first.split_seed, weights)
    ranks = shared_out(ranks, first, backbone, pairs, members, where)
    inputs = encoder_inputs(first, backbone, graph, split, where, ranks=ranks)
    shared = Shared(first, backbone, inputs, pairs, graph, split)
    loop = TrainingLoop(shared, first.epochs + max(c.warm_epochs for c in configs), on_epoch, checkpoint)
    cold = {cold_key(m): m for m in members if m.config.warm_from is None}
    for m in members:
        if cold_key(m) not in cold:
            cold[cold_key(m)] = build.member(m.config.cold(), twin=m.twin, position=m.position)
    ends = dict(zip(cold, loop.run(list(cold.values()), None, 0, first.epochs), strict=True))
    warm = [m for m in members if m.config.warm_from is not None]
    later = loop.run(warm, [ends[cold_key(m)] for m in warm], first.epochs, loop.epochs) if warm else []
    trained = {id(m): ends[cold_key(m)] for m in members} | {id(m): end for m, end in zip(warm, later, strict=True)}
    seconds = time.monotonic() - started + loop.spent
    twin_of = {id(m.config): m for m in twins}
    parameters: list[dict[str, FloatArray]] = []
    for m in exported:
        end = trained[id(m)]
        encoder = m.plain and backbone.messages != "none" and end.best_epoch == end.last_epoch
        parameters.append(end.parameters(ranks) if encoder else {})
    # Nothing is sent from here on: what rank 0 does with the embeddings may take longer than others would wait.
    out: list[Fitted] = []
    for m, encoded in zip(exported, parameters, strict=True) if ranks.rank == 0 else ():
        end, twin = trained[id(m)], twin_of.get(id(m.config))
        kept = [(x, x.postprocess(trained[id(x)].embedding)) for x in (m, twin) if x]
        twin_reports = twin.inputs.reports if twin else ()
        out.append(
            Fitted(
                config=m.config,
                embedding=kept[0][1],
                twin=kept[1][1] if twin else None,
                hidden=twin.hidden if twin else {},
                history=end.history,
                diagnostics={
                    "weights": m.cells.diagnostics(split.train) if m.method.reads_attributes else None,
                    "advice": [*cell_advice(m), *(text for member, z in kept for text in collapse_advice(member, z))],
                    "imputation": [r.to_json() for r in m.inputs.reports],
                    "twin_imputation": [r.to_json() for r in twin_reports],
                    "split": {
                        "train": split.train.shape[1],
                        "validation": split.validation.shape[1],
                        "test": split.test.shape[1],
                        "short": split.short,
                    },
                    "beside_edges": edge_columns_used(first, backbone, m.method, split),
                    "validation": end.validation,
                    "resumed_at_epoch": loop.resumed,
                    "steps": loop.how,
                },
                members=[x.label for x in members],
                device=str(where) if where.type == "cpu" else torch.cuda.get_device_name(where),
                seconds=seconds,
                best_epoch=end.best_epoch,
                notes={r.attribute: r.note for r in m.inputs.reports},
                twin_notes={r.attribute: r.note for r in twin_reports},
                parameters=encoded,
            )
        )
    return out
