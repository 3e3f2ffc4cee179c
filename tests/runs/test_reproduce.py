import json
from dataclasses import replace
from pathlib import Path

import pytest

import uge_core as uge
from uge_core.audit import version
from uge_core.cli.main import run
from uge_core.errors import ConfigError, OutOfMemory
from uge_core.explore.projection.paper import place
from uge_core.runs.recipe import parse_recipe, recipe, recipe_names
from uge_core.runs.reproduce import reproduce
from uge_core.views.figures.paper import paper_figure, placed_figure
from uge_core.views.paper import PaperTable, shipped_table

RECIPE = parse_recipe(
    "town",
    """
title: a table of the town
source: none
data: town
attributes: [city, gender]
settings: {epochs: 6, dim: 2}
seeds: [0, 1]
columns:
  - {label: No Debiasing, run: none}
  - {label: UGE-W, run: uge-w}
  - {label: UGE-C 0.5, run: "uge-c:0.5"}
  - {label: UGE-C 1.9, run: "uge-c:1.9"}
  - {label: all, run: "uge-r:0.5", jointly: true}
  - {label: LEACE, run: leace}
  - {label: Random}
claims:
  - {words: Chance is least., less: [Random], than: [No Debiasing, UGE-W], attributes: [city]}
  - {words: Two series., path: [[UGE-C 0.5, UGE-C 1.9], [UGE-W]]}
panels: [[micro_f1, ndcg], [lambda, micro_f1]]
published:
  - {backbone: node2vec, attribute: city, figure: micro_f1, values: [.9, .1, .5, .4, .5, .5, .25]}
""",
)


