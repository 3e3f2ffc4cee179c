"""What the Data page shows of a graph: notes, sizes, edges between groups, weights; small numbers suppressed."""

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uge_core as uge
import uge_core.dashboard as ui
from uge_core.dashboard.jobs import reading
from uge_core.datasets.stamp import data_stamp
from uge_core.errors import ConfigError, DatasetMissing, GraphError
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.suppression import FEWEST, SUPPRESSED
from uge_core.runs.store import RunStore
from uge_core.runs.uploads import save_upload
from uge_core.views.data import (
    data_view,
    groups_csv,
    groups_view,
    known_graphs,
    mixing_view,
    overview_row,
    weights_view,
)
from uge_core.views.figures.data import groups_figure, mixing_map, weights_figure

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store")


def made(labels: tuple[str, ...], sizes: list[int], missing: int = 0, **given: object) -> AttributedGraph:
    """Groups in a row, every node joined to the next two."""
    codes = np.repeat(np.arange(-1, len(sizes)), [missing, *sizes]).astype(np.int64)
    n = len(codes)
    edges = np.array([(i, j) for i in range(n) for j in (i + 1, i + 2) if j < n], dtype=np.int64).T
    return AttributedGraph("made", n, edges, (Attribute("g", codes, labels, **given),))  # type: ignore[arg-type]


def test_sizes_with_the_missing_as_a_group(town: Path) -> None:
    graph = uge.load(town)
    view = groups_view(graph, "age")
    assert view.table["kind"].tolist() == ["group", "group", "missing"]
    assert view.table["n"].sum() == graph.num_nodes and view.table["share"].sum() == pytest.approx(1)
    missing = int(graph.attribute("age").unknown.sum())
    assert f"; {missing} without a value" in view.title and f"no value {missing}" in view.alt
    assert "no value is missing" in groups_view(graph, "city").title
    figure = groups_figure(view)
    assert [(list(t.y), t.marker.pattern.shape) for t in figure.data] == [([0, 1], ""), ([2], "/")]
    assert [n for t in figure.data for n in t.x] == view.table["n"].tolist()


def said(view: Any, figure: Any, file: str) -> str:
    """All that a view tells in words and numbers."""
    drawn = [(list(t.x), list(t.text), list(t.customdata)) for t in figure.data]
    return " ".join((view.title, view.caption, view.alt, view.table.to_csv(), view.drawn.to_csv(), file, str(drawn)))


def test_groups_under_twelve_people_are_never_a_number() -> None:
    view = groups_view(made(("big", "small", "=1+1"), [60, 7, 15], missing=4), "g")
    assert view.table["n"].isna().tolist() == [False, False, True, True]
    words = said(view, groups_figure(view), groups_csv([view]))
    assert SUPPRESSED in words and "small,7" not in words and "small 7" not in words
    assert "g,'=1+1,15.0" in groups_csv([view]) and "g,small,suppressed,," in groups_csv([view])
    assert "2 suppressed: their sizes are under 12, which could point at people" in view.caption
    # 60 + 7 + 4 - 2 * 12
    assert "g,big,47.0" in groups_csv([view]) and "big has more than are shown" in view.caption


@pytest.mark.parametrize(
    ("sizes", "missing", "under"),
    [([163, 137, 7], 0, "c"), ([163, 137], 7, "no value"), ([163, 37, 7], 137, "c"), ([163, 137, 7], 31, "c")],
)
def test_the_size_of_one_small_group_does_not_follow_from_the_others(
    sizes: list[int], missing: int, under: str
) -> None:
    graph = made(("a", "b", "c")[: len(sizes)], sizes, missing)
    view = groups_view(graph, "g")
    table, file = view.table.set_index("group"), groups_csv([view])
    assert table.index[table["n"].isna() | table["share"].isna()].tolist() == [under]
    assert table.loc["a", "n"] == 163 + 7 - 12
    texts = {x: y.strip() for t in groups_figure(view).data for x, y in zip(t.customdata, t.text, strict=True)}
    assert texts[under] == SUPPRESSED and "a has more than are shown" in view.caption
    assert f"{under},suppressed,," in file and "1 suppressed: its size" in view.caption
    assert not re.search(r"(?<![.\d])(163|7)(?![.\d])", said(view, groups_figure(view), file))
    row = overview_row(graph, graph.attributes[0])
    assert row["Missing"] == (SUPPRESSED if missing == 7 else str(missing))


