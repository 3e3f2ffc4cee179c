"""Paired differences against double loops, resampling and scipy, and their coverage."""

import numpy as np
import pytest
import reference
from scipy import stats
from sklearn.metrics import roc_auc_score

import uge_core as uge
from uge_core.audit import audit_embedding
from uge_core.audit.compare import (
    Compared,
    compare_embeddings,
    paired_auc,
    paired_matched,
    paired_micro_f1,
    paired_ndcg,
    paired_seeds,
    pairs,
)
from uge_core.audit.holm import holm
from uge_core.audit.leakage import Prediction
from uge_core.audit.matched import matched_lists
from uge_core.errors import ConfigError
from uge_core.explore.comparison import compare_seeds
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import Factors
from uge_core.graph.split import ranking_task, split_links
from uge_core.runs.stored_run import StoredRun


def predicted(truth, probability, train_size=100):
    classes = np.arange(probability.shape[1])
    return Prediction(
        truth=truth,
        classes=classes,
        train_size=np.full(len(classes), train_size),
        probability=probability,
        label=probability.argmax(axis=1),
        calibrated=None,
    )


def two_attackers(seed, n=300, num=3, shift=(1.0, 0.6)):
    """The same nodes read by two attackers, one better, with errors in common; scores are rounded so that some tie."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, num, n)
    common = rng.normal(size=(n, num))
    out = []
    for s in shift:
        score = np.round(s * np.eye(num)[truth] + 0.7 * common + 0.7 * rng.normal(size=(n, num)), 1)
        e = np.exp(score)
        out.append(predicted(truth, e / e.sum(axis=1, keepdims=True)))
    return out


@pytest.mark.parametrize("num", [2, 3, 5])
def test_auc_equals_delongs_covariance_by_loops(num):
    a, b = two_attackers(num, n=90, num=num)
    found = paired_auc(a, b)
    value, variance = reference.paired_delong(a.truth, a.probability, b.probability, minimum=10)
    assert found.value == pytest.approx(value, abs=1e-12)
    assert (found.high - found.low) / 2 == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(variance), rel=1e-9)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(value) / np.sqrt(variance)), rel=1e-9)


@pytest.mark.slow
def test_intervals_agree_with_resampled_nodes():
    a, b = two_attackers(1)
    truth = a.truth

    def right(rows):
        return float((a.label == truth)[rows].mean() - (b.label == truth)[rows].mean())

    def area(rows):
        first, second = (roc_auc_score(truth[rows], p.probability[rows], multi_class="ovr") for p in (a, b))
        return first - second

    for found, statistic, times in ((paired_micro_f1(a, b), right, 2000), (paired_auc(a, b), area, 200)):
        low, high = reference.resampled_interval(statistic, len(truth), times=times)
        assert found.value == pytest.approx(statistic(np.arange(len(truth))), abs=1e-12)
        assert found.high - found.low == pytest.approx(high - low, rel=0.15)
        assert (found.low, found.high) == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.02))


def test_micro_f1_by_hand():
    """100 nodes: 12 right in A alone, 5 in B alone. Half a node more each: (12 - 5) / 102."""
    right_a = np.r_[np.ones(40), np.ones(12), np.zeros(5), np.zeros(43)].astype(int)
    right_b = np.r_[np.ones(40), np.zeros(12), np.ones(5), np.zeros(43)].astype(int)
    truth = np.zeros(100, dtype=np.int64)
    a, b = (predicted(truth, np.stack([r, 1 - r], axis=1).astype(float)) for r in (right_a, right_b))
    found = paired_micro_f1(a, b)
    centre, spread = 7 / 102, np.sqrt(12.5 + 5.5 - 102 * (7 / 102) ** 2) / 102
    assert (found.a, found.b, found.value) == (0.52, 0.45, pytest.approx(0.07))
    assert (found.low, found.high) == (
        pytest.approx(centre - 1.959964 * spread),
        pytest.approx(centre + 1.959964 * spread),
    )
    same = paired_micro_f1(a, a)
    assert same.value == 0 and same.low < 0 < same.high and same.p_value == 1


def test_seeds_are_scipys_paired_t():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 7))
    oracle = stats.ttest_rel(a, b)
    found = paired_seeds(a, b)
    low, high = oracle.confidence_interval(0.95)
    assert (found.value, found.low, found.high, found.p_value) == (
        pytest.approx((a - b).mean()),
        pytest.approx(low),
        pytest.approx(high),
        pytest.approx(oracle.pvalue),
    )
    assert paired_seeds([1.0, 2.0], [1.0, 2.0]).p_value == 1
    shifted = paired_seeds([1.0, 2.0], [0.5, 1.5])
    assert shifted.low is None and shifted.p_value is None and "no interval" in shifted.note
    for wrong in (([1.0], [2.0]), ([1.0, 2.0], [1.0, 2.0, 3.0])):
        with pytest.raises(ConfigError, match="the same seeds on both sides, two at least"):
            paired_seeds(*wrong)


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]).tolist() == []
    rng = np.random.default_rng(4)
    for m in (1, 2, 9):
        p = rng.random(m) ** 3
        assert holm(p).tolist() == pytest.approx(reference.holm(p.tolist()))


def test_exposures_are_paired():
    assert pairs({None: 1}, {None: 2}) == [(None, 1, 2)]
    assert pairs({"seen": 1, "unseen": 3}, {None: 2}) == [("unseen", 3, 2), ("seen", 1, 2)]
    assert pairs({"seen": 1, "unseen": 3}, {"seen": 2}) == [("seen", 1, 2)]


@pytest.fixture(scope="module")
def graph(town):
    return uge.load(town)


@pytest.fixture(scope="module")
def embeddings(graph):
    rng = np.random.default_rng(5)
    city = np.eye(3)[graph.attribute("city").codes]
    strong, weak = (
        np.c_[share * city + 0.5 * rng.normal(size=(200, 3)), rng.normal(size=(200, 3))] for share in (2, 0.3)
    )
    return strong.astype(np.float32), weak.astype(np.float32)


def rows_of(comparison):
    return {(r.metric, r.attribute, r.attacker, r.exposure): r for r in comparison.rows}


@pytest.mark.slow
def test_both_values_are_the_audits(graph, embeddings):
    split = split_links(graph, seed=1)
    found = rows_of(
        compare_embeddings(*map(Compared, embeddings), graph, split, split_seed=1, attackers=("linear", "trees"))
    )
    audits = [audit_embedding(z, graph, split, split_seed=1, attackers=("linear", "trees")) for z in embeddings]
    assert {k[1] for k in found} == {"city", "gender", "age", None}
    for (metric, attribute, attacker, exposure), row in found.items():
        variant = "held-out" if attacker is None else "standard"
        where = {"metric": metric, "attribute": attribute, "attacker": attacker, "variant": variant}
        values = [a.find(**where).value for a in audits]
        assert (row.a, row.b) == tuple(pytest.approx(v, abs=1e-9) for v in values), (metric, attribute, attacker)
        assert exposure is None and row.value == pytest.approx(row.a - row.b)
    leak = found["auc", "city", "linear", None]
    assert leak.ci_low > 0 and leak.p_holm < 0.001 and leak.direction == "lower"
    measured = [r for r in found.values() if r.p_value is not None]
    assert [r.p_holm for r in measured] == pytest.approx(reference.holm([r.p_value for r in measured]))


def test_turned_round_and_with_itself(graph, embeddings):
    split = split_links(graph)
    a, b = map(Compared, embeddings)
    options = {"attackers": ("linear",), "attributes": ["city"]}
    one, other = (compare_embeddings(*p, graph, split, **options).rows for p in ((a, b), (b, a)))
    for x, y in zip(one, other, strict=True):
        assert (x.a, x.b, x.value, x.ci_low, x.ci_high, x.p_value) == (
            y.b,
            y.a,
            pytest.approx(-y.value),
            pytest.approx(-y.ci_high),
            pytest.approx(-y.ci_low),
            pytest.approx(y.p_value),
        )
    for row in compare_embeddings(a, a, graph, split, **options).rows:
        assert row.value == 0 and row.ci_low <= 0 <= row.ci_high and row.p_value == row.p_holm == 1


def test_ndcg_differs_by_the_mean_over_lists(graph, embeddings):
    split = split_links(graph, seed=2)
    found = paired_ndcg(*embeddings, ranking_task(graph, split.test, seed=2))
    lists = [reference.ndcg_of_lists(z, graph, split.test, seed=2) for z in embeddings]
    assert found.n == len(lists[0]) and found.value == pytest.approx(np.mean(lists[0]) - np.mean(lists[1]))
    assert found.low < found.value < found.high
    assert paired_ndcg(*embeddings, None).value is None


def test_matched_ndcg_differs_by_the_mean_over_the_same_lists(graph, embeddings):
    split = split_links(graph, seed=2)
    cell = graph.attribute("city").codes
    lists = matched_lists(graph, split.test, cell, twin=False, seed=2)
    found = paired_matched(*embeddings, lists)
    values = []
    for z in embeddings:
        gains = []
        for u, row in zip(lists.matched.targets, lists.matched.candidates, strict=True):
            scores = [float(z[u] @ z[v]) for v in row if v >= 0]
            rank = 1 + sum(s > scores[0] for s in scores[1:])
            gains.append(1 / np.log2(rank + 1) if rank <= 10 else 0.0)
        values.append(np.array(gains))
    assert (found.a, found.b) == (pytest.approx(values[0].mean()), pytest.approx(values[1].mean()))
    assert found.n == len(values[0]) and found.value == pytest.approx((values[0] - values[1]).mean())
    assert found.low < found.value < found.high and 0 <= found.p_value <= 1
    turned = paired_matched(*embeddings[::-1], lists)
    assert (turned.value, turned.low, turned.high) == pytest.approx((-found.value, -found.high, -found.low))
    same = paired_matched(embeddings[0], embeddings[0], lists)
    assert (same.value, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    few = paired_matched(*embeddings, matched_lists(graph, split.test[:, :1], cell, twin=False, seed=2))
    assert few.value is None and "at least" in few.note
    assert paired_matched(*embeddings, None).value is None


def test_the_strongest_is_chosen_among_those_that_see_no_edges(graph, embeddings):
    split = split_links(graph)
    options = {"attackers": ("linear", "graph"), "attributes": ["city"]}
    found = rows_of(compare_embeddings(*map(Compared, embeddings), graph, split, **options))
    worst, linear = (found["auc", "city", x, None] for x in ("worst", "linear"))
    assert (worst.a, worst.b) == (linear.a, linear.b) and "strongest of linear: " in worst.note


def false_alarms_of_ndcg(hubs, trials):
    """How often two embeddings that score pairs by noise alone differ: an edge stands in the lists of both its ends."""
    rng, n, edges = np.random.default_rng([7, hubs]), 150, set()
    activity = rng.pareto(1.2, n) + 1 if hubs else np.ones(n)
    while len(edges) < 700:
        u, v = sorted(rng.choice(n, 2, p=activity / activity.sum()).tolist())
        if u != v:
            edges.add((u, v))
    graph = AttributedGraph("g", n, np.array(sorted(edges)).T)
    split, identity = split_links(graph), np.eye(n, dtype=np.float32)
    found = 0
    for _ in range(trials):
        upper = [np.triu(rng.standard_normal((n, n)), 1).astype(np.float32) for _ in range(2)]
        sides = [Factors(s + s.T, identity) for s in upper]
        found += paired_ndcg(*sides, ranking_task(graph, split.test)).p_value < 0.05
    return found / trials


@pytest.mark.slow
@pytest.mark.parametrize("hubs", [False, True])
def test_ndcg_is_not_said_to_differ_by_chance(hubs):
    # Lists taken as independent gave .17 in both.
    assert false_alarms_of_ndcg(hubs, 100) <= 0.1


@pytest.mark.acceptance
@pytest.mark.parametrize("hubs", [False, True])
def test_ndcg_is_not_said_to_differ_by_chance_in_1000_trials(hubs):
    found = false_alarms_of_ndcg(hubs, 1000)
    print(found)
    assert found <= 0.07


def test_a_cosine_ranks_by_angle(graph, embeddings):
    split = split_links(graph)
    stretched = embeddings[0] * np.random.default_rng(0).uniform(0.1, 9, (200, 1)).astype(np.float32)
    options = {"attackers": (), "attributes": ["city"]}
    same = compare_embeddings(
        Compared(stretched, score="cosine"), Compared(embeddings[0], score="cosine"), graph, split, **options
    ).rows
    assert [r.metric for r in same] == ["ndcg_at_10_matched", "ndcg_at_10"]
    assert [r.value for r in same] == pytest.approx([0, 0], abs=1e-6)
    other = compare_embeddings(Compared(stretched), Compared(embeddings[0]), graph, split, **options).rows
    assert all(r.value != 0 for r in other)


def test_twins_are_compared_with_what_has_no_exposure(graph, embeddings):
    strong, weak = embeddings
    treated = Compared(weak, twin=strong, treated=frozenset({"city"}), read=frozenset({"city", "gender", "age"}))
    found = rows_of(
        compare_embeddings(treated, Compared(weak), graph, None, attackers=("linear",), attributes=["city", "age"])
    )
    assert found["auc", "city", "linear", "seen"].value == 0
    assert found["auc", "city", "linear", "unseen"].value > 0.1
    assert {k[3] for k in found if k[1] == "age" and k[2]} == {"seen"}
    assert found["ndcg_at_10_matched", "age", None, "unseen"].evidence == "insufficient"
    assert found["ndcg_at_10", None, None, "unseen"].evidence == "insufficient"


def test_too_few_nodes_are_no_evidence(graph):
    truth = np.array([0, 1] * 5)
    few = predicted(truth, np.eye(2)[truth])
    assert paired_micro_f1(few, few).value is None and paired_auc(few, few).value is None
    assert paired_micro_f1(None, few).value is None and paired_auc(few, None).value is None
    with pytest.raises(ConfigError, match="has 1 rows that are not finite numbers, first node p7"):
        z = np.zeros((200, 2), dtype=np.float32)
        z[7] = np.nan
        compare_embeddings(Compared(z), Compared(z), graph, None, attackers=())


def coverage(trials):
    """How often the intervals hold the true difference, by what was measured, where A is better and where both are alike."""
    hits = dict.fromkeys([(m, s) for m in ("micro_f1", "auc", "seeds", "mean") for s in (0.9, 0.4)], 0)
    false_alarms = 0
    for trial in range(trials):
        for weaker in (0.9, 0.4):
            rng = np.random.default_rng([trial, 6])
            n = 200
            truth = (np.arange(n) % 2).astype(np.int64)
            common = rng.normal(size=n)
            sides = []
            for strength in (0.9, weaker):
                # of each class normal, mean +-strength / 2 and spread 1: accuracy Phi(s / 2), AUC Phi(s / sqrt 2)
                score = strength * (truth - 0.5) + 0.8 * common + 0.6 * rng.normal(size=n)
                chance = 1 / (1 + np.exp(-score))
                sides.append(predicted(truth, np.stack([1 - chance, chance], axis=1)))
            truths = {
                "micro_f1": stats.norm.cdf(0.45) - stats.norm.cdf(weaker / 2),
                "auc": stats.norm.cdf(0.9 / np.sqrt(2)) - stats.norm.cdf(weaker / np.sqrt(2)),
                "seeds": 0.9 - weaker,
                "mean": 0.0,
            }
            base = rng.normal(size=5)
            drawn = paired_seeds(0.9 + base + 0.3 * rng.normal(size=5), weaker + base + 0.3 * rng.normal(size=5))
            skewed = rng.beta(0.5, 1.0, size=(2, 120))
            found = {
                "micro_f1": paired_micro_f1(*sides),
                "auc": paired_auc(*sides),
                "seeds": drawn,
                "mean": paired_seeds(*skewed),
            }
            for name, paired in found.items():
                hits[name, weaker] += paired.low <= truths[name] <= paired.high
            if weaker == 0.9:
                false_alarms += holm([p.p_value for p in found.values()]).min() < 0.05
    return {k: v / trials for k, v in hits.items()}, false_alarms / trials


@pytest.mark.slow
def test_coverage_roughly():
    covered, alarms = coverage(200)
    print(covered, alarms)
    assert all(0.91 <= share <= 0.99 for share in covered.values()), covered
    assert alarms <= 0.1


@pytest.mark.acceptance
def test_coverage_in_2000_trials():
    covered, alarms = coverage(2000)
    print(covered, alarms)
    assert all(0.93 <= share <= 0.97 for share in covered.values()), covered
    assert alarms <= 0.06


def test_seeds_on_both_sides_of_a_half_do_not_cancel(tmp_path):
    """An attacker that reads an attribute at .3 reads it as well as one at .7."""

    def run(method, seed, auc):
        config = {"method": method, "seed": seed, "split_seed": 0}
        measured = {"metric": "auc", "attribute": "city", "attacker": "linear", "variant": "standard"}
        row = {**measured, "exposure": None, "value": auc, "evidence": "ok"}
        return StoredRun(
            f"{method}{seed}",
            "finished",
            0.0,
            1.0,
            1.0,
            "cpu",
            None,
            config,
            {"fingerprint": "f"},
            True,
            (row,),
            tmp_path,
        )

    a = [run("uge-ok", seed, auc) for seed, auc in enumerate((0.3, 0.7, 0.52))]
    b = [run("none", seed, 0.6) for seed in range(3)]
    (row,) = compare_seeds(a, b).rows
    assert (row.a, row.b) == (pytest.approx((0.7 + 0.7 + 0.52) / 3), pytest.approx(0.6)) and row.value > 0
