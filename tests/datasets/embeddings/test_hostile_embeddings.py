"""Embedding files that cannot be used: each kind of failure once, one line, exit code 2, nothing unpickled or stored."""

import gzip
import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import uge_core as uge
from uge_core.cli.main import run

N = 200
IDS = [f"p{i}" for i in range(N)]
Z = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)


class Bomb:
    """Unpickled, it would leave a file behind."""

    def __reduce__(self):
        return Path.touch, (Path("exploded"),)


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def saved(content):
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def frame(**columns):
    pytest.importorskip("pyarrow")
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer, index=False)
    return buffer.getvalue()


def table(ids=IDS, z=Z, change=None):
    lines = [",".join([i, *map(repr, row)]) for i, row in zip(ids, z.tolist(), strict=True)]
    for row, line in (change or {}).items():
        lines[row] = line
    return ("id,a,b,c\n" + "\n".join(lines) + "\n").encode()


def vectors(header="200 3", ids=IDS, z=Z):
    rows = (f"{i} {' '.join(map(repr, row))}" for i, row in zip(ids, z.tolist(), strict=True))
    return "\n".join([header, *rows, ""]).encode()


def with_number(number, dtype=np.float64):
    z = Z.astype(dtype)
    z[[5, 9], 1] = number
    return z


