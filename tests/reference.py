"""Slow, obviously right versions of every formula: loops over pairs, resorted lists, exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np


def sigmoid(score):
    return 1.0 / (1.0 + math.exp(-score)) if score >= 0 else math.exp(score) / (1.0 + math.exp(score))


def dot(z, u, v):
    return sum(float(a) * float(b) for a, b in zip(z[u], z[v], strict=True))


def _means(z, pairs, group, num_users):
    """{cell: (mean probability, pairs)} over `pairs`; a cell is an unordered pair of groups, or a user's group."""
    found = {}
    for u, v in pairs:
        if group[u] < 0 or (num_users is None and group[v] < 0):
            continue
        a, b = int(group[u]), int(group[v])
        cell = a if num_users is not None else (min(a, b), max(a, b))
        found.setdefault(cell, []).append(sigmoid(dot(z, u, v)))
    return {cell: (sum(probs) / len(probs), len(probs)) for cell, probs in found.items()}


def dp_cells(z, num_nodes, group, num_users=None):
    """Over all unordered pairs; bipartite: all user-item pairs."""
    if num_users is None:
        pairs = combinations(range(num_nodes), 2)
    else:
        pairs = ((u, i) for u in range(num_users) for i in range(num_users, num_nodes))
    return _means(z, pairs, group, num_users)


def eo_cells(z, edges, group, num_users=None):
    return _means(z, list(zip(*edges.tolist(), strict=True)), group, num_users)


def ndcg(gains_in_order, top=10):
    """Of one list, gains from first to last rank."""

    def dcg(gains):
        return sum(g / math.log2(rank + 2) for rank, g in enumerate(gains[:top]))

    ideal = dcg(sorted(gains_in_order, reverse=True))
    return dcg(gains_in_order) / ideal if ideal > 0 else math.nan


def auc(score, inside):
    """Share of (inside, outside) pairs that are ordered rightly, ties half."""
    ins = [s for s, i in zip(score, inside, strict=True) if i]
    outs = [s for s, i in zip(score, inside, strict=True) if not i]
    return sum((a > b) + 0.5 * (a == b) for a in ins for b in outs) / (len(ins) * len(outs))


# Training


def ratio_weights(num_nodes, edges, full, rest, num_users=None, own=None):
    """R~/R of each edge, Eq. (6) and (8)-(12), over ordered pairs with self-pairs (bipartite: across, both orders).

    own: whole numbers, how often each edge stands; None: once.
    """

    def allowed(i, j):
        return num_users is None or (i < num_users) != (j < num_users)

    often = [1] * edges.shape[1] if own is None else own
    directed = [
        p for (u, v), n in zip(edges.T.tolist(), often, strict=True) for p in ((u, v), (v, u)) for _ in range(n)
    ]

    def ratio(label):
        pairs, hits = {}, {}
        total = 0
        for i, j in product(range(num_nodes), repeat=2):
            if allowed(i, j):
                key = (label[i], label[j])
                pairs[key] = pairs.get(key, 0) + 1
                total += 1
        for i, j in directed:
            key = (label[i], label[j])
            hits[key] = hits.get(key, 0) + 1
        return {k: Fraction(h, len(directed)) / Fraction(pairs[k], total) for k, h in hits.items()}

    r, r_free = ratio(full), ratio(rest)
    return [r_free[rest[u], rest[v]] / r[full[u], full[v]] for u, v in edges.T.tolist()]


def mean_gap(z, full, rest, *, norm="squared", weighting="pairs", num_users=None):
    """Eq. (13)-(14) over all ordered pairs that may carry an edge."""
    n = len(z)
    pairs = [(i, j) for i, j in product(range(n), repeat=2) if num_users is None or (i < num_users) != (j < num_users)]

    def means(label):
        total, count = {}, {}
        for i, j in pairs:
            key = (label[i], label[j])
            total[key] = total.get(key, 0.0) + float(np.dot(z[i], z[j]))
            count[key] = count.get(key, 0) + 1
        return {k: total[k] / count[k] for k in total}, count

    q, count = means(full)
    q_free, _ = means(rest)
    of = {full[i]: rest[i] for i in range(n)}
    gap = {k: q[k] - q_free[of[k[0]], of[k[1]]] for k in q}
    size = {k: abs(g) if norm == "absolute" else g * g for k, g in gap.items()}
    weight = count if weighting == "pairs" else dict.fromkeys(count, 1)
    return sum(size[k] * weight[k] for k in size) / sum(weight.values())


