"""What is stored stays as it was written, or is named: kills, full disks, damage, power failures, a clock that is set back.

A handful of the trials of tests/campaigns, which holds many more.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.campaigns import damage, disks, operations
from tests.campaigns._harness import ROWS, VECTORS, ended, fork, train
from uge_core.cli import main as cli
from uge_core.cli.purge import age, older_than
from uge_core.dashboard.jobs.queue import Queue
from uge_core.errors import StoreError
from uge_core.explore.whatif.scenario import Scenarios
from uge_core.files import sealed, temporary_folder, unsealed, write_atomically
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.processes import run_bound
from uge_core.runs.disclosure import Release, note_told, told_before
from uge_core.runs.sample_audit import first_start
from uge_core.runs.store import RunStore

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "store")
    train(store, "a1")
    return store


def harm_audit(store: RunStore) -> str:
    path = store.root / "runs" / "a1" / "audit.json"
    path.write_text(path.read_text().replace("0.5", "0.4"))
    return "audit.json"


def harm_vectors(store: RunStore) -> str:
    path = store.root / "runs" / "a1" / "embedding.npy"
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    return "embedding.npy"


def harm_list(store: RunStore) -> str:
    with sqlite3.connect(store.root / "store.sqlite") as db:
        db.execute("UPDATE runs SET audit = replace(audit, '0.5', '0.4'), lead = replace(lead, '0.5', '0.4')")
    db.close()
    return "its audit in store.sqlite"


@pytest.mark.parametrize("harm", [harm_audit, harm_vectors, harm_list])
def test_a_changed_number_is_named_and_not_shown(
    store: RunStore, harm: Callable[[RunStore], str], capsys: pytest.CaptureFixture[str]
) -> None:
    named = harm(store)
    with pytest.raises(StoreError, match=named) as error:
        run = store.load("a1")
        _ = run.audit, run.embedding
    assert "uge audit a1" in str(error.value) or "--force" in str(error.value)
    assert any(named in fault for fault in store.faults())
    assert cli.run(["doctor", "--check", "--json", "--store", str(store.root)]) == 1
    checks = json.loads(capsys.readouterr().out)
    assert any(named in check["found"] for check in checks if check["name"] == "store's content")
    train(store, "a1")
    assert not list(store.faults()) and store.load("a1").audit == ROWS


def test_a_row_that_was_changed_by_others_stays_so_when_it_is_written_again(store: RunStore) -> None:
    with sqlite3.connect(store.root / "store.sqlite") as db:
        db.execute("UPDATE runs SET seconds = 2.0")
    db.close()
    store.archive(["a1"])
    assert [run.status for run in store.list(archived=True)] == ["damaged"]


def test_a_store_of_the_format_before_is_brought_up_when_it_is_opened(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "store")
    operations.format_5(store)
    runs = store.list()
    assert {run.id for run in runs} == {"a1", "b2"} and not list(store.faults())
    for run in runs:
        assert run.audit == ROWS and len(run.sums) == 9
        np.testing.assert_array_equal(run.embedding, VECTORS)
    assert Scenarios(store).list()
    harm_vectors(store)
    with pytest.raises(StoreError, match=r"embedding\.npy"):
        _ = store.load("a1").embedding


def test_a_store_of_the_format_before_that_may_not_be_written_says_what_to_do(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "store")
    operations.format_5(store)
    store.root.chmod(0o500)
    assert "open it, or a copy, where you may write" in disks.said(_as_nobody(lambda s: s.list()), store.root)
    store.root.chmod(0o700)


def _as_nobody(act: Callable[[RunStore], object]) -> Callable[[RunStore], object]:
    def acting(store: RunStore) -> object:
        if os.geteuid() == 0:
            for path in (store.root, *store.root.parents):
                if path.stat().st_uid == 0 and str(path).startswith("/tmp/"):
                    path.chmod(0o555)
            for path in store.root.glob("*"):
                path.chmod(0o555 if path.is_dir() else 0o444)
            os.setgid(65534)
            os.setuid(65534)
        return act(store)

    return acting


@pytest.mark.parametrize(
    "action", [a for a in operations.ACTIONS if a.name in ("train again", "audit again", "delete")]
)
def test_a_kill_before_any_change_and_a_power_failure_lose_nothing(action: operations.Action, tmp_path: Path) -> None:
    tried = list(operations.trials(action, tmp_path, 4))
    assert len(tried) == 5 and not [trial for trial in tried if trial[1]]


def test_what_a_killed_deletion_left_is_in_no_list_and_goes(store: RunStore) -> None:
    def delete_and_die() -> None:
        store._complete = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign,assignment,return-value]
        store.delete("a1")

    assert ended(fork(delete_and_die)) == -signal.SIGKILL
    assert store.list() == [] and store.find("a1") is None and (store.root / "runs" / "a1").exists()
    assert any(line.endswith("embedding.npy") for line in store.tidy())
    assert not list((store.root / "runs").iterdir())


@pytest.mark.skipif(not disks.may_mount(), reason="file systems may not be mounted here")
@pytest.mark.parametrize("left", [0, 12_000, 60_000])
def test_a_full_disk_is_said_and_training_again_is_done_or_not(left: int) -> None:
    assert disks._full("train again", left) is None


def test_where_files_may_not_grow_nothing_is_lost() -> None:
    assert disks._limited("train again", 40_000) is None


@pytest.mark.parametrize("killed", [False, True])
def test_a_store_that_is_only_read_is_read_with_what_a_killed_process_left(killed: bool) -> None:
    assert disks._read_only("mode without index", killed) is None


@pytest.mark.slow
def test_every_kind_of_damage_is_named() -> None:
    tried = list(damage.run(1, quick=False))
    assert len(tried) > 100 and not [trial for trial in tried if trial[1]]


def test_a_sealed_record_that_was_changed_is_none(tmp_path: Path) -> None:
    record = {"a": [0.1, None, "ä", 2**70], "b": {"c": "\ud800"}}
    assert unsealed(sealed(record)) == record
    with pytest.raises(ValueError, match="SHA-256"):
        unsealed(sealed(record).replace(b"0.1", b"0.2"))
    with pytest.raises(ValueError, match="SHA-256"):
        unsealed(json.dumps(record).encode())
    path = tmp_path / "record.json"
    write_atomically(path, lambda file: file.write(sealed(record)))
    assert path.stat().st_mode & 0o777 == 0o600 and [p.name for p in tmp_path.iterdir()] == ["record.json"]


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_keeps_no_job_running_and_none_waiting(store: RunStore, hours: int) -> None:
    """The clock is set for a process of its own, as that of the machine is not ours."""
    queue = Queue(store)
    first, _ = (queue.add({"device": "cpu", "n": n}) for n in range(2))
    assert ended(fork(lambda: queue.claim("cpu"))) == 0
    with store.writing() as db:
        db.execute("UPDATE jobs SET beat = beat - 31 WHERE id = ?", (first,))
    note = store.root / "jobs" / "worker-cpu.pid"
    assert ended(fork(lambda: queue.worker("cpu").enter())) == 0
    note.write_text(note.read_text().rpartition(":")[0] + ":0")
    os.utime(note, (time.time() + 3600, time.time() + 3600))
    code = (
        "import sys, time; real = time.time; time.time = lambda: real() + 3600 * float(sys.argv[2])\n"
        "from uge_core.dashboard.jobs.queue import Queue; from uge_core.runs.store import RunStore\n"
        "from uge_core.processes import Background\n"
        "Background.start = lambda self, command, real=Background.start, **o: print(real(self, ['--help'], **o))\n"
        "queue = Queue(RunStore(sys.argv[1])); queue.supervise(); print(*(job.status for job in queue.list()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(store.root), str(hours)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.split() == ["True", "queued", "interrupted"]


def test_a_cancelling_is_not_forgotten_when_the_machine_starts_again(store: RunStore) -> None:
    queue = Queue(store)
    job_id = queue.add({"device": "cpu"})
    queue.claim("cpu")
    with store.writing() as db:
        db.execute("UPDATE jobs SET boot = 'another', beat = 1e9")
    assert queue.load(job_id).quiet == float("inf")
    queue.supervise()
    assert queue.load(job_id).status == "interrupted"


def test_a_dangling_link_and_what_lies_beside_the_store_are_purged(store: RunStore) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    link, beside = store.root / "uploads" / "link", store.root.parent / f".store.abcd1234.{gone.pid}"
    link.parent.mkdir()
    link.symlink_to(store.root / "nowhere")
    (beside / "store").mkdir(parents=True)
    for old in older_than(age("0d"), store):
        old.remove()
    assert not link.is_symlink() and not beside.exists()


def test_a_killed_first_start_leaves_nothing_for_long(tmp_path: Path) -> None:
    def start_and_die() -> None:
        Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign,assignment,return-value]
        first_start(RunStore(tmp_path / "store"))

    assert ended(fork(start_and_die)) == -signal.SIGKILL
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".store.")]
    assert first_start(RunStore(tmp_path / "store")) and [p.name for p in tmp_path.iterdir()] == ["store"]
    assert not list(RunStore(tmp_path / "store").faults())


def test_a_program_ends_with_who_asked_and_its_folder_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run_bound(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout=60).stdout == "out\n"
    with pytest.raises(subprocess.TimeoutExpired):
        run_bound(["sleep", "60"], timeout=0.2)

    def print_and_die() -> None:
        with temporary_folder() as folder:
            run_bound(["sh", "-c", f"echo $$ > {folder}/pid; exec sleep 60"], timeout=60)

    pid = fork(print_and_die)
    until = time.monotonic() + 30
    while not (notes := [p for p in tmp_path.glob(".uge-*/pid") if p.read_text().strip()]):
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    ended(pid)
    program = int(notes[0].read_text())
    while Path(f"/proc/{program}").exists() and "Z" not in Path(f"/proc/{program}/stat").read_text().split()[2]:
        assert time.monotonic() < until
        time.sleep(0.01)
    with temporary_folder() as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_commands_write_files_for_their_user_alone(seeded: Path, tmp_path: Path) -> None:
    run_id, out = RunStore(seeded).list()[0].id, tmp_path / "report.json"
    out.write_text("")
    out.chmod(0o644)
    before = os.umask(0o022)
    try:
        assert cli.run(["report", run_id, "--out", str(out), "--format", "json", "--store", str(seeded)]) == 0
        assert cli.run(["runs", "export", run_id, "--out", str(tmp_path / "out"), "--store", str(seeded)]) == 0
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (out, *(tmp_path / "out").iterdir())} == {0o600}


def test_a_damaged_audit_is_measured_again(
    plain_town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = RunStore(tmp_path / "store")
    where = ["--store", str(store.root)]
    assert cli.run(["train", str(plain_town), "--epochs", "2", "--device", "cpu", *where]) in (0, 3)
    (run,) = store.list()
    before = (run.folder / "audit.json").read_bytes()
    (run.folder / "audit.json").write_bytes(before.replace(b"0.", b"0.1", 1))
    for refused in (["runs", "show", run.id], ["report", run.id, "--out", str(tmp_path / "report.json")]):
        assert cli.run([*refused, *where]) == 2
        assert "audit.json" in capsys.readouterr().err
    assert cli.run(["audit", run.id, *where]) in (0, 3)
    assert f"measure it again with uge audit {run.id}" in capsys.readouterr().err
    assert (store.load(run.id).audit or {})["rows"] == json.loads(before)["rows"] and not list(store.faults())


def test_the_ledger_of_what_was_told_outlives_runs_and_disturbs_nothing(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "store")
    codes = np.repeat([0, 1], 20)
    edges = np.stack([np.arange(39), np.arange(1, 40)])
    graph = AttributedGraph("made", 40, edges, (Attribute("x", codes, ("a", "b")),))
    for run_id in ("a1", "b2"):
        train(store, run_id)
    note_told(store, graph, {"x": "level"}, Release())
    before = told_before(store, graph)["x"]
    assert before and not list(store.faults())
    store.archive(["a1"])
    assert not list(store.faults()) and store.load("a1").archived  # rows are still sealed beside it
    store.delete("a1")
    assert cli.run(["store", "purge", "--older-than", "0d", "--store", str(store.root)]) == 0
    assert cli.run(["doctor", "--check", "--store", str(store.root)]) == 0
    assert not store.list(archived=True) and told_before(store, graph)["x"] == before
