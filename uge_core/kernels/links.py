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
_TOGETHER = 8  # rows that go through a block of columns while it is in the cache
SIMILARITIES = 3
"""Of a pair: cosine, dot product, distance."""


@njit("float32(float32[::1], int64, int64, float32)", nogil=True, cache=True, fastmath={"reassoc", "nsz"})
def _above(column: FloatArray, first: int, last: int, least: float) -> np.float32:
    """How many numbers are above another: small whole numbers, whose sum no order of adding changes."""
    count = np.float32(0.0)
    for j in range(first, last):
        count += np.float32(1.0) if column[j] > least else np.float32(0.0)
    return count


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
    value = np.zeros((_TOGETHER, SIMILARITIES, _BLOCK), dtype=np.float32)
    nobody = np.zeros(per_group, dtype=np.int64)
    best = np.full((len(asked), SIMILARITIES, overall), -np.inf, dtype=np.float32)
    scale = np.zeros(len(asked), dtype=np.float32)
    for i in range(len(asked)):
        mine = np.float32(0.0)
        for c in range(dims):
            mine += asked[i, c] * asked[i, c]
        scale[i] = np.float32(1.0 / np.sqrt(mine)) if mine > 0 else np.float32(0.0)
    for row in range(0, len(asked), _TOGETHER):
        together = min(_TOGETHER, len(asked) - row)
        for begin in range(0, num, _BLOCK):
            size = min(_BLOCK, num - begin)
            for r in range(together):
                for j in range(size):
                    value[r, 1, j] = 0.0
            for c in range(0, dims, 4):
                z0, z1 = labelled[c, begin : begin + size], labelled[c + 1, begin : begin + size]
                z2, z3 = labelled[c + 2, begin : begin + size], labelled[c + 3, begin : begin + size]
                for r in range(0, together - 1, 2):  # two rows for each number that is read
                    i, dot, other = row + r, value[r, 1], value[r + 1, 1]
                    a0, a1, a2, a3 = asked[i, c], asked[i, c + 1], asked[i, c + 2], asked[i, c + 3]
                    b0, b1, b2, b3 = asked[i + 1, c], asked[i + 1, c + 1], asked[i + 1, c + 2], asked[i + 1, c + 3]
                    for j in range(size):
                        dot[j] += ((a0 * z0[j] + a1 * z1[j]) + a2 * z2[j]) + a3 * z3[j]
                        other[j] += ((b0 * z0[j] + b1 * z1[j]) + b2 * z2[j]) + b3 * z3[j]
                if together % 2:
                    i, dot = row + together - 1, value[together - 1, 1]
                    a0, a1, a2, a3 = asked[i, c], asked[i, c + 1], asked[i, c + 2], asked[i, c + 3]
                    for j in range(size):
                        dot[j] += ((a0 * z0[j] + a1 * z1[j]) + a2 * z2[j]) + a3 * z3[j]
            length, own = inverse[begin : begin + size], square[begin : begin + size]
            for r in range(together):
                i = row + r
                cosine, dot, near = value[r, 0], value[r, 1], value[r, 2]
                for j in range(size):
                    cosine[j] = dot[j] * length[j] * scale[i]
                    near[j] = 2.0 * dot[j] - own[j]
                for s in range(SIMILARITIES):
                    column = value[r, s]
                    least = best[i, s, overall - 1]
                    for g in range(num_groups):
                        least = min(least, scores[i, s, g, per_group - 1])
                    for first in range(0, size, _FEW):
                        last = min(first + _FEW, size)
                        if _above(column, first, last, least) == 0:  # few stretches hold any
                            continue
                        for j in range(first, last):
                            v = column[j]
                            if not v > least or fold[begin + j] == asked_fold[i]:
                                continue
                            g = group[begin + j]
                            if v > scores[i, s, g, per_group - 1]:
                                _insert(scores[i, s, g], nobody, per_group - 1, v, g)
                            if v > best[i, s, overall - 1]:
                                _insert(best[i, s], groups[i, s], overall - 1, v, g)
                        least = best[i, s, overall - 1]
                        for g in range(num_groups):
                            least = min(least, scores[i, s, g, per_group - 1])
    return scores, groups
