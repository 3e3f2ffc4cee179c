"""How well an attacker reads an attribute out of the embedding.

An attacker learns from 80 % of the nodes and is tested on the rest (`split.probe_split`). Of its
predictions we report Micro-F1 (for one label a node: accuracy), balanced accuracy (mean recall of
the classes tested) and macro one-vs-rest AUC. A class absent from training counts as an error.

Attackers:
- "linear": logistic regression, L2, C = 1, balanced classes, as the paper's (Sec. 6.2). Departure:
  inputs are standardised on the training nodes, so that the penalty means the same for every
  embedding. Balanced classes can put Micro-F1 far below the majority rate, so low Micro-F1 is not
  low leakage: read AUC beside it.
- "trees": gradient boosting on histograms, classes as they are, so that its Micro-F1 is the one to
  hold against the majority rate. Finds what no linear attacker can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from uge_core.audit.logistic import fit_logistic
from uge_core.errors import ConfigError
from uge_core.graph import FloatArray, IntArray
from uge_core.registry import unknown_name

ATTACKERS = ("linear", "trees")
MIN_TEST = 20  # fewer tested nodes are no evidence
MIN_CLASS = 10  # fewer nodes of a class in training or test, or of the others, give no AUC

_Float64 = npt.NDArray[np.float64]
_RESAMPLES = 1_000
# Without it one node of a rare class makes a leaf's step huge, and the attacker falls below chance: drawn
# leak of 75 values, AUC .62 without, .71 with; two values .669 and .670.
_TREE_L2 = 10.0


@dataclass(frozen=True, eq=False)
class Prediction:
    """What an attacker says about the tested nodes.

    Attributes:
        truth: (n,) int64 classes.
        classes: (K,) the classes seen in training, ascending.
        train_size: (K,) how many training nodes each has.
        probability: (n, K) of each class.
        label: (n,) the predicted class.
        note: how the attacker was limited, or None.
    """

    truth: IntArray
    classes: IntArray
    train_size: IntArray
    probability: _Float64
    label: IntArray
    note: str | None = None


@dataclass(frozen=True)
class Estimate:
    """A value with a 95 % interval over nodes.

    Attributes:
        value: the value, None where the evidence is insufficient.
        low: lower end.
        high: upper end.
        note: a remark, such as what was left out.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str | None = None


def attack(
    embedding: FloatArray,
    classes: IntArray,
    train: IntArray,
    test: IntArray,
    *,
    attacker: str = "linear",
    standardise: bool = True,
    seed: int = 0,
) -> Prediction | None:
    """Fits an attacker and lets it predict.

    Args:
        embedding: (N, d) float32.
        classes: (N,) int64 class of each node.
        train: nodes to learn from.
        test: nodes to predict.
        attacker: one of `ATTACKERS`.
        standardise: scale inputs by mean and spread of the training nodes ("linear" only; trees do not care).
        seed: random state of the trees.

    Returns:
        The predictions; None when training has fewer than two classes or nothing is tested.

    Raises:
        ConfigError: there is no such attacker.
    """
    if attacker not in ATTACKERS:
        raise ConfigError(unknown_name("attacker", attacker, ATTACKERS))
    y = classes[train]
    known, train_size = np.unique(y, return_counts=True)
    if len(known) < 2 or not len(test):
        return None
    x, x_test = embedding[train].astype(np.float64), embedding[test].astype(np.float64)
    note = None
    # One thread: both are many short parallel regions, and where another process keeps a core busy
    # their threads wait for each other (trees on Pokec's age: 198 s against 7 s).
    with threadpool_limits(limits=1):
        if attacker == "linear":
            if standardise:
                centre, spread = x.mean(axis=0), x.std(axis=0)
                spread[spread == 0] = 1.0
                x, x_test = (x - centre) / spread, (x_test - centre) / spread
            model = fit_logistic(x, y)
            probability = model.probabilities(x_test)
            if not model.converged:
                note = "the logistic regression stopped before it met its tolerance"
        else:
            from sklearn.ensemble import HistGradientBoostingClassifier

            iterations = tree_iterations(len(known))
            trees = HistGradientBoostingClassifier(
                max_iter=iterations, early_stopping=False, l2_regularization=_TREE_L2, random_state=seed
            )
            probability = trees.fit(x, y).predict_proba(x_test)
            if iterations < tree_iterations(2):
                note = f"trees limited to {iterations} iterations as the attribute has {len(known)} values"
    return Prediction(classes[test], known, train_size, probability, known[probability.argmax(axis=1)], note)


def tree_iterations(num_values: int) -> int:
    """Boosting rounds: each grows a tree per value, so many values get fewer rounds."""
    return 100 if num_values <= 2 else 40 if num_values <= 20 else 10


def micro_f1(prediction: Prediction, *, seed: int = 0) -> Estimate:
    """Micro-F1: with one label a node the share predicted right, in [0, 1].

    The interval resamples tested nodes without refitting; the share right among n nodes drawn with
    replacement is binomial, so it is drawn as that.
    """
    n = len(prediction.truth)
    if n < MIN_TEST:
        return Estimate(None, note=f"{n} tested nodes, at least {MIN_TEST} are needed")
    value = float((prediction.label == prediction.truth).mean())
    draws = np.random.default_rng([seed, 31]).binomial(n, value, _RESAMPLES) / n
    low, high = np.percentile(draws, [2.5, 97.5])
    return Estimate(value, float(low), float(high))


