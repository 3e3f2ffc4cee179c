"""Every attacker: planted leaks, calibration, usable information, and inputs with little in them."""

import subprocess
import sys

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from strategies import attribute
from toys import others_in_ci

from uge_core.audit import audit_embedding, leakage_rows
from uge_core.audit.attackers.knn import _filled
from uge_core.audit.calibration import FLOOR, fit_calibration
from uge_core.audit.leakage import (
    DEFAULT_ATTACKERS,
    Prediction,
    attack,
    macro_auc,
    measure,
    random_embedding,
    usable_bits,
)
from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph, simple_edges
from uge_core.graph.split import probe_split, split_links
from uge_core.kernels.nearest import nearest
from uge_core.registry import find, names

ATTACKERS = names("audit.attackers")
# a perceptron takes its thousands of steps however little there is to learn
MLP_IN_CI = others_in_ci(ATTACKERS, *set(ATTACKERS) - {"mlp"})
RING = np.stack([np.arange(3_000), np.roll(np.arange(3_000), -1)])


def probe_of(y, z, attacker, edges=RING, **options):
    """The attack on all nodes whose class is in y."""
    y = np.asarray(y, np.int64)
    split = probe_split(attribute("g", y))
    edges = edges[:, (edges < len(y)).all(axis=0)]
    return attack(np.asarray(z, np.float32), y, split.train, split.test, attacker=attacker, edges=edges, **options)


def nodes_with_equal_means(kind, n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 4))
    if kind == "variances":
        y = rng.integers(0, 2, n)
        z[:, :2] *= np.where(y, 2.0, 0.7)[:, None]
    else:
        y = (z[:, 0] * z[:, 1] > 0).astype(np.int64)
    return z, y


def test_those_that_are_known_are_there():
    assert {"graph", "knn", "linear", "linked-trees", "links", "mlp", "rbf", "trees"} <= set(ATTACKERS)
    assert all(find("audit.attackers", name).label for name in ATTACKERS)


@pytest.mark.parametrize("kind", ["variances", "xor"])
@pytest.mark.parametrize("attacker", MLP_IN_CI)
def test_a_leak_that_is_not_linear_is_missed_by_the_linear_attacker_alone(attacker, kind):
    z, y = nodes_with_equal_means(kind)
    found = macro_auc(probe_of(y, z, attacker), ("a", "b")).value
    if attacker == "linear":
        assert abs(found - 0.5) < 0.05
    else:
        assert found > 0.7


@pytest.mark.slow
def test_the_worst_row_is_not_the_linear_attackers():
    z, y = nodes_with_equal_means("variances", 1_000)
    source, target = np.random.default_rng(1).integers(0, 1_000, (2, 4_000))
    graph = AttributedGraph("g", 1_000, simple_edges(source, target, 1_000)[0], (attribute("g", y),))
    audit = audit_embedding(z.astype(np.float32), graph, split_links(graph), attackers=ATTACKERS)
    for metric in ("auc", "usable_bits", "micro_f1", "balanced_accuracy"):
        rows = {r.attacker: r for r in audit.select(metric=metric)}
        assert set(rows) == {*ATTACKERS, "worst"}
        worst = rows.pop("worst")
        assert worst.value == max(rows[name].value for name in DEFAULT_ATTACKERS)
        assert worst.note.startswith("worst attacker: ") and "worst attacker: linear" not in worst.note
        assert f"of {', '.join(DEFAULT_ATTACKERS)};" in worst.note
        assert worst.ci_low <= rows[worst.note.split()[2].rstrip(",")].ci_low
        assert worst.floor_random == max(rows[name].floor_random for name in DEFAULT_ATTACKERS)
    assert rows["linear"].floor_majority is not None and worst.floor_random is not None
    assert audit.find(metric="usable_bits", attacker="worst").floor_majority == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("bipartite", [False, True])
def test_the_graph_attacker_reads_what_only_neighbours_say(bipartite):
    rng = np.random.default_rng(0)
    people, n = 1_000, 1_400
    y = rng.integers(0, 2, people)
    z = rng.normal(size=(n, 3))
    # The second part of the nodes carries the value in its vectors, people's own vectors are noise.
    side = np.arange(people, n) % 2
    z[people:, 0] += 4.0 * side - 2.0
    user = np.repeat(np.arange(people), 6)
    item = people + 2 * rng.integers(0, 200, len(user)) + y[user]
    edges, _, _ = simple_edges(user, item, n)
    codes = np.concatenate([y, np.full(n - people, -2)])
    made = attribute("g", codes, side="users" if bipartite else "nodes", num_values=2)
    graph = AttributedGraph("g", n, edges, (made,), num_users=people if bipartite else None)
    audit = audit_embedding(z.astype(np.float32), graph, split_links(graph), attackers=("graph", "trees"))
    assert audit.find(metric="auc", attacker="graph").value > 0.9
    assert abs(audit.find(metric="auc", attacker="trees").value - 0.5) < 0.1


