"""Reading graphs: `load` recognises a folder's layout and returns an `AttributedGraph`.

Each layout is one file of `uge_core.datasets.layouts`. A folder with files of several graphs, or of one graph in several
forms, is refused unless one of its files is named. A layout of which only some files are there gives its own error. ``pyg:NAME`` is fetched when it is first named, and is the only thing that reaches
another host. No pickle is ever loaded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from uge_core.datasets.bounded import refuse_link_out, special
from uge_core.datasets.inspection import describe, inspect
from uge_core.datasets.kept import KeptGraphs, NothingKept
from uge_core.datasets.layouts import all_layouts
from uge_core.datasets.layouts.base import Folder, Found, Layout
from uge_core.datasets.layouts.pyg_data import tensors_path
from uge_core.datasets.layouts.pyg_names import PREFIX
from uge_core.datasets.layouts.pyg_names import locate as locate_pyg
from uge_core.datasets.layouts.sample import folder as sample_folder
from uge_core.datasets.roots import check_root
from uge_core.errors import DatasetMissing, GraphError, NotReadYet, NotRecognised, shell_word
from uge_core.graph.graph import AttributedGraph, Message
from uge_core.progress import OnProgress
from uge_core.registry import unknown_name

__all__ = ["describe", "inspect", "load"]

_REFUSED = {
    (
        ".zip",
        ".tar",
        ".tar.gz",
        ".tgz",
        ".tar.bz2",
        ".tar.xz",
        ".7z",
        ".rar",
    ): "is an archive, which is not opened: unpack it into a folder of its own",
    (".pkl", ".pickle", ".joblib", ".gpickle"): "is a pickle, which is never loaded",
    (".xls", ".xlsb", ".ods"): "is a spreadsheet: save it as .xlsx, or each sheet as CSV UTF-8",
    (".bz2", ".xz", ".zst", ".lz4"): "is packed otherwise than by gzip: unpack it",
    (".graphmlz",): "is packed GraphML: rename it to end in .graphml.gz",
    (".paj",): "is a project of Pajek's: save its network as .net and its partitions as .clu",
    (
        ".dta",
        ".sav",
        ".por",
        ".sas7bdat",
        ".xpt",
        ".rds",
        ".rdata",
    ): "is a file of a statistics program: save it as CSV UTF-8",
    (".pth",): "may be a file of torch: rename it to end in .pt",
    (
        ".lgl",
    ): "lists neighbours under the name of each node: write a line with two ids for each edge (igraph: write_ncol)",
}
_LONGEST_SPEC = 200
_DECIDES = ("sample", "dataset-yaml")
"""Layouts whose files say what the other files of the folder are."""
_ALONE = ("graph-file", "json", "konect", "pajek", "pyg-data", "workbook")
"""Layouts that read no table beside them, but for KONECT's nodes."""
_TABLE = re.compile(
    r"(?:.*[_.\- ])?(?:nodes?|vertices|people|persons?|users?|members?|attributes?|edges?|links?)"
    r"\.(?:csv|tsv|xlsx|parquet)(?:\.gz)?",
    re.IGNORECASE,
)
REWRITE = "write the graph as edges.csv (source,target) and nodes.csv (id and the attributes)"


