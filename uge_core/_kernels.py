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


@njit(inline="always")
def _exp(x):  # type: ignore[no-untyped-def]
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
def _softplus(x):  # type: ignore[no-untyped-def]
    """log(1 + exp(x)); log(1 + y) = 2 artanh(y / (2 + y)) by its series, as y / (2 + y) is at most a third."""
    y = _exp(-abs(x))
    t = y / (np.float32(2.0) + y)
    q = t * t
    p = np.float32(1 / 15)
    for odd in (13, 11, 9, 7, 5, 3, 1):
        p = p * q + np.float32(1.0 / odd)
    return max(x, np.float32(0.0)) + np.float32(2.0) * t * p


@njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=True)
def contrast(  # type: ignore[no-untyped-def]
    z, start, neighbour, weight, offset, scale, group, share, block, columns, linked, linked_column,
    first, last, want_loss, gradient, push,
):  # fmt: skip
    """Both halves of the cross-entropy for the sources `first` to `last`; returns the loss.

    Writes the sources' own rows of `gradient` and adds to `push` what they do to the block's nodes. Scores
    go through a buffer and the block lies transposed, so that the inner loops vectorise.

    Args:
        z: (N, d) embedding.
        start: (N + 1,) where each row's entries begin.
        neighbour: (2 E,) the entries.
        weight: (2 E,) factor of each entry, or (0,) for 1 throughout.
        offset: (2 E,) logit offset of each entry, or (0,) for none.
        scale: of the observed half.
        group: (N,) cell group of each node, read where there are offsets.
        share: (N,) what a source's strangers count for together.
        block: (d, m) embeddings of the step's negatives; m = 0 leaves this half out.
        columns: (G + 1, m) offsets of the block's nodes by the source's group, or (0, 0).
        linked: sources that have an edge to a node of the block or are one, ascending, closed by a large number.
        linked_column: which node of the block.
        first: the first source.
        last: the one after the last.
        want_loss: whether the loss is added up, else 0 is returned.
        gradient: (N, d), zero at these sources.
        push: (d, m).
    """
    d, m = block.shape
    most = m
    for u in range(first, last):
        most = max(most, start[u + 1] - start[u])
    s, term = np.empty(most, np.float32), np.empty(most, np.float32)
    one, two = np.float32(1.0), np.float32(2.0)
    skip = np.searchsorted(linked, first)
    loss = 0.0
    for u in range(first, last):
        begin = start[u]
        n = start[u + 1] - begin
        for i in range(n):
            v = neighbour[begin + i]
            score = np.float32(0.0)
            for j in range(d):
                score += z[u, j] * z[v, j]
            s[i] = score
        if len(offset):
            for i in range(n):
                s[i] += offset[begin + i]
        if want_loss:
            for i in range(n):
                term[i] = _softplus(-s[i])
            if len(weight):
                for i in range(n):
                    term[i] *= weight[begin + i]
            for i in range(n):
                loss += scale * term[i]
        # both ends move: the pair stands in both directions, and each row is written by its own node
        for i in range(n):
            s[i] = -two * scale / (one + _exp(s[i]))
        if len(weight):
            for i in range(n):
                s[i] *= weight[begin + i]
        for i in range(n):
            v, c = neighbour[begin + i], s[i]
            for j in range(d):
                gradient[u, j] += c * z[v, j]
        if m == 0:
            continue
        for i in range(m):
            s[i] = 0
        for j in range(d):
            c = z[u, j]
            for i in range(m):
                s[i] += c * block[j, i]
        if len(columns):
            for i in range(m):
                s[i] += columns[group[u], i]
        if want_loss:
            for i in range(m):
                term[i] = _softplus(s[i])
        for i in range(m):
            s[i] = one / (one + _exp(-s[i]))
        strangers = m
        while linked[skip] == u:
            s[linked_column[skip]] = term[linked_column[skip]] = np.float32(0.0)
            strangers -= 1
            skip += 1
        if strangers == 0:
            continue
        each = share[u] / np.float32(strangers)
        if want_loss:
            for i in range(m):
                loss += each * term[i]
        for i in range(m):
            s[i] *= each
        for j in range(d):
            pull = np.float32(0.0)
            for i in range(m):
                pull += s[i] * block[j, i]
            gradient[u, j] += pull
        for j in range(d):
            c = z[u, j]
            for i in range(m):
                push[j, i] += c * s[i]
    return loss


