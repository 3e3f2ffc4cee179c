"""Excel workbooks, written by openpyxl as pandas does: the same cells as a CSV file of them, or a refusal."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uge_core.datasets import excel, load
from uge_core.errors import GraphError

EDGES = [["source", "target"], [101, 102], [102, 103], [103, 104], [104, 101], [101, 103]]
NODES = [["id", "city", "age"], [101, "A", 20], [102, "A", 31], [103, "B", 42], [104, "B", None]]


def workbook(path: Path, **sheets: Sequence[Sequence[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    path.parent.mkdir(exist_ok=True, parents=True)
    book.save(path)
    return path


def test_two_sheets_are_a_graph(tmp_path: Path) -> None:
    workbook(tmp_path / "club" / "club.xlsx", Edges=EDGES, People=NODES, empty=[])
    graph = load(tmp_path / "club")
    assert graph.name == "club" and graph.layout == "workbook" and graph.num_edges == 5
    assert load(tmp_path / "club" / "club.xlsx").fingerprint == graph.fingerprint
    assert list(graph.node_ids) == ["101", "102", "103", "104"]
    city = graph.attribute("city")
    assert [city.labels[c] for c in city.codes] == ["A", "A", "B", "B"]


def test_two_workbooks_are_a_graph_and_so_are_a_workbook_and_a_text(tmp_path: Path) -> None:
    workbook(tmp_path / "a" / "edges.xlsx", Sheet1=EDGES)
    workbook(tmp_path / "a" / "nodes.xlsx", Sheet1=NODES)
    workbook(tmp_path / "b" / "nodes.xlsx", Sheet1=NODES)
    (tmp_path / "b" / "edges.csv").write_text("\n".join(",".join(map(str, row)) for row in EDGES))
    first, second = load(tmp_path / "a"), load(tmp_path / "b")
    assert first.layout == second.layout == "tables"
    np.testing.assert_array_equal(first.edges, second.edges)
    assert (first.attribute("city").codes == second.attribute("city").codes).all()


def test_cells_are_text_as_a_reader_of_the_sheet_sees_them(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "x.xlsx",
        s=[
            ["id", "whole", "part", "day", "moment", "yes", "text", "lines"],
            ["007", 7.0, 7.25, datetime.date(2026, 11, 30), datetime.datetime(2026, 11, 30, 8, 5), True, "NA", "a\nb"],
            ["008", -3, 1e-7, None, None, False, '"quoted", with comma', None],
        ],
    )
    frame = excel.read_excel(path).frame
    assert list(frame.iloc[0]) == ["007", "7", "7.25", "2026-11-30", "2026-11-30 08:05:00", "TRUE", "NA", "a b"]
    assert list(frame.iloc[1].fillna("-")) == ["008", "-3", "1e-07", "-", "-", "FALSE", '"quoted", with comma', "-"]
    assert list(frame.index) == [2, 3]


def test_lines_are_rows_wherever_the_cells_begin(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for i, row in enumerate([["id", "city"], ["1", "A"], ["2", "B"]]):
        for j, cell in enumerate(row):
            sheet.cell(5 + i, 3 + j, cell)
    book.save(tmp_path / "x.xlsx")
    table = excel.read_excel(tmp_path / "x.xlsx")
    assert table.names == ("id", "city") and list(table.frame.index) == [6, 7]


def test_what_excel_does_to_long_numbers_and_formulas_is_said(tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", s=[["id", "city"], [1234567890123456789, "A"], [2, "#N/A"], [3, "B"]])
    table = excel.read_excel(path)
    assert [m.code for m in table.messages] == ["excel-digits", "excel-errors"]
    assert table.frame["city"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("sheets", "words"),
    [
        ({"a": EDGES, "b": NODES}, "the sheets a, b"),
        ({"a": []}, "no sheet with cells"),
        ({"a": [["id", "id"], [1, 2]]}, "stands twice"),
        ({"a": [["id", "city"]]}, "no rows"),
        ({"a": [["Members of 2024"], ["id", "city", "age"], [1, "A", 2]]}, r"row 1 of sheet a has 1 cell \(Members of"),
    ],
)
def test_other_workbooks_are_refused(sheets: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=words):
        excel.read_excel(workbook(tmp_path / "x.xlsx", **sheets))


def test_merged_cells_are_refused(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(workbook(tmp_path / "x.xlsx", s=NODES))
    book["s"].merge_cells("B2:B3")
    book.save(tmp_path / "x.xlsx")
    with pytest.raises(GraphError, match="merged cells, first at row 2, column 2"):
        excel.read_excel(tmp_path / "x.xlsx")


def test_hidden_sheets_are_not_read(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(workbook(tmp_path / "x.xlsx", s=NODES, old=EDGES))
    book["old"].sheet_state = "hidden"
    book.save(tmp_path / "x.xlsx")
    assert excel.read_excel(tmp_path / "x.xlsx").names == ("id", "city", "age")


@pytest.mark.parametrize("damage", [b"", b"no zip", b"PK\x03\x04" + bytes(50)])
def test_damaged_files_are_refused(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "club.xlsx").write_bytes(damage)
    with pytest.raises(GraphError, match=r"cannot be read as an Excel workbook"):
        excel.read_excel(tmp_path / "club.xlsx")
    with pytest.raises(GraphError):
        load(tmp_path / "club.xlsx")


def rewritten(path: Path, change: dict[str, tuple[bytes, bytes]]) -> Path:
    """The workbook with bytes of some members replaced."""
    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data.replace(*change.get(name, (b"", b""))) if name in change else data)
    return path


@pytest.mark.parametrize("locked", [False, True])
def test_a_damaged_or_locked_member_is_no_crash(locked: bool, tmp_path: Path) -> None:
    path = workbook(tmp_path / "club.xlsx", edges=EDGES, nodes=NODES)
    texts = "xl/sharedStrings.xml"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(texts, "".join(f"<si><t>{i}</t></si>" for i in range(500)))
        start = archive.getinfo(texts).header_offset
    data = bytearray(path.read_bytes())
    if locked:
        data[start + 6] = data[data.rindex(texts.encode()) - 46 + 8] = 1
    else:
        data[start + 60 : start + 160] = b"U" * 100
    path.write_bytes(data)
    with pytest.raises(GraphError, match=r"club.xlsx: cannot be read as an Excel workbook"):
        load(tmp_path)


@pytest.mark.parametrize("value", [b"inf", b"nan", b"1e999"])
def test_a_number_beyond_all_is_no_crash(value: bytes, tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", s=[["id", "x"], [1, 12345], [2, 6]])
    table = excel.read_excel(rewritten(path, {"xl/worksheets/sheet1.xml": (b"12345", value)}))
    assert table.frame["x"].tolist()[1] == "6" and not table.messages


def test_a_workbook_with_a_long_name_is_read(tmp_path: Path) -> None:
    workbook(tmp_path / f"{'x' * 240}.xlsx", edges=EDGES, nodes=NODES)
    assert load(tmp_path).num_edges == 5


def test_a_header_may_begin_with_a_mark(tmp_path: Path) -> None:
    rows = [["#", "id", "city"], [1, 7, "A"], [2, 8, "B"]]
    assert excel.read_excel(workbook(tmp_path / "x.xlsx", s=rows)).names == ("#", "id", "city")


def changed(path: Path, change: Any) -> Path:
    book = openpyxl.load_workbook(path)
    change(book)
    book.save(path)
    return path


def test_hidden_rows_are_asked_for(tmp_path: Path) -> None:
    def hide(book: Any) -> None:
        book["edges"].row_dimensions[3].hidden = True
        book["edges"].row_dimensions[5].hidden = True
        book["nodes"].row_dimensions[900].hidden = True  # below the table

    changed(workbook(tmp_path / "club.xlsx", edges=EDGES, nodes=NODES), hide)
    with pytest.raises(GraphError, match=r"club.xlsx, sheet edges: 2 rows are hidden, .* first: row 3; show them if"):
        load(tmp_path)
    changed(tmp_path / "club.xlsx", lambda book: book["edges"].row_dimensions.clear())
    assert load(tmp_path).num_edges == 5


def test_formulas_without_values_are_refused(tmp_path: Path) -> None:
    rows = [["id", "city"], [101, '=IF(A2=1,"A","B")'], [102, "B"]]
    path = workbook(tmp_path / "x.xlsx", s=rows)
    with pytest.raises(GraphError, match=r"x.xlsx: 1 cell with a formula whose value was never calculated, first: B2"):
        excel.read_excel(path)
    assert excel.read_excel(rewritten(path, {"xl/worksheets/sheet1.xml": (b"<v />", b"<v>7</v>")})).frame[
        "city"
    ].tolist() == ["7", "B"]


def test_errors_are_counted_in_the_sheet_that_is_read(tmp_path: Path) -> None:
    faulty = [["id", "x"], [1, "#N/A"], [2, "#REF!"]]
    workbook(tmp_path / "club.xlsx", edges=EDGES, nodes=[*NODES, [105, "#N/A", 3]], other=faulty)
    said = [m.text for m in load(tmp_path).messages if m.code == "excel-errors"]
    assert said == ["club.xlsx, sheet nodes: 1 cell with an error of a formula (#N/A, #REF!), read as empty"]


@pytest.mark.parametrize(
    ("names", "hidden", "words"),
    [
        (["Kanten", "Knoten"], "", "found the sheets Kanten, Knoten; name the sheet of links 'edges' and the sheet"),
        (["edges", "links", "nodes"], "", "sheets edges, links, nodes, of which edges and links count alike; name"),
        (["edges", "nodes"], "nodes", r"found the sheets edges \(hidden, and so not read: nodes\); name the sheet"),
    ],
)
def test_other_sheets_are_listed(names: list[str], hidden: str, words: str, tmp_path: Path) -> None:
    path = workbook(tmp_path / "club.xlsx", **dict.fromkeys(names, EDGES))
    if hidden:
        changed(path, lambda book: setattr(book[hidden], "sheet_state", "hidden"))
    for spec in (tmp_path, path):
        with pytest.raises(GraphError, match=words):
            load(spec)


def test_each_sheet_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workbook(tmp_path / "club.xlsx", edges=EDGES, nodes=NODES, notes=[["a"]])
    read: list[str] = []
    table = excel._table
    monkeypatch.setattr(
        excel, "_table", lambda path, sheet, *a, **k: read.append(sheet.name) or table(path, sheet, *a, **k)
    )
    load(tmp_path)
    assert read == ["edges", "nodes"]


def test_other_files_called_xlsx_are_named(tmp_path: Path) -> None:
    for text, words in (
        (b"<html><table></table></html>", "is a web page"),
        (b"\xd0\xcf\x11\xe0", "is locked by a password"),
    ):
        (tmp_path / "club.xlsx").write_bytes(text)
        with pytest.raises(GraphError, match=f"club.xlsx: {words}"):
            load(tmp_path)


def test_any_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    whole = workbook(tmp_path / "x.xlsx", s=NODES).read_bytes()
    for cut in range(0, len(whole), 97):
        (tmp_path / "x.xlsx").write_bytes(whole[:cut])
        with pytest.raises(GraphError):
            excel.read_excel(tmp_path / "x.xlsx")


def test_a_text_that_many_cells_repeat_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "x.xlsx", s=[["id", "text"], *([i, "x" * 30_000] for i in range(200))])
    source = zipfile.ZipFile(path)
    with zipfile.ZipFile(tmp_path / "y.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name))
    monkeypatch.setenv("UGE_MAX_UNPACKED", "1000000")
    assert (tmp_path / "y.xlsx").stat().st_size < 20_000
    with pytest.raises(GraphError, match="unpacks into more"):
        excel.read_excel(tmp_path / "y.xlsx")


@given(
    st.lists(
        st.lists(
            st.one_of(st.none(), st.integers(-(10**9), 10**9), st.text("ab,;\"' #é", max_size=6)),
            min_size=3,
            max_size=3,
        ),
        min_size=1,
        max_size=8,
    )
)
def test_a_sheet_is_the_csv_file_of_its_cells(tmp_path_factory: pytest.TempPathFactory, rows: list[list[Any]]) -> None:
    folder = tmp_path_factory.mktemp("sheet")
    rows = [["first", *row] for row in rows]
    path = workbook(folder / "x.xlsx", s=[["id", "a", "b", "c"], *rows])
    found = excel.read_excel(path, header=True).frame
    assert found["id"].tolist() == ["first"] * len(rows)
    for i, name in enumerate("abc", 1):
        wanted = ["" if row[i] is None else str(row[i]).strip() for row in rows]
        assert [str(c).strip() for c in found[name].fillna("")] == wanted


@pytest.mark.parametrize("place", ["XFD1048576", "ZZZZZZ999999999"])
def test_a_cell_in_the_last_corner_takes_no_memory(tmp_path: Path, place: str) -> None:
    path = workbook(tmp_path / "x.xlsx", s=[["id", "g"], [1, "a"], [2, "b"]])
    _with_sheet(
        path, lambda sheet: sheet.replace("</sheetData>", f'<row><c r="{place}"><v>1</v></c></row></sheetData>')
    )
    with pytest.raises(GraphError, match=r"^x.xlsx: unpacks into more than [\d,]+ bytes .*set UGE_MAX_UNPACKED"):
        excel.read_excel(path)


def test_a_directory_of_an_archive_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "x.xlsx", s=[["id", "g"], [1, "a"], [2, "b"]])
    _with_sheet(path, lambda sheet: sheet.replace("</sheetData>", f"{'<row/>' * 2**19}</sheetData>"))
    data = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.find(mark)
        while start >= 0:
            data[start + at : start + at + 4] = (100).to_bytes(4, "little")
            start = data.find(mark, start + 4)
    path.write_bytes(data)
    monkeypatch.setenv("UGE_MAX_UNPACKED", str(2**20))
    with pytest.raises(GraphError, match=r"^x.xlsx: unpacks into more than 1,048,576 bytes"):
        excel.read_excel(path)


def _with_sheet(path: Path, change: Any, called: str = "xl/worksheets/sheet1.xml") -> None:
    """Writes a workbook again, with another text in place of its first sheet's, in a file that is called otherwise."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    members[called] = change(members.pop(sheet).decode()).encode()
    links = "xl/_rels/workbook.xml.rels"
    members[links] = members[links].replace(sheet.rpartition("/")[2].encode(), called.rpartition("/")[2].encode())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_parts_between_elements_are_measured_across_pieces(monkeypatch):
    data = b"<row><c/><c/><c/></row>" + b"<row/>" * 50 + b"<x:row><c/><c/></x:row>"
    for size in (2, 7, 30, 2**20):
        monkeypatch.setattr(excel, "_PIECE", size)
        assert b"".join(excel._pieces(data)) == data
        if size > 6:  # a piece holds a whole tag
            assert excel._parts(excel._ROW, data, lambda row: len(excel._ANY_CELL.findall(row))) == (53, 3)


def test_a_sheet_is_looked_at_whatever_its_file_is_called(tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", s=[["id", "g"], [1, "a"], [2, "b"]])
    last = '<row><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    _with_sheet(path, lambda sheet: sheet.replace("</sheetData>", last), called="xl/worksheets/sheet1.dat")
    with pytest.raises(GraphError, match=r"^x.xlsx: unpacks into more than"):
        excel.read_excel(path)


@pytest.mark.parametrize("decoy", ["a/sharedStrings.xml", "customXml/xl/sharedStrings.xml"])
def test_a_decoy_hides_no_long_text(decoy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "x.xlsx", s=[["id", "text"], *([i, "x" * 30_000] for i in range(200))])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {decoy: b"<sst><si><t>a</t></si></sst>", **members}.items():
            archive.writestr(name, content)
    monkeypatch.setenv("UGE_MAX_UNPACKED", "1000000")
    with pytest.raises(GraphError, match="unpacks into more"):
        excel.read_excel(path)
