"""The run store: one SQLite file for what is listed, one folder a run for what is large.

    STORE/store.sqlite      runs (status, config, data, audit), the audit's random floors, the queue of jobs, how
                            fast this machine was
    STORE/checkpoints/      where trainings that were cut off go on (`checkpoint`)
    STORE/tensors/          what .pt files hold, for the dashboard, which does not load torch
    STORE/scenarios/        edits of graphs on trial (`whatif.scenario`)
    STORE/comparisons/      differences of two runs, measured in pairs
    STORE/runs/RUN_ID/      config.json, embedding.npy, twin.npy, hidden.npz, history.csv,
                            diagnostics.json, environment.json, audit.json, parameters.npz (encoders)

A folder is written aside and renamed, so that a killed process leaves no half run. A run that is
trained again keeps its earlier result until the new one is complete: where a process is killed
between setting the old folder aside and renaming the new one, the one set aside is read and put
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
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.errors import RunNotFound, StoreError
from uge_core.files import alive, birth, write_aside
from uge_core.machine import default_root as default_root
from uge_core.runs.timing import Rate
from uge_core.training import checkpoint

_KEPT_RATES = 500
_PATIENCE = 5.0  # seconds to wait for another writer
# What each format adds to the one before; a store of an older one is brought up to date by the first write.
_SCHEMAS = (
    """
CREATE TABLE runs (
  id TEXT PRIMARY KEY, status TEXT NOT NULL, created REAL NOT NULL, finished REAL, seconds REAL, device TEXT,
  pid INTEGER, born TEXT, reason TEXT, config TEXT NOT NULL, dataset TEXT NOT NULL, audit TEXT
);
CREATE TABLE floors (key TEXT PRIMARY KEY, value TEXT NOT NULL);
""",
    """
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, status TEXT NOT NULL, lane TEXT NOT NULL, settings TEXT NOT NULL,
  created REAL NOT NULL, started REAL, ended REAL, pid INTEGER, born TEXT, beat REAL, cancel REAL,
  progress TEXT, runs TEXT, reason TEXT, remedy TEXT
);
CREATE TABLE workers (lane TEXT PRIMARY KEY, pid INTEGER NOT NULL, born TEXT, spawned REAL NOT NULL);
""",
    "ALTER TABLE runs ADD COLUMN lead TEXT",
    "ALTER TABLE runs ADD COLUMN archived REAL",
    """
