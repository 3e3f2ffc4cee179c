"""The frame, Fairness, Trade-off and Method as people use them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import uge_core as uge
from uge_core import registry
from uge_core.explore.whatif.edits import DropEdges, MergeValues
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.graph.graph import Attribute

ROOT = Path(__file__).resolve().parents[2]
TITLES = {"leakage.py": "Leakage", "fairness.py": "Fairness", "tradeoff.py": "Trade-off", "method.py": "Method"}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, seeded: Path) -> AppTest:
    monkeypatch.setenv("UGE_STORE", str(seeded))
    return AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60)


def opened(app: AppTest, page: str) -> AppTest:
    app.run()
    app.switch_page(page).run()
    assert not app.exception, app.exception
    assert [t.value for t in app.title] == [TITLES[page]]
    return app


def spec(app: AppTest, index: int = 0) -> dict[str, object]:
    found: dict[str, object] = json.loads(app.get("plotly_chart")[index].proto.spec)
    return found


@pytest.mark.parametrize("page", TITLES)
def test_the_frame_stands_on_every_page_and_every_chart_has_words(app: AppTest, page: str) -> None:
    opened(app, page)
    pickers = [s.label for s in app.selectbox if str(s.key).startswith("pick_")]
    # On the trade-off run B is chosen in the chart; the method page is about no run.
    told = {"method.py": 0, "tradeoff.py": 3}.get(page, 4)
    assert pickers == ["Data", "Audited attribute", "Run A (before)", "Run B (after)"][:told]
    assert app.query_params["attribute"] == "city" and set(app.query_params) >= {"data", "before", "after"}
    assert all(chart.proto.alt for chart in app.get("plotly_chart"))
    assert not any("There is no" in w.value for w in app.warning)


@pytest.mark.slow
def test_choices_are_kept_when_the_page_changes(app: AppTest) -> None:
    opened(app, "fairness.py")
    app.selectbox(key="pick_attribute").set_value("gender").run()
    assert not app.exception and app.query_params["attribute"] == "gender"
    opened(app, "tradeoff.py")
    assert app.selectbox(key="pick_attribute").value == "gender"
    assert app.query_params["attribute"] == "gender"


def test_the_address_chooses(app: AppTest, seeded: Path) -> None:
    run = next(r for r in uge.RunStore(seeded).list() if r.config["method"] == "uge-w")
    app.query_params["attribute"], app.query_params["before"] = "gender", run.id
    opened(app, "fairness.py")
    assert app.selectbox(key="pick_before").value == run.id
    assert app.selectbox(key="pick_attribute").value == "gender"


def test_an_unknown_run_in_the_address_is_said(app: AppTest) -> None:
    app.query_params["before"] = "000000000000"
    app.run()
    assert not app.exception and "There is no run '000000000000'" in app.warning[0].value
    assert app.selectbox(key="pick_before").value != "000000000000"
    app.run()
    assert not app.warning


def test_leakage_is_about_the_frames_attribute(app: AppTest) -> None:
    opened(app, "leakage.py")
    alt = app.get("plotly_chart")[0].proto.alt
    assert "city, No debiasing" in alt and "gender, No debiasing" not in alt
    app.toggle(key="all").set_value(True).run()
    assert "gender, No debiasing" in app.get("plotly_chart")[0].proto.alt


@pytest.mark.slow
def test_fairness_draws_three_maps_per_metric_and_gaps_against_quality(app: AppTest) -> None:
    opened(app, "fairness.py")
    assert app.button_group(key="gaps").value == "calibrated"
    assert any("mean calibrated probability" in h.value for h in app.header)
    app.button_group(key="gaps").set_value("top-10").run()
    assert not app.exception and any("first ten recommendations" in h.value for h in app.header)
    app.button_group(key="gaps").set_value("raw").run()
    assert not app.exception and len(app.get("plotly_chart")) == 8
    words = " ".join(m.value for m in app.markdown)
    assert (
        words.count("Largest gap") == 4
        and "Not enough evidence" not in words
        and "goes from" in words
        and "n = " in words
    )
    assert any("Mean predicted probability" in c.value for c in app.caption)
    before = app.selectbox(key="pick_before").value
    app.selectbox(key="pick_after").set_value(before).run()
    assert not app.exception and len(app.get("plotly_chart")) == 4


def test_the_slider_moves_the_ring_and_offers_to_train(app: AppTest) -> None:
    opened(app, "tradeoff.py")
    assert app.select_slider(key="lambda").options == ["0.3", "0.5"]
    # Run B, as the frame chose it.
    assert (app.selectbox(key="method").value, app.select_slider(key="lambda").value) == ("UGE-OK (ours)", 0.3)
    app.selectbox(key="method").set_value("UGE-C").run()
    assert app.select_slider(key="lambda").value == 0.5  # the nearest that was trained
    app.select_slider(key="lambda").set_value(0.3).run()
    assert "not trained at λ 0.3" in app.info[0].value and "--lams 0.3" in app.code[0].value
    assert any(b.label == "Train λ = 0.3" and not b.disabled for b in app.button)
    app.select_slider(key="lambda").set_value(0.5).run()
    assert not app.exception and not app.info and len(app.metric) == 4
    traces = spec(app)["data"]
    assert isinstance(traces, list) and traces[-1]["name"] == "chosen"
    drawn = [h.proto.body for h in app.get("html") if 'role="figure"' in h.proto.body]
    assert sum("opacity: 1 !important" in h for h in drawn) == 1
    # calibrated gaps are drawn where they were measured, and else there is a reason
    said = " ".join(m.value for m in app.markdown)
    assert len(drawn) + said.count("not measured between city groups") == 3
    assert any("At λ 0.5 the strongest attacker" in m.value for m in app.markdown)
    for quality in ("usual", "degree", "matched"):
        app.button_group(key="quality").set_value(quality).run()
        assert not app.exception and app.get("plotly_chart")
    for metric in ("micro_f1", "normalised"):
        app.button_group(key="measure").set_value(metric).run()
        assert not app.exception and app.get("plotly_chart")


def test_run_b_the_method_and_lambda_and_the_address_are_one_choice(app: AppTest, seeded: Path) -> None:
    runs = {(r.config["method"], r.config["lambda"]): r.id for r in uge.RunStore(seeded).list(audits=False)}
    opened(app, "tradeoff.py")
    app.selectbox(key="method").set_value("UGE-C").run()
    app.select_slider(key="lambda").set_value(0.5).run()
    assert app.query_params["after"] == [runs["uge-c", 0.5]] or app.query_params["after"] == runs["uge-c", 0.5]
    opened(app, "fairness.py")
    assert app.selectbox(key="pick_after").value == runs["uge-c", 0.5]
    app.selectbox(key="pick_after").set_value(runs["uge-ok", 0.3]).run()
    opened(app, "tradeoff.py")
    assert (app.selectbox(key="method").value, app.select_slider(key="lambda").value) == ("UGE-OK (ours)", 0.3)
    app.selectbox(key="method").set_value("UGE-W").run()  # it has no lambda, and is run B all the same
    assert not app.exception and not app.select_slider and len(app.metric) == 4
    opened(app, "leakage.py")
    assert app.selectbox(key="pick_after").value == runs["uge-w", None]


def test_an_address_alone_shows_the_point_that_was_clicked(app: AppTest, seeded: Path) -> None:
    runs = {(r.config["method"], r.config["lambda"]): r.id for r in uge.RunStore(seeded).list(audits=False)}
    app.query_params["after"], app.query_params["lambda"] = runs["uge-c", 0.5], "0.5"
    opened(app, "tradeoff.py")
    assert (app.selectbox(key="method").value, app.select_slider(key="lambda").value) == ("UGE-C", 0.5)


def test_a_lambda_nobody_trained_is_not_shown(app: AppTest) -> None:
    app.query_params["lambda"] = "7"
    opened(app, "tradeoff.py")
    assert app.select_slider(key="lambda").value in (0.3, 0.5)


def test_the_method_page_explains_and_shows_formulas(app: AppTest) -> None:
    opened(app, "method.py")
    assert len(app.latex) >= 8 and sum("What it does not say" in m.value for m in app.markdown) >= 8
    methods = next(box for box in app.selectbox if box.label == "Method")
    assert set(registry.names("debias.methods")) == {
        option.rpartition("(")[2].rstrip(")") for option in methods.options
    }
    methods.select_index(next(i for i, option in enumerate(methods.options) if "(crosswalk)" in option)).run()
    assert any("boundary" in m.value and "What it cannot" in m.value for m in app.markdown)


@pytest.mark.slow
def test_one_run_and_an_attribute_with_one_value(app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    edges = [f"p{i},p{(i + step) % 60}" for i in range(60) for step in (1, 2, 3)]
    (tmp_path / "data" / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    people = [f"p{i},{'xy'[i % 2]}" for i in range(60)]
    (tmp_path / "data" / "nodes.csv").write_text("\n".join(["id,side", *people]) + "\n")
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    graph = uge.load(tmp_path / "data")
    # Files with such a column are refused; a graph made in Python may have one.
    place = Attribute("place", np.zeros(60, dtype=np.int64), ("here",))
    uge.train(replace(graph, attributes=(*graph.attributes, place)), epochs=2, device="cpu")
    for attribute in ("side", "place"):
        app.query_params["attribute"] = attribute
        for page in TITLES:
            opened(app, page)
            assert app.session_state["frame_attribute"] == attribute


def test_a_report_asks_about_scenarios_that_name_people_alone(
    store_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = uge.RunStore(store_copy)
    data = store.list()[0].dataset["fingerprint"]
    kept = Scenarios(store)
    nobody = kept.save(Scenario(data, (MergeValues("city", ("a", "b"), "ab"),), "together"))
    named = kept.save(Scenario(data, (DropEdges((("p1", "p2"),)),), "without a friend"))
    monkeypatch.setenv("UGE_STORE", str(store_copy))
    app = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120).run()
    app.switch_page("report.py").run()
    for chosen, asked in (([nobody], False), ([nobody, named], True)):
        app.multiselect(key="report_scenarios").set_value(chosen).run()
        assert not app.exception and [c.key == "report_sensitive" for c in app.checkbox] == [True] * asked


@pytest.fixture
def sampled(sample_audit: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The sample audit, whose embeddings have three seeds each."""
    monkeypatch.setenv("UGE_STORE", str(sample_audit))
    return AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60)


