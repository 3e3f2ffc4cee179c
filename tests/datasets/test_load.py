"""Which folder is which: recognition, addressing, half-there layouts, files that are not what they say."""

import gzip
import io
import pickle
from pathlib import Path

import numpy as np
import pytest

from uge_core.datasets import load
from uge_core.datasets.layouts import all_layouts
from uge_core.errors import DatasetMissing, GraphError, NotRecognised, TooManyGroups

NODES = "id,city\n1,A\n2,B\n3,A\n"
EDGES = "source,target\n1,2\n2,3\n"


def npy(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_missing_folder(tmp_path):
    with pytest.raises(DatasetMissing, match=r"nowhere: no such folder or file; give a folder"):
        load(tmp_path / "nowhere")


def test_a_path_too_long_is_a_plain_error():
    for spec in ("x" * 5000, f"{'x' * 5000}:a", "b" * 300, Path("x" * 5000)):
        with pytest.raises(DatasetMissing, match=r"cannot be opened \(File name too long\); give a folder") as error:
            load(spec)
        assert len(str(error.value)) < 320


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("", "'': names no folder; give a folder in a recognised layout, such as . for the current one"),
        ("  ", "'  ': names no folder"),
        (":nodes", ":nodes: names no folder"),
        ("a\0b", r"'a\x00b': holds a zero byte and can be no path"),
        ("a:b\0", r"'a:b\x00': holds a zero byte"),
        ("a\nb\x1b", r"'a\nb\x1b': no such folder or file"),
        ("~nobody-of-this-name/x", "~nobody-of-this-name/x: cannot be opened (Could not determine home directory)"),
    ],
)
def test_a_path_that_cannot_be_is_a_plain_error(write, monkeypatch, spec, text):
    monkeypatch.chdir(write({"edges.csv": EDGES, "nodes.csv": NODES}))
    with pytest.raises(DatasetMissing) as error:
        load(spec)
    assert str(error.value).startswith(text)
    assert load(".").num_edges == 2


def test_an_unrecognised_folder_is_two_lines_that_end_with_a_command(write):
    folder = write({"friends.xls": b"PK", "graph.dot": "graph {}"})
    with pytest.raises(NotRecognised) as error:
        load(folder)
    found, command = str(error.value).split("\n")
    assert found == (
        f"{folder}: no recognised layout. Found: friends.xls, graph.dot; friends.xls is a spreadsheet: save it "
        "as .xlsx, or each sheet as CSV UTF-8"
    )
    assert command.endswith(f"says: uge data describe {folder}") and "docs/data.md" in command
    assert not any(layout.summary in found + command.replace("dataset.yaml", "") for layout in all_layouts())


def test_empty_folder(write):
    with pytest.raises(GraphError, match=r"no recognised layout. Found: no files"):
        load(write({}))


@pytest.mark.parametrize(
    ("name", "reason"),
    [("g.zip", "is an archive, which is not opened"), ("g.pkl", "is a pickle, which is never loaded")],
)
def test_files_that_are_never_opened_say_so(write, name, reason):
    with pytest.raises(GraphError, match=f"{reason}.*write the graph as edges.csv"):
        load(write({name: "x"}) / name)
    with pytest.raises(NotRecognised, match=reason):
        load(write({name: "x"}))


def test_an_unknown_sample_lists_those_there_are():
    with pytest.raises(DatasetMissing, match=r"sample:twon: unknown sample 'twon'; allowed: .*town"):
        load("sample:twon")


def test_one_of_its_files_stands_for_the_graph(write):
    folder = write({"edges.csv": EDGES, "nodes.csv.gz": NODES, "notes.txt": "x"})
    assert load(folder / "edges.csv").num_edges == 2
    assert load(folder / "nodes.csv.gz").num_nodes == 3
    with pytest.raises(NotRecognised, match=r"notes.txt: not a file of a recognised layout\n.*uge data describe"):
        load(folder / "notes.txt")


def test_folder_with_several_graphs(write):
    ring = np.array([[0, 1, 2], [1, 2, 0]])
    folder = write(
        {
            "a_edges.npy": npy(ring),
            "a_sens.npy": npy([0, 1, 1]),
            "b_edges.npy": npy(ring[:, :2]),
            "b_sens.npy": npy([0, 1, 1]),
            "c_sens.npy": npy([0, 1]),
        }
    )
    with pytest.raises(GraphError) as error:
        load(folder)
    assert f"2 graphs in one folder; name one of: {folder}:a, {folder}:b" in str(error.value)
    assert load(f"{folder}:a").num_edges == 3
    assert load(f"{folder}:b").name == "b"
    assert load(folder / "b_sens.npy").num_edges == 2
    with pytest.raises(GraphError, match="unknown graph 'd'; allowed: a, b"):
        load(f"{folder}:d")
    with pytest.raises(
        DatasetMissing, match=r"c_edges.npy is missing; it must hold an integer array of shape \(2, E\)"
    ):
        load(f"{folder}:c")


