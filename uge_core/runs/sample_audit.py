"""The finished audit that a first start shows: runs on ``sample:town``, trained once, shipped with the package.

No debiasing, five lambdas of UGE-C (at 0 it is UGE-W), UGE-O, UGE-OK and UGE-ORK, three seeds each, GCN, region
treated. Groups of all attributes of the town together are thin, so that all but UGE-ORK take one-attribute ratios.
`make` trains and audits them anew, ``make sample-audit`` in a checkout calls it; `measure_again`, where the audit
alone changed, is ``python -m uge_core.runs.sample_audit audit``. To keep the file small the embeddings are rounded to
six significant bits before they are audited, and what an encoder was trained to, which a What-if needs, is kept of
seed 0 of `_WITH_ENCODER`, whose embeddings are not rounded. Each run says that it was shipped: ``dataset["shipped"]`` is
the version that made it.

The first page waits for the file to be unpacked. So arrays, which hardly get smaller, are only deflated, the rounded
ones in half precision and byte by byte, which saves a fifth; LZMA, which the rest is packed with, would save 3 % and
take three times as long.
"""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path, PurePosixPath

import numpy as np

from uge_core.arrays import FloatArray
from uge_core.datasets.layouts.sample import PLACES
from uge_core.errors import StoreError
from uge_core.files import full, mark, remove_abandoned, sync
from uge_core.graph.graph import AttributedGraph
from uge_core.machine import version
from uge_core.runs.database import refresh_leads
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun

FILE = "town-audit.zip"
LAMBDAS = (0.0, 0.3, 0.5, 0.9, 1.9)
SEEDS = (0, 1, 2)
EPOCHS = 200
_PLAN: tuple[tuple[tuple[str, ...], tuple[float, ...], dict[str, bool]], ...] = (
    (("none",), (), {}),
    (("uge-c",), LAMBDAS, {"independence": True}),
    (("uge-o",), (), {"independence": True}),
    (("uge-ok",), (0.3,), {"independence": True}),
    (("uge-ork",), (1.0,), {}),
)
_WITH_ENCODER = ("none", None)  # the first page's run A, and so the one that a What-if begins with
_LARGEST = 200 * 10**6  # bytes that the file may unpack into
_VECTORS = ("embedding.npy", "twin.npy")


def first_start(store: RunStore) -> bool:
    """Puts the sample audit into a store that is not there yet; a store that is, however empty, is left alone.

    Returns:
        Whether it did.

    Raises:
        StoreError: the store cannot be written.
    """
    place = next((folder / FILE for folder in PLACES if (folder / FILE).exists()), None)
    root = store.root
    remove_abandoned(root.parent, f".{root.name}.")
    if place is None or (root.exists() and any(root.iterdir())):
        return False
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        # Beside the store and renamed, so that there is never half of it, whoever else starts at the same time.
        folder = Path(tempfile.mkdtemp(prefix=f".{root.name}.", suffix=f".{os.getpid()}", dir=root.parent))
        try:
            temporary = folder / "store"
            _unpack(place, temporary)
            _take_in(RunStore(temporary))
            sync(temporary)
            try:
                temporary.rename(root)
            except OSError:
                if not (root / "store.sqlite").exists():
                    raise
                return False  # another process was quicker
            sync(root.parent)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        if filled := full(root, error):
            raise StoreError(
                f"the store {root} cannot be made: {filled}; make room, or name another with --store DIR"
            ) from None
        raise StoreError(
            f"the store {root} cannot be made: {error.strerror or error}; name another with --store DIR or $UGE_STORE"
        ) from None
    return True


def _take_in(store: RunStore) -> None:
    """Takes what was shipped as it is: its files were packed otherwise, and leading rows are of the metrics of then."""
    store.adopt(*(run.id for run in store.list(audits=False, archived=True)))
    with store.writing() as db:
        refresh_leads(db)
    with closing(sqlite3.connect(store.root / "store.sqlite")) as db, db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for path in store.root.rglob("*"):
        sync(path)


def shipped(runs: Sequence[StoredRun]) -> tuple[StoredRun, ...]:
    """Those of `runs` that came with the package."""
    return tuple(run for run in runs if run.dataset.get("shipped"))


def _unpack(place: Path, target: Path) -> None:
    target.mkdir(mode=0o700)
    with zipfile.ZipFile(place) as packed:
        if sum(info.file_size for info in packed.infolist()) > _LARGEST:
            raise StoreError(f"{place} is not the sample audit that came with this package; install it again")
        for info in packed.infolist():
            parts = PurePosixPath(info.filename).parts
            if ".." in parts or info.filename.startswith("/"):
                raise StoreError(f"{place} is not the sample audit that came with this package; install it again")
            packed.extract(info, target)
            if parts[-1] in _VECTORS:
                _widen(target / info.filename)