@pytest.mark.parametrize("few", [1, 5, 11])
def test_what_is_told_does_not_depend_on_how_small_a_group_is(few: int) -> None:
    view = groups_view(made(("a", "b", "c"), [170 - few, 137, few]), "g")
    assert view.table["n"].tolist()[:2] == [158, 137] and "158 " in groups_figure(view).data[0].text[0]


def test_sizes_that_follow_from_nothing_are_shown() -> None:
    table = groups_view(made(tuple("abc"), [163, 137, 17]), "g").table
    assert table["n"].tolist() == [163, 137, 17]


def test_where_no_group_can_hide_a_small_one_several_are_left_out() -> None:
    table = groups_view(made(tuple("abcd"), [15, 14, 40, 6]), "g").table.set_index("group")
    # 15 + 14 + 40 + 6 - 12 - 2 * 22
    assert table["n"].dropna().to_dict() == {"c": 19.0} and (table["suppressed"] == SUPPRESSED).sum() == 3
    table = groups_view(made(tuple("abcde"), [15, 14, 13, 16, 6]), "g").table.set_index("group")
    assert table.loc[["a", "b", "e"], "suppressed"].tolist() == [SUPPRESSED] * 3  # which is small is not said
    assert table.loc[["c", "d"], "n"].tolist() == [13, 16]


def test_the_rest_of_many_groups_gives_no_size_away() -> None:
    labels, sizes = tuple("abcdefghijklmno"), [7, 137, 163, *range(20, 32)]
    for missing in (0, 11):
        (others,) = groups_view(made(labels, sizes, missing), "g").drawn.query("kind == 'others'").to_dict("records")
        assert others["n"] == 20 + 21 + 22


def test_ordered_groups_keep_their_order_and_many_are_cut() -> None:
    labels = tuple(f"{10 * i}s" for i in range(15))
    view = groups_view(made(labels, [20 + i for i in range(15)], ordered=True), "g")
    assert view.table["group"].tolist() == list(labels)
    assert view.drawn["group"].tolist() == [*labels[4:], "4 others"]
    assert view.drawn["n"].sum() == view.table["n"].sum()
    assert "Drawn are the 11 largest groups" in view.caption


