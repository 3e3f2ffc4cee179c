"""Reading files without trusting them: text tables and numpy arrays, gzipped or not.

Conventions. Cells are text, exactly as written: "NA", "None" and "007" are values, only an empty
cell is missing. A table's index is the 1-based line number in its file, header included, so that
an error can name the line. Every failure is a `GraphError` that names the file. Nothing here
unpickles.
"""

from __future__ import annotations

import codecs
import csv
import re
import unicodedata
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.bounded import check_gzip, is_gzip, open_bytes, read_bytes
from uge_core.errors import GraphError

_PEEK = 2**16
_LONGEST = 2**24
_LONGEST_LIST = 2**26
_CELLS = 2**21
_FEW = 2_000
MOST_COLUMNS = 20_000
"""Each column costs about a millisecond, however short it is."""
_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Table:
    """One file's rows.

    Attributes:
        file: the file's name, for messages.
        frame: the cells; the index holds line numbers, the columns the header's names.
    """

    file: str
    frame: pd.DataFrame

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
) -> Table:
    """Reads a table of separated values.

    Args:
        path: the file; ``.gz`` is unpacked.
        sep: the separator; ``"::"`` is MovieLens', None takes comma, semicolon or tab by the first line.
        names: the columns of a file without a header.
        text: columns to keep as text (any case); numbers are recognised in the others. None: all are text.
        quoted: cells may stand in quotes. None: where there is a header.
        encoding: of the file.
        in_place: row i is node i, so that a row without a value is somebody; else rows that are empty throughout are
            left out. Empty lines at the end are nobody.

    Returns:
        The table.

    Raises:
        GraphError: not what its name says, not text, no rows, a row with too many cells, or a
            column name that stands twice.
    """
    first_line, second_line = _first_lines(path, encoding)
    if sep is None:
        sep = _separator(first_line)
    header = list(names) if names is not None else [h.strip() for h in _split(path, first_line, sep)]
    if len(header) > MOST_COLUMNS:
        raise GraphError(
            f"{path.name}: line 1 has {len(header):,} fields; a table has at most {MOST_COLUMNS:,} columns, keep "
            "those you need"
        )
    repeated = [h for h, n in Counter(header).items() if n > 1]
    if repeated:
        raise GraphError(
            f"{path.name}: column {repeated[0]!r} stands twice in the header; rename one of the two, "
            "or write a header as the first line if there is none"
        )
    quoted = names is None if quoted is None else quoted
    # pandas takes separators of one character on its fast path: "::" is read as ":" with an empty cell between.
    step = len(sep)
    width = step * (len(header) - 1) + 1
    seen = len(_split(path, first_line, sep)) if quoted else first_line.count(sep[0]) + 1
    if names is not None and seen != width:
        raise GraphError(
            f"{path.name}: line 1 has {(seen - 1) // step + 1} fields separated by {sep!r}, expected {len(header)}: "
            f"{_listed(header)}"
        )
    if names is None and len(_split(path, second_line, sep)) > width + 1:
        raise GraphError(f"{path.name}: {_too_long(2, width)}")  # pandas would cut this row to the header's length
    options: dict[str, Any] = {
        "sep": sep[0],
        "header": None,
        "skiprows": int(names is None),
        "names": range(width + 1),  # the extra one catches rows that are too long by one
        "index_col": False,
        "keep_default_na": False,
        "na_values": [""],
        "skip_blank_lines": False,
        "skipinitialspace": quoted,
        "quoting": csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        "encoding": encoding,
        "low_memory": False,
    }
    keep = None if text is None else {t.lower() for t in text}
    called = zip(header, usable_names(header), strict=True)
    is_text = [keep is None or h.lower() in keep or used.lower() in keep for h, used in called]
    options["dtype"] = str if all(is_text) else {step * i: str for i, t in enumerate(is_text) if t} | {width: str}
    parts: list[pd.DataFrame] = []
    line = 1 + int(names is None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            if path.suffix == ".gz":
                check_gzip(path)
            # The parser needs up to ninety times what it reads (a line of nothing): it gets a piece at a time.
            with open_bytes(path) as f, pd.read_csv(f, chunksize=_CELLS // (width + 1) + 1, **options) as pieces:
                for piece in pieces:
                    rows = piece.index[piece[width].notna().to_numpy()]
                    if len(rows):
                        line += int(rows[0])
                        raise GraphError(f"{path.name}: {_too_long(line, len(header))}")
                    piece = piece.iloc[:, [step * i for i in range(len(header))]]
                    parts.append(piece if in_place or len(header) == 1 else _without_blank_rows(piece))
    except pd.errors.ParserWarning:  # its first row goes on beyond the extra column, after a line break in a cell
        raise GraphError(f"{path.name}: {_too_long(line, len(header))}") from None
    except pd.errors.ParserError as e:
        raise GraphError(f"{path.name}: {_parser_reason(str(e), len(header))}") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, ValueError) as e:
        raise GraphError(f"{path.name}: {_reason(path, e, encoding)}") from None
    sorts = zip(*(map(_sort, p.dtypes) for p in parts), strict=True)
    mixed = [h for h, kinds in zip(header, sorts, strict=True) if len(set(kinds)) > 1]
    if mixed:
        return read_table(
            path,
            sep=sep,
            names=names,
            text=[*(text or ()), *mixed],
            quoted=quoted,
            encoding=encoding,
            in_place=in_place,
        )
    frame = pd.concat(parts)
    frame.index += line
    frame.columns = pd.Index(header, dtype=object)
    frame = frame.iloc[: len(frame) - _blank_lines(path)] if in_place else _without_blank_rows(frame)
    if not len(frame):
        raise GraphError(f"{path.name}: there are no rows under the header; one row per node or edge is needed")
    return Table(path.name, frame)


def first_cells(path: Path, encoding: str = "utf-8-sig") -> tuple[str, list[str]]:
    """The separator of a table (comma, semicolon or tab), and the cells of its first line.

    Raises:
        GraphError: not what its name says, or not text.
    """
    line, _ = _first_lines(path, encoding)
    sep = _separator(line)
    return sep, [cell.strip() for cell in _split(path, line, sep)]


def read_lines(path: Path, encoding: str) -> list[str]:
    """The lines of a small text file, plain or gzipped, without their ends.

    Raises:
        GraphError: the file is not what its name says, or not small.
    """
    _first_lines(path, encoding)
    try:
        return read_bytes(path, _LONGEST_LIST).decode(encoding).splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as e:
        raise GraphError(f"{path.name}: {_reason(path, e, encoding)}") from None


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
    if all(map(is_number, cells)):
        refuse_headless(table, cells[:_SHOWN], header)


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
        f"write a header as the first line, such as {header}"
    )


