"""The five verdicts, what separates two embeddings, and how rarely chance does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uge_core.audit.attacker_order import DEFAULT_ATTACKERS
from uge_core.explore.comparison import paired_path
from uge_core.files import sealed
from uge_core.runs.store import RunStore
from uge_core.views.figures.gauge import gauge, spoken
from uge_core.views.points import folded, folds
from uge_core.views.separation import separation
from uge_core.views.verdicts import cards, over_people_and_seeds
from uge_core.views.words import rough

NOTE = f"worst attacker: links, of {', '.join(DEFAULT_ATTACKERS)}; the interval holds for the choice of the largest"


def row(metric: str, value: float | None, half: float | None = 0.05, **given: Any) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(
        ("attribute", "attacker", "exposure", "floor_random", "floor_majority", "floor_degree", "note", "p_value")
    )
    none = value is None or half is None
    ends = {"ci_low": None if none else value - half, "ci_high": None if none else value + half}
    return (
        empty
        | {"metric": metric, "variant": "standard", "value": value, "n": 400, "evidence": "ok", "direction": "lower"}
        | ends
        | given
    )


def leak(
    value: float | None, exposure: str | None = "unseen", half: float | None = 0.05, **given: Any
) -> dict[str, Any]:
    about = {"attribute": "city", "attacker": "worst", "exposure": exposure, "note": NOTE}
    return row("auc", value, half, **about | given)


def quality(value: float, exposure: str | None = "unseen", half: float = 0.01) -> dict[str, Any]:
    where = {
        "attribute": "city",
        "variant": "held-out",
        "exposure": exposure,
        "floor_random": 0.05,
        "floor_degree": 0.2,
    }
    return row("ndcg_at_10_matched", value, half, **where)


def check(value: float = 1.0, note: str | None = None) -> dict[str, Any]:
    return row("usable", value, None, variant=None, note=note)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store")


def add(store: RunStore, run_id: str, rows: list[dict[str, Any]], **config: Any) -> None:
    full = {
        "method": "none",
        "lambda": None,
        "sensitive": [],
        "backbone": "gcn",
        "seed": 0,
        "split_seed": 0,
        "epochs": 1,
    }
    data = {"name": "town", "fingerprint": "f" * 64, "num_nodes": 9, "num_edges": 9}
    store.begin(run_id, full | config, data)
    store.save_audit(run_id, {"schema": "uge-audit/1", "audit_version": 4, "rows": rows} | config.pop("record", {}))


def both(store: RunStore, before: dict[str, Any], after: dict[str, Any], *more: dict[str, Any]) -> Any:
    add(store, "a", [before, quality(0.4, None), check()])
    add(store, "b", [after, quality(0.4), check(), *more], method="uge-w", sensitive=["city"])
    (card,) = cards(store, "a", "b")
    return card


@pytest.mark.parametrize(
    ("before", "after", "finding", "still"),
    [
        (leak(0.9, None), leak(0.9), "leaks", False),
        (leak(0.9, None), leak(0.7), "reduced", True),
        (leak(0.9, None), leak(0.58), "reduced", False),
        (leak(0.6, None), leak(0.58), "not shown", False),
        (leak(0.601, None), leak(0.6005), "leaks", False),  # its lower bound is above .55, by as little as that
        (leak(0.6, None), leak(0.6, half=0.2), "too few people", False),
        (leak(0.6, None), leak(0.6, half=None), "too few people", False),
        (leak(0.6, None), leak(None, evidence="insufficient"), "too few people", False),
        (leak(0.9, None), leak(0.7, "seen"), "leaks", False),  # less on people whose values training saw is no success
        (leak(0.9, None), leak(0.5, "seen"), "not shown", False),
        (leak(0.6, None), leak(0.9), "leaks", False),
        (leak(0.9, None), leak(0.6, half=0.2), "too few people", False),  # less, but how much is left cannot be told
        (leak(0.9, None), leak(0.55, note="worst attacker: linear"), "too few people", False),
        (leak(0.9, None), leak(0.8, note="worst attacker: linear"), "leaks", False),
    ],
)
def test_five_verdicts(store: RunStore, before: Any, after: Any, finding: str, still: bool) -> None:
    card = both(store, before, after)
    assert (card.finding, card.still_leaks) == (finding, still)


def test_what_the_evidence_lacks_is_said(store: RunStore) -> None:
    add(store, "a", [leak(0.55, None, note="worst attacker: linear"), check()])
    (card,) = cards(store, "a", None)
    assert card.headline == "city: too few attackers to tell" and any("audit it again" in d for d in card.details)
    add(store, "b", [leak(0.55, None), row("usable", None, None, variant=None, note="too few lists")])
    (card,) = cards(store, "b", None)
    assert card.headline == "city: it is not known whether the embedding is usable"
    for seed, value in enumerate((0.52, 0.70, 0.50)):
        add(store, f"c{seed}", [leak(value, half=0.04), check()], method="uge-w", sensitive=["city"], seed=seed)
    (card,) = cards(store, "c0", None)
    assert card.finding == "leaks"  # one of the seeds does, and one of them is handed out
    for seed, value in enumerate((0.50, 0.58, 0.45)):
        add(store, f"d{seed}", [leak(value, half=0.04), check()], method="uge-c", sensitive=["city"], seed=seed)
    (card,) = cards(store, "d0", None)
    assert card.headline == "city: too few seeds to tell" and any("seeds differ too much" in d for d in card.details)


def test_an_attribute_that_only_one_side_was_audited_for_is_no_crash(store: RunStore) -> None:
    add(store, "a", [leak(0.9, None, attribute="age"), quality(0.4, None), check()])
    add(store, "b", [leak(0.7), quality(0.4), check()], method="uge-w", sensitive=["city"])
    (card,) = cards(store, "a", "b")
    assert card.attribute == "city" and card.finding == "leaks" and "not measured of both" in card.details[0]


def test_link_quality_before_and_after_is_of_one_metric(store: RunStore) -> None:
    usual = {"metric": "ndcg_at_10", "attribute": None, "variant": "held-out"}
    add(store, "a", [leak(0.9, None), quality(0.3, None), quality(0.5, None) | usual, check()])
    add(store, "b", [leak(0.7), quality(0.6) | usual, check()], method="uge-w", sensitive=["city"])
    (card,) = cards(store, "a", "b")
    assert card.cost == "Link quality (NDCG@10) 0.500 before, 0.600 after: the rise is shown."


def test_archived_seeds_and_other_settings_are_told(store: RunStore) -> None:
    add(store, "a", [leak(0.9, None), check()])
    for seed, value in enumerate((0.70, 0.71, 0.95)):
        add(store, f"b{seed}", [leak(value), check()], method="uge-w", sensitive=["city"], seed=seed, epochs=7)
    with store.writing() as db:
        db.execute("UPDATE runs SET archived = 1.0 WHERE id = 'b2'")
    (card,) = cards(store, "a", "b0")
    assert "1 seed of it is archived and not counted." in card.details
    assert "Before (with another epochs) it was 90.0 %" in card.sentence


def test_an_embedding_that_says_nothing_is_no_success(store: RunStore) -> None:
    add(store, "a", [leak(0.9, None), check()])
    add(store, "b", [leak(0.5), check(0.0, "all vectors are equal")], method="uge-w", sensitive=["city"])
    (card,) = cards(store, "a", "b")
    assert card.finding == "not usable" and "no success" in card.sentence and card.step.page == "runs"


def test_one_embedding_alone_leaks_or_not(store: RunStore) -> None:
    add(store, "a", [leak(0.9, None), quality(0.4, None), check()])
    (card,) = cards(store, "a", None)
    assert card.finding == "leaks" and card.before is None and card.cost == ""
    assert spoken(card).endswith("Embedding: No debiasing: 0.900 [0.850, 0.950].")


def test_the_margin_is_stated_and_moves_the_verdict(store: RunStore) -> None:
    add(store, "a", [leak(0.65, None), check()])
    assert [cards(store, "a", None, margin=m)[0].finding for m in (0.05, 0.15)] == ["leaks", "not shown"]
    (card,) = cards(store, "a", None, margin=0.15)
    assert "above 65 %" in " ".join(card.details) and "within 0.15 of a coin" in gauge(card)


def test_nothing_is_gained_where_no_fall_is_shown_and_links_are_ranked_worse(store: RunStore) -> None:
    add(store, "a", [leak(0.736, None), quality(0.9, None), check()])
    add(store, "b", [leak(0.767), quality(0.8), check()], method="uge-w", sensitive=["city"])
    (card,) = cards(store, "a", "b")
    assert card.cost == (
        "Nothing is gained: no less is shown to be read, and links are ranked worse. Link quality (matched NDCG@10) "
        "0.900 before, 0.800 after: the fall is shown."
    )


def test_an_untreated_attribute_has_no_bargain(store: RunStore) -> None:
    add(store, "a", [leak(0.736, None), quality(0.9, None), check()])
    add(store, "b", [leak(0.767, "seen"), quality(0.8, "seen"), check()], method="uge-w", sensitive=["age"])
    (card,) = cards(store, "a", "b")
    assert not card.treated and "Nothing is gained" not in card.cost


def test_a_verdict_never_quotes_the_luckiest_seed(store: RunStore) -> None:
    add(store, "a", [leak(0.9, None), check()])
    for seed, value in enumerate((0.60, 0.80, 0.85)):
        add(store, f"b{seed}", [leak(value), check()], method="uge-w", sensitive=["city"], seed=seed)
    for asked in ("b0", "b1"):
        (card,) = cards(store, "a", asked)
        assert card.now.auc.value == pytest.approx(0.75) and card.now.auc.seeds == 3
        assert card.now.label == "UGE-W · city · 3 seeds" and card.now.key == "b0"


def test_the_interval_of_several_seeds_covers_people_too() -> None:
    alike = [leak(0.7), leak(0.7), leak(0.701)]
    found = over_people_and_seeds(alike)  # type: ignore[arg-type]
    assert found and found.low == pytest.approx(0.65, abs=0.001) and found.high == pytest.approx(0.75, abs=0.001)
    apart = over_people_and_seeds([leak(0.6, half=0.001), leak(0.7, half=0.001), leak(0.8, half=0.001)])  # type: ignore[arg-type]
    assert apart and apart.low == pytest.approx(0.7 - 4.303 * 0.1 / 3**0.5, abs=0.001)
    none = over_people_and_seeds([leak(v, half=None) for v in (0.50, 0.51, 0.50)])  # type: ignore[arg-type]
    assert none and none.low is None and none.high is None  # seeds alone say nothing about people


def test_a_policy_has_its_word_on_the_card(store: RunStore) -> None:
    rules = [
        {"attribute": "city", "verdict": "pass", "sentence": "AUC is at most 0.95."},
        {"attribute": "city", "verdict": "fail", "sentence": "AUC of city is not at most 0.6."},
        {"attribute": "age", "verdict": "fail", "sentence": "AUC of age is not at most 0.6."},
    ]
    record = {"policy": {"name": "ours.yaml", "sha256": "0", "verdict": "fail", "rules": rules}}
    add(store, "a", [leak(0.9, None), check()], record=record)
    (card,) = cards(store, "a", None)
    assert card.policy == "fail" and card.policy_words == "ours.yaml: fail. AUC of city is not at most 0.6."


def seeds(store: RunStore, name: str, values: list[float], half: float = 0.2, **config: Any) -> list[Any]:
    for seed, value in enumerate(values):
        add(store, f"{name}{seed}", [leak(value, half=half), check()], seed=seed, **config)
    return [(run, run.rows[0]) for run in (store.load(f"{name}{seed}") for seed in range(len(values)))]


def test_seeds_separate_what_the_intervals_over_people_do_not(store: RunStore) -> None:
    a = seeds(store, "a", [0.80, 0.82, 0.81], half=0.03)
    b = seeds(store, "b", [0.75, 0.771, 0.76], half=0.03, method="uge-w", sensitive=["city"])
    found = separation(store, a, b)
    # d = -.0497 with s = .0006 over seeds, and .03 * sqrt(2) = .0424 over people
    assert (found.state, found.how) == ("lower", "over 3 seeds and the people tested")
    assert found.low == pytest.approx(-0.0497 - 0.0424, abs=2e-4) and found.high == pytest.approx(-0.0072, abs=2e-4)
    assert separation(store, b, a).state == "higher"
    few = [(run, leak(row["value"], half=0.04)) for run, row in a]
    assert separation(store, few, [(r, leak(x["value"], half=0.04)) for r, x in b]).state == "not shown"  # type: ignore[arg-type]
    near = seeds(store, "c", [0.85, 0.78, 0.80], half=0.03, method="uge-c", sensitive=["city"])
    found = separation(store, a, near)
    # d = 0, .04 up and .04 down: no number of seeds shows nothing
    assert found.state == "not shown" and found.enough == ""


def test_equal_and_tiny_differences_over_seeds_are_none(store: RunStore) -> None:
    a = seeds(store, "a", [0.70, 0.70, 0.70], half=0.05)
    for name, values in (("b", [0.699] * 3), ("c", [0.66] * 3)):
        other = seeds(store, name, values, half=0.05, method=f"uge-{name}", sensitive=["city"])
        assert separation(store, a, other).state == "not shown"


def test_seeds_that_only_one_side_has_are_not_left_out(store: RunStore) -> None:
    a = seeds(store, "a", [0.80, 0.81, 0.80], half=0.005)
    b = seeds(store, "b", [0.78, 0.785, 0.78, 0.95, 0.95], half=0.005, method="uge-w", sensitive=["city"])
    assert separation(store, a, b[:3]).state == "lower" and separation(store, a, b).state == "not shown"


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("unknown", "level", "different policies for missing values (exclude and level)"),
        ("test_share", 0.2, "different shares of held-out links (0.1 and 0.2)"),
    ],
)
def test_other_people_are_not_compared(store: RunStore, field: str, value: Any, says: str) -> None:
    a = seeds(store, "a", [0.90], unknown="exclude", test_share=0.1)
    b = seeds(store, "b", [0.30], **{"unknown": "exclude", "test_share": 0.1, field: value})
    found = separation(store, a, b)
    assert found.state == "not comparable" and says in found.how


def test_runs_of_other_graphs_and_of_people_training_saw_are_not_compared(store: RunStore) -> None:
    add(store, "a", [leak(0.9, "seen"), check()], method="uge-r", sensitive=["city"])
    add(store, "b", [leak(0.6), check()], method="uge-w", sensitive=["city"])
    (card,) = cards(store, "a", "b")
    assert card.finding == "too few people" or card.finding == "not shown"
    assert "hidden from training" in card.details[0] and "not compared" in card.sentence
    store.refresh("a", {"name": "village", "fingerprint": "e" * 64})
    (card,) = cards(store, "a", "b")
    assert "different graphs" in card.details[0] and card.finding != "reduced"


def test_how_many_people_would_show_it(store: RunStore) -> None:
    a = seeds(store, "a", [0.80], half=0.05)
    b = seeds(store, "b", [0.75], half=0.05, method="uge-w", sensitive=["city"])
    found = separation(store, a, b)
    # (.05 + .05) / .05 = 2, squared: four times as many
    assert (found.state, found.enough) == ("not shown", "about 1,600 in place of 400")


def test_a_comparison_in_pairs_decides(store: RunStore) -> None:
    a = seeds(store, "a", [0.80], half=0.2)
    b = seeds(store, "b", [0.75], half=0.2, method="uge-w", sensitive=["city"])
    assert separation(store, a, b).state == "not shown"
    pair = leak(0.05) | {"a": 0.80, "b": 0.75, "ci_low": 0.01, "ci_high": 0.09, "p_value": 0.01, "p_holm": 0.03}
    record = {"audit_version": 4, "rows": [pair], "finished": [a[0][0].finished, b[0][0].finished]}
    path = paired_path(store, "a0", "b0")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sealed(record))
    found = separation(store, a, b)
    assert (found.state, found.how) == ("lower", "measured in pairs, p = 0.03 after Holm")
    assert (found.low, found.high) == (-0.09, -0.01)
    assert separation(store, b, a).state == "higher"
    path.write_bytes(sealed(record | {"rows": [pair | {"p_holm": 0.2, "ci_low": -0.03, "ci_high": 0.13}]}))
    found = separation(store, a, b)
    assert found.state == "not shown" and found.enough == "about 1,100 in place of 400"  # (.08 / .05)^2 = 2.56


def test_no_lucky_seed_decides_and_no_tiny_difference_is_chased(store: RunStore) -> None:
    a = seeds(store, "a", [0.80], half=0.01)
    b = seeds(store, "b", [0.60, 0.79], half=0.01, method="uge-w", sensitive=["city"])
    assert separation(store, a, b[:1]).state == "lower" and separation(store, a, b).state == "not shown"
    same = seeds(store, "c", [0.7999], half=0.05, method="uge-c", sensitive=["city"])
    assert separation(store, a, same).enough == ""


def test_seeds_of_other_splits_are_no_pairs(store: RunStore) -> None:
    a = seeds(store, "a", [0.80, 0.81, 0.82])
    b = seeds(store, "b", [0.75, 0.76, 0.77], method="uge-w", sensitive=["city"], split_seed=1)
    assert separation(store, a, b).state == "not shown"


def test_two_seeds_of_one_embedding_are_not_compared(store: RunStore) -> None:
    for seed in (0, 1):
        add(store, f"a{seed}", [leak(0.9, None), check()], seed=seed)
    (card,) = cards(store, "a0", "a1")
    assert card.before is None and card.now.auc.seeds == 2


def test_a_difference_is_told_with_its_interval_and_a_rise_in_the_headline(store: RunStore) -> None:
    card = both(store, leak(0.7, None), leak(0.9))
    assert card.headline == "city leaks, more than before"
    assert "AUC, after against before: higher by 0.200 [0.100, 0.300] (the 95 % intervals do not meet)." in card.details


def test_who_takes_the_best_of_several_is_told_so(store: RunStore) -> None:
    both(store, leak(0.9, None), leak(0.7))
    add(store, "c", [leak(0.8), check()], method="uge-r", sensitive=["city"])
    add(store, "d", [leak(0.8), check()], method="uge-r", sensitive=["age"])
    (card,) = cards(store, "a", "b")
    assert any("one of 2 embeddings that were trained to hide city" in words for words in card.details)


@pytest.mark.parametrize("case", ["nodes", "seeds"])
def test_chance_separates_two_alike_in_at_most_one_of_twenty(store: RunStore, case: str) -> None:
    rng = np.random.default_rng(5)
    trials, found = 400, 0
    (a,) = seeds(store, "a", [0.7])
    (b,) = seeds(store, "b", [0.7], method="uge-w", sensitive=["city"])
    for _ in range(trials):
        if case == "nodes":
            # two estimates of one figure, each with its right interval, and nothing in common
            x, y = (
                [(run, leak(v, half=1.96 * 0.03))] for (run, _), v in zip((a, b), rng.normal(0.7, 0.03, 2), strict=True)
            )
        else:
            of = rng.normal(0.7, 0.03, (2, 3))
            x, y = (
                [(_seeded(run, i), leak(v, half=0.001)) for i, v in enumerate(values)]
                for (run, _), values in zip((a, b), of, strict=True)
            )
        found += separation(store, x, y).shown  # type: ignore[arg-type]
    # 95 % of 400 trials at 5 % lie below 28; intervals that do not meet are rarer by far
    assert found <= (28 if case == "seeds" else 8)


def _seeded(run: Any, seed: int) -> Any:
    from dataclasses import replace

    return replace(run, id=f"{run.id}{seed}", config=run.config | {"seed": seed})


def test_runs_of_other_seeds_are_one_row_and_of_other_settings_are_not(store: RunStore) -> None:
    for seed in (0, 2, 1):
        add(store, f"a{seed}", [leak(0.9, None)], seed=seed)
        add(store, f"c{seed}", [leak(0.9)], seed=seed, method="uge-c", sensitive=["city"], **{"lambda": 0.5})
    add(store, "d", [leak(0.9)], method="uge-c", sensitive=["city"], **{"lambda": 0.9})
    add(store, "e", [leak(0.9, None)], epochs=2)
    add(store, "w", [leak(0.9)], method="uge-c", sensitive=["city"], warm_from="x", **{"lambda": 0.5})
    runs = store.list(audits=False)
    assert {f.label: f.ids for f in folds(runs)} == {
        "No debiasing · 1 epochs · 3 seeds": ("a0", "a1", "a2"),
        "No debiasing · 2 epochs": ("e",),
        "UGE-C λ 0.5 · city · 1 epochs · 3 seeds": ("c0", "c1", "c2"),
        "UGE-C λ 0.9 · city · 1 epochs": ("d",),
    }
    warm = folded(runs, "w")
    assert warm is not None and warm.ids == ("w",) and folded(runs, "nobody") is None


def test_names_in_a_picture_are_no_markup(store: RunStore) -> None:
    add(
        store, "a", [leak(0.9, None, attribute="<b>city</b>"), check()], method="external", file="<i>z.npy", backbone=""
    )
    (card,) = cards(store, "a", None)
    drawn = gauge(card)
    assert "<b>city" not in drawn and "<i>z.npy" not in drawn and "&lt;i&gt;z.npy" in drawn


@given(st.floats(0, 1e7))
@settings(max_examples=200, deadline=None)
def test_rough_numbers_have_two_digits_and_never_promise_less(n: float) -> None:
    shown = int(rough(n).replace(",", ""))
    assert n <= shown <= max(n * 1.1 + 1, 1)
    assert len(json.dumps(shown).rstrip("0")) <= 2 or shown < 100


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.54, "no leak is shown any more"), (0.58, "whether it still leaks is undecided"), (0.7, "still leaks")],
)
def test_what_is_left_above_a_coin_is_undecided(store: RunStore, value: float, words: str) -> None:
    assert both(store, leak(0.9, None), leak(value)).headline == f"city: reduced, {words}"
