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
    "micro_f1": lambda p, seed: micro_f1(p, seed=seed),
    "balanced_accuracy": lambda p, seed: balanced_accuracy(p, seed=seed),
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