@pytest.fixture(scope="module")
def graph(town):
    made = uge.load(town, attributes=["city", "gender"])
    return replace(made, defaults=replace(made.defaults, as_coded_rows=made.num_nodes * 3 // 4))


@pytest.fixture(scope="module")
def measured(graph, tmp_path_factory):
    rows, notes = tmp_path_factory.mktemp("paper") / "rows.jsonl", list[str]()
    return rows, reproduce(RECIPE, graph, rows=rows, on_note=notes.append), notes


@pytest.mark.slow
def test_a_row_has_the_figures_of_the_stored_runs_audit(graph, measured, tmp_path):
    stored = uge.train(
        graph,
        sensitive="city",
        method="uge-c",
        lam=1.9,
        seed=1,
        options={"epochs": 6, "dim": 2},
        store=uge.RunStore(tmp_path),
    )
    audit = uge.audit(stored, graph, sensitive="city")
    (row,) = (r for r in measured[1] if r["run"] == stored.id)
    figures = row["figures"]["city"]
    for cell, asked in (
        (figures["micro_f1"]["published"], {"metric": "micro_f1", "attacker": "linear", "variant": "as-coded"}),
        (figures["micro_f1"]["ours"], {"metric": "auc", "attacker": "worst", "exposure": "unseen"}),
        (figures["ndcg"]["published"], {"metric": "ndcg_at_10", "variant": "as-coded"}),
        (figures["ndcg"]["ours"], {"metric": "ndcg_at_10_matched", "variant": "held-out", "exposure": "unseen"}),
        (figures["dp"]["published"], {"metric": "dp", "variant": None}),
        (figures["dp"]["ours"], {"metric": "dp", "variant": "calibrated"}),
        (figures["eo"]["published"], {"metric": "eo", "variant": "held-out"}),
        (figures["eo"]["ours"], {"metric": "eo", "variant": "calibrated"}),
    ):
        (want,) = (r for r in audit.select(**asked) if "exposure" in asked or r.exposure != "unseen")
        assert cell.get("value") == pytest.approx(want.value, abs=1e-6), asked
    assert all("value" in figures[name]["published"] for name in ("micro_f1", "ndcg", "dp", "eo"))


@pytest.mark.slow
def test_each_setting_is_trained_once_and_what_cannot_serve_is_told(measured):
    _, rows, notes = measured
    trained = [r for r in rows if r["run"]]
    # No debiasing and the joint method serve both attributes, three others each of them, LEACE gender; with two seeds.
    assert len(trained) == 2 * (1 + 1 + 2 * 3 + 1) and len({r["run"] for r in trained}) == len(trained)
    assert [r["audited"] for r in rows if r["method"] == "none"] == [["city", "gender"]] * 2
    assert [r["treated"] for r in rows if r["method"] == "uge-r"] == [["city", "gender"]] * 2
    (refused,) = (r for r in rows if r["refused"])
    assert refused["method"] == "leace" and "dim" in refused["refused"]
    assert any(" left" in note for note in notes) and " left" not in notes[-1]
    table = PaperTable(RECIPE, rows)
    (cell,) = (c for c in table.cells if (c.column, c.attribute) == ("LEACE", "city"))
    assert cell.verdict == "not measured" and cell.why == refused["refused"]
    assert table.refused("node2vec", RECIPE.column("LEACE"), "gender") == ""


@pytest.mark.slow
def test_what_is_measured_is_not_measured_again(graph, measured, tmp_path):
    lines = measured[0].read_text().splitlines()
    rows = tmp_path / "rows.jsonl"
    # Nobody's figure: had it been measured anew, it would have changed. A killed process leaves half a line.
    marked = json.loads(lines[0]) | {"seconds": 0.123}
    rows.write_text("\n".join([json.dumps(marked), *lines[2:], lines[1][:40]]))
    again = reproduce(RECIPE, graph, rows=rows)
    assert 0.123 in [r.get("seconds") for r in again]
    kept = [json.loads(line) for line in rows.read_text().splitlines() if line.endswith("}")]
    assert len(kept) == len(lines)
    assert {k: v for k, v in kept[-1].items() if k != "seconds"} == {
        k: v for k, v in json.loads(lines[1]).items() if k != "seconds"
    }
    # Another recipe takes the rows of this one for what it looks at.
    fewer = replace(RECIPE, name="other", attributes=("gender",), columns=RECIPE.columns[:2], published={}, claims=())
    count = len(rows.read_text().splitlines())
    assert {r["run"] for r in reproduce(fewer, graph, rows=rows)} <= {r["run"] for r in measured[1]}
    assert len(rows.read_text().splitlines()) == count
    earlier = [json.loads(line) | {"audit": version.VERSION - 1} for line in lines]
    rows.write_text("\n".join(map(json.dumps, earlier)) + "\n")
    one = replace(RECIPE, columns=RECIPE.columns[:1], published={}, claims=())
    assert {r["audit"] for r in reproduce(one, graph, rows=rows, seeds=[0])} == {version.VERSION}


@pytest.mark.slow
def test_the_table_and_the_figure_show_every_cell(measured):
    table = PaperTable(RECIPE, measured[1])
    assert [c.column for c in table.cells] == [c.label for c in RECIPE.columns]
    plain, random = table.cells[0], table.cells[-1]
    assert plain.measured.seeds == 2 and plain.attacker
    assert random.measured.value == plain.measured.random
    figure = paper_figure(table)
    assert {t.name for t in figure.data} == {"No Debiasing", "UGE-W", "UGE-C", "all", "LEACE", "Random"}
    series = [t for t in figure.data if t.name == "UGE-C"]
    assert {len(t.x) for t in series} == {2} and any(tuple(t.x) == (0.5, 1.9) for t in series)
    assert paper_figure(PaperTable(replace(RECIPE, panels=()), measured[1])) is None


@pytest.mark.slow
def test_pictures_are_of_the_same_people_with_their_values(graph):
    small = replace(RECIPE, columns=RECIPE.columns[:2], backbones=("gcn",))
    plain, treated = placed = place(small, graph, people=150)
    assert (plain.label, treated.label) == ("No Debiasing", "UGE-W") and plain.coordinates.shape == (150, 2)
    assert (plain.codes == treated.codes).all() and not (plain.coordinates == treated.coordinates).all()
    assert "150 of" in plain.words and plain.values == graph.attribute("city").labels
    figure = placed_figure(small, placed)
    assert sum(len(t.x) for t in figure.data) == 2 * (plain.codes >= 0).sum()


def made(label, low, high, seed=0, figure="micro_f1", how="published", **more):
    """A row whose figure is an interval that somebody made up."""
    column = RECIPE.column(label)
    cell = {"value": (low + high) / 2, "ci_low": low, "ci_high": high, "n": 100_000, "floor_random": 0.2}
    return {
        "backbone": "node2vec",
        "method": column.entry.method,
        "options": {},
        "lam": column.entry.lam,
        "treated": [] if column.entry.method == "none" else ["city"],
        "settings": {"epochs": "6", "dim": "2"},
        "data": "town",
        "audit": version.VERSION,
        "fingerprint": "f",
        "run": f"{label} {seed}",
        "seed": seed,
        "refused": None,
        "figures": {"city": {"micro_f1": {how: cell}, "ndcg": {how: more.get("ndcg", cell)}}},
    }


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.05, 0.15, "within the interval"),
        (0.2, 0.3, "direction holds"),
        (0.75, 0.82, "not distinguishable"),
        (0.95, 0.99, "differs"),
    ],
)
def test_verdicts_of_a_cell(low, high, verdict):
    # No debiasing is .8 to .9 here and .9 as published; UGE-W is .1 as published.
    table = PaperTable(RECIPE, [made("No Debiasing", 0.8, 0.9), made("UGE-W", low, high)])
    found = {c.column: c.verdict for c in table.cells}
    assert found["UGE-W"] == verdict and found["No Debiasing"] == "within the interval"
    assert found["UGE-C 0.5"] == "not measured" and found["Random"] == "differs"
    assert {c.column: c.verdict for c in PaperTable(RECIPE, [made("No Debiasing", 0.8, 0.89)]).cells}[
        "No Debiasing"
    ] == "differs"


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.3, 0.4, "holds"), (0.1, 0.3, "not distinguishable"), (0.1, 0.15, "does not hold")]
)
def test_verdicts_of_a_claim(low, high, verdict):
    table = PaperTable(RECIPE, [made("No Debiasing", 0.8, 0.9), made("UGE-W", low, high)])
    claim = table.claims[0]
    (_, published, why), (_, ours, _) = claim.judged
    assert (published, ours) == (verdict, "not measured") and "of 2 comparisons hold" in why
    assert ("UGE-W 0.125" in why) == (verdict == "does not hold")


