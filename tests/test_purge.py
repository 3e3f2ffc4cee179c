"""`uge store purge`: what is old goes, says so, and nothing else goes."""

import io
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

import uge_core as uge
from uge_core import cli
from uge_core.errors import ConfigError
from uge_core.purge import age, older_than
from uge_core.store import birth
from uge_core.uploads import list_uploads, save_upload
from uge_core.whatif.edits import MergeValues
from uge_core.whatif.scenario import Scenario, Scenarios


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
    for what in ("run ", "upload mine", "scenario together", "job 1 (finished)", "checkpoint left.npz"):
        assert what in listed
    assert "job 2" not in listed and len(store.list()) == 4  # nothing was removed yet
    assert cli.run([*command, "0d"]) == 0
    said = capsys.readouterr().out
    assert "embedding.npy" in said and "edges.csv" in said
    assert not store.list() and not list_uploads(store) and not Scenarios(store).list()
    assert not list(store.checkpoints.iterdir())
    with store.reading() as db:
        assert db is not None and [row["status"] for row in db.execute("SELECT status FROM jobs")] == ["queued"]
    assert not [p for p in (store_copy / "runs").rglob("*") if p.is_file()]


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
