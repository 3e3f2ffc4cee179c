"""What the Fairness, Trade-off and Method pages show, on real audits and on hand-made rows."""

import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import uge_core as uge
from uge_core.audit.base import METRICS
from uge_core.cli import main as cli
from uge_core.files import to_csv
from uge_core.graph.suppression import SUPPRESSED_LEGEND
from uge_core.registry import names
from uge_core.runs.names import method_class
from uge_core.runs.store import RunStore
from uge_core.views.fairness import fairness_view, gap_forms, ranked_cells
from uge_core.views.figures.gaps import gap_bars, gap_map, rough_count
from uge_core.views.figures.light import gap_light, leakage_light
from uge_core.views.figures.look import readable_on
from uge_core.views.figures.tradeoff import ring_style, tradeoff_figure
from uge_core.views.frame import frame
from uge_core.views.method import method_page
from uge_core.views.points import gap_row, points, reading, settings
from uge_core.views.rows import AGAIN, usable
from uge_core.views.tradeoff import lambda_view, tradeoff_view
from uge_core.views.words import interval, plain_text


def row(**given: Any) -> dict[str, Any]:
    base: dict[str, Any] = dict.fromkeys(
        (
            "attribute",
            "attacker",
            "variant",
            "exposure",
            "ci_low",
            "ci_high",
            "floor_random",
            "floor_majority",
            "floor_degree",
            "p_value",
            "note",
            "direction",
        )
    )
    return base | {"n": 100, "evidence": "ok", "ci_kind": "nodes", "cells": []} | given


def leak(value: float, **given: Any) -> dict[str, Any]:
    given = {"metric": "auc", "floor_random": 0.51, "floor_majority": 0.5, "variant": "standard", "half": 0.01} | given
    half = given.pop("half")
    return row(attribute="city", attacker="worst", value=value, ci_low=value - half, ci_high=value + half, **given)


def ndcg(value: float, half: float = 0.01, **given: Any) -> dict[str, Any]:
    return row(metric="ndcg_at_10", variant="held-out", value=value, ci_low=value - half, ci_high=value + half, **given)


def matched(value: float, half: float = 0.01, **given: Any) -> dict[str, Any]:
    given = {"variant": "held-out", "floor_random": 0.05, "floor_degree": 0.2, "n": 3000} | given
    ends = {"ci_low": value - half, "ci_high": value + half}
    return row(metric="ndcg_at_10_matched", attribute="city", value=value, **ends, **given)


def check(value: float | None, note: str | None = None) -> dict[str, Any]:
    return row(metric="usable", value=value, note=note, evidence="insufficient" if value is None else "ok")


def cell(a: str, b: str | None, value: float | None, n: int = 500, **given: Any) -> dict[str, Any]:
    ends = {"ci_low": None, "ci_high": None} if value is None else {"ci_low": value - 0.01, "ci_high": value + 0.01}
    return {"a": a, "b": b, "value": value, "n": n, "excluded": n < 100} | ends | given


def gap(cells: list[dict[str, Any]], value: float | None, **given: Any) -> dict[str, Any]:
    given = {"metric": "dp", "evidence": "ok" if value is not None else "insufficient"} | given
    return row(attribute="city", value=value, cells=cells, **given)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store")


def add(store: RunStore, run_id: str, rows: list[dict[str, Any]], data: str = "f" * 64, **config: Any) -> None:
    full = {
        "method": "none",
        "lambda": None,
        "sensitive": [],
        "backbone": "gcn",
        "seed": 0,
        "split_seed": 0,
        "epochs": 1,
    } | config
    store.begin(run_id, full, {"name": "town", "fingerprint": data, "num_nodes": 9, "num_edges": 9})
    store.save_audit(run_id, {"schema": "uge-audit/1", "rows": rows})


def tradeoff(store: RunStore, **given: Any) -> Any:
    return tradeoff_view(store, **{"data": "f" * 8, "attribute": "city"} | given)


# the frame


def test_the_frame_starts_with_an_untreated_and_a_treated_run_of_the_treated_attribute(seeded: Path) -> None:
    found = frame(RunStore(seeded))
    assert found.attribute == "city" and set(found.attributes) == {"city", "gender", "age"}
    assert found.before and found.runs[found.before] == "No debiasing"
    assert found.after and found.runs[found.after] == "UGE-OK (ours) λ 0.3 · city"
    assert not found.messages


def test_what_does_not_exist_is_said_and_replaced(seeded: Path) -> None:
    right = frame(RunStore(seeded))
    found = frame(RunStore(seeded), data=right.data, attribute="shoe size", before="0" * 12, after=right.after)
    assert (found.attribute, found.before, found.after) == (right.attribute, right.before, right.after)
    assert found.messages == (
        "There is no attribute 'shoe size' in these data; attribute 'city' is shown instead.",
        "There is no run '000000000000' in these data; run 'No debiasing' is shown instead.",
    )
    by_name = frame(RunStore(seeded), data=right.datasets[right.data or ""].split()[0])
    assert by_name.data == right.data and not by_name.messages
    (message,) = frame(RunStore(seeded), data="12345678").messages
    assert message == "There is no data set '12345678'; data set 'town' is shown instead."


def test_the_frame_of_an_empty_store_and_of_one_run(store: RunStore) -> None:
    found = frame(store)
    assert (found.data, found.attribute, found.before, found.after) == (None,) * 4
    add(store, "a1", [leak(0.8), ndcg(0.3)])
    found = frame(store)
    assert (found.data, found.attribute, found.before, found.after) == ("f" * 8, "city", "a1", None)