def test_the_graph_attacker_knows_training_edges_alone():
    z = random_embedding(5, 2)
    inputs = find("audit.attackers", "graph")().inputs(z, np.array([[0, 0], [1, 2]]))
    np.testing.assert_allclose(inputs[:, :2], z)
    np.testing.assert_allclose(inputs[:, 2:], [(z[1] + z[2]) / 2, z[0], z[0], [0, 0], [0, 0]], rtol=1e-6)
    with pytest.raises(ConfigError, match="needs edges"):
        attack(z, np.arange(5) % 2, np.arange(4), np.arange(4, 5), attacker="graph")


def test_nearest_neighbours_against_loops():
    rng = np.random.default_rng(3)
    x, y, points = rng.normal(size=(60, 3)), np.arange(60) % 3, rng.normal(size=(10, 3))
    found = find("audit.attackers", "knn")().fit(x, y, seed=0).probability(points)
    expected = [reference.nearest_votes(x, y, p, 3, 25) for p in points]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


# Calibration


@pytest.mark.parametrize("attacker", MLP_IN_CI)
def test_the_tested_nodes_values_change_no_probability(attacker):
    z, y = nodes_with_equal_means("variances", 400)
    split = probe_split(attribute("g", y))
    other = y.copy()
    other[split.test] = 1 - other[split.test]
    one, two = (
        attack(z.astype(np.float32), v, split.train, split.test, attacker=attacker, edges=RING[:, :399])
        for v in (y, other)
    )
    np.testing.assert_array_equal(one.probability, two.probability)
    np.testing.assert_array_equal(one.calibrated, two.calibrated)
    assert (one.truth != two.truth).all()


def test_the_linear_attacker_learns_from_all_training_nodes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 500)
    z = (rng.normal(size=(500, 4)) + np.eye(4)[y]).astype(np.float32)
    plain, calibrated = (probe_of(y, z, "linear", calibrate=c) for c in (False, True))
    np.testing.assert_array_equal(plain.probability, calibrated.probability)
    assert plain.calibrated is None and usable_bits(plain).value is None


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.85, 0.1, 0.05)])
def test_calibration_undoes_balanced_classes_and_temperature(shares):
    rng = np.random.default_rng(1)
    prior = np.array(shares)
    n = 20_000
    y = rng.choice(len(prior), n, p=prior)
    x = rng.normal(size=n) + y
    likelihood = np.exp(-0.5 * np.square(x[:, None] - np.arange(len(prior))))
    truth = likelihood * prior
    truth /= truth.sum(axis=1, keepdims=True)
    given = likelihood**2.5  # balanced and over-confident
    given /= given.sum(axis=1, keepdims=True)
    found = fit_calibration(given, y, prior)
    assert found.power == pytest.approx(0.4, abs=0.03) and found.mix == pytest.approx(1.0, abs=0.1)
    assert np.abs(found.apply(given) - truth).max() < 0.03


@pytest.mark.processors
@pytest.mark.parametrize("sharp", [0.3, 3.0, 400.0])
def test_calibration_does_not_depend_on_the_order_of_sums(sharp):
    rng = np.random.default_rng(2)
    prior, y = np.array([0.6, 0.3, 0.1]), rng.choice(3, 400, p=[0.6, 0.3, 0.1])
    given = np.exp(rng.normal(size=(400, 3)) / sharp + 0.5 * (np.arange(3) == y[:, None]))
    given /= given.sum(axis=1, keepdims=True)
    found = fit_calibration(given, y, prior)
    for _ in range(3):
        order = rng.permutation(400)
        other = fit_calibration(given[order], y[order], prior)
        assert (other.power, other.mix) == pytest.approx((found.power, found.mix), rel=1e-10, abs=1e-10)
    assert 0 <= found.power <= 10 and -5 <= found.mix <= 5


def test_calibration_of_noise_is_the_prior_and_certainty_stays_finite():
    rng = np.random.default_rng(0)
    prior = np.array([0.7, 0.2, 0.1])
    y = rng.choice(3, 4_000, p=prior)
    noise = rng.dirichlet([1.0, 1.0, 1.0], 4_000)
    found = fit_calibration(noise, y, prior)
    assert np.abs(found.apply(noise) - prior).max() < 0.1
    wrong = fit_calibration(np.eye(3)[y], y, prior).apply(np.eye(3)[(y + 1) % 3])
    true = wrong[np.arange(len(y)), y]
    assert (true >= FLOOR * prior[y] * (1 - 1e-9)).all() and true.max() < 0.01
    np.testing.assert_allclose(wrong.sum(axis=1), 1.0)


