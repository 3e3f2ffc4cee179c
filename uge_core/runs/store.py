"""The run store: one SQLite file for what is listed, one folder a run for what is large.

    STORE/store.sqlite      runs (status, config, data, audit), the audit's random floors, the queue of jobs, how
                            fast this machine was
    STORE/checkpoints/      where trainings that were cut off go on (`checkpoint`)
    STORE/tensors/          what .pt files hold, for the dashboard, which does not load torch
    STORE/graphs/           large graphs as arrays, so that their files are read once (`datasets.kept`)
    STORE/scenarios/        edits of graphs on trial (`whatif.scenario`)
    STORE/comparisons/      differences of two runs, measured in pairs
    STORE/jobs/, whatif/    logs of the processes that work for pages, and notes of who they are (`processes`)
    STORE/runs/RUN_ID/      config.json, embedding.npy, twin.npy, hidden.npz, history.csv,
                            diagnostics.json, environment.json, audit.json, parameters.npz (encoders)

What a run's row says is what counts, and it is written in one step: a result or an audit is written beside the one of
before, brought to the disk, named in the row, and only then gets its place. So a run that is trained again keeps its
earlier result until the new one is complete, and a process that is killed, or finds the disk full, leaves the one or the
other, whole: what has not got its place yet is read where it lies, and put there by who comes next. A deletion is noted in
the row before anything goes, and completed by who comes next. The row keeps the SHA-256 of each file, and of itself
(`database`); what differs is named and not shown. The store is private to its user (0700): embeddings and masks are made
from people's protected attributes. The table holds an audit's rows without their cells, and those few apart that lists of
many runs show, so that lists stay quick; the whole audit is `audit.json`, and without it a run counts as not audited.
"""

from __future__ import annotations

import difflib
import errno
import glob
import hashlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.audit.base import RowRecord
from uge_core.errors import RunNotFound, StoreError
from uge_core.files import (
    abandoned,
    digest,
    digest_anew,
    full,
    make_folder,
    mark,
    remove,
    sync,
    unsealed,
    write_atomically,
)
from uge_core.machine import alive, birth
from uge_core.machine import default_root as default_root
from uge_core.runs import upgrade
from uge_core.runs.database import (
    BEFORE,
    LEAD_HEAD,
    NOTES,
    PATIENCE,
    RUN_COLUMNS,
    SCHEMA,
    SEALED,
    VERSION,
    Misfit,
    brief_record,
    dumps,
    fits,
    keep_sealed,
    lead_sum,
    lead_text,
    leading_record,
    read_record,
    refresh_leads,
    text_sum,
    use_wal,
)
from uge_core.runs.stored_run import AUDIT, StoredRun, pending, places
from uge_core.runs.timing import Timing
from uge_core.training import checkpoint