def test_the_only_graph_is_called_like_its_folder(write):
    folder = write({"x_edges.csv": "a,b\n0,1\n", "x_target.csv": "id,target\n0,a\n1,b\n"})
    assert load(folder).name == "made"
    assert load(f"{folder}:x").name == "x"


def test_a_complete_layout_wins_over_half_of_an_earlier_one(write):
    folder = write({"edges.csv": EDGES, "nodes.csv": NODES, "users.dat": "1::F::1::1::1\n"})
    assert load(folder).layout == "tables"


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (
            ("p_node_attribute.csv", "p_node_label.csv"),
            "p_edge.csv[.gz] is missing; it must hold the header Src,Dst,Weight",
        ),
        (("p_edge.csv.gz",), "p_node_attribute.csv[.gz] is missing; it must hold a header with the attributes' names"),
        (("region_job_2.csv",), "region_job_2_relationship.txt[.gz] is missing; it must hold two user ids a line"),
        (("users.dat", "movies.dat"), "ratings.dat[.gz] or user_movie_pairs.csv[.gz] is missing"),
        (("u.data", "u.user"), "u.item[.gz] is missing; it must hold lines id|title"),
        (("lastfm_edges.csv",), "lastfm_target.csv[.gz] is missing; it must hold the header id,target"),
        (("german_edges.txt.gz",), "german.csv[.gz] is missing; it must hold a header and one row per node"),
        (
            ("edges.csv",),
            "nodes.csv[.gz] or nodes.tsv[.gz] or nodes.parquet or nodes.xlsx is missing; it must hold a header with the column id",
        ),
    ],
)
def test_half_a_layout_names_what_is_missing(write, files, text):
    with pytest.raises(DatasetMissing) as error:
        load(write(dict.fromkeys(files, "a,b\n1,2\n")))
    assert text in str(error.value)
    assert "Put the missing file into this folder" in str(error.value)
    assert f"layout: {', '.join(sorted(files))}" in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("nodes.csv", b"\x00\x01\x02\x03", "nodes.csv: is not text (it holds zero bytes)"),
        ("nodes.csv", b"", "nodes.csv: is empty"),
        ("nodes.csv", b"id,city\n", "nodes.csv: there are no rows under the header"),
        ("nodes.csv", b"id,city\n1,Z\xfcrich\n2,B\n3,B\n", "nodes.csv: is not UTF-8 text"),
        ("nodes.csv", b"id,ort\xfc\n1,A\n", "nodes.csv: is not UTF-8 text"),
        ("nodes.csv", gzip.compress(NODES.encode(), mtime=0), "nodes.csv: is gzip data; rename it to nodes.csv.gz"),
        ("nodes.csv.gz", NODES.encode(), "nodes.csv.gz: is not gzip data although its name ends in .gz"),
        (
            "nodes.csv.gz",
            gzip.compress(NODES.encode(), mtime=0)[:-12],
            "nodes.csv.gz: the gzip data are damaged or cut off",
        ),
        (
            "nodes.csv.gz",
            gzip.compress(NODES.encode(), mtime=0)[:12] + b"x" * 20,
            "nodes.csv.gz: the gzip data are damaged",
        ),
        ("nodes.csv", b"id,city,city\n1,A,B\n", "nodes.csv: column 'city' stands twice in the header"),
        ("nodes.csv", b"id,city\n1,A,x\n2,B\n3,C\n", "nodes.csv: line 2 has more than the 2 fields"),
        ("nodes.csv", b"id,city\n1,A,x,y\n2,B\n3,C\n", "nodes.csv: line 2 has more than the 2 fields"),
        ("nodes.csv", b"id,city\n1,A\n2,B,x\n3,C\n", "nodes.csv: line 3 has more than the 2 fields"),
        ("nodes.csv", b"id,city\n1,A\n2,B\n3,C,x,y,z\n", "nodes.csv: line 4 has more than the 2 fields"),
        ("nodes.csv", b'id,city\n1,"A\nB",,,\n2,B\n3,C\n', "nodes.csv: line 2 has more than the 2 fields"),
        ("nodes.csv", b'id,city\n1,"A\nB",,x\n2,B\n3,C\n', "nodes.csv: line 2 has more than the 2 fields"),
        ("nodes.csv", b'id,city\n1,"A\n2,B\n', "nodes.csv: line 2: a quotation mark is opened and never closed"),
    ],
)
def test_files_that_are_not_what_they_say(write, name, content, reason):
    folder = write({"edges.csv": EDGES, name: content})
    with pytest.raises(GraphError) as error:
        load(folder)
    assert str(error.value).startswith(reason)
    assert "Error" not in str(error.value)