def _widen(path: Path) -> None:
    """Single precision, as a store has it, where the file holds bytes of half precision."""
    planes = np.load(path, allow_pickle=False)
    if planes.dtype == np.uint8:
        halves = np.ascontiguousarray(np.moveaxis(planes, 0, -1)).view("<f2")[..., 0]
        np.save(path, halves.astype(np.float32))


def _narrow(path: Path) -> bytes:
    """The file in half precision, first the low bytes of all numbers, then the high ones, where that loses nothing."""
    vectors = np.load(path, allow_pickle=False)
    half = vectors.astype("<f2")
    if not (half == vectors).all():
        return path.read_bytes()
    content = io.BytesIO()
    np.save(content, np.ascontiguousarray(np.moveaxis(half[..., None].view(np.uint8), -1, 0)))
    return content.getvalue()


def make(out: Path) -> None:
    """Trains and audits the runs, and writes them as one file."""
    from uge_core.datasets import load
    from uge_core.runs.sweep import sweep

    graph = load("sample:town")
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder) / "store")
        for methods, lams, options in _PLAN:
            sweep(
                graph,
                sensitive="region",
                methods=methods,
                lams=lams,
                seeds=SEEDS,
                backbones=("gcn",),
                epochs=EPOCHS,
                options=options,
                store=store,
                device="cpu",
                source={"spec": "sample:town", "attributes": None},
                audits=False,  # of what is shipped, below
            )
        for run in store.list():
            whole = run.config["seed"] == 0 and (run.config["method"], run.config["lambda"]) == _WITH_ENCODER
            _slim(run, whole)
            store.adopt(run.id)
            store.refresh(run.id, run.dataset | {"shipped": version("uge-core")})
        _measure(store, graph)
        _close(store.root / "store.sqlite")
        _pack(store.root, out)


def measure_again(out: Path) -> None:
    """Audits the runs in the file anew, which stay as they are."""
    from uge_core.datasets import load

    graph = load("sample:town")
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder) / "store")
        _unpack(out, store.root)
        _measure(store, graph)
        _close(store.root / "store.sqlite")
        _pack(store.root, out)


def _measure(store: RunStore, graph: AttributedGraph) -> None:
    """Audits every run of the store."""
    from uge_core.runs.audits import audit_record

    for run in store.list():
        store.save_audit(run.id, audit_record(run, graph, store))
        sys.stderr.write(f"{run.id}\n")


def _slim(run: StoredRun, whole: bool) -> None:
    """Rounds a run's embeddings and drops its parameters, unless it is kept whole."""
    if whole:
        return
    for name in _VECTORS:
        path = run.folder / name
        if path.exists():
            rounded = _rounded(np.load(path))
            path.unlink()  # the old one may be mapped
            np.save(path, rounded)
    (run.folder / "parameters.npz").unlink(missing_ok=True)


def _rounded(vectors: FloatArray) -> FloatArray:
    """To six significant bits, which half precision holds and which pack well.

    Relative to each number, as small coordinates beside a few large ones leak too: on a grid of 8 bits an attacker's
    AUC of an embedding that had shrunk fell from .66 to .59.
    """
    part, power = np.frexp(vectors)
    return np.asarray(np.round(np.ldexp(np.round(part * 64) / 64, power) * 2.0**24) / 2.0**24, dtype=np.float32)


def _close(path: Path) -> None:
    """Brings what is in SQLite's log into its one file."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("VACUUM")
    db.close()


def _pack(root: Path, out: Path) -> None:
    temporary = out.with_name(f".{out.name}.{mark()}")
    kept = [root / "store.sqlite", *sorted(p for p in (root / "runs").rglob("*") if p.is_file())]
    with zipfile.ZipFile(temporary, "w") as packed:
        for path in kept:
            info = zipfile.ZipInfo(path.relative_to(root).as_posix(), (2026, 1, 1, 0, 0, 0))
            info.compress_type, info.external_attr = zipfile.ZIP_LZMA, 0o600 << 16
            if path.suffix in (".npy", ".npz"):
                info.compress_type = zipfile.ZIP_DEFLATED
            content = _narrow(path) if path.name in _VECTORS else path.read_bytes()
            packed.writestr(info, content)
    temporary.replace(out)


if __name__ == "__main__":
    (measure_again if sys.argv[1:] == ["audit"] else make)(PLACES[0] / FILE)
