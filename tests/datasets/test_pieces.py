"""A table is parsed a piece at a time; what comes out, lines named in errors too, is that of the whole."""

import gzip

import numpy as np
import pandas as pd
import pytest

from uge_core.datasets import plain_rows, tables
from uge_core.datasets.ids import by_id
from uge_core.datasets.tables import as_numbers, read_lines, read_table
from uge_core.errors import GraphError

ROWS = [f"{i},{'' if i % 7 == 3 else i / 2},{'xyz'[i % 3]}" for i in range(40)]
TABLES = {
    "plain": ["id,x,g", *ROWS],
    "empty lines": ["id,x,g", *ROWS[:9], *[""] * 20, *ROWS[9:], "", ""],
    "a line break in a cell": ["id,x,g", *ROWS[:11], '11,"5\n5",x', *ROWS[12:]],
    "one column": ["id", *map(str, range(30)), *[""] * 8, "30", "", ""],
    "text after numbers": ["id,x,g", *ROWS[:30], "30,seven,x", *ROWS[31:]],
    "numbers after text": ["id,x,g", "0,seven,x", *ROWS[1:]],
    "truth values after numbers": ["id,x,g", *ROWS[:30], "30,True,x", *ROWS[31:]],
    "fractions after whole numbers": [
        "id,x,g",
        *[f"{i},{i},a" for i in range(20)],
        *[f"{i},{i}.5,b" for i in range(20)],
    ],
}


@pytest.mark.parametrize("text", [None, ("id", "g")], ids=["text", "numbers"])
@pytest.mark.parametrize("kind", TABLES)
def test_pieces_make_the_whole(tmp_path, monkeypatch, kind, text):
    path = tmp_path / "nodes.csv"
    path.write_text("\n".join(TABLES[kind]) + "\n")
    whole = read_table(path, text=text).frame
    monkeypatch.setattr(tables, "_CELLS", 12)
    monkeypatch.setattr(plain_rows, "_BLOCK", 30)
    pieces = read_table(path, text=text).frame
    pd.testing.assert_frame_equal(pieces, whole, check_index_type=False)
    monkeypatch.setattr(tables, "plain_rows", lambda *_, **__: None)
    pieces = read_table(path, text=text).frame
    pd.testing.assert_frame_equal(pieces, whole, check_index_type=False)


@pytest.mark.parametrize("excess", [1, 2, 3])
@pytest.mark.parametrize("row", [0, 2, 3, 4, 17, 39])
def test_a_long_row_is_named_in_whichever_piece_it_is(tmp_path, monkeypatch, row, excess):
    path = tmp_path / "nodes.csv"
    path.write_text("\n".join(["id,x,g", *ROWS[:row], ROWS[row] + ",9" * excess, *ROWS[row + 1 :]]) + "\n")
    monkeypatch.setattr(tables, "_CELLS", 12)
    with pytest.raises(GraphError, match=rf"^nodes.csv: line {row + 2} has more than the 3 fields expected"):
        read_table(path)


def test_damaged_ends_are_found_in_later_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_CELLS", 12)
    path = tmp_path / "nodes.csv.gz"
    rows = "\n".join(["id,x,g", *ROWS * 500]).encode()
    path.write_bytes(gzip.compress(rows)[:-20])
    with pytest.raises(GraphError, match="the gzip data are damaged or cut off"):
        read_table(path)
    path.write_bytes(gzip.compress(rows + b"\n1,2,\xff\n"))
    with pytest.raises(GraphError, match=r"is not UTF-8 text \(first: line 20002\)"):
        read_table(path)


def test_a_list_of_titles_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_LONGEST_LIST", 1000)
    path = tmp_path / "movies.dat.gz"
    path.write_bytes(gzip.compress(b"1::A::Drama\n" * 100))
    with pytest.raises(GraphError, match=r"movies.dat.gz: has more than the 1,000 bytes"):
        read_lines(path, "latin-1")


def test_numbers_and_ids_are_the_same_in_long_columns():
    cells = pd.Series(["1", "1.0", "x", None, "inf", "-2e3", " 7"] * 1000, dtype="str")
    few = as_numbers(cells[:7])
    np.testing.assert_array_equal(few, [1, 1, np.nan, np.nan, np.nan, -2000, 7])
    np.testing.assert_array_equal(as_numbers(cells), np.tile(few, 1000))
    ids = pd.Index(["b", "7", "007", "NA"])
    edges = tables.Table("edges.csv", pd.DataFrame({"source": ["007", "c", "b", "NA", "7", "7.0"]}, dtype="str"))
    assert by_id(edges, "source", ids).tolist() == [2, -1, 0, 3, 1, -1]
    assert by_id(edges, "source", ids.astype(object)).tolist() == [2, -1, 0, 3, 1, -1]