_KEPT_TIMINGS = 500
_DELETING = "deleting"  # the status of a run that is gone for all who ask, and of which something may still lie there
_READ_ANYWAY = ("SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_FULL", "SQLITE_READONLY")


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
        return [Timing(*(row[name] for name in SEALED["rates"])) for row in rows if fits("rates", row)]

    def note_timing(self, rate: Timing) -> None:
        """Keeps how fast a pass or an audit was, and forgets the oldest of very many."""
        with self.writing() as db:
            db.execute(f"INSERT INTO rates ({', '.join(SEALED['rates'])}) VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(rate))
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
            row = db.execute(f"SELECT {RUN_COLUMNS}, audit FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row and row["status"] == "running" and row["pid"] != os.getpid() and alive(row["pid"], row["born"]):
                raise StoreError(f"run {run_id} is being trained by process {row['pid']}; wait for it or stop it first")
            if row and row["status"] == _DELETING:
                self._remove_files(run_id)
            if row and (row["status"] == _DELETING or self._run(row).status == "damaged"):
                db.execute("DELETE FROM runs WHERE id = ?", (run_id,))  # nothing it says may live on
                row = None
            db.execute(
                "INSERT INTO runs (id, status, created, pid, born, config, "
                "dataset) VALUES (?, 'running', ?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET status = 'running', created = excluded.created, pid = excluded.pid,"
                " born = excluded.born, reason = NULL, archived = NULL, config = excluded.config, dataset = "
                "excluded.dataset",
                (run_id, time.time(), os.getpid(), birth(os.getpid()), dumps(config), dumps(dataset)),
            )
            result = row["result"] if row else None
            return self._tidy(run_id, result, lambda pid: pid != os.getpid() and birth(pid) is None)

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
        with self.writing() as db:
            for run_id in run_ids:
                if self._load(run_id).status == "running" and not undo:
                    raise StoreError(f"run {run_id} is being trained; archive it when it is done, or stop it first")
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
        result = mark()
        new = self._new(run_id, result)
        asked = False
        try:
            with self._guarded():
                new.mkdir(parents=True)
                np.save(new / "embedding.npy", np.ascontiguousarray(embedding, dtype=np.float32))
                if twin is not None:
                    np.save(new / "twin.npy", np.ascontiguousarray(twin, dtype=np.float32))
                if hidden:
                    # Under keys of our own: an attribute may be called like an argument of savez.
                    np.savez_compressed(
                        new / "hidden.npz", names=np.array(list(hidden)), masks=np.stack(list(hidden.values()))
                    )
                if parameters:
                    held: dict[str, Any] = dict(parameters)
                    np.savez(new / "parameters.npz", **held)
                pd.DataFrame(dict(history or {})).to_csv(new / "history.csv", index=False)
                for name, record in (
                    ("config", config),
                    ("diagnostics", diagnostics or {}),
                    ("environment", environment or {}),
                ):
                    (new / f"{name}.json").write_text(dumps(record, indent=2), encoding="utf-8")
                sums = {}
                for path in sorted(new.iterdir()):
                    sync(path)
                    sums[path.name] = digest(path)
                sync(new)
                sync(new.parent)
            with self.writing() as db:
                asked = True
                db.execute(
                    "UPDATE runs SET status = 'finished', finished = ?, seconds = ?, device = ?, pid = NULL, born = NULL,"
                    " reason = NULL, audit = NULL, lead = NULL, result = ?, sums = ? WHERE id = ?",
                    (time.time(), seconds, device, result, dumps(sums), run_id),
                )
        finally:
            # From COMMIT on the row names what was written, whatever is raised after it.
            if asked:
                self._settle(run_id)
            else:
                shutil.rmtree(new, ignore_errors=True)

    def adopt(self, *run_ids: str) -> None:
        """Takes the files of runs as they lie now for those that they are to have."""
        with self.writing() as db:
            for run_id in run_ids:
                row = self._row(db, run_id)
                sums = upgrade.sums_of(self._folder(run_id, row["result"]), row)
                db.execute("UPDATE runs SET sums = ? WHERE id = ?", (dumps(sums), run_id))

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
        audit, lead, whole = dumps({"rows": brief}), lead_text(brief), dumps(record, indent=2).encode()
        sums = {AUDIT: hashlib.sha256(whole).hexdigest(), "audit": text_sum(audit), "lead": text_sum(lead)}
        asked = False
        try:
            with self.writing() as db:
                row = self._row(db, run_id)
                asked = True
                folder = self._folder(run_id, row["result"])
                make_folder(folder)
                write_atomically(pending(folder / AUDIT, sums[AUDIT]), lambda file: file.write(whole))
                db.execute(
                    "UPDATE runs SET audit = ?, lead = ?, sums = ? WHERE id = ?",
                    (audit, lead, dumps({**_sums(row), **sums}), run_id),
                )
                refresh_leads(db)
        finally:
            if asked:
                self._settle(run_id)

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
            where = "" if only is None else f"AND id IN ({', '.join('?' * len(only))})"
            if only is None and not archived:
                where = "AND archived IS NULL"
            rows = db.execute(
                f"SELECT {RUN_COLUMNS}, {what} FROM runs WHERE status != '{_DELETING}' {where} ORDER BY created DESC, id",
                values,
            ).fetchall()
        home = self.root / "runs"
        there = frozenset(path.name for path in home.iterdir()) if home.is_dir() else frozenset()
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
        self._load(run_id)  # so that nothing is made where there is none
        with self.writing() as db:
            run = self._run(self._row(db, run_id))
            if run.status == "running":
                raise StoreError(f"run {run_id} is being trained; stop it before deleting it")
            db.execute("UPDATE runs SET status = ?, pid = NULL, born = NULL WHERE id = ?", (_DELETING, run_id))
        audit = ", with its audit" if run.audited else ""
        return [f"run {run_id} ({run.status}) from the list{audit}", *self._complete(run_id)]

    def _complete(self, run_id: str) -> Sequence[str]:
        """Removes all there is of a run whose deletion is noted, its row last, and says what was removed."""
        removed = self.drop_scenarios(self.last_of([run_id]))
        with self.writing() as db:
            gone: Sequence[str] = ()
            if db.execute("DELETE FROM runs WHERE id = ? AND status = ?", (run_id, _DELETING)).rowcount:
                gone = self._remove_files(run_id)
                db.execute("DELETE FROM notes WHERE run = ?", (run_id,))
        return [*gone, *removed]

    def _remove_files(self, run_id: str) -> Sequence[str]:
        removed = []
        for folder in (self.root / "runs" / run_id, *self._temporaries(run_id)):
            if folder.exists():
                removed += sorted(map(str, folder.iterdir())) if folder.name == run_id else [str(folder)]
                shutil.rmtree(folder)
        sync(self.root / "runs")
        removed += checkpoint.drop(self.checkpoints, [run_id])
        for path in sorted(self.comparisons.glob("*.json")):
            if run_id in path.stem.split("-"):
                path.unlink(missing_ok=True)
                removed.append(str(path))
        for folder in (self.checkpoints, self.comparisons):
            if folder.is_dir():
                sync(folder)
        return removed

    def tidy(self) -> Sequence[str]:
        """Completes what killed processes had begun, removes what they left half done, and says what was removed.

        Raises:
            StoreError: the store cannot be read or written.
        """
        removed: Sequence[str] = ()
        with self.reading() as db:
            if db is None or not self.writable:
                return removed
            rows = db.execute("SELECT id, status, result FROM runs").fetchall()
        for row in rows:
            if row["status"] == _DELETING:
                removed = [*removed, *self._complete(row["id"])]
        for row in rows:
            if self._unsettled(row["id"]):
                removed = [*removed, *self._settle(row["id"])]
        return [*removed, *self.discard(self.leftovers())]

    def leftovers(self) -> Sequence[Path]:
        """What killed processes left half done in the store, but for results that runs' rows name."""
        with self.reading() as db:
            named = self._named(db) if db else set()
        return sorted(path for path in self.root.rglob(".*") if abandoned(path) and path not in named)

    def discard(self, leftovers: Collection[Path]) -> Sequence[str]:
        """Removes leftovers as far as they may be removed, and says which; one that a row names by now stays.

        Raises:
            StoreError: the store cannot be written.
        """
        removed = []
        if leftovers:
            with self.writing() as db:
                named = self._named(db)
                for path in leftovers:
                    if path not in named:
                        with suppress(OSError):
                            remove(path)
                            removed.append(str(path))
        return removed

    def _named(self, db: sqlite3.Connection) -> set[Path]:
        """Where results lie that rows name, as long as they have not got their places."""
        return {self._new(*row) for row in db.execute("SELECT id, result FROM runs WHERE result IS NOT NULL")}

    def faults(self) -> Iterator[str]:
        """Reads all that is stored, and names what is not as it was written."""
        with self.reading() as db:
            if db is None:
                return
            for row in db.execute("PRAGMA integrity_check(20)"):
                if row[0] != "ok":
                    yield f"{self.root / 'store.sqlite'}: {row[0]}"
            for table, columns in SEALED.items():
                for row in db.execute(f"SELECT * FROM {table}"):
                    if not fits(table, row) and table != "runs":
                        yield f"a row of {table} in store.sqlite ({str(row[columns[0]])[:40]}) differs from its SHA-256"
                    elif table == "runs" and row["lead"] and _sums(row).get("lead") != text_sum(row["lead"]):
                        yield f"run {row['id']}: the rows of its audit that lists show differ from their SHA-256"
        for run in self.list(archived=True):
            if run.status == "damaged":
                yield f"run {run.id}: {run.reason}"
            else:
                yield from run.faults()
        places = ("scenarios/*.json", "comparisons/*.json", "runs/*/whatif/*.json", "runs/*/projection-*.json")
        for path in sorted(path for place in places for path in self.root.glob(place)):
            try:
                record = unsealed(path.read_bytes())
                numbers = record.get("numbers")
                if numbers and digest_anew(path.with_suffix(".npy")) != numbers:
                    yield f"{path.with_suffix('.npy')} differs from its SHA-256; it is made again when it is asked for"
            except (OSError, ValueError) as error:
                yield f"{path} cannot be read ({error}); delete it"

    def last_of(self, run_ids: Collection[str]) -> set[str]:
        """Fingerprints of the graphs, those that scenarios edit with them, that no other run is about than these."""
        graphs = ("$.fingerprint", "$.source.scenario.data")
        query = f"SELECT id, json_extract(dataset, ?) AS graph, status = '{_DELETING}' AS gone FROM runs WHERE json_valid(dataset)"
        with self.reading() as db:
            rows = [row for graph in graphs for row in db.execute(query, (graph,))] if db else []
        mine = {row["graph"] for row in rows if row["id"] in run_ids}
        others = {row["graph"] for row in rows if row["id"] not in run_ids and not row["gone"]}
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
            if removed:
                sync(self.scenarios)
        if data:
            self.forget_edits(lambda made: made.get("data") in data)
        return removed

    def forget_edits(self, doomed: Callable[[Mapping[str, Any]], bool]) -> None:
        """Blanks the scenarios for which `doomed` holds in jobs that are over; such a job cannot be resumed."""
        with self.writing() as db:
            for row in db.execute("SELECT * FROM jobs").fetchall():
                if not fits("jobs", row):  # nobody knows whose edits it holds, and it is never resumed
                    db.execute("UPDATE jobs SET settings = '{}' WHERE id = ?", (row["id"],))
                    continue
                if row["status"] in ("queued", "running"):
                    continue
                settings = json.loads(row["settings"])
                made = settings.get("scenario") or {}
                if "edits" in made and doomed(made):
                    settings["scenario"] = {"name": "(deleted)", "sha256": made.get("sha256")}
                    db.execute("UPDATE jobs SET settings = ? WHERE id = ?", (dumps(settings), row["id"]))

    def _temporaries(self, run_id: str) -> Sequence[Path]:
        """Folders of a run left under temporary names: `.RUN.TOKEN.PID.new`, `.RUN.TOKEN.PID.deleted`."""
        return sorted((self.root / "runs").glob(f".{glob.escape(run_id)}.*"))

    def _new(self, run_id: str, result: str) -> Path:
        """Where a result of a run is written; its name ends in the number of the process that writes."""
        return self.root / "runs" / f".{run_id}.{result}.new"

    def _folder(self, run_id: str, result: str | None) -> Path:
        """Where the result lies that a run's row names."""
        folder = self.root / "runs" / run_id
        if result and (new := self._new(run_id, result)).exists():
            return new
        return folder

    def _row(self, db: sqlite3.Connection | None, run_id: str) -> sqlite3.Row:
        row = None
        if db:
            query = "SELECT *, audit IS NOT NULL AS audited FROM runs WHERE id = ? AND status != ?"
            row = db.execute(query, (run_id, _DELETING)).fetchone()
        if row is None:
            raise self._not_found(db, run_id)
        found: sqlite3.Row = row
        return found

    def _settle(self, run_id: str) -> Sequence[str]:
        """Gives a run's result and audit, which its row names, their places.

        Where that fails they are read where they lie, and who comes next tries again.
        """
        removed: Sequence[str] = ()
        with suppress(StoreError), self.writing() as db:
            row = db.execute("SELECT result, sums FROM runs WHERE id = ?", (run_id,)).fetchone()
            result, sums = (row["result"], _sums(row)) if row else (None, {})
            removed = self._tidy(run_id, result, lambda pid: pid == os.getpid() or birth(pid) is None)
            audit = self._folder(run_id, result) / AUDIT
            for path in audit.parent.glob(f".{AUDIT}.*.new"):
                if AUDIT in sums and path == pending(audit, sums[AUDIT]):
                    path.replace(audit)
                else:
                    path.unlink()
                    removed = [*removed, str(path)]
                sync(audit.parent)
        return removed

    def _unsettled(self, run_id: str) -> bool:
        """Whether a process was killed, or found the disk full, before it was done with a run."""
        left = next((self.root / "runs" / run_id).glob(f".{AUDIT}.*.new"), None)
        return left is not None or bool(self._temporaries(run_id))

    def _tidy(self, run_id: str, result: str | None, doomed: Callable[[int], bool]) -> Sequence[str]:
        """Gives the result that a run's row names its place, removes what killed processes left, and says what that was.

        Args:
            run_id: the run.
            result: what the row names.
            doomed: says whether the leftovers of a process may go.
        """
        folder, removed = self.root / "runs" / run_id, []
        there = self._folder(run_id, result)
        if there != folder:
            if folder.exists():
                old = folder.with_name(f".{run_id}.{mark()}.deleted")
                folder.rename(old)
                shutil.rmtree(old, ignore_errors=True)
            there.rename(folder)
            sync(folder.parent)
        for path in self._temporaries(run_id):
            pid = path.name.split(".")[-2]
            if pid.isdecimal() and doomed(int(pid)):
                shutil.rmtree(path, ignore_errors=True)
                removed.append(str(path))
        return removed

    def _load(self, run_id: str) -> StoredRun:
        with self.reading() as db:
            row = self._row(db, run_id)
        return self._run(row)

    def _run(
        self,
        row: sqlite3.Row,
        there: Collection[str] | None = None,
        *,
        read: Callable[..., dict[str, Any]] | None = read_record,
    ) -> StoredRun:
        """A row as a run.

        Args:
            row: the row.
            there: the names in the folder of runs, where many are looked at.
            read: reads the audit's rows.
        """
        status, reason = row["status"], row["reason"]
        if status == "running" and not alive(row["pid"], row["born"]):
            status = "interrupted" if row["finished"] is None else "finished"
            reason = "the process that trained it ended without a word"
        config: dict[str, Any] = {}
        dataset: dict[str, Any] = {}
        sums: dict[str, str] = {}
        rows: tuple[RowRecord, ...] = ()
        folder = self.root / "runs" / row["id"]
        if there is None or f".{row['id']}.{row['result']}.new" in there:
            folder = self._folder(row["id"], row["result"])
        audited = False
        wrong = "differs from the SHA-256 that is kept of it"
        what: str | None = "record"
        try:
            if fits("runs", row):
                wrong, what = "cannot be read", "config"
                config = brief_record(row["config"], "method", "backbone")
                what = "data"
                dataset = brief_record(row["dataset"], "name", "fingerprint")
                what = "audit"
                sums = brief_record(row["sums"])
                if bool(row["audited"]) != ("audit" in sums) or not _as_written(row["audit"], sums):
                    wrong = "differs from the SHA-256 that is kept of it"
                    raise Misfit
                audited = bool(row["audited"])
                if audited and not any(p.exists() for p in places(folder, row["id"], AUDIT, sums.get(AUDIT))):
                    audited, reason = False, f"its {AUDIT} is gone; uge audit {row['id']} measures it again"
                if audited and read:
                    rows = tuple(read(row["audit"], "rows")["rows"])
                what = None
        except (ValueError, TypeError):
            pass
        if what:
            status, audited, sums = "damaged", False, {}
            reason = (
                f"its {what} in store.sqlite {wrong}; train it again with --force, or uge runs delete {row['id']} "
                "removes it"
            )
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
            _of_files(row["sums"]) if sums else sums,
            partial(self._sums, row["id"]),
        )

    def _sums(self, run_id: str) -> Mapping[str, str]:
        """The SHA-256 of a run's files as the store keeps them now; none where the run is gone."""
        with self.reading() as db:
            row = db.execute("SELECT sums FROM runs WHERE id = ?", (run_id,)).fetchone() if db else None
        return _of_files(row["sums"]) if row else {}

    def _not_found(self, db: sqlite3.Connection | None, run_id: str) -> RunNotFound:
        known = (
            [r["id"] for r in db.execute(f"SELECT id FROM runs WHERE status != '{_DELETING}' ORDER BY created DESC")]
            if db
            else []
        )
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

    def _connect(self, how: str = "") -> sqlite3.Connection:
        path = self.root / "store.sqlite"
        name = f"{path.resolve().as_uri()}?{how}" if how else str(path)
        db = sqlite3.connect(name, timeout=PATIENCE, isolation_level=None, uri=bool(how))
        db.row_factory = sqlite3.Row
        return db

    def _connect_to_read(self) -> sqlite3.Connection:
        """A connection that needs to write nothing: not where nothing may be written, and not where the disk is full.

        SQLite's write-ahead logging makes files beside the store even to read it.
        """
        log = self.root / "store.sqlite-wal"
        if self.writable or log.exists():
            db = self._connect()
            try:
                db.execute("PRAGMA user_version").fetchone()
                return db
            except sqlite3.OperationalError as error:
                db.close()
                if not getattr(error, "sqlite_errorname", "").startswith(_READ_ANYWAY):
                    raise
        if not (log.exists() and log.stat().st_size):
            return self._connect("mode=ro&immutable=1")
        # Of a log that a killed process left: an index of it in memory, and no locks, as nobody can write.
        db = self._connect("mode=ro&vfs=unix-none")
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
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
            db = self._connect_to_read()
            # Version 0: another process is just making the tables.
            made = self._format(db)
            if made == BEFORE:
                db.close()
                self._upgrade()
                db = self._connect_to_read()
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
            make_folder(self.root)
            make_folder(self.root / "runs")
            db = self._connect()
            try:
                self._format(db)  # before anything changes: a store of another format stays as it is
                use_wal(db)
                db.execute("PRAGMA synchronous = FULL")  # what COMMIT says is on the disk
                db.execute("PRAGMA temp_store = MEMORY")
                db.execute("BEGIN IMMEDIATE")
                try:
                    made = self._format(db)
                    if made == BEFORE:
                        upgrade.bring_up(db, self.root)
                    elif not made:
                        self._check_lost()
                        for statement in SCHEMA.split(";"):
                            db.execute(statement)
                        db.execute(f"PRAGMA user_version = {VERSION}")
                    else:
                        db.execute(NOTES)
                    keep_sealed(db)
                    yield db
                    db.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):  # SQLite has done so itself where the disk was full
                        db.execute("ROLLBACK")
                    raise
                if not made:
                    sync(self.root)
            finally:
                db.close()

    def _upgrade(self) -> None:
        """Brings a store of the format before up to this one, by the next writing.

        Raises:
            StoreError: it cannot be written.
        """
        if not self.writable:
            raise StoreError(
                f"the store {self.root} was written by the version of uge_core before (format {BEFORE}), and is brought up "
                f"to format {VERSION} when it is first opened, but nothing may be written there; open it, or a copy, where you "
                "may write, or name another store with --store DIR or $UGE_STORE"
            )
        with self.writing():
            pass

    def _format(self, db: sqlite3.Connection) -> int:
        """The store's format, 0 where its tables are not made yet.

        Raises:
            StoreError: it is another than this version's.
        """
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version not in (0, BEFORE, VERSION):
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
        named = getattr(error, "sqlite_errorname", "")
        if what == "written" and (filled := full(self.root, error)):
            return StoreError(
                f"the store {self.root} cannot be written: {filled}; nothing that was stored is lost: make room and try "
                f"again, or {another}"
            )
        if named.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            advice = "another process is using it: try again, or " + another
        elif isinstance(error, OSError) or named.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
            advice = "nothing that was stored is lost; name a folder you may write to with --store DIR or $UGE_STORE"
        elif named.startswith(("SQLITE_IOERR", "SQLITE_FULL", "SQLITE_NOMEM")):
            advice = f"the disk did not do what was asked ({named}): see to it, then uge doctor --check reads all that is stored"
        else:
            advice = f"{self.root / 'store.sqlite'} is damaged or no run store: move it away, or {another}"
        return StoreError(f"the store {self.root} cannot be {what}: {why}; {advice}")


