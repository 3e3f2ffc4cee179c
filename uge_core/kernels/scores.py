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
    out, num = np.empty(len(first)), len(first)
    m = 0
    while m + 4 <= num:  # each sum waits for its last addition, so four of them go on together
        u0, u1, u2, u3 = first[m], first[m + 1], first[m + 2], first[m + 3]
        v0, v1, v2, v3 = second[m], second[m + 1], second[m + 2], second[m + 3]
        t0 = t1 = t2 = t3 = 0.0
        for k in range(left.shape[1]):
            t0 += np.float64(left[u0, k]) * np.float64(right[v0, k])
            t1 += np.float64(left[u1, k]) * np.float64(right[v1, k])
            t2 += np.float64(left[u2, k]) * np.float64(right[v2, k])
            t3 += np.float64(left[u3, k]) * np.float64(right[v3, k])
        out[m], out[m + 1], out[m + 2], out[m + 3] = t0, t1, t2, t3
        m += 4
    while m < num:
        u, v = first[m], second[m]
        total = 0.0
        for k in range(left.shape[1]):
            total += np.float64(left[u, k]) * np.float64(right[v, k])
        out[m] = total
        m += 1
    return out
