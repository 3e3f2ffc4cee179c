"""Predicted links: features against loops, what they never see, and leaks that they alone read."""

from itertools import pairwise

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import attribute

from uge_core.audit import audit_embedding
from uge_core.audit.leakage import DEFAULT_ATTACKERS, attack, macro_auc, measure
from uge_core.audit.link_features import FOLDS, link_features
from uge_core.audit.normal_scores import normal_scores, whitened
from uge_core.graph.graph import UNKNOWN, AttributedGraph, simple_edges
from uge_core.graph.split import probe_split, split_links
from uge_core.registry import find, names

READERS = ("links", "linked-trees")


def folds(y, seed):
    """A tenth of the labelled people each, drawn by class."""
    random = np.random.default_rng([seed, 76]).random(len(y))
    fold = np.empty(len(y), np.int64)
    fold[np.lexsort((random, y))] = np.arange(len(y)) % FOLDS
    return fold


def features(z, y, num_asked=0, *, seed=0, learn=None):
    """Of labelled people, who stand first, and of `num_asked` others."""
    n = len(y)
    learn = np.arange(n) if learn is None else learn
    return link_features(
        np.asarray(z, np.float32), np.arange(n), np.asarray(y), learn, np.arange(n, n + num_asked), seed=seed
    )


def people(n, num, seed=0, dim=4):
    """Vectors that say little, and each value at least once."""
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(num), rng.integers(0, num, n - num))
    return (rng.normal(size=(n, dim)) + 0.3 * np.eye(dim)[y % dim]).astype(np.float32), y


@pytest.mark.processors
@given(st.integers(0, 9999), st.integers(2, 5), st.integers(8, 70), st.integers(2, 6))
def test_features_against_loops(seed, num, more, dim):
    """Some groups have one member, or fewer than ten. In one dimension all cosines are equal but for their last bits."""
    z, y = people(num + more + 3, num, seed, dim)
    y = y[:-3]
    n = len(y)
    mine, others = features(z, y, 3, seed=seed)
    fold, share = folds(y, seed), np.bincount(y) / n
    scaled = z.astype(np.float64) / np.sqrt(np.mean(np.square(z[:n].astype(np.float64))))
    rank = whitened(normal_scores(z, np.arange(n)), np.arange(n))
    rank /= np.sqrt(np.mean(np.square(rank[:n])))
    for i in (0, n // 2, n - 1, n, n + 2):
        there = fold != fold[i] if i < n else np.ones(n, bool)
        if not there.any():
            continue
        expected = reference.link_features(scaled[i], scaled[:n][there], rank[i], rank[:n][there], y[there], num, share)
        found = mine[i] if i < n else others[i - n]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.processors
@pytest.mark.parametrize("case", ["equal", "zero", "some zero"])
def test_people_who_look_alike_are_told_apart_by_nobody(case):
    z, y = people(300, 3)
    z[: 300 if case != "some zero" else 40] = 3.0 if case == "equal" else 0.0
    mine, _ = features(z, y)
    assert np.isfinite(mine).all()
    if case != "some zero":
        # as far from each group, and the hundred best are whom chance put first
        assert (mine[:, :, :15] == mine[:1, :1, :15]).all()
        assert np.abs(mine[:, :, 25:30] - (np.bincount(y) / 300)[:, None]).max() < 0.2


@pytest.mark.parametrize("change", ["1e-6", "1e4", "rotated"])
def test_length_changes_no_feature_and_rotation_none_of_the_vectors_themselves(change):
    z, y = people(400, 3, seed=1, dim=8)
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(8, 8)))[0]
    other = z @ turn if change == "rotated" else z * np.float32(change)
    kept = np.arange(61) % 5 < 3 if change == "rotated" else np.arange(61) >= 0  # ranks are of coordinates
    for one, two in zip(features(z, y[:-50], 50), features(other, y[:-50], 50), strict=True):
        spread = one.reshape(-1, 61).std(axis=0)
        assert np.abs((one - two) / np.where(spread > 0, spread, 1.0))[:, :, kept].max() < 1e-4


