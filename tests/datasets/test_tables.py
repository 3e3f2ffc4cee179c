"""Two tables of any kind: ids as text, roles by values, and every refusal."""

import numpy as np
import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError
from uge_core.graph.graph import UNKNOWN


def people(n: int = 60) -> str:
    """A table with one column of every kind."""
    rows = ["id,gender,income,name,same,city,rest"]
    for i in range(n):
        rows.append(f"p{i},{'fm'[i % 2]},{100 + 1.5 * i},name {i},x,{'' if i == 3 else 'ABC'[i % 3]},")
    return "\n".join(rows) + "\n"


def path(n: int = 60) -> str:
    return "source,target\n" + "".join(f"p{i},p{i + 1}\n" for i in range(n - 1))


def roles(graph) -> dict[str, str]:
    return {c.name: c.role for c in graph.columns}


def test_roles_by_values(write):
    graph = load(write({"nodes.csv": people(), "edges.csv": path()}))
    assert (graph.num_nodes, graph.num_edges, graph.layout, graph.bipartite) == (60, 59, "tables", False)
    assert roles(graph) == {
        "id": "id",
        "gender": "attribute",
        "income": "feature",
        "name": "ignored",
        "same": "ignored",
        "city": "attribute",
        "rest": "ignored",
        "source": "source",
        "target": "target",
    }
    assert [a.name for a in graph.attributes] == ["gender", "city"]
    assert graph.feature_names == ("income",)
    assert graph.features.dtype == np.float32
    assert graph.features[2, 0] == 103.0
    assert graph.attribute("CITY").codes[:5].tolist() == [0, 1, 2, UNKNOWN, 1]
    assert graph.attribute("city").labels == ("A", "B", "C")
    assert graph.ids([0, 59]) == ["p0", "p59"]
    constant = next(m for m in graph.messages if m.code == "constant-column")
    assert constant.text == "nodes.csv: 2 columns with fewer than two values ignored"
    assert (constant.level, constant.count, constant.examples) == ("note", 2, ("same", "rest"))
    detail = {c.name: c.detail for c in graph.columns}
    assert (detail["same"], detail["rest"]) == ("one value", "no value")
    assert detail["name"] == "every node has a value of its own"
    assert (graph.defaults.unknown, graph.defaults.test_share, graph.defaults.as_coded_rows) == ("exclude", 0.1, None)


def test_ids_and_values_are_text(write):
    nodes = "id,group\n007,NA\n7,None\nNA,nan\nnull,\n1e3,NA\n"
    edges = "source,target\n007,7\nNA,null\n1e3,007\n"
    graph = load(write({"nodes.csv": nodes, "edges.csv": edges}))
    assert graph.ids(slice(None)) == ["007", "7", "NA", "null", "1e3"]
    assert graph.edges.tolist() == [[0, 0, 2], [1, 4, 3]]
    assert graph.attribute("group").labels == ("NA", "None", "nan")
    assert graph.attribute("group").unknown.tolist() == [False, False, False, True, False]


def test_a_value_called_unknown_stays_apart_from_the_empty_cell(write):
    nodes = "id,g\n1,unknown\n2,\n3,x\n"
    graph = load(write({"nodes.csv": nodes, "edges.csv": "source,target\n1,2\n2,3\n"}))
    assert graph.attribute("g").labels == ("unknown", "x")
    assert graph.attribute("g").unknown_label == "unknown (empty cell)"


def test_values_sort_as_numbers_where_they_are(write):
    nodes = "id,g\n" + "".join(f"{i},{v}\n" for i, v in enumerate([10, 9, 2, 10]))
    graph = load(write({"nodes.csv": nodes, "edges.csv": "a,b\n0,1\n"}))
    assert graph.attribute("g").labels == ("2", "9", "10")
    assert graph.attribute("g").codes.tolist() == [2, 1, 0, 2]


@pytest.mark.parametrize(
    ("edges", "nodes"),
    [
        ("src,dst\n1,2\n", "id,g\n1,a\n2,b\n"),
        ("when,to,from\n5,2,1\n", "g,node_id\na,1\nb,2\n"),
        ("x;y\n1;2\n", "person;g\n1;a\n2;b\n"),
        ("U\tV\tother\n1\t2\t3\n", "g\tUser_ID\na\t1\nb\t2\n"),
        ("\ufeffsource,target\n1,2\n", "\ufeffid,g\n1,a\n2,b\n"),
        ("source,target\r1,2\r", "id,g\r1,a\r2,b\r"),
        ("source, target\r\n1, 2\r\n\r\n", "id, g\r\n1, a\r\n\r\n2, b\r\n"),
    ],
)
def test_columns_are_found_by_name_and_files_vary(write, edges, nodes):
    graph = load(write({"edges.csv": edges, "nodes.csv.gz": nodes}))
    assert graph.edges.tolist() == [[0], [1]]
    assert graph.ids([0, 1]) == ["1", "2"]
    assert graph.attribute("g").labels == ("a", "b")


