"""The slot of what a method multiplies single training edges by, beside what their cell weighs.

A cell table speaks of groups; some methods weigh an edge by the nodes at its ends (Fairwalk), leave it
out for some epochs (FairDrop), or weigh the messages of encoders. The loss and the messages have one
factor per training edge, as scores have no direction: of a directed weight w(u -> v) it is the mean of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from uge_core.arrays import FloatArray


class EdgeFactors(Protocol):
    """Factors of the training edges; the same array object is given while nothing changes."""

    def in_loss(self, epoch: int) -> FloatArray | None:
        """(E,) float32 factor of each training edge's term in the loss at an epoch; None: 1 each."""

    def in_messages(self, epoch: int) -> FloatArray | None:
        """(E,) float32 weight of each training edge's messages, both ways; None: as the graph has them."""

    def in_kept(self) -> FloatArray | None:
        """The same for the one pass that makes the embedding that is kept."""


class NoFactors:
    """Every edge counts once."""

    def in_loss(self, epoch: int) -> None:
        """Nothing."""

    def in_messages(self, epoch: int) -> None:
        """Nothing."""

    def in_kept(self) -> None:
        """Nothing."""


@dataclass(frozen=True, eq=False)
class FixedFactors:
    """The same factors at every epoch.

    Attributes:
        loss: (E,) float32, or None for 1 each.
        messages: (E,) float32, or None.
    """

    loss: FloatArray | None = None
    messages: FloatArray | None = None

    def in_loss(self, epoch: int) -> FloatArray | None:
        """See `EdgeFactors.in_loss`."""
        return self.loss

    def in_messages(self, epoch: int) -> FloatArray | None:
        """See `EdgeFactors.in_messages`."""
        return self.messages

    def in_kept(self) -> FloatArray | None:
        """See `EdgeFactors.in_kept`."""
        return self.messages
