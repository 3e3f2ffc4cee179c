"""One stage of a training: members in lock-step from one epoch to another, cold from their seeds or warm from others' ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uge_core.backbones._inputs import Inputs
from uge_core.backbones.base import Backbone
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import scorer
from uge_core.graph.split import LinkSplit
from uge_core.training import cuda_graph, objective
from uge_core.training.checkpoint import Held
from uge_core.training.config import RunConfig
from uge_core.training.edge_loss.pairs import Pairs
from uge_core.training.encode import EncoderViews, encode_members
from uge_core.training.ends import End
from uge_core.training.loss_history import LossHistory, refuse_divergence
from uge_core.training.member_heads import stacked
from uge_core.training.members import Member
from uge_core.training.state import TrainingState
from uge_core.training.validation import BestEpoch, LastEpoch, Validation

_VALIDATION = "validation."  # what names in a checkpoint start with


@dataclass(frozen=True, eq=False)
class Shared:
    """What all members of an ensemble share.

    Attributes:
        config: any member's, for the settings that they share.
        backbone: theirs.
        inputs: what encoders see of the graph.
        pairs: of the training edges.
        graph: the graph.
        split: its split.
    """

    config: RunConfig
    backbone: Backbone
    inputs: Inputs
    pairs: Pairs
    graph: AttributedGraph
    split: LinkSplit


class Stage:
    """The members of a stage with all that it takes to train them.

    Attributes:
        name: cold or warm.
        last: the epoch it ends at.
        at: the epoch that this process goes on from.
        earlier: seconds that earlier processes took.
        losses: those logged.
        validation: what decides the epoch kept.
    """

    def __init__(
        self, shared: Shared, members: Sequence[Member], starts: Sequence[End] | None, done: int, last: int
    ) -> None:
        """Members that have `done` epochs behind them, those of the ends `starts`.

        Without, they begin from their seeds.
        """
        config, backbone, inputs = shared.config, shared.backbone, shared.inputs
        self.name = "cold" if starts is None else "warm"
        self.members, self.backbone, self.inputs, self.dim = members, backbone, inputs, config.dim
        self.at, self.last = done, last
        self.views = EncoderViews(inputs, [m.edges for m in members], backbone.messages)
        self.loss = objective.build(
            backbone,
            shared.pairs,
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
            ranks=inputs.ranks,
        )
        self.state = TrainingState(config, backbone, inputs, members, starts, done)
        self.losses = LossHistory(members, done + 1, last, inputs.device)
        self.validation: Validation = LastEpoch()
        if shared.split.validation.size:
            self.validation = BestEpoch(shared.graph, shared.split, config, len(members), done, last)
        self.earlier, self._started = 0.0, time.monotonic()

    def runner(self) -> cuda_graph.EpochRunner:
        """What runs its steps, as they are written or recorded."""
        return cuda_graph.choose(
            self.step,
            self.loss.stage,
            [m.penalty.shared(self.inputs.ranks) for m in self.members],
            self.state.streams,
            self.dim,
            self.inputs.device,
            self.state.adam,
            fixed=all(m.fixed for m in self.members),
        )

    def step(self, epoch: int, want_loss: bool, penalties_of: cuda_graph.Gaps) -> tuple[Tensor, Tensor]:
        """One epoch: encode, compare, take a step. Edge losses (K,), of use where wanted, and penalties (K,)."""
        state, parameters = self.state, self.state.parameters
        state.adam.clear()
        z = self.inputs.ranks.whole(encode_members(self.backbone, parameters, self.views(epoch)))
        apart = z.unbind(0)
        seen = state.heads.seen(apart)
        edges = self.loss(stacked(z, apart, seen), self.backbone.context(parameters), epoch, want_loss)
        penalties = penalties_of(seen)
        lams = self.losses.lams
        total = edges.sum() + sum((lam * p for lam, p in zip(lams, penalties, strict=True)), z.new_zeros(()))
        total.backward()  # type: ignore[no-untyped-call]
        state.adam.step()
        return edges.detach(), torch.stack([p.detach().float() for p in penalties])

    def embedded(self) -> Tensor:
        """(K, N, d) the members' embeddings as they are now."""
        with torch.no_grad():
            own = encode_members(self.backbone, self.state.parameters, self.views(None))
            z = self.inputs.ranks.whole(own)
            return self.state.heads.exported(z).detach()

    def pace(self, epoch: int) -> float:
        """Seconds an epoch took on average, in this process, up to `epoch`."""
        return (time.monotonic() - self._started) / (epoch - self.at)

    def held(self, epoch: int) -> Held:
        """What a checkpoint after `epoch` keeps, once all losses are read: what the epochs to come depend on."""
        best, tensors = self.validation.state()
        record = {
            "history": self.losses.columns,
            "validation": best,
            "epoch": epoch,
            "shown": self.losses.latest,
            "seconds": self.earlier + time.monotonic() - self._started,
            "device": self.inputs.device.type,
        }
        of_validation = {f"{_VALIDATION}{name}": t.cpu().numpy() for name, t in tensors.items()}
        return Held(record, of_validation | self.state.arrays())

    def restore(self, held: Held) -> bool:
        """Goes on from what a checkpoint held; not where that was trained on a device of another kind."""
        if held.record["device"] != self.inputs.device.type:
            return False
        self.state.restore(held)
        best = {
            name.removeprefix(_VALIDATION): torch.tensor(array).to(self.inputs.device)
            for name, array in held.arrays.items()
            if name.startswith(_VALIDATION)
        }
        self.validation.restore(held.record["validation"], best)
        self.losses.columns |= held.record["history"]
        self.at, self.losses.latest, self.earlier = (held.record[key] for key in ("epoch", "shown", "seconds"))
        return True

    def ends(self) -> list[End]:
        """What each member's training came to.

        Raises:
            TrainingDiverged: an embedding is not finite.
        """
        z = self.embedded()
        finite: list[Any] = torch.isfinite(z).flatten(1).all(1).tolist()
        refuse_divergence(self.members, finite, f"embedding is not finite after {self.last} epochs")
        embeddings, best_epochs = self.validation.result(z, self.last)
        state = self.state
        return [
            End(
                tensors=state.tensors(k),
                head=state.heads.end(k, state.adam),
                learned=member.penalty.state(),
                embedding=np.ascontiguousarray(embeddings[k].cpu().numpy().astype(np.float32)),
                history=self.losses.of(k),
                best_epoch=best_epochs[k],
                last_epoch=self.last,
                validation=self.validation.record(k),
            )
            for k, member in enumerate(self.members)
        ]
