"""The penalty slot, and the do-nothing penalty that fills it when a method has none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from uge_core.ranks import Ranks


class Penalty(ABC):
    """A scalar of one member's embeddings, before lambda: a gap of at least 0, or minus an adversary's loss.

    Attributes:
        by_rows: several processes may share a training with it: it learns nothing, and each gets the gradient of the
            rows whose loss it computes.
    """

    by_rows: ClassVar[bool] = False

    def shared(self, ranks: Ranks) -> Penalty:
        """The penalty where several processes have a share each; itself where each measures all of it."""
        return self

    @abstractmethod
    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """The penalty of `z` (N, d); draws come from `generator`, which belongs to this slot alone."""

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint keeps of a penalty that learns."""
        return {}

    def restore(self, tensors: dict[str, Tensor]) -> None:  # noqa: B027  most penalties learn nothing
        """Takes back what `state` gave, on the CPU, before the first call."""


@runtime_checkable
class Ahead(Protocol):
    """A penalty whose draws can be made before its step, so that the step may be recorded and run again.

    Calling the penalty is `measure` of what `draw` gives.
    """

    def draw(self, generator: Generator, dim: int) -> tuple[Tensor, ...] | None:
        """A step's draws on the host, alike in shape at every step; None, and nothing drawn, where it cannot be so."""

    def measure(self, z: Tensor, drawn: tuple[Tensor, ...]) -> Tensor:
        """The penalty of `z` (N, d) with draws that lie where `z` does."""


class NoPenalty(Penalty):
    """Adds nothing."""

    by_rows: ClassVar[bool] = True

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """Zero."""
        return z.new_zeros(())

    def draw(self, generator: Generator, dim: int) -> tuple[Tensor, ...]:
        """Nothing."""
        return ()

    def measure(self, z: Tensor, drawn: tuple[Tensor, ...]) -> Tensor:
        """Zero."""
        return z.new_zeros(())
