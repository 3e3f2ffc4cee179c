"""Several penalties at once, each with its own weight, so that one lambda moves them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uge_core.penalties.base import Penalty

if TYPE_CHECKING:
    from torch import Generator, Tensor


@dataclass(frozen=True, eq=False)
class Mixture(Penalty):
    """The weighted sum of penalties that do not learn.

    Attributes:
        parts: (weight, penalty) each; one of weight 0 costs nothing.
    """

    parts: tuple[tuple[float, Penalty], ...]

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """The sum for `z` (N, d), a scalar."""
        return sum((w * part(z, generator) for w, part in self.parts if w), z.new_zeros(()))
