"""The authors' layout: tables by row number."""

import numpy as np
import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError
from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN

ATTRIBUTES = "gender,region,AGE\n1.0,0,0.0\n0.0,1,26.0\n1.0,1,9.0\n0.0,0,112.0\n"
EDGES = "Src,Dst,Weight\n0,1,1.0\n1,2,1.0\n3,2,1.0\n2,2,1.0\n"
FILES = {"p_node_attribute.csv": ATTRIBUTES, "p_edge.csv.gz": EDGES}


def test_attributes_by_row(write, about_files):
    graph = load(write({**FILES, "p_node_label.csv": "Label\n0\n1\n1\n0\n"}))
    assert (graph.layout, graph.num_nodes, graph.edges.tolist()) == ("authors", 4, [[0, 1, 2], [1, 2, 3]])
    assert [a.name for a in graph.attributes] == ["gender", "region", "AGE"]
    assert graph.attribute("gender").labels == ("0.0", "1.0")
    age = graph.attribute("age")
    assert age.labels == ("9.0", "26.0", "112.0")
    assert age.codes.tolist() == [UNKNOWN, 1, 0, 2]
    assert (age.unknown_label, age.ordered) == ("0.0", True)
    assert graph.defaults.unknown == "level"
    assert graph.defaults.as_coded_rows is None
    assert {c.name: c.role for c in graph.columns} == {
        "gender": "attribute",
        "region": "attribute",
        "AGE": "attribute",
        "Label": "label",
        "Src": "source",
        "Dst": "target",
        "Weight": "weight",
    }
    assert [m.code for m in about_files(graph)] == ["self-loops"]
    assert graph.ids([3]) == ["3"]


def test_age_zero_is_missing_only_under_its_name(write):
    graph = load(write({**FILES, "p_node_attribute.csv": "gender,grade\n0,0\n1,0\n0,1\n1,0\n"}))
    assert not graph.attribute("grade").unknown.any()


def test_features_and_a_label_asked_for(write):
    folder = write(
        {**FILES, "p_node_label.csv": "Label\n0\n1\n1\n0\n", "p_node_feature.csv": "f,g\n1,2\n3,4\n5,6\n7,8.5\n"}
    )
    graph = load(folder, attributes=["label"])
    assert [a.name for a in graph.attributes] == ["Label"]
    assert graph.features.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8.5]]
    assert graph.attribute("Label").codes.tolist() == [0, 1, 1, 0]
    assert load(folder, attributes=["f"]).feature_names == ("g",)


def test_full_pokec_has_the_authors_probe(write):
    n = 60_001
    rows = np.arange(n)
    attributes = "gender\n" + "\n".join(map(str, rows % 2)) + "\n"
    edges = "Src,Dst\n" + "\n".join(f"{i},{i + 1}" for i in range(n - 1)) + "\n"
    graph = load(write({"p_node_attribute.csv": attributes, "p_edge.csv": edges}))
    assert graph.defaults.as_coded_rows == 50_000


def test_rows_of_minus_one_are_items(write, about_files):
    graph = load(
        write(
            {
                "m_node_attribute.csv": "gender,age\n0,1\n1,25\n-1,-1\n-1,-1\n-1,-1\n",
                "m_edge.csv": "Src,Dst,Weight\n0,2,1\n4,1,1\n0,4,1\n",
                "m_node_feature.csv": "f\n1\n2\n3\n4\n5\n",
            }
        )
    )
    assert (graph.num_nodes, graph.num_users, graph.num_items) == (4, 2, 2)
    assert graph.edges.tolist() == [[0, 0, 1], [2, 3, 3]]
    assert graph.ids(slice(None)) == ["0", "1", "2", "4"]
    assert graph.attribute("gender").codes.tolist() == [0, 1, NOT_APPLICABLE, NOT_APPLICABLE]
    assert graph.defaults.test_share == 0.2
    assert {m.code for m in about_files(graph)} == {"items-without-edges", "no-item-cells"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"p_edge.csv.gz": "Src,Dst\n0,4\n-1,2\n"},
            "p_edge.csv.gz: 2 edges name a node that does not exist, first: line 2 ('0', '4'), line 3 ('-1', '2'); "
            "allowed: 0 to 3, the row numbers of p_node_attribute.csv counted from 0",
        ),
        ({"p_edge.csv.gz": "Src,Dst\n0,1\n0,x\n1.5,2\n"}, "first: line 3 ('0', 'x'), line 4 ('1.5', '2')"),
        ({"p_edge.csv.gz": "Src,Dst\n0,1\n0,\n"}, "p_edge.csv.gz: 1 row with nothing in column 'Dst', first: line 3"),
        ({"p_edge.csv.gz": "Src\n0\n"}, "p_edge.csv.gz: one column (Src), two are needed"),
        ({"p_edge.csv.gz": "0,1,1.0\n1,2,1.0\n"}, "p_edge.csv.gz: seems to have no header line: line 1 holds '0', '1'"),
        (
            {"p_edge.csv.gz": "0,1,1\n1,2,1\n"},
            "p_edge.csv.gz: column '1' stands twice in the header; rename one of the two, or write a header as the "
            "first line if there is none",
        ),
        (
            {"p_node_attribute.csv": "1.0,0,26\n0.0,1,26.0\n"},
            "p_node_attribute.csv: seems to have no header line: line 1 holds '1.0', '0', '26', which look like "
            "data, not like column names; write a header as the first line, such as gender,region,AGE",
        ),
        ({"p_node_label.csv": "Label\n0\n1\n"}, "p_node_label.csv: 2 rows, but p_node_attribute.csv has 4"),
        ({"p_node_attribute.csv": "g,h\n-1,-1\n0,1\n1,0\n0,0\n"}, "p_node_attribute.csv: rows of -1 are items"),
    ],
)
def test_blocking_problems(write, change, text):
    with pytest.raises(GraphError) as error:
        load(write({**FILES, **change}))
    assert text in str(error.value)


def test_an_empty_cell_in_a_table_of_one_column_is_a_missing_value(write):
    graph = load(write({**FILES, "p_node_attribute.csv": "g\na\n\nb\na\n\n\n", "p_edge.csv.gz": "Src,Dst\n0,3\n"}))
    assert graph.attribute("g").codes.tolist() == [0, UNKNOWN, 1, 0]


def test_a_column_of_many_values_is_ignored_with_a_warning(write):
    attributes = "g,salary\n" + "".join(f"{i % 2},{i}\n" for i in range(250))
    graph = load(write({"p_node_attribute.csv": attributes, "p_edge.csv": "Src,Dst\n0,1\n"}))
    assert [a.name for a in graph.attributes] == ["g"]
    assert ("warning", "too-many-values") in [(m.level, m.code) for m in graph.messages]
    with pytest.raises(GraphError, match=r"column 'salary' of p_node_attribute.csv was read as ignored"):
        graph.attribute("salary")


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_a_person_without_any_value_keeps_the_others_in_their_rows(write, end):
    people = ["f,N", "m,S", ",", "f,S", "m,N", ","]
    nodes = "gender,region\n" + "\n".join(people) + end
    edges = "Src,Dst\n0,1\n1,3\n3,4\n4,5\n5,2\n"
    graph = load(write({"x_node_attribute.csv": nodes, "x_edge.csv": edges}))
    assert graph.num_nodes == 6 and graph.attribute("region").codes.tolist() == [0, 1, -1, 1, 0, -1]
