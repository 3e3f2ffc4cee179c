"""CNE and DeBayes as offsets: what is added to each pair, and what it does to an embedding."""

import re
from dataclasses import replace

import numpy as np
import pytest
from reference import cross_entropy
from sklearn.linear_model import LogisticRegression
from strategies import attribute
from toys import config, expected, inputs, observed, run, shop, sigmoid, town
from toys import popular_town as popular_town

from uge_core.debias.methods.cne import CNE
from uge_core.debias.methods.debayes import DeBayes
from uge_core.debias.priors import block_totals, degree_by_group
from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph


def log_rate(graph, u, v, weights=None):
    """How much oftener a pair without an edge is drawn than it would be seen with one, by the loss's definition."""
    own = np.ones(graph.num_edges) if weights is None else weights
    r = []
    for i in (u, v):
        linked = (graph.edges == i).any(0)
        others = graph.num_nodes - 1
        if graph.bipartite:
            others = graph.num_nodes - graph.num_users if i < graph.num_users else graph.num_users
        r.append(own[linked].sum() / (others - linked.sum()))
    return np.log(sum(r) / 2)


def some_pairs(graph, num=60):
    rng = np.random.default_rng(0)
    found = rng.integers(0, graph.num_nodes, (2, 10 * num))
    if graph.bipartite:
        found = np.stack([found[0] % graph.num_users, graph.num_users + found[1] % (graph.num_nodes - graph.num_users)])
    degree = np.bincount(graph.edges.ravel(), minlength=graph.num_nodes)
    return found[:, (found[0] != found[1]) & (degree[found] > 0).all(0)][:, :num]


@pytest.mark.parametrize("make", [town, shop])
def test_cne_adds_the_degree_prior_at_the_rate_pairs_are_drawn(make):
    graph = make()
    known = inputs(graph, ())
    side = known.side
    prior = degree_by_group(side, side, graph.edges)
    pairs = some_pairs(graph)
    exact = [prior.logit(*pairs)[k] - log_rate(graph, u, v) for k, (u, v) in enumerate(pairs.T)]
    cells = CNE().cells(known)
    np.testing.assert_allclose(cells.edge_offset(pairs), exact, atol=0.07)
    assert (cells.weight == 1).all()
    # without the rate's own classes it would not be that close: popular and lonely nodes are far apart
    assert np.ptp([log_rate(graph, u, v) for u, v in pairs.T]) > 0.5
    # comparing two ends for one source, the rate plays no part
    plain = CNE().cells(replace(known, loss="bpr"))
    np.testing.assert_allclose(plain.edge_offset(pairs), prior.logit(*pairs), rtol=1e-4, atol=1e-4)


def test_cne_counts_weights_in_the_rate_alone():
    graph = town()
    weights = np.random.default_rng(0).integers(1, 4, graph.num_edges).astype(np.float32)
    weights /= weights.mean()
    prior = degree_by_group(np.zeros(90, np.int64), np.zeros(90, np.int64), graph.edges)
    pairs = some_pairs(graph)
    exact = [prior.logit(*pairs)[k] - log_rate(graph, u, v, weights) for k, (u, v) in enumerate(pairs.T)]
    np.testing.assert_allclose(
        CNE().cells(replace(inputs(graph, ()), weights=weights)).edge_offset(pairs), exact, atol=0.07
    )


@pytest.mark.parametrize("form", ["degree-by-group", "block-totals"])
def test_debayes_adds_the_biased_prior(form):
    graph = town()
    known = inputs(graph, ("city",))
    group, side = graph.attribute("city").codes, known.side
    fit = degree_by_group if form == "degree-by-group" else block_totals
    prior = fit(group, side, graph.edges)
    pairs = some_pairs(graph)
    exact = [prior.logit(*pairs)[k] - log_rate(graph, u, v) for k, (u, v) in enumerate(pairs.T)]
    np.testing.assert_allclose(DeBayes(prior=form, degrees="prior").cells(known).edge_offset(pairs), exact, atol=0.07)
    degrees = degree_by_group(side, side, graph.edges)
    np.testing.assert_allclose(
        DeBayes(prior=form).cells(known).edge_offset(pairs),
        prior.logit(*pairs) - degrees.logit(*pairs),
        rtol=1e-4,
        atol=1e-4,
    )


