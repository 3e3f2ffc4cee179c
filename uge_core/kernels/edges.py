"""Compiled passes over the edges: score, loss, weight lookup and gradient at once.

Each row of the gradient is written by one thread in a fixed order, so a member's numbers do not
depend on the number of threads or on who trains beside it. Threads are Python's own: the kernels let
go of the interpreter lock, which avoids a second OpenMP runtime spinning against torch's.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from uge_core.kernels.shared import FAST, exp, softplus

AHEAD = (
    32  # entries between asking for a row and reading it; Pokec-n: 30 ms without, 23, 22, 22, 22 with 12, 24, 32, 64
)
SOON = 8  # the same for the wider rows of attention
_TILE = 32  # sources whose scores against the block are held at once
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


@njit(inline="always")
def longest(start, first, last):  # type: ignore[no-untyped-def]
    """The most entries of a row from `first` to `last`."""
    most = 0
    for row in range(first, last):
        most = max(most, start[row + 1] - start[row])
    return most


@intrinsic
def _fetch(typing, table, row, column):  # type: ignore[no-untyped-def]
    """Asks for the cache line of table[row, column], float32, ahead of its use."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        item = cgutils.get_item_pointer(context, builder, kind, array, list(arguments[1:]), wraparound=False)  # type: ignore[no-untyped-call]
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
        builder.call(hint, [builder.bitcast(item, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(table, row, column), generate


@njit(inline="always")
def ahead(table, index, at):  # type: ignore[no-untyped-def]
    """Asks for the row of a table that the entry `at` of `index` names.

    Rows are read at random, and the wait was half the time.
    """
    if at < len(index):
        for column in range(0, table.shape[1], 16):
            _fetch(table, np.int64(index[at]), column)  # type: ignore[call-arg]


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def _scores(z, across, u, neighbour, begin, n, s):  # type: ignore[no-untyped-def]
    """Writes z_u . across_v of n entries to s, four at a time, so that z_u is read once for them."""
    i = 0
    while i + 4 <= n:
        at = begin + i
        for k in range(at + AHEAD, at + AHEAD + 4):
            ahead(across, neighbour, k)
        v0, v1, v2, v3 = neighbour[at], neighbour[at + 1], neighbour[at + 2], neighbour[at + 3]
        s0 = s1 = s2 = s3 = np.float32(0.0)
        for j in range(z.shape[1]):
            x = z[u, j]
            s0 += x * across[v0, j]
            s1 += x * across[v1, j]
            s2 += x * across[v2, j]
            s3 += x * across[v3, j]
        s[i], s[i + 1], s[i + 2], s[i + 3] = s0, s1, s2, s3
        i += 4
    while i < n:
        v0 = neighbour[begin + i]
        s0 = np.float32(0.0)
        for j in range(z.shape[1]):
            s0 += z[u, j] * across[v0, j]
        s[i] = s0
        i += 1


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def _gather(across, u, neighbour, begin, n, s, gradient):  # type: ignore[no-untyped-def]
    """Adds sum_i s_i across_v of n entries to row u of the gradient, four at a time."""
    i = 0
    while i + 4 <= n:
        at = begin + i
        v0, v1, v2, v3 = neighbour[at], neighbour[at + 1], neighbour[at + 2], neighbour[at + 3]
        s0, s1, s2, s3 = s[i], s[i + 1], s[i + 2], s[i + 3]
        for j in range(across.shape[1]):
            gradient[u, j] += s0 * across[v0, j] + s1 * across[v1, j] + s2 * across[v2, j] + s3 * across[v3, j]
        i += 4
    while i < n:
        v0, s0 = neighbour[begin + i], s[i]
        for j in range(across.shape[1]):
            gradient[u, j] += s0 * across[v0, j]
        i += 1


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def pull(z, across, start, neighbour, weight, offset, scale, sign, first, last, want_loss, gradient):  # type: ignore[no-untyped-def]
    """Scale * sum w softplus(-sign s) over the entries of the sources `first` to `last`; returns the loss.

    Each pair stands in both directions and each row is written by its own node, so a row gets twice its
    entries' share.

    Args:
        z: (N, d) embedding, or left factors (see `scores`).
        across: (N, d) what it meets: `z` itself, or right factors.
        start: (N + 1,) where each row's entries begin.
        neighbour: (2 E,) the entries.
        weight: (2 E,) factor of each entry, or (0,) for 1 throughout.
        offset: (2 E,) logit offset of each entry, or (0,) for none.
        scale: of the sum.
        sign: 1 for pairs that attract, -1 for pairs that repel.
        first: the first source.
        last: the one after the last.
        want_loss: whether the loss is added up, else 0 is returned.
        gradient: (N, d), added to at these sources.
    """
    one, factor = np.float32(1.0), np.float32(-2.0) * sign * scale
    most = longest(start, first, last)
    s, term = np.empty(most, np.float32), np.empty(most, np.float32)
    loss = 0.0
    for u in range(first, last):
        begin = start[u]
        n = start[u + 1] - begin
        _scores(z, across, u, neighbour, begin, n, s)
        if len(offset):
            for i in range(n):
                s[i] += offset[begin + i]
        for i in range(n):
            s[i] *= sign
        if want_loss:
            for i in range(n):
                term[i] = softplus(-s[i])
            if len(weight):
                for i in range(n):
                    term[i] *= weight[begin + i]
            for i in range(n):
                loss += scale * term[i]
        for i in range(n):
            s[i] = factor / (one + exp(s[i]))
        if len(weight):
            for i in range(n):
                s[i] *= weight[begin + i]
        _gather(across, u, neighbour, begin, n, s, gradient)
    return loss


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def _meet(z, u, block, s):  # type: ignore[no-untyped-def]
    """Writes z_u . b of all nodes b of the block to s."""
    d, m = block.shape
    for i in range(m):
        s[i] = 0
    j = 0
    while j + 4 <= d:
        z0, z1, z2, z3 = z[u, j], z[u, j + 1], z[u, j + 2], z[u, j + 3]
        for i in range(m):
            s[i] += z0 * block[j, i] + z1 * block[j + 1, i] + z2 * block[j + 2, i] + z3 * block[j + 3, i]
        j += 4
    while j < d:
        for i in range(m):
            s[i] += z[u, j] * block[j, i]
        j += 1


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def _repelled(block, s, u, gradient):  # type: ignore[no-untyped-def]
    """Adds sum_b s_b b over the block to row u of the gradient."""
    d, m = block.shape
    j = 0
    while j + 4 <= d:
        p0 = p1 = p2 = p3 = np.float32(0.0)
        for i in range(m):
            x = s[i]
            p0 += x * block[j, i]
            p1 += x * block[j + 1, i]
            p2 += x * block[j + 2, i]
            p3 += x * block[j + 3, i]
        gradient[u, j] += p0
        gradient[u, j + 1] += p1
        gradient[u, j + 2] += p2
        gradient[u, j + 3] += p3
        j += 4
    while j < d:
        p0 = np.float32(0.0)
        for i in range(m):
            p0 += s[i] * block[j, i]
        gradient[u, j] += p0
        j += 1


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def _pushed(across, first, rows, s, push):  # type: ignore[no-untyped-def]
    """Adds sum_u s_u across_u over a tile's sources to the block's nodes, four sources at a time."""
    d, m = push.shape
    r = 0
    while r + 4 <= rows:
        u = first + r
        for j in range(d):
            z0, z1, z2, z3 = across[u, j], across[u + 1, j], across[u + 2, j], across[u + 3, j]
            for i in range(m):
                push[j, i] += z0 * s[r, i] + z1 * s[r + 1, i] + z2 * s[r + 2, i] + z3 * s[r + 3, i]
        r += 4
    while r < rows:
        for j in range(d):
            z0 = across[first + r, j]
            for i in range(m):
                push[j, i] += z0 * s[r, i]
        r += 1


@njit(nogil=True, fastmath=FAST, error_model="numpy", cache=True)
def contrast(  # type: ignore[no-untyped-def]
    z,
    across,
    start,
    neighbour,
    weight,
    offset,
    scale,
    group,
    share,
    block,
    columns,
    node_offset,
    offset_group,
    linked,
    linked_column,
    first,
    last,
    want_loss,
    gradient,
    push,
):
    """Both halves of the cross-entropy for the sources `first` to `last`; returns the loss.

    Writes the sources' own rows of `gradient` and adds to `push` what they do to the block's nodes. Scores
    go through a tile that stays in the cache and the block lies transposed, so that the inner loops vectorise.

    Args:
        z: (N, d) embedding, or left factors.
        across: (N, d) `z` itself, or right factors.
        start: (N + 1,) where each row's entries begin.
        neighbour: (2 E,) the entries.
        weight: (2 E,) factor of each entry, or (0,) for 1 throughout.
        offset: (2 E,) logit offset of each entry, or (0,) for none.
        scale: of the observed half.
        group: (N,) cell group of each node, read where there are offsets.
        share: (N,) what a source's strangers count for together.
        block: (d, m) rows of `across` of the step's negatives; m = 0 leaves this half out.
        columns: (G + 1, m) offsets of the block's nodes by the source's group, or (0, 0).
        node_offset: (N, G + 1) the sources' own part of offsets by the other end's group, or (0, 0).
        offset_group: (m,) the group of each of the block's nodes, read where there is a node_offset.
        linked: sources that have an edge to a node of the block or are one, ascending, closed by a large number.
        linked_column: which node of the block.
        first: the first source.
        last: the one after the last.
        want_loss: whether the loss is added up, else 0 is returned.
        gradient: (N, d), zero at these sources.
        push: (d, m).
    """
    m = block.shape[1]
    loss = pull(z, across, start, neighbour, weight, offset, scale, np.float32(1.0), first, last, want_loss, gradient)
    if m == 0:
        return loss
    one = np.float32(1.0)
    s, term, each = np.empty((_TILE, m), np.float32), np.empty((_TILE, m), np.float32), np.empty(_TILE, np.float32)
    flat, flat_term = s.reshape(-1), term.reshape(-1)
    skip = np.searchsorted(linked, first)
    for begin in range(first, last, _TILE):
        rows = min(_TILE, last - begin)
        for r in range(rows):
            each[r] = m
            _meet(z, begin + r, block, s[r])
            if len(columns):
                for i in range(m):
                    s[r, i] += columns[group[begin + r], i]
            if len(node_offset):
                for i in range(m):
                    s[r, i] += node_offset[begin + r, offset_group[i]]
        if want_loss:
            for i in range(rows * m):
                flat_term[i] = softplus(flat[i])
        for i in range(rows * m):
            flat[i] = one / (one + exp(-flat[i]))
        while linked[skip] < begin + rows:
            r = linked[skip] - begin
            s[r, linked_column[skip]] = term[r, linked_column[skip]] = np.float32(0.0)
            each[r] -= one
            skip += 1
        for r in range(rows):
            each[r] = share[begin + r] / each[r] if each[r] > 0 else np.float32(0.0)
            for i in range(m):
                s[r, i] *= each[r]
            if want_loss:
                for i in range(m):
                    loss += each[r] * term[r, i]
            _repelled(block, s[r], begin + r, gradient)
        _pushed(across, begin, rows, s, push)
    return loss


@njit(nogil=True, fastmath=FAST, cache=True)
def rank_pairs(z, across, source, liked, other, group, weight, offset, node_offset, own, scale, want_loss, gradient):  # type: ignore[no-untyped-def]
    """Gradient of scale * sum w softplus(-(z_u . (x_i - x_j) + o_ui - o_uj)) over given triples; returns the loss.

    x are the rows of `across`: `z` itself, or right factors.

    `own` multiplies w, one number per triple; empty: 1 throughout. `node_offset` (N, G + 1) is the nodes' own part of
    the offsets, or (0, 0).
    """
    d = z.shape[1]
    loss = 0.0
    for e in range(len(source)):
        u, i, j = source[e], liked[e], other[e]
        if j < 0:
            continue
        s = np.float32(0.0)
        for k in range(d):
            s += z[u, k] * (across[i, k] - across[j, k])
        gu = group[u]
        s += offset[gu, group[i]] - offset[gu, group[j]]
        if len(node_offset):
            s += node_offset[u, group[i]] + node_offset[i, gu] - node_offset[u, group[j]] - node_offset[j, gu]
        w = weight[gu, group[i]] * scale
        if len(own):
            w *= own[e]
        if want_loss:
            loss += w * (max(-s, np.float32(0.0)) + np.log1p(np.exp(-abs(s))))
        c = -w / (np.float32(1.0) + np.exp(s))
        for k in range(d):
            zu = across[u, k]
            gradient[u, k] += c * (across[i, k] - across[j, k])
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
