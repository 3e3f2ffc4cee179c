"""The training loop: one for every method, backbone and number of members."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from uge_core.errors import ProcessLost
from uge_core.training.checkpoint import Checkpoint
from uge_core.training.ends import End
from uge_core.training.members import Member
from uge_core.training.stage import Shared, Stage


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


class TrainingLoop:
    """The loop itself, for members that start anew or from where others ended.

    Attributes:
        how: how steps ran.
        spent: seconds that earlier processes took.
        resumed: the epochs that stages were resumed at.
    """

    def __init__(
        self,
        shared: Shared,
        epochs: int,
        on_epoch: Callable[[EpochProgress], None] | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        """A training of `epochs` in all its stages; see `fit` for the rest."""
        self.shared, self.epochs, self.on_epoch, self.checkpoint = shared, epochs, on_epoch, checkpoint
        self.how = ""
        self.spent = 0.0
        self.resumed: list[int] = []

    def run(self, members: Sequence[Member], starts: Sequence[End] | None, done: int, last: int) -> list[End]:
        """Trains `members` from epoch `done` + 1 to `last`, from where others ended or from their own seeds.

        Raises:
            TrainingDiverged: a loss or an embedding is not finite.
        """
        stage = Stage(self.shared, members, starts, done, last)
        self._resume(stage)
        losses, step, ranks = stage.losses, stage.runner(), self.shared.inputs.ranks
        self.how = step.how if ranks.size == 1 else f"{step.how}, rows shared out to {ranks.size} processes"
        for epoch in range(stage.at + 1, last + 1):
            began = time.monotonic()
            wanted = losses.wants(epoch)
            edges, penalties = step(epoch, wanted)
            if wanted:
                losses.note(epoch, edges, penalties)
            stage.validation(epoch, stage.embedded)
            ranks.pace(time.monotonic() - began)
            due = self.checkpoint is not None and (self.checkpoint.due() or epoch == last < self.epochs)
            if saved := ranks.told(due):
                self._save(stage, epoch)
            ended: BaseException | None = None
            if self.on_epoch is not None:
                left = stage.pace(epoch) * (self.epochs - epoch)
                try:
                    self.on_epoch(EpochProgress(epoch, self.epochs, losses.latest, left))
                except BaseException as error:
                    ended = error
            try:
                if over := ranks.told(ended is not None, slow=saved):
                    self._save(stage, epoch)
            except ProcessLost:
                if ended is None:
                    raise
                raise ended from None  # a Ctrl-C has ended the others too
            if over:
                raise ended or ProcessLost("the process that leads this training has ended it")
        return stage.ends()

    def _resume(self, stage: Stage) -> None:
        """Goes on from the stage's checkpoint where there is one that serves."""
        held = self.shared.inputs.ranks.dealt(self.checkpoint.load(stage.name) if self.checkpoint else None)
        if held is not None and stage.restore(held):
            self.spent += stage.earlier
            self.resumed.append(stage.at)

    def _save(self, stage: Stage, epoch: int) -> None:
        """Writes the stage's checkpoint; losses that a device holds back are looked at first. All ranks take part."""
        stage.losses.read()
        if self.checkpoint or self.shared.inputs.ranks.size > 1:
            held = stage.held(epoch)
        if self.checkpoint:
            self.checkpoint.save(stage.name, held.record, held.arrays)
