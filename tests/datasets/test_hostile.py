"""Hostile and odd inputs: each kind of failure once, with one message of one line and no traceback."""

import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from uge_core.cli.main import run
from uge_core.datasets import bounded, describe, load
from uge_core.datasets.bounded import LIMIT, SHARE, unpacked_limit
from uge_core.datasets.tables import MOST_COLUMNS
from uge_core.errors import ConfigError, GraphError, NotRecognised

NODES = "id,g\n1,a\n2,b\n3,a\n"
EDGES = "source,target\n1,2\n2,3\n"
CLIMBING = {"../evil.csv": b"x", "nodes.csv": NODES.encode(), "edges.csv": EDGES.encode()}
SIDED = "edges: edges.csv\nnodes: nodes.csv\nsides: {column: kind, users: u}\n"
ENTITY = (
    '<?xml version="1.0"?>\n<!DOCTYPE graphml [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n'
    '<graphml xmlns="urn:x"><graph><node id="&x;"/></graph></graphml>'
)
LAUGHS = (
    '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "'
    + "&a;" * 99
    + '"><!ENTITY c "'
    + "&b;" * 99
    + '">]><graphml>&c;</graphml>'
)


class Bomb:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def archive(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as z:
        for name, content in members.items():
            z.writestr(name, content)
    return buffer.getvalue()


def objects() -> bytes:
    buffer = io.BytesIO()
    data = np.array([Bomb("exploded")], dtype=object)
    np.savez(buffer, format=b"csr", shape=[3, 3], data=data, indices=[1], indptr=[0, 1, 1, 1])
    return buffer.getvalue()


def frame(**columns) -> bytes:
    pytest.importorskip("pyarrow")
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer)
    return buffer.getvalue()


def tarball(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as t:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def huge_array() -> bytes:
    """A numpy header that claims 10^15 numbers."""
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000000,), }"
    header += b" " * (118 - len(header)) + b"\n"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    return archive(**{"format.npy": member, "shape.npy": member, "data.npy": member})


