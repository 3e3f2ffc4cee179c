"""Crossings of two attributes: classes, what is left out, and their rows."""

import re

import numpy as np
import pytest
from strategies import attribute

from uge_core.audit import audit_embedding
from uge_core.audit.crossing import cross
from uge_core.audit.disclosure import Everybody
from uge_core.errors import ConfigError, GraphError
from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN, Attribute, AttributedGraph, simple_edges
from uge_core.runs.disclosure import Release

N = 400


def town(**more):
    rng = np.random.default_rng(0)
    region, gender = rng.integers(0, 2, (2, N))
    # What is shared by the two is neither's: each alone is unreadable.
    z = (rng.normal(size=(N, 3)) + 3.0 * (region ^ gender)[:, None]).astype(np.float32)
    made = (
        Attribute("region", region, ("south", "north")),
        Attribute("gender", gender, ("male", "female")),
        attribute("age", rng.integers(0, 3, N)),
    )
    edges, _, _ = simple_edges(*rng.integers(0, N, (2, 4 * N)), N)
    return AttributedGraph("town", N, edges, made, **more), z


def crossed(a, b, policies, rule):
    n = len(a.codes)
    return cross(a, b, AttributedGraph("g", n, np.stack([np.arange(n - 1), np.arange(1, n)]), (a, b)), policies, rule)


def test_classes_by_hand():
    a = attribute("a", [0] * 12 + [1] * 14 + [UNKNOWN] * 11 + [NOT_APPLICABLE])
    b = attribute("b", [0] * 10 + [1] * 2 + [1] * 13 + [UNKNOWN] + [0] * 11 + [NOT_APPLICABLE])
    both, note = crossed(a, b, {"a": "exclude", "b": "exclude"}, Everybody())
    assert both.name == "a+b" and both.labels == ("a & a", "b & b")
    assert both.codes.tolist() == [0] * 10 + [UNKNOWN] * 2 + [1] * 13 + [UNKNOWN] * 12 + [NOT_APPLICABLE]
    assert note == "1 combination of few people is left out"
    level, note = crossed(a, b, {"a": "level", "b": "exclude"}, Everybody())
    assert level.labels == ("a & a", "b & b", "unknown & a") and level.sizes.tolist() == [10, 13, 11]
    none, note = crossed(a, attribute("c", [0] * 38), {"a": "exclude", "c": "exclude"}, Everybody())
    assert none.labels == ("a & a", "b & a") and note is None


@pytest.mark.parametrize("rule", [Everybody(), Release()], ids=["exact", "release"])
@pytest.mark.parametrize("few", [[9], [4, 5], [4, 6]])
def test_the_size_of_what_is_left_out_points_at_nobody(few, rule):
    a = attribute("a", np.repeat([0, 1], [30 + sum(few), 40]))
    b = attribute("b", np.concatenate([np.repeat(np.arange(1 + len(few)), [30, *few]), np.repeat([0], 40)]))
    _, note = crossed(a, b, {"a": "exclude", "b": "exclude"}, rule)
    assert re.sub(r"^\d", "", note) in (
        " combination of few people is left out",
        " combinations of few people are left out",
    )


@pytest.mark.parametrize(
    "table",
    [
        [[40, 30, 5], [30, 60, 50]],
        [[3, 20], [20, 30]],
        [[2, 14, 30], [13, 16, 50]],
        [[1, 1, 40], [13, 22, 60]],
        [[11, 11, 11], [12, 14, 60]],
    ],
)
def test_sums_over_rows_and_columns_pin_no_small_combination(table):
    """Of all tables with these sums and the numbers that are told, small numbers are 1 in some and 11 in others."""
    size = np.array(table)
    first, second = (np.repeat(part.ravel(), size.ravel()) for part in np.indices(size.shape))
    both, note = crossed(attribute("a", first), attribute("b", second), {"a": "exclude", "b": "exclude"}, Release())
    told = {label: int((both.codes == i).sum()) for i, label in enumerate(both.labels)}
    hidden = np.array([[f"{x} & {y}" not in told for y in "abc"[: size.shape[1]]] for x in "abc"[: size.shape[0]]])
    assert all(told[f"{'abc'[i]} & {'abc'[j]}"] == size[i, j] for i, j in np.argwhere(~hidden))
    assert hidden[size < 12].all() and note.startswith(f"{hidden.sum()} combinations")
    rows, columns = (np.where(hidden, size, 0).sum(axis=axis) for axis in (1, 0))
    possible = np.array(list(fillings(hidden, rows, columns)))
    for i, j in np.argwhere(size < 12):
        assert possible[:, i, j].min() == 1 and possible[:, i, j].max() >= 11