def load(
    spec: str | Path,
    *,
    attributes: Sequence[str] | None = None,
    store: str | Path | None = None,
    may_fetch: bool = True,
    on_progress: OnProgress | None = None,
    tensors: Path | None = None,
    keep: bool = False,
) -> AttributedGraph:
    """The graph at `spec`.

    Args:
        spec: a folder in a recognised layout, ``FOLDER:NAME`` for one graph of several, one of the
            graph's files, a sample (``sample:town``), or a dataset of PyG's (``pyg:LastFMAsia``).
        attributes: the columns that are the attributes of the nodes, as names or as one text with
            commas, upper and lower case alike. They replace the layout's list: any other column
            that would be an attribute is ignored, and no feature. The attributes of items stay.
        store: below which datasets of PyG's, and large graphs, are kept; None means ``$UGE_STORE``, else ``./uge-store``.
        may_fetch: whether one that is not kept there yet may be fetched.
        on_progress: told what is fetched and how much of it has come; None: the first goes to stderr.
        tensors: of a process that must not load torch, the folder in which a worker keeps the tensors of .pt files.
        keep: a graph of many megabytes is kept in the store as arrays, and taken from there as long as none of its
            files changes (`kept`); where the store cannot be written it is read.

    Returns:
        The graph, undirected and simple, with the role of every column and a message for
        everything that was dropped.

    Raises:
        DatasetMissing: the folder, or a file the layout needs, is not there, or did not come.
        GraphError: the files are not recognised, or contradict each other.
        NotReadYet: `tensors` has none of this file.
        ConfigError: the mirror to fetch from is not allowed.
    """
    layout, dataset = locate(spec, store=store, may_fetch=may_fetch, on_progress=on_progress)
    if tensors is not None and layout.name == "pyg-data":
        place = tensors_path(dataset.files["data"], tensors)
        if not place.exists():
            raise NotReadYet(
                f"{dataset.files['data'].name}: a file of torch, which a process of its own reads first; open it on "
                "the Data page"
            )
        dataset = replace(dataset, tensors=place)
    unread = _unread(layout, dataset)
    graphs = KeptGraphs(store) if keep else NothingKept()
    if attributes is None:
        return _with_unread(graphs.read(layout, dataset, None), unread)
    listed = attributes.split(",") if isinstance(attributes, str) else attributes
    asked = [name for a in listed if (name := a.strip())]
    if not asked:
        raise GraphError(f"{dataset.name}: attributes names no column; name at least one, or leave it out")
    graph = graphs.read(layout, dataset, frozenset(a.lower() for a in asked))
    for name in asked:
        _check_asked(graph, name, unread)
    return _with_unread(graph, unread)


def locate(
    spec: str | Path, *, store: str | Path | None = None, may_fetch: bool = False, on_progress: OnProgress | None = None
) -> tuple[Layout, Found]:
    """Which graph `spec` names, without reading it; the arguments are those of `load`.

    Raises:
        DatasetMissing: a file or folder is not there, or did not come.
        GraphError: the folder has no known layout, or holds several graphs and none was named.
        ConfigError: the mirror to fetch from is not allowed.
    """
    if str(spec).startswith(PREFIX):
        root = None if store is None else Path(store)
        return locate_pyg(str(spec), root, may_fetch=may_fetch, on_progress=on_progress)
    layout, found = _choose(*_locate(spec))
    for path in found.files.values():
        check_root(path)  # first, as the other's message says where a link leads
        refuse_link_out(path)
    return layout, found


def _locate(spec: str | Path) -> tuple[Folder, str | Path | None]:
    """The folder, and which of its graphs: a name, one of its files, or None."""
    head, colon, tail = str(spec).rpartition(":")
    shown = _shown(str(spec))
    if not str(spec).strip() or (colon and not head.strip()):
        raise DatasetMissing(
            f"{shown}: names no folder; give a folder in a recognised layout, such as . for the current one"
        )
    if "\0" in str(spec):
        raise DatasetMissing(f"{shown}: holds a zero byte and can be no path; give a folder in a recognised layout")
    try:
        path, parent = Path(spec).expanduser(), Path(head).expanduser()
        if not (colon and head == "sample"):
            check_root(parent if colon and not path.exists() else path)
        if path.is_dir():
            return Folder.open(path), None
        if path.is_file():
            return Folder.open(path.parent), path
        if colon and head == "sample":
            return Folder.open(sample_folder(tail)), None
        if colon and parent.is_dir():
            return Folder.open(parent), tail
        what = special(path) if path.exists() else ""
    except (OSError, RuntimeError, ValueError) as e:  # RuntimeError: no home folder of that user
        reason = (e.strerror if isinstance(e, OSError) else None) or str(e).rstrip(".")
        raise DatasetMissing(f"{shown}: cannot be opened ({reason}); give a folder in a recognised layout") from None
    if what:
        raise DatasetMissing(f"{shown}: is {what}, which is never read; name a folder, or a plain file in one")
    raise DatasetMissing(f"{shown}: no such folder or file; give a folder in a recognised layout, or FOLDER:NAME")


