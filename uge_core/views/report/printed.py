"""The text of a printed report, held against the page that it was printed from.

A page of a PDF has the text that flows first, in the document's order, then the text of the charts on it. White space is
left out on both sides, as lines break anywhere, and letters that fonts join are taken apart. What is drawn is not read.
"""

from __future__ import annotations

import html
import io
import logging
import re
import struct
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from uge_core.errors import ConfigError, RecordError
from uge_core.views.report.pieces import Piece

_MARK = b"%uge-report "
_END = re.compile(rb"\n%uge-report (\{[ -~]*\})\nstartxref\n(\d+)\n%%EOF\s*\Z")
# What a browser puts before the entries of a list and what unfolds, and what is no letter.
_MARKERS = "•◦▪‣▸▾►▼"
_RIGHT_TO_LEFT = ("R", "AL")
_OPTIONAL = "?"
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
    text = _Flow(page, "".join(letters(line) for one in lines for line in one))
    labels = _labels(page)
    at = 0
    for number, one in enumerate(lines):
        rest = [bare for line in one if (bare := letters(line))]
        following = next((b for after in lines[number + 1 :] for line in after if (b := letters(line))), None)
        starts = [0]
        if text.head and rest and not text.follows(at, rest[0]):
            # The heads of a table stand again on each page.
            starts.insert(0, _covered(rest, text.head_at(at)))
        outcome = None
        for start in dict.fromkeys(starts):
            ends = list(text.walk(at, rest[start:]))
            for taken, there in reversed(ends):
                left = _tiled(rest[start + taken :], labels)
                if left is not None and (following is None or text.goes_on(there, following)):
                    outcome = there, left
                    break
            if outcome:
                break
        if outcome is None:
            taken, there = list(text.walk(at, rest[starts[0] :]))[-1]
            return text.words(there, rest[starts[0] + taken :], number + 1, labels)
        at, labels = outcome
    if at < len(text.all):
        return f"{text.place(at)}: missing in the PDF is {text.all[at : at + 80]!r}"
    lacking = next((label for label, n in labels.items() if n > 0 and not label.startswith(_OPTIONAL)), None)
    return None if lacking is None else f"a chart: missing in the PDF is {lacking!r}"


class _Flow:
    """The text that flows, without white space, and what stands where."""

    def __init__(self, page: Sequence[Piece], printed: str) -> None:
        body = _body(page)
        folded = "".join(p.content for p in body if p.folded)[:60]
        # Browsers differ in whether they print what is folded away.
        unfolded = bool(folded) and letters(folded) in printed
        shown = [(p, bare) for p in body if (unfolded or not p.folded) and (bare := letters(p.content))]
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

    def goes_on(self, at: int, line: str) -> bool:
        """Whether a page whose first line is this may come next."""
        head = self.head_at(at)
        return self.follows(at, line) or (bool(head) and (head.startswith(line) or line.startswith(head))) or not line

    def walk(self, at: int, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
        """How many lines follow one another in the text, and where it goes on, from none to as many as fit."""
        yield 0, at
        for i, line in enumerate(lines, start=1):
            if not self.follows(at, line):
                return
            at += len(line)
            yield i, at

    def piece(self, at: int) -> int:
        return max((i for i, start in enumerate(self._starts) if start <= at), default=0)

    def place(self, at: int) -> str:
        return self._pieces[self.piece(at)].place if self._pieces else "the page"

    def words(self, at: int, lines: Sequence[str], page: int, labels: Counter[str]) -> str:
        """What differs from here on."""
        line = lines[0] if lines else ""
        same = 0
        while same < len(line) and at + same < len(self.all) and line[same] == self.all[at + same]:
            same += 1
        if same == 0 or _tiled(lines[:1], labels) is not None:
            stray = next((x for x in lines if _tiled([x], labels) is None), line)
            if likely := _likely(stray, labels):
                return f"page {page}, a chart: the report says {stray!r}, it should say {likely!r}"
            if stray != line:
                return f"page {page}, a chart: the report says {stray[:200]!r}, which none of its charts says"
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


def _labels(page: Sequence[Piece]) -> Counter[str]:
    """What the charts write, with how often; what may be left out begins with a question mark."""
    found: Counter[str] = Counter()
    for piece in page:
        if piece.kind != "chart":
            continue
        for trace in piece.content["data"]:
            found.update(_plain(text) for text in trace.get("text") or ())
            found.update({_OPTIONAL + _plain(y): 1 for y in set(trace.get("y") or ())})
            if trace.get("showlegend") is not False:
                found[_OPTIONAL + _plain(trace.get("name", ""))] += 1
        layout = piece.content["layout"]
        found.update(_plain(a["text"]) for a in layout.get("annotations") or ())
        for name, axis in layout.items():
            if re.fullmatch(r"[xy]axis\d*", name):
                if title := (axis.get("title") or {}).get("text"):
                    found[_plain(title)] += 1
                if axis.get("showticklabels") is not False:
                    found.update({_OPTIONAL + f"{x:.1f}": 1 for x in axis.get("tickvals") or ()})
    return Counter({k: n for k, n in found.items() if k not in ("", _OPTIONAL)})


def _plain(text: Any) -> str:
    return letters(html.unescape(re.sub(r"<[^>]*>", "", str(text))))


def _tiled(lines: Sequence[str], labels: Counter[str]) -> Counter[str] | None:
    """The labels that are left when these lines are made of the others, or None where they are not."""
    left = labels.copy()
    names = sorted(left, key=lambda k: -len(k.removeprefix(_OPTIONAL)))
    for line in lines:
        at = 0
        while at < len(line):
            for name in names:
                if left[name] > 0 and line.startswith(name.removeprefix(_OPTIONAL), at):
                    left[name] -= 1
                    at += len(name.removeprefix(_OPTIONAL))
                    break
            else:
                return None
    return left


def _likely(line: str, labels: Counter[str]) -> str | None:
    """The label that a line was most likely changed from."""
    best, most = None, 0.7
    for name in labels:
        if labels[name] > 0:
            text = name.removeprefix(_OPTIONAL)
            same = sum(a == b for a, b in zip(text, line, strict=False)) / max(len(text), 1)
            if same > most:
                best, most = text, same
    return best
