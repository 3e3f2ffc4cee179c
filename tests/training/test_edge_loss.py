import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import bpr, cross_entropy
from strategies import graphs
from toys import CPU, both_tables, embeddings, lookups, pairs_of

from uge_core.training.edge_loss.compiled import CompiledPasses
from uge_core.training.edge_loss.loss import Bpr, CrossEntropy, NoFactors, build
from uge_core.training.edge_loss.negatives import SharedBlock
from uge_core.training.edge_loss.pairs import Cells, Pairs
from uge_core.training.edge_loss.plain import TorchPasses


def loss_of(kind, graph, passes=None, **options):
    options = {"negatives": "shared", "block_size": 4, "num_negatives": 3, **options}
    built = build(kind, pairs_of(graph), both_tables(graph), CPU, **options)
    if passes is not None:
        built.passes = passes(pairs_of(graph), CPU)
    return built


@given(graphs(), st.integers(1, 50))
def test_cross_entropy_equals_the_loops(graph, epoch):
    z = embeddings(graph)
    loss, _ = loss_of("cross-entropy", graph)(z, epoch, True)
    pairs = pairs_of(graph)
    rng = pairs.rng(epoch)
    blocks = [np.sort(rng.choice(high - low, min(4, high - low), replace=False)) + low for _, low, high in pairs.sides]
    for k, table in enumerate(both_tables(graph)):
        exact = cross_entropy(
            z[k].double().numpy(), graph.edges, *lookups(table), [b.tolist() for b in blocks], graph.num_users
        )
        assert float(loss[k]) == pytest.approx(exact, rel=1e-4)


@given(graphs(), st.integers(1, 50))
def test_bpr_equals_the_loops(graph, epoch):
    z = embeddings(graph)
    built = loss_of("bpr", graph)
    loss, _ = built(z, epoch, True)
    u, i, j = built.passes.triples(epoch)
    for k, table in enumerate(both_tables(graph)):
        exact = bpr(
            z[k].double().numpy(), zip(u.tolist(), i.tolist(), j.tolist(), strict=True), *lookups(table), len(u)
        )
        assert float(loss[k]) == pytest.approx(exact, rel=1e-4, abs=1e-6)


@given(graphs(min_nodes=6), st.sampled_from(["cross-entropy", "bpr"]), st.sampled_from(["shared", "listed"]))
def test_gradient_is_the_derivative_of_the_loss(graph, kind, negatives):
    z = embeddings(graph)
    built = loss_of(kind, graph, negatives=negatives)
    _, gradient = built(z, 3, False)
    direction = embeddings(graph, seed=1)
    up, _ = built(z + 1e-2 * direction, 3, True)
    down, _ = built(z - 1e-2 * direction, 3, True)
    along = (gradient * direction).sum((1, 2))
    torch.testing.assert_close(along, (up - down) / 2e-2, rtol=2e-2, atol=2e-3)