def _shown(spec: str) -> str:
    """What was given, fit for a message: printable, and not longer than a line."""
    plain = spec if spec.isprintable() and spec.strip() else repr(spec)
    return plain if len(plain) <= _LONGEST_SPEC else f"{plain[:_LONGEST_SPEC]}... ({len(spec):,} characters)"


def _choose(folder: Folder, wanted: str | Path | None) -> tuple[Layout, Found]:
    """The layout and the graph to read."""
    file = wanted if isinstance(wanted, Path) else None
    present = [(layout, dataset) for layout in all_layouts() for dataset in layout.find(folder, file)]
    if file is not None:
        return _by_file(folder, file, present)
    if wanted is not None:
        named = [(layout, dataset) for layout, dataset in present if dataset.name == wanted]
        if not named and present:
            complete = [dataset.name for _, dataset in present if not dataset.missing]
            names = complete or [dataset.name for _, dataset in present]
            raise GraphError(f"{folder.path}: " + unknown_name("graph", str(wanted), list(dict.fromkeys(names))))
        present = named
    complete_ones = [(layout, dataset) for layout, dataset in present if not dataset.missing]
    if complete_ones:
        layout, dataset = _only(folder, complete_ones)
        return layout, _titled(dataset, folder, alone=wanted is None)
    if present:
        raise _incomplete(folder, *present[0])
    raise _unrecognised(folder)


def _only(folder: Folder, complete: list[tuple[Layout, Found]]) -> tuple[Layout, Found]:
    """The graph of the first layout, where there is no other.

    Raises:
        GraphError: the folder holds several graphs, or one in several forms.
    """
    graphs = [(layout, dataset) for layout, dataset in complete if dataset.sure] or complete
    first, dataset = graphs[0]
    alike = [other for layout, other in graphs if layout is first]
    if first.name in _DECIDES:
        return first, dataset
    taken = set(dataset.files.values())
    others = [other for layout, other in graphs if layout is not first and not taken.issuperset(other.telling)]
    if len(alike) > 1 and not others and not any(other.rivals for other in alike):
        listed = ", ".join(f"{folder.path}:{other.name}" for other in alike)
        raise GraphError(f"{folder.path}: {len(alike)} graphs in one folder; name one of: {listed}")
    _refuse_rivals(folder, [*alike, *others])
    return first, dataset


def _refuse_rivals(folder: Folder, graphs: list[Found]) -> None:
    """Refuses several files that hold a graph each, where none of them was named."""
    files = dict.fromkeys(path.name for found in graphs for path in found.rivals or found.telling[:1])
    if len(files) > 1:
        shown = ", ".join(list(files)[:10]) + ", ..." * (len(files) > 10)
        raise GraphError(
            f"{folder.path}: holds {len(files)} files that may be the graph: {shown}; name the one that is meant, as "
            f"{folder.path / next(iter(files))}, or move the others elsewhere"
        )


def _by_file(folder: Folder, path: Path, present: list[tuple[Layout, Found]]) -> tuple[Layout, Found]:
    """The graph that one of its files stands for."""
    members = [
        (layout, dataset) for layout, dataset in present if any(f.name == path.name for f in dataset.files.values())
    ]
    complete = [(layout, dataset) for layout, dataset in members if not dataset.missing]
    telling = [(layout, dataset) for layout, dataset in complete if any(f.name == path.name for f in dataset.telling)]
    if complete:
        layout, dataset = telling[0] if telling else _only(folder, complete)
        _refuse_rivals(folder, [dataset])
        return layout, dataset
    if members:
        raise _incomplete(folder, *members[0])
    reason = why_refused(path.name)
    if reason:
        raise GraphError(f"{path}: {reason}; {REWRITE}")
    raise NotRecognised(f"{path}: not a file of a recognised layout{_in_capitals(path.name)}", _next_step(folder))


def _titled(dataset: Found, folder: Folder, *, alone: bool) -> Found:
    """A folder's only graph is called like the folder."""
    return replace(dataset, name=folder.path.resolve().name) if alone else dataset


def _incomplete(folder: Folder, layout: Layout, dataset: Found) -> DatasetMissing:
    """The error about a graph that lacks files."""
    there = ", ".join(sorted(p.name for p in dataset.files.values()))
    return DatasetMissing(
        f"{folder.path}: {'; '.join(dataset.missing)}. Found of {layout.title} layout: {there}. "
        f"Put the missing file{'s' * (len(dataset.missing) > 1)} into this folder{_strange(folder)}"
    )


