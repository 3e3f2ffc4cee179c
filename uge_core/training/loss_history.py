"""The losses that are logged, and the refusal of those that are no numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uge_core.errors import TrainingDiverged
from uge_core.training.members import Member

_EVERY = 10  # epochs between two that are logged
_LATE = 10  # logged epochs whose numbers a GPU may hold back


class LossHistory:
    """The losses of each logged epoch, one for each member."""

    def __init__(self, members: Sequence[Member], first: int, last: int, device: torch.device) -> None:
        """Of `members` that train from epoch `first` to `last`, both of which are logged."""
        self.members, self.ends, self.device = members, (first, last), device
        self.lams = [m.config.lam or 0.0 for m in members]
        self.columns: dict[str, list[Any]] = {"epoch": [], "edge_loss": [], "penalty": [], "total": []}
        self.latest = float("nan")  # mean total loss of the last epoch read
        self._unread: list[tuple[int, Tensor, Tensor]] = []

    def wants(self, epoch: int) -> bool:
        """Whether an epoch is logged."""
        return epoch % _EVERY == 0 or epoch in self.ends

    def note(self, epoch: int, edges: Tensor, penalties: Tensor) -> None:
        """Takes the (K,) losses of an epoch that is logged.

        Raises:
            TrainingDiverged: a loss is not finite.
        """
        self._unread.append((epoch, edges.clone(), penalties.clone()))
        # reading a number waits for the device, so a GPU's are read some at a time
        if self.device.type == "cpu" or len(self._unread) == _LATE or epoch in self.ends:
            self.read()

    def read(self) -> None:
        """Reads what the device holds back.

        Raises:
            TrainingDiverged: a loss is not finite.
        """
        for epoch, edges, penalties in self._unread:
            self._log(epoch, edges.tolist(), penalties.tolist())
        self._unread.clear()

    def _log(self, epoch: int, edges: list[float], penalties: list[float]) -> None:
        total = [e + lam * p for e, p, lam in zip(edges, penalties, self.lams, strict=True)]
        refuse_divergence(self.members, np.isfinite(total).tolist(), f"loss is not finite at epoch {epoch}")
        for name, row in (("epoch", epoch), ("edge_loss", edges), ("penalty", penalties), ("total", total)):
            self.columns[name].append(row)
        self.latest = float(np.mean(total))

    def of(self, k: int) -> dict[str, list[float]]:
        """Member k's columns."""
        own = {name: [row[k] for row in self.columns[name]] for name in ("edge_loss", "penalty", "total")}
        return {"epoch": self.columns["epoch"]} | own


def refuse_divergence(members: Sequence[Member], finite: Sequence[bool], what: str) -> None:
    """Raises where a member has left the numbers, naming all that have.

    Args:
        members: of the ensemble.
        finite: whether each one's numbers are finite.
        what: which numbers are not, and when.

    Raises:
        TrainingDiverged: one of them has.
    """
    diverged = [m for m, ok in zip(members, finite, strict=True) if not ok]
    if diverged:
        which = "; ".join(m.label for m in diverged)
        raise TrainingDiverged(
            f"the {what} of {which}; lower the learning rate or lambda, and look for huge features",
            tuple(sorted({m.position for m in diverged})),
        )
