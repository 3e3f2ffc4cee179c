"""The disclosure rule: what is left out, that nothing told depends on small counts, and what is remembered."""

from __future__ import annotations

import json
import sqlite3
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.campaigns import disclosure as campaign
from uge_core.audit.disclosure import Everybody
from uge_core.cli import main
from uge_core.errors import StoreError
from uge_core.graph.graph import UNKNOWN, Attribute, AttributedGraph
from uge_core.graph.split import probe_split
from uge_core.graph.suppression import FEWEST
from uge_core.runs.disclosure import (
    EXACT,
    Release,
    _moves,
    beside_told,
    coarse,
    pinned,
    release,
    removals,
    told,
    told_before,
    told_sizes,
)
from uge_core.runs.store import RunStore

SMALL = st.integers(1, FEWEST - 1)


def graph_of(*attributes: Attribute, seed: int = 0, degree: float = 8.0) -> AttributedGraph:
    n = len(attributes[0].codes)
    chance = np.triu(np.random.default_rng(seed).random((n, n)) < degree / n, 1)
    return AttributedGraph("made", n, np.stack(np.nonzero(chance)).astype(np.int64), attributes)


def by_size(sizes: list[int], missing: int = 0, name: str = "x") -> Attribute:
    codes = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(missing, UNKNOWN)]).astype(np.int64)
    return Attribute(name, codes, tuple("abcdefgh"[: len(sizes)]))


@given(st.lists(st.integers(FEWEST, 200), min_size=1, max_size=5), st.lists(SMALL, min_size=1, max_size=3), st.data())
def test_what_is_told_is_the_same_however_small_the_small_groups_are(large, small, data):
    within = np.zeros(len(large) + len(small), dtype=np.int64)
    size = np.array([*large, *small])
    out = removals(size, within, FEWEST)
    assert (out >= 0).all() and (out <= size).all() and (out[len(large) :] == small).all()
    if out.sum() == size.sum() or len(small) > 1 or not _together(size, len(large)):
        return
    # other small groups, and as many people more or fewer in the last of the groups that hide them, the others just large
    (last,) = np.flatnonzero((out[: len(large)] > 0) & (out[: len(large)] < large))
    other = np.array(data.draw(st.lists(SMALL, min_size=len(small), max_size=len(small))))
    changed = size.copy()
    changed[len(large) :] = other
    changed[:last] = FEWEST
    changed[last] += size[:last].sum() - FEWEST * last + sum(small) - other.sum()
    again = removals(changed, within, FEWEST)
    assert (changed - again).tolist() == (size - out).tolist()


def _together(size, num_large):
    """Whether the large groups hide all small ones together."""
    k, total = len(size) - num_large, int(size[num_large:].sum())
    for m in range(num_large):
        total += size[m]
        if total - 12 * k - m * 11 * (k + 1) >= 12:
            return True
    return False


@given(st.lists(st.integers(1, 60), min_size=2, max_size=5), st.integers(0, 14))
def test_who_is_left_out_is_left_out_of_everything(sizes, missing):
    a = by_size(sizes, missing)
    graph = graph_of(a)
    measured = Release().attribute(a, graph, probe_split(a))
    count = np.bincount(measured.classes[measured.classes >= 0], minlength=len(measured.labels))
    shown = told(graph, a)
    assert dict(zip(measured.labels, count.tolist(), strict=True)) == {
        label: int(n) for label, n in zip(a.labels, shown.size, strict=False) if label in measured.labels
    }
    assert not ((count > 0) & (count < FEWEST)).any() or shown.hides.any()
    for part in (measured.probe.train, measured.probe.test):
        assert (measured.classes[part] >= 0).all()
    if measured.people:
        # a fifth of each group, rounded down: as many as the group's told size says
        tested = np.bincount(measured.classes[measured.probe.test], minlength=len(count))
        assert (tested <= (0.2 * count + 1e-9).astype(int)).all()
    assert Everybody().attribute(a, graph, probe_split(a)).people == 0


