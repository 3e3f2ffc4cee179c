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