def test_data_of_one_name_are_told_apart_and_runs_stay_with_theirs(store: RunStore) -> None:
    add(store, "a1", [leak(0.8)])
    add(store, "b2", [leak(0.7)], data="e" * 64)
    found = frame(store, data="e" * 8)
    assert set(found.datasets.values()) == {"town ffffffff", "town eeeeeeee"}
    assert list(found.runs) == ["b2"]


# points over seeds


def test_three_seeds_have_students_interval() -> None:
    values = [0.80, 0.83, 0.81]
    found = reading([leak(v) for v in values])
    assert found and found.kind == "seeds"
    low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert (found.value, found.low, found.high) == (
        pytest.approx(np.mean(values)),
        pytest.approx(low),
        pytest.approx(high),
    )


def test_fewer_seeds_keep_the_interval_over_people() -> None:
    one, two = reading([leak(0.80)]), reading([leak(0.80), leak(0.84)])
    assert one and (one.low, one.high, one.kind) == (pytest.approx(0.79), pytest.approx(0.81), "nodes")
    assert two and (two.value, two.low, two.high) == (pytest.approx(0.82), pytest.approx(0.79), pytest.approx(0.85))
    assert reading([None, leak(0.8) | {"value": None, "evidence": "insufficient"}]) is None


def test_points_join_seeds_and_part_what_differs_otherwise(store: RunStore) -> None:
    for seed in (0, 1):
        add(store, f"a{seed}", [leak(0.9), ndcg(0.4)], seed=seed)
        for lam in (0.5, 0.1):
            add(
                store,
                f"b{seed}{lam}",
                [leak(0.8), ndcg(0.3)],
                method="uge-c",
                sensitive=["city"],
                seed=seed,
                **{"lambda": lam},
            )
    add(store, "c", [leak(0.7), ndcg(0.3)], method="uge-c", sensitive=["gender"], **{"lambda": 0.5})
    add(
        store,
        "d",
        [leak(0.7), ndcg(0.3)],
        method="uge-c",
        sensitive=["city"],
        method_options={"shrinkage": 2},
        **{"lambda": 0.5},
    )
    (runs,) = settings(store.list()).values()
    found = [(p.series, p.lam, len(p.runs)) for p in points(runs, "city")]
    assert found == [("No debiasing", None, 2), ("UGE-C", 0.1, 2), ("UGE-C", 0.5, 2), ("UGE-C · shrinkage 2", 0.5, 1)]


def test_a_warm_start_beside_a_cold_run_is_no_second_seed(store: RunStore) -> None:
    given: dict[str, Any] = {
        "method": "uge-c",
        "sensitive": ["city"],
        "lambda": 0.5,
        "warm_epochs": 0,
        "warm_from": None,
    }
    warm = {"warm_epochs": 50, "warm_from": 0.1}
    for seed in (0, 1):
        add(store, f"w{seed}", [leak(0.6), ndcg(0.2)], seed=seed, **given | warm)
        add(store, f"x{seed}", [leak(0.8 + 0.02 * seed), ndcg(0.3)], seed=seed, **given)
    add(store, "y0", [leak(0.7), ndcg(0.3)], **given | warm | {"lambda": 0.9})
    view = tradeoff(store)
    (first, second) = view.table.to_dict("records")
    assert (first["seeds"], first["run_ids"], first["interval"]) == (2, "x0 x1", "nodes")
    assert first["value"] == pytest.approx(0.81) and (second["seeds"], second["run_ids"]) == (1, "y0")
    assert any("2 runs" in r and "a warm start beside a cold run" in r for r in view.remarks)


def test_leakage_and_link_quality_are_of_the_same_member(store: RunStore) -> None:
    rows = [
        leak(0.6, exposure="seen"),
        leak(0.8, exposure="unseen"),
        ndcg(0.31, exposure="seen"),
        ndcg(0.29, exposure="unseen"),
    ]
    add(store, "a1", rows, method="uge-w", sensitive=["city"])
    unseen, seen = tradeoff(store), tradeoff(store, exposure="seen")
    assert unseen.table[["value", "ndcg"]].to_numpy().tolist() == [[0.8, 0.29]]
    assert seen.table[["value", "ndcg"]].to_numpy().tolist() == [[0.6, 0.31]]
    assert any("look better here" in r for r in seen.remarks)
    assert unseen.remarks == (
        "No run here has a matched NDCG@10: the usual NDCG@10 is drawn, which also pays for reading city. Audit the "
        f"runs again for it ({AGAIN}).",
    )


def test_normalised_leakage(store: RunStore) -> None:
    add(store, "a1", [leak(0.8, metric="micro_f1", floor_majority=0.6, floor_random=0.5), ndcg(0.3)])
    view = tradeoff(store, metric="normalised")
    assert view.table["value"].tolist() == [pytest.approx(0.5)]
    assert view.floors == {"random embeddings": pytest.approx(-0.25), "majority": 0.0}


# the trade-off


def test_dominance_needs_intervals_that_separate_on_both_axes(store: RunStore) -> None:
    add(store, "a1", [leak(0.9), ndcg(0.30)])
    add(store, "b2", [leak(0.7), ndcg(0.35)], method="uge-w", sensitive=["city"])
    add(store, "c3", [leak(0.71), ndcg(0.345)], method="uge-o", sensitive=["city"])
    view = tradeoff(store)
    assert dict(zip(view.table["method"], view.table["status"], strict=True)) == {
        "none": "dominated",
        "uge-w": "best",
        "uge-o": "tied",
    }
    symbols = {t.name: t.marker.symbol[0] for t in tradeoff_figure(view).data if t.mode and "text" in t.mode}
    assert symbols == {"No debiasing": "circle-open", "UGE-W": "diamond", "UGE-O (ours)": "pentagon-open-dot"}
    assert view.title.startswith(
        "UGE-W: least leakage of city measured, AUC 0.700, not distinguishable from 1 other; NDCG"
    )
    assert "No debiasing: AUC 0.900" in view.alt


