"""What pages say about hand-made rows: turned AUCs, thin evidence, exposures and names."""

import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from uge_core.runs.names import config_words, labels
from uge_core.runs.store import RunStore
from uge_core.views.figures.leakage import leakage_figure, leakage_grid
from uge_core.views.leakage import leakage_choices, leakage_view
from uge_core.views.overview import overview
from uge_core.views.rows import pair_as_shown


def row(**given: Any) -> dict[str, Any]:
    base: dict[str, Any] = dict.fromkeys(
        (
            "attribute",
            "attacker",
            "exposure",
            "ci_low",
            "ci_high",
            "floor_random",
            "floor_majority",
            "floor_degree",
            "note",
        )
    )
    return base | {"variant": "standard", "n": 100, "evidence": "ok", "direction": "lower"} | given


def leak(value: float | None, exposure: str | None, metric: str = "auc", **given: Any) -> dict[str, Any]:
    ends = {} if value is None else {"ci_low": value - 0.05, "ci_high": value + 0.05}
    return row(
        metric=metric,
        attribute="city",
        attacker="worst",
        exposure=exposure,
        value=value,
        floor_random=0.5,
        floor_majority=0.5,
        **ends,
        **given,
    )


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store")


def add(store: RunStore, run_id: str, rows: list[dict[str, Any]], **config: Any) -> None:
    full = {
        "method": "none",
        "lambda": None,
        "sensitive": [],
        "backbone": "gcn",
        "seed": 0,
        "split_seed": 0,
        "epochs": 1,
    } | config
    store.begin(run_id, full, {"name": "town", "fingerprint": "f", "num_nodes": 9, "num_edges": 9})
    store.save_audit(run_id, {"schema": "uge-audit/1", "rows": rows})


def view(store: RunStore, exposure: str = "unseen", metric: str = "auc") -> Any:
    return leakage_view(store, exposure=exposure, attacker="worst", metric=metric)


def test_an_auc_below_half_is_turned_round_and_said(store: RunStore) -> None:
    add(store, "a1", [leak(0.30, None)])
    shown = view(store)
    (record,) = shown.table.to_dict("records")
    assert record["value"] == pytest.approx(0.70)
    assert (record["ci_low"], record["ci_high"]) == (pytest.approx(0.65), pytest.approx(0.75))
    assert record["telling"] and "turned round here: city in No debiasing" in " ".join(shown.remarks)
    add(store, "a1", [leak(0.48, None)])
    (record,) = view(store).table.to_dict("records")
    assert record["ci_low"] == 0.5 and not record["telling"]


def matched(value: float, exposure: str | None = None) -> dict[str, Any]:
    ends = {"ci_low": value - 0.01, "ci_high": value + 0.01}
    floors = {"floor_random": 0.05, "floor_degree": 0.2}
    where = {"metric": "ndcg_at_10_matched", "attribute": "city", "variant": "held-out", "exposure": exposure}
    return row(**where, value=value, **ends, **floors)


def usual(value: float) -> dict[str, Any]:
    return row(metric="ndcg_at_10", variant="held-out", value=value, ci_low=value - 0.01, ci_high=value + 0.01)


def check(value: float, note: str | None = None) -> dict[str, Any]:
    return row(metric="usable", variant=None, value=value, note=note)


def test_what_is_not_usable_is_never_the_lowest(store: RunStore) -> None:
    add(store, "a1", [leak(0.9, None), matched(0.3), check(1.0)])
    for i, (auc, state) in enumerate(((0.8, check(1.0)), (0.5, check(0.0, "all vectors are equal")))):
        rows = [leak(auc, "unseen"), matched(0.2 - i / 10), state]
        add(store, f"b{i}", rows, method="uge-w", sensitive=["city"], seed=i)
    (card,) = overview(store, before="a1", after="b0").cards
    assert card.finding == "not usable" and "All vectors are equal" in card.sentence
    assert overview(store).table["Usable"].tolist() == ["yes", "no"]
    shown = view(store)
    # The mean over seeds of which one is not usable is none.
    assert shown.table["usable"].tolist() == ["usable", "not usable"]
    assert any(r.startswith("Not usable (hollow)") and "UGE-W · city · 2 seeds" in r for r in shown.remarks)
    texts = [t for trace in leakage_figure(shown).data if trace.name == "numbers" for t in trace.text]
    assert [t.endswith(", not usable") for t in texts] == [False, True]


