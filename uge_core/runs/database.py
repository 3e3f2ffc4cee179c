"""The SQLite file of a store: its tables, and how records go in and out.

Each row has the SHA-256 of its other columns in `sha256`, and each run in `sums` those of its files and of its audit.
Connections of ours that write keep it so by triggers of their own: whatever else changes a row does not fit its
SHA-256, and never will again, as a row that did not fit is marked when it is changed.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from uge_core.audit.metrics import METRICS
from uge_core.machine import default_root as default_root

PATIENCE = 5.0  # seconds to wait for another writer
VERSION = 6
"""The format of the tables; one of the version before is brought up to it, any other is refused."""
BEFORE = 5
SCHEMA = """
CREATE TABLE runs (
  id TEXT PRIMARY KEY, status TEXT NOT NULL, created REAL NOT NULL, finished REAL, seconds REAL, device TEXT,
  pid INTEGER, born TEXT, reason TEXT, config TEXT NOT NULL, dataset TEXT NOT NULL, audit TEXT, lead TEXT,
  archived REAL, result TEXT, sums TEXT NOT NULL DEFAULT '{}', sha256 TEXT
);
CREATE TABLE floors (key TEXT PRIMARY KEY, value TEXT NOT NULL, sha256 TEXT);
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, status TEXT NOT NULL, lane TEXT NOT NULL, settings TEXT NOT NULL,
  created REAL NOT NULL, started REAL, ended REAL, pid INTEGER, born TEXT, beat REAL, cancel REAL,
  progress TEXT, runs TEXT, reason TEXT, remedy TEXT, boot TEXT, sha256 TEXT
);
CREATE TABLE rates (
  what TEXT NOT NULL, graph TEXT NOT NULL, kind TEXT NOT NULL, machine TEXT NOT NULL, work REAL NOT NULL,
  seconds REAL NOT NULL, at REAL NOT NULL, sha256 TEXT
);
CREATE TABLE told (
  people TEXT NOT NULL, attribute TEXT NOT NULL, sizes TEXT NOT NULL, at REAL NOT NULL, sha256 TEXT
);
CREATE TABLE IF NOT EXISTS notes (run TEXT PRIMARY KEY, text TEXT NOT NULL, at REAL NOT NULL, sha256 TEXT)
"""
NOTES = SCHEMA.rpartition(";")[2]
"""The table of notes, which the first stores of this format lack."""
UPGRADE = """
CREATE TABLE told (
  people TEXT NOT NULL, attribute TEXT NOT NULL, sizes TEXT NOT NULL, at REAL NOT NULL, sha256 TEXT
);
CREATE TABLE IF NOT EXISTS notes (run TEXT PRIMARY KEY, text TEXT NOT NULL, at REAL NOT NULL, sha256 TEXT);
ALTER TABLE runs ADD COLUMN result TEXT;
ALTER TABLE runs ADD COLUMN sums TEXT NOT NULL DEFAULT '{}';
ALTER TABLE runs ADD COLUMN sha256 TEXT;
ALTER TABLE floors ADD COLUMN sha256 TEXT;
ALTER TABLE jobs ADD COLUMN boot TEXT;
ALTER TABLE jobs ADD COLUMN sha256 TEXT;
ALTER TABLE rates ADD COLUMN sha256 TEXT;
UPDATE jobs SET beat = NULL, cancel = NULL
"""
"""From the format before; files are hashed besides."""
_SEALED = {
    # The audit's two texts, which are long, have their SHA-256 in `sums`.
    "runs": "id status created finished seconds device pid born reason config dataset archived result sums",
    "floors": "key value",
    "jobs": "id status lane settings created started ended pid born beat cancel progress runs reason remedy boot",
    "rates": "what graph kind machine work seconds at",
    "told": "people attribute sizes at",
    "notes": "run text at",
}
SEALED = {table: tuple(columns.split()) for table, columns in _SEALED.items()}
"""Of each table the columns that a row's SHA-256 is of."""
_CHANGED = "changed"  # in place of a SHA-256: the row did not fit it when it was written again
RUN_COLUMNS = ", ".join((*SEALED["runs"], "sha256", "audit IS NOT NULL AS audited"))
"""What is read of every run; its audit is another matter."""


def fits(table: str, row: sqlite3.Row) -> bool:
    """Whether a row is as it was written."""
    return bool(row["sha256"] == _row_sum(*(row[name] for name in SEALED[table])))


