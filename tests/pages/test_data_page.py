"""The Data page: bring a graph, map its columns, see the groups; ten hostile uploads each get their own message."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import uge_core as uge
import uge_core.dashboard as ui
import uge_core.runs.uploads as kept

ROOT = Path(__file__).resolve().parents[2]
NODES = "id,g\n" + "".join(f"p{i},{'ab'[i // 2 % 2]}\n" for i in range(40))
EDGES = "source,target\n" + "".join(f"p{i},p{(i * 3 + 1) % 40}\n" for i in range(40))
PEOPLE = NODES.replace("id,g", "handle,gender")
FRIENDS = EDGES.replace("source,target", "from,to")


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AppTest:
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    with uge.RunStore().writing():  # a store that is there, so no sample audit is put into it
        pass
    made = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60)
    made.run()
    made.switch_page("data.py").run()
    assert not made.exception and [t.value for t in made.title] == ["Data"]
    return made


def drop(
    app: AppTest, edges: str | bytes, nodes: str | bytes | None, names: tuple[str, str] = ("edges.csv", "nodes.csv")
) -> AppTest:
    for dropper, name, content in zip(app.get("file_uploader"), names, (edges, nodes), strict=True):
        if content is not None:
            dropper.set_value((name, content if isinstance(content, bytes) else content.encode(), "text/csv"))
    app.run()
    app.button(key="data_bring").click().run()
    assert not app.exception, app.exception
    return app


def words(app: AppTest) -> str:
    return " ".join(e.value for e in (*app.markdown, *app.caption, *app.error, *app.success, *app.warning, *app.info))


def test_two_files_show_groups_edges_and_weights(app: AppTest) -> None:
    drop(app, EDGES, NODES)
    assert "Nothing leaves this machine" in words(app) and "Kept in" in app.success[0].value
    assert [h.value for h in app.header] == ["graph"]
    assert [s.value for s in app.subheader] == ["Messages", "Group sizes", "Edges between groups", "Edge weights"]
    (sizes,) = [d.value for d in app.dataframe if "Attribute" in d.value]
    assert sizes["Attribute"].tolist() == ["g"] and sizes["Groups"].tolist() == [2]
    assert len(app.get("plotly_chart")) == 3 and all(c.proto.alt for c in app.get("plotly_chart"))
    assert ui.plain_text("g: 2 groups, the largest a with 50.0%; no value is missing") in words(app)
    assert [m.label for m in app.metric][-4:] == [
        "Smallest weight",
        "Largest weight",
        "Effective sample size",
        "Clipped share",
    ]
    (upload,) = ui.list_uploads(uge.RunStore())
    assert app.query_params["graph"] == upload.spec


HOSTILE = {
    # the first, as a refused upload leaves the graph before it in view
    "too large": (
        EDGES + "p0,p1\n" * 4000,
        NODES,
        "is larger than 0.02 MB, the most that can be uploaded; give the place of its folder",
    ),
    "ids that nobody has": (
        EDGES + "p1,ghost\n",
        NODES,
        "1 edge names a node that does not exist, first: line 42 ('p1', 'ghost')",
    ),
    "an attribute without a value": (
        EDGES,
        NODES.replace(",a\n", ",\n").replace(",b\n", ",\n"),
        "no column of people can be audited: g has no value in any row",
    ),
    "one group": (
        EDGES,
        NODES.replace(",b\n", ",a\n"),
        "no column of people can be audited: g has one value in all rows",
    ),
    "no edge": ("source,target\n", NODES, "edges.csv: there are no rows under the header"),
    "self-loops alone": ("source,target\np1,p1\np2,p2\n", NODES, "the graph has only self-loops"),
    "a column twice": (
        EDGES,
        NODES.replace("id,g", "id,g,g").replace(",a\n", ",a,a\n").replace(",b\n", ",b,b\n"),
        "column 'g' stands twice in the header",
    ),
    "a formula": (
        EDGES,
        NODES.replace(",a\n", ",=HYPERLINK(1)\n"),
        "g: 2 groups, the largest =HYPERLINK(1) with 50.0%",
    ),
    "markup": (
        EDGES,
        NODES.replace(",a\n", ",<script>alert(1)</script>\n"),
        "the largest <script>alert(1)</script> with 50.0%",
    ),
    "no text at all": (
        EDGES,
        b"\x89PNG\r\n\x1a\n" + random.Random(0).randbytes(500) + b"\0",
        "nodes.csv: is not text (it holds zero bytes)",
    ),
    "an id twice": (EDGES, NODES + "p0,a\n", "nodes.csv: 1 row repeats an id of column 'id'"),
}


@pytest.mark.slow
def test_hostile_uploads_each_get_their_own_message(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other on one page, so that nothing of the upload before is left either."""
    monkeypatch.setattr(kept, "LARGEST_MB", 0.02)
    for kind, (edges, nodes, said) in HOSTILE.items():
        drop(app, edges, nodes)
        shown = words(app)
        assert ui.plain_text(said) in shown, (kind, shown)
        others = [s for k, (_, _, s) in HOSTILE.items() if k != kind]
        assert not any(ui.plain_text(s) in shown for s in others), (kind, shown)
        assert all("<script>" not in e.value for e in (*app.markdown, *app.caption)), kind