def test_an_attribute_of_one_value_adds_nothing_to_the_degrees():
    graph = town()
    same = AttributedGraph("same", 90, graph.edges, (attribute("city", np.zeros(90, np.int64)),))
    pairs = some_pairs(graph)
    for form in ("degree-by-group", "block-totals"):
        method = DeBayes(prior=form)
        assert np.abs(method.cells(inputs(same, ("city",))).edge_offset(pairs)).max() < 0.01
        assert np.abs(method.cells(inputs(graph, ("city",))).edge_offset(pairs)).max() > 0.5


def test_nodes_without_a_value_are_a_group_whose_sums_are_met():
    group, side, edges = popular_town(200)
    codes = np.where(np.random.default_rng(0).random(200) < 0.3, -1, group)
    graph = AttributedGraph("gaps", 200, edges, (attribute("city", codes, num_values=3),))
    known = inputs(graph, ("city",), unknown="exclude")
    method = DeBayes()
    prior = method._fit(known)[1]
    np.testing.assert_allclose(
        expected(prior), observed(np.where(codes < 0, 0, codes + 1), edges, 4), rtol=2e-3, atol=0.05
    )
    assert (method.cells(known).group < method.cells(known).offset.shape[0] - 1).all()
    assert prior.level.shape == (4, 4) and (side == 0).all()


def test_several_attributes_are_joint_groups_or_totals_where_these_are_many():
    group, _, edges = popular_town(400)
    rng = np.random.default_rng(0)
    few = AttributedGraph("few", 400, edges, (attribute("gender", group % 2), attribute("city", group)))
    many = AttributedGraph("many", 400, edges, tuple(attribute(n, rng.integers(0, 9, 400)) for n in ("gender", "city")))
    both = ("gender", "city")
    joint = inputs(few, both)
    np.testing.assert_array_equal(
        DeBayes().cells(joint).edge_offset(edges), DeBayes(prior="degree-by-group").cells(joint).edge_offset(edges)
    )
    pooled = inputs(many, both)
    np.testing.assert_array_equal(
        DeBayes().cells(pooled).edge_offset(edges), DeBayes(prior="block-totals").cells(pooled).edge_offset(edges)
    )
    assert not any("sure of" in note for note in DeBayes().cells(pooled).notes)
    assert any("sure of" in note for note in DeBayes(prior="degree-by-group").cells(pooled).notes)


def test_items_keep_their_popularity_in_each_group_of_users():
    graph = shop()
    known = inputs(graph, ("gender",))
    gender = graph.attribute("gender").codes[: graph.num_users]
    prior = DeBayes()._fit(known)[1]
    items = np.arange(graph.num_users, graph.num_nodes)
    for g, i in ((g, i) for g in (0, 1) for i in items):
        users = np.nonzero(gender == g)[0]
        found = sigmoid(prior.logit(users, np.full(len(users), i))).sum()
        u, v = graph.edges
        wanted = ((v == i) & (gender[u] == g)).sum()
        assert found == pytest.approx(wanted, rel=2e-3, abs=0.05)
    # two items of one user differ by a part that depends on the user's group, so it does not cancel under BPR
    one, two = np.nonzero(gender == 0)[0][0], np.nonzero(gender == 1)[0][0]
    offset = DeBayes().cells(replace(known, loss="bpr")).edge_offset
    gap = [np.diff(offset(np.array([[u, u], items[:2]])))[0] for u in (one, two)]
    assert abs(gap[0] - gap[1]) > 0.1


