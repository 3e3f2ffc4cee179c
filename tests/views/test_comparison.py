"""What two runs side by side are said to differ in, on hand-made rows and records."""

from pathlib import Path
from typing import Any

import pytest
from test_overview_leakage import check, leak, matched, row, usual

from uge_core.explore.comparison import paired_path
from uge_core.files import sealed
from uge_core.runs.store import RunStore
from uge_core.views.comparison import HIGHER, LOWER, NO_BITS, OTHERS, SAME, comparison_view

CONFIG = {"lambda": None, "backbone": "gcn", "seed": 0, "split_seed": 0, "epochs": 1}
DATA = {"name": "town", "fingerprint": "f", "num_nodes": 9, "num_edges": 9, "source": {"spec": "x"}}


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store")


def add(store: RunStore, run_id: str, method: str, rows: list[dict[str, Any]]) -> None:
    sensitive = [] if method == "none" else ["city"]
    store.begin(run_id, CONFIG | {"method": method, "sensitive": sensitive}, DATA)
    store.save_audit(run_id, {"schema": "uge-audit/1", "rows": [{"floor_degree": None} | r for r in rows]})


def gap(value: float, variant: str | None) -> dict[str, Any]:
    ends = {"ci_low": value - 0.01, "ci_high": value + 0.01}
    return row(metric="dp", attribute="city", variant=variant, exposure="seen", value=value, **ends)


def paired(store: RunStore, rows: list[dict[str, Any]], **record: Any) -> None:
    path = paired_path(store, "a1", "b2")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sealed({"finished": [None, None], "rows": rows} | record))


def difference(metric: str, a: float, b: float, p: float, **given: Any) -> dict[str, Any]:
    base = {"metric": metric, "attribute": "city", "attacker": None, "variant": "held-out", "exposure": "unseen"}
    measured = {"a": a, "b": b, "value": a - b, "ci_low": a - b - 0.01, "ci_high": a - b + 0.01}
    return base | measured | {"p_value": p, "p_holm": p, "evidence": "ok", "n": 100, "note": None} | given


def test_matched_link_quality_is_told_before_the_usual(store: RunStore) -> None:
    add(store, "a1", "none", [leak(0.9, None), usual(0.5), matched(0.30), check(1.0)])
    add(store, "b2", "uge-w", [leak(0.7, "unseen"), usual(0.2), matched(0.25, "unseen"), check(1.0)])
    view = comparison_view(store, "a1", "b2")
    told = next(i for i, s in enumerate(view.sentences) if s.startswith("Link quality"))
    assert view.sentences[told] == (
        "Link quality, NDCG@10 among strangers of the friend's own city group: 0.300 with A, 0.250 with B; the training "
        "degree alone gives 0.200. B is lower."
    )
    assert view.sentences[told + 1] == (
        "The usual NDCG@10, which also pays for reading city: 0.500 with A, 0.200 with B. B is lower."
    )
    assert view.table["Measure"].tolist() == ["AUC", "matched NDCG@10", "NDCG@10"]
    assert view.table.set_index("Measure")["Degree"]["matched NDCG@10"] == 0.2


def test_gaps_that_no_scaling_changes_lead_and_raw_ones_are_called_so(store: RunStore) -> None:
    both = [gap(0.2, None), gap(0.3, "top-10"), gap(0.1, "calibrated"), gap(0.4, "ratio")]
    for run_id, method in (("a1", "none"), ("b2", "uge-w")):
        add(store, run_id, method, both)
    view = comparison_view(store, "a1", "b2")
    assert view.table["Measure"].tolist() == ["DP gap, calibrated", "DP gap, top-10"]
    assert set(view.full["Measure"]) == {"DP gap, calibrated", "DP gap, top-10", "DP gap, raw", "DP gap, ratio"}
    for run_id, method in (("a1", "none"), ("b2", "uge-w")):
        add(store, run_id, method, [gap(0.2, None), gap(0.4, "ratio")])
    assert comparison_view(store, "a1", "b2").table["Measure"].tolist() == ["DP gap, raw"]


def test_a_run_that_is_not_usable_is_said_first(store: RunStore) -> None:
    add(store, "a1", "none", [leak(0.9, None), check(1.0)])
    add(store, "b2", "uge-w", [leak(0.5, "unseen"), check(0.0, "not usable: all vectors are equal")])
    first = comparison_view(store, "a1", "b2").sentences[0]
    assert first.startswith("B is not usable: all vectors are equal. ") and first.endswith("is no success.")


def test_pairs_of_matched_link_quality_give_the_verdict(store: RunStore) -> None:
    add(store, "a1", "none", [matched(0.30), check(1.0)])
    add(store, "b2", "uge-w", [matched(0.305, "unseen"), check(1.0)])
    assert comparison_view(store, "a1", "b2").table["Shows"].tolist() == [SAME]
    paired(store, [difference("ndcg_at_10_matched", 0.30, 0.305, 0.01)], audit_version=3)
    view = comparison_view(store, "a1", "b2")
    assert view.paired and view.table["Shows"].tolist() == [HIGHER]


def test_strongest_attackers_of_other_sets_are_not_compared(store: RunStore) -> None:
    add(store, "a1", "none", [leak(0.9, None)])
    note = "worst attacker: links, of linear, links; the interval holds for the choice of the largest"
    add(store, "b2", "uge-w", [leak(0.6, "unseen", note=note), check(1.0)])
    shown = comparison_view(store, "a1", "b2").table
    assert shown["Shows"].tolist() == [OTHERS] and shown["B - A"].isna().all()
    add(store, "a1", "none", [leak(0.9, None, note=note), check(1.0)])
    assert comparison_view(store, "a1", "b2").table["Shows"].tolist() == [LOWER]


def test_pairs_of_an_earlier_version_are_not_held_beside_audits_of_this_one(store: RunStore) -> None:
    for run_id, method in (("a1", "none"), ("b2", "uge-w")):
        add(store, run_id, method, [matched(0.3), check(1.0)])
    paired(store, [])
    assert not comparison_view(store, "a1", "b2").paired
    paired(store, [], audit_version=3)
    assert comparison_view(store, "a1", "b2").paired


def test_bits_of_a_badly_calibrated_attacker_are_no_fall(store: RunStore) -> None:
    bits = {"metric": "usable_bits", "attribute": "city", "attacker": "worst"}
    add(store, "a1", "none", [row(value=0.133, ci_low=0.1, ci_high=0.16, **bits)])
    add(store, "b2", "none", [row(value=-0.0003, ci_low=-0.01, ci_high=0.01, **bits)])
    assert comparison_view(store, "a1", "b2").full["Shows"].tolist() == [NO_BITS]
