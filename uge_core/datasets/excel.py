"""Sheets of an Excel workbook as text, read like a CSV file of the same cells.

A whole number is written without a point, a day as 2026-11-30, a truth value as TRUE or FALSE, and a formula as the
value that was saved with it. python-calamine, which is loaded only here, runs nothing that a workbook holds.
"""

from __future__ import annotations

import csv
import html
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

from uge_core.datasets.bounded import check_archive, too_large, unpacked_limit
from uge_core.datasets.foreign import refuse_foreign
from uge_core.datasets.tables import Table, counted, read_table
from uge_core.errors import GraphError
from uge_core.files import temporary_folder
from uge_core.graph.graph import Message

ENDING = ".xlsx"
NAME_SHEETS = "name the sheet of links 'edges' and the sheet of people 'nodes'"
_MOST_DIGITS = 15  # that Excel keeps of a number
_LONGEST_NAME = 80
_LOCKED = b"\xd0\xcf\x11\xe0"  # old workbooks begin so too
_SHARED = re.compile(rb"<(?:\w+:)?sst\b")  # the element that all shared texts stand in
_HEAD = 2**16
_TEXT = re.compile(rb"<(?:\w+:)?si[\s>]")
_TEXT_CELL = re.compile(rb"""\bt\s*=\s*["']s["']""")
_CELLS = b"sheetData"
_CELL_BYTES = 32  # that a reader takes for each cell, empty or not
_PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{0,9})(\d+)""")
_WITHOUT_PLACE = re.compile(rb"<(?:\w+:)?(?:c|row)(?=[\s/>])(?![^>]*\br\s*=)")
_ROW = re.compile(rb"<(?:\w+:)?row(?=[\s/>])")
_ANY_CELL = re.compile(rb"<(?:\w+:)?c(?=[\s/>])")
_PIECE = 2**22
_LONGEST_NUMBER = 18
_ERROR_CELL = re.compile(rb'<(?:\w+:)?c\s[^>]*t="e"')
_HIDDEN_ROW = re.compile(rb'<(?:\w+:)?row\s(?=[^>]*\bhidden="(?:1|true)")[^>]*\br="(\d+)"')
_NO_VALUE = re.compile(
    rb'<(?:\w+:)?c\s(?![^>]*t="str")[^>]*\br="([A-Z]+\d+)"[^>]*>\s*<(?:\w+:)?f(?:\s[^>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)\s*'
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
_SHEET = re.compile(r"<(?:\w+:)?sheet\s[^>]*>")
_RELATION = re.compile(r"<(?:\w+:)?Relationship\s[^>]*>")
_ATTRIBUTE = re.compile(r'([\w:]+)\s*=\s*"([^"]*)"')


@dataclass(frozen=True)
class Sheets:
    """The names of a workbook's sheets.

    Attributes:
        shown: those that a reader of the workbook sees.
        hidden: those that are hidden, and never read.
    """

    shown: tuple[str, ...]
    hidden: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"the sheets {', '.join(self.shown)}" if self.shown else "no sheet that is shown"
        return text + (f" (hidden, and so not read: {', '.join(self.hidden)})" if self.hidden else "")


def sheet_names(path: Path) -> Sheets:
    """The sheets, with cells or without.

    Raises:
        GraphError: it is no workbook, or one that is locked.
    """
    with _opened(path) as book:
        return _names(book)


def read_excel(
    path: Path, *, in_place: bool = False, header: bool | None = None, columns: Sequence[str] | None = None
) -> Table:
    """The only sheet with cells as a table.

    Args:
        path: the workbook.
        in_place: as in `read_table`.
        header: as there.
        columns: as there.

    Raises:
        GraphError: no workbook, several sheets, or what `read_table` raises.
    """
    with _opened(path) as book:
        _refuse_wide(path)
        names = _names(book)
        sheets = [sheet for name in names.shown if (sheet := book.get_sheet_by_name(name)).height]
        if len(sheets) != 1:
            named = replace(names, shown=tuple(sheet.name for sheet in sheets))
            raise GraphError(
                f"{path.name}: found {named if sheets else 'no sheet with cells'}; one is read as a table: save each sheet "
                f"as a workbook of its own, or {NAME_SHEETS}, and open the workbook alone"
            )
        return _table(path, sheets[0], path.name, in_place=in_place, header=header, columns=columns)


def read_sheets(path: Path, names: Sequence[str]) -> list[Table]:
    """Some sheets as tables.

    Args:
        path: the workbook.
        names: of the sheets.

    Raises:
        GraphError: no workbook, a sheet without cells, or what `read_table` raises.
    """
    with _opened(path) as book:
        _refuse_wide(path)
        tables = []
        for name in names:
            sheet = book.get_sheet_by_name(name)
            if not sheet.height:
                raise GraphError(
                    f"{path.name}: sheet {name} has no cells; a header and one row per node or edge are needed"
                )
            tables.append(_table(path, sheet, f"{path.name}, sheet {name}"))
        return tables


def _table(
    path: Path,
    sheet: Any,
    called: str,
    *,
    in_place: bool = False,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
) -> Table:
    """One sheet as a table."""
    _refuse_merged(path, sheet.name, [] if sheet.merged_cell_ranges is None else list(sheet.merged_cell_ranges))
    if header is not False:
        _refuse_title(path, sheet.name, sheet)
    faults = _check_cells(path, sheet, called)
    # Of many equal texts a workbook keeps one, so that what is written is counted.
    with temporary_folder() as folder:
        text = folder / re.sub(r"[/\0]", "_", _short(called))
        long = _write(text, path, sheet)
        table = read_table(
            text, sep=",", in_place=in_place, header=header, columns=columns, comments=False, rows_above=sheet.start[0]
        )
    messages = [*table.messages]
    if long:
        messages.append(
            Message(
                "warning",
                "excel-digits",
                f"{called}: {counted(len(long), 'number')} of more than {_MOST_DIGITS} digits, of which Excel keeps "
                f"{_MOST_DIGITS}: ids that differ in the last digits have become equal",
                len(long),
                tuple(long[:5]),
                "format the column as text before the numbers are pasted, or write CSV from where they come",
            )
        )
    if faults:
        messages.append(
            Message(
                "warning",
                "excel-errors",
                f"{called}: {counted(faults, 'cell')} with an error of a formula (#N/A, #REF!), read as empty",
                faults,
                (),
                "mend the formulas, or paste their values",
            )
        )
    return replace(table, messages=tuple(messages))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The workbook."""
    try:
        import python_calamine as calamine
    except ImportError:
        raise GraphError(
            f"{path.name}: reading Excel needs python-calamine; install it, or save the sheets as CSV UTF-8"
        ) from None
    try:
        _refuse_others(path)
        check_archive(path, count=True)
        _refuse_large(path)
        book = calamine.CalamineWorkbook.from_path(str(path))
    except calamine.PasswordError:
        raise _locked(path) from None
    except (calamine.CalamineError, OSError, KeyError, ValueError, *_DAMAGES) as e:
        raise _damaged(path, e) from None
    try:
        yield book
    except (calamine.CalamineError, *_DAMAGES) as e:
        raise _damaged(path, e) from None
    finally:
        book.close()


