"""Reading files without trusting them: text tables and numpy arrays, gzipped or not.

Conventions. Cells are text, exactly as written: "NA", "None" and "007" are values, only an empty
cell is missing. A table's index is the 1-based line number in its file, header included, so that
an error can name the line. Every failure is a `GraphError` that names the file. Nothing here
unpickles.
"""

from __future__ import annotations

import csv
import re
import unicodedata
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.beginnings import (
    LINE_END,
    begin,
    header_of,
    reason,
    record,
    refuse_other_separator,
    separator_of,
    split,
)
from uge_core.datasets.bounded import check_gzip, is_zipped, open_bytes, read_bytes
from uge_core.datasets.foreign import refuse_foreign
from uge_core.datasets.numeric import as_numbers as as_numbers
from uge_core.datasets.plain_rows import plain_rows
from uge_core.datasets.quotes import Faults, Watched
from uge_core.datasets.stray_rows import without_stray_rows
from uge_core.errors import GraphError
from uge_core.graph.graph import Message

_LONGEST_LIST = 2**26
_CELLS = 2**21
MOST_COLUMNS = 20_000
"""Each column costs about a millisecond, however short it is."""
_SHOWN = 3
_LOST_DIGITS = r"[+-]?\d(?:[.,]\d+)?[eE]\+\d{2,3}|[+-]?\d{16,}\.0*"
_FEW_LINES = 50
_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class Table:
    """One file's rows.

    Attributes:
        file: the file's name, for messages.
        frame: the cells; the index holds line numbers, the columns the header's names.
        messages: how the file was read, where that is not plain.
        headless: the columns' names are not the file's.
    """

    file: str
    frame: pd.DataFrame
    messages: tuple[Message, ...] = ()
    headless: bool = False

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def names(self) -> tuple[str, ...]:
        """The header's names."""
        return tuple(map(str, self.frame.columns))

    def column(self, *candidates: str) -> str | None:
        """The first column called like one of `candidates`, upper and lower case alike."""
        by_lower = {n.lower(): n for n in reversed(self.names)}
        return next((by_lower[c.lower()] for c in candidates if c.lower() in by_lower), None)

    def require(self, name: str) -> str:
        """The column called `name`.

        Raises:
            GraphError: there is none; the message lists those that exist.
        """
        column = self.column(name)
        if column is None:
            raise GraphError(f"{self.file}: column {name!r} is missing from the header; found: {_listed(self.names)}")
        return column

    def first_lines(self, wrong: npt.NDArray[np.bool_], *columns: str) -> str:
        """The first rows where `wrong` holds, as "line 3 (a, b), line 9 (c, d)"."""
        rows = self.frame.loc[wrong, list(columns)].head(_SHOWN)
        return ", ".join(
            f"line {line} ({', '.join('empty' if pd.isna(c) else repr(str(c)) for c in cells)})"
            for line, cells in zip(rows.index, rows.itertuples(index=False), strict=True)
        )


