"""Intervals of cells and gaps: against loops over pairs, and how often they cover."""

import math
from itertools import combinations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import attribute, graphs
from toys import PEOPLE, links, people

from uge_core.audit import audit_embedding, ndcg, parity
from uge_core.audit.dyadic import MOST_CELLS, Contribution, cell_noise, compare_norm, compare_range
from uge_core.audit.pair_sample import sample_pairs
from uge_core.audit.parity import dp_cells, eo_cells, listed_cells
from uge_core.graph.graph import AttributedGraph, simple_edges
from uge_core.graph.split import ranking_task, split_links


def variances(table):
    """(sum_u a_u^2 - sum_e r_e^2) / n^2 of every cell, as the sides give it."""
    total = np.zeros(len(table.n))
    for side in table.sides:
        total[side.cells] += np.diagonal(side.gram)
    return total - table.own


def close(table, cells):
    for i, n in enumerate(table.n):
        cell = int(table.a[i]) if table.b is None else (int(table.a[i]), int(table.b[i]))
        assert n == len(cells.get(cell, []))
        if n:
            assert variances(table)[i] == pytest.approx(reference.dyadic_variance(cells[cell]), abs=3e-6)


@given(graphs(unknown=True, max_nodes=9), st.integers(0, 99), st.booleans())
def test_variances_equal_loops_over_pairs_that_share_a_node(graph, seed, ties):
    z = np.random.default_rng(seed).normal(size=(graph.num_nodes, 3)).astype(np.float32) * 2
    if ties:
        z = np.round(z)
    groups = {a.name: a.codes for a in graph.attributes}
    dp = dp_cells(z, graph, groups)
    eo = eo_cells(z, graph, groups, graph.edges)
    users = graph.num_users
    pairs = list(combinations(range(graph.num_nodes), 2))
    if users:
        pairs = [(u, v) for u, v in pairs if u < users <= v]
    for name, codes in groups.items():
        close(dp[name], reference.cell_pairs(z, pairs, codes, users))
        close(eo[name], reference.cell_pairs(z, graph.edges.T.tolist(), codes, users))


def test_covariances_between_cells_are_of_the_people_they_share():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 12)
    graph = AttributedGraph("g", 12, np.array([[0], [1]], np.int64))
    z = rng.normal(size=(12, 3)).astype(np.float32)
    table = dp_cells(z, graph, {"x": codes})["x"]
    cells = reference.cell_pairs(z, combinations(range(12), 2), codes)
    influence = np.zeros((12, len(table.n)))
    for i, cell in enumerate(zip(table.a.tolist(), table.b.tolist(), strict=True)):
        mean = sum(p for *_, p in cells[cell]) / len(cells[cell])
        for u, v, p in cells[cell]:
            influence[[u, v], i] += (p - mean) / len(cells[cell])
    found = np.zeros((len(table.n), len(table.n)))
    for side in table.sides:
        found[np.ix_(side.cells, side.cells)] += side.gram
    assert found == pytest.approx(influence.T @ influence, abs=1e-6)


def test_same_variances_whatever_the_number_of_threads(monkeypatch):
    rng = np.random.default_rng(1)
    graph = AttributedGraph("g", 900, np.array([[0], [1]], np.int64))
    z = rng.normal(size=(900, 5)).astype(np.float32)
    groups = {"x": rng.integers(-1, 30, 900), "y": rng.integers(0, 2, 900)}
    one, many = dp_cells(z, graph, groups, threads=1), dp_cells(z, graph, groups, threads=4)
    monkeypatch.setattr(parity, "sum_tile", reference.sum_tile)
    plain = dp_cells(z, graph, groups)
    for name in groups:
        assert np.array_equal(variances(one[name]), variances(many[name]))
        assert variances(one[name]) == pytest.approx(variances(plain[name]), rel=2e-3, abs=1e-9)


def test_independent_units_have_the_t_interval():
    # one cell of 25 units: variance s^2 / n and n - 1 degrees of freedom, as in a textbook
    x = np.random.default_rng(2).normal(size=25)
    gram = ((x - x.mean()) ** 2).sum() / 25**2
    two = tuple(Contribution(np.array([c]), np.array([[gram]]), np.array([25.0])) for c in (0, 1))
    # a second side doubles the number of sides, so that nothing is taken for pairs within a group
    noise = cell_noise(
        (*two, *(Contribution(s.cells, 0 * s.gram, s.people) for s in two)), np.zeros(2), np.full(2, 25), np.arange(2)
    )
    assert noise.variance == pytest.approx(x.var(ddof=1) / 25)
    assert noise.df == pytest.approx(24) and noise.half_width()[0] == pytest.approx(
        2.0639 * x.std(ddof=1) / 5, rel=1e-4
    )