def test_loops_and_duplicates_are_dropped_and_counted(write, about_files):
    edges = "source,target\n1,2\n2,1\n1,2\n3,3\n2,3\n"
    graph = load(write({"nodes.csv": "id,g\n1,a\n2,b\n3,a\n4,b\n", "edges.csv": edges}))
    assert graph.num_edges == 2
    counts = {m.code: (m.level, m.count) for m in about_files(graph)}
    assert counts == {"self-loops": ("note", 1), "duplicate-edges": ("note", 2), "nodes-without-edges": ("note", 1)}


THREE = "id,g\n1,a\n2,b\n3,a\n"


def test_weights_are_used_where_they_differ(write, about_files):
    graph = load(write({"nodes.csv": THREE, "edges.csv": "source,target,Weight\n1,2,0.5\n3,2,2\n2,1,0.25\n"}))
    assert roles(graph)["Weight"] == "weight"
    # a table of edges has no direction, and the weights of repeated rows add up
    assert (graph.edge_weights.tolist(), graph.directed) == ([0.75, 2], False)
    notes = {m.code: m for m in about_files(graph)}
    assert set(notes) == {"weights", "duplicate-edges"}
    assert "edges weigh 0.75 to 2" in notes["weights"].text and "add up" in notes["duplicate-edges"].text
    same = load(write({"nodes.csv": THREE, "edges.csv": "source,target,Weight\n1,2,1\n2,3,1.0\n"}))
    assert roles(same)["Weight"] == "weight" and not same.weighted
    assert about_files(same) == ()


def test_an_edge_of_weight_zero_is_none(write, about_files):
    graph = load(write({"nodes.csv": THREE, "edges.csv": "source,target,w\n1,2,0\n2,3,2\n1,3,1\n"}))
    assert (graph.edges.tolist(), graph.edge_weights.tolist()) == ([[0, 1], [2, 2]], [1, 2])
    dropped = about_files(graph)[0]
    assert (dropped.code, dropped.level, dropped.count, dropped.examples) == ("zero-weights", "warning", 1, ("1 - 2",))
    # The others weigh the same, so that they have no weights, and none that add up.
    alike = load(write({"nodes.csv": THREE, "edges.csv": "source,target,w\n1,2,0\n2,3,2\n3,2,2\n1,3,2\n"}))
    assert not alike.weighted and "dropped" in next(m.text for m in about_files(alike) if m.code == "duplicate-edges")
    with pytest.raises(GraphError, match="only self-loops, those of weight 0 left out"):
        load(write({"nodes.csv": THREE, "edges.csv": "source,target,w\n1,2,0\n2,2,2\n"}))


@pytest.mark.parametrize("cell", ["-1", "", "heavy", "nan", "inf", "1e30", "1e-30"])
def test_a_weight_that_cannot_be_one_is_refused_with_its_line(write, cell):
    with pytest.raises(GraphError) as error:
        load(write({"nodes.csv": THREE, "edges.csv": f"source,target,w\n1,2,2\n2,3,{cell}\n"}))
    written = repr(cell) if cell else "empty"
    assert (
        f"edges.csv: 1 edge without a usable weight in column 'w', first: line 3 ('2', '3', {written}); allowed: 0"
        in str(error.value)
    )


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (["1,5", "2,5", "3,5"], r"3 weights with a comma in column 'weight', first: line 2 \('1', '2', '1,5'\)"),
        (["1", "2,5", "3"], r"1 weight with a comma in column 'weight', first: line 3"),
        (["1.000", "500", "2.000"], "2 weights in column 'weight' whose point may be of thousands or of decimals"),
        (["1.000,5", "500", "2"], "1 weight with a comma"),
    ],
)
def test_marks_in_weights_are_refused(write, weights, words):
    rows = "".join(f"{a};{w}\n" for a, w in zip(["1;2", "2;3", "1;3"], weights, strict=True))
    with pytest.raises(GraphError, match=f"edges.csv: {words}"):
        load(write({"nodes.csv": THREE, "edges.csv": f"source;target;weight\n{rows}"}))


