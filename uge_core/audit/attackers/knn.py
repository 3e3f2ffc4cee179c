"""The nearest neighbours among people whose value is known."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from uge_core.arrays import FloatArray, IntArray
from uge_core.audit.attackers.base import Attacker, Fitted, Float64Array
from uge_core.registry import register

_NEAREST = 25
_ROWS = 4_096  # rows answered at once


@register
class KNN(Attacker):
    """25 nearest by Euclidean distance; each votes with 1 / distance, the class shares with one vote's weight.

    p_c = (sum of w of the neighbours of class c + mean w * share of c) / (sum of w + mean w). Brute
    force: at d = 16 a k-d tree takes 15 times as long. Of people with equal vectors those who stand first are nearer.
    """

    label: ClassVar[str] = "nearest neighbours"
    position: ClassVar[int] = 6
    needs: ClassVar[tuple[str, ...]] = ("uge_core.kernels.nearest",)

    def fit(self, x: Float64Array, y: IntArray, *, seed: int) -> Fitted:
        """Has no randomness."""
        from uge_core.kernels.nearest import nearest as search

        share = np.bincount(y) / len(y)
        known = _filled(x).T.copy()

        def probability(z: Float64Array) -> Float64Array:
            squares, nearest = search(_filled(z), known, min(_NEAREST, len(x)))
            distance = np.sqrt(squares.astype(np.float64))
            # A distance of 0 would outvote everything: none counts as less than a thousandth of its row's mean.
            floor = np.maximum(1e-3 * distance.mean(axis=1, keepdims=True), 1e-12)
            vote = 1.0 / np.maximum(distance, floor)
            vote /= vote.mean(axis=1, keepdims=True)
            out = np.empty((len(z), len(share)))
            for begin in range(0, len(z), _ROWS):
                part = slice(begin, begin + _ROWS)
                rows = len(vote[part])
                cell = np.arange(rows)[:, None] * len(share) + y[nearest[part]]
                votes = np.bincount(cell.ravel(), vote[part].ravel(), rows * len(share)).reshape(rows, -1)
                out[part] = (votes + share) / (vote.shape[1] + 1)
            return out

        return Fitted(probability)


def _filled(x: Float64Array) -> FloatArray:
    """(n, d) float32 with columns of 0 up to a multiple of four."""
    return np.pad(x, ((0, 0), (0, -x.shape[1] % 4))).astype(np.float32)
