"""Small files of kinds that people have, read right or refused for the true reason; see ../shared/cases."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from uge_core.audit import audit_embedding
from uge_core.datasets import load
from uge_core.datasets.embeddings import read_embedding
from uge_core.datasets.mapping import guess_mapping, join_counts, read_pair, table_roles
from uge_core.datasets.proposal import propose
from uge_core.errors import EmbeddingError, GraphError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import split_links

pytestmark = pytest.mark.realdata

# Nodes, edges, attributes, and codes of what must be said.
READ: dict[str, tuple[int, int, set[str], set[str]]] = {
    "01-edges-index-column": (80, 60, {"region"}, set()),
    "02-nodes-index-column": (80, 160, {"region"}, {"columns-by-values"}),
    "05-gml-labels/graph": (1200, 4000, {"region"}, {"labels-and-ids"}),
    "11-from-to-years": (2500, 5000, {"region"}, {"columns-by-values"}),
    "13-missing-codes": (400, 900, {"region", "age", "trust"}, {"probable-missing-code"}),
    "14-gexf-dynamic": (80, 160, {"region"}, set()),
    "15-gephi-layout": (80, 160, {"region", "Modularity Class"}, {"drawing-columns"}),
    "16-pyg-to-undirected": (80, 160, {"gender"}, set()),
    "17-gexf-1.3-www": (80, 160, {"region"}, set()),
    "18-gml-repeated-edges": (80, 160, {"value"}, {"duplicate-edges"}),
    "19-graphml-int-nan": (80, 160, {"region", "age"}, {"values-not-given"}),
    "20-header-line-break": (80, 160, {"Gender (as you describe it)", "region"}, set()),
    "21-qualtrics-rows": (80, 160, {"Q1", "Q2"}, {"survey-rows"}),
    "22-excel-sep-line": (80, 160, {"region"}, set()),
    "24-blank-separator": (80, 160, {"region"}, set()),
    "25-appledouble": (80, 160, {"country"}, set()),
    "29-complete-graph": (60, 1770, {"region"}, set()),
    "32-snap-comments": (80, 160, {"region"}, {"comment-lines"}),
}
REFUSED = {
    "04-unclosed-quotes": "line 12: a quotation mark is opened and closed only in line 92",
    "06-graphml-two-graphs": r"holds 2 graphs: wave1 \(80 nodes, 70 edges\); wave2 \(80 nodes, 90 edges\)",
    "07-graphml-nested": "1 graph nested in others, first in node 'dept'",
    "23-backslash-quotes": "line 7: quotation marks inside cells are escaped by a backslash",
    "30-float-ids": "41 ids would match as numbers",
}


@pytest.fixture
def case(shared_data: Callable[[str], Path]) -> Callable[[str], Path]:
    return lambda name: shared_data(f"../cases/{name}")


def within(graph: AttributedGraph, name: str) -> float:
    codes = graph.attribute(name).codes
    return float(np.mean(codes[graph.edges[0]] == codes[graph.edges[1]]))


@pytest.mark.parametrize("name", READ)
def test_read_right(name: str, case: Callable[[str], Path]) -> None:
    graph = load(case(name))
    people, edges, attributes, codes = READ[name]
    assert (graph.num_nodes, graph.num_edges) == (people, edges)
    assert {a.name for a in graph.attributes} == attributes
    assert codes <= {m.code for m in graph.messages}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_for_the_true_reason(name: str, case: Callable[[str], Path]) -> None:
    with pytest.raises(GraphError, match=REFUSED[name]):
        load(case(name))


def test_edges_are_never_row_numbers(case: Callable[[str], Path]) -> None:
    folder = case("01-edges-index-column")
    written = pd.read_csv(folder / "edges.csv", dtype=str)
    graph = load(folder)
    ids = graph.ids(slice(None))
    found = {tuple(sorted((ids[a], ids[b]))) for a, b in graph.edges.T}
    assert found == {tuple(sorted(p)) for p in zip(written["person1"], written["person2"], strict=True)}


def test_people_are_those_that_edges_name(case: Callable[[str], Path]) -> None:
    folder = case("02-nodes-index-column")
    graph = load(folder)
    region = pd.read_csv(folder / "nodes.csv", dtype=str).set_index("person_id")["region"]
    own = graph.attribute("region")
    assert [own.labels[c] for c in own.codes] == [region[i] for i in graph.ids(slice(None))]
    assert within(graph, "region") == pytest.approx(0.844, abs=5e-4)


def test_years_are_no_people(case: Callable[[str], Path]) -> None:
    graph = load(case("11-from-to-years"))
    ids = graph.ids(slice(None))
    written = pd.read_csv(case("11-from-to-years") / "edges.csv", dtype=str)
    pairs = {tuple(sorted(p)) for p in zip(written["person"], written["colleague"], strict=True)}
    assert {tuple(sorted((ids[a], ids[b]))) for a, b in graph.edges.T} == pairs


def test_codes_are_counted(case: Callable[[str], Path]) -> None:
    found = [m for m in load(case("13-missing-codes")).messages if m.code == "probable-missing-code"]
    words = " ".join(f"{m.text} {' '.join(m.examples)}" for m in found)
    assert all(code in words for code in ("-9", "-8", "-1", "77", "88", "99")) and "20" in words


def test_one_value_of_a_time_is_the_attribute(case: Callable[[str], Path]) -> None:
    own = load(case("14-gexf-dynamic")).attribute("region")
    assert dict(zip(own.labels, np.bincount(own.codes).tolist(), strict=True)) == {"N": 46, "S": 34}


def test_a_drawing_is_neither_attribute_nor_feature(case: Callable[[str], Path]) -> None:
    graph = load(case("15-gephi-layout"))
    roles = {c.name: c.role for c in graph.columns}
    assert {roles[n] for n in ("size", "r", "g", "b", "x", "y")} == {"ignored"}


def test_an_embedding_by_labels_belongs_to_the_people(case: Callable[[str], Path]) -> None:
    folder = case("05-gml-labels")
    graph = load(folder / "graph")
    z = read_embedding(folder / "emb.csv", graph)
    split = split_links(graph)
    rows = audit_embedding(z, graph, split, attributes=["region"], attackers=["linear"]).rows
    assert next(r.value for r in rows if r.metric == "auc" and r.attacker == "linear") > 0.99


def test_rows_by_position_beside_ids_in_another_order_are_asked_for(case: Callable[[str], Path]) -> None:
    folder = case("09-npy-order")
    graph = load(folder / "graph")
    with pytest.raises(EmbeddingError, match="--rows"):
        read_embedding(folder / "emb.npy", graph)
    codes = graph.attribute("region").codes
    apart = {}
    for rows in ("order", "id"):
        z = read_embedding(folder / "emb.npy", graph, rows=rows)
        means = [z[codes == c].mean(axis=0) for c in (0, 1)]
        apart[rows] = float(np.linalg.norm(means[0] - means[1]))
    assert apart["id"] > 5 * apart["order"]


def test_the_form_begins_with_what_the_files_share(case: Callable[[str], Path]) -> None:
    folder = case("26-upload-droppers")
    assert table_roles(folder, "ties.csv", "survey.csv") == ("ties.csv", "survey.csv")
    assert table_roles(folder, "survey.csv", "ties.csv") == ("ties.csv", "survey.csv")
    pair = read_pair(folder, "ties.csv", "survey.csv")
    made = guess_mapping(pair)
    joins = join_counts(pair, made)
    assert (made.source, made.target, made.id, joins.joined, joins.ids) == ("a", "b", "person", 78, 78)
    proposed = propose(folder).made
    assert proposed is not None and (proposed.edges, proposed.nodes) == ("ties.csv", "survey.csv")


def test_user_5_is_not_film_5(case: Callable[[str], Path]) -> None:
    folder = case("31-movielens-latest")
    made = guess_mapping(read_pair(folder, "ratings.csv", "movies.csv"))
    assert made.sides == "items" and {made.source, made.target} == {"movieId", "userId"} and made.id == "movieId"
    with pytest.raises(GraphError, match="two readings fit about as well"):
        propose(folder)