@pytest.mark.parametrize("weights", [["1.000", "0.500", "2"], ["1.000", "2.500", "0.125"], ["1.5", "500", "2.000"]])
def test_points_of_decimals_are_read(write, weights):
    rows = "".join(f"{a},{w}\n" for a, w in zip(["1,2", "2,3", "1,3"], weights, strict=True))
    graph = load(write({"nodes.csv": THREE, "edges.csv": f"source,target,weight\n{rows}"}))
    assert sorted(graph.edge_weights.tolist()) == sorted(map(float, weights))


def test_a_column_called_w_without_numbers_is_no_weight(write, about_files):
    graph = load(write({"nodes.csv": THREE, "edges.csv": "source,target,w\n1,2,friend\n2,3,family\n"}))
    assert roles(graph)["w"] == "ignored" and not graph.weighted
    assert about_files(graph) == ()


def test_empty_numbers_become_the_mean(write):
    nodes = "id,x\n" + "".join(f"{i},{'' if i == 0 else i}\n" for i in range(101))
    graph = load(write({"nodes.csv": nodes, "edges.csv": "source,target\n0,1\n"}))
    assert graph.features[0, 0] == pytest.approx(50.5)
    assert next(c.detail for c in graph.columns if c.name == "x") == "1 empty cell filled with the mean"


def test_at_most_eight_attributes(write):
    nodes = "id," + ",".join(f"c{i}" for i in range(11)) + "\n"
    nodes += "".join(f"{n}," + ",".join(str(n % 2) for _ in range(11)) + "\n" for n in range(4))
    folder = write({"nodes.csv": nodes, "edges.csv": "source,target\n0,1\n"})
    graph = load(folder)
    assert [a.name for a in graph.attributes] == [f"c{i}" for i in range(8)]
    assert graph.features is None
    limit = next(m for m in graph.messages if m.code == "attribute-limit")
    assert (limit.level, limit.count, limit.examples) == ("warning", 3, ("c8", "c9", "c10"))
    assert limit.remedy == "name the ones you need with --attributes"
    asked = load(folder, attributes=["C10", "c2"])
    assert [a.name for a in asked.attributes] == ["c2", "c10"]
    assert "attribute-limit" not in {m.code for m in asked.messages}
    assert {c.detail for c in asked.columns if c.role == "ignored"} == {"not named by --attributes"}
    every = load(folder, attributes=[f"c{i}" for i in range(11)])
    assert len(every.attributes) == 11


def test_attributes_override_roles(write):
    nodes = "id,gender,score,town,same,income\n"
    nodes += "".join(f"{i},{'fm'[i % 2]},{i % 40},t{i // 2},x,{i}\n" for i in range(300))
    folder = write({"nodes.csv": nodes, "edges.csv": "source,target\n0,1\n"})
    assert [a.name for a in load(folder).attributes] == ["gender", "score", "town"]
    both = load(folder, attributes="gender,score,town")
    assert both.fingerprint == load(folder).fingerprint
    assert (
        load(folder, attributes=" GENDER ,town,").fingerprint == load(folder, attributes=["town", "gender"]).fingerprint
    )
    town = load(folder, attributes="town")
    assert [a.name for a in town.attributes] == ["town"]
    assert town.feature_names == ("income",)
    assert town.fingerprint != both.fingerprint
    what = {c.name: (c.role, c.detail) for c in town.columns}
    assert what["gender"] == what["score"] == ("ignored", "not named by --attributes")
    assert what["same"] == ("ignored", "one value")
    with pytest.raises(GraphError, match=r"'gender' of nodes.csv was read as ignored .not named by --attributes"):
        town.attribute("gender")
    for nothing in ("", " , ", [], [""]):
        with pytest.raises(GraphError, match="made: attributes names no column; name at least one, or leave it out"):
            load(folder, attributes=nothing)


