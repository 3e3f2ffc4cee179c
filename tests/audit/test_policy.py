"""Guardrails: what each rule says of its row, which row that is, and what a policy file may not hold."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from uge_core.audit import policy
from uge_core.audit.attacker_order import DEFAULT_ATTACKERS, choice
from uge_core.audit.base import Row
from uge_core.audit.policy import FAIL, NO_ROW, NOT_ENOUGH, PASS, Check, Verdict
from uge_core.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


def row(
    metric: str, attribute: str | None = None, *, over: tuple[float, float] | None = None, **values: Any
) -> dict[str, Any]:
    """A row as a record has it."""
    if metric in ("auc", "micro_f1"):
        values = {"attacker": "worst", "variant": "standard", "exposure": "unseen", "floor_random": 0.5} | values
        values = {"note": choice("trees", list(DEFAULT_ATTACKERS))} | values
    low, high = over or (None, None)
    given = {"n": 400, "ci_low": low, "ci_high": high, "ci_kind": "nodes" if over else None} | values
    return asdict(Row(metric, attribute, **given)) | {"cells": []}


ROWS = [
    row("auc", "region", value=0.83, over=(0.82, 0.84)),
    row("auc", "region", value=0.9, over=(0.89, 0.91), exposure="seen"),
    row("auc", "region", value=0.55, over=(0.54, 0.56), attacker="linear"),
    row("auc", "age", value=0.58, over=(0.55, 0.61), exposure="seen"),
    row("auc", "no", value=0.3, over=(0.27, 0.34), exposure=None),
    row("auc", "coin", value=0.49, over=(0.4, 0.57), exposure=None, floor_random=0.45),
    row("micro_f1", "region", value=0.7, over=(0.66, 0.74), floor_random=0.6, floor_majority=0.71),
    row("micro_f1", "region", value=0.2, over=(0.1, 0.3), variant="as-coded"),
    row("micro_f1", "rare", value=None, evidence="insufficient", note="fewer than 10 nodes"),
    row("ndcg_at_10", value=0.4, over=(0.38, 0.42), variant="as-coded"),
    row("ndcg_at_10", value=0.3, over=(0.28, 0.33), variant="held-out", floor_random=0.06),
    row("ndcg_at_10_matched", "region", value=0.3, over=(0.28, 0.33), variant="held-out", floor_random=0.06),
    row("ndcg_at_10_matched", "region", value=0.5, over=(0.48, 0.53), variant="uniform", floor_random=0.06),
    row("ndcg_at_10_bias_free", "region+age", value=0.2, over=(0.1, 0.3), variant="planted-truth"),
    row("dp", "region", value=0.05, n=1_000_000, variant="calibrated"),
    row("dp", "region", value=0.0, over=(0.0, 0.0), n=1_000_000, variant=None),
    row("dp", "old", value=0.0, over=(0.0, 0.0), n=1_000_000, variant=None),
    row("eo", "region", value=0.15, over=(0.05, 0.2), n=40, variant="calibrated"),
    row("eo", "region", value=0.01, over=(0.0, 0.02), n=400, variant="held-out"),
]


def check(tmp_path: Path, rules: Any, rows: list[dict[str, Any]] = ROWS) -> Verdict:
    path = tmp_path / "policy.yaml"
    path.write_text(rules if isinstance(rules, str) else json.dumps(rules), encoding="utf-8")
    return policy.read(path).check(rows)


def fit(note: str | None = None) -> dict[str, Any]:
    """The row of an embedding that is usable."""
    return row("usable", None, value=1.0, attacker=None, variant=None, note=note)


def one(tmp_path: Path, **rule: Any) -> Check:
    """A rule on an audit of this version."""
    found = check(tmp_path, [rule], [*ROWS, fit()])
    assert len(found.checks) == 1
    assert found.verdict == (found.checks[0].verdict if found.checks[0].verdict != NO_ROW else NOT_ENOUGH)
    return found.checks[0]


AUC = {"metric": "auc", "attribute": "region"}
F1 = {"metric": "micro_f1", "attribute": "region"}


@pytest.mark.parametrize(
    ("rule", "verdict", "said"),
    [
        (AUC | {"direction": "at_most", "number": 0.6}, FAIL, "whole interval lies above, so it fails"),
        (AUC | {"direction": "at_most", "number": 0.84}, PASS, "whole interval lies on the allowed side"),
        (AUC | {"direction": "at_most", "number": 0.83}, NOT_ENOUGH, "the interval lies across it"),
        (AUC | {"direction": "at_most", "number": 0.82}, NOT_ENOUGH, "the interval lies across it"),
        (AUC | {"direction": "at_most", "number": 0.83, "on": "value"}, PASS, "the value alone is judged"),
        (AUC | {"direction": "at_most", "number": 0.829, "on": "value"}, FAIL, "the value alone is judged"),
        (AUC | {"direction": "at_least", "number": 0.82}, PASS, "whole interval lies on the allowed side"),
        (AUC | {"direction": "at_least", "number": 0.85}, FAIL, "whole interval lies below, so it fails"),
        (AUC | {"direction": "at_least", "number": 0.84}, NOT_ENOUGH, "the interval lies across it"),
        (AUC | {"direction": "at_most", "number": 0.6, "min_n": 400}, FAIL, "n = 400"),
        (AUC | {"direction": "at_most", "number": 0.6, "min_n": 401}, NOT_ENOUGH, "fewer than the 401"),
        (AUC | {"direction": "at_most", "number": 0.6, "max_width": 0.01}, NOT_ENOUGH, "no wider than 0.01"),
        (AUC | {"direction": "at_most", "number": 0.6, "max_width": 0.03}, FAIL, "whole interval"),
        # the worst attacker and unseen values unless another is named
        (AUC | {"direction": "at_most", "number": 0.6, "attacker": "linear"}, PASS, "linear attacker"),
        (AUC | {"direction": "at_most", "number": 0.85, "exposure": "seen"}, FAIL, "values seen by training"),
        ({"metric": "auc", "attribute": "AGE", "direction": "at_most", "number": 0.7}, PASS, "values seen by training"),
        # below .5 an attacker turns the answers round: .3 (.27 to .34) is .7 (.66 to .73)
        ({"metric": "auc", "attribute": "no", "direction": "at_most", "number": 0.6}, FAIL, "0.3 turned round"),
        ({"metric": "auc", "attribute": "no", "direction": "at_most", "number": 0.73}, PASS, "0.66 to 0.73"),
        ({"metric": "auc", "attribute": "coin", "direction": "at_most", "number": 0.6}, PASS, "0.5 to 0.6"),
        ({"metric": "auc", "attribute": "coin", "direction": "at_most", "number": 0.599}, NOT_ENOUGH, "0.5 to 0.6"),
        # .49 is .51, its floor .45 is .55
        (
            {
                "metric": "auc",
                "attribute": "coin",
                "direction": "at_most",
                "number": 0,
                "unit": "above_floor",
                "on": "value",
            },
            PASS,
            "0.51 less the random floor 0.55",
        ),
        # as-coded rows have to be asked for; the higher floor counts
        (F1 | {"direction": "at_most", "number": 0.03, "unit": "above_floor"}, PASS, "less the majority floor 0.71"),
        (F1 | {"direction": "at_most", "number": 0.02, "unit": "above_floor"}, NOT_ENOUGH, "across"),
        (F1 | {"direction": "at_most", "number": 0.3, "variant": "as-coded", "unit": "share"}, PASS, "as-coded"),
        (
            {"metric": "micro_f1", "attribute": "rare", "direction": "at_most", "number": 0.9},
            NOT_ENOUGH,
            "fewer than 10",
        ),
        (
            {"metric": "micro_f1", "attribute": "rare", "direction": "at_most", "number": 1, "on": "value"},
            NOT_ENOUGH,
            "",
        ),
        ({"metric": "ndcg_at_10", "direction": "at_least", "number": 0.2, "unit": "above_floor"}, PASS, "held-out"),
        ({"metric": "ndcg_at_10", "direction": "at_least", "number": 0.35}, FAIL, "held-out"),
        (
            {"metric": "dp", "attribute": "region", "direction": "at_most", "number": 0.1},
            NOT_ENOUGH,
            "without an interval",
        ),
        (
            {"metric": "dp", "attribute": "region", "direction": "at_most", "number": 0.1, "on": "value"},
            PASS,
            "no interval",
        ),
        (
            {
                "metric": "dp",
                "attribute": "region",
                "direction": "at_most",
                "number": 0.1,
                "on": "value",
                "max_width": 0.5,
            },
            NOT_ENOUGH,
            "no wider",
        ),
        (
            {"metric": "dp", "attribute": "region", "direction": "at_most", "number": 0.1, "unit": "above_floor"},
            NOT_ENOUGH,
            "no floor",
        ),
        (
            {"metric": "eo", "attribute": "region", "direction": "at_most", "number": 0.9},
            NOT_ENOUGH,
            "fewer than the 100",
        ),
        # the gaps that depend on how long vectors are have to be asked for
        (
            {"metric": "dp", "attribute": "region", "direction": "at_most", "number": 0.01, "variant": "raw"},
            PASS,
            "of region (raw",
        ),
        (
            {"metric": "eo", "attribute": "region", "direction": "at_most", "number": 0.03, "variant": "Raw"},
            PASS,
            "of region (raw, held-out",
        ),
        (
            {"metric": "eo", "attribute": "shoe", "direction": "at_most", "number": 0.9, "optional": True},
            NO_ROW,
            "optional",
        ),
    ],
)
def test_verdicts(rule: dict[str, Any], verdict: str, said: str, tmp_path: Path) -> None:
    old = rule["attribute"] in ("no", "coin") if "attribute" in rule else False
    found = check(tmp_path, [rule]).checks[0] if old else one(tmp_path, **rule)
    if old and verdict == PASS:  # of an audit that never asked whether the embedding is usable
        assert found.verdict == NOT_ENOUGH and "audit it anew" in found.sentence
    else:
        assert found.verdict == verdict, found.sentence
    assert (
        said in found.sentence and f"{rule['number']:g}" in found.sentence + ("-" if verdict == NO_ROW else "")
    ) or verdict == NO_ROW


@given(
    value=st.floats(0, 1),
    below=st.floats(0, 0.3),
    above=st.floats(0, 0.3),
    number=st.floats(0.5, 1),
    direction=st.sampled_from(["at_most", "at_least"]),
)
def test_the_interval_decides(value: float, below: float, above: float, number: float, direction: str) -> None:
    low, high = max(0.0, value - below), min(1.0, value + above)
    # every AUC the interval allows, turned round where it is below .5
    grid = [low + (high - low) * i / 400 for i in range(401)] + ([0.5] if low <= 0.5 <= high else [])
    allowed = [max(v, 1 - v) <= number if direction == "at_most" else max(v, 1 - v) >= number for v in grid]
    rule = policy.Rule("auc", direction, number, "x", "worst", "standard", "unseen", "auc")
    found = policy._judge(rule, row("auc", "x", value=value, over=(low, high)), turns=True)[0]
    near = min(abs(max(v, 1 - v) - number) for v in (low, high, 0.5)) < 1e-9
    assert near or found == (PASS if all(allowed) else NOT_ENOUGH if any(allowed) else FAIL)


def gated(tmp_path: Path, rule: dict[str, Any], *usable: float | None) -> Check:
    """A rule on an audit that says of the embedding, and of its twin, whether they are usable."""
    rows = [fit(f"because {u}") | {"value": u} for u in usable]
    return check(tmp_path, [rule], ROWS + rows).checks[0]


@pytest.mark.parametrize(
    ("usable", "kept", "broken"),
    [((1.0,), PASS, FAIL), ((0.0,), FAIL, FAIL), ((1.0, 0.0), FAIL, FAIL), ((None,), NOT_ENOUGH, FAIL)],
)
def test_an_embedding_is_judged_usable_before_it_is_judged(usable: Any, kept: str, broken: str, tmp_path: Path) -> None:
    passes, fails = (AUC | {"direction": "at_most", "number": number} for number in (0.84, 0.6))
    found = gated(tmp_path, passes, *usable)
    assert found.verdict == kept and gated(tmp_path, fails, *usable).verdict == broken
    if kept != PASS:
        assert f"because {usable[-1]}" in found.sentence
    raw = {"metric": "dp", "attribute": "region", "direction": "at_most", "number": 0.01, "variant": "raw"}
    assert gated(tmp_path, raw, *usable).verdict == kept
    for on in ("value", "interval"):
        asks = {"metric": "usable", "direction": "at_least", "number": 1, "on": on}
        assert gated(tmp_path, asks, *usable).verdict == kept
    if 0.0 in usable:
        assert gated(tmp_path, {"metric": "usable", "direction": "at_most", "number": 1}, *usable).verdict == FAIL


@pytest.mark.parametrize("among", [["linear"], [], ["knn"], ["graph"], list(DEFAULT_ATTACKERS[1:])])
def test_the_strongest_of_fewer_attackers_passes_nothing(among: list[str], tmp_path: Path) -> None:
    note = choice(among[0], among) if among else None
    rows = [row("auc", "region", value=0.5, over=(0.45, 0.55), note=note), fit()]
    found = check(tmp_path, [AUC | {"direction": "at_most", "number": 0.6}], rows).checks[0]
    assert found.verdict == NOT_ENOUGH and "did not attack" in found.sentence
    strict = check(tmp_path, [AUC | {"direction": "at_least", "number": 0.6}], rows).checks[0]
    assert strict.verdict == FAIL
    named = [AUC | {"direction": "at_most", "number": 0.6, "attacker": "linear"}]
    assert check(tmp_path, named, [rows[0] | {"attacker": "linear"}, fit()]).checks[0].verdict == PASS


def test_link_quality_above_its_floor_is_above_popularity(tmp_path: Path) -> None:
    rule = {"metric": "ndcg_at_10", "direction": "at_least", "number": 0.1, "unit": "above_floor"}
    for floor, verdict in ((0.1, PASS), (0.2, FAIL)):
        rows = [row("ndcg_at_10", value=0.25, over=(0.24, 0.26), variant="held-out", floor_random=0.06), fit()]
        found = check(tmp_path, [rule], [rows[0] | {"floor_degree": floor}, rows[1]]).checks[0]
        assert found.verdict == verdict and "degree floor" in found.sentence


def test_an_auc_of_an_audit_that_learns_the_sign_stands_as_it_is(tmp_path: Path) -> None:
    rule = {"metric": "auc", "attribute": "no", "direction": "at_most", "number": 0.6}
    assert check(tmp_path, [rule]).checks[0].verdict == FAIL
    found = gated(tmp_path, rule, 1.0)
    assert found.verdict == PASS and "turned" not in found.sentence and "0.27 to 0.34" in found.sentence
    floor = {"metric": "auc", "attribute": "coin", "direction": "at_most", "number": 0.04, "unit": "above_floor"}
    assert "less the random floor 0.45" in gated(tmp_path, floor | {"on": "value"}, 1.0).sentence


def test_a_gap_that_depends_on_length_is_no_default(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no calibrated dp.*variant: raw"):
        one(tmp_path, metric="dp", attribute="old", direction="at_most", number=0.1)
    assert one(tmp_path, metric="dp", attribute="old", direction="at_most", number=0.1, variant="raw").verdict == PASS


@given(st.lists(st.sampled_from([PASS, FAIL, NOT_ENOUGH, NO_ROW]), max_size=6))
def test_fail_beats_not_enough_beats_pass(verdicts: list[str]) -> None:
    rule = policy.Rule("auc", "at_most", 0.6)
    found = Verdict("p.yaml", "", tuple(Check(i, rule, v, "") for i, v in enumerate(verdicts)))
    shown = [v for v in verdicts if v != NO_ROW]
    expected = FAIL if FAIL in shown else NOT_ENOUGH if NOT_ENOUGH in shown or not shown else PASS
    assert found.verdict == expected and found.exit_code == {PASS: 0, FAIL: 1, NOT_ENOUGH: 3}[expected]
    assert found.text().endswith(f"p.yaml: {expected}") and len(found.text().splitlines()) == len(verdicts) + 1


def test_a_star_is_a_rule_for_each_attribute(tmp_path: Path) -> None:
    rows = [*ROWS, fit()]
    found = check(tmp_path, "- {metric: auc, attribute: '*', direction: at_most, number: 0.62}\n", rows)
    assert [(c.number, c.rule.attribute, c.rule.exposure, c.verdict) for c in found.checks] == [
        (1, "region", "unseen", FAIL),
        (1, "age", "seen", PASS),
        (1, "no", None, PASS),
        (1, "coin", None, PASS),
    ]
    # rows without exposure count as both; those of the other exposure are left out
    found = check(tmp_path, "- {metric: auc, attribute: '*', exposure: unseen, direction: at_most, number: 0.62}\n")
    assert [c.rule.attribute for c in found.checks] == ["region", "no", "coin"]


def test_words_that_yaml_would_take_for_truth_values(tmp_path: Path) -> None:
    found = check(tmp_path, "- metric: auc\n  attribute: no\n  direction: at_most\n  number: .75\n  on: value\n")
    assert found.checks[0].rule.attribute == "no" and found.checks[0].rule.on == "value"


def test_the_number_is_shown_on_its_side_of_the_bound(tmp_path: Path) -> None:
    rows = [row("auc", "x", value=0.60000001, over=(0.600000001, 0.7))]
    found = check(tmp_path, "- {metric: auc, attribute: x, direction: at_most, number: 0.6}\n", rows).checks[0]
    assert found.verdict == FAIL and "is 0.60000001 (95 % interval 0.600000001 to 0.7 over nodes" in found.sentence


def test_the_block_of_a_record(tmp_path: Path) -> None:
    found = check(
        tmp_path,
        "- {metric: auc, attribute: '*', direction: at_most, number: 0.62}\n- {metric: eo, attribute: shoe, "
        "direction: at_most, number: 0.1, optional: true}\n",
    )
    block = json.loads(json.dumps(found.to_json()))
    assert [r["rule"] for r in block["rules"]] == [1, 1, 1, 1, 2] and block["name"] == "policy.yaml"
    assert policy.first_misjudged(block, ROWS) is None
    better = [r | {"value": 0.5, "ci_low": 0.45, "ci_high": 0.55} if r["metric"] == "auc" else r for r in ROWS]
    assert "entry 1, verdict: the report says 'fail', its rows give 'pass'" in (
        policy.first_misjudged(block, [*better, fit()]) or ""
    )
    assert "the report has no row of" in (policy.first_misjudged(block, ROWS[3:]) or "")


def test_the_template_is_a_policy(tmp_path: Path) -> None:
    named = ["region", "no", "a: b", "*x", "été 🌍", "- 1", "2020", 'say "hi"\nthere', "#"]
    rows = [row("auc", name, value=0.5, over=(0.4, 0.55)) for name in named]
    rows.append(row("ndcg_at_10", value=0.3, over=(0.28, 0.33), variant="held-out", floor_random=0.06))
    found = check(tmp_path, policy.template(rows), [*rows, fit()])
    assert [c.rule.attribute for c in found.checks] == [*named, None] and found.verdict == PASS
    assert policy.template([]).splitlines()[-1] == "[]"


def test_the_documented_policy_is_one(tmp_path: Path) -> None:
    blocks = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8").split("```yaml\n")[1:]
    (block,) = (b.split("```")[0] for b in blocks if "direction:" in b)
    assert [c.verdict for c in check(tmp_path, block, [*ROWS, fit()]).checks] == [
        FAIL,
        NOT_ENOUGH,
        PASS,
        PASS,
        NOT_ENOUGH,
    ]
    assert block.count("- metric:") == 2


GOOD = "metric: auc, attribute: region, direction: at_most, number: 0.6"
HOSTILE = {
    "nothing": ("", "holds nothing; allowed: a list of rules"),
    "an empty list": ("[]", "holds nothing"),
    "a mapping": ("rules: []", "holds a mapping"),
    "a word": ("auc", "holds a text"),
    "a rule that is a word": ("- auc", "rule 1: is a text"),
    "an unknown key": (f"- {{{GOOD}, threshold: 1}}", "rule 1: unknown key 'threshold'; allowed: metric"),
    "a near key": (f"- {{{GOOD}, min_m: 1}}", "Did you mean 'min_n'?"),
    "a direction as a key": (
        "- {metric: auc, at_most: 0.9}",
        "rule 1: at_most is a direction, not a key; write direction: at_most, and the bound as number: 0.9",
    ),
    "a direction as a key, with text": (
        "- {metric: auc, at_least: [x]}",
        "write direction: at_least, and the bound as",
    ),
    "a key that is a number": (f"- {{{GOOD}, 3: 1}}", "unknown key '3'"),
    "a key that is a list": (f"- {{{GOOD}, [a]: 1}}", "unhashable"),
    "a key twice": (f"- {{{GOOD}, number: 0.9}}", "line 1: key 'number' stands twice"),
    "an alias": (f"- &a {{{GOOD}}}\n- *a", "line 2: aliases"),
    "a tag": ("- !!python/object/apply:os.system ['true']", "could not determine a constructor"),
    "a tab": ("-\tmetric: auc\n\tnumber: 1", "line 1: found character"),
    "a hole": ("[" * 5000, "nested too deeply"),
    "no metric": ("- {attribute: region, direction: at_most, number: 0.6}", "rule 1: metric is missing"),
    "no direction": (
        f"- {{{GOOD}}}\n- {{metric: auc, number: 0.6}}",
        "rule 2: direction is missing; allowed: at_most, at_least",
    ),
    "no number": ("- {metric: auc, attribute: region, direction: at_most}", "number is missing"),
    "another metric": ("- {metric: acu, direction: at_most, number: 1}", "unknown metric 'acu'; allowed: micro_f1"),
    "a near metric": ("- {metric: acu, direction: at_most, number: 1}", "Did you mean 'auc'?"),
    "a metric that is a list": ("- {metric: [auc], direction: at_most, number: 1}", "metric = ['auc'] is not allowed"),
    "another direction": ("- {metric: auc, direction: below, number: 1}", "direction = 'below' is not allowed"),
    "a direction that is a list": ("- {metric: auc, direction: [], number: 1}", "direction = [] is not allowed"),
    "NaN": (
        "- {metric: auc, direction: at_most, number: .nan}",
        "number = nan is not allowed; allowed: a finite number",
    ),
    "an infinity": ("- {metric: auc, direction: at_most, number: .inf}", "number = inf is not allowed"),
    "a number as text": ("- {metric: auc, direction: at_most, number: '0.6'}", "number = '0.6' is not allowed"),
    "a number as YAML does not know it": ("- {metric: auc, direction: at_most, number: 6e-1}", "number = '6e-1'"),
    "a truth value": ("- {metric: auc, direction: at_most, number: true}", "number = True is not allowed"),
    "an endless number": (f"- {{metric: auc, direction: at_most, number: {'9' * 400}}}", "number = 999"),
    "per cent": ("- {metric: auc, direction: at_most, number: 60}", "number = 60 is out of range; allowed: 0.5 to 1"),
    "an AUC below a half": ("- {metric: auc, direction: at_most, number: 0.4}", "a coin gets 0.5"),
    "another unit": (f"- {{{GOOD}, unit: bits}}", "unknown unit of auc 'bits'; allowed: auc, above_floor"),
    "no people": (f"- {{{GOOD}, min_n: 0}}", "min_n = 0 is not allowed"),
    "half a person": (f"- {{{GOOD}, min_n: 1.5}}", "min_n = 1.5 is not allowed"),
    "a true person": (f"- {{{GOOD}, min_n: true}}", "min_n = True is not allowed"),
    "no width": (f"- {{{GOOD}, max_width: 0}}", "max_width = 0 is not allowed"),
    "another basis": (f"- {{{GOOD}, on: mean}}", "on = 'mean' is not allowed; allowed: interval, value"),
    "optional as text": (f"- {{{GOOD}, optional: maybe}}", "optional = 'maybe' is not allowed"),
    "an attribute by number": ("- {metric: auc, attribute: 3, direction: at_most, number: 0.6}", "attribute = 3"),
    "a null": ("- {metric: auc, attribute: null, direction: at_most, number: 0.6}", "attribute = None"),
    "no attribute": (
        "- {metric: auc, direction: at_most, number: 0.6}",
        'attribute is missing; allowed: "*", region, age',
    ),
    "an attribute too many": (
        "- {metric: ndcg_at_10, attribute: '*', direction: at_least, number: 0.6}",
        "leave attribute out",
    ),
    "an attacker too many": (
        "- {metric: dp, attribute: region, attacker: worst, direction: at_most, number: 0.6}",
        "leave attacker out",
    ),
    "no rows": (
        "- {metric: balanced_accuracy, attribute: region, direction: at_most, number: 0.6}",
        "no rows of balanced_accuracy; it has: auc",
    ),
    "another attribute": (
        "- {metric: auc, attribute: regoin, direction: at_most, number: 0.6}",
        "Did you mean 'region'?",
    ),
    "another attacker": (
        f"- {{{GOOD}, attacker: trees}}",
        "unknown attacker of auc of region 'trees'; allowed: worst, linear",
    ),
    "another variant": (
        f"- {{{GOOD}, variant: as-coded}}",
        "unknown variant of auc of region 'as-coded'; allowed: standard",
    ),
    "another exposure": (
        f"- {{{GOOD}, exposure: hidden}}",
        "unknown exposure of auc of region 'hidden'; allowed: unseen, seen",
    ),
    "seen only": (
        "- {metric: auc, attribute: age, exposure: unseen, direction: at_most, number: 0.6}",
        "allowed: seen",
    ),
    "a variant to be asked for": (
        "- {metric: ndcg_at_10_bias_free, attribute: region+age, direction: at_least, number: 0.1}",
        "variant of ndcg_at_10_bias_free is missing; allowed: planted-truth",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_policies(kind: str, tmp_path: Path) -> None:
    text, said = HOSTILE[kind]
    with pytest.raises(ConfigError) as error:
        check(tmp_path, text)
    line = str(error.value)
    assert line.startswith("policy.yaml") and said in line and "\n" not in line and len(line) < 400, line


def test_files_that_are_none(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(ConfigError, match="cannot be read"):
            policy.read(place)
    (tmp_path / "p.yaml").write_bytes(b"- metric: \xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        policy.read(tmp_path / "p.yaml")
    (tmp_path / "p.yaml").write_bytes(b"\xef\xbb\xbf- {metric: auc, direction: at_most, number: 0.6}")
    assert policy.read(tmp_path / "p.yaml").rules[0].unit == "auc"
    (tmp_path / "p.yaml").write_bytes(b"# " + b"x" * 2**20)
    with pytest.raises(ConfigError, match="larger than"):
        policy.read(tmp_path / "p.yaml")


@pytest.mark.slow
@given(
    st.text(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(sorted(policy._FIELDS)) | st.text(max_size=3), inner, max_size=5)
        ),
    ).map(lambda v: yaml.safe_dump(v, allow_unicode=True))
)
def test_no_content_ends_in_another_error(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    try:
        policy.read(path).check(ROWS)
    except ConfigError as error:
        assert "any.yaml" in str(error)


@pytest.mark.parametrize(
    ("rules", "code", "said"),
    [
        ("- {metric: auc, attribute: city, direction: at_least, number: 0.55, min_n: 1}", 0, "PASS"),
        ("- {metric: auc, attribute: city, direction: at_most, number: 0.55, min_n: 1}", 1, "FAIL"),
        ("- {metric: auc, attribute: city, direction: at_most, number: 0.6, min_n: 100000}", 3, "NOT ENOUGH EVIDENCE"),
        (
            "- {metric: auc, attribute: town, direction: at_most, number: 0.6}",
            2,
            "unknown attribute of auc 'town'; allowed: city",
        ),
        ("- {metric: auc, attribute: city, direction: at_most, number: 6}", 2, "rule 1: number = 6 is out of range"),
    ],
)
def test_exit_codes_for_pipelines(rules: str, code: int, said: str, seeded: Path, tmp_path: Path) -> None:
    from uge_core.runs.store import RunStore

    # an untreated run: its people's city is far from a guess, and n is 40
    run = next(r for r in RunStore(seeded).list() if r.config["method"] == "none")
    (tmp_path / "p.yaml").write_text(rules)
    command = [
        sys.executable,
        "-m",
        "uge_core",
        "audit",
        run.id,
        "--policy",
        str(tmp_path / "p.yaml"),
        "--store",
        str(seeded),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == code, done
    assert said in (done.stderr if code == 2 else done.stdout)
    if code == 2:
        assert done.stdout == "" and done.stderr.count("\n") == 1
