"""A PyG ``Data`` saved by ``torch.save``: ``NAME.pt`` with edge_index, and x, y and further tensors of nodes.

Torch's own reader for untrusted files is used (``weights_only=True``) with the classes that PyG's own
objects consist of allowed beside tensors, only while it reads; any other pickle is refused. A
``HeteroData`` with one kind of nodes and one of edges is read as a Data. x becomes the features, y the
label unless it is named as an attribute, other tensors with one number per node get their roles
as columns of a table do.

This is the one layout that loads torch, and only when such a file is read. A web page leaves that to a worker, which
keeps the tensors as plain arrays (`keep_tensors`): the graph is made from them as it is from the file.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.assemble import finish
from uge_core.datasets.bounded import check_archive, too_large, unpacked_limit
from uge_core.datasets.columns import MAX_FEATURE, NodeColumns, Role, assign
from uge_core.datasets.edge_columns import ALLOWED, half_stored, usable
from uge_core.datasets.ids import refuse_numbers
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.records import other_numbering
from uge_core.datasets.tables import Table, counted
from uge_core.errors import GraphError, NotReadYet
from uge_core.files import write_atomically
from uge_core.graph.graph import AttributedGraph, Column, Message

_EXPECTED = "a torch_geometric.data.Data saved by torch.save"
_STORAGE = "torch_geometric.data.storage"
_PEEK = 2**20
_ONE_READS = Lock()
"""What torch's reader allows is one list for all threads."""
_WEIGHTS = ("edge_weight", "edge_attr")
_OF_OTHERS = re.compile(r"edge|idx|index|indices|perm|ptr|adj")
"""Names of tensors that do not have a row for each node."""
_NUMBERS = re.compile(r"n_id|node_ids?|input_id|orig_id|original_id").fullmatch
"""Names that PyG's loaders and subgraphs give the numbers of nodes in the graph they came from."""


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    path = dataset.files["data"]
    arrays, others = _arrays(path) if dataset.tensors is None else _kept(path, dataset.tensors)
    edges = arrays.pop("edge_index", None)
    if edges is None or edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind != "i":
        shown = "none" if edges is None else f"{edges.dtype} of shape {edges.shape}"
        moved = "; ToSparseTensor moved the edges to adj_t: save the Data before it" * ("adj_t" in others)
        raise GraphError(f"{path.name}: edge_index: found {shown}; an integer tensor of shape (2, E) is needed{moved}")
    n = _num_nodes(path, arrays, others, edges)
    refuse_numbers(path.name, edges, n, "column")
    source, target = edges.astype(np.int64)
    parts = [node_features(path, "x", arrays.pop("x"), n)] if "x" in arrays else []
    cells: dict[str, list[str | None]] = {}
    weights: npt.NDArray[np.float64] | None = None
    columns = [Column(path.name, "edge_index", "source"), Column(path.name, "edge_index", "target")]
    for name, array in arrays.items():
        flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
        if name == "edge_attr" and "edge_weight" in arrays:
            columns.append(Column(path.name, name, "ignored", "edge_weight is there"))
        elif name in _WEIGHTS and array.ndim and len(array) == edges.shape[1]:
            column, weights = _weights(path, name, flat)
            columns.append(column)
        elif flat.shape != (n,):
            columns.append(Column(path.name, name, "ignored", f"shape {array.shape}; one number per node is needed"))
        elif flat.dtype.kind == "b" and name.endswith("mask"):
            columns.append(Column(path.name, name, "ignored", "a mask"))
        else:
            cells[name] = number_cells(flat)
    columns += [Column(path.name, name, "ignored", "no tensor") for name in others if name != "num_nodes"]
    table = Table(path.name, pd.DataFrame(cells, dtype="str", index=pd.RangeIndex(n)))
    numbering, messages = other_numbering(table, [str(i) for i in range(n)])
    named = {
        name.lower(): Role("ignored", detail="numbers of nodes in another graph") for name in cells if _NUMBERS(name)
    }
    parts.append(assign(table, {"y": Role("label"), **named, **numbering}, Role("auto"), asked))
    half = half_stored(path.name, source, target)
    messages = (*messages, *_other_edges(path, arrays), *(() if half is None else (half,)))
    parts.append(NodeColumns(columns=tuple(columns), messages=messages, edge_weights=weights, directed=half is None))
    return finish(dataset.name, "pyg-data", source, target, n, NodeColumns.join(parts))


