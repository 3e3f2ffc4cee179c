"""Calibrated probabilities: by hand, against scikit-learn and double loops, and that no length of vectors moves them."""

import math

import numpy as np
import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import attribute
from toys import links, people

from uge_core.audit import calibrated
from uge_core.audit.parity import dp_cells, eo_cells
from uge_core.graph.graph import NOT_APPLICABLE, AttributedGraph, simple_edges
from uge_core.graph.scores import Cosine, Distance, Factors
from uge_core.graph.split import LinkSplit, split_links


def community(n=400, seed=0, degree=20.0):
    """People whose vectors make their links; half of all scores are above the others."""
    rng = np.random.default_rng(seed)
    codes, z, activity = people(rng, n, 0.6)
    graph = AttributedGraph("community", n, links(rng, z, activity, degree), (attribute("city", codes),))
    return graph, z, split_links(graph, test_share=0.2)


def market(users=150, items=90, seed=0):
    """Users and items with a vector each."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(users + items, 3)).astype(np.float32)
    u, v = rng.integers(0, users, 6000), rng.integers(users, users + items, 6000)
    kept = rng.random(6000) < 1 / (1 + np.exp(2 - 1.5 * np.einsum("ed,ed->e", z[u], z[v])))
    edges, _, _ = simple_edges(u[kept], v[kept], users + items)
    codes = np.concatenate([rng.integers(-1, 3, users), np.full(items, NOT_APPLICABLE)])
    values = (attribute("gender", codes, side="users"),)
    graph = AttributedGraph("market", users + items, edges, values, num_users=users)
    return graph, z, split_links(graph, test_share=0.3)


def test_line_by_hand():
    # Of scores of 1 three in four are links, of scores of -1 one in four: log odds of ln 3 and -ln 3.
    score = np.array([1.0, 1, 1, 1, -1, -1, -1, -1])
    linked = np.array([True, True, True, False, True, False, False, False])
    assert calibrated.fit_line(score, linked) == pytest.approx((math.log(3), 0.0), abs=1e-12)


@given(st.integers(0, 9999), st.integers(4, 300), st.floats(-2, 6), st.booleans())
def test_line_is_scikit_learns_without_a_penalty(seed, n, shift, heavy):
    rng = np.random.default_rng(seed)
    linked = np.arange(n) % 2 == 0
    score = (rng.standard_t(2, n) if heavy else rng.normal(size=n)) + shift * linked
    score = (score - score.mean()) / score.std()
    assume(score[linked].min() < score[~linked].max() and score[linked].max() > score[~linked].min())
    slope, intercept = calibrated.fit_line(score, linked)
    expected = reference.calibrated_line(score, linked)
    assert (slope, intercept) == pytest.approx(expected, rel=1e-4, abs=1e-6)
    # the likelihood's derivatives are 0
    p = np.array([reference.sigmoid(slope * s + intercept) for s in score])
    assert [((p - linked) * x).mean() for x in (score, 1.0)] == pytest.approx([0, 0], abs=1e-9)


@pytest.mark.parametrize("make", [community, market])
@pytest.mark.parametrize("offset", [0.0, 100.0, -1e4])
def test_factors_give_the_fitted_log_odds(make, offset):
    graph, z, split = make()
    scale = offset * (z @ z.T).std()
    left = np.hstack([z, np.full((len(z), 1), np.sqrt(abs(scale)))])
    right = left * np.append(np.ones(z.shape[1]), np.sign(scale))
    if graph.bipartite:
        # an offset need not be shared evenly between the sides
        left[: graph.num_users, -1] *= 50
        right[graph.num_users :, -1] /= 50
        left[graph.num_users :, -1] /= 50
        right[: graph.num_users, -1] *= 50
    given_factors = Factors(left.astype(np.float32), right.astype(np.float32))
    found = calibrated.fit(given_factors, graph, split, 0)
    u = np.arange(graph.num_users or graph.num_nodes)
    v = np.arange(graph.num_users or 0, graph.num_nodes)
    u, v = (x.ravel() for x in np.meshgrid(u, v))
    score = given_factors.scores(u, v)
    standard = (score - found.mean) / found.sd
    odds = found.factors.scores(u, v)
    intercept = np.median(odds - found.slope * standard)
    p, expected = (1 / (1 + np.exp(-x)) for x in (odds, found.slope * standard + intercept))
    assert np.abs(p - expected).max() < 1e-5
    assert odds == pytest.approx(found.factors.scores(v, u), abs=1e-5)
    assert 0.1 < found.spread < 1 and expected.std() > 0.05


@pytest.mark.parametrize("make", [community, market])
def test_cells_are_means_over_double_loops(make):
    graph, z, split = make()
    codes = graph.attributes[0].codes
    found = calibrated.fit(z, graph, split, 3)
    fitted_on = ~np.isin(key(split.test), key(found.tested))
    assert fitted_on.sum() == found.n == round(0.2 * split.test.shape[1])
    odds = found.factors.scores

    def score(_, u, v):
        return float(odds(np.array([u]), np.array([v]))[0])

    by_hand = reference.dp_cells(z, graph.num_nodes, codes, graph.num_users, score)
    held = reference.eo_cells(z, found.tested, codes, graph.num_users, score)
    for table, expected in (
        (dp_cells(found.factors, graph, {"x": codes})["x"], by_hand),
        (eo_cells(found.factors, graph, {"x": codes}, found.tested)["x"], held),
    ):
        for i, n in enumerate(table.n.tolist()):
            cell = int(table.a[i]) if table.b is None else (int(table.a[i]), int(table.b[i]))
            assert (table.mean[i], n) == pytest.approx(expected[cell], abs=2e-6)


def key(edges):
    return edges[0] * 100_000 + edges[1]


def turned(z, seed=0):
    """Turned about the origin."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(z.shape[1], z.shape[1])))
    return (z @ q).astype(np.float32)


