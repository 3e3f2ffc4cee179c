"""The training loop: one for every method, backbone and number of members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
        losses, step = stage.losses, stage.runner()
        self.how = step.how
        for epoch in range(stage.at + 1, last + 1):
            wanted = losses.wants(epoch)
            edges, penalties = step(epoch, wanted)
            if wanted:
                losses.note(epoch, edges, penalties)
            stage.validation(epoch, stage.embedded)
            if self.checkpoint and (self.checkpoint.due() or epoch == last < self.epochs):
                self._save(stage, epoch)
            if self.on_epoch is not None:
                left = stage.pace(epoch) * (self.epochs - epoch)
                try:
                    self.on_epoch(EpochProgress(epoch, self.epochs, losses.latest, left))
                except BaseException:
                    self._save(stage, epoch)
                    raise
        return stage.ends()

    def _resume(self, stage: Stage) -> None:
        """Goes on from the stage's checkpoint where there is one that serves."""
        held = self.checkpoint.load(stage.name) if self.checkpoint else None
        if held is not None and stage.restore(held):
            self.spent += stage.earlier
            self.resumed.append(stage.at)

    def _save(self, stage: Stage, epoch: int) -> None:
        """Writes the stage's checkpoint; losses that a device holds back are looked at first."""
        stage.losses.read()
        if self.checkpoint:
            held = stage.held(epoch)
            self.checkpoint.save(stage.name, held.record, held.arrays)
