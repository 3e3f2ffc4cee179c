"""The slot between the encoder and the loss, and the do-nothing head that fills it when a method has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Generator, Tensor


class Head(Protocol):
    """What the loss sees of one member's embedding, and what is exported of it."""

    def start(self, dim: int, generator: Generator) -> dict[str, Tensor]:
        """Parameters that train beside the encoder's, without weight decay; `dim` is d."""

    def seen(self, z: Tensor, parameters: dict[str, Tensor], generator: Generator) -> Tensor:
        """(N, d') what loss and penalty see of `z` (N, d) in one step; draws come from `generator`.

        The last d columns stand for those of `z`: some backbones' last columns meet contexts.
        """

    def exported(self, z: Tensor, parameters: dict[str, Tensor]) -> Tensor:
        """(N, d) what is kept of `z` (N, d); draws nothing."""


class NoHead:
    """Passes the embedding on."""

    def start(self, dim: int, generator: Generator) -> dict[str, Tensor]:
        """Nothing."""
        return {}

    def seen(self, z: Tensor, parameters: dict[str, Tensor], generator: Generator) -> Tensor:
        """`z`."""
        return z

    def exported(self, z: Tensor, parameters: dict[str, Tensor]) -> Tensor:
        """`z`."""
        return z
