import json
import re
from pathlib import Path

import numpy as np
import pytest

import uge_core as uge
from uge_core.audit import version
from uge_core.audit.attacker_order import DEFAULT_ATTACKERS
from uge_core.cli.main import run
from uge_core.errors import ConfigError, UgeError
from uge_core.runs.entry import Entry
from uge_core.runs.rivals import SCHEMA, rivals, stored_rows
from uge_core.views.rivals import rivals_tables

pytestmark = pytest.mark.slow
DOCS = Path(__file__).resolve().parents[3] / "docs"
FEW = {"epochs": 8, "dim": 2}


@pytest.fixture(scope="module")
def graph(town):
    """Two attributes are enough, as a run that is stored is audited for each."""
    return uge.load(town, attributes=["city", "gender"])


@pytest.fixture(scope="module")
def measured(graph, tmp_path_factory):
    rows = tmp_path_factory.mktemp("rivals") / "rows.jsonl"
    entries = ["uge-c:1.9", "none", "uge-c:1.9:norm=absolute", "inlp"]
    asked = {"entries": entries, "seeds": [0, 1], "options": FEW, "attackers": ["graph"]}
    return rows, rivals(graph, "gender", rows=rows, **asked)


def value(figure):
    return figure.get("value", np.nan)


def test_a_row_has_the_figures_of_the_stored_runs_audit(graph, measured, tmp_path):
    stored = uge.train(
        graph, sensitive="gender", method="uge-c", lam=1.9, seed=1, options=FEW, store=uge.RunStore(tmp_path)
    )
    row = next(r for r in measured[1]["rows"] if r["method"] == "uge-c" and r["seed"] == 1)
    audit = uge.audit(stored, graph, sensitive="gender", attackers=[*DEFAULT_ATTACKERS, "graph"])
    assert row["run"] == stored.id

    def same(figure, **asked):
        (want,) = audit.select(**asked)
        for name in ("value", "ci_low", "ci_high", "n", "floor_random", "floor_majority", "floor_degree"):
            assert figure.get(name) == pytest.approx(getattr(want, name), abs=1e-6), (asked, name)

    for exposure in ("seen", "unseen"):
        for attacker in (*DEFAULT_ATTACKERS, "worst"):
            same(row["auc"][attacker][exposure], metric="auc", attacker=attacker, exposure=exposure)
        same(row["auc_with_neighbours"]["graph"][exposure], metric="auc", attacker="graph", exposure=exposure)
        for kind, variant in (("matched", "held-out"), ("degree", "degree"), ("uniform twin", "uniform")):
            asked = {"metric": "ndcg_at_10_matched", "variant": variant, "exposure": exposure}
            same(row["ndcg"][kind][exposure], **asked)
        same(row["ndcg"]["uniform"][exposure], metric="ndcg_at_10", variant="held-out", exposure=exposure)
        same(row["ndcg"]["bias-free"][exposure], metric="ndcg_at_10_bias_free", variant="held-out", exposure=exposure)
        worst = row["auc"]["worst"][exposure]
        assert value(worst) == max(value(row["auc"][a][exposure]) for a in DEFAULT_ATTACKERS)
        assert value(row["auc"][worst["attacker"]][exposure]) == value(worst)
    same(row["micro_f1"]["seen"], metric="micro_f1", attacker="linear", variant="standard", exposure="seen")
    for gap, raw in (("dp", None), ("eo", "held-out")):
        for form, variant in (("calibrated", "calibrated"), ("top-10", "top-10"), ("raw", raw)):
            same(row[gap][form], metric=gap, variant=variant)
    assert row["length"] == pytest.approx(np.median(np.linalg.norm(np.asarray(stored.embedding), axis=1)), rel=1e-5)
    assert value(row["auc"]["linear"]["seen"]) != value(row["auc"]["linear"]["unseen"])


def test_of_a_method_that_reads_no_attribute_seen_and_unseen_are_one(measured):
    row = next(r for r in measured[1]["rows"] if r["method"] == "none")
    for figure in (row["auc"]["worst"], row["auc_with_neighbours"]["graph"], row["ndcg"]["matched"]):
        assert figure["seen"] == figure["unseen"] and value(figure["seen"]) > 0


