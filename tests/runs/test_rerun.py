"""A report's runs trained again: real trainings, compared number by number."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

import uge_core as uge
from uge_core.audit import version
from uge_core.audit.record import seal
from uge_core.cli.main import run as uge_command
from uge_core.runs.rerun import compare, exit_code, rerun


@pytest.fixture(scope="module")
def reported(seeded, tmp_path_factory):
    """The records of two runs, one with a twin, as a JSON and an HTML report, and where their runs were trained again."""
    folder = tmp_path_factory.mktemp("rerun")
    store = uge.RunStore(seeded)
    ids = [next(r.id for r in store.list() if r.config["method"] == name) for name in ("none", "uge-c")]
    uge.report(ids, folder, formats=["json", "html"], store=store)
    return folder, store


def records(folder):
    return json.loads((folder / "report.json").read_text())


def written(folder, content, name="changed.json"):
    path = folder / name
    path.write_text(json.dumps(content))
    return path


@pytest.mark.slow
def test_a_report_trained_again_is_the_same_and_a_changed_number_is_found(reported, tmp_path, capsys):
    folder, store = reported
    into = ["--into", str(tmp_path / "again"), "--store", str(store.root), "--device", "cpu"]
    assert uge_command(["rerun", str(folder / "report.json"), *into]) == 0
    told = capsys.readouterr()
    assert "data: the same: town" in told.out and told.out.count("0 moved beyond their intervals") == 2
    assert "left" in told.err and "auditing" in told.err
    again = {r.id: r for r in uge.RunStore(tmp_path / "again").list()}
    assert set(again) == {r["run_id"] for r in records(folder)} and all(r.audited for r in again.values())
    # What is there is not trained twice; the page holds the same records.
    assert uge_command(["rerun", str(folder / "report.html"), *into]) == 0
    told = capsys.readouterr()
    assert "training" not in told.err and told.out.count("an earlier rerun had trained it") == 2
    first, second = records(folder)
    row = next(r for r in first["rows"] if r["metric"] == "auc" and r["attacker"] == "worst")
    honest, row["value"] = row["value"], row["ci_high"] + 0.01
    for content, said in (([first, second], "its SHA-256 is not"), ([seal(first), second], "MOVED: auc, city, worst")):
        assert uge_command(["rerun", str(written(tmp_path, content)), *into]) == 1
        out = capsys.readouterr().out
        assert said in out and f"now {honest:.4f}" in out and "lies outside its interval" in out
    # Inside its interval another number is no news, but sealed anew or not, a cell that left its own is.
    row["value"], row["ci_low"], row["ci_high"] = honest, honest - 0.01, honest + 0.01
    row["value"] += 0.005
    assert uge_command(["rerun", str(written(tmp_path, [seal(first), second])), *into]) == 0
    assert "1 within their intervals" in capsys.readouterr().out
    cell = next(c for r in first["rows"] for c in r["cells"] if c["ci_high"] is not None)
    cell["value"] += 0.5
    assert uge_command(["rerun", str(written(tmp_path, [seal(first)])), *into, "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert told["code"] == 1 and [j["verdict"] for j in told["judged"]] == ["moved"]


@pytest.mark.slow
def test_ctrl_c_stops_it_and_the_same_command_goes_on(reported, tmp_path):
    folder, store = reported
    first = records(folder)[0]
    first["config"] = first["config"] | {"epochs": 100_000}
    path = written(tmp_path, seal(first))
    words = ["rerun", str(path), "--into", str(tmp_path / "again"), "--store", str(store.root), "--device", "cpu"]
    command = [sys.executable, "-m", "uge_core", *words]
    # A shell starts its background jobs, and so tests run from one, with Ctrl-C ignored.
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "training" in line and "left" in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.communicate()[1]
    assert (process.returncode, "interrupted" in rest) == (130, True) and "Traceback" not in rest, rest[-2000:]
    (run,) = uge.RunStore(tmp_path / "again").list()
    assert run.status == "interrupted"


def test_other_data_are_told_before_anything_is_trained(reported, tmp_path, capsys):
    folder, store = reported
    words = ["rerun", str(folder / "report.json"), "--into", str(tmp_path / "again"), "--store", str(store.root)]
    assert uge_command([*words, "--data", "sample:town"]) == 3
    out = capsys.readouterr()
    assert out.out.count("not the same data: the report is of town") == 2 and "training" not in out.err
    assert uge.RunStore(tmp_path / "again").list() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runs", "0123"], "has no run '0123'; it has"),
        (["--into", "STORE"], "nothing would be trained; name another with --into DIR"),
        (["--data", "nowhere"], "nowhere"),
    ],
)
def test_slips_of_the_hand_are_told(reported, capsys, words, said):
    folder, store = reported
    given = [str(store.root) if w == "STORE" else w for w in words]
    assert uge_command(["rerun", str(folder / "report.json"), "--store", str(store.root), *given]) == 2
    assert said in capsys.readouterr().err


def test_without_its_store_a_report_asks_for_the_data(reported, tmp_path, capsys):
    folder, _ = reported
    first = records(folder)[0]
    first["dataset"] = first["dataset"] | {"name": "elsewhere"}
    words = ["rerun", str(written(tmp_path, seal(first))), "--store", str(tmp_path / "none")]
    assert uge_command(words) == 2
    assert "does not say where 'elsewhere' lies; name it with --data DATA" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["report.csv", "report.pdf", "nothing.html"])
def test_files_without_records_are_refused(reported, tmp_path, capsys, name):
    content = {"csv": "sha256,run_id,\n", "pdf": "%PDF-1.7", "html": "<!doctype html><p>x</p>"}
    (tmp_path / name).write_text(content[name.rpartition(".")[2]])
    assert uge_command(["rerun", str(tmp_path / name), "--store", str(tmp_path / "none")]) == 2
    assert "record" in capsys.readouterr().err or name == "nothing.html"


def test_what_cannot_be_judged_is_neither_moved_nor_the_same(reported):
    folder, _ = reported
    first = records(folder)[0]

    def verdicts(old, new):
        return {j.verdict for j in compare(old, new)}

    assert verdicts(first, first) == {"equal"}
    other = json.loads(json.dumps(first))
    other["rows"][0]["value"] = None
    assert verdicts(first, other) == {"equal", "no evidence"} == verdicts(other, first)
    assert verdicts(first, {**first, "rows": first["rows"][1:]}) == {"equal", "no evidence"}
    # An earlier version of the audit measured it otherwise: that is said, not called moved.
    other = json.loads(json.dumps(first)) | {"audit_version": version.FIRST}
    row = next(r for r in other["rows"] if r["metric"] == "dp")
    row["value"] += 0.9
    assert verdicts(other, first) == {"equal", "not compared"}


def test_embeddings_from_elsewhere_are_not_trained(reported, town, tmp_path):
    folder, _ = reported
    first = records(folder)[0]
    first["config"] = first["config"] | {"method": "external"}
    found = list(rerun([seal(first)], uge.load(town), uge.RunStore(tmp_path / "again")))
    assert exit_code(found) == 3 and "not trained here" in found[0].remarks[0]


def test_a_cell_that_one_of_the_two_has_not_is_told_as_a_row_is(reported):
    folder, _ = reported
    first = records(folder)[0]
    at, row = next((i, r) for i, r in enumerate(first["rows"]) if any(not c["withheld"] for c in r["cells"]))
    cells = row["cells"]
    gone = next(c for c in cells if not c["withheld"])
    less = {**first, "rows": [*first["rows"]]}
    less["rows"][at] = {**row, "cells": [c for c in cells if c is not gone]}
    for old, new, said, sides in (
        (less, first, "not in the report", (None, gone["value"])),
        (first, less, "not measured now", (gone["value"], None)),
    ):
        (told,) = [j for j in compare(old, new) if j.verdict != "equal"]
        assert (told.verdict, told.why, (told.said, told.anew)) == ("no evidence", said, sides)
        assert gone["a"] in told.about and row["metric"] in told.about
