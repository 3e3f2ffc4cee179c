"""The text of a printed report, held against the page that it was printed from.

Each page of a PDF begins with what is printed at its foot, its number and the records' digest; then comes the text in the
document's order, that of drawings too, after the heads of a table that goes on. White space is left out on both sides, as
lines break anywhere, and letters that fonts join are taken apart.
"""

from __future__ import annotations

import io
import logging
import re
import struct
import unicodedata
import zlib
from collections.abc import Sequence
from itertools import pairwise

from uge_core.errors import ConfigError, RecordError
from uge_core.views.report.pieces import Piece

_MARK = b"%uge-report "
_END = re.compile(rb"\n%uge-report (\{[ -~]*\})\nstartxref\n(\d+)\n%%EOF\s*\Z")
# What a browser puts before the entries of a list and what unfolds, and what is no letter.
_MARKERS = "•◦▪‣▸▾►▼"
_RIGHT_TO_LEFT = ("R", "AL")
# What the reader raises besides its own.
_BROKEN: tuple[type[Exception], ...] = (ArithmeticError, AssertionError, AttributeError, LookupError, OSError)
_BROKEN += (RuntimeError, TypeError, ValueError, struct.error, zlib.error)


def with_recipe(pdf: bytes, recipe: str) -> bytes:
    """The PDF with a comment at its end; the place of its table is said once more, as readers look for it there."""
    place: list[bytes] = re.findall(rb"startxref\s+(\d+)", pdf[-2048:])
    if not place:
        raise ConfigError("the browser printed a PDF without an end; take html")
    return pdf + b"\n" + _MARK + recipe.encode("ascii") + b"\nstartxref\n" + place[-1] + b"\n%%EOF\n"


def recipe_of(pdf: bytes) -> tuple[str, bytes] | None:
    """The comment, and what the PDF was before it; None without one."""
    found = _END.search(pdf)
    if found:
        return found[1].decode("ascii"), pdf[: found.start()]
    # Another program may have written the file anew and have kept comments.
    loose = re.findall(rb"%uge-report (\{[ -~]*\})", pdf)
    return (loose[-1].decode("ascii"), pdf) if loose else None


def pages(pdf: bytes) -> list[list[str]]:
    """The lines of each page.

    Raises:
        ConfigError: pypdf is not installed.
        RecordError: it is no PDF that can be read.
    """
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError:
        raise ConfigError("pypdf, which reads the text of a PDF, is not installed; pip install pypdf") from None
    log = logging.getLogger("pypdf")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)  # what it has to say of a broken file is said below
    try:
        return [page.extract_text().splitlines() for page in PdfReader(io.BytesIO(pdf)).pages]
    except _BROKEN as error:
        raise RecordError(f"the PDF cannot be read ({type(error).__name__}: {str(error)[:80]})") from None
    except PyPdfError as error:
        raise RecordError(f"the PDF cannot be read ({str(error)[:80]})") from None
    finally:
        log.setLevel(before)


def first_difference(lines: Sequence[Sequence[str]], page: Sequence[Piece]) -> str | None:
    """The first difference of a PDF's lines and the page that it should be printed from, in words, or None."""
    text = _Flow(page)
    foot = _foot(page)
    at = 0
    for number, one in enumerate(lines, start=1):
        rest = [bare for line in one if (bare := letters(line))]
        due = letters(f"Page {number} of {len(lines)}{foot}")
        if (taken := _covered(rest, due)) == 0:
            said = " ".join(one[:1])[:200]
            return f"page {number}, its foot: the report says {said!r}, it should say 'Page {number} of {len(lines)}' and {foot!r}"
        rest = rest[taken:]
        if text.head and rest and not text.follows(at, rest[0]):
            # The heads of a table stand again on each page.
            rest = rest[_covered(rest, text.head_at(at)) :]
        for i, line in enumerate(rest):
            if not text.follows(at, line):
                return text.words(at, rest[i:], number)
            at += len(line)
    if at < len(text.all):
        return f"{text.place(at)}: missing in the PDF is {text.all[at : at + 80]!r}"
    return None


def _foot(page: Sequence[Piece]) -> str:
    """What stands at the foot of each page beside its number, as the style says."""
    style = next((p.content for p in page if p.kind == "text" and "@bottom-left" in p.content), "")
    found = re.search(r'@bottom-left \{ content: "([^"]*)"', style)
    return found[1] if found else ""


class _Flow:
    """The text that flows, without white space, and what stands where."""

    def __init__(self, page: Sequence[Piece]) -> None:
        shown = [(p, bare) for p in _body(page) if (bare := letters(p.content))]
        self.all = "".join(bare for _, bare in shown)
        self._starts: list[int] = []
        self._pieces = [p for p, _ in shown]
        at = 0
        self._heads: list[tuple[int, str]] = []
        for before, (piece, bare) in pairwise([(Piece("", "", ""), ""), *shown]):
            if piece.place.endswith(", heads"):
                if before[0].place == piece.place and self._heads:
                    start, text = self._heads[-1]
                    self._heads[-1] = start, text + bare
                else:
                    self._heads.append((at, bare))
            self._starts.append(at)
            at += len(bare)

    @property
    def head(self) -> bool:
        return bool(self._heads)

    def head_at(self, at: int) -> str:
        """The heads of the table that the text is in there, or of the last one before."""
        return next((text for start, text in reversed(self._heads) if start < at), "")

    def follows(self, at: int, line: str) -> bool:
        return self.all.startswith(line, at)

    def piece(self, at: int) -> int:
        return max((i for i, start in enumerate(self._starts) if start <= at), default=0)

    def place(self, at: int) -> str:
        return self._pieces[self.piece(at)].place if self._pieces else "the page"

    def words(self, at: int, lines: Sequence[str], page: int) -> str:
        """What differs from here on."""
        line = lines[0]
        same = 0
        while same < len(line) and at + same < len(self.all) and line[same] == self.all[at + same]:
            same += 1
        i = self.piece(at + same)
        whole, start = (self._pieces[i].content, self._starts[i]) if self._pieces else ("", 0)
        said = line[max(0, start - at) :][: len(letters(whole)) + 10]
        return f"page {page}, {self.place(at + same)}: the report says {said!r}, it should say {whole!r}"


def _body(page: Sequence[Piece]) -> list[Piece]:
    """The texts between <main> and </main>."""
    tags = [i for i, p in enumerate(page) if p.kind == "tag" and p.content in ("<main>", "</main>")]
    first, last = (tags[0], tags[-1]) if len(tags) > 1 else (0, len(page))
    found, numbers, number = [], False, 0
    for p in page[first:last]:
        if p.content in ("<ol>", "</ol>"):
            numbers, number = p.content == "<ol>", 0
        elif p.content == "<li>" and numbers:
            number += 1
            found.append(p._replace(kind="text", content=f"{number}."))
        elif p.kind == "text":
            found.append(p)
    return found


def letters(text: str) -> str:
    """The text without white space and what cannot be seen; letters written from right to left come in any order."""
    return "".join(
        c
        for c in unicodedata.normalize("NFKC", text)
        if not c.isspace()
        and c not in _MARKERS
        and unicodedata.category(c) not in ("Cf", "Cc", "Co", "Cn")
        and unicodedata.bidirectional(c) not in _RIGHT_TO_LEFT
    )


def _covered(lines: Sequence[str], head: str) -> int:
    """How many lines the heads take."""
    text = ""
    for i, line in enumerate(lines):
        text += line
        if text == head:
            return i + 1
        if not head.startswith(text):
            break
    return 0
