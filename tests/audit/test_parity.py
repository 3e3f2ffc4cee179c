"""DP and EO: by hand, against double loops, against fairlearn, and the compiled pass against numpy."""

import math
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import reference
from fairlearn.metrics import MetricFrame
from hypothesis import given
from hypothesis import strategies as st
from strategies import attribute, graphs

from uge_core.audit import audit_embedding, parity
from uge_core.audit.base import Cell
from uge_core.audit.parity import dp_cells, edge_probabilities, eo_cells, exp2_polynomial, gap
from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN, AttributedGraph, simple_edges
from uge_core.graph.split import probe_split, split_links
from uge_core.kernels.pairs import sum_tile
from uge_core.runs.disclosure import Release


def four_nodes():
    """Path 0-1-2-3, groups a a b b, z = x, x, x, -x with x^2 = ln 3, so that a score is +-ln 3."""
    graph = AttributedGraph("path", 4, np.array([[0, 1, 2], [1, 2, 3]], np.int64), (attribute("gender", [0, 0, 1, 1]),))
    x = math.sqrt(math.log(3.0))
    return graph, np.array([[x], [x], [x], [-x]], np.float32), {"gender": graph.attributes[0].codes}


def test_dp_by_hand():
    # sigmoid(ln 3) = 3/4, sigmoid(-ln 3) = 1/4.
    # aa: pair 01, 3/4. ab: pairs 02, 03, 12, 13: 3/4, 1/4, 3/4, 1/4, mean 1/2. bb: pair 23, 1/4.
    # DP = 3/4 - 1/4 = 1/2.
    graph, z, groups = four_nodes()
    table = dp_cells(z, graph, groups)["gender"]
    assert table.mean == pytest.approx([0.75, 0.5, 0.25], abs=1e-6)
    assert table.n.tolist() == [1, 4, 1]
    found = gap(table, 1)
    assert found.value == pytest.approx(0.5, abs=1e-6)
    assert (found.highest, found.lowest) == (0, 2)


def test_eo_by_hand():
    # Edges 01 (aa, 3/4), 12 (ab, 3/4), 23 (bb, 1/4): EO = 1/2. Without 23 the bb cell is empty and EO = 0.
    graph, z, groups = four_nodes()
    table = eo_cells(z, graph, groups, graph.edges)["gender"]
    assert table.mean == pytest.approx([0.75, 0.75, 0.25], abs=1e-6)
    assert gap(table, 1).value == pytest.approx(0.5, abs=1e-6)
    fewer = eo_cells(z, graph, groups, graph.edges[:, :2])["gender"]
    assert fewer.n.tolist() == [1, 1, 0] and math.isnan(fewer.mean[2])
    assert gap(fewer, 1).value == pytest.approx(0.0, abs=1e-6)


def test_cells_below_the_minimum_do_not_count():
    graph, z, groups = four_nodes()
    table = dp_cells(z, graph, groups)["gender"]
    assert gap(table, 2).value is None  # only ab has two pairs or more


def test_bipartite_cells_are_user_groups():
    # Users 0 (a), 1 (b); items 2, 3. z so that user 0 scores ln 3 with both items, user 1 scores 0.
    graph = AttributedGraph("b", 4, np.array([[0, 1], [2, 3]], np.int64), num_users=2)
    z = np.array([[math.log(3.0)], [0.0], [1.0], [1.0]], np.float32)
    table = dp_cells(z, graph, {"g": np.array([0, 1, -2, -2])})["g"]
    assert table.b is None and table.n.tolist() == [2, 2]
    assert table.mean == pytest.approx([0.75, 0.5], abs=1e-6)


def same(table, expected, num_values):
    for i, n in enumerate(table.n):
        cell = int(table.a[i]) if table.b is None else (int(table.a[i]), int(table.b[i]))
        mean, count = expected.get(cell, (math.nan, 0))
        assert n == count
        assert table.mean[i] == pytest.approx(mean, abs=2e-6, nan_ok=True)
    assert len(expected) <= len(table.n)


