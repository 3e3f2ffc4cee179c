"""What walks and contexts make of the edge loss, against loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import second_order, skip_gram, walk_pairs
from strategies import graphs
from toys import CPU, SHARED, WALKS, blocks_of, both_tables, embeddings, inputs, lookups, pairs_of

from uge_core.backbones.deepwalk import DeepWalk
from uge_core.backbones.line import LINE
from uge_core.debias.bias_free import CellTable
from uge_core.debias.edge_factors import NoFactors
from uge_core.debias.methods.fairdrop import FairDrop
from uge_core.debias.methods.fairwalk import Fairwalk
from uge_core.graph.walks import StepRule
from uge_core.training import objective
from uge_core.training.edge_loss.loss import build
from uge_core.training.edge_loss.pairs import Pairs
from uge_core.training.edge_loss.plain import TorchPasses


def built(backbone, graph, tables=None, pairs=None, factors=None, rules=None, dim=4, **options):
    tables = tables or both_tables(graph)
    return objective.build(
        backbone,
        pairs or pairs_of(graph),
        tables,
        CPU,
        factors=factors or [NoFactors()] * len(tables),
        rules=rules or [None] * len(tables),
        directions=None,
        dim=dim,
        **{**SHARED, **options},
    )


@given(graphs(), st.integers(1, 50))
def test_skip_gram_equals_the_loops(graph, epoch):
    z = embeddings(graph)
    loss = built(WALKS, graph)
    walker, found, blocks = loss.inner.walkers[0], loss(z, None, epoch, True), blocks_of(pairs_of(graph), epoch)
    for k, table in enumerate(both_tables(graph)):
        # what weighs edges weighs steps, and pairs no more
        weight = table.edge_weight(graph.edges) if (table.weight != 1).any() else None
        met = walk_pairs(walker.walks(walker.transitions(weight), epoch), 2, graph.num_users)
        _, offset = lookups(table)
        exact = skip_gram(z[k].double().numpy(), met, graph.edges, lambda u, v: 1.0, offset, blocks, graph.num_users)
        assert float(found[k]) == pytest.approx(exact, rel=1e-4)


@given(graphs(), st.integers(1, 50), st.booleans())
def test_second_order_equals_the_loops(graph, epoch, weighted):
    pairs, own = pairs_of(graph), None
    if weighted:
        own = np.random.default_rng(0).uniform(0.2, 3, graph.num_edges)
        own = (own / own.mean()).astype(np.float32)
        pairs = replace(pairs, weights=own)
    z, context = embeddings(graph), embeddings(graph, seed=1)
    found = built(LINE(order="2"), graph, pairs=pairs)(z, context, epoch, True)
    blocks, n = blocks_of(objective.doubled(pairs), epoch), graph.num_nodes
    blocks = [[v % n for v in block] for block in blocks]
    for k, table in enumerate(both_tables(graph)):
        a, b = (x[k].double().numpy() for x in (z, context))
        exact = second_order(a, b, graph.edges, *lookups(table), blocks, graph.num_users, own)
        assert float(found[k]) == pytest.approx(exact, rel=1e-4)


@given(graphs(), st.integers(1, 50))
def test_both_orders_add_up_each_on_its_columns(graph, epoch):
    z, context = embeddings(graph, dim=6), embeddings(graph, dim=2, seed=1)
    both = built(LINE(order="both"), graph, dim=6)(z, context, epoch, True)
    first = built(LINE(order="1"), graph)(z[:, :, :4], None, epoch, True)
    second = built(LINE(order="2"), graph, dim=2)(z[:, :, 4:], context, epoch, True)
    torch.testing.assert_close(both, first + second)
    node2vec = build("cross-entropy", pairs_of(graph), both_tables(graph), CPU, **SHARED)
    assert torch.equal(first, node2vec(z[:, :, :4], epoch, True)[0])


@given(graphs(), st.integers(1, 50), st.sampled_from(["2", "both"]))
def test_a_heads_columns_are_part_of_both_orders_and_of_no_other(graph, epoch, order):
    """MONET's metadata: m_u . m_v beside z_u . z_v, and beside z_u . c_v; never a first order that the backbone lacks."""
    m, z = embeddings(graph, dim=3, seed=2), embeddings(graph)
    half = 0 if order == "2" else 2
    context = embeddings(graph, dim=4 - half, seed=1)
    leaf = torch.cat([m, z], dim=2).requires_grad_()
    found = built(LINE(order=order), graph)(leaf, context, epoch, True)
    other = torch.cat([m, z], dim=2).requires_grad_()
    ahead, own = other[:, :, :3], other[:, :, 3:]
    second = built(LINE(order="2"), graph, dim=7 - half)
    at = second(torch.cat([ahead, own[:, :, half:]], dim=2), torch.cat([other[:, :, :3], context], dim=2), epoch, True)
    if half:
        at = at + built(LINE(order="1"), graph)(torch.cat([ahead, own[:, :, :half]], dim=2), None, epoch, True)
    torch.testing.assert_close(found, at)
    torch.testing.assert_close(torch.autograd.grad(found.sum(), leaf), torch.autograd.grad(at.sum(), other))


