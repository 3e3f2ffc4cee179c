"""Slow, obviously right versions of every formula: loops over pairs, resorted lists, exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations, product
from statistics import NormalDist

import numpy as np


def sigmoid(score):
    return 1.0 / (1.0 + math.exp(-score)) if score >= 0 else math.exp(score) / (1.0 + math.exp(score))


def dot(z, u, v):
    return sum(float(a) * float(b) for a, b in zip(z[u], z[v], strict=True))


def cne_score(z, u, v, sigma=2.0):
    """log of the half-normal densities' ratio at the distance of u and v, spreads 1 and sigma."""
    squared = sum((float(a) - float(b)) ** 2 for a, b in zip(z[u], z[v], strict=True))
    return math.log(sigma / 1.0) - 0.5 * (1 / 1.0**2 - 1 / sigma**2) * squared


def _means(z, pairs, group, num_users, score):
    """{cell: (mean probability, pairs)} over `pairs`; a cell is an unordered pair of groups, or a user's group."""
    found = {}
    for u, v in pairs:
        if group[u] < 0 or (num_users is None and group[v] < 0):
            continue
        a, b = int(group[u]), int(group[v])
        cell = a if num_users is not None else (min(a, b), max(a, b))
        found.setdefault(cell, []).append(sigmoid(score(z, u, v)))
    return {cell: (sum(probs) / len(probs), len(probs)) for cell, probs in found.items()}


def dp_cells(z, num_nodes, group, num_users=None, score=dot):
    """Over all unordered pairs; bipartite: all user-item pairs."""
    if num_users is None:
        pairs = combinations(range(num_nodes), 2)
    else:
        pairs = ((u, i) for u in range(num_users) for i in range(num_users, num_nodes))
    return _means(z, pairs, group, num_users, score)


def eo_cells(z, edges, group, num_users=None, score=dot):
    return _means(z, list(zip(*edges.tolist(), strict=True)), group, num_users, score)


