"""word2vec's text form, which node2vec's and gensim's tools write: a line "count dimensions", then an id and its numbers a line."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from uge_core.datasets.bounded import is_gzip, open_bytes, too_large, unpacked_limit
from uge_core.datasets.embeddings.base import MOST_DIMENSIONS, Format, Vectors
from uge_core.datasets.tables import counted
from uge_core.errors import EmbeddingError
from uge_core.graph.graph import AttributedGraph

_LONGEST = 2**20
_HEADER = "the first line says how many vectors follow and how long each is, such as 2000 16"


def _read(path: Path, graph: AttributedGraph) -> Vectors:
    ids = frozenset(graph.ids(slice(None)))
    names: list[str] = []
    numbers = array("d")
    try:
        if (path.suffix == ".gz") != is_gzip(path):
            raise EmbeddingError(f"{path.name}: gzip data must end in .gz, and other data must not; rename it")
        left = unpacked_limit()
        with open_bytes(path) as file:
            header = file.readline(_LONGEST).decode("utf-8-sig").split()
            if len(header) != 2 or not all(h.isascii() and h.isdigit() for h in header):
                if header and header[0] not in ids and all(map(_is_number, header)):
                    raise EmbeddingError(
                        f"{path.name}: line 1 holds numbers alone ({' '.join(header)[:60]}), no count of vectors and no id; "
                        "save the numbers as .npy with a row per node in the graph's order, or as CSV with the ids in front"
                    )
                raise EmbeddingError(f"{path.name}: line 1 holds {' '.join(header)[:60]!r}; {_HEADER}")
            count, dim = int(header[0]), int(header[1])
            if not 1 <= dim <= MOST_DIMENSIONS:
                raise EmbeddingError(
                    f"{path.name}: line 1 gives vectors of {dim:,} numbers; allowed: 1 to {MOST_DIMENSIONS:,}"
                )
            for line, raw in enumerate(iter(lambda: file.readline(_LONGEST), b""), start=2):
                left -= len(raw) + 8 * dim
                if left < 0:
                    raise too_large(path)
                text = raw.decode("utf-8").rstrip()
                if not text:
                    continue
                # From the right, as an id may hold blanks.
                name, *cells = text.rsplit(None, dim)
                if len(cells) != dim or _is_longer(name, ids):
                    raise EmbeddingError(
                        f"{path.name}: line {line} has {len(text.split()) - 1} words after the id, line 1 says "
                        f"{dim} numbers; correct line 1 or this one"
                    )
                try:
                    numbers.extend(map(float, cells))
                except ValueError:
                    bad = next(c for c in cells if not _is_number(c))
                    raise EmbeddingError(
                        f"{path.name}: line {line} holds {bad[:60]!r}, which is no number; {_HEADER}"
                    ) from None
                names.append(name)
    except UnicodeDecodeError:
        raise EmbeddingError(
            f"{path.name}: is not UTF-8 text; word2vec's binary form is not read, save it as text (gensim: "
            "binary=False)"
        ) from None
    except (OSError, EOFError, zlib.error) as e:
        why = "is damaged or cut off" if path.suffix == ".gz" else f"cannot be read ({e})"
        raise EmbeddingError(f"{path.name}: {why}; save it again") from None
    if len(names) != count:
        raise EmbeddingError(
            f"{path.name}: line 1 says {counted(count, 'vector')}, {len(names):,} follow; the file is cut off or "
            "line 1 is wrong"
        )
    return Vectors(np.frombuffer(numbers, dtype=np.float64).reshape(-1, dim), pd.Series(names, dtype=object))


def _is_longer(name: str, ids: Collection[str]) -> bool:
    """Whether what looks like an id with blanks is an id and further cells."""
    return name not in ids and len(name.split()) > 1 and name.split()[0] in ids


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


FORMATS = (
    Format(
        "word2vec text",
        (".txt", ".vec", ".emb", ".w2v", ".word2vec"),
        "by id, the first word of a line",
        _read,
        zipped=True,
    ),
)
