"""What of a file is an id, what is a number of the embedding, and what is neither: read right, or refused by name."""

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from uge_core.datasets import load
from uge_core.datasets.embeddings import read_embedding
from uge_core.errors import EmbeddingError
from uge_core.graph.graph import AttributedGraph

N, D = 12, 4
ORDER = np.random.default_rng(0).permutation(N)
"""Who stands in each row of the file; the graph's rows are in order."""
Z = np.random.default_rng(1).normal(size=(N, D)).round(4)
"""Row k of the file; of the person ORDER[k]."""
PEOPLE = [f"p{i}" for i in ORDER]
BY_PERSON = Z[np.argsort(ORDER)]
NAMES = [f"d{i}" for i in range(D)]


def graph_of(folder: Path, ids: Sequence[object]) -> AttributedGraph:
    folder.mkdir(exist_ok=True)
    ends = zip(ids, [*ids[1:], ids[0]], strict=True)
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in ends))
    (folder / "nodes.csv").write_text("id,gender\n" + "".join(f"{p},{'ab'[i % 2]}\n" for i, p in enumerate(ids)))
    return load(folder)


@pytest.fixture
def letters(tmp_path: Path) -> AttributedGraph:
    """p0 to p11, in order."""
    return graph_of(tmp_path / "letters", [f"p{i}" for i in range(N)])


@pytest.fixture
def numbers(tmp_path: Path) -> AttributedGraph:
    """0 to 11, in order."""
    return graph_of(tmp_path / "numbers", list(range(N)))


def saved(path: Path, content: Any) -> Path:
    """A file of the kind its ending says."""
    if path.suffix == ".npy":
        np.save(path, content)
    elif path.suffix == ".npz":
        np.savez(path, **content)
    elif path.suffix == ".pt":
        torch.save(content, path)
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        content.to_parquet(path)
    elif isinstance(content, pd.DataFrame):
        content.to_csv(path, index=False)
    else:
        path.write_text(content)
    return path


def table(**first: Any) -> pd.DataFrame:
    """The numbers, with some columns before them."""
    return pd.DataFrame(first | dict(zip(NAMES, Z.T, strict=True)))


def lines(rows: Sequence[Sequence[object]], sep: str = ",") -> str:
    return "".join(sep.join(map(str, row)) + "\n" for row in rows)


TENSOR = torch.tensor(Z)
MEMBERS = {
    "ids.pt": {"embedding": TENSOR, "ids": PEOPLE},
    "names.pt": {"emb": TENSOR, "names": PEOPLE, "epoch": 3, "loss": 0.5},
    "node_id.npz": {"embedding": Z, "node_id": np.array(PEOPLE)},
    "IDs.npz": {"embeddings": Z, "IDs": np.array(PEOPLE, dtype="S")},
    "by values.npz": {"embedding": Z, "who": np.array(PEOPLE)},
    "beside labels.npz": {"embedding": Z, "ids": np.array(PEOPLE), "name": np.array([f"Ann {i}" for i in range(N)])},
    "a pair.pt": (PEOPLE, TENSOR),
    "by key.pt": dict(zip(PEOPLE, TENSOR, strict=True)),
    "big-endian half.npz": {"embedding": Z.astype(">f2"), "ids": np.array(PEOPLE)},
}


@pytest.mark.parametrize("name", MEMBERS)
def test_ids_beside_the_embedding(name: str, letters: AttributedGraph, tmp_path: Path) -> None:
    path = saved(tmp_path / name, MEMBERS[name])
    np.testing.assert_allclose(read_embedding(path, letters), BY_PERSON, atol=2e-3)


@pytest.mark.parametrize("name", ["ids.pt", "node_ids.pt", "ids.npz"])
def test_ids_that_are_numbers(name: str, numbers: AttributedGraph, tmp_path: Path) -> None:
    ids = torch.tensor(ORDER) if name == "ids.pt" else ORDER.tolist() if name.endswith("pt") else ORDER
    values = TENSOR if name.endswith("pt") else Z
    path = saved(tmp_path / name, {"embedding": values, name.split(".")[0]: ids})
    np.testing.assert_allclose(read_embedding(path, numbers), BY_PERSON, rtol=1e-6)