def fillings(hidden, rows, columns):
    """Every table of numbers from 1 at hidden places, with these sums."""
    places = np.argwhere(hidden)

    def fill(table, k, rows, columns):
        if k == len(places):
            if not rows.any() and not columns.any():
                yield table.copy()
            return
        i, j = places[k]
        forced = [
            left
            for left, axis in ((rows[i], 0), (columns[j], 1))
            if not any(place[axis] == places[k][axis] for place in places[k + 1 :])
        ]
        most = min(rows[i], columns[j])
        for n in [x for x in forced[:1] if x <= most] if forced else range(1, most + 1):
            if n:
                table[i, j] = n
                left, under = rows.copy(), columns.copy()
                left[i] -= n
                under[j] -= n
                yield from fill(table, k + 1, left, under)
        table[i, j] = 0

    yield from fill(np.zeros(hidden.shape, dtype=int), 0, rows, columns)


@pytest.mark.slow
def test_what_two_attributes_leak_together():
    graph, z = town()
    audit = audit_embedding(z, graph, None, attackers=["trees"], crossings=["Region + gender"])
    assert {r.attribute for r in audit.select(attacker="worst")} == {"region", "gender", "age", "gender+region"}
    auc = {
        a: audit.find(metric="auc", attacker="worst", attribute=a).value for a in ("region", "gender", "gender+region")
    }
    assert max(abs(auc["region"] - 0.5), abs(auc["gender"] - 0.5)) < 0.12 and auc["gender+region"] > 0.65
    assert audit.find(metric="usable_bits", attacker="worst", attribute="gender+region").ci_low > 0.5
    assert {r.metric for r in audit.select(attribute="gender+region")} == {
        "auc",
        "micro_f1",
        "balanced_accuracy",
        "usable_bits",
    }


@pytest.mark.slow
def test_all_pairs_of_those_audited():
    graph, z = town()
    three = audit_embedding(z, graph, None, attackers=["linear"], crossings=True)
    found = {r.attribute for r in three.select(attacker="linear")}
    assert found == {"region", "gender", "age", "gender+region", "age+gender", "age+region"}
    one = audit_embedding(z, graph, None, attributes=["region", "age"], attackers=["linear"], crossings=True)
    assert {r.attribute for r in one.select(attacker="linear")} == {"region", "age", "age+region"}
    other = audit_embedding(z, graph, None, attributes=["age"], attackers=["linear"], crossings=["gender+region"])
    assert {r.attribute for r in other.select(attacker="linear")} == {"age", "gender+region"}


def test_exposure_is_that_of_either_and_the_twin_has_no_crossings():
    graph, z = town()
    options = {"attackers": ["linear"], "treated": ["region"], "read": ["region"], "twin": z, "crossings": True}
    audit = audit_embedding(z, graph, None, **options)
    exposure = {r.attribute: r.exposure for r in audit.select(attacker="linear", metric="auc") if "+" in r.attribute}
    assert exposure == {"gender+region": "seen", "age+region": "seen", "age+gender": None}


def test_what_is_left_out_is_said():
    graph, z = town()
    rare = attribute("rare", [0] * 5 + [1] * (N - 5))
    graph = AttributedGraph("town", N, graph.edges, (*graph.audited, rare))
    audit = audit_embedding(z, graph, None, attackers=["linear"], crossings=["rare+region"])
    note = audit.find(metric="micro_f1", attribute="rare+region", attacker="worst").note
    assert "2 combinations of few people are left out" in note
    assert audit.find(metric="micro_f1", attribute="rare", attacker="worst").n == N // 5


@pytest.mark.parametrize("asked", ["region", "region+region", "region+gender+age", "region+Region"])
def test_not_two_attributes(asked):
    graph, z = town()
    with pytest.raises(ConfigError, match=r"is not two attributes of the same nodes; write them as region\+gender"):
        audit_embedding(z, graph, None, attackers=["linear"], crossings=[asked])


def test_unknown_names_and_items_are_refused():
    graph, z = town()
    with pytest.raises(GraphError, match="unknown attribute 'regin'"):
        audit_embedding(z, graph, None, attackers=["linear"], crossings=["regin+gender"])