def test_only_a_point_below_all_others_is_called_the_best(store: RunStore) -> None:
    for i, (value, half) in enumerate(((0.9, 0.01), (0.7, 0.01), (0.72, 0.005))):
        rows = [
            gap([], value, ci_low=value - half, ci_high=value + half, floor_random=0.02 + 0.01 * i),
            ndcg(0.3),
            leak(0.8),
        ]
        add(store, f"a{i}", rows, method=("none", "uge-w", "uge-o")[i], sensitive=["city"] * bool(i))
    view = tradeoff(store, metric="dp")
    assert view.title == (
        "UGE-W has the smallest DP gap of city: 0.700, NDCG@10 0.300; without debiasing 0.900 and 0.300"
    )
    more = {"b1": gap([], 0.705, ci_low=0.704, ci_high=0.706), "b2": gap([], 0.8)}
    for method, (run_id, row_) in zip(("uge-r", "uge-g"), more.items(), strict=True):
        add(store, run_id, [row_, ndcg(0.3), leak(0.8)], method=method, sensitive=["city"])
    view = tradeoff(store, metric="dp")
    assert view.title == (
        "UGE-W: lowest DP gap of city measured, 0.700, not distinguishable from 2 others; NDCG@10 0.300; "
        "without debiasing 0.900 and 0.300"
    )


def test_chance_stands_beside_each_gap(store: RunStore) -> None:
    for i, floor in enumerate((0.02, 0.03, None)):
        rows = [gap([], 0.2, floor_random=floor), ndcg(0.3), leak(0.8)]
        add(store, f"a{i}", rows, method=("none", "uge-w", "uge-o")[i])
    view = tradeoff(store, metric="dp")
    assert view.table["chance"].tolist()[:2] == [0.02, 0.03] and np.isnan(view.table["chance"][2])
    assert view.csv().splitlines()[0].split(",")[4:8] == ["value", "value_low", "value_high", "chance"]
    hover = {t.name: t.customdata[0][7] for t in tradeoff_figure(view).data if t.customdata is not None}
    assert hover == {"No debiasing": " (chance 0.020)", "UGE-W": " (chance 0.030)", "UGE-O (ours)": ""}
    assert "No debiasing: DP gap 0.200, by chance 0.020, NDCG@10" in view.alt and "by chance alone" in view.caption
    assert not view.floors


def test_only_runs_that_share_their_setting_are_compared(store: RunStore) -> None:
    add(store, "a1", [leak(0.9), ndcg(0.30)])
    add(store, "b2", [leak(0.7), ndcg(0.35)], backbone="gat")
    view = tradeoff(store, like="b2")
    assert len(view.settings) == 2 and view.setting.startswith("gat") and view.table["value"].tolist() == [0.7]
    assert {tradeoff(store, setting=s).table["value"][0] for s in view.settings} == {0.9, 0.7}


def test_nothing_is_made_up_between_measured_lambdas(seeded: Path) -> None:
    root = RunStore(seeded)
    at = frame(root)
    assert at.data
    view = tradeoff_view(root, data=at.data, attribute="city")
    assert view.lambdas == (0.3, 0.5) and view.series == ("UGE-C", "UGE-OK (ours)")
    measured = lambda_view(view, "UGE-C", 0.5)
    assert measured.point and measured.command is None
    value = view.table.set_index("run").loc["UGE-C λ 0.5", "value"]
    assert f"{100 * value:.1f} % of the time" in measured.sentence
    untreated = next(p for p in view.points if p.method == "none")
    assert ("without debiasing" in measured.sentence) == untreated.verdict.counts
    figures = ["Leakage, AUC", "Matched NDCG@10", "DP gap, calibrated", "EO gap, calibrated"]
    assert [f[0] for f in measured.figures] == figures
    told = {name: rests for name, value, rests, _ in measured.figures if value != "not measured"}
    assert set(told) >= {*figures[:2]}
    for name, rests in told.items():
        assert rests.startswith("[") and "n = " in rests and "chance 0." in rests, rests
        assert ("degree alone 0." in rests) or name != "Matched NDCG@10"
    assert measured.bars and set(measured.bars.table["attribute"]) == {"city", "gender", "age"}
    drawn = leakage_light(measured.bars)
    of = measured.bars.table
    assert all(
        f">{v:.3f}{interval(low, high)}<" in drawn for v, low, high in of[["value", "ci_low", "ci_high"]].to_numpy()
    )
    places = [float(w) for w in re.findall(r'class="dot" style="left: ([\d.]+)%', drawn)]
    assert np.allclose(places, 200 * (of["value"].clip(lower=0.5) - 0.5), atol=0.01)  # from a coin to certain
    assert (
        drawn.count('class="cross"') == of["random"].notna().sum()
        and drawn.count('class="tick"') == of["majority"].notna().sum()
    )
    missing = lambda_view(view, "UGE-C", 0.3)
    assert missing.point is None and not missing.figures and missing.command
    program, *arguments = shlex.split(missing.command)
    assert program == "uge" and cli.run([*arguments, "--dry-run"]) == 0


