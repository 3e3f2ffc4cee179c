"""Embeddings from elsewhere: `read_embedding` reads a file's vectors and puts them in a graph's order.

Each format is one file of this package with a constant ``FORMATS``; a file's ending says which it is.
No pickle is ever loaded, and no file is unpacked beyond the limit that graphs have.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from uge_core.arrays import FloatArray
from uge_core.datasets.bounded import open_plain
from uge_core.datasets.embeddings import numpy_files, tables, torch_tensor, word2vec
from uge_core.datasets.embeddings.base import ROWS, Format, place
from uge_core.errors import ConfigError, EmbeddingError, GraphError
from uge_core.graph.graph import AttributedGraph

__all__ = ["FORMATS", "read_embedding"]

FORMATS: tuple[Format, ...] = (*numpy_files.FORMATS, *tables.FORMATS, *word2vec.FORMATS, *torch_tensor.FORMATS)


def read_embedding(
    path: str | Path,
    graph: AttributedGraph,
    *,
    unknown_ids: str = "refuse",
    rows: str | None = None,
    on_note: Callable[[str], None] | None = None,
) -> FloatArray:
    """The embedding in a file, in the graph's order.

    Args:
        path: the file; its ending says how it is read.
        graph: the graph whose nodes it embeds.
        unknown_ids: what to do with rows whose id the graph does not have: refuse, or drop.
        rows: of a file without ids: "order", row i is the i-th node, or "id", row i is the node with the i-th
            number, where ids count from 0 or 1. None: the order, refused where ids count in another order, as both are
            usual then.
        on_note: told what was dropped.

    Returns:
        (N, d) float32, finite.

    Raises:
        EmbeddingError: the file cannot be read, or does not fit the graph.
        ConfigError: `unknown_ids` or `rows` is neither of the two.
    """
    if unknown_ids not in ("refuse", "drop"):
        raise ConfigError(f"unknown_ids = {unknown_ids!r} is not allowed; allowed: refuse, drop")
    if rows not in (None, *ROWS):
        raise ConfigError(f"rows = {rows!r} is not allowed; allowed: {', '.join(ROWS)}")
    path = Path(path).expanduser()
    form = _format(path)
    _check_file(path)
    try:
        vectors = form.read(path, graph)
        return place(path, vectors, graph, drop_unknown=unknown_ids == "drop", rows=rows, on_note=on_note)
    except GraphError as error:  # a table that cannot be read, or unpacks into too much
        raise EmbeddingError(str(error)) from None


def _format(path: Path) -> Format:
    bare = path.name.lower().removesuffix(".gz")
    zipped = bare != path.name.lower()
    for form in FORMATS:
        if bare.endswith(form.endings) and (form.zipped or not zipped):
            return form
    allowed = ", ".join(ending + ("[.gz]" if f.zipped else "") for f in FORMATS for ending in f.endings)
    raise EmbeddingError(f"{path}: no file of embeddings by its ending; allowed: {allowed}")


def _check_file(path: Path) -> None:
    try:
        if path.is_dir():
            raise EmbeddingError(f"{path}: is a folder; name the file of embeddings in it")
        with open_plain(path) as file:
            empty = not file.read(1)
    except GraphError as error:
        raise EmbeddingError(str(error)) from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise EmbeddingError(
            f"{path}: cannot be opened ({reason}); name a file of embeddings that you may read"
        ) from None
    if empty:
        raise EmbeddingError(f"{path.name}: is empty; save the embedding again")
