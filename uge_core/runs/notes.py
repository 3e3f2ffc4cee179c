"""A note that somebody pins to a run: kept in the store, shown beside the run, printed in reports."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from uge_core.errors import ConfigError, StoreError
from uge_core.runs.database import fits
from uge_core.runs.store import RunStore

MOST = 2_000
"""Characters of a note."""


def notes_of(store: RunStore, run_ids: Iterable[str]) -> Mapping[str, str]:
    """The notes of some runs by their ids; of a run without one there is nothing.

    Raises:
        StoreError: a note is not as it was written.
    """
    wanted = set(run_ids)
    found = {}
    with store.reading() as db:
        # The first stores of this format have no table of notes until they are written to.
        kept = db is not None and db.execute("SELECT 1 FROM sqlite_master WHERE name = 'notes'").fetchone()
        for row in db.execute("SELECT * FROM notes").fetchall() if db and kept else ():
            if row["run"] not in wanted:
                continue
            if not fits("notes", row):
                raise StoreError(
                    f"the note of run {row['run']} differs from its SHA-256; write it anew, or bring store.sqlite back "
                    "from a copy"
                )
            found[row["run"]] = row["text"]
    return found


def pin_note(store: RunStore, run_id: str, text: str) -> None:
    """Pins a note to a run in place of the one before; an empty one takes it away.

    Raises:
        RunNotFound: no such run.
        ConfigError: the note is too long.
    """
    text = text.strip()
    if len(text) > MOST:
        raise ConfigError(
            f"the note has {len(text):,} characters; at most {MOST:,} are kept, the rest belongs in a report"
        )
    store.load(run_id)
    with store.writing() as db:
        # Not replaced in place: what did not fit its SHA-256 before would stay marked as changed.
        db.execute("DELETE FROM notes WHERE run = ?", (run_id,))
        if text:
            db.execute("INSERT INTO notes (run, text, at) VALUES (?, ?, ?)", (run_id, text, time.time()))
