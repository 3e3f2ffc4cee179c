import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import bpr, listed_cross_entropy, softplus
from strategies import attribute, graphs

from uge_core.backbones._inputs import Inputs
from uge_core.cli.bench.autograd import OneNegative, SharedBlock
from uge_core.cli.bench.literal import Literal
from uge_core.cli.bench.measure import measure
from uge_core.cli.bench.pace import Enough, Pace, Stopwatch
from uge_core.cli.bench.plain import Encoder
from uge_core.cli.bench.run import bench, fitted_exponent
from uge_core.cli.bench.tables import sections
from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph, simple_edges
from uge_core.graph.split import split_links
from uge_core.registry import find
from uge_core.training.config import RunConfig
from uge_core.training.fit import fit
from uge_core.training.weights import edge_weights

ROOT = Path(__file__).resolve().parents[3]
CPU = torch.device("cpu")


def drawn(n=60, users=None, seed=0, edges=200):
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, users or n, edges), rng.integers(users or 0, n, edges)
    made, _, _ = simple_edges(source, target, n)
    codes = np.where(np.arange(n) < (users or n), rng.integers(0, 3, n), -2)
    side = "nodes" if users is None else "users"
    return AttributedGraph("drawn", n, made, (attribute("city", codes, side=side, num_values=3),), num_users=users)


def inputs_of(graph, edges=None):
    return Inputs(graph.num_nodes, graph.edges if edges is None else edges, graph.features, CPU)


def weights_of(graph, seed=1):
    return np.random.default_rng(seed).uniform(0.2, 3, graph.edges.shape[1]).astype(np.float32)


def embeddings(graph, dim=4, seed=0):
    return torch.randn(graph.num_nodes, dim, generator=torch.Generator().manual_seed(seed))


def linked(graph):
    return {(int(u), int(v)) for u, v in np.concatenate([graph.edges, graph.edges[::-1]], axis=1).T}


def complete(graph):
    """Whether some node has no stranger."""
    room = graph.num_nodes - 1 if graph.num_users is None else min(graph.num_users, graph.num_nodes - graph.num_users)
    return graph.degree.max() >= room


@given(graphs(), st.sampled_from(["node2vec", "mf"]))
def test_the_literal_loss_equals_the_loops(graph, backbone):
    assume(not complete(graph))
    weight, z = weights_of(graph), embeddings(graph)
    config = RunConfig.resolve(graph, backbone=backbone, options={"dim": 4})
    rival = Literal(config, inputs_of(graph), graph.num_users, weight=weight)
    of = {tuple(e): float(w) for e, w in zip(graph.edges.T.tolist(), weight, strict=True)}
    lines = list(zip(*(x.tolist() for x in rival.lines), strict=True))
    pair_weight = lambda u, v: of[min(u, v), max(u, v)]  # noqa: E731
    if backbone == "mf":
        exact = bpr(z.double().numpy(), lines, pair_weight, lambda u, v: 0.0, len(lines))
    else:
        exact = listed_cross_entropy(z.double().numpy(), [(u, v, j, pair_weight(u, v)) for u, v, j in lines])
    assert float(rival.loss(z)) == pytest.approx(exact, rel=1e-4)


@given(graphs(min_nodes=6), st.sampled_from(["node2vec", "mf"]))
def test_the_literal_recipe_lists_each_pair_twenty_times(graph, backbone):
    assume(not complete(graph))
    config = RunConfig.resolve(graph, backbone=backbone)
    source, liked, stranger = (
        x.tolist() for x in Literal(replace(config, num_negatives=20), inputs_of(graph), graph.num_users).lines
    )
    edges = linked(graph)
    one_way = backbone == "mf" and graph.bipartite
    wanted = {e for e in edges if not one_way or e[0] < e[1]}
    assert Counter(zip(source, liked, strict=True)) == dict.fromkeys(wanted, 20)
    for u, j in zip(source, stranger, strict=True):
        assert (u, j) not in edges and u != j
        assert not graph.bipartite or (u < graph.num_users) != (j < graph.num_users)


def test_a_node_without_stranger_is_left_out_of_the_lines():
    star = AttributedGraph("star", 4, np.array([[0, 0, 0], [1, 2, 3]]))
    config = RunConfig.resolve(star)
    assert 0 not in Literal(config, inputs_of(star)).lines[0].tolist()
    triangle = AttributedGraph("triangle", 3, np.array([[0, 0, 1], [1, 2, 2]]))
    with pytest.raises(ConfigError, match="no negative to list"):
        Literal(config, inputs_of(triangle))


