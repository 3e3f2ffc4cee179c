"""The choice of a score, for methods that CNE's belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from uge_core.debias.base import Method
from uge_core.graph.scores import SIGMA_2, Distance
from uge_core.registry import option


@dataclass(frozen=True)
class Scored(Method):
    """A method that trains on dot products or on CNE's distances; see `scores`."""

    score: str = option(
        "dot",
        "dot: z_u . z_v; distance: CNE's own, log s - (1 - 1/s^2) / 2 |z_u - z_v|^2 with s = sigma_2",
        choices=("dot", "distance"),
        label="Score of a pair",
        words=("dot product", "distance, as CNE's"),
    )
    sigma_2: float = option(
        SIGMA_2,
        "of distance: how many times as far strangers are spread as linked nodes are",
        low=1.01,
        high=1e6,
        label="Spread of strangers",
    )

    @property
    def scored_by(self) -> str:
        """The score by its name."""
        return Distance(self.sigma_2).name if self.score == "distance" else self.score

    def unread(self, bipartite: bool) -> set[str]:
        """As for `Method`; sigma_2 is of the distance alone."""
        return super().unread(bipartite) | (set() if self.score == "distance" else {"sigma_2"})
