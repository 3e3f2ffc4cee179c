"""Two files truly uploaded in a browser, mapped, and their groups seen."""

import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uge_core as uge
import uge_core.dashboard as ui

PEOPLE = "number;gender;handle;city\n" + "".join(
    f"{i};{['f', 'm', 'unknown'][i % 3]};u{i:03};{['<img src=x onerror=alert(1)>', '=1+1', 'S'][i // 3 % 3]}\n"
    for i in range(120)
)
FRIENDS = "when,who,whom\n" + "".join(f"{i % 9},u{i:03},u{(i * 7 + 3) % 120:03}\n" for i in range(120))

pytestmark = pytest.mark.browser


def test_two_files_are_uploaded_mapped_and_shown(
    fresh: Callable[..., Any],
    visit: Callable[..., Any],
    one_run: Callable[[Any], Any],
    settled: Callable[[Any], None],
    tmp_path: Path,
) -> None:
    from playwright.sync_api import expect

    (tmp_path / "friends.csv").write_text(FRIENDS)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "model.pkl").write_bytes(b"x")
    tab = visit(fresh(tmp_path / "store"), "data")
    expect(tab.get_by_text("Nothing leaves this machine")).to_be_visible()
    load = tab.get_by_role("button", name="Load files")
    droppers = tab.locator("input[type=file]")
    expect(droppers).to_have_count(2)
    droppers.nth(0).set_input_files(tmp_path / "model.pkl")
    expect(tab.get_by_text("files are not allowed")).to_be_visible()
    with one_run(tab):
        droppers.nth(0).set_input_files(tmp_path / "friends.csv")
    expect(tab.get_by_text("friends.csv")).to_be_visible()
    expect(load).to_be_disabled()
    droppers.nth(1).set_input_files(tmp_path / "people.csv")
    expect(load).to_be_enabled()
    load.click()
    expect(tab.get_by_text("120 of 120 ids in the edges are in the nodes")).to_be_visible()
    # Keys alone: a wrong id column shows orphans at once, the right one none.
    ident = tab.get_by_role("combobox", name=re.compile("Id column of the nodes"))
    for typed, said in (("number", "0 of 120 ids"), ("handle", "120 of 120 ids")):
        settled(tab)  # the message above it goes with the first choice, and all below moves up
        ident.click()
        ident.fill(typed)
        expect(tab.get_by_role("option")).to_have_text([typed])  # Enter takes what the list shows
        ident.press("Enter")
        expect(tab.get_by_text(f"{said} in the edges")).to_be_visible()
    tab.get_by_role("button", name="Write dataset.yaml").click()
    expect(tab.get_by_role("heading", name="Group sizes")).to_be_visible()
    expect(tab.get_by_text("gender: 2 groups, the largest f with 33.3%; 40 without a value (33.3%)")).to_be_visible()
    # The label of a group is text on the chart too.
    expect(tab.locator("svg text", has_text="<img src=x on").first).to_be_visible()
    assert tab.locator("[data-testid=stMain] img[src=x]").count() == 0
    expect(tab.get_by_role("heading", name="Edge weights")).to_be_visible()
    tab.reload()
    expect(tab.get_by_role("heading", name="Edge weights")).to_be_visible()
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    (upload,) = ui.list_uploads(uge.RunStore(tmp_path / "store"))
    assert upload.files == ("dataset.yaml", "friends.csv", "people.csv")
    assert stat.S_IMODE(upload.folder.stat().st_mode) == 0o700
    assert uge.load(upload.folder).attribute("city").num_values == 3