def test_the_chosen_point_is_ringed_and_lambda_is_printed(seeded: Path) -> None:
    root = RunStore(seeded)
    view = tradeoff_view(root, data=str(frame(root).data), attribute="city")
    figure = tradeoff_figure(view, rings=True)
    traces = {t.name: t for t in figure.data}
    chosen = view.table.set_index("run").loc["UGE-C λ 0.5"]
    # The last trace holds a hidden ring for each lambda; the style sheet shows the one that is chosen.
    rings = list(zip(figure.data[-1].x, figure.data[-1].y, strict=True))
    style = ring_style(view, ("UGE-C", 0.5), ".chart")
    assert f"path:nth-of-type({rings.index((chosen['value'], chosen['ndcg'])) + 1})" in style and ".chart" in style
    assert len(rings) == view.table["lambda"].notna().sum() and traces["chosen"].marker.opacity == 0
    assert not ring_style(view, ("UGE-C", 0.3), ".chart") and not ring_style(view, None, ".chart")
    assert traces["UGE-C"].text == ("0.5",) and traces["No debiasing"].text == ("",)
    look = method_class("uge-c")
    assert traces["UGE-C"].marker.color == look.color and traces["UGE-C"].marker.symbol[0].startswith(look.symbol)
    assert "chosen" not in {t.name for t in tradeoff_figure(view).data}
    assert str(chosen["value"]) in view.csv()


def test_gaps_are_those_of_the_exported_embedding(store: RunStore) -> None:
    rows = [
        gap([], 0.2, exposure="seen"),
        gap([], 0.9, exposure="seen", variant="ratio"),
        ndcg(0.31, exposure="seen"),
        ndcg(0.29, exposure="unseen"),
        leak(0.8, exposure="unseen"),
    ]
    add(store, "a1", rows, method="uge-w", sensitive=["city"])
    view = tradeoff(store, metric="dp")
    assert view.table[["value", "ndcg"]].to_numpy().tolist() == [[0.2, 0.31]] and not view.floors


def test_what_short_vectors_do_to_raw_gaps_is_said_beside_them(store: RunStore) -> None:
    cells = [cell("A", "A", 0.5), cell("A", "B", 0.5)]
    words = "vectors are short, so raw DP and EO say nothing"
    add(store, "a1", [gap(cells, 0.0), gap(cells, 0.1, variant="calibrated"), check(1.0, words)])
    given: dict[str, Any] = {"metric": "dp", "attribute": "city", "before": "a1"}
    raw, calibrated = fairness_view(store, form="raw", **given), fairness_view(store, **given)
    assert raw and calibrated and f"No debiasing: {words}." in raw.remarks and words not in str(calibrated.remarks)


def test_a_twin_that_is_not_usable_counts(store: RunStore) -> None:
    add(store, "a1", [check(1.0) | {"exposure": "seen"}, check(0.0, "not usable: saturated") | {"exposure": "unseen"}])
    (run,) = store.list()
    assert (usable(run).state, usable(run).why) == ("not usable", "of its twin, saturated")


def three(store: RunStore) -> None:
    """Of three runs the one that leaks least is not usable."""
    why = "no list is ranked above a random order"
    for run_id, auc, value, state, method in (
        ("a1", 0.9, 0.30, check(1.0), "none"),
        ("b2", 0.7, 0.28, check(None, "3 lists"), "uge-w"),
        ("c3", 0.4, 0.06, check(0.0, why), "uge-c"),
    ):
        rows = [leak(auc), ndcg(0.5, floor_random=0.06, floor_degree=0.25), matched(value), state]
        rows += [matched(value - 0.1, variant="degree", floor_degree=0.1), matched(0.49, variant="uniform")]
        lam = {"lambda": 0.5 if method == "uge-c" else None}
        add(store, run_id, rows, method=method, sensitive=["city"] * (method != "none"), **lam)


def test_matched_link_quality_leads_with_its_floors(store: RunStore) -> None:
    three(store)
    view = tradeoff(store)
    assert view.quality == "matched" and view.table["ndcg"].tolist() == [0.30, 0.28, 0.06]
    assert set(view.table["ndcg_degree"]) == {0.2} and set(view.table["ndcg_chance"]) == {0.05}
    assert view.heights == {
        "matched NDCG@10 of the training degree alone": pytest.approx(0.2),
        "matched NDCG@10 of a random order": pytest.approx(0.05),
    }
    lines = {t.name: list(t.y) for t in tradeoff_figure(view).data if t.mode == "lines"}
    assert lines["matched NDCG@10 of the training degree alone 0.200"] == pytest.approx([0.2, 0.2])
    assert lines["matched NDCG@10 of a random order 0.050"] == pytest.approx([0.05, 0.05])
    assert "strangers of the friend's own city group" in view.caption and "n = 3,000 links ranked" in view.caption
    assert "Matched NDCG@10 of the training degree alone: 0.200." in view.alt
    by_degree, usual = (tradeoff(store, quality=q) for q in ("degree", "usual"))
    assert by_degree.table["ndcg"].tolist() == pytest.approx([0.20, 0.18, -0.04])
    assert "decile of degree" in by_degree.caption
    assert usual.table["ndcg"].tolist() == [0.5] * 3 and "also pays for reading city" in usual.caption


def test_what_is_not_usable_is_shown_and_takes_no_part(store: RunStore) -> None:
    three(store)
    view = tradeoff(store)
    assert dict(zip(view.table["method"], view.table["status"], strict=True)) == {
        "none": "best",
        "uge-w": "best",
        "uge-c": "not usable",
    }
    assert view.table["usable"].tolist() == ["usable", "not known", "not usable"]
    assert view.table["why"].tolist() == ["", "3 lists", "no list is ranked above a random order"]
    assert view.title == ("UGE-W leaks city least: AUC 0.700, matched NDCG@10 0.280; without debiasing 0.900 and 0.300")
    assert view.remarks[0] == (
        "Not usable, and in no comparison: UGE-C λ 0.5 (no list is ranked above a random order)."
    )
    traces = {t.name: t for t in tradeoff_figure(view).data}
    assert list(traces["not usable, in no comparison"].x) == [0.4]
    assert traces["UGE-C"].marker.symbol[0].endswith("-open") and "lines" not in traces["UGE-C"].mode
    assert "not usable: no list" in traces["UGE-C"].customdata[0][3]
    assert 0.4 not in traces["not beaten on both axes (Pareto front)"].x
    assert lambda_view(view, "UGE-C", 0.5).sentence.startswith("Not usable: no list is ranked above a random order.")


