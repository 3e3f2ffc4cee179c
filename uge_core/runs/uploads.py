"""Files that were brought through the browser: a folder each below ``STORE/uploads``, for their user's eyes alone.

A folder is written under a temporary name, brought to the disk and renamed, and renamed again before its files go, so
that there is never half an upload: what a killed process leaves is not listed, and goes with the next upload or removal.
Files keep their names, but for what a path could not hold; nothing in them is looked at here. They stay until they are
removed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from uge_core.datasets.kept import KeptGraphs
from uge_core.datasets.layouts.pyg_data import tensors_path
from uge_core.errors import GraphError, StoreError
from uge_core.files import full, make_folder, mark, remove, remove_abandoned, sync
from uge_core.runs.store import RunStore

LARGEST_MB = 200
"""The most a file may have; larger ones are read from where they lie."""
TABLES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet", ".xlsx")
MATRICES = (".npz", ".mtx", ".mtx.gz")
ALONE = (".graphml", ".gexf", ".gml", ".net", ".json", ".pt", ".xlsx")
"""Endings of files that may hold nodes and edges both, plain; all but the last two also gzipped."""
GRAPHS = (*MATRICES, *ALONE[:-1], *(f"{ending}.gz" for ending in ALONE[:-2]))
_LONGEST = 80
_PIECE = 2**20


@dataclass(frozen=True)
class Upload:
    """One upload.

    Attributes:
        name: its folder's name.
        folder: where it lies.
        files: the names of its files, sorted.
        size: of all its files, in bytes.
        created: when it came, seconds since 1970.
        written: the names that its files got, in the order in which they were given; empty for one that is listed.
    """

    name: str
    folder: Path
    files: tuple[str, ...]
    size: int
    created: float
    written: tuple[str, ...] = ()

    @property
    def size_words(self) -> str:
        """Its size for people."""
        return f"{self.size / 1e6:.1f} MB" if self.size >= 1e5 else f"{max(1, round(self.size / 1e3))} kB"

    @property
    def spec(self) -> str:
        """What it is loaded by."""
        return str(self.folder)


def stands_alone(name: str) -> bool:
    """Whether a file holds nodes and edges both, so that no second one is needed."""
    return name.lower().removesuffix(".gz").endswith(ALONE)


def uploads_folder(store: RunStore) -> Path:
    """Where uploads lie."""
    return store.root.resolve() / "uploads"


def save_upload(name: str, files: Sequence[tuple[str, BinaryIO]], store: RunStore) -> Upload:
    """Writes the files of one graph into a folder of their own.

    Args:
        name: what the graph is called; its folder gets a number where the name is taken.
        files: name and open content of each.
        store: below which they are kept.

    Raises:
        GraphError: a file that is empty, too large, or of a kind that is not read.
        StoreError: the folder cannot be written.
    """
    if not files:
        raise GraphError("no file was chosen; choose the file with one row per edge, and that with one row per node")
    root = uploads_folder(store)
    with _said(root):
        for folder in (store.root, root):
            make_folder(folder)
        remove_abandoned(root, ".")
        temporary = Path(tempfile.mkdtemp(prefix=".new-", suffix=f".{os.getpid()}", dir=root))
        try:
            written = []
            for called, (given, content) in zip(_called([given for given, _ in files]), files, strict=True):
                written.append(_free(temporary, called))
                _write(temporary / written[-1], given, content)
            sync(temporary)
            target = root / _named(root, name or files[0][0])
            temporary.rename(target)
            sync(root)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return replace(_look(target), written=tuple(written))


def list_uploads(store: RunStore) -> tuple[Upload, ...]:
    """All uploads, the newest first.

    Raises:
        StoreError: the folder cannot be read.
    """
    root = uploads_folder(store)
    with _said(root):
        folders = [p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".")] if root.is_dir() else []
        return tuple(sorted(map(_look, folders), key=lambda u: (-u.created, u.name)))


def upload_removal(name: str, store: RunStore) -> tuple[str, ...]:
    """What removing an upload would remove, and what it leaves, in sentences.

    Raises:
        GraphError: there is no such upload.
        StoreError: the folder cannot be read.
    """
    upload = _find(name, store)
    runs = sum(made_from(run.dataset.get("source"), upload.folder) for run in store.list(audits=False, archived=True))
    said = [f"{len(upload.files)} files of {upload.name} ({', '.join(upload.files)}), {upload.size_words}"]
    if runs:
        said.append(
            f"{runs} run{'s' * (runs != 1)} trained on it stay{'s' * (runs == 1)}, with their embeddings: delete "
            "them on the Runs page"
        )
    if doomed := list(store.scenarios_of(_only_here(upload.folder, store)).values()):
        said.append(f"{len(doomed)} scenario{'s' * (len(doomed) != 1)} of it: {', '.join(doomed)}")
    return tuple(said)


def remove_upload(name: str, store: RunStore) -> tuple[str, ...]:
    """Removes an upload for good and says what was removed.

    Raises:
        GraphError: there is no such upload.
        StoreError: the files cannot be removed.
    """
    upload = _find(name, store)
    data = _only_here(upload.folder, store)
    # The upload goes last: while anything made from it is left, it is listed and can be removed again.
    scenarios = store.drop_scenarios(data)
    with _said(upload.folder, "removed", "see to who may write there, and try again"):
        kept = [tensors_path(upload.folder / file, store.tensors) for file in upload.files if file.endswith(".pt")]
        copies = [path for path in kept if path.exists()]
        for path in copies:
            path.unlink()
        for graph in KeptGraphs(store.root).made_from(upload.folder):
            remove(graph.folder)
            copies.append(graph.folder)
        root = upload.folder.parent
        remove_abandoned(root, ".")
        doomed = root / f".old-{mark()}"
        upload.folder.rename(doomed)
        sync(root)
        shutil.rmtree(doomed)
        sync(root)
    return (*(str(upload.folder / file) for file in upload.files), *map(str, copies), *scenarios)


def _only_here(folder: Path, store: RunStore) -> set[str]:
    """Fingerprints of the graphs that runs on this upload alone are about."""
    runs = store.list(audits=False, archived=True)
    return store.last_of([run.id for run in runs if made_from(run.dataset.get("source"), folder)])


def _find(name: str, store: RunStore) -> Upload:
    there = list_uploads(store)
    upload = next((u for u in there if u.name == name), None)
    if upload is None:
        known = ", ".join(u.name for u in there) or "none"
        raise GraphError(f"there is no upload {name[:_LONGEST]!r}; there are: {known}")
    return upload


def made_from(source: object, folder: Path) -> bool:
    """Whether what says where data are names an upload's folder."""
    spec = source.get("spec") if isinstance(source, dict) else None
    return isinstance(spec, str) and (spec == str(folder) or spec.startswith((f"{folder}/", f"{folder}:")))


