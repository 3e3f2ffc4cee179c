"""The compiled choice of strangers: distinct ranks by Floyd's method, and the places they stand for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(nogil=True, cache=True)
def pick(
    barred: npt.NDArray[np.int64],
    offset: npt.NDArray[np.int64],
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
    number: npt.NDArray[np.int64],
    length: npt.NDArray[np.int64],
    drawn: npt.NDArray[np.int64],
) -> None:
    """Turns draws into the places of distinct strangers, in place.

    Args:
        barred: (M,) places that may not be picked, ascending within a list's part.
        offset: (L,) what `barred` calls the first place of a list.
        low: (L,) where a list's part begins.
        high: (L,) where it ends.
        number: (L,) places of a list that may be picked.
        length: (L,) how many are picked, at most `number`.
        drawn: (L, C) number k of a list is drawn from 0 to number - length + k. Then the k-th place, counted from
            the list's first; -1 from `length` on.
    """
    for row in range(len(low)):
        size = length[row]
        for k in range(drawn.shape[1]):
            if k >= size:
                drawn[row, k] = -1
                continue
            repeated = False
            for earlier in range(k):  # to its end, as processors compare several at once
                repeated |= drawn[row, earlier] == drawn[row, k]
            if repeated:
                drawn[row, k] = number[row] - size + k
        for k in range(size):
            # the first barred place with more than so many free ones before it
            first, behind = low[row], high[row]
            while first < behind:
                middle = (first + behind) // 2
                if barred[middle] - offset[row] - (middle - low[row]) > drawn[row, k]:
                    behind = middle
                else:
                    first = middle + 1
            drawn[row, k] += first - low[row]
