"""Pictures that are made stay in the folder of their run, under the SHA-256 of all they were made from.

    STORE/runs/RUN_ID/projection-METHOD-KEY.npy, .json      coordinates (n, 2) float32, and what they are
    STORE/runs/RUN_ID/projection-confidence-KEY.npz         per attribute and person the probe's probability
    STORE/runs/RUN_ID/projection-neighbours-KEY.json        per attribute the share of like neighbours

They go with the run, and are no part of any export. A file is written under a temporary name and renamed, and has the
SHA-256 of its content in it, that of the coordinates stands in the .json: what differs is made again. What another
embedding, sample, setting or version made has another key, and is left unread.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray
from uge_core.audit.record import canonical
from uge_core.errors import ConfigError, StoreError
from uge_core.explore.projection.confidence import FOLDS, probe_confidence
from uge_core.explore.projection.methods.base import Projection
from uge_core.explore.projection.neighbours import ASKED, NEAREST, Alike, nearest, same_group_share
from uge_core.explore.projection.sample import Sample, draw_sample
from uge_core.files import digest, full, sealed, unsealed, write_atomically
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.registry import find, names
from uge_core.runs.stored_run import StoredRun

FEWEST_PROJECTED = 10
"""People under which there is nothing to project."""


@dataclass(frozen=True, eq=False)
class Picture:
    """One run's people in a plane.

    Attributes:
        coordinates: (n, 2) float32, in the order of `Sample.nodes`.
        about: method, settings, seed, versions, digests of embedding and sample, what it began from, and facts.
    """

    coordinates: npt.NDArray[np.float32]
    about: dict[str, Any]

    @property
    def key(self) -> str:
        """What it is kept under."""
        return _key({k: v for k, v in self.about.items() if k != "facts"})


def projections() -> dict[str, type[Projection]]:
    """The ways of projecting by name, those that are made at once first."""
    by_name: dict[str, type[Projection]] = {
        name: find("explore.projection.methods", name) for name in names("explore.projection.methods")
    }
    return dict(sorted(by_name.items(), key=lambda pair: (not pair[1].at_once, pair[0])))


def find_picture(run: StoredRun, method: str, sample: Sample, *, seed: int = 0) -> Picture | None:
    """The newest picture of this run's embedding, method and sample, or None."""
    wanted = _about(run, method, sample, seed, None)
    paths = sorted(run.folder.glob(f"projection-{method}-*.json"), key=lambda p: -p.stat().st_mtime_ns)
    for path in paths:
        with suppress(OSError, ValueError, KeyError):
            about = unsealed(path.read_bytes())
            numbers = about.pop("numbers")
            if {**about, "facts": None, "start": None} == {**wanted, "facts": None}:
                made = _numbers(path, numbers)
                if made.shape == (len(sample.nodes), 2):
                    return Picture(made, about)
    return None


def picture(run: StoredRun, method: str, sample: Sample, *, start: Picture | None = None, seed: int = 0) -> Picture:
    """The picture, from the run's folder where it is there, else made and kept.

    Args:
        run: a finished run.
        method: a name from ``projections()``.
        sample: who is drawn.
        start: the picture of the run before on a path, where this one begins; methods that need none ignore it.
        seed: random state.

    Raises:
        ConfigError: no such method, or too few people.
        StoreError: the embedding cannot be read, or the picture cannot be kept.
    """
    if len(sample.nodes) < FEWEST_PROJECTED:
        raise ConfigError(f"{len(sample.nodes)} people cannot be projected; {FEWEST_PROJECTED} at least are needed")
    projection: Projection = find("explore.projection.methods", method)()
    begin = None if projection.at_once else start
    about = _about(run, method, sample, seed, begin.key if begin else None)
    stem = f"projection-{method}-{_key(about)}"
    with suppress(OSError, ValueError, KeyError):
        kept = unsealed((run.folder / f"{stem}.json").read_bytes())
        return Picture(_numbers(run.folder / f"{stem}.npy", kept.pop("numbers")), kept)
    coordinates, facts = projection.place(
        np.asarray(run.embedding[sample.nodes], dtype=np.float32), begin.coordinates if begin else None, seed=seed
    )
    about |= {"facts": facts}
    # The numbers first: what has a description is whole.
    _keep(run, f"{stem}.npy", lambda file: np.save(file, coordinates))
    numbers = digest(run.folder / f"{stem}.npy")
    _keep(run, f"{stem}.json", lambda file: file.write(sealed(about | {"numbers": numbers})))
    return Picture(coordinates, about)


def find_confidence(run: StoredRun, sample: Sample, *, seed: int = 0) -> dict[str, FloatArray]:
    """By attribute, (n,) the probe's probability of each person's true value; empty where no job has made it."""
    with (
        suppress(OSError, ValueError, KeyError, zipfile.BadZipFile),
        _confidence_file(run, sample, seed).open("rb") as file,
        np.load(file, allow_pickle=False) as kept,
    ):
        named, values = kept["names"].tolist(), kept["values"]
        if str(kept["sha256"]) == _array_sum(named, values):
            return dict(zip(named, values, strict=True))
    return {}


