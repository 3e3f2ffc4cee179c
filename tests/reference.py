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


# Leakage


def usable_bits(truth, classes, train_size, calibrated):
    """Mean over nodes of log2(q / prior) of their class; 0 for one that training lacks."""
    total = 0.0
    for i, c in enumerate(truth):
        for k, known in enumerate(classes):
            if known == c:
                total += math.log2(calibrated[i][k] / (train_size[k] / sum(train_size)))
    return total / len(truth)


def pillai_trace(z, classes):
    """tr(H (H + E)^-1), H and E from loops over nodes."""
    z = np.asarray(z, float)
    d = z.shape[1]
    between, within = np.zeros((d, d)), np.zeros((d, d))
    centre = z.mean(axis=0)
    for c in set(classes):
        mine = z[[k == c for k in classes]]
        gap = mine.mean(axis=0) - centre
        between += len(mine) * np.outer(gap, gap)
        for row in mine:
            within += np.outer(row - mine.mean(axis=0), row - mine.mean(axis=0))
    return float(np.trace(between @ np.linalg.inv(between + within)))


def nearest_votes(x, y, point, num_classes, k):
    """Class shares among the k nearest, each weighing 1 / distance, the training shares one mean weight."""
    near = sorted((math.dist(row, point), int(c)) for row, c in zip(x, y, strict=True))[:k]
    weights = [1.0 / distance for distance, _ in near]
    mean = sum(weights) / len(weights)
    out = []
    for c in range(num_classes):
        votes = sum(w for w, (_, label) in zip(weights, near, strict=True) if label == c)
        share = sum(label == c for label in y) / len(y)
        out.append((votes + mean * share) / (sum(weights) + mean))
    return out


# Comparisons


def paired_delong(truth, first, second, minimum):
    """The difference of two macro AUCs and its variance, from each node's placement among the other side (DeLong 1988).

    One class: cov over its nodes / their number + cov over the others / their number, of the placements' differences;
    a node's influences on several classes add up before they are squared, each with its own n - 1.
    """
    n = len(truth)
    classes = [c for c in range(first.shape[1]) if min((truth == c).sum(), (truth != c).sum()) >= minimum]
    value, influence = 0.0, [0.0] * n
    for c in classes:
        mine = [i for i in range(n) if truth[i] == c]
        rest = [i for i in range(n) if truth[i] != c]
        for sign, p in ((1, first[:, c]), (-1, second[:, c])):
            area = auc(p, truth == c)
            value += sign * area / len(classes)
            for own, other, forward in ((mine, rest, True), (rest, mine, False)):
                for i in own:
                    wins = sum((p[i] > p[j]) + 0.5 * (p[i] == p[j]) for j in other) / len(other)
                    placed = wins if forward else 1 - wins
                    influence[i] += sign * (placed - area) / math.sqrt(len(own) * (len(own) - 1)) / len(classes)
    return value, sum(x * x for x in influence)


def resampled_interval(statistic, n, times=1000, seed=0):
    """The 95 % percentile interval of `statistic` (a function of row numbers) over rows drawn with replacement."""
    rng = np.random.default_rng(seed)
    values = sorted(statistic(rng.integers(0, n, n)) for _ in range(times))
    return values[int(0.025 * times)], values[int(0.975 * times) - 1]


def holm(p_values):
    """Each p-value times the number of hypotheses not yet rejected, never below an earlier one."""
    left, so_far, out = len(p_values), 0.0, {}
    for p, i in sorted((p, i) for i, p in enumerate(p_values)):
        so_far = max(so_far, min(1.0, left * p))
        out[i] = so_far
        left -= 1
    return [out[i] for i in range(len(p_values))]


def ndcg_of_lists(z, graph, held_out, seed):
    """NDCG@10 of each held-out list with a stranger in it, by sorting it."""
    from uge_core.split import ranking_task

    task = ranking_task(graph, held_out, seed=seed)
    out = []
    for u, candidates, relevant in zip(task.targets, task.candidates, task.relevant, strict=True):
        listed = [(dot(z, u, v), float(r)) for v, r in zip(candidates, relevant, strict=True) if v >= 0]
        if any(r for _, r in listed) and not all(r for _, r in listed):
            out.append(ndcg([r for _, r in sorted(listed, key=lambda x: -x[0])]))
    return out


# Differences between groups


def dyadic_variance(pairs):
    """(sum_u a_u^2 - sum_e r_e^2) / n^2 of the mean over (u, v, p), by a loop over pairs of pairs that share a node."""
    mean = sum(p for *_, p in pairs) / len(pairs)
    total = 0.0
    for u, v, p in pairs:
        for s, t, q in pairs:
            if {u, v} & {s, t}:
                total += (p - mean) * (q - mean)
    return total / len(pairs) ** 2


def cell_pairs(z, pairs, group, num_users=None):
    """{cell: [(u, v, p)]}; cells as in `dp_cells`."""
    found = {}
    for u, v in pairs:
        if group[u] < 0 or (num_users is None and group[v] < 0):
            continue
        a, b = int(group[u]), int(group[v])
        cell = a if num_users is not None else (min(a, b), max(a, b))
        found.setdefault(cell, []).append((u, v, sigmoid(dot(z, u, v))))
    return found


def weighted_sd(values, sizes):
    mean = sum(v * n for v, n in zip(values, sizes, strict=True)) / sum(sizes)
    return math.sqrt(sum(n * (v - mean) ** 2 for v, n in zip(values, sizes, strict=True)) / sum(sizes))


def ndkl(groups_in_order, top=10):
    """Of one list, the groups from first to last rank; below 0 is unknown."""
    known = [g for g in groups_in_order if g >= 0]
    if not known:
        return math.nan
    total = weight = 0.0
    for i in range(1, min(top, len(known)) + 1):
        first = known[:i]
        divergence = 0.0
        for g in set(first):
            share = first.count(g) / i
            divergence += share * math.log(share / (known.count(g) / len(known)))
        total += divergence / math.log2(i + 1)
        weight += 1 / math.log2(i + 1)
    return total / weight