# A member that is encrypted is a RuntimeError, one packed in an unknown way NotImplementedError.
_DAMAGES = (EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


def _damaged(path: Path, error: Exception) -> GraphError:
    said = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return GraphError(
        f"{path.name}: cannot be read as an Excel workbook ({said}); save it again as .xlsx, or the sheets as CSV UTF-8"
    )


def _locked(path: Path) -> GraphError:
    return GraphError(
        f"{path.name}: is locked by a password, or an old workbook (.xls); save it as .xlsx without one, or the sheets as "
        "CSV UTF-8"
    )


def _refuse_others(path: Path) -> None:
    """Refuses files that are no zip archive, as a workbook is, by what they are."""
    if zipfile.is_zipfile(path):
        return
    with path.open("rb") as file:
        begins = file.read(len(_LOCKED))
    if begins == _LOCKED:
        raise _locked(path)
    if not begins.startswith(b"PK"):  # else a damaged archive
        refuse_foreign(path)


def _refuse_large(path: Path) -> None:
    """Refuses a workbook of which a reader would make too much: it keeps a text once, however many cells hold it."""
    with zipfile.ZipFile(path) as archive:
        # Whatever they are called: a workbook says itself which of its files are sheets.
        members = archive.infolist()
        contents = (archive.read(m) for m in members)
        texts = (data for data in contents if _SHARED.search(data[:_HEAD]))
        longest = max((_parts(_TEXT, data, len)[1] for data in texts), default=0)
        if longest > 2**10:
            cells = sum(len(_TEXT_CELL.findall(piece)) for m in members for piece in _pieces(archive.read(m)))
            if longest * cells > unpacked_limit():
                raise too_large(path)


def _refuse_wide(path: Path) -> None:
    """Refuses sheets of which a reader would make too much: it makes room for all cells up to the last one."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            data = archive.read(member)
            if _CELLS in data and _extent(data) * _CELL_BYTES > unpacked_limit():
                raise too_large(path)


def _extent(data: bytes) -> int:
    """The cells of the smallest rectangle from the first cell on that holds all cells of a sheet, or somewhat more."""
    width = height = 0
    for piece in _pieces(data):
        for letters, digits in set(_PLACE.findall(piece)):
            column = 0
            for letter in letters.upper():
                column = 26 * column + letter - 64
            width, height = max(width, column), max(height, int(digits[:_LONGEST_NUMBER]))
    if _WITHOUT_PLACE.search(data):  # these stand behind the ones before
        rows, cells = _parts(_ROW, data, lambda row: len(_ANY_CELL.findall(row)))
        width, height = width + cells, height + rows
    return width * height


def _parts(separator: re.Pattern[bytes], data: bytes, measure: Callable[[bytes], int]) -> tuple[int, int]:
    """The parts that elements separate, and the largest measure of one, which is at most its length.

    They are split a piece at a time: a million empty elements are few bytes, and many objects.
    """
    count, most, last = 1, 0, 0
    for piece in _pieces(data):
        first, *others = separator.split(piece)
        last += measure(first)
        most = max(most, last)
        for part in others:
            if len(part) > most:
                most = max(most, measure(part))
        if others:
            count, last = count + len(others), measure(others[-1])
    return count, most


def _pieces(data: bytes) -> Iterator[bytes]:
    """XML cut before elements."""
    start = 0
    while start < len(data):
        end = data.rfind(b"<", start + 1, start + _PIECE) if len(data) - start > _PIECE else len(data)
        end = end if end > 0 else start + _PIECE
        yield data[start:end]
        start = end


def _names(book: Any) -> Sheets:
    import python_calamine as calamine

    tables = [s for s in book.sheets_metadata if s.typ == calamine.SheetTypeEnum.WorkSheet]
    shown = [s.name for s in tables if s.visible == calamine.SheetVisibleEnum.Visible]
    return Sheets(tuple(shown), tuple(s.name for s in tables if s.name not in shown))


def _check_cells(path: Path, sheet: Any, called: str) -> int:
    """The cells of a sheet that hold an error.

    Raises:
        GraphError: rows are hidden, or formulas have no value.
    """
    with zipfile.ZipFile(path) as archive:
        member = _member(archive, sheet.name)
        if member is None:
            return 0
        data = archive.read(member)
    hidden = [row for row in map(int, _HIDDEN_ROW.findall(data)) if sheet.start[0] < row <= sheet.end[0] + 1]
    if hidden:
        one = len(hidden) == 1
        raise GraphError(
            f"{called}: {counted(len(hidden), 'row')} {'is' if one else 'are'} hidden, by a filter or by hand, first: row "
            f"{hidden[0]}; show {'it' if one else 'them'} if {'it belongs' if one else 'they belong'} to the table, else "
            f"delete {'it' if one else 'them'}"
        )
    bare = [cell.decode() for cell in _NO_VALUE.findall(data)]
    if bare:
        raise GraphError(
            f"{called}: {counted(len(bare), 'cell')} with a formula whose value was never calculated, first: {bare[0]}; "
            "open the workbook in Excel or LibreOffice and save it, or paste values in place of the formulas"
        )
    return len(_ERROR_CELL.findall(data))


def _member(archive: zipfile.ZipFile, sheet: str) -> str | None:
    """The file in a workbook that holds a sheet's cells, or None where that cannot be told."""
    there = {name.lower(): name for name in archive.namelist()}
    book, links = there.get("xl/workbook.xml"), there.get("xl/_rels/workbook.xml.rels")
    if book is None or links is None:
        return None

    def tags(member: str, tag: re.Pattern[str]) -> Iterator[dict[str, str]]:
        for found in tag.findall(archive.read(member).decode("utf-8", "replace")):
            yield {key.rsplit(":")[-1].lower(): html.unescape(value) for key, value in _ATTRIBUTE.findall(found)}

    key = next((t.get("id") for t in tags(book, _SHEET) if t.get("name") == sheet), None)
    target = next((t.get("target", "") for t in tags(links, _RELATION) if t.get("id") == key), "")
    return there.get((target.lstrip("/") if target.startswith("/") else f"xl/{target}").lower())


def _short(name: str) -> str:
    """A name that a file may have, which is as long as 255 bytes."""
    return name if len(name) <= 2 * _LONGEST_NAME else f"{name[:_LONGEST_NAME]}...{name[-_LONGEST_NAME:]}"


def _refuse_merged(path: Path, sheet: str, merged: Sequence[Any]) -> None:
    if merged:
        (row, column), _ = min(merged)
        raise GraphError(
            f"{path.name}: sheet {sheet} has {counted(len(merged), 'group')} of merged cells, first at row {row + 1}, "
            f"column {column + 1}; of these only the first cell has the value: split them, and fill each cell"
        )


def _refuse_title(path: Path, name: str, sheet: Any) -> None:
    """Refuses rows above the header: notes to readers, of which a program would make the header."""
    row = next(islice(sheet.iter_rows(), sheet.start[0], None))
    given = [str(cell) for cell in row if str(cell).strip()]
    if len(row) - len(given) > 1 or (len(row) == 2 and len(given) == 1):
        raise GraphError(
            f"{path.name}: row {sheet.start[0] + 1} of sheet {name} has {counted(len(given), 'cell')} "
            f"({', '.join(given)[:60]}) for {len(row)} columns; the first row must name the columns: remove the rows above "
            "it and the columns without a name"
        )


def _write(text: Path, path: Path, sheet: Any) -> list[str]:
    """Writes the cells as CSV, and returns the numbers that are too long."""
    long, left, above = list[str](), unpacked_limit(), sheet.start[0]
    with text.open("w", encoding="utf-8", newline="") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        for row in islice(sheet.iter_rows(), above, None):
            cells = [_as_text(cell) for cell in row]
            long += [
                c
                for c, v in zip(cells, row, strict=True)
                if isinstance(v, int | float) and 10.0**_MOST_DIGITS <= abs(v) < math.inf
            ]
            left -= sum(map(len, cells))
            if left < 0:
                raise too_large(path)
            write(cells)
    return long


def _as_text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(sep=" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    return " ".join(str(cell).split("\n")).replace("\r", "")
