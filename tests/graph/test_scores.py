"""CNE's distance as a score: against loops, through training, audits, stores and commands."""

from __future__ import annotations

import json

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy.stats import halfnorm
from strategies import attribute, graphs
from toys import (
    CPU,
    SHARED,
    SOME_BACKBONES,
    WALKS,
    blocks_of,
    both_tables,
    config,
    embeddings,
    lookups,
    pairs_of,
    run,
    run_all,
    shop,
)
from toys import popular_town as popular_town
from toys import town as village

import uge_core as uge
from uge_core.audit import ndcg, ndkl, parity
from uge_core.audit import run as audit_module
from uge_core.audit.ndcg import BiasFree
from uge_core.audit.pair_sample import scores as pair_scores
from uge_core.audit.run import audit_embedding
from uge_core.backbones.line import LINE
from uge_core.backbones.mf import MatrixFactorisation
from uge_core.backbones.node2vec import Node2Vec
from uge_core.cli import main as cli
from uge_core.debias.edge_factors import NoFactors
from uge_core.errors import ConfigError
from uge_core.explore.whatif.answers import Answers
from uge_core.explore.whatif.edits import FlipValue
from uge_core.explore.whatif.scenario import Scenario
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import Cosine, Distance, Dot, Factors, scorer
from uge_core.graph.split import split_links
from uge_core.registry import find
from uge_core.runs.audits import score_of
from uge_core.runs.sweep import resume
from uge_core.training import objective
from uge_core.training.config import RunConfig
from uge_core.training.edge_loss.compiled import CompiledPasses
from uge_core.training.edge_loss.loss import CrossEntropy, evaluate
from uge_core.training.edge_loss.negatives import strangers
from uge_core.training.edge_loss.pairs import Cells
from uge_core.training.edge_loss.plain import TorchPasses
from uge_core.training.ensembles import ensembles
from uge_core.training.fit import fit

SIGMAS = st.sampled_from([1.2, 2.0, 7.5])


def explicit(z, sigma=2.0):
    """(N, N) every pair's score by the formula, in loops."""
    n = len(z)
    return np.array([[reference.cne_score(z, u, v, sigma) for v in range(n)] for u in range(n)])


# Formula


@given(st.integers(2, 9), st.integers(1, 5), SIGMAS, st.integers(0, 1000), st.sampled_from([0.0, 1e3]))
def test_scores_equal_the_formula(n, d, sigma, seed, away):
    rng = np.random.default_rng(seed)
    z = (away + rng.normal(size=(n, d))).astype(np.float32)
    found = Distance(sigma).factors(z)
    np.testing.assert_allclose(found.left @ found.right.T, explicit(z, sigma), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.left, np.take(found.right, [*range(d), d + 1, d], axis=1))


def test_scores_are_the_log_ratio_of_half_normal_densities():
    z = np.random.default_rng(0).normal(size=(6, 3))
    for sigma in (1.5, 2.0):
        apart = np.linalg.norm(z[:, None] - z[None], axis=2)
        ratio = halfnorm.logpdf(apart, scale=1.0) - halfnorm.logpdf(apart, scale=sigma)
        np.testing.assert_allclose(explicit(z, sigma), ratio, atol=1e-12)
        assert np.abs(explicit(z, sigma + 0.5) - ratio).max() > 0.05


@pytest.mark.parametrize("given", [Dot(), Cosine(), Distance(), Distance(3.0)])
def test_training_scores_as_the_audit_does(given):
    z = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    left = given.left(torch.tensor(z)[None])
    found = (left @ given.right(left).transpose(1, 2))[0].numpy()
    factors = given.factors(z)
    np.testing.assert_allclose(found, factors.left @ factors.right.T, atol=1e-5)
    assert scorer(given.name) == given or scorer(given.name).name == given.name


