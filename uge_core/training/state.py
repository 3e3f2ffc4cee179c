"""What a step changes: parameters, Adam's moments, heads and streams of draws.

Begun, gone on from, kept and restored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from uge_core.adam import Adam
from uge_core.backbones._inputs import Inputs
from uge_core.backbones.base import Backbone, Parameters
from uge_core.training.checkpoint import Held
from uge_core.training.config import RunConfig
from uge_core.training.ends import End
from uge_core.training.member_heads import MOMENTS, MemberHeads, leaves
from uge_core.training.members import Member
from uge_core.training.streams import stream

TABLES = "tables."
"""What names of tables in a checkpoint start with."""


class TrainingState:
    """All that changes from epoch to epoch but for validation and history; of several ranks the own rows of tables.

    Attributes:
        parameters: of all members' encoders, stacked.
        heads: the members' heads.
        adam: the optimiser of both.
        streams: a penalty's draws, one for each member.
    """

    def __init__(
        self,
        config: RunConfig,
        backbone: Backbone,
        inputs: Inputs,
        members: Sequence[Member],
        starts: Sequence[End] | None,
        done: int,
    ) -> None:
        """The state of `members` after `done` epochs: that of the ends `starts`, or anew from their seeds."""
        self.ranks = inputs.ranks
        if starts is None:
            fresh = [self._own(backbone.init(inputs, config.dim, stream(m.config.seed, "init"))) for m in members]
            parts = [_stack([p.tables for p in fresh]), _stack([p.layers for p in fresh])]
        else:
            parts = [_stack([{name: t[0] for name, t in end.tensors[i].items()} for end in starts]) for i in (0, 1)]
        self.parameters = Parameters(*(leaves(part, inputs.device) for part in parts))
        self.heads = MemberHeads(members, starts, config.dim, inputs.device)
        self.adam = _adam(config, self.parameters, self.heads)
        if starts is not None:
            self._give_moments(starts, done)
        self.heads.give_moments(self.adam)
        self.streams = [stream(m.config.seed, "penalty") for m in members]

    @property
    def parts(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Tables and layers."""
        return self.parameters.tables, self.parameters.layers

    def tensors(self, k: int) -> list[dict[str, tuple[Tensor, Tensor, Tensor]]]:
        """Member k's tables, then its layers: each parameter with its moments."""
        state = self.adam.state
        return [
            {
                name: (leaf.detach()[k], state[leaf]["exp_avg"][k], state[leaf]["exp_avg_sq"][k])
                for name, leaf in part.items()
            }
            for part in self.parts
        ]

    def arrays(self) -> dict[str, Any]:
        """What a checkpoint keeps, on rank 0; negatives are keyed by the epoch and need nothing kept."""
        tensors = {f"stream.{k}": g.get_state() for k, g in enumerate(self.streams)}
        for name, leaf in self._named():
            kept = {name: leaf.detach()} | {f"{name}.{m}": self.adam.state[leaf][m] for m in MOMENTS}
            tensors |= {n: self.ranks.collected(t) if name.startswith(TABLES) else t for n, t in kept.items()}
        return {name: t.cpu().numpy() for name, t in tensors.items()} | self.heads.state(self.adam)

    def restore(self, held: Held) -> None:
        """Takes back what `arrays` gave, of tables this rank's rows."""
        # copied into torch's own memory: matrix products may round otherwise where an array is aligned otherwise
        tensors = {name: torch.tensor(array) for name, array in held.arrays.items()}
        for name, leaf in self._named():
            with torch.no_grad():
                leaf.copy_(tensors[name])
            moments = {m: tensors[f"{name}.{m}"].to(leaf.device) for m in MOMENTS}
            self.adam.state[leaf] = {"step": _steps(held.record["epoch"], leaf), **moments}
        for k, generator in enumerate(self.streams):
            generator.set_state(tensors[f"stream.{k}"])
        self.heads.restore(held, self.adam)

    def _own(self, fresh: Parameters) -> Parameters:
        """This rank's rows of one member's first parameters."""
        return Parameters({name: self.ranks.own(t) for name, t in fresh.tables.items()}, fresh.layers)

    def _give_moments(self, starts: Sequence[End], done: int) -> None:
        """Gives Adam what it kept where members ended."""
        for i, part in enumerate(self.parts):
            for name, leaf in part.items():
                first, second = (torch.stack([end.tensors[i][name][m] for end in starts]) for m in (1, 2))
                self.adam.state[leaf] = {"step": _steps(done, leaf), "exp_avg": first, "exp_avg_sq": second}

    def _named(self) -> Iterator[tuple[str, Tensor]]:
        """The encoders' parameters by the names that a checkpoint gives them."""
        for part, tensors in zip(("tables", "layers"), self.parts, strict=True):
            for name, leaf in tensors.items():
                yield f"{part}.{name}", leaf


def _adam(config: RunConfig, parameters: Parameters, heads: MemberHeads) -> Adam:
    """The optimiser; layers alone decay."""
    groups = (
        (list(parameters.tables.values()), 0.0),
        (list(parameters.layers.values()), config.weight_decay),
        (heads.leaves, 0.0),
    )
    return Adam(groups, config.learning_rate, eps=1e-15)


def _steps(count: int, leaf: Tensor) -> Tensor:
    """How many steps Adam has taken, as it keeps the number."""
    return torch.tensor(float(count), device=leaf.device)


def _stack(parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([p[name] for p in parts]) for name in (parts[0] if parts else ())}
