"""FairGNN's raw Pokec files."""

import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError
from uge_core.graph.graph import UNKNOWN

PROFILES = """user_id,public,completion_percentage,gender,region,AGE,I_am_working_in_field,pocuvanie hudby
1,1,14,1.0,0,26.0,-1,1
0131075,0,33,1.0,1,0.0,2,0
6,1,50,0.0,1,19.0,0,1
9,1,50,0.0,1,26.0,-1,1
"""
FRIENDS = "1\t6\n1\t777\n6\t1\n6\t0131075\n888\t999\n"
FILES = {"region_job_2.csv.gz": PROFILES, "region_job_2_relationship.txt": FRIENDS}


def test_profiles_and_friends(write):
    graph = load(write(FILES))
    assert (graph.layout, graph.num_nodes, graph.edges.tolist()) == ("fairgnn", 4, [[0, 1], [2, 2]])
    assert graph.ids(slice(None)) == ["1", "0131075", "6", "9"]
    assert [a.name for a in graph.attributes] == ["gender", "region", "AGE"]
    assert graph.attribute("age").codes.tolist() == [1, UNKNOWN, 0, 1]
    assert graph.attribute("age").labels == ("19.0", "26.0")
    assert graph.feature_names == ("public", "completion_percentage", "pocuvanie hudby")
    assert graph.features[1].tolist() == [0, 33, 0]
    assert graph.defaults.unknown == "level"
    counts = {m.code: (m.level, m.count, m.examples) for m in graph.messages}
    assert counts["edges-without-profile"] == ("note", 2, ("1 - 777", "888 - 999"))
    assert counts["duplicate-edges"][1] == 1
    assert counts["nodes-without-edges"][1] == 1
    assert {c.name: c.role for c in graph.columns}["I_am_working_in_field"] == "label"


def test_the_label_asked_for_knows_its_missing_code(write):
    field = load(write(FILES), attributes=["i_am_working_in_field"]).attribute("I_am_working_in_field")
    assert field.labels == ("0", "2")
    assert field.codes.tolist() == [UNKNOWN, 1, 0, UNKNOWN]
    assert field.unknown_label == "-1"


def test_a_feature_asked_for_leaves_the_features(write):
    graph = load(write(FILES), attributes=["public"])
    assert graph.attribute("public").labels == ("0", "1")
    assert graph.feature_names == ("completion_percentage", "pocuvanie hudby")
    assert [a.name for a in graph.attributes] == ["public"]
    what = {c.name: (c.role, c.detail) for c in graph.columns}
    assert {what[name] for name in ("gender", "region", "AGE")} == {("ignored", "not named by --attributes")}


def test_a_renamed_column_asked_for_is_read_as_text(write):
    profiles = PROFILES.replace("pocuvanie hudby", '"hudba, tanec "').replace(",1\n", ",01\n")
    graph = load(write({**FILES, "region_job_2.csv.gz": profiles}), attributes="hudba_ tanec")
    assert graph.attribute("hudba_ tanec").labels == ("0", "01")


def test_two_regions_in_one_folder(write):
    folder = write({**FILES, "region_job.csv": PROFILES, "region_job_relationship.txt.gz": FRIENDS})
    with pytest.raises(GraphError, match=r"2 graphs in one folder; name one of: .*:region_job, .*:region_job_2$"):
        load(folder)
    assert load(f"{folder}:region_job").fingerprint == load(f"{folder}:region_job_2").fingerprint


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"region_job_2_relationship.txt": "5\t7\n"},
            "1 row of 1 dropped, as one end has no row in region_job_2.csv.gz; none is left: do the two files "
            "belong together?",
        ),
        (
            {"region_job_2_relationship.txt": "1,6\n"},
            "region_job_2_relationship.txt: line 1 has 1 fields separated by '\\t', expected 2",
        ),
        ({"region_job_2_relationship.txt": "1\t6\n1\n"}, "1 row with nothing in column 'target', first: line 2"),
        ({"region_job_2_relationship.txt": "1\t1\n"}, "made: the graph has only self-loops"),
        (
            {"region_job_2.csv.gz": "id,gender\n1,0\n"},
            "region_job_2.csv.gz: column 'user_id' is missing from the header; found: id, gender",
        ),
        (
            {"region_job_2.csv.gz": "user_id,gender\n1,0\n1,1\n"},
            "region_job_2.csv.gz: 1 row repeats an id of column 'user_id', first: line 3 ('1')",
        ),
    ],
)
def test_blocking_problems(write, change, text):
    with pytest.raises(GraphError) as error:
        load(write({**FILES, **change}))
    assert text in str(error.value)