def test_one_person_says_nothing_of_other_people():
    # 20 people in group 0 who differ, one in group 1: the cell between them borrows the spread of the others.
    rng = np.random.default_rng(3)
    codes = np.array([0] * 20 + [1])
    graph = AttributedGraph("g", 21, np.array([[0], [1]], np.int64))
    z = (rng.normal(size=(21, 2)) + 1).astype(np.float32)
    table = dp_cells(z, graph, {"x": codes})["x"]
    kept = np.array([0, 1])
    noise = cell_noise(table.sides, table.own, table.n, kept)
    alone = next(s for s in table.sides if 1 in s.cells and len(s.cells) == 1)
    assert alone.gram[0, 0] == pytest.approx(0.0, abs=1e-10)
    assert noise.borrowed == 1 and noise.variance[1] > 3 * noise.variance[0]
    assert cell_noise(table.sides[1:], table.own, table.n, kept) is None


def made_noise(k, seed=0):
    """k cells of 50 people each, that share nobody."""
    sides = tuple(Contribution(np.array([c]), np.array([[0.01]]), np.array([50.0])) for c in range(k))
    return cell_noise(sides, np.zeros(k), np.full(k, 50), np.arange(k), seed=seed)


@pytest.mark.parametrize("k", [4, MOST_CELLS + 1])
def test_a_gap_of_nothing_is_within_its_interval_and_chance_is_named(k):
    noise = made_noise(k)
    values = 0.5 + np.random.default_rng(4).normal(size=k) * np.sqrt(noise.variance)
    found = compare_range(values, noise)
    assert found.low == 0.0 and found.high > np.ptp(values) and found.p_value > 0.01
    assert found.expected == pytest.approx(np.ptp(values), rel=0.6)
    apart = compare_range(np.append(values[:-1], 5.0), noise)
    assert apart.p_value == pytest.approx(1 / 1001) and 3 < apart.low < 4.5 < apart.high
    assert compare_range(values, noise) == found


@pytest.mark.parametrize("k", [3, MOST_CELLS + 1])
def test_the_p_value_and_the_interval_of_a_gap_say_the_same(k):
    noise = made_noise(k)
    said = set()
    for shift in np.linspace(0, 1.2, 25):
        values = 0.5 + np.random.default_rng(5).normal(size=k) * 0.05
        values[0] += shift
        found = compare_range(values, noise)
        assert (found.p_value <= 0.05 + 1e-9) == (found.low > 0), (found, shift)
        said.add(found.low > 0)
    assert said == {True, False}


def test_a_cell_that_moves_much_hides_no_difference_between_others():
    spreads = np.array([1e-4, 1e-4, 0.04])
    sides = tuple(Contribution(np.array([c]), v[None, None], np.array([50.0])) for c, v in enumerate(spreads))
    noise = cell_noise(sides, np.zeros(3), np.full(3, 50), np.arange(3))
    found = compare_range(np.array([0.45, 0.55, 0.5]), noise)
    # max - min of the draws is the third cell's alone, and above .1 in more than half of them
    assert found.p_value < 0.01 and found.low > 0 and found.expected > 0.1


