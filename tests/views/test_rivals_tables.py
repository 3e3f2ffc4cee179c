"""Tables and figures of rows of `uge rivals`, written by hand so that each cell is known."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uge_core.audit.attacker_order import DEFAULT_ATTACKERS
from uge_core.errors import ConfigError
from uge_core.runs.rivals import SCHEMA
from uge_core.views.figures.files import check_figure_file, write_figure
from uge_core.views.figures.rivals import rivals_figure
from uge_core.views.rivals import RivalsTable, rivals_tables

Row = dict[str, Any]


def cell(value: float | None, half: float = 0.02, **more: Any) -> dict[str, Any]:
    return (
        {"n": 40}
        if value is None
        else {"value": value, "ci_low": value - half, "ci_high": value + half, "n": 40} | more
    )


def made(
    method: str, matched: float | None, worst: float | None, *, seed: int = 0, seen: float = 0.6, **more: Any
) -> Row:
    """A row whose link quality and worst attacker are given."""
    auc = {"seen": cell(seen, attacker="links"), "unseen": cell(worst, attacker="rbf")}
    links = {e: cell(matched, floor_random=0.05, floor_degree=0.1) for e in ("seen", "unseen")}
    gaps = {"calibrated": cell(0.1), "top-10": cell(0.2), "raw": cell(0.3)}
    row = {
        "schema": SCHEMA,
        "audit": 5,
        "data": "town",
        "fingerprint": "f7",
        "backbone": "node2vec",
        "sensitive": "gender",
        "attackers": list(DEFAULT_ATTACKERS),
        "settings": {"epochs": "8"},
        "method": method,
        "lam": None,
        "options": {},
        "run": f"{method} {seed} {matched}",
        "seed": seed,
        "usable": {"seen": {"value": 1.0}, "unseen": {"value": 1.0}},
        "auc": {"worst": auc} | {a: {"seen": cell(0.55), "unseen": cell(0.52)} for a in DEFAULT_ATTACKERS},
        "auc_with_neighbours": {},
        "micro_f1": {"seen": cell(0.5, floor_majority=0.7), "unseen": cell(0.5)},
        "ndcg": dict.fromkeys(("matched", "degree", "uniform twin", "uniform", "bias-free"), links),
        "dp": gaps,
        "eo": gaps,
        "length": 1.0,
        "seconds": 12.4,
        "refused": None,
    }
    return row | more


def only(rows: list[Row]) -> RivalsTable:
    (table,) = rivals_tables(rows)
    return table


def shown(table: RivalsTable, label: str) -> dict[str, str]:
    return next(dict(zip(table.head, line, strict=True)) for line in table.lines if line[0] == label)


def test_a_line_has_means_over_seeds_half_their_range_and_the_share_of_no_debiasing():
    table = only([made("none", 0.4, 0.9), made("uge-c", 0.2, 0.6, lam=0.5), made("uge-c", 0.3, 0.7, seed=1, lam=0.5)])
    line = shown(table, "uge-c 0.5")
    assert line["worst AUC, unseen"] == "0.650 +- 0.050 (rbf)" and line["worst AUC, seen"] == "0.600 +- 0.000 (links)"
    assert line["matched NDCG@10"] == "0.250 +- 0.050" and line["% of none's"] == "62 +- 12"
    assert line["DP, first ten"] == "0.200 +- 0.000" and line["seconds"] == "12"
    assert shown(table, "none")["matched NDCG@10"] == "0.400"
    assert table.floors == (
        "Means over seeds 0, 1, +- half the range. Majority Micro-F1 0.700; matched NDCG@10 of a random order 0.050; "
        "of the training degree alone 0.100."
    )


def test_an_auc_below_a_half_stays_and_what_is_not_measured_is_said():
    table = only([made("uge-w", 0.3, 0.4), made("uge-w", None, 0.3, seed=1)])
    line = shown(table, "uge-w")
    assert line["worst AUC, unseen"].startswith("0.350") and line["% of none's"] == ""
    assert line["matched NDCG@10"] == "0.300 (1 of 2 seeds)"
    assert shown(only([made("uge-w", None, None)]), "uge-w")["matched NDCG@10"] == "too little evidence"


def test_attackers_with_neighbours_have_a_column_where_they_were_tried():
    there = {"graph": {"seen": cell(0.9), "unseen": cell(0.8)}, "wide": {"seen": cell(0.9), "unseen": cell(0.85)}}
    table = only([made("none", 0.4, 0.7, auc_with_neighbours=there)])
    assert shown(table, "none")["AUC, with neighbours, unseen"] == "0.850"
    assert shown(table, "none")["worst AUC, unseen"].startswith("0.700")
    assert "AUC, with neighbours, unseen" not in only([made("none", 0.4, 0.7)]).head


def test_a_refusal_is_a_line_until_the_method_is_measured():
    refused = {"run": None, "seed": None, "refused": "leace: too many | values"}
    table = only([made("none", 0.4, 0.9), made("leace", 0.1, 0.5) | refused])
    assert shown(table, "leace")["remark"] == "leace: too many | values"
    assert "too many \\| values |" in table.markdown()
    assert [r.refused for r in only([made("leace", 0.1, 0.5) | refused, made("leace", 0.3, 0.6)]).rivals] == [""]


def test_rows_of_other_settings_graphs_and_attackers_are_tables_of_their_own():
    other = [{"settings": {}}, {"fingerprint": "f8"}, {"attackers": [*DEFAULT_ATTACKERS, "knn"]}, {"audit": 4}]
    tables = rivals_tables([made("none", 0.4, 0.9), *(made("none", 0.4, 0.9, **o) for o in other)])
    assert [t.title for t in tables[:4]] == [
        "town, gender, node2vec, epochs=8",
        "town, gender, node2vec",
        "town, gender, node2vec, epochs=8",
        "town, gender, node2vec, epochs=8, attackers also knn",
    ]
    assert len(tables) == 5 and all(len(t.rivals) == 1 for t in tables)


def test_entries_of_one_method_are_told_apart_by_lambda_and_settings():
    rows = [
        made("uge-ork", 0.3, 0.6, lam=1.0),
        made("uge-ork", 0.2, 0.5, lam=1.0, options={"num_features": "512"}),
        made("none", 0.4, 0.9),
        made("uge-ork", 0.35, 0.65, lam=1.0),
    ]
    table = only(rows)
    assert [r.label for r in table.rivals] == ["none", "uge-ork 1", "uge-ork 1 num_features=512"]
    assert shown(table, "uge-ork 1")["matched NDCG@10"] == "0.350", "a seed measured again counts as measured last"


def test_what_is_not_usable_beats_nobody():
    dead = {"seen": {"value": 1.0}, "unseen": {"value": 0.0, "note": "not usable: all vectors are equal"}}
    table = only([made("none", 0.4, 0.9), made("monet", 0.5, 0.5, usable=dead)])
    assert table.front_words == "Beaten by no other in both matched NDCG@10 and worst AUC, unseen: none."
    assert shown(table, "monet")["remark"] == "not usable: all vectors are equal"
    alive = only([made("none", 0.4, 0.9), made("monet", 0.5, 0.5)])
    assert [r.label for r in alive.front] == ["monet"]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8))
def test_the_front_is_who_no_other_beats_in_both(at):
    rows = [made("uge-c", links / 10, auc / 10, lam=float(i)) for i, (links, auc) in enumerate(at)]
    expected = set()
    for i, (links, auc) in enumerate(at):
        beaten = False
        for other_links, other_auc in at:
            beaten = beaten or (other_links > links and other_auc < auc)
        if not beaten:
            expected.add(f"uge-c {i}")
    assert {r.label for r in only(rows).front} == expected


def test_the_figure_has_a_filled_mark_with_both_intervals_and_a_hollow_one_where_values_were_seen():
    plain = made("none", 0.4, 0.9)
    plain["auc"]["worst"]["seen"] = plain["auc"]["worst"]["unseen"]
    figure = rivals_figure(only([plain, made("uge-c", 0.3, 0.55, seen=0.5)]))
    marks = {t.name: t for t in figure.data if t.mode == "markers"}
    assert (marks["uge-c"].x[0], marks["uge-c"].y[0]) == (0.3, 0.55)
    assert marks["uge-c"].error_x.array[0] == pytest.approx(0.02) == marks["uge-c"].error_y.arrayminus[0]
    assert marks["none"].marker.symbol == "circle"
    hollow = [t for t in figure.data if t.mode == "lines+markers"]
    assert [(t.legendgroup, t.y[-1], t.marker.symbol[-1]) for t in hollow] == [("uge-c", 0.5, "hexagon-open")]
    front = next(t for t in figure.data if t.mode == "lines")
    assert list(front.x) == [0.3, 0.4]


def test_a_figures_file_is_html_by_itself(tmp_path):
    write_figure(rivals_figure(only([made("none", 0.4, 0.9)])), tmp_path / "front.html")
    page = (tmp_path / "front.html").read_text(encoding="utf-8")
    assert "<script src" not in page and '"none"' in page


@pytest.mark.parametrize("name", ["front.pdf", "front", "nowhere/front.html", "front.png"])
def test_a_file_that_cannot_be_drawn_is_refused_first(tmp_path, monkeypatch, name):
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match=r"ends in|no folder|no Chromium"):
        check_figure_file(tmp_path / Path(name))


@pytest.mark.browser
def test_pictures_are_drawn_by_a_browser(tmp_path, chromium, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", chromium)
    figure = rivals_figure(only([made("none", 0.4, 0.9), made("uge-c", 0.3, 0.55)]))
    for name in ("front.png", "front.svg"):
        write_figure(figure, tmp_path / name)
    png, svg = (tmp_path / "front.png").read_bytes(), (tmp_path / "front.svg").read_text(encoding="utf-8")
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(png[16:20]) == 2 * 1000
    assert svg.startswith("<svg") and svg.rstrip().endswith("</svg>") and "uge-c" in svg
