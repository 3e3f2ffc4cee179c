"""P-values of several tests, so adjusted that one of them is below .05 by chance in one of twenty such sets at most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uge_core.arrays import Float64


def holm(p_values: Sequence[float]) -> Float64:
    """Holm's step-down adjustment: with the p-values ascending, max over j <= i of (m - j) p_j (j from 0), at most 1."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    out = np.empty(len(p))
    out[order] = np.minimum(steps, 1.0)
    return out
