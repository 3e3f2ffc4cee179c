"""What a member's training came to, from which others may go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from uge_core.arrays import FloatArray
from uge_core.ranks import ALONE, Ranks
from uge_core.training.members import Member


@dataclass(frozen=True, eq=False)
class End:
    """What a member's training came to.

    Who goes on from here goes on with Adam's moments too, as a step without them is a jump of the whole learning rate
    in every number.

    Attributes:
        tensors: tables, then layers: each parameter with Adam's two moments; of several ranks the own rows of tables.
        head: the head's parameters, with what Adam keeps of each.
        learned: what the penalty has learnt.
        embedding: (N, d) of the epoch kept.
        history: columns epoch, edge_loss, penalty and total.
        best_epoch: the epoch kept.
        last_epoch: the epoch that `tensors` are of.
        validation: what was seen on validation links, or None.
    """

    tensors: list[dict[str, tuple[Tensor, Tensor, Tensor]]]
    head: dict[str, tuple[Tensor, dict[str, Tensor]]]
    learned: dict[str, Tensor]
    embedding: FloatArray
    history: dict[str, list[float]]
    best_epoch: int
    last_epoch: int
    validation: dict[str, Any] | None

    def parameters(self, ranks: Ranks = ALONE) -> dict[str, FloatArray]:
        """The encoder's parameters as ``tables.NAME`` and ``layers.NAME``, on rank 0."""
        tables, layers = ({name: t for name, (t, _, _) in part.items()} for part in self.tensors)
        whole = {f"tables.{name}": ranks.collected(t) for name, t in tables.items()}
        named = whole | {f"layers.{name}": t for name, t in layers.items()}
        return {name: np.ascontiguousarray(t.cpu().numpy()) for name, t in named.items()}


def cold_key(member: Member) -> str:
    """What a member's cold training is known by: members with equal keys share it."""
    return repr((member.config.cold(), member.twin))