@given(st.integers(1, 60), st.integers(1, 2100), st.integers(1, 9), st.integers(1, 25), st.integers(0, 99))
@settings(max_examples=15)
def test_the_nearest_are_those_of_a_sorted_list_and_the_first_of_equals(num_asked, num, dim, k, seed):
    rng = np.random.default_rng(seed)
    # few whole numbers: many people at one place
    asked, among = (rng.integers(-2, 3, (m, dim)).astype(np.float64) for m in (num_asked, num))
    k = min(k, num)
    square, found = nearest(_filled(asked), _filled(among).T.copy(), k)
    exact = ((asked[:, None] - among) ** 2).sum(axis=2)
    np.testing.assert_array_equal(found, np.argsort(exact, axis=1, kind="stable")[:, :k])
    np.testing.assert_array_equal(square, np.take_along_axis(exact, found, axis=1))


def test_nearest_neighbours_are_scikit_learns():
    x, z = np.random.default_rng(0).normal(size=(2, 700, 6))
    distance, found = NearestNeighbors(n_neighbors=25, algorithm="brute").fit(x).kneighbors(z)
    square, ours = nearest(_filled(z), _filled(x).T.copy(), 25)
    assert (ours == found).mean() > 0.999
    np.testing.assert_allclose(np.sqrt(square), distance, rtol=1e-5)


# Usable information


@pytest.mark.parametrize("attacker", MLP_IN_CI)
def test_usable_bits_against_loops_and_scikit_learn(attacker):
    rng = np.random.default_rng(5)
    y = rng.choice(3, 900, p=[0.6, 0.3, 0.1])
    z = (rng.normal(size=(900, 4)) + 1.5 * np.eye(4)[y]).astype(np.float32)
    p = probe_of(y, z, attacker)
    found = usable_bits(p)
    assert found.value == pytest.approx(reference.usable_bits(p.truth, p.classes, p.train_size, p.calibrated))
    prior = np.broadcast_to(p.train_size / p.train_size.sum(), p.calibrated.shape)
    labels = p.classes
    bits = (log_loss(p.truth, prior, labels=labels) - log_loss(p.truth, p.calibrated, labels=labels)) / np.log(2)
    assert found.value == pytest.approx(bits)
    assert found.low < found.value < found.high and 0.1 < found.value < 1.3


@pytest.mark.parametrize("attacker", [a for a in MLP_IN_CI if a.values != ("graph",)])
def test_usable_bits_of_everything_and_of_nothing(attacker):
    y = np.arange(1_000) % 2
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1_000, 3))
    noise = usable_bits(probe_of(y, z, attacker))
    assert -0.05 < noise.value < 0.05 and noise.low <= 0.0 <= noise.high
    z[:, 0] = 20.0 * y + 0.1 * z[:, 0]
    everything = usable_bits(probe_of(y, z, attacker))
    assert 0.9 < everything.value <= 1.0


def test_a_class_absent_from_training_counts_nothing():
    truth = np.array([0] * 15 + [1] * 15 + [2] * 10)
    q = np.full((40, 2), 0.5)
    q[:15] = [0.9, 0.1]
    p = Prediction(truth, np.array([0, 1]), np.array([60, 60]), q, q.argmax(axis=1), q)
    assert usable_bits(p).value == pytest.approx(15 * np.log2(1.8) / 40)
    few = Prediction(truth[:19], p.classes, p.train_size, q[:19], p.label[:19], q[:19])
    assert usable_bits(few).value is None and "at least 20" in usable_bits(few).note


def test_usable_bits_interval_covers_as_often_as_it_says():
    """Embedding and attacker fixed, nodes drawn from a population: q = .8 for the right class in 80 % of cases."""
    rng = np.random.default_rng(0)
    hits, trials, n = 0, 400, 200
    for _ in range(trials):
        truth = rng.integers(0, 2, n)
        says = np.where(rng.random(n) < 0.8, truth, 1 - truth)
        q = np.where(np.eye(2)[says] > 0, 0.8, 0.2)
        found = usable_bits(Prediction(truth, np.arange(2), np.array([99, 99]), q, says, q))
        hits += found.low <= 1 + 0.8 * np.log2(0.8) + 0.2 * np.log2(0.2) <= found.high
    assert 0.92 <= hits / trials <= 0.98


# Little to learn from


