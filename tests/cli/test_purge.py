"""`uge store purge`: what is old goes, says so, and nothing else goes."""

import io
import json
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import uge_core as uge
from uge_core.cli import main as cli
from uge_core.cli.purge import age, older_than
from uge_core.dashboard.jobs.queue import Queue
from uge_core.errors import ConfigError
from uge_core.explore.whatif.edits import FlipValue, MergeValues
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.machine import birth
from uge_core.runs.uploads import list_uploads, save_upload
from uge_core.training.checkpoint import Checkpoint, checkpoints_in


@pytest.mark.parametrize(("text", "days"), [("12h", 0.5), ("30d", 30), ("4w", 28), (" 0D ", 0)])
def test_ages(text: str, days: float) -> None:
    assert age(text) == timedelta(days=days)


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1.5d", "1y", "999999d", "1d2h"])
def test_no_ages(text: str) -> None:
    with pytest.raises(ConfigError, match="such as 12h, 30d or 4w"):
        age(text)


def filled(root: Path) -> uge.RunStore:
    """The store with an upload, a scenario, a job that is over, one that waits, and a checkpoint."""
    store = uge.RunStore(root)
    save_upload("mine", [("edges.csv", io.BytesIO(b"source,target\n1,2\n"))], store)
    data = store.list()[0].dataset["fingerprint"]
    Scenarios(store).save(Scenario(data, (MergeValues("city", ("a", "b"), "ab"),), "together"))
    Scenarios(store).keep_draft("", Scenario(data, (MergeValues("city", ("a", "b"), "ab"),)))
    with store.writing() as db:
        for status in ("finished", "queued"):
            db.execute(
                "INSERT INTO jobs (status, lane, settings, created, ended) VALUES (?, 'cpu', '{}', ?, ?)",
                (status, time.time(), time.time()),
            )
    store.checkpoints.mkdir(exist_ok=True)
    (store.checkpoints / "left.npz").write_bytes(b"")
    return store