def test_what_is_not_usable_is_hollow_however_much_it_leaks(store: RunStore) -> None:
    add(store, "a1", [leak(0.9, None), check(0.0, "saturated")])
    shown = view(store)
    (dot,) = [t for t in leakage_figure(shown).data if t.name == "No debiasing"]
    assert dot.marker.symbol == "circle-open"
    assert shown.title == "No embedding here is usable, so what does not leak from it is no success"


def test_strongest_attackers_of_other_sets_are_not_in_one_chart(store: RunStore) -> None:
    note = "worst attacker: links, of linear, links; the interval holds for the choice of the largest"
    add(store, "a1", [leak(0.6, None)])
    add(store, "b2", [leak(0.8, "unseen", note=note), check(1.0)], method="uge-w", sensitive=["city"])
    shown = view(store)
    assert shown.table["run"].tolist() == ["UGE-W · city"]
    words = "Left out: 1 of 2 runs, whose strongest attacker of city was chosen among others than linear, links"
    assert any(r.startswith(words) for r in shown.remarks)
    (card,) = overview(store, before="a1", after="b2").cards
    assert card.finding == "leaks" and "chosen among different ones" in " ".join(card.details)


def test_an_auc_whose_attacker_learned_its_sign_stays_as_it_is(store: RunStore) -> None:
    add(store, "a1", [leak(0.30, None) | {"floor_random": 0.45}, check(1.0)])
    (record,) = view(store).table.to_dict("records")
    assert (record["value"], record["random"], record["turned"]) == (0.30, 0.45, False)
    (card,) = overview(store, before="a1").cards
    assert card.finding == "too few people" and card.now.auc and card.now.auc.value == 0.30  # attackers did not try


def test_unseen_rows_lead_and_missing_ones_are_said(store: RunStore) -> None:
    add(store, "a1", [leak(0.9, "seen"), leak(0.8, "unseen")], method="uge-w", sensitive=["city"])
    add(store, "b2", [leak(0.7, "seen")], method="uge-w", sensitive=["gender"])
    assert leakage_choices(store).exposures == ("unseen", "seen")
    assert view(store).table["value"].tolist() == [0.8]
    assert any("Runs left out: 1 for city" in r for r in view(store).remarks)
    assert sorted(view(store, "seen").table["value"]) == [0.7, 0.9]
    (card,) = overview(store, after="a1").cards
    assert "80.0 % of the time" in card.sentence and card.now.auc and (card.now.auc.n, card.now.hidden) == (100, True)
    (card,) = overview(store, after="b2").cards
    assert not card.now.hidden and "not hidden from training" in " ".join(card.details)


def test_what_there_is_to_choose_from_of_every_audit(store: RunStore) -> None:
    add(store, "a1", [leak(0.9, "seen"), row(metric="dp", attribute="age", exposure="unseen", value=0.1)])
    add(store, "b2", [leak(0.6, None, "micro_f1") | {"attacker": "mlp", "attribute": "gender"}], seed=1)
    found = leakage_choices(store)
    assert found.attributes == ("city", "gender") and list(found.attackers.items()) == [
        ("worst", "Strongest"),
        ("mlp", "Neural network"),
    ]
    assert list(found.metrics) == ["auc", "micro_f1"] and found.exposures == ("unseen", "seen")
    with store.writing() as db:
        db.execute("UPDATE runs SET audit = 'no JSON' WHERE id = 'b2'")
    assert list(leakage_choices(store).attackers) == ["worst"]


def test_thin_evidence_is_said_not_drawn_as_zero(store: RunStore) -> None:
    add(
        store,
        "a1",
        [leak(None, None, evidence="insufficient", n=3), leak(None, None, "micro_f1", evidence="insufficient")],
    )
    shown = view(store)
    assert shown.title == "Not enough evidence to say how much can be read"
    assert "not enough evidence" in shown.alt and any(r.startswith("Not enough evidence: city") for r in shown.remarks)
    texts = [t.text for t in leakage_figure(shown).data if t.name == "numbers"]
    assert texts == [("No debiasing: not enough evidence",)]
    assert overview(store).table["Evidence"].tolist() == ["not enough"]
    (card,) = overview(store, before="a1").cards
    assert card.finding == "too few people" and card.now.auc is None


