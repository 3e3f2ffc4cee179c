from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import log_linear_slope, negative_binomial
from strategies import graphs
from toys import inputs, path_graph

from uge_core.debias.bias_free import Counts
from uge_core.debias.learned_ratio import smooth
from uge_core.debias.methods.uge_l import UGEL
from uge_core.debias.methods.uge_w import UGEW


def town(seed=0, sizes=(4, 5), effect=1.0, density=0.01, joint=0.0):
    """Cells of two attributes whose log rate is a sum of pairwise effects, and a joint part where asked."""
    rng = np.random.default_rng(seed)
    values = np.array(list(product(*(range(s) for s in sizes))))
    nodes = rng.integers(20, 200, len(values)).astype(float)
    log_rate = np.zeros((len(values), len(values)))
    for k, m in product(range(2), repeat=2):
        if k <= m:
            table = rng.normal(size=(sizes[k], sizes[m])) * effect / 2
            part = table[values[:, k]][:, values[:, m]]
            log_rate += part + part.T
    noise = np.triu(rng.normal(size=log_rate.shape)) * joint
    log_rate += noise + noise.T
    pairs = np.outer(nodes, nodes)
    mean = density * pairs * np.exp(log_rate)
    upper = np.triu(rng.poisson(mean / np.where(np.eye(len(values)), 2, 1)))
    edges = (upper + upper.T).astype(float)
    coarse = values[:, 1].astype(np.int64)
    return Counts(nodes, pairs, edges, coarse), values, mean


def log_error(edges, mean):
    """Mean squared error of log rates over cells, half an edge where there is none."""
    return float(np.square(np.log(np.maximum(edges, 0.5)) - np.log(mean)).mean())


def test_thin_cells_are_nearer_the_truth_than_their_own_counts():
    counts, values, truth = town(density=3e-4)
    assert (counts.edges < 5).mean() > 0.5  # thin indeed
    assert log_error(smooth(counts, values).counts.edges, truth) < 0.4 * log_error(counts.edges, truth)


def test_an_estimate_beats_both_the_counts_and_the_model_where_cells_stray():
    counts, values, truth = town(density=1e-3, joint=0.5)
    learned = smooth(counts, values)
    assert log_error(learned.counts.edges, truth) < 0.7 * min(
        log_error(counts.edges, truth), log_error(learned.mean, truth)
    )


def test_cells_with_many_edges_keep_what_only_their_combination_does():
    counts, values, truth = town(density=0.5, joint=0.5)
    learned = smooth(counts, values)
    assert log_error(learned.counts.edges, truth) < 0.01 < log_error(learned.mean, truth)
    # and without such a part the model's mean is taken
    plain, values, truth = town(density=1e-3)
    assert smooth(plain, values).size > 50 * learned.size


def test_margins_of_two_values_are_those_observed_but_for_the_prior():
    counts, values, _ = town(density=0.1)
    mean = smooth(counts, values).mean
    for k, m in ((0, 0), (0, 1), (1, 1)):
        a, b = 1, 2
        expected = sum(
            counts.edges[i, j] for i, j in product(range(20), repeat=2) if values[i][k] == a and values[j][m] == b
        )
        # at the optimum the difference is the effect itself, which the prior holds at a few units at most
        assert abs(log_linear_slope(mean, counts.edges, values.tolist(), k, m, a, b)) < 5 < 0.01 * expected


def test_the_dispersion_is_the_likeliest():
    counts, values, _ = town(density=0.05, joint=0.5)
    learned = smooth(counts, values)
    at = [(i, j) for i in range(20) for j in range(i, 20)]
    half = [2.0 if i == j else 1.0 for i, j in at]
    seen = [counts.edges[c] / h for c, h in zip(at, half, strict=True)]
    mean = [learned.mean[c] / h for c, h in zip(at, half, strict=True)]
    best = negative_binomial(seen, mean, learned.size)
    assert all(best >= negative_binomial(seen, mean, learned.size * f) for f in (0.5, 0.9, 1.1, 2.0))


def test_one_attribute_with_many_edges_is_the_table():
    nodes = np.array([300.0, 500.0])
    edges = np.array([[4000.0, 1500.0], [1500.0, 9000.0]])
    counts = Counts(nodes, np.outer(nodes, nodes), edges, np.zeros(2, np.int64))
    np.testing.assert_allclose(smooth(counts, np.array([[0], [1]])).counts.edges, edges, rtol=2e-3)


@settings(max_examples=30)
@given(graphs(unknown=True), st.sampled_from([("gender",), ("gender", "city")]), st.sampled_from(["offset", "weights"]))
def test_every_graph_gets_finite_symmetric_tables(graph, sensitive, use):
    known = inputs(graph, sensitive)
    table = UGEL(use=use, item_cells="none").cells(known)
    for part in (table.weight, table.offset):
        assert np.isfinite(part).all() and part == pytest.approx(part.T, rel=1e-3, abs=1e-3)
    other = UGEW().cells(known)
    assert table.uncovered_mass == other.uncovered_mass and table.thin_mass == 0
    neutral = table.offset if use == "weights" else table.weight - 1
    assert not neutral.any() and (table.weight[-1] == 1).all() and (table.offset[-1] == 0).all()


def test_without_an_edge_between_known_nodes_nothing_is_learnt():
    counts = Counts(np.ones(2), np.ones((2, 2)), np.zeros((2, 2)), np.zeros(2, np.int64))
    assert smooth(counts, np.array([[0], [1]])).counts is counts


def test_offset_and_weights_are_one_anothers_inverse_but_for_the_mean():
    known = inputs(path_graph())
    weights, offset = UGEL(use="weights").cells(known).weight, UGEL().cells(known).offset
    part, counts = known.joint()
    learned = smooth(counts, part.values).counts
    np.testing.assert_allclose(np.exp(-offset[:2, :2]), learned.expected / learned.edges, rtol=1e-5)
    ratio = np.exp(-offset[:2, :2]) / weights[:2, :2]
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-5)


@given(graphs(unknown=True))
def test_weights_are_one_on_average(graph):
    known = inputs(graph, unknown="exclude")
    cells = UGEL(use="weights", item_cells="none").cells(known)
    with_values = (cells.group < len(cells.weight) - 1)[graph.edges].all(0)
    if with_values.any():
        assert cells.edge_weight(graph.edges[:, with_values]).mean() == pytest.approx(1.0, abs=1e-5)