def test_over_three_seeds_differences_of_the_same_seed_count():
    """Seeds that move both figures alike hide no difference; people do, and so do seeds that move it."""
    claim = replace(RECIPE.claims[0], less=("UGE-W",), than=("No Debiasing",))
    recipe = replace(RECIPE, claims=(claim,), seeds=(0, 1, 2))

    def judged(steps, people):
        rows = [
            made(label, value - people, value + people, seed)
            for seed, (base, step) in enumerate(zip((0.5, 0.7, 0.9), steps, strict=True))
            for label, value in (("No Debiasing", base), ("UGE-W", base - step))
        ]
        return PaperTable(recipe, rows).claims[0].judged[0][1]

    assert judged((0.05, 0.051, 0.049), 0.01) == "holds"
    assert judged((0.05, 0.051, 0.049), 0.04) == "not distinguishable"
    assert judged((0.15, 0.0, 0.0), 0.01) == "not distinguishable"
    assert judged((-0.05, -0.051, -0.049), 0.01) == "does not hold"


@pytest.mark.parametrize(
    ("leak", "links", "verdict"), [(0.6, 0.3, "holds"), (0.6, 0.6, "not distinguishable"), (0.2, 0.8, "does not hold")]
)
def test_a_series_is_better_where_its_points_beat_the_other_in_both(leak, links, verdict):
    def point(label, x, y):
        return made(label, x - 0.01, x + 0.01, ndcg={"value": y, "ci_low": y - 0.01, "ci_high": y + 0.01})

    recipe = replace(RECIPE, claims=(replace(RECIPE.claims[1], attributes=("city",)),))
    rows = [point("UGE-C 0.5", 0.5, 0.5), point("UGE-C 1.9", 0.4, 0.4), point("UGE-W", leak, links)]
    assert PaperTable(recipe, rows).claims[0].judged[0][1] == verdict


def test_rows_of_others_are_no_part_of_a_table():
    """Of another graph, another reading of it, another audit, other seeds or other joint attributes."""
    mine = made("No Debiasing", 0.8, 0.9)
    other = made("No Debiasing", 0.1, 0.2)
    for change in ({"data": "village"}, {"audit": version.VERSION - 1}, {"seed": 7}, {"backbone": "gcn"}):
        table = PaperTable(RECIPE, [mine, other | change])
        assert [c.measured.value for c in table.cells if c.column == "No Debiasing"] == [pytest.approx(0.85)], change
    renewed = PaperTable(RECIPE, [made("UGE-W", 0.1, 0.2) | {"fingerprint": "before"}, mine])
    assert {c.column for c in renewed.cells if c.measured} == {"No Debiasing", "Random"}
    joint = replace(RECIPE, joint_attributes=("city", "gender", "age"))
    for treated, there in ((["city", "gender"], False), (["city", "gender", "age"], True)):
        table = PaperTable(joint, [made("all", 0.1, 0.2) | {"treated": treated}])
        assert any(c.measured for c in table.cells) == there


def test_most_cases_are_no_more_than_most_and_print_is_told_beside_them():
    claim = replace(RECIPE.claims[0], less=("UGE-W", "UGE-C 0.5", "all"), than=("No Debiasing",))
    rows = [made("No Debiasing", 0.5, 0.6), made("UGE-W", 0.1, 0.2), made("UGE-C 0.5", 0.1, 0.2)]
    rows.append(made("all", 0.8, 0.9) | {"treated": ["city", "gender"]})
    judged = {
        mostly: PaperTable(replace(RECIPE, claims=(replace(claim, mostly=mostly),)), rows).claims[0].judged[0]
        for mostly in (False, True)
    }
    assert (judged[False][1], judged[True][1]) == ("does not hold", "holds")
    assert judged[True][2].endswith("; of the published numbers 3 of 3")
    without = PaperTable(replace(RECIPE, claims=(replace(claim, mostly=True),)), rows[:2]).claims[0]
    assert without.judged[0][1] == "not measured in full"