def test_names_say_only_what_differs(store: RunStore) -> None:
    add(store, "a1", [leak(0.8, None)])
    assert leakage_choices(store).runs == {"a1": "No debiasing"}
    add(store, "b2", [leak(0.8, None)], seed=1)
    assert leakage_choices(store).runs == {"a1": "No debiasing · 2 seeds"}
    assert leakage_choices(store).ids == {"a1": ("a1", "b2")}
    add(store, "c3", [leak(0.8, None)], seed=1, dim=32)
    assert leakage_choices(store).runs["c3"] == "No debiasing · dim 32"
    add(store, "d4", [leak(0.8, None)], seed=1, dim=32, learning_rate=1)
    assert leakage_choices(store).runs["d4"] == "No debiasing · dim 32 · learning_rate 1"


def test_a_dot_for_each_method_over_its_seeds_and_the_axis_begins_at_a_coin(store: RunStore) -> None:
    for i in range(3):
        add(store, f"a{i}", [leak(0.8 + i / 100, None)], seed=i)
    add(store, "b", [leak(0.7, "unseen")], method="uge-w", sensitive=["city"])
    shown = view(store)
    assert shown.table["run"].tolist() == ["No debiasing · 3 seeds", "UGE-W · city"]
    assert shown.table["value"].tolist() == [pytest.approx(0.81), 0.7] and shown.table["seeds"].tolist() == [3, 1]
    figure = leakage_figure(shown)
    assert not any(t.type == "bar" for t in figure.data)
    assert figure.layout.xaxis.range[0] == pytest.approx(0.49) and figure.layout.xaxis.range[1] >= 1
    (seeds,) = [t for t in figure.data if t.name == "seeds"]
    assert list(seeds.x) == [0.8, 0.81, 0.82]
    words = next(t for t in figure.data if t.name == "numbers")
    # Words stand where the axis begins, above their line, so that they are inside the chart on a phone too.
    assert set(words.x) == {figure.layout.xaxis.range[0]} and words.textposition == "middle right"
    assert leakage_grid(shown).layout.yaxis.ticktext == ("No debiasing · 3 seeds", "UGE-W · city")


def test_a_headline_names_a_winner_only_where_a_test_separates_it(store: RunStore) -> None:
    add(store, "a", [leak(0.9, None)])
    add(store, "b", [leak(0.70, "unseen")], method="uge-w", sensitive=["city"])
    assert view(store).title == "Least of city is read from UGE-W · city: AUC 0.700 [0.650, 0.750]"
    add(store, "c", [leak(0.75, "unseen")], method="uge-r", sensitive=["city"])
    assert view(store).title == (
        "Least of city, AUC 0.700 [0.650, 0.750], is read from UGE-W · city, which is not shown to differ from 1 other; "
        "about 400 in place of 100 people would show the smallest difference"
    )


def test_table_chart_and_file_hold_the_same_numbers(store: RunStore) -> None:
    add(store, "a1", [leak(0.8123, None)])
    shown = view(store)
    assert "0.8123" in shown.csv()
    (dot,) = [t for t in leakage_figure(shown).data if t.name == "No debiasing"]
    assert dot.x[0] == shown.table["value"][0] == 0.8123
    assert "0.812" in shown.title and "0.812" in shown.alt


def test_csv_quotes_what_would_start_a_formula(store: RunStore) -> None:
    add(store, "a1", [leak(0.8, None) | {"attribute": "=HYPERLINK()"}])
    assert "'=HYPERLINK()" in view(store).csv()


def test_the_random_floor_of_an_auc_is_turned_too(store: RunStore) -> None:
    add(store, "a1", [leak(0.30, None) | {"floor_random": 0.45}, leak(0.30, None, "micro_f1") | {"floor_random": 0.45}])
    (record,) = view(store).table.to_dict("records")
    assert record["random"] == pytest.approx(0.55)
    assert view(store, metric="micro_f1").table["random"].tolist() == [0.45]
    assert overview(store).table["random AUC"].tolist() == [pytest.approx(0.55)]


def test_a_damaged_run_hides_nothing(store: RunStore) -> None:
    add(store, "a1", [leak(0.9, None)])
    add(store, "b2", [leak(0.9, None)])
    with sqlite3.connect(store.root / "store.sqlite") as db:
        db.execute("UPDATE runs SET config = '{' WHERE id = 'b2'")
    db.close()
    found = overview(store)
    assert found.num_runs == 1 and found.unfinished["Status"].tolist() == ["damaged"]


