"""Graphs that took long to read, kept as arrays in the store, so that the next command maps them in place of reading.

A graph is kept under what was read: the SHA-256 of its files' content, the columns asked for, and the version of the
reader. So a file that changed, or another version, is read anew, and what was kept of the same files before goes then. A
kept graph is a folder that is written aside, brought to the disk and renamed; its record is sealed and has the SHA-256 of
each of its files. What is not as it was written is thrown away, and the graph read anew: it holds nothing that the files
do not. No pickle is written or loaded.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.datasets.arrays_of import apart, together
from uge_core.datasets.card import files_of
from uge_core.datasets.layouts.base import Asked, Folder, Found, Layout
from uge_core.errors import GraphError
from uge_core.files import digest, make_folder, mark, remove, remove_abandoned, sealed, sync, unsealed
from uge_core.graph.graph import AttributedGraph
from uge_core.machine import default_root, version

FOLDER = "graphs"
LEAST = 2**26
"""Bytes of the files from which on a graph is kept: these take over a second to read."""
_SCHEMA = "uge-kept-graph/1"
_RECORD = "graph.json"
_IDS = "ids.json"
_BESIDE = frozenset(["konect", "pajek", "workbook"])
"""Layouts that look at other files of their folder too."""
_MOST_BESIDE = 1_000  # files of a folder that are told apart for those
_DAMAGED = (
    FileNotFoundError,
    EOFError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    GraphError,
)
_LIBRARIES = ("numpy", "pandas", "pyarrow", "python-calamine", "networkx", "torch", "torch-geometric")  # that read
_NAME = 32  # letters of a folder's name


@dataclass(frozen=True)
class Kept:
    """A kept graph.

    Attributes:
        folder: where it lies.
        name: what the graph is called, or that it is damaged.
        files: what it was read from.
        size: bytes.
        made: when, in seconds since 1970.
    """

    folder: Path
    name: str
    files: tuple[str, ...]
    size: int
    made: float


class KeptGraphs:
    """The kept graphs of one store. Nothing here raises where the store cannot be written: the graph is read then."""

    def __init__(self, store: str | Path | None = None) -> None:
        """Names the store's folder; None means ``$UGE_STORE``, else ``./uge-store``."""
        self.root = (default_root() if store is None else Path(store)) / FOLDER

    def read(self, layout: Layout, dataset: Found, asked: Asked) -> AttributedGraph:
        """The graph as it was kept, else read, and kept where it is large.

        Raises:
            GraphError: as the layout's reader.
        """
        about = self._about(layout, dataset, asked)
        if about is None:
            return layout.read(dataset, asked)
        graph = self._find(about)
        if graph is None:
            graph = layout.read(dataset, asked)
            if self._about(layout, dataset, asked) == about:  # no file changed meanwhile
                with suppress(OSError):
                    self._keep(graph, about)
        return graph

    def list(self) -> Sequence[Kept]:
        """What is kept, by folder."""
        found = []
        with suppress(OSError):
            for folder in sorted(p for p in self.root.iterdir() if p.is_dir() and not p.name.startswith(".")):
                name, files = "damaged", ()
                with suppress(OSError, ValueError, LookupError, TypeError):
                    record = unsealed((folder / _RECORD).read_bytes())
                    name, files = record["graph"]["name"], tuple(path for path, _ in record["about"]["files"])
                size = sum(p.stat().st_size for p in folder.iterdir())
                found.append(Kept(folder, name, files, size, folder.stat().st_mtime))
        return found

    def made_from(self, folder: Path) -> Sequence[Kept]:
        """What is kept of files in a folder; what cannot be told counts."""
        place = folder.resolve()
        return [k for k in self.list() if not k.files or any(Path(f).is_relative_to(place) for f in k.files)]

    def _about(self, layout: Layout, dataset: Found, asked: Asked) -> dict[str, Any] | None:
        """What a graph is read from and how; None for a small one, or where that cannot be told."""
        try:
            files = _files(layout, dataset)
            if files is None or sum(path.stat().st_size for path in files) < LEAST:
                return None
            return {
                "files": [[str(path.resolve()), digest(path)] for path in files],
                "parts": {key: str(path.resolve()) for key, path in dataset.files.items()},
                "layout": layout.name,
                "name": dataset.name,
                "asked": None if asked is None else sorted(asked),
                "reader": _reader(),
            }
        except (OSError, GraphError):
            return None  # whoever reads it says what is wrong

    def _place(self, about: dict[str, Any]) -> Path:
        return self.root / hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:_NAME]

    def _find(self, about: dict[str, Any]) -> AttributedGraph | None:
        """The kept graph; one that is not as it was written is thrown away."""
        folder = self._place(about)
        if not folder.is_dir():
            return None
        try:
            record = unsealed((folder / _RECORD).read_bytes())
            if record["schema"] != _SCHEMA or record["about"] != about:
                raise ValueError("is of another graph")
            for name, sum_ in record["sums"].items():
                if digest(folder / name) != sum_:
                    raise ValueError(f"{name} differs from its SHA-256")

            def array(name: str) -> npt.NDArray[Any] | None:
                file = f"{name}.npy"
                if file not in record["sums"]:
                    return None
                mapped: npt.NDArray[Any] = np.load(folder / file, mmap_mode="r", allow_pickle=False)
                whole = mapped.dtype.kind == "i" and name != "directions"
                return mapped if whole else np.array(mapped)  # whole numbers are turned into 64 bits anyway

            ids = None
            if _IDS in record["sums"]:
                ids = json.loads((folder / _IDS).read_bytes().decode("utf-8", "surrogatepass"))
            return together(record["graph"], array, ids)
        except _DAMAGED:
            with suppress(OSError):
                remove(folder)
            return None
        except OSError:
            return None  # of the disk, which says nothing about what is kept

    def _keep(self, graph: AttributedGraph, about: dict[str, Any]) -> None:
        """Keeps a graph, in the place of what was kept of the same files before.

        Raises:
            OSError: it cannot be written; nothing is left then.
        """
        taken = apart(graph)
        if taken is None:
            return
        described, arrays, ids = taken
        try:
            if json.loads(json.dumps(described)) != _as_lists(described):
                return  # JSON would make something else of it
        except TypeError:
            return
        folder = self._place(about)
        make_folder(self.root)
        remove_abandoned(self.root, ".")
        new = folder.with_name(f".{folder.name}.{mark()}")
        try:
            new.mkdir(mode=0o700)
            for name, array in arrays.items():
                np.save(new / f"{name}.npy", array, allow_pickle=False)
            if ids is not None:
                text = json.dumps(ids, ensure_ascii=False)
                (new / _IDS).write_bytes(text.encode("utf-8", "surrogatepass"))
            written = sorted(new.iterdir())
            for path in written:
                sync(path)
            sums = {path.name: digest(path) for path in written}
            record = {"schema": _SCHEMA, "about": about, "graph": described, "sums": sums}
            (new / _RECORD).write_bytes(sealed(record))
            sync(new / _RECORD)
            sync(new)
            if folder.exists():  # another process was quicker
                return
            new.rename(folder)
            sync(self.root)
            if not all(Path(path).exists() for path, _ in about["files"]):  # an upload was removed meanwhile
                remove(folder)
                return
        finally:
            shutil.rmtree(new, ignore_errors=True)
        for other in self.list():
            if other.folder != folder and self._same_files(other.folder, about):
                with suppress(OSError):
                    remove(other.folder)

    def _same_files(self, folder: Path, about: dict[str, Any]) -> bool:
        """Whether what is kept was read from the same files in the same way, of which some differed, or by another reader."""
        try:
            kept = unsealed((folder / _RECORD).read_bytes())["about"]
            return all(kept[key] == about[key] for key in ("parts", "layout", "name", "asked"))
        except (OSError, ValueError, LookupError, TypeError):
            return False


