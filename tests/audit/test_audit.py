"""The assembled audit: its rows, their exposure, floors, evidence and JSON."""

import json
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from strategies import attribute

from uge_core.audit import METRICS, Audit, Row, audit_embedding
from uge_core.audit.ndcg import BiasFree
from uge_core.errors import ConfigError, GraphError
from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN, Attribute, AttributedGraph, Defaults
from uge_core.graph.split import split_links
from uge_core.runs.disclosure import Release

N = 240
COLUMNS = [
    "metric",
    "attribute",
    "attacker",
    "variant",
    "exposure",
    "value",
    "ci_low",
    "ci_high",
    "ci_kind",
    "n",
    "n_seeds",
    "direction",
    "floor_random",
    "floor_majority",
    "floor_permutation",
    "floor_degree",
    "p_value",
    "evidence",
    "cells",
    "note",
]


def town(*, bipartite=False, as_coded=None, seed=0):
    """A graph whose links follow `city`; `rare` has a value of one node, `blank` is never known."""
    rng = np.random.default_rng(seed)
    users = N // 2 if bipartite else None
    people = users or N
    city = rng.integers(0, 2, N)
    chance = 0.03 + 0.12 * (city[:, None] == city)
    linked = np.triu(rng.random((N, N)) < chance, 1)
    if users:
        linked[:, :users] = linked[users:] = False
    edges = np.stack(np.nonzero(linked)).astype(np.int64)
    rare = rng.integers(0, 2, N)
    rare[0], rare[5:30] = 2, UNKNOWN
    codes = {"city": city, "rare": rare, "blank": np.full(N, UNKNOWN)}
    for c in codes.values():
        c[people:] = NOT_APPLICABLE
    made = tuple(
        attribute(name, c, side="users" if users else "nodes", num_values=3 if name == "rare" else 2)
        for name, c in codes.items()
    )
    graph = AttributedGraph("town", N, edges, made, num_users=users, defaults=Defaults("exclude", 0.2, as_coded))
    z = rng.normal(size=(N, 4)).astype(np.float32) * 0.5
    z[:, 0] += 2.0 * city - 1.0
    return graph, split_links(graph), z


@pytest.fixture(scope="module")
def one():
    graph, split, z = town(as_coded=150)
    twin = np.random.default_rng(1).normal(size=z.shape).astype(np.float32)
    floors = {}
    audit = audit_embedding(
        z,
        graph,
        split,
        treated=["CITY"],
        read=["city"],
        twin=twin,
        bias_free={"city": BiasFree(np.ones(split.test.shape[1], np.float32))},
        notes={"city": "a remark"},
        calibrated=False,
        floors=floors,
    )
    return graph, split, z, audit, floors


def test_fields_are_the_contract():
    assert [f.name for f in fields(Row)] == COLUMNS


def test_every_row_is_in_range_and_has_its_direction(one):
    for row in one[3]:
        metric = METRICS[row.metric]
        assert row.direction == ("higher" if row.variant == "ratio" else metric.direction)
        assert (row.value is None) == (row.evidence == "insufficient")
        if row.value is not None:
            assert metric.low <= row.value <= metric.high
        if row.ci_low is not None:
            assert row.ci_low <= row.value <= row.ci_high and row.ci_kind == "nodes"


def test_planted_leak_is_seen_and_the_twin_knows_nothing(one):
    audit = one[3]
    seen = audit.find(metric="auc", attribute="city", attacker="worst", exposure="seen")
    unseen = audit.find(metric="auc", attribute="city", attacker="linear", exposure="unseen")
    assert seen.value > 0.95 and abs(unseen.value - 0.5) < 0.2
    assert abs(seen.floor_random - 0.5) < 0.2 and seen.floor_majority == 0.5
    assert seen.note.startswith("worst attacker: ") and "a remark" in seen.note
    assert not audit.select(metric="auc", attribute="rare", exposure="unseen")  # not treated
    assert {r.exposure for r in audit.select(metric="dp")} == {"seen"}


def test_micro_f1_has_its_floors_and_its_as_coded_variant(one):
    graph, _, _, audit, _ = one
    row = audit.find(metric="micro_f1", attribute="city", attacker="linear", variant="standard", exposure="seen")
    assert row.n == round(0.2 * N) and 0.4 < row.floor_majority < 0.65 and 0.3 < row.floor_random < 0.7
    coded = audit.find(metric="micro_f1", attribute="city", variant="as-coded")
    assert coded.n == N - 150 and coded.exposure == "seen"
    blank = audit.find(metric="micro_f1", attribute="rare", variant="as-coded")
    assert blank.n == N - 150  # a missing value is a class there
    assert graph.defaults.as_coded_rows == 150


