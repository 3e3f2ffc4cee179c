"""The run store: one SQLite file for what is listed, one folder a run for what is large.

    STORE/store.sqlite      runs (status, config, data, audit) and the audit's random floors
    STORE/runs/RUN_ID/      config.json, embedding.npy, twin.npy, hidden.npz, history.csv,
                            diagnostics.json, environment.json, audit.json

A folder is written aside and renamed, so that a killed process leaves no half run. A run that is
trained again keeps its earlier result until the new one is complete. The store is private to its
user (0700): embeddings and masks are made from people's protected attributes. `audit.json` is a
copy for people; the table is what is read.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.errors import RunNotFound, StoreError

_VERSION = 1
_SCHEMA = """
CREATE TABLE runs (
  id TEXT PRIMARY KEY, status TEXT NOT NULL, created REAL NOT NULL, finished REAL, seconds REAL, device TEXT,
  pid INTEGER, born TEXT, reason TEXT, config TEXT NOT NULL, dataset TEXT NOT NULL, audit TEXT
);
CREATE TABLE floors (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


def default_root() -> Path:
    """``$UGE_STORE``, else ``./uge-store``."""
    return Path(os.environ.get("UGE_STORE") or "uge-store")


@dataclass(frozen=True, eq=False)
class StoredRun:
    """One run as the store knows it; arrays are read when they are asked for.

    Attributes:
        id: the run's id, from its config and its data.
        status: running, finished, failed or interrupted.
        created: when training began, seconds since 1970.
        finished: when the stored result was complete, or None.
        seconds: how long training took.
        device: what trained it.
        reason: why it failed or was interrupted.
        config: the run's canonical config.
        dataset: name, fingerprint, num_nodes, num_edges, and `source`, how to load it again.
        audit: its `uge-audit/1` record, or None.
        folder: where its files lie.
    """

    id: str
    status: str
    created: float
    finished: float | None
    seconds: float | None
    device: str | None
    reason: str | None
    config: dict[str, Any]
    dataset: dict[str, Any]
    audit: dict[str, Any] | None
    folder: Path

    @cached_property
    def embedding(self) -> npt.NDArray[np.float32]:
        """(N, d) float32, memory-mapped."""
        return self._array("embedding.npy")

    @cached_property
    def twin(self) -> npt.NDArray[np.float32] | None:
        """(N, d) of the member that did not see the probe's test nodes, or None."""
        return self._array("twin.npy") if (self.folder / "twin.npy").exists() else None

    @cached_property
    def hidden(self) -> dict[str, npt.NDArray[np.bool_]]:
        """Per attribute, (N,) whose values the twin did not see."""
        path = self.folder / "hidden.npz"
        if not path.exists():
            return {}
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}

    @cached_property
    def history(self) -> pd.DataFrame:
        """One row an epoch: epoch, edge_loss, penalty, total."""
        self._need("history.csv")
        return pd.read_csv(self.folder / "history.csv")

    @cached_property
    def diagnostics(self) -> dict[str, Any]:
        """What training noted: weights, imputation, members, notes."""
        return self._json("diagnostics.json")

    @cached_property
    def environment(self) -> dict[str, Any]:
        """The stamp of versions and device."""
        return self._json("environment.json")

    def frame(self) -> pd.DataFrame:
        """The audit's rows as a table; empty where the run has no audit."""
        return pd.DataFrame((self.audit or {}).get("rows", []))

    def _need(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            raise StoreError(
                f"run {self.id} ({self.status}) has no {name} in {self.folder}; train it again with --force"
            )
        return path

    def _array(self, name: str) -> npt.NDArray[np.float32]:
        array: npt.NDArray[np.float32] = np.load(self._need(name), mmap_mode="r", allow_pickle=False)
        return array

    def _json(self, name: str) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self._need(name).read_text(encoding="utf-8"))
        return record