def sum_tile(rows, columns, row_group, column_start, column_value, first, last, triangular, num_values, poly=None):
    """What `kernels.pairs.sum_tile` returns, of all of the tile's pairs at once; `poly` is not needed."""
    local = row_group[first:last] - row_group[first]
    shape = (local[-1] + 1, len(column_start) - 1)
    total, squares = np.zeros(shape), np.zeros(shape)
    row_sum = np.zeros((last - first, num_values), dtype=np.float32)
    column_sum = np.zeros((shape[0], columns.shape[1]), dtype=np.float32)
    skip = first + 1 if triangular else 0
    if skip >= columns.shape[1]:
        return total, squares, row_sum, column_sum
    half = rows[:, first:last].T @ columns[:, skip:]
    half = 0.5 * np.tanh(0.5 * half)
    if triangular:
        half[np.tril_indices(last - first, -1, half.shape[1])] = 0.0
    g = int(np.searchsorted(column_start, skip, side="right")) - 1
    bounds = np.concatenate([[skip], column_start[g + 1 : -1]]) - skip
    by_group = np.add.reduceat(half, bounds, axis=1, dtype=np.float64)
    np.add.at(total[:, g:], local, by_group)
    np.add.at(squares[:, g:], local, np.add.reduceat(half**2, bounds, axis=1, dtype=np.float64))
    for value in column_value[:, g:]:
        np.add.at(row_sum.T, value[value >= 0], by_group.T[value >= 0].astype(np.float32))
    np.add.at(column_sum[:, skip:], local, half)
    return total, squares, row_sum, column_sum


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
    """The loss of `uge_core.training.edge_loss.loss` for one shared block per side, by loops.

    Weight, offset: functions of (u, v).

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
    from uge_core.graph.split import ranking_task

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


def random_ndkl(groups, top=10):
    """The mean of `ndkl` over all orders of a list."""
    orders = list(permutations(groups))
    return sum(ndkl(order, top) for order in orders) / len(orders)


# Priors


def maximum_entropy(pairs, sums_of, wanted, steps=100):
    """{pair: P} of the independent pairs of largest entropy whose expected sums are the wanted ones, by Newton over all pairs.

    sums_of: function pair -> the names of the sums it counts in; wanted: {name: sum}. A pair in a sum of 0 has P = 0.
    """
    free = [p for p in pairs if all(wanted[s] > 0 for s in sums_of(p))]
    names = sorted({s for p in free for s in sums_of(p)}, key=repr)
    design = np.array([[s in sums_of(p) for s in names] for p in free], float).reshape(len(free), len(names))
    goal = np.array([wanted[s] for s in names], float)
    theta = np.zeros(len(names))

    def objective(at):
        return goal @ at - np.logaddexp(0.0, design @ at).sum()

    for _ in range(steps if free else 0):
        p = 1.0 / (1.0 + np.exp(-design @ theta))
        slope = goal - design.T @ p
        if np.abs(slope).max() < 1e-9:
            break
        move = np.linalg.lstsq(design.T @ (design * (p * (1 - p))[:, None]), slope, rcond=1e-13)[0]
        move *= min(1.0, 3.0 / max(np.abs(move).max(), 1e-12))
        size = 1.0
        while objective(theta + size * move) < objective(theta) and size > 1e-8:
            size /= 2
        theta = theta + size * move
    p = 1.0 / (1.0 + np.exp(-design @ theta))
    return {**dict.fromkeys(pairs, 0.0), **dict(zip(free, p.tolist(), strict=True))}


# Walks


def step_chances(roads, node, before=None, *, p=1.0, q=1.0, group=None):
    """{next node: chance} of a walk at `node` that came from `before`.

    roads: {u: {v: weight}}; group: a group of neighbours is chosen first, each alike.
    """

    def pull(x):
        if before is None:
            return roads[node][x]
        alpha = 1 / p if x == before else (1.0 if x in roads[before] else 1 / q)
        return roads[node][x] * alpha

    blocks = {}
    for x in roads[node]:
        blocks.setdefault(None if group is None else int(group[x]), []).append(x)
    return {x: pull(x) / sum(map(pull, block)) / len(blocks) for block in blocks.values() for x in block}


def transitions_of(edges, num_nodes, own=None, directions=None):
    """{u: {v: weight}} of the ways edges can be gone."""
    roads = {u: {} for u in range(num_nodes)}
    for i, (u, v) in enumerate(edges.T.tolist()):
        way = 0 if directions is None else int(directions[i])
        w = 1.0 if own is None else float(own[i])
        if way >= 0:
            roads[u][v] = w
        if way <= 0:
            roads[v][u] = w
    return roads


def walk_pairs(walks, window, num_users=None):
    """All ordered pairs of different nodes at most `window` steps apart, across sides on a bipartite graph."""
    found = []
    for walk in walks.tolist():
        nodes = [x for x in walk if x >= 0]
        for i, j in product(range(len(nodes)), repeat=2):
            u, v = nodes[i], nodes[j]
            if 0 < abs(i - j) <= window and u != v and (num_users is None or (u < num_users) != (v < num_users)):
                found.append((u, v))
    return found


def crosswalk_boundary(roads, group, length):
    """0.001 + the mean share of other groups' nodes among the nodes of all walks of `length` steps, by their chances."""

    def others(start, node, left):
        if left == 0:
            return 0.0
        chances = step_chances(roads, node)
        return sum(c * ((group[x] != group[start]) + others(start, x, left - 1)) for x, c in chances.items())

    return [0.001 + (others(v, v, length) / length if roads[v] else 0.0) for v in sorted(roads)]


def crosswalk_chances(roads, node, group, near, alpha, power):
    """{next node: chance} by CrossWalk's weights."""
    blocks = {}
    for x in roads[node]:
        blocks.setdefault(int(group[x]), []).append(x)
    mine, others = int(group[node]) in blocks, len([g for g in blocks if g != group[node]])
    found = {}
    for g, block in blocks.items():
        within = 1 - alpha if others else 1.0
        mass = within if g == group[node] else (alpha if mine else 1.0) / others
        total = sum(roads[node][x] * near[x] ** power for x in block)
        found |= {x: mass * roads[node][x] * near[x] ** power / total for x in block}
    return found


