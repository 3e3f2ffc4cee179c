import json
import re
from pathlib import Path

import pytest

import uge_core as uge
from uge_core.cli.main import run
from uge_core.errors import ConfigError, UgeError
from uge_core.runs.rivals import ATTACKERS, FIGURES, markdown, rivals, table

pytestmark = pytest.mark.slow
DOCS = Path(__file__).resolve().parents[3] / "docs"
FEW = {"epochs": 8, "dim": 8}


@pytest.fixture(scope="module")
def graph(town):
    """Two attributes are enough, as a run that is stored is audited for each."""
    return uge.load(town, attributes=["city", "gender"])


@pytest.fixture(scope="module")
def measured(graph, tmp_path_factory):
    rows = tmp_path_factory.mktemp("rivals") / "rows.jsonl"
    entries = ["uge-c:1.9", "none", "inlp"]
    return rows, rivals(graph, "gender", entries=entries, seeds=[0, 1], options=FEW | {"dim": 2}, rows=rows)


def test_a_row_has_the_figures_of_the_stored_runs_audit(graph, measured, tmp_path):
    stored = uge.train(
        graph,
        sensitive="gender",
        method="uge-c",
        lam=1.9,
        seed=1,
        options={"epochs": 8, "dim": 2},
        store=uge.RunStore(tmp_path),
    )
    row = next(r for r in measured[1]["rows"] if r["method"] == "uge-c" and r["seed"] == 1)
    audit = uge.audit(stored, graph, sensitive="gender", attackers=ATTACKERS)
    whole = {(r.metric, r.attacker, r.variant, r.exposure): r.value for r in audit.rows}
    assert row["run"] == stored.id
    assert row["f1_seen"] == pytest.approx(whole["micro_f1", "linear", "standard", "seen"])
    assert row["auc_seen"] == pytest.approx(whole["auc", "linear", "standard", "seen"])
    assert row["ndcg"] == pytest.approx(whole["ndcg_at_10", None, "held-out", "seen"])
    unseen = {a: whole["auc", a, "standard", "unseen"] for a in ATTACKERS}
    assert row["auc_graph"] == pytest.approx(unseen.pop("graph"))
    assert row["auc_worst"] == pytest.approx(max(unseen.values(), key=lambda auc: abs(auc - 0.5)))
    assert unseen[row["worst_attacker"]] == pytest.approx(row["auc_worst"])


def test_the_table_has_means_over_seeds_and_reasons(measured):
    head, lines = table(measured[1])
    assert [line[0] for line in lines] == ["none", "uge-c 1.9", "inlp"] and len(head) == len(FIGURES) + 2
    both = [r["ndcg"] for r in measured[1]["rows"] if r["method"] == "none"]
    column = head.index(FIGURES["ndcg"])
    assert lines[0][column] == f"{sum(both) / 2:.3f} +- {abs(both[0] - both[1]) / 2:.3f}"


def test_seeds_on_both_sides_of_a_half_do_not_cancel(measured):
    rows = [dict(r) for r in measured[1]["rows"] if r["method"] == "uge-c"]
    for row, auc in zip(rows, (0.3, 0.7), strict=True):
        row["auc_worst"] = auc
    head, (line,) = table({"rows": rows})
    assert line[head.index(FIGURES["auc_worst"])] == "0.700 +- 0.000"


def test_what_cannot_serve_is_listed_with_the_reason_and_the_others_go_on(graph):
    asked = {"seeds": [0], "options": {"epochs": 2, "dim": 2}, "attackers": ["linear"]}
    record = rivals(graph, "city", entries=["leace", "none"], **asked)
    none, leace = record["rows"]
    assert none["ndcg"] is not None and leace["refused"] and "dim" in leace["refused"]
    assert table(record)[1][1][-1] == leace["refused"]


def test_what_is_measured_is_not_measured_again(graph, measured, tmp_path):
    rows = tmp_path / "rows.jsonl"
    lines = measured[0].read_text().splitlines()
    # Nobody's figure: had it been measured anew, it would have changed. The last line is cut as a killed process leaves
    # it.
    marked = json.loads(lines[0]) | {"ndcg": 0.123}
    rows.write_text("\n".join([json.dumps(marked), *lines[1:4], lines[4][:20]]) + "\n")
    again = rivals(graph, "gender", entries=["uge-c:1.9", "none"], seeds=[0, 1], options=FEW | {"dim": 2}, rows=rows)
    assert len(rows.read_text().splitlines()) == 5
    assert 0.123 in [r["ndcg"] for r in again["rows"]]


