"""What-if as people use it: an edit, before and after, undo, scenarios, the ego network."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import uge_core as uge
from uge_core.explore.whatif.edits import MergeValues
from uge_core.explore.whatif.scenario import Scenario, Scenarios

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def root(seeded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store of this module's own, and the end of its what-if process."""
    target = tmp_path_factory.mktemp("whatif-page") / "store"
    shutil.copytree(seeded, target, ignore=shutil.ignore_patterns("*.sock", "*.pid"))
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


@pytest.fixture
def kept(root: Path) -> Scenarios:
    """The scenarios of the store, without the drafts of other tests."""
    found = Scenarios(uge.RunStore(root))
    for draft in found.drafts():
        found.drop_draft(draft.token)
    return found


def opened_by(address: AppTest) -> AppTest:
    """A new session with the address of another one, as a reload is and whoever was sent the address."""
    fresh = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120)
    fresh.run()
    for name in ("draft", "before"):
        if name in address.query_params:
            fresh.query_params[name] = address.query_params[name]
    fresh.switch_page("whatif.py").run()
    assert not fresh.exception
    return fresh


def test_edits_outlive_a_change_of_page_and_a_reload(app: AppTest, kept: Scenarios) -> None:
    opened(app)
    nodes(app, "p1, p2")
    app.selectbox(key="whatif_value").set_value("B")
    button(app, "Add edit")
    app.text_input(key="whatif_name").set_value("tried").run()
    app.switch_page("method.py").run()
    app.switch_page("whatif.py").run()
    assert looked_at(app) == ["p1", "p2"] and "becomes B" in edits(app)
    assert app.text_input(key="whatif_name").value == "tried"
    again = opened_by(app)
    assert "becomes B" in edits(again) and again.text_input(key="whatif_name").value == "tried"
    # It is nobody's scenario, and goes when it is emptied by whom it is from.
    token = app.query_params["draft"]
    assert kept.list() == [] and token in {d.token for d in kept.drafts()}
    button(app, "Remove all")
    assert token not in {d.token for d in kept.drafts()} and "draft" not in app.query_params


def test_whoever_opens_the_address_of_a_draft_changes_a_copy(app: AppTest, kept: Scenarios) -> None:
    opened(app)
    nodes(app, "p1, p2")
    app.selectbox(key="whatif_value").set_value("B")
    button(app, "Add edit")
    token = app.query_params["draft"]

    def draft() -> str:
        return " ".join(e.words for d in kept.drafts() if d.token == token for e in d.scenario.edits)

    first, reader, other = draft(), opened_by(app), opened_by(app)
    assert "becomes B" in edits(reader) and reader.query_params["draft"] == token and len(kept.drafts()) == 1
    assert any("changes a copy" in c.value for c in reader.caption) and not any(
        "a copy" in c.value for c in app.caption
    )
    # A look at another page is no change.
    reader.switch_page("method.py").run()
    reader.switch_page("whatif.py").run()
    assert reader.query_params["draft"] == token and len(kept.drafts()) == 1
    # One edits, one removes all: the first reader's stay, and the address is the copy's from then on.
    nodes(reader, "p5")
    reader.selectbox(key="whatif_value").set_value("C")
    button(reader, "Add edit")
    copy = reader.query_params["draft"]
    assert not any("changes a copy" in c.value for c in reader.caption)
    assert copy != token and draft() == first and len(kept.drafts()) == 2
    button(other, "Remove all")
    assert "draft" not in other.query_params and draft() == first
    # And the other way round: what the sender does next is not in the copy.
    button(app, "Undo")
    assert "becomes B" in edits(reader) and "becomes C" in edits(reader)
    button(reader, "Remove all")
    assert not kept.drafts()


def test_an_address_does_not_say_whom_somebody_looked_at(app: AppTest, kept: Scenarios) -> None:
    opened(app)
    nodes(app, "p17, p23")
    assert "draft" not in app.query_params and not kept.drafts()
    app.selectbox(key="whatif_kind").set_value("threshold").run()
    button(app, "Add edit")
    assert not {"p17", "p23"} & {str(v) for values in app.query_params.values() for v in values}
    assert looked_at(app) == ["p17", "p23"] and not looked_at(opened_by(app))
    assert not any("p17" in p.read_text() for p in kept.folder.glob("draft-*.json"))
    button(app, "Remove all")