def edge_factors(edges, roads, chances):
    """What each edge counts: the mean over the ways it can be gone of a step's chance against a plain walk's. chances: {u: {v: chance}}."""
    plain = {u: {v: w / sum(roads[u].values()) for v, w in row.items()} for u, row in roads.items()}

    def mean(ways):
        found = [chances[a][b] / plain[a][b] for a, b in ways if b in roads[a]]
        return sum(found) / len(found)

    return [mean([(u, v), (v, u)]) for u, v in edges.T.tolist()]


# Erasure and learned ratios


def least_erasure(z, attributes):
    """z - D (z - m) with the least D S_zz^1/2 that erases: D = S_za (S_zz^-1/2 S_za)^+ S_zz^-1/2, S by loops."""
    x = np.asarray(z, float)
    centre = x.mean(axis=0)
    cross = np.concatenate(
        [
            np.stack([sum(x[i] - centre for i, c in enumerate(codes) if c == g) / len(x) for g in sorted(set(codes))])
            for codes in attributes
        ]
    ).T
    spread = sum(np.outer(row - centre, row - centre) for row in x) / len(x)
    level, axes = np.linalg.eigh(spread)
    root = axes @ np.diag(level**-0.5) @ axes.T
    return np.stack([row - cross @ np.linalg.pinv(root @ cross, rcond=1e-9) @ root @ (row - centre) for row in x])


def least_cost_matching(x, y):
    """The partner of each x in the matching whose sum of squared distances is least, among all matchings."""
    ways = permutations(range(len(y)))
    return list(min(ways, key=lambda way: sum(float(np.square(x[i] - y[j]).sum()) for i, j in enumerate(way))))


def log_linear_slope(mean, seen, values, first, second, a, b):
    """Of sum over ordered cells of (mean - seen), those whose ends have value `a` of attribute `first`, `b` of `second`."""
    total = 0.0
    for i, j in product(range(len(values)), repeat=2):
        if values[i][first] == a and values[j][second] == b:
            total += mean[i][j] - seen[i][j]
    return total


def negative_binomial(seen, mean, size):
    """Log likelihood of counts around means."""
    return sum(
        math.lgamma(n + size)
        - math.lgamma(size)
        - math.lgamma(n + 1)
        + size * math.log(size / (size + m))
        + n * math.log(m / (size + m))
        for n, m in zip(seen, mean, strict=True)
    )


def discriminator_loss(x, soft, layers):
    """Mean cross-entropy of a perceptron over the entropy of the mean label. layers: [(weight, bias)].

    Rows of 0 in `soft` take no part.
    """
    losses, shares, n = [], [0.0] * len(soft[0]), 0
    for row, label in zip(x, soft, strict=True):
        if sum(label) == 0:
            continue
        h = [float(a) for a in row]
        for at, (weight, bias) in enumerate(layers):
            h = [bias[j] + sum(h[i] * weight[i][j] for i in range(len(h))) for j in range(len(bias))]
            if at + 1 < len(layers):
                h = [a if a > 0 else 0.2 * a for a in h]
        whole = math.log(sum(math.exp(a) for a in h))
        losses.append(sum(p * (whole - a) for p, a in zip(label, h, strict=True)))
        shares = [s + p for s, p in zip(shares, label, strict=True)]
        n += 1
    return (sum(losses) / n) / -sum(s / n * math.log(s / n) for s in shares if s > 0)


def filtered(z, filters):
    """Mean over filters of BN(lrelu(lrelu(z W1 + b1) W2 + b2)). filters: [(W1, b1, W2, b2, scale, shift)]."""
    found = []
    for w1, b1, w2, b2, scale, shift in filters:
        h = [[float(a) for a in row] for row in z]
        for w, b in ((w1, b1), (w2, b2)):
            h = [[b[j] + sum(row[i] * w[i][j] for i in range(len(row))) for j in range(len(b))] for row in h]
            h = [[a if a > 0 else 0.01 * a for a in row] for row in h]
        for j in range(len(scale)):
            column = [row[j] for row in h]
            mean = sum(column) / len(column)
            deviation = math.sqrt(sum((a - mean) ** 2 for a in column) / len(column) + 1e-5)
            for row in h:
                row[j] = (row[j] - mean) / deviation * scale[j] + shift[j]
        found.append(h)
    return [[sum(f[u][j] for f in found) / len(found) for j in range(len(z[0]))] for u in range(len(z))]


