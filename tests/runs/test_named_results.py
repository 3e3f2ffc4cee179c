"""What a run's row names stays, whatever fails after COMMIT; what it does not name goes, whatever is damaged beside it."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.campaigns._harness import ROWS, VECTORS, ended, fork, train
from uge_core.audit.metrics import METRICS
from uge_core.cli.purge import age, older_than
from uge_core.dashboard.jobs.queue import Queue
from uge_core.errors import StoreError
from uge_core.files import abandoned, remove_abandoned, write_atomically
from uge_core.machine import birth
from uge_core.runs import database
from uge_core.runs import store as stores
from uge_core.runs.database import dumps, text_sum
from uge_core.runs.store import RunStore


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store")


def change(store: RunStore, query: str, *values: object) -> None:
    """Changes rows as no connection of ours does."""
    with closing(sqlite3.connect(store.root / "store.sqlite")) as db, db:
        db.execute(query, values)


def unsettled(store: RunStore) -> None:
    """A process that dies right after the COMMIT of a result, and one that dies after that of an audit."""

    def train_and_die() -> None:
        store._settle = lambda _: os._exit(9)  # type: ignore[method-assign,assignment]
        train(store, "a1", audited=False)

    def audit_and_die() -> None:
        store._settle = lambda _: os._exit(9)  # type: ignore[method-assign,assignment]
        store.save_audit("a1", ROWS)

    assert ended(fork(train_and_die)) == ended(fork(audit_and_die)) == 9


@pytest.mark.parametrize("how", ["tidy", "purge"])
def test_a_result_that_cannot_get_its_place_is_not_removed(
    how: str, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsettled(store)
    (left,) = (store.root / "runs").glob(".a1.*.new")
    assert abandoned(left)
    if how == "tidy":
        with monkeypatch.context() as stuck:
            stuck.setattr(RunStore, "_settle", lambda *_: ())  # as where the lock is held, or a rename fails
            store.tidy()
    else:
        for old in older_than(age("0d"), store):
            if old.what.startswith("leftover"):
                old.remove()
    np.testing.assert_array_equal(store.load("a1").embedding, VECTORS)
    store.tidy()
    assert store.load("a1").audit == ROWS and [p.name for p in (store.root / "runs").iterdir()] == ["a1"]


def test_a_leftover_that_a_row_names_by_now_stays(store: RunStore) -> None:
    unsettled(store)
    named = list((store.root / "runs").glob(".a1.*.new"))
    assert store.discard(named) == [] and store.leftovers() == []
    change(store, "UPDATE runs SET result = 'another'")
    assert store.discard(store.leftovers()) == list(map(str, named)) and not named[0].exists()


@pytest.mark.parametrize("what", ["result", "audit"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "Input/output error")])
def test_what_fails_after_commit_takes_nothing_of_it(
    what: str, error: BaseException, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(store, "a1")
    connect, done = sqlite3.connect, list[int]()

    class Closing(sqlite3.Connection):
        def close(self) -> None:
            super().close()
            if not done and any("sums" in said for said in self.__dict__.get("said", ())):
                done.append(1)
                raise error

        def execute(self, query: str, *values: object) -> sqlite3.Cursor:
            self.__dict__.setdefault("said", []).append(query if query.startswith("UPDATE") else "")
            return super().execute(query, *values)  # type: ignore[arg-type]

    again = ROWS | {"rows": [{**ROWS["rows"][0], "value": 0.75}]}  # type: ignore[dict-item]
    with monkeypatch.context() as broken:
        broken.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, factory=Closing, **o))
        with pytest.raises((KeyboardInterrupt, StoreError)):
            train(store, "a1", 2.0, audited=False) if what == "result" else store.save_audit("a1", again)
    assert done and not list(store.faults())
    run = store.load("a1")
    np.testing.assert_array_equal(run.embedding, VECTORS * (2 if what == "result" else 1))
    assert what == "result" or run.audit == again
    assert sorted(p.name for p in (store.root / "runs").rglob(".*")) == []


def test_a_write_that_the_lock_refuses_leaves_no_file(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "PATIENCE", 0.05)
    train(store, "a1")
    with (
        closing(sqlite3.connect(store.root / "store.sqlite", isolation_level=None)) as other,
        pytest.raises(StoreError, match="another process is using it"),
    ):
        store.begin("a1", store.load("a1").config, store.load("a1").dataset)
        other.execute("BEGIN IMMEDIATE")
        store.finish("a1", embedding=VECTORS)
    assert [p.name for p in (store.root / "runs").iterdir()] == ["a1"]


def test_damaged_records_stop_no_deletion(store: RunStore) -> None:
    for name in ("a1", "b2", "c3"):
        train(store, name)
    queue = Queue(store)
    job = queue.add({"device": "cpu", "scenario": {"edits": ["of Ann"]}})
    change(store, "UPDATE jobs SET settings = '{oops Ann'")
    change(store, "UPDATE runs SET sums = '{oops' WHERE id = 'b2'")
    store.forget_edits(lambda made: True)
    with store.reading() as db:
        assert db is not None and db.execute("SELECT settings FROM jobs").fetchone()[0] == "{}"
    assert queue.load(job).status == "failed"
    store._settle("b2")
    store.save_audit("b2", ROWS)
    for name in ("a1", "b2"):
        assert store._load(name).status == ("damaged" if name == "b2" else "finished")
        store.delete(name)
    change(store, "UPDATE runs SET status = 'deleting'")
    store.tidy()
    assert not list((store.root / "runs").iterdir())


def test_a_run_that_is_begun_while_it_is_asked_for_is_not_deleted(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(store, "a1")
    load = store._load

    def begun(run_id: str) -> object:
        run = load(run_id)
        RunStore(store.root).begin("a1", run.config, run.dataset)
        return run

    monkeypatch.setattr(store, "_load", begun)
    with pytest.raises(StoreError, match="is being trained"):
        store.delete("a1")
    assert (store.root / "runs" / "a1" / "embedding.npy").exists() and load("a1").status == "running"


def test_a_run_is_read_while_its_result_gets_its_place(store: RunStore) -> None:
    unsettled(store)
    run, listed = store.load("a1"), store.list()[0]
    assert run.folder.name.endswith(".new")
    store.tidy()
    np.testing.assert_array_equal(run.embedding, VECTORS)
    assert run.audit == listed.audit == ROWS and not list(run.faults())


def test_a_lead_of_other_metrics_is_no_difference(store: RunStore) -> None:
    train(store, "a1")
    lead = dumps({"metrics": list(METRICS)[:2], "rows": []})
    assert not lead.startswith(database.LEAD_HEAD)
    with store.writing() as db:
        sums = json.loads(db.execute("SELECT sums FROM runs").fetchone()[0]) | {"lead": text_sum(lead)}
        db.execute("UPDATE runs SET lead = ?, sums = ?", (lead, dumps(sums)))
    assert list(store.faults()) == []
    change(store, "UPDATE runs SET lead = lead || ' '")
    assert ["lists show differ" in fault for fault in store.faults()] == [True]


def test_threads_that_write_one_file_do_not_meet(tmp_path: Path) -> None:
    path, failed = tmp_path / "made.json", []

    def write(digit: bytes) -> None:
        for _ in range(25):
            try:
                write_atomically(path, lambda file: [file.write(digit * 1000) for _ in range(20)])
                assert len(set(path.read_bytes())) == 1 and path.stat().st_size == 20_000
            except (OSError, AssertionError) as error:
                failed.append(error)

    threads = [threading.Thread(target=write, args=(b"%d" % i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and [p.name for p in tmp_path.iterdir()] == ["made.json"]


def test_names_that_are_no_temporary_ones_are_left_alone(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert birth(gone.pid) is None
    stays = [".uge-store.bak.20240101", ".uge-store.snapshot.20240101", f".uge-store.bak.{gone.pid}", "uge-store.1"]
    for name in (*stays, f".uge-store.ab_12xyz.{gone.pid}"):
        (tmp_path / name).mkdir()
    assert [p.name for p in remove_abandoned(tmp_path, ".uge-store.")] == [f".uge-store.ab_12xyz.{gone.pid}"]
    assert {p.name for p in tmp_path.iterdir()} == set(stays)
    assert not abandoned(tmp_path / ".audit.json.1234567890123456.new")