def test_files_that_no_layout_fits_are_mapped(app: AppTest, tmp_path: Path) -> None:
    drop(app, FRIENDS, PEOPLE, ("friends.csv", "people.csv"))
    assert not app.error and "fit no known layout" in app.info[0].value
    assert "**40 of 40 ids in the edges are in the nodes.**" in words(app)
    chosen = {s.label: s.value for s in app.main.selectbox}
    assert (chosen["File of edges"], chosen["File of nodes"]) == ("friends.csv", "people.csv")
    assert (chosen["Source column"], chosen["Target column"]) == ("from", "to")
    assert chosen["Id column of the nodes"] == "handle"
    assert "sensitive:\n- gender" in app.code[0].value
    next(t for t in app.main.text_input if t.label == "Licence").set_value("CC0").run()
    app.button(key="data_write").click().run()
    assert not app.exception and not app.error
    assert "Wrote" in app.success[0].value and "licence CC0" in words(app)
    assert ui.plain_text("gender: 2 groups") in words(app)
    (upload,) = ui.list_uploads(uge.RunStore())
    assert uge.load(upload.folder).layout == "dataset-yaml"
    app.toggle(key="data_mapping").set_value(True).run()
    assert not app.exception
    assert next(t for t in app.main.text_input if t.label == "Licence").value == "CC0"


def test_codes_for_not_given_are_ticked_and_can_be_kept_as_values(app: AppTest) -> None:
    people = "handle,age\n" + "".join(f"p{i},{[-9, 20, 30, 40][i % 4]}\n" for i in range(40))
    drop(app, FRIENDS, people, ("friends.csv", "people.csv"))
    (tick,) = (c for c in app.main.checkbox if c.label.startswith("These cells mean"))
    assert tick.value and tick.label.endswith(ui.plain_text("age: -9")) and "- '-9'" in app.code[0].value
    tick.set_value(False).run()
    assert not app.exception and "missing" not in app.code[0].value


def test_two_readings_are_said_until_one_is_chosen(app: AppTest) -> None:
    people = "nr,handle,gender\n" + "".join(f"{i + 1},{(i * 7) % 40 + 1},{'ab'[i % 2]}\n" for i in range(40))
    friends = "a,b\n" + "".join(f"{i + 1},{(i + 1) % 40 + 1}\n" for i in range(40))
    drop(app, friends, people, ("friends.csv", "people.csv"))
    assert "fit" in app.warning[0].value and "alike" in app.warning[0].value
    next(s for s in app.main.selectbox if s.label == "Id column of the nodes").set_value("handle").run()
    assert not app.exception and not app.warning


def test_a_wrong_column_shows_orphans_before_anything_is_written(app: AppTest) -> None:
    drop(app, FRIENDS, PEOPLE, ("friends.csv", "people.csv"))
    next(s for s in app.main.selectbox if s.label == "Id column of the nodes").set_value("gender").run()
    assert not app.exception
    assert "40 ids without a row in the nodes, first: p0" in words(app) and "0 of 40 ids" in words(app)


@pytest.mark.parametrize(("policy", "said", "n"), [("drop", "left out", 40), ("add", "unknown", 41)])
def test_edges_to_nodes_without_a_row(app: AppTest, policy: str, said: str, n: int) -> None:
    drop(app, FRIENDS + "p1,ghost\n", PEOPLE, ("friends.csv", "people.csv"))
    assert "1 id without a row in the nodes, first: ghost. Edges to them block the graph" in words(app)
    next(s for s in app.main.selectbox if s.label == "Nodes without a row").set_value(policy).run()
    assert f"unknown_nodes: {policy}" in app.code[0].value and said in words(app)
    app.button(key="data_write").click().run()
    assert not app.exception and "Wrote" in app.success[0].value
    assert all("too few people" in e.value for e in app.error)  # of 40 people, where one more has no value
    (upload,) = ui.list_uploads(uge.RunStore())
    assert uge.load(upload.folder).num_nodes == n