def test_by_hand():
    # 40 + 5 + 3 people; of a 40 + 5 + 3 - 2 * 12 are counted
    assert told_sizes(*_case([40, 5, 3]), "exclude", Release()) == {"a": 24}
    # as many large groups as small ones: each hides one
    assert told_sizes(*_case([40, 60, 5, 3]), "exclude", Release()) == {"a": 33, "b": 51}
    assert told_sizes(*_case([40, 5, 60]), "exclude", Release()) == {"a": 33, "c": 60}
    # 13 + 5 < 24, so that a is left out, and b is told as 13 + 30 + 5 - 12 - 22
    assert told_sizes(*_case([13, 30, 5]), "exclude", Release()) == {"b": 14}
    assert told_sizes(*_case([13, 33, 11]), "exclude", Release()) == {"a": 12, "b": 33}
    assert told_sizes(*_case([40, 60], 5), "exclude", Release()) == {"a": 33, "b": 60}
    assert told_sizes(*_case([40, 60], 12), "exclude", Release()) == {"a": 40, "b": 60}
    assert told_sizes(*_case([40, 60], 5), "level", Release()) == {"a": 33, "b": 60}
    # nobody large enough to hide five people: all are left out
    assert not sum(told_sizes(*_case([15, 5]), "exclude", Release()).values())
    assert told_sizes(*_case([15, 5]), "exclude", Release(padded=False)) == {"a": 15}


def _case(sizes: list[int], missing: int = 0) -> tuple[AttributedGraph, Attribute]:
    a = by_size(sizes, missing)
    return graph_of(a), a


def test_districts_are_padded_within_their_county():
    # county f holds districts a (30) and b (5), county g holds c (60)
    district = by_size([60, 30, 5], name="district")
    county = Attribute("county", (district.codes > 0).astype(np.int64), ("g", "f"))
    graph = graph_of(county, district)
    assert told_sizes(graph, county, "exclude", Release()) == {"g": 60, "f": 35}
    # not of a, which comes first: 35 - 30 people of f would be those of c
    assert told_sizes(graph, district, "exclude", Release()) == {"a": 60, "b": 23}


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_edges_of_small_cells_are_hidden_by_edges_of_another(counts, seed):
    cell = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    kept, none = Release().counted(cell, len(counts))
    left = np.bincount(cell[kept], minlength=len(counts))
    size = np.array(counts)
    small = (size > 0) & (size < FEWEST)
    assert (left[small] == 0).all() and none[small].all() and (left <= size).all()
    assert (left[none] == 0).all()
    if not small.any():
        assert kept.all() and not none.any()
    beside = Release().beside(size)
    # or no pair is counted, as nothing hides them
    assert ((size + beside)[small] == FEWEST).all() or (beside[small] > 10**9).all()


def test_sums_over_rows_and_columns_pin_a_combination():
    table = np.array([[5, 40, 30], [40, 50, 60], [0, 0, 0]])
    hidden = (table > 0) & (table < FEWEST)
    every = [np.ones(3, dtype=bool), np.ones(3, dtype=bool)]
    assert pinned(table, hidden, hidden, every, FEWEST) == (0, 0)
    a, b = np.nonzero(table)
    codes = np.repeat(a, table[a, b]), np.repeat(b, table[a, b])
    first, second = Attribute("p", codes[0], ("r", "s")), Attribute("q", codes[1], ("x", "y", "z"))
    graph = graph_of(first, second)
    out = Release().combinations((first, second), codes, graph)
    # a ring of four, two in each row and column
    assert out.sum() == 4 and (out.sum(axis=0)[out.any(axis=0)] == 2).all() and (out[:2].sum(axis=1) == 2).all()


def test_the_attack_finds_what_is_not_protected(tmp_path):
    faults = []
    for seed in range(1):
        p = campaign.population(np.random.default_rng([seed, 1]))
        record = campaign.released(p.graph, p.embedding, RunStore(tmp_path / str(seed)), exact=True)
        assert record["disclosure"] == EXACT and record["asked"]["exact"] is True
        faults += [fault for _, fault in campaign.attack(p, record, p.graph.attribute("region"))]
    assert any(faults)


