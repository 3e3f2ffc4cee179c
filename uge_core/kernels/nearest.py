"""The compiled search for nearest neighbours, with the same ones on every processor.

A library takes |x - y|^2 apart into |x|^2 - 2 x y + |y|^2 for a matrix product, and of many people with one vector
those come first whose last bits happen to be lower. Here differences are squared and added in one order of the
dimensions, and of equal distances the person who stands first is nearer. Layout as in `pair_kernel`: one column a
person.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from uge_core.arrays import FloatArray, IntArray

_BLOCK = 1024  # columns per inner loop


# With its types, so that it is compiled where it is imported: attackers run side by side.
@njit("Tuple((float32[:, ::1], int64[:, ::1]))(float32[:, ::1], float32[:, ::1], int64)", nogil=True, cache=True)
def nearest(asked: FloatArray, among: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
    """The k nearest columns of each row.

    Args:
        asked: (m, d) float32, d a multiple of 4.
        among: (d, n) float32, n at least k.
        k: how many, 1 at least.

    Returns:
        (m, k) float32 squared distances, ascending, and (m, k) int64 columns.
    """
    num = among.shape[1]
    distance = np.full((len(asked), k), np.inf, dtype=np.float32)
    column = np.zeros((len(asked), k), dtype=np.int64)
    square = np.zeros(_BLOCK, dtype=np.float32)
    for i in range(len(asked)):
        best, who = distance[i], column[i]
        for begin in range(0, num, _BLOCK):
            size = min(_BLOCK, num - begin)
            for j in range(size):
                square[j] = 0.0
            for c in range(0, among.shape[0], 4):
                a0, a1, a2, a3 = asked[i, c], asked[i, c + 1], asked[i, c + 2], asked[i, c + 3]
                z0, z1 = among[c, begin : begin + size], among[c + 1, begin : begin + size]
                z2, z3 = among[c + 2, begin : begin + size], among[c + 3, begin : begin + size]
                for j in range(size):
                    d0, d1, d2, d3 = z0[j] - a0, z1[j] - a1, z2[j] - a2, z3[j] - a3
                    square[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
            for j in range(size):
                if square[j] < best[k - 1]:
                    at = k - 1
                    while at > 0 and best[at - 1] > square[j]:
                        best[at], who[at] = best[at - 1], who[at - 1]
                        at -= 1
                    best[at], who[at] = square[j], begin + j
    return distance, column
