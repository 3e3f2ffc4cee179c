"""A plain table is parsed by Arrow and any other as before: both read the same, whatever stands in the cells."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uge_core.datasets import load, plain_rows, tables
from uge_core.datasets.ids import by_id
from uge_core.datasets.layouts.sample import names
from uge_core.datasets.tables import Table, read_table
from uge_core.errors import GraphError

ODD = ["", "a", "7", "007", " x", "x ", "\tx", "a b", '"', 'a"b', '"q"', "NA", "é", "\u2028", "\ufeff", "\x00", "-1"]
CELL = st.sampled_from(ODD) | st.text(st.characters(codec="utf-8", exclude_characters="\n\r,;"), max_size=4)
ROWS = st.lists(st.lists(CELL, min_size=2, max_size=2), min_size=1, max_size=12)


def either_way(path: Path, monkeypatch: pytest.MonkeyPatch, **how: object) -> tuple[object, object]:
    """What comes of a table, a frame or the error, read as it is and read without the way for plain ones."""

    def read() -> object:
        try:
            table = read_table(path, **how)
        except GraphError as error:
            return str(error)
        return table

    first = read()
    with monkeypatch.context() as patch:
        patch.setattr(tables, "plain_rows", lambda *_, **__: None)
        return first, read()


def check_alike(first: object, second: object) -> None:
    if isinstance(first, Table) and isinstance(second, Table):
        pd.testing.assert_frame_equal(first.frame, second.frame, check_index_type=False)
        assert first.messages == second.messages
    else:
        assert first == second


@given(
    ROWS,
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.sampled_from([1, 7, 2**20]),
    st.booleans(),
)
@example([["a", "b"], ["", ""], ["c", ""]], ",", "\r\n", True, 1, False)
@example([["\ufeffa", "b"]], ",", "\n", True, 1, True)
@example([["a", "b"], ["\ufeffc", "d"]], ",", "\n", True, 1, False)
def test_both_ways_read_the_same(tmp_path_factory, rows, sep, end, closed, block, headless):
    path = tmp_path_factory.getbasetemp() / "t.csv"
    lines = [sep.join(cells) for cells in ([] if headless else [["id", "g"]]) + rows]
    path.write_bytes((end.join(lines) + end * closed).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_rows, "_BLOCK", block)
        how = {"sep": sep, "names": ["id", "g"] if headless else None}
        for more in ({}, {"in_place": True}, {"quoted": True}, {"encoding": "utf-8"}):
            check_alike(*either_way(path, patch, **how, **more))


@pytest.mark.parametrize(
    ("rows", "plain"),
    [
        (["a,b", "c,d"], True),
        (["a,b", "c,"], True),
        (["a,b", "", "c,d"], True),
        (["a,b", "c"], False),
        (["a,b", "c,d,e"], False),
        (["a,b", 'c,"d"'], False),
        (["a,b", "c, d"], False),
        (["a,b", " c,d"], False),
        (["a,b", "c,\0"], False),
        (["a,b", "c\rd,e"], False),
        (["a,b", "c,\udcff"], False),
    ],
)
def test_what_is_not_plain_is_left_to_the_other_way(tmp_path, rows, plain):
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(["id,g", *rows]).encode("utf-8", "surrogateescape"))
    pieces = plain_rows.plain_rows(path, encoding="utf-8-sig", sep=",", width=2, skipped=1, quoted=True)
    assert (pieces is not None) == plain


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("block", [1000, 9999])
def test_pieces_make_the_same_graph(monkeypatch, name, block):
    whole = load(f"sample:{name}")
    monkeypatch.setattr(plain_rows, "_BLOCK", block)
    pieces = load(f"sample:{name}")
    monkeypatch.setattr(tables, "plain_rows", lambda *_, **__: None)
    otherwise = load(f"sample:{name}")
    for graph in (pieces, otherwise):
        assert graph.fingerprint == whole.fingerprint
        assert graph.ids(slice(None)) == whole.ids(slice(None))
        assert (graph.messages, graph.columns) == (whole.messages, whole.columns)
        assert (graph.truth.bias_free == whole.truth.bias_free).all()
        assert (graph.truth.group == whole.truth.group).all()


def test_pieces_of_a_packed_file(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress("\n".join(["id,g", *(f"p{i},{i % 3}" for i in range(500))]).encode()))
    monkeypatch.setattr(plain_rows, "_BLOCK", 64)
    first, second = either_way(path, monkeypatch)
    assert len(first) == 500
    check_alike(first, second)


IDS = {
    "numbers": [str(i) for i in range(1, 400)],
    "numbers behind a letter": [f"p{i:05d}" for i in range(400)],
    "numbers of any length behind a letter": [f"é{i}" for i in range(400)],
    "both 7 and 007": ["7", "007", *(str(i) for i in range(8, 300))],
    "far apart": [str(i * 10_000) for i in range(1, 300)],
    "long": [f"{10**12 + i}" for i in range(300)],
    "names": [f"{'abc'[i % 3]}-{i}-x" for i in range(300)],
    "some numbers": ["anna", *(str(i) for i in range(300))],
}
NEAR = [
    "",
    "0",
    "00",
    "01",
    "+1",
    "-1",
    "1.0",
    "1 ",
    "p1",
    "p",
    "p000001",
    "P00001",
    "é1",
    "\u0661",
    "9" * 30,
    "x",
    "1:",
    "p0001:",
    "é1:",
]


@pytest.mark.parametrize("few", [0, 10**9], ids=["table of numbers", "hash"])
@pytest.mark.parametrize("kind", IDS)
def test_ids_are_found_and_nothing_that_is_none(monkeypatch, kind, few):
    monkeypatch.setattr(plain_rows, "_MANY", few)
    rng = np.random.default_rng(1)
    ids = IDS[kind]
    cells = [*rng.choice(ids, 900), *(c for c in NEAR if c), *rng.choice(ids, 100)]
    for parts in (1, 3):  # Arrow keeps the pieces of a table apart
        column = pd.concat([pd.Series(list(p), dtype="str") for p in np.array_split(np.array(cells, object), parts)])
        table = Table("edges.csv", pd.DataFrame({"source": column}))
        expected = [ids.index(c) if c in ids else -1 for c in cells]
        assert by_id(table, "source", pd.Index(ids, dtype="str")).tolist() == expected
