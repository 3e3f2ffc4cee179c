"""The sampler of walks against exact chances, and what it keeps."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference import step_chances, transitions_of, walk_pairs
from scipy.stats import chi2
from toys import others_in_ci

from uge_core.errors import ConfigError
from uge_core.graph.graph import simple_edges
from uge_core.graph.walks import StepRule, Walker, WalkPlan

GROUP = np.array([0, 0, 0, 1, 1, 2, 2, 0, 1, 2])


def small(seed=0, n=10, m=26, weighted=False, directed=False):
    rng = np.random.default_rng(seed)
    edges, _, _ = simple_edges(rng.integers(0, n, m), rng.integers(0, n, m), n)
    weights = rng.uniform(0.2, 4, edges.shape[1]).astype(np.float32) if weighted else None
    directions = rng.choice([-1, 0, 0, 1], edges.shape[1]).astype(np.int8) if directed else None
    return edges, weights, directions


def walks_of(walker, epoch=1):
    return walker.walks(walker.transitions(), epoch)


def steps_of(walks, order):
    """Counts of (before, node, next), before None where `order` is 1."""
    found = Counter()
    for walk in walks.tolist():
        for i in range(order - 1, len(walk) - 1):
            if walk[i + 1] >= 0:
                found[walk[i - 1] if order == 2 else None, walk[i], walk[i + 1]] += 1
    return found


def goodness(counts, chances):
    """p-value of all counts against the chances of each step, by the contexts they were made in."""
    by_context = {}
    for (before, node, onto), k in counts.items():
        by_context.setdefault((before, node), Counter())[onto] += k
    statistic = freedom = 0
    for context, row in by_context.items():
        expected, n = chances(*context), sum(row.values())
        assert set(row) <= set(expected)
        if n * min(expected.values()) >= 5 and len(expected) > 1:
            statistic += sum((row[x] - n * c) ** 2 / (n * c) for x, c in expected.items())
            freedom += len(expected) - 1
    assert freedom >= 10
    return chi2.sf(statistic, freedom)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_chances_of_a_first_step(weighted, directed, grouped):
    edges, weights, directions = small(weighted=weighted, directed=directed)
    group = GROUP if grouped else None
    walker = Walker(edges, 10, WalkPlan(1, 1), 0, weights, directions, rule=StepRule(groups=group))
    roads, found = transitions_of(edges, 10, weights, directions), walker.chances()
    for i, (u, v) in enumerate(edges.T.tolist()):
        for way, (a, b) in enumerate(((u, v), (v, u))):
            exact = step_chances(roads, a, group=group).get(b, 0.0) if roads[a] else 0.0
            assert found[way, i] == pytest.approx(exact, rel=1e-6)
    # an edge that a method weighs away is no road, and its group's share goes to others
    factor = np.ones(edges.shape[1], np.float32)
    factor[0] = 0
    fewer = {u: {v: w for v, w in row.items() if {u, v} != set(edges[:, 0].tolist())} for u, row in roads.items()}
    found = walker.chances(factor)
    for i, (u, v) in enumerate(edges.T.tolist()):
        exact = step_chances(fewer, u, group=group).get(v, 0.0) if fewer[u] else 0.0
        assert found[0, i] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", others_in_ci((False, True), True))
@pytest.mark.parametrize("grouped", others_in_ci((False, True), True))
@pytest.mark.parametrize(("p", "q"), [(0.25, 4.0), *others_in_ci(((1.0, 1.0), (4.0, 0.5)))])
def test_steps_are_taken_as_often_as_the_formula_says(weighted, directed, grouped, p, q):
    edges, weights, directions = small(weighted=weighted, directed=directed)
    group = GROUP if grouped else None
    plan = WalkPlan(length=8, window=1, per_node=2000, p=p, q=q)
    walker = Walker(edges, 10, plan, 0, weights, directions, rule=StepRule(groups=group))
    roads, walks = transitions_of(edges, 10, weights, directions), walks_of(walker)
    second = steps_of(walks, 2)
    assert goodness(second, lambda t, v: step_chances(roads, v, t, p=p, q=q, group=group)) > 1e-3
    assert goodness(steps_of(walks[:, :2], 1), lambda _, v: step_chances(roads, v, group=group)) > 1e-3
    # and the test can tell: other settings than those drawn by are refused
    wrong = {"p": 2 * p, "q": q, "group": group}
    assert goodness(second, lambda t, v: step_chances(roads, v, t, **wrong)) < 1e-6
    if grouped:
        assert goodness(second, lambda t, v: step_chances(roads, v, t, p=p, q=q)) < 1e-6
    if weighted:
        even = transitions_of(edges, 10, None, directions)
        assert goodness(second, lambda t, v: step_chances(even, v, t, p=p, q=q, group=group)) < 1e-6


def test_a_fair_walk_gives_present_groups_equal_shares_and_a_plain_walk_does_not():
    edges, _, _ = small(1, m=40)
    roads = transitions_of(edges, 10)
    plan = WalkPlan(length=8, window=1, per_node=2000)

    def spread(rule):
        counts = Counter()
        for (_, v, x), k in steps_of(walks_of(Walker(edges, 10, plan, 0, rule=rule)), 1).items():
            counts[v, int(GROUP[x])] += k
        worst = 0.0
        for v in range(10):
            present = sorted({int(GROUP[x]) for x in roads[v]})
            share = np.array([counts[v, g] for g in present]) / sum(counts[v, g] for g in present)
            worst = max(worst, float(np.abs(share - 1 / len(present)).max()))
        return worst

    assert spread(StepRule(groups=GROUP)) < 0.03
    assert spread(StepRule()) > 0.15


def test_each_way_of_an_edge_has_its_own_weight_and_weight_0_is_no_road():
    edges, _, _ = small()
    rng = np.random.default_rng(3)
    ways = rng.uniform(0.1, 3, (2, edges.shape[1]))
    ways[0, ::3] = 0.0
    walker = Walker(edges, 10, WalkPlan(8, 1, 2000), 0, rule=StepRule(weights=ways))
    roads = {u: {} for u in range(10)}
    for i, (u, v) in enumerate(edges.T.tolist()):
        roads[u] |= {v: ways[0, i]} if ways[0, i] else {}
        roads[v][u] = ways[1, i]
    assert goodness(steps_of(walks_of(walker), 1), lambda _, v: step_chances(roads, v)) > 1e-3
    kept = np.ones(edges.shape[1], np.float32)
    kept[::2] = 0.0
    for rule in (StepRule(), StepRule(groups=GROUP)):
        plain = Walker(edges, 10, WalkPlan(8, 1, 2000, p=0.5), 0, rule=rule)
        walks = plain.walks(plain.transitions(kept), 1)
        left = transitions_of(edges[:, kept > 0], 10)
        chances = lambda t, v: step_chances(left, v, t, p=0.5, group=rule.groups)  # noqa: B023, E731
        assert goodness(steps_of(walks, 2), chances) > 1e-3
    with pytest.raises(ConfigError, match="no edge is left"):
        plain.walks(plain.transitions(0 * kept), 1)


@pytest.mark.parametrize("heavy", [1.0, 1e12])
def test_light_edges_keep_their_chances_beside_heavy_ones(heavy):
    edges = np.array([[0, 2, 2, 2], [1, 3, 4, 5]])
    weights = np.array([heavy, 1e-6, 2e-6, 3e-6])
    walks = walks_of(Walker(edges, 6, WalkPlan(1, 1, 1000, starts="nodes"), 0, weights))
    onto = np.bincount(walks[walks[:, 0] == 2, 1], minlength=6)
    assert onto.sum() == 1000
    np.testing.assert_allclose(onto[3:] / 1000, [1 / 6, 2 / 6, 3 / 6], atol=0.06)


def test_walks_begin_in_proportion_to_degree_or_at_each_node_alike():
    edges, weights, _ = small(weighted=True)
    strength = np.bincount(edges.reshape(-1), np.tile(weights, 2), 10)
    for starts, share in (("degree", strength / strength.sum()), ("nodes", (strength > 0) / (strength > 0).sum())):
        walks = walks_of(Walker(edges, 10, WalkPlan(3, 1, 100, starts=starts), 0, weights))
        assert len(walks) == 1000
        np.testing.assert_allclose(np.bincount(walks[:, 0], minlength=10), 1000 * share, atol=1.01)


def test_one_step_takes_every_edge_alike():
    """Walk length 1 and window 1 are the edges of node2vec here, an edge of weight 2 counting as two."""
    edges, weights, _ = small(weighted=True)
    for own in (None, weights):
        walker = Walker(edges, 10, WalkPlan(1, 1, 20_000), 0, own)
        start, context = walker.pairs(walks_of(walker))
        taken = Counter(zip(np.repeat(np.arange(10), np.diff(start)).tolist(), context.tolist(), strict=True))
        total = np.ones(edges.shape[1]) if own is None else own
        for i, (u, v) in enumerate(edges.T.tolist()):
            share = float(total[i] / total.sum())
            assert taken[u, v] == taken[v, u]
            assert taken[u, v] / 200_000 == pytest.approx(share, abs=4 * np.sqrt(share / 200_000))


@pytest.mark.parametrize("num_users", [None, 4])
@pytest.mark.parametrize("window", [1, 2, 5, 20])
def test_pairs_are_those_within_the_window(num_users, window):
    rng = np.random.default_rng(0)
    if num_users is None:
        edges, _, _ = small()
        directions = np.ones(edges.shape[1], np.int8)
    else:
        edges, _, _ = simple_edges(rng.integers(0, 4, 20), rng.integers(4, 10, 20), 10)
        directions = None
    walker = Walker(edges, 10, WalkPlan(6, window, 3), 0, None, directions, num_users)
    walks = walks_of(walker)
    if directions is not None:
        assert (walks < 0).any(), "some walks end early"
    start, context = walker.pairs(walks)
    found = Counter(zip(np.repeat(np.arange(10), np.diff(start)).tolist(), context.tolist(), strict=True))
    assert found == Counter(walk_pairs(walks, window, num_users))
    assert len(context) == start[-1] and start[0] == 0


def test_walks_do_not_depend_on_threads_and_differ_by_epoch_and_seed():
    edges, weights, _ = small(m=60, n=30, weighted=True)
    plan = WalkPlan(10, 5, 40, p=0.5, q=2.0)

    def draw(threads, seed=0, epoch=1):
        walker = Walker(edges, 30, plan, seed, weights, pool=ThreadPoolExecutor(threads))
        walks = walks_of(walker, epoch)
        return walks, *walker.pairs(walks)

    for a, b in zip(draw(1), draw(7), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (draw(1)[0] != draw(1, epoch=2)[0]).mean() > 0.5
    assert (draw(1)[0] != draw(1, seed=1)[0]).mean() > 0.5


def test_memory_is_linear_in_edges_and_not_in_their_products():
    """A star's second-order tables would hold a number per pair of edges: 4e8 of them here."""
    n = 20_000
    edges = np.stack([np.zeros(n - 1, np.int64), np.arange(1, n)])
    walker = Walker(edges, n, WalkPlan(10, 2, 1, p=0.5, q=2.0), 0, np.ones(n - 1, np.float32))
    tracemalloc.start()
    walks = walks_of(walker)
    walker.pairs(walks)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 600 * n
    assert {0} == set(np.unique(walks[walks[:, 0] > 0][:, 1]).tolist())
