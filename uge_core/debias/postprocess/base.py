"""The slot after training, and the do-nothing postprocess that fills it when a method has none."""

from __future__ import annotations

from typing import Protocol

from uge_core.arrays import FloatArray


class Postprocess(Protocol):
    """What is done to a finished embedding; the twin's goes through its own."""

    def __call__(self, z: FloatArray) -> FloatArray:
        """(N, d) float32 out of (N, d) float32."""


class Keep:
    """Leaves it as it is."""

    def __call__(self, z: FloatArray) -> FloatArray:
        """`z`."""
        return z
