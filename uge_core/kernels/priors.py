"""Compiled passes over types of nodes for the maximum-entropy priors: nodes of one type share a parameter."""

from __future__ import annotations

import numpy as np
from numba import njit

_SLACK = 5e-4  # a type linked to all is fitted as if it lacked this part of a pair, whose logit is finite


@njit(nogil=True, error_model="numpy", cache=True)
def _step(expected, wanted, room):  # type: ignore[no-untyped-def]
    """How far the logit of `room` pairs must move from `expected` to `wanted`; exact if all are alike, else short."""
    wanted = min(wanted, room - _SLACK)
    expected = min(max(expected, 1e-300), room * (1.0 - 1e-15))
    return np.log(wanted / (room - wanted)) - np.log(expected / (room - expected))


@njit(nogil=True, error_model="numpy", cache=True, fastmath={"reassoc", "contract", "nsz"})
def balance(degree, count, first, x, tolerance, passes):  # type: ignore[no-untyped-def]
    """Steps on the parameters of one block, in turn, until each type's expected degree is its own; returns the error.

    Args:
        degree: (T,) of each type, above 0.
        count: (T,) nodes of each type.
        first: how many of the types are the first group's, the rest being the second's; 0 where the block is a
            group with itself.
        x: (T,) parameters, changed in place.
        tolerance: on the largest relative error.
        passes: at most.
    """
    num = len(degree)
    e = np.exp(x)
    error = np.inf
    for _ in range(passes):
        error = 0.0
        for t in range(num):
            begin, end = (0, num) if first == 0 else ((first, num) if t < first else (0, first))
            expected = room = 0.0
            for s in range(begin, end):
                p = e[t] * e[s]
                expected += count[s] * p / (1.0 + p)
                room += count[s]
            own = 0.0
            if first == 0:
                own = e[t] * e[t] / (1.0 + e[t] * e[t])
                expected -= own
                room -= 1.0
                own *= count[t] - 1.0
            error = max(error, abs(expected - degree[t]) / degree[t])
            # pairs within the type move by two steps
            x[t] += _step(expected, degree[t], room) / (1.0 + own / max(expected, 1e-300))
            x[t] = min(max(x[t], -100.0), 100.0)
            e[t] = np.exp(x[t])
        if error <= tolerance:
            break
    return error


@njit(nogil=True, error_model="numpy", cache=True, fastmath={"reassoc", "contract", "nsz"})
def _sums(e, level, count, start, allowed, sums):  # type: ignore[no-untyped-def]
    """Writes to `sums` (T, G) how many edges a node of each type is expected to have into each group."""
    groups = len(start) - 1
    for a in range(groups):
        for t in range(start[a], start[a + 1]):
            for b in range(groups):
                total = 0.0
                if allowed[a, b]:
                    factor = e[t] * np.exp(level[a, b])
                    for s in range(start[b], start[b + 1]):
                        p = factor * e[s]
                        total += count[s] * p / (1.0 + p)
                    if a == b:
                        p = factor * e[t]
                        total -= p / (1.0 + p)
                sums[t, b] = total


@njit(nogil=True, error_model="numpy", cache=True)
def balance_totals(degree, count, start, allowed, totals, x, level, tolerance, passes):  # type: ignore[no-untyped-def]
    """Turns between the types' parameters and the blocks' until degrees and block totals are met; returns the error.

    Args:
        degree: (T,) of each type, above 0; types of a group stand together.
        count: (T,) nodes of each type.
        start: (G + 1,) where each group's types begin.
        allowed: (G, G) blocks that may carry an edge.
        totals: (G, G) edges of each block, those within a group counted from both ends; 0: the block's parameter stays.
        x: (T,) parameters, changed in place.
        level: (G, G) parameters of the blocks, changed in place.
        tolerance: on the largest relative error of a degree or a total, but for the slack of those at their bound.
        passes: at most.
    """
    groups, num = len(start) - 1, len(degree)
    sums = np.zeros((num, groups))
    size = np.zeros(groups)
    for a in range(groups):
        size[a] = count[start[a] : start[a + 1]].sum()
    error, step = np.inf, 1.0
    for _ in range(passes):
        before, error = error, 0.0
        _sums(np.exp(x), level, count, start, allowed, sums)
        for a in range(groups):
            for b in range(groups):
                if totals[a, b] > 0:
                    expected = 0.0
                    for t in range(start[a], start[a + 1]):
                        expected += count[t] * sums[t, b]
                    room = size[a] * (size[b] - (1.0 if a == b else 0.0))
                    error = max(error, abs(expected - min(totals[a, b], room - _SLACK)) / totals[a, b])
                    level[a, b] += _step(expected, totals[a, b], room)
        _sums(np.exp(x), level, count, start, allowed, sums)
        for a in range(groups):
            room = 0.0
            for b in range(groups):
                room += size[b] * allowed[a, b]
            room -= 1.0 * allowed[a, a]
            for t in range(start[a], start[a + 1]):
                expected = sums[t].sum()
                error = max(error, abs(expected - min(degree[t], room - _SLACK)) / degree[t])
                x[t] += step * _step(expected, degree[t], room)
                x[t] = min(max(x[t], -100.0), 100.0)
        if error <= tolerance:
            break
        if error > before:  # both ends of a pair move at once, which in dense blocks is too far
            step = max(0.5, 0.7 * step)
    return error