CREATE TABLE rates (
  what TEXT NOT NULL, graph TEXT NOT NULL, kind TEXT NOT NULL, machine TEXT NOT NULL, work REAL NOT NULL,
  seconds REAL NOT NULL, at REAL NOT NULL
);
""",
)
_VERSION = len(_SCHEMAS)
_LEAD, _ARCHIVED, _RATES = 3, 4, 5  # the formats since which there are these
_COLUMNS = (
    "id, status, created, finished, seconds, device, pid, born, reason, config, dataset, audit IS NOT NULL AS audited"
)


@dataclass(frozen=True, eq=False)
class StoredRun:
    """One run as the store knows it; files are read when they are asked for.

    Attributes:
        id: the run's id, from its config and its data.
        status: running, finished, failed, interrupted, or damaged: its row cannot be read.
        created: when training began, seconds since 1970.
        finished: when the stored result was complete, or None.
        seconds: how long training took.
        device: what trained it.
        reason: why it failed or was interrupted, or what is damaged.
        config: the run's canonical config; it and `dataset` are shared by all who list the run, and not to be written to.
        dataset: name, fingerprint, num_nodes, num_edges, `ids`, the SHA-256 of the node ids, and
            `source`, how to load it again.
        audited: it has an audit.
        rows: the audit's rows without their cells; none where the store was asked to leave them out.
        folder: where its files lie.
        archived: when it was put out of sight, or None; lists and choices leave such a run out.
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
    audited: bool
    rows: tuple[dict[str, Any], ...]
    folder: Path
    archived: float | None = None

    @cached_property
    def audit(self) -> dict[str, Any] | None:
        """Its `uge-audit/1` record, or None."""
        return self._json("audit.json", constant=_refuse) if self.audited else None

    @cached_property
    def embedding(self) -> npt.NDArray[np.float32]:
        """(N, d) float32, memory-mapped."""
        return self._array("embedding.npy")

    @cached_property
    def twin(self) -> npt.NDArray[np.float32] | None:
        """(N, d) of the member that did not see the probe's test nodes, or None where the config has no twin."""
        return self._array("twin.npy") if self._has_twin("twin.npy") else None

    @cached_property
    def hidden(self) -> dict[str, npt.NDArray[np.bool_]]:
        """Per attribute, (N,) whose values the twin did not see."""
        return self._read("hidden.npz", _load_masks) if self._has_twin("hidden.npz") else {}

    @cached_property
    def parameters(self) -> dict[str, npt.NDArray[np.float32]]:
        """What an encoder was trained to, by name; empty where it was not kept. Never exported."""
        return self._read("parameters.npz", _load_arrays) if (self.folder / "parameters.npz").exists() else {}

    @cached_property
    def history(self) -> pd.DataFrame:
        """A row every tenth epoch and one for the last: epoch, edge_loss, penalty, total."""
        table: pd.DataFrame = self._read("history.csv", pd.read_csv)
        return table

    @cached_property
    def diagnostics(self) -> dict[str, Any]:
        """What training noted: weights, imputation, split, members, notes."""
        return self._json("diagnostics.json")

    @cached_property
    def environment(self) -> dict[str, Any]:
        """The stamp of versions and device."""
        return self._json("environment.json")

    def frame(self) -> pd.DataFrame:
        """The audit's rows as a table; empty where the run has no audit."""
        return pd.DataFrame((self.audit or {}).get("rows", []))

    def check(self) -> None:
        """Opens what training stored.

        Raises:
            StoreError: a file is missing or damaged.
        """
        _ = self.embedding, self.twin, self.hidden, self.diagnostics

    def _has_twin(self, name: str) -> bool:
        return self.config.get("exposure") == "both" or (self.folder / name).exists()

    def _read(self, name: str, reader: Callable[[Path], Any]) -> Any:
        path = self.folder / name
        if not path.exists():
            raise StoreError(
                f"run {self.id} ({self.status}) has no {name} in {self.folder}; train it again with --force"
            )
        try:
            return reader(path)
        except OSError as error:
            # numpy says OSError without a number of a file it cannot make out.
            why = error.strerror or "truncated, or of another kind"
        except (ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
            why = str(error) if isinstance(error, _Misfit) else "truncated, or of another kind"
        raise StoreError(f"{path} of run {self.id} cannot be read ({why}); train it again with --force")

    def _array(self, name: str) -> npt.NDArray[np.float32]:
        def reader(path: Path) -> npt.NDArray[np.float32]:
            array: npt.NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
            wanted = (self.dataset.get("num_nodes"), self.config.get("dim"))
            if array.ndim != 2 or any(w is not None and w != n for w, n in zip(wanted, array.shape, strict=True)):
                raise _Misfit(
                    f"shape {array.shape}, the run has {wanted[0]} nodes and {wanted[1] or 'some'} dimensions"
                )
            return array

        found: npt.NDArray[np.float32] = self._read(name, reader)
        return found

    def _json(self, name: str, constant: Callable[[str], Any] | None = None) -> dict[str, Any]:
        def reader(path: Path) -> dict[str, Any]:
            return _record(path.read_text(encoding="utf-8"), constant=constant)

        record: dict[str, Any] = self._read(name, reader)
        return record


class _Misfit(ValueError):
    """What a file holds is not what the run says; the text is fit for people."""


def _load_masks(path: Path) -> dict[str, npt.NDArray[np.bool_]]:
    # Opened here, as numpy leaves a file open that it cannot make out.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return dict(zip(stored["names"].tolist(), stored["masks"], strict=True))


def _load_arrays(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _refuse(constant: str) -> NoReturn:
    raise _Misfit(f"holds {constant}, which JSON has not")


def _record(text: str, *needed: str, constant: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """A JSON object with the keys needed; ValueError where it is none. `constant` reads a NaN or an infinity."""
    record = json.loads(text, parse_constant=constant)
    if not isinstance(record, dict) or not set(needed) <= set(record):
        raise ValueError
    return record


# Lists of a thousand runs are drawn again at each click, and their texts stay what they were. Whole audits are read
# of few runs at a time, and kept by nobody.
_brief = lru_cache(maxsize=1 << 14)(_record)
_lead = lru_cache(maxsize=1 << 11)(_record)


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

    def rates(self) -> Sequence[Rate]:
        """How fast passes and audits were, the newest first."""
        with self.reading() as db:
            if db is None or self._check_version(db) < _RATES:
                return []
            rows = db.execute("SELECT * FROM rates ORDER BY at DESC LIMIT ?", (_KEPT_RATES,)).fetchall()
        return [Rate(*row) for row in rows]

    def note_rate(self, rate: Rate) -> None:
        """Keeps how fast a pass or an audit was, and forgets the oldest of very many."""
        with self.writing() as db:
            db.execute("INSERT INTO rates VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(rate))
            db.execute(
                "DELETE FROM rates WHERE rowid IN (SELECT rowid FROM rates ORDER BY at DESC LIMIT -1 OFFSET ?)",
                (_KEPT_RATES,),
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
                "INSERT INTO runs (id, status, created, pid, born, config, dataset) VALUES (?, 'running', ?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET status = 'running', created = excluded.created, pid = excluded.pid,"
                " born = excluded.born, reason = NULL, archived = NULL, config = excluded.config, dataset = excluded.dataset",
                (run_id, time.time(), os.getpid(), birth(os.getpid()), _dumps(config), _dumps(dataset)),
            )
            return self._tidy(run_id, lambda pid: pid != os.getpid() and birth(pid) is None)

    def refresh(self, run_id: str, dataset: Mapping[str, Any]) -> None:
        """Notes where a run's data lie now and what they are called, of a run that was asked for again: it is in sight then."""
        with self.writing() as db:
            db.execute("UPDATE runs SET dataset = ?, archived = NULL WHERE id = ?", (_dumps(dataset), run_id))

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
        aside = self.root / "runs" / f".{run_id}.{os.getpid()}.new"
        old = aside.with_suffix(".old")
        with self._guarded():
            for leftover in (aside, old):
                shutil.rmtree(leftover, ignore_errors=True)
            aside.mkdir(parents=True)
            np.save(aside / "embedding.npy", np.ascontiguousarray(embedding, dtype=np.float32))
            if twin is not None:
                np.save(aside / "twin.npy", np.ascontiguousarray(twin, dtype=np.float32))
            if hidden:
                # Under keys of our own: an attribute may be called like an argument of savez.
                np.savez_compressed(
                    aside / "hidden.npz", names=np.array(list(hidden)), masks=np.stack(list(hidden.values()))
                )
            if parameters:
                held: dict[str, Any] = dict(parameters)
                np.savez(aside / "parameters.npz", **held)
            pd.DataFrame(dict(history or {})).to_csv(aside / "history.csv", index=False)
            for name, record in (
                ("config", config),
                ("diagnostics", diagnostics or {}),
                ("environment", environment or {}),
            ):
                (aside / f"{name}.json").write_text(_dumps(record, indent=2), encoding="utf-8")
        with self.writing() as db:
            folder = self.root / "runs" / run_id
            if folder.exists():
                folder.rename(old)
            aside.rename(folder)
            db.execute(
                "UPDATE runs SET status = 'finished', finished = ?, seconds = ?, device = ?, pid = NULL, born = NULL,"
                " reason = NULL, audit = NULL, lead = NULL WHERE id = ?",
                (time.time(), seconds, device, run_id),
            )
        # What a killed process had set aside is out of date now.
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
                "UPDATE runs SET audit = ?, lead = ? WHERE id = ?",
                (_dumps({"rows": brief}), _dumps({"rows": leading(brief)}), run_id),
            )
            if not done.rowcount:
                raise self._not_found(db, run_id)
            folder = self._folder(run_id)
            folder.mkdir(exist_ok=True)
            write_aside(folder / "audit.json", lambda file: file.write(_dumps(record, indent=2).encode()))

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
        self,
        *,
        audits: bool | Literal["lead"] = True,
        only: Sequence[str] | None = None,
        archived: bool = False,
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
            version = self._check_version(db)
            lead = audits == "lead" and version >= _LEAD
            what = "lead AS audit" if lead else "audit" if audits else "NULL AS audit"
            where = "" if only is None else f"WHERE id IN ({', '.join('?' * len(only))})"
            if only is None and not archived and version >= _ARCHIVED:
                where = "WHERE archived IS NULL"
            rows = db.execute(
                f"SELECT {_columns(version)}, {what} FROM runs {where} ORDER BY created DESC, id", only or ()
            ).fetchall()
        home = self.root / "runs"
        there = {path.name: path for path in home.iterdir()} if home.is_dir() else {}
        read = _lead if lead else _record if audits else None
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
            # Nobody trains it, so whatever lies aside is nobody's.
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
            found = [row for graph in graphs for row in db.execute(query, (graph,))] if db else []
        mine, others = ({row["graph"] for row in found if (row["id"] in run_ids) == chosen} for chosen in (True, False))
        return mine - others - {None}

    def scenarios_of(self, data: Collection[str]) -> dict[Path, str]:
        """The stored scenarios of graphs with these fingerprints: their names by their files."""
        found = {}
        for path in sorted(self.scenarios.glob("*.json")):
            with suppress(OSError, ValueError):
                made = _record(path.read_text(encoding="utf-8"), "data", "name")
                if made["data"] in data:
                    found[path] = str(made["name"])
        return found

    def drop_scenarios(self, data: Collection[str]) -> Sequence[str]:
        """Removes the scenarios of graphs with these fingerprints, wherever their edits stand; says which files went."""
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
                    db.execute("UPDATE jobs SET settings = ? WHERE id = ?", (_dumps(settings), row["id"]))

    def _aside(self, run_id: str) -> Sequence[Path]:
        """Folders of a run that lie aside: `.RUN.PID.new`, `.old` and `.deleted`."""
        return sorted((self.root / "runs").glob(f".{glob.escape(run_id)}.*"))

    def _tidy(self, run_id: str, doomed: Callable[[int], bool]) -> Sequence[str]:
        """Puts back what a killed process had set aside, removes the rest it left, and says what was removed.

        Args:
            run_id: the run.
            doomed: says whether the leftovers of a process may go.
        """
        folder, removed = self.root / "runs" / run_id, []
        if self._folder(run_id) != folder:
            self._folder(run_id).rename(folder)
        for path in self._aside(run_id):
            pid = path.name.split(".")[-2]
            if pid.isdecimal() and doomed(int(pid)):
                shutil.rmtree(path, ignore_errors=True)
                removed.append(str(path))
        return removed

    def _folder(self, run_id: str) -> Path:
        folder = self.root / "runs" / run_id
        if folder.exists():
            return folder
        return next((p for p in self._aside(run_id) if p.suffix == ".old"), folder)

    def _load(self, run_id: str) -> StoredRun:
        with self.reading() as db:
            row = None
            if db:
                columns = _columns(self._check_version(db))
                row = db.execute(f"SELECT {columns}, audit FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is None:
                raise self._not_found(db, run_id)
        return self._run(row)

    def _run(
        self,
        row: sqlite3.Row,
        there: Mapping[str, Path] | None = None,
        *,
        read: Callable[..., dict[str, Any]] | None = _record,
    ) -> StoredRun:
        """A row as a run; `there` are the folders by name, where many are looked at; `read` reads the audit's rows."""
        status, reason = row["status"], row["reason"]
        if status == "running" and not alive(row["pid"], row["born"]):
            status = "interrupted" if row["finished"] is None else "finished"
            reason = "the process that trained it ended without a word"
        config: dict[str, Any] = {}
        dataset: dict[str, Any] = {}
        rows: tuple[dict[str, Any], ...] = ()
        folder = (there or {}).get(row["id"]) or self._folder(row["id"])
        audited = bool(row["audited"]) and (folder / "audit.json").exists()
        try:
            config = _brief(row["config"], "method", "backbone")
            dataset = _brief(row["dataset"], "name", "fingerprint")
            if audited and read:
                rows = tuple(read(row["audit"], "rows")["rows"])
        except (ValueError, TypeError):
            what = "audit" if dataset else "data" if config else "config"
            status, audited = "damaged", False
            reason = f"its {what} in store.sqlite cannot be read; uge runs delete {row['id']} removes it"
        return StoredRun(
            row["id"], status, row["created"], row["finished"], row["seconds"], row["device"], reason, config, dataset,
            audited, rows, folder, row["archived"],
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

    @property
    def writable(self) -> bool:
        """Whether anything can be written here by who asks."""
        return os.access(self.root, os.W_OK)

    def _connect(self, *, reading: bool = False) -> sqlite3.Connection:
        path = self.root / "store.sqlite"
        # Write-ahead logging needs files beside it even to read, unless nothing can change.
        sealed = reading and not self.writable and not path.with_name("store.sqlite-wal").exists()
        name = f"{path.resolve().as_uri()}?mode=ro&immutable=1" if sealed else str(path)
        db = sqlite3.connect(name, timeout=_PATIENCE, isolation_level=None, uri=sealed)
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
            yield db if self._check_version(db) else None
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
                _use_wal(db)
                db.execute("BEGIN IMMEDIATE")
                version = self._check_version(db)
                for schema in _SCHEMAS[version:]:
                    for statement in schema.split(";"):
                        db.execute(statement)
                if version < _LEAD:
                    _fill_lead(db)
                if version < _VERSION:
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
        if version == 0:
            self._check_lost()
        return version

    def _check_lost(self) -> None:
        """Refuses a store whose list of runs is gone while the runs are there."""
        folders = self.root / "runs"
        if folders.is_dir() and any(p.is_dir() for p in folders.iterdir()):
            raise StoreError(
                f"the store {self.root} has runs but {self.root / 'store.sqlite'}, their list, is empty or gone; bring it back from a copy, or name another store with --store DIR or $UGE_STORE"
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
            db.execute("INSERT OR REPLACE INTO floors VALUES (?, ?)", (key, _dumps(value)))

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


def _columns(version: int) -> str:
    """What is read of a run in a store of this format."""
    return f"{_COLUMNS}, {'archived' if version >= _ARCHIVED else 'NULL AS archived'}"


LEADING = ("auc", "micro_f1")  # how the strongest attacker is shown first


def leading(rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The rows of an audit that lists of many runs show: what the strongest attacker reads, and link quality.

    Of an attribute without a row of the strongest, those of all attackers.
    """
    read = [r for r in rows if r.get("metric") in LEADING and r.get("attacker")]
    worst = {(r["metric"], r.get("attribute")) for r in read if r["attacker"] == "worst"}
    kept = [r for r in read if r["attacker"] == "worst" or (r["metric"], r.get("attribute")) not in worst]
    return [*kept, *(r for r in rows if r.get("metric") == "ndcg_at_10")]


def _fill_lead(db: sqlite3.Connection) -> None:
    """Sets the leading rows apart in a store of before; an audit that cannot be read is left as it is."""
    for row in db.execute("SELECT id, audit FROM runs WHERE audit IS NOT NULL").fetchall():
        with suppress(ValueError, TypeError, AttributeError):
            lead = _dumps({"rows": leading(_record(row["audit"], "rows")["rows"])})
            db.execute("UPDATE runs SET lead = ? WHERE id = ?", (lead, row["id"]))


def _dumps(record: Any, indent: int | None = None) -> str:
    return json.dumps(record, indent=indent, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _use_wal(db: sqlite3.Connection) -> None:
    """Switches a store to write-ahead logging, where it stays.

    SQLite does not wait here as it does for a transaction: while another connection switches too, it refuses at once.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
