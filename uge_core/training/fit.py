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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from uge_core.audit.ndcg import BiasFree
from uge_core.backbones._inputs import Inputs, num_degree_bins
from uge_core.backbones.base import Backbone, Parameters
from uge_core.debias.base import Method
from uge_core.debias.bias_free import THIN, CellTable, Evidence
from uge_core.debias.edge_factors import EdgeFactors, FixedFactors, NoFactors
from uge_core.debias.heads.base import Head, NoHead
from uge_core.debias.penalties.base import Penalty
from uge_core.debias.postprocess.base import Finish, Keep
from uge_core.errors import ConfigError, OutOfMemory, TooManyGroups, TrainingDiverged
from uge_core.graph.association import PROXY, association
from uge_core.graph.graph import AttributedGraph, FloatArray, IntArray
from uge_core.graph.scores import scorer
from uge_core.graph.split import LinkSplit, split_links
from uge_core.graph.values import BoolArray
from uge_core.graph.walks import StepRule, Walker
from uge_core.registry import build_options, find
from uge_core.training import cuda_graph as steps
from uge_core.training import memory
from uge_core.training import objective as losses
from uge_core.training.checkpoint import Checkpoint, Held
from uge_core.training.config import RunConfig
from uge_core.training.edge_loss import loss as edge_loss
from uge_core.training.method_inputs import evidence_of, own_weights
from uge_core.training.validation import BestEpoch, LastEpoch, Watch

_SHARED = (
    "backbone", "backbone_options", "dim", "epochs", "learning_rate", "weight_decay", "split_seed",
    "test_share", "validation", "negatives", "block_size", "num_negatives", "edge_weights", "direction",
)  # fmt: skip
_LOG_EVERY = 10
_LATE = 10  # logged epochs whose numbers a GPU may hold back


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
        diagnostics: weights' health, advice and imputation checks, of the exported member and of the twin.
        members: the composition of the ensemble it trained in.
        device: where it ran.
        seconds: of the whole ensemble.
        best_epoch: the epoch kept; the last unless a validation share was asked for.
        notes: per attribute, a remark for the audit rows of the exported embedding.
        twin_notes: the same for the twin's.
        parameters: of an encoder, what `encode` takes to make the exported embedding again, as
            ``tables.NAME`` and ``layers.NAME``. Empty without an encoder, where another epoch than the last was
            kept, and where a head, a finish or weighed messages stand between encoder and embedding.
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


@dataclass(frozen=True, eq=False)
class _Member:
    config: RunConfig
    method: Method
    evidence: Evidence
    cells: CellTable
    edges: EdgeFactors
    rule: StepRule | None
    penalty: Penalty
    head: Head
    finish: Finish
    hidden: dict[str, BoolArray]
    twin: bool
    position: int

    @property
    def label(self) -> str:
        c = self.config
        lam = "" if c.lam is None else f" lambda={c.lam:g}"
        lam += "" if c.warm_from is None else f" from lambda={c.warm_from:g}"
        names = f" [{'+'.join(c.sensitive)}]" if c.sensitive else ""
        return f"{c.method}{lam}{names} seed={c.seed}{' twin' if self.twin else ''}"

    @property
    def plain(self) -> bool:
        """The exported embedding is what the encoder gives on the graph as it is."""
        own = self.edges.in_kept() is not None
        return isinstance(self.head, NoHead) and isinstance(self.finish, Keep) and not own

    @property
    def fixed(self) -> bool:
        """Its steps do the same at every epoch but for the draws of negatives and penalty."""
        return isinstance(self.head, NoHead) and isinstance(self.edges, (NoFactors, FixedFactors))


def ensembles(configs: Sequence[RunConfig], graph: AttributedGraph | None = None) -> list[list[int]]:
    """Groups the indices of `configs` that can train together, in order; large groups are cut to fit half the memory.

    Warm-started runs go with the cold ones they may start from.
    """
    groups: dict[str, list[int]] = {}
    warm: dict[str, int] = {}
    for i in sorted(range(len(configs)), key=lambda i: configs[i].warm_from is None):
        c = configs[i]
        key = repr([getattr(c, name) for name in _SHARED])
        key += c.method if find("debias.methods", c.method).widens else ""
        key += f" {c.score}"
        if c.warm_from is None or warm.setdefault(key, c.warm_epochs) == c.warm_epochs:
            groups.setdefault(key, []).append(i)
        else:
            groups.setdefault(f"{key} {c.warm_epochs}", []).append(i)
    out = []
    for indices in (sorted(group) for group in groups.values()):
        most = _most_members(configs[indices[0]], graph, len(indices)) if graph is not None else len(indices)
        out += [indices[i : i + most] for i in range(0, len(indices), most)]
    return sorted(out)