def claiming(shape):
    """A numpy file whose header claims more numbers than follow."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (118 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)


def stepless():
    """A tensor of a terabyte over a storage of one number."""
    return saved(torch.zeros(1).expand(N, 2**30))


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


OBJECTS = np.array([[Bomb()] * 3] * N, dtype=object)
WIDE = np.zeros((N, 4097), dtype=np.int8)

REFUSED = {
    "empty file": ("z.npy", b"", "z.npy: is empty"),
    "wrong ending": (
        "z.pkl",
        pickle.dumps(Bomb()),
        "no file of embeddings by its ending; allowed: .npy, .npz, .csv[.gz], .tsv[.gz], .parquet, .txt[.gz]",
    ),
    "an ending that is not zipped": ("z.npy.gz", gzip.compress(npy(Z)), "no file of embeddings by its ending"),
    "text called npy": ("z.npy", table(), "z.npy: is no readable .npy file, or cut off"),
    "archive called npy": ("z.npy", npz(z=Z), "z.npy: is an .npz archive; rename it to .npz"),
    "pickle called npy": ("z.npy", pickle.dumps(Bomb()), "z.npy: is no readable .npy file"),
    "pickle called npz": ("z.npz", pickle.dumps(Bomb()), "z.npz: is no readable .npz file"),
    "pickle called pt": (
        "z.pt",
        pickle.dumps(Bomb()),
        "z.pt: is no file of torch.save; a plain pickle is never loaded",
    ),
    "npy called csv": ("z.csv", npy(Z), "z.csv: is not text (it holds zero bytes)"),
    "truncated npy": ("z.npy", npy(Z)[:-7], "z.npy: is no readable .npy file, or cut off"),
    "truncated header": ("z.npy", npy(Z)[:40], "z.npy: is no readable .npy file, or cut off"),
    "truncated npz": ("z.npz", npz(z=Z)[:-30], "z.npz: is no readable .npz file, or cut off"),
    "truncated pt": (
        "z.pt",
        saved(torch.tensor(Z))[:-30],
        "z.pt: is damaged or cut off; save it again with torch.save",
    ),
    "truncated gzip": ("z.csv.gz", gzip.compress(table())[:-30], "z.csv.gz: the gzip data are damaged or cut off"),
    "header that claims a petabyte": ("z.npy", claiming((10**12, 200)), "z.npy: is no readable .npy file, or cut off"),
    "npz member that claims a petabyte": (
        "z.npz",
        zipped(z=claiming((200, 10**12))),
        "z.npz: is no readable .npz file, or cut off",
    ),
    "objects in npy": ("z.npy", npy(OBJECTS, allow_pickle=True), "z.npy: holds Python objects, which are never loaded"),
    "objects in npz": ("z.npz", npz(z=OBJECTS), "z.npz: holds Python objects, which are never loaded"),
    "ids as objects in npz": (
        "z.npz",
        npz(embedding=Z, ids=np.array(IDS, dtype=object)),
        "z.npz: holds Python objects, which are never loaded",
    ),
    "code in pt": (
        "z.pt",
        saved({"z": torch.tensor(Z), "more": Bomb()}),
        "z.pt: holds objects beside tensors, which are never loaded",
    ),
    "one axis": ("z.npy", npy(Z[:, 0]), "z.npy: found an array of shape (200,); two axes are needed"),
    "three axes": ("z.npy", npy(Z[:, :, None]), "z.npy: found an array of shape (200, 3, 1); two axes are needed"),
    "complex numbers": ("z.npy", npy(Z.astype(complex)), "z.npy: holds complex128, real numbers are needed"),
    "texts in npy": ("z.npy", npy(Z.astype(str)), "z.npy: holds <U32, real numbers are needed"),
    "a record array": ("z.npy", npy(np.zeros((N, 1), dtype=[("a", "f4"), ("b", "f4")])), "real numbers are needed"),
    "a complex tensor": (
        "z.pt",
        saved(torch.tensor(Z.astype(np.complex64))),
        "z.pt: holds complex64, real numbers are needed",
    ),
    "a sparse tensor": ("z.pt", saved(torch.tensor(Z).to_sparse()), "z.pt: found a tensor that is not dense"),
    "a tensor of a terabyte": ("z.pt", stepless(), "z.pt: unpacks into more than"),
    "no tensor": ("z.pt", saved([1, 2]), "z.pt: found no tensor, but a list; expected a tensor of shape (N, d)"),
    "two tensors": ("z.pt", saved({"a": torch.tensor(Z), "b": torch.tensor(Z)}), "z.pt: found 2 tensors (a, b)"),
    "several arrays": (
        "z.npz",
        npz(a=Z, b=Z),
        "z.npz: found 2 arrays (a, b), one is needed; save the embedding alone, or call it 'embedding'",
    ),
    "an empty npz": ("z.npz", npz(), "z.npz: found 0 arrays (none)"),
    "ids of another length": ("z.npz", npz(embedding=Z, ids=np.array(IDS[:5])), "z.npz: 'ids' is <U2 of shape (5,)"),
    "text in a cell": (
        "z.csv",
        table(change={3: "p3,1,much,2"}),
        "z.csv: 1 cell of column 'b' without a number, first: 'much' in line 5",
    ),
    "text in the first row": ("z.csv", table(change={0: "p0,1,much,2"}).split(b"\n", 1)[1], "first: 'much' in line 1"),
    "text in a Parquet column": (
        "z.parquet",
        frame(id=IDS, a=["x"] * N),
        "z.parquet: 200 cells of column 'a' without a number, first: 'x' in row 1",
    ),
    "text in word2vec": (
        "z.txt",
        vectors().replace(b"p3 ", b"p3 much ", 1),
        "z.txt: line 5 has 4 words after the id, line 1 says 3 numbers",
    ),
    "text for a number in word2vec": ("z.txt", vectors()[:-5] + b"much\n", "much', which is no number"),
    "NaN": ("z.npy", npy(with_number(np.nan)), "z.npy: 2 rows with NaN or infinite numbers, first: node p5"),
    "infinity": ("z.npy", npy(with_number(-np.inf)), "z.npy: 2 rows with NaN or infinite numbers, first: node p5"),
    "NaN by id": (
        "z.npz",
        npz(z=with_number(np.nan)[::-1], ids=np.array(IDS[::-1])),
        "z.npz: 2 rows with NaN or infinite numbers, first: node p9",
    ),
    "NaN in text": (
        "z.csv",
        table(change={4: "p4,1,NaN,2"}),
        "z.csv: 1 row with NaN or infinite numbers, first: node p4",
    ),
    "NaN in word2vec": (
        "z.txt",
        vectors(z=with_number(np.nan)),
        "z.txt: 2 rows with NaN or infinite numbers, first: node p5",
    ),
    "float overflow": (
        "z.csv",
        table(change={4: "p4,1,1e999,2"}),
        "z.csv: 1 row with NaN or infinite numbers, first: node p4",
    ),
    "very large values": (
        "z.npy",
        npy(with_number(1e30)),
        "z.npy: 2 rows with numbers beyond 1e+18, first: node p5; scale all rows down",
    ),
    "beyond float32": ("z.npy", npy(with_number(1e300)), "z.npy: 2 rows with numbers beyond 1e+18, first: node p5"),
    "too few rows": (
        "z.npy",
        npy(Z[:-1]),
        "z.npy: 199 rows, but town has 200 nodes; row i must be the i-th node, or save the ids beside the numbers",
    ),
    "too many rows": ("z.pt", saved(torch.tensor(np.vstack([Z, Z]))), "z.pt: 400 rows, but town has 200 nodes"),
    "no rows": ("z.npy", npy(Z[:0]), "z.npy: 0 rows, but town has 200 nodes"),
    "a header alone": ("z.csv", b"id,a,b\n", "z.csv: there are no rows under the header"),
    "duplicate ids": (
        "z.csv",
        table(ids=["p1", *IDS[1:]]),
        "z.csv: 1 row with an id that stands further up, first: 'p1'; keep one row of each",
    ),
    "duplicate ids in word2vec": (
        "z.txt",
        vectors(ids=["p1", *IDS[1:]]),
        "z.txt: 1 row with an id that stands further up",
    ),
    "missing ids": (
        "z.csv",
        table(IDS[:-2], Z[:-2]),
        "z.csv: 2 of the 200 nodes of town have no row, first: 'p198', 'p199'; every node needs a vector",
    ),
    "unknown ids": (
        "z.csv",
        table([*IDS, "x", "y"], np.vstack([Z, Z[:2]])),
        "z.csv: 2 of the 202 ids of the file are no node, first: 'x', 'y'; take these rows out, or leave them out "
        "with --unknown-ids drop",
    ),
    "missing and unknown ids": (
        "z.csv",
        table(["x", *IDS[1:]]),
        "z.csv: 1 of the 200 nodes of town have no row, first: 'p0'; "
        "1 of the 200 ids of the file are no node, first: 'x'",
    ),
    "ids with blanks": ("z.npz", npz(z=Z, ids=np.array([f"{i} " for i in IDS])), "remove the blanks"),
    "an empty id": ("z.csv", table(ids=["", *IDS[1:]]), "z.csv: 1 row without an id, first: row 1"),
    "a row too long": ("z.csv", table(change={3: "p3,1,2,3,4"}), "z.csv: line 5 has more than the 4 fields expected"),
    "a row too short": (
        "z.csv",
        table(change={3: "p3,1,2"}),
        "z.csv: 1 cell of column 'c' without a number, first: nothing in line 5; every row needs 3 numbers",
    ),
    "a row too short in word2vec": (
        "z.txt",
        vectors().rsplit(b" ", 1)[0],
        "z.txt: line 201 has 2 words after the id, line 1 says 3 numbers",
    ),
    "a count that lies": ("z.txt", vectors("201 3"), "z.txt: line 1 says 201 vectors, 200 follow"),
    "a count of a petabyte": (
        "z.txt",
        vectors(f"{10**15} 3"),
        "z.txt: line 1 says 1,000,000,000,000,000 vectors, 200 follow",
    ),
    "dimensions that lie": ("z.txt", vectors("200 4"), "z.txt: line 2 has 3 words after the id, line 1 says 4"),
    "dimensions that lie the other way": (
        "z.txt",
        vectors("200 2"),
        "z.txt: line 2 has 3 words after the id, line 1 says 2",
    ),
    "no first line": ("z.txt", vectors().split(b"\n", 1)[1], "z.txt: line 1 holds 'p0 "),
    "word2vec in binary": (
        "z.txt",
        b"200 3\np0 " + Z.tobytes(),
        "z.txt: is not UTF-8 text; word2vec's binary form is not read",
    ),
    "a gzip bomb": (
        "z.csv.gz",
        gzip.compress(b"id,a\n" + b"p0,1\n" * 2**20),
        "z.csv.gz: unpacks into more than 1,048,576 bytes and was not read further",
    ),
    "a gzip bomb in word2vec": (
        "z.txt.gz",
        gzip.compress(b"9 1\n" + b"p0 1\n" * 2**20),
        "z.txt.gz: unpacks into more than 1,048,576 bytes",
    ),
    "a zip bomb": ("z.npz", zipped(z=npy(np.zeros((N, 2000)))), "z.npz: unpacks into more than 1,048,576 bytes"),
    "gzip without its ending": ("z.csv", gzip.compress(table()), "z.csv: is gzip data; rename it to z.csv.gz"),
    "no columns": ("z.npy", npy(Z[:, :0]), "z.npy: found 0 columns of numbers; allowed: 1 to 4,096"),
    "no columns in text": (
        "z.csv",
        b"id\n" + b"\n".join(i.encode() for i in IDS),
        "z.csv: found 0 columns beside the ids; allowed: 1 to 4,096",
    ),
    "no columns in word2vec": (
        "z.txt",
        vectors("200 0"),
        "z.txt: line 1 gives vectors of 0 numbers; allowed: 1 to 4,096",
    ),
    "too many columns": ("z.npy", npy(WIDE), "z.npy: found 4,097 columns of numbers; allowed: 1 to 4,096"),
    "too many columns in text": (
        "z.csv",
        b"id" + b",a" * 4097 + b"\n",
        "z.csv: found 4,097 columns beside the ids; allowed: 1 to 4,096",
    ),
    "too many columns in word2vec": ("z.txt", vectors("200 4097"), "z.txt: line 1 gives vectors of 4,097 numbers"),
    "Parquet without ids": (
        "z.parquet",
        frame(a=Z[:, 0], b=Z[:, 1]),
        "z.parquet: no column holds the ids of the nodes; found: a, b; write the ids in the first column",
    ),
    "Parquet with lists": ("z.parquet", frame(id=IDS, z=list(Z)), "z.parquet: column 'z' holds lists or records"),
    "text called Parquet": ("z.parquet", table(), "z.parquet: cannot be read as Parquet"),
}


def refused(capsys, path, data, *more):
    code = run(["audit", "--embeddings", str(path), "--data", str(data), *more])
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), (code, out, err)
    assert err.count("\n") == 1 and "Traceback" not in err, err
    return err


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_with_one_line(kind, town, tmp_path, monkeypatch, capsys):
    name, content, said = REFUSED[kind]
    monkeypatch.chdir(tmp_path)
    if "unpacks" in said and "1,048,576" in said:
        monkeypatch.setenv("UGE_MAX_UNPACKED", str(2**20))
    (tmp_path / name).write_bytes(content)
    assert said in refused(capsys, name, town, "--store", "store")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_places_that_hold_no_file(town, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "loop.npy").symlink_to("loop.npy")
    assert "folder.npy: is a folder; name the file" in refused(capsys, "folder.npy", town)
    assert "loop.npy: cannot be opened (Too many levels of symbolic links)" in refused(capsys, "loop.npy", town)
    assert "nowhere.npy: cannot be opened (No such file or directory)" in refused(capsys, "nowhere.npy", town)
    assert "cannot be opened" in refused(capsys, "x" * 300 + ".npy", town)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(town, tmp_path, capsys):
    path = tmp_path / "z.npy"
    path.write_bytes(npy(Z))
    path.chmod(0)
    assert "z.npy: cannot be opened (Permission denied)" in refused(capsys, path, town)


def test_ids_that_the_graph_has_twice(people, tmp_path):
    import dataclasses

    twice = dataclasses.replace(people, node_ids=np.array(["p0", *IDS[:-1]], dtype=object))
    (tmp_path / "z.csv").write_bytes(table())
    with pytest.raises(uge.EmbeddingError, match=r"town has 1 id that stand twice \(p0\), .*save it as .npy"):
        uge.read_embedding(tmp_path / "z.csv", twice)


@pytest.mark.parametrize("name", ["z.npy", "z.csv", "z.csv.gz", "z.npz", "z.pt", "z.parquet", "z.vec"])
def test_a_pipe_is_refused_at_once(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(uge.EmbeddingError, match=rf"^{name}: is a pipe, which is never read; name a plain file"):
        uge.read_embedding(tmp_path / name, uge.load("sample:town"))


def test_a_device_is_refused_at_once(tmp_path):
    (tmp_path / "z.csv").symlink_to("/dev/zero")
    with pytest.raises(uge.EmbeddingError, match=r"^z.csv: is a device, which is never read"):
        uge.read_embedding(tmp_path / "z.csv", uge.load("sample:town"))