def test_names_with_separators_are_renamed(write):
    nodes = 'id,"a,b",a_b,a+b,"x+\ny",town ,"in,come","same+"\n'
    nodes += "".join(f"{i},{i % 2},{i % 3},{i % 4},{i % 5},{i % 2},{i},z\n" for i in range(60))
    folder = write({"nodes.csv": nodes.replace("\ny", "y"), "edges.csv": '"source","target","w,x"\n0,1,1\n'})
    graph = load(folder)
    assert [a.name for a in graph.attributes] == ["a_b_2", "a_b", "a_b_3", "x_y", "town"]
    assert [a.aliases for a in graph.attributes] == [("a,b",), (), ("a+b",), ("x+y",), ()]
    assert graph.feature_names == ("in_come",)
    note = next(m for m in graph.messages if m.code == "renamed-column")
    assert (note.level, note.count) == ("note", 5)
    assert note.examples == (
        "'a,b' is 'a_b_2'",
        "'a+b' is 'a_b_3'",
        "'x+y' is 'x_y'",
        "'in,come' is 'in_come'",
        "'same+' is 'same_'",
    )
    what = {c.name: (c.role, c.detail) for c in graph.columns}
    assert what["a_b_2"] == ("attribute", "written 'a,b' in the file")
    assert what["same_"] == ("ignored", "one value")
    assert next(m for m in graph.messages if m.code == "constant-column").count == 1
    assert [a.name for a in load(folder, attributes="a_b_2,town").attributes] == ["a_b_2", "town"]
    assert [a.name for a in load(folder, attributes=["a+b"]).attributes] == ["a_b_3"]
    assert load(folder, attributes="a_b_2").attribute("A_B_2").labels == ("0", "1")
    with pytest.raises(GraphError, match="column 'same\\+' has one value"):
        load(folder, attributes="same_")
    with pytest.raises(GraphError) as error:
        graph.attribute("same_")
    assert "--attributes" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "examples"),
    [
        (["F", "F ", "f", "M"], ("'F': 2, 'F ': 2, 'f': 2",)),
        (["1", "1.0", "01", "2"], ("'01': 2, '1': 2, '1.0': 2",)),
        (
            ["New  York", "new york", "\u00e9", "e\u0301"],
            ("'New  York': 2, 'new york': 2", "'e\u0301': 2, '\u00e9': 2"),
        ),
        (["a", "b", "1", "10"], None),
        (["nan", "inf", "Infinity", "1e"], None),
    ],
)
def test_values_that_look_alike_are_said(write, values, examples, about_files):
    nodes = "id,g\n" + "".join(f'{i},"{values[i % 4]}"\n' for i in range(8))
    graph = load(write({"nodes.csv": nodes, "edges.csv": "source,target\n0,1\n2,3\n4,5\n6,7\n"}))
    assert sorted(graph.attribute("g").labels) == sorted(values)
    if examples is None:
        assert "similar-values" not in {m.code for m in about_files(graph)}
        return
    (message,) = about_files(graph)
    assert (message.level, message.code) == ("warning", "similar-values")
    assert message.count == sum(e.count(": ") for e in examples)
    assert message.examples == examples
    assert "they stay apart" in message.text
    assert message.remedy == "write each value in one way if they mean the same"


@pytest.mark.parametrize(
    ("nodes", "edges", "text"),
    [
        (
            "id,g\nx,a\ny,b\nz,a\n",
            "x,y\nz,z\n",
            "edges.csv: seems to have no header line: line 1 holds 'x', 'y', which look like data, not like column "
            "names; write a header as the first line, such as source,target, or header: true or false and columns: [..] "
            "beside file: edges.csv in dataset.yaml",
        ),
        ("x,a\ny,b\n", "source,target\nx,y\n", "nodes.csv: seems to have no header line: line 1 holds 'x', 'a'"),
        (
            "x\ny\nz\n",
            "source,target\nx,y\ny,z\n",
            "nodes.csv: seems to have no header line: line 1 holds 'x', which looks like data, not like a column "
            "name; write a header as the first line, such as id",
        ),
    ],
)
def test_a_missing_header_is_no_lost_row(write, nodes, edges, text):
    with pytest.raises(GraphError) as error:
        load(write({"nodes.csv": nodes, "edges.csv": edges}))
    assert str(error.value).startswith(text)


@pytest.mark.parametrize("edges", ["person,friend\n1,2\n", "u,v\n1,2\n", "0,1,weight\n1,2,3\n"])
def test_unknown_names_in_a_header_are_no_data(write, edges):
    assert load(write({"nodes.csv": "person,g\n1,a\n2,b\n", "edges.csv": edges})).num_edges == 1


def test_a_very_long_header_is_read_whole(write):
    n = 300
    nodes = "id," + ",".join("w" * 300 + str(i) for i in range(n)) + "\n"
    nodes += "".join(f"{r}," + ",".join(["\u00e9" * 150] * n) + "\n" for r in range(2))
    graph = load(write({"nodes.csv": nodes, "edges.csv": "source,target\n0,1\n"}))
    assert len(graph.columns) == n + 3


