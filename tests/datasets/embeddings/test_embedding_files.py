"""Every format gives back the numbers in the graph's order, and what we export is read back."""

import csv
import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import uge_core as uge
from uge_core.cli.main import run
from uge_core.datasets.embeddings import FORMATS, read_embedding
from uge_core.errors import ConfigError, EmbeddingError
from uge_core.runs.external import add_external

DOCS = (Path(__file__).resolve().parents[3] / "docs" / "embeddings.md").read_text(encoding="utf-8")


def text_table(path, ids, z, *, sep=",", header=True, quote=csv.QUOTE_MINIMAL):
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt", newline="") as file:
        writer = csv.writer(file, delimiter=sep, quoting=quote)
        if header:
            writer.writerow(header if isinstance(header, list) else ["id", *(f"z{i}" for i in range(z.shape[1]))])
        writer.writerows([name, *map(repr, row)] for name, row in zip(ids, z.tolist(), strict=True))


def word2vec(path, ids, z):
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt") as file:
        file.write(f"{len(z)} {z.shape[1]}\n")
        file.writelines(f"{name} {' '.join(map(repr, row))}\n" for name, row in zip(ids, z.tolist(), strict=True))


def parquet(path, ids, z, name="id"):
    pytest.importorskip("pyarrow")
    pd.DataFrame({name: ids} | {f"z{i}": z[:, i] for i in range(z.shape[1])}).to_parquet(path, index=False)


IN_ROWS = {
    "npy": lambda f, ids, z: np.save(f / "z.npy", z),
    "npy in Fortran's order": lambda f, ids, z: np.save(f / "z.npy", np.asfortranarray(z)),
    "npy of float64": lambda f, ids, z: np.save(f / "z.npy", z.astype(np.float64)),
    "npz of one array": lambda f, ids, z: np.savez(f / "z.npz", z),
    "npz by name": lambda f, ids, z: np.savez_compressed(f / "z.npz", other=np.ones(3), embedding=z),
    "tensor": lambda f, ids, z: torch.save(torch.tensor(z), f / "z.pt"),
    "parameter": lambda f, ids, z: torch.save(torch.nn.Parameter(torch.tensor(z)), f / "z.pt"),
    "state": lambda f, ids, z: torch.save(torch.nn.Embedding.from_pretrained(torch.tensor(z)).state_dict(), f / "z.pt"),
    "tensors of a module": lambda f, ids, z: torch.save({"w": torch.ones(3, 3), "z": torch.tensor(z)}, f / "z.pth"),
}
BY_ID = {
    "csv": lambda f, ids, z: text_table(f / "z.csv", ids, z),
    "csv without a header": lambda f, ids, z: text_table(f / "z.csv", ids, z, header=False),
    "csv of pandas": lambda f, ids, z: text_table(f / "z.csv", ids, z, header=["", *map(str, range(z.shape[1]))]),
    "csv with numbered columns": lambda f, ids, z: text_table(
        f / "z.csv", ids, z, header=["who", *map(str, range(z.shape[1]))]
    ),
    "csv in quotes": lambda f, ids, z: text_table(f / "z.csv", ids, z, quote=csv.QUOTE_ALL, header=False),
    "semicolons": lambda f, ids, z: text_table(f / "z.csv", ids, z, sep=";"),
    "tsv": lambda f, ids, z: text_table(f / "z.tsv", ids, z, sep="\t"),
    "csv.gz": lambda f, ids, z: text_table(f / "z.csv.gz", ids, z),
    "parquet": lambda f, ids, z: parquet(f / "z.parquet", ids, z),
    "parquet with another name": lambda f, ids, z: parquet(f / "z.parquet", ids, z, "person"),
    "word2vec": lambda f, ids, z: word2vec(f / "z.txt", ids, z),
    "word2vec.gz": lambda f, ids, z: word2vec(f / "z.emb.gz", ids, z),
    "npz with ids": lambda f, ids, z: np.savez(f / "z.npz", embedding=z, ids=np.array(ids)),
    "npz with ids as bytes": lambda f, ids, z: np.savez(f / "z.npz", z=z, ids=np.array([i.encode() for i in ids])),
}


