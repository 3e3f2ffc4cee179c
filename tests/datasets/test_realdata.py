"""The real graphs, against what their READMEs say beside nodes, edges and groups (see test_every_graph)."""

import pytest

from uge_core.datasets import inspect, load
from uge_core.errors import DatasetMissing

pytestmark = pytest.mark.realdata


def attribute(record, name):
    return next(a for a in record["attributes"] if a["name"] == name)


def shares(record, name) -> tuple[float, float]:
    a = attribute(record, name)
    return round(a["same_group_share"], 3), round(a["chance"], 3)


def test_pokec_n(shared_data, about_files):
    graph = load(shared_data("pokec-n"))
    record = inspect(graph)
    assert (graph.name, graph.layout) == ("pokec-n", "authors")
    age = attribute(record, "AGE")
    assert (age["unknown_label"], age["ordered"]) == ("0.0", True)
    ages = [float(label) for label in age["sizes"]]
    assert (min(ages), max(ages)) == (1, 112)
    assert sum(n for label, n in age["sizes"].items() if float(label) > 90) == 43
    assert shares(record, "gender") == (0.456, 0.5)
    assert shares(record, "region") == (0.953, 0.589)
    assert int(graph.degree.min()) > 0
    assert int(graph.degree.max()) == 311
    assert (graph.defaults.unknown, graph.defaults.as_coded_rows) == ("level", 50_000)
    assert about_files(graph) == ()
    label = load(shared_data("pokec-n"), attributes=["label"]).attribute("Label")
    assert dict(zip(label.labels, label.sizes.tolist(), strict=True)) == {"0": 26_113, "1": 40_456}


def test_pokec_z_lacks_its_edges(shared_data):
    with pytest.raises(DatasetMissing) as error:
        load(shared_data("pokec-z"))
    assert "pokec-z_edge.csv[.gz] is missing; it must hold the header Src,Dst,Weight" in str(error.value)
    assert "the row numbers of pokec-z_node_attribute.csv counted from 0" in str(error.value)


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "rows", "inside", "touched", "public", "field"),
    [
        (
            "region_job",
            3_219,
            4_030,
            158_851,
            5_822,
            1_257,
            [1_276, 1_943],
            {"-1": 2_717, "0": 254, "1": 87, "2": 69, "3": 54, "4": 38},
        ),
        (
            "region_job_2",
            3_341,
            274,
            135_569,
            337,
            284,
            [1_281, 2_060],
            {"-1": 2_927, "0": 178, "1": 101, "2": 61, "3": 74},
        ),
    ],
)
def test_pokec_raw_head(shared_data, name, nodes, edges, rows, inside, touched, public, field):
    folder = shared_data("pokec-raw-head")
    graph = load(f"{folder}:{name}", attributes=["gender", "region", "age", "public", "I_am_working_in_field"])
    assert graph.attribute("public").sizes.tolist() == public
    work = graph.attribute("I_am_working_in_field")
    sizes = dict(zip(work.labels, work.sizes.tolist(), strict=True)) | {work.unknown_label: int(work.unknown.sum())}
    assert sizes == field
    counts = {m.code: m.count for m in graph.messages}
    assert counts["edges-without-profile"] == rows - inside
    assert counts["duplicate-edges"] == inside - edges
    assert counts["nodes-without-edges"] == nodes - touched
    columns = 279 if name == "region_job" else 268
    assert len([c for c in graph.columns if c.file.startswith(f"{name}.csv")]) == columns
    # Seven columns are no features: the id, gender, region, AGE, the label, and `public`, asked for here.
    assert graph.features.shape == (nodes, columns - 6)


@pytest.mark.parametrize(
    ("name", "edges", "label", "same"),
    [("region_job_1", 20_550, [3_856, 3_803], 0.958), ("region_job_2_2", 15_321, [3_432, 2_753], 0.954)],
)
def test_pokec_small(shared_data, name, edges, label, same, about_files):
    graph = load(f"{shared_data('pokec-small')}:{name}", attributes=["region", "label"])
    assert graph.attribute("label").sizes.tolist() == label
    assert shares(inspect(graph), "region")[0] == same
    assert {m.code: m.count for m in about_files(graph)} == {"duplicate-edges": edges}


def test_movielens_1m(shared_data):
    graph = load(shared_data("movielens-1m"))
    assert graph.num_items == 3_706
    assert graph.attribute("age").labels == ("1", "18", "25", "35", "45", "50", "56")
    assert graph.attribute("occupation").labels == tuple(map(str, range(21)))
    assert graph.attribute("genre").num_values == 18
    assert {m.code: m.count for m in graph.messages}["items-without-edges"] == 177
    degree = dict(zip(graph.ids(slice(None)), graph.degree.tolist(), strict=True))
    assert (degree["user:1"], degree["user:4169"]) == (53, 2_314)
    top = {"movie:2858": 3_428, "movie:260": 2_991, "movie:1196": 2_990, "movie:1210": 2_883, "movie:480": 2_672}
    assert {k: degree[k] for k in top} == top
    assert graph.degree[: graph.num_users].min() == 20
    assert (graph.defaults.unknown, graph.defaults.test_share) == ("exclude", 0.2)


def test_movielens_100k(shared_data):
    graph = load(shared_data("movielens-100k"))
    assert graph.num_items == 1_682
    assert graph.attribute("age").labels == ("under 18", "18-24", "25-34", "35-44", "45-49", "50-55", "56+")
    assert graph.attribute("occupation").num_values == 21


def test_lastfm_asia(shared_data, about_files):
    graph = load(shared_data("lastfm-asia"))
    assert graph.attribute("country").labels == tuple(map(str, range(18)))
    assert shares(inspect(graph), "country") == (0.874, 0.119)
    assert about_files(graph) == ()


def test_deezer_europe(shared_data, about_files):
    graph = load(shared_data("deezer-europe"))
    assert shares(inspect(graph), "gender") == (0.525, 0.506)
    assert about_files(graph) == ()


def test_german_credit(shared_data, about_files):
    graph = load(shared_data("german-credit"), attributes="Gender,Age,ForeignWorker,GoodCustomer")
    record = inspect(graph)
    assert attribute(record, "GoodCustomer")["sizes"] == {"-1": 300, "1": 700}
    assert sum(attribute(record, "Age")["sizes"].values()) == 1_000
    assert shares(record, "Gender") == (0.805, 0.572)
    assert {m.code: m.count for m in about_files(graph)} == {"duplicate-edges": 3_228}
    assert "PurposeOfLoan" in [c.name for c in graph.columns if c.role == "ignored"]
