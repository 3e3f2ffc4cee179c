"""Where a training that was cut off goes on: its parameters, Adam's moments and its streams of draws, on disk.

    STORE/checkpoints/KEY.STAGE.npz     KEY from the runs of a pass, STAGE cold or warm

Plain arrays beside one JSON text, no pickle. A file is written under a temporary name and renamed, so that a killed
process leaves the one before. It holds embeddings: who deletes a run deletes its checkpoints too.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.files import abandoned, make_folder, write_atomically

_SHARE = 20  # a checkpoint may take one part in so many of the time
_OFTEN = 1.0  # seconds between two at least


@dataclass(frozen=True, eq=False)
class Held:
    """What a checkpoint holds: `record` fit for JSON, and `arrays` by name."""

    record: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


class Checkpoint:
    """The checkpoint of one pass; its runs, in their order, say which."""

    def __init__(self, folder: Path, runs: Sequence[str], *, deterministic: bool = False) -> None:
        """Names it; nothing is read or written yet.

        Args:
            folder: where checkpoints lie.
            runs: ids of the runs that train together, in order.
            deterministic: what `fit` was asked for; one that was not goes on with other bits.
        """
        self.folder, self.runs, self.deterministic = folder, list(runs), deterministic
        key = json.dumps([self.runs, deterministic])
        self.key = hashlib.sha256(key.encode()).hexdigest()[:16]
        self._last, self._cost = time.monotonic(), 0.0

    def due(self) -> bool:
        """Whether so much time has passed that another may be written: it takes a twentieth of the time at most."""
        return time.monotonic() - self._last > max(_OFTEN, _SHARE * self._cost)

    def save(self, stage: str, record: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Writes it; a disk that takes nothing stops no training, as the checkpoint before stays."""
        began = time.monotonic()
        about = {"runs": self.runs, "deterministic": self.deterministic, "stage": stage}
        self.write(stage, Held({**record, **about}, dict(arrays)))
        self._last = time.monotonic()
        self._cost = self._last - began

    def write(self, stage: str, held: Held) -> None:
        """Puts what `save` or another process made of it to where it belongs."""
        content: dict[str, Any] = {"record": np.array(json.dumps(held.record)), **held.arrays}
        with suppress(OSError):
            make_folder(self.folder)
            write_atomically(self.folder / f"{self.key}.{stage}.npz", lambda file: np.savez(file, **content))

    def load(self, stage: str) -> Held | None:
        """What was written last; None where there is nothing that can be read."""
        return _read(self.folder / f"{self.key}.{stage}.npz", whole=True)

    def stages(self) -> dict[str, Held]:
        """What was written last of each stage."""
        names = [path.name.split(".")[1] for path in sorted(self.folder.glob(f"{self.key}.*.npz"))]
        return {name: held for name in names if (held := self.load(name)) is not None}


def checkpoints_in(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The checkpoints of a folder with their records, which name their `runs`."""
    for path in sorted(folder.glob("*.npz")) if folder.is_dir() else ():
        held = _read(path, whole=False)
        if held is not None:
            yield path, held.record


def drop(folder: Path, runs: Iterable[str]) -> list[str]:
    """Removes the checkpoints that hold one of `runs`, and what killed processes had left; says which files went."""
    gone, doomed = set(runs), []
    for path in sorted(folder.glob("*.npz")) if folder.is_dir() else ():
        held = _read(path, whole=False)
        if held is None or gone.intersection(held.record["runs"]):
            doomed.append(path)
    doomed += filter(abandoned, folder.glob(".*"))
    for path in doomed:
        path.unlink(missing_ok=True)
    return [str(path) for path in doomed]


def _read(path: Path, *, whole: bool) -> Held | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            record = json.loads(str(stored["record"]))
            names = [name for name in stored.files if name != "record"] if whole else []
            return Held(record, {name: stored[name] for name in names})
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None
