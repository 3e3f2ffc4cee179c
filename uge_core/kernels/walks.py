"""Compiled random walks over CSR rows, and the pairs within their window as rows of their own.

A walk's draws are hashes of the epoch's key, its number and how many it has drawn, so walks do not depend
on threads. Second-order steps are drawn by rejection: memory stays linear in edges.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


@njit(inline="always")
def _mixed(x):  # type: ignore[no-untyped-def]
    """The hash of splitmix64. Source: Steele et al., OOPSLA 2014."""
    x = (x ^ (x >> np.uint64(30))) * _MIX1
    x = (x ^ (x >> np.uint64(27))) * _MIX2
    return x ^ (x >> np.uint64(31))


@njit(inline="always")
def _unit(x):  # type: ignore[no-untyped-def]
    """A number in 0..1, 1 left out, of 53 random bits."""
    return np.float64(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(inline="always")
def _holds(neighbour, left, right, node):  # type: ignore[no-untyped-def]
    """Whether an ascending stretch of `neighbour` holds `node`."""
    end = right
    while left < right:
        middle = (left + right) // 2
        if neighbour[middle] < node:
            left = middle + 1
        else:
            right = middle
    return left < end and neighbour[left] == node


@njit(inline="always")
def _pick(total, left, right, u):  # type: ignore[no-untyped-def]
    """An entry of a block, for u in 0..1: uniform, or by weight where there are running sums."""
    if len(total) == 0:
        return left + min(np.int64(u * (right - left)), right - left - 1)
    aim = u * total[right - 1]
    end = right - 1
    while left < end:
        middle = (left + end) // 2
        if total[middle] > aim:
            end = middle
        else:
            left = middle + 1
    return left


@njit(nogil=True, error_model="numpy", cache=True)
def sums_within(weights, block):  # type: ignore[no-untyped-def]
    """(M,) running sums of the weights (M,) within each block.

    Not differences of one running sum: light blocks would vanish beside heavy ones.
    """
    out = np.empty(len(weights))
    for b in range(len(block) - 1):
        total = 0.0
        for i in range(block[b], block[b + 1]):
            total += weights[i]
            out[i] = total
    return out


@njit(nogil=True, error_model="numpy", cache=True)
def wander(first_block, block, neighbour, total, start, ascending, back, away, key, origin, first, last, out):  # type: ignore[no-untyped-def]
    """Writes the walks `first` to `last` to rows of `out`: nodes in order, -1 after the last.

    A step chooses a block of its node's row uniformly and an entry of it in proportion to its weight times 1 if
    it leads to a neighbour of the node before, `back` if to that node itself, `away` if elsewhere; the first step
    has no node before. A walk ends early at a node without entries.

    Args:
        first_block: (N + 1,) where each node's blocks begin.
        block: (B + 1,) where each block's entries begin.
        neighbour: (M,) the entries by block.
        total: (M,) running sums of the weights within each block, or (0,) for 1 each.
        start: (N + 1,) where each node's entries begin.
        ascending: (M,) the same entries, ascending within each row.
        back: 1/p.
        away: 1/q.
        key: of the draws.
        origin: (W,) where each walk begins.
        first: the first walk.
        last: the one after the last.
        out: (W, L + 1) int32.
    """
    plain = back == 1.0 and away == 1.0
    most = max(1.0, max(back, away))
    for w in range(first, last):
        state = _mixed(key + np.uint64(w + 1) * _GOLDEN)
        node, before = np.int64(origin[w]), np.int64(-1)
        out[w, 0] = node
        for i in range(1, out.shape[1]):
            b, blocks = first_block[node], first_block[node + 1] - first_block[node]
            if blocks == 0:
                out[w, i:] = -1
                break
            if blocks > 1:
                state += _GOLDEN
                b += min(np.int64(_unit(_mixed(state)) * blocks), blocks - 1)
            while True:
                state += _GOLDEN
                onto = np.int64(neighbour[_pick(total, block[b], block[b + 1], _unit(_mixed(state)))])
                if plain or before < 0:
                    break
                share = away
                if onto == before:
                    share = back
                elif _holds(ascending, start[before], start[before + 1], onto):
                    share = 1.0
                state += _GOLDEN
                if _unit(_mixed(state)) * most < share:
                    break
            before, node = node, onto
            out[w, i] = node


@njit(inline="always")
def _meets(u, v, across):  # type: ignore[no-untyped-def]
    """Whether two nodes of a walk make a pair: different ones, of a bipartite graph one of each side."""
    return u != v and (across < 0 or (u < across) != (v < across))


@njit(nogil=True, error_model="numpy", cache=True)
def lay_out(walks, window, across, low, high, at, context):  # type: ignore[no-untyped-def]
    """Writes the other ends of all pairs within the window, row by row, in the order of the walks; or counts them.

    Args:
        walks: (W, L + 1) nodes, -1 after the last.
        window: the most steps between the two nodes of a pair.
        across: the first side's size of a bipartite graph, else -1.
        low: the first node whose pairs are taken.
        high: the one after the last.
        at: (N,) where the next entry of each node goes; moved on by one for each.
        context: (P,) the entries; empty: nothing is written, so that `at` counts.
    """
    for w in range(len(walks)):
        for i in range(walks.shape[1]):
            u = walks[w, i]
            if u < low or u >= high:
                continue
            for j in range(max(0, i - window), min(walks.shape[1], i + window + 1)):
                v = walks[w, j]
                if v >= 0 and _meets(u, v, across):
                    if len(context):
                        context[at[u]] = v
                    at[u] += 1
