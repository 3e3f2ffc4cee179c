"""Files that are written whole or not at all, and are known to be whole when they are read again.

A file is written under a temporary name, brought to the disk, and renamed, so that there is never half of one, not even
after the power failed. A name says which process writes, so that what a killed one left is known. A record is sealed: it
has the SHA-256 of its own content in it. And when nothing can be written, what is full is said.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    import pandas as pd
from uge_core.machine import birth

_PIECE = 2**20
_SCARCE = 2**20  # bytes free under which a disk counts as full
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EROFS)
_SEAL = "seal"


class Unsealed(ValueError):
    """A record that does not have the SHA-256 of its own content in it: it was changed, or is none of ours."""


def write_atomically(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Writes a file as `.NAME.TOKEN.PID`, for its user's eyes alone, and gives it its name once it is on the disk.

    Raises:
        OSError: it cannot be written; the one of before stays, and no temporary file is left.
    """
    temporary = path.with_name(f".{path.name}.{mark()}")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Brings what was written of a file, or the names in a folder, to the disk, so that a power failure takes nothing of it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Makes a folder for its user's eyes alone, with those above it, so that it outlives a power failure."""
    if not path.is_dir():
        missing = [path, *(p for p in path.parents if not p.exists())]
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for made in reversed(missing):
            sync(made.parent)


def mark() -> str:
    """What a temporary name ends in, `TOKEN.PID`: no two are alike, and it says which process writes."""
    return f"{secrets.token_hex(4)}.{os.getpid()}"


# The token is that of `mark`, or of `tempfile.mkdtemp`; no process has a number of more digits, as a date has.
_MARKED = re.compile(r"\.(?:.*[.-])?[a-z0-9_]{8}\.(\d{1,7})(\.(new|deleted))?", re.DOTALL)


def abandoned(path: Path) -> bool:
    """Whether a file or folder has a temporary name, and the process that it names is gone."""
    temporary = _MARKED.fullmatch(path.name)
    return temporary is not None and birth(int(temporary[1])) is None


def remove(path: Path) -> None:
    """Removes a file, a link, or a folder with all in it; one that is gone already is no fault.

    Raises:
        OSError: it cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_abandoned(folder: Path, prefix: str) -> list[Path]:
    """Removes what killed processes left in a folder under temporary names that begin with `prefix`; says what it was."""
    found = []
    with suppress(OSError):
        found = [p for p in sorted(folder.iterdir()) if p.name.startswith(prefix) and abandoned(p)]
    gone = []
    for path in found:
        with suppress(OSError):  # another user's, or somebody was quicker
            remove(path)
            gone.append(path)
    return gone


TEMPORARY = ".uge-"
"""How the names of our folders among the machine's temporary files begin."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder among the machine's temporary files, gone afterwards; what killed processes left of theirs goes first."""
    place = Path(tempfile.gettempdir())
    remove_abandoned(place, TEMPORARY)
    folder = Path(tempfile.mkdtemp(prefix=TEMPORARY, suffix=f".{os.getpid()}", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def digest(path: Path) -> str:
    """SHA-256 of a file; read once, and again where its size, times or place on the disk are others.

    Raises:
        OSError: it cannot be read.
    """
    facts = path.stat()
    return _digest(path, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_dev)


@lru_cache(maxsize=1 << 14)
def _digest(path: Path, *_: int) -> str:
    return digest_anew(path)


def digest_anew(path: Path) -> str:
    """SHA-256 of a file, read now whatever was known of it: a disk may lose bits and leave all dates as they were."""
    made = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            made.update(piece)
    return made.hexdigest()


def sealed(record: Mapping[str, Any]) -> bytes:
    """A record as JSON with the SHA-256 of its content; `unsealed` reads it."""
    text = json.dumps(record, ensure_ascii=False)
    content = json.loads(text)
    return json.dumps(content | {_SEAL: _sum(content)}, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")


def unsealed(content: bytes) -> dict[str, Any]:
    """The record that was sealed.

    Raises:
        Unsealed: it does not have the SHA-256 of its own content in it.
        ValueError: it is no JSON.
    """
    record = json.loads(content.decode("utf-8", "surrogatepass"))
    if not isinstance(record, dict) or record.pop(_SEAL, None) != _sum(record):
        raise Unsealed("differs from the SHA-256 in it")
    return record


def _sum(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def full(path: Path, error: BaseException) -> str | None:
    """What is full, in words, where that is why `path` could not be written; else None.

    Args:
        path: what was to be written; it need not be there.
        error: what came of it. NumPy and SQLite do not always say that a disk is full, so the disk is asked too.
    """
    there = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EFBIG:
        return f"files in {there} may not grow that large (ulimit -f, or the disk's own limit)"
    short = isinstance(error, OSError) and number is None and "written" in str(error)  # NumPy's words
    named = getattr(error, "sqlite_errorname", "")
    try:
        disk = os.statvfs(there)
    except OSError:
        return None
    free, entries = disk.f_bavail * disk.f_frsize, disk.f_favail if disk.f_files else 1
    unsure = short or named.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN"))
    if number not in _NO_ROOM and named != "SQLITE_FULL" and not (unsure and (short or free < _SCARCE or not entries)):
        return None
    if number == errno.EDQUOT:
        return f"the quota on the disk at {_mount(there)} is used up"
    if not entries:
        return f"the disk at {_mount(there)} is full: it takes no more files"
    return f"the disk at {_mount(there)} is full ({free / 1e6:,.1f} MB free)"


def _mount(path: Path) -> Path:
    """Where the disk that holds a file begins."""
    top = path.resolve()
    while top.parent != top and top.parent.stat().st_dev == top.stat().st_dev:
        top = top.parent
    return top


class StrictLoader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
    """The safe loader without aliases, which can unpack into too much, and without repeated keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """A node that is no alias."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) are not allowed", problem_mark=self.peek_event().start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """A mapping whose keys stand once."""
        seen: set[str] = set()
        for key, _ in node.value:
            # A key that is a list or a mapping is refused below.
            if isinstance(key.value, str):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem=f"key {key.value!r} stands twice", problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def quoted(value: Any) -> Any:
    """A cell as a spreadsheet may see it; numbers, and text that is one, stay as they are."""
    if not isinstance(value, str) or value[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n"):
        return value
    try:
        float(value)
    except ValueError:
        return "'" + value
    return value


def to_csv(table: pd.DataFrame) -> str:
    """The table as CSV."""
    text: str = table.map(quoted).to_csv(index=False)
    return text