def test_names():
    assert scorer("distance") == Distance(2.0) == scorer("distance:2.0") and scorer("distance:2.0").name == "distance"
    assert Distance(3.0).name == "distance:3" and scorer("distance:1.25").name == "distance:1.25"
    with pytest.raises(ConfigError, match=r"unknown score 'distanse'; allowed: dot, cosine, distance. Did you mean"):
        scorer("distanse")
    for bad in ("distance:1", "distance:", "distance:x", "distance:inf", "distance:nan", "distance:-3"):
        with pytest.raises(ConfigError, match="allowed: a number above 1, as distance:3"):
            scorer(bad)
    with pytest.raises(ConfigError, match="scale the embedding down first"):
        Distance().factors(np.outer([1e18, -1e18], np.ones(9)).astype(np.float32))


# Loss and gradient


def built(backbone, graph, scorer):
    tables = both_tables(graph)
    return objective.build(
        backbone,
        pairs_of(graph),
        tables,
        CPU,
        factors=[NoFactors()] * 4,
        rules=[None] * 4,
        directions=None,
        dim=4,
        scorer=scorer,
        **SHARED,
    )


def plain_passes(loss, graph, scorer):
    """The same loss with torch's passes in place of the compiled ones."""
    make = lambda pairs: TorchPasses(pairs, CPU, scorer)  # noqa: E731
    if hasattr(loss, "second"):
        loss.first.passes, loss.second.passes = make(pairs_of(graph)), make(objective.doubled(pairs_of(graph)))
    elif hasattr(loss.inner, "walkers"):
        loss.inner._passes = make
    else:
        loss.inner.passes = make(pairs_of(graph))
    return loss


@given(graphs(), st.integers(1, 50), SIGMAS, st.booleans())
def test_losses_equal_the_loops(graph, epoch, sigma, plain):
    given = Distance(sigma)
    z, nothing = embeddings(graph), np.zeros((graph.num_nodes, 1))
    cross, ranked, walked = (built(b, graph, given) for b in (Node2Vec(), MatrixFactorisation(), WALKS))
    if plain:
        cross, ranked, walked = (plain_passes(loss, graph, given) for loss in (cross, ranked, walked))
    u, i, j = CompiledPasses(pairs_of(graph)).triples(epoch)
    triples = list(zip(u.tolist(), i.tolist(), j.tolist(), strict=True))
    blocks = blocks_of(pairs_of(graph), epoch)
    found = [loss(z, None, epoch, True).tolist() for loss in (cross, ranked, walked)]
    for k, table in enumerate(both_tables(graph)):
        weight, added = lookups(table)
        zk = z[k].double().numpy()
        # of an embedding of zeros, whose dot products add nothing to what is added
        offset = lambda a, b, zk=zk, added=added: added(a, b) + reference.cne_score(zk, a, b, sigma)  # noqa: E731
        exact = reference.cross_entropy(nothing, graph.edges, weight, offset, blocks, graph.num_users)
        assert found[0][k] == pytest.approx(exact, rel=1e-4, abs=1e-6)
        exact = reference.bpr(nothing, triples, weight, offset, len(u))
        assert found[1][k] == pytest.approx(exact, rel=1e-4, abs=1e-6)
        walker = walked.inner.walkers[0]
        own = table.edge_weight(graph.edges) if (table.weight != 1).any() else None
        met = reference.walk_pairs(walker.walks(walker.transitions(own), epoch), 2, graph.num_users)
        exact = reference.skip_gram(nothing, met, graph.edges, lambda a, b: 1.0, offset, blocks, graph.num_users)
        assert found[2][k] == pytest.approx(exact, rel=1e-4, abs=1e-6)


@given(graphs(), st.integers(1, 50), SIGMAS)
def test_contexts_are_met_at_a_distance_too(graph, epoch, sigma):
    z, context = embeddings(graph), embeddings(graph, seed=1)
    found = built(LINE(order="2"), graph, Distance(sigma))(z, context, epoch, True)
    n = graph.num_nodes
    blocks = [[v % n for v in b] for b in blocks_of(objective.doubled(pairs_of(graph)), epoch)]
    nothing = np.zeros((n, 1))
    for k, table in enumerate(both_tables(graph)):
        both = torch.cat([z[k], context[k]]).double().numpy()
        weight, added = lookups(table)
        offset = lambda a, b, both=both, added=added: added(a, b) + reference.cne_score(both, a, n + b, sigma)  # noqa: E731
        exact = reference.second_order(nothing, nothing, graph.edges, weight, offset, blocks, graph.num_users)
        assert float(found[k]) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("negatives", ["shared", "listed"])