def test_an_entry_has_settings_of_its_own(measured):
    rows = [r for r in measured[1]["rows"] if r["method"] == "uge-c"]
    assert [(r["seed"], r["options"]) for r in rows] == [(s, o) for o in ({}, {"norm": "absolute"}) for s in (0, 1)]
    assert len({value(r["ndcg"]["uniform"]["seen"]) for r in rows}) == 4
    (table,) = rivals_tables(measured[1]["rows"])
    assert [r.label for r in table.rivals] == ["none", "uge-c 1.9", "uge-c 1.9 norm=absolute", "inlp"]
    assert Entry.parse("uge-ork:1:num_features=64:strength=.2") == Entry(
        "uge-ork", 1.0, {"num_features": "64", "strength": ".2"}
    )
    assert Entry.parse("uge-w:norm=x") == Entry("uge-w", None, {"norm": "x"})


def test_what_cannot_serve_is_listed_and_kept_once_with_the_reason_and_the_others_go_on(graph, tmp_path):
    asked = {"seeds": [0], "options": {"epochs": 2, "dim": 2}, "rows": tmp_path / "rows.jsonl"}
    for _ in range(2):
        record = rivals(graph, "city", entries=["leace", "none"], **asked)
        none, leace = record["rows"]
        assert none["ndcg"] and leace["refused"] and "dim" in leace["refused"]
    kept = stored_rows(tmp_path / "rows.jsonl")
    assert [r["method"] for r in kept] == ["none", "leace"]
    (table,) = rivals_tables(kept)
    assert table.lines[1][-1] == leace["refused"]


def test_what_is_measured_is_not_measured_again(graph, measured, tmp_path):
    rows = tmp_path / "rows.jsonl"
    lines = measured[0].read_text().splitlines()
    assert [json.loads(line)["method"] for line in lines[:3]] == ["none", "none", "uge-c"]
    # Nobody's figure: had it been measured anew, it would have changed. The last line is cut as a killed process leaves
    # it.
    marked = json.loads(lines[0]) | {"length": 0.123}
    rows.write_text("\n".join([json.dumps(marked), *lines[1:3], lines[3][:20]]) + "\n")
    asked = {"seeds": [0, 1], "options": FEW, "attackers": ["graph"]}
    again = rivals(graph, "gender", entries=["uge-c:1.9", "none"], rows=rows, **asked)
    assert len(rows.read_text().splitlines()) == 5
    assert 0.123 in [r["length"] for r in again["rows"]]
    assert stored_rows(rows)[-1] | {"seconds": 0} == json.loads(lines[3]) | {"seconds": 0}


@pytest.mark.parametrize("other", [{"schema": "uge-rivals/1"}, {"audit": version.VERSION - 1}])
def test_rows_of_an_earlier_schema_or_audit_are_no_part_of_the_table(graph, measured, tmp_path, other):
    rows, notes = tmp_path / "rows.jsonl", list[str]()
    earlier = json.loads(measured[0].read_text().splitlines()[0]) | {"length": 0.123} | other
    rows.write_text(json.dumps(earlier) + "\n")
    asked = {"entries": ["none"], "seeds": [0], "options": FEW, "attackers": ["graph"]}
    (row,) = rivals(graph, "gender", rows=rows, on_note=notes.append, **asked)["rows"]
    assert row["length"] != 0.123 and len(rows.read_text().splitlines()) == 2
    assert ("1 rows of an earlier schema" in notes[0]) == ("schema" in other)
    if "schema" in other:
        assert len(stored_rows(rows)) == 1
        rows.write_text(json.dumps(earlier) + "\n")
        with pytest.raises(ConfigError, match="1 rows of an earlier schema"):
            stored_rows(rows)


@pytest.mark.parametrize(
    "wrong",
    [
        {"entries": ["uge-c:much"]},
        {"entries": ["uge-c:1:much"]},
        {"entries": ["uge-c:1:seed=2"]},
        {"entries": ["uge-c:1:split_seed=2"]},
        {"entries": ["uge-c:1:num_features=2"]},
        {"entries": ["uge-z"]},
        {"options": {"epoch": 2}},
        {"options": {"seed": 7}},
    ],
)
def test_slips_of_the_hand_are_refused_before_anything_trains(graph, wrong):
    with pytest.raises(ConfigError, match=r"allowed|METHOD:LAMBDA|--seeds|one for all"):
        rivals(graph, "gender", **({"entries": ["none"]} | wrong))


