"""The training loop: one for every method, backbone and number of members."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uge_core.arrays import FloatArray
from uge_core.backbones._inputs import Inputs
from uge_core.backbones.base import Backbone, Parameters
from uge_core.errors import TrainingDiverged
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import scorer
from uge_core.graph.split import LinkSplit
from uge_core.training import cuda_graph, objective
from uge_core.training.checkpoint import Checkpoint, Held
from uge_core.training.config import RunConfig
from uge_core.training.edge_loss.pairs import Pairs
from uge_core.training.encode import encode_members
from uge_core.training.members import Member
from uge_core.training.validation import BestEpoch, LastEpoch, Validation

_LOG_EVERY = 10
_LATE = 10  # logged epochs whose numbers a GPU may hold back


@dataclass(frozen=True)
class EpochProgress:
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


class _Views:
    """What each member's encoder sees: the graph they share, or its own where the method weighs messages."""

    def __init__(self, shared: Inputs, members: Sequence[Member], messages: str) -> None:
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


def kept_parameters(end: _End) -> dict[str, FloatArray]:
    """The parameters of a member's end by part and name."""
    return {
        f"{part}.{name}": np.ascontiguousarray(found[0].cpu().numpy())
        for part, tensors in zip(("tables", "layers"), end.tensors, strict=True)
        for name, found in tensors.items()
    }


def start_of(member: Member) -> str:
    """What a member's cold part is known by: members with equal starts share it."""
    return repr((member.config.cold(), member.twin))


class TrainingLoop:
    """The loop itself, for members that start anew or from where others ended."""

    def __init__(
        self,
        config: RunConfig,
        backbone: Backbone,
        inputs: Inputs,
        pairs: Pairs,
        graph: AttributedGraph,
        split: LinkSplit,
        on_epoch: Callable[[EpochProgress], None] | None,
        whole: int,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.config, self.backbone, self.inputs, self.pairs = config, backbone, inputs, pairs
        self.graph, self.split, self.on_epoch, self.whole = graph, split, on_epoch, whole
        self.checkpoint = checkpoint
        self.how = ""  # how steps ran
        self.spent = 0.0  # seconds that earlier processes took
        self.resumed: list[int] = []

    def run(self, members: list[Member], begun: list[_End] | None, done: int, epochs: int) -> list[_End]:
        """Trains `members` from epoch `done` + 1 to `epochs`, from where others ended or from their own seeds."""
        config, backbone, inputs = self.config, self.backbone, self.inputs
        views = _Views(inputs, members, backbone.messages)
        loss = objective.build(
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
        validation: Validation = LastEpoch()
        if self.split.validation.size:
            validation = BestEpoch(self.graph, self.split, config, len(members), done, epochs)
        history: dict[str, list[Any]] = {"epoch": [], "edge_loss": [], "penalty": [], "total": []}
        started, shown, at, before = time.monotonic(), float("nan"), done, 0.0
        stage = "cold" if begun is None else "warm"
        held = self.checkpoint.load(stage) if self.checkpoint else None
        if held and held.record["device"] == inputs.device.type:
            _restore(held, parameters, adam, streams, validation, history)
            heads.restore(held, adam)
            at, shown, before = (held.record[key] for key in ("epoch", "shown", "seconds"))
            self.spent += before
            self.resumed.append(at)

        waiting: list[tuple[int, Tensor, Tensor]] = []

        def log() -> None:
            nonlocal shown
            for epoch, edges, gaps in waiting:
                shown = log_losses(history, members, epoch, edges.tolist(), gaps.tolist(), lams)
            waiting.clear()

        def keep(epoch: int) -> None:
            log()
            if self.checkpoint:
                seconds = before + time.monotonic() - started
                where = {"epoch": epoch, "shown": shown, "seconds": seconds, "device": inputs.device.type}
                record, arrays = _state(parameters, adam, streams, validation, history)
                self.checkpoint.save(stage, record | where, arrays | heads.state(adam))

        def embedded() -> Tensor:
            with torch.no_grad():
                return heads.exported(encode_members(backbone, parameters, views(None))).detach()

        def step(epoch: int, want_loss: bool, gaps_of: cuda_graph.Gaps) -> tuple[Tensor, Tensor]:
            adam.zero_grad(set_to_none=True)
            z = encode_members(backbone, parameters, views(epoch))
            apart = z.unbind(0)
            seen = heads.seen(apart)
            edges = loss(_together(z, apart, seen), backbone.context(parameters), epoch, want_loss)
            gaps = gaps_of(seen)
            total = edges.sum() + sum((lam * gap for lam, gap in zip(lams, gaps, strict=True)), z.new_zeros(()))
            total.backward()  # type: ignore[no-untyped-call]
            adam.step()
            return edges.detach(), torch.stack([gap.detach().float() for gap in gaps])

        penalties, fixed = [m.penalty for m in members], all(m.fixed for m in members)
        run = cuda_graph.choose(step, loss.stage, penalties, streams, config.dim, inputs.device, adam, fixed=fixed)
        self.how = run.how
        for epoch in range(at + 1, epochs + 1):
            wanted = epoch % _LOG_EVERY == 0 or epoch in (done + 1, epochs)
            edges, gaps = run(epoch, wanted)
            if wanted:
                waiting.append((epoch, edges.clone(), gaps.clone()))
                # reading a number waits for the device, so a GPU's are read some at a time
                if inputs.device.type == "cpu" or len(waiting) == _LATE or epoch in (done + 1, epochs):
                    log()
            validation(epoch, embedded)
            if self.checkpoint and (self.checkpoint.due() or epoch == epochs < self.whole):
                keep(epoch)
            if self.on_epoch is not None:
                pace = (time.monotonic() - started) / (epoch - at)
                try:
                    self.on_epoch(EpochProgress(epoch, self.whole, shown, pace * (self.whole - epoch)))
                except BaseException:
                    keep(epoch)
                    raise
        last = embedded()
        refuse_divergence(
            members, torch.isfinite(last).flatten(1).all(1).tolist(), f"embedding is not finite after {epochs} epochs"
        )
        kept, best = validation.result(last, epochs)
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
                validation.record(k),
            )
            for k in range(len(members))
        ]


