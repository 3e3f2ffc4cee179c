"""The one training loop: K members in lock-step over one graph.

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
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uge_core import edge_loss
from uge_core.audit.ndcg import BiasFree, ndcg_per_target, rank_candidates
from uge_core.backbones._inputs import Inputs
from uge_core.backbones.base import Backbone, Parameters
from uge_core.bias_free import CellTable, Evidence
from uge_core.config import RunConfig
from uge_core.debias.base import Method
from uge_core.errors import ConfigError, TooManyGroups, TrainingDiverged
from uge_core.graph import AttributedGraph, FloatArray, IntArray
from uge_core.penalties.base import Penalty
from uge_core.registry import build_options, find
from uge_core.split import LinkSplit, probe_split, ranking_task
from uge_core.values import BoolArray, resolve_values

_SHARED = (
    "backbone", "backbone_options", "dim", "epochs", "learning_rate", "weight_decay", "split_seed",
    "test_share", "validation", "negatives", "block_size", "num_negatives",
)  # fmt: skip
_LOG_EVERY = 10


@dataclass(frozen=True)
class Progress:
    """Where a training stands.

    Attributes:
        epoch: epochs done.
        epochs: epochs in all.
        loss: mean total loss over members, as of the last logged epoch.
        seconds_left: estimate.
    """

    epoch: int
    epochs: int
    loss: float
    seconds_left: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """What training one config gave.

    Attributes:
        config: the config.
        embedding: (N, d) float32, trained on all values; the one to export.
        twin: (N, d) float32 that never saw the hidden values, or None; never exported.
        hidden: per sensitive attribute (N,) the nodes whose value the twin did not see.
        history: columns epoch, edge_loss, penalty (before lambda) and total of the exported member.
        diagnostics: weights' health and imputation checks, of the exported member and of the twin.
        members: the composition of the ensemble it trained in.
        device: where it ran.
        seconds: of the whole ensemble.
        best_epoch: the epoch kept; the last unless a validation share was asked for.
        notes: per attribute, a remark for the audit rows of the exported embedding.
        twin_notes: the same for the twin's.
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


@dataclass(frozen=True, eq=False)
class _Member:
    config: RunConfig
    method: Method
    evidence: Evidence
    cells: CellTable
    penalty: Penalty
    hidden: dict[str, BoolArray]
    twin: bool
    position: int

    @property
    def label(self) -> str:
        c = self.config
        lam = "" if c.lam is None else f" lambda={c.lam:g}"
        names = f" [{'+'.join(c.sensitive)}]" if c.sensitive else ""
        return f"{c.method}{lam}{names} seed={c.seed}{' twin' if self.twin else ''}"


def ensembles(configs: Sequence[RunConfig], graph: AttributedGraph | None = None) -> list[list[int]]:
    """Groups the indices of `configs` that can train together, in order; large groups are cut to fit half the memory."""
    groups: dict[str, list[int]] = {}
    for i, c in enumerate(configs):
        groups.setdefault(repr([getattr(c, name) for name in _SHARED]), []).append(i)
    out = []
    for indices in groups.values():
        most = _most_members(configs[indices[0]], graph) if graph is not None else len(indices)
        out += [indices[i : i + most] for i in range(0, len(indices), most)]
    return out


def _most_members(config: RunConfig, graph: AttributedGraph) -> int:
    """How many configs (each with a twin) fit half of the free memory, by the numbers a step holds."""
    backbone: Backbone = build_options(find("backbones", config.backbone), config.backbone_options, config.backbone)
    floats = backbone.step_floats(graph.num_nodes, 2 * graph.num_edges, config.dim)
    return max(1, int(_free_memory() / 2 / (2 * 4 * floats)))


def _free_memory() -> int:
    if torch.cuda.is_available():
        return int(torch.cuda.mem_get_info()[0])
    if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 4 << 30


