"""The samples that come with the package: their bytes, their truth, and what is refused."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import uge_core as uge
from uge_core.cli.main import run
from uge_core.datasets.layouts import sample
from uge_core.datasets.planted.recipe import plant
from uge_core.datasets.planted.samples import RECIPES, make_sample
from uge_core.errors import ConfigError, DatasetMissing, GraphError

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("titles", "town")


def command(name):
    """The command in the sample's card, without the program."""
    text = (ROOT / "sample_data" / name / "README.md").read_text(encoding="utf-8")
    return re.search(r"```\nuge (.*?)\n```", text).group(1).split()


@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_command_writes_the_same_bytes(name, tmp_path, capsys):
    arguments = command(name)
    assert arguments[:4] == ["data", "make-sample", name, name]
    arguments[3] = str(tmp_path / "out")
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    shipped = ROOT / "sample_data" / name
    assert sorted(p.name for p in shipped.iterdir()) == sorted(p.name for p in (tmp_path / "out").iterdir())
    for path in shipped.iterdir():
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes(), path.name
        assert str(tmp_path / "out" / path.name) in printed
    card = (shipped / "README.md").read_text()
    assert "expected edges lost" in printed and all(f"- {line}" in card for line in printed.splitlines()[-6:])
    assert sum(p.stat().st_size for p in shipped.iterdir()) < 600_000


def test_two_graphs_as_promised():
    assert sample.names() == NAMES
    town, titles = uge.load("sample:town"), uge.load("sample:titles")
    assert (town.name, town.layout, town.num_nodes, town.bipartite) == ("town", "sample", 2000, False)
    assert [(a.name, a.num_values) for a in town.attributes] == [
        ("region", 3),
        ("gender", 2),
        ("age", 5),
        ("club", 4),
        ("work", 3),
    ]
    assert town.attribute("age").ordered and town.truth.sensitive == ("region", "gender", "age")
    assert 19_000 < town.num_edges < 21_000 and town.ids([0, 1999]) == ["p0001", "p2000"]
    assert (titles.num_users, titles.num_items, titles.bipartite) == (600, 400, True)
    assert 19_000 < titles.num_edges < 21_000 and titles.ids([599, 600]) == ["p0600", "t0001"]
    assert [a.name for a in titles.audited] == ["gender", "age", "club"]
    assert titles.attribute("genre").side == "items"