_MOMENTS = ("exp_avg", "exp_avg_sq")


def _state(
    parameters: Parameters,
    adam: torch.optim.Adam,
    streams: list[torch.Generator],
    validation: Validation,
    history: dict[str, list[Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """All that the epochs to come depend on; negatives are keyed by the epoch and need nothing kept."""
    seen, tensors = validation.state()
    arrays = {f"validation.{name}": t for name, t in tensors.items()}
    arrays |= {f"stream.{k}": g.get_state() for k, g in enumerate(streams)}
    for part, leaves in (("tables", parameters.tables), ("layers", parameters.layers)):
        for name, leaf in leaves.items():
            arrays[f"{part}.{name}"] = leaf.detach()
            arrays |= {f"{part}.{name}.{m}": adam.state[leaf][m] for m in _MOMENTS}
    return {"history": history, "validation": seen}, {name: t.cpu().numpy() for name, t in arrays.items()}


def _restore(
    held: Held,
    parameters: Parameters,
    adam: torch.optim.Adam,
    streams: list[torch.Generator],
    validation: Validation,
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
    prefix = "validation."
    device = next(leaf.device for part in (parameters.tables, parameters.layers) for leaf in part.values())
    found = {name[len(prefix) :]: t.to(device) for name, t in tensors.items() if name.startswith(prefix)}
    validation.restore(held.record["validation"], found)
    history |= held.record["history"]


class _Heads:
    """The members' heads with their parameters, and what their penalties have learnt."""

    def __init__(self, members: Sequence[Member], begun: Sequence[_End] | None, dim: int, device: torch.device) -> None:
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


def log_losses(
    history: dict[str, list[Any]],
    members: list[Member],
    epoch: int,
    edges: list[float],
    gaps: list[float],
    lams: list[float],
) -> float:
    """Notes the losses of an epoch, one for each member, and returns their mean.

    Raises:
        TrainingDiverged: a loss is not finite.
    """
    total = [e + lam * g for e, g, lam in zip(edges, gaps, lams, strict=True)]
    refuse_divergence(members, np.isfinite(total).tolist(), f"loss is not finite at epoch {epoch}")
    for name, row in (("epoch", epoch), ("edge_loss", edges), ("penalty", gaps), ("total", total)):
        history[name].append(row)
    return float(np.mean(total))


def refuse_divergence(members: list[Member], finite: list[bool], what: str) -> None:
    """Raises where a member has left the numbers, naming all that have."""
    lost = [m for m, ok in zip(members, finite, strict=True) if not ok]
    if lost:
        which = "; ".join(m.label for m in lost)
        raise TrainingDiverged(
            f"the {what} of {which}; lower the learning rate or lambda, and look for huge features",
            tuple(sorted({m.position for m in lost})),
        )
