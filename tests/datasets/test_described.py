"""dataset.yaml: the schema, what it does to any files, and every refusal."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from uge_core.datasets import card, describe, load
from uge_core.errors import DatasetMissing, GraphError

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
PEOPLE = "person;age;region;pay;phone\n" + "".join(
    f"p{i};{[0, -1, 20, 31, 44.5, 60][i % 6]};{'NSW'[i % 3]};{i + 0.25};t{i}\n" for i in range(60)
)
FRIENDS = "from;when;to;strength\n" + "".join(f"p{i};1;p{(i + 1) % 60};{1 + i % 3}\n" for i in range(60))
CARD = """
name: my-town
licence: CC0
source: survey of 2024
edges: {file: friends.csv, source: from, target: to, weight: strength}
nodes: {file: people.csv, id: person}
separator: ";"
directed: true
attributes:
  age: {missing: [0, -1], bins: [30, 45]}
  region:
sensitive: [region]
ignore: [phone]
"""


@pytest.fixture
def town(write):
    def _town(text: str = CARD, **more):
        return write({"dataset.yaml": text, "people.csv": PEOPLE, "friends.csv.gz": FRIENDS, **more})

    return _town


def section(name: str) -> str:
    return DOCS.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]


def test_docs_list_the_schema():
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in section("Describing a dataset").splitlines()]
    rows = [r for r in rows if len(r) == 3 and r[0].startswith("`")]
    assert {r[0].strip("`"): r[1] for r in rows} == dict(card.SCHEMA)
    assert all(r[2] for r in rows)


def test_readmes_example_and_the_docstrings_are_valid(tmp_path):
    path = tmp_path / "dataset.yaml"
    path.write_text(re.search(r"```yaml\n(.*?)```", section("Describing a dataset"), re.DOTALL).group(1))
    assert card.read_card(path).get("name") == "my-town"
    text = card.__doc__.split("::\n", 1)[1].split("\nThe file is read", 1)[0]
    seen = {line.split("#")[0].strip() for line in text.splitlines()}
    for key in card.SCHEMA:
        assert any(s.startswith(f"{key.rpartition('.')[2]}:") for s in seen), key
    path.write_text(
        re.sub(r"\n(?:users|items|sides):[^\n]*(?:\n  [^\n]*)*", "", "\n".join(line[4:] for line in text.splitlines()))
    )
    assert card.read_card(path).attributes["age"].bins == "quantile:5"


def test_a_card_describes_any_files(town):
    graph = load(town())
    assert (graph.name, graph.layout, graph.num_nodes, graph.num_edges) == ("my-town", "dataset-yaml", 60, 60)
    age = graph.attribute("age")
    assert age.labels == ("under 30", "30 to under 45", "45+")
    assert (age.unknown.sum(), age.ordered) == (20, True)
    assert [a.name for a in graph.attributes] == ["age", "region"]
    assert graph.feature_names == ("pay",)
    what = {c.name: (c.role, c.detail) for c in graph.columns}
    assert what["region"] == ("attribute", "sensitive")
    assert what["phone"] == ("ignored", "by dataset.yaml")
    assert what["strength"][0] == "weight"
    assert (what["person"][0], what["from"][0], what["to"][0]) == ("id", "source", "target")
    codes = {m.code for m in graph.messages}
    assert codes >= {"origin", "directed", "weights"}
    assert graph.edge_weights[graph.edges[0] == 4].tolist() == [2]  # p4 -> p5; p59 -> p0 runs from the larger number
    assert (graph.directions == np.where(graph.edges[1] - graph.edges[0] == 1, 1, -1)).all()
    assert "licence CC0, source survey of 2024" in describe(graph)
    assert "probable-missing-code" not in codes


def test_a_card_comes_first_and_can_be_named(town):
    folder = town(**{"edges.csv": "source,target\n0,1\n", "nodes.csv": "id,g\n0,a\n1,b\n"})
    assert load(folder).layout == "dataset-yaml"
    assert load(folder / "dataset.yaml").fingerprint == load(folder).fingerprint
    assert load(folder / "edges.csv").layout == "tables"


def test_the_users_attributes_replace_the_cards(town):
    graph = load(town(), attributes="region")
    assert [a.name for a in graph.attributes] == ["region"]
    assert {c.name: c.detail for c in graph.columns}["age"] == "not named by --attributes"
    with pytest.raises(GraphError, match="unknown column 'colour'"):
        load(town(), attributes="colour")


@pytest.mark.parametrize(
    ("bins", "labels", "sizes"),
    [
        ("quantile:4", ["under 16", "16-30", "31-45", "46+"], [15, 15, 15, 15]),
        ("width:20", ["under 20", "20-39", "40-59", "60+"], [19, 20, 20, 1]),
        ("[2, 3, 50]", ["under 2", "2", "3-49", "50+"], [1, 1, 47, 11]),
    ],
)
def test_bins(write, bins, labels, sizes):
    text = f"edges: e.csv\nnodes: n.csv\nattributes: {{age: {{bins: '{bins}'}}}}\n".replace("'[", "[").replace(
        "]'", "]"
    )
    nodes = "id,age\n" + "".join(f"n{i},{i}\n" for i in range(1, 61))
    graph = load(write({"dataset.yaml": text, "n.csv": nodes, "e.csv": "source,target\nn1,n2\n"}))
    assert list(graph.attribute("age").labels) == labels
    assert graph.attribute("age").sizes.tolist() == sizes


def test_lists_choose_features(town):
    base = "edges: friends.csv\nnodes: people.csv\nseparator: ';'\n"
    graph = load(town(base + "attributes: [region]\nfeatures: [age]\n"))
    assert graph.feature_names == ("age",)
    assert {c.name: c.detail for c in graph.columns}["pay"] == "not named in dataset.yaml"
    graph = load(town(base + "features: [pay]\n"))
    assert [a.name for a in graph.attributes] == ["region"]  # some ages are decimal numbers
    assert load(town(base)).feature_names == ("age", "pay")
    assert load(town(base + "features: []\n")).features is None


USERS = "who,sex\n" + "".join(f"u{i},{'fm'[i % 2]}\n" for i in range(12))
TITLES = "title,kind\n" + "".join(f"t{i},{'ab'[i % 2]}\n" for i in range(8))
SEEN = "user,film\n" + "".join(f"u{i % 12},t{i % 7}\n" for i in range(40))


def test_two_sides(write):
    text = "edges: seen.csv\nusers: {file: u.csv, id: who}\nitems: {file: t.csv, id: title}\n"
    graph = load(write({"dataset.yaml": text, "u.csv": USERS, "t.csv": TITLES, "seen.csv": SEEN}))
    assert (graph.num_users, graph.num_items, graph.num_nodes) == (12, 7, 19)
    assert graph.ids([0, 12, 18]) == ["u0", "t0", "t6"]
    assert [(a.name, a.side) for a in graph.attributes] == [("sex", "users"), ("kind", "items")]
    assert {m.code for m in graph.messages} >= {"items-without-edges"}
    alone = load(write({"dataset.yaml": "edges: seen.csv\nusers: u.csv\n"}))
    assert (alone.num_users, alone.num_items) == (12, 7)
    assert [a.name for a in alone.attributes] == ["sex"]
    assert "ids-on-both-sides" not in {m.code for m in alone.messages}


def test_ids_of_two_sides_may_be_the_same(write):
    text = "edges: seen.csv\nusers: u.csv\n"
    files = {
        "dataset.yaml": text,
        "u.csv": USERS.replace("u", "1"),
        "seen.csv": SEEN.replace("u", "1").replace("t", "1"),
    }
    graph = load(write({**files, "seen.csv": files["seen.csv"].replace("1ser", "user")}))
    assert graph.ids([0, 12]) == ["user:10", "item:10"]
    (warning,) = [m for m in graph.messages if m.code == "ids-on-both-sides"]
    assert (warning.level, warning.count) == ("warning", 40)
    assert "name items in dataset.yaml" in warning.remedy


def test_two_sides_in_one_table(write):
    nodes = "id,kind,group,born\n" + "".join(f"u{i},person,{'xy'[i % 2]},\n" for i in range(12))
    nodes += "".join(f"t{i},title,{'ab'[i % 2]},{1990 + i % 2}\n" for i in range(8))
    text = "edges: seen.csv\nnodes: n.csv\nsides: {column: kind, users: person}\n"
    links = SEEN + "t7,u3\n"
    graph = load(write({"dataset.yaml": text, "n.csv": nodes, "seen.csv": links}))
    assert (graph.num_users, graph.num_items) == (12, 8)
    assert [(a.name, a.side, a.labels) for a in graph.attributes] == [
        ("group", "users", ("x", "y")),
        ("item_group", "items", ("a", "b")),
        ("born", "items", ("1990", "1991")),
    ]
    assert graph.ids([0, 12, 19]) == ["u0", "t0", "t7"]
    assert len({(c.file, c.name) for c in graph.columns}) == len(graph.columns)


def test_an_edge_inside_one_side_blocks(write):
    nodes = "id,kind\nu1,person\nu2,person\nt1,title\n"
    links = "source,target\nu1,t1\nu1,u2\n"
    text = "edges: e.csv\nnodes: n.csv\nsides: {column: kind, users: person}\n"
    expected = "e.csv: 1 edge inside one side, first: line 3 ('u1', 'u2'); every edge of a bipartite graph joins a user"
    with pytest.raises(GraphError) as error:
        load(write({"dataset.yaml": text, "n.csv": nodes, "e.csv": links}))
    assert str(error.value).startswith(expected)
    text = "edges: e.csv\nusers: u.csv\nitems: t.csv\n"
    with pytest.raises(GraphError) as error:
        load(write({"dataset.yaml": text, "u.csv": "id\nu1\nu2\n", "t.csv": "id\nt1\n"}))
    assert str(error.value).startswith(expected)


def test_parquet_encoding_and_matrices(write):
    import io

    import scipy.sparse as sp

    buffer = io.BytesIO()
    sp.save_npz(buffer, sp.csr_array(np.ones((3, 3))))
    text = "edges: m.npz\nnodes: n.csv\nencoding: latin-1\n"
    nodes = "id,ort\n1,Zürich\n2,Köln\n3,Köln\n".encode("latin-1")
    graph = load(write({"dataset.yaml": text, "n.csv": nodes, "m.npz": buffer.getvalue()}))
    assert graph.attribute("ort").labels == ("Köln", "Zürich")
    assert graph.num_edges == 3


FILES = "edges: friends.csv\nnodes: people.csv\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "dataset.yaml: found nothing; a mapping with the keys edges and nodes is needed"),
        ("- 1\n", "dataset.yaml: found [1]; a mapping"),
        ("a: [\n", "dataset.yaml: line 2: "),
        ("name: x\n", "dataset.yaml: edges is missing"),
        (
            FILES + "colour: red\n",
            "dataset.yaml: unknown key 'colour'; allowed: name, licence, source, edges, nodes, users",
        ),
        (FILES + "lisence: x\n", "Did you mean 'licence'?"),
        ("nodes: {ids: a}\n", "dataset.yaml: unknown key in nodes 'ids'; allowed: file, id"),
        (
            FILES + "sides: person\n",
            "dataset.yaml: sides: found 'person'; allowed: a mapping with the keys column, users",
        ),
        ("edges: a.csv\nnodes: {id: a}\n", "dataset.yaml: nodes.file is missing; it must name a file"),
        ("edges: 5\n", "dataset.yaml: edges: found 5; allowed: a mapping with the keys file, source, target, weight"),
        (FILES + "name: [a]\n", "dataset.yaml: name: found ['a']; allowed: text"),
        (FILES + "directed: maybe\n", "dataset.yaml: directed: found 'maybe'; allowed: true or false"),
        (FILES + "separator: ';;'\n", "dataset.yaml: separator: found ';;'; allowed: one character, tab, or blank"),
        (
            FILES + "encoding: klingon\n",
            "dataset.yaml: encoding: found 'klingon'; allowed: the name of a text encoding",
        ),
        (FILES + "encoding: rot13\n", "dataset.yaml: encoding: found 'rot13'; allowed: the name of a text encoding"),
        (FILES + "ignore: phone\n", "dataset.yaml: ignore: found 'phone'; allowed: list of names"),
        (FILES + "ignore: [no]\n", "dataset.yaml: ignore: found False; allowed: names of columns (write yes, no,"),
        (
            FILES + "attributes: {age: {missing: 0}}\n",
            "dataset.yaml: attributes.age.missing: found 0; allowed: list of values",
        ),
        (
            FILES + "attributes: {age: {missing: [no]}}\n",
            "dataset.yaml: attributes.age.missing: found [False]; allowed: list of numbers and texts",
        ),
        (
            FILES + "attributes: {age: {bins: 5}}\n",
            "dataset.yaml: attributes.age.bins: found 5; allowed: quantile:N, width:W, or a list of rising numbers",
        ),
        (FILES + "attributes: {age: {bins: [5, 5]}}\n", "dataset.yaml: attributes.age.bins: found [5, 5]; allowed"),
        (
            FILES + "attributes: {age: {bins: 'quantile:1'}}\n",
            "dataset.yaml: attributes.age.bins: found 'quantile:1'; allowed",
        ),
        (
            FILES + "attributes: {age: {bins: 'width:0'}}\n",
            "dataset.yaml: attributes.age.bins: found 'width:0'; allowed",
        ),
        (
            FILES + "attributes: {age: {bands: 5}}\n",
            "dataset.yaml: unknown key in attributes.age 'bands'; allowed: missing, bins, ordered",
        ),
        (
            FILES + "attributes: {age: 5}\n",
            "dataset.yaml: attributes.age: found 5; allowed: a mapping with the keys missing, bins, ordered",
        ),
        (
            FILES + "attributes: [age]\nignore: [AGE]\n",
            "dataset.yaml: AGE stands in attributes and again in ignore; keep one",
        ),
        (
            FILES + "attributes: [age]\nsensitive: [region]\n",
            "dataset.yaml: sensitive: unknown attribute 'region'; allowed: age",
        ),
        ("edges: friends.csv\n", "dataset.yaml: name either nodes, or users"),
        (
            "edges: ../x.csv\nnodes: people.csv\n",
            "dataset.yaml: edges.file: found '../x.csv'; allowed: a file in the folder",
        ),
        (
            "edges: /etc/passwd\nnodes: people.csv\n",
            "dataset.yaml: edges.file: found '/etc/passwd'; allowed: a file in the folder",
        ),
        (FILES + "sides: {column: region}\n", "dataset.yaml: sides needs both column and users"),
        ("name: a\nname: b\n", "dataset.yaml: line 2: key 'name' stands twice"),
        ("a: &x [1]\nb: *x\n", "dataset.yaml: line 2: aliases (*name) are not allowed"),
        ("name: !!python/object/apply:os.system [id]\n", "dataset.yaml: line 1: could not determine a constructor"),
        ("[" * 5000, "dataset.yaml: cannot be read as YAML"),
        (
            "edges: friends.csv\nnodes: {file: people.csv, id: nobody}\nseparator: ';'\n",
            "dataset.yaml: nodes.id: unknown column 'nobody'; allowed: person, age",
        ),
        (
            FILES + "separator: ';'\nattributes: [colour]\n",
            "dataset.yaml: attributes: unknown column 'colour'; allowed: person, age",
        ),
        (
            FILES + "separator: ';'\nfeatures: [colour]\n",
            "dataset.yaml: features: unknown column 'colour'; allowed: person, age",
        ),
        (
            "edges: {file: friends.csv, source: to, target: to}\nnodes: people.csv\nseparator: ';'\n",
            "dataset.yaml: edges.source and edges.target are both 'to'",
        ),
        (
            FILES + "separator: ';'\nattributes: {pay: {bins: 'width:0.1'}}\n",
            "people.csv: column 'pay': bins of width 0.1 over 0.25 to 59.25 are more than the 50 allowed",
        ),
        (
            FILES + "separator: ';'\nattributes: {region: {bins: 'width:1'}}\n",
            "people.csv: column 'region' must hold numbers",
        ),
        (
            FILES + "separator: ';'\nsides: {column: region, users: Q}\n",
            "dataset.yaml: sides.users: 'Q' must be the value of some nodes "
            "and not of all; found in region: 'N', 'S', 'W'",
        ),
    ],
)
def test_refusals(town, text, message):
    with pytest.raises(GraphError) as error:
        load(town(text))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(town):
    with pytest.raises(DatasetMissing, match=r"dataset.yaml: edges.file: x.csv is not in the folder; found: dataset"):
        load(town("edges: x.csv\nnodes: people.csv\n"))


def test_a_link_out_of_the_folder_is_refused(town, tmp_path):
    (tmp_path / "secret.csv").write_text(FRIENDS)
    folder = town("edges: e.csv\nnodes: people.csv\n")
    (folder / "e.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(GraphError, match=r"edges.file: found 'e.csv'; allowed: a file in the folder"):
        load(folder)


def test_a_bipartite_graph_keeps_weights_and_has_no_direction(write):
    card_text = "users: users.csv\nedges: {file: e.csv, weight: stars}\ndirected: true\n"
    edges = "user,item,stars\nu,x,5\nv,x,1\nv,y,2\n"
    graph = load(write({"dataset.yaml": card_text, "users.csv": "id,g\nu,a\nv,b\n", "e.csv": edges}))
    assert (graph.bipartite, graph.directed, graph.edge_weights.tolist()) == (True, False, [5, 1, 2])
    assert {m.code for m in graph.messages} >= {"weights", "direction-unused"}
    with pytest.raises(GraphError, match="3 edges without a usable weight in column 'stars'"):
        load(write({"e.csv": edges.replace("5", "a").replace("1", "b").replace("2", "c")}))


LINKED = "a,b,weight\nn0,n1,1\nn1,x,2\nn2,n3,3\ny,n0,4\nn1,y,5\n"
KNOWN = "id,g,age\nn0,a,10\nn1,b,20\nn2,a,30\nn3,b,40\n"


def linked(write, policy, edges=LINKED, nodes=KNOWN):
    card = f"edges: {{file: e.csv, source: a, target: b}}\nnodes: {{file: n.csv, id: id}}\n{policy}\n"
    card += "attributes: [g]\nfeatures: [age]\n"
    return write({"dataset.yaml": card, "e.csv": edges, "n.csv": nodes})


@pytest.mark.parametrize("policy", ["", "unknown_nodes: refuse"])
def test_edges_to_unlisted_nodes_refuse_the_graph_and_name_the_key(write, policy):
    with pytest.raises(GraphError) as error:
        load(linked(write, policy, LINKED + "n3,z,1\n"))
    assert str(error.value) == (
        "e.csv: 4 edges name a node that does not exist, first: line 3 ('n1', 'x'), line 5 ('y', 'n0'), "
        "line 6 ('n1', 'y'); allowed: the 4 ids in column 'id' of n.csv, compared as text; add the nodes, remove these "
        "rows, or write unknown_nodes: drop (leaves these edges out) or unknown_nodes: add (makes nodes whose "
        "attributes are unknown) in dataset.yaml"
    )


def test_edges_to_unlisted_nodes_are_dropped_and_counted(write):
    graph = load(linked(write, "unknown_nodes: drop"))
    assert list(graph.ids(slice(None))) == ["n0", "n1", "n2", "n3"]
    assert graph.edges.T.tolist() == [[0, 1], [2, 3]] and graph.edge_weights.tolist() == [1, 3]
    (said,) = (m for m in graph.messages if m.code == "unknown-nodes")
    assert (said.level, said.count) == ("warning", 3)
    assert "e.csv: 3 edges of 5 left out" in said.text and "no row in n.csv" in said.text
    assert said.examples == ("line 3 ('n1', 'x'), line 5 ('y', 'n0'), line 6 ('n1', 'y')",)


def test_unlisted_nodes_are_added_with_unknown_attributes(write):
    graph = load(linked(write, "unknown_nodes: add"))
    assert list(graph.ids(slice(None))) == ["n0", "n1", "n2", "n3", "y", "x"]
    named = {tuple(sorted(graph.ids(e))): w for e, w in zip(graph.edges.T, graph.edge_weights, strict=True)}
    assert named == {("n0", "n1"): 1, ("n1", "x"): 2, ("n2", "n3"): 3, ("n0", "y"): 4, ("n1", "y"): 5}
    group = graph.attribute("g")
    assert group.labels == ("a", "b") and group.unknown.tolist() == [False] * 4 + [True] * 2
    assert group.codes[:4].tolist() == [0, 1, 0, 1]
    assert graph.features[:, 0].tolist() == [10, 20, 30, 40, 25, 25]
    (said,) = (m for m in graph.messages if m.code == "unknown-nodes")
    assert (said.level, said.count, said.examples) == ("warning", 2, ("y", "x"))
    assert "2 nodes without a row in n.csv" in said.text and "3 edges name them" in said.text


@pytest.mark.parametrize("policy", ["drop", "add"])
def test_a_graph_without_unlisted_nodes_is_the_same_under_every_policy(write, policy):
    edges = "a,b,weight\nn0,n1,1\nn2,n3,3\n"
    plain = load(linked(write, "", edges))
    graph = load(linked(write, f"unknown_nodes: {policy}", edges))
    assert graph.fingerprint == plain.fingerprint and graph.messages == plain.messages


def test_dropping_every_edge_is_refused(write):
    with pytest.raises(GraphError, match=r"every edge names a node that has no row in n.csv.*unknown_nodes: drop"):
        load(linked(write, "unknown_nodes: drop", "a,b\nn0,x\ny,n1\n"))
    with pytest.raises(GraphError, match="1 id would match without the blanks"):
        load(linked(write, "unknown_nodes: drop", 'a,b\nn0,"n1 "\n'))


@pytest.mark.parametrize("value", ["maybe", "[drop]", "true"])
def test_another_policy_is_refused_with_those_there_are(write, value):
    with pytest.raises(GraphError, match=r"unknown_nodes: found .*; allowed: refuse, drop, or add"):
        load(linked(write, f"unknown_nodes: {value}"))


@pytest.mark.parametrize("policy", ["refuse", "drop", "add"])
def test_unlisted_users_and_items(write, policy):
    card = (
        "edges: {file: e.csv, source: who, target: what}\nusers: {file: u.csv, id: who}\n"
        f"items: {{file: i.csv, id: what}}\nunknown_nodes: {policy}\n"
    )
    files = {
        "u.csv": "who,sex\nu0,f\nu1,m\nu2,f\n",
        "i.csv": "what,kind\nt0,a\nt1,b\n",
        "e.csv": "who,what\nu0,t0\nu1,t1\nu9,t0\nu2,t7\n",
    }
    folder = write({"dataset.yaml": card, **files})
    if policy == "refuse":
        with pytest.raises(GraphError, match=r"2 edges name a node that does not exist.*unknown_nodes: drop"):
            load(folder)
        return
    graph = load(folder)
    named = {tuple(graph.ids(e)) for e in graph.edges.T}
    sex, kind = graph.attribute("sex"), graph.attribute("kind")
    if policy == "drop":
        assert (graph.num_users, graph.num_items) == (3, 2) and named == {("u0", "t0"), ("u1", "t1")}
        return
    assert (graph.num_users, graph.num_items) == (4, 3)
    assert named == {("u0", "t0"), ("u1", "t1"), ("u9", "t0"), ("u2", "t7")}
    assert list(graph.ids(slice(None))) == ["u0", "u1", "u2", "u9", "t0", "t1", "t7"]
    assert sex.codes[:4].tolist() == [0, 1, 0, -1] and kind.codes[4:].tolist() == [0, 1, -1]
    with pytest.raises(GraphError, match="1 edge inside one side"):  # t1 would be made a user
        load(write({"e.csv": "who,what\nu0,t0\nt1,t0\n"}))


def test_unlisted_users_whose_items_no_file_describes(write):
    card = "edges: {file: e.csv, source: who, target: what}\nusers: {file: u.csv, id: who}\nunknown_nodes: "
    files = {"u.csv": "who,sex\nu0,f\nu1,m\n", "e.csv": "who,what\nu0,t0\nu1,t1\nu9,t2\n"}
    graph = load(write({"dataset.yaml": card + "drop", **files}))
    assert list(graph.ids(slice(None))) == ["u0", "u1", "t0", "t1"]
    assert "items-without-edges" not in {m.code for m in graph.messages}
    graph = load(write({"dataset.yaml": card + "add", **files}))
    assert list(graph.ids(slice(None))) == ["u0", "u1", "u9", "t0", "t1", "t2"]
    assert {tuple(graph.ids(e)) for e in graph.edges.T} == {("u0", "t0"), ("u1", "t1"), ("u9", "t2")}


def test_the_side_of_an_added_node_would_be_a_guess(write):
    card = "edges: {file: e.csv}\nnodes: {file: n.csv, id: id}\nsides: {column: kind, users: p}\nunknown_nodes: "
    files = {"n.csv": "id,kind,g\na,p,x\nb,p,y\nt,f,z\n", "e.csv": "source,target\na,t\nb,t\nc,t\n"}
    with pytest.raises(GraphError, match=r"unknown_nodes: drop in dataset.yaml.*column 'kind' must tell the side"):
        load(write({"dataset.yaml": card + "add", **files}))
    graph = load(write({"dataset.yaml": card + "drop", **files}))
    assert {tuple(graph.ids(e)) for e in graph.edges.T} == {("a", "t"), ("b", "t")}


def test_a_matrix_knows_all_its_nodes(write):
    folder = write({"dataset.yaml": "edges: m.npz\nnodes: n.csv\nunknown_nodes: add\n", "n.csv": KNOWN, "m.npz": b"x"})
    with pytest.raises(GraphError, match="unknown_nodes is for a table of edges"):
        load(folder)


def test_tables_without_a_card_name_the_key_and_how_to_begin_one(write):
    folder = write({"edges.csv": "source,target\nn0,n1\nn1,x\n", "nodes.csv": KNOWN})
    with pytest.raises(GraphError, match=r"unknown_nodes: drop .*which `uge data describe FOLDER --write` begins"):
        load(folder)


@pytest.mark.parametrize("card", [None, "edges: edges.npz\nnodes: {file: nodes.csv, id: id}\n"])
def test_a_matrix_whose_rows_are_counted_in_another_order_is_refused(write, card):
    buffer = io.BytesIO()
    sp.save_npz(buffer, sp.csr_array(np.eye(12, k=1)))
    for head, ids in (("id", [*range(1, 12), 0]), ("nr", [*range(2, 13), 1])):
        nodes = f"{head},g\n" + "".join(f"{i},{'ab'[k % 2]}\n" for k, i in enumerate(ids))
        files = {"edges.npz": buffer.getvalue(), "nodes.csv": nodes}
        with pytest.raises(GraphError, match=f"column '{head}' counts the nodes in another order than the rows"):
            load(write(files | ({"dataset.yaml": card.replace("id: id", f"id: {head}")} if card else {})))


def test_one_named_end_is_an_end(write):
    edges = "a,source,target\n" + "".join(f"p{i},x{i},p{(i + 1) % 20}\n" for i in range(20))
    nodes = "id,g\n" + "".join(f"p{i},{'ab'[i % 2]}\n" for i in range(20))
    graph = load(
        write({"dataset.yaml": "edges: {file: e.csv, source: a}\nnodes: n.csv\n", "e.csv": edges, "n.csv": nodes})
    )
    assert graph.num_edges == 20 and {c.name for c in graph.columns if c.role == "source"} | {"target"} == {
        "a",
        "target",
    }
