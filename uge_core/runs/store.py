"""The run store: one SQLite file for what is listed, one folder a run for what is large.

    STORE/store.sqlite      runs (status, config, data, audit), the audit's random floors, the queue of jobs, how
                            fast this machine was
    STORE/checkpoints/      where trainings that were cut off go on (`checkpoint`)
    STORE/tensors/          what .pt files hold, for the dashboard, which does not load torch
    STORE/scenarios/        edits of graphs on trial (`whatif.scenario`)
    STORE/comparisons/      differences of two runs, measured in pairs
    STORE/jobs/, whatif/    logs of the processes that work for pages, and notes of who they are (`processes`)
    STORE/runs/RUN_ID/      config.json, embedding.npy, twin.npy, hidden.npz, history.csv,
                            diagnostics.json, environment.json, audit.json, parameters.npz (encoders)

A folder is written under a temporary name and renamed, so that a killed process leaves no half run. A run that is
trained again keeps its earlier result until the new one is complete: where a process is killed
between moving the old folder away and renaming the new one, the one moved away is read and put
back. The store is private to its user (0700): embeddings and masks are made from people's protected
attributes. The table holds an audit's rows without their cells, and those few apart that lists of many runs
show, so that lists stay quick; the whole audit is `audit.json`, and without it a run counts as not audited.
"""

from __future__ import annotations

import difflib
import errno
import glob
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.audit.base import RowRecord
from uge_core.errors import RunNotFound, StoreError
from uge_core.files import write_atomically
from uge_core.machine import alive, birth
from uge_core.machine import default_root as default_root
from uge_core.runs.database import (
    LEAD_HEAD,
    PATIENCE,
    RUN_COLUMNS,
    SCHEMA,
    VERSION,
    brief_record,
    dumps,
    lead_text,
    leading_record,
    read_record,
    refresh_leads,
    use_wal,
)
from uge_core.runs.stored_run import StoredRun
from uge_core.runs.timing import Timing
from uge_core.training import checkpoint

_KEPT_TIMINGS = 500