@pytest.mark.slow
def test_nothing_that_is_told_gives_small_counts_away():
    trials = list(campaign.run(7, quick=True))
    assert len(trials) > 10 and [t for t in trials if t[1] is not None] == []


def test_another_division_is_told_beside_the_first(tmp_path):
    assert beside_told({"a": 119, "b": 200}, [{"c": 116, "d": 203}]) == {"a": 104, "b": 191}
    assert beside_told({"a": 116, "b": 203}, [{"c": 116, "d": 203}]) is None
    assert beside_told({"a": 150, "b": 100}, [{"c": 116, "d": 203}]) is None
    store = RunStore(tmp_path)
    age = np.random.default_rng(0).integers(20, 60, 300)
    age[age == 30] = 29
    age[:5] = 30
    graphs = [graph_of(Attribute("age", (age >= edge).astype(np.int64), ("young", "old"))) for edge in (30, 31)]
    z = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)
    first = campaign.released(graphs[0], z, store)
    assert "sizes" not in first["asked"] and len(told_before(store, graphs[0])["age"]) == 1
    run_id = first["run_id"]
    store.save_audit(run_id, first)
    store.delete(run_id)
    # what was told stays told
    second = campaign.released(graphs[1], z, store)
    old = int((age >= 30).sum())
    assert second["asked"]["sizes"]["age"]["old"] == old - FEWEST
    assert campaign.told_people(second, "age") == second["asked"]["sizes"]["age"]


def test_what_was_told_beside_others_is_told_again(tmp_path):
    first, second = {"a": 100, "b": 200}, {"a": 105, "b": 195}
    beside = beside_told(second, [first])
    assert beside == {"a": 88, "b": 188}
    assert beside_told(second, [first, beside]) == beside
    assert beside_told(first, [first, beside]) is None
    assert beside_told(beside, [first, beside]) is None


def test_two_columns_of_one_division_pad_one_group(tmp_path):
    codes = np.repeat([0, 1, 2], [5, 100, 200])
    code, country = Attribute("code", codes, tuple("abc")), Attribute("country", 2 - codes, tuple("cba"))
    graph = graph_of(code, country)
    sizes = [told_sizes(graph, a, "exclude", Release()) for a in (code, country)]
    assert sizes[0] == sizes[1] or all(x.get("b") == y.get("b") for x, y in [sizes])


def test_a_changed_ledger_is_not_believed(tmp_path):
    store, graph = RunStore(tmp_path), graph_of(by_size([60, 80]))
    campaign.released(graph, np.ones((140, 2), dtype=np.float32), store)
    with sqlite3.connect(tmp_path / "store.sqlite") as db:
        db.execute("UPDATE told SET sizes = '{\"a\": 1}'")
    with pytest.raises(StoreError, match="differs from its SHA-256"):
        told_before(store, graph)


def test_a_scenario_tells_what_its_base_tells(tmp_path):
    a = by_size([60, 80])
    base = graph_of(a)
    codes = a.codes.copy()
    codes[0] = 1
    edited = AttributedGraph("made", 140, base.edges, (Attribute("x", codes, a.labels),), base=base)
    assert release(edited, {"x": "exclude"}).sizes == {"x": {"a": 48, "b": 68}}
    assert release(base, {"x": "exclude"}).sizes == {}


