"""``pyg:NAME``: graphs of people that torch_geometric.datasets names, fetched when they are first named.

The first use fetches the file that PyG would fetch, says so, checks what came and keeps it in
``STORE/datasets``; later uses read that copy and reach no host. PyG's own loading is not used: it
saves and loads pickles. Beside the files lies ``source.json`` with where they came from, when, and
their SHA-256, which every later load compares.

Sources: torch_geometric.datasets (URL, keys, and the numbers of nodes and edges, which must be met).
PyG opens the .npz files with pickles allowed, but makes a tensor of every array, and a tensor takes
no objects: they are read here without. Of MovieLens the text files are unpacked and read as the
layouts movielens-1m and -100k; PyG's 80,000 edges of the latter are a training part of the 100,000
ratings read here. The pages of FacebookPagePage are organisations and people in public life.

Left out of those with people:

- what needs a pickle: LINKXDataset (pickled splits, and MATLAB files, which nothing here reads);
- what comes as loose or otherwise packed text: EmailEUCore, SNAPDataset, BitcoinOTC, JODIEDataset, Actor;
- what says nothing about a person: LastFM, MovieLens (the latest, small one), AmazonBook;
- GemsecDeezer, whose target is a list of genres and whose counts PyG does not state;
- what lies behind a page that asks for consent: AttributedGraphDataset, Yelp;
- GraphLandDataset, tables whose roles PyG works out while it loads them;
- KarateClub, which is part of PyG's code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.datasets.assemble import finish
from uge_core.datasets.bounded import check_archive
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.download import at_mirror, fetch
from uge_core.datasets.ids import refuse_numbers
from uge_core.datasets.layouts import movielens
from uge_core.datasets.layouts.base import Asked, Folder, Found, Layout
from uge_core.datasets.layouts.pyg_data import node_features, number_cells
from uge_core.datasets.tables import Table, counted
from uge_core.errors import DatasetMissing, GraphError
from uge_core.graph.graph import AttributedGraph, Column, Message
from uge_core.machine import default_root
from uge_core.progress import OnProgress, Progress
from uge_core.registry import unknown_name

PREFIX = "pyg:"
_SOURCE = "source.json"
_SCHEMA = "uge-download/1"
_MUSAE = ("edges", "features", "target")
_YANDEX = ("edges", "node_features", "node_labels")
_GRAPHMINING = "https://graphmining.ai/datasets/ptg"
_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
_HETEROPHILOUS = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"


@dataclass(frozen=True)
class Known:
    """A graph that can be asked for by name.

    Attributes:
        url: the file, as PyG has it.
        nodes: how many nodes it has; of MovieLens, users.
        edges: how many rows of edges, as PyG states them; of MovieLens, ratings.
        attribute: what the target is.
        keys: the arrays of edges, features and target in an .npz file.
        layout: else the layout of a zip's text files.
        members: the files of the zip that it needs.
    """

    url: str
    nodes: int
    edges: int
    attribute: str = ""
    keys: tuple[str, str, str] = _MUSAE
    layout: Layout | None = None
    members: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are kept."""
        return tuple(PurePosixPath(path).name for path in self.members or (self.url,))


_ML_1M, _ML_100K = movielens.LAYOUTS
KNOWN = {
    "LastFMAsia": Known(f"{_GRAPHMINING}/lastfm_asia.npz", 7_624, 55_612, "country"),
    "DeezerEurope": Known(f"{_GRAPHMINING}/deezer_europe.npz", 28_281, 185_504, "gender"),
    "Twitch:DE": Known(f"{_GRAPHMINING}/twitch/DE.npz", 9_498, 315_774, "mature"),
    "Twitch:EN": Known(f"{_GRAPHMINING}/twitch/EN.npz", 7_126, 77_774, "mature"),
    "Twitch:ES": Known(f"{_GRAPHMINING}/twitch/ES.npz", 4_648, 123_412, "mature"),
    "Twitch:FR": Known(f"{_GRAPHMINING}/twitch/FR.npz", 6_551, 231_883, "mature"),
    "Twitch:PT": Known(f"{_GRAPHMINING}/twitch/PT.npz", 1_912, 64_510, "mature"),
    "Twitch:RU": Known(f"{_GRAPHMINING}/twitch/RU.npz", 4_385, 78_993, "mature"),
    "GitHub": Known(f"{_GRAPHMINING}/github.npz", 37_700, 578_006, "developer"),
    "FacebookPagePage": Known(f"{_GRAPHMINING}/facebook.npz", 22_470, 342_004, "page_type"),
    "HeterophilousGraphDataset:Tolokers": Known(
        f"{_HETEROPHILOUS}/tolokers.npz", 11_758, 519_000, "banned", keys=_YANDEX
    ),
    "HeterophilousGraphDataset:Questions": Known(
        f"{_HETEROPHILOUS}/questions.npz", 48_921, 153_540, "active", keys=_YANDEX
    ),
    "MovieLens1M": Known(
        f"{_GROUPLENS}/ml-1m.zip",
        6_040,
        1_000_209,
        layout=_ML_1M,
        members=("ml-1m/users.dat", "ml-1m/ratings.dat", "ml-1m/movies.dat"),
    ),
    "MovieLens100K": Known(
        f"{_GROUPLENS}/ml-100k.zip",
        943,
        100_000,
        layout=_ML_100K,
        members=("ml-100k/u.data", "ml-100k/u.user", "ml-100k/u.item"),
    ),
}


