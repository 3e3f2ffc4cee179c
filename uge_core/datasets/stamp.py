"""What tells whether the files of a graph have changed since they were read."""

from __future__ import annotations

from pathlib import Path

from uge_core.datasets import locate
from uge_core.datasets.card import files_of


def data_stamp(spec: str, store: Path | None = None, *, may_fetch: bool = False) -> str:
    """What changes when a file of the graph does; also says whether there is such a graph at all.

    Args:
        spec: as for `uge_core.load`.
        store: folder below which datasets of PyG's are kept.
        may_fetch: whether one that is not kept there yet may be fetched now.

    Raises:
        GraphError: there is no such graph.
    """
    _, dataset = locate(spec, store=store, may_fetch=may_fetch)
    files = dict.fromkeys(dataset.files.values())
    if "card" in dataset.files:
        files |= dict.fromkeys(files_of(dataset.files["card"]))
    return " ".join(f"{p.name} {s.st_mtime_ns} {s.st_size}" for p in files if p.exists() and (s := p.stat()))