def test_where_nothing_is_usable_nothing_is_crowned(store: RunStore) -> None:
    add(store, "a1", [leak(0.5), ndcg(0.06), matched(0.05), check(0.0, "all vectors are equal")])
    view = tradeoff(store)
    assert view.title == "No usable embedding was measured this way for city"
    assert view.no_debiasing is None and view.table["status"].tolist() == ["not usable"]
    assert len(tradeoff_figure(view).data) > 0


def test_ranking_no_better_than_the_degree_is_said(store: RunStore) -> None:
    add(store, "a1", [leak(0.9), matched(0.15), check(1.0)])
    view = tradeoff(store)
    assert view.title.endswith("0.150") and "Only No debiasing" in view.title
    assert "No better at ranking than the training degree alone (matched NDCG@10 0.200): No debiasing." in view.remarks
    add(store, "b2", [leak(0.7), matched(0.18), check(1.0)], method="uge-w", sensitive=["city"])
    assert tradeoff(store).title.endswith("no better at ranking than the training degree alone (0.200)")


def test_a_seed_that_is_not_usable_makes_its_point_so(store: RunStore) -> None:
    for seed, state in enumerate((check(1.0), check(0.0, "saturated"), check(1.0))):
        add(store, f"a{seed}", [leak(0.9), matched(0.3), state], seed=seed)
    (record,) = tradeoff(store).table.to_dict("records")
    assert (record["usable"], record["why"]) == ("not usable", "1 of 3 seeds: saturated")


def test_strongest_attackers_of_other_sets_are_not_in_one_chart(store: RunStore) -> None:
    add(store, "a1", [leak(0.9), ndcg(0.3)])
    for i, among in enumerate(("linear, links", "linear, links", "linear")):
        note = f"worst attacker: linear, of {among}; the interval holds for the choice of the largest"
        rows = [leak(0.8 - i / 10, note=note), matched(0.3), check(1.0)]
        add(store, f"b{i}", rows, method=("uge-w", "uge-o", "uge-r")[i], sensitive=["city"])
    view = tradeoff(store)
    assert view.table["method"].tolist() == ["uge-w", "uge-o"]
    assert any(r.startswith("Left out: 2 of 4 runs") and "than linear, links," in r for r in view.remarks)
    assert tradeoff(store, metric="dp").title == "No run was measured this way for city"


def test_an_auc_whose_attacker_learned_its_sign_stays_as_it_is(store: RunStore) -> None:
    for seed, auc in enumerate((0.46, 0.45, 0.44)):
        add(store, f"a{seed}", [leak(auc), matched(0.3), check(1.0)], seed=seed)
    (record,) = tradeoff(store).table.to_dict("records")
    assert record["value"] == pytest.approx(0.45) and record["value_high"] < 0.5


def test_calibrated_gaps_lead_where_there_are_some(store: RunStore) -> None:
    cells = [cell("A", "A", 0.5), cell("A", "B", 0.3)]
    rows = [gap(cells, 0.2), gap(cells, 0.1, variant="calibrated", floor_random=0.02, floor_degree=0.04)]
    add(store, "a1", [*rows, leak(0.9), matched(0.3, exposure="seen")])
    add(store, "b2", [gap(cells, 0.01), leak(0.8), ndcg(0.2)], method="uge-w", sensitive=["city"])
    view = tradeoff(store, metric="dp")
    assert (view.form, view.table["value"].tolist()) == ("calibrated", [0.1])
    assert view.floors == {"DP gap of the training degree alone": 0.04} and view.table["degree"].tolist() == [0.04]
    assert any("earlier version" in r and "1 point left out" in r for r in view.remarks)
    raw = tradeoff(store, metric="dp", form="raw", quality="usual")
    assert raw.form == "raw" and raw.table["value"].tolist() == [0.01] and not raw.floors
    assert "which shrinks with the vectors" in raw.caption


# fairness


def test_each_form_of_a_gap_is_shown_as_what_it_is(store: RunStore) -> None:
    note = "lists of A people give 80.0% of their slots to A, who are 50.0% of people; floor: the mean of 20 orders"
    slots = [cell("A", "A", 0.8), cell("A", "B", 0.2), cell("B", "A", 0.45), cell("B", "B", 0.55)]
    pairs = [cell("A", "A", 0.5), cell("A", "B", 0.3), cell("B", "B", 0.4)]
    rows = [
        gap(
            pairs,
            0.2,
            variant="calibrated",
            floor_random=0.02,
            floor_degree=0.03,
            p_value=0.01,
            ci_low=0.1,
            ci_high=0.3,
        ),
        gap(slots, 0.3, variant="top-10", floor_random=0.04, p_value=0.01, note=note),
        gap(pairs, 0.01, p_value=0.5),
    ]
    add(store, "a1", rows)
    given: dict[str, Any] = {"attribute": "city", "before": "a1"}
    assert list(gap_forms(store, **given)) == ["calibrated", "top-10", "raw"]
    view = fairness_view(store, metric="dp", **given)
    assert (
        view
        and view.form == "calibrated"
        and "Chance alone would give about 0.020, the training degree alone gives 0.030." in (view.sides[0].sentence)
    )
    assert view.others == ("First ten: 0.300 with No debiasing.", "Raw (the paper's): 0.010 with No debiasing.")
    ten = fairness_view(store, metric="dp", form="top-10", **given)
    assert ten and ten.directed and ten.sides[0].extremes == (("A", "A"),)
    assert "Largest gap 0.300: lists of A people give 80.0% of their slots to A, who are 50.0% of people." in (
        ten.sides[0].sentence
    )
    figure = gap_map(ten, "before")
    places = list(zip(figure.data[0].x, figure.data[0].y, strict=True))
    assert places == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert figure.data[0].text[1].startswith("A to B: 0.200")
    assert figure.data[0].text[0].endswith("[0.790, 0.810]") and "farthest from its share" in figure.data[0].text[0]
    light = gap_light(ten, "before")
    assert light.count("<td title=") == 4 and "A to B: 0.200" in light and light.count("outline: 4px") == 1
    assert ranked_cells(ten)["Groups"].tolist() == ["A → A", "B → B", "B → A", "A → B"]
    assert "share of people" in ten.caption and "slots in lists" in ten.caption