def locate(spec: str, store: Path | None, *, may_fetch: bool, on_progress: OnProgress | None) -> tuple[Layout, Found]:
    """The files of a graph that was asked for by name, fetched where they are not there yet.

    Args:
        spec: ``pyg:NAME``, upper and lower case alike.
        store: below which they are kept; None: the default store.
        may_fetch: whether the user asked for it now.
        on_progress: told what is fetched; None: what is fetched is said on stderr.

    Raises:
        DatasetMissing: no such name, or the files are not there and did not come as they should.
        GraphError: the files are not those that were fetched.
        ConfigError: the mirror is not allowed.
    """
    asked = spec.removeprefix(PREFIX)
    name = next((k for k in KNOWN if k.lower() == asked.lower()), None)
    if name is None:
        raise DatasetMissing(f"{PREFIX}{asked[:100]}: " + unknown_name("dataset of PyG", asked[:100], tuple(KNOWN)))
    folder = (store or default_root()) / "datasets" / name.replace(":", "-")
    if not folder.is_dir():
        if not may_fetch:
            raise DatasetMissing(f"{PREFIX}{name}: is not in {folder.parent}, and is fetched only when it is named")
        _fetch(name, folder, on_progress or _say)
    return _layout(name, folder), _found(name, folder)


def _say(step: Progress) -> None:
    if step.stage == "note":
        sys.stderr.write(f"note: {step.text}\n")


def _layout(name: str, folder: Path) -> Layout:
    """The layout that reads the kept files, if they still are those that came."""
    title = f"PyG {name}"
    return Layout(title, title, (), partial(_read, KNOWN[name], _verified(KNOWN[name], folder)))


def _found(name: str, folder: Path) -> Found:
    """The files that are there, by what the layout calls them."""
    layout = KNOWN[name].layout
    files = layout.find(Folder.open(folder))[0].files if layout else {"data": folder / KNOWN[name].files[0]}
    return Found(name, files)


