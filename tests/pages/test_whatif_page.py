"""What-if as people use it: an edit, before and after, undo, scenarios, the ego network."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import uge_core as uge
from uge_core.explore.whatif.scenario import Scenarios

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def root(seeded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store of this module's own, and the end of its what-if process."""
    target = tmp_path_factory.mktemp("whatif-page") / "store"
    shutil.copytree(seeded, target, ignore=shutil.ignore_patterns("*.sock"))
    yield target
    stop(target)


def stop(root: Path) -> None:
    """Kills the what-if process of a store."""
    with suppress(OSError, ValueError):
        os.kill(int((root / "whatif" / "pid").read_text().partition(":")[0]), signal.SIGKILL)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, root: Path) -> AppTest:
    monkeypatch.setenv("UGE_STORE", str(root))
    return AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120)


def opened(app: AppTest) -> AppTest:
    app.run()
    app.switch_page("whatif.py").run()
    assert not app.exception, app.exception
    assert [t.value for t in app.title] == ["What-if"]
    return app


def button(app: AppTest, label: str) -> AppTest:
    next(b for b in app.button if b.label == label).click().run()
    assert not app.exception, app.exception
    return app


def nodes(app: AppTest, text: str) -> None:
    next(t for t in app.text_input if t.label == "Nodes").set_value(text).run()
    assert not app.exception, app.exception


def table(app: AppTest) -> object:
    return next(d.value for d in app.dataframe if "Before, 95 %" in d.value and "Shows" in d.value)


def test_an_edit_shows_before_and_after_and_undo_takes_it_back(app: AppTest) -> None:
    opened(app)
    assert "Add an edit" in app.info[0].value and not app.get("plotly_chart")
    nodes(app, "p1, p2, p3, p4")
    app.selectbox(key="whatif_value").set_value("A").run()
    button(app, "Add edit")
    assert any("city of nodes p1, p2, p3, p4 becomes A" in m.value for m in app.markdown)
    found = table(app)
    assert set(found["Made by"]) == {"re-judge"} and {"AUC", "DP gap", "EO gap"} <= set(found["Measure"])
    assert found["n after"].notna().all() and found["Better"].notna().all()
    words = " ".join(m.value for m in app.markdown)
    assert "before," in words and "after (n = " in words
    button(app, "Undo")
    assert not any("becomes A" in m.value for m in app.markdown) and "Add an edit" in app.info[0].value


def test_the_ego_network_has_its_table_and_words(app: AppTest) -> None:
    opened(app)
    nodes(app, "p10")
    (chart,) = app.get("plotly_chart")
    assert chart.proto.alt.startswith("Edges of p10 weigh")
    ego = next(t.value for t in app.table if "Weight" in t.value)
    assert {"From", "To", "R", "R~", "Edges observed", "Edges expected", "Why"} <= set(ego)


def test_nodes_come_from_the_address_and_from_the_projection(app: AppTest) -> None:
    app.query_params["nodes"] = "p7,p9"
    opened(app)
    assert next(t for t in app.text_input if t.label == "Nodes").value == "p7, p9"
    app.session_state["whatif_nodes"] = ["p11"]
    app.run()
    assert next(t for t in app.text_input if t.label == "Nodes").value == "p11"


def test_edges_of_a_run_without_messages_are_rejudged_and_it_says_why(app: AppTest) -> None:
    opened(app)
    nodes(app, "p10")
    first = next(t.value for t in app.table if "Weight" in t.value).iloc[0]
    app.selectbox(key="whatif_kind").set_value("drop-edges").run()
    app.text_area(key="whatif_edges").set_value(f"{first['From']}, {first['To']}").run()
    button(app, "Add edit")
    assert any("Re-judged only" in c.value and "passes no messages" in c.value for c in app.caption)
    assert any("without edge" in m.value for m in app.markdown)


def test_what_does_not_fit_is_a_sentence(app: AppTest) -> None:
    opened(app)
    app.selectbox(key="whatif_kind").set_value("drop-edges").run()
    app.text_area(key="whatif_edges").set_value("p1, nobody").run()
    button(app, "Add edit")
    assert "no node is called 'nobody'" in app.error[0].value
    button(app, "Undo the last edit")
    assert not app.error
    app.text_area(key="whatif_edges").set_value("p1, p1").run()
    button(app, "Add edit")
    assert "name two different nodes" in app.error[0].value


@pytest.mark.slow
def test_scenarios_are_saved_compared_and_deleted(app: AppTest, root: Path) -> None:
    opened(app)
    for value, name in (("B", "first *bold*"), ("C", "second")):
        nodes(app, "p1, p2")
        app.selectbox(key="whatif_value").set_value(value).run()
        button(app, "Add edit")
        app.text_input(key="whatif_name").set_value(name).run()
        button(app, "Save")
        button(app, "Remove all")
    kept = Scenarios(uge.RunStore(root)).list()
    assert [s.scenario.name for s in kept] == ["second", "first *bold*"]
    assert any("first \\*bold\\*" in m.value for m in app.markdown)
    app.multiselect(key="whatif_two").set_value([s.scenario.id for s in kept]).run()
    assert not app.exception
    assert any({"second", "first *bold*", "Difference of the two"} <= set(d.value) for d in app.dataframe)
    app.button(key=f"open-{kept[0].scenario.id}").click().run()
    assert any("becomes C" in m.value for m in app.markdown)
    app.button(key=f"delete-{kept[0].scenario.id}").click().run()
    assert [s.scenario.name for s in Scenarios(uge.RunStore(root)).list()] == ["first *bold*"]


def test_a_killed_process_is_started_again(app: AppTest, root: Path) -> None:
    opened(app)
    stop(root)
    nodes(app, "p10")
    for _ in range(3):  # what hit the dying process is told, and asking again is enough
        if app.get("plotly_chart"):
            break
        app.run()
    assert not app.exception and app.get("plotly_chart")
