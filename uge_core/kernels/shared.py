"""What several kernels use: fast exponentials, and sums of rows."""

from __future__ import annotations

import numpy as np
from numba import njit

# sums may be reordered and contracted; infinities keep their meaning, as exp of a large score is one
FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(inline="always")
def exp(x):  # type: ignore[no-untyped-def]
    """Exp of a float32 to two units in the last place, in operations that vectorise; beyond +-87 as at 87.

    2^n times a polynomial of the rest. Source: Cephes, expf.
    """
    x = min(max(x, np.float32(-87.0)), np.float32(87.0))
    n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    r = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23))
    return (p * r * r + r + np.float32(1.0)) * power.view(np.float32)


@njit(inline="always")
def softplus(x):  # type: ignore[no-untyped-def]
    """log(1 + exp(x)); log(1 + y) = 2 artanh(y / (2 + y)) by its series, as y / (2 + y) is at most a third."""
    y = exp(-abs(x))
    t = y / (np.float32(2.0) + y)
    q = t * t
    p = np.float32(1 / 15)
    for odd in (13, 11, 9, 7, 5, 3, 1):
        p = p * q + np.float32(1.0 / odd)
    return max(x, np.float32(0.0)) + np.float32(2.0) * t * p


@njit(nogil=True, error_model="numpy", cache=True)
def sum_rows(z, group, sums):  # type: ignore[no-untyped-def]
    """Adds row i of z to row group[i] of sums."""
    for i in range(len(group)):
        for j in range(z.shape[1]):
            sums[group[i], j] += z[i, j]