def link_covariance(z, soft, num_users=None):
    """Of having the same value (bipartite: of each of the user's values) with the score, over pairs of labelled nodes (users x items)."""
    labelled = [u for u in range(len(z)) if sum(soft[u]) > 0]

    def covariance(pairs, label):
        n = len(pairs)
        s, y = [label(u, v) for u, v in pairs], [dot(z, u, v) for u, v in pairs]
        return sum(a * b for a, b in zip(s, y, strict=True)) / n - sum(s) / n * sum(y) / n

    if num_users is None:
        return abs(covariance(list(product(labelled, labelled)), lambda u, v: dot(soft, u, v)))
    across = list(product(labelled, range(num_users, len(z))))
    return sum(abs(covariance(across, lambda u, _, c=c: float(soft[u][c]))) for c in range(len(soft[0])))


def skip_gram(z, met, edges, weight, offset, blocks, num_users=None):
    """1/2 the mean over pairs met on walks of w softplus(-s) + 1/2 E[softplus(s)] over sources as often as they were met.

    met: ordered pairs; blocks: nodes per side, of which a source's strangers are those it has no edge to.
    """
    n = len(z)
    known = {(u, v) for u, v in edges.T.tolist()} | {(v, u) for u, v in edges.T.tolist()}

    def score(u, v):
        return float(np.dot(z[u], z[v])) + offset(u, v)

    positive = sum(weight(u, v) * softplus(-score(u, v)) for u, v in met) / len(met)
    negative = 0.0
    for u in range(n):
        nodes = blocks[0] if num_users is None or u < num_users else blocks[1]
        strangers = [v for v in nodes if (u, v) not in known and v != u]
        often = sum(a == u for a, _ in met)
        if strangers and often:
            negative += often / len(met) * sum(softplus(score(u, v)) for v in strangers) / len(strangers)
    return 0.5 * positive + 0.5 * negative


def second_order(z, context, edges, weight, offset, blocks, num_users=None, own=None):
    """LINE's second order: each edge both ways as node and context; strangers both ways too.

    blocks: nodes per side of nodes' strangers (contexts), then of contexts' strangers (nodes).
    """
    n = len(z)
    known = {(u, v) for u, v in edges.T.tolist()} | {(v, u) for u, v in edges.T.tolist()}
    own = np.ones(edges.shape[1]) if own is None else own

    def score(u, v):
        return float(np.dot(z[u], context[v])) + offset(u, v)

    positive, degree = 0.0, [0.0] * n
    for (u, v), w in zip(edges.T.tolist(), own, strict=True):
        positive += w * weight(u, v) * (softplus(-score(u, v)) + softplus(-score(v, u)))
        degree[u] += w
        degree[v] += w
    positive /= 2 * edges.shape[1]
    negative, sides = 0.0, 1 if num_users is None else 2
    for way, u in product((0, 1), range(n)):
        side = 0 if num_users is None or u < num_users else 1
        strangers = [v for v in blocks[sides * way + side] if (u, v) not in known]
        if strangers:
            scores = [score(u, v) if way == 0 else score(v, u) for v in strangers]
            negative += degree[u] / sum(degree) / 2 * sum(map(softplus, scores)) / len(strangers)
    return 0.5 * positive + 0.5 * negative


def shrunk_weights(num_nodes, edges, full, rest, shrinkage, num_users=None):
    """R~/R of each edge with pseudo-edges: (expected + s) / (seen + s), edges counted once, pairs of groups unordered."""
    nodes = [
        (i, j)
        for i, j in product(range(num_nodes), repeat=2)
        if num_users is None or (i < num_users) != (j < num_users)
    ]
    ends = [tuple(e) for e in edges.T.tolist()]

    def among(label, pairs, cell):
        return sum(sorted((label[i], label[j])) == cell for i, j in pairs)

    out = []
    for u, v in ends:
        cell, coarse = sorted((full[u], full[v])), sorted((rest[u], rest[v]))
        share = Fraction(among(full, nodes, cell), among(rest, nodes, coarse))
        expected = among(rest, ends, coarse) * share
        out.append((expected + shrinkage) / (among(full, ends, cell) + shrinkage))
    return out


