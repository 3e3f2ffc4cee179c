"""The part of the plane that is drawn: where people are, so that a few far away do not squash all others into a strip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

TAIL = 0.02
"""Share of people at each end of an axis by whom the frame does not go, one person at least."""
MARGIN = 0.5
"""How far the frame reaches beyond the others, as a share of their width: a normal cloud lies within it."""
_NARROWEST = 0.6  # height over width, and the other way round


@dataclass(frozen=True)
class Frame:
    """A box in the plane.

    Attributes:
        low: its left and lower end.
        high: its right and upper end.
    """

    low: tuple[float, float]
    high: tuple[float, float]

    @property
    def middle(self) -> npt.NDArray[np.float64]:
        """(2,) its centre."""
        return np.add(self.low, self.high, dtype=np.float64) / 2

    @property
    def reach(self) -> npt.NDArray[np.float64]:
        """(2,) half width and half height."""
        return np.subtract(self.high, self.low, dtype=np.float64) / 2

    def outside(self, coordinates: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
        """(n,) who of (n, 2) coordinates lies beyond it."""
        return np.asarray((np.abs(coordinates - self.middle) > self.reach).any(axis=1))


def frame_of(pictures: Sequence[npt.NDArray[np.floating]]) -> Frame:
    """One frame for all pictures.

        an axis of one picture:   q = quantile at 0.02, Q = quantile at 0.98, w = Q - q
                                  from max(q - w / 2, lowest) to min(Q + w / 2, highest)

    and the widest of the pictures on each axis. The quantiles are those of whole people, and one person at least is
    beyond each, so that nobody alone decides. The shorter side is at least 0.6 of the longer one.

    Args:
        pictures: (n, 2) coordinates each, aligned.
    """
    if not pictures or not len(pictures[0]):
        return Frame((-1.0, -1.0), (1.0, 1.0))
    ends = [_ends(np.asarray(picture, dtype=np.float64)) for picture in pictures]
    low, high = np.min([e[0] for e in ends], axis=0), np.max([e[1] for e in ends], axis=0)
    reach = (high - low) / 2
    reach = np.maximum(reach, [_NARROWEST * reach[1], _NARROWEST * reach[0]])
    reach[reach <= 0] = 1.0
    middle = (low + high) / 2
    return Frame(_pair(middle - reach), _pair(middle + reach))


def _ends(at: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(2,) lower and (2,) upper ends of one picture."""
    low = np.quantile(at, TAIL, axis=0, method="higher")
    high = np.quantile(at, 1 - TAIL, axis=0, method="lower")
    least, most = at.min(axis=0), at.max(axis=0)
    # Of two people, or where nearly all stand on one spot, there is nothing to go by.
    flat = high <= low
    low, high = np.where(flat, least, low), np.where(flat, most, high)
    margin = MARGIN * (high - low)
    return np.maximum(low - margin, least), np.minimum(high + margin, most)


def _pair(ends: npt.NDArray[np.float64]) -> tuple[float, float]:
    return float(ends[0]), float(ends[1])
