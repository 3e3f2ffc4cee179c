"""The compiled search for a person's highest scores among labelled people, with the same ones on every processor.

Layout as in `pairs`: one column a person. Products are added in one order of the dimensions, and of equal scores the
labelled person who stands first is higher, so the caller shuffles them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from uge_core.arrays import FloatArray, IntArray

_BLOCK = 1024  # columns per inner loop
_FEW = 32
SIMILARITIES = 3
"""Of a pair: cosine, dot product, distance."""


# With its types, so that it is compiled where it is imported: attackers run side by side.
@njit("void(float32[::1], int64[::1], int64, float32, int64)", nogil=True, cache=True)
def _insert(best: FloatArray, who: IntArray, last: int, value: float, owner: int) -> None:
    """Puts a value above `best[last]` into the descending `best`, whose last one drops out."""
    at = last
    while at > 0 and best[at - 1] < value:
        best[at] = best[at - 1]
        who[at] = who[at - 1]
        at -= 1
    best[at] = value
    who[at] = owner


@njit(
    "Tuple((float32[:, :, :, ::1], int64[:, :, ::1]))"
    "(float32[:, ::1], int64[::1], float32[:, ::1], int64[::1], int64[::1], int64, int64, int64)",
    nogil=True,
    cache=True,
)
def highest(
    asked: FloatArray,
    asked_fold: IntArray,
    labelled: FloatArray,
    group: IntArray,
    fold: IntArray,
    num_groups: int,
    per_group: int,
    overall: int,
) -> tuple[npt.NDArray[np.float32], IntArray]:
    """The highest scores of each row towards each group, and whose the highest of all are.

    Args:
        asked: (m, d) float32, d a multiple of 4.
        asked_fold: (m,) people of this fold are left out of a row's lists; -1 leaves out nobody.
        labelled: (d, n) float32.
        group: (n,) group of each, 0 to num_groups - 1.
        fold: (n,) their folds.
        num_groups: K.
        per_group: how many of each group.
        overall: how many of all.

    Returns:
        (m, 3, K, per_group) float32 cosines, dot products and negative squared distances less the row's own square,
        descending, -inf where a group has fewer; (m, 3, overall) groups of the highest, descending, -1 where there are
        fewer.
    """
    dims, num = labelled.shape
    scores = np.full((len(asked), SIMILARITIES, num_groups, per_group), -np.inf, dtype=np.float32)
    groups = np.full((len(asked), SIMILARITIES, overall), -1, dtype=np.int64)
    square, inverse = np.zeros(num, dtype=np.float32), np.zeros(num, dtype=np.float32)
    for c in range(dims):
        for j in range(num):
            square[j] += labelled[c, j] * labelled[c, j]
    for j in range(num):
        inverse[j] = 1.0 / np.sqrt(square[j]) if square[j] > 0 else 0.0
    value = np.zeros((SIMILARITIES, _BLOCK), dtype=np.float32)
    nobody = np.zeros(per_group, dtype=np.int64)
    for i in range(len(asked)):
        mine = np.float32(0.0)
        for c in range(dims):
            mine += asked[i, c] * asked[i, c]
        scale = np.float32(1.0 / np.sqrt(mine)) if mine > 0 else np.float32(0.0)
        best = np.full((SIMILARITIES, overall), -np.inf, dtype=np.float32)
        for begin in range(0, num, _BLOCK):
            size = min(_BLOCK, num - begin)
            cosine, dot, near = value[0], value[1], value[2]
            for j in range(size):
                dot[j] = 0.0
            for c in range(0, dims, 4):
                a0, a1, a2, a3 = asked[i, c], asked[i, c + 1], asked[i, c + 2], asked[i, c + 3]
                z0, z1 = labelled[c, begin : begin + size], labelled[c + 1, begin : begin + size]
                z2, z3 = labelled[c + 2, begin : begin + size], labelled[c + 3, begin : begin + size]
                for j in range(size):
                    dot[j] += ((a0 * z0[j] + a1 * z1[j]) + a2 * z2[j]) + a3 * z3[j]
            length, own = inverse[begin : begin + size], square[begin : begin + size]
            for j in range(size):
                cosine[j] = dot[j] * length[j] * scale
                near[j] = 2.0 * dot[j] - own[j]
            for s in range(SIMILARITIES):
                column = value[s]
                least = best[s, overall - 1]
                for g in range(num_groups):
                    least = min(least, scores[i, s, g, per_group - 1])
                for first in range(0, size, _FEW):
                    last = min(first + _FEW, size)
                    above = 0  # an integer sum over a few columns is vectorised; few of them hold any
                    for j in range(first, last):
                        above += column[j] > least
                    if not above:
                        continue
                    for j in range(first, last):
                        v = column[j]
                        if v <= least or fold[begin + j] == asked_fold[i]:
                            continue
                        g = group[begin + j]
                        if v > scores[i, s, g, per_group - 1]:
                            _insert(scores[i, s, g], nobody, per_group - 1, v, g)
                        if v > best[s, overall - 1]:
                            _insert(best[s], groups[i, s], overall - 1, v, g)
    return scores, groups
