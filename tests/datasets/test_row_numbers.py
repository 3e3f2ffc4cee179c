"""German credit's layout: a table and edges by row number, written as floats."""

import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError

GERMAN = """GoodCustomer,Gender,ForeignWorker,Age,PurposeOfLoan,LoanAmount
1,Male,0,24,Electronics,1169
-1,Female,1,25,Education,5951
1,Male,0,44,NewCar,2096
1,Female,0,75,NewCar,1000
"""
EDGES = "0.000000000000000000e+00 1.000000000000000000e+00\n1.0e+00 0.0e+00\n2.0 3.0\n"
FILES = {"german.csv": GERMAN, "german_edges.txt.gz": EDGES}


def test_german_credit_has_its_own_list(write, about_files):
    graph = load(write(FILES))
    assert (graph.layout, graph.num_nodes, graph.edges.tolist()) == ("row-numbers", 4, [[0, 2], [1, 3]])
    assert [a.name for a in graph.attributes] == ["Gender", "ForeignWorker", "Age"]
    assert graph.attribute("Gender").labels == ("Female", "Male")
    age = graph.attribute("age")
    assert (age.labels, age.codes.tolist(), age.ordered) == (("under 25", "25-34", "35-44", "55+"), [0, 1, 2, 3], True)
    assert graph.feature_names == ("LoanAmount",)
    roles = {c.name: c.role for c in graph.columns}
    assert (roles["GoodCustomer"], roles["PurposeOfLoan"]) == ("label", "ignored")
    assert [(m.code, m.count) for m in about_files(graph)] == [("duplicate-edges", 1)]


def test_other_tables_go_by_their_values(write):
    nodes = "race,score\n" + "".join(f"{'ab'[i % 2]},{i / 4}\n" for i in range(80))
    graph = load(write({"bail.csv": nodes, "bail_edges.txt": "0 1\n5 79\n"}))
    assert [a.name for a in graph.attributes] == ["race"]
    assert graph.feature_names == ("score",)


def test_minus_one_is_a_class(write):
    good = load(write(FILES), attributes=["goodcustomer"]).attribute("GoodCustomer")
    assert (good.labels, good.unknown.any()) == (("-1", "1"), False)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"german_edges.txt.gz": "0.0 4.0\n"},
            "german_edges.txt.gz: 1 edge names a node that does not "
            "exist, first: line 1 ('0.0', '4.0'); allowed: 0 to 3",
        ),
        ({"german_edges.txt.gz": "0.0 1.0\n0.5 1.0\n"}, "first: line 2 ('0.5', '1.0')"),
        ({"german_edges.txt.gz": "0.0,1.0\n"}, "german_edges.txt.gz: line 1 has 1 fields separated by ' ', expected 2"),
        (
            {"german.csv": "1,0,24\n-1,1,25\n1,0,44\n"},
            "german.csv: seems to have no header line: line 1 holds '1', '0', '24'",
        ),
        (
            {"german.csv": GERMAN.replace("24", "young")},
            "german.csv: column 'Age' must hold numbers, found: line 2 ('young')",
        ),
    ],
)
def test_blocking_problems(write, change, text):
    with pytest.raises(GraphError) as error:
        load(write({**FILES, **change}))
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["2", "0", "1", "3"], "column 'id' counts the nodes in another order than the rows, first: row 1 is 2"),
        (["1", "2", "3", "4"], "no edge names row 0, while column 'id' of x.csv counts from 1"),
    ],
)
def test_ids_beside_rows_by_position_are_not_passed_over(write, ids, said):
    nodes = "id,g\n" + "".join(f"{i},{'ab'[k % 2]}\n" for k, i in enumerate(ids))
    with pytest.raises(GraphError, match=said):
        load(write({"x.csv": nodes, "x_edges.txt": "1 2\n2 3\n"}))