@pytest.mark.parametrize("name", NAMES)
def test_the_truth_read_is_the_truth_written(name):
    graph, made = uge.load(f"sample:{name}"), plant(RECIPES[name], int(command(name)[5]))
    assert graph.fingerprint == made.observed.fingerprint
    np.testing.assert_array_equal(graph.truth.bias_free, made.bias_free)
    u, v = np.random.default_rng(0).integers(0, graph.num_nodes, (2, 5000))
    for ours, theirs in (("ratio", "ratio"), ("bias_free_ratio", "bias_free_ratio")):
        read = getattr(graph.truth, ours)[graph.truth.group[u], graph.truth.group[v]]
        np.testing.assert_allclose(read, getattr(made, theirs)[made.group[u], made.group[v]], atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_card_says_what_it_must(name):
    text = (ROOT / "sample_data" / name / "README.md").read_text(encoding="utf-8")
    for part in ("No real person", "## Origin", "## Licence", "## Known harms", "## Counts", "set to 1"):
        assert part in text
    record = json.loads((ROOT / "sample_data" / name / "truth.json").read_text())
    assert record["schema"] == "uge-truth/1" and "uge " + " ".join(command(name)) == record["command"]


def test_other_sizes_and_structures(tmp_path):
    small = make_sample("town", tmp_path / "a", seed=1, nodes=300, edges=900, structure="kronecker")
    graph = uge.load(tmp_path / "a")
    assert graph.layout == "sample" and graph.num_nodes == 300 and graph.truth is not None
    assert graph.fingerprint == small.planted.observed.fingerprint
    (tmp_path / "b").mkdir()
    make_sample("titles", tmp_path / "b", seed=1, nodes=60, items=50, edges=500)
    graph = uge.load(tmp_path / "b", attributes="gender")
    assert (graph.num_users, graph.num_items) == (60, 50) and [a.name for a in graph.audited] == ["gender"]
    assert "--nodes 60 --items 50 --edges 500" in (tmp_path / "b" / "README.md").read_text()


def test_what_make_sample_refuses(tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    for arguments, said in (
        (["village", str(tmp_path / "x"), "--seed", "1"], "unknown sample 'village'"),
        (["town", str(tmp_path), "--seed", "1"], "not empty"),
        (["town", str(tmp_path / "file"), "--seed", "1"], "no folder"),
        (["town", str(tmp_path / "x")], "--seed"),
        (["town", str(tmp_path / "x"), "--seed", "1", "--items", "5"], "has no items"),
        (["town", str(tmp_path / "x"), "--seed", "1", "--structure", "ring"], "unknown structure 'ring'"),
        (["town", str(tmp_path / "x"), "--seed", "1", "--nodes", "0"], "at least 2 people"),
        (["town", str(tmp_path / "x"), "--seed", "1", "--nodes", "60"], "use fewer edges, more nodes"),
    ):
        assert run(["data", "make-sample", *arguments]) == 2
        told = capsys.readouterr().err
        assert said in told and "Traceback" not in told and told.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_half_a_folder_is_taken_back(tmp_path, monkeypatch):
    monkeypatch.setattr("uge_core.datasets.planted.samples.card", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        make_sample("town", tmp_path / "x", seed=1, nodes=300, edges=600)
    assert not (tmp_path / "x").exists()
    with pytest.raises(ConfigError, match="not empty"):
        make_sample("town", ROOT / "tests", seed=1)


def test_unknown_samples_are_named():
    with pytest.raises(DatasetMissing, match=r"unknown sample 'twon'.*titles, town"):
        uge.load("sample:twon")
    with pytest.raises(DatasetMissing):
        uge.load("sample:../sample_data/town")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted") / "town"
    make_sample("town", folder, seed=3, nodes=300, edges=900)
    return folder


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("truth.json", lambda t: "{", "not a truth that make-sample wrote"),
        ("truth.json", lambda t: "[]", "not a truth that make-sample wrote"),
        ("truth.json", lambda t: t.replace("uge-truth/1", "uge-truth/9"), "schema 'uge-truth/9'"),
        ("truth.json", lambda t: t.replace('"people"', '"peeple"'), "'people' is missing"),
        ("truth.json", lambda t: t.replace('"scale": ', '"scale": "x", "s": '), "not a truth"),
        ("truth.json", lambda t: "[" * 100_000, "not a truth that make-sample wrote"),
        ("nodes.csv", lambda t: t.replace("choir", "opera"), "column club holds values"),
        ("nodes.csv", lambda t: "\n".join(t.splitlines()[:-1]) + "\n", "299 rows, truth.json says 300"),
        ("edges.csv", lambda t: t + "p0001,p9999\n", "p9999"),
        ("bias_free_edges.csv", lambda t: t + "p0001,p9999\n", "p9999"),
        ("bias_free_edges.csv", lambda t: "source\np0001\n", "two are needed"),
    ],
)
def test_broken_folders(file, change, said, written, tmp_path):
    shutil.copytree(written, tmp_path / "town")
    path = tmp_path / "town" / file
    path.write_text(change(path.read_text()))
    with pytest.raises(GraphError, match=re.escape(said)):
        uge.load(tmp_path / "town")


@pytest.mark.slow
def test_the_audit_ranks_the_bias_free_graph(written, tmp_path):
    graph = uge.load(written)
    stored = uge.train(
        graph,
        sensitive="region",
        method="uge-w",
        epochs=3,
        device="cpu",
        store=uge.RunStore(tmp_path / "store"),
        options={"independence": True},
    )
    rows = [r for r in stored.rows if r["variant"] == "planted-truth"]
    assert [r["exposure"] for r in rows] == ["seen", "unseen"] and len({r["metric"] for r in rows}) == 1
    for row in rows:
        assert row["metric"] == "ndcg_at_10" and row["attribute"] is None and row["evidence"] == "ok"
        assert row["ci_low"] < row["value"] < row["ci_high"] and 0 < row["floor_random"] < 0.2
        assert row["n"] > 200 and "free of region, gender, age" in row["note"]
    # the same data without their truth are the same run, whose audit is completed once the truth is there
    bare = replace(graph, truth=None)
    settings = {"epochs": 3, "device": "cpu", "store": uge.RunStore(tmp_path / "other"), "exposure": "seen"}
    first = uge.train(bare, **settings)
    before = {r["variant"] for r in first.rows}
    again = uge.train(graph, **settings)
    assert first.id == again.id and "planted-truth" not in before
    assert "planted-truth" in {r["variant"] for r in again.rows}
    assert not [r for r in uge.audit(stored, graph) if r.variant == "planted-truth" and r.value is None]
    z = np.random.default_rng(0).standard_normal((300, 4)).astype(np.float32)
    (row,) = uge.audit(z, graph, attackers=[]).select(variant="planted-truth")
    assert row.exposure is None and row.ci_low < row.floor_random < row.ci_high
