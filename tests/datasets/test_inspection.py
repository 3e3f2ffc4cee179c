"""What is said about a graph before anything is trained."""

import json
from dataclasses import replace

import pytest

from uge_core.datasets import describe, inspect, load

NODES = "id,gender,city\n0,a,x\n1,a,x\n2,b,\n3,b,y\n4,b,y\n"
EDGES = "source,target\n0,1\n1,2\n2,3\n3,0\n0,0\n"


def test_record(write):
    graph = load(write({"nodes.csv": NODES, "edges.csv": EDGES}))
    record = inspect(graph)
    assert json.loads(json.dumps(record)) == json.loads(json.dumps(inspect(graph)))
    assert (record["num_nodes"], record["num_edges"], record["num_users"], record["num_items"]) == (5, 4, None, None)
    assert (record["layout"], record["bipartite"], record["directed"]) == ("tables", False, False)
    assert record["fingerprint"] == graph.fingerprint
    assert record["columns"][0] == {"file": "nodes.csv", "name": "id", "role": "id", "detail": ""}
    gender, city = record["attributes"]
    assert gender["sizes"] == {"a": 2, "b": 3}
    # Edges 0-1 aa, 1-2 ab, 2-3 bb, 0-3 ab: two of four; chance (2/5)^2 + (3/5)^2.
    assert gender["same_group_share"] == 0.5
    assert gender["chance"] == pytest.approx(0.52)
    # Node 2's city is empty: of 0-1 and 0-3 one is within; four known nodes, two of each.
    assert (city["unknown"], city["same_group_share"], city["chance"]) == (1, 0.5, 0.5)
    assert {m["code"] for m in record["messages"]} >= {"self-loops", "nodes-without-edges"}
    defaults = {"unknown": "exclude", "test_share": 0.1, "as_coded_rows": None}
    assert {k: record["defaults"][k] for k in defaults} == defaults


def test_mixing_against_chance(write):
    graph = load(write({"nodes.csv": NODES, "edges.csv": EDGES}))
    gender, city = inspect(graph)["attributes"]
    # Four edges over ten pairs of nodes: 1 aa, 6 ab, 3 bb.
    assert gender["mixing"] == [
        {"a": "a", "b": "a", "observed": 1, "expected": 0.4, "ratio": 2.5},
        {"a": "a", "b": "b", "observed": 2, "expected": 2.4, "ratio": 0.8333},
        {"a": "b", "b": "b", "observed": 1, "expected": 1.2, "ratio": 0.8333},
    ]
    # Node 2 has no city: of its four known nodes' six pairs 0-1 and 0-3 are edges.
    assert [(c["a"], c["b"], c["observed"], c["expected"]) for c in city["mixing"]] == [
        ("x", "x", 1, 0.333),
        ("x", "y", 1, 1.333),
        ("y", "y", 0, 0.333),
    ]
    for a in (gender, city):
        assert sum(c["observed"] for c in a["mixing"]) == pytest.approx(
            sum(c["expected"] for c in a["mixing"]), abs=0.01
        )
    lines = describe(graph).splitlines()
    assert "    a - a             1 edges, 0.4 by chance, ratio 2.50" in lines


def test_mixing_shows_the_largest_cells_and_keeps_all(write):
    n = 40
    nodes = "id,g\n" + "".join(f"{i},v{i % 20}\n" for i in range(n))
    edges = "source,target\n" + "".join(f"{i},{j}\n" for i in range(n) for j in range(i + 1, n) if (i * j) % 3 == 0)
    graph = load(write({"nodes.csv": nodes, "edges.csv": edges}))
    assert len(inspect(graph)["attributes"][0]["mixing"]) == 210
    text = describe(graph)
    assert text.count(" by chance, ratio ") == 12
    assert "the 12 with most edges of 210 pairs of groups; --json has all" in text


def test_mixing_of_a_bipartite_graph_is_against_the_other_side(write):
    users, pairs = "1::F::1::1::1\n2::M::1::1::1\n3::M::1::1::1\n", "user_id,movie_id\n1,1\n2,1\n2,2\n"
    graph = load(write({"users.dat": users, "user_movie_pairs.csv": pairs}))
    assert inspect(graph)["attributes"][0]["mixing"] == [
        {"a": "F", "b": "all items", "observed": 1, "expected": 1.0, "ratio": 1.0},
        {"a": "M", "b": "all items", "observed": 2, "expected": 2.0, "ratio": 1.0},
    ]


def test_no_share_where_no_edge_has_two_known_ends(write):
    nodes = "id,g\n0,a\n1,\n2,b\n3,\n"
    graph = load(write({"nodes.csv": nodes, "edges.csv": "source,target\n0,1\n2,3\n"}))
    assert inspect(graph)["attributes"][0]["same_group_share"] is None
    assert describe(graph)


def test_a_bipartite_graph_has_no_same_group_share(write):
    users, pairs = "1::F::1::1::1\n2::M::1::1::1\n", "user_id,movie_id\n1,1\n2,1\n"
    graph = load(write({"users.dat": users, "user_movie_pairs.csv": pairs}))
    record = inspect(graph)
    assert (record["bipartite"], record["num_users"], record["num_items"]) == (True, 2, 1)
    assert [a["same_group_share"] for a in record["attributes"]] == [None]
    assert "2 users and 1 items" in describe(graph)


def test_text_is_narrow_and_complete(write):
    wide = "id," + ",".join(f"a_rather_long_column_name_{i}" for i in range(12)) + ",town\n"
    rows = "".join(
        f"{n}," + ",".join(str(n + i / 8) for i in range(12)) + f",town {n % 90} of many\n" for n in range(200)
    )
    edges = "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(150))
    text = describe(load(write({"nodes.csv": wide + rows, "edges.csv": edges})))
    assert max(map(len, text.splitlines())) <= 88
    assert "200 nodes, 150 undirected edges" in text
    assert "and 84 more" in text
    assert "a_rather_long_column_name_5 and 6 more" in text
    assert "49 nodes without an edge" in text
    assert "missing values exclude, 10% of the edges held out" in text


def test_control_characters_reach_no_terminal(write):
    nodes = 'id,"b\x1b[2Jc",d\n' + "".join(f"{i},x\x1b]0;{i % 2}\x07\x9b,{'ab'[i % 2]}\n" for i in range(4))
    graph = load(write({"nodes.csv": nodes, "edges.csv": "source,target\n0,1\n2,3\n"}))
    assert [a.name for a in graph.attributes] == ["b[2Jc", "d"]
    assert graph.attributes[0].labels == ("x\x1b]0;0\x07\x9b", "x\x1b]0;1\x07\x9b")
    text = describe(graph)
    assert r"x\x1b]0;0\x07\x9b: 2, x\x1b]0;1\x07\x9b: 2" in text
    assert text.replace("\n", "").isprintable()
    strange = replace(graph, name="g\x1b[1m\n", attributes=(replace(graph.attributes[1], name="d\x1b[31m\r"),))
    text = describe(strange)
    assert text.replace("\n", "").isprintable()
    assert text.splitlines()[0].startswith(r"g\x1b[1m\n: 4 nodes")
    assert r"d\x1b[31m\r  nodes " in text


def test_text_without_attributes(write):
    text = describe(load(write({"nodes.csv": "id\n0\n1\n", "edges.csv": "source,target\n0,1\n"})))
    assert "No attributes: nothing to audit" in text