def test_a_config_has_one_wording() -> None:
    config = {
        "method": "uge-c",
        "lambda": 0.5,
        "sensitive": ["a", "b"],
        "backbone": "gcn",
        "seed": 1,
        "split_seed": 2,
        "epochs": 3,
        "dim": 4,
    }
    assert config_words(config) == "gcn, uge-c lambda 0.5, a+b, dim 4, seed 1, split 2, 3 epochs"
    assert config_words(config, "method", "seed", typed=False, joint=" · ") == "UGE-C λ 0.5 · seed 1"
    assert config_words({}) == ""


def test_the_first_page_loads_nothing_that_measures(seeded: Path) -> None:
    code = (
        "import sys; import uge_core.dashboard as ui; store = ui.RunStore(sys.argv[1]);"
        "at = ui.frame(store); found = ui.overview(store, data=at.data, before=at.before, after=at.after); "
        "[ui.gauge(card) for card in found.cards] or sys.exit('no card'); ui.keep_queue_going(store); ui.queue_words(store); "
        "ui.history_view(store);"
        "print(sorted({'torch', 'sklearn', 'numba', 'plotly', 'scipy.stats', 'scipy.optimize'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(seeded)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_runs_of_one_name_are_told_apart_by_what_differs_in_their_settings() -> None:
    def stored(i: str, **options: Any) -> Any:
        config = {
            "method": "cne",
            "backbone": "node2vec",
            "sensitive": [],
            "lambda": None,
            "seed": 0,
            "split_seed": 0,
            "epochs": 10,
            "dim": 16,
            "method_options": options,
        }
        return SimpleNamespace(id=i * 12, config=config, dataset={"name": "town"})

    runs = [stored("a", score="dot"), stored("b", score="distance"), stored("c", score="distance", sigma_2=3.0)]
    assert list(labels(runs).values()) == [
        "CNE (degree prior) · score dot",
        "CNE (degree prior) · score distance",
        "CNE (degree prior) · score distance · sigma_2 3.0",
    ]
    assert list(labels(runs[:1]).values()) == ["CNE (degree prior)"]
    assert list(labels([runs[0], stored("d", score="dot")]).values()) == [
        "CNE (degree prior) · aaaaaa",
        "CNE (degree prior) · dddddd",
    ]


def test_without_an_interval_nothing_is_told_from_guessing(store: RunStore) -> None:
    add(store, "a1", [leak(0.7, None) | {"ci_low": None, "ci_high": None}])
    shown = view(store)
    assert shown.title == "No interval was measured, so no figure can be held against guessing"
    assert not shown.table["telling"].any() and any(r.startswith("Without an interval") for r in shown.remarks)


def test_the_title_names_a_row_that_is_told_from_guessing(store: RunStore) -> None:
    high = leak(0.95, None, "micro_f1") | {"floor_majority": 0.96}
    low = leak(0.7, None, "micro_f1") | {"attribute": "gender"}
    add(store, "a1", [high, low])
    assert view(store, metric="micro_f1").title == "Read above guessing from some embedding: gender (1 of 2 attributes)"


def test_of_an_embedding_from_elsewhere_nobody_knows_what_training_saw(store: RunStore) -> None:
    for i, auc in enumerate((0.9, 0.52)):
        add(store, f"e{i}", [leak(auc, None), leak(auc, None, "micro_f1")], method="external", file=f"{i}.npy")
    assert set(overview(store).table["Exposure"]) == {"not known"}
    assert any("nobody here knows" in r for r in view(store).remarks)
    (card,) = overview(store, before="e0", after="e1").cards
    # Nobody here knows whose values its training saw, so that less of a leak is no success.
    assert card.finding == "too few people" and "the fall is shown" in card.sentence and not card.treated


def test_paired_aucs_below_a_coin_are_turned() -> None:
    pair = {
        "metric": "auc",
        "a": 0.42,
        "b": 0.36,
        "value": 0.06,
        "ci_low": 0.02,
        "ci_high": 0.1,
        "p_value": 0.01,
        "p_holm": 0.02,
    }
    turned = pair_as_shown(pair, signed=False)
    assert [round(turned[k], 6) for k in ("a", "b", "value", "ci_low", "ci_high")] == [0.58, 0.64, -0.06, -0.1, -0.02]
    assert turned["p_holm"] == 0.02
    assert pair_as_shown(pair, signed=True) == pair
    crossed = pair_as_shown(pair | {"a": 0.6, "b": 0.36}, signed=False)
    assert crossed["p_holm"] is None and crossed["value"] == pytest.approx(-0.04)
    assert pair_as_shown(pair | {"a": 0.7, "b": 0.6}, signed=False) == pair | {"a": 0.7, "b": 0.6}
