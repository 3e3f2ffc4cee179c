"""Edge weights and directions from the loss to the export: an edge of weight 2 is two edges, messages follow directions."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import balanced, bpr, cross_entropy, ratio_weights, softplus
from strategies import graphs
from toys import (
    ADVERSARIES,
    PLAIN,
    SOME_BACKBONES,
    config,
    embeddings,
    inputs,
    lookups,
    quick,
    run,
    run_all,
    shared_out,
    shop,
    town,
)

from uge_core.cli.main import run as uge
from uge_core.debias.bias_free import CellTable, offset_cells, weight_cells
from uge_core.graph.split import split_links
from uge_core.registry import find
from uge_core.training.edge_loss.loss import build
from uge_core.training.edge_loss.pairs import Pairs
from uge_core.training.edge_loss.plain import TorchPasses
from uge_core.training.ensembles import ensembles
from uge_core.training.fit import fit
from uge_core.training.weights import bias_free_gains, edge_weights

CPU = torch.device("cpu")
SIZES = {"negatives": "shared", "block_size": 4, "num_negatives": 3}


@st.composite
def weighted_graphs(draw, **kwargs):
    """A graph and how often each of its edges stands."""
    graph = draw(graphs(**kwargs))
    often = draw(st.lists(st.integers(1, 3), min_size=graph.num_edges, max_size=graph.num_edges))
    return graph, np.array(often)


def scaled(often):
    return (often / often.mean()).astype(np.float32)


def weighted_evidence(graph, often, sensitive=("gender",)):
    return replace(inputs(graph, sensitive), weights=scaled(often))


def repeated_evidence(graph, often, sensitive=("gender",)):
    """The same with each edge as often as it weighs."""
    return replace(inputs(graph, sensitive), train_edges=np.repeat(graph.edges, often, axis=1))


def tables_of(graph, often):
    made = weighted_evidence(graph, often)
    return [
        CellTable.neutral(graph.num_nodes),
        weight_cells(made, **PLAIN),
        (table := offset_cells(made, **{**PLAIN, "shrinkage": 2.0})),
        replace(
            table,
            node_offset=np.random.default_rng(0).normal(size=(graph.num_nodes, len(table.offset))).astype("float32"),
        ),
    ]


def pairs_of(graph, often):
    return Pairs(graph.edges, graph.num_nodes, graph.num_users, 0, scaled(often))


def loss_of(kind, graph, often, passes=None, **options):
    built = build(kind, pairs_of(graph, often), tables_of(graph, often), CPU, **{**SIZES, **options})
    if passes is not None:
        built.passes = passes(pairs_of(graph, often), CPU)
    return built


@given(weighted_graphs(), st.sampled_from([("gender",), ("city",), ("gender", "city")]))
def test_tables_equal_the_exact_fractions_over_repeated_edges(drawn, sensitive):
    graph, often = drawn
    codes = {a.name: a.codes.tolist() for a in graph.attributes}
    side = [0 if graph.num_users is None or i < graph.num_users else 1 for i in range(graph.num_nodes)]
    full = list(zip(*codes.values(), side, strict=True))
    rest = list(zip(*[c for n, c in codes.items() if n not in sensitive], side, strict=True))
    exact = ratio_weights(graph.num_nodes, graph.edges, full, rest, graph.num_users, often.tolist())
    ours = weight_cells(weighted_evidence(graph, often, sensitive), **PLAIN)
    mean_one = balanced(exact, often.tolist())
    np.testing.assert_allclose(ours.edge_weight(graph.edges), [float(w) for w in mean_one], rtol=1e-4)


@given(weighted_graphs(), st.booleans(), st.sampled_from(["none", "popularity"]))
def test_a_table_with_weights_is_the_table_of_repeated_edges(drawn, independence, item_cells):
    graph, often = drawn
    options = {"shrinkage": 0.0, "independence": independence, "item_cells": item_cells if graph.bipartite else "none"}
    one, other = (make(graph, often) for make in (weighted_evidence, repeated_evidence))
    if graph.bipartite:  # the deciles of items that are equally popular are a matter of chance
        degree = np.bincount(other.train_edges[1])[graph.num_users :]
        if len(np.unique(degree)) < len(degree):
            options["item_cells"] = "none"
    a, b = weight_cells(one, **options), weight_cells(other, **options)
    assert (a.group == b.group).all()
    np.testing.assert_allclose(a.weight, b.weight, rtol=1e-4)


@given(weighted_graphs(), st.integers(1, 50))
def test_cross_entropy_equals_the_loops_over_repeated_edges(drawn, epoch):
    graph, often = drawn
    z = embeddings(graph)
    loss, _ = loss_of("cross-entropy", graph, often)(z, epoch, True)
    pairs = pairs_of(graph, often)
    rng = pairs.rng(epoch)
    blocks = [np.sort(rng.choice(high - low, min(4, high - low), replace=False)) + low for _, low, high in pairs.sides]
    for k, table in enumerate(tables_of(graph, often)):
        exact = cross_entropy(
            z[k].double().numpy(), graph.edges, *lookups(table), [b.tolist() for b in blocks], graph.num_users, often
        )
        assert float(loss[k]) == pytest.approx(exact, rel=1e-4)


@given(weighted_graphs(), st.integers(1, 50))
def test_bpr_multiplies_the_pair(drawn, epoch):
    graph, often = drawn
    z = embeddings(graph)
    built = loss_of("bpr", graph, often)
    loss, _ = built(z, epoch, True)
    own = {tuple(e): w for e, w in zip(graph.edges.T.tolist(), scaled(often).tolist(), strict=True)}
    u, i, j = (t.tolist() for t in built.passes.triples(epoch))
    for k, table in enumerate(tables_of(graph, often)):
        weight, offset = lookups(table)
        exact = bpr(
            z[k].double().numpy(),
            zip(u, i, j, strict=True),
            lambda a, b, weight=weight: weight(a, b) * own[min(a, b), max(a, b)],
            offset,
            len(u),
        )
        assert float(loss[k]) == pytest.approx(exact, rel=1e-4, abs=1e-6)


@given(weighted_graphs(min_nodes=8))
def test_listed_negatives_carry_the_weight_of_their_pair(drawn):
    graph, often = drawn
    z = embeddings(graph)
    built = loss_of("cross-entropy", graph, often, negatives="listed")
    loss, _ = built(z, 1, True)
    listed = built.negatives.listed
    # three lines per CSR entry, in order, but for sources without a stranger
    pairs = pairs_of(graph, often)
    entries = zip(pairs.sources.tolist(), pairs.rows[1].tolist(), strict=True)
    own = {tuple(e): w for e, w in zip(graph.edges.T.tolist(), often.tolist(), strict=True)}
    drew = set(listed.source.tolist())
    weight = np.repeat([own[min(p), max(p)] for p in entries if p[0] in drew], 3)
    assume(len(weight) == len(listed.source))  # else a source met no stranger in 64 draws
    for k, table in enumerate(tables_of(graph, often)):
        factor, offset = lookups(table)

        def score(u, v, k=k, offset=offset):
            return float(z[k, u].double() @ z[k, v].double()) + offset(u, v)

        # every edge as often as it weighs
        seen = [factor(u, v) * softplus(-score(u, v)) for (u, v), n in own.items() for _ in range(n)]
        lines = zip(listed.source.tolist(), listed.target.tolist(), weight.tolist(), strict=True)
        unseen = [softplus(score(u, v)) for u, v, n in lines for _ in range(n)]
        assert float(loss[k]) == pytest.approx(0.5 * np.mean(seen) + 0.5 * np.mean(unseen), rel=1e-4)


@given(weighted_graphs(min_nodes=6), st.sampled_from(["cross-entropy", "bpr"]), st.sampled_from(["shared", "listed"]))
def test_gradient_is_the_derivative_of_the_weighted_loss(drawn, kind, negatives):
    graph, often = drawn
    z, direction = embeddings(graph), embeddings(graph, seed=1)
    built = loss_of(kind, graph, often, negatives=negatives)
    _, gradient = built(z, 3, False)
    up, _ = built(z + 1e-2 * direction, 3, True)
    down, _ = built(z - 1e-2 * direction, 3, True)
    torch.testing.assert_close((gradient * direction).sum((1, 2)), (up - down) / 2e-2, rtol=2e-2, atol=4e-3)


@given(weighted_graphs(), st.sampled_from(["cross-entropy", "bpr"]))
def test_torch_passes_equal_the_compiled_ones(drawn, kind):
    graph, often = drawn
    z = embeddings(graph)
    compiled = loss_of(kind, graph, often)(z, 2, True)
    plain = loss_of(kind, graph, often, passes=TorchPasses)(z, 2, True)
    for a, b in zip(compiled, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def weighted(graph, weights=None):
    drawn = np.random.default_rng(5).choice([0.5, 1, 4], graph.num_edges) if weights is None else weights
    return replace(graph, edge_weights=np.asarray(drawn, np.float32))


def directed(graph):
    return replace(graph, directions=np.random.default_rng(6).integers(-1, 2, graph.num_edges).astype(np.int8))


def test_the_split_carries_weights_and_directions():
    graph = directed(weighted(town()))
    split = split_links(graph, validation_share=0.1)
    plain = split_links(town(), validation_share=0.1)
    assert (split.train == plain.train).all() and (split.test == plain.test).all()
    beside = zip(graph.edges.T.tolist(), graph.edge_weights, graph.directions, strict=True)
    found = {tuple(e): (w, d) for e, w, d in beside}
    for e, w, d in zip(split.train.T.tolist(), split.weights, split.directions, strict=True):
        assert found[tuple(e)] == (w, d)
    assert plain.weights is None and plain.directions is None


@pytest.mark.slow
@pytest.mark.parametrize("make", [town, shop])
@pytest.mark.parametrize("backbone", SOME_BACKBONES)
def test_equal_weights_are_no_weights(make, backbone):
    graph = make()
    triple = weighted(graph, np.full(graph.num_edges, 3))
    settings = [("uge-c", {}), ("none", {})] + [("uge-w", {"negatives": "listed"})] * (backbone != "mf")
    fitted = (
        run_all(g, *(config(g, method, backbone, epochs=8, **options) for method, options in settings))
        for g in (graph, triple)
    )
    for a, b in zip(*fitted, strict=True):
        assert a.config == b.config
        np.testing.assert_allclose(a.embedding, b.embedding, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(a.history["total"], b.history["total"], rtol=1e-4)


@pytest.mark.parametrize("backbone", SOME_BACKBONES)
def test_ignoring_weights_and_directions_is_the_graph_without_to_the_bit(backbone):
    graph, rich = town(), directed(weighted(town()))
    options = {"edge_weights": "ignore", "direction": "ignore"}
    plain, ignored, used = (
        run(g, config(g, "uge-w", backbone, epochs=6, **o))[0] for g, o in ((graph, {}), (rich, options), (rich, {}))
    )
    assert (plain.embedding == ignored.embedding).all() and (plain.twin == ignored.twin).all()
    assert not np.allclose(plain.embedding, used.embedding)
    assert plain.diagnostics["beside_edges"] == {}
    messages = find("backbones", backbone).messages
    assert ignored.diagnostics["beside_edges"]["weights"] == "ignored"
    assert (
        ("not weighed" in used.diagnostics["beside_edges"]["weights"]) == (backbone == "gat") == (messages == "plain")
    )
    followed = used.diagnostics["beside_edges"]["directions"]
    assert ("followed by messages" in followed) == (messages != "none") and "unordered pairs" in followed


@pytest.mark.parametrize("backbone", SOME_BACKBONES)
def test_directions_reach_messages_and_walks_alone(backbone):
    graph = town()
    a, b = (run(g, config(g, backbone=backbone, epochs=6))[0].embedding for g in (graph, directed(graph)))
    kind = find("backbones", backbone)
    assert (a == b).all() == (kind.messages == "none" and not kind.walks_follow)


@pytest.mark.parametrize(("backbone", "methods"), shared_out())
def test_every_method_trains_on_a_weighted_directed_graph(backbone, methods):
    graph = directed(weighted(town()))
    split = split_links(graph, validation_share=0.05)
    configs = [quick(graph, m, backbone, validation=0.05) for m in methods]
    for group in ensembles(configs):
        for f in fit([configs[i] for i in group], graph, split, device="cpu"):
            total = f.history["edge_loss" if f.config.method in ADVERSARIES else "total"]
            assert np.isfinite(f.embedding).all() and total[-1] < total[0], f.config.method


@pytest.mark.slow
@pytest.mark.parametrize("backbone", SOME_BACKBONES)
def test_heavy_edges_score_higher(backbone):
    graph = town()
    heavy = np.random.default_rng(3).random(graph.num_edges) < 0.3
    rich = weighted(graph, np.where(heavy, 20, 1))

    def gap(g):
        z = run(g, config(g, backbone=backbone, epochs=100))[0].embedding
        split = split_links(rich)
        score = (z[split.train[0]] * z[split.train[1]]).sum(1)
        return (score[split.weights > 1].mean() - score[split.weights <= 1].mean()) / score.std()

    assert gap(rich) > gap(graph) + 0.3


def test_exported_weights_count_edges_by_weight_and_gains_once():
    graph = weighted(town())
    split = split_links(graph)
    used, ignored = (
        edge_weights(config(graph, "uge-w", edge_weights=how), graph, split, split.train) for how in ("use", "ignore")
    )
    assert not np.allclose(used, ignored)
    assert (ignored == edge_weights(config(town(), "uge-w"), town(), split_links(town()), split.train)).all()
    # NDCG ranks every held-out edge once, so that its tables do not weigh edges either
    a, b = (bias_free_gains(g, split_links(g), ["city"], unknown="exclude").weight for g in (graph, town()))
    assert (a == b).all()


def ids(graph, **given):
    return config(graph, **given).run_id(graph.fingerprint)


def test_options_that_change_nothing_make_no_other_run():
    plain, rich, ways = town(), weighted(town()), directed(town())
    both = {"edge_weights": "ignore", "direction": "ignore"}
    assert ids(plain) == ids(plain, **both)
    assert ids(rich) != ids(rich, edge_weights="ignore") and ids(rich) == ids(rich, direction="ignore")
    assert ids(ways, backbone="gat") != ids(ways, backbone="gat", direction="ignore")
    assert ids(ways) == ids(ways, direction="ignore") and ids(ways, backbone="mf") == ids(ways, backbone="mf", **both)
    assert config(rich, options={"edge_weights": "ignore"}).edge_weights == "ignore"


def followers(folder: Path) -> Path:
    """A directed weighted graph of which every other row runs from the larger number to the smaller."""
    rng = np.random.default_rng(0)
    pairs = sorted({tuple(sorted(p)) for p in rng.integers(0, 150, (700, 2)).tolist() if p[0] != p[1]})
    rows = [f"p{v},p{u},{1 + i % 4}" if i % 2 else f"p{u},p{v},{1 + i % 4}" for i, (u, v) in enumerate(pairs)]
    (folder / "edges.csv").write_text("\n".join(["from,to,weight", *rows]) + "\n")
    (folder / "nodes.csv").write_text("id,city\n" + "".join(f"p{i},{'AB'[i % 2]}\n" for i in range(150)))
    (folder / "dataset.yaml").write_text("edges: edges.csv\nnodes: nodes.csv\ndirected: true\n")
    return folder


def test_from_files_to_the_export(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    folder = followers(tmp_path)
    assert uge(["data", "inspect", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["directed"] is True and found["weighted"] is True
    assert uge(["train", str(folder), "--backbone", "gcn", "--epochs", "5", "--device", "cpu"]) == 0
    run_id = capsys.readouterr().out.splitlines()[-1]
    out = tmp_path / "out"
    assert uge(["runs", "export", run_id, "--what", "weights", "--sensitive-output", "--out", str(out)]) == 0
    warning, header, *rows = (out / "weights.csv").read_text().splitlines()
    assert warning.startswith("# Sensitive personal data") and header == "source,target,weight,edge_weight"
    given = {
        tuple(row.split(",")[:2]): float(row.split(",")[2]) for row in (folder / "edges.csv").read_text().split()[1:]
    }
    cells = [row.split(",") for row in rows]
    assert len(cells) == round(0.9 * len(given))
    assert all(given[a, b] == float(own) and float(w) == 1 for a, b, w, own in cells)
    backwards = [1 for a, b, _, _ in cells if int(a[1:]) > int(b[1:])]
    assert 0.3 < len(backwards) / len(cells) < 0.7


@pytest.mark.parametrize("method", ["fairwalk", "crosswalk"])
def test_the_export_of_a_method_that_chooses_steps_is_their_chances(tmp_path, monkeypatch, capsys, method):
    """On walks no edge has one weight: what is exported is how a first step is taken, along directions."""
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    folder, out = followers(tmp_path), tmp_path / "out"
    train = ["train", str(folder), "--sensitive", "city", "--method", method, "--backbone", "deepwalk", "--epochs", "1"]
    assert uge([*train, "--exposure", "seen", "--device", "cpu"]) == 0
    run_id = capsys.readouterr().out.splitlines()[-1]
    assert uge(["runs", "export", run_id, "--what", "weights", "--sensitive-output", "--out", str(out)]) == 0
    _, header, *rows = (out / "weights.csv").read_text().splitlines()
    assert header == "source,target,step_chance,step_chance_back,edge_weight"
    total, groups = {}, {}
    for source, target, there, back, _ in (row.split(",") for row in rows):
        assert float(there) > 0 and float(back) == 0
        total[source] = total.get(source, 0) + float(there)
        side = int(target[1:]) % 2
        groups.setdefault(source, {}).setdefault(side, 0)
        groups[source][side] += float(there)
    assert all(found == pytest.approx(1) for found in total.values())
    mixed = [share for share in groups.values() if len(share) == 2]
    assert len(mixed) > 20 and all(x == pytest.approx(0.5) for share in mixed for x in share.values())