def test_an_attribute_nobody_knows_is_insufficient_everywhere(one):
    rows = one[3].select(attribute="blank", variant="standard") + one[3].select(attribute="blank", metric="dp")
    assert len(rows) == 33
    for row in rows:
        assert row.value is None and row.evidence == "insufficient" and row.floor_random is None and row.note


def test_a_group_of_one_is_listed_and_does_not_count(one):
    row = one[3].find(metric="dp", variant=None, attribute="rare")
    alone = next(c for c in row.cells if c.name == "c-c")
    assert alone.n == 0 and alone.value is None and alone.excluded and not alone.withheld
    assert len(row.cells) == 6 and "1 of 6 cells with under 100 pairs left out" in row.note and "highest" in row.note
    counted = [c for c in row.cells if not c.excluded]
    assert row.value == pytest.approx(max(c.value for c in counted) - min(c.value for c in counted))
    assert row.n == sum(c.n for c in counted)


def test_a_release_says_nothing_of_a_group_of_one():
    graph, split, z = town()
    audit = audit_embedding(z, graph, split, attackers=["linear"], crossings=["rare+city"], disclosure=Release())
    exact = audit_embedding(z, graph, split, attackers=["linear"])
    remark = "12 people are left out: groups of under 12, and others that hide how many"
    rows = audit.select(attribute="rare")
    assert {r.metric for r in rows} >= {"auc", "micro_f1", "ndcg_gap", "dp", "eo"}
    for row in rows:
        assert row.note.endswith(remark) and not {"c"} & {x for c in row.cells for x in (c.a, c.b)}, row
    a, b = np.bincount(graph.attribute("rare").codes + 1, minlength=3)[1:3].tolist()
    whole = audit.find(metric="dp", variant=None, attribute="rare")
    assert [c.n for c in whole.cells] == [(a - 11) * (a - 12) // 2, (a - 11) * b, b * (b - 1) // 2]
    f1 = audit.find(metric="micro_f1", attribute="rare", attacker="linear")
    # a fifth of those who stay in each group
    assert f1.n == (a - 11) // 5 + b // 5
    for name in ("city", "blank"):
        # small deciles of degree are joined
        told, same = ([r for r in x.select(attribute=name) if r.variant != "degree"] for x in (audit, exact))
        assert [(r.metric, r.variant, r.n, r.note) for r in told] == [(r.metric, r.variant, r.n, r.note) for r in same]
        # pairs are summed in another order
        assert [r.value for r in told] == [r.value and pytest.approx(r.value, rel=1e-6) for r in same]
    assert all("c & " not in (r.note or "") for r in audit.select(attribute="rare+city"))


def test_bias_free_with_unit_weights_is_plain_ndcg(one):
    audit = one[3]
    for exposure in ("seen", "unseen"):
        plain = audit.find(metric="ndcg_at_10", variant="held-out", exposure=exposure)
        free = audit.find(metric="ndcg_at_10_bias_free", attribute="city", exposure=exposure)
        assert free.value == pytest.approx(plain.value) and free.floor_random == pytest.approx(plain.floor_random)
    coded = audit.find(metric="ndcg_at_10", variant="as-coded")
    assert "training saw" in coded.note


def test_bpr_is_said(one):
    rows = one[3].select(metric="dp") + one[3].select(metric="eo")
    # ranks need none, and what is calibrated has one
    assert all(("no calibration" in r.note) == (r.variant not in ("relative", "calibrated", "top-10")) for r in rows)


def test_floors_are_reused(one):
    graph, split, z, _, floors = one
    assert json.loads(json.dumps(floors)) == floors and all(graph.fingerprint in key for key in floors)
    marked = {key: dict.fromkeys(value, 0.123) for key, value in floors.items()}
    again = audit_embedding(z, graph, split, attributes=["city"], attackers=["linear"], floors=marked)
    assert again.find(metric="auc", attribute="city", attacker="linear").floor_random == 0.123
    assert {r.exposure for r in again} == {None}


def test_json_round_trip(one):
    audit = one[3]
    text = json.dumps(audit.to_json(), allow_nan=False)
    assert Audit.from_json(json.loads(text)) == audit
    assert Audit((Row("auc", value=float("nan")),)).to_json()[0]["value"] is None
    frame = audit.frame()
    assert list(frame.columns) == COLUMNS and len(frame) == len(audit)


def test_same_input_same_audit(one):
    graph, split, z, _, floors = one
    kwargs = {"attributes": ["city"], "attackers": ["linear"], "floors": floors}
    assert audit_embedding(z, graph, split, **kwargs) == audit_embedding(z, graph, split, **kwargs)


def test_bipartite_is_about_users():
    graph, split, z = town(bipartite=True)
    told = []
    audit = audit_embedding(
        z, graph, split, attributes=["city"], attackers=["linear"], progress=lambda *p: told.append(p)
    )
    assert audit.find(metric="auc", attacker="linear").n == round(0.2 * N / 2)
    dp = audit.find(metric="dp", variant=None)
    assert [(c.a, c.b) for c in dp.cells] == [("a", None), ("b", None)]
    assert dp.n == (N // 2) ** 2
    assert audit.find(metric="ndcg_at_10").variant == "held-out"  # no as-coded form
    shares = [share for _, share in told]
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_without_a_split():
    graph, _, z = town()
    audit = audit_embedding(z, graph, None, attributes=["city"], attackers=["linear"])
    assert audit.find(metric="ndcg_at_10", variant="held-out").evidence == "insufficient"
    leading, raw = ["calibrated", "top-10"], ["all-edges", "ratio", "weighted-sd", "worst-vs-overall"]
    assert [r.variant for r in audit.select(metric="eo")] == leading + raw


def test_missing_values_as_a_level_are_a_group():
    graph, split, z = town()
    level = audit_embedding(z, graph, split, attributes=["rare"], attackers=["linear"], unknown={"rare": "level"})
    assert len(level.find(metric="dp", variant=None).cells) == 10
    assert "unknown" in {c.b for c in level.find(metric="dp", variant=None).cells}
    excluded = audit_embedding(z, graph, split, attributes=["rare"], attackers=["linear"], unknown="exclude")
    assert len(excluded.find(metric="dp", variant=None).cells) == 6
    assert level.find(metric="auc", attacker="linear").n > excluded.find(metric="auc", attacker="linear").n


def test_what_is_refused():
    graph, split, z = town()
    with pytest.raises(ConfigError, match=r"shape \(3, 4\); town needs \(240, d\)"):
        audit_embedding(z[:3], graph, split)
    broken = z.copy()
    broken[7] = np.nan
    with pytest.raises(ConfigError, match="1 rows that are not finite numbers, first node 7"):
        audit_embedding(broken, graph, split)
    with pytest.raises(ConfigError, match="unknown attacker 'tree'"):
        audit_embedding(z, graph, split, attackers=["tree"])
    with pytest.raises(GraphError, match="unknown attribute 'cty'"):
        audit_embedding(z, graph, split, attributes=["cty"])
    with pytest.raises(ConfigError, match="policy for missing values"):
        audit_embedding(z, graph, split, unknown="drop")
    with pytest.raises(ConfigError, match="twin"):
        audit_embedding(z, graph, split, twin=z)
    with pytest.raises(ConfigError, match=r"bias_free\['city'\] has shape \(2,\)"):
        audit_embedding(z, graph, split, bias_free={"city": BiasFree(np.ones(2, np.float32))})
    item = Attribute("genre", np.zeros(N, np.int64), ("a",), side="items")
    with pytest.raises(ConfigError, match="an attribute of items"):
        audit_embedding(z, AttributedGraph("g", N, graph.edges, (item,)), split, attributes=["genre"])


def test_find_and_select():
    audit = Audit((Row("auc", "x"), Row("auc", "y")))
    assert audit.find(attribute="x").attribute == "x" and len(audit.select(metric="auc")) == 2
    with pytest.raises(ConfigError, match="2 rows"):
        audit.find(metric="auc")
    with pytest.raises(ConfigError, match="no field 'metrik'"):
        audit.select(metrik="auc")


def test_torch_is_never_imported():
    code = "import sys, uge_core.audit; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda z: z * 1e30, "allowed: 1e\\+18; scale it down first"),
        (lambda z: np.where(np.arange(N)[:, None] == 3, np.nan, z), "1 rows that are not finite numbers, first node 3"),
        (lambda z: z.astype(complex), "real numbers are needed"),
        (lambda z: z.astype(str), "real numbers are needed"),
    ],
)
def test_numbers_no_score_can_be_made_of_are_refused(spoil, says):
    graph, split, z = town()
    with pytest.raises(ConfigError, match=says):
        audit_embedding(spoil(z), graph, split)


def test_a_list_with_nothing_to_rank_against_does_not_count():
    n = 40
    full = AttributedGraph(
        "full", n, np.stack(np.triu_indices(n, 1)).astype(np.int64), (attribute("city", np.arange(n) % 2),)
    )
    z = np.random.default_rng(0).standard_normal((n, 4)).astype(np.float32)
    row = audit_embedding(z, full, split_links(full)).find(metric="ndcg_at_10", variant="held-out")
    assert row.value is None and row.evidence == "insufficient" and row.n == 0 and "among strangers" in row.note


def test_what_training_did_not_read_is_not_called_seen():
    graph, split, z = town()
    audit = audit_embedding(z, graph, split, read=["city"], attackers=("linear",))
    exposure = {r.attribute: r.exposure for r in audit.select(metric="auc", attacker="linear")}
    assert exposure == {"city": "seen", "rare": None, "blank": None}
    assert audit.find(metric="balanced_accuracy", attribute="city", attacker="worst").value is not None