REFUSED = {
    "UTF-16": (
        {"nodes.csv": NODES.encode("utf-16"), "edges.csv": EDGES},
        "nodes.csv: is UTF-16 text; save it as UTF-8",
    ),
    "UTF-16 without a mark": (
        {"nodes.csv": NODES.encode("utf-16-le"), "edges.csv": EDGES},
        "nodes.csv: is not text (it holds zero bytes)",
    ),
    "mixed encodings": (
        {"nodes.csv": "id,g\n1,Köln\n2,".encode() + b"Z\xfcrich\n3,a\n", "edges.csv": EDGES},
        "nodes.csv: line 3 is not UTF-8 text but other lines are, so that two encodings are mixed; save the whole "
        "file as UTF-8",
    ),
    "Latin-1": (
        {"nodes.csv": b"id,g\n1,a\n2,Z\xfcrich\n3,a\n", "edges.csv": EDGES},
        "nodes.csv: is not UTF-8 text (first: line 3); save",
    ),
    "no header": (
        {"nodes.csv": "x,a\ny,b\n", "edges.csv": "source,target\nx,y\n"},
        "nodes.csv: seems to have no header line: line 1 holds 'x', 'a'",
    ),
    "007 is not 7": (
        {"nodes.csv": "id,g\n007,a\n2,b\n3,a\n", "edges.csv": "source,target\n7,2\n2,3\n"},
        "edges.csv: 1 edge names a node that does not exist, first: line 2 ('7', '2')",
    ),
    "ids with one blank": (
        {"nodes.csv": "id,g\n1,a\n,b\n3,a\n", "edges.csv": EDGES},
        "nodes.csv: 1 row without an id in column 'id', first: line 3 (empty)",
    ),
    "NaN in Parquet ids": (
        {"nodes.parquet": frame(id=[1.0, np.nan, 3.0], g=["a", "b", "a"]), "edges.csv": EDGES},
        "nodes.parquet: 1 row without an id in column 'id'",
    ),
    "whole numbers with a gap in Parquet ids": (
        {"nodes.parquet": frame(id=pd.array([1, None, 3], dtype="Int64"), g=["a", "b", "a"]), "edges.csv": EDGES},
        "nodes.parquet: 1 row without an id in column 'id', first: line 2 (empty)",
    ),
    "whole numbers with a gap as ends in Parquet": (
        {"nodes.csv": NODES, "edges.parquet": frame(source=[1.0, 2.0], target=[2.0, np.nan])},
        "edges.parquet: 1 row with nothing in column 'target', first: line 2",
    ),
    "NaN in ids": (
        {"nodes.csv": NODES, "edges.csv": "source,target\n1,NaN\n2,3\n"},
        "edges.csv: 1 edge names a node that does not exist, first: line 2 ('1', 'NaN')",
    ),
    "a blank end": (
        {"nodes.csv": NODES, "edges.csv": "source,target\n1,2\n,3\n"},
        "edges.csv: 1 row with nothing in column 'source', first: line 3",
    ),
    "an edge inside one side": (
        {"dataset.yaml": SIDED, "nodes.csv": "id,kind\n1,u\n2,u\n3,t\n", "edges.csv": "source,target\n1,3\n1,2\n"},
        "edges.csv: 1 edge inside one side, first: line 3 ('1', '2')",
    ),
    "a zip that climbs": (
        {"graph.zip": archive(**CLIMBING)},
        "{folder}: no recognised layout. Found: graph.zip; graph.zip is an archive, which is not opened: unpack it "
        "into a folder of its own",
    ),
    "a tar.gz that climbs": (
        {"graph.TAR.gz": tarball(**CLIMBING)},
        "{folder}: no recognised layout. Found: graph.TAR.gz; graph.TAR.gz is an archive, which is not opened",
    ),
    "a zip called csv": (
        {"nodes.csv": archive(**CLIMBING), "edges.csv": EDGES},
        "nodes.csv: is a zip archive, as an Excel workbook is; rename it so that it ends in .xlsx if it is one",
    ),
    "an npz that climbs": (
        {"nodes.csv": NODES, "edges.npz": archive(**{"../evil.npy": b"x"})},
        "edges.npz: holds ../evil; expected a square matrix",
    ),
    "an npz that needs pickle": (
        {"nodes.csv": NODES, "edges.npz": objects()},
        "edges.npz: holds Python objects, which are never loaded; expected a square matrix",
    ),
    "an npz that claims too much": (
        {"nodes.csv": NODES, "edges.npz": huge_array()},
        "edges.npz: is not a readable .npz file",
    ),
    "a pickle named pt": (
        {"g.pt": pickle.dumps(Bomb("exploded"))},
        "g.pt: is no file of torch.save; a plain pickle is never loaded",
    ),
    "a pickle named npz": (
        {"nodes.csv": NODES, "edges.npz": pickle.dumps(Bomb("exploded"))},
        "edges.npz: is not a readable .npz file",
    ),
    "an external entity": (
        {"g.graphml": ENTITY},
        "g.graphml: holds a document type declaration (DTD), whose entities are never resolved",
    ),
    "an external entity in GEXF": ({"g.gexf": ENTITY}, "g.gexf: holds a document type declaration (DTD)"),
    "an external entity in UTF-16": (
        {"g.graphml": ENTITY.encode("utf-16")},
        "g.graphml: holds a document type declaration (DTD)",
    ),
    "entities that multiply": ({"g.graphml": LAUGHS}, "g.graphml: holds a document type declaration (DTD)"),
    "too many columns": (
        {"nodes.csv": "id," + ",".join(f"c{i}" for i in range(MOST_COLUMNS)) + "\n", "edges.csv": EDGES},
        "nodes.csv: line 1 has 20,001 fields; a table has at most 20,000 columns",
    ),
    "a cell of a megabyte": (
        {"nodes.csv": "id,g\n1," + "a" * 2**20 + "\n2,b\n3,a\n", "edges.csv": EDGES},
        "nodes.csv: cannot be read as a table (field larger than field limit (131072))",
    ),
    "a row of quotes": (
        {"nodes.csv": 'id,g\n1,"a\n2,b\n', "edges.csv": EDGES},
        "nodes.csv: line 2: a quotation mark is opened and never closed",
    ),
    "a folder as a file": (
        {"edges.csv": EDGES},
        "{folder}: nodes.csv[.gz] or nodes.tsv[.gz] or nodes.parquet or nodes.xlsx is missing",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_with_one_line(write, tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    files, text = REFUSED[kind]
    folder = write(files)
    before = sorted(p.name for p in tmp_path.rglob("*"))
    with pytest.raises(GraphError) as error:
        load(folder)
    assert str(error.value).startswith(text.format(folder=folder))
    assert run(["data", "inspect", str(folder)]) in (1, 2)
    shown = capsys.readouterr()
    lines = 2 if isinstance(error.value, NotRecognised) else 1  # the second is the command that says more
    assert shown.out == "" and shown.err.count("\n") == lines and "Traceback" not in shown.err
    assert sorted(p.name for p in tmp_path.rglob("*")) == before


READ = {
    "CRLF and semicolons": (
        {"nodes.csv": "id;g\r\n1;a\r\n2;b\r\n3;a\r\n", "edges.csv": "source;target\r\n1;2\r\n2;3\r\n"},
        ["1", "2", "3"],
        ("a", "b"),
    ),
    "quoted ids with commas": (
        {"nodes.csv": 'id,g\n"a,b",x\n"c,""d",y\n', "edges.csv": 'source,target\n"a,b","c,""d"\n'},
        ["a,b", 'c,"d'],
        ("x", "y"),
    ),
    "007 and 7": ({"nodes.csv": "id,g\n007,a\n7,b\n", "edges.csv": "source,target\n007,7\n"}, ["007", "7"], ("a", "b")),
    "NA and None": (
        {"nodes.csv": "id,g\nNA,None\nNone,NA\nnan,NA\n", "edges.csv": "source,target\nNA,None\nNone,nan\n"},
        ["NA", "None", "nan"],
        ("NA", "None"),
    ),
    "NaN": (
        {"nodes.csv": "id,g\nNaN,nan\nnull,NULL\n", "edges.csv": "source,target\nNaN,null\n"},
        ["NaN", "null"],
        ("NULL", "nan"),
    ),
    "whole numbers with a gap": (
        {"nodes.csv": "id,g\n1,5\n2,\n3,7\n", "edges.csv": EDGES},
        ["1", "2", "3"],
        ("5", "7"),
    ),
    "a formula": (
        {"nodes.csv": "id,g\n1,=1+1\n2,@SUM(A1)\n", "edges.csv": "source,target\n1,2\n"},
        ["1", "2"],
        ("=1+1", "@SUM(A1)"),
    ),
    "an attribute called id that is no id": (
        {"nodes.csv": "user_id,id,g\nx,p,a\ny,p,b\n", "edges.csv": "source,target\nx,y\n"},
        ["x", "y"],
        ("a", "b"),
    ),
    "an attribute called id": (
        {"nodes.csv": "node_id,ID,g\nx,1,a\ny,2,b\n", "edges.csv": "source,target\n1,2\n"},
        ["1", "2"],
        ("a", "b"),
    ),
    "markup": (
        {"nodes.csv": "id,g\n1,<script>\n2,\x07b\n", "edges.csv": "source,target\n1,2\n"},
        ["1", "2"],
        ("\x07b", "<script>"),
    ),
    "numbers beyond 64 bits": (
        {"nodes.csv": f"id,g\n{10**30},a\n{10**30 + 1},b\n", "edges.csv": f"source,target\n{10**30},{10**30 + 1}\n"},
        [str(10**30), str(10**30 + 1)],
        ("a", "b"),
    ),
}


@pytest.mark.parametrize("kind", READ)
def test_read_as_written(write, kind):
    files, ids, labels = READ[kind]
    graph = load(write(files))
    assert graph.ids(slice(None)) == ids
    assert graph.attribute("g").labels == labels
    assert "\x07" not in describe(graph)


def test_whole_numbers_with_a_gap_stay_whole(write):
    nodes = frame(id=[1.0, 2.0, 3.0], g=[5.0, np.nan, 7.0])
    graph = load(write({"nodes.parquet": nodes, "edges.csv": EDGES}))
    assert graph.ids([0, 1, 2]) == ["1", "2", "3"]
    assert graph.attribute("g").labels == ("5", "7")


@pytest.mark.parametrize("name", ["graph.zip", "graph.tgz", "graph.pkl", "graph.xls"])
def test_a_file_that_is_not_opened_is_named_with_the_reason(write, name):
    folder = write({name: archive(**CLIMBING)})
    with pytest.raises(GraphError, match=r"is (an archive|a pickle|a spreadsheet)[:,] .*write the graph as edges.csv"):
        load(folder / name)
    assert [p.name for p in folder.parent.rglob("*")] == ["made", name]


@pytest.mark.parametrize("name", ["edges.csv.gz", "nodes.csv.gz", "g.gml.gz"])
def test_a_gzip_bomb_is_not_unpacked(write, monkeypatch, name):
    row = b"1,2\n" if name.startswith("edges") else b"9,a\n"
    bomb = gzip.compress(b"source,target\n" + row * 2**20)
    assert len(bomb) < 2**15
    files = {"nodes.csv": NODES, "edges.csv": EDGES, name: bomb}
    files.pop(name.removesuffix(".gz"), None)
    text = f"{name}: unpacks into more than 1,048,576 bytes and was not read further; set UGE_MAX_UNPACKED"
    if name.startswith("g."):  # of which a sixth is allowed, as a graph takes that much more memory
        files = {name: bomb}
        text = f"{name}: has more than the 174,762 bytes that such a file may have; set UGE_MAX_UNPACKED"
    monkeypatch.setenv("UGE_MAX_UNPACKED", str(2**20))
    with pytest.raises(GraphError) as error:
        load(write(files))
    assert str(error.value).startswith(text)


def test_the_limit_can_be_set(monkeypatch):
    monkeypatch.delenv("UGE_MAX_UNPACKED", raising=False)
    monkeypatch.setattr(bounded, "_CONTAINER", ())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert unpacked_limit() == min(LIMIT, memory // SHARE)
    monkeypatch.setattr(os, "sysconf_names", {})
    assert unpacked_limit() == LIMIT == 4 * 2**30
    monkeypatch.setenv("UGE_MAX_UNPACKED", "7")
    assert unpacked_limit() == 7
    for wrong in ("-1", "0", "4G", "²"):
        monkeypatch.setenv("UGE_MAX_UNPACKED", wrong)
        with pytest.raises(ConfigError, match=r"UGE_MAX_UNPACKED: found .*; allowed: a whole number of bytes above 0"):
            unpacked_limit()


@pytest.mark.parametrize(("said", "allowed"), [("536870912\n", 2**25), ("max\n", None), (f"{2**63 - 4096}\n", None)])
def test_a_container_has_less_memory_than_its_machine(monkeypatch, tmp_path, said, allowed):
    monkeypatch.delenv("UGE_MAX_UNPACKED", raising=False)
    (tmp_path / "memory.max").write_text(said)
    monkeypatch.setattr(bounded, "_CONTAINER", (tmp_path / "none", tmp_path / "memory.max"))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert unpacked_limit() == (allowed or min(LIMIT, memory // SHARE))


def test_an_archive_that_unpacks_into_too_much(write, monkeypatch):
    monkeypatch.setenv("UGE_MAX_UNPACKED", str(2**20))
    files = {"nodes.csv": NODES, "edges.npz": archive(**{"data.npy": bytes(2**21)})}
    with pytest.raises(GraphError, match=r"edges.npz: unpacks into more than 1,048,576 bytes"):
        load(write(files))


def repeated(value, count, **options) -> bytes:
    """A Parquet file in which one value stands in all rows."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    columns = {"id": [str(i) for i in range(count)], "text": options.pop("make", lambda v, n: [v] * n)(value, count)}
    pq.write_table(pa.table(columns), buffer, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"make": lambda value, count: pd.Categorical([value] * count)},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
        {"row_group_size": 100},
        {"data_page_version": "2.0", "data_page_size": 100},
    ],
)
@pytest.mark.parametrize("value", ["x" * 20_000, b"x" * 20_000])
def test_equal_texts_of_parquet_count_each(write, monkeypatch, value, options):
    nodes = repeated(value, 1000, **options)
    assert len(nodes) < 2**18
    monkeypatch.setenv("UGE_MAX_UNPACKED", str(2**23))
    with pytest.raises(GraphError, match=r"^nodes.parquet: unpacks into more than 8,388,608 bytes .*UGE_MAX_UNPACKED"):
        load(write({"nodes.parquet": nodes, "edges.csv": EDGES}))
    monkeypatch.setenv("UGE_MAX_UNPACKED", str(2**28))
    assert load(write({"nodes.parquet": nodes, "edges.csv": EDGES})).num_nodes == 1000


def test_metadata_of_parquet_that_is_no_json(write):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    table = pa.table({"id": ["1", "2", "3"], "g": ["a", "b", "a"]}).replace_schema_metadata({"pandas": "{"})
    pq.write_table(table, buffer)
    assert load(write({"nodes.parquet": buffer.getvalue(), "edges.csv": EDGES})).num_nodes == 3


LINKED = {
    "nodes.csv": {"edges.csv": EDGES},
    "edges.csv": {"nodes.csv": NODES},
    "g.json": {},
    "g.graphml": {},
    "g_gender.clu": {"g.net": "*Vertices 2\n*Edges\n1 2\n"},
    "ent.g.person.gender": {"out.g": "% sym unweighted\n1 2\n2 3\n"},
    "dataset.yaml": {"e.csv": EDGES, "n.csv": NODES},
    "n.csv": {"dataset.yaml": "edges: e.csv\nnodes: n.csv\n", "e.csv": EDGES},
}


@pytest.mark.parametrize("name", LINKED)
def test_a_link_out_of_the_folder_is_refused(write, tmp_path, name):
    folder = write(LINKED[name])
    theirs = '{"nodes":[{"id":"secret"}],"links":[]}' if name == "g.json" else "secret,words\n1,2\n"
    (tmp_path / "theirs").write_text(theirs)
    (folder / name).symlink_to(tmp_path / "theirs")
    text = "is a link out of its folder, to .*theirs, and was not read; copy that file|a file in the folder of dataset.yaml"
    with pytest.raises(GraphError, match=text) as error:
        load(folder)
    assert "secret" not in str(error.value)


def test_a_link_within_the_folder_is_read(write):
    folder = write({"2024.data": NODES, "edges.csv": EDGES})
    (folder / "nodes.csv").symlink_to("2024.data")
    assert load(folder).num_nodes == 3


def test_what_is_no_file_is_named(write):
    folder = write({"edges.csv": EDGES})
    os.mkfifo(folder / "nodes.csv")
    with pytest.raises(GraphError, match=r"is missing.*; nodes.csv is a pipe, which is never read"):
        load(folder)
    with pytest.raises(GraphError, match=r"nodes.csv: is a pipe, which is never read"):
        load(folder / "nodes.csv")


TURNED = "\u202eg\u2066\x1b[2J"


@pytest.mark.parametrize(
    "files",
    [
        {"nodes.csv": f"id,g\n{TURNED},a\n{TURNED},b\n", "edges.csv": EDGES},
        {"nodes.csv": NODES, "edges.csv": f"source,target\n1,{TURNED}\n"},
        {"nodes.csv": f"id,{TURNED},{TURNED}\n", "edges.csv": EDGES},
        {f"{TURNED}.csv": "a\n"},
        {"dataset.yaml": f'"{TURNED[:3]}": 1\n'},
    ],
)
def test_an_error_shows_what_turns_text_round(write, capsys, files):
    folder = write(files)
    with pytest.raises(GraphError) as error:
        load(folder)
    assert "\\u202eg" in str(error.value) and "\u202e" not in str(error.value) and "\x1b" not in str(error.value)
    run(["data", "inspect", str(folder)])
    assert "\\u202eg" in (err := capsys.readouterr().err) and "\u202e" not in err


def test_a_graph_shows_what_turns_text_round(write, capsys):
    folder = write({"nodes.csv": f"id,{TURNED}\n1,{TURNED}\n2,b\n3,b\n", "edges.csv": EDGES + "2,3\n"})
    for command in ("inspect", "describe"):
        assert run(["data", command, str(folder)]) == 0
        out = capsys.readouterr().out
        assert "u202e" in out.lower() and "\u202e" not in out and "\x1b" not in out
    assert not any("\u202e" in m.text + "".join(m.examples) for m in load(folder).messages)


def test_a_cell_of_two_megabytes_is_shown_short(write):
    folder = write({"nodes.csv": NODES + f"4,{'x' * 2**21}\n", "edges.csv": EDGES})
    start = time.process_time()
    text = describe(load(folder))
    assert len(text) < 10_000 and "xxx...(2,097,152 characters)" in " ".join(text.split())
    assert not time.process_time() - start > 5


@pytest.mark.slow
def test_hostile_files_of_every_kind():
    """A few trials of the campaign; `make campaign` runs them all."""
    pytest.importorskip("pyarrow")
    done = subprocess.run(
        [sys.executable, "-m", "tests.campaigns", "hostile", "--quick", "--seed", "3"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stdout


LOADED = """
import json, sys
from uge_core.datasets import load
from uge_core.machine import peak_memory  # getrusage's peak of a child starts at its parent's
from uge_core.errors import GraphError, NotRecognised
try:
    g = load(sys.argv[1])
    out = {"nodes": g.num_nodes, "edges": g.num_edges, "attributes": [a.name for a in g.attributes],
           "codes": [m.code for m in g.messages]}
except GraphError as e:
    out = {"error": str(e)}
print(json.dumps(out | {"peak": peak_memory()}))
"""


def loaded(folder) -> dict:
    """What a process of its own makes of `folder`, and the bytes of memory it took at most."""
    done = subprocess.run([sys.executable, "-c", LOADED, str(folder)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_gzip_bomb_fills_no_memory(write):
    member = gzip.compress(b"9,a\n" * 2**18)  # a gzip file may be several, one after the other
    whole = unpacked_limit() // 2**20 + 1
    found = loaded(write({"nodes.csv.gz": gzip.compress(b"id,g\n") + member * whole, "edges.csv": EDGES}))
    print(f"{len(member) * whole / 1e6:.0f} MB that unpack into {whole} MiB: peak memory {found['peak'] / 1e6:.0f} MB")
    assert found["error"].startswith(f"nodes.csv.gz: unpacks into more than {unpacked_limit():,} bytes")
    assert not found["peak"] >= 500e6


@pytest.mark.slow
@pytest.mark.parametrize("millions", [8, pytest.param(20, marks=pytest.mark.acceptance)])
def test_millions_of_empty_lines_fill_no_memory(write, millions):
    # The parser alone would need eighty bytes for each.
    nodes = gzip.compress(NODES.encode()) + gzip.compress(b"\n" * 2**20) * millions + gzip.compress(b"4,b\n")
    found = loaded(write({"nodes.csv.gz": nodes, "edges.csv": "source,target\n1,2\n3,4\n"}))
    print(f"peak memory {found['peak'] / 1e6:.0f} MB")
    assert (found["nodes"], found["edges"], found["attributes"]) == (4, 2, ["g"])
    assert not found["peak"] >= 500e6


@pytest.mark.slow
@pytest.mark.parametrize("n", [1_000_000, pytest.param(10_000_000, marks=pytest.mark.acceptance)])
def test_millions_of_different_values_take_few_bytes_each(tmp_path, n):
    with (tmp_path / "nodes.csv").open("w") as f:
        f.write("id,name,g\n")
        for start in range(0, n, n // 10):
            f.write("".join(f"{i},name {i},{'ab'[i % 2]}\n" for i in range(start, start + n // 10)))
    ends = np.random.default_rng(0).integers(0, n, (100_000, 2))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in ends))
    start = time.perf_counter()
    found = loaded(tmp_path)
    print(f"{time.perf_counter() - start:.0f} s, peak memory {found['peak'] / 1e6:.0f} MB")
    assert (found["nodes"], found["attributes"]) == (n, ["g"])
    assert found["codes"] == ["identifier-column", "nodes-without-edges"]
    assert not found["peak"] >= 0.3e9 + 270 * n


@pytest.mark.slow
def test_a_million_different_values(write):
    n = 1_000_000
    nodes = "id,name,row,g\n" + "".join(f"{i},name {i},{i},{'ab'[i % 2]}\n" for i in range(n))
    folder = write(
        {"nodes.csv": nodes, "edges.csv": "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(n - 1))}
    )
    graph = load(folder)
    assert [a.name for a in graph.attributes] == ["g"]
    (message,) = [m for m in graph.messages if m.code == "identifier-column"]
    assert message.examples == ("name", "row")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3_000_000, pytest.param(14_000_000, marks=pytest.mark.acceptance)])
def test_a_large_csv_takes_a_few_times_its_size(tmp_path, rows):
    n = 20_000
    (tmp_path / "nodes.csv").write_text("id,g\n" + "".join(f"person{i:05},{'ab'[i % 2]}\n" for i in range(n)))
    rng = np.random.default_rng(0)
    ids = np.array([f"person{i:05}" for i in range(n)], dtype=object)
    with (tmp_path / "edges.csv").open("w") as f:
        f.write("source,target\n")
        for _ in range(rows // 1_000_000):
            a, b = ids[rng.integers(0, n, 1_000_000)], ids[rng.integers(0, n, 1_000_000)]
            f.write("\n".join(map(",".join, zip(a, b, strict=True))) + "\n")
    size = (tmp_path / "edges.csv").stat().st_size
    assert size > 21 * rows
    found = loaded(tmp_path)
    print(f"{size / 1e6:.0f} MB, {found['edges']:,} edges, peak memory {found['peak'] / 1e6:.0f} MB")
    assert found["edges"] > 0.93 * rows
    assert not found["peak"] >= 0.2e9 + 7.3 * size


def test_a_column_that_stands_twice_in_parquet(write):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    table = pa.Table.from_arrays([pa.array(["1", "2"]), pa.array(["2", "1"])], names=["id", "id"])
    pq.write_table(table, buffer)
    with pytest.raises(GraphError, match=r"^nodes.parquet: column 'id' stands twice; rename one of the two$"):
        load(write({"nodes.parquet": buffer.getvalue(), "edges.csv": EDGES}))
