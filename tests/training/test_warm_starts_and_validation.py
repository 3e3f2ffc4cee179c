"""The engine around the loop: warm starts, the watch on validation links, memory, neighbours."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from toys import config, run, town

from uge_core.errors import ConfigError
from uge_core.graph.split import split_links
from uge_core.runs.plan import plan
from uge_core.training.capacity import fitting_ensembles
from uge_core.training.ensembles import ensembles
from uge_core.training.fit import fit
from uge_core.training.validation import QuickProbe


def warm(graph, lam, start=0.1, **kwargs):
    return config(graph, "uge-r", lam=lam, warm_from=start, warm_epochs=15, exposure="seen", **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["node2vec", "gcn"])
def test_a_warm_run_starts_from_its_cold_run_and_equals_itself_beside_it(backbone):
    graph = town()
    cold = config(graph, "uge-r", backbone, lam=0.1, exposure="seen", epochs=60)
    path = [warm(graph, lam, backbone=backbone, epochs=60) for lam in (20.0, 0.5)]
    assert [c.cold() for c in path] == [cold, cold]
    alone = run(graph, path[0])[0]
    steps = []
    beside = run(graph, path[0], cold, path[1], on_epoch=lambda p: steps.append(p))
    np.testing.assert_array_equal(alone.embedding, beside[0].embedding)
    np.testing.assert_array_equal(beside[1].embedding, run(graph, cold)[0].embedding)
    assert [p.epoch for p in steps] == list(range(1, 76)) and {p.epochs for p in steps} == {75}
    # it goes on where the cold run ended, and a heavier penalty takes the gap down from there
    assert alone.history["epoch"][0] == 61 and alone.best_epoch == 75
    assert alone.history["penalty"][0] == pytest.approx(beside[1].history["penalty"][-1], rel=0.2)
    assert alone.history["penalty"][-1] < 0.7 * alone.history["penalty"][0]


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["node2vec", "gcn"])
def test_a_warm_run_under_the_same_loss_is_the_cold_run_going_on(backbone):
    """Step counts and moments come along: without them the first steps jump by the learning rate in every number."""
    graph = town()
    on = run(graph, warm(graph, 0.0, start=1e-30, backbone=backbone, epochs=60))[0]
    longer = run(graph, config(graph, "uge-r", backbone, lam=0.0, exposure="seen", epochs=75))[0]
    gap = np.linalg.norm(on.embedding - longer.embedding) / np.linalg.norm(longer.embedding)
    assert gap < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["node2vec", "gcn", "sgc", "gat"])
def test_deterministic_runs_are_equal_to_the_bit(backbone):
    graph = town()
    split = split_links(graph)
    members = [config(graph, m, backbone, epochs=5) for m in ("none", "uge-c", "uge-o", "uge-ok")]
    first, again = (fit(members, graph, split, device="cpu", deterministic=True) for _ in range(2))
    assert not torch.are_deterministic_algorithms_enabled()
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.embedding, b.embedding)


def test_warm_starts_bring_their_twins():
    graph = town()
    both = config(graph, "uge-r", lam=2.0, warm_from=0.1, epochs=10)
    seen = run(graph, both)[0]
    assert seen.twin is not None and not np.array_equal(seen.twin, seen.embedding)


def test_a_warm_path_is_planned_from_the_middle_lambda():
    graph = town()
    planned = plan(graph, sensitive="city", methods=("none", "uge-c"), lams=(0.1, 1.9, 0.5), warm=True, epochs=50)
    found = {(p.config.method, p.config.lam): (p.config.warm_from, p.config.warm_epochs) for p in planned}
    assert found == {
        ("none", None): (None, 0),
        ("uge-c", 0.1): (0.5, 10),
        ("uge-c", 1.9): (0.5, 10),
        ("uge-c", 0.5): (None, 0),
    }
    assert len(ensembles([p.config for p in planned])) == 1
    cold = plan(graph, sensitive="city", methods=("uge-c",), lams=(0.5,), epochs=50)
    assert cold[0].run_id in {p.run_id for p in planned}
    with pytest.raises(ConfigError, match="two lambdas or more"):
        plan(graph, sensitive="city", methods=("uge-c",), lams=(0.5,), warm=True)


def test_warm_runs_of_different_length_train_apart():
    graph = town()
    configs = [warm(graph, 1.0), config(graph, "uge-r", lam=3.0, warm_from=0.1, warm_epochs=7), config(graph)]
    assert ensembles(configs) == [[0, 2], [1]]


def test_what_the_watch_saw_is_told_and_moves_nothing():
    graph = town()
    plain = fit([config(graph, epochs=40)], graph, split_links(graph, validation_share=0.1), device="cpu")[0]
    watched = config(graph, epochs=40, validation=0.1)
    found = fit([watched], graph, split_links(graph, validation_share=0.1), device="cpu")[0]
    seen = found.diagnostics["validation"]
    assert seen["epoch"] == list(range(1, 41)) and set(seen["balanced_accuracy"]) == {"city", "gender"}
    assert found.best_epoch == seen["epoch"][int(np.argmax(seen["ndcg_at_10"]))]
    assert found.history == plain.history
    # city shapes the links of this graph, gender does not
    assert max(seen["balanced_accuracy"]["city"]) > 0.5
    assert run(graph, config(graph, epochs=2))[0].diagnostics["validation"] is None


def test_the_quick_probe_reads_what_is_there_and_nothing_else():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 3000)
    half = np.arange(1500), np.arange(1500, 3000)
    noise = rng.normal(size=(3000, 4)).astype(np.float32)
    probe = QuickProbe.of(*half, classes)
    assert probe.balanced_accuracy(noise) == pytest.approx(1 / 3, abs=0.05)
    told = noise.copy()
    told[:, 1] += 6.0 * classes
    told[:, 2] += 6.0 * (classes == 1)
    assert probe.balanced_accuracy(told) > 0.95
    rare = np.where(np.arange(3000) < 9, 3, classes)
    assert QuickProbe.of(*half, rare).num == 3
    assert QuickProbe.of(*half, np.zeros(3000, np.int64)) is None


PRELUDE = """
    import json, resource, sys, time
    import numpy as np
    from uge_core.datasets.planted.recipe import plant
    from uge_core.datasets.planted.samples import recipe
    from uge_core.runs.audits import Splits
    from uge_core.runs.plan import plan
    from uge_core.runs.store import RunStore
    from uge_core.runs.sweep import train_planned
    from uge_core.training.capacity import _member_bytes
    from uge_core.training.config import RunConfig
    from uge_core.training.fit import fit
