"""The penalty slot, and the do-nothing penalty that fills it when a method has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Generator, Tensor


class Penalty(Protocol):
    """A non-negative scalar of one member's embeddings, before lambda."""

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """The penalty of `z` (N, d); draws come from `generator`, which belongs to this slot alone."""


class NoPenalty:
    """Adds nothing."""

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """Zero."""
        return z.new_zeros(())