def _checked(given: str) -> str:
    """The name a file gets."""
    bare = re.split(r"[/\\]", given)[-1]
    name = re.sub(r"[^\w.()-]+", "_", bare).lstrip(".")[-_LONGEST:]
    if not name.lower().endswith((*TABLES, *GRAPHS)):
        allowed = ", ".join(e for e in dict.fromkeys((*TABLES, *GRAPHS)) if not e.endswith(".gz"))
        raise GraphError(
            f"{bare[:_LONGEST]}: files that can be uploaded end in {allowed}, tables and graphs also in .gz; save "
            "it as CSV UTF-8"
        )
    # Layouts go by the ending.
    ending = _ending(name)
    return name[: len(name) - len(ending)] + ending


def _called(given: Sequence[str]) -> list[str]:
    """The names that files get; a matrix says nothing of its rows, so a layout finds them by the name of their file."""
    names = [_checked(name) for name in given]
    if len(names) == 2 and names[0].endswith(MATRICES) and names[1].endswith((".csv", ".csv.gz", ".parquet")):
        names = ["edges" + _ending(names[0]), "nodes" + _ending(names[1])]
    return names


def _ending(name: str) -> str:
    return next(e for e in sorted((*TABLES, *GRAPHS), key=len, reverse=True) if name.lower().endswith(e))


def _free(folder: Path, name: str) -> str:
    number = 2
    free = name
    while (folder / free).exists():
        free, number = f"{number}-{name}", number + 1
    return free


def _named(root: Path, name: str) -> str:
    """A folder's name that is not taken."""
    stem = re.sub(r"(?i)(_?edges?)?(\.(csv|tsv|txt|parquet|xlsx|npz|mtx|pt|graphml|gexf|gml|net|json|gz))+$", "", name)
    slug = re.sub(r"[^\w.-]+", "-", stem).strip("-._")[:_LONGEST] or "graph"
    number = 2
    free = slug
    while (root / free).exists():
        free, number = f"{slug}-{number}", number + 1
    return free


def _write(path: Path, given: str, content: BinaryIO) -> None:
    size, most = 0, LARGEST_MB * 10**6
    with path.open("xb") as file:
        path.chmod(0o600)
        while piece := content.read(_PIECE):
            size += len(piece)
            if size > most:
                raise GraphError(
                    f"{given}: is larger than {LARGEST_MB} MB, the most that can be uploaded; give the place of its "
                    "folder on this machine instead"
                )
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    if not size:
        raise GraphError(f"{given}: is empty; a header and one row per edge or node are needed")


def _look(folder: Path) -> Upload:
    files = [p for p in folder.iterdir() if p.is_file()]
    return Upload(
        folder.name,
        folder,
        tuple(sorted(p.name for p in files)),
        sum(p.stat().st_size for p in files),
        folder.stat().st_mtime,
    )


@contextmanager
def _said(place: Path, what: str = "kept there", remedy: str = "name another --store") -> Iterator[None]:
    """Trouble with the disk as an error that names the place, and what is full where that is why."""
    try:
        yield
    except OSError as e:
        if filled := full(place, e):
            raise StoreError(
                f"{place}: uploads cannot be {what}: {filled}; nothing that was stored is lost: make room and try again, "
                f"or {remedy}"
            ) from None
        raise StoreError(f"{place}: uploads cannot be {what} ({e.strerror or e}); {remedy}") from None
