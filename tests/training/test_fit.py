import importlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from strategies import attribute
from toys import (
    ADVERSARIES,
    BACKBONES,
    METHODS,
    SOME_BACKBONES,
    config,
    quick,
    refused,
    run,
    run_all,
    shared_out,
    shop,
    town,
)

from uge_core import registry
from uge_core.errors import ConfigError, TrainingDiverged
from uge_core.graph.graph import AttributedGraph, simple_edges
from uge_core.graph.split import probe_split, split_links
from uge_core.training.config import RunConfig
from uge_core.training.ensembles import ensembles
from uge_core.training.fit import fit
from uge_core.training.loop import EpochProgress
from uge_core.training.weights import bias_free_gains, edge_weights

ERASERS = ("inlp", "leace")


@pytest.mark.parametrize(("backbone", "methods"), shared_out("node2vec", "gcn"))
def test_every_method_trains_on_every_backbone(backbone, methods):
    trains(town(), backbone, methods)


@pytest.mark.parametrize(("backbone", "methods"), shared_out("mf"))
def test_every_method_trains_on_a_bipartite_graph(backbone, methods):
    trains(shop(), backbone, methods)


def trains(graph, backbone, methods):
    """Losses fall, neighbours score higher than others, and who reads attributes has a twin."""
    not_served = refused(graph)
    assert graph.bipartite or not not_served
    for m in not_served:
        with pytest.raises(ConfigError, match="bipartite"):
            run(graph, config(graph, m, backbone))
    for f in run_all(graph, *(quick(graph, m, backbone) for m in methods if m not in not_served)):
        # an adversary's part of the total rises as it learns
        total = f.history["edge_loss" if f.config.method in ADVERSARIES else "total"]
        assert f.embedding.shape == (graph.num_nodes, 16) and np.isfinite(f.embedding).all()
        assert total[-1] < total[0], f.config.method
        assert (f.twin is None) == (not registry.find("debias.methods", f.config.method).reads_attributes)
        u, v = split_links(graph).train
        rng = np.random.default_rng(0)
        seen = (f.embedding[u] * f.embedding[v]).sum(1).mean()
        other = (f.embedding[rng.permutation(u)] * f.embedding[rng.permutation(v)]).sum(1).mean()
        # In these few epochs a contest ends anywhere: the last digits of another processor decide it.
        assert seen > other or f.config.method in ADVERSARIES, f.config.method


@pytest.mark.parametrize(("backbone", "methods"), shared_out("node2vec"))
def test_a_member_equals_the_same_run_alone(backbone, methods):
    graph = town()
    configs = [config(graph, m, backbone, epochs=8, exposure="seen", seed=s) for m in methods for s in (0, 1)]
    for together in run_all(graph, *configs):
        if together.config.seed == 1:  # was there as a neighbour
            continue
        alone = run(graph, together.config)[0]
        gap = np.linalg.norm(together.embedding - alone.embedding) / np.linalg.norm(alone.embedding)
        assert gap <= 1e-4, together.config.method


@pytest.mark.parametrize("backbone", SOME_BACKBONES)
@pytest.mark.parametrize("n", [90, 83])
def test_uge_c_at_lambda_0_is_uge_w_to_the_bit(backbone, n):
    graph = town(n)
    w, c = (config(graph, m, backbone, lam=lam, epochs=8) for m, lam in (("uge-w", None), ("uge-c", 0.0)))
    together = run(graph, w, c)
    alone = [run(graph, w)[0], run(graph, c)[0]]
    for a, b in (together, alone):
        assert (a.embedding == b.embedding).all() and (a.twin == b.twin).all()