@given(graphs(unknown=True), st.integers(0, 99))
def test_equal_to_loops(graph, seed):
    z = np.random.default_rng(seed).normal(size=(graph.num_nodes, 3)).astype(np.float32) * 2
    groups = {a.name: a.codes for a in graph.attributes}
    dp = dp_cells(z, graph, groups)
    eo = eo_cells(z, graph, groups, graph.edges)
    for name, codes in groups.items():
        same(dp[name], reference.dp_cells(z, graph.num_nodes, codes, graph.num_users), 3)
        same(eo[name], reference.eo_cells(z, graph.edges, codes, graph.num_users), 3)


def big(num_nodes=1500, dim=7, values=40):
    rng = np.random.default_rng(5)
    graph = AttributedGraph("big", num_nodes, np.array([[0], [1]], np.int64))
    z = rng.normal(size=(num_nodes, dim)).astype(np.float32)
    return graph, z, {"x": rng.integers(-1, values, num_nodes), "y": rng.integers(0, 2, num_nodes)}


@pytest.mark.processors
def test_compiled_pass_equals_numpy_and_repeats_to_the_bit(monkeypatch):
    graph, z, groups = big()
    fast, again = dp_cells(z, graph, groups), dp_cells(z, graph, groups, threads=1)
    monkeypatch.setattr(parity, "sum_tile", reference.sum_tile)
    slow = dp_cells(z, graph, groups)
    for name in groups:
        assert np.abs(fast[name].mean - slow[name].mean).max() < 1e-6
        assert np.array_equal(fast[name].mean, again[name].mean)
        assert np.array_equal(fast[name].n, slow[name].n)


