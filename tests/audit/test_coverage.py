"""Do the 95 % intervals of an attack hold what they promise? Estimand: tested nodes are a sample, the probe is fixed.

The population is known: class shares, and scores that are normal with a mean by class, so that the true
Micro-F1, balanced accuracy and AUC are integrals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

from uge_core.audit.leakage import Estimate, Prediction, balanced_accuracy, macro_auc, micro_f1

SHARE = 0.3  # of the class whose scores lie higher
SHIFT = 0.8
CUT = 0.6  # the probe answers class 1 above it
RECALL = (float(norm.cdf(CUT)), float(norm.sf(CUT - SHIFT)))
TRUE = {
    "micro_f1": (1 - SHARE) * RECALL[0] + SHARE * RECALL[1],
    "balanced_accuracy": sum(RECALL) / 2,
    "auc": float(norm.cdf(SHIFT / np.sqrt(2))),
}
MEASURE: dict[str, Callable[[Prediction, int], Estimate]] = {
    "micro_f1": lambda p, seed: micro_f1(p),
    "balanced_accuracy": lambda p, seed: balanced_accuracy(p),
    "auc": lambda p, seed: macro_auc(p, ("no", "yes")),
}


def drawn(rng: np.random.Generator, n: int) -> Prediction:
    truth = (rng.random(n) < SHARE).astype(np.int64)
    score = rng.normal(size=n) + SHIFT * truth
    probability = np.stack([norm.sf(score), norm.cdf(score)], axis=1)
    size = np.array([1000, 1000])
    return Prediction(truth, np.array([0, 1]), size, probability, (score > CUT).astype(np.int64))


def coverage(metric: str, n: int, trials: int) -> float:
    rng = np.random.default_rng([41, n])
    inside = 0
    for trial in range(trials):
        found = MEASURE[metric](drawn(rng, n), trial)
        assert found.low is not None and found.high is not None
        inside += found.low <= TRUE[metric] <= found.high
    return inside / trials


@pytest.mark.slow
@pytest.mark.parametrize("metric", TRUE)
@pytest.mark.parametrize("n", [100, 1000])
def test_coverage(metric: str, n: int) -> None:
    """300 trials, so three standard errors more on each side than the acceptance test's band."""
    assert 0.91 <= coverage(metric, n, 300) <= 0.985


@pytest.mark.acceptance
@pytest.mark.parametrize("metric", TRUE)
@pytest.mark.parametrize("n", [200, 2000])
def test_coverage_in_two_thousand_trials(metric: str, n: int) -> None:
    found = coverage(metric, n, 2_000)
    print(f"{metric}, n = {n}: {found:.4f}")
    assert 0.93 <= found <= 0.97


RARE = {
    "a class of six": ((94, 6), (0.95, 0.1)),
    "a class of ten, hardly ever right": ((90, 10), (0.99, 0.1)),
    "ten classes of one": ((60, *[1] * 10), (0.9, *[0.2] * 10)),
    "nearly always right": ((50, 50), (0.99, 0.99)),
}


@pytest.mark.parametrize("case", RARE)
def test_coverage_where_all_or_none_of_a_class_are_right(case: str) -> None:
    sizes, recalls = RARE[case]
    truth = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(43)
    inside = {"balanced": 0, "micro": 0}
    for _ in range(300):
        right = rng.random(len(truth)) < np.repeat(recalls, sizes)
        label = np.where(right, truth, (truth + 1) % len(sizes))
        p = Prediction(truth, np.arange(len(sizes)), np.array(sizes), np.eye(len(sizes))[label], label)
        for name, found, true in (
            ("balanced", balanced_accuracy(p), np.mean(recalls)),
            ("micro", micro_f1(p), np.average(recalls, weights=sizes)),
        ):
            assert found.low is not None and found.high is not None and found.low < found.high
            inside[name] += found.low <= true <= found.high
    assert min(inside.values()) >= 0.92 * 300, inside


@pytest.mark.slow
@pytest.mark.parametrize(("num_in", "num_out", "shift"), [(10, 10, 2.5), (20, 20, 2.0), (10, 100, 1.5), (10, 10, 1.5)])
def test_coverage_of_areas_near_one(num_in: int, num_out: int, shift: float) -> None:
    """DeLong's own interval covers .84 to .88 of the last three."""
    truth = np.repeat([0, 1], [num_out, num_in])
    rng = np.random.default_rng(44)
    true, inside = float(norm.cdf(shift / np.sqrt(2))), 0
    for _ in range(300):
        score = rng.normal(size=len(truth)) + shift * truth
        probability = np.stack([norm.sf(score), norm.cdf(score)], axis=1)
        p = Prediction(truth, np.array([0, 1]), np.array([40, 40]), probability, probability.argmax(axis=1))
        found = macro_auc(p, ("no", "yes"))
        assert found.low is not None and found.high is not None
        inside += found.low <= true <= found.high
    assert inside >= 0.92 * 300


def test_an_attacker_that_is_always_right_or_knows_nothing_has_an_interval() -> None:
    truth = np.repeat([0, 1], 10)
    exact = Prediction(truth, np.array([0, 1]), np.array([40, 40]), np.eye(2)[truth], truth)
    for found in (micro_f1(exact), balanced_accuracy(exact), macro_auc(exact, ("a", "b"))):
        assert found.value == found.high == 1 and found.low is not None and 0.7 < found.low < 0.95
    truth = np.repeat([0, 1], [94, 6])
    constant = np.zeros(100, dtype=np.int64)
    always = Prediction(truth, np.array([0, 1]), np.array([400, 20]), np.eye(2)[constant], constant)
    found = balanced_accuracy(always)
    assert found.low is not None and found.high is not None and found.low < 0.45 < 0.55 < found.high