def test_cells_whose_pairs_all_agree_have_a_width():
    """Shares of 0 and 1: 40 edges all predicted are no proof of a share of 1."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 100)
    graph = AttributedGraph("g", 200, np.array([[0], [1]], np.int64))
    within = np.array([rng.choice(100, 2, replace=False) for _ in range(40)]).T
    pairs = np.concatenate([within, np.stack([rng.integers(0, 100, 200), rng.integers(100, 200, 200)])], axis=1)
    covered = 0
    for _ in range(200):
        value = np.concatenate([rng.random(40) < 0.97, rng.random(200) < 0.5]).astype(np.float64)
        table = listed_cells(value, pairs, codes, graph).of_shares()
        noise = cell_noise(table.sides, table.own, table.n, np.array([0, 1]))
        half = noise.half_width()
        assert half.min() > 0 and noise.deviations.std(axis=1).min() > 0
        covered += abs(table.mean[0] - 0.97) <= half[0]
    assert covered >= 0.93 * 200  # without: 69 % covered, a third of no width


def test_seminorms_have_intervals():
    noise = made_noise(4)
    share = np.array([0.4, 0.3, 0.2, 0.1])

    def spread(x):
        return np.sqrt(share @ (x - share @ x) ** 2)

    values = np.array([0.0, 0.0, 3.0, 0.0])
    found = compare_norm(values, noise, spread)
    value = reference.weighted_sd(values, share)
    assert found.low < value < found.high and found.low > 0 and found.p_value < 0.01
    assert compare_norm(np.zeros(4), noise, spread).low == 0.0


@settings(max_examples=10)
@given(graphs(unknown=True, max_nodes=14), st.integers(0, 20))
def test_rows_have_the_same_shape_whatever_the_values(graph, seed):
    z = np.random.default_rng(seed).normal(size=(graph.num_nodes, 2)).astype(np.float32)
    split = split_links(graph)
    audit = audit_embedding(z, graph, split, attackers=[])
    other = audit_embedding(np.zeros_like(z), graph, split, attackers=[])
    assert [(r.metric, r.attribute, r.variant, len(r.cells)) for r in audit] == [
        (r.metric, r.attribute, r.variant, len(r.cells)) for r in other
    ]
    metrics = [r.metric for r in audit]
    sampled = sample_pairs(graph, split) is not None
    assert (metrics.count("dp"), metrics.count("eo")) == ((18, 14) if sampled else (12, 12))
    assert metrics.count("ndcg_gap") == 2
    assert metrics.count("ndkl") == (0 if graph.bipartite else 2)


def test_the_four_summaries_of_the_cells():
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 3, 200)
    z = (rng.normal(size=(200, 3)) + codes[:, None] * 0.4).astype(np.float32)
    u, v = np.nonzero(np.triu(rng.random((200, 200)) < 0.2, 1))
    graph = AttributedGraph("g", 200, np.stack([u, v]).astype(np.int64), (attribute("x", codes),))
    audit = audit_embedding(z, graph, split_links(graph), attackers=[])
    for metric, variant in (("dp", None), ("eo", "held-out")):
        row = audit.find(metric=metric, variant=variant)
        means, sizes = [c.value for c in row.cells], [c.n for c in row.cells]
        overall = sum(m * n for m, n in zip(means, sizes, strict=True)) / sum(sizes)
        expected = {
            variant: max(means) - min(means),
            "ratio": min(means) / max(means),
            "weighted-sd": reference.weighted_sd(means, sizes),
            "worst-vs-overall": max(abs(m - overall) for m in means),
        }
        for name, value in expected.items():
            found = audit.find(metric=metric, variant=name)
            assert found.value == pytest.approx(value)
            assert found.ci_low < value < found.ci_high and found.ci_kind == "nodes" and found.p_value < 0.05
            assert (found.floor_random > value) == (name == "ratio") and 0 < found.floor_random < 1
        assert all(c.ci_low < c.value < c.ci_high for c in row.cells)


def table_of(metric, rng, n, shift):
    codes, z, activity = people(rng, n, shift)
    graph = AttributedGraph("drawn", n, np.array([[0], [1]], np.int64))
    if metric == "dp":
        return dp_cells(z, graph, {"x": codes}, threads=1)["x"]
    return eo_cells(z, graph, {"x": codes}, links(rng, z, activity))["x"]


def coverage(metric, shift, trials):
    """By cell (median pairs, share of intervals that cover), and the share of the gap's."""
    many = [table_of(metric, np.random.default_rng([99, i]), 3000, shift) for i in range(60)]
    truth = sum(t.mean * t.n for t in many) / sum(t.n for t in many)
    if shift == 0:
        truth[:] = truth.mean()
    minimum = 100 if metric == "dp" else 30
    hits, sizes, gaps = {}, {}, []
    for trial in range(trials):
        table = table_of(metric, np.random.default_rng([7, trial]), PEOPLE, shift)
        kept = np.nonzero(table.n >= minimum)[0]
        noise = cell_noise(table.sides, table.own, table.n, kept, seed=trial, draws=400)
        for c, half in zip(kept.tolist(), noise.half_width(), strict=True):
            band = c, bool(table.n[c] >= 100)
            hits.setdefault(band, []).append(abs(table.mean[c] - truth[c]) <= half)
            sizes.setdefault(band, []).append(table.n[c])
        found = compare_range(table.mean[kept], noise)
        gaps.append(found.low <= np.ptp(truth[kept]) <= found.high)
    return {k: (float(np.median(sizes[k])), float(np.mean(h)), len(h)) for k, h in hits.items()}, float(np.mean(gaps))