def test_no_pickle_is_ever_loaded(write, tmp_path):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "exploded",)

    sens = np.array([Bomb()], dtype=object)
    buffer = io.BytesIO()
    np.save(buffer, sens, allow_pickle=True)
    raw = pickle.dumps(Bomb())
    for content in (buffer.getvalue(), raw):
        folder = write({"a_edges.npy": npy([[0], [1]]), "a_sens.npy": content})
        with pytest.raises(GraphError, match=r"a_sens.npy: "):
            load(folder)
    assert not (tmp_path / "exploded").exists()


def test_layout_names_are_unique():
    names = [layout.name for layout in all_layouts()]
    assert len(set(names)) == len(names)


def graph_file(ending: str, edges: int = 2) -> str:
    pairs = [("0", "1"), ("1", "2")][:edges]
    if ending == "json":
        links = ", ".join(f'{{"source": "{a}", "target": "{b}"}}' for a, b in pairs)
        return f'{{"nodes": [{{"id": "0"}}, {{"id": "1"}}, {{"id": "2"}}], "links": [{links}]}}'
    nodes = "".join(f'<node id="{i}"/>' for i in range(3))
    links = "".join(f'<edge source="{a}" target="{b}"/>' for a, b in pairs)
    if ending == "gexf":
        return f"<gexf><graph><nodes>{nodes}</nodes><edges>{links}</edges></graph></gexf>"
    return f'<graphml><graph edgedefault="undirected">{nodes}{links}</graph></graphml>'


TABLES = {"edges.csv": "source,target\n0,1\n", "nodes.csv": "id,g\n0,x\n1,y\n2,x\n"}


@pytest.mark.parametrize(
    ("files", "read"),
    [
        ({"t.graphml": graph_file("graphml"), "t.gexf": graph_file("gexf", 1)}, {"t.graphml": 2, "t.gexf": 1}),
        ({"t.graphml": graph_file("graphml"), "t.graphml.gz": graph_file("graphml", 1)}, {"t.graphml.gz": 1}),
        ({"t.graphml": graph_file("graphml"), "u.json": graph_file("json", 1)}, {"t.graphml": 2, "u.json": 1}),
        ({**TABLES, "t.graphml": graph_file("graphml")}, {"edges.csv": 1, "t.graphml": 2}),
        ({**TABLES, "edges.tsv": "source\ttarget\n0\t1\n1\t2\n"}, {"edges.csv": 1, "edges.tsv": 2}),
        ({**TABLES, "nodes.tsv": "id\tg\n0\tx\n1\ty\n2\tx\n3\ty\n"}, {"edges.csv": 1, "nodes.csv": 1}),
        ({**TABLES, "Nodes.CSV": "id,g\n0,x\n1,y\n"}, {"nodes.csv": 1}),
        (
            {**TABLES, "a.mtx": "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n"},
            {"edges.csv": 1, "a.mtx": 2},
        ),
    ],
)
def test_several_files_of_one_graph_are_asked_for_and_each_can_be_named(write, files, read):
    folder = write(files)
    with pytest.raises(GraphError) as error:
        load(folder)
    assert f"{folder}: holds 2 files that may be the graph: " in str(error.value)
    assert any(name in str(error.value) for name in read)
    for name, edges in read.items():
        assert load(folder / name).num_edges == edges


def test_files_that_are_no_graph_do_not_stand_in_the_way(write):
    beside = {
        "notes.xlsx": b"PK damaged",
        "report.json": '{"nodes": 3, "edges": 2, "auc": 0.5}',
        "emb.pt": b"PK damaged",
        "broken.json.gz": b"\x1f\x8b damaged",
        "about.xml": "<about/>",
    }
    assert load(write({**TABLES, **beside})).layout == "tables"
    assert load(write({})).num_nodes == 3


@pytest.mark.parametrize("name", ["g.graphml", "g.json"])
def test_tables_beside_a_graph_file_are_said(write, name):
    folder = write({name: graph_file(name[2:]), "nodes.csv": TABLES["nodes.csv"], "emb.csv": "id,a\n"})
    (warning,) = [m for m in load(folder).messages if m.code == "files-not-read"]
    assert warning.level == "warning" and "nodes.csv lies beside the graph and was not read" in warning.text
    with pytest.raises(
        GraphError, match=r"unknown column 'g'; what was read has no column .*nodes.csv beside it was not"
    ):
        load(folder, attributes="g")
    (folder / "nodes.csv").unlink()
    assert "files-not-read" not in {m.code for m in load(folder).messages}


def test_endings_in_capitals(write):
    folder = write({"T.GEXF": graph_file("gexf")})
    assert load(folder / "T.GEXF").num_edges == load(folder).num_edges == 2
    assert (
        load(write({"EDGES.CSV": TABLES["edges.csv"], "Nodes.csv": TABLES["nodes.csv"]}) / "EDGES.CSV").num_edges == 1
    )
    with pytest.raises(GraphError, match=r"write the ending of t.NPZ in small letters"):
        load(write({"t.NPZ": b"PK"}) / "t.NPZ")


@pytest.mark.parametrize("error", [NotRecognised("found", "next"), TooManyGroups("many", 5)])
def test_errors_go_through_other_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))
