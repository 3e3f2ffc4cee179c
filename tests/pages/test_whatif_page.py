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
from uge_core.explore.whatif.scenario import Scenario, Scenarios

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
    """Finds people by their ids, who are looked at then, in place of those before."""
    app.session_state["whatif_nodes"] = []
    app.run()
    app.text_input(key="whatif_find").set_value(text).run()
    app.button(key="whatif_found_all" if "," in text else "whatif_found_0").click().run()
    assert not app.exception, app.exception
    assert looked_at(app) == [part.strip() for part in text.split(",")]


def looked_at(app: AppTest) -> list[str]:
    return next((m.value for m in app.multiselect if m.label == "Looked at"), [])


def edits(app: AppTest) -> str:
    return " ".join(b.label for b in app.button if (b.key or "").startswith("whatif_without"))


def table(app: AppTest) -> object:
    return next(d.value for d in app.dataframe if "Before, 95 %" in d.value and "Shows" in d.value)


def test_an_edit_shows_before_and_after_and_undo_takes_it_back(app: AppTest) -> None:
    opened(app)
    assert any("Add an edit" in i.value for i in app.info) and not app.get("plotly_chart")
    nodes(app, "p1, p2, p3, p4")
    app.selectbox(key="whatif_value").set_value("A")
    button(app, "Add edit")
    assert "city of nodes p1, p2, p3, p4 becomes A" in edits(app)
    found = table(app)
    assert set(found["Made by"]) == {"recomputed"} and {"AUC", "DP gap", "EO gap"} <= set(found["Measure"])
    assert found["n after"].notna().all() and found["Better"].notna().all()
    words = " ".join(m.value for m in app.markdown)
    assert "before," in words and "after (n = " in words
    button(app, "Undo")
    assert not edits(app) and "Add an edit" in app.info[0].value
    assert next(t.value for t in app.table if "Links" in t.value)["id"].tolist() == ["p1", "p2", "p3", "p4"]


def test_the_ego_network_has_its_table_and_words(app: AppTest) -> None:
    opened(app)
    nodes(app, "p10")
    (chart,) = app.get("plotly_chart")
    assert chart.proto.alt.startswith("Edges of p10 weigh")
    ego = next(t.value for t in app.table if "Weight" in t.value)
    assert {"From", "To", "R", "R~", "Edges observed", "Edges expected", "Why"} <= set(ego)


def test_nodes_come_from_the_address_and_from_the_projection(app: AppTest) -> None:
    app.query_params["nodes"] = "p7,p9,nobody"
    opened(app)
    assert looked_at(app) == ["p7", "p9", "nobody"]
    # Whom nobody knows is said where people are looked at, and the others are shown all the same.
    assert [e.value for e in app.error] == ["There is nobody called 'nobody'; ids are those of the node table."]
    assert next(t.value for t in app.table if "Links" in t.value)["id"].tolist() == ["p7", "p9"]
    assert app.get("plotly_chart")[0].proto.alt.startswith("Edges of 2 people weigh")
    app.session_state["whatif_nodes"] = ["p11"]
    app.run()
    assert looked_at(app) == ["p11"] and not app.error


def test_who_is_looked_at_and_the_edits_outlive_a_change_of_page_and_a_reload(
    app: AppTest, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    opened(app)
    nodes(app, "p1, p2")
    app.selectbox(key="whatif_value").set_value("B")
    button(app, "Add edit")
    app.text_input(key="whatif_name").set_value("tried").run()
    app.switch_page("method.py").run()
    app.switch_page("whatif.py").run()
    assert looked_at(app) == ["p1", "p2"] and "becomes B" in edits(app)
    # A reload is a new session with the address of the old one.
    token = app.query_params["draft"]
    again = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120)
    again.run()
    again.query_params["draft"] = token
    again.switch_page("whatif.py").run()
    assert not again.exception and looked_at(again) == ["p1", "p2"] and "becomes B" in edits(again)
    # It is nobody's scenario, and goes when it is emptied.
    assert Scenarios(uge.RunStore(root)).list() == []
    button(again, "Remove all")
    again.multiselect(key=next(m.key for m in again.multiselect if m.label == "Looked at")).set_value([]).run()
    assert token not in {d.token for d in Scenarios(uge.RunStore(root)).drafts()} and "draft" not in again.query_params


