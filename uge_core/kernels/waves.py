"""Compiled passes over random Fourier features: sums of cosines by group, and the gradient through them.

A feature is cos(2 pi t), t = z . w + b in turns. Blocks of rows are cut alike whatever the number of threads, and each
writes its own sums, so that a member's numbers depend on neither threads nor company. Threads are Python's own, as in
`_kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
ROWS = 2048  # rows of a block
# cos(2 pi t) and sin(2 pi t) / t in t^2 for |t| <= 1/2: Chebyshev fits, largest errors 5e-7 in float32.
_COS = (6.52865816, -25.9675992, 60.167631, -85.4501395, 64.9391175, -19.7392045, 0.999999989)
_SIN = (3.23813751, -14.8998467, 42.025927, -76.7030154, 81.6051314, -41.3417004, 6.2831853)


@njit(inline="always")
def _turns(z, weight, phase, row, t):  # type: ignore[no-untyped-def]
    """Writes z_row . w + b, less the nearest whole number, of every feature to t."""
    for f in range(len(t)):
        t[f] = phase[f]
    j = 0
    while j + 4 <= z.shape[1]:  # four columns a pass, as reading and writing t costs more than the products
        x0, x1, x2, x3 = z[row, j], z[row, j + 1], z[row, j + 2], z[row, j + 3]
        for f in range(len(t)):
            t[f] += x0 * weight[j, f] + x1 * weight[j + 1, f] + x2 * weight[j + 2, f] + x3 * weight[j + 3, f]
        j += 4
    while j < z.shape[1]:
        for f in range(len(t)):
            t[f] += z[row, j] * weight[j, f]
        j += 1
    for f in range(len(t)):
        t[f] -= np.floor(t[f] + np.float32(0.5))


@njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=True)
def wave_sums(z, weight, phase, code, first, last, sums):  # type: ignore[no-untyped-def]
    """Adds cos(2 pi (z_i . w + b)) of the rows `first` to `last` to the rows code[i, :] of `sums`."""
    t = np.empty(len(phase), np.float32)
    for i in range(first, last):
        _turns(z, weight, phase, i, t)
        for f in range(len(t)):
            q = t[f] * t[f]
            p = np.float32(_COS[0])
            for k in range(1, len(_COS)):
                p = p * q + np.float32(_COS[k])
            t[f] = p
        for a in range(code.shape[1]):
            row = code[i, a]
            for f in range(len(t)):
                sums[row, f] += t[f]


@njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=True)
def wave_back(z, weight, phase, code, slope, first, last, gradient):  # type: ignore[no-untyped-def]
    """Writes minus sum_f slope_f sin(2 pi t_f) w_f of the rows `first` to `last`, slope the sum of the rows code[i, :]."""
    t, s = np.empty(len(phase), np.float32), np.empty(len(phase), np.float32)
    for i in range(first, last):
        _turns(z, weight, phase, i, t)
        s[:] = slope[code[i, 0]]
        for a in range(1, code.shape[1]):
            for f in range(len(s)):
                s[f] += slope[code[i, a], f]
        for f in range(len(t)):
            q = t[f] * t[f]
            p = np.float32(_SIN[0])
            for k in range(1, len(_SIN)):
                p = p * q + np.float32(_SIN[k])
            t[f] *= p * s[f]
        j = 0
        while j + 4 <= z.shape[1]:
            g0 = g1 = g2 = g3 = np.float32(0.0)
            for f in range(len(t)):
                g0 += t[f] * weight[j, f]
                g1 += t[f] * weight[j + 1, f]
                g2 += t[f] * weight[j + 2, f]
                g3 += t[f] * weight[j + 3, f]
            gradient[i, j], gradient[i, j + 1], gradient[i, j + 2], gradient[i, j + 3] = -g0, -g1, -g2, -g3
            j += 4
        while j < z.shape[1]:
            total = np.float32(0.0)
            for f in range(len(t)):
                total += t[f] * weight[j, f]
            gradient[i, j] = -total
            j += 1
