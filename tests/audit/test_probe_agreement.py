"""The linear probe is scikit-learn's, on every real graph and attribute."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import StandardScaler

from uge_core.datasets import load
from uge_core.graph.split import probe_split, split_links
from uge_core.kernels.logistic import fit_logistic
from uge_core.training.config import RunConfig
from uge_core.training.fit import fit

GRAPHS = ("pokec-n", "lastfm-asia", "deezer-europe", "movielens-1m", "german-credit")


@pytest.mark.acceptance
@pytest.mark.realdata
@pytest.mark.parametrize("name", GRAPHS)
def test_micro_f1_and_classes_are_scikit_learns(name, shared_data):
    """At tolerance 1e-8 within max(1e-3, 2 / n_test); scikit-learn takes up to half a minute for 97 ages."""
    graph = load(shared_data(name))
    backbone = "mf" if graph.bipartite else "node2vec"
    config = RunConfig.resolve(graph, backbone=backbone, epochs=50)
    z = fit([config], graph, split_links(graph), device="cpu")[0].embedding.astype(np.float64)
    for attribute in graph.audited:
        probe = probe_split(attribute, unknown=graph.defaults.unknown)
        x = StandardScaler().fit(z[probe.train]).transform(z)
        train, test = probe.train, probe.test
        ours = fit_logistic(x[train], probe.classes[train])
        oracle = LogisticRegression(C=1.0, class_weight="balanced", max_iter=5000, tol=1e-8)
        oracle.fit(x[train], probe.classes[train])
        np.testing.assert_array_equal(ours.classes, oracle.classes_)
        guess = ours.classes[ours.log_odds(x[test]).argmax(axis=1)]
        found, expected = (f1_score(probe.classes[test], g, average="micro") for g in (guess, oracle.predict(x[test])))
        assert abs(found - expected) <= max(1e-3, 2 / len(test)), (attribute.name, found, expected)