def check_coverage(metric, shift, trials, slack):
    cells, gaps = coverage(metric, shift, trials)
    for (cell, large), (size, share, n) in cells.items():
        if n < trials / 4:
            continue
        print(metric, shift, cell, size, share, n)
        if large:
            assert 0.93 - slack <= share <= 0.97 + slack, (cell, size, share)
        else:
            assert share >= 0.92 - slack, (cell, size, share)
    print(metric, shift, "gap", gaps)
    assert gaps >= 0.93 - slack


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("metric", ["dp", "eo"])
def test_coverage_in_few_trials(metric, shift):
    check_coverage(metric, shift, 80, 0.05)


@pytest.mark.acceptance
@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("metric", ["dp", "eo"])
def test_coverage(metric, shift):
    check_coverage(metric, shift, 2000, 0.0)


def ndcg_coverage(trials, num=400):
    values, ends = [], []
    for trial in range(trials):
        rng = np.random.default_rng([5, trial])
        _, z, activity = people(rng, num, 0.5)
        edges = links(rng, z, activity, 16.0)
        graph = AttributedGraph("drawn", num, edges)
        task = ranking_task(graph, edges[:, rng.random(edges.shape[1]) < 0.15], seed=trial)
        ranking = ndcg.rank_candidates(z, task, seed=trial)
        value = ndcg.ndcg_per_target(ranking, np.ones(len(ranking.rank)), len(task.targets))
        found = ndcg.group_means(value, np.zeros(len(value), np.int64), 1, task, ranking)
        values.append(found.mean[0])
        ends.append(found.ends[0])
    truth = np.mean(values)
    return np.mean([low <= truth <= high for low, high in ends])


@pytest.mark.slow
def test_ndcg_coverage_in_few_trials():
    assert 0.87 <= ndcg_coverage(80) <= 1.0


@pytest.mark.acceptance
def test_ndcg_coverage():
    share = ndcg_coverage(2000)
    print("ndcg", share)
    assert 0.93 <= share <= 0.97


@pytest.mark.processors
def test_draws_do_not_turn_with_the_last_bit_of_a_sum():
    # three cells of one variance: any three directions are eigenvectors, and a last bit chooses which
    rng = np.random.default_rng(0)
    cells, people, n = np.arange(3), np.full(3, 40.0), np.full(3, 500)
    plain = np.diag(np.full(3, 1e-3))
    made = []
    for noise in (0.0, 1e-18, -1e-18):
        gram = plain + noise * (lambda a: a + a.T)(rng.normal(size=(3, 3)))
        made.append(cell_noise([Contribution(cells, gram, people)], np.zeros(3), n, cells))
    for other in made[1:]:
        np.testing.assert_allclose(other.draws, made[0].draws, rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.cov(other.draws), np.diag(other.spread), rtol=0, atol=2e-4)
    # fewer people than cells: the covariance is flat in most directions, up to rounding
    influence = rng.normal(size=(40, 12)) / 50
    grams = [influence[:, order] @ influence[:, order].T for order in (np.arange(12), rng.permutation(12))]
    assert not np.array_equal(*grams)
    one, other = (
        cell_noise([Contribution(np.arange(40), g, np.full(40, 12.0))], np.zeros(40), np.full(40, 99), np.arange(40))
        for g in grams
    )
    np.testing.assert_allclose(one.draws, other.draws, rtol=0, atol=1e-10)
    assert np.sqrt(np.square(one.draws).mean()) > 0.03


@pytest.mark.alone
@pytest.mark.acceptance
def test_a_million_pairs_and_nine_groups_take_seconds():
    import time

    rng = np.random.default_rng(0)
    n = 50_000
    # groups so that unordered pairs of them make more than nine cells; 200 draws
    codes = rng.integers(0, 9, n)
    edges = simple_edges(rng.integers(0, n, 1_010_000), rng.integers(0, n, 1_010_000), n)[0]
    z = rng.normal(size=(n, 16)).astype(np.float32)
    begin = time.perf_counter()
    table = eo_cells(z, AttributedGraph("g", n, edges[:, :1]), {"x": codes}, edges)["x"]
    noise = cell_noise(table.sides, table.own, table.n, np.arange(45), draws=200)
    found = compare_range(table.mean, noise)
    took = time.perf_counter() - begin
    print("a million pairs:", took)
    assert math.isfinite(found.high) and took < 10
