"""How a text table begins: comments, a line that says the separator, and whether the first line is a header.

A first line is taken for a row where it is like the lines below it: numbers over numbers, or a text that stands
again in its column. It is taken for a header where a cell is no number over a column of numbers, or a known name.
"""

from __future__ import annotations

import codecs
import csv
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from uge_core.datasets.bounded import is_gzip, is_zipped, open_bytes
from uge_core.errors import GraphError
from uge_core.graph.graph import Message

LONGEST = 2**24
_PEEK = 2**16
_MOST_LINES = 1_000
_LOOKED_AT = 200
_MOST_CELLS = 20_000
_TALLEST = 20  # lines that the cells of a header may take
_SEPARATORS = ",;\t"
COMMENTS = ("#", "%", "//")
_COMMENT_BYTES = tuple(mark.encode() for mark in COMMENTS)
_MARK = re.compile(r"^(?:#|%|//)+")
_OTHERS = ("::", "|")
_WITHOUT_BLANKS = ("^", "~", ":")  # beside blanks they are punctuation
_SLIPS = 0.8
_SHOWN = 3
_SHORTEST_CODE = 6
LINE_END = re.compile(r"\r\n|\n|\r")
_SAYS_SEPARATOR = re.compile(r'\ufeff?"?sep=([^"\w\s]|\t| )"?[,;\t|]*', re.IGNORECASE)
_DRAWN = re.compile(r"\s*[+|:,;\s=-]*[-=]{2,}[+|,;\s][+|:,;\s=-]*|\s*\|.*\|\s*")
_DRAWN_WITHIN = 4
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
KNOWN = {
    "id",
    "node",
    "node_id",
    "user_id",
    "userid",
    "source",
    "target",
    "src",
    "dst",
    "from",
    "to",
    "weight",
    "label",
}
"""Names that a header has, and that are hardly ever cells."""
_LETTERS = {("a", "b"), ("x", "y"), ("i", "j"), ("u", "v"), ("v", "w")}
"""Names of ends that may be ids as well."""
SEPARATOR_NAMES = {"\t": "tabs", " ": "blanks", ",": "commas", ";": "semicolons"}
_KONECT = {"sym", "asym", "bip"}


@dataclass(frozen=True)
class Start:
    """How a text file begins.

    Attributes:
        skipped: how many lines stand before the first one that counts.
        comments: those of them that are comments.
        sep: what a line ``sep=;`` says, or empty.
        lines: the first lines from there on, without their ends; always one.
    """

    skipped: int
    comments: tuple[str, ...]
    sep: str
    lines: list[str]


