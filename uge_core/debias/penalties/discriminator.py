"""What a discriminator is asked for and how it is made, in plain arrays; the network itself is in `_adversary`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import IntArray


@dataclass(frozen=True)
class Build:
    """How discriminators are made and trained.

    Attributes:
        depth: hidden layers.
        width: of each.
        steps: of each discriminator per step of the encoder.
        batch: nodes per step, drawn with replacement; 0: all.
        learning_rate: of their Adam.
    """

    depth: int
    width: int
    steps: int
    batch: int
    learning_rate: float


@dataclass(frozen=True, eq=False)
class Answer:
    """What a discriminator is asked for.

    Attributes:
        nodes: (n,) the nodes that have a value.
        values: (n,) int64 their codes, or (n, G) float32 a probability for each value.
        num_values: G.
    """

    nodes: IntArray
    values: npt.NDArray[Any]
    num_values: int

    @classmethod
    def of_codes(cls, codes: IntArray, num_values: int) -> Answer:
        """From codes (N,), negative where a node has no value."""
        nodes = np.nonzero(codes >= 0)[0]
        return cls(nodes, codes[nodes], num_values)

    @property
    def chance(self) -> float:
        """H(a): the cross-entropy, in nats, of who says the groups' shares for everybody."""
        whole = self.values.ndim == 1
        sums = np.bincount(self.values, minlength=self.num_values) if whole else self.values.sum(0, dtype=np.float64)
        share = sums[sums > 0] / sums.sum()
        return float(-(share * np.log(share)).sum())