@given(graphs(), SIGMAS, st.booleans())
def test_the_gradient_is_autograds(negatives, graph, sigma, plain):
    """Of the same sums over explicit distances in double precision."""
    given = Distance(sigma)
    pairs, tables = pairs_of(graph), both_tables(graph)
    passes = TorchPasses(pairs, CPU, given) if plain else CompiledPasses(pairs, scorer=given)
    try:
        drawn = strangers(negatives, pairs, passes, 4, 3)
    except ConfigError:  # everyone is linked to everyone
        reject()
    loss = CrossEntropy([Cells.of(t, CPU) for t in tables], [NoFactors()] * len(tables), passes, drawn)
    z = embeddings(graph).requires_grad_()
    (ours,) = torch.autograd.grad(evaluate(loss, z, 3, False, given).sum(), z)
    exact = z.detach().double().requires_grad_()
    k = (1 - sigma**-2) / 2
    start, neighbour = pairs.rows
    total = exact.new_zeros(())
    for x, table in zip(exact, tables, strict=True):
        offset = lambda u, v, table=table: torch.tensor(table.edge_offset(np.stack([u, v]))).double()  # noqa: E731
        score = lambda u, v, x=x, offset=offset: (  # noqa: E731
            np.log(sigma) - k * (x[u] - x[v]).square().sum(1) + offset(u, v)
        )
        u, v = graph.edges
        w = torch.tensor(table.weight[table.group[u], table.group[v]]).double()
        total = total + 0.5 * (w * torch.nn.functional.softplus(-score(u, v))).mean()
        if negatives == "listed":
            u, v = drawn.listed.source.numpy(), drawn.listed.target.numpy()
            total = total + 0.5 * torch.nn.functional.softplus(score(u, v)).mean()
            continue
        for (sources, _, _), block in zip(pairs.sides, drawn.blocks(3), strict=True):
            for s in range(sources.start, sources.stop):
                free = np.setdiff1d(block.nodes, np.append(neighbour[start[s] : start[s + 1]], s))
                if len(free):
                    term = torch.nn.functional.softplus(score(np.full(len(free), s), free)).mean()
                    total = total + float(pairs.share[s]) * term
    (theirs,) = torch.autograd.grad(total, exact)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-3, atol=1e-5)


@given(graphs(), st.sampled_from([MatrixFactorisation(), WALKS, LINE(order="both")]), SIGMAS)
def test_torch_passes_equal_the_compiled_ones(graph, backbone, sigma):
    given = Distance(sigma)
    context = embeddings(graph, dim=2, seed=1) if backbone.has_context else None
    leaves = [embeddings(graph).requires_grad_() for _ in range(2)]
    made = built(backbone, graph, given), plain_passes(built(backbone, graph, given), graph, given)
    found = [loss(leaf, context, 2, True) for loss, leaf in zip(made, leaves, strict=True)]
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(
        *(torch.autograd.grad(f.sum(), leaf)[0] for f, leaf in zip(found, leaves, strict=True)), rtol=1e-3, atol=1e-5
    )
    # and the derivative is that of the loss
    step = 1e-2 * embeddings(graph, seed=2)
    z = leaves[0].detach()
    up, down = (made[0](z + sign * step, context, 2, True) for sign in (1, -1))
    along = (torch.autograd.grad(made[0](leaves[0], context, 2, True).sum(), leaves[0])[0] * step).sum((1, 2))
    torch.testing.assert_close(along, (up - down) / 2, rtol=2e-2, atol=2e-5)


# Audit


