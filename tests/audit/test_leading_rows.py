"""The rows of DP and EO that lead: what no scaling moves, their floors, and whom they say nothing of."""

import re

import numpy as np
import pytest
from strategies import attribute
from test_calibrated import CHANGES, community, market

from uge_core.audit import audit_embedding, calibrated, parity, top_ten
from uge_core.graph.graph import AttributedGraph, simple_edges
from uge_core.graph.split import split_links
from uge_core.runs.disclosure import Release

LEADING = [("dp", "calibrated"), ("dp", "top-10"), ("eo", "calibrated"), ("eo", "top-10")]


def audited(z, graph, split, **given):
    return audit_embedding(z, graph, split, parts=("parity",), **given)


def leading(audit, attribute=None):
    rows = [r for r in audit if r.variant in ("calibrated", "top-10") and attribute in (None, r.attribute)]
    return {(r.metric, r.variant): r for r in rows}


def test_they_stand_before_the_raw_ones_of_their_metric():
    graph, z, split = community()
    rows = [(r.metric, r.variant) for r in audited(z, graph, split)]
    assert rows[:4] == [*LEADING[:2], ("dp", None), ("dp", "ratio")]
    assert rows[6:9] == [*LEADING[2:], ("eo", "held-out")]


@pytest.mark.parametrize("change", CHANGES)
def test_no_scale_offset_or_turn_moves_them(change):
    graph, z, split = community()
    before, after = (leading(audited(x, graph, split)) for x in (z, CHANGES[change](z)))
    assert list(before) == LEADING
    for key, row in before.items():
        other = after[key]
        for name in ("value", "ci_low", "ci_high", "floor_random", "floor_degree"):
            assert getattr(other, name) == pytest.approx(getattr(row, name), abs=1e-4), (key, name)
        assert row.value > 0 and row.n == other.n and len(row.cells) == len(other.cells)
        for cell, same in zip(row.cells, other.cells, strict=True):
            assert (same.value, same.ci_low, same.ci_high) == pytest.approx(
                (cell.value, cell.ci_low, cell.ci_high), abs=1e-4
            )


def test_calibrated_rows_are_the_gaps_of_calibrated_cells():
    graph, z, split = community()
    codes = {"city": graph.attributes[0].codes}
    found = calibrated.fit(z, graph, split, 0)
    rows = leading(audited(z, graph, split))
    dp = parity.gap(parity.dp_cells(found.factors, graph, codes)["city"], 100).value
    eo = parity.gap(parity.eo_cells(found.factors, graph, codes, found.tested)["city"], 30).value
    assert rows["dp", "calibrated"].value == dp and rows["eo", "calibrated"].value == eo
    row = rows["eo", "calibrated"]
    assert row.n == sum(c.n for c in row.cells if not c.excluded) <= found.tested.shape[1]
    assert row.ci_low < row.value < row.ci_high
    assert f"({found.n:,}, left out of EO)" in row.note and f"slope {found.slope:.3g}" in row.note
    assert row.floor_random > 0 and 0 < row.p_value <= 1


def test_the_top_ten_of_a_planted_preference():
    # Two groups far apart: everyone is shown people of the own group alone, the smaller one a quarter of all.
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [60, 180])
    angle = rng.uniform(0, 2 * np.pi, 240)  # so that not the same ten are shown to all
    z = np.hstack([5 * np.eye(2)[codes], np.stack([np.cos(angle), np.sin(angle)], axis=1)])
    edges, _, _ = simple_edges(*rng.integers(0, 240, (2, 3000)), 240)
    graph = AttributedGraph("g", 240, edges, (attribute("side", codes),))
    row = leading(audited(z, graph, split_links(graph)))["dp", "top-10"]
    assert row.value == pytest.approx(0.75) and row.ci_low > 0.6 and row.p_value < 1e-6 and row.ci_high < 0.85
    assert "lists of a people give 100.0% of their slots to a, who are 25.0% of people" in row.note
    assert [(c.a, c.b, c.value, c.n) for c in row.cells] == [
        ("a", "a", 1.0, 600),
        ("a", "b", 0.0, 600),
        ("b", "a", 0.0, 1800),
        ("b", "b", 1.0, 1800),
    ]
    assert row.n == 2400 and 0 < row.floor_random < 0.1 and row.floor_degree > row.floor_random