def begin(path: Path, encoding: str, *, comments: bool = False) -> Start:
    """The first lines of a text file, after checking that it is one.

    Args:
        path: the file.
        encoding: of the file.
        comments: whether lines at the start may be comments.

    Raises:
        GraphError: not what its name says, not text, or empty.
    """
    wide = encoding.lower().startswith(("utf-16", "utf-32"))  # a line's end is not one byte
    try:
        zipped = is_gzip(path)
        if is_zipped(path) and not zipped:
            raise GraphError(f"{path.name}: is not gzip data although its name ends in .gz; rename it or compress it")
        if zipped and not is_zipped(path):
            raise GraphError(f"{path.name}: is gzip data; rename it to {path.name}.gz or unpack it")
        with open_bytes(path) as f:
            line = f.readline(LONGEST)
            first, size = [line], len(line)
            while comments and not wide and size < LONGEST and line and (line.isspace() or _is_comment(line)):
                line = f.readline(LONGEST)
                first.append(line)
                size += len(line)
            head = b"".join(first)
            peek = head + f.readline(LONGEST)
            more = f.read(_PEEK)
            peek += more
            cut = len(more) == _PEEK
    except (OSError, EOFError, zlib.error) as e:
        raise GraphError(f"{path.name}: {reason(path, e, encoding)}") from None
    if peek[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and not encoding.lower().startswith("utf-16"):
        raise GraphError(f"{path.name}: is UTF-16 text; save it as UTF-8 (in Excel: CSV UTF-8)")
    if b"\0" in peek and not wide:
        raise GraphError(f"{path.name}: is not text (it holds zero bytes); save it as plain text separated by commas")
    try:
        if wide:
            lines = LINE_END.split(codecs.getincrementaldecoder(encoding)().decode(peek))
        else:
            # What is wrong further down is found, with its line, when the rows are read.
            sure = head.count(b"\n") + 1
            raw = re.split(rb"\r\n|\n|\r", peek, maxsplit=sure + _MOST_LINES)
            cut = cut or len(raw) > sure + _MOST_LINES
            lines = [b.decode(encoding, "strict" if i < sure else "replace") for i, b in enumerate(raw)]
    except UnicodeDecodeError as e:
        raise GraphError(f"{path.name}: {reason(path, e, encoding)}") from None
    if cut and len(lines) > 2:
        lines.pop()  # cut off
    at = 0
    said = _SAYS_SEPARATOR.fullmatch(lines[0])
    at += said is not None
    found: list[str] = []
    while comments and at < len(lines) - 1 and ((found and not lines[at].strip()) or _is_comment(lines[at])):
        found += [lines[at]] if lines[at].strip() else []
        at += 1
    if found and re.match("%%MatrixMarket", found[0], re.IGNORECASE):
        raise GraphError(
            f"{path.name}: is a Matrix Market file, no table; rename it so that it ends in .mtx, "
            "with nodes.csv beside it, row i of the matrix being the i-th of the nodes; or save it as CSV"
        )
    drawn = next((i for i, line in enumerate(lines[at : at + _DRAWN_WITHIN], at) if _DRAWN.fullmatch(line)), None)
    if drawn is not None:
        raise GraphError(
            f"{path.name}: line {drawn + 1} ({lines[drawn].strip()[:40]!r}) is drawn, as in a table that a database's "
            "shell or Markdown shows; save the table as CSV (psql --csv, mysql --batch, sqlite3 -csv)"
        )
    if not lines[at].strip():
        what = (
            "is empty" if not b"".join(peek.split()) else f"line {at + 1} is empty" if at else "the first line is empty"
        )
        raise GraphError(f"{path.name}: {what}; a header or a first row is needed")
    return Start(at, tuple(found), said.group(1) if said else "", lines[at:])


def _is_comment(line: str | bytes) -> bool:
    """Whether a line begins like a comment."""
    if isinstance(line, bytes):
        return line.removeprefix(codecs.BOM_UTF8).startswith(_COMMENT_BYTES)
    return line.startswith(COMMENTS)


def separator_of(lines: Sequence[str], *, blanks: bool = True) -> str:
    """Comma, semicolon or tab by the first lines; a blank where all lines agree on it.

    Of several in the first line the one that stands as often in most of the others, prose left out: a comma before a
    blank is no separator where another may be one.

    Args:
        lines: the first lines.
        blanks: whether blanks may separate.
    """
    some = [_without_quoted(line) for line in lines[:_LOOKED_AT] if line.strip()]
    there = [s for s in _SEPARATORS if s in some[0]]
    if not there and len(some) > 1:  # under a title of one cell
        there = [s for s in _SEPARATORS if all(s in line for line in some[1:])]
    bare = [s for s in there if any(re.search(re.escape(s) + r"\S", line) for line in some)]
    there = bare or there
    if there:
        return max(there, key=lambda s: (sum(line.count(s) == some[0].count(s) for line in some), some[0].count(s)))
    whole = [line for line in lines[:_LOOKED_AT] if line.strip()]
    fields = [len(line.split()) for line in whole]
    if blanks and len(whole) > 1 and not any(set(line) & set(_SEPARATORS) for line in whole):
        even = fields[0] > 1 and len({*fields}) == 1
        if even or (
            len(whole) > 2 and {*fields[1:]} == {fields[0] + 1}
        ):  # R's write.table names no column of row names
            return " "
    return _SEPARATORS[0]


def other_separator(lines: Sequence[str]) -> str:
    """What separates in place of comma, semicolon, tab and blank, or nothing: ``::`` or ``|``, as often in all lines."""
    some = [_without_quoted(line) for line in lines[:_LOOKED_AT] if line.strip()]
    marks = _OTHERS if any(re.search(r"\s", line) for line in some) else _OTHERS + _WITHOUT_BLANKS
    for mark in marks:
        counts = {line.count(mark) for line in some}
        if len(some) > 1 and len(counts) == 1 and counts != {0}:
            return mark
    return ""


def refuse_other_separator(path: Path, lines: Sequence[str], sep: str) -> None:
    """Refuses a file whose cells are separated by what nobody said.

    Args:
        path: the file.
        lines: its first lines.
        sep: the separator that was found.

    Raises:
        GraphError: another one stands as often in all lines, and `sep` does not.
    """
    mark = other_separator(lines)
    some = [_without_quoted(line) for line in lines[:_LOOKED_AT] if line.strip()]
    counts = {line.count(sep) for line in some}
    if not mark or (sep in _SEPARATORS and len(counts) == 1 and counts != {0} and mark != "::"):
        return
    if mark == "::":
        raise GraphError(
            f"{path.name}: '::' separates its cells, as in MovieLens 1M and 10M; it is read in files called users.dat, "
            "ratings.dat and movies.dat alone: call them so, or replace every :: by a tab"
        )
    raise GraphError(
        f"{path.name}: {mark!r} separates its cells; say so in dataset.yaml (edges: FILE, nodes: FILE, separator: "
        f"{mark!r}), or write sep={mark} as the first line of the file"
    )


def _without_quoted(line: str) -> str:
    return re.sub(r'"[^"]*"', "", line)


def are_neighbours(path: Path, lines: Sequence[str], sep: str) -> bool:
    """Whether lines of unequal length are lists: somebody's id, and the ids of all neighbours."""
    rows = [[c for c in record(path, [line], sep)[0] if c] for line in lines[:_LOOKED_AT] if line.strip()]
    first, others = {row[0] for row in rows}, [c for row in rows for c in row[1:]]
    usual = max(Counter(map(len, rows)).values(), default=0)  # a row too long here and there is a slip
    ids = sum(c in first for c in others) * 2 > len(others)
    return usual < _SLIPS * len(rows) and len(first) == len(rows) and (ids or all(map(written_as_number, others)))


def split(path: Path, line: str, sep: str) -> list[str]:
    """The cells of one line, quotes removed."""
    return record(path, [line], sep)[0]


def record(path: Path, lines: Sequence[str], sep: str) -> tuple[list[str], int]:
    """The cells of the first row of `lines`, quotes removed, and how many lines it takes."""
    try:
        few = (f"{even(line, sep)}\n" for line in lines[:_TALLEST])
        reader = csv.reader(few, delimiter=sep[0], skipinitialspace=True)
        cells = next(reader, [])
    except csv.Error as e:
        raise GraphError(f"{path.name}: cannot be read as a table ({e})") from None
    if reader.line_num > 1 and (reader.line_num == len(lines[:_TALLEST]) or len(lines) == 1):
        return record(path, lines[:1], sep) if len(lines) > 1 else ([c.rstrip("\n") for c in cells], 1)
    return [c.rstrip("\n") for c in cells], reader.line_num


def even(line: str, sep: str) -> str:
    """A line with single blanks where runs of them separate."""
    return re.sub(r"[ \t]+", " ", line.strip(" \t")) if sep == " " else line


def header_of(
    path: Path, start: Start, sep: str, header: bool | None, columns: Sequence[str] | None
) -> tuple[list[str], int, tuple[Message, ...], bool]:
    """The names of a table's columns.

    Args:
        path: the file, for messages.
        start: how it begins.
        sep: the separator.
        header: whether the first line is one; None: by what it looks like.
        columns: names given by the user, or None.

    Returns:
        The names, how many lines the header takes, what is to be said, and whether there is no header.

    Raises:
        GraphError: what the first line is cannot be told, or `columns` are not as many as its fields.
    """
    cells, used = record(path, start.lines, sep)
    cells = [LINE_END.sub(" ", c).strip() for c in cells]
    enough = _MOST_CELLS // max(len(cells), 1) + 2
    below = [
        record(path, [line], sep)[0] for line in start.lines[used : used + min(_LOOKED_AT, enough)] if line.strip()
    ]
    rows = [[c.strip() for c in row] for row in below]
    if header is not False and columns is None and rows and all(len(r) == len(cells) + 1 and r[-1] for r in rows):
        raise GraphError(f"{path.name}: {_short_header(start, sep, cells, rows)}")
    likeness = _likeness(cells, rows)
    named = (
        _named_by_comment(path, start, sep, cells, rows, likeness) if columns is None and header is not False else None
    )
    first = f"line {start.skipped + 1} ({', '.join(repr(c[:30]) for c in cells[:_SHOWN])})"
    messages = []
    if start.comments:
        marks = " or ".join(dict.fromkeys(next(m for m in COMMENTS if c.startswith(m)) for c in start.comments))
        many = len(start.comments)
        text = (
            f"{path.name}: {many:,} {'line' if many == 1 else 'lines'} at the start {'begins' if many == 1 else 'begin'} "
            f"with {marks} and {'was' if many == 1 else 'were'} skipped as "
            f"{'a comment' if many == 1 else 'comments'}" + ("; the last one names the columns" if named else "")
        )
        shown = tuple(c[:60] for c in start.comments[:_SHOWN])
        remedy = "nothing to do; if they are rows, write a header line above them"
        messages.append(Message("note", "comment-lines", text, many, shown, remedy))
    if named:
        return named, 0, tuple(messages), False
    if columns is not None:
        if len(columns) != len(cells):
            raise GraphError(
                f"{path.name}: columns: in dataset.yaml has {len(columns)} of the {len(cells)} names that {first} needs, "
                f"separated by {SEPARATOR_NAMES.get(sep, repr(sep))}; name as many as there are fields"
            )
        if header is None and (likeness == "header" or [c.lower() for c in columns] == [c.lower() for c in cells]):
            raise GraphError(
                f"{path.name}: columns are named in dataset.yaml, and {first} looks like a header as well; say beside "
                "columns: whether it is one, header: true or header: false"
            )
        return list(columns), used if header else 0, tuple(messages), not header
    if header is None and likeness == "row":
        numbers = cells == [str(i) for i in range(len(cells))] and sep in _SEPARATORS and not start.comments
        if numbers or tuple(c.lower() for c in cells[:2]) in _LETTERS:
            other = "column numbers as pandas writes them for a header" if numbers else "a header"
            raise GraphError(
                f"{path.name}: {first} may be the first row, or {other}; "
                f"say which in dataset.yaml: header: true or header: false beside file: {path.name}, or write a header "
                "line with names"
            )
        text = f"{path.name}: has no header line, as {first} is like the lines below it; its columns are called "
        text += ", ".join(str(i + 1) for i in range(len(cells))[:_SHOWN]) + (
            " and so on" if len(cells) > _SHOWN else ""
        )
        remedy = "nothing to do; header: true or false and columns: [..] in dataset.yaml say otherwise"
        messages.append(Message("note", "no-header", text, remedy=remedy))
        header = False
    if header is False:
        return [str(i + 1) for i in range(len(cells))], 0, tuple(messages), True
    return cells, used, tuple(messages), False


def _short_header(start: Start, sep: str, cells: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Why a header has a cell less than each line below."""
    many = len(rows[0])
    text = f"the header names {len(cells)} column{'s' * (len(cells) > 1)}, but each line below has {many} cells"
    line = next((x for x in start.lines[1:] if re.search(re.escape(sep) + r" \S", _without_quoted(x))), None)
    if sep != " " and line is not None and f"{sep} " not in start.lines[0]:
        return f"{text}; put cells that hold the separator into quotation marks, as in {line[:60]!r}"
    if len(cells) == 1 or not any(map(written_as_number, rows[0])):
        return (
            f"{text}; remove line {start.skipped + 1} ({cells[0][:40]!r}) if it is a title, or name all columns in it"
        )
    return (
        f"{text}, as R's write.table leaves out the name of the row names; write the table with row.names=FALSE, or a "
        "name in front of the header"
    )


def _named_by_comment(
    path: Path, start: Start, sep: str, cells: Sequence[str], rows: Sequence[Sequence[str]], likeness: str
) -> list[str] | None:
    """The names in the last comment line, where there is no other header and it can be one.

    Raises:
        GraphError: a comment line is like the rows.
    """
    if not start.comments:
        return None
    everything = [list(cells), *rows]
    for number, line in enumerate(start.comments, start=start.skipped - len(start.comments) + 1):
        own = [c.strip() for c in record(path, [line], sep)[0]]
        if sep != " " and len(own) == len(cells) > 1 and _likeness(own, everything) == "row":
            raise GraphError(
                f"{path.name}: line {number} ({line[:60]!r}) begins like a comment, but is like the rows below; remove "
                "it if it is one, else write a header line above it, after which no line is a comment"
            )
    written = record(path, [start.comments[-1]], sep)[0]
    if len(written) == len(cells) > 1 and written[0].strip() == "#":
        last = [c.strip() for c in written]  # a column of numbers may be called so
    else:
        last = [c.strip() for c in record(path, [_MARK.sub("", start.comments[-1]).strip()], sep)[0]]
    if (
        len(last) != len(cells)
        or not all(last)
        or any(map(written_as_number, last))
        or len({*last}) < len(last)
        or last[0].lower() in _KONECT
    ):
        return None
    names, first = {c.lower() for c in last}, {c.lower() for c in cells}
    if names == first or likeness == "header" or first & KNOWN:
        return last if names != first and likeness == "row" else None
    if likeness == "row" or names & KNOWN or last[0] == "#" or any(map(written_as_number, cells)):
        return last
    if not _MARK.sub("", start.comments[-1])[:1].isspace():
        raise GraphError(
            f"{path.name}: line {start.skipped} ({start.comments[-1][:60]!r}) begins like a comment, but may name the "
            "columns; remove the mark in front if it does, else the line"
        )
    return None


def _likeness(first: Sequence[str], rows: Sequence[Sequence[str]]) -> Literal["row", "header", ""]:
    """Whether a file's first cells are like those below them, or like names of columns; "" where it cannot be told."""
    below = [row for row in rows if list(row) != list(first) and any(row)]
    if not below:
        return ""
    if any(c.lower() in KNOWN for c in first):
        return "header"
    numbers = texts = 0
    leads = False
    for i, cell in enumerate(first):
        others = [row[i] for row in below if i < len(row) and row[i]]
        numeric = bool(others) and all(map(written_as_number, others))
        if not cell:
            if i == 0 and numeric:
                return "header"  # the index that pandas writes has no name
        elif written_as_number(cell):
            if others and not any(map(written_as_number, others)):
                return "header"
            numbers += numeric
            texts += not numeric and _same_make(cell, others)
            leads = leads or (i == 0 and numeric)
        elif numeric:
            return "header"
        else:
            texts += cell in others or _same_make(cell, others)
    ends = [{row[i] for row in below if i < len(row)} for i in (0, 1)]
    if len(first) > 1 and not any(map(written_as_number, first[:2])):
        texts += (first[0] != "" and first[0] in ends[1]) + (first[1] != "" and first[1] in ends[0])
    return "row" if texts or leads or numbers == sum(map(bool, first)) else ""


def _same_make(cell: str, others: Sequence[str]) -> bool:
    """Whether a cell is a code of as many letters and digits as all below it: a hash, an ISBN, P00017."""
    return (
        len(cell) >= _SHORTEST_CODE
        and len(others) > 1
        and {len(other) for other in others} == {len(cell)}
        and all(any(map(str.isdigit, c)) and " " not in c for c in (cell, *others))
    )


def written_as_number(cell: str) -> bool:
    """Whether a cell is a number, written with a point and without marks for thousands."""
    return _NUMBER.fullmatch(cell) is not None


def reason(path: Path, error: Exception, encoding: str) -> str:
    """Why a file could not be read, without the exception's type."""
    if isinstance(error, UnicodeDecodeError):
        return _encoding_reason(path, encoding)
    if isinstance(error, PermissionError):
        return "may not be read by this user; change its permissions"
    if is_zipped(path) and not isinstance(error, ValueError):
        return "the gzip data are damaged or cut off; compress or download it again"
    return f"cannot be read ({str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'})"


def _encoding_reason(path: Path, encoding: str) -> str:
    """Where a file stops being text of the encoding, and whether it mixes two."""
    name = encoding.removesuffix("-sig").upper()
    if name.startswith(("UTF-16", "UTF-32")):
        return f"is not {name} text; save the whole file as UTF-8"
    first, others = 0, False
    with suppress(OSError, EOFError, zlib.error, GraphError), open_bytes(path) as f:
        for number, line in enumerate(iter(lambda: f.readline(LONGEST), b""), start=1):
            try:
                others = (not line.decode(encoding).removeprefix("\ufeff").isascii()) or others
            except UnicodeDecodeError:
                first = first or number
            if first and others:
                break
    mixed = f"line {first} is not {name} text but other lines are, so that two encodings are mixed"
    return (mixed if others else f"is not {name} text (first: line {first})") + "; save the whole file as UTF-8"
