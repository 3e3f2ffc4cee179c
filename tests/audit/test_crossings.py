"""Crossings of two attributes: classes, what is left out, and their rows."""

import numpy as np
import pytest
from strategies import attribute

from uge_core.audit import audit_embedding
from uge_core.audit.crossing import cross
from uge_core.errors import ConfigError, GraphError
from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN, Attribute, AttributedGraph, simple_edges

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


def test_classes_by_hand():
    a = attribute("a", [0] * 12 + [1] * 14 + [UNKNOWN] * 11 + [NOT_APPLICABLE])
    b = attribute("b", [0] * 10 + [1] * 2 + [1] * 13 + [UNKNOWN] + [0] * 11 + [NOT_APPLICABLE])
    both, note = cross(a, b, {"a": "exclude", "b": "exclude"})
    assert both.name == "a+b" and both.labels == ("a & a", "b & b")
    assert both.codes.tolist() == [0] * 10 + [UNKNOWN] * 2 + [1] * 13 + [UNKNOWN] * 12 + [NOT_APPLICABLE]
    assert note == "1 combination of fewer than ten people is left out"
    level, note = cross(a, b, {"a": "level", "b": "exclude"})
    assert level.labels == ("a & a", "b & b", "unknown & a") and level.sizes.tolist() == [10, 13, 11]
    none, note = cross(a, attribute("c", [0] * 38), {"a": "exclude", "c": "exclude"})
    assert none.labels == ("a & a", "b & a") and note is None


@pytest.mark.parametrize(
    ("few", "says"), [([9], "1 combination of"), ([4, 5], "2 combinations of"), ([4, 6], "2 combinations of")]
)
def test_the_size_of_what_is_left_out_points_at_nobody(few, says):
    b = attribute("b", np.repeat(np.arange(1 + len(few)), [20, *few]))
    _, note = cross(attribute("a", [0] * len(b.codes)), b, {"a": "exclude", "b": "exclude"})
    assert note.startswith(says) and ("10 people together" in note) == (sum(few) == 10)
    assert not any(f"{n} people" in note for n in (9, *few))


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
    assert "combinations of fewer than ten people are left out" in note and "left out," not in note
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