def blocks(sizes: list[int], edges: dict[tuple[int, int], int]) -> AttributedGraph:
    """As many edges between any two groups as asked for."""
    codes, first = np.repeat(np.arange(len(sizes)), sizes), np.cumsum([0, *sizes])
    found = []
    for (a, b), count in edges.items():
        pairs = [(i, j) for i in range(first[a], first[a + 1]) for j in range(first[b], first[b + 1]) if i < j]
        found += pairs[:: max(1, len(pairs) // max(count, 1))][:count]
    labels = tuple("abcdef"[: len(sizes)])
    return AttributedGraph("made", len(codes), np.array(found, np.int64).T, (Attribute("g", codes, labels),))


def test_edges_between_groups_stand_beside_chance() -> None:
    view = mixing_view(blocks([40, 40], {(0, 0): 77, (0, 1): 13, (1, 1): 77}), "g")
    table = view.table.set_index(["a", "b"])
    # pairs: 2 * 780 within, 1600 across
    assert table["edges"].tolist() == [77, 13, 77] and table["counts"].tolist() == ["yes"] * 3
    assert table.loc[("a", "a"), "ratio"] == pytest.approx(77 / (167 * 780 / 3160), abs=1e-4)
    assert "a with a has 1.87 times the edges" in view.title and "a,b,13.0,84.557,0.1537,yes" in view.csv()
    assert [n.text for n in mixing_map(view).layout.annotations] == ["1.87<br>77", "0.15<br>13", "1.87<br>77"]
    assert "Suppressed" not in view.caption


SIX = [(i, j) for i in range(3) for j in range(i, 3)]


@pytest.mark.parametrize(
    ("sizes", "edges", "hidden"),
    [
        # cells with few edges: others are left out of the first that has enough, twelve for each
        ([60, 50, 40], [90, 40, 30, 80, 6, 70], ["bc"]),
        ([60, 50, 40], [90, 20, 30, 80, 25, 6], ["cc"]),
        ([60, 50, 40], [90, 40, 3, 80, 6, 70], ["ac", "bc"]),
        # a group of few people, and people of the first group with it
        ([60, 50, 7], [90, 40, 30, 80, 20, 15], ["ac", "bc", "cc"]),
        # a person alone has no pair within the group; the group is there all the same
        ([60, 50, 1], [90, 40, 30, 80, 20, 0], ["ac", "bc", "cc"]),
        ([60, 50, 7, 7], [90, 40, 30, 80, 20, 15], ["ac", "ad", "bc", "bd", "cc", "cd", "dd"]),
    ],
)
def test_edges_of_small_groups_do_not_follow_from_the_others(
    sizes: list[int], edges: list[int], hidden: list[str]
) -> None:
    graph = blocks(sizes, dict(zip(SIX, edges, strict=True)))
    view = mixing_view(graph, "g")
    table = view.table.assign(pair=view.table["a"] + view.table["b"]).set_index("pair")
    assert table.index[table["counts"] == "suppressed"].tolist() == hidden
    assert table.loc[hidden, ["edges", "expected", "ratio"]].isna().all(axis=None)
    assert table.drop(hidden)[["edges", "expected", "ratio"]].notna().all(axis=None)
    if len(hidden) < 3:
        told = dict(zip(("aa", "ab", "ac", "bb", "bc", "cc"), edges, strict=True))
        for pair, few in zip(("aa", "ab"), [told[h] for h in hidden], strict=False):
            told[pair] += few - 12
        assert table["edges"].drop(hidden).to_dict() == {pair: n for pair, n in told.items() if pair not in hidden}
    else:  # edges of those who are left out are not counted either
        assert table.loc["aa", "edges"] < 90 and table.loc["bb", "edges"] <= 80
    assert all(f"{a},{b},suppressed,,,suppressed" in view.csv() for a, b in hidden)
    assert f"Suppressed: {len(hidden)} pair" in view.caption and "suppressed" in view.alt
    figure = mixing_map(view)
    assert [n.text for n in figure.layout.annotations].count("suppressed") == len(hidden)
    assert [t for t in figure.data[0].text if t.endswith(": suppressed")] and "nan" not in figure.to_json().lower()
    row = overview_row(graph, graph.attributes[0])
    assert row["n edges"] == table["edges"].sum() and (row["Edges within a group"] == "suppressed") == (len(hidden) < 3)


def test_few_edges_of_an_attribute_with_two_groups_do_not_follow_from_its_share() -> None:
    graph = blocks([40, 40], {(0, 0): 77, (0, 1): 3, (1, 1): 78})
    table = mixing_view(graph, "g").table
    assert table["counts"].tolist() == ["yes", "suppressed", "yes"] and table["edges"].tolist()[::2] == [68, 78]
    assert overview_row(graph, graph.attributes[0])["Edges within a group"] == "suppressed"


def test_too_few_expected_is_a_third_verdict() -> None:
    codes = np.array([0] * 60 + [1] * 12, dtype=np.int64)
    pairs = [(i, i + 1) for i in range(59)] + [(i, j) for i in range(60, 65) for j in range(i + 1, 66)]
    pairs += [(i, 66) for i in range(12)]
    graph = AttributedGraph("made", 72, np.array(pairs, np.int64).T, (Attribute("g", codes, ("many", "few")),))
    view = mixing_view(graph, "g")
    assert view.table.set_index(["a", "b"]).loc[("few", "few"), "counts"] == "too few expected"
    assert "few with few" not in view.title and "Hatched" in view.caption
    assert any(s.type == "line" for s in mixing_map(view).layout.shapes)


def test_two_sides(write_titles: Path) -> None:
    graph = uge.load(write_titles)
    view = mixing_view(graph, "sex")
    assert view.columns == ("all items",) and set(view.rows) == {"f", "m"}
    assert len(mixing_map(view, dark=True).layout.annotations) == 2
    assert weights_view(graph, ["sex"]).kinds == ("edges",)


@pytest.fixture
def write_titles(tmp_path: Path) -> Path:
    (tmp_path / "users.csv").write_text("who,sex\n" + "".join(f"u{i},{'fm'[i % 2]}\n" for i in range(60)))
    (tmp_path / "seen.csv").write_text("user,film\n" + "".join(f"u{i % 60},t{(i * 7) % 31}\n" for i in range(600)))
    (tmp_path / "dataset.yaml").write_text("edges: seen.csv\nusers: users.csv\n")
    return tmp_path


def test_weights_by_hand() -> None:
    graph = blocks([40, 40], {(0, 0): 200, (0, 1): 60, (1, 1): 220})
    drawn = graph.edges[:, np.random.default_rng(1).random(480) < 0.9]
    cell = (drawn >= 40).sum(axis=0)
    edges = np.bincount(cell)
    # R~ is one for all cells, so that a weight is pairs over edges, 1 on average
    weight = (np.array([800, 1600, 800]) / edges)[cell]
    weight /= weight.mean()
    view = weights_view(graph, ["g"])
    facts = {label: value for label, value, _ in view.facts}
    assert (facts["Smallest weight"], facts["Largest weight"]) == (f"{weight.min():.3f}", f"{weight.max():.3f}")
    assert facts["Effective sample size"] == f"{weight.sum() ** 2 / np.square(weight).sum():,.0f}"
    assert view.kinds == ("within a group", "between groups") and facts["Clipped share"] == "0.0%"
    table = view.table
    (bar,) = np.flatnonzero(table["between groups"])
    assert (
        table.loc[bar, "low"] <= weight.max() < table.loc[bar, "high"] and table.loc[bar, "between groups"] == edges[1]
    )
    assert [list(t.y) for t in weights_figure(view).data] == [table[k].tolist() for k in view.kinds]
    with pytest.raises(ConfigError, match="no sensitive attribute is chosen"):
        weights_view(graph, [])


def test_weights_beyond_the_range_are_in_the_outer_bars_and_said(town: Path) -> None:
    n = 200
    codes = np.arange(n) % 2
    within = [(i, j) for i in range(n) for j in range(i + 2, min(i + 60, n), 2)]
    pairs = np.array([*within, *((i, i + 1) for i in range(40))], dtype=np.int64).T
    view = weights_view(AttributedGraph("made", n, pairs, (Attribute("g", codes, ("a", "b")),)), ["g"])
    assert 25 < view.table["between groups"].iloc[-1] <= 40  # of nine in ten edges
    assert "beyond 1/16 to 16" in view.caption and {f[0]: f[1] for f in view.facts}["Clipped share"] != "0.0%"
    assert view.table["high"].iloc[-1] < 1000


def test_too_many_groups_fall_back_to_single_ratios() -> None:
    rng = np.random.default_rng(0)
    n = 9000
    attributes = tuple(Attribute(f"g{i}", rng.integers(0, 40, n), tuple(map(str, range(40)))) for i in range(3))
    edges = np.unique(np.sort(rng.integers(0, n, (20_000, 2)), axis=1), axis=0).T
    graph = AttributedGraph("made", n, edges[:, edges[0] < edges[1]], attributes)
    view = weights_view(graph, ["g0"])
    assert "too many for one table" in view.remarks[0]


def test_weights_that_are_all_one_are_a_fault_with_its_reason_and_remedy() -> None:
    n = 240
    rng = np.random.default_rng(0)
    pairs = {tuple(sorted(p)) for p in rng.integers(0, n, (900, 2)).tolist() if p[0] != p[1]}
    edges = np.array(sorted(pairs), dtype=np.int64).T
    region = Attribute("region", np.arange(n) % 2, ("a", "b"))
    # all but a few people in groups of six: decimal numbers that were made an attribute
    codes = np.where((np.arange(n) < 48) & (np.arange(n) % 2 == 0), 0, 1 + np.arange(n) // 7 % 36)
    share = Attribute("share", codes, tuple(f"{i / 40:g}" for i in range(37)))
    spoilt = AttributedGraph("made", n, edges, (region, share))
    view = weights_view(spoilt, ["region"])
    assert {value for label, value, _ in view.facts[:2]} == {"1.000"}
    assert "weights are 1" in view.fault and f"under {FEWEST} people of share" in view.fault
    assert "give numbers bins" in view.fault
    # nobody is left at all
    tiny = Attribute("share", np.arange(n) // 6, tuple(f"{i / 40:g}" for i in range(40)))
    with pytest.raises(
        ConfigError, match=r"nobody is left once groups of under 12 people of share .* give numbers bins"
    ):
        weights_view(AttributedGraph("made", n, edges, (region, tiny)), ["region"])
    # towns lie in one region each
    town = Attribute("town", np.arange(n) % 2 + np.arange(n) // 120 * 2, ("k", "l", "m", "n"))
    nested = weights_view(AttributedGraph("made", n, edges, (region, town)), ["region"])
    assert "alike in town all have the same region" in nested.fault
    # what the remedies name helps
    assert weights_view(spoilt, ["region"], independence=True).fault == ""
    assert weights_view(AttributedGraph("made", n, edges, (region,)), ["region"]).fault == ""
    # links that chance explains to the last edge
    ring = np.array([(i, (i + k) % n) for i in range(n) for k in (1, 2)], dtype=np.int64).T
    even = AttributedGraph("made", n, np.sort(ring, axis=0), (replace(region, codes=np.arange(n) // 2 % 2),))
    seen = weights_view(even, ["region"])
    assert ("as chance would have them" in seen.fault) == ({v for _, v, _ in seen.facts[:2]} == {"1.000"})


def test_a_graph_as_its_page_shows_it(town: Path, store: RunStore) -> None:
    view = data_view(str(town), store)
    assert dict(view.facts)["Nodes"] == "200" and view.spec == str(town.resolve())
    assert view.attributes == {"city": 3, "gender": 2, "age": 2} and view.sensitive == ("city", "gender", "age")
    row = view.overview.set_index("Attribute").loc["city"]
    record = next(a for a in uge.inspect(view.graph)["attributes"] if a["name"] == "city")
    assert (
        row["Edges within a group"] == f"{record['same_group_share']:.1%}"
        and row["By chance"] == f"{record['chance']:.1%}"
    )
    assert list(view.columns["Role"]).count("attribute") == 3


def test_marked_attributes_come_first(town: Path, store: RunStore, tmp_path: Path) -> None:
    for name in ("edges.csv", "nodes.csv"):
        (tmp_path / name).write_bytes((town / name).read_bytes())
    (tmp_path / "dataset.yaml").write_text("edges: edges.csv\nnodes: nodes.csv\nsensitive: [gender]\n")
    assert data_view(str(tmp_path), store).sensitive == ("gender", "city", "age")
    before = data_stamp(str(tmp_path), store.root)
    (tmp_path / "nodes.csv").write_bytes((town / "nodes.csv").read_bytes() + b"\n")
    assert data_stamp(str(tmp_path), store.root) != before


def test_small_groups_are_named_without_their_size(tmp_path: Path, store: RunStore) -> None:
    nodes = "id,g\n" + "".join(f"{i},{'rare' if i < 3 else 'ab'[i % 2]}\n" for i in range(40))
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % 40}\n" for i in range(40)))
    (note,) = [n for n in data_view(str(tmp_path), store).notes if f"fewer than {FEWEST} nodes" in n.text]
    assert note.examples == ("g rare",) and note.level == "warning" and note.remedy


@pytest.mark.parametrize(("cells", "said"), [("", "g has no value in any row"), ("x", "g has one value in all rows")])
def test_nothing_to_audit_comes_first(tmp_path: Path, store: RunStore, cells: str, said: str) -> None:
    (tmp_path / "nodes.csv").write_text("id,g\n" + "".join(f"{i},{cells}\n" for i in range(30)))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % 30}\n" for i in range(30)))
    view = data_view(str(tmp_path), store)
    assert view.notes[0].level == "warning" and said in view.notes[0].text and not view.sensitive


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda p: p / "gone", "no such folder or file"),
        (lambda p: p, "no recognised layout. Found: no files"),
        (lambda p: f"{p}:gone", "no recognised layout|unknown graph"),
        (lambda p: "pyg:LastFMAsia", "is fetched only when it is named"),
        (lambda p: "sample:gone", "unknown sample"),
    ],
)
def test_places_that_hold_no_graph(
    tmp_path: Path, store: RunStore, prepare: Callable[[Path], object], said: str
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    with pytest.raises(GraphError, match=said):
        data_stamp(str(prepare(folder)), store.root)


def test_a_file_nobody_may_read(town: Path, tmp_path: Path, store: RunStore) -> None:
    if os.geteuid() == 0:
        pytest.skip("permissions do not bind root")
    for name in ("edges.csv", "nodes.csv"):
        (tmp_path / name).write_bytes((town / name).read_bytes())
    (tmp_path / "nodes.csv").chmod(0)
    with pytest.raises(GraphError, match="may not be read by this user"):
        data_view(str(tmp_path), store)


def save_torch(path: Path) -> str:
    """A small graph of PyG's."""
    import torch
    from torch_geometric.data import Data

    ring = torch.stack([torch.arange(60), (torch.arange(60) + 1) % 60])
    both = torch.cat([ring, ring.flip(0)], dim=1)
    torch.save(Data(edge_index=both, x=torch.ones(60, 2), gender=torch.arange(60) % 2, note="a text"), path)
    return str(path)


def test_a_file_of_torch_is_read_by_a_worker_and_shown_without_torch(tmp_path: Path, store: RunStore) -> None:
    spec = save_torch(tmp_path / "g.pt")
    stamp = data_stamp(spec, store.root)
    for read in (lambda: data_view(spec, store), lambda: ui.training_form(spec, store)):
        with pytest.raises(uge.NotReadYet, match=r"g.pt: a file of torch"):
            read()
    steps: list[Any] = []
    reading.carry_out(store, spec, steps.append)
    assert [s.stage for s in steps] == ["reading"] * 2 and "g.pt" in steps[0].text
    view = data_view(spec, store)
    whole = uge.load(spec)
    assert view.graph.fingerprint == whole.fingerprint and view.graph.columns == whole.columns
    assert ui.training_form(spec, store).attributes == {"gender": 2}
    code = (
        "import sys, uge_core as uge, uge_core.dashboard as ui; view = ui.data_view(sys.argv[1], "
        "uge.RunStore(sys.argv[2]));"
        "print(view.name, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, spec, str(store.root)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == ["g", "False"]
    # the copy is its user's alone, and a file that changes is read again
    (kept,) = store.tensors.iterdir()
    assert kept.stat().st_mode & 0o077 == 0 and store.tensors.stat().st_mode & 0o077 == 0
    os.utime(tmp_path / "g.pt", ns=(1, 1))
    assert data_stamp(spec, store.root) != stamp
    with pytest.raises(uge.NotReadYet):
        data_view(spec, store)


def test_what_is_no_file_of_torch_is_said_and_nothing_is_kept(tmp_path: Path, store: RunStore) -> None:
    import torch

    (tmp_path / "g.pt").write_bytes(pickle.dumps({"edge_index": 1}))
    torch.save({"not": "a graph"}, tmp_path / "h.pt")
    for name, said in (("g", "a plain pickle is never loaded"), ("h", "found a dict; expected a torch_geometric")):
        with pytest.raises(GraphError, match=said):
            reading.carry_out(store, str(tmp_path / f"{name}.pt"), lambda step: None)
    assert not store.tensors.exists()
    # a damaged copy goes, and the file is asked for again
    spec = save_torch(tmp_path / "k.pt")
    reading.carry_out(store, spec, lambda step: None)
    (kept,) = store.tensors.iterdir()
    kept.write_bytes(b"x")
    with pytest.raises(uge.NotReadYet, match="damaged"):
        data_view(spec, store)
    assert not kept.exists()


def test_an_uploaded_file_of_torch_goes_with_its_copy(tmp_path: Path, store: RunStore) -> None:
    with Path(save_torch(tmp_path / "mine.pt")).open("rb") as file:
        upload = save_upload("", [("mine.pt", file)], store)
    assert upload.name == "mine" and ui.stands_alone("mine.pt")
    reading.carry_out(store, upload.spec, lambda step: None)
    assert data_view(upload.spec, store).name == "mine"
    ui.remove_upload("mine", store)
    assert not list(store.tensors.iterdir()) and not upload.folder.exists()


def test_graphs_at_hand(store: RunStore, town: Path) -> None:
    with (town / "edges.csv").open("rb") as edges, (town / "nodes.csv").open("rb") as nodes:
        upload = save_upload("mine", [("edges.csv", edges), ("nodes.csv", nodes)], store)
    assert known_graphs(store) == {
        upload.spec: "upload mine",
        "sample:titles": "sample titles",
        "sample:town": "sample town",
    }
    assert data_view(upload.spec, store).name == "mine"
    with pytest.raises(DatasetMissing):
        data_view(f"{upload.spec}-gone", store)


def test_labels_are_no_markup_on_charts() -> None:
    view = groups_view(made(("<b>x</b>", "<img src=x>"), [30, 30]), "g")
    assert set(groups_figure(view).layout.yaxis.ticktext) == {"&lt;b&gt;x&lt;/b&gt;", "&lt;img src=x&gt;"}
    assert FEWEST == 12


@pytest.mark.realdata
def test_pokec_comes_within_seconds(shared_data: Callable[[str], Path], store: RunStore) -> None:
    import time

    start = time.process_time()
    view = data_view(str(shared_data("pokec-n")), store)
    for name in view.attributes:
        groups_figure(groups_view(view.graph, name))
        mixing_map(mixing_view(view.graph, name))
    weights = weights_view(view.graph, view.sensitive[:1])
    print(f"{time.process_time() - start:.1f} s of processor time")
    assert time.process_time() - start < 30
    assert dict(view.facts)["Edges"] == "517,047" and weights.title