class RunStore:
    """Runs under one folder.

    Safe for several processes and threads: each call opens its own connection, and writers take
    the lock at once. Reading never creates anything; the first write makes the folder.
    """

    def __init__(self, root: str | Path | None = None) -> None:
        """Names the folder; None means ``$UGE_STORE``, else ``./uge-store``."""
        self.root = Path(root) if root is not None else default_root()

    @property
    def checkpoints(self) -> Path:
        """Where trainings that were cut off go on."""
        return self.root / "checkpoints"

    @property
    def tensors(self) -> Path:
        """Where the tensors of .pt files are kept for processes that must not load torch."""
        return self.root / "tensors"

    @property
    def comparisons(self) -> Path:
        """Where differences of two runs are kept, `ID-ID.json`."""
        return self.root / "comparisons"

    @property
    def scenarios(self) -> Path:
        """Where scenarios are kept, `ID.json`."""
        return self.root / "scenarios"

    @property
    def floors(self) -> Floors:
        """Cached floors of the audit, by key."""
        return Floors(self)

    def timings(self) -> Sequence[Timing]:
        """How fast passes and audits were, the newest first."""
        with self.reading() as db:
            if db is None:
                return []
            rows = db.execute("SELECT * FROM rates ORDER BY at DESC LIMIT ?", (_KEPT_TIMINGS,)).fetchall()
        return [Timing(*row) for row in rows]

    def note_timing(self, rate: Timing) -> None:
        """Keeps how fast a pass or an audit was, and forgets the oldest of very many."""
        with self.writing() as db:
            db.execute("INSERT INTO rates VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(rate))
            db.execute(
                "DELETE FROM rates WHERE rowid IN (SELECT rowid FROM rates ORDER BY at DESC LIMIT -1 OFFSET ?)",
                (_KEPT_TIMINGS,),
            )

    def begin(self, run_id: str, config: Mapping[str, Any], dataset: Mapping[str, Any]) -> Sequence[str]:
        """Marks a run as being trained by this process.

        Returns:
            What processes that died had left of it and was removed.

        Raises:
            StoreError: the store cannot be written, or another living process trains this run.
        """
        with self.writing() as db:
            row = db.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row and row["status"] == "running" and row["pid"] != os.getpid() and alive(row["pid"], row["born"]):
                raise StoreError(f"run {run_id} is being trained by process {row['pid']}; wait for it or stop it first")
            db.execute(
                "INSERT INTO runs (id, status, created, pid, born, config, "
                "dataset) VALUES (?, 'running', ?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET status = 'running', created = excluded.created, pid = excluded.pid,"
                " born = excluded.born, reason = NULL, archived = NULL, config = excluded.config, dataset = "
                "excluded.dataset",
                (run_id, time.time(), os.getpid(), birth(os.getpid()), dumps(config), dumps(dataset)),
            )
            return self._tidy(run_id, lambda pid: pid != os.getpid() and birth(pid) is None)

    def refresh(self, run_id: str, dataset: Mapping[str, Any]) -> None:
        """Notes where a run's data lie now and what they are called, of a run that was asked for again: it is in sight then."""
        with self.writing() as db:
            db.execute("UPDATE runs SET dataset = ?, archived = NULL WHERE id = ?", (dumps(dataset), run_id))

    def archive(self, run_ids: Sequence[str], *, undo: bool = False) -> None:
        """Puts runs out of sight, or brings them back; nothing of them is removed.

        Args:
            run_ids: the runs.
            undo: bring them back.

        Raises:
            RunNotFound: no run has one of these ids; nothing is changed then.
            StoreError: a living process is training one.
        """
        for run_id in run_ids:
            if self._load(run_id).status == "running" and not undo:
                raise StoreError(f"run {run_id} is being trained; archive it when it is done, or stop it first")
        with self.writing() as db:
            db.executemany(
                "UPDATE runs SET archived = ? WHERE id = ?", [(None if undo else time.time(), i) for i in run_ids]
            )

    def finish(
        self,
        run_id: str,
        *,
        embedding: npt.NDArray[np.float32],
        twin: npt.NDArray[np.float32] | None = None,
        hidden: Mapping[str, npt.NDArray[np.bool_]] | None = None,
        parameters: Mapping[str, npt.NDArray[np.float32]] | None = None,
        history: Mapping[str, Sequence[float]] | None = None,
        diagnostics: Mapping[str, Any] | None = None,
        environment: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        device: str | None = None,
    ) -> None:
        """Stores what training gave, in one step, and drops an earlier result and audit of the same run."""
        config = self.load(run_id).config
        temporary = self.root / "runs" / f".{run_id}.{os.getpid()}.new"
        old = temporary.with_suffix(".old")
        with self._guarded():
            for leftover in (temporary, old):
                shutil.rmtree(leftover, ignore_errors=True)
            temporary.mkdir(parents=True)
            np.save(temporary / "embedding.npy", np.ascontiguousarray(embedding, dtype=np.float32))
            if twin is not None:
                np.save(temporary / "twin.npy", np.ascontiguousarray(twin, dtype=np.float32))
            if hidden:
                # Under keys of our own: an attribute may be called like an argument of savez.
                np.savez_compressed(
                    temporary / "hidden.npz", names=np.array(list(hidden)), masks=np.stack(list(hidden.values()))
                )
            if parameters:
                held: dict[str, Any] = dict(parameters)
                np.savez(temporary / "parameters.npz", **held)
            pd.DataFrame(dict(history or {})).to_csv(temporary / "history.csv", index=False)
            for name, record in (
                ("config", config),
                ("diagnostics", diagnostics or {}),
                ("environment", environment or {}),
            ):
                (temporary / f"{name}.json").write_text(dumps(record, indent=2), encoding="utf-8")
        with self.writing() as db:
            folder = self.root / "runs" / run_id
            if folder.exists():
                folder.rename(old)
            temporary.rename(folder)
            db.execute(
                "UPDATE runs SET status = 'finished', finished = ?, seconds = ?, device = ?, pid = NULL, born = NULL,"
                " reason = NULL, audit = NULL, lead = NULL WHERE id = ?",
                (time.time(), seconds, device, run_id),
            )
        # What a killed process had moved away is out of date now.
        self._tidy(run_id, lambda pid: pid == os.getpid() or birth(pid) is None)

    def fail(self, run_id: str, reason: str) -> None:
        """Marks a running run as failed; an earlier complete result stays and the run counts as finished."""
        self._end(run_id, "failed", reason)

    def interrupt(self, run_id: str, reason: str = "stopped by the user") -> None:
        """Marks a running run as interrupted; an earlier complete result stays and the run counts as finished."""
        self._end(run_id, "interrupted", reason)

    def withdraw(self, run_id: str) -> None:
        """Takes back `begin` of a run that did not train; an earlier result stays."""
        with self.writing() as db:
            db.execute("DELETE FROM runs WHERE id = ? AND status = 'running' AND finished IS NULL", (run_id,))
        self._end(run_id, "finished", None)

    def _end(self, run_id: str, status: str, reason: str | None) -> None:
        with self.writing() as db:
            db.execute(
                "UPDATE runs SET status = CASE WHEN finished IS NULL THEN ? ELSE 'finished' END, reason = ?,"
                " pid = NULL, born = NULL WHERE id = ? AND status = 'running'",
                (status, reason, run_id),
            )

    def save_audit(self, run_id: str, record: Mapping[str, Any]) -> None:
        """Stores a run's `uge-audit/1` record."""
        brief = [{**row, "cells": []} for row in record.get("rows", ())]
        with self.writing() as db:
            done = db.execute(
                "UPDATE runs SET audit = ?, lead = ? WHERE id = ?", (dumps({"rows": brief}), lead_text(brief), run_id)
            )
            if not done.rowcount:
                raise self._not_found(db, run_id)
            refresh_leads(db)
            folder = self._folder(run_id)
            folder.mkdir(exist_ok=True)
            write_atomically(folder / "audit.json", lambda file: file.write(dumps(record, indent=2).encode()))

    def load(self, run_id: str) -> StoredRun:
        """The run with this id.

        Raises:
            RunNotFound: no run has this id; the message names the nearest ones.
            StoreError: what the store holds about it cannot be read.
        """
        run = self._load(run_id)
        if run.status == "damaged":
            raise StoreError(f"run {run_id} in {self.root}: {run.reason}")
        return run

    def find(self, run_id: str) -> StoredRun | None:
        """The run with this id, or None."""
        try:
            return self.load(run_id)
        except RunNotFound:
            return None

    def list(
        self, *, audits: bool | Literal["lead"] = True, only: Sequence[str] | None = None, archived: bool = False
    ) -> Sequence[StoredRun]:
        """The runs, the newest first; a run that cannot be read is listed as damaged.

        Args:
            audits: read the rows of their audits; without, `rows` is empty. "lead" reads the `leading` rows alone: a
                tenth of the time.
            only: the ids of those that are wanted, archived or not, as far as there are such; None takes all.
            archived: list archived runs too.
        """
        with self.reading() as db:
            if db is None:
                return []
            lead, values = audits == "lead", list[Any](only or ())
            what = "audit" if audits else "NULL AS audit"
            if lead:  # the whole audit where what is set apart is out of date
                what = "CASE WHEN substr(lead, 1, ?) = ? THEN lead ELSE audit END AS audit"
                values = [len(LEAD_HEAD), LEAD_HEAD, *values]
            where = "" if only is None else f"WHERE id IN ({', '.join('?' * len(only))})"
            if only is None and not archived:
                where = "WHERE archived IS NULL"
            rows = db.execute(
                f"SELECT {RUN_COLUMNS}, {what} FROM runs {where} ORDER BY created DESC, id", values
            ).fetchall()
        home = self.root / "runs"
        there = {path.name: path for path in home.iterdir()} if home.is_dir() else {}
        read = leading_record if lead else read_record if audits else None
        return [self._run(row, there, read=read) for row in rows]

    def kinds(self, only: Sequence[str]) -> set[tuple[Any, ...]]:
        """Attribute, exposure, attacker and metric of the rows of some runs' audits, each combination once.

        Found by SQLite, in a fifth of the time that reading the rows takes.
        """
        query = (
            "SELECT DISTINCT json_extract(row.value, '$.attribute', '$.exposure', '$.attacker', '$.metric') FROM runs,"
            " json_each(CASE WHEN json_valid(audit) THEN audit ELSE '{}' END, '$.rows') AS row"
            f" WHERE runs.id IN ({', '.join('?' * len(only))})"
        )
        with self.reading() as db:
            return {tuple(json.loads(row[0])) for row in db.execute(query, only)} if db else set()

    def delete(self, run_id: str) -> Sequence[str]:
        """Removes a run and says what was removed.

        Raises:
            RunNotFound: no run has this id.
            StoreError: a living process is training it.
        """
        run = self._load(run_id)
        if run.status == "running":
            raise StoreError(f"run {run_id} is being trained; stop it before deleting it")
        orphans = self.last_of([run_id])
        removed = [f"run {run_id} ({run.status}) from the list" + (", with its audit" if run.audited else "")]
        with self.writing() as db:
            db.execute("DELETE FROM runs WHERE id = ?", (run_id,))
            folder = self.root / "runs" / run_id
            if folder.exists():
                removed += sorted(str(p) for p in folder.iterdir())
                folder.rename(folder.with_name(f".{run_id}.{os.getpid()}.deleted"))
            # Nobody trains it, so whatever temporary folder is left is nobody's.
            removed += [p for p in self._tidy(run_id, lambda pid: True) if not p.endswith(".deleted")]
            removed += checkpoint.drop(self.checkpoints, [run_id])
            for path in sorted(self.comparisons.glob("*.json")):
                if run_id in path.stem.split("-"):
                    path.unlink(missing_ok=True)
                    removed.append(str(path))
        return [*removed, *self.drop_scenarios(orphans)]

    def last_of(self, run_ids: Collection[str]) -> set[str]:
        """Fingerprints of the graphs, those that scenarios edit with them, that no other run is about than these."""
        graphs = ("$.fingerprint", "$.source.scenario.data")
        query = "SELECT id, json_extract(dataset, ?) AS graph FROM runs WHERE json_valid(dataset)"
        with self.reading() as db:
            rows = [row for graph in graphs for row in db.execute(query, (graph,))] if db else []
        mine, others = ({row["graph"] for row in rows if (row["id"] in run_ids) == chosen} for chosen in (True, False))
        return mine - others - {None}

    def scenarios_of(self, data: Collection[str]) -> dict[Path, str]:
        """The stored scenarios of graphs with these fingerprints: their names by their files."""
        names_by_file = {}
        for path in sorted(self.scenarios.glob("*.json")):
            with suppress(OSError, ValueError):
                made = read_record(path.read_text(encoding="utf-8"), "data", "name")
                if made["data"] in data:
                    names_by_file[path] = str(made["name"])
        return names_by_file

    def drop_scenarios(self, data: Collection[str]) -> Sequence[str]:
        """Removes the scenarios of graphs with these fingerprints, wherever their edits stand.

        Says which files went.
        """
        removed = []
        with self._guarded():
            for path in self.scenarios_of(data):
                for file in (path, *(self.root / "runs").glob(f"*/whatif/{path.name}")):
                    file.unlink(missing_ok=True)
                    removed.append(str(file))
        if data:
            self.forget_edits(lambda made: made.get("data") in data)
        return removed

    def forget_edits(self, doomed: Callable[[Mapping[str, Any]], bool]) -> None:
        """Blanks the scenarios for which `doomed` holds in jobs that are over; such a job cannot be resumed."""
        with self.writing() as db:
            for row in db.execute("SELECT id, settings FROM jobs WHERE status NOT IN ('queued', 'running')").fetchall():
                settings = json.loads(row["settings"])
                made = settings.get("scenario") or {}
                if "edits" in made and doomed(made):
                    settings["scenario"] = {"name": "(deleted)", "sha256": made.get("sha256")}
                    db.execute("UPDATE jobs SET settings = ? WHERE id = ?", (dumps(settings), row["id"]))

    def _temporaries(self, run_id: str) -> Sequence[Path]:
        """Folders of a run left under temporary names: `.RUN.PID.new`, `.old` and `.deleted`."""
        return sorted((self.root / "runs").glob(f".{glob.escape(run_id)}.*"))

    def _tidy(self, run_id: str, doomed: Callable[[int], bool]) -> Sequence[str]:
        """Puts back what a killed process had moved away, removes the rest it left, and says what was removed.

        Args:
            run_id: the run.
            doomed: says whether the leftovers of a process may go.
        """
        folder, removed = self.root / "runs" / run_id, []
        if self._folder(run_id) != folder:
            self._folder(run_id).rename(folder)
        for path in self._temporaries(run_id):
            pid = path.name.split(".")[-2]
            if pid.isdecimal() and doomed(int(pid)):
                shutil.rmtree(path, ignore_errors=True)
                removed.append(str(path))
        return removed

    def _folder(self, run_id: str) -> Path:
        folder = self.root / "runs" / run_id
        if folder.exists():
            return folder
        return next((p for p in self._temporaries(run_id) if p.suffix == ".old"), folder)

    def _load(self, run_id: str) -> StoredRun:
        with self.reading() as db:
            row = None
            if db:
                row = db.execute(f"SELECT {RUN_COLUMNS}, audit FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is None:
                raise self._not_found(db, run_id)
        return self._run(row)

    def _run(
        self,
        row: sqlite3.Row,
        there: Mapping[str, Path] | None = None,
        *,
        read: Callable[..., dict[str, Any]] | None = read_record,
    ) -> StoredRun:
        """A row as a run; `there` are the folders by name, where many are looked at; `read` reads the audit's rows."""
        status, reason = row["status"], row["reason"]
        if status == "running" and not alive(row["pid"], row["born"]):
            status = "interrupted" if row["finished"] is None else "finished"
            reason = "the process that trained it ended without a word"
        config: dict[str, Any] = {}
        dataset: dict[str, Any] = {}
        rows: tuple[RowRecord, ...] = ()
        folder = (there or {}).get(row["id"]) or self._folder(row["id"])
        audited = bool(row["audited"]) and (folder / "audit.json").exists()
        try:
            config = brief_record(row["config"], "method", "backbone")
            dataset = brief_record(row["dataset"], "name", "fingerprint")
            if audited and read:
                rows = tuple(read(row["audit"], "rows")["rows"])
        except (ValueError, TypeError):
            what = "audit" if dataset else "data" if config else "config"
            status, audited = "damaged", False
            reason = f"its {what} in store.sqlite cannot be read; uge runs delete {row['id']} removes it"
        return StoredRun(
            row["id"],
            status,
            row["created"],
            row["finished"],
            row["seconds"],
            row["device"],
            reason,
            config,
            dataset,
            audited,
            rows,
            folder,
            row["archived"],
        )

    def _not_found(self, db: sqlite3.Connection | None, run_id: str) -> RunNotFound:
        known = [r["id"] for r in db.execute("SELECT id FROM runs ORDER BY created DESC")] if db else []
        if not known:
            return RunNotFound(
                f"no run {run_id!r}: the store {self.root} has no runs; train one with uge train, or name another "
                "store with --store"
            )
        near = [k for k in known if run_id and k.startswith(run_id)][:3] or difflib.get_close_matches(run_id, known, 3)
        return RunNotFound(
            f"no run {run_id!r} in the store {self.root}; {'nearest' if near else 'newest'}: "
            f"{', '.join(near or known[:3])} (uge runs list shows all {len(known)})"
        )

    @property
    def writable(self) -> bool:
        """Whether anything can be written here by who asks."""
        return os.access(self.root, os.W_OK)

    def _connect(self, *, reading: bool = False) -> sqlite3.Connection:
        path = self.root / "store.sqlite"
        # Write-ahead logging needs files beside it even to read, unless nothing can change.
        sealed = reading and not self.writable and not path.with_name("store.sqlite-wal").exists()
        name = f"{path.resolve().as_uri()}?mode=ro&immutable=1" if sealed else str(path)
        db = sqlite3.connect(name, timeout=PATIENCE, isolation_level=None, uri=sealed)
        db.row_factory = sqlite3.Row
        return db

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection for reading, or None where there is no store yet."""
        db = None
        try:
            if not self.root.exists():
                yield None
                return
            if not self.root.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            if not (self.root / "store.sqlite").exists():
                self._check_lost()
                yield None
                return
            db = self._connect(reading=True)
            # Version 0: another process is just making the tables.
            made = self._format(db)
            if not made:
                self._check_lost()
            yield db if made else None
        except (OSError, sqlite3.Error) as error:
            raise self._refusal("read", error) from None
        finally:
            if db is not None:
                db.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction that holds the write lock."""
        with self._guarded():
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.root / "runs").mkdir(mode=0o700, exist_ok=True)
            db = self._connect()
            try:
                self._format(db)  # before anything changes: a store of another format stays as it is
                use_wal(db)
                db.execute("BEGIN IMMEDIATE")
                if not self._format(db):
                    self._check_lost()
                    for statement in SCHEMA.split(";"):
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version = {VERSION}")
                try:
                    yield db
                except BaseException:
                    db.execute("ROLLBACK")
                    raise
                db.execute("COMMIT")
            finally:
                db.close()

    def _format(self, db: sqlite3.Connection) -> int:
        """The store's format, 0 where its tables are not made yet.

        Raises:
            StoreError: it is another than this version's.
        """
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version not in (0, VERSION):
            age, remedy = (
                ("a newer", "update uge_core") if version > VERSION else ("an older", "open it with that version")
            )
            raise StoreError(
                f"the store {self.root} was written by {age} version of uge_core (format {version}, this one reads "
                f"{VERSION}); {remedy}, or name another store with --store DIR or $UGE_STORE"
            )
        return version

    def _check_lost(self) -> None:
        """Refuses a store whose list of runs is gone while the runs are there."""
        folders = self.root / "runs"
        if folders.is_dir() and any(p.is_dir() for p in folders.iterdir()):
            raise StoreError(
                f"the store {self.root} has runs but {self.root / 'store.sqlite'}, their list, is empty or gone; "
                "bring it back from a copy, or name another store with --store DIR or $UGE_STORE"
            )

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise self._refusal("written", error) from None

    def _refusal(self, what: str, error: Exception) -> StoreError:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        another = "name another store with --store DIR or $UGE_STORE"
        if isinstance(error, sqlite3.OperationalError) and ("locked" in why or "busy" in why):
            advice = "another process is using it: try again, or " + another
        elif (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)) or "full" in why:
            advice = "make room, or " + another
        elif isinstance(error, OSError) or "unable to open" in why or "readonly" in why:
            advice = "name a folder you may write to with --store DIR or $UGE_STORE"
        else:
            advice = f"{self.root / 'store.sqlite'} is damaged or no run store: move it away, or {another}"
        return StoreError(f"the store {self.root} cannot be {what}: {why}; {advice}")


class Floors(MutableMapping[str, Any]):
    """What the audit would otherwise compute again for every run (random floors), kept in the store."""

    def __init__(self, store: RunStore) -> None:
        """A view of the store's table."""
        self._store = store

    def __getitem__(self, key: str) -> Any:
        with self._store.reading() as db:
            row = db.execute("SELECT value FROM floors WHERE key = ?", (key,)).fetchone() if db else None
        if row is None:
            raise KeyError(key)
        return json.loads(row["value"])

    def __setitem__(self, key: str, value: Any) -> None:
        with self._store.writing() as db:
            db.execute("INSERT OR REPLACE INTO floors VALUES (?, ?)", (key, dumps(value)))

    def __delitem__(self, key: str) -> None:
        with self._store.writing() as db:
            if not db.execute("DELETE FROM floors WHERE key = ?", (key,)).rowcount:
                raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        with self._store.reading() as db:
            keys = [r["key"] for r in db.execute("SELECT key FROM floors ORDER BY key")] if db else []
        return iter(keys)

    def __len__(self) -> int:
        return len(list(iter(self)))