def test_a_series_with_points_that_are_missing_is_not_judged():
    recipe = replace(RECIPE, claims=(replace(RECIPE.claims[1], attributes=("city",)),))
    rows = [made("UGE-C 0.5", 0.1, 0.2), made("UGE-W", 0.6, 0.7)]
    assert PaperTable(recipe, rows).claims[0].judged[0][1] == "not measured"


def test_what_random_vectors_give_has_the_interval_of_the_people_tested_or_none():
    few = made("No Debiasing", 0.8, 0.9)
    few["figures"]["city"]["micro_f1"]["published"]["n"] = 100
    cells = {c.column: c for c in PaperTable(RECIPE, [few]).cells}
    assert cells["Random"].measured.low == pytest.approx(0.2 - 1.96 * (0.2 * 0.8 / 100) ** 0.5)
    assert cells["Random"].verdict == "within the interval"  # .25 in print
    at = ("node2vec", "city", "ndcg")
    links = replace(RECIPE, published={(*at, c.label): 0.3 for c in RECIPE.columns})
    assert {c.column: c.verdict for c in PaperTable(links, [few]).cells}["Random"] == "no interval"


@pytest.mark.slow
def test_an_error_of_one_seed_leaves_the_others_in_and_no_memory_is_no_refusal(graph, measured, tmp_path, monkeypatch):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(measured[0].read_text())

    def full(*_, **__):
        raise OutOfMemory("no memory is left")

    monkeypatch.setattr("uge_core.training.fit.fit", full)
    one = replace(RECIPE, columns=RECIPE.columns[:1], published={}, claims=())
    notes = list[str]()
    found = reproduce(one, graph, rows=rows, seeds=[0, 1, 2], on_note=notes.append)
    assert [r["seed"] for r in found] == [0, 1] and "no memory is left" in notes[0]
    assert rows.read_text() == measured[0].read_text()


def test_other_graphs_backbones_and_recipes_are_refused(graph, tmp_path, capsys):
    with pytest.raises(ConfigError, match="66,569 nodes; town has"):
        reproduce(recipe("table-pokec-n"), graph)
    with pytest.raises(ConfigError, match="nowhere is not there"):
        reproduce(RECIPE, graph, rows=tmp_path / "nowhere" / "rows.jsonl")
    with pytest.raises(ConfigError, match="no backbone of town; its backbones: node2vec"):
        reproduce(RECIPE, graph, backbones=["gat"])
    for arguments, said in (
        (["table-pokec"], "table-pokec-n"),
        (["table-pokec-n", "--backbone", "gta"], "no backbone of table-pokec-n"),
        (["fig-tradeoff-pokec-n", "--backbone", "gta", "--figure", str(tmp_path / "f.svg")], "no backbone"),
        (["table-pokec-n", "--rows", str(tmp_path / "none.jsonl")], "no file there"),
        (["table-pokec-n", "--figure", str(tmp_path / "f.svg")], "is a table"),
        (["table-pokec-n", "sample:town"], "66,569 nodes"),
        (["all", "sample:town"], "all needs DATA"),
        (["fig-tsne-pokec-n", "--figure", str(tmp_path / "f.svg")], "DATA is missing"),
    ):
        assert run(["reproduce", *arguments]) != 0
        assert said in capsys.readouterr().err
    assert run(["reproduce"]) == 0
    assert "fig-tradeoff-movielens" in capsys.readouterr().out
    assert run(["reproduce", "table-pokec-z"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("not measured") >= 168 and "0.8197" in shown


@pytest.mark.realdata
def test_a_graph_whose_edges_are_missing_is_told_with_the_file(shared_data, tmp_path, capsys):
    """Of all recipes those of this folder's graphs alone are trained: none here but for a graph without its edges."""
    (tmp_path / "pokec-z").symlink_to(shared_data("pokec-z"))
    assert run(["reproduce", "all", str(tmp_path), "--rows", str(tmp_path / "rows")]) == 0
    said = capsys.readouterr()
    assert said.err.count("pokec-z_edge.csv[.gz] is missing") == 5
    assert "fig-tradeoff-movielens is left out" in said.err and "0 of 168" in said.out
    assert list((tmp_path / "rows").iterdir()) == []


def test_the_published_tables_are_of_the_shipped_rows():
    text = (Path(__file__).resolve().parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")
    tables = [table for table in map(shipped_table, recipe_names()) if not table.missing]
    assert tables
    for table in tables:
        assert table.markdown() in text, table.recipe.name
        assert all(line.strip() in text for line in table.claim_lines())