@pytest.mark.slow
@pytest.mark.parametrize("negatives", ["shared", "listed"])
@pytest.mark.parametrize("backbone", [WALKS, LINE(order="2"), LINE(order="both")])
@given(graphs(min_nodes=8))
def test_gradient_is_the_derivative_of_the_loss(backbone, negatives, graph):
    loss = built(backbone, graph, negatives=negatives)
    leaves = [embeddings(graph, dim=4, seed=s).double().float().requires_grad_() for s in (0, 1)]
    context = (lambda c: c) if backbone.has_context else (lambda c: None)
    ways = [embeddings(graph, dim=4, seed=s) for s in (2, 3)]
    at = lambda step: loss(leaves[0] + step * ways[0], context(leaves[1] + step * ways[1]), 3, True)  # noqa: E731
    wanted = leaves if backbone.has_context else leaves[:1]
    gradients = torch.autograd.grad(at(0.0).sum(), wanted)
    along = sum((g * w).sum((1, 2)) for g, w in zip(gradients, ways, strict=False))
    with torch.no_grad():
        slope = (at(1e-2) - at(-1e-2)) / 2e-2
    torch.testing.assert_close(along, slope, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_walks_of_one_step_are_node2vec(weighted):
    """In expectation: many walks, one epoch."""
    from toys import town

    graph = town()
    own = np.random.default_rng(0).choice([1.0, 3.0], graph.num_edges).astype(np.float32) if weighted else None
    pairs = Pairs(graph.edges, graph.num_nodes, None, 0, None if own is None else own / own.mean())
    tables = [CellTable.neutral(graph.num_nodes)]
    z = embeddings(graph, members=1)
    plain = build("cross-entropy", pairs, tables, CPU, **SHARED)
    want, gradient = plain(z, 1, True)
    leaf = z.clone().requires_grad_()
    found = built(DeepWalk(walk_length=1, window=1, walks=2000.0), graph, tables, pairs)(leaf, None, 1, True)
    (walked,) = torch.autograd.grad(found.sum(), leaf)
    assert float(found.detach()) == pytest.approx(float(want), rel=0.02)
    assert torch.linalg.norm(walked - gradient) < 0.05 * torch.linalg.norm(gradient)
    # and longer walks are something else
    leaf = z.clone().requires_grad_()
    (far,) = torch.autograd.grad(built(DeepWalk(walks=10.0), graph, tables, pairs)(leaf, None, 1, True).sum(), leaf)
    assert torch.linalg.norm(far - gradient) > 0.2 * torch.linalg.norm(gradient)


def test_members_with_one_rule_share_their_walks_and_others_have_their_own():
    from toys import town

    graph = town()
    known = inputs(graph, ("city",))
    table = CellTable.neutral(graph.num_nodes)
    rule = Fairwalk().walks(known)
    drop = FairDrop(delta=0.5, every=2).edges(known)
    none = NoFactors()
    loss = built(
        WALKS,
        graph,
        [table] * 5,
        factors=[none, none, Fairwalk().edges(known), Fairwalk().edges(known), drop],
        rules=[None, None, rule, rule, None],
    )
    walked = list(loss.inner._walked(1))
    assert [members for _, members in walked] == [[0, 1], [2, 3], [4]]
    z = embeddings(graph, members=1).expand(5, -1, -1).contiguous()
    found = loss(z, None, 1, True)
    assert found[0] == found[1] and found[2] == found[3] and len(set(found.tolist())) == 3
    # only edges between cities are left to walk along at delta 1/2
    city = graph.attribute("city").codes
    edges = {tuple(e) for e in graph.edges.T.tolist()}
    for _, members in walked[2:]:
        assert members == [4]
    walker = loss.inner.walkers[4]
    steps = walker.walks(loss.inner.transitions[id(walker), id(drop.in_loss(1))][1], 1)
    a, b = steps[:, :-1].reshape(-1), steps[:, 1:].reshape(-1)
    assert all((min(u, v), max(u, v)) in edges and city[u] != city[v] for u, v in zip(a, b, strict=True) if v >= 0)
    # a draw is walked along for as long as it lasts
    kept = loss.inner.transitions
    list(loss.inner._walked(2))
    assert loss.inner.transitions == kept
    list(loss.inner._walked(3))
    assert loss.inner.transitions != kept


@given(graphs(), st.sampled_from([WALKS, LINE(order="both")]))
def test_torch_passes_equal_the_compiled_ones(graph, backbone):
    z, context = embeddings(graph), embeddings(graph, dim=2, seed=1) if backbone.has_context else None
    compiled, plain = built(backbone, graph), built(backbone, graph)
    if backbone.has_context:
        for part, pairs in ((plain.first, pairs_of(graph)), (plain.second, objective.doubled(pairs_of(graph)))):
            part.passes = TorchPasses(pairs, CPU)
    else:
        plain.inner._passes = lambda pairs: TorchPasses(pairs, CPU)
    leaves = [z.clone().requires_grad_() for _ in range(2)]
    found = [loss(leaf, context, 2, True) for loss, leaf in zip((compiled, plain), leaves, strict=True)]
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-6)
    gradients = [torch.autograd.grad(f.sum(), leaf)[0] for f, leaf in zip(found, leaves, strict=True)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_a_rule_of_its_own_takes_the_place_of_factors():
    from toys import town

    graph = town()
    known = inputs(graph, ("city",))
    table = CellTable.neutral(graph.num_nodes)
    z = embeddings(graph, members=1)
    by_factors, by_rule = (
        built(WALKS, graph, [table], factors=[f], rules=[r])(z, None, 1, True)
        for f, r in (
            (NoFactors(), StepRule(known.sensitive[0].codes)),
            (Fairwalk().edges(known), Fairwalk().walks(known)),
        )
    )
    assert torch.equal(by_factors, by_rule)
