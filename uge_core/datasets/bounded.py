"""Opening files that may unpack into far more than they are: a few megabytes of gzip can hold terabytes.

What comes out is counted while it is read and refused beyond `unpacked_limit`, so that neither
memory nor disk is filled first.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from pathlib import Path
from typing import IO, Any

from uge_core.errors import ConfigError, GraphError

LIMIT = 4 * 2**30
"""Bytes that one file may unpack into where there is memory for it."""
SHARE = 16
"""A table takes some six times its text in memory while it is read, and the graph about as much again."""
LIMIT_VARIABLE = "UGE_MAX_UNPACKED"
"""The environment variable, in bytes, that takes the place of both."""
_GZIP = b"\x1f\x8b"


def unpacked_limit() -> int:
    """The bytes that one file may unpack into: what the variable says, else a 16th of the memory, at most `LIMIT`.

    Raises:
        ConfigError: the environment variable holds no whole number above 0.
    """
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return min(LIMIT, _memory() // SHARE)
    if not text.isdecimal() or not int(text):
        raise ConfigError(f"{LIMIT_VARIABLE}: found {text!r}; allowed: a whole number of bytes above 0")
    return int(text)


def _memory() -> int:
    """The bytes of memory that this machine has, or plenty where it does not say."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return LIMIT * SHARE
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def too_large(path: Path) -> GraphError:
    """The error about a file that unpacks into too much."""
    return GraphError(
        f"{path.name}: unpacks into more than {unpacked_limit():,} bytes and was not read further; "
        f"set {LIMIT_VARIABLE} to more bytes if you trust it"
    )


def is_gzip(path: Path) -> bool:
    """Whether a file starts like gzip data."""
    with path.open("rb") as f:
        return f.read(2) == _GZIP


def is_zipped(path: Path) -> bool:
    """Whether a file is gzip data by its name."""
    return path.suffix.lower() == ".gz"


def open_bytes(path: Path) -> IO[bytes]:
    """A file's bytes, unpacked where its name ends in .gz.

    Reading raises a `GraphError` once more than `unpacked_limit` bytes have come out of it.
    """
    if not is_zipped(path):
        return path.open("rb")
    return io.BufferedReader(_Counted(path), 2**18)


def read_bytes(path: Path, most: int) -> bytes:
    """All bytes of a file that is read whole.

    Raises:
        GraphError: it has more than `most` bytes, or unpacks into them.
    """
    with open_bytes(path) as f:
        data = f.read(most + 1)
    if len(data) > most:
        raise GraphError(f"{path.name}: has more than the {most:,} bytes that such a file may have")
    return data


def check_gzip(path: Path) -> None:
    """Unpacks a gzip file once without keeping any of it, as a parser would keep all until it is too much.

    Raises:
        GraphError: it unpacks into too much.
        OSError, EOFError, zlib.error: the data are damaged.
    """
    with open_bytes(path) as f:
        while f.read(2**20):
            pass


def check_archive(path: Path) -> None:
    """Refuses an .npz whose members unpack into too much, by the sizes its own directory gives.

    Raises:
        GraphError: they do.
        zipfile.BadZipFile: it is no archive.
    """
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > unpacked_limit():
            raise too_large(path)


class _Counted(io.RawIOBase):
    """What a gzip file holds, as long as it is not too much."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = gzip.open(path, "rb")  # noqa: SIM115, closed by close()
        self._left = unpacked_limit()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise too_large(self._path)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