def balanced_accuracy(prediction: Prediction, *, seed: int = 0) -> Estimate:
    """Mean recall of the classes that are tested, in [0, 1]; 1 / (their number) is chance.

    The interval resamples tested nodes as one multinomial over class and outcome; a class that a
    resample misses does not enter its mean.
    """
    n = len(prediction.truth)
    tested, index = np.unique(prediction.truth, return_inverse=True)
    if n < MIN_TEST or len(tested) < 2:
        return Estimate(None, note=f"{n} tested nodes of {len(tested)} classes, at least {MIN_TEST} of 2 are needed")
    right = prediction.label == prediction.truth
    counts = np.bincount(index * 2 + right, minlength=2 * len(tested))
    draws = np.random.default_rng([seed, 32]).multinomial(n, counts / n, _RESAMPLES)
    both = np.concatenate([counts[None], draws]).reshape(-1, len(tested), 2)
    total = both.sum(axis=2)
    recall = np.divide(both[:, :, 1], total, out=np.zeros(total.shape), where=total > 0)
    means = recall.sum(axis=1) / (total > 0).sum(axis=1)
    low, high = np.percentile(means[1:], [2.5, 97.5])
    return Estimate(float(means[0]), float(low), float(high))


def macro_auc(prediction: Prediction, labels: tuple[str, ...]) -> Estimate:
    """Mean over classes of the one-vs-rest area under the ROC curve, in [0, 1]; 0.5 is chance.

    A class enters with at least ten nodes in training, ten among the tested and ten tested ones
    outside it; the note lists the others. The interval is DeLong's: each node's influence on the mean, summed in
    squares.

    Args:
        prediction: the predictions.
        labels: the classes' names, for the note.
    """
    truth = prediction.truth
    n = len(truth)
    size = np.bincount(truth, minlength=len(labels))
    areas, left_out = [], []
    influence = np.zeros(n)
    for c in np.nonzero(size)[0]:
        column = np.searchsorted(prediction.classes, c)
        trained = column < len(prediction.classes) and prediction.classes[column] == c
        in_train = int(prediction.train_size[column]) if trained else 0
        if min(in_train, size[c], n - size[c]) < MIN_CLASS:
            left_out.append(labels[c])
            continue
        score, inside = prediction.probability[:, column], truth == c
        rank = rankdata(score)
        num_in, num_out = int(size[c]), int(n - size[c])
        beaten = np.empty(n)  # the share of the other side that a node is ranked rightly against
        beaten[inside] = (rank[inside] - rankdata(score[inside])) / num_out
        beaten[~inside] = 1.0 - (rank[~inside] - rankdata(score[~inside])) / num_in
        area = float(beaten[inside].mean())
        areas.append(area)
        influence += np.where(inside, (beaten - area) / num_in, (beaten - area) / num_out)
    if not areas:
        return Estimate(
            None,
            note=f"no value has {MIN_CLASS} nodes to learn from, {MIN_CLASS} tested and {MIN_CLASS} tested outside it",
        )
    value = float(np.mean(areas))
    margin = 1.96 * float(np.sqrt(((influence / len(areas)) ** 2).sum()))
    remarks = []
    if value < 0.5:
        remarks.append(
            f"AUC below .5: an attacker would invert it; what counts is its distance from .5, here {0.5 - value:.2g}"
        )
    if left_out:
        shown = ", ".join(left_out[:10]) + (f" and {len(left_out) - 10} more" if len(left_out) > 10 else "")
        remarks.append(f"AUC over {len(areas)} of {len(areas) + len(left_out)} tested values; too few nodes: {shown}")
    return Estimate(value, max(0.0, value - margin), min(1.0, value + margin), "; ".join(remarks) or None)


def majority_rate(classes: IntArray, train: IntArray, test: IntArray) -> float | None:
    """What always answering with the training nodes' largest class scores on the tested nodes."""
    if not len(train) or not len(test):
        return None
    return float((classes[test] == np.bincount(classes[train]).argmax()).mean())


def random_embedding(num_nodes: int, dim: int, *, seed: int = 0) -> FloatArray:
    """(num_nodes, dim) uniform on [0, 1]: the paper's Random (Sec. 6.1), which knows nothing."""
    return np.random.default_rng([seed, 33]).random((num_nodes, dim), dtype=np.float32)


LeakageMetric = Literal["micro_f1", "balanced_accuracy", "auc"]


def measure(prediction: Prediction | None, labels: tuple[str, ...], *, seed: int = 0) -> dict[LeakageMetric, Estimate]:
    """All three measures of one attack; insufficient ones where there is no prediction."""
    if prediction is None:
        none = Estimate(None, note="fewer than two values to learn from, or no node to test")
        return {"micro_f1": none, "balanced_accuracy": none, "auc": none}
    found: dict[LeakageMetric, Estimate] = {
        "micro_f1": micro_f1(prediction, seed=seed),
        "balanced_accuracy": balanced_accuracy(prediction, seed=seed),
        "auc": macro_auc(prediction, labels),
    }
    if prediction.note is None:
        return found
    return {k: replace(e, note="; ".join(filter(None, (e.note, prediction.note)))) for k, e in found.items()}