@pytest.mark.parametrize("attacker", MLP_IN_CI)
@pytest.mark.parametrize("case", ["one-member classes", "equal vectors", "97 values", "few nodes", "huge numbers"])
def test_inputs_with_little_in_them(attacker, case):
    rng = np.random.default_rng(0)
    y, z = rng.integers(0, 2, 600), rng.normal(size=(600, 4))
    if case == "one-member classes":
        y[:5] = np.arange(2, 7)
    elif case == "equal vectors":
        z[:] = 3.0
    elif case == "97 values":
        y = np.arange(600) % 97
    elif case == "few nodes":
        y, z = y[:30], z[:30]
    else:
        z *= 1e17
    p = probe_of(y, z, attacker)
    assert np.isfinite(p.probability).all() and np.allclose(p.probability.sum(axis=1), 1.0)
    assert p.probability.shape == (len(p.truth), len(p.classes)) and set(np.unique(y)) == set(p.classes)
    if case == "few nodes":
        assert p.calibrated is None
    else:
        assert np.allclose(p.calibrated.sum(axis=1), 1.0)
    if case == "97 values" and attacker in ("trees", "mlp", "graph"):
        assert "limited to " in measure(p, tuple(map(str, range(97))))["usable_bits"].note
    if case == "equal vectors" and attacker != "graph":
        assert usable_bits(p).value == pytest.approx(0.0, abs=0.05)
    assert probe_of(np.zeros(30), z[:30], attacker) is None


@pytest.mark.slow
def test_rows_do_not_depend_on_how_many_attackers_run_at_once(monkeypatch):
    z, y = nodes_with_equal_means("xor", 400)
    source, target = np.random.default_rng(1).integers(0, 400, (2, 1_600))
    graph = AttributedGraph("g", 400, simple_edges(source, target, 400)[0], (attribute("g", y),))
    audits = []
    for cores in (1, 4):
        monkeypatch.setattr(leakage_rows, "cores", lambda cores=cores: cores)
        audits.append(
            audit_embedding(z.astype(np.float32), graph, split_links(graph), attackers=("linear", "mlp", "trees"))
        )
    assert audits[0] == audits[1]


def test_an_interrupted_audit_starts_no_further_attacker(monkeypatch):
    z, y = nodes_with_equal_means("xor", 400)
    graph = AttributedGraph("g", 400, RING[:, :399], (attribute("g", y),))
    monkeypatch.setattr(leakage_rows, "cores", lambda: 1)
    floors = {}

    def stop(what, share):
        if share > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_embedding(z.astype(np.float32), graph, None, attackers=ATTACKERS, floors=floors, progress=stop)
    assert floors == {}


@pytest.mark.parametrize("attacker", MLP_IN_CI)
def test_random_embeddings_sit_at_chance(attacker):
    found = []
    for seed in (8, 9, 10):
        y = np.random.default_rng(seed).integers(0, 3, 2_000)
        found.append(measure(probe_of(y, random_embedding(2_000, 8, seed=seed), attacker), ("a", "b", "c")))
    auc, bits, balanced = (
        np.mean([m[metric].value for m in found]) for metric in ("auc", "usable_bits", "balanced_accuracy")
    )
    assert abs(auc - 0.5) < 0.04 and abs(bits) < 0.03 and abs(balanced - 1 / 3) < 0.05


@pytest.mark.parametrize("classes", [2, 4])
def test_calibrated_linear_attacker_is_scikit_learns_with_the_prior_put_back(classes):
    """On Gaussian classes the log loss is that of an unbalanced fit, to a hundredth of a bit."""
    rng = np.random.default_rng(2)
    y = rng.choice(classes, 6_000, p=np.arange(1, classes + 1) / np.arange(1, classes + 1).sum())
    z = (rng.normal(size=(6_000, 4)) + np.eye(4)[y]).astype(np.float32)
    split = probe_split(attribute("g", y))
    p = probe_of(y, z, "linear")
    x = StandardScaler().fit(z[split.train]).transform(z)
    oracle = LogisticRegression(max_iter=2_000).fit(x[split.train], y[split.train]).predict_proba(x[split.test])
    ours, theirs = (log_loss(p.truth, q) / np.log(2) for q in (p.calibrated, oracle))
    assert ours == pytest.approx(theirs, abs=0.01)


@pytest.mark.slow
def test_after_what_it_needs_a_fit_imports_no_package_in_a_thread():
    # Two threads that were the first to import scikit-learn met half of it: "cannot import name 'clone'".
    code = """
import importlib, os, sys

import numpy as np
from uge_core.audit import leakage_rows
from uge_core.registry import find
for attacker in sys.argv[1:]:
    if os.fork():  # each in a process of its own, which has imported nothing for another
        os.wait()
        continue
    plugin = find("audit.attackers", attacker)()
    for module in plugin.needs:
        importlib.import_module(module)
    before = set(sys.modules)
    x = np.random.default_rng(0).normal(size=(60, 4))
    plugin.fit(x, np.arange(60) % 2, seed=0).probability(x)
    late = sorted(m for m in set(sys.modules) - before if "." not in m or m.split(".")[0] in ("sklearn", "scipy"))
    print(attacker, late, flush=True)
    os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code, *ATTACKERS], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{attacker} []" for attacker in ATTACKERS], done.stderr
