"""Orchestration: reuse, failure, fingerprints, and what the audit is told."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uge_core as uge
from uge_core.errors import ConfigError, GraphError, OutOfMemory, StoreError, TrainingDiverged
from uge_core.graph.graph import AttributedGraph
from uge_core.runs import auditing
from uge_core.runs import sweep as runs
from uge_core.runs.audits import attributes_read
from uge_core.runs.data import check_data
from uge_core.runs.store import RunStore

FAST = {"epochs": 3, "device": "cpu"}


def test_train_returns_a_stored_audited_run(town: Path, tmp_path: Path) -> None:
    graph, store = uge.load(town), RunStore(tmp_path)
    run = uge.train(graph, sensitive="city", method="uge-c", lam=0.5, store=store, **FAST)
    assert run.id == store.list()[0].id
    assert run.embedding.shape == (graph.num_nodes, 16) and run.twin is not None
    assert run.hidden["city"].any() and len(run.history)
    assert run.environment["device"] == "cpu" and run.diagnostics["members"]
    bias_free = [r["attribute"] for r in run.audit["rows"] if r["metric"] == "ndcg_at_10_bias_free"]
    assert set(bias_free) == {"city"}


@pytest.mark.slow
def test_a_run_without_a_method_is_judged_for_every_attribute(town: Path, tmp_path: Path) -> None:
    run = uge.train(uge.load(town), store=RunStore(tmp_path), **FAST)
    rows = [r for r in run.audit["rows"] if r["metric"] == "ndcg_at_10_bias_free"]
    assert {r["attribute"] for r in rows} == {"city", "gender", "age"}
    assert {r["exposure"] for r in run.audit["rows"]} == {None}
    assert run.twin is None


def test_a_failure_marks_the_runs_and_keeps_earlier_ones(
    plain_town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import import_module

    graph, store = uge.load(plain_town), RunStore(tmp_path)
    first = uge.train(graph, store=store, **FAST)

    def diverge(*_: object, **__: object) -> None:
        raise TrainingDiverged("the loss is not finite; try a smaller learning_rate")

    monkeypatch.setattr(import_module("uge_core.training.fit"), "fit", diverge)
    with pytest.raises(TrainingDiverged):
        uge.sweep(graph, seeds=(0, 1, 2), store=store, **FAST)
    status = {r.config["seed"]: (r.status, r.reason) for r in store.list()}
    assert status[0] == ("finished", None) and store.load(first.id).audit == first.audit
    assert status[1] == status[2] == ("failed", "the loss is not finite; try a smaller learning_rate")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OutOfMemory("it does not fit"), ConfigError("it cannot be")])
def test_halves_that_wait_end_with_the_sweep(
    plain_town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    from importlib import import_module

    def fit(configs: Sequence[object], *_: object, **__: object) -> None:
        raise OutOfMemory("they do not fit") if len(configs) > 1 else error

    monkeypatch.setattr(import_module("uge_core.training.fit"), "fit", fit)
    store = RunStore(tmp_path)
    with pytest.raises(type(error)):
        uge.sweep(uge.load(plain_town), seeds=range(5), store=store, **FAST)
    status = {r.config["seed"]: r.status for r in store.list()}
    first = {KeyboardInterrupt: {0: "interrupted"}, OutOfMemory: {0: "failed"}, ConfigError: {}}[type(error)]
    assert status == first | dict.fromkeys(range(1, 5), "interrupted")


def test_a_refused_config_leaves_no_run(plain_town: Path, tmp_path: Path) -> None:
    graph, store = uge.load(plain_town), RunStore(tmp_path)
    with pytest.raises(ConfigError, match="tpu"):
        uge.train(graph, store=store, epochs=1, device="tpu")
    assert list(store.list()) == []
    first = uge.train(graph, store=store, **FAST)
    with pytest.raises(ConfigError, match="tpu"):
        uge.train(graph, store=store, epochs=3, device="tpu", force=True)
    assert store.load(first.id).status == "finished" and store.load(first.id).audit == first.audit


def test_an_audit_that_was_cut_off_is_made_up_without_training(
    plain_town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import import_module

    graph, store = uge.load(plain_town), RunStore(tmp_path)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(auditing, "audit_run", stop)
        with pytest.raises(KeyboardInterrupt):
            uge.train(graph, store=store, **FAST)
    assert (store.list()[0].status, store.list()[0].audit) == ("finished", None)
    monkeypatch.setattr(import_module("uge_core.training.fit"), "fit", stop)
    assert uge.train(graph, store=store, **FAST).audit is not None


def test_settings_go_to_those_who_know_them(town: Path) -> None:
    graph = uge.load(town)
    planned = uge.plan(graph, sensitive="city", methods=("none", "uge-r"), options={"pair_weighting": "cells"})
    assert [p.config.method_options.get("pair_weighting") for p in planned] == [None, "cells"]
    with pytest.raises(ConfigError, match="no such setting"):
        uge.plan(graph, sensitive="city", methods=("none", "uge-r"), options={"pairs": "cells"})
    with pytest.raises(ConfigError, match="methods is empty"):
        uge.plan(graph, methods=())


def test_audit_of_an_embedding_from_elsewhere(town: Path) -> None:
    graph = uge.load(town)
    z = np.random.default_rng(0).normal(size=(graph.num_nodes, 4))
    frame = uge.audit(z, graph, sensitive=["city"], attackers=("linear",)).frame()
    assert set(frame["attribute"].dropna()) == {"city"}
    assert frame.loc[frame["variant"] == "held-out", "value"].isna().all()
    known = uge.audit(z, graph, sensitive=["city"], attackers=("linear",), split_seed=0)
    assert known.find(metric="ndcg_at_10", variant="held-out").value is not None
    fewer = uge.audit(z, graph, sensitive=["city"], attackers=("linear",), split_seed=0, test_share=0.05)
    ranked = [audit.find(metric="ndcg_at_10", variant="held-out").n for audit in (known, fewer)]
    assert ranked[1] < ranked[0]


@pytest.mark.parametrize(
    ("change", "settings", "said"),
    [
        (lambda z: z[1:], {}, r"shape \(199, 4\)"),
        (lambda z: z[:, 0], {}, r"shape \(200,\)"),
        (lambda z: z[:, :0], {}, "shape"),
        (lambda z: z.astype(str), {}, "allowed: .*numbers"),
        (lambda z: z.astype(complex), {}, "complex128.*real numbers"),
        (lambda z: z > 0, {}, "bool"),
        (lambda z: [[1.0], [1.0, 2.0]], {}, "no array"),
        (lambda z: [None] * 200, {}, "object"),
        (lambda z: np.where(np.arange(4) == 1, np.nan, z), {}, "not finite"),
        (lambda z: z * 1e300, {}, "not finite"),
        (lambda z: z, {"split_seed": -1}, "split_seed = -1"),
        (lambda z: z, {"split_seed": 0.5}, "split_seed = 0.5"),
        (lambda z: z, {"split_seed": True}, "split_seed = True"),
        (lambda z: z, {"test_share": 0.1}, "test_share needs split_seed"),
        (lambda z: z, {"split_seed": 0, "test_share": 2.0}, "0 to 0.9"),
        (lambda z: z, {"split_seed": 0, "validation": "much"}, "not a number"),
        (lambda z: z, {"sensitive": ","}, "names no attribute"),
        (lambda z: z, {"sensitive": []}, "names no attribute"),
        (lambda z: z, {"attackers": ("guess",)}, "guess"),
    ],
)
def test_what_cannot_be_audited_is_a_config_error(town: Path, change: Any, settings: dict[str, Any], said: str) -> None:
    graph = uge.load(town)
    z = np.random.default_rng(0).normal(size=(graph.num_nodes, 4))
    with pytest.raises(ConfigError, match=said):
        uge.audit(change(z), graph, **settings)


@pytest.mark.slow
def test_audit_of_a_run_gives_the_rows_of_its_stored_audit(town: Path, seeded: Path) -> None:
    graph = uge.load(town)
    for run in RunStore(seeded).list():
        if run.config["method"] in ("none", "uge-c"):
            assert run.audit is not None and uge.audit(run, graph).to_json() == run.audit["rows"]
    with pytest.raises(ConfigError, match="brings its own split"):
        uge.audit(run, graph, split_seed=0)
    with pytest.raises(StoreError, match="other data"):
        uge.audit(run, replace(graph, edges=graph.edges[:, 1:]))


def test_names_are_checked_for_every_method(town: Path) -> None:
    graph = uge.load(town)
    for grid in ({"sensitive": "ctiy"}, {"sensitive": "city,gendre", "methods": ("none", "uge-w")}):
        with pytest.raises(GraphError, match="Did you mean"):
            uge.plan(graph, **grid)
    with pytest.raises(ConfigError, match="lambda = -1"):
        uge.plan(graph, lams=(-1.0,))


def relabelled(graph: AttributedGraph) -> AttributedGraph:
    return replace(graph, name="copy", node_ids=np.array([f"q{i}" for i in range(graph.num_nodes)]))


def test_a_reused_run_takes_over_where_its_data_lie_now(plain_town: Path, tmp_path: Path) -> None:
    graph, store = uge.load(plain_town), RunStore(tmp_path)
    first = uge.train(graph, store=store, source={"spec": "here", "attributes": None}, **FAST)
    rows = (first.audit or {})["rows"]
    assert uge.train(graph, store=store, **FAST).dataset == first.dataset
    copy = relabelled(graph)
    assert copy.fingerprint == graph.fingerprint
    check_data(first, copy)
    with pytest.raises(StoreError, match=r"other ids.*--data"):
        check_data(first, copy, ids=True)
    again = uge.train(copy, store=store, source={"spec": "there", "attributes": None}, **FAST)
    assert again.id == first.id and again.dataset["source"]["spec"] == "there" and again.dataset["name"] == "copy"
    assert again.audit is not None and again.audit["dataset"]["name"] == "copy"
    assert again.audit["rows"] == rows
    check_data(again, copy, ids=True)
    with pytest.raises(StoreError, match="other ids"):
        check_data(again, graph, ids=True)
    assert uge.train(graph, store=store, **FAST).dataset["source"] is None


@pytest.mark.slow
def test_a_run_whose_files_are_damaged_is_trained_again(plain_town: Path, tmp_path: Path) -> None:
    graph, store = uge.load(plain_town), RunStore(tmp_path)
    arguments: dict[str, Any] = {"sensitive": "city", "method": "uge-w", "store": store, **FAST}
    first = uge.train(graph, **arguments)
    before = np.array(first.embedding)
    for name in ("embedding.npy", "twin.npy"):
        (first.folder / name).write_bytes(b"junk")
        run = uge.train(graph, **arguments)
        run.check()
        np.testing.assert_allclose(run.embedding, before, rtol=1e-4, atol=1e-6)


def test_one_diverging_member_takes_no_other_with_it(plain_town: Path, tmp_path: Path, monkeypatch: Any) -> None:
    from importlib import import_module

    graph, store, training = uge.load(plain_town), RunStore(tmp_path), import_module("uge_core.training.fit")
    fit, calls = training.fit, []

    def diverge(configs: Any, *given: Any, **options: Any) -> Any:
        calls.append([(c.backbone, c.seed) for c in configs])
        lost = tuple(i for i, c in enumerate(configs) if c.seed == 1 and c.backbone == "node2vec")
        if lost:
            raise TrainingDiverged("the loss of seed 1 is not finite", lost)
        return fit(configs, *given, **options)

    monkeypatch.setattr(training, "fit", diverge)
    with pytest.raises(TrainingDiverged, match="seed 1"):
        uge.sweep(graph, seeds=(0, 1, 2), backbones=("node2vec", "mf"), store=store, **FAST)
    found = {(r.config["backbone"], r.config["seed"]): (r.status, r.audited) for r in store.list()}
    assert found.pop(("node2vec", 1)) == ("failed", False)
    assert set(found.values()) == {("finished", True)} and len(found) == 5
    assert calls[1] == [("node2vec", 0), ("node2vec", 2)]


def test_a_run_that_another_process_trains_marks_no_other(town: Path, tmp_path: Path, monkeypatch: Any) -> None:
    graph, store = uge.load(town), RunStore(tmp_path)
    taken = uge.plan(graph, seeds=(1,), epochs=3)[0].run_id
    begin = RunStore.begin

    def refuse(self: RunStore, run_id: str, *given: Any) -> Any:
        if run_id == taken:
            raise StoreError(f"run {run_id} is being trained by process 1; wait for it or stop it first")
        return begin(self, run_id, *given)

    monkeypatch.setattr(RunStore, "begin", refuse)
    with pytest.raises(StoreError, match="by process 1"):
        uge.sweep(graph, seeds=(0, 1, 2), store=store, **FAST)
    assert list(store.list()) == []


def test_a_device_is_checked_where_nothing_is_trained(plain_town: Path, tmp_path: Path) -> None:
    graph, store = uge.load(plain_town), RunStore(tmp_path)
    uge.train(graph, store=store, **FAST)
    with pytest.raises(ConfigError, match="tpu"):
        uge.train(graph, store=store, epochs=3, device="tpu")


@pytest.mark.parametrize(
    ("method", "options", "read"),
    [
        ("none", {}, ()),
        ("uge-w", {}, ("city", "gender", "age")),
        ("uge-w", {"independence": "true"}, ("city",)),
        ("uge-c", {"independence": "true"}, ("city", "gender", "age")),
        ("fairwalk", {}, ("city",)),
        ("debayes", {}, ("city",)),
    ],
)
def test_the_audit_is_told_which_values_training_read(
    town: Path, method: str, options: dict[str, str], read: tuple[str, ...]
) -> None:
    graph = uge.load(town)
    (planned,) = uge.plan(graph, sensitive="city", methods=(method,), options=options)
    assert attributes_read(planned.config, graph) == read


@pytest.mark.slow
def test_remarks_of_training_are_told_once(plain_town: Path, tmp_path: Path) -> None:
    told: list[str] = []
    sparse = shutil.copytree(plain_town, tmp_path / "sparse")
    head, *lines = (sparse / "edges.csv").read_text().splitlines()
    (sparse / "edges.csv").write_text("\n".join([head, *lines[::8]]) + "\n")
    run = uge.sweep(
        uge.load(sparse),
        sensitive="city",
        methods=("uge-w", "uge-c"),
        store=RunStore(tmp_path / "store"),
        test_share=0.9,
        on_progress=lambda step: told.append(step.text) if step.stage == "note" else None,
        **FAST,
    )[0]
    twin = run.diagnostics["twin_notes"]["city"]
    assert told.count(f"{twin} (the twin)") == 1 and len(told) == len(set(told))
    short = run.diagnostics["split"]["short"]
    assert short > 0 and sum(f"{short} fewer edges" in text for text in told) == 1


def test_the_time_left_holds_the_passes_to_come(plain_town: Path, tmp_path: Path) -> None:
    steps: list[runs.Step] = []
    uge.sweep(
        uge.load(plain_town),
        backbones=["node2vec", "sgc"],
        store=RunStore(tmp_path),
        on_progress=steps.append,
        epochs=20,
        device="cpu",
    )
    first, second = [s.job_seconds_left for s in steps if s.stage == "training" and s.done == s.total]
    assert first is not None and second is not None and first > second


def test_a_method_that_cannot_serve_is_told_of_before_another_pass_trains(tmp_path: Path) -> None:
    store = uge.RunStore(tmp_path)
    with pytest.raises(ConfigError, match=r"item_cells|mf"):
        uge.sweep(
            uge.load("sample:titles"),
            sensitive="gender",
            methods=["none", "uge-o"],
            backbones=["node2vec", "mf"],
            epochs=1,
            options={"item_cells": "none"},
            store=store,
        )
    assert not store.list()
