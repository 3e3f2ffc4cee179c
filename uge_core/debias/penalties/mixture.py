"""Several penalties at once, each with its own weight, so that one lambda moves them together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from uge_core.debias.penalties.base import Ahead, Penalty

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from uge_core.ranks import Ranks


@dataclass(frozen=True, eq=False)
class Mixture(Penalty):
    """The weighted sum of penalties that do not learn.

    Attributes:
        parts: (weight, penalty) each; one of weight 0 costs nothing.
    """

    parts: tuple[tuple[float, Penalty], ...]

    @property
    def by_rows(self) -> bool:  # type: ignore[override]
        """See `Penalty`."""
        return all(part.by_rows for _, part in self.parts)

    def shared(self, ranks: Ranks) -> Mixture:
        """See `Penalty.shared`."""
        return Mixture(tuple((w, part.shared(ranks)) for w, part in self.parts))

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """The sum for `z` (N, d), a scalar."""
        return sum((w * part(z, generator) for w, part in self.parts if w), z.new_zeros(()))

    @cached_property
    def _drawn(self) -> list[int]:
        """How many tensors each part that counts has drawn, which is the same at every step."""
        return []

    def draw(self, generator: Generator, dim: int) -> tuple[Tensor, ...] | None:
        """See `Ahead.draw`: the parts' draws one after another; None where one of them cannot draw ahead."""
        parts = [part for w, part in self.parts if w]
        draws: list[tuple[Tensor, ...]] = []
        before = generator.get_state()
        for part in parts:
            drawn = part.draw(generator, dim) if isinstance(part, Ahead) else None
            if drawn is None:
                generator.set_state(before)
                return None
            draws.append(drawn)
        self._drawn[:] = map(len, draws)
        return tuple(t for drawn in draws for t in drawn)

    def measure(self, z: Tensor, drawn: tuple[Tensor, ...]) -> Tensor:
        """See `Ahead.measure`."""
        total, at = z.new_zeros(()), 0
        for (w, part), many in zip(((w, p) for w, p in self.parts if w), self._drawn, strict=True):
            assert isinstance(part, Ahead)
            total = total + w * part.measure(z, drawn[at : at + many])
            at += many
        return total