def _most_members(config: RunConfig, graph: AttributedGraph, wanted: int) -> int:
    """How many configs (each with a twin) fit half of the free memory.

    By the numbers a step holds where that is a small part of it, else measured: one epoch of one member and of three.
    """
    backbone: Backbone = build_options(find("backbones", config.backbone), config.backbone_options, config.backbone)
    guessed = 4 * backbone.step_floats(graph.num_nodes, 2 * graph.num_edges, config.dim)
    free = memory.free(_device("auto"))
    if 2 * guessed * wanted < free / 8:
        return wanted
    each = _member_bytes(config, graph)
    return max(1, int(free / 2 / (2 * (each if each > 0 else guessed))))


def _member_bytes(config: RunConfig, graph: AttributedGraph) -> float:
    """What one more member takes at its peak; not above 0 (or NaN) where it cannot be measured."""
    split = split_links(graph, test_share=config.test_share, seed=config.split_seed)
    device = _device("auto")
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


@contextmanager
def _memory_errors(members: int) -> Iterator[None]:
    """Gives the ways in which torch and numpy say that memory is out one name."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        said = str(error).lower()
        if isinstance(error, RuntimeError) and not any(words in said for words in ("out of memory", "allocate memory")):
            raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        raise OutOfMemory(
            f"{members} run{'s' if members > 1 else ''} at once did not fit the memory; use fewer runs, a smaller --set dim, "
            "or node2vec, which holds least"
        ) from error


def fit(
    configs: Sequence[RunConfig],
    graph: AttributedGraph,
    split: LinkSplit,
    *,
    device: str = "auto",
    deterministic: bool = False,
    on_epoch: Callable[[Progress], None] | None = None,
    checkpoint: Checkpoint | None = None,
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

    Returns:
        One result per config, in order.

    Raises:
        ConfigError: configs that cannot train together, or a method that cannot serve this graph.
        TrainingDiverged: a loss that is not finite, with member and epoch.
        OutOfMemory: they do not fit together; fewer may.
    """
    with _memory_errors(len(configs)), _repeatable(deterministic):
        return _fit(configs, graph, split, device, on_epoch, checkpoint)


def check(configs: Sequence[RunConfig], graph: AttributedGraph, split: LinkSplit) -> None:
    """Says of configs that may train in several passes whether each one's method can serve, before the first pass.

    Args:
        configs: resolved on `graph`, with the split seed of `split`.
        graph: the graph.
        split: its split.

    Raises:
        ConfigError: a method that cannot serve this graph, as `fit` would say when its turn comes.
    """
    seen = set()
    for config in configs:
        key = repr(replace(config, seed=0, lam=None))
        if key not in seen:
            seen.add(key)
            _Builder(graph, split, _backbone(config), own_weights(config, split)).checked(config, twin=False)