def test_another_graphs_draft_and_a_forged_name_are_no_draft_of_this_one(app: AppTest, root: Path) -> None:
    kept = Scenarios(uge.RunStore(root))
    other = kept.keep_draft("", Scenario("another graph"), ["x"])
    for token in (other, "../../x", "f" * 16):
        fresh = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120)
        fresh.run()
        fresh.query_params["draft"] = token
        fresh.switch_page("whatif.py").run()
        assert not fresh.exception and not looked_at(fresh) and not fresh.error
    kept.drop_draft(other)


def test_a_selection_of_hundreds_is_edited_as_one(app: AppTest) -> None:
    opened(app)
    everybody = [f"p{i}" for i in range(150)]
    app.session_state["whatif_nodes"] = everybody
    app.run()
    assert "150 people are looked at" in " ".join(c.value for c in app.caption)
    button(app, "Add edit")
    assert app.session_state["whatif_draft"].edits[0].nodes == tuple(sorted(everybody))
    button(app, "Remove all")
    button(app, "Look at nobody")
    assert not looked_at(app)


def test_edges_of_a_run_without_messages_are_rejudged_and_it_says_why(app: AppTest) -> None:
    opened(app)
    nodes(app, "p10")
    first = next(t.value for t in app.table if "Weight" in t.value).iloc[0]
    app.selectbox(key="whatif_kind").set_value("drop-edges").run()
    app.text_area(key="whatif_edges").set_value(f"{first['From']}, {first['To']}")
    button(app, "Add edit")
    assert any("Recomputed only" in c.value and "passes no messages" in c.value for c in app.caption)
    assert "without edge" in edits(app)
    assert "dropped edge drawn dashed" in " ".join(c.value for c in app.caption)


def test_what_does_not_fit_is_a_sentence(app: AppTest) -> None:
    opened(app)
    app.selectbox(key="whatif_kind").set_value("drop-edges").run()
    app.text_area(key="whatif_edges").set_value("p1, nobody")
    button(app, "Add edit")
    # Said at the form where it was typed, which keeps it; nothing is edited.
    assert "no node is called 'nobody'" in app.error[0].value and not edits(app)
    assert app.text_area(key="whatif_edges").value == "p1, nobody"
    app.text_area(key="whatif_edges").set_value("p1, p1")
    button(app, "Add edit")
    assert "name two different nodes" in app.error[0].value and len(app.error) == 1


def test_each_edit_is_undone_by_itself(app: AppTest) -> None:
    opened(app)
    nodes(app, "p1, p2")
    for value in ("A", "B"):
        app.selectbox(key="whatif_value").set_value(value)
        button(app, "Add edit")
    app.button(key="whatif_without_0").click().run()
    assert not app.exception and "becomes B" in edits(app) and "becomes A" not in edits(app)


def test_there_is_one_way_to_retrain(app: AppTest) -> None:
    opened(app)
    nodes(app, "p1, p2")
    button(app, "Add edit")
    app.text_input(key="whatif_name").set_value("named").run()
    assert [b.label for b in app.button if "rain" in b.label] == ["Retrain"]
    words = " ".join(e.value for e in (*app.markdown, *app.caption, *app.header))
    assert not [w for w in ("re-judge", "re-train", "unseen", "no_reencode") if w in words.lower()]


@pytest.mark.slow
def test_scenarios_are_saved_compared_and_deleted(app: AppTest, root: Path) -> None:
    opened(app)
    for value, name in (("B", "first *bold*"), ("C", "second")):
        nodes(app, "p1, p2")
        app.selectbox(key="whatif_value").set_value(value)
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
    assert "becomes C" in edits(app)
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