def test_eo_of_the_top_ten_is_how_often_links_are_in_lists():
    graph, z, split = community()
    row = leading(audited(z, graph, split))["eo", "top-10"]
    lists = top_ten.recommend(z, graph, split.train)
    shown = dict(zip(lists.ranker.tolist(), lists.shown.tolist(), strict=True))
    codes, hits = graph.attributes[0].codes, {}
    for u, v in split.test.T.tolist():
        a, b = sorted((codes[u], codes[v]))
        hits.setdefault(f"{'abc'[a]}-{'abc'[b]}", []).extend((v in shown[u], u in shown[v]))
    for cell in row.cells:
        assert cell.value == pytest.approx(np.mean(hits[cell.name])) and cell.n == len(hits[cell.name]) // 2
    counted = [c.value for c in row.cells if not c.excluded]
    assert row.value == pytest.approx(max(counted) - min(counted)) and row.ci_high > row.value


def test_the_degree_floor_is_what_the_degree_alone_gives_and_is_kept(monkeypatch):
    graph, z, split = community()
    floors = {}
    first = leading(audited(z, graph, split, floors=floors))
    degree = np.bincount(split.train.ravel(), minlength=graph.num_nodes).astype(np.float32)[:, None]
    alone = leading(audited(degree, graph, split))
    assert [first[key].floor_degree for key in LEADING] == [alone[key].value for key in LEADING]
    kept = {key: dict(value) for key, value in floors.items()}
    assert all(isinstance(x, float) for value in kept.values() for x in value.values())

    def refuse(*_, **__):
        raise AssertionError("measured again")

    monkeypatch.setattr(top_ten, "in_random_order", refuse)
    again = leading(audited(-z[::-1], graph, split, floors=floors))
    assert floors == kept
    assert again["dp", "top-10"].floor_degree == first["dp", "top-10"].floor_degree
    assert again["dp", "top-10"].floor_random == first["dp", "top-10"].floor_random
    with pytest.raises(AssertionError, match="measured again"):
        audited(z, graph, split, floors=floors, split_seed=1)


def test_quick_audits_take_kept_floors_and_make_no_lists():
    graph, z, split = community()
    floors = {}
    quick = leading(audited(z, graph, split, floors=floors, quick=True))
    assert list(quick) == [("dp", "calibrated"), ("eo", "calibrated")] and not floors
    assert quick["dp", "calibrated"].floor_degree is None
    whole = leading(audited(z, graph, split, floors=floors))
    quick = leading(audited(z, graph, split, floors=floors, quick=True))
    for key in quick:
        assert (quick[key].value, quick[key].floor_degree) == (whole[key].value, whole[key].floor_degree)


def test_none_where_predicted_links_are_counted():
    graph, z, split = community()
    assert not leading(audited(z, graph, split, threshold=0.5))


