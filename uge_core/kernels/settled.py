"""The minimum of a small convex function to the last bits, from a place near it.

Where an optimiser stops within its tolerance depends on the way it took, and that on the last bits of sums, which
differ between processors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from uge_core.arrays import BoolArray, Float64

_STEPS = 8  # each squares the error
_SETTLED = 1e-14  # of a derivative, which is as near to 0 as sums come
_FLAT = 1e-12  # of the largest curvature: a direction in which nothing changes


def settled(
    theta: Float64,
    slope: Callable[[Float64], Float64],
    curvature: Callable[[Float64], Float64],
    low: float | Float64 = -np.inf,
    high: float | Float64 = np.inf,
) -> Float64:
    """The minimum of a convex function by Newton's steps, from a place near it.

    Args:
        theta: (p,) the place.
        slope: its (p,) derivatives there.
        curvature: its (p, p) second derivatives; directions in which it is flat are not taken.
        low: the least allowed value of each number.
        high: the largest.

    Returns:
        (p,) the place of the smallest derivatives found.
    """

    def seen(at: Float64) -> tuple[Float64, BoolArray, float]:
        """The derivatives at a place, which numbers may go on, and the largest of their derivatives."""
        given = slope(at)
        free = ((at > low) | (given < 0)) & ((at < high) | (given > 0))
        return given, free, float(np.abs(given[free]).max(initial=0.0))

    given, free, left = seen(theta)
    for _ in range(_STEPS):
        if not left > _SETTLED:  # nor where it is no number
            break
        step = np.zeros(len(theta))
        step[free] = np.linalg.pinv(curvature(theta)[np.ix_(free, free)], rcond=_FLAT, hermitian=True) @ given[free]
        tried = np.clip(theta - step, low, high)
        after = seen(tried)
        if not after[2] < left:
            break
        theta, (given, free, left) = tried, after
    return theta