def balanced(weights, own=None):
    """Weights over their mean, each counted `own` times."""
    own = [1] * len(weights) if own is None else own
    mean = sum(w * n for w, n in zip(weights, own, strict=True)) / Fraction(sum(own))
    return [w / mean for w in weights]


# Attribute-matched NDCG


def ndcg_among(z, target, friend, strangers):
    """NDCG@10 of one friend among strangers, its rank counted one by one; no score may tie."""
    rank = 1 + sum(dot(z, target, w) > dot(z, target, friend) for w in strangers)
    return 1.0 / math.log2(rank + 1) if rank <= 10 else 0.0


def chance_among(num_strangers):
    """The mean of NDCG@10 over all ranks that one friend can have."""
    gains = [1.0 / math.log2(rank + 1) if rank <= 10 else 0.0 for rank in range(1, num_strangers + 2)]
    return sum(gains) / len(gains)


def strangers_like(graph, target, friend, cell):
    """The nodes of the friend's cell that are neither the target nor tied to it by any edge."""
    tied = {frozenset(e) for e in graph.edges.T.tolist()}
    return {
        w
        for w in range(graph.num_nodes)
        if cell[w] == cell[friend] and w != target and frozenset((w, target)) not in tied
    }


def matched_links(graph, held_out, cell):
    """(target, friend) of the links that are ranked: in both directions, on a bipartite graph from the item's."""
    both = held_out.T.tolist()
    found = [(v, u) for u, v in both] + ([] if graph.bipartite else [(u, v) for u, v in both])
    return sorted((u, v) for u, v in found if cell[v] >= 0 and strangers_like(graph, u, v, cell))


# Calibrated probabilities and the first ten recommendations