@given(graphs(attributes=2), st.integers(0, 100), SIGMAS)
def test_every_audit_figure_equals_that_of_explicit_distances(graph, seed, sigma):
    z = np.random.default_rng(seed).normal(size=(graph.num_nodes, 3)).astype(np.float32)
    factors = Distance(sigma).factors(z)
    groups = {a.name: a.codes for a in graph.attributes}
    by_cne = lambda z, u, v: reference.cne_score(z, u, v, sigma)  # noqa: E731
    dp = parity.dp_cells(factors, graph, groups)
    eo = parity.eo_cells(factors, graph, groups, graph.edges)
    for name, codes in groups.items():
        for table, exact in (
            (dp[name], reference.dp_cells(z, graph.num_nodes, codes, graph.num_users, by_cne)),
            (eo[name], reference.eo_cells(z, graph.edges, codes, graph.num_users, by_cne)),
        ):
            for c in np.nonzero(table.n)[0]:
                cell = int(table.a[c]) if table.b is None else (int(table.a[c]), int(table.b[c]))
                mean, n = exact[cell]
                assert table.n[c] == n and table.mean[c] == pytest.approx(mean, abs=2e-5)
    u, v = graph.edges
    np.testing.assert_allclose(pair_scores(factors, graph.edges), explicit(z, sigma)[u, v], rtol=1e-4, atol=1e-5)


def same_rows(found, exact):
    """Equal to the rounding of scores; thresholds and their ties are given as words."""
    assert len(found.rows) == len(exact.rows) > 20
    for a, b in zip(found, exact, strict=True):
        assert (a.metric, a.attribute, a.variant, a.exposure, a.n) == (
            b.metric,
            b.attribute,
            b.variant,
            b.exposure,
            b.n,
        )
        for name in ("value", "ci_low", "ci_high", "floor_random", "p_value"):
            one, other = getattr(a, name), getattr(b, name)
            assert (one is None) == (other is None), (a.metric, name)
            assert one is None or one == pytest.approx(other, abs=1e-4), (a.metric, a.variant, name)


@pytest.mark.slow
@pytest.mark.processors
@pytest.mark.parametrize("make", [village, shop])
def test_a_whole_audit_equals_one_of_the_scores_themselves(make, monkeypatch):
    """Ranks, their bias-free and group forms, NDKL, DP and EO and the test set's: explicit scores as factors."""
    graph = make()
    split = split_links(graph)
    rng = np.random.default_rng(0)
    z, twin = rng.normal(size=(2, graph.num_nodes, 4)).astype(np.float32)
    name = graph.audited[0].name
    asked = {
        "attackers": ["linear"],
        "twin": twin,
        "read": [name],
        "treated": [name],
        "bias_free": {name: BiasFree(rng.uniform(0.5, 2, split.test.shape[1]).astype(np.float32))},
    }
    found = audit_embedding(z, graph, split, score="distance", **asked)
    by_dot = audit_embedding(z, graph, split, **asked)

    class Written(Dot):
        def factors(self, z):
            return Factors(np.eye(len(z), dtype=np.float32), explicit(z).astype(np.float32))

    monkeypatch.setattr(audit_module, "scorer", lambda name: Written())
    same_rows(found, audit_embedding(z, graph, split, **asked))
    # what is said of leakage is of the vectors themselves, and the others say what they are about
    for a, b in zip(found, by_dot, strict=True):
        if a.attacker is not None:
            assert a == b
        elif a.metric != "usable":  # about the embedding
            assert "log 2 less 0.375 times the squared distance" in a.note
    values = [
        (a.value, b.value) for a, b in zip(found, by_dot, strict=True) if a.attacker is None and a.value is not None
    ]
    assert sum(a != b for a, b in values) > 0.9 * len(values)


@pytest.mark.processors
def test_lists_are_ranked_by_distance():
    graph = village()
    task = ndcg.ranking_task(graph, split_links(graph).test, seed=0)
    z = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
    ranking = ndcg.rank_candidates(Distance().factors(z), task)
    scores = explicit(z)
    for t, column, rank in zip(ranking.target, ranking.column, ranking.rank, strict=True):
        candidates = task.candidates[t]
        own = scores[task.targets[t]]
        better = sum(own[c] > own[candidates[column]] + 1e-5 for c in candidates if c >= 0)
        assert rank == better
    city = graph.attribute("city").codes
    by_distance = ndkl.ndkl_per_target(Distance().factors(z), task, city)
    as_written = ndkl.ndkl_per_target(Factors(np.eye(90, dtype=np.float32), scores.astype(np.float32)), task, city)
    for a, b in zip(by_distance, as_written, strict=True):
        np.testing.assert_allclose(a, b)