def fit(
    configs: Sequence[RunConfig],
    graph: AttributedGraph,
    split: LinkSplit,
    *,
    device: str = "auto",
    on_epoch: Callable[[Progress], None] | None = None,
) -> list[Fitted]:
    """Trains `configs` together.

    Args:
        configs: resolved on `graph`; all of one group of `ensembles`.
        graph: the graph.
        split: its split by the configs' split seed.
        device: "auto" (a GPU where there is one), "cpu" or "cuda".
        on_epoch: called after each epoch; what it raises ends the training.

    Returns:
        One result per config, in order.

    Raises:
        ConfigError: configs that cannot train together, or a method that cannot serve this graph.
        TrainingDiverged: a loss that is not finite, with member and epoch.
    """
    if configs and configs[0].validation > 0 and not split.validation.size:
        raise ConfigError(
            f"validation = {configs[0].validation}: no edge could be set aside, as each is some node's last; use validation 0"
        )
    if len(ensembles(configs)) != 1:
        raise ConfigError(f"these configs cannot train together: they differ in one of {', '.join(_SHARED)}")
    where = _device(device)
    first = configs[0]
    backbone: Backbone = build_options(find("backbones", first.backbone), first.backbone_options, first.backbone)
    build = _Builder(graph, split, backbone.loss)
    exported = [build.member(c, twin=False, position=i) for i, c in enumerate(configs)]
    twins = [build.member(c, twin=True, position=i) for i, c in enumerate(configs) if c.exposure == "both"]
    members = exported + twins
    started = time.monotonic()
    features = graph.features if backbone.uses_features else None
    inputs = Inputs(graph.num_nodes, split.train, features, where)
    pairs = edge_loss.Pairs(split.train, graph.num_nodes, graph.num_users, first.split_seed)
    loss = edge_loss.build(
        backbone.loss,
        pairs,
        [m.cells for m in members],
        where,
        negatives=first.negatives,
        block_size=first.block_size,
        num_negatives=first.num_negatives,
    )
    embeddings, history, best = _train(first, members, backbone, inputs, loss, graph, split, on_epoch)
    seconds = time.monotonic() - started
    twin_of = {id(m.config): len(exported) + i for i, m in enumerate(twins)}
    out = []
    for k, m in enumerate(exported):
        t = twin_of.get(id(m.config))
        twin = members[t] if t is not None else None
        twin_reports = twin.evidence.reports if twin else ()
        out.append(
            Fitted(
                config=m.config,
                embedding=embeddings[k],
                twin=embeddings[t] if t is not None else None,
                hidden=twin.hidden if twin else {},
                history={
                    "epoch": history["epoch"],
                    **{name: [row[k] for row in history[name]] for name in ("edge_loss", "penalty", "total")},
                },
                diagnostics={
                    "weights": m.cells.diagnostics(split.train) if m.method.reads_attributes else None,
                    "imputation": [r.to_json() for r in m.evidence.reports],
                    "twin_imputation": [r.to_json() for r in twin_reports],
                    "split": {
                        "train": split.train.shape[1],
                        "validation": split.validation.shape[1],
                        "test": split.test.shape[1],
                        "short": split.short,
                    },
                },
                members=[x.label for x in members],
                device=str(where) if where.type == "cpu" else torch.cuda.get_device_name(where),
                seconds=seconds,
                best_epoch=best[k],
                notes={r.attribute: r.note for r in m.evidence.reports},
                twin_notes={r.attribute: r.note for r in twin_reports},
            )
        )
    return out


def edge_weights(config: RunConfig, graph: AttributedGraph, split: LinkSplit, edges: IntArray) -> FloatArray:
    """(E,) the weight R~/R that the config's method gives `edges` in training; ones where it weighs nothing."""
    return (
        _Builder(graph, split, find("backbones", config.backbone).loss)
        .member(config, twin=False)
        .cells.edge_weight(edges)
    )


def bias_free_gains(graph: AttributedGraph, split: LinkSplit, sensitive: Sequence[str], *, unknown: str) -> BiasFree:
    """R~/R of each held-out edge: how much it counts in `ndcg_at_10_bias_free`.

    The same for every method under one policy for unknown values, so that runs compare: with two
    pseudo-edges a cell, as a held-out edge may fall into a cell that training never saw, and
    popularity deciles as item cells. Where all attributes form more groups than a table can hold,
    the independence form of Sec. 5.1 is taken, and the note says so.
    """
    options = {"shrinkage": 2.0, "item_cells": "popularity" if graph.bipartite else "none"}

    def weights(independence: bool) -> FloatArray:
        config = RunConfig.resolve(
            graph, sensitive=list(sensitive), method="uge-w", unknown=unknown, exposure="seen",
            options={**options, "independence": independence},
        )  # fmt: skip
        return edge_weights(config, graph, split, split.test)

    try:
        return BiasFree(weights(False))
    except TooManyGroups as error:
        return BiasFree(
            weights(True), f"attributes taken as independent, as together they form {error.num_groups} groups"
        )