@given(st.data())
def test_a_compiled_tile_has_numpys_sums(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    triangular, dim = data.draw(st.booleans()), 4 * data.draw(st.integers(1, 4))
    sizes = rng.integers(1, 90, data.draw(st.integers(1, 9)))
    group = np.repeat(np.arange(len(sizes)), sizes)
    rows = rng.normal(size=(dim, len(group))).astype(np.float32)
    columns, start, of_column = rows, np.concatenate([[0], np.cumsum(sizes)]), rng.integers(-1, 3, (2, len(sizes)))
    if not triangular:
        columns = rng.normal(size=(dim, data.draw(st.integers(1, 1100)))).astype(np.float32)
        start, of_column = np.array([0, columns.shape[1]]), np.zeros((1, 1), dtype=np.int64)
    first = int(rng.integers(len(group)))
    last = int(rng.integers(first, min(first + 256, len(group)))) + 1
    tile = (rows, columns, group, start, of_column, first, last, triangular, 3)
    for mine, numpys in zip(sum_tile(*tile, exp2_polynomial()), reference.sum_tile(*tile), strict=True):
        assert mine.dtype == numpys.dtype and mine.shape == numpys.shape
        assert mine == pytest.approx(numpys, rel=1e-5, abs=2e-4)


def test_attributes_that_cross_into_too_many_groups_get_their_own_passes(monkeypatch):
    graph, z, groups = big()
    together = dp_cells(z, graph, groups)
    monkeypatch.setattr(sys.modules[dp_cells.__module__], "_MAX_JOINT", 10)
    apart = dp_cells(z, graph, groups)
    for name in groups:
        assert apart[name].mean == pytest.approx(together[name].mean, abs=1e-6)


def test_sigmoid_is_right_to_a_millionth():
    # One user, one item a score: each cell is one sigmoid. From saturation to saturation.
    scores = np.concatenate([np.linspace(-30, 30, 1000), [-1e4, -90, 90, 1e4], np.geomspace(1e-6, 1, 50)])
    n = len(scores)
    graph = AttributedGraph("b", n + 1, np.array([[0], [n]], np.int64), num_users=n)
    z = np.append(scores, 1.0).astype(np.float32)[:, None]
    table = dp_cells(z, graph, {"g": np.append(np.arange(n), -2)})["g"]
    exact = np.array([reference.sigmoid(float(s)) for s in z[:n, 0]])
    assert np.abs(table.mean - exact).max() < 1e-6
    above = np.tanh(z[:n, 0].astype(float) / 2) / 2
    assert np.abs((table.mean - 0.5) / above - 1).max() < 2e-6


@pytest.mark.processors
def test_short_vectors_keep_their_digits():
    # probabilities of .5 +- 1e-9: a sum of float32 probabilities has no digit left of the difference
    graph, z, groups = big(400, values=3)
    short = z * np.float32(2.0**-15)
    n = len(short)
    u, v = np.triu_indices(n, 1)
    score = np.einsum("md,md->m", short[u].astype(float), short[v].astype(float))
    found = dp_cells(short, graph, groups)["y"]
    for c in range(3):
        inside = np.sort([groups["y"][u], groups["y"][v]], axis=0) == [[found.a[c]], [found.b[c]]]
        exact = np.tanh(score[inside.all(axis=0)] / 2).mean() / 2
        assert found.mean[c] - 0.5 == pytest.approx(exact, rel=1e-4, abs=1e-13)
        assert 0 < found.own[c] < 1e-15


def test_polynomial_of_two_to_the_f():
    f = np.linspace(-0.5, 0.5, 2001)
    assert np.abs(np.polynomial.polynomial.polyval(f, exp2_polynomial()) / 2.0**f - 1).max() < 3e-7
    near = np.linspace(-1e-6, 1e-6, 9)[[0, 1, 2, 3, 5, 6, 7, 8]]
    slope = np.polynomial.polynomial.polyval(near, exp2_polynomial()[1:]) * near / np.expm1(near * np.log(2.0))
    assert exp2_polynomial()[0] == 1 and np.abs(slope - 1).max() < 3e-7


@pytest.mark.slow
def test_sampled_cells_lie_within_their_standard_errors():
    graph, z, groups = big(300, values=3)
    exact = dp_cells(z, graph, groups)
    sampled = dp_cells(z, graph, groups, exact_nodes=100, seed=1)
    for name in groups:
        assert np.array_equal(sampled[name].n, exact[name].n)
        assert (np.abs(sampled[name].mean - exact[name].mean) < 5 * sampled[name].se).all()


def test_fairlearn_agrees():
    graph, z, groups = big(60, values=3)
    u, v = np.triu_indices(60, 1)
    prob = edge_probabilities(z, np.stack([u, v]))
    for name, codes in groups.items():
        known = (codes[u] >= 0) & (codes[v] >= 0)
        low, high = np.minimum(codes[u], codes[v])[known], np.maximum(codes[u], codes[v])[known]
        frame = MetricFrame(
            metrics=lambda _, p: p.mean(),
            y_true=np.ones(known.sum()),
            y_pred=prob[known],
            sensitive_features=pd.Series(low * 100 + high, name="cell"),
        )
        table = dp_cells(z, graph, groups)[name]
        assert table.mean == pytest.approx(frame.by_group.to_numpy(dtype=float), abs=1e-6)
        assert gap(table, 1).value == pytest.approx(frame.difference(), abs=1e-6)


def small_groups(sizes, num_items=0, seed=0):
    """An embedding and a graph whose groups A, B, .. have these sizes; with items, a bipartite one."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    people, n = len(codes), len(codes) + num_items
    edges, _, _ = simple_edges(rng.integers(0, people, 1500), rng.integers(people if num_items else 0, n, 1500), n)
    full = np.concatenate([codes, np.full(num_items, NOT_APPLICABLE)])
    values = (attribute("region", full, side="users" if num_items else "nodes"),)
    graph = AttributedGraph("g", n, edges, values, num_users=people if num_items else None)
    return rng.normal(size=(n, 4)).astype(np.float32), graph


@pytest.mark.parametrize("num_items", [0, 80])
@pytest.mark.parametrize("threshold", [None, 0.5])
def test_nothing_is_told_of_small_groups(num_items, threshold):
    z, graph = small_groups((160, 130, 9, 1), num_items)
    split = split_links(graph)
    audit = audit_embedding(z, graph, split, parts=("parity",), threshold=threshold, disclosure=Release())
    rows = [r for r in audit.rows if r.metric in ("dp", "eo")]
    assert {r.metric for r in rows} == {"dp", "eo"}
    kept, other = graph.attributes[0].labels[:2]
    for row in rows:
        assert {c.a for c in row.cells} | {c.b for c in row.cells} <= {kept, other, None}
        told = row.note.removesuffix("; 24 people are left out: groups of under 12, and others that hide how many")
        assert told != row.note
        assert not re.search(r"\b(?<!')[cd]\b", told), row.note
    whole = next(r for r in rows if r.metric == "dp" and r.variant is None)
    # 9 people are hidden by 3 of the first group, one by 11 of the second
    pairs = [157 * num_items, 119 * num_items] if num_items else [157 * 156 // 2, 157 * 119, 119 * 118 // 2]
    assert [c.n for c in whole.cells] == pairs and not any(c.withheld for c in whole.cells)


def test_no_number_depends_on_the_size_of_the_group_that_is_left_out():
    counted = set()
    for small in (1, 4, 11):
        z, graph = small_groups((164 - small, 136, small))
        audit = audit_embedding(z, graph, None, parts=("parity",), disclosure=Release())
        (pairs,) = {(*((c.name, c.n) for c in r.cells), r.n) for r in audit.select(metric="dp", variant=None)}
        (note,) = {r.note.split("12 people are left out")[1] for r in audit.rows}
        counted.add((pairs, note))
    pairs = [("a-a", 152 * 151 // 2), ("a-b", 152 * 136), ("b-b", 136 * 135 // 2)]
    assert counted == {((*pairs, sum(n for _, n in pairs)), ": groups of under 12, and others that hide how many")}


@pytest.mark.parametrize("num_items", [0, 80])
def test_figures_are_the_exact_ones_of_the_people_who_are_counted(num_items):
    z, graph = small_groups((160, 130, 9, 1), num_items)
    z[289:300] *= 20
    split, region = split_links(graph), graph.attributes[0]
    codes = Release().attribute(region, graph, probe_split(region)).classes
    assert np.bincount(codes[codes >= 0]).tolist() == [157, 119]
    known = np.where(codes >= 0, codes, np.where(region.codes == NOT_APPLICABLE, NOT_APPLICABLE, UNKNOWN))
    those = attribute("region", known, side=region.side, num_values=2)
    without = AttributedGraph("g", graph.num_nodes, graph.edges, (those,), num_users=graph.num_users)
    found = audit_embedding(z, graph, split, parts=("parity",), disclosure=Release())
    expected = audit_embedding(z, without, split, parts=("parity",), unknown="exclude")
    assert len(found.rows) == len(expected.rows) > 10
    for row, same in zip(found.rows, expected.rows, strict=True):
        assert replace(row, note="") == replace(same, note="") and row.note.startswith(same.note)


@pytest.mark.parametrize("few", [2, 7])
def test_cells_of_few_edges_are_suppressed_with_edges_of_another(few):
    rng = np.random.default_rng(0)
    linked = np.triu(rng.random((200, 200)) < 0.3, 1)
    linked[185:, 185:] = False
    linked[185 + np.arange(few), 199] = True  # the third group has 15 people and few edges of its own
    codes = np.repeat([0, 1, 2], [100, 85, 15])
    edges = np.stack(np.nonzero(linked)).astype(np.int64)
    graph = AttributedGraph("g", 200, edges, (attribute("region", codes),))
    z = rng.normal(size=(200, 3)).astype(np.float32)
    exact, told = (
        audit_embedding(z, graph, None, parts=("parity",), disclosure=rule).find(metric="eo", variant="all-edges")
        for rule in (None, Release())
    )
    assert exact.cells[-1].n == few and exact.cells[-1].value is not None and "suppressed" not in exact.note
    assert told.cells[-1] == Cell("c", "c", None, 0, excluded=True, withheld=True)
    assert not any(c.withheld for c in told.cells[:-1])
    # as many of the first cell's edges are left out as make twelve
    assert [c.n for c in told.cells[:-1]] == [exact.cells[0].n - (12 - few), *(c.n for c in exact.cells[1:-1])]
    assert "1 of these suppressed, as they have under 12 edges or hide how many" in told.note