def test_rows_serve_the_attribute_and_the_attackers_they_were_measured_for_alone(graph, tmp_path):
    rows, asked = tmp_path / "rows.jsonl", {"entries": ["none"], "seeds": [0], "options": {"epochs": 2, "dim": 2}}
    for sensitive, attackers in (("gender", []), ("city", []), ("city", ["knn"])):
        made = rivals(graph, sensitive, attackers=attackers, rows=rows, **asked)["rows"][0]
        assert made["sensitive"] == sensitive and {*made["auc"]} == {*DEFAULT_ATTACKERS, *attackers, "worst"}
        assert made["auc"]["worst"]["seen"]["attacker"] != "knn"
    kept = stored_rows(rows)
    assert len(kept) == 3 and len({row["run"] for row in kept}) == 1
    assert len(rivals_tables(kept)) == 3


def test_a_row_after_a_line_that_was_cut_is_kept(graph, tmp_path):
    rows, asked = tmp_path / "rows.jsonl", {"entries": ["none"], "seeds": [0], "options": {"epochs": 2, "dim": 2}}
    rows.write_text('{"run": "cut of')
    rivals(graph, "gender", rows=rows, **asked)
    assert json.loads(rows.read_text().splitlines()[1])["method"] == "none"


def test_the_split_is_the_runs_own_so_that_unseen_people_are_those_the_twin_did_not_see(graph, tmp_path):
    options = FEW | {"split_seed": 3}
    stored = uge.train(graph, sensitive="gender", method="uge-c", options=options, store=uge.RunStore(tmp_path))
    (row,) = rivals(graph, "gender", entries=["uge-c"], seeds=[0], options=options)["rows"]
    audit = uge.audit(stored, graph, sensitive="gender")
    assert row["run"] == stored.id
    for exposure in ("seen", "unseen"):
        want = audit.find(metric="auc", attacker="worst", exposure=exposure).value
        assert value(row["auc"]["worst"][exposure]) == pytest.approx(want, abs=1e-6)


def test_what_no_method_could_serve_with_is_an_error_and_no_row(graph):
    for wrong in ({"sensitive": "regoin"}, {"attackers": ["tres"]}, {"options": {"epochs": 0}}):
        with pytest.raises(UgeError, match=r"regoin|tres|epochs"):
            rivals(graph, **{"sensitive": "gender", "entries": ["none"]} | wrong)


def test_from_the_command_line(town, capsys, tmp_path):
    asked = ["rivals", str(town), "--sensitive", "gender", "--methods", "none", "--seeds", "0", "--epochs", "2"]
    kept = ["--rows", str(tmp_path / "rows.jsonl")]
    assert run([*asked, *kept, "--markdown", "--figure", str(tmp_path / "front.html")]) == 0
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    assert lines[0].startswith("| method |") and lines[1].count("---") == lines[0].count("|") - 1
    assert "gender" in (tmp_path / "front.html").read_text(encoding="utf-8")
    assert run(["rivals", *kept, "--markdown"]) == 0
    assert capsys.readouterr().out == printed, "rows alone print what was printed as they were measured"
    assert run([*asked, *kept, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["schema"] == SCHEMA and record["rows"][0]["method"] == "none"
    assert run(["rivals", *kept, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == record["rows"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ([], "DATA is missing"),
        (["--rows", "rows.jsonl", "--sensitive", "gender"], "beside --sensitive"),
        (["--rows", "nowhere.jsonl"], "no file there"),
        (["DATA"], "--sensitive A is missing"),
        (["--rows", "rows.jsonl", "--figure", "front.pdf"], "ends in"),
    ],
)
def test_from_the_command_line_a_slip_is_said_in_one_line(town, capsys, wrong, says):
    assert run(["rivals", *(str(town) if word == "DATA" else word for word in wrong)]) == 2
    assert says in capsys.readouterr().err


def test_the_published_tables_are_of_the_published_rows():
    text = (DOCS / "rivals.md").read_text(encoding="utf-8")
    named = re.findall(r"rivals/([\w-]+)\.jsonl", text)
    kept = {path.stem for path in (DOCS / "rivals").glob("*.jsonl")}
    assert kept and set(named) == kept
    for name in sorted(kept):
        lines = (DOCS / "rivals" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        assert {row.get("schema") for row in rows} == {SCHEMA}, name
        (table,) = rivals_tables(rows)
        assert f"{table.floors} " in text and table.markdown() in text, name
