"""Sheets of an Excel workbook as text, read like a CSV file of the same cells.

A whole number is written without a point, a day as 2026-11-30, a truth value as TRUE or FALSE, and a formula as the
value that was saved with it. python-calamine, which is loaded only here, runs nothing that a workbook holds.
"""

from __future__ import annotations

import csv
import re
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

from uge_core.datasets.bounded import too_large, unpacked_limit
from uge_core.datasets.tables import Table, counted, read_table
from uge_core.errors import GraphError
from uge_core.graph.graph import Message

ENDING = ".xlsx"
_MOST_DIGITS = 15  # that Excel keeps of a number
_TEXT_CELL = re.compile(rb't="s"')
_ERROR_CELL = re.compile(rb't="e"')
_TEXT = re.compile(rb"<si[ >]")
_PIECE = 2**20


def sheet_names(path: Path) -> tuple[str, ...]:
    """The sheets with cells, but for hidden ones.

    Raises:
        GraphError: it is no workbook, or one that is locked.
    """
    with _opened(path) as book:
        return _filled(book)


def read_excel(
    path: Path,
    sheet: str | None = None,
    *,
    in_place: bool = False,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
) -> Table:
    """One sheet as a table.

    Args:
        path: the workbook.
        sheet: its name; None: the only one with cells.
        in_place: as in `read_table`.
        header: as there.
        columns: as there.

    Raises:
        GraphError: no workbook, several sheets where none is named, or what `read_table` raises.
    """
    with _opened(path) as book:
        there = _filled(book)
        if sheet is None and len(there) != 1:
            listed = f"the sheets {', '.join(there)}" if there else "no sheet with cells"
            raise GraphError(
                f"{path.name}: found {listed}; one is read as a table: save each sheet as a workbook of its own, or "
                "call the one with links edges and the one with people nodes, and open the workbook alone"
            )
        name = sheet or there[0]
        filled = book.get_sheet_by_name(name)
        merged = [] if filled.merged_cell_ranges is None else list(filled.merged_cell_ranges)
        _refuse_merged(path, name, merged)
        if header is not False:
            _refuse_title(path, name, filled)
        called = path.name if sheet is None else f"{path.name}, sheet {name}"
        # Of many equal texts a workbook keeps one, so that what is written is counted.
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder) / re.sub(r"[/\0]", "_", called)
            long = _write(text, path, filled)
            table = read_table(text, sep=",", in_place=in_place, header=header, columns=columns)
        table.frame.index += filled.start[0]
        faults = _errors(path)
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
                f"{path.name}: {counted(faults, 'cell')} with an error of a formula (#N/A, #REF!), read as empty",
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
        _refuse_large(path)
        book = calamine.CalamineWorkbook.from_path(str(path))
    except calamine.PasswordError:
        raise GraphError(
            f"{path.name}: is locked by a password; save it without, or save the sheets as CSV UTF-8"
        ) from None
    except (calamine.CalamineError, OSError, ValueError, zipfile.BadZipFile) as e:
        raise _damaged(path, e) from None
    try:
        yield book
    except calamine.CalamineError as e:
        raise _damaged(path, e) from None
    finally:
        book.close()


def _damaged(path: Path, error: Exception) -> GraphError:
    said = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return GraphError(
        f"{path.name}: cannot be read as an Excel workbook ({said}); save it again as .xlsx, or the sheets as CSV UTF-8"
    )


def _refuse_large(path: Path) -> None:
    """Refuses a workbook of which a reader would make too much: it keeps a text once, however many cells hold it."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > unpacked_limit():
            raise too_large(path)
        texts = next((m for m in members if m.filename.endswith("sharedStrings.xml")), None)
        if texts is None:
            return
        longest = max(map(len, _TEXT.split(archive.read(texts))), default=0)
        if longest > 2**10 and longest * _cells(archive, _TEXT_CELL) > unpacked_limit():
            raise too_large(path)


def _errors(path: Path) -> int:
    """The cells that hold an error, in all sheets."""
    with zipfile.ZipFile(path) as archive:
        return _cells(archive, _ERROR_CELL)


def _cells(archive: zipfile.ZipFile, kind: re.Pattern[bytes]) -> int:
    """The cells of a kind in all sheets."""
    found = 0
    for member in archive.infolist():
        if "worksheets/" in member.filename:
            with archive.open(member) as file:
                while piece := file.read(_PIECE):
                    found += len(kind.findall(piece))
    return found


def _filled(book: Any) -> tuple[str, ...]:
    import python_calamine as calamine

    shown = [
        s.name
        for s in book.sheets_metadata
        if s.visible == calamine.SheetVisibleEnum.Visible and s.typ == calamine.SheetTypeEnum.WorkSheet
    ]
    return tuple(name for name in shown if book.get_sheet_by_name(name).height)


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
                if isinstance(v, int | float) and abs(v) >= 10.0**_MOST_DIGITS
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
        return str(int(cell)) if cell == int(cell) else repr(cell)
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(sep=" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    return " ".join(str(cell).split("\n")).replace("\r", "")
