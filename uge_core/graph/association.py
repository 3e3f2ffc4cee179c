"""How nearly one attribute says what another says."""

from __future__ import annotations

import numpy as np

from uge_core.graph.graph import Attribute

PROXY = 0.95
"""Cramér's V (or the correlation ratio of a number) from which two columns say nearly the same."""
FEWEST_KNOWN = 20
"""Nodes with a value of both attributes, under which an association is worth no number."""


def association(a: Attribute, b: Attribute) -> float:
    """Cramér's V of two attributes over the nodes where both are known, corrected for its bias (Bergsma 2013)."""
    known = a.known & b.known
    n = int(known.sum())
    if n < FEWEST_KNOWN:
        return 0.0
    size = a.num_values * b.num_values
    key = a.codes[known] * b.num_values + b.codes[known]
    table = np.bincount(key, minlength=size).reshape(a.num_values, b.num_values)
    table = table[table.any(axis=1)][:, table.any(axis=0)].astype(np.float64)
    rows, columns = table.shape
    if min(rows, columns) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi = max(0.0, float((np.square(table - expected) / expected).sum()) / n - (rows - 1) * (columns - 1) / (n - 1))
    least = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1
    return min(1.0, float(np.sqrt(phi / least))) if least > 0 else 0.0
