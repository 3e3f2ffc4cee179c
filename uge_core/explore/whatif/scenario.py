"""A scenario: a list of edits with a name and a hash, kept in the store; what was found with it lies with the run.

    STORE/scenarios/ID.json             the scenario; ID is the first twelve digits of the hash
    STORE/scenarios/draft-TOKEN.json    edits that nobody has saved yet, so that a reload of the page finds them
    STORE/runs/RUN_ID/whatif/ID.json    what one run gave, which goes when the run is deleted

The hash is the SHA-256 of canonical JSON of the data's fingerprint and the edits in their order: what is
done first can change what comes after. The name is no part of it. Inside an edit lists are sorted.

A draft goes when it is emptied, a week after it was last changed, and with the data it edits. Its token opens it for
reading: who keeps edits under it is who was given it by `keep_draft`, never who found it in an address. So what is
written holds edits alone, and nothing of whom somebody looked at.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uge_core.errors import ConfigError, StoreError
from uge_core.explore.whatif.edits import Edit, Threshold, edit_from_json
from uge_core.files import full, make_folder, sealed, unsealed, write_atomically
from uge_core.runs.database import read_record
from uge_core.runs.store import RunStore

SCHEMA = "uge-scenario/1"
MOST_EDITS = 100
DRAFT_SECONDS = 7 * 86_400.0
"""How long edits that nobody saved stay."""
_DRAFT = "draft-"


@dataclass(frozen=True)
class Scenario:
    """Edits of one graph, in order.

    Attributes:
        data: fingerprint of the graph.
        edits: what is done, the first first.
        name: what the user calls it.
    """

    data: str
    edits: tuple[Edit, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        if len(self.edits) > MOST_EDITS:
            raise ConfigError(f"{len(self.edits)} edits; allowed: {MOST_EDITS} in one scenario")

    @property
    def hash(self) -> str:
        """SHA-256 of data and edits."""
        record = {"schema": SCHEMA, "data": self.data, "edits": [e.to_json() for e in self.edits]}
        text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def id(self) -> str:
        """What it is known by in the store."""
        return self.hash[:12]

    @property
    def of_edges(self) -> bool:
        """It changes edges, so that an encoder would give other vectors."""
        return any(e.of_edges for e in self.edits)

    @property
    def threshold(self) -> float | None:
        """The last threshold set, or None."""
        probabilities = [e.probability for e in self.edits if isinstance(e, Threshold)]
        return probabilities[-1] if probabilities else None

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes it names."""
        names: set[str] = set()
        for e in self.edits:
            names.update(getattr(e, "nodes", ()), *getattr(e, "edges", ()))
        return tuple(sorted(names))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes it changes."""
        return tuple(dict.fromkeys(a for e in self.edits if (a := getattr(e, "attribute", None))))

    def with_edit(self, edit: Edit) -> Scenario:
        """One edit more."""
        return replace(self, edits=(*self.edits, edit))

    def undo(self) -> Scenario:
        """One edit less; itself without any."""
        return replace(self, edits=self.edits[:-1])

    def without(self, place: int) -> Scenario:
        """Without the edit at a place, counted from 0; itself where there is none."""
        return replace(self, edits=self.edits[:place] + self.edits[place + 1 :])

    def to_json(self) -> dict[str, Any]:
        """The scenario as a record; `from_json` is its inverse."""
        edits = [e.to_json() for e in self.edits]
        return {"schema": SCHEMA, "name": self.name, "data": self.data, "edits": edits, "sha256": self.hash}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Scenario:
        """The scenario of a record.

        Raises:
            ConfigError: it is none, or has been changed since it was written.
        """
        if record and "edits" not in record:
            raise ConfigError("the edits of this scenario were deleted; make it anew")
        if record.get("schema") != SCHEMA or not isinstance(record.get("edits"), list):
            raise ConfigError(f"this is no scenario: schema {record.get('schema')!r}, known: {SCHEMA}")
        edits = tuple(map(edit_from_json, record["edits"]))
        made = cls(str(record.get("data")), edits, str(record.get("name", "")))
        if record.get("sha256") not in (None, made.hash):
            raise ConfigError(f"scenario {made.name!r} was changed since it was written: its SHA-256 does not fit")
        return made


@dataclass(frozen=True)
class Draft:
    """Edits that nobody has saved yet.

    Attributes:
        token: what it is known by.
        scenario: the edits, and a name if one was typed; None where the file is damaged.
        changed: when it was last changed, seconds since 1970; of a damaged one the time of the file.
    """

    token: str
    scenario: Scenario | None
    changed: float

    @property
    def expired(self) -> bool:
        """It was not changed for longer than drafts are kept."""
        return time.time() - self.changed > DRAFT_SECONDS


@dataclass(frozen=True)
class StoredScenario:
    """A scenario of the store.

    Attributes:
        scenario: the scenario.
        created: when it was first saved, seconds since 1970.
    """

    scenario: Scenario
    created: float


class Scenarios:
    """The scenarios of a store."""

    def __init__(self, store: RunStore) -> None:
        """Those of `store`."""
        self.store = store
        self.folder = store.scenarios

    def save(self, scenario: Scenario) -> str:
        """Writes a scenario and returns its id; one with the same edits takes the new name.

        Raises:
            ConfigError: it has no name or no edit.
            StoreError: the store cannot be written.
        """
        if not scenario.name.strip() or len(scenario.name) > 200:
            raise ConfigError("a scenario needs a name of at most 200 letters; type one")
        if not scenario.edits:
            raise ConfigError("a scenario needs an edit at least; make one first")
        path = self._path(scenario.id)
        with _guarded(self.folder, "written"):
            make_folder(self.folder)
            created = _read(path).created if path.exists() else time.time()
            _write(path, scenario.to_json() | {"created": created})
        return scenario.id

    def list(self, data: str | None = None) -> list[StoredScenario]:
        """The scenarios that can be read, the newest first.

        Args:
            data: only those of the graph whose fingerprint begins so.
        """
        scenarios = []
        for path in self.folder.glob("*.json") if self.folder.is_dir() else ():
            if path.name.startswith(_DRAFT):
                continue
            with suppress(ConfigError, OSError, ValueError):
                scenarios.append(_read(path))
        mine = [s for s in scenarios if data is None or s.scenario.data.startswith(data)]
        return sorted(mine, key=lambda s: (-s.created, s.scenario.name))

    def load(self, scenario_id: str) -> StoredScenario:
        """One scenario.

        Raises:
            StoreError: there is none, or it cannot be read.
        """
        path = self._path(scenario_id)
        if not path.is_file():
            raise StoreError(f"no scenario {scenario_id[:40]!r} in {self.store.root}; it may have been deleted")
        with _guarded(self.folder, "read"):
            try:
                return _read(path)
            except ValueError:
                raise StoreError(f"{path} cannot be read; delete it") from None

    def delete(self, scenario_id: str) -> None:
        """Removes a scenario with what runs gave, from jobs that are over too; runs that were trained on it stay."""
        with _guarded(self.folder, "written"):
            self._path(scenario_id).unlink(missing_ok=True)
            for path in (self.store.root / "runs").glob(f"*/whatif/{_safe(scenario_id)}.json"):
                path.unlink(missing_ok=True)
        self.store.forget_edits(lambda made: str(made.get("sha256")).startswith(scenario_id))

    def keep_draft(self, token: str, scenario: Scenario) -> str:
        """Keeps edits that nobody has saved, in place of what the same token had; empty ones are removed.

        Drafts that nobody changed for a week go with it.

        Args:
            token: from an earlier call of the same person, or "" for a new one.
            scenario: the edits.

        Returns:
            The token, or "" where there is nothing to keep.

        Raises:
            StoreError: the store cannot be written.
        """
        with _guarded(self.folder, "written"):
            for draft in self.drafts():
                if draft.expired:
                    self.drop_draft(draft.token)
            if not scenario.edits:
                self.drop_draft(token)
                return ""
            token = token if _is_token(token) else secrets.token_hex(8)
            make_folder(self.folder)
            record = scenario.to_json() | {"name": "unsaved edits", "title": scenario.name}
            _write(self._draft_path(token), record | {"changed": time.time()})
        return token

    def draft(self, token: str, data: str) -> Scenario | None:
        """The edits that a token names; None where there are none of this graph that can be read, or they are too old.

        A draft that is too old goes.
        """
        if not _is_token(token) or (found := _read_draft(self._draft_path(token))) is None:
            return None
        if found.expired:
            with suppress(OSError):  # where nothing can be written it stays, and is not opened either
                self.drop_draft(token)
            return None
        return found.scenario if found.scenario and found.scenario.data == data else None

    def drafts(self) -> Sequence[Draft]:
        """All there are, damaged ones too, so that they can be removed."""
        found = map(_read_draft, sorted(self.folder.glob(f"{_DRAFT}*.json")))
        return [draft for draft in found if draft is not None]

    def drop_draft(self, token: str) -> Sequence[str]:
        """Removes a draft, where there is one; says which file went."""
        gone = []
        for path in self.folder.glob(f"{_DRAFT}*.json"):  # a token that leads out of the folder is none of these
            if _token_of(path) == token:
                path.unlink(missing_ok=True)
                gone.append(str(path))
        return gone

    def damaged(self) -> Sequence[Path]:
        """Files of saved scenarios that cannot be read, so that they can be removed; `list` leaves them out."""
        unread = []
        for path in sorted(self.folder.glob("*.json")):
            if not path.name.startswith(_DRAFT):
                try:
                    _read(path)
                except (ConfigError, OSError, ValueError):
                    unread.append(path)
        return unread

    def _draft_path(self, token: str) -> Path:
        return self.folder / f"{_DRAFT}{_safe(token)}.json"

    def keep(self, scenario_id: str, run_id: str, outcome: Mapping[str, Any]) -> None:
        """Keeps what a run gave under a scenario, with the run; one that was deleted meanwhile gets no folder again."""
        folder = self.store.load(run_id).folder / "whatif"
        with _guarded(folder, "written"):
            folder.mkdir(mode=0o700, exist_ok=True)
            _write(folder / f"{_safe(scenario_id)}.json", outcome)

    def results(self, scenario_id: str, run_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """What each of these runs gave, by run id, of those that were asked."""
        outcomes = {}
        for run_id in run_ids:
            path = self.store.load(run_id).folder / "whatif" / f"{_safe(scenario_id)}.json"
            with suppress(OSError, ValueError):
                outcomes[run_id] = unsealed(path.read_bytes())
        return outcomes

    def _path(self, scenario_id: str) -> Path:
        return self.folder / f"{_safe(scenario_id)}.json"


def _safe(scenario_id: str) -> str:
    """The id as a file's name; it comes out of an address."""
    return scenario_id if scenario_id.isalnum() else "none"


