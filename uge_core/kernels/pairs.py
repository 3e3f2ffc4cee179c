"""The compiled pass over all pairs: sums of sigmoid(score) - 1/2 per group pair and per node.

Layout: one column a node, one row a dimension, float32, so that the inner loops run over neighbouring nodes and become
vector instructions. Not ``parallel=True``: tiles release the interpreter lock and the caller runs them on plain
threads, so no OpenMP runtime is started beside torch's.

The sums have the same bits on every processor: each number is computed by itself, and what is added up is folded in
halves, so that no order is left to the width of a vector. Nothing may be reassociated, contracted or replaced by an
estimate of a reciprocal, hence no `fastmath`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from uge_core.arrays import Float64, FloatArray, IntArray

_BLOCK = 512  # columns per inner loop: 16 dimensions of them fill a first-level cache
_FEW = 8  # numbers that are added one by one


@njit(nogil=True, cache=True, error_model="numpy")
def _folded(x: FloatArray, size: int) -> np.float32:
    """The sum of the first `size` numbers, which are overwritten: the second half is added to the first, again and again."""
    while size > _FEW:
        half = (size + 1) // 2
        low, high = x[: size - half], x[half:size]
        for j in range(size - half):
            low[j] += high[j]
        size = half
    total = np.float32(0.0)
    for j in range(size):
        total += x[j]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def sum_tile(
    rows: FloatArray,
    columns: FloatArray,
    row_group: IntArray,
    column_start: IntArray,
    column_value: IntArray,
    first: int,
    last: int,
    triangular: bool,
    num_values: int,
    poly: FloatArray,
) -> tuple[Float64, Float64, FloatArray, FloatArray]:
    """Sums h = sigmoid(row . column) - 1/2 over the rows `first` to `last` - 1 of the pair matrix.

    The half is left out as it would swallow the digits of an embedding of short vectors, whose probabilities all are
    near it. h = (1 - e) / (2 (1 + e)), e = 2^t, t = -score / ln 2; e - 1 is a polynomial on the fraction of t in
    [-1/2, 1/2] times a power of two written straight into the exponent bits of a float32. The absolute error of h is
    below 1e-6 and its relative error below 2e-6 (tested), which the scores' own rounding exceeds.

    Args:
        rows: (d, R) float32, d a multiple of 4, nodes sorted by group.
        columns: (d, C) float32, sorted by group.
        row_group: (R,) int64, ascending.
        column_start: (G + 1,) int64, where each column group begins; the last is C.
        column_value: (A, G) int64, the values that a column group stands for, one an attribute; below 0 for none.
        first: first row.
        last: one past the last row.
        triangular: count only columns after the row (`rows` and `columns` are the same nodes).
        num_values: V, how many values there are.
        poly: (7,) float32, the coefficients of 2^f, constant term first.

    Returns:
        (r, G) float64 sums of h for the r groups of these rows, the first line that of row `first`;
        (r, G) float64 sums of h^2; (last - first, V) float32, each row's sum of h over the columns of
        each value; (r, C) float32, each column's sum of h over the rows of each group.
    """
    dim = rows.shape[0]
    num_columns = columns.shape[1]
    base = row_group[first]
    shape = (row_group[last - 1] - base + 1, len(column_start) - 1)
    out, squares = np.zeros(shape), np.zeros(shape)
    row_sum = np.zeros((last - first, num_values), dtype=np.float32)
    column_sum = np.zeros((shape[0], num_columns), dtype=np.float32)
    power_bits = np.zeros(_BLOCK, dtype=np.int32)
    power = power_bits.view(np.float32)
    t, square = np.zeros(_BLOCK, dtype=np.float32), np.zeros(_BLOCK, dtype=np.float32)
    c1, c2, c3, c4, c5, c6 = poly[1], poly[2], poly[3], poly[4], poly[5], poly[6]
    half, low, high = np.float32(127.5), np.float32(-126.0), np.float32(126.0)
    one, two = np.float32(1.0), np.float32(2.0)
    log2e = np.float32(-1.4426950408889634)
    g_first = 0
    begin = first + 1 if triangular else 0
    while begin < num_columns:
        end = min(begin + _BLOCK, num_columns)
        while column_start[g_first + 1] <= begin:
            g_first += 1
        for i in range(first, last):
            offset = max(begin, i + 1) if triangular else begin
            size = end - offset
            if size <= 0:
                continue
            for j in range(size):
                t[j] = 0.0
            for k in range(0, dim, 4):
                a0, a1 = rows[k, i] * log2e, rows[k + 1, i] * log2e
                a2, a3 = rows[k + 2, i] * log2e, rows[k + 3, i] * log2e
                z0, z1 = columns[k, offset:end], columns[k + 1, offset:end]
                z2, z3 = columns[k + 2, offset:end], columns[k + 3, offset:end]
                for j in range(size):
                    t[j] += a0 * z0[j] + a1 * z1[j] + a2 * z2[j] + a3 * z3[j]
            for j in range(size):
                x = min(max(t[j], low), high)
                whole = np.int32(x + half)
                f = x - np.float32(np.int32(whole - np.int32(127)))
                power_bits[j] = whole << 23
                t[j] = (((((c6 * f + c5) * f + c4) * f + c3) * f + c2) * f + c1) * f
            local = row_group[i] - base
            into = column_sum[local, offset:end]
            for j in range(size):
                above = t[j] * power[j] + (power[j] - one)
                t[j] = -above / (two * (above + two))
                into[j] += t[j]
                square[j] = t[j] * t[j]
            g = g_first
            while column_start[g + 1] <= offset:
                g += 1
            position = offset
            while position < end:
                stop = min(column_start[g + 1], end)
                total = _folded(t[position - offset :], stop - position)
                out[local, g] += total
                squares[local, g] += _folded(square[position - offset :], stop - position)
                for a in range(column_value.shape[0]):
                    if column_value[a, g] >= 0:
                        row_sum[i - first, column_value[a, g]] += total
                position = stop
                g += 1
        begin = end
    return out, squares, row_sum, column_sum
