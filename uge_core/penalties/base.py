"""The penalty slot, and the do-nothing penalty that fills it when a method has none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor


class Penalty(ABC):
    """A scalar of one member's embeddings, before lambda: a gap of at least 0, or minus an adversary's loss."""

    @abstractmethod
    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """The penalty of `z` (N, d); draws come from `generator`, which belongs to this slot alone."""

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint keeps of a penalty that learns."""
        return {}

    def restore(self, tensors: dict[str, Tensor]) -> None:  # noqa: B027  most penalties learn nothing
        """Takes back what `state` gave, on the CPU, before the first call."""


class NoPenalty(Penalty):
    """Adds nothing."""

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """Zero."""
        return z.new_zeros(())
