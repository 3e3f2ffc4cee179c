"""NDCG@10 among strangers of the friend's group: by hand, against loops, and on embeddings of known merit."""

from dataclasses import replace

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import attribute, graphs

import uge_core as uge
from uge_core.audit import audit_embedding
from uge_core.audit.matched import Ranked, crossed, degree_cells, matched_lists
from uge_core.audit.ndcg import BiasFree
from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN, AttributedGraph
from uge_core.graph.split import split_links

METRIC, SHARE = "ndcg_at_10_matched", "ndcg_attribute_share"


def strangers_of(task):
    """The strangers of each list."""
    return [[v for v in row[1:] if v >= 0] for row in task.candidates.tolist()]


def links_of(task):
    return list(zip(task.targets.tolist(), task.candidates[:, 0].tolist(), strict=True))


def random_town(n=160, degree=12.0, groups=2, homophily=0.0, seed=0, users=None):
    """People (or users and items) at random places, near ones linked, and groups that links keep to."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    group = rng.integers(0, groups, n)
    score = z @ z.T / 2 + homophily * (group[:, None] == group)
    allowed = np.triu(np.ones((n, n), bool), 1)
    if users is not None:
        allowed[:] = False
        allowed[:users, users:] = True
    chance = np.exp(score) * allowed
    chance = np.minimum(chance / chance.sum() * degree * n / 2, 1.0)
    edges = np.stack(np.nonzero(rng.random((n, n)) < chance))
    codes = group if users is None else np.where(np.arange(n) < users, group, NOT_APPLICABLE)
    side = "nodes" if users is None else "users"
    made = (
        attribute("region", codes, side=side),
        attribute("gender", np.where(codes < 0, codes, rng.integers(0, 2, n)), side=side),
    )
    return AttributedGraph("town", n, edges, made, num_users=users), z.astype(np.float32), group


def golden():
    """Nodes 0 to 3 are of group 0, 4 to 7 of group 1; the link 0-1 is held out, 0-4 and 1-5 are trained on."""
    graph = AttributedGraph("g", 8, np.array([[0, 0, 1], [1, 4, 5]]))
    z = np.array([[1.0], [2.0], [3.0], [1.5], [-1.0], [-2.0], [-3.0], [-4.0]], np.float32)
    return graph, np.array([[0], [1]]), np.repeat([0, 1], 4), z


def test_by_hand():
    # Node 0 scores its friend 1 with 2, the strangers 2 and 3 of group 0 with 3 and 1.5: rank 2, 1/log2(3) = 0.630930.
    # Node 1 scores its friend 0 with 2, the strangers 2 and 3 with 6 and 3: rank 3, 1/2.
    # A random order of three gives (1 + 0.630930 + 0.5) / 3 = 0.710310.
    graph, held, group, z = golden()
    lists = matched_lists(graph, held, group)
    assert links_of(lists.matched) == [(0, 1), (1, 0)]
    assert [sorted(s) for s in strangers_of(lists.matched)] == [[2, 3], [2, 3]]
    ranked = Ranked.of(z, lists.matched, seed=0)
    assert ranked.value == pytest.approx([0.630930, 0.5], abs=1e-6)
    assert ranked.mean(seed=0).value == pytest.approx(0.565465, abs=1e-6)
    assert ranked.floor == pytest.approx(0.710310, abs=1e-6)
    assert (lists.found, lists.targets, lists.unknown, lists.alone, lists.short) == (2, 2, 0.0, 0.0, 1.0)


def test_the_attributes_share_by_hand():
    # Among the uniform strangers 4 to 7 alone either friend is first. Share: 1 less 0.565465.
    graph, held, group, z = golden()
    lists = matched_lists(graph, held, group)
    twin = replace(lists.uniform, candidates=np.array([[1, 6, 7], [0, 6, 7]]))
    matched, uniform = Ranked.of(z, lists.matched, seed=0), Ranked.of(z, twin, seed=0)
    assert uniform.value.tolist() == [1.0, 1.0]
    estimate, p_value = matched.mean_below(uniform, seed=0)
    assert estimate.value == pytest.approx(0.434535, abs=1e-6)
    assert estimate.low is None and p_value is None  # of two lists


@given(graphs(attributes=1, unknown=True), st.integers(0, 99), st.integers(1, 5))
def test_lists_are_what_they_say(graph, seed, num_strangers):
    cell = graph.attributes[0].codes
    lists = matched_lists(graph, graph.edges, cell, num_strangers=num_strangers, seed=seed)
    wanted = reference.matched_links(graph, graph.edges, cell)
    assert links_of(lists.matched) == links_of(lists.uniform) == wanted and lists.found == len(wanted)
    tied = {frozenset(e) for e in graph.edges.T.tolist()}
    same, any_ = strangers_of(lists.matched), strangers_of(lists.uniform)
    for (u, v), matched, uniform in zip(wanted, same, any_, strict=True):
        right = reference.strangers_like(graph, u, v, cell)
        assert len(matched) == len(uniform) == min(len(right), num_strangers)
        assert set(matched) <= right
        for listed in (matched, uniform):
            assert len(set(listed)) == len(listed) and u not in listed
            assert not any(frozenset((u, w)) in tied for w in listed)
            assert not graph.bipartite or max(listed) < graph.num_users
    friends = [v for u, v in graph.edges.T.tolist() for v in ((u,) if graph.bipartite else (u, v))]
    known = [v for v in friends if cell[v] >= 0]
    assert lists.unknown == pytest.approx(1 - len(known) / len(friends))
    assert lists.alone == pytest.approx(1 - len(wanted) / len(known) if known else 0.0)
    assert lists.targets == len({u for u, _ in wanted})


@given(graphs(min_nodes=6, attributes=1), st.integers(0, 99))
def test_equal_to_loops(graph, seed):
    z = np.random.default_rng(seed).normal(size=(graph.num_nodes, 3)).astype(np.float32)
    lists = matched_lists(graph, graph.edges, graph.attributes[0].codes, num_strangers=12, seed=seed)
    if not lists.found:
        return
    means = []
    for task in (lists.matched, lists.uniform):
        ranked = Ranked.of(z, task, seed=seed)
        listed = list(zip(links_of(task), strangers_of(task), strict=True))
        assert ranked.value == pytest.approx([reference.ndcg_among(z, u, v, others) for (u, v), others in listed])
        assert ranked.floor == pytest.approx(np.mean([reference.chance_among(len(others)) for _, others in listed]))
        assert ranked.mean(seed=0).value == pytest.approx(ranked.value.mean())
        means.append(ranked)
    share, _ = means[0].mean_below(means[1], seed=0)
    assert share.value == pytest.approx(means[1].value.mean() - means[0].value.mean())


def test_of_more_lists_as_many_are_drawn():
    graph, _, group = random_town()
    held = split_links(graph).test
    every, few, other = (
        matched_lists(graph, held, group, most=most, seed=s) for most, s in ((999, 0), (50, 0), (50, 1))
    )
    assert every.found == few.found == len(every.matched.targets) and len(few.matched.targets) == 50
    assert set(links_of(few.matched)) < set(links_of(every.matched))
    assert links_of(few.matched) != links_of(other.matched)


def test_a_group_of_one_has_no_stranger_and_one_of_two_has_one():
    # Node 1 alone is of group 1, and 2 and 3 of group 2: lists of 2 hold 3. Nodes 4 and 5 know no value of 0.
    graph = AttributedGraph("g", 6, np.array([[0, 0, 0], [1, 2, 5]]))
    lists = matched_lists(graph, graph.edges, np.array([-1, 1, 2, 2, 0, 0]))
    assert links_of(lists.matched) == [(0, 2), (0, 5)]
    assert strangers_of(lists.matched) == [[3], [4]]
    assert (lists.unknown, lists.alone) == (0.5, pytest.approx(1 / 3))


def test_nothing_held_out():
    graph, _, group = random_town()
    lists = matched_lists(graph, np.zeros((2, 0), np.int64), group)
    assert (lists.found, lists.targets, lists.unknown, lists.alone, lists.short) == (0, 0, 0.0, 0.0, 0.0)


def test_people_of_one_degree_share_a_decile():
    rng = np.random.default_rng(0)
    edges = np.stack(np.nonzero(np.triu(rng.random((300, 300)) < rng.random(300) * 0.1, 1)))
    graph = AttributedGraph("g", 300, edges)
    group = rng.integers(-1, 2, 300)
    cell = degree_cells(graph, group, edges)
    degree = np.bincount(edges.ravel(), minlength=300)
    assert ((cell < 0) == (group < 0)).all() and (cell[group >= 0] // 10 == group[group >= 0]).all()
    decile = degree_cells(graph, np.zeros(300, np.int64), edges)
    order = np.argsort(degree, kind="stable")
    assert (np.diff(decile[order]) >= 0).all()
    assert all(len(set(decile[degree == d])) == 1 for d in set(degree.tolist()))
    largest_tie = np.bincount(degree).max()
    assert np.bincount(decile, minlength=10).max() <= 30 + largest_tie


def test_deciles_of_a_bipartite_graph_are_of_users():
    graph = AttributedGraph("g", 22, np.stack([np.repeat(np.arange(20), 2), np.tile([20, 21], 20)]), num_users=20)
    cell = degree_cells(graph, np.where(np.arange(22) < 20, 0, -1), graph.edges)
    assert set(cell[:20].tolist()) == {0} and set(cell[20:].tolist()) == {-1}


def test_groups_crossed():
    joint = crossed([np.array([0, 0, 1, 1, -1, 0]), np.array([0, 2, 2, 2, 0, -1]), np.array([0, 0, 0, 0, 0, 0])])
    assert joint[2] == joint[3] and len({*joint[:3].tolist()}) == 3
    assert joint.min() == -1 and joint[4:].tolist() == [-1, -1]


def audited(z, graph, *, split=None, **given):
    given = {"attributes": ["region"], "parts": ["links"], **given}
    return audit_embedding(z, graph, split_links(graph) if split is None else split, **given)


@pytest.fixture(scope="module")
def planted():
    """The town of the samples, and the groups and deciles of its people."""
    town = uge.load("sample:town")
    split = split_links(town)
    region = town.attribute("region").codes
    return town, split, region, degree_cells(town, region, split.train)


def one_hot(cell):
    return np.eye(int(cell.max()) + 1, dtype=np.float32)[cell]


def test_knowing_the_group_alone_is_chance_when_matched(planted):
    town, split, region, _ = planted
    audit = audited(one_hot(region), town, split=split)
    matched, uniform = (audit.find(metric=METRIC, variant=v) for v in ("held-out", "uniform"))
    assert matched.ci_low < matched.floor_random < matched.ci_high
    assert uniform.ci_low > uniform.floor_random + 0.01 and uniform.floor_random == matched.floor_random
    share = audit.find(metric=SHARE)
    assert share.value == pytest.approx(uniform.value - matched.value)
    assert share.ci_low > 0.01 and share.p_value < 1e-6


def test_knowing_group_and_decile_alone_is_chance_when_matched_by_both(planted):
    town, split, _, cell = planted
    popular = (cell % 10).astype(np.float32)[:, None]
    audit = audited(np.concatenate([one_hot(cell), popular], axis=1), town, split=split)
    matched, degree = (audit.find(metric=METRIC, variant=v) for v in ("held-out", "degree"))
    assert degree.ci_low < degree.floor_random < degree.ci_high
    assert matched.ci_low > matched.floor_random + 0.03


@pytest.mark.parametrize("users", [None, 60])
def test_an_embedding_that_knows_more_is_above_chance(users):
    graph, z, _ = random_town(homophily=2.0, users=users)
    audit = audited(z, graph)
    for variant in ("held-out", "degree"):
        row = audit.find(metric=METRIC, variant=variant)
        assert row.ci_low > row.floor_random
    assert ("users are ranked for an item" in row.note) == (users is not None)


def test_the_interval_of_the_share_holds_0_for_blind_embeddings():
    inside, trials = 0, 300
    for seed in range(trials):
        graph, z, group = random_town(n=100, seed=seed)
        lists = matched_lists(
            graph, split_links(graph, test_share=0.2, seed=seed).test, group, num_strangers=20, seed=seed
        )
        matched, uniform = (Ranked.of(z, task, seed=seed) for task in (lists.matched, lists.uniform))
        share, p_value = matched.mean_below(uniform, seed=seed)
        inside += share.low <= 0 <= share.high
        assert (p_value < 0.05) == (not share.low <= 0 <= share.high)
    assert 0.91 < inside / trials < 0.99


def figures(audit):
    return {(r.metric, r.attribute, r.variant): r.value for r in audit if r.metric in (METRIC, SHARE)}


def test_scale_and_rotation_change_nothing():
    graph, z, _ = random_town(homophily=2.0)
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0].astype(np.float32)
    exact, *others = (
        figures(audited(x, graph)) for x in (z, 0.5 * z, z[:, ::-1] * np.float32(-1), 1e-6 * z, 100 * z, z @ rotation)
    )
    assert len(exact) == 4 and others[0] == exact
    for other in others:
        assert other == {key: pytest.approx(value, abs=2e-3) for key, value in exact.items()}


def test_the_same_again():
    graph, z, _ = random_town()
    assert audited(z, graph) == audited(z, graph)
    assert figures(audited(z, graph)) != figures(audited(z, graph, split_seed=1))


def test_unknown_friends_are_left_out_and_said():
    graph, z, group = random_town()
    group = np.where(np.arange(len(group)) < 60, UNKNOWN, group)
    graph = replace(graph, attributes=(attribute("region", group),))
    audit, level = audited(z, graph, unknown="exclude"), audited(z, graph, unknown="level")
    split = split_links(graph)
    row, all_ = (a.find(metric=METRIC, variant="held-out") for a in (audit, level))
    assert all_.n == 2 * split.test.shape[1] and row.n == (group[split.test] >= 0).sum()
    assert f"{100 * (1 - row.n / all_.n):.0f} % of the links left out, as the friend's region is unknown" in row.note
    assert "is unknown" not in all_.note


def test_too_few_targets_and_no_split_are_insufficient():
    graph, z, _ = random_town()
    split = split_links(graph)
    few = replace(split, test=split.test[:, :4])
    for audit in (
        audited(z, graph, split=few),
        audit_embedding(z, graph, None, attributes=["region"], parts=["links"]),
    ):
        rows = [*audit.select(metric=METRIC), *audit.select(metric=SHARE)]
        assert [r.variant for r in rows] == ["held-out", "uniform", "degree", "held-out"]
        assert all(r.evidence == "insufficient" and r.floor_random is r.floor_degree is None for r in rows)
    assert rows[0].note == audit.find(metric="ndcg_at_10", variant="held-out").note and rows[0].n == 0


def test_a_row_each_and_one_for_the_treated_crossing():
    graph, z, group = random_town()
    twin = np.random.default_rng(1).normal(size=z.shape).astype(np.float32)
    given = {"attributes": ["region"], "read": ["gender", "region"], "twin": twin}
    audit = audited(z, graph, treated=["region", "gender"], **given)
    rows = audit.select(metric=METRIC, variant="held-out")
    assert [(r.attribute, r.exposure) for r in rows] == [
        ("region", "seen"),
        ("region", "unseen"),
        ("gender+region", "seen"),
        ("gender+region", "unseen"),
    ]
    cell = graph.attribute("gender").codes * 2 + group
    lists = matched_lists(graph, split_links(graph).test, cell)
    assert rows[2].value == pytest.approx(Ranked.of(z, lists.matched, seed=0).value.mean())
    assert rows[3].value == pytest.approx(Ranked.of(twin, lists.matched, seed=0).value.mean())
    alone = audited(z, graph, treated=["region"], **given)
    assert {r.attribute for r in alone.select(metric=METRIC)} == {"region"}


def test_scores_of_users_under_bpr_are_said_not_to_compare():
    graph, z, _ = random_town(users=60)
    for calibrated in (True, False):
        rows = audited(z, graph, calibrated=calibrated).select(metric=METRIC)
        assert all(("not comparable" in r.note) != calibrated for r in rows)


# The degree floor


def by_figure(audit):
    return {(r.metric, r.attribute, r.variant): r for r in audit}


@pytest.mark.parametrize("users", [None, 60])
@pytest.mark.parametrize("score", ["dot", "distance"])
def test_the_degree_floor_is_the_degree_audited(users, score):
    graph, z, _ = random_town(users=users, seed=3)
    split = split_links(graph)
    free = {"region": BiasFree(np.random.default_rng(0).random(split.test.shape[1]).astype(np.float32))}
    degree = np.bincount(split.train.ravel(), minlength=graph.num_nodes)[:, None].astype(np.float32)
    rows = by_figure(audited(z, graph, split=split, bias_free=free, score=score))
    own = by_figure(audited(degree, graph, split=split, bias_free=free))
    assert len(rows) == (10 if users is None else 8)
    for figure, row in rows.items():
        if row.metric == "usable":
            continue
        assert row.floor_degree == (None if row.value is None else own[figure].value)
    assert rows[METRIC, "region", "held-out"].floor_degree is not None


def test_planted_truth_has_a_degree_floor(planted):
    town, split, region, _ = planted
    row = audited(one_hot(region), town, split=split).find(metric="ndcg_at_10", variant="planted-truth")
    assert row.floor_degree > row.floor_random


def test_degree_floors_are_kept_and_told_apart():
    graph, z, _ = random_town()
    floors = {}
    first = audited(z, graph, floors=floors)
    assert all(graph.fingerprint in key for key in floors) and all(floors.values())
    marked = {key: dict.fromkeys(values, 0.123) for key, values in floors.items()}
    again = audited(z, graph, floors=marked)
    assert {r.floor_degree for r in again if r.value is not None and r.metric != "usable"} == {0.123}
    assert [replace(r, floor_degree=None) for r in again] == [replace(r, floor_degree=None) for r in first]
    for other in ({"split_seed": 1}, {"seed": 1}, {"split": split_links(graph, test_share=0.2)}):
        kept = dict(marked)
        assert 0.123 not in {r.floor_degree for r in audited(z, graph, floors=kept, **other)}
        assert len(kept) == 2 * len(marked)


def test_a_quick_audit_takes_kept_degree_floors_and_measures_none():
    graph, z, _ = random_town()
    floors = {}
    bare = audited(z, graph, floors=floors, quick=True)
    assert floors == {} and {r.floor_degree for r in bare} == {None}
    assert not bare.select(variant="degree")
    full = by_figure(audited(z, graph, floors=floors))
    quick = by_figure(audited(z, graph, floors=floors, quick=True))
    assert all(row == full[figure] for figure, row in quick.items()) and len(quick) == len(full) - 1
