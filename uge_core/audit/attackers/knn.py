"""The nearest neighbours among people whose value is known."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from uge_core.audit.attackers.base import Attacker, Fitted, Float64Array
from uge_core.graph import IntArray
from uge_core.registry import register

_NEAREST = 25
_ROWS = 4_096  # rows answered at once


@register
class KNN(Attacker):
    """25 nearest by Euclidean distance; each votes with 1 / distance, the class shares with one vote's weight.

    p_c = (sum of w of the neighbours of class c + mean w * share of c) / (sum of w + mean w). Brute
    force: at d = 16 a k-d tree takes 15 times as long. In double precision, as a small distance is a difference of
    large numbers.
    """

    label: ClassVar[str] = "nearest neighbours"
    needs: ClassVar[tuple[str, ...]] = ("sklearn.neighbors",)

    def fit(self, x: Float64Array, y: IntArray, *, seed: int) -> Fitted:
        """Has no randomness."""
        from sklearn.neighbors import NearestNeighbors

        share = np.bincount(y) / len(y)
        search = NearestNeighbors(n_neighbors=min(_NEAREST, len(x)), algorithm="brute").fit(x)

        def probability(z: Float64Array) -> Float64Array:
            distance, nearest = search.kneighbors(z)
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