def drawn(graph, dim=3):
    return np.random.default_rng(1).normal(size=(graph.num_nodes, dim)).astype(np.float32)


@pytest.mark.parametrize("kind", IN_ROWS)
@pytest.mark.parametrize("bipartite", [False, True])
def test_rows_follow_the_node_table(kind, bipartite, people, both_sides, tmp_path):
    graph = uge.load(both_sides) if bipartite else people
    z = drawn(graph)
    IN_ROWS[kind](tmp_path, graph.ids(slice(None)), z)
    (path,) = tmp_path.iterdir()
    found = uge.read_embedding(path, graph)
    assert found.dtype == np.float32 and np.array_equal(found, z)


@pytest.mark.parametrize("kind", BY_ID)
@pytest.mark.parametrize("bipartite", [False, True])
def test_ids_in_any_order(kind, bipartite, people, both_sides, tmp_path):
    graph = uge.load(both_sides) if bipartite else people
    z = drawn(graph)
    ids = graph.ids(slice(None))
    order = np.random.default_rng(2).permutation(len(ids))
    BY_ID[kind](tmp_path, [ids[i] for i in order], z[order])
    (path,) = tmp_path.iterdir()
    assert np.array_equal(uge.read_embedding(path, graph), z)


def test_both_sides_have_ids_of_their_own(both_sides):
    ids = uge.load(both_sides).ids(slice(None))
    assert "user:1" in ids and "item:1" in ids and len(set(ids)) == len(ids) == 70


@pytest.mark.slow
@pytest.mark.parametrize("bipartite", [False, True])
def test_every_export_is_read_back(bipartite, town, both_sides, tmp_path, capsys):
    folder = both_sides if bipartite else renamed(town, tmp_path / "formulas")
    graph, store = uge.load(folder), uge.RunStore(tmp_path / "store")
    stored = uge.train(
        graph, store=store, epochs=2, device="cpu", backbone="mf" if bipartite else "gcn", source={"spec": str(folder)}
    )
    out = tmp_path / "out"
    assert run(["runs", "export", stored.id, "--store", str(store.root), "--out", str(out)]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    read = [p for p in written if p.name != "ids.json"]
    assert {p.suffix for p in read} == {".npy", ".csv"}
    for path in read:
        assert np.array_equal(uge.read_embedding(path, graph), stored.embedding)


def renamed(town, target):
    """The graph with ids that a spreadsheet would take for formulas."""
    target.mkdir()
    for name in ("edges.csv", "nodes.csv"):
        text = (town / name).read_text()
        (target / name).write_text(re.sub(r"\bp(\d)\b", lambda m: "=+-@"[int(m[1]) % 4] + m[0], text))
    return target


def test_one_number_a_node(people, tmp_path):
    z = drawn(people, 1)
    for header in (True, False):
        text_table(tmp_path / "z.csv", people.ids(slice(None)), z, header=header)
        assert np.array_equal(uge.read_embedding(tmp_path / "z.csv", people), z)


def test_ids_that_are_whole_numbers(both_sides, tmp_path):
    """Parquet keeps 7 a number; ids stay text, and 7.0 in text is not 7."""
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    (tmp_path / "g" / "nodes.csv").write_text("id,city\n1,A\n2,B\n3,A\n")
    graph = uge.load(tmp_path / "g")
    z = drawn(graph, 2)
    parquet(tmp_path / "z.parquet", np.array([3, 1, 2]), z[[2, 0, 1]])
    assert np.array_equal(uge.read_embedding(tmp_path / "z.parquet", graph), z)
    text_table(tmp_path / "z.csv", ["3.0", "1.0", "2.0"], z)
    with pytest.raises(EmbeddingError, match=r"3 ids would match as numbers \('3.0'\)"):
        uge.read_embedding(tmp_path / "z.csv", graph)


def test_ids_with_blanks_in_word2vec(tmp_path):
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "edges.csv").write_text("source,target\nAnn Lee,Bo\nBo,7 up\n")
    (tmp_path / "g" / "nodes.csv").write_text("id,city\nAnn Lee,A\nBo,B\n7 up,A\n")
    graph = uge.load(tmp_path / "g")
    z = drawn(graph, 2)
    word2vec(tmp_path / "z.vec", graph.ids(slice(None)), z)
    assert np.array_equal(uge.read_embedding(tmp_path / "z.vec", graph), z)


