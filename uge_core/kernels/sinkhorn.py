"""Sinkhorn's iteration, compiled: one pass over the kernel a step, with the same bits whatever the threads."""

from __future__ import annotations

import numpy as np
from numba import njit

from uge_core.arrays import Float64
from uge_core.kernels.shared import FAST


# With its type, so that it is compiled where it is imported: blocks run side by side.
@njit("float64[::1](float64[:, ::1], int64)", nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def scaling(kernel: Float64, steps: int) -> Float64:
    """Scales columns: v of the plan u_i K_ij v_j whose columns weigh 1 / m each, and rows 1 / n each after enough steps.

    Args:
        kernel: (n, m) above 0.
        steps: how many.

    Returns:
        (m,), up to a factor.
    """
    n, m = kernel.shape
    v = np.ones(m)
    for _ in range(steps):
        column = np.zeros(m)
        for i in range(n):
            row = kernel[i]
            total = 0.0
            for j in range(m):
                total += row[j] * v[j]
            u = 1.0 / total
            for j in range(m):
                column[j] += u * row[j]
        for j in range(m):
            v[j] = n / m / column[j]
    return v
