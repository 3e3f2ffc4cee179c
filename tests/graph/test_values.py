import numpy as np
import pytest
from strategies import attribute

from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN, AttributedGraph, simple_edges
from uge_core.graph.values import resolve_values


def blocks(same=0.9, n=600, num_edges=4000, groups=3, seed=0):
    """A graph whose edges stay inside a group with probability `same`."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, groups, n)
    source = rng.integers(0, n, num_edges)
    target = rng.integers(0, n, num_edges)
    stay = rng.random(num_edges) < same
    for i in np.nonzero(stay)[0]:
        target[i] = rng.choice(np.nonzero(codes == codes[source[i]])[0])
    edges, _, _ = simple_edges(source, target, n)
    return codes, edges


def resolve(codes, edges, *, unknown="impute", hidden=None, hidden_policy="impute", seed=0, **graph):
    a = attribute("g", codes, num_values=3, **({"side": "users"} if graph else {}))
    return resolve_values(
        a,
        AttributedGraph("b", len(codes), edges, (a,), **graph),
        edges,
        unknown=unknown,
        hidden=hidden,
        hidden_policy=hidden_policy,
        rng=np.random.default_rng(seed),
    )


def test_imputation_recovers_what_neighbours_tell():
    truth, edges = blocks()
    missing = np.random.default_rng(1).random(600) < 0.3
    got = resolve(np.where(missing, UNKNOWN, truth), edges)
    assert got.report.used and got.report.accuracy > got.report.majority + 0.3
    assert (got.codes[missing] == truth[missing]).mean() > 0.8
    assert (got.codes[~missing] == truth[~missing]).all() and (got.fitted == ~missing).all()


def test_where_neighbours_say_nothing_it_falls_back_to_exclude():
    truth, edges = blocks(same=0.0)
    got = resolve(np.where(np.arange(600) < 200, UNKNOWN, truth), edges)
    assert not got.report.used and (got.codes[:200] == -1).all()
    assert "excluded" in got.report.note and f"for {got.report.accuracy:.1f} of" in got.report.note


def test_a_draw_is_not_the_maximum():
    truth, edges = blocks(same=0.45)
    hidden = np.arange(600) < 300
    share = [(resolve(truth, edges, hidden=hidden, seed=s).codes[:300] == 0).mean() for s in range(5)]
    assert np.ptp(share) > 0 and 0.15 < np.mean(share) < 0.55


def test_hidden_values_cannot_reach_training():
    truth, edges = blocks()
    hidden = np.arange(600) < 150
    other = truth.copy()
    other[:150] = (truth[:150] + 1) % 3
    for policy in ("impute", "exclude"):
        a = resolve(truth, edges, hidden=hidden, hidden_policy=policy)
        b = resolve(other, edges, hidden=hidden, hidden_policy=policy)
        assert (a.codes == b.codes).all() and (a.fitted == b.fitted).all() and a.report == b.report
        assert (a.codes[:150] == -1).all() == (policy == "exclude")


def test_bipartite_imputation_is_by_the_nodes_own_items():
    rng = np.random.default_rng(0)
    taste = rng.integers(0, 3, 300)
    items = 300 + (taste[:, None] * 20 + rng.integers(0, 24, (300, 12))) % 60
    edges, _, _ = simple_edges(np.repeat(np.arange(300), 12), items.reshape(-1), 360)
    codes = np.concatenate([np.where(np.arange(300) < 60, UNKNOWN, taste), np.full(60, NOT_APPLICABLE)])
    got = resolve(codes, edges, num_users=300)
    assert (got.codes[:60] == taste[:60]).mean() > 0.9 and (got.codes[300:] == -1).all()


@pytest.mark.parametrize("policy", ["level", "exclude", "impute"])
def test_an_attribute_unknown_everywhere_is_out(policy):
    _, edges = blocks(n=30, num_edges=60)
    got = resolve(np.full(30, UNKNOWN), edges, unknown=policy)
    assert (got.codes == (3 if policy == "level" else -1)).all()


def test_one_known_value_is_too_few_to_check_an_imputation():
    codes = np.full(20, UNKNOWN)
    codes[3] = 2
    got = resolve(codes, np.array([[3, 4], [4, 5]]))
    assert got.report is None and (got.codes == np.where(codes >= 0, codes, -1)).all()
