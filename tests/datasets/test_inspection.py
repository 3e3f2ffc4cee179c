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
    assert {m["code"] for m in record["messages"]} == {"self-loops", "nodes-without-edges"}
    defaults = {"unknown": "exclude", "test_share": 0.1, "as_coded_rows": None}
    assert {k: record["defaults"][k] for k in defaults} == defaults


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
    assert "x]0;0: 2, x]0;1: 2" in text
    assert text.replace("\n", "").isprintable()
    strange = replace(graph, name="g\x1b[1m\n", attributes=(replace(graph.attributes[1], name="d\x1b[31m\r"),))
    text = describe(strange)
    assert text.replace("\n", "").isprintable()
    assert text.splitlines()[0].startswith("g[1m: 4 nodes")
    assert "d[31m      nodes " in text


def test_text_without_attributes(write):
    text = describe(load(write({"nodes.csv": "id\n0\n1\n", "edges.csv": "source,target\n0,1\n"})))
    assert "No attributes: nothing to audit" in text