@pytest.mark.parametrize("attacker", ["rbf", *READERS])
@pytest.mark.parametrize(
    "trick", ["offset", "a long coordinate of noise", "short noise", "zeros", "scales", "three long vectors", "cubed"]
)
def test_what_an_owner_may_do_to_coordinates_hides_nothing(attacker, trick):
    """All of it leaves a reader of ranks as much as there was."""
    z, y = clusters(dim=4)
    rng = np.random.default_rng(3)
    z = z + (y[:, None] * 1.5 if attacker == "rbf" else 0.0)
    n = len(z)
    changed = {
        "offset": z + 1e4,
        "a long coordinate of noise": np.c_[z, 1e3 * rng.normal(size=n)],
        "short noise": np.c_[z, 1e-6 * rng.normal(size=(n, 100))],
        "zeros": np.c_[z, np.zeros((n, 400))],
        "scales": z * 10.0 ** np.arange(-4, 4, 2),
        "three long vectors": z * np.where(np.arange(n) % 400 == 7, 1e6, 1.0)[:, None],
        "cubed": z**3,
    }[trick]
    before, after = auc(z, y, attacker), auc(changed, y, attacker)
    assert before > 0.8 and after > before - (0.1 if "noise" in trick else 0.03)


def test_the_own_value_is_nowhere_in_ones_features():
    """Two people of a fold who are neighbours in the drawn order change places, so that all else stays."""
    z, y = people(400, 2, seed=3)
    fold, order = folds(y, 0), np.argsort(np.random.default_rng([0, 76]).random(400))
    pairs = [(i, j) for i, j in pairwise(order) if y[i] != y[j] and fold[i] == fold[j]]
    assert len(pairs) >= 5
    before = features(z, y)[0]
    for i, j in pairs:
        swapped = y.copy()
        swapped[[i, j]] = y[[j, i]]
        after = features(z, swapped)[0]
        np.testing.assert_array_equal(folds(swapped, 0), fold)
        np.testing.assert_array_equal(before[[i, j]], after[[i, j]])
        assert (before != after).any()  # others see that the two changed places


def test_leaving_people_out_thins_no_group():
    """Of 30 people a value 27 take part for everyone; left out alone, each would find fewest of its own."""
    y = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], 30))
    mine, _ = features(np.ones((90, 2)), y)
    np.testing.assert_allclose(mine[:, :, 25:30], 1 / 3, rtol=1e-6)


def test_the_same_each_time_whoever_is_asked_beside():
    z, y = people(300, 3)
    first, asked = features(z, y[:250], 50)
    again, some = features(z, y[:250], 50, learn=np.array([7, 200]))
    np.testing.assert_array_equal(first[[7, 200]], again)
    np.testing.assert_array_equal(asked, some)
    assert (features(z, y, seed=1)[0] != features(z, y, seed=0)[0]).any()


# Attackers


def attacked(z, codes, attacker, **options):
    split = probe_split(attribute("g", codes))
    return attack(np.asarray(z, np.float32), split.classes, split.train, split.test, attacker=attacker, **options)


def auc(z, codes, attacker):
    names = tuple(map(str, range(int(max(codes)) + 1)))
    return macro_auc(attacked(z, codes, attacker), names).value


def clusters(n=1_200, num=120, dim=6, seed=0):
    """A hundred and twenty places, each of one value, drawn from one distribution: mean and covariance say nothing."""
    rng = np.random.default_rng(seed)
    place, value = 3.0 * rng.normal(size=(num, dim)), rng.permutation(np.arange(num) % 2)
    of = rng.integers(0, num, n)
    return place[of] + 0.3 * rng.normal(size=(n, dim)), value[of]


@pytest.mark.parametrize("attacker", READERS)
def test_neighbours_who_agree_are_read_where_means_and_covariances_say_nothing(attacker):
    z, y = clusters()
    assert auc(z, y, attacker) > 0.95
    assert abs(auc(z, y, "linear") - 0.5) < 0.1


def test_length_alone_and_direction_alone_are_read():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1_000)
    z = rng.normal(size=(1_000, 5))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    longer = z * np.where(y, 2.0, 1.0)[:, None]
    assert auc(longer, y, "links") > 0.95
    # two opposite directions of one value: no mean, but cosines
    turned = z + np.where(y, 1.5, 0.0)[:, None] * np.array([1.0, 0, 0, 0, 0]) * rng.choice([-1, 1], (1_000, 1))
    assert auc(turned, y, "links") > 0.75


@pytest.mark.parametrize("attacker", READERS)
def test_edges_are_never_looked_at(attacker):
    assert not find("audit.attackers", attacker).knows_edges
    z, y = people(400, 3)
    edges = np.random.default_rng(0).integers(0, 400, (2, 900))
    one, two = (attacked(z, y, attacker, edges=e) for e in (None, edges))
    np.testing.assert_array_equal(one.probability, two.probability)