# Training


def auc(graph, z, by):
    """How well scores tell held-out edges from pairs without an edge."""
    split = split_links(graph)
    factors, n = scorer(by).factors(z), graph.num_nodes
    linked = {tuple(e) for e in graph.edges.T.tolist()}
    low = 0 if graph.num_users is None else graph.num_users
    free = np.array([(u, v) for u in range(low or n) for v in range(max(u + 1, low), n) if (u, v) not in linked]).T
    held, others = (pair_scores(factors, e) for e in (split.test, free))
    return float((held[:, None] > others).mean())


def blocks():
    """Three cities with few links across."""
    group, _, edges = popular_town(200, across=0.05, density=0.15)
    return AttributedGraph("blocks", 200, edges, (attribute("city", group),))


@pytest.mark.slow
@pytest.mark.parametrize("make", [blocks, shop])
@pytest.mark.parametrize("backbone", SOME_BACKBONES)
def test_every_backbone_learns_by_distance(make, backbone):
    graph = make()
    settings = {"epochs": 120 if make is blocks else 40, "learning_rate": 0.03}
    options = {"options": {"score": "distance"}, **settings}
    debayes = {"options": {"score": "distance", "degrees": "prior"}, **settings}
    cne, biased = run(graph, config(graph, "cne", backbone, **options), config(graph, "debayes", backbone, **debayes))
    for f in (cne, biased):
        assert f.config.score == "distance" and f.embedding.shape == (graph.num_nodes, 16)
        assert np.isfinite(f.embedding).all() and (f.twin is None) == (f is cne)
        assert f.history["total"][-1] < f.history["total"][0]
    if make is blocks:  # of a shop's links little is held out, and items' popularity is the prior's
        assert auc(graph, cne.embedding, "distance") > 0.7


def test_distance_and_dot_train_apart_and_each_as_alone():
    graph = village()
    made = [
        config(graph, m, options=o, epochs=30)
        for m in ("cne", "debayes")
        for o in ({}, {"score": "distance"}, {"score": "distance", "sigma_2": "3"})
    ]
    assert ensembles(made) == [[0, 3], [1, 4], [2, 5]]
    with pytest.raises(ConfigError, match=r"cannot train together: .* or score"):
        run(graph, *made[:2])
    together = run_all(graph, *made)
    for c in made:
        (alone,) = run(graph, c)
        mine = next(f for f in together if f.config == c)
        np.testing.assert_array_equal(alone.embedding, mine.embedding)
        assert (alone.twin is None) == (mine.twin is None)
    assert len({f.embedding.tobytes() for f in together}) == 6


def test_the_watch_ranks_by_the_score():
    graph = village(200)
    split = split_links(graph, validation_share=0.1)
    asked = config(graph, "cne", options={"score": "distance"}, epochs=40, validation=0.1)
    (best,) = fit([asked], graph, split, device="cpu")
    task = ndcg.ranking_task(
        type(graph)("known", 200, np.unique(np.concatenate([split.train, split.validation], axis=1), axis=1)),
        split.validation,
        seed=0,
    )

    def quality(by):
        ranking = ndcg.rank_candidates(scorer(by).factors(best.embedding), task, seed=0)
        return float(np.nanmean(ndcg.ndcg_per_target(ranking, np.ones(len(ranking.rank)), len(task.targets))))

    seen = best.diagnostics["validation"]["ndcg_at_10"]
    assert max(seen) == pytest.approx(quality("distance"), abs=1e-6) and quality("dot") != quality("distance")


