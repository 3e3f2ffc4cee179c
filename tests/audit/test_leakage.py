"""Leakage: by hand, against scikit-learn, planted leaks and negative controls."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score
from sklearn.preprocessing import StandardScaler
from strategies import attribute
from toys import prediction

from uge_core.audit import leakage
from uge_core.audit.leakage import (
    attack,
    balanced_accuracy,
    macro_auc,
    majority_rate,
    measure,
    micro_f1,
    random_embedding,
)
from uge_core.errors import ConfigError
from uge_core.graph.split import probe_split
from uge_core.kernels.logistic import fit_logistic
from uge_core.registry import names


def test_micro_f1_by_hand():
    # 20 nodes, 12 of class 0 of which 9 right, 8 of class 1 of which 6 right: 15/20; recalls 3/4 and 3/4.
    p = prediction([0] * 12 + [1] * 8, [0] * 9 + [1] * 3 + [1] * 6 + [0] * 2)
    assert micro_f1(p).value == 0.75
    assert balanced_accuracy(p).value == pytest.approx(0.75)
    # Normal interval of 15/20: 0.75 +- 1.96 * sqrt(.75 * .25 / 20) = 0.56 .. 0.94.
    assert micro_f1(p).low == pytest.approx(0.56, abs=0.05) and micro_f1(p).high == pytest.approx(0.94, abs=0.05)


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_scikit_learn_agrees(seed, num):
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.repeat(np.arange(num), 12), rng.integers(0, num, 30)])
    probability = rng.random((len(truth), num)).round(1) + 0.01  # rounded: ties
    probability /= probability.sum(axis=1, keepdims=True)
    p = prediction(truth, probability.argmax(axis=1), probability, range(num))
    labels = tuple("abcd"[:num])
    assert micro_f1(p).value == pytest.approx(f1_score(truth, p.label, average="micro"))
    assert balanced_accuracy(p).value == pytest.approx(balanced_accuracy_score(truth, p.label))
    expected = np.mean([reference.auc(probability[:, c], truth == c) for c in range(num)])
    assert macro_auc(p, labels).value == pytest.approx(expected)
    if num > 2:
        assert macro_auc(p, labels).value == pytest.approx(roc_auc_score(truth, probability, multi_class="ovr"))


def test_auc_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        truth = np.repeat([0, 1], 60)
        score = rng.normal(size=120) + truth * 1.0
        estimate = macro_auc(prediction(truth, truth, np.stack([-score, score], 1)), ("a", "b"))
        hits += estimate.low <= 0.7602 <= estimate.high  # Phi(1 / sqrt 2)
    assert 0.91 <= hits / 300 <= 0.98


def cloud(num=600, classes=3, shift=2.0, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, num)
    return (rng.normal(size=(num, 4)) + shift * rng.normal(size=(classes, 4))[y]).astype(np.float32), y


@pytest.mark.parametrize("classes", [2, 3, 8])
def test_linear_attacker_is_scikit_learns(classes):
    z, y = cloud(classes=classes, shift=0.7)
    split = probe_split(attribute("g", y))
    found = attack(z, y, split.train, split.test)
    scaler = StandardScaler().fit(z[split.train].astype(float))
    oracle = LogisticRegression(C=1.0, class_weight="balanced", max_iter=5000)
    oracle.fit(scaler.transform(z[split.train].astype(float)), y[split.train])
    x = scaler.transform(z[split.test].astype(float))
    assert np.abs(found.probability - oracle.predict_proba(x)).max() < 2e-3
    assert abs((found.label == oracle.predict(x)).mean() - 1) <= 2 / len(split.test)


@pytest.mark.processors
@given(st.integers(2, 6), st.integers(0, 99))
def test_the_linear_attacker_ends_at_the_minimum_whatever_the_order_of_sums(classes, seed):
    # Another order of the rows is another order of every sum, as on another processor.
    z, y = cloud(300, classes, 0.5, seed)
    x, rng = z.astype(np.float64), np.random.default_rng(seed)
    given = fit_logistic(x, y)
    for _ in range(3):
        order = rng.permutation(len(y))
        np.testing.assert_allclose(
            fit_logistic(x[order], y[order]).probabilities(x), given.probabilities(x), rtol=0, atol=1e-12
        )
    oracle = LogisticRegression(C=1.0, class_weight="balanced", solver="newton-cholesky", tol=1e-12).fit(x, y)
    np.testing.assert_allclose(given.probabilities(x), oracle.predict_proba(x), rtol=0, atol=1e-7)


@pytest.mark.processors
@pytest.mark.parametrize("classes", [2, 5])
def test_so_does_one_with_more_inputs_than_people_that_resemble_each_other(classes):
    z, y = cloud(200, classes, 0.5, 3)
    rng = np.random.default_rng(4)
    near = np.exp(-np.square(z[:, None, :] - z[rng.integers(0, 200, 250)]).mean(axis=2))
    x = (near - near.mean(axis=0)) / near.std(axis=0)
    given, order = fit_logistic(x, y), rng.permutation(200)
    assert given.converged
    again = fit_logistic(x[order], y[order]).probabilities(x)
    np.testing.assert_allclose(again, given.probabilities(x), rtol=0, atol=1e-11)
    # scikit-learn's solvers stop short of it; the loss is convex, so the minimum is where its derivatives are 0
    wrong = given.probabilities(x) - np.eye(classes)[y]
    slope = x.T @ (wrong / (classes * np.bincount(y)[y])[:, None]) + given.weight[:, :-1].T / 200
    assert np.abs(slope if classes > 2 else slope[:, 1]).max() < 1e-13


@pytest.mark.processors
def test_people_whom_an_attacker_tells_alike_are_tied():
    # Two clouds far apart: the 25 nearest of everybody are of the same value, in whatever distances.
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 150)
    z = (rng.normal(size=(300, 5)) + 100.0 * y[:, None]).astype(np.float32)
    split = probe_split(attribute("g", y))
    found = attack(z, y, split.train, split.test, attacker="knn")
    assert len(np.unique(found.probability[:, 0])) == 2
    near = np.array([[0.3, 0.7], [np.nextafter(0.3, 1), np.nextafter(0.7, 0)], [0.3 + 1e-9, 0.7 - 1e-9]])
    rounded = leakage._rounded(np.concatenate([near, [[1e-30, 0.0]]]))
    assert (rounded[0] == rounded[1]).all() and (rounded[0] != rounded[2]).all()
    np.testing.assert_allclose(rounded[:3], near, rtol=1e-12)
    assert rounded[3].tolist() == pytest.approx([1e-30, 0.0], rel=1e-12)


@pytest.mark.parametrize("attacker", ["linear", "trees"])
def test_planted_leak_is_found_and_random_embeddings_sit_at_chance(attacker):
    z, y = cloud()
    split = probe_split(attribute("g", y))
    found = measure(attack(z, y, split.train, split.test, attacker=attacker), split.labels)
    assert found["auc"].value > 0.9 and found["micro_f1"].value > 0.75
    control = random_embedding(len(y), 4)
    chance = measure(attack(control, y, split.train, split.test, attacker=attacker), split.labels)
    assert abs(chance["auc"].value - 0.5) < 0.1 and abs(chance["balanced_accuracy"].value - 1 / 3) < 0.13


def test_trees_find_what_a_linear_attacker_cannot():
    z = np.random.default_rng(0).normal(size=(800, 2)).astype(np.float32)
    y = (z[:, 0] * z[:, 1] > 0).astype(np.int64)
    split = probe_split(attribute("g", y))
    auc = {k: macro_auc(attack(z, y, split.train, split.test, attacker=k), "ab").value for k in ("linear", "trees")}
    assert auc["linear"] < 0.62 and auc["trees"] > 0.95


def test_renaming_values_changes_nothing():
    z, y = cloud(shift=0.5)
    split = probe_split(attribute("g", y))
    new = np.array([2, 0, 1])[y]
    one = measure(attack(z, y, split.train, split.test), tuple("abc"))
    other = measure(attack(z, new, split.train, split.test), tuple("bca"))
    for metric in one:
        assert other[metric].value == pytest.approx(one[metric].value, abs=2 / len(split.test))


def test_a_class_absent_from_training_is_an_error_and_has_no_auc():
    truth = [0] * 12 + [1] * 12 + [2] * 12
    p = prediction(truth, [0] * 12 + [1] * 24)
    assert micro_f1(p).value == pytest.approx(24 / 36)
    assert balanced_accuracy(p).value == pytest.approx(2 / 3)
    assert "too few nodes: c" in macro_auc(p, ("a", "b", "c")).note


def test_too_little_evidence_is_no_zero():
    assert micro_f1(prediction([0] * 10 + [1] * 9, [0] * 19)).value is None
    assert macro_auc(prediction([0] * 30 + [1] * 9, [0] * 39), ("a", "b")).value is None
    assert macro_auc(prediction([0] * 30 + [1] * 30, [0] * 60, train_size=[9, 9]), ("a", "b")).value is None
    z = np.ones((30, 2), np.float32)
    assert attack(z, np.zeros(30, int), np.arange(20), np.arange(20, 30)) is None
    assert all(e.value is None for e in measure(None, ("a",)).values())


def test_an_auc_below_a_half_stays_signed():
    truth = np.repeat([0, 1], 20)
    backwards = 1.0 - np.eye(2)[truth]
    estimate = macro_auc(prediction(truth, 1 - truth, backwards), ("a", "b"))
    assert estimate.value == 0.0 and estimate.low == 0.0 and 0 < estimate.high < 0.5


def test_constant_inputs_and_many_values():
    y = np.arange(600) % 25
    found = attack(np.ones((600, 2), np.float32), y, np.arange(500), np.arange(500, 600))
    assert np.isfinite(found.probability).all()
    trees = attack(random_embedding(600, 2), y, np.arange(500), np.arange(500, 600), attacker="trees")
    assert trees.note == "trees limited to 10 iterations as the attribute has 25 values"


def test_majority_rate_takes_the_class_from_training():
    assert majority_rate(np.array([0, 0, 1, 1, 1, 0]), np.array([0, 1, 2]), np.array([3, 4, 5])) == pytest.approx(1 / 3)


def test_unknown_attacker_is_refused():
    with pytest.raises(ConfigError, match=f"allowed: {', '.join(names('audit.attackers'))}"):
        attack(np.ones((3, 1), np.float32), np.arange(3), np.arange(2), np.arange(2, 3), attacker="treees")
