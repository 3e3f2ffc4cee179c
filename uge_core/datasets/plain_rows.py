"""The rows of a plain text table, read in pieces of some megabytes by a parser that makes no Python object of a cell.

Plain is a table of text cells whose rows all have as many as the header, with no quotation mark, no blank in front of a
cell, no zero byte and no odd line end: what a program writes. Of such a table both parsers read the same. Whatever is not
plain is left to `tables.read_table`'s other way, which knows what to say of it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.beginnings import LONGEST
from uge_core.datasets.bounded import open_bytes
from uge_core.datasets.numbered import Numbered

_BLOCK = 2**24
_BOM = b"\xef\xbb\xbf"
_ENCODINGS = ("utf-8-sig", "utf-8")
_SEPARATORS = ",;\t"
_MANY = 50_000  # cells for which a table of numbers is worth while


def plain_rows(
    path: Path, *, encoding: str, sep: str, width: int, skipped: int, quoted: bool
) -> list[pd.DataFrame] | None:
    """The rows of a table in pieces, all cells text; None where the table is not plain.

    Args:
        path: the file.
        encoding: of the file.
        sep: the separator.
        width: the number of columns.
        skipped: lines before the first row.
        quoted: whether cells may stand in quotation marks, and blanks in front of a cell are no part of it.

    Returns:
        Frames with the columns 0 to `width` - 1, the rows numbered on from 0, empty cells missing.

    Raises:
        GraphError: it unpacks into too much.
        OSError, EOFError, zlib.error: it cannot be read, or the data are damaged.
    """
    if encoding.lower() not in _ENCODINGS or len(sep) != 1 or sep not in _SEPARATORS or not _text_is_arrow():
        return None
    import pyarrow as pa
    import pyarrow.csv

    names = list(map(str, range(width)))
    parse = pyarrow.csv.ParseOptions(delimiter=sep, quote_char=False, ignore_empty_lines=False)
    convert = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.large_string()), null_values=[""], strings_can_be_null=True
    )
    pieces: list[pd.DataFrame] = []
    rows, rest = 0, b""
    with open_bytes(path) as file:
        if not _skip(file, skipped):
            return None
        first = skipped == 0 and encoding.lower() == "utf-8-sig"
        while True:
            new = file.read(_BLOCK)
            data = rest + new
            end = data.rfind(b"\n") + 1 if new else len(data)
            data, rest = data[:end], data[end:]
            if len(rest) > LONGEST:
                return None
            if first:
                data, first = data.removeprefix(_BOM), not end
            if data:
                if not _is_plain(data, sep, quoted=quoted):
                    return None
                read = pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names)
                try:
                    table = pyarrow.csv.read_csv(pa.BufferReader(data), read, parse, convert)
                except pa.ArrowInvalid:  # a row with more or fewer cells, or bytes that are no text
                    return None
                piece = table.to_pandas()
                piece.columns = pd.RangeIndex(width)
                piece.index = pd.RangeIndex(rows, rows + len(piece))
                rows += len(piece)
                pieces.append(piece)
            if not new:
                return pieces or None


def places(values: pd.Index, cells: pd.Series) -> IntArray | None:
    """(M,) the place of each cell among some different values, -1 where it is none of them; None where either is no such text.

    Args:
        values: different texts.
        cells: (M,) texts, none missing.
    """
    if not (_is_arrow(values.dtype) and _is_arrow(cells.dtype)):
        return None
    import pyarrow as pa
    import pyarrow.compute

    known, asked = (pa.chunked_array(x.array.__arrow_array__()) for x in (values, cells))
    out = np.empty(len(cells), dtype=np.int64)
    numbered = Numbered.of(known.chunks) if len(cells) >= _MANY else None
    found = asked if numbered is not None else pyarrow.compute.index_in(asked, value_set=known.combine_chunks())
    at = 0
    for chunk in found.chunks:
        out[at : at + len(chunk)] = chunk.fill_null(-1).to_numpy() if numbered is None else numbered.find(chunk)
        at += len(chunk)
    return out


def give_back() -> None:
    """Returns memory that earlier tables took, which Arrow would keep for later ones."""
    if _text_is_arrow():
        import pyarrow as pa

        pa.default_memory_pool().release_unused()


@cache
def _text_is_arrow() -> bool:
    """Whether pandas keeps text as the parser makes it, as pandas 3 does beside pyarrow."""
    return _is_arrow(pd.Series([""]).dtype)


def _is_arrow(dtype: object) -> bool:
    return isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"


def _skip(file: IO[bytes], lines: int) -> bool:
    """Reads over lines; False where a line end among them is an odd one."""
    return not any(_odd_ends(file.readline()) for _ in range(lines))


def _odd_ends(data: bytes) -> bool:
    """Whether a carriage return stands alone, which ends a line too."""
    return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")


def _is_plain(data: bytes, sep: str, *, quoted: bool) -> bool:
    """Whether both parsers read the same in whole lines."""
    if b"\0" in data or data.startswith(_BOM) or _odd_ends(data):
        return False
    if not quoted:
        return True
    if b'"' in data:
        return False
    mark = sep.encode()
    blanks = [blank for blank in (b" ", b"\t") if blank != mark and blank in data]
    return not any(data.startswith(b) or mark + b in data or b"\n" + b in data for b in blanks)
