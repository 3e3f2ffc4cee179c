"""The Runs page with real workers: train from the form, watch, cancel, resume, delete."""

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from background import end_processes
from streamlit.testing.v1 import AppTest

import uge_core.dashboard as ui
from uge_core.dashboard.jobs.queue import Queue
from uge_core.dashboard.training_form import training_form
from uge_core.progress import Progress
from uge_core.runs.store import RunStore

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunStore]:
    store = RunStore(tmp_path / "store")
    monkeypatch.setenv("UGE_STORE", str(store.root))
    yield store
    end_processes(store)


def opened() -> AppTest:
    app = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60)
    app.run()
    app.switch_page("runs.py").run()
    assert not app.exception and [t.value for t in app.title] == ["Runs"]
    return app


def enqueue(town: Path, store: RunStore, **chosen: object) -> int:
    form = training_form(str(town), store)
    made = form.settings(**({"backbone": "node2vec", "methods": ["none"], "device": "cpu"} | chosen))  # type: ignore[arg-type]
    return ui.enqueue(form, made, store)


def wait(store: RunStore, status: str) -> None:
    limit = time.monotonic() + 120
    while not any(c.status == status and (c.share or status != "running") for c in cards(store)):
        assert time.monotonic() < limit, cards(store)
        time.sleep(0.1)


def cards(store: RunStore) -> list[object]:
    view = ui.jobs_view(store)
    return [*view.open, *view.over]  # type: ignore[list-item]


def words(app: AppTest) -> str:
    return " ".join(e.value for e in (*app.markdown, *app.caption))


@pytest.mark.slow
def test_train_watch_cancel_and_resume(town: Path, store: RunStore) -> None:
    app = opened()
    app.text_input(key="runs_data").set_value(str(town)).run()
    app.multiselect(key="runs_methods").set_value(["none", "uge-c"]).run()
    app.text_input(key="runs_lams").set_value("0.1, 0.5").run()
    app.number_input(key="runs_epochs").set_value(100_000).run()
    app.selectbox(key="runs_device").set_value("cpu").run()
    assert "3 runs to train: " in words(app)
    app.button(key="runs_train").click().run()
    assert not app.exception
    assert "Job 1: No debiasing, UGE-C on town" in words(app)
    wait(store, "running")
    app.run()
    assert any("Training · Epoch" in bar.proto.text for bar in app.get("progress"))
    app.button(key="cancel_1").click().run()
    wait(store, "cancelled")
    app.run()
    assert "Cancelled" in words(app) and "uge runs resume" in words(app)
    assert "interrupted" in set(app.dataframe[0].value["Status"])  # a run in a pass of its own may have been done
    app.button(key="resume_1").click().run()
    assert not app.exception
    wait(store, "running")


@pytest.mark.slow
def test_a_failed_job_shows_its_last_lines_and_what_to_do(town: Path, store: RunStore) -> None:
    enqueue(town, store, methods=["uge-r"], sensitive=["city"], lams="1e308", epochs=20)
    wait(store, "failed")
    app = opened()
    assert "Lower the learning rate" in words(app) and "not finite" in app.code[0].value
    app.button(key="forget_1").click().run()
    assert "No job yet" in words(app)
    assert app.dataframe[0].value["Status"].tolist() == ["failed"]


