"""The permutation test: its statistic by loops, its p-value under no difference, and what it cannot see."""

from dataclasses import replace

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import attribute

from uge_core.audit import audit_embedding
from uge_core.audit.permutation import pillai_test
from uge_core.graph.graph import AttributedGraph, simple_edges
from uge_core.graph.split import probe_split


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(2, 5))
def test_statistic_against_loops(seed, dim, num):
    rng = np.random.default_rng(seed)
    z = (rng.normal(size=(40, dim)) @ rng.normal(size=(dim, dim)) + 5.0).astype(np.float32)
    y = rng.integers(0, num, 40)
    y[:2] = 0, 1
    found = pillai_test(z, y, shuffles=3)
    assert found.statistic == pytest.approx(reference.pillai_trace(z, y), rel=1e-3, abs=1e-4)
    assert found.p_value in (0.25, 0.5, 0.75, 1.0) and found.shuffles == 3


def test_nodes_that_take_no_part_and_directions_without_spread_change_nothing():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(100, 3)).astype(np.float32), rng.integers(0, 3, 100)
    plain = pillai_test(z, y, shuffles=19)
    flat = np.concatenate([z, z[:, :1] * 2 - z[:, 1:2], np.full((100, 1), 7.0)], axis=1).astype(np.float32)
    padded = np.concatenate([flat, rng.normal(size=(50, 5))]).astype(np.float32)
    more = pillai_test(padded, np.concatenate([y, np.full(50, -1)]), shuffles=19)
    assert more.statistic == pytest.approx(plain.statistic, rel=1e-4) and more.p_value == plain.p_value


def test_nothing_to_test():
    z = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    assert pillai_test(z, np.zeros(20, int)) is None
    assert pillai_test(z, np.full(20, -1)) is None
    assert pillai_test(np.ones((20, 2), np.float32), np.arange(20) % 2) is None


def test_a_shift_is_found_and_a_spread_is_not():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    shifted = (rng.normal(size=(400, 3)) + 0.5 * y[:, None]).astype(np.float32)
    assert pillai_test(shifted, y).p_value == 1 / 200
    spread = (rng.normal(size=(400, 3)) * np.where(y, 3.0, 1.0)[:, None]).astype(np.float32)
    assert pillai_test(spread, y).p_value > 0.01


def test_shuffles_stay_within_groups():
    rng = np.random.default_rng(2)
    group = rng.integers(0, 4, 300)
    z = (rng.normal(size=(300, 2)) + 2.0 * np.eye(4)[group][:, :2]).astype(np.float32)
    # The class says what the group says, and nothing more: no shuffle within a group changes it.
    assert pillai_test(z, group // 2, within=group).p_value == 1.0
    assert pillai_test(z, group // 2).p_value == 1 / 200
    noisy = np.where(rng.random(300) < 0.8, group // 2, rng.integers(0, 2, 300))
    assert pillai_test(z, noisy, within=group).p_value > 0.02 and pillai_test(z, noisy).p_value == 1 / 200
    z[:, 0] += 1.0 * noisy
    assert pillai_test(z, noisy, within=group).p_value == 1 / 200


def p_values(trials, shuffles, *, within):
    found = []
    for seed in range(trials):
        rng = np.random.default_rng([seed, 77])
        group = rng.integers(0, 3, 60)
        y = np.where(rng.random(60) < 0.5, group, rng.integers(0, 3, 60)) if within else rng.integers(0, 3, 60)
        z = rng.standard_t(3, size=(60, 3)) + (2.0 * np.eye(3)[group] if within else 0.0)
        found.append(
            pillai_test(z.astype(np.float32), y, within=group if within else None, shuffles=shuffles, seed=seed).p_value
        )
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("within", [False, True])
def test_no_difference_is_found_as_seldom_as_it_says(within):
    found = p_values(200, 99, within=within)
    for alpha in (0.01, 0.05, 0.1):
        assert (found <= alpha).mean() <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / 200)
    assert abs(found.mean() - 0.5) < 0.06


@pytest.mark.acceptance
@pytest.mark.parametrize("within", [False, True])
def test_no_difference_is_found_as_seldom_as_it_says_in_2000_trials(within):
    found = p_values(2_000, 199, within=within)
    for alpha in (0.01, 0.05, 0.1):
        assert abs((found <= alpha).mean() - alpha) <= 3 * np.sqrt(alpha * (1 - alpha) / 2_000)


def town(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    edges, _, _ = simple_edges(*rng.integers(0, n, (2, 4 * n)), n)
    graph = AttributedGraph("g", n, edges, (attribute("city", y),))
    return graph, (rng.normal(size=(n, 3)) + 1.5 * y[:, None]).astype(np.float32), y


def test_the_worst_auc_row_carries_the_p_value():
    graph, z, y = town()
    (row,) = [r for r in audit_embedding(z, graph, None, attackers=["linear"]) if r.attacker and r.p_value is not None]
    assert (row.metric, row.attacker, row.p_value) == ("auc", "worst", pillai_test(z, y).p_value)
    assert "Pillai's trace, 300 nodes, B = 199): p = 0.005" in row.note and "one-sided" not in row.note


def test_what_read_the_attribute_is_no_evidence_of_absence_and_the_twin_counts_hidden_nodes_alone():
    graph, z, y = town()
    twin = np.random.default_rng(3).normal(size=z.shape).astype(np.float32)
    options = {"treated": ["city"], "read": ["city"], "twin": twin, "attackers": ["linear"]}
    audit = audit_embedding(z, graph, None, **options)
    seen, unseen = (audit.find(metric="auc", attacker="worst", exposure=e) for e in ("seen", "unseen"))
    assert "one-sided evidence of leakage, never of its absence" in seen.note and "one-sided" not in unseen.note
    hidden = np.full(300, -1)
    tested = probe_split(graph.attribute("city")).test
    hidden[tested] = y[tested]
    assert unseen.p_value == pillai_test(twin, hidden).p_value and f"{len(tested)} nodes" in unseen.note


def test_an_audit_shuffles_within_the_attributes_that_were_not_treated():
    rng = np.random.default_rng(4)
    graph, _, y = town(600)
    district = np.where(rng.random(600) < 0.9, y, 1 - y)
    shoe = rng.integers(0, 50, 600)  # 100 groups with the district, of six people each
    graph = replace(graph, attributes=(*graph.attributes, attribute("district", district), attribute("shoe", shoe)))
    z = (rng.normal(size=(600, 2)) + 3.0 * district[:, None]).astype(np.float32)  # knows the district alone
    row = audit_embedding(z, graph, None, attributes=["city"], attackers=["linear"]).find(
        metric="auc", attacker="worst"
    )
    assert "shuffled within district)" in row.note and "shoe" not in row.note
    assert row.p_value == pillai_test(z, y, within=district).p_value > 0.01
    assert pillai_test(z, y).p_value == 1 / 200


def test_too_few_nodes_have_no_p_value():
    graph, z, _ = town(40)
    row = audit_embedding(z, graph, None, attackers=["linear"]).find(metric="auc", attacker="worst")
    assert row.evidence == "insufficient" and row.p_value is None
