"""Attention over edges: softmax of leaky scores, the weighted sum, and both gradients."""

from __future__ import annotations

import numpy as np
from numba import njit

from uge_core.kernels.edges import AHEAD, SOON, ahead, longest
from uge_core.kernels.shared import FAST, exp


@njit(inline="always")
def _leaky(x):  # type: ignore[no-untyped-def]
    return x if x > np.float32(0.0) else np.float32(0.2) * x


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def _mix(share, x, node, begin, n, v, out):  # type: ignore[no-untyped-def]
    """Adds sum_i share_i x_node(i) by head over n messages to out[v], four messages at a time."""
    _, heads, width = x.shape
    i = 0
    while i + 4 <= n:
        at = begin + i
        u0, u1, u2, u3 = node[at], node[at + 1], node[at + 2], node[at + 3]
        for h in range(heads):
            c0, c1, c2, c3 = share[i, h], share[i + 1, h], share[i + 2, h], share[i + 3, h]
            for j in range(width):
                out[v, h, j] += c0 * x[u0, h, j] + c1 * x[u1, h, j] + c2 * x[u2, h, j] + c3 * x[u3, h, j]
        i += 4
    while i < n:
        u0 = node[begin + i]
        for h in range(heads):
            c0 = share[i, h]
            for j in range(width):
                out[v, h, j] += c0 * x[u0, h, j]
        i += 1


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def attend(x, source, target, start, sender, first, last, out, peak, scale):  # type: ignore[no-untyped-def]
    """Attention over incoming messages of the nodes `first` to `last`: writes their rows of `out`, `peak` and `scale`.

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
        scale: (N, H) 1 / sum of exp(logit - peak).
    """
    _, heads, width = x.shape
    rows = x.reshape(len(x), -1)
    most = longest(start, first, last)
    share = np.empty((most, heads), np.float32)
    flat = share.reshape(-1)
    for v in range(first, last):
        begin = start[v]
        n = start[v + 1] - begin
        for h in range(heads):
            peak[v, h] = -np.inf
            scale[v, h] = 0
        for i in range(n):
            ahead(rows, sender, begin + i + SOON)
            ahead(source, sender, begin + i + SOON)
            u = sender[begin + i]
            for h in range(heads):
                share[i, h] = _leaky(source[u, h] + target[v, h])
                peak[v, h] = max(peak[v, h], share[i, h])
        for i in range(n):
            for h in range(heads):
                share[i, h] -= peak[v, h]
        for i in range(n * heads):
            flat[i] = exp(flat[i])
        for i in range(n):
            for h in range(heads):
                scale[v, h] += share[i, h]
        _mix(share, x, sender, begin, n, v, out)
        for h in range(heads):
            scale[v, h] = np.float32(1.0) / scale[v, h]
            for j in range(width):
                out[v, h, j] *= scale[v, h]


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def attend_back(x, source, at_target, gradient, start, receiver, first, last, dx, dsource, dlogit):  # type: ignore[no-untyped-def]
    """Gradient of `attend` by the messages that the nodes `first` to `last` send.

    With a share a_uv and what it is worth r_uv = g_v . x_u - g_v . out_v, dx_u = sum_v a_uv g_v and the logit's
    gradient is a_uv r_uv times leaky_relu's slope, whose sums by sender are written here; `collect` sums them
    by receiver.

    Args:
        x: (N, H, w) what was sent.
        source: (N, H) the sender's part of each logit.
        at_target: (N, 4, H) the receiver's part, `peak` and `scale` from `attend`, and g . out.
        gradient: (N, H, w) g, the gradient of `out`.
        start: (N + 1,) where each sender's messages begin.
        receiver: (M,) who gets them.
        first: the first sender.
        last: the one after the last.
        dx: (N, H, w), zero at these rows.
        dsource: (N, H), zero at these rows.
        dlogit: (M, H) of each message.
    """
    _, heads, width = x.shape
    rows, by_target = gradient.reshape(len(x), -1), at_target.reshape(len(x), -1)
    zero, one = np.float32(0.0), np.float32(1.0)
    most = longest(start, first, last)
    share = np.empty((most, heads), np.float32)
    flat = share.reshape(-1)
    for u in range(first, last):
        begin = start[u]
        n = start[u + 1] - begin
        for i in range(n):
            ahead(rows, receiver, begin + i + SOON)
            ahead(by_target, receiver, begin + i + SOON)
            v = receiver[begin + i]
            for h in range(heads):
                share[i, h] = _leaky(source[u, h] + at_target[v, 0, h]) - at_target[v, 1, h]
        for i in range(n * heads):
            flat[i] = exp(flat[i])
        for i in range(n):
            v = receiver[begin + i]
            for h in range(heads):
                inner = zero
                for j in range(width):
                    inner += gradient[v, h, j] * x[u, h, j]
                share[i, h] *= at_target[v, 2, h]
                slope = one if source[u, h] + at_target[v, 0, h] > zero else np.float32(0.2)
                d = share[i, h] * (inner - at_target[v, 3, h]) * slope
                dsource[u, h] += d
                dlogit[begin + i, h] = d
        _mix(share, gradient, receiver, begin, n, u, dx)


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def collect(values, start, place, first, last, out):  # type: ignore[no-untyped-def]
    """Adds the rows of `values` (M, H) at the places that belong to the nodes `first` to `last` to their rows of `out`."""
    for v in range(first, last):
        for i in range(start[v], start[v + 1]):
            ahead(values, place, i + AHEAD)
            for h in range(values.shape[1]):
                out[v, h] += values[place[i], h]