def softplus(x):
    """log(1 + e^x) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def cross_entropy(z, edges, weight, offset, block, num_users=None, own=None):
    """The loss of `uge_core.edge_loss` for one shared block per side, by loops. weight, offset: functions of (u, v).

    own: whole numbers, how often each edge stands; None: once.
    """
    n = len(z)
    neighbours = {i: set() for i in range(n)}
    for u, v in edges.T.tolist():
        neighbours[u].add(v)
        neighbours[v].add(u)
    often = [1] * edges.shape[1] if own is None else own
    directed = [
        p for (u, v), k in zip(edges.T.tolist(), often, strict=True) for p in ((u, v), (v, u)) for _ in range(k)
    ]
    degree = [sum(u == i for u, _ in directed) for i in range(n)]

    def score(u, v):
        return float(np.dot(z[u], z[v])) + offset(u, v)

    positive = sum(weight(u, v) * softplus(-score(u, v)) for u, v in directed) / len(directed)
    sides = (
        [(range(n), block[0])] if num_users is None else [(range(num_users), block[0]), (range(num_users, n), block[1])]
    )
    negative = 0.0
    for sources, nodes in sides:
        mass = len(directed)
        for u in sources:
            strangers = [v for v in nodes if v not in neighbours[u] and v != u]
            if strangers:
                negative += degree[u] / mass * sum(softplus(score(u, v)) for v in strangers) / len(strangers)
    return 0.5 * positive + 0.5 * negative


def listed_cross_entropy(z, lines):
    """Mean of binary cross-entropy over an observed pair (u, v), weighing w, and a stranger pair (u, j) per line."""
    total = 0.0
    for u, v, j, w in lines:
        total += w * softplus(-float(np.dot(z[u], z[v]))) + softplus(float(np.dot(z[u], z[j])))
    return total / (2 * len(lines))


def bpr(z, triples, weight, offset, total):
    """Mean over observed pairs of w softplus(-(s_ui - s_uj))."""
    loss = 0.0
    for u, i, j in triples:
        if j >= 0:
            s = float(np.dot(z[u], z[i] - z[j])) + offset(u, i) - offset(u, j)
            loss += weight(u, i) * softplus(-s)
    return loss / total


def mmd2(x, y, scales):
    """Squared maximum mean discrepancy for the sum of Gaussian kernels exp(-|a - b|^2 / s)."""

    def k(a, b):
        d = ((a[:, None] - b[None]) ** 2).sum(-1)
        return sum(np.exp(-d / s) for s in scales).mean()

    return k(x, x) - 2 * k(x, y) + k(y, y)


# Planted graphs


def planted_probabilities(recipe, codes, structural, bias_free=False):
    """{(u, v): P} for u < v, Eq. (3) or (4) before clipping, by loops over pairs.

    codes: {trait: (N,) value of each node}; structural: function (u, v) -> P_M.
    """
    n = recipe.num_people + recipe.num_items
    traits = {t.name: t for t in recipe.traits}

    def factor(u, v):  # u < v, so that on a bipartite graph u is the person
        out = 1.0
        for e in recipe.effects:
            out *= e.table[codes[e.first][u]][codes[e.second][v]]
        return out

    def rest(u):
        open_values = [int(codes[t][u]) for t in traits if not traits[t].sensitive]
        return (u >= recipe.num_people, *open_values)

    pairs = [(u, v) for u, v in combinations(range(n), 2) if not recipe.num_items or u < recipe.num_people <= v]
    mass = {(u, v): structural(u, v) for u, v in pairs}
    scale = sum(mass.values()) / sum(mass[p] * factor(*p) for p in pairs)
    observed = {p: mass[p] * factor(*p) * scale for p in pairs}
    if not bias_free:
        return observed
    total, weight = {}, {}
    for u, v in pairs:
        cell = frozenset([(rest(u), "x"), (rest(v), "y" if rest(u) == rest(v) else "x")])
        total[cell] = total.get(cell, 0.0) + observed[u, v]
        weight[cell] = weight.get(cell, 0.0) + mass[u, v]
    return {
        (u, v): mass[u, v]
        * total[c := frozenset([(rest(u), "x"), (rest(v), "y" if rest(u) == rest(v) else "x")])]
        / weight[c]
        for u, v in pairs
    }


def kronecker_power(initiator, levels):
    """(2^levels, 2^levels) the Kronecker power itself."""
    power = np.ones((1, 1))
    for _ in range(levels):
        power = np.kron(power, np.array(initiator))
    return power
