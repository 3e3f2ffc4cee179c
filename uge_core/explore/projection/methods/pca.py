"""Principal components."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray
from uge_core.explore.projection.methods.base import Projection
from uge_core.registry import register


@register
class PCA(Projection):
    """The two directions in which the embedding spreads most (Pearson, 1901)."""

    label: ClassVar[str] = "PCA"
    at_once: ClassVar[bool] = True
    sentence: ClassVar[str] = (
        "A shadow of the embedding along the two directions in "
        "which it spreads most; a difference along another is not seen."
    )

    def place(
        self, x: FloatArray, start: npt.NDArray[np.float32] | None, *, seed: int
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Has no randomness and needs no start; of each direction the largest loading is positive."""
        centred = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
        spread, directions = np.linalg.eigh(centred.T @ centred)
        first = directions[:, ::-1][:, :2]
        first = first * np.sign(first[np.abs(first).argmax(axis=0), np.arange(first.shape[1])])
        out = np.zeros((len(x), 2), dtype=np.float32)
        out[:, : first.shape[1]] = centred @ first
        total = float(spread.clip(0).sum())
        return out, {"share of the spread": float(spread[-2:].clip(0).sum()) / total if total > 0 else 1.0}