@pytest.mark.parametrize("backbone", ["node2vec", "gcn", "mf"])
def test_pieces_make_the_same_steps(backbone):
    graph = drawn()
    config = RunConfig.resolve(graph, backbone=backbone)
    rivals = [Literal(config, inputs_of(graph), most_bytes=most) for most in (None, 1_000_000)]
    assert rivals[0].pieces == 1 and rivals[1].pieces > 3
    rivals[1].encoder.load_state_dict(rivals[0].encoder.state_dict())
    for rival in rivals:
        for _ in range(3):
            rival.epoch()
    torch.testing.assert_close(rivals[0].encoder(), rivals[1].encoder(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("users", [None, 40])
@pytest.mark.parametrize("backbone", ["node2vec", "mf"])
def test_one_negative_has_the_mean_over_uniform_strangers(backbone, users):
    graph = drawn(users=users)
    weight, z = weights_of(graph), 0.5 * embeddings(graph)
    config = RunConfig.resolve(graph, backbone=backbone, options={"dim": 4})
    rival = OneNegative(config, inputs_of(graph), users, weight=weight)
    got = np.mean([float(rival.loss(z)) for _ in range(1000)])
    s = (z @ z.T).double().numpy()
    pairs = [(u, v, w) for (u, v), w in zip(graph.edges.T.tolist(), weight.tolist(), strict=True)]
    if backbone != "mf" or users is None:
        pairs += [(v, u, w) for u, v, w in pairs]
    reach = {u: range(60) if users is None else range(users, 60) if u < users else range(users) for u in range(60)}
    exact = 0.0
    for u, v, w in pairs:
        if backbone == "mf":
            exact += w * np.mean([softplus(s[u, j] - s[u, v]) for j in reach[u]])
        else:
            exact += 0.5 * w * softplus(-s[u, v]) + 0.5 * np.mean([softplus(s[u, j]) for j in reach[u]])
    assert got == pytest.approx(exact / len(pairs), rel=5e-3)


@pytest.mark.parametrize("users", [None, 35])
@pytest.mark.parametrize("method", ["none", "uge-w"])
def test_the_shared_block_trains_as_our_engine_does(users, method):
    # a block of all nodes leaves nothing to chance, so losses and steps have to agree
    graph = drawn(users=users)
    split = split_links(graph)
    wide = {"block_size": 60, "learning_rate": 0.05, "init_std": 0.5}
    make = lambda **kwargs: RunConfig.resolve(  # noqa: E731
        graph, sensitive="city", method=method, exposure="seen", options=wide | kwargs
    )
    config = make(epochs=30)
    start = fit([make(epochs=1, learning_rate=1e-8)], graph, split, device="cpu")[0].embedding
    weight = edge_weights(config, graph, split, split.train)
    rival = SharedBlock(config, inputs_of(graph, split.train), users, weight=weight)
    with torch.no_grad():
        rival.encoder.table.weight.copy_(torch.as_tensor(start))
    ours = fit([config], graph, split, device="cpu")[0]
    losses = {}
    for epoch in range(1, 31):
        losses[epoch] = float(rival.loss(rival.encoder()).detach())
        rival.epoch()
    logged = ours.history["epoch"]
    assert [losses[e] for e in logged] == pytest.approx(ours.history["edge_loss"], rel=1e-4) and len(logged) >= 2
    np.testing.assert_allclose(rival.encoder().detach().numpy(), ours.embedding, rtol=1e-3, atol=1e-3)


def test_bpr_has_no_shared_block():
    graph = drawn(users=40)
    with pytest.raises(ConfigError, match="has no shared block"):
        SharedBlock(RunConfig.resolve(graph, backbone="mf"), inputs_of(graph), 40)


@pytest.mark.parametrize("backbone", ["node2vec", "gcn", "sgc", "gat", "mf"])
@pytest.mark.parametrize("features", [False, True])
def test_both_sides_train_the_same_model(backbone, features):
    graph = drawn()
    if features:
        graph = replace(graph, features=np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32))
    config = RunConfig.resolve(graph, backbone=backbone)
    inputs = inputs_of(graph)
    ours = find("backbones", backbone)(**config.backbone_options).init(inputs, config.dim, torch.Generator())
    plain = Encoder(config, inputs)
    sizes = Counter(t.numel() for t in [*ours.tables.values(), *ours.layers.values()])
    assert Counter(p.numel() for p in plain.parameters()) == sizes
    decay = [
        g["weight_decay"]
        for p in plain.parameters()
        for g in plain.optimiser(config).param_groups
        if p in set(g["params"])
    ]
    assert len(decay) == sum(sizes.values()) and decay.count(0.0) == len(ours.tables)
    rival = OneNegative(config, inputs)
    rival.loss(rival.encoder()).backward()
    assert rival.encoder().shape == (60, 16) and all(p.grad is not None for p in rival.encoder.parameters())


def test_the_stopwatch_leaves_the_warm_up_out_and_reads_jumps():
    now = iter([0.0, 9.0, 10.0, 10.5, 11.0, 13.0])
    watch = Stopwatch(Pace(warm=2, least=3, seconds=1.0, most=50), lambda: None, lambda: next(now))
    for epoch in (1, 2, 3):
        watch(epoch)
    watch(4)  # two epochs are not enough, whatever the time
    with pytest.raises(Enough):
        watch(8)  # a callback may come once in several epochs
    assert watch.record() == {"seconds": 0.5, "epochs": 6, "first_seconds": 9.0}
    ticks = iter(np.arange(100) * 1e-3)
    watch = Stopwatch(Pace(warm=1, least=1, seconds=9.0, most=5), lambda: None, lambda: next(ticks))
    with pytest.raises(Enough):
        for epoch in range(1, 50):
            watch(epoch)
    assert watch.record()["epochs"] == 5


def test_what_cannot_train_says_why():
    bare = AttributedGraph("bare", 3, np.array([[0, 0, 1], [1, 2, 2]]))
    pace = Pace(1, 1, 0.0, 1)
    found = measure(bare, "literal", [RunConfig.resolve(bare, test_share=0.0)], pace, "cpu")
    assert set(found) == {"refused"} and "no negative to list" in found["refused"]
    for wrong in ({"parts": ["speed"]}, {"backbones": ["gnc"]}, {"device": "tpu"}, {"nodes": [100]}):
        with pytest.raises(ConfigError, match=r"allowed|two sizes"):
            bench([], **wrong)


def test_the_exponent_is_the_slope_of_the_logs():
    points = [{"nodes": n, "seconds": 3e-6 * n**1.5, "refused": None} for n in (100, 1000, 50_000)]
    assert fitted_exponent([*points, {"nodes": 10**6, "refused": "no"}]) == pytest.approx(1.5)
    assert fitted_exponent(points[:1]) is None


def uge_bench(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "uge_core", "bench", "--quick", "--device", "cpu", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"OMP_WAIT_POLICY": "passive"},
    )