def test_a_config_keeps_its_score():
    graph = village()
    plain = config(graph, "cne")
    assert plain.score == "dot" == config(graph).score and plain.method_options == {"score": "dot", "sigma_2": 2.0}
    assert plain == config(graph, "cne", options={"sigma_2": 5})  # which the dot product does not read
    far = config(graph, "cne", options={"score": "distance", "sigma_2": 5})
    assert far.score == "distance:5" and RunConfig.from_json(json.loads(json.dumps(far.to_json()))) == far
    assert len({c.run_id("x") for c in (plain, far, config(graph, "cne", options={"score": "distance"}))}) == 3
    # a record from before there was a choice
    assert RunConfig.from_json(plain.to_json() | {"method_options": {}}).score == "dot"
    with pytest.raises(ConfigError, match="score = 'cosine' is not allowed; allowed: dot, distance"):
        config(graph, "cne", options={"score": "cosine"})
    with pytest.raises(ConfigError, match=r"sigma_2 = 1.0 is out of range"):
        config(graph, "debayes", options={"score": "distance", "sigma_2": 1})
    with pytest.raises(ConfigError, match="no such setting"):
        config(graph, "none", options={"score": "distance"})
    assert find("debias.methods", "none")().scored_by == "dot"


# Store, commands, what-if


@pytest.fixture(scope="module")
def stored(plain_town, tmp_path_factory):
    """A run of DeBayes by distance, and one by dot product, with their store."""
    store = uge.RunStore(tmp_path_factory.mktemp("far") / "store")
    made = [
        uge.train(
            uge.load(plain_town),
            sensitive="city",
            method="debayes",
            store=store,
            epochs=60,
            device="cpu",
            options={"learning_rate": 0.05, "degrees": "prior", "score": by},
            source={"spec": str(plain_town), "attributes": None},
        )
        for by in ("distance", "dot")
    ]
    return store, *made


def said(capsys, *arguments):
    code = cli.run([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.slow
def test_a_stored_run_is_audited_verified_and_compared_by_its_score(stored, plain_town, tmp_path, capsys):
    store, far, dot = stored
    graph = uge.load(plain_town)
    config = RunConfig.from_json(far.config)
    split = split_links(graph, test_share=config.test_share, seed=0)
    again = audit_embedding(np.asarray(far.embedding), graph, split, score="distance", attackers=("linear",))
    key = {"metric": "eo", "attribute": "city", "variant": "held-out"}
    assert far.audit is not None
    (row,) = [r for r in far.audit["rows"] if all(r[k] == v for k, v in key.items())]
    assert row["value"] == again.find(**key).value and "squared distance" in row["note"]
    assert score_of(far) == "distance" and score_of(dot) == "dot"
    report = tmp_path / "report.json"
    report.write_text(json.dumps(far.audit))
    code, out, _ = said(capsys, "verify", report, "--store", store.root)
    assert code == 0, out
    report.write_text(json.dumps(far.audit).replace('"distance"', '"dot"'))
    assert said(capsys, "verify", report, "--store", store.root)[0] == 1
    found = uge.compare(far, dot, graph, attackers=["linear"])
    (links,) = [r for r in found.rows if r.metric == "ndcg_at_10" and r.exposure == "seen"]
    values = [r["value"] for r in far.audit["rows"] if r["metric"] == "ndcg_at_10" and r["variant"] == "held-out"]
    assert links.a == pytest.approx(values[0])


def test_an_exported_embedding_goes_with_its_score(stored, plain_town, tmp_path, capsys, monkeypatch):
    store, far, dot = stored
    code, out, err = said(capsys, "runs", "export", far.id, "--store", store.root, "--out", tmp_path / "far")
    assert code == 0 and "score.json" in out and "--score distance" in err
    assert json.loads((tmp_path / "far" / "score.json").read_text()) == {"score": "distance"}
    assert (
        "score.json" not in said(capsys, "runs", "export", dot.id, "--store", store.root, "--out", tmp_path / "dot")[1]
    )
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "elsewhere"))
    uploaded = (
        "audit",
        "--embeddings",
        tmp_path / "far" / "embeddings.npy",
        "--data",
        plain_town,
        "--split-seed",
        "0",
        "--attackers",
        "linear",
        "--json",
    )
    code, out, err = said(capsys, *uploaded, "--score", "distance")
    assert code == 0, err
    record = json.loads(out)
    assert record["config"]["score"] == "distance"
    pick = lambda rows: {  # noqa: E731
        (r["metric"], r["variant"]): r["value"]
        for r in rows
        if r["attacker"] is None
        and r["exposure"] != "unseen"
        and r["attribute"] in (None, "city")
        and r["metric"] != "ndcg_at_10_bias_free"
    }
    assert far.audit is not None and pick(record["rows"]) == pick(far.audit["rows"])
    other = json.loads(said(capsys, *uploaded, "--score", "distance:2")[1])
    assert other["run_id"] == record["run_id"]
    assert json.loads(said(capsys, *uploaded, "--score", "distance:3")[1])["run_id"] != record["run_id"]
    code, _, err = said(capsys, *uploaded, "--score", "distance:0.5")
    assert code == 2 and "a number above 1" in err


