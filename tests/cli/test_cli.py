"""The command line: what goes to which stream, which exit code, and that nothing is lost."""

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import uge_core as uge
from uge_core.audit.attacker_order import DEFAULT_ATTACKERS
from uge_core.cli.main import run
from uge_core.registry import names

ROOT = Path(__file__).resolve().parents[2]
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


def test_train_prints_the_id_last_and_is_not_repeated(plain_town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", str(plain_town), "--sensitive", "city", "--method", "uge-c", "--lam", "0.5", *FAST]
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
        "floor_majority floor_permutation floor_degree p_value evidence cells"
    )
    for row in audit["rows"]:
        assert set(fields.split()) <= set(row)
    exposures = {r["exposure"] for r in audit["rows"] if r["attribute"] == "city" and r["metric"] == "auc"}
    assert exposures == {"seen", "unseen"}
    code, out, err = uge_runs(capsys, *arguments, "--force")
    assert code == 0 and "training" in err and out.splitlines()[-1] == run_id


def test_sweep_plans_each_point_once(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = [
        "sweep",
        str(town),
        "--sensitive",
        "city,gender+age",
        "--methods",
        "none,uge-w,uge-c",
        "--lams",
        "0.1,0.5",
        "--seeds",
        "0,1",
        *FAST,
    ]
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
    code, out, _ = uge_runs(capsys, "runs", "archive", *sorted(ids), *here)
    assert code == 0 and out.count("archived") == 4
    _, out, err = uge_runs(capsys, "runs", "list", *here)
    assert out == "" and "no runs in" in err and "4 archived" in err
    _, out, _ = uge_runs(capsys, "runs", "list", "--archived", *here)
    assert out.count("finished, archived") == 4
    code, out, _ = uge_runs(capsys, "runs", "archive", "--undo", *sorted(ids), *here)
    assert code == 0 and len(json.loads(uge_runs(capsys, "runs", "list", "--json", *here)[1])) == 4
    code, out, _ = uge_runs(capsys, "runs", "delete", run_id, *here)
    assert code == 0 and "removed run" in out and "embedding.npy" in out
    assert "no run" in refused(capsys, "runs", "show", run_id, *here)
    assert "nearest" in refused(capsys, "runs", "delete", min(ids - {run_id})[:8], *here)


def copied(town: Path, target: Path, change: Callable[[str], str]) -> Path:
    """A copy of the graph whose ids are changed."""
    target.mkdir()
    for name in ("edges.csv", "nodes.csv"):
        head, *lines = (town / name).read_text().splitlines()
        ends = 2 if name == "edges.csv" else 1
        cells = [line.split(",") for line in lines]
        changed = [",".join([*map(change, c[:ends]), *c[ends:]]) for c in cells]
        (target / name).write_text("\n".join([head, *changed]) + "\n")
    return target


def test_export_refuses_other_data_and_writes_nothing(
    store_copy: Path, tmp_path: Path, town: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = next(r for r in uge.RunStore(store_copy).list() if r.config["method"] == "uge-w")
    other = shutil.copytree(town, tmp_path / "other")
    with (other / "edges.csv").open("a") as file:
        file.write("p0,p199\np1,p198\np2,p197\n")
    out = tmp_path / "out"
    arguments = ["runs", "export", stored.id, "--store", str(store_copy), "--out", str(out)]
    renamed = copied(town, tmp_path / "renamed", lambda name: f"q{name}")
    for what in ("embeddings", "weights", "embeddings,weights"):
        what = [what, "--sensitive-output"]
        assert "trained on other data" in refused(capsys, *arguments, "--what", *what, "--data", str(other))
        said = refused(capsys, *arguments, "--what", *what, "--data", str(renamed))
        assert "have other ids" in said and "--data" in said
    assert "trained on other data" in refused(
        capsys, "audit", stored.id, "--data", str(other), "--store", str(store_copy)
    )
    (stored.folder / "embedding.npy").write_bytes(b"junk")
    assert "embedding.npy" in refused(capsys, *arguments, "--what", "weights,embeddings", "--sensitive-output")
    assert not out.exists()


def test_export_after_training_on_a_renamed_copy(
    plain_town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signs = "=-+@"

    def formula(name: str) -> str:
        number = int(name[1:])
        return signs[number] + name if number < 4 else f"-{number}"

    copy = copied(plain_town, tmp_path / "copy", formula)
    _, out, _ = uge_runs(capsys, "train", str(plain_town), *FAST)
    run_id = out.splitlines()[-1]
    _, out, _ = uge_runs(capsys, "train", str(copy), *FAST)
    assert out.splitlines()[-1] == run_id
    code, out, err = uge_runs(capsys, "runs", "export", run_id, "--out", str(tmp_path / "out"))
    assert code == 0 and err == (
        "uge: 4 ids would start a formula in a spreadsheet and got a leading quote in the CSV files; "
        "ids.json has them as they are\n"
    )
    ids = json.loads((tmp_path / "out" / "ids.json").read_text())
    assert ids[:5] == ["=p0", "-p1", "+p2", "@p3", "-4"]
    lines = (tmp_path / "out" / "embeddings.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:6]] == ["'=p0", "'-p1", "'+p2", "'@p3", "-4"]


def test_export_to_a_place_that_cannot_be_written(
    seeded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = uge.RunStore(seeded).list()[0].id
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        said = refused(capsys, "runs", "export", run_id, "--store", str(seeded), "--out", str(out))
        assert str(out) in said


def test_export(seeded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = next(r for r in uge.RunStore(seeded).list() if r.config["method"] == "uge-w")
    arguments = ["runs", "export", stored.id, "--store", str(seeded), "--out", str(tmp_path / "out")]
    code, out, err = uge_runs(capsys, *arguments, "--what", "embeddings,weights", "--sensitive-output")
    assert code == 0 and "weights.csv: Sensitive personal data" in err
    names = ["embeddings.npy", "ids.json", "embeddings.csv", "weights.csv"]
    assert [Path(line).name for line in out.splitlines()] == names
    assert json.loads((tmp_path / "out" / "ids.json").read_text()) == [f"p{i}" for i in range(200)]
    lines = (tmp_path / "out" / "embeddings.csv").read_text().splitlines()
    assert len(lines) == 201 and lines[1].startswith("p")
    weights = (tmp_path / "out" / "weights.csv").read_text().splitlines()
    assert weights[0].startswith("# Sensitive personal data") and weights[1] == "source,target,weight"
    assert weights[2].split(",")[0].startswith("p")
    assert len(weights) - 2 < stored.dataset["num_edges"]
    assert float(weights[2].split(",")[2]) > 0
    assert not any((tmp_path / "out").glob("*twin*"))
    assert "embeddings, card, weights" in refused(capsys, *arguments, "--what", "twin")
    assert "names nothing" in refused(capsys, *arguments, "--what", ",")


def test_weights_tell_groups_and_are_written_only_when_asked(
    seeded: Path, town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = next(r for r in uge.RunStore(seeded).list() if r.config["method"] == "uge-w")
    out = tmp_path / "out"
    arguments = ["runs", "export", stored.id, "--store", str(seeded), "--out", str(out), "--what", "weights"]
    said = refused(capsys, *arguments)
    assert "sensitive personal data" in said and "--sensitive-output" in said and not out.exists()
    assert uge_runs(capsys, *arguments, "--sensitive-output")[0] == 0
    table = pd.read_csv(out / "weights.csv", skiprows=1)
    # Why: whose lightest edge is one between two cities, and which weights a person sees, sorts people by city.
    ends = pd.concat(
        [
            table[["source", "weight"]].set_axis(["id", "weight"], axis=1),
            table[["target", "weight"]].set_axis(["id", "weight"], axis=1),
        ]
    )
    sets = ends.groupby("id")["weight"].agg(lambda w: tuple(sorted({round(x, 6) for x in w})))
    city = pd.read_csv(town / "nodes.csv").set_index("id")["city"]
    both = pd.DataFrame({"sets": sets, "city": city}).dropna()
    guessed = both.groupby("sets")["city"].agg(lambda c: c.value_counts().iloc[0])
    assert guessed.sum() > 0.9 * len(both)


def test_what_is_exported_is_its_users_alone_from_the_start(
    seeded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = next(r for r in uge.RunStore(seeded).list() if r.config["method"] == "uge-w")
    out = tmp_path / "out"
    out.mkdir()
    (out / "embeddings.csv").write_text("of before")
    (out / "embeddings.csv").chmod(0o644)
    modes: list[int] = []
    opened = os.open

    def noted(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        number = opened(path, flags, mode, **more)
        mode = os.fstat(number).st_mode
        if str(path).startswith(str(out)) and not stat.S_ISDIR(mode):
            modes.append(mode & 0o777)
        return number

    monkeypatch.setattr(os, "open", noted)
    before = os.umask(0)
    try:
        here = ["--store", str(seeded), "--out", str(out)]
        weights = ["--what", "embeddings,weights", "--sensitive-output"]
        assert uge_runs(capsys, "runs", "export", stored.id, *here, *weights)[0] == 0
        assert uge_runs(capsys, "report", stored.id, *here, "--format", "html,json,csv")[0] == 0
    finally:
        os.umask(before)
    written = list(out.iterdir())
    assert len(written) == 7 and {p.stat().st_mode & 0o777 for p in written} == {0o600}
    assert modes == [0o600] * 7


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--lam", "-1", "--method", "uge-c", "--sensitive", "city"],
            "lambda = -1.0 is out of range; allowed: 0 or more",
        ),
        (["--lam", "-1"], "allowed: 0 or more"),
        (["--lam", "much"], "'much' is not a number"),
        (["--method", "uge-x"], "allowed: cfc, cne"),
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
        (["--store", "/dev/null/store"], "cannot be"),
        (["--store", ""], "names nothing"),
        (["--sensitive", "ctiy"], "unknown attribute 'ctiy'"),
        (["--sensitive", "city,shoe"], "unknown attribute 'shoe'"),
        (["--sensitive", ","], "names nothing"),
        (["--attributes", ","], "names nothing"),
        (["--attributes", "shoe"], "unknown column 'shoe'"),
        (["--split-seeds", ""], "names nothing"),
        (["--split-seeds", "0", "--split-seed", "1"], "not allowed with"),
        (["--set", "dim=3", "--set", "dim=4"], "--set dim is given twice"),
        (["--set", "unknown=level"], "use --unknown"),
        (["--set", "hidden=exclude"], "use --hidden"),
        (["--set", "exposure=seen"], "use --exposure"),
        (["--set", "seed=1"], "use --seed"),
        (["--set", "lambda=1"], "use --lam"),
        (["--set", "split_seed=1"], "use --split-seed"),
        (["--lam", "a\nb"], "'a\\nb' is not a number"),
        (["--met\nhod", "x"], "unrecognized arguments: --met hod"),
        (["--store", "/tmp/" + "x" * 300], "File name too long"),
    ],
)
def test_user_errors(arguments: list[str], said: str, town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = [] if "--epochs" in arguments else ["--epochs", "1"]
    assert said in refused(capsys, "train", str(town), *quick, *arguments)


def test_a_device_is_checked_where_nothing_is_trained(
    town: Path, seeded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", str(town), "--store", str(seeded), *SEEDED[:-1]]
    assert uge_runs(capsys, *arguments, "cpu")[0] == 0
    assert "allowed: auto, cpu, cuda" in refused(capsys, *arguments, "tpu")


def test_lists_of_attackers(seeded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = next(r.id for r in uge.RunStore(seeded).list() if r.config["method"] == "none")
    arguments = ["audit", run_id, "--store", str(seeded), "--sensitive", "city", "--json", "--attackers"]
    for nothing in (",", "", " , "):
        assert "names nothing" in refused(capsys, *arguments, nothing)
    assert f"allowed: {', '.join(names('audit.attackers'))}" in refused(capsys, *arguments, "guess")
    once, twice = (uge_runs(capsys, *arguments, text) for text in ("linear", "linear,linear"))
    assert once[0] == 0 and once[1] == twice[1]


@pytest.mark.slow
def test_joint_rows_are_kept_with_all_their_attributes(
    town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [str(town), "--attributes", "city,gender"]
    arguments = ["train", *data, "--sensitive", "city,gender", "--method", "uge-w", *FAST]
    run_id = uge_runs(capsys, *arguments)[1].splitlines()[-1]

    def attributes(names: str, *more: str) -> set[str]:
        code, out, err = uge_runs(capsys, "audit", run_id, "--sensitive", names, "--json", *more)
        assert code == 0, err
        return {r["attribute"] for r in json.loads(out)["rows"]}

    for more in ((), ("--attackers", "linear")):
        assert attributes("City,gender", *more) == {"city", "gender", "city+gender", None}
        assert attributes("city", *more) == {"city", None}


def test_too_little_evidence_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").mkdir()
    ring = [f"p{i},p{(i + step) % 12}" for i in range(12) for step in (1, 2, 3)]
    (tmp_path / "data" / "edges.csv").write_text("\n".join(["source,target", *ring]) + "\n")
    people = [f"p{i},{'AB'[i % 2]}" for i in range(12)]
    (tmp_path / "data" / "nodes.csv").write_text("\n".join(["id,city", *people]) + "\n")
    code, out, _ = uge_runs(capsys, "train", str(tmp_path / "data"), *FAST)
    assert code == 3
    assert uge_runs(capsys, "audit", out.splitlines()[-1])[0] == 3
    assert uge_runs(capsys, "sweep", str(tmp_path / "data"), *FAST)[0] == 3


def test_remarks_of_training_go_to_stderr_once(
    plain_town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thin = shutil.copytree(plain_town, tmp_path / "thin")
    edges = (thin / "edges.csv").read_text().splitlines()
    (thin / "edges.csv").write_text("\n".join([edges[0], *edges[1::3]]) + "\n")
    arguments = ["train", str(thin), "--sensitive", "city", "--method", "uge-w", "--set", "test_share=0.9", *FAST]
    code, _, err = uge_runs(capsys, *arguments, "--json")
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert code == 0 and len(notes) == len(set(notes))
    assert sum("neighbours tell city right" in line for line in notes) == 1
    assert sum("fewer edges are held out than asked" in line for line in notes) == 1


def test_what_inspect_calls_a_fault_of_the_data(town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = shutil.copytree(town, tmp_path / "bad")
    (bad / "edges.csv").write_text("source,target\np0,p0\n")
    for more in ([], ["--attributes", "city"]):
        code, out, err = uge_runs(capsys, "data", "inspect", str(bad), *more)
        assert (code, out) == (1, "") and err.count("\n") == 1
    refused(capsys, "train", str(bad), *FAST)
    assert "shoe" in refused(capsys, "data", "inspect", str(town), "--attributes", "shoe")
    assert "names nothing" in refused(capsys, "data", "inspect", "")
    (tmp_path / "empty").mkdir()
    for spec in (f"{town}:other", "sample:twon", "x" * 5000):
        refused(capsys, "data", "inspect", spec)
    code, out, err = uge_runs(capsys, "data", "inspect", str(tmp_path / "empty"))
    found, command = err.splitlines()
    assert (code, out) == (2, "") and found.endswith("Found: no files")
    assert command.endswith(f"uge data describe {tmp_path / 'empty'}")
    assert "0 tables found, two are needed" in refused(capsys, "data", "describe", str(tmp_path / "empty"))


def piped(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | environment,
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("what", ["--help", "runs list", "runs list --json"])
def test_an_output_that_is_full_is_one_line(what: str, seeded: Path) -> None:
    store = "" if what == "--help" else f" --store {seeded}"
    done = piped(f"{sys.executable} -m uge_core {what}{store} > /dev/full")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "No space left" in done.stderr, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_errors_that_cannot_be_written_still_end_with_their_code() -> None:
    assert piped(f"{sys.executable} -m uge_core runs show nothing 2> /dev/full").returncode == 2


@pytest.mark.slow
def test_any_encoding_will_do(seeded: Path, tmp_path: Path) -> None:
    target = shutil.copytree(seeded, tmp_path / "store", ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    store = uge.RunStore(target)
    run_id = store.list()[0].id
    store.refresh(run_id, store.load(run_id).dataset | {"name": "Köln 🏘"})
    for what in (f"runs show {run_id}", "runs list", "runs list --json"):
        done = piped(f"{sys.executable} -m uge_core {what} --store {target}", PYTHONIOENCODING="ascii")
        assert (done.returncode, done.stderr) == (0, "")
        assert "K\\xf6ln" in done.stdout or json.loads(done.stdout)[0]["dataset"]["name"] == "Köln 🏘"
    assert piped(f"{sys.executable} -m uge_core runs list --store {target} >&- 2>&-").returncode == 0


def test_help_and_unknown_commands(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = uge_runs(capsys, "--help")
    assert (code, err) == (0, "") and "train" in out
    assert "choose from" in refused(capsys, "tarin")
    assert "required" in refused(capsys)
    for later in ("report", "verify", "rerun"):
        refused(capsys, later)


def test_debug_shows_the_traceback(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = uge_runs(capsys, "train", str(town), "--method", "uge-x", "--debug")
    assert code == 2 and "Traceback" in err


@pytest.mark.slow
def test_ctrl_c_in_mid_training(town: Path, store_copy: Path) -> None:
    earlier = {r.id: r.audit for r in uge.RunStore(store_copy).list()}
    command = [sys.executable, "-m", "uge_core", "train", str(town), "--sensitive", "city", "--method", "uge-c"]
    process = subprocess.Popen(
        [*command, "--epochs", "1000000", "--device", "cpu", "--store", str(store_copy)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        # a shell starts its background jobs, and so tests run from one, with Ctrl-C ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stderr is not None
        assert "training" in process.stderr.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
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
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["option", "variable"])
def test_app_listens_where_it_is_told_and_nowhere_else(how: str, seeded: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    option = ["--port", str(port)] if how == "option" else []
    variable = {} if how == "option" else {"STREAMLIT_SERVER_PORT": str(port)}
    process = subprocess.Popen(
        [sys.executable, "-m", "uge_core", "app", "--store", str(seeded), *option],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        start_new_session=True,
        env=os.environ | variable | {"STREAMLIT_SERVER_HEADLESS": "true"},
    )
    try:
        for _ in range(240):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2) as answer:
                    assert answer.status == 200
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.25)
        else:
            pytest.fail("the dashboard did not answer within a minute")
        process.terminate()
        process.wait(timeout=30)
        with socket.socket() as again:
            assert again.connect_ex(("127.0.0.1", port)) != 0, "the server outlived the command that started it"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_an_audit_with_fewer_attackers_leaves_the_stored_one(
    store_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = uge.RunStore(store_copy)
    run_id = next(r.id for r in store.list() if r.config["method"] == "none")
    before = store.load(run_id).audit
    arguments = ["audit", run_id, "--store", str(store_copy), "--json"]
    code, out, err = uge_runs(capsys, *arguments, "--attackers", "knn")
    assert code == 0 and {r["attacker"] for r in json.loads(out)["rows"]} == {"knn", "worst", None}
    assert "not stored" in err and ",".join(DEFAULT_ATTACKERS) in err and store.load(run_id).audit == before
    code, out, err = uge_runs(capsys, *arguments, "--attackers", ",".join((*DEFAULT_ATTACKERS, "knn")))
    assert code == 0 and "not stored" not in err and store.load(run_id).audit == json.loads(out)
    assert ",".join((*DEFAULT_ATTACKERS, "knn")) in uge_runs(capsys, *arguments, "--crossings", "city+gender")[2]
