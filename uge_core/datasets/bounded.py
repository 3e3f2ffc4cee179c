"""Opening files without trusting them: a pipe may never end, and a few megabytes of gzip can hold terabytes.

Plain files alone are opened. What comes out is counted while it is read and refused beyond `unpacked_limit`, so that
neither memory nor disk is filled first: of gzip here, of other forms by their readers, which ask `unpacked_limit` too.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from uge_core.errors import ConfigError, GraphError

LIMIT = 4 * 2**30
"""Bytes that one file may unpack into where there is memory for it."""
SHARE = 16
"""A table takes some six times its text in memory while it is read, and the graph about as much again."""
LIMIT_VARIABLE = "UGE_MAX_UNPACKED"
"""The environment variable, in bytes, that takes the place of both."""
_CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux says how much memory a container may take, in its control groups' two versions."""
_GZIP = b"\x1f\x8b"
_DEFLATED = 1032
"""What deflate makes of a byte at most."""
_BLOCK = 2**20
_ENDLESS = 2**62
_SPECIAL = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def unpacked_limit() -> int:
    """The bytes that one file may unpack into: what the variable says, else a 16th of the memory of the machine or container, at most `LIMIT`.

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
    """The bytes of memory that this machine has, or the container in it, or plenty where neither says."""
    found = [LIMIT * SHARE]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in _CONTAINER:
        with suppress(OSError, ValueError):  # ValueError: "max", no limit
            found.append(int(path.read_text()))
    return min(found)


def too_large(path: Path) -> GraphError:
    """The error about a file that unpacks into too much."""
    return GraphError(
        f"{path.name}: unpacks into more than {unpacked_limit():,} bytes and was not read further; "
        f"set {LIMIT_VARIABLE} to more bytes if you trust it"
    )


def special(path: Path) -> str:
    """What a path is that is there and no plain file, such as "a pipe", which may have no end; else empty.

    Raises:
        OSError: nothing is there, or it may not be looked at.
    """
    return _called(path.stat().st_mode)


def _called(mode: int) -> str:
    return next((what for holds, what in _SPECIAL if holds(mode)), "")


def open_plain(path: Path) -> IO[bytes]:
    """A file's bytes as they are.

    Raises:
        GraphError: it is a pipe, a device or what else is no plain file.
        OSError: it cannot be opened.
    """
    what = special(path)
    if not what:
        # It may have become a pipe since, which would wait for somebody who writes into it.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        what = _called(os.fstat(handle).st_mode)
        if not what:
            return os.fdopen(handle, "rb")
        os.close(handle)
    raise GraphError(f"{path.name}: is {what}, which is never read; name a plain file")


def refuse_link_out(path: Path) -> None:
    """Refuses a file that is a link out of its folder: what it leads to may be somebody else's.

    Raises:
        GraphError: it is one.
    """
    target = path.resolve()
    if not target.is_relative_to(path.parent.resolve()):
        raise GraphError(
            f"{path.name}: is a link out of its folder, to {target}, and was not read; copy that file into the folder if "
            "it belongs to the graph"
        )


def is_gzip(path: Path) -> bool:
    """Whether a file starts like gzip data."""
    with open_plain(path) as f:
        return f.read(2) == _GZIP


def is_zipped(path: Path) -> bool:
    """Whether a file is gzip data by its name."""
    return path.suffix.lower() == ".gz"


def open_bytes(path: Path) -> IO[bytes]:
    """A file's bytes, unpacked where its name ends in .gz.

    Reading raises a `GraphError` once more than `unpacked_limit` bytes have come out of it.
    """
    if not is_zipped(path):
        return open_plain(path)
    return io.BufferedReader(_Counted(path), 2**18)


def read_bytes(path: Path, most: int, *, settable: bool = False) -> bytes:
    """All bytes of a file that is read whole.

    Args:
        path: the file.
        most: how many it may have.
        settable: whether that follows from `unpacked_limit`.

    Raises:
        GraphError: it has more than `most` bytes, or unpacks into them.
    """
    data = bytearray()
    with open_bytes(path) as f:
        while block := f.read(_BLOCK):
            data += block
            if len(data) > most:
                more = f"; set {LIMIT_VARIABLE} to more bytes if you trust it" * settable
                raise GraphError(f"{path.name}: has more than the {most:,} bytes that such a file may have{more}")
    return bytes(data)


def check_gzip(path: Path) -> None:
    """Unpacks a gzip file once without keeping any of it, as a parser would keep all until it is too much.

    Raises:
        GraphError: it unpacks into too much.
        OSError, EOFError, zlib.error: the data are damaged.
    """
    with open_bytes(path) as f:
        while f.read(_BLOCK):
            pass


def check_archive(path: Path, *, count: bool = False) -> None:
    """Refuses a zip archive whose members unpack into too much.

    Args:
        path: the file.
        count: do not trust the sizes that its directory gives, as some readers go on behind them.

    Raises:
        GraphError: they do.
        zipfile.BadZipFile: it is no archive.
    """
    left = limit = unpacked_limit()
    with open_plain(path) as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > limit:
            raise too_large(path)
        if not count or sum(member.compress_size for member in members) * _DEFLATED <= limit:
            return
        for member in members:
            member.file_size = _ENDLESS  # zipfile would read no further
            with archive.open(member) as unpacked:
                while block := unpacked.read(_BLOCK):
                    left -= len(block)
                    if left < 0:
                        raise too_large(path)


class _Counted(io.RawIOBase):
    """What a gzip file holds, as long as it is not too much."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._plain = open_plain(path)
        self._file = gzip.GzipFile(fileobj=self._plain, mode="rb")
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
        self._plain.close()
        super().close()