def test_a_gap_that_cannot_be_calibrated_has_a_reason_and_no_map(store: RunStore) -> None:
    why = "not calibrated: all pairs have the same score, but for rounding"
    nothing = cell("A", "A", None, n=0)
    rows = [gap([nothing], None, variant="calibrated", note=why), gap([cell("A", "A", 0.5), cell("A", "B", 0.5)], 0.0)]
    add(store, "a1", [*rows, check(0.0, "all link probabilities are .500")])
    view = fairness_view(store, metric="dp", attribute="city", before="a1")
    assert view and view.layout == "none" and view.table.empty
    assert view.sides[0].sentence == f"Not enough evidence: {why}."
    assert view.unfit == (
        "No debiasing is not usable: all link probabilities are .500. That its groups look alike is no success.",
    )
    raw = fairness_view(store, metric="dp", attribute="city", before="a1", form="raw")
    assert raw and raw.title == "Demographic parity, raw scores: no usable embedding to compare city groups by"


def test_maps_sentences_and_file_say_what_the_audit_says(seeded: Path) -> None:
    root = RunStore(seeded)
    at = frame(root)
    assert at.before and at.after
    for metric in ("dp", "eo"):
        view = fairness_view(root, metric=metric, attribute="city", before=at.before, after=at.after, form="raw")
        assert view and view.layout == "map" and len(view.sides) == 2
        assert view.form == "raw" and not view.directed
        audits = [(root.load(i).audit or {})["rows"] for i in (at.before, at.after)]
        rows = [gap_row(rows, "city", metric, "raw") for rows in audits]
        for side, name, audited in zip(view.sides, ("before", "after"), rows, strict=True):
            assert audited
            assert len(gap_map(view, name).data[0].text) == len(audited["cells"])
            if audited["value"] is None:
                assert side.verdict == "not enough evidence" and not side.extremes
                continue
            counted = [c for c in audited["cells"] if not c["excluded"]]
            top = max(counted, key=lambda c: c["value"])
            assert f"Largest gap {audited['value']:.3f}" in side.sentence
            assert (
                f"{top['a']} / {top['b']} {top['value']:.3f}" in side.sentence and f"n = {top['n']:,}" in side.sentence
            )
            light = gap_light(view, name)
            assert light.count("<td title=") == 6 and light.count("outline: 4px") == 2
            assert all(f"{c['a']} with {c['b']}: {c['value']:.3f}" in light for c in counted)
            assert all(f">{c['value']:.3f}<br>" in light for c in counted) and side.sentence in unescape(light)
            figure = gap_map(view, name)
            (points_drawn,) = figure.data
            assert len(points_drawn.text) == 6
            assert all(x <= y for x, y in zip(points_drawn.x, points_drawn.y, strict=True))
            texts = {(a.x, a.y): a.text for a in figure.layout.annotations}
            assert any(t.startswith(f"{top['value']:.3f}<br>") for t in texts.values())
            assert sum(s.line.width == 4 for s in figure.layout.shapes) == 2
        measured = all(row and row["value"] is not None for row in rows)
        assert ("goes from" in view.change) == measured and {*view.alt} >= {"before", "after"}
        change = view.table["after_value"] - view.table["before_value"]
        assert np.allclose(view.table["difference"].dropna(), change[view.table["difference"].notna()])
        assert rows[0] and str(rows[0]["cells"][0]["value"])[:8] in view.csv()


def two(store: RunStore, first: dict[str, Any], second: dict[str, Any] | None = None) -> Any:
    add(store, "a1", [first])
    if second:
        add(store, "b2", [second], method="uge-w", sensitive=["city"])
    return fairness_view(store, metric="dp", attribute="city", before="a1", after="b2" if second else None)


def test_thin_cells_are_marked_and_never_make_the_gap(store: RunStore) -> None:
    cells = [cell("A", "A", 0.5), cell("A", "B", 0.3), cell("B", "B", 0.9, n=36), cell("B", "C", None, n=0)]
    view = two(store, gap(cells, 0.2, p_value=0.01))
    (side,) = view.sides
    assert side.extremes == (("A", "A"), ("A", "B")) and view.scale == 0.5 and side.verdict == "more than chance"
    assert any(r.endswith("too few pairs to count: B / B (36), B / C (none).") for r in view.remarks)
    assert "100 in the cells that count" in view.caption and SUPPRESSED_LEGEND not in view.caption
    figure = gap_map(view, "before")
    assert any(s.type == "path" for s in figure.layout.shapes) and "too few to count" in figure.data[0].text[2]
    light = gap_light(view, "before")
    assert light.count("too few to count") == 2 and light.count("repeating-linear-gradient(") == 2
    assert ranked_cells(view)["Counts"].tolist() == ["yes", "yes", "too few", "none"]


WITHHELD = {"value": None, "ci_low": None, "ci_high": None, "n": 0, "excluded": True, "withheld": True}


