"""How sure a linear attacker is of each person's true value, when it did not learn from that person."""

from __future__ import annotations

import numpy as np

from uge_core.arrays import FloatArray, IntArray
from uge_core.graph.graph import Attribute

FOLDS = 5


def probe_confidence(embedding: FloatArray, attribute: Attribute, nodes: IntArray, *, seed: int = 0) -> FloatArray:
    """The linear attacker's probability of each person's true value, cross-fitted.

    The people are split into five folds, each value spread over all of them; each fold is judged by an
    attacker that learnt from the other four, calibrated as in the audit (`audit.leakage`). A value
    that the attacker did not meet has probability 0.

    Args:
        embedding: (N, d) float32.
        attribute: whose values are read.
        nodes: (n,) the people that are drawn; no others are learnt from.
        seed: keys the folds.

    Returns:
        (n,) float32 in [0, 1]; NaN where the value is not known, or where there are no two values to tell apart.
    """
    from uge_core.audit.leakage import attack  # its scipy loads in the job, not in pages that read what it made

    out = np.full(len(nodes), np.nan, dtype=np.float32)
    codes = attribute.codes[nodes]
    known = np.nonzero(codes >= 0)[0]
    rng = np.random.default_rng([seed, 42])
    order = known[np.lexsort((rng.random(len(known)), codes[known]))]
    fold = np.full(len(nodes), -1)
    fold[order] = np.arange(len(order)) % FOLDS
    for k in range(FOLDS):
        test = np.nonzero(fold == k)[0]
        train = np.nonzero((fold >= 0) & (fold != k))[0]
        prediction = attack(embedding, attribute.codes, nodes[train], nodes[test], seed=seed)
        if prediction is None:
            continue
        probability = prediction.probability if prediction.calibrated is None else prediction.calibrated
        column = np.minimum(np.searchsorted(prediction.classes, prediction.truth), len(prediction.classes) - 1)
        met = prediction.classes[column] == prediction.truth
        out[test] = np.where(met, probability[np.arange(len(test)), column], 0.0)
    return out