def raised(z):
    """All scores higher by a hundred of their standard deviations."""
    score = z.astype(float) @ z.T.astype(float)
    return np.hstack([z, np.full((len(z), 1), np.sqrt(100 * score.std()), np.float32)])


CHANGES = {
    "short": lambda z: z * np.float32(1e-6),
    "long": lambda z: z * np.float32(100),
    "turned": turned,
    "raised": raised,
}


@pytest.mark.processors
@pytest.mark.parametrize("change", CHANGES)
def test_no_scale_offset_or_turn_moves_probabilities(change):
    graph, z, split = community()
    groups = {"city": graph.attributes[0].codes}
    first, second = (calibrated.fit(x, graph, split, 0) for x in (z, CHANGES[change](z)))
    assert second.slope == pytest.approx(first.slope, rel=1e-5)
    assert second.spread == pytest.approx(first.spread, rel=1e-5)
    before, after = (dp_cells(f.factors, graph, groups)["city"].mean for f in (first, second))
    assert after == pytest.approx(before, abs=1e-5) and np.ptp(before) > 0.02
    before, after = (eo_cells(f.factors, graph, groups, f.tested)["city"].mean for f in (first, second))
    assert after == pytest.approx(before, abs=1e-5)


def test_other_scorers_are_calibrated_alike():
    graph, z, split = community()
    near = Distance().factors(z)
    found = calibrated.fit(near, graph, split, 0)
    u, v = np.triu_indices(60, 1)
    odds, score = found.factors.scores(u, v), near.scores(u, v)
    assert np.ptp(odds - found.slope * score / found.sd) < 1e-4


def test_what_is_fitted_on():
    graph, z, _ = community()
    with_validation = split_links(graph, test_share=0.2, validation_share=0.1)
    found = calibrated.fit(z, graph, with_validation, 0)
    assert found.n == with_validation.validation.shape[1] >= 100
    assert np.array_equal(found.tested, with_validation.test) and "validation links" in found.words
    few = split_links(graph, test_share=0.2, validation_share=0.02)
    assert few.validation.shape[1] < 100
    found = calibrated.fit(z, graph, few, 0)
    assert found.n + found.tested.shape[1] == few.test.shape[1] and "a fifth of the held-out links" in found.words
    assert not np.array_equal(found.tested, calibrated.fit(z, graph, few, 1).tested)
    assert np.array_equal(found.tested, calibrated.fit(-z, graph, few, 0).tested)
    unknown = calibrated.fit(z, graph, None, 0)
    assert unknown.n + unknown.tested.shape[1] == graph.num_edges and "training may have seen" in unknown.words


