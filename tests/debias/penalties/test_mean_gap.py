import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference import mean_gap as slow
from strategies import graphs
from toys import inputs, path_graph

from uge_core.debias.methods._options import mean_gap
from uge_core.errors import ConfigError
from uge_core.registry import build_options, find

EXACT = {
    "item_cells": "none",
    "pair_weighting": "pairs",
    "norm": "squared",
    "estimator": "exact",
    "num_group_pairs": 0,
    "scores": "raw",
}


def penalty(graph, sensitive=("gender",), **options):
    return mean_gap(inputs(graph, sensitive), **{**EXACT, **options})


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_path_by_hand():
    # z = 1 1 2 2, raw dot products: Q = 1, 2, 2, 4 for aa, ab, ba, bb, Q~ = (3/2)^2 = 9/4. Absolute gap over
    # 16 pairs: 4 * (5/4 + 1/4 + 1/4 + 7/4) = 14, mean 7/8; squared: 4 * (25 + 1 + 1 + 49) / 16 / 16 = 19/16.
    z = torch.tensor([[1.0], [1.0], [2.0], [2.0]])
    assert float(penalty(path_graph(), norm="absolute")(z, generator())) == pytest.approx(7 / 8)
    assert float(penalty(path_graph())(z, generator())) == pytest.approx(19 / 16)


@given(
    graphs(),
    st.sampled_from([("gender",), ("gender", "city")]),
    st.sampled_from(["squared", "absolute"]),
    st.sampled_from(["pairs", "cells"]),
    st.data(),
)
def test_equals_the_double_loop(graph, sensitive, norm, weighting, data):
    z = data.draw(arrays(np.float32, (graph.num_nodes, 3), elements=st.floats(-2, 2, width=32)))
    codes = {a.name: a.codes.tolist() for a in graph.attributes}
    side = [0 if graph.num_users is None or i < graph.num_users else 1 for i in range(graph.num_nodes)]
    full = list(zip(side, *codes.values(), strict=True))
    rest = list(zip(side, *[c for n, c in codes.items() if n not in sensitive], strict=True))
    exact = slow(z, full, rest, norm=norm, weighting=weighting, num_users=graph.num_users)
    ours = float(penalty(graph, sensitive, norm=norm, pair_weighting=weighting)(torch.tensor(z), generator()))
    assert ours == pytest.approx(exact, rel=1e-4, abs=1e-5)


@given(graphs())
def test_zero_without_sensitive_attributes_and_for_equal_rows(graph):
    z = torch.randn(graph.num_nodes, 3, generator=generator())
    assert float(penalty(graph, ())(z, generator())) == pytest.approx(0, abs=1e-6)
    assert float(penalty(graph)(torch.ones(graph.num_nodes, 3), generator())) == pytest.approx(0, abs=1e-6)


def test_gradient_is_that_of_the_double_loop():
    graph = path_graph()
    z = torch.randn(4, 3, generator=generator(), requires_grad=True)
    penalty(graph)(z, generator()).backward()
    step, numeric = 1e-3, torch.zeros(4, 3)
    for i in range(4):
        for j in range(3):
            up, down = z.detach().double().numpy().copy(), z.detach().double().numpy().copy()
            up[i, j] += step
            down[i, j] -= step
            labels = [0, 0, 1, 1], [0] * 4
            numeric[i, j] = (slow(up, *labels) - slow(down, *labels)) / (2 * step)
    torch.testing.assert_close(z.grad, numeric, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("weighting", ["pairs", "cells"])
def test_the_sampled_estimator_has_the_exact_mean(weighting):
    graph = path_graph()
    z = torch.randn(4, 3, generator=generator(3))
    exact = float(penalty(graph, pair_weighting=weighting)(z, generator()))
    g = generator(1)
    sampled = penalty(graph, pair_weighting=weighting, estimator="sampled", num_group_pairs=4000)
    assert float(sampled(z, g)) == pytest.approx(exact, rel=0.1)


def test_sigmoid_scores_are_near_their_enumerated_gap():
    graph = path_graph()
    z = torch.randn(4, 3, generator=generator(3))
    p = torch.sigmoid(z @ z.T)
    group = torch.tensor([0, 0, 1, 1])
    q = torch.stack([torch.stack([p[group == a][:, group == b].mean() for b in (0, 1)]) for a in (0, 1)])
    exact = float((q - p.mean()).square().mean())
    sampled = penalty(graph, estimator="sampled", num_group_pairs=2000, scores="sigmoid")
    assert float(sampled(z, generator(1))) == pytest.approx(exact, rel=0.25)


def test_sigmoid_scores_need_the_sampled_estimator():
    method = build_options(find("debias.methods", "uge-r"), {"scores": "sigmoid"}, "uge-r")
    with pytest.raises(ConfigError, match="estimator=sampled"):
        method.check(inputs(path_graph()), "cross-entropy")
