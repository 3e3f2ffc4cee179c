"""The compiled search for the best candidates of many nodes, with the same ones on every processor.

Scores are those of `scores.pair_scores` to the bit: products of float32, exact in float64, added in the order of the
dimensions. Of equal scores none stands first by its number: each pair has a number of its own, drawn by a key, and the
smaller one is ahead. Layout as in `pairs`: one column a candidate; rows go through a block of columns together, so that
no table of all pairs is made.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from uge_core.arrays import Float64, IntArray

_BLOCK = 512  # columns per inner loop: 16 dimensions of them fill a small part of a second-level cache
_STEP = np.uint64(0x9E3779B97F4A7C15)  # splitmix64's: odd, near 2^64 over the golden ratio


# Neither reassociated nor contracted: no `fastmath`.


@njit(inline="always")
def _mixed(x):  # type: ignore[no-untyped-def]
    """The last step of splitmix64, which turns a counter into a random number. Source: Steele, Lea and Flood 2014."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(nogil=True, cache=True)
def best_columns(
    asked: Float64, among: Float64, node: IntArray, begin: IntArray, left_out: IntArray, k: int, key: np.uint64
) -> IntArray:
    """The k columns with the highest scores of each row, best first.

    Args:
        asked: (m, d) float64 of float32 numbers, d a multiple of 4.
        among: (d, n) float64 of float32 numbers.
        node: (m,) the number of each row's node, for its order of ties.
        begin: (m + 1,) where each row's part of `left_out` begins.
        left_out: columns that a row does not ask for, ascending within a row.
        k: how many, 1 at least.
        key: draws the order of ties.

    Returns:
        (m, k) int64 columns; -1 where there are no more.
    """
    num = among.shape[1]
    score = np.full((len(asked), k), -np.inf)
    luck = np.zeros((len(asked), k), dtype=np.uint64)
    column = np.full((len(asked), k), -1, dtype=np.int64)
    total = np.zeros(_BLOCK)
    for first in range(0, num, _BLOCK):
        size = min(_BLOCK, num - first)
        for i in range(len(asked)):
            for j in range(size):
                total[j] = 0.0
            for c in range(0, among.shape[0], 4):
                a0, a1, a2, a3 = asked[i, c], asked[i, c + 1], asked[i, c + 2], asked[i, c + 3]
                z0, z1 = among[c, first : first + size], among[c + 1, first : first + size]
                z2, z3 = among[c + 2, first : first + size], among[c + 3, first : first + size]
                for j in range(size):
                    total[j] = total[j] + a0 * z0[j] + a1 * z1[j] + a2 * z2[j] + a3 * z3[j]
            best, lucks, columns = score[i], luck[i], column[i]
            mine = left_out[begin[i] : begin[i + 1]]
            base = _mixed(key + np.uint64(node[i]) * _STEP)
            worst = best[k - 1]
            for j in range(size):
                if total[j] < worst:
                    continue
                drawn = _mixed(base + np.uint64(first + j) * _STEP)
                if total[j] == worst and drawn >= lucks[k - 1]:
                    continue
                place = np.searchsorted(mine, first + j)
                if place < len(mine) and mine[place] == first + j:
                    continue
                at = k - 1
                while at > 0 and (best[at - 1] < total[j] or (best[at - 1] == total[j] and lucks[at - 1] > drawn)):
                    best[at], lucks[at], columns[at] = best[at - 1], lucks[at - 1], columns[at - 1]
                    at -= 1
                best[at], lucks[at], columns[at] = total[j], drawn, first + j
                worst = best[k - 1]
    return column