def with_small_groups() -> dict[str, Any]:
    """A row whose cell B / B was stored by an earlier version, with what newer ones withhold."""
    cells = [cell("A", "A", 0.5), cell("A", "B", 0.3), cell("B", "B", 0.987654, n=11), cell("B", "C", 0.2) | WITHHELD]
    return gap(cells, 0.2, p_value=0.01)


def test_suppressed_cells_tell_neither_value_nor_number(store: RunStore) -> None:
    view = two(store, with_small_groups(), with_small_groups())
    table = ranked_cells(view)
    assert table["Counts"].tolist() == ["yes", "yes", "suppressed", "suppressed"]
    assert table["No debiasing, n"].tolist() == ["500", "500", "suppressed", "suppressed"]
    told = [line.split(",") for line in view.csv().splitlines()]
    assert [dict(zip(told[0], line, strict=True))["before_n"] for line in told[1:]] == [
        "500",
        "500",
        *["suppressed"] * 2,
    ]
    assert not [c for c in told[0] if c.endswith("suppressed")]
    assert view.caption.count(SUPPRESSED_LEGEND) == 1 and all("2 cells are suppressed" in view.alt[s] for s in SIDES)
    drawn = [*(gap_map(view, s).to_json() for s in (*SIDES, "difference")), *(gap_light(view, s) for s in SIDES)]
    assert all("suppressed" in words for words in drawn)
    assert [a.text for a in gap_map(view, "before").layout.annotations][2:] == ["suppressed"] * 2
    assert [a.text for a in gap_map(view, "difference").layout.annotations][2:] == ["suppressed"] * 2
    words = [*drawn, view.csv(), table.to_csv(), view.table.to_csv(), *view.remarks, *view.alt.values(), view.caption]
    assert not [w for w in words if "0.987" in w or "0.988" in w]
    assert not any("B / B" in r or "(9)" in r for r in view.remarks)


SIDES = ("before", "after")


def test_suppressed_groups_of_users_are_bars_without_a_number(store: RunStore) -> None:
    cells = [
        cell("A", None, 0.5),
        cell("B", None, 0.3),
        cell("C", None, 0.987654, n=11),
        cell("D", None, 0.2) | WITHHELD,
        cell("E", None, None, n=0),
    ]
    view = two(store, gap(cells, 0.2, p_value=0.01))
    assert view.layout == "bars"
    texts = [t.strip() for t in gap_bars(view).data[0].text]
    assert texts == ["0.500, n = 500", "0.300, n = 500", "suppressed", "suppressed", "none"]
    light = gap_light(view, "before")
    assert list(gap_bars(view).data[0].x) == [0.5, 0.3, 0.0, 0.0, 0.0]
    assert light.count(">suppressed<") == 2 and light.count(">none<") == 1
    assert "0.98" not in light and "n = 9" not in light


def test_a_gap_without_an_interval_is_not_held_against_chance(store: RunStore) -> None:
    view = two(store, gap([cell("A", "A", 0.7), cell("A", "B", 0.4)], 0.3))
    assert view.sides[0].verdict == "not enough evidence" and "It has no interval" in view.sides[0].sentence
    assert view.form == "raw" and "shorter vectors alone make the gap smaller" in view.caption
    assert view.title == "Demographic parity, raw scores: not enough evidence to compare city groups"


def test_three_verdicts(store: RunStore) -> None:
    cells = [cell("A", "A", 0.5), cell("A", "B", 0.45)]
    view = two(store, gap(cells, 0.05, p_value=0.3, floor_random=0.04), gap([cell("A", "A", 0.5)], None))
    assert [s.verdict for s in view.sides] == ["not distinguishable from chance", "not enough evidence"]
    assert (
        "Chance alone would give about 0.040. It is not distinguishable from chance (p = 0.3)."
        in view.sides[0].sentence
    )
    assert view.sides[1].sentence.startswith("Not enough evidence") and view.change == ""
    assert (
        view.title == "Demographic parity, raw scores: no difference between city groups is shown "
        "in No debiasing, not enough evidence in the other"
    )


def test_a_change_is_claimed_only_where_intervals_part(store: RunStore) -> None:
    cells = [cell("A", "A", 0.5), cell("A", "B", 0.3)]
    first = gap(cells, 0.20, ci_low=0.15, ci_high=0.25)
    assert "overlap, so no change is shown" in two(store, first, gap(cells, 0.16, ci_low=0.10, ci_high=0.22)).change
    assert "do not overlap" in two(store, first, gap(cells, 0.05, ci_low=0.01, ci_high=0.10)).change


def test_many_groups_are_ranked_and_very_many_are_a_table(store: RunStore) -> None:
    def cells(count: int) -> list[dict[str, Any]]:
        return [
            cell(f"g{i:02}", f"g{j:02}", 0.3 + (i + j) / 500, n=200 + 10 * min(i, j))
            for i in range(count)
            for j in range(i, count)
        ]

    view = two(store, gap(cells(13), 0.1))
    assert view.layout == "map" and view.ranked and len(view.groups) == 11 and {"g00", "g01"}.isdisjoint(view.groups)
    assert len(gap_map(view, "before").data[0].text) == 66 and len(ranked_cells(view)) == 91
    assert ranked_cells(view)["Groups"][0] == "g12 / g12"
    assert two(store, gap(cells(28), 0.1)).layout == "table"


def test_user_groups_are_bars_from_zero(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "store")
    graph = uge.load("sample:titles")
    run = uge.train(graph, sensitive=graph.audited[0].name, epochs=3, device="cpu", store=store)
    attribute = graph.audited[0].name
    view = fairness_view(store, metric="dp", attribute=attribute, before=run.id)
    assert view and view.layout == "bars" and view.table["b"].isna().all()
    figure = gap_bars(view)
    (bars,) = figure.data
    assert list(bars.x) == view.table["before_value"].tolist() and figure.layout.xaxis.rangemode == "tozero"
    light = gap_light(view, "before")
    assert light.count('class="bar"') == len(view.table)
    assert all(f">{value:.3f}" in light for value in view.table["before_value"])
    assert len(ranked_cells(view)) == len(view.table)