"""


def python(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PRELUDE) + textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is Linux's")
def test_a_pass_that_does_not_fit_is_halved(tmp_path):
    """A process that may not grow by more than some hundred MB trains ten large members all the same."""
    found = python(
        """
        graph = plant(recipe("town", nodes=4000), 0).observed
        store, said = RunStore(sys.argv[1]), []
        planned = lambda seeds: plan(graph, seeds=seeds, epochs=2, options={"dim": 512})
        go = lambda todo: train_planned(
            graph, todo, store, device="cpu", on_progress=lambda s: said.append(s.text)
        )
        go(planned((99,)))
        size = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmSize")) * 1024
        resource.setrlimit(resource.RLIMIT_AS, (size + 400 * 2**20, resource.RLIM_INFINITY))
        todo = planned(range(10))
        go(todo)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(json.dumps({"status": [store.load(p.run_id).status for p in todo], "said": said}))
        """,
        tmp_path,
    )
    assert set(found["status"]) == {"finished"}
    assert any("10 runs at once did not fit the memory" in text for text in found["said"])


@pytest.mark.slow
def test_members_are_measured():
    """By one epoch of one and of three: at least the table, its gradient and Adam's two moments."""
    # In a process of its own: what earlier tests gave back would be taken again without the peak rising.
    script = """
        graph = plant(recipe("town", nodes=20_000), 0).observed
        print(json.dumps(_member_bytes(RunConfig.resolve(graph, options={"dim": 128}), graph)))
        """
    each, table = float(python(script)), 4 * 20_000 * 128
    assert np.isnan(each) or 3 * table < each < 15 * table


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU has one training at a time")
def test_those_that_train_beside_one_another_share_the_memory():
    graph = town()
    configs = [config(graph, seed=seed) for seed in range(4)]
    assert fitting_ensembles(configs, graph) == fitting_ensembles(configs, graph, 4) == [[0, 1, 2, 3]]
    assert fitting_ensembles(configs, graph, 10**12) == [[0], [1], [2], [3]]


@pytest.mark.alone
@pytest.mark.slow
def test_a_busy_neighbour_slows_a_step_no_more_than_its_share(tmp_path):
    """Two thread pools that spin against each other made a step thirty times slower (design, section 5)."""
    script = """
        graph = plant(recipe("town", nodes=20_000), 0).observed
        config = plan(graph, epochs=70)[0].config
        ticks = []
        fit([config], graph, Splits(graph)(config), device="cpu", on_epoch=lambda p: ticks.append(time.perf_counter()))
        print(json.dumps(float(np.median(np.diff(ticks[20:])))))
        """
    quiet = python(script)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        try:
            busy = python(script)
        finally:
            neighbour.kill()
    assert busy < 4 * quiet, (quiet, busy)
