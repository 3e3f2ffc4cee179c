"""The Report page: rows over seeds, sign-off that stays, rules, parts, five files, a preview."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import uge_core as uge
from uge_core.cli.main import run as uge_command
from uge_core.views.report.choices import report_choices

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, sample_audit: Path) -> AppTest:
    monkeypatch.setenv("UGE_STORE", str(sample_audit))
    app = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60)
    app.run()
    app.switch_page("report.py").run()
    assert not app.exception, app.exception
    return app


def test_embeddings_are_rows_over_their_seeds_and_those_compared_are_chosen(sample_audit: Path) -> None:
    store = uge.RunStore(sample_audit)
    runs = store.list()
    choices = report_choices(store, [runs[0].id, None])
    assert len(choices.rows) == 9 and all(len(ids) == 3 for ids in choices.runs.values())
    assert sorted(i for ids in choices.runs.values() for i in ids) == sorted(r.id for r in runs)
    assert choices.first == tuple(choices.rows) and choices.licence == "CC0-1.0"


def test_rules_that_are_none_are_told_at_the_place_and_others_are_judged(page: AppTest) -> None:
    page.text_area(key="report_rules").set_value("nothing").run()
    assert any("a list of rules" in e.value for e in page.error) and not page.exception
    page.text_area(key="report_rules").set_value("- {metric: auc, direction: at_most, number: 0.6, attribute: region}")
    page.run()
    assert not page.error and not page.exception


def test_without_an_embedding_there_is_no_file(page: AppTest) -> None:
    (key,) = [m.key for m in page.multiselect if m.key and m.key.startswith("report_rows")]
    page.multiselect(key=key).set_value([]).run()
    assert [i.value for i in page.info] == ["Choose at least one embedding."] and not page.get("download_button")


@pytest.mark.browser
def test_what_is_typed_is_signed_stays_on_a_change_of_page_and_is_in_every_file(
    sample_audit: Path,
    fresh: Callable[..., Any],
    visit: Callable[..., Any],
    one_run: Callable[[Any], Any],
    settled: Callable[[Any], None],
    tmp_path: Path,
) -> None:
    from playwright.sync_api import expect

    server = fresh(sample_audit)
    tab = visit(server, "report")
    tab.get_by_role("textbox", name="Set on").wait_for()
    settled(tab)
    for label, text in (
        ("Name of who made it", "A. Uditor"),
        ("Purpose and scope", "Friend suggestions."),
        ("Set on", "1 May"),
    ):
        with one_run(tab):
            tab.get_by_role("textbox", name=label).fill(text)
            tab.get_by_role("textbox", name=label).blur()
    tab.get_by_role("link", name="Method").click()
    expect(tab.get_by_role("heading", name="Method", exact=True)).to_be_visible()
    tab.get_by_role("link", name="Report").click()
    expect(tab.get_by_role("textbox", name="Name of who made it")).to_have_value("A. Uditor")
    expect(tab.get_by_role("textbox", name="Purpose and scope")).to_have_value("Friend suggestions.")
    expect(tab.get_by_role("textbox", name="Set on")).to_have_value("1 May")
    for name, file in (("HTML", "report.html"), ("JSON", "report.json"), ("CSV", "report.csv"), ("PDF", "report.pdf")):
        with tab.expect_download() as fetched:
            tab.get_by_role("button", name=name, exact=True).click()
        fetched.value.save_as(tmp_path / file)
        assert uge_command(["verify", str(tmp_path / file), "--quick", "--store", str(sample_audit)]) == 0
    assert (
        "A. Uditor" in (page := (tmp_path / "report.html").read_text())
        and "on 1 May, " in page
        and len(json.loads((tmp_path / "report.json").read_text())) == 27
    )
    with tab.expect_download() as fetched:
        tab.get_by_role("button", name="Model card").click()
    fetched.value.save_as(tmp_path / "card.md")
    assert "## Intended use\n\nFriend suggestions." in (tmp_path / "card.md").read_text()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 820, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_clipped(
    sample_audit: Path, serving: Callable[..., Any], visit: Callable[..., Any], width: int, scheme: str
) -> None:
    with serving(sample_audit) as server:
        tab = visit(server, "report", viewport={"width": width, "height": 900}, color_scheme=scheme)
        tab.get_by_test_id("stDownloadButton").first.wait_for()
        tab.get_by_text("Preview", exact=True).click()
        tab.frame_locator("iframe").first.locator(".appendix").wait_for()
        frame = tab.query_selector("iframe").content_frame()
        for shown in (tab, frame):
            assert shown.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        clipped = frame.evaluate(
            """() => [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, svg, .track')
            && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).length"""
        )
        assert clipped == 0
        # Controls that stand side by side are wholly inside.
        assert (
            tab.evaluate(
                """() => [...document.querySelectorAll('[data-testid="stMain"] button')].filter(e => e.checkVisibility()
            && (e.getBoundingClientRect().right > innerWidth || e.getBoundingClientRect().left < 0)).length"""
            )
            == 0
        )


def test_another_run_b_comes_into_the_choice_and_what_the_report_is_about_is_said(page: AppTest) -> None:
    """Whichever embeddings were chosen before, as of more than a report begins with."""

    def about() -> str:
        (words,) = [m.value for m in page.markdown if m.value.startswith("The report is about")]
        return str(words)

    (key,) = [m.key for m in page.multiselect if m.key and m.key.startswith("report_rows")]
    first, last, *others = page.multiselect(key=key).value
    assert "The report is about run B, " in about() and "compared with run A, " in about()
    # Who takes run B out keeps it out, and reads what the report is about then.
    asked = [page.session_state[f"frame_{side}"] for side in ("before", "after")]
    rows = report_choices(uge.RunStore(), asked)
    kept = [row for row in (first, last, *others) if row not in rows.asked]
    page.multiselect(key=key).set_value(kept[:2]).run()
    assert page.multiselect(key=key).value == kept[:2] and not page.exception
    assert "run B is not among the embeddings chosen above" in about() and "run B, " not in about()
    # Who chooses another one has it in the report.
    page.query_params["after"] = kept[3]
    page.run()
    assert not page.exception and page.session_state["frame_after"] == kept[3]
    assert set(page.multiselect(key=key).value) == {*kept[:2], kept[3], rows.asked[0]}
    assert "The report is about run B, " in about() and "compared with run A, " in about()


@pytest.mark.browser
def test_a_field_that_is_still_typed_in_is_in_the_file(
    fresh: Callable[..., Any], visit: Callable[..., Any], sample_audit: Path, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    tab = visit(fresh(sample_audit), "report")
    expect(tab.get_by_role("button", name="HTML", exact=True)).to_be_visible()
    for name in ("Dr. Ada Example", "Dr. Bea Example"):
        tab.get_by_label("Name of who made it").fill(name)
        with tab.expect_download() as fetched:  # the field is left by this very click
            tab.get_by_role("button", name="HTML", exact=True).click()
        fetched.value.save_as(tmp_path / "r.html")
        assert name in (tmp_path / "r.html").read_text()
