"""Orchestration: reuse, failure, fingerprints, and what the audit is told."""

from pathlib import Path

import numpy as np
import pytest

import uge_core as uge
from uge_core import runs
from uge_core.errors import ConfigError, TrainingDiverged
from uge_core.store import RunStore

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


def test_a_run_without_a_method_is_judged_for_every_attribute(town: Path, tmp_path: Path) -> None:
    run = uge.train(uge.load(town), store=RunStore(tmp_path), **FAST)
    rows = [r for r in run.audit["rows"] if r["metric"] == "ndcg_at_10_bias_free"]
    assert {r["attribute"] for r in rows} == {"city", "gender", "age"}
    assert {r["exposure"] for r in run.audit["rows"]} == {None}
    assert run.twin is None


def test_a_failure_marks_the_runs_and_keeps_earlier_ones(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import import_module

    graph, store = uge.load(town), RunStore(tmp_path)
    first = uge.train(graph, store=store, **FAST)

    def diverge(*_: object, **__: object) -> None:
        raise TrainingDiverged("the loss is not finite; try a smaller learning_rate")

    monkeypatch.setattr(import_module("uge_core.train"), "fit", diverge)
    with pytest.raises(TrainingDiverged):
        uge.sweep(graph, seeds=(0, 1, 2), store=store, **FAST)
    status = {r.config["seed"]: (r.status, r.reason) for r in store.list()}
    assert status[0] == ("finished", None) and store.load(first.id).audit == first.audit
    assert status[1] == status[2] == ("failed", "the loss is not finite; try a smaller learning_rate")


def test_a_refused_config_leaves_no_run(town: Path, tmp_path: Path) -> None:
    graph, store = uge.load(town), RunStore(tmp_path)
    with pytest.raises(ConfigError, match="tpu"):
        uge.train(graph, store=store, epochs=1, device="tpu")
    assert list(store.list()) == []
    first = uge.train(graph, store=store, **FAST)
    with pytest.raises(ConfigError, match="tpu"):
        uge.train(graph, store=store, epochs=3, device="tpu", force=True)
    assert store.load(first.id).status == "finished" and store.load(first.id).audit == first.audit


def test_an_audit_that_was_cut_off_is_made_up_without_training(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import import_module

    graph, store = uge.load(town), RunStore(tmp_path)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runs, "audit_record", stop)
        with pytest.raises(KeyboardInterrupt):
            uge.train(graph, store=store, **FAST)
    assert (store.list()[0].status, store.list()[0].audit) == ("finished", None)
    monkeypatch.setattr(import_module("uge_core.train"), "fit", stop)
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
    audit = uge.audit(z, graph, sensitive=["city"], attackers=("linear",))
    frame = audit.frame()
    assert set(frame["attribute"].dropna()) == {"city"} and "ndcg_at_10" in set(frame["metric"])
    unknown = uge.audit(z, graph, sensitive=["city"], attackers=("linear",), split_seed=None).frame()
    assert unknown.loc[unknown["variant"] == "held-out", "value"].isna().all()
    with pytest.raises(ConfigError, match=r"shape \(199, 4\); allowed: \(200, d\)"):
        uge.audit(z[1:], graph)
    z[3, 1] = np.nan
    with pytest.raises(ConfigError, match="1 values that are not finite"):
        uge.audit(z, graph)
