"""`uge audit --embeddings` and `--against`: a file becomes a run like others, and two embeddings are compared."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import uge_core as uge
from uge_core.cli.main import run
from uge_core.runs.names import config_words
from uge_core.views.leakage import leakage_choices, leakage_view
from uge_core.views.overview import overview

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    return uge.RunStore()


@pytest.fixture
def vectors(people, tmp_path):
    """A file whose embedding gives the city away, in its longest rows most."""
    rng = np.random.default_rng(0)
    z = np.eye(3)[people.attribute("city").codes] + 0.3 * rng.normal(size=(200, 3))
    path = tmp_path / "vectors.npy"
    np.save(path, (z * rng.uniform(0.2, 4, (200, 1))).astype(np.float32))
    return path


def uge_runs(capsys, *arguments):
    code = run([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def record(capsys, *arguments):
    code, out, err = uge_runs(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def refused(capsys, *arguments):
    code, out, err = uge_runs(capsys, *arguments)
    assert (code, out) == (2, "") and err.count("\n") == 1, (code, out, err)
    return err


def test_a_file_becomes_a_run(town, vectors, store, capsys):
    code, out, err = uge_runs(capsys, "audit", "--embeddings", vectors, "--data", town)
    assert code == 0 and "auditing" in err
    run_id = out.splitlines()[-1]
    stored = store.load(run_id)
    assert stored.status == "finished" and stored.audited and stored.config["method"] == "external"
    assert stored.history.empty and stored.twin is None and not stored.hidden
    assert np.array_equal(stored.embedding, np.load(vectors))
    again = record(capsys, "audit", "--embeddings", vectors, "--data", town)
    assert again["schema"] == "uge-audit/1" and again["run_id"] == run_id and again["rows"] == stored.audit["rows"]
    assert again["config"] | {"score": "dot", "file": "vectors.npy", "split_seed": None, "dim": 3} == again["config"]
    assert {row["exposure"] for row in again["rows"]} == {None}
    assert {row["attribute"] for row in again["rows"]} >= {"city", "gender", "age", None}
    held_out = [r for r in again["rows"] if r["metric"] == "ndcg_at_10" and r["variant"] == "held-out"]
    assert [r["evidence"] for r in held_out] == ["insufficient"]
    assert len(store.list()) == 1


def test_it_is_listed_shown_exported_and_deleted(town, vectors, store, tmp_path, capsys):
    run_id = record(capsys, "audit", "--embeddings", vectors, "--data", town, "--attackers", "linear")["run_id"]
    _, out, _ = uge_runs(capsys, "runs", "list")
    assert run_id in out and "external, vectors.npy, dim 3" in out and "audited" in out
    assert config_words(store.load(run_id).config) == "external, vectors.npy, dim 3"
    _, out, _ = uge_runs(capsys, "runs", "show", run_id)
    assert 'file: "vectors.npy"' in out and "Micro-F1" in out
    code, out, _ = uge_runs(capsys, "runs", "export", run_id, "--out", tmp_path / "out")
    assert code == 0
    graph = uge.load(town)
    for name in ("embeddings.npy", "embeddings.csv"):
        assert np.array_equal(uge.read_embedding(tmp_path / "out" / name, graph), np.load(vectors))
    weights = ["--what", "weights", "--sensitive-output"]
    said = refused(capsys, "runs", "export", run_id, *weights, "--out", tmp_path / "out")
    assert "was not trained here and has no edge weights" in said
    code, out, _ = uge_runs(capsys, "runs", "delete", run_id)
    assert code == 0 and "embedding.npy" in out and not store.list()


@pytest.mark.slow
def test_the_stored_run_is_audited_by_its_id(town, vectors, store, tmp_path, capsys):
    given = record(
        capsys, "audit", "--embeddings", vectors, "--data", town, "--sensitive", "City", "--attackers", "linear"
    )
    assert {row["attribute"] for row in given["rows"]} == {"city", None}
    run_id = given["run_id"]
    assert record(capsys, "audit", run_id, "--sensitive", "city")["rows"] == given["rows"]
    other = record(capsys, "audit", run_id, "--sensitive", "gender")
    assert {row["attribute"] for row in other["rows"]} == {"gender", None}
    assert len(store.load(run_id).audit["rows"]) > len(other["rows"])
    before = store.load(run_id).audit
    knn = record(capsys, "audit", run_id, "--sensitive", "city", "--attackers", "knn")
    assert {row["attacker"] for row in knn["rows"]} == {"knn", "worst", None}
    assert store.load(run_id).audit == before
    changed = shutil.copytree(town, tmp_path / "changed")
    with (changed / "edges.csv").open("a") as file:
        file.write("p0,p199\np1,p198\np2,p197\n")
    said = refused(capsys, "audit", run_id, "--attackers", "linear", "--data", changed)
    assert "embeds other data than changed holds now" in said and "audit its file again" in said


@pytest.mark.slow
def test_cosine_changes_links_and_not_leakage(town, vectors, store, capsys):
    here = ("audit", "--embeddings", vectors, "--data", town, "--attackers", "linear")
    dot, cosine = record(capsys, *here), record(capsys, *here, "--score", "cosine")
    assert dot["run_id"] != cosine["run_id"] and len(store.list()) == 2
    for x, y in zip(dot["rows"], cosine["rows"], strict=True):
        if x["attacker"]:
            assert x == y
        elif x["value"] is not None and x["metric"] != "usable":
            assert x["value"] != y["value"] and "scores are cosines" in y["note"]
    z = np.load(vectors).astype(float)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    same = uge.audit(unit, uge.load(town), attackers=("linear",))
    for metric, variant in (("dp", None), ("eo", "all-edges"), ("ndcg_at_10", "as-coded")):
        wanted = [r.value for r in same.select(metric=metric, variant=variant)]
        assert wanted and wanted == pytest.approx(
            [r["value"] for r in cosine["rows"] if (r["metric"], r["variant"]) == (metric, variant)], abs=1e-6
        )
    assert "unknown score 'cosin'" in refused(capsys, *here, "--score", "cosin")


@pytest.mark.slow
def test_a_split_seed_is_taken_on_trust(town, vectors, store, capsys):
    here = ("audit", "--embeddings", vectors, "--data", town, "--attackers", "linear")
    plain = record(capsys, *here)["run_id"]
    code, out, err = uge_runs(capsys, *here, "--split-seed", "3", "--json")
    found = json.loads(out)
    assert code == 0 and "right only if training left out the test edges of split seed 3" in err
    assert found["run_id"] == plain and found["config"]["split_seed"] == store.load(plain).config["split_seed"] == 3
    (row,) = [r for r in found["rows"] if r["metric"] == "ndcg_at_10" and r["variant"] == "held-out"]
    assert row["value"] is not None and "split seed 3" in row["note"]
    array = uge.audit(np.load(vectors), uge.load(town), split_seed=3, attackers=("linear",))
    assert row["value"] == array.find(metric="ndcg_at_10", variant="held-out").value


def test_vectors_that_are_all_the_same(town, tmp_path, capsys):
    np.save(tmp_path / "ones.npy", np.ones((200, 4)))
    code, out, err = uge_runs(
        capsys, "audit", "--embeddings", tmp_path / "ones.npy", "--data", town, "--attackers", "linear", "--json"
    )
    assert code == 0 and "uge: all nodes have the same vector" in err
    rows = json.loads(out)["rows"]
    assert all("all nodes have the same vector" in r["note"] for r in rows)
    assert {r["value"] for r in rows if r["metric"] == "auc" and r["value"] is not None} == {0.5}


@pytest.mark.slow
def test_no_training_code_is_loaded(town, vectors, store):
    code = (
        "import sys; from uge_core.cli.main import run; code = run(sys.argv[1:]);"
        "print(code, sorted({'torch', 'torch_geometric', 'streamlit'} & set(sys.modules)),"
        "sorted(m for m in sys.modules if m in ('uge_core.training.fit', 'uge_core.training.edge_loss.loss')), "
        "file=sys.stderr)"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "audit",
        "--embeddings",
        str(vectors),
        "--data",
        str(town),
        "--sensitive",
        "city",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.stderr.splitlines()[-1] == "0 [] []", done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "either a RUN_ID or --embeddings FILE"),
        (["abc", "--embeddings", "x.npy"], "either a RUN_ID or --embeddings FILE"),
        (["--embeddings", "x.npy"], "--embeddings needs --data DATA"),
        (["abc", "--score", "cosine"], "--score is for --embeddings FILE"),
        (["abc", "--split-seed", "0"], "--split-seed is for --embeddings FILE"),
        (["abc", "--unknown-ids", "drop"], "--unknown-ids is for --embeddings FILE"),
        (["abc", "--attributes", "city"], "--attributes is for --embeddings FILE"),
        (["abc", "--against", "b"], "no run 'b'"),
    ],
)
def test_what_does_not_go_together(arguments, said, capsys):
    assert said in refused(capsys, "audit", *arguments)


def test_names_are_checked_before_anything_is_stored(town, vectors, store, capsys):
    here = ("audit", "--embeddings", vectors, "--data", town)
    assert "unknown attribute 'shoe'" in refused(capsys, *here, "--sensitive", "shoe")
    assert "allowed: refuse, drop" in refused(capsys, *here, "--unknown-ids", "keep")
    assert "unknown attacker 'guess'" in refused(capsys, *here, "--attackers", "guess")
    assert not store.list()


def test_a_killed_store_keeps_no_half_run(town, vectors, store, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    assert "nothing that was stored is lost" in refused(capsys, "audit", "--embeddings", vectors, "--data", town)
    assert not store.list()


def test_two_runs_are_compared(town, seeded, store_copy, capsys):
    here = ("--store", store_copy, "--attackers", "linear", "--sensitive", "city")
    runs = {r.config["method"]: r.id for r in uge.RunStore(seeded).list()}
    found = record(capsys, "audit", runs["none"], "--against", runs["uge-c"], *here)
    assert found["schema"] == "uge-compare/1" and found["a"][0]["run_id"] == runs["none"]
    audits = [uge.RunStore(seeded).load(runs[m]).audit["rows"] for m in ("none", "uge-c")]

    def stored(rows, row, exposures):
        (value,) = [
            r["value"]
            for r in rows
            if r["exposure"] in exposures
            and all(r[k] == row[k] for k in ("metric", "attribute", "attacker", "variant"))
        ]
        return value

    assert {(r["metric"], r["exposure"]) for r in found["rows"]} == {
        (m, e) for m in ("micro_f1", "auc", "ndcg_at_10_matched", "ndcg_at_10") for e in ("seen", "unseen")
    }
    for row in found["rows"]:
        assert row["a"] == pytest.approx(stored(audits[0], row, (None,)), abs=1e-9)
        assert row["b"] == pytest.approx(stored(audits[1], row, (row["exposure"],)), abs=1e-9)
    code, out, _ = uge_runs(capsys, "audit", runs["none"], "--against", runs["uge-c"], *here)
    assert code == 0 and "p Holm" in out and out.count("\n") == 9


@pytest.mark.slow
def test_a_file_against_a_run(town, vectors, store_copy, capsys):
    stored = uge.RunStore(store_copy)
    plain = next(r for r in stored.list() if r.config["method"] == "none")
    here = ("audit", "--embeddings", vectors, "--against", plain.id, "--store", store_copy, "--attackers", "linear")
    found = record(capsys, *here)
    assert found["b"][0]["run_id"] == plain.id and found["a"][0]["config"]["method"] == "external"
    (links,) = [r for r in found["rows"] if r["metric"] == "ndcg_at_10"]
    assert links["evidence"] == "insufficient" and "no edges are known to be held out" in links["note"]
    (links,) = [r for r in record(capsys, *here, "--split-seed", "0")["rows"] if r["metric"] == "ndcg_at_10"]
    assert links["value"] is not None
    assert "the array has split_seed = 1" in refused(capsys, *here, "--split-seed", "1")
    assert len(stored.list()) == 4, "comparing stores nothing"
    code, out, _ = uge_runs(capsys, "audit", "--embeddings", vectors, "--data", town, "--attackers", "linear")
    assert code == 0 and out.splitlines()[-1] == found["a"][0]["run_id"]
    graph = uge.load(town)
    table = uge.compare(np.load(vectors), plain, graph, sensitive="city", attackers=("linear",)).frame()
    city = next(r for r in found["rows"] if (r["metric"], r["attribute"]) == ("auc", "city"))
    assert table.set_index("metric").loc["auc", "value"] == pytest.approx(city["value"])


@pytest.mark.slow
def test_methods_are_compared_over_seeds(town, tmp_path, store, capsys):
    common = (
        "--sensitive",
        "city",
        "--seeds",
        "0,1,2",
        "--epochs",
        "20",
        "--device",
        "cpu",
        "--set",
        "learning_rate=0.05",
    )
    ids = {m: uge_runs(capsys, "sweep", town, "--methods", m, *common)[1].split() for m in ("none", "uge-w")}
    a, b = (",".join(ids[m]) for m in ("none", "uge-w"))
    found = record(capsys, "audit", a, "--against", b)
    row = next(
        r
        for r in found["rows"]
        if (r["metric"], r["attribute"], r["attacker"], r["exposure"]) == ("auc", "city", "linear", "unseen")
    )
    assert (row["ci_kind"], row["n"]) == ("seeds", 3) and row["ci_low"] < row["value"] < row["ci_high"]
    values = []
    for m, exposure in (("none", None), ("uge-w", "unseen")):
        wanted = {
            "metric": "auc",
            "attribute": "city",
            "attacker": "linear",
            "exposure": exposure,
            "variant": "standard",
        }
        values.append([r["value"] for i in ids[m] for r in store.load(i).rows if wanted.items() <= r.items()])
    assert row["a"] - row["b"] == pytest.approx(np.mean(values[0]) - np.mean(values[1]))
    only = record(capsys, "audit", a, "--against", b, "--sensitive", "gender")
    assert {r["attribute"] for r in only["rows"]} <= {"gender", None}
    assert "the same seeds on both sides" in refused(capsys, "audit", a, "--against", ",".join(ids["uge-w"][:2]))
    assert "must differ in their seeds" in refused(
        capsys, "audit", a, "--against", ",".join([*ids["uge-w"][:2], ids["none"][0]])
    )


@pytest.mark.slow
def test_pages_show_it_beside_trained_runs(vectors, town, store_copy, monkeypatch, capsys):
    here = ("audit", "--embeddings", vectors, "--data", town, "--store", store_copy)
    record(capsys, *here)
    record(capsys, *here, "--score", "cosine", "--split-seed", "0")
    store = uge.RunStore(store_copy)
    table = overview(store).table
    mine = table[table["Run"].str.startswith("external")]
    assert set(mine["Attribute"]) >= {"city", "gender", "age"} and set(mine["Exposure"]) == {"not known"}
    assert mine["Id"].nunique() == 2 and mine["Run"].nunique() == 2
    assert "worst" in leakage_choices(store).attackers
    shown = leakage_view(store, exposure="unseen", attacker="worst", metric="auc").table
    assert shown["run"].str.startswith("external vectors.npy").any() or shown["run"].str.startswith("external").any()
    monkeypatch.setenv("UGE_STORE", str(store_copy))
    app = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60).run()
    assert not app.exception and "external" in " ".join(app.dataframe[0].value["Run"])
    app.switch_page("leakage.py").run()
    assert not app.exception and [t.value for t in app.title] == ["Leakage"]
    (chart,) = app.get("plotly_chart")
    assert "external" in chart.proto.alt


@pytest.mark.slow
def test_a_file_audited_again_with_less_keeps_what_was_measured(town, vectors, store, capsys):
    here = ("audit", "--embeddings", vectors, "--data", town, "--attackers")
    first = record(capsys, *here, "linear")
    code, out, err = uge_runs(capsys, *here, "knn")
    assert code == 0 and "knn" in out and "not stored" in err
    assert store.load(first["run_id"]).audit == first
    assert record(capsys, *here, "linear,knn") == store.load(first["run_id"]).audit


def test_an_archived_one_that_is_audited_again_is_in_sight(town, vectors, store, capsys):
    here = ("audit", "--embeddings", vectors, "--data", town, "--attackers", "linear")
    run_id = record(capsys, *here)["run_id"]
    store.archive([run_id])
    assert record(capsys, *here)["run_id"] == run_id and store.load(run_id).archived is None
