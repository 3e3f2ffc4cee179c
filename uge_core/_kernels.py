"""Compiled passes over the edges: score, loss, weight lookup and gradient at once.

Each row of the gradient is written by one thread in a fixed order, so a member's numbers do not
depend on the number of threads or on who trains beside it. Threads are Python's own: the kernels let
go of the interpreter lock, which avoids a second OpenMP runtime spinning against torch's.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# sums may be reordered and contracted; infinities keep their meaning, as exp of a large score is one
_FAST = {"reassoc", "contract", "nsz", "arcp"}
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


@njit(nogil=True, fastmath=_FAST, cache=True)
def attract(z, start, neighbour, plain, weight, offset, first, last, scale, want_loss, gradient):  # type: ignore[no-untyped-def]
    """Gradient rows `first` to `last` of scale * sum_{u,v} w softplus(-(z_u . z_v + o)); returns the loss.

    `weight` and `offset` hold one number per CSR entry; `plain` means 1 and 0 throughout.
    """
    d = z.shape[1]
    loss = 0.0
    w = scale
    for u in range(first, last):
        for i in range(start[u], start[u + 1]):
            v = neighbour[i]
            s = np.float32(0.0)
            for j in range(d):
                s += z[u, j] * z[v, j]
            if not plain:
                s += offset[i]
                w = weight[i] * scale
            if want_loss:
                loss += w * (max(-s, np.float32(0.0)) + np.log1p(np.exp(-abs(s))))
            # both ends move: the pair stands in both directions, and each row is written by its own node
            c = np.float32(-2.0) * w / (np.float32(1.0) + np.exp(s))
            for j in range(d):
                gradient[u, j] += c * z[v, j]
    return loss


@njit(nogil=True, fastmath=_FAST, cache=True)
def rank_pairs(z, source, liked, other, group, weight, offset, scale, want_loss, gradient):  # type: ignore[no-untyped-def]
    """Gradient of scale * sum w softplus(-(z_u . (z_i - z_j) + o_ui - o_uj)) over given triples; returns the loss."""
    d = z.shape[1]
    loss = 0.0
    for e in range(len(source)):
        u, i, j = source[e], liked[e], other[e]
        if j < 0:
            continue
        s = np.float32(0.0)
        for k in range(d):
            s += z[u, k] * (z[i, k] - z[j, k])
        gu = group[u]
        s += offset[gu, group[i]] - offset[gu, group[j]]
        w = weight[gu, group[i]] * scale
        if want_loss:
            loss += w * (max(-s, np.float32(0.0)) + np.log1p(np.exp(-abs(s))))
        c = -w / (np.float32(1.0) + np.exp(s))
        for k in range(d):
            zu = z[u, k]
            gradient[u, k] += c * (z[i, k] - z[j, k])
            gradient[i, k] += c * zu
            gradient[j, k] -= c * zu
    return loss


@njit(nogil=True, cache=True)
def draw_strangers(start, neighbour, source, low, high, key, attempts, first, last, out):  # type: ignore[no-untyped-def]
    """For each observed pair a uniform node in low..high that its source has no training edge to; -1 after `attempts`.

    The draw is a hash of `key`, the pair's number and the attempt, so it does not depend on threads.
    """
    span = np.uint64(high - low)
    for e in range(first, last):
        u = source[e]
        out[e] = -1
        for a in range(attempts):
            x = key + np.uint64(e * attempts + a + 1) * _GOLDEN
            x = (x ^ (x >> np.uint64(30))) * _MIX1
            x = (x ^ (x >> np.uint64(27))) * _MIX2
            x = x ^ (x >> np.uint64(31))
            v = low + np.int64(x % span)
            if v == u:
                continue
            left, right = start[u], start[u + 1]
            while left < right:
                middle = (left + right) // 2
                if neighbour[middle] < v:
                    left = middle + 1
                else:
                    right = middle
            if left < start[u + 1] and neighbour[left] == v:
                continue
            out[e] = v
            break
