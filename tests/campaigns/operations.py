"""A kill before each change that a command makes to the store's files, and before each COMMIT: nothing is lost or half there.

And the order of these changes: whatever COMMIT promises is on the disk before, so that a power failure takes none of it.
"""

from __future__ import annotations

import io
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaigns._harness import CONFIG, DATA, ROWS, ended, fault, fork, operations, place, train
from uge_core.cli import main as cli
from uge_core.explore.whatif.edits import MergeValues
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.files import sealed, write_atomically
from uge_core.runs.sample_audit import first_start
from uge_core.runs.store import RunStore
from uge_core.runs.uploads import save_upload

FILES = [("edges.csv", b"source,target\n1,2\n"), ("nodes.csv", b"id,city\n1,A\n2,B\n")]


@dataclass(frozen=True)
class Action:
    """One command.

    Attributes:
        name: what it is.
        act: what is done, in the store below a folder.
        before: what must be there.
        whole: runs that must be finished whenever it is killed, and the factors that their vectors may have.
        promises: after its last COMMIT nothing may be missing on the disk.
        most: how many kills, evenly spread, where an action does the same for many files.
    """

    name: str
    act: Callable[[Path], object]
    before: Callable[[RunStore], object] = lambda store: train(store, "a1")
    whole: dict[str, list[float]] = field(default_factory=lambda: {"a1": [1.0]})
    promises: bool = True
    most: int | None = None


def _filled(store: RunStore) -> None:
    for run_id in ("a1", "b2"):
        train(store, run_id)
    Scenarios(store).save(Scenario(DATA["fingerprint"], (MergeValues("city", ("a", "b"), "ab"),), "together"))
    store.comparisons.mkdir(exist_ok=True)
    write_atomically(store.comparisons / "a1-b2.json", lambda file: file.write(sealed({"rows": []})))


def _begun(store: RunStore) -> None:
    train(store, "a1")
    ended(fork(lambda: store.begin("a1", CONFIG, DATA)))


def _upload(store: RunStore) -> None:
    train(store, "a1")
    save_upload("mine", [(name, io.BytesIO(content)) for name, content in FILES], store)


def format_5(store: RunStore) -> None:
    """The store as the version before would have left it."""
    _filled(store)
    with sqlite3.connect(store.root / "store.sqlite") as db:
        for table, columns in {
            "runs": ("result", "sums", "sha256"),
            "floors": ("sha256",),
            "jobs": ("boot", "sha256"),
            "rates": ("sha256",),
        }.items():
            for column in columns:
                db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute("DROP TABLE told")
        db.execute("PRAGMA user_version = 5")
    db.close()


def _store(folder: Path) -> RunStore:
    return RunStore(folder / "store")


ACTIONS = (
    Action("train", lambda at: train(_store(at), "b2")),
    Action("train for the first time", lambda at: train(_store(at), "b2"), lambda store: None, {}),
    Action("train again", lambda at: train(_store(at), "a1", 2.0), whole={"a1": [1.0, 2.0]}),
    Action("audit again", lambda at: _store(at).save_audit("a1", ROWS | {"audit_version": 2})),
    Action("fail", lambda at: _store(at).fail("a1", "not finite"), _begun),
    Action("archive", lambda at: _store(at).archive(["a1"])),
    Action("delete", lambda at: _store(at).delete("b2"), _filled),
    Action("delete the last", lambda at: (_store(at).delete("b2"), _store(at).delete("a1")), _filled, {}),
    Action("save a scenario", lambda at: _filled(_store(at))),
    Action("bring up to this format", lambda at: _store(at).list(), format_5, {"a1": [1.0], "b2": [1.0]}),
    Action("upload", lambda at: _upload(_store(at)), promises=False),
    Action(
        "purge",
        lambda at: cli.run(["store", "purge", "--older-than", "0d", "--store", str(at / "store")]),
        lambda store: (_filled(store), _upload(store)),
        {},
        promises=False,
    ),
    Action("first start", lambda at: first_start(_store(at)), lambda store: None, {}, promises=False, most=40),
)


def unsynced(seen: list[tuple[str, str]]) -> str | None:
    """The first change that a COMMIT came before it was on the disk, or None.

    A file's content is there once the file was synced, its name once the folder was.
    """
    contents: set[str] = set()
    names: dict[str, str] = {}  # a path whose name is not safe, by the folder that has to be synced
    for kind, path in seen:
        if kind == "write":
            contents.add(path)
            names[path] = str(Path(path).parent)
        elif kind in ("mkdir", "remove", "rmdir"):
            contents.discard(path)
            names = {p: f for p, f in names.items() if p != path and not f"{p}/".startswith(f"{path}/")}
            names[path] = str(Path(path).parent)
        elif kind == "rename":
            old, _, new = path.partition("\0")
            contents = {p.replace(old, new, 1) if p == old or p.startswith(f"{old}/") else p for p in contents}
            names = {p: f for p, f in names.items() if p != old and f != old}
            names |= {new: str(Path(new).parent)}
        elif kind == "fsync":
            contents.discard(path)
            names = {p: f for p, f in names.items() if f != path}
        elif kind == "commit" and (contents or names):
            return f"COMMIT comes before {sorted(contents | set(names))[0]} is on the disk"
    return None


def trials(action: Action, home: Path, most: int | None = None) -> Iterator[tuple[str, str | None]]:
    """A kill before each of an action's changes, or before `most` of them, evenly spread."""
    start = home / "start"
    start.mkdir()
    action.before(RunStore(start / "store"))

    def fresh() -> Path:
        folder = home / "now"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(start, folder)
        return folder

    folder = fresh()
    seen = operations(folder, lambda: action.act(folder)) or []
    if action.promises:
        yield f"{action.name}: order", unsynced([step for step in seen if "/store.sqlite" not in step[1]])
    steps = range(len(seen) + 1)
    for at in steps if most is None else sorted({round(i * len(seen) / (most - 1)) for i in range(most)}):
        folder = fresh()
        done = operations(folder, lambda folder=folder: action.act(folder), kill_at=at)  # type: ignore[misc]
        before = "the end" if done is not None else " ".join(seen[at]).replace(str(folder), "").replace("\0", " to ")
        yield f"{action.name}: before {at}, {before}", _fault(folder, action)


def _fault(folder: Path, action: Action) -> str | None:
    root = folder / "store"
    if action.name == "first start":
        first_start(RunStore(root))
        if left := [p.name for p in folder.iterdir() if p.name != "store"]:
            return f"left beside the store: {left}"
    if action.name == "delete" and "b2" in {run.id for run in RunStore(root).list()}:
        action.whole["b2"] = [1.0]
    try:
        return fault(root, whole=action.whole, uploads={"mine": 2})
    finally:
        action.whole.pop("b2", None) if action.name == "delete" else None


def run(seed: int, quick: bool) -> Iterator[tuple[str, str | None]]:
    """Each action, killed before each of its changes."""
    with place() as home, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        ACTIONS[-2].act(home)  # so that what is forked has loaded what a command needs
    for action in ACTIONS[:9] if quick else ACTIONS:
        with place() as home:
            yield from trials(action, home, 4 if quick else action.most)