@pytest.fixture(scope="module")
def two_graphs(seeded: Path, plain_town: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store with runs of two graphs, whose people have other ids."""
    folder = tmp_path_factory.mktemp("two-graphs")
    (folder / "village").mkdir()
    for file in plain_town.glob("*.csv"):
        (folder / "village" / file.name).write_text(re.sub(r"\bp(?=\d)", "q", file.read_text()))
    root = folder / "store"
    shutil.copytree(seeded, root, ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    uge.sweep(
        uge.load(folder / "village"),
        sensitive="city",
        methods=["none"],
        store=uge.RunStore(root),
        epochs=20,
        device="cpu",
        source={"spec": str(folder / "village"), "attributes": None},
    )
    yield root
    stop(root)


def test_nothing_of_one_graph_is_kept_in_another_ones_edits(monkeypatch: pytest.MonkeyPatch, two_graphs: Path) -> None:
    monkeypatch.setenv("UGE_STORE", str(two_graphs))
    store = uge.RunStore(two_graphs)
    village, town = sorted({r.dataset["fingerprint"] for r in store.list()}, key=lambda f: of(store, f) != "village")
    app = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120)

    def turn(data: str) -> None:
        app.selectbox(key="pick_data").set_value(data[:8]).run()
        assert not app.exception and not app.error and app.session_state["whatif_draft"].data == data

    opened(app)
    turn(town)
    nodes(app, "p1, p2")
    app.selectbox(key="whatif_value").set_value("B")
    button(app, "Add edit")
    app.text_input(key="whatif_name").set_value("of the town").run()
    app.text_input(key="whatif_find").set_value("p3").run()
    turn(village)
    assert not looked_at(app) and not edits(app) and "draft" not in app.query_params
    assert app.text_input(key="whatif_name").value == "" and app.text_input(key="whatif_find").value == ""
    nodes(app, "q5, q6")
    button(app, "Add edit")
    # Each graph has its own edits again, without the other one's people.
    turn(town)
    assert "nodes p1, p2 becomes B" in edits(app) and app.text_input(key="whatif_name").value == "of the town"
    assert not looked_at(app)
    turn(village)
    assert "nodes q5, q6" in edits(app) and not looked_at(app) and app.text_input(key="whatif_name").value == ""
    written = {d.scenario.data: d.scenario for d in Scenarios(store).drafts() if d.scenario}
    assert written[town].nodes == ("p1", "p2") and written[village].nodes == ("q5", "q6") and len(written) == 2
    # Whom another page sends are people of the graph that is shown now, whatever graph was edited before.
    app.switch_page("projection.py").run()
    app.selectbox(key="pick_data").set_value(town[:8]).run()
    app.multiselect(key="projection_groups").set_value(["B"]).run()
    app.button(key="projection_send").click().run()
    sent = app.session_state["whatif_nodes"]
    assert not app.exception and len(sent) > 10 and all(name.startswith("p") for name in sent)
    assert app.session_state["whatif_draft"].data == town


def of(store: uge.RunStore, fingerprint: str) -> str:
    """What the graph is called."""
    return next(r.dataset["name"] for r in store.list() if r.dataset["fingerprint"] == fingerprint)


def test_another_graphs_draft_and_a_forged_name_are_no_draft_of_this_one(app: AppTest, root: Path) -> None:
    kept = Scenarios(uge.RunStore(root))
    other = kept.keep_draft("", Scenario("another graph", (MergeValues("city", ("A", "B"), "AB"),)))
    for token in (other, "../../x", "f" * 16):
        fresh = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120)
        fresh.run()
        fresh.query_params["draft"] = token
        fresh.switch_page("whatif.py").run()
        assert not fresh.exception and not edits(fresh) and not fresh.error
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