LAYERS = {"conv1.weight": torch.zeros(N, 9), "conv2.weight": torch.zeros(9, 9)}
REFUSED: dict[str, tuple[str, Any, str]] = {
    "a member that may be ids": ("z.npz", {"embedding": Z, "who": np.array(list("abcdefghijkl"))}, "'who' has some"),
    "a list that may be ids": ("z.pt", {"embedding": TENSOR, "who": [{"a": 1}] * N}, "'who' has something for each"),
    "an order of the rows": ("z.npz", {"embedding": Z, "rank": ORDER}, "'rank' has something for each"),
    "ids in a dict": (
        "z.pt",
        {"embedding": TENSOR, "node_ids": dict.fromkeys(PEOPLE, 0)},
        "'node_ids' is a dict; a list",
    ),
    "fewer ids": ("z.pt", {"embedding": TENSOR, "names": PEOPLE[1:]}, "'names' is a list; a list of one text"),
    "two orders": (
        "z.npz",
        {"embedding": Z, "ids": np.array(PEOPLE), "names": np.array(sorted(PEOPLE))},
        "members 'ids' and 'names' both hold the ids of all nodes",
    ),
    "layers": ("z.pt", LAYERS, "weights of a module (conv1.weight, conv2.weight)"),
    "one layer": ("z.pt", {"lin.weight": TENSOR, "lin.bias": torch.zeros(N)}, "weights of a module (lin.weight)"),
    "a layer alone": ("z.pt", {"weight": TENSOR, "bias": torch.zeros(N)}, "weights of a module (weight)"),
    "layers after": ("z.pt", {"emb.weight": TENSOR, "conv.weight": torch.zeros(D, D)}, "(emb.weight, conv.weight)"),
    "a checkpoint": ("z.pt", {"state": {"emb.weight": TENSOR}}, "'state' is a dict of its own"),
    "ids in front": ("z.npy", np.c_[100 + ORDER, Z], "column 0 of the numbers holds whole numbers that are nearly all"),
    "row numbers in front": ("z.npy", np.c_[1 + np.arange(N), Z], "holds each number from 1 to 12 once"),
    "turned": ("z.npy", Z.T, "4 rows, but letters has 12 nodes; it has a column for each, so transpose it"),
    "row numbers beside ids": (
        "z.csv",
        table(row=ORDER, user=PEOPLE),
        "column 'row' holds each number from 0 to 11 once",
    ),
    "row numbers called id": ("z.parquet", table(id=range(N), user=PEOPLE), "column 'id' holds each number from 0 to"),
    "an attribute": (
        "z.csv",
        table(id=PEOPLE, gender=Z[:, 0]),
        "column 'gender' is called like an attribute of letters",
    ),
    "groups": ("z.csv", table(id=PEOPLE, cluster=ORDER % 3), "column 'cluster' seems to be no number of the embedding"),
    "a score": ("z.parquet", table(id=PEOPLE, score=Z[:, 0]), "column 'score' seems to be no number of the embedding"),
    "names of people": ("z.csv", table(id=PEOPLE, user=list("abcdefghijkl")), "column 'user' without a number"),
    "no ids": (
        "z.csv",
        table(),
        "no column holds the ids of the nodes; found: d0, d1, d2, d3; write the ids in the first",
    ),
    "no ids, no header": ("z.csv", lines(Z.tolist()), "no column holds the ids of the nodes"),
    "no ids in text": ("z.txt", lines(Z.tolist(), " "), "line 1 holds numbers alone"),
    "row numbers alone": (
        "z.csv",
        table(index=range(N)),
        "the first column numbers the rows, and no column holds the ids",
    ),
    "turned table": ("z.csv", lines([["", *PEOPLE], *[[f"d{i}", *Z[:, i]] for i in range(D)]]), "transpose it"),
    "decimal commas": (
        "z.csv",
        lines([["id", "a"], *([p, f"{x}".replace(".", ",")] for p, x in zip(PEOPLE, Z[:, 0], strict=True))], ";"),
        "numbers have decimal commas",
    ),
    "word2vec in csv": (
        "z.csv",
        f"{N} {D}\n" + lines([[p, *z] for p, z in zip(PEOPLE, Z, strict=True)], " "),
        f"line 1 ({N} {D}) says how many vectors follow",
    ),
    "word2vec in tsv": (
        "z.tsv",
        f"{N}\t{D}\n" + lines([[p, *z] for p, z in zip(PEOPLE, Z, strict=True)], "\t"),
        "rename the file so that it ends in .txt",
    ),
    "lists in cells": (
        "z.csv",
        pd.DataFrame({"id": PEOPLE, "z": list(map(str, Z.tolist()))}),
        "a column for each number",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_neither_is_refused_by_name(kind: str, letters: AttributedGraph, tmp_path: Path) -> None:
    name, content, said = REFUSED[kind]
    with pytest.raises(EmbeddingError) as refusal:
        read_embedding(saved(tmp_path / name, content), letters)
    assert said in str(refusal.value)


READ: dict[str, tuple[str, Any]] = {
    "reset_index": ("z.csv", table(index=range(N), id=PEOPLE)),
    "reset_index in Parquet": ("z.parquet", table(index=range(N), id=PEOPLE)),
    "column_stack": ("z.csv", pd.DataFrame(np.column_stack([np.array(PEOPLE, dtype=object), Z.astype(object)]))),
    "ids behind, no header": ("z.csv", lines([[*z, p] for p, z in zip(PEOPLE, Z, strict=True)])),
    "letters for columns": ("z.csv", table(id=PEOPLE).rename(columns=dict(zip(NAMES, "xyzw", strict=True)))),
    "whole numbers": ("z.csv", table(id=PEOPLE).assign(d1=ORDER % 3)),
}


@pytest.mark.parametrize("kind", READ)
def test_ordinary_tables_are_read(kind: str, letters: AttributedGraph, tmp_path: Path) -> None:
    name, content = READ[kind]
    read = read_embedding(saved(tmp_path / name, content), letters)
    assert read.shape == (N, D)
    np.testing.assert_allclose(read[:, 0], BY_PERSON[:, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([N if i == 5 else i for i in ORDER], "1 of the 12 nodes of numbers have no row, first: '5'"),
        ([ORDER[1], *ORDER[1:]], "1 row with an id that stands further up"),
        ([f"{i}.0" for i in ORDER], "12 ids would match as numbers"),
        ([f"{i:02d}" for i in ORDER], "10 ids would match as numbers ('0"),
        (ORDER + 1, "the file's ids seem to count from 1, and the graph's from 0"),
        (ORDER + 1000, "12 of the 12 ids of the file are no node"),
        (["", *ORDER[1:]], "1 row without an id"),
    ],
)
@pytest.mark.parametrize("name", ["id", "user_id"])
def test_rows_that_pandas_numbered_and_ids_with_a_flaw(
    name: str, ids: Sequence[object], said: str, numbers: AttributedGraph, tmp_path: Path
) -> None:
    path = tmp_path / "z.csv"
    table(**{name: list(ids)}).to_csv(path)
    with pytest.raises(EmbeddingError) as refusal:
        read_embedding(path, numbers)
    assert said in str(refusal.value)


def test_row_numbers_and_ids_with_a_flaw_are_asked_for(numbers: AttributedGraph, tmp_path: Path) -> None:
    """The row numbers are ids of all nodes by chance."""
    path = saved(tmp_path / "z.csv", table(row=range(N), id=[N if i == 5 else i for i in ORDER]))
    with pytest.raises(
        EmbeddingError, match=r"columns 'row' \(ids of 12 of 12 nodes\) and 'id' \(of 11\) may each say"
    ):
        read_embedding(path, numbers)


def test_a_header_of_numbers(numbers: AttributedGraph, tmp_path: Path) -> None:
    rows = [[i, *z] for i, z in zip(ORDER, Z, strict=True)]
    path = saved(tmp_path / "z.csv", lines([range(D + 1), *rows]))
    np.testing.assert_allclose(read_embedding(path, numbers), BY_PERSON, rtol=1e-6)
    path = saved(tmp_path / "z.csv", lines([range(D + 1), *(row for row in rows if row[0])]))
    with pytest.raises(EmbeddingError, match=r"line 1 \(0, 1, 2, 3\) may be a header as pandas writes it, or the row"):
        read_embedding(path, numbers)


def test_ids_that_begin_like_comments(tmp_path: Path) -> None:
    graph = graph_of(tmp_path / "tags", [f"#t{i}" for i in range(N)])
    path = saved(tmp_path / "z.csv", lines([[f"#t{i}", *z] for i, z in zip(ORDER, Z, strict=True)]))
    np.testing.assert_allclose(read_embedding(path, graph), BY_PERSON, rtol=1e-6)


@pytest.mark.parametrize(
    ("first", "kind"), [("0", "npy"), ("1", "npy"), ("p0", "npy"), ("n1", "npy"), ("0", "pandas"), ("1", "pandas")]
)
def test_ids_that_count_in_another_order(first: str, kind: str, tmp_path: Path) -> None:
    letter, start = first[:-1], int(first[-1])
    graph = graph_of(tmp_path / "g", [f"{letter}{i + start}" for i in ORDER])
    path = tmp_path / "z.npy"
    np.save(path, Z)
    if kind == "pandas":
        path = tmp_path / "z.csv"
        pd.DataFrame(Z, index=range(start, N + start), columns=[f"V{i + 1}" for i in range(D)]).to_csv(path)
    with pytest.raises(EmbeddingError, match=rf"row 0 of the file may be node '{first}'.*--rows id or --rows order"):
        read_embedding(path, graph)
    np.testing.assert_allclose(read_embedding(path, graph, rows="order"), Z, rtol=1e-6)
    np.testing.assert_allclose(read_embedding(path, graph, rows="id"), Z[ORDER], rtol=1e-6)


def test_users_and_items_that_count_in_another_order(tmp_path: Path) -> None:
    items = [f"film {c}" for c in "abc"]
    (tmp_path / "edges.csv").write_text("user,item\n" + "".join(f"{u},{items[u % 3]}\n" for u in ORDER))
    (tmp_path / "users.csv").write_text("id,gender\n" + "".join(f"{u},{'ab'[u % 2]}\n" for u in ORDER))
    (tmp_path / "items.csv").write_text("id,kind\n" + "".join(f"{i},{'xy'[n % 2]}\n" for n, i in enumerate(items)))
    (tmp_path / "dataset.yaml").write_text("edges: {file: edges.csv}\nusers: users.csv\nitems: items.csv\n")
    graph = load(tmp_path)
    path = saved(tmp_path / "z.npy", np.vstack([Z, Z[:3]]))
    with pytest.raises(EmbeddingError, match="--rows id or --rows order"):
        read_embedding(path, graph)
    read = read_embedding(path, graph, rows="id")
    np.testing.assert_allclose(read, np.vstack([Z[ORDER], Z[:3]]), rtol=1e-6)


ALIKE: dict[str, tuple[Callable[[str], str], Callable[[str], str], str]] = {
    "capitals": (lambda i: f"p{i}", lambda i: f"P{i}", "if capital and small letters were the same"),
    "accents": (lambda i: f"Zo\u00eb{i}", lambda i: unicodedata.normalize("NFD", f"Zo\u00eb{i}"), "Unicode NFC"),
    "blanks inside": (lambda i: f"Ann {i}", lambda i: f"Ann_{i}", "if blanks, _ and - were the same"),
    "no-break spaces": (lambda i: f"Ann {i}", lambda i: f"Ann\u00a0{i}", "without characters that cannot be seen"),
    "zero width": (lambda i: f"p{i}", lambda i: f"p{i}\u200b", "without characters that cannot be seen"),
    "letters in front": (lambda i: i, lambda i: f"P{i}", "without what stands in front of the number"),
    "no letters": (lambda i: f"@{i}", lambda i: i, "without what stands in front of the number"),
    "thousands": (lambda i: f"{1000 + int(i)}", lambda i: f'"1,{int(i):03d}"', "as numbers"),
    "quotes": (lambda i: f"p{i}", lambda i: f"'p{i}'", "without the quotes around them"),
    "formulas": (lambda i: f"{int(i):03d}", lambda i: f'"=""{int(i):03d}"""', "without the quotes around them"),
}


@pytest.mark.parametrize("kind", ALIKE)
def test_ids_written_in_another_way(kind: str, tmp_path: Path) -> None:
    wanted, written, said = ALIKE[kind]
    graph = graph_of(tmp_path / "g", [wanted(str(i)) for i in range(N)])
    rows = [["id", *NAMES], *([written(str(i)), *z] for i, z in zip(ORDER, Z, strict=True))]
    with pytest.raises(EmbeddingError) as refusal:
        read_embedding(saved(tmp_path / "z.csv", lines(rows)), graph)
    assert f"12 ids would match {said}" in str(refusal.value) or said in str(refusal.value)


@pytest.mark.parametrize("kept", [slice(-100), slice(10, None)])
def test_a_file_of_torch_that_lacks_a_part(kept: slice, letters: AttributedGraph, tmp_path: Path) -> None:
    path = saved(tmp_path / "z.pt", TENSOR)
    path.write_bytes(path.read_bytes()[kept])
    with pytest.raises(EmbeddingError, match="is damaged or cut off; save it again"):
        read_embedding(path, letters)


def test_the_older_form_of_torch(letters: AttributedGraph, tmp_path: Path) -> None:
    torch.save(TENSOR, tmp_path / "z.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(EmbeddingError, match=r"in the form of torch before 1.6, a pickle.*save it again"):
        read_embedding(tmp_path / "z.pt", letters)
