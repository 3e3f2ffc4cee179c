"""What erasers share: plain training, then a map of the embedding, fitted where no attacker is tested."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uge_core.arrays import BoolArray
from uge_core.debias.base import Method
from uge_core.debias.bias_free import MethodInputs
from uge_core.errors import ConfigError


@dataclass(frozen=True)
class Eraser(Method):
    """Trains as `none` does; a subclass fills the postprocess."""

    def check(self, inputs: MethodInputs, loss: str) -> None:
        """Refuses where no node is left to fit it on."""
        if not learnable(inputs).any():
            names = ", ".join(v.name for v in inputs.sensitive)
            raise ConfigError(f"{self.name}: no node outside the probe's test has a known value of {names}")

    def dimensions(self, inputs: MethodInputs) -> int:
        """One a value, less one per attribute."""
        fit = learnable(inputs)
        return sum(len(np.unique(v.codes[fit])) - 1 for v in inputs.sensitive)


def learnable(inputs: MethodInputs) -> BoolArray:
    """(N,) people whose values of all sensitive attributes are really known and are no probe's test."""
    fit: BoolArray = inputs.side == 0
    if inputs.probed is not None:
        fit &= ~inputs.probed
    for value in inputs.sensitive:
        fit &= value.fitted
    return fit