def confidence(run: StoredRun, graph: AttributedGraph, sample: Sample, *, seed: int = 0) -> dict[str, FloatArray]:
    """As `find_confidence`, and made where it is not there.

    Raises:
        StoreError: the embedding cannot be read, or the numbers cannot be kept.
    """
    by_attribute = find_confidence(run, sample, seed=seed)
    if not by_attribute and graph.audited:
        embedding = np.asarray(run.embedding)
        by_attribute = {a.name: probe_confidence(embedding, a, sample.nodes, seed=seed) for a in graph.audited}
        named, values = list(by_attribute), np.stack(list(by_attribute.values()))
        name, made = _confidence_file(run, sample, seed).name, np.array(_array_sum(named, values))
        _keep(run, name, lambda file: np.savez_compressed(file, names=np.array(named), values=values, sha256=made))
    return by_attribute


def alike(run: StoredRun, graph: AttributedGraph, *, seed: int = 0) -> dict[str, Alike]:
    """By attribute, how alike the ten nearest people are in the full space; made once and kept.

    Raises:
        StoreError: the embedding cannot be read.
    """
    asked = draw_sample(graph, ASKED, seed=seed)
    what = {
        "embedding": embedding_digest(run),
        "sample": asked.digest,
        "nearest": NEAREST,
        "names": _names(graph.audited),
    }
    path = run.folder / f"projection-neighbours-{_key(what)}.json"
    with suppress(OSError, ValueError, TypeError):
        return {name: Alike(**entry) for name, entry in unsealed(path.read_bytes()).items()}
    among = np.arange(graph.num_nodes)[graph.people]
    embedding = np.asarray(run.embedding)
    near = nearest(embedding, asked.nodes, among)
    by_name = dict(zip(_names(graph.audited), same_group_share(graph.audited, asked.nodes, near, among), strict=True))
    record = sealed({name: asdict(one) for name, one in by_name.items()})
    with suppress(StoreError):
        _keep(run, path.name, lambda file: file.write(record))
    return by_name


def embedding_digest(run: StoredRun) -> str:
    """SHA-256 of the exported embedding's numbers."""
    array = np.ascontiguousarray(run.embedding)
    made = hashlib.sha256(repr(array.shape).encode())
    made.update(array.data)
    return made.hexdigest()


def _numbers(path: Path, sha256: str) -> npt.NDArray[np.float32]:
    """A picture's coordinates; ValueError where they are not as they were written."""
    path = path.with_suffix(".npy")
    if digest(path) != sha256:
        raise ValueError(f"{path} differs from its SHA-256")
    made: npt.NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
    return made


def _array_sum(named: Sequence[str], values: npt.NDArray[Any]) -> str:
    made = hashlib.sha256(json.dumps([list(named), values.shape, values.dtype.str]).encode("ascii"))
    made.update(np.ascontiguousarray(values).data)
    return made.hexdigest()


def _names(attributes: Sequence[Attribute]) -> list[str]:
    return [a.name for a in attributes]


def _confidence_file(run: StoredRun, sample: Sample, seed: int) -> Path:
    # The run's own data say whose values are read: a run is one graph's.
    what = {
        "embedding": embedding_digest(run),
        "sample": sample.digest,
        "data": run.dataset["fingerprint"],
        "folds": FOLDS,
        "seed": seed,
    }
    return run.folder / f"projection-confidence-{_key(what)}.npz"


def _about(run: StoredRun, method: str, sample: Sample, seed: int, start: str | None) -> dict[str, Any]:
    projection: Projection = find("explore.projection.methods", method)()
    return {
        "method": method,
        "settings": projection.settings(len(sample.nodes)),
        "seed": seed,
        "sample": sample.digest,
        "embedding": embedding_digest(run),
        "start": start,
        "versions": {p: _version(p) for p in projection.packages},
    }


def _version(package: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


def _key(what: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(what)).hexdigest()[:16]


def _keep(run: StoredRun, name: str, write: Callable[[IO[bytes]], Any]) -> None:
    """Writes a file of the run under a temporary name and renames it; a run that was deleted meanwhile gets no folder again."""
    try:
        write_atomically(run.folder / name, write)
    except OSError as error:
        if filled := full(run.folder, error):
            raise StoreError(
                f"run {run.id}: {name} cannot be kept: {filled}; nothing that was stored is lost: make room and try again"
            ) from None
        raise StoreError(
            f"run {run.id}: {name} cannot be kept in {run.folder} ({error.strerror or error}); see whether the run "
            "is still there and the disk has room"
        ) from None