def read_table(
    path: Path,
    *,
    sep: str | None = ",",
    names: Sequence[str] | None = None,
    text: Collection[str] | None = None,
    quoted: bool | None = None,
    encoding: str = "utf-8-sig",
    in_place: bool = False,
    header: bool | None = True,
    columns: Sequence[str] | None = None,
    comments: bool | None = None,
    rows_above: int = 0,
) -> Table:
    """Reads a table of separated values.

    A first line ``sep=;`` says the separator. Where all cells are text and the form is free, lines at the
    start that begin with #, % or // are comments, counted in the table's messages.

    Args:
        path: the file; ``.gz`` is unpacked.
        sep: the separator; ``"::"`` is MovieLens', a blank any run of blanks and tabs (without `names`), None takes
            comma, semicolon, tab or blanks by the first lines.
        names: the columns of a file without a header.
        text: columns to keep as text (any case); numbers are recognised in the others. None: all are text.
        quoted: cells may stand in quotes. None: where `names` are not given.
        encoding: of the file.
        in_place: row i is node i, so that a row without a value is somebody; else rows that are empty throughout are
            left out. Empty lines at the end are nobody.
        header: whether the first line names the columns; None: unless it is like the lines below it.
        columns: names that the user gives the columns.
        comments: whether lines at the start may be comments; None: where all cells are text and the form is free.
        rows_above: how many rows of where the file comes from stand above its first line.

    Returns:
        The table.

    Raises:
        GraphError: not what its name says, not text, no rows, a row with too many cells, a quotation mark that
            is closed far away, or a column name that stands twice.
    """
    refuse_foreign(path)
    start = begin(path, encoding, comments=names is None and text is None if comments is None else comments)
    # Of rows that are somebody each, a single column may hold names of several words.
    given = start.sep or sep
    sep = given or separator_of(start.lines, blanks=not in_place)
    if given is None and names is None:
        refuse_other_separator(path, start.lines, sep)
    blanks = sep == " " and names is None
    called, used, messages, headless = (
        (list(names), 0, (), True) if names is not None else header_of(path, start, sep, header, columns)
    )
    if len(called) > MOST_COLUMNS:
        raise GraphError(
            f"{path.name}: line {start.skipped + 1} has {len(called):,} fields; a table has at most "
            f"{MOST_COLUMNS:,} columns, keep those you need"
        )
    repeated = [h for h, n in Counter(called).items() if n > 1]
    if repeated == [""]:
        raise GraphError(
            f"{path.name}: line {start.skipped + 1} has {called.count('')} columns without a name; name them, or remove "
            "the lines above the header if this is a title"
        )
    if repeated:
        raise GraphError(
            f"{path.name}: column {repeated[0]!r} stands twice in the header; rename one of the two, "
            "or write a header as the first line if there is none"
        )
    quoted = names is None if quoted is None else quoted
    # pandas takes separators of one character on its fast path: "::" is read as ":" with an empty cell between.
    step = len(sep)
    width = step * (len(called) - 1) + 1
    first = start.lines[0]
    seen = len(split(path, first, sep)) if quoted else first.count(sep[0]) + 1
    if names is not None and seen != width:
        raise GraphError(
            f"{path.name}: line {start.skipped + 1} has {(seen - 1) // step + 1} fields separated by {sep!r}, expected "
            f"{len(called)}: {_listed(called)}"
        )
    if used > 1:
        Faults(path, encoding, sep, len(called), start.skipped).check()
    skipped = start.skipped + used
    fault = Faults(path, encoding, sep, len(called), skipped if quoted else None, start.lines[used:])
    if names is None and len(record(path, start.lines[used:], sep)[0]) > width + 1:
        raise fault.too_long(skipped + 1)  # pandas would cut this row to the header's length
    options: dict[str, Any] = {
        "sep": r"\s+" if blanks else sep[0],
        "header": None,
        "names": range(width + 1),  # the extra one catches rows that are too long by one
        "index_col": False,
        "keep_default_na": False,
        "na_values": [""],
        "skip_blank_lines": False,
        "skipinitialspace": quoted,
        "quoting": csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        "low_memory": False,
    }
    keep = None if text is None else {t.lower() for t in text}
    named = zip(called, usable_names(called), strict=True)
    is_text = [keep is None or h.lower() in keep or known.lower() in keep for h, known in named]
    options["dtype"] = str if all(is_text) else {step * i: str for i, t in enumerate(is_text) if t} | {width: str}
    parts: list[pd.DataFrame] = []
    watched: Watched | None = None
    line = 1 + skipped + rows_above
    rows_read = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            if is_zipped(path):
                check_gzip(path)
            plain = None
            if all(is_text) and not blanks and step == 1:
                plain = plain_rows(path, encoding=encoding, sep=sep, width=width, skipped=skipped, quoted=quoted)
            if plain is not None:
                parts = plain if in_place or len(called) == 1 else list(map(_without_blank_rows, plain))
            else:
                # The parser needs up to ninety times what it reads (a line of nothing): it gets a piece at a time.
                with (
                    Watched(open_bytes(path), encoding, skipped) as watched,
                    pd.read_csv(watched, chunksize=_CELLS // (width + 1) + 1, **options) as pieces,
                ):
                    for piece in pieces:
                        rows = piece.index[piece[width].notna().to_numpy()]
                        if len(rows):
                            line += int(rows[0])
                            raise fault.too_long(line)
                        rows_read += len(piece)
                        piece = piece.iloc[:, [step * i for i in range(len(called))]]
                        if sep == "|" and names is None:
                            piece = piece.apply(_without_padding)
                        parts.append(piece if in_place or len(called) == 1 else _without_blank_rows(piece))
    except pd.errors.EmptyDataError:
        parts = [pd.DataFrame(columns=range(len(called)), index=pd.RangeIndex(0), dtype="str")]
    except pd.errors.ParserWarning:  # its first row goes on beyond the extra column, after a line break in a cell
        raise fault.too_long(line) from None
    except pd.errors.ParserError as e:
        raise fault.of_parser(str(e)) from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, ValueError) as e:
        raise GraphError(f"{path.name}: {reason(path, e, encoding)}") from None
    if quoted and watched is not None and (watched.escaped or watched.breaks > rows_read):
        fault.check()
    sorts = zip(*(map(_sort, p.dtypes) for p in parts), strict=True)
    mixed = [h for h, kinds in zip(called, sorts, strict=True) if len(set(kinds)) > 1]
    if mixed:
        return read_table(
            path,
            sep=sep,
            names=names,
            text=[*(text or ()), *mixed],
            quoted=quoted,
            encoding=encoding,
            in_place=in_place,
            header=header,
            columns=columns,
            comments=comments,
            rows_above=rows_above,
        )
    frame = pd.concat(parts)
    frame.index += line
    frame.columns = pd.Index(called, dtype=object)
    frame = frame.iloc[: len(frame) - _blank_lines(path)] if in_place else _without_blank_rows(frame)
    if not len(frame):
        raise GraphError(f"{path.name}: there are no rows under the header; one row per node or edge is needed")
    if blanks:
        _refuse_short(path, frame)
    table = Table(path.name, frame, messages, headless)
    return table if names is not None else without_stray_rows(table)


