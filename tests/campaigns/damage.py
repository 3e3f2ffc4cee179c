"""Every kind of stored file is damaged: it is named, and neither shown nor exported."""

from __future__ import annotations

import io
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from tests.campaigns._harness import CONFIG, DATA, VECTORS, place, train
from uge_core.cli import main as cli
from uge_core.dashboard.jobs.queue import Queue
from uge_core.errors import ConfigError, StoreError
from uge_core.explore.whatif.edits import MergeValues
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.files import sealed, write_atomically
from uge_core.runs.database import SEALED
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.runs.timing import timed

FIELDS: dict[str, Callable[[StoredRun], object]] = {
    "embedding.npy": lambda run: run.embedding,
    "twin.npy": lambda run: run.twin,
    "hidden.npz": lambda run: run.hidden,
    "parameters.npz": lambda run: run.parameters,
    "history.csv": lambda run: run.history,
    "diagnostics.json": lambda run: run.diagnostics,
    "environment.json": lambda run: run.environment,
    "audit.json": lambda run: run.audit,
}
SCENARIO = Scenario(DATA["fingerprint"], (MergeValues("city", ("a", "b"), "ab"),), "together")


def filled(root: Path) -> RunStore:
    """A store with something of every kind."""
    store = RunStore(root)
    for run_id in ("a1", "b2"):
        train(store, run_id)
    Scenarios(store).save(SCENARIO)
    Scenarios(store).keep(SCENARIO.id, "a1", {"auc": 0.5})
    store.comparisons.mkdir(exist_ok=True)
    write_atomically(store.comparisons / "a1-b2.json", lambda file: file.write(sealed({"rows": [{"value": 0.5}]})))
    store.floors["auc linear"] = {"value": 0.5}
    with store.writing() as db:
        entry = ("people", "city", '{"a": 0.5}', 0.0)
        db.execute("INSERT INTO told (people, attribute, sizes, at) VALUES (?, ?, ?, ?)", entry)
        db.execute("INSERT INTO notes (run, text, at) VALUES (?, ?, ?)", ("a1", "why", 1.0))
    store.note_timing(timed("train", "f", "cpu", 1.0, 2.0))
    job_id = Queue(store).add({"device": "cpu", "data": "town"})
    with store.writing() as db:
        db.execute("UPDATE jobs SET status = 'finished' WHERE id = ?", (job_id,))
    return store


def flip(path: Path, chance: random.Random) -> None:
    """One bit is another."""
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def cut(path: Path, chance: random.Random) -> None:
    """The end is missing."""
    os.truncate(path, chance.randrange(1, path.stat().st_size))


def empty(path: Path, _: random.Random) -> None:
    """Nothing is left of it."""
    os.truncate(path, 0)


def take(path: Path, _: random.Random) -> None:
    """It is gone."""
    path.unlink()


def swap(path: Path, _: random.Random) -> None:
    """Another whole file of its kind has its place."""
    if path.suffix == ".npy":
        np.save(path, np.load(path) + np.float32(1))
    elif path.suffix == ".npz":
        with np.load(path) as held:
            arrays = {name: held[name] for name in held.files}
        np.savez(
            path, **{name: a if a.dtype.kind == "U" else ~a if a.dtype == bool else a + 1 for name, a in arrays.items()}
        )
    else:
        path.write_text(
            path.read_text().replace("0.5", "0.4").replace("together", "apart").replace("none", "uge-c") + " "
        )
        if path.suffix == ".csv":
            path.write_text(path.read_text().replace("0.4", "0.3"))


HARMS = (flip, cut, empty, take, swap)


def named(root: Path, name: str) -> bool:
    """Whether ``uge doctor --check`` names it."""
    return any(name in fault for fault in RunStore(root).faults())


def _file(root: Path, name: str, chance: random.Random, harm: Callable[[Path, random.Random], None]) -> str | None:
    """A run's file: named, not shown, and the other run is as it was."""
    harm(root / "runs" / "a1" / name, chance)
    store = RunStore(root)
    try:
        run = store.load("a1")
        shown = FIELDS[name](run) if name in FIELDS else None
        if shown is not None:
            return "it is shown"
        if name == "audit.json" and harm is take and "audit.json is gone" not in (run.reason or ""):
            return "its loss is not said"
    except StoreError as error:
        if name not in str(error) or "a1" not in str(error):
            return f"the error does not name it: {error}"
    if name in ("audit.json", "embedding.npy"):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = cli.run(["runs", "show", "a1", "--json", "--store", str(root)]) if name == "audit.json" else 2
            code &= cli.run(["runs", "export", "a1", "--out", str(root / "out"), "--store", str(root)])
        if code == 0 and harm is not take:
            return "it is exported"
    if not (harm is take and name == "audit.json") and not named(root, name):
        return "doctor --check does not name it"
    np.testing.assert_array_equal(store.load("b2").embedding, VECTORS)
    return None