def _is_token(token: str) -> bool:
    return re.fullmatch("[0-9a-f]{16}", token) is not None


def _token_of(path: Path) -> str:
    return path.stem.removeprefix(_DRAFT)


def _read_draft(path: Path) -> Draft | None:
    """The draft of a file, which may be damaged; None where there is no file."""
    try:
        written = path.lstat().st_mtime
    except OSError:
        return None
    try:
        record = unsealed(path.read_bytes())
        made = Scenario.from_json(record | {"name": str(record.get("title", ""))})
        return Draft(_token_of(path), made, float(record.get("changed", 0.0)))
    except (ConfigError, OSError, TypeError, ValueError):
        return Draft(_token_of(path), None, written)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    write_atomically(path, lambda file: file.write(sealed(content)))


def _read(path: Path) -> StoredScenario:
    content = path.read_bytes()
    record = read_record(content.decode())
    made = Scenario.from_json(record)  # which says of edits that were changed that they were
    unsealed(content)
    return StoredScenario(made, float(record.get("created", 0.0)))


@contextmanager
def _guarded(folder: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if what == "written" and (filled := full(folder, error)):
            raise StoreError(
                f"{folder} cannot be written: {filled}; nothing is lost: make room and try again"
            ) from None
        raise StoreError(
            f"{folder} cannot be {what}: {error.strerror or error}; name a folder you may write to"
        ) from None