def test_uge_c_with_unit_weights_is_uge_r():
    # a million million pseudo-edges leave every ratio at its bias-free rate, so every weight is 1
    graph = town()
    huge = {"shrinkage": 1e12}
    c, r = run(graph, config(graph, "uge-c", lam=0.5, options=huge), config(graph, "uge-r", lam=0.5))
    np.testing.assert_allclose(c.embedding, r.embedding, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("backbone", SOME_BACKBONES)
def test_two_runs_are_equal_to_the_bit_and_seeds_differ(backbone):
    graph = town()
    drawn = (
        ("uge-r", {"norm": "absolute"}),
        ("uge-c", {"estimator": "sampled"}),
        ("uge-ok", {"moments": 2}),
        ("uge-ok", {}),
    )
    configs = [config(graph, method, backbone, options=options, epochs=8) for method, options in drawn]
    configs.append(replace(configs[-1], seed=1))
    first, again = (run(graph, *configs) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        assert (a.embedding == b.embedding).all() and (a.twin == b.twin).all(), a.config.method
    assert (first[-1].embedding != first[-2].embedding).any()


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["node2vec", "mf", "gat", "deepwalk"])
def test_work_done_in_turn_gives_the_bits_of_threads(backbone, monkeypatch):
    graph = town()
    alone = run(graph, config(graph, "uge-c", backbone))[0]
    for module in ("training.edge_loss.compiled", "graph.walks", "backbones._attention"):
        monkeypatch.setattr(importlib.import_module(f"uge_core.{module}"), "_WORTH", 0)
    spread = run(graph, config(graph, "uge-c", backbone))[0]
    assert (alone.embedding == spread.embedding).all() and (alone.twin == spread.twin).all()


def test_weight_decay_leaves_lookup_tables_alone():
    graph = town()
    for backbone in ("node2vec", "mf"):
        small, large = (run(graph, config(graph, backbone=backbone, weight_decay=d))[0].embedding for d in (0.0, 0.5))
        assert (small == large).all()
    # and it does reach layer matrices, or the test above would hold for a decay that is never applied
    small, large = (run(graph, config(graph, backbone="gcn", weight_decay=d))[0].embedding for d in (0.0, 0.5))
    assert np.linalg.norm(large) < 0.9 * np.linalg.norm(small)


@pytest.mark.slow
def test_lambda_lowers_its_penalty():
    graph = town()
    for method in ("uge-r", "uge-c", "uge-ok"):
        fitted = run(graph, *(config(graph, method, lam=lam, epochs=50) for lam in (0.0, 2.0)))
        assert fitted[1].history["penalty"][-1] < fitted[0].history["penalty"][-1]


@pytest.mark.parametrize("hidden", ["impute", "exclude"])
def test_the_twin_never_sees_the_probe_tests_values(hidden):
    graph = town()
    readers = [m for m in METHODS if registry.find("debias.methods", m).reads_attributes]
    before = run_all(graph, *(config(graph, m, hidden=hidden, epochs=8) for m in readers))
    mask = before[0].hidden["city"]
    probe = probe_split(graph.attribute("city"), unknown="exclude", seed=0)
    assert (np.nonzero(mask)[0] == probe.test).all()
    # swap values among hidden nodes: class sizes stay, so the probe split stays; only who has what changes
    codes = graph.attribute("city").codes.copy()
    a, b = np.nonzero(mask & (codes == 0))[0], np.nonzero(mask & (codes == 1))[0]
    k = min(len(a), len(b))
    assert k > 0
    codes[a[:k]], codes[b[:k]] = 1, 0
    changed = AttributedGraph("town", graph.num_nodes, graph.edges, (attribute("city", codes), graph.attributes[1]))
    moved = probe_split(changed.attribute("city"), unknown="exclude", seed=0)
    assert len(moved.test) == len(probe.test)
    after = fit_with_mask(changed, [config(changed, m, hidden=hidden, epochs=8) for m in readers], mask)
    for a, b in zip(after, before, strict=True):
        method = a.config.method
        assert method == b.config.method
        assert (b.hidden["city"] == mask).all() and (a.twin == b.twin).all(), method
        # the exported embedding did see them, but for what is fitted where no attacker is tested
        assert (a.embedding != b.embedding).any() != (method in ERASERS), method


def fit_with_mask(graph, configs, mask):
    """`fit` with the hidden nodes given, as a probe split depends on the values it splits."""
    training = importlib.import_module("uge_core.training.method_inputs")

    class Fixed:
        test = np.nonzero(mask)[0]

    original = training.probe_split
    training.probe_split = lambda *args, **kwargs: Fixed
    try:
        return run_all(graph, *configs)
    finally:
        training.probe_split = original


def test_held_out_edges_do_not_reach_training():
    graph = town()
    split = split_links(graph)
    only_train = AttributedGraph("town", graph.num_nodes, np.ascontiguousarray(split.train), graph.attributes)
    empty = type(split)(split.train, split.validation[:, :0], split.test[:, :0], 0)
    for backbone in BACKBONES:
        a = fit([config(graph, "uge-c", backbone, epochs=5)], graph, split, device="cpu")[0]
        b = fit([config(only_train, "uge-c", backbone, epochs=5)], only_train, empty, device="cpu")[0]
        assert (a.embedding == b.embedding).all()


def test_validation_keeps_the_best_epoch():
    from uge_core.audit.ndcg import ndcg_per_target, rank_candidates
    from uge_core.graph.split import ranking_task

    graph = town(400)
    split = split_links(graph, validation_share=0.1)
    task = ranking_task(replace(graph, edges=np.concatenate([split.train, split.validation], axis=1)), split.validation)

    def quality(z):
        ranking = rank_candidates(z, task)
        return np.nanmean(ndcg_per_target(ranking, np.ones(len(ranking.rank)), len(task.targets)))

    settings = {"epochs": 200, "exposure": "seen", "learning_rate": 0.05}
    kept = fit([config(graph, validation=0.1, **settings)], graph, split, device="cpu")[0]
    # the same training to its last epoch: its split has the same training edges and nothing to choose by
    plain = type(split)(split.train, split.validation[:, :0], split.test, 0)
    last = fit([config(graph, **settings)], graph, plain, device="cpu")[0]
    assert kept.best_epoch < 200 and quality(kept.embedding) > quality(last.embedding)


def test_a_validation_share_that_sets_nothing_aside_is_refused():
    star = AttributedGraph("star", 5, np.array([[0, 0, 0, 0], [1, 2, 3, 4]]))
    with pytest.raises(ConfigError, match="no edge could be set aside"):
        fit([RunConfig.resolve(star, validation=0.5)], star, split_links(star, validation_share=0.5), device="cpu")


def test_gains_fall_back_to_independence_where_groups_are_too_many():
    n, rng = 6000, np.random.default_rng(0)
    edges, _, _ = simple_edges(rng.integers(0, n, 9000), rng.integers(0, n, 9000), n)
    wide = [
        type(a)(a.name, a.codes, tuple(map(str, range(90))))
        for a in (attribute(x, rng.permutation(n) % 90) for x in "ab")
    ]
    graph = AttributedGraph("wide", n, edges, tuple(wide))
    split = split_links(graph)
    gains = bias_free_gains(graph, split, ["a"], unknown="exclude")
    assert (
        gains.weight.shape == (split.test.shape[1],) and np.isfinite(gains.weight).all() and "independent" in gains.note
    )
    with pytest.raises(ConfigError, match="4096"):
        fit([config(graph, "uge-w", sensitive="a")], graph, split, device="cpu")


def test_progress_and_cancelling():
    graph, seen = town(), []

    def stop(p: EpochProgress):
        seen.append(p)
        if p.epoch == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(graph, config(graph), on_epoch=stop)
    assert [p.epoch for p in seen] == [1, 2, 3, 4, 5] and seen[0].epochs == 20 and seen[-1].seconds_left >= 0


def test_what_cannot_train_together_is_split_and_refused():
    graph = town()
    configs = [config(graph), config(graph, backbone="gcn"), config(graph, "uge-w"), config(graph, epochs=5)]
    assert ensembles(configs) == [[0, 2], [1], [3]]
    with pytest.raises(ConfigError, match="cannot train together"):
        run(graph, *configs)


def test_only_the_diverging_configs_are_named():
    graph = town()
    with pytest.raises(TrainingDiverged) as raised:
        run(graph, config(graph), config(graph, "uge-r", lam=1e308), config(graph, "uge-w"))
    assert raised.value.members == (1,)


def test_divergence_is_said_with_member_and_epoch():
    graph = town()
    with pytest.raises(TrainingDiverged, match=r"loss is not finite at epoch \d+ of uge-r lambda=0\.5 \[city\] seed=0"):
        run(graph, replace(config(graph, "uge-r"), learning_rate=1e25))


def test_no_cuda_is_said():
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    graph = town()
    with pytest.raises(ConfigError, match="device = cuda"):
        fit([config(graph)], graph, split_links(graph), device="cuda")


def test_bpr_without_item_cells_refuses_an_offset():
    graph = shop()
    with pytest.raises(ConfigError, match="cancels"):
        run(graph, config(graph, "uge-o", "mf", options={"item_cells": "none"}))


def test_exported_weights_and_gains():
    graph = town()
    split = split_links(graph)
    assert (edge_weights(config(graph), graph, split, split.train) == 1).all()
    w = edge_weights(config(graph, "uge-w"), graph, split, split.train)
    assert w.shape == (split.train.shape[1],) and (w > 0).all() and np.ptp(w) > 0
    gains = bias_free_gains(graph, split, ["city"], unknown="exclude").weight
    same = graph.attribute("city").codes[split.test[0]] == graph.attribute("city").codes[split.test[1]]
    # same-city edges are over-represented, so they gain less
    assert gains[same].max() < gains[~same].min()


def test_advice_names_thin_cells_and_a_copy_of_the_sensitive_attribute():
    graph = town()
    city = graph.attribute("city")
    copied = replace(graph, attributes=(*graph.attributes, replace(city, name="district")))
    thin = replace(graph, attributes=(*graph.attributes, attribute("street", np.arange(90) % 30)))

    def advice(of, method="uge-w", **kwargs):
        return run(of, config(of, method, epochs=1, **kwargs))[0].diagnostics["advice"]

    assert advice(graph) == []
    (copy,) = advice(copied)
    assert copy.startswith("district says nearly the same as city") and "--sensitive city+district" in copy
    assert advice(copied, sensitive="city,district") == []
    (warning,) = advice(thin)
    assert warning.startswith("cells are thin") and "independence=true" in warning
    assert advice(thin, options={"independence": True}) == []
    assert advice(thin, method="none") == []


def test_a_validation_share_under_one_edge_says_so():
    graph = AttributedGraph("ring", 40, np.stack([np.arange(39), np.arange(1, 40)]))
    with pytest.raises(ConfigError, match="no whole edge"):
        fit(
            [RunConfig.resolve(graph, validation=0.001)],
            graph,
            split_links(graph, validation_share=0.001),
            device="cpu",
        )


def test_two_orders_of_line_need_two_columns():
    graph = AttributedGraph("ring", 40, np.stack([np.arange(39), np.arange(1, 40)]))
    with pytest.raises(ConfigError, match="dim 2 or more"):
        fit([RunConfig.resolve(graph, backbone="line", options={"dim": 1})], graph, split_links(graph), device="cpu")