def test_everything_old_goes_and_what_waits_stays(store_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = filled(store_copy)
    command = ["store", "purge", "--store", str(store_copy), "--older-than"]
    assert cli.run([*command, "1d"]) == 0 and capsys.readouterr().out == ""  # nothing is a day old
    assert cli.run([*command, "0d", "--dry-run"]) == 0
    listed = capsys.readouterr().out
    for what in (
        "run ",
        "upload mine",
        "scenario together",
        "unsaved edits ",
        "job 1 (finished)",
        "checkpoint left.npz",
    ):
        assert what in listed
    assert "job 2" not in listed and len(store.list()) == 4  # nothing was removed yet
    assert cli.run([*command, "0d"]) == 0
    said = capsys.readouterr().out
    assert "embedding.npy" in said and "edges.csv" in said
    assert not store.list() and not list_uploads(store) and not Scenarios(store).list()
    assert not Scenarios(store).drafts()
    assert not list(store.checkpoints.iterdir())
    with store.reading() as db:
        assert db is not None and [row["status"] for row in db.execute("SELECT status FROM jobs")] == ["queued"]
    assert not [p for p in (store_copy / "runs").rglob("*") if p.is_file()]


def test_what_names_people_goes_though_it_is_damaged(store_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = uge.RunStore(store_copy)
    kept, data = Scenarios(store), store.list()[0].dataset["fingerprint"]
    made = Scenario(data, (FlipValue("city", ("somebody",), "a"),), "flipped")
    saved, token = kept.save(made), kept.keep_draft("", made)
    kept.keep(saved, store.list()[0].id, {"of": "somebody"})
    for path in kept.folder.glob("*.json"):
        path.write_text(path.read_text().replace("somebody", "somebody else"))
    assert not kept.list() and kept.draft(token, data) is None
    command = ["store", "purge", "--store", str(store_copy), "--older-than"]
    assert cli.run([*command, "1d"]) == 0 and len(list(kept.folder.iterdir())) == 2
    capsys.readouterr()
    assert cli.run([*command, "0d", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"unsaved edits {token} (damaged)" in said and f"scenario {saved}.json (damaged)" in said
    for old in older_than(timedelta(0), store):
        if "damaged" in old.what:
            old.remove()
    # What a run said of it goes too; the run stays.
    assert not list(kept.folder.iterdir()) and len(store.list()) == 4
    assert not list((store_copy / "runs").glob("*/whatif/*.json"))


def test_age_counts_from_the_end_of_training_and_a_run_at_work_stays(store_copy: Path) -> None:
    store = uge.RunStore(store_copy)
    first, second, third, _ = (run.id for run in store.list())
    with store.writing() as db:
        db.execute("UPDATE runs SET finished = finished - 864000 WHERE id = ?", (first,))
        db.execute("UPDATE runs SET created = created - 864000 WHERE id = ?", (second,))  # trained long, done just now
        db.execute(
            "UPDATE runs SET finished = finished - 864000, status = 'running', pid = ?, born = ? WHERE id = ?",
            (os.getpid(), birth(os.getpid()), third),
        )
    (old,) = older_than(age("1w"), store)
    assert first in old.what and old.age == pytest.approx(864000, rel=0.01)


def test_what_killed_processes_left_goes_and_what_is_being_written_stays(
    store_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = uge.RunStore(store_copy)
    run = store.list()[0]
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    mark = f"abcd1234.{gone.pid}"
    left = [f"uploads/.new-{mark}/nodes.csv", f"comparisons/.a-b.json.{mark}"]
    left += [f"checkpoints/.k.cold.npz.{mark}", f"tensors/.abc.npz.{mark}"]
    left += [f"runs/{run.id}/.audit.json.{mark}", f"runs/.{run.id}.{mark}.new/embedding.npy"]
    left += [f"runs/.{'f' * 12}.{mark}.deleted/embedding.npy", f"comparisons/{run.id}-{'f' * 12}.json"]
    stays = [f"uploads/.new-abcd1234.{os.getpid()}/nodes.csv", f"checkpoints/.k.cold.npz.abcd1234.{os.getpid()}"]
    stays += [f"runs/.{'e' * 12}.{gone.pid}.old/embedding.npy", f"comparisons/{run.id}-{store.list()[1].id}.json"]
    for name in (*left, *stays):
        (store_copy / name).parent.mkdir(parents=True, exist_ok=True)
        (store_copy / name).write_text("p0123")
    with store.writing() as db:  # too young to go themselves
        db.execute("UPDATE runs SET finished = ?", (time.time() + 3600,))
    assert cli.run(["store", "purge", "--store", str(store_copy), "--older-than", "0d"]) == 0
    said = capsys.readouterr().out
    assert not [name for name in left if (store_copy / name).exists()]
    assert f".new-{mark}" in said and f"comparisons/.a-b.json.{mark}" in said
    assert all((store_copy / name).exists() for name in stays[:3])


def test_the_checkpoint_of_a_run_at_work_or_of_a_job_that_waits_stays(store_copy: Path) -> None:
    store = uge.RunStore(store_copy)
    running, waiting, over, *_ = (run.id for run in store.list())
    for run_id in (running, waiting, over):
        Checkpoint(store.checkpoints, [run_id]).save("cold", {}, {})
    job_id = Queue(store).add({"device": "cpu"})
    with store.writing() as db:
        db.execute("UPDATE jobs SET runs = ? WHERE id = ?", (json.dumps([waiting]), job_id))
        db.execute(
            "UPDATE runs SET status = 'running', pid = ?, born = ? WHERE id = ?",
            (os.getpid(), birth(os.getpid()), running),
        )
    (only,) = [old for old in older_than(age("0d"), store) if old.what.startswith("checkpoint")]
    only.remove()
    assert [record["runs"] for _, record in checkpoints_in(store.checkpoints)] != [[over]]
    assert {r for _, record in checkpoints_in(store.checkpoints) for r in record["runs"]} == {running, waiting}


def test_one_thing_that_cannot_go_does_not_keep_the_others(
    store_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = uge.RunStore(store_copy)
    first, *others = (run.id for run in store.list())
    delete = uge.RunStore.delete

    def meanwhile(self: uge.RunStore, run_id: str) -> Any:
        if run_id == first:
            delete(self, run_id)  # somebody else was quicker
        return delete(self, run_id)

    monkeypatch.setattr(uge.RunStore, "delete", meanwhile)
    assert cli.run(["store", "purge", "--store", str(store_copy), "--older-than", "0d"]) == 2
    out, err = capsys.readouterr()
    assert f"no run '{first}'" in err and all(run_id in out for run_id in others) and not store.list()


def test_an_upload_that_a_job_waits_for_stays(tmp_path: Path) -> None:
    store = uge.RunStore(tmp_path / "store")
    upload = save_upload("mine", [("edges.csv", io.BytesIO(b"source,target\n1,2\n"))], store)
    with store.writing() as db:
        db.execute(
            "INSERT INTO jobs (status, lane, settings, created) VALUES ('queued', 'cpu', ?, ?)",
            (json.dumps({"data": str(upload.folder)}), time.time()),
        )
    assert cli.run(["store", "purge", "--store", str(store.root), "--older-than", "0d"]) == 0
    assert [u.name for u in list_uploads(store)] == ["mine"]