def test_totals_of_one_group_of_items_are_refused():
    graph = shop()
    for loss in ("bpr", "cross-entropy"):
        with pytest.raises(ConfigError, match=r"no more than degrees do; use --set prior=degree-by-group"):
            DeBayes(prior="block-totals").check(inputs(graph, ("gender",)), loss)
    DeBayes(prior="block-totals", item_cells="popularity").check(inputs(graph, ("gender",)), "bpr")
    DeBayes(prior="block-totals").check(inputs(town(), ("city",)), "cross-entropy")
    # and rightly: the totals add nothing there
    pairs = some_pairs(graph)
    added = DeBayes(prior="block-totals").cells(inputs(graph, ("gender",))).edge_offset(pairs)
    assert np.abs(added).max() < 0.01


def test_small_groups_are_named_in_the_advice():
    graph = town(30)
    fitted = run(graph, config(graph, "debayes"))[0]
    assert any(
        re.search(r"pairs of groups hold links that the prior is sure of, .*\(b with b", a)
        for a in fitted.diagnostics["advice"]
    )
    wide = popular_town(600)
    large = AttributedGraph("large", 600, wide[2], (attribute("city", wide[0]),))
    assert run(large, config(large, "debayes"))[0].diagnostics["advice"] == []


def test_debayes_takes_out_what_the_attribute_explains_and_a_shuffled_one_does_not():
    group, _, edges = popular_town(500, across=0.1, density=0.06)
    rng = np.random.default_rng(0)
    graph = AttributedGraph(
        "blocks", 500, edges, (attribute("city", group), attribute("random", rng.permutation(group)))
    )
    settings = {"epochs": 150, "exposure": "seen", "learning_rate": 0.05}
    made = run(
        graph,
        config(graph, **settings),
        config(graph, "debayes", sensitive="city", **settings),
        config(graph, "debayes", sensitive="random", **settings),
    )
    train, test = np.arange(500) % 5 != 0, np.arange(500) % 5 == 0

    def read(z):
        return LogisticRegression(max_iter=1000).fit(z[train], group[train]).score(z[test], group[test])

    none, city, shuffled = (read(f.embedding) for f in made)
    majority = np.bincount(group).max() / 500
    assert none > 0.85 and shuffled > 0.75
    assert city < majority + 0.15 and city < none - 0.25


def test_cne_alone_is_the_best_the_loss_knows_of_degrees():
    group, _, edges = popular_town(80, density=0.06)
    graph = AttributedGraph("blocks", 80, edges, (attribute("city", group),))
    known = inputs(graph, ())
    everyone, nothing = np.arange(80), np.zeros((80, 1))
    u, v = np.meshgrid(everyone, everyone, indexing="ij")
    log_degree = np.log(np.bincount(edges.ravel(), minlength=80) + 0.5)

    def loss(table):
        return cross_entropy(nothing, edges, lambda *_: 1.0, lambda i, j: table[i, j], [everyone])

    def offset(inputs):
        return CNE().cells(inputs).edge_offset(np.stack([u.ravel(), v.ravel()])).reshape(80, 80)

    best = loss(offset(known))
    popular = log_degree[:, None] + log_degree[None]
    for change in (0.15, -0.15):
        assert loss(offset(known) + change) > best
        assert loss(offset(known) + change * (popular - popular.mean())) > best
    # none's offset, and the prior without the rate pairs are drawn at
    assert best < loss(np.zeros((80, 80))) - 0.01 and best < loss(offset(replace(known, loss="bpr"))) - 0.1


def test_a_prior_of_edges_is_softer_where_pairs_meet_on_walks():
    graph = town()
    known = inputs(graph, ("city",))
    pairs = some_pairs(graph)
    walks = replace(known, pairs="walks")
    half = DeBayes(smoothing=0.5).cells(known).edge_offset(pairs)
    np.testing.assert_array_equal(DeBayes().cells(walks).edge_offset(pairs), half)
    # pairs that are no edge but may meet are held impossible by the prior of edges
    assert DeBayes().cells(known).edge_offset(pairs).min() < -5 < half.min()