def test_row_numbers_without_a_name_are_no_feature(write):
    nodes = ",id,g\n" + "".join(f"{i},p{i},{'ab'[i % 2]}\n" for i in range(60))
    graph = load(write({"nodes.csv": nodes, "edges.csv": "source,target\np0,p1\n"}))
    assert graph.features is None
    assert graph.columns[0].detail == "no name in the header"


@pytest.mark.parametrize(
    "cells", [('"<[2009.0, 2011.0]>"', "<[2010.0]>"), ('"<[2009, 2011, ""a""]; [2011, 2013, ""b""]>"',) * 2]
)
def test_gephis_times_are_no_groups(write, cells):
    rows = "".join(f"n{i},{'ab'[i % 2]},{cells[i % 2]}\n" for i in range(12))
    graph = load(write({"nodes.csv": "id,g,Interval\n" + rows, "edges.csv": "source,target\nn0,n1\n"}))
    assert [a.name for a in graph.attributes] == ["g"] and not graph.feature_names
    assert next(c for c in graph.columns if c.name == "Interval").detail == "times, or values over time, are not read"


def test_numbers_too_large_for_features_are_ignored(write):
    nodes = "id,x,y,z\n" + "".join(f"{i},{i}e300,-{i}e36,{i}e16\n" for i in range(60))
    folder = write({"nodes.csv": nodes, "edges.csv": "source,target\n0,1\n"})
    graph = load(folder)
    assert graph.feature_names == ("z",)
    what = {c.name: (c.role, c.detail) for c in graph.columns}
    assert what["x"] == ("ignored", "values too large for a feature (max 5.9e+301, allowed 1e+18)")
    assert what["y"] == ("ignored", "values too large for a feature (max 5.9e+37, allowed 1e+18)")
    warning = next(m for m in graph.messages if m.code == "large-values")
    assert (warning.level, warning.count, warning.examples) == ("warning", 2, ("x", "y"))
    with pytest.raises(GraphError, match="column 'x' is continuous"):
        load(folder, attributes="x")
    widest = "id,x\n" + "".join(f"{i},{'-' * (i % 2)}1.7{i:02}e308\n" for i in range(60))
    with pytest.raises(GraphError, match="column 'x' is continuous"):
        load(write({"nodes.csv": widest}), attributes="x")


def ids(n: int) -> str:
    return "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(n - 1))


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("colour", "unknown column 'colour'; allowed: gender, score, one, none, word"),
        ("genders", "Did you mean 'gender'?"),
        ("id", "column 'id' of nodes.csv has the role id and cannot be an attribute"),
        ("one", "nodes.csv: column 'one' has one value ('x'); an attribute needs at least two groups"),
        ("none", "nodes.csv: column 'none' has no value; an attribute needs at least two groups"),
        (
            "score",
            "nodes.csv: column 'score' is continuous (300 different numbers); an attribute has at most 50 values: "
            "bin it first, for instance at 29.9, 59.8, 89.7, 119.6",
        ),
        ("WORD", "nodes.csv: column 'word' has 300 different values; an attribute has at most 200: group them first"),
    ],
)
def test_attributes_asked_for_that_cannot_be(write, asked, text):
    nodes = "id,gender,score,one,none,word\n" + "".join(f"{i},{'fm'[i % 2]},{i / 2},x,,w{i}\n" for i in range(300))
    folder = write({"nodes.csv": nodes, "edges.csv": ids(300)})
    with pytest.raises(GraphError) as error:
        load(folder, attributes=[asked])
    assert text in str(error.value)


GOOD = "id,g\n1,a\n2,b\n3,a\n"