@njit(nogil=True, fastmath=_FAST, cache=True)
def rank_pairs(z, source, liked, other, group, weight, offset, own, scale, want_loss, gradient):  # type: ignore[no-untyped-def]
    """Gradient of scale * sum w softplus(-(z_u . (z_i - z_j) + o_ui - o_uj)) over given triples; returns the loss.

    `own` multiplies w, one number per triple; empty: 1 throughout.
    """
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
        if len(own):
            w *= own[e]
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


@njit(inline="always")
def _leaky(x):  # type: ignore[no-untyped-def]
    return x if x > np.float32(0.0) else np.float32(0.2) * x


@njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=True)
def attend(x, source, target, start, sender, first, last, out, peak, total):  # type: ignore[no-untyped-def]
    """Attention over incoming messages of the nodes `first` to `last`: writes their rows of `out`, `peak` and `total`.

    Args:
        x: (N, H, w) what is sent.
        source: (N, H) the sender's part of each logit.
        target: (N, H) the receiver's.
        start: (N + 1,) where each receiver's messages begin.
        sender: (M,) who sends.
        first: the first receiver.
        last: the one after the last.
        out: (N, H, w), zero at these rows.
        peak: (N, H) the largest logit.
        total: (N, H) sum of exp(logit - peak).
    """
    _, heads, width = x.shape
    most = 0
    for v in range(first, last):
        most = max(most, start[v + 1] - start[v])
    share = np.empty((most, heads), np.float32)
    flat = share.reshape(-1)
    for v in range(first, last):
        begin = start[v]
        n = start[v + 1] - begin
        for h in range(heads):
            peak[v, h] = -np.inf
            total[v, h] = 0
        for i in range(n):
            u = sender[begin + i]
            for h in range(heads):
                logit = _leaky(source[u, h] + target[v, h])
                share[i, h] = logit
                peak[v, h] = max(peak[v, h], logit)
        for i in range(n):
            for h in range(heads):
                share[i, h] -= peak[v, h]
        for i in range(n * heads):
            flat[i] = _exp(flat[i])
        for i in range(n):
            for h in range(heads):
                total[v, h] += share[i, h]
        for i in range(n):
            u = sender[begin + i]
            for h in range(heads):
                c = share[i, h] / total[v, h]
                for j in range(width):
                    out[v, h, j] += c * x[u, h, j]


@njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=True)
def attend_back(  # type: ignore[no-untyped-def]
    x, source, target, peak, total, gradient, along, start, other, first, last, sends, dx, dlogit
):
    """Gradient of `attend` by the messages of the nodes `first` to `last`.

    With a share a_uv and what it is worth r_uv = g_v . x_u - g_v . out_v, dx_u = sum_v a_uv g_v and the logit's
    gradient is a_uv r_uv times leaky_relu's slope, summed by sender and by receiver. Each node's sums are
    its own: the senders' pass reads the messages a node sends, the receivers' those it gets.

    Args:
        x: (N, H, w) what was sent.
        source: (N, H) the sender's part of each logit.
        target: (N, H) the receiver's.
        peak: (N, H) from `attend`.
        total: (N, H) from `attend`.
        gradient: (N, H, w) g, the gradient of `out`.
        along: (N, H) g . out by head.
        start: (N + 1,) where each node's messages begin.
        other: (M,) who is at their other end.
        first: the first node.
        last: the one after the last.
        sends: whether these are the messages a node sends, else those it gets.
        dx: (N, H, w), zero at these rows; written where `sends`.
        dlogit: (N, H), zero at these rows.
    """
    _, heads, width = x.shape
    zero, one = np.float32(0.0), np.float32(1.0)
    share, worth = np.empty(heads, np.float32), np.empty(heads, np.float32)
    for node in range(first, last):
        for i in range(start[node], start[node + 1]):
            u, v = (node, other[i]) if sends else (other[i], node)
            for h in range(heads):
                share[h] = _exp(_leaky(source[u, h] + target[v, h]) - peak[v, h]) / total[v, h]
            for h in range(heads):
                inner = zero
                for j in range(width):
                    inner += gradient[v, h, j] * x[u, h, j]
                worth[h] = inner - along[v, h]
            for h in range(heads):
                slope = one if source[u, h] + target[v, h] > zero else np.float32(0.2)
                dlogit[node, h] += share[h] * worth[h] * slope
            if sends:
                for h in range(heads):
                    c = share[h]
                    for j in range(width):
                        dx[node, h, j] += c * gradient[v, h, j]
