"""The run store: nothing is lost, nothing is half there, and errors say what to do."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from uge_core.dashboard.jobs.queue import Queue
from uge_core.errors import RunNotFound, StoreError
from uge_core.runs.store import RunStore

ROOT = Path(__file__).resolve().parents[2]
CONFIG = {"method": "none", "lambda": None, "sensitive": [], "backbone": "node2vec", "seed": 0, "split_seed": 0}
DATA = {"name": "town", "fingerprint": "f" * 64, "num_nodes": 3, "num_edges": 2, "source": None}
Z = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store")


def finished(store: RunStore, run_id: str, value: float = 1.0) -> None:
    store.begin(run_id, CONFIG, DATA)
    store.finish(run_id, embedding=Z * value, history={"epoch": [1, 2], "total": [0.5, 0.4]}, seconds=1.0, device="cpu")


def test_a_run_comes_back_as_it_was_stored(store: RunStore) -> None:
    store.begin("a1", CONFIG, DATA)
    assert store.load("a1").status == "running"
    mask = np.array([True, False, True])
    store.finish(
        "a1",
        embedding=Z,
        twin=Z + 1,
        hidden={"city": mask},
        history={"epoch": [1, 2], "total": [0.5, 0.4]},
        diagnostics={"weights": {"mean": np.float32(0.5)}},
        environment={"python": "3"},
        seconds=2.5,
        device="cpu",
    )
    run = store.load("a1")
    assert (run.status, run.seconds, run.device, run.reason) == ("finished", 2.5, "cpu", None)
    assert run.config == CONFIG and run.dataset == DATA
    np.testing.assert_array_equal(run.embedding, Z)
    assert run.embedding.dtype == np.float32
    assert run.twin is not None
    np.testing.assert_array_equal(run.twin, Z + 1)
    np.testing.assert_array_equal(run.hidden["city"], mask)
    assert run.history["total"].tolist() == [0.5, 0.4]
    assert run.diagnostics["weights"]["mean"] == 0.5
    assert run.environment == {"python": "3"}
    assert json.loads((run.folder / "config.json").read_text()) == CONFIG


def test_an_audit_is_stored_with_its_copy_for_people(store: RunStore) -> None:
    finished(store, "a1")
    store.save_audit("a1", {"schema": "uge-audit/1", "rows": [{"metric": "auc", "value": 0.5}]})
    run = store.load("a1")
    assert run.audited and run.audit is not None
    assert run.audit == json.loads((run.folder / "audit.json").read_text())
    assert run.frame()["value"].tolist() == [0.5]
    (run.folder / "audit.json").unlink()
    assert not store.load("a1").audited and store.load("a1").audit is None
    with pytest.raises(RunNotFound):
        store.save_audit("b2", {})


def test_lists_read_the_leading_rows_or_some_runs_alone(store: RunStore) -> None:
    def row(metric: str, attacker: str | None, attribute: str | None = "city") -> dict[str, object]:
        return {"metric": metric, "attribute": attribute, "attacker": attacker, "value": 0.5, "cells": [{"n": 1}]}

    rows = [
        row("auc", "linear"),
        row("auc", "worst"),
        row("auc", "linear", "age"),
        row("usable_bits", "worst"),
        row("dp", None),
        row("ndcg_at_10", None, None),
    ]
    for run_id in ("a1", "b2"):
        finished(store, run_id)
    store.save_audit("a1", {"rows": rows})
    b2, a1 = store.list(audits="lead")
    # The strongest attacker's, all where there is no strongest, and link quality.
    assert [(r["metric"], r["attacker"], r["attribute"]) for r in a1.rows] == [
        ("auc", "worst", "city"),
        ("auc", "linear", "age"),
        ("ndcg_at_10", None, None),
    ]
    assert a1.audit == {"rows": rows} and not b2.rows and not b2.audited
    assert [len(r.rows) for r in store.list()] == [0, 6] and [len(r.rows) for r in store.list(audits=False)] == [0, 0]
    assert [r.id for r in store.list(only=["a1", "none"])] == ["a1"] and store.list(only=[]) == []
    finished(store, "a1")  # trained again: what was said of the embedding before is gone
    assert not store.list(audits="lead", only=["a1"])[0].rows


def test_leading_rows_of_another_list_of_metrics_are_read_from_the_audit_and_set_apart_anew(store: RunStore) -> None:
    def lead(run_id: str) -> str:
        with store.reading() as db:
            assert db
            return str(db.execute("SELECT lead FROM runs WHERE id = ?", (run_id,)).fetchone()[0])

    rows = [{"metric": m, "attribute": "city", "attacker": "worst", "value": 0.5} for m in ("auc", "usable_bits")]
    for run_id in ("a1", "b2"):
        finished(store, run_id)
        store.save_audit(run_id, {"rows": rows})
    fresh = lead("a1")
    for stale in (None, '{"rows": []}', '{"metrics": ["ndkl"], "rows": []}'):
        with store.writing() as db:
            db.execute("UPDATE runs SET lead = ? WHERE id = 'a1'", (stale,))
        for run in store.list(audits="lead"):
            assert [r["metric"] for r in run.rows] == ["auc"]
        store.save_audit("b2", {"rows": rows})
        assert lead("a1") == fresh


def test_training_again_drops_the_old_result_only_when_the_new_one_is_complete(store: RunStore) -> None:
    finished(store, "a1", 1.0)
    store.save_audit("a1", {"rows": []})
    store.begin("a1", CONFIG, DATA)
    store.interrupt("a1")
    run = store.load("a1")
    assert run.status == "finished" and run.audit == {"rows": []}
    np.testing.assert_array_equal(run.embedding, Z)
    finished(store, "a1", 2.0)
    run = store.load("a1")
    assert run.audit is None
    np.testing.assert_array_equal(run.embedding, 2 * Z)
    assert [p.name for p in (store.root / "runs").iterdir()] == ["a1"]


def test_failure_and_interruption_keep_their_reason(store: RunStore) -> None:
    for run_id in ("a1", "b2"):
        store.begin(run_id, CONFIG, DATA)
    store.fail("a1", "the loss is not finite")
    store.interrupt("b2")
    assert (store.load("a1").status, store.load("a1").reason) == ("failed", "the loss is not finite")
    assert store.load("b2").status == "interrupted"
    with pytest.raises(StoreError, match="train it again"):
        _ = store.load("a1").embedding


def test_a_killed_process_leaves_an_interrupted_run_and_intact_ones(store: RunStore) -> None:
    finished(store, "a1")
    code = (
        "import sys, time; from uge_core.runs.store import RunStore; s = RunStore(sys.argv[1]);"
        f"[s.begin(i, {CONFIG!r}, {DATA!r}) for i in ('a1', 'b2')]; print('begun', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(store.root)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    assert store.load("b2").status == "running"
    with pytest.raises(StoreError, match=f"by process {process.pid}"):
        store.begin("b2", CONFIG, DATA)
    with pytest.raises(StoreError, match="stop it before"):
        store.delete("b2")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert store.load("b2").status == "interrupted"
    assert "ended without a word" in (store.load("b2").reason or "")
    assert store.load("a1").status == "finished"
    np.testing.assert_array_equal(store.load("a1").embedding, Z)
    store.begin("b2", CONFIG, DATA)
    assert store.load("b2").status == "running"


def test_a_pid_used_again_is_not_taken_for_the_trainer(store: RunStore) -> None:
    store.begin("a1", CONFIG, DATA)
    with store.writing() as db:
        db.execute("UPDATE runs SET born = 'another time'")
    assert store.load("a1").status == "interrupted"


def test_an_unknown_run_names_the_nearest(store: RunStore) -> None:
    with pytest.raises(RunNotFound, match="has no runs"):
        store.load("a1b2c3")
    finished(store, "a1b2c3d4e5f6")
    with pytest.raises(RunNotFound, match="nearest: a1b2c3d4e5f6"):
        store.load("a1b2c")
    with pytest.raises(RunNotFound, match="nearest: a1b2c3d4e5f6"):
        store.load("a1b2c3d4e5f7")
    assert store.find("zz") is None


def test_delete_says_what_was_removed(store: RunStore) -> None:
    finished(store, "a1")
    finished(store, "b2")
    store.save_audit("a1", {"rows": []})
    removed = store.delete("a1")
    assert "run a1 (finished)" in removed[0] and "with its audit" in removed[0]
    assert any(line.endswith("embedding.npy") for line in removed)
    assert [run.id for run in store.list()] == ["b2"]
    assert [p.name for p in (store.root / "runs").iterdir()] == ["b2"]


def test_reading_makes_nothing_and_the_folder_is_private(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "none")
    assert list(store.list()) == [] and dict(store.floors) == {}
    assert not store.root.exists()
    finished(store, "a1")
    assert store.root.stat().st_mode & 0o777 == 0o700
    assert (store.root / "runs").stat().st_mode & 0o777 == 0o700


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/store cannot be written: .*--store DIR"):
        RunStore(tmp_path / "file" / "store").begin("a1", CONFIG, DATA)
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "store.sqlite").write_text("not a database" * 100)
    for act in (lambda s: s.list(), lambda s: s.begin("a1", CONFIG, DATA)):
        with pytest.raises(
            StoreError, match=r"not a database; .*store.sqlite is damaged or no run store: move it away"
        ):
            act(RunStore(tmp_path / "junk"))


@pytest.mark.parametrize(("version", "said"), [(99, "newer version .*update uge_core"), (4, "older version .*open it")])
def test_a_store_of_another_format_is_refused_and_left_as_it_is(store: RunStore, version: int, said: str) -> None:
    finished(store, "a1")
    path = store.root / "store.sqlite"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {version}")
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    before = path.read_bytes()
    acts: tuple[Callable[[], object], ...] = (
        store.list,
        lambda: store.load("a1"),
        lambda: store.begin("b2", CONFIG, DATA),
        store.timings,
        lambda: Queue(store).list(),
        lambda: Queue(store).add({"device": "cpu"}),
    )
    for act in acts:
        with pytest.raises(StoreError, match=rf"{said}.* or name another store with --store"):
            act()
    assert path.read_bytes() == before and not path.with_name("store.sqlite-wal").exists()


def test_floors_are_a_mapping_that_stays(store: RunStore) -> None:
    store.floors["auc linear"] = {"value": 0.5}
    store.floors["auc linear"] = {"value": 0.25}
    assert dict(RunStore(store.root).floors) == {"auc linear": {"value": 0.25}}
    del store.floors["auc linear"]
    with pytest.raises(KeyError):
        _ = store.floors["auc linear"]
    with pytest.raises(KeyError):
        del store.floors["auc linear"]


@pytest.mark.parametrize("_", range(10))
def test_threads_write_at_the_same_time(store: RunStore, _: int) -> None:
    """Into a store that is not there yet: SQLite refuses, and does not wait, where two switch to its log at once."""
    workers = [threading.Thread(target=finished, args=(store, f"run{i}")) for i in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert sorted(run.id for run in store.list()) == [f"run{i}" for i in range(8)]
    assert all(run.status == "finished" for run in store.list())


def test_the_default_place_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "x"))
    assert RunStore().root == tmp_path / "x"
    monkeypatch.delenv("UGE_STORE")
    assert RunStore().root == Path("uge-store")


def test_lists_leave_the_cells_of_audits_alone(store: RunStore) -> None:
    cells = [{"a": f"group {i}", "b": f"group {i + 1}", "value": 0.123456789, "n": 1234} for i in range(14_000)]
    rows = [{"metric": "dp", "attribute": "age", "value": 0.5, "cells": cells}] + 40 * [{"metric": "auc", "cells": []}]
    for i in range(4):
        finished(store, f"run{i}")
        store.save_audit(f"run{i}", {"schema": "uge-audit/1", "rows": rows})
    whole = store.load("run0").folder / "audit.json"
    assert whole.stat().st_size > 1e6
    content = whole.read_bytes()
    whole.write_bytes(b"not read")
    runs = store.list()
    whole.write_bytes(content)
    assert all(r.audited and len(r.rows) == 41 and r.rows[0]["cells"] == [] for r in runs)
    assert runs[0].audit is not None and runs[0].audit["rows"] == rows
    assert all(r.audited and r.rows == () for r in store.list(audits=False))


@pytest.mark.parametrize("name", ["file", "names", "masks", "a b/c", "x+y", "ä"])
def test_an_attribute_may_have_any_name(store: RunStore, name: str) -> None:
    store.begin("a1", CONFIG, DATA)
    masks = {name: np.array([True, False, True]), "other": np.zeros(3, dtype=bool)}
    store.finish("a1", embedding=Z, hidden=masks)
    found = store.load("a1").hidden
    assert list(found) == [name, "other"]
    for key, mask in masks.items():
        np.testing.assert_array_equal(found[key], mask)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def fill(path: Path) -> None:
    path.write_bytes(b"\x00\x01 junk" * 30)


@pytest.mark.parametrize("harm", [cut, fill, lambda path: path.write_bytes(b""), Path.unlink])
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("embedding.npy", "embedding"),
        ("twin.npy", "twin"),
        ("hidden.npz", "hidden"),
        ("diagnostics.json", "diagnostics"),
        ("environment.json", "environment"),
    ],
)
def test_a_damaged_file_is_named(store: RunStore, name: str, field: str, harm: Callable[[Path], None]) -> None:
    store.begin("a1", CONFIG | {"exposure": "both"}, DATA)
    store.finish("a1", embedding=Z, twin=Z, hidden={"city": np.ones(3, dtype=bool)})
    run = store.load("a1")
    run.check()
    harm(run.folder / name)
    with pytest.raises(StoreError) as error:
        getattr(store.load("a1"), field)
    text = str(error.value)
    assert name in text and "a1" in text and "train it again with --force" in text and "pickle" not in text


def test_an_array_of_another_shape_is_not_the_runs(store: RunStore) -> None:
    store.begin("a1", CONFIG | {"dim": 2}, DATA)
    store.finish("a1", embedding=Z)
    store.load("a1").check()
    for other in (Z[:2], Z[:, :1], Z.ravel()):
        np.save(store.load("a1").folder / "embedding.npy", other)
        store.adopt("a1")
        with pytest.raises(StoreError, match=r"the run has 3 nodes and 2 dimensions.*train it again"):
            store.load("a1").check()


@pytest.mark.parametrize("column", ["config", "dataset", "audit"])
@pytest.mark.parametrize("text", ["{", "null", "[]", "{}"])
def test_a_damaged_row_hides_no_other(store: RunStore, column: str, text: str) -> None:
    for run_id in ("a1", "b2"):
        finished(store, run_id)
        store.save_audit(run_id, {"rows": []})
    with sqlite3.connect(store.root / "store.sqlite") as db:
        db.execute(f"UPDATE runs SET {column} = ? WHERE id = 'a1'", (text,))
    db.close()
    assert {run.id: run.status for run in store.list()} == {"a1": "damaged", "b2": "finished"}
    what = "audit" if column == "audit" else "record"
    with pytest.raises(StoreError, match=f"its {what} in store.sqlite differs from the SHA-256"):
        store.load("a1")
    store.delete("a1")
    assert [run.id for run in store.list()] == ["b2"]


@pytest.mark.parametrize("gone", [lambda path: path.write_bytes(b""), Path.unlink])
def test_a_lost_list_of_runs_is_not_an_empty_store(store: RunStore, gone: Callable[[Path], None]) -> None:
    finished(store, "a1")
    for leftover in store.root.glob("store.sqlite-*"):
        leftover.unlink()
    gone(store.root / "store.sqlite")
    for act in (lambda: store.list(), lambda: store.load("a1"), lambda: store.begin("b2", CONFIG, DATA)):
        with pytest.raises(StoreError, match="their list, is empty or gone"):
            act()


def test_a_root_that_is_no_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = RunStore(tmp_path / "file")
    for act in (lambda: store.list(), lambda: store.load("a1"), lambda: store.begin("a1", CONFIG, DATA)):
        with pytest.raises(StoreError, match=r"cannot be (read|written)"):
            act()
    with pytest.raises(StoreError, match="cannot be read"):
        RunStore(tmp_path / ("x" * 300)).list()


def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_a_killed_process_left_goes_with_the_run_and_is_said(store: RunStore) -> None:
    runs, pid = store.root / "runs", dead()
    finished(store, "a1")
    for kind in ("new", "old"):
        (runs / f".a1.{pid}.{kind}").mkdir()
    (runs / ".a1.1.new").mkdir()
    assert store.begin("a1", CONFIG, DATA) == [str(runs / f".a1.{pid}.{kind}") for kind in ("new", "old")]
    assert sorted(p.name for p in runs.iterdir()) == [".a1.1.new", "a1"]
    store.interrupt("a1")
    assert str(runs / ".a1.1.new") in store.delete("a1")
    assert list(runs.iterdir()) == []


def test_an_archived_run_is_named_by_its_id_and_comes_back_when_it_is_asked_for_again(store: RunStore) -> None:
    for name in ("a1", "b2"):
        finished(store, name)
    store.archive(["a1"])
    assert [run.id for run in store.list()] == ["b2"]
    assert {run.id for run in store.list(archived=True)} == {"a1", "b2"}
    assert [run.id for run in store.list(only=["a1"])] == ["a1"] and store.load("a1").archived
    np.testing.assert_array_equal(store.load("a1").embedding, Z)
    store.refresh("a1", DATA)
    assert len(store.list()) == 2
    store.archive(["a1", "b2"])
    finished(store, "b2")
    assert [run.id for run in store.list()] == ["b2"]
    store.archive(["a1"], undo=True)
    assert len(store.list()) == 2
    with pytest.raises(RunNotFound):
        store.archive(["b2", "zz"])
    assert len(store.list()) == 2
    store.begin("c3", CONFIG, DATA)
    with pytest.raises(StoreError, match="is being trained"):
        store.archive(["c3"])


def test_a_store_where_nothing_can_be_written_is_read(seeded: Path) -> None:
    place = Path(tempfile.mkdtemp())
    shutil.copytree(seeded, place / "store")
    Queue(RunStore(place / "store")).add({"device": "cpu"})  # which nobody there can work off
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    code = (
        "import os, sys; import uge_core.dashboard as ui; from uge_core.runs.store import RunStore; store = "
        "RunStore(sys.argv[1]);"
        "ui.queue_words, ui.keep_queue_going, ui.overview; store.list();"
        # modules are loaded by another store, as others may not read a checkout in a private folder
        "ui.overview(RunStore(sys.argv[2])); ui.queue_words(RunStore(sys.argv[2]));"
        "os.geteuid() or (os.setgid(65534), os.setuid(65534));"  # root may write anywhere
        "assert not os.access(store.root, os.W_OK);"
        "ui.keep_queue_going(store);"
        "print(len(store.list()), len(store.list()[0].audit['rows']) > 0, ui.queue_words(store), "
        "len(ui.overview(store).table) > 0)"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, str(place / "store"), str(seeded)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
    finally:
        for path in (place, *place.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(place)
    assert done.stdout.split("\n")[0] == "4 True 1 queued True", done.stderr


def test_an_audit_that_is_no_json_is_said(store: RunStore) -> None:
    finished(store, "a1")
    store.save_audit("a1", {"rows": []})
    (store.load("a1").folder / "audit.json").write_text('{"rows": [NaN]}')
    with pytest.raises(StoreError, match=r"audit.json of run a1 differs from the SHA-256.*uge audit a1"):
        _ = store.load("a1").audit
    store.adopt("a1")
    with pytest.raises(StoreError, match=r"audit.json of run a1 cannot be read \(holds NaN"):
        _ = store.load("a1").audit