@lru_cache(maxsize=1 << 12)
def _of_files(sums: str) -> Mapping[str, str]:
    """Of what a row says, the SHA-256 of files; the others are of texts."""
    return {name: value for name, value in read_record(sums).items() if "." in name}


def _sums(row: sqlite3.Row) -> Mapping[str, str]:
    """What a row says the SHA-256 of its files and texts are; nothing where it cannot be read."""
    with suppress(ValueError):
        return brief_record(row["sums"])
    return {}


def _as_written(text: str | None, sums: Mapping[str, str]) -> bool:
    """Whether the rows of an audit, all or those set apart, are as they were written; none were asked for where None."""
    if text is None:
        return True
    lead = text.startswith(LEAD_HEAD)
    return sums.get("lead" if lead else "audit") == (lead_sum(text) if lead else text_sum(text))


class Floors(MutableMapping[str, Any]):
    """What the audit would otherwise compute again for every run (random floors), kept in the store."""

    def __init__(self, store: RunStore) -> None:
        """A view of the store's table."""
        self._store = store

    def __getitem__(self, key: str) -> Any:
        with self._store.reading() as db:
            row = db.execute("SELECT * FROM floors WHERE key = ?", (key,)).fetchone() if db else None
        if row is None or not fits("floors", row):  # one that was changed is measured again
            raise KeyError(key)
        return json.loads(row["value"])

    def about(self, graph: str) -> dict[str, Any]:
        """All of a graph with this fingerprint, at once."""
        with self._store.reading() as db:
            rows = db.execute("SELECT * FROM floors WHERE instr(key, ?)", (graph,)).fetchall() if db else []
        return {row["key"]: json.loads(row["value"]) for row in rows if fits("floors", row)}

    def __setitem__(self, key: str, value: Any) -> None:
        with self._store.writing() as db:
            db.execute("INSERT OR REPLACE INTO floors (key, value) VALUES (?, ?)", (key, dumps(value)))

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