def _without_padding(cells: pd.Series) -> pd.Series:
    """Cells without the blanks behind them, with which databases fill them up between upright strokes."""
    return cells if cells.dtype.kind in "iufb" else cells.str.rstrip(" ").replace("", None)


def _refuse_short(path: Path, frame: pd.DataFrame) -> None:
    """Refuses rows that lack a cell where blanks separate: which one is missing cannot be seen."""
    short = frame.iloc[:, -1].isna().to_numpy()
    if short.any():
        raise GraphError(
            f"{path.name}: {count(short, 'row')} with fewer than the {frame.shape[1]} fields expected, first: line "
            f"{frame.index[short][0]}; blanks separate, so that an empty cell cannot be seen: write a word such as NA "
            "there (and missing: [NA] in dataset.yaml), or separate by comma or tab"
        )


def first_rows(path: Path, encoding: str = "utf-8-sig", *, comments: bool = True) -> tuple[str, list[list[str]]]:
    """The separator of a table (comma, semicolon or tab), and the cells of its first lines.

    Args:
        path: the file.
        encoding: of the file.
        comments: whether lines at the start may be comments, which are left out.

    Raises:
        GraphError: not what its name says, or not text.
    """
    refuse_foreign(path)
    start = begin(path, encoding, comments=comments)
    sep = start.sep or separator_of(start.lines, blanks=False)
    few = [line for line in start.lines[:_FEW_LINES] if line.strip()]
    return sep, [[cell.strip() for cell in split(path, line, sep)] for line in few]


def read_lines(path: Path, encoding: str) -> list[str]:
    """The lines of a small text file, plain or gzipped, without their ends.

    Raises:
        GraphError: the file is not what its name says, or not small.
    """
    begin(path, encoding)
    try:
        lines = LINE_END.split(read_bytes(path, _LONGEST_LIST).decode(encoding))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as e:
        raise GraphError(f"{path.name}: {reason(path, e, encoding)}") from None
    return lines if lines[-1] else lines[:-1]