def _fetch(name: str, folder: Path, on_progress: OnProgress) -> None:
    """Makes the folder, whole or not at all."""
    known, called = KNOWN[name], PREFIX + name
    url = at_mirror(known.url)
    on_progress(Progress("note", 0, 0, f"{called} is not in {folder.parent} yet: fetching {url}"))
    try:
        folder.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.parent.mkdir(exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=f".{os.getpid()}", dir=folder.parent))
        try:
            came = temporary / PurePosixPath(known.url).name
            digest = fetch(url, came, called, on_progress)
            record: dict[str, Any] = {"schema": _SCHEMA, "dataset": called, "url": url, "sha256": digest}
            record |= {"bytes": came.stat().st_size, "fetched": time.strftime("%Y-%m-%d", time.gmtime())}
            if known.members:
                _unpack(known, came)
            record["files"] = {file: _sha256(temporary / file) for file in known.files}
            _read(known, record, _found(name, temporary), None)
            (temporary / _SOURCE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            try:
                temporary.rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was first
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except DatasetMissing:
        raise
    except GraphError as e:
        raise DatasetMissing(f"{called}: what came from {url} is not this graph and was not kept: {e}") from None
    except OSError as e:
        raise DatasetMissing(
            f"{called}: {folder.parent} cannot be written ({e.strerror or e}); make room, or name another store "
            "with --store or $UGE_STORE"
        ) from None


def _unpack(known: Known, archive: Path) -> None:
    """Writes the wanted members of a zip beside it, under names of ours, and removes it."""
    try:
        check_archive(archive)
        with zipfile.ZipFile(archive) as members:
            for member in members.namelist():
                if member.startswith(("/", "\\")) or ".." in member.replace("\\", "/").split("/"):
                    raise GraphError(f"{archive.name}: its member {member!r} would lie outside the folder")
            for member, file in zip(known.members, known.files, strict=True):
                with members.open(member) as source, (archive.parent / file).open("xb") as target:
                    shutil.copyfileobj(source, target)
    except KeyError as e:
        raise GraphError(f"{archive.name}: {e.args[0]}") from None
    except (GraphError, OSError):
        raise
    except Exception:  # a damaged archive fails in many ways
        raise GraphError(f"{archive.name}: is damaged or of an unknown kind") from None
    archive.unlink()


def _verified(known: Known, folder: Path) -> dict[str, Any]:
    """What is written about the files, which are as they came.

    Raises:
        GraphError: one of them is not.
    """
    again = f"delete {folder} to fetch it again"
    try:
        record: dict[str, Any] = json.loads((folder / _SOURCE).read_text(encoding="utf-8"))
        if record["schema"] != _SCHEMA or not all(isinstance(record[k], str) for k in ("url", "sha256", "fetched")):
            raise ValueError
        recorded = {file: record["files"][file] for file in known.files}
    except (OSError, ValueError, LookupError, TypeError):
        raise GraphError(f"{folder / _SOURCE}: is missing or damaged; {again}") from None
    for file, expected in recorded.items():
        try:
            digest = _sha256(folder / file)
        except OSError as e:
            raise GraphError(f"{folder / file}: cannot be read ({e.strerror or e}); {again}") from None
        if digest != expected:
            raise GraphError(
                f"{folder / file}: has changed since it came from {record['url']} (SHA-256 {digest[:16]}..., was "
                f"{str(expected)[:16]}...); put the file back, or {again}"
            )
    return record


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(known: Known, record: dict[str, Any], dataset: Found, asked: Asked) -> AttributedGraph:
    """The graph, with a note on where it came from."""
    if known.layout:
        graph = known.layout.read(dataset, asked)
        _check_counts(dataset.name, known, graph.num_users or 0, graph.num_edges, ("user", "rating"))
    else:
        graph = _read_arrays(known, dataset, asked)
    text = f"{dataset.name}: fetched from {record['url']} on {record['fetched']}, SHA-256 {record['sha256']}"
    note = Message("note", "fetched", text, remedy="compare the SHA-256 where it matters that others have the same")
    return replace(graph, layout=f"PyG {dataset.name}", messages=(*graph.messages, note))


def _check_counts(where: str, known: Known, nodes: int, edges: int, what: tuple[str, str]) -> None:
    """Refuses another graph than the one PyG describes."""
    if (nodes, edges) != (known.nodes, known.edges):
        raise GraphError(
            f"{where}: found {counted(nodes, what[0])} and {counted(edges, what[1])}; "
            f"PyG has {known.nodes:,} and {known.edges:,}"
        )


def _read_arrays(known: Known, dataset: Found, asked: Asked) -> AttributedGraph:
    """The graph of an .npz file: edges (M, 2), features (N, F), target (N,)."""
    path = dataset.files["data"]
    edge_key, feature_key, target_key = known.keys
    edges, features, target = _arrays(path, known.keys)
    target = target.reshape(-1)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise GraphError(
            f"{path.name}: {edge_key}: found {edges.dtype} of shape {edges.shape}; "
            "whole numbers of shape (M, 2) are needed"
        )
    if target.dtype.kind not in "iufb":
        raise GraphError(f"{path.name}: {target_key}: found {target.dtype}; one number per node is needed")
    n = len(target)
    _check_counts(path.name, known, n, len(edges), ("node", "edge row"))
    refuse_numbers(path.name, edges.T, n, "row")
    table = Table(path.name, pd.DataFrame({target_key: number_cells(target)}, dtype="str"))
    role = Role("attribute", name=known.attribute, aliases=("target",))
    ends = (Column(path.name, edge_key, "source"), Column(path.name, edge_key, "target"))
    columns = NodeColumns.join(
        [
            assign(table, {target_key: role}, Role("auto"), asked),
            node_features(path, feature_key, features, n),
            NodeColumns(columns=ends),
        ]
    )
    rows = edges.astype(np.int64)
    return finish(dataset.name, "", rows[:, 0], rows[:, 1], n, columns)


def _arrays(path: Path, keys: tuple[str, ...]) -> list[npt.NDArray[Any]]:
    """The arrays of an .npz file, without pickle."""
    expected = f"the arrays {', '.join(keys)}, saved by numpy.savez as numbers"
    try:
        check_archive(path)
        with np.load(path, allow_pickle=False) as archive:
            lacking = [k for k in keys if k not in archive.files]
            if lacking:
                raise GraphError(f"{path.name}: lacks {', '.join(lacking)}; expected {expected}")
            return [np.asarray(archive[k]) for k in keys]  # a member that is no array comes as bytes
    except (GraphError, OSError):
        raise
    except Exception as e:  # numpy parses headers as Python: damaged ones fail in many ways
        pickled = "allow_pickle" in str(e) and zipfile.is_zipfile(path)
        reason = "holds Python objects, which are never loaded" if pickled else "is not a readable .npz file"
        raise GraphError(f"{path.name}: {reason}; expected {expected}") from None
