"""Quotation marks that make a table something else than its lines look like.

A mark that is opened and closed far away swallows the rows between; marks escaped by a backslash close
cells early. Both are looked for only in files whose cells hold line breaks or backslashes before marks.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from uge_core.datasets.beginnings import are_neighbours, even
from uge_core.datasets.bounded import open_bytes
from uge_core.errors import GraphError

_EMPTY = ("\n", "\r\n", "\r")
_CLOSED = re.compile(r'[^"]*(?:""[^"]*)*"(?!")')
_FEW = 3  # line breaks that a cell may hold whatever stands between them
_ESCAPED = '\\"'


class Watched(io.TextIOWrapper):
    """The text of a file from some line on, which counts line ends as they are read.

    Attributes:
        breaks: how many.
        escaped: whether a backslash stands before a quotation mark.
    """

    def __init__(self, file: IO[bytes], encoding: str, skipped: int) -> None:
        super().__init__(file, encoding=encoding, newline="")
        self.breaks = 0
        self.escaped = False
        self._last = ""
        self._skip = skipped

    def read(self, size: int | None = -1, /) -> str:
        """As any text file."""
        while self._skip:
            self.readline()
            self._skip -= 1
        text = super().read(size)
        self.breaks += text.count("\n")
        if "\r" in text:
            self.breaks += text.count("\r") - text.count("\r\n")
        self.escaped = self.escaped or _ESCAPED in text or (self._last == "\\" and text.startswith('"'))
        self._last = text[-1:]
        return text


@dataclass(frozen=True)
class Faults:
    """What is wrong with a file that cannot be read as a table.

    Attributes:
        path: the file.
        encoding: of the file.
        sep: the separator.
        width: the number of columns.
        skipped: lines before the first row; None where marks have no meaning.
        lines: the first lines.
    """

    path: Path
    encoding: str
    sep: str
    width: int
    skipped: int | None
    lines: Sequence[str] = ()

    def check(self) -> None:
        """Refuses a file whose marks swallow rows or are escaped by backslashes.

        Raises:
            GraphError: they do.
        """
        for reason in self._reasons(unclosed=False):
            raise GraphError(f"{self.path.name}: {reason}")

    def too_long(self, line: int) -> GraphError:
        """The error about a row that is longer than the header, or about the marks that made it so."""
        for reason in self._safe_reasons():
            return GraphError(f"{self.path.name}: {reason}")
        if are_neighbours(self.path, self.lines, self.sep):
            return GraphError(
                f"{self.path.name}: its lines have unequal numbers of cells, as in a list of everybody's neighbours; write "
                "a line for each edge, with the ids of its two ends"
            )
        return GraphError(
            f"{self.path.name}: line {line} has more than the {self.width} fields expected; quote cells that hold the "
            "separator"
        )

    def of_parser(self, text: str) -> GraphError:
        """The parser's complaint in the user's terms."""
        match = re.search(r"in line (\d+), saw", text)
        if match:
            return self.too_long(int(match.group(1)) + (self.skipped or 0))
        for reason in self._safe_reasons():
            return GraphError(f"{self.path.name}: {reason}")
        if "inside string" in text:
            return GraphError(f"{self.path.name}: a quotation mark is opened and never closed; close it or remove it")
        return GraphError(f"{self.path.name}: cannot be read as a table ({text.strip().splitlines()[-1]})")

    def _safe_reasons(self) -> list[str]:
        """The first reason, or none where the file cannot be read to its end."""
        with suppress(OSError, EOFError, ValueError, GraphError):
            return next(([r] for r in self._reasons(unclosed=True)), [])
        return []

    def _reasons(self, *, unclosed: bool) -> Iterator[str]:
        """What is wrong with the marks, in the order of the lines."""
        if self.skipped is None:
            return
        with io.TextIOWrapper(open_bytes(self.path), encoding=self.encoding, newline="") as f:
            opened, column, inner, slashed = 0, 0, list[int](), False
            for number, raw in enumerate(f, start=1):
                if number <= self.skipped or (not opened and '"' not in raw):
                    continue
                if raw in _EMPTY:  # there may be millions in one cell
                    inner.append(0)
                    continue
                line = even(raw.rstrip("\r\n"), self.sep)
                at = 0
                if opened:
                    closed = _CLOSED.match(line)
                    inner.append(self._separators(line[: closed.end()] if closed else line))
                    slashed = slashed or _ESCAPED in line
                    if not closed:
                        continue
                    if self._swallows(column, inner):
                        yield self._backslash(opened) if slashed else self._far(opened, number)
                    opened, at = 0, closed.end()
                    found = self._after(line, at)
                else:
                    found = self._field(line, 0, 0)
                escaped, open_at, index = found
                if escaped:
                    yield self._backslash(number)
                if open_at is not None:
                    opened, column, slashed = number, index, _ESCAPED in line[open_at:]
                    inner = [self._separators(line[open_at:])]
            if opened and unclosed:
                yield (
                    self._backslash(opened)
                    if slashed
                    else (f"line {opened}: a quotation mark is opened and never closed; close it or remove it")
                )

    def _field(self, line: str, at: int, index: int) -> tuple[bool, int | None, int]:
        """From the start of a field: whether a mark is escaped, where a cell stays open, and its column."""
        escaped = False
        while True:
            while line[at : at + 1] == " ":
                at += 1
            if line[at : at + 1] == '"':
                closed = _CLOSED.match(line, at + 1)
                if not closed:
                    return escaped, at + 1, index
                at = closed.end()
                rest = line[at:].lstrip(" ")
                escaped = escaped or (bool(rest) and not rest.startswith(self.sep) and line[at - 2] == "\\")
            following = line.find(self.sep, at)
            if following < 0:
                return escaped, None, index
            at, index = following + 1, index + 1

    def _after(self, line: str, at: int) -> tuple[bool, int | None, int]:
        """The same from behind a closing mark."""
        following = line.find(self.sep, at)
        return (False, None, 0) if following < 0 else self._field(line, following + 1, 1)

    def _separators(self, text: str) -> int:
        """How many separators stand in a text; a comma before a blank is prose."""
        return len(re.findall(re.escape(self.sep) + r"(?! )", text)) if self.sep in ",;" else text.count(self.sep)

    def _swallows(self, column: int, inner: list[int]) -> bool:
        """Whether the lines of a cell look like rows: by the separators in each of them."""
        row = self.width - 1
        if not row:
            return False
        first, *middle, last = inner
        if column + first == row and last == column and all(n == row for n in middle):
            return True
        return len(middle) >= _FEW and sum(n >= row for n in middle) * 2 >= len(middle)

    def _far(self, opened: int, closed: int) -> str:
        return (
            f"line {opened}: a quotation mark is opened and closed only in line {closed}, so that what look like rows "
            f"between them would be one cell; close it in line {opened}, or remove it (a cell that begins with a mark "
            'of its own is written """like this""")'
        )

    def _backslash(self, line: int) -> str:
        return (
            f'line {line}: quotation marks inside cells are escaped by a backslash (\\"), which is not read; write them '
            'twice: replace every \\" in the file by ""'
        )