def as_numbers(cells: pd.Series) -> npt.NDArray[np.float64]:
    """(M,) the cells as numbers, NaN where empty or not a finite number."""
    if len(cells) > _FEW and cells.dtype.kind not in "iuf":
        codes, values = pd.factorize(cells)  # each text once, as turning text into numbers takes long
        return np.append(_finite(pd.Series(values)), np.nan)[codes]
    return _finite(cells)


def _finite(cells: pd.Series) -> npt.NDArray[np.float64]:
    numbers = np.asarray(pd.to_numeric(cells, errors="coerce"), dtype=np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _first_lines(path: Path, encoding: str) -> tuple[str, str]:
    """The first two lines of a text file, after checking that it is one."""
    try:
        zipped = is_gzip(path)
        if path.suffix == ".gz" and not zipped:
            raise GraphError(f"{path.name}: is not gzip data although its name ends in .gz; rename it or compress it")
        if path.suffix != ".gz" and zipped:
            raise GraphError(f"{path.name}: is gzip data; rename it to {path.name}.gz or unpack it")
        with open_bytes(path) as f:
            head = f.readline(_LONGEST) + f.readline(_LONGEST)
            peek = head + f.read(_PEEK)
    except (OSError, EOFError, zlib.error) as e:
        raise GraphError(f"{path.name}: {_reason(path, e, encoding)}") from None
    if peek[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and not encoding.lower().startswith("utf-16"):
        raise GraphError(f"{path.name}: is UTF-16 text; save it as UTF-8 (in Excel: CSV UTF-8)")
    if b"\0" in peek and not encoding.lower().startswith(("utf-16", "utf-32")):
        raise GraphError(f"{path.name}: is not text (it holds zero bytes); save it as plain text separated by commas")
    try:
        if encoding.lower().startswith(("utf-16", "utf-32")):  # a line's end is not one byte
            text = codecs.getincrementaldecoder(encoding)().decode(peek)
            lines = re.split(r"\r\n|\n|\r", text, maxsplit=2)
        else:
            lines = [b.decode(encoding) for b in re.split(rb"\r\n|\n|\r", head, maxsplit=2)[:2]]
        decoded = lines[0], [*lines, ""][1]
    except UnicodeDecodeError as e:
        raise GraphError(f"{path.name}: {_reason(path, e, encoding)}") from None
    if not decoded[0].strip():
        raise GraphError(
            f"{path.name}: {'is empty' if not head.strip() else 'the first line is empty'}; a header or "
            "a first row is needed"
        )
    return decoded


def _separator(line: str) -> str:
    """Comma, semicolon or tab, whichever stands most often in a line, quoted cells left out."""
    return max(",;\t", key=re.sub(r'"[^"]*"', "", line).count)


def _split(path: Path, line: str, sep: str) -> list[str]:
    """The cells of one line, quotes removed."""
    try:
        return next(csv.reader([line], delimiter=sep, skipinitialspace=True), [])
    except csv.Error as e:
        raise GraphError(f"{path.name}: cannot be read as a table ({e})") from None


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
    count = 0
    with open_bytes(path) as file:
        for line in file:
            count = 0 if line.strip(b"\r\n \0") else count + 1
    return count


def _parser_reason(text: str, width: int) -> str:
    """The parser's complaint in the user's terms."""
    match = re.search(r"in line (\d+), saw", text)
    if match:
        return _too_long(int(match.group(1)), width)
    if "inside string" in text:
        return "a quotation mark is opened and never closed; close it or remove it"
    return f"cannot be read as a table ({text.strip().splitlines()[-1]})"


def _too_long(line: int, width: int) -> str:
    """The complaint about a row that is longer than the header."""
    return f"line {line} has more than the {width} fields expected; quote cells that hold the separator"


def _reason(path: Path, error: Exception, encoding: str) -> str:
    """Why a file could not be read, without the exception's type."""
    if isinstance(error, UnicodeDecodeError):
        return _encoding_reason(path, encoding)
    if isinstance(error, PermissionError):
        return "may not be read by this user; change its permissions"
    if path.suffix == ".gz" and not isinstance(error, ValueError):
        return "the gzip data are damaged or cut off; compress or download it again"
    return f"cannot be read ({str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'})"


def _encoding_reason(path: Path, encoding: str) -> str:
    """Where a file stops being text of the encoding, and whether it mixes two."""
    name = encoding.removesuffix("-sig").upper()
    if name.startswith(("UTF-16", "UTF-32")):
        return f"is not {name} text; save the whole file as UTF-8"
    first, others = 0, False
    with suppress(OSError, EOFError, zlib.error, GraphError), open_bytes(path) as f:
        for number, line in enumerate(iter(lambda: f.readline(_LONGEST), b""), start=1):
            try:
                others = (not line.decode(encoding).removeprefix("\ufeff").isascii()) or others
            except UnicodeDecodeError:
                first = first or number
            if first and others:
                break
    mixed = f"line {first} is not {name} text but other lines are, so that two encodings are mixed"
    return (mixed if others else f"is not {name} text (first: line {first})") + "; save the whole file as UTF-8"


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