def test_strangers_have_no_edge_in_any_part(monkeypatch):
    graph, z, _ = community(n=40, degree=30.0)
    asked = []
    scores = Factors.scores
    monkeypatch.setattr(Factors, "scores", lambda self, u, v: asked.append((u, v)) or scores(self, u, v))
    found = calibrated.fit(z, graph, None, 0)
    (u, v) = np.array(asked[0])
    strangers = key(np.sort([u[found.n :], v[found.n :]], axis=0))
    assert len(np.unique(strangers)) == len(strangers) == found.n
    assert not np.isin(strangers, key(graph.edges)).any() and (u != v).all()


def test_too_few_links_are_no_calibration():
    graph, z, split = community()
    short = LinkSplit(split.train, split.validation, split.test[:, :249], 0)
    assert calibrated.fit(z, graph, short, 0).n == 50 and calibrated.fit(z, graph, short, 0).why is None
    short = LinkSplit(split.train, split.validation, split.test[:, :240], 0)
    found = calibrated.fit(z, graph, short, 0)
    assert found.factors is None and found.slope is None and found.spread is None
    assert "48 links" in found.why and "50" in found.why
    nothing = LinkSplit(split.train, split.validation, split.test[:, :0], 0)
    assert "no link" in calibrated.fit(z, graph, nothing, 0).why


def scored_by(graph, inside):
    """An embedding with the score of each pair in a matrix (N, N)."""
    return Factors(inside.astype(np.float32), np.eye(graph.num_nodes, dtype=np.float32))


def test_why_nothing_is_fitted():
    graph, z, _ = community(n=120, degree=20.0)
    adjacent = np.zeros((120, 120))
    adjacent[graph.edges[0], graph.edges[1]] = adjacent[graph.edges[1], graph.edges[0]] = 1.0
    luck = np.random.default_rng(0).random((120, 120))
    luck += luck.T
    for score, words in (
        (adjacent + 0.1 * luck, "every link scores higher"),
        (adjacent, "every link scores higher"),
        (-adjacent, "not above 0"),
        (luck - 10 * adjacent, "not above 0"),
        (luck - 0.3 * adjacent, "not above 0"),
        (np.ones((120, 120)), "same score"),
        (np.zeros((120, 120)), "same score"),
    ):
        found = calibrated.fit(scored_by(graph, score), graph, None, 0)
        assert found.factors is None and found.slope is None and found.spread is None and words in found.why
        assert found.mean is not None and found.sd is not None
    found = calibrated.fit(scored_by(graph, luck + 0.3 * adjacent), graph, None, 0)
    assert found.why is None and found.slope > 0
    whole, _, _ = simple_edges(*np.triu_indices(30, 1), 30)
    assert "every pair has an edge" in calibrated.fit(z[:30], AttributedGraph("whole", 30, whole), None, 0).why


def test_equal_vectors_of_other_lengths_have_no_spread_of_cosines():
    # their cosines differ by rounding alone
    graph, _, split = community()
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1, 7)) * rng.random((400, 1))
    found = calibrated.fit(Cosine().factors(rows.astype(np.float32)), graph, split, 0)
    assert 0 < found.sd < 1e-6 and "same score" in found.why


@pytest.mark.processors
@pytest.mark.parametrize(("share", "times"), [(0.01, 100.0), (0.01, 1e4), (0.003, 1e6)])
def test_a_few_huge_vectors_buy_no_calibration(share, times):
    """They would take the slope of all others towards 0, and every gap with it."""
    graph, z, split = community(2_000)
    assert calibrated.fit(z, graph, split, 0).why is None
    rng = np.random.default_rng(4)
    few = rng.permutation(len(z))[: max(int(share * len(z)), 4)]
    turned_round, direction = z.copy(), rng.normal(size=z.shape[1])
    turned_round[few] = times * direction * np.where(np.arange(len(few)) % 2, 1.0, -1.0)[:, None] * z.std()
    found = calibrated.fit(turned_round, graph, split, 0)
    assert found.factors is None and found.why is not None
    assert "a few scores far from the others rule the calibration" in found.why or "slope is not above 0" in found.why


def test_what_training_gives_is_ruled_by_no_few():
    """Normal vectors, and a cosine, whose scores are bounded."""
    graph, z, split = community(2_000)
    for scored in (z, Cosine().factors(z)):
        assert calibrated.fit(scored, graph, split, 0).why is None
