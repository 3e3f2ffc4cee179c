"""No attacker from outside reads more than `worst` says: scikit-learn's, and some that walk over predicted links.

Each has what `worst` is about: everybody's vectors, and the values of the people whom the probe learns from. Methods that
read values are attacked where training did not see those of the tested people.
"""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from toys import prediction

from uge_core.audit.attackers.base import Shared
from uge_core.audit.compare import paired_auc
from uge_core.audit.holm import holm
from uge_core.audit.leakage import DEFAULT_ATTACKERS, attack, class_areas, macro_auc
from uge_core.datasets import load
from uge_core.graph.split import probe_split, split_links
from uge_core.training.config import RunConfig
from uge_core.training.fit import fit

MARGIN = 0.02
NEIGHBOURS = 20


def unit(z):
    return z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)


def both(z):
    """Standardised vectors, directions, and length."""
    return np.concatenate(
        [StandardScaler().fit_transform(z), unit(z), np.linalg.norm(z, axis=1, keepdims=True)], axis=1
    )


def predicted_graphs(z, k=NEIGHBOURS):
    """By cosine and by dot product, (N, k) whom each person of those with vectors would be linked to first."""
    found = []
    for rows in (unit(z), z):
        lists = np.empty((len(z), k), np.int64)
        for begin in range(0, len(z), 2_000):
            score = rows[begin : begin + 2_000] @ rows.T
            score[np.arange(len(score)), begin + np.arange(len(score))] = -np.inf
            lists[begin : begin + 2_000] = np.argpartition(-score, k, axis=1)[:, :k]
        found.append(lists)
    return found


def fitted(model):
    return lambda x, y, train, test: model().fit(x[train], y).predict_proba(x[test])


def extra_trees(z, y, train, test):
    model = ExtraTreesClassifier(500, min_samples_leaf=3, class_weight="balanced", random_state=0)
    return fitted(lambda: model)(both(z), y, train, test)


def kernel_machine(z, y, train, test):
    def model():
        kernel = Nystroem(n_components=min(1_000, len(train)), gamma=1.0 / z.shape[1], random_state=0)
        return make_pipeline(
            kernel, StandardScaler(), LogisticRegression(C=0.02, max_iter=500, class_weight="balanced")
        )

    return fitted(model)(StandardScaler().fit_transform(z), y, train, test)


def deep_network(z, y, train, test):
    answers = [
        fitted(lambda s=s: MLPClassifier((128, 128, 64), alpha=1e-2, early_stopping=True, random_state=s))(
            both(z), y, train, test
        )
        for s in range(3)
    ]
    return np.mean(answers, axis=0)


def neighbours(z, y, train, test):
    """A hundred nearest, a vote each by their nearness."""
    x = StandardScaler().fit_transform(z)
    distance, found = NearestNeighbors(n_neighbors=100).fit(x[train]).kneighbors(x[test])
    weight = np.exp(-np.square(distance) / np.square(distance).mean(axis=1, keepdims=True))
    hot = np.eye(int(y.max()) + 1)[y] / np.bincount(y)
    votes = (weight[:, :, None] * hot[found]).sum(axis=1)
    return votes / votes.sum(axis=1, keepdims=True)


def spread(z, y, train, test):
    """Label propagation over predicted links, in both directions."""
    num = int(y.max()) + 1
    known = np.zeros((len(z), num))
    known[train] = np.eye(num)[y] / np.bincount(y)
    total = np.zeros((len(test), num))
    for lists in predicted_graphs(z):
        degree = 1.0 + np.bincount(lists.ravel(), minlength=len(z))[:, None] / NEIGHBOURS
        now = known
        for _ in range(30):
            back = np.zeros_like(now)
            np.add.at(back, lists.ravel(), np.repeat(now / NEIGHBOURS, NEIGHBOURS, axis=0))
            now = 0.85 * (now[lists].mean(axis=1) + back) / degree + 0.15 * known
        total += now[test] / now[test].sum(axis=1, keepdims=True).clip(1e-300)
    return total


def walked(z, y, train, test):
    """What neighbours by predicted links are like, up to two steps away, and their values: to learn from, and to ask.

    Values are cross-fitted: those of a tenth of the people are not shown when their own features are made.
    """
    num = int(y.max()) + 1
    graphs, plain = predicted_graphs(z), both(z)
    fold = np.random.default_rng(0).permutation(len(train)) % 10

    def features(shown, people):
        hot, parts = np.zeros((len(z), num + 1)), [plain[people]]
        hot[train[shown], y[shown]] = 1.0
        hot[train[shown], num] = 1.0
        for lists in graphs:
            one = plain[lists].mean(axis=1)
            parts += [one[people], one[lists[people]].mean(axis=1)]
            held = hot[lists].mean(axis=1)
            for told in (held[people], held[lists[people]].mean(axis=1)):
                parts.append((told[:, :num] + 0.01 * np.bincount(y) / len(y)) / (told[:, num:] + 0.01))
        return np.concatenate(parts, axis=1)

    x = np.empty((len(train), features(fold > 0, test[:1]).shape[1]))
    for f in range(10):
        x[fold == f] = features(fold != f, train[fold == f])
    return x, features(fold >= 0, test)