class NothingKept:
    """Reads each graph anew, where nothing is to be kept."""

    def read(self, layout: Layout, dataset: Found, asked: Asked) -> AttributedGraph:
        """The graph.

        Raises:
            GraphError: as the layout's reader.
        """
        return layout.read(dataset, asked)


def _files(layout: Layout, dataset: Found) -> list[Path] | None:
    """All files that a graph is read from, or None where there are too many to tell."""
    files = dict.fromkeys(dataset.files.values())
    if "card" in dataset.files:
        files |= dict.fromkeys(files_of(dataset.files["card"]))
    if layout.name in _BESIDE:
        for folder in {path.parent for path in files}:
            files |= dict.fromkeys(folder / name for name in Folder.open(folder).files)
    return list(files) if len(files) <= _MOST_BESIDE else None


@cache
def _reader() -> str:
    """SHA-256 of what makes a graph of files, so that what another version read is not taken for its own."""
    package = Path(__file__).resolve().parents[1]
    made = hashlib.sha256(repr([(name, version(name)) for name in _LIBRARIES]).encode())
    made.update((package / "errors.py").read_bytes())
    for room in ("datasets", "graph"):
        for path in sorted((package / room).rglob("*.py")):
            made.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return made.hexdigest()


def _as_lists(value: Any) -> Any:
    """A record with lists in the place of tuples, as JSON has them."""
    if isinstance(value, dict):
        return {key: _as_lists(v) for key, v in value.items()}
    return [_as_lists(v) for v in value] if isinstance(value, list | tuple) else value