def test_both_runs_show_one_seed(sampled: AppTest, sample_audit: Path) -> None:
    app = opened(sampled, "fairness.py")
    runs = {r.id: r.config for r in uge.RunStore(sample_audit).list(audits=False)}

    def shown() -> list[int]:
        return [runs[str(app.session_state[f"frame_{name}"])]["seed"] for name in ("before", "after")]

    assert app.selectbox(key="pick_seed").options == ["0", "1", "2"] and shown() == [0, 0]
    app.selectbox(key="pick_seed").set_value(2).run()
    assert shown() == [2, 2]
    other = next(i for i, c in runs.items() if (c["method"], c["lambda"], c["seed"]) == ("uge-c", 0.9, 0))
    app.selectbox(key="pick_after").set_value(other).run()
    assert shown() == [2, 2] and runs[str(app.session_state["frame_after"])]["lambda"] == 0.9
    opened(app, "tradeoff.py")
    assert (app.selectbox(key="method").value, app.select_slider(key="lambda").value) == ("UGE-C", 0.9)
    opened(app, "method.py")
    opened(app, "tradeoff.py")  # which has forgotten its widgets
    assert (app.selectbox(key="method").value, app.select_slider(key="lambda").value) == ("UGE-C", 0.9)


def test_the_next_step_trains_the_graph_that_is_shown(app: AppTest, seeded: Path) -> None:
    app.run()
    links = {p.proto.label: p.proto for p in app.get("page_link")}
    step = next(link for label, link in links.items() if label in ("Look at the data", "Train a method that hides it"))
    assert "graph=" in step.query_string
    run = next(r for r in uge.RunStore(seeded).list() if r.config["method"] == "uge-w")
    app.query_params["graph"], app.query_params["treat"] = run.dataset["source"]["spec"], "gender"
    app.switch_page("runs.py").run()
    assert not app.exception and app.text_input(key="runs_data").value == run.dataset["source"]["spec"]
    assert app.multiselect(key="runs_sensitive").value == ["gender"]
    assert app.multiselect(key="runs_methods").value == ["none", "uge-n"]