def test_one_run_against_itself_is_one_side(store: RunStore) -> None:
    add(store, "a1", [gap([cell("A", "A", 0.5), cell("A", "B", 0.3)], 0.2)])
    view = fairness_view(store, metric="dp", attribute="city", before="a1", after="a1")
    assert view and len(view.sides) == 1 and {*view.alt} == {"before"}
    assert fairness_view(store, metric="eo", attribute="city", before="a1") is None


# the method page


def test_every_metric_method_and_attacker_is_explained() -> None:
    page = method_page()
    assert [m.name for m in page.metrics] == list(METRICS)
    assert all(m.sentence and m.formula and m.limits and m.direction in ("lower", "higher") for m in page.metrics)
    assert {m.name for m in page.methods} == set(names("debias.methods")) and all(
        m.text and m.formula and m.look for m in page.methods
    )
    assert {a.name for a in page.attackers} == set(names("audit.attackers")) and all(a.label for a in page.attackers)
    assert {b.name for b in page.backbones} == set(names("backbones")) and all(b.formula for b in page.backbones)
    assert [x[0] for x in page.left_out] == ["NIFTY", "FairAdj"] and len(page.overview) == len(page.methods)
    assert page.versions["numpy"] == np.__version__


# words and colours


def test_names_from_data_are_neither_formulas_nor_formatting() -> None:
    assert plain_text("*a* $x$ :red[b]") == r"\*a\* \$x\$ \:red\[b\]"
    assert "'=1+1" in to_csv(pd.DataFrame({"a": ["=1+1"]}))


def test_names_from_data_are_no_markup_in_light_charts(store: RunStore) -> None:
    bad = "<img src=x onerror=alert(1)>"
    view = two(store, gap([cell(bad, bad, 0.5), cell(bad, "B", 0.3), cell("B", "B", 0.4)], 0.2, p_value=0.01))
    light = gap_light(view, "before")
    assert "<img" not in light and "&lt;img src=x" in light


def test_text_is_readable_on_every_step_of_the_maps() -> None:
    assert readable_on("#004B78") == "#FFFFFF" and readable_on("#EAF3FA") == "#000000"


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (0, "0"),
        (9_999, "9,999"),
        (10_000, "10k"),
        (999_949, "1M"),
        (582_240_750, "582M"),
        (999_900_000, "1bn"),
        (2_215_682_596, "2.22bn"),
    ],
)
def test_counts_in_cells_stay_short(n, words):
    assert rough_count(n) == words


# what was not measured is not said


def test_seeds_at_chance_stay_at_chance(store: RunStore) -> None:
    # each is turned to .5 and above on its own, so their mean lies above a coin whatever they are
    for seed, auc in enumerate((0.49, 0.51, 0.505)):
        add(store, f"a{seed}", [leak(auc), ndcg(0.3)], seed=seed)
    table = tradeoff(store).table
    assert table["value_low"].tolist() == [0.5] and table["seeds"].tolist() == [3]


def test_an_interval_of_one_seed_is_not_that_of_two(store: RunStore) -> None:
    add(store, "a0", [leak(0.7), ndcg(0.3)], seed=0)
    add(store, "a1", [leak(0.5) | {"ci_low": None, "ci_high": None}, ndcg(0.3)], seed=1)
    (record,) = tradeoff(store).table.to_dict("records")
    assert record["value"] == pytest.approx(0.6) and record["value_low"] is None and record["interval"] == "none"


def test_one_point_is_not_the_best_of_any(store: RunStore) -> None:
    add(store, "a1", [leak(0.9), ndcg(0.3)])
    add(store, "b2", [leak(0.7, exposure="seen"), ndcg(0.3, exposure="seen")], method="uge-w", sensitive=["city"])
    view = tradeoff(store)
    assert view.title.startswith("Only No debiasing was measured this way: AUC 0.900")
    assert any("People training saw: 1 of the points" in r for r in view.remarks)


def test_all_links_are_not_compared_with_held_out_ones(store: RunStore) -> None:
    cells = [cell("A", "A", 0.5), cell("A", "B", 0.3)]
    for i, (variant, value) in enumerate((("all-edges", 0.3), ("held-out", 0.1))):
        add(store, f"a{i}", [gap(cells, value, variant=variant) | {"metric": "eo"}], seed=i)
    view = fairness_view(store, metric="eo", attribute="city", before="a0", after="a1")
    assert view and view.change.startswith("Not compared: ") and "difference" not in view.table
    assert "all links (training may have seen them) in A, of held-out links in B" in view.caption


def test_run_a_is_no_embedding_from_elsewhere_where_there_is_an_untreated_run(store: RunStore) -> None:
    add(store, "e1", [leak(0.8)], method="external", file="z.npy", backbone="")
    add(store, "n1", [leak(0.9)])
    add(store, "w1", [leak(0.7)], method="uge-w", sensitive=["city"])
    found = frame(store)
    assert (found.before, found.after) == ("n1", "w1")


def test_group_names_on_bars_are_places_and_no_markup(store: RunStore) -> None:
    cells = [
        {**cell(a, "", 0.5), "b": None} for a in ("18", "<b>household income under 10k", "<b>household income over 90k")
    ]
    figure = gap_bars(two(store, gap(cells, 0.1)))
    assert list(figure.data[0].y) == [0, 1, 2] and figure.layout.yaxis.ticktext[0] == "18"
    assert all("<" not in text for text in (*figure.layout.yaxis.ticktext, *figure.data[0].customdata))