def test_names_become_no_links_and_turn_no_text(
    fresh: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    names = ["https://evil.example/a", "www.evil.example", "a@evil.example", "one\u202etwo"]
    folder = tmp_path / "www.evil.example"
    folder.mkdir()
    rows = "".join(f"u{i:03},{names[i % 4]},{names[(i // 4) % 4]}\n" for i in range(160))
    (folder / "nodes.csv").write_text(f"id,group,mail\n{rows}", encoding="utf-8")
    (folder / "edges.csv").write_text(
        "source,target\n" + "".join(f"u{i:03},u{(i * 7 + 3) % 160:03}\n" for i in range(160)), encoding="utf-8"
    )
    tab = visit(fresh(tmp_path / "store"), f"data?graph={folder}")
    expect(tab.get_by_role("heading", name="Edge weights")).to_be_visible()
    expect(tab.get_by_text(re.compile("one.u202etwo")).first).to_be_visible()
    assert tab.locator("[data-testid=stMain] a[href*='//'], a[href^=mailto]").count() == 0
    assert tab.evaluate("() => document.body.innerText.includes('\\u202e')") is False


def test_files_on_the_wrong_droppers_and_of_one_name_are_told_by_what_is_in_them(
    fresh: Callable[..., Any],
    visit: Callable[..., Any],
    one_run: Callable[[Any], Any],
    shared_data: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    from playwright.sync_api import expect

    case = shared_data("../cases/26-upload-droppers")
    ties, survey = ((case / name).read_bytes() for name in ("ties.csv", "survey.csv"))
    server = fresh(tmp_path / "store")
    tab = visit(server, "data")
    for called, turned in (
        (("ties.csv", "survey.csv"), False),
        (("ties.csv", "survey.csv"), True),
        (("data.csv",) * 2, True),
    ):
        files = [
            {"name": name, "mimeType": "text/csv", "buffer": content}
            for name, content in zip(called, (ties, survey), strict=True)
        ]
        expect(tab.get_by_role("button", name="Load files")).to_be_disabled()
        for dropper, file in enumerate(files[::-1] if turned else files):
            # A dropper that is about to be drawn anew would forget its file.
            tab.wait_for_function("() => !document.querySelector('[data-stale=true], [data-testid=stSkeleton]')")
            with one_run(tab):
                tab.locator("input[type=file]").nth(dropper).set_input_files(file)
            expect(tab.get_by_test_id("stFileUploader").nth(dropper)).to_contain_text(str(file["name"]))
        expect(tab.get_by_role("button", name="Load files")).to_be_enabled()
        tab.get_by_role("button", name="Load files").click()
        expect(tab.get_by_text(re.compile(r"^Kept in "))).to_contain_text(called[0])
        expect(tab.get_by_text("78 of 78 ids in the edges are in the nodes")).to_be_visible()
        edges = "2-data.csv" if called[0] == called[1] else "ties.csv"
        expect(tab.get_by_role("combobox", name="File of edges")).to_have_value(edges)
        expect(tab.get_by_role("combobox", name="Id column of the nodes")).to_have_value("person")
        expect(tab.get_by_text("they were dropped the other way round")).to_have_count(int(turned))
        tab.get_by_text(re.compile(r"^Uploads \(")).click()
        tab.get_by_role("button", name="Delete", exact=True).first.click()
        tab.get_by_role("button", name="Delete for good").click()
        expect(tab.get_by_text(re.compile(r"^Removed 2 files"))).to_be_visible()


def test_a_tick_on_sensitive_makes_an_attribute_and_the_form_outlasts_a_change_of_page(
    fresh: Callable[..., Any],
    visit: Callable[..., Any],
    one_run: Callable[[Any], Any],
    settled: Callable[[Any], None],
    tmp_path: Path,
) -> None:
    from playwright.sync_api import expect

    folder = tmp_path / "store" / "uploads" / "mine"
    folder.mkdir(parents=True)
    (folder / "friends.csv").write_text(FRIENDS)
    rows = "".join(f"{i},u{i:03},{'abc'[i % 3]},{i % 9 / 10 + 0.05:.2f},t{i}\n" for i in range(120))
    (folder / "people.csv").write_text(f"row,handle,team,clustering,phone\n{rows}")
    tab = visit(fresh(tmp_path / "store"), f"data?graph={folder}")
    expect(tab.get_by_text("120 of 120 ids in the edges are in the nodes")).to_be_visible()
    expect(tab.get_by_text("Decimal numbers are no attributes as they are: clustering")).to_be_visible()
    settled(tab)

    def tick(row: int) -> None:
        """The cell under Sensitive, by keys."""
        grid = tab.get_by_test_id("stDataFrame").first
        grid.scroll_into_view_if_needed()
        grid.click(position={"x": 20, "y": 52})
        expect(grid.get_by_test_id("glide-cell-0-0")).to_have_attribute("aria-selected", "true")
        for key in ["ArrowRight"] * 4 + ["ArrowDown"] * row:
            tab.keyboard.press(key)
        expect(grid.get_by_test_id(f"glide-cell-4-{row}")).to_have_attribute("aria-selected", "true")
        tab.keyboard.press("Enter")

    tick(2)
    expect(tab.get_by_text("clustering is an attribute now, as what is sensitive is one")).to_be_visible()
    expect(tab.get_by_text("The bins quantile:5 make groups of the decimal numbers of clustering")).to_be_visible()
    expect(tab.get_by_test_id("glide-cell-3-2").first).to_have_text("attribute")
    settled(tab)
    tick(3)
    expect(tab.get_by_text("phone is an attribute now")).to_be_visible()
    settled(tab)
    tick(3)  # and off again: it stays an attribute, which can be changed under Use as
    expect(tab.get_by_text("phone is an attribute now")).to_have_count(0)
    with one_run(tab):
        tab.get_by_role("textbox", name="Licence").fill("CC0")
        tab.keyboard.press("Enter")
    header = tab.get_by_role("combobox", name="First line of the edges")
    expect(header).to_have_value("a header unless like the others")
    settled(tab)
    navigation = tab.get_by_test_id("stSidebarNav")
    navigation.get_by_role("link", name="Runs", exact=True).click()
    expect(tab.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    navigation.get_by_role("link", name="Data", exact=True).click()
    expect(tab.get_by_role("textbox", name="Licence")).to_have_value("CC0")
    expect(header).to_have_value("a header unless like the others")
    expect(tab.get_by_role("combobox", name="Weight column")).to_have_value("none")
    expect(tab.get_by_test_id("glide-cell-3-2").first).to_have_text("attribute")
    tab.get_by_role("button", name="Write dataset.yaml").click()
    expect(tab.get_by_role("heading", name="Group sizes")).to_be_visible()
    graph = uge.load(folder)
    assert graph.attribute("clustering").num_values == 5
    assert graph.defaults.sensitive == ("team", "clustering")
    tab.get_by_role("button", name="Train on it").click()
    methods = tab.get_by_role("combobox", name=re.compile("Methods"))
    methods.click()
    methods.fill("UGE-W")
    tab.get_by_role("option", name="UGE-W", exact=True).click()
    chosen = tab.locator("[data-testid=stMultiSelect]").filter(has_text="Attributes to treat")
    expect(chosen).to_contain_text(re.compile(r"team \(3 values\).*clustering \(5 values\)", re.DOTALL))