@given(graphs(), st.sampled_from(["cross-entropy", "bpr"]))
def test_torch_passes_equal_the_compiled_ones(graph, kind):
    z = embeddings(graph)
    compiled = loss_of(kind, graph)(z, 2, True)
    plain = loss_of(kind, graph, passes=TorchPasses)(z, 2, True)
    for a, b in zip(compiled, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@given(graphs(), st.sampled_from(["cross-entropy", "bpr"]), st.booleans())
def test_a_factor_of_each_edge_is_a_weight_of_each_edge(graph, kind, plain):
    """Beside weights of the edges' own; a factor that comes as a new array is laid out anew."""
    z, often = embeddings(graph), np.arange(1, graph.edges.shape[1] + 1, dtype=np.float32)
    weighed = Pairs(graph.edges, graph.num_nodes, graph.num_users, 0, often)
    passes = TorchPasses(weighed, CPU) if plain else CompiledPasses(weighed)

    class Changing:
        def in_loss(self, epoch):
            return np.full(len(often), epoch, np.float32) / often

    cells = [Cells.of(t, CPU) for t in both_tables(graph)]
    factors = [Changing()] * len(cells)
    blocks = SharedBlock(weighed, 4)
    built = Bpr(cells, factors, passes) if kind == "bpr" else CrossEntropy(cells, factors, passes, blocks)
    unweighed = [NoFactors()] * len(cells)
    for epoch in (1, 2):
        loss, gradient = built(z, epoch, True)
        flat = Pairs(graph.edges, graph.num_nodes, graph.num_users, 0, np.full(len(often), epoch, np.float32))
        flat.__dict__["share"] = weighed.share  # factors leave the negatives alone
        again = CompiledPasses(flat)
        other = Bpr(cells, unweighed, again) if kind == "bpr" else CrossEntropy(cells, unweighed, again, blocks)
        expected, slope = other(z, epoch, True)
        torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(gradient, slope, rtol=1e-4, atol=1e-6)


@given(graphs(), st.integers(1, 9))
def test_strangers_are_on_the_right_side_and_not_connected(graph, epoch):
    u, i, j = loss_of("bpr", graph).passes.triples(epoch)
    edges = {(int(a), int(b)) for a, b in graph.edges.T} | {(int(b), int(a)) for a, b in graph.edges.T}
    assert all((int(a), int(b)) in edges for a, b in zip(u, i, strict=True))
    for a, c in zip(u.tolist(), j.tolist(), strict=True):
        assert c == -1 or (c != a and (a, c) not in edges)
    if graph.bipartite:
        assert (u < graph.num_users).all() and ((j == -1) | (j >= graph.num_users)).all()


def test_strangers_are_fresh_each_epoch_and_the_same_for_equal_seeds():
    rng = np.random.default_rng(0)
    from uge_core.graph.graph import AttributedGraph, simple_edges

    edges, _, _ = simple_edges(rng.integers(0, 200, 400), rng.integers(0, 200, 400), 200)
    graph = AttributedGraph("g", 200, edges)
    draw = lambda seed, epoch: CompiledPasses(pairs_of(graph, seed)).triples(epoch)[2]  # noqa: E731
    assert (draw(0, 1) == draw(0, 1)).all()
    assert (draw(0, 1) != draw(0, 2)).mean() > 0.9 and (draw(0, 1) != draw(1, 1)).mean() > 0.9
    # uniform over strangers: every node is drawn about equally often
    counts = np.bincount(np.concatenate([draw(0, e) for e in range(100)]), minlength=200)
    assert counts.min() > 0.7 * counts.mean() and counts.max() < 1.3 * counts.mean()


@given(graphs(min_nodes=8))
def test_listed_negatives_are_strangers_and_stay(graph):
    listed = loss_of("cross-entropy", graph, negatives="listed").negatives.listed
    edges = {(int(a), int(b)) for a, b in graph.edges.T} | {(int(b), int(a)) for a, b in graph.edges.T}
    for a, b in zip(listed.source.tolist(), listed.target.tolist(), strict=True):
        assert (a, b) not in edges and a != b
        assert not graph.bipartite or (a < graph.num_users) != (b < graph.num_users)


def test_a_large_score_overflows_nothing():
    from toys import path_graph

    graph = path_graph()
    z = torch.full((4, 4, 4), 100.0)
    loss, gradient = loss_of("cross-entropy", graph)(z, 1, True)
    assert torch.isfinite(loss).all() and torch.isfinite(gradient).all()
    z[:, ::2] *= -1
    loss, gradient = loss_of("cross-entropy", graph)(z, 1, True)
    assert torch.isfinite(loss).all() and torch.isfinite(gradient).all()


@given(graphs(min_nodes=8), st.sampled_from(["cross-entropy", "bpr"]), st.sampled_from(["shared", "listed"]))
def test_staged_draws_are_those_of_their_epoch(graph, kind, negatives):
    """In places that stay, filled up to one size; nothing but what `load` puts there is read."""
    z = embeddings(graph)
    plain, staged = (loss_of(kind, graph, passes=TorchPasses, negatives=negatives) for _ in range(2))
    load = staged.stage()
    for epoch in (3, 1, 2):
        load(epoch)
        for a, b in zip(plain(z, epoch, True), staged(z, -1, True), strict=True):
            torch.testing.assert_close(a, b)