@contextmanager
def _repeatable(asked: bool) -> Iterator[None]:
    """Keeps torch to operations that give the same bits each time, where asked."""
    before = torch.are_deterministic_algorithms_enabled()
    if asked:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it
    torch.use_deterministic_algorithms(asked or before)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def _fit(
    configs: Sequence[RunConfig],
    graph: AttributedGraph,
    split: LinkSplit,
    device: str,
    on_epoch: Callable[[Progress], None] | None,
    checkpoint: Checkpoint | None,
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
        raise ConfigError(f"these configs cannot train together: they differ in one of {', '.join(_SHARED)} or score")
    where = _device(device)
    first = configs[0]
    backbone: Backbone = build_options(find("backbones", first.backbone), first.backbone_options, first.backbone)
    weights = own_weights(first, split)
    build = _Builder(graph, split, backbone, weights)
    exported = [build.member(c, twin=False, position=i) for i, c in enumerate(configs)]
    twins = [build.member(c, twin=True, position=i) for i, c in enumerate(configs) if c.exposure == "both"]
    members = exported + twins
    started = time.monotonic()
    inputs = _inputs(first, backbone, graph, split, where)
    pairs = edge_loss.Pairs(split.train, graph.num_nodes, graph.num_users, first.split_seed, weights)
    whole = first.epochs + max(c.warm_epochs for c in configs)
    loop = _Loop(first, backbone, inputs, pairs, graph, split, on_epoch, whole, checkpoint)
    cold = {_start(m): m for m in members if m.config.warm_from is None}
    for m in members:
        if _start(m) not in cold:
            cold[_start(m)] = build.member(m.config.cold(), twin=m.twin, position=m.position)
    ends = dict(zip(cold, loop.run(list(cold.values()), None, 0, first.epochs), strict=True))
    warm = [m for m in members if m.config.warm_from is not None]
    later = loop.run(warm, [ends[_start(m)] for m in warm], first.epochs, loop.whole) if warm else []
    trained = {id(m): ends[_start(m)] for m in members} | {id(m): end for m, end in zip(warm, later, strict=True)}
    seconds = time.monotonic() - started + loop.spent
    twin_of = {id(m.config): m for m in twins}
    out = []
    for m in exported:
        end, twin = trained[id(m)], twin_of.get(id(m.config))
        twin_reports = twin.evidence.reports if twin else ()
        out.append(
            Fitted(
                config=m.config,
                embedding=m.finish(end.embedding),
                twin=twin.finish(trained[id(twin)].embedding) if twin else None,
                hidden=twin.hidden if twin else {},
                history=end.history,
                diagnostics={
                    "weights": m.cells.diagnostics(split.train) if m.method.reads_attributes else None,
                    "advice": list(_advice(m)),
                    "imputation": [r.to_json() for r in m.evidence.reports],
                    "twin_imputation": [r.to_json() for r in twin_reports],
                    "split": {
                        "train": split.train.shape[1],
                        "validation": split.validation.shape[1],
                        "test": split.test.shape[1],
                        "short": split.short,
                    },
                    "beside_edges": _beside_edges(first, backbone, m.method, split),
                    "validation": end.seen,
                    "resumed_at_epoch": loop.resumed,
                    "steps": loop.how,
                },
                members=[x.label for x in members],
                device=str(where) if where.type == "cpu" else torch.cuda.get_device_name(where),
                seconds=seconds,
                best_epoch=end.best_epoch,
                notes={r.attribute: r.note for r in m.evidence.reports},
                twin_notes={r.attribute: r.note for r in twin_reports},
                parameters=_kept(end)
                if m.plain and backbone.messages != "none" and end.best_epoch == end.last_epoch
                else {},
            )
        )
    return out


def _inputs(
    config: RunConfig,
    backbone: Backbone,
    graph: AttributedGraph,
    split: LinkSplit,
    device: torch.device,
    trained_on: LinkSplit | None = None,
) -> Inputs:
    """What the config's encoder sees of the graph; `trained_on`: the split it was trained with, where that is another."""
    features = graph.features if backbone.uses_features else None
    directions = split.directions if config.direction == "follow" else None
    weights = own_weights(config, split, trained_on)
    bins = None if trained_on is None else num_degree_bins(trained_on.train, graph.num_nodes)
    return Inputs(graph.num_nodes, split.train, features, device, weights, directions, bins)


class _Views:
    """What each member's encoder sees: the graph they share, or its own where the method weighs messages."""

    def __init__(self, shared: Inputs, members: Sequence[_Member], messages: str) -> None:
        self.shared, self.members = shared, members if messages == "weighted" else ()
        self.alike = [shared] * len(members)
        self.own: dict[int, tuple[FloatArray, Inputs]] = {}

    def __call__(self, epoch: int | None) -> list[Inputs]:
        """One per member; the same object where they see the same. No epoch: of the embedding that is kept."""
        views = list(self.alike)
        for k, m in enumerate(self.members):
            factor = m.edges.in_kept() if epoch is None else m.edges.in_messages(epoch)
            if factor is None:
                continue
            if k not in self.own or self.own[k][0] is not factor:
                weights = factor if self.shared.weights is None else factor * self.shared.weights
                self.own[k] = (factor, replace(self.shared, weights=weights))
            views[k] = self.own[k][1]
        return views


def encode(
    config: RunConfig,
    parameters: Mapping[str, FloatArray],
    graph: AttributedGraph,
    split: LinkSplit,
    trained_on: LinkSplit | None = None,
) -> FloatArray:
    """(N, d) float32: one pass of a trained encoder on the CPU, over this graph's training edges.

    On the graph it was trained on, on the CPU, these are the embedding's own bits.

    Args:
        config: of the run.
        parameters: as in `Fitted`.
        graph: the graph to encode, with the nodes and features of the run's.
        split: its split.
        trained_on: the split of the run's training, where `split` is of an edited graph: mean weight and highest degree
            of its edges are those that the encoder knows.
    """
    backbone: Backbone = build_options(find("backbones", config.backbone), config.backbone_options, config.backbone)
    parts = [
        # copied into torch's own memory: matrix products may round otherwise where an array is aligned otherwise
        {name.removeprefix(part): torch.tensor(a)[None] for name, a in parameters.items() if name.startswith(part)}
        for part in ("tables.", "layers.")
    ]
    with torch.no_grad():
        z = _encode(
            backbone, Parameters(*parts), [_inputs(config, backbone, graph, split, torch.device("cpu"), trained_on)]
        )
    return np.ascontiguousarray(z[0].numpy().astype(np.float32))


def _advice(member: _Member) -> Iterator[str]:
    """What would make this member's tables better: thin cells, and copies of a sensitive attribute among the others."""
    if member.cells.thin_mass > 0.5:
        yield (
            f"cells are thin: {member.cells.thin_mass:.0%} of the training edges lie where fewer than {THIN:g} are expected, "
            "so ratios are mostly chance; use --set independence=true, or fewer or coarser attributes"
        )
    yield from member.cells.notes
    if 2 * member.method.dimensions(member.evidence) >= member.config.dim:
        yield _dimensions(member.method, member.evidence, member.config.dim)
    for s, o in product(member.config.sensitive, member.evidence.other):
        sensitive, other = member.evidence.graph.attribute(s), member.evidence.graph.attribute(o.name)
        if sensitive.side == other.side and association(sensitive, other) >= PROXY:
            yield (
                f"{other.name} says nearly the same as {sensitive.name} and counts as not sensitive, so {sensitive.name} stays "
                f"readable through it; use --sensitive {sensitive.name}+{other.name}, or leave it out with --attributes"
            )


def _dimensions(method: Method, evidence: Evidence, dim: int) -> str:
    """That a method takes most or all of an embedding away, and what to do."""
    lost = method.dimensions(evidence)
    names = ", ".join(f"{v.name} ({len(v.labels)} values)" for v in evidence.sensitive)
    return (
        f"{method.name} takes away {lost} of {dim} dimensions, one for each value but one of {names}; "
        f"use --set dim={4 * lost} or more, or join values, numbers by bins in a dataset.yaml"
    )


def _beside_edges(config: RunConfig, backbone: Backbone, method: Method, split: LinkSplit) -> dict[str, str]:
    """What became of the edges' weights and directions; empty where they have none."""
    said = {}
    if split.weights is not None:
        messages = ", and messages are weighed" if backbone.messages == "weighted" else ""
        if backbone.messages == "plain":
            messages = f"; messages of {backbone.label} are not weighed, attention takes the place of weights"
        used = f"used in the loss and in R and R~{messages}"
        said["weights"] = "ignored" if config.edge_weights == "ignore" else used
    if split.directions is not None:
        followed = "ignored: messages run both ways" if config.direction == "ignore" else "followed by messages"
        if backbone.walks_follow:
            followed = "ignored: walks go both ways" if config.direction == "ignore" else "followed by walks"
        elif backbone.messages == "none":
            followed = "not used, as there are no messages"
            if method.steps_follow:
                both = "ignored: steps go both ways"
                followed = both if config.direction == "ignore" else f"followed by the steps of {method.label}"
        said["directions"] = f"{followed}; the loss is over unordered pairs"
    return said


def edge_weights(config: RunConfig, graph: AttributedGraph, split: LinkSplit, edges: IntArray) -> FloatArray:
    """(E,) the weight that the config's method gives `edges` by their cells; ones where it weighs nothing."""
    return _alone(config, graph, split).cells.edge_weight(edges)


@dataclass(frozen=True, eq=False)
class EdgesInTraining:
    """What a method made of the training edges.

    Attributes:
        weight: (E_train,) what it weighs them by, in their cells and one by one; of a method that draws anew, in the first
            epoch. None where a method chooses the steps of walks, as no edge has one weight then.
        chance: (2, E_train) there the chances that a walk's first step takes an edge, from its smaller end and from its
            larger; 0 where it does not run that way.
    """

    weight: FloatArray | None
    chance: npt.NDArray[np.float64] | None = None


def edges_in_training(config: RunConfig, graph: AttributedGraph, split: LinkSplit) -> EdgesInTraining:
    """What the config's method made of the training edges."""
    member, plan = _alone(config, graph, split), _backbone(config).plan()
    weight, factor = member.cells.edge_weight(split.train), member.edges.in_loss(1)
    if plan is None or member.rule is None:
        return EdgesInTraining(weight if factor is None else weight * factor)
    directions = split.directions if config.direction == "follow" else None
    walker = Walker(
        split.train, graph.num_nodes, plan, config.split_seed, own_weights(config, split), directions, graph.num_users, member.rule
    )  # fmt: skip
    return EdgesInTraining(None, walker.chances(weight if (member.cells.weight != 1).any() else None))


def _backbone(config: RunConfig) -> Backbone:
    made: Backbone = build_options(find("backbones", config.backbone), config.backbone_options, config.backbone)
    return made


def _alone(config: RunConfig, graph: AttributedGraph, split: LinkSplit) -> _Member:
    return _Builder(graph, split, _backbone(config), own_weights(config, split)).member(config, twin=False)


def bias_free_gains(graph: AttributedGraph, split: LinkSplit, sensitive: Sequence[str], *, unknown: str) -> BiasFree:
    """R~/R of each held-out edge: how much it counts in `ndcg_at_10_bias_free`.

    The same for every method under one policy for unknown values, so that runs compare: with two
    pseudo-edges a cell, as a held-out edge may fall into a cell that training never saw, and
    popularity deciles as item cells. An edge counts once, whatever its weight, as in NDCG. Where all
    attributes form more groups than a table can hold, the independence form of Sec. 5.1 is taken, and
    the note says so.
    """
    options = {"shrinkage": 2.0, "item_cells": "popularity" if graph.bipartite else "none"}

    def weights(independence: bool) -> FloatArray:
        config = RunConfig.resolve(
            graph, sensitive=list(sensitive), method="uge-w", unknown=unknown, exposure="seen",
            options={**options, "independence": independence, "edge_weights": "ignore"},
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

    def __init__(
        self, graph: AttributedGraph, split: LinkSplit, backbone: Backbone, weights: FloatArray | None
    ) -> None:
        self.graph, self.split, self.loss, self.weights = graph, split, backbone.loss, weights
        self.pairs = "edges" if backbone.plan() is None else "walks"
        self.evidences: dict[str, tuple[Evidence, dict[str, BoolArray]]] = {}
        self.tables: dict[str, CellTable] = {}
        self.factors: dict[str, tuple[EdgeFactors, StepRule | None]] = {}

    def checked(self, config: RunConfig, *, twin: bool) -> tuple[Method, Evidence, dict[str, BoolArray], str]:
        """The config's method, with the evidence it can serve on and that one's key.

        Raises:
            ConfigError: it cannot.
        """
        method: Method = build_options(find("debias.methods", config.method), config.method_options, config.method)
        drawn = config.seed if "impute" in (config.unknown, config.hidden) else None
        key = repr((config.sensitive, config.unknown, config.hidden if twin else None, twin, drawn, config.split_seed))
        if key not in self.evidences:
            found, hidden = evidence_of(config, self.graph, self.split, self.weights, twin=twin)
            self.evidences[key] = replace(found, loss=self.loss, pairs=self.pairs), hidden
        evidence, hidden = self.evidences[key]
        method.check(evidence, self.loss)
        if method.dimensions(evidence) >= config.dim:
            raise ConfigError(_dimensions(method, evidence, config.dim))
        return method, evidence, hidden, key

    def member(self, config: RunConfig, *, twin: bool, position: int = 0) -> _Member:
        """One member of the ensemble; `position` is its config's among those given."""
        method, evidence, hidden, key = self.checked(config, twin=twin)
        table_key = repr((key if method.reads_attributes else None, config.method, config.method_options))
        if table_key not in self.tables:
            self.tables[table_key] = method.cells(evidence)
            self.factors[table_key] = method.edges(evidence), method.walks(evidence)
        edges, rule = self.factors[table_key]
        penalty = method.penalty(evidence)
        return _Member(
            config=config,
            method=method,
            evidence=evidence,
            cells=self.tables[table_key],
            edges=edges,
            rule=rule,
            penalty=penalty,
            head=method.head(evidence, penalty),
            finish=method.finish(evidence),
            hidden=hidden,
            twin=twin,
            position=position,
        )


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


def _stack(parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([p[name] for p in parts]) for name in (parts[0] if parts else ())}


def _leaves(part: dict[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    return {name: t.to(device).requires_grad_() for name, t in part.items()}


@dataclass(frozen=True, eq=False)
class _End:
    """What a member's training came to.

    `tensors` are its parameters, each with Adam's two moments: who goes on from here goes on with them, as a
    step without moments is a jump of the whole learning rate in every number. `head` holds the head's, with
    what Adam keeps of each, and `learned` what the penalty has learnt.
    """

    tensors: list[dict[str, tuple[Tensor, Tensor, Tensor]]]
    head: dict[str, tuple[Tensor, dict[str, Tensor]]]
    learned: dict[str, Tensor]
    embedding: FloatArray
    history: dict[str, list[float]]
    best_epoch: int
    last_epoch: int
    seen: dict[str, Any] | None


def _kept(end: _End) -> dict[str, FloatArray]:
    """The parameters of a member's end by part and name."""
    return {
        f"{part}.{name}": np.ascontiguousarray(found[0].cpu().numpy())
        for part, tensors in zip(("tables", "layers"), end.tensors, strict=True)
        for name, found in tensors.items()
    }


def _start(member: _Member) -> str:
    """What a member's cold part is known by: members with equal starts share it."""
    return repr((member.config.cold(), member.twin))


class _Loop:
    """The loop itself, for members that start anew or from where others ended."""

    def __init__(
        self,
        config: RunConfig,
        backbone: Backbone,
        inputs: Inputs,
        pairs: edge_loss.Pairs,
        graph: AttributedGraph,
        split: LinkSplit,
        on_epoch: Callable[[Progress], None] | None,
        whole: int,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.config, self.backbone, self.inputs, self.pairs = config, backbone, inputs, pairs
        self.graph, self.split, self.on_epoch, self.whole = graph, split, on_epoch, whole
        self.checkpoint = checkpoint
        self.how = ""  # how steps ran
        self.spent = 0.0  # seconds that earlier processes took
        self.resumed: list[int] = []

    def run(self, members: list[_Member], begun: list[_End] | None, done: int, epochs: int) -> list[_End]:
        """Trains `members` from epoch `done` + 1 to `epochs`, from where others ended or from their own seeds."""
        config, backbone, inputs = self.config, self.backbone, self.inputs
        views = _Views(inputs, members, backbone.messages)
        loss = losses.build(
            backbone,
            self.pairs,
            [m.cells for m in members],
            inputs.device,
            factors=[m.edges for m in members],
            rules=[m.rule for m in members],
            dim=config.dim,
            directions=inputs.directions,
            negatives=config.negatives,
            block_size=config.block_size,
            num_negatives=config.num_negatives,
            scorer=scorer(config.score),
        )
        if begun is None:
            fresh = [backbone.init(inputs, config.dim, _stream(m.config.seed, "init")) for m in members]
            parts = [_stack([p.tables for p in fresh]), _stack([p.layers for p in fresh])]
        else:
            parts = [_stack([{n: t[0] for n, t in end.tensors[i].items()} for end in begun]) for i in (0, 1)]
        parameters = Parameters(*(_leaves(part, inputs.device) for part in parts))
        groups: list[dict[str, Any]] = [
            {"params": list(parameters.tables.values()), "weight_decay": 0.0},
            {"params": list(parameters.layers.values()), "weight_decay": config.weight_decay},
            {"params": [], "weight_decay": 0.0},
        ]
        heads = _Heads(members, begun, config.dim, inputs.device)
        groups[2]["params"] = heads.leaves
        adam = torch.optim.Adam(
            [g for g in groups if g["params"]],
            lr=config.learning_rate,
            eps=1e-15,
            fused=True,
            capturable=inputs.device.type == "cuda",
        )
        for i, part in enumerate((parameters.tables, parameters.layers)):
            for name, leaf in part.items() if begun else ():
                first, second = (torch.stack([end.tensors[i][name][m] for end in begun or ()]) for m in (1, 2))
                adam.state[leaf] = {
                    "step": torch.tensor(float(done), device=leaf.device),
                    "exp_avg": first,
                    "exp_avg_sq": second,
                }
        heads.resume(adam)
        lams = [m.config.lam or 0.0 for m in members]
        streams = [_stream(m.config.seed, "penalty") for m in members]
        watch: Watch = LastEpoch()
        if self.split.validation.size:
            watch = BestEpoch(self.graph, self.split, config, len(members), done, epochs)
        history: dict[str, list[Any]] = {"epoch": [], "edge_loss": [], "penalty": [], "total": []}
        started, shown, at, before = time.monotonic(), float("nan"), done, 0.0
        stage = "cold" if begun is None else "warm"
        held = self.checkpoint.load(stage) if self.checkpoint else None
        if held and held.record["device"] == inputs.device.type:
            _restore(held, parameters, adam, streams, watch, history)
            heads.restore(held, adam)
            at, shown, before = (held.record[key] for key in ("epoch", "shown", "seconds"))
            self.spent += before
            self.resumed.append(at)

        waiting: list[tuple[int, Tensor, Tensor]] = []

        def log() -> None:
            nonlocal shown
            for epoch, edges, gaps in waiting:
                shown = _log(history, members, epoch, edges.tolist(), gaps.tolist(), lams)
            waiting.clear()

        def keep(epoch: int) -> None:
            log()
            if self.checkpoint:
                seconds = before + time.monotonic() - started
                where = {"epoch": epoch, "shown": shown, "seconds": seconds, "device": inputs.device.type}
                record, arrays = _state(parameters, adam, streams, watch, history)
                self.checkpoint.save(stage, record | where, arrays | heads.state(adam))

        def embedded() -> Tensor:
            with torch.no_grad():
                return heads.exported(_encode(backbone, parameters, views(None))).detach()

        def step(epoch: int, want_loss: bool, gaps_of: steps.Gaps) -> tuple[Tensor, Tensor]:
            adam.zero_grad(set_to_none=True)
            z = _encode(backbone, parameters, views(epoch))
            apart = z.unbind(0)
            seen = heads.seen(apart)
            edges = loss(_together(z, apart, seen), backbone.context(parameters), epoch, want_loss)
            gaps = gaps_of(seen)
            total = edges.sum() + sum((lam * gap for lam, gap in zip(lams, gaps, strict=True)), z.new_zeros(()))
            total.backward()  # type: ignore[no-untyped-call]
            adam.step()
            return edges.detach(), torch.stack([gap.detach().float() for gap in gaps])

        penalties, fixed = [m.penalty for m in members], all(m.fixed for m in members)
        run = steps.choose(step, loss.stage, penalties, streams, config.dim, inputs.device, adam, fixed=fixed)
        self.how = run.how
        for epoch in range(at + 1, epochs + 1):
            wanted = epoch % _LOG_EVERY == 0 or epoch in (done + 1, epochs)
            edges, gaps = run(epoch, wanted)
            if wanted:
                waiting.append((epoch, edges.clone(), gaps.clone()))
                # reading a number waits for the device, so a GPU's are read some at a time
                if inputs.device.type == "cpu" or len(waiting) == _LATE or epoch in (done + 1, epochs):
                    log()
            watch(epoch, embedded)
            if self.checkpoint and (self.checkpoint.due() or epoch == epochs < self.whole):
                keep(epoch)
            if self.on_epoch is not None:
                pace = (time.monotonic() - started) / (epoch - at)
                try:
                    self.on_epoch(Progress(epoch, self.whole, shown, pace * (self.whole - epoch)))
                except BaseException:
                    keep(epoch)
                    raise
        last = embedded()
        _refuse(
            members,
            torch.isfinite(last).flatten(1).all(1).tolist(),
            f"embedding is not finite after {epochs} epochs",
        )
        kept, best = watch.result(last, epochs)
        return [
            _End(
                [
                    {name: (t.detach()[k], *(adam.state[t][m][k] for m in _MOMENTS)) for name, t in part.items()}
                    for part in (parameters.tables, parameters.layers)
                ],
                heads.end(k, adam),
                members[k].penalty.state(),
                np.ascontiguousarray(kept[k].cpu().numpy().astype(np.float32)),
                {"epoch": history["epoch"]}
                | {n: [row[k] for row in history[n]] for n in ("edge_loss", "penalty", "total")},
                best[k],
                epochs,
                watch.record(k),
            )
            for k in range(len(members))
        ]


_MOMENTS = ("exp_avg", "exp_avg_sq")


def _state(
    parameters: Parameters,
    adam: torch.optim.Adam,
    streams: list[torch.Generator],
    watch: Watch,
    history: dict[str, list[Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """All that the epochs to come depend on; negatives are keyed by the epoch and need nothing kept."""
    seen, tensors = watch.state()
    arrays = {f"watch.{name}": t for name, t in tensors.items()}
    arrays |= {f"stream.{k}": g.get_state() for k, g in enumerate(streams)}
    for part, leaves in (("tables", parameters.tables), ("layers", parameters.layers)):
        for name, leaf in leaves.items():
            arrays[f"{part}.{name}"] = leaf.detach()
            arrays |= {f"{part}.{name}.{m}": adam.state[leaf][m] for m in _MOMENTS}
    return {"history": history, "watch": seen}, {name: t.cpu().numpy() for name, t in arrays.items()}


def _restore(
    held: Held,
    parameters: Parameters,
    adam: torch.optim.Adam,
    streams: list[torch.Generator],
    watch: Watch,
    history: dict[str, list[Any]],
) -> None:
    """Takes back what `_state` gave."""
    # copied into torch's own memory: matrix products may round otherwise where an array is aligned otherwise
    tensors = {name: torch.tensor(array) for name, array in held.arrays.items()}
    for part, leaves in (("tables", parameters.tables), ("layers", parameters.layers)):
        for name, leaf in leaves.items():
            with torch.no_grad():
                leaf.copy_(tensors[f"{part}.{name}"])
            moments = {m: tensors[f"{part}.{name}.{m}"].to(leaf.device) for m in _MOMENTS}
            adam.state[leaf] = {"step": torch.tensor(float(held.record["epoch"]), device=leaf.device), **moments}
    for k, generator in enumerate(streams):
        generator.set_state(tensors[f"stream.{k}"])
    prefix = "watch."
    device = next(leaf.device for part in (parameters.tables, parameters.layers) for leaf in part.values())
    found = {name[len(prefix) :]: t.to(device) for name, t in tensors.items() if name.startswith(prefix)}
    watch.restore(held.record["watch"], found)
    history |= held.record["history"]


class _Heads:
    """The members' heads with their parameters, and what their penalties have learnt."""

    def __init__(
        self, members: Sequence[_Member], begun: Sequence[_End] | None, dim: int, device: torch.device
    ) -> None:
        self.members, self.begun = members, begun
        self.streams = [_stream(m.config.seed, "head") for m in members]
        started = [m.head.start(dim, g) for m, g in zip(members, self.streams, strict=True)]
        if begun is not None:
            # copies, as several members may go on from one end
            started = [{name: t.clone() for name, (t, _) in end.head.items()} for end in begun]
            for m, end in zip(members, begun, strict=True):
                m.penalty.restore(end.learned)
        self.parameters = [_leaves(part, device) for part in started]

    @property
    def leaves(self) -> list[Tensor]:
        """All parameters, for the optimiser."""
        return [leaf for part in self.parameters for leaf in part.values()]

    def resume(self, adam: torch.optim.Adam) -> None:
        """Gives Adam what it kept where members go on from others' ends."""
        for part, end in zip(self.parameters, self.begun or (), strict=bool(self.begun)):
            for name, leaf in part.items():
                if end.head[name][1]:
                    adam.state[leaf] = {key: t.clone() for key, t in end.head[name][1].items()}

    def seen(self, z: Sequence[Tensor]) -> list[Tensor]:
        """What loss and penalties see of each member."""
        return [
            m.head.seen(zk, p, g) for m, zk, p, g in zip(self.members, z, self.parameters, self.streams, strict=True)
        ]

    def exported(self, z: Tensor) -> Tensor:
        """(K, N, d) what is kept of `z` (K, N, d)."""
        apart = z.unbind(0)
        return _together(
            z, apart, [m.head.exported(zk, p) for m, zk, p in zip(self.members, apart, self.parameters, strict=True)]
        )

    def end(self, k: int, adam: torch.optim.Adam) -> dict[str, tuple[Tensor, dict[str, Tensor]]]:
        """Member k's parameters with what Adam keeps of each."""
        return {name: (leaf.detach(), dict(adam.state.get(leaf, {}))) for name, leaf in self.parameters[k].items()}

    def state(self, adam: torch.optim.Adam) -> dict[str, Any]:
        """What a checkpoint keeps."""
        arrays = {f"head.{k}": g.get_state() for k, g in enumerate(self.streams)}
        for k, (m, part) in enumerate(zip(self.members, self.parameters, strict=True)):
            arrays |= {f"penalty.{k}.{name}": t for name, t in m.penalty.state().items()}
            for name, leaf in part.items():
                arrays[f"head.{k}.{name}"] = leaf.detach()
                arrays |= {f"head.{k}.{name}.{key}": t for key, t in adam.state.get(leaf, {}).items()}
        return {name: t.cpu().numpy() for name, t in arrays.items()}

    def restore(self, held: Held, adam: torch.optim.Adam) -> None:
        """Takes back what `state` gave."""
        tensors = {name: torch.tensor(array) for name, array in held.arrays.items()}
        for k, (m, part, g) in enumerate(zip(self.members, self.parameters, self.streams, strict=True)):
            g.set_state(tensors[f"head.{k}"])
            prefix = f"penalty.{k}."
            m.penalty.restore({n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)})
            for name, leaf in part.items():
                with torch.no_grad():
                    leaf.copy_(tensors[f"head.{k}.{name}"])
                if f"head.{k}.{name}.step" in tensors:
                    adam.state[leaf] = {
                        key: tensors[f"head.{k}.{name}.{key}"].to(leaf.device) for key in ("step", *_MOMENTS)
                    }


def _together(z: Tensor, apart: Sequence[Tensor], seen: Sequence[Tensor]) -> Tensor:
    """(K, N, d') the members' embeddings in one, `z` itself where nobody changed anything.

    Narrower ones get zeros in front, which score nothing.
    """
    if all(a is b for a, b in zip(apart, seen, strict=True)):
        return z
    width = max(s.shape[1] for s in seen)
    return torch.stack([torch.nn.functional.pad(s, (width - s.shape[1], 0)) for s in seen])


def _encode(backbone: Backbone, parameters: Parameters, views: Sequence[Inputs]) -> Tensor:
    """(K, N, d) of all members; on the CPU encoders take them one by one, whose rows then stay in the cache."""
    inputs = views[0]
    together = inputs.device.type != "cpu" and all(view is inputs for view in views)
    if together or backbone.messages == "none":
        return backbone.encode(parameters, inputs)
    members = len(views)
    apart = [{name: t.unbind(0) for name, t in part.items()} for part in (parameters.tables, parameters.layers)]
    alone = (
        Parameters(*({name: pieces[k][None] for name, pieces in part.items()} for part in apart))
        for k in range(members)
    )
    return torch.cat([backbone.encode(p, view) for p, view in zip(alone, views, strict=True)])


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
