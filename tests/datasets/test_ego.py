"""SNAP's ego networks: one-hot features become attributes."""

import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError

NAMES = """0 gender;anonymized feature 77
1 gender;anonymized feature 78
2 education;school;id;anonymized feature 50
3 education;school;id;anonymized feature 51
4 education;school;id;anonymized feature 52
5 locale;anonymized feature 1
6 locale;anonymized feature 2
"""
FEAT = """11 1 0 1 1 0 1 0
12 0 1 1 0 0 0 1
13 1 0 0 1 1 1 0
14 0 0 0 0 1 0 1
15 0 1 0 0 0 1 0
"""
FILES = {
    "7.feat": FEAT,
    "7.featnames": NAMES,
    "7.edges": "11 12\n12 11\n13 14\n14 15\n",
    "7.circles": "circle0\t11\t12\n",
}
EGO = {**FILES, "7.egofeat": "0 1 0 0 1 0 1\n"}


def test_groups_of_features_are_attributes(write, about_files):
    graph = load(write(FILES))
    assert (graph.layout, graph.ids(slice(None))) == ("ego", ["11", "12", "13", "14", "15"])
    assert graph.edges.tolist() == [[0, 2, 3], [1, 3, 4]]
    assert [a.name for a in graph.attributes] == ["locale", "gender"]
    assert graph.attribute("gender").labels == ("anonymized feature 77", "anonymized feature 78")
    assert graph.attribute("gender").codes.tolist() == [0, 1, 0, -1, 1]
    assert graph.attribute("locale").codes.tolist() == [0, 1, 0, 1, 0]
    assert graph.features is None
    roles = {c.name: (c.role, c.detail) for c in graph.columns}
    assert roles["education;school;id"] == ("ignored", "several values for 2 of 4 people, a list and no group")
    assert roles["circles"][0] == "ignored"
    assert "lists-of-values" in {m.code for m in about_files(graph)}


def test_a_list_that_is_asked_for(write):
    graph = load(write(FILES), attributes=["education;school;id"])
    assert graph.attribute("education;school;id").codes.tolist() == [-1, 0, -1, 1, -1]
    assert {m.code: m.examples for m in graph.messages}["several-values"] == ("education;school;id: 2 of 4",)


def test_the_ego_is_joined_to_all(write):
    graph = load(write(EGO))
    assert graph.ids([5]) == ["7"] and graph.num_edges == 3 + 5
    assert graph.attribute("gender").codes.tolist() == [0, 1, 0, -1, 1, 1]
    (message,) = [m for m in graph.messages if m.code == "ego"]
    assert "joined to all 5 others" in message.text and message.remedy == "take 7.egofeat away to leave the ego out"


def test_names_of_other_networks(write):
    files = {
        "7.featnames": "0 gender:1\n1 gender:2\n2 institution:A; B\n3 institution:C\n4 #tag:x\n5 @name:\n6 plain\n",
        "7.feat": "11 1 0 1 0 1 1 0\n12 0 1 0 1 0 1 0\n13 0 1 1 0 0 1 1\n",
        "7.edges": "11 12\n12 13\n",
    }
    graph = load(write(files))
    assert {a.name: a.labels for a in graph.attributes} == {"gender": ("1", "2"), "institution": ("A; B", "C")}
    assert graph.feature_names == ("#tag:x", "@name:", "plain")
    assert graph.features.tolist() == [[1, 1, 0], [0, 1, 0], [0, 1, 1]]


def test_one_of_several_egos(write):
    folder = write({**FILES, **{name.replace("7", "8", 1): text for name, text in EGO.items()}})
    with pytest.raises(GraphError, match="2 graphs in one folder"):
        load(folder)
    assert load(f"{folder}:8").num_nodes == 6


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"7.feat": "11 1 0\n"},
            "7.feat: line 1 has 3 fields; expected 8, an id and a 0 or 1 for each of the 7 features",
        ),
        ({"7.feat": FEAT.replace("12 0", "12 2")}, "7.feat: line 2 has a feature of '2'; allowed: 0 and 1"),
        ({"7.feat": FEAT + "\n"}, "7.feat: line 6 is empty"),
        ({"7.feat": FEAT + FEAT[:17]}, "7.feat: 1 row repeats an id"),
        ({"7.featnames": NAMES.replace("3 edu", "4 edu")}, "7.featnames: line 4 is '4 education"),
        ({"7.featnames": ""}, "7.featnames: "),
        ({"7.edges": "11 12\n11 99\n"}, "7.edges: 1 edge names a node that does not exist, first: line 2 ('11', '99')"),
        ({"7.edges": "11 12 3\n"}, "7.edges: found 3 fields a line; expected two"),
        ({"7.egofeat": "0 1\n"}, "7.egofeat: line 1 has 2 fields; expected 7, a 0 or 1"),
        ({"7.egofeat": "0 1 0 0 1 0 1\n" * 2}, "7.egofeat: has 2 lines; expected one"),
        (
            {"7.egofeat": "0 1 0 0 1 0 1\n", "7.feat": FEAT + "7" + FEAT[2:17]},
            "7.egofeat: describes '7', who has a row in 7.feat as well",
        ),
    ],
)
def test_refused(write, change, text):
    with pytest.raises(GraphError) as error:
        load(write({**FILES, **change}))
    assert str(error.value).startswith(text) and "\n" not in str(error.value)


def test_what_is_missing_is_named(write):
    with pytest.raises(GraphError, match=r"7.featnames\[.gz\] is missing"):
        load(write({"7.feat": FEAT, "7.edges": FILES["7.edges"]}))
