import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import attribute, graphs

from uge_core.errors import ConfigError
from uge_core.graph import split
from uge_core.graph.graph import UNKNOWN, AttributedGraph, simple_edges
from uge_core.graph.split import probe_split, ranking_task, split_links


def as_set(edges):
    return {tuple(sorted(map(int, e))) for e in edges.T}


@given(graphs(max_nodes=14), st.integers(0, 5), st.sampled_from([0.1, 0.3]), st.sampled_from([0.0, 0.2]))
def test_the_parts_are_the_graph_and_do_not_overlap(graph, seed, test_share, validation_share):
    s = split_links(graph, test_share=test_share, validation_share=validation_share, seed=seed)
    parts = [as_set(s.train), as_set(s.validation), as_set(s.test)]
    assert set.union(*parts) == as_set(graph.edges)
    assert sum(map(len, parts)) == graph.num_edges
    wanted = round(test_share * graph.num_edges)
    wanted += round(validation_share * (graph.num_edges - wanted))
    assert len(parts[1]) + len(parts[2]) + s.short == wanted
    has_edge = graph.degree > 0
    left = np.bincount(s.train.ravel(), minlength=graph.num_nodes)
    assert (left[has_edge] >= 1).all()


def random_graph(n=400, m=3000, seed=0, **extra):
    rng = np.random.default_rng(seed)
    edges, _, _ = simple_edges(rng.integers(0, n, m), rng.integers(0, n, m), n)
    return AttributedGraph("r", n, edges, **extra)


def test_sizes_are_exact_and_seeds_differ():
    graph = random_graph()
    a, b = split_links(graph, seed=0), split_links(graph, seed=1)
    assert a.test.shape[1] == round(0.1 * graph.num_edges) and a.short == 0
    assert as_set(a.test) != as_set(b.test) and as_set(a.test) == as_set(split_links(graph, seed=0).test)


@pytest.mark.parametrize("share", [-0.1, 0.95])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ConfigError, match=r"allowed: 0 to 0\.9"):
        split_links(random_graph(), test_share=share)


@given(graphs(min_nodes=6, max_nodes=14), st.integers(0, 3))
def test_candidates_are_held_out_neighbours_and_strangers(graph, seed):
    held = split_links(graph, test_share=0.3, seed=seed).test
    task = ranking_task(graph, held, num_candidates=8, max_relevant=3, seed=seed)
    edges, tested = as_set(graph.edges), as_set(held)
    for u, row, mask in zip(task.targets.tolist(), task.candidates.tolist(), task.relevant, strict=True):
        real = [c for c in row if c >= 0]
        assert len(set(real)) == len(real) and u not in real
        for c, relevant in zip(row, mask, strict=True):
            pair = tuple(sorted((u, c)))
            assert pair in tested if relevant else (c == -1 or pair not in edges)
            assert not graph.bipartite or c == -1 or (c >= graph.num_users > u)
    if not graph.bipartite:
        assert sorted(task.targets.tolist()) == sorted({int(x) for x in held.ravel()})


def test_a_large_graph_fills_every_list():
    graph = random_graph()
    task = ranking_task(graph, split_links(graph).test)
    assert task.candidates.shape[1] == 100 and (task.candidates >= 0).all()
    assert all(len(set(r)) == 100 for r in task.candidates.tolist())


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=80), st.integers(0, 3), st.sampled_from(["level", "exclude"]))
def test_probe_split_laws(codes, seed, unknown):
    a = attribute("a", np.where(np.array(codes) < 0, UNKNOWN, codes), num_values=5)
    p = probe_split(a, unknown=unknown, seed=seed)
    assert not set(p.train) & set(p.test)
    taking_part = np.nonzero(p.classes >= 0)[0]
    assert sorted([*p.train, *p.test]) == taking_part.tolist()
    if unknown == "exclude":
        assert (a.codes[taking_part] >= 0).all()
    sizes = np.bincount(p.classes[taking_part], minlength=len(p.labels))
    tested = np.bincount(p.classes[p.test], minlength=len(p.labels))
    assert (tested[sizes <= 1] == 0).all() and (tested <= np.ceil(0.2 * sizes)).all()
    assert (sizes - tested)[sizes > 0].min(initial=1) >= 1


def greedy(edges, order, wanted, left):
    """The first edges of an order that leave both ends another one, one after the other."""
    taken = []
    for row in order.tolist():
        u, v = edges[:, row]
        if len(taken) < wanted and left[u] > 1 and left[v] > 1:
            left[u] -= 1
            left[v] -= 1
            taken.append(row)
    return taken


@pytest.mark.parametrize("size", [1, 3, 10, 1 << 17])
@given(graphs(), st.integers(0, 99), st.floats(0, 1))
def test_slices_hold_out_what_one_edge_after_the_other_would(size, graph, seed, share):
    order = np.random.default_rng(seed).permutation(graph.num_edges)
    wanted = round(share * graph.num_edges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "_SLICE", size)
        held = split._hold_out(graph.edges, order, wanted, graph.degree.copy())
    assert held.tolist() == greedy(graph.edges, order, wanted, graph.degree.copy())