def calibrated_line(score, linked):
    """Slope and intercept of scikit-learn's logistic regression without a penalty."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    model.fit(np.asarray(score)[:, None], linked)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def ten_best(z, ranker, candidates, left_out):
    """The candidates with the highest scores, by sorting all; no score may tie."""
    allowed = [v for v in candidates if v != ranker and v not in left_out]
    return sorted(allowed, key=lambda v: -dot(z, ranker, v))[:10]


def slots(lists, group, num_users=None):
    """(list's group, person's group, ranker, person) of every place between known groups; items are group 0."""
    out = []
    for ranker, shown in lists.items():
        for person in shown:
            own = 0 if num_users is not None else group[ranker]
            if own >= 0 and group[person] >= 0:
                out.append((int(own), int(group[person]), int(ranker), int(person)))
    return out


def slot_share(places, g, h):
    mine = [p for p in places if p[0] == g]
    return sum(p[1] == h for p in mine) / len(mine)


def slot_variance(places, group, g, h):
    """Of S_gh and of S_gh - P_h: influences of all people, squared, and pairs of slots of the same two people once."""
    mine, share = [p for p in places if p[0] == g], slot_share(places, g, h)
    people = [v for v in range(len(group)) if group[v] >= 0]
    part = sum(group[v] == h for v in people) / len(people)
    gets, given, pairs = {}, {}, {}
    for _, of, ranker, person in mine:
        r = ((of == h) - share) / len(mine)
        gets[ranker] = gets.get(ranker, 0.0) + r
        given[person] = given.get(person, 0.0) + r
        both = frozenset((ranker, person))
        pairs[both] = pairs.get(both, 0.0) + r
    everyone = set(gets) | set(given) | set(people)
    less = {v: ((group[v] == h) - part) / len(people) if group[v] >= 0 else 0.0 for v in everyone}
    once = sum(r**2 for r in pairs.values())
    whole = {v: gets.get(v, 0.0) + given.get(v, 0.0) for v in everyone}
    return (sum(x**2 for x in whole.values()) - once, sum((x - less[v]) ** 2 for v, x in whole.items()) - once)


def similarities(a, b):
    """Cosine, dot product and negative squared distance; the cosine with a vector of length 0 is 0."""
    inner, square = dot([a, b], 0, 1), dot([a], 0, 0) * dot([b], 0, 0)
    return (
        inner / math.sqrt(square) if square else 0.0,
        inner,
        -sum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True)),
    )


def predicted_links(asked, labelled, group, num_groups, s):
    """By group the descending similarities number `s` with its members, and the groups of all from the best on.

    Of equal ones the first.
    """
    value = [similarities(asked, b)[s] for b in labelled]
    order = sorted(range(len(labelled)), key=lambda j: (-value[j], j))
    by_group = [[value[j] for j in order if group[j] == g] for g in range(num_groups)]
    return by_group, [int(group[j]) for j in order]


def normal_score(value, known):
    """Where a number stands among others, on the scale of a normal distribution."""
    below, level = sum(k < value for k in known), sum(k == value for k in known)
    return NormalDist().inv_cdf((below + level / 2 + 0.5) / (len(known) + 1))


def link_features(asked, labelled, asked_rank, labelled_rank, group, num_groups, share):
    """{value: 61 numbers} of a person, from the labelled people who take part; `share` of each group among all.

    Vectors as they are, and as whitened ranks.
    """
    own = [[] for _ in range(num_groups)]
    found = [predicted_links(asked, labelled, group, num_groups, s) for s in (0, 1, 2)]
    found += [predicted_links(asked_rank, labelled_rank, group, num_groups, s) for s in (0, 2)]
    for k, (by_group, _) in product((1, 3, 10), found):
        means = [sum(v[:k]) / len(v[:k]) if v else math.inf for v in by_group]
        for g in range(num_groups):
            own[g].append(means[g] if by_group[g] else min(means))
    for k, (_, best) in product((10, 25, 100), found):
        for g in range(num_groups):
            own[g].append(best[:k].count(g) / len(best[:k]))
    for g in range(num_groups):
        others = [max(own[h][i] for h in range(num_groups) if h != g) for i in range(30)]
        own[g] = [*own[g], *(a - b for a, b in zip(own[g], others, strict=True)), math.log(share[g])]
    return own


def soft_neighbour_divergence(z, asked, known, codes, temperature, spread=False):
    """Mean over asked people of KL(shares of the groups | soft neighbours' groups), one pair after another."""
    if spread:
        rows = [z[j] for j in known]
        centre = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        covariance = np.cov(np.array(rows).T, bias=True).reshape(len(centre), -1)
        root = np.linalg.inv(np.linalg.cholesky(covariance))  # axes up to a rotation, which no cosine sees
        z = [root @ (np.array(row) - centre) for row in z]
    total = 0.0
    for i in asked:
        soft = {}
        for j in known:
            if j != i:
                length = math.sqrt(sum(a * a for a in z[i]) * sum(b * b for b in z[j]))
                cosine = sum(a * b for a, b in zip(z[i], z[j], strict=True)) / length
                soft[codes[j]] = soft.get(codes[j], 0.0) + math.exp(cosine / temperature)
        for g in {codes[j] for j in known}:
            prior = sum(codes[j] == g for j in known) / len(known)
            total += prior * math.log(prior * sum(soft.values()) / soft[g])
    return total / len(asked)


def fair_projection(scores, blocks):
    """KL(h_F || h) of the closest f whose mean is the same in all blocks, and f, by bisection of means within means."""
    scores_of = {b: [s for s, of in zip(scores, blocks, strict=True) if of == b] for b in set(blocks)}

    def root(rising, low, high):
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if rising(middle) < 0 else (low, middle)
        return (low + high) / 2

    def shift(own, mean):
        return root(lambda x: sum(sigmoid(s + x) for s in own) / len(own) - mean, -40.0, 40.0)

    # the divergence's slope in the common mean
    mean = root(lambda m: sum(len(own) * shift(own, m) for own in scores_of.values()), 0.0, 1.0)
    shifts = {b: shift(own, mean) for b, own in scores_of.items()}
    total, fair = 0.0, []
    for s, b in zip(scores, blocks, strict=True):
        f, rest = sigmoid(s + shifts[b]), sigmoid(-s - shifts[b])
        total += f * math.log(f / sigmoid(s)) + rest * math.log(rest / sigmoid(-s))
        fair.append(f)
    return total / len(scores), fair