def read_array(path: Path, what: str) -> IntArray:
    """A numpy file of whole numbers.

    Args:
        path: the ``.npy`` file.
        what: what it should hold, for messages.

    Raises:
        GraphError: not a numpy file, one that needs pickle, or numbers that are not whole or beyond 64 bits.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the syntax of a damaged header, which is then refused
            array = np.load(path, allow_pickle=False)
    except Exception as e:  # numpy parses the header as Python: a damaged one fails in many ways, TypeError among them
        pickled = "allow_pickle" in str(e) and path.read_bytes()[:6] == b"\x93NUMPY"
        reason = "holds Python objects, which are never loaded" if pickled else "is not a readable .npy file"
        raise GraphError(f"{path.name}: {reason}; expected {what}, saved by numpy.save as numbers") from None
    if not isinstance(array, np.ndarray):
        array.close()
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
        content = f"{array.dtype} values" if isinstance(array, np.ndarray) else "an .npz archive"
        raise GraphError(f"{path.name}: found {content}; expected {what}, saved by numpy.save as numbers")
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f":
            _refuse_cells(path, array, ~(np.isfinite(array) & (array == np.rint(array))), "that are not whole", what)
            _refuse_cells(path, array, ~((array >= -(2.0**63)) & (array < 2.0**63)), "beyond 64 bits", what)
        elif array.dtype.kind == "u":
            _refuse_cells(path, array, array > np.uint64(2**63 - 1), "beyond 64 bits", what)
        return array.astype(np.int64)


def _refuse_cells(path: Path, array: npt.NDArray[Any], wrong: npt.NDArray[np.bool_], fault: str, what: str) -> None:
    """Raises where `wrong` holds, naming the first such number as the file has it, and its place."""
    if wrong.any():
        place = np.unravel_index(int(np.argmax(wrong)), array.shape)
        at = ", ".join(str(i) for i in place)
        raise GraphError(
            f"{path.name}: found numbers {fault}, first: {array[place]} at position ({at}); expected {what}"
        )


def usable_names(names: Sequence[str]) -> list[str]:
    """The names by which columns can be asked for, one for each of `names`.

    Comma and plus separate names in ``--sensitive`` and become "_", as does a line break; other
    control characters are left out. A name that is then taken gets a number.
    """
    changed = [_usable(n) for n in names]
    taken = {n.lower() for n, c in zip(names, changed, strict=True) if n == c}
    out = []
    for name, base in zip(names, changed, strict=True):
        used, number = base, 2
        while name != base and used.lower() in taken:
            used, number = f"{base}_{number}", number + 1
        taken.add(used.lower())
        out.append(used)
    return out


def _usable(name: str) -> str:
    """One name without separators and control characters."""
    used = re.sub(r"[,+\n\r\t]", "_", name)
    used = "".join(c for c in used if unicodedata.category(c) != "Cc").strip()
    return used or "_" * bool(name.strip())


def is_number(cell: str) -> bool:
    """Whether a cell is a finite number."""
    return bool(np.isfinite(as_numbers(pd.Series([cell], dtype="str"))[0]))


def refuse_numbers_as_header(table: Table, header: str, *columns: str) -> None:
    """Refuses a table whose first line holds nothing but numbers: it is a row.

    Args:
        table: the file.
        header: what the line should be.
        columns: the header's cells to look at; none: all.

    Raises:
        GraphError: they are all numbers.
    """
    cells = columns or table.names
    if not table.headless and all(map(is_number, cells)):
        refuse_headless(table, cells[:_SHOWN], header)


def refuse_lost_digits(table: Table, column: str) -> None:
    """Refuses ids of which a program kept the first digits alone: 7.65612E+16, or a float beyond 2^53.

    Args:
        table: the file.
        column: ids, of nodes or at the ends of edges.

    Raises:
        GraphError: there are such cells.
    """
    cells = table.frame[column]
    if cells.dtype.kind in "iub":
        return
    lost = cells.astype("str").str.fullmatch(_LOST_DIGITS, na=False).to_numpy(dtype=bool)
    if lost.any():
        raise GraphError(
            f"{table.file}: {count(lost, 'id')} of column {column!r} {'has' if lost.sum() == 1 else 'have'} lost digits, "
            f"first: {table.first_lines(lost, column)}, as Excel and pandas write long numbers; export the ids again as "
            "text (in Excel format the column as text before the numbers come in, in pandas read it with dtype=str)"
        )


def refuse_headless(table: Table, cells: Sequence[str], header: str) -> None:
    """The error about a file whose first line holds data.

    Args:
        table: the file.
        cells: what in its first line looks like data.
        header: what that line should be.

    Raises:
        GraphError: always.
    """
    quoted = ", ".join(map(repr, cells))
    raise GraphError(
        f"{table.file}: seems to have no header line: line 1 holds {quoted}, which "
        f"{'looks' if len(cells) == 1 else 'look'} "
        f"like data, not like {'a column name' if len(cells) == 1 else 'column names'}; "
        f"write a header as the first line, such as {header}, or header: true or false and columns: [..] beside "
        f"file: {table.file} in dataset.yaml"
    )


def _sort(dtype: Any) -> str:
    """Number, text or truth value: what the cells of a column must be throughout."""
    return "number" if dtype.kind in "iuf" else str(dtype.kind)


def _without_blank_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` without empty rows.

    In a table of one column, where an empty row is a missing value, only the last ones.
    """
    blank = frame.iloc[:, 0].isna().to_numpy()
    if not blank.any():
        return frame
    blank = frame.isna().all(axis=1).to_numpy()
    if frame.shape[1] == 1:
        blank = blank & (np.cumsum(~blank[::-1])[::-1] == 0)
    return frame.loc[~blank]


def _blank_lines(path: Path) -> int:
    """How many lines at the end of a file hold nothing, no separator either."""
    tail, filled = b"", False
    with open_bytes(path) as file:
        while block := file.read(_BLOCK):
            tail += block
            kept = len(tail.rstrip(b"\r\n \0"))
            tail, filled = tail[kept:], filled or kept > 0
    # What follows the last line that holds something begins with that line's own end.
    return max(len(tail.splitlines()) - filled, 0) if b"\n" in tail or not filled else 0


def count(wrong: npt.NDArray[np.bool_], noun: str) -> str:
    """How many, with the noun."""
    return counted(int(wrong.sum()), noun)


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 edge", "2,000 edges"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _listed(names: Sequence[str], most: int = 20) -> str:
    """Names with commas, the first of many."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