@pytest.mark.parametrize("users", [None, 200])
def test_nothing_is_told_of_small_groups(users):
    rng = np.random.default_rng(0)
    people, n = 200, 200 + (80 if users else 0)
    codes = np.concatenate([np.repeat([0, 1, 2], [110, 82, 8]), np.full(n - people, -2)])
    edges, _, _ = simple_edges(rng.integers(0, people, 4000), rng.integers(users or 0, n, 4000), n)
    side = "users" if users else "nodes"
    graph = AttributedGraph("g", n, edges, (attribute("region", codes, side=side, num_values=3),), num_users=users)
    z = rng.normal(size=(n, 4)).astype(np.float32)
    z[192:200] *= 3  # popular
    audit = audited(z, graph, split_links(graph), disclosure=Release())
    rows = leading(audit)
    assert list(rows) == LEADING
    for row in rows.values():
        assert {c.a for c in row.cells} | {c.b for c in row.cells} <= {"a", "b", None}
        assert not any(c.withheld for c in row.cells)
        told, end = row.note.split("12 people are left out: ")
        assert end == "groups of under 12, and others that hide how many"
        assert not re.search(r"\b(?<!')c\b", told), row.note
    row = rows["dp", "top-10"]
    # what is told adds up to all that is told of, so that no share of the third group follows
    for first in {c.a for c in row.cells} if not users else {None}:
        assert sum(c.value for c in row.cells if first in (None, c.a)) == pytest.approx(1)
    # four people of the first group hide how many the third one has
    pairs = [106 * 80, 82 * 80] if users else [106 * 105 // 2, 106 * 82, 82 * 81 // 2]
    assert [c.n for c in audit.find(metric="dp", variant=None).cells] == pairs


@pytest.mark.slow
def test_ninety_seven_groups():
    graph, z, split = community(n=1200, degree=14.0)
    rng = np.random.default_rng(0)
    sizes = [200, *[13] * 28, *[12] * 48, *[3] * 20]
    codes = rng.permutation(np.repeat(np.arange(97), sizes))
    many = AttributedGraph("many", 1200, graph.edges, (attribute("age", codes),))
    rows = leading(audited(z, many, split, disclosure=Release()))
    row = rows["dp", "top-10"]
    assert 0 < row.value < 1 and row.ci_low <= row.value <= row.ci_high
    labels = many.attributes[0].labels[:77]
    assert [(c.a, c.b) for c in row.cells] == [(a, b) for a in labels for b in labels]
    assert "60 people are left out: groups of under 12, and others that hide how many" in row.note
    # an attribute drawn without regard to the vectors
    assert row.p_value > 0.01 and row.ci_low == 0
    assert rows["dp", "calibrated"].value is not None


def test_one_group_alone_is_no_evidence():
    graph, z, split = community()
    alone = AttributedGraph("alone", 400, graph.edges, (attribute("age", np.append(np.zeros(399, int), 1)),))
    row = leading(audited(z, alone, split, disclosure=Release()))["dp", "top-10"]
    assert row.evidence == "insufficient" and row.value is None and row.floor_random is None
    assert row.floor_degree is None and [(c.a, c.b, c.excluded) for c in row.cells] == [("a", "a", True)]


@pytest.mark.parametrize("unknown", ["exclude", "level"])
def test_unknown_values_take_part_as_asked(unknown):
    graph, z, split = community()
    codes = graph.attributes[0].codes.copy()
    codes[:100] = -1
    graph = AttributedGraph("g", graph.num_nodes, graph.edges, (attribute("city", codes, num_values=3),))
    rows = leading(audited(z, graph, split, unknown=unknown))
    values = {c.a for c in rows["dp", "top-10"].cells}
    assert values == ({"a", "b", "c"} if unknown == "exclude" else {"a", "b", "c", "unknown"})
    if unknown == "level":
        assert rows["dp", "top-10"].n == 10 * graph.num_nodes
    else:
        assert rows["dp", "top-10"].n < 10 * 300
        assert sum(c.value for c in rows["dp", "top-10"].cells if c.a == "a") == pytest.approx(1)


def test_a_market_has_a_cell_a_group_of_users():
    graph, z, split = market()
    rows = leading(audited(z, graph, split))
    assert list(rows) == LEADING
    assert all(c.b is None for row in rows.values() for c in row.cells)
    row = rows["dp", "top-10"]
    assert sum(c.value for c in row.cells) == pytest.approx(1) and "lists of items" in row.note
    assert len({c.n for c in row.cells}) == 1 and row.n == row.cells[0].n
    ranked = leading(audited(z, graph, split, calibrated=False))
    assert all("need not be comparable" in ranked[key].note for key in LEADING if key != ("eo", "top-10"))
    assert all("no calibration" not in r.note for r in ranked.values())


def test_what_cannot_be_measured_says_why():
    graph, z, split = community()
    for changed in (np.ones_like(z), np.zeros_like(z)):
        rows = leading(audited(changed, graph, split))
        for metric in ("dp", "eo"):
            row = rows[metric, "calibrated"]
            assert (row.value, row.evidence, row.n, row.floor_degree) == (None, "insufficient", 0, None)
            assert "same score" in row.note
            assert len(row.cells) == 6 and all(c.excluded and c.value is None and c.n == 0 for c in row.cells)
        # in random order no group is preferred
        assert rows["dp", "top-10"].ci_low == 0 and rows["dp", "top-10"].value < 0.1
    rows = leading(audited(z, graph, None))
    assert rows["eo", "top-10"].evidence == "insufficient" and "held out" in rows["eo", "top-10"].note
    assert "training may have seen" in rows["eo", "calibrated"].note and rows["dp", "top-10"].value is not None


def test_of_many_people_some_have_lists(monkeypatch):
    graph, z, split = community()
    monkeypatch.setattr(top_ten, "MOST_LISTS", 150)
    rows = leading(audited(z, graph, split))
    assert "lists of 150 people, drawn of 400" in rows["dp", "top-10"].note
    assert rows["dp", "top-10"].n == 1500 and "drawn of 400" in rows["eo", "top-10"].note
    held = split.test.shape[1]
    assert 0.4 * held < rows["eo", "top-10"].n < 0.8 * held


def test_it_is_a_record_like_any_other():
    graph, z, split = community()
    audit = audited(z, graph, split)
    assert type(audit).from_json(audit.to_json()) == audit