def text_sum(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# Rows of long lists are read again at each click, as their leading rows are.
lead_sum = lru_cache(maxsize=1 << 11)(text_sum)


@lru_cache(maxsize=1 << 12, typed=True)
def _row_sum(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode("ascii")).hexdigest()


def keep_sealed(db: sqlite3.Connection) -> None:
    """Rows that this connection writes get their SHA-256; those that did not fit theirs stay recognizable."""
    teach(db)
    for table, columns in SEALED.items():
        now = f"row_sum({', '.join(columns)})"
        before = f"row_sum({', '.join(f'OLD.{name}' for name in columns)})"
        kept = f"CASE WHEN OLD.sha256 IS {before} THEN {now} ELSE '{_CHANGED}' END"
        for name, event, seal in (("new", "INSERT", now), ("changed", f"UPDATE OF {', '.join(columns)}", kept)):
            db.execute(
                f"CREATE TEMP TRIGGER {table}_{name} AFTER {event} ON main.{table} BEGIN"
                f" UPDATE {table} SET sha256 = {seal} WHERE rowid = NEW.rowid; END"
            )


def teach(db: sqlite3.Connection) -> None:
    """Lets a connection's SQL call `row_sum`."""
    db.create_function("row_sum", -1, _row_sum, deterministic=True)


def seal_all(db: sqlite3.Connection, tables: Iterable[str] = tuple(SEALED)) -> None:
    """Gives all rows the SHA-256 of what they hold now."""
    teach(db)
    for table in tables:
        db.execute(f"UPDATE {table} SET sha256 = row_sum({', '.join(SEALED[table])})")


class Misfit(ValueError):
    """What a file holds is not what the run says; the text is fit for people."""


def read_record(text: str, *needed: str, constant: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """A JSON object with the keys needed; ValueError where it is none. `constant` reads a NaN or an infinity."""
    record = json.loads(text, parse_constant=constant)
    if not isinstance(record, dict) or not set(needed) <= set(record):
        raise ValueError
    return record


# Lists of a thousand runs are drawn again at each click, and their texts stay what they were. Whole audits are read
# of few runs at a time, and kept by nobody.
brief_record = lru_cache(maxsize=1 << 14)(read_record)


@lru_cache(maxsize=1 << 11)
def leading_record(text: str, *needed: str) -> dict[str, Any]:
    """The leading rows, out of what is set apart or of a whole audit."""
    record = read_record(text, *needed)
    return record if "metrics" in record else {"rows": leading(record["rows"])}


_LISTED = tuple(m.name for m in METRICS.values() if m.listed)
LEAD_HEAD = json.dumps({"metrics": _LISTED})[:-1]
"""How what is set apart begins; of another list of metrics, or of none, it is out of date."""


def leading(rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The rows of an audit that lists of many runs show, of metrics that are `listed`.

    Of leakage the strongest attacker's.

    Of an attribute without a row of the strongest, those of all attackers.
    """
    listed = [r for r in rows if r.get("metric") in _LISTED]
    attacks = [r for r in listed if r.get("attacker")]
    worst = {(r["metric"], r.get("attribute")) for r in attacks if r["attacker"] == "worst"}
    strongest = [r for r in attacks if r["attacker"] == "worst" or (r["metric"], r.get("attribute")) not in worst]
    return [*strongest, *(r for r in listed if not r.get("attacker"))]


def lead_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The leading rows as they are set apart."""
    return dumps({"metrics": _LISTED, "rows": leading(rows)})


def refresh_leads(db: sqlite3.Connection) -> None:
    """Sets the rows apart anew where that is out of date; an audit that cannot be read, or was changed, is left as it is."""
    stale = "SELECT id, audit, sums FROM runs WHERE audit IS NOT NULL AND substr(lead, 1, ?) IS NOT ?"
    for row in db.execute(stale, (len(LEAD_HEAD), LEAD_HEAD)).fetchall():
        with suppress(ValueError, TypeError, AttributeError):
            sums = read_record(row["sums"])
            if sums.get("audit") != text_sum(row["audit"]):
                continue
            lead = lead_text(read_record(row["audit"], "rows")["rows"])
            db.execute(
                "UPDATE runs SET lead = ?, sums = ? WHERE id = ?",
                (lead, dumps(sums | {"lead": text_sum(lead)}), row["id"]),
            )


def dumps(record: Any, indent: int | None = None) -> str:
    """JSON of a record, numpy values included."""
    return json.dumps(record, indent=indent, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def use_wal(db: sqlite3.Connection) -> None:
    """Switches a store to write-ahead logging, where it stays.

    SQLite does not wait here as it does for a transaction: while another connection switches too, it refuses at once.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
