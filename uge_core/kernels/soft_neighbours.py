"""Compiled passes over soft neighbours: whose groups they are of, and the gradient of how far that is from the prior.

Blocks of rows are cut alike whatever the number of threads, and each writes its own sums, so that a member's numbers
depend on neither threads nor company. Threads are Python's own.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
_BLOCK = 2048  # columns that a row passes while they are in the cache
_FEW = 32  # columns that are passed over together where none of them moves anything
# 2^f for 0 <= f < 1, a Chebyshev fit; largest relative error 2e-7 in float32.
_POWER = (0.00189511, 0.00894621, 0.05586328, 0.24014077, 0.69315462, 0.9999999)
_LEAST = 1e-9  # a group's share below it counts as much
_SLIGHT = np.float32(1e-6)
"""A neighbour whose similarity has less slope than this, before the temperature, is not moved."""


@njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=True)
def _scores(asked, i, columns, sharpness, score):  # type: ignore[no-untyped-def]
    """Writes row i's products with all columns, times the sharpness."""
    dims, num = columns.shape
    for begin in range(0, num, _BLOCK):
        size = min(_BLOCK, num - begin)
        s = score[begin : begin + size]
        for j in range(size):
            s[j] = 0.0
        for c in range(0, dims, 4):
            a0, a1 = asked[i, c] * sharpness, asked[i, c + 1] * sharpness
            a2, a3 = asked[i, c + 2] * sharpness, asked[i, c + 3] * sharpness
            z0, z1 = columns[c, begin : begin + size], columns[c + 1, begin : begin + size]
            z2, z3 = columns[c + 2, begin : begin + size], columns[c + 3, begin : begin + size]
            for j in range(size):
                s[j] += ((a0 * z0[j] + a1 * z1[j]) + a2 * z2[j]) + a3 * z3[j]


@njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=True)
def _exponentials(score, highest, bits, power):  # type: ignore[no-untyped-def]
    """exp(score - highest) in place; `power` are the same bytes as `bits`."""
    for j in range(len(score)):
        t = max((score[j] - highest) * np.float32(1.44269504), np.float32(-120.0))
        whole = np.floor(t)
        f = t - whole
        p = np.float32(_POWER[0])
        p = p * f + np.float32(_POWER[1])
        p = p * f + np.float32(_POWER[2])
        p = p * f + np.float32(_POWER[3])
        p = p * f + np.float32(_POWER[4])
        p = p * f + np.float32(_POWER[5])
        bits[j] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        score[j] = p
    for j in range(len(score)):
        score[j] *= power[j]


@njit(nogil=True, fastmath=_FAST | {"nnan", "ninf"}, error_model="numpy", cache=True)
def _highest(score):  # type: ignore[no-untyped-def]
    """The largest number; nothing sensible where one is not finite, which the edge loss finds."""
    most = score[0]
    for j in range(len(score)):
        most = score[j] if score[j] > most else most
    return most


@njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=True)
def _steep(slope, first, last):  # type: ignore[no-untyped-def]
    """How many slopes are not slight."""
    count = np.float32(0.0)
    for j in range(first, last):
        count += np.float32(1.0) if abs(slope[j]) >= _SLIGHT else np.float32(0.0)
    return count


@njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=True)
def soft_neighbours(asked, own, columns, rows, start, prior, sharpness, first, last, back, forth):  # type: ignore[no-untyped-def]
    """The sum of KL(prior | groups of the soft neighbours) of the rows `first` to `last`, and its gradient.

    Args:
        asked: (B, d) float32 rows, d a multiple of 4.
        own: (B,) which column each is itself, or -1; nobody is a neighbour of its own.
        columns: (d, M) float32 those who may be neighbours, group by group.
        rows: (M, d) the same by row.
        start: (G + 1,) where each group begins, and M.
        prior: (G,) float64 shares of the groups, 0 for one that counts for nothing.
        sharpness: float32, 1 / temperature.
        first: row.
        last: one past the last row.
        back: (last - first, d) float32, zeros: the rows' gradient is added.
        forth: (M, d) float32, zeros: that of those who may be neighbours.

    Returns:
        the sum, in nats.
    """
    dims, num = columns.shape
    score, power = np.empty(num, np.float32), np.empty(num, np.float32)
    bits = power.view(np.int32)
    share, pull = np.empty(len(prior)), np.empty(len(prior))
    total = 0.0
    for i in range(first, last):
        _scores(asked, i, columns, sharpness, score)
        if own[i] >= 0:
            score[own[i]] = -1e30
        _exponentials(score, _highest(score), bits, power)
        if own[i] >= 0:
            score[own[i]] = 0.0
        whole = 0.0
        for g in range(len(prior)):
            share[g] = 0.0
            for begin in range(start[g], start[g + 1], _BLOCK):
                few = np.float32(0.0)
                for j in range(begin, min(begin + _BLOCK, start[g + 1])):
                    few += score[j]
                share[g] += few
            whole += share[g]
        mean = 0.0
        for g in range(len(prior)):
            share[g] /= whole
            pull[g] = 0.0
            if prior[g] > 0:
                least = max(share[g], _LEAST)
                total += prior[g] * math.log(prior[g] / least)
                pull[g] = -prior[g] / least
                mean += share[g] * pull[g]
        for g in range(len(prior)):
            each = np.float32((pull[g] - mean) / whole)
            for j in range(start[g], start[g + 1]):
                score[j] *= each
        for begin in range(0, num, _FEW):
            end = min(begin + _FEW, num)
            if _steep(score, begin, end) == 0:
                continue
            for j in range(begin, end):
                if abs(score[j]) >= _SLIGHT:
                    slope = score[j] * sharpness
                    for c in range(dims):
                        back[i - first, c] += slope * rows[j, c]
                        forth[j, c] += slope * asked[i, c]
    return total