def test_exact_figures_are_asked_for_and_say_so(tmp_path, capsys):
    data = tmp_path / "g"
    data.mkdir()
    rng = np.random.default_rng(0)
    (data / "nodes.csv").write_text("id,team\n" + "".join(f"p{i},{'ab' if i < 57 else 'c'}\n" for i in range(60)))
    rows = {tuple(sorted(rng.choice(60, 2, replace=False).tolist())) for _ in range(240)}
    (data / "edges.csv").write_text("source,target\n" + "".join(f"p{u},p{v}\n" for u, v in sorted(rows)))
    np.save(tmp_path / "z.npy", rng.normal(size=(60, 4)).astype(np.float32))
    common = ["audit", "--embeddings", str(tmp_path / "z.npy"), "--data", str(data), "--attributes", "team"]
    common += ["--attackers", "linear", "--json", "--store", str(tmp_path / "store")]
    assert main.run([*common]) in (0, 3)
    told_record = json.loads(capsys.readouterr().out)
    assert main.run([*common, "--exact"]) in (0, 3)
    printed = capsys.readouterr()
    record = json.loads(printed.out)
    assert record["disclosure"] == EXACT and EXACT in printed.err and "disclosure" not in told_record
    cells = [
        next(r for r in x["rows"] if (r["metric"], r["variant"]) == ("dp", None))["cells"]
        for x in (told_record, record)
    ]
    assert [sum(c["n"] for c in cell) for cell in cells] == [48 * 47 // 2, 60 * 59 // 2]
    assert "c" not in {c["a"] for c in cells[0]} and "12 people are left out" in json.dumps(told_record)
    assert main.run(["runs", "show", record["run_id"], "--json", "--store", str(tmp_path / "store")]) == 0
    assert json.loads(capsys.readouterr().out)["audit"]["asked"].get("exact") is None


def test_the_inspection_of_a_terminal_tells_what_its_json_tells(tmp_path, capsys):
    data = tmp_path / "g"
    data.mkdir()
    rng = np.random.default_rng(0)
    teams = ["ab"[i % 2] if i < 152 else "cd"[i < 157] for i in range(160)]
    (data / "nodes.csv").write_text("id,team\n" + "".join(f"p{i},{team}\n" for i, team in enumerate(teams)))
    rows = {tuple(sorted(rng.choice(160, 2, replace=False).tolist())) for _ in range(700)}
    (data / "edges.csv").write_text("source,target\n" + "".join(f"p{u},p{v}\n" for u, v in sorted(rows)))
    said = []
    for flags in ([], ["--json"], ["--exact"], ["--json", "--exact"]):
        assert main.run(["data", "inspect", str(data), "--store", str(tmp_path / "store"), *flags]) == 0
        said.append(capsys.readouterr().out)
    text, record, exact, exact_record = said[0], json.loads(said[1]), said[2], json.loads(said[3])
    assert "c: 3, d: 5" in exact.replace("d: 5, c: 3", "c: 3, d: 5") and exact.startswith(EXACT)
    assert exact_record["attributes"][0]["sizes"] == {"a": 76, "b": 76, "c": 3, "d": 5}
    (team,) = record["attributes"]
    assert team["sizes"] | {"a": None, "b": None} == dict.fromkeys("abcd")
    assert team["sizes"]["a"] + team["sizes"]["b"] == 160 - 24
    assert "c: not shown, d: not shown" in text and "--exact shows all numbers" in text and EXACT not in text
    for label in "ab":
        assert f"{label}: {team['sizes'][label]}" in text
    cells = [c for c in team["mixing"] if c["observed"] is not None]
    assert {c["a"] + c["b"] for c in cells} == {"aa", "ab", "bb"}
    assert all(f"{c['observed']} edges" in text for c in cells) and "not shown: 7 pairs of groups" in text
    assert team["same_group_share"] is None and "%" not in text.split("Columns")[0]


def test_which_groups_are_small_is_not_said(tmp_path):
    a = by_size([60, 80, 5])
    row = campaign.released(graph_of(a), np.ones((145, 2), dtype=np.float32), RunStore(tmp_path))["rows"][0]
    assert "12 people are left out: groups of under 12, and others that hide how many" in row["note"]
    # two districts of a county of 22 people are suppressed alike: either may have 1 to 21
    district = by_size([60, 30, 11, 11], name="district")
    county = Attribute("county", np.minimum(district.codes, 2), ("f", "g", "h"))
    shown = told(graph_of(county, district), district)
    assert shown.size[:4].tolist() == [59, 29, 0, 0]


def test_people_without_a_district_are_hidden_in_their_county():
    # 4 people of county g have no district, of 64 there
    district = by_size([50, 60], 4, name="district")
    county = Attribute("county", (district.codes != 0).astype(np.int64), ("f", "g"))
    graph = graph_of(county, district)
    assert told_sizes(graph, county, "exclude", Release()) == {"f": 50, "g": 64}
    assert told_sizes(graph, district, "exclude", Release()) == {"a": 50, "b": 52}


def test_many_districts_are_padded_within_their_county():
    rng = np.random.default_rng(0)
    sizes = np.concatenate([[rng.integers(30, 60) for _ in range(11)] + [few] for few in (0, 0, 5, 0, 3, *[0] * 15)])
    codes = np.repeat(np.arange(240), sizes)
    district = Attribute("district", codes, tuple(f"d{i}" for i in range(240)))
    county = Attribute("county", codes // 12, tuple(f"c{i}" for i in range(20)))
    graph = graph_of(county, district, degree=2.0)
    sizes_told = told(graph, district)
    assert (sizes_told.small[:-1]).sum() == 2 and sizes_told.hides.sum() == 2
    # in the county of the small one, and nowhere else
    assert sorted(np.flatnonzero(sizes_told.hides) // 12) == sorted(np.flatnonzero(sizes_told.small) // 12)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_what_can_be_exchanged_is_not_pinned(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 20, (3, 4)) * (rng.random((3, 4)) < 0.8)
    every = [np.ones(3, dtype=bool), rng.random(4) < 0.6]
    for row, column in np.argwhere((table > 0) & (table < FEWEST)):
        asked = np.zeros(table.shape, dtype=bool)
        asked[row, column] = True
        if _moves(table, every[1], row, column, FEWEST):
            assert pinned(table, table > 0, asked, every, FEWEST, fewest=0) is None


def test_overlapping_columns_are_told_beside_each_other():
    age = np.repeat([25, 30, 40], [90, 5, 105])
    first, second = (Attribute(f"under {x}", (age < x).astype(np.int64), ("no", "yes")) for x in (30, 31))
    graph = graph_of(first, second)
    assert told_sizes(graph, first, "exclude", Release()) == {"no": 110, "yes": 90}
    # not 105 and 95
    assert told_sizes(graph, second, "exclude", Release()) == {"no": 98, "yes": 90}


def test_a_column_of_combinations_tells_no_combination():
    gender, region = np.repeat([0, 0, 0, 1, 1], [80, 55, 5, 70, 60]), np.repeat([0, 1, 2, 0, 2], [80, 55, 5, 70, 60])
    both = np.unique(gender * 3 + region, return_inverse=True)[1]
    graph = graph_of(
        Attribute("gender", gender, ("f", "m")),
        Attribute("region", region, tuple("xyz")),
        Attribute("both", both, tuple("abcde")),
    )
    told_of = told_sizes(graph, graph.attribute("both"), "exclude", Release())
    # f/z is 5: told would be 140 people of f less those of f/x and f/y
    assert sum(told_of.values()) in (0, 270 - 24) and told_of.get("c", 0) == 0


def test_the_ledger_knows_people_in_another_order_and_columns_by_another_name(tmp_path):
    store, age = RunStore(tmp_path), np.repeat([25, 30, 40], [71, 6, 100])
    ids = [f"p{i}" for i in range(177)]
    edges = np.stack([np.arange(176), np.arange(1, 177)])
    z = np.random.default_rng(0).normal(size=(177, 3)).astype(np.float32)
    first = AttributedGraph(
        "g", 177, edges, (Attribute("age", (age < 30).astype(np.int64), ("old", "young")),), node_ids=ids
    )
    campaign.released(first, z, store)
    for name, order in (("age", np.arange(177)[::-1]), ("years", np.arange(177))):
        a = Attribute(name, (age[order] < 31).astype(np.int64), ("old", "young"))
        again = AttributedGraph("g", 177, edges, (a,), node_ids=[ids[i] for i in order])
        assert release(again, {name: "exclude"}, store).sizes[name]["young"] == 71 - FEWEST


def test_training_and_held_out_edges_do_not_give_each_other_away(tmp_path):
    rng = np.random.default_rng(3)
    a = by_size([60, 50, 40])
    graph = graph_of(a, seed=3, degree=6.0)
    record = campaign.released(graph, rng.normal(size=(150, 4)).astype(np.float32), RunStore(tmp_path))
    sets = campaign._row(record, "dp", "x", "test-set"), campaign._row(record, "eo", "x", "held-out")
    size = dict(zip("abc", (60, 50, 40), strict=True))
    shown = told(graph, a)
    u, v = np.sort(shown.attribute.codes[shown.edges], axis=0)
    assert any(c["withheld"] for c in sets[1]["cells"])
    for tested, held in zip(sets[0]["cells"], sets[1]["cells"], strict=True):
        x, y = size[tested["a"]], size[tested["b"]]
        pairs = x * (x - 1) // 2 if tested["a"] == tested["b"] else x * y
        all_told = int(((u == "abc".index(tested["a"])) & (v == "abc".index(tested["b"]))).sum())
        # edges of all kinds as they are told, less training edges as they follow, are held-out edges as they are told
        assert all_told - (pairs - tested["n"]) in (held["n"], held["n"] - FEWEST, held["n"] + FEWEST)


def test_diagnostics_are_told_coarsely():
    told_of = coarse(
        {
            "weights": {"weight_max": 3.14159},
            "loss": 0.12345,
            "imputation": [{"attribute": "x", "missing": 7, "n": 29, "used": True}],
        }
    )
    assert told_of == {"loss": 0.123, "imputation": [{"attribute": "x", "used": True}]}


def test_the_ledger_is_small_and_has_no_ids(tmp_path: Path):
    store = RunStore(tmp_path)
    a = by_size([60, 80, 5])
    campaign.released(graph_of(a), np.random.default_rng(0).normal(size=(145, 4)).astype(np.float32), store)
    with store.reading() as db:
        assert db is not None
        rows = [tuple(row) for row in db.execute("SELECT people, attribute, sizes FROM told")]
    assert len(rows) == 1 and rows[0][1:] == ("x", '{"a": 53, "b": 80}') and len(rows[0][0]) == 64


@pytest.mark.parametrize("labels", [("a", "b"), ("b", "a")])
def test_the_group_that_hides_is_the_first_that_can(labels):
    codes = np.repeat([0, 1, 2], [100, 100, 4]).astype(np.int64)
    a = Attribute("x", codes, (*labels, "c"))
    assert told_sizes(graph_of(a), a, "exclude", Release())[labels[0]] == 92


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(0, 99), st.booleans())
def test_of_each_cell_as_many_stay_as_the_rule_says(sizes, seed, padded):
    """Those of cells of which nothing is left out are not sorted: the others are drawn as if they were."""
    cell = np.random.default_rng(seed).permutation(np.repeat(np.arange(-1, len(sizes)), [5, *sizes]))
    rule = Release(padded=padded)
    kept, _ = rule.counted(cell, len(sizes))
    _, out = rule.hidden(np.array(sizes))
    assert np.bincount(cell[kept & (cell >= 0)], minlength=len(sizes)).tolist() == (np.array(sizes) - out).tolist()
    assert kept[cell < 0].all()
    if out.any():
        draw = np.random.default_rng(zlib.crc32(np.ascontiguousarray(sizes).tobytes())).random(len(cell))
        for c in np.flatnonzero(out):
            members = np.flatnonzero(cell == c)
            assert set(np.flatnonzero(~kept & (cell == c))) == set(members[np.argsort(draw[members])][: out[c]])