class RunStore:
    """Runs under one folder.

    Safe for several processes and threads: each call opens its own connection, and writers take
    the lock at once. Reading never creates anything; the first write makes the folder.
    """

    def __init__(self, root: str | Path | None = None) -> None:
        """Names the folder; None means ``$UGE_STORE``, else ``./uge-store``."""
        self.root = Path(root) if root is not None else default_root()

    @property
    def floors(self) -> Floors:
        """Cached floors of the audit, by key."""
        return Floors(self)

    def begin(self, run_id: str, config: Mapping[str, Any], dataset: Mapping[str, Any]) -> None:
        """Marks a run as being trained by this process.

        Raises:
            StoreError: the store cannot be written, or another living process trains this run.
        """
        with self._write() as db:
            row = db.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row and row["status"] == "running" and row["pid"] != os.getpid() and _alive(row["pid"], row["born"]):
                raise StoreError(f"run {run_id} is being trained by process {row['pid']}; wait for it or stop it first")
            db.execute(
                "INSERT INTO runs (id, status, created, pid, born, config, dataset) VALUES (?, 'running', ?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET status = 'running', created = excluded.created, pid = excluded.pid,"
                " born = excluded.born, reason = NULL, dataset = excluded.dataset",
                (run_id, time.time(), os.getpid(), _birth(os.getpid()), _dumps(config), _dumps(dataset)),
            )

    def finish(
        self,
        run_id: str,
        *,
        embedding: npt.NDArray[np.float32],
        twin: npt.NDArray[np.float32] | None = None,
        hidden: Mapping[str, npt.NDArray[np.bool_]] | None = None,
        history: Mapping[str, Sequence[float]] | None = None,
        diagnostics: Mapping[str, Any] | None = None,
        environment: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        device: str | None = None,
    ) -> None:
        """Stores what training gave, in one step, and drops an earlier result and audit of the same run."""
        run = self.load(run_id)
        aside = self.root / "runs" / f".{run_id}.{os.getpid()}.new"
        old = aside.with_suffix(".old")
        with self._writing():
            for leftover in (aside, old):
                shutil.rmtree(leftover, ignore_errors=True)
            aside.mkdir(parents=True)
            np.save(aside / "embedding.npy", np.ascontiguousarray(embedding, dtype=np.float32))
            if twin is not None:
                np.save(aside / "twin.npy", np.ascontiguousarray(twin, dtype=np.float32))
            if hidden:
                masks: dict[str, Any] = dict(hidden)
                np.savez_compressed(aside / "hidden.npz", **masks)
            pd.DataFrame(dict(history or {})).to_csv(aside / "history.csv", index=False)
            for name, record in (
                ("config", run.config),
                ("diagnostics", diagnostics or {}),
                ("environment", environment or {}),
            ):
                (aside / f"{name}.json").write_text(_dumps(record, indent=2), encoding="utf-8")
        with self._write() as db:
            if run.folder.exists():
                run.folder.rename(old)
            aside.rename(run.folder)
            db.execute(
                "UPDATE runs SET status = 'finished', finished = ?, seconds = ?, device = ?, pid = NULL, born = NULL,"
                " reason = NULL, audit = NULL WHERE id = ?",
                (time.time(), seconds, device, run_id),
            )
        shutil.rmtree(old, ignore_errors=True)

    def fail(self, run_id: str, reason: str) -> None:
        """Marks a running run as failed; an earlier complete result stays and the run counts as finished."""
        self._end(run_id, "failed", reason)

    def interrupt(self, run_id: str, reason: str = "stopped by the user") -> None:
        """Marks a running run as interrupted; an earlier complete result stays and the run counts as finished."""
        self._end(run_id, "interrupted", reason)

    def withdraw(self, run_id: str, reason: str) -> None:
        """Takes back `begin` of a run that was refused before it trained; an earlier result stays."""
        with self._write() as db:
            db.execute("DELETE FROM runs WHERE id = ? AND status = 'running' AND finished IS NULL", (run_id,))
        self._end(run_id, "finished", reason)

    def _end(self, run_id: str, status: str, reason: str) -> None:
        with self._write() as db:
            db.execute(
                "UPDATE runs SET status = CASE WHEN finished IS NULL THEN ? ELSE 'finished' END, reason = ?,"
                " pid = NULL, born = NULL WHERE id = ? AND status = 'running'",
                (status, reason, run_id),
            )

    def save_audit(self, run_id: str, record: Mapping[str, Any]) -> None:
        """Stores a run's `uge-audit/1` record."""
        text = _dumps(record)
        with self._write() as db:
            done = db.execute("UPDATE runs SET audit = ? WHERE id = ?", (text, run_id))
            if not done.rowcount:
                raise self._not_found(db, run_id)
        folder = self._folder(run_id)
        if folder.exists():
            with self._writing():
                aside = folder / f".audit.{os.getpid()}"
                aside.write_text(_dumps(record, indent=2), encoding="utf-8")
                aside.replace(folder / "audit.json")

    def load(self, run_id: str) -> StoredRun:
        """The run with this id.

        Raises:
            RunNotFound: no run has this id; the message names the nearest ones.
        """
        with self._read() as db:
            row = db.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone() if db else None
            if row is None:
                raise self._not_found(db, run_id)
        return self._run(row)

    def find(self, run_id: str) -> StoredRun | None:
        """The run with this id, or None."""
        try:
            return self.load(run_id)
        except RunNotFound:
            return None

    def list(self) -> Sequence[StoredRun]:
        """All runs, the newest first."""
        with self._read() as db:
            rows = db.execute("SELECT * FROM runs ORDER BY created DESC, id").fetchall() if db else []
        return [self._run(row) for row in rows]

    def delete(self, run_id: str) -> Sequence[str]:
        """Removes a run and says what was removed.

        Raises:
            RunNotFound: no run has this id.
            StoreError: a living process is training it.
        """
        run = self.load(run_id)
        if run.status == "running":
            raise StoreError(f"run {run_id} is being trained; stop it before deleting it")
        removed = [f"run {run_id} ({run.status}) from the list" + (", with its audit" if run.audit else "")]
        doomed = self.root / "runs" / f".{run_id}.{os.getpid()}.deleted"
        with self._write() as db:
            db.execute("DELETE FROM runs WHERE id = ?", (run_id,))
            if run.folder.exists():
                removed += sorted(str(p) for p in run.folder.iterdir())
                run.folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
        return removed

    def _folder(self, run_id: str) -> Path:
        return self.root / "runs" / run_id

    def _run(self, row: sqlite3.Row) -> StoredRun:
        status, reason = row["status"], row["reason"]
        if status == "running" and not _alive(row["pid"], row["born"]):
            status = "interrupted" if row["finished"] is None else "finished"
            reason = "the process that trained it ended without a word"
        audit = json.loads(row["audit"]) if row["audit"] else None
        return StoredRun(
            row["id"], status, row["created"], row["finished"], row["seconds"], row["device"], reason,
            json.loads(row["config"]), json.loads(row["dataset"]), audit, self._folder(row["id"]),
        )  # fmt: skip

    def _not_found(self, db: sqlite3.Connection | None, run_id: str) -> RunNotFound:
        known = [r["id"] for r in db.execute("SELECT id FROM runs ORDER BY created DESC")] if db else []
        if not known:
            return RunNotFound(
                f"no run {run_id!r}: the store {self.root} has no runs; train one with uge train, or name another store with --store"
            )
        near = [k for k in known if run_id and k.startswith(run_id)][:3] or difflib.get_close_matches(run_id, known, 3)
        return RunNotFound(
            f"no run {run_id!r} in the store {self.root}; {'nearest' if near else 'newest'}: "
            f"{', '.join(near or known[:3])} (uge runs list shows all {len(known)})"
        )

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.root / "store.sqlite", timeout=5, isolation_level=None)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA busy_timeout = 5000")
        return db

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection | None]:
        """A connection for reading, or None where there is no store yet."""
        if not (self.root / "store.sqlite").exists():
            yield None
            return
        db = None
        try:
            db = self._connect()
            # Version 0: another process is just making the tables.
            yield db if self._check_version(db) else None
        except sqlite3.Error as error:
            raise self._refusal("read", error) from None
        finally:
            if db is not None:
                db.close()

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction that holds the write lock."""
        with self._writing():
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.root / "runs").mkdir(mode=0o700, exist_ok=True)
            db = self._connect()
            try:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("BEGIN IMMEDIATE")
                if self._check_version(db) == 0:
                    for statement in _SCHEMA.split(";"):
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version = {_VERSION}")
                try:
                    yield db
                except BaseException:
                    db.execute("ROLLBACK")
                    raise
                db.execute("COMMIT")
            finally:
                db.close()

    def _check_version(self, db: sqlite3.Connection) -> int:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version > _VERSION:
            raise StoreError(
                f"the store {self.root} was written by a newer version of uge_core (format {version}, this one reads {_VERSION}); update uge_core or name another store with --store"
            )
        return version

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise self._refusal("written", error) from None

    def _refusal(self, what: str, error: Exception) -> StoreError:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return StoreError(
            f"the store {self.root} cannot be {what}: {why}; name a folder you may write to with --store DIR or $UGE_STORE"
        )


class Floors(MutableMapping[str, Any]):
    """What the audit would otherwise compute again for every run (random floors), kept in the store."""

    def __init__(self, store: RunStore) -> None:
        """A view of the store's table."""
        self._store = store

    def __getitem__(self, key: str) -> Any:
        with self._store._read() as db:
            row = db.execute("SELECT value FROM floors WHERE key = ?", (key,)).fetchone() if db else None
        if row is None:
            raise KeyError(key)
        return json.loads(row["value"])

    def __setitem__(self, key: str, value: Any) -> None:
        with self._store._write() as db:
            db.execute("INSERT OR REPLACE INTO floors VALUES (?, ?)", (key, _dumps(value)))

    def __delitem__(self, key: str) -> None:
        with self._store._write() as db:
            if not db.execute("DELETE FROM floors WHERE key = ?", (key,)).rowcount:
                raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        with self._store._read() as db:
            keys = [r["key"] for r in db.execute("SELECT key FROM floors ORDER BY key")] if db else []
        return iter(keys)

    def __len__(self) -> int:
        return len(list(iter(self)))


def _dumps(record: Any, indent: int | None = None) -> str:
    return json.dumps(record, indent=indent, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _birth(pid: int) -> str | None:
    """When a process started, as text that differs when its number is used again; None: no such process."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():
        try:
            # The name in parentheses may hold spaces; state is field 3, the start time field 22.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else fields[19]
    if Path("/proc/self/stat").exists():
        return None
    done = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return re.sub(r"\s+", " ", done.stdout.strip()) or None


def _alive(pid: int | None, born: str | None) -> bool:
    return pid is not None and (now := _birth(pid)) is not None and now == born
