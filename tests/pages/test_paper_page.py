"""The page Paper: recipes with the rows that come with the package."""

import csv
import io
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import uge_core as uge
import uge_core.dashboard as ui
from uge_core.runs.recipe import recipe, recipe_names

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AppTest:
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "empty"))
    with uge.RunStore(tmp_path / "empty").writing():
        pass
    return AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60).run().switch_page("paper.py").run()


def test_every_recipe_can_be_chosen_the_most_measured_first(page: AppTest) -> None:
    choices = ui.paper_choices()
    assert set(choices) == set(recipe_names()) and len(set(choices.values())) == len(choices)
    box = page.selectbox(key="paper_recipe")
    assert box.options == list(choices.values()) and box.value == next(iter(choices))
    shares = [ui.shipped_table(name).missing / len(ui.shipped_table(name).cells) for name in choices]
    assert shares == sorted(shares)


def test_the_published_table_stands_there_with_a_verdict_for_each_number(page: AppTest) -> None:
    page.selectbox(key="paper_recipe").set_value("table-pokec-z").run()
    assert not page.exception
    for backbone in recipe("table-pokec-z").backbones:
        page.button_group(key="paper_backbone").set_value(backbone).run()
        shown = page.dataframe[0].value
        assert len(shown) == 42 and set(shown["backbone"]) == {backbone} and (shown["verdict"] != "").all()
    assert "0.8462" in set(shown["published"])
    # Nobody here has the edges of this graph.
    assert "pokec-z" in page.info[0].value and "uge reproduce table-pokec-z" in page.info[0].value
    rows = list(csv.DictReader(io.StringIO(ui.paper_csv(ui.shipped_table("table-pokec-z")))))
    assert len(rows) == 168 and rows[0]["published"] == "0.6232"


@pytest.mark.parametrize("name", recipe_names())
def test_each_recipe_draws_what_is_measured_of_it(page: AppTest, name: str) -> None:
    page.selectbox(key="paper_recipe").set_value(name).run()
    assert not page.exception
    table = ui.shipped_table(name)
    drawn = ui.paper_figure(table) is not None and bool(table.seeds)
    assert len(page.get("plotly_chart")) == drawn and len(page.info) == (not table.seeds)
    said = " ".join(m.value for m in page.markdown)
    for claim in table.recipe.claims:
        assert ui.plain_text(claim.words) in said