def _beside(root: Path, pattern: str, chance: random.Random, harm: Callable[[Path, random.Random], None]) -> str | None:
    """A record beside the list: not read, and named."""
    (path,) = root.glob(pattern)
    harm(path, chance)
    store = RunStore(root)
    if pattern.startswith("scenarios"):
        if Scenarios(store).list():
            return "it is listed"
        try:
            Scenarios(store).load(SCENARIO.id)
            return "it is shown"
        except (StoreError, ConfigError):
            pass
    elif "whatif" in pattern and Scenarios(store).results(SCENARIO.id, ["a1"]):
        return "it is shown"
    return None if harm is take or named(root, path.name) else "doctor --check does not name it"


def _column(root: Path, table: str, column: str) -> str | None:
    """A cell of a table, changed by whatever is not ours: named, and not shown."""
    with sqlite3.connect(root / "store.sqlite") as db:
        kind = db.execute(f"SELECT typeof({column}) FROM {table}").fetchone()[0]
        other = {"integer": f"{column} + 1", "real": f"{column} + 1", "null": "1"}.get(
            kind, f"replace({column}, '0.5', '0.4')"
        )
        db.execute(
            f"UPDATE {table} SET {column} = {other} || ''"
            if kind == "text"
            else f"UPDATE {table} SET {column} = {other}"
        )
        if kind == "text" and not db.execute(f"SELECT 1 FROM {table} WHERE {column} LIKE '%0.4%'").fetchone():
            db.execute(f"UPDATE {table} SET {column} = {column} || ' '")
    db.close()
    store = RunStore(root)
    if not named(root, table if table != "runs" else "run "):
        return "doctor --check does not name it"
    if table == "runs" and any(
        run.status != "damaged" for run in store.list(audits="lead" if column == "lead" else True)
    ):
        return "it is shown"
    if table == "floors" and "auc linear" in dict.fromkeys(k for k in store.floors if _readable(store, k)):
        return "it is shown"
    if table == "jobs" and any(job.status != "failed" for job in Queue(store).list()):
        return "it is shown"
    if table == "rates" and store.timings():
        return "it is shown"
    if table == "runs":  # what is changed by us afterwards does not make it true
        store.archive([])
        with store.writing() as db:
            db.execute("UPDATE runs SET archived = 1.0")
        if any(run.status != "damaged" for run in store.list(archived=True) if column not in ("audit", "lead")):
            return "it is shown once it is written again"
        store.begin("a1", CONFIG, DATA)
        if store.load("a1").status != "running":
            return "it cannot be trained again"
    return None


def _readable(store: RunStore, key: str) -> bool:
    try:
        return bool(store.floors[key])
    except KeyError:
        return False


def _database(root: Path, chance: random.Random, harm: Callable[[Path, random.Random], None]) -> str | None:
    """The list itself: said, or what is shown is as it was written."""
    with sqlite3.connect(root / "store.sqlite") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    before = {run.id: (run.config, run.rows, run.sums) for run in RunStore(root).list()}
    harm(root / "store.sqlite", chance)
    try:
        for run in RunStore(root).list():
            if run.status != "damaged" and (run.config, run.rows, run.sums) != before.get(run.id):
                return f"run {run.id} is shown with other content"
    except StoreError:
        pass
    return None


def run(seed: int, quick: bool) -> Iterator[tuple[str, str | None]]:
    """Each kind of file in each way; each column; and the list itself, bit by bit."""
    chance = random.Random(seed)
    with place() as home:
        filled(home / "start")

        def fresh() -> Path:
            shutil.rmtree(home / "now", ignore_errors=True)
            shutil.copytree(home / "start", home / "now")
            return home / "now"

        files = ["embedding.npy", "audit.json"] if quick else [*FIELDS, "config.json"]
        for harm in HARMS:
            for name in files:
                yield f"{name}: {harm.__name__}", _file(fresh(), name, chance, harm)
            for pattern in ("scenarios/*.json", "comparisons/*.json", "runs/*/whatif/*.json"):
                yield f"{pattern}: {harm.__name__}", _beside(fresh(), pattern, chance, harm)
        for table, columns in SEALED.items():
            for column in columns[:2] if quick else [*columns, *(("audit", "lead") if table == "runs" else ())]:
                if (table, column) not in (("runs", "id"), ("jobs", "id"), ("floors", "key"), ("runs", "status")):
                    yield f"{table}.{column}", _column(fresh(), table, column)
        for harm in (take, empty, cut):
            yield f"store.sqlite: {harm.__name__}", _database(fresh(), chance, harm)
        for at in range(2 if quick else 100):
            yield f"store.sqlite: flip {at}", _database(fresh(), chance, flip)
