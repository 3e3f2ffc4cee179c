"""The SQLite file of a store: its tables, and how records go in and out."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from uge_core.audit.metrics import METRICS
from uge_core.machine import default_root as default_root

PATIENCE = 5.0  # seconds to wait for another writer
VERSION = 5
"""The format of the tables; a store of any other is refused."""
SCHEMA = """
CREATE TABLE runs (
  id TEXT PRIMARY KEY, status TEXT NOT NULL, created REAL NOT NULL, finished REAL, seconds REAL, device TEXT,
  pid INTEGER, born TEXT, reason TEXT, config TEXT NOT NULL, dataset TEXT NOT NULL, audit TEXT, lead TEXT,
  archived REAL
);
CREATE TABLE floors (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, status TEXT NOT NULL, lane TEXT NOT NULL, settings TEXT NOT NULL,
  created REAL NOT NULL, started REAL, ended REAL, pid INTEGER, born TEXT, beat REAL, cancel REAL,
  progress TEXT, runs TEXT, reason TEXT, remedy TEXT
);
CREATE TABLE rates (
  what TEXT NOT NULL, graph TEXT NOT NULL, kind TEXT NOT NULL, machine TEXT NOT NULL, work REAL NOT NULL,
  seconds REAL NOT NULL, at REAL NOT NULL
)
"""
RUN_COLUMNS = (
    "id, status, created, finished, seconds, device, pid, born, reason, config, dataset, archived,"
    " audit IS NOT NULL AS audited"
)
"""What is read of every run; its audit is another matter."""


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
    """Sets the rows apart anew where that is out of date; an audit that cannot be read is left as it is."""
    stale = "SELECT id, audit FROM runs WHERE audit IS NOT NULL AND substr(lead, 1, ?) IS NOT ?"
    for row in db.execute(stale, (len(LEAD_HEAD), LEAD_HEAD)).fetchall():
        with suppress(ValueError, TypeError, AttributeError):
            lead = lead_text(read_record(row["audit"], "rows")["rows"])
            db.execute("UPDATE runs SET lead = ? WHERE id = ?", (lead, row["id"]))


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