class _Builder:
    """Builds members; equal evidence and equal tables are made once and shared."""

    def __init__(self, graph: AttributedGraph, split: LinkSplit, loss: str) -> None:
        self.graph, self.split, self.loss = graph, split, loss
        self.evidences: dict[str, tuple[Evidence, dict[str, BoolArray]]] = {}
        self.tables: dict[str, CellTable] = {}

    def member(self, config: RunConfig, *, twin: bool, position: int = 0) -> _Member:
        """One member of the ensemble; `position` is its config's among those given."""
        method: Method = build_options(find("debias", config.method), config.method_options, config.method)
        drawn = config.seed if "impute" in (config.unknown, config.hidden) else None
        key = repr((config.sensitive, config.unknown, config.hidden if twin else None, twin, drawn, config.split_seed))
        if key not in self.evidences:
            self.evidences[key] = self._evidence(config, twin)
        evidence, hidden = self.evidences[key]
        method.check(evidence, self.loss)
        table_key = repr((key, config.method, config.method_options)) if method.reads_attributes else "neutral"
        if table_key not in self.tables:
            self.tables[table_key] = method.cells(evidence)
        return _Member(
            config, method, evidence, self.tables[table_key], method.penalty(evidence), hidden, twin, position
        )

    def _evidence(self, config: RunConfig, twin: bool) -> tuple[Evidence, dict[str, BoolArray]]:
        hidden: dict[str, BoolArray] = {}
        values = {}
        for a in self.graph.audited if config.sensitive else ():
            if twin and a.name in config.sensitive:
                probe = probe_split(a, unknown=config.unknown, seed=config.split_seed)
                hidden[a.name] = np.zeros(self.graph.num_nodes, dtype=bool)
                hidden[a.name][probe.test] = True
            values[a.name] = resolve_values(
                a,
                self.graph,
                self.split.train,
                unknown=config.unknown,
                hidden=hidden.get(a.name),
                hidden_policy=str(config.hidden),
                rng=np.random.default_rng([config.seed, 6, zlib.crc32(a.name.encode())]),
            )
        sensitive = tuple(values[n] for n in config.sensitive)
        other = tuple(v for n, v in values.items() if n not in config.sensitive)
        return Evidence(self.graph, self.split.train, sensitive, other), hidden


def _device(name: str) -> torch.device:
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device = {name!r} is not allowed; allowed: auto, cpu, cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = cuda, but this torch sees no CUDA device; use --device cpu or auto")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def _stream(seed: int, purpose: str) -> torch.Generator:
    """A generator of its own for each seed and slot, so that one slot's draws never move another's."""
    state = np.random.SeedSequence([seed, zlib.crc32(purpose.encode())]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state) & (2**63 - 1))


def _stack(parts: list[dict[str, Tensor]], device: torch.device) -> dict[str, Tensor]:
    return {name: torch.stack([p[name] for p in parts]).to(device).requires_grad_() for name in parts[0]}