def _unrecognised(folder: Folder) -> NotRecognised:
    """The error about a folder in no known layout."""
    shown = ", ".join(folder.files[:10]) or "no files"
    if len(folder.files) > 10:
        shown += f" and {len(folder.files) - 10} more"
    hint = next((f"; {f} {why}" for f in folder.files if (why := why_refused(f))), "")
    hint += next(filter(None, map(_in_capitals, folder.files)), "") + _strange(folder)
    return NotRecognised(f"{folder.path}: no recognised layout. Found: {shown}{hint}", _next_step(folder))


def _strange(folder: Folder) -> str:
    """What in a folder is neither file nor folder."""
    return "".join(f"; {name} is {what}, which is never read" for name, what in folder.strange[:3])


def _next_step(folder: Folder) -> str:
    """The command that says what the tables of a folder probably are."""
    return (
        "docs/data.md lists the layouts; what the tables in this folder probably are, and a dataset.yaml for them, "
        f"says: uge data describe {shell_word(str(folder.path))}"
    )


def why_refused(name: str) -> str | None:
    """Why files called like `name` are not opened, or None."""
    return next((why for endings, why in _REFUSED.items() if name.lower().endswith(endings)), None)


def _in_capitals(name: str) -> str:
    """What is to be done about a file whose ending is known in small letters alone."""
    ending = name.rpartition(".")[2]
    small = ending.lower() in ("gz", "npy", "npz", "parquet") and not ending.islower()
    return f"; write the ending of {name} in small letters" if small else ""


def _unread(layout: Layout, dataset: Found) -> tuple[str, ...]:
    """Tables beside a file that holds the whole graph; nobody reads them."""
    if layout.name not in _ALONE:
        return ()
    own = {path.name for path in dataset.files.values()}
    beside = Folder.open(next(iter(dataset.files.values())).parent).files
    return tuple(name for name in beside if name not in own and _TABLE.fullmatch(name))


def _with_unread(graph: AttributedGraph, unread: tuple[str, ...]) -> AttributedGraph:
    """The graph with a warning about files that were not read."""
    if not unread:
        return graph
    text = (
        f"{graph.name}: {', '.join(unread[:5])}{', ...' * (len(unread) > 5)} "
        f"{'lies' if len(unread) == 1 else 'lie'} beside the graph and {'was' if len(unread) == 1 else 'were'} not read"
    )
    remedy = "nothing to do if the graph's own file says all; to use a table of nodes, write the edges as edges.csv beside it"
    message = Message("warning", "files-not-read", text, len(unread), unread[:5], remedy)
    return replace(graph, messages=(*graph.messages, message))


def _check_asked(graph: AttributedGraph, name: str, unread: tuple[str, ...]) -> None:
    """Refuses a name asked for that did not become an attribute."""
    lower = name.lower()
    if any(lower in (a.name.lower(), *(x.lower() for x in a.aliases)) for a in graph.attributes):
        return
    for c in graph.columns:
        if c.name.lower() == lower:
            raise GraphError(
                f"{graph.name}: column {c.name!r} of {c.file} has the role {c.role} and cannot be an attribute; "
                "choose a column that describes nodes"
            )
    nodes = [c.name for c in graph.columns if c.role not in ("id", "source", "target", "weight")]
    if not nodes:
        beside = f", and {unread[0]} beside it was not read: write the edges as edges.csv to use it" if unread else ""
        raise GraphError(
            f"{graph.name}: unknown column {name!r}; what was read has no column that describes nodes{beside}"
        )
    raise GraphError(f"{graph.name}: " + unknown_name("column", name, nodes))


def lasting(spec: str) -> str:
    """The same graph named so that a process elsewhere finds it: an existing path whole, other names as they are."""
    folder, colon, name = spec.rpartition(":")
    if Path(spec).expanduser().exists():
        return str(Path(spec).expanduser().resolve())
    if colon and Path(folder).expanduser().exists():
        return f"{Path(folder).expanduser().resolve()}:{name}"
    return spec