def _weights(path: Path, name: str, values: npt.NDArray[Any]) -> tuple[Column, npt.NDArray[np.float64] | None]:
    """The role of a tensor with one entry per edge, and the weights where they differ."""
    if values.ndim != 1 or not len(values):
        return Column(path.name, name, "ignored", f"shape {values.shape}; one number per edge is needed"), None
    if name == "edge_attr" and values.dtype.kind != "f":
        return Column(
            path.name, name, "ignored", "whole numbers, which may be kinds; weights are called edge_weight"
        ), None
    numbers = values.astype(np.float64)
    wrong = ~usable(numbers)
    if not wrong.any():
        same = bool(numbers[0]) and bool((numbers == numbers[0]).all())
        return Column(path.name, name, "weight", "the same for every edge" * same), None if same else numbers
    fault = f"{counted(int(wrong.sum()), 'number')} that cannot be a weight, first: {numbers[wrong][0]:g}"
    if name == "edge_attr":  # need not be weights
        return Column(path.name, name, "ignored", f"{fault}; {ALLOWED}"), None
    raise GraphError(f"{path.name}: {name}: {fault}; {ALLOWED}; correct them or leave {name} out")


def _plain(*_: object) -> dict[Any, Any]:
    """Stands for a defaultdict, which torch's reader makes and then refuses to fill."""
    return {}


def _member(_kind: Any, name: Any) -> str:
    """In place of `getattr`, by which Python 3.11.0 to 3.11.3 names an Enum's member in a pickle; it looks at nothing."""
    return str(name).lower()


@contextmanager
def _allowed(classes: Sequence[type]) -> Iterator[None]:
    """Lets torch's reader make objects of `classes`, and harmless ones in place of two that transforms leave behind.

    A transform that asks which tensors are of nodes keeps the answer: a defaultdict by members of an Enum.
    """
    from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals

    with _ONE_READS:
        before = get_safe_globals()
        try:
            clear_safe_globals()
            add_safe_globals([c for c in before if c is not defaultdict])  # two under one name would be either
            add_safe_globals([*classes, (_plain, "collections.defaultdict"), (str, f"{_STORAGE}.AttrType")])
            add_safe_globals([(_member, "builtins.getattr"), (_member, "__builtin__.getattr")])
            yield
        finally:
            clear_safe_globals()
            add_safe_globals(before)


