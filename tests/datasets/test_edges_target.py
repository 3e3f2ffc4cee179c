"""LastFM's and Deezer's layout: the target is the attribute."""

import pytest

from uge_core.datasets import load
from uge_core.datasets.layouts.base import Folder
from uge_core.errors import GraphError

EDGES = "node_1,node_2\n0,2\n1,2\n"
TARGET = "id,target\n0,0\n1,17\n2,3\n"


@pytest.mark.parametrize(
    ("stem", "name"), [("deezer_gendered", "gender"), ("lastfm_asia", "country"), ("other", "target")]
)
def test_the_target_has_the_name_of_what_it_is(write, stem, name):
    graph = load(write({f"{stem}_edges.csv.gz": EDGES, f"{stem}_target.csv": TARGET}))
    assert (graph.layout, graph.edges.tolist()) == ("edges-target", [[0, 1], [2, 2]])
    assert [a.name for a in graph.attributes] == [name]
    assert graph.attribute("TARGET") is graph.attribute(name)
    assert graph.attribute(name).labels == ("0", "3", "17")
    assert graph.attribute(name).codes.tolist() == [0, 2, 1]
    assert graph.defaults.unknown == "exclude"


@pytest.mark.parametrize("asked", ["target", "gender", "Gender"])
def test_asking_for_the_target_changes_nothing(write, asked):
    folder = write({"deezer_edges.csv": EDGES, "deezer_target.csv": TARGET})
    assert load(folder, attributes=[asked]).fingerprint == load(folder).fingerprint


@pytest.mark.parametrize(
    ("edges", "target", "text"),
    [
        (
            "a,b\n0,9\n",
            TARGET,
            "x_edges.csv: 1 edge names a node that does not exist, first: line 2 ('0', '9'); allowed: the 3 ids in column 'id' of "
            "x_target.csv",
        ),
        (EDGES, "id,target\n0,1\n0,2\n", "x_target.csv: 1 row repeats an id of column 'id', first: line 3 ('0')"),
        ("0,2\n1,2\n", TARGET, "x_edges.csv: seems to have no header line: line 1 holds '0', '2'"),
        (
            "p,q\nq,r\n",
            "id,target\np,0\nq,1\nr,0\n",
            "x_edges.csv: seems to have no header line: line 1 holds 'p', 'q'",
        ),
        ("a\n0\n", TARGET, "x_edges.csv: one column (a), two are needed"),
    ],
)
def test_blocking_problems(write, edges, target, text):
    with pytest.raises(GraphError) as error:
        load(write({"x_edges.csv": edges, "x_target.csv": target}))
    assert text in str(error.value)


def test_files_that_systems_leave_behind_are_no_data(write):
    files = {"lastfm_edges.csv": EDGES, "lastfm_target.csv": TARGET}
    droppings = {f"._{name}": b"\x00\x05\x16\x07" for name in files}
    droppings |= dict.fromkeys((".DS_Store", "Thumbs.db", "desktop.ini", "~$lastfm_target.csv", ".hidden.csv"), b"\0\1")
    folder = write(files | droppings)
    assert load(folder).num_edges == 2
    assert Folder.open(folder).files == tuple(sorted(files))


def test_twitchs_edges_name_new_ids(write):
    people = "id,days,mature,new_id\n" + "".join(f"{900 + i},{i},{i % 2 == 0},{i}\n" for i in (2, 0, 3, 1))
    graph = load(write({"x_edges.csv": "from,to\n0,1\n1,2\n2,3\n", "x_target.csv": people}))
    assert graph.ids(slice(None)) == ["2", "0", "3", "1"] and graph.layout == "edges-target"
    mature = graph.attribute("mature")
    assert [mature.labels[c] for c in mature.codes] == ["True", "True", "False", "False"]


@pytest.mark.parametrize("head", ["", "edge_id", "weight"])
def test_ends_are_found_among_other_columns(write, head):
    edges = f"{head},node_1,node_2\n" + "".join(f"{k + (head == 'weight')},{k},{(k * 5 + 1) % 12}\n" for k in range(12))
    target = "id,target\n" + "".join(f"{k},{k % 2}\n" for k in range(12))
    if head == "edge_id":
        with pytest.raises(GraphError, match="could be the ends of edges"):
            load(write({"x_edges.csv": edges, "x_target.csv": target}))
        return
    graph = load(write({"x_edges.csv": edges, "x_target.csv": target}))
    assert {tuple(sorted(map(int, graph.ids(e)))) for e in graph.edges.T} == {
        tuple(sorted((k, (k * 5 + 1) % 12))) for k in range(12) if k != (k * 5 + 1) % 12
    }
