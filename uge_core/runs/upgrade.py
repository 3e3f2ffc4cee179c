"""A store of the format before becomes one of this format, in one transaction: what is there is hashed as it is.

Format 5 kept no SHA-256, counted signs of life by the time of day, and moved an earlier result away before the new one was
listed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from uge_core.files import Unsealed, digest, sealed, unsealed, write_atomically
from uge_core.runs.database import UPGRADE, VERSION, dumps, seal_all, text_sum
from uge_core.runs.stored_run import AUDIT, TRAINED


def bring_up(db: sqlite3.Connection, root: Path) -> None:
    """Changes the tables within a transaction that is open, and seals what lies beside them.

    Raises:
        OSError, sqlite3.Error: it cannot be done; nothing is changed where the transaction is taken back.
    """
    runs = root / "runs"
    for old in sorted(runs.glob(".*.old")):
        folder = runs / old.name.split(".")[1]
        if not folder.exists():
            old.rename(folder)
    for statement in UPGRADE.split(";"):
        db.execute(statement)
    for row in db.execute("SELECT id, audit, lead FROM runs").fetchall():
        db.execute("UPDATE runs SET sums = ? WHERE id = ?", (dumps(sums_of(runs / row["id"], row)), row["id"]))
    seal_all(db)
    for place in ("scenarios/*.json", "comparisons/*.json", "runs/*/whatif/*.json", "runs/*/projection-*.json"):
        for path in root.glob(place):
            _seal(path)
    # Probabilities that are made again in seconds.
    for path in runs.glob("*/projection-confidence-*.npz"):
        path.unlink()
    db.execute(f"PRAGMA user_version = {VERSION}")


def sums_of(folder: Path, row: sqlite3.Row) -> Mapping[str, str]:
    """SHA-256 of a run's files as they lie, and of its audit's texts."""
    names = [name for name in (*TRAINED, AUDIT) if (folder / name).is_file()]
    texts = {name: text_sum(row[name]) for name in ("audit", "lead") if row[name] is not None}
    return {name: digest(folder / name) for name in names} | texts


def _seal(path: Path) -> None:
    """Seals a record that is not yet; one that cannot be read stays as it is."""
    with suppress(ValueError):
        try:
            unsealed(path.read_bytes())
        except Unsealed:
            record: Any = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(record, dict):
                numbers = path.with_suffix(".npy")
                if numbers.is_file():
                    record |= {"numbers": digest(numbers)}
                write_atomically(path, lambda file: file.write(sealed(record)))