@pytest.mark.parametrize(
    "wrong", [{"entries": ["uge-c:much"]}, {"entries": ["uge-z"]}, {"options": {"epoch": 2}}, {"options": {"seed": 7}}]
)
def test_slips_of_the_hand_are_refused_before_anything_trains(graph, wrong):
    with pytest.raises(ConfigError, match=r"allowed|METHOD:LAMBDA|--seeds"):
        rivals(graph, "gender", **({"entries": ["none"]} | wrong))


def test_rows_serve_the_attribute_and_the_attackers_they_were_measured_for_alone(graph, tmp_path):
    rows, asked = tmp_path / "rows.jsonl", {"entries": ["none"], "seeds": [0], "options": {"epochs": 2, "dim": 2}}
    for sensitive, attackers in (("gender", ["linear"]), ("city", ["linear"]), ("city", ["linear", "knn"])):
        made = rivals(graph, sensitive, attackers=attackers, rows=rows, **asked)["rows"][0]
        assert (made["sensitive"], sorted(made["aucs"])) == (sensitive, sorted(attackers))
    assert (
        len(rows.read_text().splitlines()) == 3
        and len({json.loads(x)["run"] for x in rows.read_text().splitlines()}) == 1
    )


def test_a_row_after_a_line_that_was_cut_is_kept(graph, tmp_path):
    rows, asked = tmp_path / "rows.jsonl", {"entries": ["none"], "seeds": [0], "options": {"epochs": 2, "dim": 2}}
    rows.write_text('{"run": "cut of')
    rivals(graph, "gender", attackers=["linear"], rows=rows, **asked)
    assert json.loads(rows.read_text().splitlines()[1])["method"] == "none"


def test_the_split_is_the_runs_own_so_that_unseen_people_are_those_the_twin_did_not_see(graph, tmp_path):
    options = {"epochs": 8, "dim": 2, "split_seed": 3}
    stored = uge.train(graph, sensitive="gender", method="uge-c", options=options, store=uge.RunStore(tmp_path))
    (row,) = rivals(graph, "gender", entries=["uge-c"], seeds=[0], options=options, attackers=["linear"])["rows"]
    audit = uge.audit(stored, graph, sensitive="gender", attackers=["linear"])
    whole = {(r.metric, r.attacker, r.exposure): r.value for r in audit.rows if r.variant == "standard"}
    assert row["run"] == stored.id and row["auc_seen"] == pytest.approx(whole["auc", "linear", "seen"])
    assert row["auc_worst"] == pytest.approx(whole["auc", "linear", "unseen"])


def test_what_no_method_could_serve_with_is_an_error_and_no_row(graph):
    for wrong in ({"sensitive": "regoin"}, {"attackers": ["tres"]}, {"options": {"epochs": 0}}):
        with pytest.raises(UgeError, match=r"regoin|tres|epochs"):
            rivals(graph, **{"sensitive": "gender", "entries": ["none"]} | wrong)


@pytest.mark.slow
def test_from_the_command_line(town, capsys, tmp_path):
    asked = ["rivals", str(town), "--sensitive", "gender", "--methods", "none", "--seeds", "0", "--epochs", "2"]
    assert run([*asked, "--rows", str(tmp_path / "rows.jsonl"), "--markdown"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("| method |") and printed[1].count("---") == printed[0].count("|") - 1
    assert run([*asked, "--rows", str(tmp_path / "rows.jsonl"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["schema"] == "uge-rivals/1" and record["rows"][0]["method"] == "none"


def test_the_published_tables_are_of_the_published_rows():
    text = (DOCS / "rivals.md").read_text(encoding="utf-8")
    named = re.findall(r"rivals/([\w-]+)\.jsonl", text)
    kept = {path.stem for path in (DOCS / "rivals").glob("*.jsonl")}
    assert kept and set(named) == kept
    for name in kept:
        lines = (DOCS / "rivals" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        assert markdown(*table({"rows": [json.loads(line) for line in lines]})) in text, name