@pytest.mark.parametrize("attacker", READERS)
def test_ninety_seven_values_and_groups_of_one(attacker):
    z, y = people(293, 97, dim=8)
    y[:-1] = np.arange(292) % 96  # one person of the last value
    y[-1] = 96
    z = z + 3.0 * np.random.default_rng(1).normal(size=(97, 8))[y]
    found = attacked(z, y, attacker, calibrate=False)
    assert found.probability.shape[1] == len(np.unique(y)) and np.isfinite(found.probability).all()
    hit = (found.label == found.truth).mean()
    assert hit > 0.2


def test_people_of_unknown_value_take_no_part():
    z, y = clusters(800, 40)
    codes = y.copy()
    codes[::5] = UNKNOWN
    split = probe_split(attribute("g", codes, num_values=2))
    plain = attack(z.astype(np.float32), split.classes, split.train, split.test, attacker="links")
    z[::5] = 100.0 * np.random.default_rng(0).normal(size=z[::5].shape)
    moved = attack(z.astype(np.float32), split.classes, split.train, split.test, attacker="links")
    np.testing.assert_array_equal(plain.probability, moved.probability)
    assert macro_auc(plain, ("a", "b")).value > 0.9


def shop_of(z, y, num_items=60):
    """People who buy at random."""
    rng = np.random.default_rng(0)
    n = len(y)
    edges, _, _ = simple_edges(np.repeat(np.arange(n), 5), n + rng.integers(0, num_items, 5 * n), n + num_items)
    codes = np.append(y, np.full(num_items, -2))
    whole = np.concatenate([z, rng.normal(size=(num_items, z.shape[1]))]).astype(np.float32)
    made = attribute("g", codes, side="users", num_values=2)
    return AttributedGraph("shop", n + num_items, edges, (made,), num_users=n), whole


def test_of_a_bipartite_graph_people_are_held_against_people():
    z, y = clusters(600, 60)
    graph, whole = shop_of(z, y)
    leaks = audit_embedding(whole, graph, split_links(graph), attackers=("linear", "links"), parts=("leakage",))
    assert leaks.find(metric="auc", attacker="links").value > 0.9
    whole[600:] = 1e3
    moved = audit_embedding(whole, graph, split_links(graph), attackers=("links",), parts=("leakage",))
    values = [a.find(metric="auc", attacker="links").value for a in (leaks, moved)]
    assert values[0] == values[1]


def test_the_worst_row_names_its_set_without_who_knows_edges_or_is_no_default():
    z, y = clusters(300, 30)
    n = len(y)
    source, target = np.random.default_rng(0).integers(0, n, (2, 4 * n))
    # neighbours in the graph tell the value, which nobody but `graph` may look at
    keep = y[source] == y[target]
    graph = AttributedGraph("g", n, simple_edges(source[keep], target[keep], n)[0], (attribute("g", y),))
    noise = np.random.default_rng(1).normal(size=z.shape).astype(np.float32)
    tried = ("linear", "links", "knn", "graph")
    audit = audit_embedding(noise, graph, split_links(graph), attackers=tried, parts=("leakage",))
    for metric in ("auc", "micro_f1", "balanced_accuracy", "usable_bits"):
        rows = {r.attacker: r for r in audit.select(metric=metric, variant="standard")}
        worst = rows["worst"]
        assert worst.value == max(rows["linear"].value, rows["links"].value)
        assert "of linear, links; the interval holds for the choice of the largest" in worst.note
    assert {"links", "linked-trees", "rbf"} <= set(DEFAULT_ATTACKERS)
    assert not {"graph", "knn", "mlp"} & set(DEFAULT_ATTACKERS) and {"graph", "knn", "mlp"} <= set(
        names("audit.attackers")
    )


def test_radial_functions_read_a_rotated_quadratic_form():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1_000, 8))
    half = rng.normal(size=(8, 8))
    y = (np.einsum("ni,ij,nj->n", z, half - half.T @ half / 8, z) > -7).astype(np.int64)
    assert auc(z, y, "rbf") > auc(z, y, "linear") + 0.1
    assert measure(attacked(z, y, "rbf"), ("a", "b"))["usable_bits"].value > 0.05
