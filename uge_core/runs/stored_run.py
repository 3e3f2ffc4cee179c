"""One stored run, its files read when asked for, and only where they are as they were written."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.audit.base import RowRecord
from uge_core.audit.metrics import METRICS
from uge_core.errors import StoreError
from uge_core.files import digest, digest_anew
from uge_core.machine import default_root as default_root
from uge_core.runs.database import Misfit, read_record

TRAINED = (
    "embedding.npy",
    "twin.npy",
    "hidden.npz",
    "parameters.npz",
    "history.csv",
    "config.json",
    "diagnostics.json",
    "environment.json",
)
"""The files that training stores."""
AUDIT = "audit.json"


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
        config: the run's canonical config; it and `dataset` are shared by all who list the run, and not to be written
            to.
        dataset: name, fingerprint, num_nodes, num_edges, `ids`, the SHA-256 of the node ids, and
            `source`, how to load it again.
        audited: it has an audit.
        rows: the audit's rows without their cells; none where the store was asked to leave them out.
        folder: where its files lie.
        archived: when it was put out of sight, or None; lists and choices leave such a run out.
        sums: SHA-256 of its files by their names.
        sums_now: asks the store for them again.
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
    rows: tuple[RowRecord, ...]
    folder: Path
    archived: float | None = None
    sums: Mapping[str, str] = field(default_factory=dict)
    sums_now: Callable[[], Mapping[str, str]] | None = None

    @cached_property
    def audit(self) -> dict[str, Any] | None:
        """Its `uge-audit/1` record, or None."""
        return self._json(AUDIT, constant=refuse_constant) if self.audited else None

    @cached_property
    def signed(self) -> bool:
        """An AUC below .5 reads nothing: since version 3 of the audit attackers learn which way to read by themselves."""
        return any(r["metric"] in METRICS and METRICS[r["metric"]].since > 2 for r in self.rows)

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
        return self._read("parameters.npz", _load_arrays) if "parameters.npz" in self.sums else {}

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
        return self.config.get("exposure") == "both" or name in self.sums

    def faults(self) -> Iterator[str]:
        """What is wrong with its files, all of which are read anew."""
        for name in self.sums:
            try:
                self._whole(name, digest_anew)
            except StoreError as error:
                yield str(error)

    def _whole(self, name: str, read: Callable[[Path], str] = digest) -> Path:
        """Where a file lies that is as it was written.

        Raises:
            StoreError: there is none; the message says what to do.
        """
        remedy = f"measure it again with uge audit {self.id}" if name == AUDIT else "train it again with --force"
        wanted, path = self.sums.get(name), self.folder / name
        if wanted is None:
            raise StoreError(f"run {self.id} ({self.status}) has no {name} in {self.folder}; {remedy}")
        why = "is gone"
        for place in places(self.folder, self.id, name, wanted):
            try:
                if read(place) == wanted:
                    return place
                why = "differs from the SHA-256 that the store keeps of it: it is damaged, or was changed"
            except FileNotFoundError:
                pass
            except OSError as error:
                why = f"cannot be read ({error.strerror or error})"
        if self.sums_now is not None and self.sums_now() != self.sums:
            raise StoreError(f"run {self.id} was trained or audited again, or deleted, meanwhile; ask again")
        raise StoreError(f"{path} of run {self.id} {why}; it is not shown: {remedy}")

    def _read(self, name: str, reader: Callable[[Path], Any]) -> Any:
        path = self._whole(name)
        try:
            try:
                return reader(path)
            except FileNotFoundError:  # it has just got its place
                path = self._whole(name)
                return reader(path)
        except OSError as error:
            # numpy says OSError without a number of a file it cannot make out.
            why = error.strerror or "truncated, or of another kind"
        except (ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
            why = str(error) if isinstance(error, Misfit) else "truncated, or of another kind"
        raise StoreError(f"{path} of run {self.id} cannot be read ({why}); train it again with --force")

    def _array(self, name: str) -> npt.NDArray[np.float32]:
        def reader(path: Path) -> npt.NDArray[np.float32]:
            array: npt.NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
            wanted = (self.dataset.get("num_nodes"), self.config.get("dim"))
            if array.ndim != 2 or any(w is not None and w != n for w, n in zip(wanted, array.shape, strict=True)):
                raise Misfit(f"shape {array.shape}, the run has {wanted[0]} nodes and {wanted[1] or 'some'} dimensions")
            return array

        matrix: npt.NDArray[np.float32] = self._read(name, reader)
        return matrix

    def _json(self, name: str, constant: Callable[[str], Any] | None = None) -> dict[str, Any]:
        def reader(path: Path) -> dict[str, Any]:
            return read_record(path.read_text(encoding="utf-8"), constant=constant)

        record: dict[str, Any] = self._read(name, reader)
        return record


@dataclass(frozen=True, eq=False)
class Subject:
    """What an audit reads of a run, fit to be sent to another process."""

    id: str
    config: dict[str, Any]
    dataset: dict[str, Any]
    embedding: npt.NDArray[np.float32]
    twin: npt.NDArray[np.float32] | None
    diagnostics: dict[str, Any]

    @classmethod
    def of(cls, run: StoredRun) -> Subject:
        """That of a stored run."""
        twin = None if run.twin is None else np.asarray(run.twin)
        return cls(run.id, run.config, run.dataset, np.asarray(run.embedding), twin, run.diagnostics)


def places(folder: Path, run_id: str, name: str, sha256: str | None) -> Iterator[Path]:
    """Where a run's file may lie: in its folder, or, as results get their places meanwhile, in the one named as the run."""
    for path in dict.fromkeys((folder / name, folder.with_name(run_id) / name)):
        yield path
        if sha256 is not None:
            yield pending(path, sha256)


def pending(path: Path, sha256: str) -> Path:
    """Where a file with this SHA-256 lies that has not got its name yet, as whoever wrote it was killed."""
    return path.with_name(f".{path.name}.{sha256[:16]}.new")


def _load_masks(path: Path) -> dict[str, npt.NDArray[np.bool_]]:
    # Opened here, as numpy leaves a file open that it cannot make out.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return dict(zip(stored["names"].tolist(), stored["masks"], strict=True))


def _load_arrays(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def refuse_constant(constant: str) -> NoReturn:
    """Raises for a NaN or an infinity, which are no JSON."""
    raise Misfit(f"holds {constant}, which JSON has not")
