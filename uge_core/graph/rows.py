"""The different rows of a table of small whole numbers: what groups of people are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uge_core.arrays import IntArray

_MOST_KEYS = 2.0**62


def different_rows(columns: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """The different rows, and which of them each row is.

    `numpy.unique` sorts rows byte by byte, which takes seconds of millions; here each row is one number.

    Args:
        columns: (N,) each.

    Returns:
        (R, columns) the different rows, rising by the first column, then by the next; (N,) the place of each row there.
    """
    spans = [(int(c.min()), int(c.max()) - int(c.min()) + 1) if len(c) else (0, 1) for c in columns]
    if not columns or np.prod([float(span) for _, span in spans]) >= _MOST_KEYS:
        distinct, place = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        return distinct, place.reshape(-1).astype(np.int64)
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column, (low, span) in zip(columns, spans, strict=True):
        key *= span
        key += column
        key -= low
    total = int(np.prod([span for _, span in spans]))
    if total <= 4 * len(key):
        there = np.bincount(key, minlength=total) > 0
        keys = np.flatnonzero(there)
        place = (np.cumsum(there) - 1)[key]
    else:
        keys, place = np.unique(key, return_inverse=True)
    rows = np.empty((len(keys), len(columns)), dtype=np.int64)
    for i in range(len(columns) - 1, -1, -1):
        low, span = spans[i]
        rows[:, i] = keys % span + low
        keys = keys // span
    return rows, place.reshape(-1).astype(np.int64)