def _arrays(path: Path) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The tensors of the file, and what else it holds."""
    try:
        if not zipfile.is_zipfile(path):
            raise GraphError(
                f"{path.name}: is no file of torch.save; a plain pickle is never loaded; expected {_EXPECTED}"
            )
        check_archive(path)
    except OSError as e:
        raise GraphError(f"{path.name}: cannot be read ({e.strerror or e})") from None
    except zipfile.BadZipFile:
        raise GraphError(f"{path.name}: is damaged; save it again") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from torch_geometric.data import Data, HeteroData
        from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage

        allowed = [Data, GlobalStorage, DataEdgeAttr, DataTensorAttr, HeteroData, BaseStorage, EdgeStorage, NodeStorage]
        try:
            with _allowed(allowed):
                data = torch.load(path, map_location="cpu", weights_only=True)
            content: Mapping[str, Any] = data.to_dict() if isinstance(data, Data) else {}
            if isinstance(data, HeteroData):
                content = _one_kind(path, data)
        except GraphError:
            raise
        except Exception as e:  # whatever a hostile or damaged file makes of torch's reader
            unsafe = "weights_only" in str(e) or "Unsupported" in str(e)
            reason = "holds objects beside tensors, which are never loaded" if unsafe else "cannot be read by torch"
            raise GraphError(f"{path.name}: {reason}; expected {_EXPECTED}") from None
    if not isinstance(data, Data | HeteroData):
        several = ", such as dataset[0] of a PyG dataset" * isinstance(data, list | tuple)
        raise GraphError(f"{path.name}: found a {type(data).__name__}; expected {_EXPECTED}{several}")
    arrays: dict[str, npt.NDArray[Any]] = {}
    others: dict[str, Any] = {}
    for name, value in content.items():
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_complex():
            others[str(name)] = value
            continue
        # A tensor may claim more numbers than its storage holds, by steps of 0.
        if value.numel() * 8 > unpacked_limit():
            raise too_large(path)
        value = value.detach()
        arrays[str(name)] = (value.float() if value.is_floating_point() and value.itemsize < 4 else value).numpy()
    return arrays, others


def _one_kind(path: Path, data: Any) -> dict[str, Any]:
    """What a HeteroData with one kind of nodes and one of edges holds, as a Data would."""
    nodes, edges = data.node_types, data.edge_types
    if len(nodes) == len(edges) == 1 and edges[0][0] == edges[0][2] == nodes[0]:
        return {**data._global_store.to_dict(), **data[nodes[0]].to_dict(), **data[edges[0]].to_dict()}
    kinds = ", ".join(map(str, nodes)) or "none"
    links = ", ".join(" - ".join(map(str, e)) for e in edges) or "none"
    people = next((e for e in edges if e[0] == e[2]), ("person", "knows", "person"))
    raise GraphError(
        f"{path.name}: found a HeteroData with {counted(len(nodes), 'kind')} of nodes ({kinds}) and "
        f"{counted(len(edges), 'kind')} of edges ({links}); one kind of people with one kind of edges between them is "
        f"read; save it alone: torch.save(Data(edge_index=data[{people!r}].edge_index, "
        f"**data[{people[0]!r}].to_dict()), {path.name!r})"
    )


def tensors_path(path: Path, folder: Path) -> Path:
    """Where the tensors of a file are kept; another place where the file has changed."""
    held = path.stat()
    told = f"{path.resolve()}\0{held.st_size}\0{held.st_mtime_ns}"
    return folder / f"{hashlib.sha256(told.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.npz"


def keep_tensors(path: Path, folder: Path) -> Path:
    """Reads a file with torch and keeps its tensors for processes that must not load it.

    Args:
        path: the file.
        folder: where they are kept; made where it is missing, for its user alone.

    Returns:
        Where they lie.

    Raises:
        GraphError: the file is none of torch, or holds objects beside tensors.
    """
    arrays, others = _arrays(path)
    target = tensors_path(path, folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    nodes = others.get("num_nodes")
    about = {"tensors": list(arrays), "others": list(others), "num_nodes": nodes if isinstance(nodes, int) else None}
    # Under numbers: a tensor may be called like an argument of savez.
    held: dict[str, Any] = {f"t{i}": array for i, array in enumerate(arrays.values())}
    write_atomically(target, lambda file: np.savez(file, about=np.array(json.dumps(about)), **held))
    return target


def _kept(path: Path, place: Path) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """As `_arrays`, of tensors that were kept."""
    try:
        with place.open("rb") as file, np.load(file, allow_pickle=False) as held:
            about = json.loads(str(held["about"]))
            arrays = {name: held[f"t{i}"] for i, name in enumerate(about["tensors"])}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        place.unlink(missing_ok=True)
        raise NotReadYet(f"{path.name}: the copy of its tensors is damaged and was removed; open it again") from None
    others = dict.fromkeys(about["others"])
    return arrays, others | ({} if about["num_nodes"] is None else {"num_nodes": about["num_nodes"]})


def _other_edges(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[Message, ...]:
    """A warning about edges beside edge_index, as a split leaves them."""
    names = [k for k, a in arrays.items() if "edge" in k and k.endswith("index") and a.ndim == 2 and a.shape[0] == 2]
    if not names:
        return ()
    text = (
        f"{path.name}: {', '.join(names[:5])} {'holds' if len(names) == 1 else 'hold'} edges as well, as a split leaves them; "
        "edge_index alone is read, which is then a part of the edges"
    )
    remedy = "save the Data before it is split; the split is made here"
    return (Message("warning", "other-edges", text, len(names), tuple(names[:5]), remedy),)


def _num_nodes(path: Path, arrays: Mapping[str, npt.NDArray[Any]], others: Mapping[str, Any], edges: IntArray) -> int:
    """How many nodes there are: the rows of x, the number the file gives, the rows of other tensors, or what edges name.

    Raises:
        GraphError: tensors of nodes have different lengths, or more nodes than memory holds.
    """
    if "x" in arrays and arrays["x"].ndim:
        return len(arrays["x"])
    given = others.get("num_nodes")
    if isinstance(given, int) and 0 < given <= unpacked_limit() // 8:
        return given
    most = int(edges.max(initial=-1)) + 1
    lengths = {k: len(a) for k, a in arrays.items() if a.ndim and not _OF_OTHERS.search(k) and len(a) >= most}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{k} {length:,}" for k, length in list(lengths.items())[:5])
        raise GraphError(
            f"{path.name}: how many nodes there are cannot be told, as tensors have different lengths ({listed}); say it "
            "before saving: data.num_nodes = .."
        )
    n = next(iter(lengths.values()), most)
    if n > unpacked_limit() // 8:
        raise GraphError(
            f"{path.name}: edge_index names node {n - 1:,}, which is more than memory holds; number nodes from 0"
        )
    return n


def node_features(path: Path, name: str, x: npt.NDArray[Any], n: int) -> NodeColumns:
    """The features of the matrix `name` of a file, one row for each of `n` nodes.

    Raises:
        GraphError: another shape, or numbers that are not finite or too large.
    """
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2 or len(x) != n or x.dtype.kind not in "fiub":
        raise GraphError(f"{path.name}: {name}: found {x.dtype} of shape {x.shape}; numbers of shape (N, F) are needed")
    wrong = ~(np.abs(x.astype(np.float64)) <= MAX_FEATURE)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise GraphError(
            f"{path.name}: {name}: {counted(int(wrong.sum()), 'cell')} not finite or beyond {MAX_FEATURE:g}, first: "
            f"node {row}, feature {column} ({x[row, column]}); fill or rescale them"
        )
    names = tuple(f"x{i}" for i in range(x.shape[1]))
    column = Column(path.name, name, "feature", f"{counted(x.shape[1], 'feature')}, called x0 and on")
    if not names:
        return NodeColumns(columns=(Column(path.name, name, "ignored", "no columns"),))
    return NodeColumns(features=x.astype(np.float32), feature_names=names, columns=(column,))


def number_cells(values: npt.NDArray[Any]) -> list[str | None]:
    """Numbers as text, whole ones without a point, NaN as missing."""
    if values.dtype.kind == "f":
        known = values[~np.isnan(values)]
        if (np.abs(known) < 2**53).all() and (known == np.rint(known)).all():
            return [None if v != v else str(int(v)) for v in values.tolist()]
        return [None if v != v else repr(v) for v in values.tolist()]
    return [str(v) for v in values.tolist()]


def _begins(path: Path) -> bool | None:
    """Whether a file of torch names edges: others, such as embeddings, lie beside graphs. Nothing of it is loaded."""
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if pickles:
            with archive.open(pickles[0]) as file:
                return True if b"edge_index" in file.read(_PEEK) else None
    return None


POSITION = 110
LAYOUTS = (Layout("pyg-data", "PyG's", (Part("data", ("{}.pt",), "a Data with edge_index"),), _read, begins=_begins),)