def test_deleting_says_first_what_goes(store_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UGE_STORE", str(store_copy))
    store = RunStore(store_copy)
    app = opened()
    run = store.list()[0]
    app.multiselect(key="runs_chosen").set_value([run.id]).run()
    assert "1 run with audit, history and settings" in words(app) and "embeddings" in words(app)
    assert run.folder.exists()
    app.button(key="runs_delete").click().run()
    assert not app.exception and not run.folder.exists()
    assert run.id not in set(app.dataframe[0].value["Id"])


def test_a_graph_that_is_not_there_is_a_sentence(store: RunStore) -> None:
    app = opened()
    app.text_input(key="runs_data").set_value("no/such/place").run()
    assert not app.exception and "no such folder" in app.error[0].value


def test_a_filter_narrows_the_history(seeded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UGE_STORE", str(seeded))
    app = opened()
    assert len(app.dataframe[0].value) == 4
    app.text_input(key="runs_filter").set_value("uge-w").run()
    assert app.dataframe[0].value["Run"].tolist() == ["UGE-W · city"]


@pytest.mark.slow
def test_two_runs_are_compared_and_measured_in_pairs(
    store_copy: Path, monkeypatch: pytest.MonkeyPatch, work_here: Callable[[RunStore], None]
) -> None:
    monkeypatch.setenv("UGE_STORE", str(store_copy))
    store = RunStore(store_copy)
    before, after = (next(r.id for r in store.list() if r.config["method"] == m) for m in ("none", "uge-ok"))
    app = opened()
    app.multiselect(key="runs_chosen").set_value([before, after]).run()
    assert not app.exception
    assert "**A:** No debiasing" in words(app) and "not paired" in words(app)
    settings = app.dataframe[2].value.set_index("Setting")
    assert settings.loc["method"].tolist() == ["none", "uge-ok"] and "backbone" not in settings.index
    links = app.get("page_link")
    assert {link.proto.query_string for link in links} == {
        f"data={store.load(before).dataset['fingerprint'][:8]}&before={before}&after={after}&attribute=city"
    } and len(links) == 3
    # what the button puts into the queue
    job_id = ui.enqueue_comparison(store, before, after)
    assert ui.enqueue_comparison(store, after, before) == job_id
    work_here(store)
    assert [card.status for card in ui.jobs_view(store).over] == ["finished"]
    app = opened()
    app.multiselect(key="runs_chosen").set_value([before, after]).run()
    table = app.dataframe[1].value.set_index(["Measure", "Of"])
    row = table.loc[("AUC", "city · strongest attacker · unseen")]
    assert row["Shows"] == "B is lower" and row["p (Holm)"] < 0.05 and row["B - A"] == row["B"] - row["A"]
    # the other way round the same record says the same, turned
    turned = ui.comparison_view(store, after, before).table.set_index(["Measure", "Of"])
    assert turned.loc[("AUC", "city · strongest attacker · unseen"), "B - A"] == -row["B - A"]
    assert app.button(key="runs_swap") and len(list(store.comparisons.iterdir())) == 1
    assert ui.comparison_view(store, before, after).csv().startswith("Part,Measure,A,B,Of")
    store.delete(before)
    assert not list(store.comparisons.iterdir())


def test_archived_runs_leave_lists_and_choices_until_they_are_brought_back(
    store_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UGE_STORE", str(store_copy))
    store = RunStore(store_copy)
    run = next(r for r in store.list() if r.config["method"] == "uge-w")
    app = opened()
    app.multiselect(key="runs_chosen").set_value([run.id]).run()
    app.button(key="runs_archive").click().run()
    assert not app.exception and run.folder.exists()
    assert run.id not in set(app.dataframe[0].value["Id"])
    assert all(run.id not in s.options for s in app.selectbox if s.key == "pick_after")
    assert run.id not in ui.frame(store).runs and run.id not in ui.leakage_choices(store).runs
    app.toggle(key="runs_archived").set_value(True).run()
    shown = app.dataframe[0].value.set_index("Id")
    assert shown.loc[run.id, "Status"] == "finished, archived" and len(shown) == 4
    app.multiselect(key="runs_chosen").set_value([run.id]).run()
    app.button(key="runs_back").click().run()
    assert store.load(run.id).archived is None and len(ui.frame(store).runs) == 4


def test_names_in_the_data_are_words_and_nothing_more(
    town: Path, store: RunStore, tmp_path: Path, work_here: Callable[[RunStore], None]
) -> None:
    name, folder = "![x](http://evil.example/p.png)", tmp_path / "evil"
    shutil.copytree(town, folder)
    nodes = (folder / "nodes.csv").read_text().replace("id,city", f"id,{name}", 1)
    (folder / "nodes.csv").write_text(nodes)
    job_id = enqueue(folder, store, methods=["uge-w"], sensitive=[name])
    queue = Queue(store)
    job = queue.claim("cpu")
    assert job is not None and job.id == job_id
    queue.beat(job_id, asdict(Progress("auditing", 0, 1, f"auditing, leakage of {name}")), [])
    app = opened()
    app.text_input(key="runs_data").set_value(str(folder)).run()
    app.multiselect(key="runs_methods").set_value(["uge-w"]).run()
    app.multiselect(key="runs_sensitive").set_value([]).run()
    shown = [e.value for e in (*app.markdown, *app.caption, *app.warning)]
    shown += [w.help for w in (*app.multiselect, *app.selectbox, *app.text_input, *app.number_input) if w.help]
    shown += [e.proto.text for e in app.get("progress")]
    told = [text for text in shown if "evil.example" in text]
    assert len(told) >= 3 and not [text for text in told if "](" in text.replace("\\]", "")], told


def test_what_was_chosen_stays_when_the_page_is_left(town: Path, store: RunStore) -> None:
    app = opened()
    app.text_input(key="runs_data").set_value(str(town)).run()
    app.multiselect(key="runs_methods").set_value(["none", "uge-r"]).run()
    app.selectbox(key="runs_backbone").set_value("gcn").run()
    app.multiselect(key="runs_sensitive").set_value(["age", "gender"]).run()
    app.button_group(key="runs_how").set_value("together").run()
    app.text_input(key="runs_lams").set_value("0.1, 0.5").run()
    app.text_input(key="runs_seeds").set_value("0, 1").run()
    app.number_input(key="runs_epochs").set_value(7).run()
    app.selectbox(key="runs_device").set_value("cpu").run()
    app.selectbox(key="runs_unknown").set_value("level").run()
    app.checkbox(key="runs_force").set_value(True).run()
    option = next(n for n in app.number_input if n.label == "Numbers per person")
    option.set_value(8).run()
    choice = next(s for s in app.selectbox if s.label == "Size of a gap")
    choice.set_value("absolute").run()
    app.text_input(key="runs_filter").set_value("nothing").run()
    before = words(app)
    app.switch_page("overview.py").run()
    app.switch_page("runs.py").run()
    assert not app.exception
    assert app.text_input(key="runs_data").value == str(town)
    assert app.multiselect(key="runs_methods").value == ["none", "uge-r"]
    assert app.selectbox(key="runs_backbone").value == "gcn"
    assert app.multiselect(key="runs_sensitive").value == ["age", "gender"]
    assert app.button_group(key="runs_how").value == "together"
    assert [app.text_input(key=f"runs_{k}").value for k in ("lams", "seeds", "filter")] == [
        "0.1, 0.5",
        "0, 1",
        "nothing",
    ]
    assert (app.number_input(key="runs_epochs").value, app.selectbox(key="runs_device").value) == (7, "cpu")
    assert app.selectbox(key="runs_unknown").value == "level" and app.checkbox(key="runs_force").value
    assert next(n for n in app.number_input if n.label == "Numbers per person").value == 8
    assert next(s for s in app.selectbox if s.label == "Size of a gap").value == "absolute"
    assert words(app).partition("runs to train")[0] == before.partition("runs to train")[0]
    # another graph has attributes of its own
    app.text_input(key="runs_data").set_value("sample:titles").run()
    assert not app.exception and app.multiselect(key="runs_methods").value == ["none", "uge-r"]
    assert set(app.multiselect(key="runs_sensitive").value) <= set(app.multiselect(key="runs_sensitive").options) | {
        "gender"
    }
    assert app.selectbox(key="runs_backbone").value == "mf"


def test_methods_say_what_they_do_and_settings_have_names(town: Path, store: RunStore) -> None:
    app = opened()
    app.text_input(key="runs_data").set_value(str(town)).run()
    app.multiselect(key="runs_methods").set_value(["none", "uge-r", "cfc"]).run()
    shown = words(app)
    for said in (
        "what every other method is compared with",
        "differences between groups' average scores",
        "an adversary",
    ):
        assert ui.plain_text(said) in shown
    widgets = (*app.selectbox, *app.multiselect, *app.text_input, *app.number_input, *app.checkbox)
    assert not [w.label for w in widgets if "_" in w.label]
    option = next(s for s in app.selectbox if s.label == "What counts alike in the penalty")
    assert option.options == ["each pair of people", "each pair of groups"] and "--set pair_weighting=" in option.help


@pytest.fixture(scope="module")
def several_seeds(plain_town: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two methods, of which one has three seeds and the other two."""
    import uge_core as uge

    root = tmp_path_factory.mktemp("seeds") / "store"
    graph = uge.load(plain_town)
    made: dict[str, Any] = {"store": uge.RunStore(root), "epochs": 5, "device": "cpu"}
    uge.sweep(graph, methods=["none"], seeds=[0, 1, 2], **made)
    uge.sweep(graph, sensitive="city", methods=["uge-c"], lams=[0.5], seeds=[1, 2], **made)
    return root


@pytest.fixture
def seeds(several_seeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    target = tmp_path / "several"
    shutil.copytree(several_seeds, target, ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    monkeypatch.setenv("UGE_STORE", str(target))
    return RunStore(target)


def test_runs_that_differ_in_their_seed_are_one_row_until_they_are_opened(seeds: RunStore) -> None:
    app = opened()
    table = app.dataframe[0].value
    assert sorted(zip(table["Run"], table["Seeds"], strict=True)) == [
        ("No debiasing", "3 seeds"),
        ("UGE-C λ 0.5 · city", "2 seeds"),
    ]
    assert table["Status"].tolist() == ["finished", "finished"] and "5 of 5 runs in 2 rows" in words(app)
    picker = app.multiselect(key="runs_chosen")
    assert sorted(picker.options) == ["No debiasing · 3 seeds · plain-town", "UGE-C λ 0.5 · 2 seeds · plain-town"]
    by_method = {run.config["method"]: run.id for run in seeds.list() if run.config["seed"] in (0, 1)}
    both = [
        next(k for k in ui.history_view(seeds).runs if ui.history_view(seeds).labels[k].startswith(m)) for m in "NU"
    ]
    picker.set_value(both).run()
    assert not app.exception and "5 runs with audit" in words(app)
    # of a seed that both have, one beside the other
    assert app.button_group(key="runs_pair_of").options == ["seed 1", "seed 2"]
    configs = {run.id: (run.config["method"], run.config["seed"]) for run in seeds.list()}
    shown = [i for i in configs if f"`{i}`" in words(app)]
    assert sorted(configs[i] for i in shown) == [("none", 1), ("uge-c", 1)] and by_method
    # opened, the same runs are chosen
    app.toggle(key="runs_by_seed").set_value(True).run()
    assert not app.exception and len(app.dataframe[0].value) == 5
    assert sorted(app.dataframe[0].value["Seeds"]) == ["seed 0", "seed 1", "seed 1", "seed 2", "seed 2"]
    assert sorted(app.multiselect(key="runs_chosen").value) == sorted(configs)
    app.multiselect(key="runs_chosen").set_value([shown[0]]).run()
    app.toggle(key="runs_by_seed").set_value(False).run()
    assert len(app.multiselect(key="runs_chosen").value) == 1


def test_what_is_done_to_a_row_is_done_to_all_its_runs(seeds: RunStore) -> None:
    view = ui.history_view(seeds)
    (key,) = [k for k, label in view.labels.items() if label.startswith("No")]
    app = opened()
    app.multiselect(key="runs_chosen").set_value([key]).run()
    app.button(key="runs_archive").click().run()
    assert not app.exception
    assert {r.config["seed"] for r in seeds.list(archived=True) if r.archived is not None} == {0, 1, 2}
    assert app.dataframe[0].value["Seeds"].tolist() == ["2 seeds"]
    (left,) = ui.history_view(seeds).runs
    app.multiselect(key="runs_chosen").set_value([left]).run()
    app.button(key="runs_delete").click().run()
    assert not app.exception and not seeds.list()


def test_labels_of_runs_are_words_that_tell_them_apart(seeds: RunStore, plain_town: Path) -> None:
    import uge_core as uge

    graph = uge.load(plain_town)
    uge.sweep(graph, methods=["none"], backbones=["gcn"], seeds=[0], store=seeds, epochs=5, device="cpu")
    uge.sweep(graph, methods=["none"], seeds=[0], store=seeds, epochs=6, device="cpu")
    for by_seed in (False, True):
        labels = ui.history_view(seeds, by_seed=by_seed).labels
        assert len(set(labels.values())) == len(labels)
        assert all(len(label) <= 60 for label in labels.values()), labels
        assert not [label for key, label in labels.items() if key[:6] in label], labels
    assert any(label.endswith("gcn") for label in labels.values())
    assert any(label.endswith("6 epochs") for label in labels.values())
