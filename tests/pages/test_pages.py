"""The pages, entered by their frame's absolute path (from app.py AppTest yields nothing)."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from background import end_processes
from page_titles import PAGES, heading
from streamlit.testing.v1 import AppTest

import uge_core as uge
from uge_core.cli import main as cli
from uge_core.explore.whatif.edits import Threshold
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.registry import names
from uge_core.runs.names import method_class

ROOT = Path(__file__).resolve().parents[2]
TITLES = {f"{page or 'overview'}.py": heading(title) for page, title in PAGES.items()}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AppTest:
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "empty"))
    with uge.RunStore(tmp_path / "empty").writing():  # a store that is there, so no sample audit is put into it
        pass
    return AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60)


def opened(app: AppTest, page: str) -> AppTest:
    app.run()
    if page != "overview.py":
        app.switch_page(page).run()
    assert not app.exception, app.exception
    assert [t.value for t in app.title] == [TITLES[page]]
    return app


def test_every_page_is_tested() -> None:
    assert set(TITLES) == {p.name for p in (ROOT / "pages").glob("*.py")} - {"main.py"}


@pytest.mark.parametrize("page", TITLES)
def test_an_empty_store_says_how_to_begin(app: AppTest, page: str) -> None:
    opened(app, page)
    if page == "paper.py":
        return  # what it shows comes with the package
    assert len(app.info) == (page != "method.py")
    if page == "overview.py":
        program, *arguments = shlex.split(app.code[0].value)
        assert program == "uge" and cli.run([*arguments, "--dry-run"]) == 0
    assert not app.get("plotly_chart")


def test_overview_lists_runs_beside_the_floors(app: AppTest, seeded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UGE_STORE", str(seeded))
    opened(app, "overview.py")
    table = app.dataframe[0].value
    assert set(table["Run"]) == {"No debiasing", "UGE-W · city", "UGE-C λ 0.5 · city", "UGE-OK (ours) λ 0.3 · city"}
    assert set(table["Attribute"]) == {"city", "gender", "age"}
    assert table["majority"].notna().all() and table["random"].notna().all() and table["people"].notna().all()
    treated = table[table["Treated"]]
    assert set(treated["Attribute"]) == {"city"} and set(treated["Exposure"]) == {"unseen"}
    words = " ".join(m.value for m in app.markdown)
    assert "matched NDCG@10" in table and set(table["Usable"]) <= {"yes", "no", "not known"}
    # A card for each attribute: a verdict, its picture with n and floors, and what to do next.
    headlines = [s.value for s in app.subheader]
    pictures = [h.proto.body for h in app.get("html") if "uge-gauge" in h.proto.body]
    assert len(headlines) == len(pictures) == 3 and ": city" in headlines[0]
    assert all('aria-label="AUC of the strongest attacker' in p and "0.5, a coin" in p for p in pictures)
    links = [p.proto.label for p in app.get("page_link")]
    if set(table["Usable"]) == {"no"}:
        assert all("not usable" in h for h in headlines) and links.count("Train it anew") == 3
    else:
        assert "a coin gets 50 %" in words and all("n = " in p for p in pictures)


def test_overview_shows_what_is_not_audited(app: AppTest, store_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = uge.RunStore(store_copy)
    other = store.list()[0]
    store.begin("f" * 12, other.config, other.dataset)
    store.interrupt("f" * 12)
    monkeypatch.setenv("UGE_STORE", str(store_copy))
    opened(app, "overview.py")
    assert app.dataframe[1].value["Status"].tolist() == ["interrupted"]


def test_leakage_draws_dots_with_floors(app: AppTest, seeded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UGE_STORE", str(seeded))
    opened(app, "leakage.py")
    assert not app.info
    (chart,) = app.get("plotly_chart")
    traces = json.loads(chart.proto.spec)["data"]
    assert {t["name"] for t in traces} >= {"No debiasing", "UGE-C λ 0.5 · city", "majority", "random", "numbers"}
    assert {t["type"] for t in traces} == {"scatter"}
    assert "city, No debiasing: " in chart.proto.alt and "majority" in chart.proto.alt
    before = json.loads(chart.proto.spec)["data"]
    app.button_group(key="metric").set_value("micro_f1").run()
    assert not app.exception
    assert json.loads(app.get("plotly_chart")[0].proto.spec)["data"] != before


def test_runs_without_an_attribute_are_no_fault(app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    edges = [f"p{i},p{(i + step) % 30}" for i in range(30) for step in (1, 2)]
    (tmp_path / "data" / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    (tmp_path / "data" / "nodes.csv").write_text("\n".join(["id", *(f"p{i}" for i in range(30))]) + "\n")
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    uge.train(uge.load(tmp_path / "data"), epochs=2, device="cpu")
    opened(app, "overview.py")
    for page in ("leakage.py", "fairness.py", "tradeoff.py", "projection.py", "whatif.py"):
        opened(app, page)
        assert len(app.info) == 1 and not app.get("plotly_chart")
    opened(app, "report.py")
    app.toggle[0].set_value(True).run()
    assert not app.exception and not app.error and len(app.get("download_button")) == 5


def test_a_store_that_cannot_be_read_is_a_sentence(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store.sqlite").write_text("junk" * 500)
    monkeypatch.setenv("UGE_STORE", str(tmp_path))
    app.run()
    assert not app.exception
    assert "cannot be read" in app.error[0].value


@pytest.mark.slow
def test_choices_turn_no_text_around(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Names of files, columns, values, nodes and scenarios in the lists people choose from."""
    turns = "\u202e"
    data = tmp_path / f"da{turns}ta"
    data.mkdir()
    edges = [f"{turns}p{i},{turns}p{(i + step) % 40}" for i in range(40) for step in (1, 2, 5)]
    nodes = [f"{turns}p{i},{turns}{'ab'[i // 2 % 2]}" for i in range(40)]
    (data / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    (data / "nodes.csv").write_text("\n".join([f"id,g{turns}", *nodes]) + "\n")
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    graph = uge.load(data)
    store = uge.RunStore()
    request.addfinalizer(lambda: end_processes(store))
    for method, lam in (("none", None), ("uge-c", 0.5)):
        uge.train(
            graph,
            sensitive=f"g{turns}",
            method=method,
            lam=lam,
            epochs=2,
            device="cpu",
            store=store,
            source={"spec": str(data), "attributes": None},
        )
    for level, name in ((0.3, "x"), (0.6, "y")):
        Scenarios(store).save(Scenario(graph.fingerprint, (Threshold(level),), f"{name}{turns}"))

    def choices() -> set[str]:
        assert not app.exception, app.exception
        lists = [c.options for c in (*app.selectbox, *app.multiselect)]
        return {str(o) for options in lists for o in options}

    seen = set()
    for page in TITLES:
        if page == "data.py":
            app.query_params["graph"] = str(data)
        opened(app, page)
        seen |= choices()
        if page == "data.py":
            app.toggle(key="data_mapping").set_value(True).run()
            seen |= choices()
            next(s for s in app.selectbox if s.label == "Sides").set_value("column").run()
        if page == "whatif.py":
            app.text_input(key="whatif_find").set_value("p1").run()
            seen |= {b.label for b in app.button}
            app.button(key="whatif_found_0").click().run()
            seen |= choices()
            app.selectbox(key="whatif_kind").set_value("merge").run()
        seen |= choices()
    turned = ascii(turns)[1:-1]
    assert not [c for c in seen if turns in c]
    assert {f"g{turned}", f"{turned}a", f"{turned}p1", f"x{turned}", f"{turned}a (20)"} <= seen


@pytest.mark.slow
def test_the_web_process_stays_without_torch(store_copy: Path) -> None:
    code = (
        "import sys; from streamlit.testing.v1 import AppTest; app = AppTest.from_file(sys.argv[1], "
        "default_timeout=60);"
        "app.run(); titles = {'leakage': 'Leakage', 'fairness': "
        "'Fairness', 'tradeoff': 'Trade-off', 'method': 'Method'};"
        "seen = [(app.switch_page(p + '.py').run().title[0].value, t) for p, t in titles.items()];"
        "assert all(a == b for a, b in seen) and not app.exception, app.exception;"
        "app.switch_page('projection.py').run(); assert len(app.get('plotly_chart')) == 2 and not app.exception;"
        "app.button_group(key='projection').set_value('umap').run(); assert not app.exception, app.exception;"
        "print(sorted({'torch', 'sklearn', 'numba', 'umap'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(ROOT / "pages" / "main.py")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "", "UGE_STORE": str(store_copy), "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.strip().splitlines()[-1:] == ["[]"], done.stderr


def test_every_method_has_a_name_and_a_look() -> None:
    methods = [method_class(name) for name in names("debias.methods")]
    looks = [(m.color, m.symbol) for m in methods]
    assert all(m.label for m in methods) and len({m.position for m in methods}) == len(methods)
    assert len(set(looks)) == len(looks)