def test_recognised_columns_can_be_read_otherwise(app: AppTest) -> None:
    drop(app, EDGES, NODES)
    app.toggle(key="data_mapping").set_value(True).run()
    assert not app.exception and "40 of 40 ids" in words(app)
    app.button(key="data_write").click().run()
    assert not app.exception and not app.error
    assert "read by the layout dataset-yaml" in words(app)


@pytest.mark.parametrize(
    ("place", "said"), [("gone", "no such folder or file"), ("empty", "no recognised layout. Found: no files")]
)
def test_a_place_without_a_graph_is_a_sentence(app: AppTest, tmp_path: Path, place: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    app.text_input(key="data_path").set_value(str(tmp_path / place)).run()
    app.button(key="data_open_path").click().run()
    assert not app.exception and ui.plain_text(said) in app.error[0].value


def test_an_upload_is_deleted_and_that_is_said(app: AppTest) -> None:
    drop(app, EDGES, NODES)
    (upload,) = ui.list_uploads(uge.RunStore())
    assert "2 files of" in words(app)
    app.button(key=f"data_delete_{upload.name}").click().run()
    assert not app.exception and not upload.folder.exists()
    assert "Removed 2 files" in app.success[0].value and "No graph is loaded yet" in words(app)


def test_a_sample_goes_on_to_the_runs_page(app: AppTest) -> None:
    app.button(key="data_sample:titles").click().run()
    assert not app.exception and [h.value for h in app.header] == ["titles"]
    app.button(key="data_train").click().run()
    app.switch_page("runs.py").run()
    assert not app.exception and app.text_input(key="runs_data").value == "sample:titles"


def test_runs_offers_the_uploads(app: AppTest) -> None:
    drop(app, EDGES, NODES)
    (upload,) = ui.list_uploads(uge.RunStore())
    app.switch_page("runs.py").run()
    assert app.text_input(key="runs_data").value == upload.spec
    app.button_group(key="runs_at_hand").set_value("sample:titles").run()
    assert not app.exception and app.text_input(key="runs_data").value == "sample:titles"


@pytest.mark.slow
def test_the_address_opens_a_graph_and_never_fetches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    for asked, said in (("sample:town", "town"), ("pyg:LastFMAsia", "is fetched only when it is named")):
        app = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60)
        app.run()
        app.switch_page("data.py")
        app.query_params["graph"] = asked
        app.run()
        assert not app.exception
        assert said in (app.header[0].value if app.header else app.error[0].value)


@pytest.mark.slow
def test_the_web_process_stays_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from streamlit.testing.v1 import AppTest; app = AppTest.from_file(sys.argv[1], "
        "default_timeout=60);"
        "app.run(); app.switch_page('data.py').run(); app.button(key='data_sample:town').click().run();"
        "assert app.header[0].value == 'town' and not app.exception, app.exception;"
        "print(sorted({'torch', 'sklearn', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(ROOT / "pages" / "main.py")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "", "UGE_STORE": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.strip().splitlines()[-1:] == ["[]"], done.stderr


def test_uploads_are_said_to_be_for_all_readers_where_people_sign_in(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "readable by you alone" in words(app)
    monkeypatch.setattr("streamlit.user_info._get_user_info", lambda: {"is_logged_in": True})
    app.run()
    assert "readable by the readers of this dashboard" in words(app) and "you alone" not in words(app)


def test_weights_that_are_all_one_are_said_in_red_above_them(app: AppTest, tmp_path: Path) -> None:
    folder = tmp_path / "thin"
    folder.mkdir()
    rng = random.Random(0)
    rows = "".join(f"p{i},{'ab'[i % 2]},{(i % 2 + i // 120 * 2)}\n" for i in range(240))
    (folder / "nodes.csv").write_text(f"id,region,town\n{rows}")
    pairs = "".join(f"p{rng.randrange(240)},p{rng.randrange(240)}\n" for _ in range(900))
    (folder / "edges.csv").write_text(f"source,target\n{pairs}")
    app.text_input(key="data_path").set_value(str(folder)).run()
    app.button(key="data_open_path").click().run()
    assert not app.exception
    (banner,) = app.error
    assert "All weights are 1" in banner.value and "alike in town all have the same region" in banner.value
    titles = [e for e in app.main if e.type in ("subheader", "error", "multiselect", "metric")]
    assert [type(e).__name__ for e in titles].index("Error") < [type(e).__name__ for e in titles].index("Multiselect")
    app.toggle(key="data_independence").set_value(True).run()
    assert not app.exception and not app.error
    app.multiselect(key="data_sensitive").set_value([]).run()
    assert not app.error and "Choose the attributes" in app.info[0].value