def _train(
    config: RunConfig,
    members: list[_Member],
    backbone: Backbone,
    inputs: Inputs,
    loss: edge_loss.EdgeLoss,
    graph: AttributedGraph,
    split: LinkSplit,
    on_epoch: Callable[[Progress], None] | None,
) -> tuple[list[FloatArray], dict[str, list[Any]], list[int]]:
    """The loop itself: embeddings and best epochs of all members, history by column."""
    fresh = [backbone.init(inputs, config.dim, _stream(m.config.seed, "init")) for m in members]
    parameters = Parameters(
        _stack([p.tables for p in fresh], inputs.device), _stack([p.layers for p in fresh], inputs.device)
    )
    groups: list[dict[str, Any]] = [
        {"params": list(parameters.tables.values()), "weight_decay": 0.0},
        {"params": list(parameters.layers.values()), "weight_decay": config.weight_decay},
    ]
    adam = torch.optim.Adam([g for g in groups if g["params"]], lr=config.learning_rate, eps=1e-15, fused=True)
    lams = [m.config.lam or 0.0 for m in members]
    streams = [_stream(m.config.seed, "penalty") for m in members]
    watch = _BestEpoch(graph, split, config) if split.validation.size else _LastEpoch()
    history: dict[str, list[Any]] = {"epoch": [], "edge_loss": [], "penalty": [], "total": []}
    started, shown = time.monotonic(), float("nan")
    for epoch in range(1, config.epochs + 1):
        log = epoch % _LOG_EVERY == 0 or epoch in (1, config.epochs)
        adam.zero_grad(set_to_none=True)
        z = backbone.encode(parameters, inputs)
        edges = edge_loss.evaluate(loss, z, epoch, log)
        gaps = [m.penalty(zk, g) for m, zk, g in zip(members, z.unbind(0), streams, strict=True)]
        total = edges.sum() + sum((lam * gap for lam, gap in zip(lams, gaps, strict=True)), z.new_zeros(()))
        total.backward()  # type: ignore[no-untyped-call]
        adam.step()
        if log:
            shown = _log(history, members, epoch, edges.tolist(), [float(g.detach()) for g in gaps], lams)
        watch(epoch, lambda: backbone.encode(parameters, inputs).detach())
        if on_epoch is not None:
            on_epoch(
                Progress(epoch, config.epochs, shown, (time.monotonic() - started) / epoch * (config.epochs - epoch))
            )
    with torch.no_grad():
        last = backbone.encode(parameters, inputs).detach()
    _refuse(
        members,
        torch.isfinite(last).flatten(1).all(1).tolist(),
        f"embedding is not finite after {config.epochs} epochs",
    )
    kept, best = watch.result(last, config.epochs)
    return [np.ascontiguousarray(k.cpu().numpy().astype(np.float32)) for k in kept], history, best


def _log(
    history: dict[str, list[Any]],
    members: list[_Member],
    epoch: int,
    edges: list[float],
    gaps: list[float],
    lams: list[float],
) -> float:
    total = [e + lam * g for e, g, lam in zip(edges, gaps, lams, strict=True)]
    _refuse(members, np.isfinite(total).tolist(), f"loss is not finite at epoch {epoch}")
    for name, row in (("epoch", epoch), ("edge_loss", edges), ("penalty", gaps), ("total", total)):
        history[name].append(row)
    return float(np.mean(total))


def _refuse(members: list[_Member], finite: list[bool], what: str) -> None:
    """Raises where a member has left the numbers, naming all that have."""
    lost = [m for m, ok in zip(members, finite, strict=True) if not ok]
    if lost:
        which = "; ".join(m.label for m in lost)
        raise TrainingDiverged(
            f"the {what} of {which}; lower the learning rate or lambda, and look for huge features",
            tuple(sorted({m.position for m in lost})),
        )


class _LastEpoch:
    """Keeps nothing: the last epoch counts."""

    def __call__(self, epoch: int, encode: Callable[[], Tensor]) -> None:
        """Does nothing."""

    def result(self, last: Tensor, epochs: int) -> tuple[list[Tensor], list[int]]:
        """The last embeddings."""
        return list(last), [epochs] * len(last)


class _BestEpoch:
    """Keeps each member's embedding at its best NDCG@10 on validation links, looked at 40 times."""

    def __init__(self, graph: AttributedGraph, split: LinkSplit, config: RunConfig) -> None:
        # test edges must not shape the choice, not even by being kept out of the strangers
        seen = np.concatenate([split.train, split.validation], axis=1)
        self.task = ranking_task(replace(graph, edges=seen), split.validation, seed=config.split_seed)
        self.seed, self.epochs = config.split_seed, config.epochs
        self.every = max(1, config.epochs // 40)
        self.best: list[tuple[float, int, Tensor]] = []

    def __call__(self, epoch: int, encode: Callable[[], Tensor]) -> None:
        """Compares this epoch with the best so far."""
        if epoch % self.every and epoch != self.epochs:
            return
        with torch.no_grad():
            z = encode()
        for k, zk in enumerate(z):
            ranking = rank_candidates(zk.cpu().numpy(), self.task, seed=self.seed)
            value = np.nanmean(ndcg_per_target(ranking, np.ones(len(ranking.rank)), len(self.task.targets)))
            entry = (float(value), epoch, zk.clone())
            if len(self.best) <= k:
                self.best.append(entry)
            elif entry[0] > self.best[k][0]:
                self.best[k] = entry

    def result(self, last: Tensor, epochs: int) -> tuple[list[Tensor], list[int]]:
        """Each member's best."""
        return [z for _, _, z in self.best], [e for _, e, _ in self.best]