def two_hops(z, y, train, test):
    x, asked = walked(z, y, train, test)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.02, max_iter=500, class_weight="balanced"))
    return model.fit(x, y).predict_proba(asked)


def two_hops_boosted(z, y, train, test):
    x, asked = walked(z, y, train, test)
    model = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=150 if y.max() < 5 else 60, l2_regularization=10.0, early_stopping=False
    )
    return model.fit(x, y).predict_proba(asked)


def best_scores(z, y, train, test):
    """By value, the mean of the ten largest cosines and dot products, and its share among the 10, 25 and 100 best."""
    num = int(y.max()) + 1
    fold = np.random.default_rng(0).permutation(len(train)) % 10

    def features(shown, people):
        parts = []
        for rows in (unit(z), z):
            score = rows[people] @ rows[train[shown]].T
            for c in range(num):
                mine = score[:, y[shown] == c]
                parts.append(-np.sort(-mine, axis=1)[:, :10].mean(axis=1) if mine.shape[1] else score.min(axis=1))
            order = np.argsort(-score, axis=1)[:, :100]
            for k in (10, 25, 100):
                parts += list(np.eye(num)[y[shown]][order[:, :k]].mean(axis=1).T)
        return np.stack(parts, axis=1)

    x = np.empty((len(train), num * 8))
    for f in range(10):
        x[fold == f] = features(fold != f, train[fold == f])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500, class_weight="balanced"))
    return model.fit(x, y).predict_proba(features(fold >= 0, test))


OUTSIDE = (best_scores, extra_trees, kernel_machine, deep_network, neighbours, spread, two_hops, two_hops_boosted)


def learnt_sign(outside, x, y, train):
    """(K,) -1 for values that the attacker reads backwards in a third of the people, having learnt from the others."""
    held = np.random.default_rng(1).permutation(len(train)) % 3 == 0
    held &= np.bincount(y)[y] >= 15  # everyone of the others is learnt from
    says = outside(x, y[~held], train[~held], train[held])
    sign = np.ones(says.shape[1])
    for area in class_areas(prediction(y[held], says.argmax(axis=1), says, range(says.shape[1]))):
        if area.value + 2 * np.sqrt(np.square(area.influence).sum()) < 0.5:
            sign[area.label] = -1
    return sign


def held_against_worst(z, probe):
    """(name of the strongest of ours, its AUC, {outside: (its AUC, lead, Holm's p)}) of one embedding."""
    people = (z.astype(np.float32), probe.classes, probe.train, probe.test)
    shared = Shared()
    ours = {a: attack(*people, attacker=a, shared=shared) for a in DEFAULT_ATTACKERS}
    areas = {a: macro_auc(p, probe.labels).value for a, p in ours.items()}
    best = max(areas, key=areas.get)
    classes, y = np.unique(probe.classes[probe.train], return_inverse=True)
    x = z.astype(np.float64)
    truth = probe.classes[probe.test]
    leads = []
    for outside in OUTSIDE:
        says = learnt_sign(outside, x, y, probe.train) * outside(x, y, probe.train, probe.test)
        theirs = prediction(truth, classes[says.argmax(axis=1)], says, classes, np.bincount(y))
        leads.append(paired_auc(theirs, ours[best]))
    adjusted = holm([p.p_value for p in leads])
    return (
        best,
        areas[best],
        {f.__name__: (p.a, p.value, float(q)) for f, p, q in zip(OUTSIDE, leads, adjusted, strict=True)},
    )


TRAINED = {
    "small Pokec": (
        "pokec-small",
        ":region_job_2_2",
        "region",
        300,
        ("none", "uge-c", "uge-ok", "uge-ork", "uge-n", "fairot", "leace"),
    ),
    "LastFM": ("lastfm-asia", "", "country", 150, ("none", "uge-ok", "uge-ork", "uge-n", "fairot")),
}


@pytest.mark.acceptance
@pytest.mark.realdata
@pytest.mark.parametrize("name", TRAINED)
def test_none_reads_more_than_worst_says(name, shared_data):
    folder, part, attribute, epochs, methods = TRAINED[name]
    graph = load(f"{shared_data(folder)}{part}")
    probe = probe_split(graph.attribute(attribute), unknown=graph.defaults.unknown)
    failed = []
    for method in methods:
        read = {} if method == "none" else {"sensitive": attribute, "lam": 1.0}
        config = RunConfig.resolve(graph, method=method, backbone="node2vec", epochs=epochs, **read)
        (trained,) = fit([config], graph, split_links(graph), device="cpu")
        z = trained.embedding if trained.twin is None else trained.twin
        best, area, outside = held_against_worst(z, probe)
        print(f"{name}, {method}: {best} {area:.3f}")
        for who, (theirs, lead, p) in outside.items():
            print(f"    {who} {theirs:.3f}, {lead:+.3f}, p = {p:.3g}")
            if lead > MARGIN and p < 0.05:
                failed.append((method, who, theirs, area))
    assert not failed