@pytest.mark.parametrize(
    ("nodes", "edges", "text"),
    [
        (
            GOOD,
            "source,target\n1,2\n9,1\n2,8\n2,7\n6,6\n",
            "edges.csv: 4 edges name a node that does not exist, first: line 3 ('9', '1'), line 4 ('2', '8'), line "
            "5 ('2', '7'); allowed: the 3 ids in column 'id' of nodes.csv, compared as text (7 and 7.0 differ); "
            "add the nodes, remove these rows, or write unknown_nodes: drop",
        ),
        (
            GOOD,
            "source,target\n1,2\n1.0,2\n",
            "edges.csv: 1 edge names a node that does not exist, first: line 3 ('1.0', '2')",
        ),
        (
            GOOD,
            "source,target\n1,2\n\n1,\n",
            "edges.csv: 1 row with nothing in column 'target', first: line 4; every edge needs two ends",
        ),
        (
            GOOD,
            "source,target\n1,1\n2,2\n",
            "made: the graph has only self-loops; at least one edge between two different nodes is needed",
        ),
        (GOOD, "source,target\n", "edges.csv: there are no rows under the header"),
        (GOOD, "source\n1\n", "edges.csv: one column (source), two are needed: source,target"),
        (
            "id,g\n1,a\n2,b\n1,a\n",
            "source,target\n1,2\n",
            "nodes.csv: 1 row repeats an id of column 'id', first: line 4 ('1'); each node must stand once",
        ),
        (
            "id,g\n1,a\n,b\n",
            "source,target\n1,2\n",
            "nodes.csv: 1 row without an id in column 'id', first: line 3 (empty); every node needs an id",
        ),
        ("id,Age,age\n1,a,a\n2,b,b\n", "source,target\n1,2\n", "made: two attributes are called age; rename one"),
    ],
)
def test_blocking_problems(write, nodes, edges, text):
    folder = write({"nodes.csv": nodes, "edges.csv": edges})
    with pytest.raises(GraphError) as error:
        load(folder)
    assert text in str(error.value)
    assert "\n" not in str(error.value)


TRIANGLE = "source,target\na,b\nb,c\nc,a\n"


def test_a_column_of_weights_is_no_end_of_an_edge(write):
    edges = "weight,a,b\n" + "".join(f"{1 + i % 5},{i},{(i + 1) % 6}\n" for i in range(6))
    graph = load(write({"edges.csv": edges, "nodes.csv": "id,g\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(6))}))
    assert graph.num_edges == 6 and graph.weighted and roles(graph)["a"] == "source"


@pytest.mark.parametrize(("weight", "words"), [("-1", "3 edges without a usable weight"), ("0", "weight 0 left out")])
def test_weights_that_are_all_the_same_must_be_weights_too(write, weight, words):
    edges = "source,target,w\n" + "".join(f"{pair},{weight}\n" for pair in ("a,b", "b,c", "c,a"))
    with pytest.raises(GraphError, match=words):
        load(write({"edges.csv": edges, "nodes.csv": "id,g\na,x\nb,y\nc,x\n"}))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_a_card_can_name_utf_16(write, encoding):
    card = (
        f"edges: {{file: e.csv, source: source, target: target}}\nnodes: {{file: n.csv, id: id}}\nencoding: "
        f"{encoding}\n"
    )
    tables = {"e.csv": TRIANGLE.encode(encoding), "n.csv": "id,g\na,\u00e9\nb,y\nc,y\n".encode(encoding)}
    assert load(write({"dataset.yaml": card, **tables})).attribute("g").labels == ("y", "\u00e9")


def test_the_separator_is_looked_for_outside_of_quotes(write):
    card = "edges: {file: e.csv, source: source, target: target}\nnodes: {file: n.csv, id: id}\n"
    nodes = 'id;"a, b, c";g\na;1;x\nb;2;y\nc;1;y\n'
    graph = load(write({"dataset.yaml": card, "e.csv": TRIANGLE.replace(",", ";"), "n.csv": nodes}))
    assert [a.name for a in graph.attributes] == ["a_ b_ c", "g"]


def test_ids_that_differ_in_how_an_accent_is_written_are_told_of(write):
    edges = "source,target\n" + "Ren\u00e9,b\nb,c\n"
    with pytest.raises(GraphError, match="1 id would match if accents were written as one character"):
        load(write({"edges.csv": edges, "nodes.csv": "id,g\nRene\u0301,x\nb,y\nc,x\n"}))


def test_names_with_commas_are_features_and_sensitive_as_the_card_says(write):
    card = """
edges: {file: e.csv, source: source, target: target}
nodes: {file: n.csv, id: id}
attributes: {"a,b": {}}
features: ["income, net"]
sensitive: ["a,b"]
"""
    nodes = 'id,"a,b","income, net"\na,x,1.5\nb,y,2.25\nc,y,7\n'
    graph = load(write({"dataset.yaml": card, "e.csv": TRIANGLE, "n.csv": nodes}))
    assert graph.feature_names == ("income_ net",)
    assert "sensitive" in next(c.detail for c in graph.columns if c.name == "a_b")
