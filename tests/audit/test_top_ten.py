"""The first ten recommendations: by hand, against double loops and sorting, and how often their intervals cover."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm
from strategies import graphs

from uge_core.audit import top_ten
from uge_core.audit.top_ten import Lists, Shares
from uge_core.graph.graph import AttributedGraph, simple_edges

ONE_LINK = np.array([[0], [1]], np.int64)


def eight():
    """Eight people, 0 to 3 of group 0, the others of group 1; 0 and 1 know each other."""
    return AttributedGraph("eight", 8, ONE_LINK), np.repeat([0, 1], 4)


def test_shares_by_hand():
    # All who can be are in each list. Of 0's: 2, 3 and the four others, two of six of its own group; of 1's likewise;
    # of 2's and 3's three of seven: S_00 = (2 + 2 + 3 + 3) / (6 + 6 + 7 + 7) = 10/26. Of group 1's, 12 of 28.
    graph, group = eight()
    lists = top_ten.recommend(np.ones((8, 1), np.float32), graph, ONE_LINK)
    assert sorted(lists.shown[0].tolist()) == [-1, -1, -1, -1, 2, 3, 4, 5, 6, 7]
    found = top_ten.shares(lists, graph, group, 2)
    assert found.slots.tolist() == [26, 28] and found.people.tolist() == [0.5, 0.5]
    assert found.share == pytest.approx(np.array([[10 / 26, 16 / 26], [16 / 28, 12 / 28]]))
    largest = top_ten.largest(found, np.full((2, 2), 26.0), np.ones((2, 2), bool))
    assert largest.value == pytest.approx(16 / 26 - 0.5) and largest.cell == (0, 1)


def test_shares_of_items_lists_by_hand():
    # Users 0 to 3, of groups 0 0 1 and unknown; items 4 and 5. 4 knows user 0, so its list is 1, 2, 3; 5's is all four.
    graph = AttributedGraph("shop", 6, np.array([[0], [4]], np.int64), num_users=4)
    lists = top_ten.recommend(np.ones((6, 1), np.float32), graph, graph.edges)
    assert lists.ranker.tolist() == [4, 5] and lists.of == 2
    assert [sorted(line[line >= 0].tolist()) for line in lists.shown] == [[1, 2, 3], [0, 1, 2, 3]]
    found = top_ten.shares(lists, graph, np.array([0, 0, 1, -1, -2, -2]), 2)
    assert found.slots.tolist() == [5] and found.share == pytest.approx(np.array([[3 / 5, 2 / 5]]))
    assert found.people == pytest.approx([2 / 3, 1 / 3])


def test_found_links_by_hand():
    # 0 is shown 2 and 3, 1 and 2 are shown 0, 3 has no list. Link 0-1 is in one of two lists, 0-2 in both, 0-3 in the
    # only one, 1-3 in none of one.
    graph = AttributedGraph("four", 4, ONE_LINK)
    shown = np.full((3, 10), -1)
    shown[0, :2], shown[1, 0], shown[2, 0] = [2, 3], 0, 0
    lists = Lists(np.arange(3), shown, 4)
    value, pairs, number = top_ten.found_links(lists, graph, np.array([[0, 0, 0, 1], [1, 2, 3, 3]]))
    assert value.tolist() == [0.5, 1.0, 1.0, 0.0] and number.tolist() == [2, 2, 1, 1]
    assert pairs.tolist() == [[0, 0, 0, 1], [1, 2, 3, 3]]
    two = Lists(np.arange(2), shown[:2], 4)
    assert top_ten.found_links(two, graph, np.array([[2], [3]]))[1].shape == (2, 0)
    shop = AttributedGraph("shop", 4, np.array([[0], [2]], np.int64), num_users=2)
    shown = np.full((2, 10), -1)
    shown[0, 0] = 1
    value, _, number = top_ten.found_links(Lists(np.array([2, 3]), shown, 2), shop, np.array([[0, 1, 1], [2, 2, 3]]))
    assert value.tolist() == [0.0, 1.0, 0.0] and number.tolist() == [1, 1, 1]


@given(graphs(max_nodes=40, unknown=True), st.integers(0, 999), st.integers(1, 6))
def test_lists_and_shares_equal_sorting_and_double_loops(graph, seed, dim):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(graph.num_nodes, dim)).astype(np.float32)
    train = graph.edges[:, rng.random(graph.num_edges) < 0.7]
    lists = top_ten.recommend(z, graph, train, seed=seed)
    known = {}
    for u, v in train.T.tolist():
        known.setdefault(u, set()).add(v)
        known.setdefault(v, set()).add(u)
    people = range(graph.num_users or graph.num_nodes)
    slow = {u: reference.ten_best(z, u, people, known.get(u, set())) for u in lists.ranker.tolist()}
    assert {u: line[line >= 0].tolist() for u, line in zip(lists.ranker.tolist(), lists.shown, strict=True)} == slow
    assert list(slow) == list(range(graph.num_users or 0, graph.num_nodes))

    codes = graph.attributes[0].codes
    places = reference.slots(slow, codes, graph.num_users)
    found = top_ten.shares(lists, graph, codes, 3)
    sizes = np.bincount(codes[codes >= 0], minlength=3)
    assert found.people == pytest.approx(sizes / max(sizes.sum(), 1))
    for g, h in np.ndindex(found.share.shape):
        assert found.slots[g] == sum(p[0] == g for p in places)
        if found.slots[g]:
            assert found.share[g, h] == pytest.approx(reference.slot_share(places, g, h))
        else:
            assert np.isnan(found.share[g, h])
    links = graph.edges[:, ~np.isin(graph.edges.T @ [100, 1], train.T @ [100, 1])]
    value, pairs, number = top_ten.found_links(lists, graph, links)
    for x, (u, v), lists_of in zip(value, pairs.T.tolist(), number, strict=True):
        ways = [(v, u)] if graph.bipartite else [(u, v), (v, u)]
        assert lists_of == len(ways) and x == np.mean([b in slow[a] for a, b in ways])
    assert pairs.shape == links.shape


@given(st.integers(0, 9999), st.booleans())
def test_variance_equals_double_loops_over_people(seed, bipartite):
    rng = np.random.default_rng(seed)
    n, users = 90, 60 if bipartite else None
    graph = AttributedGraph("g", n, np.array([[0], [n - 1]], np.int64), num_users=users)
    codes = rng.integers(-1, 2, n)
    codes[users or n :] = -2
    z = rng.normal(size=(n, 3)) + 0.4 * codes[:, None]
    lists = top_ten.recommend(z.astype(np.float32), graph, graph.edges, most=25, seed=seed)
    slow = {u: line.tolist() for u, line in zip(lists.ranker.tolist(), lists.shown, strict=True)}
    places = reference.slots(slow, codes, users)
    found = top_ten.shares(lists, graph, codes, 2)
    of_share, of_difference = top_ten.independent_slots(lists, graph, codes, found)
    for g, h in np.ndindex(found.share.shape):
        slots = found.slots[g]
        share = (found.share[g, h] * slots + 0.5) / (slots + 1)
        mine = [p for p in places if p[0] == g]
        times = {v: sum(p[3] == v for p in mine) for v in range(n)}
        effective = [
            sum(t for v, t in times.items() if (codes[v] == h) == inside) ** 2
            / max(sum(t**2 for v, t in times.items() if (codes[v] == h) == inside), 1)
            for inside in (True, False)
        ]
        popular = sum(t**2 for t in times.values()) / slots**2
        people = (codes >= 0).sum()
        of_s, of_d = reference.slot_variance(places, codes, g, h)
        assert of_d - of_s == pytest.approx(found.variance_by_people[g, h], abs=1e-12)
        for m, variance, chance in zip(
            (of_share[g, h], of_difference[g, h]), (of_s, min(of_s, of_d)), (popular, popular - 1 / people), strict=True
        ):
            chance = chance if min(effective) < 10 - 1e-9 else 0.0
            assert 1 / m == pytest.approx(max(variance / (share * (1 - share)), chance, 1 / slots), rel=1e-9)


def test_bounds_are_clopper_and_pearsons():
    for hits, m in ((0, 12), (3, 12), (12, 12), (40, 300)):
        low, high = top_ten.bounds(np.array([hits / m]), np.array([float(m)]))
        expected = binomtest(hits, m).proportion_ci(0.95, method="exact")
        assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_largest_by_hand():
    # Two lists' groups, P = .5: 30 of 40 and 18 of 40 slots. Four cells, so that bounds are of level 1 - .05 / 4.
    found = Shares(np.array([[0.75, 0.25], [0.45, 0.55]]), np.array([0.5, 0.5]), np.array([40, 40]), 10**9)
    largest = top_ten.largest(found, np.full((2, 2), 40.0), np.ones((2, 2), bool))
    one, wide = binomtest(30, 40).proportion_ci(0.95), binomtest(30, 40).proportion_ci(1 - 0.05 / 4)
    assert largest.value == 0.25 and largest.cell == (0, 0)
    assert (largest.low, largest.high) == pytest.approx((wide.low - 0.5, one.high - 0.5), abs=1e-9)
    assert largest.p_value == pytest.approx(4 * 2 * binom.sf(29, 40, 0.5), rel=1e-9)
    # P of eight people moves too
    few = top_ten.largest(
        Shares(found.share, found.people, found.slots, 8), np.full((2, 2), 40.0), np.ones((2, 2), bool)
    )
    moves = (0.25 - 2 * 0.1875) / 8
    assert moves < 0 and (few.low, few.high) == (largest.low, largest.high)
    sure = Shares(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]), np.array([40]), 8)
    sure_of = top_ten.largest(sure, np.full((1, 2), 40.0), np.array([[True, False]]))
    end = binomtest(40, 40).proportion_ci(0.95).low
    assert sure_of.low == pytest.approx(0.5 - np.sqrt((1 - end) ** 2 + norm.isf(0.025) ** 2 * 0.25 / 8), abs=1e-9)
    alone = top_ten.largest(found, np.full((2, 2), 40.0), np.array([[False, False], [False, True]]))
    assert alone.value == pytest.approx(0.05) and alone.low == 0 and alone.p_value > 0.5 and alone.cell == (1, 1)


@pytest.mark.processors
def test_lists_do_not_depend_on_threads_and_are_drawn_by_the_seed():
    rng = np.random.default_rng(0)
    edges, _, _ = simple_edges(*rng.integers(0, 900, (2, 4000)), 900)
    graph = AttributedGraph("g", 900, edges)
    z = rng.integers(-1, 2, (900, 3)).astype(np.float32)  # hundreds tie for each place
    lists = top_ten.recommend(z, graph, edges, threads=1)
    assert np.array_equal(lists.shown, top_ten.recommend(z, graph, edges, threads=3).shown)
    assert (lists.shown != top_ten.recommend(z, graph, edges, seed=1).shown).mean() > 0.5
    some = top_ten.recommend(z, graph, edges, most=100)
    assert len(some.ranker) == 100 and some.of == 900
    assert np.array_equal(some.shown, lists.shown[some.ranker])
    assert not np.array_equal(some.ranker, top_ten.recommend(z, graph, edges, most=100, seed=1).ranker)


@pytest.mark.parametrize("users", [None, 70])
def test_a_random_order_shows_everyone_alike_but_those_who_are_known(users):
    rng = np.random.default_rng(0)
    n, first = 130, users or 0
    edges, _, _ = simple_edges(rng.integers(0, users or n, 900), rng.integers(first, n, 900), n)
    graph = AttributedGraph("g", n, edges, num_users=users)
    lists = top_ten.recommend(np.ones((n, 1), np.float32), graph, edges)
    orders = top_ten.in_random_order(graph, edges, lists, seed=0)
    again = top_ten.in_random_order(graph, edges, lists, seed=0)
    assert len(orders) == top_ten.RANDOM_ORDERS and all(
        np.array_equal(a.shown, b.shown) for a, b in zip(orders, again, strict=True)
    )
    known = np.eye(n, dtype=bool)
    known[edges[0], edges[1]] = known[edges[1], edges[0]] = True
    times = np.zeros((n, n))
    for o in orders:
        row, person = o.slots()
        np.add.at(times, (o.ranker[row], person), 1)
    assert times[known].sum() == 0 and times[:, users or n :].sum() == 0
    can = ~known[first:, : users or n]
    chance = np.minimum(10 / can.sum(axis=1), 1.0)[:, None] * can
    counts = times[first:, : users or n]
    assert counts.sum(axis=1).tolist() == [200.0] * (n - first)
    spread = np.sqrt(np.maximum(20 * chance * (1 - chance), 1e-9))
    assert np.abs((counts - 20 * chance) / spread)[can].mean() == pytest.approx(0.8, abs=0.05)


def drawn(rng, n, shift, shares, popular):
    """Lists of people from a population: groups apart by `shift`, vectors of other lengths."""
    codes = rng.choice(len(shares), n, p=shares)
    z = rng.normal(size=(n, 4))
    z[:, 0] += shift * (codes - (len(shares) - 1) / 2)
    z *= np.exp(popular * rng.normal(size=(n, 1)))
    edges, _, _ = simple_edges(*rng.integers(0, n, (2, 3 * n)), n)
    graph = AttributedGraph("drawn", n, edges)
    lists = top_ten.recommend(z.astype(np.float32), graph, edges)
    found = top_ten.shares(lists, graph, codes, len(shares))
    return found, *top_ten.independent_slots(lists, graph, codes, found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shift", "shares", "popular"),
    [
        (0.0, (0.5, 0.3, 0.2), 0.6),
        (3.0, (0.6, 0.4), 0.0),
        (0.3, (0.5, 0.3, 0.2), 0.0),
        (1.0, (0.7, 0.3), 0.3),
        (0.0, (0.1,) * 10, 0.3),
    ],
)
def test_intervals_cover(shift, shares, popular):
    rng, trials = np.random.default_rng(1), 200
    found = [drawn(rng, 250, shift, shares, popular) for _ in range(trials)]
    true_share = np.mean([f.share for f, _, _ in found], axis=0)
    true = np.abs(np.mean([f.apart for f, _, _ in found], axis=0)).max() if shift else 0.0
    largest = [top_ten.largest(f, m, np.ones(m.shape, bool)) for f, _, m in found]
    assert np.mean([x.low <= true <= x.high for x in largest]) >= 0.93
    ends = [top_ten.bounds(f.share, m) for f, m, _ in found]
    covered = np.mean([(low <= true_share) & (true_share <= high) for low, high in ends], axis=0)
    assert covered.min() >= 0.9 and covered.mean() >= 0.94
    if not shift:
        assert np.mean([x.p_value < 0.05 for x in largest]) <= 0.07
    # no interval of everything
    assert np.mean([x.high - x.low for x in largest]) < 0.45