@pytest.mark.alone
@pytest.mark.slow
def test_the_command_prints_ratios_above_one():
    done = uge_bench("--json", "--what", "epochs", "--backbone", "node2vec", "sample:town")
    record = json.loads(done.stdout)
    assert record["schema"] == "uge-bench/1" and record["quick"] and record["lambdas"] == record["scaling"] == []
    machine = record["machine"]
    assert machine["device"] == "cpu" and machine["threads"] >= 1 and machine["packages"]["torch"]
    assert bool(record["warnings"]) == (machine["load_average"] >= 0.25 * machine["threads"])
    rows = {(r["contestant"], r["method"]): r for r in record["epochs"]}
    assert set(rows) == {("ours", m) for m in ("none", "uge-c", "uge-ok")} | {
        (r, "none") for r in ("literal", "one-negative", "shared-block")
    }
    for row in rows.values():
        assert row["refused"] is None and row["seconds"] > 0 and row["epochs"] >= 1 and row["first_seconds"] > 0
        assert row["data"] == "town" and 50 < row["start_mb"] <= row["peak_mb"]
    ours = rows["ours", "none"]
    assert ours["times_faster_than"]["literal"] == rows["literal", "none"]["seconds"] / ours["seconds"]
    # hundreds and about seven on a quiet machine
    assert ours["times_faster_than"]["literal"] > 5 and ours["times_faster_than"]["one-negative"] > 1
    assert rows["literal", "none"]["peak_mb"] > ours["peak_mb"] and ours["times_none"] == 1
    assert rows["ours", "uge-ok"]["times_faster_than"] is None and rows["ours", "uge-ok"]["times_none"] > 0
    assert "town node2vec literal:" in done.stderr
    ((_, head, table),) = sections(record)
    assert len(table) == 6 and all(len(row) == len(head) for row in table)


@pytest.mark.alone
@pytest.mark.slow
def test_lambda_path_and_scaling():
    record = json.loads(uge_bench("--json", "--what", "lambdas,scaling", "sample:titles").stdout)
    (path,) = record["lambdas"]
    assert path["backbone"] == "mf" and path["members"] == 10
    assert path["times_solo"] == path["seconds"] / path["solo_seconds"] and 1 < path["times_solo"] < 30
    steps = [(r["step"], r["method"]) for r in record["scaling"]]
    assert steps == [("reading", None), ("training", "none"), ("training", "uge-c"), ("auditing", "none")]
    for r in record["scaling"]:
        assert [p["nodes"] for p in r["points"]] == [500, 1000, 2000] and -0.5 < r["exponent"] < 2.5
        assert r["points"][2]["edges"] == pytest.approx(27_500, rel=0.05)
        assert all(p["refused"] is None and 0 < p["start_mb"] <= p["peak_mb"] for p in r["points"])
    assert all(len(row) == len(head) for _, head, table in sections(record) for row in table)


@pytest.mark.slow
def test_the_command_prints_tables():
    text = uge_bench("--what", "scaling", "--nodes", "300,600", "--degree", "6").stdout
    assert "Quote ratios" in text and "training none N^" in text and "auditing none N^" in text