def test_the_option_is_shown_and_taken_by_the_command_line(plain_town, tmp_path, capsys):
    arguments = (
        "train",
        plain_town,
        "--sensitive",
        "city",
        "--store",
        tmp_path / "store",
        "--epochs",
        "5",
        "--device",
        "cpu",
    )
    code, out, err = said(capsys, *arguments, "--method", "cne", "--set", "score=distance", "--set", "sigma_2=4")
    assert code in (0, 3), err
    run_id = out.split()[-1] if len(out.split()) == 1 else next(r.id for r in uge.RunStore(tmp_path / "store").list())
    made = uge.RunStore(tmp_path / "store").load(run_id)
    assert made.config["method_options"] == {"score": "distance", "sigma_2": 4.0}
    code, _, err = said(capsys, *arguments, "--method", "cne", "--set", "scores=distance")
    assert code == 2 and "score" in err and "sigma_2" in err


@pytest.mark.slow
def test_a_training_that_was_cut_off_ends_with_the_same_bits(plain_town, tmp_path):
    graph = uge.load(plain_town)
    given = {
        "sensitive": "city",
        "methods": ["cne", "debayes"],
        "epochs": 30,
        "device": "cpu",
        "options": {"score": "distance"},
        "source": {"spec": str(plain_town), "attributes": None},
    }
    whole = uge.sweep(graph, store=uge.RunStore(tmp_path / "whole"), **given)
    store = uge.RunStore(tmp_path / "cut")

    class Cut(BaseException):
        pass

    def stop(step):
        if step.stage == "training" and step.done >= 17:
            raise Cut

    with pytest.raises(Cut):
        uge.sweep(graph, store=store, on_progress=stop, **given)
    resumed = resume(whole[0].id, graph, store, device="cpu")
    assert {r.id for r in resumed} == {r.id for r in whole}
    for first in whole:
        again = store.load(first.id)
        np.testing.assert_array_equal(np.asarray(first.embedding), np.asarray(again.embedding))
        assert again.diagnostics["resumed_at_epoch"] == [17]
        assert first.audit is not None and again.audit is not None and first.audit["rows"] == again.audit["rows"]


def test_a_what_if_scores_by_distance(stored, plain_town):
    store, far, _ = stored
    graph = uge.load(plain_town)
    city = graph.attribute("city")
    other = city.labels[(int(city.codes[0]) + 1) % city.num_values]
    made = Scenario(graph.fingerprint, (FlipValue("city", (graph.ids([0])[0],), other),))
    rows = Answers(store).judge(far.id, made.to_json(), "city")["rows"]
    (asked,) = [r for r in rows if r["before"]["metric"] == "dp" and r["before"]["variant"] is None]
    assert far.audit is not None
    (row,) = [r for r in far.audit["rows"] if r["metric"] == "dp" and r["attribute"] == "city" and r["variant"] is None]
    assert asked["before"]["value"] == pytest.approx(row["value"]) != asked["after"]["value"]
