"""Strangers of a kind: the right ones, each as likely, and as many as asked."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from uge_core.graph.graph import AttributedGraph
from uge_core.graph.strangers import Strangers


@given(graphs(max_nodes=12, unknown=True), st.integers(0, 99))
def test_they_are_the_ones_that_loops_find(graph, seed):
    rng = np.random.default_rng(seed)
    cell = rng.integers(-1, 3, graph.num_nodes)
    target, friend = np.meshgrid(np.arange(graph.num_nodes), np.nonzero(cell >= 0)[0])
    target, friend = target.ravel(), friend.ravel()
    strangers = Strangers(graph, cell, np.arange(graph.num_nodes))
    number = strangers.count(target, cell[friend])
    length = rng.integers(0, number + 1)
    drawn = strangers.draw(target, cell[friend], length, rng)
    for u, v, n, size, listed in zip(target, friend, number, length, drawn, strict=True):
        right = reference.strangers_like(graph, u, v, cell)
        assert n == len(right)
        assert set(listed[:size].tolist()) <= right and len(set(listed[:size].tolist())) == size
        assert (listed[size:] == -1).all()


def test_every_set_is_as_likely():
    # Node 0 is tied to 2 and 5; of 1, 3, 4, 6 and 7 three are drawn: ten sets.
    graph = AttributedGraph("g", 8, np.array([[0, 0], [2, 5]]))
    times = 20_000
    zeros = np.zeros(times, np.int64)
    drawn = Strangers(graph, np.zeros(8, np.int64), np.arange(8)).draw(
        zeros, zeros, zeros + 3, np.random.default_rng(0)
    )
    found = Counter(tuple(sorted(row)) for row in drawn.tolist())
    assert set(found) == set(combinations([1, 3, 4, 6, 7], 3))
    assert sum((n - times / 10) ** 2 / (times / 10) for n in found.values()) < 27.9  # chi-squared, 9 df, p = .001


def test_a_hub_has_few_strangers_in_a_large_cell():
    others = np.arange(1, 4000)
    graph = AttributedGraph("star", 4003, np.stack([np.zeros(3999, np.int64), others]))
    zero = np.zeros(1, np.int64)
    strangers = Strangers(graph, np.zeros(4003, np.int64), np.arange(4003))
    assert strangers.count(zero, zero).tolist() == [3]
    assert sorted(strangers.draw(zero, zero, zero + 3, np.random.default_rng(0))[0]) == [4000, 4001, 4002]


@pytest.mark.parametrize("cell", [np.full(4, -1), np.array([0, -1, -1, -1])])
def test_nobody_to_draw(cell):
    graph = AttributedGraph("g", 4, np.array([[0], [1]]))
    none = np.zeros(0, np.int64)
    strangers = Strangers(graph, cell, np.arange(graph.num_nodes))
    assert strangers.draw(none, none, none, np.random.default_rng(0)).shape == (0, 0)
    if cell.max() >= 0:
        assert strangers.count(np.array([0]), np.array([0])).tolist() == [0]
