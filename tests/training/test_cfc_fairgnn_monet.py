"""CFC, FairGNN and MONET as they train: what they hide, what they leave, and that a run can go on."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from strategies import attribute
from toys import config, inputs, run, run_all, shop, town

from uge_core.graph.graph import AttributedGraph, simple_edges
from uge_core.graph.values import soft_values
from uge_core.registry import build_options, find
from uge_core.training.checkpoint import Checkpoint

RIVALS = ("cfc", "fairgnn", "monet")


def clubs(n=300, seed=0):
    """People of three communities and two clubs, both of which shape the links."""
    rng = np.random.default_rng(seed)
    community, club = rng.integers(0, 3, n), rng.integers(0, 2, n)
    u, v = rng.integers(0, n, 12000), rng.integers(0, n, 12000)
    chance = np.where(community[u] == community[v], 0.6, 0.05) * np.where(club[u] == club[v], 1.0, 0.2)
    keep = rng.random(12000) < chance
    edges, _, _ = simple_edges(u[keep], v[keep], n)
    return AttributedGraph("clubs", n, edges, (attribute("club", club),)), club, community


def told(z, value):
    """How often fresh attackers are right on the other half of the people: a linear one and the nearest neighbours."""
    half = np.arange(len(z)) % 2 == 0
    x = StandardScaler().fit_transform(z)
    attackers = LogisticRegression(), KNeighborsClassifier(15)
    return [m.fit(x[half], value[half]).score(x[~half], value[~half]) for m in attackers]


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["node2vec", "gcn"])
def test_cfc_hides_what_the_links_tell_otherwise(backbone):
    graph, club, community = clubs()
    options = {"filter_chance": 1.0}
    plain, hidden = run(
        graph,
        *(
            config(graph, "cfc", backbone, "club", lam=x, epochs=100, exposure="seen", options=options)
            for x in (0.0, 1.0)
        ),
    )
    # two clubs: .5 by chance; of 300 people, and an adversary's course differs from one processor to the next
    assert min(told(plain.embedding, club)) > 0.85 and max(told(hidden.embedding, club)) < 0.78
    # its own discriminator: near 0 where it reads all, near -1 where it knows the shares alone
    assert plain.history["penalty"][-1] > -0.1 and hidden.history["penalty"][-1] == pytest.approx(-1, abs=0.2)
    # the rest of what shapes the links is still there
    assert min(told(hidden.embedding, community)) > 0.55  # of three by chance 0.33


@pytest.mark.slow
def test_fairgnn_hides_from_a_linear_attacker_and_takes_the_covariance_down():
    graph, club, _ = clubs()
    common = {"epochs": 100, "exposure": "seen"}
    plain, hidden = run(graph, *(config(graph, "fairgnn", sensitive="club", lam=x, **common) for x in (0.0, 1.0)))
    assert told(plain.embedding, club)[0] > 0.9 and told(hidden.embedding, club)[0] < 0.7
    method = build_options(find("debias.methods", "fairgnn"), {}, "fairgnn")
    penalty = method.penalty(inputs(graph, ("club",)))

    def covariance(z):
        import torch

        return float(penalty.covariance(torch.tensor(z)))

    assert covariance(hidden.embedding) < 0.1 * covariance(plain.embedding)


def test_monet_leaves_nothing_linear_of_what_it_saw():
    graph, club, community = clubs()
    common = {"epochs": 100, "exposure": "seen"}
    plain, monet = run_all(
        graph, config(graph, sensitive="club", **common), config(graph, "monet", sensitive="club", **common)
    )
    shares = np.eye(2)[club].T

    def leak(z):
        return np.abs(shares @ z).max() / np.linalg.norm(shares) / np.linalg.norm(z)

    assert leak(monet.embedding) < 1e-4 and leak(plain.embedding) > 0.05
    # equal means leave a balanced linear fit on those people without a slope
    fitted = LogisticRegression(class_weight="balanced").fit(StandardScaler().fit_transform(monet.embedding), club)
    assert np.abs(fitted.coef_).max() < 1e-3
    assert min(told(monet.embedding, community)) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("method", RIVALS)
@pytest.mark.parametrize("make", [town, shop])
def test_same_seed_same_bits(method, make):
    graph = make()
    a, b = (run(graph, config(graph, method, epochs=8))[0] for _ in range(2))
    assert (a.embedding == b.embedding).all() and (a.twin == b.twin).all()
    assert (run(graph, config(graph, method, seed=1, epochs=8))[0].embedding != a.embedding).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "pass_of", [("cfc", "fairgnn", "fairdrop"), ("monet",), ("leace", "uge-ork", "uge-g", "debayes")], ids="-".join
)
@pytest.mark.parametrize("backbone", ["node2vec", "gcn"])
def test_a_training_that_was_cut_off_goes_on_to_the_same_bits(backbone, pass_of, tmp_path):
    graph = town()
    configs = [config(graph, m, backbone, epochs=12) for m in pass_of]
    whole = run(graph, *configs)

    def stop(progress):
        if progress.epoch == 7:
            raise KeyboardInterrupt

    keep = Checkpoint(tmp_path, list(pass_of))
    with pytest.raises(KeyboardInterrupt):
        run(graph, *configs, checkpoint=keep, on_epoch=stop)
    for a, b in zip(whole, run(graph, *configs, checkpoint=keep), strict=True):
        assert b.diagnostics["resumed_at_epoch"] == [7]
        np.testing.assert_array_equal(a.embedding, b.embedding)
        np.testing.assert_array_equal(a.twin, b.twin)


@pytest.mark.parametrize("method", ["cfc", "fairgnn"])
def test_members_that_go_on_from_one_end_learn_apart(method):
    graph = town()
    warm = {"epochs": 6, "exposure": "seen", "warm_from": 0.5, "warm_epochs": 4}
    path = [config(graph, method, lam=lam, **warm) for lam in (0.1, 20.0)]
    for alone, beside in zip([run(graph, c)[0] for c in path], run(graph, *path), strict=True):
        np.testing.assert_allclose(beside.embedding, alone.embedding, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", RIVALS)
def test_items_are_neither_filtered_nor_asked(method):
    graph = shop()
    told_of = inputs(graph, ("gender",))
    made = build_options(find("debias.methods", method), {}, method)
    penalty = made.penalty(told_of)
    answers = getattr(penalty, "answers", ())
    assert all(a.nodes.max() < graph.num_users for a in answers) and bool(answers) == (method != "monet")


def test_soft_values_are_the_posterior_of_who_is_not_known():
    graph = town()
    hidden = np.arange(90) % 5 == 0
    seen = inputs(graph, ("city",), hidden=hidden).sensitive[0]
    soft = soft_values(seen, graph, graph.edges)
    truth = graph.attribute("city").codes
    np.testing.assert_array_equal(soft[~hidden], np.eye(3)[truth[~hidden]])
    np.testing.assert_allclose(soft.sum(1), 1, rtol=1e-5)
    assert (soft[hidden].max(1) < 1).any() and (soft[hidden].argmax(1) == truth[hidden]).mean() > 0.6
    # by hand for one of them: shares of the values times, for each neighbour whose value is known, R with two
    # pseudo-edges
    person, known = 0, np.where(hidden, -1, truth)
    u, v = np.concatenate([graph.edges, graph.edges[::-1]], axis=1)
    sizes = np.bincount(known[known >= 0], minlength=3)
    both = (known[u] >= 0) & (known[v] >= 0)
    counts = np.array([[((known[u] == a) & (known[v] == b) & both).sum() for b in range(3)] for a in range(3)])
    ratio = (counts + 2) / (counts.sum() * np.outer(sizes, sizes) / sizes.sum() ** 2 + 2)
    chance = sizes / sizes.sum()
    for neighbour in v[u == person]:
        if known[neighbour] >= 0:
            chance = chance * ratio[:, known[neighbour]]
    np.testing.assert_allclose(soft[person], chance / chance.sum(), rtol=1e-5)


def test_items_have_no_soft_values():
    graph = shop()
    seen = inputs(graph, ("gender",), hidden=np.arange(80) % 5 == 0).sensitive[0]
    soft = soft_values(seen, graph, graph.edges)
    assert (soft[50:] == 0).all()
    np.testing.assert_allclose(soft[:50].sum(1), 1, rtol=1e-5)
