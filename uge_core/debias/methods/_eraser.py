"""What erasers share: plain training, then a map of the embedding, fitted where no attacker is tested."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uge_core.arrays import BoolArray
from uge_core.debias.base import Method
from uge_core.debias.bias_free import Evidence
from uge_core.errors import ConfigError


@dataclass(frozen=True)
class Eraser(Method):
    """Trains as `none` does; a subclass fills the finish."""

    def check(self, evidence: Evidence, loss: str) -> None:
        """Refuses where no node is left to fit it on."""
        if not learnable(evidence).any():
            names = ", ".join(v.name for v in evidence.sensitive)
            raise ConfigError(f"{self.name}: no node outside the probe's test has a known value of {names}")

    def dimensions(self, evidence: Evidence) -> int:
        """One a value, less one per attribute."""
        fit = learnable(evidence)
        return sum(len(np.unique(v.codes[fit])) - 1 for v in evidence.sensitive)


def learnable(evidence: Evidence) -> BoolArray:
    """(N,) people whose values of all sensitive attributes are really known and are no probe's test."""
    fit: BoolArray = evidence.side == 0
    if evidence.probed is not None:
        fit &= ~evidence.probed
    for value in evidence.sensitive:
        fit &= value.fitted
    return fit
