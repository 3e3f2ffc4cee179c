"""The Projection page on real runs: two pictures, what stands under them, selecting without a mouse."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import uge_core as uge
import uge_core.dashboard as ui
from uge_core.dashboard.jobs.queue import Queue
from uge_core.runs.store import RunStore

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shared(seeded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that these tests may add pictures to."""
    target = tmp_path_factory.mktemp("projection") / "store"
    shutil.copytree(seeded, target, ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    return target


@pytest.fixture
def app(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("UGE_STORE", str(shared))
    # No worker is started here: what the page asks for is looked at in the queue.
    monkeypatch.setattr(Queue, "supervise", lambda self: None)
    made = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60)
    made.run()
    made.switch_page("projection.py").run()
    assert not made.exception and [t.value for t in made.title] == ["Projection"]
    yield made


def charts(app: AppTest) -> list[Any]:
    return [json.loads(c.proto.spec)["data"] for c in app.get("plotly_chart")]


def words(app: AppTest) -> str:
    return " ".join(e.value for e in (*app.markdown, *app.caption, *app.header))


def test_two_pictures_with_the_numbers_of_the_full_space_under_each(app: AppTest) -> None:
    specs = charts(app)
    assert len(specs) == 2, "two WebGL pictures at most"
    for traces in specs:
        assert {t["type"] for t in traces} == {"scattergl"} and {t["name"] for t in traces} == {"A", "B", "C"}
        assert all(t["customdata"]["dtype"] == "i4" and t["x"]["dtype"] == "i2" for t in traces)
    alts = [c.proto.alt for c in app.get("plotly_chart")]
    assert all("coloured by city: A " in alt for alt in alts) and "No debiasing" in alts[0]
    assert len(app.metric) == 6
    assert [m.label for m in app.metric[:3]] == ["↓ AUC, strongest", "↓ Micro-F1, linear", "↓ 10 nearest alike"]
    text = words(app)
    assert "PCA of all 200 people, the same people in both pictures" in text
    assert "A projection is an illustration" in text and "Directions have no meaning" in text
    assert len(re.findall(r"n = [\d,]+ people", text)) == 6


def test_colour_and_attribute_follow_the_frame(app: AppTest) -> None:
    app.selectbox(key="pick_attribute").set_value("gender").run()
    assert not app.exception and app.selectbox(key="projection_color").value == "attribute:gender"
    assert {t["name"] for t in charts(app)[0]} == {"f", "m"}
    app.selectbox(key="projection_color").set_value("degree").run()
    assert not app.exception and "coloured by neighbours" in app.get("plotly_chart")[0].proto.alt


def test_contours_lie_over_the_points_when_asked_for(app: AppTest) -> None:
    app.toggle(key="projection_density").set_value(True).run()
    assert not app.exception
    for traces in charts(app):
        assert [t["type"] for t in traces] == ["scattergl"] * 3 + ["contour"]
    assert "Contours: equal density of people" in words(app)


@pytest.mark.slow
def test_the_address_says_where_along_its_path_run_b_stands(
    shared: Path, town: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    shutil.copytree(shared, root, ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    other = uge.train(
        uge.load(town),
        sensitive="city",
        method="uge-c",
        lam=1.5,
        epochs=60,
        options={"learning_rate": 0.05},
        device="cpu",
        store=RunStore(root),
        source={"spec": str(town), "attributes": None},
    )
    monkeypatch.setenv("UGE_STORE", str(root))
    fresh = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60)
    fresh.run()
    first = next(r.id for r in RunStore(root).list(audits=False) if r.config["lambda"] == 0.5)
    fresh.query_params["after"], fresh.query_params["projection_lambda"] = first, "1.5"
    fresh.switch_page("projection.py").run()
    assert not fresh.exception and fresh.select_slider(key="projection_lambda").value == 1.5
    # Another run B begins at its own.
    fresh.selectbox(key="pick_after").set_value(other.id).run()
    fresh.select_slider(key="projection_lambda").set_value(0.5).run()
    fresh.selectbox(key="pick_after").set_value(first).run()
    fresh.selectbox(key="pick_after").set_value(other.id).run()
    assert not fresh.exception and fresh.select_slider(key="projection_lambda").value == 1.5


def test_groups_and_ids_select_without_a_mouse(app: AppTest) -> None:
    app.multiselect(key="projection_groups").set_value(["B"]).run()
    assert not app.exception
    (table,), (people,) = ([t.value for t in found] for found in (app.dataframe, app.table))
    assert table.set_index("Group").loc["B", "Against everybody"] == "more"
    assert set(people["city"]) == {"B"} and "people selected" in words(app)
    for traces in charts(app):
        assert [bool(t["selectedpoints"]) for t in traces] == [t["name"] == "B" for t in traces]
    app.text_area(key="projection_ids").set_value("p3, p5 nobody").run()
    assert app.table[0].value["id"].tolist() == ["p3", "p5"]
    assert "There is nobody called nobody." in words(app) and "too few to compare" in words(app)
    app.button(key="projection_clear").click().run()
    assert not app.dataframe and all("selectedpoints" not in t for traces in charts(app) for t in traces)


def test_a_selection_is_sent_to_whatif_as_the_users_own_ids(app: AppTest) -> None:
    app.multiselect(key="projection_groups").set_value(["B"]).run()
    ids = app.table[0].value["id"].tolist()
    found = [b for b in app.button if b.key == "projection_send"]
    assert len(found) == (ROOT / "pages" / "whatif.py").exists()
    if found:
        found[0].click().run()
        assert not app.exception
        assert app.session_state["whatif_nodes"][: len(ids)] == ids
        assert [t.value for t in app.title] == ["What-if"]


@pytest.mark.slow
def test_a_picture_that_takes_long_is_asked_of_a_job_and_shown_once_it_is_there(app: AppTest, shared: Path) -> None:
    app.button_group(key="projection").set_value("t-sne").run()
    assert not app.exception and not app.get("plotly_chart")
    assert "2 of 2 runs have no t-SNE of all 200 people yet" in words(app)
    # One estimate for what the button does, as a range, in sight and not in a tooltip.
    assert re.search(r"Takes (\d+ to|up to) \d+ s, by a rule of thumb\.", words(app))
    app.button(key="projection_make").click().run()
    assert not app.exception
    store = RunStore(shared)
    (job,) = [j for j in Queue(store).list() if j.settings.get("kind") == "projection"]
    assert job.settings["methods"] == ["t-sne"] and job.settings["size"] == 200 and len(job.settings["path"]) == 2
    assert app.button(key=f"projection_cancel_{job.id}")
    app.button(key=f"projection_cancel_{job.id}").click().run()
    assert Queue(store).load(job.id).status == "cancelled"
    graph = ui.projection_graph(store, job.settings["path"][0])
    from uge_core.explore.projection.job import project

    project(graph, [[store.load(i) for i in job.settings["path"]]], ["t-sne"], size=200, on_timing=store.note_timing)
    # What was measured is what is said the next time.
    assert ui.projection_estimate(store, graph, "t-sne", 2, 200).endswith("by earlier pictures here")
    app.run()
    assert not app.exception and len(charts(app)) == 2
    assert "perplexity 30, seed 0" in words(app) and "scikit-learn" in words(app)
    # and the probe's confidence has become a colour
    app.selectbox(key="projection_color").set_value("confidence:city").run()
    assert not app.exception and "cross-fitted in 5 folds" in words(app)


def test_a_person_is_found_marked_in_both_pictures_and_listed_with_the_nearest(app: AppTest) -> None:
    app.text_input(key="projection_find").set_value("p17").run()
    labels = [b.label for b in app.button if (b.key or "").startswith("projection_found")]
    assert labels[0].startswith("p17\\: ") and all("p17" in label for label in labels)
    app.button(key="projection_found_0").click().run()
    assert not app.exception
    marked = [[t for t in traces if t["name"] == "the person"] for traces in charts(app)]
    assert [len(m) for m in marked] == [1, 1]
    rings = [t for traces in charts(app) for t in traces if t["name"] == "nearest in all dimensions"]
    assert len(rings) == 2 and all(t["marker"]["symbol"] == "circle-open" for t in rings)
    tables = [t.value for t in app.table]
    assert len(tables) == 2 and all(list(t.columns) == ["id", "Dot product", "Values", "Linked"] for t in tables)
    assert all(len(t) == 10 and "p17" not in set(t["id"]) for t in tables)
    assert "of the 10 nearest in A are among the nearest in B" in words(app)
    # A person's neighbours are no file.
    assert not app.dataframe and not app.get("download_button")
    app.button(key="projection_unmark").click().run()
    assert not app.table and not [t for traces in charts(app) for t in traces if t["name"] == "the person"]


def test_a_value_that_is_typed_selects_who_has_it(app: AppTest) -> None:
    app.text_input(key="projection_find").set_value("city b").run()
    everybody = next(b for b in app.button if b.label.startswith("all of city B"))
    everybody.click().run()
    assert not app.exception and "people selected" in words(app)
    assert set(next(t.value for t in app.table if "city" in t.value)["city"]) == {"B"}
    app.text_input(key="projection_find").set_value("nobody at all").run()
    assert "Nobody's id holds 'nobody at all'" in words(app)


def test_every_point_says_its_id_and_values(app: AppTest) -> None:
    for traces in charts(app):
        said = [text for t in traces for text in t["hovertext"]]
        assert len(said) == 200 and all(re.fullmatch(r"p\d+<br>city [ABC]<br>gender [fm]<br>age .+", t) for t in said)
