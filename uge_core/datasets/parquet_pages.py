"""What the pages of a Parquet file unpack into, by the headers that its readers go by; nothing is unpacked.

A page has a header in Thrift's compact form. A dictionary gives a text once for all rows that have it, and prefixes may
repeat the cell above: then a few bytes stand for a whole text, and the true size follows from the cells alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from uge_core.datasets.bounded import open_plain, too_large, unpacked_limit
from uge_core.errors import GraphError

_DICTIONARY = 2  # kind of page
_ENCODING = {5: 2, 8: 4}
"""Field of the encoding in the header of a page of cells, by the field in which that header stands."""
_BY_DICTIONARY, _BY_PREFIX = (2, 8), (7,)  # encodings
_HEADER = 2**12
_LONGEST_HEADER = 2**24
_DEEPEST = 8
_NUMBER = 8  # bytes
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12


class _Short(Exception):
    """More bytes are needed."""


@dataclass(frozen=True)
class Packed:
    """What the pages of a file unpack into.

    Attributes:
        size: bytes of texts that stand for themselves.
        shared: the cells that a dictionary gives, by group of rows and column; None where its first page is another.
        prefixed: bytes of the largest page by column in which a cell may repeat the one above.
    """

    size: int
    shared: dict[int, dict[str, int | None]]
    prefixed: dict[str, int]


def check_pages(path: Path, metadata: Any) -> Packed:
    """Refuses a file whose pages unpack into too much, and says whose cells must be counted as well.

    Args:
        path: the file.
        metadata: as pyarrow has it.

    Raises:
        GraphError: they do, or a header is damaged.
    """
    limit = left = unpacked_limit()
    cells = texts = 0
    shared: dict[int, dict[str, int | None]] = {}
    prefixed: dict[str, int] = {}
    with open_plain(path) as file:
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            for place in range(row_group.num_columns):
                chunk = row_group.column(place)
                name, kind = chunk.path_in_schema, chunk.physical_type
                cells += chunk.num_values
                if not chunk.num_values:  # there need be no page
                    continue
                if kind == "FIXED_LEN_BYTE_ARRAY":
                    texts += metadata.schema.column(place).length * chunk.num_values
                if max(cells * _NUMBER, texts) > limit:
                    raise too_large(path)
                by_dictionary, first = 0, True
                for page in _pages(path, file, chunk):
                    left -= page.size
                    if left < 0:
                        raise too_large(path)
                    if page.kind == _DICTIONARY or kind != "BYTE_ARRAY":
                        continue
                    if page.encoding in _BY_DICTIONARY:
                        # A reader that is asked for the first cell has the whole dictionary then.
                        by_dictionary += page.cells
                    else:
                        first = first and by_dictionary > 0
                        texts += page.size
                        if page.encoding in _BY_PREFIX:
                            prefixed[name] = max(prefixed.get(name, 0), page.size)
                if by_dictionary:
                    shared.setdefault(group, {})[name] = by_dictionary if first else None
    return Packed(texts, shared, prefixed)


@dataclass(frozen=True)
class _Page:
    """One page.

    Attributes:
        kind: dictionary or cells.
        size: its bytes, unpacked.
        start: where its content begins in the file.
        packed: the bytes of its content there.
        cells: how many it has; of a dictionary none.
        encoding: of the cells.
    """

    kind: int
    size: int
    start: int
    packed: int
    cells: int
    encoding: int


def _pages(path: Path, file: IO[bytes], chunk: Any) -> Iterator[_Page]:
    """The pages of a column's part in a group of rows."""
    offset = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < offset:
        offset = chunk.dictionary_page_offset
    end = offset + chunk.total_compressed_size
    while offset < end:
        fields, length = _header(path, file, offset)
        kind, size, packed = (fields.get(i, -1) for i in (1, 2, 3))
        own = next((i for i in _ENCODING if isinstance(fields.get(i), dict)), 0)
        about = fields.get(own, {})
        cells, encoding = about.get(1, 0), about.get(_ENCODING.get(own, 0), -1)
        if not all(isinstance(n, int) for n in (kind, size, packed, cells, encoding)) or min(size, packed, cells) < 0:
            raise _damaged(path)
        yield _Page(kind, size, offset + length, packed, cells, encoding)
        offset += length + packed


def _header(path: Path, file: IO[bytes], offset: int) -> tuple[dict[int, Any], int]:
    """The fields of a page's header, and its length."""
    most = _HEADER
    while True:
        file.seek(offset)
        head = file.read(most)
        try:
            return _struct(head, 0, 0)
        except _Short:
            if most >= _LONGEST_HEADER or len(head) < most:
                raise _damaged(path) from None
            most *= 16
        except ValueError:
            raise _damaged(path) from None


def _damaged(path: Path) -> GraphError:
    return GraphError(
        f"{path.name}: cannot be read as Parquet (the header of a page is damaged); write it again, or as CSV"
    )


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """The fields of a struct by number, whole numbers and structs alone, and where it ends."""
    if depth > _DEEPEST:
        raise ValueError("structs in structs")
    fields: dict[int, Any] = {}
    number = 0
    while True:
        byte = _byte(data, at)
        at += 1
        if not byte:
            return fields, at
        if byte >> 4:
            number += byte >> 4
        else:
            number, at = _whole(data, at)
        value, at = _value(data, at, byte & 15, depth)
        if value is not None:
            fields[number] = value


def _value(data: bytes, at: int, kind: int, depth: int, *, listed: bool = False) -> tuple[Any, int]:
    """A value, None unless it is a whole number or a struct, and where it ends."""
    if kind in (_TRUE, _FALSE):
        return None, at + listed
    if kind == _BYTE:
        return None, at + 1
    if kind < _DOUBLE:
        return _whole(data, at)
    if kind == _DOUBLE:
        return None, at + 8
    if kind == _BINARY:
        length, at = _varint(data, at)
        if at + length > len(data):
            raise _Short
        return None, at + length
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    if kind not in (_LIST, _SET):
        raise ValueError("no page's header has maps")
    byte = _byte(data, at)
    at += 1
    length = byte >> 4
    if length == 15:
        length, at = _varint(data, at)
    for _ in range(length):
        _, at = _value(data, at, byte & 15, depth + 1, listed=True)
    return None, at


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise _Short
    return data[at]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = _byte(data, at)
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number beyond 64 bits")


def _whole(data: bytes, at: int) -> tuple[int, int]:
    """A whole number as Thrift's compact form has it, signs by turns."""
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at