def test_bare_ids_on_a_graph_of_two_sides(both_sides, tmp_path):
    graph = uge.load(both_sides)
    text_table(tmp_path / "z.csv", [str(i) for i in range(1, 41)], drawn(graph)[:40])
    with pytest.raises(EmbeddingError, match=r"ids of users and items carry their side in this graph \('user:1'\)"):
        uge.read_embedding(tmp_path / "z.csv", graph)


def test_rows_of_no_node_are_dropped_on_request(people, tmp_path):
    z = drawn(people)
    text_table(tmp_path / "z.csv", [*people.ids(slice(None)), "ghost"], np.vstack([z, z[:1]]))
    notes = []
    found = uge.read_embedding(tmp_path / "z.csv", people, unknown_ids="drop", on_note=notes.append)
    assert np.array_equal(found, z)
    assert notes == ["z.csv: 1 row left out, as town has no such node, first: 'ghost'"]
    with pytest.raises(ConfigError, match="allowed: refuse, drop"):
        uge.read_embedding(tmp_path / "z.csv", people, unknown_ids="keep")


def test_the_same_numbers_are_the_same_run(people, tmp_path):
    z = drawn(people)
    np.save(tmp_path / "z.npy", z)
    text_table(tmp_path / "z.csv", people.ids(slice(None)), z)
    store = uge.RunStore(tmp_path / "store")
    ids = [add_external(uge.read_embedding(tmp_path / n, people), people, store, file=n).id for n in ("z.npy", "z.csv")]
    other = add_external(z, people, store, file="z.npy", score="cosine").id
    assert ids[0] == ids[1] != other and len(store.list()) == 2


def test_docs_list_the_formats():
    section = DOCS.split("\n## Formats\n", 1)[1].split("\n## ", 1)[0]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    listed = {row[0]: row[1:] for row in rows[2:]}
    for form in FORMATS:
        endings, how = listed[form.name]
        assert endings == ", ".join(f"`{e}{'[.gz]' * form.zipped}`" for e in form.endings)
        assert how == form.rows
    assert len(listed) == len(FORMATS)


def test_rows_without_ids_beside_ids_that_count_in_another_order(tmp_path):
    """Row i may be node i, or the i-th row of the table: asked for, never guessed."""
    ids = np.random.default_rng(0).permutation(12)
    edges = np.array([[i, (i + 1) % 12] for i in range(12)])
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in edges))
    (tmp_path / "nodes.csv").write_text("id,g\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in ids))
    graph = uge.load(tmp_path)
    z = np.arange(24, dtype=np.float32).reshape(12, 2)
    np.save(tmp_path / "z.npy", z)
    with pytest.raises(EmbeddingError, match=r"in another order.*--rows id or --rows order"):
        read_embedding(tmp_path / "z.npy", graph)
    np.testing.assert_array_equal(read_embedding(tmp_path / "z.npy", graph, rows="order"), z)
    np.testing.assert_array_equal(read_embedding(tmp_path / "z.npy", graph, rows="id"), z[ids])
    with pytest.raises(ConfigError, match="allowed: order, id"):
        read_embedding(tmp_path / "z.npy", graph, rows="ids")
    (tmp_path / "z.csv").write_text("id,a\n" + "".join(f"{i},{i}.5\n" for i in range(12)))
    assert read_embedding(tmp_path / "z.csv", graph)[:, 0].tolist() == [i + 0.5 for i in ids]
    with pytest.raises(EmbeddingError, match="leave --rows out"):
        read_embedding(tmp_path / "z.csv", graph, rows="id")


def test_rows_by_id_need_ids_that_count(town_of_letters, tmp_path):
    graph = town_of_letters
    np.save(tmp_path / "z.npy", np.ones((graph.num_nodes, 2)))
    with pytest.raises(EmbeddingError, match="needs nodes whose ids are 0 to"):
        read_embedding(tmp_path / "z.npy", graph, rows="id")


@pytest.fixture
def town_of_letters(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    (tmp_path / "nodes.csv").write_text("id,g\na,x\nb,y\nc,x\n")
    return uge.load(tmp_path)
