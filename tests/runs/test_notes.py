"""Notes are pinned to runs, replaced, taken away, and go with their run; a changed one is not shown as one's own."""

import sqlite3
from pathlib import Path

import pytest

from uge_core.errors import ConfigError, RunNotFound, StoreError
from uge_core.runs.notes import MOST, notes_of, pin_note
from uge_core.runs.store import RunStore

CONFIG = {"method": "none", "lambda": None, "sensitive": [], "backbone": "gcn", "seed": 0, "split_seed": 0, "epochs": 1}


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "store")
    for run_id in ("a1", "b2"):
        store.begin(run_id, CONFIG, {"name": "town", "fingerprint": "f" * 64, "num_nodes": 9, "num_edges": 9})
        store.interrupt(run_id)
    return store


def test_a_note_is_pinned_replaced_and_taken_away(store: RunStore) -> None:
    assert notes_of(store, ["a1"]) == {}
    pin_note(store, "a1", "  chosen by the board <b>\n")
    pin_note(store, "b2", "rejected")
    assert notes_of(store, ["a1", "b2", "c3"]) == {"a1": "chosen by the board <b>", "b2": "rejected"}
    pin_note(store, "a1", "chosen again")
    pin_note(store, "b2", " ")
    assert notes_of(store, ["a1", "b2"]) == {"a1": "chosen again"}


def test_a_note_goes_with_its_run(store: RunStore) -> None:
    pin_note(store, "a1", "x")
    store.delete("a1")
    assert notes_of(store, ["a1"]) == {}
    with pytest.raises(RunNotFound):
        pin_note(store, "a1", "x")


def test_too_long_a_note_is_refused_and_the_one_before_stays(store: RunStore) -> None:
    pin_note(store, "a1", "x" * MOST)
    with pytest.raises(ConfigError, match="2,001 characters; at most 2,000"):
        pin_note(store, "a1", "y" * (MOST + 1))
    assert notes_of(store, ["a1"]) == {"a1": "x" * MOST}


def test_a_note_that_somebody_changed_is_refused_until_it_is_written_anew(store: RunStore) -> None:
    pin_note(store, "a1", "not chosen")
    with sqlite3.connect(store.root / "store.sqlite") as db:
        db.execute("UPDATE notes SET text = 'chosen'")
    db.close()
    with pytest.raises(StoreError, match="differs from its SHA-256"):
        notes_of(store, ["a1"])
    assert notes_of(store, ["b2"]) == {}
    pin_note(store, "a1", "not chosen")
    assert notes_of(store, ["a1"]) == {"a1": "not chosen"}
