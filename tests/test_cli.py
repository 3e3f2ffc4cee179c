"""The command line: what goes to which stream, which exit code, and that nothing is lost."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import uge_core as uge
from uge_core.cli import run

ROOT = Path(__file__).resolve().parents[1]
FAST = ["--epochs", "20", "--device", "cpu"]
SEEDED = ["--epochs", "60", "--set", "learning_rate=0.05", "--device", "cpu"]


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "default-store"))


def uge_runs(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line a user error prints."""
    code, out, err = uge_runs(capsys, *arguments)
    assert (code, out) == (2, ""), (code, out, err)
    assert err.count("\n") == 1 and "Traceback" not in err, err
    return err


def test_inspect(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = uge_runs(capsys, "data", "inspect", str(town))
    assert (code, err) == (0, "") and "city" in out
    code, out, err = uge_runs(capsys, "data", "inspect", str(town), "--json")
    assert code == 0
    found = json.loads(out)
    assert found["num_nodes"] == 200 and found["bipartite"] is False
    assert {"layout", "columns", "attributes", "messages", "num_edges", "directed"} <= set(found)


def test_inspect_of_data_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,a\n")
    (tmp_path / "nodes.csv").write_text("id,city\na,X\nb,Y\n")
    code, out, err = uge_runs(capsys, "data", "inspect", str(tmp_path))
    assert (code, out) == (1, "") and err.count("\n") == 1
    code, out, err = uge_runs(capsys, "data", "inspect", str(tmp_path), "--json")
    assert code == 1 and json.loads(out)["messages"][-1]["level"] == "blocking"
    assert "nowhere" in refused(capsys, "data", "inspect", str(tmp_path / "nowhere"))


def test_train_prints_the_id_last_and_is_not_repeated(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", str(town), "--sensitive", "city", "--method", "uge-c", "--lam", "0.5", *FAST]
    code, out, err = uge_runs(capsys, *arguments)
    assert code == 0
    run_id = out.splitlines()[-1]
    assert uge.RunStore().load(run_id).status == "finished"
    assert "training" in err and "20/20" in err and "\r" not in err
    code, out, err = uge_runs(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    audit = json.loads(out)
    assert audit["schema"] == "uge-audit/1" and audit["run_id"] == run_id
    assert set(audit["dataset"]) == {"name", "fingerprint", "num_nodes", "num_edges"}
    assert audit["config"]["lambda"] == 0.5 and audit["config"]["epochs"] == 20
    fields = (
        "metric attribute attacker variant exposure value ci_low ci_high ci_kind n n_seeds direction floor_random "
        "floor_majority floor_permutation p_value evidence cells"
    )
    for row in audit["rows"]:
        assert set(fields.split()) <= set(row)
    exposures = {r["exposure"] for r in audit["rows"] if r["attribute"] == "city" and r["metric"] == "auc"}
    assert exposures == {"seen", "unseen"}
    code, out, err = uge_runs(capsys, *arguments, "--force")
    assert code == 0 and "training" in err and out.splitlines()[-1] == run_id


def test_sweep_plans_each_point_once(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = [
        "sweep", str(town), "--sensitive", "city,gender+age", "--methods", "none,uge-w,uge-c", "--lams", "0.1,0.5",
        "--seeds", "0,1", *FAST,
    ]  # fmt: skip
    code, out, err = uge_runs(capsys, *grid, "--dry-run")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    # none once per seed; UGE-W per set and seed, lambda dropped; UGE-C per set, lambda and seed.
    assert len(lines) == len(set(lines)) == 2 + 4 + 8
    assert sum("age+gender" in line for line in lines) == 6
    assert not uge.RunStore().root.exists()


def test_sweep_reuses_what_is_there(town: Path, seeded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", str(town), "--sensitive", "city", "--methods", "none,uge-w", "--store", str(seeded), *SEEDED]
    code, out, _ = uge_runs(capsys, *arguments, "--dry-run")
    assert code == 0 and [line.split()[1] for line in out.splitlines()] == ["stored", "stored"]
    code, out, err = uge_runs(capsys, *arguments)
    assert (code, err) == (0, "")
    ids = out.split()
    code, out, _ = uge_runs(capsys, *arguments, "--json")
    assert [audit["run_id"] for audit in json.loads(out)] == ids


def test_audit_of_a_stored_run(seeded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = next(r for r in uge.RunStore(seeded).list() if r.config["method"] == "uge-c")
    here = ["--store", str(seeded)]
    code, out, _ = uge_runs(capsys, "audit", stored.id, "--sensitive", "city", "--json", *here)
    assert code == 0
    assert {r["attribute"] for r in json.loads(out)["rows"]} == {"city", None}
    code, out, _ = uge_runs(capsys, "audit", stored.id, "--attackers", "linear", "--sensitive", "city", "--json", *here)
    assert code == 0 and {r["attacker"] for r in json.loads(out)["rows"]} <= {"linear", "worst", None}
    again = {(r["metric"], r["exposure"]): r["value"] for r in json.loads(out)["rows"] if r["attacker"] == "linear"}
    before = [r for r in (stored.audit or {})["rows"] if r["attacker"] == "linear" and r["attribute"] == "city"]
    assert before and all(again[r["metric"], r["exposure"]] == r["value"] for r in before if r["variant"] == "standard")
    assert "allowed: city, gender, age" in refused(capsys, "audit", stored.id, "--sensitive", "shoe", *here)
    assert "no run" in refused(capsys, "audit", "zzz", *here)


def test_audit_notices_other_data(
    store_copy: Path, tmp_path: Path, town: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = uge.RunStore(store_copy).list()[0]
    other = shutil.copytree(town, tmp_path / "other")
    with (other / "edges.csv").open("a") as file:
        file.write("p0,p199\np1,p198\np2,p197\n")
    arguments = ["audit", stored.id, "--attackers", "linear", "--store", str(store_copy)]
    assert "trained on other data" in refused(capsys, *arguments, "--data", str(other))


def test_runs(store_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = ["--store", str(store_copy)]
    code, out, _ = uge_runs(capsys, "runs", "list", *here)
    assert code == 0 and out.count("finished") == 4
    code, out, _ = uge_runs(capsys, "runs", "list", "--json", *here)
    ids = {r["run_id"] for r in json.loads(out)}
    assert len(ids) == 4
    run_id = min(ids)
    code, out, _ = uge_runs(capsys, "runs", "show", run_id, *here)
    assert code == 0 and "environment:" in out and "Micro-F1" in out
    code, out, _ = uge_runs(capsys, "runs", "show", run_id, "--json", *here)
    assert json.loads(out)["run_id"] == run_id
    code, out, _ = uge_runs(capsys, "runs", "delete", run_id, *here)
    assert code == 0 and "removed run" in out and "embedding.npy" in out
    assert "no run" in refused(capsys, "runs", "show", run_id, *here)
    assert "nearest" in refused(capsys, "runs", "delete", min(ids - {run_id})[:8], *here)


def test_export(seeded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = next(r for r in uge.RunStore(seeded).list() if r.config["method"] == "uge-w")
    arguments = ["runs", "export", stored.id, "--store", str(seeded), "--out", str(tmp_path / "out")]
    code, out, _ = uge_runs(capsys, *arguments, "--what", "embeddings,weights")
    assert code == 0
    assert {Path(line).name for line in out.splitlines()} == {"embeddings.npy", "embeddings.csv", "weights.csv"}
    lines = (tmp_path / "out" / "embeddings.csv").read_text().splitlines()
    assert len(lines) == 201 and lines[1].startswith("p")
    weights = (tmp_path / "out" / "weights.csv").read_text().splitlines()
    assert weights[0] == "source,target,weight" and weights[1].split(",")[0].startswith("p")
    assert len(weights) - 1 < stored.dataset["num_edges"]
    assert float(weights[1].split(",")[2]) > 0
    assert not any((tmp_path / "out").glob("*twin*"))
    assert "embeddings, weights" in refused(capsys, *arguments, "--what", "twin")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--lam", "-1", "--method", "uge-c", "--sensitive", "city"],
            "lambda = -1.0 is out of range; allowed: 0 or more",
        ),
        (["--lam", "-1"], "allowed: 0 or more"),
        (["--lam", "much"], "'much' is not a number"),
        (["--method", "uge-x"], "allowed: none, uge-c"),
        (["--backbone", "node2vek"], "Did you mean 'node2vec'?"),
        (["--method", "uge-w"], "needs at least one sensitive attribute; this graph has: city, gender, age"),
        (["--method", "uge-w", "--sensitive", "town"], "unknown attribute 'town'; allowed: city, gender, age"),
        (["--set", "dim"], "--set KEY=VALUE"),
        (["--set", "dims=3"], "no such setting"),
        (["--epochs", "0"], "at least 1"),
        (["--unknown", "guess"], "level, exclude, impute"),
        (["--device", "tpu"], "cpu"),
        (["--seeds", "1"], "unrecognized arguments"),
        (["--json", "--split-seeds", "0,1"], "uge sweep --split-seeds"),
        (["--store", "/dev/null/store"], "cannot be written"),
    ],
)
def test_user_errors(arguments: list[str], said: str, town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = [] if "--epochs" in arguments else ["--epochs", "1"]
    assert said in refused(capsys, "train", str(town), *quick, *arguments)


def test_help_and_unknown_commands(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = uge_runs(capsys, "--help")
    assert (code, err) == (0, "") and "train" in out
    assert "choose from" in refused(capsys, "tarin")
    assert "required" in refused(capsys)
    for later in ("report", "verify", "bench", "doctor", "reproduce"):
        refused(capsys, later)


def test_debug_shows_the_traceback(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = uge_runs(capsys, "train", str(town), "--method", "uge-x", "--debug")
    assert code == 2 and "Traceback" in err


def test_ctrl_c_in_mid_training(town: Path, store_copy: Path) -> None:
    earlier = {r.id: r.audit for r in uge.RunStore(store_copy).list()}
    command = [sys.executable, "-m", "uge_core", "train", str(town), "--sensitive", "city", "--method", "uge-c"]
    process = subprocess.Popen(
        [*command, "--epochs", "1000000", "--device", "cpu", "--store", str(store_copy)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stderr is not None
    assert "training" in process.stderr.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == "" and err.splitlines()[-1] == "uge: interrupted" and "Traceback" not in err
    runs = {r.id: r for r in uge.RunStore(store_copy).list()}
    (stopped,) = [r for i, r in runs.items() if i not in earlier]
    assert (stopped.status, stopped.reason) == ("interrupted", "stopped by the user")
    assert {i: runs[i].audit for i in earlier} == earlier
    assert all(runs[i].embedding.shape == (200, 16) for i in earlier)


def test_a_reader_that_stops_is_no_error(seeded: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m uge_core runs list --store {seeded} | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
