"""The compiled score of listed pairs, with the same bits on every processor.

Whoever ranks candidates, or asks whether a score reaches a threshold, decides by its last bits. A matrix product
takes its sums in the order that suits the processor, so that two equal candidates can get scores that differ, by where
they stand in a list. Here the products of float32 are exact in float64 and are added in the order of the dimensions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

# Neither reassociated nor contracted: no `fastmath`.


@njit(nogil=True, cache=True)
def pair_scores(
    left: npt.NDArray[np.float32],
    right: npt.NDArray[np.float32],
    first: npt.NDArray[np.int64],
    second: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """(M,) float64 left[first] . right[second].

    Args:
        left: (N, d) float32.
        right: (N, d) float32.
        first: (M,) row of `left`.
        second: (M,) row of `right`; as in numpy, -1 is the last.
    """
    out = np.empty(len(first))
    for m in range(len(first)):
        u, v = first[m], second[m]
        total = 0.0
        for k in range(left.shape[1]):
            total += np.float64(left[u, k]) * np.float64(right[v, k])
        out[m] = total
    return out
